"""Sources of a batch job other than exports: a table in an adjoin file, read at one instant, or a scan of any table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import field
from typing import Any

from orjson import dumps

from adjoin.copying.steps import read_pages
from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidValue
from adjoin.requests import PageResponse, Plan
from adjoin.values import Item

SCAN = "scan"
"""The name of the source that scans the table item by item."""
SEGMENTS = 8
"""Segments of a scan that are read side by side."""
INDEX_DELAY = 2.0
"""Seconds after which a global secondary index of DynamoDB is assumed to have caught up with its table."""


@dataclass(frozen=True, slots=True)
class Dump:
    """All items of a table. Each reading opens the source again, and sees the items as they are then."""

    table: str
    open: Callable[[], AbstractContextManager[Iterator[list[bytes]]]]
    failures: list[AdjoinError] = field(default_factory=list, repr=False, compare=False)
    """The error that ended the last reading. An engine that reads the source shows only the text of such an error."""

    @property
    def identity(self) -> str:
        return self.table

    def lines(self) -> Iterator[list[bytes]]:
        self.failures.clear()
        try:
            with self.open() as pieces:
                yield from pieces
        except AdjoinError as error:
            self.failures.append(error)
            raise


def dump_of(store: Any, table: str) -> Dump:
    """The table as one dump from its store. Only stores in files can do that."""
    if not hasattr(store, "dump"):
        raise InvalidValue(
            "a DynamoDB table is read from an export; export it to S3 with point-in-time recovery, and pass its "
            f'folder as source= or with --from; for a small table, pass "{SCAN}" to read it item by item'
        )
    return Dump(table, lambda: store.dump(table))


def scan_of(run: Callable[[Plan[Any]], Any], table: str) -> Dump:
    """A scan of the table, with one request per segment at a time. It does not show one instant."""

    context = copy_context()

    @contextmanager
    def opened() -> Iterator[Iterator[list[bytes]]]:
        # Engines read from short-lived threads of their own. A store needs one lasting thread for its connections.
        with ThreadPoolExecutor(1, "adjoin-scan") as thread:
            yield _ahead(thread, context, _scanned(run, table))

    return Dump(table, opened)


def _ahead(thread: ThreadPoolExecutor, context: Context, pieces: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """The same pieces, read one ahead in a thread while the caller uses the previous one."""

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
            # Readers take an empty piece for the end.
            if page.items:
                yield [dumps(item) for item in page.items]
        starts = {number: page.last for number, page in pages.items() if page.last is not None}


def index_delay(store: Any) -> float:
    """How many seconds an index may lag behind its table. In a file, it never does."""
    return 0.0 if hasattr(store, "dump") else INDEX_DELAY
