"""Scans in pages, on every store, and against a model: each gives what a table has, once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, InvalidCursor, Keys, Node, WholeTable, field
from adjoin.plans.read import encode_cursor
from adjoin.requests import Put, Scan
from adjoin.stores.sqlite import SQLiteStore, reads
from adjoin.values import Item
from tests.conftest import Open
from tests.faults import FaultyStore, Interrupted
from tests.models import SCHOOL, Course, Enrollment, Exam, Friendship, Student
from tests.scanned import LAYOUTS, RECORDS, entities, explained, keyed, of, put_plain, shown
from tests.servers import processes
from tests.servers.open import Stores


def put_items(g: Any, some: list[Any]) -> None:
    """Puts entities item by item, for stores without transactions."""
    store, layout = g._store, g._layout
    for entity in some:
        store.execute([Put(layout.table, item) for item in layout.items(entity)])


# --- pages -------------------------------------------------------------------------------------


def paged(query: Any, limit: int | None) -> list[list[Any]]:
    found, after = [], None
    while True:
        page = query.page(limit=limit, after=after)
        found.append(page.items)
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("limit", [None, 1, 2, 7, 100])
def test_pages_hold_everything_once(open_graph: Open, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 400)
    g, some = open_graph(cursor_secret="s"), entities()
    g.put_many(some)
    for query, expected in ((g.scan(), shown(some)), (g.scan(Friendship), of(Friendship, some))):
        pages = paged(query, limit)
        assert shown(itertools.chain.from_iterable(pages)) == expected
        if limit is not None:
            assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
            assert len(pages[-1]) <= limit
    limited = paged(g.scan().limit(9), limit)
    assert len(list(itertools.chain.from_iterable(limited))) == 9
    # A page may have another size than the one before.
    first = g.scan().page(limit=5)
    rest = g.scan().page(limit=1000, after=first.next)
    assert (shown([*first, *rest]), rest.next) == (shown(some), None)


def test_a_token_belongs_to_its_scan(open_graph: Open) -> None:
    g, some = open_graph(), entities()
    g.put_many(some)
    token = g.scan(Student).page(limit=2).next
    assert len(g.scan(Student).page(limit=1, after=token)) == 1
    signed = open_graph(cursor_secret="s")
    others = [
        g.scan(Course),
        g.scan(),
        g.scan().others,
        g.scan(Student, segments=5),
        g.scan(Student).limit(5),
        g.scan(Student).where(field("name") == "x"),
        g.scan(Student, consistent=True),
        g.out("s1", Enrollment),
        signed.scan(Student),
    ]
    for query in others:
        with pytest.raises(InvalidCursor):
            query.page(after=token)
    for changed in (token[:-2], "x" + token, "", 3):
        with pytest.raises(InvalidCursor):
            g.scan(Student).page(after=changed)


@pytest.mark.parametrize(
    "key",
    [
        {},
        {"0.PK": "STUDENT#s1"},
        {"0.PK": "STUDENT#s1", "0.SK": "#META", "0.": ""},
        {"0.": "", "4.": ""},
        {"-1.": ""},
        {"00.": ""},
        {"0.": "", "x": "y"},
        {"0.PK": "STUDENT#s1", "1.SK": "#META"},
        {"PK": "STUDENT#s1", "SK": "#META"},
    ],
)
def test_a_forged_token_is_refused(key: dict[str, str]) -> None:
    """Without a secret anybody can compute the digest, so what is in a token is looked at."""
    with Graph(":memory:", SCHOOL) as g:
        query = g.scan(Student)
        forged = encode_cursor({name: {"S": text} for name, text in key.items()}, 0, query._identity, b"")
        with pytest.raises(InvalidCursor, match="does not belong to this scan"):
            query.page(after=forged)
        begun = encode_cursor({"0.": {"S": ""}, "3.": {"S": ""}}, 0, query._identity, b"")
        with g.meter() as meter:
            assert query.page(after=begun).items == []
        assert meter.requests == 2


def test_a_forged_token_shows_nothing_of_another_tenant() -> None:
    with Graph(":memory:", SCHOOL) as g:
        acme, globex = g.for_tenant("acme"), g.for_tenant("globex")
        acme.put_many(entities())
        globex.put_many(entities())
        query = acme.scan(segments=1)
        key = {"0.PK": {"S": "globex#COURSE#c0"}, "0.SK": {"S": "#META"}}
        forged = encode_cursor(key, 0, query._identity, b"")
        assert query.page(after=forged).items == []


def test_an_iteration_that_fails_can_be_continued_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 300)
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, SCHOOL) as g:
        some = entities()
        g.put_many(some)
        for number in range(10):
            found: list[Any] = []
            after: str | None = None
            store.stop_at(number, "after")
            failures = 0
            while True:
                try:
                    page = g.scan().page(limit=6, after=after)
                except Interrupted:
                    failures += 1
                    store.recover()
                    continue
                found += page.items
                after = page.next
                if after is None:
                    break
            assert (failures, shown(found)) == (1, shown(some))
            store.stop_at(1, "before")
            with pytest.raises(Interrupted):
                list(g.scan())
            store.recover()
        with g.meter() as meter:
            for _ in g.scan():
                break
        assert meter.rounds == 1


# --- every store -------------------------------------------------------------------------------


@pytest.fixture(params=["memory", *processes.NAMES])
def anywhere(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    store: Any = SQLiteStore(":memory:") if request.param == "memory" else servers.open(request.param)
    with Graph(store, [Student, Course, Enrollment, Friendship]) as g:
        g.create_table()
        yield g


def is_generous(g: Graph) -> bool:
    """Whether the server charges less than the service: dynalite nothing for a segment without items, and MiniStack
    half a unit for a page of any size."""
    return getattr(g._store, "server", "") in ("dynalite", "ministack")


def test_on_every_store(anywhere: Graph) -> None:
    """The same results, requests and units on each."""
    g, some = anywhere, [each for each in entities() if not isinstance(each, Exam)]
    put_items(g, some)
    other = put_plain(g, PK="STUDENT#a#b", SK="#META", name="x")
    for model in (Student, Course, Enrollment, Friendship):
        assert shown(g.scan(model)) == of(model, some)
        assert g.count(model) == len(of(model, some))
    assert shown(g.scan()) == shown(some)
    assert g.scan().count() == len(some)
    assert list(g.scan().others) == g.scan().collect().others == [other]
    assert g.scan(Student).where(field("year_level") == 1).count() == 4
    for limit in (None, 1, 5):
        assert shown(itertools.chain.from_iterable(paged(g.scan(), limit))) == shown(some)
    calls: list[tuple[Callable[[], object], tuple[int, int, float]]] = [
        (lambda: list(g.scan(Student, segments=1)), (1, 1, 0.5)),
        (lambda: list(g.scan(Student)), (4, 1, 2)),
        (lambda: g.count(Student, consistent=True), (4, 1, 4)),
        (lambda: list(g.scan().others), (4, 1, 2)),
        (lambda: g.scan(segments=1).first(), (1, 1, 0.5)),
    ]
    for call, costs in calls:
        with g.meter() as meter:
            assert call()
        assert (meter.requests, meter.rounds) == costs[:2]
        if not is_generous(g) or costs[0] == 1:
            assert meter.rcu == costs[2]
    assert isinstance(g.explain(g.scan(Student)).whole_table, WholeTable)


def test_many_pages_on_every_store(anywhere: Graph) -> None:
    """More than 1 MB: segments continue from their own keys, each until it ends."""
    g = anywhere
    some = [Student(id=f"s{number}", name="x" * 40_000) for number in range(60)]
    put_items(g, some)
    read: list[int] = []
    with g.meter() as meter:
        assert shown(g.scan(Student, segments=2, progress=read.append)) == shown(some)
    assert (meter.rounds > 1, read[-1]) == (True, 60 + RECORDS)
    total = meter.rcu
    with g.meter() as meter:
        assert g.count(Student, segments=2) == 60
    # DynamoDB charges for what is read, whatever is sent.
    assert meter.rcu == total
    if not is_generous(g):
        assert 60 * 40_000 / 8192 < total < 60 * 40_000 / 8192 + 10
    assert len(paged(g.scan(Student, segments=2), None)) == len(read)


# --- against a model ---------------------------------------------------------------------------

_IDS = st.sampled_from(["a", "b", "c", "d", "#", "%", "=", "a#b", "é"])

_ENTITIES = st.one_of(
    st.builds(lambda id: Student(id=id, name="x"), _IDS),
    st.builds(lambda id: Course(id=id), _IDS),
    st.builds(lambda one, other: Enrollment(source=one, target=other), _IDS, _IDS),
    st.builds(lambda one, other, term: Exam(source=one, target=other, term=term), _IDS, _IDS, _IDS),
    st.builds(lambda one, other: Friendship(source=one, target=other), _IDS, _IDS),
)

_FOREIGN = st.tuples(
    st.sampled_from(["STUDENT#a", "STUDENT#a#b", "STUDENT#", "COURSE#%41", "x", "acme#STUDENT#a", "FRIENDSHIP#a"]),
    st.sampled_from(["#META", "x", "ENROLLMENT#COURSE#a#b", "ENROLLMENT#COURSE#", "FRIENDSHIP#STUDENT#%41"]),
)


@given(
    st.lists(_ENTITIES, max_size=25),
    st.sets(_FOREIGN, max_size=8),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 400),
    st.sampled_from([*LAYOUTS]),
    st.sampled_from([None, "acme"]),
)
def test_against_a_model(
    some: list[Any],
    foreign: set[tuple[str, str]],
    segments: int,
    limit: int,
    size: int,
    layout: str,
    tenant: str | None,
) -> None:
    with pytest.MonkeyPatch.context() as patch, Graph(":memory:", SCHOOL, LAYOUTS[layout]) as table:
        patch.setattr(reads, "MAX_PAGE_SIZE", size)
        g = table if tenant is None else table.for_tenant(tenant)
        g.put_many(some)
        model: dict[tuple[str, ...], Any] = {}
        for entity in some:
            ends = sorted((entity.source, entity.target)) if isinstance(entity, Friendship) else ()
            name = (
                (*ends,)
                if ends
                else tuple(map(str, entity.model_dump(include={"id", "source", "target", "term"}).values()))
            )
            model[type(entity).__name__, *name] = entity
        names = [key.name for key in g._layout.definition.keys]
        keys = {tuple(item[name]["S"] for name in names) for item in items_of(table)}
        strange = {key for key in foreign if key not in keys and explained(g, names, key) is None}
        for partition, sort in strange:
            put_plain(table, **{names[0]: partition, names[1]: sort})
        expected = shown(model.values())
        assert shown(g.scan(segments=segments)) == expected
        assert g.scan(segments=segments).count() == len(expected)
        assert shown(itertools.chain.from_iterable(paged(g.scan(segments=segments), limit))) == expected
        for one in SCHOOL:
            found = list(g.scan(one, segments=segments))
            assert shown(found) == of(one, [*model.values()])
            assert g.count(one, segments=segments) == len(found)
            assert g.scan(one, segments=segments).limit(limit).count() == min(limit, len(found))
            assert len(list(g.scan(one, segments=segments).limit(limit))) == min(limit, len(found))
        others = {(other[names[0]], other[names[1]]) for other in g.scan(segments=segments).others}
        visible = {key for key in strange if tenant is None or key[0].startswith("acme#")}
        if tenant is None:
            visible -= {key for key in strange if table._layout.is_of_a_tenant(keyed(names, key))}
        assert others == visible
        assert g.scan().others.count() == len(visible)
        contents = g.scan(segments=segments).collect()
        assert shown([*contents.nodes, *contents.edges]) == expected
        assert len(contents.others) == len(visible)


def items_of(g: Graph) -> Iterator[Item]:
    start: Item | None = None
    while True:
        page: Any = g._store.execute([Scan(g._layout.table, start=start)])[0]
        yield from page.items
        start = page.last
        if start is None:
            return


def test_what_looks_like_an_item_of_a_tenant_is_not_left_out_where_keys_begin_with_ids() -> None:
    """Any text before a separator could be a tenant, so the item may be one that no class explains."""

    class Log(Node, key=("device", "at")):
        device: str
        at: int

    layout = AdjacencyList(keys={Log: Keys("{device}", "{at}")}, reverse=None)
    graph = Graph(":memory:", [Log], layout)
    graph.put(Log(device="d", at=1))
    graph._store.execute([Put("adjoin", {"PK": {"S": "d#1"}, "SK": {"S": "1"}})])
    assert list(graph.scan()) == [Log(device="d", at=1)]
    assert list(graph.scan().others) == [{"PK": "d#1", "SK": "1"}]
