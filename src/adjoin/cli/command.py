"""The `Command` record, and what commands share: their parser, opening a file, choosing a table, importing classes.

Commands that need the user's classes import the user's module, and take the classes and their layout from it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from adjoin import Child, Edge, Node
from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidLocation, InvalidModel, InvalidValue, NotFound, TableNotFound, shown
from adjoin.locations import SERVICE, open_store, table_named_by
from adjoin.requests import DescribeTable, ListTables, TableResponse, TablesResponse
from adjoin.stores.interface import Store

FAILED, MISUSED, IN_PART, ABSENT = 1, 2, 3, 4
"""Exit statuses: an error; invalid arguments; done in part; what was asked for does not exist."""

_MOST = 999_999_999
"""No table has more items, and int() refuses a text of thousands of digits."""


class InvalidArguments(AdjoinError):
    """An argument is invalid, or does not go together with another one."""


@contextmanager
def of_arguments() -> Iterator[None]:
    """Within this block, an invalid value means an invalid argument."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidArguments(str(error)) from error


def error_line(error: Exception) -> str:
    """An error as one line. File names that are not UTF-8 are written with escapes, so that printing cannot fail."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str):
        # Python's own text begins with the number of the error.
        text = f"{error.filename}: {error.strerror}"
    line = " ".join(text.split())
    return f"adjoin: {line.encode('utf-8', 'backslashreplace').decode()}"


def whole_number(text: str) -> int:
    """For argparse: a whole number from 1 on."""
    if not text.isdecimal() or len(text) > len(str(_MOST)) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from 1 to {_MOST:,}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    """Returns the exit status, or None for 0."""
    takes_file: bool = True
    """Whether the first argument is FILE. If not, `add_arguments` adds all arguments."""
    call: Callable[[Any, argparse.Namespace], Any] | None = None
    """For a command that is a verb of the graph: the query, or the function without parameters, that `explain` takes.

    It gets the open graph, an `Asked`, and the arguments.
    """


# --- arguments ---------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Parses arguments, and for a mistyped word it names the one that was probably meant.

    Parsers of commands are of the same class, because argparse makes them of the class of their parent.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = super().parse_known_args(args, namespace)
        # Where a command has its own parser, only that one knows its options, so it refuses what is left itself.
        if rest and not any(isinstance(each, argparse._SubParsersAction) for each in self._actions):
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._hint(rest)}")
        return found, rest

    def _hint(self, words: Sequence[str]) -> str:
        options = [option for action in self._actions for option in action.option_strings]
        unknown = [word.partition("=")[0] for word in words if word.startswith("-")]
        # Without the hyphens, which would make any two options seem alike.
        named = {option.lstrip("-"): option for option in options}
        return _closest(unknown[0].lstrip("-"), named) if unknown else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [*map(str, action.choices)]
            hint = _closest(str(value), {each: each for each in known}) or f"; choose from {', '.join(known)}"
            raise argparse.ArgumentError(action, f"{value!r} is not known{hint}")

    def error(self, message: str) -> NoReturn:
        # What people type may be anything, and a message is one line that can be printed.
        line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()
        super().error(re.sub(r"[\x00-\x1f\x7f]", "?", line))


def _closest(word: str, known: Mapping[str, str]) -> str:
    """What was probably typed wrongly, of words by what is compared with."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


# --- files and tables --------------------------------------------------------------------------


@contextmanager
def existing_file(path: str) -> Iterator[Store]:
    """The store in a file that must exist: a command that only reads must not create one."""
    if path.startswith(SERVICE):
        raise InvalidLocation(
            f"this command reads files only; copy the table into a file first: adjoin copy '{path}' table.db"
        )
    with existing(path) as store:
        yield store


@contextmanager
def existing(location: str) -> Iterator[Store]:
    """The store at a location. A file must exist."""
    # A path object: a name may have a question mark, which begins the options of a location.
    is_service = location.startswith(SERVICE)
    if not is_service and not os.path.exists(location):
        raise NotFound(f"the file {location} does not exist; check the name")
    store = open_store(location if is_service else Path(location))
    try:
        yield store
    finally:
        store.close()


def table_at(store: Store, location: str, asked: str | None) -> TableResponse:
    """The table that the location or the user named, or the only table of a file."""
    named = table_named_by(location)
    if named is not None and asked not in (None, named):
        raise InvalidLocation(f"{location} names the table {named!r}, and --table names {asked!r}; leave one out")
    table = named or asked
    if not location.startswith(SERVICE):
        return chosen_table(store, table)
    if table is None:
        raise InvalidArguments("name the table, as in dynamodb://Education, or with --table")
    return described(store, table)


