"""What requests cost: the meter (what was consumed), the rehearsal (what would be), and prices.

Everything here works on requests and responses as values. A rehearsal drives a plan with answers as
of an empty table, so its units are the least the call can cost; sizes that are known, those of what
is written, are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from adjoin.expressions import Path
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    ChangesResponse,
    Check,
    Consumed,
    CreateTable,
    Delete,
    DescribeTable,
    DropTable,
    Get,
    ItemResponse,
    ListStreams,
    ListTables,
    ListTags,
    PageResponse,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    SetTimeToLive,
    StreamsResponse,
    TableResponse,
    TablesResponse,
    TagsResponse,
    TagTable,
    TransactGet,
    TransactWrite,
    Update,
    UpdateTable,
    WriteResponse,
)
from adjoin.runner import REHEARSAL, WATCHERS, Rehearsal, Watcher
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.units import MAX_BATCH_GET, MAX_PAGE_SIZE, MAX_TRANSACTION, read_units, write_units
from adjoin.values import Item, item_size

# --- prices ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars, on demand."""

    region: str
    as_of: str
    million_reads: float
    million_writes: float
    gigabyte_month: float


PRICES = Prices("us-east-1", "2024-11", million_reads=0.125, million_writes=0.625, gigabyte_month=0.25)


def dollars(rcu: float, wcu: float, prices: Prices = PRICES) -> float:
    """The price of so many read and write units."""
    return (rcu * prices.million_reads + wcu * prices.million_writes) / 1_000_000


# --- the meter ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Usage:
    """Units taken from one table or index."""

    rcu: float = 0.0
    wcu: float = 0.0


@dataclass(slots=True)
class TableUsage(Usage):
    """Units taken from a table itself, and from each of its indexes."""

    indexes: dict[str, Usage] = field(default_factory=dict)


