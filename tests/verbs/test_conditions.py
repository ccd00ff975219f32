"""`only_if=` on `delete`, `connect` and `disconnect`, also in transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import (
    AlreadyExists,
    ConditionFailed,
    Copy,
    Count,
    Edge,
    Indexed,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    UnknownField,
    Version,
    field,
)
from tests.verbs.conftest import Everywhere


class Student(Node):
    id: str
    active: bool = True
    revision: Annotated[int, Version()] = 0


class Course(Node):
    id: str
    title: str = ""
    seats: int = 0


class Enrollment(Edge[Student, Course]):
    grade: str = ""


class Follows(Edge[Student, Student]):
    note: str = ""


class Friend(Edge[Student, Student], symmetric=True):
    since: int = 0


class Note(Node):
    id: str
    text: str = ""


MODELS: list[Any] = [Student, Course, Enrollment, Follows, Friend, Note]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put_many([Course(id="c", seats=1), Course(id="full"), Note(id="n", text="x")])
    graph.put_many([Student(id="s"), Student(id="gone", active=False)])
    return graph


def test_disconnect(g: Any) -> None:
    g.put_many([Enrollment(source="s", target="c", grade="A"), Friend(source="s", target="gone", since=3)])
    with g.meter() as meter:
        with pytest.raises(ConditionFailed, match="Enrollment from 's' to 'c'"):
            g.disconnect(Enrollment, "s", "c", only_if=field("grade") == "B")
        assert g.disconnect(Enrollment, "s", "c", only_if=field("grade") == "A") is True
        assert g.disconnect(Enrollment, "s", "c", only_if=field("grade") == "A") is False
    assert meter.requests == 3
    with pytest.raises(ConditionFailed, match="Friend from 'gone' to 's'"):
        g.disconnect(Friend, "gone", "s", only_if=field("since") > 3)
    assert g.disconnect(Friend, "gone", "s", only_if=field("since") == 3) is True
    assert g.edge(Friend, "s", "gone") is None


def test_delete(g: Any) -> None:
    with g.meter() as meter:
        with pytest.raises(ConditionFailed, match="Note 'n' does not meet the condition of the delete"):
            g.delete(Note, "n", only_if=field("text") == "y")
        assert g.delete(Note.ref("n"), only_if=field("text") == "x") is True
        assert g.delete(Note, "n", only_if=field("text") == "x") is False
    assert meter.requests == 3, "one request each, without a read"
    g.connect(Enrollment, "s", "c")
    with pytest.raises(ConditionFailed, match="Course 'c'"):
        g.delete(Course, "c", only_if=field("seats") == 0)
    assert g.edge(Enrollment, "s", "c") is not None, "nothing was removed"
    assert g.delete(g.get(Course, "c"), only_if=field("seats") == 1) is True
    assert g.edge(Enrollment, "s", "c") is None
    student = g.get(Student, "s")
    with pytest.raises(ConditionFailed, match="its version is 0"):
        g.delete(student, only_if=field("active") == False)  # noqa: E712
    assert g.delete(student, only_if=field("active") == True) is True  # noqa: E712
    edge = Follows(source="gone", target="gone", note="me")
    g.put(edge)
    with pytest.raises(ConditionFailed):
        g.delete(edge, only_if=field("note") == "you")
    assert g.delete(edge, only_if=field("note") == "me") is True


def test_connect_compares_the_fields_of_the_nodes(g: Any) -> None:
    has_seat = field("target.seats") > 0
    with g.meter() as meter:
        with pytest.raises(ConditionFailed, match="Course 'full'"):
            g.connect(Enrollment, "s", "full", only_if=has_seat)
        with pytest.raises(ConditionFailed, match="Student 'gone'"):
            g.connect(Enrollment, "gone", "c", only_if=has_seat & (field("source.active") == True))  # noqa: E712
        with pytest.raises(NotFound, match="Course 'nowhere'"):
            g.connect(Enrollment, "s", "nowhere", only_if=has_seat)
        made = g.connect(Enrollment, "s", "c", grade="A", only_if=has_seat & (field("source.active") == True))  # noqa: E712
        with pytest.raises(AlreadyExists):
            g.connect(Enrollment, "s", "c", only_if=has_seat)
    assert meter.requests == 5
    assert list(g.out("s", Enrollment)) == [made]
    with pytest.raises(ConditionFailed, match="Student 's'"):
        g.connect(Follows, "s", "s", only_if=(field("source.active") == True) & (field("target.active") == False))  # noqa: E712
    one = (field("target.seats") > 5) | (field("target.title") == "")
    assert g.connect(Enrollment, "gone", "c", only_if=one) == Enrollment(source="gone", target="c")


@pytest.mark.parametrize(
    ("only_if", "error", "words"),
    [
        (field("grade") == "A", InvalidValue, r'field\("target.name"\)'),
        ((field("source.active") == 1) | (field("target.seats") > 0), InvalidValue, "join parts about one node"),
        (field("target.seat") > 0, UnknownField, "did you mean 'seats'"),
        (field("target.id") == "c", UnknownField, "part of the id"),
        (field("target") == "c", UnknownField, "Course"),
        (1, InvalidValue, "not a comparison"),
    ],
)
def test_what_a_new_edge_cannot_ask(g: Any, only_if: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        g.connect(Enrollment, "s", "c", only_if=only_if)
    with pytest.raises(error, match=words), g.transaction() as t:
        t.connect(Enrollment, "s", "c", only_if=only_if)
    assert g.edge(Enrollment, "s", "c") is None


def test_transactions(g: Any) -> None:
    with g.meter() as meter, g.transaction() as t:
        t.connect(Enrollment, "s", "c", only_if=field("target.seats") > 0)
        t.update(Course, "c", seats=field("seats") - 1)
    assert meter.requests == 1
    assert g.get(Course, "c").seats == 0
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.connect(Enrollment, "gone", "c", only_if=field("target.seats") > 0)
        t.update(Course, "c", seats=field("seats") - 1)
    assert [each.error for each in error.value.reasons if each.error] == [ConditionFailed]
    assert g.get(Course, "c").seats == 0
    for wanted, reason in ((field("source.active") == True, "gone"), (field("target.seats") > 0, "c")):  # noqa: E712
        with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
            t.connect(Enrollment, "gone", "c", only_if=wanted)
            t.connect(Follows, "gone", "s")
        (failed,) = [each for each in error.value.reasons if each.error]
        assert (failed.call, failed.id, failed.error) == ("connect", reason, ConditionFailed)
    deletes: list[Callable[[Any], None]] = [
        lambda t: t.disconnect(Enrollment, "s", "c", only_if=field("grade") == "F"),
        lambda t: t.delete(Enrollment(source="s", target="c"), only_if=field("grade") == "F"),
        lambda t: t.delete(Course, "c", only_if=field("seats") > 0),
    ]
    for delete in deletes:
        with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
            delete(t)
        assert [each.error for each in error.value.reasons if each.error] == [ConditionFailed]
    with g.transaction() as t:
        t.disconnect(Enrollment, "s", "c", only_if=field("grade") == "")
        t.delete(Note, "n", only_if=field("text") == "x")
        t.delete(Note, "never", only_if=field("text") == "x")
    assert (g.edge(Enrollment, "s", "c"), g.get(Note, "n")) == (None, None)


class Member(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    joined: Annotated[int, Indexed()] = 0
    email: Annotated[str | None, Unique()] = None
    likes: Annotated[int, Count("Likes", consistency="transaction")] = 0


class Likes(Edge[Member, Course], order="stars"):
    stars: Annotated[int, Indexed()] = 1
    text: Annotated[str, Indexed()] = ""
    title: Annotated[str, Copy("target.title")] = ""


def test_with_copies_counts_and_satellites(everywhere: Everywhere) -> None:
    g = everywhere([Member, Course, Likes])
    g.put_many([Course(id="c", title="Art", seats=1), Course(id="full", title="Maths")])
    g.put(Member(id="m", email="a@b.c"))
    with pytest.raises(ConditionFailed, match="Course 'full'"):
        g.connect(Likes, "m", "full", only_if=field("target.seats") > 0)
    assert g.get(Member, "m").likes == 0
    assert g.connect(Likes, "m", "c", only_if=field("target.seats") > 0).title == "Art"
    with pytest.raises(ConditionFailed):
        g.disconnect(Likes, "m", "c", only_if=field("stars") > 1)
    with pytest.raises(ConditionFailed):
        g.delete(Member, "m", only_if=field("name") == "Ann")
    assert (g.get(Member, "m").likes, g.get(Member, email="a@b.c").id) == (1, "m")
    assert g.disconnect(Likes, "m", "c", only_if=field("stars") == 1) is True
    assert g.get(Member, "m").likes == 0
    assert g.delete(Member, "m", only_if=field("name") == "") is True
    assert g.get(Member, email="a@b.c") is None
