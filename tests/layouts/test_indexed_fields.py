"""What a graph knows of the shards of its fields, and for how long it may believe that."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Graph, Indexed, InvalidValue, Node, field
from adjoin.layouts.indexed_fields import ShardBook, Stretch, disjoint, is_rehearsed, rehearsed
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.sharding.heat import PAUSE, REPORT_AFTER, WINDOW, Heat
from adjoin.sharding.maps import FIRST_LEASE, GRACE, ShardMap


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_an_index_with_a_number_of_shards_has_no_maps_and_counts_nothing() -> None:
    clock = Clock()
    number = ShardNumber("GSI3PK", ("GSI3",), range(3), clock)
    book = ShardBook(number)
    assert not book.is_adaptive
    assert book.is_stale("a"), "nobody has asked yet"
    number.learn(None, clock.now)
    assert not book.is_stale("a")
    clock.now += FIRST_LEASE
    assert book.is_stale("a"), "all fields have the number of the index"
    assert not book.may_move("a")
    assert len(book.places("a", "x")) == 3
    book.place("a", "x", "1", 10 * REPORT_AFTER * 1024)
    assert book.reports() == {}


def test_a_map_is_believed_for_its_lease() -> None:
    clock = Clock()
    book = ShardBook(clock=clock)
    assert book.is_adaptive
    assert book.is_stale("a"), "nobody has asked yet"
    book.learn("a", ShardMap(), clock.now)
    lease = book.map("a").lease
    for later, is_stale in ((0, False), (lease - 1, False), (lease, True), (lease + 1, True), (-1, True)):
        clock.now = 1_000_000.0 + later
        assert book.is_stale("a") == is_stale, later
    assert book.is_stale("b")


def test_an_older_map_is_not_believed() -> None:
    book = ShardBook(clock=Clock())
    first = ShardMap()
    second = first.grown(0, 2)
    third = second.grown(0, 4)
    book.learn("a", second, 1)
    assert book.may_move("a")
    assert not book.may_move("b")
    book.learn("a", first, 2)
    assert book.map("a") == second
    book.learn("a", third, 3)
    assert book.map("a") == third
    # The same one again is news of when it was so.
    book.learn("a", second.grown(0, 4), 4)
    assert book.map("a").version == third.version
    assert (book.map("b"), book.places("b", "x")) == (ShardMap(), ShardMap().places("x"))
    assert len(book.all_places("a", lambda value: True)) == 4


def test_the_same_map_again_is_believed_longer() -> None:
    clock = Clock()
    book = ShardBook(clock=clock)
    book.learn("a", ShardMap(), clock.now)
    clock.now += book.map("a").lease
    assert book.is_stale("a")
    book.learn("a", ShardMap(), clock.now)
    assert not book.is_stale("a")


def test_a_rehearsal_takes_nothing_down() -> None:
    book = ShardBook(clock=Clock())
    with rehearsed():
        assert is_rehearsed()
        book.learn("a", ShardMap().grown(0, 2), 1)
        book.place("a", "x", "1", 10 * REPORT_AFTER * 1024)
        assert book.reports() == {}
    assert not is_rehearsed()
    assert book.map("a") == ShardMap()
    assert book.reports() == {}


def test_what_is_written_is_reported_in_units_when_it_is_enough() -> None:
    clock = Clock()
    book = ShardBook(clock=clock)
    assert book.reports() == {}
    for number, size in enumerate((0, 1, 1024, 1025, 3 * 1024)):
        book.place("a", "x", str(number), size)
    assert book.reports() == {}
    book.throttled()
    clock.now += PAUSE + GRACE
    (heat,) = book.reports().values()
    assert heat.units == 1 + 1 + 1 + 2 + 3
    assert heat.size == 1 + 1024 + 1025 + 3 * 1024
    assert book.reports() == {}, "it is reported once"
    book.place("a", "x", "1", REPORT_AFTER * 1024)
    clock.now += PAUSE + GRACE
    assert list(book.reports()) == ["a"]


def test_how_often_to_report_is_told_by_what_all_write() -> None:
    clock = Clock()
    book = ShardBook(clock=clock)
    book.place("a", "x", "1", 2 * REPORT_AFTER * 1024)
    (heat,) = book.reports().values()
    # The window of that is over, so this is what all wrote in it.
    clock.now += WINDOW
    book.heard("a", Heat(window=heat.window, units=1_000 * REPORT_AFTER))
    book.place("a", "x", "1", 2 * REPORT_AFTER * 1024)
    assert book.reports() == {}


@pytest.mark.parametrize(
    ("stretches", "together"),
    [
        ([], []),
        ([("b", "a")], []),
        ([("a", "c"), ("a", "c")], [("a", "c")]),
        ([("d", "f"), ("a", "c")], [("a", "c"), ("d", "f")]),
        ([("a", "c"), ("b", "f"), ("g", "h")], [("a", "f"), ("g", "h")]),
        ([("a", "f"), ("b", "c"), ("e", "g")], [("a", "g")]),
        ([("a", "c"), ("c", "d")], [("a", "d")]),
        ([("a", None), ("b", "c"), ("d", "e")], [("a", None)]),
        ([("a", "b"), ("c", None), ("d", "e")], [("a", "b"), ("c", None)]),
    ],
)
def test_stretches_that_share_entries_become_one(
    stretches: list[tuple[str, str | None]], together: list[tuple[str, str | None]]
) -> None:
    found = disjoint(Stretch(low, high) for low, high in stretches)
    assert [(each.low, each.high) for each in found] == together


def test_a_stretch_by_prefix_ends_where_the_prefix_does() -> None:
    assert disjoint([Stretch(prefix="a#"), Stretch("a#x", "b")]) == (Stretch("a#", "b"),)
    assert disjoint([Stretch(prefix="a#"), Stretch("c", "d")]) == (Stretch("a#", "a$"), Stretch("c", "d"))
    assert disjoint([Stretch("a", "c", value="1"), Stretch("b", "d", value="1")]) == (Stretch("a", "d", value="1"),)
    assert disjoint([Stretch("a", "c", value="1"), Stretch("b", "d", value="2")]) == (Stretch("a", "d"),)


class Place(Node):
    id: str
    name: Annotated[str, Indexed()]
    path: Annotated[tuple[str, ...], Indexed()]
    height: Annotated[int, Indexed()]


@pytest.mark.parametrize(
    ("name", "prefix", "problem"),
    [
        ("path", "FI", "Place.path is a path, so its prefix is a path too"),
        ("height", "1", "Place.height cannot begin with '1'"),
        ("name", 1, "Place.name cannot begin with 1"),
    ],
)
def test_only_texts_and_paths_have_prefixes(name: str, prefix: Any, problem: str) -> None:
    with Graph(":memory:", [Place]) as g, pytest.raises(InvalidValue, match=problem):
        g.find(Place, field(name).begins_with(prefix))


def test_a_prefix_of_a_path_ends_with_a_whole_step() -> None:
    with Graph(":memory:", [Place]) as g:
        g.put_many(Place(id=each, name=each, path=tuple(each), height=1) for each in ("a", "ab", "b"))
        g.put_many(Place(id=each, name=each, path=(each,), height=1) for each in ("a!", "az"))
        found = {
            prefix: {place.id for place in g.find(Place, field("path").begins_with(prefix))}
            for prefix in ((), ("a",), ("a", "b"))
        }
    assert found == {(): {"a", "ab", "b", "a!", "az"}, ("a",): {"a", "ab"}, ("a", "b"): {"ab"}}


def test_a_stretch_may_hold_a_value_whose_entries_reach_into_it() -> None:
    stretch = Stretch("b", "d#")
    assert [value for value in ("a", "b", "c", "d", "d0", "e") if stretch.may_hold(value)] == ["b", "c", "d"]
    assert Stretch("b").may_hold("z")
    assert Stretch(prefix="b").may_hold("bc")
    assert not Stretch(prefix="b").may_hold("a")
