"""Every pattern of the package takes time in proportion to the text: seen in its form, without a clock.

A pattern takes longer where a text can be divided between two of its repetitions in several ways, and all of
them are tried before it fails. So between two repetitions without a bound there must be something that the
first cannot take; none may stand within another that could take the same; and one that is searched for may
not begin with a repetition that has to be followed by something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as codes
from re import _parser as parser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest, InvalidValue
from adjoin.items import normal_attribute
from adjoin.locations import _NUMBER as SECONDS
from adjoin.server.operations.table_settings import is_any_arn, is_table_arn
from adjoin.server.signatures import _parts
from adjoin.units import MAX_NESTING
from adjoin.values import canonical_number, parse_number

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "adjoin"
SEARCHING = {"search", "sub", "subn", "findall", "finditer", "split"}
MANY = 64
"""Repetitions up to so many are no matter."""

CHARACTERS = [chr(code) for code in range(0x180)]
"""By which it is told whether two sets of characters overlap."""


# --- what a pattern is made of -----------------------------------------------------------------

Step = tuple[frozenset[str], bool]
"""What a place of a pattern takes, and whether it is repeated without a bound."""


class NestedError(Exception):
    """A repetition stands within another."""


def taken(operator: Any, argument: Any, flags: int) -> frozenset[str]:
    """The characters that one place takes, found by trying them."""
    state = parser.State()
    state.flags = flags
    data = parser.SubPattern(state, [(operator, argument)])
    one = compiler.compile(data, flags)
    return frozenset(each for each in CHARACTERS if one.fullmatch(each))


def ways(items: Any, flags: int) -> Iterator[list[Step]]:
    """Every way through a pattern, as the places on it; an option is a way with it and one without."""
    if not items:
        yield []
        return
    (operator, argument), following = items[0], items[1:]
    for first in steps(operator, argument, flags):
        for rest in ways(following, flags):
            yield first + rest


def steps(operator: Any, argument: Any, flags: int) -> Iterator[list[Step]]:
    if operator is codes.SUBPATTERN:
        yield from ways(list(argument[3]), flags)
    elif operator is codes.BRANCH:
        for branch in argument[1]:
            yield from ways(list(branch), flags)
    elif operator in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, body = argument
        for inner in ways(list(body), flags):
            if most is not codes.MAXREPEAT and most <= MANY:
                if least == 0:
                    yield []
                yield inner * max(least, 1)
            elif len(inner) == 1:
                yield [(inner[0][0], False)] * bool(least) + [(inner[0][0], True)]
            else:
                # Twice in a row, so that its end meets its beginning.
                if any(repeats for _, repeats in inner):
                    raise NestedError
                yield inner * 2
    elif operator in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        yield []
    else:
        yield [(taken(operator, argument, flags), False)]


def fault(pattern: str, flags: int = 0, is_searched: bool = False) -> str | None:
    """Why a pattern may take longer than in proportion to its text."""
    tree = parser.parse(pattern, flags)
    try:
        through = list(ways(list(tree), tree.state.flags))
    except NestedError:
        return "a repetition stands within another"
    for way in through:
        repeated = [at for at, (_, repeats) in enumerate(way) if repeats]
        for one, other in pairwise(repeated):
            between = [characters for characters, _ in way[one + 1 : other]]
            # What must come once after "x+" is what "x+" takes, and so no end of it.
            if all(characters & way[one][0] for characters in between) and way[one][0] & way[other][0]:
                return "two repetitions take the same characters, and nothing ends the first"
        if is_searched and repeated and repeated[0] == _leading(way) and len(way) > repeated[0] + 1:
            return "it is searched for, and begins with a repetition that something must follow"
    return None


def _leading(way: list[Step]) -> int:
    """The place of a repetition that a way begins with: "x+" is an x and a repetition of it."""
    return 1 if len(way) > 1 and not way[0][1] and way[1][1] and way[0][0] == way[1][0] else 0


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        (".+:.+", False),
        ("[0-9]+\\.?[0-9]*", False),
        ("[0-9]*[0-9]+x", False),
        ("(?:a+)*x", False),
        ("\\s+x", True),
        ("\\s*(Credential|Signature)=([^,\\s]+)\\s*(?:,|$)", True),
        ("a*(?:b|a*)c", False),
    ],
)
def test_what_takes_longer_is_found(pattern: str, is_searched: bool) -> None:
    assert fault(pattern, is_searched=is_searched) is not None


@pytest.mark.parametrize(
    "pattern", ["[a-z]+", "a+b+", "[0-9]+(?:\\.[0-9]*)?", "arn:[^:]+:[^:]*:x", "(?:[0-9a-f]{16})+", "x.*"]
)
def test_what_does_not_is_not(pattern: str) -> None:
    assert fault(pattern) is None


# --- the patterns of the package ---------------------------------------------------------------


def patterns(module: str) -> Iterator[tuple[str, str, bool]]:
    """Where a pattern stands, the pattern, and whether it is searched for; parts that are computed are one letter."""
    text = (PACKAGE / module).read_text()
    if "re." not in text and "pattern=" not in text:
        # Most of the time is parsing.
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.keyword) and node.arg == "pattern" and isinstance(node.value, ast.Constant):
            yield f"{module}:{node.lineno}", str(node.value.value), False
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        if not isinstance(node.func.value, ast.Name) or node.func.value.id != "re":
            continue
        if node.func.attr == "escape" or (written := as_text(node.args[0])) is None:
            continue
        method = node.func.attr
        if method == "compile":
            method = used_by(text, node)
        yield f"{module}:{node.lineno}", written, method in SEARCHING


def as_text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
    return None


def used_by(text: str, compiled: ast.Call) -> str:
    """The searching method that a module calls of a pattern which it compiles; the pattern's name stands before it."""
    line = text.splitlines()[compiled.lineno - 1]
    name = line.partition("=")[0].strip().rpartition(".")[2]
    found = re.findall(rf"\b{re.escape(name)}\.([a-z]+)", text) if name.isidentifier() else []
    return next((each for each in found if each in SEARCHING), "")


