"""Lazy scans: what `scan` returns.

A scan is a query over the whole table, so it has what all queries have, but no order. Like other queries, each class
exists twice, synchronous and asynchronous.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar

from adjoin.dataclass import dataclass
from adjoin.entity_types import AnyEdge
from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.expressions import all_of
from adjoin.fields import AllOf, FieldReference, Predicate
from adjoin.model import Edge, Node
from adjoin.plans.read import Found, some_fields
from adjoin.plans.scan import ScanPosition, ScanQuestion, scan_count, scan_page, scan_round
from adjoin.plans.steps.conditions import compares_ids, condition
from adjoin.queries import Awaiting, Base, Waiting
from adjoin.requests import Plan
from adjoin.values import Item

T = TypeVar("T")


@dataclass(frozen=True)
class Contents:
    """Everything in a table: nodes, edges, and as `others` the items that belong to no class, as plain values."""

    nodes: list[Node]
    edges: list[AnyEdge]
    others: list[dict[str, Any]]


@dataclass(eq=False, repr=False)
class _Scanning(Base[T]):
    """What all scans share."""

    _question: ScanQuestion

    def __repr__(self) -> str:
        kind, sought = self._question.kind, self._question.sought
        what = kind.name if kind is not None else "everything" if sought == "entities" else "what no class explains"
        return f"<{type(self).__name__} of {what} in the table; iterate it, or ask for .page()>"

    def where(self, predicate: Predicate) -> Self:
        """Returns the scan with only the results for which the predicate holds.

        DynamoDB filters after reading, so the scan costs as much as without the filter.
        """
        kind = self._question.kind
        if kind is None:
            raise InvalidValue("where needs a class whose fields it compares, and this scan is of all; scan one class")
        if isinstance(predicate, Predicate) and compares_ids(kind, predicate):
            if isinstance(predicate, AllOf):
                scan = self
                for part in predicate.predicates:
                    scan = scan.where(part)
                return scan
            # Ids are in keys, of which an item has only the texts.
            return self._with(_question=self._question.with_(rest=(*self._question.rest, predicate)))
        wanted = condition(self._context.layout, kind, predicate)
        return self._with(_question=self._question.with_(filter=all_of(self._question.filter, wanted)))

    def only(self, *fields: str | FieldReference[Any]) -> Self:
        """Returns the scan with results that have only these fields, and their ids. Others raise `NotRead` if used.

        Less is sent, and it costs as many units.
        """
        kind = self._question.kind
        if kind is None:
            raise InvalidValue("only() names fields of one class, and this scan reads all classes; scan one class")
        return self._with(_question=self._question.with_(some=some_fields(kind, fields)))

    def _step(self, start: ScanPosition | None, left: int | None) -> Plan[Found]:
        return scan_round(self._context.layout, self._question, left, start)

    def _full_step(self, start: ScanPosition | None, left: int | None) -> Plan[Found]:
        return scan_page(self._context.layout, self._question, left, start)

    def _count_plan(self) -> Plan[int]:
        return scan_count(self._context.layout, self._question, self._most)

    # A token has an attribute for each part of a segment's key, named by the number of the segment and the attribute,
    # or one without a name for a segment that is not begun. It has none for a segment that is done.

    def _key_at(self, start: ScanPosition) -> Item:
        return {
            f"{segment}.{name}": value
            for segment, key in start.starts.items()
            for name, value in (key or {"": {"S": ""}}).items()
        }

    def _place_at(self, key: Item) -> ScanPosition:
        starts: dict[int, Item | None] = {}
        for segment in range(self._question.segments):
            told = {name: key.pop(f"{segment}.{name}") for name in self._key_names if f"{segment}.{name}" in key}
            if told.keys() == {""}:
                starts[segment] = None
            elif told.keys() == set(self._key_names) - {""}:
                starts[segment] = told
            elif told:
                starts.clear()
                break
        if not starts or key:
            raise InvalidCursor("the page token does not belong to this scan; start again from the first page")
        return ScanPosition(starts)

    @property
    def _key_names(self) -> tuple[str, ...]:
        """The names of the key attributes, and the one for no key."""
        return ("", *(key.name for key in self._context.layout.definition.keys))


class _ScanningAll(_Scanning[Any]):
    """What scans of the whole table share."""

    def _others(self) -> dict[str, Any]:
        return {"_context": self._context, "_question": self._question.with_(sought="others"), "_most": self._most}

    def _contents_plan(self) -> Plan[Contents]:
        asked = self._question.with_(sought="everything")
        contents = Contents([], [], [])
        position: ScanPosition | None = None
        left = self._most
        while True:
            found = yield from scan_round(self._context.layout, asked, left, position)
            for result in found.entities:
                if isinstance(result, dict):
                    contents.others.append(result)
                elif isinstance(result, Edge):
                    contents.edges.append(result)
                else:
                    contents.nodes.append(result)
            # `left` is None without a limit.
            position, left = found.last, left and left - len(found.entities)
            if position is None or left == 0:
                return contents


# --- synchronous -------------------------------------------------------------------------------


class ScanQuery(Waiting[T], _Scanning[T]):
    """All nodes or edges of one class, in no order; or the items that no class explains, as plain values."""


class TableScanQuery(Waiting[Any], _ScanningAll):
    """All nodes and edges, in no order."""

    @property
    def others(self) -> ScanQuery[dict[str, Any]]:
        """A query for the items of the table that belong to no class of the graph, as plain values."""
        return ScanQuery(**self._others())

    def collect(self) -> Contents:
        """Reads the whole table into memory, and returns its nodes, its edges and its other items."""
        contents: Contents = self._context.run(self._contents_plan())
        return contents


# --- asynchronous ------------------------------------------------------------------------------


class AsyncScanQuery(Awaiting[T], _Scanning[T]):
    """All nodes or edges of one class, in no order; or the items that no class explains, as plain values."""


class AsyncTableScanQuery(Awaiting[Any], _ScanningAll):
    """All nodes and edges, in no order."""

    @property
    def others(self) -> AsyncScanQuery[dict[str, Any]]:
        """A query for the items of the table that belong to no class of the graph, as plain values."""
        return AsyncScanQuery(**self._others())

    async def collect(self) -> Contents:
        """Reads the whole table into memory, and returns its nodes, its edges and its other items."""
        contents: Contents = await self._context.run(self._contents_plan())
        return contents
