"""Which conditions a query may have on keys with several attributes."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.key_conditions import check_key_conditions
from adjoin.tables import IndexDefinition, KeyAttribute

INDEX = IndexDefinition.over("Idx", [KeyAttribute("h"), KeyAttribute("i", "N")], [KeyAttribute(each) for each in "abc"])
BECAUSE = "must have equality conditions specified in the query because a condition is present on key attribute"


def operators(text: str) -> dict[str, str]:
    """ "h= a<=" as {"h": "=", "a": "<="}."""
    return {each[0]: each[1:] for each in text.split()}


@pytest.mark.parametrize(
    "given", ["h= i=", "i= h=", "h= i= a=", "h= i= a>=", "h= i= b< a=", "c= b= a= h= i=", "h= i= a= b= c<"]
)
def test_conditions_on_the_first_keys(given: str) -> None:
    check_key_conditions(INDEX, operators(given))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("h=", "HASH key attributes i must have equality conditions specified in the query"),
        ("a=", "HASH key attributes h, i must have equality conditions specified in the query"),
        ("h= i<", "HASH key attributes i must have equality conditions specified in the query"),
        ("h= i= b=", f"RANGE key attributes a {BECAUSE} b"),
        ("h= i= c=", f"RANGE key attributes a, b {BECAUSE} c"),
        ("h= i= a= c=", f"RANGE key attributes b {BECAUSE} c"),
        ("h= i= a< b=", f"RANGE key attributes a {BECAUSE} b"),
        ("h= i= a< b<", f"RANGE key attributes a {BECAUSE} b"),
        ("h= i= a= b< c=", f"RANGE key attributes b {BECAUSE} c"),
        ("h= i= x=", "Query condition missed key schema element: a"),
        ("h= i= a= x=", "Query condition missed key schema element: b"),
        (
            "h= i= a= b= c= x=",
            "The number of query conditions (6) exceeds the number of key attributes defined in the schema (5)",
        ),
    ],
)
def test_other_conditions(given: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_key_conditions(INDEX, operators(given))
    assert str(caught.value) == words
