"""Conditions that a stored item must satisfy so that its class can read it.

An update changes an item without reading it. It must not change an item that its class could not read afterwards: the
call would fail although it has written. So for each field that it leaves alone, the request has a condition that the
stored value has the field's type, is one of its choices, or is within its bounds. A field for which no condition can
check that (because of a pattern, a validator or a nested model) is *untold*, and has to be read first.

For two things, which nearly every class has, only the stored type is checked: that a whole number is whole, and that a
text is a date, a time or a UUID.

The conditions may be stricter than reading, which accepts "4" as a number. If they fail, the update reads the item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from pydantic import BaseModel

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import InvalidValue
from adjoin.expressions import And, Comparator, Compare, Condition, Exists, HasType, In, Not, Or, Value, attribute
from adjoin.model import field_schemas
from adjoin.units import MAX_IN_OPERANDS
from adjoin.values import AttributeValue, encode

_TAGS = {
    "str": ("S",),
    "int": ("N",),
    "float": ("N",),
    "decimal": ("N",),
    "bool": ("BOOL",),
    "bytes": ("B",),
    "datetime": ("S",),
    "date": ("S",),
    "time": ("S",),
    "timedelta": ("S",),
    "uuid": ("S",),
    "none": ("NULL",),
    "list": ("L",),
    "dict": ("M",),
    "set": ("SS", "NS", "BS", "L"),
    "frozenset": ("SS", "NS", "BS", "L"),
}
"""The stored types of those types of pydantic that a condition on the stored type can check."""
_NUMBERS = ("int", "float", "decimal")
_BOUNDS: dict[str, Comparator] = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_HARMLESS = frozenset(
    {"type", "metadata", "serialization", "ref", "strict", "strip_whitespace", "to_lower", "to_upper", "allow_inf_nan"}
    | {"microseconds_precision", "version", "coerce_numbers_to_str", "fail_fast", "items_schema", "keys_schema"}
    | {"values_schema", "regex_engine"}
)
"""Members of a schema that refuse no value of the stored type; elements of lists and maps are checked too."""
_ROOM = 3000
"""How many characters these conditions may take. DynamoDB allows 4 KB per expression."""


@dataclass(frozen=True, slots=True)
class FieldConditions:
    """The conditions for one field."""

    condition: Condition | None
    """Holds if the class can read the stored value; None if it can read any value."""
    changing: Condition | None
    """Holds if a relative change can be applied to the stored value; None if the value has to be read first."""
    inside: Condition | None = None
    """Holds if elements of the stored list or map can be changed by themselves; None if it has to be read first."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The conditions for the items of one class."""

    told: dict[str, FieldConditions]
    untold: tuple[str, ...]
    """Fields that no condition can check, so that they have to be read."""
    labelled: Condition | None
    """Holds unless the type attribute names another class."""
    is_whole: bool = False
    """Whether the class validates several fields together or computes some, so that all of them have to be read."""

    def conditions(
        self, left: Collection[str], changed: Collection[str], inside: Collection[str] = ()
    ) -> list[Condition]:
        """The conditions for the fields that are left alone, that change relative to their value, or inside of it."""
        found = [self.told[name].condition for name in left if name in self.told]
        found += [self.told[name].changing for name in changed if name in self.told]
        found += [self.told[name].inside for name in inside if name in self.told]
        return [each for each in (self.labelled, *found) if each is not None]


def fit(kind: EntityType, stored: Collection[str], trusted: Collection[str], type: tuple[str, str] | None) -> Fit:
    """The conditions for a class; `stored` are its stored fields, and only adjoin writes those in `trusted`.

    `type` is the type attribute and what items of the class have in it.
    """
    labelled: Condition | None = None
    if type is not None:
        path = attribute(type[0])
        labelled = Or((Not(Exists(path)), Compare("=", path, Value({"S": type[1]}))))
    names = [name for name in kind.attributes if name in stored and name not in trusted]
    schemas = field_schemas(kind.model)
    if (
        not schemas
        or kind.computed
        or _looks_afterwards(kind.model)
        or (kind.takes_any and _has_typed_extras(kind.model))
    ):
        return Fit({}, tuple(names), labelled, is_whole=True)
    told = {name: _told(kind, name, schemas[name]["schema"]) for name in names}
    known = {name: each for name, each in told.items() if each is not None}
    room = sum(_length(each.condition) for each in known.values() if each.condition is not None)
    # Some of the fields might do, but an update that reads the item anyway checks all of them for nothing more.
    if room > _ROOM:
        return Fit({}, tuple(names), labelled)
    return Fit(known, tuple(name for name in names if name not in known), labelled)


