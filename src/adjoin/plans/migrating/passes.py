"""A migration: passes over the whole table, with a stored position, until nothing lacks anything.

    expand     indexes that the table lacks are added, and programs that declare them are deployed
    migrate    a pass over the table writes what stored items lack, while programs of both versions run
    contract   no program with former declarations writes any more, so what they wrote since is completed too, former
               names and dropped fields are removed, and the record says that nothing is due

`Migration.step` does a little of it; `Graph.migrate` calls it again and again, and may stop after any step. The state
is one record, without values of items except the keys from which the pass goes on:

    PK           SK           what it holds
    #=MIGRATE    =progress    target (a hash of the forms), stage, segments and where each goes on, begun, mark, numbers

A pass that is begun again reads some items a second time, which changes nothing. The changes that are made during the
pass are in the change stream after the mark. So the last step reads that stream, if it still reaches back, instead of
the table.

**Older programs.** A program with former declarations writes items that lack what is new, also after the pass. So only
the last step records that nothing is due, and it is asked for: `finish=True` says that no such program writes any more.
Before it, running `migrate` with the former declarations takes everything back.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from adjoin.dataclass import dataclass
from adjoin.errors import (
    ChangesTrimmed,
    ConditionFailed,
    InvalidRequest,
    InvalidValue,
    shown,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import lacks
from adjoin.layouts.interface import REVISION
from adjoin.plans.declared import (
    RecordedForms,
    lacking,
    read_record,
    record_declared,
    unfilled,
)
from adjoin.plans.migrating.completing import (
    Fill,
    Refusal,
    complete,
    incomplete_items,
)
from adjoin.plans.migrating.consumption import Consumption
from adjoin.plans.migrating.planning import PAGE, SHOWN, field_changes_of
from adjoin.plans.migrating.stored_state import STATE, MigrationStage, StoredState
from adjoin.plans.migrating.strays import left_by, of_one_item, remove, strays_among
from adjoin.plans.steps.again import new_revision, same
from adjoin.plans.steps.batches import get_all, place_of
from adjoin.requests import (
    ChangesResponse,
    Delete,
    DescribeTable,
    Get,
    ItemResponse,
    PageResponse,
    Plan,
    Put,
    ReadChanges,
    Scan,
    TableResponse,
)
from adjoin.units import CHANGES_KEPT
from adjoin.values import Item, encode

_log = logging.getLogger("adjoin")

_SAVE = 2.0
"""Seconds after which the position is stored again."""
_ALIVE = 60.0
"""Seconds after which a migration that has not stored its position counts as stopped."""
_CLOCKS = 60.0
"""Seconds by which the clocks of programs may differ from that of the change stream."""
_PROGRESS, _NAME = "MIGRATE", "progress"


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration has done so far, over all its runs."""

    stage: MigrationStage
    read: int
    """How many items were read, in the present pass."""
    total: int
    """About how many items the table has."""
    written: int
    """How many items were completed."""
    refused: tuple[Refusal, ...]
    """Items that this run could not complete; while there are some, the migration does not end."""
    rcu: float
    wcu: float
    seconds: float
    older_writes: int = 0
    """How many items programs with former declarations, or those that use the old table, have written meanwhile."""
    others: int = 0
    """How many items no class explains. They are not moved into another table."""
    lag: float = 0.0
    """How many seconds ago the last change was made that was applied to another table; 0 if no more are waiting."""
    into: str = ""
    """The table into which items move; "" if they stay in theirs."""

    @property
    def ended(self) -> bool:
        """Whether the record says that nothing is due."""
        return self.stage == "ended"

    @property
    def seconds_left(self) -> float | None:
        """About how many seconds the present pass takes; None if that is not known yet."""
        if self.stage != "reading" or not self.read or self.seconds <= 0:
            return None
        return max(0, self.total - self.read) * self.seconds / self.read

    def __str__(self) -> str:
        done = "moved" if self.into else "completed"
        told = f"{self.read:,} items read, {self.written:,} {done}"
        if self.refused:
            told += f", {len(self.refused):,} cannot be {done}"
        if self.others:
            told += f", {self.others:,} are of no class and stay in the old table"
        ends = {
            "ended": f"programs may use {self.into} now" if self.into else "nothing is due any more",
            "waiting": "run it again with finish when no program "
            + ("writes to the old table any more" if self.into else "with former declarations writes any more"),
            "counting": "not ended; run it again to go on",
            "reading": "not ended; run it again to go on",
            "following": "not ended; run it again to go on",
        }
        return f"{told}; {ends[self.stage]}"


