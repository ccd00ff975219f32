"""What requests would cost, found out in a rehearsal; and prices. `adjoin.meters` counts what was consumed.

Everything here works on requests and responses as values. A rehearsal runs a plan on the responses of
an empty table, so its units are the least that the call can cost. The sizes of written items are known
and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from dataclasses import replace
from types import TracebackType
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.expressions import Path
from adjoin.notebooks import table_html
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
from adjoin.runner import REHEARSAL, Rehearsal
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.units import MAX_BATCH_GET, MAX_PAGE_SIZE, MAX_TRANSACTION, read_units, write_units
from adjoin.values import Item, item_size

# --- prices ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of on-demand tables in one region, in US dollars."""

    region: str
    as_of: str
    million_reads: float
    million_writes: float
    gigabyte_month: float


PRICES = Prices("us-east-1", "2024-11", million_reads=0.125, million_writes=0.625, gigabyte_month=0.25)


def dollars(rcu: float, wcu: float, prices: Prices = PRICES) -> float:
    """Returns the price of a number of read units and write units."""
    return (rcu * prices.million_reads + wcu * prices.million_writes) / 1_000_000


def counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


# --- the rehearsal -----------------------------------------------------------------------------

_FOUND = 1000
"""The greatest number of edges that one query of a fan-out reads."""

ARRIVAL = 110
"""The size in bytes of an arrival, the item that says that an edge arrives at a node, with short ids."""

