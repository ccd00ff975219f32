"""The student, teacher and home table: stored items as its document prints them, and its access patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from adjoin import Graph, InvalidValue, UnknownField
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from examples import homes
from examples.homes import Class, Country, Home, Student, Teacher
from tests.examples.raw import in_order, stored_items, table_definition, write_items

DOCUMENT: list[dict[str, Any]] = [
    {
        "PK": "STUDENT#TOM",
        "SK": "STUDENT#TOM",
        "TYPE": "STUDENT",
        "Name": "Tom",
        "GSI1PK": "STUDENT#TOM",
        "GSI1SK": "STUDENT#TOM",
    },
    {
        "PK": "STUDENT#TOM",
        "SK": "TEACHER#SIMON#CLASS#MATH",
        "TYPE": "CLASS",
        "Subject": "Math",
        "Name": "Simon",
        "GSI1PK": "TEACHER#SIMON",
        "GSI1SK": "CLASS#MATH",
    },
    {
        "PK": "STUDENT#TOM",
        "SK": "TEACHER#MICHAEL#CLASS#PHYSICS",
        "TYPE": "CLASS",
        "Subject": "Physics",
        "Name": "Michael",
        "GSI1PK": "TEACHER#MICHAEL",
        "GSI1SK": "CLASS#PHYSICS",
    },
    {
        "PK": "STUDENT#TOM",
        "SK": "HOME#USA#CA#LOS_ANGELES",
        "TYPE": "HOME",
        "GSI1PK": "COUNTRY#USA",
        "GSI1SK": "HOME#CA#LOS_ANGELES",
    },
]

TABLE = TableDefinition(
    "Homes",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (IndexDefinition("GSI1", KeyAttribute("GSI1PK"), KeyAttribute("GSI1SK"), Projection("ALL")),),
)

TOM = Student(id="TOM", name="Tom")
MATH = Class(source="TOM", target="SIMON", subject="Math", name="Simon")
PHYSICS = Class(source="TOM", target="MICHAEL", subject="Physics", name="Michael")
LOS_ANGELES = Home(source="TOM", target="USA", state="CA", city="LOS_ANGELES")


@pytest.fixture
def g() -> Iterator[Graph]:
    with homes.open_graph() as graph:
        graph.put_many(homes.SAMPLE)
        yield graph


def test_the_table_is_the_documents_table(g: Graph) -> None:
    assert table_definition(g, "Homes") == TABLE


def test_stored_items_are_the_documents_items(g: Graph) -> None:
    of_tom = [item for item in stored_items(g, "Homes") if item["PK"] == "STUDENT#TOM"]
    assert in_order(of_tom) == in_order(DOCUMENT)


def test_a_students_classes(g: Graph) -> None:
    with g.meter() as m:
        found = homes.classes_of_student(g)
    assert found == [PHYSICS, MATH]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)


def test_a_teachers_classes(g: Graph) -> None:
    with g.meter() as m:
        found = homes.classes_of_teacher(g)
    assert [(each.subject, each.source) for each in found] == [("Chemistry", "ANA"), ("Math", "ANA"), ("Math", "TOM")]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)
    assert m.tables["Homes"].indexes["GSI1"].rcu == 0.5


@pytest.mark.parametrize(
    ("pattern", "people"),
    [
        (homes.people_in_country, ["TOM", "ANA", "LIN"]),
        (homes.people_in_state, ["TOM", "ANA"]),
        (homes.people_in_city, ["TOM"]),
    ],
)
def test_everybody_who_lives_in_a_country_a_state_a_city(g: Graph, pattern: Any, people: list[str]) -> None:
    with g.meter() as m:
        found = pattern(g)
    assert found == people
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)
    assert m.tables["Homes"].indexes["GSI1"].rcu == 0.5


def test_a_prefix_of_a_name_is_not_the_name(g: Graph) -> None:
    g.put(Student(id="PIA", name="Pia"))
    g.put(Home(source="PIA", target="USA", state="CAX", city="LOS"))
    assert homes.people_in_state(g) == ["TOM", "ANA"]
    assert [home.source for home in g.into("USA", Home).begins_with("CA")] == ["TOM", "ANA", "PIA"]


def test_a_hierarchy_narrows_from_the_left(g: Graph) -> None:
    with pytest.raises(InvalidValue, match="narrows from the left"):
        g.into("USA", Home).within(city="LOS_ANGELES")
    with pytest.raises(UnknownField, match="stat"):
        g.into("USA", Home).within(stat="CA")


@pytest.mark.parametrize("typed", [True, False])
def test_items_of_another_program_are_readable(typed: bool) -> None:
    with homes.open_graph() as g:
        items = DOCUMENT if typed else [{k: v for k, v in item.items() if k != "TYPE"} for item in DOCUMENT]
        write_items(g, "Homes", items)
        assert g.get(Student, "TOM") == TOM
        assert homes.classes_of_student(g) == [PHYSICS, MATH]
        assert list(g.into(Teacher.ref("SIMON"), Class)) == [MATH]
        assert list(g.into(Country.ref("USA"), Home).within(state="CA").nodes()) == [(LOS_ANGELES, TOM)]
        around = g.collection(Student.ref("TOM"))
        assert (around.node, around.edges, around.others) == (TOM, [LOS_ANGELES, PHYSICS, MATH], [])
        assert g.edge(Class, "TOM", "SIMON", subject="Math") == MATH
        assert g.edge(Home, "TOM", "USA", state="CA", city="LOS_ANGELES") == LOS_ANGELES
