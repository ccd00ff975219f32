"""`count()` of a query: as many as iterating returns, also where others wrote keys that fit no template."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from adjoin import AdjacencyList, Child, Edge, Graph, Keys, Node
from adjoin.requests import Put
from adjoin.values import Item


class User(Node):
    id: str


class Club(Node):
    id: int


class Entry(Child[User], key=("number",)):
    number: int


class Joined(Edge[User, Club]):
    note: str = ""


class Knows(Edge[User, User], symmetric=True): ...


MODELS: list[Any] = [User, Club, Entry, Joined, Knows]
LITERAL = AdjacencyList(
    keys={
        User: Keys("U#{id}", "META"),
        Club: Keys("C#{id}", "META"),
        Entry: Keys("{parent}", "E#{number}"),
        Joined: Keys("{source}", "J#{target.id}"),
        Knows: Keys("{source}", "K#{target.id}"),
    }
)


def item(sort: str, **more: Any) -> Item:
    return {"PK": {"S": "U#1"}, "SK": {"S": sort}, "GSI1PK": {"S": "C#7"}, "GSI1SK": {"S": f"JOINED#{sort}"}, **more}


@pytest.fixture
def graph() -> Graph:
    graph = Graph(":memory:", MODELS, LITERAL)
    graph.put_many([User(id="1"), User(id="2"), Club(id=7)])
    graph.put_many([Joined(source="1", target=7), Joined(source="2", target=7), Joined(source="1", target=8)])
    graph.put_many([Knows(source="1", target="2"), Entry(parent="1", number=1), Entry(parent="1", number=2)])
    # Others wrote these: ids with a separator in them, and numbers that adjoin would not write so.
    for sort in ("J#7#a", "J#x", "J#007", "K#2#3", "E#1#2", "E#01", "E#"):
        graph._store.execute([Put("adjoin", item(sort))])
    return graph


def queries(graph: Graph) -> dict[str, Any]:
    user = User.ref("1")
    return {
        "out": graph.out(user, Joined),
        "into": graph.into(Club.ref(7), Joined),
        "symmetric": graph.out(user, Knows),
        "children": graph.children(user, Entry),
        "some": graph.out(user, Joined).limit(1),
    }


@pytest.mark.parametrize(("what", "number"), [("out", 2), ("into", 2), ("symmetric", 1), ("children", 2), ("some", 1)])
def test_a_count_is_what_iterating_returns(graph: Graph, what: str, number: int) -> None:
    query = queries(graph)[what]
    assert (query.count(), len(list(query))) == (number, number)


def test_keys_are_read_where_others_may_have_written_some(graph: Graph) -> None:
    explained = graph.explain(graph.out(User.ref("1"), Joined).count)
    assert "only PK, SK, adjoin:deleting" in str(explained)
    own = Graph(":memory:", MODELS)
    assert "only their number" in str(own.explain(own.out(User.ref("1"), Joined).count))


def _lower(text: str) -> str:
    return text.lower()


class Named(Node):
    id: Annotated[str, AfterValidator(_lower)]


class Called(Edge[User, Named]): ...


def test_whole_items_are_read_where_keys_do_not_tell(graph: Graph) -> None:
    """A validator may change an id, and then no edge has this key."""
    keys: dict[Any, Keys] = {
        User: Keys("U#{id}", "META"),
        Named: Keys("N#{id}", "META"),
        Called: Keys("{source}", "N#{target.id}"),
    }
    called = Graph(":memory:", [User, Named, Called], AdjacencyList(keys=keys, reverse=None))
    called.put_many([User(id="1"), Called(source="1", target="a")])
    called._store.execute([Put("adjoin", {"PK": {"S": "U#1"}, "SK": {"S": "N#B"}})])
    query = called.out(User.ref("1"), Called)
    assert (query.count(), len(list(query))) == (1, 1)
