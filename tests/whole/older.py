"""An adjoin that knows format version 1 only: its sources, out of this repository's history where that is there."""

from __future__ import annotations

import subprocess
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]
FIRST_OF_VERSION_2 = "a0b39a4c02db"
"""The commit that made it; the one before knows version 1 only."""


def sources(folder: Path) -> Path | None:
    """A folder for `PYTHONPATH`, or None where there is no history, as in a shallow clone or a source package."""
    try:
        made = subprocess.run(
            ["git", "archive", "--format=zip", f"{FIRST_OF_VERSION_2}^", "src"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    with ZipFile(BytesIO(made.stdout)) as archive:
        archive.extractall(folder)
    return folder / "src"
