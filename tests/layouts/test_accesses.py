"""Where edges are looked for: whether anything else can lie among them, and whether their keys tell what they are."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, InvalidModel, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.tables import Projection


class Person(Node):
    id: str


class Club(Node):
    id: str


class Member(Edge[Person, Club], order="year"):
    year: int = 0


class Founder(Edge[Person, Club]):
    pass


class Friend(Edge[Person, Person], symmetric=True):
    since: int = 0


class Knows(Edge[Person, Person]):
    pass


MODELS: list[Any] = [Person, Club, Member, Founder, Friend, Knows]
SHARED = Keys(reverse_partition="{target}", reverse_sort="{source}")


def bound(layout: AdjacencyList) -> BoundLayout:
    return layout.bind(Schema(MODELS))


def exclusive(layout: BoundLayout, model: type[Any]) -> tuple[bool, bool]:
    """Whether nothing else lies among the edges of a class, as they leave and as they arrive."""
    kind = layout.schema.edge(model)
    return layout.out(kind, "a").access.exclusive, layout.into(kind, "b").access.exclusive


@pytest.mark.parametrize(
    ("layout", "member", "founder"),
    [
        (AdjacencyList(), (True, True), (True, True)),
        # Nothing tells the edges of two classes apart where they arrive.
        (AdjacencyList(keys={Member: SHARED, Founder: SHARED}), (True, False), (True, False)),
        # One shares the other's beginning, and not the other way round: either way they lie among each other.
        (
            AdjacencyList(keys={Founder: Keys(sort="E#{target.id}"), Friend: Keys(sort="E#F#{target.id}")}),
            (True, True),
            (False, True),
        ),
        # What begins with a field may begin with anything.
        (AdjacencyList(keys={Founder: Keys(sort="{target.id}")}), (True, True), (False, True)),
        # An index without a sort key has nothing to tell them by.
        (
            AdjacencyList(node="{node}", keys={Founder: Keys(sort="{target}")}, reverse=Index("R", "GSI1PK")),
            (True, False),
            (True, False),
        ),
    ],
)
def test_whether_a_class_is_alone(layout: AdjacencyList, member: Any, founder: Any) -> None:
    found = bound(layout)
    assert (exclusive(found, Member), exclusive(found, Founder)) == (member, founder)


def test_an_edge_that_lies_among_the_nodes_is_not_alone() -> None:
    knows = Keys(sort="{target}")
    assert exclusive(bound(AdjacencyList(keys={Knows: knows})), Knows) == (True, True)
    assert exclusive(bound(AdjacencyList(node="{node}", keys={Knows: knows})), Knows) == (False, True)


@pytest.mark.parametrize("model", [Member, Founder, Friend])
@pytest.mark.parametrize("attribute", [None, "kind"])
def test_keys_tell_the_class_unless_an_attribute_does(model: Any, attribute: str | None) -> None:
    layout = bound(AdjacencyList(type_attribute=attribute))
    kind = layout.schema.edge(model)
    for range in (layout.out(kind, "a"), layout.into(kind, "b")):
        assert range.access.told_by_keys == (attribute is None)


def test_what_arrives_comes_in_parts_from_an_index_that_holds_parts() -> None:
    for projection, is_partial in ((Projection("ALL"), False), (Projection("KEYS_ONLY"), True)):
        reverse = Index("GSI1", "GSI1PK", "GSI1SK", projection=projection)
        layout = bound(AdjacencyList(reverse=reverse))
        assert layout.into(layout.schema.edge(Founder), "b").access.is_partial == is_partial
        assert layout.collection(layout.schema.node(Club), "b", arriving=True).access.is_partial == is_partial
        assert not layout.out(layout.schema.edge(Founder), "a").access.is_partial


def test_a_symmetric_edge_is_seen_from_either_end() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Friend(source="ann", target="bob", since=3))
        assert list(g.out("ann", Friend)) == [Friend(source="ann", target="bob", since=3)]
        assert list(g.into("ann", Friend)) == [Friend(source="bob", target="ann", since=3)]


def test_without_a_reverse_index_nothing_is_found_from_its_target() -> None:
    with Graph(":memory:", MODELS, AdjacencyList(reverse=None)) as g:
        g.put(Founder(source="ann", target="chess"))
        g.put(Friend(source="ann", target="bob"))
        assert [edge.target for edge in g.out("ann", Founder)] == ["chess"]
        with pytest.raises(InvalidModel, match="no reverse index, so Founder edges cannot be found from their target"):
            g.into("chess", Founder)
        with pytest.raises(InvalidModel, match="no reverse index, so edges that arrive at a Club cannot be found"):
            g.collection(Club.ref("chess"), direction="into")
        # Both ends hold a symmetric edge.
        assert [edge.source for edge in g.into("ann", Friend)] == ["bob"]
