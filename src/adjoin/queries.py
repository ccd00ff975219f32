"""Lazy queries of one partition: what `out`, `into`, `children` and `collection` return, and what all queries share.

A query reads nothing until a program iterates it or calls `page`, `count` or `first`. Each query class exists twice,
synchronous and asynchronous. Both only run plans; the plans decide what is read and in which order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidCursor, InvalidValue, shown
from adjoin.expressions import all_of
from adjoin.fields import AllOf, FieldReference, Predicate
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.read import (
    Found,
    Question,
    changed,
    count,
    decode_cursor,
    encode_cursor,
    far_nodes,
    page,
    some_fields,
)
from adjoin.requests import Plan
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin import notebooks
    from adjoin.plans import key_search
    from adjoin.plans.key_search import KeySearch
    from adjoin.plans.steps import conditions, predicates
else:
    notebooks = later("adjoin.notebooks")
    key_search = later("adjoin.plans.key_search")
    conditions = later("adjoin.plans.steps.conditions")
    predicates = later("adjoin.plans.steps.predicates")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of results, in order. `next` is the token for the next page, or None if this is the last one."""

    items: list[T]
    next: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def _repr_html_(self) -> str:
        return notebooks.results_html(f"{type(self).__name__} of {len(self)}", self.items, self._notes())

    def _notes(self) -> list[str]:
        return [] if self.next is None else ["More results follow: pass after=page.next."]


@dataclass(frozen=True)
class Context:
    """What a query needs from its graph."""

    layout: BoundLayout
    secret: bytes
    run: Callable[[Plan[Any]], Any]
    """Runs a plan and returns its result; in an asynchronous graph, an awaitable of the result."""


@dataclass(eq=False, repr=False)
class Base(Generic[T]):
    """The base of all queries: a question, the greatest number of results, and the plans that read pages."""

    _context: Context
    _question: Any
    _most: int | None = None

    def __bool__(self) -> bool:
        raise InvalidValue("a query has no truth value, because it has not read anything; use first() or count()")

    def _repr_html_(self) -> str:
        return notebooks.lazy_html(repr(self), [] if self._most is None else [f"It has at most {self._most} results."])

    def limit(self, most: int) -> Self:
        """Returns the query with at most `most` results in all, counted after filters."""
        return self._with(_most=whole_number("limit", most))

    def _with(self, **changes: Any) -> Self:
        return changed(self, changes)

    @abstractmethod
    def _step(self, start: Any, left: int | None) -> Plan[Found]:
        """Reads the next results of an iteration from `start` on, at most `left`."""

    def _full_step(self, start: Any, left: int | None) -> Plan[Found]:
        """Reads the results of a page: `left` of them, fewer only at the end."""
        return self._step(start, left)

    @abstractmethod
    def _count_plan(self) -> Plan[int]: ...

    @abstractmethod
    def _key_at(self, start: Any) -> Item:
        """Returns the key that a page token holds, for the position after a page."""

    @abstractmethod
    def _place_at(self, key: Item) -> Any:
        """Returns the position that a page token stands for, from the key in it."""

    def _page_plan(self, limit: int | None, after: str | None) -> Plan[Page[T]]:
        # A token also holds how many results came before it, so that `limit` holds over all pages.
        start, given = None, 0
        if after is not None:
            key, given = decode_cursor(after, self._identity, self._context.secret)
            start = self._place_at(key)
        left = None if self._most is None else self._most - given
        wanted = left if limit is None else min(whole_number("page limit", limit), left or limit)
        found = yield from self._full_step(start, wanted)
        given += len(found.entities)
        token = None
        if found.last is not None and given != self._most:
            token = encode_cursor(self._key_at(found.last), given, self._identity, self._context.secret)
        return Page(found.entities, token)

    @property
    def _identity(self) -> bytes:
        """The bytes that a page token of this query is bound to; another query refuses the token."""
        identity: bytes = self._question.identity(self._context.layout.table)
        return identity + repr(self._most).encode()

    def _first_plan(self) -> Plan[T | None]:
        first = yield from self._page_plan(1, None)
        return first.items[0] if first.items else None


