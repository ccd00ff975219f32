"""What nobody writes by hand: aggregates that a put leaves alone, and fields that never change."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    Edge,
    Graph,
    Indexed,
    InvalidValue,
    MaterializedGraph,
    Node,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.aggregates import Copy, Count, Immutable, Max
from adjoin.requests import Put
from tests.maintenance.models import (
    Customer,
    Placed,
)
from tests.maintenance.test_simulation import check


def test_aggregates_are_not_set_by_hand(g: Graph) -> None:
    g.put(Customer(id="C1"))
    with pytest.raises(InvalidValue, match=r"Customer\.owed is a managed field"):
        g.update(Customer, "C1", owed=Decimal(5))
    with pytest.raises(InvalidValue, match="begins with 0"):
        g.add(Customer(id="C2", invoices=3))
    with pytest.raises(InvalidValue, match=r"Placed\.customer is a managed field"):
        g.update(Placed, "C1", "I1", customer="Bea")
    with pytest.raises(InvalidValue, match="begins with 0"), g.transaction() as t:
        t.add(Customer(id="C2", invoices=3))


def test_a_put_leaves_aggregates_alone(g: Graph) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Placed(source="C1", target="I1", balance=Decimal(2)))
    g.maintain(once=True)
    with g.meter() as m:
        g.put(Customer(id="C1", name="Bea"))
    assert m.requests == 1
    read = g.get(Customer, "C1")
    assert read is not None
    assert (read.name, read.owed, read.top) == ("Bea", Decimal(2), [Decimal(2)])
    with g.meter() as m:
        g.put_many([Customer(id="C1", name="Cid"), Customer(id="C2")])
    assert m.rounds == 1
    with g.transaction() as t:
        t.put(Customer(id="C1", name="Dan"))
    g.maintain(once=True)
    check(g)
    assert g.get(Customer, "C1").name == "Dan"  # type: ignore[union-attr]


@pytest.mark.parametrize("changed", [{"owed": Decimal(7)}, {"top": [Decimal(1)]}, {"invoices": 1}])
def test_a_put_with_a_value_of_ones_own_is_refused(g: Graph, changed: dict[str, Any]) -> None:
    g.put(Customer(id="C1", name="Ann"))
    own, read = Customer(id="C1", name="Bea", **changed), g.get(Customer, "C1")
    assert read is not None
    for node in (own, read.model_copy(update=changed)):
        with pytest.raises(InvalidValue, match=rf"Customer\.{next(iter(changed))} is a managed field"):
            g.put(node)
        with pytest.raises(InvalidValue, match="is a managed field"):
            g.put_many([Customer(id="C2"), node])
        with pytest.raises(InvalidValue, match="is a managed field"), g.transaction() as t:
            t.put(node)
    assert g.get_many(Customer, ["C1", "C2"]) == [Customer(id="C1", name="Ann"), None]


def test_what_was_read_may_be_put_again(g: Graph) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Placed(source="C1", target="I1", balance=Decimal(2)))
    g.maintain(once=True)
    read = g.get(Customer, "C1")
    assert read is not None
    assert read == Customer.model_validate(read.model_dump())
    assert Customer.model_validate_json(read.model_dump_json()) == read
    assert repr(read) == repr(Customer.model_validate(read.model_dump()))
    g.put(Placed(source="C1", target="I2", balance=Decimal(3)))
    g.maintain(once=True)
    read.name = "Bea"
    g.put(read)
    g.put_many([pickle.loads(pickle.dumps(read)), read.model_copy(deep=True)])
    with g.transaction() as t:
        t.put(read.model_copy(update={"name": "Cid"}))
    again = g.get(Customer, "C1")
    assert again is not None
    assert (again.name, again.owed) == ("Cid", Decimal(5))
    g.put(next(iter(g.out("C1", Placed))))
    g.maintain(once=True)
    check(g)


class Bare(Node):
    id: str
    name: str | None = None
    loops: Annotated[int, Count("Loop")] = 0


class Loop(Edge[Bare, Bare]):
    pass


def test_a_node_without_any_value_is_put() -> None:
    with Graph(":memory:", [Bare, Loop]) as graph:
        graph.put(Bare(id="1"))
        graph.put_many([Bare(id="2"), Loop(source="2", target="1")])
        with graph.transaction() as transaction:
            transaction.put(Bare(id="3"))
        assert graph.get_many(Bare, ["1", "2", "3"]) == [Bare(id="1"), Bare(id="2"), Bare(id="3")]
        graph.put(Bare(id="2", name="x"))
        graph.maintain(once=True)
        graph.put(Bare(id="2"))
        assert graph.get(Bare, "2") == Bare(id="2", loops=1)


@pytest.mark.parametrize("left", [{}, {"adjoin:counted": {"M": {"CUSTOMER.owed": {"S": "by others"}}}}])
def test_another_program_that_replaces_a_node_loses_nothing(g: Graph, left: dict[str, Any]) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Placed(source="C1", target="I1", balance=Decimal(2)))
    g.maintain(once=True)
    item = {"PK": {"S": "CUSTOMER#C1"}, "SK": {"S": "#META"}, "owed": {"N": "77"}, **left}
    g._store.execute((Put("adjoin", item),))
    g.maintain(once=True)
    check(g)


class Member(Node):
    model_config = {"extra": "allow"}
    id: str
    email: Annotated[str, Unique()]
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""
    posts: Annotated[int, Count("Wrote")] = 0
    longest: Annotated[int | None, Max("Wrote", field="words")] = None


class Post(Node):
    id: str


class Wrote(Edge[Member, Post]):
    words: int = 0
    by: Annotated[str, Copy("source.name")] = ""


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_nodes_with_satellites_and_extra_fields(layout: Any) -> None:
    with Graph(":memory:", [Member, Post, Wrote], layout) as g:
        g.put(Member(id="M1", email="a@b", name="Ann", city="Oslo"))
        g.put(Wrote(source="M1", target="P1", words=4))
        g.maintain(once=True)
        g.put(Member.model_validate({"id": "M1", "email": "c@d", "name": "Ann", "city": "Bern", "more": 1}))
        g.update(Member, "M1", name="Bea")
        g.put(Wrote(source="M1", target="P2", words=9))
        g.maintain(once=True)
        found = g.get(Member, email="c@d")
        assert found is not None
        assert (found.posts, found.longest, found.name) == (2, 9, "Bea")
        assert found.__pydantic_extra__ == {"more": 1}
        assert g.find(Member, field("city") == "Bern").first() == found
        assert [edge.by for edge in g.out("M1", Wrote)] == ["Bea", "Bea"]
        g.delete(Member, "M1")
        g.maintain(once=True)


class Country(Node):
    id: str
    code: Annotated[str, Immutable()]
    name: str = ""


def test_what_is_immutable_is_refused() -> None:
    with Graph(":memory:", [Country]) as g:
        g.put(Country(id="ch", code="CH"))
        g.put(Country(id="ch", code="CH", name="Schweiz"))
        with pytest.raises(InvalidValue, match="immutable"):
            g.update(Country, "ch", code="CS")
        with pytest.raises(InvalidValue, match="immutable"):
            g.put(Country(id="ch", code="CS"))
        with pytest.raises(InvalidValue, match="immutable"):
            g.put_many([Country(id="ch", code="CS")])
        assert g.get(Country, "ch") == Country(id="ch", code="CH", name="Schweiz")


def test_a_transaction_says_what_is_immutable() -> None:
    with Graph(":memory:", [Country]) as countries:
        countries.put(Country(id="ch", code="CH"))
        refused = pytest.raises(TransactionCanceled, match="code is immutable, and Country 'ch' already has")
        with refused, countries.transaction() as t:
            t.put(Country(id="ch", code="CS"))
