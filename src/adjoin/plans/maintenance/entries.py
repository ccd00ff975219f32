"""One edge and its ledger, as they were read: what it adds now, what it added before, and the difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from adjoin.errors import AdjoinError, TransactionCanceled
from adjoin.expressions import Compare, Condition, Exists, Not, Value, all_of, attribute
from adjoin.layouts.counted import is_of, keys_on
from adjoin.layouts.interface import LIFE, BoundLayout
from adjoin.layouts.ledgers import digest_of
from adjoin.plans.maintenance.contributions import Ends, contribution, total
from adjoin.plans.maintenance.ledger import WAITING, Ledger, LedgerWrite, ledger_in, ledger_write
from adjoin.plans.maintenance.passing import NEVER
from adjoin.plans.maintenance.rank_items import Moves, Rank, base_of, moves, ranks_of
from adjoin.plans.maintenance.references import EdgeRef, named_in
from adjoin.requests import Check, Delete, Put, Update
from adjoin.rules import Account, Rule
from adjoin.values import AttributeValue, Item

RULE, REASON, ACCOUNT = "rule", "reason", "account"
"""The attributes of a record of what is set aside, besides those that name the edge."""
_NONE: Mapping[str, str] = MappingProxyType({})
_NOTHING: Mapping[str, AttributeValue] = MappingProxyType({})
_ZERO: AttributeValue = {"N": "0"}
_NO_LEDGER = Ledger(WAITING, {}, {})


AnyWrite: TypeAlias = Put | Update | Delete | Check | LedgerWrite


@dataclass
class Entry:
    """What is known about one edge in one account, all read at about the same time."""

    ref: EdgeRef
    edge: Item | None
    item: Item | None
    """The item of its ledger."""
    near: Item | None
    far: Item | None
    life: str
    """The life of the near node; a new one where it has none yet."""
    next: str | None = None
    """The life that a recount prepares; what is counted meanwhile counts in both."""
    wanted: dict[str, AttributeValue] = field(default_factory=dict)
    """Rule to what the edge adds."""
    aside: dict[str, str] = field(default_factory=dict)
    """Rule to why the edge cannot be applied."""
    foreign: frozenset[str] = frozenset()
    """Rules whose value on the near node is of another declaration; they count in the life that is prepared alone."""
    forgets: bool = False
    """Whether what the ledger says of rules that this graph does not know is forgotten."""
    ledger: Ledger | None = None
    has_ranks_within: bool = False
    """Whether ranks are put and deleted in the transaction, and not before and after it."""
    spare: Sequence[Rank] = ()
    """Ranks that were put before, for a transaction like this one."""
    ranks: Moves = field(default_factory=Moves)
    """What becomes of its ranks; told with the writes."""
    _made: list[AnyWrite] | None = None

    def __post_init__(self) -> None:
        self.ledger = ledger_in(self.ref.account, self.item)

    def work_out(self, layout: BoundLayout, refused: Mapping[str, str] = _NONE) -> None:
        """Tells what the edge adds, except by rules with which it was refused, each to why."""
        self.wanted, self.aside = contributions(layout, self.ref.account, self.edge, self.far)
        self.forgets = layout.rules.is_forgetting
        if self.near is not None and LIFE in self.near:
            rules, near = layout.rules, self.near
            self.foreign = frozenset(rule.name for rule in self.ref.account.rules if not is_of(rules, rule, near))
        for name in refused.keys() & self.wanted.keys():
            del self.wanted[name]
            self.aside[name] = refused[name]

    @property
    def is_valid(self) -> bool:
        """Whether the ledger is of the near node's present life."""
        return self.ledger is not None and self.ledger.life in (self.life, self.next)

    @property
    def is_ahead(self) -> bool:
        """Whether the ledger is of the life that is prepared, too."""
        return self.ledger is not None and self.next is not None and self.ledger.life == self.next

    @property
    def applied(self) -> Mapping[str, AttributeValue]:
        """Rule to what was added, in this life."""
        return self.ledger.applied if self.ledger is not None and self.is_valid else _NOTHING

    @property
    def was_aside(self) -> Mapping[str, str]:
        return _NONE if self.ledger is None else self.ledger.aside

    @property
    def is_kept(self) -> bool:
        """Whether there must be a ledger: beside a far node also where nothing is added, to be found from there."""
        there = self.edge is not None and self.near is not None
        return there and bool(self.wanted or self.aside or self.ref.account.reads_far)

    @property
    def is_waiting(self) -> bool:
        """Whether its ledger says that it waits for a node at its target, which finds it by that."""
        account = self.ref.account
        is_counted = self.near is None and self.edge is not None and bool(self.wanted or self.aside)
        return is_counted and not account.reads_far and account.hop.direction == "into"

    @property
    def is_settled(self) -> bool:
        after, ledger = self.after, self.ledger
        if ledger is None or after is None:
            return ledger is after
        is_of_rules = not self.ref.account.reads_far or ledger.mark == self.ref.account.mark
        return is_of_rules and (ledger.life, ledger.applied, ledger.aside) == (after.life, after.applied, after.aside)

    @property
    def after(self) -> Ledger | None:
        """What the ledger should say."""
        if self.is_kept:
            return Ledger(self.next or self.life, self._after, self.aside)
        return Ledger(WAITING, {}, {}) if self.is_waiting else None

    @property
    def comes(self) -> bool:
        """Whether it gets a ledger, of which there was none."""
        return self.ledger is None and self.is_kept

    @property
    def goes(self) -> bool:
        """Whether its ledger goes."""
        return self.ledger is not None and self.after is None

    @property
    def _after(self) -> dict[str, AttributeValue]:
        """What the ledger holds afterwards; rules that this graph does not know are left as they are.

        They are forgotten where the node was counted by others since.
        """
        foreign = self.foreign if self.next is None else frozenset()
        if not self.applied and not foreign:
            return self.wanted
        known, kept = self.ref.account.keys, keys_on(self.near or {}) if self.next is None else None
        if self.forgets and self.next is None:
            kept = kept or set()
        left = {
            name: value
            for name, value in self.applied.items()
            if name in foreign or (name not in known and (kept is None or name in kept))
        }
        return left | {name: value for name, value in self.wanted.items() if name not in foreign}

    def joined(self, rule: Rule) -> bool:
        """Whether the edge becomes part of what a rule goes over."""
        return rule.name not in self.foreign and rule.name in self.wanted and rule.name not in self.applied

    def left(self, rule: Rule) -> bool:
        return rule.name not in self.foreign and rule.name in self.applied and rule.name not in self.wanted

    def delta(self, rule: Rule) -> Decimal:
        return Decimal(0) if rule.name in self.foreign else self._difference(rule)

    def _difference(self, rule: Rule) -> Decimal:
        after, before = self.wanted.get(rule.name, _ZERO), self.applied.get(rule.name, _ZERO)
        return total(iter((Decimal(after["N"]), Decimal(before["N"]).copy_negate())))

    def delta_ahead(self, rule: Rule) -> Decimal:
        """The difference in the life that is prepared."""
        if self.is_ahead:
            return self._difference(rule)
        return Decimal(self.wanted.get(rule.name, _ZERO)["N"])

    def moves(self, rule: Rule) -> bool:
        """Whether the ranks of the edge change."""
        is_own = rule.operation != "sum" and rule.name not in self.foreign
        return is_own and self.applied.get(rule.name) != self.wanted.get(rule.name)

    # --- writes --------------------------------------------------------------------------------

    def writes(self, layout: BoundLayout) -> list[AnyWrite]:
        """Everything but the change of the near node itself."""
        if self._made is None:
            self._made = self._make(layout)
        return self._made

    def set_aside(self, rule: Rule, reason: str) -> None:
        del self.wanted[rule.name]
        self.aside[rule.name] = reason
        self.ranks, self._made = Moves(), None

    def renew(self) -> None:
        """Forgets the writes, and ranks that were put for them."""
        self.spare, self._made = (), None

    def _make(self, layout: BoundLayout) -> list[AnyWrite]:
        table, ref = layout.table, self.ref
        writes: list[AnyWrite] = []
        # Nothing is left on a node that is not there for who saw the edge before it went.
        if ref.account.is_checked if self.near is not None else self.is_waiting:
            writes.append(Check(table, ref.key, _as_read(layout, self.edge, ref.account.edge_attributes)))
            if ref.account.reads_far and self.edge is not None and ref.far != ref.near:
                writes.append(Check(table, ref.far_key(layout), self.far_as_read(layout)))
        self.ranks = Moves()
        if not self.is_settled:
            after = self.after
            self.ranks = self._moves(after)
            if after is not None:
                after = replace(after, tokens=self.ranks.tokens)
            writes.append(ledger_write(layout, ref, ref.ledger_key(layout), self.item, after))
        return [*writes, *self._rank_writes(layout), *self._records(layout)]

    def far_as_read(self, layout: BoundLayout) -> Condition:
        return _as_read(layout, self.far, self.ref.account.far_attributes)

    def _moves(self, after: Ledger | None) -> Moves:
        before, after = self.ledger or _NO_LEDGER, after or _NO_LEDGER
        if not any("L" in value for each in (before, after) for value in each.applied.values()):
            return Moves()
        keys = self.ref.account.keys
        # Ranks of a former life are of no use to anybody, and go with the ledger that knows them.
        there = ranks_of(before, self.life if self.is_ahead else None, keys)
        return moves(after, self.life if self.next is not None else None, keys, there, self.spare)

    def _rank_writes(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        """The ranks that are put and deleted in the transaction."""
        made, is_within = self.ranks, self.has_ranks_within
        for rank in (*made.together, *(made.deletes if is_within else ())):
            yield Delete(layout.table, rank.key(layout, self.ref))
        for rank in made.puts if is_within else ():
            yield Put(layout.table, self.rank_item(layout, rank, self.near))

    def rank_item(self, layout: BoundLayout, rank: Rank, near: Item | None) -> Item:
        """A rank that is put for a transaction which asks for what the near node is by then."""
        return rank.item(layout, self.ref, self.base(near))

    def base(self, near: Item | None) -> AttributeValue | None:
        return base_of(self.ref.account, self.item, near)

    @property
    def is_held_by_departures(self) -> bool:
        """Whether it gets a ledger only if no edge has left the node since it was read."""
        is_told = not self.ref.account.is_checked or (bool(self.ranks.tokens) and not self.has_ranks_within)
        return self.comes and is_told

    def _records(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        """What is set aside is recorded for everybody to see, and no longer once it is not."""
        kept = self.aside if self.is_kept else {}
        for name, reason in kept.items():
            if self.was_aside.get(name) != reason:
                about = {RULE: {"S": name}, REASON: {"S": reason}, ACCOUNT: {"S": self.ref.account.name}}
                yield Put(layout.table, aside_key(layout, name, self.ref) | named_in(self.ref) | about)
        for name in self.was_aside.keys() - kept.keys():
            yield Delete(layout.table, aside_key(layout, name, self.ref))


def contributions(
    layout: BoundLayout, account: Account, edge: Item | None, far: Item | None = None
) -> tuple[dict[str, AttributeValue], dict[str, str]]:
    """Rule to what an edge adds, and rule to why that cannot be told."""
    wanted: dict[str, AttributeValue] = {}
    aside: dict[str, str] = {}
    if edge is None:
        return wanted, aside
    ends = Ends(layout, account.hop, edge, far)
    for rule in account.rules:
        try:
            value = contribution(layout, rule, ends)
        except NEVER as problem:
            aside[rule.name] = reason_of(problem)
            continue
        if value is not None:
            wanted[rule.name] = value
    return wanted, aside


def reason_of(problem: Exception) -> str:
    """Why something is set aside, for people to read."""
    if isinstance(problem, TransactionCanceled):
        return "; ".join(reason.message or reason.code for reason in problem.reasons if reason.code != "None")
    return str(problem) if isinstance(problem, AdjoinError) else f"{type(problem).__name__}: {problem}"


def aside_key(layout: BoundLayout, rule: str, ref: EdgeRef) -> Item:
    return layout.ledgers.record_key("ASIDE", f"{rule}#{digest_of(ref.key)}")


def _as_read(layout: BoundLayout, item: Item | None, names: tuple[str, ...]) -> Condition:
    """Holds as long as an item is there, or not, with these attributes."""
    if item is None:
        return Not(layout.present)
    same = (
        Compare("=", attribute(name), Value(item[name])) if name in item else Not(Exists(attribute(name)))
        for name in names
    )
    condition = all_of(layout.present, *same)
    assert condition is not None
    return condition
