"""`adjoin find`: prints the nodes or edges of a class that an index finds."""

from __future__ import annotations

import argparse
from typing import Any

from adjoin.cli import graphs, reading
from adjoin.cli.command import Command
from adjoin.cli.conditions import predicate
from adjoin.cli.graphs import Asked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("kind", metavar="CLASS", help="the class of nodes or edges")
    parser.add_argument(
        "condition", metavar="CONDITION", nargs="?", help="what to find, such as: name = Ann and year >= 2"
    )
    parser.add_argument("--order", metavar="F", help="in the order of this field")
    parser.add_argument("--index", metavar="I", help="use this index (default: the one that narrows most)")
    parser.add_argument("--reverse", action="store_true", help="in reverse order")
    reading.add_limits(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Any:
    kind = asked.kind(arguments.kind)
    sought = None if arguments.condition is None else predicate(arguments.condition, kind)
    query = asked.graph.find(kind.model, sought, order=arguments.order, index=arguments.index)
    return query.reverse() if arguments.reverse else query


def run(arguments: argparse.Namespace) -> None:
    with graphs.opened(arguments) as asked:
        reading.print_found(call(asked, arguments), arguments)


COMMAND = Command("find", "prints the nodes or edges that an index finds", add_arguments, run, False, call)
