"""The loop that drives a copy over two stores: pages are read while others are written.

In order: the destination's table is looked at or made, the source's change stream is marked, every page
is copied, and what changed at the source meanwhile is applied. After each step the state says where to
go on. Nothing is written before it is certain that nothing will be mixed up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from adjoin.copying.state import Segment, State, StateFile
from adjoin.cost import Meter, dollars
from adjoin.errors import ChangesTrimmed, InvalidCopyState, InvalidRequest, TableNotEmpty
from adjoin.plans import Plan
from adjoin.plans.copying import (
    Mark,
    apply_changes,
    create,
    describe,
    is_marked,
    look_at_destination,
    newest_change,
    put_pages,
    read_changes,
    read_pages,
)
from adjoin.requests import PageResponse
from adjoin.runner import run
from adjoin.stores.interface import Store
from adjoin.tables import TableDefinition
from adjoin.values import Item

SAVE_SECONDS = 0.25
"""The state is saved at most so often; what is copied in between is copied again if it must be."""
CLOCKS_DIFFER = 5.0
"""Seconds by which the clocks of two machines may differ."""

Stage: TypeAlias = Literal["preparing", "copying", "following", "verifying"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come; `total` is a guess where a store counts only now and then."""

    stage: Stage
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy, over all the runs it took."""

    items: int
    size: int
    changes: int | None
    """Changes made meanwhile that were applied; None if the source keeps no changes."""
    read: float
    write: float
    seconds: float

    @property
    def dollars(self) -> float:
        return dollars(self.read, self.write)


def copy(
    source: Store,
    destination: Store,
    table: str,
    *,
    to: str | None = None,
    segments: int = 1,
    overwrite: bool = False,
    state: StateFile | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Copied:
    """Copies a table's items, and makes the table if there is none; `to` is its name at the destination.

    With `state`, a copy that was interrupted goes on where it was. A table that holds items is refused
    unless `overwrite`: then items of the same key are replaced, and others stay.
    """
    work = _Copying(source, destination, table, to or table, state, progress or (lambda _: None))
    try:
        work.begin(segments, overwrite)
        work.copy_pages()
        work.follow()
    except BaseException:
        work.save()
        raise
    return work.finish()


class _Copying:
    """One run of a copy."""

    def __init__(
        self,
        source: Store,
        destination: Store,
        table: str,
        to: str,
        file: StateFile | None,
        progress: Callable[[Progress], None],
    ) -> None:
        self._source, self._destination = source, destination
        self._table, self._to = table, to
        self._file = file
        self._progress = progress
        self._reading, self._writing = Meter(), Meter()
        self._state: State | None = None
        self._before: State | None = None
        self._total = 0
        self._started = self._saved = time.monotonic()

    # --- beginning ---------------------------------------------------------------------------------

    def begin(self, segments: int, overwrite: bool) -> None:
        if segments < 1:
            raise InvalidRequest(f"a table cannot be read in {segments} segments; there must be at least one")
        described = self._read(describe(self._table))
        self._total = described.item_count
        definition = replace(described.definition, name=self._to)
        holds_items = self._write(look_at_destination(definition))
        before = None if self._file is None else self._file.load()
        if before is None:
            self._require_empty(holds_items, overwrite)
            mark = self._marked(definition)
            before = State(time.time(), (Segment(),) * segments, mark, None if mark is None else mark.position)
        else:
            self._require_same(before, holds_items)
        self._state = self._before = before
        self.save()
        if holds_items is None:
            self._write(create(definition))

    def _require_empty(self, holds_items: bool | None, overwrite: bool) -> None:
        if holds_items and not overwrite:
            raise TableNotEmpty(
                f"the table {self._to!r} at the destination holds items already, which a copy would mix with its own;"
                " copy into a table of another name, or replace items of the same key with --overwrite"
            )

    def _marked(self, definition: TableDefinition) -> Mark | None:
        self._progress(Progress("preparing", 0, 0))
        if not definition.stream:
            return None
        return self._read(newest_change(self._table))

    def _require_same(self, before: State, holds_items: bool | None) -> None:
        """A state is worth nothing when the source or the destination is not what it was."""
        assert self._file is not None
        lost = holds_items is None or (before.starts and not holds_items)
        if before.copied.items and lost:
            raise InvalidCopyState(
                f"{before.copied.items:,} items had been copied, and the table {self._to!r} at the destination"
                f" holds none any more; remove {self._file.path} to begin anew"
            )
        if before.mark is None:
            return
        try:
            same = self._read(is_marked(self._table, before.mark))
        except ChangesTrimmed:
            raise self._too_late() from None
        if not same:
            raise InvalidCopyState(
                f"the table {self._table!r} at the source is not the one whose copy was begun;"
                f" remove {self._file.path} and what was copied, and begin anew"
            )

    def _too_late(self) -> ChangesTrimmed:
        state = "" if self._file is None else f" and {self._file.path}"
        return ChangesTrimmed(
            f"the copy was begun so long ago that the change stream of {self._table!r} does not reach back there,"
            f" and what was removed since is unknown; remove the table {self._to!r} at the destination{state},"
            " and begin anew"
        )

    # --- pages -------------------------------------------------------------------------------------

    def copy_pages(self) -> None:
        """Writes a round of pages while the next is read."""
        with ThreadPoolExecutor(1, "adjoin-copy") as reader:

            def read(starts: dict[int, Item | None]) -> Future[dict[int, PageResponse]]:
                return reader.submit(self._read, read_pages(self._table, starts, len(self._current.segments)))

            self._tell()
            waiting = read(starts) if (starts := self._current.starts) else None
            while waiting is not None:
                pages = waiting.result()
                lasts = {number: page.last for number, page in pages.items()}
                starts = {number: last for number, last in lasts.items() if last is not None}
                waiting = read(starts) if starts else None
                amount = self._write(put_pages(self._to, pages.values()))
                self._state = self._current.advanced(lasts, amount)
                self._step()

    # --- changes -----------------------------------------------------------------------------------

    def follow(self) -> None:
        """Applies the source's changes up to now.

        A source that is written to all the time has no end; its changes are followed until one was made
        after the last page was read.
        """
        if self._current.mark is None:
            return
        until = time.time() + CLOCKS_DIFFER
        while True:
            try:
                response = self._read(read_changes(self._table, self._current.applied))
            except ChangesTrimmed:
                raise self._too_late() from None
            if not response.changes:
                return
            self._write(apply_changes(self._to, response.changes))
            count = self._current.changes + len(response.changes)
            self._state = replace(self._current, applied=response.next, changes=count)
            self._step("following")
            if response.changes[-1].at >= until:
                return

    # --- the state ---------------------------------------------------------------------------------

    @property
    def _current(self) -> State:
        assert self._state is not None
        return self._state

    def _step(self, stage: Stage = "copying") -> None:
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self.save()
        self._tell(stage)

    def _tell(self, stage: Stage = "copying") -> None:
        done = self._current.copied.items if stage == "copying" else self._current.changes
        self._progress(Progress(stage, done, self._total if stage == "copying" else 0))

    def save(self) -> None:
        if self._file is not None and self._state is not None:
            self._file.save(self._accounted())
            self._saved = time.monotonic()

    def _accounted(self) -> State:
        """The state, with what this run consumed added to what earlier ones did."""
        assert self._before is not None
        return replace(
            self._current,
            read=self._before.read + self._reading.rcu + self._writing.rcu,
            write=self._before.write + self._writing.wcu,
            seconds=self._before.seconds + time.monotonic() - self._started,
        )

    def finish(self) -> Copied:
        state = self._accounted()
        if self._file is not None:
            self._file.remove()
        changes = None if state.mark is None else state.changes
        return Copied(state.copied.items, state.copied.size, changes, state.read, state.write, state.seconds)

    # --- the two stores ----------------------------------------------------------------------------

    def _read(self, plan: Plan[T]) -> T:
        with self._reading:
            return run(plan, self._source)

    def _write(self, plan: Plan[T]) -> T:
        with self._writing:
            return run(plan, self._destination)
