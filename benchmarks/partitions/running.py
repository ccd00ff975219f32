"""Runs a workload on a table, second by second, and collects the outcome.

A find queries every shard in which an entry may be, at half a read unit each. The writes of a value come from
another writer each second, so that all writers see all values. The table's own keys are spread evenly.

A value may also be the node to which an edge leads. Then each write has a second entry, in an index over the targets of
edges, whose partition key is the target with or without a shard. Entries of a second that go to several shards of an
index are divided into at most one part per shard, of at least `_PART` writes: a target that is written ten times in a
second reaches one of its shards in that second, and another one in the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from math import ceil
from random import Random
from typing import Any

from adjoin.cost import dollars
from adjoin.sharding.maps import Shard, Sharding
from benchmarks.partitions.partitions import EVERYWHERE, Rules, Span, span_of
from benchmarks.partitions.placing import Placing, number_of_shards, placing_of, shards_asked
from benchmarks.partitions.tables import FRESH_READS, FRESH_WRITES, Read, Route, Space, Table, Write
from benchmarks.partitions.workloads import Place, Recorded, Zipf, poisson

INDEX, TARGETS = "index", "targets"
MONTH = 30 * 24 * 3600
HOTTEST = 3
RULES = Rules()
_PART = 25.0
"""Writes of one second that are placed together, if there are two indexes."""
_GROUPS = 24
"""The number of groups in which values are followed if single ones do not matter."""
FIND = 0.5
"""Read units of one query of an index that finds little."""


@dataclass(frozen=True, slots=True)
class Hot:
    """A partition with high load: units per second, and the share of them that was refused."""

    space: str
    writes: float
    refused: float
    keys: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a workload with one way of sharding. Shares and rates are for the time after the warm-up."""

    sharding: str
    warm_up: int
    """Seconds that do not count."""
    asked: float
    """Writes per second."""
    throttled: float
    """The share of writes that was refused."""
    throttled_in_all: float
    """The same, including the warm-up."""
    reads_throttled: float
    shards: int | None
    ideal: int
    """The number of shards that would be enough if the load were spread evenly over them."""
    partitions: int
    """Partitions of the index at the end."""
    shards_a_find: float | None
    write_units: float
    """Units used per second by the table, its indexes, and the records of the sharding."""
    read_units: float
    dollars_a_month: float
    hottest: tuple[Hot, ...]
    minutes: tuple[float, ...]
    """The share of writes refused in each minute."""

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Tally:
    """Totals, from the first second and since the warm-up."""

    warm_up: int
    minutes: list[list[float]] = field(default_factory=list)
    seconds: int = 0
    asked: float = 0.0
    refused: float = 0.0
    reads_asked: float = 0.0
    reads_refused: float = 0.0
    write_units: float = 0.0
    read_units: float = 0.0

    def second(self, number: int, table: Table, writes: list[Write], reads: list[Read], kept: float) -> None:
        asked = sum(write.units for write in writes)
        refused = sum(write.units * (1 - write.share) for write in writes)
        while len(self.minutes) <= number // 60:
            self.minutes.append([0.0, 0.0])
        self.minutes[-1][0] += asked
        self.minutes[-1][1] += refused
        if number < self.warm_up:
            return
        self.seconds += 1
        self.asked += asked
        self.refused += refused
        self.reads_asked += sum(read.units for read in reads)
        self.reads_refused += sum(read.units * (1 - read.share) for read in reads)
        # A write that is refused in one place is not written to the others either.
        self.write_units += kept + sum(
            write.share * (write.units + sum(units for _, units in write.entries)) for write in writes
        )
        self.read_units += sum(read.units * read.share for read in reads)

    def outcome(
        self,
        name: str,
        table: Table,
        hot: tuple[Hot, ...],
        sharding: Sharding | None,
        a_find: float | None = None,
        rate: float | None = None,
    ) -> Outcome:
        seconds = max(1, self.seconds)
        whole = [sum(each) for each in zip(*self.minutes, strict=True)] or [0.0, 0.0]
        return Outcome(
            name,
            self.warm_up,
            self.asked / seconds,
            _share(self.refused, self.asked),
            _share(whole[1], whole[0]),
            _share(self.reads_refused, self.reads_asked),
            len(sharding.all_places(lambda value: True)) if sharding else None,
            max(1, ceil((rate or self.asked / seconds) / table.table.rules.writes)),
            sum(len(space.partitions.all) for space in table.indexes.values()),
            a_find,
            self.write_units / seconds,
            self.read_units / seconds,
            dollars(self.read_units, self.write_units) * MONTH / seconds,
            hot,
            tuple(_share(refused, asked) for asked, refused in self.minutes),
        )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _hottest(table: Table, routes: Iterable[Route], seconds: int) -> tuple[Hot, ...]:
    keys: dict[int, dict[str, None]] = {}
    for route in routes:
        for part in route.parts:
            keys.setdefault(id(part.partition), {})[route.label] = None
    return tuple(
        Hot(
            space.name,
            each.asked / max(1, seconds),
            _share(each.refused, each.asked),
            ", ".join(list(keys.get(id(each), {}))[:3]),
        )
        for space, each in table.hottest(HOTTEST)
        if each.asked
    )


