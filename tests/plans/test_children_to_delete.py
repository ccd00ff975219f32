"""Which children of a node are deleted one by one: those that have edges or unique values, wherever they are below."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Graph, Keys, Node, Unique
from adjoin.plans.deletion import joined_children
from adjoin.runner import run


class Wallet(Node):
    id: str


class Payment(Child[Wallet]):
    id: str


class Note(Child[Wallet]):
    id: str


class Coupon(Child[Wallet]):
    id: str
    code: Annotated[str | None, Unique()] = None


class Refund(Child[Payment]):
    id: str


class Stamp(Child[Note]):
    id: str


class Reader(Node):
    id: str


class Likes(Edge[Reader, Payment]):
    pass


class Signed(Edge[Stamp, Reader]):
    pass


MODELS: list[Any] = [Wallet, Payment, Note, Coupon, Refund, Stamp, Reader, Likes, Signed]
ENTITIES: list[Any] = [
    Wallet(id="w"),
    Payment(parent="w", id="1"),
    Payment(parent="w", id="2"),
    Note(parent="w", id="1"),
    Coupon(parent="w", id="1", code="x"),
    Refund(parent=("w", "1"), id="1"),
    Stamp(parent=("w", "1"), id="1"),
    Wallet(id="other"),
    Payment(parent="other", id="3"),
]


@pytest.mark.parametrize(
    "layout",
    [AdjacencyList(), AdjacencyList(keys={Wallet: Keys("WALLETS", "W#{id}")})],
    ids=["a partition for each", "one partition for all"],
)
def test_children_with_edges_or_unique_values_are_found(layout: AdjacencyList) -> None:
    with Graph(":memory:", MODELS, layout) as g:
        g.put_many(ENTITIES)
        schema = g._layout.schema
        found = run(joined_children(g._layout, schema.node(Wallet), "w"), g._store)
        assert sorted((kind.label, id) for kind, id in found) == [
            ("COUPON", ("w", "1")),
            ("PAYMENT", ("w", "1")),
            ("PAYMENT", ("w", "2")),
            ("STAMP", ("w", "1", "1")),
        ]
        assert run(joined_children(g._layout, schema.node(Wallet), "nobody"), g._store) == []
        assert run(joined_children(g._layout, schema.node(Reader), "r"), g._store) == []
        # They go with their node, and what leads to them too.
        g.put_many([Reader(id="r"), Likes(source="r", target=("w", "1")), Likes(source="r", target=("other", "3"))])
        g.delete(Wallet, "w")
        assert [edge.target for edge in g.out("r", Likes)] == [("other", "3")]
        # Its unique value is free again.
        g.put(Coupon(parent="other", id="1", code="x"))
        assert sorted(type(each).__name__ for each in g.scan()) == ["Coupon", "Likes", "Payment", "Reader", "Wallet"]
