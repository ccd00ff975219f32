"""`maintain`, and what it leaves to nobody's hands."""

from __future__ import annotations

import asyncio
import pickle
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Edge,
    Graph,
    Indexed,
    InvalidModel,
    InvalidValue,
    MaterializedGraph,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.aggregates import Copy, Count, Immutable, Latest, Max, Sum, Top
from adjoin.requests import Put, Request, Response, TransactWrite, Update
from adjoin.runner import WATCHERS
from tests.maintenance.models import (
    MODELS,
    Album,
    Customer,
    Follows,
    Invoice,
    OnAlbum,
    Part,
    Person,
    Placed,
    Track,
    Uses,
)
from tests.maintenance.simulation import Process, stored
from tests.maintenance.test_simulation import check


@pytest.fixture
def g() -> Any:
    with Graph(":memory:", MODELS) as graph:
        yield graph


def test_counts_and_sums(g: Graph) -> None:
    g.put(Customer(id="C1"))
    for number in range(3):
        g.put(Placed(source="C1", target=f"I{number}", balance=Decimal("0.1")))
    report = g.maintain(once=True)
    assert g.get(Customer, "C1").owed == Decimal("0.3")  # type: ignore[union-attr]
    # The node, three edges, and two changes of the node by this: its sums, and then its extremes.
    assert (report.changes, report.nodes, report.set_aside) == (6, 1, ())
    assert g.maintain(once=True).edges == 0


def test_a_large_number_of_edges_is_one_change_of_the_node(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.maintain(once=True)
    g.put_many(Placed(source="C1", target=f"I{number}", balance=Decimal(1)) for number in range(300))
    g.maintain(once=True)
    assert g.get(Customer, "C1").invoices == 300  # type: ignore[union-attr]
    check(g)


# --- what nobody writes by hand ----------------------------------------------------------------


def test_aggregates_are_not_set_by_hand(g: Graph) -> None:
    g.put(Customer(id="C1"))
    with pytest.raises(InvalidValue, match=r"Customer\.owed is kept true by itself"):
        g.update(Customer, "C1", owed=Decimal(5))
    with pytest.raises(InvalidValue, match="begins with 0"):
        g.add(Customer(id="C2", invoices=3))
    with pytest.raises(InvalidValue, match=r"Placed\.customer is kept true by itself"):
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
        with pytest.raises(InvalidValue, match=rf"Customer\.{next(iter(changed))} is kept true by itself"):
            g.put(node)
        with pytest.raises(InvalidValue, match="kept true by itself"):
            g.put_many([Customer(id="C2"), node])
        with pytest.raises(InvalidValue, match="kept true by itself"), g.transaction() as t:
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


def test_another_program_that_replaces_a_node_loses_nothing(g: Graph) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Placed(source="C1", target="I1", balance=Decimal(2)))
    g.maintain(once=True)
    g._store.execute((Put("adjoin", {"PK": {"S": "CUSTOMER#C1"}, "SK": {"S": "#META"}, "owed": {"N": "77"}}),))
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


# --- copies ------------------------------------------------------------------------------------


def test_copies_are_filled_in_and_kept_fresh(g: Graph) -> None:
    g.put(Customer(id="C1", name="Ann"))
    g.put(Invoice(id="I1", kind="y"))
    made = g.connect(Placed, "C1", "I1")
    assert (made.customer, made.kind) == ("Ann", "y")
    assert g.edge(Placed, "C1", "I1") == made
    g.put_many(Placed(source="C1", target=f"I{number}") for number in range(2, 250))
    assert g.edge(Placed, "C1", "I7").customer == "Ann"  # type: ignore[union-attr]
    g.maintain(once=True)
    g.update(Customer, "C1", name="Bea")
    with g.meter() as m:
        g.maintain(once=True)
    check(g)
    # Three transactions of up to 99 edges, and what finds them.
    assert m.requests < 30


def test_an_edge_without_room_for_its_copy_holds_nothing_up(g: Graph) -> None:
    g.put_many([Customer(id="C1", name="Ann"), *(Placed(source="C1", target=f"I{number}") for number in range(3))])
    g.put(Placed(source="C1", target="full", status="x" * 409_000))
    g.maintain(once=True)
    g.update(Customer, "C1", name="Ann" * 300)
    report = g.maintain(once=True)
    assert [each.edge["SK"]["S"] for each in report.set_aside] == ["PLACED#INVOICE#full"]
    assert {edge.customer for edge in g.out("C1", Placed) if edge.target != "full"} == {"Ann" * 300}


