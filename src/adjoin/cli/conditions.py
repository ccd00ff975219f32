"""Conditions as text: "grade >= B and year_level in (1, 2)" becomes the predicate that `field(…)` would build.

The words are those of `field`: `= != < <= > >=`, `between … and …`, `begins_with`, `contains`, `in (…)`, `exists`,
joined with `and`, `or`, `not` and parentheses. A value is a word, or stands in quotes; `null` without quotes is None.
Values stay text here, because only the class of the field says what they are.
"""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from adjoin.cli.command import InvalidArguments
from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.field_types import problems_in
from adjoin.fields import FieldReference, Predicate, field

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign><=|>=|!=|<>|==|[=<>(),])
      | (?P<word>[^\s()<>=!,'"]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {"=": "__eq__", "==": "__eq__", "!=": "__ne__", "<>": "__ne__", "<": "__lt__", "<=": "__le__"}
_SIGNS |= {">": "__gt__", ">=": "__ge__"}
_WORDS = ("begins_with", "contains", "between", "in", "exists")
_EXAMPLE = "write it as in: grade >= B and year in (1, 2)"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


def predicate(text: str, kind: EntityType | None = None) -> Predicate:
    """Returns the predicate that a text stands for; raises `InvalidArguments` if it stands for none.

    The class says what the elements of a list or set are that `contains` looks for; without it, they are text.
    """
    reading = _Reading(text, _tokens(text), kind)
    found = reading.any_of()
    if reading.token.kind != "end":
        raise reading.unexpected("and, or, or the end")
    return found


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].strip()
            remedy = "close the quotes" if rest[0] in "'\"" else _EXAMPLE
            raise InvalidArguments(f"the condition {text!r} cannot be read from {rest!r} on; {remedy}")
        kind = found.lastgroup or ""
        value = found[kind]
        # Within quotes, a backslash takes the character after it as it is, so a value may have quotes in it.
        tokens.append(_Token(kind, re.sub(r"\\(.)", r"\1", value[1:-1]) if kind == "quoted" else value))
        at = found.end()
    return [*tokens, _Token("end", "")]


class _Reading:
    """Reads tokens from left to right; `not` binds closest, then `and`, then `or`."""

    def __init__(self, text: str, tokens: list[_Token], kind: EntityType | None) -> None:
        self._text, self._tokens, self._at, self._kind = text, tokens, 0, kind

    @property
    def token(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self.token
        self._at += token.kind != "end"
        return token

    def _takes(self, sign: str) -> bool:
        if self.token != _Token("sign", sign):
            return False
        self._at += 1
        return True

    def unexpected(self, wanted: str) -> InvalidArguments:
        found = f"has {self.token.text!r}" if self.token.kind != "end" else "ends"
        return InvalidArguments(f"the condition {self._text!r} {found} where {wanted} is needed; {_EXAMPLE}")

    def any_of(self) -> Predicate:
        found = self._all_of()
        while self.token.is_word("or"):
            self._take()
            found = found | self._all_of()
        return found

    def _all_of(self) -> Predicate:
        found = self._single()
        while self.token.is_word("and"):
            self._take()
            found = found & self._single()
        return found

    def _single(self) -> Predicate:
        if self.token.is_word("not"):
            self._take()
            return ~self._single()
        if self._takes("("):
            found = self.any_of()
            if not self._takes(")"):
                raise self.unexpected("')'")
            return found
        return self._comparison()

    def _comparison(self) -> Predicate:
        if self.token.kind != "word":
            raise self.unexpected("the name of a field")
        compared = field(self._take().text)
        if self.token.kind == "sign" and self.token.text in _SIGNS:
            method = getattr(compared, _SIGNS[self._take().text])
            found: Predicate = method(self._value())
            return found
        if self.token.is_word("not"):
            self._take()
            return ~self._in_words(compared)
        return self._in_words(compared)

    def _in_words(self, compared: FieldReference[Any]) -> Predicate:
        if not self.token.is_word(*_WORDS):
            raise self.unexpected(f"a comparison (= != < <= > >= {' '.join(_WORDS)})")
        match self._take().text.lower():
            case "exists":
                return compared.exists()
            case "begins_with":
                return compared.begins_with(self._value())
            case "contains":
                return compared.contains(_element(self._kind, compared.name, self._value()))
            case "between":
                low = self._value()
                # This `and` belongs to `between`, so it is taken here, before `_all_of` looks for its own.
                if not self.token.is_word("and"):
                    raise self.unexpected("and")
                self._take()
                return compared.between(low, self._value())
        return compared.is_in(self._values())

    def _values(self) -> list[Any]:
        if not self._takes("("):
            raise self.unexpected("'('")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        if not self._takes(")"):
            raise self.unexpected("',' or ')'")
        return values

    def _value(self) -> Any:
        if self.token.kind not in ("word", "quoted"):
            raise self.unexpected("a value")
        token = self._take()
        # The text null itself can be written in quotes.
        return None if token == _Token("word", "null") else token.text


def _element(kind: EntityType | None, name: str, value: Any) -> Any:
    """A value as an element of the list or set that a field is."""
    hint: Any = kind.fields[name].annotation if kind is not None and name in kind.fields else None
    for each in (hint, *get_args(hint)):
        if get_origin(each) in (list, set, frozenset, tuple):
            try:
                return TypeAdapter(get_args(each)[0]).validate_python(value)
            except ValidationError as error:
                what = f"no element of {kind.name if kind else ''}.{name}"
                raise InvalidArguments(f"{value!r} can be {what}: {problems_in(error)}") from None
    return value
