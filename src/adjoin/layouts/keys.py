"""Key templates: readable, reversible and safe.

A template such as "HOME#{country}#{city:upper}" is compiled for one class into literals and parts. It renders values
into a key, and matches a key back into the texts of its parts. A key is never ambiguous, because no part contains a
character that ends a part: an escaping layout percent-encodes such characters, and a literal layout, for tables that
other programs write too, refuses values that have one. Dates and UUIDs have such characters at fixed places, where they
end nothing: "{day}-{id}" is unambiguous, because a day always has two hyphens.

Percent-encoding covers every character up to "%" (controls, space, !, ", #, $), not only the separator. So "%" sorts
after the separator "#" and before everything that is not encoded, and the order of encoded values is the order of the
values.

Each value has exactly one spelling. A key with another spelling ("%41" for "A", "01" for 1) matches no template, so
that an id has one key, and a key has one id. An id is never empty.

Pure functions over text and values; no classes, no items.
"""

from __future__ import annotations

import binascii
import datetime as dt
import itertools
import re
import string
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any

from adjoin.errors import AdjoinError, InvalidKey, InvalidModel, InvalidValue, shown
from adjoin.formats import EPOCHS, DateFormat, EpochFormat, Format, date_format
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.model import SHARDS_READ
from adjoin.tables import KeyType
from adjoin.values import MAX_DIGITS, AttributeValue, canonical_number, in_utc

SEPARATOR = "#"

# --- values as text ----------------------------------------------------------------------------


def key_text(value: object) -> str:
    """The plain spelling of a value in a key; dates sort by time, in UTC if they have a time zone."""
    # Most ids are text or whole numbers; for these, the match below would only cost time.
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
        raise InvalidKey(f"{shown(text)} holds half of a surrogate pair, which UTF-8 cannot encode") from None
    return text


_MOST_BITS = 6800
"""Bits of the largest int in a key: about as many digits as a key has bytes. Python prints no int over 4,300 digits."""


