"""Where only the ids at the far ends of edges are asked for, they are read from keys alone, if these are enough."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import StringConstraints

from adjoin import AdjacencyList, Child, Edge, Keys, MaterializedGraph, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.schema import Schema
from adjoin.values import Item


class User(Node):
    id: str


class Club(Node):
    id: int


class Lower(Node):
    id: Annotated[str, StringConstraints(to_lower=True)]


class Pair(Node, key=("one", "other")):
    one: str
    other: str


class Post(Child[User]):
    id: str


class Knows(Edge[User, User]):
    since: int = 0


class Member(Edge[User, Club], order="since"):
    since: int = 0


class Friend(Edge[User, User], symmetric=True):
    pass


class Likes(Edge[User, Lower]):
    pass


class Holds(Edge[User, Pair]):
    pass


class Often(Edge[User, User], key=("at",)):
    at: int


class Either(Edge[User, User | Club]):
    pass


EDGES: list[Any] = [Knows, Member, Friend, Likes, Holds, Often, Either]
MODELS: list[Any] = [User, Club, Lower, Pair, Post, *EDGES]


def bound(layout: Layout) -> BoundLayout:
    return layout.bind(Schema(MODELS))


def far(layout: BoundLayout, model: Any, direction: str) -> Any:
    access = layout.edge_access(layout.schema.edge(model), direction)
    assert access is not None
    return layout.far_access(access)


@pytest.mark.parametrize(
    ("layout", "out", "into"),
    [
        (AdjacencyList(), {Knows, Member, Friend}, {Knows, Member}),
        (MaterializedGraph(), {Knows, Member, Friend}, {Knows, Member}),
        # Items of another class may have the same keys.
        (AdjacencyList(type_attribute="type"), set(), set()),
        # An edge of one user could have the key of a user.
        (
            AdjacencyList(keys={User: Keys("u#{id}", "u#{id}"), Knows: Keys(sort="u#{target.id}")}),
            {Member, Friend},
            {Member},
        ),
    ],
)
def test_which_edges_tell_their_far_ends_by_keys_alone(layout: Layout, out: set[Any], into: set[Any]) -> None:
    found = bound(layout)
    assert {model for model in EDGES if far(found, model, "out") is not None} == out
    # A symmetric edge is read from the other end, and turned around.
    assert {model for model in EDGES if far(found, model, "into") is not None} == into
    children = found.edge_access(found.schema.node(Post), "out")
    assert children is not None
    assert found.far_access(children) is None


def test_an_access_that_is_narrowed_reads_whole_edges() -> None:
    layout = bound(AdjacencyList())
    access = layout.edge_access(layout.schema.edge(Knows), "out")
    assert access is not None
    assert layout.far_access(layout._accesses.in_partition(layout._keys.edges[Knows])) is None


@pytest.mark.parametrize(
    ("partition", "sort", "target", "source"),
    [
        ("USER#a", "MEMBER#CLUB#7", 7, "a"),
        ("USER#a", "MEMBER#CLUB#-7", -7, "a"),
        ("USER#a%23", "MEMBER#CLUB#7", 7, "a#"),
        ("USER#a", "MEMBER#CLUB#07", None, None),
        ("USER#a", "MEMBER#CLUB#x", None, None),
        ("USER#a", "MEMBER#CLUB#", None, None),
        ("USER#", "MEMBER#CLUB#7", None, None),
        ("USER#a", "KNOWS#USER#7", None, None),
        ("CLUB#7", "MEMBER#CLUB#7", None, None),
        ("USER#a#b", "MEMBER#CLUB#7", None, None),
    ],
)
def test_the_ids_in_keys(partition: str, sort: str, target: Any, source: Any) -> None:
    layout = bound(AdjacencyList())
    item: Item = {"PK": {"S": partition}, "SK": {"S": sort}, "since": {"N": "3"}}
    right: Item = {"PK": {"S": "USER#a"}, "SK": {"S": "MEMBER#CLUB#1"}, "since": {"N": "3"}}
    for direction, id in (("out", target), ("into", source)):
        access = far(layout, Member, direction)
        assert access is not None
        # What was read before makes no difference.
        assert access.decode(item) == id
        assert access.decode(right) == (1 if direction == "out" else "a")
        assert access.decode(item) == id
