"""`adjoin walk`: follows edges over several steps, and prints the nodes, edges or paths that it reaches.

The steps are written as they are called in a program: `out Knows out Knows where "age > 30" distinct`. The exit status
is 3 if the budget ended the walk, so that results are missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

from adjoin import Budget
from adjoin.cli import graphs
from adjoin.cli.command import IN_PART, Command, InvalidArguments, meant, whole_number
from adjoin.cli.conditions import predicate
from adjoin.cli.graphs import Asked
from adjoin.cli.reading import add_json
from adjoin.cli.results import as_json, as_text, named
from adjoin.exchange.texts import plain

_ALONG = ("out", "into", "both", "children")
_STEPS = (*_ALONG, "repeat", "where", "distinct", "order_by", "limit_per_node", "limit")
_WHAT = ("nodes", "refs", "edges", "paths", "count", "group_count")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("start", metavar="ID", help="the id of the node to begin with")
    parser.add_argument(
        "steps",
        metavar="STEP",
        nargs="+",
        help="out EDGE, into EDGE, both EDGE, children CHILD, repeat EDGE MOST, where CONDITION, distinct, "
        "order_by FIELD, limit_per_node N or limit N; several classes are joined by commas",
    )
    parser.add_argument(
        "--class", dest="kind", metavar="CLASS", help="the class of the node, if the step does not tell"
    )
    parser.add_argument("--what", choices=_WHAT, default="nodes", help="what to print (default: nodes)")
    parser.add_argument("--sum", metavar="F", help="print the sum of this field over all paths instead")
    parser.add_argument("--requests", metavar="N", type=whole_number, help="make at most N requests")
    parser.add_argument("--rcu", metavar="N", type=whole_number, help="consume at most N read units")
    add_json(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Any:
    start: Any = arguments.start
    if arguments.kind is not None:
        kind = asked.node_kind(arguments.kind)
        start = kind.model.ref(graphs.node(kind, start))
    budget = Budget(requests=arguments.requests, rcu=arguments.rcu)
    walk = asked.graph.walk(start, budget=budget)
    words = iter(arguments.steps)
    for word in words:
        walk = _step(asked, walk, word, words)
    return walk


def _step(asked: Asked, walk: Any, word: str, words: Iterator[str]) -> Any:
    def following(what: str) -> str:
        found = next(words, None)
        if found is None:
            raise InvalidArguments(f"{word} is the last step, and {what} is missing; write it after {word}")
        return found

    def number(what: str) -> int:
        found = following(what)
        if not found.isdecimal() or len(found) > 9:
            raise InvalidArguments(f"{word} takes {what}, got {found!r}; write a whole number")
        return int(found)

    match word:
        case "out" | "into" | "both" | "children":
            return getattr(walk, word)(*_models(asked, following("a class")))
        case "repeat":
            return walk.repeat(*_models(asked, following("a class")), max=number("how often at most"))
        case "where":
            return walk.where(predicate(following("a condition")))
        case "distinct":
            return walk.distinct()
        case "order_by":
            return walk.order_by(following("a field"))
        case "limit_per_node" | "limit":
            return getattr(walk, word)(number("a number"))
    raise InvalidArguments(f"{word!r} is not a step of a walk; {meant(word, _STEPS)}")


def _models(asked: Asked, names: str) -> list[type[Any]]:
    return [asked.kind(name).model for name in names.split(",")]


def run(arguments: argparse.Namespace) -> int:
    with graphs.opened(arguments) as asked:
        walk = call(asked, arguments)
        if arguments.sum is not None:
            print(as_json(walk.sum(arguments.sum)) if arguments.json else as_text(walk.sum(arguments.sum)))
            return 0
        if arguments.what == "count":
            print(walk.count())
            return 0
        found = getattr(walk, arguments.what)()
        for line in _lines(found, arguments):
            print(line)
        return _completeness(found)


def _lines(found: Any, arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.what != "group_count":
        line: Callable[[Any], str] = as_json if arguments.json else as_text
        yield from map(line, found)
        return
    for ref, number in found.items():
        yield as_json({**plain(ref), "paths": number}) if arguments.json else f"{named(ref)}: {number:,}"


def _completeness(found: Any) -> int:
    if found.capped:
        print(f"not all edges were read of: {', '.join(map(named, found.capped))}", file=sys.stderr)
    if found.partial:
        print(f"the budget of {found.exceeded} did not suffice, so results are missing", file=sys.stderr)
    return IN_PART if found.partial else 0


COMMAND = Command("walk", "follows edges over several steps", add_arguments, run, False, call)
