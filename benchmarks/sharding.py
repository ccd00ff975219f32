"""What sharding an index is worth: ways of sharding beside each other, against a model of DynamoDB's partitions.

    python -m benchmarks.sharding [--quick] [--chart PATH]

It is `python -m benchmarks.partitions` with its defaults, over several seeds. Nothing here depends on the machine but
how long it takes: about half a minute for each way and seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.partitions.__main__ import COMPARED, WARM_UP
from benchmarks.partitions.chart import chart, percent
from benchmarks.partitions.partitions import Rules
from benchmarks.partitions.running import Outcome, simulate
from benchmarks.partitions.workloads import Zipf
from benchmarks.tables import table

GOAL, LOST, SHARDS = 0.001, 0.9, 2.0
"""Of writes, refused at most with adaptive shards, at least with one; and how many times the ideal shards at most."""
WORKLOAD = Zipf()
QUICK = Zipf(writes=5000, values=200, seconds=300)
SEEDS = 1, 2, 3


def beside(workload: Zipf, warm_up: int, rules: Rules) -> list[Outcome]:
    return [simulate(workload, name, warm_up=warm_up, rules=rules) for name in COMPARED]


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
        "shards a find",
        "write units/s",
        "$ a month",
    ]
    return table(head, rows)


def show_goals(outcomes: Sequence[Outcome], seed: int) -> list[list[str]]:
    by_name = {each.sharding: each for each in outcomes}
    adaptive, single = by_name["adaptive"], by_name["single"]
    assert adaptive.shards is not None
    return [
        [
            f"seed {seed}",
            percent(adaptive.throttled),
            percent(single.throttled),
            f"{adaptive.shards / adaptive.ideal:.2f}",
        ]
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.sharding", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small workload, one seed; goals are for the whole")
    parser.add_argument("--chart", type=Path, help="write a chart of the first seed, as SVG")
    chosen = parser.parse_args(arguments)
    workload, warm_up = (QUICK, QUICK.seconds // 2) if chosen.quick else (WORKLOAD, WARM_UP)
    goals = []
    for seed in SEEDS[:1] if chosen.quick else SEEDS:
        begin = perf_counter()
        outcomes = beside(replace(workload, seed=seed), warm_up, Rules())
        print(f"seed {seed}, {workload.writes:,.0f} writes a second, in {perf_counter() - begin:.0f} s:\n")
        print(show(outcomes), flush=True)
        goals += show_goals(outcomes, seed)
        if chosen.chart and seed == SEEDS[0]:
            title = f"Writes refused, of {workload.writes:,.0f} a second"
            chosen.chart.write_text(chart(title, outcomes), encoding="utf-8")
    head = [
        "",
        f"adaptive, goal: < {percent(GOAL)}",
        f"single, goal: > {LOST:.0%}",
        f"shards / ideal, goal: ≤ {SHARDS:g}",
    ]
    print(table(head, goals))


if __name__ == "__main__":
    main()