class Ordered(Base[T]):
    """What queries share that read items in the order of their keys."""

    def reverse(self) -> Self:
        """Returns the query with its results in the opposite order."""
        return self._with(_question=self._question.with_(forward=not self._question.forward))


def whole_number(name: str, number: int) -> int:
    """Returns the number; raises `InvalidValue` unless it is an int that DynamoDB takes as a limit."""
    if not isinstance(number, int):
        raise InvalidValue(f"{name} must be a whole number, got {shown(number)}")
    if number < 1:
        raise InvalidValue(f"{name} must be at least 1, got {shown(number)}")
    if number >= 2**31:
        raise InvalidValue(f"{name} must be less than 2147483648, got {shown(number)}")
    return number


# --- all queries, synchronous ------------------------------------------------------------------


class Waiting(Base[T]):
    """What synchronous queries share: iteration, `page`, `count` and `first`."""

    def __iter__(self) -> Iterator[T]:
        start: Any = None
        left = self._most
        while True:
            found = self._context.run(self._step(start, left))
            yield from found.entities
            # `left` is None without a limit.
            start, left = found.last, left and left - len(found.entities)
            if start is None or left == 0:
                return

    def page(self, limit: int | None = None, after: str | None = None) -> Page[T]:
        """Returns one page of results: `limit` of them, or without it what one round reads (1 MB a request).

        `after` is the `next` of the page before; without it, the first page is read. Raises `InvalidCursor` if that
        token belongs to another query or was changed.
        """
        found: Page[T] = self._context.run(self._page_plan(limit, after))
        return found

    def count(self) -> int:
        """Returns the number of results. It reads the same items as an iteration, and costs the same."""
        counted: int = self._context.run(self._count_plan())
        return counted

    def first(self) -> T | None:
        """Returns the first result, or None if there are no results."""
        found: T | None = self._context.run(self._first_plan())
        return found


# --- all queries, asynchronous -----------------------------------------------------------------


class Awaiting(Base[T]):
    """What asynchronous queries share: iteration, `page`, `count` and `first`."""

    async def __aiter__(self) -> AsyncIterator[T]:
        start: Any = None
        left = self._most
        while True:
            found = await self._context.run(self._step(start, left))
            for result in found.entities:
                yield result
            # `left` is None without a limit.
            start, left = found.last, left and left - len(found.entities)
            if start is None or left == 0:
                return

    async def page(self, limit: int | None = None, after: str | None = None) -> Page[T]:
        """Returns one page of results: `limit` of them, or without it what one round reads (1 MB a request).

        `after` is the `next` of the page before; without it, the first page is read. Raises `InvalidCursor` if that
        token belongs to another query or was changed.
        """
        found: Page[T] = await self._context.run(self._page_plan(limit, after))
        return found

    async def count(self) -> int:
        """Returns the number of results. It reads the same items as an iteration, and costs the same."""
        counted: int = await self._context.run(self._count_plan())
        return counted

    async def first(self) -> T | None:
        """Returns the first result, or None if there are no results."""
        found: T | None = await self._context.run(self._first_plan())
        return found


# --- edges with the nodes at one of their ends -------------------------------------------------


Step: TypeAlias = Callable[[Any, int | None], Plan[Found]]
"""A function that reads the next results from a position on, at most a given number."""


def paired(
    step: Step, layout: BoundLayout, kind: EdgeType, far: str, consistent: bool, start: Any, left: int | None
) -> Plan[Found]:
    """Reads the next edges, each with the node at its end `far`. Edges whose node does not exist are left out."""
    node_kind: NodeType = getattr(kind, far)
    pairs: list[tuple[Any, Any]] = []
    ask = left
    while True:
        found = yield from step(start, ask)
        ids = [getattr(edge, far) for edge in found.entities]
        nodes = yield from far_nodes(layout, node_kind, ids, consistent)
        places = [place for place, id in enumerate(ids) if id in nodes]
        missing = None if left is None else left - len(pairs)
        pairs += [(found.entities[place], nodes[ids[place]]) for place in places[:missing]]
        if missing is not None and len(places) > missing:
            # More edges were read than fit. A page that ends with the last edge says where the next page begins.
            found = yield from step(start, places[missing - 1] + 1)
        start = found.last
        if start is None or left is None or len(pairs) == left:
            return Found(pairs, start)
        # Some edges had no node. As with a filter, the next request reads more edges to find enough.
        ask = max(4 * (ask or left), 100)


