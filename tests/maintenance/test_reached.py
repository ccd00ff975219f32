"""The reached set of a node in its transaction: written only if it changes, and begun anew if it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pytest

from adjoin import Count, Edge, Graph, Node, Sum
from adjoin.expressions import Set, Value, attribute
from adjoin.reached_sets import edges_by_text
from adjoin.requests import Get, Update
from adjoin.values import AttributeValue, Item


class Shelf(Node):
    id: str
    books: Annotated[int, Count("Holds", distinct=True)] = 0
    pages: Annotated[int, Sum("Holds", field="pages")] = 0


class Book(Node):
    id: str


class Holds(Edge[Shelf, Book], key=("place",)):
    place: int
    pages: int = 0


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Shelf, Book, Holds]) as graph:
        graph.put_many([Shelf(id="s"), Holds(source="s", target="b", place=1), Holds(source="s", target="b", place=2)])
        graph.maintain(once=True)
        yield graph


def key_of(g: Graph) -> Item:
    return g._layout.node_key(g._layout.schema.node(Shelf), "s")


def set_of(g: Graph) -> AttributeValue | None:
    (response,) = g._store.execute((Get("adjoin", key_of(g), consistent=True),))
    (rule,) = g._layout.rules.groups[0].distinct_rules
    found: AttributeValue | None = response.item.get(rule.attribute)  # type: ignore[union-attr]
    return found


def test_a_set_is_written_only_if_it_changes(g: Graph) -> None:
    """Each write has a new version, for which everybody fails who has read the set before."""
    before = set_of(g)
    assert edges_by_text(before) == {"BOOK#b": 2}
    g.put(Holds(source="s", target="b", place=1, pages=7))
    g.maintain(once=True)
    assert (g.get(Shelf, "s"), set_of(g)) == (Shelf(id="s", books=1, pages=7), before)
    g.disconnect(Holds, "s", "b", place=2)
    g.maintain(once=True)
    assert edges_by_text(set_of(g)) == {"BOOK#b": 1}


class Part(Node):
    id: str
    cost: int = 0
    parts: Annotated[int, Count("Uses", recursive=True, distinct=True)] = 0
    costs: Annotated[int, Sum("Uses", field="cost", recursive=True, distinct=True)] = 0


class Uses(Edge[Part, Part]):
    pass


def test_of_two_sets_only_the_one_that_changes_is_written() -> None:
    with Graph(":memory:", [Part, Uses]) as g:
        g.put_many([Part(id="a"), Part(id="b", cost=3), Uses(source="a", target="b")])
        g.maintain(once=True)
        key = g._layout.node_key(g._layout.schema.node(Part), "a")

        def sets() -> list[AttributeValue]:
            (response,) = g._store.execute((Get("adjoin", key, consistent=True),))
            return [response.item[f"adjoin:PART.{name}"] for name in ("parts", "costs")]  # type: ignore[union-attr,index]

        before = sets()
        g.update(Part, "b", cost=4)
        g.maintain(once=True)
        after = sets()
        assert (before[0] == after[0], [*map(edges_by_text, after)]) == (True, [{"PART#b": 1}, {"4 PART#b": 1}])


@pytest.mark.parametrize("value", [{"S": "x"}, {"M": {}}, {"B": "eJw="}], ids=["text", "map", "bytes"])
def test_a_set_that_another_program_wrote_counts_as_empty(g: Graph, value: AttributeValue) -> None:
    (rule,) = g._layout.rules.groups[0].distinct_rules
    g._store.execute((Update("adjoin", key_of(g), (Set(attribute(rule.attribute), Value(value)),)),))
    g.put(Holds(source="s", target="c", place=1))
    g.maintain(once=True)
    assert edges_by_text(set_of(g)) == {"BOOK#c": 1}
    g.disconnect(Holds, "s", "c", place=1)
    g.maintain(once=True)
    assert set_of(g) is None


def test_a_set_may_always_become_smaller(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it takes more room than it may, as after another declaration."""
    g.put_many(Holds(source="s", target=f"b{number}", place=1) for number in range(20))
    g.maintain(once=True)
    monkeypatch.setattr("adjoin.plans.counting.node_transaction.ALL_SETS", 10)
    g.disconnect(Holds, "s", "b7", place=1)
    assert g.maintain(once=True).set_aside == ()
    assert g.get(Shelf, "s") == Shelf(id="s", books=20)
    g.put(Holds(source="s", target="b7", place=1))
    (aside,) = g.maintain(once=True).set_aside
    assert aside.rule == "SHELF.books"
    assert g.get(Shelf, "s") == Shelf(id="s", books=20)
