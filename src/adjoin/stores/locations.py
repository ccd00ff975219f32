"""Where a graph's data is, by its location: a file, memory, or a table of the service."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import cast, get_args
from urllib.parse import parse_qsl

from adjoin.errors import InvalidLocation
from adjoin.stores.interface import AsyncStore, Store
from adjoin.stores.sqlite import AsyncSQLiteStore, SQLiteStore
from adjoin.stores.sqlite.file import Durability

_OPTIONS = {"durability": get_args(Durability)}


@dataclass(frozen=True, slots=True)
class FileLocation:
    path: str
    durability: Durability = "power"


def parse_location(location: str | os.PathLike[str]) -> FileLocation:
    """What a location says; options follow the path as in a URL: "graph.db?durability=process"."""
    text = os.fspath(location)
    if text.startswith("dynamodb://"):
        raise InvalidLocation("this version of adjoin has no store for dynamodb:// yet; give the path of a file")
    path, _, query = text.partition("?") if isinstance(location, str) else (text, "", "")
    if not path:
        raise InvalidLocation(f'{text!r} names no file; give a path, or ":memory:"')
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InvalidLocation(f"there is no option {name!r} for a file; there is {', '.join(_OPTIONS)}")
        if value not in _OPTIONS[name]:
            raise InvalidLocation(f"{name} cannot be {value!r}; it is one of {', '.join(_OPTIONS[name])}")
    return FileLocation(path, cast(Durability, options.get("durability", "power")))


def open_store(location: str | os.PathLike[str]) -> Store:
    found = parse_location(location)
    return SQLiteStore(found.path, durability=found.durability)


def open_async_store(location: str | os.PathLike[str]) -> AsyncStore:
    found = parse_location(location)
    return AsyncSQLiteStore(found.path, durability=found.durability)
