"""An on-demand table with its indexes: which share of the requests of a second it accepts.

- A write is accepted if the table and every index in which it has an entry accept it: an index that is short of write
  units throttles writes to the table (back-pressure). DynamoDB does so when updates of an index have piled up. Here
  it happens in the same second, and only for entries in partitions that are short.
- The table and each index have a total limit per second: at first 4,000 writes and 12,000 reads, or what they were
  warmed to; and after every half hour, twice the highest rate that was reached.
- A refused request is lost: there are no retries, so that the load stays what the workload says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.partitions.partitions import Part, Partition, Partitions, Rules, Span

FRESH_WRITES, FRESH_READS = 4000.0, 12000.0
HALF_HOUR = 1800.0
_DIGITS = 9
"""Shares are rounded to this many digits, so that a share of 1 does not become a little less."""


class Route:
    """A place in the table or in one index. It remembers its partitions until one of them splits."""

    __slots__ = ("_parts", "_version", "label", "space", "span")

    def __init__(self, space: Space, span: Span, label: str) -> None:
        self.space = space
        self.span = span
        self.label = label
        self._version = -1
        self._parts: list[Part] = []

    @property
    def parts(self) -> list[Part]:
        if self._version != self.space.partitions.version:
            self._version = self.space.partitions.version
            self._parts = self.space.partitions.under(self.span)
        return self._parts

    @property
    def write_share(self) -> float:
        """The share of the writes to this place that is accepted in this second."""
        share = self.space.write_factor * sum(part.share * part.partition.write_share for part in self.parts)
        return round(share, _DIGITS)

    @property
    def read_share(self) -> float:
        share = self.space.read_factor * sum(part.share * part.partition.read_share for part in self.parts)
        return round(share, _DIGITS)


@dataclass(slots=True)
class Write:
    """Writes of one second that are accepted or refused together: to the table, and to some indexes."""

    table: Route
    units: float
    entries: Sequence[tuple[Route, float]] = ()
    """The places in indexes, and the units of each entry."""
    size: float = 0.0
    share: float = 1.0
    """The share that was accepted."""


@dataclass(slots=True)
class Read:
    route: Route
    units: float
    share: float = 1.0


@dataclass
class Space:
    """The table or an index: its partitions, and its total limits."""

    name: str
    rules: Rules
    most_writes: float = FRESH_WRITES
    most_reads: float = FRESH_READS
    partitions: Partitions = field(init=False)
    write_factor: float = field(default=1.0, init=False)
    read_factor: float = field(default=1.0, init=False)
    writes_taken: float = field(default=0.0, init=False)
    reads_taken: float = field(default=0.0, init=False)
    _peaks: tuple[float, float] = field(default=(0.0, 0.0), init=False)

    def __post_init__(self) -> None:
        self.partitions = Partitions(self._wanted(), self.rules)

    def _wanted(self) -> int:
        return max(
            1, -(-int(self.most_writes) // int(self.rules.writes)), -(-int(self.most_reads) // int(self.rules.reads))
        )

    def decide(self) -> None:
        self.partitions.decide()
        writes = sum(each.writes * each.write_share for each in self.partitions.all)
        reads = sum(each.reads * each.read_share for each in self.partitions.all)
        self.write_factor = min(1.0, self.most_writes / writes) if writes else 1.0
        self.read_factor = min(1.0, self.most_reads / reads) if reads else 1.0
        self.writes_taken = writes * self.write_factor
        self.reads_taken = reads * self.read_factor
        self._peaks = (max(self._peaks[0], self.writes_taken), max(self._peaks[1], self.reads_taken))

    def end(self, now: float) -> None:
        for each in self.partitions.all:
            each.asked += each.writes
            each.refused += each.writes * (1 - each.write_share * self.write_factor)
        self.partitions.end(now)
        if now % HALF_HOUR == 0 and now:
            self.most_writes = max(self.most_writes, 2 * self._peaks[0])
            self.most_reads = max(self.most_reads, 2 * self._peaks[1])
            self._peaks = (0.0, 0.0)
            self.partitions.grow(self._wanted())


class Table:
    """A table and its indexes, second by second."""

    def __init__(self, indexes: Iterable[str], rules: Rules, writes: float = 0.0, reads: float = 0.0) -> None:
        """`writes` and `reads` are the rates to which the table and its indexes were warmed."""
        warm = max(writes, FRESH_WRITES), max(reads, FRESH_READS)
        self.table = Space("table", rules, *warm)
        self.indexes = {name: Space(name, rules, *warm) for name in indexes}

    @property
    def spaces(self) -> tuple[Space, ...]:
        return (self.table, *self.indexes.values())

    def second(self, now: float, writes: Sequence[Write], reads: Sequence[Read] = ()) -> None:
        """Decides all requests of one second, and sets the share of each write and read."""
        for space in self.spaces:
            space.partitions.begin()
        written: dict[Route, float] = {}
        for write in writes:
            written[write.table] = written.get(write.table, 0.0) + write.units
            for route, units in write.entries:
                written[route] = written.get(route, 0.0) + units
        for route, units in written.items():
            for part in route.parts:
                part.partition.writes += units * part.share
        for read in reads:
            for part in read.route.parts:
                part.partition.reads += read.units * part.share
        for space in self.spaces:
            space.decide()
        shares = {route: route.write_share for route in written}
        sizes: dict[Route, float] = {}
        for write in writes:
            routes = (write.table, *(route for route, _ in write.entries))
            write.share = min(shares[route] for route in routes)
            for route in routes:
                sizes[route] = sizes.get(route, 0.0) + write.size * write.share
        for route, size in sizes.items():
            for part in route.parts:
                part.partition.size += size * part.share
        for read in reads:
            read.share = read.route.read_share
        self._remember(written, reads)
        for space in self.spaces:
            space.end(now)

    def _remember(self, written: dict[Route, float], reads: Sequence[Read]) -> None:
        for route, units in written.items():
            limit = route.space.rules.writes
            for part in route.parts:
                if part.partition.writes > limit:
                    route.space.partitions.remember(part, units * part.share / limit)
        for read in reads:
            limit = read.route.space.rules.reads
            for part in read.route.parts:
                if part.partition.reads > limit:
                    read.route.space.partitions.remember(part, read.units * part.share / limit)

    def clear_totals(self) -> None:
        for space in self.spaces:
            for each in space.partitions.all:
                each.asked = each.refused = 0.0

    def hottest(self, number: int) -> list[tuple[Space, Partition]]:
        """The partitions with the highest load since the totals were cleared."""
        every = [(space, each) for space in self.spaces for each in space.partitions.all]
        return sorted(every, key=lambda each: -each[1].asked)[:number]
