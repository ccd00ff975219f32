"""The materialized graph of DynamoDB's guide, key for key: people with their births, friends and skills.

    NodeId    TypeTarget         Data                     GSI PK
    1         PERSON|1           John Doe                 2         0…3, by a hash of the person's own Data
    1         DATE|2|BIRTH       1980-12-19               2         an edge, in the shard of its person
    1         PERSON|5|FRIEND    Jane Smith               2         a copy of the friend's name
    1         SKILL|6            Java Developer|Senior    2         an edge without a kind behind its target
    2         DATE|2             1980-12-19               0         a value: a date, a place or a skill
    6         SKILL|6            Java Developer           0

Ids are bare, and belong to all classes together. The first index is over Data: one question finds everything with a
value, whatever its class. The second is over TypeTarget: one question finds everything at a target. Both have four
shards, so a question is four queries, side by side. `people.py` is such a graph in adjoin's own keys.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import Field

from adjoin import Copy, Edge, Graph, Keys, MaterializedGraph, Node, field


class Person(Node):
    id: str
    name: Annotated[str, Field(alias="Data")]


class Date(Node):
    id: str
    day: Annotated[str, Field(alias="Data")]


class Place(Node):
    """`path` leads to the place: country, state, city."""

    id: str
    path: Annotated[str, Field(alias="Data")]


class Skill(Node):
    id: str
    name: Annotated[str, Field(alias="Data")]


class BornOn(Edge[Person, Date], label="BIRTH"):
    day: Annotated[str, Copy("target.day"), Field(alias="Data")] = ""
    person: Annotated[str, Copy("source.name")] = ""


class BornIn(Edge[Person, Place]):
    path: Annotated[str, Copy("target.path"), Field(alias="Data")] = ""
    person: Annotated[str, Copy("source.name")] = ""


class Friend(Edge[Person, Person]):
    """A friendship is two of them, one from each person."""

    name: Annotated[str, Copy("target.name"), Field(alias="Data")] = ""
    person: Annotated[str, Copy("source.name")] = ""


class HasSkill(Edge[Person, Skill]):
    """`skill` is the name of the skill and the level."""

    skill: Annotated[str, Field(alias="Data")]
    person: Annotated[str, Copy("source.name")] = ""


MODELS = (Person, Date, Place, Skill, BornOn, BornIn, Friend, HasSkill)

LAYOUT = MaterializedGraph.as_published(
    shards=4,
    table="PublishedGraph",
    keys={BornIn: Keys(sort="PLACE|{target.id}|BIRTH"), HasSkill: Keys(sort="SKILL|{target.id}")},
)

SAMPLE = (
    Person(id="1", name="John Doe"),
    Date(id="2", day="1980-12-19"),
    Place(id="3", path="UK|England|London"),
    Place(id="4", path="USA|Texas|Austin"),
    Person(id="5", name="Jane Smith"),
    Skill(id="6", name="Java Developer"),
    Skill(id="7", name="Guitar"),
    BornOn(source="1", target="2"),
    BornIn(source="1", target="4"),
    Friend(source="1", target="5"),
    HasSkill(source="1", target="6", skill="Java Developer|Senior"),
    BornOn(source="5", target="2"),
    BornIn(source="5", target="3"),
    Friend(source="5", target="1"),
    HasSkill(source="5", target="7", skill="Guitar|Advanced"),
)


def open_graph(location: str | os.PathLike[str] = ":memory:") -> Graph:
    return Graph(location, MODELS, LAYOUT)


# --- access patterns ---------------------------------------------------------------------------


def everything_about_person(g: Graph) -> tuple[Person | None, list[Edge[Any, Any]]]:
    """everything about a person"""
    found = g.collection(Person.ref("1"))
    return found.node, found.edges


def everything_on_day(g: Graph) -> list[Any]:
    """everything with this date: the date, and who was born on it"""
    return list(g.index("GSI1").equals("1980-12-19"))


def everything_with_name(g: Graph) -> list[Any]:
    """everything with this name: the person, and who calls them a friend"""
    return list(g.index("GSI1").equals("Jane Smith"))


def everything_in_country(g: Graph) -> list[Any]:
    """everything in a country: places, and who was born there"""
    return list(g.index("GSI1").begins_with("USA|"))


def everything_in_state(g: Graph) -> list[Any]:
    """everything in a state"""
    return list(g.index("GSI1").begins_with("USA|Texas|"))


def everything_with_skill(g: Graph) -> list[Any]:
    """a skill, and everybody who has it"""
    return list(g.index("GSI1").begins_with("Java Developer"))


def people_with_level(g: Graph) -> list[str]:
    """who has a skill at a level"""
    return [edge.source for edge in g.find(HasSkill, field("skill") == "Java Developer|Senior")]


def date_with_births(g: Graph) -> list[Any]:
    """a date with its births, by its id"""
    return list(g.index("GSI2").begins_with("DATE|2"))


def person_with_friends(g: Graph) -> list[Any]:
    """a person, and who calls them a friend, by the id"""
    return list(g.index("GSI2").begins_with("PERSON|1"))


def skill_with_people(g: Graph) -> list[Any]:
    """a skill with everybody who has it, by its id"""
    return list(g.index("GSI2").begins_with("SKILL|6"))


def born_on_day(g: Graph) -> list[str]:
    """who was born on a date, with their names"""
    return [person.name for edge, person in g.into("2", BornOn).nodes()]


PATTERNS = (
    everything_about_person,
    everything_on_day,
    everything_with_name,
    everything_in_country,
    everything_in_state,
    everything_with_skill,
    people_with_level,
    date_with_births,
    person_with_friends,
    skill_with_people,
    born_on_day,
)
