"""Edge states: one edge with its ledger and its nodes, as they were read together.

In: the items of an edge, its ledger, its near node, and its far node if a rule reads it. Out: whether the edge is
reconciled, by how much each sum changes, and the writes for everything except the near node itself. It reads nothing;
`reconciling` and `plans/in_transaction` read the items. `contributions` says what the edge contributes now, and
`ledger` what it has contributed. `node_transaction` combines the edge states of one node.

Two words are used throughout: `wanted` is what the edge contributes now, per rule, and `applied` is what it has
contributed, as its ledger and its stamps say. An edge is reconciled if both agree, in the right generation.

While a node is recounted, it has a present generation and a next one. An edge that is reconciled then counts in both:
the difference to its ledger in the present one (`delta`), and the whole contribution in the next one (`delta_ahead`).
Its ledger is then of the next generation, so this happens once per edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import NEVER, AdjoinError, TransactionCanceled
from adjoin.expressions import Condition
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, STAMP
from adjoin.layouts.own_items import digest_of, foreign_on, keys_on
from adjoin.plans.counting.contributions import ONE, Ends, contribution
from adjoin.plans.counting.ledger import WAITING, EdgeRef, Ledger, LedgerWrite, ledger_in, ledger_write, named_in
from adjoin.plans.counting.rank_items import NO_MOVES, Moves, Rank, base_of, first_moves, moves, ranks_of
from adjoin.plans.counting.stamps import Stamp, generation_of, new_stamp, stamp_of
from adjoin.plans.steps.again import as_read
from adjoin.requests import Check, Delete, Put, Update
from adjoin.rules import Rule, RuleGroup
from adjoin.values import AttributeValue, Item, exact_sum

RULE, REASON, GROUP = "rule", "reason", "account"
"""The attributes of the record that an edge is set aside, besides those that name the edge."""
_NONE: Mapping[str, str] = MappingProxyType({})
_NOTHING: Mapping[str, AttributeValue] = MappingProxyType({})
_NO_STAMPS: Mapping[str, Stamp] = MappingProxyType({})
_NO_NAMES = frozenset[str]()
_ZERO: AttributeValue = {"N": "0"}
_ONE = Decimal(1)
_NO_TEXTS: AttributeValue = {"SS": ()}
_NO_LEDGER = Ledger(WAITING, {}, {})


AnyWrite: TypeAlias = Put | Update | Delete | Check | LedgerWrite


@dataclass(slots=True)
class EdgeState:
    """One edge in one rule group, with everything that was read for it."""

    ref: EdgeRef
    edge: Item | None
    """The item of the edge; None if it does not exist."""
    item: Item | None
    """The item of its ledger; None if it does not exist."""
    near: Item | None
    far: Item | None
    generation: str
    """The present generation of the near node; a new one if it has none yet."""
    next: str | None = None
    """The next generation, if a recount prepares one. What is counted meanwhile counts in both."""
    wanted: dict[str, AttributeValue] = field(default_factory=dict)
    """Rule to what the edge contributes now."""
    aside: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Rule to the reason why the edge is set aside for it."""
    foreign: frozenset[str] = frozenset()
    """Rules whose value on the near node was counted by another declaration. Nothing can be added to such a value, so
    these rules count only in the next generation."""
    forgets: bool = False
    """Whether to drop what the ledger says about rules that this graph does not declare."""
    ledger: Ledger | None = None
    """What the ledger says about this rule group, read from `item`."""
    has_ranks_within: bool = False
    """Whether ranks are put and deleted within the transaction, instead of before and after it."""
    spare: Sequence[Rank] = ()
    """Ranks that an earlier attempt put for this edge, and that can be used again."""
    ranks: Moves = NO_MOVES
    """What has to be done with the ranks of the edge; set when the writes are made."""
    stamp: AttributeValue | None = None
    """The stamp on the edge as it is stored."""
    removed: Sequence[AttributeValue] = ()
    """Stamps that changes have removed from the edge."""
    ends: bool = False
    """Whether the near node is deleted in the same transaction, so that its generation ends."""
    is_stamping: bool = False
    """Whether the edge is put with a new stamp, so that it needs no ledger."""
    applied: Mapping[str, AttributeValue] = field(init=False, default_factory=lambda: _NOTHING)
    """Rule to what the edge has contributed in the present generation; empty if the ledger is void."""
    counting: Mapping[str, Stamp] = field(init=False, default_factory=lambda: _NO_STAMPS)
    """The stamps that count, by name: no ledger names them as spent, and their generation is the present one."""
    _made: list[AnyWrite] | None = None
    """The writes, once they are made. They contain new random tokens, so they are made once."""

    def __post_init__(self) -> None:
        self.ledger = ledger = ledger_in(self.ref.group, self.item)
        if ledger is not None and self.is_valid:
            self.applied = ledger.applied
        if self.stamp is not None or self.removed:
            self._count_stamps()

    def _count_stamps(self) -> None:
        """Adds the stamps that count to what the edge has contributed."""
        group, key = self.ref.group, self.ref.key
        stamps = [stamp for each in (self.stamp, *self.removed) if (stamp := stamp_of(group, key, each)) is not None]
        spent = _NO_NAMES if self.ledger is None else self.ledger.spent
        self.counting = {
            stamp.name: stamp
            for stamp in stamps
            if self.near is not None and stamp.generation == self.generation and stamp.name not in spent
        }
        if self.counting:
            self.applied = added_up((self.applied, *(stamp.applied for stamp in self.counting.values())))

    def work_out(self, layout: BoundLayout, refused: Mapping[str, str] = _NONE) -> None:
        """Computes `wanted` and `aside`. `refused` has rules to set aside after a failed write, with the reasons."""
        self.wanted, self.aside = contributions(layout, self.ref.group, self.edge, self.far)
        self.forgets = layout.rules.is_forgetting
        if self.near is not None and GENERATION in self.near:
            self.foreign = foreign_on(layout.rules, self.ref.group.rules, self.near)
        for name in refused.keys() & self.wanted.keys():
            del self.wanted[name]
            self.aside = {**self.aside, name: refused[name]}

    @property
    def is_valid(self) -> bool:
        """Whether the ledger is of the near node's present or next generation. A ledger of any other one is void."""
        return self.ledger is not None and self.ledger.generation in (self.generation, self.next)

    @property
    def is_ahead(self) -> bool:
        """Whether the ledger is of the next generation, so that the edge is already counted in it."""
        return self.ledger is not None and self.next is not None and self.ledger.generation == self.next

    @property
    def was_aside(self) -> Mapping[str, str]:
        return _NONE if self.ledger is None else self.ledger.aside

    @property
    def is_told(self) -> bool:
        """Whether a ledger or a stamp says that the edge was counted, in any generation."""
        return self.ledger is not None or self.stamp is not None

    @property
    def is_told_by_stamp(self) -> bool:
        """Whether the stamp on the edge is all that counts beside its ledger."""
        on_edge = stamp_of(self.ref.group, self.ref.key, self.stamp)
        return on_edge is not None and [*self.counting] == [on_edge.name]

    @property
    def is_kept(self) -> bool:
        """Whether the edge must have a ledger.

        A ledger beside a far node is needed even if the edge contributes nothing: by it, the edge is found when the
        far node changes.
        """
        there = self.edge is not None and self.near is not None
        return there and bool(self.wanted or self.aside or self.ref.group.reads_far)

    @property
    def is_waiting(self) -> bool:
        """Whether the edge must have a ledger that only says that it waits for its node.

        This is for an edge that is counted at its target. When the target is created, the edge is found by this ledger.
        An edge that is counted at its source needs none: it lies in the partition of the source.
        """
        group = self.ref.group
        is_counted = self.near is None and self.edge is not None and bool(self.wanted or self.aside)
        return is_counted and not group.reads_far and group.hop.direction == "into"

    @property
    def _stops_waiting(self) -> bool:
        """Whether the ledger says only that the edge waits for its node, and is deleted."""
        return self.goes and self.ledger is not None and self.ledger.generation == WAITING

    @property
    def is_reconciled(self) -> bool:
        """Whether the ledger already says what it should say, so that nothing has to be written."""
        ledger = self.ledger
        if self.counting:
            return self._is_stamp_right
        if ledger is None:
            return not (self.is_kept or self.is_waiting)
        after = self.after
        if after is None:
            return False
        is_of_rules = not self.ref.group.reads_far or ledger.mark == self.ref.group.mark
        return is_of_rules and (ledger.generation, ledger.applied, ledger.aside, ledger.spent) == (
            after.generation,
            after.applied,
            after.aside,
            after.spent,
        )

    @property
    def _is_stamp_right(self) -> bool:
        """Whether the stamp on the edge, with its ledger if there is one, already says what should be said."""
        ledger = self.ledger
        is_alone = ledger is None or (ledger.generation == self.generation and not ledger.aside)
        is_right = self.is_kept and not self.aside and self.next is None and self.applied == self._after
        return is_alone and is_right and self.is_told_by_stamp

    @property
    def after(self) -> Ledger | None:
        """What the ledger should say; None if there should be none."""
        if self.is_kept:
            return Ledger(self.next or self.generation, self._after, self.aside, spent=self._spent)
        if self.near is not None and not self.ends and (spent := self._spent):
            # The edge contributes nothing, but a program may put it again with a stamp that it has read.
            return Ledger(self.next or self.generation, {}, {}, spent=spent)
        return Ledger(WAITING, {}, {}) if self.is_waiting else None

    @property
    def _spent(self) -> frozenset[str]:
        """The stamps that are spent once the ledger is written. Those of former generations need not be named."""
        before = _NO_NAMES if self.ledger is None else self.ledger.spent
        if not before and not self.counting:
            return _NO_NAMES
        return frozenset(
            name for name in before | self.counting.keys() if generation_of(name) in (self.generation, self.next)
        )

    @property
    def comes(self) -> bool:
        """Whether the edge gets its first ledger."""
        return self.ledger is None and self.is_kept

    @property
    def goes(self) -> bool:
        """Whether the ledger is deleted. Each such write counts up the departures of the node."""
        return self.ledger is not None and self.after is None

    @property
    def _after(self) -> dict[str, AttributeValue]:
        """The contributions that the ledger should hold.

        What the ledger says about rules that this graph does not declare stays as it is, because another program may
        maintain them. It is dropped if the node has been recounted without these rules since then.
        """
        foreign = self.foreign if self.next is None else frozenset()
        if not self.applied and not foreign:
            return self.wanted
        known, kept = self.ref.group.keys, keys_on(self.near or {}) if self.next is None else None
        if self.forgets and self.next is None:
            kept = kept or set()
        left = {
            name: value
            for name, value in self.applied.items()
            if name in foreign or (name not in known and (kept is None or name in kept))
        }
        return left | {name: value for name, value in self.wanted.items() if name not in foreign}

    def joined(self, rule: Rule) -> bool:
        """Whether the edge begins to contribute by a rule."""
        return rule.name not in self.foreign and rule.name in self.wanted and rule.name not in self.applied

    def left(self, rule: Rule) -> bool:
        """Whether the edge stops contributing by a rule."""
        return rule.name not in self.foreign and rule.name in self.applied and rule.name not in self.wanted

    def delta(self, rule: Rule) -> Decimal:
        """What to add to the sum of a rule in the present generation."""
        return Decimal(0) if rule.name in self.foreign else self._difference(rule)

    def _difference(self, rule: Rule) -> Decimal:
        """What the edge contributes now, minus what it has contributed."""
        after, before = self.wanted.get(rule.name, _ZERO), self.applied.get(rule.name)
        if before is None:
            # The edges that a count adds up are many, and new ones as a rule.
            return _ONE if after is ONE else Decimal(after["N"])
        return exact_sum((Decimal(after["N"]), Decimal(before["N"]).copy_negate()))

    def delta_ahead(self, rule: Rule) -> Decimal:
        """What to add in the next generation: everything the first time, and after that the difference."""
        after = Decimal(self.wanted.get(rule.name, _ZERO)["N"])
        if self.ledger is None or not self.is_ahead:
            return after
        # Stamps are of the present generation.
        before = self.ledger.applied.get(rule.name, _ZERO)
        return exact_sum((after, Decimal(before["N"]).copy_negate()))

    def texts(self, rule: Rule) -> tuple[Iterable[str], Iterable[str]]:
        """What to add to the reached set of a rule in the present generation, and what to take out of it."""
        if rule.name in self.foreign:
            return (), ()
        return self.wanted.get(rule.name, _NO_TEXTS)["SS"], self.applied.get(rule.name, _NO_TEXTS)["SS"]

    def texts_ahead(self, rule: Rule) -> tuple[Iterable[str], Iterable[str]]:
        """The same in the next generation: everything the first time, and after that the difference."""
        before = {} if self.ledger is None or not self.is_ahead else self.ledger.applied
        return self.wanted.get(rule.name, _NO_TEXTS)["SS"], before.get(rule.name, _NO_TEXTS)["SS"]

    def moves(self, rule: Rule) -> bool:
        """Whether the ranks of the edge change for a rule."""
        is_own = rule.is_ranked and rule.name not in self.foreign
        return is_own and self.applied.get(rule.name) != self.wanted.get(rule.name)

    # --- writes --------------------------------------------------------------------------------

    def writes(self, layout: BoundLayout) -> list[AnyWrite]:
        """All writes for the edge except the change of the near node: checks, ledger, ranks within, records."""
        if self._made is None:
            self._made = self._make(layout)
        return self._made

    def set_aside(self, rule: Rule, reason: str) -> None:
        """Sets the edge aside for a rule to which it would contribute; the writes have to be made again."""
        del self.wanted[rule.name]
        self.aside = {**self.aside, rule.name: reason}
        self.ranks, self._made = NO_MOVES, None

    def stamped(self, *, is_new: bool) -> AttributeValue | None:
        """The stamp for the edge when it is written as a whole: the one that still says what it contributes, or none.

        If `is_new`, there is no edge, and the transaction requires this. So nothing is counted for it when it is
        written, whatever was read: it gets a new stamp, and its ledger is not looked at.
        """
        group = self.ref.group
        if self.counting:
            return self.stamp if self.is_reconciled else None
        is_first = is_new and self.item is None and self.is_kept and self.next is None
        if not (group.is_stamped and is_first) or self.aside or self.foreign:
            return None
        self.is_stamping, self._made = True, None
        return new_stamp(group, self.ref.key, self.generation, self.wanted)

    def renew(self) -> None:
        """Discards the writes, and the ranks of earlier attempts, so that both are made again."""
        self.spare, self._made = (), None

    def _make(self, layout: BoundLayout) -> list[AnyWrite]:
        """Makes the writes, and sets `ranks` on the way, because the new ledger names the new ranks."""
        table, ref = layout.table, self.ref
        writes: list[AnyWrite] = []
        # A node that does not exist has no departures that could stop a process which read the edge before it was
        # removed. So for an edge that waits for its node, the transaction checks the edge itself. So does one that
        # deletes the ledger of such an edge: if the edge was put again since, its maintainer finds the ledger as it
        # should be, and does not write it.
        if ref.group.is_checked if self.near is not None else self.is_waiting or self._stops_waiting:
            names = (*ref.group.edge_attributes, *((STAMP,) if ref.group.has_stamps else ()))
            writes.append(Check(table, ref.key, as_read(layout, self.edge, names)))
            if ref.group.reads_far and self.edge is not None and ref.far != ref.near:
                writes.append(Check(table, ref.far_key(layout), self.far_as_read(layout)))
        self.ranks = NO_MOVES
        if not self.is_reconciled and not self.is_stamping:
            after = self.after
            self.ranks = self._moves(after)
            if after is not None:
                after.tokens = self.ranks.tokens
            if after is not None or self.item is not None:
                writes.append(ledger_write(layout, ref, ref.ledger_key(layout), self.item, after))
        if self.has_ranks_within or self.ranks.together:
            writes += self._rank_writes(layout)
        if self.aside or self.was_aside:
            writes += self._records(layout)
        return writes

    def far_as_read(self, layout: BoundLayout) -> Condition:
        return as_read(layout, self.far, self.ref.group.far_attributes)

    def _moves(self, after: Ledger | None) -> Moves:
        """What has to be done with the ranks when the ledger becomes `after`."""
        before, after = self.ledger or _NO_LEDGER, after or _NO_LEDGER
        if not (_has_ranks(before) or _has_ranks(after)):
            return NO_MOVES
        keys = self.ref.group.keys
        if self.ledger is None and not self.spare:
            return first_moves(after, self.generation if self.next is not None else None, keys)
        # If the ledger is of a former generation, none of its ranks is used again, and all are deleted here: after this
        # write, no ledger names them.
        there = ranks_of(before, self.generation if self.is_ahead else None, keys)
        return moves(after, self.generation if self.next is not None else None, keys, there, self.spare)

    def _rank_writes(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        """The puts and deletes of ranks that belong into the transaction."""
        made, is_within = self.ranks, self.has_ranks_within
        for rank in (*made.together, *(made.deletes if is_within else ())):
            yield Delete(layout.table, rank.key(layout, self.ref))
        for rank in made.puts if is_within else ():
            yield Put(layout.table, rank.item(layout, self.ref, self.base(self.near)))

    def base(self, near: Item | None) -> AttributeValue | None:
        """The state that the transaction requires, see `base_of`. `near` is the near node as it is by then."""
        return base_of(self.ref.group, self.item, near)

    @property
    def is_held_by_departures(self) -> bool:
        """Whether the transaction requires that the node's departures are as they were read.

        It does if it creates a ledger and does not check the edge itself. It also does if it names ranks that were put
        before, because these say that they wait for this number of departures.
        """
        is_told = not self.ref.group.is_checked or (bool(self.ranks.tokens) and not self.has_ranks_within)
        return self.comes and is_told

    def _records(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        """The records that the edge is set aside: put for new reasons, deleted for rules that apply it again."""
        kept = self.aside if self.is_kept else {}
        for name, reason in kept.items():
            # While the node is counted anew, records are written again: another program may have removed them.
            if self.next is not None or self.was_aside.get(name) != reason:
                about = {RULE: {"S": name}, REASON: {"S": reason}, GROUP: {"S": self.ref.group.name}}
                yield Put(layout.table, aside_key(layout, name, self.ref) | named_in(self.ref) | about)
        for name in self.was_aside.keys() - kept.keys():
            yield Delete(layout.table, aside_key(layout, name, self.ref))


def _has_ranks(ledger: Ledger) -> bool:
    """Whether a ledger has contributions that are kept in order, each by a rank."""
    for value in ledger.applied.values():  # noqa: SIM110 - a generator takes twice as long; every edge comes through
        if "L" in value:
            return True
    return False


def added_up(some: Iterable[Mapping[str, AttributeValue]]) -> dict[str, AttributeValue]:
    """The sum of contributions, by rule."""
    numbers: dict[str, list[AttributeValue]] = {}
    for each in some:
        for name, value in each.items():
            numbers.setdefault(name, []).append(value)
    return {
        name: values[0] if len(values) == 1 else {"N": f"{exact_sum(Decimal(value['N']) for value in values):f}"}
        for name, values in numbers.items()
    }


def contributions(
    layout: BoundLayout, group: RuleGroup, edge: Item | None, far: Item | None = None
) -> tuple[dict[str, AttributeValue], Mapping[str, str]]:
    """Rule to what an edge contributes, and rule to the reason why that cannot be computed."""
    wanted: dict[str, AttributeValue] = {}
    aside: Mapping[str, str] = _NONE
    if edge is None:
        return wanted, aside
    ends = Ends(layout, group.hop, edge, far)
    for rule in group.rules:
        try:
            value = contribution(layout, rule, ends)
        except NEVER as problem:
            aside = {**aside, rule.name: reason_of(problem)}
            continue
        if value is not None:
            wanted[rule.name] = value
    return wanted, aside


def reason_of(problem: Exception) -> str:
    """The reason why something is set aside, as a text for people."""
    if isinstance(problem, TransactionCanceled):
        return "; ".join(reason.message or reason.code for reason in problem.reasons if reason.code != "None")
    return str(problem) if isinstance(problem, AdjoinError) else f"{type(problem).__name__}: {problem}"


def aside_key(layout: BoundLayout, rule: str, ref: EdgeRef) -> Item:
    """The key of the record that an edge is set aside for a rule."""
    return layout.ledgers.record_key("ASIDE", f"{rule}#{digest_of(ref.key)}")
