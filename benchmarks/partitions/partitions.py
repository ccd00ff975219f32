"""Partitions of a table or an index: what they accept per second, what they refuse, and when they split.

Keys lie on one line, ordered by the hash of the partition key and then by the sort key. A partition is an interval
of that line. Requests are `Span`s, intervals or points of the line. They are followed second by second as amounts, and
not one by one.

What is modelled, and its source:

- 1,000 write units and 3,000 read units per second (service quotas);
- burst: up to 300 s of unused capacity can be used later (burst and adaptive capacity). AWS also says that this
  does not help against the limit of a partition; `Rules(burst=0)` models that reading;
- split for heat: a partition whose load is above its limit for minutes becomes two, at the place that
  halves the load; between partition keys, or along the sort keys of one, unless the table has local
  indexes. A single key cannot be halved, nor the end of sort keys that only grow (AWS Database Blog, "Scaling
  DynamoDB: How partitions, hot keys, and split for heat impact performance", 2023). When it decides and how long
  it takes is not documented; 5 and 5 minutes are in line with the ten minutes of the experiments shown there;
- split for size: at 10 GB.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby, pairwise
from typing import NamedTuple

HASH_BYTES, SORT_BYTES = 8, 24
COLLECTION = 1 << 8 * SORT_BYTES
"""The part of the line that one partition key takes."""
LINE = COLLECTION << 8 * HASH_BYTES
_KEPT = 4096
"""The most spans whose heat is remembered in a hot partition."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The parameters of the model, in seconds and units."""

    writes: float = 1000.0
    reads: float = 3000.0
    burst: float = 300.0
    sustained: float = 300.0
    """Seconds for which a partition must be too hot before it is split."""
    splitting: float = 300.0
    """Seconds that a split takes."""
    size: float = 10e9
    collections_split: bool = True
    """False if the table has local indexes."""


@dataclass(frozen=True, slots=True)
class Span:
    """The place of entries: evenly over an interval of the line, or at its start if the length is 0."""

    start: int
    length: int = 0


EVERYWHERE = Span(0, LINE)


def span_of(partition: str, sort: str | None = None, *, is_prefix: bool = False) -> Span:
    """The place of a key, of all sort keys with a prefix, or of a whole partition key if `sort` is None."""
    start = int.from_bytes(blake2b(partition.encode(), digest_size=HASH_BYTES).digest(), "big") * COLLECTION
    if sort is None:
        return Span(start, COLLECTION)
    text = sort.encode()[:SORT_BYTES]
    start += int.from_bytes(text.ljust(SORT_BYTES, b"\0"), "big")
    return Span(start, 1 << 8 * (SORT_BYTES - len(text)) if is_prefix else 0)


@dataclass(slots=True, eq=False)
class Partition:
    low: int
    high: int
    write_tokens: float
    read_tokens: float
    size: float = 0.0
    writes: float = 0.0
    """Units requested in this second; `reads` likewise."""
    reads: float = 0.0
    write_share: float = 1.0
    """The share of them that is accepted."""
    read_share: float = 1.0
    hot: float = 0.0
    """Seconds for which it was too hot."""
    splits_at: float | None = None
    heat: dict[Span, float] = field(default_factory=dict)
    asked: float = 0.0
    """Write units requested since the totals were cleared; `refused` likewise."""
    refused: float = 0.0


class Part(NamedTuple):
    """The part of a span that lies in one partition, and its share of the span."""

    partition: Partition
    span: Span
    share: float


