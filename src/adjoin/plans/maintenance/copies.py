"""Copies on edges, kept fresh: whatever the order of changes, they end as what their node has.

An edge is read with the nodes it copies from. Where it has something else, it is updated in a transaction
that checks that the nodes still have what is written, so every such write is true at its instant; up to
99 edges of one node together. A change of a node looks at all its edges, a change of an edge at that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from adjoin.errors import TransactionCanceled
from adjoin.expressions import Action, Condition, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, chunks, get_all, place_of
from adjoin.plans.copies import as_copied, copied, copies_on, joined_checks
from adjoin.plans.maintenance.arrivals import arriving_at, found_in
from adjoin.plans.maintenance.asides import Unapplied, set_aside
from adjoin.plans.maintenance.postings import is_hopeless, new_revision
from adjoin.plans.maintenance.references import key_of_node, query_at
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.revisions import unchanged
from adjoin.requests import Check, Get, PageResponse, Query, TransactWrite, Update
from adjoin.schema import EdgeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item

_WIDTH = 16
_ATTEMPTS = 100


@dataclass(frozen=True, eq=False)
class CopyRef:
    """An edge with copies, there or not, and the keys of the nodes that it copies from, by end."""

    kind: EdgeType
    key: Item
    ends: dict[str, Item]


def copy_ref(layout: BoundLayout, kind: EdgeType, item: Item) -> CopyRef:
    return _copy_ref(layout, kind, layout.key_of(item), *layout.ends(kind, item))


def _copy_ref(layout: BoundLayout, kind: EdgeType, key: Item, source: str, target: str) -> CopyRef:
    texts = {"source": source, "target": target}
    ends: dict[str, Item] = {}
    for copy in copies_on(layout, kind):
        ends[copy.end] = key_of_node(layout, copy.node, texts[copy.end])
    return CopyRef(kind, key, ends)


@dataclass(frozen=True)
class At:
    """All edges of a class that have a node, by its partition key, at an end."""

    kind: EdgeType
    end: str
    text: str

    def queries(self, layout: BoundLayout) -> list[Query]:
        if self.end == "source":
            return [query_at(layout, self.kind, self.kind.source, self.text, leaving=True)]
        return arriving_at(layout, self.kind, self.text)

    def refs(self, layout: BoundLayout, page: PageResponse) -> Iterator[CopyRef]:
        """The edges that a page tells, without what only has the key of one and leads nowhere."""
        for edge in found_in(layout, self.kind, self.text, page):
            yield _copy_ref(layout, self.kind, edge.key, edge.source, edge.target)


def freshen_at(layout: BoundLayout, places: Iterable[At], tally: Tally) -> Plan[None]:
    """Brings the copies on edges at nodes up to date; those of several nodes are looked up side by side."""
    waiting = [(place, query) for place in places for query in place.queries(layout)]
    seen: set[Place] = set()
    while waiting:
        some, waiting = waiting[:_WIDTH], waiting[_WIDTH:]
        pages: list[PageResponse] = yield tuple(query for _, query in some)
        found = {
            place_of(ref.key): ref
            for (at, _), page in zip(some, pages, strict=True)
            for ref in at.refs(layout, page)
            if at.end == "source" or place_of(ref.key) not in seen
        }
        # What arrives may be found twice, far apart.
        seen.update(found)
        yield from freshen(layout, found.values(), tally)
        rest = [
            (at, replace(query, start=page.last))
            for (at, query), page in zip(some, pages, strict=True)
            if page.last is not None
        ]
        waiting = [*rest, *waiting]


def freshen(layout: BoundLayout, refs: Iterable[CopyRef], tally: Tally) -> Plan[set[Place]]:
    """Brings the copies on edges up to date; answers the places of those that are not there."""
    waiting = {place_of(ref.key): ref for ref in refs}
    width, most, attempts = _WIDTH, MAX_TRANSACTION, 0
    gone: set[Place] = set()
    while waiting:
        stale = yield from _stale(layout, list(waiting.values()), gone)
        groups = list(_grouped(stale, most))
        waiting = {place_of(each.ref.key): each.ref for each in stale}
        for some in chunks(groups, width):
            try:
                yield tuple(_request(layout, group) for group in some)
            except TransactionCanceled as canceled:
                width, attempts = max(1, width // 2), attempts + 1
                if attempts == _ATTEMPTS:
                    raise
                if is_hopeless(canceled):
                    if most == width == 1:
                        yield from _give_up(layout, some[0][0].ref, canceled, tally)
                        del waiting[place_of(some[0][0].ref.key)]
                    width = most = 1
                break
            attempts = 0
            for group in some:
                tally.edges += len(group)
                for each in group:
                    del waiting[place_of(each.ref.key)]
    return gone


def _give_up(layout: BoundLayout, ref: CopyRef, canceled: TransactionCanceled, tally: Tally) -> Plan[None]:
    """An edge that has no room for what it copies, say, holds nothing else up."""
    why = "; ".join(each.message or each.code for each in canceled.reasons if each.code != "None")
    yield from set_aside(layout, Unapplied(ref.key, f"the copies on this {ref.kind.name} are not fresh: {why}"), tally)


@dataclass(frozen=True, eq=False)
class _Stale:
    """An edge whose copies are not what its nodes have."""

    ref: CopyRef
    nodes: dict[str, Item | None]
    updates: tuple[Update, ...]

    def checks(self, layout: BoundLayout) -> Iterator[Check]:
        for end, key in self.ref.ends.items():
            yield Check(layout.table, key, as_copied(layout, self.ref.kind, end, self.nodes[end]))


def _stale(layout: BoundLayout, refs: Sequence[CopyRef], gone: set[Place]) -> Plan[list[_Stale]]:
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
        actions = _actions(layout, ref.kind, edge, copied(layout, ref.kind, nodes))
        if actions:
            stale.append(_Stale(ref, nodes, _updates(layout, ref.kind, edge, actions)))
    return stale


def _actions(layout: BoundLayout, kind: EdgeType, edge: Item, values: Item) -> tuple[Action, ...]:
    """What makes the copies on an edge what they should be."""
    actions: list[Action] = []
    for copy in copies_on(layout, kind):
        name = kind.attributes[copy.field]
        if edge.get(name) != values.get(name):
            path = attribute(name)
            actions.append(Set(path, Value(values[name])) if name in values else Remove(path))
    return tuple(actions)


def _updates(layout: BoundLayout, kind: EdgeType, edge: Item, actions: tuple[Action, ...]) -> tuple[Update, ...]:
    """The edge's own item, and what stands beside it for an index."""
    keys = [each.key for each in layout.satellites_beside(kind, edge)]
    wanted: Condition | None = layout.present
    if layout.has_satellites(kind):
        # Somebody may put another beside it meanwhile, which would not have what is written here.
        wanted = all_of(layout.present, unchanged(layout, edge))
    if layout.has_satellites(kind) or REVISION in edge:
        actions = (*actions, Set(attribute(REVISION), Value(new_revision())))
    return (
        Update(layout.table, layout.key_of(edge), actions, wanted),
        *(Update(layout.table, key, actions, layout.present) for key in keys),
    )


def _grouped(stale: Sequence[_Stale], most: int) -> Iterator[list[_Stale]]:
    """Edges that fit into one transaction, so many at most, those of one node next to each other."""
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
    different = {(place_of(check.key), repr(check.condition)): check for each in group for check in each.checks(layout)}
    checks: tuple[Check, ...] = ()
    for check in different.values():
        checks = joined_checks(checks, (check,))
    return TransactWrite((*checks, *(update for each in group for update in each.updates)))
