"""The contract for what an item may hold: values, numbers, keys, sizes, and the one form of each."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import ItemTooLarge
from adjoin.expressions import Add, Arithmetic, Compare, Path, Set, Value, attribute
from adjoin.requests import CreateTable, Get, ItemResponse, Put, Query, Update
from adjoin.stores.interface import Store
from adjoin.values import AttributeValue, Item
from tests.stores.examples import (
    b,
    item,
    key,
    keyed_by,
    n,
    one,
    page,
    put,
    refused,
    s,
    stored,
    with_sorted_sets,
)

LARGEST = "9." + "9" * 37 + "E+125"
SMALLEST = "1E-130"
DIGITS_38 = "12345678901234567890123456789012345678"

# --- one form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param(n("007"), n(7), id="leading zeros"),
        pytest.param(n("1.50"), n("1.5"), id="trailing zeros"),
        pytest.param(n("+1"), n(1), id="plus sign"),
        pytest.param(n(".5"), n("0.5"), id="no leading digit"),
        pytest.param(n("-0"), n(0), id="negative zero"),
        pytest.param(n("0E9"), n(0), id="zero with exponent"),
        pytest.param(n("1E+3"), n(1000), id="exponent"),
        pytest.param(n("1e-3"), n("0.001"), id="small exponent"),
        pytest.param(n(DIGITS_38), n(DIGITS_38), id="38 digits"),
        pytest.param(n("-0." + DIGITS_38), n("-0." + DIGITS_38), id="38 digits of a fraction"),
        pytest.param(n(f"{DIGITS_38}E-20"), n("123456789012345678.90123456789012345678"), id="38 digits on both sides"),
        pytest.param(n("1" + "0" * 125), n("1" + "0" * 125), id="126 places, one digit"),
        pytest.param(n(SMALLEST), n("0." + "0" * 129 + "1"), id="the smallest"),
        pytest.param(n("-" + SMALLEST), n("-0." + "0" * 129 + "1"), id="the smallest below zero"),
        pytest.param(n(LARGEST), n("9" * 38 + "0" * 88), id="the largest"),
        pytest.param(n("-" + LARGEST), n("-" + "9" * 38 + "0" * 88), id="the largest below zero"),
        pytest.param({"NS": ["3", "1.0", "2"]}, {"NS": ["1", "2", "3"]}, id="numbers of a set"),
        pytest.param({"SS": ["b", "a"]}, {"SS": ["a", "b"]}, id="set of text"),
        pytest.param({"BS": ["Yg==", "YQ=="]}, {"BS": ["YQ==", "Yg=="]}, id="set of binary"),
        pytest.param({"L": [{"M": {"x": n("1.0")}}]}, {"L": [{"M": {"x": n(1)}}]}, id="numbers deep inside"),
        pytest.param(s(""), s(""), id="empty text"),
        pytest.param(s("é\0\u2028\U0001f600"), s("é\0\u2028\U0001f600"), id="any text"),
        pytest.param({"B": ""}, {"B": ""}, id="empty binary"),
        pytest.param({"L": []}, {"L": []}, id="empty list"),
        pytest.param({"M": {}}, {"M": {}}, id="empty map"),
        pytest.param({"M": {"": s("")}}, {"M": {"": s("")}}, id="empty name in a map"),
        pytest.param({"NULL": True}, {"NULL": True}, id="null"),
        pytest.param({"BOOL": False}, {"BOOL": False}, id="false"),
    ],
)
def test_values_have_one_form(store: Store, given: AttributeValue, kept: AttributeValue) -> None:
    put(store, "Plain", item("A", "1", x=given))
    assert with_sorted_sets(stored(store, "Plain", key("A", "1"))) == item("A", "1", x=kept)
    store.execute([Update("Plain", key("A", "2"), (Set(attribute("x"), Value(given)),))])
    assert with_sorted_sets(stored(store, "Plain", key("A", "2"))) == item("A", "2", x=kept)


@pytest.mark.parametrize("other", ["1.5", "1.50", "15E-1", "0.15e1", "+1.5"])
def test_numbers_are_equal_however_they_are_spelled(store: Store, other: str) -> None:
    put(store, "Plain", item("A", "1", x=n("1.5")))
    same = Compare("=", attribute("x"), Value(n(other)))
    store.execute([Update("Plain", key("A", "1"), (Set(attribute("y"), Value(n(1))),), same)])
    assert page(store, Query("Plain", ("PK", s("A")), filter=same)).count == 1


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        pytest.param("0.1", "0.2", "0.3", id="fractions"),
        pytest.param("1", "1E22", "10000000000000000000001", id="beyond float"),
        pytest.param(DIGITS_38, "1", "12345678901234567890123456789012345679", id="38 digits"),
        pytest.param("9" * 38, "1", "1" + "0" * 38, id="carry to 39 places"),
        pytest.param("1E-130", "-1E-130", "0", id="to zero"),
        pytest.param("5", "-7.5", "-2.5", id="below zero"),
    ],
)
def test_sums_are_exact(store: Store, before: str, added: str, after: str) -> None:
    put(store, "Plain", item("A", "1", x=n(before)))
    store.execute([Update("Plain", key("A", "1"), (Add(attribute("x"), n(added)),))])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", x=n(after))
    difference = Set(attribute("x"), Arithmetic("-", attribute("x"), Value(n(added))))
    store.execute([Update("Plain", key("A", "1"), (difference,))])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", x=n(ordinary(before)))


def ordinary(number: str) -> str:
    return "0." + "0" * 129 + "1" if number == SMALLEST else number


@pytest.mark.parametrize(
    ("before", "added"),
    [
        pytest.param("9E125", "9E125", id="too large"),
        pytest.param("1E50", "1", id="too many digits"),
        pytest.param(DIGITS_38, "0.1", id="39 digits"),
    ],
)
def test_sums_that_cannot_be_stored(store: Store, before: str, added: str) -> None:
    put(store, "Plain", item("A", "1", x=n(before)))
    kept = stored(store, "Plain", key("A", "1"))
    # "Number overflow" is what the service says of too many digits as well.
    with refused(store, "Number overflow"):
        store.execute([Update("Plain", key("A", "1"), (Add(attribute("x"), n(added)),))])
    assert stored(store, "Plain", key("A", "1")) == kept


# --- what a value may be -----------------------------------------------------------------------


def nested(levels: int) -> AttributeValue:
    value: AttributeValue = s("core")
    for _ in range(levels):
        value = {"L": [value]}
    return value


def test_32_levels_are_allowed(store: Store) -> None:
    # The text in 31 lists is on level 32.
    put(store, "Plain", item("A", "1", x=nested(31)))
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", x=nested(31))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(nested(32), "Nesting Levels have exceeded supported limits", id="33 levels"),
        pytest.param({}, "Supplied AttributeValue is empty, must contain exactly", id="no type"),
        pytest.param({"S": "a", "N": "1"}, "Supplied AttributeValue has more than one datatypes set", id="two types"),
        pytest.param({"X": "a"}, "", id="unknown type"),
        pytest.param({"S": 1}, "", id="number for text"),
        pytest.param({"N": 1}, "", id="number for a number"),
        pytest.param({"BOOL": 1}, "", id="number for a boolean"),
        pytest.param({"L": "x"}, "", id="text for a list"),
        pytest.param({"M": []}, "", id="list for a map"),
        pytest.param({"B": "not base64"}, "", id="no base64"),
        pytest.param(n("abc"), "The parameter cannot be converted to a numeric value: abc", id="no number"),
        pytest.param(n(" 1"), "The parameter cannot be converted to a numeric value:  1", id="space"),
        pytest.param(n("1_0"), "The parameter cannot be converted to a numeric value: 1_0", id="underscore"),
        pytest.param(n("NaN"), "The parameter cannot be converted to a numeric value: NaN", id="NaN"),
        pytest.param(n("Infinity"), "The parameter cannot be converted to a numeric value: Infinity", id="infinity"),
        pytest.param(n("1" * 39), "Attempting to store more than 38 significant digits in a Number", id="39 digits"),
        pytest.param(n("1e126"), "Number overflow. Attempting to store a number with magnitude larger", id="1e126"),
        pytest.param(n("-1e126"), "Number overflow. Attempting to store a number with magnitude larger", id="-1e126"),
        pytest.param(n("1e99999999999"), "Number overflow. Attempting to store a number with", id="1e99999999999"),
        pytest.param(n("1e-131"), "Number underflow. Attempting to store a number with magnitude", id="1e-131"),
        pytest.param(n("9e-131"), "Number underflow. Attempting to store a number with magnitude", id="9e-131"),
        pytest.param({"NULL": False}, "Null attribute value types must have the value of true", id="null is false"),
        pytest.param({"SS": []}, "An string set  may not be empty", id="empty set of text"),
        pytest.param({"NS": []}, "An number set  may not be empty", id="empty set of numbers"),
        pytest.param({"BS": []}, "Binary sets should not be empty", id="empty set of binary"),
        pytest.param({"SS": ["a", "a"]}, r"Input collection \[a, a\] contains duplicates", id="text twice"),
        pytest.param({"NS": ["1", "1.0"]}, "Input collection contains duplicates", id="number twice"),
        pytest.param({"BS": ["YQ==", "YQ=="]}, r"Input collection \[YQ==, YQ==\]of type BS", id="binary twice"),
        pytest.param({"L": [{"SS": []}]}, "An string set  may not be empty", id="empty set in a list"),
        pytest.param(s("half \ud800"), "", id="half a character"),
        pytest.param({"M": {"half \ud800": n(1)}}, "", id="half a character in a name"),
    ],
)
def test_bad_values_are_refused_and_nothing_is_written(store: Store, value: Any, words: str) -> None:
    with refused(store, words):
        store.execute([Put("Plain", item("A", "1", x=value))])
    with refused(store, words):
        store.execute([Update("Plain", key("A", "1"), (Set(attribute("x"), Value(value)),))])
    assert stored(store, "Plain", key("A", "1")) is None


def test_an_item_has_at_most_400_kb(store: Store) -> None:
    # Names PK, SK and x take 5 bytes, the key values 2.
    put(store, "Plain", item("A", "1", x=s("x" * (409_600 - 7))))
    with refused(store, "Item size has exceeded the maximum allowed size", ItemTooLarge):
        store.execute([Put("Plain", item("A", "2", x=s("x" * (409_600 - 6))))])
    with refused(store, "Item size to update has exceeded the maximum allowed size", ItemTooLarge):
        store.execute([Update("Plain", key("A", "1"), (Set(attribute("y"), Value(s(""))),))])
    assert stored(store, "Plain", key("A", "2")) is None


# What numbers take was measured at the service: half a byte a digit, rounded up on either side of the point.
NUMBER_SIZES = [("0", 1), ("1", 2), ("12", 2), ("123", 3), ("1010", 3), ("0.0000001", 2), ("1E125", 2), ("1.5", 3)]
NUMBER_SIZES += [("3.14159", 5), ("123456", 4), ("-1", 3), (DIGITS_38, 20)]


@pytest.mark.parametrize(("number", "size"), NUMBER_SIZES)
def test_the_size_of_a_number(store: Store, number: str, size: int) -> None:
    # Names PK, SK, n and x take 6 bytes, the key values 2.
    text = s("x" * (409_600 - 8 - size))
    put(store, "Plain", item("A", "1", n=n(number), x=text))
    with refused(store, "Item size has exceeded the maximum allowed size", ItemTooLarge):
        store.execute([Put("Plain", item("A", "1", n=n(number), x=s(text["S"] + "x")))])


def test_characters_count_as_bytes(store: Store) -> None:
    with refused(store, "Item size has exceeded the maximum allowed size", ItemTooLarge):
        store.execute([Put("Plain", item("A", "1", x=s("é" * 204_797)))])
    put(store, "Plain", item("A", "1", x=s("é" * 204_796)))


# --- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "spelled", "same"),
    [
        pytest.param("S", s("a\0é\U0010ffff"), s("a\0é\U0010ffff"), id="text"),
        pytest.param("N", n("1.0"), n(1), id="number"),
        pytest.param("N", n("-1E2"), n("-100.00"), id="number with exponent"),
        pytest.param("N", n(DIGITS_38), n(DIGITS_38), id="38 digits"),
        pytest.param("N", n(LARGEST), n("9" * 38 + "0" * 88), id="the largest"),
        pytest.param("N", n("-" + SMALLEST), n("-0.1e-129"), id="the smallest below zero"),
        pytest.param("B", b(b"\0\xff"), b(b"\0\xff"), id="binary"),
    ],
)
def test_keys_of_every_type(store: Store, kind: str, spelled: AttributeValue, same: AttributeValue) -> None:
    store.execute([CreateTable(keyed_by(kind))])
    put(store, f"Keyed.{kind}", {"PK": spelled, "SK": spelled})
    assert stored(store, f"Keyed.{kind}", {"PK": same, "SK": same}) is not None
    assert page(store, Query(f"Keyed.{kind}", ("PK", same))).count == 1


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        pytest.param({"PK": s("A")}, "Missing the key SK in the item", id="no sort key"),
        pytest.param({"SK": s("A")}, "Missing the key PK in the item", id="no partition key"),
        pytest.param(
            {"PK": n(1), "SK": s("1")}, "Type mismatch for key PK expected: S actual: N", id="type of partition key"
        ),
        pytest.param(
            {"PK": s("A"), "SK": {"NULL": True}}, "Type mismatch for key SK expected: S actual: NULL", id="null"
        ),
        pytest.param(item("", "1"), "cannot contain an empty string value. Key: PK", id="empty partition key"),
        pytest.param(item("A", ""), "cannot contain an empty string value. Key: SK", id="empty sort key"),
        pytest.param(
            item("x" * 2049, "1"), "Size of hashkey has exceeded the maximum size limit of2048 bytes", id="2049 bytes"
        ),
        pytest.param(
            item("é" * 1025, "1"),
            "Size of hashkey has exceeded the maximum size limit of2048 bytes",
            id="2050 bytes of 1025 characters",
        ),
        pytest.param(
            item("A", "x" * 1025),
            "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
            id="1025 bytes",
        ),
        pytest.param(
            item("A", "é" * 513),
            "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
            id="1026 bytes of 513 characters",
        ),
    ],
)
def test_bad_keys_are_refused(store: Store, bad: Item, words: str) -> None:
    with refused(store, words):
        store.execute([Put("Plain", bad)])


@pytest.mark.parametrize("bad", [key("x" * 2049, "1"), key("A", "x" * 1025), key("", "1"), key("A", "")])
def test_nothing_is_looked_for_at_a_bad_key(store: Store, bad: Item) -> None:
    with refused(store):
        store.execute([Get("Plain", bad)])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(n(1), "Type mismatch for Index Key RPK Expected: S Actual: N IndexName: Reverse", id="type"),
        pytest.param(
            {"NULL": True}, "Type mismatch for Index Key RPK Expected: S Actual: NULL IndexName: Reverse", id="null"
        ),
        pytest.param(s(""), "The AttributeValue for a key attribute cannot contain an empty string value", id="empty"),
        pytest.param(s("x" * 2049), "2048 bytes", id="2049 bytes"),
    ],
)
def test_bad_index_keys_are_refused(store: Store, value: AttributeValue, words: str) -> None:
    # Also where the item lacks the other key of the index, and would not be in it.
    for rest in ({}, {"RSK": s("1")}):
        with refused(store, words):
            store.execute([Put("Edges", item("A", "1", RPK=value, **rest))])
    with refused(store, words):
        store.execute([Update("Edges", key("A", "1"), (Set(attribute("RPK"), Value(value)),))])
    assert stored(store, "Edges", key("A", "1")) is None


def test_the_longest_keys_are_allowed(store: Store) -> None:
    longest = key("é" * 1024, "é" * 512)
    put(store, "Plain", longest)
    assert stored(store, "Plain", longest) == longest


def test_a_key_must_fit_every_index_it_is_a_key_of(store: Store) -> None:
    # PK is the sort key of Inverted, where 1024 bytes are the limit.
    with refused(store, "1024 bytes"):
        store.execute([Put("Edges", key("x" * 1025, "1"))])
    put(store, "Edges", key("x" * 1024, "1"))


@pytest.mark.parametrize("path", [attribute("PK"), Path(("SK",))])
def test_a_key_cannot_be_updated(store: Store, path: Path) -> None:
    with refused(store, f"Cannot update attribute {path}. This attribute is part of the key"):
        store.execute([Update("Plain", key("A", "1"), (Set(path, Value(s("B"))),))])


def test_the_given_item_is_left_alone(store: Store) -> None:
    given = item("A", "1", x=n("1.0"), y={"SS": ["b", "a"]})
    assert one(store, Put("Plain", given), ItemResponse).item is None
    assert given == item("A", "1", x=n("1.0"), y={"SS": ["b", "a"]})
