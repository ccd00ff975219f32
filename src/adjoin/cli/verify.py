"""`adjoin verify`: computes what a table should store from its edges, and reports what differs.

The exit status is 0 if nothing was found, 1 if something was found and not all of it is repaired, 3 if something was
found and all of it is repaired, and 2 if the audit failed.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from adjoin.cli import batch
from adjoin.cli.command import Command
from adjoin.cli.drawing import counted

LEFT, REPAIRED = 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    batch.add_arguments(parser)
    parser.add_argument(
        "--repair",
        metavar="KIND",
        nargs="?",
        action="append",
        const="",
        help="repair findings of this kind; may be repeated; without a kind: all except dangling",
    )
    parser.add_argument("--report", metavar="PATH", help="write the findings to this file, as JSON")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")


@batch.carried_out
def run(arguments: argparse.Namespace) -> int:
    asked = arguments.repair or []
    repair: Any = (True, *filter(None, asked)) if "" in asked else asked
    with batch.opened(arguments) as graph, batch.shown(arguments) as progress:
        audit = graph.verify(
            arguments.source,
            engine=arguments.engine,
            repair=repair,
            report=arguments.report,
            progress=progress,
            **batch.options(arguments),
        )
    if arguments.json:
        findings = [
            {"kind": each.kind, "name": each.name, "count": each.count, "repaired": each.repaired}
            for each in audit.findings
        ]
        print(json.dumps({"faults": audit.faults, "left": audit.left, "findings": findings, "read": audit.counts}))
        return 0 if not audit.findings else LEFT if audit.left else REPAIRED
    for finding in audit.findings:
        repaired = f", {finding.repaired:,} repaired" if finding.repaired else ""
        print(f"{finding.kind}  {finding.name}: {finding.count:,}{repaired}")
        for example in (*finding.examples[:3], *finding.failures[:3]):
            print("  " + "  ".join(f"{name}={_shown(value)}" for name, value in example.items()))
    looked = ", ".join(f"{number:,} {label}" for label, number in audit.counts.items() if number)
    repaired = f", {audit.faults - audit.left:,} repaired" if arguments.repair else ""
    print(f"{counted(audit.faults, 'fault')}{repaired} in {looked or 'nothing'}")
    if not audit.findings:
        return 0
    return LEFT if audit.left else REPAIRED


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


COMMAND = Command(
    "verify",
    "finds stored values that do not agree with each other, and repairs them",
    add_arguments,
    run,
    takes_file=False,
)
