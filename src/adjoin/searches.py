"""Lazy queries of an index: what `find` and `index` return.

They read an index in its order, in one partition or in several that are merged. As all queries, they read nothing until
a program asks for results, see `queries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType
from adjoin.errors import InvalidValue, shown
from adjoin.fields import FieldReference, Predicate
from adjoin.plans.find import Search
from adjoin.plans.key_search import KeySearch
from adjoin.plans.read import Found, some_fields
from adjoin.queries import Awaiting, Ordered, Waiting, count_pairs, paired
from adjoin.requests import Plan, SortOperator
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.refs import ToSource, ToTarget

T = TypeVar("T")
E = TypeVar("E")
F = TypeVar("F")
# So that a query of edges is also one of what has a source, for the types of `nodes`.
T_co = TypeVar("T_co", covariant=True)


@dataclass(eq=False, repr=False)
class _Searching(Ordered[T]):
    """What queries of an index share. They read all its shards, and merge them in order."""

    _question: Search

    def _step(self, start: Any, left: int | None) -> Plan[Found]:
        return self._question.page(self._context.layout, left, start)

    def _count_plan(self) -> Plan[int]:
        return self._question.count(self._context.layout, self._most)

    def _key_at(self, start: Any) -> Item:
        return self._question.key_at(start)

    def _place_at(self, key: Item) -> Any:
        return self._question.position_at(self._context.layout, key)


# --- one index: items of every class -----------------------------------------------------------


@dataclass(eq=False, repr=False)
class _Indexing(_Searching[Any]):
    """What queries of a whole index share."""

    _question: KeySearch

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the index {self._question.index}; iterate it, or ask for .page()>"

    def partition(self, *values: Any) -> Self:
        """Returns the query for one partition of the index: the values of its partition key attributes."""
        return self._with(_question=self._question.in_partition(self._context.layout, values))

    def equals(self, value: Any) -> Self:
        """Returns the query with only the items whose sort key is this value."""
        return self._sorted("=", value)

    def begins_with(self, prefix: str | bytes) -> Self:
        """Returns the query with only the items whose sort key begins with this text."""
        return self._sorted("begins_with", prefix)

    def between(self, low: Any, high: Any) -> Self:
        """Returns the query with only the items whose sort key is between two values, both included.

        None leaves that side open.
        """
        if low is None:
            return self if high is None else self._sorted("<=", high)
        return self._sorted(">=", low) if high is None else self._sorted("between", low, high)

    def _sorted(self, operator: SortOperator, *values: Any) -> Self:
        return self._with(_question=self._question.sorted_by(self._context.layout, operator, values))

    def _of_no_class(self) -> Self:
        return self._with(_question=self._question.with_(are_others=True))


class IndexQuery(Waiting[Any], _Indexing):
    """The nodes and edges in an index, in the order of its sort key."""

    @property
    def others(self) -> Self:
        """A query for the items of the index that belong to no class of the graph, as plain values."""
        return self._of_no_class()


class AsyncIndexQuery(Awaiting[Any], _Indexing):
    """The nodes and edges in an index, in the order of its sort key."""

    @property
    def others(self) -> Self:
        """A query for the items of the index that belong to no class of the graph, as plain values."""
        return self._of_no_class()


# --- the keys of an index: find ----------------------------------------------------------------


@dataclass(eq=False, repr=False)
class _Finding(_Searching[T]):
    """What queries by the keys of an index share."""

    _far: str = "source"
    """For edges: the end whose nodes `nodes` reads."""

    def __repr__(self) -> str:
        indexes = self._question.indexes_in(self._context.layout)
        where = " and ".join("the table" if index is None else f"the index {index}" for index in indexes)
        return f"<{type(self).__name__} of {self._question} in {where}; iterate it, or ask for .page()>"

    def where(self, predicate: Predicate) -> Self:
        """Returns the query with only the results for which the predicate holds.

        DynamoDB filters after reading, so the query costs as much as without the filter.
        """
        return self._with(_question=self._question.where(self._context.layout, predicate))

    def only(self, *fields: str | FieldReference[Any]) -> Self:
        """Returns the query with results that have only these fields, and their ids. Others raise `NotRead` if used.

        Less is sent, and it costs as many units.
        """
        kind = self._question.kind
        assert kind is not None
        return self._with(_question=self._question.with_(some=some_fields(kind, fields)))

    @property
    def _kind(self) -> EdgeType:
        kind = self._question.kind
        if not isinstance(kind, EdgeType):
            name = kind.name if kind is not None else "this"
            raise InvalidValue(f"nodes() is only for edges, and {name} is a node; use the query without it")
        return kind

    def _paired(self, end: str) -> dict[str, Any]:
        if end not in ("source", "target"):
            raise InvalidValue(f'end must be "source" or "target", got {shown(end)}')
        # Reading `_kind` raises for a query of nodes.
        assert self._kind
        return {"_context": self._context, "_question": self._question, "_most": self._most, "_far": end}


class _FoundPairing(_Finding[tuple[E, F]]):
    """Queries for pairs of an edge that was found and the node at one of its ends."""

    def _step(self, start: Any, left: int | None) -> Plan[Found]:
        consistent = self._question.consistent
        return paired(super()._step, self._context.layout, self._kind, self._far, consistent, start, left)

    def _count_plan(self) -> Plan[int]:
        return count_pairs(self._step, self._most)


# --- find, synchronous -------------------------------------------------------------------------


class FindQuery(Waiting[T_co], _Finding[T_co]):  # type: ignore[type-var]
    """The nodes or edges of one class that were found by the keys of an index, in the order of its sort key."""

    @overload
    def nodes(self: FindQuery[ToSource[E, F]], end: Literal["source"] = "source") -> FindPairQuery[E, F]: ...

    @overload
    def nodes(self: FindQuery[ToTarget[E, F]], end: Literal["target"]) -> FindPairQuery[E, F]: ...

    def nodes(self, end: str = "source") -> FindPairQuery[Any, Any]:
        """Returns a query for pairs of an edge and the node at its `end`, which are read with batch gets.

        Edges whose node does not exist are left out.
        """
        return FindPairQuery(**self._paired(end))


class FindPairQuery(Waiting[tuple[E, F]], _FoundPairing[E, F]):
    """Pairs of an edge that was found and the node at one of its ends."""


# --- find, asynchronous ------------------------------------------------------------------------


class AsyncFindQuery(Awaiting[T_co], _Finding[T_co]):  # type: ignore[type-var]
    """The nodes or edges of one class that were found by the keys of an index, in the order of its sort key."""

    @overload
    def nodes(self: AsyncFindQuery[ToSource[E, F]], end: Literal["source"] = "source") -> AsyncFindPairQuery[E, F]: ...

    @overload
    def nodes(self: AsyncFindQuery[ToTarget[E, F]], end: Literal["target"]) -> AsyncFindPairQuery[E, F]: ...

    def nodes(self, end: str = "source") -> AsyncFindPairQuery[Any, Any]:
        """Returns a query for pairs of an edge and the node at its `end`, which are read with batch gets.

        Edges whose node does not exist are left out.
        """
        return AsyncFindPairQuery(**self._paired(end))


class AsyncFindPairQuery(Awaiting[tuple[E, F]], _FoundPairing[E, F]):
    """Pairs of an edge that was found and the node at one of its ends."""
