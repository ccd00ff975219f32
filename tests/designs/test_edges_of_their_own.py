"""Edges in partitions of their own, which neither end tells, and edges whose target is told by an attribute only.

PK                  SK        GSI1PK   GSI1SK   GSI2PK   GSI2SK   product_id
FRIENDSHIP#1#2      #META     u#1      2        u#2      1
ORDER#7             LINE#1                                        P7
MEMBERSHIP#m1       #META     (member and org in attributes)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    AsyncGraph,
    Count,
    Edge,
    Graph,
    Index,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    NotFound,
    TransactionCanceled,
    field,
)
from adjoin.plans.counted_deletion import delete
from adjoin.plans.deletion import doomed
from adjoin.requests import TransactWrite
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores
from tests.shares import examples


class User(Node):
    id: str
    name: str = ""


class Friendship(Edge[User, User]):
    since: int = 0


class Order(Node):
    id: str


class Product(Node):
    id: str
    price: int = 0


class Line(Edge[Order, Product], key=("number",)):
    number: int
    amount: int = 1


class Org(Node, key=("country", "name")):
    country: str
    name: str


class Membership(Edge[User, Org], key=("card",)):
    card: str
    role: str = "reader"


KEYS: dict[type[Any], Keys] = {
    User: Keys(partition="u#{id}", sort="u"),
    Friendship: Keys(
        partition="FRIENDSHIP#{source.id}#{target.id}",
        sort="#META",
        indexes={"GSI1": ("u#{source.id}", "{target.id}"), "GSI2": ("u#{target.id}", "{source.id}")},
    ),
    Order: Keys(partition="ORDER#{id}", sort="ORDER"),
    Product: Keys(partition="PRODUCT#{id}", sort="PRODUCT"),
    Line: Keys(sort="LINE#{number:03}", attributes={"product_id": "{target.id}"}),
    Org: Keys(partition="ORG#{country}#{name}", sort="ORG"),
    Membership: Keys(
        partition="MEMBERSHIP#{card}",
        sort="#META",
        attributes={"member": "{source.id}", "country": "{target.country}", "org": "{target.name}"},
    ),
}
MODELS = [User, Friendship, Order, Product, Line, Org, Membership]


def layout(**more: Any) -> AdjacencyList:
    indexes = [
        Index("GSI1", "GSI1PK", "GSI1SK"),
        Index("GSI2", "GSI2PK", "GSI2SK"),
        Index("ByProduct", "product_id"),
        Index("ByMember", "member"),
    ]
    return AdjacencyList(table="Own", reverse=None, indexes=indexes, keys=KEYS, **more)


ITEMS = [
    *(item(PK=f"u#{id}", SK="u", name=id) for id in ("1", "2", "3")),
    item(PK="FRIENDSHIP#1#2", SK="#META", GSI1PK="u#1", GSI1SK="2", GSI2PK="u#2", GSI2SK="1", since=5),
    item(PK="FRIENDSHIP#1#3", SK="#META", GSI1PK="u#1", GSI1SK="3", GSI2PK="u#3", GSI2SK="1", since=6),
    item(PK="ORDER#7", SK="ORDER"),
    item(PK="ORDER#7", SK="LINE#001", product_id="P7", amount=2),
    item(PK="ORDER#7", SK="LINE#002", product_id="P8", amount=1),
    item(PK="PRODUCT#P7", SK="PRODUCT", price=3),
    item(PK="PRODUCT#P8", SK="PRODUCT", price=4),
    item(PK="ORG#fi#acme", SK="ORG"),
    item(PK="MEMBERSHIP#m1", SK="#META", member="1", country="fi", org="acme", role="owner"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, layout(), ITEMS) as graph:
        yield graph


# --- neither end tells the partition -----------------------------------------------------------


def test_edges_are_found_from_both_ends_by_indexes(g: Graph) -> None:
    found = [Friendship(source="1", target=id, since=at) for id, at in (("2", 5), ("3", 6))]
    assert asked(g, g.out("1", Friendship)) == (found, 1)
    assert asked(g, g.into("2", Friendship)) == (found[:1], 1)
    assert asked(g, g.edge, Friendship, "1", "3") == (found[1], 1)
    assert g.out("1", Friendship).page(limit=1).items == found[:1]
    assert [node.name for _, node in g.out("1", Friendship).nodes()] == ["2", "3"]
    assert asked(g, g.find(Friendship, (field("source") == "1") & (field("target") == "2"))) == (found[:1], 1)
    assert [*g.scan().others] == []
    with pytest.raises(InvalidValue, match="no consistent reads"):
        g.out("1", Friendship, consistent=True)


def test_writes(g: Graph) -> None:
    g.connect(Friendship, "3", "2", since=7)
    written = item(PK="FRIENDSHIP#3#2", SK="#META", GSI1PK="u#3", GSI1SK="2", GSI2PK="u#2", GSI2SK="3", since=7)
    assert stored(g, "FRIENDSHIP#3#2", "#META") == written
    assert g.update(Friendship, "3", "2", since=8).since == 8
    with pytest.raises(AlreadyExists):
        g.connect(Friendship, "3", "2")
    assert g.disconnect(Friendship, "3", "2")
    assert not g.disconnect(Friendship, "3", "2")
    for entity in g.scan():
        assert g._layout.items(entity)[0] in [dict(one) for one in ITEMS]


def test_a_node_is_deleted_with_edges_that_indexes_hold(g: Graph) -> None:
    assert g.delete(User, "3")
    assert stored(g, "FRIENDSHIP#1#3", "#META") is None
    with g.transaction() as t:
        t.delete(User, "1")
    assert stored(g, "FRIENDSHIP#1#2", "#META") is None
    assert stored(g, "MEMBERSHIP#m1", "#META") is None


def test_nothing_tells_where_edges_are() -> None:
    keys: dict[type[Any], Keys] = {
        User: KEYS[User],
        Friendship: Keys(partition="F#{source.id}#{target.id}", sort="#META"),
    }
    with Graph(":memory:", [User, Friendship], AdjacencyList(reverse=None, keys=keys)) as g:
        g.put_many([User(id="1"), User(id="2")])
        g.connect(Friendship, "1", "2", since=1)
        assert g.edge(Friendship, "1", "2") == Friendship(source="1", target="2", since=1)
        assert [*g.find(Friendship, (field("source") == "1") & (field("target") == "2"))] != []
        with pytest.raises(InvalidModel, match=r"give an index a partition key made of \{source.id\}"):
            g.out("1", Friendship)
        with pytest.raises(InvalidModel, match="cannot be found from their target"):
            g.into("1", Friendship)
        with pytest.raises(InvalidModel, match="cannot be found"):
            g.delete(User, "1")
        explained = g.explain(g.delete, User, "1", edges="found")
        assert explained.partitions == ("u#1",)
        assert g.delete(User, "1", edges="found")
        assert g.get(User, "1") is None
        assert g.edge(Friendship, "1", "2") is not None
        with g.transaction() as t:
            t.delete(User, "2", edges="found")
        assert g.get(User, "2") is None
        with pytest.raises(InvalidValue, match='edges must be "all" or "found"'):
            g.delete(User, "2", edges="none")


def test_a_sparse_index_tells_where_some_edges_are() -> None:
    class Ships(Edge[Order, Product]):
        shipped: str | None = None

    keys = {Ships: Keys(indexes={"GSI1": ("{target}", "{shipped}")})}
    layout = AdjacencyList(reverse=None, indexes=[Index("GSI1", "P", "S")], keys=keys)
    with Graph(":memory:", [Order, Product, Ships], layout) as g:
        g.put_many([Product(id="P"), Ships(source="1", target="P"), Ships(source="2", target="P", shipped="today")])
        with pytest.raises(InvalidModel, match='or delete with edges="found", which leaves them'):
            g.delete(Product, "P")
        assert g.delete(Product, "P", edges="found")
        assert [each.source for each in g.scan(Ships)] == ["1"]


def test_awaited() -> None:
    async def run() -> None:
        keys: dict[type[Any], Keys] = {Friendship: Keys(partition="F#{source.id}#{target.id}", sort="#META")}
        async with AsyncGraph(":memory:", [User, Friendship], AdjacencyList(reverse=None, keys=keys)) as g:
            await g.put(User(id="1"))
            with pytest.raises(InvalidModel, match="cannot be found"):
                await g.delete(User, "1")
            assert await g.delete(User, "1", edges="found")

    asyncio.run(run())


# --- ends that an attribute tells --------------------------------------------------------------


def test_lines_are_found_by_number_and_by_product(g: Graph) -> None:
    lines = [Line(source="7", target="P7", number=1, amount=2), Line(source="7", target="P8", number=2)]
    assert asked(g, g.out("7", Line)) == (lines, 1)
    assert asked(g, g.into("P8", Line)) == (lines[1:], 1)
    assert g.edge(Line, "7", "P7", number=1) == lines[0]
    assert g.edge(Line, "7", "P8", number=1) is None
    assert [each.price for _, each in g.out("7", Line).nodes()] == [3, 4]
    assert g.out("7", Line).within(number=2).first() == lines[1]
    assert [*g.collection(Order.ref("7")).edges] == lines
    assert g.count(Line) == 2


def test_the_key_is_the_number(g: Graph) -> None:
    with pytest.raises(AlreadyExists):
        g.connect(Line, "7", "P8", number=1)
    with pytest.raises(NotFound, match="the edge with this key has other ends"):
        g.update(Line, "7", "P8", number=1, amount=9)
    assert g.update(Line, "7", "P7", number=1, amount=9).amount == 9
    assert not g.disconnect(Line, "7", "P8", number=1)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.disconnect(Line, "7", "P8", number=1)
    with pytest.raises(TransactionCanceled), g.transaction() as t:
        t.update(Line, "7", "P8", number=1, amount=1)
    g.put(Line(source="7", target="P8", number=1))
    assert [each.target for each in g.out("7", Line)] == ["P8", "P8"]
    assert [*g.into("P7", Line)] == []
    assert g.disconnect(Line, "7", "P8", number=1)
    assert stored(g, "ORDER#7", "LINE#001") is None
    assert g.delete(Line(source="7", target="P8", number=2))
    assert not g.disconnect(Line, "7", "P8", number=2)


def with_a_put_after_the_look(g: Graph, inner: Any, edge: Line) -> Any:
    """The plan, with a put after its first requests."""
    responses = yield next(inner)
    g.put(edge)
    requests = inner.send(responses)
    while True:
        try:
            responses = yield requests
        except TransactionCanceled as error:
            requests = inner.throw(error)
        else:
            try:
                requests = inner.send(responses)
            except StopIteration as done:
                return done.value


def test_a_line_that_gets_another_product_during_a_delete_stays(g: Graph) -> None:
    g.put_many([Product(id="P9"), Line(source="7", target="P9", number=5)])
    changed = Line(source="7", target="P8", number=5)
    assert g._run(with_a_put_after_the_look(g, delete(g._layout, g._schema.node(Product), "P9"), changed))
    assert g.get(Product, "P9") is None
    assert g.edge(Line, "7", "P8", number=5) == changed
    g.put_many([Product(id="P9"), Line(source="7", target="P9", number=5)])
    deletes = g._run(doomed(g._layout, g._schema.node(Product), "P9"))
    g.put(changed)
    with pytest.raises(TransactionCanceled):
        g._store.execute([TransactWrite(tuple(deletes))])
    assert g.edge(Line, "7", "P8", number=5) == changed


def test_a_product_is_deleted_with_its_lines(g: Graph) -> None:
    assert g.delete(Product, "P7")
    assert [each.target for each in g.out("7", Line)] == ["P8"]
    assert g.delete(Order, "7")
    assert [*g.into("P8", Line)] == []


def test_both_ends_are_told_by_attributes(g: Graph) -> None:
    found = Membership(source="1", target=("fi", "acme"), card="m1", role="owner")
    assert g.edge(Membership, "1", ("fi", "acme"), card="m1") == found
    assert g.edge(Membership, "2", ("fi", "acme"), card="m1") is None
    assert g.edge(Membership, "1", ("fi", "other"), card="m1") is None
    assert asked(g, g.out("1", Membership)) == ([found], 1)
    assert [*g.scan(Membership)] == [found]
    assert g._layout.items(found)[0] in [dict(one) for one in ITEMS]
    with pytest.raises(InvalidModel, match=r"made of \{target.country\} and \{target.name\}"):
        g.into(("fi", "acme"), Membership)
    with pytest.raises(InvalidModel, match="cannot be found"):
        g.delete(Org, ("fi", "acme"))
    assert g.delete(Org, ("fi", "acme"), edges="found")
    assert g.delete(User, "1")
    assert stored(g, "MEMBERSHIP#m1", "#META") is None
    assert stored(g, "FRIENDSHIP#1#2", "#META") is None


def test_audit(g: Graph) -> None:
    if g._store.creates_tables:
        assert g.verify()
        g.put(Line(source="7", target="P9", number=3))
        g.put(Membership(source="nobody", target=("fi", "acme"), card="m2"))
        findings = g.verify().findings
        assert [(each.kind, each.name, each.examples) for each in findings] == [
            ("dangling", "LINE", [{"source": "7", "target": "P9", "missing": "target"}]),
            ("dangling", "MEMBERSHIP", [{"source": "nobody", "target": ("fi", "acme"), "missing": "source"}]),
        ]
        assert g.verify(repair=["dangling"]).left == 0
        assert g.count(Line) == 2


@pytest.mark.parametrize("escape", [False, True])
def test_audit_of_ids_that_are_escaped_in_keys_only(escape: bool) -> None:
    with Graph(":memory:", MODELS, layout(escape=escape)) as g:
        ids = ["P 7%", "ä"] + (["P#7", "\0"] if escape else [])
        g.put(Order(id="7"))
        g.put_many(Product(id=id) for id in ids)
        g.put_many(Line(source="7", target=id, number=at) for at, id in enumerate(ids))
        assert [each.target for each in g.out("7", Line)] == ids
        assert g.verify()


def test_a_number_as_the_target() -> None:
    class Part(Node):
        id: int

    class Uses(Edge[Order, Part], key=("slot",)):
        slot: int

    keys = {Uses: Keys(sort="USES#{slot}", attributes={"part": "{target.id}"})}
    indexes = [Index("ByPart", "part", types={"part": "N"})]
    for declared in ([], indexes):
        with Graph(":memory:", [Order, Part, Uses], AdjacencyList(reverse=None, keys=keys, indexes=declared)) as g:
            g.put_many([Order(id="1"), Part(id=7), Uses(source="1", target=7, slot=1)])
            assert stored(g, "ORDER#1", "USES#1") == item(PK="ORDER#1", SK="USES#1", part=7)
            assert [each.target for each in g.out("1", Uses)] == [7]
            assert g.edge(Uses, "1", 7, slot=1) is not None
            assert g.edge(Uses, "1", 8, slot=1) is None
            assert g.verify()
            if declared:
                assert [each.source for each in g.into(7, Uses)] == ["1"]
                assert g.delete(Part, 7)
                assert [*g.out("1", Uses)] == []


# --- what is refused ---------------------------------------------------------------------------


class Counted(Node, label="ORDER"):
    id: str
    lines: Annotated[int, Count("Bought")] = 0


class Bought(Edge[Counted, Product], key=("number",)):
    number: int


class Plain(Edge[Order, Product]): ...


class Knows(Edge[User, User], symmetric=True): ...


class Dated(Edge[User, User], order="day"):
    day: str


class Invoice(Node):
    id: str
    customer: str


REFUSED: list[tuple[list[Any], dict[type[Any], Keys], str]] = [
    (
        [Counted, Product, Bought],
        {Bought: Keys(sort="LINE#{number}", attributes={"product_id": "{target.id}"})},
        "its target is not part of its key, so a put can change it",
    ),
    (
        [Counted, Product, Bought],
        {Bought: Keys(partition="B#{source.id}#{target.id}", sort="#META{number}")},
        "something is counted or copied at the source of Bought",
    ),
    (
        [Order, Product, Line],
        {Line: Keys(sort="LINE#{number}")},
        "does not contain its target, and no attribute tells it",
    ),
    (
        [Order, Product, Plain],
        {Plain: Keys(sort="LINE", attributes={"product_id": "{target.id}"})},
        "so edges to different nodes would overwrite each other",
    ),
    (
        [User, Knows],
        {Knows: Keys(partition="K#{source.id}#{target.id}", sort="#META")},
        "is symmetric, so it is stored at both its ends",
    ),
    (
        [User, Dated],
        {Dated: Keys(partition="D#{source.id}#{target.id}", sort="{day}")},
        "does not keep the edges of a source together, so its sort key gives no order",
    ),
    (
        [Invoice],
        {Invoice: Keys(partition="o#{id}", sort="c#{customer}")},
        r"make the field part of the id: key=\('id', 'customer'\)",
    ),
]


@pytest.mark.parametrize(("models", "keys", "message"), REFUSED)
def test_what_could_not_be_right_is_refused(models: list[Any], keys: dict[type[Any], Keys], message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", models, AdjacencyList(reverse=None, keys=keys))


# --- every edge has a key of its own, and is read back from it ---------------------------------


class Rel(Edge[User, Org], key=("no",)):
    no: int
    tag: str


TEMPLATES = [
    Keys(partition="R#{source.id}#{target.country}#{target.name}", sort="{no}#{tag}"),
    Keys(
        partition="R#{no}", sort="{target.name}#{source.id}", attributes={"c": "{target.country}", "n": "{target.name}"}
    ),
    Keys(partition="u#{source.id}#r", sort="{no:04}", attributes={"c": "{target.country}", "n": "{target.name}"}),
    Keys(
        partition="{tag}", sort="R#{no}", attributes={"s": "{source.id}", "c": "{target.country}", "n": "{target.name}"}
    ),
    Keys(partition="R#{target.country}#{target.name}", sort="{source.id}#{no}"),
]
TEXT = st.text(st.sampled_from("ab#%= ä"), min_size=1, max_size=3)


@settings(max_examples=examples(20), deadline=None)
@given(st.sampled_from(TEMPLATES), st.lists(st.tuples(TEXT, TEXT, TEXT, st.integers(0, 20), TEXT), max_size=8))
def test_keys_are_distinct_and_parse_back(keys: Keys, edges: list[tuple[str, str, str, int, str]]) -> None:
    layout = AdjacencyList(reverse=None, escape=True, keys={User: KEYS[User], Rel: keys})
    models: list[Any] = [User, Org, Rel]
    with Graph(":memory:", models, layout) as g:
        wanted: dict[Any, Rel] = {}
        for source, country, name, no, tag in edges:
            edge = Rel(source=source, target=(country, name), no=no, tag=tag)
            ((own,),) = (g._layout.items(edge),)
            assert g._layout.read(own) == edge
            assert not g._layout.is_bookkeeping(own)
            wanted[own["PK"]["S"], own["SK"]["S"]] = edge
            g.put(edge)
        assert sorted(map(repr, g.scan(Rel))) == sorted(map(repr, wanted.values()))
        for edge in wanted.values():
            fields = {each: getattr(edge, each) for each in g._layout.key_fields(g._schema.edge(Rel))}
            assert g.edge(Rel, edge.source, edge.target, **fields) == edge


# --- ends of several classes, and tenants ------------------------------------------------------


class Cart(Node):
    id: str


class Entry(Edge[Cart, Product | Org], key=("number",)):
    number: int


@pytest.mark.parametrize("indexes", [[], [Index("ByTo", "to")]])
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_the_target_in_an_attribute_may_be_of_several_classes(tenant: str | None, indexes: list[Index]) -> None:
    keys = {Entry: Keys(sort="E#{number}", attributes={"to": "{target}"})}
    layout = AdjacencyList(reverse=None, indexes=indexes, keys=keys)
    with Graph(":memory:", [Cart, Product, Org, Entry], layout, tenant=tenant) as g:
        g.put_many([Cart(id="c"), Product(id="1"), Org(country="fi", name="acme")])
        g.connect(Entry, "c", Product.ref("1"), number=1)
        g.connect(Entry, "c", Org.ref(("fi", "acme")), number=2)
        assert [each.target for each in g.out("c", Entry)] == [Product.ref("1"), Org.ref(("fi", "acme"))]
        if indexes:
            assert [each.number for each in g.into(Org.ref(("fi", "acme")), Entry)] == [2]
        assert g.edge(Entry, "c", Product.ref("1"), number=2) is None
        assert not g.disconnect(Entry, "c", Product.ref("1"), number=2)
        assert g.verify()
        assert g.delete(Org, ("fi", "acme"), edges="found")
        assert [each.number for each in g.out("c", Entry)] == ([1] if indexes else [1, 2])
        g.put(Entry(source="c", target=Product.ref("gone"), number=1))
        assert [(each.name, each.count) for each in g.verify().findings] == [("ENTRY", 1 if indexes else 2)]
