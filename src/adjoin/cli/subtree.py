"""`adjoin subtree`: prints everything below a node with its quantities, or the total of a field.

The exit status is 3 if the budget did not suffice, so that nodes are missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command, InvalidArguments, whole_number
from adjoin.cli.graphs import Asked
from adjoin.cli.results import as_json, as_text
from adjoin.exchange.texts import plain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("start", metavar="ID", help="the id of the node, or CLASS:ID")
    parser.add_argument("edges", metavar="CLASS", help="the class of edges or children; several are joined by commas")
    parser.add_argument("--quantity", metavar="FIELD", help="a field of the edges, multiplied along each path")
    parser.add_argument("--total", metavar="FIELD", help="print the sum of this field of the nodes instead")
    parser.add_argument(
        "--shared", choices=("each", "once"), help="whether the total counts a shared node each time (default) or once"
    )
    parser.add_argument("--max-depth", metavar="N", type=whole_number, help="follow at most N edges from the start")
    following.add_direction(parser)
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    start, edges = following.start(asked, arguments.start), following.followed(asked, [arguments.edges])
    return lambda: asked.graph.subtree(
        start,
        edges,
        quantity=arguments.quantity,
        direction=arguments.direction,
        max_depth=arguments.max_depth,
        budget=following.budget(arguments),
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.shared is not None and arguments.total is None:
        raise InvalidArguments("--shared says how a total counts; name its field with --total")
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
    if arguments.total is not None:
        total = found.total(arguments.total, shared=arguments.shared or "each")
        print(as_json(total) if arguments.json else as_text(total))
        return 0
    for ref, node in found.found.items():
        depth, quantity = found.depths[ref], found.quantities[ref]
        if arguments.json:
            print(as_json({"depth": depth, "quantity": plain(quantity), "node": plain(node)}))
        else:
            print(f"{depth}  {as_text(quantity)} × {as_text(node)}")
    return following.completeness(found)


COMMAND = Command("subtree", "prints everything below a node, with quantities", add_arguments, run, False, call)
