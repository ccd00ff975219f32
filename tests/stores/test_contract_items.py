"""The contract for single items: get, put, update, delete, and what an item may be."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import ConditionFailed, InvalidRequest, ItemTooLarge, TableNotFound
from adjoin.expressions import (
    Action,
    Add,
    Compare,
    Condition,
    Discard,
    Exists,
    Not,
    Path,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.requests import CreateTable, Delete, Get, ItemResponse, Put, Returned, Update
from adjoin.stores.interface import Store
from adjoin.values import AttributeValue, Item
from tests.stores.examples import b, item, key, keyed_by, n, one, put, reading, s, stored, writing

ABSENT = Not(Exists(attribute("PK")))
A_IS_ONE = Compare("=", attribute("a"), Value(n(1)))


def respond(store: Store, request: Get | Put | Update | Delete) -> ItemResponse:
    return one(store, request, ItemResponse)


# --- reading -----------------------------------------------------------------------------------


def test_get_finds_what_was_put(store: Store) -> None:
    whole = item("A", "1", a=n(1), nested={"M": {"x": {"L": [s("y"), {"NULL": True}, {"BOOL": False}]}}})
    put(store, "Plain", whole)
    assert respond(store, Get("Plain", key("A", "1"))) == ItemResponse(whole, reading(0.5, "Plain"))


def test_get_of_nothing_costs_as_much_as_something(store: Store) -> None:
    assert respond(store, Get("Plain", key("A", "1"))) == ItemResponse(None, reading(0.5, "Plain"))
    assert respond(store, Get("Plain", key("A", "1"), consistent=True)) == ItemResponse(None, reading(1.0, "Plain"))


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(4096, False, 0.5), (4096, True, 1.0), (4097, False, 1.0), (4097, True, 2.0), (409_600, True, 100.0)],
)
def test_units_of_a_get(store: Store, size: int, consistent: bool, units: float) -> None:
    # Names PK, SK and x take 5 bytes, the key values 2.
    put(store, "Plain", item("A", "1", x=s("x" * (size - 7))))
    assert respond(store, Get("Plain", key("A", "1"), consistent=consistent)).consumed == reading(units, "Plain")


def test_a_projection_cuts_the_item_but_not_the_cost(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1), m={"M": {"x": n(1), "y": n(2)}}, big=s("x" * 5000)))
    response = respond(store, Get("Plain", key("A", "1"), projection=(Path(("a",)), Path(("m", "y")))))
    assert response == ItemResponse({"a": n(1), "m": {"M": {"y": n(2)}}}, reading(1.0, "Plain"))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"PK": s("A")},
        {"PK": s("A"), "SK": n(1)},
        {"PK": s("A"), "XX": s("1")},
        {"PK": "A", "SK": "1"},
        {"PK": s("A"), "SK": s("1"), "x": s("2")},
    ],
)
def test_a_key_must_be_exactly_the_key(store: Store, bad: Item) -> None:
    requests: list[Get | Update | Delete] = [Get("Plain", bad), Update("Plain", bad, ()), Delete("Plain", bad)]
    for request in requests:
        with pytest.raises(InvalidRequest, match="The provided key element does not match the schema"):
            store.execute([request])


def test_an_unknown_table_is_named_with_those_there_are(store: Store) -> None:
    with pytest.raises(TableNotFound, match="has no table Nothing; the tables there are: Edges, Plain, Single"):
        store.execute([Get("Nothing", key("A", "1"))])


def test_a_table_without_sort_key(store: Store) -> None:
    put(store, "Single", {"id": s("1"), "a": n(1)}, {"id": s("2")})
    assert stored(store, "Single", {"id": s("1")}) == {"id": s("1"), "a": n(1)}
    respond(store, Update("Single", {"id": s("2")}, (Add(attribute("a"), n(2)),)))
    assert stored(store, "Single", {"id": s("2")}) == {"id": s("2"), "a": n(2)}
    respond(store, Delete("Single", {"id": s("1")}))
    assert stored(store, "Single", {"id": s("1")}) is None


@pytest.mark.parametrize(
    ("kind", "spelled", "same"),
    [
        ("S", s("a\0é\U0010ffff"), s("a\0é\U0010ffff")),
        ("N", n("1.0"), n(1)),
        ("N", n("-1E2"), n("-100.00")),
        ("B", b(b"\0\xff"), b(b"\0\xff")),
    ],
)
def test_keys_of_every_type(store: Store, kind: str, spelled: AttributeValue, same: AttributeValue) -> None:
    store.execute([CreateTable(keyed_by(kind))])
    put(store, f"Keyed.{kind}", {"PK": spelled, "SK": spelled})
    assert stored(store, f"Keyed.{kind}", {"PK": same, "SK": same}) is not None


# --- what an item may be -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (n("007"), n(7)),
        (n("1.50"), n("1.5")),
        (n("-0"), n(0)),
        (n("1E+3"), n(1000)),
        (n("12345678901234567890123456789012345678"), n("12345678901234567890123456789012345678")),
        (n("1e-130"), n("0." + "0" * 129 + "1")),
        (n("9.9999999999999999999999999999999999999E+125"), n("9" * 38 + "0" * 88)),
        ({"NS": ["3", "1.0", "2"]}, {"NS": ["1", "2", "3"]}),
        ({"SS": ["b", "a"]}, {"SS": ["a", "b"]}),
        ({"L": [{"M": {"x": n("1.0")}}]}, {"L": [{"M": {"x": n(1)}}]}),
        (s(""), s("")),
        ({"B": ""}, {"B": ""}),
        ({"L": []}, {"L": []}),
        ({"M": {}}, {"M": {}}),
        ({"M": {"": s("")}}, {"M": {"": s("")}}),
    ],
)
def test_values_have_one_form(store: Store, given: AttributeValue, kept: AttributeValue) -> None:
    put(store, "Plain", item("A", "1", x=given))
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", x=kept)


def nested(levels: int) -> AttributeValue:
    value: AttributeValue = s("core")
    for _ in range(levels):
        value = {"L": [value]}
    return value


def test_32_levels_of_nesting_are_allowed(store: Store) -> None:
    put(store, "Plain", item("A", "1", x=nested(32)))
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", x=nested(32))


BAD_VALUES: list[tuple[Any, str]] = [
    (nested(33), "Nesting Levels have exceeded supported limits"),
    ({}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
    (None, "None has no type; a value is written as {type: value}"),
    ({"L": ["x"]}, "'x' has no type; a value is written as {type: value}"),
    ({"S": "a", "N": "1"}, "Supplied AttributeValue has more than one datatypes set"),
    ({"X": "a"}, "'X' is not a type of value"),
    ({"S": 1}, "a S value must be a str, not 1"),
    (n("abc"), "The parameter cannot be converted to a numeric value: abc"),
    (n(" 1"), "The parameter cannot be converted to a numeric value:  1"),
    (n("1_0"), "The parameter cannot be converted to a numeric value: 1_0"),
    (n("NaN"), "The parameter cannot be converted to a numeric value: NaN"),
    ({"N": 1}, "a N value must be a str, not 1"),
    (n("1" * 39), "has more than 38 significant digits"),
    (n("1e126"), "is outside DynamoDB's range"),
    (n("1e999999"), "is outside DynamoDB's range"),
    (n("1e-131"), "is outside DynamoDB's range"),
    ({"B": "not base64"}, "'not base64' is not base64"),
    ({"BOOL": 1}, "a BOOL value must be a bool, not 1"),
    ({"NULL": False}, "Null attribute value types must have the value of true"),
    ({"L": "x"}, "a L value must be a list"),
    ({"M": []}, "a M value must be a dict"),
    ({"SS": []}, "An string set  may not be empty"),
    ({"SS": ["a", "a"]}, r"Input collection \[a, a\] contains duplicates"),
    ({"NS": ["1", "1.0"]}, r"Input collection \[1, 1.0\] contains duplicates"),
    ({"L": [{"SS": []}]}, "An string set  may not be empty"),
    (s("half \ud800"), "half of a surrogate pair"),
    ({"M": {"half \ud800": n(1)}}, "half of a surrogate pair"),
]


@pytest.mark.parametrize(("value", "message"), BAD_VALUES)
def test_bad_values_are_refused_and_nothing_is_written(store: Store, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.execute([Put("Plain", item("A", "1", x=value))])
    with pytest.raises(InvalidRequest, match=message):
        store.execute([Update("Plain", key("A", "1"), (Set(attribute("x"), Value(value)),))])
    assert stored(store, "Plain", key("A", "1")) is None


BAD_KEYS: list[tuple[Item, str]] = [
    ({"PK": s("A")}, "Missing the key SK in the item"),
    ({"PK": "A", "SK": "1"}, "'A' has no type"),  # type: ignore[dict-item]
    ({"PK": n(1), "SK": s("1")}, "Type mismatch for key PK expected: S actual: N"),
    (item("", "1"), "cannot contain an empty string value. Key: PK"),
    (item("A", ""), "cannot contain an empty string value. Key: SK"),
    (item("x" * 2049, "1"), "Size of hashkey has exceeded the maximum size limit of2048 bytes; Key: PK"),
    (item("é" * 1025, "1"), "Size of hashkey has exceeded the maximum size limit of2048 bytes; Key: PK"),
    (item("A", "x" * 1025), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes; Key: SK"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_KEYS)
def test_bad_keys_are_refused(store: Store, bad: Item, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.execute([Put("Plain", bad)])


BAD_INDEX_KEYS: list[tuple[AttributeValue, str]] = [
    (n(1), "Type mismatch for Index Key RPK Expected: S Actual: N IndexName: Reverse"),
    (s(""), "A value specified for a secondary index key is not supported. .* IndexName: Reverse, IndexKey: RPK"),
    (s("x" * 2049), "Size of hashkey has exceeded .* IndexName: Reverse, IndexKey: RPK"),
]


@pytest.mark.parametrize(("value", "message"), BAD_INDEX_KEYS)
def test_bad_index_keys_are_refused(store: Store, value: AttributeValue, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.execute([Put("Edges", item("A", "1", RPK=value))])
    with pytest.raises(InvalidRequest, match=message):
        store.execute([Update("Edges", key("A", "1"), (Set(attribute("RPK"), Value(value)),))])


def test_the_longest_keys_are_allowed(store: Store) -> None:
    longest = key("é" * 1024, "é" * 512)
    put(store, "Plain", longest)
    assert stored(store, "Plain", longest) == longest
    with pytest.raises(InvalidRequest, match="1024 bytes; IndexName: Inverted, IndexKey: PK"):
        store.execute([Put("Edges", longest)])


def test_an_item_has_at_most_400_kb(store: Store) -> None:
    put(store, "Plain", item("A", "1", x=s("x" * (409_600 - 7))))
    with pytest.raises(ItemTooLarge, match="Item size has exceeded the maximum allowed size: 409601 bytes"):
        store.execute([Put("Plain", item("A", "2", x=s("x" * (409_600 - 6))))])
    with pytest.raises(ItemTooLarge, match="Item size to update has exceeded the maximum allowed size"):
        store.execute([Update("Plain", key("A", "1"), (Set(attribute("y"), Value(s(""))),))])


# --- put and delete ----------------------------------------------------------------------------


def test_put_replaces_and_returns_the_old_item(store: Store) -> None:
    first, second = item("A", "1", a=n(1)), item("A", "1", c=n(2))
    assert respond(store, Put("Plain", first, return_old=True)) == ItemResponse(None, writing("Plain", table=1.0))
    assert respond(store, Put("Plain", second, return_old=True)).item == first
    assert respond(store, Put("Plain", first)).item is None
    assert stored(store, "Plain", key("A", "1")) == first


def test_put_is_charged_the_larger_of_before_and_after(store: Store) -> None:
    large, small = item("A", "1", x=s("x" * 3000)), item("A", "1")
    units = [respond(store, Put("Plain", each)).consumed for each in (large, small, small, large)]
    assert units == [writing("Plain", table=each) for each in (3.0, 3.0, 1.0, 3.0)]


def test_delete_is_charged_what_it_deletes(store: Store) -> None:
    large = item("A", "1", x=s("x" * 3000))
    put(store, "Plain", large)
    deleted = respond(store, Delete("Plain", key("A", "1"), return_old=True))
    assert deleted == ItemResponse(large, writing("Plain", table=3.0))
    assert respond(store, Delete("Plain", key("A", "1"), return_old=True)) == ItemResponse(
        None, writing("Plain", table=1.0)
    )


def test_the_given_item_is_left_alone(store: Store) -> None:
    given = item("A", "1", x=n("1.0"), y={"SS": ["b", "a"]})
    put(store, "Plain", given)
    assert given == item("A", "1", x=n("1.0"), y={"SS": ["b", "a"]})


# --- conditions --------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [ABSENT, Compare("=", attribute("a"), Value(n(2)))])
def test_a_failed_condition_tells_the_stored_item_and_changes_nothing(store: Store, condition: Condition) -> None:
    present = item("A", "1", a=n(1))
    put(store, "Plain", present)
    requests: list[Put | Update | Delete] = [
        Put("Plain", item("A", "1"), condition),
        Update("Plain", key("A", "1"), (Remove(attribute("a")),), condition),
        Delete("Plain", key("A", "1"), condition),
    ]
    for request in requests:
        with pytest.raises(ConditionFailed, match="The conditional request failed") as caught:
            store.execute([request])
        assert caught.value.item == present
    assert stored(store, "Plain", key("A", "1")) == present


def test_a_condition_on_an_absent_item(store: Store) -> None:
    with pytest.raises(ConditionFailed) as caught:
        store.execute([Put("Plain", item("A", "1"), Exists(attribute("PK")))])
    assert caught.value.item is None
    store.execute([Put("Plain", item("A", "1", a=n(1)), ABSENT)])
    store.execute([Update("Plain", key("A", "1"), (Add(attribute("a"), n(1)),), A_IS_ONE)])
    store.execute([Delete("Plain", key("A", "1"), Compare(">", attribute("a"), Value(n(1))))])
    assert stored(store, "Plain", key("A", "1")) is None


# --- updates -----------------------------------------------------------------------------------

BEFORE = item("A", "1", a=n(1), m={"M": {"x": n(1), "y": n(2)}}, gone=s("g"))
ACTIONS: tuple[Action, ...] = (
    Add(attribute("a"), n(2)),
    Set(Path(("m", "x")), Value(n(9))),
    Remove(attribute("gone")),
)
AFTER = item("A", "1", a=n(3), m={"M": {"x": n(9), "y": n(2)}})


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("none", None),
        ("old", BEFORE),
        ("new", AFTER),
        ("updated_old", {"a": n(1), "m": {"M": {"x": n(1)}}, "gone": s("g")}),
        ("updated_new", {"a": n(3), "m": {"M": {"x": n(9)}}}),
    ],
)
def test_what_an_update_returns(store: Store, returns: Returned, expected: Item | None) -> None:
    put(store, "Plain", BEFORE)
    response = respond(store, Update("Plain", key("A", "1"), ACTIONS, returns=returns))
    assert response == ItemResponse(expected, writing("Plain", table=1.0))
    assert stored(store, "Plain", key("A", "1")) == AFTER


@pytest.mark.parametrize(
    ("returns", "expected"),
    [("none", None), ("old", None), ("updated_old", None), ("updated_new", {"a": n(2)})],
)
def test_what_an_update_that_creates_returns(store: Store, returns: Returned, expected: Item | None) -> None:
    update = Update("Plain", key("A", "1"), (Add(attribute("a"), n(2)),), returns=returns)
    assert respond(store, update).item == expected
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))


def test_an_update_that_only_takes_away_creates_nothing(store: Store) -> None:
    respond(store, Update("Plain", key("A", "1"), (Remove(attribute("a")),)))
    respond(store, Update("Plain", key("A", "1"), (Discard(attribute("a"), {"SS": ["x"]}),)))
    assert stored(store, "Plain", key("A", "1")) is None


def test_a_rejected_update_changes_nothing(store: Store) -> None:
    put(store, "Plain", BEFORE)
    update = Update("Plain", key("A", "1"), (Remove(attribute("a")), Add(attribute("gone"), n(1))))
    with pytest.raises(InvalidRequest, match="incorrect data type"):
        store.execute([update])
    assert stored(store, "Plain", key("A", "1")) == BEFORE


# --- batches of requests -----------------------------------------------------------------------


def test_one_failing_request_of_a_batch_leaves_the_others(store: Store) -> None:
    with pytest.raises(ConditionFailed):
        store.execute(
            [
                Put("Plain", item("A", "1")),
                Put("Plain", item("A", "2"), Exists(attribute("PK"))),
                Put("Plain", item("", "3")),
                Put("Plain", item("A", "4")),
            ]
        )
    there = [stored(store, "Plain", key("A", each)) is not None for each in "124"]
    assert there == [True, False, True]


def test_an_empty_batch(store: Store) -> None:
    assert store.execute([]) == []
