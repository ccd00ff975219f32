"""The cost of maintaining aggregates: changes per second, requests per change, and whether size matters.

    python -m benchmarks.maintain [--edges 10000000] [--file growing.db] [--as-command] [--quick]

A customer has a count, a filtered count, a sum and a greatest value over its invoices; a buyer has the same without
the greatest value. The first part applies many changes at once, which are coalesced: over many customers or buyers,
and all of one. The second part applies one change at a time, on files with more and more edges. With `--as-command`,
Python's garbage collector looks as rarely as in `adjoin maintain`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from decimal import Decimal
from itertools import chain
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Annotated

from adjoin import Count, Edge, Graph, Max, Node, Sum, field
from adjoin.cli.maintain import collected_rarely
from adjoin.stores.sqlite import SQLiteStore
from benchmarks.tables import table

BATCH = 20_000
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK = (2_000, 10_000)
SINGLE, STEP = 200, 50_000
CUSTOMERS = 500
KEPT = 300.0
"""Seconds for which changes are kept. Filling a file with millions of edges takes longer than the usual day."""


class Customer(Node):
    id: int
    invoices: Annotated[int, Count("Placed")] = 0
    open: Annotated[int, Count("Placed", where=field("status") == "open")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    largest: Annotated[Decimal | None, Max("Placed", field="balance")] = None


class Invoice(Node):
    id: int


class Placed(Edge[Customer, Invoice]):
    balance: Decimal
    status: str = "open"


class Buyer(Node):
    id: int
    invoices: Annotated[int, Count("Bought")] = 0
    open: Annotated[int, Count("Bought", where=field("status") == "open")] = 0
    owed: Annotated[Decimal, Sum("Bought", field="balance")] = Decimal(0)


class Bought(Edge[Buyer, Invoice]):
    balance: Decimal
    status: str = "open"


def graph_at(path: Path) -> Graph:
    store = SQLiteStore(str(path), durability="process", keep_changes=KEPT)
    return Graph(store, [Customer, Buyer, Invoice, Placed, Bought])


def edges(first: int, count: int, customers: int) -> list[Placed]:
    random = Random(first)
    return [
        Placed(
            source=random.randrange(customers),
            target=number,
            balance=Decimal(random.randrange(100_000)) / 100,
            status=random.choice(["open", "paid"]),
        )
        for number in range(first, first + count)
    ]


def fill(graph: Graph, count: int, customers: int, first: int = 0) -> None:
    graph.put_many(edges(first, count, customers))


# --- many changes ------------------------------------------------------------------------------


def many(count: int, customers: int, has_greatest: bool = True) -> list[str]:
    """Changes per second and requests per change, for edges of `customers` customers that are put all at once.

    Without `has_greatest`, they are edges of buyers, which have counts and a sum only.
    """
    near: type[Customer] | type[Buyer] = Customer if has_greatest else Buyer
    with TemporaryDirectory() as directory, graph_at(Path(directory) / "maintain.db") as graph:
        graph.put_many(near(id=number) for number in range(customers))
        graph.maintain(once=True)
        some = edges(0, count, customers)
        graph.put_many(some if has_greatest else (Bought(**edge.model_dump()) for edge in some))
        begin, processor = perf_counter(), process_time()
        with graph.meter() as meter:
            report = graph.maintain(once=True)
        seconds, processor = perf_counter() - begin, process_time() - processor
        assert sum(node.invoices for node in graph.get_many(near, range(customers)) if node) == count
        return [
            f"{count:,} edges of {customers:,}" + ("" if has_greatest else ", counts and a sum"),
            f"{count / seconds:,.0f}",
            f"{processor / count * 1e6:,.0f}",
            f"{meter.requests / count:.3f}",
            f"{meter.wcu / count:.1f}",
            f"{report.nodes:,}",
        ]


# --- one more change ---------------------------------------------------------------------------


def one_more(graph: Graph, customers: int, first: int, times: int) -> tuple[float, float]:
    """The median processor milliseconds and requests to apply one more edge."""
    milliseconds, requests = [], []
    for edge in edges(first, times, customers):
        graph.put(edge)
        begin = process_time()
        with graph.meter() as meter:
            graph.maintain(once=True)
        milliseconds.append((process_time() - begin) * 1000)
        requests.append(meter.requests)
    return median(milliseconds), median(requests)


def growing(sizes: Sequence[int], times: int, path: Path) -> Iterator[tuple[int, float, float]]:
    """The cost of one more edge on a file that grows to these sizes. Sizes below that of the file are left out."""
    with graph_at(path) as graph:
        graph.put_many(Customer(id=number) for number in range(CUSTOMERS))
        graph.maintain(once=True)
        there = sum(node.invoices for node in graph.get_many(Customer, range(CUSTOMERS)) if node)
        for size in (size for size in sizes if size >= there):
            for start in range(there, size, STEP):
                fill(graph, min(STEP, size - start), CUSTOMERS, start)
                graph.maintain(once=True)
            there = size + times
            yield size, *one_more(graph, CUSTOMERS, size, times)


def beside(sizes: Sequence[int], times: int, kept: Path | None) -> Iterator[list[str]]:
    """All sizes on one file. A kept file has already grown in earlier runs, so the smallest size uses another file."""
    with TemporaryDirectory() as directory:
        new = Path(directory) / "maintain.db"
        first = None
        for size, took, requests in chain(
            growing(sizes if kept is None else sizes[:1], times, new),
            () if kept is None else growing(sizes[1:], times, kept),
        ):
            first = first or took
            yield [f"{size:,}", f"{took:.2f}", f"{requests:g}", f"{took / first:.2f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.maintain", description=__doc__)
    parser.add_argument("--edges", type=int, help="edges on the largest file")
    parser.add_argument("--file", type=Path, help="a growing file that is kept, so that the next run continues with it")
    parser.add_argument("--as-command", action="store_true", help="collect garbage as rarely as `adjoin maintain` does")
    parser.add_argument("--quick", action="store_true", help="use small numbers, to see that it works")
    options = parser.parse_args(arguments)
    batch = 2_000 if options.quick else BATCH
    sizes = QUICK if options.quick else SIZES
    if options.edges:
        sizes = (*(size for size in sizes if size < options.edges), options.edges)
    head = ["changes at once", "changes/s", "µs of the processor/change", "requests/change", "WCU/change", "nodes"]
    with collected_rarely() if options.as_command else nullcontext():
        print(table(head, [many(batch, customers, has) for has in (True, False) for customers in (batch // 20, 1)]))
        print(table(["edges there", "ms of the processor for one more", "requests", "times"], []), end="")
        for row in beside(sizes, 30 if options.quick else SINGLE, options.file):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
