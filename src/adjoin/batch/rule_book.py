"""The rules of a graph as a batch job sees them: what each is made of, and where that is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from adjoin.batch.columns import TARGET, attribute_want, field_want, stored_condition
from adjoin.batch.conditions import wants_of
from adjoin.batch.engines import Want
from adjoin.errors import CyclicRule, InvalidModel
from adjoin.expressions import Condition
from adjoin.layouts.interface import BoundLayout
from adjoin.rules import Rule, Rules, Term
from adjoin.schema import EntityType, NodeType, tag_of


class RuleBook:
    """The rules of a graph, and what each is made of; nothing is read here."""

    def __init__(self, rules: Rules, layout: BoundLayout) -> None:
        self.rules, self.layout = rules.rules, layout
        self._by_attribute = {(rule.node.model, rule.attribute): rule for rule in rules.rules}
        self._by_attribute |= {(rule.node.model, rule.pair): rule for rule in rules.rules if rule.pair is not None}

    def behind(self, kind: NodeType, attribute: str | None) -> Rule | None:
        """The rule that makes an attribute of a class, if one does."""
        return self._by_attribute.get((kind.model, attribute or ""))

    def is_recursive(self, rule: Rule) -> bool:
        """Whether a rule is made of its own values at far ends."""
        return any(term.at == "far" and self.behind(rule.hop.far, term.attribute) is rule for term in rule.terms)

    def tag(self, rule: Rule) -> str | None:
        """The type of a rule's values; of each of them for `top`."""
        if rule.terms[0].at == "one":
            return "N"
        tag = self._term_tag(rule, rule.terms[0])
        return "N" if rule.operation == "sum" else tag

    def by_tag(self, rule: Rule) -> str | None:
        """The type of what `latest` goes by."""
        if rule.by is not None:
            return self._term_tag(rule, rule.by)
        made_by = self.behind(rule.hop.far, rule.terms[0].attribute)
        assert made_by is not None
        return self.by_tag(made_by)

    def _term_tag(self, rule: Rule, term: Term) -> str | None:
        kind = rule.hop.kind_at(term.at)
        made_by = self.behind(rule.hop.far, term.attribute) if term.at == "far" else None
        if made_by is not None and made_by is not rule:
            if made_by.operation == "top" and rule.operation != "top":
                raise InvalidModel(f"{rule.name} is made of {made_by.name}, which is a list; name a single value")
            return self.tag(made_by)
        assert term.field is not None
        return tag_of(kind, term.field)

    def is_whole(self, rule: Rule) -> bool:
        term = rule.terms[0]
        if rule.operation != "sum":
            return False
        if term.at == "one":
            return True
        made_by = self.behind(rule.hop.far, term.attribute) if term.at == "far" else None
        return made_by is not None and made_by is not rule and self.is_whole(made_by)

    def where(self, rule: Rule) -> Condition | None:
        if rule.where is None:
            return None
        return stored_condition(self.layout, rule.where_kind, rule.where)

    def wanted(self, rules: Collection[Rule]) -> Iterator[tuple[type[Any], set[Want]]]:
        """What of which class the rules are computed from, without what other rules make."""
        for rule in rules:
            edge, far = rule.hop.edge, rule.hop.far
            yield rule.node.model, set()
            wants: dict[type[Any], set[Want]] = (
                {edge.model: set(), far.model: set()} if rule.reads_far else {edge.model: set()}
            )
            if self.needs_target(rule):
                wants[edge.model].add(TARGET)
            for term in (*rule.terms, *((rule.by,) if rule.by else ())):
                if (want := self.term_want(rule, term)) is not None:
                    wants[edge.model if term.at == "edge" else far.model].add(want)
            if (where := self.where(rule)) is not None:
                kind = rule.where_kind
                wants[kind.model].update(each for each in wants_of(where) if not self._is_made(kind, each))
            yield from wants.items()

    def needs_target(self, rule: Rule) -> bool:
        """Whether a rule looks at the targets of edges, and not only at their sources."""
        return rule.reads_far or rule.hop.direction == "into"

    def _is_made(self, kind: EntityType, want: Want) -> bool:
        return isinstance(kind, NodeType) and self.behind(kind, want[0]) is not None

    def term_want(self, rule: Rule, term: Term) -> Want | None:
        """Where a term is stored; None if it is nowhere, or made by a rule."""
        if term.at == "one" or (term.at == "far" and self.behind(rule.hop.far, term.attribute) is not None):
            return None
        kind = rule.hop.kind_at(term.at)
        assert term.field is not None
        return field_want(self.layout, kind, term.field, tag="N" if rule.operation == "sum" else None)

    def stored_want(self, rule: Rule) -> Want:
        """Where the stored value of the rule itself is."""
        tag = None if rule.operation == "top" else self.tag(rule)
        if rule.attribute == rule.pair:
            # A hidden latest value is stored behind what it goes by.
            return (rule.attribute, "L", "1") if tag is None else (rule.attribute, "L", "1", tag)
        return attribute_want(rule.attribute, tag)

    def needed(self, rules: Collection[Rule]) -> list[Rule]:
        """The rules, and those they are made of, each behind what it is made of."""
        order: list[Rule] = []

        def visit(rule: Rule, way: tuple[str, ...]) -> None:
            if rule in order:
                return
            if rule.name in way:
                circle = " → ".join((*way[way.index(rule.name) :], rule.name))
                raise CyclicRule(f"aggregates are made of each other in a circle: {circle}; take one out")
            for other in self.made_of(rule):
                visit(other, (*way, rule.name))
            order.append(rule)

        for rule in rules:
            visit(rule, ())
        return order

    def made_of(self, rule: Rule) -> Iterator[Rule]:
        attributes = [term.attribute for term in (*rule.terms, *((rule.by,) if rule.by else ())) if term.at == "far"]
        where = self.where(rule)
        if where is not None and rule.where_at == "far":
            attributes += [want[0] for want in wants_of(where)]
        for attribute in attributes:
            made_by = self.behind(rule.hop.far, attribute)
            if made_by is not None and made_by is not rule:
                yield made_by
