"""Formats: how a table writes dates and numbers, in attributes and in keys.

    %Y-%m-%dT%H:%M:%SZ    a date, with Python's directives, and %3f for three digits of a second
    epoch, epoch_ms       seconds or milliseconds since 1970
    05d, d, 08.2f, .2f    a number as text, with leading zeros or without

A format writes each of its values in exactly one way, and reads that way only. It refuses a value that it cannot hold
whole, such as parts of a second where it ends with seconds, so that what is read is what was written. `floor` and
`ceil` give the nearest values that it holds, to compare with.

Times with a time zone are written in UTC. A format that ends with Z, UTC, GMT, +00:00 or +0000, and seconds since 1970,
are times in UTC; other formats are times without a time zone.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, InvalidValue, shown
from adjoin.values import AttributeValue, canonical_number, in_utc

StoredType: TypeAlias = Literal["S", "N"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SAMPLE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_DIRECTIVE = re.compile(r"(%3f|%.)", re.DOTALL)
_DATE_PARTS: dict[str, tuple[str, int]] = {
    "%Y": ("year", 4),
    "%m": ("month", 2),
    "%d": ("day", 2),
    "%H": ("hour", 2),
    "%M": ("minute", 2),
    "%S": ("second", 2),
    "%3f": ("millisecond", 3),
    "%f": ("microsecond", 6),
}
"""The directives whose text has a fixed width, in the order of their weight."""
_WEIGHT = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_FIRST = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
_STEPS: dict[str, dt.timedelta] = {
    "day": dt.timedelta(days=1),
    "hour": dt.timedelta(hours=1),
    "minute": dt.timedelta(minutes=1),
    "second": dt.timedelta(seconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "microsecond": dt.timedelta(microseconds=1),
}
_ZONES = ("Z", "UTC", "GMT", "+00:00", "+0000")
EPOCHS: dict[str, tuple[dt.timedelta, int]] = {
    "epoch": (dt.timedelta(seconds=1), 10),
    "epoch_ms": (dt.timedelta(milliseconds=1), 13),
}
"""The unit of each format, and how many digits it has as text: with fewer or more, texts would not sort by time."""
_EXACT = Context(prec=400)
NUMBER = re.compile(r"(?:0([1-9]\d?))?(?:\.([1-9]\d?))?([df]?)")


@dataclass(frozen=True)
class Format:
    """A format for the values of one type."""

    name: str
    tag: StoredType
    """The stored type: text or a number."""
    plain: type
    """The type of its values: datetime, date, int or Decimal."""

    @property
    def sorts(self) -> bool:
        """Whether what is written sorts as the values do."""
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """What is written for a value; raises `InvalidValue` for a value that the format cannot hold."""
        raise NotImplementedError

    def value(self, text: str) -> Any:
        """The value of a text; raises `ValueError` for any other text than the one that is written for a value."""
        raise NotImplementedError

    def floor(self, value: Any) -> Any:
        """The greatest value of the format that is not above this one."""
        return value

    def ceil(self, value: Any) -> Any:
        """The least value of the format that is not below this one."""
        return value

    @property
    def sample(self) -> Any:
        """A time that the format can hold; for formats of datetimes."""
        return _SAMPLE

    def encode(self, value: Any) -> AttributeValue:
        text = self.text(value)
        return {"N": canonical_number(text)} if self.tag == "N" else {"S": text}

    def decode(self, stored: AttributeValue) -> Any:
        """The value of an attribute; raises `ValueError` if it is not written in this format."""
        text = stored.get(self.tag)
        if text is None:
            raise ValueError(f"it is stored as {next(iter(stored), 'nothing')}, not as {self.tag}")
        return self.value(text)

    def _wrong(self, text: str) -> ValueError:
        return ValueError(f"{shown(text)} is not written as {self.name!r}")


# --- dates -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DateFormat(Format):
    """A date with directives such as %Y-%m-%d; each of them has a fixed width."""

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The directives, and the literals between them."""
        return tuple(piece for piece in _DIRECTIVE.split(self.name) if piece)

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The pieces, with literals as they are written."""
        return tuple(_literal(piece) for piece in self.pieces)

    def is_part(self, piece: str) -> bool:
        return piece in _DATE_PARTS

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """What the directives stand for, in the order of the text."""
        return tuple(_DATE_PARTS[piece][0] for piece in self.pieces if piece in _DATE_PARTS)

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Where each part is in the text: its first character, and how many it has."""
        found: dict[str, tuple[int, int]] = {}
        at = 0
        for piece in self.pieces:
            name, width = _DATE_PARTS.get(piece, ("", len(_literal(piece))))
            found |= {name: (at, width)} if name else {}
            at += width
        return found

    @cached_property
    def width(self) -> int:
        return sum(_DATE_PARTS[each][1] if each in _DATE_PARTS else len(_literal(each)) for each in self.pieces)

    @cached_property
    def finest(self) -> str:
        """The least part of a date that the format holds."""
        return max(self.parts, key=lambda part: [*_WEIGHT[:6], "millisecond", "microsecond"].index(part))

    @cached_property
    def has_zone(self) -> bool:
        return self.name.endswith(_ZONES) and self.plain is dt.datetime

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        parts = (
            f"(?P<{_DATE_PARTS[piece][0]}>[0-9]{{{_DATE_PARTS[piece][1]}}})"
            if piece in _DATE_PARTS
            else re.escape(_literal(piece))
            for piece in self.pieces
        )
        return re.compile("".join(parts), re.DOTALL)

    @property
    def sorts(self) -> bool:
        return list(self.parts) == sorted(self.parts, key=[each[0] for each in _DATE_PARTS.values()].index)

    @cached_property
    def is_whole(self) -> bool:
        """Whether it holds every value of its type: it loses nothing."""
        return self.finest == ("microsecond" if self.plain is dt.datetime else "day")

    @property
    def sample(self) -> Any:
        return _SAMPLE if self.has_zone else _SAMPLE.replace(tzinfo=None)

    def floor(self, value: Any) -> Any:
        value = self._in_zone(value)
        if self.finest == "millisecond":
            return value.replace(microsecond=value.microsecond // 1000 * 1000)
        below = _WEIGHT[_WEIGHT.index(self.finest) + 1 :]
        fields = ("day", "month", "year") if self.plain is dt.date else _WEIGHT
        return value.replace(**{name: _FIRST[name] for name in below if name in fields})

    def ceil(self, value: Any) -> Any:
        low = self.floor(value)
        if low == value:
            return value
        try:
            if self.finest in _STEPS:
                return low + _STEPS[self.finest]
            # Months and years have no fixed length, so they are counted instead of added.
            months = low.year * 12 + low.month - 1 + (12 if self.finest == "year" else 1)
            return low.replace(year=months // 12, month=months % 12 + 1)
        except (OverflowError, ValueError):
            raise InvalidValue(f"{shown(value)} is too late to be written as {self.name!r}") from None

    def text(self, value: Any) -> str:
        low, value = self.floor(value), self._in_zone(value)
        if low != value:
            raise InvalidValue(
                f"{value.isoformat()} has parts that {self.name!r} does not hold, and they would be lost; remove what "
                f"is finer than the {self.finest}, or use a finer format"
            )
        return self.spelled(value)

    def spelled(self, value: Any) -> str:
        """The text of a value without what the format does not hold."""
        texts = []
        for piece in self.pieces:
            name, width = _DATE_PARTS.get(piece, ("", 0))
            number = value.microsecond // 1000 if name == "millisecond" else getattr(value, name) if name else 0
            texts.append(f"{number:0{width}}" if name else _literal(piece))
        return "".join(texts)

    def _in_zone(self, value: Any) -> Any:
        if self.plain is dt.date:
            return value
        if self.has_zone and value.tzinfo is None:
            raise InvalidValue(f"{value} has no time zone, and {self.name!r} is a time in UTC; give it one")
        if not self.has_zone and value.tzinfo is not None:
            raise InvalidValue(
                f"{value} has a time zone, which {self.name!r} does not hold; end the format with Z for times in UTC, "
                f"or take the time zone off"
            )
        return in_utc(value)

    def value(self, text: str) -> Any:
        if self.tag == "N":
            text = text.zfill(self.width)
        found = self.pattern.fullmatch(text)
        if found is None:
            raise self._wrong(text)
        numbers = {name: int(digits) for name, digits in found.groupdict().items()}
        if "millisecond" in numbers:
            numbers["microsecond"] = numbers.pop("millisecond") * 1000
        try:
            if self.plain is dt.date:
                return dt.date(numbers["year"], numbers.get("month", 1), numbers.get("day", 1))
            return dt.datetime(**{"month": 1, "day": 1, **numbers}, tzinfo=dt.UTC if self.has_zone else None)
        except ValueError:
            raise self._wrong(text) from None


@dataclass(frozen=True)
class EpochFormat(Format):
    """Seconds or milliseconds since 1970."""

    @property
    def sorts(self) -> bool:
        return True

    def floor(self, value: Any) -> Any:
        return _EPOCH + (_utc(value, self.name) - _EPOCH) // EPOCHS[self.name][0] * EPOCHS[self.name][0]

    def ceil(self, value: Any) -> Any:
        return _EPOCH - (_EPOCH - _utc(value, self.name)) // EPOCHS[self.name][0] * EPOCHS[self.name][0]

    def text(self, value: Any) -> str:
        (unit, digits), when = EPOCHS[self.name], _utc(value, self.name)
        if self.floor(when) != when:
            raise InvalidValue(
                f"{when.isoformat()} has parts that {self.name!r} does not hold, and they would be lost; remove what "
                f"is finer than the {'second' if self.name == 'epoch' else 'millisecond'}"
            )
        text = str((when - _EPOCH) // unit)
        if self.tag == "S" and not (text.isdecimal() and len(text) == digits):
            raise InvalidValue(
                f"{when.isoformat()} would be {text} as text, and only numbers of {digits} digits sort by time there"
            )
        return text

    def value(self, text: str) -> Any:
        unit, digits = EPOCHS[self.name]
        # At most 18 digits, so that a text cannot make Python compute a huge number.
        if re.fullmatch(r"0|-?[1-9][0-9]{,17}" if self.tag == "N" else rf"[1-9][0-9]{{{digits - 1}}}", text) is None:
            raise self._wrong(text)
        try:
            return _EPOCH + int(text) * unit
        except OverflowError:
            raise self._wrong(text) from None


def _utc(value: Any, name: str) -> Any:
    if value.tzinfo is None:
        raise InvalidValue(f"{value} has no time zone, so its {name!r} is unknown; give it one")
    return in_utc(value)


def _literal(piece: str) -> str:
    return "%" if piece == "%%" else piece


# --- numbers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberFormat(Format):
    """A number as text: with leading zeros, with a fixed number of places, or as it is."""

    @cached_property
    def _spec(self) -> tuple[int | None, int | None]:
        found = NUMBER.fullmatch(self.name)
        assert found is not None
        width, places, _ = found.groups()
        return (int(width) if width else None), (int(places) if places else None)

    @property
    def sorts(self) -> bool:
        return self._spec[0] is not None

    def _rounded(self, value: Any, rounding: str) -> Any:
        places = 0 if self.plain is int else self._spec[1]
        if places is None:
            return value
        try:
            found = Decimal(value).quantize(Decimal(1).scaleb(-places), rounding, _EXACT)
        except ArithmeticError:
            raise InvalidValue(f"{shown(value)} cannot be written as {self.name!r}") from None
        return int(found) if self.plain is int else found

    def floor(self, value: Any) -> Any:
        return self._rounded(value, ROUND_FLOOR)

    def ceil(self, value: Any) -> Any:
        return self._rounded(value, ROUND_CEILING)

    def text(self, value: Any) -> str:
        width, places = self._spec
        if self.floor(value) != value:
            raise InvalidValue(f"{value} has more places than {self.name!r} holds; round it")
        text = f"{value:d}" if self.plain is int else canonical_number(value)
        if places is not None:
            text = f"{Decimal(text):.{places}f}"
        if width is None:
            return text
        if value < 0 or len(text) > width:
            raise InvalidValue(f"{value} cannot be written as {self.name!r}: it is negative, or has too many digits")
        return text.zfill(width)

    def value(self, text: str) -> Any:
        try:
            found = int(text) if self.plain is int else Decimal(text)
            # There must be one spelling of each value, so that keys with equal values are equal.
            if math.isfinite(found) and self.text(found) == text:
                return found
        except (ValueError, ArithmeticError, InvalidValue):
            pass
        raise self._wrong(text)


# --- which format a declaration means ----------------------------------------------------------


def date_format(spec: str, plain: type, type: StoredType = "S") -> DateFormat | None:
    """The format of directives of a fixed width, from the year down; None for others, such as %b or %H alone."""
    found = DateFormat(spec, type, plain)
    known = {*_DATE_PARTS, "%%"}
    if any(piece[0] == "%" and piece not in known for piece in found.pieces) or not found.parts:
        return None
    names = ["microsecond" if part == "millisecond" else part for part in found.parts]
    ordered = _WEIGHT if plain is dt.datetime else _WEIGHT[:3]
    return found if {*names} == {*ordered[: len(names)]} and len({*names}) == len(names) else None


_UNITS = ("year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _fineness(spec: str, plain: type) -> tuple[int, bool] | None:
    """The place of the least unit that a format of dates in keys holds, and whether it is a time in UTC."""
    if spec in EPOCHS:
        return _UNITS.index("second" if spec == "epoch" else "millisecond"), True
    found = date_format(spec, plain)
    return None if found is None else (_UNITS.index(found.finest), found.has_zone)


def holds_as_much(spec: str, other: str, plain: type) -> bool:
    """Whether a format of dates holds all that another one does."""
    one, another = _fineness(spec, plain), _fineness(other, plain)
    return one is not None and another is not None and one[0] >= another[0] and one[1] == another[1]


def finest_of(specs: Sequence[str], plain: type) -> str:
    """The format of dates that holds most; the first of several that hold as much."""
    return max(specs, key=lambda spec: _fineness(spec, plain) or (-1, False))


_OF_DAYS = frozenset("YyGmbBdjUVWuwaA%")
"""The letters of directives that are the same all day."""


def dates_between(low: Any, high: Any, specs: Sequence[str], most: int) -> list[Any]:
    """One date for each text in which dates from `low` to `high` are spelled; none for more than `most`.

    None either for formats that tell times finer than minutes, because almost every time has a text of its own.
    """
    plain = dt.datetime if isinstance(low, dt.datetime) else dt.date
    steps = [_step(spec, plain) for spec in specs]
    if not steps or None in steps or (plain is dt.datetime and (low.tzinfo is None) is not (high.tzinfo is None)):
        return []
    at, end = (in_utc(low), in_utc(high)) if plain is dt.datetime else (low, high)
    if at > end:
        return [at]
    step: dt.timedelta = min(each for each in steps if each is not None)
    found: dict[tuple[str, ...], Any] = {}
    # A month has no fixed length, so all its days are tried; no text is that of more than the days of a year.
    for _ in range(most * 366 + 1):
        if at > end:
            break
        found.setdefault(tuple(at.strftime(spec) if spec else at.isoformat() for spec in specs), at)
        if len(found) > most:
            return []
        at = _next(at, step)
    return list(found.values())


def divides_dates(spec: str, plain: type | None) -> bool:
    """Whether a range of dates has few texts in a format: one for each day, hour, month or so."""
    return plain is not None and issubclass(plain, dt.date) and _step(spec, plain) is not None


def _step(spec: str, plain: type) -> dt.timedelta | None:
    letters = {*re.findall(r"%(?:3?)([A-Za-z%])", spec)}
    if (letters <= _OF_DAYS and letters) or (not spec and not issubclass(plain, dt.datetime)):
        return dt.timedelta(days=1)
    if letters <= _OF_DAYS | {"H"}:
        return dt.timedelta(hours=1) if letters else None
    return dt.timedelta(minutes=1) if letters <= _OF_DAYS | {"H", "M"} else None


def _next(at: Any, step: dt.timedelta) -> Any:
    """The beginning of the next day, hour or minute."""
    if not isinstance(at, dt.datetime):
        return at + step
    first = at.replace(second=0, microsecond=0)
    if step >= dt.timedelta(hours=1):
        first = first.replace(minute=0)
    return (first.replace(hour=0) if step >= dt.timedelta(days=1) else first) + step


def format_of(owner: str, spec: object, type: object, plain: type | None) -> Format:
    """The format that a field declares; raises `InvalidModel` for one that its type does not have."""
    if not isinstance(spec, str) or type not in (None, "S", "N"):
        raise InvalidModel(f'{owner}: Stored takes a format and type="S" or "N", got {shown(spec)} and {shown(type)}')
    found: Format | None = None
    if plain is dt.datetime and spec in EPOCHS:
        found = EpochFormat(spec, "S" if type == "S" else "N", plain)
    elif plain in (dt.datetime, dt.date) and "%" in spec:
        assert plain is not None
        found = date_format(spec, plain, "N" if type == "N" else "S")
        if (
            found is not None
            and type == "N"
            and (not found.sorts or any(each not in _DATE_PARTS for each in found.pieces))
        ):
            raise InvalidModel(
                f"{owner}: {spec!r} is not a number; write a date as a number with %Y%m%d, from the year down"
            )
    elif plain in (int, Decimal) and spec and type != "N":
        assert plain is not None
        match = NUMBER.fullmatch(spec)
        is_whole = match is not None and match[2] is None and match[3] != "f"
        if match is not None and (is_whole if plain is int else match[3] == "f"):
            found = NumberFormat(spec, "S", plain)
    if found is None:
        name = "its type" if plain is None else plain.__name__
        raise InvalidModel(
            f"{owner}: there is no format {spec!r} for {name}; use a date format from the year down such as "
            f"%Y-%m-%dT%H:%M:%SZ, epoch or epoch_ms for a datetime, 05d or d for an int, 08.2f, .2f or f for a Decimal"
        )
    return found
