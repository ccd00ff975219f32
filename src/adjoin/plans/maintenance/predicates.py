"""Whether a predicate holds for a node or an edge in memory: the condition that a filter by it would be, tested on
the stored form of its fields.

Unlike a filter it can be about a field that lives in a key only, and what an older item lacks has its default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adjoin.errors import InvalidModel, InvalidRequest, InvalidValue
from adjoin.evaluate import condition_test
from adjoin.fields import Predicate
from adjoin.items import normal_attribute
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.conditions import condition
from adjoin.rules import Rule, fields_of
from adjoin.schema import Entity, EntityType

Holds: TypeAlias = Callable[[Entity], bool]


def predicate_test(layout: BoundLayout, kind: EntityType, predicate: Predicate) -> Holds:
    """The function that says whether the predicate holds for an instance of the class."""
    names = {name.partition(".")[0] for name in fields_of(predicate)}
    test = condition_test(condition(layout, kind, predicate, lambda _, name: name), "where")

    def holds(entity: Entity) -> bool:
        stored = {name: layout.encode_field(kind, name, entity.__dict__[name]) for name in names}
        return test({name: normal_attribute(value) for name, value in stored.items() if value is not None})

    return holds


def condition_of(layout: BoundLayout, rule: Rule) -> Holds | None:
    """The test of a rule's `where`, made once for each graph; None where every edge counts."""
    if rule.where is None:
        return None
    made = layout.rules.conditions
    if rule.name not in made:
        made[rule.name] = predicate_test(layout, rule.where_kind, rule.where)
    return made[rule.name]


def check_rules(layout: BoundLayout) -> None:
    """Refuses an aggregate whose condition compares a field with what it can never hold."""
    for rule in layout.rules.rules:
        try:
            condition_of(layout, rule)
        except (InvalidValue, InvalidRequest) as problem:
            raise InvalidModel(f"where= of {rule.name}: {problem}") from None
