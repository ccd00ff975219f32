"""Children: items in the partition of their parent, over each kind of keys and each store, and what a call asks for."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    AsyncGraph,
    Child,
    ConditionFailed,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    NotFound,
    Unique,
    Version,
    field,
)
from adjoin.errors import TransactionCanceled
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import scanned
from tests.servers.open import Stores


class Account(Node, key=("bank", "number")):
    bank: str
    number: int
    owner: str = ""


class Payment(Child[Account], key=("at",)):
    at: dt.datetime
    amount: Decimal = Decimal(0)
    kind: Annotated[str | None, Indexed()] = None
    memo: Annotated[str | None, Indexed()] = None


class Receipt(Child[Payment], key=("page",)):
    page: int
    text: str = ""


class Settings(Child[Account], key=()):
    theme: str = "light"
    version: Annotated[int, Version()] = 0


class Card(Child[Account]):
    id: str
    code: Annotated[str | None, Unique()] = None


class Person(Node):
    id: str
    name: str = ""


class Note(Child[Person], key=("year", "number")):
    year: int
    number: int
    text: str = ""


class Likes(Edge[Person, Payment]):
    pass


class Uses(Edge[Card, Person]):
    pass


class Knows(Edge[Person, Person]):
    pass


MODELS: list[Any] = [Receipt, Payment, Account, Settings, Card, Person, Note, Likes, Uses, Knows]
OWN = AdjacencyList(
    keys={
        Account: Keys(partition="b#{bank}", sort="a#{number:03}"),
        Payment: Keys(sort="a#{parent.number:03}#p#{at}"),
        Note: Keys(partition="PERSON#{parent.id}", sort="n#{year:04}#{number:sortable}"),
    }
)
LAYOUTS: dict[str, Layout] = {"adjacency list": AdjacencyList(), "materialized graph": MaterializedGraph(), "own": OWN}
DAYS = [dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in range(1, 10)]
ONE, TEN = ("ubs", 1), ("ubs", 10)


def payments(parent: Any = ONE, days: list[dt.datetime] = DAYS) -> list[Payment]:
    return [Payment(parent=parent, at=at, amount=Decimal(at.day), kind="rent", memo=f"m{at.day}") for at in days]


@pytest.fixture(params=[(store, layout) for store in ("embedded", "serve", "ministack") for layout in LAYOUTS])
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Any]:
    where, layout = request.param
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    graph = Graph(store, MODELS, LAYOUTS[layout], cursor_secret="s")
    graph.create_table()
    graph.put_many([Account(bank="ubs", number=1), Account(bank="ubs", number=10), Person(id="ann"), Person(id="bob")])
    graph.put_many([*payments(), *payments(TEN, DAYS[:2])])
    yield graph
    graph.drop_table()
    graph.close()


def test_one_child(g: Any) -> None:
    third = payments()[2]
    with g.meter() as m:
        assert g.get(Payment, ("ubs", 1, DAYS[2])) == third
    assert m.requests == 1
    assert g.get(Payment, (ONE, DAYS[2])) == third == g.get(Payment, Payment.ref(parent=ONE, at=DAYS[2]))
    assert g.get(Payment, (Account.ref(ONE), DAYS[2])) == g.get(Payment, third) == third
    assert third.parent == ONE == Payment(parent=Account(bank="ubs", number=1), at=DAYS[0]).parent
    assert g.get_many(Payment, [third, (TEN, DAYS[2]), (TEN, DAYS[1])]) == [third, None, payments(TEN)[1]]
    with pytest.raises(AlreadyExists, match=r"Payment \('ubs', 1, datetime"):
        g.add(third)
    with g.meter() as m:
        assert g.update(Payment, (ONE, DAYS[2]), amount=field("amount") + 1).amount == 4
    assert m.requests <= 2
    with pytest.raises(InvalidValue, match=r"'parent' of Payment .* is its key and cannot change"):
        g.update(Payment, (ONE, DAYS[2]), parent=TEN)
    with pytest.raises(NotFound):
        g.update(Payment, (TEN, DAYS[2]), memo="x")
    assert g.delete(Payment, (ONE, DAYS[2]))
    assert not g.delete(third)
    assert g.children(ONE, Payment).count() == 8


def test_children_of_a_node(g: Any) -> None:
    query = g.children(ONE, Payment)
    with g.meter() as m:
        assert [each.amount for each in query] == list(range(1, 10))
        assert [each.amount for each in query.between(DAYS[2], DAYS[4])] == [3, 4, 5]
        assert [each.amount for each in query.between(DAYS[6], None)] == [7, 8, 9]
        assert [each.amount for each in query.begins_with("2024-01-02")] == [2]
        assert [each.amount for each in query.reverse().limit(2)] == [9, 8]
        assert query.first().amount == 1
    assert m.requests == 6
    assert [each.amount for each in query.where(field("amount") > 7)] == [8, 9]
    assert query.count() == 9
    assert g.children(TEN, Payment).count() == 2
    found: list[Any] = []
    token = None
    while True:
        page = query.page(limit=4, after=token)
        found += page
        token = page.next
        if token is None:
            break
    assert found == payments()
    assert list(g.children(Account.ref(ONE), Payment)) == list(g.children(Account(bank="ubs", number=1), Payment))
    with pytest.raises(InvalidKey, match="a Account is needed, got Person"):
        g.children(Person.ref("ann"), Payment)
    with pytest.raises(InvalidValue, match="Account has no parent"):
        g.children(ONE, Account)
    with pytest.raises(InvalidModel, match="Knows is not a Node class"):
        g.children(ONE, Knows)


def test_keys_of_several_fields(g: Any) -> None:
    notes = [Note(parent="ann", year=year, number=number) for year in (2023, 2024) for number in (9, 10, 100)]
    g.put_many([*notes, Note(parent="bob", year=2023, number=9)])
    with g.meter() as m:
        assert list(g.children("ann", Note)) == notes
        assert list(g.children("ann", Note).within(year=2024)) == notes[3:]
        assert list(g.children("ann", Note).within(year=2024).between(10, 99)) == notes[4:5]
        assert list(g.children("ann", Note).within(year=2023, number=100)) == notes[2:3]
    assert m.requests == 4
    with g.meter() as m:
        assert g.children("ann", Note).count() == 6
    assert m.requests == 1
    assert g.get(Note, ("ann", 2023, 9)) == notes[0]


def test_children_of_children(g: Any) -> None:
    receipts = [Receipt(parent=(*ONE, DAYS[0]), page=page) for page in (1, 2)]
    g.put_many([*receipts, Receipt(parent=Payment.ref(parent=TEN, at=DAYS[0]), page=1)])
    assert list(g.children((*ONE, DAYS[0]), Receipt)) == receipts == list(g.children(payments()[0], Receipt))
    assert g.get(Receipt, ((*ONE, DAYS[0]), 2)) == receipts[1] == g.get(Receipt, (*ONE, DAYS[0], 2))
    # The receipts of a payment lie behind it, among the payments.
    assert list(g.children(ONE, Payment)) == payments()
    assert g.children(ONE, Payment).count() == 9
    around = g.collection(payments()[0])
    assert (around.node, around.children, around.others) == (payments()[0], receipts, [])
    assert g.delete(payments()[0])
    assert list(g.children((*ONE, DAYS[0]), Receipt)) == []
    assert g.children((*TEN, DAYS[0]), Receipt).count() == 1


def test_found_by_fields(g: Any) -> None:
    assert [each.amount for each in g.find(Payment, field("kind") == "rent")] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]
    assert [each.parent for each in g.find(Payment, field("memo") == "m2")] == [ONE, TEN]
    g.update(Payment, (ONE, DAYS[1]), memo="other")
    assert [each.parent for each in g.find(Payment, field("memo") == "m2")] == [TEN]
    g.put(Card(parent=ONE, id="c", code="1234"))
    assert g.get(Card, code="1234") == Card(parent=ONE, id="c", code="1234")
    with pytest.raises(AlreadyExists, match=r"'1234' belongs to Card \('ubs', 1, 'c'\)"):
        g.put(Card(parent=TEN, id="d", code="1234"))


def test_found_by_their_parent_in_an_index() -> None:
    layout = AdjacencyList(
        reverse=None,
        indexed=Index("GSI9", "GSI9PK", "GSI9SK"),
        indexes=[Index("ByAmount", "OfPK", "amount"), Index("ByText", "NotePK", "text")],
        keys={
            Payment: Keys(indexes={"ByAmount": "{parent.bank}|{parent.number}"}),
            Receipt: Keys(indexes={"ByText": "{parent.parent.bank}|{parent.parent.number}|{parent.at}"}),
        },
    )
    with Graph(":memory:", [Account, Payment, Receipt], layout) as g:
        g.put_many([*payments(), *payments(TEN), Receipt(parent=(*ONE, DAYS[0]), page=3, text="x")])
        of_one = field("parent") == ONE
        with g.meter() as m:
            assert [each.at for each in g.find(Payment, of_one & (field("amount") > 7))] == DAYS[7:]
        assert m.requests == 1
        assert g.find(Payment, field("parent") == Account.ref(TEN)).count() == 9
        assert g.find(Receipt, field("parent") == (*ONE, DAYS[0])).count() == 1
        assert g.find(Receipt, field("parent") == payments()[1]).count() == 0


def test_a_collection_has_them(g: Any) -> None:
    g.put(Settings(parent=ONE, theme="dark"))
    g.put_many([Note(parent="ann", year=2024, number=1), Note(parent="bob", year=2024, number=1)])
    g.connect(Knows, "ann", "bob")
    with g.meter() as m:
        around = g.collection(Person.ref("ann"))
        assert (around.node, around.children) == (Person(id="ann"), [Note(parent="ann", year=2024, number=1)])
        assert ([edge.target for edge in around.edges], around.others) == (["bob"], [])
    assert m.requests == 1
    around = g.collection(Account.ref(ONE))
    assert around.node == Account(bank="ubs", number=1)
    assert sorted(map(repr, around.children)) == sorted(map(repr, [*payments(), g.get(Settings, (ONE,))]))


def test_transactions_and_versions(g: Any) -> None:
    with g.transaction() as t:
        t.put(Payment(parent=TEN, at=DAYS[5], amount=Decimal(50)))
        t.update(Payment, (ONE, DAYS[0]), amount=Decimal(60))
        t.delete(Payment, (ONE, DAYS[1]))
        t.put(Settings(parent=ONE, theme="dark"))
        t.add(Note(parent="ann", year=1, number=1))
    assert g.get(Payment, (TEN, DAYS[5])).amount == 50
    assert g.get(Payment, (ONE, DAYS[0])).amount == 60
    assert g.get(Payment, (ONE, DAYS[1])) is None
    settings = g.get(Settings, ("ubs", 1))
    assert (settings.theme, settings.version) == ("dark", 0)
    assert g.get(Settings, Settings.ref(parent=ONE)) == settings
    g.update(Settings, (ONE,), theme="light")
    with pytest.raises(ConditionFailed):
        g.put(settings)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.update(Payment, (TEN, DAYS[8]), amount=Decimal(1))
    with g.transaction() as t:
        t.delete(Account, TEN)
    assert list(g.children(TEN, Payment)) == []
    assert g.children(ONE, Payment).count() == 8


def test_deleted_with_the_parent(g: Any) -> None:
    g.put(Settings(parent=ONE))
    g.put(Receipt(parent=(*ONE, DAYS[0]), page=1))
    g.put_many([Card(parent=ONE, id="c", code="1"), Card(parent=TEN, id="c", code="2")])
    g.connect(Likes, "ann", (*ONE, DAYS[3]))
    g.connect(Likes, "ann", (*TEN, DAYS[1]))
    g.connect(Uses, (*ONE, "c"), "ann")
    assert [edge.source for edge in g.into("ann", Uses)] == [("ubs", 1, "c")]
    assert [edge.target for edge in g.out("ann", Likes)] == [(*ONE, DAYS[3]), (*TEN, DAYS[1])]
    assert g.delete(Account, ONE)
    for model in (Payment, Settings, Card):
        assert list(g.children(ONE, model)) == []
    assert g.get(Receipt, (*ONE, DAYS[0], 1)) is None
    assert g.get(Card, code="1") is None
    assert [edge.target for edge in g.out("ann", Likes)] == [(*TEN, DAYS[1])]
    assert list(g.into("ann", Uses)) == []
    assert (g.children(TEN, Payment).count(), g.get(Card, code="2").id) == (2, "c")
    assert g.find(Payment, field("kind") == "rent").count() == 2
    g.delete(Account, TEN)
    g.delete(Person, "ann")
    g.delete(Person, "bob")
    assert scanned(g) == []


def test_a_delete_in_steps_hides_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a large delete removes its items, nobody sees a child of the deleted node."""
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 4)
    for keys in ({}, {model: OWN.keys[model] for model in (Account, Payment)}):
        with Graph(":memory:", [Account, Payment, Settings], AdjacencyList(keys=keys)) as g:
            g.put(Account(bank="ubs", number=1))
            g.put_many([*payments(), *payments(TEN)])
            switched: list[Any] = []
            removed = deletion._remove

            def looking(*given: Any, removed: Any = removed, g: Any = g, switched: Any = switched) -> Any:
                switched.append(
                    (
                        list(g.children(ONE, Payment)),
                        g.get(Payment, (ONE, DAYS[0])),
                        g.get_many(Payment, [(ONE, DAYS[0]), (TEN, DAYS[0])]),
                        g.find(Payment, field("kind") == "rent").count(),
                    )
                )
                with pytest.raises(NotFound):
                    g.update(Payment, (ONE, DAYS[8]), amount=Decimal(1))
                return (yield from removed(*given))

            monkeypatch.setattr(deletion, "_remove", looking)
            assert g.delete(Account, ONE)
            monkeypatch.setattr(deletion, "_remove", removed)
            assert switched
            assert all(each == ([], None, [None, payments(TEN)[0]], 9) for each in switched)
            assert list(g.children(ONE, Payment)) == []
            assert g.children(TEN, Payment).count() == 9


