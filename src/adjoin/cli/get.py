"""`adjoin get`: prints one node or one edge. The exit status is 4 if it does not exist."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from adjoin.cli import graphs
from adjoin.cli.command import ABSENT, Command, InvalidArguments
from adjoin.cli.drawing import printable
from adjoin.cli.graphs import Asked
from adjoin.cli.reading import add_json
from adjoin.cli.results import as_json, details, named
from adjoin.entity_types import EdgeType, EntityType, NodeType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("kind", metavar="CLASS", help="the class of the node or edge")
    parser.add_argument(
        "key",
        metavar="ID",
        nargs="+",
        help="the id of a node, or FIELD=VALUE for a unique field; for an edge, the ids of its source and its target, "
        "and then FIELD=VALUE for each key field",
    )
    add_json(parser)


def add_key(parser: argparse.ArgumentParser) -> None:
    """The arguments that name one stored node or edge."""
    parser.add_argument("kind", metavar="CLASS", help="the class of the node or edge")
    parser.add_argument(
        "key",
        metavar="ID",
        nargs="+",
        help="the id of a node; for an edge, the ids of its source and its target, and then FIELD=VALUE for each key "
        "field",
    )


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    kind = asked.kind(arguments.kind)
    if isinstance(kind, EdgeType):
        source, target, fields = edge_key(kind, arguments.key)
        return lambda: asked.graph.edge(kind.model, source, target, **fields)
    assert isinstance(kind, NodeType)
    (word, *more) = arguments.key
    if more:
        raise InvalidArguments(f"the id of a {kind.name} is one word, got {len(arguments.key)}; {_one_word(kind)}")
    name, equals, value = word.partition("=")
    if equals and name in kind.unique:
        unique = {name: graphs.field_value(kind, name, value)}
        return lambda: asked.graph.get(kind.model, **unique)
    id = graphs.node(kind, word)
    return lambda: asked.graph.get(kind.model, id)


def _one_word(kind: NodeType) -> str:
    return "put quotes around it" if kind.is_single else "join its parts with commas"


def edge_key(kind: EdgeType, words: list[str]) -> tuple[Any, Any, dict[str, Any]]:
    """The ends and the key fields of the edge that these words name."""
    if len(words) < 2:
        raise InvalidArguments(
            f"an edge is named by the ids of both its ends; give the source and the target of {kind.name}"
        )
    source, target = graphs.node(kind.source, words[0]), graphs.node(kind.target, words[1])
    return source, target, graphs.field_values(kind, words[2:])


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
        kind = asked.kind(arguments.kind)
    if found is None:
        return absent(kind, arguments)
    if arguments.json:
        print(as_json(found))
        return 0
    print(named(found))
    lines = [*details(found)]
    width = max((len(name) for name, _ in lines), default=0)
    for name, text in lines:
        print(f"  {name:{width}}  {text}")
    return 0


def absent(kind: EntityType, arguments: argparse.Namespace) -> int:
    """Says that there is no such node or edge."""
    if arguments.json:
        print("null")
    print(f"there is no {kind.name} {printable(' '.join(arguments.key))}", file=sys.stderr)
    return ABSENT


COMMAND = Command("get", "prints one node or one edge", add_arguments, run, False, call)
