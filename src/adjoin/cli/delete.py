"""`adjoin delete`: deletes a node with all its edges, or one edge. The exit status is 4 if it did not exist."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from adjoin.cli import graphs
from adjoin.cli.command import ABSENT, Command, InvalidArguments
from adjoin.cli.drawing import printable
from adjoin.cli.get import add_key, edge_key
from adjoin.cli.graphs import Asked
from adjoin.entity_types import EdgeType, NodeType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    add_key(parser)
    parser.add_argument(
        "--edges",
        choices=("all", "found"),
        default="all",
        help="for a node: found leaves edges that neither keys nor indexes can find (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print whether it existed, as a JSON object")


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], bool]:
    kind = asked.kind(arguments.kind)
    if isinstance(kind, EdgeType):
        source, target, fields = edge_key(kind, arguments.key)
        return lambda: asked.graph.disconnect(kind.model, source, target, **fields)
    assert isinstance(kind, NodeType)
    if len(arguments.key) > 1:
        raise InvalidArguments(
            f"the id of a {kind.name} is one word, got {len(arguments.key)}; delete one node at a time"
        )
    id = graphs.node(kind, arguments.key[0])
    return lambda: asked.graph.delete(kind.model, id, edges=arguments.edges)


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        is_deleted = call(asked, arguments)()
        name = asked.kind(arguments.kind).name
    which = f"{name} {printable(' '.join(arguments.key))}"
    if arguments.json:
        print(json.dumps({"deleted": is_deleted}))
    else:
        print(f"deleted {which}" if is_deleted else f"there was no {which}")
    return 0 if is_deleted else ABSENT


COMMAND = Command("delete", "deletes a node with all its edges, or one edge", add_arguments, run, False, call)
