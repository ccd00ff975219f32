"""Copies on edges of fields of the nodes at their ends, filled in when an edge is written.

The nodes are read first, and the edge is written in one transaction with checks that they still have what
was read. What comes later is the change stream's business, in `adjoin.plans.maintenance.copies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adjoin.expressions import Compare, Condition, Exists, Not, Value, all_of, attribute
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, get_all, place_of
from adjoin.requests import BatchWrite, Check, Get, Put, Request, TransactWrite, Update
from adjoin.rules import CopyRule
from adjoin.schema import AnyEdge, EdgeType
from adjoin.values import Item


@dataclass(frozen=True)
class Filling:
    """What an edge copies from the nodes at its ends, and checks that they have it."""

    values: Item
    """Attributes of the edge; one that is to be absent is not there."""
    checks: tuple[Check, ...]


NOTHING = Filling({}, ())


def copies_on(layout: BoundLayout, kind: EdgeType) -> list[CopyRule]:
    """The copies on edges of a class."""
    return [copy for copy in layout.rules.copies if copy.edge is kind]


def ends_copied(layout: BoundLayout, kind: EdgeType, source: object, target: object) -> dict[str, Item]:
    """The keys of the nodes that an edge between two ids copies from, by end."""
    ids = {"source": source, "target": target}
    return {copy.end: layout.node_key(copy.node, ids[copy.end]) for copy in copies_on(layout, kind)}


def filling(layout: BoundLayout, kind: EdgeType, edge: AnyEdge) -> Plan[Filling]:
    """What one edge copies; nothing is read for a class without copies."""
    (filled,) = yield from fillings(layout, [(kind, edge)])
    return filled


def fillings(
    layout: BoundLayout,
    edges: Iterable[tuple[EdgeType, AnyEdge]],
    coming: Callable[[Place, Item | None], Item | None] = lambda _, stored: stored,
) -> Plan[list[Filling]]:
    """What edges copy, with each node read once; `coming` says what becomes of one that is written with them."""
    wanted = [(kind, ends_copied(layout, kind, edge.source, edge.target)) for kind, edge in edges]
    keys = {place_of(key): key for _, ends in wanted for key in ends.values()}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nodes = {place: coming(place, stored) for place, stored in zip(keys, found, strict=True)}
    return [_filling(layout, kind, ends, nodes) for kind, ends in wanted]


def _filling(
    layout: BoundLayout, kind: EdgeType, ends: Mapping[str, Item], nodes: Mapping[Place, Item | None]
) -> Filling:
    values = copied(layout, kind, {end: nodes[place_of(key)] for end, key in ends.items()})
    conditions: dict[Place, list[Condition]] = {}
    for end, key in ends.items():
        conditions.setdefault(place_of(key), []).append(as_copied(layout, kind, end, nodes[place_of(key)]))
    keys = {place_of(key): key for key in ends.values()}
    checks = [Check(layout.table, key, all_of(*conditions[place]) or layout.present) for place, key in keys.items()]
    return Filling(values, tuple(checks))


def copied(layout: BoundLayout, kind: EdgeType, nodes: Mapping[str, Item | None]) -> Item:
    """The attributes that copies on an edge have, with these nodes at its ends."""
    values: Item = {}
    for copy in copies_on(layout, kind):
        stored = (nodes[copy.end] or {}).get(copy.node.attributes[copy.of])
        if stored is not None:
            values[kind.attributes[copy.field]] = stored
    return values


def as_copied(layout: BoundLayout, kind: EdgeType, end: str, node: Item | None) -> Condition:
    """Holds as long as a node has what edges of a class copy from it."""
    if node is None:
        return Not(layout.present)
    conditions: list[Condition] = [layout.present]
    for copy in copies_on(layout, kind):
        if copy.end == end:
            name = copy.node.attributes[copy.of]
            path = attribute(name)
            conditions.append(Compare("=", path, Value(node[name])) if name in node else Not(Exists(path)))
    return all_of(*conditions) or layout.present


def joined_checks(first: Sequence[Check], second: Sequence[Check]) -> tuple[Check, ...]:
    """Checks of both kinds, those of one item as one."""
    checks = {place_of(check.key): check for check in first}
    for check in second:
        place = place_of(check.key)
        if place in checks:
            both = all_of(checks[place].condition, check.condition) or check.condition
            check = Check(check.table, check.key, both)
        checks[place] = check
    return tuple(checks.values())


# --- what a change of a node is followed by ----------------------------------------------------


@dataclass(frozen=True)
class Fan:
    """The edges of one class that have copies of what changes on a node."""

    node: str
    edge: EdgeType
    fields: tuple[str, ...]
    index: str | None
    items: int
    """The items that an edge is: its own, and those that stand beside it for indexed fields."""
    entries: int
    """The entries that these have in indexes which hold all of an item."""
    others: int
    """The nodes besides this one that an edge copies from."""


def fans(layout: BoundLayout, requests: Iterable[Request]) -> Iterator[Fan]:
    """What these requests make necessary, told by the attributes that they change."""
    for write in _writes(requests):
        item = write.item if isinstance(write, Put) else write.key
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        names = set(item) if isinstance(write, Put) else {str(action.path.steps[0]) for action in write.actions}
        wanted: dict[tuple[type[AnyEdge], str], list[CopyRule]] = {}
        for copy in layout.rules.copies:
            if copy.node is kind and copy.node.attributes[copy.of] in names:
                wanted.setdefault((copy.edge.model, copy.end), []).append(copy)
        for copies in wanted.values():
            yield _fan(layout, item, copies)


def _writes(requests: Iterable[Request]) -> Iterator[Put | Update]:
    for request in requests:
        if isinstance(request, Put | Update):
            yield request
        elif isinstance(request, TransactWrite | BatchWrite):
            yield from (write for write in request.writes if isinstance(write, Put | Update))


def _fan(layout: BoundLayout, item: Item, copies: Sequence[CopyRule]) -> Fan:
    edge, text = copies[0].edge, next(iter(layout.key_of(item).values()))["S"]
    index = None
    if copies[0].end == "target":
        index = layout.into(edge, layout.id_in(edge.target, text)).access.index
    keys = layout.shape(edge).written
    held = [
        each
        for each in layout.definition.indexes
        if each.projection.kind == "ALL" and all(key.name in keys for key in each.keys)
    ]
    beside = len(layout.copy_keys(edge, layout.key_of(item)))
    others = len({copy.end for copy in copies_on(layout, edge)}) - 1
    return Fan(text, edge, tuple(copy.field for copy in copies), index, 1 + beside, len(held) + beside, others)
