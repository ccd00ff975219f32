"""Where a batch job reads items besides exports: a table in a file of adjoin's, at one instant, or any, scanned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any

from orjson import dumps

from adjoin.errors import InvalidValue
from adjoin.plans import Plan
from adjoin.plans.copying import read_pages
from adjoin.requests import PageResponse
from adjoin.values import Item

SCAN = "scan"
"""The source that is the table itself, read item by item."""
SEGMENTS = 8
INDEX_DELAY = 2.0


@dataclass(frozen=True, slots=True)
class Dump:
    """All items of a table, as often as they are asked for; each time as they are then."""

    table: str
    open: Callable[[], AbstractContextManager[Iterator[list[bytes]]]]

    @property
    def identity(self) -> str:
        return self.table

    def lines(self) -> Iterator[list[bytes]]:
        with self.open() as pieces:
            yield from pieces


def dump_of(store: Any, table: str) -> Dump:
    """The table as its store hands it over whole, as files do."""
    if not hasattr(store, "dump"):
        raise InvalidValue(
            "a table of DynamoDB is read from an export: export it to S3 with point-in-time recovery, and pass where "
            f'that is, as source= or with --from; a small one may be read itself, item by item: "{SCAN}"'
        )
    return Dump(table, lambda: store.dump(table))


def scan_of(run: Callable[[Plan[Any]], Any], table: str) -> Dump:
    """The table read item by item, by as many requests at a time as there are segments; not at one instant."""

    context = copy_context()

    @contextmanager
    def opened() -> Iterator[Iterator[list[bytes]]]:
        # Engines read from threads of their own, which come and go without Python; requests want a lasting one.
        with ThreadPoolExecutor(1, "adjoin-scan") as thread:
            yield _ahead(thread, context, _scanned(run, table))

    return Dump(table, opened)


def _ahead(thread: ThreadPoolExecutor, context: Context, pieces: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """The same pieces, made in a thread, each while the one before it is used."""

    def ask() -> Future[list[bytes] | None]:
        return thread.submit(context.copy().run, make)

    def make() -> list[bytes] | None:
        return next(pieces, None)

    waiting = ask()
    while (piece := waiting.result()) is not None:
        waiting = ask()
        yield piece


def _scanned(run: Callable[[Plan[Any]], Any], table: str) -> Iterator[list[bytes]]:
    starts: dict[int, Item | None] = dict.fromkeys(range(SEGMENTS))
    while starts:
        pages: dict[int, PageResponse] = run(read_pages(table, starts, SEGMENTS))
        for page in pages.values():
            # An empty piece would be taken for the end.
            if page.items:
                yield [dumps(item) for item in page.items]
        starts = {number: page.last for number, page in pages.items() if page.last is not None}


def index_delay(store: Any) -> float:
    """How many seconds an index of a store may be behind its table; in a file it never is."""
    return 0.0 if hasattr(store, "dump") else INDEX_DELAY
