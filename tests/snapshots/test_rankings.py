"""What a snapshot computes about nodes is what NetworkX, or a plain loop, computes, also after followed changes."""

from __future__ import annotations

import sys
from collections import Counter
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import Graph, InvalidValue, MissingExtra, NotInSnapshot, Ref
from tests.shares import examples
from tests.snapshots.graphs import (
    EDGES,
    FIELDS,
    IDS,
    Bought,
    Change,
    Friend,
    Knows,
    Likes,
    Met,
    Note,
    Person,
    Thing,
    applied,
    changes,
    contents,
    layouts,
    opened,
)
from tests.walks.graphs import LAYOUTS

VIAS: list[list[Any]] = [[Knows], [Friend], [Knows, Met], [Bought], [Likes, Friend], [Note]]
_via, _direction = st.sampled_from(VIAS), st.sampled_from(["out", "into", "both"])


def arcs(graph: Graph, via: list[Any], direction: str) -> list[tuple[Ref[Any], Ref[Any], Any]]:
    """Every edge as it is followed in a direction, with itself; a loop once."""
    found: list[Any] = []
    a: Any
    b: Any
    for model in via:
        for edge in graph.scan(model):
            if model is Note:
                a, b = Person.ref(edge.parent), Note.ref((edge.parent, edge.at))
            else:
                a = Person.ref(edge.source)
                b = (
                    edge.target
                    if isinstance(edge.target, Ref)
                    else (Thing if model is Bought else Person).ref(edge.target)
                )
            is_twofold = direction == "both" or model is Friend
            found += [(a, b, edge)] if is_twofold or direction == "out" else []
            found += [(b, a, edge)] if (is_twofold and a != b) or (not is_twofold and direction == "into") else []
    return found


def existing(graph: Graph, via: list[Any]) -> list[Ref[Any]]:
    """The nodes that exist, of the classes that the edges join."""
    classes: dict[Any, list[Any]] = {
        Knows: [Person],
        Met: [Person],
        Friend: [Person],
        Bought: [Person, Thing],
        Likes: [Person, Thing],
        Note: [Person, Note],
    }
    models: set[Any] = {each for model in via for each in classes[model]}
    nodes: list[Any] = [node for model in models for node in graph.scan(model)]
    return [Note.ref((node.parent, node.at)) if isinstance(node, Note) else type(node).ref(node.id) for node in nodes]


def networked(graph: Graph, via: list[Any], direction: str, weight: str | None = None) -> Any:
    found = nx.MultiDiGraph()
    found.add_nodes_from(existing(graph, via))
    for near, far, edge in arcs(graph, via, direction):
        if near in found and far in found:
            found.add_edge(near, far, weight=1 if weight is None else getattr(edge, weight))
    return found


