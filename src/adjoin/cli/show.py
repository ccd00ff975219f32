"""`adjoin show`: a table, or one of its indexes, drawn as a person would draw it."""

from __future__ import annotations

import argparse
import shutil
import sys

from adjoin.cli.command import Command, chosen_table, existing_file, meant
from adjoin.cli.drawing import counted, draw_items
from adjoin.errors import NotFound
from adjoin.requests import PageResponse, Scan, TableResponse
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

DEFAULT_LIMIT = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file holds one")
    parser.add_argument("--index", metavar="I", help="draw this index instead of the table")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_at_least_one,
        default=DEFAULT_LIMIT,
        help=f"at most so many items (default: {DEFAULT_LIMIT})",
    )


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    with existing_file(arguments.file) as store:
        table = chosen_table(store, arguments.table)
        print(drawn_table(store, table, arguments.index, arguments.limit, width))


def drawn_table(store: Store, table: TableResponse, index: str | None, limit: int, width: int | None = None) -> str:
    """A title that says how much there is, and the drawing."""
    definition = table.definition
    keys, last = _columns(definition, index)
    items, more = _some_items(store, definition.name, index, limit)
    name = definition.name if index is None else f"{definition.name}, index {index}"
    if not items:
        return f"{name}: empty"
    if not more:
        count = counted(len(items), "item")
    elif index is None:
        count = f"the first {len(items):,} of {counted(table.item_count, 'item')}; --limit shows more"
    else:
        count = f"the first {counted(len(items), 'item')}; --limit shows more"
    return f"{name}: {count}\n{draw_items(items, keys, last, width)}"


def _columns(definition: TableDefinition, index: str | None) -> tuple[list[str], list[str]]:
    """The key columns that come first, and the keys of indexes, which come last."""
    own = [key.name for key in definition.keys]
    if index is None:
        return own, list(dict.fromkeys(key.name for each in definition.indexes for key in each.keys))
    found = definition.index(index)
    if found is None:
        names = tuple(each.name for each in definition.indexes)
        raise NotFound(f"the table {definition.name} has no index {index!r}; {meant(index, names)}")
    return list(dict.fromkeys([*(key.name for key in found.keys), *own])), []


def _some_items(store: Store, table: str, index: str | None, limit: int) -> tuple[list[Item], bool]:
    """At most `limit` items, and whether there are more."""
    items: list[Item] = []
    start: Item | None = None
    while True:
        (response,) = store.execute([Scan(table, index=index, limit=limit + 1 - len(items), start=start)])
        assert isinstance(response, PageResponse)
        items += response.items
        start = response.last
        if start is None or len(items) > limit:
            return items[:limit], len(items) > limit


COMMAND = Command("show", "draws a table, or one of its indexes", add_arguments, run)
