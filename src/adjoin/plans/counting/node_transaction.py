"""Node transactions: change one near node and the ledgers of some of its edges together.

In: a near node as it was read (`Near`), and edge states of its edges. Out: `TransactWrite` requests, which
`reconciling` yields. `plans/in_transaction` uses the same parts for writes that count in their own transaction.

All edges of a node in one transaction change the node once, by the sum of their differences. The transaction requires:

- the generation of the node that was read, and the next generation if there is one;
- each ledger as it was read, or, for an edge without a ledger, the departures of the node as they were read;
- for rule groups with `is_checked`, each edge and each far node as it was read.

So what it writes is right at the instant at which it happens. `packed` decides how many edges fit into one transaction,
and `arranged` combines small transactions of different nodes into larger ones.

Sums are changed with `ADD`. A reached set is written whole, on the condition that it is as it was read. For least,
greatest, latest and top values, a transaction changes which ranks are named. If the new value follows from the one on
the node, it is written at once (`first_values`). Otherwise the transaction marks the rule as stale on the node, and
`maintenance/ranks` reads the ranks afterwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import FAILED_CONDITION, InvalidItem, InvalidKey, InvalidValue, TransactionCanceled
from adjoin.expressions import Action, Add, And, Compare, Condition, Exists, Not, Path, Remove, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION, REVISION
from adjoin.layouts.own_items import COUNTED, at_birth, rank_text
from adjoin.plans.counting.contributions import RANK, VALUE
from adjoin.plans.counting.edge_state import AnyWrite, EdgeState
from adjoin.plans.counting.entries import with_entries
from adjoin.plans.counting.ledger import LEFT, LedgerWrite, new_token
from adjoin.plans.counting.reached import Sets, united, unstorable
from adjoin.plans.steps.again import new_revision, same
from adjoin.plans.steps.batches import Place, acted, joined_check, place_of, write_place
from adjoin.reached_sets import ALL_SETS
from adjoin.requests import Check, Delete, Put, TransactWrite, Update
from adjoin.rules import Rule
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item, canonical_number, exact_sum

STALE = "adjoin:stale"
"""The attribute of a node with the names of its stale rules: their values have to be read from the ranks again."""
TURN = "adjoin:turn"
"""The attribute of a node that counts how often the set of its named ranks changed.

A process that has read the ranks writes their values only if this number is unchanged.
"""
FULL = "adjoin:full"
"""The attribute of a node with the rules whose values do not fit into the item. A record says why."""
MARKED = "marked"
"""The attribute of a waiting marker or an arrival with its token."""
PREPARED = f"{NEXT_GENERATION}:"
"""The prefix of attributes that hold sums and reached sets in the next generation."""


_PRESENT, _NEXT = attribute(GENERATION), attribute(NEXT_GENERATION)
_TYPES = (
    (GENERATION, "S"),
    (NEXT_GENERATION, "S"),
    (TURN, "N"),
    (LEFT, "N"),
    (STALE, "SS"),
    (FULL, "SS"),
)
"""The attributes of adjoin's own on a near node, with their types."""


def _is_own(name: str, type: str, value: AttributeValue) -> bool:
    """Whether an attribute is as adjoin writes it. Departures are a whole number, which is compared."""
    return type in value and (name != LEFT or value[type].isdigit())


_Moved: TypeAlias = dict[str, tuple[Rule, list[EdgeState]]]
"""Rule to the edges whose ranks change for it."""
_Told: TypeAlias = dict[str, tuple[str, AttributeValue]]
"""Rule to attribute and value, for rules whose new value is known without reading ranks."""


