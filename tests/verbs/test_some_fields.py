"""Reads of some fields only, and several reads as of one instant."""

from __future__ import annotations

import copy
import pickle
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, Field, PrivateAttr

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Child,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidCursor,
    InvalidItem,
    InvalidRequest,
    InvalidValue,
    Keys,
    Node,
    NotRead,
    Projection,
    Unique,
    UnknownField,
    Version,
    field,
)
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import DELETING
from adjoin.plans.deletion import TOKENS
from adjoin.requests import Put, Update
from tests.verbs.conftest import Everywhere


class User(Node):
    id: str
    name: str
    email: Annotated[str | None, Unique()] = None
    age: int = 18
    notes: list[str] = []
    born: Annotated[int, Field(validation_alias=AliasChoices("born", "Year"), serialization_alias="born")] = 1970


class Post(Child[User], key=("number",)):
    number: int
    title: Annotated[str, Indexed()] = ""
    text: str = ""


class Follows(Edge[User, User], key=("since",)):
    since: int
    note: str = ""
    weight: int = 1


class Friend(Edge[User, User], symmetric=True):
    note: str = ""
    weight: int = 1


MODELS: list[Any] = [User, Post, Follows, Friend]
ANN, BEN = User(id="a", name="Ann", email="a@b.c", age=30, notes=["x"]), User(id="b", name="Ben")


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put_many([ANN, BEN])
    graph.put_many(Post(parent="a", number=number, title=f"t{number}", text="long") for number in range(3))
    graph.put_many([Follows(source="a", target="b", since=1, note="n", weight=5), Friend(source="b", target="a")])
    return graph


def unread(entity: Any, *names: str) -> bool:
    for name in names:
        with pytest.raises(NotRead, match=rf"{type(entity).__name__}\.{name} was not read"):
            getattr(entity, name)
    return True


def test_get_reads_only_the_named_fields(g: Any) -> None:
    with g.meter() as meter:
        ann = g.get(User, "a", only=["name", "age"])
    assert (meter.requests, meter.rcu) == (1, 0.5)
    assert (ann.id, ann.name, ann.age) == ("a", "Ann", 30)
    assert unread(ann, "email", "notes", "born")
    assert repr(ann) == "User(id='a', name='Ann', age=30)"
    assert isinstance(ann, User)
    assert issubclass(NotRead, AdjoinError)
    assert not hasattr(ann, "nothing"), "what is no field is no error of ours"
    assert g.get(User.ref("b"), only=()).id == "b"
    assert g.get(User, "nobody", only=["name"]) is None
    assert g.get(User, email="a@b.c", only=["age"]).age == 30
    assert [each and each.age for each in g.get_many(User, ["b", "x", "a"], only=["age"])] == [18, None, 30]
    assert g.get(Post, ("a", 1), only=["title"]).title == "t1"
    edge = g.edge(Follows, "a", "b", since=1, only=["weight"])
    assert (edge.source, edge.target, edge.weight) == ("a", "b", 5)
    assert unread(edge, "note")


def test_queries_read_only_the_named_fields(g: Any) -> None:
    (follows,) = g.out("a", Follows).only("note")
    assert (follows.target, follows.note) == ("b", "n")
    assert unread(follows, "weight")
    (follows,) = g.into("b", Follows).only("weight").where(field("note") == "n")
    assert (follows.source, follows.weight) == ("a", 5)
    assert unread(follows, "note")
    (friend,) = g.into("b", Friend).only("weight")
    assert (friend.source, friend.target, friend.weight) == ("a", "b", 1)
    posts = list(g.children("a", Post).only("title").where(field("number") > 0))
    assert [(post.number, post.title) for post in posts] == [(1, "t1"), (2, "t2")]
    assert unread(posts[0], "text")
    ((edge, node),) = g.out("a", Follows).only("weight").nodes()
    assert (edge.weight, node) == (5, BEN)
    first = g.children("a", Post).only("title").page(limit=2)
    assert [post.title for post in g.children("a", Post).only("title").page(limit=2, after=first.next)] == ["t2"]
    assert g.out("a", Follows).only("note").count() == 1


