"""`adjoin show`: a table, or one of its indexes, drawn as a person would draw it."""

from __future__ import annotations

import argparse
import shutil
import sys

from adjoin.cli.command import Command, chosen_table, existing_file, meant
from adjoin.cli.drawing import counted, draw_items
from adjoin.cli.own_items import is_own, without_own_attributes
from adjoin.errors import NotFound, shown
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
    parser.add_argument("--all", action="store_true", help="also what adjoin keeps for itself")


def _at_least_one(text: str) -> int:
    # Longer ones are no numbers of items, and Python refuses to read one of thousands of digits.
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from 1 to 999,999,999")
    return int(text)


def run(arguments: argparse.Namespace) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    with existing_file(arguments.file) as store:
        table = chosen_table(store, arguments.table)
        print(drawn_table(store, table, arguments.index, arguments.limit, width, arguments.all))


def drawn_table(
    store: Store,
    table: TableResponse,
    index: str | None,
    limit: int,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """A title that says how much there is, and the drawing; of adjoin's own only with `everything`.

    The copies in an index are entries of it, and always drawn there.
    """
    definition = table.definition
    keys, last = _columns(definition, index)
    hidden = None if everything or index is not None else definition.partition.name
    items, own, more = _some_items(store, definition.name, index, limit, hidden)
    if not everything:
        items = [without_own_attributes(item) for item in items]
    name = definition.name if index is None else f"{definition.name}, index {index}"
    if not items and not own:
        return f"{name}: empty"
    if not more:
        besides = f", and {own:,} of adjoin's own; --all draws them" if own else ""
        count = counted(len(items), "item") + besides
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


def _some_items(
    store: Store, table: str, index: str | None, limit: int, hidden: str | None
) -> tuple[list[Item], int, bool]:
    """At most `limit` items, how many were left out as adjoin's own, and whether there are more.

    `hidden` is the key that tells adjoin's own; None to leave nothing out.
    """
    items: list[Item] = []
    own = 0
    start: Item | None = None
    while True:
        (response,) = store.execute([Scan(table, index=index, limit=limit + 1 - len(items), start=start)])
        assert isinstance(response, PageResponse)
        shown = [item for item in response.items if hidden is None or not is_own(item[hidden])]
        own += len(response.items) - len(shown)
        items += shown
        start = response.last
        if start is None or len(items) > limit:
            return items[:limit], own, len(items) > limit


COMMAND = Command("show", "draws a table, or one of its indexes", add_arguments, run)
