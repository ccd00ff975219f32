"""An edge that a rule group counts, and its ledger as it is stored: what it has contributed to the nodes at its ends.

An `EdgeRef` is the name by which `affected`, `neighbours` and `reconciling` pass an edge on: its key and the node keys
at its ends, from its item, a ledger, a record, or the page of a query. It does not say whether the edge exists. The
queries that find the edges of a node are also here; `arrivals` adds those for edges that arrive.

Of a ledger, in: its item, or a `Ledger` value to store. Out: a `Ledger` value, or the write that changes the item on
the condition that it is as it was read. `edge_state` compares a `Ledger` with what the edge contributes now.

One item serves both ends of an edge. Each end has a *part* with a revision of its own, so that one part can be written
without regard to the other. The item lies beside the edge, so that the ledgers of a celebrity are spread over many
partitions. If something is counted at the target, it lies beside the target instead, so that a strongly consistent
query finds the edges that arrive there. A rule is named by its key. This is short, and it is different for another
declaration of the same name.

attribute     what it holds
o, i          the part for the node at the source, and the part for the node at the target: a map
    l         the generation of the node in which the edge is counted; if the node has another generation, or does not
              exist, the part is void
    r         the revision: a new token with each write
    a rule    what was contributed: a number, or a list of values in order, each with
        t         the token of its rank in this generation
        u         the token of its rank in the present generation, while `l` is the next one
    a         rule to the reason why the edge is set aside for it
    x         the names of stamps of the edge that are spent, see `stamps`
s             the length of the edge's partition key, if the ledger lies beside the target
e             the key of the edge, if it was too long to be part of the ledger's key
t             the node key of the target, if neither key contains it

Rules that read the far node have ledgers of their own, beside the far node, so that they are found when it changes:

attribute               what it holds
edge, near, far         which edge the ledger is for
adjoin:generation       as `l`
applied                 rule to what was contributed; for different nodes, their packed texts
aside                   rule to the reason why the edge is set aside for it
rules                   which rules the ledger was written for
adjoin:revision         as `r`
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from os import urandom
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, EdgeType, NodeType
from adjoin.errors import InvalidItem, InvalidKey
from adjoin.expressions import Action, Compare, Condition, Exists, Not, Path, Remove, Set, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, REVISION
from adjoin.layouts.ranges import Range
from adjoin.plans.counting.contributions import RANK, VALUE
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import Place, place_of
from adjoin.reached_sets import packed_texts, unpacked_texts
from adjoin.requests import Check, Delete, PageResponse, Plan, Put, Query, Update
from adjoin.rules import Rule, RuleGroup
from adjoin.values import AttributeValue, Item

# --- edges -------------------------------------------------------------------------------------


EDGE, NEAR, FAR = "edge", "near", "far"
"""The attributes of a record that name its edge: its key, and the node keys of its near and far node."""


@dataclass(slots=True, eq=False)
class EdgeRef:
    """An edge in one rule group, with the node keys of its near and far node. The edge may exist or not.

    The same edge in two rule groups is two references, because each has its own ledger or its own part of one.
    """

    group: RuleGroup
    key: Item
    near: str
    far: str

    place: tuple[str, Place] = field(init=False)
    """The name of the rule group and the key of the edge: what is different for each reference."""
    _ledger_key: Item | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.place = self.group.name, place_of(self.key)

    def ledger_key(self, layout: BoundLayout) -> Item:
        """The key of the ledger of the edge. It is computed once, because each step of reconciling needs it."""
        if self._ledger_key is None:
            self._ledger_key = self._make_ledger_key(layout)
        return self._ledger_key

    def _make_ledger_key(self, layout: BoundLayout) -> Item:
        if self.group.reads_far:
            return layout.ledgers.far_ledger_key(self.group.name, self.key, self.far)
        return layout.ledgers.ledger_key(self.key, self.target if self.group.is_at_target else None)

    @property
    def target(self) -> str:
        return self.far if self.group.hop.direction == "out" else self.near

    def near_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.group.hop.near, self.near)

    def far_key(self, layout: BoundLayout) -> Item:
        return key_of_node(layout, self.group.hop.far, self.far)


def key_of_node(layout: BoundLayout, kind: NodeType, node_key: str) -> Item:
    """The key of a node's item, from its node key."""
    return layout.node_key(kind, layout.id_in(kind, node_key))


