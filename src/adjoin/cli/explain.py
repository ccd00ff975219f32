"""`adjoin explain`: prints the requests that another command would make, and their cost, without making them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from adjoin.cli import (
    children,
    common,
    count,
    delete,
    find,
    get,
    graphs,
    into,
    out,
    put,
    reachable,
    recommend,
    scan,
    shortest_path,
    subtree,
    update,
    walk,
)
from adjoin.cli.command import Command
from adjoin.cost import Explanation
from adjoin.requests import Query, Scan

_EXPLAINED = (get, out, into, children, find, walk, shortest_path, reachable, recommend, common, subtree, scan, count)
VERBS = {each.COMMAND.name: each.COMMAND for each in (*_EXPLAINED, put, update, delete)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for name, command in VERBS.items():
        verb = verbs.add_parser(name, help=command.summary, description=f"explains: {command.summary}")
        command.add_arguments(verb)


def run(arguments: argparse.Namespace) -> None:
    call = VERBS[arguments.verb].call
    assert call is not None
    with graphs.opened(arguments) as asked:
        explanation = asked.graph.explain(call(asked, arguments))
    print(json.dumps(_object(explanation)) if arguments.json else explanation)


def _object(explanation: Explanation) -> dict[str, Any]:
    whole, walked = explanation.whole_table, explanation.walk
    return {
        "rounds": [[_request(each) for each in requests] for requests in explanation.rounds],
        "rcu": explanation.rcu,
        "wcu": explanation.wcu,
        "dollars": explanation.dollars,
        "partitions": explanation.partitions,
        "whole_table": None if whole is None else {"items": whole.items, "bytes": whole.size, "rcu": whole.rcu},
        "walk": None if walked is None else str(walked),
        "then": [str(each) for each in (*explanation.fan_outs, *explanation.countings)],
    }


def _request(request: Any) -> dict[str, Any]:
    index = request.index if isinstance(request, Query | Scan) else None
    return {"operation": type(request).__name__, "index": index}


COMMAND = Command(
    "explain", "prints the requests that a command would make, and their cost", add_arguments, run, takes_file=False
)
