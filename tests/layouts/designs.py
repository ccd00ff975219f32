"""Designs of tables, each with classes and some entities. `designs.txt` has what a layout makes of each."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from adjoin import (
    AdjacencyList,
    Child,
    Copy,
    Count,
    Edge,
    Index,
    Indexed,
    Keys,
    MaterializedGraph,
    Max,
    Node,
    Projection,
    Ref,
    Stored,
    Sum,
    Unique,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.schema import Schema


@dataclass(frozen=True)
class Design:
    """A layout for some classes, with entities that it stores."""

    layout: Layout
    models: list[Any]
    entities: list[Any]
    tenant: str | None = None

    def bound(self) -> BoundLayout:
        return self.layout.bind(Schema(self.models), self.tenant)


# --- people ------------------------------------------------------------------------------------


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None
    tags: Annotated[list[str], Indexed(elements=True)] = []


class Club(Node):
    id: int


class Member(Edge[Person, Club], order="since"):
    since: int = 0


class Talk(Edge[Person, Person], key=("at", "topic"), order="at"):
    at: int
    topic: str
    mood: Annotated[str | None, Indexed()] = None
    place: Annotated[str | None, Indexed()] = None


class Friend(Edge[Person, Person], symmetric=True):
    since: Annotated[int, Indexed()] = 0


class Post(Child[Person]):
    id: int
    title: str = ""


class Remark(Child[Post], key=("at",)):
    at: int
    text: str = ""


PEOPLE: list[Any] = [Person, Club, Member, Talk, Friend, Post, Remark]
ANN = Person(id="a#1", name="Ann", born=dt.date(1980, 12, 19), email="a@b", tags=["x", "y#"])
SOME_PEOPLE = [
    Person(id="b", name=""),
    Club(id=7),
    Member(source="b", target=7, since=-3),
    Talk(source="b", target="a#1", at=12, topic="b/c", place="here"),
    Friend(source="b", target="a#1", since=2),
    Friend(source="b", target="b"),
    Post(parent="a#1", id=12, title="t"),
    Remark(parent=("b", 3), at=5),
]

# --- a shop, whose orders share the partitions of customers ------------------------------------


class Customer(Node):
    id: str
    name: str = ""


class Order(Node, key=("customer", "number")):
    customer: str
    number: int
    state: str | None = None
    day: Annotated[dt.date, Stored("%Y-%m-%d")] = dt.date(2026, 1, 2)


class Product(Node):
    id: str
    price: int = 0


class Contains(Edge[Order, Product], key=("line",)):
    line: int
    amount: int = 1


class Sold(Edge[Product, Customer]):
    pass


SHOP = Design(
    AdjacencyList(
        type_attribute="T",
        keys={
            Customer: Keys("c|{id}", "c"),
            Order: Keys(
                "c|{customer}",
                "o|{number:06}",
                indexes={"Open": ("{state}", "{day}|{number}"), "State": "s|{state}"},
            ),
            Product: Keys("p|{id}", "p|{id}", type="prod"),
            Contains: Keys(
                sort="o|{source.number:06}|{line}|{target.id}",
                reverse_sort="in|{line}|{source.customer}|{source.number}",
            ),
            Sold: Keys("p|{source.id}", "to|{target.id}"),
        },
        indexes=[
            Index("Open", "OpenPK", "OpenSK", projection=Projection("KEYS_ONLY")),
            Index("State", "StatePK"),
            Index("ByPrice", "T", "price"),
        ],
    ),
    [Customer, Order, Product, Contains, Sold],
    [
        Customer(id="C1"),
        Order(customer="C1", number=7, state="open"),
        Order(customer="C1", number=8),
        Product(id="P1"),
        Contains(source=("C1", 7), target="P1", line=3),
        Sold(source="P1", target="C1"),
        Sold(source="a|b", target="C1"),
    ],
)

# --- keys that are numbers, and a table with a partition key only ------------------------------


class Sensor(Node):
    id: int


class Reading(Node, key=("sensor", "at")):
    sensor: int
    at: Annotated[dt.datetime, Field(gt=dt.datetime(1970, 1, 1, tzinfo=dt.UTC))]
    value: Decimal = Decimal(0)


class Near(Edge[Sensor, Sensor], key=("day",)):
    day: dt.date = dt.date(2026, 1, 1)
    metres: int = 0


NUMBERS = Design(
    AdjacencyList(
        partition_key="id",
        sort_key="at",
        types={"id": "N", "at": "N"},
        reverse=None,
        keys={Sensor: Keys("{id}", "0"), Reading: Keys("{sensor}", "{at:epoch}")},
    ),
    [Sensor, Reading],
    [Sensor(id=4), Reading(sensor=4, at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC), value=Decimal("1.5"))],
)
ONE_KEY = Design(
    AdjacencyList(
        partition_key="pk",
        sort_key=None,
        reverse=None,
        indexes=[
            Index("From", "from", "day"),
            Index("ByEnd", "to", shards=2),
            Index("Metres", "m", "metres", projection=Projection("KEYS_ONLY")),
        ],
        keys={
            Sensor: Keys("s.{id}"),
            Near: Keys(
                "{source.id}.{target.id}.{day}",
                indexes={"From": "{source.id}", "ByEnd": "{target.id}.{shard}", "Metres": "m"},
            ),
        },
    ),
    [Sensor, Near],
    [Sensor(id=4), Near(source=4, target=5, metres=6)],
)

# --- families of classes, and ends of several classes ------------------------------------------


class Animal(Node, discriminator="kind"):
    id: str
    kind: str = "animal"
    name: Annotated[str | None, Indexed()] = None


class Dog(Animal):
    kind: Literal["dog"] = "dog"
    barks: int = 0


class Cat(Animal):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Owner(Node):
    id: str


class Has(Edge[Owner, Animal | Club]):
    since: int = 0


class Likes(Edge[Owner | Animal, Owner]):
    pass


FAMILY: list[Any] = [Animal, Dog, Cat, Owner, Club, Has, Likes]
ANIMALS = [
    Animal(id="x"),
    Dog(id="d", barks=2),
    Cat(id="c", lives=7, name="Tom"),
    Owner(id="o"),
    Club(id=3),
    Has(source="o", target=Ref(Club, 3)),
    Has(source="o", target=Ref(Animal, "d")),
    Likes(source=Ref(Animal, "c"), target="o"),
]

# --- days in partition keys, shards, and ends that only attributes tell ------------------------


class Device(Node):
    id: str
    city: str = "Bern"


class Event(Node, key=("device", "at")):
    device: str
    at: dt.datetime
    level: int | None = None


class Alarm(Edge[Device, Owner], key=("at",)):
    at: dt.datetime
    grade: str = "low"


class Installed(Edge[Device, Owner]):
    floor: int = 0


DAYS = Design(
    AdjacencyList(
        reverse=None,
        keys={
            Device: Keys("dev#{id}", "dev", indexes={"City": ("{city}#{shard}", "{id}")}),
            Event: Keys("ev#{device}#{at:%Y-%m-%d}", "{at}", indexes={"Level": ("level#{shard}", "{level:02}#{at}")}),
            Alarm: Keys(
                "al#{at:%Y-%m-%d}",
                "{at}#{source.id}#{target.id}",
                indexes={"Level": ("{source.id}#{shard}", "al#{at}"), "ByEnd": ("{target}", "{at}")},
            ),
        },
        indexes=[
            Index("City", "CPK", "CSK", shards=range(1, 3), shard_by="city"),
            Index("Level", "LPK", "LSK", shards=2, projection=Projection("INCLUDE", ("level",))),
            Index("ByEnd", "TPK", "TSK"),
        ],
    ),
    [Device, Event, Owner, Alarm],
    [
        Device(id="d1"),
        Event(device="d1", at=dt.datetime(2026, 1, 2, 3, 4, 5), level=7),
        Event(device="d1", at=dt.datetime(2026, 1, 2)),
        Owner(id="o"),
        Alarm(source="d1", target="o", at=dt.datetime(2026, 1, 2, 3)),
    ],
)
ENDS_IN_ATTRIBUTES = Design(
    AdjacencyList(
        reverse=None,
        keys={
            Device: Keys("dev#{id}", "dev"),
            Owner: Keys("own#{id}", "own", attributes={"shown": "owner {id}"}),
            Alarm: Keys(
                sort="al#{at}", attributes={"owner": "{target.id}"}, indexes={"ByOwner": ("{target.id}", "{grade}")}
            ),
        },
        indexes=[Index("ByOwner", "owner", "graded")],
    ),
    [Device, Owner, Alarm],
    [Device(id="d1"), Owner(id="o"), Alarm(source="d1", target="o", at=dt.datetime(2026, 1, 2, 3))],
)


class Skill(Node):
    id: str


class Knows(Edge[Owner, Skill]):
    skill: str
    level: int | None = None


FIELD_IS_TARGET = Design(
    AdjacencyList(
        type_attribute="kind",
        shared_ids=True,
        keys={
            Owner: Keys("{id}", "PROFILE", type="owner"),
            Skill: Keys("{id}", "SKILL", type="skill"),
            Knows: Keys(
                "{source.id}",
                "SKILL|{skill}",
                reverse_partition="{skill}",
                reverse_sort="{source.id}",
                indexes={"Level": ("{skill}", "{level:02}")},
            ),
        },
        indexes=[Index("Level", "LevelPK", "LevelSK")],
    ),
    [Owner, Skill, Knows],
    [
        Owner(id="o"),
        Skill(id="py"),
        Knows(source="o", target="py", skill="py", level=3),
        Knows(source="o", target="py", skill="py"),
    ],
)

# --- edges whose keys can be those of nodes ----------------------------------------------------


class Component(Node):
    id: str
    name: Annotated[str, Field(pattern="[a-z]*")] = ""


class Assembly(Node):
    id: str


class Needs(Edge[Component, Component]):
    pieces: int = 1


class Uses(Edge[Assembly, Component]):
    pass


WITHOUT_LABELS = Design(
    AdjacencyList(
        node="{node}",
        edge="{target}",
        keys={Component: Keys(partition="c-{id}"), Assembly: Keys(partition="a-{id}")},
    ),
    [Component, Assembly, Needs, Uses],
    [
        Component(id="x"),
        Assembly(id="x"),
        Needs(source="x", target="y"),
        Needs(source="x", target="x"),
        Uses(source="x", target="x"),
    ],
)


# --- fields that adjoin itself changes ---------------------------------------------------------


class Author(Node):
    id: str
    name: str = ""
    best: Annotated[int | None, Max("Wrote", field="stars"), Indexed()] = None
    works: Annotated[int, Count("Wrote"), Indexed()] = 0
    stars: Annotated[int, Sum("Wrote", field="stars")] = 0


class Work(Node):
    id: str
    title: str = ""
    readers: Annotated[int, Count("Reads", consistency="transaction")] = 0


class Wrote(Edge[Author, Work], order="title"):
    title: Annotated[str, Copy("target.title")] = ""
    stars: int = 0


class Reads(Edge[Author, Work]):
    pass


class Met(Edge[Author, Author], symmetric=True, order="name"):
    name: Annotated[str, Copy("target.name")] = ""


AGGREGATES = Design(
    AdjacencyList(
        indexes=[Index("ByWorks", "AllPK", "WorksSK"), Index("ByStars", "StarsPK", "stars")],
        keys={Author: Keys(indexes={"ByWorks": ("all", "{works:08}"), "ByStars": "authors"})},
    ),
    [Author, Work, Wrote, Reads, Met],
    [
        Author(id="a", name="Ann", best=4, works=2, stars=7),
        Work(id="w", title="War", readers=1),
        Wrote(source="a", target="w", title="War", stars=4),
        Reads(source="a", target="w"),
        Met(source="b", target="a", name="Ann"),
    ],
)

DESIGNS: dict[str, Design] = {
    "an adjacency list": Design(AdjacencyList(), PEOPLE, [ANN, *SOME_PEOPLE]),
    "an adjacency list with types, fixed shards and literal keys": Design(
        AdjacencyList(type_attribute="type", shards=3, escape=False), PEOPLE, SOME_PEOPLE
    ),
    "a tenant of a materialized graph": Design(MaterializedGraph(shards=2), PEOPLE, [ANN, *SOME_PEOPLE], "acme"),
    "a shop whose orders share the partitions of customers": SHOP,
    "keys that are numbers": NUMBERS,
    "a partition key only": ONE_KEY,
    "a family, and ends of several classes": Design(AdjacencyList(type_attribute="type"), FAMILY, ANIMALS),
    "a family in literal keys, without a reverse index": Design(
        AdjacencyList(
            keys={
                Animal: Keys("a#{id}", "a", indexes={"Kind": "k#{kind}"}),
                Club: Keys("c#{id}", "c"),
                Has: Keys(indexes={"Back": ("{target}", "has#{since:06}#{source.id}")}),
            },
            reverse=None,
            indexes=[Index("Kind", "KindPK"), Index("Back", "BackPK", "BackSK")],
        ),
        FAMILY,
        ANIMALS,
    ),
    "days in partition keys, and shards": DAYS,
    "ends that only attributes tell": ENDS_IN_ATTRIBUTES,
    "a field that is the target": FIELD_IS_TARGET,
    "edges without labels, whose keys can be those of nodes": WITHOUT_LABELS,
    "fields that adjoin itself changes": AGGREGATES,
    "a tenant that templates name": Design(
        AdjacencyList(
            partition_key="P",
            sort_key="S",
            reverse=Index("Inverted", "S", "P"),
            keys={
                Owner: Keys("T#{tenant}#O#{id}", "T#{tenant}#O#{id}"),
                Device: Keys("T#{tenant}#D#{id}", "T#{tenant}#D#{id}"),
                Installed: Keys("T#{tenant}#D#{source.id}", "T#{tenant}#O#{target.id}"),
            },
        ),
        [Owner, Device, Installed],
        [Owner(id="o"), Device(id="d"), Installed(source="d", target="o", floor=2)],
        "acme",
    ),
}
