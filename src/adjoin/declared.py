"""Declared aggregates and summaries, checked when a graph opens: whether their fields can hold them.

What is refused here would otherwise show much later: nodes that cannot be read any more once something is
counted on them, edges that are set aside each time, audits that always find something, or changes that follow
from each other for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, get_origin

from pydantic import BaseModel

from adjoin.aggregates import CommonNeighbours, Components, PageRank
from adjoin.errors import CyclicRule, InvalidModel
from adjoin.rules import CopyRule, Rule, Rules, SummaryRule, Term, fields_of
from adjoin.schema import EntityType, NodeType, plain_type, tag_of

_NUMBERS: tuple[type, ...] = (int, float, Decimal)
_SINGLE: tuple[type, ...] = (*_NUMBERS, bool, str, date, datetime)
"""Types of which it is known what they can hold; others are left to whoever declared them."""
_SEVERAL: tuple[type, ...] = (list, tuple, set, frozenset, dict)
_UNORDERED: tuple[type, ...] = (bytes, bytearray, timedelta, BaseModel, *_SEVERAL)
"""Types that are stored in a form whose order is not that of their values, or that has none."""


def check_declared(rules: Rules) -> None:
    """Raises for the first declaration that cannot be kept true: `InvalidModel`, `CyclicRule` for circles of them."""
    shown = [(rule.node, rule.field) for rule in rules.rules if rule.field is not None]
    shown += [(summary.node, summary.field) for summary in rules.summaries]
    for place, (node, name) in enumerate(shown):
        if (node, name) in shown[:place]:
            raise InvalidModel(f"{node.name}.{name} is declared as two things at once; keep one of them")
    _check_circles(rules)
    chains: list[list[Rule]] = []
    for rule in rules.rules:
        if rule.field is not None:
            chains.append([])
        chains[-1].append(rule)
    for first, *rest in chains:
        _check_aggregate(first, rest[-1] if rest else first)
        _check_read(first, rules)
    for summary in rules.summaries:
        _check_summary(summary)
    for copy in rules.copies:
        _check_copy(copy)


# --- what a field can hold ---------------------------------------------------------------------


def _check_aggregate(rule: Rule, last: Rule) -> None:
    """`last` is the rule at the end of the path, which reads what is declared."""
    kind, name = rule.node, rule.field or ""
    owner = f"{kind.name}.{name}"
    _check_default(rule, owner, kind.fields[name].get_default(call_default_factory=True))
    read = [term for term in (last.terms[0], last.by) if term is not None and term.field is not None]
    for term in read:
        info = last.hop.kind_at(term.at).fields[_named(term)]
        if rule.operation != "top" and get_origin(info.annotation) in _SEVERAL:
            raise InvalidModel(f"{owner}: {_shown(last, term)} has several values and no order; name a single one")
        plain = plain_type(info)
        if rule.operation != "sum" and plain is not None and issubclass(plain, _UNORDERED):
            raise InvalidModel(
                f"{owner}: {_shown(last, term)} is {plain.__name__}, which is not stored in an order; name a field of "
                f"text, a number, a date or a bool"
            )
    value = last.terms[0]
    given = int if value.at == "one" else _type(last.hop.kind_at(value.at), value.field) if value.field else None
    if rule.operation == "sum" and value.field is not None:
        added = plain_type(last.hop.kind_at(value.at).fields[value.field])
        is_number = added in _NUMBERS or tag_of(last.hop.kind_at(value.at), value.field) in ("N", None)
        if added is not None and (not is_number or issubclass(added, _UNORDERED)):
            raise InvalidModel(f"{owner} adds up {_shown(last, value)}, which is {added.__name__} and no number")
    held = _type(kind, name)
    if rule.operation == "top":
        if held is not None:
            raise InvalidModel(f"{owner} holds several values; make it a list")
    elif held is not None and given is not None and not _fits(given, held):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold {given.__name__}; give it that type")


def _check_copy(copy: CopyRule) -> None:
    """A copy is what is stored of the other field, so both have to be stored alike."""
    tags = tag_of(copy.edge, copy.field), tag_of(copy.node, copy.of)
    if None not in tags and tags[0] != tags[1]:
        raise InvalidModel(
            f"{copy.edge.name}.{copy.field} copies {copy.node.name}.{copy.of}, which is stored as {tags[1]} where "
            f"this field is stored as {tags[0]}; give both the same type"
        )


def _check_default(rule: Rule, owner: str, default: Any) -> None:
    """A sum of nothing is zero; of the others a default is what shows as long as there is nothing."""
    if rule.operation == "sum" and default is not None and (default != 0 or isinstance(default, str | bool)):
        raise InvalidModel(f"{owner} is 0 without edges, and not {default!r}; make that its default")


def _check_read(rule: Rule, rules: Rules) -> None:
    """What others go on from may have no default: it would count as a value."""
    default = rule.node.fields[rule.field or ""].get_default(call_default_factory=True)
    if rule.operation == "sum" or not (default or default == 0):
        return
    for other in rules.rules:
        if other.hop.far is rule.node and rule.attribute in {*_read_far(other), *(t.attribute for t in other.terms)}:
            raise InvalidModel(
                f"{rule.node.name}.{rule.field} has nothing to show without edges, and {other.name} would take "
                f"{default!r} for a value; make its default {'[]' if rule.operation == 'top' else 'None'}"
            )


def _check_summary(rule: SummaryRule) -> None:
    owner, held = f"{rule.node.name}.{rule.field}", _type(rule.node, rule.field)
    if held is None:
        return
    if isinstance(rule.summary, PageRank) and held not in (float, Decimal):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold a rank; make it a float or a Decimal")
    if isinstance(rule.summary, CommonNeighbours):
        raise InvalidModel(f"{owner} holds the ids of several nodes; make it a list")
    id_type = _type(rule.node, "id")
    if isinstance(rule.summary, Components) and id_type is not None and not _fits(id_type, held):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold an id of {rule.node.name}")


def _fits(given: type, held: type) -> bool:
    if given in _NUMBERS and held in _NUMBERS:
        return held is not int or given is int
    return (given in _NUMBERS) == (held in _NUMBERS) and (given is bool) == (held is bool)


def _type(kind: EntityType, name: str) -> type | None:
    plain = plain_type(kind.fields[name])
    return plain if plain in _SINGLE else None


def _named(term: Term) -> str:
    assert term.field is not None
    return term.field


def _shown(rule: Rule, term: Term) -> str:
    return f"{rule.hop.kind_at(term.at).name}.{term.field}"


# --- aggregates made of aggregates -------------------------------------------------------------


def _check_circles(rules: Rules) -> None:
    """A value that is made of itself by several rules would change for ever; only edges in circles can be set aside."""
    made: dict[tuple[type[Any], str], Rule] = {}
    for rule in rules.rules:
        made |= {(rule.node.model, name): rule for name in (rule.attribute, rule.pair) if name is not None}
    whole: set[str] = set()

    def visit(rule: Rule, way: tuple[str, ...]) -> None:
        if rule.name in way:
            circle = " → ".join((*way[way.index(rule.name) :], rule.name))
            raise CyclicRule(
                f"aggregates are made of each other in a circle: {circle}; take one out, or go over one edge with "
                f"recursive=True"
            )
        if rule.name not in whole:
            for attribute in _read_far(rule):
                below = made.get((rule.hop.far.model, attribute))
                if below is not None:
                    visit(below, (*way, rule.name))
            whole.add(rule.name)

    for rule in rules.rules:
        visit(rule, ())


def _read_far(rule: Rule) -> Iterator[str]:
    """The attributes at far ends that a rule reads, without what a recursive one goes on from."""
    far: NodeType = rule.hop.far
    terms = rule.terms[:1] if rule.is_recursive else rule.terms
    for term in (*terms, rule.by):
        if term is not None and term.at == "far" and term.attribute is not None:
            yield term.attribute
    if rule.where_at == "far":
        yield from (far.attributes[name.partition(".")[0]] for name in fields_of(rule.where))
