"""The verbs, on both graphs: what they answer, what they refuse, and how many requests they take."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    AdjoinError,
    AlreadyExists,
    ConditionFailed,
    Edge,
    Expires,
    Index,
    InvalidItem,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    ItemTooLarge,
    Node,
    NotFound,
    Projection,
    TableMismatch,
    UnknownField,
    Version,
    field,
)
from tests.conftest import Open
from tests.models import ANN, ART, BOB, MATHS, Attendance, Course, Enrollment, Exam, Friendship, Student

# --- nodes -------------------------------------------------------------------------------------


def test_put_and_get(g: Any) -> None:
    g.put(ANN)
    assert g.get(Student, "ann") == ANN
    assert g.get(Student, Student.ref("ann"), consistent=True) == ANN
    assert g.get(Course, "ann") is None
    g.put(Student(id="ann", name="Anna"))
    assert g.get(Student, ANN).name == "Anna"


def test_add_refuses_what_is_there(g: Any) -> None:
    g.add(ANN)
    with pytest.raises(AlreadyExists, match="Student 'ann'"):
        g.add(ANN)
    g.add(Enrollment(source="ann", target="maths"))
    with pytest.raises(AlreadyExists, match="Enrollment from 'ann' to 'maths'"):
        g.add(Enrollment(source="ann", target="maths"))


def test_get_many_keeps_order_doubles_and_gaps(school: Any) -> None:
    with school.meter() as meter:
        found = school.get_many(Student, ["bob", "nobody", "ann", "bob"])
    assert found == [BOB, None, ANN, BOB]
    assert (meter.requests, meter.rcu) == (1, 1.5)
    assert school.get_many(Student, []) == []


def test_many_in_batches(g: Any) -> None:
    told: list[int] = []
    students = [Student(id=str(number), name="x") for number in range(1001)]
    with g.meter() as meter:
        assert g.put_many(iter(students), progress=told.append) == 1001
    assert (meter.requests, meter.wcu) == (41, 1001)
    assert told == [400, 800, 1001]
    with g.meter() as meter:
        assert g.get_many(Student, [str(number) for number in range(1001)]) == students
    assert meter.requests == 11


def test_the_later_of_two_for_one_key_stays(g: Any) -> None:
    assert g.put_many([ANN, BOB, Student(id="ann", name="later")]) == 3
    assert g.get(Student, "ann").name == "later"


def test_update_changes_named_fields_only(school: Any) -> None:
    with school.meter() as meter:
        changed = school.update(Student, "ann", name="Anna")
    assert changed == Student(id="ann", name="Anna", year_level=1, version=1)
    assert meter.requests == 1
    assert school.get(Student, "ann") == changed
    assert school.update(Enrollment, "ann", "maths", grade="A+").points == 9


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.update(Student, "nobody", name="x"), NotFound, "Student 'nobody'"),
        (lambda g: g.update(Enrollment, "bob", "art", grade="x"), NotFound, "from 'bob' to 'art'"),
        (lambda g: g.update(Student, "ann", nmae="x"), UnknownField, "did you mean 'name'"),
        (lambda g: g.update(Student, "ann", year_level="many"), InvalidValue, "Student.year_level"),
        (lambda g: g.update(Student, "ann", id="x"), InvalidValue, "'id'"),
        (lambda g: g.update(Student, "ann"), InvalidValue, "no field"),
        (lambda g: g.update(Student, "ann", name="x", if_version=7), ConditionFailed, "version is 0"),
        (lambda g: g.update(Course, "art", name="x", if_version=1), InvalidValue, "version: int = 0"),
        (
            lambda g: g.update(Student, "ann", name="x", only_if=field("year_level") > 3),
            ConditionFailed,
            "Student 'ann'",
        ),
        (lambda g: g.update(Student, "a", "b", name="x"), InvalidValue, "one id"),
        (lambda g: g.connect(Enrollment, "bob", "art", grad="A"), UnknownField, "did you mean 'grade'"),
        (lambda g: g.connect(Enrollment, "bob", "art", points="many"), InvalidValue, "points"),
        (lambda g: g.connect(Attendance, "bob", "art"), InvalidValue, "day"),
        (lambda g: g.get(Enrollment, "ann"), InvalidModel, "Enrollment"),
        (lambda g: g.get(Student, Course.ref("x")), InvalidKey, "Course 'x'"),
        (lambda g: g.put("ann"), InvalidValue, "'ann'"),
        (lambda g: g.put_many([ANN, "ann"]), InvalidValue, "'ann'"),
        (lambda g: g.out("ann", Student), InvalidModel, "Student"),
        (lambda g: g.delete(Enrollment, "x"), InvalidValue, "disconnect"),
        (lambda g: g.delete("x"), InvalidValue, "'x'"),
        (lambda g: g.collection("ann"), InvalidValue, "Model.ref"),
        (lambda g: g.collection(ANN, direction="up"), InvalidValue, "'up'"),
        (lambda g: g.edge(Enrollment, "ann", "art", grade="A"), InvalidValue, "'grade'"),
        (lambda g: g.edge(Exam, "ann", "art"), InvalidKey, "term"),
        (lambda g: g.out("ann", Enrollment).where(field("grad") == "A"), UnknownField, "'grade'"),
        (lambda g: g.out("ann", Enrollment).where(field("points") == "many"), InvalidValue, "points"),
        (lambda g: g.out("ann", Enrollment).limit(0), InvalidValue, "at least 1"),
        (lambda g: g.out("ann", Enrollment).page(limit=0), InvalidValue, "at least 1"),
        (lambda g: g.into("maths", Enrollment, consistent=True), InvalidValue, "GSI1"),
        (lambda g: g.put(Student(id="x" * 2100, name="")), InvalidKey, "2,048"),
        (lambda g: g.put(Enrollment(source="s", target="x" * 1020)), InvalidKey, "1,024"),
        (lambda g: g.put(Student(id="\ud800", name="")), AdjoinError, "surrogate"),
        (lambda g: g.put(Student(id="big", name="x" * 410_000)), ItemTooLarge, "400 KB|409600"),
    ],
)
def test_what_is_refused(school: Any, call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    before = list(school.changes())
    with pytest.raises(error, match=words):
        call(school)
    assert list(school.changes()) == before


def test_optimistic_locking(g: Any) -> None:
    g.put(ANN)
    assert g.update(Student, "ann", name="one", if_version=0).version == 1
    assert g.update(Student, "ann", name="two").version == 2
    with pytest.raises(ConditionFailed) as error:
        g.update(Student, "ann", name="three", if_version=1)
    assert error.value.item is not None
    assert g.get(Student, "ann").name == "two"


class Draft(Node):
    id: str
    title: str = ""
    revision: Annotated[int, Version()] = 0
    tags: set[str] = set()
    log: list[str] = []
    owner: str | None = None
    address: dict[str, str] = {}


def test_changes_relative_to_what_is_stored(open_graph: Open) -> None:
    g = open_graph([Draft])
    g.put(Draft(id="d", tags={"a"}))
    g.update(Draft, "d", tags=field("tags").add({"b", "c"}), log=field("log").append("made"))
    g.update(Draft, "d", tags=field("tags").discard({"a"}), owner="ann")
    assert g.get(Draft, "d") == Draft(id="d", revision=2, tags={"b", "c"}, log=["made"], owner="ann")
    g.update(Draft, "d", tags=set(), owner=None, revision=field("revision") + 10)
    assert g.get(Draft, "d") == Draft(id="d", revision=12, log=["made"])
    g.update(Draft, "d", revision=field("revision") - 2)
    assert g.get(Draft, "d").revision == 10
    with pytest.raises(InvalidValue, match=r"Draft\.title"):
        g.update(Draft, "d", title=field("title") + "x")


def test_put_only_if(school: Any) -> None:
    school.put(Course(id="art", name="Fine art"), only_if=field("credits") == 2)
    with pytest.raises(ConditionFailed, match="Course 'art'"):
        school.put(ART, only_if=field("credits") == 2)
    with pytest.raises(NotFound):
        school.put(Course(id="new"), only_if=field("credits") == 2)


# --- edges -------------------------------------------------------------------------------------


def test_connect_checks_both_ends(g: Any) -> None:
    g.put_many([ANN, MATHS])
    with g.meter() as meter:
        made = g.connect(Enrollment, "ann", MATHS, grade="A")
    assert made == Enrollment(source="ann", target="maths", grade="A")
    assert meter.requests == 1
    assert g.edge(Enrollment, ANN, "maths") == made
    with pytest.raises(AlreadyExists):
        g.connect(Enrollment, "ann", "maths")
    with pytest.raises(NotFound, match="there is no Course 'art' to connect"):
        g.connect(Enrollment, "ann", "art")
    with pytest.raises(NotFound, match="there is no Student 'bob' to connect"):
        g.connect(Enrollment, "bob", "maths")
    assert list(g.into("maths", Enrollment)) == [made]


def test_disconnect_says_whether_it_was_there(school: Any) -> None:
    assert school.disconnect(Enrollment, "ann", "maths") is True
    assert school.disconnect(Enrollment, "ann", "maths") is False
    assert school.edge(Enrollment, "ann", "maths") is None
    assert [edge.source for edge in school.into("maths", Enrollment)] == ["bob"]
    assert school.delete(school.edge(Enrollment, "bob", "maths")) is True
    assert list(school.into("maths", Enrollment)) == []


def test_out_and_into(school: Any) -> None:
    assert [edge.target for edge in school.out(ANN, Enrollment)] == ["art", "maths"]
    assert [edge.target for edge in school.out("ann", Enrollment).reverse()] == ["maths", "art"]
    assert [edge.source for edge in school.into(MATHS, Enrollment)] == ["ann", "bob"]
    assert list(school.out("nobody", Enrollment)) == []
    assert school.out("ann", Enrollment).count() == 2
    assert school.out("ann", Enrollment).limit(1).count() == 1
    assert school.into("maths", Enrollment).first().source == "ann"
    assert school.into("art", Enrollment).where(field("grade") == "Z").first() is None


def test_nodes_brings_the_far_ends(school: Any) -> None:
    with school.meter() as meter:
        pairs = [(edge.grade, course.name) for edge, course in school.out("ann", Enrollment).nodes()]
    assert pairs == [("C", "Art"), ("A", "Maths")]
    assert meter.requests == 2
    assert [node.id for _, node in school.into("maths", Enrollment).nodes()] == ["ann", "bob"]
    page = school.into("maths", Enrollment).nodes().page(limit=1)
    assert [node for _, node in page] == [ANN]
    assert [node for _, node in school.into("maths", Enrollment).nodes().page(after=page.next)] == [BOB]
    school.put(Enrollment(source="ann", target="missing"))
    assert len(list(school.out("ann", Enrollment))) == 3
    assert len(list(school.out("ann", Enrollment).nodes())) == 2


@pytest.mark.parametrize(
    ("predicate", "grades"),
    [
        (field("grade") == "A", "A"),
        (field("grade") != "A", "BC"),
        (field("grade") < "B", "A"),
        (field("grade") <= "B", "AB"),
        (field("grade") > "B", "C"),
        (field("grade") >= "B", "BC"),
        (field("points").between(3, 7), "BC"),
        (field("grade").begins_with("B"), "B"),
        (field("grade").contains("C"), "C"),
        (field("grade").is_in(["A", "C", "Z"]), "AC"),
        (field("grade").exists(), "ABC"),
        ((field("grade") == "A") | (field("points") == 3), "AC"),
        ((field("grade") > "A") & (field("points") > 3), "B"),
        (~(field("grade") == "A"), "BC"),
        (field("points") >= Decimal("7.5"), "A"),
    ],
)
def test_where(g: Any, predicate: Any, grades: str) -> None:
    for grade, points in (("A", 9), ("B", 7), ("C", 3)):
        g.put(Enrollment(source="ann", target=grade, grade=grade, points=points))
    query = g.out("ann", Enrollment).where(predicate)
    assert "".join(edge.grade for edge in query) == grades
    assert query.count() == len(grades)
    assert "".join(edge.grade for edge in query.page(limit=2)) == grades[:2]


def test_where_none_and_nested(open_graph: Open) -> None:
    class Tagged(Edge[Student, Draft]):
        note: str | None = None
        place: dict[str, Any] = {}

    g = open_graph([Student, Draft, Tagged])
    g.put(Tagged(source="a", target="1", place={"city": "Rome", "zip": [1, 2]}))
    g.put(Tagged(source="a", target="2", note="x"))
    out = g.out("a", Tagged)
    assert [edge.target for edge in out.where(field("note") == None)] == ["1"]  # noqa: E711
    assert [edge.target for edge in out.where(field("note") != None)] == ["2"]  # noqa: E711
    assert [edge.target for edge in out.where(field("place.city") == "Rome")] == ["1"]
    assert [edge.target for edge in out.where(field("place.zip.1") == 2)] == ["1"]
    with pytest.raises(InvalidValue, match="&"):
        bool(field("note") == "x")


def test_order(g: Any) -> None:
    days = [dt.date(2024, 5, 4), dt.date(999, 1, 1), dt.date(2024, 5, 3), dt.date(2024, 5, 4)]
    for number, day in enumerate(days):
        g.put(Attendance(source="ann", target=f"c{number}", day=day))
        g.put(Attendance(source=f"s{number}", target="art", day=day))
    assert [edge.target for edge in g.out("ann", Attendance)] == ["c1", "c2", "c0", "c3"]
    assert [edge.source for edge in g.into("art", Attendance).reverse()] == ["s3", "s0", "s2", "s1"]
    may = g.out("ann", Attendance).between("2024-05-03", dt.date(2024, 5, 3))
    assert [edge.target for edge in may] == ["c2"]
    assert [edge.target for edge in g.out("ann", Attendance).between(dt.date(2024, 5, 4), None)] == ["c0", "c3"]
    assert [edge.target for edge in g.out("ann", Attendance).between(None, dt.date(2024, 5, 3))] == ["c1", "c2"]
    assert [edge.target for edge in g.out("ann", Attendance).begins_with("2024-05-04")] == ["c0", "c3"]
    assert [edge.target for edge in g.out("ann", Attendance).within(day="2024-05-04", target="c3")] == ["c3"]
    assert g.edge(Attendance, "ann", "c1").day == dt.date(999, 1, 1)
    g.update(Attendance, "ann", "c1", day=dt.date(2030, 1, 1))
    assert [edge.target for edge in g.out("ann", Attendance)] == ["c2", "c0", "c3", "c1"]
    g.put(Attendance(source="ann", target="c1", day=dt.date(2000, 1, 1)))
    assert [edge.target for edge in g.out("ann", Attendance)] == ["c1", "c2", "c0", "c3"]


class Ranked(Edge[Student, Course], order="rank"):
    rank: int | None = None


def test_an_edge_needs_its_order_value_to_be_found(open_graph: Open) -> None:
    g = open_graph([Ranked])
    with pytest.raises(InvalidKey, match=r"Ranked\.rank is None"):
        g.put(Ranked(source="a", target="b"))
    g.put(Ranked(source="a", target="b", rank=1))
    with pytest.raises(InvalidKey, match=r"Ranked\.rank is None"):
        g.update(Ranked, "a", "b", rank=None)
    assert [edge.rank for edge in g.out("a", Ranked)] == [1]


def test_parallel_edges(g: Any) -> None:
    for term in ("spring", "autumn"):
        g.put(Exam(source="ann", target="art", term=term, mark=Decimal("1.5")))
    assert [edge.term for edge in g.out("ann", Exam)] == ["autumn", "spring"]
    assert g.edge(Exam, "ann", "art", term="spring").term == "spring"
    assert g.update(Exam, "ann", "art", term="spring", mark=2).mark == 2
    assert g.disconnect(Exam, "ann", "art", term="autumn") is True
    assert [edge.mark for edge in g.into("art", Exam)] == [2]


def test_a_symmetric_edge_is_the_same_from_both_ends(g: Any) -> None:
    g.put_many([ANN, BOB])
    with g.meter() as meter:
        g.connect(Friendship, "ann", "bob", since=2020)
    assert meter.requests == 1
    for one, other in (("ann", "bob"), ("bob", "ann")):
        edge = Friendship(source=one, target=other, since=2020)
        assert g.edge(Friendship, one, other) == edge
        assert list(g.out(one, Friendship)) == [edge]
        assert list(g.into(other, Friendship)) == [edge]
        assert [node.id for _, node in g.into(other, Friendship).nodes()] == [one]
    with pytest.raises(AlreadyExists):
        g.connect(Friendship, "bob", "ann")
    assert g.update(Friendship, "bob", "ann", since=2021) == Friendship(source="bob", target="ann", since=2021)
    assert g.edge(Friendship, "ann", "bob").since == 2021
    assert g.disconnect(Friendship, "bob", "ann") is True
    assert g.disconnect(Friendship, "bob", "ann") is False
    assert list(g.out("ann", Friendship)) == []
    g.connect(Friendship, "ann", "ann")
    assert len(list(g.out("ann", Friendship))) == 1
    g.put_many([Friendship(source="ann", target="bob")])
    assert [edge.target for edge in g.out("bob", Friendship)] == ["ann"]
    assert g.delete(Student, "bob") is True
    assert [edge.target for edge in g.out("ann", Friendship)] == ["ann"]


def test_collection(school: Any) -> None:
    school.put(Exam(source="ann", target="art", term="x"))
    with school.meter() as meter:
        collection = school.collection(Student.ref("ann"))
        node, edges, others = collection.node, collection.edges, collection.others
    assert node == ANN
    assert [type(edge).__name__ for edge in edges] == ["Enrollment", "Enrollment", "Exam"]
    assert others == []
    assert meter.requests in (1, 3)  # one load; the driven graph awaits each part anew
    assert [type(each).__name__ for each in school.collection(ANN)] == ["Student", "Enrollment", "Enrollment", "Exam"]
    page = school.collection(ANN).page(limit=1)
    assert page.items == [ANN]
    assert len(school.collection(ANN).page(after=page.next).items) == 3
    arriving = school.collection(MATHS, direction="into")
    assert sorted(edge.source for edge in arriving.edges) == ["ann", "bob"]


# --- tables, transactions, and the rest --------------------------------------------------------


def test_delete_takes_every_edge_along(school: Any) -> None:
    with school.meter() as meter:
        assert school.delete(Student, "ann") is True
    assert meter.requests == 3
    assert school.get(Student, "ann") is None
    assert list(school.out("ann", Enrollment)) == []
    assert [edge.source for edge in school.into("maths", Enrollment)] == ["bob"]
    assert school.delete(Course.ref("maths")) is True
    assert list(school.out("bob", Enrollment)) == []
    assert school.delete(Student, "ann") is False


def test_the_change_stream(g: Any) -> None:
    assert list(g.changes()) == []
    g.put(ANN)
    g.put(ANN)
    g.update(Student, "ann", name="Anna")
    g.delete(Student, "ann")
    changes = list(g.changes())
    assert [change.kind for change in changes] == ["insert", "modify", "remove"]
    assert [(change.old and change.old.name, change.new and change.new.name) for change in changes] == [
        (None, "Ann"),
        ("Ann", "Anna"),
        ("Anna", None),
    ]
    assert all(change.model is Student for change in changes)
    assert list(g.changes(after=changes[0].position)) == changes[1:]
    assert list(g.changes(after=changes[-1].position)) == []


def test_a_table_of_another_shape_is_refused(open_graph: Open) -> None:
    open_graph([Student, Course, Enrollment]).put(ANN)
    graph: Any = None
    with pytest.raises(TableMismatch, match="its keys are PK"):
        graph = open_graph([Student, Course, Enrollment], layout=AdjacencyList(partition_key="NodeId"))
        graph.get(Student, "ann")


def test_an_index_that_the_table_lacks_is_made(open_graph: Open) -> None:
    open_graph([Student, Course, Enrollment]).put(ANN)
    graph = open_graph([Student, Course, Enrollment, Attendance])
    assert graph.get(Student, "ann") == ANN
    for course, day in ((MATHS, 2), (ART, 1)):
        graph.put(course)
        graph.put(Attendance(source="ann", target=course.id, day=dt.date(2024, 1, day)))
    assert [edge.day.day for edge in graph.out("ann", Attendance)] == [1, 2]


def test_drop_and_create_table(school: Any) -> None:
    school.create_table()
    school.drop_table()
    with pytest.raises(AdjoinError, match="adjoin"):
        school.get(Student, "ann")
    school.create_table()
    assert school.get(Student, "ann") is None


@pytest.mark.parametrize("projection", [Projection("KEYS_ONLY"), Projection("INCLUDE", ("grade",))])
def test_an_index_that_holds_parts_only_is_completed_from_the_table(open_graph: Open, projection: Projection) -> None:
    layout = AdjacencyList(reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=projection))
    g = open_graph([Student, Course, Enrollment], layout=layout)
    edges = [Enrollment(source=f"{number:03}", target="art", grade="A", points=number) for number in range(120)]
    g.put_many(edges)
    with g.meter() as meter:
        assert list(g.into("art", Enrollment)) == edges
    assert meter.requests == 3
    assert g.into("art", Enrollment).count() == 120
    # The index does not hold the field, so the edges are filtered after they are fetched.
    assert list(g.into("art", Enrollment).where(field("points") > 3)) == edges[4:]
    assert g.collection(ART, direction="into").edges == edges
    assert g.delete(Course, "art") is True
    assert list(g.out("007", Enrollment)) == []


class Session(Node):
    id: int
    user: Annotated[str, Field(alias="User")]
    until: Annotated[dt.datetime | None, Expires(), Field(alias="ExpiresAt")] = None


def test_expiry_is_stored_as_a_second(open_graph: Open) -> None:
    g = open_graph([Session])
    moment = dt.datetime(2090, 1, 1, tzinfo=dt.UTC)
    g.put(Session(id=1, user="ann", until=moment))
    assert g.get(Session, 1).until == moment
    (change,) = g.changes()
    assert change.new_item["ExpiresAt"] == {"N": "3786912000"}
    with pytest.raises(InvalidValue, match="time zone"):
        g.put(Session(id=2, user="bob", until=dt.datetime(2090, 1, 1)))


def test_an_item_that_does_not_fit_its_class_is_named(open_graph: Open) -> None:
    class Loose(Node, label="STUDENT"):
        id: str
        name: int

    loose = open_graph([Loose])
    loose.put(Loose(id="ann", name=3))
    strict = open_graph([Student])
    with pytest.raises(InvalidItem, match=r"Student: name"):
        strict.get(Student, "ann")
    (change,) = strict.changes()
    assert change.new is None
    assert "name" in change.problem
