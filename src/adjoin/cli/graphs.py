"""What commands on a graph share: opening it, and the classes, nodes and fields that arguments name as text.

A node is named by its id, as it is printed. Where an end of an edge may be of several classes, it is CLASS:ID.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from adjoin import AdjacencyList
from adjoin.cli.batch import check_there, declared
from adjoin.cli.command import InvalidArguments, meant
from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import AdjoinError, InvalidKey, InvalidValue
from adjoin.exchange.texts import node_from, value_from
from adjoin.field_types import problems_in, raised_by_class
from adjoin.graph import Graph
from adjoin.schema import Schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a graph."""
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or its file, or MODULE:LAYOUT")
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument(
        "--tenant", metavar="T", help="use the graph of this tenant (default: the one without a tenant)"
    )


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a graph, by their names."""

    schema: Schema

    def kind(self, name: str) -> EntityType:
        """The class of this name, or with this label."""
        kinds = self.schema.types
        for kind in kinds:
            if name in (kind.name, kind.label):
                return kind
        raise InvalidArguments(f"there is no class {name!r}; {meant(name, tuple(kind.name for kind in kinds))}")

    def edge_kind(self, name: str) -> EdgeType:
        kind = self.kind(name)
        if not isinstance(kind, EdgeType):
            raise InvalidArguments(f"{kind.name} is a class of nodes; name a class of edges")
        return kind

    def node_kind(self, name: str) -> NodeType:
        kind = self.kind(name)
        if not isinstance(kind, NodeType):
            raise InvalidArguments(f"{kind.name} is a class of edges; name a class of nodes")
        return kind


@dataclass(frozen=True, slots=True)
class Asked(Classes):
    """An open graph with its classes."""

    graph: Graph


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Asked]:
    """The graph that the arguments name. Its file must exist: a command that only reads must not create one."""
    models, layout = declared(arguments)
    check_there(arguments.location, (layout or AdjacencyList()).table)
    with Graph(arguments.location, models, layout, tenant=arguments.tenant) as graph:
        yield Asked(Schema(models), graph)


# --- nodes -------------------------------------------------------------------------------------


def node(kind: NodeType, text: str) -> Any:
    """The id that a text stands for, or the ref where the class of the node has to be named."""
    try:
        return node_from(kind, text)
    except InvalidKey as error:
        raise InvalidArguments(str(error)) from None


# --- fields ------------------------------------------------------------------------------------


def field_values(kind: EntityType, words: Iterable[str]) -> dict[str, Any]:
    """The fields that are given as NAME=VALUE, or as NAME:=JSON."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise InvalidArguments(f"{word!r} is not a field with a value; write NAME=VALUE, or NAME:=JSON")
        if name not in kind.fields and not kind.takes_any:
            raise InvalidArguments(f"{kind.name} has no field {name!r}; {meant(name, tuple(kind.fields))}")
        if name in values:
            raise InvalidArguments(f"the field {name} is given twice; keep one of them")
        values[name] = _from_json(word, text) if is_json else field_value(kind, name, text)
    return values


def _from_json(word: str, text: str) -> Any:
    try:
        # Decimal and not float: numbers keep their digits.
        return json.loads(text, parse_float=str)
    except ValueError as error:
        raise InvalidArguments(f"{word!r} has no valid JSON after :=, {error}; quote it for the shell") from None


def field_value(kind: EntityType, name: str, text: str) -> Any:
    """The value of a field that a text stands for; the class validates it later."""
    try:
        return value_from(kind, name, text)
    except (InvalidKey, InvalidValue) as error:
        raise InvalidArguments(str(error)) from None


def made(kind: EntityType, values: Mapping[str, Any]) -> Any:
    """An instance with these fields; raises `InvalidArguments` with all that is wrong with them."""
    try:
        return kind.model(**values)
    except ValidationError as error:
        raise InvalidArguments(f"this is not a valid {kind.name}: {problems_in(error)}") from None
    except AdjoinError:
        raise
    except Exception as error:
        raise InvalidValue(f"this is not a valid {kind.name}: {raised_by_class(error)}") from error
