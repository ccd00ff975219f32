"""Checks items against DynamoDB's rules for values, and brings them to one normal form.

`normal_item` returns the item as it is stored, and its size. In normal form, numbers are canonical, sets
are sorted and base64 is canonical, so two values are equal exactly if their normal forms are equal Python
objects. An item that is already in normal form is returned itself, not as a copy. A `NormalItem` is known
to be in normal form and is not checked again.

The messages are those of DynamoDB where it has one. This module knows no keys and no tables.
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

# Whole numbers and short fractions that match are canonical. Everything else takes the slower way.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,37}|-?(?:0|[1-9][0-9]{0,18})\.[0-9]{0,17}[1-9]")
LONG_NUMBER = 42
"""Every number that `_CANONICAL` matches is shorter than this. Longer text is left to the general code."""
# The pattern is unambiguous about where each run of digits ends, so matching takes linear time for any input.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")


_INVALID = "One or more parameter values were invalid: "


class NormalItem(dict[str, Any]):
    """An item or a key in normal form, with its size. It must not be changed."""

    __slots__ = ("size",)

    def __init__(self, item: Item, size: int) -> None:
        super().__init__(item)
        self.size = size


def plain_item(attributes: Item) -> NormalItem | None:
    """Returns the item if it is in normal form and contains only ASCII text, numbers, booleans and nulls; else None.

    This is a fast path. The attributes may be any JSON: it also replaces the check of their types.
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
                digits = plain_number(value) if len(value) < LONG_NUMBER else 0
                if not digits:
                    return None
                size += digits
            elif type(attribute.get("BOOL")) is bool or attribute.get("NULL") is True:
                size += 1
            else:
                return None
        text = "".join(texts)
    except (AttributeError, TypeError):
        # An attribute is JSON of another type, which the general code refuses.
        return None
    # A name can be too long only if all texts together are. The general code finds out, and says so.
    is_plain = text.isascii() and len(text) <= MAX_NAME_SIZE and "" not in attributes
    return NormalItem(attributes, size + len(text)) if is_plain else None


@lru_cache(4096)
def plain_number(text: str) -> int:
    """Returns the size of a number, or 0 if it is not in normal form. It is cached, because most numbers recur."""
    return 0 if _CANONICAL.fullmatch(text) is None else number_size(text)


def normal_item(item: Item) -> tuple[Item, int]:
    """Returns the item in normal form, and its size as DynamoDB counts it; raises `InvalidRequest`."""
    if type(item) is NormalItem:
        return item, item.size
    names = "".join(item)
    size = len(names) if names.isascii() else sum(len(_utf8(name)) for name in item)
    altered: Item = {}
    for name, attribute in item.items():
        if type(attribute) is not dict or len(attribute) != 1:
            raise _not_one_type(attribute)
        # The two most frequent cases are handled here, without a call.
        value = attribute.get("S")
        if type(value) is str and value.isascii():
            size += len(value)
            continue
        for tag, value in attribute.items():
            if tag == "N" and type(value) is str and len(value) < LONG_NUMBER and (digits := plain_number(value)):
                size += digits
                continue
            normal, length = _normal(tag, value, 0)
            size += length
            if normal is not value:
                altered[name] = {tag: normal}
    return ({**item, **altered} if altered else item), size


def check_item(item: Item) -> None:
    """Raises `InvalidRequest` if `normal_item` would. It makes nothing, and takes half the time."""
    try:
        for attribute in item.values():
            # Fails unless there is exactly one type.
            (tag,) = attribute
            value = attribute[tag]
            if type(value) is not str:
                break
            if not (value.isascii() if tag == "S" else tag == "N" and len(value) < LONG_NUMBER and plain_number(value)):
                break
        else:
            if "".join(item).isascii():
                return
    except (TypeError, ValueError):
        pass
    normal_item(item)


def normal_attribute(attribute: AttributeValue) -> AttributeValue:
    """Returns one value in normal form; raises `InvalidRequest`."""
    if not isinstance(attribute, dict) or len(attribute) != 1:
        raise _not_one_type(attribute)
    for tag, value in attribute.items():
        if tag == "S" and type(value) is str and value.isascii():
            # The most frequent case.
            return attribute
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


# --- one rule per type -------------------------------------------------------------------------


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
        # A Decimal cannot hold every exponent of 18 digits. It raises only for one that is too large.
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
    """Returns the normal form of a value inside `depth` lists and maps; DynamoDB takes 32 levels."""
    if depth == MAX_NESTING:
        raise InvalidRequest(
            "Nesting Levels have exceeded supported limits:"
            " Attributes in the item have nested levels beyond supported limit"
        )
    if not isinstance(attribute, dict) or len(attribute) != 1:
        raise _not_one_type(attribute)
    ((tag, value),) = attribute.items()
    if type(value) is str:
        # As in `normal_item`.
        if tag == "S" and value.isascii():
            return attribute, len(value)
        if tag == "N" and len(value) < LONG_NUMBER and (digits := plain_number(value)):
            return attribute, digits
    normal, size = _normal(tag, value, depth)
    return attribute if normal is value else {tag: normal}, size


def _list(value: Any, depth: int) -> Normal:
    if not isinstance(value, list):
        raise _of(list, "L", value)
    size = 3 + len(value)
    normal = []
    is_same = True
    for element in value:
        inner, length = _inner(element, depth + 1)
        normal.append(inner)
        size += length
        is_same = is_same and inner is element
    return value if is_same else normal, size


def _map(value: Any, depth: int) -> Normal:
    if not isinstance(value, dict):
        raise _of(dict, "M", value)
    size = 3 + len(value)
    altered = {}
    for name, element in value.items():
        size += len(name) if name.isascii() else len(_utf8(name))
        # Most maps hold texts and numbers, which are handled here, without a call. `_inner` looks at the depth.
        if depth < MAX_NESTING - 1 and type(element) is dict and len(element) == 1:
            text = element.get("S")
            if type(text) is str and text.isascii():
                size += len(text)
                continue
            text = element.get("N")
            if type(text) is str and len(text) < LONG_NUMBER and (digits := plain_number(text)):
                size += digits
                continue
        inner, length = _inner(element, depth + 1)
        size += length
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
