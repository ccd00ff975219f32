"""Reconciles all edges of some nodes, without waiting for changes of these edges in the stream.

In: node keys, or edges that a batch job found. Out: their edges are reconciled by `reconciling`. `affected` needs this
for nodes that were created, and `recounting` and batch jobs for nodes that may be wrong.

`reconcile_near` reconciles all edges that count for nodes. `reconcile_above` reconciles the edges whose rules read
these nodes at their far end, then those that read the nodes that this changed, and so on, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from adjoin.entity_types import EdgeType, NodeType
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.arrivals import Arrival, counting, lookups, strike_out, take_down
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.plans.counting.ledger import EdgeRef, counted_by, counts, refs_in
from adjoin.plans.maintenance.reconciling import reconcile
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.shards import fresh_numbers
from adjoin.plans.steps.batches import Pages, Place, chunks, place_of
from adjoin.requests import Plan, Query
from adjoin.rules import RuleGroup
from adjoin.values import Item

TOGETHER = 2000
"""How many edges are reconciled together."""
_NODES = 100
"""For how many nodes edges are looked up together."""


def reconcile_near(
    layout: BoundLayout,
    kind: NodeType,
    node_keys: Iterable[str],
    tally: Tally,
    note: Callable[[EdgeState], None] | None = None,
    groups: Sequence[RuleGroup] | None = None,
) -> Plan[None]:
    """Reconciles all edges that count for nodes of a class, given by their node keys.

    `groups` limits this to some rule groups. `note` is called with each edge once it is reconciled.
    """
    refs: list[EdgeRef] = []
    looked_at = counting(layout, kind) if groups is None else groups
    for some in chunks(node_keys, _NODES):
        # Another program may have added shards since, in which there are edges of these nodes.
        if layout.shard_numbers:
            yield from fresh_numbers(layout)
        pages = Pages((each, each.query) for node_key in some for each in lookups(layout, kind, node_key, looked_at))
        # An edge that arrives may be found by several queries, in pages far apart.
        seen: set[tuple[str, Place]] = set()
        while found := (yield from pages.next()):
            for lookup, page in found:
                new = [ref for ref in lookup.refs(layout, page) if ref.place not in seen]
                # Only these are remembered: a node may have millions of edges.
                if lookup.repeats:
                    seen.update(ref.place for ref in new)
                refs += new
            if len(refs) >= TOGETHER:
                yield from _reconciled(layout, refs, tally, note)
                refs = []
    yield from _reconciled(layout, refs, tally, note)


def reconcile_found(layout: BoundLayout, refs: Sequence[EdgeRef], tally: Tally) -> Plan[None]:
    """Reconciles edges that arrive at nodes, and records their arrivals.

    A batch job has found them, for example in an export, so they may not exist any more.
    """
    for some in chunks(refs, TOGETHER):
        arriving = {
            place_of(ref.key): Arrival(ref.group.edge, ref.key, ref.far, ref.near)
            for ref in some
            if ref.group.edge.model in layout.rules.arriving
        }
        yield from take_down(layout, arriving.values())
        yield from _reconcile_and_strike_out(layout, some, arriving, tally)


def _reconcile_and_strike_out(
    layout: BoundLayout, refs: Iterable[EdgeRef], arriving: Mapping[Place, Arrival], tally: Tally
) -> Plan[None]:
    """Reconciles edges, and removes the arrivals of those that do not exist."""
    gone: set[Place] = set()

    def note(state: EdgeState) -> None:
        if state.edge is None:
            gone.add(place_of(state.ref.key))

    yield from reconcile(layout, refs, tally, note)
    yield from strike_out(layout, [edge for place, edge in arriving.items() if place in gone])


def reconcile_again(
    layout: BoundLayout, kind: EdgeType, edges: Iterable[tuple[Sequence[Item], str, str]], tally: Tally
) -> Plan[None]:
    """Reconciles edges in all their rule groups, and everything that is computed from the nodes that this changes.

    An edge is given by the keys of its items and the node keys of its source and target. A symmetric edge has two
    items; the second one leads from the target to the source.
    """
    refs = []
    arriving: dict[Place, Arrival] = {}
    for keys, source, target in edges:
        if kind.model in layout.rules.arriving:
            arriving[place_of(keys[0])] = Arrival(kind, keys[0], source, target)
        for group in counted_by(layout, kind):
            for key, (start, end) in zip(keys, ((source, target), (target, source)), strict=False):
                near, far = (start, end) if group.hop.direction == "out" else (end, start)
                refs.append(EdgeRef(group, key, near, far))
    # A rule may be about one class at an end, and the edge may lead to a node of another class.
    refs = [ref for ref in refs if counts(layout, ref)]
    own = Tally()
    yield from _reconcile_and_strike_out(layout, refs, arriving, own)
    tally.include(own)
    nears = {ref.near: ref.group.hop.near for ref in refs}
    yield from reconcile_above(layout, {node_key: nears[node_key] for node_key in own.nodes}, tally)


def _reconciled(
    layout: BoundLayout, refs: list[EdgeRef], tally: Tally, note: Callable[[EdgeState], None] | None
) -> Plan[None]:
    for some in chunks(refs, TOGETHER):
        yield from reconcile(layout, some, tally, note)


# --- what is computed from nodes ---------------------------------------------------------------


def reconcile_above(layout: BoundLayout, nodes: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Reconciles everything that is computed from these nodes, hop by hop.

    This ends, because edges that would close a cycle are set aside.
    """
    changed = dict(nodes)
    while changed:
        found: dict[str, NodeType] = {}
        for some in chunks(changed.items(), _NODES):
            yield from _reconcile_readers(layout, dict(some), found, tally)
        changed = found


def _reconcile_readers(
    layout: BoundLayout, nodes: Mapping[str, NodeType], changed: dict[str, NodeType], tally: Tally
) -> Plan[None]:
    """Reconciles the edges whose rules read these nodes. Adds the nodes that this changed to `changed`."""
    pages = Pages(
        (group, Query(layout.table, *layout.ledgers.ledgers(group.name, node_key), consistent=True))
        for node_key, kind in nodes.items()
        for group in layout.rules.groups
        if group.reads_far and group.hop.far.covers(kind)
    )
    while found := (yield from pages.next()):
        refs = [ref for group, page in found for ref in refs_in(layout, group, page.items)]
        for some in chunks(refs, TOGETHER):
            own = Tally()
            yield from reconcile(layout, some, own)
            # Each part has a tally of its own, because only it says which nodes this part has changed.
            kinds = {ref.near: ref.group.hop.near for ref in some}
            changed |= {node_key: kinds[node_key] for node_key in own.nodes}
            tally.include(own)
