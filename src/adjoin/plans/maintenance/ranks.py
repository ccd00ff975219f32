"""Least, greatest, latest and top values: read off the ranks of a node, and written on it.

A transaction whose ledgers name other ranks leaves the rule in the node's `adjoin:stale` and counts its `adjoin:turn`.
Whoever meets a stale node reads the first ranks of each such rule, and the ledgers of those, and writes what those say
that are named, if the turn is still the same. Then no ledger named others meanwhile: all that are named were there
when the ranks were read, and those that were found to be named are still. A node without room for them is left
without them, and a record says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from adjoin.errors import ConditionFailed, InvalidModel, InvalidRequest, TransactionCanceled
from adjoin.expressions import Action, Compare, Condition, Remove, Set, Value, all_of, attribute
from adjoin.layouts.counted import is_of
from adjoin.layouts.interface import LIFE, REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, chunks, get_all, place_of, write_all
from adjoin.plans.maintenance.asides import Unapplied, record_key
from adjoin.plans.maintenance.contributions import BY, VALUE
from adjoin.plans.maintenance.entries import reason_of
from adjoin.plans.maintenance.postings import FULL, STALE, TURN, Near, copies_of, is_hopeless, revises
from adjoin.plans.maintenance.rank_items import Standing, ledger_key, standing
from adjoin.plans.maintenance.references import key_of_node
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import Delete, Get, PageResponse, Put, Query, TransactWrite, Update
from adjoin.rules import Account, Rule, Term
from adjoin.schema import NodeType, plain_type
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

_NODES_A_ROUND = 25
_ROOM = MAX_TRANSACTION - 10
"""Values of one edge that are written together; what is left is for the edge, its ledger and its nodes."""
_MORE = 20
"""Ranks that are read beyond what is missing, where some of the first do not count."""
_Found: TypeAlias = list[tuple[Rule, Sequence[Item]]]


def refresh(layout: BoundLayout, nodes: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    """Brings the stale ones of these nodes, given by their partition keys, up to date."""
    for some in chunks(nodes.items(), _NODES_A_ROUND):
        yield from _refresh(layout, dict(some), tally)


def _refresh(layout: BoundLayout, waiting: Mapping[str, NodeType], tally: Tally) -> Plan[None]:
    refused: str | None = None
    while True:
        nears = yield from _stale(layout, waiting)
        if not nears:
            return
        asked = [(near, rule) for near in nears for rule in _rules(layout, near)]
        found: dict[str, _Found] = {near.text: [] for near in nears}
        if refused is None:
            ranks = yield from _first(layout, asked)
            for (near, rule), items in zip(asked, ranks, strict=True):
                found[near.text].append((rule, items))
        waiting = {near.text: near.kind for near in nears}
        try:
            yield tuple(_write(layout, near, found[near.text], refused) for near in nears)
        except (ConditionFailed, TransactionCanceled, InvalidRequest) as error:
            # Which of them came too late is not told, but those that did not are not stale any more.
            if not _has_no_room(error):
                continue
            if len(nears) > 1:
                for near in nears:
                    yield from _refresh(layout, {near.text: near.kind}, tally)
                return
            if refused is not None:
                raise
            refused = reason_of(error)
            continue
        tally.nodes.update(waiting)
        if refused is not None:
            _unapplied(layout, nears[0], refused).note(tally)
        return


def _has_no_room(error: ConditionFailed | TransactionCanceled | InvalidRequest) -> bool:
    return isinstance(error, InvalidRequest) or (isinstance(error, TransactionCanceled) and is_hopeless(error))


def _unapplied(layout: BoundLayout, near: Near, refused: str) -> Unapplied:
    names = ", ".join(rule.name for rule in _rules(layout, near))
    return Unapplied(near.key, f"it has no room for {names}, which are left out: {refused}")


def _stale(layout: BoundLayout, nodes: Mapping[str, NodeType]) -> Plan[list[Near]]:
    keys = {text: key_of_node(layout, kind, text) for text, kind in nodes.items()}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    nears = [Near(nodes[text], text, key, item) for (text, key), item in zip(keys.items(), items, strict=True)]
    return [near for near in nears if near.item is not None and STALE in near.item]


def _rules(layout: BoundLayout, near: Near) -> list[Rule]:
    item = near.item or {}
    stale = {name for attribute in (STALE, FULL) if attribute in item for name in item[attribute]["SS"]}
    ranked = [rule for rule in layout.rules.rules if rule.name in stale and rule.operation != "sum"]
    return [rule for rule in ranked if rule.node is near.kind and is_of(layout.rules, rule, item)]


def _first(layout: BoundLayout, asked: Sequence[tuple[Near, Rule]]) -> Plan[list[list[Item]]]:
    """The first ranks of nodes by rules that count, as many as each rule is about."""
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


def _standings(layout: BoundLayout, met: Sequence[tuple[Near, Rule, Item]]) -> Plan[list[Standing]]:
    """Whether ranks count that were just read."""
    keys = [ledger_key(layout, rank) for _, _, rank in met]
    places = {place_of(key): key for key in keys if key is not None}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in places.values()])
    ledgers = dict(zip(places, items, strict=True))
    return [
        standing(layout, _account(layout, rule), rank, ledgers[place_of(key)] if key is not None else None, near.item)
        for (near, rule, rank), key in zip(met, keys, strict=True)
    ]


def remove_dead(layout: BoundLayout, rule: Rule, ranks: Mapping[Place, str]) -> Plan[int]:
    """Removes those of some ranks of a rule that nobody will ever name; answers how many.

    `ranks` has their keys, and the partition keys of their nodes.
    """
    names = [key.name for key in layout.definition.keys]
    keys = [{name: {"S": text} for name, text in zip(names, place, strict=True)} for place in ranks]
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys])
    there = [(rank, text) for rank, text in zip(found, ranks.values(), strict=True) if rank is not None]
    # Behind the ranks: one that was put before is of a life that the node had by then.
    nodes = {text: key_of_node(layout, rule.node, text) for _, text in there}
    items = yield from get_all([Get(layout.table, key, consistent=True) for key in nodes.values()])
    nears = {text: Near(rule.node, text, key, item) for (text, key), item in zip(nodes.items(), items, strict=True)}
    standings = yield from _standings(layout, [(nears[text], rule, rank) for rank, text in there])
    dead = [
        rank
        for (rank, text), each in zip(there, standings, strict=True)
        if each == "dead" or layout.ledgers.life_of_rank(rank) not in (nears[text].life, nears[text].next)
    ]
    yield from write_all([Delete(layout.table, layout.key_of(rank)) for rank in dead])
    return len(dead)


def _account(layout: BoundLayout, rule: Rule) -> Account:
    return next(account for account in layout.rules.accounts if rule in account.rules)


def _query(layout: BoundLayout, near: Near, rule: Rule) -> Query:
    partition, sort = layout.ledgers.ranks(near.text, near.life, rule.key)
    return Query(layout.table, partition, sort, limit=rule.k, forward=rule.operation == "min", consistent=True)


def _write(layout: BoundLayout, near: Near, found: _Found, refused: str | None) -> Update | TransactWrite:
    """What the ranks say, onto the node; or nothing but that it was `refused`, with a record of it."""
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
    conditions: list[Condition] = [_same(item, LIFE), _same(item, TURN)]
    copies = copies_of(layout, near)
    if revises(layout, near.kind):
        actions.append(Set(attribute(REVISION), Value(near.revision)))
        if REVISION in item:
            conditions.append(_same(item, REVISION))
    wanted = all_of(layout.present, *conditions)
    update = Update(layout.table, near.key, tuple(actions), wanted)
    if not copies and not records:
        return update
    others = (Update(layout.table, key, tuple(actions), layout.present) for key in copies)
    return TransactWrite((update, *others, *records))


def _same(item: Item, name: str) -> Condition:
    return Compare("=", attribute(name), Value(item[name]))


def results(rule: Rule, ranks: Sequence[Item]) -> dict[str, AttributeValue | None]:
    """Where what the first ranks say is stored."""
    if rule.operation == "top":
        return {rule.attribute: {"L": [rank[VALUE] for rank in ranks]} if ranks else None}
    first = ranks[0] if ranks else None
    results = {rule.attribute: first[VALUE] if first else None}
    if rule.pair is not None:
        results[rule.pair] = {"L": [first[BY], first[VALUE]]} if first else None
    return results


def values_of_an_edge(rule: Rule) -> int:
    """How many values one edge may have among the ranks of a rule: several where it leads to a list."""
    if rule.operation != "top":
        return 0 if rule.operation == "sum" else 1
    return 1 if all(map(partial(_is_single, rule), rule.terms)) else rule.k


def _is_single(rule: Rule, term: Term) -> bool:
    kind = rule.hop.kind_at(term.at)
    return term.field is not None and plain_type(kind.fields[term.field]) is not None


def check_room(layout: BoundLayout) -> None:
    """Raises `InvalidModel` if what one edge may add has no room in a transaction, and could never be applied."""
    for account in layout.rules.accounts:
        values = {rule.name: values_of_an_edge(rule) for rule in account.rules if rule.operation != "sum"}
        if sum(values.values()) > _ROOM:
            names = ", ".join(sorted(values, key=lambda name: -values[name])[:3])
            raise InvalidModel(
                f"one {account.edge.name} may add {sum(values.values())} values to {names}, and a transaction has room "
                f"for {_ROOM}; take a smaller k, or fewer of them"
            )
