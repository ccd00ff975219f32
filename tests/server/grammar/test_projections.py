"""Projection expressions: text to paths, or to the service's exact words."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Path
from adjoin.server.grammar import Bindings, read_projection
from tests.server.grammar.test_conditions import named, reserved
from tests.server.grammar.test_updates import overlap

NAMES = {"#a": "a", "#n": "name"}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", [("a",)]),
        ("a, b", [("a",), ("b",)]),
        (" a ,b.c[1] , #n ", [("a",), ("b", "c", 1), ("name",)]),
        ("l[2], l[0]", [("l", 2), ("l", 0)]),
        ("m.a.b, m.a.c, m.d", [("m", "a", "b"), ("m", "a", "c"), ("m", "d")]),
        ("#a.#n", [("a", "name")]),
    ],
)
def test_paths(text: str, steps: list[tuple[str | int, ...]]) -> None:
    assert read_projection(text, Bindings(NAMES)) == tuple(map(Path, steps))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The expression can not be empty;"),
        ("!!!", 'Syntax error; token: "!", near: "!!"'),
        ("a,", 'Syntax error; token: "<EOF>", near: ","'),
        ("a, ,b", 'Syntax error; token: ",", near: ", ,b"'),
        ("a b", 'Syntax error; token: "b", near: "a b"'),
        ("a, :v", 'Syntax error; token: ":v", near: ", :v"'),
        ("(a)", 'Syntax error; token: "(", near: "(a"'),
        ("size(a)", 'Syntax error; token: "(", near: "size(a"'),
        ("a[].b", 'Syntax error; token: "]", near: "[]."'),
        ("a[0", 'Syntax error; token: "<EOF>", near: "0"'),
        ("user-id", 'Syntax error; token: "-", near: "user-id"'),
        ("ADD", 'Syntax error; token: "ADD", near: "ADD"'),
        ("name", reserved("name")),
        ("a, list[0].comment", reserved("list")),
        ("#u", named("#u")),
        ("a.#u", named("#u")),
        ("#u, status", reserved("status")),
        ("a, a", overlap("[a]", "[a]")),
        ("#a, a", overlap("[a]", "[a]")),
        ("a, a.b", overlap("[a]", "[a, b]")),
        ("m.a, m.a.b", overlap("[m, a]", "[m, a, b]")),
        ("a.b, c, a", overlap("[a, b]", "[a]")),
        ("l[0], l.x", overlap("[l, [0]]", "[l, x]", "conflict")),
        ("a, a, b, b", overlap("[b]", "[b]")),
        ("#u, a, a", named("#u")),
        (".".join("m" * 33), "The document path has too many nesting levels; nesting levels: 33"),
        ("a[2147483648]", "List index is not within the allowable range; index: [2147483648]"),
    ],
)
def test_what_the_service_refuses(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_projection(text, Bindings(NAMES))
    assert str(raised.value) == f"Invalid ProjectionExpression: {message}"