SMALL = 256
"""The assumed size in bytes of an edge, if the caller does not give one."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """What `maintain` does after a change of a node, for each edge that has a copied field of it.

    Each edge is read with the nodes from which it copies, written in a transaction that checks these nodes, and read
    again when the change stream delivers that write. `size` is the size of an edge in bytes; nodes are assumed to be
    small.
    """

    node: str
    """The partition key of the node."""
    edge: str
    fields: tuple[str, ...]
    """The copied fields of the edge that change."""
    index: str | None
    """The index through which the edges are found; None for the table itself."""
    items: int
    """The number of items that are written per edge: its own and its index copies."""
    entries: int
    """The number of index entries that are written with them."""
    others: int
    """The number of other nodes from which the edge copies; the transaction checks them too."""

    @property
    def wcu_per_edge(self) -> float:
        """Write units per small edge."""
        return self._wcu_of(SMALL)

    @property
    def edges_a_request(self) -> int:
        """The number of edges in one transaction. One item of it is the check of the node."""
        return (MAX_TRANSACTION - 1) // (self.items + self.others)

    def rcu(self, edges: int, size: int = SMALL) -> float:
        """Read units for a number of edges: the queries that find them, and two reads of each.

        Edges that are found through an index are also found by their arrivals, because the index may lag.
        """
        per_edge = read_units(size, consistent=True) + self.others * read_units(0, consistent=True)
        arrivals = 0.0 if self.index is None else read_units(edges * ARRIVAL, consistent=True)
        return 2 * edges * per_edge + read_units(edges * size, consistent=self.index is None) + arrivals

    def wcu(self, edges: int, size: int = SMALL) -> float:
        """Write units for a number of edges, and for the check of the node in each transaction."""
        return edges * self._wcu_of(size) + self._transactions(edges) * write_units(0, transactional=True)

    def requests(self, edges: int, size: int = SMALL) -> int:
        """The number of requests: transactions, the batch gets of both reads, and the queries that find the edges."""
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
        found = f"index {self.index} and arrivals" if self.index else "the table"
        return (
            f"then maintain writes {' and '.join(self.fields)} of each {self.edge} at {self.node} (found through "
            f"{found}): {self.rcu(1000) / 1000:.3g} RCU and {self.wcu_per_edge:g} WCU per edge, "
            f"{self.edges_a_request} edges per transaction"
        )


@dataclass(frozen=True)
class Counting:
    """What `maintain` does after an edge is written, to apply it to aggregates.

    Nodes are assumed to have index copies only for these aggregates, and to be small if no size is given.
    """

    edge: str
    fields: tuple[str, ...]
    """The aggregates to which the edge contributes."""
    ledgers: int
    """The number of ledgers. They say what the edge has contributed, so that a change is applied as a difference."""
    bytes: int
    """The size of the ledgers, without the 100 bytes that DynamoDB adds per item."""
    checks: int
    """The number of items that the transaction checks: the edge and its far node, if a rule reads that."""
    ranks: int
    """The number of ranks, for least, greatest, latest and top values. They are written outside transactions."""
    nodes: int
    """The number of nodes with aggregates to which the edge contributes."""
    arrivals: int
    """The number of arrivals: 1 if one is written beside the target, so that the edge is found from there."""
    above: tuple[str, ...]
    """The classes of edges that read the changed aggregates at their far nodes; each such edge is reconciled too."""
    entries: int = 0
    """The number of index entries of its nodes that move: one is removed, and one is added."""
    copies: int = 0
    """The number of index copies that these entries are of."""
    sets: int = 0
    """The number of sets of different nodes in which the far node may be. A set is part of the near node."""
    written_again: int = 0
    """The number of its nodes that are written once more, because their ranks are read: those with a latest value."""

    def wcu(self, edges: int = 1, per_node: int = 1, node_size: int = 0) -> float:
        """Write units for a number of edges in one batch, `per_node` of which share the node at one end.

        `node_size` is the size of the near node in bytes, with its sets of different nodes. Aggregates over further
        hops cost extra: `wcu_above` for each edge that reads one of those nodes.
        """
        twice, node = write_units(0, transactional=True), write_units(node_size, transactional=True)
        items = edges * (self.ledgers + self.checks) + self._written_twice(edges, per_node)
        nodes = _parts(edges, per_node) + (self.nodes - 1) * edges if self.nodes else 0
        moved = nodes / self.nodes * (2 * self.entries * write_units(0) + self.copies * node) if self.nodes else 0
        again = nodes / self.nodes * self.written_again * write_units(node_size) if self.nodes else 0
        single = (edges * (self.ranks + self.arrivals) + 1) * write_units(0)
        return items * twice + nodes * node + moved + again + single

    def _written_twice(self, edges: int, per_node: int) -> int:
        """How many ledgers and nodes are written in two transactions, because one has no room for both ends.

        A ledger that both ends share belongs to two nodes. Where its nodes are parted, it is written with each. This
        happens to about half of the edges of the node at which a transaction is full, or to all edges of a node that
        no transaction has room for.
        """
        if self.nodes <= self.ledgers:
            return 0
        per_edge = self.ledgers + self.checks + 1
        if per_node * per_edge + 1 > _ROOM:
            return edges * self.ledgers
        full = per_node * edges * per_edge + edges
        return (_parts(full, per_node * _ROOM) - 1) * min(per_node // 2, _MOST_PARTED)

    @property
    def wcu_above(self) -> float:
        """Write units per edge that reads a changed far node: its ledger, its near node, and checks of both ends.

        Nodes and ledgers with large sets of different nodes cost as many units more as they have KB.
        """
        return 4 * write_units(0, transactional=True) if self.above else 0.0

    def __str__(self) -> str:
        above = f"; then {self.wcu_above:g} WCU per {' and '.join(self.above)} that reads it" if self.above else ""
        if self.sets:
            above += "; with distinct=True, 2 WCU more per KB of the set of different nodes, on each of these nodes"
        return (
            f"then maintain applies this {self.edge} to {', '.join(self.fields) or 'hidden attributes'}: "
            f"{self.wcu():g} WCU, or {self.wcu(1000, 10) / 1000:.1f} per edge in a large batch, and {self.bytes} bytes "
            f"of ledgers{above}"
        )


_ROOM = MAX_TRANSACTION - 3
"""How many items of edges and nodes `maintain` puts into one transaction."""
_MOST_PARTED = 5
"""The greatest number of ledgers and nodes that are written twice per full transaction, as measured."""


def _parts(whole: int, most: int) -> int:
    return -(-whole // most)


@dataclass(frozen=True, slots=True)
class WholeTable:
    """What reading a whole table takes. DynamoDB counts items and bytes about every six hours, a file always."""

    table: str
    items: int | None
    """None if the store did not say."""
    size: int | None
    consistent: bool = False
    is_limited: bool = False
    """Whether the call ends when it has enough results."""
    index: str | None = None
    """The index that is read instead of the table; how large it is, is not known."""

    @property
    def rcu(self) -> float | None:
        """Read units for all items; each request rounds up, so it may be a few more."""
        return None if self.size is None else read_units(self.size, consistent=self.consistent)

    def __str__(self) -> str:
        known = "of unknown size" if self.items is None else f"{counted(self.items, 'item')}, about {self.rcu:g} RCU"
        what = "table" if self.index is None else "index"
        begin = f"reads the whole {what}"
        if self.is_limited:
            begin = f"reads the {what} until it has enough, at most all of it"
        where = self.table if self.index is None else f"{self.index} of {self.table}"
        return f"{begin}: {where}, {known}"


@dataclass(frozen=True, slots=True)
class WalkCost:
    """What a walk costs, by how many edges nodes have. It costs less if nodes are reached twice.

    The requests of a rehearsal show one node at each step. The edges of a node are assumed to fit into one page.
    """

    starts: int
    queries: tuple[int, ...]
    """For each step, the number of queries at a node."""
    reads: tuple[bool, ...]
    """For each step, whether the nodes are read that it reaches."""
    most_requests: int | None = None
    most_rcu: float | None = None
    cap: int | None = None

    def requests(self, edges: int = 10) -> int:
        """The number of requests, if each node has so many edges."""
        nodes = self._reached(edges)
        queries = sum(number * times for number, times in zip(nodes, self.queries, strict=False))
        found = queries + sum(_parts(number, MAX_BATCH_GET) for number in self._read(nodes))
        return found if self.most_requests is None else min(found, self.most_requests)

    @property
    def rounds(self) -> int:
        """The number of rounds. The requests of a round run side by side."""
        return sum(map(bool, self.queries)) + sum(self.reads)

    def rcu(self, edges: int = 10, size: int = SMALL) -> float:
        """Read units, if each node has so many edges of this size in bytes, and nodes are small."""
        nodes = self._reached(edges)
        each = read_units(edges * size)
        queries = sum(number * times * each for number, times in zip(nodes, self.queries, strict=False))
        found = queries + sum(self._read(nodes)) * read_units(0)
        return found if self.most_rcu is None else min(found, self.most_rcu)

    def _reached(self, edges: int) -> list[int]:
        """The number of nodes before each step, and after the last."""
        followed = edges if self.cap is None else min(edges, self.cap)
        # Without knowing the graph, each node that a step reaches counts as a different one. So this is the most.
        return [self.starts * followed**step for step in range(len(self.queries) + 1)]

    def _read(self, nodes: Sequence[int]) -> list[int]:
        """The number of nodes that are read after each step that needs them."""
        return [number for number, is_read in zip(nodes[1:] or nodes, self.reads, strict=True) if is_read]

    def __str__(self) -> str:
        limits = [f"{self.most_requests} requests"] if self.most_requests is not None else []
        limits += [f"{self.most_rcu:g} RCU"] if self.most_rcu is not None else []
        within = f"; its budget is {' and '.join(limits)}" if limits else ""
        return (
            f"the same for each node that a step reaches: with 10 edges per node, at most {self.requests()} requests "
            f"in {counted(self.rounds, 'round')}, about {self.rcu():g} RCU{within}"
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """The requests that a call would make, round by round, and the least number of units that they consume."""

    rounds: tuple[tuple[Request, ...], ...]
    consumed: tuple[Consumed, ...]
    fan_outs: tuple[FanOut, ...] = ()
    """What `maintain` does afterwards, for a changed node whose fields edges copy; its cost is per edge."""
    countings: tuple[Counting, ...] = ()
    """What `maintain` does afterwards, for an edge that contributes to aggregates."""
    whole_table: WholeTable | None = None
    """What the call reads if it goes to its end, for one that scans the table."""
    walk: WalkCost | None = None
    """What a walk costs by the number of edges; `rounds` shows one node at each of its steps."""

    @property
    def scans(self) -> tuple[Scan, ...]:
        return tuple(request for request in self.requests if isinstance(request, Scan))

    def with_table(self, name: str, described: TableResponse | None) -> Explanation:
        """Returns the explanation of a scan with the size of the table that it reads."""
        index = next((scan.index for scan in self.scans if scan.index is not None), None)
        is_known = described is not None and index is None
        items, size = (described.item_count, described.size) if described and is_known else (None, None)
        is_consistent = any(scan.consistent for scan in self.scans)
        is_limited = all(scan.limit is not None for scan in self.scans)
        return replace(self, whole_table=WholeTable(name, items, size, is_consistent, is_limited, index))

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(request for requests in self.rounds for request in requests)

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
        """The indexes that the call reads."""
        read = (request.index for request in self.requests if isinstance(request, Query | Scan))
        return tuple(dict.fromkeys(index for index in read if index is not None))

    @property
    def index(self) -> str | None:
        """The first index that the call reads, or None."""
        return next(iter(self.indexes), None)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partition keys that the call reads or writes.

        For an index with several attributes in its keys, these are the values of all attributes that a query gives with
        "=", joined by " + ".
        """
        return tuple(dict.fromkeys(key for request in self.requests for key in _partitions(request)))

    def __str__(self) -> str:
        return "\n".join([*(f"round {number}: {request}" for number, request in self._described()), *self._totals()])

    def _repr_html_(self) -> str:
        return table_html("Explanation", ("round", "request"), self._described(), self._totals())

    def _described(self) -> list[tuple[int, str]]:
        """The requests as people read them, each with the number of its round."""
        rounds = enumerate(self.rounds, 1)
        return [(number, _described(request)) for number, requests in rounds for request in requests]

    def _totals(self) -> list[str]:
        lines = [f"at least {self.rcu:g} RCU and {self.wcu:g} WCU, ${self.dollars:.9f}"]
        lines += [] if self.whole_table is None else [str(self.whole_table)]
        lines += [] if self.walk is None else [str(self.walk)]
        return [*lines, *map(str, (*self.fan_outs, *self.countings))]


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
        """Returns what was recorded. `follow` and `counted` say what `maintain` does after the requests."""
        asked = [request for requests in self._rounds for request in requests]
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
    """Returns the least that a request consumes: it reads at most 4 KB, and replaces nothing."""
    table = definition.name
    match request:
        case Get():
            return [Consumed(table, None, read_units(0, consistent=request.consistent), 0.0)]
        case Query() | Scan():
            return [Consumed(table, request.index, read_units(0, consistent=request.consistent), 0.0)]
        case BatchGet() | TransactGet():
            # A transactional read takes 2 units per 4 KB, and an eventually consistent one, which `estimate` assumes,
            # takes 0.5.
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
            # A transaction costs double on the table, but not on its indexes.
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
    """An update that changes an index key deletes one index entry and writes another, so it costs two units."""
    # An update does not say what the item had before, so every key that it sets counts as changed.
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
            asked = (request.partition, *request.equal)
            return [" + ".join(str(next(iter(value.values()))) for _, value in asked)]
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
        case Query():
            return f"Query on {_source(request)}, {', '.join(_partitions(request))}{_sent(request)}"
        case Scan():
            number, total = request.segment or (0, 1)
            which = "all partitions" if total == 1 else f"segment {number + 1} of {total}"
            return f"Scan on {_source(request)}, {which}{_sent(request)}"
        case BatchGet() | TransactGet():
            return f"{type(request).__name__} of {len(request.gets)} items"
        case BatchWrite() | TransactWrite():
            kinds = ", ".join(type(write).__name__ for write in request.writes)
            return f"{type(request).__name__} of {len(request.writes)} items ({kinds})"
    return f"{type(request).__name__} {', '.join(_partitions(request))}".rstrip()


def _source(request: Query | Scan) -> str:
    return f"index {request.index}" if request.index else "table"


def _sent(request: Query | Scan) -> str:
    """Which part of the items the answer has, if it does not have whole items."""
    if request.count_only:
        return ", only their number"
    return "" if request.projection is None else f", only {', '.join(map(str, request.projection))}"