def test_the_cost_of_a_change_is_known_beforehand(g: Graph) -> None:
    plan = g.explain(g.update, Customer, "C1", name="Bea")
    assert len(plan.requests) == 1
    (fan_out,) = plan.fan_outs
    assert (fan_out.edge, fan_out.fields, fan_out.index) == ("Placed", ("customer",), None)
    # It copies from the invoice too, which is checked with each edge.
    assert (fan_out.wcu_per_edge, fan_out.edges_a_request) == (5.0, 49)
    assert "for each Placed at CUSTOMER#C1" in str(plan)
    assert g.explain(g.update, Invoice, "I1", kind="y").fan_outs[0].index == "GSI1"
    assert g.explain(g.update, Invoice, "I1", weight=2).fan_outs == ()
    assert len(g.explain(g.put, Customer(id="C1")).fan_outs) == 1


def test_edges_copy_from_nodes_that_are_put_with_them(g: Graph) -> None:
    """In one call, whichever comes first; what is counted on a node stays, and is copied as it is."""
    g.put_many([Placed(source="C1", target="I1"), Invoice(id="I1", kind="big"), Customer(id="C1", name="Ann")])
    made = g.edge(Placed, "C1", "I1")
    assert made is not None
    assert (made.customer, made.kind) == ("Ann", "big")
    g.put_many([Customer(id="C1", name="Bea"), Placed(source="C1", target="I2"), Customer(id="C1", name="Cleo")])
    assert g.edge(Placed, "C1", "I2").customer == "Cleo"  # type: ignore[union-attr]
    g.maintain(once=True)
    check(g)


class Shelf(Node):
    id: str
    name: Annotated[str, Unique()]
    books: Annotated[int, Count("Holds", consistency="transaction")] = 0


class Book(Node):
    id: str
    title: str


class Holds(Edge[Shelf, Book]):
    shelf: Annotated[str, Copy("source.name")] = ""
    title: Annotated[str, Copy("target.title")] = ""
    before: Annotated[int, Copy("source.books")] = 0


def test_edges_that_are_counted_at_once_are_put_after_their_nodes() -> None:
    with Graph(":memory:", [Shelf, Book, Holds]) as g:
        g.put_many([Holds(source="S1", target="B1"), Book(id="B1", title="Emma"), Shelf(id="S1", name="left")])
        made = g.edge(Holds, "S1", "B1")
        assert made is not None
        assert (made.shelf, made.title) == ("left", "Emma")
        assert g.get(Shelf, "S1") == Shelf(id="S1", name="left", books=1)


class Band(Node):
    id: str
    name: str


class Stage(Node):
    id: str
    name: str = ""


class Plays(Edge[Band, Stage]):
    band: Annotated[str, Copy("source.name")] = ""
    note: str = ""


class PlaysAt(Edge[Band, Stage]):
    band: Annotated[str, Copy("source.name")] = ""
    stage: Annotated[str, Copy("target.name")] = ""
    year: Annotated[int, Indexed()] = 0


class Hosts(Edge[Stage, Band]):
    band: Annotated[str, Copy("target.name")] = ""


@pytest.mark.parametrize("layout", [AdjacencyList(shards=1), MaterializedGraph(shards=2)], ids=["list", "graph"])
@pytest.mark.parametrize(("model", "note"), [(Plays, ""), (Plays, "x" * 2000), (PlaysAt, ""), (Hosts, "")])
def test_the_cost_told_beforehand_is_what_it_costs(model: Any, note: str, layout: Any) -> None:
    with Graph(":memory:", [Band, Stage, model], layout) as g:
        g.put_many([Band(id="1", name="x"), *(Stage(id=str(number)) for number in range(300))])
        ends = [("1", str(number)) if model is not Hosts else (str(number), "1") for number in range(300)]
        more = {"note": note} if note else {}
        g.put_many(model(source=source, target=target, **more) for source, target in ends)
        g.maintain(once=True)
        (fan_out,) = g.explain(g.update, Band, "1", name="y").fan_outs
        g.update(Band, "1", name="y")
        with g.meter() as m:
            assert g.maintain(once=True).edges == 300
    size = 100 + len(note)
    assert m.wcu == pytest.approx(fan_out.wcu(300, size), rel=0.02)
    assert m.rcu == pytest.approx(fan_out.rcu(300, size), rel=0.02)
    assert m.dollars == pytest.approx(fan_out.dollars(300, size), rel=0.02)
    # The rest reads the stream, and takes down how far it was read.
    assert fan_out.requests(300, size) <= m.requests <= fan_out.requests(300, size) + 20