def ref_to(layout: BoundLayout, group: RuleGroup, item: Item, key: Item | None = None) -> EdgeRef:
    """The reference to an edge, from its item. `key` saves computing the key if the caller knows it."""
    source, target = layout.ends(group.edge, item)
    near, far = (source, target) if group.hop.direction == "out" else (target, source)
    return EdgeRef(group, layout.key_of(item) if key is None else key, near, far)


def counts(layout: BoundLayout, ref: EdgeRef) -> bool:
    """Whether the rule group of a reference counts its edge: the near node is of the class that has the rules."""
    only = ref.group.hop.only
    return only is None or layout.is_of(only, ref.near)


def refs_to(layout: BoundLayout, group: RuleGroup, items: Iterable[Item]) -> list[EdgeRef]:
    """References to edges, from their items. An item with an edge's key whose ends cannot be read is left out."""
    refs = []
    for item in items:
        try:
            refs.append(ref_to(layout, group, item))
        except (InvalidItem, InvalidKey):
            continue
    return refs


def ref_in(layout: BoundLayout, group: RuleGroup, record: Item) -> EdgeRef:
    """The reference to an edge, from a ledger beside its far node or from the record that it is set aside.

    Raises `InvalidItem` if another program changed the record.
    """
    key, near, far = edge_in(layout, record, EDGE), record.get(NEAR, {}).get("S"), record.get(FAR, {}).get("S")
    if near is None or far is None:
        raise InvalidItem(unreadable("the record", layout.key_of(record)))
    return EdgeRef(group, key, near, far)


def edge_in(layout: BoundLayout, record: Item, name: str) -> Item:
    """The key of an edge that an attribute of a ledger or record holds."""
    own = layout.key_of(record)
    key: Item = record.get(name, {}).get("M", {})
    if key.keys() != own.keys() or any(value.keys() != own[part].keys() for part, value in key.items()):
        raise InvalidItem(unreadable("the record", own))
    return key


def refs_in(layout: BoundLayout, group: RuleGroup, records: Iterable[Item]) -> list[EdgeRef]:
    """References to edges, from ledgers or records. One that another program changed is left out."""
    refs = []
    for record in records:
        try:
            refs.append(ref_in(layout, group, record))
        except InvalidItem:
            continue
    return refs


def unreadable(what: str, key: Item) -> str:
    """The message that an item of adjoin's own is not as adjoin wrote it."""
    shown = ", ".join(f"{name}={next(iter(value.values()))!r}" for name, value in key.items())
    return f"{what} ({shown}) was changed by another program and cannot be read; delete it, and run verify --repair"


def named_in(ref: EdgeRef) -> Item:
    """The attributes by which a record names its edge."""
    return {EDGE: {"M": dict(ref.key)}, NEAR: {"S": ref.near}, FAR: {"S": ref.far}}


def dependents(
    layout: BoundLayout, group: RuleGroup, far: str, start: Item | None
) -> Plan[tuple[list[EdgeRef], Item | None]]:
    """A page of the edges whose rules read a node at the far end, and the key from which the next page begins.

    They are found by their ledgers, which lie beside the far node for this purpose.
    """
    partition, sort = layout.ledgers.ledgers(group.name, far)
    response: PageResponse
    (response,) = yield (Query(layout.table, partition, sort, start=start, consistent=True, limit=PAGE),)
    return refs_in(layout, group, response.items), response.last


PAGE = 1000
"""Items per page of a query for edges."""


def queries_from(layout: BoundLayout, kind: CountedType, node_key: str) -> list[Query]:
    """The queries that find the edges of a class that leave a node, or its children. They may also find other items.

    They are read from the table, even if an index has them in order: only the table has strongly consistent reads.
    """
    return [_query(layout, each) for each in layout.ranges_from(kind, layout.id_in(kind.source, node_key))]