def count_pairs(step: Step, most: int | None) -> Plan[int]:
    counted = 0
    start: Any = None
    while True:
        found = yield from step(start, most and most - counted)
        counted += len(found.entities)
        start = found.last
        if start is None or counted == most:
            return counted


# --- one partition: out, into and collection ---------------------------------------------------


E = TypeVar("E")
F = TypeVar("F")


@dataclass(eq=False, repr=False)
class InPartition(Ordered[T]):
    """What queries in one partition share, or in all shards of one."""

    _question: Question

    def __repr__(self) -> str:
        access, partition = self._question.range.access, self._question.range.partition
        what = access.kind.name if access.kind else "everything"
        where = f"index {access.index}" if access.index else "table"
        number = self._question.range.number
        spread = "" if number is None else f" and {len(number.all) - 1} other shards"
        at = f"{partition!r}{spread} in the {where}"
        return f"<{type(self).__name__} of {what} at {at}; iterate it, or ask for .page()>"

    @property
    def _search(self) -> KeySearch | None:
        """The search that merges several shards of an index; None for a query of one partition."""
        return None if self._question.range.number is None else key_search.merged(self._question)

    def _step(self, start: Any, left: int | None) -> Plan[Found]:
        question = self._question
        if question.range.number is None:
            return page(self._context.layout, question, left, start)
        return key_search.merged(question).page(self._context.layout, left, start)

    def _count_plan(self) -> Plan[int]:
        question = self._question
        if question.range.number is None:
            return count(self._context.layout, question, self._most)
        return key_search.merged(question).count(self._context.layout, self._most)

    def _key_at(self, start: Any) -> Item:
        search = self._search
        return start if search is None else search.key_at(start)

    def _place_at(self, key: Item) -> Any:
        search = self._search
        if search is not None:
            return search.position_at(self._context.layout, key)
        name, partition = self._question.range.key
        if key.get(name) != partition:
            raise InvalidCursor("the page token points outside its query; start again from the first page")
        return key


