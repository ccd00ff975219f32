"""The Table view: items as DynamoDB holds them, in the table and in each index.

A page of the whole table is a page of a scan; one item collection is a query of its partition. Items are told with the
handle of the node or edge that they are, so that the page can select it in its other views.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adjoin.errors import AdjoinError, InvalidValue, NotFound, shown
from adjoin.explorer.handles import Handles
from adjoin.explorer.neighbourhoods import size_of
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import Requested
from adjoin.explorer.sample import is_of_tenant
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Edge, Node
from adjoin.requests import PageResponse, Plan, Query, Scan
from adjoin.reserved import ATTRIBUTE
from adjoin.values import AttributeValue, Item, item_size

PAGE = 50
_LOOKS = 20
"""How many pages of a scan are read for a page of items, if they hold items of adjoin's own only."""


class TableItems:
    """What the Table view asks."""

    def __init__(self, explored: Explored, handles: Handles) -> None:
        self._graph = explored.graph
        self._layout = explored.layout
        self._handles = handles

    def items(
        self,
        index: str | None = None,
        partition: list[AttributeValue] | None = None,
        after: Item | None = None,
        limit: int | None = None,
        own: bool = False,
    ) -> dict[str, Any]:
        """A page of the table or of an index: all of it, or one partition.

        `own` also shows adjoin's own items and attributes.
        """
        names = [key.name for key in self._keys(index)]
        size = size_of(limit, PAGE)
        with Requested() as requests:
            asked = (
                Scan(self._layout.table, index=index, start=after)
                if partition is None
                else self._query(index, partition, after)
            )
            items, last = self._graph._run(_read(self._layout, asked, size, own=own))
        return {
            "keys": names,
            "items": [self._told(item, index, own=own) for item in items],
            "next": last,
            **requests.told(),
        }

    def _keys(self, index: str | None) -> list[Any]:
        definition = self._layout.definition
        if index is None:
            return [*definition.keys]
        found = definition.index(index)
        if found is None:
            known = ", ".join(each.name for each in definition.indexes) or "none"
            raise NotFound(f"the table has no index {shown(index)}; it has {known}")
        return [*found.keys]

    def _query(self, index: str | None, partition: list[AttributeValue], after: Item | None) -> Query:
        attributes = self._layout.partition_attributes(index)
        if not isinstance(partition, list) or len(partition) != len(attributes) or not all(map(_is_value, partition)):
            raise InvalidValue(f"a partition is the values of {', '.join(each.name for each in attributes)}; pass them")
        first, *rest = zip((each.name for each in attributes), partition, strict=True)
        return Query(self._layout.table, first, index=index, start=after, equal=tuple(rest))

    def _told(self, item: Item, index: str | None, *, own: bool) -> dict[str, Any]:
        is_own = self._layout.is_bookkeeping(item) if index is None else self._is_own(item)
        shown = item if own else {name: value for name, value in item.items() if not name.startswith(ATTRIBUTE)}
        told: dict[str, Any] = {"item": shown, "size": item_size(item), "own": is_own, "handle": None, "class": None}
        if is_own:
            return told
        try:
            entity = self._layout.read(item)
        except AdjoinError as error:
            # An index that does not hold all attributes, or an item that its class cannot read.
            kind = self._layout.kind_of(item)
            return told | {"class": None if kind is None else kind.name, "problem": str(error)}
        if isinstance(entity, Node):
            node = self._handles.node(entity)
            return told | {"handle": node["handle"], "class": node["class"], "kind": "node"}
        if isinstance(entity, Edge):
            return told | {"handle": self._handles.of_edge(entity), "class": type(entity).__name__, "kind": "edge"}
        return told

    def _is_own(self, item: Item) -> bool:
        try:
            return self._layout.is_bookkeeping(item)
        except KeyError:
            return False


def _is_value(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and {*value} <= {"S", "N", "B"}


def _read(layout: BoundLayout, asked: Scan | Query, size: int, *, own: bool) -> Plan[tuple[list[Item], Item | None]]:
    """A page of items, and where the next one begins."""
    found: list[Item] = []
    start = asked.start
    for _ in range(_LOOKS):
        page: PageResponse
        (page,) = yield (replace(asked, start=start, limit=size - len(found)),)
        shows_own = own or asked.index is not None
        theirs = [item for item in page.items if is_of_tenant(layout, item)]
        found += [item for item in theirs if shows_own or not layout.is_bookkeeping(item)]
        start = page.last
        if start is None or len(found) >= size:
            break
    return found, start
