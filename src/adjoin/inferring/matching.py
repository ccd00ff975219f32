"""The text of keys from the values of an item: which column or attribute fills each part, and by which transform.

A match holds for every item that was read, or it is no match.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from operator import eq
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.formats import EpochFormat, date_format
from adjoin.inferring.grouping import Group
from adjoin.inferring.hints import Hint
from adjoin.inferring.naming import is_generic
from adjoin.inferring.splitting import Splitter, is_word
from adjoin.values import AttributeValue

_PREFIXES = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y%m", "%Y%m%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M")
"""Formats that keep only the beginning of a time, as keys of months or days have it."""


_FEW_LABELS, _FEW_WORDS = 2, 5
"""How many items must have a word in a key before it is taken for a constant: in upper case, and in any other."""


@dataclass(frozen=True)
class OfColumn:
    column: int


@dataclass(frozen=True)
class OfField:
    attribute: str
    transform: str


KeyPiece: TypeAlias = str | OfColumn | OfField
KeyPieces: TypeAlias = list[KeyPiece]


def same_as(texts: Sequence[str], values: Sequence[AttributeValue | None]) -> tuple[str, str] | None:
    """How texts in a key are made of an attribute: (its stored type, the transform); None if they are not."""
    if any(value is None for value in values):
        return None
    found = [value for value in values if value is not None]
    if all(value.get("S") == text for text, value in zip(texts, found, strict=True)):
        return "S", ""
    numbers = [value.get("N") for value in found]
    if all(number is not None and re.fullmatch(r"-?\d+", number) for number in numbers):
        if all(number == text for text, number in zip(texts, numbers, strict=True)):
            return "N", ""
        widths = {len(text) for text in texts}
        if len(widths) == 1 and 1 < (width := widths.pop()) < 40:
            padded = [(number or "").zfill(width) for number in numbers]
            if list(texts) == padded:
                return "N", f"0{width}"
    return None


class Matching:
    """Matches the key attributes of indexes in one group."""

    def __init__(self, group: Group, splitter: Splitter, hints: dict[str, Hint], words: set[str]) -> None:
        """`hints` has the attributes that are fields; `words` are the words of type attributes."""
        self._group, self._splitter, self._hints, self._words = group, splitter, hints, words
        self.doubts: dict[str, str] = {}
        """For key attributes, which field they may be made of only by chance."""

    def parts(self, name: str) -> KeyPieces | None:
        """The parts of a key attribute; None if no template writes it as the items have it."""
        items = self._group.items
        rows = [number for number, item in enumerate(items) if name in item]
        if not rows or any("S" not in items[number][name] for number in rows):
            return None
        texts = [items[number][name]["S"] for number in rows]
        whole = self._whole(texts, rows)
        if whole is not None:
            return self._sparse([whole], rows)
        splits = [self._splitter.split(text, name) for text in texts]
        # One template has the same separators in every key.
        if len({split.separators for split in splits}) > 1:
            return None
        parts: KeyPieces = []
        for place in range(len(splits[0].tokens)):
            if place:
                parts.append(splits[0].separators[place - 1])
            tokens = [split.tokens[place] for split in splits]
            found = self._part(tokens, rows, is_first=place == 0, is_alone=len(splits[0].tokens) == 1)
            if isinstance(found, OfField) and len({*tokens}) == 1 and len(tokens) > 1:
                self.doubts[name] = f"{name} has {tokens[0]!r} from {found.attribute}, which is the same in all items"
            if found is None:
                return None
            parts.append(found)
        if not is_generic(name) and not any(isinstance(each, OfColumn) for each in parts):
            # An attribute with a name of its own is a field, not a key that is made of others.
            return None
        return self._sparse(parts, rows)

    def _whole(self, texts: list[str], rows: list[int]) -> KeyPiece | None:
        """A column or an attribute that is the whole key, though it may have separators in it."""
        # The same text in all items may be a constant as well as a value, so it is split first.
        if len({*texts}) == 1 and len(texts) > 1:
            return None
        for number, column in enumerate(self._group.columns):
            if [column[row] for row in rows] == texts:
                return OfColumn(number)
        return None

    def _part(self, tokens: list[str], rows: list[int], *, is_first: bool, is_alone: bool) -> KeyPiece | None:
        distinct = {*tokens}
        (first, *_) = tokens
        is_constant = len(distinct) == 1
        if is_constant and (first == "" or first.upper() in self._words):
            return first
        if is_constant and is_first and is_word(first) and not is_alone:
            return first
        found = self._column(tokens, rows) or self._field(tokens, rows)
        if found is not None:
            return found
        # A value that happens to be the same in a few items must not become what all items have.
        is_label = is_constant and is_word(first) and len(rows) >= (_FEW_LABELS if first.isupper() else _FEW_WORDS)
        return first if is_label else None

    def _column(self, tokens: list[str], rows: list[int]) -> OfColumn | None:
        for number, column in enumerate(self._group.columns):
            if [column[row] for row in rows] == tokens:
                return OfColumn(number)
        return None

    def _field(self, tokens: list[str], rows: list[int]) -> OfField | None:
        items = [self._group.items[row] for row in rows]
        for name, hint in self._hints.items():
            if any(name not in item for item in items):
                continue
            spec = _transform(tokens, [item[name] for item in items], hint)
            if spec is not None:
                return OfField(name, spec)
        return None

    def _sparse(self, parts: KeyPieces, rows: list[int]) -> KeyPieces | None:
        """The parts, if items without the key lack a field of it, so that they are not in the index."""
        present = {*rows}
        absent = [item for number, item in enumerate(self._group.items) if number not in present]
        if not absent:
            return parts
        names = [each.attribute for each in parts if isinstance(each, OfField)]
        return parts if any(all(name not in item for item in absent) for name in names) else None


def _transform(tokens: list[str], values: list[AttributeValue], hint: Hint) -> str | None:
    """The transform that makes these tokens of the values of a field."""
    if hint.text in ("dt.datetime", "dt.date"):
        return _of_dates(tokens, values, hint)
    if hint.text not in ("str", "int", "UUID"):
        return None
    same = same_as(tokens, values)
    if same is not None:
        return same[1]
    texts = [value.get("S", "") for value in values]
    if hint.text == "str" and all(texts):
        changes: tuple[tuple[str, Callable[[str], str]], ...] = (("upper", str.upper), ("lower", str.lower))
        for spec, change in changes:
            if tokens == [change(text) for text in texts]:
                return spec
    return None


def _of_dates(tokens: list[str], values: list[AttributeValue], hint: Hint) -> str | None:
    texts = [value.get("S", "") for value in values]
    if tokens == texts and hint.in_key != "?":
        return hint.in_key
    plain = dt.datetime if hint.text == "dt.datetime" else dt.date
    moments = [_moment(value, hint) for value in values]
    if any(moment is None for moment in moments):
        return None
    for spec in _PREFIXES:
        format = date_format(spec, plain)
        # Most formats differ in the first token already.
        if format is not None and all(map(eq, tokens, map(format.spelled, moments))):
            return spec
    for spec in ("epoch", "epoch_ms") if plain is dt.datetime else ():
        try:
            if all(map(eq, tokens, map(EpochFormat(spec, "S", plain).text, moments))):
                return spec
        except AdjoinError:
            continue
    return None


def _moment(value: AttributeValue, hint: Hint) -> dt.date | None:
    try:
        if hint.stored in ("epoch", "epoch_ms"):
            moment: dt.date = EpochFormat(hint.stored, "N", dt.datetime).decode(value)
        elif hint.text == "dt.date":
            found = date_format(hint.stored or "%Y-%m-%d", dt.date)
            assert found is not None
            moment = found.decode(value)
        else:
            found = date_format(hint.stored, dt.datetime) if hint.stored else None
            moment = found.decode(value) if found else dt.datetime.fromisoformat(value["S"])
    except (ValueError, KeyError, AdjoinError):
        return None
    return moment
