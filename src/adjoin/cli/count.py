"""`adjoin count`: prints how many nodes and edges there are, of one class or of each."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from adjoin.cli import graphs
from adjoin.cli.command import Command
from adjoin.cli.graphs import Asked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("kind", metavar="CLASS", nargs="?", help="the class of nodes or edges (default: each class)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with a number for each class")


def call(asked: Asked, arguments: argparse.Namespace) -> Callable[[], Any]:
    if arguments.kind is None:
        return lambda: asked.graph.scan().page()
    model = asked.kind(arguments.kind).model
    return lambda: asked.graph.count(model)


def run(arguments: argparse.Namespace) -> None:
    with graphs.opened(arguments) as asked:
        counts = _counts(asked, arguments.kind)
    if arguments.json:
        print(json.dumps(counts))
    elif arguments.kind is not None:
        print(*counts.values())
    else:
        for name, number in counts.items():
            print(f"{name}: {number:,}")


def _counts(asked: Asked, name: str | None) -> dict[str, int]:
    if name is not None:
        kind = asked.kind(name)
        return {kind.name: asked.graph.count(kind.model)}
    # One scan for all classes costs as much as the count of one.
    found = Counter(type(entity) for entity in asked.graph.scan())
    return {kind.name: found[kind.model] for kind in asked.schema.types}


COMMAND = Command("count", "prints how many nodes and edges there are", add_arguments, run, False, call)
