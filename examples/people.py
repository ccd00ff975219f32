"""People: a materialized graph of people, dates, places and skills, with one index for all values.

    NodeId     TypeTarget               Data (the key of GSI1)      GSIPK              Target (the key of GSI2)
    PERSON#P1  PERSON#P1                Aino%20Virtanen#PERSON#P1   PERSON#name#0
    PERSON#P1  BORN_ON#DATE#1980-12-19  1980-12-19#PERSON#P1#…      BORN_ON#date#1     DATE#1980-12-19
    PERSON#P1  LIVES_IN#PLACE#helsinki  FI$Uusimaa$Helsinki#…       LIVES_IN#path#0    PLACE#helsinki
    PERSON#P1  HAS_SKILL#SKILL#python   python$2009#PERSON#P1#…     HAS_SKILL#skill#1  SKILL#python

Everything about a person is in one partition. The first index is over Data: it holds names, dates, places
and skills, each in its own order and spread over two shards. The second index is over the targets of edges:
it finds who is connected to a date, place or skill.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import Annotated, Any

from adjoin import Edge, Graph, Indexed, MaterializedGraph, Node, field


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]


class Date(Node):
    id: dt.date


class Place(Node):
    """`path` leads to the place: country, region, city."""

    id: str
    path: Annotated[tuple[str, ...], Indexed()]


class Skill(Node):
    id: str
    name: str


class BornOn(Edge[Person, Date]):
    date: Annotated[dt.date, Indexed()]


class BornIn(Edge[Person, Place]):
    path: Annotated[tuple[str, ...], Indexed()]


class LivesIn(Edge[Person, Place]):
    path: Annotated[tuple[str, ...], Indexed()]


class HasSkill(Edge[Person, Skill]):
    """`skill` is the skill and the year in which it began, so that a search returns the longest experience first."""

    skill: Annotated[tuple[str, str], Indexed()]


MODELS = (Person, Date, Place, Skill, BornOn, BornIn, LivesIn, HasSkill)

LAYOUT = MaterializedGraph(
    table="People",
    node="NodeId",
    type_target="TypeTarget",
    data="Data",
    shards=2,
    type_attribute="Type",
)

HELSINKI, TURKU = ("FI", "Uusimaa", "Helsinki"), ("FI", "Varsinais-Suomi", "Turku")
LISBON = ("PT", "Lisboa", "Lisboa")

SAMPLE = (
    Person(id="P1", name="Aino Virtanen"),
    Person(id="P2", name="Bruno Costa"),
    Person(id="P4", name="Aleksi Niemi"),
    Date(id=dt.date(1980, 12, 19)),
    Date(id=dt.date(1991, 3, 7)),
    Place(id="helsinki", path=HELSINKI),
    Place(id="turku", path=TURKU),
    Place(id="lisboa", path=LISBON),
    Skill(id="python", name="Python"),
    Skill(id="piano", name="Piano"),
    BornOn(source="P1", target=dt.date(1980, 12, 19), date=dt.date(1980, 12, 19)),
    BornOn(source="P2", target=dt.date(1991, 3, 7), date=dt.date(1991, 3, 7)),
    BornOn(source="P4", target=dt.date(1980, 12, 19), date=dt.date(1980, 12, 19)),
    BornIn(source="P1", target="turku", path=TURKU),
    BornIn(source="P2", target="lisboa", path=LISBON),
    BornIn(source="P4", target="helsinki", path=HELSINKI),
    LivesIn(source="P1", target="helsinki", path=HELSINKI),
    LivesIn(source="P2", target="helsinki", path=HELSINKI),
    LivesIn(source="P4", target="turku", path=TURKU),
    HasSkill(source="P1", target="python", skill=("python", "2009")),
    HasSkill(source="P2", target="python", skill=("python", "2004")),
    HasSkill(source="P2", target="piano", skill=("piano", "1999")),
    HasSkill(source="P4", target="piano", skill=("piano", "2020")),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def everything_about_person(g: Graph) -> tuple[Person | None, list[Edge[Any, Any]]]:
    """everything about a person"""
    found = g.collection(Person.ref("P1"))
    return found.node, found.edges


def people_by_name(g: Graph) -> list[str]:
    """people whose name begins with a letter"""
    return [person.name for person in g.find(Person, field("name").begins_with("A"))]


def born_between(g: Graph) -> list[tuple[dt.date, str]]:
    """who was born between two dates"""
    born = g.find(BornOn, field("date").between(dt.date(1980, 1, 1), dt.date(1991, 12, 31)))
    return [(edge.date, edge.source) for edge in born]


def born_between_by_name(g: Graph) -> list[tuple[dt.date, str]]:
    """who was born between two dates, with their names"""
    born = g.find(BornOn, field("date").between(dt.date(1980, 1, 1), dt.date(1991, 12, 31)))
    return [(edge.date, person.name) for edge, person in born.nodes()]


def people_in_country(g: Graph) -> list[str]:
    """who lives in a country"""
    return [edge.source for edge in g.find(LivesIn, field("path").begins_with(("FI",)))]


def people_in_region(g: Graph) -> list[str]:
    """who lives in a region"""
    return [edge.source for edge in g.find(LivesIn, field("path").begins_with(("FI", "Uusimaa")))]


def people_in_city(g: Graph) -> list[str]:
    """who lives in a city"""
    return [edge.source for edge in g.find(LivesIn, field("path") == ("FI", "Varsinais-Suomi", "Turku"))]


def people_with_skill(g: Graph) -> list[tuple[str, str]]:
    """who has a skill, the longest first"""
    return [(edge.source, edge.skill[1]) for edge in g.find(HasSkill, field("skill").begins_with(("python",)))]


def people_born_on_date(g: Graph) -> list[str]:
    """who is connected to this date"""
    return [edge.source for edge in g.into(dt.date(1980, 12, 19), BornOn)]


def people_of_place(g: Graph) -> list[Edge[Any, Any]]:
    """who is connected to this place, in any way"""
    return g.collection(Place.ref("helsinki"), direction="into").edges


def people_of_skill(g: Graph) -> list[str]:
    """who is connected to this skill, with their names"""
    return [person.name for edge, person in g.into("python", HasSkill).nodes()]


PATTERNS = (
    everything_about_person,
    people_by_name,
    born_between,
    born_between_by_name,
    people_in_country,
    people_in_region,
    people_in_city,
    people_with_skill,
    people_born_on_date,
    people_of_place,
    people_of_skill,
)
