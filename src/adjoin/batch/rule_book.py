"""The rules of a graph as a batch job needs them: what each rule reads, where that is stored, and its conditions.

Conditions on stored attributes become Ibis expressions. Absent attributes mean the same as in DynamoDB: a comparison
with an absent attribute is false, except `<>`, which is true. So no expression here is ever null.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias, cast

import ibis
import ibis.expr.types as ir

from adjoin.batch.engines import Want
from adjoin.batch.numbers import SUBJECT, Numbers, tested
from adjoin.batch.tables import KEY_PART, attribute_want, ends_want, field_want, stored_condition
from adjoin.entity_types import EntityType, NodeType, tag_of
from adjoin.errors import CyclicRule, InvalidModel
from adjoin.expressions import And, BeginsWith, Between, Compare, Condition, Contains, Exists, In, Not, Or, Path, Value
from adjoin.layouts.bound import BoundLayout
from adjoin.rules import Rule, Rules, Term

# --- conditions --------------------------------------------------------------------------------


ColumnOf: TypeAlias = Callable[[Want], Any]
"""Returns the column of a want, as text."""

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def want(path: Path, tag: str | None = None) -> Want:
    """The want for the value at a path, as one of DynamoDB's types."""
    first, *rest = path.steps
    if isinstance(first, str) and first.startswith(KEY_PART):
        return (KEY_PART, first.removeprefix(KEY_PART), tag or "S")
    steps: list[str] = [str(first)]
    for step in rest:
        steps += ["L" if isinstance(step, int) else "M", str(step)]
    return tuple(steps) if tag is None else (*steps, tag)


def wants_of(condition: Condition) -> Iterator[Want]:
    """The wants of all values that a condition reads."""
    seen: list[Want] = []

    def column(each: Want) -> Any:
        seen.append(each)
        return ibis.literal("", type="string")

    holds(condition, column, _Unread())
    yield from seen


def holds(condition: Condition, column: ColumnOf, numbers: Numbers) -> ir.BooleanValue:
    """Whether a condition holds for the item of each row."""
    match condition:
        case And(parts):
            return ibis.and_(*(holds(part, column, numbers) for part in parts))
        case Or(parts):
            return ibis.or_(*(holds(part, column, numbers) for part in parts))
        case Not(inner):
            return ~holds(inner, column, numbers)
        case Exists(path):
            return column(want(path)).notnull()
        case Compare("=", Path() as path, Value(attribute)):
            return _equal(path, attribute, column, numbers)
        case Compare("<>", Path() as path, Value(attribute)):
            return ~_equal(path, attribute, column, numbers)
        case Compare(order, Path() as path, Value(attribute)) if _is_plain(attribute):
            return _true(_ORDERS[order](*_both(path, attribute, column, numbers)))
        case Between(Path() as path, Value(low), Value(high)) if _is_plain(low) and low.keys() == high.keys():
            below, above = _both(path, low, column, numbers), _both(path, high, column, numbers)
            return _true((below[0] >= below[1]) & (above[0] <= above[1]))
        case In(Path() as path, options):
            return ibis.or_(
                *(_equal(path, each.attribute, column, numbers) for each in options if isinstance(each, Value))
            )
        case BeginsWith(Path() as path, Value({"S": prefix})):
            return _true(column(want(path, "S")).startswith(prefix))
        case Contains(Path() as path, Value({"S": part})):
            # Of a text it asks for a part, which engines can do; of a list or a set for an element, which they
            # cannot.
            text = column(want(path, "S"))
            return _true(ibis.ifelse(text.notnull(), text.contains(part), _one_by_one(condition, path, column)))
        case (
            Compare(_, Path() as path, Value())
            | Between(Path() as path, Value(), Value())
            | BeginsWith(Path() as path, Value())
            | Contains(Path() as path, Value())
        ):
            return _true(_one_by_one(condition, path, column))
    raise InvalidModel(f"where= has {condition!r}, which a batch job cannot test; compare fields with values")


def _true(expression: Any) -> Any:
    return expression.fill_null(False)


def _is_plain(attribute: dict[str, Any]) -> bool:
    """Whether engines can order such values."""
    return attribute.keys() <= {"S", "N"}


def _one(attribute: dict[str, Any]) -> tuple[str, Any]:
    ((tag, value),) = attribute.items()
    return tag, value


