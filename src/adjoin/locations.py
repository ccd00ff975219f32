"""Locations of graphs: a file, memory, or a table on DynamoDB.

This is the only module that chooses a store. The packages for files are always installed; those for DynamoDB come with
an extra, and are imported only when a location needs them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, get_args
from urllib.parse import parse_qsl

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidLocation, MissingExtra, shown
from adjoin.late import later

if TYPE_CHECKING:
    from adjoin.stores import sqlite
    from adjoin.stores.interface import AsyncStore, Store
    from adjoin.stores.sqlite import file as sqlite_file
else:
    sqlite = later("adjoin.stores.sqlite")
    sqlite_file = later("adjoin.stores.sqlite.file")

SERVICE = "dynamodb://"
_OTHER_SERVICE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}|arn:.+")
"""The name of a table, or its Amazon Resource Name, which DynamoDB takes in its place."""
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(e-?[0-9]+)?")
ReadOption: TypeAlias = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file, or ":memory:"."""

    path: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceLocation:
    """A table on DynamoDB. Without a name, the layout names the table."""

    table: str | None
    options: Mapping[str, Any]


Location: TypeAlias = FileLocation | ServiceLocation


def _text(value: str) -> str:
    if not value:
        raise ValueError("it must not be empty")
    return value


def _seconds(value: str) -> float:
    if not _NUMBER.fullmatch(value) or not 0 < float(value) < float("inf"):
        raise ValueError("it must be a number of seconds, such as 2.5")
    return float(value)


def _count(value: str) -> int:
    if not value.isdecimal() or len(value) > 9 or int(value) == 0:
        raise ValueError("it must be a whole number of at least 1, with at most nine digits")
    return int(value)


def _durability(value: str) -> str:
    if value not in get_args(sqlite_file.Durability):
        raise ValueError(f"it must be one of {', '.join(get_args(sqlite_file.Durability))}")
    return value


_FILE_OPTIONS: dict[str, ReadOption] = {"durability": _durability}
_SERVICE_OPTIONS: dict[str, ReadOption] = {
    "region": _text,
    "endpoint": _text,
    "profile": _text,
    "connections": _count,
    "timeout": _seconds,
    "deadline": _seconds,
}


def parse_location(location: str | os.PathLike[str]) -> Location:
    """Returns the file or table that a location names, and its options: "graph.db?durability=process".

    A path object has no options. Raises `InvalidLocation`.
    """
    text = os.fspath(location)
    if not _can_be_a_name(text):
        raise InvalidLocation(
            f"{shown(text)} cannot be the name of a file or a table; use text that UTF-8 can encode, without NUL"
        )
    # A question mark in a path object belongs to the name of the file.
    if not isinstance(location, str):
        return FileLocation(text, {})
    place, _, query = text.partition("?")
    if place.startswith(SERVICE):
        name = place.removeprefix(SERVICE).rstrip("/")
        options = _options(query, _SERVICE_OPTIONS, "DynamoDB")
        if name and not _TABLE.fullmatch(name):
            raise InvalidLocation(
                f"{shown(name)} is not the name of a table on DynamoDB: 3 to 255 letters, digits, underscores, dots "
                f"and hyphens; choose another name"
            )
        return ServiceLocation(name or None, options)
    if other := _OTHER_SERVICE.match(place):
        raise InvalidLocation(f"{other[0]} is not a location of graphs; use a path, or {SERVICE}")
    if not place:
        raise InvalidLocation(f'{text!r} does not name a file; use a path, or ":memory:"')
    return FileLocation(place, _options(query, _FILE_OPTIONS, "a file"))


def _can_be_a_name(text: object) -> bool:
    """Whether file systems, SQLite and DynamoDB all accept the characters of the text."""
    try:
        return isinstance(text, str) and "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def check_location(location: object) -> None:
    """Raises `InvalidLocation` unless the location is text, a path or an open store."""
    if not isinstance(location, str | os.PathLike) and not hasattr(location, "execute"):
        raise InvalidLocation(f'{shown(location)} is not a location; use a path, ":memory:" or {SERVICE}Table')


def _options(query: str, known: Mapping[str, ReadOption], place: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise InvalidLocation(f"{place} has no option {shown(name)}; it has {', '.join(known)}")
        # To take one of the two without a word could mean less durability than was meant.
        if name in options:
            raise InvalidLocation(f"the option {name} is given twice; keep one of them")
        try:
            options[name] = known[name](value)
        except ValueError as error:
            raise InvalidLocation(f"{name} cannot be {shown(value)}; {error}") from None
    return options


def table_named_by(location: Any) -> str | None:
    """Returns the name of the table in a location; None for a file, and for an open store."""
    check_location(location)
    if isinstance(location, str) and location.startswith(SERVICE):
        found = parse_location(location)
        return found.table if isinstance(found, ServiceLocation) else None
    return None


def identity(location: str | os.PathLike[str]) -> str:
    """Returns one text for all spellings of a location: the real path of a file, or region, endpoint and profile."""
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return os.path.realpath(found.path)
    _service_stores()
    named = {name: found.options.get(name) for name in ("region", "endpoint", "profile")}
    access = import_module("adjoin.stores.dynamodb.access").ServiceAccess(**named)
    profile = f"&profile={named['profile']}" if named["profile"] else ""
    return f"{SERVICE}?region={access.region}&endpoint={access.table_endpoint.url}{profile}"


def open_store(location: str | os.PathLike[str]) -> Store:
    """Opens the synchronous store at a location."""
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return sqlite.SQLiteStore(found.path, **found.options)
    store: Store = _service_stores().DynamoDBStore(**found.options)
    return store


def open_async_store(location: str | os.PathLike[str]) -> AsyncStore:
    """Opens the asynchronous store at a location."""
    found = parse_location(location)
    if isinstance(found, FileLocation):
        return sqlite.AsyncSQLiteStore(found.path, **found.options)
    store: AsyncStore = _service_stores().AsyncDynamoDBStore(**found.options)
    return store


def _service_stores() -> Any:
    try:
        return import_module("adjoin.stores.dynamodb")
    except ModuleNotFoundError as error:
        # A missing module of adjoin itself is a bug, not a missing extra.
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(
            f"dynamodb:// needs {error.name}; install it with: pip install 'adjoin[dynamodb]'"
        ) from error