def test_every_pattern_takes_time_in_proportion_to_its_text() -> None:
    modules = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
    found = [each for module in modules for each in patterns(module)]
    assert len(found) > 30
    faults = {(place, pattern): fault(pattern, is_searched=is_searched) for place, pattern, is_searched in found}
    assert {place: told for place, told in faults.items() if told is not None} == {}


# --- what took longer, and says the same -------------------------------------------------------

WAS_ANY_ARN = re.compile(".+:.+:.+:.+:.+:.+/.+")
WAS_TABLE_ARN = re.compile(r"arn:aws[^:]*:dynamodb:.+:\d+:table/[^/\n]{3,}")
WAS_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")
WAS_SECONDS = re.compile(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?")

ARN_PARTS = st.sampled_from(
    [
        "arn:aws",
        "-cn",
        ":",
        "::",
        ":dynamodb:",
        "dynamodb",
        "us-east-1",
        "0",
        "12",
        ":table/",
        "table",
        "/",
        "abc",
        "\n",
    ]
)


@given(st.text("a:/\n", max_size=16))
def test_any_arn(text: str) -> None:
    assert is_any_arn(text) == (WAS_ANY_ARN.fullmatch(text) is not None)


@given(st.lists(ARN_PARTS, max_size=10).map("".join))
def test_the_arn_of_a_table(text: str) -> None:
    for each in (text, f"arn:aws:dynamodb:{text}:1:table/abc", f"arn:aws:dynamodb:x:1:table/{text}", f"arn:aws{text}"):
        assert is_table_arn(each) == (WAS_TABLE_ARN.fullmatch(each) is not None and "\n" not in each)


@given(st.text("01.eE+-x", max_size=12))
def test_numbers(text: str) -> None:
    assert (SECONDS.fullmatch(text) is not None) == (WAS_SECONDS.fullmatch(text) is not None)
    assert refused_as_text(text) == (WAS_NUMBER.fullmatch(text) is None)


def refused_as_text(number: str) -> bool:
    try:
        normal_attribute({"N": number})
    except InvalidRequest as refused:
        return NO_NUMBER in str(refused)
    return False


def test_the_parts_of_a_signature() -> None:
    said = " Credential=a/b/c/d/e, SignedHeaders=host;x-amz-date,Signature=0a1b "
    assert _parts(said) == {"Credential": "a/b/c/d/e", "SignedHeaders": "host;x-amz-date", "Signature": "0a1b"}
    assert _parts("Credential=, x=y,,=,Signature") == {"Credential": "", "Signature": ""}


# --- numbers that are too large to be written out ----------------------------------------------

OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
DIGITS = "Attempting to store more than 38 significant digits in a Number"
NO_NUMBER = "The parameter cannot be converted to a numeric value"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("1e9999999", OVERFLOW),
        ("-1e9999999", OVERFLOW),
        ("1e126", OVERFLOW),
        ("1e999999999999999999", OVERFLOW),
        ("12e999999999999999999", OVERFLOW),
        ("9" * 200, OVERFLOW),
        ("1e-9999999", UNDERFLOW),
        ("0.001e-999999999999999999", UNDERFLOW),
        ("1." + "0" * 2000 + "1", DIGITS),
        ("1" * 39, DIGITS),
        # As large, or as small, as can be, but for its digits.
        (f"{'1' * 39}e87", DIGITS),
        (f"{'1' * 39}e88", OVERFLOW),
        (f"{'1' * 39}e-168", DIGITS),
        (f"{'1' * 39}e-169", UNDERFLOW),
        ("1e9999999999999999999", NO_NUMBER),
        ("1" * 8000 + "x", NO_NUMBER),
        ("x", NO_NUMBER),
    ],
)
def test_a_number_that_cannot_be_stored(number: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        normal_attribute({"N": number})
    with pytest.raises(InvalidValue):
        canonical_number(number)


@pytest.mark.parametrize("number", ["1e9999999", "-1e9999999", "1e-9999999", "NaN", "Infinity", "x", ""])
def test_a_stored_number_that_no_service_stored(number: str) -> None:
    with pytest.raises(InvalidValue):
        parse_number(number)


def test_numbers_at_the_ends_of_the_range() -> None:
    for number in ("9.9999999999999999999999999999999999999e125", "1e-130", "-1e-130", "1e125", "0e999999999999999999"):
        canonical = canonical_number(number)
        assert normal_attribute({"N": number}) == {"N": canonical}
        assert canonical_number(parse_number(canonical).__str__()) == canonical


def test_how_deep_a_value_may_be() -> None:
    value: dict[str, Any] = {"S": "a"}
    for _ in range(MAX_NESTING - 1):
        value = {"L": [value]}
    assert normal_attribute(value) == value
    with pytest.raises(InvalidRequest, match="Nesting Levels have exceeded"):
        normal_attribute({"L": [value]})


@pytest.mark.parametrize("tag", ["S", "N", "B"])
def test_what_is_no_text_is_no_value_of_these_types(tag: str) -> None:
    others: list[Any] = [5, None, ["a"], {}]
    for other in others:
        with pytest.raises(InvalidRequest, match=f"a {tag} value must be a str"):
            normal_attribute({tag: other})


def test_a_binary_value_is_base64_and_nothing_else() -> None:
    assert normal_attribute({"B": "YR=="}) == {"B": "YQ=="}
    for other in ("YQ=!=", "YQ==\n", "Y Q==", "YQ"):
        with pytest.raises(InvalidRequest, match="is not base64"):
            normal_attribute({"B": other})


def test_one_member_that_is_not_normal_is_enough() -> None:
    assert normal_attribute({"L": [{"N": "01"}]}) == {"L": [{"N": "1"}]}
    given: dict[str, Any] = {"L": [{"S": "a"}, {"N": "01"}, {"M": {"b": {"S": "c"}, "d": {"N": "1.0"}}}]}
    assert normal_attribute(given) == {"L": [{"S": "a"}, {"N": "1"}, {"M": {"b": {"S": "c"}, "d": {"N": "1"}}}]}