def test_what_a_batch_job_reads() -> None:
    class Wallet(Node):
        id: str
        cards: Annotated[int, Count("Holds")] = 0

    class Coin(Child[Wallet], key=("value",)):
        value: int
        seen: Annotated[int, Count("Holds", direction="into")] = 0

    class Holds(Edge[Wallet, Coin]):
        pass

    for layout in (AdjacencyList(), AdjacencyList(keys={Wallet: Keys("w", "{id}")})):
        with Graph(":memory:", [Wallet, Coin, Holds], layout) as g:
            g.put_many([Wallet(id="w"), Wallet(id="w2"), Coin(parent="w", value=5), Coin(parent="w2", value=5)])
            g.connect(Holds, "w", ("w", 5))
            g.connect(Holds, "w2", ("w", 5))
            g.connect(Holds, "w", ("w2", 5))
            g.maintain(once=True)
            assert [each and each.seen for each in g.get_many(Coin, [("w", 5), ("w2", 5)])] == [2, 1]
            wallet = g.get(Wallet, "w")
            assert wallet is not None
            assert wallet.cards == 2
            assert [finding for finding in g.verify().findings if finding.count] == []
            g.delete(Wallet, "w2")
            g.maintain(once=True)
            coin = g.get(Coin, ("w", 5))
            assert coin is not None
            assert coin.seen == 1
            assert g.get(Coin, ("w2", 5)) is None


