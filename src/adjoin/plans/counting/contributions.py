"""Computes what an edge contributes by one rule, and whether the rule's `where=` holds.

In: a rule, the item of an edge, and the item of its far node if the rule reads it. Out: the contribution in the form in
which a ledger stores it, or None. It is a pure function: nothing is read or written. `edge_state` calls it for each
rule of a group.

The form is a number for a sum, the texts of different nodes (see `reached_sets`), and a list of values for a least,
greatest, latest or top value. Each value of the list comes with its *rank text*, whose text order is the order of
values, so that ranks can be sorted by key.

`where=` is tested in memory with the same condition that a filter would use, on the stored form of the fields. Unlike a
filter, it may be about a field that is only part of a key. If an older item lacks a field, the field has its default.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from adjoin.entity_types import Entity, EntityType
from adjoin.errors import InvalidModel, InvalidRequest, InvalidValue
from adjoin.fields import Predicate
from adjoin.items import normal_attribute
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.own_items import rank_text
from adjoin.reached_sets import text_of, texts_in
from adjoin.rules import Hop, Rule, Term, fields_of
from adjoin.values import AttributeValue, Item, canonical_number, encode, exact_product, exact_sum

if TYPE_CHECKING:
    from adjoin import evaluate
    from adjoin.plans.steps import conditions
else:
    evaluate = later("adjoin.evaluate")
    conditions = later("adjoin.plans.steps.conditions")

RANK, VALUE, BY = "rank", "value", "by"
"""The attributes of one value in order: its rank text, the value, and for "latest" what it is ordered by.

They have the same names in a ledger and in a rank.
"""
ONE: AttributeValue = {"N": "1"}
_ONCE = [ONE]
_NULL: AttributeValue = {"NULL": True}


class Ends:
    """An edge and its far node, as stored. They are decoded into instances only if a rule needs that."""

    def __init__(self, layout: BoundLayout, hop: Hop, edge: Item, far: Item | None) -> None:
        self._layout, self._hop = layout, hop
        self._items: dict[str, Item | None] = {"edge": edge, "far": far}
        self._kinds: dict[str, EntityType] = {"edge": hop.edge, "far": hop.far}
        self._entities: dict[str, Entity | None] = {}
        self._values: dict[tuple[str, str], AttributeValue | None] = {}

    def entity(self, at: str) -> Entity | None:
        """The edge or the far node as an instance; `at` is "edge" or "far"."""
        if at not in self._entities:
            item = self._items[at]
            self._entities[at] = None if item is None else self._layout.decode(self._kinds[at], item)
        return self._entities[at]

    def value(self, term: Term) -> AttributeValue | None:
        """The stored value of one term of a rule; None if it is absent.

        A term without a field reads a hidden attribute of the far node: the result of the rule for the next hop.
        """
        if term.at == "one":
            return ONE
        if term.field is None:
            found = (self._items[term.at] or {}).get(term.attribute or "")
            return None if found == _NULL else found
        # Several rules often read the same field.
        name = term.at, term.field
        if name not in self._values:
            self._values[name] = self._field(*name)
        return self._values[name]

    def _field(self, at: str, field: str) -> AttributeValue | None:
        entity = self.entity(at)
        if entity is None:
            return None
        found = self._layout.encode_field(self._kinds[at], field, entity.__dict__[field])
        return None if found == _NULL else found

    def far_key(self) -> str:
        """The node key of the far node, which need not exist."""
        edge, hop = self._items["edge"], self._hop
        assert edge is not None
        return self._layout.ends(hop.edge, edge)[hop.direction == "out"]

    def far_id(self) -> AttributeValue:
        """The stored form of the id of the far node."""
        return encode(self._layout.id_in(self._hop.far, self.far_key()))


def contribution(layout: BoundLayout, rule: Rule, ends: Ends) -> AttributeValue | None:
    """What an edge contributes by a rule, in the form in which a ledger stores it; None if nothing.

    Raises `InvalidItem`, `InvalidValue` or `InvalidKey` if the items do not allow to compute it.
    """
    holds = condition_of(layout, rule)
    if holds is not None:
        entity = ends.entity(rule.where_at)
        if entity is None or not holds(entity):
            return None
    return _COMBINED[rule.operation](rule, ends)


def _values(rule: Rule, ends: Ends) -> list[AttributeValue]:
    """The values of a rule's terms, as far as there are any."""
    return [value for term in rule.terms if (value := ends.value(term)) is not None]


def _sum(rule: Rule, ends: Ends) -> AttributeValue | None:
    """The sum of a rule's terms, exact, in DynamoDB's own spelling of numbers so that it compares equal later."""
    if len(rule.terms) == 1 and rule.terms[0].at == "one" and rule.times is None:
        return ONE
    values = _values(rule, ends)
    times = None if rule.times is None else ends.value(rule.times)
    if not values or (rule.times is not None and times is None):
        return None
    if values == _ONCE and times is None:
        return ONE
    if wrong := [value for value in values if "N" not in value]:
        raise InvalidValue(f"{rule.name} adds up numbers, but {wrong[0]} is not a number; correct the item")
    if rule.counts and ends.value(rule.terms[0]) is not None:
        values[0] = ONE
    if times is not None:
        if "N" not in times:
            raise InvalidValue(f"{rule.name} multiplies by {times}, which is not a number; correct the item")
        total = exact_sum(Decimal(value["N"]) for value in values)
        return {"N": canonical_number(exact_product(Decimal(times["N"]), total))}
    if len(values) == 1:
        text = canonical_number(values[0]["N"])
        return values[0] if text == values[0]["N"] else {"N": text}
    return {"N": canonical_number(exact_sum(Decimal(value["N"]) for value in values))}