def queries_into(layout: BoundLayout, kind: CountedType, node_key: str) -> list[Query]:
    """The queries that find the edges of a class that arrive at a node. They may also find other items."""
    assert isinstance(kind, EdgeType), "a child is found from its parent only"
    return [_query(layout, each) for each in layout.ranges_into(kind, layout.id_in(kind.target, node_key))]


def _query(layout: BoundLayout, stretch: Range) -> Query:
    index = stretch.access.index
    return Query(layout.table, stretch.key, stretch.condition(), index, limit=PAGE, consistent=index is None)


def edges_in(layout: BoundLayout, kind: CountedType, page: PageResponse) -> list[Item]:
    """The items of edges of a class in a page."""
    return [item for item in page.items if not layout.is_bookkeeping(item) and layout.kind_of(item) is kind]


def counted_by(layout: BoundLayout, kind: CountedType) -> Iterator[RuleGroup]:
    """The rule groups in which edges or children of a class are counted."""
    return (group for group in layout.rules.groups if group.edge is kind)


# --- ledgers -----------------------------------------------------------------------------------


APPLIED, ASIDE, RULES = "applied", "aside", "rules"
PARTS = "o", "i"
_GENERATION, _REVISION, _ASIDE, _SPENT = "l", "r", "a", "x"
_NO_RULES = (_GENERATION, _REVISION, _ASIDE, _SPENT)
LENGTH, TARGET = "s", "t"
SHORTENED = "e"
WAITING = "-"
"""The generation in a part whose node does not exist: the edge waits for the node."""
TOKEN, FORMER = "t", "u"
"""The attributes of a value in order that name its ranks: in the generation of the ledger, and in the one before it."""
LEFT = "adjoin:left"
"""The attribute of a node with its departures: how often an edge stopped contributing to it.

When an edge is removed, its ledger is deleted. Then there is no revision left that could stop a maintainer that read
the edge before it was removed. So a transaction that creates a ledger requires that the node's departures are still
what they were before the edge was read. Such a maintainer fails, however late it comes.
"""
Tokens: TypeAlias = tuple[str | None, str | None]
"""The tokens of a value's ranks, in the generation of its ledger and in the one before; None if there is no token."""


def new_token() -> str:
    """A random text of 48 bits that no other process has."""
    return urlsafe_b64encode(urandom(6)).decode()


@dataclass(slots=True)
class Ledger:
    """What one edge has contributed by the rules of one rule group."""

    generation: str
    """The generation of the near node in which this counts."""
    applied: Mapping[str, AttributeValue]
    """Rule to what was contributed. A rule that this graph does not know has its key in place of its name."""
    aside: Mapping[str, str]
    """Rule to the reason why the edge is set aside for it."""
    mark: str | None = None
    """A hash of the rules that a ledger beside a far node was written for."""
    tokens: Mapping[str, Sequence[Tokens]] = field(default_factory=dict)
    """Rule to the tokens of its values, in the order of the values."""
    spent: frozenset[str] = frozenset()
    """The names of stamps of the edge that do not count any more."""

    @property
    def names(self) -> set[str]:
        """The tokens of all ranks that this ledger names. Only these ranks count."""
        return {token for some in self.tokens.values() for pair in some for token in pair if token is not None}


def ledger_in(group: RuleGroup, item: Item | None) -> Ledger | None:
    """What the item of a ledger says about a rule group; None if it has no readable part for the group."""
    if item is None:
        return None
    if group.reads_far:
        return _far_ledger(group, item)
    part: dict[str, AttributeValue] | None = item.get(group.part, {}).get("M")
    if part is None or _GENERATION not in part:
        return None
    names = group.by_key
    applied = {names.get(key, key): value for key, value in part.items() if key not in _NO_RULES}
    try:
        aside = _reasons(names, part[_ASIDE]) if _ASIDE in part else {}
        tokens = _taken_out(group, applied)
        spent = frozenset(part[_SPENT]["SS"]) if _SPENT in part else frozenset[str]()
        return Ledger(part[_GENERATION]["S"], applied, aside, tokens=tokens, spent=spent)
    except _UNREADABLE:
        return None