def test_changes_tenants_and_async() -> None:
    with Graph(":memory:", MODELS) as g:
        acme = g.for_tenant("acme")
        acme.put_many(payments())
        g.put(payments()[0])
        assert acme.children(ONE, Payment).count() == 9
        assert list(g.children(ONE, Payment)) == payments()[:1]
        assert [change.new for change in g.changes()][-1] == payments()[0]
        assert len(g.explain(g.children, ONE, Payment).requests) == 1

    async def used() -> None:
        async with AsyncGraph(":memory:", MODELS) as g:
            await g.put_many(payments())
            assert [each.amount async for each in g.children(ONE, Payment)] == list(range(1, 10))
            assert (await g.collection(Account.ref(ONE))).children == payments()

    asyncio.run(used())


# --- keys --------------------------------------------------------------------------------------


def bound(layout: Layout | None = None, models: list[Any] = MODELS) -> BoundLayout:
    return Graph(":memory:", models, layout)._layout


def keys_of(layout: BoundLayout, entity: Any) -> list[str]:
    return [value["S"] for value in layout.key_of(layout.items(entity)[0]).values()]


def test_the_default_keys() -> None:
    layout = bound()
    at = "2024-01-01T00:00:00.000000Z"
    assert keys_of(layout, payments()[0]) == ["ACCOUNT#ubs#1", f"PAYMENT#{at}"]
    assert keys_of(layout, Receipt(parent=(*ONE, DAYS[0]), page=7)) == [
        "ACCOUNT#ubs#1",
        f"PAYMENT#{at}#RECEIPT#p501.7",
    ]
    assert keys_of(layout, Settings(parent=ONE)) == ["ACCOUNT#ubs#1", "SETTINGS"]
    assert keys_of(layout, Note(parent="a#b", year=2024, number=-1)) == ["PERSON#a%23b", "NOTE#p504.2024#n498.8~"]
    assert keys_of(bound(OWN), payments()[0]) == ["b#ubs", f"a#001#p#{at}"]
    assert keys_of(bound(OWN), Settings(parent=ONE)) == ["b#ubs", "a#001#SETTINGS"]


