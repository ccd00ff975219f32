"""`adjoin rebuild`: recomputes the aggregates and summaries of the classes, and writes those that differ.

The exit status is 1 if something could not be written, and 2 if the rebuild failed.
"""

from __future__ import annotations

import argparse
import json

from adjoin.cli import batch
from adjoin.cli.command import Command
from adjoin.cli.drawing import counted

LEFT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    batch.add_arguments(parser)
    parser.add_argument(
        "--only", metavar="F", action="append", help="only this field, such as CUSTOMER.owed; may be repeated"
    )
    parser.add_argument("--dry-run", action="store_true", help="compare, and write nothing")
    parser.add_argument("--diff", metavar="PATH", help="write every difference to this file, one JSON object per line")
    parser.add_argument("--state", metavar="PATH", help="the file that stores the progress of an interrupted rebuild")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")


@batch.carried_out
def run(arguments: argparse.Namespace) -> int:
    with batch.opened(arguments) as graph, batch.shown(arguments) as progress:
        rebuilt = graph.rebuild(
            arguments.source,
            engine=arguments.engine,
            only=arguments.only,
            dry_run=arguments.dry_run,
            state=arguments.state,
            diff=arguments.diff,
            progress=progress,
            **batch.options(arguments),
        )
    if arguments.json:
        results = [
            {"name": each.name, "differ": each.differ, "written": each.written, "circular": each.circular}
            for each in rebuilt.results
        ]
        values = {"results": results, "uncounted": rebuilt.uncounted, "left": rebuilt.left}
        print(json.dumps({**values, "failures": [*rebuilt.failures]}, default=str))
        return LEFT if rebuilt.left else 0
    if not rebuilt.results:
        print("the classes declare nothing to compute")
    for result in rebuilt.results:
        written = "" if result.written is None else f", {result.written:,} written"
        circular = f", {counted(result.circular, 'node')} on a cycle or above one" if result.circular else ""
        differ = f"{counted(result.differ, 'node')} differ{'s' if result.differ == 1 else ''}"
        print(f"{result.name}: {differ}{written}{circular}")
    if rebuilt.uncounted:
        print(f"contributions of edges that were missing or wrong, now corrected: {rebuilt.uncounted:,}")
    for failure in rebuilt.failures:
        print(f"not written: {failure['node']}: {failure['reason']}")
    return LEFT if rebuilt.left else 0


COMMAND = Command("rebuild", "recomputes aggregates and summaries from all edges", add_arguments, run, takes_file=False)
