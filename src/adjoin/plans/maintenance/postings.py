"""Entries for one near node, put together into transactions: one change of the node for all of them.

A node that many edges count for is written once a transaction, with the sum of what they add. The
transaction holds only in the life of the node that was read, and as long as each edge, each ledger and
each node at a far end is what was read. So it is true at the instant it happens.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from adjoin.errors import InvalidKey, InvalidValue, TransactionCanceled
from adjoin.expressions import Action, Add, And, Compare, Condition, Exists, Not, Remove, Set, Value, all_of, attribute
from adjoin.layouts.counted import COUNTED, at_birth
from adjoin.layouts.interface import LIFE, NEXT, REVISION, BoundLayout
from adjoin.layouts.ledgers import rank_text
from adjoin.plans.batches import Place, place_of
from adjoin.plans.maintenance.contributions import RANK, VALUE, total
from adjoin.plans.maintenance.entries import AnyWrite, Entry
from adjoin.plans.maintenance.ledger import LEFT, LedgerWrite, new_token
from adjoin.requests import Check, Delete, Put, TransactWrite, Update
from adjoin.rules import Rule
from adjoin.schema import NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item, canonical_number

STALE = "adjoin:stale"
"""The attribute of a node with the rules whose least, greatest or latest values have to be read anew."""
TURN = "adjoin:turn"
"""The attribute of a node that counts changes of its ranks."""
FULL = "adjoin:full"
"""The attribute of a node with the rules for whose values it has no room; there is a record of it then."""
MARKED = "marked"
PREPARED = f"{NEXT}:"
"""What the names of attributes begin with that hold sums in a life that is prepared."""


def new_revision() -> AttributeValue:
    return {"S": uuid.uuid4().hex[:16]}


_Told: TypeAlias = dict[str, tuple[str, AttributeValue]]
"""Rule to attribute and value, for those whose first values are known without reading ranks."""


def acted(item: Item, actions: Iterable[Action]) -> Item:
    """An item after actions of the kinds that are used here."""
    item = dict(item)
    for action in actions:
        name = str(action.path.steps[0])
        if isinstance(action, Set) and isinstance(action.value, Value):
            item[name] = action.value.attribute
        elif isinstance(action, Remove):
            item.pop(name, None)
        elif isinstance(action, Add) and "SS" in action.value:
            item[name] = {"SS": sorted({*item.get(name, {"SS": ()})["SS"], *action.value["SS"]})}
        elif isinstance(action, Add):
            before = Decimal(item.get(name, {"N": "0"})["N"])
            item[name] = {"N": canonical_number(total(iter((before, Decimal(action.value["N"])))))}
    return item


@dataclass
class Near:
    """A node that edges count for, as it was read."""

    kind: NodeType
    text: str
    key: Item
    item: Item | None
    life: str = ""
    is_new: bool = False
    """Whether this is its first life, which the first transaction writes down."""
    next: str | None = None
    """The life that a recount prepares."""
    revision: AttributeValue = field(default_factory=new_revision)
    """What its revision is set to next."""

    def __post_init__(self) -> None:
        stored = (self.item or {}).get(LIFE)
        self.life = stored["S"] if stored else new_token()
        self.is_new = stored is None
        prepared = (self.item or {}).get(NEXT)
        self.next = prepared["S"] if prepared and not self.is_new else None

    def same(self, name: str) -> Condition:
        """Holds as long as an attribute is what was read."""
        value, path = (self.item or {}).get(name), attribute(name)
        return Not(Exists(path)) if value is None else Compare("=", path, Value(value))

    @property
    def alive(self) -> Condition:
        """Holds in the life that was read, and in the one that was prepared then."""
        if self.is_new:
            return Not(Exists(attribute(LIFE)))
        path = attribute(NEXT)
        prepared = Not(Exists(path)) if self.next is None else Compare("=", path, Value({"S": self.next}))
        return And((Compare("=", attribute(LIFE), Value({"S": self.life})), prepared))

    def changed(self, actions: Iterable[Action]) -> None:
        """Takes down that a transaction changed the node."""
        self.is_new = False
        self.item = acted(self.item or {}, actions)
        self.revision = new_revision()


@dataclass
class Posting:
    """One transaction, and the entries that it settles."""

    near: Near
    entries: list[Entry] = field(default_factory=list)
    writes: dict[Place, AnyWrite] = field(default_factory=dict)
    beyond: list[AnyWrite] = field(default_factory=list)
    """What else belongs into the transaction: the order of recursive rules."""
    actions: tuple[Action, ...] = ()
    """What the transaction does to the node, once it was asked for."""
    is_direct: bool = True
    """Whether a least or greatest value may be told from the one that is there, as long as that stays."""

    def write_down(self, layout: BoundLayout) -> None:
        """Makes the writes of the entries."""
        self.writes = {}
        for entry in self.entries:
            for write in entry.writes(layout):
                place = place_of(write_key(layout, write))
                self.writes[place] = merged(self.writes.get(place), write)

    def all_writes(self, layout: BoundLayout) -> list[AnyWrite]:
        """What the transaction does; asked for when the ones before it for the same node have happened."""
        writes = [*self.writes.values(), *self.beyond]
        near = self.near
        if near.item is None:
            marker = layout.ledgers.marker_key(near.text) | {MARKED: {"S": uuid.uuid4().hex[:16]}}
            if any(map(waits, self.entries)):
                # Always another one, so that nobody removes it who looked for edges before.
                writes += [Check(layout.table, near.key, Not(layout.present)), Put(layout.table, marker)]
            return writes
        changes = self.changes()
        replaced = self._replaced(changes)
        moved = {rule.name: rule for entry in self.entries for rule in moving(entry)}
        told = self._told(moved)
        wanted = all_of(layout.present, near.alive, *self._own_checks(layout, replaced, told))
        assert wanted is not None
        self.actions = actions = tuple(self._actions(layout, changes, replaced, moved, told))
        if not actions:
            return [*writes, Check(layout.table, near.key, wanted)]
        copies = copies_of(layout, near)
        return [*writes, Update(layout.table, near.key, actions, wanted), *_updates(layout, copies, actions)]

    def places(self, layout: BoundLayout) -> tuple[set[Place], set[Place]]:
        """The items that it writes, which no other transaction may write at the same time, and those that it checks."""
        near, own = self.near, place_of(self.near.key)
        held = {place for place, write in self.writes.items() if not isinstance(write, Check)}
        if near.item is not None:
            held |= {own, *map(place_of, copies_of(layout, near))}
        elif any(map(waits, self.entries)):
            return held | {place_of(layout.ledgers.marker_key(near.text))}, {*self.writes, own} - held
        return held, self.writes.keys() - held

    def _own_checks(
        self, layout: BoundLayout, replaced: Mapping[str, AttributeValue], told: _Told
    ) -> Iterator[Condition]:
        """A node at the far end of an edge to itself cannot be checked apart."""
        for entry in self.entries:
            if entry.ref.account.reads_far and entry.edge is not None and entry.ref.far == entry.ref.near:
                yield entry.far_as_read(layout)
        yield from (Compare("=", attribute(name), Value(value)) for name, value in replaced.items())
        if told:
            yield self.near.same(TURN)
        if any(entry.is_held_by_departures for entry in self.entries):
            yield self.near.same(LEFT)
        if layout.copy_keys(self.near.kind, self.near.key):
            # Somebody may give the node another copy meanwhile, which would not have what is written here.
            yield self.near.same(REVISION)

    def changes(self) -> dict[str, Decimal]:
        """What is added to which sum, in the present life and in the one that is prepared."""
        deltas: dict[str, list[Decimal]] = {}
        for entry in self.entries:
            for rule in entry.ref.account.rules:
                if rule.operation == "sum":
                    deltas.setdefault(rule.attribute, []).append(entry.delta(rule))
                    if self.near.next is not None:
                        deltas.setdefault(prepared_sum(rule), []).append(entry.delta_ahead(rule))
        return {name: change for name, some in deltas.items() if (change := total(iter(some)))}

    def _actions(
        self,
        layout: BoundLayout,
        changes: Mapping[str, Decimal],
        replaced: Mapping[str, AttributeValue],
        moved: Mapping[str, Rule],
        told: _Told,
    ) -> Iterator[Action]:
        stale = sorted(name for name in moved if name not in told)
        if self.near.is_new:
            # Nothing was counted yet, whatever somebody else may have left there.
            rules = [rule for rule in layout.rules.declared if rule.node is self.near.kind]
            known = {*changes, *(stale_rule.attribute for stale_rule in rules if stale_rule.name in told)}
            yield from (Remove(attribute(rule.attribute)) for rule in rules if rule.attribute not in known)
        for name, change in changes.items():
            path, before = attribute(name), replaced.get(name, {}).get("N", "0")
            if self.near.is_new:
                yield Set(path, Value({"N": canonical_number(change)}))
            elif name in replaced:
                yield Set(path, Value({"N": canonical_number(total(iter((Decimal(before), change))))}))
            else:
                yield Add(path, {"N": canonical_number(change)})
        yield from (Set(attribute(name), Value(value)) for name, value in told.values())
        if stale:
            yield Add(attribute(STALE), {"SS": stale})
        if moved:
            yield Add(attribute(TURN), {"N": "1"})
        left = any(entry.goes for entry in self.entries)
        if left:
            yield Add(attribute(LEFT), {"N": "1"})
        if self.near.is_new:
            yield Set(attribute(LIFE), Value({"S": self.near.life}))
            if (named := at_birth(layout.rules, self.near.kind)) is not None:
                yield Set(attribute(COUNTED), Value(named))
        if (changes or moved or left or self.near.is_new) and revises(layout, self.near.kind):
            yield Set(attribute(REVISION), Value(self.near.revision))

    def _replaced(self, changes: Mapping[str, Decimal]) -> dict[str, AttributeValue]:
        """The sums that are written anew, as they are now, because nothing can be added to them.

        What somebody else wrote where a number is kept counts as nothing, so that it holds nothing up. And a
        difference may have more digits than a number, between two sums that have not.
        """
        item = self.near.item or {}
        names = {rule.attribute for each in self.entries for rule in each.ref.account.rules if rule.operation == "sum"}
        too_long = {name for name, change in changes.items() if not _is_number(change)}
        return {
            name: item[name]
            for name in names | too_long
            if name in item and ("N" not in item[name] or name in too_long)
        }

    def _told(self, moved: Mapping[str, Rule]) -> _Told:
        """What is known without reading ranks, of rules by which ranks move."""
        told = {}
        for name, rule in moved.items():
            if rule.operation in _TOLD and self.is_direct:
                value = first_values(rule, self.near, [each for each in self.entries if rule in each.ref.account.rules])
                if value is not None:
                    told[name] = rule.attribute, value
        return told

    def took_place(self) -> bool:
        """Takes down that the transaction happened; says whether the node changed."""
        if self.actions:
            self.near.changed(self.actions)
        return bool(self.actions)


def unstorable_sums(posting: Posting) -> list[str]:
    """The rules by which edges add to sums that no number holds exactly then."""
    near, changes = posting.near, posting.changes()
    item = near.item or {}

    def is_storable(name: str) -> bool:
        before = Decimal(0 if near.is_new else item.get(name, {}).get("N", 0))
        return name not in changes or _is_number(total(iter((before, changes[name]))))

    rules = {
        rule.name: rule for entry in posting.entries for rule in entry.ref.account.rules if rule.name in entry.wanted
    }
    return [
        name
        for name, rule in rules.items()
        if rule.operation == "sum" and not (is_storable(rule.attribute) and is_storable(prepared_sum(rule)))
    ]


def _is_number(change: Decimal) -> bool:
    try:
        canonical_number(change)
    except InvalidValue:
        return False
    return True


def prepared_sum(rule: Rule) -> str:
    """Where the sum of a rule is kept in a life that is prepared."""
    return f"{PREPARED}{rule.key}"


def moving(entry: Entry) -> list[Rule]:
    """The rules by which the ranks of an edge change."""
    return [rule for rule in entry.ref.account.rules if entry.moves(rule)]


def first_values(rule: Rule, near: Near, entries: Sequence[Entry]) -> AttributeValue | None:
    """The least or greatest value, or the top ones, after these changes; None if only the ranks can tell."""
    item = {} if near.is_new else near.item or {}
    shown = item.get(rule.attribute)
    before = {rank for entry in entries if entry.moves(rule) for rank, _ in ranked(entry.applied.get(rule.name))}
    after = [pair for entry in entries if entry.moves(rule) for pair in ranked(entry.wanted.get(rule.name))]
    if rule.name in item.get(STALE, {"SS": ()})["SS"] or FULL in item or (before and shown is None):
        return None
    values = [] if shown is None else shown.get("L", ()) if rule.operation == "top" else [shown]
    try:
        current = [(rank_text(value), value) for value in values]
    except InvalidKey:
        # Somebody else wrote it; the ranks know better.
        return None
    if any(rank in before for rank, _ in current):
        return None
    first = sorted((*current, *after), key=lambda pair: pair[0], reverse=rule.operation != "min")
    if not first:
        return None
    return {"L": [value for _, value in first[: rule.k]]} if rule.operation == "top" else first[0][1]


_TOLD = {"min", "max", "top"}
"""The operations whose values on a node tell what becomes of them when others come."""


def ranked(value: AttributeValue | None) -> list[tuple[str, AttributeValue]]:
    """The entries of what an edge adds, each with its rank."""
    return [(entry["M"][RANK]["S"], entry["M"][VALUE]) for entry in (value or {"L": ()})["L"]]


def waits(entry: Entry) -> bool:
    """Whether an edge counts for a node that is not there, and will have to be looked at when it is."""
    adds = bool(entry.wanted or entry.aside or entry.ref.account.reads_far)
    return entry.near is None and entry.edge is not None and adds


def revises(layout: BoundLayout, kind: NodeType) -> bool:
    """Whether others write nodes of the class whole, as long as their revision is what they read."""
    return layout.has_satellites(kind) or kind.takes_any


def copies_of(layout: BoundLayout, near: Near) -> list[Item]:
    """The keys of the copies of a node that stand beside it for an index; one that is yet to be made has none."""
    if not near.item:
        return []
    return [each.key for each in layout.satellites_beside(near.kind, near.item) if each.owner is None]


def _updates(layout: BoundLayout, keys: Iterable[Item], actions: tuple[Action, ...]) -> list[Update]:
    return [Update(layout.table, key, actions, layout.present) for key in keys]


def packed(layout: BoundLayout, near: Near, entries: Sequence[Entry], most: int) -> Iterator[Posting]:
    """Entries of one node in as few transactions as DynamoDB takes, with so many entries in each at most."""
    room = MAX_TRANSACTION - 3 - len(copies_of(layout, near))
    posting, size = Posting(near), 0
    for entry in entries:
        # A recursive rule may yet set the edge aside, and record that.
        recursive = sum(2 * rule.is_recursive for rule in entry.ref.account.rules)
        more = len(entry.writes(layout)) + recursive
        if posting.entries and (size + more > room or len(posting.entries) == most):
            posting.write_down(layout)
            yield posting
            posting, size = Posting(near), 0
        posting.entries.append(entry)
        size += more
    if posting.entries:
        posting.write_down(layout)
        yield posting


def merged(there: AnyWrite | None, write: AnyWrite) -> AnyWrite:
    """An item is in a transaction once: two checks of it are one, and so are changes of two parts of a ledger."""
    if isinstance(there, LedgerWrite) and isinstance(write, LedgerWrite):
        return there.joined(write)
    if isinstance(there, Check) and isinstance(write, Check) and there != write:
        condition = all_of(there.condition, write.condition)
        assert condition is not None
        return Check(there.table, there.key, condition)
    return write


_WORTH_ANOTHER = {"ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}


def is_hopeless(canceled: TransactionCanceled) -> bool:
    """Whether a transaction failed for what it holds, and not because of others or of load."""
    return not {reason.code for reason in canceled.reasons} & _WORTH_ANOTHER


def write_key(layout: BoundLayout, write: AnyWrite) -> Item:
    return layout.key_of(write.item) if isinstance(write, Put) else write.key


def transaction(layout: BoundLayout, postings: Iterable[Posting]) -> TransactWrite:
    """The writes of some postings, which share nothing but checks and ledgers, at once."""
    writes: dict[Place, AnyWrite] = {}
    for posting in postings:
        for write in posting.all_writes(layout):
            place = place_of(write_key(layout, write))
            writes[place] = merged(writes.get(place), write)
    return TransactWrite(tuple(performed(layout, writes.values())))


def performed(layout: BoundLayout, writes: Iterable[AnyWrite]) -> Iterator[Put | Update | Delete | Check]:
    """Writes as requests."""
    for write in writes:
        yield write.request(layout) if isinstance(write, LedgerWrite) else write


@dataclass
class _Group:
    """Postings that are written by one transaction."""

    numbers: list[int] = field(default_factory=list)
    held: set[Place] = field(default_factory=set)
    checked: set[Place] = field(default_factory=set)

    def takes(self, held: set[Place], checked: set[Place]) -> bool:
        """Whether there is room for a posting that writes and checks these items. None can be both."""
        if held & self.checked or checked & self.held:
            return False
        return len(self.held | self.checked | held | checked) <= MAX_TRANSACTION

    def add(self, number: int, held: set[Place], checked: set[Place]) -> None:
        self.numbers.append(number)
        self.held |= held
        self.checked |= checked


def arranged(layout: BoundLayout, postings: Sequence[Posting], is_apart: bool) -> list[list[list[Posting]]]:
    """Postings of different nodes in rounds of transactions, of which no two in a round write the same item.

    Those that change the same ledgers go together where they can, because a ledger is written once then. `is_apart`
    gives each a transaction of its own.
    """
    held, checked = zip(*(posting.places(layout) for posting in postings), strict=True)
    rounds: list[list[list[Posting]]] = []
    waiting = _neighbourly(held)
    while waiting:
        groups: list[_Group] = []
        taken: dict[Place, _Group] = {}
        later: list[int] = []
        for number in waiting:
            others = {id(group): group for place in held[number] if (group := taken.get(place)) is not None}
            chosen = next(iter(others.values())) if others else groups[-1] if groups else None
            if chosen is None or is_apart or not chosen.takes(held[number], checked[number]):
                chosen = None
            if len(others) > 1 or (others and chosen is None):
                later.append(number)
                continue
            if chosen is None:
                chosen = _Group()
                groups.append(chosen)
            chosen.add(number, held[number], checked[number])
            taken |= dict.fromkeys(held[number], chosen)
        rounds.append([[postings[number] for number in group.numbers] for group in groups])
        waiting = later
    return rounds


def _neighbourly(held: Sequence[set[Place]]) -> list[int]:
    """The numbers of sets of items, those that share an item behind each other, the largest first."""
    sharing: dict[Place, list[int]] = {}
    for number, places in enumerate(held):
        for place in places:
            sharing.setdefault(place, []).append(number)
    ordered: dict[int, None] = {}
    for start in sorted(range(len(held)), key=lambda number: -len(held[number])):
        if start in ordered:
            continue
        ordered[start] = None
        for place in held[start]:
            ordered |= dict.fromkeys(number for number in sharing[place] if number not in ordered)
    return list(ordered)
