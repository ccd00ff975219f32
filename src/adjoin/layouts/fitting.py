"""What a stored item must be for its class to read it, as far as conditions can say that.

An update changes an item that it does not see. It must not change one that its class could not read afterwards: the
call would fail, and have written. So the request carries, for each field that it leaves as it is, the condition that
what is stored has the field's type, is one of its choices, or lies within its bounds. What conditions have no words
for (a pattern, a validator, a nested model) is *untold*, and has to be read first.

Two things are taken on trust by their stored type, because nearly every class has them: that a whole number is whole,
and that text which should be a date, a time or a UUID is one.

The conditions may be stricter than reading, which takes "4" for a number. Who fails by them looks at the item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from adjoin.errors import InvalidValue
from adjoin.expressions import And, Comparator, Compare, Condition, Exists, HasType, In, Not, Or, Value, attribute
from adjoin.model import field_schemas
from adjoin.schema import EntityType
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
"""The stored types of each of pydantic's types that a stored type tells."""
_NUMBERS = ("int", "float", "decimal")
_BOUNDS: dict[str, Comparator] = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_HARMLESS = frozenset(
    {"type", "metadata", "serialization", "ref", "strict", "strip_whitespace", "to_lower", "to_upper", "allow_inf_nan"}
    | {"microseconds_precision", "version", "coerce_numbers_to_str", "fail_fast", "items_schema", "keys_schema"}
    | {"values_schema", "regex_engine"}
)
"""What a schema may say without refusing a value of its stored type; elements of lists and maps are looked at too."""
_ROOM = 3000
"""Characters that these conditions may take of the 4 KB that DynamoDB allows an expression."""


@dataclass(frozen=True, slots=True)
class Told:
    """What conditions say of one field."""

    condition: Condition | None
    """Holds if the class can read what is stored; None if it can read anything."""
    changing: Condition | None
    """Holds if something can be added to what is stored, or taken from it; None if only reading tells."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What conditions say of the items of one class."""

    told: dict[str, Told]
    untold: tuple[str, ...]
    """Fields of which only reading tells."""
    labelled: Condition | None
    """Holds if the item is not said to be of another class."""
    is_whole: bool = False
    """Whether the class looks at several fields together, so that none can be left unseen."""

    def conditions(self, left: Collection[str], changed: Collection[str]) -> list[Condition]:
        """What must hold for the fields that are left as they are, and for those that are made of themselves."""
        found = [self.told[name].condition for name in left if name in self.told]
        found += [self.told[name].changing for name in changed if name in self.told]
        return [each for each in (self.labelled, *found) if each is not None]


def fit(kind: EntityType, stored: Collection[str], trusted: Collection[str], type_attribute: str | None) -> Fit:
    """What conditions say of a class; `stored` are its attributes, of which `trusted` are nobody's but adjoin's."""
    labelled: Condition | None = None
    if type_attribute is not None:
        path = attribute(type_attribute)
        labelled = Or((Not(Exists(path)), Compare("=", path, Value({"S": kind.label}))))
    names = [name for name in kind.attributes if name in stored and name not in trusted]
    schemas = field_schemas(kind.model)
    if not schemas or _looks_afterwards(kind.model) or (kind.takes_any and _has_typed_extras(kind.model)):
        return Fit({}, tuple(names), labelled, is_whole=True)
    told = {name: _told(kind, name, schemas[name]["schema"]) for name in names}
    known = {name: each for name, each in told.items() if each is not None}
    room = sum(_length(each.condition) for each in known.values() if each.condition is not None)
    if room > _ROOM:
        return Fit({}, tuple(names), labelled)
    return Fit(known, tuple(name for name in names if name not in known), labelled)


def _looks_afterwards(model: type[BaseModel]) -> bool:
    """Whether the class has something of its own to say once all fields are there."""
    own = model.model_post_init
    return getattr(own, "__name__", "") != "init_private_attributes" and own is not BaseModel.model_post_init


def _has_typed_extras(model: type[BaseModel]) -> bool:
    schema: Any = model.__pydantic_core_schema__
    extras = schema["schema"].get("extras_schema")
    return extras is not None and extras["type"] != "any"


def _told(kind: EntityType, name: str, schema: Any) -> Told | None:
    path = attribute(kind.attributes[name])
    absent = Not(Exists(path))
    if name == kind.expires:
        return Told(Or((absent, HasType(path, "N"))), None)
    may_be_absent = False
    nulls: list[Condition] = []
    while schema["type"] in ("default", "nullable"):
        if schema.get("validate_default"):
            return None
        if schema["type"] == "default":
            may_be_absent = True
        else:
            nulls.append(HasType(path, "NULL"))
        schema = schema["schema"]
    inner = schema["type"]
    if inner == "any":
        return Told(None if may_be_absent else Exists(path), None)
    fitting = _fitting(schema, path)
    if fitting is None:
        return None
    if inner in ("set", "frozenset"):
        may_be_absent = True
    choices = ([absent] if may_be_absent else []) + nulls[:1] + [fitting]
    can_change = inner in (*_NUMBERS, "list", "set", "frozenset")
    changing = Or((absent, *(HasType(path, tag) for tag in _TAGS[inner]))) if can_change else None
    return Told(Or(tuple(choices)) if len(choices) > 1 else fitting, changing)


def _fitting(schema: Any, path: Any) -> Condition | None:
    """What a field's own schema asks of the attribute; None where only reading tells."""
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
    """Whether a value of the stored type is refused by nothing that the schema says."""
    if schema["type"] not in _TAGS:
        return False
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
