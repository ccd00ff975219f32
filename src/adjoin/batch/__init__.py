"""Whole tables at once: exports, aggregates recomputed from them, and the audit.

What computes comes with an extra, and is imported when it is asked for: `exports` and `sources` need nothing
more, everything else here needs `adjoin[batch]`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adjoin.errors import MissingExtra


def needed(name: str) -> Any:
    """A module of this package that needs the extra; an error that tells what to install, if it is not there."""
    try:
        return import_module(f"adjoin.batch.{name}")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(
            f"rebuilding and verifying need {error.name}; install it with: pip install 'adjoin[batch]'"
        ) from error
