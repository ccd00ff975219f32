"""Recursive rules, and edges that would close a circle.

Before an edge is applied by a recursive rule, everything above its near node is looked up: if its far node
is there, the edge is set aside, or its node would count itself for ever. Edges in a circle may be applied
by several at once, each of whom sees none. So a rule has a count of its changes of order, and an edge is
only applied, or set aside, if that is what it was before the look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adjoin.expressions import Add, Compare, Condition, Exists, Not, Value, attribute
from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import get_all
from adjoin.plans.maintenance.ledger import APPLIED
from adjoin.plans.maintenance.postings import Posting
from adjoin.plans.maintenance.references import EdgeRef, key_of_node, ref_in
from adjoin.requests import Check, Get, ItemResponse, PageResponse, Query, Update
from adjoin.rules import Account, Rule
from adjoin.values import Item

CHANGES = "changes"
"""The attribute of a rule's record that counts changes of order."""


def is_structural(posting: Posting) -> bool:
    """Whether edges become part of what a recursive rule goes over, or leave it."""
    return posting.near.item is not None and any(
        entry.joined(rule) or entry.left(rule) for entry in posting.entries for rule in _recursive(entry.ref.account)
    )


def _recursive(account: Account) -> list[Rule]:
    return [rule for rule in account.rules if rule.is_recursive]


def order(layout: BoundLayout, posting: Posting) -> Plan[None]:
    """Sets aside the entries that would close a circle, and lets the transaction hold only if nothing moved."""
    rules = {
        rule.name: (entry.ref.account, rule) for entry in posting.entries for rule in _recursive(entry.ref.account)
    }
    posting.beyond = []
    for account, rule in rules.values():
        key = layout.ledgers.record_key("ORDER", rule.name)
        joining = [entry for entry in posting.entries if entry.ref.account is account and entry.joined(rule)]
        wanted: Condition | None = None
        if joining:
            response: ItemResponse
            (response,) = yield (Get(layout.table, key, consistent=True),)
            wanted = _is_still(response.item)
            above = yield from _above(layout, account, rule, posting.near.text)
            for entry in joining:
                if entry.ref.far in above:
                    entry.set_aside(rule, f"it would close a circle: {entry.ref.far!r} is above {entry.ref.near!r}")
        moved = any(entry.joined(rule) or entry.left(rule) for entry in posting.entries)
        if moved:
            posting.beyond.append(Update(layout.table, key, (Add(attribute(CHANGES), {"N": "1"}),), wanted))
        elif wanted is not None:
            posting.beyond.append(Check(layout.table, key, wanted))
    posting.entries = [entry for entry in posting.entries if not entry.is_settled]
    posting.write_down(layout)


def _is_still(record: Item | None) -> Condition:
    path = attribute(CHANGES)
    return Not(Exists(path)) if record is None else Compare("=", path, Value(record[CHANGES]))


def _above(layout: BoundLayout, account: Account, rule: Rule, near: str) -> Plan[set[str]]:
    """A node and all from which applied edges lead to it, by partition key."""
    above = {near}
    frontier = [near]
    while frontier:
        parents = yield from _parents(layout, account, rule, frontier)
        frontier = [parent for parent in dict.fromkeys(parents) if parent not in above]
        above.update(frontier)
    return above


def _parents(layout: BoundLayout, account: Account, rule: Rule, nodes: Sequence[str]) -> Plan[list[str]]:
    """The nodes from which applied edges lead to these."""
    while True:
        ledgers = yield from _ledgers(layout, account, rule, nodes)
        nears = {_near(layout, account, ledger): None for ledger in ledgers}
        found = yield from get_all(
            [Get(layout.table, key_of_node(layout, account.hop.near, text), consistent=True) for text in nears]
        )
        items = dict(zip(nears, found, strict=True))
        void = [ledger for ledger in ledgers if not _counts(ledger, items[_near(layout, account, ledger)])]
        # A node that is counted anew changes its ledgers first, and then its life. So a ledger is only void if it
        # was so when its node was read: it is still what it was before that.
        again = yield from get_all([Get(layout.table, layout.key_of(ledger), consistent=True) for ledger in void])
        if again == void:
            counted = {_near(layout, account, ledger) for ledger in ledgers if ledger not in void}
            return [text for text in nears if text in counted]


def _ledgers(layout: BoundLayout, account: Account, rule: Rule, nodes: Sequence[str]) -> Plan[list[Item]]:
    """The ledgers of edges that lead to nodes, and are applied by a rule, in whatever life."""
    queries = [Query(layout.table, *layout.ledgers.ledgers(account.name, node), consistent=True) for node in nodes]
    ledgers: list[Item] = []
    while queries:
        responses: list[PageResponse] = yield tuple(queries)
        ledgers += [item for response in responses for item in response.items if rule.key in item[APPLIED]["M"]]
        queries = [
            replace(query, start=response.last)
            for query, response in zip(queries, responses, strict=True)
            if response.last is not None
        ]
    return ledgers


def _near(layout: BoundLayout, account: Account, ledger: Item) -> str:
    return ref_in(layout, account, ledger).near


def _counts(ledger: Item, near: Item | None) -> bool:
    """Whether a ledger is of a life of its node."""
    return near is not None and LIFE in near and ledger[LIFE] in (near.get(LIFE), near.get(NEXT))


def moved(layout: BoundLayout, rule: Rule) -> Plan[None]:
    """Takes down that a rule goes over less than before, because a node went."""
    key = layout.ledgers.record_key("ORDER", rule.name)
    yield (Update(layout.table, key, (Add(attribute(CHANGES), {"N": "1"}),)),)


def set_aside_by(layout: BoundLayout, account: Account, rule: Rule) -> Plan[list[EdgeRef]]:
    """The edges that a rule has set aside."""
    partition, sort = layout.ledgers.records("ASIDE", f"{rule.name}#")
    refs: list[EdgeRef] = []
    query: Query | None = Query(layout.table, partition, sort, consistent=True)
    while query is not None:
        response: PageResponse
        (response,) = yield (query,)
        refs += [ref_in(layout, account, item) for item in response.items]
        query = None if response.last is None else replace(query, start=response.last)
    return refs