class Meter:
    """What a block consumed: `with g.meter() as m: ...`, then `m.requests`, `m.rcu`, `m.wcu`, `m.rounds`.

    A round is a batch of requests that run side by side, so rounds are what a caller waits for.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.rounds = 0
        self.tables: dict[str, TableUsage] = {}
        self._token: Token[tuple[Watcher, ...]] | None = None

    @property
    def rcu(self) -> float:
        return sum(usage.rcu for usage in self._usages())

    @property
    def wcu(self) -> float:
        return sum(usage.wcu for usage in self._usages())

    @property
    def dollars(self) -> float:
        return dollars(self.rcu, self.wcu)

    def _usages(self) -> list[Usage]:
        return [usage for table in self.tables.values() for usage in (table, *table.indexes.values())]

    def round(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        self.rounds += 1
        self.requests += len(requests)
        for response in responses:
            for consumed in response.consumed:
                self._add(consumed)

    def _add(self, consumed: Consumed) -> None:
        table = self.tables.setdefault(consumed.table, TableUsage())
        usage = table if consumed.index is None else table.indexes.setdefault(consumed.index, Usage())
        usage.rcu += consumed.read
        usage.wcu += consumed.write

    def __enter__(self) -> Meter:
        self._token = WATCHERS.set((*WATCHERS.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            WATCHERS.reset(self._token)
            self._token = None

    def __str__(self) -> str:
        asked = f"{_counted(self.requests, 'request')} in {_counted(self.rounds, 'round')}"
        return f"{asked}, {self.rcu:g} RCU, {self.wcu:g} WCU"

    __repr__ = __str__


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


# --- the rehearsal -----------------------------------------------------------------------------

_FOUND = 1000
"""Edges that one query of a fan-out finds at most."""

ARRIVAL = 110
"""The bytes of what is taken down beside a node about an edge that arrives there, with short ids."""

SMALL = 256
"""The bytes that an edge is taken to have where nobody says."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """What `maintain` does after a change of a node, for every edge that repeats one of its fields.

    Every edge is read with the nodes that it copies from, written in a transaction that checks those, and read once
    more, when the stream brings that write. `size` is how many bytes an edge has; nodes are taken to be small.
    """

    node: str
    """The partition key of the node."""
    edge: str
    fields: tuple[str, ...]
    """The fields of the edge that are copies of what changes."""
    index: str | None
    """The index through which the edges are found; None for the table itself."""
    items: int
    """The items that are written for an edge: its own, and those beside it for indexed fields."""
    entries: int
    """The entries of indexes that are written with them."""
    others: int
    """The nodes that an edge copies from besides this one, and which are checked with it."""

    @property
    def wcu_per_edge(self) -> float:
        """Write units for one more small edge."""
        return self._wcu_of(SMALL)

    @property
    def edges_a_request(self) -> int:
        """Edges of one transaction, beside the check of the node."""
        return (MAX_TRANSACTION - 1) // (self.items + self.others)

    def rcu(self, edges: int, size: int = SMALL) -> float:
        """Read units for so many edges: two looks at each, and finding them; by an index, also beside the node."""
        each = read_units(size, consistent=True) + self.others * read_units(0, consistent=True)
        beside = 0.0 if self.index is None else read_units(edges * ARRIVAL, consistent=True)
        return 2 * edges * each + read_units(edges * size, consistent=self.index is None) + beside

    def wcu(self, edges: int, size: int = SMALL) -> float:
        """Write units for so many edges, and for checking the node in every transaction."""
        return edges * self._wcu_of(size) + self._transactions(edges) * write_units(0, transactional=True)

    def requests(self, edges: int, size: int = SMALL) -> int:
        """Transactions, the batch gets of both looks, and queries that find the edges."""
        gets = 2 * _parts(edges * (1 + self.others) + 1, MAX_BATCH_GET)
        beside = 0 if self.index is None else _parts(edges, _FOUND)
        found = max(_parts(edges, _FOUND), _parts(edges * size, MAX_PAGE_SIZE)) + beside
        return self._transactions(edges) + gets + found

    def dollars(self, edges: int, size: int = SMALL) -> float:
        return dollars(self.rcu(edges, size), self.wcu(edges, size))

    def _wcu_of(self, size: int) -> float:
        written = self.items * write_units(size, transactional=True) + self.entries * write_units(size)
        return written + self.others * write_units(0, transactional=True)

    def _transactions(self, edges: int) -> int:
        return _parts(edges, self.edges_a_request)

    def __str__(self) -> str:
        found = f"index {self.index}, and beside it" if self.index else "the table"
        return (
            f"then, for each {self.edge} at {self.node} (found through {found}): {' and '.join(self.fields)} anew, "
            f"{self.rcu(1000) / 1000:.3g} RCU and {self.wcu_per_edge:g} WCU, {self.edges_a_request} in a transaction"
        )


@dataclass(frozen=True)
class Counting:
    """What `maintain` does after an edge is written, to count it where aggregates say so.

    Nodes are taken to be small, and to have no copies for indexed fields.
    """

    edge: str
    fields: tuple[str, ...]
    """The aggregates that the edge counts for."""
    ledgers: int
    """Items that say what the edge has added; with them, a change of it is counted as a difference."""
    bytes: int
    """How large they are, without the 100 bytes that DynamoDB adds to each item."""
    checks: int
    """Items that are checked with it: it and its far end, where a rule reads that."""
    ranks: int
    """Values that are kept in order, for least, greatest, latest and top ones; each is put outside of transactions."""
    nodes: int
    """Nodes that count it."""
    arrivals: int
    """Whether it is taken down beside its target, to be found from there."""
    above: tuple[str, ...]
    """Classes of edges that read at their far ends what changes by it; each such edge is counted anew."""

    def wcu(self, edges: int = 1, per_node: int = 1) -> float:
        """Write units for so many edges in one batch, of which so many are of the same node at one end.

        What is made of those nodes, over further hops, comes in addition: `wcu_above` for each edge that reads one.
        """
        twice = write_units(0, transactional=True)
        items = edges * (self.ledgers + self.checks)
        nodes = _parts(edges, per_node) + (self.nodes - 1) * edges if self.nodes else 0
        return (items + nodes) * twice + (edges * (self.ranks + self.arrivals) + 1) * write_units(0)

    @property
    def wcu_above(self) -> float:
        """Write units for one edge that reads a node at its far end: its ledger, its node, and checks of both ends."""
        return 4 * write_units(0, transactional=True) if self.above else 0.0

    def __str__(self) -> str:
        above = f"; then {self.wcu_above:g} WCU for each {' and '.join(self.above)} above" if self.above else ""
        return (
            f"then, for this {self.edge}: {', '.join(self.fields) or 'what others are made of'} by {self.wcu():g} WCU, "
            f"{self.wcu(1000, 10) / 1000:.1f} of many, and {self.bytes} bytes{above}"
        )


def _parts(whole: int, most: int) -> int:
    return -(-whole // most)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a call would ask of the store, round by round, and at least how many units that takes."""

    rounds: tuple[tuple[Request, ...], ...]
    consumed: tuple[Consumed, ...]
    fan_outs: tuple[FanOut, ...] = ()
    """What follows a change of a node that edges have copies of; its cost is per edge."""
    countings: tuple[Counting, ...] = ()
    """What follows an edge that aggregates count."""

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(request for each in self.rounds for request in each)

    @property
    def rcu(self) -> float:
        return sum(consumed.read for consumed in self.consumed)

    @property
    def wcu(self) -> float:
        return sum(consumed.write for consumed in self.consumed)

    @property
    def dollars(self) -> float:
        return dollars(self.rcu, self.wcu)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The indexes that are read."""
        read = (request.index for request in self.requests if isinstance(request, Query | Scan))
        return tuple(dict.fromkeys(index for index in read if index is not None))

    @property
    def index(self) -> str | None:
        """The index that is read, if one is."""
        return next(iter(self.indexes), None)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partition keys that are touched."""
        return tuple(dict.fromkeys(key for request in self.requests for key in _partitions(request)))

    def __str__(self) -> str:
        lines = []
        for number, requests in enumerate(self.rounds, 1):
            lines += [f"round {number}: {_described(request)}" for request in requests]
        lines.append(f"at least {self.rcu:g} RCU and {self.wcu:g} WCU, ${self.dollars:.9f}")
        lines += map(str, (*self.fan_outs, *self.countings))
        return "\n".join(lines)


