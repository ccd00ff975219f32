"""Ledgers as tests look at them: which edges an item is about, and items of ledgers spoilt or made up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.plans.batches import Place, place_of
from adjoin.plans.maintenance.ledger import LENGTH, PARTS, Ledger, ledger_in, ref_beside
from adjoin.plans.maintenance.ledger import edge_of as edge_beside
from adjoin.plans.maintenance.rank_items import ranks_of
from adjoin.plans.maintenance.references import EdgeRef, ref_in
from adjoin.values import Item


def is_ledger(item: Item) -> bool:
    return "applied" in item or bool(set(PARTS) & item.keys())


def is_rank(layout: BoundLayout, item: Item) -> bool:
    start: str = layout.ledgers.all_ranks("")[1].operands[0]["S"]
    return layout.is_bookkeeping(item) and [*layout.key_of(item).values()][1]["S"].startswith(start)


def named_ranks(layout: BoundLayout, items: Iterable[Item]) -> dict[Place, Item]:
    """The ranks that ledgers name in the lives that their nodes have, and what they hold."""
    items = [*items]
    nodes = {place_of(layout.key_of(item)): item for item in items if LIFE in item and not is_ledger(item)}
    named = {}
    for item in filter(is_ledger, items):
        for ref, ledger in entries_of(layout, item):
            node = nodes.get(place_of(ref.near_key(layout)), {})
            life, next = (node.get(name, {}).get("S") for name in (LIFE, NEXT))
            if ledger.life in (life, next):
                for rank in ranks_of(ledger, life if ledger.life == next else None, ref.account.keys):
                    named[place_of(rank.key(layout, ref))] = {**rank.entry}
    return named


def edge_of(layout: BoundLayout, item: Item) -> Item:
    """The key of the edge that a ledger is of."""
    return dict(item["edge"]["M"]) if "applied" in item else edge_beside(layout, item)


def entries_of(layout: BoundLayout, item: Item) -> list[tuple[EdgeRef, Ledger]]:
    """What a ledger says, account by account."""
    kind = layout.kind_of(edge_of(layout, item))
    found = []
    for account in layout.rules.accounts:
        ledger = ledger_in(account, item) if account.edge is kind and account.reads_far == ("applied" in item) else None
        if ledger is not None:
            ref = (ref_in if account.reads_far else ref_beside)(layout, account, item)
            if ref.ledger_key(layout) == layout.key_of(item):
                found.append((ref, ledger))
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
    named = {"edge": {"M": other}} if "applied" in item else {}
    return item | named | {sort: {"S": item[sort]["S"] + "x"}}
