"""Ranks, components and common neighbours, against plain Python over the same edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Annotated, Any

import numpy as np
import pytest

from adjoin import Edge, Graph, Node
from adjoin.aggregates import CommonNeighbours, Components, PageRank
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.job import Job
from adjoin.batch.sources import dump_of
from adjoin.values import decode


class Page(Node):
    id: int
    rank: Annotated[Decimal, PageRank("Links", damping=0.75, iterations=12)] = Decimal(0)
    group: Annotated[int | None, Components("Links")] = None
    alike: Annotated[list[int], CommonNeighbours("Links", k=3)] = []


class Links(Edge[Page, Page]):
    pass


class Ranked(Node):
    id: int
    rank: Annotated[float, PageRank("Leads")] = 0.0


class Leads(Edge[Ranked, Ranked]):
    pass


NODES = range(-5, 35)
GONE = 99


@pytest.fixture(scope="module")
def edges() -> set[tuple[int, int]]:
    random = Random(5)
    some = {(random.choice(NODES), random.choice(NODES)) for _ in range(40)}
    return some | {(1, 1), (2, GONE), (GONE, 3)}


@pytest.fixture(scope="module")
def summaries(edges: set[tuple[int, int]]) -> dict[str, dict[int, Any]]:
    with Graph(":memory:", [Page, Links]) as graph, DuckDBEngine(threads=1) as engine:
        graph.put_many([Page(id=id) for id in NODES])
        graph.put_many([Links(source=source, target=target) for source, target in edges])
        layout = graph._layout
        job = Job(engine, dump_of(graph._store, layout.table), layout, layout.rules)
        return {
            rule.field: {each.id: decode(each.computed) for each in job.summary(rule) if each.computed is not None}
            for rule in job.summaries
        }


def known(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {edge for edge in edges if GONE not in edge}


def test_ranks(edges: set[tuple[int, int]], summaries: dict[str, dict[int, Any]]) -> None:
    leaving = Counter(source for source, _ in known(edges))
    ranks = {id: Fraction(1, len(NODES)) for id in NODES}
    for _ in range(12):
        arrived = dict.fromkeys(NODES, Fraction(0))
        for source, target in known(edges):
            arrived[target] += Fraction(3, 4) * ranks[source] / leaving[source]
        rest = (1 - sum(arrived.values(), Fraction(0))) / len(NODES)
        ranks = {id: rank + rest for id, rank in arrived.items()}
    found = summaries["rank"]
    assert found.keys() == ranks.keys()
    assert max(abs(Fraction(found[id]) - ranks[id]) for id in NODES) < Fraction(1, 10**13)


@pytest.mark.parametrize("edges", [{(1, 0), (0, 1), (2, 0)}, {(leaf, 0) for leaf in range(1, 9)}, {(5, 5)}, set()])
def test_ranks_are_computed_until_they_are_settled(edges: set[tuple[int, int]]) -> None:
    nodes = range(9)
    damping = 0.85
    leaving = [sum(edge[0] == id for edge in edges) for id in nodes]
    # A rank is the base, and what arrives: solved as linear equations.
    matrix = np.eye(9)
    for source in nodes:
        for target in nodes:
            share = ((source, target) in edges) / leaving[source] if leaving[source] else 1 / 9
            matrix[target, source] -= damping * share
    expected = np.linalg.solve(matrix, np.full(9, (1 - damping) / 9))
    with Graph(":memory:", [Ranked, Leads]) as graph:
        graph.put_many([Ranked(id=id) for id in nodes])
        graph.put_many([Leads(source=source, target=target) for source, target in edges])
        graph.rebuild(threads=1)
        found = [node.rank for node in graph.get_many(Ranked, nodes) if node]
    assert found == pytest.approx(expected, abs=1e-7)


def test_components(edges: set[tuple[int, int]], summaries: dict[str, dict[int, Any]]) -> None:
    group = {id: id for id in NODES}
    for _ in NODES:
        for source, target in known(edges):
            group[source] = group[target] = min(group[source], group[target])
    assert summaries["group"] == group


def test_common_neighbours(edges: set[tuple[int, int]], summaries: dict[str, dict[int, Any]]) -> None:
    near: dict[int, set[int]] = defaultdict(set)
    for source, target in known(edges):
        if source != target:
            near[source].add(target)
            near[target].add(source)
    expected = {}
    for id in NODES:
        shared = {other: len(near[id] & near[other]) for other in NODES if other != id}
        best = sorted((other for other in shared if shared[other]), key=lambda other: (-shared[other], other))
        if best:
            expected[id] = best[:3]
    assert summaries["alike"] == expected
