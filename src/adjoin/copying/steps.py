"""The steps of a copy, as plans that each run on one store: the source or the destination.

A copy reads the table page by page in segments, and writes each page. At the end it applies the changes that were made
at the source since before the first page was read. `transfer` runs these plans on two stores. It decides which page is
next, and where an interrupted copy continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from adjoin.dataclass import dataclass
from adjoin.errors import ChangesTrimmed, TableNotFound
from adjoin.plans.steps.batches import BATCHES_A_ROUND, by_size, chunks, write_all
from adjoin.plans.table import require_shape
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    Delete,
    DescribeTable,
    ItemChange,
    PageResponse,
    Plan,
    Put,
    ReadChanges,
    Scan,
    SetTimeToLive,
    TableResponse,
)
from adjoin.tables import TableDefinition
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import Item, item_size

# --- tables ------------------------------------------------------------------------------------


def describe(table: str) -> Plan[TableResponse]:
    response: TableResponse
    (response,) = yield (DescribeTable(table),)
    return response


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination table: what it should be (`definition`), and what was found."""

    definition: TableDefinition
    found: TableDefinition | None
    holds_items: bool


def look_at_destination(definition: TableDefinition) -> Plan[Destination]:
    """Describes the destination table. Refuses a table with other keys or indexes."""
    try:
        described = yield from describe(definition.name)
    except TableNotFound:
        return Destination(definition, None, False)
    require_shape(definition, described.definition, "copy into a table of another name")
    page: PageResponse
    # DynamoDB updates the item count in a table's description about every six hours, so read one item instead.
    (page,) = yield (Scan(definition.name, limit=1, consistent=True),)
    return Destination(definition, described.definition, page.scanned > 0)


def prepare(destination: Destination) -> Plan[None]:
    """Creates the table, or sets the time to live of one whose creation was interrupted before that."""
    definition, found = destination.definition, destination.found
    if found is None:
        yield (CreateTable(definition),)
    elif definition.ttl is not None and found.ttl is None:
        yield (SetTimeToLive(definition.name, definition.ttl),)


# --- items -------------------------------------------------------------------------------------

PAGE_ITEMS = 1000
"""How many items are read from a segment at a time. A page whose writing is interrupted is copied again."""


def read_pages(table: str, starts: Mapping[int, Item | None], segments: int) -> Plan[dict[int, PageResponse]]:
    """The next page of each segment, given the key after which it continues.

    Reads are strongly consistent: a copy must not miss an item that was written just before it began.
    """
    which = {number: None if segments == 1 else (number, segments) for number in starts}
    pages: list[PageResponse] = yield tuple(
        Scan(table, start=start, segment=which[number], limit=PAGE_ITEMS, consistent=True)
        for number, start in starts.items()
    )
    return dict(zip(starts, pages, strict=True))


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of items, and their size in bytes."""

    items: int = 0
    size: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.items + other.items, self.size + other.size)


def put_pages(table: str, pages: Iterable[PageResponse]) -> Plan[Amount]:
    puts = [Put(table, item) for page in pages for item in page.items]
    yield from _write(puts)
    return Amount(len(puts), sum(item_size(put.item) for put in puts))


# --- changes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest change of a stream when a copy began. Its time shows later whether the stream is still the same one.

    `before` is the position of the previous change; reading from there returns the marked change again.
    """

    position: str | None = None
    at: float = 0.0
    before: str | None = None

    def moved(self, response: ChangesResponse) -> Mark:
        """The mark after these changes."""
        if not response.changes:
            return replace(self, position=response.next)
        before = response.changes[-2].position if len(response.changes) > 1 else self.position
        return Mark(response.next, response.changes[-1].at, before)


def is_marked(table: str, mark: Mark) -> Plan[bool]:
    """Whether the stream is the one that was marked. Raises ChangesTrimmed if it no longer reaches back to the mark."""
    # This raises ChangesTrimmed if changes after the mark are already gone.
    yield (ReadChanges(table, mark.position, 1),)
    try:
        response: ChangesResponse
        (response,) = yield (ReadChanges(table, mark.before, 1),)
    except ChangesTrimmed:
        # The marked change is trimmed, but the changes after it are still there, and a copy needs only those.
        return True
    return all(change.at == mark.at for change in response.changes if change.position == mark.position)


def read_changes(table: str, after: str | None) -> Plan[ChangesResponse]:
    response: ChangesResponse
    (response,) = yield (ReadChanges(table, after),)
    return response


def apply_changes(table: str, changes: Iterable[ItemChange]) -> Plan[None]:
    """Writes the newest image of each changed item. Of several changes of one item, only the last is written."""
    latest = {_place(change.key): change for change in changes}
    yield from _write(
        Delete(table, change.key) if (item := change.new) is None else Put(table, item) for change in latest.values()
    )


def _write(writes: Iterable[Put | Delete]) -> Plan[None]:
    for some in chunks(writes, MAX_BATCH_WRITE * BATCHES_A_ROUND):
        yield from write_all(some, by_size)


def _place(key: Item) -> tuple[str, ...]:
    return tuple(value for attribute in key.values() for value in attribute.values())
