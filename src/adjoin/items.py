"""What an item must be: every rule DynamoDB has for values, checked and brought to one normal form.

`normal_item` answers the item as it is stored, and its size. Numbers get their one spelling, sets are
sorted, base64 is canonical; so two values are equal exactly if their normal forms are equal Python
objects. An item that is in normal form already is answered itself, not a copy; a `NormalItem` was brought to
it before, and is not looked at again.

Keys are no matter of this module, nor is any table.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from adjoin.errors import InvalidRequest, InvalidValue
from adjoin.units import MAX_NAME_SIZE, MAX_NESTING
from adjoin.values import MAX_EXPONENT, MIN_EXPONENT, AttributeValue, Item, canonical_number, number_size

Normal = tuple[Any, int]
"""A value in normal form, and its size in bytes."""

# Whole numbers and short fractions are canonical as they stand; anything else takes the long way.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,37}|-?(?:0|[1-9][0-9]{0,18})\.[0-9]{0,17}[1-9]")
_LONG_NUMBER = 42
"""Characters that no number in normal form has."""
# Without a place where one run of digits could end and another begin: it looks at each character once.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")


_INVALID = "One or more parameter values were invalid: "


class NormalItem(dict[str, Any]):
    """An item, or a key, that is in normal form, and its size; nobody may change it."""

    __slots__ = ("size",)

    def __init__(self, item: Item, size: int) -> None:
        super().__init__(item)
        self.size = size


def plain_item(attributes: Item) -> NormalItem | None:
    """The item if it is in normal form and holds nothing but ASCII text, numbers and truth; else None.

    Its attributes may be any JSON: this takes the place of a check of their types, where there is a lot to check.
    """
    texts = [*attributes]
    add = texts.append
    size = 0
    try:
        for attribute in attributes.values():
            if len(attribute) != 1:
                return None
            if (value := attribute.get("S")) is not None:
                add(value)
            elif (value := attribute.get("N")) is not None:
                digits = _plain_number(value) if len(value) < _LONG_NUMBER else 0
                if not digits:
                    return None
                size += digits
            elif type(attribute.get("BOOL")) is bool or attribute.get("NULL") is True:
                size += 1
            else:
                return None
        text = "".join(texts)
    except (AttributeError, TypeError):
        # Some JSON of another type.
        return None
    # Only a long text could be a name that is too long, which others have to tell.
    is_plain = text.isascii() and len(text) <= MAX_NAME_SIZE and "" not in attributes
    return NormalItem(attributes, size + len(text)) if is_plain else None


@lru_cache(4096)
def _plain_number(text: str) -> int:
    """The size of a number, 0 if it is not in normal form. Most of what is written has been written before."""
    return 0 if _CANONICAL.fullmatch(text) is None else number_size(text)


def normal_item(item: Item) -> tuple[Item, int]:
    """The item in normal form, and its size as DynamoDB counts it."""
    if type(item) is NormalItem:
        return item, item.size
    size = 0
    altered: Item = {}
    for name, attribute in item.items():
        size += len(name) if name.isascii() else len(_utf8(name))
        if type(attribute) is not dict or len(attribute) != 1:
            raise _not_one_type(attribute)
        for tag, value in attribute.items():
            # The two most frequent cases, without the way through the rules.
            if type(value) is str:
                if tag == "S" and value.isascii():
                    size += len(value)
                    continue
                if tag == "N" and _CANONICAL.fullmatch(value):
                    size += number_size(value)
                    continue
            normal, length = _normal(tag, value, 0)
            size += length
            if normal is not value:
                altered[name] = {tag: normal}
    return ({**item, **altered} if altered else item), size


def normal_attribute(attribute: AttributeValue) -> AttributeValue:
    """One value in normal form."""
    if not isinstance(attribute, dict) or len(attribute) != 1:
        raise _not_one_type(attribute)
    for tag, value in attribute.items():
        normal, _ = _normal(tag, value, 0)
        if normal is not value:
            return {tag: normal}
    return attribute


def _not_one_type(attribute: object) -> InvalidRequest:
    if not isinstance(attribute, dict):
        return InvalidRequest(f"{attribute!r} has no type; a value is written as {{type: value}}")
    if not attribute:
        return InvalidRequest("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
    return InvalidRequest(
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
    )


def _normal(tag: str, value: Any, depth: int) -> Normal:
    try:
        rule = _RULES[tag]
    except KeyError:
        raise InvalidRequest(
            f"{tag!r} is not a type of value; DynamoDB has S, N, B, BOOL, NULL, L, M, SS, NS and BS"
        ) from None
    return rule(value, depth)


# --- one rule a type ---------------------------------------------------------------------------


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{text!r} holds half of a surrogate pair, which UTF-8 cannot carry") from None


def _of(kind: type, tag: str, value: Any) -> InvalidRequest:
    return InvalidRequest(f"a {tag} value must be a {kind.__name__}, not {value!r}")


def _text(value: Any, depth: int) -> Normal:
    if not isinstance(value, str):
        raise _of(str, "S", value)
    return value, len(value) if value.isascii() else len(_utf8(value))


def _number(value: Any, depth: int) -> Normal:
    if not isinstance(value, str):
        raise _of(str, "N", value)
    if not _CANONICAL.fullmatch(value):
        if not _NUMBER.fullmatch(value):
            raise InvalidRequest(f"The parameter cannot be converted to a numeric value: {value}")
        try:
            value = canonical_number(value)
        except InvalidValue:
            raise InvalidRequest(_number_fault(value)) from None
    return value, number_size(value)


def _number_fault(text: str) -> str:
    try:
        exponent = Decimal(text).adjusted()
    except InvalidOperation:
        # An exponent of 18 digits can be more than a Decimal has room for, but not less.
        exponent = MAX_EXPONENT + 1
    if exponent > MAX_EXPONENT:
        return "Number overflow. Attempting to store a number with magnitude larger than supported range"
    if exponent < MIN_EXPONENT:
        return "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    return "Attempting to store more than 38 significant digits in a Number"


def _binary(value: Any, depth: int) -> Normal:
    if not isinstance(value, str):
        raise _of(str, "B", value)
    try:
        raw = b64decode(value, validate=True)
    except (Base64Error, ValueError):
        raise InvalidRequest(f"{value!r} is not base64, which a B value is written in") from None
    canonical = b64encode(raw).decode()
    return value if value == canonical else canonical, len(raw)


def _boolean(value: Any, depth: int) -> Normal:
    if not isinstance(value, bool):
        raise _of(bool, "BOOL", value)
    return value, 1


def _null(value: Any, depth: int) -> Normal:
    if value is not True:
        raise InvalidRequest(f"{_INVALID}Null attribute value types must have the value of true")
    return value, 1


def _inner(attribute: AttributeValue, depth: int) -> tuple[AttributeValue, int]:
    """A value within `depth` others, which together are at most 32."""
    if depth == MAX_NESTING:
        raise InvalidRequest(
            "Nesting Levels have exceeded supported limits:"
            " Attributes in the item have nested levels beyond supported limit"
        )
    if not isinstance(attribute, dict) or len(attribute) != 1:
        raise _not_one_type(attribute)
    ((tag, value),) = attribute.items()
    normal, size = _normal(tag, value, depth)
    return attribute if normal is value else {tag: normal}, size


def _list(value: Any, depth: int) -> Normal:
    if not isinstance(value, list):
        raise _of(list, "L", value)
    size = 3 + len(value)
    normal = []
    for element in value:
        inner, length = _inner(element, depth + 1)
        normal.append(inner)
        size += length
    same = all(new is old for new, old in zip(normal, value, strict=True))
    return value if same else normal, size


def _map(value: Any, depth: int) -> Normal:
    if not isinstance(value, dict):
        raise _of(dict, "M", value)
    size = 3 + len(value)
    altered = {}
    for name, element in value.items():
        inner, length = _inner(element, depth + 1)
        size += length + len(_utf8(name))
        if inner is not element:
            altered[name] = inner
    return {**value, **altered} if altered else value, size


def _set_of(rule: Callable[[Any, int], Normal], tag: str, empty: str, twice: str) -> Callable[[Any, int], Normal]:
    def check(value: Any, depth: int) -> Normal:
        if not isinstance(value, list):
            raise _of(list, tag, value)
        if not value:
            raise InvalidRequest(_INVALID + empty)
        pairs = [rule(element, depth) for element in value]
        normal = sorted(element for element, _ in pairs)
        if len(set(normal)) < len(normal):
            raise InvalidRequest(_INVALID + twice.format(", ".join(map(str, value))))
        return value if normal == value else normal, sum(size for _, size in pairs)

    return check


_RULES: dict[str, Callable[[Any, int], Normal]] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "L": _list,
    "M": _map,
    "SS": _set_of(_text, "SS", "An string set  may not be empty", "Input collection [{}] contains duplicates."),
    "NS": _set_of(_number, "NS", "An number set  may not be empty", "Input collection contains duplicates"),
    "BS": _set_of(
        _binary, "BS", "Binary sets should not be empty", "Input collection [{}]of type BS contains duplicates."
    ),
}