def _looks_afterwards(model: type[BaseModel]) -> bool:
    """Whether the class has a `model_post_init`, which may refuse an instance when all fields are set."""
    own = model.model_post_init
    return getattr(own, "__name__", "") != "init_private_attributes" and own is not BaseModel.model_post_init


def _has_typed_extras(model: type[BaseModel]) -> bool:
    schema: Any = model.__pydantic_core_schema__
    extras = schema["schema"].get("extras_schema")
    return extras is not None and extras["type"] != "any"


def _told(kind: EntityType, name: str, schema: Any) -> FieldConditions | None:
    path = attribute(kind.attributes[name])
    absent = Not(Exists(path))
    if name == kind.expires_at:
        return FieldConditions(Or((absent, HasType(path, "N"))), None)
    may_be_absent = False
    nulls: list[Condition] = []
    while schema["type"] in ("default", "nullable"):
        if schema.get("validate_default"):
            return None
        if schema["type"] == "default":
            may_be_absent = True
        else:
            nulls = [HasType(path, "NULL")]
        schema = schema["schema"]
    inner = schema["type"]
    if name in kind.formats:
        typed = HasType(path, kind.formats[name].tag)
        choices = ([absent] if may_be_absent else []) + nulls + [typed]
        return FieldConditions(Or(tuple(choices)) if len(choices) > 1 else typed, None) if _is_plain(schema) else None
    if inner == "any":
        return FieldConditions(None if may_be_absent else Exists(path), None)
    fitting = _fitting(schema, path)
    if fitting is None:
        return None
    # DynamoDB has no empty sets, so a stored item lacks the attribute of one.
    if inner in ("set", "frozenset"):
        may_be_absent = True
    choices = ([absent] if may_be_absent else []) + nulls + [fitting]
    can_change = inner in (*_NUMBERS, "list", "set", "frozenset")
    changing = Or((absent, *(HasType(path, tag) for tag in _TAGS[inner]))) if can_change else None
    inside = HasType(path, _TAGS[inner][0]) if inner in ("list", "dict") else None
    return FieldConditions(Or(tuple(choices)) if len(choices) > 1 else fitting, changing, inside)


def _fitting(schema: Any, path: Any) -> Condition | None:
    """The condition that a field's schema puts on its attribute; None if no condition can express it."""
    inner = schema["type"]
    if inner in _CHOICES:
        options = _CHOICES[inner](schema)
        return None if options is None else In(path, tuple(map(Value, options)))
    limits = {name: limit for name in _BOUNDS if inner in _NUMBERS and (limit := schema.get(name)) is not None}
    if not _is_plain(schema, limits):
        return None
    types: list[Condition] = [HasType(path, tag) for tag in _TAGS[inner]]
    typed = Or(tuple(types)) if len(types) > 1 else types[0]
    bounds = [Compare(_BOUNDS[name], path, Value(encode(limit))) for name, limit in limits.items()]
    return And((typed, *bounds)) if bounds else typed


def _is_plain(schema: Any, but: Collection[str] = ()) -> bool:
    """Whether the schema accepts every value of the stored type."""
    if schema["type"] not in _TAGS:
        return False
    # A member that is not known here may refuse values, so the field then counts as one that has to be read.
    says = {name for name, value in schema.items() if value is not None and value is not False}
    inner = [schema[name] for name in ("items_schema", "keys_schema", "values_schema") if name in schema]
    return says - {*but} <= _HARMLESS and all(each["type"] == "any" or _is_plain(each) for each in inner)


def _members(schema: Any) -> list[AttributeValue] | None:
    return None if schema.get("missing") is not None else _options(member.value for member in schema["members"])


def _options(values: Iterable[Any]) -> list[AttributeValue] | None:
    try:
        options = [encode(value) for value in values]
    except InvalidValue:
        return None
    return options if len(options) <= MAX_IN_OPERANDS else None


_CHOICES: dict[str, Callable[[Any], list[AttributeValue] | None]] = {
    "enum": _members,
    "literal": lambda schema: _options(schema["expected"]),
}


def _length(condition: Condition) -> int:
    """About how many characters a condition takes."""
    match condition:
        case And(conditions) | Or(conditions):
            return sum(6 + _length(each) for each in conditions)
        case Not(inner):
            return 6 + _length(inner)
        case In(options=options):
            return 12 + 6 * len(options)
    return 28
