"""The cost of checksums: a file of format version 2 and one of version 1, which has none, in one run.

    python -m benchmarks.checksums [--quick]

Both hold the same items. Each call is made on one and then on the other, so that other load on the machine affects both
alike. It prints the table of `docs/benchmarks.md` as Markdown.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter_ns

from adjoin.requests import CreateTable, Get, PageResponse, Put, Query
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from adjoin.values import Item
from benchmarks.tables import table
from tests.stores.sqlite.test_file import make_version_1

TABLE = TableDefinition("Edges", KeyAttribute("PK"), KeyAttribute("SK"))
ITEMS = 80
TURNS, QUICK = 4000, 100
HEAD = ("in microseconds", "without checksums", "with checksums", "ratio")


def edge(number: int, grade: int = 4) -> Item:
    return {
        "PK": {"S": "STUDENT#s1"},
        "SK": {"S": f"ENROLLMENT#COURSE#c{number:04}"},
        "grade": {"N": str(grade)},
        "term": {"S": "2026-spring"},
        "note": {"S": "x" * 60},
    }


_ONE, _ALL = Get(TABLE.name, {name: edge(7)[name] for name in ("PK", "SK")}), Query(TABLE.name, ("PK", edge(0)["PK"]))


_GRADES = count()
"""A different grade each time, because a put that changes nothing writes nothing."""


def _get(store: SQLiteStore) -> object:
    return store.execute([_ONE])


def _query(store: SQLiteStore) -> object:
    (page,) = store.execute([_ALL])
    assert isinstance(page, PageResponse)
    return list(page.items)


def _query_text(store: SQLiteStore) -> object:
    return store.text(_ALL)


def _put(store: SQLiteStore) -> object:
    return store.execute([Put(TABLE.name, edge(7, next(_GRADES)))])


CALLS: dict[str, Callable[[SQLiteStore], object]] = {
    "a get": _get,
    f"a query of {ITEMS} items": _query,
    f"a query of {ITEMS} items, for the server to send on": _query_text,
    "a put": _put,
}


def filled(path: Path) -> SQLiteStore:
    store = SQLiteStore(path, durability="process")
    store.execute([CreateTable(TABLE)])
    store.execute([Put(TABLE.name, edge(number)) for number in range(ITEMS)])
    return store


def measured(turns: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Microseconds per call, without checksums and with them: the lower quartile of all turns."""
    make_version_1(folder / "1.db")
    stores = [filled(folder / "1.db"), filled(folder / "2.db")]
    found = {}
    for name, call in CALLS.items():
        times: list[list[int]] = [[], []]
        gc.collect()
        for _ in range(turns):
            for store, each in zip(stores, times, strict=True):
                start = perf_counter_ns()
                call(store)
                each.append(perf_counter_ns() - start)
        without, with_sums = (quantiles(each)[0] / 1e3 for each in times)
        found[name] = without, with_sums
    for store in stores:
        store.close()
    return found


def main(arguments: Sequence[str]) -> None:
    with TemporaryDirectory() as folder:
        found = measured(QUICK if "--quick" in arguments else TURNS, Path(folder))
    rows = [(name, f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}") for name, (one, two) in found.items()]
    print(table(HEAD, rows))


if __name__ == "__main__":
    main(sys.argv[1:])
