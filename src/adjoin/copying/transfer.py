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
from adjoin.errors import AdjoinError, ChangesTrimmed, InvalidCopyState, InvalidRequest, TableNotEmpty
from adjoin.plans import Plan
from adjoin.plans.copying import (
    Destination,
    Mark,
    apply_changes,
    describe,
    is_marked,
    look_at_destination,
    prepare,
    put_pages,
    read_changes,
    read_pages,
)
from adjoin.requests import ChangesResponse, PageResponse
from adjoin.runner import run
from adjoin.stores.interface import Store
from adjoin.values import Item

SAVE_SECONDS = 0.25
"""The state is saved at most so often; what is copied in between is copied again if it must be."""
CLOCKS_DIFFER = 5.0
"""Seconds by which the clocks of two machines may differ."""
KEPT_SECONDS = 86400
"""For so long a change stream reaches back."""

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
    lag: float = 0.0,
    state: StateFile | None = None,
    progress: Callable[[Progress], None] | None = None,
    finished: Callable[[Copied], None] | None = None,
) -> Copied:
    """Copies a table's items, and makes the table if there is none; `to` is its name at the destination.

    With `state`, a copy that was interrupted goes on where it was. A table that holds items is refused
    unless `overwrite`: then items of the same key are replaced, and others stay. `lag` is by how many seconds
    the source's change stream may lag behind its items. `finished` is told what was copied before the state is
    removed, so that whoever was not told can run the same copy again.
    """
    work = _Copying(source, destination, table, to or table, state, progress or (lambda _: None))
    try:
        work.begin(segments, overwrite)
        work.copy_pages()
        work.follow(lag)
        return work.finish(finished or (lambda _: None))
    except BaseException:
        work.save()
        raise


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
        found = self._write(look_at_destination(replace(described.definition, name=self._to)))
        before = None if self._file is None else self._file.load()
        if before is None:
            self._require_empty(found, overwrite)
            mark = self._marked() if described.definition.streams_images else None
            before = State(time.time(), (Segment(),) * segments, mark, None if mark is None else mark.position)
        else:
            self._require_same(before, found)
        self._state = self._before = before
        self.save()
        try:
            self._write(prepare(found))
        except AdjoinError:
            if not before.copied.items:
                self._forget()
            raise
        self._tell()

    def _require_empty(self, found: Destination, overwrite: bool) -> None:
        if found.holds_items and not overwrite:
            raise TableNotEmpty(
                f"the table {self._to!r} at the destination holds items already, which a copy would mix with its own;"
                " copy into a table of another name, or replace items of the same key with --overwrite"
            )

    def _marked(self) -> Mark:
        """The end of the source's change stream, which is only found by reading to it.

        A source that is written to all the time has none; then it is where the stream was when this began.
        """
        mark = Mark()
        started = time.time()
        seen = 0
        while True:
            response = self._read(read_changes(self._table, mark.position))
            mark = mark.moved(response)
            seen += len(response.changes)
            self._progress(Progress("preparing", seen, 0))
            if not response.changes or mark.at >= started:
                return mark

    def _require_same(self, before: State, found: Destination) -> None:
        """A state is worth nothing when the source or the destination is not what it was."""
        assert self._file is not None
        lost = found.found is None or (before.starts and not found.holds_items)
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

    def follow(self, lag: float) -> None:
        """Applies the source's changes up to now, as far as its stream tells them; it may lag behind.

        A source that is written to all the time has no end; its changes are followed until one was made
        after the last page was read. A file tells by its order which one that is, whatever the clocks of its writers
        say; from there on it is followed for some seconds more, since most sources do rest.
        """
        if self._current.mark is None:
            return
        ended, since, end = time.time(), time.monotonic(), self._read(describe(self._table)).latest
        while True:
            response = self._read_on()
            if response.changes:
                self._write(apply_changes(self._to, response.changes))
                count = self._current.changes + len(response.changes)
                self._state = replace(self._current, applied=response.next, changes=count)
                self._step("following")
                last = response.changes[-1]
                is_later = last.at >= ended + CLOCKS_DIFFER
                # Positions of a file are digits of one length.
                if end is not None:
                    is_later = last.position >= end and (is_later or time.monotonic() - since >= CLOCKS_DIFFER)
                if is_later:
                    return
            elif time.time() >= ended + lag:
                return
            else:
                time.sleep(lag / 10)

    def _read_on(self) -> ChangesResponse:
        applied = self._current.applied
        try:
            if applied is None and time.time() - self._current.started > KEPT_SECONDS:
                # Reading from the oldest change that is kept would not tell that older ones are gone.
                raise ChangesTrimmed("the stream is kept for 24 hours")
            return self._read(read_changes(self._table, applied))
        except ChangesTrimmed:
            raise self._too_late() from None

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

    def _forget(self) -> None:
        self._state = None
        if self._file is not None:
            self._file.remove()

    def finish(self, finished: Callable[[Copied], None]) -> Copied:
        state = self._accounted()
        changes = None if state.mark is None else state.changes
        copied = Copied(state.copied.items, state.copied.size, changes, state.read, state.write, state.seconds)
        finished(copied)
        self._forget()
        return copied

    # --- the two stores ----------------------------------------------------------------------------

    def _read(self, plan: Plan[T]) -> T:
        with self._reading:
            return run(plan, self._source)

    def _write(self, plan: Plan[T]) -> T:
        with self._writing:
            return run(plan, self._destination)
