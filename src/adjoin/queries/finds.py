"""What `find` returns: lazy queries over all shards of one indexed field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.expressions import all_of
from adjoin.fields import Predicate
from adjoin.plans import Plan
from adjoin.plans.conditions import condition
from adjoin.plans.find import Position, Search, found_count, found_page
from adjoin.plans.read import Found
from adjoin.queries.base import Awaiting, Base, Waiting
from adjoin.queries.pairs import count_pairs, paired
from adjoin.schema import EdgeType
from adjoin.values import Item

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class _Finding(Base[T]):
    """A search, and pages of it."""

    _question: Search
    _far: str = "source"
    """The end whose nodes `nodes` brings, for edges."""

    def __repr__(self) -> str:
        field = self._question.field
        return (
            f"<{type(self).__name__} of {field.kind.name} by {field.name!r} in the index "
            f"{self._index.name}; iterate it, or ask for .page()>"
        )

    def where(self, predicate: Predicate) -> Self:
        """Only those for which this holds. DynamoDB filters after reading, so it does not cost less."""
        if self._index.is_partial:
            raise InvalidValue(
                f"the index {self._index.name!r} holds only parts of the items, and DynamoDB filters by what it "
                f"holds; filter what comes back, or let the index project everything"
            )
        wanted = condition(self._context.layout, self._question.field.kind, predicate)
        return self._with(_question=self._question.with_(filter=all_of(self._question.filter, wanted)))

    @property
    def _index(self) -> Any:
        return self._context.layout.overloaded

    def _step(self, start: Position | None, left: int | None) -> Plan[Found]:
        return found_page(self._context.layout, self._question, left, start)

    def _count_plan(self) -> Plan[int]:
        return found_count(self._context.layout, self._question, self._most)

    def _key_at(self, start: Position) -> Item:
        return start.last

    def _place_at(self, key: Item) -> Position:
        names = {self._index.sort_key, *(each.name for each in self._context.layout.definition.keys)}
        if key.keys() != names:
            raise InvalidCursor("the page token belongs to another query; start again from the first page")
        return Position(key)

    @property
    def _kind(self) -> EdgeType:
        kind = self._question.field.kind
        if not isinstance(kind, EdgeType):
            raise InvalidValue(f"{kind.name} is a node already; nodes() is for edges, and brings what they join")
        return kind

    def _paired(self, end: str) -> dict[str, Any]:
        if end not in ("source", "target"):
            raise InvalidValue(f'an edge has a "source" and a "target", and no {end!r}')
        assert self._kind
        return {"_context": self._context, "_question": self._question, "_most": self._most, "_far": end}


class _FoundPairing(_Finding[tuple[T, Any]]):
    def _step(self, start: Position | None, left: int | None) -> Plan[Found]:
        return paired(super()._step, self._context.layout, self._kind, self._far, False, start, left)

    def _count_plan(self) -> Plan[int]:
        return count_pairs(self._step, self._most)


# --- for programs that wait --------------------------------------------------------------------


class FindQuery(Waiting[T], _Finding[T]):
    """Nodes or edges of one class, found by an indexed field and in its order."""

    def nodes(self, end: str = "source") -> FindPairQuery[T]:
        """Each edge with the node at one of its ends, fetched with batch gets."""
        return FindPairQuery(**self._paired(end))


class FindPairQuery(Waiting[tuple[T, Any]], _FoundPairing[T]):
    """Edges that were found, with the nodes at one of their ends."""


# --- for programs that await -------------------------------------------------------------------


class AsyncFindQuery(Awaiting[T], _Finding[T]):
    """Nodes or edges of one class, found by an indexed field and in its order."""

    def nodes(self, end: str = "source") -> AsyncFindPairQuery[T]:
        """Each edge with the node at one of its ends, fetched with batch gets."""
        return AsyncFindPairQuery(**self._paired(end))


class AsyncFindPairQuery(Awaiting[tuple[T, Any]], _FoundPairing[T]):
    """Edges that were found, with the nodes at one of their ends."""
