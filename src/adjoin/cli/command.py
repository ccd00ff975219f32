"""What a command is, and what commands share: a file that is there, and a table in it."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adjoin.errors import AdjoinError, InvalidLocation, InvalidValue, NotFound, TableNotFound
from adjoin.requests import DescribeTable, ListTables, TableResponse, TablesResponse
from adjoin.stores.interface import Store
from adjoin.stores.locations import SERVICE, open_store

FAILED, MISUSED = 1, 2
"""Exit statuses of all commands: something went wrong; arguments cannot be understood, or cannot be."""


class InvalidArguments(AdjoinError):
    """Arguments that cannot be, or not together."""


@contextmanager
def of_arguments() -> Iterator[None]:
    """What is wrong with a value in here is wrong with an argument."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidArguments(str(error)) from error


def told(error: Exception) -> str:
    """An error as one line, in which the bytes of a name that is no UTF-8 are written out."""
    line = " ".join(str(error).split())
    return f"adjoin: {line.encode('utf-8', 'backslashreplace').decode()}"


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    """Answers the exit status, if it is not 0."""
    takes_file: bool = True
    """Whether its first argument is a file; if not, it adds its own."""


@contextmanager
def existing_file(path: str) -> Iterator[Store]:
    """The store in a file; looking at a file must not make one."""
    if path.startswith(SERVICE):
        raise InvalidLocation(f"this reads files; copy the table into one first: adjoin copy '{path}' table.db")
    if not os.path.exists(path):
        raise NotFound(f"there is no file {path}; check the name")
    store = open_store(Path(path))
    try:
        yield store
    finally:
        store.close()


def table_names(store: Store) -> tuple[str, ...]:
    (response,) = store.execute([ListTables()])
    assert isinstance(response, TablesResponse)
    return response.names


def described(store: Store, table: str) -> TableResponse:
    (response,) = store.execute([DescribeTable(table)])
    assert isinstance(response, TableResponse)
    return response


def chosen_table(store: Store, asked: str | None) -> TableResponse:
    """The table that was asked for, or the only one."""
    names = table_names(store)
    if asked is None and len(names) == 1:
        return described(store, names[0])
    if asked in names:
        return described(store, asked)
    if asked is None and names:
        raise TableNotFound(f"the file holds several tables: {', '.join(names)}; choose one with --table")
    if asked is None:
        raise TableNotFound("the file holds no table yet; put something into it first")
    raise TableNotFound(f"the file has no table {asked!r}; {meant(asked, names)}")


def meant(asked: str, known: tuple[str, ...]) -> str:
    """Which name may have been meant, or which there are."""
    close = difflib.get_close_matches(asked, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"
