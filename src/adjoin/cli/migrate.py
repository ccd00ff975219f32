"""`adjoin migrate`: brings what is stored in a table to what the classes declare, or into another table.

The exit status is 0 if nothing is due any more, 1 if the migration has not ended, and 2 if it failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adjoin import AdjacencyList, MigrationPlan, MigrationReport
from adjoin.cli import batch
from adjoin.cli.command import Command, imported, layout_in, meant, models_in
from adjoin.cli.drawing import ProgressLine, counted, duration
from adjoin.cli.maintain import stoppable
from adjoin.cost import dollars
from adjoin.errors import InvalidLocation, InvalidValue, NotFound
from adjoin.graph import Graph
from adjoin.locations import table_named_by

LEFT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument(
        "--into",
        nargs=2,
        metavar=("LOCATION", "MODULE"),
        help="write everything into this other table, as the classes and the layout of this module declare it",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and what it costs")
    parser.add_argument(
        "--finish",
        action="store_true",
        help="the last step: no program with former declarations, or to the old table, writes any more",
    )
    parser.add_argument(
        "--drop", metavar="F", action="append", default=[], help="remove this attribute, such as Student.nickname"
    )
    parser.add_argument(
        "--fill",
        metavar="F=NAME",
        action="append",
        default=[],
        help="fill a field that items lack, such as Student.year=first_year, by a function of the module",
    )
    parser.add_argument("--units", metavar="N", type=_units, help="consume at most N units per second")
    parser.add_argument(
        "--segments", metavar="N", type=_segments, default=1, help="read N parts of the table side by side (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    # A migration is for all tenants of a table.
    parser.set_defaults(tenant=None)


def _units(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of units per second above 0")
    return number


def _segments(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1,000")
    return int(text)


@batch.carried_out
def run(arguments: argparse.Namespace) -> int:
    fill = _fill(arguments)
    with batch.opened(arguments) as graph, _target(arguments) as into:
        if arguments.dry_run:
            plan = graph.migrate(dry_run=True, into=into, fill=fill, drop=arguments.drop)
            print(_json_plan(plan) if arguments.json else _plan_text(plan))
            return LEFT if plan else 0
        line = ProgressLine(sys.stderr)
        with stoppable() as stop:
            try:
                report = graph.migrate(
                    into=into,
                    fill=fill,
                    drop=arguments.drop,
                    finish=arguments.finish,
                    units=arguments.units,
                    segments=arguments.segments,
                    stop=stop,
                    progress=None
                    if arguments.quiet
                    else lambda so_far: line.show(
                        f"{so_far.stage}, {so_far.written:,} {'moved' if so_far.into else 'completed'}, "
                        f"${dollars(so_far.rcu, so_far.wcu):,.2f}{_left(so_far)}",
                        "items",
                        so_far.read,
                        so_far.total,
                    ),
                )
            finally:
                line.close()
    if arguments.json:
        print(_json_report(report))
        return 0 if report.ended else LEFT
    for refusal in report.refused:
        print(f"not {'moved' if into else 'completed'}: {refusal}")
    came = "were written meanwhile" if into else "came from older programs"
    older = f"; {counted(report.older_writes, 'item')} {came}" if report.older_writes else ""
    print(f"{report}{older}")
    print(f"{_cost(report.rcu, report.wcu)}, in {duration(report.seconds)}")
    return 0 if report.ended else LEFT


def _fill(arguments: argparse.Namespace) -> dict[str, Any]:
    """The functions that fill fields, by the names of the fields."""
    if not arguments.fill:
        return {}
    named = arguments.module if arguments.into is None else arguments.into[1]
    module = imported(named.partition(":")[0])
    functions = {name: each for name, each in vars(module).items() if callable(each) and not isinstance(each, type)}
    found = {}
    for given in arguments.fill:
        filled, equals, name = given.partition("=")
        if not equals:
            raise InvalidValue(f"--fill takes a field and a function, such as Student.year=first_year, got {given!r}")
        if name not in functions:
            raise NotFound(f"the module {module.__name__} has no function {name!r}; {meant(name, tuple(functions))}")
        found[filled] = functions[name]
    return found


def _plan_text(plan: MigrationPlan) -> str:
    lines = [*map(str, plan.differences), str(plan)]
    if plan:
        lines.append(f"in all: {'' if plan.is_exact else 'about '}{_cost(plan.rcu, plan.wcu)}")
    return "\n".join(lines)


def _json_plan(plan: MigrationPlan) -> str:
    told = {
        "due": bool(plan),
        "differences": [*map(str, plan.differences)],
        "steps": [*map(str, plan.steps)],
        "refused": [*map(str, plan.refused)],
        "items": plan.items,
        "exact": plan.is_exact,
    }
    return json.dumps({**told, **_json_cost(plan)})


def _json_report(report: MigrationReport) -> str:
    told = {
        "ended": report.ended,
        "stage": report.stage,
        "read": report.read,
        "written": report.written,
        "refused": [*map(str, report.refused)],
        "older_writes": report.older_writes,
        "others": report.others,
        "seconds": report.seconds,
    }
    return json.dumps({**told, **_json_cost(report)})


def _json_cost(of: MigrationPlan | MigrationReport) -> dict[str, float]:
    return {"rcu": of.rcu, "wcu": of.wcu, "dollars": dollars(of.rcu, of.wcu)}


@contextmanager
def _target(arguments: argparse.Namespace) -> Iterator[Graph | None]:
    """The graph to migrate into; a file is created if needed."""
    if arguments.into is None:
        yield None
        return
    location, named = arguments.into
    name, _, layout_name = named.partition(":")
    module = imported(name)
    if location == ":memory:":
        raise InvalidLocation("a table in memory would be lost when the command ends; give the path of a file")
    layout = layout_in(module, layout_name) or AdjacencyList()
    if arguments.dry_run:
        # Nothing is created: what the layout says of the table is enough.
        layout, location = layout.named(table_named_by(location) or layout.table), ":memory:"
    with Graph(location, models_in(module, arguments.models), layout) as graph:
        yield graph


def _left(so_far: MigrationReport) -> str:
    return "" if so_far.seconds_left is None else f", {duration(so_far.seconds_left)} left"


def _cost(rcu: float, wcu: float) -> str:
    return f"{rcu:,.1f} read and {wcu:,.1f} write units, ${dollars(rcu, wcu):,.4f} on demand"


COMMAND = Command(
    "migrate",
    "changes stored items to what the classes declare, or moves them into another table",
    add_arguments,
    run,
    takes_file=False,
)
