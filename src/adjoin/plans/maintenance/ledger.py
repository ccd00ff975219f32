"""The ledger of an edge, as it is stored: what it has added to the nodes at its ends.

One item is for both ends, each with a part of its own, so that either is written without the other. It lies beside the
edge, so that the ledgers of a celebrity are spread; or beside the target, where something is counted there, so that
what arrives at a node is found from it by a strongly consistent query. Rules are named by their keys, which are short,
and tell one declaration from another under the same name.

attribute     what it holds
o, i          the part for the node at the source, and for the one at the target: a map
    l         the life of the node in which it counts; in any other it is void, and so it is where there is no node
    r         another after each write
    a rule    what was added: a number, or a list of values in order, each with
        t         the token of its rank in this life
        u         the same in the life before, as long as this one is prepared
    a         rule to why it is not applied
s             how long the partition key of the edge is, beside a target
e             the key of the edge, where that of the ledger had to be shortened
t             the partition key of the target, where neither of them tells it

Rules that read the far end have a ledger each beside the node there, to be found from it:

attribute               what it holds
edge, near, far         which edge it is about
adjoin:life             as `l`
applied                 rule to what was added
aside                   rule to why it is not applied
rules                   which rules it was written for
adjoin:revision         as `r`
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from adjoin.expressions import Action, Compare, Condition, Exists, Not, Path, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import LIFE, REVISION, BoundLayout
from adjoin.plans.maintenance.references import EdgeRef, named_in
from adjoin.requests import Check, Delete, Put, Update
from adjoin.rules import Account, Rule
from adjoin.values import AttributeValue, Item

APPLIED, ASIDE, RULES = "applied", "aside", "rules"
PARTS = "o", "i"
_LIFE, _REVISION, _ASIDE = "l", "r", "a"
LENGTH, TARGET = "s", "t"
SHORTENED = "e"
WAITING = "-"
"""The life of a part for a node that is not there."""
TOKEN, FORMER = "t", "u"
"""The attributes of a value in order that name its ranks, in the life of the ledger and in the one before."""
LEFT = "adjoin:left"
"""The attribute of a node that counts how often an edge stopped adding to it.

An edge without a ledger is counted only if this is what it was before the edge was read. So nobody counts an edge that
he saw before it went, however late he comes.
"""
Tokens: TypeAlias = tuple[str | None, str | None]
"""The tokens of a value in order, in the life of its ledger and in the one before; None for a rank without one."""


def new_token() -> str:
    """A short text that nobody has had before: 48 bits at random."""
    return secrets.token_urlsafe(6)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What one account has taken down about one edge."""

    life: str
    applied: Mapping[str, AttributeValue]
    """Rule to what was added; one that this graph does not know by the name it is stored under."""
    aside: Mapping[str, str]
    """Rule to why it is not applied."""
    mark: str | None = None
    """Which rules it was written for, where the names do not tell."""
    tokens: Mapping[str, Sequence[Tokens]] = field(default_factory=dict)
    """Rule to the tokens of its values in order, one by one."""

    @property
    def names(self) -> set[str]:
        """The tokens of all ranks that count by it."""
        return {token for some in self.tokens.values() for pair in some for token in pair if token is not None}


def ledger_in(account: Account, item: Item | None) -> Ledger | None:
    """What an item says about an account; None where it says nothing, or nothing that can be read."""
    if item is None:
        return None
    if account.reads_far:
        return _far_ledger(account, item)
    part: dict[str, AttributeValue] | None = item.get(account.part, {}).get("M")
    if part is None or _LIFE not in part:
        return None
    names = account.by_key
    applied = {names.get(key, key): value for key, value in part.items() if key not in (_LIFE, _REVISION, _ASIDE)}
    aside = {names.get(key, key): reason["S"] for key, reason in part[_ASIDE]["M"].items()} if _ASIDE in part else {}
    tokens = _taken_out(applied)
    return Ledger(part[_LIFE]["S"], applied, aside, tokens=tokens)


def _taken_out(applied: dict[str, AttributeValue]) -> dict[str, Sequence[Tokens]]:
    """The tokens of values in order, which are left without them: they are no part of what an edge adds."""
    tokens: dict[str, Sequence[Tokens]] = {}
    for name, value in applied.items():
        if "L" in value:
            entries = [dict(entry["M"]) for entry in value["L"]]
            tokens[name] = [(_token(entry, TOKEN), _token(entry, FORMER)) for entry in entries]
            applied[name] = {"L": [{"M": entry} for entry in entries]}
    return tokens


