"""A sample of a table: items from many places, or all items of a small table.

On DynamoDB, it is what several segments begin with, which is as good as a random choice, so numbers can be estimated
from it. A file is in the order of its keys, and its sample has something of every beginning of keys; how much there is
of what, it does not tell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from adjoin.dataclass import dataclass
from adjoin.entity_types import Entity
from adjoin.errors import AdjoinError
from adjoin.explorer.opening import Explored
from adjoin.inferring.sampling import spread
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.keys import SEPARATOR
from adjoin.requests import DescribeTable, PageResponse, Plan, Scan, TableResponse
from adjoin.values import Item

MOST = 4000
_SEGMENTS = 16
_FRESH = 30.0
"""Seconds for which a sample is used again, so that two views show the same one."""


@dataclass(frozen=True)
class Sample:
    """Items of a table, without adjoin's own, and how many there are in all."""

    items: tuple[Item, ...]
    own: int
    """How many of adjoin's own items were read besides."""
    is_whole: bool
    table: TableResponse

    is_random: bool
    """Whether each item of the table was as likely to be read as any other."""

    @property
    def factor(self) -> float | None:
        """How many items of the table each of the sample stands for; None if that is not known."""
        if self.is_whole:
            return 1.0
        read = len(self.items) + self.own
        return max(1.0, self.table.item_count / read) if self.is_random and read else None


class Samples:
    """The sample of an explored table."""

    def __init__(self, explored: Explored) -> None:
        self._explored = explored
        self._kept: tuple[float, Sample] | None = None

    def read(self, *, fresh: bool = False) -> Sample:
        now = time.monotonic()
        if self._kept is None or fresh or now - self._kept[0] > _FRESH:
            self._kept = now, self._explored.graph._run(_sampled(self._explored))
        return self._kept[1]

    def entities(self) -> Iterator[tuple[Item, Entity]]:
        """The nodes and edges of the sample; what no class can read is left out."""
        for item in self.read().items:
            try:
                entity = self._explored.layout.read(item)
            except AdjoinError:
                continue
            if entity is not None:
                yield item, entity


def _sampled(explored: Explored) -> Plan[Sample]:
    layout = explored.layout
    described: TableResponse
    (described,) = yield (DescribeTable(layout.table),)
    items: list[Item] = []
    is_whole = False
    if described.item_count <= MOST:
        items, is_whole = yield from _first_items(layout.table)
    if not is_whole:
        items = yield from some_items(explored, MOST)
    items = [item for item in items if is_of_tenant(layout, item)]
    mine = tuple(item for item in items if not layout.is_bookkeeping(item))
    return Sample(mine, len(items) - len(mine), is_whole, described, not explored.is_file)


def is_of_tenant(layout: BoundLayout, item: Item) -> bool:
    """Whether an item belongs to the tenant that is explored; every item does if none is named."""
    if layout.tenant is None:
        return True
    text: str = item[layout.definition.partition.name].get("S", "")
    return text.startswith(f"{layout.tenant_lead}{layout.tenant}{SEPARATOR}")


def _first_items(table: str) -> Plan[tuple[list[Item], bool]]:
    """The first items of a table, and whether these are all. DynamoDB counts items about every six hours."""
    items: list[Item] = []
    start: Item | None = None
    while len(items) <= MOST:
        page: PageResponse
        (page,) = yield (Scan(table, start=start, limit=MOST + 1 - len(items)),)
        items += page.items
        start = page.last
        if start is None:
            return items, True
    return items, False


def some_items(explored: Explored, number: int) -> Plan[list[Item]]:
    """Up to a number of items from many places of a table."""
    definition = explored.layout.definition
    if explored.is_file:
        return (yield from spread(definition, number))
    pages: list[PageResponse] = yield tuple(
        Scan(definition.name, limit=number // _SEGMENTS, segment=(at, _SEGMENTS)) for at in range(_SEGMENTS)
    )
    return [item for page in pages for item in page.items]