@dataclass
class Near:
    """A near node as it was read, and as the transactions of this process have changed it since then."""

    kind: NodeType
    node_key: str
    key: Item
    item: Item | None
    generation: str = ""
    is_new: bool = False
    """Whether the node has no generation yet, so that the first transaction has to store one."""
    next: str | None = None
    """The next generation, if a recount prepares one."""
    is_gone: bool = False
    """Whether the node did not exist after the ledgers of its edges were read, so that these ledgers are void."""
    revision: AttributeValue = field(default_factory=new_revision)
    """The revision that the next transaction sets."""

    def __post_init__(self) -> None:
        for name, type in _TYPES:
            if self.item and name in self.item and not _is_own(name, type, self.item[name]):
                raise InvalidItem(
                    f"{name!r} of the node {self.node_key!r} was changed by another program and cannot be read; remove "
                    f"this attribute, and run verify --repair"
                )
        stored = (self.item or {}).get(GENERATION)
        self.generation = stored["S"] if stored else new_token()
        self.is_new = stored is None
        prepared = (self.item or {}).get(NEXT_GENERATION)
        self.next = prepared["S"] if prepared and not self.is_new else None

    def same(self, name: str) -> Condition:
        """The condition that an attribute is as it was read."""
        return same(self.item, name)

    @property
    def alive(self) -> Condition:
        """The condition that the node has the present and the next generation that were read.

        If a recount began or ended meanwhile, the transaction must count in other generations, and fails.
        """
        if self.is_new:
            return Not(Exists(_PRESENT))
        prepared = Not(Exists(_NEXT)) if self.next is None else Compare("=", _NEXT, Value({"S": self.next}))
        return And((Compare("=", _PRESENT, Value({"S": self.generation})), prepared))

    def changed(self, actions: Iterable[Action]) -> None:
        """Applies the actions of a successful transaction to the node in memory.

        So the next transaction of the same node needs no read.
        """
        self.is_new = False
        self.item = acted(self.item or {}, actions)
        self.revision = new_revision()


