"""`adjoin put`: writes one node or one edge, in place of a stored one with the same key."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import graphs
from adjoin.cli.batch import declared
from adjoin.cli.command import Command, InvalidArguments
from adjoin.cli.conditions import predicate
from adjoin.cli.graphs import Asked, Classes
from adjoin.cli.reading import add_json
from adjoin.cli.results import as_json, named
from adjoin.dataclass import dataclass
from adjoin.fields import Predicate
from adjoin.graph import Graph
from adjoin.schema import Schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("kind", metavar="CLASS", help="the class of the node or edge")
    parser.add_argument(
        "fields",
        metavar="FIELD=VALUE",
        nargs="+",
        help="its fields, with the id, or source and target; FIELD:=JSON for lists, maps and null",
    )
    parser.add_argument("--new", action="store_true", help="fail if it already exists")
    parser.add_argument(
        "--connect", action="store_true", help="for an edge: fail if it already exists, or a node is missing"
    )
    parser.add_argument("--only-if", metavar="CONDITION", help="write only if this holds for what is stored")
    add_json(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    return _made(asked, arguments).written(asked.graph)


@dataclass(frozen=True, slots=True)
class _Put:
    """What is to be written, and how. All of it is checked before the graph is opened, which may create a file."""

    entity: Any
    way: str
    held: Predicate | None

    def written(self, graph: Graph) -> Callable[[], Any]:
        entity = self.entity
        match self.way:
            case "new":
                return lambda: graph.add(entity)
            case "connect":
                given = {name: getattr(entity, name) for name in entity.model_fields_set - {"source", "target"}}
                return lambda: graph.connect(type(entity), entity.source, entity.target, **given)
        return lambda: graph.put(entity, only_if=self.held)


def _made(classes: Classes, arguments: argparse.Namespace) -> _Put:
    if sum((arguments.new, arguments.connect, arguments.only_if is not None)) > 1:
        raise InvalidArguments("--new, --connect and --only-if are three ways to put; choose one of them")
    kind = classes.edge_kind(arguments.kind) if arguments.connect else classes.kind(arguments.kind)
    entity = graphs.made(kind, graphs.field_values(kind, arguments.fields))
    held = None if arguments.only_if is None else predicate(arguments.only_if, kind)
    return _Put(entity, "new" if arguments.new else "connect" if arguments.connect else "put", held)


def run(arguments: argparse.Namespace) -> None:
    models, layout = declared(arguments)
    made = _made(Classes(Schema(models)), arguments)
    with Graph(arguments.location, models, layout, tenant=arguments.tenant) as graph:
        made.written(graph)()
    print(as_json(made.entity) if arguments.json else f"put {named(made.entity)}")


COMMAND = Command("put", "writes one node or one edge", add_arguments, run, False, call)
