"""Expression text as tokens, and the service's words for text that is not in the language.

Keywords are the same in every kind of expression and in any case; a name starts with a letter. A character
that belongs to nothing is a token of its own: the parser refuses it where it meets it, as the service does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"})

_TOKENS = re.compile(
    r"(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<name>#[A-Za-z0-9_]+)"
    r"|(?P<value>:[A-Za-z0-9_]+)"
    r"|(?P<index>0|[1-9][0-9]*)"
    r"|(?P<mark><>|<=|>=|[=<>()\[\],.+-])"
    r"|(?P<stray>[^ \t\r\n])"
)


class Fault(Exception):
    """What is wrong with an expression, in the service's words; who reads it says which expression it is."""


class Token(NamedTuple):
    """`kind` is a keyword or a mark as it stands, or else word, name, value, index, stray or end."""

    kind: str
    text: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    found = []
    for match in _TOKENS.finditer(text):
        kind, part = str(match.lastgroup), match.group()
        if kind == "mark":
            kind = part
        elif kind == "word" and (upper := part.upper()) in KEYWORDS:
            kind = upper
        found.append(Token(kind, part, match.start(), match.end()))
    found.append(Token("end", "<EOF>", len(text), len(text)))
    return found


def syntax_fault(text: str, tokens: list[Token], at: int) -> Fault:
    """The service quotes from the token before the wrong one to the one after it, spaces as they are."""
    start = tokens[at - 1].start if at else 0
    end = tokens[min(at + 1, len(tokens) - 1)].end
    return Fault(f'Syntax error; token: "{tokens[at].text}", near: "{text[start:end]}"')