# --- the stored state --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _State(StoredState):
    """The state of a migration in its table: where the pass over the table is, and what it has done."""

    target: str
    stage: MigrationStage
    starts: Mapping[str, Item | None]
    """By segment: the key after which it goes on. Segments that are read to their end are left out."""
    segments: int
    begun: float
    """When the present pass began."""
    mark: str | None
    """The end of the change stream before the pass began; None for its beginning, if the store does not say."""
    has_mark: bool
    """Whether the table has a change stream."""
    added: Mapping[str, list[str]]
    """By the word of a class: attributes that the former declarations did not write."""
    is_finishing: bool = False
    asked: float = 0.0
    """When the last step was asked for."""
    refused: int = 0
    """How many items could not be completed in the present pass."""
    read: int = 0
    written: int = 0
    older: int = 0
    rcu: float = 0.0
    wcu: float = 0.0
    seconds: float = 0.0
    at: float = 0.0
    item: Item | None = field(default=None, compare=False)


def target_of(layout: BoundLayout) -> str:
    """A short name for the forms that a graph declares."""
    forms = {word: form.plain() | {"aggregates": {}} for word, form in sorted(layout.forms().items())}
    return hashlib.sha256(repr(forms).encode()).hexdigest()[:16]


# --- steps -------------------------------------------------------------------------------------


