"""Converts Python values to stored attributes and back, without loss.

Everywhere in adjoin, a stored attribute has the form of DynamoDB's JSON protocol: `{"S": "text"}`,
`{"N": "1.5"}`, `{"B": "<base64>"}`, `{"L": [...]}` and so on. It is sent to DynamoDB and written to the
file in this form. Numbers are strings in one canonical form and are never converted to float.

This module knows no models, keys or tables.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Underflow
from enum import Enum
from typing import Any, TypeAlias

from pydantic import BaseModel, RootModel, TypeAdapter
from pydantic.fields import FieldInfo

from adjoin.errors import InvalidValue, cut, shown
from adjoin.units import MAX_NESTING

AttributeValue: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, AttributeValue]

MAX_DIGITS = 38
MAX_EXPONENT = 125
MIN_EXPONENT = -130
_SUMS = Context(prec=300)
"""Stored numbers have at most 38 digits and exponents between -130 and 125, so sums and differences of two fit into
300 digits and are exact."""
_EXACT = Context(prec=1000, Emin=-(10**6), Emax=10**6, traps=[InvalidOperation, Overflow, Underflow, Inexact])
_PLAIN = re.compile(r"0|-?[1-9][0-9]*|-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]")
"""A number in canonical form, of any length."""
SMALL_INT = 10**MAX_DIGITS
_TOO_MANY_DIGITS = f"{{}} has more than {MAX_DIGITS} significant digits; round it, or store it as text"
_TOO_DEEP = f"lists and maps are nested too deep; DynamoDB takes {MAX_NESTING} levels at most"
_OUT_OF_RANGE = "{} is outside DynamoDB's range of 1E-130 to 9.99E+125 in magnitude"


# --- numbers -----------------------------------------------------------------------------------


def canonical_number(number: Decimal | str) -> str:
    """Returns the canonical form of a number: no exponent, no leading or trailing zeros, and "0" for "-0".

    Raises `InvalidValue` for what DynamoDB cannot store.
    """
    text = str(number)
    # The fast case: most numbers are already canonical, and short enough to be within every limit.
    if len(text) <= MAX_DIGITS and _PLAIN.fullmatch(text):
        return text
    try:
        value = _EXACT.create_decimal(number)
    except InvalidOperation:
        raise InvalidValue(f"{shown(number)} is not a number") from None
    except (Overflow, Underflow):
        raise InvalidValue(_OUT_OF_RANGE.format(cut(number))) from None
    except Inexact:
        raise InvalidValue(_TOO_MANY_DIGITS.format(cut(number))) from None
    if not value.is_finite():
        raise InvalidValue(f"{cut(number)} cannot be stored: DynamoDB has no NaN and no infinity; store None instead")
    if not value:
        return "0"
    value = value.normalize(_EXACT)
    if len(value.as_tuple().digits) > MAX_DIGITS:
        raise InvalidValue(_TOO_MANY_DIGITS.format(cut(number)))
    if not MIN_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        raise InvalidValue(_OUT_OF_RANGE.format(cut(number)))
    return format(value, "f")


def parse_number(text: str) -> int | Decimal:
    """Returns a stored number as an int if it is a whole number, otherwise as a Decimal."""
    try:
        return int(text)
    except ValueError:
        return _parsed_decimal(text)


def _parsed_decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InvalidValue(f"{shown(text)} is not a number") from None
    check_range(number)
    return number


def check_range(number: Decimal) -> None:
    """Raises `InvalidValue` for a number that cannot be stored.

    Callers check this before pydantic makes an int of it: for Decimal("1E+999999999") that would not end.
    """
    if not number.is_finite() or (number and not MIN_EXPONENT <= number.adjusted() <= MAX_EXPONENT):
        raise InvalidValue(_OUT_OF_RANGE.format(cut(number)))


def number_size(text: str) -> int:
    """Returns the bytes of a canonical number as DynamoDB counts them: one per two digits, one for the exponent, and
    one more if it is negative."""
    negative = text[0] == "-"
    digits = text[1:] if negative else text
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).strip("0")
    if not significant:
        return 1
    count = len(significant)
    exponent = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    # Digits are paired from the decimal point, so an even number of digits may need one more byte.
    straddles = not count % 2 and not exponent % 2
    return 1 + (count + 1) // 2 + straddles + negative


# --- Python to attribute -----------------------------------------------------------------------


def _encode_int(value: int) -> AttributeValue:
    if -SMALL_INT < value < SMALL_INT:
        return {"N": str(value)}
    return {"N": canonical_number(Decimal(value))}


def _encode_float(value: float) -> AttributeValue:
    # `repr` is the shortest text that reads back as the same float.
    return {"N": canonical_number(repr(value))}


def in_utc(value: dt.datetime) -> dt.datetime:
    """Returns the same moment in UTC, so that the order of the stored texts is the order of time."""
    try:
        return value if value.tzinfo is None else value.astimezone(dt.UTC)
    except OverflowError:
        raise InvalidValue(f"{value} is outside the years 1 to 9999 in UTC") from None


def _encode_datetime(value: dt.datetime) -> AttributeValue:
    return {"S": in_utc(value).isoformat()}


_DURATION = TypeAdapter(dt.timedelta)


def _encode_timedelta(value: dt.timedelta) -> AttributeValue:
    return {"S": _DURATION.dump_python(value, mode="json")}


def _encode_text(value: str) -> AttributeValue:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{shown(value)} contains half of a surrogate pair, which UTF-8 cannot encode") from None
    return {"S": value}


def _encode_str(value: str) -> AttributeValue:
    # ASCII text is always valid UTF-8; testing for it is much faster than encoding.
    return {"S": value} if value.isascii() else _encode_text(value)


def _encode_sequence(value: Any) -> AttributeValue:
    return {"L": [encode(element) for element in value]}


def _encode_mapping(value: Mapping[Any, Any]) -> AttributeValue:
    entries = {_map_key(key): encode(element) for key, element in value.items()}
    if len(entries) < len(value):
        raise InvalidValue(f"{shown(value)} has two keys with the same stored text; keys of a map must differ as text")
    return {"M": entries}


def _map_key(key: Any) -> str:
    if type(key) is str:
        return key
    encoded = encode(key)
    if "S" in encoded or "N" in encoded:
        return str(next(iter(encoded.values())))
    raise InvalidValue(f"{shown(key)} cannot be a key of a map; use text or a number")


def _encode_set(value: Any) -> AttributeValue:
    elements = [encode(element) for element in value]
    tags = {tag for element in elements for tag in element}
    # DynamoDB has no empty sets, and only sets of text, of numbers or of bytes; others are stored as lists.
    if len(tags) != 1 or (tag := tags.pop()) not in "SNB":
        return {"L": elements}
    return {tag + "S": sorted(element[tag] for element in elements)}


def nested_name(name: str, info: FieldInfo) -> str:
    """Returns the stored name of a field of a nested model: its alias if validation accepts it too, or its name."""
    is_one = info.alias == info.validation_alias == info.serialization_alias
    return info.alias if is_one and info.alias else name


def _encode_model(value: BaseModel) -> AttributeValue:
    if isinstance(value, RootModel):
        return encode(value.root)
    fields = type(value).model_fields
    entries = {nested_name(name, info): encode(getattr(value, name)) for name, info in fields.items()}
    extra = value.__pydantic_extra__ or {}
    return {"M": entries | {name: encode(element) for name, element in extra.items()}}


_ENCODERS: dict[type, Callable[[Any], AttributeValue]] = {
    str: _encode_str,
    int: _encode_int,
    bool: lambda value: {"BOOL": value},
    type(None): lambda _: {"NULL": True},
    Decimal: lambda value: {"N": canonical_number(value)},
    float: _encode_float,
    bytes: lambda value: {"B": b64encode(value).decode()},
    bytearray: lambda value: {"B": b64encode(value).decode()},
    memoryview: lambda value: {"B": b64encode(value).decode()},
    list: _encode_sequence,
    tuple: _encode_sequence,
    dict: _encode_mapping,
    set: _encode_set,
    frozenset: _encode_set,
    dt.datetime: _encode_datetime,
    dt.date: lambda value: {"S": value.isoformat()},
    dt.time: lambda value: {"S": value.isoformat()},
    dt.timedelta: _encode_timedelta,
    uuid.UUID: lambda value: {"S": str(value)},
    Enum: lambda value: encode(value.value),
    BaseModel: _encode_model,
}


def encode(value: Any) -> AttributeValue:
    """Returns the stored form of a Python value; raises `InvalidValue` for a type that cannot be stored."""
    encoder = _ENCODERS.get(type(value)) or _encoder_of_base(type(value))
    try:
        return encoder(value)
    except RecursionError:
        raise InvalidValue(_TOO_DEEP) from None


def _encoder_of_base(kind: type) -> Callable[[Any], AttributeValue]:
    # Enum comes first: a member that is also a str or an int is stored by its value.
    for base in (Enum, *kind.__mro__):
        if base in _ENCODERS and issubclass(kind, base):
            return _ENCODERS.setdefault(kind, _ENCODERS[base])
    raise InvalidValue(
        f"a {kind.__name__} cannot be stored; use text, a number, bytes, a date, a list, a map, a set or a model"
    )


# --- attribute to Python -----------------------------------------------------------------------

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "S": lambda value: value,
    "N": parse_number,
    "B": b64decode,
    "BOOL": lambda value: value,
    "NULL": lambda _: None,
    "L": lambda value: [decode(element) for element in value],
    "M": lambda value: {name: decode(element) for name, element in value.items()},
    "SS": set,
    "NS": lambda value: {parse_number(element) for element in value},
    "BS": lambda value: {b64decode(element) for element in value},
}


def decode(attribute: AttributeValue) -> Any:
    """Returns the plain Python value of a stored attribute; models convert it to the types of their fields."""
    for tag, value in attribute.items():
        try:
            return _DECODERS[tag](value)
        except RecursionError:
            raise InvalidValue(_TOO_DEEP) from None
    raise InvalidValue("an attribute without a type cannot be read")


# --- sizes -------------------------------------------------------------------------------------


def text_size(text: str) -> int:
    """Returns the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def binary_size(encoded: str) -> int:
    """Returns the bytes of a value that is given in base64."""
    return len(encoded) // 4 * 3 - encoded.count("=", -2)


