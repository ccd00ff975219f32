"""Lazy queries: what `out`, `into` and `collection` return.

A query is a value until it is iterated or asked for a page, a count or its first edge. Each comes
twice, for programs that wait and programs that await; both only run the plans of `adjoin.plans.read`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.expressions import all_of
from adjoin.fields import Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans import Plan
from adjoin.plans.conditions import condition
from adjoin.plans.cursors import decode_cursor, encode_cursor
from adjoin.plans.read import Found, Question, changed, count, far_nodes, page
from adjoin.schema import AnyEdge, EdgeType, NodeType
from adjoin.values import Item

T = TypeVar("T")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some results in order; `next` is the token for the page behind them, None at the end."""

    items: list[T]
    next: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Collection:
    """A node with all its edges, and the items beside them that no class explains, as plain values."""

    node: Any
    edges: list[AnyEdge]
    others: list[dict[str, Any]]


@dataclass(frozen=True)
class Context:
    """What a query needs of its graph."""

    layout: BoundLayout
    secret: bytes
    run: Callable[[Plan[Any]], Any]
    """Runs a plan; gives its result, or an awaitable of it in an asynchronous graph."""


@dataclass(eq=False, repr=False)
class _Base(Generic[T]):
    """What all queries share: the question, how many at most, and pages of it as plans."""

    _context: Context
    _question: Question
    _most: int | None = None

    def __repr__(self) -> str:
        access, partition = self._question.range.access, self._question.range.partition
        what = access.kind.name if access.kind else "everything"
        where = f"index {access.index}" if access.index else "table"
        return f"<{type(self).__name__} of {what} at {partition!r} in the {where}; iterate it, or ask for .page()>"

    def __bool__(self) -> bool:
        raise InvalidValue("a query is neither true nor false before it is asked; use first(), count() or iterate it")

    def limit(self, most: int) -> Self:
        """At most so many results in all, after any filter."""
        return self._with(_most=_whole_number("limit", most))

    def reverse(self) -> Self:
        """The other way round."""
        return self._with(_question=self._question.with_(forward=not self._question.forward))

    def _with(self, **changes: Any) -> Self:
        return changed(self, changes)

    def _page_plan(self, limit: int | None, after: str | None) -> Plan[Page[T]]:
        start, given = (None, 0) if after is None else self._start(after)
        left = None if self._most is None else self._most - given
        wanted = left if limit is None else min(_whole_number("a page's limit", limit), left or limit)
        found = yield from self._step(start, wanted)
        given += len(found.entities)
        token = None
        if found.last is not None and given != self._most:
            token = encode_cursor(found.last, given, self._identity, self._context.secret)
        return Page(found.entities, token)

    @property
    def _identity(self) -> bytes:
        """What a page token of this query is bound to."""
        return self._question.identity(self._context.layout.table) + repr(self._most).encode()

    def _start(self, after: str) -> tuple[Item, int]:
        start, given = decode_cursor(after, self._identity, self._context.secret)
        access, partition = self._question.range.access, self._question.range.partition
        if start.get(access.partition_key) != {"S": partition}:
            raise InvalidCursor("the page token points outside of its query; start again from the first page")
        return start, given

    def _step(self, start: Item | None, left: int | None) -> Plan[Found]:
        """One stretch of an iteration, with its entities turned into results."""
        return page(self._context.layout, self._question, left, start)

    def _count_plan(self) -> Plan[int]:
        return count(self._context.layout, self._question, self._most)

    def _first_plan(self) -> Plan[T | None]:
        first = yield from self._page_plan(1, None)
        return first.items[0] if first.items else None