class Migration:
    """One run of a migration."""

    def __init__(
        self,
        layout: BoundLayout,
        *,
        fill: Mapping[str, Fill] | None = None,
        drop: Iterable[str] = (),
        finish: bool = False,
        units: float | None = None,
        segments: int = 1,
        lag: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`lag` is the number of seconds by which the change stream may lag behind the table."""
        if layout.tenant is not None:
            raise InvalidRequest(
                f"this graph belongs to the tenant {layout.tenant!r}, and a migration is for all tenants of the table; "
                f"migrate through a graph without a tenant"
            )
        if not isinstance(finish, bool):
            raise InvalidValue(f"finish must be True or False, got {shown(finish)}")
        self._layout, self._finish, self._segments, self._lag = layout, finish, segments, lag
        self._consumption = Consumption(units, clock)
        drop = drop if isinstance(drop, str) else list(drop)
        self._field_changes, self._removes = field_changes_of(layout, fill or {}, drop, finish=finish)
        self._drops = bool(drop)
        self._clock = clock
        self._state: _State | None = None
        self._recorded: RecordedForms | None = None
        self._refused: list[Refusal] = []
        self._total = 0
        self._saved_at = 0.0
        self._ended: _State | None = None

    # --- what callers see ----------------------------------------------------------------------

    def report(self) -> MigrationReport:
        state, used = self._state or self._ended, self._consumption
        if state is None:
            return MigrationReport("reading", 0, self._total, 0, (), used.rcu, used.wcu, 0.0)
        stage: MigrationStage = "ended" if self._ended is not None else state.stage
        return MigrationReport(
            stage,
            state.read,
            max(self._total, state.read),
            state.written,
            tuple(self._refused[:SHOWN]),
            used.rcu,
            used.wcu,
            used.seconds,
            state.older,
        )

    def step(self) -> Plan[float | None]:
        """Does the next part. Returns the seconds to wait before the next step, or None if there is nothing to do."""
        return (yield from self._consumption.paced(self._consumption.metered(self._step())))

    def stop(self) -> Plan[None]:
        """Stores the position, so that another run goes on from here."""
        if self._state is not None and self._state.stage != "waiting":
            yield from self._consumption.metered(self._save(self._state))

    def _step(self) -> Plan[float | None]:
        if self._ended is not None:
            return None
        if self._state is None:
            return (yield from self._begin())
        match self._state.stage:
            case "reading":
                return (yield from self._read_page(self._state))
            case "following":
                return (yield from self._follow(self._state))
        return None

    # --- beginning -----------------------------------------------------------------------------

    def _begin(self) -> Plan[float | None]:
        layout, now = self._layout, self._clock()
        described: TableResponse
        (described,) = yield (DescribeTable(layout.table),)
        self._total = described.item_count
        self._recorded = yield from read_record(layout)
        self._refuse_other_keys()
        self._warn_of_unfilled()
        stored = yield from self._stored()
        target = target_of(layout)
        if stored is not None and stored.target != target and now - stored.at < _ALIVE and stored.stage != "waiting":
            raise InvalidRequest(
                f"a migration to other declarations was at work {max(0.0, now - stored.at):.0f} seconds ago; stop it, "
                f"or wait a minute"
            )
        if stored is None and self._is_nothing_due():
            if self._drops and not self._finish:
                # Only the last step removes attributes, and it has to be asked for.
                self._state = _State(target, "waiting", {}, 0, now, None, False, {})
                return None
            return (yield from self._end(_State(target, "ended", {}, 0, now, None, False, {})))
        if stored is not None and stored.target == target:
            self._consumption.continue_from(stored.rcu, stored.wcu, stored.seconds)
            if stored.stage == "waiting":
                return (yield from self._continue(stored, described))
            if stored.is_finishing or not self._finish:
                self._state = stored
                self._take_back(stored.added)
                return 0.0
        yield from self._begin_pass(described, stored)
        return 0.0

    def _warn_of_unfilled(self) -> None:
        """Warns of new fields without which items cannot be read, and which this migration does not fill."""
        names = {kind.word: kind.name for kind in self._layout.schema.types}
        filled = {(names[word], name) for word, name in self._field_changes.fills}
        for each in () if self._recorded is None else unfilled(self._layout, self._recorded):
            if each not in filled:
                name = ".".join(each)
                _log.warning(
                    "%s is new and has no default, so stored items that lack it cannot be read; pass "
                    "fill={%r: function} to migrate, or give it a default",
                    name,
                    name,
                )

    def _refuse_other_keys(self) -> None:
        """Refuses classes whose items are stored under other keys: these classes cannot read them."""
        forms = self._layout.forms()
        due = {} if self._recorded is None else lacking(forms, self._recorded)
        for word, parts in due.items():
            if ("keys", "") in parts:
                raise InvalidRequest(
                    f"{lacks(forms[word].name, ('keys', ''))}, which migrate cannot change in place; read them with "
                    f"the former declarations, and put them into another table"
                )

    def _is_nothing_due(self) -> bool:
        if self._recorded is None or self._field_changes or (self._finish and self._removes):
            return False
        return not any(lacking(self._layout.forms(), self._recorded).values())

    def _continue(self, stored: _State, described: TableResponse) -> Plan[float | None]:
        """After a complete pass: waits for the last step, or begins it."""
        if not self._finish:
            if self._field_changes:
                yield from self._begin_pass(described, stored)
                return 0.0
            self._state = stored
            return None
        is_kept = stored.has_mark and self._clock() - stored.begun < CHANGES_KEPT
        if is_kept and not self._field_changes:
            self._state = replace(stored, stage="following", is_finishing=True, asked=self._clock())
            yield from self._save(self._state)
            return 0.0
        yield from self._begin_pass(described, stored)
        return 0.0

    def _begin_pass(self, described: TableResponse, stored: _State | None) -> Plan[None]:
        layout = self._layout
        has_mark = layout.why_no_own_items is None and described.definition.stream
        target = target_of(layout)
        added: Mapping[str, list[str]] = self._added()
        if stored is not None and stored.target != target:
            # It takes another migration back: what that one added is removed.
            added = stored.added
            self._take_back(added)
        state = _State(
            target,
            "reading",
            dict.fromkeys(map(str, range(self._segments))),
            self._segments,
            self._clock(),
            described.latest,
            has_mark,
            added,
            self._finish,
            item=None if stored is None else stored.item,
        )
        if stored is not None and stored.target == target:
            state = replace(state, written=stored.written, rcu=stored.rcu, wcu=stored.wcu)
        self._state = state
        yield from self._save(state)

    def _take_back(self, added: Mapping[str, list[str]]) -> None:
        """Lets the pass remove attributes that another migration has added, and that nothing here explains."""
        drops = {word: set(names) for word, names in self._field_changes.drops.items()}
        for kind in self._layout.schema.types:
            if names := set(added.get(kind.word, ())) - self._layout.explained(kind):
                drops.setdefault(kind.word, set()).update(names)
        self._field_changes = replace(
            self._field_changes, drops={word: frozenset(names) for word, names in drops.items()}
        )

    def _added(self) -> dict[str, list[str]]:
        """The attributes that these declarations write and the recorded ones do not."""
        if self._recorded is None:
            return {}
        found = {}
        for kind in self._layout.schema.types:
            stored = self._recorded.forms.get(kind.word)
            if stored is None:
                continue
            former = {name for entry in stored.indexes.values() for name in entry} | {*stored.fields.values()}
            index = self._layout.overloaded
            if index is not None and stored.indexed:
                former |= {index.partition_key, index.sort_key}
            if names := sorted(self._layout.entry_attributes(kind) - former):
                found[kind.word] = names
        return found

    # --- a pass --------------------------------------------------------------------------------

    def _read_page(self, state: _State) -> Plan[float | None]:
        layout = self._layout
        if not state.starts:
            return (yield from self._passed(state))
        numbers = list(state.starts)
        pages: list[PageResponse] = yield tuple(
            Scan(
                layout.table,
                start=state.starts[number],
                segment=None if state.segments == 1 else (int(number), state.segments),
                limit=self._consumption.page_items(PAGE),
                consistent=True,
            )
            for number in numbers
        )
        items = [item for page in pages for item in page.items]
        before = len(self._refused)
        written = yield from self._completed(items)
        starts = {number: page.last for number, page in zip(numbers, pages, strict=True) if page.last is not None}
        read = sum(page.scanned for page in pages)
        refused = state.refused + len(self._refused) - before
        self._state = replace(
            state, starts=starts, read=state.read + read, written=state.written + written, refused=refused
        )
        if self._clock() - self._saved_at >= _SAVE or not starts:
            yield from self._save(self._state)
        return 0.0

    def _completed(self, items: Sequence[Item]) -> Plan[int]:
        one_sided = of_one_item(self._layout, self._recorded)
        removed = yield from remove((yield from strays_among(self._layout, items, one_sided, finish=self._finish)))
        found = yield from incomplete_items(self._layout, items, self._field_changes, self._refused)
        return removed + (yield from complete(found, self._field_changes, self._refused))

    def _passed(self, state: _State) -> Plan[float | None]:
        """After the last page: nothing is left, or the last step has to be asked for."""
        if self._refused or state.refused:
            # Somebody has to look at them. The next run reads the table again.
            if self._layout.why_no_own_items is None:
                yield from self._forget(state)
            self._state = replace(state, stage="waiting")
            return None
        if state.is_finishing:
            return (yield from self._end(state))
        self._state = replace(state, stage="waiting")
        yield from self._save(self._state)
        return None

    # --- the last step -------------------------------------------------------------------------

    def _follow(self, state: _State) -> Plan[float | None]:
        """Completes what was written since the pass began, by the change stream."""
        response: ChangesResponse
        try:
            (response,) = yield (ReadChanges(self._layout.table, state.mark),)
        except ChangesTrimmed:
            described: TableResponse
            (described,) = yield (DescribeTable(self._layout.table),)
            yield from self._begin_pass(described, state)
            return 0.0
        if not response.changes:
            left = state.asked + self._lag - self._clock()
            return left if left > 0 else (yield from self._passed(state))
        since = state.begun - _CLOCKS
        recent = [each for each in response.changes if each.at >= since and not self._layout.is_own_record(each.key)]
        keys = {place_of(change.key): change.key for change in recent if change.new is not None}
        keys |= left_by(self._layout, recent)
        if not keys:
            # To store the position would itself be a change, so it is stored only after changes of others.
            self._state = replace(state, mark=response.next)
            return 0.0
        gets = [Get(self._layout.table, key, consistent=True) for key in keys.values()]
        items = [item for item in (yield from get_all(gets)) if item is not None]
        written = yield from self._completed(items)
        self._state = replace(
            state,
            mark=response.next,
            written=state.written + written,
            older=state.older + written,
            refused=len(self._refused),
        )
        yield from self._save(self._state)
        return 0.0

    def _end(self, state: _State) -> Plan[float | None]:
        if self._layout.why_no_own_items is None:
            yield from record_declared(self._layout, {})
            yield from self._forget(state)
        self._ended = replace(self._accounted(state), stage="ended")
        self._state = None
        return None

    # --- the record ----------------------------------------------------------------------------

    def _key(self) -> Item:
        return self._layout.ledgers.record_key(_PROGRESS, _NAME)

    def _stored(self) -> Plan[_State | None]:
        if self._layout.why_no_own_items is not None:
            return None
        response: ItemResponse
        (response,) = yield (Get(self._layout.table, self._key(), consistent=True),)
        return None if response.item is None else _State.of_item(response.item)

    def _accounted(self, state: _State) -> _State:
        return replace(
            state,
            rcu=self._consumption.rcu,
            wcu=self._consumption.wcu,
            seconds=self._consumption.seconds,
            at=self._clock(),
        )

    def _save(self, state: _State) -> Plan[None]:
        if self._layout.why_no_own_items is not None:
            self._state = self._accounted(state)
            return
        now = self._accounted(state)
        item = self._key() | {STATE: encode(now.plain()), REVISION: new_revision()}
        try:
            yield (Put(self._layout.table, item, same(state.item, REVISION)),)
        except ConditionFailed:
            # Another run of the same migration is at work. This one goes on with what that one stored.
            stored = yield from self._stored()
            if stored is None or stored.target != state.target:
                raise InvalidRequest(
                    "another migration of this table has begun or ended meanwhile; run only one at a time"
                ) from None
            self._state = stored
        else:
            self._state = replace(now, item=item)
        self._saved_at = self._clock()

    def _forget(self, state: _State) -> Plan[None]:
        yield (Delete(self._layout.table, self._key()),)