def test_a_transaction_copies_what_it_writes(g: Graph) -> None:
    with g.transaction() as t:
        t.put(Customer(id="C1", name="Ann"))
        t.put(Invoice(id="I1"))
        t.connect(Placed, "C1", "I1")
    assert g.edge(Placed, "C1", "I1").customer == "Ann"  # type: ignore[union-attr]


# --- in the transaction ------------------------------------------------------------------------


def test_a_transaction_counts_at_once(g: Graph) -> None:
    with g.transaction() as t:
        t.add(Album(id="A1"))
        t.add(Track(id="T1"))
        t.put(Track(id="T2"))
        t.connect(OnAlbum, "A1", "T1", seconds=10)
        t.connect(OnAlbum, "A1", "T2", seconds=5, live=True)
    album = g.get(Album, "A1")
    assert album is not None
    assert (album.tracks, album.seconds, album.live, album.longest) == (2, 15, 1, 10)
    assert g.get(Track, "T1").albums == 1  # type: ignore[union-attr]
    with g.transaction() as t:
        t.update(Album, "A1", title="One")
        t.update(OnAlbum, "A1", "T1", seconds=20)
        t.disconnect(OnAlbum, "A1", "T2")
    album = g.get(Album, "A1")
    assert album is not None
    assert (album.title, album.tracks, album.seconds, album.live) == ("One", 1, 20, 0)
    g.delete(Track, "T1")
    assert g.get(Album, "A1").tracks == 0  # type: ignore[union-attr]
    g.maintain(once=True)
    check(g)


