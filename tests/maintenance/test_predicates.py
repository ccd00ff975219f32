"""A predicate holds in memory exactly where the same filter of a query does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

from adjoin import Edge, Graph, Node, field
from adjoin.fields import Predicate
from adjoin.plans.counting.contributions import predicate_test


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    city: str = ""
    floor: int | None = None


class Point(Node):
    id: str


class Line(Edge[Point, Point]):
    text: str | None = None
    number: Decimal | None = None
    whole: int = 0
    flag: bool = False
    day: dt.date | None = None
    colour: Colour | None = None
    words: list[str] = []
    tags: set[str] = set()
    place: Place | None = None
    data: bytes = b""


VALUES: dict[str, list[Any]] = {
    "text": [None, "", "a", "ab", "b", "é"],
    "number": [None, Decimal(0), Decimal("-1.50"), Decimal("1.5"), Decimal(10)],
    "whole": [0, -1, 2, 10],
    "flag": [True, False],
    "day": [None, dt.date(2024, 1, 2), dt.date(2023, 12, 31)],
    "colour": [None, Colour.RED, Colour.BLUE],
    "words": [[], ["a"], ["ab", "b"]],
    "tags": [set(), {"a"}, {"a", "b"}],
    "place": [None, Place(city="a"), Place(city="b", floor=2)],
    "data": [b"", b"a", b"ab"],
}
ORDERED = ["text", "number", "whole", "day", "data"]


def a_comparison(chance: Random) -> Predicate:
    name = chance.choice([*VALUES, "place.city", "place.floor"])
    of = field(name)
    values = {**VALUES, "place.city": ["a", "b", "c"], "place.floor": [None, 2, 3]}[name]
    value, other = chance.choice(values), chance.choice(values)
    kinds: list[Predicate] = [of == value, of != value, of.exists(), of.is_in([value, other])]
    if name in ORDERED and value is not None and other is not None:
        kinds += [of < value, of <= value, of > value, of >= value]
        kinds += [of.between(value, other)] if value <= other else []
    if name == "text" and value:
        kinds += [of.begins_with(value), of.contains(value)]
    if name in ("words", "tags"):
        kinds += [of.contains("a")]
    if name == "words":
        kinds += [of.begins_with(["ab"]), of.begins_with(["ab", "b"])]
    if name == "data":
        kinds += [of.begins_with(b"a"), of.contains(b"b")]
    return chance.choice(kinds)


def a_predicate(chance: Random, depth: int = 2) -> Predicate:
    if depth == 0 or chance.random() < 0.4:
        return a_comparison(chance)
    one, other = a_predicate(chance, depth - 1), a_predicate(chance, depth - 1)
    joined: list[Predicate] = [one & other, one | other, ~one]
    return chance.choice(joined)


@pytest.fixture(scope="module")
def g() -> Any:
    chance = Random(1)
    with Graph(":memory:", [Point, Line]) as graph:
        graph.put_many(
            Line(source="a", target=str(number), **{name: chance.choice(values) for name, values in VALUES.items()})
            for number in range(60)
        )
        yield graph


@pytest.mark.parametrize("seed", range(10))
def test_filters_and_predicates_agree(g: Graph, seed: int) -> None:
    chance = Random(seed)
    kind = g._layout.schema.edge(Line)
    edges = list(g.out("a", Line))
    for _ in range(40):
        predicate = a_predicate(chance)
        found = {edge.target for edge in g.out("a", Line).where(predicate)}
        holds = predicate_test(g._layout, kind, predicate)
        assert {edge.target for edge in edges if holds(edge)} == found, predicate
