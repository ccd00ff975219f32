"""`adjoin update`: changes fields of one node or one edge, and prints it. The exit status is 4 if it does not exist."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import graphs
from adjoin.cli.command import Command, InvalidArguments
from adjoin.cli.conditions import predicate
from adjoin.cli.get import absent, add_key, edge_key
from adjoin.cli.graphs import Asked
from adjoin.cli.reading import add_json
from adjoin.cli.results import as_json, as_text
from adjoin.entity_types import EdgeType, NodeType
from adjoin.errors import NotFound


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    add_key(parser)
    parser.add_argument(
        "--set",
        dest="fields",
        metavar="FIELD=VALUE",
        action="append",
        required=True,
        help="a field with its new value; FIELD:=JSON for lists, maps and null; repeatable",
    )
    parser.add_argument("--only-if", metavar="CONDITION", help="change it only if this holds for what is stored")
    parser.add_argument("--upsert", action="store_true", help="make it with these fields if it does not exist")
    add_json(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    kind = asked.kind(arguments.kind)
    key: tuple[Any, ...]
    own: dict[str, Any] = {}
    if isinstance(kind, EdgeType):
        *ends, own = edge_key(kind, arguments.key)
        key = tuple(ends)
    elif len(arguments.key) > 1:
        raise InvalidArguments(
            f"the id of a {kind.name} is one word, got {len(arguments.key)}; change one node at a time"
        )
    else:
        assert isinstance(kind, NodeType)
        key = (graphs.node(kind, arguments.key[0]),)
    changes = graphs.field_values(kind, arguments.fields)
    if twice := own.keys() & changes.keys():
        raise InvalidArguments(f"{min(twice)} says which {kind.name} it is, and cannot change; leave it out of --set")
    held = None if arguments.only_if is None else predicate(arguments.only_if, kind)
    verb = asked.graph.upsert if arguments.upsert else asked.graph.update
    return lambda: verb(kind.model, *key, only_if=held, **own, **changes)


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        try:
            found = call(asked, arguments)()
        except NotFound:
            return absent(asked.kind(arguments.kind), arguments)
    print(as_json(found) if arguments.json else as_text(found))
    return 0


COMMAND = Command("update", "changes fields of one node or one edge", add_arguments, run, False, call)
