"""Reports each round of requests to watchers: hooks, the meter, the log and tracing are all built on this.

A watcher sees a round before its requests are sent, and after they were answered or failed. It watches a block, in
the context of which the requests are made, or the whole process. `watched` wraps a plan, so the two loops of `runner`
know nothing of rounds, and a plan that nobody watches pays for one look at who watches.

The log has operations, tables, indexes, units and milliseconds. It never has keys, values or messages of errors, since
those may contain values.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import field
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidValue, shown
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    Get,
    ListStreams,
    ListTables,
    ListTags,
    Plan,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    SetTimeToLive,
    TagTable,
    TransactGet,
    TransactWrite,
    Update,
    UpdateTable,
)

T = TypeVar("T")

LOG = logging.getLogger("adjoin.requests")

_OPERATIONS: dict[type[Any], str] = {
    Get: "GetItem",
    BatchGet: "BatchGetItem",
    TransactGet: "TransactGetItems",
    Query: "Query",
    Scan: "Scan",
    Put: "PutItem",
    Update: "UpdateItem",
    Delete: "DeleteItem",
    BatchWrite: "BatchWriteItem",
    TransactWrite: "TransactWriteItems",
    CreateTable: "CreateTable",
    SetTimeToLive: "UpdateTimeToLive",
    UpdateTable: "UpdateTable",
    TagTable: "TagResource",
    ListTags: "ListTagsOfResource",
    DropTable: "DeleteTable",
    DescribeTable: "DescribeTable",
    ListTables: "ListTables",
    ListStreams: "ListStreams",
    ReadChanges: "GetRecords",
}

# --- rounds ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestOutline:
    """A request of a round without its keys and values."""

    operation: str
    """DynamoDB's name, such as "PutItem"."""
    tables: tuple[str, ...]
    index: str | None
    """The index that a query or a scan reads; None for the table itself."""
    items: int | None
    """The number of items that a batch or a transaction names; None for other requests."""
    rcu: float
    wcu: float


@dataclass(slots=True, eq=False)
class WatchedRound:
    """A batch of requests that run side by side. `before` and `after` of a watcher get the same object."""

    requests: tuple[Request, ...]
    system: str | None = None
    """The database as OpenTelemetry names it: "aws.dynamodb" or "sqlite"; None for a store that does not say."""
    server: str | None = None
    """Where the database is, such as "127.0.0.1:8000"; None for a file."""
    started: float = field(default_factory=time.time)
    """When the requests were sent, as seconds since 1970."""
    seconds: float | None = None
    """How long they took; None before they were answered."""
    responses: tuple[Response, ...] = ()
    """One response per request; empty before they were answered, and if one of them failed."""
    error: BaseException | None = None

    @property
    def rcu(self) -> float:
        return sum(row.read for response in self.responses for row in response.consumed)

    @property
    def wcu(self) -> float:
        return sum(row.write for response in self.responses for row in response.consumed)

    @property
    def outlines(self) -> tuple[RequestOutline, ...]:
        """Each request with its units, without keys and values."""
        answered = self.responses or (None,) * len(self.requests)
        return tuple(map(_outline, self.requests, answered))


def _outline(request: Request, response: Response | None) -> RequestOutline:
    parts: Sequence[Any] = ()
    if isinstance(request, BatchGet | TransactGet):
        parts = request.gets
    elif isinstance(request, BatchWrite | TransactWrite):
        parts = request.writes
    consumed = () if response is None else response.consumed
    return RequestOutline(
        _OPERATIONS[type(request)],
        tuple(dict.fromkeys(map(_table, parts or (request,)))) if _is_of_a_table(request) else (),
        request.index if isinstance(request, Query | Scan) else None,
        len(parts) or None,
        sum(row.read for row in consumed),
        sum(row.write for row in consumed),
    )


def _is_of_a_table(request: Request) -> bool:
    return not isinstance(request, ListTables | ListStreams)


def _table(request: Any) -> str:
    name: str = request.definition.name if isinstance(request, CreateTable) else request.table
    return name


# --- watchers ----------------------------------------------------------------------------------


