"""Values and stored attributes: exact, canonical, and counted as DynamoDB counts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import Graph, InvalidValue
from adjoin.items import normal_item
from adjoin.values import attribute_size, canonical_number, decode, encode, item_size
from tests.models import Address, Colour, Everything, Rank

numbers = st.builds(
    lambda whole, exponent: Decimal(f"{whole}E{exponent}"),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-130, 87),
)


@pytest.mark.parametrize(
    ("given_number", "stored"),
    [
        ("1.0", "1"),
        ("1E5", "100000"),
        ("1e-7", "0.0000001"),
        ("-0", "0"),
        ("-0.50", "-0.5"),
        ("00012", "12"),
        ("1E+125", "1" + "0" * 125),
        ("9" * 38, "9" * 38),
        ("1E-130", "0." + "0" * 129 + "1"),
    ],
)
def test_a_number_has_one_spelling(given_number: str, stored: str) -> None:
    assert canonical_number(given_number) == stored


@pytest.mark.parametrize(
    "bad", ["1E126", "1E-131", "1E99999999", "-1E-99999999", "NaN", "Infinity", "1" * 39, "1,5", ""]
)
def test_a_number_out_of_range_is_refused(bad: str) -> None:
    with pytest.raises(InvalidValue):
        canonical_number(bad)


@given(numbers)
def test_numbers_keep_every_digit(number: Decimal) -> None:
    assert decode(encode(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or 1e-130 <= abs(x) < 1e126))
def test_floats_come_back_as_they_were(number: float) -> None:
    assert float(decode(encode(number))) == number


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("text", {"S": "text"}),
        (3, {"N": "3"}),
        (True, {"BOOL": True}),
        (None, {"NULL": True}),
        (b"\x00\xff", {"B": "AP8="}),
        ([1, "a"], {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"b": 2}, {"M": {"b": {"N": "2"}}}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        ({2, Decimal("1.50")}, {"NS": ["1.5", "2"]}),
        (frozenset({b"x"}), {"BS": ["eA=="]}),
        (set(), {"L": []}),
        (Colour.RED, {"S": "red"}),
        (Rank.HIGH, {"N": "2"}),
        (dt.date(2024, 3, 31), {"S": "2024-03-31"}),
        (dt.datetime(2024, 3, 31, 10), {"S": "2024-03-31T10:00:00"}),
        (
            dt.datetime(2024, 3, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            {"S": "2024-03-31T08:00:00+00:00"},
        ),
        (Address(street="Main", numbers=[1]), {"M": {"Street": {"S": "Main"}, "numbers": {"L": [{"N": "1"}]}}}),
    ],
)
def test_how_values_are_stored(value: Any, stored: dict[str, Any]) -> None:
    assert encode(value) == stored


@pytest.mark.parametrize("bad", [object(), 1j, float("nan"), "\ud800", {("a",): 1}])
def test_what_cannot_be_stored_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValue):
        encode(bad)


# Sizes that AWS documents: names and values, 1 byte for null and bool, 3 + 1 an element for documents,
# and a byte for two digits plus one for a number.
@pytest.mark.parametrize(
    ("attribute", "size"),
    [
        ({"S": "héllo"}, 6),
        ({"B": "AP8="}, 2),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"N": "0"}, 1),
        ({"N": "1"}, 2),
        ({"N": "-1"}, 3),
        ({"N": "123"}, 3),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}]}, 6),
        ({"M": {"k": {"S": "v"}}}, 6),
        ({"SS": ["ab", "c"]}, 3),
    ],
)
def test_sizes(attribute: dict[str, Any], size: int) -> None:
    assert attribute_size(attribute) == size
    assert item_size({"name": attribute}) == 4 + size


aware = st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))]))
everything = st.builds(
    Everything,
    id=st.uuids(),
    text=st.text(max_size=20),
    whole=st.integers(-(10**38) + 1, 10**38 - 1),
    exact=numbers,
    approximate=st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100),
    flag=st.booleans(),
    raw=st.binary(max_size=20),
    maybe=st.none() | st.integers(-5, 5),
    moment=st.datetimes() | aware.filter(lambda x: 2 < x.year < 9998),
    day=st.dates(),
    hour=st.times(),
    span=st.timedeltas(dt.timedelta(days=-1000), dt.timedelta(days=1000)),
    colour=st.sampled_from(Colour),
    rank=st.sampled_from(Rank),
    address=st.builds(Address, street=st.text(max_size=5), numbers=st.lists(st.integers(-9, 9), max_size=3)),
    elements=st.lists(numbers, max_size=3),
    pair=st.tuples(st.integers(-9, 9), st.text(max_size=3)),
    table=st.dictionaries(st.text(max_size=5), st.lists(st.binary(max_size=3), max_size=2), max_size=2),
    by_number=st.dictionaries(st.integers(-9, 9), st.text(max_size=3), max_size=2),
    words=st.sets(st.text(max_size=5), max_size=3),
    numbers=st.frozensets(st.integers(-99, 99), max_size=3),
    blobs=st.sets(st.binary(max_size=3), max_size=3),
    days=st.sets(st.dates(), max_size=2),
    optional_words=st.none() | st.sets(st.text(max_size=3), max_size=2),
    anything=st.none() | st.text(max_size=3) | st.lists(st.integers(-9, 9), max_size=2),
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph(":memory:", [Everything])


@given(everything)
def test_every_type_comes_back_exactly(graph: Graph, node: Everything) -> None:
    graph.put(node)
    loaded = graph.get(Everything, node.id)
    assert loaded == node
    assert loaded is not None
    for name in Everything.model_fields:
        assert type(getattr(loaded, name)) is type(getattr(node, name)), name


def test_the_names_of_attributes_are_counted_in_bytes_of_utf_8() -> None:
    for item in ({"a": {"S": "x"}}, {"ä": {"S": "x"}}, {"ä€": {"N": "1"}, "b": {"S": "ü"}}):
        assert normal_item(item) == (item, item_size(item))
    assert item_size({"ä": {"S": "x"}}) == 3