OTHERS: dict[str, Callable[[Graph], object]] = {
    "the first edge of the node": lambda g: g.connect(OnAlbum, "A1", "T2", seconds=5),
    "the same edge, put and removed": lambda g: (g.connect(OnAlbum, "A1", "T1"), g.disconnect(OnAlbum, "A1", "T1")),
    "what is copied": lambda g: g.update(Track, "T1", title="Two"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_transaction_is_tried_again_if_others_come_between(g: Graph, what: str) -> None:
    g.put_many([Album(id="A1"), Track(id="T1", title="One"), Track(id="T2")])
    t = g.transaction()
    t.connect(OnAlbum, "A1", "T1", seconds=7)
    slow = Process(g, t._commit(), "slow")
    while not any(isinstance(request, TransactWrite) for request in slow._batch):
        slow.step(random.Random(0))
    OTHERS[what](g)
    while not slow.is_done:
        slow.step(random.Random(0))
    assert slow.error is None
    edge, track = g.edge(OnAlbum, "A1", "T1"), g.get(Track, "T1")
    album = g.get(Album, "A1")
    assert edge is not None
    assert track is not None
    assert album is not None
    assert edge.title == track.title
    assert album.tracks == g.out("A1", OnAlbum).count()
    g.maintain(once=True)
    check(g)


def test_a_transaction_says_why_it_was_canceled(g: Graph) -> None:
    g.put(Album(id="A1"))
    with pytest.raises(TransactionCanceled, match="there is no node 'TRACK#T1'"), g.transaction() as t:
        t.connect(OnAlbum, "A1", "T1")
    with Graph(":memory:", [Country]) as countries:
        countries.put(Country(id="ch", code="CH"))
        refused = pytest.raises(TransactionCanceled, match="code is immutable, and Country 'ch' has")
        with refused, countries.transaction() as t:
            t.put(Country(id="ch", code="CS"))


def test_counting_at_once_needs_the_node(g: Graph) -> None:
    g.put(Album(id="A1"))
    with pytest.raises(NotFound):
        g.connect(OnAlbum, "A1", "T1")
    g.put(OnAlbum(source="A1", target="T1", seconds=3))
    assert g.get(Album, "A1").seconds == 3  # type: ignore[union-attr]
    g.put(Track(id="T1"))
    g.maintain(once=True)
    check(g)


def test_a_symmetric_edge_is_counted_at_both_ends_at_once() -> None:
    class Peer(Node):
        id: str
        peers: Annotated[int, Count("Knows", consistency="transaction")] = 0
        years: Annotated[int, Sum("Knows", field="years", consistency="transaction")] = 0

    class Knows(Edge[Peer, Peer], symmetric=True):
        years: int = 0

    with Graph(":memory:", [Peer, Knows]) as g:

        def counts() -> list[tuple[int, int]]:
            return [(peer.peers, peer.years) for peer in g.get_many(Peer, "abc") if peer is not None]

        g.put_many(Peer(id=id) for id in "abc")
        g.connect(Knows, "a", "b", years=2)
        g.connect(Knows, "c", "a", years=3)
        assert counts() == [(2, 5), (1, 2), (1, 3)]
        g.update(Knows, "b", "a", years=7)
        g.put(Knows(source="a", target="a", years=1))
        assert counts() == [(3, 11), (1, 7), (1, 3)]
        g.disconnect(Knows, "b", "a")
        assert counts() == [(2, 4), (0, 0), (1, 3)]
        g.delete(Peer, "c")
        assert counts() == [(1, 1), (0, 0)]
        assert g.maintain(once=True).nodes == 0


# --- circles and what cannot be applied --------------------------------------------------------


def test_a_circle_is_reported_and_not_followed(g: Graph) -> None:
    g.put_many(Part(id=f"P{number}", cost=1) for number in range(3))
    g.put_many([Uses(source="P0", target="P1"), Uses(source="P1", target="P2")])
    g.maintain(once=True)
    g.put(Uses(source="P2", target="P0"))
    report = g.maintain(once=True)
    assert {each.rule for each in report.set_aside} == {"PART.total", "PART.below", "PART.dearest"}
    assert "it would close a circle" in report.set_aside[0].reason
    assert g.get(Part, "P0").total == 2  # type: ignore[union-attr]
    g.disconnect(Uses, "P0", "P1")
    assert g.maintain(once=True).set_aside == ()
    assert g.get(Part, "P2").total == 1  # type: ignore[union-attr]
    check(g)


def test_what_cannot_be_applied_is_set_aside_and_blocks_nothing(g: Graph) -> None:
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1", balance=Decimal(1))])
    (item,) = (item for item in stored(g) if item["SK"]["S"].startswith("PLACED"))
    g._store.execute((Put("adjoin", item | {"balance": {"S": "much"}}),))
    g.put(Placed(source="C1", target="I2", balance=Decimal(4)))
    report = g.maintain(once=True)
    assert "CUSTOMER.owed" in {each.rule for each in report.set_aside}
    assert g.get(Customer, "C1").owed == 4  # type: ignore[union-attr]
    g._store.execute((Put("adjoin", item),))
    g.maintain(once=True)
    check(g)


def test_sums_that_dynamodb_cannot_hold_are_set_aside(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1", balance=Decimal("1e100")))
    g.put(Placed(source="C1", target="I2", balance=Decimal("1e-20")))
    report = g.maintain(once=True)
    assert report.set_aside
    assert g.get(Customer, "C1") is not None


# --- declarations ------------------------------------------------------------------------------


def test_declarations_that_cannot_be_kept() -> None:
    class Bare(Node):
        id: str
        count: Annotated[int, Count("Loop")]

    class Loop(Edge[Bare, Bare]):
        pass

    with pytest.raises(InvalidModel, match="give it a default"):
        Graph(":memory:", [Bare, Loop])

    class Listed(Node):
        id: str
        count: Annotated[int, Count("Ring"), Indexed()] = 0

    class Ring(Edge[Listed, Listed]):
        pass

    with pytest.raises(InvalidModel, match="Indexed"):
        Graph(":memory:", [Listed, Ring])


class Root(Node):
    id: str
    day: int = 0
    word: str | None = None
    newest: Annotated[str | None, Latest("Under", field="word", by="day", recursive=True)] = None
    days: Annotated[list[int], Top("Under", field="day", k=3, recursive=True)] = []


class Under(Edge[Root, Root]):
    pass


def test_recursive_latest_and_top() -> None:
    with Graph(":memory:", [Root, Under]) as g:
        g.put_many(Root(id=str(number), day=number % 3, word=f"w{number}") for number in range(6))
        g.put_many(Under(source=str(number // 2), target=str(number)) for number in range(2, 6))
        g.put(Under(source="0", target="1"))
        g.maintain(once=True)
        root = g.get(Root, "0")
        assert root is not None
        assert (root.newest, root.days) == ("w5", [2, 2, 1])
        g.update(Root, "5", day=0)
        g.maintain(once=True)
        assert g.get(Root, "0").newest == "w2"  # type: ignore[union-attr]


# --- celebrities -------------------------------------------------------------------------------


def test_a_celebrity_is_written_once_for_many_edges(g: Graph) -> None:
    """Deltas of one batch are added up, so the node is no hot item, and a change costs a fraction of a request."""
    g.put(Person(id="star"))
    g.maintain(once=True)
    g.put_many(Follows(source=f"N{number}", target="star") for number in range(1000))
    counted: list[int] = []

    class Watcher:
        def round(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
            for request in requests:
                writes = request.writes if isinstance(request, TransactWrite) else ()
                counted.append(
                    sum(isinstance(each, Update) and each.key["PK"]["S"] == "PERSON#star" for each in writes)
                )

    token = WATCHERS.set((Watcher(),))
    g.maintain(once=True)
    WATCHERS.reset(token)
    assert g.get(Person, "star").followers == 1000  # type: ignore[union-attr]
    # 48 edges in a transaction of 100 items.
    assert 20 <= sum(counted) <= 25


def test_parallel_and_ordered_edges() -> None:
    class Reader(Node):
        id: str
        name: str = ""
        loans: Annotated[int, Count("Loan")] = 0
        last: Annotated[int | None, Latest("Loan", by="year")] = None
        wishes: Annotated[int, Sum("Wish", field="rank")] = 0

    class Book(Node):
        id: str
        loans: Annotated[int, Count("Loan")] = 0

    class Loan(Edge[Reader, Book], key=("year",), order="year"):
        year: int
        reader: Annotated[str, Copy("source.name")] = ""

    class Wish(Edge[Reader, Book], order="rank"):
        rank: int

    with Graph(":memory:", [Reader, Book, Loan, Wish]) as g:
        g.put_many([Reader(id="R#1", name="Ann"), Book(id="B|1")])
        g.put_many(Loan(source="R#1", target="B|1", year=year) for year in (2001, 1999, 2010))
        g.put_many(Wish(source="R#1", target=f"B{rank}", rank=rank) for rank in range(4))
        g.maintain(once=True)
        assert g.get(Reader, "R#1") == Reader(id="R#1", name="Ann", loans=3, last=2010, wishes=6)
        assert g.get(Book, "B|1") == Book(id="B|1", loans=3)
        g.disconnect(Loan, "R#1", "B|1", year=2010)
        g.update(Wish, "R#1", "B2", rank=-5)
        g.update(Reader, "R#1", name="Bea")
        g.maintain(once=True)
        assert g.get(Reader, "R#1") == Reader(id="R#1", name="Bea", loans=2, last=2001, wishes=-1)
        assert {edge.reader for edge in g.into("B|1", Loan)} == {"Bea"}


def test_a_layout_without_a_reverse_index_cannot_count_at_targets() -> None:
    with pytest.raises(InvalidModel, match="no reverse index"):
        Graph(":memory:", MODELS, AdjacencyList(reverse=None))


# --- elsewhere ---------------------------------------------------------------------------------


def test_awaited() -> None:
    async def main() -> None:
        async with AsyncGraph(":memory:", MODELS) as g:
            await g.put(Customer(id="C1"))
            await g.put(Placed(source="C1", target="I1"))
            report = await g.maintain(once=True)
            assert report.nodes == 1
            customer = await g.get(Customer, "C1")
            assert customer is not None
            assert customer.invoices == 1

    asyncio.run(main())


def test_tenants_keep_their_counts_apart(tmp_path: Any) -> None:
    path = tmp_path / "graph.db"
    with Graph(path, MODELS, tenant="one") as one, Graph(path, MODELS, tenant="two") as two:
        for g in (one, two):
            g.put(Customer(id="C1"))
        one.put(Placed(source="C1", target="I1"))
        two.maintain(once=True)
        one.maintain(once=True)
        assert one.get(Customer, "C1").invoices == 1  # type: ignore[union-attr]
        assert two.get(Customer, "C1").invoices == 0  # type: ignore[union-attr]


def test_the_position_stays_where_nothing_happens(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.maintain(once=True)
    before = stored(g)
    for _ in range(3):
        g.maintain(once=True)
    assert stored(g) == before


def test_sum_over_a_filtered_far_end(g: Graph) -> None:
    g.put_many([Customer(id="C1"), Invoice(id="I1", weight=4), Placed(source="C1", target="I1")])
    g.maintain(once=True)
    assert g.get(Customer, "C1").weight == 4  # type: ignore[union-attr]
    g.update(Invoice, "I1", kind="y")
    g.maintain(once=True)
    assert g.get(Customer, "C1").weight == 0  # type: ignore[union-attr]