class Rehearsing:
    """Records the requests of plans and answers them as an empty table would."""

    def __init__(self, definition: TableDefinition) -> None:
        self._definition = definition
        self._rounds: list[tuple[Request, ...]] = []
        self._consumed: list[Consumed] = []
        self._token: Token[Rehearsal | None] | None = None

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        self._rounds.append(tuple(requests))
        for request in requests:
            self._consumed += estimate(request, self._definition)
        return [_answer(request, self._definition) for request in requests]

    def explanation(
        self,
        follow: Callable[[Sequence[Request]], Iterable[FanOut]] = lambda _: (),
        counted: Callable[[Sequence[Request]], Iterable[Counting]] = lambda _: (),
    ) -> Explanation:
        """`follow` and `counted` tell what comes after requests."""
        asked = [request for each in self._rounds for request in each]
        return Explanation(tuple(self._rounds), tuple(self._consumed), tuple(follow(asked)), tuple(counted(asked)))

    def __enter__(self) -> Rehearsing:
        self._token = REHEARSAL.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        REHEARSAL.reset(self._token)


def estimate(request: Request | Check, definition: TableDefinition) -> list[Consumed]:
    """The least a request consumes: nothing else stored, reads of up to 4 KB, writes of what they carry."""
    table = definition.name
    match request:
        case Get():
            return [Consumed(table, None, read_units(0, consistent=request.consistent), 0.0)]
        case Query() | Scan():
            return [Consumed(table, request.index, read_units(0, consistent=request.consistent), 0.0)]
        case BatchGet() | TransactGet():
            factor = 1 if isinstance(request, BatchGet) else 4
            rows = [row for get in request.gets for row in estimate(get, definition)]
            return [Consumed(table, None, sum(row.read for row in rows) * factor, 0.0)]
        case Put():
            return [
                Consumed(table, None, 0.0, write_units(item_size(request.item))),
                *_entries(request.item, definition),
            ]
        case Update():
            return [Consumed(table, None, 0.0, 1.0), *_moved_entries(request, definition)]
        case Delete() | Check():
            return [Consumed(table, None, 0.0, 1.0)]
        case BatchWrite():
            return [row for write in request.writes for row in estimate(write, definition)]
        case TransactWrite():
            rows = [row for write in request.writes for row in estimate(write, definition)]
            # Double on the table, and not on its indexes.
            return [row if row.index else Consumed(row.table, None, row.read * 2, row.write * 2) for row in rows]
    return []


