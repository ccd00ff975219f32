"""Key templates: readable, reversible, and safe.

A template such as "HOME#{country}#{city:upper}" is compiled for one class into literals and parts.
It renders values into a key and matches a key back into the texts of its parts. What it renders is
never ambiguous: a part cannot hold a character that ends a part, either because such characters are
percent-encoded (an escaping layout) or because a value that has one is refused (a literal layout,
for tables that other programs write too).

Percent-encoding covers every character up to "%" (controls, space, !, ", #, $), not only the
separator: "%" then sorts after the separator "#" and before everything that is not encoded, so the
order of encoded values is the order of the values.

Only one spelling is that of a value: a key that is spelled in another way ("%41" for "A", "01" for 1) is of no
template, so that an id has one key, and a key one id. An id is never empty.

Pure functions over text and values; no models, no items.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import string
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from adjoin.errors import AdjoinError, InvalidKey, InvalidModel, InvalidValue, shown
from adjoin.values import MAX_DIGITS, canonical_number, in_utc

SEPARATOR = "#"

# --- values as text ----------------------------------------------------------------------------


def key_text(value: object) -> str:
    """The plain spelling of a value in a key; dates sort by time, in UTC if they have a zone."""
    # Most ids are text or numbers, and need no search for what they are.
    if type(value) is str:
        return value if value.isascii() else _carried(value)
    if type(value) is int:
        return _int_text(value)
    match value:
        case Enum():
            return key_text(value.value)
        case str():
            return value if value.isascii() else _carried(value)
        case int():
            return _int_text(value)
        case Decimal():
            return canonical_number(value)
        case dt.datetime() if value.tzinfo is not None:
            return key_text(in_utc(value).replace(tzinfo=None)) + "Z"
        case dt.datetime():
            return value.isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
    raise InvalidKey(f"{shown(value)} cannot be part of a key; use text, a whole number, a date or a UUID")


def _carried(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidKey(f"{shown(text)} holds half of a surrogate pair, which UTF-8 cannot carry") from None
    return text


_MOST_BITS = 6800
"""Of an int in a key: as many digits as a key has bytes. Python refuses to write one of more than 4,300."""


def _int_text(value: int) -> str:
    if value.bit_length() > _MOST_BITS:
        raise InvalidKey(
            f"an int of {value.bit_length():,} bits cannot be part of a key; a key has 2,048 bytes at most"
        )
    return str(value)


_READERS: tuple[tuple[type, Callable[[str], Any]], ...] = (
    (int, int),
    (Decimal, Decimal),
    (uuid.UUID, uuid.UUID),
    (dt.datetime, dt.datetime.fromisoformat),
    (dt.date, dt.date.fromisoformat),
)


def value_of(plain: type | None, text: str) -> Any:
    """The value of a type that a key spells so; None if it is no spelling of one."""
    if plain is None:
        return text
    if issubclass(plain, Enum):
        return next((member for member, spelled in spellings(plain) if spelled == text), None)
    read = next((read for kind, read in _READERS if issubclass(plain, kind)), str)
    try:
        value = read(text)
        return value if read is str or key_text(value) == text else None
    except (AdjoinError, ValueError, ArithmeticError):
        return None


def spellings(plain: type[Enum]) -> Iterator[tuple[Enum, str]]:
    """The members of an Enum that can be part of a key, and how."""
    for member in plain:
        try:
            yield member, key_text(member.value)
        except (InvalidKey, InvalidValue):
            continue


def check_length(text: str, limit: int, what: str, remedy: str) -> None:
    """Raises unless a key is text that UTF-8 can carry, in no more than so many bytes."""
    if len(text) <= limit // 4 and text.isascii():
        return
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidKey(f"{what} would hold half of a surrogate pair, which UTF-8 cannot carry") from None
    if size > limit:
        raise InvalidKey(
            f"{what} would have {size:,} bytes ({text[:40]!r}…); DynamoDB takes {limit:,} at most, so use {remedy}"
        )


_BIAS = 500
_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def sortable_text(value: Any) -> str:
    """A spelling whose text order is the order of the values, negative numbers included.

    A number is its sign, the biased power of ten, and its digits: 42 is "p502.42". A negative one has
    both complemented and ends with "~", after every digit: -42 is "n497.57~". Zero is "o".
    """
    if isinstance(value, Enum):
        return sortable_text(value.value)
    if not isinstance(value, (int, Decimal)):
        return key_text(value)
    if not value:
        return "o"
    text = _int_text(value) if type(value) is int else canonical_number(Decimal(value))
    whole, _, fraction = text.lstrip("-").partition(".")
    mantissa = (whole + fraction).strip("0")
    if len(mantissa) > MAX_DIGITS:
        raise InvalidKey(f"{value} has more than {MAX_DIGITS} significant digits; round it")
    zeros = len(fraction) - len(fraction.lstrip("0"))
    power = _BIAS + (len(whole) if whole.strip("0") else -zeros)
    if value < 0:
        return f"n{999 - power:03}.{mantissa.translate(_COMPLEMENT)}~"
    return f"p{power:03}.{mantissa}"


def unsorted_text(text: str) -> str:
    """The plain spelling behind a sortable one; text that is no sortable number is left alone."""
    if text == "o":
        return "0"
    match = re.fullmatch(r"p(\d{3})\.(\d+)|n(\d{3})\.(\d+)~", text)
    if not match:
        return text
    power, mantissa, negative_power, complement = match.groups()
    sign = ""
    if power is None:
        power, mantissa = str(999 - int(negative_power)), complement.translate(_COMPLEMENT)
        sign = "-"
    return canonical_number(f"{sign}0.{mantissa}E{int(power) - _BIAS}")


# --- transforms --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transform:
    """How a part spells its value; without `decode` the value cannot be had back from the key."""

    name: str
    encode: Callable[[Any], str]
    decode: Callable[[str], str] | None
    prefix: Callable[[Any], str] | None = key_text
    """How the start of a value is spelled; None where it does not spell the start of the text."""
    numbers: type | None = None
    """The type of number whose texts sort as the numbers do, if it is for numbers."""

    @property
    def sorts(self) -> bool:
        """Whether the texts of numbers sort as the numbers do."""
        return self.numbers is not None


_TRANSFORMS = {
    transform.name: transform
    for transform in (
        Transform("", key_text, str),
        Transform("upper", lambda value: key_text(value).upper(), None, lambda start: key_text(start).upper()),
        Transform("lower", lambda value: key_text(value).lower(), None, lambda start: key_text(start).lower()),
        Transform("sortable", sortable_text, unsorted_text, prefix=None, numbers=Decimal),
    )
}


def transform(spec: str) -> Transform:
    """The transform a placeholder names: "upper", "lower", "sortable", "08" or a date format."""
    if known := _TRANSFORMS.get(spec):
        return known
    if padding := re.fullmatch(r"0([1-9]\d?)d?", spec):
        width = int(padding[1])
        return Transform(spec, lambda value: _padded(value, width), _unpadded, prefix=None, numbers=int)
    if "%" in spec:
        return Transform(spec, lambda value: value.strftime(spec), None)
    raise InvalidModel(
        f"there is no transform {spec!r}; use upper, lower, sortable, a width such as 08, "
        f"or a date format such as %Y-%m"
    )


def _padded(value: Any, width: int) -> str:
    if not isinstance(value, int) or value < 0 or len(str(value)) > width:
        raise InvalidKey(
            f"{value!r} cannot be padded to {width} digits in order; use a whole number of at most "
            f"{width} digits, or the transform 'sortable'"
        )
    return f"{value:0{width}}"


def _unpadded(text: str) -> str:
    return text.lstrip("0") or "0"


# --- templates ---------------------------------------------------------------------------------


_IDS = ("id", "source.id", "target.id")


@dataclass(frozen=True, slots=True)
class Part:
    """A place in a template that a value fills."""

    name: str
    transform: Transform
    plain: type | None = None
    """The type of its values, where it is known."""

    @property
    def is_id(self) -> bool:
        return self.name in _IDS

    def is_spelled(self, text: str) -> bool:
        """Whether this is how the part spells a value, and not only how it might be."""
        if not text and self.is_id:
            return False
        decode, is_plain = self.transform.decode, not self.transform.name
        if decode is None or (is_plain and (self.plain is str or self.plain is None)):
            return True
        try:
            if is_plain and self.plain is int:
                return str(int(text)) == text
            value = value_of(self.plain or self.transform.numbers, decode(text))
            return value is not None and self.transform.encode(value) == text
        except (AdjoinError, ValueError, ArithmeticError):
            return False


def parse_template(template: str) -> list[str | Part]:
    """The literals and parts of a template's text."""
    pieces: list[str | Part] = []
    try:
        for literal, name, spec, _ in string.Formatter().parse(template):
            if literal:
                pieces.append(literal)
            if name is not None:
                pieces.append(Part(name, transform(spec or "")))
    except ValueError as error:
        raise InvalidModel(f"the key template {template!r} cannot be read: {error}") from None
    return pieces