def _token(entry: dict[str, AttributeValue], name: str) -> str | None:
    found = entry.pop(name, None)
    return None if found is None else found["S"]


def _stored(ledger: Ledger, keys: Mapping[str, str]) -> dict[str, AttributeValue]:
    """What was added, by the keys of rules, with the tokens of values in order."""
    stored: dict[str, AttributeValue] = {}
    for name, value in ledger.applied.items():
        if tokens := ledger.tokens.get(name):
            pairs = zip(value["L"], tokens, strict=True)
            value = {"L": [{"M": {**entry["M"], **_token_attributes(pair)}} for entry, pair in pairs]}
        stored[keys.get(name, name)] = value
    return stored


def _token_attributes(tokens: Tokens) -> Item:
    return {name: {"S": token} for name, token in zip((TOKEN, FORMER), tokens, strict=True) if token is not None}


def revision_of(account: Account, item: Item | None) -> AttributeValue | None:
    """What an account's part of a ledger has another of after each write; None where there is no such part."""
    if account.reads_far:
        return (item or {}).get(REVISION)
    revision: AttributeValue | None = (item or {}).get(account.part, {}).get("M", {}).get(_REVISION)
    return revision


def has_part(account: Account, item: Item | None) -> bool:
    """Whether an item says anything about an account."""
    return item is not None and (account.reads_far or account.part in item)


def life_want(account: Account) -> tuple[str, ...]:
    """Where an item of a ledger holds the life of an account's part, as a path of stored values."""
    return account.part, "M", _LIFE, "S"


def rule_want(account: Account, rule: Rule) -> tuple[str, ...]:
    """Where it holds what was added by a rule."""
    return account.part, "M", rule.key


def _far_ledger(account: Account, item: Item) -> Ledger:
    names = account.by_key
    applied = {names.get(key, key): value for key, value in item[APPLIED]["M"].items()}
    aside = {names.get(key, key): reason["S"] for key, reason in item[ASIDE]["M"].items()} if ASIDE in item else {}
    mark = item[RULES]["S"] if RULES in item else None
    tokens = _taken_out(applied)
    return Ledger(item[LIFE]["S"], applied, aside, mark, tokens)


def edge_of(layout: BoundLayout, item: Item) -> Item:
    """The key of the edge that a ledger is of."""
    if SHORTENED in item:
        key: Item = item[SHORTENED]["M"]
        return key
    return layout.ledgers.edge_key(item, int(item[LENGTH]["N"]) if LENGTH in item else None)


def ref_beside(layout: BoundLayout, account: Account, item: Item) -> EdgeRef:
    """The edge that a ledger is of."""
    key = edge_of(layout, item)
    source = next(iter(key.values()))["S"]
    if account.is_at_target:
        target = layout.ledgers.node_beside(item)
    else:
        target = item[TARGET]["S"] if TARGET in item else layout.ends(account.edge, key)[1]
    near, far = (source, target) if account.hop.direction == "out" else (target, source)
    return EdgeRef(account, key, near, far)


@dataclass(frozen=True, slots=True)
class LedgerWrite:
    """A change of some parts of a ledger beside an edge, before it is known whether it is a put, an update or a delete.

    An item is in a transaction once, and the parts of both ends may be.
    """

    table: str
    key: Item
    there: Item | None
    """The whole item as it was read."""
    parts: Mapping[str, AttributeValue | None]
    """What parts become; None for one that goes."""
    names: Item = field(default_factory=dict)
    """What tells the edge, where the key does not."""
    held: frozenset[str] = frozenset()
    """Parts that must stay what they are."""
    is_shared: bool = False
    """Whether another part may have come since."""

    @property
    def condition(self) -> Condition:
        found = all_of(*(_part_as_read(self.there, part) for part in sorted({*self.parts, *self.held})))
        assert found is not None
        return found

    @property
    def whole(self) -> Item:
        """The item as it would be made where there is none."""
        return {**self.key, **self.names, **{part: value for part, value in self.parts.items() if value is not None}}

    def joined(self, other: LedgerWrite) -> LedgerWrite:
        parts = {**self.parts, **other.parts}
        return replace(self, parts=parts, names={**self.names, **other.names}, held=self.held | other.held)

    def request(self, layout: BoundLayout) -> Put | Update | Delete | Check:
        if not self.parts:
            return Check(self.table, self.key, self.condition)
        there = {part: self.there[part] for part in PARTS if part in self.there} if self.there else {}
        left = {part: value for part, value in {**there, **self.parts}.items() if value is not None}
        if self.there is None and not self.is_shared:
            return Put(self.table, {**self.key, **self.names, **left}, Not(layout.present))
        others = [part for part in PARTS if part not in self.parts and part not in self.held]
        if not left:
            gone = (Not(Exists(attribute(part))) for part in others)
            return Delete(self.table, self.key, all_of(self.condition, *gone))
        actions: list[Action] = [Set(attribute(name), Value(value)) for name, value in self.names.items()]
        for part, value in self.parts.items():
            actions.append(Remove(attribute(part)) if value is None else Set(attribute(part), Value(value)))
        # An item of which nothing is left goes; whoever takes the last part knows that it is the last.
        stay = [part for part in others if part in there] if None in self.parts.values() else []
        return Update(
            self.table,
            self.key,
            tuple(actions),
            all_of(self.condition, *(Exists(attribute(part)) for part in stay)),
        )


