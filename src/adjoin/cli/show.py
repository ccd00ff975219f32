"""`adjoin show`: draws a table, or one of its indexes, as a box."""

from __future__ import annotations

import argparse
import shutil
import sys

from adjoin.cli.command import Command, chosen_table, existing_file, meant
from adjoin.cli.drawing import counted, draw_items, is_own, without_own_attributes
from adjoin.errors import NotFound, shown
from adjoin.requests import PageResponse, Scan, TableResponse
from adjoin.reserved import DECLARED
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

DEFAULT_LIMIT = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument("--index", metavar="I", help="draw this index instead of the table")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_at_least_one,
        default=DEFAULT_LIMIT,
        help=f"draw at most this many items (default: {DEFAULT_LIMIT})",
    )
    parser.add_argument("--all", action="store_true", help="also draw adjoin's own items and attributes")


def _at_least_one(text: str) -> int:
    # No table has more items than nine digits can count, and int() refuses a text of thousands of digits.
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
    """A title with the number of items, and the drawing. adjoin's own items are drawn only with `everything`.

    An index copy is an entry of its index, so it is always drawn in a drawing of that index.
    """
    definition = table.definition
    keys, last = _columns(definition, index)
    hidden = None if everything or index is not None else definition.partition.name
    items, own, more = _some_items(store, definition.name, index, limit, hidden, everything=everything)
    if not everything:
        items = [without_own_attributes(item) for item in items]
    name = definition.name if index is None else f"{definition.name}, index {index}"
    if not items and not own:
        return f"{name}: empty"
    if not more:
        besides = f", and {own:,} of adjoin's own; draw them with --all" if own else ""
        count = counted(len(items), "item") + besides
    elif index is None:
        count = f"the first {len(items):,} of {counted(table.item_count, 'item')}; draw more with --limit"
    else:
        count = f"the first {counted(len(items), 'item')}; draw more with --limit"
    return f"{name}: {count}\n{draw_items(items, keys, last, width)}"


def _columns(definition: TableDefinition, index: str | None) -> tuple[list[str], list[str]]:
    """The key columns, which are drawn first, and the keys of indexes, which are drawn last."""
    own = [key.name for key in definition.keys]
    if index is None:
        return own, list(dict.fromkeys(key.name for each in definition.indexes for key in each.keys))
    found = definition.index(index)
    if found is None:
        names = tuple(each.name for each in definition.indexes)
        raise NotFound(f"the table {definition.name} has no index {index!r}; {meant(index, names)}")
    return list(dict.fromkeys([*(key.name for key in found.keys), *own])), []


def _some_items(
    store: Store, table: str, index: str | None, limit: int, hidden: str | None, *, everything: bool
) -> tuple[list[Item], int, bool]:
    """At most `limit` items, how many of adjoin's own were left out, and whether there are more.

    `hidden` names the key attribute by which adjoin's own items are recognised; None leaves nothing out.
    """
    items: list[Item] = []
    own = 0
    start: Item | None = None
    while True:
        # One item more than the limit shows whether there are more.
        (response,) = store.execute([Scan(table, index=index, limit=limit + 1 - len(items), start=start)])
        assert isinstance(response, PageResponse)
        # Every table has a record of what is declared. It is drawn with --all, and otherwise not worth a word.
        found = [item for item in response.items if everything or DECLARED not in item]
        shown = [item for item in found if hidden is None or not is_own(item[hidden])]
        own += len(found) - len(shown)
        items += shown
        start = response.last
        if start is None or len(items) > limit:
            return items[:limit], own, len(items) > limit


COMMAND = Command("show", "draws a table, or one of its indexes", add_arguments, run)