_UNREADABLE = KeyError, TypeError, ValueError, AttributeError
"""What reading a ledger raises that another program wrote, with attributes of other types."""


def _reasons(names: Mapping[str, str], aside: AttributeValue) -> dict[str, str]:
    return {names.get(key, key): reason["S"] for key, reason in aside["M"].items()}


def _taken_out(group: RuleGroup, applied: dict[str, AttributeValue]) -> dict[str, Sequence[Tokens]]:
    """Takes the tokens out of the values in `applied`, and returns them.

    Without tokens, what an edge contributed can be compared with what it contributes now.
    """
    tokens: dict[str, Sequence[Tokens]] = {}
    for name, value in applied.items():
        if "L" in value:
            entries = [dict(entry["M"]) for entry in value["L"]]
            if not all("S" in entry[RANK] and VALUE in entry for entry in entries):
                raise ValueError
            tokens[name] = [(_token(entry, TOKEN), _token(entry, FORMER)) for entry in entries]
            applied[name] = {"L": [{"M": entry} for entry in entries]}
    for rule in group.rules:
        if rule.name not in applied:
            continue
        if rule.is_distinct:
            applied[rule.name] = {"SS": unpacked_texts(applied[rule.name])}
        elif ("L" if rule.is_ranked else "N") not in applied[rule.name]:
            raise ValueError
    return tokens


def _token(entry: dict[str, AttributeValue], name: str) -> str | None:
    found = entry.pop(name, None)
    return None if found is None else found["S"]


def _stored(ledger: Ledger, keys: Mapping[str, str]) -> dict[str, AttributeValue]:
    """The contributions as they are stored: by the keys of rules, and with tokens."""
    stored: dict[str, AttributeValue] = {}
    for name, value in ledger.applied.items():
        if tokens := ledger.tokens.get(name):
            pairs = zip(value["L"], tokens, strict=True)
            value = {"L": [{"M": {**entry["M"], **_token_attributes(pair)}} for entry, pair in pairs]}
        elif "SS" in value:
            value = packed_texts(value["SS"])
        stored[keys.get(name, name)] = value
    return stored


def _token_attributes(tokens: Tokens) -> Item:
    token, former = tokens
    named: Item = {} if token is None else {TOKEN: {"S": token}}
    if former is not None:
        named[FORMER] = {"S": former}
    return named


def revision_of(group: RuleGroup, item: Item | None) -> AttributeValue | None:
    """The revision of a rule group's part of a ledger; None if there is no such part."""
    if group.reads_far:
        return (item or {}).get(REVISION)
    revision: AttributeValue | None = (item or {}).get(group.part, {}).get("M", {}).get(_REVISION)
    return revision


def has_part(group: RuleGroup, item: Item | None) -> bool:
    """Whether the item of a ledger has a part for a rule group."""
    return item is not None and (group.reads_far or group.part in item)


def generation_want(group: RuleGroup) -> tuple[str, ...]:
    """The path to the generation of a rule group's part in the item of a ledger."""
    return group.part, "M", _GENERATION, "S"


def spent_want(group: RuleGroup) -> tuple[str, ...]:
    """The path to the names of the stamps that are spent."""
    return group.part, "M", _SPENT, "SS"


def rule_want(group: RuleGroup, rule: Rule) -> tuple[str, ...]:
    """The path to what was contributed by a rule."""
    return group.part, "M", rule.key


def _far_ledger(group: RuleGroup, item: Item) -> Ledger | None:
    """A ledger that lies beside a far node, from its item; None if it is not readable."""
    names = group.by_key
    try:
        applied = {names.get(key, key): value for key, value in item[APPLIED]["M"].items()}
        aside = _reasons(names, item[ASIDE]) if ASIDE in item else {}
        mark = item[RULES]["S"] if RULES in item else None
        tokens = _taken_out(group, applied)
        return Ledger(item[GENERATION]["S"], applied, aside, mark, tokens)
    except _UNREADABLE:
        return None


