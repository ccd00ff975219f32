"""The rules of a graph as Ibis expressions: for each rule, a table of near nodes and their values.

A rule is one hop, so it is one expression over the edges of its class, joined with the far nodes if it reads them. A
rule that reads another rule's attribute is an expression over that rule's expression. Values are computed from the
edges alone; stored aggregates are not read. Only nodes that exist have values.

A table of values has the columns `id` and `value`. For `top`, a node has one row per value. A node without a row
has no edges that count. `latest` also has the column `by`, which decides which value is the latest. A rule over
different nodes has a row for each node that is reached, see `reached`.

A recursive rule is computed from the leaves upwards, level by level: a node follows when all nodes below it are done.
Its level is one more than the highest level of the nodes to which its edges lead. A node without a level is on a cycle
of edges, or above one; it has no value, and is reported separately. Rules over the same edges share their levels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

import ibis
import ibis.expr.types as ir

from adjoin.batch.engines import Engine, Want
from adjoin.batch.numbers import Numbers, can_be_ranked, elements, ranked
from adjoin.batch.reached import united
from adjoin.batch.rule_book import RuleBook, holds, wants_of
from adjoin.batch.tables import Tables
from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.expressions import Condition
from adjoin.rules import Rule, Rules, Term

# --- levels ------------------------------------------------------------------------------------


_COMPACT = 16
"""After this many passes, their results are merged into one table, so that expressions stay small."""


@dataclass(frozen=True)
class Levels:
    """The level of each node that has one, as `id` and `level`; the number of levels; and the nodes without one."""

    of: ir.Table
    count: int
    circular: ir.Table | None


def levels(engine: Engine, pairs: ir.Table) -> Levels:
    """The levels of near nodes, from pairs of `near` and `far` ends.

    Each pass keeps the pairs whose near node still has a far node among the remaining near nodes. The level of a
    node is the number of passes that it survives.
    """
    left = engine.stage(pairs.select("near", "far").distinct())
    seen: list[ir.Table] = []
    passes, size = 0, engine.size(left)
    while size:
        seen.append(left.select(id=left.near, level=ibis.literal(passes, "int64")))
        nodes = left.select(id=left.near).distinct()
        blocked = left.semi_join(nodes, left.far == nodes.id).select(id="near").distinct()
        fewer = engine.stage(left.semi_join(blocked, left.near == blocked.id))
        passes, before, size, left = passes + 1, size, engine.size(fewer), fewer
        if size == before:
            break
        if len(seen) == _COMPACT:
            seen = [engine.stage(_highest(seen))]
    if not seen:
        return Levels(left.select(id=left.near, level=ibis.literal(0, "int64")), 0, None)
    found = _highest(seen)
    if not size:
        return Levels(engine.stage(found), passes, None)
    circular = engine.stage(left.select(id=left.near).distinct())
    return Levels(engine.stage(found.anti_join(circular, "id")), passes - 1, circular)


def _highest(seen: list[ir.Table]) -> ir.Table:
    every = seen[0] if len(seen) == 1 else ibis.union(*seen)
    return every.group_by("id").agg(level=every.level.max())


# --- values ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Computed:
    """The values of a rule, for nodes that have one; and the nodes that have none because of a cycle."""

    rule: Rule
    tag: str | None
    is_whole: bool
    """Whether the value is a count, which is an integer in the engine."""
    values: ir.Table
    circular: ir.Table | None = None


def computed(
    rules: Rules, tables: Tables, numbers: Numbers, only: Collection[str] | None = None
) -> dict[str, Computed]:
    """The values of rules by name: of all rules, or of some and those that they read."""
    book = RuleBook(rules, tables.layout)
    chosen = [rule for rule in book.rules if only is None or rule.name in only]
    done: dict[str, Computed] = {}
    order: dict[Any, Levels] = {}
    for rule in book.needed(chosen):
        parts = [_Hop(book, each, tables, numbers, done, order) for each in book.variants(rule)]
        done[rule.name] = parts[0].computed() if len(parts) == 1 else _together(book, rule, numbers, parts, tables)
    return done


def _together(book: RuleBook, rule: Rule, numbers: Numbers, parts: Sequence[_Hop], tables: Tables) -> Computed:
    """The values of a rule over edges with several classes at their ends, from the values for each pair of classes."""
    found, is_whole = [part.computed() for part in parts], book.is_whole(rule)
    rows = ibis.union(
        *(
            each.values.mutate(value=numbers.parse(each.values.value.cast("string")))
            if each.is_whole and not is_whole
            else each.values
            for each in (replace(one, values=one.values.select(*sorted(one.values.columns))) for one in found)
        )
    )
    if rule.is_distinct:
        values = united([rows])
    elif rule.operation == "sum":
        total = rows.value.sum().cast("int64") if is_whole else numbers.total(rows.value)
        values = rows.group_by("id").agg(value=total)
    else:
        values = parts[0].chosen(rows.rename(near="id"))
    if any(rule.name in {made.name for made in book.made_of(other)} for other in book.rules):
        values = tables.engine.stage(values)
    lost = [each.circular for each in found if each.circular is not None]
    circular = tables.engine.stage(ibis.union(*lost, distinct=True)) if len(lost) > 1 else next(iter(lost), None)
    return Computed(rule, book.tag(rule), is_whole, values, circular)


class _Hop:
    """Computes one rule."""

    def __init__(
        self,
        book: RuleBook,
        rule: Rule,
        tables: Tables,
        numbers: Numbers,
        done: Mapping[str, Computed],
        order: dict[Any, Levels],
    ) -> None:
        self._book, self._rule, self._tables, self._numbers, self._done = book, rule, tables, numbers, done
        self._order = order
        """The levels of nodes; rules over the same edges share them."""
        self._tag, self._is_whole = book.tag(rule), book.is_whole(rule)

    def computed(self) -> Computed:
        circular = self._above_circles()
        if self._book.is_recursive(self._rule):
            values, circular = self._from_leaves(circular)
        else:
            nodes = self._tables.table(self._rule.node).select("id")
            values = self._values(self._edges, {}).semi_join(nodes, "id")
            others = (made for other in self._book.rules for made in self._book.made_of(other))
            if any(made.name == self._rule.name for made in others):
                values = self._tables.engine.stage(values)
        return Computed(self._rule, self._tag, self._is_whole, values, circular)

    def _above_circles(self) -> ir.Table | None:
        """The nodes whose edges lead to nodes without a value, of a rule that this rule reads."""
        lost = [
            table for made in self._book.made_of(self._rule) if (table := self._done[made.name].circular) is not None
        ]
        if not lost:
            return None
        every = lost[0] if len(lost) == 1 else ibis.union(*lost)
        edges, nodes = self._ends(), self._tables.table(self._rule.node).select("id")
        near = edges.semi_join(every, edges.far == every.id).select(id="near").distinct()
        return self._tables.engine.stage(near.semi_join(nodes, "id"))

    @property
    def _terms(self) -> tuple[Term, ...]:
        return self._rule.terms

    # --- edges and what they add ---------------------------------------------------------------

    @cached_property
    def _edges(self) -> ir.Table:
        """The edges that count: near and far node, the value of each stored term, and `by` for `latest`.

        A column tN holds the value of term N, if it is stored on the edge or the far node.
        """
        rule, edges = self._rule, self._ends()
        stored_far = [term for term in self._all_terms if term.at == "far" and self._want(term) is not None]
        filters_far = rule.where is not None and rule.where_at == "far"
        columns: dict[str, Any] = {"near": edges.near}
        if self._book.needs_target(rule):
            columns["far"] = edges.far
        for name, term in self._named_terms:
            if term.at == "edge":
                columns[name] = self._parsed(edges, term)
        edges = edges.select(**columns)
        if stored_far or filters_far:
            nodes = self._far_nodes()
            joined = edges.left_join(nodes, edges.far == nodes.id)
            if filters_far:
                joined = joined.filter(joined.holds.fill_null(False))
            edges = joined.select(*columns, *(name for name, term in self._named_terms if term in stored_far))
        by = None if rule.by is None else self._made(rule.by, {})
        if by is not None:
            by = by.select(by_id=by.id, by=by.value)
            edges = edges.left_join(by, edges.far == by.by_id).drop("by_id")
        return edges

    def _ends(self) -> ir.Table:
        """The edges that fulfil the rule's condition on edges, with their ends as `near` and `far`."""
        hop = self._rule.hop
        edges = self._tables.table(hop.edge)
        ends = {"near": hop.near_end, "far": hop.far_end}
        edges = edges.rename({new: old for new, old in ends.items() if old in edges.columns})
        if self._rule.where is None or self._rule.where_at != "edge":
            return edges
        return edges.filter(self._holds(edges, edge=True))

    def _far_nodes(self) -> ir.Table:
        """The far nodes: the values that terms read, and whether `where` holds."""
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
        """Nodes with the value of another rule as text. The sum of no edges is zero."""
        value = made.values.value
        text = self._numbers.text(value) if made.tag == "N" and not made.is_whole else value.cast("string")
        values = made.values.select(made_id=made.values.id, made_value=text)
        joined = nodes.left_join(values, nodes.id == values.made_id)
        found = joined.made_value
        if made.rule.operation == "sum" and made.rule.field is not None:
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
        named += [("times", self._rule.times)] if self._rule.times else []
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
        """The values of near nodes. `own` has the values of this rule that are already computed."""
        if self._rule.operation == "sum":
            return self._sums(edges, own)
        if self._rule.is_distinct:
            return united(list(self._reached(edges, own)))
        parts = [
            part for place, term in enumerate(self._terms) if (part := self._part(edges, place, term, own)) is not None
        ]
        rows = parts[0] if len(parts) == 1 else ibis.union(*parts)
        rows = rows.filter(can_be_ranked(rows.value, self._tag))
        if self._rule.operation == "latest":
            rows = rows.filter(can_be_ranked(rows.by, self._book.by_tag(self._rule)))
        return self.chosen(rows)

    def _sums(self, edges: ir.Table, own: Mapping[str, ir.Table]) -> ir.Table:
        for place, term in enumerate(self._terms):
            made = self._made(term, own)
            if made is not None:
                made = made.select(made_id=made.id, **{f"t{place}": made.value})
                edges = edges.left_join(made, edges.far == made.made_id).drop("made_id")
        if self._rule.times is not None:
            edges = self._multiplied(edges)
        totals = []
        for place, term in enumerate(self._terms):
            name = f"t{place}"
            if self._rule.times is not None and name in edges.columns:
                totals.append(self._numbers.total(edges[name]))
                continue
            if term.at == "one":
                totals.append(edges.count().cast("int64"))
            elif self._rule.counts and place == 0:
                totals.append(edges[name].count().cast("int64"))
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

    def _reached(self, edges: ir.Table, own: Mapping[str, ir.Table]) -> Iterator[ir.Table]:
        """The nodes to which each edge leads: its far node, and those that the far node's set has."""
        for place, term in enumerate(self._terms):
            if term.at != "far" or term.field is not None:
                rows = edges if term.at == "one" else edges.filter(edges[f"t{place}"].notnull())
                yield rows.select(
                    id=rows.near,
                    label=ibis.literal(self._rule.hop.far.label),
                    who=rows.far,
                    value=ibis.null("string") if term.at == "one" else rows[f"t{place}"],
                    edges=ibis.literal(1, "int64"),
                )
            elif (made := self._made(term, own)) is not None:
                made = made.select(made_id=made.id, label=made.label, who=made.who, value=made.value)
                ends = edges.select("near", "far")
                rows = ends.join(made, ends.far == made.made_id)
                yield rows.select(
                    id=rows.near, label=rows.label, who=rows.who, value=rows.value, edges=ibis.literal(1, "int64")
                )

    def _multiplied(self, edges: ir.Table) -> ir.Table:
        """Edges with each term multiplied by the quantity of the edge."""
        times, numbers, products = edges.times, self._numbers, {}
        for place, term in enumerate(self._terms):
            name = f"t{place}"
            if term.at == "one":
                products[name] = times
            elif name in edges.columns:
                products[name] = numbers.product(edges[name], times)
        return edges.mutate(**products)

    def _made(self, term: Term, own: Mapping[str, ir.Table]) -> ir.Table | None:
        """The values of the rule that computes what a term reads; None if it is stored, or not computed yet."""
        made_by = self._book.behind(self._rule.hop.far, term.attribute) if term.at == "far" else None
        if made_by is None:
            return None
        if made_by is self._rule:
            return own.get("values")
        made = self._done[made_by.name]
        values = made.values
        if made.is_whole and not self._is_whole:
            values = values.mutate(value=self._numbers.parse(values.value.cast("string")))
        if self._rule.operation == "sum" or made_by.operation != "sum" or term.field is None:
            return values
        # A node without edges that count has no row, but its sum is zero.
        nodes = self._tables.table(self._rule.hop.far).select("id")
        values = values.select(value_id=values.id, value=values.value)
        joined = nodes.left_join(values, nodes.id == values.value_id)
        return joined.select(id=joined.id, value=joined.value.fill_null(self._numbers.literal("0")))

    def _part(self, edges: ir.Table, place: int, term: Term, own: Mapping[str, ir.Table]) -> ir.Table | None:
        """The rows that one term contributes: near node, value, and `by` for `latest`."""
        is_latest = self._rule.operation == "latest"
        is_made = term.at == "far" and self._want(term) is None
        if not is_made:
            by = {"by": edges["by"]} if is_latest else {}
            value = edges[f"t{place}"]
            if self._rule.operation == "top" and self._tag is None:
                value = elements(value).unnest()
            who = {} if self._rule.who is None else {"who": edges.far}
            return edges.select(near=edges.near, value=value, **by, **who)
        made = self._made(term, own)
        if made is None:
            return None
        has_by = ("by" in made.columns and self._rule.by is None) or (self._rule.is_recursive and is_latest)
        further = {"made_by": made.by} if has_by else {}
        further |= {"made_who": made.who} if "who" in made.columns else {}
        made = made.select(made_id=made.id, value=made.value, **further)
        joined = edges.join(made, edges.far == made.made_id)
        by = {}
        if is_latest:
            found = joined.made_by if has_by else joined.by
            by = {"by": found}
        who = {}
        if self._rule.who is not None:
            who = {"who": joined.made_who if "made_who" in further else joined.far}
        return joined.select(near=joined.near, value=joined.value, **by, **who)

    def chosen(self, rows: ir.Table) -> ir.Table:
        """The contributions to each node that the operation keeps."""
        operation = self._rule.operation
        if operation in ("min", "max") and self._tag is not None:
            return rows.group_by(id=rows.near).agg(value=rows.value.min() if operation == "min" else rows.value.max())
        value = ranked(rows.value, self._tag)
        order = [value.asc() if operation == "min" else value.desc()]
        if operation == "latest":
            # Of equally late edges, the one with the greatest value counts, so that the result is unique.
            order.insert(0, ranked(rows.by, self._book.by_tag(self._rule)).desc())
        if self._rule.who is not None:
            order.append(whose_order(self._rule.who, rows.who, self._numbers).desc())
        placed = rows.mutate(place=ibis.row_number().over(group_by=rows.near, order_by=order))
        kept = placed.filter(placed.place < self._rule.k)
        by = ["by"] if operation == "latest" else ["who"] if self._rule.who is not None else []
        return kept.select("value", *by, id=kept.near)

    # --- recursion -----------------------------------------------------------------------------

    def _from_leaves(self, unsure: ir.Table | None) -> tuple[ir.Table, ir.Table | None]:
        """The values of a recursive rule, computed level by level, and the nodes that have none."""
        engine = self._tables.engine
        order = self._levels(unsure)
        edges, of = self._edges, order.of
        edges = edges.join(of, edges.near == of.id).drop("id")
        if order.count > 1:
            edges = engine.stage(edges)
        values = engine.stage(self._values(edges.filter(edges.level == 0), {}))
        if order.count > 1:
            turn = engine.stage(ibis.literal(1, "int64").name("number").as_table())
            next_edges = edges.semi_join(turn, edges.level == turn.number)
            more = self._values(next_edges, {"values": values}).select(*values.columns)
            # Spark makes the sum of two decimals one digit wider than each of them.
            engine.grow(values, turn, range(1, order.count), more.cast(dict(values.schema().items())))
        return values, order.circular

    def _levels(self, unsure: ir.Table | None) -> Levels:
        hop = self._rule.hop
        shared = (hop.edge.model, hop.direction, self._rule.where, unsure is None)
        if shared not in self._order:
            nodes = self._tables.table(self._rule.node).select("id")
            pairs = self._edges.select("near", "far")
            if unsure is not None:
                # A node that leads to one without a value has no value either. An edge to itself has that effect.
                pairs = ibis.union(pairs, unsure.select(near=unsure.id, far=unsure.id))
            self._order[shared] = levels(self._tables.engine, pairs.semi_join(nodes, pairs.near == nodes.id))
        return self._order[shared]


def whose_order(kind: NodeType, id: Any, numbers: Numbers) -> Any:
    """The order of ids, by which equal values of different nodes are sorted: numbers by value, others by their text."""
    return numbers.parse(id) if issubclass(kind.id_type, int | Decimal) else id


def _made_column(attribute: str) -> str:
    return f"made:{attribute}"
