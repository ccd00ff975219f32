"""Names and values of attributes in a request: values in normal form, and what placeholders stand for.

The store has the rules for values. It checks one value after another and stops at the first fault. DynamoDB checks in
an order of its own; `first_fault` finds the fault that it would report.

ExpressionAttributeNames and ExpressionAttributeValues are checked when `Bindings` are made of them, in DynamoDB's
order. All expressions of a request share them. Afterwards, `check_unused` refuses placeholders that no expression used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.expressions import Path, Value
from adjoin.items import NormalItem, normal_attribute, normal_item
from adjoin.server.grammar.parser import DocumentPath, Literal
from adjoin.units import MAX_NAME_SIZE, MAX_NESTING, MAX_PLACEHOLDER_SIZE
from adjoin.values import AttributeValue, Item, text_size

# --- values ------------------------------------------------------------------------------------


TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)
NO_NAME = "Empty attribute name"
LARGE_NAME = f"Attribute name is too large, must be less than {MAX_NAME_SIZE + 1} bytes"
SEVERAL_TYPES = (
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
)
# For a set with equal numbers, DynamoDB's message lacks the usual beginning about invalid parameters.
_REPEATED_NUMBERS = "Input collection contains duplicates"
_NO_NUMBER = "The parameter cannot be converted to a numeric value"

# The order in which DynamoDB checks a value that has several types.
_ORDER = ("S", "B", "N", "BOOL", "NULL", "BS", "NS", "SS", "L", "M")


def normal(attributes: Item) -> tuple[Item, int]:
    """Returns an item or a key in normal form, which the store does not check again, and its size."""
    if type(attributes) is NormalItem:
        return attributes, attributes.size
    try:
        found, size = normal_item(attributes)
    except InvalidRequest as fault:
        raise InvalidRequest(first_fault(attributes.values()) or str(fault)) from None
    if "" in attributes:
        raise InvalidRequest(NO_NAME)
    # Only an item that is larger than the limit for a name can have a name above that limit.
    if size > MAX_NAME_SIZE and _has_large_name({"M": attributes}):
        raise InvalidRequest(LARGE_NAME)
    return NormalItem(found, size), size


def _has_large_name(attribute: AttributeValue) -> bool:
    entries = attribute.get("M", {})
    inner = [*entries.values(), *attribute.get("L", ())]
    return any(text_size(name) > MAX_NAME_SIZE for name in entries) or any(map(_has_large_name, inner))


def normal_value(attribute: AttributeValue) -> AttributeValue:
    """Returns one value in normal form."""
    try:
        return normal_attribute(attribute)
    except InvalidRequest as fault:
        raise InvalidRequest(first_fault([attribute]) or str(fault)) from None


def first_fault(attributes: Iterable[AttributeValue], level: int = 1) -> str | None:
    """Returns the fault that DynamoDB reports for these values, or None. `level` is their level of nesting, from 1."""
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


# --- placeholders ------------------------------------------------------------------------------


_NAME = re.compile(r"#[A-Za-z0-9_]+")
_VALUE = re.compile(r":[A-Za-z0-9_]+")


class Bindings:
    """What the placeholders of one request stand for, and which of them were used."""

    __slots__ = ("_names", "_used_names", "_used_values", "_values")

    def __init__(
        self, names: Mapping[str, str] | None = None, values: Mapping[str, AttributeValue] | None = None
    ) -> None:
        _check_names(names)
        _check_values(values)
        self._names = names or {}
        self._values = values or {}
        self._used_names: set[str] = set()
        self._used_values: set[str] = set()

    def steps(self, place: DocumentPath, purpose: str) -> tuple[str | int, ...]:
        """Returns the steps of a path, with placeholders replaced by their names."""
        if place.path is not None:
            return place.steps
        return tuple(
            self._name(step, purpose) if isinstance(step, str) and step[0] == "#" else step for step in place.steps
        )

    def path(self, place: DocumentPath, purpose: str) -> Path:
        path = place.path or Path(self.steps(place, purpose))
        if len(path.steps) > MAX_NESTING:
            raise InvalidRequest(
                f"Invalid {purpose}: The document path has too many nesting levels; nesting levels: {len(path.steps)}"
            )
        return path

    def _name(self, placeholder: str, purpose: str) -> str:
        name = self._names.get(placeholder)
        if name is None:
            raise InvalidRequest(
                f"Invalid {purpose}: An expression attribute name used in the document path is not defined;"
                f" attribute name: {placeholder}"
            )
        self._used_names.add(placeholder)
        return name

    def value(self, literal: Literal, purpose: str) -> Value:
        attribute = self._values.get(literal.name)
        if attribute is None:
            raise InvalidRequest(
                f"Invalid {purpose}: An expression attribute value used in expression is not defined;"
                f" attribute value: {literal.name}"
            )
        self._used_values.add(literal.name)
        return Value(attribute)

    def check_unused(self) -> None:
        """Raises if there are placeholders that no expression of the request used."""
        for kind, bound, used in (
            ("Names", self._names, self._used_names),
            ("Values", self._values, self._used_values),
        ):
            if len(used) < len(bound):
                unused = _hash_order([key for key in bound if key not in used], len(bound))
                raise InvalidRequest(
                    f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{', '.join(unused)}}}"
                )


def _check_names(names: Mapping[str, str] | None) -> None:
    if names is None:
        return
    parameter = "ExpressionAttributeNames"
    _check_some(names, parameter)
    for key, name in names.items():
        if text_size(key) > MAX_PLACEHOLDER_SIZE:
            raise _too_long(parameter, f" size of key: {text_size(key)}")
        _check_form(key, _NAME, parameter)
        if not name:
            raise InvalidRequest(f"{parameter} contains invalid value: {NO_NAME} for key {key}")
        if text_size(name) > MAX_NAME_SIZE:
            raise InvalidRequest(f"{parameter} contains invalid value: {LARGE_NAME} for key {key}")


def _check_values(values: Mapping[str, AttributeValue] | None) -> None:
    if values is None:
        return
    parameter = "ExpressionAttributeValues"
    _check_some(values, parameter)
    for key in values:
        if text_size(key) > MAX_PLACEHOLDER_SIZE:
            raise _too_long(parameter)
        _check_form(key, _VALUE, parameter)
    faults: dict[str, str] = {}
    for key, value in values.items():
        try:
            normal_value(value)
        except InvalidRequest as fault:
            faults[key] = str(fault)
    for key in _hash_order(list(faults), len(values)):
        raise InvalidRequest(f"{parameter} contains invalid value: {faults[key]} for key {key}")


def _check_some(bound: Collection[Any], parameter: str) -> None:
    if not bound:
        raise InvalidRequest(f"{parameter} must not be empty")


def _check_form(key: str, form: re.Pattern[str], parameter: str) -> None:
    if not form.fullmatch(key):
        raise InvalidRequest(f'{parameter} contains invalid key: Syntax error; key: "{key}"')


def _too_long(parameter: str, size: str = "") -> InvalidRequest:
    return InvalidRequest(
        f"{parameter} contains invalid key: The expression attribute map contains a key that is too long;{size}"
    )


def _hash_order(keys: Sequence[str], total: int) -> list[str]:
    """Returns keys in the order in which DynamoDB lists them: that of a Java HashMap with `total` keys."""
    slots = 16
    while slots < total / 0.75 + 1:
        slots *= 2
    return sorted(keys, key=lambda key: _java_hash(key) & (slots - 1))


def _java_hash(text: str) -> int:
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value ^ (value >> 16)