def edge_of(layout: BoundLayout, item: Item) -> Item:
    """The key of the edge that a ledger belongs to. Raises `InvalidItem` if another program changed the ledger."""
    if SHORTENED in item:
        return edge_in(layout, item, SHORTENED)
    try:
        return layout.ledgers.edge_key(item, int(item[LENGTH]["N"]) if LENGTH in item else None)
    except _UNREADABLE:
        raise InvalidItem(unreadable("the ledger", layout.key_of(item))) from None


def ref_beside(layout: BoundLayout, group: RuleGroup, item: Item) -> EdgeRef:
    """The reference to the edge that a ledger belongs to."""
    key = edge_of(layout, item)
    source = layout.source_text(group.edge, key)
    if group.is_at_target:
        target = layout.ledgers.node_beside(item)
    else:
        target = item[TARGET]["S"] if TARGET in item else layout.ends(group.edge, key)[1]
    near, far = (source, target) if group.hop.direction == "out" else (target, source)
    return EdgeRef(group, key, near, far)


@dataclass(slots=True)
class LedgerWrite:
    """A change of one or both parts of a ledger. Only `request` decides whether it is a put, an update or a delete.

    A transaction may contain an item only once, but it may change both parts of a ledger. So changes of parts are
    first joined, and then become one request.
    """

    table: str
    key: Item
    there: Item | None
    """The whole item as it was read."""
    parts: Mapping[str, AttributeValue | None]
    """The new value of each part that changes; None for a part that is removed."""
    names: Item = field(default_factory=dict)
    """Attributes that name the edge, if the key of the ledger does not."""
    held: frozenset[str] = frozenset()
    """Parts that do not change, but must be as they were read."""
    is_shared: bool = False
    """Whether rules count at the other end too, so that the other part may have been written since."""

    @property
    def condition(self) -> Condition:
        found = all_of(*(_part_as_read(self.there, part) for part in sorted({*self.parts, *self.held})))
        assert found is not None
        return found

    @property
    def whole(self) -> Item:
        """The whole item, if the ledger does not exist yet."""
        return {**self.key, **self.names, **{part: value for part, value in self.parts.items() if value is not None}}

    def joined(self, other: LedgerWrite) -> LedgerWrite:
        parts = {**self.parts, **other.parts}
        return replace(self, parts=parts, names={**self.names, **other.names}, held=self.held | other.held)

    def request(self, layout: BoundLayout) -> Put | Update | Delete | Check:
        """The one request for all changed parts, on the condition that the parts it concerns are as they were read."""
        if not self.parts:
            return Check(self.table, self.key, self.condition)
        if self.there is None and not self.is_shared and None not in self.parts.values():
            # The usual case: the first ledger of an edge that is counted at one end.
            return Put(self.table, self.whole, Not(layout.present))
        there = {part: self.there[part] for part in PARTS if part in self.there} if self.there else {}
        left = {part: value for part, value in {**there, **self.parts}.items() if value is not None}
        if self.there is None and not self.is_shared:
            return Put(self.table, {**self.key, **self.names, **left}, Not(layout.present))
        others = [part for part in PARTS if part not in self.parts and part not in self.held]
        if not left:
            # The last part is removed, so the item is deleted, provided that the other part was not written meanwhile.
            gone = (Not(Exists(attribute(part))) for part in others)
            return Delete(self.table, self.key, all_of(self.condition, *gone))
        actions: list[Action] = [Set(attribute(name), Value(value)) for name, value in self.names.items()]
        for part, value in self.parts.items():
            actions.append(Remove(attribute(part)) if value is None else Set(attribute(part), Value(value)))
        # If this removes a part and leaves the other, the other must still exist. Otherwise an item without any part
        # would be left behind, which no process would delete.
        stay = others if None in self.parts.values() else []
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
    """The write that makes a ledger say `ledger`, on the condition that it is as it was read.

    If `ledger` is None, the rule group's part is removed.
    """
    group = ref.group
    if group.reads_far:
        condition = _far_as_read(layout, there)
        if ledger is None:
            return Delete(layout.table, key, condition)
        return Put(layout.table, {**key, **_far_item(ref, ledger)}, condition)
    part = None if ledger is None else _part(group, ledger)
    # A new part brings the names with it, even if the item exists: before this is written, another process may remove
    # the other part, and the item with it. Then this update creates the item.
    names = {} if there is not None and group.part in there else _names(layout, ref, key)
    return LedgerWrite(layout.table, key, there, {group.part: part}, names, is_shared=group.is_shared)


