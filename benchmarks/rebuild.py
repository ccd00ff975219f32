"""One aggregate over all edges of an export: adjoin's batch job and a DuckDB query written by hand.

    python -m benchmarks.rebuild [--edges 10000000] [--quick] [--files DIRECTORY]

The export is in DynamoDB's format: customers, and the invoices they placed, with what each owes. Both
contestants read it with the same number of threads and the same memory, in turns, each in a fresh process that prints
its time and its peak memory. adjoin computes what every customer owes and compares it with the stored value. The query
only computes it, in the faster of two ways to write it. In addition, adjoin recomputes and compares five aggregates at
once. `--spark` also runs the first job with Spark in this process. `--files` keeps the export, and uses an existing
one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import duckdb

from adjoin import AdjacencyList, Edge, Node, field
from adjoin.aggregates import Count, Max, Min, Sum
from adjoin.batch.exports import Export, open_export, write_export
from adjoin.batch.rebuild import rebuild
from adjoin.layouts.adjacency_list import bound_layout
from benchmarks.tables import table

LARGE, QUICK = 10_000_000, 200_000
A_CUSTOMER = 20
"""Invoices per customer, on average."""
WRONG = 1000
"""One in this many customers has a wrong stored value."""
MEMORY = "1GB"
GOAL, MEMORY_GOAL = 1.5, 2000.0
"""How many times as long as the query adjoin may take, and how many MB it may use."""
_PIECE = 10_000
_MOST = 100_000
"""Every invoice is below this many cents."""


class Customer(Node):
    id: str
    name: str
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal
    status: str


class Account(Node, label="CUSTOMER"):
    """The same customers, with five aggregates."""

    id: str
    owed: Annotated[Decimal, Sum("PlacedBy", field="balance")] = Decimal(0)
    invoices: Annotated[int, Count("PlacedBy")] = 0
    open: Annotated[int, Count("PlacedBy", where=field("status") == "open")] = 0
    smallest: Annotated[Decimal | None, Min("PlacedBy", field="balance")] = None
    largest: Annotated[Decimal | None, Max("PlacedBy", field="balance")] = None


class PlacedBy(Edge[Account, Invoice], label="PLACED"):
    balance: Decimal
    status: str


# --- the export --------------------------------------------------------------------------------


def items(edges: int) -> Iterator[list[bytes]]:
    """The items of the table, in no order, as in an export. Customers come last, because they store what they owe."""
    random = Random("rebuild")
    customers = max(edges // A_CUSTOMER, 1)
    owed, invoices, unpaid = [0] * customers, [0] * customers, [0] * customers
    smallest, largest = [_MOST] * customers, [0] * customers
    for start in range(0, edges, _PIECE):
        lines = []
        for number in range(start, min(start + _PIECE, edges)):
            customer, cents = random.randrange(customers), random.randrange(1, _MOST)
            status = "paid" if cents % 3 else "open"
            owed[customer] += cents
            invoices[customer] += 1
            unpaid[customer] += status == "open"
            smallest[customer] = min(smallest[customer], cents)
            largest[customer] = max(largest[customer], cents)
            lines.append(
                f'{{"PK":{{"S":"CUSTOMER#C{customer}"}},"SK":{{"S":"PLACED#INVOICE#I{number}"}},'
                f'"GSI1PK":{{"S":"INVOICE#I{number}"}},"GSI1SK":{{"S":"PLACED#CUSTOMER#C{customer}"}},'
                f'"balance":{{"N":"{_text(cents)}"}},"status":{{"S":"{status}"}}}}'.encode()
            )
        yield lines
    for start in range(0, customers, _PIECE):
        yield [
            f'{{"PK":{{"S":"CUSTOMER#C{id}"}},"SK":{{"S":"#META"}},"name":{{"S":"customer {id}"}},'
            f'"owed":{{"N":"{_text(owed[id] + (id % WRONG == 0))}"}},"invoices":{{"N":"{invoices[id]}"}},'
            f'"open":{{"N":"{unpaid[id]}"}}{_extremes(smallest[id], largest[id])}}}'.encode()
            for id in range(start, min(start + _PIECE, customers))
        ]


def _extremes(smallest: int, largest: int) -> str:
    return f',"smallest":{{"N":"{_text(smallest)}"}},"largest":{{"N":"{_text(largest)}"}}' if largest else ""


def _text(cents: int) -> str:
    whole, rest = divmod(cents, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".") if rest else str(whole)


# --- contestants, each in its own process -------------------------------------------------------


def with_adjoin(export: Export) -> dict[str, Any]:
    return _with_adjoin([Customer, Invoice, Placed], export, "duckdb", memory=MEMORY)


def five_with_adjoin(export: Export) -> dict[str, Any]:
    return _with_adjoin([Account, Invoice, PlacedBy], export, "duckdb", memory=MEMORY)


def with_spark(export: Export) -> dict[str, Any]:
    return _with_adjoin([Customer, Invoice, Placed], export, "spark", config={"spark.log.level": "ERROR"})


def _with_adjoin(models: list[type[Any]], export: Export, engine: str, **options: Any) -> dict[str, Any]:
    layout = bound_layout(models, AdjacencyList(table="Shop"))
    rebuilt = rebuild(layout, layout.rules, export, engine, **options)
    return {"nodes": rebuilt.counts["CUSTOMER"], "wrong": rebuilt.differ}


_BY_COLUMNS = """
    SELECT Item.PK.S AS pk, Item.SK.S AS sk, Item.balance.N AS n
    FROM read_json(?, format = 'newline_delimited', compression = 'gzip', columns = {
        'Item': 'STRUCT(PK STRUCT(S VARCHAR), SK STRUCT(S VARCHAR), balance STRUCT(N VARCHAR))'
    })
