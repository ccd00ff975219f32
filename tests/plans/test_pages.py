"""Pages and their tokens: exact, bound to their query, and signed when there is a secret."""

from __future__ import annotations

import datetime as dt
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import AdjacencyList, Edge, Graph, Index, InvalidCursor, Keys, field
from adjoin.plans.read import page
from adjoin.tables import Projection
from tests.models import SCHOOL, Attendance, Course, Enrollment, Student


@pytest.fixture(scope="module")
def g() -> Graph:
    graph = Graph(":memory:", SCHOOL)
    graph.put_many(
        Enrollment(source="ann", target=f"{number:03}", grade="ABC"[number % 3], points=number) for number in range(100)
    )
    graph.put_many(
        Attendance(source="ann", target=f"{number:03}", day=dt.date(2024, 1, 1 + number % 28)) for number in range(50)
    )
    graph.put_many(Enrollment(source="bob", target=f"{number:03}") for number in range(3))
    return graph


QUERIES: list[Callable[[Graph], Any]] = [
    lambda g: g.out("ann", Enrollment),
    lambda g: g.out("ann", Enrollment).reverse(),
    lambda g: g.out("ann", Enrollment).where(field("grade") == "A"),
    lambda g: g.out("ann", Enrollment).where(field("grade") == "A").reverse(),
    lambda g: g.out("ann", Enrollment).between("010", "050"),
    lambda g: g.out("ann", Attendance),
    lambda g: g.into("001", Enrollment),
    lambda g: g.collection(Student.ref("ann")),
]


@pytest.mark.parametrize("number", range(len(QUERIES)))
@given(limit=st.integers(1, 120))
def test_pages_together_are_everything_in_order(g: Graph, number: int, limit: int) -> None:
    query = QUERIES[number](g)
    everything = list(query)
    found: list[Any] = []
    token = None
    while True:
        page = query.page(limit=limit, after=token)
        assert len(page) <= limit
        assert len(page) == limit or page.next is None
        found += page
        token = page.next
        if token is None:
            break
    assert found == everything


@pytest.mark.parametrize("limit", [1, 7, 33, 100])
def test_limit_counts_after_the_filter(g: Graph, limit: int) -> None:
    query = g.out("ann", Enrollment).where(field("points") >= 67)
    assert [edge.points for edge in query.limit(limit)] == list(range(67, 100))[:limit]


def test_a_plain_page_reads_no_more_than_it_shows(g: Graph) -> None:
    with g.meter() as meter:
        g.out("ann", Enrollment).page(limit=10)
    assert (meter.requests, meter.rcu) == (1, 0.5)


def test_a_token_works_for_its_own_query_only(g: Graph) -> None:
    queries = [make(g) for make in QUERIES] + [g.out("bob", Enrollment)]
    for one in queries:
        token = one.page(limit=2).next
        if token is None:
            continue
        for other in queries:
            if other is not one:
                with pytest.raises(InvalidCursor):
                    other.page(limit=2, after=token)


@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_changed_token_is_refused(g: Graph, position: int, bit: int) -> None:
    token = g.out("ann", Enrollment).page(limit=2).next
    assert token is not None
    raw = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[position % len(raw)] ^= 1 << bit
    with pytest.raises(InvalidCursor):
        g.out("ann", Enrollment).page(after=urlsafe_b64encode(bytes(raw)).decode().rstrip("="))


@given(st.text(max_size=40))
def test_nonsense_is_no_token(g: Graph, nonsense: str) -> None:
    with pytest.raises(InvalidCursor):
        g.out("ann", Enrollment).page(after=nonsense)


def test_a_secret_signs_tokens() -> None:
    graphs = [Graph(":memory:", SCHOOL, cursor_secret=secret) for secret in (None, "one", b"two", b"x" * 100)]
    for graph in graphs:
        graph.put_many(Enrollment(source="a", target=str(number)) for number in range(5))
    tokens = [graph.out("a", Enrollment).page(limit=2).next for graph in graphs]
    assert len(set(tokens)) == len(tokens)
    for graph, own in zip(graphs, tokens, strict=True):
        for token in tokens:
            if token == own:
                assert len(graph.out("a", Enrollment).page(after=token)) == 3
            else:
                with pytest.raises(InvalidCursor):
                    graph.out("a", Enrollment).page(after=token)


def test_a_page_ends_at_one_megabyte() -> None:
    graph = Graph(":memory:", SCHOOL)
    graph.put_many(Enrollment(source="a", target=f"{number:03}", grade="x" * 10_000) for number in range(250))
    with graph.meter() as meter:
        assert len(list(graph.out("a", Enrollment))) == 250
    assert meter.requests == 3
    with graph.meter() as meter:
        assert graph.out("a", Enrollment).count() == 250
    assert meter.requests == 3


def test_a_token_survives_the_deletion_of_its_edge() -> None:
    graph = Graph(":memory:", SCHOOL)
    graph.put(Course(id="x"))
    graph.put_many(Enrollment(source="a", target=str(number)) for number in range(5))
    page = graph.out("a", Enrollment).page(limit=2)
    graph.disconnect(Enrollment, "a", "1")
    graph.disconnect(Enrollment, "a", "2")
    assert [edge.target for edge in graph.out("a", Enrollment).page(after=page.next)] == ["3", "4"]


def test_a_page_of_edges_continues_after_the_entry_of_an_edge_that_has_changed_since() -> None:
    class Ranked(Edge[Student, Course]):
        rank: int

    keys = {Ranked: Keys(indexes={"ByRank": ("{target}", "{rank:03}#{source.id}")})}
    index = Index("ByRank", "P", "S", projection=Projection("KEYS_ONLY"))
    with Graph(":memory:", [Student, Course, Ranked], AdjacencyList(reverse=None, indexes=[index], keys=keys)) as g:
        g.put_many(Ranked(source=str(at), target="c", rank=at) for at in range(6))
        plan = page(g._layout, g.into("c", Ranked)._question, 2, None)
        items = plan.send(g._store.execute(next(plan)))
        g.update(Ranked, "1", "c", rank=9)
        with pytest.raises(StopIteration) as ended:
            plan.send(g._store.execute(items))
        first = ended.value.value
        assert [each.rank for each in first.entities] == [0, 9]
        rest = g._run(page(g._layout, g.into("c", Ranked)._question, 9, first.last))
        assert [each.source for each in rest.entities] == ["2", "3", "4", "5", "1"]