def _distinct(rule: Rule, ends: Ends) -> AttributeValue | None:
    """The texts of the nodes to which an edge leads: its far node, or those of the far node's reached set, or both."""
    texts: set[str] = set()
    for term in rule.terms:
        value = ends.value(term)
        if term.at == "far" and term.field is None:
            texts.update(texts_in(value))
        elif value is not None:
            if "N" not in value:
                raise InvalidValue(f"{rule.name} adds up numbers, but {value} is not a number; correct the item")
            texts.add(text_of(ends.far_key(), None if rule.distinct == "Count" else value))
    return {"SS": sorted(texts)} if texts else None


def _extreme(rule: Rule, ends: Ends) -> AttributeValue | None:
    """The least or greatest value of a rule's terms."""
    entries = [_entry(value) for value in _values(rule, ends)]
    if len(entries) > 1:
        entries = [(min if rule.operation == "min" else max)(entries, key=_rank)]
    return {"L": entries} if entries else None


def _latest(rule: Rule, ends: Ends) -> AttributeValue | None:
    """The latest value of a rule's terms, each with what it is ordered by."""
    pairs: list[tuple[AttributeValue | None, AttributeValue | None]] = []
    for term in rule.terms:
        value = ends.value(term)
        if term.at == "far" and term.field is None:
            # A rule over several hops: the far node's hidden attribute holds a pair already.
            pairs.append(tuple(value["L"]) if value else (None, None))
        elif rule.by is not None:
            pairs.append((ends.value(rule.by), value))
    entries = [_entry(value, by) for by, value in pairs if by is not None and value is not None]
    return {"L": [max(entries, key=_rank)]} if entries else None


def _top(rule: Rule, ends: Ends) -> AttributeValue | None:
    """The k greatest values of a rule's terms. A term may be a list, for example the top values of the far node."""
    values: list[AttributeValue] = []
    for term in rule.terms:
        found = ends.value(term)
        if found is not None:
            values += (_told(rule, ends, each) for each in found.get("L", [found]))
    entries = sorted((_entry(value) for value in values), key=_rank, reverse=True)
    return {"L": entries[: rule.k]} if entries else None


def _told(rule: Rule, ends: Ends, value: AttributeValue) -> AttributeValue:
    """A value with the id of its node, if the rule says whose values are; one of another rule may have it already."""
    if rule.who is None:
        return value["L"][0] if "L" in value else value
    return value if "L" in value else {"L": [value, ends.far_id()]}


_COMBINED: dict[str, Callable[[Rule, Ends], AttributeValue | None]] = {
    "sum": _sum,
    "distinct": _distinct,
    "min": _extreme,
    "max": _extreme,
    "latest": _latest,
    "top": _top,
}


def _entry(value: AttributeValue, by: AttributeValue | None = None) -> AttributeValue:
    """A value in the form in which ledgers and ranks hold it."""
    if by is None:
        return {"M": {RANK: {"S": rank_text(value)}, VALUE: value}}
    # If two values are equally late, the greater one is the latest. So the result does not depend on the order in which
    # edges are reconciled.
    return {"M": {RANK: {"S": rank_text(by, value)}, VALUE: value, BY: by}}


def _rank(entry: AttributeValue) -> str:
    text: str = entry["M"][RANK]["S"]
    return text


# --- where= ------------------------------------------------------------------------------------


Holds: TypeAlias = Callable[[Entity], bool]


def predicate_test(layout: BoundLayout, kind: EntityType, predicate: Predicate) -> Holds:
    """A function that tests whether the predicate holds for an instance of the class."""
    names = {name.partition(".")[0] for name in fields_of(predicate)}
    test = evaluate.condition_test(conditions.plain_condition(layout, kind, predicate, lambda _, name: name), "where")

    def holds(entity: Entity) -> bool:
        stored = {name: layout.encode_field(kind, name, entity.__dict__[name]) for name in names}
        return test({name: normal_attribute(value) for name, value in stored.items() if value is not None})

    return holds


def condition_of(layout: BoundLayout, rule: Rule) -> Holds | None:
    """The test for a rule's `where=`, made once per graph; None if every edge counts."""
    if rule.where is None:
        return None
    made = layout.rules.conditions
    if rule.name not in made:
        made[rule.name] = predicate_test(layout, rule.where_kind, rule.where)
    return made[rule.name]


def check_rules(layout: BoundLayout) -> None:
    """Refuses an aggregate whose `where=` compares a field with a value that the field can never have."""
    for rule in layout.rules.rules:
        try:
            condition_of(layout, rule)
        except (InvalidValue, InvalidRequest) as problem:
            raise InvalidModel(f"where= of {rule.name}: {problem}") from None