def _entries(item: Item, definition: TableDefinition) -> list[Consumed]:
    return [
        Consumed(definition.name, index.name, 0.0, write_units(_entry_size(item, index, definition)))
        for index in definition.indexes
        if all(key.name in item for key in index.keys)
    ]


def _entry_size(item: Item, index: IndexDefinition, definition: TableDefinition) -> int:
    if index.projection.kind == "ALL":
        return item_size(item)
    names = {key.name for key in (*definition.keys, *index.keys)} | set(index.projection.attributes)
    return item_size({name: value for name, value in item.items() if name in names})


def _moved_entries(request: Update, definition: TableDefinition) -> list[Consumed]:
    """An update that sets an index key takes the entry out at one place and puts it in at another."""
    changed = {action.path.steps[0] for action in request.actions if isinstance(action.path, Path)}
    return [
        Consumed(definition.name, index.name, 0.0, 2.0)
        for index in definition.indexes
        if any(key.name in changed for key in index.keys)
    ]


def _answer(request: Request, definition: TableDefinition) -> Response:
    match request:
        case Query() | Scan():
            return PageResponse([], 0, 0, None)
        case BatchGet() | TransactGet():
            return BatchGetResponse([None] * len(request.gets))
        case BatchWrite() | TransactWrite():
            return WriteResponse()
        case CreateTable() | UpdateTable() | SetTimeToLive() | DropTable() | DescribeTable():
            return TableResponse(definition)
        case ListTables():
            return TablesResponse((definition.name,))
        case ListStreams():
            return StreamsResponse(())
        case TagTable() | ListTags():
            return TagsResponse(definition.tags)
        case ReadChanges():
            return ChangesResponse([], None)
    return ItemResponse(None)


def _partitions(request: Any) -> list[str]:
    match request:
        case Query():
            return [str(next(iter(request.partition[1].values())))]
        case Put():
            return [_first(request.item)]
        case Get() | Update() | Delete() | Check():
            return [_first(request.key)]
        case BatchGet() | TransactGet():
            return [key for get in request.gets for key in _partitions(get)]
        case BatchWrite() | TransactWrite():
            return [key for write in request.writes for key in _partitions(write)]
    return []


def _first(item: Item) -> str:
    return str(next(iter(next(iter(item.values())).values())))


def _described(request: Any) -> str:
    match request:
        case Query() | Scan():
            where = f"index {request.index}" if request.index else "table"
            return f"{type(request).__name__} on {where}, {', '.join(_partitions(request)) or 'all partitions'}"
        case BatchGet() | TransactGet():
            return f"{type(request).__name__} of {len(request.gets)} items"
        case BatchWrite() | TransactWrite():
            kinds = ", ".join(type(write).__name__ for write in request.writes)
            return f"{type(request).__name__} of {len(request.writes)} items ({kinds})"
    return f"{type(request).__name__} {', '.join(_partitions(request))}".rstrip()
