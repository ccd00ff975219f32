"""A migration into another table, while programs write to the old one.

    reading     the old table is read page by page, and each page is written to the new table; now and then, the changes
                that were made meanwhile are applied, so that the change stream never has to reach far back
    following   the changes since then are applied, until none is left
    waiting     the new table has everything; programs still use the old one. The same call again applies what came
                since
    counting    the last step: no program writes to the old table any more. Aggregates of the new table are brought up
                to date
    ended       programs use the new table

Nothing is written to the old table, except the state if the new one cannot hold it. Until the last step, dropping the
new table takes everything back.

**Why nothing is lost or comes back.** A change says only which item changed, and what it was before. What is written is
what the old table holds when the change is applied. What it was before is removed if it has another key in the new
table. So the order of changes of different items does not matter, and each may be applied twice. A page is written
before any change that came after it was read.

Steps are generators of parts: each part is a plan with the side on which it runs. Parts of one tuple run side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar

from adjoin.errors import (
    AdjoinError,
    ChangesTrimmed,
    ConditionFailed,
    InvalidRequest,
    InvalidValue,
    shown,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.model import node_id
from adjoin.plans.maintenance.health import health
from adjoin.plans.maintenance.stream import Daemon
from adjoin.plans.migrating.completing import Refusal
from adjoin.plans.migrating.consumption import Consumption
from adjoin.plans.migrating.move_state import (
    MoveState,
    changes_after,
    describe,
    item_at,
    require_empty,
    save_state,
    stored_state,
)
from adjoin.plans.migrating.passes import MigrationReport
from adjoin.plans.migrating.planning import SHOWN
from adjoin.plans.migrating.storing import apply, has_claim, in_the_way, release, store
from adjoin.plans.migrating.translating import UNREADABLE, Moved, Translation
from adjoin.plans.steps.again import new_revision
from adjoin.plans.steps.batches import Place, get_all, place_of
from adjoin.requests import (
    ChangesResponse,
    Delete,
    Get,
    ItemChange,
    PageResponse,
    Plan,
    Put,
    Scan,
    TableResponse,
)
from adjoin.units import CHANGES_KEPT
from adjoin.values import Item

T = TypeVar("T")
OfTable: TypeAlias = Literal["old", "new"]
Parts: TypeAlias = Sequence[tuple[OfTable, Plan[Any]]]
Joint: TypeAlias = Generator[Parts, list[Any], T]
"""A generator that yields plans with the side on which each runs, and is sent their results."""

PAGE_ITEMS = 1000
"""How many items of a segment are read at a time."""
_FOLLOW = 30.0
"""Seconds after which changes are applied while the table is still being read."""
_SAVE = 2.0
"""Seconds after which the position is stored again."""
_ALIVE = 60.0
"""Seconds after which a run that has not stored its position counts as stopped."""
_CLOCKS = 60.0
"""Seconds by which the clocks of programs may differ from that of the change stream."""


class Moving:
    """One run of a migration into another table."""

    def __init__(
        self,
        translation: Translation,
        *,
        finish: bool = False,
        units: float | None = None,
        segments: int = 1,
        lag: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`lag` is the number of seconds by which the change stream of the old table may lag behind it."""
        old, new = translation.old, translation.new
        for kind in old.schema.types:
            old.due.check_keys(kind)
        for layout in (old, new):
            if layout.tenant is not None:
                raise InvalidRequest(
                    f"this graph belongs to the tenant {layout.tenant!r}, and a migration is for all tenants of the "
                    f"table; migrate through graphs without a tenant"
                )
        if not isinstance(finish, bool):
            raise InvalidValue(f"finish must be True or False, got {shown(finish)}")
        self._translation, self._old, self._new = translation, old, new
        self._finish, self._segments, self._lag, self._clock = finish, segments, lag, clock
        self._consumption = Consumption(units, clock)
        homes: dict[OfTable, BoundLayout] = {"new": new, "old": old}
        self._home = next((side for side, each in homes.items() if each.why_no_own_items is None), None)
        """Where the state is stored; None if neither table can hold it."""
        self._home_layout = new if self._home != "old" else old
        self._run = new_revision()["S"]
        self._state: MoveState | None = None
        self._ahead: dict[str, PageResponse] | None = None
        """Pages that were read while the pages before them were written."""
        self._refused: dict[Place, Refusal] = {}
        self._daemon: Daemon | None = None
        self._total = 0
        self._saved_at = self._followed_at = self._behind = 0.0

    # --- what callers see ----------------------------------------------------------------------

    def report(self) -> MigrationReport:
        state = self._state
        if state is None:
            used = self._consumption
            return MigrationReport("reading", 0, self._total, 0, (), used.rcu, used.wcu, 0.0, into=self._new.table)
        now = self._accounted(state)
        return MigrationReport(
            now.stage,
            now.read,
            max(self._total, now.read),
            now.written,
            tuple(self._refused.values())[:SHOWN],
            now.rcu,
            now.wcu,
            now.seconds,
            now.changes,
            now.others,
            self._behind,
            self._new.table,
        )

    def step(self) -> Joint[float | None]:
        """Does the next part. Returns the seconds to wait before the next step, or None if there is nothing to do."""
        return (yield from self._consumption.paced(self._step()))

    def stop(self) -> Joint[None]:
        """Stores the position, so that another run goes on from here at once."""
        if self._state is None or self._state.run != self._run:
            return
        try:
            yield from self._save(replace(self._state, run=""))
        except AdjoinError:
            # An earlier position is stored. The next run begins there, a minute after this one.
            return

    def _step(self) -> Joint[float | None]:
        if self._state is None:
            return (yield from self._begin())
        match self._state.stage:
            case "reading":
                return (yield from self._read_on(self._state))
            case "following":
                return (yield from self._follow_on(self._state))
            case "counting":
                return (yield from self._count(self._state))
        return None

    # --- beginning -----------------------------------------------------------------------------

    def _begin(self) -> Joint[float | None]:
        now = self._clock()
        described: TableResponse
        (described,) = yield from self._old_side(describe(self._old.table))
        self._total = described.item_count
        stored = yield from self._stored()
        if stored is None:
            yield from self._new_side(require_empty(self._new, self._old.table))
            has_mark = described.definition.streams_images
            if not has_mark and not self._finish:
                raise InvalidRequest(
                    f"the table {self._old.table!r} has no change stream with old and new images, so what programs "
                    f"write meanwhile would be missed; switch it on, or stop all programs that write and pass finish"
                )
            starts = dict.fromkeys(map(str, range(self._segments)))
            mark = described.latest
            state = MoveState(
                self._old.table, "reading", starts, self._segments, now, mark, has_mark, mark is not None, self._run
            )
        else:
            if stored.source != self._old.table:
                raise InvalidRequest(
                    f"the table {self._new.table!r} is filled from {stored.source!r}, and not from "
                    f"{self._old.table!r}; choose a table of another name"
                )
            if stored.run and 0 <= now - stored.at < _ALIVE and stored.stage not in ("waiting", "ended"):
                raise InvalidRequest(
                    f"another run of this migration was at work {now - stored.at:.0f} seconds ago; stop it, or wait a "
                    f"minute"
                )
            self._consumption.continue_from(stored.rcu, stored.wcu, stored.seconds)
            if stored.stage == "ended":
                self._state = stored
                return None
            state = replace(stored, run=self._run)
            if state.stage == "waiting":
                state = replace(state, stage="following")
            if state.has_more_refused and state.stage != "reading":
                starts = dict.fromkeys(map(str, range(self._segments)))
                state = replace(
                    state,
                    stage="reading",
                    starts=starts,
                    segments=self._segments,
                    has_more_refused=False,
                    read=0,
                    others=0,
                )
            for key in stored.refused:
                self._refused[place_of(key)] = Refusal(key, "item", "it could not be moved before")
        if self._finish:
            state = replace(state, asked=now)
        yield from self._save(state)
        if state.mark is not None or stored is not None:
            # If the store does not tell where its stream ends, the first step looks for the end.
            self._followed_at = self._clock()
        yield from self._retry()
        return 0.0

    def _retry(self) -> Joint[None]:
        """Tries items again that could not be moved."""
        if self._refused:
            yield from self._apply({place: [_unknown(each.key)] for place, each in self._refused.items()})

    @property
    def _current(self) -> MoveState:
        assert self._state is not None
        return self._state

    # --- reading -------------------------------------------------------------------------------

    def _read_on(self, state: MoveState) -> Joint[float | None]:
        """Writes a page of each segment while the next pages are read."""
        if not state.starts:
            yield from self._save(replace(state, stage="following"))
            return 0.0
        is_due = state.has_mark and self._clock() - self._followed_at >= _FOLLOW
        if self._ahead is None and is_due:
            # No page is read ahead now: a page that is older than a change must not be written after it.
            began = self._clock()
            is_empty = yield from self._follow(state)
            if is_empty or self._behind <= self._clock() - began:
                self._followed_at = self._clock()
            return 0.0
        if self._ahead is None:
            (self._ahead,) = yield from self._old_side(self._pages(state.starts, state.segments))
        pages, self._ahead = self._ahead, None
        found, records, others = self._translated([item for page in pages.values() for item in page.items])
        starts = {number: page.last for number, page in pages.items() if page.last is not None}
        parts: list[tuple[OfTable, Plan[Any]]] = [
            ("new", self._consumption.metered(apply(records, [], found, is_first=True), "new"))
        ]
        if starts and not is_due:
            parts.append(("old", self._consumption.metered(self._pages(starts, state.segments), "old")))
        taken, *ahead = yield parts
        if ahead:
            self._ahead = ahead[0]
        yield from self._settle(taken)
        state = replace(
            state,
            starts=starts,
            read=state.read + sum(page.scanned for page in pages.values()),
            written=state.written + len(found),
            others=state.others + others,
        )
        self._state = state
        if self._clock() - self._saved_at >= _SAVE or not starts:
            yield from self._save(state)
        return 0.0

    def _pages(self, starts: Mapping[str, Item | None], segments: int) -> Plan[dict[str, PageResponse]]:
        pages: list[PageResponse] = yield tuple(
            Scan(
                self._old.table,
                start=start,
                segment=None if segments == 1 else (int(number), segments),
                limit=self._consumption.page_items(PAGE_ITEMS),
                consistent=True,
            )
            for number, start in starts.items()
        )
        return dict(zip(starts, pages, strict=True))

    def _translated(self, items: Sequence[Item]) -> tuple[list[Moved], list[Put], int]:
        """The entities among items that were read, the deletion records, and how many others there are."""
        found: list[Moved] = []
        records: list[Put] = []
        others = 0
        translation = self._translation
        for item in items:
            try:
                moved = translation.moved(item)
            except UNREADABLE as error:
                self._refuse(item, str(error))
                continue
            if moved is not None:
                found.append(moved)
            elif translation.is_other(item):
                others += 1
            elif (record := translation.deletion_record(item)) is not None:
                records.append(Put(self._new.table, record))
        return found, records, others

    def _refuse(self, item: Item, reason: str) -> None:
        told = self._translation.owner(item)
        key = self._old.key_of(item)
        self._refused[place_of(key)] = Refusal(key, told[1].name if told else "item", reason)

    def _settle(self, taken: Sequence[Moved]) -> Joint[None]:
        """Puts entities whose unique values other nodes had claimed, unless those have them still."""
        for moved in taken:
            is_free = False
            for _ in range(10):
                (claims,) = yield from self._new_side(in_the_way(moved))
                is_free = True
                for claim, id in claims:
                    if id is not None and (yield from self._still_has(moved, id, claim)):
                        is_free = False
                    else:
                        yield from self._new_side(release(moved, claim))
                if not is_free:
                    break
                (again,) = yield from self._new_side(store([moved]))
                if not again:
                    break
            if not is_free:
                key = self._translation.old_key(moved, node_id(moved.entity))
                self._refused[place_of(key)] = Refusal(
                    key, moved.kind.name, "another node has the same unique value; change one of them"
                )

    def _still_has(self, moved: Moved, id: Any, claim: Item) -> Joint[bool]:
        """Whether another node still has a unique value in the old table."""
        key = self._translation.old_key(moved, id)
        (item,) = yield from self._old_side(item_at(self._old.table, key))
        try:
            return item is not None and has_claim(self._translation.moved(item), claim)
        except UNREADABLE:
            return False

    # --- following -----------------------------------------------------------------------------

    def _follow_on(self, state: MoveState) -> Joint[float | None]:
        if state.has_mark:
            began = self._clock()
            is_empty = yield from self._follow(state)
            state = self._current
            left = state.asked + self._lag - self._clock()
            if self._finish and not is_empty:
                return 0.0
            if self._finish and left > 0:
                return left
            if not is_empty and self._behind > self._clock() - began:
                return 0.0
        yield from self._retry()
        if self._refused or not self._finish:
            yield from self._save(replace(self._current, stage="waiting", run=""))
            return None
        yield from self._save(replace(self._current, stage="counting"))
        return 0.0

    def _follow(self, state: MoveState) -> Joint[bool]:
        """Applies the next changes of the old table; returns whether there were none."""
        response: ChangesResponse
        try:
            if state.mark is None and self._clock() - max(state.begun, state.looked) > CHANGES_KEPT:
                # Without a position, reading begins at the oldest kept change, even if older ones are gone.
                raise ChangesTrimmed("the stream is kept for 24 hours")
            (response,) = yield from self._old_side(changes_after(self._old.table, state.mark))
        except ChangesTrimmed:
            raise ChangesTrimmed(
                f"the migration was stopped so long that the change stream of {self._old.table!r} no longer reaches "
                f"back to it, so items removed since are unknown; drop the table {self._new.table!r}, and start again"
            ) from None
        looked = replace(state, looked=self._clock(), mark=response.next or state.mark)
        if not response.changes:
            self._state, self._behind = looked, 0.0
            return True
        self._behind = max(0.0, self._clock() - response.changes[-1].at)
        since = 0.0 if state.is_exact else state.begun - _CLOCKS
        changed: dict[Place, list[ItemChange]] = {}
        for change in response.changes:
            if change.at >= since:
                changed.setdefault(place_of(change.key), []).append(change)
        count = (yield from self._apply(changed)) if changed else 0
        if count and self._finish and state.asked:
            self._refuse_late(state, response.changes)
        # Not before: if applying them fails, the next run has to begin with these changes.
        self._state = replace(looked, changes=state.changes + count)
        if count or self._home != "old":
            # In the old table, storing the position would itself be a change.
            yield from self._save(self._state)
        return False

    def _refuse_late(self, state: MoveState, changes: Sequence[ItemChange]) -> None:
        late = [change for change in changes if change.at > state.asked + _CLOCKS]
        if any(self._translation.owner(change.new or change.old or change.key) is not None for change in late):
            raise InvalidRequest(
                f"programs still write to the table {self._old.table!r}, so the migration cannot end; stop them, and "
                f"run it again with finish"
            )

    def _apply(self, changed: Mapping[Place, list[ItemChange]]) -> Joint[int]:
        """Writes what changed items are now, and removes what they were; returns how many of them are entities."""
        gets = [Get(self._old.table, changes[0].key, consistent=True) for changes in changed.values()]
        (items,) = yield from self._old_side(get_all(gets))
        records: list[Put | Delete] = []
        gone: dict[Place, Moved] = {}
        present: dict[Place, Moved] = {}
        count = 0
        for (place, changes), item in zip(changed.items(), items, strict=True):
            if (record := self._translation.deletion_record(item or changes[0].key)) is not None:
                layout = self._new
                records.append(
                    Delete(layout.table, layout.key_of(record)) if item is None else Put(layout.table, record)
                )
                count += 1
                continue
            before = [moved for change in changes if change.old and (moved := self._was(change.old)) is not None]
            gone |= {place_of(moved.key): moved for moved in before}
            self._refused.pop(place, None)
            try:
                now = None if item is None else self._translation.moved(item)
            except UNREADABLE as error:
                assert item is not None
                self._refuse(item, str(error))
                now = None
            if now is not None:
                present[place_of(now.key)] = now
            count += bool(before) or now is not None
        for place in present:
            gone.pop(place, None)
        (taken,) = yield from self._new_side(apply(records, list(gone.values()), list(present.values())))
        yield from self._settle(taken)
        return count

    def _was(self, item: Item) -> Moved | None:
        """What an item was; None if it was no entity, or could not be read, so that it was never stored."""
        try:
            return self._translation.moved(item)
        except UNREADABLE:
            return None

    # --- the last step -------------------------------------------------------------------------

    def _count(self, state: MoveState) -> Joint[float | None]:
        """Brings the aggregates of the new table up to date."""
        if self._is_maintained:
            if self._daemon is None:
                self._daemon = Daemon(once=True, clock=self._clock)
            (pause,) = yield from self._new_side(self._daemon.step(self._new))
            if pause is not None:
                return float(pause)
            yield from self._new_side(self._daemon.leave(self._new))
            (found,) = yield from self._new_side(health(self._new, self._clock))
            if found.rebuild_due is not None:
                raise InvalidRequest(
                    f"the aggregates of the table {self._new.table!r} cannot be counted from its change stream any "
                    f"more; run rebuild with the new graph, and this again with finish"
                )
        yield from self._save(replace(state, stage="ended", run=""))
        return None

    @property
    def _is_maintained(self) -> bool:
        """Whether the new graph has aggregates or copied fields that maintenance keeps."""
        rules = self._new.rules
        return bool(rules.copies) or any(not rule.in_transaction for rule in rules.rules) or self._has_stream_and_rules

    @property
    def _has_stream_and_rules(self) -> bool:
        # Counts in transaction need no maintenance, except after what no program writes, such as an expiry.
        return bool(self._new.rules) and self._new.definition.stream

    # --- the record ----------------------------------------------------------------------------

    def _on_home(self, plan: Plan[Any]) -> Joint[list[Any]]:
        return (yield from self._old_side(plan) if self._home == "old" else self._new_side(plan))

    def _stored(self) -> Joint[MoveState | None]:
        if self._home is None:
            return None
        (stored,) = yield from self._on_home(stored_state(self._home_layout))
        found: MoveState | None = stored
        return found

    def _accounted(self, state: MoveState) -> MoveState:
        if state.stage == "ended" and state.item is not None:
            return state
        return replace(
            state,
            rcu=self._consumption.rcu,
            wcu=self._consumption.wcu,
            refused=[each.key for each in self._refused.values()][:SHOWN],
            has_more_refused=state.has_more_refused or len(self._refused) > SHOWN,
            seconds=self._consumption.seconds,
            at=self._clock(),
        )

    def _save(self, state: MoveState) -> Joint[None]:
        now = self._accounted(state)
        self._saved_at = self._clock()
        if self._home is None:
            self._state = now
            return
        try:
            (item,) = yield from self._on_home(save_state(self._home_layout, now))
        except ConditionFailed:
            raise InvalidRequest("another run of this migration has begun meanwhile; run only one at a time") from None
        self._state = replace(now, item=item)

    # --- sides ---------------------------------------------------------------------------------

    def _old_side(self, plan: Plan[Any]) -> Joint[list[Any]]:
        return (yield (("old", self._consumption.metered(plan, "old")),))

    def _new_side(self, plan: Plan[Any]) -> Joint[list[Any]]:
        return (yield (("new", self._consumption.metered(plan, "new")),))


def _unknown(key: Item) -> ItemChange:
    """A change of which only the key is known."""
    return ItemChange("", 0.0, key, None, None)
