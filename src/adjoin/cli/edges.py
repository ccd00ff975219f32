"""What `adjoin out` and `adjoin into` have in common: both print the edges of one class at a node."""

from __future__ import annotations

import argparse
from typing import Any

from adjoin.cli import graphs, reading
from adjoin.cli.command import Command
from adjoin.cli.graphs import Asked


def edges_command(name: str, told: str) -> Command:
    """The command for the method of this name."""

    def call(asked: Asked, arguments: argparse.Namespace) -> Any:
        kind = asked.edge_kind(arguments.edge)
        near = kind.source if name == "out" else kind.target
        query = getattr(asked.graph, name)(graphs.node(near, arguments.node), kind.model)
        found = reading.ordered(query, kind, arguments)
        return found.nodes() if arguments.nodes else found

    def run(arguments: argparse.Namespace) -> None:
        with graphs.opened(arguments) as asked:
            reading.print_found(call(asked, arguments), arguments)

    return Command(name, told, _add_arguments, run, False, call)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("node", metavar="ID", help="the id of the node; CLASS:ID if it may be of several classes")
    parser.add_argument("edge", metavar="EDGE", help="the class of edges")
    parser.add_argument("--nodes", action="store_true", help="also read the nodes at the other ends")
    reading.add_order(parser)
    reading.add_limits(parser)
