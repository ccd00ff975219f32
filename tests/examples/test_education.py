"""The Education table: stored items as its document prints them, and its access patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from adjoin import Graph, InvalidItem
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from examples import education
from examples.education import Course, Enrollment, Student
from tests.examples.raw import in_order, stored_items, table_definition, write_items

DOCUMENT: list[dict[str, Any]] = [
    {
        "PK": "STUDENT#S1",
        "SK": "METADATA",
        "EntityType": "STUDENT",
        "Name": "John Doe",
        "Email": "john@example.com",
        "YearLevel": 3,
    },
    {
        "PK": "STUDENT#S2",
        "SK": "METADATA",
        "EntityType": "STUDENT",
        "Name": "Jane Smith",
        "Email": "jane@example.com",
        "YearLevel": 2,
    },
    {
        "PK": "COURSE#C1",
        "SK": "METADATA",
        "EntityType": "COURSE",
        "Name": "Advanced Mathematics",
        "Professor": "Dr. Smith",
        "Credits": 3,
    },
    {
        "PK": "COURSE#C2",
        "SK": "METADATA",
        "EntityType": "COURSE",
        "Name": "Physics 101",
        "Professor": "Dr. Johnson",
        "Credits": 4,
    },
    {
        "PK": "STUDENT#S1",
        "SK": "COURSE#C1",
        "GSI1-PK": "COURSE#C1",
        "GSI1-SK": "STUDENT#S1",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T10:00:00",
        "Grade": "A",
    },
    {
        "PK": "STUDENT#S1",
        "SK": "COURSE#C2",
        "GSI1-PK": "COURSE#C2",
        "GSI1-SK": "STUDENT#S1",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T11:00:00",
        "Grade": "B+",
    },
    {
        "PK": "STUDENT#S2",
        "SK": "COURSE#C1",
        "GSI1-PK": "COURSE#C1",
        "GSI1-SK": "STUDENT#S2",
        "EntityType": "ENROLLMENT",
        "EnrollmentDate": "2024-03-31T09:00:00",
        "Grade": "A-",
    },
]

UNTYPED = [{name: value for name, value in item.items() if name != "EntityType"} for item in DOCUMENT]

STUDENTS, COURSES, ENROLLMENTS = list(education.SAMPLE[:2]), list(education.SAMPLE[2:4]), list(education.SAMPLE[4:])

TABLE = TableDefinition(
    "Education",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (IndexDefinition("GSI1", KeyAttribute("GSI1-PK"), KeyAttribute("GSI1-SK"), Projection("ALL")),),
)


@pytest.fixture
def g() -> Iterator[Graph]:
    with education.open_graph() as graph:
        graph.put_many(education.SAMPLE)
        yield graph


@pytest.fixture(params=["with its type attribute", "without"])
def written_by_others(request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A graph over items that another program wrote."""
    with education.open_graph() as graph:
        write_items(graph, "Education", UNTYPED if request.param == "without" else DOCUMENT)
        yield graph


def test_the_table_is_the_documents_table(g: Graph) -> None:
    assert table_definition(g, "Education") == TABLE


def test_stored_items_are_the_documents_items(g: Graph) -> None:
    assert in_order(stored_items(g, "Education")) == in_order(DOCUMENT)


def test_only_enrollments_are_in_the_index(g: Graph) -> None:
    enrollments = [item for item in DOCUMENT if "GSI1-PK" in item]
    assert in_order(stored_items(g, "Education", "GSI1")) == in_order(enrollments)


def test_a_student(g: Graph) -> None:
    with g.meter() as m:
        found = education.student(g)
    assert found == Student(id="S1", name="John Doe", email="john@example.com", year_level=3)
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)


def test_all_courses_of_a_student(g: Graph) -> None:
    with g.meter() as m:
        found = education.courses_of_student(g)
    assert found == [
        Enrollment(source="S1", target="C1", enrollment_date=datetime(2024, 3, 31, 10), grade="A"),
        Enrollment(source="S1", target="C2", enrollment_date=datetime(2024, 3, 31, 11), grade="B+"),
    ]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)


def test_all_courses_of_a_student_with_names(g: Graph) -> None:
    with g.meter() as m:
        found = education.courses_of_student_by_name(g)
    assert found == [("Advanced Mathematics", "A"), ("Physics 101", "B+")]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (2, 2, 1.5, 0)


def test_all_students_of_a_course_with_grades(g: Graph) -> None:
    with g.meter() as m:
        found = education.students_of_course(g)
    assert found == [("S1", "A"), ("S2", "A-")]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)
    assert m.tables["Education"].indexes["GSI1"].rcu == 0.5


def test_all_students_of_a_course_with_names_and_grades(g: Graph) -> None:
    with g.meter() as m:
        found = education.students_of_course_by_name(g)
    assert found == [("John Doe", "A"), ("Jane Smith", "A-")]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (2, 2, 1.5, 0)


def test_requests_are_those_of_the_document(g: Graph) -> None:
    courses = g.explain(g.out("S1", Enrollment))
    assert courses.index is None
    assert courses.partitions == ("STUDENT#S1",)
    assert "begins_with" in repr(courses.requests)
    assert "'COURSE#'" in repr(courses.requests)
    students = g.explain(g.into("C1", Enrollment))
    assert students.index == "GSI1"
    assert students.partitions == ("COURSE#C1",)


def test_items_of_another_program_are_readable(written_by_others: Graph) -> None:
    g = written_by_others
    assert g.get_many(Student, ["S1", "S2"]) == STUDENTS
    assert g.get_many(Course, ["C1", "C2"]) == COURSES
    assert education.courses_of_student(g) == ENROLLMENTS[:2]
    assert education.students_of_course_by_name(g) == [("John Doe", "A"), ("Jane Smith", "A-")]
    around = g.collection(Student.ref("S1"))
    assert around.node == STUDENTS[0]
    assert around.edges == ENROLLMENTS[:2]
    assert around.others == []


def test_changes_of_another_program_are_readable(written_by_others: Graph) -> None:
    assert [change.new for change in written_by_others.changes()] == list(education.SAMPLE)


def test_items_of_another_program_can_be_changed_and_deleted(written_by_others: Graph) -> None:
    g = written_by_others
    assert g.update(Enrollment, "S1", "C2", grade="A").grade == "A"
    assert g.disconnect(Enrollment, "S2", "C1")
    assert g.delete(Course, "C1")
    assert {item["SK"] for item in stored_items(g, "Education")} == {"METADATA", "COURSE#C2"}


def test_a_layout_without_the_type_attribute_reads_and_writes_the_same_keys() -> None:
    layout = replace(education.LAYOUT, type_attribute=None)
    with Graph(":memory:", education.MODELS, layout) as g:
        g.put_many(education.SAMPLE)
        assert in_order(stored_items(g, "Education")) == in_order(UNTYPED)
        assert education.students_of_course(g) == [("S1", "A"), ("S2", "A-")]


def test_items_that_no_class_explains_are_shown_as_they_are() -> None:
    with education.open_graph() as g:
        note = {"PK": "STUDENT#S1", "SK": "NOTE#1", "EntityType": "NOTE", "Text": "call back"}
        write_items(g, "Education", [*DOCUMENT, note])
        assert g.collection(Student.ref("S1")).others == [note]
        assert education.courses_of_student(g) == ENROLLMENTS[:2]


def test_an_item_that_says_it_is_something_else_is_not_read_as_a_student() -> None:
    with education.open_graph() as g:
        write_items(g, "Education", [{**DOCUMENT[0], "EntityType": "TEACHER"}])
        with pytest.raises(InvalidItem, match="another type"):
            education.student(g)