_SIZES: dict[str, Callable[[Any], int]] = {
    "S": text_size,
    "N": number_size,
    "B": binary_size,
    "BOOL": lambda _: 1,
    "NULL": lambda _: 1,
    "L": lambda value: 3 + sum(1 + attribute_size(element) for element in value),
    "M": lambda value: 3 + sum(1 + text_size(name) + attribute_size(element) for name, element in value.items()),
    "SS": lambda value: sum(map(text_size, value)),
    "NS": lambda value: sum(map(number_size, value)),
    "BS": lambda value: sum(map(binary_size, value)),
}


def attribute_size(attribute: AttributeValue) -> int:
    for tag, value in attribute.items():
        return _SIZES[tag](value)
    return 0


def item_size(item: Mapping[str, AttributeValue]) -> int:
    """Returns the bytes of an item as DynamoDB counts them: names and values."""
    total = 0
    for name, attribute in item.items():
        total += len(name) if name.isascii() else len(name.encode())
        for tag, value in attribute.items():
            if tag == "S" and value.isascii():
                total += len(value)
            else:
                total += _SIZES[tag](value)
    return total


def exact_sum(numbers: Iterable[Decimal]) -> Decimal:
    """Returns the sum of stored numbers without rounding."""
    result = Decimal(0)
    for number in numbers:
        result = _SUMS.add(result, number)
    return result


QUOTIENTS = Context(prec=MAX_DIGITS)
"""Means of stored numbers have as many digits as a stored number can have."""


def exact_total(numbers: Iterable[Any]) -> Any:
    """Returns the sum of numbers of any length without rounding: an int, a Decimal, or a float if one of them is."""
    result: Any = 0
    for number in numbers:
        if isinstance(result, float) or isinstance(number, float):
            result = float(result) + float(number)
        elif isinstance(result, int) and isinstance(number, int):
            result += number
        else:
            result = _EXACT.add(Decimal(result), Decimal(number))
    return result


def exact_product(number: Any, times: Any) -> Any:
    """Returns the product of two numbers without rounding: an int, a Decimal, or a float if one of them is."""
    for each in (number, times):
        if not isinstance(each, int | float | Decimal):
            raise InvalidValue(f"{shown(each)} is not a number, so it cannot be added up; name a field of numbers")
    if isinstance(number, float) or isinstance(times, float):
        return float(number) * float(times)
    if isinstance(number, int) and isinstance(times, int):
        return number * times
    return _EXACT.multiply(Decimal(number), Decimal(times))
