"""What commands share that follow edges over several steps: nodes to begin with, classes to follow, and a budget."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from adjoin import Budget
from adjoin.cli import graphs
from adjoin.cli.command import IN_PART, InvalidArguments, whole_number
from adjoin.cli.conditions import predicate
from adjoin.cli.graphs import Asked
from adjoin.cli.reading import add_json
from adjoin.cli.results import named


def add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", metavar="N", type=whole_number, help="make at most N requests")
    parser.add_argument("--rcu", metavar="N", type=whole_number, help="consume at most N read units")
    add_json(parser)


def add_via(parser: argparse.ArgumentParser) -> None:
    """The arguments of commands that follow the same classes of edges at each step."""
    parser.add_argument(
        "--via",
        metavar="CLASS",
        required=True,
        action="append",
        help="a class of edges to follow; repeatable, and several are also joined by commas",
    )
    add_direction(parser)
    parser.add_argument("--max-depth", metavar="N", type=whole_number, help="follow at most N edges from the start")
    parser.add_argument("--where", metavar="CONDITION", help="follow only edges for which this holds")
    parser.add_argument("--on", choices=("edges", "nodes"), help="what the condition is about, if both have the field")


def add_direction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--direction", choices=("out", "into", "both"), default="out", help="how edges are followed (default: out)"
    )


def budget(arguments: argparse.Namespace) -> Budget:
    return Budget(requests=arguments.requests, rcu=arguments.rcu)


def followed(asked: Asked, names: list[str]) -> list[type[Any]]:
    """The classes of edges or children that are named."""
    return [asked.kind(name).model for each in names for name in each.split(",")]


def options(asked: Asked, arguments: argparse.Namespace) -> dict[str, Any]:
    """What `add_via` and `add_budget` have as arguments of the calls. Without --max-depth, the call decides."""
    given: dict[str, Any] = {
        "via": followed(asked, arguments.via),
        "direction": arguments.direction,
        "budget": budget(arguments),
    }
    if arguments.max_depth is not None:
        given["max_depth"] = arguments.max_depth
    if arguments.where is not None:
        given |= {"where": predicate(arguments.where), "on": arguments.on}
    elif arguments.on is not None:
        raise InvalidArguments("--on says what a condition is about; give the condition with --where")
    return given


def start(asked: Asked, text: str) -> Any:
    """The node that a text names: CLASS:ID, or an id whose class the edges tell."""
    name, colon, id = text.partition(":")
    for kind in asked.schema.nodes.values():
        if colon and name in (kind.name, kind.label):
            return kind.model.ref(graphs.node(kind, id))
    return text


def completeness(found: Any) -> int:
    """Says on stderr what is missing in results; returns the exit status."""
    if found.capped:
        print(f"not all edges were read of: {', '.join(map(named, found.capped))}", file=sys.stderr)
    if found.partial:
        print(f"the budget of {found.exceeded} did not suffice, so results are missing", file=sys.stderr)
    return IN_PART if found.partial else 0