NAMES = st.text(st.sampled_from("#|%=ab\0é") | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
BOUND = [bound(), bound(OWN), bound(AdjacencyList(keys=OWN.keys, escape=True)), bound(MaterializedGraph())]


@given(st.sampled_from(BOUND), *[st.tuples(NAMES, st.integers(0, 999), NAMES)] * 2)
def test_every_child_has_its_own_keys(layout: BoundLayout, one: Any, other: Any) -> None:
    kind = layout.schema.node(Card)
    try:
        found = [layout.node_key(kind, id) for id in (one, other)]
    except InvalidKey:
        assume(False)
    assert (found[0] == found[1]) == (one == other)
    assert (layout.node_text(kind, one) == layout.node_text(kind, other)) == (one == other)
    assert layout.id_in(kind, layout.node_text(kind, one)) == one
    assert layout.kind_of(found[0]) is kind
    assert layout.read(found[0]) == Card(parent=one[:2], id=one[2])
    parent = layout.schema.node(Account)
    assert layout.belongs_to(parent, layout.node_text(parent, one[:2]), found[0], kind)
    belongs = layout.belongs_to(parent, layout.node_text(parent, other[:2]), found[0], kind)
    assert belongs == (one[:2] == other[:2])


def refused(message: str, *models: Any, layout: Layout | None = None) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", models, layout)


def test_what_cannot_be_declared() -> None:
    class Orphan(Child):  # type: ignore[type-arg]
        id: str

    class Both(Child[Person], key=("parent", "id")):
        id: str

    class Own(Child["Own"]):
        id: str

    refused("Child'?> is not a class derived from Node or Edge", Child)
    refused("Orphan does not name a Node class of this graph as its parent", Orphan)
    refused("names 'parent', which is part of the id anyway", Both)
    refused("Own would be a child of itself", Own)
    refused(
        "is not the key PERSON#{id} of its parent Person, and is not made of its id alone",
        Note,
        layout=AdjacencyList(keys={Note: Keys(partition="n#{parent.id}#{year}")}),
    )
    refused(
        "must begin with the rest of the id of its parent; begin the template with {parent.number}",
        Payment,
        layout=AdjacencyList(keys={Account: OWN.keys[Account], Payment: Keys(sort="p#{at}#{parent.number}")}),
    )
    refused("do not tell 'number'", Note, layout=AdjacencyList(keys={Note: Keys(sort="n#{year}")}))
    refused("no field 'yaer'; did you mean 'year'", Note, layout=AdjacencyList(keys={Note: Keys(sort="n#{yaer}")}))


def test_the_name_of_a_part_of_the_parents_parent_is_told() -> None:
    class Remark(Child[Payment]):
        id: str

    layout = AdjacencyList(keys={Remark: Keys(sort="PAYMENT#{parent.at}#REMARK#{parent.bank}#{id}")})
    with pytest.raises(
        InvalidModel, match=r"Remark has no field 'parent\.bank'; did you mean 'parent\.parent\.bank'\?"
    ):
        Graph(":memory:", [Account, Payment, Remark], layout)


def test_a_parent_that_is_declared_later() -> None:
    with Graph(":memory:", [Leaf, Tree]) as g:
        g.put_many([Tree(id="t"), Leaf(parent=Tree.ref("t"), id="l")])
        assert list(g.children("t", Leaf)) == [Leaf(parent="t", id="l")]


class Leaf(Child["Tree"]):
    id: str


class Tree(Node):
    id: str


def test_ids_that_do_not_fit() -> None:
    kind = bound().schema.node(Payment)
    for wrong in (DAYS[0], (DAYS[0],), ("ubs", DAYS[0]), ("ubs", 1, 2, DAYS[0])):
        with pytest.raises(InvalidKey, match=r"the id of a|does not fit"):
            kind.id(wrong)
    with pytest.raises(InvalidKey, match=r"the id of a Payment is \(parent, at\), got at"):
        Payment.ref(at=DAYS[0])