@settings(max_examples=examples(20))
@given(layout=layouts, items=contents, history=changes, via=_via, direction=_direction)
def test_rankings_are_those_of_networkx(
    layout: str, items: list[Any], history: list[Change], via: list[Any], direction: str
) -> None:
    with opened(layout, items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        applied(graph, history)
        snapshot.follow(once=True)
        other = networked(graph, via, direction)
        ranks = snapshot.pagerank(via, direction=direction)
        wanted = nx.pagerank(other, tol=1e-13, max_iter=1000) if len(other) else {}
        assert dict(ranks) == pytest.approx(wanted, abs=1e-8)
        assert set(ranks) == set(existing(graph, via))
        other = networked(graph, via, "out")
        for strong, find in ((False, nx.weakly_connected_components), (True, nx.strongly_connected_components)):
            groups = snapshot.components(via, strong=strong)
            assert sorted(map(sorted, _texts(groups))) == sorted(map(sorted, _texts(find(other))))
            assert groups.sizes == [len(group) for group in groups] == sorted(groups.sizes, reverse=True)
            assert all(set(groups.of(ref)) == set(group) for group in groups for ref in group)
        simple = nx.Graph(other)
        simple.remove_edges_from(list(nx.selfloop_edges(simple)))
        assert dict(snapshot.triangles(via)) == nx.triangles(simple)
        together = snapshot.communities(via)
        assert sorted(map(str, other)) == sorted(str(ref) for group in together for ref in group)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parallel_edges_join_strong_components_as_one_does(layout: str) -> None:
    # Of two entries in one place of a matrix, SciPy's search would never end.
    people = [Person(id=id) for id in ("a", "b", "zz")]
    pairs = [("a", "b", 1), ("a", "b", 2), ("b", "a", 1), ("b", "zz", 1), ("b", "zz", 2), ("b", "b", 1), ("b", "b", 2)]
    with opened(layout, [*people, *(Met(source=a, target=b, year=year) for a, b, year in pairs)]) as graph:
        snapshot = graph.snapshot([Met])
        groups = snapshot.components(Met, strong=True)
        assert [sorted(ref.id for ref in group) for group in groups] == [["a", "b"], ["zz"]]
        assert [snapshot.degree(person, Met) for person in people] == [2, 5, 0]


def _texts(groups: Any) -> list[list[str]]:
    return [[str(ref) for ref in group] for group in groups]


@settings(max_examples=examples(10))
@given(layout=layouts, items=contents, direction=_direction)
def test_weights_are_those_of_networkx(layout: str, items: list[Any], direction: str) -> None:
    with opened(layout, items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        other = networked(graph, [Knows, Met], direction, "weight")
        wanted = nx.pagerank(other, tol=1e-13, max_iter=1000) if len(other) else {}
        assert dict(snapshot.pagerank([Knows, Met], direction=direction, weight="weight")) == pytest.approx(
            wanted, abs=1e-8
        )


@settings(max_examples=examples(20))
@given(
    layout=layouts,
    items=contents,
    history=changes,
    via=st.sampled_from(VIAS[:-1]),
    direction=_direction,
    hops=st.integers(1, 3),
)
def test_what_is_near_is_what_a_loop_finds(
    layout: str, items: list[Any], history: list[Change], via: list[Any], direction: str, hops: int
) -> None:
    with opened(layout, items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        applied(graph, history)
        snapshot.follow(once=True)
        found = arcs(graph, via, direction)
        ages: dict[Any, Any] = {Person.ref(person.id): person.age for person in graph.scan(Person)}
        prices: dict[Any, Any] = {Thing.ref(thing.id): thing.price for thing in graph.scan(Thing)}
        degrees = Counter(near for near, _, _ in found)
        for id in IDS:
            start = Person.ref(id)
            levels = [{start}]
            for _ in range(hops):
                levels.append({far for near, far, _ in found if near in levels[-1]} - set().union(*levels))
            inner, whole = set().union(*levels[:-1]), set().union(*levels) - {start}
            assert snapshot.degree(start, via, direction=direction) == degrees[start]
            assert snapshot.k_hop_count(start, via, hops, direction=direction) == len(whole)
            asked: dict[str, Any] = {"via": via, "hops": hops, "direction": direction}
            if any(model in via for model in (Knows, Friend, Likes)) or direction != "out":
                assert snapshot.k_hop_sum(start, "age", **asked) == sum(ages.get(ref) or 0 for ref in whole)
            if via == [Bought]:
                assert snapshot.k_hop_sum(start, "cost", **asked) == sum(
                    edge.cost for near, _, edge in found if near in inner
                )
                if direction != "into":
                    assert snapshot.k_hop_sum(start, "price", **asked) == sum(prices.get(ref, 0) for ref in whole)
                assert snapshot.k_hop_sum(start, "rate", **asked) == pytest.approx(
                    sum(edge.rate for near, _, edge in found if near in inner)
                )
            else:
                wanted = sum(edge.weight or 0 for near, _, edge in found if near in inner)
                assert snapshot.k_hop_sum(start, "weight", on="edges", **asked) == wanted
        scores = snapshot.degrees(via, direction=direction)
        assert dict(scores) == {ref: degrees[ref] for ref in existing(graph, via)}
        counts = snapshot.k_hop_counts(via, hops, direction=direction)
        assert all(counts[ref] == snapshot.k_hop_count(ref, via, hops, direction=direction) for ref in counts)


@settings(max_examples=examples(10))
@given(layout=layouts, items=contents, number=st.integers(1, 12))
def test_top_is_the_greatest_first(layout: str, items: list[Any], number: int) -> None:
    with opened(layout, items) as graph:
        scores = graph.snapshot(EDGES, FIELDS).degrees([Knows, Friend])
        pairs = sorted(scores.items(), key=lambda pair: (-pair[1], graph._layout.node_text(_kind(graph), pair[0].id)))
        assert scores.top(number) == pairs[:number]


def _kind(graph: Graph) -> Any:
    return graph._layout.schema.node(Person)


@settings(max_examples=examples(10))
@given(layout=layouts, items=contents, via=_via, direction=_direction)
def test_other_libraries_get_the_same_edges(layout: str, items: list[Any], via: list[Any], direction: str) -> None:
    with opened(layout, items) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        refs, there = snapshot.refs(), set(existing(graph, via))
        wanted = Counter((near, far) for near, far, _ in arcs(graph, via, direction) if near in there and far in there)
        matrix = snapshot.to_scipy(via, direction=direction).tocoo()
        found: Counter[Any] = Counter()
        for row, column, value in zip(matrix.row, matrix.col, matrix.data, strict=True):
            found[refs[row], refs[column]] += int(value)
        assert found == wanted
        wanted = Counter((near, far) for near, far, _ in arcs(graph, via, "out") if near in there and far in there)
        made = snapshot.to_igraph(via)
        vertices = made.vs["ref"]
        found = Counter()
        for edge in made.es:
            found[vertices[edge.source], vertices[edge.target]] += 1
        assert found == wanted
        assert set(made.es["weight"]) <= {1}
        assert set(vertices) == there
        network = snapshot.to_networkx(via)
        assert Counter(network.edges()) == wanted
        assert set(network) == there
        nodes, edges = snapshot.to_arrow(via)
        keys = nodes["key"].to_pylist()
        assert len(keys) == len(refs)
        assert edges.num_rows == sum(snapshot.edge_count(model) for model in via)
        assert all(keys[each] for each in edges["source"].to_pylist() + edges["target"].to_pylist())


@pytest.mark.parametrize(("call", "library"), [("to_networkx", "networkx"), ("to_arrow", "pyarrow")])
def test_a_library_that_is_missing_is_named_with_its_extra(
    call: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with opened("adjacency list", [Person(id="a")]) as graph:
        snapshot = graph.snapshot([Knows])
        extra = call.removeprefix("to_")
        with pytest.raises(
            MissingExtra, match=rf"{call} needs {library}; install it with: pip install 'adjoin\[{extra}\]'"
        ):
            getattr(snapshot, call)(Knows)


def test_arrow_has_the_values() -> None:
    items = [Thing(id=8, price=Decimal("2.5")), Bought(source="a", target=8, day=1, cost=Decimal("0.125"), rate=0.25)]
    with opened("adjacency list", [Person(id="a", age=3), Person(id="b"), *items]) as graph:
        nodes, edges = graph.snapshot([Bought], ["age", "price", "cost", "rate"]).to_arrow([Bought])
        assert nodes["Person.age"].to_pylist() == [3, None, None]
        assert nodes["Thing.price"].to_pylist() == [None, None, Decimal("2.5")]
        assert (edges["cost"].to_pylist(), edges["rate"].to_pylist()) == ([Decimal("0.125")], [0.25])
        network = graph.snapshot([Bought], ["age", "cost"]).to_networkx([Bought])
        assert network.nodes[Person.ref("a")] == {"age": 3}
        assert [fields for *_, fields in network.edges(data=True)] == [{"kind": "Bought", "cost": Decimal("0.125")}]


def test_scipy_and_arrow_share_the_arrays() -> None:
    with opened("adjacency list", [Person(id="a"), Person(id="b"), Knows(source="a", target="b")]) as graph:
        snapshot = graph.snapshot([Knows], ["Knows.weight"])
        side = snapshot._relations[0].out
        matrix = snapshot.to_scipy(Knows)
        assert np.shares_memory(matrix.indices, side.far)
        assert np.shares_memory(matrix.indptr, side.bounds)
        _, edges = snapshot.to_arrow(Knows)
        assert edges["target"].chunk(0).buffers()[1].address == side.far.ctypes.data
        assert (
            edges["weight"].chunk(0).buffers()[1].address == snapshot._relations[0].columns["weight"].values.ctypes.data
        )


def test_arguments_are_checked() -> None:
    with opened("adjacency list", [Person(id="a"), Knows(source="a", target="b", weight=-1)]) as graph:
        snapshot = graph.snapshot([Knows], ["Knows.weight"])
        with pytest.raises(NotInSnapshot, match="does not hold Met; it holds Knows"):
            snapshot.pagerank([Met])
        with pytest.raises(NotInSnapshot, match=r"does not hold Person.age; it holds no fields of Person"):
            snapshot.k_hop_sum("a", "age", Knows)
        with pytest.raises(InvalidValue, match="hops must be"):
            snapshot.k_hop_count("a", Knows, 0)
        with pytest.raises(InvalidValue, match="damping must be between 0 and 1, got 1"):
            snapshot.pagerank(Knows, damping=1)
        graph.put(Person(id="b"))
        snapshot.follow(once=True)
        with pytest.raises(InvalidValue, match="weight is negative somewhere"):
            snapshot.pagerank(Knows, weight="weight")
        with pytest.raises(KeyError):
            snapshot.degrees(Knows)[Person.ref("c")]
        with pytest.raises(InvalidValue, match="is in no group"):
            snapshot.components(Knows).of(Person.ref("c"))
        assert snapshot.k_hop_count("nobody", Knows) == snapshot.degree("nobody", Knows) == 0


@pytest.mark.parametrize("via", [Knows, [Knows], (Knows,)])
def test_via_takes_a_class_or_several(via: Any) -> None:
    with opened("adjacency list", [Person(id="a"), Person(id="b"), Knows(source="a", target="b")]) as graph:
        snapshot = graph.snapshot([Knows])
        assert snapshot.degree("a", via) == snapshot.k_hop_count(Person.ref("a"), via) == 1
