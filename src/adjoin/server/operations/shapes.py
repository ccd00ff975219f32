"""The shapes of parameters, as values: what a request may contain, whatever the table.

A shape holds what DynamoDB documents about a parameter: its type, its required members, and the limits of lengths,
sizes and choices. It contains no code: `checking` makes the readers and the checks of limits from it. Members are in
the order in which DynamoDB checks them, and choices in the order in which it lists them, where that is known;
otherwise in the order of the documentation.

This module has the shapes that several operations share. The shape of an operation's input is beside the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.units import MAX_NAME_SIZE

NAME_PATTERN = "[a-zA-Z0-9_.-]+"
"""The pattern of names of tables and indexes."""


def is_arn(reference: str) -> bool:
    return reference.startswith("arn:")


@dataclass(frozen=True, slots=True)
class Text:
    least: int | None = None
    most: int | None = None
    pattern: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableReference:
    """The name of a table, or its ARN; `lengths` is false if the length is checked earlier, in a precondition."""

    lengths: bool = True


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; `kind` is DynamoDB's name for its size, such as "Integer"."""

    kind: Literal["Integer", "Long"]
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of an attribute, with its type: {"S": "text"}."""


@dataclass(frozen=True, slots=True)
class Listing:
    of: ParameterShape
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """Values by names; `keys` limits the names."""

    of: ParameterShape
    least: int | None = None
    most: int | None = None
    keys: Text | TableReference | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """Named members, in the order in which the service checks them."""

    name: str
    members: Mapping[str, ParameterShape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    one_of: tuple[str, ...] = ()
    """Members of which at least one is required; if there is none, the first is reported as missing."""


ParameterShape: TypeAlias = Text | TableReference | Whole | Flag | Attribute | Listing | Entries | Structure


def structure(name: str, required: str = "", /, **members: ParameterShape) -> Structure:
    """Returns a structure; `required` has the names of the required members, separated by spaces."""
    return Structure(name, members, frozenset(required.split()))


_PACKAGE = "com.amazonaws.dynamodb.v20120810."


def java_type(shape: ParameterShape) -> str:
    """Returns the name of the Java type that DynamoDB uses for a shape in its messages about wrong types."""
    match shape:
        case Whole():
            return f"java.lang.{shape.kind}"
        case Flag():
            return "java.lang.Boolean"
        case Attribute():
            return f"{_PACKAGE}AttributeValue"
        case Structure():
            return _PACKAGE + shape.name
        case Listing():
            return f"java.util.List<{java_type(shape.of)}>"
        case Entries():
            return f"java.util.Map<java.lang.String, {java_type(shape.of)}>"
        case _:
            return "java.lang.String"


# --- parameters that several operations share --------------------------------------------------


TABLE = TableReference()
NAME = Text(least=3, most=255, pattern=NAME_PATTERN)
"""The name of an index, or of a table where an ARN is not accepted."""

FLAG = Flag()
TEXT = Text()
ATTRIBUTE = Attribute()
ATTRIBUTES = Entries(ATTRIBUTE)
NAMES = Entries(TEXT)
ATTRIBUTE_NAME = Text(most=MAX_NAME_SIZE)
ATTRIBUTE_NAMES = Listing(ATTRIBUTE_NAME, least=1, most=255)
POSITIVE = Whole("Integer", least=1)
POSITIVE_LONG = Whole("Long", least=1)
LONG = Whole("Long")

CAPACITY = Text(choices=("INDEXES", "TOTAL", "NONE"))
METRICS = Text(choices=("SIZE", "NONE"))
RETURN_VALUES = Text(choices=("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"))
RETURN_ON_FAILURE = Text(choices=("ALL_OLD", "NONE"))
OPERATOR = Text(choices=("OR", "AND"))
COMPARISON = Text(
    choices=(
        "IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE",
        "CONTAINS",
    )
)  # fmt: skip

NOTHING = Structure("Empty")
