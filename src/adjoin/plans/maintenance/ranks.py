"""Reads least, greatest, latest and top values from the ranks of a node, and writes them on the node.

In: nodes that `reconciling` or `recounting` found stale. Out: nodes with the values that their ranks say, and no longer
stale. `plans/counting/rank_items` says which ranks count.

A node transaction that changes which ranks are named adds the rule to the node's `adjoin:stale`, and counts up its
`adjoin:turn`. A process that finds a stale node reads the first ranks of each stale rule, and then the ledgers of these
ranks. From those that are named it computes the values, and writes them if the turn is still the same.

Why this is right: if the turn is the same, no ledger has changed which ranks it names since the node was read. So all
named ranks existed when the ranks were read, and the ranks that were found to be named are still named.

If the values do not fit into the node, they are left out, and a record says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from adjoin.entity_types import NodeType
from adjoin.errors import ConditionFailed, InvalidKey, InvalidModel, InvalidRequest, TransactionCanceled
from adjoin.expressions import Action, Condition, Remove, Set, Value, all_of, attribute
from adjoin.field_types import plain_type
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, REVISION
from adjoin.layouts.own_items import is_of
from adjoin.plans.counting.contributions import BY, VALUE
from adjoin.plans.counting.edge_state import reason_of
from adjoin.plans.counting.entries import with_entries
from adjoin.plans.counting.ledger import key_of_node
from adjoin.plans.counting.node_transaction import FULL, STALE, TURN, Near, copies_of, is_hopeless, revises
from adjoin.plans.counting.rank_items import RankStanding, ledger_key, standing
from adjoin.plans.maintenance.report import Tally, Unapplied, record_key
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import Place, chunks, get_all, place_of, write_all
from adjoin.requests import Delete, Get, PageResponse, Plan, Put, Query, TransactWrite, Update
from adjoin.rules import Rule, RuleGroup, Term
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

_NODES_A_ROUND = 25
"""How many nodes are brought up to date side by side."""
_ROOM = MAX_TRANSACTION - 10
"""The most values that one edge may contribute. The rest of a transaction is for the edge, its ledger and its nodes."""
_MORE = 20
"""How many ranks are read in addition to the missing ones, if some of the first ranks do not count."""
_Found: TypeAlias = list[tuple[Rule, Sequence[Item]]]


def refresh(layout: BoundLayout, nodes: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Brings those of these nodes up to date that are stale. They are given by their node keys."""
    for some in chunks(nodes.items(), _NODES_A_ROUND):
        yield from _refresh(layout, dict(some), tally)


