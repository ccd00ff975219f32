"""`adjoin snapshot`: saves a snapshot of the topology in a folder, or brings a saved one up to date.

`adjoin rank` and `g.open_snapshot` read it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from adjoin.cli import following, graphs
from adjoin.cli.command import Command, InvalidArguments
from adjoin.cli.drawing import ProgressLine, counted
from adjoin.cli.graphs import Asked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument("folder", metavar="FOLDER", help="a new folder, or one with a saved snapshot")
    parser.add_argument(
        "--edges",
        metavar="CLASS",
        action="append",
        default=[],
        help="for a new snapshot: a class of edges or children; repeatable, and several are also joined by commas",
    )
    parser.add_argument(
        "--fields",
        metavar="FIELD",
        action="append",
        default=[],
        help="for a new snapshot: a field of numbers that is held too, such as Knows.since; repeatable",
    )
    parser.add_argument("--from", dest="source", metavar="EXPORT", help="read this export instead of the table")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> None:
    is_saved = os.path.isdir(arguments.folder) and bool(os.listdir(arguments.folder))
    if is_saved and (arguments.edges or arguments.fields or arguments.source):
        raise InvalidArguments(
            f"{arguments.folder} has a snapshot, to which changes are applied as it is; leave out --edges, "
            f"--fields and --from, or name a new folder"
        )
    if not is_saved and not arguments.edges:
        raise InvalidArguments("a new snapshot needs classes of edges; name them with --edges")
    with graphs.opened(arguments) as asked:
        changes = 0
        if is_saved:
            snapshot = asked.graph.open_snapshot(arguments.folder)
            changes = snapshot.follow(once=True)
        else:
            snapshot = taken(asked, following.followed(asked, arguments.edges), arguments)
        snapshot.save(arguments.folder)
    nodes, edges = snapshot.node_count, snapshot.edge_count()
    if arguments.json:
        print(json.dumps({"nodes": nodes, "edges": edges, "changes": changes, "folder": arguments.folder}))
        return
    what = f"applied {counted(changes, 'change')} to" if is_saved else "saved"
    print(f"{what} {arguments.folder}: {counted(nodes, 'node')}, {counted(edges, 'edge')}")


def taken(asked: Asked, edges: list[type[Any]], arguments: argparse.Namespace) -> Any:
    """A new snapshot, with its progress on stderr."""
    line = ProgressLine(sys.stderr)

    def show(step: str, done: int) -> None:
        if not arguments.quiet:
            line.show("snapshot", step, done, 0)

    found = asked.graph.snapshot(edges, arguments.fields, source=arguments.source, progress=show)
    line.close()
    return found


COMMAND = Command("snapshot", "saves a snapshot, or brings a saved one up to date", add_arguments, run, False)
