"""Names for what a table does not name: classes, fields, functions, as valid and unused Python identifiers."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection

from pydantic import BaseModel

from adjoin.model import Child, Edge, Node

_TAKEN = {
    *("source", "target", "parent", "shard", "label", "node", "tenant", "g"),
    *(name for name in dir(BaseModel) if not name.startswith("_")),
    *(name for each in (Node, Edge, Child) for name in vars(each) if not name.startswith("_")),
    *(name for name, value in vars(builtins).items() if isinstance(value, type) and name.islower()),
}
"""Names that pydantic, adjoin, templates or annotations use, so no field may have them."""


def words_of(text: str) -> list[str]:
    """The words in a name of any style, in lower case: "GSI1-PK", "yearLevel" and "year_level" have two each."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [each.lower() for each in re.split(r"[^A-Za-z0-9]+", spaced) if each]


_GENERIC = re.compile(
    r"(gsi|lsi|gs|ls|index)?\d*(pk|sk|p|s|hash|range|partition|sort|key|partitionkey|sortkey|hashkey|rangekey|data)\d*"
)


def is_generic(name: str) -> bool:
    """Whether the name of a key attribute says nothing about its values, such as GSI1PK."""
    return _GENERIC.fullmatch("".join(words_of(name))) is not None


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def field_name(text: str, taken: Collection[str] = ()) -> str:
    """The name of a field for an attribute or a label."""
    name = "_".join(words_of(text)) or "value"
    if name[0].isdigit():
        name = f"n{name}"
    if name in _TAKEN or name == "l" or keyword.iskeyword(name) or name.startswith("model_"):
        name += "_"
    return unused(name, taken)


def class_name(text: str, taken: Collection[str] = ()) -> str:
    """The name of a class for a label or a type."""
    name = "".join(each[0].upper() + each[1:] for each in words_of(text)) or "Thing"
    if name[0].isdigit():
        name = f"N{name}"
    if len(name) == 1 or keyword.iskeyword(name) or name in _OF_THE_FILE:
        name += "Item"
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found


_OF_THE_FILE = {
    *("Node", "Edge", "Child", "Graph", "Index", "Keys", "AdjacencyList", "MaterializedGraph", "Projection", "Field"),
    *("Annotated", "Any", "Decimal", "UUID", "Stored", "Indexed", "Unique", "Literal", "Copy", "Count", "Sum", "Max"),
    *("Min", "LAYOUT", "MODELS"),
}
"""Names that a written file has for other things."""


def plural(name: str) -> str:
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith("s") and not name.endswith("ss"):
        return name
    return f"{name}es" if name.endswith(("ss", "x", "ch", "sh")) else f"{name}s"
