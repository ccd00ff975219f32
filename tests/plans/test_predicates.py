"""Predicates that are tested in Python: the same answers as a condition that DynamoDB evaluates."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Edge, Graph, Node, field
from adjoin.fields import Predicate
from adjoin.plans.steps.predicates import holds


class Person(Node):
    id: str
    age: int | None = None
    name: str = ""
    tags: list[str] = []


class Knows(Edge[Person, Person]):
    since: int = 0


ANN = Person(id="ann", age=30, name="Ann", tags=["a", "b"])
BEN = Person(id="ben", name="Ben")
AGE, NAME, TAGS = field("age"), field("name"), field("tags")
CASES: list[tuple[Predicate, bool, bool]] = [
    (AGE == 30, True, False),
    (AGE != 30, False, True),
    (AGE == None, False, True),  # noqa: E711
    (AGE != None, True, False),  # noqa: E711
    (AGE.exists(), True, False),
    (AGE < 30, False, False),
    (NAME.size() == 3, True, True),
    (NAME.size() > 3, False, False),
    (TAGS.size() == 2, True, False),
    (AGE.size() < 100, False, False),
    (AGE <= 30, True, False),
    (AGE > 29, True, False),
    (AGE >= 31, False, False),
    (AGE.between(30, 31), True, False),
    (AGE.between(29, 30), True, False),
    (AGE.between(31, 40), False, False),
    (AGE.between(20, 29), False, False),
    (AGE.is_in([1, 30]), True, False),
    (AGE.is_in([None, 1]), False, True),
    (NAME.begins_with("A"), True, False),
    (NAME.contains("n"), True, True),
    (TAGS.contains("b"), True, False),
    (NAME.contains(5), False, False),
    (TAGS.begins_with(["a"]), True, False),
    ((AGE == 30) & (NAME == "Ann"), True, False),
    ((AGE == 30) & (NAME == "Ben"), False, False),
    ((AGE == 30) | (NAME == "Ben"), True, True),
    ((AGE == 31) | (NAME == "Cy"), False, False),
    (~(NAME == "Ann"), False, True),
    (~((AGE == 30) | (NAME == "Cy")), False, True),
]


@pytest.mark.parametrize(("predicate", "ann", "ben"), CASES, ids=map(str, range(len(CASES))))
def test_a_predicate_is_tested_as_dynamodb_would(predicate: Predicate, ann: bool, ben: bool) -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many([ANN, BEN])
        kind = g._schema.node(Person)
        assert (holds(kind, predicate, ANN), holds(kind, predicate, BEN)) == (ann, ben)
        assert {each.id for each in g.scan(Person).where(predicate)} == {
            each.id for each, is_one in ((ANN, ann), (BEN, ben)) if is_one
        }


@pytest.mark.parametrize(
    ("predicate", "is_so"),
    [
        (field("source") == "ann", True),
        (field("target") == "ann", False),
        (field("target").is_in(["ann", "ben"]), True),
        (field("source") > "ann", False),
        (field("source.id") == "ann", True),
        ((field("target") == "ann") | (field("since") == 0), True),
    ],
)
def test_ends_are_compared_by_their_ids(predicate: Predicate, is_so: bool) -> None:
    edge: Any = Knows(source="ann", target="ben")
    with Graph(":memory:", [Person, Knows]) as g:
        assert holds(g._schema.edge(Knows), predicate, edge) is is_so


def test_all_conditions_on_the_far_end_hold() -> None:
    """DynamoDB cannot filter by what stands in keys only, so they are tested here."""
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many(Knows(source="ann", target=target, since=3) for target in "abc")
        others = (field("target") != "a") & (field("target") != "c")
        for query in (g.out("ann", Knows).where(others), g.out("ann", Knows).where(others).where(field("since") == 3)):
            assert [edge.target for edge in query] == ["b"]
            assert query.count() == 1