@dataclass(eq=False, repr=False)
class _Narrowing(_Base[T]):
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
    """Edges with the nodes at their far ends; an edge whose far node is not there is left out."""

    def _step(self, start: Item | None, left: int | None) -> Plan[Found]:
        kind: NodeType = getattr(self._kind, self._far)
        pairs: list[tuple[E, Any]] = []
        ask = left
        while True:
            found = yield from super()._step(start, ask)
            ids = [getattr(edge, self._far) for edge in found.entities]
            nodes = yield from far_nodes(self._context.layout, kind, ids, self._question.consistent)
            places = [place for place, id in enumerate(ids) if id in nodes]
            missing = None if left is None else left - len(pairs)
            pairs += [(found.entities[place], nodes[ids[place]]) for place in places[:missing]]
            if missing is not None and len(places) > missing:
                # Where to go on behind the last pair is known from the page that ends with its edge.
                found = yield from super()._step(start, places[missing - 1] + 1)
            start = found.last
            if start is None or left is None or len(pairs) == left:
                return Found(pairs, start)
            # Edges without a node were met; as with a filter, the next request looks at more.
            ask = max(4 * (ask or left), 100)

    def _count_plan(self) -> Plan[int]:
        counted = 0
        start: Item | None = None
        while True:
            found = yield from self._step(start, self._most and self._most - counted)
            counted += len(found.entities)
            start = found.last
            if start is None or counted == self._most:
                return counted


@dataclass(eq=False, repr=False)
class _Collecting(_Base[Any]):
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


def _whole_number(name: str, number: int) -> int:
    if not isinstance(number, int) or not 1 <= number < 2**31:
        raise InvalidValue(f"{name} of {number!r} cannot be; give a whole number, at least 1")
    return number


# --- for programs that wait --------------------------------------------------------------------


class _Waiting(_Base[T]):
    def __iter__(self) -> Iterator[T]:
        start: Item | None = None
        left = self._most
        while True:
            found = self._context.run(self._step(start, left))
            yield from found.entities
            start, left = found.last, left and left - len(found.entities)
            if start is None or left == 0:
                return

    def page(self, limit: int | None = None, after: str | None = None) -> Page[T]:
        """One page: `limit` results, or as many as one request brings (1 MB)."""
        found: Page[T] = self._context.run(self._page_plan(limit, after))
        return found

    def count(self) -> int:
        counted: int = self._context.run(self._count_plan())
        return counted

    def first(self) -> T | None:
        found: T | None = self._context.run(self._first_plan())
        return found


class EdgeQuery(_Waiting[E], _Narrowing[E]):
    """Edges of one type at one node."""

    def nodes(self) -> PairQuery[E]:
        """Each edge with the node at its far end, fetched with batch gets."""
        return PairQuery(self._context, self._question, self._most, self._far)


class PairQuery(_Waiting[tuple[E, Any]], _Pairing[E]):
    """Edges with the nodes at their far ends."""


class CollectionQuery(_Waiting[Any], _Collecting):
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


class _Awaiting(_Base[T]):
    async def __aiter__(self) -> AsyncIterator[T]:
        start: Item | None = None
        left = self._most
        while True:
            found = await self._context.run(self._step(start, left))
            for result in found.entities:
                yield result
            start, left = found.last, left and left - len(found.entities)
            if start is None or left == 0:
                return

    async def page(self, limit: int | None = None, after: str | None = None) -> Page[T]:
        """One page: `limit` results, or as many as one request brings (1 MB)."""
        found: Page[T] = await self._context.run(self._page_plan(limit, after))
        return found

    async def count(self) -> int:
        counted: int = await self._context.run(self._count_plan())
        return counted

    async def first(self) -> T | None:
        found: T | None = await self._context.run(self._first_plan())
        return found


class AsyncEdgeQuery(_Awaiting[E], _Narrowing[E]):
    """Edges of one type at one node."""

    def nodes(self) -> AsyncPairQuery[E]:
        """Each edge with the node at its far end, fetched with batch gets."""
        return AsyncPairQuery(self._context, self._question, self._most, self._far)


class AsyncPairQuery(_Awaiting[tuple[E, Any]], _Pairing[E]):
    """Edges with the nodes at their far ends."""


class AsyncCollectionQuery(_Awaiting[Any], _Collecting):
    """A node with all its edges: iterate it, or await it for `.node`, `.edges` and `.others`."""

    def __await__(self) -> Generator[Any, None, Collection]:
        loading: Awaitable[Collection] = self._context.run(self._collection_plan())
        return loading.__await__()