@dataclass
class NodeTransaction:
    """One transaction, and the edges that it reconciles."""

    near: Near
    states: list[EdgeState] = field(default_factory=list)
    writes: dict[Place, AnyWrite] = field(default_factory=dict)
    """The writes of the edges, by key, because a transaction may contain an item only once."""
    beyond: list[AnyWrite] = field(default_factory=list)
    """Further writes of the transaction: those by which `cycles` keeps the order of recursive rules."""
    actions: tuple[Action, ...] = ()
    """What the transaction does to the node; set by `all_writes`."""
    is_direct: bool = True
    """Whether a new least, greatest or top value may be computed from the value on the node.

    This saves reading ranks, but it makes the transaction depend on the node's turn.
    """

    room: int = 0
    """How many bytes a reached set of the node may have; set by `write_down`."""

    def write_down(self, layout: BoundLayout) -> None:
        """Collects the writes of the edges."""
        # A recount needs as much room again, for the sets of the next generation.
        self.room = ALL_SETS // (2 * max(1, sum(rule.node is self.near.kind for rule in layout.rules.distinct_rules)))
        self.writes = {}
        for state in self.states:
            for write in state.writes(layout):
                place = write_place(layout, write)
                self.writes[place] = merged(self.writes[place], write) if place in self.writes else write

    def by_place(self, layout: BoundLayout) -> Iterator[tuple[Place, AnyWrite]]:
        """All writes of the transaction, each after the key of its item; as `all_writes`."""
        own = self._own_writes(layout)
        yield from self.writes.items()
        for write in (*self.beyond, *own):
            yield write_place(layout, write), write

    def all_writes(self, layout: BoundLayout) -> list[AnyWrite]:
        """All writes of the transaction.

        Must be called after the earlier transactions of the same node have been written, because it depends on the
        state in which they leave the node.
        """
        return [*self.writes.values(), *self.beyond, *self._own_writes(layout)]

    def _own_writes(self, layout: BoundLayout) -> list[AnyWrite]:
        """The writes of the near node and its index copies, or of its waiting marker if it does not exist."""
        near = self.near
        if near.item is None:
            absent = Check(layout.table, near.key, Not(layout.present))
            if not any(map(waits, self.states)):
                return [absent] if self._is_in_doubt else []
            # A new token each time: a process that looked for edges before must not delete this newer marker.
            marker = layout.ledgers.marker_key(near.node_key) | {MARKED: {"S": uuid.uuid4().hex[:16]}}
            return [absent, Put(layout.table, marker)]
        changes, sets = self.changes(), self.sets()
        if sets and (problems := self.unstorable_sets(sets)):
            # `maintenance/blaming` finds the edge that is the cause.
            raise InvalidValue("; ".join(f"{name} cannot be stored: {reason}" for name, reason in problems.items()))
        replaced = self._replaced(changes)
        moved = self._moved()
        told = self._told(moved)
        checks = [layout.present, near.alive, *self._own_checks(layout, replaced, told)]
        # A sum is added to, but a set is written whole, so it must still be the one from which the new one was made.
        checks += (near.same(name) for name in sets)
        actions = tuple(self._actions(layout, changes, replaced, moved, told, sets))
        if not actions:
            self.actions = ()
            return [Check(layout.table, near.key, And(tuple(checks)))]
        copies = copies_of(layout, near)
        # The usual case: no index key and no copy is made of the aggregates, so one update of the node is enough.
        if not copies and not layout.managed.fields[near.kind.model] and not layout.managed.exact[near.kind.model]:
            self.actions = actions
            return [Update(layout.table, near.key, actions, And(tuple(checks)))]
        entries = with_entries(layout, near.kind, near.key, near.item, copies, actions)
        self.actions = entries.actions
        wanted = And((*checks, *(each for each in entries.conditions if each not in checks)))
        return [Update(layout.table, near.key, entries.actions, wanted), *entries.copies]

    @property
    def _is_in_doubt(self) -> bool:
        """Whether the node may exist although it was not found.

        A batch of reads is not of one instant. The node may have been created, and an edge counted for it, after the
        node was read, and before the ledger or the stamp was. Then these are not void.
        """
        return not self.near.is_gone and any(state.is_told for state in self.states)

    def places(self, layout: BoundLayout) -> tuple[set[Place], set[Place]]:
        """The keys of the items that it writes, and of those that it only checks.

        No other transaction of the same round may write an item that this one writes.
        """
        near, own = self.near, place_of(self.near.key)
        held = {place for place, write in self.writes.items() if not isinstance(write, Check)}
        if near.item is not None:
            held |= {own, *map(place_of, copies_of(layout, near))}
        elif any(map(waits, self.states)):
            return held | {place_of(layout.ledgers.marker_key(near.node_key))}, {*self.writes, own} - held
        elif self._is_in_doubt:
            return held, {*self.writes, own} - held
        return held, self.writes.keys() - held

    def _own_checks(
        self, layout: BoundLayout, replaced: Mapping[str, AttributeValue], told: _Told
    ) -> Iterator[Condition]:
        """The conditions on the near node besides its generation."""
        for state in self.states:
            # The far node of an edge from a node to itself is the near node. The transaction changes it, and may not
            # also contain a separate check of it.
            if state.ref.group.reads_far and state.edge is not None and state.ref.far == state.ref.near:
                yield state.far_as_read(layout)
        # These are set, not added to, which would overwrite what others have added since the node was read.
        yield from (Compare("=", attribute(name), Value(value)) for name, value in replaced.items())
        # Whoever moves ranks counts up the turn, so the values on the node are still those that were compared.
        if told:
            yield self.near.same(TURN)
        if any(state.is_held_by_departures for state in self.states):
            yield self.near.same(LEFT)
        if layout.has_copies(self.near.kind):
            # A program may meanwhile add an index copy of the node, which would lack what is written here.
            yield self.near.same(REVISION)

    def changes(self) -> dict[str, Decimal]:
        """What is added to each sum, by attribute, in the present generation and in the next one."""
        by_group: dict[str, list[EdgeState]] = {}
        for state in self.states:
            by_group.setdefault(state.ref.place[0], []).append(state)
        deltas: dict[str, list[Decimal]] = {}
        for states in by_group.values():
            for rule in states[0].ref.group.sums:
                deltas.setdefault(rule.attribute, []).extend([state.delta(rule) for state in states])
                if self.near.next is not None:
                    deltas.setdefault(prepared_sum(rule), []).extend([state.delta_ahead(rule) for state in states])
        return {name: change for name, some in deltas.items() if (change := exact_sum(some))}

    def sets(self) -> Sets:
        """The reached sets that change, by attribute, in the present generation and in the next one."""
        if not any(state.ref.group.distinct_rules for state in self.states):
            return {}
        item = {} if self.near.is_new else self.near.item or {}
        return united(item, self.states, None if self.near.next is None else prepared_sum)

    def unstorable_sets(self, sets: Sets) -> dict[str, str]:
        """Rule to the reason why its reached set cannot be stored."""
        return unstorable(self.near.item or {}, self.states, sets, self.room, prepared_sum)

    def _actions(
        self,
        layout: BoundLayout,
        changes: Mapping[str, Decimal],
        replaced: Mapping[str, AttributeValue],
        moved: _Moved,
        told: _Told,
        sets: Sets,
    ) -> Iterator[Action]:
        """What the transaction does to the node; nothing if only ledgers change.

        `changes` are the differences of sums, `replaced` the sums that are set instead of added to, `moved` the rules
        whose ranks change, `told` the new values that are known without reading ranks, and `sets` the reached sets.
        """
        item, exact = self.near.item or {}, layout.managed.exact[self.near.kind.model]
        stale = sorted(name for name in moved if name not in told)
        if self.near.is_new:
            # Nothing was counted before the first generation. If an attribute of an aggregate exists already, another
            # program wrote it.
            rules = [rule for rule in layout.rules.declared if rule.node is self.near.kind]
            known = {*changes, *sets, *(stale_rule.attribute for stale_rule in rules if stale_rule.name in told)}
            yield from (Remove(attribute(rule.attribute)) for rule in rules if rule.attribute not in known)
        for name, change in changes.items():
            path, before = Path((name,)), (replaced.get(name) or item.get(name, {})).get("N", "0")
            if self.near.is_new:
                yield Set(path, Value({"N": canonical_number(change)}))
            elif name in replaced or name in exact:
                yield Set(path, Value({"N": canonical_number(exact_sum((Decimal(before), change)))}))
            else:
                yield Add(path, {"N": canonical_number(change)})
        yield from (Set(attribute(name), Value(value)) for name, value in told.values())
        for name, reached in sets.items():
            yield Remove(attribute(name)) if reached is None else Set(attribute(name), Value(reached))
        if stale:
            yield Add(attribute(STALE), {"SS": stale})
        if moved:
            yield Add(attribute(TURN), {"N": "1"})
        left = any(state.goes for state in self.states)
        if left:
            yield Add(attribute(LEFT), {"N": "1"})
        if self.near.is_new:
            yield Set(_PRESENT, Value({"S": self.near.generation}))
            if (named := at_birth(layout.rules, self.near.kind)) is not None:
                yield Set(attribute(COUNTED), Value(named))
        if (changes or sets or moved or left or self.near.is_new) and revises(layout, self.near.kind):
            yield Set(attribute(REVISION), Value(self.near.revision))

    def _replaced(self, changes: Mapping[str, Decimal]) -> dict[str, AttributeValue]:
        """The sums that cannot be changed with `ADD` and are set instead, with their present values.

        There are two such cases. Another program wrote something that is not a number: it counts as 0, so that it does
        not block maintenance. Or the difference has more digits than DynamoDB allows, although both sums have not.
        """
        item = self.near.item or {}
        names = {rule.attribute for each in self.states for rule in each.ref.group.sums}
        too_long = {name for name, change in changes.items() if not is_number(change)}
        return {
            name: item[name]
            for name in names | too_long
            if name in item and ("N" not in item[name] or name in too_long)
        }

    def _moved(self) -> _Moved:
        moved: _Moved = {}
        for state in self.states:
            for rule in filter(state.moves, state.ref.group.ranked):
                moved.setdefault(rule.name, (rule, []))[1].append(state)
        return moved

    def _told(self, moved: _Moved) -> _Told:
        """The new values that are known without reading ranks, for rules whose ranks change."""
        told = {}
        for name, (rule, states) in moved.items():
            is_told = self.is_direct and rule.operation in TOLD
            if is_told and (value := first_values(rule, self.near, states)) is not None:
                told[name] = rule.attribute, value
        return told

    def took_place(self) -> bool:
        """Updates the node in memory after the transaction succeeded. Returns whether the node changed."""
        if self.actions:
            self.near.changed(self.actions)
        return bool(self.actions)


