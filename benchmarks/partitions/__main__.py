"""`python -m benchmarks.partitions`: runs a workload, sharded in several ways, on a model of DynamoDB's partitions."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from adjoin.cli.command import FAILED, MISUSED, InvalidArguments, error_line, of_arguments
from adjoin.cli.drawing import Column, draw
from adjoin.cost import PRICES
from adjoin.errors import AdjoinError, InvalidValue, NotFound
from benchmarks.partitions.chart import chart, percent
from benchmarks.partitions.partitions import Rules
from benchmarks.partitions.placing import number_of_shards, placing_of
from benchmarks.partitions.running import Outcome, replay, simulate
from benchmarks.partitions.tables import FRESH_READS, FRESH_WRITES
from benchmarks.partitions.workloads import Zipf, read_log

WORKLOADS = {"zipf-skills": "entries of one field whose values are Zipf-distributed, as skills of people are"}
WARM_UP = 1500
"""Time for two rounds of split for heat, which DynamoDB needs if several shards are in one partition."""
COMPARED = ("single", "fixed:8", "fixed:64", "adaptive")
_MADE_ONLY = ("writes", "reads", "seconds", "values", "skew", "ramp", "seed")
_COLUMNS = (
    Column("sharding"),
    Column("throttled", right=True),
    Column("from the start", right=True),
    Column("shards", right=True),
    Column("ideal", right=True),
    Column("partitions", right=True),
    Column("shards per find", right=True),
    Column("units/s", right=True),
    Column("$ per month", right=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    made = Zipf()
    parser.add_argument("log", metavar="LOG", nargs="?", help="a recorded log (default: a workload is generated)")
    parser.add_argument("--workload", metavar="W", choices=WORKLOADS, help="zipf-skills (the default)")
    parser.add_argument("--writes", metavar="N", type=float, help=f"writes per second (default: {made.writes:g})")
    parser.add_argument("--reads", metavar="N", type=float, help=f"finds per second (default: {made.reads:g})")
    parser.add_argument(
        "--seconds", metavar="N", type=int, help=f"the length of the workload in seconds (default: {made.seconds})"
    )
    parser.add_argument("--values", metavar="N", type=int, help=f"the number of values (default: {made.values})")
    parser.add_argument(
        "--skew", metavar="S", type=float, help=f"the exponent of the distribution (default: {made.skew:g})"
    )
    parser.add_argument(
        "--ramp", metavar="N", type=int, help=f"seconds until the full rate is reached (default: {made.ramp})"
    )
    parser.add_argument("--seed", metavar="N", type=int, help=f"the seed of the random numbers (default: {made.seed})")
    parser.add_argument("--growing-ids", action="store_true", help="use ids that sort after all earlier ones")
    parser.add_argument(
        "--sharding",
        metavar="S",
        action="append",
        help="single, fixed:N or adaptive; may be repeated (default: several)",
    )
    parser.add_argument(
        "--targets",
        metavar="S",
        help="add an index over the targets of edges, whose targets have single or fixed:N shards (default: none)",
    )
    parser.add_argument(
        "--writers", metavar="N", type=int, default=8, help="the number of writing processes (default: 8)"
    )
    parser.add_argument(
        "--warm-up",
        metavar="N",
        type=int,
        help=f"seconds that do not count (default: {WARM_UP}, at most half the length; 0 for a log)",
    )
    parser.add_argument(
        "--burst",
        metavar="N",
        type=float,
        default=300.0,
        help="seconds of unused capacity that are kept (default: 300)",
    )
    parser.add_argument("--fresh", action="store_true", help="use a new table, which had no load before")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line, with every minute")
    parser.add_argument("--chart", metavar="PATH", help="write a chart to this file, as SVG")


def run(arguments: argparse.Namespace) -> None:
    if arguments.writers < 1:
        raise InvalidArguments(f"--writers must be at least 1, got {arguments.writers}")
    names = arguments.sharding or list(COMPARED)
    with of_arguments():
        for name in names:
            placing_of(name, 1)
        if arguments.targets is not None:
            number_of_shards(arguments.targets)
    rules = Rules(burst=max(0.0, arguments.burst))
    outcomes = _replayed(arguments, names, rules) if arguments.log else _made(arguments, names, rules)
    if arguments.json:
        for outcome in outcomes:
            print(json.dumps(outcome.to_plain(), separators=(",", ":")))
    else:
        print(draw(_COLUMNS, [[_row(outcome) for outcome in outcomes]]))
        print(_hottest(outcomes))
        print(f"prices: on demand, {PRICES.region}, {PRICES.as_of}; units of the table and its indexes, no storage")
    if arguments.chart:
        rate = outcomes[0].asked
        Path(arguments.chart).write_text(
            chart(f"Writes refused, of {round(rate, -2):,.0f} per second", outcomes), encoding="utf-8"
        )


def _made(arguments: argparse.Namespace, names: list[str], rules: Rules) -> list[Outcome]:
    given = {name: getattr(arguments, name) for name in _MADE_ONLY if getattr(arguments, name) is not None}
    with of_arguments():
        workload = Zipf(**given, ids_grow=arguments.growing_ids)
    warm_up = arguments.warm_up
    if warm_up is None:
        warm_up = WARM_UP if workload.seconds > WARM_UP else workload.seconds // 2
    if not 0 <= warm_up < workload.seconds:
        raise InvalidArguments(f"a warm-up of {warm_up} s leaves nothing of {workload.seconds} s; increase --seconds")
    return [
        simulate(
            workload,
            name,
            targets=arguments.targets,
            warm_up=warm_up,
            writers=arguments.writers,
            rules=rules,
            is_fresh=arguments.fresh,
        )
        for name in names
    ]


def _replayed(arguments: argparse.Namespace, names: list[str], rules: Rules) -> list[Outcome]:
    for name in (*_MADE_ONLY, "workload", "targets"):
        if getattr(arguments, name) is not None:
            raise InvalidArguments(f"--{name} is for a generated workload, and not for a log; leave it out")
    path = Path(arguments.log)
    if not path.is_file():
        raise NotFound(f"the file {arguments.log} does not exist; check the name")
    with path.open(encoding="utf-8") as lines:
        log = list(read_log(lines))
    if not log:
        raise InvalidValue(f"the log {arguments.log} has no requests")
    # Unless it is fresh, the table had this load before, so it accepts twice the peak.
    seconds: dict[int, list[float]] = {}
    for each in log:
        units = seconds.setdefault(int(each.at), [0.0, 0.0])
        units[each.key is None] += each.units if each.key is not None else sum(place.units for place in each.places)
    peaks = [2 * max(each[kind] for each in seconds.values()) for kind in (0, 1)]
    warm = (FRESH_WRITES, FRESH_READS) if arguments.fresh else (peaks[0], peaks[1])
    warm_up = arguments.warm_up or 0
    return [replay(log, name, warm_up=warm_up, writers=arguments.writers, rules=rules, warm=warm) for name in names]


def _row(outcome: Outcome) -> list[str]:
    return [
        outcome.sharding,
        percent(outcome.throttled),
        percent(outcome.throttled_in_all),
        "" if outcome.shards is None else f"{outcome.shards}",
        f"{outcome.ideal}",
        f"{outcome.partitions}",
        "" if outcome.shards_a_find is None else f"{outcome.shards_a_find:.1f}",
        f"{outcome.write_units + outcome.read_units:,.0f}",
        f"{outcome.dollars_a_month:,.0f}",
    ]


def _hottest(outcomes: list[Outcome]) -> str:
    lines = ["the hottest partitions, in write units per second:"]
    for outcome in outcomes:
        for hot in outcome.hottest:
            keys = f" ({hot.keys})" if hot.keys else ""
            lines.append(f"  {outcome.sharding}: {hot.space} {hot.writes:,.0f}, {percent(hot.refused)} refused{keys}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the simulation; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partitions",
        description="Tries ways of sharding an index against a model of DynamoDB's partitions.",
    )
    add_arguments(parser)
    parsed = parser.parse_args(arguments)
    try:
        run(parsed)
    except (AdjoinError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return MISUSED if isinstance(error, InvalidArguments) else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
