"""Ledgers as tests look at them: which edges an item is about, and items of ledgers spoilt or made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adjoin.entity_types import EdgeType
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.plans.counting.arrivals import Arrival
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.plans.counting.ledger import (
    LENGTH,
    PARTS,
    EdgeRef,
    Ledger,
    counted_by,
    ledger_in,
    ref_beside,
    ref_in,
    ref_to,
)
from adjoin.plans.counting.ledger import edge_of as edge_beside
from adjoin.plans.counting.node_transaction import waits
from adjoin.plans.counting.rank_items import ranks_of
from adjoin.plans.steps.batches import Place, place_of
from adjoin.values import Item


def is_ledger(item: Item) -> bool:
    return "applied" in item or bool(set(PARTS) & item.keys())


def is_rank(layout: BoundLayout, item: Item) -> bool:
    start: str = layout.ledgers.all_ranks("")[1].operands[0]["S"]
    return layout.is_bookkeeping(item) and [*layout.key_of(item).values()][1]["S"].startswith(start)


def named_ranks(layout: BoundLayout, items: Iterable[Item]) -> dict[Place, Item]:
    """The ranks that ledgers name in the lives that their nodes have, and what they hold."""
    items = [*items]
    nodes = {place_of(layout.key_of(item)): item for item in items if GENERATION in item and not is_ledger(item)}
    named = {}
    for item in filter(is_ledger, items):
        for ref, ledger in entries_of(layout, item):
            node = nodes.get(place_of(ref.near_key(layout)), {})
            generation, next = (node.get(name, {}).get("S") for name in (GENERATION, NEXT_GENERATION))
            if ledger.generation in (generation, next):
                for rank in ranks_of(ledger, generation if ledger.generation == next else None, ref.group.keys):
                    named[place_of(rank.key(layout, ref))] = {**rank.entry}
    return named


def edge_of(layout: BoundLayout, item: Item) -> Item:
    """The key of the edge that a ledger is of."""
    return dict(item["edge"]["M"]) if "applied" in item else edge_beside(layout, item)


def entries_of(layout: BoundLayout, item: Item) -> list[tuple[EdgeRef, Ledger]]:
    """What a ledger says, rule group by rule group."""
    kind = layout.kind_of(edge_of(layout, item))
    found = []
    for group in layout.rules.groups:
        ledger = ledger_in(group, item) if group.edge is kind and group.reads_far == ("applied" in item) else None
        if ledger is not None:
            ref = (ref_in if group.reads_far else ref_beside)(layout, group, item)
            if ref.ledger_key(layout) == layout.key_of(item):
                found.append((ref, ledger))
    return found


def _states(layout: BoundLayout, there: Mapping[Place, Item]) -> Iterator[EdgeState]:
    """Every edge in every rule group, with what is stored for it."""
    for item in [item for item in there.values() if not layout.is_bookkeeping(item)]:
        kind = layout.kind_of(item)
        counted = None if kind is None else kind.as_counted
        for group in counted_by(layout, counted) if counted is not None else ():
            ref = ref_to(layout, group, item)
            keys = ref.ledger_key(layout), ref.near_key(layout), ref.far_key(layout)
            ledger, near, far = (there.get(place_of(key)) for key in keys)
            generation, next = ((near or {}).get(name, {}).get("S") for name in (GENERATION, NEXT_GENERATION))
            state = EdgeState(ref, item, ledger, near, far, generation or "", next)
            state.work_out(layout)
            yield state


def missing(layout: BoundLayout, items: Iterable[Item]) -> list[EdgeRef]:
    """The edges that count for a node that is there, and have no valid ledger: what `LedgerAudit` tells, by hand."""
    there = {place_of(layout.key_of(item)): item for item in items}
    return [state.ref for state in _states(layout, there) if state.is_kept and not state.is_valid]


def unmarked(layout: BoundLayout, items: Iterable[Item]) -> list[EdgeRef]:
    """The edges whose near node is not there, and that nobody would find when it comes: what `LedgerAudit` tells.

    There is no waiting marker; or the edge arrives, and nothing beside the node says so.
    """
    there = {place_of(layout.key_of(item)): item for item in items}
    found = []
    for state in filter(waits, _states(layout, there)):
        ref, group = state.ref, state.ref.group
        is_found = group.hop.direction == "out" or (state.ledger is not None and not group.reads_far)
        if group.reads_far and group.edge.model in layout.rules.arriving:
            arrival = Arrival(group.edge, ref.key, ref.far, ref.near)
            is_found |= place_of(arrival.place(layout)) in there
        if not is_found or place_of(layout.ledgers.marker_key(ref.near)) not in there:
            found.append(ref)
    return found


def left_arrivals(layout: BoundLayout, items: Iterable[Item]) -> list[Arrival]:
    """The arrivals of edges that are not there, or do not arrive there: what `LedgerAudit` tells, by hand."""
    items = [*items]
    there = {place_of(layout.key_of(item)): item for item in items}
    found = []
    for item in items:
        if "edge" in item and "marked" in item and layout.is_bookkeeping(item):
            key, target = item["edge"]["M"], next(iter(layout.key_of(item).values()))["S"].removesuffix("#=")
            kind, edge = layout.kind_of(key), there.get(place_of(key))
            assert isinstance(kind, EdgeType)
            if edge is None or layout.ends(kind, edge)[1] != target:
                found.append(Arrival(kind, key, "", target))
    return found


def sums_in(item: Item) -> list[tuple[str, str]]:
    """The numbers that a ledger has: in which part, and under which name."""
    return [
        (part, name)
        for part in ("applied", *PARTS)
        for name, value in item.get(part, {"M": {}})["M"].items()
        if "N" in value
    ]


def spoilt(item: Item, part: str, name: str, number: str) -> Item:
    """A ledger with another number."""
    whole: dict[str, Any] = item[part]["M"] | {name: {"N": number}}
    if part == "applied":
        return item | {part: {"M": whole}, "adjoin:revision": {"S": "spoilt"}}
    return item | {part: {"M": whole | {"r": {"S": "spoilt"}}}}


def stray(layout: BoundLayout, item: Item) -> Item:
    """The same for an edge that is not there: to another node, or from another one where it lies beside the target."""
    partition, sort = layout.key_of(item)
    edge = edge_of(layout, item)
    if LENGTH in item:
        length = str(len(edge[partition]["S"]) + 1)
        return item | {sort: {"S": item[sort]["S"] + "x"}, LENGTH: {"N": length}}
    other = edge | {sort: {"S": edge[sort]["S"] + "x"}}
    if layout.kind_of(other) is None:
        return _elsewhere(layout, item, edge)
    named = {"edge": {"M": other}} if "applied" in item else {}
    return item | named | {sort: {"S": item[sort]["S"] + "x"}}


def _elsewhere(layout: BoundLayout, item: Item, edge: Item) -> Item:
    """The same in another partition, for a key that ends in a number, or in nothing."""
    partition, sort = layout.key_of(item)
    before, after = edge[partition]["S"], edge[partition]["S"] + "x"
    if "applied" not in item:
        return item | {partition: {"S": item[partition]["S"].replace(before, after)}}
    told = f"{before}#{edge[sort]['S']}"
    own = item[sort]["S"].replace(told, f"{after}#{edge[sort]['S']}")
    return item | {sort: {"S": own}, "edge": {"M": edge | {partition: {"S": after}}}}