class Author(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None
    tags: Annotated[list[str], Indexed(elements=True)] = []
    about: str = "long"


class Met(Edge[Author, Author]):
    year: Annotated[int, Indexed()] = 0
    note: str = ""
    about: str = "long"


def test_finds_and_scans_read_only_the_named_fields(everywhere: Everywhere) -> None:
    g = everywhere([Author, Met])
    g.put_many(
        Author(id=str(id), name="AB"[id % 2], born=id or None, email=f"{id}@x", tags=["x", "y"][: id % 3])
        for id in range(5)
    )
    g.put_many(Met(source="1", target=str(id), year=id) for id in (2, 3))
    rounds: list[Any] = []
    with g.meter() as meter, g.watch(after=rounds.append):
        found = [
            # By the item itself, by an index copy, by an element, by branches, and with an order of all of them.
            list(g.find(Author, field("name") == "A").only("email")),
            list(g.find(Author, field("born") > 3).only("email")),
            list(g.find(Author, field("tags").contains("y")).only("email")),
            list(g.find(Author, (field("name") == "B") | (field("born") == 2)).only("email")),
            list(g.find(Author, field("name") >= "A", order="name").reverse().only("email").limit(2)),
            list(g.find(Author, field("name") == "A").only("email").where(field("id") != "2")),
        ]
    assert [[each.email for each in some] for some in found] == [
        ["0@x", "2@x", "4@x"],
        ["4@x"],
        ["2@x"],
        ["1@x", "3@x", "2@x"],
        ["3@x", "1@x"],
        ["0@x", "4@x"],
    ]
    assert meter.requests == 7
    assert all("about" not in item for each in rounds for answer in each.responses for item in answer.items)
    assert all(unread(each, "name", "born", "about") for some in found for each in some)
    query = g.find(Author, field("name") == "A").only(field("born"))
    first = query.page(limit=2)
    assert [each.born for each in (*first, *query.page(limit=2, after=first.next))] == [None, 2, 4]
    with pytest.raises(InvalidCursor):
        g.find(Author, field("name") == "A").page(limit=2, after=first.next)
    assert query.count() == 3
    assert [(edge.year, node.name) for edge, node in g.find(Met, field("year") > 2).only("year").nodes("target")] == [
        (3, "B")
    ]
    with pytest.raises(NotRead):
        g.put(query.first())
    with pytest.raises(UnknownField, match="did you mean 'email'"):
        g.find(Author, field("name") == "A").only("emial")

    rounds.clear()
    scan = g.scan(Author, segments=1).only("email")
    with g.meter() as meter, g.watch(after=rounds.append):
        everybody = list(scan)
        some = list(scan.where((field("id") == "1") | (field("name") == "A")))
        assert scan.where(field("born") == 2).count() == 1
        (met, _) = sorted(g.scan(Met, segments=1).only("note"), key=lambda edge: str(edge.target))
    assert meter.requests == 4
    assert sorted(each.email for each in everybody) == [f"{id}@x" for id in range(5)]
    assert all(unread(each, "name", "about") for each in everybody)
    assert sorted(each.email for each in some) == ["0@x", "1@x", "2@x", "4@x"]
    assert (met.source, met.target, met.note) == ("1", "2", "")
    assert unread(met, "year", "about")
    assert all("about" not in item for each in rounds for answer in each.responses for item in answer.items)
    with pytest.raises(InvalidValue, match="scan one class"):
        g.scan().only("email")


def test_indexes_that_hold_some_attributes_read_only_the_named_fields() -> None:
    class Lot(Node):
        id: str
        place: str
        number: int
        text: str = "long"
        more: str = "longer"

    class Named(Node):
        id: str
        label: str
        text: str = "long"

    indexes = [
        Index("Whole", "place", "number"),
        Index("Some", "place", "text", projection=Projection("INCLUDE", ("number",))),
        Index("Keys", "text", projection=Projection("KEYS_ONLY")),
        Index("Sharded", "shard", "label", shards=3),
    ]
    keys = {Named: Keys(partition="N#{id}", sort="N", indexes={"Sharded": "{shard}"})}
    rounds: list[Any] = []
    with Graph(":memory:", [Lot, Named], AdjacencyList(indexes=indexes, keys=keys)) as g:
        g.put_many(Lot(id=str(number), place="AB"[number % 2], number=number) for number in range(4))
        g.put_many(Named(id=str(number), label=f"n{number}") for number in range(4))
        in_a = field("place") == "A"
        with g.watch(after=rounds.append):
            assert [each.number for each in g.find(Lot, in_a, index="Whole").only("number")] == [0, 2]
            # This index holds the field that is read, so that nothing is read from the table.
            with g.meter() as meter:
                assert sorted(each.number for each in g.find(Lot, in_a, index="Some").only("number")) == [0, 2]
            assert meter.requests == 1
            labels = g.find(Named, order="label").only("label").page(limit=3)
            places = in_a | (field("place") == "B")
            merged = list(g.find(Lot, places, index="Whole", order="number").only("place"))
        assert [each.label for each in labels] == ["n0", "n1", "n2"]
        assert [each.place for each in merged] == ["A", "B", "A", "B"]
        rest = g.find(Named, order="label").only("label").page(limit=3, after=labels.next)
        assert [each.label for each in rest] == ["n3"]
        assert unread(merged[0], "text", "more")
        assert all(
            "more" not in item for each in rounds for answer in each.responses for item in getattr(answer, "items", [])
        )
        # Only keys are in this index, so whole items are read from the table.
        by_keys = list(g.find(Lot, field("text") == "long", index="Keys").only("number"))
        assert sorted(each.number for each in by_keys) == [0, 1, 2, 3]
        more = g.find(Lot, in_a, index="Some").only("number").where((field("more") == "longer") | (field("id") == "1"))
        assert sorted(each.number for each in more) == [0, 2]
        assert unread(by_keys[0], "place", "more")


def test_what_was_not_read_is_not_written(g: Any) -> None:
    ann = g.get(User, "a", only=["name"])
    for write in (g.put, g.add, lambda each: g.put_many([each])):
        with pytest.raises(NotRead, match="was not read"):
            write(ann)
    with pytest.raises(NotRead), g.transaction() as t:
        t.put(ann)
    assert g.get(User, "a") == ANN
    assert g.update(ann, name="Anna").age == 30, "it names its node"
    assert g.get(ann).name == "Anna"
    assert g.delete(g.edge(Follows, "a", "b", since=1, only=["since"])) is True
    for again in (copy.deepcopy(ann), copy.copy(ann), ann.model_copy(), pickle.loads(pickle.dumps(ann))):
        assert unread(again, "age")
        assert again == ann != g.get(User, "a")
    assert ann.model_dump() == dict(ann) == {"id": "a", "name": "Ann"}
    ann.age = 31
    assert (ann.age, repr(ann)) == (31, "User(id='a', name='Ann', age=31)")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.get(User, "a", only=["nme"]), UnknownField, "did you mean 'name'"),
        (lambda g: g.get(User, "a", only="name"), InvalidValue, "put it into a list"),
        (lambda g: g.get(User, "a", only=[3]), InvalidValue, "got 3"),
        (lambda g: g.edge(Follows, "a", "b", since=1, only=["nte"]), UnknownField, "did you mean 'note'"),
        (lambda g: g.out("a", Follows).only("nte"), UnknownField, "did you mean 'note'"),
        (lambda g: g.get_together(), InvalidValue, "needs something to read"),
        (lambda g: g.get_together("a"), InvalidValue, r"Model\.ref"),
        (lambda g: g.get_together(*(User.ref(str(number)) for number in range(101))), InvalidRequest, "at most 100"),
    ],
)
def test_what_is_refused(g: Any, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(g)


# --- classes and tables of all kinds -----------------------------------------------------------


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: str = ""
    wheels: int = 0
    colour: str = ""


class Car(Vehicle):
    kind: Literal["car"] = "car"
    doors: int = 4


class Guarded(Node):
    id: str
    text: str = ""
    revision: Annotated[int, Version()] = 0
    _cache: dict[str, int] = PrivateAttr(default_factory=dict)


def test_families_former_names_and_private_attributes() -> None:
    with Graph(":memory:", [*MODELS, Vehicle, Car, Guarded]) as g:
        g.put(Car(id="1", wheels=4, colour="red"))
        car = g.get(Vehicle, "1", only=["wheels"])
        assert isinstance(car, Car)
        assert car.wheels == 4
        assert unread(car, "doors", "colour")
        g.put(BEN)
        key = g._layout.node_key(g._layout.schema.node(User), "b")
        g._store.execute((Update("adjoin", key, (Set(attribute("Year"), Value({"N": "1990"})),)),))
        found = g.get(User, "b", only=["born"])
        assert found is not None
        assert found.born == 1970, "the present name comes first"
        g.put(Guarded(id="1"))
        guarded = g.get(Guarded, "1", only=["text"])
        assert guarded is not None
        assert guarded._cache == {}
        with pytest.raises(NotRead, match="revision"):
            g.delete(guarded)
        g._store.execute((Update("adjoin", key, (Set(attribute("age"), Value({"S": "many"})),)),))
        with pytest.raises(InvalidItem, match="age"):
            g.get(User, "b", only=["age"])
        assert g.get(User, "b", only=["name"]) is not None, "a field that is not read is not checked"


class Shop(Node):
    id: str
    name: str = ""


class Sells(Edge[Shop, Shop]):
    price: int
    text: str = ""


def test_an_index_that_holds_only_keys() -> None:
    reverse = Index("GSI1", "GSI1PK", "GSI1SK", projection=Projection("KEYS_ONLY"))
    with Graph(":memory:", [Shop, Sells], AdjacencyList(reverse=reverse)) as g:
        g.put(Sells(source="a", target="b", price=3, text="long"))
        (edge,) = g.into("b", Sells).only("text")
        assert (edge.source, edge.text) == ("a", "long")
        assert unread(edge, "price")


def test_edges_in_several_shards_of_an_index() -> None:
    by_target = Index("ByTarget", "TPK", "TSK", shards=3)
    keys = {Sells: Keys(indexes={"ByTarget": ("{target}#{shard}", "{source}")})}
    with Graph(":memory:", [Shop, Sells], AdjacencyList(reverse=None, indexes=[by_target], keys=keys)) as g:
        g.put_many(Sells(source=str(number), target="b", price=number, text="long") for number in range(5))
        found = list(g.into("b", Sells).only("price").where(field("source") > "1"))
        assert [(edge.source, edge.price) for edge in found] == [("2", 2), ("3", 3), ("4", 4)]
        assert unread(found[0], "text")


class Stay(Node):
    id: str
    country: str
    city: str


def test_fields_that_are_in_keys_only() -> None:
    keys = {Stay: Keys(reverse_partition="STAYS", reverse_sort="{country}#{city}")}
    with Graph(":memory:", [Stay], AdjacencyList(keys=keys)) as g:
        g.put(Stay(id="1", country="PT", city="Porto"))
        found = g.get(Stay, "1", only=["city"])
        assert found is not None
        assert found.city == "Porto"


# --- one instant -------------------------------------------------------------------------------


def test_several_reads_as_of_one_instant(g: Any) -> None:
    follows, friend = g.edge(Follows, "a", "b", since=1), g.edge(Friend, "a", "b")
    with g.meter() as meter:
        found = g.get_together(User.ref("a"), BEN, User.ref("x"), follows, friend, Post.ref(("a", 1)), User.ref("a"))
    assert found == (ANN, BEN, None, follows, friend, g.get(Post, ("a", 1)), ANN)
    assert (meter.requests, meter.rcu) == (1, 12), "two units each, in one request"
    ann, ben = g.get_together(User.ref("a"), User.ref("b"))
    assert (ann, ben) == (ANN, BEN)


@pytest.mark.parametrize("is_gone", [True, False])
def test_an_edge_with_the_mark_of_a_delete_is_told_by_its_record(is_gone: bool) -> None:
    with Graph(":memory:", MODELS) as g:
        edge = Follows(source="a", target="b", since=1)
        g.put_many([ANN, BEN, edge])
        layout = g._layout
        key = layout.edge_key(layout.schema.edge(Follows), "a", "b", {"since": 1})
        g._store.execute((Update("adjoin", key, (Set(attribute(DELETING), Value({"SS": ["token:USER#b"]})),)),))
        if is_gone:
            g._store.execute((Put("adjoin", layout.deletion_key("USER#b") | {TOKENS: {"SS": ["token"]}}),))
        with g.meter() as meter:
            found = g.get_together(edge, User.ref("a"))
        assert found == (None if is_gone else edge, ANN)
        assert meter.requests == 2, "again, together with the record"
