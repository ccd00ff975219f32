"""The change stream through graphs: one program on a file, and the same on servers.

MiniStack's streams are independent of ours; `adjoin serve` answers with the file's.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from adjoin import Change, field
from adjoin.errors import ChangesTrimmed, ConditionFailed, InvalidRequest
from adjoin.requests import ChangesResponse, ReadChanges
from adjoin.stores.dynamodb import DynamoDBStore
from tests.conftest import Open
from tests.models import ANN, ART, BOB, MATHS, SCHOOL, Course, Enrollment, Student
from tests.servers.open import Stores
from tests.stores.dynamodb.streams.readers import Readers, open_readers
from tests.stores.dynamodb.streams.service import KEYS, Clock, StreamService


@pytest.fixture(params=["serve", "ministack"])
def address(request: pytest.FixtureRequest, servers: Stores) -> str:
    """Where a server answers."""
    return servers.address(request.param)


@pytest.fixture
def location(address: str) -> str:
    """A table of one's own there."""
    return f"dynamodb://School-{uuid4().hex}?endpoint={address}"


@pytest.fixture
def on_service(open_graph: Open, location: str) -> Any:
    """A school there, empty."""
    graph = open_graph(SCHOOL, location)
    graph.create_table()
    return graph


# --- one program -------------------------------------------------------------------------------


def single_writes(g: Any) -> None:
    g.put(ANN)
    g.put(ANN)
    g.put(ANN.model_copy(update={"name": "Anne"}))
    g.update(Student, "ann", name="Anna")
    g.add(MATHS)
    g.put(Enrollment(source="ann", target="maths", grade="A", points=9))
    g.update(Enrollment, "ann", "maths", grade="B")
    g.disconnect(Enrollment, "ann", "maths")
    g.put(ANN)
    g.delete(Course, "maths")


def batches_and_transactions(g: Any) -> None:
    g.put_many([ANN, BOB, MATHS, ART])
    g.connect(Enrollment, "ann", "maths", grade="A", points=9)
    with g.transaction() as t:
        t.put(BOB.model_copy(update={"name": "Rob"}))
        t.update(Student, "ann", name="Anna")
        t.connect(Enrollment, "bob", "art", grade="C", points=1)
        t.disconnect(Enrollment, "ann", "maths")
    g.put_many([ANN, BOB, MATHS])


def refused_writes(g: Any) -> None:
    g.put_many([ANN, MATHS])
    with pytest.raises(ConditionFailed):
        g.update(Student, "ann", only_if=field("name") == "nobody", name="x")
    g.update(Student, "ann", name="Anna")


def a_node_with_edges_removed(g: Any) -> None:
    courses = [Course(id=f"c{n}", name=str(n), credits=n) for n in range(1, 30)]
    g.put_many([ANN, *courses])
    g.put_many([Enrollment(source="ann", target=course.id, grade="A", points=1) for course in courses])
    g.delete(Student, "ann")


PROGRAMS: list[Callable[[Any], None]] = [
    single_writes,
    batches_and_transactions,
    refused_writes,
    a_node_with_edges_removed,
]


def told(change: Change) -> tuple[Any, ...]:
    """All of a change but where it stands and when it was."""
    return change.kind, change.old, change.new, change.old_item, change.new_item, change.expired, change.problem


def by_item(changes: Iterable[Change]) -> dict[str, list[tuple[Any, ...]]]:
    """What happened to each item, in order; between items there is none."""
    found = defaultdict(list)
    for change in changes:
        item = change.new_item or change.old_item or {}
        found[f"{item['PK']} {item['SK']}"].append(told(change))
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.__name__))
def test_a_program_makes_the_same_changes_on_both(
    on_service: Any, open_graph: Open, program: Callable[[Any], None]
) -> None:
    on_file = open_graph()
    # The service tells times in whole seconds.
    began = int(time.time())
    for g in (on_file, on_service):
        program(g)
    expected, found = list(on_file.changes()), list(on_service.changes())
    assert by_item(found) == by_item(expected)
    assert len({change.position for change in found}) == len(found)
    ended = time.time()
    assert all(began <= change.at <= ended for change in found)
    for g, changes in ((on_file, expected), (on_service, found)):
        for at in {0, len(changes) // 2, len(changes) - 1}:
            rest = list(g.changes(after=changes[at].position))
            assert list(map(told, rest)) == list(map(told, changes[at + 1 :]))


def test_reading_on_as_changes_come(on_service: Any) -> None:
    assert list(on_service.changes()) == []
    on_service.put(ANN)
    (first,) = on_service.changes()
    assert (first.kind, first.old, first.new) == ("insert", None, ANN)
    assert list(on_service.changes(after=first.position)) == []
    on_service.update(Student, "ann", name="Anna")
    on_service.delete(Student, "ann")
    second, third = on_service.changes(after=first.position)
    assert (second.kind, second.old, second.new.name) == ("modify", ANN, "Anna")
    assert (third.kind, third.old, third.new) == ("remove", second.new, None)


def test_more_changes_than_one_reading_brings(on_service: Any) -> None:
    students = [Student(id=f"s{n}", name=str(n)) for n in range(1203)]
    on_service.put_many(students)
    changes = list(on_service.changes())
    assert sorted(change.new.id for change in changes) == sorted(student.id for student in students)


def test_another_graph_reads_on(on_service: Any, open_graph: Open, location: str) -> None:
    on_service.put_many([ANN, BOB, MATHS])
    first, second, third = on_service.changes()
    other = open_graph(SCHOOL, location)
    assert list(map(told, other.changes(after=first.position))) == [told(second), told(third)]


def test_positions_of_one_store_are_none_of_the_other(on_service: Any, open_graph: Open) -> None:
    on_file = open_graph()
    for g in (on_file, on_service):
        g.put(ANN)
    (of_file,), (of_service,) = on_file.changes(), on_service.changes()
    for g, position in ((on_file, of_service.position), (on_service, of_file.position)):
        with pytest.raises(InvalidRequest, match="is not a position of the change stream of "):
            list(g.changes(after=position))


def test_a_table_that_was_made_anew(on_service: Any) -> None:
    on_service.put(ANN)
    (change,) = on_service.changes()
    assert list(on_service.changes(after=change.position)) == []
    on_service.drop_table()
    on_service.create_table()
    on_service.put(BOB)
    with pytest.raises(ChangesTrimmed, match="its stream was replaced by another"):
        list(on_service.changes(after=change.position))
    assert [each.new for each in on_service.changes()] == [BOB]


# --- the store that waits ----------------------------------------------------------------------


@pytest.fixture
def readers() -> Iterator[Readers]:
    with open_readers() as opened:
        yield opened


def test_threads_read_one_stream(readers: Readers) -> None:
    clock = Clock()
    clock.now = time.time()
    service = readers.server.service = StreamService(clock, 4)
    for item in range(KEYS):
        for value in "abc":
            service.put(item, value)
    store = DynamoDBStore(endpoint=readers.server.url)

    def all_of(_: int) -> list[str]:
        found: list[str] = []
        after = None
        while True:
            (response,) = store.execute([ReadChanges("T", after, 7)])
            assert isinstance(response, ChangesResponse)
            if not response.changes:
                return sorted(found)
            found += [str((change.key, change.new)) for change in response.changes]
            after = response.next

    try:
        with ThreadPoolExecutor(4) as pool:
            readings = list(pool.map(all_of, range(8)))
    finally:
        store.close()
    assert len(readings[0]) == len(set(readings[0])) == 3 * KEYS
    assert all(reading == readings[0] for reading in readings)
