"""Queries for edges, pairs, collections and fields, for programs that wait and for those that await.

Everything that a query can be asked is compared with plain lists. The requests are counted where it matters that
there are no more of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Child,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidCursor,
    InvalidKey,
    InvalidValue,
    Node,
    Unique,
    UnknownField,
    field,
)
from adjoin.plans.read import encode_cursor
from adjoin.requests import Put, Query
from adjoin.tables import Projection


class Student(Node):
    id: str
    name: Annotated[str, Indexed()] = ""


class Course(Node):
    id: str


class Enrolled(Edge[Student, Course]):
    points: Annotated[int, Indexed()] = 0
    grade: str = "A"


class Marked(Edge[Student, Course], key=("term",), order="points"):
    term: str = "x"
    points: int = 0


MODELS: list[Any] = [Student, Course, Enrolled, Marked]
NUMBERS = range(30)
HERE = [number for number in NUMBERS if number % 3 == 1]
"""The courses that are there; the edges to all others lead to nothing."""


def fill() -> list[Any]:
    nodes = [Student(id="ann", name="Ann"), *(Student(id=f"s{number:02}", name="S") for number in range(7))]
    courses = [Course(id=f"c{number:02}") for number in HERE]
    edges = [
        Enrolled(source="ann", target=f"c{number:02}", points=number, grade="AB"[number % 2]) for number in NUMBERS
    ]
    arriving = [Enrolled(source=f"s{number:02}", target="c01", points=100 + number) for number in range(9)]
    marked = [Marked(source="ann", target=f"c{number:02}", points=50 - number) for number in range(6)]
    return [*nodes, *courses, *edges, *arriving, *marked]


class Answers:
    """A query of either kind, asked in the same words."""

    def __init__(self, query: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.query, self._loop = query, loop

    def all(self) -> list[Any]:
        if self._loop is None:
            return list(self.query)

        async def collect() -> list[Any]:
            return [each async for each in self.query]

        return self._loop.run_until_complete(collect())

    def ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self.query, verb)(*args, **kwargs)
        return answer if self._loop is None else self._loop.run_until_complete(answer)

    def pages(self, limit: int) -> list[list[Any]]:
        found: list[list[Any]] = []
        token: str | None = None
        while True:
            page = self.ask("page", limit=limit, after=token)
            found.append(list(page))
            assert len(page) == len(page.items)
            token = page.next
            if token is None:
                return found


class Asked:
    """A graph of either kind."""

    def __init__(self, graph: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.graph, self.loop = graph, loop

    def __call__(self, make: Callable[[Any], Any]) -> Answers:
        return Answers(make(self.graph), self.loop)

    def requests(self, call: Callable[[], Any]) -> int:
        with self.graph.meter() as meter:
            call()
        return int(meter.requests)


@pytest.fixture(scope="module", params=["waits", "awaits"])
def g(request: pytest.FixtureRequest) -> Iterator[Asked]:
    if request.param == "waits":
        with Graph(":memory:", MODELS) as graph:
            graph.put_many(fill())
            yield Asked(graph, None)
        return
    loop = asyncio.new_event_loop()
    other = AsyncGraph(":memory:", MODELS)
    loop.run_until_complete(other.put_many(fill()))
    yield Asked(other, loop)
    loop.run_until_complete(other.close())
    loop.close()


def leaving(graph: Any) -> Any:
    return graph.out("ann", Enrolled)


def found(graph: Any) -> Any:
    return graph.find(Enrolled, field("points") < 100)


def points(answers: list[Any]) -> list[int]:
    return [each.points for each in answers]


EVERYTHING: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[Any]]] = {
    "out": (leaving, lambda edge: edge.points, list(NUMBERS)),
    "into": (lambda g: g.into("c01", Enrolled), lambda edge: edge.source, ["ann", *(f"s{n:02}" for n in range(9))]),
    "out by order": (lambda g: g.out("ann", Marked), lambda edge: edge.points, list(range(45, 51))),
    "find": (found, lambda edge: edge.points, list(NUMBERS)),
    "pairs": (lambda g: leaving(g).nodes(), lambda pair: (pair[0].points, pair[1].id), [(n, f"c{n:02}") for n in HERE]),
    "pairs into": (
        lambda g: g.into("c01", Enrolled).nodes(),
        lambda pair: (pair[0].source, pair[1].id),
        [(id, id) for id in ["ann", *(f"s{n:02}" for n in range(7))]],
    ),
    "found pairs": (
        lambda g: g.find(Enrolled, field("points") < 200).nodes(),
        lambda pair: (pair[0].points, pair[1].id),
        [*((n, "ann") for n in NUMBERS), *((100 + n, f"s{n:02}") for n in range(7))],
    ),
    "found pairs at the target": (
        lambda g: found(g).nodes("target"),
        lambda pair: (pair[0].points, pair[1].id),
        [(n, f"c{n:02}") for n in HERE],
    ),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_everything_in_order_whole_and_in_pages(g: Asked, name: str) -> None:
    make, shown, expected = EVERYTHING[name]
    query = g(make)
    assert list(map(shown, query.all())) == expected
    assert list(map(shown, query.ask("page"))) == expected
    assert query.ask("page").next is None
    assert query.ask("count") == len(expected)
    assert shown(query.ask("first")) == expected[0]
    backward = g(lambda graph: make(graph).reverse())
    assert list(map(shown, backward.all())) == expected[::-1]
    assert list(map(shown, g(lambda graph: make(graph).reverse().reverse()).all())) == expected
    for limit in (1, 2, 3, 4, 7, len(expected) - 1, len(expected), len(expected) + 1, 100):
        for asked, wanted in ((query, expected), (backward, expected[::-1])):
            pages = [list(map(shown, page)) for page in asked.pages(limit)]
            assert [each for page in pages for each in page] == wanted
            assert all(len(page) == limit for page in pages[:-1])
            assert len(pages[-1]) <= limit


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 6, 29, 30, 31, 1000])
def test_a_limit_is_one_for_all_ways_to_ask(g: Asked, name: str, most: int) -> None:
    make, shown, expected = EVERYTHING[name]
    query = g(lambda graph: make(graph).limit(most))
    assert list(map(shown, query.all())) == expected[:most]
    assert query.ask("count") == len(expected[:most])
    assert list(map(shown, query.ask("page"))) == expected[:most]
    assert shown(query.ask("first")) == expected[0]
    for limit in (1, 2, 4, 40):
        pages = [list(map(shown, page)) for page in query.pages(limit)]
        assert [each for page in pages for each in page] == expected[:most]
    assert list(map(shown, g(lambda graph: make(graph).limit(1000).limit(most)).all())) == expected[:most]


def test_pairs_behind_many_edges_that_lead_nowhere() -> None:
    """A page goes on behind the last pair that it shows, and not behind the last edge that it looked at."""
    with Graph(":memory:", MODELS) as graph:
        targets = [f"c{number:04}" for number in range(700)]
        here = [*targets[3:9], *targets[430:470], targets[-1]]
        graph.put_many([*(Enrolled(source="ann", target=id) for id in targets), *(Course(id=id) for id in here)])
        query = Answers(graph.out("ann", Enrolled).nodes(), None)
        assert [node.id for _, node in query.all()] == here
        for limit in (1, 2, 5, 6, 7, 45, 46, 47, 48):
            assert [node.id for page in query.pages(limit) for _, node in page] == here
            some = graph.out("ann", Enrolled).nodes().limit(limit)
            assert [node.id for _, node in some] == here[:limit]
            assert some.count() == len(here[:limit])
        # The first finds none, the second looks further; then one goes back to where the pair is.
        with graph.meter() as meter:
            assert [node.id for _, node in graph.out("ann", Enrolled).nodes().page(limit=2)] == here[:2]
        assert meter.requests == 5


def test_looking_for_pairs_takes_larger_and_larger_steps() -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many(Enrolled(source="ann", target=f"c{number:04}") for number in range(520))
        with graph.meter() as meter:
            assert graph.out("ann", Enrolled).nodes().first() is None
        # 1, 100, 400 and the last 19 edges, each with a look for the nodes: the third one takes four batches.
        assert meter.requests == 4 + 1 + 1 + 4 + 1


def test_looking_for_what_a_filter_lets_through_takes_larger_and_larger_steps() -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many(Enrolled(source="ann", target=f"c{number:04}") for number in range(520))
        with graph.meter() as meter:
            assert graph.out("ann", Enrolled).where(field("grade") == "Z").first() is None
        # 100 edges, 400, and the last 20.
        assert meter.requests == 3


def test_a_pair_costs_a_query_and_a_batch(g: Asked) -> None:
    pairs = g(lambda graph: graph.into("c01", Enrolled).nodes())
    assert g.requests(lambda: pairs.ask("page", limit=3)) == 2
    assert g.requests(lambda: pairs.all()) == 2
    assert g.requests(lambda: pairs.ask("count")) == 2
    assert g.requests(lambda: g(leaving).ask("count")) == 1
    assert g.requests(lambda: g(leaving).all()) == 1
    assert g.requests(lambda: g(lambda graph: leaving(graph).limit(5)).all()) == 1
    assert g.requests(lambda: g(lambda graph: leaving(graph).limit(5)).ask("count")) == 1


def test_consistent_pairs_read_their_nodes_so(g: Asked) -> None:
    def units(consistent: bool) -> float:
        query = g(lambda graph: graph.out("ann", Enrolled, consistent=consistent).nodes().limit(3))
        with g.graph.meter() as meter:
            query.all()
        return float(meter.rcu)

    assert units(True) == 2 * units(False)


def test_pairs_that_were_found_in_an_index_read_their_nodes_as_it_reads(g: Asked) -> None:
    # An index is never read consistently, so nobody is promised more of the nodes, or pays for it.
    with g.graph.meter() as meter:
        assert len(g(lambda graph: graph.find(Enrolled, field("points") == 1).nodes("target")).all()) == 1
    assert meter.rcu == 0.5 + 0.5


def test_pairs_are_counted_to_the_last_page() -> None:
    with Graph(":memory:", MODELS) as graph:
        # A page holds a megabyte, so there are two.
        edges = [Enrolled(source="ann", target=f"c{number}", grade="x" * 300_000) for number in range(5)]
        graph.put_many([*edges, *(Course(id=f"c{number}") for number in (0, 1, 4))])
        assert graph.out("ann", Enrolled).nodes().count() == 3


# --- narrowing ---------------------------------------------------------------------------------


def test_filters_add_up(g: Asked) -> None:
    odd = g(lambda graph: leaving(graph).where(field("grade") == "B"))
    assert points(odd.all()) == list(NUMBERS)[1::2]
    both = g(lambda graph: leaving(graph).where(field("grade") == "B").where(field("points") > 20))
    assert points(both.all()) == list(range(21, 30, 2))
    assert both.ask("count") == 5
    assert [points(page) for page in both.pages(2)] == [[21, 23], [25, 27], [29]]
    sought = g(lambda graph: found(graph).where(field("grade") == "B").where(field("points") > 20))
    assert points(sought.all()) == list(range(21, 30, 2))
    assert sought.ask("count") == 5


def test_ranges_and_beginnings(g: Asked) -> None:
    assert points(g(lambda graph: leaving(graph).between("c05", "c08")).all()) == [5, 6, 7, 8]
    assert points(g(lambda graph: leaving(graph).between(None, "c02")).all()) == [0, 1, 2]
    assert points(g(lambda graph: leaving(graph).between("c27", None)).all()) == [27, 28, 29]
    assert points(g(lambda graph: leaving(graph).begins_with("c1")).all()) == list(range(10, 20))
    assert g(lambda graph: leaving(graph).begins_with("c1")).ask("count") == 10
    by_order = g(lambda graph: graph.out("ann", Marked).between(46, 47))
    assert points(by_order.all()) == [46, 47]
    within = g(lambda graph: leaving(graph).within(target="c07"))
    assert points(within.all()) == [7]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "two ranges": (
        lambda g: leaving(g).between("a", "b").between("a", "b"),
        "a query takes one condition on the sort key, and between would be the second",
    ),
    "two beginnings": (
        lambda g: leaving(g).begins_with("a").begins_with("b"),
        "a query takes one condition on the sort key, and begins_with would be the second",
    ),
    "a range and a part": (lambda g: leaving(g).begins_with("a").within(target="b"), "within must come before between"),
    "a limit of none": (lambda g: leaving(g).limit(0), "limit must be at least 1, got 0"),
    "a limit below none": (lambda g: leaving(g).limit(-1), "limit must be at least 1, got -1"),
    "a limit too high": (lambda g: leaving(g).limit(2**31), "limit must be less than 2147483648, got 2147483648"),
    "a limit of words": (lambda g: leaving(g).limit("two"), "limit must be a whole number, got 'two'"),
    "half a limit": (lambda g: leaving(g).limit(1.5), "limit must be a whole number, got 1.5"),
    "a truth": (
        lambda g: bool(leaving(g)),
        "a query has no truth value, because it has not read anything; use first() or count()",
    ),
    "nodes of nodes": (
        lambda g: g.find(Student, field("name") == "S").nodes(),
        "nodes() is only for edges, and Student is a node",
    ),
    "a third end": (lambda g: found(g).nodes("middle"), 'end must be "source" or "target", got \'middle\''),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused(g: Asked, name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(InvalidValue, match=f"^{re.escape(message)}"):
        make(g.graph)


def test_the_highest_limit_is_one(g: Asked) -> None:
    assert g(lambda graph: leaving(graph).limit(2**31 - 1)).ask("count") == 30


@pytest.mark.parametrize(
    ("limit", "must"),
    [(0, "at least 1"), (-3, "at least 1"), (2**31, "less than 2147483648"), ("x", "a whole number")],
)
def test_a_page_has_at_least_one(g: Asked, limit: Any, must: str) -> None:
    with pytest.raises(InvalidValue, match=f"page limit must be {must}, got {limit!r}"):
        g(leaving).ask("page", limit=limit)


def test_fields_that_are_not_there(g: Asked) -> None:
    for make in (leaving, found):
        with pytest.raises(UnknownField, match="x"):
            make(g.graph).where(field("x") == 1)
    with pytest.raises(InvalidKey):
        g.graph.find(Enrolled, field("grade") == "A")


def test_what_a_partial_index_has_not_is_filtered_after_reading() -> None:
    keys_only = Projection("KEYS_ONLY")
    layout = AdjacencyList(
        reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=keys_only),
        indexed=Index("GSI3", "GSI3PK", "GSI3SK", projection=keys_only),
    )
    with Graph(":memory:", MODELS, layout) as graph:
        graph.put_many(fill())
        some = graph.into("c01", Enrolled).where(field("grade") == "A")
        assert points(list(some)) == points([edge for edge in graph.into("c01", Enrolled) if edge.grade == "A"])
        assert some.count() == len(list(some)) == 9
        first = some.page(limit=3)
        assert points([*first, *some.page(after=first.next)]) == points(list(some))
        with pytest.raises(InvalidCursor):
            graph.into("c01", Enrolled).page(after=first.next)
        with pytest.raises(InvalidValue, match="the index 'GSI3' does not project all attributes, and DynamoDB"):
            found(graph).where(field("grade") == "A")
        assert graph.into("c01", Enrolled).count() == 10
        assert points(list(graph.out("ann", Enrolled).where(field("grade") == "B"))) == list(NUMBERS)[1::2]
        assert points(list(found(graph))) == list(NUMBERS)


def test_how_queries_are_shown(g: Asked) -> None:
    kind = "Async" if g.loop is not None else ""
    shown: dict[Callable[[Any], Any], str] = {
        leaving: f"<{kind}EdgeQuery of Enrolled at 'STUDENT#ann' in the table; iterate it, or ask for .page()>",
        lambda graph: graph.into("c01", Enrolled).nodes(): (
            f"<{kind}PairQuery of Enrolled at 'COURSE#c01' in the index GSI1; iterate it, or ask for .page()>"
        ),
        lambda graph: graph.collection(Student.ref("ann")): (
            f"<{kind}CollectionQuery of everything at 'STUDENT#ann' in the table; iterate it, or ask for .page()>"
        ),
        found: f"<{kind}FindQuery of Enrolled by 'points' in the index GSI3; iterate it, or ask for .page()>",
        lambda graph: found(graph).nodes(): (
            f"<{kind}FindPairQuery of Enrolled by 'points' in the index GSI3; iterate it, or ask for .page()>"
        ),
    }
    for make, text in shown.items():
        assert repr(make(g.graph)) == text


# --- page tokens -------------------------------------------------------------------------------


def test_a_token_is_for_its_own_query(g: Asked) -> None:
    makes: list[Callable[[Any], Any]] = [
        leaving,
        lambda graph: leaving(graph).reverse(),
        lambda graph: leaving(graph).limit(20),
        lambda graph: leaving(graph).limit(21),
        lambda graph: leaving(graph).where(field("grade") == "A"),
        lambda graph: leaving(graph).begins_with("c"),
        lambda graph: graph.into("c01", Enrolled),
        lambda graph: graph.collection(Student.ref("ann")),
        found,
        lambda graph: found(graph).reverse(),
        lambda graph: found(graph).limit(20),
    ]
    tokens = [g(make).ask("page", limit=2).next for make in makes]
    assert len({*tokens}) == len(tokens)
    for one, make in enumerate(makes):
        for other, token in enumerate(tokens):
            if one == other:
                assert len(g(make).ask("page", limit=2, after=token)) == 2
            else:
                with pytest.raises(InvalidCursor):
                    g(make).ask("page", limit=2, after=token)


def test_a_token_is_for_its_own_table() -> None:
    with Graph(":memory:", MODELS) as one, Graph(":memory:", MODELS, AdjacencyList(table="another")) as other:
        for graph in (one, other):
            graph.put_many(fill())
        for make in (leaving, found):
            token = make(one).page(limit=2).next
            assert len(make(one).page(limit=2, after=token)) == 2
            with pytest.raises(InvalidCursor):
                make(other).page(limit=2, after=token)


def test_a_forged_token_leads_nowhere_else(g: Asked) -> None:
    """Without a secret anybody can make one; it must still name a place of its query."""
    layout = g.graph._layout
    query = g(leaving)
    identity, edge = query.query._identity, layout.items(Enrolled(source="bob", target="c01"))[0]
    forged = encode_cursor(layout.key_of(edge), 2, identity, b"")
    with pytest.raises(InvalidCursor, match="the page token points outside its query; start again"):
        query.ask("page", limit=2, after=forged)
    sought = g(found)
    for key in ({"PK": {"S": "x"}}, {"PK": {"S": "x"}, "SK": {"S": "x"}, "GSI3SK": {"S": "x"}, "more": {"S": "x"}}):
        forged = encode_cursor(key, 2, sought.query._identity, b"")
        with pytest.raises(InvalidCursor, match="the page token belongs to another query; start again"):
            sought.ask("page", limit=2, after=forged)


def test_what_a_limit_has_given_goes_along_with_the_token(g: Asked) -> None:
    for make in (leaving, found):
        query = Answers(make(g.graph).limit(7), g.loop)
        first = query.ask("page", limit=3)
        second = query.ask("page", limit=3, after=first.next)
        third = query.ask("page", limit=3, after=second.next)
        assert [points(list(page)) for page in (first, second, third)] == [[0, 1, 2], [3, 4, 5], [6]]
        assert third.next is None
        rest = query.ask("page", after=first.next)
        assert points(list(rest)) == [3, 4, 5, 6]
        assert rest.next is None
        assert query.ask("page", limit=7).next is None
    assert g(lambda graph: leaving(graph).begins_with("z")).ask("first") is None
    assert g(lambda graph: leaving(graph).begins_with("z")).all() == []


# --- collections -------------------------------------------------------------------------------


def collected(g: Asked, make: Callable[[Any], Any]) -> Any:
    query = make(g.graph)
    if g.loop is None:
        return query

    async def load() -> Any:
        return await query

    return g.loop.run_until_complete(load())


def test_a_collection_is_a_node_with_its_edges(g: Asked) -> None:
    everything = collected(g, lambda graph: graph.collection(Student.ref("ann")))
    assert everything.node == Student(id="ann", name="Ann")
    assert sorted(points(everything.edges)) == sorted([*NUMBERS, *range(45, 51)])
    assert everything.others == []
    same = collected(g, lambda graph: graph.collection(Student(id="ann")))
    assert (same.node, same.edges) == (everything.node, everything.edges)
    query = g(lambda graph: graph.collection(Student.ref("ann")))
    assert len(query.all()) == query.ask("count") == 37
    assert len(query.ask("page", limit=5)) == 5
    absent = collected(g, lambda graph: graph.collection(Student.ref("nobody")))
    assert (absent.node, absent.edges, absent.others) == (None, [], [])
    arriving = collected(g, lambda graph: graph.collection(Course.ref("c01"), direction="into"))
    assert sorted(edge.source for edge in arriving.edges) == sorted(["ann", "ann", *(f"s{n:02}" for n in range(9))])
    assert arriving.node is None
    some = collected(g, lambda graph: graph.collection(Student.ref("ann")).limit(4))
    assert (some.node is not None) + len(some.edges) == 4


def test_a_large_collection_is_read_to_its_end() -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put(Student(id="a"))
        graph.put_many(Enrolled(source="a", target=f"{number:03}", grade="x" * 10_000) for number in range(250))
        collection = graph.collection(Student.ref("a"))
        with graph.meter() as meter:
            assert len(collection.edges) == 250
            assert collection.node == Student(id="a")
        assert meter.requests == 3, "it is read once"
        assert len(graph.collection(Student.ref("a")).limit(120).edges) in (119, 120)
        graph.put_many(Course(id=id) for id in ("000", "001", "130", "249"))
        pairs = graph.out("a", Enrolled).nodes()
        assert [node.id for _, node in pairs] == ["000", "001", "130", "249"]
        assert (pairs.count(), pairs.limit(3).count(), pairs.reverse().count()) == (4, 3, 4)


def test_a_collection_of_what_arrives_has_the_node_where_it_lies_there() -> None:
    layout = AdjacencyList(node="{node}", edge="{target}", reverse=Index("Reverse", "SK"))
    with Graph(":memory:", [Student, Course, Enrolled], layout) as graph:
        graph.put_many([Course(id="c"), Student(id="c"), Enrolled(source="a", target="c")])
        for asked in (Course.ref("c"), Course(id="c")):
            collection = graph.collection(asked, direction="into")
            assert collection.node == Course(id="c")
            assert [edge.source for edge in collection.edges] == ["a"]


def test_what_no_class_explains_is_among_the_others() -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put(Enrolled(source="a", target="c"))
        graph._store.execute((Put("adjoin", {"PK": {"S": "STUDENT#a"}, "SK": {"S": "other"}, "n": {"N": "1"}}),))
        collection = graph.collection(Student.ref("a"))
        assert collection.others == [{"PK": "STUDENT#a", "SK": "other", "n": 1}]
        assert [edge.target for edge in collection.edges] == ["c"]
        assert collection.node is None


def test_the_first_is_all_that_is_asked_for() -> None:
    with Graph(":memory:", MODELS) as graph:
        (request,) = graph.explain(leaving(graph).first).requests
        assert isinstance(request, Query)
        assert request.limit == 1


class Account(Node):
    id: str


class Payment(Child[Account], key=("at",)):
    at: int
    receipt: Annotated[str | None, Unique()] = None


def test_children_are_part_of_a_collection_and_go_with_their_parent() -> None:
    with Graph(":memory:", [Account, Payment]) as graph:
        payments = [Payment(parent="a", at=at, receipt=f"r{at}") for at in range(3)]
        graph.put_many([Account(id="a"), *payments, Payment(parent="b", at=1)])
        assert graph.collection(Account.ref("a")).children == payments
        assert graph.delete(Account, "a")
        assert graph.collection(Account.ref("a")).children == []
        assert list(graph.scan(Payment)) == [Payment(parent="b", at=1)]
        # What they claimed is free.
        graph.put(Payment(parent="b", at=2, receipt="r1"))
