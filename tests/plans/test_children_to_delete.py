"""Which children of a node are deleted one by one: those that have edges or unique values, wherever they are below."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Graph, InvalidItem, InvalidModel, Keys, Node, Unique
from adjoin.plans.deletion import joined_children
from adjoin.requests import Put
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


class Held(Edge[Wallet, Reader], key=("card",)):
    card: str


def test_children_are_found_beside_edges_that_cannot_be_found() -> None:
    """Whether edges may stay is asked of the delete of the node; here, they are no reason to refuse it."""
    untold = {"wallet": "{source.id}", "reader": "{target.id}"}
    layout = AdjacencyList(
        keys={
            Wallet: Keys("WALLET#{id}", "#META"),
            Payment: Keys("PAYMENTS#{parent.id}", "P#{id}"),
            Held: Keys("HELD#{card}", "#META", attributes=untold),
        }
    )
    with Graph(":memory:", [Wallet, Payment, Refund, Reader, Likes, Held], layout) as g:
        g.put_many([Wallet(id="w"), Payment(parent="w", id="1"), Wallet(id="v"), Payment(parent="v", id="2")])
        g.put_many([Reader(id="r"), Likes(source="r", target=("w", "1")), Held(source="w", target="r", card="c")])
        schema = g._layout.schema
        assert [id for _, id in run(joined_children(g._layout, schema.node(Wallet), "w"), g._store)] == [("w", "1")]
        with pytest.raises(InvalidModel, match="Held edges cannot be found"):
            g.delete(Wallet, "w")
        assert g.get(Payment, ("w", "1")) is not None, "what fails has changed nothing"
        g.delete(Wallet, "w", edges="found")
        assert (g.get(Payment, ("w", "1")), list(g.out("r", Likes))) == (None, [])


def test_a_node_of_another_type_is_refused_before_its_children_go() -> None:
    layout = AdjacencyList(type_attribute="type")
    with Graph(":memory:", MODELS, layout) as g:
        g.put_many(ENTITIES)
        (item,) = g._layout.items(Wallet(id="w"))
        g._store.execute((Put("adjoin", {**item, "type": {"S": "Purse"}}),))
        with pytest.raises(InvalidItem, match="Purse"):
            g.delete(Wallet, "w")
        assert g.get(Coupon, ("w", "1")) is not None
