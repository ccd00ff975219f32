"""Modules that are imported when they are first used.

A program that opens a graph and reads a node should not wait until everything is imported that a graph can do. So a
module that only some calls need is imported by `later`: what it returns stands for the module, until a name of the
module is asked for. Then the module is imported and takes the place, so later calls go to it without a detour.

    if TYPE_CHECKING:
        from adjoin.plans import walk
    else:
        walk = later("adjoin.plans.walk")

It is an import like any other: it stands at the top of a module, and points down. `tests/test_architecture.py` reads
both kinds.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class _Later:
    """Stands for a module in the namespace of the one that imports it."""

    def __init__(self, name: str, space: dict[str, Any]) -> None:
        self._name = name
        self._space = space

    def __getattr__(self, name: str) -> Any:
        module = import_module(self._name)
        for place, value in list(self._space.items()):
            if value is self:
                self._space[place] = module
        return getattr(module, name)

    def __repr__(self) -> str:
        return f"<module {self._name!r}, imported when it is used>"


def later(name: str) -> Any:
    """Returns what stands for a module in the calling module, and imports it when it is used."""
    return _Later(name, sys._getframe(1).f_globals)