def _equal(path: Path, attribute: dict[str, Any], column: ColumnOf, numbers: Numbers) -> Any:
    tag, value = _one(attribute)
    if tag in ("BOOL", "NULL"):
        return _true(column(want(path, tag)) == ("true" if value else "false"))
    if tag == "B":
        return _true(column(want(path, tag)) == value)
    if not _is_plain(attribute):
        return _true(_one_by_one(Compare("=", path, Value(attribute)), path, column))
    left, right = _both(path, attribute, column, numbers)
    return _true(left == right)


def _both(path: Path, attribute: dict[str, Any], column: ColumnOf, numbers: Numbers) -> tuple[Any, Any]:
    tag, value = _one(attribute)
    if tag == "N":
        return numbers.parse(column(want(path, "N"))), numbers.literal(value)
    return column(want(path, tag)), ibis.literal(value)


def _one_by_one(condition: Condition, path: Path, column: ColumnOf) -> Any:
    """A condition that engines cannot express, tested in Python for each value."""
    place = "left" if isinstance(condition, Compare) else "operand"
    about: Condition = replace(cast(Any, condition), **{place: Path((SUBJECT,))})
    # The engine knows functions by name, so equal tests share one, and different ones never have the same name.
    name = f"adjoin_test_{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}"
    return tested(about, name)(column(want(path)))


class _Unread:
    """A form of numbers for `wants_of`, which builds expressions but never runs them."""

    def parse(self, text: Any) -> Any:
        return text

    def literal(self, text: str) -> Any:
        return ibis.literal(text)

    def total(self, values: Any) -> Any:
        return values

    def added(self, values: Any) -> Any:
        return values

    def product(self, one: Any, other: Any) -> Any:
        return one

    def text(self, value: Any) -> Any:
        return value

    def told(self, value: Any) -> str:
        return str(value)


# --- rules -------------------------------------------------------------------------------------


