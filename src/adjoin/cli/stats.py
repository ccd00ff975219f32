"""`adjoin stats`: reads a table once, and prints how many nodes and edges it has, and how they are spread.

Items of a partition come one after the other in a scan, so only the largest partitions are held in memory.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import field
from heapq import heappush, heappushpop
from typing import Any

from adjoin import AdjacencyList
from adjoin.cli import graphs
from adjoin.cli.batch import check_there, declared
from adjoin.cli.command import Command, described, whole_number
from adjoin.cli.drawing import Column, ProgressLine, draw, duration, shown_key
from adjoin.cli.tables import sized
from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.graph import Graph
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.locations import open_store, table_named_by
from adjoin.plans.maintenance.health import Health
from adjoin.requests import PageResponse, Scan
from adjoin.stores.interface import Store
from adjoin.values import AttributeValue, Item, item_size

LARGEST = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    graphs.add_arguments(parser)
    parser.add_argument(
        "--largest",
        metavar="N",
        type=whole_number,
        default=LARGEST,
        help=f"show this many of the largest partitions (default: {LARGEST})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


@dataclass(slots=True)
class _Amount:
    items: int = 0
    size: int = 0

    def add(self, size: int) -> None:
        self.items += 1
        self.size += size


@dataclass(slots=True)
class Statistics:
    """What one scan of a table tells."""

    largest_kept: int
    classes: dict[str, _Amount] = field(default_factory=dict)
    own: _Amount = field(default_factory=_Amount)
    others: _Amount = field(default_factory=_Amount)
    partitions: int = 0
    spread: Counter[int] = field(default_factory=Counter)
    """How many partitions have up to 1, 2, 4, 8, … items, by the power of two."""
    largest: list[tuple[int, int, str]] = field(default_factory=list)
    """The largest partitions as a heap: items, bytes, key."""
    _key: AttributeValue | None = None
    _current: _Amount = field(default_factory=_Amount)

    def add(self, kind: EntityType | None, is_own: bool, partition: AttributeValue, size: int) -> None:
        amount = self.own if is_own else self.others if kind is None else self.classes.setdefault(kind.name, _Amount())
        amount.add(size)
        if is_own:
            return
        # A scan gives the items of a partition one after the other, so only one has to be counted at a time.
        if partition != self._key:
            self.close()
            self._key = partition
        self._current.add(size)

    def close(self) -> None:
        """Counts the partition whose items were read last."""
        if self._key is None:
            return
        self.partitions += 1
        # Less one, so that a power of two is in the bin that it ends.
        self.spread[(self._current.items - 1).bit_length()] += 1
        entry = (self._current.items, self._current.size, shown_key(self._key))
        (heappush if len(self.largest) < self.largest_kept else heappushpop)(self.largest, entry)
        self._key, self._current = None, _Amount()


def run(arguments: argparse.Namespace) -> None:
    models, layout = declared(arguments)
    check_there(arguments.location, (layout or AdjacencyList()).table)
    bound: BoundLayout = bound_layout(models, layout, table_named_by(arguments.location))
    if arguments.tenant is not None:
        bound = bound.for_tenant(arguments.tenant)
    with closing(open_store(arguments.location)) as store:
        total = described(store, bound.table).item_count
        line = ProgressLine(sys.stderr)
        found = Statistics(arguments.largest)
        for number, item in enumerate(_items(store, bound.table), 1):
            is_own = bound.is_bookkeeping(item)
            kind = None if is_own else bound.kind_of(item)
            found.add(kind, is_own, item[bound.definition.partition.name], item_size(item))
            if not arguments.quiet and number % 1000 == 0:
                line.show("reading", "items", number, total)
        found.close()
        line.close()
    with Graph(arguments.location, models, layout, tenant=arguments.tenant) as graph:
        health = graph.health() if bound.rules.declared else None
    print(json.dumps(_object(found, health)) if arguments.json else _drawn(found, health))


def _items(store: Store, table: str) -> Iterator[Item]:
    start: Item | None = None
    while True:
        (response,) = store.execute([Scan(table, start=start)])
        assert isinstance(response, PageResponse)
        yield from response.items
        start = response.last
        if start is None:
            return


def _object(found: Statistics, health: Health | None) -> dict[str, Any]:
    def amount(of: _Amount) -> dict[str, int]:
        return {"items": of.items, "bytes": of.size}

    return {
        "classes": {name: amount(each) for name, each in found.classes.items()},
        "others": amount(found.others),
        "own": amount(found.own),
        "partitions": found.partitions,
        "items_per_partition": [{"up_to": 2**power, "partitions": n} for power, n in sorted(found.spread.items())],
        "largest": [
            {"partition": key, "items": items, "bytes": size} for items, size, key in sorted(found.largest)[::-1]
        ],
        "maintenance": None
        if health is None
        else {
            "lag": health.lag,
            "set_aside": health.set_aside,
            "rebuild_due": health.rebuild_due is not None,
            "rebuilt_at": health.rebuilt_at,
            "verified_at": health.verified_at,
        },
    }


def _drawn(found: Statistics, health: Health | None) -> str:
    counts = [Column("class"), Column("items", right=True), Column("size", right=True)]
    rows = [[name, f"{each.items:,}", sized(each.size)] for name, each in found.classes.items()]
    named = (("items of no class", found.others), ("adjoin's own items", found.own))
    rows += [[name, f"{each.items:,}", sized(each.size)] for name, each in named if each.items]
    parts = [draw(counts, [rows]) if rows else "the table is empty"]
    if found.partitions:
        spread = [Column("items in a partition", right=True), Column("partitions", right=True)]
        parts.append(draw(spread, [[[_range(power), f"{n:,}"] for power, n in sorted(found.spread.items())]]))
        largest = [Column("largest partitions"), Column("items", right=True), Column("size", right=True)]
        parts.append(
            draw(largest, [[[key, f"{items:,}", sized(size)] for items, size, key in sorted(found.largest)[::-1]]])
        )
    return "\n".join([*parts, *_maintained(health)])


def _range(power: int) -> str:
    return f"{2 ** (power - 1) + 1:,} to {2**power:,}" if power > 1 else str(2**power)


def _maintained(health: Health | None) -> list[str]:
    if health is None:
        return []
    lag = "unknown" if health.lag is None else duration(health.lag)
    lines = [f"maintenance: lag {lag}, {health.set_aside:,} set aside, last verified {_time(health.verified_at)}"]
    if health.rebuild_due is not None:
        lines.append("changes were missed, so a rebuild is due: adjoin rebuild")
    return lines


def _time(at: float | None) -> str:
    return "never" if at is None else dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="seconds")


COMMAND = Command(
    "stats",
    "prints how many nodes and edges a table has, and how they are spread",
    add_arguments,
    run,
    takes_file=False,
)
