"""Lazy walks: what `walk` returns.

A walk reads nothing until a program asks for results. There is a synchronous and an asynchronous class of walks, and of
their results; both only run the plans of `adjoin.walk_steps`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from adjoin.cost import WalkCost
from adjoin.dataclass import dataclass
from adjoin.fields import field_name
from adjoin.model import Ref
from adjoin.plans.walk import What
from adjoin.plans.walk_results import GroupCount, WalkPath, WalkResult
from adjoin.requests import Plan
from adjoin.walk_steps import Steps, WalkPage

if TYPE_CHECKING:
    from adjoin.fields import FieldReference, Predicate
    from adjoin.model import Node
    from adjoin.refs import ChildOf, Leads, LeadsBack, LeadsBoth

T = TypeVar("T")
E = TypeVar("E")
E2 = TypeVar("E2")
F = TypeVar("F")
F2 = TypeVar("F2")


@dataclass(frozen=True, eq=False, repr=False)
class _Reaching(Generic[T]):
    """Results of a walk, which are read when a program asks for them."""

    _walk: Any
    _what: What

    def __repr__(self) -> str:
        return f"<{self._what} of {self._walk!r}>"

    def _repr_html_(self) -> str:
        loaded: WalkResult[T] | None = self.__dict__.get("_loaded")
        if loaded is not None:
            return loaded._repr_html_()
        html: str = self._walk._html(f"{type(self).__name__} {self._what}", self.cost)
        return html

    @property
    def cost(self) -> WalkCost:
        """What the results cost, by how many edges nodes have."""
        found: WalkCost = self._walk.cost
        return found if self._what in ("refs", "edges") else replace(found, reads=(*found.reads[:-1], True))

    def _page_plan(self, limit: int | None, after: str | None) -> Plan[WalkPage[T]]:
        found: Plan[WalkPage[T]] = self._walk._page_plan(self._what, limit, after)
        return found


# --- synchronous -------------------------------------------------------------------------------


class Reached(_Reaching[T], Sequence[T]):
    """Results of a walk in the order in which it reaches them. They are read once, when the first is needed.

    `page` reads some of them, and no more than it needs.
    """

    @cached_property
    def _loaded(self) -> WalkResult[T]:
        loaded: WalkResult[T] = self._walk._run(self._walk._all_plan(self._what))
        return loaded

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self._loaded[place]

    def __len__(self) -> int:
        return len(self._loaded)

    def __iter__(self) -> Iterator[T]:
        return iter(self._loaded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def partial(self) -> bool:
        """Whether the budget did not suffice, so that results may be missing."""
        return self._loaded.partial

    @property
    def exceeded(self) -> str | None:
        """The limit of the budget that did not suffice, such as "requests"; None if all did."""
        return self._loaded.exceeded

    @property
    def capped(self) -> tuple[Ref[Any], ...]:
        """The nodes of which not all edges were read, because they have more than the cap."""
        return self._loaded.capped

    def page(self, limit: int | None = None, after: str | None = None) -> WalkPage[T]:
        """Returns one page of `limit` results, or without it all. `after` is the `next` of the page before.

        A page reads the walk again, as far as its last result. Raises `InvalidCursor` if the token belongs to another
        walk or was changed.
        """
        page: WalkPage[T] = self._walk._run(self._page_plan(limit, after))
        return page

    def first(self) -> T | None:
        """Returns the first result, or None if there are no results."""
        return next(iter(self.page(limit=1).items), None)


class Walk(Steps, Generic[E, F]):
    """Paths from one or several nodes, over several steps. Iterate it for the nodes at their ends.

    `E` is the class of the last edges, and `F` that of the nodes.
    """

    # A walk whose steps lead from a class to another one has other types after each step.
    if TYPE_CHECKING:

        def out(self, *models: type[Leads[Any, E2, F2]]) -> Walk[E2, F2]: ...

        def into(self, *models: type[LeadsBack[Any, E2, F2]]) -> Walk[E2, F2]: ...

        def both(self, *models: type[LeadsBoth[E2, F2]]) -> Walk[E2, F2]: ...

        def children(self, *models: type[ChildOf[Any, E2]]) -> Walk[E2, E2]: ...  # type: ignore[override]

        @overload  # type: ignore[override]
        def repeat(
            self,
            *models: type[Leads[Any, E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: Literal["out"] = "out",
            where: Predicate | None = None,
            on: str | None = None,
        ) -> Walk[E2, F | F2]: ...

        @overload
        def repeat(
            self,
            *models: type[LeadsBack[Any, E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: Literal["into"],
            where: Predicate | None = None,
            on: str | None = None,
        ) -> Walk[E2, F | F2]: ...

        @overload
        def repeat(
            self,
            *models: type[LeadsBoth[E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: str,
            where: Predicate | None = None,
            on: str | None = None,
        ) -> Walk[E2, F | F2]: ...

        def repeat(self, *models: Any, **options: Any) -> Walk[Any, Any]: ...

    def _run(self, plan: Plan[T]) -> T:
        result: T = self._traversal.context.run(plan)
        return result

    def __iter__(self) -> Iterator[F]:
        return iter(self.nodes())

    def nodes(self) -> Reached[F]:
        """Returns the nodes that the walk reaches, one for each path. Each node is read once.

        Nodes that do not exist are left out.
        """
        return Reached(self, "nodes")

    def refs(self) -> Reached[Ref[F]]:
        """Returns refs to the nodes that the walk reaches, one for each path, without reading them."""
        return Reached(self, "refs")

    def edges(self) -> Reached[E]:
        """Returns the last edge of each path."""
        return Reached(self, "edges")

    def paths(self) -> Reached[WalkPath]:
        """Returns all paths. Those with a node that does not exist are left out."""
        return Reached(self, "paths")

    def page(self, limit: int | None = None, after: str | None = None) -> WalkPage[F]:
        """Returns one page of nodes; see `Reached.page`."""
        return self.nodes().page(limit, after)

    def first(self) -> F | None:
        """Returns the first node, or None."""
        return self.nodes().first()

    def count(self) -> int:
        """Returns the number of paths; after `distinct`, it is the number of nodes. No node is read for it."""
        return self._run(self._count_plan())

    def group_count(self) -> GroupCount[F]:
        """Returns the number of paths to each node, by its ref. No node is read for it."""
        return self._run(self._group_count_plan())

    def sum(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the sum of a field of the last edge, or of the last node, of each path."""
        return self._run(self._number_plan("sum", field_name(field), on))

    def min(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the least value of a field of the last edges or nodes, or None if none has a value."""
        return self._run(self._number_plan("min", field_name(field), on))

    def max(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the greatest value of a field of the last edges or nodes, or None if none has a value."""
        return self._run(self._number_plan("max", field_name(field), on))

    def avg(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the mean of a field of the last edge, or of the last node, of each path; None if none has a value."""
        return self._run(self._number_plan("avg", field_name(field), on))

    def top(self, field: str | FieldReference[Any], number: int = 10, *, on: str | None = None) -> WalkResult[Any]:
        """Returns the nodes, or the last edges, with the greatest values of a field, each once, the greatest first."""
        return self._run(self._top_plan(field_name(field), number, on))


# --- asynchronous ------------------------------------------------------------------------------


class AsyncReached(_Reaching[T]):
    """Results of a walk in the order in which it reaches them: await it for a `WalkResult`, or iterate it."""

    def __await__(self) -> Generator[Any, None, WalkResult[T]]:
        loading: Generator[Any, None, WalkResult[T]] = self._walk._run(self._walk._all_plan(self._what)).__await__()
        return loading

    async def __aiter__(self) -> AsyncIterator[T]:
        for result in await self:
            yield result

    async def page(self, limit: int | None = None, after: str | None = None) -> WalkPage[T]:
        """Returns one page of `limit` results, or without it all. `after` is the `next` of the page before.

        A page reads the walk again, as far as its last result. Raises `InvalidCursor` if the token belongs to another
        walk or was changed.
        """
        page: WalkPage[T] = await self._walk._run(self._page_plan(limit, after))
        return page

    async def first(self) -> T | None:
        """Returns the first result, or None if there are no results."""
        return next(iter((await self.page(limit=1)).items), None)


class AsyncWalk(Steps, Generic[E, F]):
    """Paths from one or several nodes, over several steps. Iterate it for the nodes at their ends.

    `E` is the class of the last edges, and `F` that of the nodes.
    """

    # A walk whose steps lead from a class to another one has other types after each step.
    if TYPE_CHECKING:

        def out(self, *models: type[Leads[Any, E2, F2]]) -> AsyncWalk[E2, F2]: ...

        def into(self, *models: type[LeadsBack[Any, E2, F2]]) -> AsyncWalk[E2, F2]: ...

        def both(self, *models: type[LeadsBoth[E2, F2]]) -> AsyncWalk[E2, F2]: ...

        def children(self, *models: type[ChildOf[Any, E2]]) -> AsyncWalk[E2, E2]: ...  # type: ignore[override]

        @overload  # type: ignore[override]
        def repeat(
            self,
            *models: type[Leads[Any, E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: Literal["out"] = "out",
            where: Predicate | None = None,
            on: str | None = None,
        ) -> AsyncWalk[E2, F | F2]: ...

        @overload
        def repeat(
            self,
            *models: type[LeadsBack[Any, E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: Literal["into"],
            where: Predicate | None = None,
            on: str | None = None,
        ) -> AsyncWalk[E2, F | F2]: ...

        @overload
        def repeat(
            self,
            *models: type[LeadsBoth[E2, F2]],
            min: int = 1,
            max: int,
            until: Predicate | Node | Ref[Any] | None = None,
            direction: str,
            where: Predicate | None = None,
            on: str | None = None,
        ) -> AsyncWalk[E2, F | F2]: ...

        def repeat(self, *models: Any, **options: Any) -> AsyncWalk[Any, Any]: ...

    def _run(self, plan: Plan[Any]) -> Any:
        return self._traversal.context.run(plan)

    async def __aiter__(self) -> AsyncIterator[F]:
        for node in await self.nodes():
            yield node

    def nodes(self) -> AsyncReached[F]:
        """Returns the nodes that the walk reaches, one for each path. Each node is read once.

        Nodes that do not exist are left out.
        """
        return AsyncReached(self, "nodes")

    def refs(self) -> AsyncReached[Ref[F]]:
        """Returns refs to the nodes that the walk reaches, one for each path, without reading them."""
        return AsyncReached(self, "refs")

    def edges(self) -> AsyncReached[E]:
        """Returns the last edge of each path."""
        return AsyncReached(self, "edges")

    def paths(self) -> AsyncReached[WalkPath]:
        """Returns all paths. Those with a node that does not exist are left out."""
        return AsyncReached(self, "paths")

    async def page(self, limit: int | None = None, after: str | None = None) -> WalkPage[F]:
        """Returns one page of nodes; see `AsyncReached.page`."""
        return await self.nodes().page(limit, after)

    async def first(self) -> F | None:
        """Returns the first node, or None."""
        return await self.nodes().first()

    async def count(self) -> int:
        """Returns the number of paths; after `distinct`, it is the number of nodes. No node is read for it."""
        counted: int = await self._run(self._count_plan())
        return counted

    async def group_count(self) -> GroupCount[F]:
        """Returns the number of paths to each node, by its ref. No node is read for it."""
        counted: GroupCount[F] = await self._run(self._group_count_plan())
        return counted

    async def sum(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the sum of a field of the last edge, or of the last node, of each path."""
        return await self._run(self._number_plan("sum", field_name(field), on))

    async def min(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the least value of a field of the last edges or nodes, or None if none has a value."""
        return await self._run(self._number_plan("min", field_name(field), on))

    async def max(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the greatest value of a field of the last edges or nodes, or None if none has a value."""
        return await self._run(self._number_plan("max", field_name(field), on))

    async def avg(self, field: str | FieldReference[Any], *, on: str | None = None) -> Any:
        """Returns the mean of a field of the last edge, or of the last node, of each path; None if none has a value."""
        return await self._run(self._number_plan("avg", field_name(field), on))

    async def top(
        self, field: str | FieldReference[Any], number: int = 10, *, on: str | None = None
    ) -> WalkResult[Any]:
        """Returns the nodes, or the last edges, with the greatest values of a field, each once, the greatest first."""
        found: WalkResult[Any] = await self._run(self._top_plan(field_name(field), number, on))
        return found


# --- either ------------------------------------------------------------------------------------


def cost_of_walk(call: Any) -> WalkCost | None:
    """What a walk costs, if the call is a walk, its results, or one of their methods."""
    walk = getattr(call, "__self__", call)
    if isinstance(walk, Walk | AsyncWalk):
        return (walk.nodes() if walk is call else walk).cost
    return walk.cost if isinstance(walk, Reached | AsyncReached) else None
