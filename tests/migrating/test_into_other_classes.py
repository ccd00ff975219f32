"""Migrations into another table with other classes: other keys, fields and labels."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, InvalidRequest, Node, Unique
from tests.migrating.into_school import Course, Student, filled, other, stored_raw


def test_classes_of_the_same_name_may_differ_in_label_fields_and_marks() -> None:
    def newer() -> list[type[Any]]:
        class Student(Node, label="PUPIL"):
            id: str
            name: str
            year: int

        class Course(Node):
            id: str
            title: Annotated[str, Unique()] = "none"

        class Enrollment(Edge[Student, Course], label="TAKES", key=("at",)):
            at: int

        return [Student, Course, Enrollment]

    old = filled(4)
    old.delete(Course, "C1")
    models = newer()
    new = other(models=models)
    report = old.migrate(into=new)
    assert len(report.refused) == 4
    assert "year" in str(report.refused[0])
    report = old.migrate(into=new, finish=True, fill={"Student.year": lambda item: 2000 + int(item["email"][1:])})
    assert report.ended
    assert new.get(models[0], "S3") == models[0](id="S3", name="n0", year=2003)
    assert [each.at for each in new.into("C0", models[2])] == [0, -2]
    (raw,) = (each for each in stored_raw(new) if each.get("email") == {"S": "e3"})
    assert raw["year"] == {"N": "2003"}, "the field that is gone moves along as an attribute"


def test_classes_that_would_lose_something_are_refused_before_anything_is_written() -> None:
    class Longer(Node, key=("id", "name")):
        id: str
        name: str

    Longer.__name__ = "Student"

    class Twice(Edge[Student, Course], key=("at",), label="ENROLLMENT"):
        at: int

    Twice.__name__ = "Enrollment"

    class Mutual(Edge[Student, Student], symmetric=True):
        pass

    class OneWay(Edge[Student, Student], label="MUTUAL"):
        pass

    OneWay.__name__ = "Mutual"
    cases: list[tuple[Graph, Graph, str]] = [
        (filled(1), other(models=[Student, Course]), "no class Enrollment"),
        (filled(1), other(models=[Longer, Course]), "the id of a Student is made of id here and of id, name"),
        (
            other(AdjacencyList(), [Student, Course, Twice]),
            other(),
            "distinguishes Enrollment edges between the same nodes",
        ),
        (other(AdjacencyList(), [Student, Mutual]), other(models=[Student, OneWay]), "symmetric in one of the two"),
    ]
    for old, new, message in cases:
        before = stored_raw(new)
        with pytest.raises(InvalidRequest, match=message):
            old.migrate(into=new)
        assert stored_raw(new) == before
