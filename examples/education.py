"""Education: students, courses and enrollments, found from both ends.

    PK           SK          GSI1-PK     GSI1-SK      EntityType
    STUDENT#S1   METADATA                             STUDENT
    COURSE#C1    METADATA                             COURSE
    STUDENT#S1   COURSE#C1   COURSE#C1   STUDENT#S1   ENROLLMENT

Stored attributes have other names than the fields (Name, YearLevel); the alias generator makes them from
the fields' names. Only enrollments have the index's keys, so only they are in the index.
"""

from __future__ import annotations

import os
from datetime import datetime

from pydantic.alias_generators import to_pascal

from adjoin import AdjacencyList, Edge, Graph, Index, Node


class Student(Node, alias_generator=to_pascal):
    id: str
    name: str
    email: str
    year_level: int


class Course(Node, alias_generator=to_pascal):
    id: str
    name: str
    professor: str
    credits: int


class Enrollment(Edge[Student, Course], alias_generator=to_pascal):
    enrollment_date: datetime
    grade: str


MODELS = (Student, Course, Enrollment)

LAYOUT = AdjacencyList(
    table="Education",
    partition_key="PK",
    sort_key="SK",
    node="METADATA",
    edge="{target}",
    type_attribute="EntityType",
    reverse=Index("GSI1", "GSI1-PK", "GSI1-SK", partition="{target}", sort="{source}"),
)

SAMPLE = (
    Student(id="S1", name="John Doe", email="john@example.com", year_level=3),
    Student(id="S2", name="Jane Smith", email="jane@example.com", year_level=2),
    Course(id="C1", name="Advanced Mathematics", professor="Dr. Smith", credits=3),
    Course(id="C2", name="Physics 101", professor="Dr. Johnson", credits=4),
    Enrollment(source="S1", target="C1", enrollment_date=datetime(2024, 3, 31, 10), grade="A"),
    Enrollment(source="S1", target="C2", enrollment_date=datetime(2024, 3, 31, 11), grade="B+"),
    Enrollment(source="S2", target="C1", enrollment_date=datetime(2024, 3, 31, 9), grade="A-"),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def student(g: Graph) -> Student | None:
    """a student"""
    return g.get(Student, "S1")


def courses_of_student(g: Graph) -> list[Enrollment]:
    """all courses of a student"""
    return list(g.out("S1", Enrollment))


def courses_of_student_by_name(g: Graph) -> list[tuple[str, str]]:
    """all courses of a student, with their names"""
    return [(course.name, edge.grade) for edge, course in g.out("S1", Enrollment).nodes()]


def students_of_course(g: Graph) -> list[tuple[str, str]]:
    """all students of a course, with their grades"""
    return [(edge.source, edge.grade) for edge in g.into("C1", Enrollment)]


def students_of_course_by_name(g: Graph) -> list[tuple[str, str]]:
    """all students of a course, with their names and grades"""
    return [(student.name, edge.grade) for edge, student in g.into("C1", Enrollment).nodes()]


PATTERNS = (
    student,
    courses_of_student,
    courses_of_student_by_name,
    students_of_course,
    students_of_course_by_name,
)
