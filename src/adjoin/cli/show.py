"""`adjoin show`: draws a table, or one of its indexes, as boxes, while it reads them."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from itertools import islice

from adjoin.cli.command import Command, existing, meant, table_at, whole_number
from adjoin.cli.drawing import counted, draw_items, is_own, without_own_attributes
from adjoin.errors import NotFound
from adjoin.requests import PageResponse, Scan, TableResponse
from adjoin.reserved import DECLARED
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

DEFAULT_LIMIT = 100
BOX = 500
"""How many items a box has at most: the width of its columns is known only when all of them are read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument("--index", metavar="I", help="draw this index instead of the table")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number,
        default=DEFAULT_LIMIT,
        help=f"draw at most this many items (default: {DEFAULT_LIMIT})",
    )
    parser.add_argument("--all", action="store_true", help="also draw adjoin's own items and attributes")
    parser.add_argument("--json", action="store_true", help="print one item per line, as DynamoDB JSON")


def run(arguments: argparse.Namespace) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    with existing(arguments.location) as store:
        table = table_at(store, arguments.location, arguments.table)
        reading = _Reading(store, table.definition, arguments.index, arguments.all)
        if arguments.json:
            for item in islice(reading.items(arguments.limit), arguments.limit):
                print(json.dumps(item, separators=(",", ":")))
            return
        for part in _parts(reading, table, arguments.limit, width):
            print(part, flush=True)


def drawn_table(store: Store, table: TableResponse, index: str | None, limit: int, width: int | None = None) -> str:
    """A title with the number of items, and the drawing, without adjoin's own items."""
    return "\n".join(_parts(_Reading(store, table.definition, index, False), table, limit, width))


class _Reading:
    """Reads items of a table or an index. adjoin's own items are left out and counted, unless all are wanted.

    An index copy is an entry of its index, so it is always drawn in a drawing of that index.
    """

    def __init__(self, store: Store, definition: TableDefinition, index: str | None, everything: bool) -> None:
        self.definition, self.index = definition, index
        self.keys, self.last = _columns(definition, index)
        self.own = 0
        self._store, self.everything = store, everything
        self._hidden = None if everything or index is not None else definition.partition.name

    def items(self, wanted: int) -> Iterator[Item]:
        """The items in the order of a scan. A page has at most `wanted`, and one that tells whether there are more."""
        start: Item | None = None
        while True:
            request = Scan(self.definition.name, index=self.index, limit=min(wanted, BOX) + 1, start=start)
            (response,) = self._store.execute([request])
            assert isinstance(response, PageResponse)
            for item in response.items:
                # Every table has a record of what is declared. It is drawn with --all, and else not worth a word.
                if self.everything:
                    yield item
                elif DECLARED in item:
                    continue
                elif self._hidden is not None and is_own(item[self._hidden]):
                    self.own += 1
                else:
                    yield without_own_attributes(item)
            start = response.last
            if start is None:
                return


def _parts(reading: _Reading, table: TableResponse, limit: int, width: int | None) -> Iterator[str]:
    """A title, then boxes, and a last line if the first could not tell everything."""
    name = f"table {reading.definition.name}" + ("" if reading.index is None else f", index {reading.index}")
    items = reading.items(limit)
    box = [*islice(items, min(limit, BOX))]
    following = next(items, None)
    if not box and not reading.own:
        yield f"{name}: empty"
        return
    if following is None:
        yield f"{name}: {counted(len(box), 'item')}{_besides(reading.own)}"
    elif limit <= BOX:
        yield f"{name}: {_first(reading, len(box), table.item_count)}; draw more with --limit"
    else:
        yield f"{name}: at most {counted(limit, 'item')}, in boxes of {BOX}"
    left = limit
    while True:
        yield draw_items(box, reading.keys, reading.last, width)
        left -= len(box)
        if following is None or not left:
            break
        box = [following, *islice(items, min(left, BOX) - 1)]
        following = next(items, None)
    if limit > BOX and left < limit - BOX:
        drawn = limit - left
        if following is not None:
            yield f"{_first(reading, drawn, table.item_count)}; draw more with --limit"
        else:
            yield f"{counted(drawn, 'item')}{_besides(reading.own)}"


def _first(reading: _Reading, number: int, total: int) -> str:
    if reading.index is not None:
        return f"the first {counted(number, 'item')}"
    # The number of items that DynamoDB and the file know has all items. Counting the others would read the table.
    own = "" if reading.everything else ", adjoin's own included"
    return f"the first {number:,} of {counted(total, 'item')}{own}"


def _besides(own: int) -> str:
    return f", and {own:,} of adjoin's own; draw them with --all" if own else ""


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


COMMAND = Command("show", "draws a table, or one of its indexes", add_arguments, run, takes_file=False)
