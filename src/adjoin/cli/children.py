"""`adjoin children`: prints the children of one class of a node."""

from __future__ import annotations

import argparse
from typing import Any

from adjoin.cli import graphs, reading
from adjoin.cli.command import Command, InvalidArguments
from adjoin.cli.graphs import Asked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("node", metavar="ID", help="the id of the parent")
    parser.add_argument("child", metavar="CHILD", help="the class of children")
    reading.add_order(parser)
    reading.add_limits(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Any:
    kind = asked.node_kind(arguments.child)
    if kind.parent is None:
        raise InvalidArguments(f"{kind.name} is not a class of children; name one that is declared as Child[…]")
    query = asked.graph.children(graphs.node(kind.parent, arguments.node), kind.model)
    return reading.ordered(query, kind, arguments)


def run(arguments: argparse.Namespace) -> None:
    with graphs.opened(arguments) as asked:
        reading.print_found(call(asked, arguments), arguments)


COMMAND = Command("children", "prints the children of one class of a node", add_arguments, run, False, call)
