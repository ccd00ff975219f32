"""Changes of nodes that are not made of edges: their lives, and what late comers must find changed.

A node has a life before anything is counted for it. What was counted in one life is void in another, so that a
node that comes back under its key begins with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.expressions import Action, Add, And, Condition, Remove, Set, Value, attribute
from adjoin.layouts.counted import COUNTED, at_birth
from adjoin.layouts.interface import LIFE, REVISION, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.ledger import LEFT
from adjoin.plans.maintenance.postings import Near, copies_of, new_revision, revises
from adjoin.requests import TransactWrite, Update
from adjoin.values import Item


def begin_lives(layout: BoundLayout, nodes: Iterable[Near]) -> Plan[ConditionFailed | TransactionCanceled | None]:
    """Gives nodes a life that have none; answers why one of them has none of this, if somebody else was faster.

    Who needs the nodes reads them again.
    """
    requests = [changing(layout, node, first_actions(layout, node)) for node in nodes if node.is_new]
    try:
        if requests:
            yield tuple(requests)
    except (ConditionFailed, TransactionCanceled) as error:
        return error
    return None


def first_actions(layout: BoundLayout, node: Near) -> list[Action]:
    """The beginning of a first life. Nothing was ever counted before it: what is there is not ours."""
    rules = [rule for rule in layout.rules.declared if rule.node is node.kind]
    names = dict.fromkeys(name for rule in rules for name in (rule.attribute, rule.pair) if name is not None)
    named = at_birth(layout.rules, node.kind)
    counted = Remove(attribute(COUNTED)) if named is None else Set(attribute(COUNTED), Value(named))
    left = [*(Remove(attribute(name)) for name in names), *([counted] if named or COUNTED in (node.item or {}) else [])]
    return [Set(attribute(LIFE), Value({"S": node.life})), *left]


def touched_node(layout: BoundLayout, node: Near) -> Update | TransactWrite:
    """What makes a node another for whoever read it before, and wants to count an edge for it."""
    return changing(layout, node, [Add(attribute(LEFT), {"N": "1"})])


def changing(
    layout: BoundLayout, node: Near, actions: Sequence[Action], further: Iterable[Condition] = ()
) -> Update | TransactWrite:
    """What changes a node and its copies, in the life that was read."""
    item, actions = node.item or {}, list(actions)
    conditions: list[Condition] = [layout.present, node.alive, *further]
    if revises(layout, node.kind):
        actions.append(Set(attribute(REVISION), Value(new_revision())))
        conditions.append(node.same(REVISION))
    update = Update(layout.table, node.key, tuple(actions), And(tuple(conditions)))
    copies = copies_of(layout, node)
    if not copies:
        return update
    others = (Update(layout.table, key, tuple(_valued(item, actions)), layout.present) for key in copies)
    return TransactWrite((update, *others))


def _valued(item: Item, actions: Iterable[Action]) -> Iterator[Action]:
    """Actions for a copy, which may not have what the node has."""
    for action in actions:
        if isinstance(action, Set) and not isinstance(action.value, Value):
            name = str(action.value.steps[0]) if hasattr(action.value, "steps") else ""
            yield Set(action.path, Value(item[name]))
        else:
            yield action
