"""Edges of a class that has gained an order, while stored edges still lack it: read from where all of them are.

The index of the order does not hold edges that were stored before, or that programs with former declarations write. But
all edges of a node are in its partition of the table, or of the reverse index. So these are read as a whole, and get
the index keys here that they should have. Then they are sorted, narrowed and cut as the index would do it. Page tokens
are those of the index, so a query that has begun goes on when the migration has ended.

This costs a read of all edges of the node for each page. It is for the time of a rolling deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from adjoin.entity_types import EdgeType
from adjoin.evaluate import condition_test
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.layouts.ranges import Range
from adjoin.plans.deletion import visible
from adjoin.plans.steps.batches import get_all
from adjoin.requests import Get, PageResponse, Plan, Query, SortCondition
from adjoin.values import Item

_Test: TypeAlias = Callable[[bytes, Sequence[bytes]], bool]
_TESTS: dict[str, _Test] = {
    "=": lambda key, ends: key == ends[0],
    "<": lambda key, ends: key < ends[0],
    "<=": lambda key, ends: key <= ends[0],
    ">": lambda key, ends: key > ends[0],
    ">=": lambda key, ends: key >= ends[0],
    "between": lambda key, ends: ends[0] <= key <= ends[1],
    "begins_with": lambda key, ends: key.startswith(ends[0]),
}


def reordered(layout: BoundLayout, asked: Query, found: Range, whole: Range) -> Plan[list[Item]]:
    """All items that a query of an index would return if all edges were in it. `whole` is where all of them are."""
    kind, index, sort_key = found.access.kind, found.access.index, found.access.sort_key
    assert isinstance(kind, EdgeType)
    assert sort_key is not None
    passes = None if asked.filter is None else condition_test(asked.filter)
    entries: list[tuple[bytes, Item]] = []
    for item in (yield from _all_in(layout, whole, consistent=asked.consistent and whole.access.index is None)):
        own = with_index_keys(layout, kind, item, [index])
        if own is None or own.get(found.access.partition_key) != found.key[1] or sort_key not in own:
            continue
        if passes is not None and not passes(own):
            continue
        entries.append((own[sort_key]["S"].encode(), own))
    entries = [(key, item) for key, item in entries if _is_within(key, asked.sort)]
    entries.sort(key=lambda entry: entry[0], reverse=not asked.forward)
    if asked.start is not None:
        after = asked.start[sort_key]["S"].encode()
        entries = [(key, item) for key, item in entries if (key > after if asked.forward else key < after)]
    return [item for _, item in entries]


def with_index_keys(layout: BoundLayout, kind: EdgeType, item: Item, indexes: Iterable[str | None]) -> Item | None:
    """A stored edge with the keys that it should have in these indexes; None if it is not an edge of the class."""
    # Accesses may read only the far end of an edge, and its index keys are made of all its fields.
    edge = layout.decode(kind, item)
    if edge is None:
        return None
    key = layout.key_of(item)
    fresh = next((each for each in layout.items(edge) if layout.key_of(each) == key), item)
    # Keys that hold a copied field are made from the value that is stored.
    keys = {name: fresh[name] for index in indexes for name in layout.start_names(index) if name in fresh}
    return layout.with_managed_keys(kind, {**item, **keys})


def _is_within(key: bytes, sort: SortCondition | None) -> bool:
    return sort is None or _TESTS[sort.operator](key, [each["S"].encode() for each in sort.operands])


def _all_in(layout: BoundLayout, whole: Range, *, consistent: bool) -> Plan[list[Item]]:
    """All items of a range, without those that a delete has hidden."""
    items: list[Item] = []
    start: Item | None = None
    access = whole.access
    while True:
        page: PageResponse
        (page,) = yield (
            Query(layout.table, whole.key, whole.condition(), access.index, start=start, consistent=consistent),
        )
        items += page.items
        start = page.last
        if start is None:
            break
    if access.is_partial:
        stored = yield from get_all([Get(layout.table, layout.key_of(item), consistent) for item in items])
        items = [item for item in stored if item is not None]
    if any(DELETING in item for item in items):
        items = yield from visible(layout, items)
    return items
