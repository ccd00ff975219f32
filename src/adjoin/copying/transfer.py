"""The loop that runs a copy on two stores, reading pages while others are written; and `verify`, which compares them.

The order is: check the destination table, mark the end of the source's change stream, create the destination table if
needed, copy every page, and apply the changes that were made at the source meanwhile. After each step, the state says
where to continue. Nothing is written before all checks have passed, so that items of two tables are never mixed.

`verify` checks that two tables hold the same items, without keeping them in memory or sorting them. It reads both
tables once. Each item has a digest of its normal form, and a table has the sum of its items' digests, which does not
depend on their order. This reads no more than counting the items would.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from typing import Literal, TypeAlias, TypeVar

import orjson

from adjoin.copying.state import Segment, State, StateFile
from adjoin.copying.steps import (
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
from adjoin.cost import dollars
from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, ChangesTrimmed, CopyDiffers, InvalidCopyState, InvalidRequest, TableNotEmpty
from adjoin.items import normal_item
from adjoin.meters import Meter
from adjoin.requests import ChangesResponse, PageResponse, Plan
from adjoin.runner import run
from adjoin.stores.interface import Store
from adjoin.values import Item, parse_number

SAVE_SECONDS = 0.25
"""The shortest time between two saves of the state. After a crash, what was copied since is copied again."""
CLOCKS_DIFFER = 5.0
"""Seconds by which the clocks of two machines may differ."""
KEPT_SECONDS = 86400
"""A change stream keeps changes for 24 hours."""

Stage: TypeAlias = Literal["preparing", "copying", "following", "verifying"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stage. `total` may be out of date: DynamoDB counts its items only every few hours."""

    stage: Stage
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a finished copy, over all its runs."""

    items: int
    size: int
    changes: int | None
    """How many changes made during the copy were applied; None if the source keeps no changes."""
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
    """Copies a table's items, and creates the table if it does not exist; `to` is its name at the destination.

    With `state`, an interrupted copy continues where it stopped. A destination table that has items is refused,
    unless `overwrite`: then items with the same key are replaced, and others stay. `lag` is the number of seconds by
    which the source's change stream may lag behind its items. `finished` is called with the result before the state
    is removed: if it fails, the same copy can run again.
    """
    work = _Copying(source, destination, table, to or table, state, progress or (lambda _: None))
    try:
        work.begin(segments, overwrite)
        work.copy_pages()
        work.follow(lag)
        return work.finish(finished or (lambda _: None))
    except BaseException:
        # Also on Ctrl-C: the next run then continues exactly here.
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
            raise InvalidRequest(f"segments must be at least 1, got {segments}")
        described = self._read(describe(self._table))
        self._total = described.item_count
        found = self._write(look_at_destination(replace(described.definition, name=self._to)))
        before = None if self._file is None else self._file.load()
        if before is None:
            self._require_empty(found, overwrite)
            # Before the first page is read: what changes from now on is in the stream, whatever the pages have.
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
                f"the table {self._to!r} at the destination already has items, which a copy would mix with its own;"
                " copy into a table of another name, or replace items with the same key with --overwrite"
            )

    def _marked(self) -> Mark:
        """The end of the source's change stream. The only way to find it is to read all changes.

        If the source is written to all the time, the end is never reached. Then the mark is the first change at
        the end of a page that was made after this call began.
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
        """Refuses a state if the source or the destination is no longer the table that the copy began with."""
        assert self._file is not None
        # If all pages were copied, an empty destination may be right: the last changes may have removed every item.
        lost = found.found is None or (before.starts and not found.holds_items)
        if before.copied.items and lost:
            raise InvalidCopyState(
                f"{before.copied.items:,} items had been copied, but the table {self._to!r} at the destination"
                f" no longer has any; remove {self._file.path} to start again"
            )
        if before.mark is None:
            return
        try:
            same = self._read(is_marked(self._table, before.mark))
        except ChangesTrimmed:
            raise self._too_late() from None
        if not same:
            raise InvalidCopyState(
                f"the table {self._table!r} at the source is not the one with which the copy began;"
                f" remove {self._file.path} and what was copied, and start again"
            )

    def _too_late(self) -> ChangesTrimmed:
        state = "" if self._file is None else f" and {self._file.path}"
        return ChangesTrimmed(
            f"the copy began so long ago that the change stream of {self._table!r} no longer reaches back to it,"
            f" so items removed since are unknown; remove the table {self._to!r} at the destination{state},"
            " and start again"
        )

    # --- pages -------------------------------------------------------------------------------------

    def copy_pages(self) -> None:
        """Writes one page of each segment while a thread reads the next pages."""
        with ThreadPoolExecutor(1, "adjoin-copy") as reader:

            def read(starts: dict[int, Item | None]) -> Future[dict[int, PageResponse]]:
                return reader.submit(self._read, read_pages(self._table, starts, len(self._current.segments)))

            waiting = read(starts) if (starts := self._current.starts) else None
            while waiting is not None:
                pages = waiting.result()
                lasts = {number: page.last for number, page in pages.items()}
                starts = {number: last for number, last in lasts.items() if last is not None}
                # The next pages are on their way while these are written, so reading and writing take as long as the
                # slower one.
                waiting = read(starts) if starts else None
                amount = self._write(put_pages(self._to, pages.values()))
                self._state = self._current.advanced(lasts, amount)
                self._step()

    # --- changes -----------------------------------------------------------------------------------

    def follow(self, lag: float) -> None:
        """Applies the source's changes up to now. The stream may lag behind by `lag` seconds.

        If the source is written to all the time, its stream has no end. Then changes are followed until one was made
        after the last page was read. In a file, positions show which change that is, whatever the clocks of its
        writers say; the copy then follows for a few seconds more, because most sources do pause.
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
                # Positions of a file are digits of one length, so comparing them as text is comparing them as numbers.
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
                # Without a position, reading begins at the oldest kept change, even if older ones are gone.
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
        """The state, with the capacity units and seconds of this run added to those of earlier runs."""
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
        # First it is told, then forgotten: a copy that is killed in between runs once more and tells it then.
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


# --- verification ------------------------------------------------------------------------------


_BITS = 128
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class _Content:
    items: int
    digest: int


def verify(
    source: Store,
    destination: Store,
    table: str,
    *,
    to: str | None = None,
    segments: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> int:
    """Raises CopyDiffers unless both tables hold the same items; returns how many there are.

    Items that have expired, or will within an hour, are ignored: each store removes them at its own time.
    """
    described = run(describe(table), source)
    until = int(time.time()) + _HOUR
    read = 0

    def tell(items: int) -> None:
        nonlocal read
        read += items
        if progress is not None:
            progress(Progress("verifying", read, 2 * described.item_count))

    ours, theirs = (
        run(_content(name, segments, described.definition.ttl, until, tell), store)
        for store, name in ((source, table), (destination, to or table))
    )
    if ours != theirs:
        raise CopyDiffers(
            f"{_holding(to or table, 'destination', theirs)}, and {_holding(table, 'source', ours)}"
            f"{', but the items differ' if ours.items == theirs.items else ''};"
            " one table was written to meanwhile, or had items before --overwrite: verify again when nobody writes"
        )
    return ours.items


def _holding(table: str, side: str, content: _Content) -> str:
    return f"the table {table!r} at the {side} holds {content.items:,} item{'' if content.items == 1 else 's'}"


def _content(table: str, segments: int, ttl: str | None, until: int, tell: Callable[[int], None]) -> Plan[_Content]:
    """The number and the digest of a table's items. `tell` is called with the number of items read at each step."""
    items = digest = 0
    starts: dict[int, Item | None] = dict.fromkeys(range(segments))
    while starts:
        pages = yield from read_pages(table, starts, segments)
        for page in pages.values():
            for item in page.items:
                if ttl is None or not _expires(item, ttl, until):
                    items += 1
                    digest += _digest(item)
        starts = {number: page.last for number, page in pages.items() if page.last is not None}
        tell(sum(page.count for page in pages.values()))
    return _Content(items, digest % (1 << _BITS))


def _expires(item: Item, ttl: str, until: int) -> bool:
    when = item.get(ttl, {}).get("N")
    return when is not None and parse_number(when) <= until


def _digest(item: Item) -> int:
    normal, _ = normal_item(item)
    spelled = orjson.dumps(normal, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(blake2b(spelled, digest_size=_BITS // 8).digest())
