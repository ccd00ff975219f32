"""The model of partitions, in cases small enough to know the answer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.partitions.partitions import COLLECTION, EVERYWHERE, LINE, Partitions, Rules, Span, span_of
from benchmarks.partitions.tables import Read, Route, Space, Table, Write

NEVER = Rules(sustained=10**9)
"""Without splits."""


def one_key(table: Table, rate: float, seconds: int, *, span: Span | None = None) -> list[float]:
    """The share that is taken of so many writes a second to one partition of the index, second by second."""
    everywhere = Route(table.table, EVERYWHERE, "")
    route = Route(table.indexes["index"], span or span_of("key", "sort"), "")
    shares = []
    for second in range(seconds):
        write = Write(everywhere, rate, ((route, rate),))
        table.second(float(second), [write])
        shares.append(write.share)
    return shares


def warm(rules: Rules, rate: float = 100_000.0) -> Table:
    return Table(["index"], rules, rate, rate)


# --- limits and burst --------------------------------------------------------------------------


def test_a_partition_refuses_a_third_of_1500_writes_after_its_burst() -> None:
    """300 s of 1,000 units last 600 s at 500 a second more than it takes."""
    shares = one_key(warm(NEVER), 1500, 700)
    assert shares[:600] == [1.0] * 600
    assert shares[600:] == [pytest.approx(2 / 3)] * 100


def test_without_burst_it_refuses_them_at_once() -> None:
    assert one_key(warm(Rules(burst=0, sustained=10**9)), 1500, 3) == [pytest.approx(2 / 3)] * 3


def test_unused_capacity_comes_back() -> None:
    table = warm(Rules(burst=10, sustained=10**9))
    assert one_key(table, 2000, 11)[-1] == 0.5
    one_key(table, 0, 5)
    assert one_key(table, 2000, 6) == [1.0] * 5 + [0.5]


def test_reads_have_a_limit_of_their_own() -> None:
    table = warm(Rules(burst=0))
    read = Read(Route(table.indexes["index"], span_of("key", "sort"), ""), 6000.0)
    write = Write(
        Route(table.table, EVERYWHERE, ""), 1000.0, ((Route(table.indexes["index"], read.route.span, ""), 1000.0),)
    )
    table.second(0.0, [write], [read])
    assert (write.share, read.share) == (1.0, 0.5)


# --- table and index ---------------------------------------------------------------------------


def test_an_index_that_runs_short_throttles_the_table() -> None:
    table = warm(Rules(burst=0))
    everywhere, index = Route(table.table, EVERYWHERE, ""), table.indexes["index"]
    hot = Write(everywhere, 4000.0, ((Route(index, span_of("hot", ""), ""), 4000.0),))
    cold = Write(everywhere, 100.0, ((Route(index, span_of("cold", ""), ""), 100.0),))
    bare = Write(everywhere, 100.0)
    table.second(0.0, [hot, cold, bare])
    assert [each.share for each in (hot, cold, bare)] == [0.25, 1.0, 1.0]


def test_a_fresh_table_takes_4000_writes_and_twice_its_peak_every_half_hour() -> None:
    table = Table([], Rules())
    route, shares = Route(table.table, EVERYWHERE, ""), {}
    assert len(table.table.partitions.all) == 4
    for second in range(3700):
        write = Write(route, 16_000.0)
        table.second(float(second), [write])
        shares[second] = write.share
    assert [shares[second] for second in (0, 1800, 1801, 3601)] == [0.25, 0.25, 0.5, 1.0]
    assert len(table.table.partitions.all) >= 16


# --- splits ------------------------------------------------------------------------------------


def partitions_after(span_list: list[Span], seconds: int, rules: Rules, rate: float = 2000.0) -> Space:
    """An index of one partition, after so many seconds of writes, the same to each of some places."""
    space = Space("index", rules, most_writes=1000, most_reads=1000)
    space.most_writes = 10**9
    routes = [Route(space, span, "") for span in span_list]
    for second in range(seconds):
        space.partitions.begin()
        for route in routes:
            for part in route.parts:
                part.partition.writes += rate / len(routes) * part.share
        space.decide()
        for route in routes:
            for part in route.parts:
                if space.partitions.is_hot(part.partition):
                    space.partitions.remember(part, rate / len(routes) * part.share)
        space.end(float(second))
    return space


QUICK = Rules(burst=0, sustained=60, splitting=30)
KEYS = sorted((span_of("a", "x"), span_of("b", "x")), key=lambda span: span.start)


def test_a_hot_partition_splits_between_its_keys_after_minutes() -> None:
    assert len(partitions_after(KEYS, 89, QUICK).partitions.all) == 1
    first, second = partitions_after(KEYS, 95, QUICK).partitions.all
    assert first.low == 0
    assert KEYS[0].start < first.high == second.low <= KEYS[1].start
    assert second.high == LINE
    assert first.writes == second.writes == 1000


def test_a_partition_within_its_limit_never_splits() -> None:
    assert len(partitions_after(KEYS, 1000, QUICK, rate=1000).partitions.all) == 1


def test_one_collection_splits_along_its_sort_keys_until_it_is_cool() -> None:
    spread = span_of("key", "value#", is_prefix=True)
    space = partitions_after([spread], 1000, QUICK, rate=4000)
    asked = [each.writes for each in space.partitions.all if each.writes]
    assert asked == [pytest.approx(1000, rel=0.01)] * 4


def test_a_sort_key_that_only_grows_is_never_split() -> None:
    space = partitions_after([Span(span_of("key", "value#").start)], 1000, QUICK, rate=4000)
    assert max(each.writes for each in space.partitions.all) == 4000


def test_a_collection_with_a_local_index_is_never_split() -> None:
    rules = Rules(burst=0, sustained=60, splitting=30, collections_split=False)
    space = partitions_after([span_of("key", "a", is_prefix=True), span_of("key", "b", is_prefix=True)], 1000, rules)
    assert max(each.writes for each in space.partitions.all) == 2000
    assert all(each.low % COLLECTION == 0 for each in space.partitions.all)


def test_a_partition_of_more_than_10_gb_splits() -> None:
    table = warm(Rules(size=1000.0), 4000)
    write = Write(Route(table.table, EVERYWHERE, ""), 4.0, size=4100.0)
    table.second(0.0, [write])
    assert len(table.table.partitions.all) == 8


def test_partitions_cover_the_line_without_gaps() -> None:
    partitions = Partitions(7, Rules())
    partitions.grow(50)
    ends = [(each.low, each.high) for each in partitions.all]
    assert ends[0][0] == 0
    assert ends[-1][1] == LINE
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    assert sum(part.share for part in partitions.under(EVERYWHERE)) == pytest.approx(1)
    assert [part.share for part in partitions.under(span_of("a", "b"))] == [1.0]
