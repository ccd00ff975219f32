"""How values are spelled in keys, and read back from them.

Each value has exactly one spelling. A key with another spelling ("01" for 1) is the key of nothing, so that an id has
one key, and a key has one id. A transform of a placeholder spells values in another way: in upper case, padded so that
text order is the order of numbers, or as a date in some format.

Pure functions over text and values; no templates, no classes, no items.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import field
from decimal import Decimal
from enum import Enum
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidKey, InvalidModel, InvalidValue, shown
from adjoin.formats import EPOCHS, DateFormat, EpochFormat, Format, date_format
from adjoin.tables import KeyType
from adjoin.values import MAX_DIGITS, canonical_number, in_utc

# --- values as text ----------------------------------------------------------------------------


def key_text(value: object) -> str:
    """The plain spelling of a value in a key; dates sort by time, in UTC if they have a time zone."""
    # Most ids are text or whole numbers; for these, the match below would only cost time.
    if type(value) is str:
        return value if value.isascii() else _carried(value)
    if type(value) is int:
        return str(value) if -LONGEST_PLAIN < value < LONGEST_PLAIN else _int_text(value)
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


LONGEST_PLAIN = 2**63
"""Below this, a whole number is printed without looking at its length."""
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
    # Nearly all keys are short and plain, and need not be encoded to be measured.
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
    if type(value) is int and 0 < value < LONGEST_PLAIN:
        # Most numbers in keys are such: counts, times and ratings.
        text = str(value)
        return f"p{_BIAS + len(text)}.{text.rstrip('0')}"
    if isinstance(value, Enum):
        return sortable_text(value.value)
    if not isinstance(value, (int, Decimal)):
        return key_text(value)
    return sortable_number(_int_text(value) if type(value) is int else canonical_number(Decimal(value)))


def sortable_number(text: str) -> str:
    """The same for a number in canonical form."""
    if text == "0":
        return "o"
    whole, _, fraction = text.lstrip("-").partition(".")
    # Zeros at either end are in the power already, so that each number has one spelling.
    mantissa = (whole + fraction).strip("0")
    if len(mantissa) > MAX_DIGITS:
        raise InvalidKey(f"{text} has more than {MAX_DIGITS} significant digits; round it")
    zeros = len(fraction) - len(fraction.lstrip("0"))
    power = _BIAS + (len(whole) if whole.strip("0") else -zeros)
    if text[0] == "-":
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
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, int) or value < 0 or len(str(value)) > width:
        raise InvalidKey(
            f"{value!r} cannot be padded to {width} digits in order; use a whole number of at most "
            f"{width} digits, or the transform 'sortable'"
        )
    return f"{value:0{width}}"


def _unpadded(text: str) -> str:
    return text.lstrip("0") or "0"


# --- keys that are no text ---------------------------------------------------------------------
# Such a key is one value: a number as DynamoDB spells it, or bytes in Base64. It is not a text in which parts end.


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
    """How a key that is not text spells values of a Python type; None if it cannot have such values.

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
