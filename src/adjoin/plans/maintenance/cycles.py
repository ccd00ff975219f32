"""Recursive rules: sets edges aside that would close a cycle.

In: a node transaction in which edges begin or stop to contribute by a recursive rule. Out: the same transaction without
the edges that would close a cycle, and with a condition that keeps this decision right. `reconciling` calls `order`
just before it writes such a transaction, and writes it alone.

With a recursive rule, a node's value is made of the values of the nodes below it. In a cycle, a node would count itself
for ever. So before an edge is counted, all nodes above its near node are looked up by their ledgers. If the far node is
among them, the edge is set aside.

Two maintainers may each apply one edge of a cycle at the same time, and neither would see the other's edge. So each
rule has a record with a number, which counts up whenever an edge begins or stops to contribute. An edge is counted, or
set aside, only if this number is still what it was before the lookup.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjoin.expressions import Add, Condition, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.plans.counting.ledger import APPLIED, key_of_node, ref_in
from adjoin.plans.counting.node_transaction import NodeTransaction
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import Pages, get_all
from adjoin.requests import Check, Get, ItemResponse, Plan, Query, Update
from adjoin.rules import Rule, RuleGroup
from adjoin.values import Item

CHANGES = "changes"
"""The attribute of a rule's record that counts how often its edges changed."""


def order(layout: BoundLayout, node_transaction: NodeTransaction) -> Plan[None]:
    """Sets aside the edges that would close a cycle, and adds the condition that no other edge of the rule changed."""
    rules = {
        rule.name: (state.ref.group, rule) for state in node_transaction.states for rule in state.ref.group.recursive
    }
    node_transaction.beyond = []
    for group, rule in rules.values():
        key = layout.ledgers.record_key("ORDER", rule.name)
        joining = [state for state in node_transaction.states if state.ref.group is group and state.joined(rule)]
        wanted: Condition | None = None
        if joining:
            response: ItemResponse
            # The number is read before the lookup: if an edge changes during the lookup, the transaction fails.
            (response,) = yield (Get(layout.table, key, consistent=True),)
            wanted = same(response.item, CHANGES)
            above = yield from _above(layout, group, rule, node_transaction.near.node_key)
            for state in joining:
                if state.ref.far in above:
                    state.set_aside(rule, f"it would close a cycle: {state.ref.far!r} is above {state.ref.near!r}")
        moved = any(state.joined(rule) or state.left(rule) for state in node_transaction.states)
        if moved:
            node_transaction.beyond.append(Update(layout.table, key, (Add(attribute(CHANGES), {"N": "1"}),), wanted))
        elif wanted is not None:
            node_transaction.beyond.append(Check(layout.table, key, wanted))
    node_transaction.states = [state for state in node_transaction.states if not state.is_reconciled]
    node_transaction.write_down(layout)


def _above(layout: BoundLayout, group: RuleGroup, rule: Rule, near: str) -> Plan[set[str]]:
    """The node keys of a node and of all nodes from which counted edges lead to it, over any number of hops."""
    above = {near}
    frontier = [near]
    while frontier:
        parents = yield from _parents(layout, group, rule, frontier)
        frontier = [parent for parent in dict.fromkeys(parents) if parent not in above]
        above.update(frontier)
    return above


def _parents(layout: BoundLayout, group: RuleGroup, rule: Rule, nodes: Sequence[str]) -> Plan[list[str]]:
    """The nodes from which counted edges lead to these."""
    while True:
        ledgers = yield from _ledgers(layout, group, rule, nodes)
        nears = {_near(layout, group, ledger): None for ledger in ledgers}
        found = yield from get_all(
            [Get(layout.table, key_of_node(layout, group.hop.near, node_key), consistent=True) for node_key in nears]
        )
        items = dict(zip(nears, found, strict=True))
        void = [ledger for ledger in ledgers if not _counts(ledger, items[_near(layout, group, ledger)])]
        # A recount changes the ledgers of a node first, and its generation at the end. Ledgers were read before nodes
        # here. So a ledger that seems void may only be older than the switch. It is void if it is still the same when
        # it is read again after the node.
        again = yield from get_all([Get(layout.table, layout.key_of(ledger), consistent=True) for ledger in void])
        if again == void:
            counted = {_near(layout, group, ledger) for ledger in ledgers if ledger not in void}
            return [node_key for node_key in nears if node_key in counted]


def _ledgers(layout: BoundLayout, group: RuleGroup, rule: Rule, nodes: Sequence[str]) -> Plan[list[Item]]:
    """The ledgers of edges that lead to these nodes and contribute by a rule, in any generation."""
    pages = Pages(
        (node, Query(layout.table, *layout.ledgers.ledgers(group.name, node), consistent=True)) for node in nodes
    )
    ledgers: list[Item] = []
    while found := (yield from pages.next()):
        ledgers += [item for _, page in found for item in page.items if rule.key in item[APPLIED].get("M", ())]
    return ledgers


def _near(layout: BoundLayout, group: RuleGroup, ledger: Item) -> str:
    return ref_in(layout, group, ledger).near


def _counts(ledger: Item, near: Item | None) -> bool:
    """Whether a ledger is of its node's present or next generation."""
    return (
        near is not None
        and GENERATION in near
        and ledger[GENERATION] in (near.get(GENERATION), near.get(NEXT_GENERATION))
    )


def moved(layout: BoundLayout, rule: Rule) -> Plan[None]:
    """Counts up the number of a rule because a node was deleted, and with it the contributions of its edges."""
    key = layout.ledgers.record_key("ORDER", rule.name)
    yield (Update(layout.table, key, (Add(attribute(CHANGES), {"N": "1"}),)),)
