"""What is asked of a migration, and what it would do and cost: the plan that a dry run returns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import (
    InvalidItem,
    InvalidValue,
    shown,
)
from adjoin.field_types import unknown_field
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.plans.declared import (
    DeclaredDifference,
    differences_of,
    lacking,
    read_record,
)
from adjoin.plans.migrating.completing import (
    FieldChanges,
    Fill,
    IncompleteItem,
    Refusal,
    incomplete_items,
    of_fields,
    owner_layout,
)
from adjoin.plans.migrating.consumption import Consumption
from adjoin.plans.migrating.storing import price
from adjoin.plans.migrating.strays import Stray, of_one_item, strays_among
from adjoin.plans.migrating.translating import UNREADABLE, Translation
from adjoin.plans.steps.batches import place_of
from adjoin.requests import (
    DescribeTable,
    PageResponse,
    Plan,
    Scan,
    TableResponse,
)
from adjoin.values import Item

PAGE = 500
"""How many items of a segment are read at a time."""
SHOWN = 100
"""How many items that cannot be completed are named."""
_SAMPLE = 2000
"""About how many items a dry run reads. The rest of a larger table is estimated."""
_PARTS = 4
"""How many parts of a large table it reads at most: few partitions may leave some without items."""


def field_changes_of(
    layout: BoundLayout, fill: Mapping[str, Fill], drop: Iterable[str], *, finish: bool
) -> tuple[FieldChanges, bool]:
    """What to fill, rename and drop; and whether the last step removes anything.

    Fields are named as "Student.year". Fields that a class does not declare any more are dropped by the name of their
    attribute.
    """
    kinds = {kind.name: kind for kind in layout.schema.types}
    fills: dict[tuple[str, str], Fill] = {}
    if not isinstance(fill, Mapping):
        raise InvalidValue(f'fill takes a dict such as {{"Student.year": function}}, got {shown(fill)}')
    for given, function in fill.items():
        kind, name = _field(kinds, given, "fill")
        if name not in kind.attributes:
            raise InvalidValue("fill: " + unknown_field(kind.name, name, kind.attributes))
        if not callable(function):
            raise InvalidValue(f"fill[{given!r}] must be a function of the stored item, got {shown(function)}")
        fills[kind.word, name] = function
    if isinstance(drop, str) or not isinstance(drop, Iterable):
        raise InvalidValue(f'drop takes a list such as ["Student.nickname"], got {shown(drop)}')
    drops: dict[str, set[str]] = {}
    for given in drop:
        kind, name = _field(kinds, given, "drop")
        if name in layout.explained(kind):
            raise InvalidValue(f"{given} is still declared, so it cannot be dropped; remove it from the class first")
        drops.setdefault(kind.word, set()).add(name)
    has_former = any(kind.former for kind in kinds.values())
    removes = bool(drops) or has_former
    if not finish:
        return FieldChanges(fills), removes
    return FieldChanges(fills, {word: frozenset(names) for word, names in drops.items()}, has_former), removes


def _field(kinds: Mapping[str, EntityType], given: object, argument: str) -> tuple[EntityType, str]:
    name, dot, rest = given.partition(".") if isinstance(given, str) else ("", "", "")
    if not dot or not rest:
        raise InvalidValue(f'{argument} names fields as "Student.year", got {shown(given)}')
    if name not in kinds:
        raise InvalidValue(f"{argument}: " + unknown_field("the graph", name, kinds, "class"))
    return kinds[name], rest


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step of a migration, with what it costs."""

    phase: Literal["expand", "migrate", "contract"]
    what: str
    items: int = 0
    rcu: float = 0.0
    wcu: float = 0.0

    def __str__(self) -> str:
        is_priced = self.rcu or self.wcu
        cost = f" ({self.items:,} items, {self.rcu:,.0f} read and {self.wcu:,.0f} write units)" if is_priced else ""
        return f"{self.phase}: {self.what}{cost}"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What a migration would do, in order, and what it costs. Nothing was written."""

    differences: tuple[DeclaredDifference, ...]
    steps: tuple[MigrationStep, ...]
    refused: tuple[Refusal, ...]
    """Items of the sample that cannot be completed."""
    is_exact: bool
    """Whether the whole table was read. If not, numbers are estimated from a part of it."""

    @property
    def rcu(self) -> float:
        return sum(step.rcu for step in self.steps)

    @property
    def wcu(self) -> float:
        return sum(step.wcu for step in self.steps)

    @property
    def items(self) -> int:
        """How many items lack something."""
        return sum(step.items for step in self.steps if step.phase == "migrate")

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps)

    def __str__(self) -> str:
        lines = [str(step) for step in self.steps] or ["nothing is due"]
        return "\n".join([*lines, *(f"cannot be completed: {each}" for each in self.refused)])


def planned(
    layout: BoundLayout, field_changes: FieldChanges, removes: bool, absent: Sequence[str]
) -> Plan[MigrationPlan]:
    """What a migration would do and cost. It reads at most some thousand items, and estimates the rest."""
    described: TableResponse
    (described,) = yield (DescribeTable(layout.table),)
    recorded = yield from read_record(layout)
    found = [] if recorded is None else differences_of(layout, recorded)
    # Without a record, nobody knows what items lack, so they have to be looked at.
    is_recorded_due = recorded is None or any(lacking(layout.forms(), recorded).values())
    is_due = is_recorded_due or bool(field_changes) or removes
    steps = [MigrationStep("expand", f"add the index {name!r} with create_table() or migrate()") for name in absent]
    ttl = layout.definition.ttl
    if ttl is not None and described.definition.ttl is None:
        steps.append(MigrationStep("expand", f"turn on time to live by {ttl!r} with create_table() or migrate()"))
    if not is_due:
        return MigrationPlan(tuple(found), tuple(steps), (), True)
    refused: list[Refusal] = []
    lacks: list[IncompleteItem] = []
    left: list[IncompleteItem] = []
    strays: list[Stray] = []
    one_sided = of_one_item(layout, recorded)
    sample = _Sample(described, layout.table)
    # What is read here is what a pass reads: the table, with the index copies, claims and twins of its items.
    consumed = Consumption(None, time.time)
    while not sample.is_enough:
        fills = FieldChanges(field_changes.fills)
        page, some, others = yield from consumed.metered(_looked(layout, sample.next, fills, one_sided, refused))
        lacks += some
        strays += others
        if removes:
            after = {place_of(each.key): each.after for each in some}
            items = [after.get(place_of(layout.key_of(item)), item) for item in page.items]
            left += _removals(layout, items, field_changes)
        sample.take(page)
    if sample.is_exact and not (is_recorded_due or lacks or left or strays or refused):
        # The classes may have former names, or functions that fill fields, and no item needs them any more.
        return MigrationPlan(tuple(found), tuple(steps), (), True)
    share = sample.share
    steps.append(MigrationStep("expand", "deploy programs with the new declarations; older ones may go on"))
    counted: dict[str, list[IncompleteItem]] = {}
    for each in lacks:
        counted.setdefault(each.kind.name, []).append(each)
    for name, some in sorted(counted.items()):
        steps.append(_priced("migrate", f"write what items of {name} lack", some, share))
    if strays:
        steps.append(_priced("migrate", "remove index entries and claims of what is gone", strays, share))
    pass_rcu = consumed.rcu * share
    steps.append(MigrationStep("migrate", "read the table", 0, pass_rcu))
    again = "read the table again" if removes or not described.definition.stream else "read the change stream"
    last = _priced(
        "contract",
        f"when no program with former declarations writes any more, run migrate with finish: {again}"
        f"{', remove what has a former name or is dropped' if left else ''}, and record that nothing is due",
        left,
        share,
    )
    # The change stream has what the pass itself wrote, too.
    followed = sum(each.look for each in lacks) * share
    owners = sum(_owners(each, are_together=sample.read * share <= PAGE) for each in lacks) * share
    steps.append(replace(last, rcu=last.rcu + (pass_rcu + owners if again.startswith("read the table") else followed)))
    return MigrationPlan(tuple(found), tuple(steps), tuple(refused[:SHOWN]), sample.is_exact)


class _Sample:
    """What is read of a table: all of a small one, and of a large one some parts of its partitions.

    The parts are those of a parallel scan, because the first items in the order of a file may be of one class only.
    """

    def __init__(self, described: TableResponse, table: str) -> None:
        self._table, self._items = table, described.item_count
        parts = max(1, -(-described.item_count // _SAMPLE))
        self._left: list[tuple[int, int] | None] = (
            [None] if parts == 1 else [(number, parts) for number in range(min(parts, _PARTS))]
        )
        self._is_whole = parts == 1
        self._start: Item | None = None
        self.read = 0

    @property
    def is_enough(self) -> bool:
        if not self._left or self.read >= 2 * _SAMPLE:
            return True
        # A part is read to its end: in a file, its items are in the order of their keys as well.
        return self._start is None and self.read >= _SAMPLE // 2

    @property
    def is_exact(self) -> bool:
        return self._is_whole and not self._left

    @property
    def share(self) -> float:
        """How many items of the table each that was read stands for."""
        return 1.0 if self.is_exact or not self.read else max(1.0, self._items / self.read)

    @property
    def next(self) -> Scan:
        return Scan(self._table, limit=PAGE, start=self._start, segment=self._left[0], consistent=True)

    def take(self, page: PageResponse) -> None:
        self.read += page.scanned
        self._start = page.last
        if page.last is None:
            del self._left[0]
        if not self._left and not self.read and not self._is_whole:
            # All items are in a few partitions, which are in other parts.
            self._left, self._is_whole = [None], True


def _looked(
    layout: BoundLayout, asked: Scan, field_changes: FieldChanges, one_sided: Sequence[str], refused: list[Refusal]
) -> Plan[tuple[PageResponse, list[IncompleteItem], list[Stray]]]:
    page: PageResponse
    (page,) = yield (asked,)
    strays = yield from strays_among(layout, page.items, one_sided, finish=False)
    return page, (yield from incomplete_items(layout, page.items, field_changes, refused)), strays


def _owners(lacking: IncompleteItem, *, are_together: bool) -> int:
    """How often a pass reads an item because it meets satellites of it that were just written.

    A page asks for an item once. Index copies are beside each other, and so in one page; claims are anywhere.
    """
    claims = sum(each.owner is not None for each in lacking.satellites)
    if are_together:
        return bool(lacking.satellites)
    return claims + (claims < len(lacking.satellites))


def _removals(layout: BoundLayout, items: Iterable[Item], changes: FieldChanges) -> Iterator[IncompleteItem]:
    """What the last step removes from items that have all that they need."""
    for item in items:
        own = owner_layout(layout, item)
        kind = None if own is None or DELETING in item else own.kind_of(item)
        if own is None or kind is None:
            continue
        try:
            _, actions = of_fields(own, kind, item, replace(changes, fills={}))
        except InvalidItem:
            # It is among those that cannot be completed.
            continue
        if actions:
            beside = [*kind.indexed[1:], *kind.unique] if own.has_satellites(kind) else []
            there = [name for name in beside if any(each in item for each in _names(kind, name))]
            elements = len(own.element_keys(kind, item))
            copies = sum(name in kind.indexed for name in there) + elements
            yield IncompleteItem(
                own,
                kind,
                own.key_of(item),
                item,
                tuple(actions),
                companions=len(there) + elements,
                rewritten=copies,
            )


def _names(kind: EntityType, name: str) -> tuple[str, ...]:
    """The attributes in which a field may be."""
    return kind.attributes[name], *kind.former.get(name, ())


def _priced(
    phase: Literal["migrate", "contract"], what: str, some: Sequence[IncompleteItem | Stray], share: float
) -> MigrationStep:
    rcu, wcu = (sum(units) * share for units in ((each.rcu for each in some), (each.wcu for each in some)))
    return MigrationStep(phase, what, round(len(some) * share), rcu, wcu)


# --- into another table ------------------------------------------------------------------------


def planned_into(translation: Translation) -> Plan[MigrationPlan]:
    """What a migration into another table would do and cost. It runs on the old table, and reads a part of it."""
    old, new = translation.old, translation.new
    described: TableResponse
    (described,) = yield (DescribeTable(old.table),)
    refused: list[Refusal] = []
    moved: dict[str, list[tuple[float, float]]] = {}
    others, sample = 0, _Sample(described, old.table)
    while not sample.is_enough:
        page: PageResponse
        (page,) = yield (sample.next,)
        for item in page.items:
            try:
                found = translation.moved(item)
            except UNREADABLE as error:
                told = translation.owner(item)
                refused.append(Refusal(old.key_of(item), told[1].name if told else "item", str(error)))
                continue
            if found is not None:
                moved.setdefault(found.kind.name, []).append(price(found))
            elif translation.is_other(item):
                others += 1
        sample.take(page)
    share = sample.share
    steps = [
        MigrationStep("expand", f"create the table {new.table!r}; programs go on with {old.table!r}"),
        MigrationStep(
            "migrate",
            f"read the table {old.table!r}, and apply what is written to it meanwhile",
            0,
            rcu=max(described.size, 1) / 4096,
        ),
    ]
    for name, units in sorted(moved.items()):
        rcu, wcu = (sum(some) * share for some in zip(*units, strict=True))
        steps.append(MigrationStep("migrate", f"write {name} into {new.table!r}", round(len(units) * share), rcu, wcu))
    if others:
        steps.append(MigrationStep("migrate", f"leave {round(others * share):,} items of no class where they are"))
    counts = ", and counts aggregates" if new.rules else ""
    steps.append(
        MigrationStep(
            "contract",
            f"when no program writes to {old.table!r} any more, run migrate with finish, which applies what is left"
            f"{counts}; then start programs with {new.table!r}",
        )
    )
    return MigrationPlan((), tuple(steps), tuple(refused[:SHOWN]), sample.is_exact)
