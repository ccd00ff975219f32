"""A sample of a table: some items of each of several segments, or all items of a small table.

Segments are ranges of hashed partition keys, so what they begin with is as good as a random choice. The items of one
partition are beside each other, so that collections are seen as a whole, except the last one of a segment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from adjoin.entity_types import Entity
from adjoin.errors import AdjoinError
from adjoin.explorer.opening import Explored
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

    @property
    def factor(self) -> float:
        """How many items of the table each of the sample stands for."""
        read = len(self.items) + self.own
        return 1.0 if self.is_whole or not read else max(1.0, self.table.item_count / read)


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
    pages: list[PageResponse] = yield tuple(
        Scan(layout.table, limit=MOST // _SEGMENTS, segment=(number, _SEGMENTS)) for number in range(_SEGMENTS)
    )
    items = [item for page in pages for item in page.items]
    mine = tuple(item for item in items if not layout.is_bookkeeping(item))
    return Sample(mine, len(items) - len(mine), all(page.last is None for page in pages), described)
