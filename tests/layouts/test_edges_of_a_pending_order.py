"""Where all stored edges of a range are, for a class that has gained an order: the index of it may lack some."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Index, Keys, MaterializedGraph, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.schema import Schema
from tests.layouts.described import where


class User(Node):
    id: str


class Group(Node, key=("owner", "name")):
    owner: str
    name: str


class Note(Child[User]):
    id: str


class Member(Edge[User, User], order="since"):
    since: int = 0


class Invited(Edge[User, User]):
    at: int = 0


class Holds(Edge[Group, User], order="at"):
    at: int = 0


class Near(Edge[User, User], symmetric=True, order="metres"):
    metres: int = 0


MODELS: list[Any] = [User, Group, Note, Member, Invited, Holds, Near]


def bound(layout: Layout, tenant: str | None = None) -> BoundLayout:
    return layout.bind(Schema(MODELS), tenant)


def whole(layout: BoundLayout, model: Any, id: Any, *, into: bool = False) -> str | None:
    kind = layout.schema.edge(model)
    found = layout.whole_range(layout.into(kind, id) if into else layout.out(kind, id))
    return None if found is None else where(found)


@pytest.mark.parametrize(
    ("layout", "tenant", "table"),
    [
        (AdjacencyList(), None, "PK=USER#a"),
        (AdjacencyList(), "acme", "PK=acme#USER#a"),
        (MaterializedGraph(), None, "NodeId=USER#a"),
    ],
)
def test_the_table_has_all_edges_of_a_source(layout: Layout, tenant: str | None, table: str) -> None:
    found = bound(layout, tenant)
    assert whole(found, Member, "a") == f"table: {table} begins_with MEMBER#USER#"
    # A symmetric edge is in the table at both its ends.
    for into in (False, True):
        assert whole(found, Near, "a", into=into) == f"table: {table} begins_with NEAR#USER#"
    # What the table itself has in order is whole.
    assert whole(found, Invited, "a") is None
    # The reverse index has all edges of a target too, in another order, and the layout says when that matters.
    assert whole(found, Member, "a", into=True) is None
    found.due.resorted = frozenset({("MEMBER", "GSI2" if isinstance(layout, MaterializedGraph) else "GSI1")})
    again = whole(found, Member, "a", into=True)
    assert again is not None
    assert again.endswith("USER#a begins_with MEMBER# (exclusive)")
    assert whole(found, Invited, "a", into=True) is None


def test_children_have_no_such_order() -> None:
    layout = bound(AdjacencyList())
    assert layout.whole_range(layout.children(layout.schema.node(Note), "a")) is None
    assert layout.whole_range(layout.collection(layout.schema.node(User), "a", arriving=False)) is None


def test_an_index_in_which_a_source_has_another_key_tells_nothing_of_the_table() -> None:
    layout = AdjacencyList(keys={Group: Keys("g#{owner}", "{name}")})
    # The source shares its partition with others, so the key of the index is made of both its keys.
    assert whole(bound(layout), Holds, ("o", "n")) is None
    assert where(bound(layout).out(bound(layout).schema.edge(Holds), ("o", "n"))) == (
        "GSI2: GSI2PK=g#o##n begins_with HOLDS# (exclusive, literal)"
    )
    assert whole(bound(layout), Member, "a") == "table: PK=USER#a begins_with MEMBER#USER# (literal)"
    apart = AdjacencyList(keys={Member: Keys("m#{target.id}", "{source.id}")})
    assert whole(bound(apart), Member, "a") is None


def test_how_edges_and_children_are_found() -> None:
    layout = bound(AdjacencyList())
    member, note = layout.schema.edge(Member), layout.schema.node(Note)
    places = {}
    for name, found in (
        ("out", layout.edge_access(member, "out")),
        ("into", layout.edge_access(member, "into")),
        ("children", layout.edge_access(note, "out")),
    ):
        assert found is not None
        places[name] = (found.index, found.partition_key, found.kind)
    assert places == {
        "out": ("GSI2", "GSI2PK", member),
        "into": ("GSI1", "GSI1PK", member),
        "children": (None, "PK", note),
    }
    without = bound(AdjacencyList(reverse=None))
    assert without.edge_access(without.schema.edge(Invited), "into") is None
    sharded = AdjacencyList(
        reverse=None,
        indexes=[Index("Back", "BPK", shards=2)],
        keys={Invited: Keys(indexes={"Back": "{target.id}#{shard}"})},
    )
    assert whole(bound(sharded), Invited, "a", into=True) is None