def delimiters(templates: Iterable[list[str | Part]]) -> frozenset[str]:
    """The characters that end a part somewhere in these templates."""
    found = {SEPARATOR}
    for pieces in templates:
        for piece, following in itertools.pairwise(pieces):
            if isinstance(piece, Part) and isinstance(following, str):
                found.add(following[0])
    return frozenset(found)


class Quoting:
    """Keeps the text of one part from being read as the end of it."""

    def __init__(self, ends: frozenset[str], *, escape: bool) -> None:
        self.ends = ends
        self.escape = escape
        also = "".join(re.escape(end) for end in sorted(ends) if end > "%")
        self._taboo = re.compile(f"[\x00-%{also}]" if escape else "[" + re.escape("".join(sorted(ends))) + "]")
        self.special = self._taboo.search
        """Finds what is spelled in another way than it is, or ends a part, from a place on."""
        self.inside = "[^" + re.escape("".join(sorted(ends))) + "]*"
        """The pattern of what the text of a part may be: quoted as it is here, and in no other way."""
        if escape:
            codes = "".join(f"|{ord(end):02X}" for end in sorted(ends) if end > "%")
            self.inside = f"(?:[^\\x00-%{also}]|%(?:[01][0-9A-F]|2[0-5]{codes}))*"
        self._whole = re.compile(self.inside, re.DOTALL)

    def quote(self, text: str) -> str:
        if self._taboo.search(text) is None:
            return text
        if self.escape:
            return self._taboo.sub(lambda found: f"%{ord(found[0]):02X}", text)
        ends = " or ".join(map(repr, sorted(self.ends)))
        raise InvalidKey(
            f"{text!r} holds {ends}, which separates the parts of this layout's keys; "
            f"choose another value, or give the layout escape=True"
        )

    def is_quoted(self, text: str) -> bool:
        """Whether a text is what `quote` makes of one."""
        return self._taboo.search(text) is None or (self.escape and self._whole.fullmatch(text) is not None)

    def unquote(self, text: str) -> str:
        if not self.escape or "%" not in text:
            return text
        return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)


