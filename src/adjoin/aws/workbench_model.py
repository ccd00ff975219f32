"""A table as a data model of NoSQL Workbench: its keys and indexes, a facet for each class, and example items.

The index copies of a further indexed field have a facet of their own, and so have the claims of a unique field, because
both kinds of items are visible in the table.

The format is that of the files that NoSQL Workbench exports (version 3.0). It is narrower than DynamoDB in three ways:
an attribute has one type in the whole table, local indexes cannot be described, and a key has one attribute. The type
of an attribute is derived from the annotation of its field, as far as that decides it.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

from adjoin.aws.templates import check_table
from adjoin.dataclass import dataclass
from adjoin.entity_types import Entity, EntityType
from adjoin.errors import InvalidModel, InvalidValue
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout, Shape
from adjoin.model import Edge, Node
from adjoin.stores.definitions import check_definition
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item, encode

# --- types of attributes -----------------------------------------------------------------------


# The order matters, the first match wins: bool is a subclass of int, and str and bytes are sequences.
_STORED: tuple[tuple[type, str], ...] = (
    (bool, "BOOL"),
    (int, "N"),
    (Decimal, "N"),
    (float, "N"),
    (str, "S"),
    (dt.date, "S"),
    (dt.time, "S"),
    (dt.timedelta, "S"),
    (uuid.UUID, "S"),
    (bytes, "B"),
    (bytearray, "B"),
    (memoryview, "B"),
    (BaseModel, "M"),
    (Mapping, "M"),
    (Sequence, "L"),
)
_SETS = {"S": "SS", "N": "NS", "B": "BS"}


def attribute_types(hint: Any) -> list[str]:
    """The types ("S", "N", …) in which values of an annotation may be stored; empty if the annotation does not say.

    None is left out: the type of an optional field is the type of its values.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return attribute_types(arguments[0])
    if origin in (Union, UnionType):
        return _joined(attribute_types(each) for each in arguments if each is not NoneType)
    if origin is Literal:
        return _joined([next(iter(encode(each)))] for each in arguments if each is not None)
    kind = origin or hint
    if not isinstance(kind, type):
        return []
    if issubclass(kind, Enum):
        return _joined([next(iter(encode(each)))] for each in kind)
    if issubclass(kind, RootModel):
        return attribute_types(kind.model_fields["root"].annotation)
    if issubclass(kind, set | frozenset):
        # DynamoDB has sets of strings, numbers and binaries only. A set of anything else is stored as a list.
        elements = attribute_types(arguments[0]) if arguments else []
        return [_SETS.get(elements[0], "L")] if len(elements) == 1 else []
    return next(([stored] for base, stored in _STORED if issubclass(kind, base)), [])


def _joined(types: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(each for some in types for each in some))


# --- the model ---------------------------------------------------------------------------------


_UNKNOWN = "S"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NO_DATE = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class _Facet:
    """The items of one class, index copy or claim, with their key templates and attributes."""

    name: str
    kind: EntityType
    shape: Shape
    items: list[Item] = field(default_factory=list)


def workbench(
    table: TableDefinition,
    models: Iterable[type[Any]] = (),
    layout: Layout | None = None,
    *,
    sample: Iterable[Entity] = (),
    author: str = "",
    description: str = "",
    created: dt.datetime = _NO_DATE,
) -> dict[str, Any]:
    """A data model to be written as JSON and imported in NoSQL Workbench.

    With the `models` and the `layout` of the table, every class becomes a facet with its key
    templates and attributes. `sample` fills the facets with the items of some nodes and edges.
    """
    check_table(table)
    check_definition(table)
    if local := [index.name for index in table.indexes if index.local]:
        raise InvalidValue(
            f"the index {local[0]} is local, and NoSQL Workbench does not support local indexes; pass a definition "
            f"without this index"
        )
    if several := [index.name for index in table.indexes if index.is_multi_attribute]:
        raise InvalidValue(
            f"the index {several[0]} has a key of several attributes, and a data model of NoSQL Workbench has one "
            f"partition key and one sort key per index; pass a definition without this index"
        )
    classes, entities = list(models), list(sample)
    if entities and not classes:
        raise InvalidValue("a sample needs the classes and the layout of the graph; pass models= and layout=")
    bound = bound_layout(classes, layout) if classes else None
    if bound is not None and (bound.definition.keys, bound.definition.indexes) != (table.keys, table.indexes):
        raise InvalidValue(
            f"models= and layout= give other keys and indexes than {table.name} has; pass those of its graph"
        )
    facets = [] if bound is None else _facets(bound, entities)
    date = f"{_MONTHS[created.month - 1]} {created:%d, %Y, %I:%M %p}"
    return {
        "ModelName": table.name,
        "ModelMetadata": {
            "Author": author,
            "DateCreated": date,
            "DateLastModified": date,
            "Description": description,
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [_table(table, facets)],
    }


def _table(table: TableDefinition, facets: list[_Facet]) -> dict[str, Any]:
    own = {key.name for key in table.keys}
    types = _types(table, facets)
    model: dict[str, Any] = {
        "TableName": table.name,
        "KeyAttributes": _key_attributes(table.keys),
        "NonKeyAttributes": [_attribute(name, kind) for name, kind in types.items() if name not in own],
        "TableFacets": [_shown(table, facet) for facet in facets],
        "GlobalSecondaryIndexes": [_index(index) for index in table.indexes],
    }
    if not facets:
        model["TableData"] = []
    model["DataAccess"] = {"MySql": {}}
    model["BillingMode"] = "PAY_PER_REQUEST" if table.throughput is None else "PROVISIONED"
    if table.throughput is not None:
        units = {"ReadCapacityUnits": table.throughput.read, "WriteCapacityUnits": table.throughput.write}
        model["ProvisionedCapacitySettings"] = {"ProvisionedThroughput": units}
    return model


def _attribute(name: str, kind: str) -> dict[str, str]:
    return {"AttributeName": name, "AttributeType": kind}


def _key_attributes(keys: tuple[KeyAttribute, ...]) -> dict[str, Any]:
    roles = ("PartitionKey", "SortKey")
    return {role: _attribute(key.name, key.type) for role, key in zip(roles, keys, strict=False)}


def _index(index: IndexDefinition) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index.projection.kind}
    if index.projection.attributes:
        projection["NonKeyAttributes"] = list(index.projection.attributes)
    return {"IndexName": index.name, "KeyAttributes": _key_attributes(index.keys), "Projection": projection}


