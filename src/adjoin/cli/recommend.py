"""`adjoin recommend`: prints the nodes that have most in common with a node, and through which nodes.

The exit status is 3 if the budget did not suffice, so that scores may be too low.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command, whole_number
from adjoin.cli.graphs import Asked
from adjoin.cli.results import as_json, as_text, named
from adjoin.exchange.texts import plain
from adjoin.plans.recommend import SCORES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("start", metavar="ID", help="the id of the node, or CLASS:ID")
    parser.add_argument("edge", metavar="EDGE", help="the class of edges that say what two nodes have in common")
    parser.add_argument("--to", metavar="CLASS", help="recommend nodes of this class, and not of that of the node")
    parser.add_argument("--score", choices=tuple(SCORES), default="common", help="how to score (default: common)")
    parser.add_argument("--weight", metavar="FIELD", help="a field of the edges by which they count")
    parser.add_argument("--limit", metavar="N", type=whole_number, default=10, help="print at most N (default: 10)")
    following.add_direction(parser)
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    start, edge = following.start(asked, arguments.start), asked.edge_kind(arguments.edge).model
    to = None if arguments.to is None else asked.node_kind(arguments.to).model
    return lambda: asked.graph.recommend(
        start,
        edge,
        to=to,
        score=arguments.score,
        weight=arguments.weight,
        limit=arguments.limit,
        direction=arguments.direction,
        budget=following.budget(arguments),
    )


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        found = call(asked, arguments)()
    for each in found:
        if arguments.json:
            through = [plain(node) for node in each.through]
            print(as_json({"score": plain(each.score), "node": plain(each.node), "through": through}))
        else:
            score = format(each.score, ".3g") if isinstance(each.score, float) else as_text(each.score)
            print(f"{score}  {as_text(each.node)}  (through {', '.join(map(named, each.through))})")
    return following.completeness(found)


COMMAND = Command("recommend", "prints the nodes that have most in common with a node", add_arguments, run, False, call)
