"""Compiled loops that take addresses give what a plain loop gives, whatever the arrays are like."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import InvalidValue
from adjoin.snapshots.nearby import LAST_SEARCH, Nearby, NearLane, Room, add_near, count_near
from tests.shares import examples
from tests.snapshots.graphs import Bought, Knows, Person, Thing, opened

NODES = 40
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=120)


@dataclass
class Drawn:
    """The edges of one lane, and a value for each; with gaps between rows, or without."""

    edges: list[tuple[int, int]]
    has_gaps: bool
    skips: bool

    def rows(self) -> list[list[tuple[int, int]]]:
        """For each node the far ends and numbers of its edges. Numbers are not in order."""
        rows: list[list[tuple[int, int]]] = [[] for _ in range(NODES)]
        for number, (near, far) in enumerate(self.edges):
            rows[near].append((far, len(self.edges) - 1 - number))
        return rows

    def lane(self, values: Any = None) -> NearLane:
        far: list[int] = []
        edges: list[int] = []
        starts, ends = [], []
        for row in self.rows():
            starts.append(len(far))
            far += [each for each, _ in row]
            edges += [each for _, each in row]
            ends.append(len(row) if self.has_gaps else len(far))
            if self.has_gaps:
                far += [NODES - 1] * 3
                edges += [0] * 3
        arrays = [np.array(each, np.int32) for each in (starts, ends, far, edges)]
        return NearLane(arrays[0], arrays[1], self.has_gaps, arrays[2], arrays[3], self.skips, values)


lanes = st.lists(st.builds(Drawn, EDGES, st.booleans(), st.booleans()), min_size=1, max_size=3)


def levels_of(drawn: list[Drawn], start: int, hops: int) -> list[set[int]]:
    levels = [{start}]
    for _ in range(hops):
        far = {other for each in drawn for near, other in each.edges if near in levels[-1]}
        levels.append(far - set().union(*levels))
    return levels


@settings(max_examples=examples(20))
@given(drawn=lanes, hops=st.integers(1, 4), start=st.integers(0, NODES - 1))
def test_counts_and_sums_are_those_of_a_plain_loop(drawn: list[Drawn], hops: int, start: int) -> None:
    room = Room()
    room.reserve(NODES)
    wholes = [np.arange(1, len(each.edges) + 1) * 7 - 50 for each in drawn]
    near = Nearby(room, [each.lane(values) for each, values in zip(drawn, wholes, strict=True)])
    levels = levels_of(drawn, start, hops)
    inner, whole = set().union(*levels[:-1]), set().union(*levels)
    assert count_near(near.at, start, hops) == len(whole)
    found = near.within(start, hops).tolist()
    assert found[0] == start
    ends = np.cumsum([len(level) for level in levels])
    assert [set(found[end - len(level) : end]) for level, end in zip(levels, ends, strict=True)] == levels
    added = [
        int(values[number])
        for each, values in zip(drawn, wholes, strict=True)
        for node, row in enumerate(each.rows())
        for far, number in row
        if node in inner and not (each.skips and far == node)
    ]
    assert add_near(near.at, start, hops, 0) == sum(added)
    floats = Nearby(room, [each.lane(values / 8) for each, values in zip(drawn, wholes, strict=True)])
    assert add_near(floats.at, start, hops, 0.0) == sum(added) / 8
    everyone = np.arange(NODES, dtype=np.int32)
    assert near.counts(everyone, hops).tolist() == [
        len(set().union(*levels_of(drawn, each, hops))) - 1 for each in everyone.tolist()
    ]


def test_numbers_of_searches_are_used_again() -> None:
    """After the last number they begin anew, and nothing of earlier searches is left."""
    drawn = Drawn([(at, (at + 1) % NODES) for at in range(NODES)], False, False)
    room = Room()
    room.reserve(NODES)
    near = Nearby(room, [drawn.lane()])
    for at in range(3 * LAST_SEARCH):
        assert count_near(near.at, at % NODES, 1 + at % 3) == 2 + at % 3
    room.reserve(10 * NODES)
    assert count_near(near.at, 0, NODES + 5) == NODES


def test_all_nodes_fit_into_the_queue() -> None:
    """Where everybody knows everybody, each node is looked at again when the queue has all."""
    drawn = Drawn([(a, b) for a in range(NODES) for b in range(NODES)] * 2, False, False)
    room = Room()
    room.reserve(NODES)
    near = Nearby(room, [drawn.lane()])
    assert len(room.queue) > NODES
    room.queue[NODES + 1 :] = -7
    for start in range(NODES):
        assert sorted(near.within(start, 3).tolist()) == list(range(NODES))
        assert count_near(near.at, start, 3) == NODES
    assert (room.queue[NODES + 1 :] == -7).all()


def test_counts_of_some_nodes() -> None:
    people = [Person(id=id) for id in "abcd"]
    edges = [Knows(source=a, target=b) for a, b in ("ab", "bc", "cd", "ca", "xa")]
    with opened("adjacency list", [*people, *edges]) as graph:
        snapshot = graph.snapshot([Knows])
        asked = [Person.ref("c"), "a", people[0], Person.ref("nobody"), "x"]
        counts = snapshot.k_hop_counts(Knows, 2, of=asked)
        assert {ref.id: count for ref, count in counts.items()} == {"a": 2, "c": 3, "x": 2}
        assert counts[Person.ref("c")] == snapshot.k_hop_count("c", Knows)
        assert dict(snapshot.k_hop_counts(Knows, of=[])) == {}
        assert dict(snapshot.k_hop_counts({Knows}, of=snapshot.walk("a").out(Knows).nodes())) == {Person.ref("b"): 3}
        wrong: Any
        for wrong in ("a", people[0], 5):
            with pytest.raises(InvalidValue, match="of takes a list of nodes, got"):
                snapshot.k_hop_counts(Knows, of=wrong)
        with pytest.raises(InvalidValue, match="hops must be less than"):
            snapshot.k_hop_count("a", Knows, 2**64)


def test_a_change_that_cannot_be_applied_leaves_answers_about_those_before_it() -> None:
    with opened("adjacency list", [Person(id="a"), Thing(id=8), Bought(source="a", target=8, day=1)]) as graph:
        snapshot = graph.snapshot([Bought], ["cost"])
        assert (snapshot.degree("a", Bought), snapshot.k_hop_count("a", Bought)) == (1, 1)
        graph.put_many(Bought(source="a", target=number, day=1) for number in range(20, 60))
        graph.put(Bought(source="a", target=9, day=2, cost=Decimal("1e-9")))
        graph.put(Bought(source="a", target=9, day=2, cost=Decimal(10**15)))
        with pytest.raises(InvalidValue, match="does not fit into 64 bits"):
            snapshot.follow(once=True)
        assert snapshot.degree("a", Bought) == snapshot.k_hop_count("a", Bought) == 42