def is_number(change: Decimal) -> bool:
    """Whether DynamoDB can store a number: it has a limit of digits and of magnitude."""
    try:
        canonical_number(change)
    except InvalidValue:
        return False
    return True


def prepared_sum(rule: Rule) -> str:
    """The attribute that holds the sum or the reached set of a rule in the next generation."""
    return f"{PREPARED}{rule.key}"


def first_values(rule: Rule, near: Near, states: Sequence[EdgeState]) -> AttributeValue | None:
    """The least, greatest or top values after the ranks of these edges change; None if the ranks have to be read.

    A new value can be compared with the values on the node. But if an edge takes back one of those values, only the
    ranks say which value comes next. The same is true if the values on the node are stale or incomplete.
    """
    item = {} if near.is_new else near.item or {}
    shown = item.get(rule.attribute)
    before = {rank for state in states for rank, _ in ranked(state.applied.get(rule.name))}
    after = [pair for state in states for pair in ranked(state.wanted.get(rule.name))]
    if rule.name in item.get(STALE, {"SS": ()})["SS"] or FULL in item or (before and shown is None):
        return None
    values = [] if shown is None else shown.get("L", ()) if rule.operation == "top" else [shown]
    try:
        current = [(rank_text(value), value) for value in values]
    except InvalidKey:
        # Another program wrote a value that cannot be ranked. The ranks have the right one.
        return None
    if any(rank in before for rank, _ in current):
        return None
    first = sorted((*current, *after), key=lambda pair: pair[0], reverse=rule.operation != "min")
    if not first:
        return None
    return {"L": [value for _, value in first[: rule.k]]} if rule.operation == "top" else first[0][1]


