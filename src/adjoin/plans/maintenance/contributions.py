"""What one edge adds to the node that counts it, by one rule.

A number for a sum; for a least, greatest or latest value and for the top ones, entries with a rank, whose
text order is the order of the values. None where the edge adds nothing: its condition does not hold, or
there is no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context, Decimal

from adjoin.errors import InvalidValue
from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.ledgers import rank_text
from adjoin.plans.maintenance.predicates import condition_of
from adjoin.rules import Hop, Rule, Term
from adjoin.schema import Entity
from adjoin.values import AttributeValue, Item, canonical_number

RANK, VALUE, BY = "rank", "value", "by"
"""The attributes of an entry, in a ledger and as a rank of its own."""
ONE: AttributeValue = {"N": "1"}
_NULL: AttributeValue = {"NULL": True}
_EXACT = Context(prec=300)


class Ends:
    """An edge and the node at its far end, as stored, and as instances once somebody asks."""

    def __init__(self, layout: BoundLayout, hop: Hop, edge: Item, far: Item | None) -> None:
        self._layout, self._hop = layout, hop
        self._items: dict[str, Item | None] = {"edge": edge, "far": far}
        self._entities: dict[str, Entity | None] = {}

    def entity(self, at: str) -> Entity | None:
        if at not in self._entities:
            item, kind = self._items[at], self._hop.kind_at(at)
            self._entities[at] = None if item is None else self._layout.decode(kind, item)
        return self._entities[at]

    def value(self, term: Term) -> AttributeValue | None:
        if term.at == "one":
            return ONE
        if term.field is None:
            found = (self._items[term.at] or {}).get(term.attribute or "")
        else:
            entity = self.entity(term.at)
            kind = self._hop.kind_at(term.at)
            found = None if entity is None else self._layout.encode_field(kind, term.field, entity.__dict__[term.field])
        return None if found == _NULL else found


def contribution(layout: BoundLayout, rule: Rule, ends: Ends) -> AttributeValue | None:
    """In the form in which a ledger holds it; `InvalidItem`, `InvalidValue` or `InvalidKey` if it cannot be told."""
    holds = condition_of(layout, rule)
    if holds is not None:
        entity = ends.entity(rule.where_at)
        if entity is None or not holds(entity):
            return None
    return _COMBINED[rule.operation](rule, ends)


def _sum(rule: Rule, ends: Ends) -> AttributeValue | None:
    values = [value for term in rule.terms if (value := ends.value(term)) is not None]
    if not values:
        return None
    if any("N" not in value for value in values):
        raise InvalidValue(f"{rule.name} adds up numbers, and {values[0]} is none; correct the item")
    return {"N": canonical_number(total(Decimal(value["N"]) for value in values))}


def total(numbers: Iterator[Decimal]) -> Decimal:
    result = Decimal(0)
    for number in numbers:
        result = _EXACT.add(result, number)
    return result


def _extreme(rule: Rule, ends: Ends) -> AttributeValue | None:
    entries = [_entry(value) for term in rule.terms if (value := ends.value(term)) is not None]
    chosen = min if rule.operation == "min" else max
    return {"L": [chosen(entries, key=_rank)]} if entries else None


def _latest(rule: Rule, ends: Ends) -> AttributeValue | None:
    pairs: list[tuple[AttributeValue | None, AttributeValue | None]] = []
    for term in rule.terms:
        value = ends.value(term)
        if term.at == "far" and term.field is None:
            # What the far node has is a pair already.
            pairs.append(tuple(value["L"]) if value else (None, None))
        elif rule.by is not None:
            pairs.append((ends.value(rule.by), value))
    entries = [_entry(value, by) for by, value in pairs if by is not None and value is not None]
    return {"L": [max(entries, key=_rank)]} if entries else None


def _top(rule: Rule, ends: Ends) -> AttributeValue | None:
    values: list[AttributeValue] = []
    for term in rule.terms:
        found = ends.value(term)
        if found is not None:
            values += found.get("L", [found])
    entries = sorted((_entry(value) for value in values), key=_rank, reverse=True)
    return {"L": entries[: rule.k]} if entries else None


_COMBINED: dict[str, Callable[[Rule, Ends], AttributeValue | None]] = {
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "latest": _latest,
    "top": _top,
}


def _entry(value: AttributeValue, by: AttributeValue | None = None) -> AttributeValue:
    if by is None:
        return {"M": {RANK: {"S": rank_text(value)}, VALUE: value}}
    # Of several with the same, the greatest value is the latest, so that it does not depend on any order.
    return {"M": {RANK: {"S": rank_text(by, value)}, VALUE: value, BY: by}}


def _rank(entry: AttributeValue) -> str:
    text: str = entry["M"][RANK]["S"]
    return text
