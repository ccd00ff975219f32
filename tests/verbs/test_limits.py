"""What DynamoDB refuses for its size is refused on every store, with the same error, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjoin import Edge, Node, field
from adjoin.errors import InvalidRequest, ItemTooLarge
from adjoin.fields import AnyOf
from adjoin.units import MAX_NESTING
from tests.verbs.conftest import Everywhere


class Wide(Node):
    id: str
    text: str = ""
    deep: list[Any] = []
    number: int | None = None


class Near(Edge[Wide, Wide]):
    note: str = ""


def many(number: int = 400, name: str = "number") -> AnyOf:
    """The predicate `a | b | …` of so many comparisons."""
    return AnyOf(tuple(field(name) == (each if name.endswith("number") else str(each)) for each in range(number)))


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


HUGE = "x" * 410_000

REFUSED: list[tuple[str, Callable[[Any], Any], type[InvalidRequest], str]] = [
    ("put", lambda g: g.put(Wide(id="b"), only_if=many()), InvalidRequest, "Wide 'b': the condition takes"),
    ("update", lambda g: g.update(Wide, "a", text="new", only_if=many()), InvalidRequest,
     "Wide 'a': the condition takes"),
    ("operators", lambda g: g.put(Wide(id="b"), only_if=many(160)), InvalidRequest,
     "Wide 'b': the condition has 319 operators and functions, but DynamoDB takes at most 300"),
    ("delete", lambda g: g.delete(Wide, "a", only_if=many()), InvalidRequest, "Wide 'a': the condition takes"),
    ("connect", lambda g: g.connect(Near, "a", "a", only_if=many(name="source.number")), InvalidRequest,
     "the condition takes"),
    ("filter", lambda g: list(g.scan(Wide).where(many())), InvalidRequest, "the filter takes"),
    ("query", lambda g: list(g.out("a", Near).where(many(name="note"))),
     InvalidRequest, "the filter takes"),
    ("large", lambda g: g.put(Wide(id="b", text=HUGE)), ItemTooLarge,
     "Wide 'b' would be too large with 410,0.. bytes; DynamoDB takes at most 409,600 "),
    ("large update", lambda g: g.update(Wide, "a", text=HUGE), ItemTooLarge, "Wide 'a' would be too large; DynamoDB"),
    ("large of many", lambda g: g.put_many([Wide(id="b", text=HUGE), Wide(id="c", text=HUGE)]), ItemTooLarge,
     "Wide 'b' would be too large with 410,0.. bytes"),
    ("large edge", lambda g: g.put(Near(source="a", target="b", note=HUGE)), ItemTooLarge,
     "Near from 'a' to 'b' would be too large with 410,... bytes"),
    ("deep", lambda g: g.put(Wide(id="b", deep=nested(MAX_NESTING + 1))), InvalidRequest,
     "lists and maps of Wide 'b' are nested too deep; DynamoDB takes 32 levels at most"),
    ("deep update", lambda g: g.update(Wide, "a", deep=nested(MAX_NESTING + 1)), InvalidRequest,
     "lists and maps of Wide 'a' are nested too deep"),
]  # fmt: skip


def test_what_dynamodb_refuses_for_its_size(everywhere: Everywhere) -> None:
    g = everywhere([Wide, Near])
    g.put(Wide(id="a", number=5))
    before = g.get(Wide, "a")
    for name, call, error, words in REFUSED:
        with pytest.raises(error, match=words) as refused:
            call(g)
        assert type(refused.value) is error, name
        assert refused.value.requests == (), name
    assert g.get(Wide, "a") == before
    assert [node.id for node in g.scan(Wide)] == ["a"]
    # What is just small enough is taken.
    g.put(Wide(id="a", deep=nested(MAX_NESTING - 1)), only_if=field("text") != "y")
