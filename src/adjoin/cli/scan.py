"""`adjoin scan`: prints all nodes and edges, of one class or of all, or the items that no class explains."""

from __future__ import annotations

import argparse
from typing import Any

from adjoin.cli import graphs, reading
from adjoin.cli.command import Command, InvalidArguments
from adjoin.cli.graphs import Asked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("kind", metavar="CLASS", nargs="?", help="the class of nodes or edges (default: all)")
    parser.add_argument("--others", action="store_true", help="print the items that no class explains instead")
    reading.add_where(parser)
    reading.add_limits(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Any:
    if arguments.kind is None:
        if arguments.where is not None and not arguments.others:
            raise InvalidArguments("--where is about the fields of one class; name the class too")
        every = asked.graph.scan()
        return reading.filtered(every.others if arguments.others else every, None, arguments)
    if arguments.others:
        raise InvalidArguments("--others are items of no class; leave the class out")
    kind = asked.kind(arguments.kind)
    return reading.filtered(asked.graph.scan(kind.model), kind, arguments)


def run(arguments: argparse.Namespace) -> None:
    with graphs.opened(arguments) as asked:
        reading.print_found(call(asked, arguments), arguments)


COMMAND = Command("scan", "prints all nodes and edges, or those of one class", add_arguments, run, False, call)
