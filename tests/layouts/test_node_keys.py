"""Node keys, both ways, for one class, for a family, and for ends of several classes; and single stored fields."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    MigrationDue,
    Node,
    Ref,
)
from adjoin.layouts.forms import Due
from adjoin.layouts.key_values import key_text
from adjoin.schema import Schema
from tests.layouts.designs import (
    ANN,
    DAYS,
    DESIGNS,
    SHOP,
    Alarm,
    Animal,
    Cat,
    Club,
    Dog,
    Has,
    Likes,
    Order,
    Owner,
    Person,
)

FAMILY = "a family, and ends of several classes"


def test_an_end_of_several_classes_has_the_keys_of_each() -> None:
    layout = DESIGNS[FAMILY].bound()
    end = layout.schema.edge(Has).target
    for id, text in ((Ref(Club, 3), "CLUB#3"), (Ref(Animal, "c"), "ANIMAL#c")):
        assert layout.node_text(end, id) == text
        assert layout.id_in(end, text) == id
        assert layout.is_of(end, text)
        key = layout.node_key(end, id)
        assert key == {"PK": {"S": text}, "SK": {"S": "#META"}}
        assert layout.text_of(end, key) == text
    for text in ("OWNER#o", "CLUB#x", "CLUB#", "ANIMAL#"):
        assert not layout.is_of(end, text)
        with pytest.raises(InvalidKey, match=f"^'{text}' is not the key of a .*; correct the item that names it$"):
            layout.id_in(end, text)
    # A class of a family has the keys of its head.
    animal, cat, club = (layout.schema.node(model) for model in (Animal, Cat, Club))
    assert layout.id_in(animal, "ANIMAL#c") == layout.id_in(cat, "ANIMAL#c") == "c"
    assert layout.is_of(cat, "ANIMAL#c")
    assert not layout.is_of(club, "ANIMAL#c")
    assert layout.id_in(club, "CLUB#3") == 3


def test_an_end_that_another_class_has_is_refused() -> None:
    layout = DESIGNS[FAMILY].bound()
    kind = layout.schema.edge(Likes)
    with pytest.raises(InvalidKey, match=r"^a Owner or a Animal is needed, got Club 3; pass the node or its ref$"):
        layout.edge_key(kind, Ref(Club, 3), "o", {})
    assert layout.edge_key(kind, Ref(Owner, "x"), "o", {})["PK"] == {"S": "OWNER#x"}


def test_a_head_is_not_stored_as_another_class_of_its_family() -> None:
    layout = DESIGNS[FAMILY].bound()
    for kind in ("dog", "cat"):
        name = kind.capitalize()
        with pytest.raises(InvalidValue, match=f"^a Animal with kind='{kind}' is a {name}; make it a {name}$"):
            layout.items(Animal(id="a", kind=kind))
    for entity in (Animal(id="a", kind="bird"), Dog(id="a"), Cat(id="a")):
        (item,) = layout.items(entity)
        assert layout.read(item) == entity


def test_a_node_in_a_shared_partition_is_told_by_both_keys() -> None:
    layout = SHOP.bound()
    order = layout.schema.node(Order)
    key = layout.node_key(order, ("C1", 7))
    assert layout.key_texts(key) == ("c|C1", "o|000007")
    assert layout.text_of(order, key) == layout.node_text(order, ("C1", 7)) == "c|C1##o|000007"
    assert layout.id_in(order, "c|C1##o|000007") == ("C1", 7)
    for text in ("c|C1", "c|C1##o|7", "c|C1#o|000007", "c|C1##o|000007|x"):
        assert not layout.is_of(order, text)


def test_what_the_items_of_a_family_lack_matters_where_all_of_them_are_read() -> None:
    layout = DESIGNS[FAMILY].bound()
    kinds = [*(layout.schema.node(model) for model in (Animal, Cat, Dog)), layout.schema.edge(Has)]
    for lacking, refused in (
        ("CAT", {"Animal", "Cat"}),
        ("ANIMAL", {"Animal", "Cat", "Dog"}),
        ("HAS", {"Has"}),
        ("OWNER", set()),
    ):
        due = Due()
        due.learn({lacking: frozenset({("indexed", "name")})}, {lacking: lacking})
        found: set[str] = set()
        for kind in kinds:
            try:
                due.check_field(kind, "name", "GSI3")
            except MigrationDue:
                found.add(kind.name)
        assert found == refused, lacking


def test_which_indexes_lack_edges_of_a_class() -> None:
    layout = DESIGNS[FAMILY].bound()
    has, likes = layout.schema.edge(Has), layout.schema.edge(Likes)
    due = Due()
    due.learn({"HAS": frozenset({("index", "GSI1"), ("keys", "")})}, {"HAS": "Has"})
    assert due.lacking_in(has, [None, "GSI1", "GSI2", "GSI1"]) == ["GSI1"]
    assert due.lacking_in(has, [None, "GSI2"]) == due.lacking_in(likes, [None, "GSI1"]) == []


def test_how_long_a_value_of_an_indexed_field_may_be() -> None:
    """In the sort key of its entry, at least a separator follows it."""
    layout = DESIGNS["an adjacency list"].bound()
    index = layout.overloaded
    assert index is not None
    name = index.field(layout.schema.node(Person), "name")
    assert name.text("x" * 1023) == "x" * 1023
    with pytest.raises(InvalidKey, match=r"^a value of Person\.name in its index would have 1,024 bytes "):
        name.text("x" * 1024)


# --- single fields -----------------------------------------------------------------------------


def test_how_single_fields_are_stored() -> None:
    people, shop, days = DESIGNS["an adjacency list"].bound(), SHOP.bound(), DAYS.bound()
    person, order, alarm = people.schema.node(Person), shop.schema.node(Order), days.schema.edge(Alarm)
    day = dt.date(2026, 5, 6)
    for layout, kind, name, value, stored in (
        (people, person, "name", "Ann", {"S": "Ann"}),
        (people, person, "born", day, {"S": "2026-05-06"}),
        # What is None by default is not stored.
        (people, person, "born", None, None),
        (people, person, "tags", ["x"], {"L": [{"S": "x"}]}),
        (shop, order, "day", day, {"S": "2026-05-06"}),
        (days, alarm, "grade", "low", {"S": "low"}),
    ):
        assert layout.encode_field(kind, name, value) == layout.encode_stored(kind, name, value) == stored
        assert layout.is_stored(kind, name)
    # A value in a format is read with the format, any other as it is stored; the class validates both.
    assert shop.decode_field(order, "day", {"S": "2026-05-06"}) == day
    assert people.decode_field(person, "born", {"S": "2026-05-06"}) == "2026-05-06"
    # The time of an alarm is in its keys only.
    at = dt.datetime(2026, 1, 2, 3)
    assert days.encode_field(alarm, "at", at) == {"S": "2026-01-02T03:00:00"}
    assert days.encode_stored(alarm, "at", at) is None
    assert not days.is_stored(alarm, "at")


def test_what_only_keys_hold_cannot_be_compared() -> None:
    days = DAYS.bound()
    alarm = days.schema.edge(Alarm)
    assert days.filterable(alarm, "grade") == "grade"
    with pytest.raises(InvalidKey) as refused:
        days.filterable(alarm, "at")
    assert str(refused.value) == (
        "Alarm.at is stored in the key only, so DynamoDB cannot compare it; filter the results in Python"
    )


def test_where_a_query_goes_on() -> None:
    layout = DESIGNS["an adjacency list"].bound()
    (item,) = layout.items(ANN)
    assert layout.start_names(None) == ("PK", "SK")
    assert layout.start_after(item, None) == layout.key_of(item)
    assert layout.start_names("GSI3") == ("PK", "SK", "GSI3PK", "GSI3SK")
    assert layout.start_after(item, "GSI3") == {name: item[name] for name in ("PK", "SK", "GSI3PK", "GSI3SK")}
    # A key of the table that is also one of the index is there once.
    inverted = DESIGNS["a tenant that templates name"].bound()
    assert inverted.start_names("Inverted") == ("P", "S")


# --- nodes whose keys continue those of another class -------------------------------------------


class Shelf(Node):
    id: str


class Box(Node):
    id: str


class Room(Node):
    id: str


class Stores(Edge[Room, Shelf | Box], key=("at",)):
    at: str


INSIDE = AdjacencyList(
    reverse=None,
    indexes=[Index("Back", "BPK", "BSK")],
    keys={
        Shelf: Keys("x|{id}", "shelf"),
        Box: Keys("x|{id}|y", "box"),
        Stores: Keys(sort="s|{target}|{at}", indexes={"Back": ("back", "{target}|{at}")}),
    },
)


def test_a_query_for_one_node_has_no_edges_of_a_longer_key() -> None:
    """Among the keys of edges to the shelf x|1 are those to the box x|1|y."""
    with Graph(":memory:", [Shelf, Box, Room, Stores], INSIDE) as g:
        shelf, box = Shelf.ref("1"), Box.ref("1")
        in_shelf, in_box = Stores(source="r", target=shelf, at="t"), Stores(source="r", target=box, at="t")
        g.put_many([in_shelf, in_box])
        for query, found in (
            (g.out("r", Stores), [in_shelf, in_box]),
            (g.out("r", Stores).within(target=shelf), [in_shelf]),
            (g.out("r", Stores).within(target=box), [in_box]),
            (g.into(shelf, Stores), [in_shelf]),
            (g.into(box, Stores), [in_box]),
        ):
            assert list(query) == found
            assert query.count() == len(found)
            assert [(edge.target, edge.at) for edge in query.only("at")] == [(edge.target, edge.at) for edge in found]


def test_keys_that_do_not_tell_which_class_is_meant_are_refused() -> None:
    keys: dict[type[Any], Keys] = {Shelf: Keys("x|{id}", "shelf"), Box: Keys("x|{id}", "box")}
    with pytest.raises(InvalidModel) as refused:
        AdjacencyList(keys=keys, shared_ids=True).bind(Schema([Shelf, Box, Room, Stores]))
    assert str(refused.value).startswith("Stores ends at Shelf or Box, whose keys can be the same in ")


# --- ids that no key can have --------------------------------------------------------------------


NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Numbered(Node, key=("number", "at")):
    number: Annotated[int, Field(ge=1, le=9)]
    at: Annotated[dt.datetime, Field(gt=dt.datetime(1970, 1, 1, tzinfo=dt.UTC))]


class Least(Node):
    id: Annotated[int, Field(ge=1)]


class Most(Node):
    id: Annotated[int, Field(le=9)]


@pytest.mark.parametrize(
    ("model", "id", "words"),
    [
        (Least, 0, "Least.id must be at least 1, got 0"),
        (Least, 1, None),
        (Most, 10, "Most.id must be at most 9, got 10"),
        (Most, 9, None),
        (Numbered, (0, NOW), "Numbered.number must be at least 1 and at most 9, got 0"),
        (Numbered, (10, NOW), "Numbered.number must be at least 1 and at most 9, got 10"),
        (
            Numbered,
            (9, dt.datetime(1969, 1, 1, tzinfo=dt.UTC)),
            "Numbered.at must be at least 1970-01-01 00:00:00.000001+00:00",
        ),
        (Numbered, (1, NOW), None),
    ],
)
def test_an_id_outside_the_bounds_of_its_field(model: Any, id: Any, words: str | None) -> None:
    """No validator has seen what `model_construct` makes, and its key could be that of another item."""
    layout = AdjacencyList().bind(Schema([Least, Most, Numbered]))
    names = [*model.model_fields]
    made = model.model_construct(**dict(zip(names, id if isinstance(id, tuple) else (id,), strict=True)))
    if words is None:
        assert layout.items(made)
        return
    with pytest.raises(InvalidKey) as refused:
        layout.items(made)
    assert str(refused.value).startswith(words)


def test_half_of_a_surrogate_pair_is_in_no_key() -> None:
    for text in ("\ud800", "a\udfff"):
        with pytest.raises(InvalidKey, match=r"^.* holds half of a surrogate pair, which UTF-8 cannot encode$"):
            key_text(text)
    assert key_text("é\U0001f600") == "é\U0001f600"


def test_a_claim_to_a_long_value_is_refused() -> None:
    layout = DESIGNS["an adjacency list"].bound()
    person = layout.schema.node(Person)
    room = 2048 - len("#=PERSON#email#")
    assert layout.claim_key(person, "email", "x" * room)["PK"] == {"S": "#=PERSON#email#" + "x" * room}
    with pytest.raises(
        InvalidKey, match=r"^the claim to Person\.email would have 2,049 bytes .* so use a shorter value$"
    ):
        layout.claim_key(person, "email", "x" * (room + 1))


class Level(Node):
    id: int


class Pair(Node, key=("one", "other")):
    one: int
    other: int


@pytest.mark.parametrize(("escape", "text"), [(True, "l-%2D5"), (False, None)])
def test_the_sign_of_a_number_may_be_a_separator(escape: bool, text: str | None) -> None:
    keys: dict[type[Any], Keys] = {Level: Keys("l-{id}", "level"), Pair: Keys("p.{one}-{other}", "pair")}
    layout = AdjacencyList(keys=keys, escape=escape).bind(Schema([Level, Pair]))
    level = layout.schema.node(Level)
    assert layout.node_text(level, 5) == "l-5"
    if text is None:
        with pytest.raises(InvalidKey, match=r"^Level\.id: '-5' holds '#' or '-', which separates the parts"):
            layout.node_text(level, -5)
        return
    assert layout.node_text(level, -5) == text
    assert layout.id_in(level, text) == -5
    assert layout.id_in(layout.schema.node(Pair), "p.%2D1-2") == (-1, 2)
