"""`adjoin shortest-path`: prints a shortest path between two nodes. The exit status is 4 if there is none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import ABSENT, Command
from adjoin.cli.drawing import printable
from adjoin.cli.graphs import Asked
from adjoin.cli.results import as_json, as_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("start", metavar="FROM", help="the id of the first node, or CLASS:ID")
    parser.add_argument("end", metavar="TO", help="the id of the last node, or CLASS:ID")
    following.add_via(parser)
    parser.add_argument("--weight", metavar="FIELD", help="the path with the least sum of this field of its edges")
    parser.add_argument("--all", action="store_true", help="print all shortest paths")
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    start, end = (following.start(asked, each) for each in (arguments.start, arguments.end))
    options = following.options(asked, arguments) | {"weight": arguments.weight}
    verb = asked.graph.shortest_paths if arguments.all else asked.graph.shortest_path
    return lambda: verb(start, end, **options)


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
    paths = found if arguments.all else [] if found is None else [found]
    for path in paths:
        weight = "" if path.weight is None else f"  ({arguments.weight}: {as_text(path.weight)})"
        print(as_json(path) if arguments.json else as_text(path) + weight)
    if arguments.all and (found.partial or found.capped):
        return following.completeness(found)
    if not paths:
        there = f"from {printable(arguments.start)} to {printable(arguments.end)}"
        print(f"there is no path {there}", file=sys.stderr)
    return 0 if paths else ABSENT


COMMAND = Command("shortest-path", "prints a shortest path between two nodes", add_arguments, run, False, call)