TOLD = {"min", "max", "top"}
"""The operations for which the values on a node are enough to compute the result when a value is added.

The latest value is none of them: the node does not say what its value is ordered by.
"""


def ranked(value: AttributeValue | None) -> list[tuple[str, AttributeValue]]:
    """The values that an edge contributes, each after its rank text."""
    return [(state["M"][RANK]["S"], state["M"][VALUE]) for state in (value or {"L": ()})["L"]]


def waits(state: EdgeState) -> bool:
    """Whether an edge waits for its near node, which does not exist, and has to be reconciled when it is created."""
    adds = bool(state.wanted or state.aside or state.ref.group.reads_far)
    return state.near is None and state.edge is not None and adds


def revises(layout: BoundLayout, kind: NodeType) -> bool:
    """Whether nodes of a class have a revision that each change of an aggregate has to renew.

    They do if programs write such nodes as a whole, on the condition that the revision is the one that they read.
    """
    return layout.has_satellites(kind) or kind.takes_any or (bool(kind.whole.family) and layout.is_ranked(kind))


def copies_of(layout: BoundLayout, near: Near) -> list[Item]:
    """The keys of a node's index copies; none if the node does not exist.

    If one of them is for a managed field, it may come or go with any change, so these are the keys that there can be.
    """
    if not near.item:
        return []
    if layout.managed.indexed[near.kind.model]:
        return [*layout.copy_keys(near.kind, near.key), *layout.element_keys(near.kind, near.key | near.item)]
    return [each.key for each in layout.satellites_beside(near.kind, near.item) if each.owner is None]


_MOST_TEXTS = 20_000
"""About how many texts of reached sets the ledgers of one transaction may have: it can have 4 MB."""


def packed(
    layout: BoundLayout, near: Near, states: Sequence[EdgeState], most: int
) -> tuple[NodeTransaction, Sequence[EdgeState]]:
    """A transaction with as many edges of one node as DynamoDB allows, at most `most`; and the edges that are left."""
    # Room for the node, and for the writes that `cycles` or a waiting marker may add.
    room = MAX_TRANSACTION - 3 - len(copies_of(layout, near))
    taken = size = texts = 0
    for state in states:
        # A recursive rule may set the edge aside later, which adds a record.
        size += len(state.writes(layout)) + 2 * len(state.ref.group.recursive)
        if state.ref.group.distinct_rules:
            texts += sum(len(value.get("SS", ())) for value in state.wanted.values())
        if taken and (size > room or taken == most or texts > _MOST_TEXTS):
            break
        taken += 1
    node_transaction = NodeTransaction(near, list(states[:taken]))
    node_transaction.write_down(layout)
    return node_transaction, states[taken:]


