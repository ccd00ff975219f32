"""Puts the page of the explorer into the wheel and the source distribution.

It is built first if it is not there. Where that is not possible, for want of Node or of npm's registry, the package is
made without it, and `adjoin explore` says what to run; everything else of adjoin needs no page.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "explorer"))

import build


class PageHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        try:
            build.build()
        except (SystemExit, OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"the page of the explorer is not in this package: {error}")
