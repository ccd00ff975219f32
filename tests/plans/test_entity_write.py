"""Updates of classes that validate all their fields together."""

from __future__ import annotations

import itertools
from typing import Any

from pydantic import Field, model_validator

from adjoin import Graph, Node
from adjoin.requests import Get, ItemResponse, Put

NUMBERS = itertools.count()


class Word(Node):
    id: str
    text: str = ""
    upper: str = ""
    length: int = 0
    seen: list[int] = Field(default_factory=lambda: [next(NUMBERS)])

    @model_validator(mode="after")
    def _derived(self) -> Word:
        self.__dict__ |= {"upper": self.text.upper(), "length": len(self.text)}
        return self


def stored(g: Graph) -> dict[str, Any]:
    (response,) = g._store.execute([Get("adjoin", {"PK": {"S": "WORD#1"}, "SK": {"S": "#META"}})])
    assert isinstance(response, ItemResponse)
    assert response.item is not None
    return {name: value for name, value in response.item.items() if name not in ("PK", "SK")}


def test_a_default_that_is_made_anew_is_not_derived() -> None:
    """Another program left it out, and it is another one at each reading. What the class derives is written."""
    with Graph(":memory:", [Word]) as g:
        g._store.execute([Put("adjoin", {"PK": {"S": "WORD#1"}, "SK": {"S": "#META"}, "text": {"S": "a"}})])
        updated = g.update(Word, "1", text="bc")
        assert (updated.upper, updated.length) == ("BC", 2)
        assert stored(g) == {"text": {"S": "bc"}, "upper": {"S": "BC"}, "length": {"N": "2"}}
        g.update(Word, "1", seen=[7])
        g.update(Word, "1", text="d")
        assert stored(g)["seen"] == {"L": [{"N": "7"}]}