def merged(there: AnyWrite | None, write: AnyWrite) -> AnyWrite:
    """Two writes of one item as one, because a transaction may contain an item only once.

    Two checks are joined, and so are the changes of the two parts of a ledger.
    """
    if isinstance(there, LedgerWrite) and isinstance(write, LedgerWrite):
        return there.joined(write)
    if isinstance(there, Check) and isinstance(write, Check) and there != write:
        return joined_check(there, write)
    return write


# Codes of failures that may not occur in another attempt: another process was faster, or there was too much load.
_WORTH_ANOTHER = {FAILED_CONDITION, "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}


def is_hopeless(canceled: TransactionCanceled) -> bool:
    """Whether a transaction failed because of its own content, so that the same transaction can never succeed."""
    return not {reason.code for reason in canceled.reasons} & _WORTH_ANOTHER


def is_structural(node_transaction: NodeTransaction) -> bool:
    """Whether edges begin or stop to contribute by a recursive rule in this transaction, so that one may close a cycle.

    `maintenance/cycles` puts such a transaction in order before it is written.
    """
    return node_transaction.near.item is not None and any(
        state.joined(rule) or state.left(rule)
        for state in node_transaction.states
        for rule in state.ref.group.recursive
    )


def transaction(layout: BoundLayout, node_transactions: Iterable[NodeTransaction]) -> TransactWrite:
    """Several node transactions as one request. They may have only checks and ledgers in common."""
    writes: dict[Place, AnyWrite] = {}
    for node_transaction in node_transactions:
        for place, write in node_transaction.by_place(layout):
            writes[place] = merged(writes.get(place), write) if place in writes else write
    return TransactWrite(tuple(performed(layout, writes.values())))


def performed(layout: BoundLayout, writes: Iterable[AnyWrite]) -> Iterator[Put | Update | Delete | Check]:
    """The writes as requests; only now is it decided how a ledger is written."""
    for write in writes:
        yield write.request(layout) if isinstance(write, LedgerWrite) else write


@dataclass
class _Group:
    """Node transactions that become one request."""

    numbers: list[int] = field(default_factory=list)
    held: set[Place] = field(default_factory=set)
    checked: set[Place] = field(default_factory=set)

    def takes(self, held: set[Place], checked: set[Place]) -> bool:
        """Whether a node transaction that writes and checks these items fits.

        A transaction cannot both write and check an item.
        """
        if held & self.checked or checked & self.held:
            return False
        return len(self.held | self.checked | held | checked) <= MAX_TRANSACTION

    def add(self, number: int, held: set[Place], checked: set[Place]) -> None:
        self.numbers.append(number)
        self.held |= held
        self.checked |= checked


def arranged(
    layout: BoundLayout, node_transactions: Sequence[NodeTransaction], is_apart: bool
) -> list[list[list[NodeTransaction]]]:
    """Node transactions of different nodes, combined into requests, and the requests divided into rounds.

    No two requests of a round write the same item, because they would conflict. Node transactions that change the same
    ledgers go into one request if possible: then each ledger is written once, for both ends of its edge. `is_apart`
    gives each node transaction a request of its own.
    """
    if len(node_transactions) == 1:
        return [[[*node_transactions]]]
    held, checked = zip(*(node_transaction.places(layout) for node_transaction in node_transactions), strict=True)
    rounds: list[list[list[NodeTransaction]]] = []
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
            # It shares items with two requests, or with one that is full. It waits for another round, because two
            # requests of a round must not write the same item.
            if len(others) > 1 or (others and chosen is None):
                later.append(number)
                continue
            if chosen is None:
                chosen = _Group()
                groups.append(chosen)
            chosen.add(number, held[number], checked[number])
            taken |= dict.fromkeys(held[number], chosen)
        rounds.append([[node_transactions[number] for number in group.numbers] for group in groups])
        waiting = later
    return rounds


def _neighbourly(held: Sequence[set[Place]]) -> list[int]:
    """The order in which to combine sets of items: the largest first, each followed by those that share an item."""
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