def table_names(store: Store) -> tuple[str, ...]:
    (response,) = store.execute([ListTables()])
    assert isinstance(response, TablesResponse)
    return response.names


def described(store: Store, table: str) -> TableResponse:
    (response,) = store.execute([DescribeTable(table)])
    assert isinstance(response, TableResponse)
    return response


def chosen_table(store: Store, asked: str | None) -> TableResponse:
    """The table that the user named, or the only table of the file."""
    names = table_names(store)
    if asked is None and len(names) == 1:
        return described(store, names[0])
    if asked in names:
        return described(store, asked)
    if asked is None and names:
        raise TableNotFound(f"the file has several tables: {', '.join(names)}; choose one with --table")
    if asked is None:
        raise TableNotFound("the file has no table yet; put something into it first")
    raise TableNotFound(f"the file has no table {asked!r}; {meant(asked, names)}")


def meant(asked: str, known: tuple[str, ...]) -> str:
    """A hint: the known name that is closest, or the list of known names."""
    close = difflib.get_close_matches(asked, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"


# --- the user's modules -----------------------------------------------------------------------


def imported(name: str) -> ModuleType:
    """The module of this name, or in this file. The current directory is searched first, as with `python -m`."""
    path = Path(name) if name.endswith(".py") else None
    if path is not None and not path.is_file():
        raise NotFound(f"the file {name} does not exist; check the name")
    here = os.getcwd() if path is None else str(path.resolve().parent)
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name) if path is None else _imported_file(path)
    except ModuleNotFoundError as error:
        # Is the module itself missing, or one that it imports?
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NotFound(
                f"the module {name} does not exist here or in this environment; name it as in an import"
            ) from None
        raise InvalidModel(f"the module {name} cannot be imported: {error}{_place(error, here)}") from error
    except AdjoinError as error:
        raise InvalidModel(f"the module {name} cannot be imported: {error}{_place(error, here)}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InvalidModel(f"the module {name!r} cannot be imported: {what}{_place(error, here)}") from error
    finally:
        sys.path.remove(here)


def _imported_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks up names of annotations in the module of a class.
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem)
        if before is not None:
            sys.modules[path.stem] = before
        raise
    return module


def _place(error: BaseException, folder: str) -> str:
    """Where in the user's own files an error was raised; nothing if Python's message says it, or none of them did."""
    if isinstance(error, SyntaxError):
        return ""
    own = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(folder + os.sep)]
    return f" ({os.path.relpath(own[-1].filename, folder)}, line {own[-1].lineno})" if own else ""


def named_in(module: ModuleType, name: str) -> list[Any]:
    known = tuple(each for each in vars(module) if each.isidentifier() and not each.startswith("_"))
    if name not in vars(module):
        raise InvalidArguments(f"the module {module.__name__} has no {name!r}; {meant(name, known)}")
    value = getattr(module, name)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidArguments(f"{module.__name__}.{name} is {value!r}; it must be a list")
    return list(value)


def models_in(module: ModuleType, name: str | None) -> list[Any]:
    if name is not None:
        return named_in(module, name)
    # Pydantic puts classes into the module for its own use, such as "Edge[Student, Course]"; they are no identifiers.
    classes = [each for name, each in vars(module).items() if name.isidentifier() and isinstance(each, type)]
    found = [
        each for each in dict.fromkeys(classes) if issubclass(each, Node | Edge) and each not in (Node, Edge, Child)
    ]
    if not found:
        raise InvalidArguments(
            f"the module {module.__name__} has no Node or Edge classes; name the module that has them"
        )
    return found


def layout_in(module: ModuleType, name: str) -> Any:
    layouts = {
        each: value
        for each, value in vars(module).items()
        if hasattr(value, "bind") and hasattr(value, "table") and not isinstance(value, type)
    }
    if name:
        if name not in layouts:
            hint = meant(name, tuple(layouts))
            raise InvalidArguments(f"the module {module.__name__} has no layout {name!r}; {hint}")
        return layouts[name]
    if len({id(value) for value in layouts.values()}) > 1:
        raise InvalidArguments(
            f"the module {module.__name__} has several layouts: {', '.join(layouts)}; "
            f"choose one with {module.__name__}:{next(iter(layouts))}"
        )
    return next(iter(layouts.values()), None)
