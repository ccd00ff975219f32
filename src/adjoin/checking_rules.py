"""Whether fields can hold what aggregates and copied fields write, checked when a graph opens.

Without these checks, a mistake would show much later: as nodes that cannot be read after their first count, edges that
are set aside each time, audits that always find differences, or aggregates that change each other for ever. Which edges
and fields a declaration means is found out in `declarations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, get_origin

from pydantic import BaseModel

from adjoin.aggregates import CommonNeighbours, Components, PageRank
from adjoin.entity_types import EntityType, NodeType, tag_of
from adjoin.errors import CyclicRule, InvalidModel
from adjoin.field_types import plain_type
from adjoin.formats import Format
from adjoin.rules import NUMBERS, CopyRule, Rule, Rules, SummaryRule, Term, fields_of

_SINGLE: tuple[type, ...] = (*NUMBERS, bool, str, date, datetime)
"""The types whose values are known. A field of another type is not checked; its class may convert values."""
_SEVERAL: tuple[type, ...] = (list, tuple, set, frozenset, dict)
_UNORDERED: tuple[type, ...] = (bytes, bytearray, timedelta, BaseModel, *_SEVERAL)
"""Types whose stored form has no order, or another order than their values."""


def check_declared(rules: Rules) -> None:
    """Raises for the first declaration that cannot be maintained: `InvalidModel`, or `CyclicRule` for a cycle."""
    shown = [(rule.node, rule.field) for rule in rules.rules if rule.field is not None]
    shown += [(summary.node, summary.field) for summary in rules.summaries if summary.on is None]
    for place, (node, name) in enumerate(shown):
        if (node, name) in shown[:place]:
            raise InvalidModel(f"{node.name}.{name} has two declarations; keep one of them")
    _check_cycles(rules)
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
    """Checks the field of an aggregate. `last` is the rule of the last hop, which reads the declared field."""
    kind, name = rule.node, rule.field or ""
    owner = f"{kind.name}.{name}"
    _check_default(rule, owner, kind.fields[name].get_default(call_default_factory=True))
    read = [term for term in (last.terms[0], last.by) if term is not None and term.field is not None]
    for term in read:
        info = last.hop.kind_at(term.at).fields[_named(term)]
        if rule.operation != "top" and get_origin(info.annotation) in _SEVERAL:
            raise InvalidModel(
                f"{owner}: {_shown(last, term)} holds several values, which have no order; name a field with one value"
            )
        plain = plain_type(info)
        if rule.is_ranked and plain is not None and issubclass(plain, _UNORDERED):
            raise InvalidModel(
                f"{owner}: {_shown(last, term)} is {plain.__name__}, whose stored values have no order; name a field "
                f"of text, a number, a date or a bool"
            )
    value = last.terms[0]
    given = int if value.at == "one" else _type(last.hop.kind_at(value.at), value.field) if value.field else None
    if last.times is not None and _type(last.hop.edge, _named(last.times)) is not int:
        given = _type(last.hop.edge, _named(last.times))
    if not rule.is_ranked and value.field is not None:
        added = plain_type(last.hop.kind_at(value.at).fields[value.field])
        is_number = added in NUMBERS or tag_of(last.hop.kind_at(value.at), value.field) in ("N", None)
        if added is not None and (not is_number or issubclass(added, _UNORDERED)):
            raise InvalidModel(
                f"{owner} is a sum of {_shown(last, value)}, which is {added.__name__}; name a field of a number"
            )
    # DynamoDB adds to numbers only, so a count or a sum cannot be stored as text.
    if not rule.is_ranked and name in kind.formats:
        raise InvalidModel(f"{owner} is counted or added up, which needs a stored number; remove Stored(…)")
    for term in read:
        _check_format(rule, last, term, owner)
    held = _type(kind, name)
    if rule.operation == "top":
        if held is not None:
            raise InvalidModel(f"{owner} holds several values; make it a list")
    elif rule.shows_mean and held is not None and held not in (float, Decimal):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold a mean; make it a float or a Decimal")
    elif held is not None and given is not None and not rule.shows_mean and not _fits(given, held):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold {given.__name__}; give it that type")


def _check_format(rule: Rule, last: Rule, term: Term, owner: str) -> None:
    """An aggregate has the stored form of the values that it is made of, in the order of that form."""
    format = last.hop.kind_at(term.at).formats.get(_named(term))
    own = rule.node.formats.get(rule.field or "")
    if format is not None and not rule.is_ranked:
        raise InvalidModel(
            f"{owner} is a sum of {_shown(last, term)}, which is stored as {format.name!r}; name a number"
        )
    # The value of "latest" has no order of its own to keep: the other field has.
    is_ordered = rule.operation != "latest" or last.by is None or term == last.by
    if format is not None and is_ordered and not format.sorts:
        raise InvalidModel(
            f"{owner}: {_shown(last, term)} is stored as {format.name!r}, which does not sort by value; name "
            f"another field"
        )
    if term is not last.terms[0]:
        return
    if rule.operation == "top" and format is not None:
        raise InvalidModel(
            f"{owner} is a list, whose elements have no format, but {_shown(last, term)} is stored as {format.name!r}; "
            f"name another field"
        )
    if (format and (format.name, format.tag)) != (own and (own.name, own.tag)):
        raise InvalidModel(
            f"{owner} is stored {_as(own)}, but {_shown(last, term)} is stored {_as(format)}; give both the "
            f"same Stored(…)"
        )


def _as(format: Format | None) -> str:
    return "without a format" if format is None else f"as {format.name!r}"


def _check_copy(copy: CopyRule) -> None:
    """A copied field repeats the stored form of the other field, so both must be stored with the same type."""
    own, other = copy.edge.formats.get(copy.field), copy.node.formats.get(copy.of)
    if own != other:
        raise InvalidModel(
            f"{copy.edge.name}.{copy.field} is stored {_as(own)}, but it copies {copy.node.name}.{copy.of}, which is "
            f"stored {_as(other)}; give both the same Stored(…)"
        )
    tags = tag_of(copy.edge, copy.field), tag_of(copy.node, copy.of)
    if None not in tags and tags[0] != tags[1]:
        raise InvalidModel(
            f"{copy.edge.name}.{copy.field} is stored as {tags[0]}, but it copies {copy.node.name}.{copy.of}, which is "
            f"stored as {tags[1]}; give both the same type"
        )


def _check_default(rule: Rule, owner: str, default: Any) -> None:
    """A count or sum without edges is 0, so its default must be 0. Others show their default without edges."""
    if rule.shows_mean:
        if default is not None:
            raise InvalidModel(f"{owner} is a mean, which has no value without edges; make its default None")
    elif not rule.is_ranked and default is not None and (default != 0 or isinstance(default, str | bool)):
        raise InvalidModel(f"{owner} is 0 without edges, but its default is {default!r}; make its default 0")


def _check_read(rule: Rule, rules: Rules) -> None:
    """An aggregate that another rule reads must not have a default: the other rule would take it for a value."""
    default = rule.node.fields[rule.field or ""].get_default(call_default_factory=True)
    if not rule.is_ranked or not (default or default == 0):
        return
    for other in rules.rules:
        if other.hop.far.covers(rule.node) and rule.attribute in {
            *_read_far(other),
            *(t.attribute for t in other.terms),
        }:
            raise InvalidModel(
                f"{rule.node.name}.{rule.field} has no value without edges, and {other.name} would read its default "
                f"{default!r} as a value; make its default {'[]' if rule.operation == 'top' else 'None'}"
            )


def _check_summary(rule: SummaryRule) -> None:
    owner, held = f"{rule.holder.name}.{rule.field}", _type(rule.holder, rule.field)
    if rule.field in rule.holder.formats:
        raise InvalidModel(f"{owner} is a summary, which has no format; remove Stored(…)")
    if rule.on is not None and isinstance(rule.summary, CommonNeighbours):
        if held is not int:
            raise InvalidModel(f"{owner} is how many neighbours the ends of an edge share; make it an int")
        return
    if isinstance(rule.summary, Components | CommonNeighbours) and not rule.node.is_single:
        raise InvalidModel(
            f"{owner} would hold ids of {rule.node.name}, which have several parts, and one attribute holds one value; "
            f"use a class whose id is one field"
        )
    if held is None:
        return
    if isinstance(rule.summary, PageRank) and held not in (float, Decimal):
        raise InvalidModel(f"{owner} is {held.__name__}, which cannot hold a rank; make it a float or a Decimal")
    if isinstance(rule.summary, CommonNeighbours):
        raise InvalidModel(f"{owner} holds the ids of several nodes; make it a list")
    id_type = _type(rule.node, rule.node.key[0]) if rule.node.is_single else None
    if isinstance(rule.summary, Components) and id_type is not None and not _fits(id_type, held):
        raise InvalidModel(
            f"{owner} is {held.__name__}, which cannot hold an id of {rule.node.name}; give it the type of the id"
        )


def _fits(given: type, held: type) -> bool:
    if given in NUMBERS and held in NUMBERS:
        # An int cannot hold fractions; a float and a Decimal hold any number.
        return held is not int or given is int
    return (given in NUMBERS) == (held in NUMBERS) and (given is bool) == (held is bool)


def _type(kind: EntityType, name: str) -> type | None:
    plain = plain_type(kind.fields[name])
    return plain if plain in _SINGLE else None


def _named(term: Term) -> str:
    assert term.field is not None
    return term.field


def _shown(rule: Rule, term: Term) -> str:
    return f"{rule.hop.kind_at(term.at).name}.{term.field}"


# --- aggregates that read other aggregates -----------------------------------------------------


def _check_cycles(rules: Rules) -> None:
    """Raises if rules read each other in a cycle: each change would cause another one, for ever.

    Edges in a cycle are another matter: maintenance finds them and sets them aside.
    """
    made: dict[tuple[type[Any], str], Rule] = {}
    for rule in rules.rules:
        made |= {(rule.node.model, name): rule for name in (rule.attribute, rule.pair) if name is not None}
    whole: set[str] = set()

    def visit(rule: Rule, way: tuple[str, ...]) -> None:
        if rule.name in way:
            cycle = " → ".join((*way[way.index(rule.name) :], rule.name))
            raise CyclicRule(
                f"aggregates depend on each other in a cycle: {cycle}; remove one of them, or use one edge with "
                f"recursive=True"
            )
        if rule.name not in whole:
            for attribute in _read_far(rule):
                for far in rule.hop.far.classes:
                    below = made.get((far.model, attribute))
                    if below is not None:
                        visit(below, (*way, rule.name))
            whole.add(rule.name)

    for rule in rules.rules:
        visit(rule, ())


def _read_far(rule: Rule) -> Iterator[str]:
    """Yields the attributes of far nodes that a rule reads, except the one that a recursive rule continues from."""
    far: NodeType = rule.hop.far
    # A recursive rule reads itself at far nodes. That cycle is meant, and edges that would close one are set aside.
    terms = rule.terms[:1] if rule.is_recursive else rule.terms
    for term in (*terms, rule.by):
        if term is not None and term.at == "far" and term.attribute is not None:
            yield term.attribute
    if rule.where_at == "far":
        read = (far.counted_fields[name.partition(".")[0]] for name in fields_of(rule.where))
        yield from (attribute for attribute in read if attribute is not None)
