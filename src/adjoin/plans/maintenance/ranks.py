"""Least, greatest, latest and top values: read off the ranks of a node, and written on it.

A transaction that changes ranks leaves the rule in the node's `adjoin:stale` and counts its `adjoin:turn`.
Whoever meets a stale node reads the first ranks of each such rule, and writes what they say if the turn
is still the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.expressions import Action, Compare, Condition, Remove, Set, Value, all_of, attribute
from adjoin.layouts.interface import LIFE, REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks, get_all
from adjoin.plans.maintenance.contributions import BY, VALUE
from adjoin.plans.maintenance.postings import STALE, TURN, Near, copies_of, revises
from adjoin.plans.maintenance.references import key_of_node
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Get, PageResponse, Query, TransactWrite, Update
from adjoin.rules import Rule
from adjoin.schema import NodeType
from adjoin.values import AttributeValue, Item

_NODES_A_ROUND = 25


def refresh(layout: BoundLayout, nodes: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Brings the stale ones of these nodes, given by their partition keys, up to date."""
    for some in chunks(nodes.items(), _NODES_A_ROUND):
        waiting = dict(some)
        while waiting:
            nears = yield from _stale(layout, waiting)
            rules = {near.text: _rules(layout, near) for near in nears}
            asked = [(near, rule) for near in nears for rule in rules[near.text]]
            found: dict[str, list[tuple[Rule, Sequence[Item]]]] = {near.text: [] for near in nears}
            if asked:
                responses: list[PageResponse] = yield tuple(_query(layout, near, rule) for near, rule in asked)
                for (near, rule), response in zip(asked, responses, strict=True):
                    found[near.text].append((rule, list(response.items)))
            waiting = {near.text: near.kind for near in nears}
            if not nears:
                break
            try:
                yield tuple(_write(layout, near, found[near.text]) for near in nears)
            except (ConditionFailed, TransactionCanceled):
                # Which of them came too late is not told, but those that did not are not stale any more.
                continue
            tally.nodes.update(waiting)
            break


def _stale(layout: BoundLayout, nodes: Mapping[str, NodeType]) -> Plan[list[Near]]:
    keys = {text: key_of_node(layout, kind, text) for text, kind in nodes.items()}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nears = [Near(nodes[text], text, key, item) for (text, key), item in zip(keys.items(), items, strict=True)]
    return [near for near in nears if near.item is not None and STALE in near.item]


def _rules(layout: BoundLayout, near: Near) -> list[Rule]:
    stale = set((near.item or {})[STALE]["SS"])
    return [rule for rule in layout.rules.rules if rule.name in stale and rule.operation != "sum"]


def _query(layout: BoundLayout, near: Near, rule: Rule) -> Query:
    partition, sort = layout.ledgers.ranks(near.text, near.life, rule.name)
    return Query(layout.table, partition, sort, limit=rule.k, forward=rule.operation == "min", consistent=True)


def _write(layout: BoundLayout, near: Near, found: list[tuple[Rule, Sequence[Item]]]) -> Update | TransactWrite:
    item = near.item or {}
    actions: list[Action] = [Remove(attribute(STALE))]
    for rule, ranks in found:
        for name, value in _results(rule, ranks).items():
            actions.append(Remove(attribute(name)) if value is None else Set(attribute(name), Value(value)))
    conditions: list[Condition] = [_same(item, LIFE), _same(item, TURN)]
    copies = copies_of(layout, near)
    if revises(layout, near.kind):
        actions.append(Set(attribute(REVISION), Value(near.revision)))
        if REVISION in item:
            conditions.append(_same(item, REVISION))
    wanted = all_of(layout.present, *conditions)
    update = Update(layout.table, near.key, tuple(actions), wanted)
    if not copies:
        return update
    others = (Update(layout.table, key, tuple(actions), layout.present) for key in copies)
    return TransactWrite((update, *others))


def _same(item: Item, name: str) -> Condition:
    return Compare("=", attribute(name), Value(item[name]))


def _results(rule: Rule, ranks: Sequence[Item]) -> dict[str, AttributeValue | None]:
    """Where what the first ranks say is stored."""
    if rule.operation == "top":
        return {rule.attribute: {"L": [rank[VALUE] for rank in ranks]} if ranks else None}
    first = ranks[0] if ranks else None
    results = {rule.attribute: first[VALUE] if first else None}
    if rule.pair is not None:
        results[rule.pair] = {"L": [first[BY], first[VALUE]]} if first else None
    return results
