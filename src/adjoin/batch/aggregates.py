"""The rules of a graph as Ibis expressions: for each, a table of near nodes and their values.

A rule is one hop, so each is one expression over the edges of its class, joined to the nodes at their far
ends where it reads those; a rule over another's attribute is an expression over that other's expression.
Values are what the edges say now: nothing that is stored of an aggregate is read. Only nodes that are there
have values.

A table of values has `id` and `value`, and several rows of a node for `top`, one a value. A node without a
row has no edges that count. `latest` also has `by`, what its value is the latest by.

A recursive rule is worked out from the leaves on, hop by hop, each node once when all below it are done.
What is left over is on a circle of edges, or above one: it has no value, and is told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import ibis
import ibis.expr.types as ir

from adjoin.batch.columns import TARGET, Stored, attribute_want, field_want, tag_of
from adjoin.batch.conditions import holds, wants_of
from adjoin.batch.engines import Want
from adjoin.batch.numbers import Numbers
from adjoin.batch.tables import Tables
from adjoin.errors import CyclicRule, InvalidModel
from adjoin.expressions import Condition
from adjoin.layouts.interface import BoundLayout
from adjoin.plans.conditions import condition
from adjoin.rules import Rule, Rules, Term
from adjoin.schema import EntityType, NodeType

_COMPACT = 16
"""Hops of a recursive rule after which their values are put together into one table."""


@dataclass(frozen=True)
class Computed:
    """The values of a rule, for nodes that have any; and the nodes whose values a circle makes undetermined."""

    rule: Rule
    tag: str | None
    is_whole: bool
    """Whether the value is a count, an integer of the engine."""
    values: ir.Table
    circular: ir.Table | None = None


class RuleBook:
    """The rules of a graph, and what each is made of; nothing is read here."""

    def __init__(self, rules: Rules, layout: BoundLayout) -> None:
        self.rules, self.layout = rules.rules, layout
        self._by_attribute = {(rule.node.model, rule.attribute): rule for rule in rules.rules}
        self._by_attribute |= {(rule.node.model, rule.pair): rule for rule in rules.rules if rule.pair is not None}

    def behind(self, kind: NodeType, attribute: str | None) -> Rule | None:
        """The rule that makes an attribute of a class, if one does."""
        return self._by_attribute.get((kind.model, attribute or ""))

    def tag(self, rule: Rule) -> str | None:
        """The type of a rule's values; of each of them for `top`."""
        term = rule.terms[0]
        if term.at == "one":
            return "N"
        kind = rule.hop.edge if term.at == "edge" else rule.hop.far
        made_by = self.behind(rule.hop.far, term.attribute) if term.at == "far" else None
        if made_by is not None and made_by is not rule:
            if made_by.operation == "top" and (rule.operation != "top" or term.field is not None):
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
        kind: EntityType = rule.hop.edge if rule.where_at == "edge" else rule.hop.far
        return condition(cast(BoundLayout, Stored(self.layout)), kind, rule.where)

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
                kind = edge if rule.where_at == "edge" else far
                wants[kind.model].update(each for each in wants_of(where) if not self._is_made(kind, each))
            yield from wants.items()

    def needs_target(self, rule: Rule) -> bool:
        """Whether a rule looks at the targets of edges, and not only at their sources."""
        return rule.reads_far or rule.is_recursive or rule.hop.direction == "into"

    def _is_made(self, kind: EntityType, want: Want) -> bool:
        return isinstance(kind, NodeType) and self.behind(kind, want[0]) is not None

    def term_want(self, rule: Rule, term: Term) -> Want | None:
        """Where a term is stored; None if it is nowhere, or made by a rule."""
        if term.at == "one" or (term.at == "far" and self.behind(rule.hop.far, term.attribute) is not None):
            return None
        kind: EntityType = rule.hop.edge if term.at == "edge" else rule.hop.far
        assert term.field is not None
        return field_want(self.layout, kind, term.field)

    def stored_want(self, rule: Rule) -> Want:
        """Where the stored value of the rule itself is."""
        return attribute_want(rule.attribute, None if rule.operation == "top" else self.tag(rule))

    def needed(self, rules: Collection[Rule]) -> list[Rule]:
        """The rules, and those they are made of, each behind what it is made of."""
        order: list[Rule] = []

        def visit(rule: Rule, way: tuple[str, ...]) -> None:
            if rule in order:
                return
            if rule.name in way:
                circle = " → ".join((*way[way.index(rule.name) :], rule.name))
                raise CyclicRule(f"aggregates are made of each other in a circle: {circle}; take one out")
            for other in self._made_of(rule):
                visit(other, (*way, rule.name))
            order.append(rule)

        for rule in rules:
            visit(rule, ())
        return order

    def _made_of(self, rule: Rule) -> Iterator[Rule]:
        attributes = [term.attribute for term in (*rule.terms, *((rule.by,) if rule.by else ())) if term.at == "far"]
        where = self.where(rule)
        if where is not None and rule.where_at == "far":
            attributes += [want[0] for want in wants_of(where)]
        for attribute in attributes:
            made_by = self.behind(rule.hop.far, attribute)
            if made_by is not None and made_by is not rule:
                yield made_by


