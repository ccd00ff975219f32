"""Key templates: what they render, that they parse back, and that they sort as their values do."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import Field

from adjoin import AdjacencyList, Graph, InvalidKey, InvalidModel, Keys, Node
from adjoin.layouts.key_values import date_transform, key_text, sortable_text, transform, unsorted_text, value_of
from adjoin.layouts.keys import Part, Quoting, Template, delimiters, parse_template

ESCAPING = Quoting(frozenset("#"), escape=True)
LITERAL = Quoting(frozenset("#"), escape=False)
text = st.text(max_size=12)


class Size(Enum):
    LARGE = 7


awkward = st.text(alphabet="#%|ab \n\0é€\U0001f600$&~/", max_size=8)


def template(source: str, quoting: Quoting = ESCAPING) -> Template:
    return Template("Thing", parse_template(source), quoting)


@pytest.mark.parametrize(
    ("source", "values", "key"),
    [
        ("USER#{id}", {"id": "ann"}, "USER#ann"),
        ("USER#{id}", {"id": "a#b c%"}, "USER#a%23b%20c%25"),
        ("{a}#{b}", {"a": "x|y", "b": "é\n"}, "x|y#é%0A"),
        ("CLASS#{subject:upper}", {"subject": "Math"}, "CLASS#MATH"),
        ("{name:lower}", {"name": "ANN"}, "ann"),
        ("N#{n:06}", {"n": 42}, "N#000042"),
        ("N#{n:03}", {"n": Size.LARGE}, "N#007"),
        ("{n:sortable}", {"n": 42}, "p502.42"),
        ("{n:sortable}", {"n": Decimal("-0.05")}, "n500.4~"),
        ("{n:sortable}", {"n": 0}, "o"),
        ("{at:%Y-%m}", {"at": dt.date(2024, 3, 31)}, "2024-03"),
        ("{at}", {"at": dt.datetime(2024, 3, 31, 10)}, "2024-03-31T10:00:00.000000"),
        ("METADATA", {}, "METADATA"),
    ],
)
def test_rendering(source: str, values: dict[str, Any], key: str) -> None:
    assert template(source).render(values) == key


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("{n:06}", {"n": -1}),
        ("{n:02}", {"n": 100}),
        ("{n:02}", {"n": "7"}),
        ("{n}", {"n": None}),
        ("{n}", {"n": 1.5}),
        ("{n}", {"n": ["a"]}),
    ],
)
def test_what_cannot_be_in_a_key(source: str, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidKey, match=r"Thing\.n"):
        template(source).render(values)


def test_a_literal_template_refuses_what_would_be_ambiguous() -> None:
    with pytest.raises(InvalidKey, match=r"Thing\.b: 'x#y' holds '#'"):
        template("{a}#{b}", LITERAL).render({"a": "1", "b": "x#y"})
    assert template("{a}#{b}", LITERAL).render({"a": "1 %", "b": "é|"}) == "1 %#é|"


@pytest.mark.parametrize("source", ["{a}{b}", "{a}#{a}", "{a:loud}", "{a", "a}"])
def test_a_template_that_cannot_be_parsed_back_is_refused(source: str) -> None:
    with pytest.raises(InvalidModel):
        template(source)


@given(st.lists(text | awkward, min_size=3, max_size=3))
def test_keys_parse_back(values: list[str]) -> None:
    parts = dict(zip("abc", values, strict=True))
    compiled = template("X#{a}#{b}#Y#{c}")
    assert compiled.match(compiled.render(parts)) == parts


@given(st.lists(text | awkward, min_size=4, max_size=4))
def test_different_values_have_different_keys(values: list[str]) -> None:
    compiled = template("{a}#{b}")
    one, other = dict(zip("ab", values[:2], strict=True)), dict(zip("ab", values[2:], strict=True))
    assert (compiled.render(one) == compiled.render(other)) == (one == other)


@given(text | awkward, text | awkward)
def test_encoded_text_sorts_as_the_text_does(one: str, other: str) -> None:
    compiled = template("{a}#{b}")
    keys = [compiled.render({"a": value, "b": "x"}).encode() for value in (one, other)]
    assume(one != other)
    assert (keys[0] < keys[1]) == (one.encode() < other.encode())


numbers = st.integers(-(10**38) + 1, 10**38 - 1) | st.builds(
    lambda whole, power: Decimal(f"{whole}E{power}"), st.integers(-999, 999), st.integers(-120, 120)
)


@given(numbers, numbers)
def test_numbers_sort_as_numbers(one: Decimal | int, other: Decimal | int) -> None:
    assert (sortable_text(one) < sortable_text(other)) == (one < other)
    assert Decimal(unsorted_text(sortable_text(one))) == one


@given(
    st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-7))])),
    st.datetimes(timezones=st.just(dt.UTC)),
)
def test_moments_sort_by_time_whatever_their_zone(one: dt.datetime, other: dt.datetime) -> None:
    assume(all(2 < moment.year < 9998 for moment in (one, other)))
    assert (key_text(one) < key_text(other)) == (one < other)


@pytest.mark.parametrize(
    ("one", "other", "may_meet"),
    [
        ("METADATA", "COURSE#{id}", False),
        ("COURSE#{id}", "COURSE#{id}", True),
        ("A#{x}", "A#{x}#B#{y}", False),
        ("A#{x}", "{y}#B", True),
        ("{x}", "METADATA", True),
        ("S-{x}", "T-{x}", False),
        ("S{x}", "ST{x}", True),
        ("{x}-A", "{x}-B", False),
        ("{x}#1", "{x}#2", False),
    ],
)
def test_whether_two_templates_can_meet(one: str, other: str, may_meet: bool) -> None:
    assert template(one, LITERAL).may_equal(template(other, LITERAL)) is may_meet
    assert template(other, LITERAL).may_equal(template(one, LITERAL)) is may_meet


DAY, ID = dt.date(2024, 3, 31), uuid.UUID(int=5)


def framed(*pieces: str | tuple[str, str, type], ends: str = "#-:") -> Template:
    """A template of literals and parts, each part with a name, a transform and a type."""
    parts: list[str | Part] = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(piece)
        else:
            name, spec, plain = piece
            given = transform(spec)
            given = date_transform(given, plain, is_exact=True) if "%" in spec else given
            parts.append(Part(name, given, plain))
    return Template("Thing", parts, Quoting(frozenset(ends), escape=False))


@pytest.mark.parametrize(
    ("pieces", "values", "key"),
    [
        ([("day", "", dt.date), "-", ("id", "", str)], {"day": DAY, "id": "x"}, "2024-03-31-x"),
        ([("id", "", str), "-", ("day", "%d-%m-%Y", dt.date)], {"day": DAY, "id": "x"}, "x-31-03-2024"),
        ([("day", "%Y#%m#%d", dt.date), "#", ("id", "", str)], {"day": DAY, "id": "x"}, "2024#03#31#x"),
        ([("a", "", uuid.UUID), "-", ("b", "", uuid.UUID)], {"a": ID, "b": ID}, f"{ID}-{ID}"),
        (
            ["AT:", ("at", "%Y-%m-%dT%H:%M:%SZ", dt.datetime), ":", ("id", "", str)],
            {"at": dt.datetime(2024, 3, 31, 10, tzinfo=dt.UTC), "id": "x"},
            "AT:2024-03-31T10:00:00Z:x",
        ),
        ([("at", "", dt.datetime), "-"], {"at": dt.datetime(2024, 3, 31)}, "2024-03-31T00:00:00.000000-"),
    ],
)
def test_separators_at_fixed_places_of_a_value(pieces: list[Any], values: dict[str, Any], key: str) -> None:
    """A date has its hyphens where every date has them, so they end no part."""
    made = framed(*pieces)
    assert made.render(values) == key
    told = made.match(key)
    assert told is not None
    assert {part.name: value_of(part.plain, told[part.name]) for part in made.parts} == values
    assert made.match(key.replace("2024", "20-24").replace("0005-", "05-")) is None


def test_separators_at_other_places_are_refused() -> None:
    made = framed(("day", "", dt.date), "-", ("id", "", str))
    with pytest.raises(InvalidKey, match=r"Thing\.id: 'x-y' holds '#' or '-'"):
        made.render({"day": DAY, "id": "x-y"})
    assert made.match("2024-03-31-x-y") is None
    number = framed(("n", "", int), "-", ("id", "", str))
    assert number.render({"n": 5, "id": "x"}) == "5-x"
    with pytest.raises(InvalidKey, match=r"Thing\.n: '-5' holds"):
        number.render({"n": -5, "id": "x"})
    digits = framed(("day", "", dt.date), "0", ("id", "", str), ends="#-0")
    with pytest.raises(InvalidKey, match=r"Thing\.day: '2024-03-31' holds"):
        digits.render({"day": DAY, "id": "x"})


def test_what_has_separators_at_fixed_places_may_meet_what_has_as_many() -> None:
    day = framed("D-", ("day", "", dt.date))
    assert day.may_equal(framed("D-", ("a", "", str), "-", ("b", "", str), "-", ("c", "", str)))
    assert not day.may_equal(framed("D-", ("a", "", str), "-", ("b", "", str)))
    assert day.is_apart(["day"], [framed("D-", ("a", "", str))])


def test_delimiters_are_what_follows_a_part() -> None:
    assert delimiters([parse_template("ORG-{org}/USER-{id}")]) == {"#", "/"}


class Name(str):
    pass


def test_text_of_a_class_of_its_own_is_text() -> None:
    for text in ("plain", "été"):
        assert key_text(Name(text)) == text
        assert value_of(None, text) == value_of(str, text) == text
    with pytest.raises(InvalidKey):
        key_text(Name("\ud800"))


class AtLeast(Node, label="SHELF"):
    id: Annotated[int, Field(ge=5)]


class AtMost(Node, label="SHELF"):
    id: Annotated[int, Field(le=9)]


class Between(Node, label="SHELF"):
    id: Annotated[int, Field(ge=5, le=9)]


@pytest.mark.parametrize(("model", "ids"), [(AtLeast, [7, 12]), (AtMost, [3, 7]), (Between, [7])])
def test_a_key_of_a_number_that_no_id_can_be_is_nobodys(model: type[Node], ids: list[int]) -> None:
    with Graph(":memory:", [model], AdjacencyList(keys={model: Keys("S#{id:04}", "#META")})) as g:
        keys = {id: {"PK": {"S": f"S#{id:04}"}, "SK": {"S": "#META"}} for id in (3, 7, 12)}
        assert [id for id, key in keys.items() if g._layout.kind_of(key) is not None] == ids


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("{k}#BY", "A#{id}X", False),
        ("{k}#BX", "A#{id}X", True),
        ("{k}#AB", "Z#A{id}B", True),
        ("{k}#AB", "Z#AB{id}B", False),
        ("{k}#AB", "Z#B{id}", False),
        ("{k}#AB", "Z#A{id}", True),
        ("{k}#A{n}X", "Z#A{id}Y", False),
        ("{k}#A{n}X", "Z#AB{id}YX", True),
        ("{k}#A", "{k}#A#{id}", False),
    ],
)
def test_two_templates_may_render_the_same_key(one: str, other: str, may: bool) -> None:
    """A literal segment meets one with a part only if it has the beginning and the end of it, one after the other."""
    assert template(one).may_equal(template(other)) is may
    assert template(other).may_equal(template(one)) is may
