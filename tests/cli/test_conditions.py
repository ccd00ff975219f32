"""Conditions as text, and the predicates that they stand for."""

from __future__ import annotations

import pytest

from adjoin import field
from adjoin.cli.command import InvalidArguments
from adjoin.cli.conditions import predicate
from adjoin.fields import Predicate

A, B, C = field("a") == "1", field("b") > "2", field("c").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", A),
        ("a==1", A),
        ("a != 1", field("a") != "1"),
        ("a <> 1", field("a") != "1"),
        ("a<=2026-01-31", field("a") <= "2026-01-31"),
        ("a >= -1.5", field("a") >= "-1.5"),
        ("a < 'x y'", field("a") < "x y"),
        ('a = "it\'s"', field("a") == "it's"),
        (r'a = "say \"x\" \\"', field("a") == 'say "x" \\'),
        ("a = null", field("a") == None),  # noqa: E711
        ("a = 'null'", field("a") == "null"),
        ("a.b = 1", field("a.b") == "1"),
        ("a between 1 and 2", field("a").between("1", "2")),
        ("a begins_with x", field("a").begins_with("x")),
        ("a CONTAINS x", field("a").contains("x")),
        ("a in (1, 'b c',2)", field("a").is_in(["1", "b c", "2"])),
        ("c exists", C),
        ("c not exists", ~C),
        ("not c exists", ~C),
        ("a not in (1)", ~field("a").is_in(["1"])),
        ("a = 1 and b > 2 or c exists", (A & B) | C),
        ("a = 1 and (b > 2 or c exists)", A & (B | C)),
        ("a between 1 and 2 and b > 2", field("a").between("1", "2") & B),
        ("not a = 1 and b > 2", ~A & B),
        ("and = 1", field("and") == "1"),
    ],
)
def test_what_a_text_stands_for(text: str, expected: Predicate) -> None:
    assert repr(predicate(text)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "a", "a =", "= 1", "a = 1 and", "a = 1 or or b = 2", "a in 1", "a in (1", "a in (1 2)", "()"),
        *("a between 1", "a between 1 2", "(a = 1", "a = 1)", "a = 'x", "a ! 1", "a = ,", "not", "a exists b"),
        "a not = 1",
    ],
)
def test_a_text_that_stands_for_nothing(text: str) -> None:
    with pytest.raises(InvalidArguments, match="the condition"):
        predicate(text)
