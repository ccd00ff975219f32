"""Ranks, components and common neighbours of random graphs are NetworkX's, and those of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjoin import Edge, Graph, Node
from adjoin.aggregates import CommonNeighbours, Components, PageRank
from adjoin.batch.engines import DuckDBEngine
from tests.shares import examples, stride
from tests.walks.graphs import LAYOUTS


class Page(Node):
    id: int
    rank: Annotated[float, PageRank("Links")] = 0.0
    group: Annotated[int | None, Components("Links")] = None
    alike: Annotated[list[int], CommonNeighbours("Links", k=3)] = []


class Links(Edge[Page, Page], key=("place",)):
    place: int = 0


class Person(Node):
    id: int
    rank: Annotated[float, PageRank("Friend")] = 0.0
    group: Annotated[int | None, Components("Friend")] = None
    alike: Annotated[list[int], CommonNeighbours("Friend", k=3)] = []


class Friend(Edge[Person, Person], symmetric=True): ...


NODES = range(8)
_pairs = st.tuples(st.integers(0, 9), st.integers(0, 9))
"""The nodes 8 and 9 do not exist."""


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    with DuckDBEngine(threads=1) as opened:
        yield opened


def _alike(graph: Any, node: int) -> list[int]:
    """The three nodes with the most common neighbours; of as many, those with the least ids."""
    plain = nx.Graph(graph)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    shared = {other: len(set(plain[node]) & set(plain[other])) for other in plain if other != node}
    return sorted((other for other in shared if shared[other]), key=lambda other: (-shared[other], other))[:3]


def _check(found: list[Any], graph: Any) -> None:
    ranks = nx.pagerank(graph, tol=1e-12, max_iter=1000)
    groups = {node: min(group) for group in nx.connected_components(nx.Graph(graph)) for node in group}
    assert {node.id: node.rank for node in found} == pytest.approx(ranks, abs=1e-7)
    assert {node.id: node.group for node in found} == groups
    assert {node.id: node.alike for node in found} == {node: _alike(graph, node) for node in graph}


@pytest.mark.simulation
@pytest.mark.parametrize("layout", sorted(LAYOUTS)[:: stride(2)])
@settings(max_examples=examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=st.sets(st.tuples(_pairs, st.integers(0, 1)), max_size=25))
def test_edges_with_a_direction(engine: DuckDBEngine, layout: str, edges: set[Any]) -> None:
    with Graph(":memory:", [Page, Links], LAYOUTS[layout]) as graph:
        graph.put_many([Page(id=id) for id in NODES])
        graph.put_many(Links(source=a, target=b, place=place) for (a, b), place in edges)
        graph.rebuild(engine=engine)
        other = nx.MultiDiGraph()
        other.add_nodes_from(NODES)
        other.add_edges_from((a, b) for (a, b), _ in edges if a in NODES and b in NODES)
        _check([node for node in graph.get_many(Page, NODES) if node], other)
        snapshot = graph.snapshot([Links], ["rank"])
        for ref, rank in snapshot.pagerank(Links).items():
            node = snapshot.node(ref)
            assert node is not None
            assert node.rank == pytest.approx(rank, abs=1e-7)


@pytest.mark.simulation
@pytest.mark.parametrize("layout", sorted(LAYOUTS)[:: -stride(2)])
@settings(max_examples=examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=st.sets(_pairs, max_size=20))
def test_edges_without_a_direction(engine: DuckDBEngine, layout: str, edges: set[Any]) -> None:
    with Graph(":memory:", [Person, Friend], LAYOUTS[layout]) as graph:
        graph.put_many([Person(id=id) for id in NODES])
        graph.put_many(Friend(source=a, target=b) for a, b in edges)
        graph.rebuild(engine=engine)
        other = nx.Graph()
        other.add_nodes_from(NODES)
        other.add_edges_from((a, b) for a, b in edges if a in NODES and b in NODES)
        _check([node for node in graph.get_many(Person, NODES) if node], other.to_directed())
