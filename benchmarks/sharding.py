"""The value of sharding an index: several ways of sharding, against a model of DynamoDB's partitions.

    python -m benchmarks.sharding [--quick] [--chart PATH]

It is `python -m benchmarks.partitions` with both indexes of a materialized graph, over several seeds: the one over
values, and the one over the targets of edges. The figures do not depend on the machine, only the time it takes: one or
two minutes per way and seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.partitions.__main__ import WARM_UP
from benchmarks.partitions.chart import chart, percent
from benchmarks.partitions.partitions import Rules
from benchmarks.partitions.running import Outcome, simulate
from benchmarks.partitions.workloads import Zipf
from benchmarks.tables import table

GOAL, LOST, SHARDS = 0.001, 0.9, 2.0
"""The share of writes refused: at most with adaptive shards, and at least with one shard. And the most shards, as a
multiple of the ideal number."""
WORKLOAD = Zipf()
QUICK = Zipf(writes=5000, values=200, seconds=300)
SEEDS = 1, 2, 3
BEST = ("adaptive", "fixed:16")
COMPARED = (("single", "single"), ("adaptive", "single"), BEST)
"""Ways of sharding: the index over values, and that over targets."""


def beside(workload: Zipf, warm_up: int, rules: Rules) -> list[Outcome]:
    return [simulate(workload, name, targets=targets, warm_up=warm_up, rules=rules) for name, targets in COMPARED]


def show(outcomes: Sequence[Outcome]) -> str:
    rows = [
        [
            each.sharding,
            percent(each.throttled),
            percent(each.throttled_in_all),
            f"{each.shards}",
            f"{each.partitions}",
            f"{each.shards_a_find:.1f}",
            f"{each.write_units:,.0f}",
            f"{each.dollars_a_month:,.0f}",
        ]
        for each in outcomes
    ]
    head = [
        "sharding",
        "refused",
        "from the start",
        "shards",
        "partitions",
        "shards per find",
        "write units/s",
        "$ per month",
    ]
    return table(head, rows)


def show_goals(outcomes: Sequence[Outcome], seed: int) -> list[list[str]]:
    by_name = dict(zip(COMPARED, outcomes, strict=True))
    adaptive, half, single = by_name[BEST], by_name["adaptive", "single"], by_name["single", "single"]
    assert adaptive.shards is not None
    return [
        [
            f"seed {seed}",
            percent(adaptive.throttled),
            percent(half.throttled),
            percent(single.throttled),
            f"{adaptive.shards / adaptive.ideal:.2f}",
        ]
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.sharding", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="a small workload with one seed; the goals are for the full one"
    )
    parser.add_argument("--chart", type=Path, help="write a chart of the first seed, as SVG")
    chosen = parser.parse_args(arguments)
    workload, warm_up = (QUICK, QUICK.seconds // 2) if chosen.quick else (WORKLOAD, WARM_UP)
    goals = []
    for seed in SEEDS[:1] if chosen.quick else SEEDS:
        begin = perf_counter()
        outcomes = beside(replace(workload, seed=seed), warm_up, Rules())
        print(f"seed {seed}, {workload.writes:,.0f} writes per second, in {perf_counter() - begin:.0f} s:\n")
        print(show(outcomes), flush=True)
        goals += show_goals(outcomes, seed)
        if chosen.chart and seed == SEEDS[0]:
            title = f"Writes refused, of {workload.writes:,.0f} per second"
            chosen.chart.write_text(chart(title, outcomes), encoding="utf-8")
    head = [
        "",
        f"both, goal: < {percent(GOAL)}",
        "targets single",
        f"single, goal: > {LOST:.0%}",
        f"shards / ideal, goal: ≤ {SHARDS:g}",
    ]
    print(table(head, goals))


if __name__ == "__main__":
    main()
