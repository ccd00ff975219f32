"""Loads records into a graph, in steps of some thousands: the good ones are written, the others are set aside.

In a file, the items of classes that need nothing else (`BoundLayout.plain`) are written by the store's own bulk path.
All others, and everything on DynamoDB, go through `put_many`, and one by one if one of them is refused.
"""

from __future__ import annotations

import csv
import gc
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from adjoin.errors import (
    AdjoinError,
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    InvalidKey,
    InvalidRequest,
    InvalidValue,
    TransactionCanceled,
    UnknownField,
)
from adjoin.exchange.mapping import RecordRefused, Records
from adjoin.exchange.progress import Imported, ImportState
from adjoin.exchange.readers import Broken, Reader, Record
from adjoin.exchange.texts import as_json, csv_row
from adjoin.graph import Graph

CHUNK = 1_000
"""How many records become nodes and edges together."""
STEP = 100_000
"""How many records are written together. Larger steps are a little faster, and hold more rows in memory."""
REASON = "reason"
"""The column, or the member, of refused records that says why."""


class RefusedFile:
    """The file of refused records: in the form of their source, with a reason, so that they can be mended and loaded.

    It is created with the first of them.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None, *, is_csv: bool) -> None:
        self.path = Path(path)
        self._columns, self._is_csv = columns, is_csv
        self._file: io.TextIOWrapper | None = None

    def begin(self, length: int) -> None:
        """Continues behind the first `length` bytes, which an earlier run has written."""
        if length:
            # What comes after these bytes is about records that do not count as done, and are read again.
            os.truncate(self.path, length)
            self._file = self.path.open("a", encoding="utf-8", newline="")

    def write(self, record: Any, reason: str) -> None:
        if self._file is None:
            self._file = self.path.open("x", encoding="utf-8", newline="")
            if self._is_csv:
                self._file.write(csv_row([*(self._columns or ()), REASON]) + "\n")
        if self._is_csv:
            cells = next(csv.reader(io.StringIO(record.text, newline=""))) if isinstance(record, Broken) else record
            # The reason is in the last column, whatever the row has before it.
            wide = [*cells, *[""] * (len(self._columns or ()) - len(cells))]
            self._file.write(csv_row([*wide, reason]) + "\n")
        else:
            self._file.write(as_json({**self._members(record), REASON: reason}) + "\n")

    def _members(self, record: Any) -> dict[str, Any]:
        if isinstance(record, Broken):
            return {"line": record.text}
        if isinstance(record, dict):
            return dict(record)
        return dict(zip(self._columns or (), record, strict=True))

    def sync(self) -> int:
        """Makes what was written durable; returns how many bytes there are."""
        if self._file is None:
            return 0
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def load(
    graph: Graph,
    reader: Reader,
    records: Records,
    refused: RefusedFile,
    state: ImportState | None = None,
    progress: Callable[[Imported], None] | None = None,
) -> Imported:
    """Loads all records behind those that an earlier run has loaded; returns what both did together."""
    done = (state.load() if state is not None else None) or Imported()
    refused.begin(done.refused_bytes)
    writing = _Bulk(graph) if hasattr(graph._store, "load") else _Batches(graph)
    with closing(refused), _uncollected():
        for step in _divided(reader.records(done.records), STEP // CHUNK):
            for chunk in step:
                made: list[tuple[Record, Any]] = []
                bad: list[tuple[Any, str]] = []
                for record in chunk:
                    try:
                        entity = records.made(record[1])
                    except RecordRefused as refusal:
                        bad.append((record[1], str(refusal)))
                    else:
                        if entity is not None:
                            made.append((record, entity))
                failed = writing.add([entity for _, entity in made])
                bad += [(made[at][0][1], str(error)) for at, error in failed]
                for record, reason in bad:
                    refused.write(record, reason)
                done = replace(
                    done,
                    records=chunk[-1][0],
                    loaded=done.loaded + len(made) - len(failed),
                    refused=done.refused + len(bad),
                )
                if progress is not None:
                    progress(done)
            writing.finish()
            # The progress must not be ahead of what is stored: first the records, then the refused ones, then the
            # state.
            done = replace(done, refused_bytes=refused.sync() or done.refused_bytes)
            if state is not None:
                state.save(done)
    return done


@contextmanager
def _uncollected() -> Iterator[None]:
    """Stops Python's garbage collector in this block. Records leave no cycles, and looking for them takes a fifth."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def _divided(records: Iterable[Record], number: int) -> Iterator[Iterator[list[Record]]]:
    """Steps of at most `number` chunks each; a step has to be read before the next."""
    rest = iter(records)
    chunks = iter(lambda: [*islice(rest, CHUNK)], [])
    for first in chunks:
        yield chain((first,), islice(chunks, number - 1))


Failed = list[tuple[int, AdjoinError]]
"""The entities that were not written, by their place, and why."""


class _Batches:
    """Writes through `put_many`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def add(self, entities: Sequence[Any]) -> Failed:
        """Writes these, or keeps them until `finish`; returns those that are refused."""
        return _put(self._graph, entities)

    def finish(self) -> None:
        """Writes what is kept."""


class _Bulk(_Batches):
    """Writes items of plain classes by the bulk path of the store, and others as they come."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._store: Any = graph._store
        self._layout = graph._layout
        self._ready: list[Any] = []

    def add(self, entities: Sequence[Any]) -> Failed:
        failed: Failed = []
        items: list[Any] = []
        places: list[int] = []
        others: list[int] = []
        plain, items_of = self._layout.plain, self._layout.items
        for at, entity in enumerate(entities):
            if type(entity) not in plain:
                others.append(at)
                continue
            try:
                items += items_of(entity)
                places.append(at)
            except AdjoinError as error:
                failed.append((at, error))
        if items:
            piece = self._store.ready(self._layout.table, items)
            self._ready.append(piece)
            failed += [(places[at], error) for at, error in piece.refused]
        if others:
            # What came before may have the same keys, and what comes later replaces it.
            self.finish()
            failed += [(others[at], error) for at, error in _put(self._graph, [entities[at] for at in others])]
        return failed

    def finish(self) -> None:
        if self._ready:
            self._store.load(self._layout.table, self._ready)
            self._ready = []


_ABOUT_ONE = (
    InvalidValue,
    InvalidKey,
    InvalidItem,
    InvalidRequest,
    UnknownField,
    AlreadyExists,
    ConditionFailed,
    TransactionCanceled,
)
"""Errors that one entity may cause. All others are about the table or the service, and end the import."""


def _put(graph: Graph, entities: Sequence[Any]) -> Failed:
    """Puts entities, all together if none of them is refused."""
    try:
        graph.put_many(entities)
        return []
    except _ABOUT_ONE as error:
        if error.retryable:
            raise
    failed: Failed = []
    for at, entity in enumerate(entities):
        try:
            graph.put(entity)
        except _ABOUT_ONE as error:
            if error.retryable:
                raise
            failed.append((at, error))
    return failed
