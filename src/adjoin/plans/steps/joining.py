"""Joins several writes of one item into one, because a transaction of DynamoDB may contain an item only once.

For example, a program puts a node in a transaction in which an edge of this node is counted as well: the put and the
change of the aggregate become one put.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Protocol, TypeAlias

from adjoin.expressions import Action, Add, And, Condition, IfNotExists, Remove, Set, Value, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.steps.batches import Place, place_of
from adjoin.requests import Check, Delete, Put, Update
from adjoin.values import Item, canonical_number, exact_sum

AnyRequest: TypeAlias = Put | Update | Delete | Check
"""A write of one item in a transaction."""


def stored_in(write: AnyRequest) -> Item:
    """The item of a put; for other writes, the key of the item."""
    return write.item if isinstance(write, Put) else write.key


class Keyed(Protocol):
    """A write that names its item by the key."""

    @property
    def key(self) -> Item: ...


def write_key(layout: BoundLayout, write: Put | Keyed) -> Item:
    """The key of the item that is written."""
    return layout.key_of(write.item) if isinstance(write, Put) else write.key


def write_place(layout: BoundLayout, write: Put | Keyed) -> Place:
    """The key of the item that is written, as a tuple."""
    return place_of(write_key(layout, write))


def parts_of(condition: Condition | None) -> list[Condition]:
    """The conditions that a condition consists of, if it is an `And` (also a nested one); all must hold."""
    if isinstance(condition, And):
        return [part for each in condition.conditions for part in parts_of(each)]
    return [] if condition is None else [condition]


def joined(layout: BoundLayout, write: AnyRequest, companion: AnyRequest) -> AnyRequest:
    """One write that does both a program's own write and a `companion` that counting adds for the same item.

    If both are updates and change the same attribute, the program's own action is the one that stays, unless it only
    gives a new node the default.
    """
    if isinstance(write, Check) and isinstance(companion, Check):
        return joined_check(write, companion)
    if isinstance(write, Check):
        assert isinstance(companion, Update)
        return Update(companion.table, companion.key, companion.actions, all_of(write.condition, companion.condition))
    if isinstance(write, Delete):
        # Nothing has to be counted on a node that is deleted.
        return write
    # The companion requires that the node exists. That is left out: a node that this transaction creates does not exist
    # yet, and for one that it changes, the program's own write checks this.
    beyond_presence = [part for part in parts_of(companion.condition) if part != layout.present]
    condition = all_of(write.condition, *beyond_presence)
    if isinstance(companion, Check):
        return (
            Put(write.table, write.item, condition)
            if isinstance(write, Put)
            else Update(write.table, write.key, write.actions, condition)
        )
    assert isinstance(companion, Update)
    if isinstance(write, Update):
        counted = {action.path for action in companion.actions}
        own = [action for action in write.actions if not (_is_default(action) and action.path in counted)]
        changed = {action.path for action in own}
        more = [action for action in companion.actions if action.path not in changed]
        return Update(write.table, write.key, (*own, *more), condition)
    return Put(write.table, acted(write.item, companion.actions), condition)


def _is_default(action: Action) -> bool:
    return isinstance(action, Set) and isinstance(action.value, IfNotExists)


def joined_check(one: Check, other: Check) -> Check:
    """One check of an item that requires the conditions of both."""
    if one == other:
        return one
    return Check(one.table, one.key, all_of(one.condition, other.condition) or one.condition)


def joined_checks(first: Sequence[Check], second: Sequence[Check]) -> tuple[Check, ...]:
    """The checks of both sequences, with those of the same item joined."""
    checks = {place_of(check.key): check for check in first}
    for check in second:
        place = place_of(check.key)
        checks[place] = joined_check(checks[place], check) if place in checks else check
    return tuple(checks.values())


def acted(item: Item, actions: Iterable[Action]) -> Item:
    """The item after these actions, as far as they set, remove or add known values."""
    item = dict(item)
    for action in actions:
        name = str(action.path.steps[0])
        if isinstance(action, Set) and isinstance(action.value, Value):
            item[name] = action.value.attribute
        elif isinstance(action, Set) and isinstance(action.value, IfNotExists):
            if isinstance(action.value.default, Value):
                item.setdefault(name, action.value.default.attribute)
        elif isinstance(action, Remove):
            item.pop(name, None)
        elif isinstance(action, Add) and "SS" in action.value:
            item[name] = {"SS": sorted({*item.get(name, {"SS": ()})["SS"], *action.value["SS"]})}
        elif isinstance(action, Add) and "N" in action.value:
            before = Decimal(item.get(name, {"N": "0"})["N"])
            item[name] = {"N": canonical_number(exact_sum((before, Decimal(action.value["N"]))))}
    return item
