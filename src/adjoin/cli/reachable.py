"""`adjoin reachable`: prints the nodes that can be reached from a node, the nearest first.

The exit status is 3 if the budget did not suffice, so that nodes are missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command
from adjoin.cli.graphs import Asked
from adjoin.cli.results import as_json, as_text
from adjoin.exchange.texts import plain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("start", metavar="ID", help="the id of the node, or CLASS:ID")
    following.add_via(parser)
    parser.add_argument("--paths", action="store_true", help="print the way to each node instead of the node")
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    start, options = following.start(asked, arguments.start), following.options(asked, arguments)
    return lambda: asked.graph.reachable(start, **options)


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
    for node in found:
        if arguments.paths:
            path = found.path(node)
            print(as_json(path) if arguments.json else as_text(path))
        elif arguments.json:
            print(as_json({"depth": found.depth(node), "node": plain(node)}))
        else:
            print(f"{found.depth(node)}  {as_text(node)}")
    return following.completeness(found)


COMMAND = Command("reachable", "prints the nodes that can be reached from a node", add_arguments, run, False, call)