def ledger_write(
    layout: BoundLayout,
    ref: EdgeRef,
    key: Item,
    there: Item | None,
    ledger: Ledger | None,
) -> LedgerWrite | Put | Delete:
    """What makes a ledger what it should be, as long as it is what was read; None where it goes."""
    account = ref.account
    if account.reads_far:
        condition = _far_as_read(layout, there)
        if ledger is None:
            return Delete(layout.table, key, condition)
        return Put(layout.table, {**key, **_far_item(ref, ledger)}, condition)
    part = None if ledger is None else _part(account, ledger)
    # Where its part is new: the other one may be the last and go, with the item, before this is written.
    names = {} if there is not None and account.part in there else _names(layout, ref, key)
    return LedgerWrite(layout.table, key, there, {account.part: part}, names, is_shared=account.is_shared)


def ledger_held(layout: BoundLayout, ref: EdgeRef, key: Item, there: Item | None) -> LedgerWrite | Check:
    """What makes sure that a ledger stays what was read."""
    if ref.account.reads_far:
        return Check(layout.table, key, _far_as_read(layout, there))
    return LedgerWrite(layout.table, key, there, {}, held=frozenset((ref.account.part,)))


def ledger_touched(layout: BoundLayout, ref: EdgeRef, key: Item, there: Item) -> Update:
    """What makes a ledger another without changing what it says, for those who read it before."""
    account = ref.account
    path = attribute(REVISION) if account.reads_far else Path((account.part, _REVISION))
    condition = _far_as_read(layout, there) if account.reads_far else _part_as_read(there, account.part)
    return Update(layout.table, key, (Set(path, Value({"S": new_token()})),), condition)


def _part(account: Account, ledger: Ledger) -> AttributeValue:
    keys = account.keys
    stored: dict[str, Any] = {_LIFE: {"S": ledger.life}, _REVISION: {"S": new_token()}, **_stored(ledger, keys)}
    if ledger.aside:
        stored[_ASIDE] = {"M": {keys.get(name, name): {"S": reason} for name, reason in ledger.aside.items()}}
    return {"M": stored}


def _names(layout: BoundLayout, ref: EdgeRef, key: Item) -> Item:
    """What tells the edge, besides the key of the ledger."""
    names: Item = {}
    partition, sort = (part["S"] for part in ref.key.values())
    if sort not in [*key.values()][1]["S"]:
        names[SHORTENED] = {"M": dict(ref.key)}
    if ref.account.is_at_target:
        names[LENGTH] = {"N": str(len(partition))}
    if not ref.account.is_at_target and "target.id" not in layout.key_templates(ref.account.edge).sort.told:
        names[TARGET] = {"S": ref.target}
    return names


def _part_as_read(there: Item | None, part: str) -> Condition:
    value = (there or {}).get(part)
    if value is None:
        return Not(Exists(attribute(part)))
    revision = value.get("M", {}).get(_REVISION)
    if revision is None:
        return Compare("=", attribute(part), Value(value))
    return Compare("=", Path((part, _REVISION)), Value(revision))


def _far_item(ref: EdgeRef, ledger: Ledger) -> Item:
    keys = ref.account.keys
    item = named_in(ref) | {
        LIFE: {"S": ledger.life},
        RULES: {"S": ref.account.mark},
        APPLIED: {"M": _stored(ledger, keys)},
        REVISION: {"S": new_token()},
    }
    if ledger.aside:
        item[ASIDE] = {"M": {keys.get(name, name): {"S": reason} for name, reason in ledger.aside.items()}}
    return item


def _far_as_read(layout: BoundLayout, there: Item | None) -> Condition:
    if there is None:
        return Not(layout.present)
    return Compare("=", attribute(REVISION), Value(there[REVISION]))
