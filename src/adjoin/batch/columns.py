"""Where the values of fields are: which places in an item hold them, and in which of DynamoDB's types."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from orjson import dumps
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from adjoin.batch.engines import Want
from adjoin.expressions import And, Compare, Condition, Exists, Not, Or, Path, Value
from adjoin.fields import Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.conditions import NULL, condition
from adjoin.schema import EntityType, tag_of

KEY_PART = "\0key"
"""The first step of a want that is no attribute, but a part of the sort key: (KEY_PART, field, tag)."""

TARGET: Want = ("\0target",)
"""The want for the target of an edge, which many jobs do without."""


def field_want(layout: BoundLayout, kind: EntityType, name: str, tag: str | None = None) -> Want:
    """Where the values of a field are, those of one type if one is named."""
    tag = tag or tag_of(kind, name)
    if name not in layout.key_templates(kind).stored:
        return (KEY_PART, name, tag or "S")
    return attribute_want(kind.attributes[name], tag)


def attribute_want(attribute: str, tag: str | None) -> Want:
    return (attribute,) if tag is None else (attribute, tag)


@dataclass(frozen=True, slots=True)
class Default:
    """What a field has whose attribute is absent, as text; and whether a null may stand in its place."""

    text: str
    whole: Want | None
    """The whole attribute, where only that tells whether it is absent."""


def default_of(layout: BoundLayout, kind: EntityType, want: Want) -> Default | None:
    """What stands for a want where its attribute is absent; None if nothing does."""
    name = next((name for name, stored in kind.attributes.items() if stored == want[0]), None)
    if name is None or name not in layout.key_templates(kind).stored:
        return None
    if any(rule.field == name for rule in layout.rules.declared if rule.node is kind):
        # Where nothing was counted, nothing is stored; a default is only how that is shown.
        return None
    value = kind.fields[name].get_default(call_default_factory=True)
    encoded = None if value is PydanticUndefined else layout.encode_field(kind, name, value)
    if encoded is None or "NULL" in encoded:
        return None
    found: Any = encoded
    for step in want[1:]:
        found = found.get(step) if isinstance(found, dict) else _element(found, step)
        if found is None:
            return None
    text = found if isinstance(found, str) else dumps(found).decode()
    is_plain = len(want) == 2 and want[1] == tag_of(kind, name) and not may_be_none(kind.fields[name])
    return Default(text, None if is_plain or len(want) == 1 else (want[0],))


def may_be_none(info: FieldInfo) -> bool:
    return NoneType in get_args(info.annotation)


def _element(found: Any, step: str) -> Any:
    is_there = isinstance(found, list) and step.isdecimal() and int(step) < len(found)
    return found[int(step)] if is_there else None


def stored_condition(layout: BoundLayout, kind: EntityType, predicate: Predicate) -> Condition:
    """The condition that a predicate means for items as they are stored, where fields in keys count as attributes."""

    def named(kind: EntityType, name: str) -> str:
        stored = kind.attribute(name)
        return stored if name in layout.key_templates(kind).stored else f"{KEY_PART}{name}"

    return _without_nulls(kind, condition(layout, kind, predicate, named))


def _without_nulls(kind: EntityType, whole: Condition) -> Condition:
    """A condition for which a null is absent, in fields that are None where they are absent."""
    none = {
        stored
        for name, stored in kind.attributes.items()
        if kind.fields[name].get_default(call_default_factory=False) is None
    }

    def strict(each: Condition) -> Condition:
        match each:
            case And(parts):
                return And(tuple(map(strict, parts)))
            case Or(parts):
                return Or(tuple(map(strict, parts)))
            case Not(inner):
                return Not(strict(inner))
            case Exists(Path((first,))) if first in none:
                return And((each, Compare("<>", each.path, Value(NULL))))
        return each

    return strict(whole)
