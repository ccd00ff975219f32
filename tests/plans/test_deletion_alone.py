"""Deleting a node to which nothing else can belong: one request, which reads nothing first."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Child, ConditionFailed, Edge, Graph, Indexed, Node, Unique, Version
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import Put, Update
from adjoin.stores.sqlite import SQLiteStore


class Wallet(Node):
    id: str


class Payment(Child[Wallet], key=("number",)):
    number: int
    amount: int = 0
    revision: Annotated[int, Version()] = 0


class Remark(Node):
    id: str
    text: Annotated[str, Indexed()] = ""


class Claimed(Node):
    id: str
    mail: Annotated[str, Unique()]


class Person(Node):
    id: str


class Knows(Edge[Person, Person]): ...


MODELS: list[Any] = [Wallet, Payment, Remark, Claimed, Person, Knows]


@pytest.fixture
def g() -> Graph:
    graph = Graph(SQLiteStore(":memory:"), MODELS)
    graph.put_many([Wallet(id="W"), Remark(id="1"), Claimed(id="1", mail="a"), Person(id="1")])
    graph.put_many(Payment(parent="W", number=number) for number in range(3))
    return graph


@pytest.mark.parametrize(
    ("model", "id", "requests"),
    [(Payment, ("W", 1), 1), (Remark, "1", 1), (Claimed, "1", 3), (Person, "1", 5), (Wallet, "W", 3)],
)
def test_how_many_requests_it_takes(g: Graph, model: Any, id: Any, requests: int) -> None:
    with g.meter() as meter:
        assert g.delete(model, id) is True
    assert meter.requests == requests
    assert g.get(model, id) is None
    assert g.delete(model, id) is False


def test_a_version_guards_it(g: Graph) -> None:
    payment = g.get(Payment, ("W", 1))
    assert payment is not None
    g.update(Payment, ("W", 1), amount=7)
    with pytest.raises(ConditionFailed, match=r"does not meet the condition of the delete \(its version is 1\)"):
        g.delete(payment)
    assert g.get(Payment, ("W", 1)) is not None
    assert g.delete(Payment, ("W", 1), if_version=1) is True
    assert g.delete(payment) is False


def test_a_child_that_a_delete_has_hidden_does_not_exist(g: Graph) -> None:
    mark = (Set(attribute("adjoin:deleting"), Value({"SS": ["token:WALLET#W"]})),)
    for number in (0, 1, 2):
        key = g._layout.node_key(g._layout.schema.node(Payment), ("W", number))
        g._store.execute([Update("adjoin", key, mark)])
    assert g.delete(Payment, ("W", 0)) is True
    g._store.execute([Put("adjoin", {**g._layout.deletion_key("WALLET#W"), "tokens": {"SS": ["token"]}})])
    assert g.delete(Payment, ("W", 1)) is False
    assert g.delete(Payment, ("W", 2), if_version=9) is False
