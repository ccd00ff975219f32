"""Jobs over whole tables: exports, the rebuild of aggregates, and the audit.

The engines come with an extra, and are imported only when a call needs them. `exports` and `sources` need no
extra; everything else here needs `adjoin[batch]`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from adjoin.errors import MissingExtra
from adjoin.requests import Plan

RunPlan: TypeAlias = Callable[[Plan[Any]], Any]
"""Runs a plan on the graph's store."""
TellProgress: TypeAlias = Callable[[str, int], None]
"""Called with the name of the current work, and how many nodes are done."""


def needed(name: str) -> Any:
    """A module of this package that needs the extra. If that is not installed, the error says how to install it."""
    try:
        return import_module(f"adjoin.batch.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(
            f"rebuilding and verifying need {error.name}; install it with: pip install 'adjoin[batch]'"
        ) from error