# --- classes -----------------------------------------------------------------------------------


def _facets(bound: BoundLayout, entities: Iterable[Entity]) -> list[_Facet]:
    """The facets of all classes, filled with the items of some nodes and edges."""
    facets: dict[str, _Facet] = {}
    for kind in bound.schema.types:
        shape = bound.shape(kind)
        named = {kind.name: shape}
        named |= {_copies(kind, name): each for name, each in shape.copies.items()}
        named |= {_claims(kind, name): each for name, each in shape.claims.items()}
        facets |= {name: _Facet(name, kind, each) for name, each in named.items()}
    for entity in entities:
        if not isinstance(entity, Node | Edge):
            raise InvalidValue(f"sample= must hold nodes and edges, got {entity!r}")
        for name, item in _stored(bound, entity):
            # NoSQL Workbench counts NULL as a type, so an attribute with nulls would have two.
            facets[name].items.append({name: value for name, value in item.items() if "NULL" not in value})
    return list(facets.values())


def _copies(kind: EntityType, name: str) -> str:
    return f"{kind.name} by {name}"


def _claims(kind: EntityType, name: str) -> str:
    return f"{kind.name} by unique {name}"


def _stored(bound: BoundLayout, entity: Entity) -> Iterator[tuple[str, Item]]:
    """All items of a node or edge, each with the name of its facet."""
    is_node = isinstance(entity, Node)
    kind: EntityType = bound.schema.node(type(entity)) if is_node else bound.schema.edge(type(entity))
    items = bound.items(entity)
    yield from ((kind.name, item) for item in items)
    satellites = bound.satellites(kind, items, entity.__dict__)
    claimed = [name for name in kind.unique if entity.__dict__[name] is not None]
    own = items[0]
    of_elements = [f"{name}[]" for name in kind.elements for _ in bound.element_keys(kind, own)]
    copied = [*kind.indexed[1:], *of_elements]
    names = [*(_copies(kind, name) for name in copied), *(_claims(kind, name) for name in claimed)]
    for name, satellite in zip(names, satellites, strict=True):
        if satellite.item is not None:
            yield name, satellite.item


def _types(table: TableDefinition, facets: list[_Facet]) -> dict[str, str]:
    """The type of every attribute: first those the layout writes, then fields, then what the samples show."""
    types: dict[str, str] = {key.name: key.type for key in table.key_attributes}
    owners: dict[str, str] = {}

    def note(kind: EntityType, attribute: str, stored: str) -> None:
        owner = owners.setdefault(attribute, kind.name)
        if types.setdefault(attribute, stored) != stored:
            raise InvalidModel(
                f"{attribute!r} is stored as {types[attribute]} by {owner} and as {stored} by {kind.name}, but "
                f"NoSQL Workbench has one type per attribute; give one of the fields another alias"
            )

    for facet in facets:
        for attribute in facet.shape.written:
            note(facet.kind, attribute, types.get(attribute, "S"))
    undecided: dict[str, str] = {}
    for facet in facets:
        kind = facet.kind
        for name, attribute in facet.shape.fields.items():
            own = "N" if name == kind.expires else kind.formats[name].tag if name in kind.formats else None
            possible = attribute_types(kind.fields[name].annotation) if own is None else [own]
            if len(possible) == 1:
                note(kind, attribute, possible[0])
            else:
                undecided.setdefault(attribute, possible[0] if possible else _UNKNOWN)
    for facet in facets:
        for item in facet.items:
            for attribute, value in item.items():
                note(facet.kind, attribute, next(iter(value)))
    return types | {name: stored for name, stored in undecided.items() if name not in types}


def _shown(table: TableDefinition, facet: _Facet) -> dict[str, Any]:
    shape = facet.shape
    own = [key.name for key in table.keys]
    roles = ("PartitionKeyAlias", "SortKeyAlias")
    held = [*shape.written, *shape.fields.values(), *(name for item in facet.items for name in item)]
    return {
        "FacetName": facet.name,
        "KeyAttributeAlias": {
            role: shape.written[name].replace("{", "").replace("}", "") for role, name in zip(roles, own, strict=False)
        },
        "TableData": facet.items,
        "NonKeyAttributes": [name for name in dict.fromkeys(held) if name not in own],
        "DataAccess": {"MySql": {}},
    }