class Watcher:
    """Sees each round in a `with` block, also in asyncio tasks that start in it."""

    _token: Token[tuple[Watcher, ...]] | None = None

    def before(self, round: WatchedRound) -> None:
        """Called before the requests are sent. What it raises reaches the caller, and nothing is sent."""

    def after(self, round: WatchedRound) -> None:
        """Called when the requests were answered, or failed. What it raises reaches the caller."""

    def __enter__(self) -> Self:
        self._token = WATCHERS.set((*WATCHERS.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            WATCHERS.reset(self._token)
            self._token = None


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("adjoin_watchers", default=())
"""Those of the current block."""

_IS_TELLING: ContextVar[bool] = ContextVar("adjoin_is_telling", default=False)
EVERYWHERE: dict[Watcher, None] = {}
"""Those of the whole process, in the order in which they were started."""
_CHANGING = Lock()


class Watch(Watcher):
    """Calls functions before and after each round: `with g.watch(after=tell): ...`.

    `start()` and `stop()` watch the whole process instead of a block. Every thread that uses a graph then calls the
    functions.
    """

    def __init__(
        self,
        before: Callable[[WatchedRound], object] | None = None,
        after: Callable[[WatchedRound], object] | None = None,
    ) -> None:
        for name, hook in (("before", before), ("after", after)):
            if hook is not None and not callable(hook):
                raise InvalidValue(f"{name} must be a function that takes a round, got {shown(hook)}")
        self._before, self._after = before, after

    def before(self, round: WatchedRound) -> None:
        if self._before is not None:
            self._before(round)

    def after(self, round: WatchedRound) -> None:
        if self._after is not None:
            self._after(round)

    def start(self) -> Self:
        """Watches all graphs of the process from now on. To start it twice changes nothing."""
        with _CHANGING:
            EVERYWHERE[self] = None
        return self

    def stop(self) -> None:
        """Ends what `start` began."""
        with _CHANGING:
            EVERYWHERE.pop(self, None)


class _Log(Watcher):
    def after(self, round: WatchedRound) -> None:
        milliseconds = (round.seconds or 0.0) * 1000
        beside = f" (one of {len(round.requests)} side by side)" if len(round.requests) > 1 else ""
        for each in round.outlines:
            where = ", ".join(each.tables) + (f", index {each.index}" if each.index else "")
            if round.error is None:
                words = f"{each.rcu:g} RCU, {each.wcu:g} WCU"
            else:
                words = f"failed with {type(round.error).__name__}"
            LOG.debug("%s: %s, %.1f ms%s", f"{each.operation} {where}".rstrip(), words, milliseconds, beside)


_LOG = _Log()


def watching() -> tuple[Watcher, ...]:
    """Returns the watchers of the rounds of a plan that begins now."""
    # A hook may use a graph itself. If that were watched, each hook would call itself.
    if _IS_TELLING.get():
        return ()
    with _CHANGING:
        everywhere = tuple(EVERYWHERE)
    return (*everywhere, *WATCHERS.get(), *((_LOG,) if LOG.isEnabledFor(logging.DEBUG) else ()))


# --- telling -----------------------------------------------------------------------------------


def watched(plan: Plan[T], watchers: Sequence[Watcher], store: object) -> Plan[T]:
    """Returns a plan that does the same, and tells watchers of each round on a store.

    A hook's error is not the store's, so the plan within does not see it.
    """
    system, server = getattr(store, "system", None), getattr(store, "server", None)
    go_on: Callable[[], Sequence[Request]] = partial(next, plan)
    while True:
        try:
            requests = go_on()
        except StopIteration as done:
            result: T = done.value
            return result
        round = WatchedRound(tuple(requests), system, server)
        notified: list[Watcher] = []
        try:
            for watcher in watchers:
                tell(watcher.before, round)
                # Only those whose `before` was called are told of the end: each `after` has its `before`.
                notified.append(watcher)
        except BaseException as error:
            _end(round, 0.0, (), error, notified)
            raise
        begun = time.perf_counter()
        try:
            responses = yield requests
        except BaseException as error:
            _end(round, time.perf_counter() - begun, (), error, notified)
            # An interrupt, or a fault of the program, is not for the plan to handle.
            if not isinstance(error, AdjoinError):
                raise
            go_on = partial(plan.throw, error)
        else:
            _end(round, time.perf_counter() - begun, responses, None, notified)
            go_on = partial(plan.send, responses)


def _end(
    round: WatchedRound,
    seconds: float,
    responses: Sequence[Response],
    error: BaseException | None,
    notified: list[Watcher],
) -> None:
    round.seconds, round.responses, round.error = seconds, tuple(responses), error
    for watcher in notified:
        tell(watcher.after, round)


def tell(hook: Callable[[WatchedRound], None], round: WatchedRound) -> None:
    """Calls a hook. The requests that it makes itself are not watched, as that would have no end."""
    token = _IS_TELLING.set(True)
    try:
        hook(round)
    finally:
        _IS_TELLING.reset(token)
