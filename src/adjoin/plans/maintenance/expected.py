"""Predicts what `maintain` will write when an edge or a child is put: how many ledgers, ranks, checks and arrivals.

In: the requests of a plan that is being explained, from `verbs`. Out: an `Expected` for each edge that they put, which
the explanation shows. Nothing is read: the prediction assumes that the nodes exist and that the edge is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType
from adjoin.errors import AdjoinError
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.edge_state import contributions
from adjoin.plans.counting.ledger import Ledger, LedgerWrite, counted_by, counts, ledger_write, new_token, ref_to
from adjoin.plans.counting.node_transaction import TOLD
from adjoin.plans.steps.batches import Place, acted, parts_of, place_of
from adjoin.requests import BatchWrite, Put, Request, TransactWrite, Update
from adjoin.rules import Rule, RuleGroup
from adjoin.values import Item, item_size


@dataclass(frozen=True)
class Expected:
    """What `maintain` has to write because of one edge or child."""

    edge: CountedType
    fields: tuple[str, ...]
    """The aggregates to which it contributes."""
    ledgers: int
    """Number of its ledgers."""
    ledger_bytes: int
    checks: int
    """Number of items that the transactions check: the edge, and its far node if a rule reads it."""
    ranks: int
    """Number of its ranks."""
    nodes: int
    """Number of nodes that count it."""
    arrivals: int
    """Number of its arrivals: 0 or 1."""
    above: tuple[CountedType, ...]
    """Classes of edges whose rules read, at their far nodes, what this edge changes: the next hop."""
    entries: int
    """Number of index entries on its nodes that move with the aggregates."""
    copies: int
    """Number of index copies that these entries are of."""
    sets: int
    """Number of reached sets that may change."""
    written_again: int
    """Number of its nodes whose ranks are read, so that the node is written once more: see `TOLD`."""


def expected(layout: BoundLayout, requests: Iterable[Request]) -> Iterator[Expected]:
    """A prediction for each edge or child that the requests put. A symmetric edge is two items, and gives two.

    An edge that is counted only in its own transaction leaves nothing to do, and gives none.
    """
    for item in _put_in(layout, requests):
        own = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        kind = None if own is None else own.as_counted
        if kind is not None and (groups := list(counted_by(layout, kind))):
            found = _expected(layout, kind, groups, item)
            if found.nodes or found.arrivals or found.above:
                yield found


def _put_in(layout: BoundLayout, requests: Iterable[Request]) -> Iterator[Item]:
    for request in requests:
        for write in request.writes if isinstance(request, TransactWrite | BatchWrite) else (request,):
            if isinstance(write, Put):
                yield write.item
            elif isinstance(write, Update) and layout.present not in parts_of(write.condition):
                # A node with aggregates is put by an update that keeps them; other updates require that it exists.
                yield acted(write.key, write.actions)


def _is_counted(layout: BoundLayout, group: RuleGroup, item: Item) -> bool:
    """Whether the near node of an edge is of the class whose rules the group has."""
    try:
        return counts(layout, ref_to(layout, group, item))
    except AdjoinError:
        # What cannot be told is counted, so that the cost is not too low.
        return True


def _expected(layout: BoundLayout, kind: CountedType, groups: Sequence[RuleGroup], item: Item) -> Expected:
    """The prediction for one edge. The ledgers are really made, with made-up tokens, so that their sizes are right."""
    ledgers: dict[Place, LedgerWrite | Put] = {}
    ranks = 0
    written_again = set()
    groups = [group for group in groups if _is_counted(layout, group, item)]
    # What these groups change is written together with the edge.
    at_once = [group for group in groups if any(rule.in_transaction for rule in group.rules)]
    changed = {(rule.node.model, rule.attribute) for group in groups for rule in group.rules}
    groups = [group for group in groups if group not in at_once]
    for group in groups:
        try:
            ref = ref_to(layout, group, item)
            wanted, aside = contributions(layout, group, item)
        except AdjoinError:
            continue
        tokens = {name: [(new_token(), None)] * len(value["L"]) for name, value in wanted.items() if "L" in value}
        ranks += sum(map(len, tokens.values()))
        if any(rule.name in tokens and rule.operation not in TOLD for rule in group.rules):
            written_again.add(group.hop.direction)
        key = ref.ledger_key(layout)
        if wanted or aside or group.reads_far:
            write = ledger_write(layout, ref, key, None, Ledger(new_token(), wanted, aside, tokens=tokens))
            there = ledgers.get(place_of(key))
            if isinstance(there, LedgerWrite) and isinstance(write, LedgerWrite):
                write = there.joined(write)
            if isinstance(write, LedgerWrite | Put):
                ledgers[place_of(key)] = write
    stored = [each.whole if isinstance(each, LedgerWrite) else each.item for each in ledgers.values()]
    rules = [rule for group in groups for rule in group.rules]
    above = [
        group.edge
        for group in layout.rules.groups
        if group.reads_far
        and any((far.model, name) in changed for far in group.hop.far.classes for name in group.far_attributes)
    ]
    return Expected(
        kind,
        tuple(f"{rule.node.name}.{rule.field}" for rule in rules if rule.field is not None),
        len(stored),
        sum(map(item_size, stored)),
        sum(1 + (group.reads_far and not group.hop.is_child) for group in groups if group.is_checked),
        ranks,
        len({group.hop.direction for group in groups}),
        int(kind.model in layout.rules.arriving),
        tuple({edge.label: edge for edge in above}.values()),
        sum(len(_indexes(layout, rule)) for rule in rules),
        sum(rule.field in rule.node.indexed[1:] for rule in rules),
        sum(rule.is_distinct for rule in rules),
        len(written_again),
    )


def _indexes(layout: BoundLayout, rule: Rule) -> list[str]:
    """The indexes in which the entry of a node moves if the value of a rule changes."""
    kind, name = rule.node, rule.field or ""
    found = [layout.overloaded.name] if layout.overloaded is not None and name in kind.indexed else []
    keys = {
        kind.attributes.get(name, rule.attribute),
        *(key for key in layout.managed.late[kind.model] if key in layout.managed.holding(kind, name)),
    }
    return found + [index.name for index in layout.definition.indexes if keys & {each.name for each in index.keys}]
