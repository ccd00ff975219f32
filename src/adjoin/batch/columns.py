"""Where the values of fields are: which places in an item hold them, and in which of DynamoDB's types."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from adjoin.batch.engines import Want
from adjoin.layouts.interface import BoundLayout
from adjoin.schema import EntityType, plain_type
from adjoin.values import AttributeValue

KEY_PART = "\0key"
"""The first step of a want that is no attribute, but a part of the sort key: (KEY_PART, field, tag)."""

TARGET: Want = ("\0target",)
"""The want for the target of an edge, which many jobs do without."""

_TEXTS = (str, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID)
_NUMBERS = (int, float, Decimal)


def tag_of(kind: EntityType, name: str) -> str | None:
    """The type that a field's values are stored in: "N", "S", "BOOL", or None where it may be another."""
    if name == kind.expires:
        return "N"
    plain = plain_type(kind.fields[name])
    if plain is None:
        return None
    if issubclass(plain, Enum):
        values = [member.value for member in plain]
        if all(isinstance(value, str) for value in values):
            return "S"
        is_number = all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in values)
        return "N" if is_number else None
    if issubclass(plain, bool):
        return "BOOL"
    if issubclass(plain, _NUMBERS):
        return "N"
    return "S" if issubclass(plain, _TEXTS) else None


def field_want(layout: BoundLayout, kind: EntityType, name: str) -> Want:
    """Where the values of a field are."""
    tag = tag_of(kind, name)
    if name not in layout.key_templates(kind).stored:
        return (KEY_PART, name, tag or "S")
    return attribute_want(kind.attributes[name], tag)


def attribute_want(attribute: str, tag: str | None) -> Want:
    return (attribute,) if tag is None else (attribute, tag)


@dataclass(frozen=True, slots=True)
class Stored:
    """The layout as far as conditions ask for it, where fields in keys count as attributes too."""

    layout: BoundLayout

    def filterable(self, kind: EntityType, name: str) -> str:
        stored = kind.attribute(name)
        return stored if name in self.layout.key_templates(kind).stored else f"{KEY_PART}{name}"

    def encode_field(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        return self.layout.encode_field(kind, name, value)