def _refresh(layout: BoundLayout, waiting: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Does this for a few nodes. `refused` is the reason why a single node has no room for its values."""
    refused: str | None = None
    while True:
        nears = yield from _stale(layout, waiting)
        if not nears:
            return
        asked = [(near, rule) for near in nears for rule in _rules(layout, near)]
        found: dict[str, _Found] = {near.node_key: [] for near in nears}
        if refused is None:
            ranks = yield from _first(layout, asked)
            for (near, rule), items in zip(asked, ranks, strict=True):
                found[near.node_key].append((rule, items))
        waiting = {near.node_key: near.kind for near in nears}
        try:
            yield tuple(_write(layout, near, found[near.node_key], refused) for near in nears)
        except (ConditionFailed, TransactionCanceled, InvalidRequest, InvalidKey) as error:
            # The error does not say which node lost the race; those that were written are no longer stale.
            if not _has_no_room(error):
                continue
            if len(nears) > 1:
                for near in nears:
                    yield from _refresh(layout, {near.node_key: near.kind}, tally)
                return
            if refused is not None:
                raise
            refused = reason_of(error)
            continue
        tally.nodes.update(waiting)
        if refused is not None:
            _unapplied(layout, nears[0], refused).note(tally)
        return


def _has_no_room(error: ConditionFailed | TransactionCanceled | InvalidRequest | InvalidKey) -> bool:
    """Whether the values cannot be written: the item would be too large, or an index key cannot hold one of them."""
    if isinstance(error, TransactionCanceled):
        return is_hopeless(error)
    return isinstance(error, InvalidRequest | InvalidKey)


def _unapplied(layout: BoundLayout, near: Near, refused: str) -> Unapplied:
    names = ", ".join(rule.name for rule in _rules(layout, near))
    return Unapplied(near.key, f"it has no room for {names}, which are left out: {refused}")


def _stale(layout: BoundLayout, nodes: Mapping[str, NodeType]) -> Plan[list[Near]]:
    """Reads nodes. Returns those that exist and are stale."""
    keys = {node_key: key_of_node(layout, kind, node_key) for node_key, kind in nodes.items()}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nears = [
        Near(nodes[node_key], node_key, key, item) for (node_key, key), item in zip(keys.items(), items, strict=True)
    ]
    return [near for near in nears if near.item is not None and STALE in near.item]


def _rules(layout: BoundLayout, near: Near) -> list[Rule]:
    """The rules whose values have to be written on a node.

    These are the stale rules, and those whose values had no room before, because there may be room now. Rules by which
    the node was not counted, or of another declaration, are left out.
    """
    item = near.item or {}
    stale = {name for attribute in (STALE, FULL) if attribute in item for name in item[attribute]["SS"]}
    ranked = [rule for rule in layout.rules.rules if rule.name in stale and rule.is_ranked]
    return [rule for rule in ranked if rule.node is near.kind and is_of(layout.rules, rule, item)]


def _first(layout: BoundLayout, asked: Sequence[tuple[Near, Rule]]) -> Plan[list[list[Item]]]:
    """The first ranks that count, for each node and rule: as many as the rule needs.

    Dead ranks that are found on the way are deleted.
    """
    found: list[list[Item]] = [[] for _ in asked]
    queries = {number: _query(layout, near, rule) for number, (near, rule) in enumerate(asked)}
    dead: list[Item] = []
    while queries:
        responses: list[PageResponse] = yield tuple(queries.values())
        pages = dict(zip(queries, responses, strict=True))
        met = [(number, rank) for number, page in pages.items() for rank in page.items]
        standings = yield from _standings(layout, [(*asked[number], rank) for number, rank in met])
        for (number, rank), each in zip(met, standings, strict=True):
            if each == "named":
                found[number].append(rank)
            elif each == "dead":
                dead.append(rank)
        for number, page in pages.items():
            left = asked[number][1].k - len(found[number])
            if page.last is None or left <= 0:
                del queries[number]
            else:
                queries[number] = replace(queries[number], start=page.last, limit=left + _MORE)
    yield from write_all([Delete(layout.table, layout.key_of(rank)) for rank in dead])
    return [ranks[: rule.k] for ranks, (_, rule) in zip(found, asked, strict=True)]


def _standings(layout: BoundLayout, met: Sequence[tuple[Near, Rule, Item]]) -> Plan[list[RankStanding]]:
    """The standing of each of these ranks. Their ledgers are read here, so after the ranks, as `standing` requires."""
    keys = [ledger_key(layout, rank) for _, _, rank in met]
    places = {place_of(key): key for key in keys if key is not None}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in places.values()])
    ledgers = dict(zip(places, items, strict=True))
    return [
        standing(layout, _group_of(layout, rule), rank, ledgers[place_of(key)] if key is not None else None, near.item)
        for (near, rule, rank), key in zip(met, keys, strict=True)
    ]


def remove_dead(layout: BoundLayout, rule: Rule, ranks: Mapping[Place, str]) -> Plan[int]:
    """Removes the dead ones of some ranks of a rule. Returns how many.

    `ranks` has the keys of the ranks, each with the node key of its node. An audit finds them.
    """
    names = [key.name for key in layout.definition.keys]
    keys = [{name: {"S": node_key} for name, node_key in zip(names, place, strict=True)} for place in ranks]
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys])
    there = [(rank, node_key) for rank, node_key in zip(found, ranks.values(), strict=True) if rank is not None]
    # Nodes are read after ranks. A rank is put after its generation is stored on the node. So a rank whose generation
    # the node does not have now is of a generation that is over.
    nodes = {node_key: key_of_node(layout, rule.node, node_key) for _, node_key in there}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in nodes.values()])
    nears = {
        node_key: Near(rule.node, node_key, key, item)
        for (node_key, key), item in zip(nodes.items(), items, strict=True)
    }
    standings = yield from _standings(layout, [(nears[node_key], rule, rank) for rank, node_key in there])
    dead = [
        rank
        for (rank, node_key), each in zip(there, standings, strict=True)
        if each == "dead"
        or layout.ledgers.generation_of_rank(rank) not in (nears[node_key].generation, nears[node_key].next)
    ]
    yield from write_all([Delete(layout.table, layout.key_of(rank)) for rank in dead])
    return len(dead)


def _group_of(layout: BoundLayout, rule: Rule) -> RuleGroup:
    return next(group for group in layout.rules.groups if rule in group.rules)


def _query(layout: BoundLayout, near: Near, rule: Rule) -> Query:
    partition, sort = layout.ledgers.ranks(near.node_key, near.generation, rule.key)
    return Query(layout.table, partition, sort, limit=rule.k, forward=rule.operation == "min", consistent=True)


def _write(layout: BoundLayout, near: Near, found: _Found, refused: str | None) -> Update | TransactWrite:
    """The request that writes the values of ranks on a node.

    If the node has no room for them (`refused` says why), it removes the values instead, and records this.
    """
    item = near.item or {}
    actions: list[Action] = [Remove(attribute(STALE))]
    records: list[Put | Delete] = []
    if refused is not None:
        unapplied = _unapplied(layout, near, refused)
        records.append(Put(layout.table, unapplied.record(layout)))
        actions.append(Set(attribute(FULL), Value({"SS": sorted(rule.name for rule in _rules(layout, near))})))
        found = [(rule, ()) for rule in _rules(layout, near)]
    elif FULL in item:
        records.append(Delete(layout.table, record_key(layout, near.key)))
        actions.append(Remove(attribute(FULL)))
    for rule, ranks in found:
        for name, value in results(rule, ranks).items():
            actions.append(Remove(attribute(name)) if value is None else Set(attribute(name), Value(value)))
    # The ranks that were read are of this generation, and still in this order: whoever moves one counts up the turn.
    conditions: list[Condition] = [same(item, GENERATION), same(item, TURN)]
    if revises(layout, near.kind):
        actions.append(Set(attribute(REVISION), Value(near.revision)))
        if REVISION in item:
            conditions.append(same(item, REVISION))
    entries = with_entries(layout, near.kind, near.key, item, copies_of(layout, near), actions)
    conditions += (each for each in entries.conditions if each not in conditions)
    update = Update(layout.table, near.key, entries.actions, all_of(layout.present, *conditions))
    if not entries.copies and not records:
        return update
    return TransactWrite((update, *entries.copies, *records))


def results(rule: Rule, ranks: Sequence[Item]) -> dict[str, AttributeValue | None]:
    """The attributes of the node that hold a rule's result, with values from the first ranks; None to remove one."""
    if rule.operation == "top":
        return {rule.attribute: {"L": [rank[VALUE] for rank in ranks]} if ranks else None}
    first = ranks[0] if ranks else None
    results = {rule.attribute: first[VALUE] if first else None}
    if rule.pair is not None:
        results[rule.pair] = {"L": [first[BY], first[VALUE]]} if first else None
    return results


def values_of_an_edge(rule: Rule) -> int:
    """The most ranks that one edge may have by a rule: several for top values if it contributes a list."""
    if rule.operation != "top":
        return int(rule.is_ranked)
    return 1 if all(map(partial(_is_single, rule), rule.terms)) else rule.k


def _is_single(rule: Rule, term: Term) -> bool:
    kind = rule.hop.kind_at(term.at)
    return term.field is not None and plain_type(kind.fields[term.field]) is not None


def check_room(layout: BoundLayout) -> None:
    """Raises `InvalidModel` if one edge may contribute more values than a transaction can contain."""
    for group in layout.rules.groups:
        values = {rule.name: values_of_an_edge(rule) for rule in group.ranked}
        if sum(values.values()) > _ROOM:
            names = ", ".join(sorted(values, key=lambda name: -values[name])[:3])
            raise InvalidModel(
                f"one {group.edge.name} may add {sum(values.values())} values to {names}, but a transaction has room "
                f"for {_ROOM}; take a smaller k, or declare fewer such aggregates"
            )
