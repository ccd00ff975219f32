"""`adjoin walk`: follows edges over several steps, and prints the nodes, edges or paths that it reaches.

The steps are written as they are called in a program: `out Knows out Knows where "age > 30" distinct`. The exit status
is 3 if the budget ended the walk, so that results are missing.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command, InvalidArguments, meant
from adjoin.cli.conditions import predicate
from adjoin.cli.graphs import Asked
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
        "--class", dest="kind", metavar="CLASS", help="the class of the node, if the step does not say it"
    )
    parser.add_argument("--what", choices=_WHAT, default="nodes", help="what to print (default: nodes)")
    parser.add_argument("--sum", metavar="F", help="print the sum of this field over all paths instead")
    following.add_budget(parser)


def call(asked: Asked, arguments: argparse.Namespace) -> Any:
    start: Any = arguments.start
    if arguments.kind is not None:
        kind = asked.node_kind(arguments.kind)
        start = kind.model.ref(graphs.node(kind, start))
    elif arguments.steps[0] not in _STEPS and any(each.name == start for each in asked.schema.nodes.values()):
        raise InvalidArguments(
            f"{start!r} is a class, and a walk begins with an id; write --class {start}, then the id and the steps"
        )
    walk = asked.graph.walk(start, budget=following.budget(arguments))
    words = iter(arguments.steps)
    for word in words:
        walk = _step(asked, walk, word, words)
    return walk


def _step(asked: Asked, walk: Any, word: str, words: Iterator[str]) -> Any:
    def next_word(what: str) -> str:
        found = next(words, None)
        if found is None:
            raise InvalidArguments(f"{word} is the last step, and {what} is missing; write it after {word}")
        return found

    def number(what: str) -> int:
        found = next_word(what)
        if not found.isdecimal() or len(found) > 9:
            raise InvalidArguments(f"{word} takes {what}, got {found!r}; write a whole number")
        return int(found)

    match word:
        case "out" | "into" | "both" | "children":
            return getattr(walk, word)(*following.followed(asked, [next_word("a class")]))
        case "repeat":
            return walk.repeat(*following.followed(asked, [next_word("a class")]), max=number("how often at most"))
        case "where":
            return walk.where(predicate(next_word("a condition")))
        case "distinct":
            return walk.distinct()
        case "order_by":
            return walk.order_by(next_word("a field"))
        case "limit_per_node" | "limit":
            return getattr(walk, word)(number("a number"))
    first, *rest = re.split(r"[\s=:]+", word, maxsplit=1)
    if rest and first in _STEPS:
        raise InvalidArguments(f"{word!r} is not a step of a walk; write words of their own: {first} {rest[0]}")
    raise InvalidArguments(f"{word!r} is not a step of a walk; {meant(word, _STEPS)}")


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
        return following.completeness(found)


def _lines(found: Any, arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.what != "group_count":
        line: Callable[[Any], str] = as_json if arguments.json else as_text
        yield from map(line, found)
        return
    for ref, number in found.items():
        yield as_json({**plain(ref), "paths": number}) if arguments.json else f"{named(ref)}: {number:,}"


COMMAND = Command("walk", "follows edges over several steps", add_arguments, run, False, call)
