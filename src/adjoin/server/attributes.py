"""Values of attributes in a request: brought to normal form, or refused in the service's words.

The rules are the store's. It looks at one value after the other and stops at the first that it cannot take;
the service looks in an order of its own, and `first_fault` finds what it would report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.items import NormalItem, normal_attribute, normal_item
from adjoin.units import MAX_NAME_SIZE, MAX_NESTING
from adjoin.values import AttributeValue, Item, text_size

TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)
NO_NAME = "Empty attribute name"
LARGE_NAME = f"Attribute name is too large, must be less than {MAX_NAME_SIZE + 1} bytes"
SEVERAL_TYPES = (
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)
# The service says of a set of numbers that it repeats some, and not that parameters are invalid.
_REPEATED_NUMBERS = "Input collection contains duplicates"
_NO_NUMBER = "The parameter cannot be converted to a numeric value"

# The order in which the service looks at a value that has several types.
_ORDER = ("S", "B", "N", "BOOL", "NULL", "BS", "NS", "SS", "L", "M")


def normal(attributes: Item) -> tuple[Item, int]:
    """An item or a key in normal form, which the store will not look at again, and its size."""
    if type(attributes) is NormalItem:
        return attributes, attributes.size
    try:
        found, size = normal_item(attributes)
    except InvalidRequest as fault:
        raise InvalidRequest(first_fault(attributes.values()) or str(fault)) from None
    if "" in attributes:
        raise InvalidRequest(NO_NAME)
    # An item that is smaller than a name may be has no name that is too large.
    if size > MAX_NAME_SIZE and _has_large_name({"M": attributes}):
        raise InvalidRequest(LARGE_NAME)
    return NormalItem(found, size), size


def _has_large_name(attribute: AttributeValue) -> bool:
    entries = attribute.get("M", {})
    inner = [*entries.values(), *attribute.get("L", ())]
    return any(text_size(name) > MAX_NAME_SIZE for name in entries) or any(map(_has_large_name, inner))


def normal_value(attribute: AttributeValue) -> AttributeValue:
    """One value in normal form."""
    try:
        return normal_attribute(attribute)
    except InvalidRequest as fault:
        raise InvalidRequest(first_fault([attribute]) or str(fault)) from None


def first_fault(attributes: Iterable[AttributeValue], level: int = 1) -> str | None:
    """What the service reports of values on a level of nesting, of which a value by itself has one."""
    return next((fault for attribute in attributes if (fault := _fault(attribute, level))), None)


def _fault(attribute: AttributeValue, level: int) -> str | None:
    if level > MAX_NESTING:
        return TOO_DEEP
    for tag in _ORDER:
        if tag in attribute and (fault := _content_fault(tag, attribute[tag], level)):
            return fault
    return SEVERAL_TYPES if len(attribute) > 1 else _store_fault(attribute) if not attribute else None


def _content_fault(tag: str, content: Any, level: int) -> str | None:
    match tag, content:
        case "M", _:
            return first_fault(content.values(), level + 1)
        case "L", _:
            return first_fault(content, level + 1)
        case "N", "":
            return _NO_NUMBER
        case "NS", [_, *_] if not all(content):
            return next(fault for number in content if (fault := _content_fault("N", number or "", level)))
        case "SS" | "BS", [_, *_] if None in content:
            kind = "string" if tag == "SS" else "binary"
            return f"One or more parameter values were invalid: An {kind} set  may not have a null string as a member"
        case "NS", _:
            fault = _store_fault({tag: content})
            return _REPEATED_NUMBERS if fault and fault.endswith(_REPEATED_NUMBERS) else fault
        case _:
            return _store_fault({tag: content})


def _store_fault(attribute: AttributeValue) -> str | None:
    try:
        normal_attribute(attribute)
    except InvalidRequest as fault:
        return str(fault)
    return None
