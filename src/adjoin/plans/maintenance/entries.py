"""One edge and its ledger, as they were read: what it adds now, what it added before, and the difference.

attribute of a ledger   what it holds
edge, near, far         which edge it is about
adjoin:life             the life of the near node in which it counts; in any other it is void. One that is prepared
                        counts in the present life too
applied                 rule to what was added
aside                   rule to why it is not applied
rules                   which rules it was written for
adjoin:revision         another after each write
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from types import MappingProxyType

from adjoin.errors import AdjoinError, TransactionCanceled
from adjoin.expressions import Compare, Condition, Exists, Not, Value, all_of, attribute
from adjoin.layouts.interface import LIFE, REVISION, BoundLayout
from adjoin.layouts.ledgers import digest_of
from adjoin.plans.batches import Place, place_of
from adjoin.plans.maintenance.contributions import RANK, Ends, contribution, total
from adjoin.plans.maintenance.passing import NEVER
from adjoin.plans.maintenance.references import EdgeRef, named_in
from adjoin.plans.revisions import unchanged
from adjoin.requests import Check, Delete, Put
from adjoin.rules import Rule
from adjoin.values import AttributeValue, Item

APPLIED, ASIDE, RULES = "applied", "aside", "rules"
RULE, REASON, ACCOUNT = "rule", "reason", "account"
"""The attributes of a record of what is set aside, besides those that name the edge."""
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass
class Entry:
    """What is known about one edge in one account, all read at about the same time."""

    ref: EdgeRef
    edge: Item | None
    ledger: Item | None
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
    _made: list[Put | Delete | Check] | None = None

    def work_out(self, layout: BoundLayout, refused: Mapping[str, str] = _NONE) -> None:
        """Tells what the edge adds, except by rules with which it was refused, each to why."""
        if self.edge is None:
            return
        ends = Ends(layout, self.ref.account.hop, self.edge, self.far)
        for rule in self.ref.account.rules:
            try:
                value = contribution(layout, rule, ends)
            except NEVER as problem:
                self.aside[rule.name] = reason_of(problem)
                continue
            if value is None:
                continue
            if rule.name in refused:
                self.aside[rule.name] = refused[rule.name]
            else:
                self.wanted[rule.name] = value

    @property
    def is_valid(self) -> bool:
        """Whether the ledger is of the near node's present life."""
        return self.ledger is not None and self.ledger[LIFE]["S"] in (self.life, self.next)

    @property
    def is_ahead(self) -> bool:
        """Whether the ledger is of the life that is prepared, too."""
        return self.is_valid and self.ledger is not None and self.ledger[LIFE]["S"] == self.next

    @property
    def applied(self) -> dict[str, AttributeValue]:
        """Rule to what was added, in this life."""
        return _part(self.ledger, APPLIED) if self.is_valid else {}

    @property
    def was_aside(self) -> dict[str, str]:
        return {name: reason["S"] for name, reason in _part(self.ledger, ASIDE).items()}

    @property
    def is_kept(self) -> bool:
        """Whether there must be a ledger: beside a far node also where nothing is added, to be found from there."""
        there = self.edge is not None and self.near is not None
        return there and bool(self.wanted or self.aside or self.ref.account.reads_far)

    @property
    def is_settled(self) -> bool:
        if not self.is_kept:
            return self.ledger is None
        is_stamped = self.ledger is not None and (self.ledger[LIFE], self.ledger.get(RULES)) == self._stamps
        return is_stamped and self.applied == self._after and self.was_aside == self.aside

    @property
    def _after(self) -> dict[str, AttributeValue]:
        """What the ledger holds afterwards; rules that this graph does not know are left as they are."""
        known = {rule.name for rule in self.ref.account.rules}
        return {name: value for name, value in self.applied.items() if name not in known} | self.wanted

    def joined(self, rule: Rule) -> bool:
        """Whether the edge becomes part of what a rule goes over."""
        return rule.name in self.wanted and rule.name not in self.applied

    def left(self, rule: Rule) -> bool:
        return rule.name in self.applied and rule.name not in self.wanted

    def delta(self, rule: Rule) -> Decimal:
        after, before = (each.get(rule.name, {"N": "0"}) for each in (self.wanted, self.applied))
        return total(iter((Decimal(after["N"]), Decimal(before["N"]).copy_negate())))

    @property
    def _stamps(self) -> tuple[AttributeValue, AttributeValue]:
        """The life and the rules that a ledger is written with."""
        return {"S": self.next or self.life}, {"S": self.ref.account.mark}

    def delta_ahead(self, rule: Rule) -> Decimal:
        """The difference in the life that is prepared."""
        if self.is_ahead:
            return self.delta(rule)
        return Decimal(self.wanted.get(rule.name, {"N": "0"})["N"])

    def moves(self, rule: Rule) -> bool:
        """Whether the ranks of the edge change."""
        return rule.operation != "sum" and self.applied.get(rule.name) != self.wanted.get(rule.name)

    # --- writes --------------------------------------------------------------------------------

    def writes(self, layout: BoundLayout) -> list[Put | Delete | Check]:
        """Everything but the change of the near node itself."""
        if self._made is None:
            self._made = self._make(layout)
        return self._made

    def set_aside(self, rule: Rule, reason: str) -> None:
        del self.wanted[rule.name]
        self.aside[rule.name] = reason
        self._made = None

    def _make(self, layout: BoundLayout) -> list[Put | Delete | Check]:
        table, ref = layout.table, self.ref
        writes: list[Put | Delete | Check] = []
        if self.near is not None:
            writes.append(Check(table, ref.key, _as_read(layout, self.edge, ref.account.edge_attributes)))
            if ref.account.reads_far and self.edge is not None and ref.far != ref.near:
                writes.append(Check(table, ref.far_key(layout), self.far_as_read(layout)))
        key = ref.ledger_key(layout)
        if self.is_kept:
            writes.append(Put(table, {**key, **self._ledger()}, unchanged(layout, self.ledger)))
        elif self.ledger is not None:
            writes.append(Delete(table, key, unchanged(layout, self.ledger)))
        return [*writes, *self._ranks(layout), *self._records(layout)]

    def far_as_read(self, layout: BoundLayout) -> Condition:
        return _as_read(layout, self.far, self.ref.account.far_attributes)

    def _ledger(self) -> Item:
        life, rules = self._stamps
        ledger = named_in(self.ref) | {
            LIFE: life,
            RULES: rules,
            APPLIED: {"M": self._after},
            REVISION: {"S": uuid.uuid4().hex[:16]},
        }
        if self.aside:
            ledger[ASIDE] = {"M": {name: {"S": reason} for name, reason in self.aside.items()}}
        return ledger

    def _ranks(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        # Ranks of a former life are of no use to anybody, and go with the ledger that knows them.
        lives = [self.life, self.next] if self.next is not None else [self.life]
        old = lives if self.is_ahead else [self.ledger[LIFE]["S"]] if self.ledger is not None else []
        before = dict(self._rank_items(layout, old, _part(self.ledger, APPLIED)))
        after = dict(self._rank_items(layout, lives, self._after)) if self.is_kept else {}
        for place, item in before.items():
            if place not in after:
                yield Delete(layout.table, layout.key_of(item))
        for place, item in after.items():
            if before.get(place) != item:
                yield Put(layout.table, item)

    def _rank_items(
        self, layout: BoundLayout, lives: Iterable[str | None], values: Mapping[str, AttributeValue]
    ) -> Iterator[tuple[Place, Item]]:
        for life, (name, value) in product(filter(None, lives), values.items()):
            for number, entry in enumerate(value.get("L", ())):
                key = layout.ledgers.rank_key(self.ref.near, life, name, entry["M"][RANK]["S"], self.ref.key, number)
                yield place_of(key), {**key, **entry["M"]}

    def _records(self, layout: BoundLayout) -> Iterator[Put | Delete]:
        """What is set aside is recorded for everybody to see, and no longer once it is not."""
        kept = self.aside if self.is_kept else {}
        for name, reason in kept.items():
            if self.was_aside.get(name) != reason:
                about = {RULE: {"S": name}, REASON: {"S": reason}, ACCOUNT: {"S": self.ref.account.name}}
                yield Put(layout.table, aside_key(layout, name, self.ref) | named_in(self.ref) | about)
        for name in self.was_aside.keys() - kept.keys():
            yield Delete(layout.table, aside_key(layout, name, self.ref))


def reason_of(problem: Exception) -> str:
    """Why something is set aside, for people to read."""
    if isinstance(problem, TransactionCanceled):
        return "; ".join(reason.message or reason.code for reason in problem.reasons if reason.code != "None")
    return str(problem) if isinstance(problem, AdjoinError) else f"{type(problem).__name__}: {problem}"


def aside_key(layout: BoundLayout, rule: str, ref: EdgeRef) -> Item:
    return layout.ledgers.record_key("ASIDE", f"{rule}#{digest_of(ref.key)}")


def _part(ledger: Item | None, name: str) -> dict[str, AttributeValue]:
    if ledger is None or name not in ledger:
        return {}
    part: dict[str, AttributeValue] = ledger[name]["M"]
    return part


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