def computed(
    rules: Rules, tables: Tables, numbers: Numbers, only: Collection[str] | None = None
) -> dict[str, Computed]:
    """The values of rules, by name: all, or only some and what they are made of."""
    book = RuleBook(rules, tables.layout)
    chosen = [rule for rule in book.rules if only is None or rule.name in only]
    done: dict[str, Computed] = {}
    for rule in book.needed(chosen):
        done[rule.name] = _Hop(book, rule, tables, numbers, done).computed()
    return done


class _Hop:
    """One rule at work."""

    def __init__(
        self, book: RuleBook, rule: Rule, tables: Tables, numbers: Numbers, done: Mapping[str, Computed]
    ) -> None:
        self._book, self._rule, self._tables, self._numbers, self._done = book, rule, tables, numbers, done
        self._tag, self._is_whole = book.tag(rule), book.is_whole(rule)

    def computed(self) -> Computed:
        circular = None
        if self._rule.is_recursive:
            values, circular = self._from_leaves()
        else:
            nodes = self._tables.table(self._rule.node).select("id")
            values = self._values(self._edges, {}).semi_join(nodes, "id")
            used = sum(self._rule in self._book._made_of(other) for other in self._book.rules)
            if used:
                values = self._tables.engine.stage(values)
        return Computed(self._rule, self._tag, self._is_whole, values, circular)

    @property
    def _terms(self) -> tuple[Term, ...]:
        return self._rule.terms

    # --- edges and what they add ---------------------------------------------------------------

    @cached_property
    def _edges(self) -> ir.Table:
        """The edges that count: near and far end, what each term adds, and what decides between them.

        A column tN is what a term adds that is stored on the edge or the far node.
        """
        rule, tables = self._rule, self._tables
        edges = tables.table(rule.hop.edge)
        ends = {"near": rule.hop.near_end, "far": rule.hop.far_end}
        edges = edges.rename({new: old for new, old in ends.items() if old in edges.columns})
        if rule.where is not None and rule.where_at == "edge":
            edges = edges.filter(self._holds(edges, edge=True))
        stored_far = [term for term in self._all_terms if term.at == "far" and self._want(term) is not None]
        filters_far = rule.where is not None and rule.where_at == "far"
        columns: dict[str, Any] = {"near": edges.near}
        if self._book.needs_target(rule):
            columns["far"] = edges.far
        for name, term in self._named_terms:
            if term.at == "edge":
                columns[name] = self._parsed(edges, term)
        if not stored_far and not filters_far:
            return edges.select(**columns)
        nodes = self._far_nodes()
        edges = edges.select(**columns)
        joined = edges.left_join(nodes, edges.far == nodes.id)
        if filters_far:
            joined = joined.filter(joined.holds.fill_null(False))
        return joined.select(*columns, *(name for name, term in self._named_terms if term in stored_far))

    def _far_nodes(self) -> ir.Table:
        """The far nodes: what terms read of them, and whether `where` holds for them."""
        rule, nodes = self._rule, self._tables.table(self._rule.hop.far)
        if rule.where is not None and rule.where_at == "far":
            made = {want[0] for want in wants_of(cast(Condition, self._book.where(rule)))}
            for attribute in sorted(made):
                if (made_by := self._book.behind(rule.hop.far, attribute)) is not None:
                    nodes = self._with_made(nodes, attribute, self._done[made_by.name])
            nodes = nodes.mutate(holds=self._holds(nodes, edge=False))
        else:
            nodes = nodes.mutate(holds=ibis.literal(True))
        columns = {"id": nodes.id, "holds": nodes.holds}
        for name, term in self._named_terms:
            if term.at == "far" and self._want(term) is not None:
                columns[name] = self._parsed(nodes, term)
        return nodes.select(**columns)

    def _with_made(self, nodes: ir.Table, attribute: str, made: Computed) -> ir.Table:
        """Nodes with the value of another rule, as text; a sum of nothing is zero."""
        value = made.values.value
        text = self._numbers.text(value) if made.tag == "N" and not made.is_whole else value.cast("string")
        values = made.values.select(made_id=made.values.id, made_value=text)
        joined = nodes.left_join(values, nodes.id == values.made_id)
        found = joined.made_value
        if made.rule.operation == "sum":
            found = found.fill_null("0")
        return joined.mutate(**{_made_column(attribute): found}).drop("made_id", "made_value")

    def _holds(self, rows: ir.Table, *, edge: bool) -> Any:
        where = self._book.where(self._rule)
        assert where is not None

        def column(want: Want) -> Any:
            if not edge and _made_column(want[0]) in rows.columns:
                return rows[_made_column(want[0])]
            return rows[self._tables.column(want)]

        return holds(where, column, self._numbers)

    @cached_property
    def _all_terms(self) -> tuple[Term, ...]:
        return (*self._rule.terms, *((self._rule.by,) if self._rule.by else ()))

    @cached_property
    def _named_terms(self) -> list[tuple[str, Term]]:
        named = [(f"t{place}", term) for place, term in enumerate(self._rule.terms)]
        return [*named, *((("by", self._rule.by),) if self._rule.by else ())]

    def _want(self, term: Term) -> Want | None:
        return self._book.term_want(self._rule, term)

    def _parsed(self, rows: ir.Table, term: Term) -> Any:
        want = self._want(term)
        assert want is not None
        column = rows[self._tables.column(want)]
        return self._numbers.parse(column) if want[-1] == "N" and len(want) > 1 else column

    # --- one hop -------------------------------------------------------------------------------

    def _values(self, edges: ir.Table, own: Mapping[str, ir.Table]) -> ir.Table:
        """The values of near nodes; `own` has the values of the rule itself that are known by now."""
        if self._rule.operation == "sum":
            return self._sums(edges, own)
        parts = [
            part for place, term in enumerate(self._terms) if (part := self._part(edges, place, term, own)) is not None
        ]
        rows = parts[0] if len(parts) == 1 else ibis.union(*parts)
        rows = rows.filter(rows.value.notnull())
        if self._rule.operation == "latest":
            rows = rows.filter(rows.by.notnull())
        return self._chosen(rows)

    def _sums(self, edges: ir.Table, own: Mapping[str, ir.Table]) -> ir.Table:
        for place, term in enumerate(self._terms):
            made = self._made(term, own)
            if made is not None:
                made = made.select(made_id=made.id, **{f"t{place}": made.value})
                edges = edges.left_join(made, edges.far == made.made_id).drop("made_id")
        totals = []
        for place, term in enumerate(self._terms):
            name = f"t{place}"
            if term.at == "one":
                totals.append(edges.count().cast("int64"))
            elif name in edges.columns:
                totals.append(edges[name].sum().cast("int64") if self._is_whole else self._numbers.total(edges[name]))
        if len(totals) == 1:
            return edges.group_by(id=edges.near).agg(value=totals[0])
        grouped = edges.group_by(id=edges.near).agg(**{f"s{place}": total for place, total in enumerate(totals)})
        columns = [grouped[f"s{place}"] for place in range(len(totals))]
        if self._is_whole:
            added = sum((column.fill_null(0) for column in columns[1:]), columns[0].fill_null(0)).cast("int64")
        else:
            added = self._numbers.added(columns)
        return grouped.select("id", value=added)

    def _made(self, term: Term, own: Mapping[str, ir.Table]) -> ir.Table | None:
        """The values of the rule that makes what a term reads; None if it is stored, or not known yet."""
        made_by = self._book.behind(self._rule.hop.far, term.attribute) if term.at == "far" else None
        if made_by is None:
            return None
        if made_by is self._rule:
            return own.get("values")
        return self._done[made_by.name].values

    def _part(self, edges: ir.Table, place: int, term: Term, own: Mapping[str, ir.Table]) -> ir.Table | None:
        """What one term adds: near node, value, and for `latest` what decides."""
        is_latest = self._rule.operation == "latest"
        is_made = term.at == "far" and self._want(term) is None
        if not is_made:
            by = {"by": edges["by"]} if is_latest else {}
            return edges.select(near=edges.near, value=edges[f"t{place}"], **by)
        made = self._made(term, own)
        if made is None:
            return None
        has_by = ("by" in made.columns and self._rule.by is None) or (self._rule.is_recursive and is_latest)
        made = made.select(made_id=made.id, value=made.value, **({"made_by": made.by} if has_by else {}))
        joined = edges.join(made, edges.far == made.made_id)
        by = {}
        if is_latest:
            found = joined.made_by if has_by else joined.by
            by = {"by": found}
        return joined.select(near=joined.near, value=joined.value, **by)

    def _chosen(self, rows: ir.Table) -> ir.Table:
        """Of what edges add to a node, what the operation keeps."""
        match self._rule.operation:
            case "min":
                return rows.group_by(id=rows.near).agg(value=rows.value.min())
            case "max":
                return rows.group_by(id=rows.near).agg(value=rows.value.max())
            case "top":
                order = [ibis.desc(rows.value)]
            case _:
                # Of edges that are equally late, the one with the greatest value counts.
                order = [ibis.desc(rows.by), ibis.desc(rows.value)]
        ranked = rows.mutate(place=ibis.row_number().over(group_by=rows.near, order_by=order))
        kept = ranked.filter(ranked.place < (self._rule.k if self._rule.operation == "top" else 1))
        by = ["by"] if self._rule.operation == "latest" else []
        return kept.select("value", *by, id=kept.near)

    # --- recursion -----------------------------------------------------------------------------

    def _from_leaves(self) -> tuple[ir.Table, ir.Table | None]:
        engine = self._tables.engine
        nodes = self._tables.table(self._rule.node).select("id")
        waiting = engine.stage(self._edges.semi_join(nodes, self._edges.near == nodes.id))
        levels: list[ir.Table] = []
        while True:
            near = waiting.select(id=waiting.near).distinct()
            is_blocked = waiting.semi_join(near, waiting.far == near.id)
            blocked = is_blocked.select(id=is_blocked.near).distinct()
            ready = engine.stage(near.anti_join(blocked, "id"))
            if not _count(engine, ready):
                break
            edges = waiting.semi_join(ready, waiting.near == ready.id)
            below = {"values": levels[0] if len(levels) == 1 else ibis.union(*levels)} if levels else {}
            level = engine.stage(self._values(edges, below))
            # Spark makes the sum of two decimals a digit wider than each.
            levels.append(level.mutate(value=level.value.cast((levels[0] if levels else level).value.type())))
            if len(levels) > _COMPACT:
                levels = [engine.stage(ibis.union(*levels))]
            waiting = engine.stage(waiting.anti_join(ready, waiting.near == ready.id))
        left = engine.stage(waiting.select(id=waiting.near).distinct())
        circular = left if _count(engine, left) else None
        if not levels:
            empty = self._edges.filter(ibis.literal(False))
            return engine.stage(self._values(empty, {})), circular
        return (levels[0] if len(levels) == 1 else engine.stage(ibis.union(*levels))), circular


def _made_column(attribute: str) -> str:
    return f"made:{attribute}"


def _count(engine: Any, table: ir.Table) -> int:
    (row,) = engine.fetch(table.aggregate(rows=table.count()))
    return int(row["rows"])
