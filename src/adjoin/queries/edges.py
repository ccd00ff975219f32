"""What `out`, `into` and `collection` return: lazy queries of one partition."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.expressions import all_of
from adjoin.fields import Predicate
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans import Plan
from adjoin.plans.conditions import condition
from adjoin.plans.read import Found, Question, count, page
from adjoin.queries.base import Awaiting, Base, Waiting
from adjoin.queries.pairs import count_pairs, paired
from adjoin.schema import AnyEdge, EdgeType
from adjoin.values import Item

T = TypeVar("T")
E = TypeVar("E")


@dataclass(frozen=True)
class Collection:
    """A node with all its edges, and the items beside them that no class explains, as plain values."""

    node: Any
    edges: list[AnyEdge]
    others: list[dict[str, Any]]


@dataclass(eq=False, repr=False)
class _Asking(Base[T]):
    """What queries of one partition share."""

    _question: Question

    def __repr__(self) -> str:
        access, partition = self._question.range.access, self._question.range.partition
        what = access.kind.name if access.kind else "everything"
        where = f"index {access.index}" if access.index else "table"
        return f"<{type(self).__name__} of {what} at {partition!r} in the {where}; iterate it, or ask for .page()>"

    def _step(self, start: Item | None, left: int | None) -> Plan[Found]:
        return page(self._context.layout, self._question, left, start)

    def _count_plan(self) -> Plan[int]:
        return count(self._context.layout, self._question, self._most)

    def _key_at(self, start: Item) -> Item:
        return start

    def _place_at(self, key: Item) -> Item:
        access, partition = self._question.range.access, self._question.range.partition
        if key.get(access.partition_key) != {"S": partition}:
            raise InvalidCursor("the page token points outside of its query; start again from the first page")
        return key


@dataclass(eq=False, repr=False)
class _Narrowing(_Asking[T]):
    """What only queries for edges have: conditions on fields and on key parts."""

    _far: str = "target"
    """The end that is not the node asked from."""

    def where(self, predicate: Predicate) -> Self:
        """Only edges for which this holds. DynamoDB filters after reading, so it does not cost less."""
        access = self._question.range.access
        if access.is_partial:
            raise InvalidValue(
                f"the index {access.index!r} holds only parts of the items, and DynamoDB filters by what it holds; "
                f"filter what comes back, or let the index project everything"
            )
        wanted = condition(self._context.layout, self._kind, predicate)
        return self._with(_question=self._question.with_(filter=all_of(self._question.filter, wanted)))

    def between(self, low: Any, high: Any) -> Self:
        """Only edges whose order field lies between two values, both included; None leaves an end open."""
        return self._narrowed(self._question.range.between(low, high), "between")

    def begins_with(self, prefix: str) -> Self:
        """Only edges whose order field (or, without one, far id) starts with this."""
        return self._narrowed(self._question.range.begins_with(prefix), "begins_with")

    def within(self, **parts: Any) -> Self:
        """Only edges with these values in the leading parts of their sort key."""
        if self._question.sort is not None:
            raise InvalidValue("within must come before between and begins_with")
        return self._with(_question=self._question.with_(range=self._question.range.within(parts)))

    def _narrowed(self, sort: Any, verb: str) -> Self:
        if self._question.sort is not None:
            raise InvalidValue(f"DynamoDB takes one condition on the sort key; {verb} would be a second one")
        return self._with(_question=self._question.with_(sort=sort))

    @property
    def _kind(self) -> EdgeType:
        kind = self._question.range.access.kind
        assert isinstance(kind, EdgeType)
        return kind


class _Pairing(_Narrowing[tuple[E, Any]]):
    def _step(self, start: Item | None, left: int | None) -> Plan[Found]:
        layout, consistent = self._context.layout, self._question.consistent
        return paired(super()._step, layout, self._kind, self._far, consistent, start, left)

    def _count_plan(self) -> Plan[int]:
        return count_pairs(self._step, self._most)


@dataclass(eq=False, repr=False)
class _Collecting(_Asking[Any]):
    """A node's partition, whatever is in it."""

    _node: Node | Ref[Any] | None = None

    def _collection_plan(self) -> Plan[Collection]:
        results: list[Any] = []
        start: Item | None = None
        while True:
            found = yield from self._step(start, self._most)
            results += found.entities
            start = found.last
            if start is None or self._most is not None:
                break
        nodes = [each for each in results if isinstance(each, Node) and self._is_asked(each)]
        return Collection(
            nodes[0] if nodes else None,
            [each for each in results if isinstance(each, Edge)],
            [each for each in results if isinstance(each, dict)],
        )

    def _is_asked(self, node: Node) -> bool:
        asked = self._node
        model, id = (asked.model, asked.id) if isinstance(asked, Ref) else (type(asked), getattr(asked, "id", None))
        return type(node) is model and node_id(node) == id


# --- for programs that wait --------------------------------------------------------------------


class EdgeQuery(Waiting[E], _Narrowing[E]):
    """Edges of one type at one node."""

    def nodes(self) -> PairQuery[E]:
        """Each edge with the node at its far end, fetched with batch gets."""
        return PairQuery(self._context, self._question, self._most, self._far)


class PairQuery(Waiting[tuple[E, Any]], _Pairing[E]):
    """Edges with the nodes at their far ends."""


class CollectionQuery(Waiting[Any], _Collecting):
    """A node with all its edges: iterate it, or take `.node`, `.edges` and `.others`."""

    @cached_property
    def _loaded(self) -> Collection:
        loaded: Collection = self._context.run(self._collection_plan())
        return loaded

    @property
    def node(self) -> Any:
        return self._loaded.node

    @property
    def edges(self) -> list[AnyEdge]:
        return self._loaded.edges

    @property
    def others(self) -> list[dict[str, Any]]:
        return self._loaded.others


# --- for programs that await -------------------------------------------------------------------


class AsyncEdgeQuery(Awaiting[E], _Narrowing[E]):
    """Edges of one type at one node."""

    def nodes(self) -> AsyncPairQuery[E]:
        """Each edge with the node at its far end, fetched with batch gets."""
        return AsyncPairQuery(self._context, self._question, self._most, self._far)


class AsyncPairQuery(Awaiting[tuple[E, Any]], _Pairing[E]):
    """Edges with the nodes at their far ends."""


class AsyncCollectionQuery(Awaiting[Any], _Collecting):
    """A node with all its edges: iterate it, or await it for `.node`, `.edges` and `.others`."""

    def __await__(self) -> Generator[Any, None, Collection]:
        loading: Awaitable[Collection] = self._context.run(self._collection_plan())
        return loading.__await__()