class RuleBook:
    """The rules of a graph, and what each of them reads. Nothing is read from a source here."""

    def __init__(self, rules: Rules, layout: BoundLayout) -> None:
        self.rules, self.layout = rules.rules, layout
        self._by_attribute = {(rule.node.model, rule.attribute): rule for rule in rules.rules}
        self._by_attribute |= {(rule.node.model, rule.pair): rule for rule in rules.rules if rule.pair is not None}

    def variants(self, rule: Rule) -> tuple[Rule, ...]:
        """The rule for each pair of classes at the ends of its edges; itself if there is one pair."""
        hop = rule.hop
        if not hop.edge.is_mixed:
            return (rule,)
        ways = (replace(hop, edge=edge, only=None) for edge in hop.edge.variants)
        return tuple(replace(rule, hop=way) for way in ways if way.near is hop.near)

    def behind(self, kind: NodeType, attribute: str | None) -> Rule | None:
        """The rule that computes an attribute of a class, if there is one."""
        return self._by_attribute.get((kind.model, attribute or ""))

    def is_recursive(self, rule: Rule) -> bool:
        """Whether a rule reads its own values at far nodes."""
        return any(term.at == "far" and self.behind(rule.hop.far, term.attribute) is rule for term in rule.terms)

    def tag(self, rule: Rule) -> str | None:
        """The type of a rule's values; for `top`, of each element."""
        rule = self.variants(rule)[0]
        if rule.terms[0].at == "one":
            return "N"
        tag = self._term_tag(rule, rule.terms[0])
        return tag if rule.is_ranked else "N"

    def by_tag(self, rule: Rule) -> str | None:
        """The type of the value by which `latest` decides."""
        rule = self.variants(rule)[0]
        if rule.by is not None:
            return self._term_tag(rule, rule.by)
        made_by = self.behind(rule.hop.far, rule.terms[0].attribute)
        assert made_by is not None
        return self.by_tag(made_by)

    def _term_tag(self, rule: Rule, term: Term) -> str | None:
        kind = rule.hop.kind_at(term.at)
        made_by = self.behind(rule.hop.far, term.attribute) if term.at == "far" else None
        if made_by is not None and made_by is not rule:
            # A list has no order and cannot be added up. Only another list of top values can read it.
            if made_by.operation == "top" and rule.operation != "top":
                raise InvalidModel(f"{rule.name} reads {made_by.name}, which is a list; name a single value")
            return self.tag(made_by)
        assert term.field is not None
        return tag_of(kind, term.field)

    def is_whole(self, rule: Rule) -> bool:
        """Whether the values of a rule are counts, or sums of counts."""
        if rule.hop.edge.is_mixed:
            return all(map(self.is_whole, self.variants(rule)))
        term = rule.terms[0]
        if rule.operation != "sum":
            return False
        if rule.times is not None:
            return False
        if term.at == "one" or rule.counts:
            return True
        made_by = self.behind(rule.hop.far, term.attribute) if term.at == "far" else None
        return made_by is not None and made_by is not rule and self.is_whole(made_by)

    def where(self, rule: Rule) -> Condition | None:
        if rule.where is None:
            return None
        return stored_condition(self.layout, rule.where_kind, rule.where)

    def wanted(self, rules: Collection[Rule]) -> Iterator[tuple[type[Any], set[Want]]]:
        """The wants of each class from which the rules are computed, without the values that other rules compute."""
        for rule in chain.from_iterable(map(self.variants, rules)):
            edge, far = rule.hop.edge, rule.hop.far
            yield rule.node.model, set()
            wants: dict[type[Any], set[Want]] = (
                {edge.model: set(), far.model: set()} if rule.reads_far else {edge.model: set()}
            )
            if self.needs_target(rule) or rule.hop.is_child:
                wants[edge.model].add(ends_want(edge))
            for term in (*rule.terms, *((rule.by,) if rule.by else ()), *((rule.times,) if rule.times else ())):
                if (want := self.term_want(rule, term)) is not None:
                    wants[edge.model if term.at == "edge" else far.model].add(want)
            if (where := self.where(rule)) is not None:
                kind = rule.where_kind
                wants[kind.model].update(each for each in wants_of(where) if not self._is_made(kind, each))
            yield from wants.items()

    def needs_target(self, rule: Rule) -> bool:
        """Whether a rule needs the targets of edges, and not only their sources."""
        return rule.reads_far or rule.hop.direction == "into" or rule.who is not None

    def _is_made(self, kind: EntityType, want: Want) -> bool:
        return isinstance(kind, NodeType) and self.behind(kind, want[0]) is not None

    def term_want(self, rule: Rule, term: Term) -> Want | None:
        """The want of a term; None if it is not stored, or computed by a rule."""
        if term.at == "one" or (term.at == "far" and self.behind(rule.hop.far, term.attribute) is not None):
            return None
        kind = rule.hop.kind_at(term.at)
        assert term.field is not None
        return field_want(self.layout, kind, term.field, tag=None if rule.is_ranked else "N")

    def stored_want(self, rule: Rule) -> Want:
        """The want of the rule's own stored value."""
        tag = None if rule.operation == "top" or rule.is_distinct else self.tag(rule)
        if rule.attribute == rule.pair:
            # A hidden latest value is the second element of a list, after the value by which it is the latest.
            return (rule.attribute, "L", "1") if tag is None else (rule.attribute, "L", "1", tag)
        return attribute_want(rule.attribute, tag)

    def reached_by(self, rule: Rule) -> tuple[NodeType, ...]:
        """The classes of the nodes at the end of the path of a rule over different nodes."""
        if rule.terms[0].at == "far" and rule.terms[0].field is None:
            (below,) = self.made_of(rule)
            return self.reached_by(below)
        return rule.hop.far.classes

    def needed(self, rules: Collection[Rule]) -> list[Rule]:
        """The rules and all rules that they read, each after those it reads."""
        order: list[Rule] = []

        def visit(rule: Rule, way: tuple[str, ...]) -> None:
            if rule in order:
                return
            if rule.name in way:
                circle = " → ".join((*way[way.index(rule.name) :], rule.name))
                raise CyclicRule(f"aggregates depend on each other in a cycle: {circle}; remove one of them")
            for other in self.made_of(rule):
                visit(other, (*way, rule.name))
            order.append(rule)

        for rule in rules:
            visit(rule, ())
        return order

    def made_of(self, rule: Rule) -> Iterator[Rule]:
        """The rules whose values a rule reads at far nodes."""
        if rule.hop.edge.is_mixed:
            found = (made_by for each in self.variants(rule) for made_by in self.made_of(each))
            yield from {made_by.name: made_by for made_by in found}.values()
            return
        attributes = [term.attribute for term in (*rule.terms, *((rule.by,) if rule.by else ())) if term.at == "far"]
        where = self.where(rule)
        if where is not None and rule.where_at == "far":
            attributes += [want[0] for want in wants_of(where)]
        for attribute in attributes:
            made_by = self.behind(rule.hop.far, attribute)
            if made_by is not None and made_by.name != rule.name:
                yield made_by
