"""`adjoin common`: prints the nodes with which two nodes are both connected."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command
from adjoin.cli.graphs import Asked
from adjoin.cli.results import as_json, as_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("one", metavar="ONE", help="the id of a node, or CLASS:ID")
    parser.add_argument("other", metavar="OTHER", help="the id of another node, or CLASS:ID")
    parser.add_argument("edge", metavar="EDGE", help="the class of edges")
    following.add_direction(parser)
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    one, other = (following.start(asked, each) for each in (arguments.one, arguments.other))
    edge = asked.edge_kind(arguments.edge).model
    spending = following.budget(arguments)
    return lambda: asked.graph.common(one, other, edge, direction=arguments.direction, budget=spending)


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
    for node in found:
        print(as_json(node) if arguments.json else as_text(node))
    return following.completeness(found)


COMMAND = Command("common", "prints the nodes with which two nodes are both connected", add_arguments, run, False, call)
