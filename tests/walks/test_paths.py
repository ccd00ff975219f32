"""Shortest paths and reachable nodes on random graphs are those that NetworkX, or a plain loop, finds."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Budget, BudgetExceeded, Edge, Graph, InvalidValue, Node, UnknownField, field
from tests.conftest import Open
from tests.shares import examples
from tests.walks.graphs import (
    PEOPLE,
    PLACES,
    Bought,
    Drawn,
    Friend,
    Knows,
    Met,
    Path_,
    Person,
    Place,
    Product,
    counted,
    followed,
    graphs,
    place,
)

VIA: list[Any] = [Knows, Met, Friend]


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    store, layout = request.param
    with place(store, layout, tmp_path_factory.mktemp("paths")) as found:
        yield found


_person = st.sampled_from(PEOPLE)
_direction = st.sampled_from(["out", "into", "both"])


def networked(graph: Drawn, direction: str, models: list[Any] = VIA) -> Any:
    found = nx.MultiDiGraph()
    found.add_nodes_from(Person.ref(id) for id in PEOPLE)
    for model in models:
        for near, edge, far in graph.arcs(model, direction):
            found.add_edge(near, far, weight=getattr(edge, "weight", 1))
    return found


def simple(graph: Drawn, direction: str, a: str, b: str, most: int) -> list[Path_]:
    """All paths of at most so many edges that come to no node twice, by a plain loop."""
    paths: list[Path_] = [((Person.ref(a),), ())]
    found: list[Path_] = []
    for _ in range(most + 1):
        found += [path for path in paths if path[0][-1] == Person.ref(b)]
        paths = [path for path in paths if path[0][-1] != Person.ref(b)]
        paths = [path for path in followed(graph, paths, VIA, direction) if len({*path[0]}) == len(path[0])]
    return found


@given(graph=graphs(), a=_person, b=_person, direction=_direction, most=st.integers(1, 4))
@settings(max_examples=examples(8))
def test_shortest_paths(opened: Place, graph: Drawn, a: str, b: str, direction: str, most: int) -> None:
    network = networked(graph, direction)
    start, end = Person.ref(a), Person.ref(b)
    is_joined = nx.has_path(network, start, end)
    length = nx.shortest_path_length(network, start, end) if is_joined else None
    near = simple(graph, direction, a, b, most)
    least = min((len(edges) for _, edges in near), default=None)
    for g in opened.opened(graph.entities):
        found = g.shortest_path(start, b, via=VIA, direction=direction, max_depth=None)
        assert (found and len(found.edges)) == length
        if found is not None:
            assert (found.refs[0], found.refs[-1]) == (start, end)
            assert all(network.has_edge(*pair) for pair in zip(found.refs, found.refs[1:], strict=False))
        every = g.shortest_paths(a, b, via=VIA, direction=direction, max_depth=most)
        expected = [path for path in near if len(path[1]) == least]
        assert counted([(path.refs, path.edges) for path in every]) == counted(expected)
        way = g.can_reach(a, b, via=VIA, direction=direction)
        assert bool(way) == is_joined
        assert way is None or len(way.edges) == length


@given(graph=graphs(), a=_person, b=_person, direction=_direction, most=st.integers(1, 4))
@settings(max_examples=examples(8))
def test_weighted_paths(opened: Place, graph: Drawn, a: str, b: str, direction: str, most: int) -> None:
    network = networked(graph, direction)
    start, end = Person.ref(a), Person.ref(b)
    least = nx.dijkstra_path_length(network, start, end) if nx.has_path(network, start, end) else None
    near = simple(graph, direction, a, b, most)
    weights = [sum(edge.weight for edge in edges) for _, edges in near]
    for g in opened.opened(graph.entities):
        found = g.shortest_path(a, b, via=VIA, direction=direction, weight="weight", max_depth=None)
        assert (found and found.weight) == least
        if found is not None:
            assert sum(edge.weight for edge in found.edges) == least
        every = g.shortest_paths(a, b, via=VIA, direction=direction, weight="weight", max_depth=most)
        expected = [path for path, weight in zip(near, weights, strict=True) if weight == min(weights)]
        assert counted([(path.refs, path.edges) for path in every]) == counted(expected)
        unbound = g.shortest_paths(a, b, via=VIA, direction=direction, weight="weight", max_depth=None)
        if least is not None and a != b:
            nodes = {tuple(each) for each in nx.all_shortest_paths(network, start, end, weight="weight")}
            assert {path.refs for path in unbound} == nodes


@given(graph=graphs(), a=_person, direction=_direction, most=st.none() | st.integers(1, 3), age=st.integers(0, 6))
@settings(max_examples=examples(8))
def test_reachable(opened: Place, graph: Drawn, a: str, direction: str, most: int | None, age: int) -> None:
    network = networked(graph, direction)
    start = Person.ref(a)
    depths = nx.single_source_shortest_path_length(network, start, cutoff=most)
    young = network.subgraph([ref for ref in network if PEOPLE.index(ref.id) < age or ref == start])
    light = nx.DiGraph((near, far) for near, far, weight in network.edges(data="weight") if weight >= 3)
    light.add_node(start)
    for g in opened.opened(graph.entities):
        found = g.reachable(start, via=VIA, direction=direction, max_depth=most)
        assert {Person.ref(node.id): found.depth(node) for node in found} | {start: 0} == dict(depths)
        assert [found.depth(node) for node in found] == sorted(found.depth(node) for node in found)
        for node in found:
            path = found.path(node)
            assert len(path.edges) == found.depth(Person.ref(node.id))
            assert (path.nodes[-1], path.refs[0]) == (node, start)
            assert all(network.has_edge(*pair) for pair in zip(path.refs, path.refs[1:], strict=False))
        some = g.reachable(a, via=VIA, direction=direction, where=field("age") < age)
        assert {Person.ref(node.id) for node in some} == nx.descendants(young, start)
        heavy = g.reachable(a, via=VIA, direction=direction, where=field("weight") >= 3)
        assert {Person.ref(node.id) for node in heavy} == nx.descendants(light, start)


@given(graph=graphs(), a=_person, b=_person)
@settings(max_examples=8)
def test_across_classes(opened: Place, graph: Drawn, a: str, b: str) -> None:
    network = nx.Graph()
    network.add_nodes_from(Person.ref(id) for id in PEOPLE)
    network.add_edges_from((near, far) for near, _, far in graph.arcs(Bought, "out"))
    for g in opened.opened(graph.entities):
        found = g.shortest_path(Person.ref(a), Person.ref(b), via=Bought, direction="both")
        ends = Person.ref(a), Person.ref(b)
        length = nx.shortest_path_length(network, *ends) if nx.has_path(network, *ends) else None
        # A path between six people over products has at most ten edges, and the search allows six.
        assert (found and len(found.edges)) == (length if length is None or length <= 6 else None)
        sold = g.reachable(Person.ref(a), via=[Bought])
        assert {type(node) for node in sold} <= {Product}


# --- what searches cost ------------------------------------------------------------------------


class City(Node):
    id: str
    is_open: bool = True


class Road(Edge[City, City], key=("lane",)):
    lane: int = 0
    length: Decimal | None = Decimal(1)


def roads(g: Any, *ways: str) -> None:
    g.put_many(City(id=id) for id in {*"".join(ways)})
    g.put_many(Road(source=way[0], target=way[1]) for way in ways)


def test_a_search_goes_from_both_ends(open_graph: Open) -> None:
    g = open_graph([City, Road])
    # From a to b over m; a has 30 other neighbours, and each of these 30 more.
    roads(g, "am", "mb")
    g.put_many(Road(source="a", target=f"x{number}") for number in range(30))
    g.put_many(Road(source=f"x{number}", target=f"y{number}{other}") for number in range(30) for other in range(30))
    with g.meter() as m:
        found = g.shortest_path("a", "b", via=[Road])
    assert [node.id for node in found.nodes] == ["a", "m", "b"]
    # One query from each end, and a batch get of the three nodes.
    assert (m.requests, m.rounds) == (3, 3)


def test_sides_of_the_same_size_take_turns(open_graph: Open) -> None:
    g = open_graph([City, Road])
    # The only way from a to b leads over a node with more edges than are read.
    roads(g, "ah", "hb")
    g.put_many(Road(source="h", target=f"x{number}") for number in range(30))
    with g.meter() as m:
        found = g.shortest_path("a", "b", via=[Road], cap=5)
    assert [node.id for node in found.nodes] == ["a", "h", "b"]
    assert (m.requests, m.rounds) == (3, 3)


def test_a_layout_without_a_reverse_index_is_searched_from_the_beginning() -> None:
    with Graph(":memory:", [City, Road], AdjacencyList(reverse=None)) as g:
        roads(g, "am", "mb", "bc")
        with g.meter() as m:
            found = g.shortest_path("a", "c", via=[Road])
        assert found is not None
        assert [ref.id for ref in found.refs] == ["a", "m", "b", "c"]
        assert (m.requests, m.rounds) == (4, 4)


def test_weighted_searches_read_ahead() -> None:
    with Graph(":memory:", [City, Road]) as g:
        g.put_many(City(id=f"c{number}") for number in range(22))
        g.put_many(Road(source="c0", target=f"c{number}", length=Decimal(number)) for number in range(1, 21))
        g.put_many(Road(source=f"c{number}", target="c21", length=Decimal(40 - 2 * number)) for number in range(1, 21))
        with g.meter() as m:
            found = g.shortest_path("c0", "c21", via=[Road], weight="length")
        assert found is not None
        assert found.weight == Decimal(20)
        # The start; sixteen neighbours; the other four; three nodes.
        assert (m.requests, m.rounds) == (1 + 16 + 4 + 1, 4)


def test_nodes_that_do_not_exist_are_on_no_path(open_graph: Open) -> None:
    g = open_graph([City, Road])
    roads(g, "ab", "bd", "ae", "ef", "fd")
    assert [ref.id for ref in g.shortest_path("a", "d", via=[Road]).refs] == ["a", "b", "d"]
    g.put_many([Road(source="a", target="ghost"), Road(source="ghost", target="d")])
    assert len(g.shortest_paths("a", "d", via=[Road])) == 1
    g.disconnect(Road, "a", "b", lane=0)
    found = g.shortest_path("a", "d", via=[Road])
    assert [ref.id for ref in found.refs] == ["a", "e", "f", "d"]
    assert {node.id for node in g.reachable("a", via=[Road])} == {"e", "f", "d"}
    assert g.shortest_path("a", "nobody", via=[Road]) is None
    assert g.can_reach("ghost", "d", via=[Road]) is None


def test_nodes_between_can_be_kept_out(open_graph: Open) -> None:
    g = open_graph([City, Road])
    roads(g, "ab", "bd", "ae", "ef", "fd")
    g.update(City, "b", is_open=False)
    g.update(City, "a", is_open=False)
    for weight in (None, "length"):
        found = g.shortest_path("a", "d", via=[Road], where=field("is_open") == True, weight=weight)  # noqa: E712
        assert [ref.id for ref in found.refs] == ["a", "e", "f", "d"]
        assert g.shortest_path("a", "d", via=[Road], where=field("length") > 1, weight=weight) is None


def test_what_is_not_known_is_not_said() -> None:
    with Graph(":memory:", [City, Road]) as g:
        roads(g, "ab", "bc", "cd", "de")
        with pytest.raises(BudgetExceeded, match=r"the shortest path is not known: .* everything; allow more$"):
            g.shortest_path("a", "e", via=[Road], budget=Budget(requests=2))
        with pytest.raises(BudgetExceeded, match="whether there is a path is not known"):
            g.can_reach("a", "e", via=[Road], budget=Budget(requests=2))
        with pytest.raises(BudgetExceeded, match="the shortest path is not known"):
            g.shortest_path("a", "e", via=[Road], weight="length", budget=Budget(requests=2))
        found = g.reachable("a", via=[Road], budget=Budget(requests=3))
        assert (found.partial, found.exceeded) == (True, "requests")
        g.put_many(Road(source="a", target=id) for id in "xyz")
        assert g.reachable("a", via=[Road], cap=2).capped == (City.ref("a"),)
        assert g.can_reach("a", "e", via=[Road], cap=2)
        with pytest.raises(BudgetExceeded, match="has more than 2 edges"):
            g.can_reach("a", "nowhere", via=[Road], cap=2)


def test_wrong_arguments() -> None:
    with Graph(":memory:", [Person, Product, Knows, Bought, City, Road]) as g:
        with g.meter() as m:
            for call, words in (
                (lambda: g.shortest_path("a", None, via=[Knows]), "needs a node where it ends"),
                (lambda: g.shortest_path("a", "b", via=[]), "via needs at least one class"),
                (lambda: g.shortest_path("a", "b", via=[Person]), "via takes classes of edges"),
                (lambda: g.shortest_path("a", "b", via=Knows, max_depth=0), "max_depth must be at least 1"),
                (lambda: g.shortest_path("a", "b", via=Knows, direction="up"), "direction must be"),
                (lambda: g.shortest_path(Person.ref("a"), Product.ref("b"), via=Knows), "leads to a Product"),
                (lambda: g.shortest_path(Product.ref("a"), Person.ref("b"), via=Bought), "no Bought"),
                (lambda: g.reachable(Product.ref("a"), via=[Knows, Bought]), "no Knows"),
                (lambda: g.reachable(["a"], via=[Knows]), "does not fit"),
            ):
                with pytest.raises(Exception, match=words):
                    call()
            with pytest.raises(UnknownField, match="length"):
                g.shortest_path("a", "b", via=[Road], weight="lenght")
        assert m.requests == 0
        g.put_many([Road(source="a", target="b", length=None), Road(source="c", target="b", length=Decimal(-1))])
        with pytest.raises(InvalidValue, match="the weight length of Road from 'a' to 'b' is None"):
            g.shortest_path("a", "b", via=[Road], weight="length")
        with pytest.raises(InvalidValue, match="a weight must be a number from 0 on"):
            g.shortest_path("c", "b", via=[Road], weight="length")
        with pytest.raises(InvalidValue, match="a node or a ref is needed"):
            g.reachable("a", via=[Road]).path("b")  # type: ignore[arg-type]


def test_explain() -> None:
    with Graph(":memory:", [City, Road]) as g:
        for shown in (
            g.explain(g.shortest_path, "a", "b", via=[Road]),
            g.explain(g.shortest_path, "a", "b", via=[Road], weight="length"),
            g.explain(g.reachable, "a", via=[Road]),
        ):
            assert shown.partitions[0] == "CITY#a"
