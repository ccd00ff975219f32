"""Index entries of managed fields: they change in the same transaction as the field.

In: a node as it was read, and actions that change it. Out: the same actions with those on index keys, the conditions
under which they are right, and the writes of its index copies.

A key is made of the exact value of a field. So where a key changes, the transaction requires that the fields from which
keys are made are as they were read. A sum that is in such a key is set and not added to.

What a field shows of a reached set, and means, are made here too, whoever changes the node.

If a further indexed field is a managed one, the node has an index copy for it, which comes and goes with the value.
Then the index copies are written as a whole, on condition that the revision of the node is the one that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import InvalidValue
from adjoin.expressions import Action, Condition, Path, Remove, Set, Value, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.layouts.own_items import is_of
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import acted
from adjoin.reached_sets import shown
from adjoin.requests import Delete, Put, Update
from adjoin.rules import Rule
from adjoin.values import QUOTIENTS, AttributeValue, Item, canonical_number


@dataclass(frozen=True)
class IndexedChange:
    """A change of a node together with that of its index entries."""

    actions: tuple[Action, ...]
    """The actions on the node itself, those on its index keys included."""
    conditions: tuple[Condition, ...]
    copies: tuple[Put | Update | Delete, ...]
    """The writes of its index copies."""


def with_entries(
    layout: BoundLayout, kind: NodeType, key: Item, item: Item, copies: Sequence[Item], actions: Sequence[Action]
) -> IndexedChange:
    """What a change of a node by these actions needs; `item` is the node as it was read, `copies` its index copies.

    Raises `InvalidKey` if a key cannot hold the value of a field.
    """
    if not is_derived(layout, kind):
        # An index copy repeats all attributes of the node, so the same actions are right for it.
        updates = (Update(layout.table, each, tuple(_valued(item, actions)), layout.present) for each in copies)
        return IndexedChange(tuple(actions), (), tuple(updates))
    before = key | item
    after = acted(before, _valued(item, actions))
    lacking = layout.managed.defaults(kind, after)
    after |= lacking
    made_now = {name: value for name, value in derived(layout, kind, after).items() if after.get(name) != value}
    after = acted(after, (_action(name, value) for name, value in made_now.items()))
    exact = layout.managed.exact[kind.model]
    has_moved = bool(made_now) or any(before.get(name) != after.get(name) for name in exact)
    conditions: list[Condition] = []
    if has_moved:
        after = layout.with_managed_keys(kind, after)
        # A sum may be set to the value of another attribute, which is known as it was read.
        conditions += [same(item, name) for name in (*exact, *_read_by(actions))]
    names = [name for name in sorted(layout.managed.attributes[kind.model]) if before.get(name) != after.get(name)]
    made = {name: after.get(name) for name in (*lacking, *made_now, *names)}
    # DynamoDB refuses two actions on one attribute. The value in `made` is the final one.
    own = [action for action in actions if str(action.path.steps[0]) not in made]
    own += [_action(name, value) for name, value in made.items()]
    writes: list[Put | Update | Delete] = []
    if item and layout.has_copies(kind):
        # Keys of copies may change, so whole copies are put, which is right only if the item is still as it was read.
        conditions.append(same(item, REVISION))
        writes += whole_copies(layout, kind, after)
    return IndexedChange(tuple(own), tuple(conditions), tuple(writes))


def is_derived(layout: BoundLayout, kind: NodeType) -> bool:
    """Whether something on nodes of a class is made of their aggregates: index keys, means, or numbers of a set."""
    return bool(layout.managed.fields[kind.model] or layout.managed.exact[kind.model])


def derived(layout: BoundLayout, kind: EntityType, item: Item) -> dict[str, AttributeValue | None]:
    """The means, and what fields show of reached sets, on a node with these sums and sets; None for no value."""
    found = {
        mean.attribute: quotient(item.get(mean.total.attribute), item.get(mean.number.attribute))
        for mean in layout.rules.means
        if mean.node is kind.whole
    }
    for rule in layout.rules.shown_sets:
        # Until the node is counted for this declaration, the attribute belongs to the one before.
        if rule.node is kind.whole and is_of(layout.rules, rule, item):
            name = rule.shown_attribute
            found[name] = _shown(rule, item.get(rule.attribute), name in item)
    return found


def _shown(rule: Rule, reached: AttributeValue | None, is_there: bool) -> AttributeValue | None:
    if reached is None and not is_there:
        # It was never counted, and reads as the default.
        return None
    try:
        return shown(reached, rule.distinct or "Count")
    except InvalidValue:
        # Another program wrote the set, or values of it. The audit reports that.
        return None


def quotient(total: AttributeValue | None, number: AttributeValue | None) -> AttributeValue | None:
    """A sum, divided by a count, with as many digits as DynamoDB stores; None for a count of 0."""
    divisor = Decimal((number or {}).get("N", 0))
    if not divisor:
        return None
    return {"N": canonical_number(QUOTIENTS.divide(Decimal((total or {}).get("N", 0)), divisor))}


def whole_copies(layout: BoundLayout, kind: EntityType, item: Item) -> list[Put | Delete]:
    """The writes of all index copies of an item, also of those that must not exist."""
    copies = layout.index_copies(kind, item)
    return [Delete(layout.table, each.key) if each.item is None else Put(layout.table, each.item) for each in copies]


def _action(name: str, value: AttributeValue | None) -> Action:
    return Remove(attribute(name)) if value is None else Set(attribute(name), Value(value))


def _valued(item: Item, actions: Iterable[Action]) -> Iterator[Action]:
    """The same actions with values in place of references to other attributes, which an index copy may lack."""
    for action in actions:
        if isinstance(action, Set) and isinstance(action.value, Path):
            yield Set(action.path, Value(item[str(action.value.steps[0])]))
        else:
            yield action


def _read_by(actions: Iterable[Action]) -> list[str]:
    """The attributes whose values actions refer to."""
    values = [action.value for action in actions if isinstance(action, Set)]
    return [str(value.steps[0]) for value in values if isinstance(value, Path)]
