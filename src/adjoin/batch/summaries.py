"""Summaries as Ibis expressions: PageRank, components and common neighbours of the nodes of a class.

They use the edges of one class whose two nodes both exist. Everything is computed with integers and text, so
that all engines give the same digits, in whatever order they add numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import ibis
import ibis.expr.types as ir

from adjoin.aggregates import CommonNeighbours, Components, PageRank
from adjoin.batch.engines import Engine
from adjoin.batch.keys import key_parts
from adjoin.batch.numbers import Numbers
from adjoin.batch.tables import Tables
from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel
from adjoin.rules import SummaryRule
from adjoin.values import AttributeValue, canonical_number, encode

UNIT = 10**15
"""The sum of all ranks. It is below 2**53, so that engines that divide in floating point stay exact."""
_DAMPING = 10**6
_LOOKED = 10
"""Iterations between two checks whether ranks still change."""
_SETTLED = UNIT // 10**9
"""If all ranks together change by no more than this, the iteration stops."""


@dataclass(frozen=True)
class Summarized:
    """A computed summary: for every node its `id` and `value`. A list has a row per element, by `place`.

    A summary on edges has, for every item of an edge, its keys `pk` and `sk`, its `source` and `target`, and `value`.
    """

    rule: SummaryRule
    values: ir.Table
    decode: Callable[[Any], AttributeValue]
    is_list: bool = False


def summarized(rule: SummaryRule, tables: Tables, numbers: Numbers) -> Summarized:
    summary = _SUMMARIES.get(type(rule.summary))
    if summary is None:
        raise InvalidModel(
            f"{rule.node.name}.{rule.field} has the summary {rule.summary!r}, which batch jobs do not know"
        )
    graph = _Graph(rule, tables, numbers)
    return summary(graph) if rule.on is None else _on_edges(graph, summary)


class _Graph:
    """The nodes and edges of a summary."""

    def __init__(self, rule: SummaryRule, tables: Tables, numbers: Numbers) -> None:
        self.rule, self.tables, self.numbers = rule, tables, numbers
        self.engine: Engine = tables.engine
        ids = tables.table(rule.node)
        self.nodes = self.engine.stage(ids.select(id=ids.id, key=self._key(ids.id)))
        edges = self._both_ways() if rule.edge.symmetric else tables.table(rule.edge).select("source", "target")
        known = self.engine.stage(edges.semi_join(self.nodes, edges.source == self.nodes.id))
        self.edges = self.engine.stage(known.semi_join(self.nodes, known.target == self.nodes.id))

    def _both_ways(self) -> ir.Table:
        """Symmetric edges, each in both directions, even if only one of its two items is stored."""
        rows = self.tables.table(self.rule.edge)
        one = rows.select("source", "target", **key_parts(self.tables.layout, self.rule.edge, rows.sk))
        other = one.mutate(source=one.target, target=one.source)
        return ibis.union(one, other).distinct().select("source", "target")

    @property
    def _is_number(self) -> bool:
        return issubclass(self.rule.node.id_type, int | Decimal)

    def _key(self, id: Any) -> Any:
        """The key by which ids sort: numbers by their value, others by their text."""
        return self.numbers.parse(id) if self._is_number else id

    def pairs(self) -> ir.Table:
        """Pairs of neighbours `a` and `b` in both directions, by their sort keys. No node is its own neighbour."""
        edges = self.edges.filter(self.edges.source != self.edges.target)
        one = edges.select(a=self._key(edges.source), b=self._key(edges.target))
        return ibis.union(one, one.select(a=one.b, b=one.a)).distinct()

    def encoded(self, key: Any) -> AttributeValue:
        """The id with this sort key, as a stored value."""
        text = self.numbers.told(key) if self._is_number else key
        return encode(self.tables.id_of(self.rule.node, text))

    def count(self, table: ir.Table) -> int:
        (row,) = self.engine.fetch(table.aggregate(rows=table.count()))
        return int(row["rows"])


# --- ranks -------------------------------------------------------------------------------------


def _page_rank(graph: _Graph) -> Summarized:
    summary = graph.rule.summary
    assert isinstance(summary, PageRank)
    engine, nodes, edges = graph.engine, graph.nodes, graph.edges
    count = engine.size(nodes)
    degrees = edges.group_by("source").agg(degree=edges.count().cast("int64"))
    degrees = degrees.select(leaving=degrees.source, degree=degrees.degree)
    joined = edges.join(degrees, edges.source == degrees.leaving)
    shared = engine.stage(joined.select("source", "target", "degree"))
    first = ibis.literal(UNIT // max(count, 1), "int64")
    ranks = engine.stage(nodes.select(id=nodes.id, value=first, change=first))
    given = shared.join(ranks, shared.source == ranks.id)
    share = _quotient(given.value, given.degree)
    arrived = given.select(target=given.target, share=share)
    sums = arrived.group_by("target").agg(total=arrived.share.sum().cast("int64"))
    damping = round(summary.damping * _DAMPING)
    # Multiply in two parts, so that no product exceeds 64 bits.
    high, low = _quotient(sums.total, _DAMPING), sums.total % _DAMPING
    damped = sums.select(target=sums.target, damped=high * damping + _quotient(low * damping, _DAMPING))
    total = damped.aggregate(total=damped.damped.sum().cast("int64"))
    joined = ranks.left_join(damped, ranks.id == damped.target).cross_join(total)
    # The rank of nodes without outgoing edges, and what rounding lost, is shared equally by all nodes.
    base = _quotient(UNIT - joined.total.fill_null(0), max(count, 1))
    value = (joined.damped.fill_null(0) + base).cast("int64")
    after = joined.select(id=joined.id, value=value, change=(value - joined.value).abs().cast("int64"))
    change = ranks.aggregate(total=ranks.change.sum().cast("int64"))
    for done in range(0, summary.iterations, _LOOKED):
        engine.become(ranks, after, min(_LOOKED, summary.iterations - done))
        (row,) = engine.fetch(change)
        # The sum of no rows is null.
        if (row["total"] or 0) <= _SETTLED:
            break
    return Summarized(graph.rule, ranks.select("id", "value"), _rank)


def _quotient(left: Any, right: Any) -> Any:
    return (left // right).cast("int64")


def _rank(units: Any) -> AttributeValue:
    return {"N": canonical_number(Decimal(int(units)).scaleb(-15))}


# --- components --------------------------------------------------------------------------------


def _components(graph: _Graph) -> Summarized:
    """Alternates the large-star and small-star steps: each connects neighbours to the least of them.

    It ends when every component is a star around its least node.
    """
    engine = graph.engine
    pairs = graph.pairs()
    edges = engine.stage(pairs.filter(pairs.a > pairs.b))
    while not _are_stars(graph, edges):
        both = ibis.union(edges, edges.select(a=edges.b, b=edges.a))
        least = both.group_by(both.a).agg(m=both.b.min())
        least = least.select(at=least.a, m=ibis.least(least.a, least.m))
        joined = both.join(least, both.a == least["at"])
        larger = joined.filter(joined.b > joined.a)
        edges = engine.stage(larger.select(a=larger.b, b=larger.m).distinct())
        least = edges.group_by(edges.a).agg(m=edges.b.min())
        least = least.select(at=least.a, m=least.m)
        joined = edges.join(least, edges.a == least["at"])
        hung = joined.select(a=joined.a, b=joined.m)
        others = joined.filter(joined.b != joined.m).select(a=joined.b, b=joined.m)
        edges = engine.stage(ibis.union(hung, others).distinct())
    nodes = graph.nodes
    joined = nodes.left_join(edges, nodes.key == edges.a)
    values = joined.select(id=joined.id, value=joined.b.fill_null(joined.key))
    return Summarized(graph.rule, values, graph.encoded)


def _are_stars(graph: _Graph, edges: ir.Table) -> bool:
    if graph.engine.size(edges) != graph.count(edges.select("a").distinct()):
        return False
    hung = edges.select(c=edges.a)
    return graph.count(edges.semi_join(hung, edges.b == hung.c)) == 0


# --- common neighbours -------------------------------------------------------------------------


def _common_neighbours(graph: _Graph) -> Summarized:
    summary = graph.rule.summary
    assert isinstance(summary, CommonNeighbours)
    pairs = graph.engine.stage(graph.pairs())
    others = pairs.select(other=pairs.a, common=pairs.b)
    joined = pairs.join(others, pairs.b == others.common)
    joined = joined.filter(joined.a != joined.other)
    counted = joined.group_by(joined.a, joined.other).agg(shared=joined.count())
    order = [ibis.desc(counted.shared), counted.other]
    ranked = counted.mutate(place=ibis.row_number().over(group_by=counted.a, order_by=order))
    ranked = ranked.filter(ranked.place < summary.k)
    nodes = graph.nodes
    found = nodes.left_join(ranked, nodes.key == ranked.a)
    values = found.select(id=found.id, place=found.place, value=found.other)
    return Summarized(graph.rule, values, graph.encoded, is_list=True)


# --- on edges ----------------------------------------------------------------------------------


def _on_edges(graph: _Graph, summary: Callable[[_Graph], Summarized]) -> Summarized:
    """The summary of each edge whose two nodes exist.

    PageRank is the part of the rank of the source that the edge carries; a component is that of the source; and of
    common neighbours it is how many the two ends have.
    """
    rule, engine = graph.rule, graph.engine
    assert rule.on is not None
    rows = graph.tables.table(rule.on).select("pk", "sk", "source", "target")
    known = engine.stage(rows.semi_join(graph.nodes, rows.source == graph.nodes.id))
    rows = engine.stage(known.semi_join(graph.nodes, known.target == graph.nodes.id))
    if isinstance(rule.summary, CommonNeighbours):
        return Summarized(rule, _shared(graph, rows), lambda count: {"N": str(int(count))})
    found = summary(graph)
    values = found.values.select(node_id=found.values.id, value=found.values.value)
    if isinstance(rule.summary, PageRank):
        edges = graph.edges
        degrees = edges.group_by("source").agg(degree=edges.count().cast("int64"))
        shared = values.join(degrees, values.node_id == degrees.source)
        values = shared.select(node_id=shared.node_id, value=_quotient(shared.value, shared.degree))
    values = engine.stage(values)
    joined = rows.join(values, rows.source == values.node_id).drop("node_id")
    return Summarized(rule, joined, found.decode)


def _shared(graph: _Graph, rows: ir.Table) -> ir.Table:
    """Edges with the number of neighbours that both their ends have."""
    pairs = graph.engine.stage(graph.pairs())
    near, far = graph.nodes.select(near_id="id", near="key"), graph.nodes.select(far_id="id", far="key")
    known = rows.join(near, rows.source == near.near_id).drop("near_id")
    known = graph.engine.stage(known.join(far, known.target == far.far_id).drop("far_id"))
    one, other = pairs.select(one=pairs.a, common=pairs.b), pairs.select(other=pairs.a, shared=pairs.b)
    found = known.join(one, known.near == one.one)
    found = found.join(other, [found.far == other.other, found.common == other.shared])
    counted = found.group_by("pk", "sk").agg(value=found.count().cast("int64"))
    counted = counted.select(at=counted.pk, under=counted.sk, value=counted.value)
    joined = known.left_join(counted, [known.pk == counted["at"], known.sk == counted.under])
    return joined.select("pk", "sk", "source", "target", value=joined.value.fill_null(0))


_SUMMARIES: dict[type, Callable[[_Graph], Summarized]] = {
    PageRank: _page_rank,
    Components: _components,
    CommonNeighbours: _common_neighbours,
}
