"""Deleting a node: whole or not at all for everybody who looks, wherever it is interrupted."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import pytest

from adjoin import AlreadyExists, ConditionFailed, Graph, field
from adjoin.layouts.interface import DELETING
from adjoin.requests import Delete, Scan, TransactWrite
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.maintenance.simulation import Process
from tests.models import SCHOOL, Attendance, Course, Enrollment, Exam, Friendship, Student

HUB = Student(id="hub", name="Hub")


@pytest.fixture
def store() -> Iterator[FaultyStore]:
    store = FaultyStore(SQLiteStore(":memory:"))
    yield store
    store.close()


@pytest.fixture
def g(store: FaultyStore) -> Graph:
    return Graph(store, SCHOOL)


def fill(g: Graph, edges: int) -> list[Any]:
    """A student with so many edges, of every kind and direction, among others that stay."""
    made: list[Any] = []
    for number in range(edges):
        kind = number % 4
        if kind == 0:
            made.append(Enrollment(source="hub", target=f"c{number}"))
        elif kind == 1:
            made.append(Attendance(source="hub", target=f"c{number}", day=dt.date(2024, 1, 1)))
        elif kind == 2:
            made.append(Exam(source="hub", target=f"c{number}", term="x"))
        else:
            made.append(Friendship(source="hub", target=f"s{number}"))
    g.put_many([HUB, Student(id="bob", name="Bob"), *made])
    g.put(Enrollment(source="bob", target="c0"))
    return made


def seen(g: Graph, made: list[Any]) -> tuple[bool, int]:
    """Whether the node is seen, and how many of its edges, from whichever side; all must agree."""
    node = g.get(Student, "hub")
    collection = g.collection(HUB)
    assert collection.node == node
    assert collection.others == []
    out: set[str] = set()
    for model in (Enrollment, Attendance, Exam, Friendship):
        edges = list(g.out("hub", model))
        assert g.out("hub", model).count() == len(edges)
        out |= {repr(edge) for edge in edges}
    assert {repr(edge) for edge in collection.edges} == out
    far: set[str] = set()
    single: set[str] = set()
    for edge in made:
        model = type(edge)
        far |= {repr(each) for each in g.into(edge.target, model) if each.source == "hub"}
        if model is Friendship:
            turned = [each for each in g.out(edge.target, Friendship) if each.target == "hub"]
            assert bool(turned) == (repr(edge) in far)
        key = {"term": edge.term} if model is Exam else {}
        if g.edge(model, "hub", edge.target, **key) is not None:
            single.add(repr(edge))
    assert out == far == single
    return node is not None, len(out)


def leftovers(store: FaultyStore) -> list[Any]:
    page: Any = store.inner.execute((Scan("adjoin"),))[0]
    return [item for item in page.items if "hub" in str(item) or DELETING in item]


@pytest.mark.parametrize("edges", [0, 1, 60, 150, 260])
def test_interrupted_anywhere_and_run_again(g: Graph, store: FaultyStore, edges: int) -> None:
    step = 0
    while True:
        made = fill(g, edges)
        whole = (True, edges)
        assert seen(g, made) == whole
        store.stop_at(step // 2, "before" if step % 2 == 0 else "after")
        try:
            g.delete(Student, "hub")
        except Interrupted:
            store.recover()
            assert seen(g, made) in (whole, (False, 0)), f"half of it is seen at step {step}"
            assert g.delete(Student, "hub") in (True, False)
        else:
            break
        assert seen(g, made) == (False, 0)
        assert leftovers(store) == []
        assert [edge.source for edge in g.into("c0", Enrollment)] == ["bob"]
        step += 1
    store.recover()
    assert leftovers(store) == []
    assert step >= 2


def test_ten_thousand_edges(g: Graph, store: FaultyStore) -> None:
    g.put(Course(id="hub"))
    g.put_many(Enrollment(source=f"s{number}", target="hub") for number in range(10_000))
    before = store.sent
    assert g.delete(Course, "hub") is True
    requests = store.sent - before
    assert g.get(Course, "hub") is None
    assert list(g.into("hub", Enrollment)) == []
    assert g.out("s77", Enrollment).count() == 0
    assert leftovers(store) == []
    # 100 marks of 100 edges, 100 sweeps, and the pages that find them three times.
    assert requests < 100 + 100 + 30


def stopped_after_its_switch(g: Graph, store: FaultyStore, made: list[Any]) -> None:
    """Interrupts a delete at the first request at which nothing of the node is seen any more."""
    for step in range(1000):
        store.stop_at(step, "after")
        with pytest.raises(Interrupted):
            g.delete(Student, "hub")
        store.recover()
        if g.get(Student, "hub") is None:
            assert leftovers(store) != []
            return


def test_a_node_made_anew_has_only_its_new_edges(g: Graph, store: FaultyStore) -> None:
    made = fill(g, 150)
    stopped_after_its_switch(g, store, made)
    assert seen(g, made) == (False, 0)
    g.put(HUB)
    assert seen(g, made) == (True, 0)
    old = made[0]
    g.put(Course(id=old.target))
    new = g.connect(Enrollment, "hub", old.target, grade="new")
    with pytest.raises(AlreadyExists):
        g.connect(Enrollment, "hub", old.target)
    assert list(g.out("hub", Enrollment)) == [new]
    assert g.disconnect(Enrollment, "hub", made[4].target) is False
    assert g.delete(Student, "hub") is True
    assert leftovers(store) == []


def test_a_marked_edge_is_there_until_the_switch(g: Graph, store: FaultyStore) -> None:
    made = fill(g, 150)
    store.stop_at(2, "after")
    with pytest.raises(Interrupted):
        g.delete(Student, "hub")
    store.recover()
    assert any(DELETING in item for item in leftovers(store))
    assert seen(g, made) == (True, 150)
    with g.meter() as meter:
        assert len(list(g.out("hub", Friendship))) > 0
    assert meter.requests == 2, "one more request, because marks were met"
    g.update(Student, "hub", name="still here")
    g.put(HUB)
    assert seen(g, made) == (True, 150)
    g.delete(Student, "hub")
    assert leftovers(store) == []


def test_unprocessed_writes_are_sent_again(g: Graph, store: FaultyStore) -> None:
    store.halve_batches = True
    made = fill(g, 150)
    assert seen(g, made) == (True, 150)
    g.delete(Student, "hub")
    assert leftovers(store) == []


def test_a_node_that_is_made_anew_behind_a_delete_stays(g: Graph) -> None:
    """What a delete finds in its last look goes only as long as the node is not there again."""
    fill(g, 8)
    g.put(Course(id="new"))
    deleting = Process(g, g._delete(Student, "hub"), "delete")
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.connect(Enrollment, "hub", "new")
    deleting.step(random.Random(0))
    assert g.get(Student, "hub") is None
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.put(HUB)
    deleting.finish()
    assert g.get(Student, "hub") == HUB
    assert [edge.target for edge in g.out("hub", Enrollment)] == ["new"]


def test_what_is_connected_just_before_goes_with_the_node(g: Graph, store: FaultyStore) -> None:
    fill(g, 8)
    g.put(Course(id="new"))
    deleting = Process(g, g._delete(Student, "hub"), "delete")
    while not deleting.is_about(TransactWrite):
        deleting.step(random.Random(0))
    g.connect(Enrollment, "hub", "new")
    deleting.finish()
    assert leftovers(store) == []


def test_a_node_that_changes_behind_the_look_is_not_deleted_if_it_must_be_as_it_was(g: Graph) -> None:
    """It has no edges, so one delete is all that is sent; it is refused, and then the node is looked at again."""
    g.put(HUB)
    deleting = Process(g, g._delete(Student, "hub", only_if=field("name") == "Hub"), "delete")
    while not deleting.is_about(Delete):
        deleting.step(random.Random(0))
    g.update(Student, "hub", name="Other")
    with pytest.raises(ConditionFailed):
        deleting.finish()
    assert g.get(Student, "hub") == Student(id="hub", name="Other", version=1)