def _int_text(value: int) -> str:
    if value.bit_length() > _MOST_BITS:
        raise InvalidKey(
            f"an int of {value.bit_length():,} bits cannot be part of a key; a key has at most 2,048 bytes"
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
    """The value of a type that has this spelling in a key; None if no value has it."""
    if plain is None:
        return text
    if issubclass(plain, Enum):
        return next((member for member, spelled in spellings(plain) if spelled == text), None)
    if issubclass(plain, bytes):
        return _bytes_of(text)
    read = next((read for kind, read in _READERS if issubclass(plain, kind)), str)
    try:
        value = read(text)
        return value if read is str or key_text(value) == text else None
    except (AdjoinError, ValueError, ArithmeticError):
        return None


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def _bytes_of(text: str) -> bytes | None:
    """The bytes that have this spelling in Base64; None if no bytes have it."""
    try:
        value = binascii.a2b_base64(text)
    except ValueError:
        return None
    return value if _base64(value) == text else None


def spellings(plain: type[Enum]) -> Iterator[tuple[Enum, str]]:
    """The members of an Enum that can be part of a key, each with its spelling."""
    for member in plain:
        try:
            yield member, key_text(member.value)
        except (InvalidKey, InvalidValue):
            continue


def check_length(text: str, limit: int, what: str, remedy: str) -> None:
    """Raises if UTF-8 cannot encode a key, or if the key has more than `limit` bytes."""
    if len(text) <= limit // 4 and text.isascii():
        return
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidKey(f"{what} would hold half of a surrogate pair, which UTF-8 cannot encode") from None
    if size > limit:
        raise InvalidKey(
            f"{what} would have {size:,} bytes ({text[:40]!r}…); DynamoDB takes at most {limit:,}, so use {remedy}"
        )


def check_key_length(text: str, type: KeyType, limit: int, what: str, remedy: str) -> None:
    """The same for the text of a key of any type: numbers are never too long, and Base64 is longer than its bytes."""
    if type == "S":
        check_length(text, limit, what, remedy)
    elif type == "B" and (size := len(binascii.a2b_base64(text))) > limit:
        raise InvalidKey(f"{what} would have {size:,} bytes; DynamoDB takes at most {limit:,}, so use {remedy}")


_BIAS = 500
_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def sortable_text(value: Any) -> str:
    """A spelling whose text order is the order of the values, also for negative numbers.

    A number is spelled as its sign, the biased power of ten, and its digits: 42 is "p502.42". For a negative number,
    power and digits are complemented, and "~", which sorts after every digit, ends it: -42 is "n497.57~". Zero is "o".
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
    """The plain spelling of a sortable one; text that is not a sortable number is returned unchanged."""
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
    """How a part spells its value; without `decode` the value cannot be read back from the key."""

    name: str
    encode: Callable[[Any], str] = field(compare=False)
    decode: Callable[[str], str] | None = field(compare=False)
    prefix: Callable[[Any], str] | None = field(default=key_text, compare=False)
    """How a prefix of a value is spelled; None if it is not a prefix of the value's spelling."""
    numbers: type | None = None
    """The type of number whose spellings sort as the numbers do; None if it is not for numbers."""
    format: Format | None = None
    """The format of a date that can be read back: it refuses a value that it cannot hold whole."""

    @property
    def sorts(self) -> bool:
        """Whether the spellings of numbers sort as the numbers do."""
        return self.numbers is not None

    @property
    def sorts_dates(self) -> bool:
        """Whether it is a date format whose spellings sort as the dates do: from the year down, with leading zeros."""
        return self.name in EPOCHS or _SORTED_DATES.fullmatch(self.name) is not None


_SORTED_DATES = re.compile(
    r"[^%]*%Y[^%\d]*(?:%m[^%\d]*(?:%d[^%\d]*(?:%H[^%\d]*(?:%M[^%\d]*(?:%S[^%\d]*(?:%3?f[^%\d]*)?)?)?)?)?)?"
)

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
    """The transform that a placeholder names: "upper", "lower", "sortable", "08" or a date format."""
    if known := _TRANSFORMS.get(spec):
        return known
    if padding := re.fullmatch(r"0([1-9]\d?)d?", spec):
        width = int(padding[1])
        return Transform(spec, lambda value: _padded(value, width), _unpadded, prefix=None, numbers=int)
    if "%" in spec or spec in EPOCHS:
        return Transform(spec, lambda value: _in_utc(value).strftime(spec), None)
    raise InvalidModel(
        f"there is no transform {spec!r}; use upper, lower, sortable, a width such as 08, epoch, epoch_ms, "
        f"or a date format such as %Y-%m"
    )


def date_transform(given: Transform, plain: type, *, is_exact: bool) -> Transform:
    """The transform of a date format for values of a type.

    An exact one refuses a value that the format cannot hold whole, so that it can be read back. Another leaves out what
    the format does not hold.
    """
    spec, kind = given.name, dt.datetime if issubclass(plain, dt.datetime) else dt.date
    format = EpochFormat(spec, "S", kind) if spec in EPOCHS else date_format(spec, kind)
    if format is None:
        return given
    if is_exact:
        return Transform(spec, format.text, lambda text: key_text(format.value(text)), format=format)
    if isinstance(format, DateFormat):
        spelled = format.spelled
        return Transform(spec, lambda value: spelled(_in_utc(value)), None)
    return Transform(spec, lambda value: format.text(format.floor(value)), None, prefix=None)


def _in_utc(value: Any) -> Any:
    return in_utc(value) if isinstance(value, dt.datetime) else value


def _padded(value: Any, width: int) -> str:
    if not isinstance(value, int) or value < 0 or len(str(value)) > width:
        raise InvalidKey(
            f"{value!r} cannot be padded to {width} digits in order; use a whole number of at most "
            f"{width} digits, or the transform 'sortable'"
        )
    return f"{value:0{width}}"


def _unpadded(text: str) -> str:
    return text.lstrip("0") or "0"


# --- keys that are no text ---------------------------------------------------------------------
# Such a key is one value: a number as DynamoDB spells it, or bytes in Base64. It is no text in which parts end.


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def number_text(value: Any) -> str:
    """The spelling of a number, or of a datetime as the seconds since 1970."""
    if isinstance(value, Enum):
        return number_text(value.value)
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise InvalidKey(f"{value} has no time zone, so its second since 1970 is unknown; give it one")
        value = Decimal((value - _EPOCH) // _MICROSECOND).scaleb(-6)
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        raise InvalidKey(f"{shown(value)} is not a number, and the key is one; use an int, a Decimal or a datetime")
    try:
        return canonical_number(_int_text(value) if isinstance(value, int) else value)
    except InvalidValue as error:
        raise InvalidKey(str(error)) from None


def _time_text(text: str) -> str:
    """The spelling in text of the datetime whose second since 1970 has this spelling."""
    micros = Decimal(text).scaleb(6)
    if micros != int(micros):
        raise InvalidKey(f"the second {text} has more than six digits after the point")
    return key_text(_EPOCH + int(micros) * _MICROSECOND)


def binary_text(value: Any) -> str:
    """The spelling of bytes, or of the 16 bytes of a UUID."""
    if isinstance(value, uuid.UUID):
        return _base64(value.bytes)
    if not isinstance(value, bytes):
        raise InvalidKey(f"{shown(value)} is not binary, and the key is; use bytes or a UUID")
    return _base64(value)


def _uuid_text(text: str) -> str:
    return str(uuid.UUID(bytes=binascii.a2b_base64(text)))


_NUMBER = Transform("", number_text, str, prefix=None, numbers=Decimal)
_TIME = Transform("", number_text, _time_text, prefix=None, numbers=Decimal)
_BINARY = Transform("", binary_text, str, prefix=None)
_BINARY_UUID = Transform("", binary_text, _uuid_text, prefix=None)


def _epoch(format: EpochFormat) -> Transform:
    return Transform(
        "", format.text, lambda text: key_text(format.value(text)), prefix=None, numbers=Decimal, format=format
    )


def typed_transform(type: KeyType, plain: type | None, spec: str = "") -> Transform | None:
    """How a key that is no text spells values of a Python type; None if it cannot have such values.

    `spec` is the transform of its placeholder: none, or for times in a number "epoch" or "epoch_ms".
    """
    if plain is None:
        return None
    if spec:
        is_time = spec in EPOCHS and type == "N" and issubclass(plain, dt.datetime)
        return _epoch(EpochFormat(spec, "N", dt.datetime)) if is_time else None
    if type == "B":
        return _BINARY if issubclass(plain, bytes) else _BINARY_UUID if issubclass(plain, uuid.UUID) else None
    if issubclass(plain, dt.datetime):
        return _TIME
    if issubclass(plain, Enum):
        are_numbers = all(isinstance(member.value, int | Decimal) for member in plain)
        return _NUMBER if are_numbers else None
    return _NUMBER if issubclass(plain, int | Decimal) and plain is not bool else None


# --- templates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """One of the ways to spell a part: the key of a node of one class, at an end where several classes can be."""

    name: str
    """The name of the class, for messages."""
    pieces: tuple[str | Part, ...]
    values: Callable[[Any], Mapping[str, Any] | None] = field(compare=False)
    """The values of the parts of a value that is spelled so; None for a value that is not."""
    value: Callable[[Mapping[str, Any]], Any] = field(compare=False)
    """The value from the texts of the parts; None if there is none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A placeholder of a template, which a value fills."""

    name: str
    transform: Transform
    plain: type | None = None
    """The type of its values, if it is known."""
    is_id: bool = False
    """Whether it is an id, or part of one, and so never empty."""
    among: tuple[Alternative, ...] = ()
    """For a node of one of several classes, how the key of each class is spelled."""
    least: int | None = field(default=None, compare=False)
    most: int | None = field(default=None, compare=False)
    """For a whole number with bounds, the least and the greatest of its values: other numbers spell none of them."""

    def holds(self, number: int) -> bool:
        """Whether a whole number is within the bounds."""
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def held(self, ends: Collection[str]) -> str:
        """The characters among `ends` that every text of this part has, in order: "--" for a date among hyphens.

        It is "" if texts have none, or if they have different ones.
        """
        name, plain = self.transform.name, self.plain
        if plain is None or not issubclass(plain, dt.date | uuid.UUID):
            return ""
        if format := date_format(name, plain) if "%" in name else None:
            constant = "".join(piece for piece in format.literals if not format.is_part(piece))
            varying = string.digits
        else:
            found = (frame for kind, frame in _FRAMES if issubclass(plain, kind))
            constant, varying = next(found) if not name else ("", "")
        return "" if not {*ends}.isdisjoint(varying) else "".join(each for each in constant if each in ends)

    @property
    def is_date(self) -> bool:
        """Whether every text of this part begins with the digits of a date."""
        if self.plain is None or not issubclass(self.plain, dt.date):
            return False
        if "%" not in self.transform.name:
            return not self.transform.name
        format = date_format(self.transform.name, self.plain)
        return format is not None and format.is_part(format.pieces[0])

    def is_spelled(self, text: str) -> bool:
        """Whether this is the one spelling of a value of this part."""
        if not text and self.is_id:
            return False
        decode, is_plain = self.transform.decode, not self.transform.name
        if decode is None or (is_plain and (self.plain is str or self.plain is None)):
            return True
        try:
            if is_plain and self.plain is int:
                return str(int(text)) == text and self.holds(int(text))
            value = value_of(self.plain or self.transform.numbers, decode(text))
            is_bounded = self.least is not None or self.most is not None
            if value is None or (is_bounded and not self.holds(value)):
                return False
            return self.transform.encode(value) == text
        except (AdjoinError, ValueError, ArithmeticError):
            return False


_FRAMES: tuple[tuple[type, tuple[str, str]], ...] = (
    (uuid.UUID, ("----", string.digits + "abcdef")),
    (dt.datetime, ("--T::.", string.digits + "Z")),
    (dt.date, ("--", string.digits)),
)
"""The characters that all texts of a type have, in order, and those that differ."""


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
    """Escapes or refuses characters that would end a part of a key. Without such characters, any text is as it is."""

    def __init__(self, ends: frozenset[str], *, escape: bool) -> None:
        self.ends = ends
        self.escape = escape
        also = "".join(re.escape(end) for end in sorted(ends) if end > "%")
        taboo = "[" + re.escape("".join(sorted(ends))) + "]" if ends else "(?!)"
        self._taboo = re.compile(f"[\x00-%{also}]" if escape else taboo)
        self.special = self._taboo.search
        """Searches a text, from a position on, for a character that is escaped or ends a part."""
        self.inside = "[^" + re.escape("".join(sorted(ends))) + "]*" if ends else ".*"
        """The pattern of the text of a part: it matches only what `quote` produces."""
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
        """Whether `quote` can have produced a text."""
        return self._taboo.search(text) is None or (self.escape and self._whole.fullmatch(text) is not None)

    def unquote(self, text: str) -> str:
        if not self.escape or "%" not in text:
            return text
        return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)


SHARD = "shard"
"""The placeholder of a shard's number."""


class Template:
    """A template compiled for one class."""

    def __init__(
        self, owner: str, pieces: list[str | Part], quoting: Quoting, type: KeyType = "S", *, repeats: bool = False
    ) -> None:
        """`repeats` allows a field twice; a key matches only if it has the same value in both places."""
        self.owner = owner
        self.pieces = _merged(pieces)
        self.parts = tuple(piece for piece in self.pieces if isinstance(piece, Part))
        self.quoting = quoting
        self.type = type
        """The type of the key attribute. A number is written as DynamoDB spells it."""
        self.names = tuple(part.name for part in self.parts)
        """The values that a key is made of."""
        for piece, following in itertools.pairwise(self.pieces):
            if isinstance(piece, Part) and isinstance(following, Part):
                raise InvalidModel(
                    f"in a key of {owner}, nothing separates {{{piece.name}}} from {{{following.name}}}; "
                    f"put a separator such as '#' between them"
                )
        whole = [part.name for part in self.parts if part.transform.decode]
        self._echoes = tuple(part for part in self.parts if not part.transform.decode and part.name in whole)
        """The parts that hold less of a value which another part holds whole."""
        if len({*self.names}) + len(self._echoes) < len(self.names) and not repeats:
            raise InvalidModel(f"a key of {owner} names a field twice: {self}")
        self.lead = self.pieces[0] if self.pieces and isinstance(self.pieces[0], str) else ""
        """The literal with which every key of this template begins."""
        self._spellings = {
            part.name: [(each, Template(owner, [*each.pieces], quoting, repeats=True)) for each in part.among]
            for part in self.parts
            if part.among
        }
        """For each part that is a node of one of several classes, the templates of their keys."""
        held = {(part.name, part.transform.name): part.held(quoting.ends) for part in self.parts}
        self._held = {} if quoting.escape else {part: ends for part, ends in held.items() if ends}
        """The characters that end parts elsewhere, and that the texts of a part have at fixed places."""
        self._pattern = re.compile(
            "".join(
                re.escape(piece) if isinstance(piece, str) else f"({self._inside(piece)})" for piece in self.pieces
            ),
            re.DOTALL,
        )
        self.is_tail = len(self.pieces) == 2 and isinstance(self.pieces[1], Part) and bool(self.lead)
        self.is_tail = self.is_tail and not self._spellings and not self._held
        """Whether it is one literal and one part: the most frequent shape, which needs no regular expression."""
        is_plain = self.is_tail and not self.parts[0].transform.name
        self._plain = (self.parts[0].name, quoting.special) if is_plain else None
        """The only part and what it must not contain, if text that needs no quoting is written as it is."""

    def __str__(self) -> str:
        return "".join(piece if isinstance(piece, str) else f"{{{piece.name}}}" for piece in self.pieces)

    def _inside(self, part: Part) -> str:
        """The pattern of the text of a part."""
        if part.among:
            return "|".join(each._ungrouped for _, each in self._spellings[part.name])
        return self.quoting.inside.join(["", *map(re.escape, self.held(part)), ""])

    def held(self, part: Part) -> str:
        """The characters that end parts elsewhere, and that every text of this part has, in order."""
        return self._held.get((part.name, part.transform.name), "") if self._held else ""

    @property
    def _ungrouped(self) -> str:
        pieces = (re.escape(each) if isinstance(each, str) else f"(?:{self._inside(each)})" for each in self.pieces)
        return "".join(pieces)

    @cached_property
    def spelled_out(self) -> tuple[tuple[tuple[str, ...], Template], ...]:
        """The templates in which each node of several classes is of one class, with the names of these classes."""
        parts = [part for part in self.parts if part.among]
        found = []
        for chosen in itertools.product(*(part.among for part in parts)):
            names = {part.name: each.name for part, each in zip(parts, chosen, strict=True)}
            found.append((tuple(names.values()), self.chosen(names)))
        return tuple(found)

    def chosen(self, classes: Mapping[str, str]) -> Template:
        """The template in which nodes of several classes are of these classes, given by the names of the parts."""
        if not self._spellings:
            return self
        pieces: list[str | Part] = []
        for piece in self.pieces:
            if isinstance(piece, str) or not piece.among:
                pieces.append(piece)
                continue
            own = next(each for each in piece.among if each.name == classes[piece.name])
            side = piece.name.rpartition(".")[0]
            pieces += [
                replace(each, name=f"{side}.{each.name}") if isinstance(each, Part) else each for each in own.pieces
            ]
        return Template(self.owner, pieces, self.quoting, self.type, repeats=True)

    @property
    def is_mixed(self) -> bool:
        """Whether a part is a node of one of several classes. Classes that are not in the graph may be there too."""
        return bool(self._spellings)

    @property
    def told(self) -> set[str]:
        """The parts whose values can be read back from a key."""
        return {part.name for part in self.parts if part.transform.decode and part.name != SHARD}

    def value(self, values: Mapping[str, Any]) -> AttributeValue:
        """The key as an attribute."""
        return self.attribute(self.render(values))

    def attribute(self, text: str) -> AttributeValue:
        if self.type == "N":
            try:
                return {"N": canonical_number(text)}
            except AdjoinError:
                raise InvalidKey(
                    f"the key {self} of {self.owner} is a number in the table, and {text!r} is not one"
                ) from None
        return {self.type: text}

    def render(self, values: Mapping[str, Any]) -> str:
        if self._plain is not None:
            name, special = self._plain
            value = values[name]
            # Most ids are short texts; for these, the functions below would only cost time.
            if type(value) is str and value and value.isascii() and special(value) is None:
                return self.lead + value
        if self.is_tail:
            return self.lead + self._filled(self.parts[0], values)
        if not self.parts:
            return self.lead
        return "".join(piece if isinstance(piece, str) else self._filled(piece, values) for piece in self.pieces)

    def _filled(self, part: Part, values: Mapping[str, Any]) -> str:
        text = self.text(part, values[part.name])
        if not text and part.is_id:
            raise InvalidKey(
                f"{self.owner}.{part.name} is empty, but an id in a key needs at least one character; give it one"
            )
        return text

    def prefix(self, part: Part, start: Any) -> str:
        """The quoted prefix of the texts of a part whose values begin with `start`."""
        self.refuse_node(part)
        if part.transform.prefix is None:
            raise InvalidValue(
                f"{self.owner}.{part.name} is encoded in the key so that it sorts, and that encoding has no "
                f"prefixes; use between instead"
            )
        text = part.transform.prefix(start)
        return text if self.held(part) else self.quoting.quote(text)

    def refuse_node(self, part: Part) -> None:
        """Raises for a part that is a node of one of several classes, whose keys have no order or prefix in common."""
        if part.among:
            raise InvalidValue(
                f"{self.owner}.{part.name} is a node of one of several classes, so there is no range of it; narrow the "
                f"query to one node with within({part.name.partition('.')[0]}=…)"
            )

    def text(self, part: Part, value: Any) -> str:
        """The quoted text of one part."""
        if value is None:
            raise InvalidKey(f"{self.owner}.{part.name} is None, but it is part of a key; give it a value")
        if part.among:
            return self._node_text(part, value)
        try:
            text = part.transform.encode(value)
            return text if self._held and self.held(part) else self.quoting.quote(text)
        except InvalidKey as error:
            raise InvalidKey(f"{self.owner}.{part.name}: {error}") from None

    def _node_text(self, part: Part, value: Any) -> str:
        """The key of a node of one of several classes."""
        for alternative, template in self._spellings[part.name]:
            values = alternative.values(value)
            if values is not None:
                return template.render(values)
        classes = ", ".join(each.name for each in part.among)
        raise InvalidKey(f"{self.owner}.{part.name} is {shown(value)}, which is of none of the classes {classes}")

    def _node_in(self, part: Part, text: str) -> Any:
        """The value of a part that is a node of one of several classes; None if the text is the key of none."""
        for alternative, template in self._spellings[part.name]:
            told = template.match(text)
            value = None if told is None else alternative.value(told)
            if value is not None:
                return value
        return None

    def match(self, key: str) -> dict[str, str] | None:
        """The plain text of each part that can be read back; None if the key does not match the template."""
        if not key.startswith(self.lead):
            return None
        if self.is_tail:
            rest = key[len(self.lead) :]
            if self._plain is not None and self.parts[0].plain is str:
                name, special = self._plain
                if rest and rest.isascii() and special(rest) is None:
                    return {name: rest}
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
            if part.among:
                node = self._node_in(part, text)
                if node is None or told.setdefault(part.name, node) != node:
                    return None
                continue
            plain = self.quoting.unquote(text)
            if not part.is_spelled(plain):
                return None
            if part.transform.decode is not None:
                value = part.transform.decode(plain)
                if told.setdefault(part.name, value) != value:
                    return None
        return told if not self._echoes or self.is_made_of(key, told) else None

    def is_made_of(self, key: str, told: Mapping[str, str]) -> bool:
        """Whether a key is the one of these values, given as the texts that this or another key tells."""
        values = {part.name: value_of(part.plain, told[part.name]) for part in self.parts if part.name in told}
        try:
            return self.render(values) == key
        except (AdjoinError, KeyError):
            return False

    def start(self, known: Mapping[str, Any]) -> tuple[str, Part | None]:
        """The text up to the first unknown part, and that part (None if all parts are known)."""
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
        """The literal that follows a part; "" if the part ends the key."""
        at = self.pieces.index(part) + 1
        return str(self.pieces[at]) if at < len(self.pieces) else ""

    def spelled(self, **names: str) -> str:
        """The template's text with parts renamed."""
        return "".join(
            piece if isinstance(piece, str) else f"{{{names.get(piece.name, piece.name)}}}" for piece in self.pieces
        )

    def prefixed(self, side: str) -> str:
        """The template's text with all parts named after a side, as edges write the key of a node."""
        return self.spelled(**{part.name: f"{side}.{part.name}" for part in self.parts})

    def overlaps(self, other: Template) -> bool:
        """Whether the literal beginning of one template is a prefix of the other's."""
        return self.lead.startswith(other.lead) or other.lead.startswith(self.lead)

    def may_equal(self, other: Template) -> bool:
        """Whether both could render the same key.

        No part contains a separator. So both are split at the separators, and the segments are compared one by one.
        A key without parts is compared exactly: "v0" is not a key of "v{number:03}".
        """
        if self._spellings or other._spellings:
            return any(one.may_equal(another) for _, one in self.spelled_out for _, another in other.spelled_out)
        if not self.parts or not other.parts:
            fixed, open = (other, self) if self.parts else (self, other)
            return open.match(fixed.render({})) is not None
        if self._is_dated_before(other) or other._is_dated_before(self):
            return False
        mine, theirs = self._all_segments, other._all_segments
        return len(mine) == len(theirs) and all(map(_may_meet, mine, theirs))

    def _is_dated_before(self, other: Template) -> bool:
        """Whether these keys begin with a date, and so with a digit, and those of the other with another character."""
        first, word = self.pieces[0], other.pieces[0]
        return isinstance(first, Part) and first.is_date and isinstance(word, str) and not word[0].isdigit()

    def is_apart(self, known: Collection[str], others: Iterable[Template]) -> bool:
        """Whether the keys of other templates never begin as these do, up to the first part that is not known."""
        unknown = (
            place for place, piece in enumerate(self.pieces) if isinstance(piece, Part) and piece.name not in known
        )
        start = self._segments(next(unknown, None))
        plain = (each for other in others for _, each in (other.spelled_out if other._spellings else (((), other),)))
        return not any(_may_begin(other._all_segments, start) for other in plain)

    @cached_property
    def _all_segments(self) -> list[tuple[str, str | None]]:
        return self._segments()

    def _segments(self, end: int | None = None) -> list[tuple[str, str | None]]:
        """The segments between separators: (the whole literal, None), or (its beginning, its end) around a part.

        `end` is the number of pieces to look at; None for all.
        """
        segments: list[tuple[str, str | None]] = [("", None)]
        for piece in self.pieces[:end]:
            if isinstance(piece, Part):
                for character in self.held(piece):
                    segments[-1] = (segments[-1][0], "")
                    segments += [(character, None), ("", None)]
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


class ShardedTemplate(Template):
    """A template with the placeholder {shard}, which a hash of other values fills."""

    def __init__(
        self,
        owner: str,
        pieces: list[str | Part],
        quoting: Quoting,
        type: KeyType,
        number: ShardNumber,
        by: tuple[str, ...] | tuple[Template, ...],
    ) -> None:
        """`by` names the values that choose the shard, or has the templates of the key that does."""
        super().__init__(owner, pieces, quoting, type)
        self.number = number
        self._by = by
        own = [name for name in self.names if name != SHARD]
        chosen_by = [name for each in by for name in (each.names if isinstance(each, Template) else (each,))]
        self.names = tuple(dict.fromkeys([*own, *chosen_by]))

    def render(self, values: Mapping[str, Any]) -> str:
        if SHARD in values:
            return super().render(values)
        choice = self.choice(values)
        kept = values.get(SHARDS_READ)
        if kept is not None:
            chosen_by, shard = kept.get(self.number.attribute, ("", None))
            if chosen_by == choice and shard in self.number.all:
                return super().render({**values, SHARD: shard})
        return super().render({**values, SHARD: self.number.place(choice)})

    @property
    def is_by_key(self) -> bool:
        """Whether the key of the item chooses the shard."""
        return any(isinstance(each, Template) for each in self._by)

    def choice(self, values: Mapping[str, Any]) -> str:
        """The text that chooses the shard."""
        texts = [
            each.render(values) if isinstance(each, Template) else key_text(_needed(self.owner, values, each))
            for each in self._by
        ]
        return "\0".join(texts)

    def foreign(self, key: str, choice: str) -> int | None:
        """The shard in a key, if it is one that adjoin would never have chosen; None if it is adjoin's own."""
        told = self.match(key)
        shard = None if told is None else value_of(int, told[SHARD])
        return shard if shard in self.number.all and shard not in self.number.places(choice) else None

    def in_shards(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys with these values in all shards."""
        return tuple(self.render({**values, SHARD: shard}) for shard in self.number.all)


def _needed(owner: str, values: Mapping[str, Any], name: str) -> Any:
    if values[name] is None:
        raise InvalidKey(f"{owner}.{name} is None, but it chooses the shard of an index key; give it a value")
    return values[name]


def _may_meet(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    (head, tail), (other_head, other_tail) = one, other
    if tail is None and other_tail is None:
        return head == other_head
    if tail is None or other_tail is None:
        whole, (start, end) = (head, other) if tail is None else (other_head, one)
        return whole.startswith(start) and whole.endswith(end or "") and len(whole) >= len(start + (end or ""))
    heads = head.startswith(other_head) or other_head.startswith(head)
    return heads and (tail.endswith(other_tail) or other_tail.endswith(tail))


def _may_begin(segments: list[tuple[str, str | None]], start: list[tuple[str, str | None]]) -> bool:
    """Whether a key with these segments can begin with others, the last of which may continue."""
    if len(segments) < len(start) or not all(map(_may_meet, segments, start[:-1])):
        return False
    (head, tail), (other, rest) = start[-1], segments[len(start) - 1]
    if tail is not None or rest is not None:
        return head.startswith(other) or other.startswith(head)
    return other.startswith(head)


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
