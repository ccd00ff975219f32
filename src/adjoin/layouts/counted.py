"""Which declaration a value on a node is of, where its field was declared otherwise before.

A node that was counted for a later declaration names it by its key, in the attribute `adjoin:counted`: rule to key.
So whoever reads or changes the node can tell, whatever another program declared or counted meanwhile. Rules that were
never declared otherwise are not named, and cost nothing.

A node that came while a rebuild ran may have edges that were not counted yet. Its keys end in a question mark, and
are believed once the rebuild has ended.
"""

from __future__ import annotations

from adjoin.rules import Rule, Rules
from adjoin.schema import EntityType, NodeType
from adjoin.values import AttributeValue, Item

COUNTED = "adjoin:counted"
_UNSURE = "?"


def is_of(rules: Rules, rule: Rule, item: Item) -> bool:
    """Whether what a node has under the name of a rule was counted by it, or is being."""
    key = _keys(item).get(rule.name)
    return rule.name not in rules.standing.listed if key is None else key["S"].removesuffix(_UNSURE) == rule.key


def keys_on(item: Item) -> set[str] | None:
    """The keys that a node names; None if it names none."""
    return {key["S"].removesuffix(_UNSURE) for key in _keys(item).values()} if COUNTED in item else None


def at_birth(rules: Rules, kind: NodeType) -> AttributeValue | None:
    """What a node names that begins to count; None for nothing."""
    unfinished = rules.standing.unfinished
    keys = {name: f"{key}{_UNSURE}" if name in unfinished else key for name, key in _listed(rules, kind).items()}
    return {"M": {name: {"S": key} for name, key in keys.items()}} if keys else None


def when_counted(rules: Rules, kind: NodeType) -> AttributeValue | None:
    """What a node names that was counted whole; None for nothing."""
    keys = _listed(rules, kind)
    return {"M": {name: {"S": key} for name, key in keys.items()}} if keys else None


def believed(rules: Rules, kind: EntityType, item: Item) -> Item:
    """A node's item without what is not, or not yet, of the declarations of a graph."""
    standing = rules.standing
    if COUNTED not in item and not standing.due and not standing.listed:
        return item
    void = {rule.attribute for rule in rules.declared if rule.node is kind and not _is_believed(rules, rule, item)}
    return {name: value for name, value in item.items() if name not in void}


def _is_believed(rules: Rules, rule: Rule, item: Item) -> bool:
    standing, key = rules.standing, _keys(item).get(rule.name)
    if key is None:
        return rule.name not in standing.due and rule.name not in standing.listed
    if key["S"].endswith(_UNSURE) and (rule.name in standing.due or rule.name in standing.unfinished):
        return False
    return bool(key["S"].removesuffix(_UNSURE) == rule.key)


def _listed(rules: Rules, kind: NodeType) -> dict[str, str]:
    listed = rules.standing.listed
    return {rule.name: rule.key for rule in rules.rules if rule.node is kind and rule.name in listed}


def _keys(item: Item) -> dict[str, AttributeValue]:
    keys: dict[str, AttributeValue] = item[COUNTED]["M"] if COUNTED in item else {}
    return keys