@dataclass(eq=False, repr=False)
class _Narrowing(InPartition[T]):
    """What queries for edges or children have: conditions on fields and on parts of the key."""

    _far: str = "target"
    """The end of the edge that is not the node from which the query starts: "source" or "target"."""

    def where(self, predicate: Predicate) -> Self:
        """Returns the query with only the edges for which the predicate holds.

        DynamoDB filters after reading, so the query costs as much as without the filter.
        """
        question, layout = self._question, self._context.layout
        access = question.range.access
        if isinstance(predicate, Predicate) and conditions.compares_ids(self._kind, predicate):
            if isinstance(predicate, AllOf):
                query = self
                for part in predicate.predicates:
                    query = query.where(part)
                return query
            # Ids are in keys, by which DynamoDB does not filter.
            return self._with(_question=question.with_(rest=(*question.rest, predicate)))
        # Raises for a predicate that is wrong, and for a field that only keys hold.
        wanted = conditions.condition(layout, self._kind, predicate, self._named)
        keys = {key.name for key in (*layout.partition_attributes(access.index), *layout.sort_attributes(access.index))}
        if access.is_partial or any(
            self._kind.attributes.get(name) in keys for name in predicates.compared_fields(predicate)
        ):
            # DynamoDB does not filter by the keys that it queries, nor by what an index does not hold.
            return self._with(_question=question.with_(rest=(*question.rest, predicate)))
        return self._with(_question=question.with_(filter=all_of(question.filter, wanted)))

    def _named(self, kind: EntityType, name: str) -> str:
        """The attribute to filter a field by; raises, with what narrows the query instead, if only keys hold it."""
        sort = self._question.range.access.sort
        if sort is not None and name in [part.name for part in sort.parts]:
            return self._context.layout.filterable(kind, name, f"narrow the query with within({name}=…) instead")
        return self._context.layout.filterable(kind, name)

    def only(self, *fields: str | FieldReference[Any]) -> Self:
        """Returns the query with results that have only these fields, and their ids. Others raise `NotRead` if used.

        Less is sent, and it costs as many units.
        """
        return self._with(_question=self._question.with_(some=some_fields(self._kind, fields)))

    def between(self, low: Any, high: Any) -> Self:
        """Returns the query with only the edges whose order field lies between two values, both included.

        For children, it is the first field of their key. None leaves that side open. A query takes one `between` or
        `begins_with`; a second raises `InvalidValue`.
        """
        return self._narrowed(self._question.range.between(low, high), "between")

    def begins_with(self, prefix: str | bytes) -> Self:
        """Returns the query with only the edges whose order field begins with this text, or with these bytes.

        Without an order field, the id of the far node is compared; for children, the first field of their key.
        """
        return self._narrowed(self._question.range.begins_with(prefix), "begins_with")

    def within(self, **parts: Any) -> Self:
        """Returns the query with only the edges that have these values in the leading parts of their sort key.

        It must come before `between` and `begins_with`, which compare the part after these.
        """
        if self._question.sort is not None:
            raise InvalidValue("within must come before between and begins_with; call it first")
        return self._with(_question=self._question.with_(range=self._question.range.within(parts)))

    def _narrowed(self, sort: Any, verb: str) -> Self:
        if self._question.sort is not None:
            raise InvalidValue(
                f"a query takes one condition on the sort key, and {verb} would be the second; keep one of them"
            )
        return self._with(_question=self._question.with_(sort=sort))

    @property
    def _kind(self) -> EntityType:
        kind = self._question.range.access.kind
        assert kind is not None
        return kind


class _Pairing(_Narrowing[tuple[E, F]]):
    """Queries for pairs of an edge and the node at its far end."""

    def _step(self, start: Item | None, left: int | None) -> Plan[Found]:
        layout, consistent, kind = self._context.layout, self._question.consistent, self._kind
        assert isinstance(kind, EdgeType)
        return paired(super()._step, layout, kind, self._far, consistent, start, left)

    def _count_plan(self) -> Plan[int]:
        return count_pairs(self._step, self._most)


# --- one partition, synchronous ----------------------------------------------------------------


class EdgeQuery(Waiting[E], _Narrowing[E], Generic[E, F]):
    """The edges of one class at one node. `F` is the class of the nodes at their far ends."""

    def nodes(self) -> PairQuery[E, F]:
        """Returns a query for pairs of an edge and the node at its far end, which are read with batch gets.

        Edges whose node does not exist are left out.
        """
        return PairQuery(self._context, self._question, self._most, self._far)


class PairQuery(Waiting[tuple[E, F]], _Pairing[E, F]):
    """Pairs of an edge and the node at its far end."""


class ChildQuery(Waiting[E], _Narrowing[E]):
    """The children of one class of one node."""


# --- one partition, asynchronous ---------------------------------------------------------------


class AsyncEdgeQuery(Awaiting[E], _Narrowing[E], Generic[E, F]):
    """The edges of one class at one node. `F` is the class of the nodes at their far ends."""

    def nodes(self) -> AsyncPairQuery[E, F]:
        """Returns a query for pairs of an edge and the node at its far end, which are read with batch gets.

        Edges whose node does not exist are left out.
        """
        return AsyncPairQuery(self._context, self._question, self._most, self._far)


class AsyncPairQuery(Awaiting[tuple[E, F]], _Pairing[E, F]):
    """Pairs of an edge and the node at its far end."""


class AsyncChildQuery(Awaiting[E], _Narrowing[E]):
    """The children of one class of one node."""