def ledger_held(layout: BoundLayout, ref: EdgeRef, key: Item, there: Item | None) -> LedgerWrite | Check:
    """The check that a ledger is as it was read."""
    if ref.group.reads_far:
        return Check(layout.table, key, _far_as_read(layout, there))
    return LedgerWrite(layout.table, key, there, {}, held=frozenset((ref.group.part,)))


def ledger_touched(layout: BoundLayout, ref: EdgeRef, key: Item, there: Item) -> Update:
    """The update that touches a ledger: a new revision and nothing else.

    Every transaction that was computed from the ledger before fails from then on.
    """
    group = ref.group
    path = attribute(REVISION) if group.reads_far else Path((group.part, _REVISION))
    condition = _far_as_read(layout, there) if group.reads_far else _part_as_read(there, group.part)
    return Update(layout.table, key, (Set(path, Value({"S": new_token()})),), condition)


def _part(group: RuleGroup, ledger: Ledger) -> AttributeValue:
    """A rule group's part of a ledger as it is stored, with a new revision."""
    keys = group.keys
    stored: dict[str, Any] = {
        _GENERATION: {"S": ledger.generation},
        # New with each write, so that `_part_as_read` compares one value and not the whole part.
        _REVISION: {"S": new_token()},
        **_stored(ledger, keys),
    }
    if ledger.aside:
        stored[_ASIDE] = {"M": {keys.get(name, name): {"S": reason} for name, reason in ledger.aside.items()}}
    if ledger.spent:
        stored[_SPENT] = {"SS": sorted(ledger.spent)}
    return {"M": stored}


def _names(layout: BoundLayout, ref: EdgeRef, key: Item) -> Item:
    """The attributes that name the edge as far as the key of the ledger does not."""
    names: Item = {}
    partition, sort = ref.place[1]
    if sort not in place_of(key)[1]:
        names[SHORTENED] = {"M": dict(ref.key)}
    if ref.group.is_at_target:
        names[LENGTH] = {"N": str(len(partition))}
    elif not layout.tells_target(ref.group.edge):
        names[TARGET] = {"S": ref.target}
    return names


def _part_as_read(there: Item | None, part: str) -> Condition:
    """The condition that a part of a ledger is as it was read. Its revision is enough to compare."""
    value = (there or {}).get(part)
    if value is None:
        return Not(Exists(attribute(part)))
    revision = value.get("M", {}).get(_REVISION)
    if revision is None:
        # Without a revision, the whole part is compared.
        return same(there, part)
    return Compare("=", Path((part, _REVISION)), Value(revision))


def _far_item(ref: EdgeRef, ledger: Ledger) -> Item:
    """The attributes of a ledger beside a far node, with a new revision."""
    keys = ref.group.keys
    item = named_in(ref) | {
        GENERATION: {"S": ledger.generation},
        RULES: {"S": ref.group.mark},
        APPLIED: {"M": _stored(ledger, keys)},
        REVISION: {"S": new_token()},
    }
    if ledger.aside:
        item[ASIDE] = {"M": {keys.get(name, name): {"S": reason} for name, reason in ledger.aside.items()}}
    return item


def _far_as_read(layout: BoundLayout, there: Item | None) -> Condition:
    if there is None:
        return Not(layout.present)
    return same(there, REVISION)
