"""The marker of edges that wait for a node which counts at once: what a put of the node asks of it and does with it."""

from __future__ import annotations

from typing import Annotated, Any

from adjoin import Count, Edge, Graph, Node
from adjoin.expressions import Compare, Not, Value, attribute
from adjoin.plans.counting.node_transaction import MARKED
from adjoin.plans.in_transaction import Coming, met, unmarked
from adjoin.requests import Check, Delete, Get, Put
from adjoin.runner import run


class Shop(Node):
    id: str
    sold: Annotated[int, Count("Sold", consistency="transaction")] = 0
    visits: Annotated[int, Count("Visited", direction="into")] = 0


class Good(Node):
    id: str
    sold: Annotated[int, Count("Sold", consistency="transaction")] = 0


class Person(Node):
    id: str


class Sold(Edge[Shop, Good]):
    pass


class Visited(Edge[Person, Shop]):
    pass


MODELS: list[Any] = [Shop, Good, Person, Sold, Visited]


def test_a_marker_goes_if_everything_that_waits_is_counted() -> None:
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        for model, node_key, is_all in ((Good, "GOOD#a", True), (Shop, "SHOP#a", False)):
            kind = layout.schema.node(model)
            key = {"PK": {"S": f"{node_key}#="}, "SK": {"S": "=M"}}
            absent = Check("adjoin", key, Not(layout.present))
            assert unmarked(layout, node_key, None) == met(layout, kind, node_key, None) == absent
            left = {**key, MARKED: {"S": "token"}}
            same = Compare("=", attribute(MARKED), Value({"S": "token"}))
            assert unmarked(layout, node_key, left) == Check("adjoin", key, same)
            # Others may wait for the shop, which maintenance counts; so its marker stays.
            assert met(layout, kind, node_key, left) == (Delete if is_all else Check)("adjoin", key, same)


def test_what_is_written_with_a_node_that_edges_wait_for() -> None:
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        g.put_many([Sold(source=f"S{number}", target="a") for number in range(3)])
        kind = layout.schema.node(Good)
        key, marker = layout.node_key(kind, "a"), layout.ledgers.marker_key("GOOD#a")
        coming = Coming()

        def looked(room: int) -> Any:
            return run(coming.look(layout, kind, key, room), g._store)

        # At first it is tried without looking, which is right unless some edge waits.
        first = looked(50)
        assert (first.condition, first.counted, first.writes) == (None, None, [unmarked(layout, "GOOD#a", None)])
        found = looked(50)
        assert found.condition == Not(layout.present)
        assert {action.path for action in found.counted.actions} >= {attribute("sold")}
        assert len(found.writes) == 1 + 3 + 3, "the marker, and a ledger and a check for each edge"
        # Too many for one transaction are left to maintenance.
        (response,) = g._store.execute((Get("adjoin", marker),))
        stored = response.item  # type: ignore[union-attr]
        narrow = looked(3)
        assert (narrow.counted, narrow.writes) == (None, [unmarked(layout, "GOOD#a", stored)])
        g._store.execute((Put("adjoin", {**key, "id": {"S": "a"}}),))
        there = looked(50)
        assert (there.condition, there.counted, there.writes) == (layout.present, None, [])
        # A class that counts nothing at once has nothing to ask.
        plain = layout.schema.node(Person)
        nothing = run(Coming().look(layout, plain, layout.node_key(plain, "p"), 50), g._store)
        assert (nothing.condition, nothing.counted, nothing.writes) == (None, None, [])