# --- generated workloads -----------------------------------------------------------------------


def simulate(
    workload: Zipf,
    sharding: str,
    *,
    targets: str | None = None,
    warm_up: int = 900,
    writers: int = 8,
    rules: Rules = RULES,
    is_fresh: bool = False,
) -> Outcome:
    """Runs a workload with one way of sharding its index.

    `targets` is the way of sharding a second index, over the targets of edges; None if there is none.
    Unless it is fresh, the table had the workload's rates before, so it accepts twice these rates, evenly spread.
    """
    placing = placing_of(sharding, writers)
    shards = None if targets is None else number_of_shards(targets)
    warm = (FRESH_WRITES, FRESH_READS) if is_fresh else (2 * workload.writes, 2 * workload.reads)
    table = Table([INDEX] if shards is None else [INDEX, TARGETS], rules, *warm)
    run = _Run(workload, placing, table, writers, shards)
    tally = _Tally(warm_up)
    for second in range(workload.seconds):
        if second == warm_up:
            table.clear_totals()
        run.second(second, tally)
    known = placing.sharding()
    asked = shards_asked(known, workload.names, workload.weights)
    hot = _hottest(table, [*run.routes.values(), *run.target_routes.values()], tally.seconds)
    name = placing.name if targets is None else f"{placing.name}, targets {targets}"
    return tally.outcome(name, table, hot, known, asked, workload.writes)


