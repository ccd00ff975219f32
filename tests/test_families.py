"""Families: subclasses that have the keys of their base class, told apart by a field or by the type attribute."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Child,
    ConditionFailed,
    Copy,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidItem,
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
from adjoin.layouts.interface import Layout
from adjoin.requests import Get, Put, Request
from adjoin.schema import Schema
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import Projection
from tests.servers.open import Stores


class User(Node):
    id: str


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: str
    plate: Annotated[str | None, Unique()] = None
    name: Annotated[str | None, Indexed()] = None
    year: Annotated[int | None, Indexed()] = None
    owners: Annotated[int, Count("Owns")] = 0


class Car(Vehicle):
    kind: Literal["car"] = "car"
    doors: int


class Truck(Vehicle):
    kind: Literal["truck", "lorry"] = "truck"
    load: int


class Owns(Edge[User, Vehicle]):
    what: Annotated[str | None, Copy("target.name")] = None


class Event(Child[User], key=("number",), discriminator="what"):
    number: int
    what: str


class Login(Event):
    what: Literal["login"] = "login"
    host: str = ""


class Logout(Event):
    what: Literal["logout"] = "logout"


MODELS: list[Any] = [User, Car, Truck, Vehicle, Owns, Login, Logout]
LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "labelled": AdjacencyList(type_attribute="Type"),
    "own": AdjacencyList(
        keys={Vehicle: Keys(partition="v#{id}", sort="v")}, indexes=[Index("ByDoors", "doors", "year")]
    ),
}
CAR = Car(id="1", doors=3, plate="A", name="one", year=1)
TRUCK = Truck(id="2", kind="lorry", load=9, plate="B", name="two", year=1)
ANN = User(id="ann")


@pytest.fixture(params=[*(("embedded", layout) for layout in LAYOUTS), ("ministack", "adjacency list")])
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    where, layout = request.param
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open(where)
    graph = Graph(store, MODELS, LAYOUTS[layout])
    graph.create_table()
    graph.put_many([CAR, TRUCK, ANN])
    yield graph
    graph.drop_table()
    graph.close()


def raw(g: Graph, *requests: Request) -> Any:
    def plan() -> Any:
        return (yield requests)

    return g._run(plan())


def test_one_node(g: Graph) -> None:
    assert g.get(Vehicle, "1") == g.get(Car, "1") == CAR
    assert g.get(Vehicle, Car.ref("1")) == g.get(Vehicle, CAR) == CAR
    assert g.get(Vehicle, "2") == g.get(Truck, "2") == TRUCK
    assert g.get(Truck, "1") is None
    assert g.get_many(Car, ["1", "2", "3"]) == [CAR, None, None]
    assert g.get_many(Vehicle, ["1", "2", "3"]) == [CAR, TRUCK, None]
    assert g.get(Vehicle, plate="A") == g.get(Car, plate="A") == CAR
    assert g.get(Truck, plate="A") is None
    with pytest.raises(InvalidKey, match="a Truck is needed, got Car '1'"):
        g.get(Truck, CAR)


def test_found_scanned_and_collected(g: Graph) -> None:
    assert list(g.find(Car, field("year") == 1)) == [CAR]
    assert list(g.find(Vehicle, field("year") == 1)) == [CAR, TRUCK]
    assert [g.find(model, field("year") == 1).count() for model in (Car, Truck, Vehicle)] == [1, 1, 2]
    assert g.find(Truck, field("name") >= "a").page(limit=1).items == [TRUCK]
    assert list(g.find(Truck, (field("name") == "two") & (field("load") > 5))) == [TRUCK]
    assert list(g.scan(Car)) == [CAR]
    assert [g.scan(model).count() for model in (Car, Truck, Vehicle)] == [1, 1, 2]
    assert g.count(Truck) == 1
    assert sorted(type(each).__name__ for each in g.scan()) == ["Car", "Truck", "User"]
    for asked in (CAR, Car.ref("1"), Vehicle.ref("1")):
        assert g.collection(asked).node == CAR


def test_edges_lead_to_the_head(g: Graph) -> None:
    edge = g.connect(Owns, ANN, CAR)
    assert (edge.target, edge.what) == ("1", "one")
    g.connect(Owns, "ann", Truck.ref("2"))
    assert [node for _, node in g.out(ANN, Owns).nodes()] == [CAR, TRUCK]
    assert [edge.target for edge in g.into(CAR, Owns)] == [edge.target for edge in g.into("1", Owns)] == ["1"]
    g.maintain(once=True)
    assert [(g.get(Vehicle, id) or CAR).owners for id in "12"] == [1, 1]
    # A put keeps the count, also if the node becomes one of another class; nothing of the other class stays.
    g.put(Truck(id="1", load=4, name="big"))
    found = g.get(Vehicle, "1")
    assert found == Truck(id="1", load=4, name="big", owners=1)
    layout = g._layout
    (stored,) = raw(g, Get(layout.table, layout.node_key(layout.schema.node(Car), "1")))
    assert not {"doors", "plate", "year"} & {*stored.item}
    assert g.get(Vehicle, plate="A") is None
    assert list(g.find(Vehicle, field("year") == 1)) == [g.get(Truck, "2")]
    g.maintain(once=True)
    assert [edge.what for edge in g.into("1", Owns)] == ["big"]
    assert g.delete(Truck, "1")
    assert g.out(ANN, Owns).count() == 1


def test_update_and_delete_of_another_class(g: Graph) -> None:
    assert g.update(Car, "1", doors=5, year=2) == g.get(Vehicle, "1")
    assert g.update(Vehicle, "1", name="new") == Car(id="1", doors=5, plate="A", name="new", year=2)
    assert list(g.find(Car, field("name") == "new")) == [g.get(Car, "1")]
    with pytest.raises(
        NotFound, match="there is no Truck '1': its key holds a node of another class of the family of Vehicle"
    ):
        g.update(Truck, "1", load=3)
    with pytest.raises(InvalidValue, match=r"'kind' says of which class Vehicle '1' is, and cannot change"):
        g.update(Vehicle, "1", kind="truck")
    assert not g.delete(Truck, "1")
    assert not g.delete(Truck.ref("1"))
    with pytest.raises(TransactionCanceled, match="another class"), g.transaction() as t:
        t.delete(Truck, "1")
    assert g.get(Car, "1") is not None
    with pytest.raises(AlreadyExists):
        g.add(Truck(id="1", load=1))
    with pytest.raises(AlreadyExists, match="'A' belongs to"):
        g.put(Truck(id="3", load=1, plate="A"))
    assert g.delete(Vehicle, "1")
    assert g.get(Vehicle, "1") is None


def test_children_of_a_family(g: Graph) -> None:
    events = [
        Login(parent="ann", number=1, host="h"),
        Logout(parent="ann", number=2),
        Event(parent="ann", number=3, what="?"),
    ]
    g.put_many(events)
    assert list(g.children(ANN, Event)) == events
    assert list(g.children(ANN, Login)) == events[:1]
    assert [g.children(ANN, model).count() for model in (Event, Login, Logout)] == [3, 1, 1]
    assert g.children(ANN, Logout).page(limit=1).items == [events[1]]
    assert g.collection(ANN).children == events
    assert g.delete(ANN)
    assert g.count(Event) == 0


def test_verify() -> None:
    with Graph(SQLiteStore(":memory:"), [User, Car, Truck, Vehicle, Owns]) as g:
        g.put_many([CAR, TRUCK, ANN, Vehicle(id="3", kind="bike")])
        g.connect(Owns, ANN, CAR)
        g.maintain(once=True)
        audit = g.verify(threads=1)
        assert (audit.findings, audit.counts["VEHICLE"]) == ((), 3)


# --- by the type attribute ---------------------------------------------------------------------


class Shape(Node, discriminator="Type", label="Shape"):
    id: str
    area: int = 0


class Circle(Shape, label="Circle"):
    radius: int = 0


class Square(Shape, label="Square"):
    side: int = 0


def test_the_type_attribute_tells() -> None:
    layout = AdjacencyList(type_attribute="Type", keys={Shape: Keys(partition="SHAPE#{id}", sort="#META")})
    with Graph(SQLiteStore(":memory:"), [Shape, Circle, Square], layout) as g:
        shapes = [Circle(id="1", radius=1), Square(id="2", side=2), Shape(id="3")]
        g.put_many(shapes)
        assert [g.get(Shape, id) for id in "123"] == shapes
        assert [g.get(Circle, id) for id in "123"] == [shapes[0], None, None]
        assert g.count(Square) == 1
        assert g.count(Shape) == 3
        bound = g._layout
        item = bound.items(Circle(id="4"))[0]
        assert item["Type"] == {"S": "Circle"}
        assert item["PK"] == {"S": "SHAPE#4"}
        # An item of a class that the graph was not given is none of its nodes.
        raw(g, Put(bound.table, item | {"Type": {"S": "Star"}}))
        assert g.count(Shape) == 3
        assert len(list(g.scan().others)) == 1
        with pytest.raises(InvalidItem, match="holds an item of another type"):
            g.get(Shape, "4")
    with pytest.raises(InvalidModel, match=r"neither one of its fields nor the type attribute .* which is none"):
        AdjacencyList().bind(Schema([Shape, Circle]))


# --- what a graph knows ------------------------------------------------------------------------


def test_a_class_that_joins_later() -> None:
    class Bike(Vehicle):
        kind: Literal["bike"] = "bike"
        gears: int = 1

    store = SQLiteStore(":memory:")
    g, later = Graph(store, [*MODELS]), Graph(store, [*MODELS, Bike])
    g.put(Vehicle(id="3", kind="bike"))
    assert g.get(Vehicle, "3") == Vehicle(id="3", kind="bike")
    assert later.get(Vehicle, "3") == Bike(id="3") == later.get(Bike, "3")
    later.put(Bike(id="4", gears=21))
    assert g.get(Vehicle, "4") == Vehicle(id="4", kind="bike")
    with pytest.raises(InvalidValue, match="a Vehicle with kind='bike' is a Bike; make it a Bike"):
        later.put(Vehicle(id="5", kind="bike"))


def test_a_head_that_lists_its_values() -> None:
    class Pet(Node, discriminator="kind"):
        id: str
        kind: Literal["cat", "dog"]

    class Cat(Pet):
        kind: Literal["cat"] = "cat"

    class Dog(Pet):
        kind: Literal["dog"] = "dog"

    with Graph(SQLiteStore(":memory:"), [Cat, Dog]) as g:
        g.put_many([Cat(id="1"), Dog(id="2")])
        assert [g.get(Pet, id) for id in "12"] == [Cat(id="1"), Dog(id="2")]
        layout = g._layout
        raw(g, Put(layout.table, layout.items(Cat(id="3"))[0] | {"kind": {"S": "cow"}}))
        with pytest.raises(InvalidItem, match="is not a valid Pet"):
            g.get(Pet, "3")
        assert g.get(Cat, "3") is None


def test_versions_of_a_family() -> None:
    class Doc(Node, discriminator="form"):
        id: str
        form: Literal["text", "sheet"]
        edition: Annotated[int, Version()] = 0

    class Text(Doc):
        form: Literal["text"] = "text"

    class Sheet(Doc):
        form: Literal["sheet"] = "sheet"

    with Graph(SQLiteStore(":memory:"), [Text, Sheet]) as g:
        g.put(Text(id="1"))
        read = g.get(Doc, "1")
        assert isinstance(read, Text)
        g.put(read)
        with pytest.raises(ConditionFailed):
            g.put(Sheet(id="1"))
        with pytest.raises(ConditionFailed):
            g.delete(Text(id="1"), if_version=7)
        assert g.delete(Text, "1")


def test_numbers_tell_too() -> None:
    class Thing(Node, discriminator="form"):
        id: str
        form: int | str

    class Ball(Thing):
        form: Literal["3"] = "3"

    class Third(Thing):
        form: Literal[3] = 3

    with Graph(SQLiteStore(":memory:"), [Thing, Ball, Third]) as g:
        g.put_many([Ball(id="1"), Third(id="2"), Thing(id="3", form=4)])
        assert [type(g.get(Thing, id)) for id in "123"] == [Ball, Third, Thing]
        assert g.count(Third) == 1


def test_what_is_refused() -> None:
    def refused(why: str, *models: Any, layout: AdjacencyList | None = None) -> None:
        with pytest.raises(InvalidModel, match=why):
            (layout or AdjacencyList()).bind(Schema(models))

    class Base(Node, discriminator="kind"):
        id: str
        kind: str
        name: str | None = None

    class One(Base):
        kind: Literal["one"] = "one"

    class Same(Base):
        kind: Literal["two", "one"] = "two"

    class Untold(Base):
        pass

    class Form(Enum):
        ROUND = "round"

    class Member(Base):
        kind: Literal[Form.ROUND] = Form.ROUND  # type: ignore[assignment]

    class Wider(Base, key=("id", "size")):
        kind: Literal["wider"] = "wider"
        size: int

    class Marked(Base):
        kind: Literal["marked"] = "marked"
        code: Annotated[str | None, Unique()] = None

    class Counted(Base):
        kind: Literal["counted"] = "counted"
        likes: Annotated[int, Count("Likes")] = 0

    class Likes(Edge[Base, Base]):
        pass

    class ToOne(Edge[Base, One]):
        pass

    class Part(Child[One]):
        id: str

    refused("One and Same both have kind == 'one'", One, Same)
    refused(r"Untold.kind tells Untold apart .* Literal\[\"untold\"\]", Untold)
    refused(r"Member.kind tells Member apart .* Literal\[\"member\"\]", Member)
    refused("Wider has another id than Base", Wider)
    refused(r"Marked and Base have Unique\(\) on different fields", Marked)
    refused("Counted.likes is an aggregate that Base does not have", Counted, Likes)
    refused("the target of ToOne is One, which has the keys of Base", One, ToOne)
    refused("the parent of Part is One, which has the keys of Base", One, Part)
    own = AdjacencyList(keys={One: Keys(partition="one#{id}")})
    refused(r"One has the keys of Base, BASE#\{id\} and #META, but the layout gives it one#\{id\}", One, layout=own)
    by_id: Any = type("ById", (Node,), {"__annotations__": {"id": str}, "__module__": __name__}, discriminator="id")
    refused("discriminator= of ById must be the name of a field besides its id", by_id)


# --- keys --------------------------------------------------------------------------------------


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
vehicles = st.one_of(
    st.builds(Car, id=texts, doors=st.integers(0, 9)),
    st.builds(Truck, id=texts, kind=st.sampled_from(["truck", "lorry"]), load=st.integers(0, 9)),
    st.builds(Vehicle, id=texts, kind=texts.filter(lambda text: text not in ("car", "truck", "lorry"))),
)


@cache
def bound_as(name: str) -> Any:
    return LAYOUTS[name].bind(Schema(MODELS))


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "own"])
@given(one=vehicles, other=vehicles)
def test_equal_ids_have_equal_keys_and_are_read_as_their_class(name: str, one: Vehicle, other: Vehicle) -> None:
    bound = bound_as(name)
    items = [bound.items(each)[0] for each in (one, other)]
    assert (bound.key_of(items[0]) == bound.key_of(items[1])) is (one.id == other.id)
    for node, item in zip((one, other), items, strict=True):
        assert bound.kind_of(item).model is Vehicle
        assert bound.read(item) == node
        for model in (Car, Truck):
            found = bound.decode(bound.schema.node(model), item)
            assert found == (node if type(node) is model else None)


class Tool(Node, discriminator="kind"):
    id: str
    kind: str
    shop: str = "s"


class Saw(Tool):
    kind: Literal["saw"] = "saw"
    teeth: int = 4


class Drill(Tool):
    kind: Literal["drill"] = "drill"
    watts: int


class Kit(Tool, extra="allow"):
    kind: Literal["kit"] = "kit"


class Sign(Node, discriminator="Type", label="Sign"):
    id: str
    shop: str = "s"


class Arrow(Sign, label="Arrow"):
    angle: int = 0


@pytest.mark.parametrize(
    "projection",
    [Projection(), Projection("KEYS_ONLY"), Projection("INCLUDE", ("kind",)), Projection("INCLUDE", ("Type",))],
)
def test_no_projection_leaves_out_fields_of_other_classes(projection: Projection) -> None:
    indexes = [Index("ByShop", "shop", "PK", projection=projection)]
    made = AdjacencyList(reverse=None, indexes=indexes, keys={Tool: Keys(partition="T#{id}", sort="T")})
    with Graph(":memory:", [Tool, Saw, Drill], made) as g:
        tools = [Saw(id="1", teeth=2), Drill(id="2", watts=9), Tool(id="3", kind="axe")]
        g.put_many(tools)
        in_shop = field("shop") == "s"
        assert list(g.find(Tool, in_shop)) == tools
        assert list(g.find(Saw, in_shop & (field("teeth") == 2))) == tools[:1]
        assert g.find(Drill, in_shop).count() == 1
        assert list(g.index("ByShop").partition("s")) == tools
    with Graph(":memory:", [Tool, Kit], made) as g:
        g.put(Kit.model_validate({"id": "1", "parts": 7}))
        (kit,) = g.find(Tool, in_shop)
        assert kit.model_extra == {"parts": 7}
    keys: dict[type[Any], Keys] = {Sign: Keys(partition="T#{id}", sort="T")}
    typed = AdjacencyList(reverse=None, type_attribute="Type", indexes=indexes, keys=keys)
    with Graph(":memory:", [Sign, Arrow], typed) as g:
        signs = [Arrow(id="1", angle=5), Sign(id="2")]
        g.put_many(signs)
        assert list(g.find(Sign, in_shop)) == signs
        assert list(g.find(Arrow, in_shop)) == signs[:1]


class Asset(Node, discriminator="form"):
    id: str
    form: str
    price: int
    rank: int = 0


class Book(Asset):
    form: Literal["book"] = "book"


class Film(Asset):
    form: Literal["film", "clip"] = "film"


class Scan(Node, discriminator="depth"):
    id: str
    depth: int
    price: int


class Deep(Scan):
    depth: Literal[1, 5]


def test_a_find_of_a_subclass_reads_the_partitions_of_its_values() -> None:
    layout = AdjacencyList(indexes=[Index("ByForm", "form", "price"), Index("ByDepth", "depth", "price")])
    with Graph(":memory:", [Asset, Book, Film, Scan, Deep], layout) as g:
        g.put_many(Book(id=f"b{price}", price=price) for price in (3, 1, 2))
        g.put_many([Film(id="f", price=9), Film(id="c", price=4, form="clip"), Asset(id="a", form="song", price=0)])
        g.put_many([Deep(id="1", depth=1, price=3), Deep(id="5", depth=5, price=1), Scan(id="3", depth=3, price=2)])
        questions: list[tuple[Any, list[str], int]] = [
            (g.find(Book, order="price"), ["b1", "b2", "b3"], 1),
            (g.find(Book, field("price") > 1), ["b2", "b3"], 1),
            (g.find(Film, order="price"), ["c", "f"], 2),
            (g.find(Film, (field("form") == "clip") & (field("price") > 1)), ["c"], 1),
            (g.find(Deep, order="price"), ["5", "1"], 2),
        ]
        for query, ids, requests in questions:
            with g.meter() as m:
                assert [each.id for each in query] == ids
            assert m.requests == requests
            assert query.count() == len(ids)
        with pytest.raises(InvalidKey, match="'ByForm' needs form == …, then price"):
            g.find(Asset, order="price")
