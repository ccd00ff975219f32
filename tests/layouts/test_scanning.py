"""Conditions with which a scan tells items: they hold for all items of a class; an exact one holds for no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjoin import AdjacencyList, Edge, Index, Keys, MaterializedGraph, Node
from adjoin.evaluate import condition_test
from adjoin.expressions import And, BeginsWith, Compare, Contains, Exists, Not, Or, Value, attribute
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.interface import DELETING, Layout
from adjoin.values import Item


class Person(Node):
    id: str


class Club(Node):
    id: int


class Member(Edge[Person, Club]):
    pass


class Home(Edge[Person, Club]):
    club: int
    street: str


MODELS: list[Any] = [Person, Club, Member]
PK, SK = attribute("PK"), attribute("SK")


def text(value: str) -> Value:
    return Value({"S": value})


def test_conditions_of_the_default_layout() -> None:
    layout = bound_layout(MODELS, None)
    person, member = layout.scan(layout.schema.node(Person)), layout.scan(layout.schema.edge(Member))
    assert person.filter == And((BeginsWith(PK, text("PERSON#")), Compare("=", SK, text("#META"))))
    assert member.filter == And((BeginsWith(PK, text("PERSON#")), BeginsWith(SK, text("MEMBER#CLUB#"))))
    assert layout.scan(None).filter == Not(BeginsWith(PK, text("#=")))
    # A key has separators in its literals, so no condition tells whether there is another in the id.
    assert person.exact is member.exact is layout.scan(None).exact is None
    assert person.attributes == member.attributes == ("PK", "SK", DELETING)


def test_conditions_of_a_tenant() -> None:
    layout = bound_layout(MODELS, None, tenant="acme")
    assert layout.scan(None).filter == And((BeginsWith(PK, text("acme#")), Not(BeginsWith(PK, text("acme##=")))))
    person = layout.scan(layout.schema.node(Person))
    assert person.filter == And((BeginsWith(PK, text("acme#PERSON#")), Compare("=", SK, text("#META"))))


def test_keys_that_begin_with_anything_have_no_condition() -> None:
    layout = bound_layout([Person], AdjacencyList(node="{node}", reverse=None, keys={Person: Keys(partition="{id}")}))
    assert layout.scan(layout.schema.node(Person)).filter is None


def test_an_exact_condition() -> None:
    keys = {Person: Keys(partition="person-{id}")}
    layout = bound_layout([Person], AdjacencyList(node="META", type_attribute="Type", keys=keys))
    type_, access = attribute("Type"), layout.scan(layout.schema.node(Person))
    assert access.exact == And(
        (
            And(
                (
                    BeginsWith(PK, text("person-")),
                    Compare(">", PK, text("person-")),
                    Not(Contains(PK, text("#"))),
                )
            ),
            Compare("=", SK, text("META")),
            Or((Not(Exists(type_)), Compare("=", type_, text("PERSON")))),
        )
    )
    assert access.attributes == ("PK", "SK", DELETING, "Type")


@pytest.mark.parametrize(
    ("layout", "model"),
    [
        # An escape, an id of another type, an id in both keys, a part between literals.
        (AdjacencyList(node="META", escape=True, keys={Person: Keys(partition="person-{id}")}), Person),
        (AdjacencyList(node="META", keys={Club: Keys(partition="club-{id}")}), Club),
        (AdjacencyList(node="at-{id}", keys={Person: Keys(partition="person-{id}")}), Person),
        (AdjacencyList(node="META", keys={Person: Keys(partition="person-{id}-x")}), Person),
        (AdjacencyList(node="META", keys={Person: Keys(partition="person#{id}")}), Person),
    ],
)
def test_keys_without_an_exact_condition(layout: AdjacencyList, model: type[Node]) -> None:
    bound = bound_layout([Person, Club], layout)
    assert bound.scan(bound.schema.node(model)).exact is None


def test_an_edge_whose_target_is_in_an_index_key_needs_it() -> None:
    reverse = Index("GSI1", "G1", "G2", partition="{target}", sort="HOME#{street}")
    layout = bound_layout(
        [Person, Club, Home],
        AdjacencyList(reverse=reverse, keys={Home: Keys(sort="HOME#{club}#{street}", reverse_partition="CLUB#{club}")}),
    )
    assert layout.scan(layout.schema.edge(Home)).attributes == ("PK", "SK", DELETING, "G1", "G2")


LAYOUTS: list[Layout] = [
    AdjacencyList(),
    MaterializedGraph(),
    AdjacencyList(node="META", keys={Person: Keys(partition="person-{id}"), Club: Keys(partition="club-{id}")}),
    AdjacencyList(node="META", type_attribute="Type", keys={Person: Keys(partition="p{id}"), Club: Keys("c{id}")}),
]
_TEXTS = st.lists(
    st.sampled_from(["person-", "p", "PERSON#", "CLUB#", "#META", "META", "#", "%23", "%", "1", "01", "a", "é", "#="]),
    min_size=1,
    max_size=4,
).map("".join)


@given(st.sampled_from(LAYOUTS), _TEXTS, _TEXTS, st.sampled_from([None, "PERSON", "CLUB"]))
@example(LAYOUTS[2], "person-", "META", None)
@example(LAYOUTS[2], "person-a", "META", None)
@example(LAYOUTS[2], "person-a#b", "META", None)
@example(LAYOUTS[3], "pa", "META", "CLUB")
@example(LAYOUTS[0], "PERSON#a", "#META", None)
def test_conditions_agree_with_what_reads_the_items(layout: Layout, first: str, second: str, label: str | None) -> None:
    bound = bound_layout(MODELS, layout)
    names = [key.name for key in bound.definition.keys]
    item: Item = {names[0]: {"S": first}, names[1]: {"S": second}}
    if label is not None:
        item["Type"] = {"S": label}
    told = None if bound.is_bookkeeping(item) else bound.kind_of(item)
    for kind in bound.schema.types:
        access = bound.scan(kind)
        if told is kind:
            assert access.filter is None or condition_test(access.filter)(item)
        if access.exact is not None:
            assert condition_test(access.exact)(item) is (told is kind)
    if told is not None:
        everything = bound.scan(None).filter
        assert everything is not None
        assert condition_test(everything)(item)
