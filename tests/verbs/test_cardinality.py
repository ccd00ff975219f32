"""`one_target` and `one_source`: at most one edge of a class at a node, in the same transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Copy,
    Count,
    Edge,
    Graph,
    InvalidModel,
    Keys,
    MaterializedGraph,
    MigrationDue,
    Node,
    NotFound,
    TransactionCanceled,
    field,
)
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import OWNER, Layout
from adjoin.requests import Delete, Update
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import scanned
from tests.verbs.conftest import Everywhere


class Customer(Node):
    id: str
    name: str = ""
    invoices: Annotated[int, Count("BilledTo", direction="into")] = 0


class Invoice(Node):
    id: str


class Seat(Node, key=("row", "number")):
    row: str
    number: int


class BilledTo(Edge[Invoice, Customer], one_target=True):
    share: int = 100
    name: Annotated[str, Copy("target.name")] = ""


class Sits(Edge[Customer, Seat], one_target=True, one_source=True):
    note: str = ""


class Married(Edge[Customer, Customer], symmetric=True, one_target=True):
    since: int = 0


class Owns(Edge[Customer, Invoice | Seat], one_source=True):
    pass


MODELS: list[Any] = [Customer, Invoice, Seat, BilledTo, Sits, Married, Owns]


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put_many([*(Customer(id=id, name=id.upper()) for id in "abc"), Invoice(id="1"), Invoice(id="2")])
    graph.put_many([Seat(row="A", number=number) for number in (1, 2)])
    return graph


def test_a_source_has_one_target(g: Any) -> None:
    with g.meter() as meter:
        assert g.connect(BilledTo, "1", "a").name == "A"
    assert meter.requests == 2, "one transaction, after the read of what it copies"
    calls: list[Callable[[], Any]] = [
        lambda: g.connect(BilledTo, "1", "b"),
        lambda: g.add(BilledTo(source="1", target="b")),
        lambda: g.put(BilledTo(source="1", target="b")),
        lambda: g.put_many([BilledTo(source="1", target="b")]),
        lambda: g.upsert(BilledTo, "1", "b", share=1),
    ]
    for call in calls:
        with pytest.raises(AlreadyExists, match="there is a BilledTo from '1' to 'a'; disconnect that first"):
            call()
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.connect(BilledTo, "1", "b")
    assert AlreadyExists in [reason.error for reason in error.value.reasons]
    assert [edge.target for edge in g.out("1", BilledTo)] == ["a"]
    g.connect(BilledTo, "2", "a")
    assert [edge.source for edge in g.into("a", BilledTo)] == ["1", "2"], "a target has any number"
    g.put(BilledTo(source="1", target="a", share=50))
    with g.meter() as meter:
        assert g.update(BilledTo, "1", "a", share=40).share == 40
    assert meter.requests == 1


def test_it_is_free_when_the_edge_is_gone(g: Any) -> None:
    g.connect(BilledTo, "1", "a")
    with g.meter() as meter:
        assert g.disconnect(BilledTo, "1", "a") is True
    assert meter.requests == 1
    assert g.disconnect(BilledTo, "1", "a") is False
    g.connect(BilledTo, "1", "b")
    assert g.disconnect(BilledTo, "1", "a") is False
    with pytest.raises(AlreadyExists):
        g.connect(BilledTo, "1", "c")
    g.delete(Customer, "b")
    g.connect(BilledTo, "1", "c")
    g.delete(g.edge(BilledTo, "1", "c"))
    g.connect(BilledTo, "1", "a")
    assert g.delete_many([BilledTo(source="1", target="a")]) == 1
    g.connect(BilledTo, "1", "c")
    with g.transaction() as t:
        t.delete(Customer, "c")
    g.connect(BilledTo, "1", "a")
    g.delete(Invoice, "1")
    g.put(Invoice(id="1"))
    assert g.connect(BilledTo, "1", "a").target == "a"


def test_another_one_in_the_same_transaction(g: Any) -> None:
    g.connect(BilledTo, "1", "a")
    for old, new in (("a", "b"), ("b", "c")):
        with g.transaction() as t:
            t.disconnect(BilledTo, "1", old)
            t.connect(BilledTo, "1", new)
        assert [edge.target for edge in g.out("1", BilledTo)] == [new]
    with pytest.raises(AlreadyExists, match="to 'c'"):
        g.connect(BilledTo, "1", "a")
    with g.transaction() as t:
        t.connect(BilledTo, "1", "b")
        t.disconnect(BilledTo, "1", "c")
    assert [edge.target for edge in g.out("1", BilledTo)] == ["b"]
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.disconnect(BilledTo, "2", "a")
        t.connect(BilledTo, "1", "c")


def test_both_ends_unions_and_symmetric_edges(g: Any) -> None:
    g.connect(Sits, "a", ("A", 1))
    for customer, seat in (("b", 1), ("a", 2)):
        with pytest.raises(AlreadyExists, match="a source and a target have at most one Sits"):
            g.connect(Sits, customer, ("A", seat))
    g.connect(Sits, "b", ("A", 2))
    g.connect(Owns, "a", Invoice.ref("1"))
    g.connect(Owns, "a", Seat.ref(("A", 1)))
    with pytest.raises(AlreadyExists):
        g.connect(Owns, "b", Seat.ref(("A", 1)))
    g.connect(Married, "a", "b")
    for one, other in (("b", "c"), ("c", "a"), ("a", "c")):
        with pytest.raises(AlreadyExists):
            g.connect(Married, one, other)
    assert g.disconnect(Married, "b", "a") is True
    g.connect(Married, "c", "a")
    g.delete(Customer, "c")
    assert g.connect(Married, "b", "a").source == "b"


def test_a_symmetric_edge_is_put_again_from_either_end(g: Any) -> None:
    g.connect(Married, "a", "b", since=1)
    g.put(Married(source="a", target="b", since=2))
    assert g.edge(Married, "b", "a").since == 2
    with g.meter() as meter:
        g.put(Married(source="b", target="a", since=3))
    assert (g.edge(Married, "a", "b").since, meter.requests) == (3, 2)
    g.put_many([Married(source="b", target="a", since=4)])
    with g.transaction() as t:
        t.put(Married(source="a", target="b", since=g.edge(Married, "b", "a").since + 1))
    assert [edge.since for id in "ab" for edge in g.out(id, Married)] == [5, 5]
    with pytest.raises(AlreadyExists):
        g.put(Married(source="c", target="b"))


def test_a_symmetric_edge_from_a_node_to_itself(g: Any) -> None:
    g.connect(Married, "a", "a")
    with pytest.raises(AlreadyExists, match=r"^a node has at most one Married, and there is a Married from 'a' to 'a'"):
        g.connect(Married, "b", "a")
    g.put(Married(source="a", target="a", since=1))
    assert [edge.since for edge in g.out("a", Married)] == [1]
    assert g.disconnect(Married, "a", "a") is True
    g.connect(Married, "b", "a")


# --- races, older tables, audits ---------------------------------------------------------------


def opened(store: Store | None = None, *models: Any) -> Graph:
    return Graph(store or SQLiteStore(":memory:"), models or MODELS)


def test_of_several_threads_one_wins(tmp_path: Any) -> None:
    with Graph(f"{tmp_path / 'g.db'}?durability=process", MODELS) as g:
        g.put_many([Invoice(id="1"), *(Customer(id=str(number)) for number in range(8))])
        refused: list[Any] = []

        def connect(id: str) -> None:
            try:
                g.connect(BilledTo, "1", id)
            except AlreadyExists as error:
                refused.append(error)

        threads = [threading.Thread(target=connect, args=(str(number),)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(list(g.out("1", BilledTo))) == 1
        assert len(refused) == 7


def test_no_claim_is_left_and_verify_agrees() -> None:
    with opened() as g:
        g.put_many([*(Customer(id=id) for id in "abc"), Invoice(id="1"), Seat(row="A", number=1)])
        g.connect(BilledTo, "1", "a")
        g.connect(Sits, "a", ("A", 1))
        g.connect(Married, "a", "b")
        g.maintain(once=True)
        assert g.verify()
        claims = [each for each in scanned(g) if OWNER in each]
        assert len(claims) == 5, "one of the invoice, two of the seat, two of the couple"
        g._store.execute([Delete("adjoin", g._layout.key_of(each)) for each in claims])
        found = g.verify(repair=True)
        assert {finding.kind for finding in found.findings} == {"claim"}
        assert g.verify()
        with pytest.raises(AlreadyExists):
            g.connect(BilledTo, "1", "b")
        for id in "abc":
            g.delete(Customer, id)
        assert not [each for each in scanned(g) if OWNER in each], "claims go with their edges"
        g.maintain(once=True)
        assert g.verify()


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph(shards=3), AdjacencyList(type_attribute="T")])
def test_tenants_odd_ids_and_layouts(layout: Layout) -> None:
    with Graph(":memory:", MODELS, layout) as whole:
        for tenant in ("acme", "b"):
            g = whole.for_tenant(tenant)
            g.put_many([Invoice(id="1:2#x%"), *(Customer(id=id) for id in "ab")])
            g.connect(BilledTo, "1:2#x%", "a")
            g.connect(Married, "b", "a")
            with pytest.raises(AlreadyExists, match="from '1:2#x%' to 'a'"):
                g.connect(BilledTo, "1:2#x%", "b")
        whole.maintain(once=True)
        assert whole.verify()
        whole.for_tenant("b").delete(Customer, "a")
        whole.maintain(once=True)
        assert whole.verify()
        assert whole.for_tenant("b").connect(BilledTo, "1:2#x%", "b").target == "b"


def test_a_node_with_more_edges_than_a_transaction_takes() -> None:
    with opened() as g:
        g.put_many([Customer(id="a"), *(Invoice(id=str(number)) for number in range(130))])
        g.put_many(BilledTo(source=str(number), target="a") for number in range(130))
        g.delete(Customer, "a")
        assert not [each for each in scanned(g) if OWNER in each], "claims go with their edges"
        g.put(Customer(id="b"))
        with g.meter() as meter:
            g.connect(BilledTo, "7", "b")
        assert meter.requests == 2, "nothing is in the way"


class Order(Node):
    id: str


class Before(Edge[Order, Order], label="REPLACES"):
    share: int = 100


class After(Edge[Order, Order], label="REPLACES", one_target=True):
    share: int = 100


def test_edges_that_were_stored_before() -> None:
    store = SQLiteStore(":memory:")
    before = opened(store, Order, Before)
    before.put_many([*(Order(id=id) for id in "abc"), Before(source="a", target="b")])
    g = opened(store, Order, After)
    calls: list[Callable[[], Any]] = [
        lambda: g.connect(After, "a", "c"),
        lambda: g.put(After(source="a", target="c")),
        lambda: _in_a_transaction(g, After(source="a", target="c")),
    ]
    for call in calls:
        with pytest.raises(MigrationDue, match="may not have claimed their 'source'"):
            call()
    g.migrate(finish=True)
    with pytest.raises(AlreadyExists, match="from 'a' to 'b'"):
        g.connect(After, "a", "c")


def _in_a_transaction(g: Graph, edge: Any) -> None:
    with g.transaction() as t:
        t.put(edge)


def test_a_table_that_cannot_hold_claims() -> None:
    class Thing(Node):
        id: int

    class Only(Edge[Thing, Thing], one_target=True):
        pass

    keys: dict[type[Any], Keys] = {
        Thing: Keys(partition="{id}", sort="META"),
        Only: Keys(partition="{source.id}", sort="ONLY#{target.id}"),
    }
    with pytest.raises(InvalidModel, match="one_target= or one_source="):
        Graph(":memory:", [Thing, Only], AdjacencyList(types={"PK": "N"}, reverse=None, keys=keys))


def test_ends_must_exist_all_the_same(g: Any) -> None:
    with pytest.raises(NotFound):
        g.connect(BilledTo, "1", "nobody")
    assert g.connect(BilledTo, "1", "a", only_if=field("target.name") == "A").target == "a"


class Team(Node):
    id: str
    members: Annotated[int, Count("Member", direction="into", consistency="transaction")] = 0


class Player(Node):
    id: str


class Member(Edge[Player, Team], one_target=True):
    pass


def test_with_a_count_in_the_transaction(everywhere: Everywhere) -> None:
    g = everywhere([Team, Player, Member])
    g.put_many([Team(id="a"), Team(id="b"), Player(id="p"), Player(id="q")])
    g.connect(Member, "p", "a")
    g.connect(Member, "q", "a")
    with pytest.raises(AlreadyExists, match="from 'p' to 'a'"):
        g.connect(Member, "p", "b")
    assert [team.members for team in g.get_many(Team, "ab")] == [2, 0]
    assert g.disconnect(Member, "p", "a") is True
    g.connect(Member, "p", "b")
    assert [team.members for team in g.get_many(Team, "ab")] == [1, 1]
    with g.transaction() as t:
        t.disconnect(Member, "p", "b")
        t.connect(Member, "p", "a")
    assert [team.members for team in g.get_many(Team, "ab")] == [2, 0]
    g.delete(Team, "a")
    g.connect(Member, "p", "b")
    assert [team and team.members for team in g.get_many(Team, "ab")] == [None, 1]


@pytest.mark.parametrize(
    ("model", "ends"), [(BilledTo, ("1", "a")), (Married, ("a", "b")), (Married, ("b", "a")), (Member, ("p", "a"))]
)
def test_a_claim_that_another_edge_has_taken_over_stays(model: type[Any], ends: tuple[str, str]) -> None:
    with Graph(":memory:", [*MODELS, Team, Player, Member]) as g:
        g.put_many([Invoice(id="1"), Customer(id="a"), Customer(id="b"), Team(id="a"), Player(id="p")])
        g.connect(model, *ends)
        first, *others = [g._layout.key_of(each) for each in scanned(g) if OWNER in each]
        g._store.execute([Update("adjoin", first, (Set(attribute(OWNER), Value({"S": "another"})),))])
        assert g.disconnect(model, *ends) is True
        assert list(g.out(ends[0], model)) == []
        left = [each for each in scanned(g) if OWNER in each]
        assert [(g._layout.key_of(each), each[OWNER]) for each in left] == [(first, {"S": "another"})]
        assert len(others) == (1 if model is Married else 0)


def test_no_claim_is_left_of_edges_that_are_counted() -> None:
    with opened(None, Team, Player, Member) as g:
        g.put_many([Team(id="a"), *(Player(id=id) for id in "pqrs")])
        for id in "pqrs":
            g.connect(Member, id, "a")
        g.disconnect(Member, "p", "a")
        g.delete(Player, "q")
        with g.transaction() as t:
            t.delete(Player, "r")
        assert len([each for each in scanned(g) if OWNER in each]) == 1
        g.delete(Team, "a")
        assert not [each for each in scanned(g) if OWNER in each], "claims go with their edges"
