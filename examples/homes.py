"""Students, their classes and their homes: computed index keys and sort keys with a hierarchy.

    PK            SK                         TYPE      Subject   Name    GSI1PK          GSI1SK
    STUDENT#TOM   STUDENT#TOM                STUDENT             Tom     STUDENT#TOM     STUDENT#TOM
    STUDENT#TOM   TEACHER#SIMON#CLASS#MATH   CLASS     Math      Simon   TEACHER#SIMON   CLASS#MATH
    STUDENT#TOM   HOME#USA#CA#LOS_ANGELES    HOME                        COUNTRY#USA     HOME#CA#LOS_ANGELES

Country, state and city are stored in the keys only. The index sorts homes by state, then by city, so that a
prefix of its sort key is a state or a city.
"""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

from adjoin import AdjacencyList, Edge, Graph, Index, Keys, Node


class Student(Node):
    id: str
    name: Annotated[str, Field(alias="Name")]


class Teacher(Node):
    id: str
    name: Annotated[str, Field(alias="Name")]


class Country(Node):
    id: str
    name: Annotated[str, Field(alias="Name")]


class Class(Edge[Student, Teacher], key=("subject",)):
    """`name` repeats the teacher's name. A teacher may teach a student several subjects."""

    subject: Annotated[str, Field(alias="Subject")]
    name: Annotated[str, Field(alias="Name")]


class Home(Edge[Student, Country]):
    state: str
    city: str


MODELS = (Student, Teacher, Country, Class, Home)

LAYOUT = AdjacencyList(
    table="Homes",
    partition_key="PK",
    sort_key="SK",
    node="{node}",
    type_attribute="TYPE",
    reverse=Index("GSI1", "GSI1PK", "GSI1SK"),
    keys={
        Student: Keys(reverse_partition="{node}", reverse_sort="{node}"),
        Class: Keys(
            sort="{target}#CLASS#{subject:upper}",
            reverse_partition="{target}",
            reverse_sort="CLASS#{subject:upper}",
        ),
        Home: Keys(
            sort="HOME#{country}#{state}#{city}",
            reverse_partition="COUNTRY#{country}",
            reverse_sort="HOME#{state}#{city}",
        ),
    },
)

SAMPLE = (
    Student(id="TOM", name="Tom"),
    Student(id="ANA", name="Ana"),
    Student(id="LIN", name="Lin"),
    Class(source="TOM", target="SIMON", subject="Math", name="Simon"),
    Class(source="TOM", target="MICHAEL", subject="Physics", name="Michael"),
    Class(source="ANA", target="SIMON", subject="Math", name="Simon"),
    Class(source="ANA", target="SIMON", subject="Chemistry", name="Simon"),
    Home(source="TOM", target="USA", state="CA", city="LOS_ANGELES"),
    Home(source="ANA", target="USA", state="CA", city="SAN_DIEGO"),
    Home(source="LIN", target="USA", state="NY", city="ALBANY"),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def classes_of_student(g: Graph) -> list[Class]:
    """a student's classes"""
    return list(g.out("TOM", Class))


def classes_of_teacher(g: Graph) -> list[Class]:
    """a teacher's classes"""
    return list(g.into("SIMON", Class))


def people_in_country(g: Graph) -> list[str]:
    """everybody who lives in a country"""
    return [home.source for home in g.into(Country.ref("USA"), Home)]


def people_in_state(g: Graph) -> list[str]:
    """everybody who lives in a state"""
    return [home.source for home in g.into(Country.ref("USA"), Home).within(state="CA")]


def people_in_city(g: Graph) -> list[str]:
    """everybody who lives in a city"""
    return [home.source for home in g.into(Country.ref("USA"), Home).within(state="CA", city="LOS_ANGELES")]


PATTERNS = (
    classes_of_student,
    classes_of_teacher,
    people_in_country,
    people_in_state,
    people_in_city,
)
