"""Declarations that a layout refuses, and those that look alike and are right."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import pytest
from pydantic import field_validator, model_validator

from adjoin import (
    AdjacencyList,
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
    Node,
    PageRank,
    Stored,
    UnknownField,
    field,
)
from adjoin.layouts.adjacency_reader import keep_unexplained
from adjoin.layouts.indexed_fields import Stretch
from adjoin.model import UNEXPLAINED
from adjoin.requests import Put, SortCondition
from adjoin.schema import Schema

# --- a table that cannot hold adjoin's own items -----------------------------------------------


class User(Node):
    id: int


class Ranked(Node):
    id: int
    rank: Annotated[float, PageRank("Follows")] = 0.0


class Counting(Node):
    id: int
    following: Annotated[int, Count("Follows")] = 0


class Named(Node):
    id: int
    name: str = ""


def followed(node: Any, **fields: Any) -> list[Any]:
    """A class, and edges from and to it."""

    class Follows(Edge[node, node]):
        __annotations__ = {name: annotation for name, (annotation, _) in fields.items()}
        locals().update({name: default for name, (_, default) in fields.items()})

    return [node, Follows]


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (followed(Ranked), "Ranked.rank is a summary, and how far it is rebuilt is in items of adjoin's own"),
        (followed(Counting), "Counting.following is an aggregate, and what it counts is in items of adjoin's own"),
        (
            followed(Named, name=(Annotated[str, Copy("source.name")], "")),
            "Follows.name is a copied field, and what keeps it true is in items of adjoin's own",
        ),
    ],
)
def test_what_needs_items_of_its_own_is_refused_where_keys_are_numbers(models: list[Any], words: str) -> None:
    node, follows = models
    keys = {node: Keys("{id}", "{id}"), follows: Keys("{source.id}", "{target.id}")}
    layout = AdjacencyList(
        table="Users", partition_key="id", sort_key="to", types={"id": "N", "to": "N"}, reverse=None, keys=keys
    )
    with pytest.raises(InvalidModel, match=f"^{words}, which this table cannot hold: .*; remove it, or use a table"):
        layout.bind(Schema(models))


# --- indexes that the layout needs itself ------------------------------------------------------


class Person(Node):
    id: str


class Knows(Edge[Person, Person], order="since"):
    since: int = 0


class Citizen(Node):
    id: str
    city: Annotated[str, Indexed()] = ""


@pytest.mark.parametrize(
    ("models", "name", "words"),
    [
        ([Person, Knows], "GSI2", "the order of edges; give the layout ordered=Index"),
        ([Citizen], "GSI3", "fields that are marked Indexed(); give the layout indexed=Index"),
    ],
)
def test_a_declared_index_cannot_have_the_name_of_one_that_is_needed(models: Any, name: str, words: str) -> None:
    layout = AdjacencyList(indexes=[Index(name, "a", "b")])
    with pytest.raises(InvalidModel) as refused:
        layout.bind(Schema(models))
    assert str(refused.value) == f"indexes= declares {name!r}, which the layout needs for {words}(…) with another name"
    named: dict[str, Any] = {"ordered" if name == "GSI2" else "indexed": Index("Other", "c", "d")}
    keys = {models[0]: Keys(indexes={name: ("a#{id}", "b")})}
    bound = AdjacencyList(indexes=[Index(name, "a", "b")], keys=keys, **named).bind(Schema(models))
    assert {name, "Other"} <= {index.name for index in bound.definition.indexes}


# --- families, and edges beside each other -----------------------------------------------------


class Vehicle(Node, discriminator="kind"):
    id: str
    kind: Literal["vehicle", "car"] = "vehicle"


class Car(Vehicle):
    kind: Literal["car"] = "car"


def test_a_class_of_a_family_has_the_keys_of_the_family() -> None:
    same = Keys("v#{id}", "v")
    AdjacencyList(keys={Vehicle: same, Car: same}).bind(Schema([Vehicle, Car]))
    for other in (Keys("c#{id}", "v"), Keys("v#{id}", "c")):
        with pytest.raises(
            InvalidModel, match=r"^Car has the keys of Vehicle, v#\{id\} and v, but the layout gives it .\#\{id\} and ."
        ):
            AdjacencyList(keys={Vehicle: same, Car: other}).bind(Schema([Vehicle, Car]))


class Likes(Edge[Person, Person]):
    pass


class Hates(Edge[Person, Person]):
    pass


def test_edges_in_different_partitions_may_have_the_same_sort_keys() -> None:
    alike, apart = Keys(sort="x#{target.id}"), Keys("likes#{source.id}", "x#{target.id}")
    for keys in ({Likes: apart, Hates: alike}, {Likes: alike, Hates: apart}):
        with Graph(":memory:", [Person, Likes, Hates], AdjacencyList(keys=keys)) as g:
            edges: list[Any] = [Likes(source="a", target="b"), Hates(source="a", target="b")]
            g.put_many(edges)
            assert [*g.out("a", Likes), *g.out("a", Hates)] == edges
    with pytest.raises(InvalidModel, match=r"^Likes and Hates can have the same key x#\{target.id\}"):
        AdjacencyList(keys={Likes: alike, Hates: alike}).bind(Schema([Person, Likes, Hates]))
    with pytest.raises(InvalidModel, match="can have the same key"):
        AdjacencyList(keys={Likes: apart, Hates: apart}).bind(Schema([Person, Likes, Hates]))


# --- placeholders ------------------------------------------------------------------------------


class Country(Node):
    id: str


class Visited(Edge[Person, Country]):
    pass


def test_the_name_of_a_class_at_an_end_is_the_id_of_its_node() -> None:
    for template in ("V#{country}", "V#{target.id}"):
        layout = AdjacencyList(keys={Visited: Keys(sort=template)}).bind(Schema([Person, Country, Visited]))
        (item,) = layout.items(Visited(source="a", target="it"))
        assert item["SK"] == {"S": "V#it"}
        kind = layout.schema.edge(Visited)
        assert layout.edge_key(kind, "a", "it", {}) == {"PK": {"S": "PERSON#a"}, "SK": {"S": "V#it"}}
        assert layout.ends(kind, item) == ("PERSON#a", "COUNTRY#it")
        # An empty text is no id.
        with pytest.raises(InvalidKey):
            layout.edge_key(kind, "a", "", {})


# --- ranges of keys that are numbers -----------------------------------------------------------


class Follows(Edge[User, User]):
    pass


def test_ranges_of_a_sort_key_that_is_a_number() -> None:
    keys: dict[type[Any], Keys] = {Follows: Keys("{source.id}", "{target.id}"), User: Keys("{id}", "{id}")}
    layout = AdjacencyList(
        table="Follows",
        partition_key="user",
        sort_key="follows",
        types={"user": "N", "follows": "N"},
        reverse=None,
        keys=keys,
    )
    bound = layout.bind(Schema([User, Follows]))
    found = bound.out(bound.schema.edge(Follows), 1)
    ranges: list[tuple[Any, Any, Any, list[str]]] = [
        (3, 50, "between", ["3", "50"]),
        (3, 3, "between", ["3", "3"]),
        (None, 2, "<=", ["2"]),
        (10, None, ">=", ["10"]),
    ]
    for low, high, operator, operands in ranges:
        assert found.between(low, high) == SortCondition(
            "follows", operator, tuple({"N": operand} for operand in operands)
        )
    assert found.between(None, None) is None
    # An edge from a node to itself would have the key of the node, and there is no room for a label.
    with pytest.raises(InvalidKey, match="would have the key of the User itself; a key that is not text has no room"):
        bound.edge_key(bound.schema.edge(Follows), 1, 1, {})


# --- validators --------------------------------------------------------------------------------


class Careful(Node):
    id: str
    name: str = ""

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name == "key":
            raise InvalidKey("the name is a key")
        if name == "memory":
            raise MemoryError
        if name == "lost":
            raise LookupError("it is on no shelf")
        return name


@pytest.mark.parametrize(("name", "error"), [("key", InvalidKey), ("memory", MemoryError), ("lost", InvalidItem)])
def test_what_a_validator_raises_of_adjoins_own_is_raised(name: str, error: type[Exception]) -> None:
    with Graph(":memory:", [Careful]) as g:
        g._store.execute((Put("adjoin", {"PK": {"S": "CAREFUL#a"}, "SK": {"S": "#META"}, "name": {"S": name}}),))
        with pytest.raises(error) as raised:
            g.get(Careful, "a")
        assert type(raised.value) is error


# --- what an update has to know for an index key -----------------------------------------------


class Task(Node):
    id: str
    state: str = "open"
    day: int = 0
    count: int = 0
    note: str | None = None


def test_which_fields_are_read_before_an_index_key_changes() -> None:
    layout = AdjacencyList(
        indexes=[Index("ByState", "GPK", "GSK"), Index("ByNote", "NPK", "note")],
        keys={Task: Keys(indexes={"ByState": ("S#{state}", "{day:05}#{count:05}"), "ByNote": "N#{state}"})},
    ).bind(Schema([Task]))
    kind = layout.schema.node(Task)
    for changes, needed in (
        ({}, []),
        ({"state": "done"}, []),
        ({"day": 3}, ["count"]),
        ({"day": 3, "count": 4}, []),
        ({"count": field("count") + 1}, ["day"]),
    ):
        found = layout.needed_for_index(kind, {"id": "a"}, changes)
        assert [name for name in found if name in ("day", "count")] == needed, changes


# --- words for types, and fields in formats ----------------------------------------------------


def test_what_items_have_as_their_type() -> None:
    for keys, word in ((Keys(type="a person"), "a person"), (Keys(), "PERSON")):
        layout = AdjacencyList(type_attribute="type", keys={Person: keys}).bind(Schema([Person]))
        (item,) = layout.items(Person(id="a"))
        assert item["type"] == {"S": word}
    with pytest.raises(InvalidModel, match=r"^Keys\(type='x'\) of Person has no effect: the layout has no type"):
        AdjacencyList(keys={Person: Keys(type="x")}).bind(Schema([Person]))
    for wrong in ("", "{id}"):
        with pytest.raises(InvalidModel, match="of Person must be text without placeholders"):
            AdjacencyList(type_attribute="type", keys={Person: Keys(type=wrong)}).bind(Schema([Person]))


def test_a_value_of_an_indexed_field_is_checked_before_it_is_looked_for() -> None:
    with Graph(":memory:", [Sized]) as g:
        g.put_many([Sized(id=str(size), size=size) for size in (2, 10)])
        index = g._layout.overloaded
        assert index is not None
        size = index.field(g._layout.schema.node(Sized), "size")
        assert size.text("10") == size.text(10) != size.text(2)
        with pytest.raises(InvalidValue):
            size.text("ten")
        with pytest.raises(UnknownField, match="'sise'"):
            index.field(g._layout.schema.node(Sized), "sise")
        with pytest.raises(InvalidKey, match=r"^Sized\.name is not indexed"):
            index.field(g._layout.schema.node(Sized), "name")
        assert [each.id for each in g.find(Sized, field("size") == "10")] == ["10"]


class Sized(Node):
    id: str
    size: Annotated[int, Indexed()] = 0
    name: str = ""


def test_which_keys_are_adjoins_own_for_every_tenant() -> None:
    layout = AdjacencyList().bind(Schema([Citizen, Person, Knows]))
    for partition, sort, is_own in (
        ("#=MAINTAIN", "=position", True),
        ("PERSON#a#=", "=M", True),
        ("PERSON#a", "#META", False),
        ("acme#PERSON#a", "#META", False),
        ("acme##=MAINTAIN", "=position", True),
        ("acme#PERSON#a#=", "=M", True),
    ):
        assert layout.is_own_record({"PK": {"S": partition}, "SK": {"S": sort}}) is is_own, partition
    acme = layout.for_tenant("acme")
    assert acme.is_own_record({"PK": {"S": "acme##=MAINTAIN"}, "SK": {"S": "=position"}})
    assert not acme.is_own_record({"PK": {"S": "acme#PERSON#a"}, "SK": {"S": "#META"}})


@pytest.mark.parametrize(
    ("stretch", "before", "within", "after"),
    [
        (Stretch("b", "d"), ["a", ""], ["b", "c", "d"], ["d#", "e"]),
        (Stretch("b"), ["a"], ["b", "z"], []),
        (Stretch(prefix="b"), ["a", ""], ["b", "bz"], ["c"]),
        (Stretch(), [], ["", "z"], []),
    ],
)
def test_where_a_key_is_seen_from_a_stretch(
    stretch: Stretch, before: list[str], within: list[str], after: list[str]
) -> None:
    assert [[stretch.side_of(key) for key in keys] for keys in (before, within, after)] == [
        [-1] * len(before),
        [0] * len(within),
        [1] * len(after),
    ]


def test_what_no_field_explains_is_kept_apart_from_adjoins_own() -> None:
    person = Person(id="a")
    item = {"PK": {"S": "PERSON#a"}, "more": {"N": "1"}, "adjoin:life": {"S": "x"}}
    keep_unexplained(person, item, frozenset({"PK"}))
    assert person.__dict__[UNEXPLAINED][1] == {"more": {"N": "1"}}
    plain = Person(id="b")
    keep_unexplained(plain, {"PK": {"S": "PERSON#b"}, "adjoin:life": {"S": "x"}}, frozenset({"PK"}))
    assert UNEXPLAINED not in plain.__dict__


def test_which_stretches_may_hold_a_value() -> None:
    """In a sort key, a separator and the key of the item follow the value."""
    for stretch, values in (
        (Stretch(), ["a", "b", "c"]),
        (Stretch("b"), ["b", "c"]),
        (Stretch(high="b~"), ["a", "b"]),
        (Stretch(prefix="b"), ["b"]),
        (Stretch("a#x", "b~"), ["a", "b"]),
        (Stretch(high="b"), ["a"]),
    ):
        assert [value for value in "abc" if stretch.may_hold(value)] == values, stretch


class Reviewed(Edge[Person, Country | Citizen]):
    pass


def test_a_node_of_one_of_several_classes_has_no_range() -> None:
    with Graph(":memory:", [Person, Country, Citizen, Reviewed]) as g:
        words = r"^Reviewed.target.* is a node of one of several classes, so there is no range of it; narrow the query"
        with pytest.raises(InvalidValue, match=words):
            g.out("a", Reviewed).begins_with("C")
        with pytest.raises(InvalidValue, match=words):
            g.out("a", Reviewed).between("a", "b")


def test_a_placeholder_that_no_field_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidModel) as refused:
        AdjacencyList(keys={Visited: Keys(sort="V#{nowhere}")}).bind(Schema([Person, Country, Visited]))
    assert str(refused.value).startswith("in the key template 'V#{nowhere}': ")
    assert "'source', 'target', 'label'" in str(refused.value)
    assert "source.id" not in str(refused.value), "the whole node is named instead"


class Dated(Node):
    id: str
    day: Annotated[dt.date | None, Stored("%d.%m.%Y")] = None


class Listed(Node):
    """A class whose validators look at everything, so that each value is made by itself."""

    id: str
    day: Annotated[dt.date | None, Stored("%d.%m.%Y")] = None

    @model_validator(mode="before")
    @classmethod
    def _as_it_is(cls, values: Any) -> Any:
        return values


@pytest.mark.parametrize("model", [Dated, Listed])
def test_a_value_in_the_format_of_its_field(model: Any) -> None:
    """One that is in another format is no entity, but is shown as far as it can be."""
    layout = AdjacencyList().bind(Schema([model]))
    kind = layout.schema.node(model)
    (key,) = layout.items(model(id="a"))
    day = dt.date(2024, 1, 31)
    stored: list[tuple[Any, dt.date | None]] = [({"S": "31.01.2024"}, day), ({"NULL": True}, None)]
    for value, read in stored:
        item = {**key, "day": value}
        assert layout.decode(kind, item) == layout.decode_as_far(kind, item) == model(id="a", day=read)
    assert layout.decode(kind, key) == layout.decode_as_far(kind, key) == model(id="a")
    wrong = {**key, "day": {"S": "today"}}
    with pytest.raises(InvalidItem, match=r"day: 'today' is not written as '%d.%m.%Y'"):
        layout.decode(kind, wrong)
    shown: Any = layout.decode_as_far(kind, wrong)
    assert (shown.id, shown.day) == ("a", "today")