class Template:
    """A template compiled for one class."""

    def __init__(self, owner: str, pieces: list[str | Part], quoting: Quoting) -> None:
        self.owner = owner
        self.pieces = _merged(pieces)
        self.parts = tuple(piece for piece in self.pieces if isinstance(piece, Part))
        self.quoting = quoting
        for piece, following in itertools.pairwise(self.pieces):
            if isinstance(piece, Part) and isinstance(following, Part):
                raise InvalidModel(
                    f"in a key of {owner}, {{{piece.name}}} runs into {{{following.name}}}: where one ends "
                    f"cannot be told; put a separator such as '#' between them"
                )
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise InvalidModel(f"a key of {owner} names a field twice: {self}")
        self.lead = self.pieces[0] if self.pieces and isinstance(self.pieces[0], str) else ""
        """The literal every key of this template starts with."""
        self._pattern = re.compile(
            "".join(re.escape(piece) if isinstance(piece, str) else f"({quoting.inside})" for piece in self.pieces),
            re.DOTALL,
        )
        self.is_tail = len(self.pieces) == 2 and isinstance(self.pieces[1], Part) and bool(self.lead)
        """Whether it is one literal and one part: the commonest shape, which needs no search."""

    def __str__(self) -> str:
        return "".join(piece if isinstance(piece, str) else f"{{{piece.name}}}" for piece in self.pieces)

    @property
    def told(self) -> set[str]:
        """The parts whose values can be had back from a key."""
        return {part.name for part in self.parts if part.transform.decode}

    def render(self, values: Mapping[str, Any]) -> str:
        if self.is_tail:
            return self.lead + self._filled(self.parts[0], values)
        return "".join(piece if isinstance(piece, str) else self._filled(piece, values) for piece in self.pieces)

    def _filled(self, part: Part, values: Mapping[str, Any]) -> str:
        text = self.text(part, values[part.name])
        if not text and part.is_id:
            raise InvalidKey(
                f"{self.owner}.{part.name} is empty, and so cannot be told from a key; give it a character"
            )
        return text

    def prefix(self, part: Part, start: Any) -> str:
        """The quoted text that values of a part begin with if they begin with this."""
        if part.transform.prefix is None:
            raise InvalidValue(
                f"{self.owner}.{part.name} is encoded in the key so that it sorts, and such a form has no "
                f"prefixes; use between instead"
            )
        return self.quoting.quote(part.transform.prefix(start))

    def text(self, part: Part, value: Any) -> str:
        """The quoted text of one part."""
        if value is None:
            raise InvalidKey(f"{self.owner}.{part.name} is None, but it is part of a key; give it a value")
        try:
            return self.quoting.quote(part.transform.encode(value))
        except InvalidKey as error:
            raise InvalidKey(f"{self.owner}.{part.name}: {error}") from None

    def match(self, key: str) -> dict[str, str] | None:
        """The plain text of each part that can be had back, or None if the key is of another template."""
        if self.is_tail:
            if not key.startswith(self.lead):
                return None
            rest = key[len(self.lead) :]
            if not self.quoting.is_quoted(rest):
                return None
            texts: tuple[str, ...] = (rest,)
        else:
            found = self._pattern.fullmatch(key)
            if found is None:
                return None
            texts = found.groups()
        told: dict[str, str] = {}
        for part, text in zip(self.parts, texts, strict=True):
            plain = self.quoting.unquote(text)
            if not part.is_spelled(plain):
                return None
            if part.transform.decode is not None:
                told[part.name] = part.transform.decode(plain)
        return told

    def start(self, known: Mapping[str, Any]) -> tuple[str, Part | None]:
        """The text up to the first part that is not known, and that part (None if all are)."""
        text = ""
        for piece in self.pieces:
            if isinstance(piece, str):
                text += piece
            elif piece.name in known:
                text += self.text(piece, known[piece.name])
            else:
                return text, piece
        return text, None

    def follower(self, part: Part) -> str:
        """The literal right behind a part, "" if it ends the key."""
        at = self.pieces.index(part) + 1
        return str(self.pieces[at]) if at < len(self.pieces) else ""

    def spelled(self, **names: str) -> str:
        """The template's text with parts renamed."""
        return "".join(
            piece if isinstance(piece, str) else f"{{{names.get(piece.name, piece.name)}}}" for piece in self.pieces
        )

    def overlaps(self, other: Template) -> bool:
        """Whether some key could start like keys of both."""
        return self.lead.startswith(other.lead) or other.lead.startswith(self.lead)

    def may_equal(self, other: Template) -> bool:
        """Whether both could render one and the same key.

        No part holds a separator, so both split at the separators, and segments meet one by one.
        """
        mine, theirs = self._segments(), other._segments()
        return len(mine) == len(theirs) and all(map(_may_meet, mine, theirs))

    def _segments(self) -> list[tuple[str, str | None]]:
        """Between separators: (all of it, None), or (what it starts with, what it ends with)."""
        segments: list[tuple[str, str | None]] = [("", None)]
        for piece in self.pieces:
            if isinstance(piece, Part):
                segments[-1] = (segments[-1][0], "")
                continue
            for character in piece:
                head, tail = segments[-1]
                if character in self.quoting.ends:
                    segments += [(character, None), ("", None)]
                elif tail is None:
                    segments[-1] = (head + character, None)
                else:
                    segments[-1] = (head, tail + character)
        return segments


def _may_meet(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    (head, tail), (other_head, other_tail) = one, other
    if tail is None and other_tail is None:
        return head == other_head
    if tail is None or other_tail is None:
        whole, (start, end) = (head, other) if tail is None else (other_head, one)
        return whole.startswith(start) and whole.endswith(end or "") and len(whole) >= len(start + (end or ""))
    heads = head.startswith(other_head) or other_head.startswith(head)
    return heads and (tail.endswith(other_tail) or other_tail.endswith(tail))


def _merged(pieces: list[str | Part]) -> list[str | Part]:
    merged: list[str | Part] = []
    for piece in pieces:
        if piece == "":
            continue
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
