"""What walks cost: requests and rounds, budgets that stop them, caps, and what `explain` says beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from adjoin import AdjacencyList, Budget, BudgetExceeded, Edge, Graph, Index, InvalidCursor, Keys, Node, Reached, field
from tests.conftest import Open


class Person(Node):
    id: str
    age: int = 0
    note: str = ""


class Knows(Edge[Person, Person], order="since"):
    since: int = 0
    note: str = ""


FRIENDS = 250


@pytest.fixture(scope="module")
def star() -> Iterator[Graph]:
    """Ann knows 250 people, each of whom knows Zoe and Ann; so all are reached in two rounds."""
    with Graph(":memory:", [Person, Knows], cursor_secret="s") as g:
        g.put_many([Person(id="ann"), Person(id="zoe", age=1)])
        g.put_many(Person(id=f"f{number}", age=number) for number in range(FRIENDS))
        g.put_many(Knows(source="ann", target=f"f{number}", since=number) for number in range(FRIENDS))
        g.put_many(Knows(source=f"f{number}", target="zoe", since=number) for number in range(FRIENDS))
        g.put_many(Knows(source=f"f{number}", target="ann", since=number) for number in range(FRIENDS))
        yield g


def test_two_hops_are_one_query_and_one_for_each_node_of_the_frontier_in_two_rounds(star: Graph) -> None:
    for ask in (
        lambda: star.walk("ann").out(Knows).out(Knows).count(),
        lambda: star.walk("ann").out(Knows).out(Knows).group_count(),
        lambda: list(star.walk("ann").out(Knows).out(Knows).refs()),
        lambda: list(star.walk("ann").out(Knows).out(Knows).edges()),
        lambda: star.walk("ann").out(Knows).out(Knows).sum("since"),
    ):
        with star.meter() as m:
            assert ask()
        assert (m.requests, m.rounds) == (1 + FRIENDS, 2)


def test_the_start_is_in_the_result_if_a_path_leads_back(star: Graph) -> None:
    assert star.walk("ann").out(Knows).out(Knows).group_count() == {Person.ref("ann"): 250, Person.ref("zoe"): 250}


def test_a_node_is_read_once_in_batches_of_a_hundred(star: Graph) -> None:
    with star.meter() as m:
        assert len(star.walk("ann").out(Knows).nodes()) == FRIENDS
    assert (m.requests, m.rounds) == (1 + 3, 2)
    with star.meter() as m:
        assert len(star.walk("ann").out(Knows).out(Knows).nodes()) == 2 * FRIENDS
    assert (m.requests, m.rounds) == (1 + FRIENDS + 1, 3)
    # A filter on nodes has read them already.
    with star.meter() as m:
        assert len(star.walk("ann").out(Knows).where(field("age") >= 0).nodes()) == FRIENDS
    assert (m.requests, m.rounds) == (1 + 3, 2)


def test_edges_of_a_node_are_read_once_however_often_it_is_reached(star: Graph) -> None:
    with star.meter() as m:
        assert star.walk("ann").repeat(Knows, max=4).count() == 250 + 500 + 250 * 250 + 250 * 500
    # Ann, her friends, and Zoe.
    assert (m.requests, m.rounds) == (1 + FRIENDS + 1, 3)


def test_further_pages_are_read_side_by_side() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        text = "x" * 300_000
        g.put_many(Knows(source="a", target=id) for id in "bc")
        g.put_many(Knows(source=near, target=f"{near}{number}", note=text) for near in "bc" for number in range(8))
        with g.meter() as m:
            assert g.walk("a").out(Knows).out(Knows).count() == 16
        # 2.4 MB each are three pages.
        assert (m.requests, m.rounds) == (1 + 2 * 3, 1 + 3)


def test_a_limit_in_the_order_of_the_class_reads_no_more(star: Graph) -> None:
    with star.meter() as m:
        found = star.walk("ann").out(Knows).order_by("since", reverse=True).limit_per_node(2).edges()
        assert [edge.since for edge in found] == [249, 248]
    assert (m.requests, m.rcu) == (1, 0.5)
    with star.meter() as m:
        found = star.walk("ann").out(Knows).limit_per_node(2).edges()
        assert [edge.since for edge in found] == [0, 1]
    assert (m.requests, m.rcu) == (1, 0.5)
    # The order of the nodes' ages is in no key, so all are read.
    ages = star.walk("ann").out(Knows).order_by("age", reverse=True).limit_per_node(2).nodes()
    assert [node.age for node in ages] == [249, 248]


def test_pages_read_no_further_than_they_need(star: Graph) -> None:
    results = star.walk("ann").out(Knows).out(Knows).refs()
    with star.meter() as m:
        page = results.page(limit=10)
        assert len(page) == 10
    assert (m.requests, m.rounds) == (1 + 16, 2)
    with star.meter() as m:
        assert len(results.page(limit=10, after=page.next)) == 10
    assert (m.requests, m.rounds) == (1 + 16, 2)
    with star.meter() as m:
        assert star.walk("ann").out(Knows).out(Knows).first() == Person(id="ann")
    assert (m.requests, m.rounds) == (1 + 16 + 1, 3)


def test_a_token_belongs_to_its_walk(star: Graph) -> None:
    walk = star.walk("ann").out(Knows)
    token = walk.refs().page(limit=1).next
    assert token is not None
    others: list[Reached[Any]] = [
        walk.nodes(),
        walk.where(field("since") > 1).refs(),
        walk.distinct().refs(),
        walk.out(Knows).refs(),
        walk.limit(9).refs(),
        walk.order_by("since").refs(),
        star.walk("f1").out(Knows).refs(),
        star.walk("ann", cap=5).out(Knows).refs(),
    ]
    for other in others:
        with pytest.raises(InvalidCursor):
            other.page(limit=1, after=token)
    with pytest.raises(InvalidCursor):
        walk.refs().page(limit=1, after=token[:-1])
    tenant = star.for_tenant("t")
    with pytest.raises(InvalidCursor):
        tenant.walk("ann").out(Knows).refs().page(limit=1, after=token)
    assert len(walk.refs().page(after=token)) == FRIENDS - 1


def test_pages_of_a_graph_that_changes_continue_after_the_last_result() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many(Knows(source="a", target=id, since=number) for number, id in enumerate("bcdefg"))
        results = g.walk("a").out(Knows).refs()
        page = results.page(limit=3)
        assert [ref.id for ref in page] == ["b", "c", "d"]
        g.disconnect(Knows, "a", "b")
        assert [ref.id for ref in results.page(limit=9, after=page.next)] == ["e", "f", "g"]
        g.disconnect(Knows, "a", "d")
        assert [ref.id for ref in results.page(limit=9, after=page.next)] == ["e", "f", "g"]
        g.disconnect(Knows, "a", "c")
        with pytest.raises(InvalidCursor, match="no longer exist"):
            results.page(limit=9, after=page.next)


# --- budgets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 5, 100, 250])
def test_a_budget_of_requests_is_not_exceeded(star: Graph, most: int) -> None:
    with star.meter() as m:
        found = star.walk("ann", budget=Budget(requests=most)).out(Knows).out(Knows).refs()
        assert found.partial
        assert found.exceeded == "requests"
        assert len(found) == 2 * (most - 1)
    assert m.requests == most
    assert not star.walk("ann", budget=Budget(requests=251)).out(Knows).out(Knows).refs().partial


@pytest.mark.parametrize("most", [0.5, 1, 7.5, 50, 120])
def test_a_budget_of_units_is_not_exceeded(star: Graph, most: float) -> None:
    with star.meter() as m:
        found = star.walk("ann", budget=Budget(rcu=most)).out(Knows).out(Knows).nodes()
        assert found.partial
        assert found.exceeded == "rcu"
    # The first query reads 250 edges, which cost more than any other.
    first = 5.0
    assert m.rcu <= max(most, first)
    assert m.rcu > most - first
    with star.meter() as m:
        assert not star.walk("ann", Budget(rcu=1000)).out(Knows).out(Knows).nodes().partial
    # One query; then 16, four times as many as before, and the rest; and the two nodes.
    assert (m.requests, m.rounds) == (1 + FRIENDS + 1, 1 + 3 + 1)


def test_a_budget_of_units_stops_batch_gets_too(star: Graph) -> None:
    with star.meter() as m:
        found = star.walk("ann", budget=Budget(rcu=30)).out(Knows).nodes()
        assert found.partial
        assert 0 < len(found) < FRIENDS
    assert m.rcu <= 30


def test_requests_that_are_dearer_than_any_before_are_few() -> None:
    with Graph(":memory:", [Person, Knows]) as g:
        g.put_many(Knows(source="a", target=f"b{number}") for number in range(64))
        g.put_many(Knows(source=f"b{number}", target="c", note="x" * 80_000) for number in range(64))
        with g.meter() as m:
            assert g.walk("a", budget=Budget(rcu=20)).out(Knows).out(Knows).refs().partial
        # Sixteen queries of ten units were on their way when the first of them was answered.
        assert m.requests <= 1 + 16


def test_a_budget_of_nodes(star: Graph) -> None:
    found = star.walk("ann", budget=Budget(nodes=10)).out(Knows).out(Knows).refs()
    assert (found.exceeded, len(found)) == ("nodes", 0)
    found = star.walk("ann", budget=Budget(nodes=10)).out(Knows).refs()
    assert (found.exceeded, len(found)) == ("nodes", 10)
    read = star.walk("ann", budget=Budget(nodes=10)).out(Knows).nodes()
    assert (read.exceeded, len(read)) == ("nodes", 10)
    assert not star.walk("ann", budget=Budget(nodes=252)).out(Knows).out(Knows).refs().partial


def test_a_budget_of_seconds(star: Graph) -> None:
    ticks = count()
    view = star.for_tenant("late")
    view.put_many([Knows(source="a", target="b"), Knows(source="b", target="c"), Knows(source="c", target="d")])
    view._ticks = lambda: float(next(ticks))
    found = view.walk("a", budget=Budget(seconds=3)).out(Knows).out(Knows).out(Knows).refs()
    assert (found.exceeded, list(found)) == ("seconds", [])
    assert list(view.walk("a", budget=Budget(seconds=4)).out(Knows).out(Knows).out(Knows).refs()) == [Person.ref("d")]


def test_a_budget_may_raise_instead(star: Graph) -> None:
    for budget in (
        Budget(requests=3, on_exceeded="raise"),
        Budget(rcu=1, on_exceeded="raise"),
        Budget(nodes=3, on_exceeded="raise"),
    ):
        with pytest.raises(BudgetExceeded) as raised:
            list(star.walk("ann", budget=budget).out(Knows).out(Knows).refs())
        assert raised.value.limit in ("requests", "rcu", "nodes")
        assert getattr(budget, raised.value.limit) is not None
        # It says what was spent, also of what has no limit.
        assert " and 0 read units" not in str(raised.value)


def test_numbers_are_never_partial(star: Graph) -> None:
    walk = star.walk("ann", budget=Budget(requests=3)).out(Knows).out(Knows)
    with pytest.raises(BudgetExceeded, match="the count is not known") as raised:
        walk.count()
    assert (raised.value.limit, raised.value.found) == ("requests", 4)
    with pytest.raises(BudgetExceeded, match="the sum is not known"):
        walk.sum("since")
    assert walk.group_count().partial
    assert walk.top("since").partial
    assert walk.limit(2).count() == 2


def test_supernodes_are_capped(star: Graph) -> None:
    found = star.walk("ann", cap=7).out(Knows).out(Knows).refs()
    assert found.capped == (Person.ref("ann"),)
    assert not found.partial
    assert len(found) == 14
    with pytest.raises(BudgetExceeded, match=r"Person\('ann'\) has more than 7 edges") as raised:
        star.walk("ann", cap=7).out(Knows).count()
    assert (raised.value.limit, raised.value.found) == ("cap", 7)
    assert star.walk("ann", cap=FRIENDS).out(Knows).refs().capped == ()
    assert star.walk("ann", cap=None).out(Knows).count() == FRIENDS
    page = star.walk("ann", cap=7).out(Knows).page(limit=3)
    assert (page.capped, page.partial, len(page)) == ((Person.ref("ann"),), False, 3)
    # A limit asks for no more than it gets.
    assert star.walk("ann", cap=7).out(Knows).limit_per_node(5).refs().capped == ()
    assert star.walk("ann", cap=7).out(Knows).limit_per_node(7).refs().capped == ()
    more = star.walk("ann", cap=7).out(Knows).limit_per_node(8).refs()
    assert (more.capped, len(more)) == ((Person.ref("ann"),), 7)


def test_a_page_says_that_it_is_partial(star: Graph) -> None:
    page = star.walk("ann", budget=Budget(requests=3)).out(Knows).out(Knows).refs().page(limit=100)
    assert (page.partial, page.exceeded, page.next, len(page)) == (True, "requests", None, 4)


# --- explain -----------------------------------------------------------------------------------


def test_explain_shows_the_rounds_of_a_walk(open_graph: Open) -> None:
    g = open_graph([Person, Knows])
    walk = g.walk(Person.ref("ann")).out(Knows).both(Knows)
    explained = g.explain(walk.nodes())
    assert [len(requests) for requests in explained.rounds] == [1, 2, 1]
    assert str(explained).splitlines()[-1] == (
        "the same for each node that a step reaches: with 10 edges per node, at most 22 requests in 3 rounds, about "
        "60.5 RCU"
    )
    cost = explained.walk
    assert (cost.requests(50), cost.rounds, cost.rcu(50)) == (1 + 100 + 25, 3, 2 + 200 + 1250)
    assert [len(requests) for requests in g.explain(walk.refs()).rounds] == [1, 2]
    assert g.explain(walk.refs()).walk.rounds == 2
    assert g.explain(walk).walk == cost
    small = g.walk(Person.ref("ann"), budget=Budget(requests=5, rcu=3)).out(Knows).out(Knows).refs()
    assert str(g.explain(small)).endswith(
        "at most 5 requests in 2 rounds, about 3 RCU; its budget is 5 requests and 3 RCU"
    )
    read = g.explain(g.walk(Person.ref("ann")).out(Knows).where(field("age") > 3).out(Knows).refs())
    assert [len(requests) for requests in read.rounds] == [1, 1, 1]
    assert (read.walk.rounds, read.walk.requests()) == (3, 1 + 1 + 10)


def test_explain_counts_shards() -> None:
    keys = {Knows: Keys("k#{source.id}", "{target.id}", indexes={"GSI9": ("{target.id}#{shard}", "{since:06}")})}
    layout = AdjacencyList(reverse=None, indexes=[Index("GSI9", "P9", "S9", shards=4)], keys=keys)
    with Graph(":memory:", [Person, Knows], layout) as g:
        assert g.explain(g.walk("a").into(Knows).refs()).walk.queries == (4,)  # type: ignore[union-attr]


def test_a_walk_says_what_it_is_and_has_no_truth_value(star: Graph) -> None:
    walk: Any = star.walk("ann").out(Knows)
    assert "1 steps" in repr(walk)
    assert "refs" in repr(walk.refs())
    with pytest.raises(Exception, match="no truth value"):
        bool(walk)
