"""Keys of the table that are numbers or binary, and tables with a partition key only: keys both ways, and refusals."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Child,
    Copy,
    Count,
    Edge,
    Index,
    Indexed,
    InvalidKey,
    InvalidModel,
    Keys,
    Node,
    Unique,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.tables import KeyAttribute, KeyType
from adjoin.values import Item


def bound(*models: Any, tenant: str | None = None, **layout: Any) -> BoundLayout:
    return AdjacencyList(table="Table", **layout).bind(Schema(models), tenant)


def only(*models: Any, type: KeyType = "N", **more: Any) -> BoundLayout:
    """A layout with a partition key only."""
    return bound(*models, **{"partition_key": "id", "sort_key": None, "types": {"id": type}, "reverse": None, **more})


# --- one value, one key ------------------------------------------------------------------------


class Level(IntEnum):
    LOW = 1
    HIGH = 20


class ByInt(Node):
    id: int


class ByDecimal(Node):
    id: Decimal


class ByTime(Node):
    id: dt.datetime


class ByLevel(Node):
    id: Level


class ByBytes(Node):
    id: bytes


class ByUUID(Node):
    id: uuid.UUID


class ByText(Node):
    id: str


INTS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(1, 99).map(lambda number: number * 10**100)
DECIMALS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**28) + 1, 10**28 - 1),
    st.integers(-100, 90),
)
TIMES = st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-7))]))
VALUES: dict[type[Any], tuple[KeyType, st.SearchStrategy[Any]]] = {
    ByInt: ("N", INTS),
    ByDecimal: ("N", DECIMALS),
    ByTime: ("N", TIMES.filter(lambda at: 2 < at.year < 9998)),
    ByLevel: ("N", st.sampled_from(Level)),
    ByBytes: ("B", st.binary(min_size=1, max_size=40)),
    ByUUID: ("B", st.uuids()),
    ByText: ("S", st.text(min_size=1, max_size=20).filter(lambda text: "#" not in text and text.isprintable())),
}
LAYOUTS = {model: only(model, type=type, keys={model: Keys(partition="{id}")}) for model, (type, _) in VALUES.items()}


def key_of(model: type[Any], id: Any) -> Item:
    layout = LAYOUTS[model]
    return layout.node_key(layout.schema.node(model), layout.schema.node(model).id(id))


def read(model: type[Any], key: Item) -> Any:
    layout = LAYOUTS[model]
    found = layout.read(key)
    assert found == layout.decode(layout.schema.node(model), key)
    return found


@pytest.mark.parametrize("model", VALUES)
@given(data=st.data())
def test_an_id_comes_back_from_its_key_and_others_have_other_keys(model: type[Any], data: st.DataObject) -> None:
    type, values = VALUES[model]
    one, other = data.draw(values), data.draw(values)
    key = key_of(model, one)
    ((attribute, value),) = key.items()
    assert (attribute, [*value]) == ("id", [type])
    (stored,) = LAYOUTS[model].items(model(id=one))
    assert stored == key
    assert read(model, stored).id == one
    assert (key_of(model, other) == key) == (one == other)


@pytest.mark.parametrize(
    ("model", "ids", "stored"),
    [
        (ByDecimal, [Decimal(1), Decimal("1.0"), Decimal("10E-1"), Decimal("1.000")], {"N": "1"}),
        (ByDecimal, [Decimal(100), Decimal("1E+2"), Decimal("1E2")], {"N": "100"}),
        (ByDecimal, [Decimal(0), Decimal("-0"), Decimal("0.00"), Decimal("-0E+5")], {"N": "0"}),
        (ByDecimal, [Decimal("-1.50"), Decimal("-15E-1")], {"N": "-1.5"}),
        (ByInt, [0, -0, 0.0], {"N": "0"}),
        (ByInt, [10**40], {"N": "1" + "0" * 40}),
        (ByInt, [-(10**38) + 1], {"N": "-" + "9" * 38}),
        (ByTime, [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)], {"N": "0"}),
        (ByTime, [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)], {"N": "-0.000001"}),
        (ByTime, [dt.datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=dt.UTC)], {"N": "1767225600.5"}),
        (ByBytes, [b"\xff\xfe"], {"B": "//4="}),
        (ByUUID, [uuid.UUID(int=255)], {"B": "AAAAAAAAAAAAAAAAAAAA/w=="}),
    ],
)
def test_equal_ids_are_one_key(model: type[Any], ids: Sequence[Any], stored: Any) -> None:
    assert [key_of(model, id) for id in ids] == [{"id": stored}] * len(ids)
    assert read(model, {"id": stored}).id == ids[0]


@pytest.mark.parametrize(
    ("model", "stored"),
    [
        (ByInt, {"N": "1.5"}),
        (ByLevel, {"N": "2"}),
        (ByTime, {"N": "0.0000001"}),
        (ByTime, {"N": "1" + "0" * 20}),
        (ByTime, {"N": "-62135596800.5"}),
        (ByUUID, {"B": "//4="}),
        (ByBytes, {"B": "//5="}),
        (ByBytes, {"B": ""}),
    ],
)
def test_a_key_that_is_no_id_of_the_class_is_nobodys(model: type[Any], stored: Any) -> None:
    assert read(model, {"id": stored}) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
@example(Decimal("1E-131"))
@example(Decimal("1E+126"))
@example(Decimal("1." + "1" * 40))
def test_a_number_is_stored_or_refused(value: Decimal) -> None:
    try:
        key = key_of(ByDecimal, value)
    except InvalidKey:
        # `normalize` would round to the digits of the context.
        digits = len("".join(map(str, value.as_tuple().digits)).strip("0"))
        assert digits > 38 or not -130 <= value.adjusted() <= 125
    except AdjoinError:
        assert not -130 <= value.adjusted() <= 125
    else:
        assert read(ByDecimal, key).id == value


# --- definitions and shapes --------------------------------------------------------------------


class Event(Node, key=("user", "at")):
    user: int
    at: dt.datetime
    what: str = ""


EVENTS: dict[str, Any] = {
    "partition_key": "user",
    "sort_key": "at",
    "reverse": None,
    "keys": {Event: Keys(partition="{user}", sort="{at}")},
}


def test_the_definition_has_the_types() -> None:
    layout = bound(Event, **EVENTS, types={"user": "N", "at": "N"}, indexes=[Index("ByTime", "at", "user")])
    assert layout.definition.keys == (KeyAttribute("user", "N"), KeyAttribute("at", "N"))
    assert layout.definition.indexes[0].keys == (KeyAttribute("at", "N"), KeyAttribute("user", "N"))
    assert layout.start_names("ByTime") == ("user", "at")
    assert layout.shape(layout.schema.node(Event)).written == {"user": "{user}", "at": "{at}"}
    alone = only(ByInt)
    assert alone.definition.keys == (KeyAttribute("id", "N"),)
    assert alone.start_names(None) == ("id",)
    assert alone.shape(alone.schema.node(ByInt)).written == {"id": "{id}"}
    assert only(ByText, types={}).items(ByText(id="a#b")) == ({"id": {"S": "BY_TEXT#a%23b"}},)


def test_a_sort_key_may_be_typed_alone() -> None:
    layout = bound(Event, **{**EVENTS, "keys": {Event: Keys(partition="u-{user}", sort="{at}")}}, types={"at": "N"})
    event = Event(user=5, at=dt.datetime(1970, 1, 2, tzinfo=dt.UTC))
    (item,) = layout.items(event)
    assert item == {"user": {"S": "u-5"}, "at": {"N": "86400"}, "what": {"S": ""}}
    assert layout.read(item) == event
    kind = layout.schema.node(Event)
    assert layout.id_in(kind, layout.text_of(kind, item)) == (5, event.at)


# --- refusals ----------------------------------------------------------------------------------


class Mixed(Enum):
    ONE = 1
    TEXT = "x"


class ByMixed(Node):
    id: Mixed


class ByDate(Node):
    id: dt.date


class Claimed(Node):
    id: int
    email: Annotated[str, Unique()]


class Aged(Node):
    id: int
    age: Annotated[int, Indexed()]


class Twice(Node):
    id: int
    age: Annotated[int, Indexed()]
    size: Annotated[int, Indexed()]


class Device(Node):
    id: str


class Reading(Child[Device], key=("at",)):
    at: int


class Person(Node):
    id: int
    follows: Annotated[int, Count("Follows")] = 0


class Follows(Edge[Person, Person]):
    pass


class Named(Node):
    id: int
    name: str = ""


class Likes(Edge[Named, Named]):
    name: Annotated[str, Copy("source.name")] = ""


class Other(Node):
    id: int


class Beside(Edge[Other, Other]):
    pass


class Page(Node):
    id: str
    title: str = ""


class Links(Edge[Page, Page]):
    weight: int = 0


class Cites(Edge[Page, Page], key=("line",)):
    line: int


class Tagged(Node):
    id: str
    tag: bytes = b""


BOTH: dict[str, Any] = {"partition_key": "a", "sort_key": "b", "types": {"a": "N", "b": "N"}, "reverse": None}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: bound(ByBytes), r"ByBytes\.id is bytes, and 'PK' is text, so '\{label\}#\{id\}' cannot hold it"),
        (lambda: only(ByText), "is a number in the table .* so it holds an int, a Decimal or a datetime as it is"),
        (lambda: only(ByMixed), "is a number in the table"),
        (lambda: only(ByDate), "is a number in the table"),
        (lambda: only(ByInt, type="B"), "is binary in the table .* so it holds bytes or a UUID as it is"),
        (lambda: only(ByInt, keys={ByInt: Keys(partition="{id:08}")}), "no transform"),
        (lambda: only(ByInt, keys={ByInt: Keys(partition="U#{id}")}), "one placeholder without text around it"),
        (lambda: only(ByInt, tenant="t"), "no tenant can have a part of it"),
        (lambda: only(ByInt, keys={ByInt: Keys(sort="{id}")}), "has no effect: the table has a partition key only"),
        (lambda: only(ByInt, Other), r"can have the same partition key \{id\}; change a label"),
        (
            lambda: bound(Event, **EVENTS, types={"when": "N"}),
            r"names 'when', which is not a key of the table \(user and at\)",
        ),
        (lambda: bound(Event, **EVENTS, types={"at": "X"}), "the key 'at' has the type 'X' in types="),
        (lambda: bound(Event, **{**EVENTS, "sort_key": None}, types={"user": "N"}), "has no effect: the table has a"),
        (
            lambda: only(Event, partition_key="user", types={}, keys={Event: Keys(partition="{user}")}),
            "do not tell 'at', which is part of its id",
        ),
        (
            lambda: bound(
                Event,
                **{**EVENTS, "keys": {Event: Keys(partition="{user}.events", sort="{at}")}},
                types={"at": "N"},
            ),
            r"separate parts by '\.', which such a key may contain",
        ),
        (
            lambda: bound(Tagged, indexes=[Index("I", "IPK")], keys={Tagged: Keys(indexes={"I": "{tag}"})}),
            r"Tagged\.tag is bytes, and 'IPK' is text, .* types=\{'IPK': \"B\"\}",
        ),
        (
            lambda: bound(
                Tagged,
                indexes=[Index("I", "IPK", types={"IPK": "N"})],
                keys={Tagged: Keys(indexes={"I": "{tag}"})},
            ),
            "is a number in the table",
        ),
        (
            lambda: bound(
                Device,
                Reading,
                partition_key="device",
                sort_key="at",
                types={"at": "N"},
                keys={Device: Keys(partition="{id}"), Reading: Keys(sort="{at}")},
            ),
            r"the key '#META' of Device is not text .* a second key field, as in key=\('id', 'at'\), or its id, as in",
        ),
        (lambda: only(Named, Likes, types={}), "Likes is a class of edges, and the table has a partition key only"),
        (
            lambda: only(Page, Links, types={}, keys={Links: Keys(partition="{source.id}|links")}),
            r"the partition key \{source\.id\}\|links of Links does not contain its target",
        ),
        (
            lambda: only(Page, Links, types={}, keys={Links: Keys(partition="links|{target.id}")}),
            r"the partition key links\|\{target\.id\} of Links does not contain its source",
        ),
        (
            lambda: only(Page, Cites, types={}, keys={Cites: Keys(partition="{source.id}|{target.id}")}),
            r"Cites has the key field 'line', but its partition key \{source\.id\}\|\{target\.id\} does not contain it",
        ),
        (
            lambda: only(Page, Links, types={}, keys={Links: Keys(partition="{source.id}|{target.id}", sort="x")}),
            "the sort key 'x' of Links has no effect: the table has a partition key only",
        ),
        (
            lambda: only(Other, Beside, keys={Beside: Keys(partition="{source.id}|{target.id}")}),
            "the key .* of Beside is not text in the table .* so it is one placeholder",
        ),
        (
            lambda: only(Claimed),
            r"Claimed\.email is marked Unique\(\), .* this table cannot hold: the key 'id' of the table is a number",
        ),
        (
            lambda: only(Aged),
            r"Aged\.age is marked Indexed\(\), .* the key 'id' of the table is a number; give the layout",
        ),
        (lambda: only(Twice, shards=1), r"Twice has two fields that are marked Indexed\(\), age and size"),
        (
            lambda: bound(Person, Follows, **BOTH, keys={Person: Keys(sort="{id}"), Follows: Keys(sort="{target}")}),
            r"Person\.follows is an aggregate, .*: the key 'a' of the table is a number",
        ),
        (
            lambda: bound(Named, Likes, **BOTH, keys={Named: Keys(sort="{id}"), Likes: Keys(sort="{target}")}),
            r"Likes\.name is a copied field, .*: the key 'a' of the table is a number",
        ),
        (
            lambda: only(Claimed, types={}),
            r"Claimed\.email is marked Unique\(\), .*: the table has the partition key 'id' only",
        ),
        (
            lambda: bound(Claimed, types={"SK": "B"}, keys={Claimed: Keys(sort="{id}")}),
            "the key '{id}' of Claimed is binary in the table",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(make: Any, reason: str) -> None:
    with pytest.raises(InvalidModel, match=reason):
        make()


def test_two_types_of_one_attribute_are_refused() -> None:
    indexes = [Index("I", "id", types={"id": "S"})]
    with pytest.raises(InvalidModel, match="'id' different types; give it one"):
        only(ByInt, indexes=indexes)


# --- what is nobody's --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "id", "key"), [(ByInt, 7, {"id": {"N": "7"}}), (ByText, "x", {"id": {"S": "BY_TEXT#x"}})]
)
def test_the_key_of_an_item_is_its_key_attributes(model: type[Any], id: Any, key: Item) -> None:
    layout = only(model) if model is ByInt else only(model, types={})
    (item,) = layout.items(model(id=id))
    assert layout.key_of({**item, "more": {"S": "x"}}) == key


def test_no_item_there_is_adjoins_own() -> None:
    layout = only(ByText, types={}, keys={ByText: Keys(partition="{id}")})
    for text in ("=", "x#=", "#=MAINTAIN"):
        assert not layout.is_bookkeeping({"id": {"S": text}})
    assert layout.why_no_own_items == "the table has the partition key 'id' only"
    assert only(ByInt).why_no_own_items == "the key 'id' of the table is a number"
    assert bound(ByText).why_no_own_items is None


# --- edges whose key could be that of a node ---------------------------------------------------


def test_a_node_is_not_read_as_an_edge_to_itself() -> None:
    layout = bound(
        Page,
        Links,
        reverse=Index("Back", "SK", "PK"),
        keys={Page: Keys(partition="{id}", sort="{id}"), Links: Keys(sort="{target}")},
    )
    (node,), (edge,) = layout.items(Page(id="a")), layout.items(Links(source="a", target="b"))
    kind = layout.schema.edge(Links)
    assert layout.decode(kind, node) is None
    assert layout.decode(kind, edge) == Links(source="a", target="b")
    assert (layout.read(node), layout.read(edge)) == (Page(id="a"), Links(source="a", target="b"))