class Partitions:
    """All partitions of one table or index."""

    def __init__(self, number: int, rules: Rules) -> None:
        self._rules = rules
        full = rules.burst
        edges = [LINE * each // number for each in range(number + 1)]
        self.all = [Partition(low, high, full * rules.writes, full * rules.reads) for low, high in pairwise(edges)]
        self.version = 0
        """Grows with every split, because `under` then returns other partitions."""
        self._index()

    def _index(self) -> None:
        self.all.sort(key=lambda each: each.low)
        self._lows = [each.low for each in self.all]

    def under(self, span: Span) -> list[Part]:
        """The partitions in which a span lies, each with its part of the span."""
        first = bisect_right(self._lows, span.start) - 1
        if not span.length:
            return [Part(self.all[first], span, 1.0)]
        end, parts = span.start + span.length, []
        for each in self.all[first : bisect_left(self._lows, end)]:
            start = max(span.start, each.low)
            length = min(end, each.high) - start
            parts.append(Part(each, Span(start, length), length / span.length))
        return parts

    # --- one second ----------------------------------------------------------------------------

    def begin(self) -> None:
        for each in self.all:
            each.writes = each.reads = 0.0

    def decide(self) -> None:
        """Decides the share that each partition accepts. Bursts are paid with tokens."""
        rules = self._rules
        for each in self.all:
            each.write_share, each.write_tokens = _taken(each.writes, rules.writes, each.write_tokens, rules.burst)
            each.read_share, each.read_tokens = _taken(each.reads, rules.reads, each.read_tokens, rules.burst)

    def is_hot(self, partition: Partition) -> bool:
        return partition.writes > self._rules.writes or partition.reads > self._rules.reads

    def remember(self, part: Part, units: float) -> None:
        """Records where the heat of a hot partition is."""
        heat = part.partition.heat
        if part.span in heat or len(heat) < _KEPT:
            heat[part.span] = heat.get(part.span, 0.0) + units

    def end(self, now: float) -> None:
        """Splits partitions that were hot for long enough, or are too large."""
        rules, due = self._rules, []
        for each in self.all:
            if self.is_hot(each):
                each.hot += 1
            elif each.hot:
                each.hot -= 1
                if not each.hot:
                    each.heat.clear()
            if each.splits_at is None and each.hot >= rules.sustained:
                each.splits_at = now + rules.splitting
            if (each.splits_at is not None and now >= each.splits_at) or each.size > rules.size:
                due.append(each)
        for each in due:
            self._split(each)

    # --- splitting -----------------------------------------------------------------------------

    def grow(self, number: int) -> None:
        """Grows to at least this many partitions by halving the widest ones, as for a new peak of the whole table."""
        while len(self.all) < number:
            widest = max(self.all, key=lambda each: each.high - each.low)
            middle = (widest.low + widest.high) // 2
            self._replace(widest, middle - middle % COLLECTION)

    def _split(self, partition: Partition) -> None:
        partition.hot, partition.splits_at = 0.0, None
        place = _halving(partition, self._rules.collections_split)
        if place is None and partition.size > self._rules.size:
            place = (partition.low + partition.high) // 2
        if place is not None and partition.low < place < partition.high:
            self._replace(partition, place)
        partition.heat.clear()

    def _replace(self, partition: Partition, place: int) -> None:
        upper = Partition(place, partition.high, partition.write_tokens / 2, partition.read_tokens / 2)
        partition.high = place
        partition.write_tokens /= 2
        partition.read_tokens /= 2
        partition.size = upper.size = partition.size / 2
        partition.asked = upper.asked = partition.asked / 2
        partition.refused = upper.refused = partition.refused / 2
        self.all.append(upper)
        self.version += 1
        self._index()


def _taken(asked: float, limit: float, tokens: float, burst: float) -> tuple[float, float]:
    """The share of the requested units that is accepted, and the tokens that are left."""
    taken = min(asked, limit + tokens)
    return (taken / asked if asked else 1.0), max(0.0, min(burst * limit, tokens + limit - taken))


def _halving(partition: Partition, within_collections: bool) -> int | None:
    """Where to split so that both sides have as equal a load as possible; None if no split divides it."""
    total = sum(partition.heat.values())
    best: tuple[float, int] | None = None
    for place, below in _cuts(partition, total / 2, within_collections):
        if 0 < below < total and partition.low < place < partition.high:
            found = (abs(total / 2 - below), place)
            best = found if best is None else min(best, found)
    return None if best is None else best[1]


def _cuts(partition: Partition, half: float, within_collections: bool) -> Iterable[tuple[int, float]]:
    """Places to cut at, each with the heat below it."""
    below = 0.0
    for key, spans in groupby(sorted(partition.heat.items(), key=_start), lambda each: each[0].start // COLLECTION):
        yield key * COLLECTION, below
        for span, units in spans:
            if within_collections:
                yield span.start, below
                if span.length and below < half < below + units:
                    yield span.start + round(span.length * ((half - below) / units)), half
            below += units
            if within_collections and not span.length:
                yield span.start + 1, below
        yield (key + 1) * COLLECTION, below


def _start(each: tuple[Span, float]) -> int:
    return each[0].start
