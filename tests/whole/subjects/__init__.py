"""What workers do, one file a subject. A table rather than imports, since a worker is told its subject by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_FILES = {"persons": "Persons", "hubs": "Hubs", "topics": "Topics", "plain": "Plain"}


def _later(name: str) -> Callable[..., Any]:
    # boto3 takes a second to import, and only one subject needs it.
    return lambda *arguments: getattr(import_module(f"{__name__}.{name}"), _FILES[name])(*arguments)


SUBJECTS = {name: _later(name) for name in _FILES}