"""
_BY_PATHS = """
    SELECT e[1] AS pk, e[2] AS sk, e[3] AS n
    FROM (SELECT json_extract_string(json, ['$.Item.PK.S', '$.Item.SK.S', '$.Item.balance.N']) AS e
          FROM read_ndjson_objects(?, compression = 'gzip'))
"""


def _by_hand(export: Export, items: str) -> dict[str, Any]:
    connection = duckdb.connect(config={"memory_limit": MEMORY, "preserve_insertion_order": False})
    connection.execute(
        f"""CREATE TABLE owed AS
            SELECT substr(pk, 10) AS id, coalesce(sum(n::DECIMAL(18, 2)) FILTER (sk LIKE 'PLACED#INVOICE#%'), 0) AS owed
            FROM ({items}) WHERE pk LIKE 'CUSTOMER#%' GROUP BY pk HAVING bool_or(sk = '#META')""",
        [list(export.files)],
    )
    found = connection.execute("SELECT count(*) FROM owed").fetchone()
    assert found is not None
    return {"nodes": found[0]}


def by_columns(export: Export) -> dict[str, Any]:
    return _by_hand(export, _BY_COLUMNS)


def by_paths(export: Export) -> dict[str, Any]:
    return _by_hand(export, _BY_PATHS)


CONTESTANTS = {
    "by hand, columns": by_columns,
    "by hand, paths": by_paths,
    "adjoin": with_adjoin,
    "adjoin, five aggregates": five_with_adjoin,
    "adjoin, on Spark": with_spark,
}
SPARK = "adjoin, on Spark"


def compete(name: str, place: str) -> None:
    """Runs in its own process; prints the time since the export was opened, and the peak memory."""
    export = open_export(place, check=False)
    begin = perf_counter()
    told = CONTESTANTS[name](export)
    seconds = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**told, "seconds": seconds, "memory": peak}))


def _measured(name: str, place: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.rebuild", "--compete", name, place]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


# --- the command -------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.rebuild", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--edges", type=int, default=LARGE)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} edges, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=Path, help="a directory that keeps the export")
    parser.add_argument("--spark", action="store_true", help="also run Spark; its memory is not measured")
    parser.add_argument("--without", nargs="+", default=[], choices=[*CONTESTANTS], help="leave these out")
    parser.add_argument("--compete", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.compete:
        compete(*asked.compete)
        return
    edges, rounds = (QUICK, 1) if asked.quick else (asked.edges, asked.rounds)
    with TemporaryDirectory() as temporary:
        place = _export(asked.files or Path(temporary), edges)
        names = [name for name in CONTESTANTS if name not in asked.without and (name != SPARK or asked.spark)]
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                results[name].append(_measured(name, place))
    print(_told(edges, results))


def _export(folder: Path, edges: int) -> str:
    home = folder / f"{edges}-edges"
    if home.is_dir():
        return open_export(home, check=False).place
    begin = perf_counter()
    export = write_export(items(edges), home, "Shop")
    print(f"exported {export.items:,} items in {perf_counter() - begin:,.0f} s", file=sys.stderr)
    return export.place


def _told(edges: int, results: dict[str, list[dict[str, Any]]]) -> str:
    seconds = {name: median(each["seconds"] for each in rounds) for name, rounds in results.items()}
    memory = {name: max(each["memory"] for each in rounds) for name, rounds in results.items()}
    nodes = {each["nodes"] for rounds in results.values() for each in rounds}
    wrong = {each["wrong"] for rounds in results.values() for each in rounds if "wrong" in each}
    customers = max(edges // A_CUSTOMER, 1)
    assert nodes == {customers}, f"contestants found {nodes} customers, expected {customers:,}"
    assert wrong == {-(-customers // WRONG)}, f"adjoin found {wrong} wrong values"
    best = min(seconds[name] for name in seconds if name.startswith("by hand"))
    rows = [
        [
            name,
            f"{seconds[name]:.1f} s",
            f"{seconds[name] / best:.2f}",
            "in Java" if name == SPARK else f"{memory[name]:,.0f} MB",
        ]
        for name in seconds
    ]
    times = seconds["adjoin"] / best
    told = f"rebuild of one sum over {edges:,} edges of {customers:,} nodes\n"
    told += table(["", "time", "of the best query", "peak memory"], rows)
    if edges >= LARGE:
        # With fewer edges, the second that a process needs to start would dominate.
        verdict = "yes" if times <= GOAL and memory["adjoin"] <= MEMORY_GOAL else "NO"
        told += f"\nwithin {GOAL} times and {MEMORY_GOAL:,.0f} MB: {verdict}"
    return told


if __name__ == "__main__":
    main()
