"""Where a graph's data is, by its location: a file, memory, or a table of the service.

What a file needs is always there; what DynamoDB needs comes with an extra, and is imported when a
location asks for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, get_args
from urllib.parse import parse_qsl

from adjoin.errors import InvalidLocation, MissingExtra, shown
from adjoin.stores.interface import AsyncStore, Store
from adjoin.stores.sqlite import AsyncSQLiteStore, SQLiteStore
from adjoin.stores.sqlite.file import Durability

SERVICE = "dynamodb://"
_OTHER_SERVICE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(e-?[0-9]+)?")
Read: TypeAlias = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class FileLocation:
    path: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceLocation:
    """A table of DynamoDB; without a name it is the layout's."""

    table: str | None
    options: Mapping[str, Any]


Location: TypeAlias = FileLocation | ServiceLocation


def _text(value: str) -> str:
    if not value:
        raise ValueError("it is empty")
    return value


def _seconds(value: str) -> float:
    if not _NUMBER.fullmatch(value) or not 0 < float(value) < float("inf"):
        raise ValueError("it is a number of seconds, such as 2.5")
    return float(value)


def _count(value: str) -> int:
    if not value.isdecimal() or len(value) > 9 or int(value) == 0:
        raise ValueError("it is a whole number above 0, of nine digits at most")
    return int(value)


def _durability(value: str) -> str:
    if value not in get_args(Durability):
        raise ValueError(f"it is one of {', '.join(get_args(Durability))}")
    return value


_FILE_OPTIONS: dict[str, Read] = {"durability": _durability}
_SERVICE_OPTIONS: dict[str, Read] = {
    "region": _text,
    "endpoint": _text,
    "profile": _text,
    "connections": _count,
    "timeout": _seconds,
    "deadline": _seconds,
}


def parse_location(location: str | os.PathLike[str]) -> Location:
    """What a location says; options follow as in a URL: "graph.db?durability=process"."""
    text = os.fspath(location)
    if not _can_be_a_name(text):
        raise InvalidLocation(
            f"{shown(text)} cannot name a file or a table; give text that UTF-8 can carry, without NUL"
        )
    if not isinstance(location, str):
        return FileLocation(text, {})
    place, _, query = text.partition("?")
    if place.startswith(SERVICE):
        name = place.removeprefix(SERVICE).rstrip("/")
        return ServiceLocation(name or None, _options(query, _SERVICE_OPTIONS, "DynamoDB"))
    if other := _OTHER_SERVICE.match(place):
        raise InvalidLocation(f"{other[0]} is no place for a graph; give a path, or {SERVICE}")
    if not place:
        raise InvalidLocation(f'{text!r} names no file; give a path, or ":memory:"')
    return FileLocation(place, _options(query, _FILE_OPTIONS, "a file"))


def _can_be_a_name(text: object) -> bool:
    """Whether systems, SQLite and the service all take it, as far as its characters are concerned."""
    try:
        return isinstance(text, str) and "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def check_location(location: object) -> None:
    """A location is text, a path, or a store that is open."""
    if not isinstance(location, str | os.PathLike) and not hasattr(location, "execute"):
        raise InvalidLocation(f'{shown(location)} is no place for a graph; give a path, ":memory:" or {SERVICE}Table')


def _options(query: str, known: Mapping[str, Read], place: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise InvalidLocation(f"there is no option {shown(name)} for {place}; there is {', '.join(known)}")
        if name in options:
            raise InvalidLocation(f"{name} is given twice; give it once")
        try:
            options[name] = known[name](value)
        except ValueError as error:
            raise InvalidLocation(f"{name} cannot be {shown(value)}; {error}") from None
    return options


def table_named_by(location: Any) -> str | None:
    """The table that a location names; files name none, and neither does a store that is open already."""
    check_location(location)
    if isinstance(location, str) and location.startswith(SERVICE):
        found = parse_location(location)
        return found.table if isinstance(found, ServiceLocation) else None
    return None


def identity(location: str | os.PathLike[str]) -> str:
    """Where it is, whatever it is called from here: the same text for the same file, or account and region."""
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return os.path.realpath(found.path)
    _service_stores()
    named = {name: found.options.get(name) for name in ("region", "endpoint", "profile")}
    access = import_module("adjoin.stores.dynamodb.access").Access(**named)
    profile = f"&profile={named['profile']}" if named["profile"] else ""
    return f"{SERVICE}?region={access.region}&endpoint={access.table_endpoint.url}{profile}"


def open_store(location: str | os.PathLike[str]) -> Store:
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return SQLiteStore(found.path, **found.options)
    store: Store = _service_stores().DynamoDBStore(**found.options)
    return store


def open_async_store(location: str | os.PathLike[str]) -> AsyncStore:
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return AsyncSQLiteStore(found.path, **found.options)
    store: AsyncStore = _service_stores().AsyncDynamoDBStore(**found.options)
    return store


def _service_stores() -> Any:
    try:
        return import_module("adjoin.stores.dynamodb")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(
            f"dynamodb:// needs {error.name}; install it with: pip install 'adjoin[dynamodb]'"
        ) from error
