"""Recommendations and common neighbours on random graphs are those that NetworkX, or a plain loop, finds."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, log
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Budget, Edge, Graph, InvalidModel, Node, UnknownField
from tests.shares import examples
from tests.walks.graphs import (
    PEOPLE,
    PLACES,
    PRODUCTS,
    Bought,
    Drawn,
    Friend,
    Knows,
    Met,
    Person,
    Place,
    Product,
    graphs,
    place,
)


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    store, layout = request.param
    with place(store, layout, tmp_path_factory.mktemp("recommend")) as found:
        yield found


_person = st.sampled_from(PEOPLE)


def scored(found: Any) -> dict[str, Any]:
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    return {each.node.id: each.score for each in found}


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(isclose(one[id], other[id]) for id in one)


@given(graph=graphs(), a=_person)
@settings(max_examples=examples(8))
def test_people_by_common_friends(opened: Place, graph: Drawn, a: str) -> None:
    network = nx.Graph()
    network.add_nodes_from(PEOPLE)
    friends = {pair: weight for pair, weight in graph.friends.items() if pair[0] != pair[1]}
    network.add_weighted_edges_from((one, other, weight) for (one, other), weight in friends.items())
    others = [b for b in PEOPLE if b != a and not network.has_edge(a, b) and [*nx.common_neighbors(network, a, b)]]
    pairs = [(a, b) for b in others]
    common = {b: len([*nx.common_neighbors(network, a, b)]) for b in others}
    jaccard = {b: score for _, b, score in nx.jaccard_coefficient(network, pairs)}
    adamic = {b: score for _, b, score in nx.adamic_adar_index(network, pairs)}
    weighted = {
        b: sum(network[a][z]["weight"] * network[z][b]["weight"] for z in nx.common_neighbors(network, a, b))
        for b in others
    }
    kept = Drawn(graph.knows, graph.met, friends, graph.bought)
    for g in opened.opened(kept.entities):
        found = g.recommend(a, Friend)
        assert scored(found) == common
        for each in found:
            assert {node.id for node in each.through} == {*nx.common_neighbors(network, a, each.node.id)}
        assert alike(scored(g.recommend(a, Friend, score="jaccard")), jaccard)
        assert alike(scored(g.recommend(a, Friend, score="adamic_adar")), adamic)
        assert scored(g.recommend(a, Friend, weight="weight")) == weighted
        best = g.recommend(Person.ref(a), Friend, limit=2)
        assert [each.score for each in best] == sorted(common.values(), reverse=True)[:2]
        left = g.recommend(a, Friend, exclude=[Person.ref(b) for b in others[:1]])
        assert scored(left).keys() == {*others[1:]}


@given(graph=graphs(), a=_person, direction=st.sampled_from(["out", "into", "both"]))
@settings(max_examples=10)
def test_people_along_directed_and_parallel_edges(opened: Place, graph: Drawn, a: str, direction: str) -> None:
    near: dict[str, dict[str, int]] = {id: {} for id in PEOPLE}
    for one, edge, other in graph.arcs(Met, direction):
        if one != other:
            near[one.id][other.id] = near[one.id].get(other.id, 0) + edge.weight
    common: dict[str, int] = {}
    weighted: dict[str, int] = {}
    for z, first in near[a].items():
        for b, second in near[z].items():
            if b != a and b not in near[a]:
                common[b] = common.get(b, 0) + 1
                weighted[b] = weighted.get(b, 0) + first * second
    kept = Drawn(met={key: weight for key, weight in graph.met.items() if key[0] != key[1]})
    for g in opened.opened(kept.entities):
        assert scored(g.recommend(a, Met, direction=direction)) == common
        assert scored(g.recommend(a, Met, direction=direction, weight="weight")) == weighted


@given(graph=graphs(), a=_person, x=st.sampled_from(PRODUCTS))
@settings(max_examples=examples(8))
def test_products(opened: Place, graph: Drawn, a: str, x: str) -> None:
    buyers = {product: {one for one, other in graph.bought if other == product} for product in PRODUCTS}
    baskets = {person: {other for one, other in graph.bought if one == person} for person in PEOPLE}
    also = {y: len(buyers[x] & buyers[y]) for y in PRODUCTS if y != x and buyers[x] & buyers[y]}
    also_jaccard = {y: number / len(buyers[x] | buyers[y]) for y, number in also.items()}
    also_adamic = {y: sum(1 / log(len(baskets[q])) for q in buyers[x] & buyers[y]) for y in also}
    alike_people = {q: baskets[a] & baskets[q] for q in PEOPLE if q != a and baskets[a] & baskets[q]}
    offered: dict[str, int] = {}
    offered_jaccard: dict[str, float] = {}
    for q, shared in alike_people.items():
        for y in baskets[q] - baskets[a]:
            offered[y] = offered.get(y, 0) + len(shared)
            offered_jaccard[y] = offered_jaccard.get(y, 0) + len(shared) / len(baskets[a] | baskets[q])
    for g in opened.opened(graph.entities):
        found = g.recommend(Product.ref(x), Bought)
        assert scored(found) == also
        for each in found:
            assert {node.id for node in each.through} == buyers[x] & buyers[each.node.id]
        assert alike(scored(g.recommend(Product.ref(x), Bought, score="jaccard")), also_jaccard)
        assert alike(scored(g.recommend(Product.ref(x), Bought, score="adamic_adar")), also_adamic)
        assert scored(g.recommend(a, Bought)) == {q: len(shared) for q, shared in alike_people.items()}
        mine = g.recommend(a, Bought, to=Product)
        assert scored(mine) == offered
        for each in mine:
            assert {node.id for node in each.through} == {q for q in alike_people if each.node.id in baskets[q]}
        assert alike(scored(g.recommend(a, Bought, to=Product, score="jaccard")), offered_jaccard)


@given(graph=graphs(), a=_person, b=_person, x=st.sampled_from(PRODUCTS), y=st.sampled_from(PRODUCTS))
@settings(max_examples=10)
def test_common(opened: Place, graph: Drawn, a: str, b: str, x: str, y: str) -> None:
    known = {id: {far for near, far in graph.knows if near == id} for id in PEOPLE}
    knowing = {id: {near for near, far in graph.knows if far == id} for id in PEOPLE}
    bought = {id: {far for near, far in graph.bought if near == id} for id in PEOPLE}
    buyers = {id: {near for near, far in graph.bought if far == id} for id in PRODUCTS}
    for g in opened.opened(graph.entities):
        assert {node.id for node in g.common(a, Person.ref(b), Knows)} == known[a] & known[b]
        assert {node.id for node in g.common(a, b, Knows, direction="into")} == knowing[a] & knowing[b]
        assert {node.id for node in g.common(a, b, Bought)} == bought[a] & bought[b]
        assert {node.id for node in g.common(Product.ref(x), Product.ref(y), Bought)} == buyers[x] & buyers[y]


# --- what they cost ----------------------------------------------------------------------------


class Fan(Node):
    id: str


class Pal(Edge[Fan, Fan], symmetric=True):
    pass


class Likes(Edge[Fan, Fan]):
    pass


def test_costs() -> None:
    with Graph(":memory:", [Fan, Pal]) as g:
        g.put_many(Fan(id=id) for id in "abcdefg")
        g.put_many(Pal(source=one, target=other) for one, other in ("ab", "ac", "ad", "be", "ce", "df", "dg"))
        with g.meter() as m:
            (first, *_) = g.recommend("a", Pal, limit=1)
        assert (first.node.id, first.score, [node.id for node in first.through]) == ("e", 2, ["b", "c"])
        # Friends, friends of three friends, one batch get.
        assert (m.requests, m.rounds) == (1 + 3 + 1, 3)
        with g.meter() as m:
            assert len(g.recommend("a", Pal, score="jaccard")) == 3
        # And the friends of the three that may be recommended.
        assert (m.requests, m.rounds) == (1 + 3 + 3 + 1, 4)
        with g.meter() as m:
            assert [node.id for node in g.common("b", "c", Pal)] == ["a", "e"]
        assert (m.requests, m.rounds) == (3, 2)
        assert len(g.recommend("a", Pal, reasons=1)[0].through) == 1


class Club(Node):
    id: str


class Follows(Edge[Fan, Fan | Club]):
    pass


def test_what_nodes_of_two_classes_share() -> None:
    with Graph(":memory:", [Fan, Club, Follows]) as g:
        g.put_many([*(Fan(id=id) for id in "abc"), Club(id="x")])
        for near, far in (("a", Club.ref("x")), ("b", Club.ref("x")), ("a", Fan.ref("c")), ("c", Fan.ref("b"))):
            g.put(Follows(source=near, target=far))
        with g.meter() as m:
            assert g.common(Fan.ref("c"), Club.ref("x"), Follows, direction="both") == [Fan(id="b"), Fan(id="a")]
        assert m.requests == 2 + 1 + 1
        assert g.common(Fan.ref("a"), Fan.ref("b"), Follows) == [Club(id="x")]


def test_nodes_that_do_not_exist_are_not_recommended() -> None:
    with Graph(":memory:", [Fan, Pal]) as g:
        g.put_many(Fan(id=id) for id in "abcf")
        g.put_many(Pal(source=one, target=other) for one, other in ("ab", "ac", "be", "ce", "cf"))
        (only,) = g.recommend("a", Pal, limit=1)
        assert only.node.id == "f"


def test_budgets_and_caps_are_said() -> None:
    with Graph(":memory:", [Fan, Pal]) as g:
        g.put_many(Fan(id=id) for id in "abcdef")
        g.put_many(Pal(source=one, target=other) for one, other in ("ab", "ac", "ad", "be", "ce", "df"))
        found = g.recommend("a", Pal, budget=Budget(requests=3))
        assert (found.partial, found.exceeded) == (True, "requests")
        assert g.recommend("a", Pal, cap=2).capped == (Fan.ref("a"),)
        assert g.common("a", "e", Pal, cap=2).capped == (Fan.ref("a"),)


def test_wrong_arguments() -> None:
    with Graph(":memory:", [Person, Product, Knows, Bought, Fan, Likes]) as g, g.meter() as m:
        for call, words in (
            (lambda: g.recommend("a", Knows, score="best"), "score must be one of 'common'"),
            (lambda: g.recommend("a", Knows, score="jaccard", weight="weight"), "takes no weight"),
            (lambda: g.recommend("a", Knows, limit=0), "limit must be at least 1"),
            (lambda: g.recommend("a", Knows, reasons=0), "reasons must be at least 1"),
            (lambda: g.recommend("a", Knows, direction="up"), "direction must be"),
            (lambda: g.recommend("a", Person), "recommend takes classes of edges"),
            (lambda: g.recommend("a", Knows, to=Product), "no Knows leads to a Product"),
            (lambda: g.recommend(Product.ref("x"), Knows), "no Knows"),
            (lambda: g.recommend("a", Knows, exclude=["b"]), "does not say of which class"),
            (lambda: g.common("a", "b", Person), "common takes classes of edges"),
            (lambda: g.common("a", Product.ref("x"), Knows), "no Knows"),
        ):
            with pytest.raises(Exception, match=words):
                call()
        with pytest.raises(UnknownField, match="weight"):
            g.recommend("a", Knows, weight="wait")
        assert m.requests == 0
    with Graph(":memory:", [Person, Product, Bought], AdjacencyList(reverse=None)) as g, g.meter() as m:
        with pytest.raises(InvalidModel, match="no reverse index"):
            g.recommend("a", Bought)
        assert m.requests == 0
        assert {product.id for product in g.common("a", "b", Bought)} == set()
    with Graph(":memory:", [Person, Product, Bought]) as g:
        explained = g.explain(g.recommend, "a", Bought, to=Product, weight="amount", score="adamic_adar")
        assert [len(requests) for requests in explained.rounds[:3]] == [1, 1, 1]
    with Graph(":memory:", [Fan, Likes], AdjacencyList(reverse=None)) as g:
        assert g.recommend("a", Likes) == []
        with pytest.raises(InvalidModel, match="no reverse index"):
            g.recommend("a", Likes, score="jaccard")
        assert g.explain(g.recommend, "a", Likes).rounds
