"""Reached sets in a node transaction: what they become when edges begin and stop to lead to nodes.

In: a near node as it was read, and edge states of its edges. Out: the new attributes, or the reason why one of them
cannot be stored. `reached_sets` has the form of a set; `node_transaction` writes it on the condition that the set which
was read is still there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from adjoin.errors import InvalidValue
from adjoin.plans.counting.edge_state import EdgeState
from adjoin.reached_sets import edges_by_text, reached_set, storage_problem
from adjoin.rules import Rule
from adjoin.values import AttributeValue, Item, attribute_size

Sets: TypeAlias = Mapping[str, AttributeValue | None]
"""Attribute to reached set; None for one that becomes empty."""


def united(item: Item, states: Iterable[EdgeState], ahead: Callable[[Rule], str] | None) -> Sets:
    """The reached sets that change. `ahead` names the attributes of the next generation, if the node prepares one."""
    changes: dict[str, Counter[str]] = {}
    for state in states:
        for rule in state.ref.group.distinct_rules:
            _note(changes, rule.attribute, *state.texts(rule))
            if ahead is not None:
                _note(changes, ahead(rule), *state.texts_ahead(rule))
    return {name: _with(item.get(name), change) for name, change in changes.items() if any(change.values())}


def _note(changes: dict[str, Counter[str]], name: str, after: Iterable[str], before: Iterable[str]) -> None:
    # Numbers of edges: several edges may lead to one node, which stays in the set until the last of them goes.
    change = changes.setdefault(name, Counter())
    change.update(after)
    change.subtract(before)


def _with(value: AttributeValue | None, change: Mapping[str, int]) -> AttributeValue | None:
    """A reached set after a change of the numbers of edges. What another program wrote in its place counts as empty."""
    try:
        edges = edges_by_text(value)
    except InvalidValue:
        edges = {}
    for text, number in change.items():
        if after := edges.get(text, 0) + number:
            edges[text] = after
        else:
            edges.pop(text, None)
    return reached_set(edges)


def unstorable(
    item: Item, states: Sequence[EdgeState], sets: Sets, room: int, ahead: Callable[[Rule], str]
) -> dict[str, str]:
    """Rule to the reason why its reached set cannot be stored. A set that becomes smaller always can.

    `room` is how many bytes a set may have.
    """
    found: dict[str, str] = {}
    for rule in {rule.name: rule for state in states for rule in state.ref.group.distinct_rules}.values():
        for name in (rule.attribute, ahead(rule)):
            before, after = item.get(name), sets.get(name)
            if after is None or rule.distinct is None or attribute_size(after) <= attribute_size(before or {}):
                continue
            if (problem := storage_problem(after, rule.distinct, room)) is not None:
                found[rule.name] = problem
    return found
