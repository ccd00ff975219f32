"""Brings copied fields on edges up to date: in the end, each has the value of its node, in whatever order changes come.

In: edges whose copied fields may be out of date, or nodes whose edges may be, from `affected`. Out: edges with the
values of their nodes. A change of a node concerns all edges that copy from it; a change of an edge only that edge.

An edge is read together with the nodes that it copies from. If a copied field differs, the edge is updated in a
transaction which checks that the nodes still have these values. So every such write is right at the instant at which it
happens. One transaction takes up to 99 edges of one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType
from adjoin.errors import NEVER, AdjoinError, InvalidItem, InvalidKey, TransactionCanceled
from adjoin.expressions import Action, Remove, Set, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.layouts.managed_keys import without
from adjoin.plans.copies import as_copied, copied, copies_on
from adjoin.plans.counting.arrivals import arriving_at, found_in
from adjoin.plans.counting.entries import whole_copies
from adjoin.plans.counting.ledger import edges_in, key_of_node, queries_from
from adjoin.plans.counting.node_transaction import is_hopeless
from adjoin.plans.maintenance.report import Tally, Unapplied, set_aside
from adjoin.plans.shards import fresh_numbers
from adjoin.plans.steps.again import Pace, new_revision, same, unchanged
from adjoin.plans.steps.batches import Pages, Place, acted, chunks, get_all, joined_checks, place_of
from adjoin.requests import Check, Delete, Get, PageResponse, Plan, Put, Query, TransactWrite, Update
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

_AnyWrite: TypeAlias = Put | Update | Delete
_WIDTH = 16
"""How many queries or transactions run side by side."""


@dataclass(frozen=True, eq=False)
class CopyRef:
    """An edge with copied fields, and the keys of the nodes that it copies from, by end. The edge may exist or not."""

    kind: EdgeType
    key: Item
    ends: dict[str, Item]


def copy_ref(layout: BoundLayout, kind: EdgeType, item: Item) -> CopyRef:
    return _copy_ref(layout, kind, layout.key_of(item), *layout.ends(kind, item))


def _copy_ref(layout: BoundLayout, kind: EdgeType, key: Item, source: str, target: str) -> CopyRef:
    node_keys = {"source": source, "target": target}
    ends: dict[str, Item] = {}
    for copy in copies_on(layout, kind):
        ends[copy.end] = key_of_node(layout, copy.node, node_keys[copy.end])
    return CopyRef(kind, key, ends)


@dataclass(frozen=True)
class At:
    """All edges of a class that have a certain node at one end, given by its node key."""

    kind: EdgeType
    end: str
    node_key: str

    def queries(self, layout: BoundLayout) -> list[Query]:
        if self.end == "source" or self.kind.symmetric:
            return queries_from(layout, self.kind, self.node_key)
        return arriving_at(layout, self.kind, self.node_key)

    def refs(self, layout: BoundLayout, page: PageResponse) -> Iterator[CopyRef]:
        """The edges in a page. Items with an edge's key whose ends cannot be read are left out.

        Those of a symmetric edge that have the node as their target are the other items of those that leave it.
        """
        if self.kind.symmetric and self.end == "target":
            yield from self._twins(layout, page)
            return
        for edge in found_in(layout, self.kind, self.node_key, page):
            yield _copy_ref(layout, self.kind, edge.key, edge.source, edge.target)

    def _twins(self, layout: BoundLayout, page: PageResponse) -> Iterator[CopyRef]:
        for item in edges_in(layout, self.kind, page):
            with suppress(InvalidItem, InvalidKey):
                source, target = layout.ends(self.kind, item)
                for key in (
                    (layout.twin_keys(self.kind, item) or [layout.key_of(item)]) if source == self.node_key else ()
                ):
                    yield _copy_ref(layout, self.kind, key, target, source)


def freshen_at(layout: BoundLayout, places: Iterable[At], tally: Tally) -> Plan[None]:
    """Brings the copied fields on all edges at some nodes up to date. Several nodes are queried side by side.

    Raises as `freshen` does, after all edges that can be written.
    """
    if layout.shard_numbers:
        yield from fresh_numbers(layout)
    pages = Pages(((place, query) for place in places for query in place.queries(layout)), _WIDTH)
    seen: set[Place] = set()
    refused: AdjoinError | None = None
    while some := (yield from pages.next()):
        found = {
            place_of(ref.key): ref
            for at, page in some
            for ref in at.refs(layout, page)
            if at.end == "source" or place_of(ref.key) not in seen
        }
        # An edge that arrives may be found by several queries, in pages far apart.
        seen.update(found)
        try:
            yield from freshen(layout, found.values(), tally)
        except NEVER as error:
            refused = refused or error
    if refused is not None:
        raise refused


def freshen(layout: BoundLayout, refs: Iterable[CopyRef], tally: Tally) -> Plan[set[Place]]:
    """Brings the copied fields on edges up to date. Returns the keys of those edges that do not exist.

    If an index key cannot hold what an edge should copy, this raises why, after all edges that can be written.
    """
    waiting = {place_of(ref.key): ref for ref in refs}
    pace, most = Pace(_WIDTH), MAX_TRANSACTION
    gone: set[Place] = set()
    refused: list[AdjoinError] = []
    while waiting:
        stale = yield from _stale(layout, list(waiting.values()), gone, refused)
        groups = list(_grouped(stale, most))
        waiting = {place_of(each.ref.key): each.ref for each in stale}
        for some in chunks(groups, pace.width):
            try:
                yield tuple(_request(layout, group) for group in some)
            except TransactionCanceled as canceled:
                pace.slow_down(canceled)
                # No other process is in the way, so a retry would fail too. Try one edge at a time, and set aside
                # the one that fails alone.
                if is_hopeless(canceled):
                    if most == pace.width == 1:
                        yield from _give_up(layout, some[0][0].ref, canceled, tally)
                        del waiting[place_of(some[0][0].ref.key)]
                    pace.width = most = 1
                break
            pace.go_on()
            for group in some:
                tally.edges += len(group)
                for each in group:
                    del waiting[place_of(each.ref.key)]
    if refused:
        raise refused[0]
    return gone


def _give_up(layout: BoundLayout, ref: CopyRef, canceled: TransactionCanceled, tally: Tally) -> Plan[None]:
    """Sets an edge aside that cannot be written, for example because it is too large, so that it blocks no other."""
    why = "; ".join(each.message or each.code for each in canceled.reasons if each.code != "None")
    yield from set_aside(
        layout, Unapplied(ref.key, f"the copied fields of this {ref.kind.name} are not up to date: {why}"), tally
    )


@dataclass(frozen=True, eq=False)
class _Stale:
    """An edge whose copied fields differ from its nodes, with the updates that correct them."""

    ref: CopyRef
    nodes: dict[str, Item | None]
    updates: tuple[_AnyWrite, ...]

    def checks(self, layout: BoundLayout) -> Iterator[Check]:
        for end, key in self.ref.ends.items():
            yield Check(layout.table, key, as_copied(layout, self.ref.kind, end, self.nodes[end]))


def _stale(
    layout: BoundLayout, refs: Sequence[CopyRef], gone: set[Place], refused: list[AdjoinError]
) -> Plan[list[_Stale]]:
    """Reads edges and their nodes. Returns the edges that are out of date and can be written.

    Adds the keys of missing edges to `gone`, and why an edge cannot be written to `refused`.
    """
    keys: dict[Place, Item] = {}
    for ref in refs:
        for key in (ref.key, *ref.ends.values()):
            keys.setdefault(place_of(key), key)
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    items = dict(zip(keys, found, strict=True))
    stale = []
    for ref in refs:
        edge = items[place_of(ref.key)]
        nodes = {end: items[place_of(key)] for end, key in ref.ends.items()}
        if edge is None:
            gone.add(place_of(ref.key))
            continue
        try:
            actions = _actions(layout, ref.kind, edge, copied(layout, ref.kind, nodes))
        except NEVER as error:
            refused.append(error)
            continue
        if actions:
            stale.append(_Stale(ref, nodes, _updates(layout, ref.kind, edge, actions)))
    return stale


def _actions(layout: BoundLayout, kind: EdgeType, edge: Item, values: Item) -> tuple[Action, ...]:
    """The actions that give the copied fields of an edge these values."""
    actions: list[Action] = []
    for copy in copies_on(layout, kind):
        name = kind.attributes[copy.field]
        if edge.get(name) != values.get(name):
            actions.append(_action(name, values.get(name)))
    if actions and (keys := layout.managed.attributes[kind.model]):
        names = {kind.attributes[copy.field] for copy in copies_on(layout, kind)}
        after = layout.with_managed_keys(kind, without(edge, names) | values)
        actions += [_action(name, after.get(name)) for name in sorted(keys) if edge.get(name) != after.get(name)]
    return tuple(actions)


def _action(name: str, value: AttributeValue | None) -> Action:
    return Remove(attribute(name)) if value is None else Set(attribute(name), Value(value))


def key_companions(layout: BoundLayout, kind: EdgeType) -> list[str]:
    """The fields of an edge that share an index key with a copied field."""
    templates = layout.managed.late[kind.model].values()
    parts = {name for template in templates for name in template.names if name in kind.attributes}
    return sorted(parts - {copy.field for copy in copies_on(layout, kind)})


def _updates(layout: BoundLayout, kind: EdgeType, edge: Item, actions: tuple[Action, ...]) -> tuple[_AnyWrite, ...]:
    """The updates of the edge's own item and of its index copies."""
    # Another program may meanwhile change a field that shares an index key with a copied one.
    wanted = all_of(layout.present, *(same(edge, kind.attributes[name]) for name in key_companions(layout, kind)))
    if layout.has_satellites(kind):
        # A program may meanwhile add an index copy, which would lack what is written here.
        wanted = all_of(wanted, unchanged(layout, edge))
    if layout.has_satellites(kind) or REVISION in edge:
        actions = (*actions, Set(attribute(REVISION), Value(new_revision())))
    own = Update(layout.table, layout.key_of(edge), actions, wanted)
    if layout.managed.indexed[kind.model]:
        # An index copy for a copied field comes and goes with its value.
        return own, *whole_copies(layout, kind, acted(edge, actions))
    keys = [each.key for each in layout.satellites_beside(kind, edge)]
    return own, *(Update(layout.table, key, actions, layout.present) for key in keys)


def _grouped(stale: Sequence[_Stale], most: int) -> Iterator[list[_Stale]]:
    """Groups of edges that fit into one transaction, at most `most` each.

    Edges of one node come next to each other, so that one check of the node serves all of them.
    """
    group: list[_Stale] = []
    size, nodes = 0, set[Place]()
    for each in sorted(stale, key=lambda one: [place_of(key) for key in one.ref.ends.values()]):
        ends = {place_of(key) for key in each.ref.ends.values()}
        if group and (len(group) == most or size + len(each.updates) + len(nodes | ends) > MAX_TRANSACTION):
            yield group
            group, size, nodes = [], 0, set()
        group.append(each)
        size += len(each.updates)
        nodes |= ends
    if group:
        yield group


def _request(layout: BoundLayout, group: Sequence[_Stale]) -> TransactWrite:
    """The transaction that updates a group of edges and checks their nodes."""
    # Most edges of a group check the same node. Equal checks are dropped first; joining them all would be slow.
    different = {(place_of(check.key), repr(check.condition)): check for each in group for check in each.checks(layout)}
    checks: tuple[Check, ...] = ()
    for check in different.values():
        checks = joined_checks(checks, (check,))
    return TransactWrite((*checks, *(update for each in group for update in each.updates)))
