"""`adjoin rebuild`: recomputes what your classes declare, and writes back what differs."""

from __future__ import annotations

import argparse

from adjoin.cli import batch
from adjoin.cli.command import Command
from adjoin.cli.drawing import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    batch.add_arguments(parser)
    parser.add_argument("--only", metavar="F", action="append", help="only this field, as CUSTOMER.owed")
    parser.add_argument("--dry-run", action="store_true", help="compare, and write nothing")
    parser.add_argument("--state", metavar="PATH", help="the file that remembers how far an interrupted rebuild came")


def run(arguments: argparse.Namespace) -> None:
    with batch.opened(arguments) as graph, batch.shown(arguments) as progress:
        rebuilt = graph.rebuild(
            arguments.source,
            engine=arguments.engine,
            only=arguments.only,
            dry_run=arguments.dry_run,
            state=arguments.state,
            progress=progress,
            **batch.options(arguments),
        )
    if not rebuilt.results:
        print("the classes declare nothing to compute")
    for result in rebuilt.results:
        written = "" if result.written is None else f", {result.written:,} written"
        circular = f", {counted(result.circular, 'node')} on a circle or above it" if result.circular else ""
        differ = f"{counted(result.differ, 'node')} differ{'s' if result.differ == 1 else ''}"
        print(f"{result.name}: {differ}{written}{circular}")


COMMAND = Command("rebuild", "recomputes aggregates and summaries from all edges", add_arguments, run, takes_file=False)