def _groups(workload: Zipf, number: int | None) -> list[tuple[str, str, float]]:
    """The values, each with its weight; or `number` groups of them, with the most frequent values on their own."""
    each = sorted(zip(workload.weights, workload.names, strict=True), reverse=True)
    if number is None or number >= len(each):
        return [(name, name, weight) for weight, name in each]
    apart, rest = each[: number // 2], sorted(each[number // 2 :], key=lambda pair: pair[1])
    step = ceil(len(rest) / (number - number // 2))
    some = [rest[at : at + step] for at in range(0, len(rest), step)]
    return [
        *((name, name, weight) for weight, name in apart),
        *((group[0][1], group[-1][1], sum(weight for weight, _ in group)) for group in some),
    ]


class _Run:
    def __init__(self, workload: Zipf, placing: Placing, table: Table, writers: int, targets: int | None) -> None:
        """`targets` is the number of shards of each target in the second index; None if there is none."""
        self._workload = workload
        self._targets = targets
        self._placing = placing
        self._table = table
        self._writers = writers
        self._random = Random(workload.seed)
        self._everywhere = Route(table.table, EVERYWHERE, "all keys")
        self.routes: dict[tuple[Shard, str], Route] = {}
        """By shard and value."""
        self.target_routes: dict[tuple[str, int], Route] = {}
        """By target and shard."""
        self._spreads: dict[Hashable, list[list[tuple[Shard, Route, float]]]] = {}
        self._groups = _groups(workload, None if placing.is_by_value or targets is not None else _GROUPS)

    def second(self, second: int, tally: _Tally) -> None:
        placing, now = self._placing, float(second)
        placing.begin(now)
        level = self._workload.level(second)
        writes: list[Write] = []
        seen: list[tuple[int, Shard, str]] = []
        spreads = [self._spread(writer, now) for writer in range(self._writers)]
        for number, (value, _, weight) in enumerate(self._groups):
            writer = (number + second) % self._writers
            mean = self._workload.writes * level * weight
            for shard, routes, share in self._placed(value, mean, spreads[writer][number]):
                units = poisson(self._random, mean * share)
                if units:
                    entries = [(route, units) for route in routes]
                    writes.append(Write(self._everywhere, units, entries, units * self._workload.size))
                    seen.append((writer, shard, value))
        reads = list(self._reads(level)) if self._workload.reads else []
        self._table.second(now, writes, reads)
        for write, (writer, shard, value) in zip(writes, seen, strict=True):
            refused = write.units * (1 - write.share)
            placing.saw(writer, shard, value, write.units - refused, refused, write.size * write.share)
        tally.second(second, self._table, writes, reads, placing.end(now))

    def _placed(
        self, value: str, mean: float, spread: list[tuple[Shard, Route, float]]
    ) -> Iterator[tuple[Shard, tuple[Route, ...], float]]:
        """The shards of a value's entries in one second, their places in all indexes, and their shares."""
        if self._targets is None:
            yield from ((shard, (route,), share) for shard, route, share in spread)
            return
        if not self._placing.is_by_value and mean < _PART * len(spread):
            # All shards get the same, and not all of them in this second.
            some = self._random.sample(spread, max(1, ceil(mean / _PART)))
            spread = [(shard, route, 1 / len(some)) for shard, route, _ in some]
        for shard, route, share in spread:
            parts = min(self._targets, max(1, ceil(mean * share / _PART)))
            first = self._random.randrange(self._targets)
            for number in range(first, first + parts):
                target = self._target_route(value, number % self._targets)
                yield shard, (route, target), share / parts

    def _target_route(self, target: str, shard: int) -> Route:
        """The place of the entries of a target in one of its shards."""
        route = self.target_routes.get((target, shard))
        if route is None:
            span = span_of(f"SKILL#{target}#{shard}")
            span = Span(span.start + span.length - 1) if self._workload.ids_grow else span
            label = f"{target}, shard {shard}"
            route = self.target_routes[target, shard] = Route(self._table.indexes[TARGETS], span, label)
        return route

    def _spread(self, writer: int, now: float) -> list[list[tuple[Shard, Route, float]]]:
        """Where a writer puts each value. It is the same for all writers with the same map."""
        state = self._placing.state(writer, now)
        if state not in self._spreads:
            self._spreads[state] = [
                [
                    (shard, self._route(shard, value, last), share)
                    for shard, share in self._placing.spread(writer, value, now)
                ]
                for value, last, _ in self._groups
            ]
        return self._spreads[state]

    def _route(self, shard: Shard, value: str, last: str) -> Route:
        """The place of the entries with values from `value` to `last`."""
        route = self.routes.get((shard, value))
        if route is None:
            partition = f"SKILL_OF#skill#{shard}"
            first, end = (span_of(partition, f"{each}#", is_prefix=True) for each in (value, last))
            span = Span(first.start, end.start + end.length - first.start)
            # New entries of a value lie after all others if ids grow, and anywhere among them otherwise.
            span = Span(span.start + span.length - 1) if self._workload.ids_grow else span
            route = self.routes[shard, value] = Route(self._table.indexes[INDEX], span, f"shard {shard}")
        return route

    def _reads(self, level: float) -> Iterable[Read]:
        sharding = self._placing.sharding()
        for value, weight in zip(self._workload.names, self._workload.weights, strict=True):
            finds = poisson(self._random, self._workload.reads * level * weight)
            if finds:
                yield from (Read(self._route(shard, value, value), finds * FIND) for shard in sharding.places(value))


# --- recorded workloads ------------------------------------------------------------------------


def replay(
    log: Iterable[Recorded],
    sharding: str,
    *,
    warm_up: int = 0,
    writers: int = 8,
    rules: Rules = RULES,
    warm: tuple[float, float] = (FRESH_WRITES, FRESH_READS),
) -> Outcome:
    """Replays a recorded log with one way of sharding its indexed fields. Each field has its own shards."""
    requests = list(log)
    names = dict.fromkeys(place.index or INDEX for each in requests for place in each.places if each.key or place.index)
    table = Table(names, rules, *warm)
    replaying = _Replaying(table, sharding, writers)
    tally = _Tally(warm_up)
    seconds = {number: list(some) for number, some in groupby(requests, lambda each: int(each.at))}
    for second in range(max(seconds, default=-1) + 1):
        if second == warm_up:
            table.clear_totals()
        replaying.second(second, seconds.get(second, []), tally)
    maps = [placing.sharding() for placing in replaying.placings.values()]
    hot = _hottest(table, replaying.routes.values(), tally.seconds)
    return tally.outcome(sharding, table, hot, maps[0] if len(maps) == 1 else None)


class _Replaying:
    def __init__(self, table: Table, sharding: str, writers: int) -> None:
        self._table = table
        self._sharding = sharding
        self._writers = writers
        self.placings: dict[str, Placing] = {}
        self.routes: dict[tuple[str | None, str, str | None], Route] = {}

    def second(self, second: int, requests: list[Recorded], tally: _Tally) -> None:
        now = float(second)
        for placing in self.placings.values():
            placing.begin(now)
        writes, reads = list[Write](), list[Read]()
        seen: list[tuple[Write, int, Shard, Place]] = []
        for number, request in enumerate(requests):
            writer = number % self._writers
            if request.key is None:
                reads += [read for place in request.places for read in self._read(place)]
                continue
            entries = [self._entry(place, writer, now) for place in request.places]
            route = self._route(None, request.key, "")
            write = Write(route, request.units, [(to, units) for to, units, _ in entries], request.size)
            writes.append(write)
            placed = zip(entries, request.places, strict=True)
            seen += [(write, writer, shard, place) for (_, _, shard), place in placed if shard is not None]
        self._table.second(now, writes, reads)
        for write, writer, shard, place in seen:
            assert place.field is not None
            refused = place.units * (1 - write.share)
            size = write.size * write.share
            self.placings[place.field].saw(writer, shard, place.value, place.units - refused, refused, size)
        tally.second(second, self._table, writes, reads, sum(each.end(now) for each in self.placings.values()))

    def _entry(self, place: Place, writer: int, now: float) -> tuple[Route, float, Shard | None]:
        index = place.index or INDEX
        if place.field is None:
            return self._route(index, str(place.partition), place.sort or ""), place.units, None
        shard = self._placing(place.field).place(writer, place.value, place.id, now)
        route = self._route(index, f"{place.field}#{shard}", f"{place.value}#{place.id}")
        return route, place.units, shard

    def _read(self, place: Place) -> Iterable[Read]:
        if place.field is None:
            yield Read(self._route(place.index, str(place.partition), place.sort), place.units)
            return
        for shard in self._placing(place.field).sharding().places(place.value):
            yield Read(self._route(place.index or INDEX, f"{place.field}#{shard}", place.value), place.units)

    def _placing(self, field: str) -> Placing:
        if field not in self.placings:
            self.placings[field] = placing_of(self._sharding, self._writers)
        return self.placings[field]

    def _route(self, index: str | None, partition: str, sort: str | None) -> Route:
        key = (index, partition, sort)
        route = self.routes.get(key)
        if route is None:
            space: Space = self._table.table if index is None else self._table.indexes[index]
            route = self.routes[key] = Route(space, span_of(partition, sort), partition)
        return route
