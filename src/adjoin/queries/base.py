"""What all queries share: pages and their tokens, counting, and the two ways to run them.

A query is a value until it is iterated or asked for a page, a count or its first result. Each comes
twice, for programs that wait and programs that await; both only run plans.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from adjoin.errors import InvalidValue, shown
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.cursors import decode_cursor, encode_cursor
from adjoin.plans.read import Found, changed
from adjoin.values import Item

T = TypeVar("T")


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
class Context:
    """What a query needs of its graph."""

    layout: BoundLayout
    secret: bytes
    run: Callable[[Plan[Any]], Any]
    """Runs a plan; gives its result, or an awaitable of it in an asynchronous graph."""


@dataclass(eq=False, repr=False)
class Base(Generic[T]):
    """A question, how many results at most, and pages of them as plans."""

    _context: Context
    _question: Any
    _most: int | None = None

    def __bool__(self) -> bool:
        raise InvalidValue("a query is neither true nor false before it is asked; use first(), count() or iterate it")

    def limit(self, most: int) -> Self:
        """At most so many results in all, after any filter."""
        return self._with(_most=whole_number("limit", most))

    def reverse(self) -> Self:
        """The other way round."""
        return self._with(_question=self._question.with_(forward=not self._question.forward))

    def _with(self, **changes: Any) -> Self:
        return changed(self, changes)

    @abstractmethod
    def _step(self, start: Any, left: int | None) -> Plan[Found]:
        """One stretch of an iteration, with its entities turned into results."""

    @abstractmethod
    def _count_plan(self) -> Plan[int]: ...

    @abstractmethod
    def _key_at(self, start: Any) -> Item:
        """What a page token holds of a place to go on from."""

    @abstractmethod
    def _place_at(self, key: Item) -> Any:
        """The place to go on from that a page token means."""

    def _page_plan(self, limit: int | None, after: str | None) -> Plan[Page[T]]:
        start, given = None, 0
        if after is not None:
            key, given = decode_cursor(after, self._identity, self._context.secret)
            start = self._place_at(key)
        left = None if self._most is None else self._most - given
        wanted = left if limit is None else min(whole_number("a page's limit", limit), left or limit)
        found = yield from self._step(start, wanted)
        given += len(found.entities)
        token = None
        if found.last is not None and given != self._most:
            token = encode_cursor(self._key_at(found.last), given, self._identity, self._context.secret)
        return Page(found.entities, token)

    @property
    def _identity(self) -> bytes:
        """What a page token of this query is bound to."""
        identity: bytes = self._question.identity(self._context.layout.table)
        return identity + repr(self._most).encode()

    def _first_plan(self) -> Plan[T | None]:
        first = yield from self._page_plan(1, None)
        return first.items[0] if first.items else None


def whole_number(name: str, number: int) -> int:
    if not isinstance(number, int) or not 1 <= number < 2**31:
        raise InvalidValue(f"{name} of {shown(number)} cannot be; give a whole number, at least 1")
    return number


# --- for programs that wait --------------------------------------------------------------------


class Waiting(Base[T]):
    def __iter__(self) -> Iterator[T]:
        start: Any = None
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


# --- for programs that await -------------------------------------------------------------------


class Awaiting(Base[T]):
    async def __aiter__(self) -> AsyncIterator[T]:
        start: Any = None
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
