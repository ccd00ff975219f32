"""What opening and migrating say of changes after which stored items are not found or not read."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Edge, Graph, Node
from adjoin.stores.sqlite import SQLiteStore


class Student(Node):
    id: str
    name: str = ""


class Knows(Edge[Student, Student]):
    since: int = 0


class Pupil(Node):
    id: str
    name: str = ""
    year: int = 0


class Course(Node):
    id: str
    hours: int = 0


class Dated(Node, label="STUDENT"):
    id: str
    name: str = ""
    year: int


RENAMED = "is not declared any more; if the class has only got another name, declare it with label='STUDENT'"
UNREAD = "Dated.year is new and has no default, so stored items that lack it cannot be read"


@pytest.fixture
def store() -> SQLiteStore:
    store = SQLiteStore(":memory:")
    Graph(store, [Student, Knows]).put(Student(id="a"))
    return store


@pytest.mark.parametrize(
    ("models", "is_told"),
    [([Pupil], True), ([Course], False), ([Student, Pupil], False), ([Student, Knows], False)],
    ids=["another name", "other fields", "beside it", "the same"],
)
def test_opening_says_that_a_class_may_have_got_another_name(
    store: SQLiteStore, models: list[Any], is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    Graph(store, models)
    assert ("Pupil is new in this table, and Student has the same keys" in caplog.text) is is_told
    assert (RENAMED in caplog.text) is is_told


def test_opening_and_migrating_say_that_nothing_fills_a_field(
    store: SQLiteStore, caplog: pytest.LogCaptureFixture
) -> None:
    g = Graph(store, [Dated])
    assert caplog.messages == [f"{UNREAD}; give it a default, or fill it with migrate"]
    assert UNREAD in [str(each) for each in g.differences()]
    caplog.clear()
    assert g.migrate(fill={"Dated.year": lambda item: 7}, finish=True).ended
    assert caplog.messages == []
    assert g.get(Dated, "a") == Dated(id="a", year=7)


def test_migrating_without_a_function_says_what_will_not_be_read(
    store: SQLiteStore, caplog: pytest.LogCaptureFixture
) -> None:
    g = Graph(store, [Dated])
    caplog.clear()
    g.migrate()
    assert caplog.messages == [f"{UNREAD}; pass fill={{'Dated.year': function}} to migrate, or give it a default"]
