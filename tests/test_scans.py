"""Scanning: everything of a class, of the graph, and what no class explains, on both graphs and on every store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, field_validator

from adjoin import (
    AdjacencyList,
    Contents,
    Count,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidCursor,
    InvalidItem,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    Unique,
    UnknownField,
    WholeTable,
    field,
)
from adjoin.layouts.interface import DELETING, Layout
from adjoin.plans import deletion
from adjoin.requests import DescribeTable, Request, Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore, reads
from adjoin.values import Item
from tests.conftest import Open
from tests.faults import FaultyStore, Interrupted
from tests.models import SCHOOL, Course, Enrollment, Friendship, Student
from tests.scanned import LAYOUTS, RECORDS, bare, entities, of, put_plain, shown, spelled

INVERTED = AdjacencyList(node="{node}", edge="{target}", reverse=Index("GSI1", "SK", "PK"), escape=True)
"""The sort key is a partition key too, so it has the prefix of a tenant."""


def test_a_scan_shows_what_it_reads() -> None:
    with Graph(":memory:", SCHOOL) as g:
        for scan, what in (
            (g.scan(Student), "Student"),
            (g.scan(), "everything"),
            (g.scan().others, "what no class expl"),
        ):
            assert repr(scan).startswith(f"<{type(scan).__name__} of {what}")


# --- what it gives -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_class_and_everything(open_graph: Open, layout: str) -> None:
    g, some = open_graph(layout=LAYOUTS[layout]), entities()
    g.put_many(some)
    for model in SCHOOL:
        assert shown(g.scan(model)) == of(model, some)
        assert g.scan(model).count() == g.count(model) == len(of(model, some))
    assert shown(g.scan()) == shown(some)
    assert g.scan().count() == len(some)
    assert (list(g.scan().others), g.scan().others.count()) == ([], 0)


@pytest.mark.parametrize("segments", [1, 2, 4, 13])
def test_any_number_of_segments(open_graph: Open, segments: int) -> None:
    g, some = open_graph(), entities()
    g.put_many(some)
    with g.meter() as meter:
        assert shown(g.scan(segments=segments)) == shown(some)
    assert (meter.requests, meter.rounds) == (segments, 1)
    assert g.count(Student, segments=segments) == 12


def test_an_empty_table(open_graph: Open) -> None:
    g = open_graph()
    assert (list(g.scan()), list(g.scan(Student)), g.count(Student), g.scan(Student).first()) == ([], [], 0, None)
    page = g.scan(Student).page()
    assert (page.items, page.next) == ([], None)


def test_where_limit_and_first(open_graph: Open) -> None:
    g, some = open_graph(), entities()
    g.put_many(some)
    second = g.scan(Student).where(field("year_level") == 1)
    assert sorted(student.id for student in second) == ["s1", "s10", "s4", "s7"]
    assert second.count() == 4
    assert second.where(field("name") == "Name s4").count() == 1
    for most in (1, 3, 4, 5):
        assert len(list(second.limit(most))) == second.limit(most).count() == min(most, 4)
    assert g.scan(Student).first() in some
    assert g.scan(Course).where(field("credits") > 1).first() is None
    assert g.scan().limit(3).count() == len(list(g.scan().limit(3))) == 3


def test_progress_counts_what_was_read(open_graph: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 500)
    g = open_graph()
    g.put_many(entities())
    stored = 12 + 4 + 12 + 6 + 22 + 1 + RECORDS
    for call in (
        lambda report: list(g.scan(Student, progress=report)),
        lambda report: g.count(Student, progress=report),
        lambda report: g.scan(progress=report).collect(),
    ):
        read: list[int] = []
        call(read.append)
        assert read == sorted(read)
        assert (len(read) > 2, read[-1]) == (True, stored)


def test_results_come_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read than is used: an iteration that ends early made only the rounds that it needed."""
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 500)
    with Graph(":memory:", SCHOOL) as g:
        g.put_many(entities(60))
        with g.meter() as meter:
            iterator = iter(g.scan())
            next(iterator)
            assert (meter.requests, meter.rounds) == (4, 1)
            assert len(list(iterator)) == len(entities(60)) - 1
            assert meter.rounds > 4


def test_a_limit_reads_one_segment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with Graph(":memory:", SCHOOL) as g:
        g.put_many(entities(60))
        with g.meter() as meter:
            assert len(list(g.scan().limit(3))) == 3
        assert (meter.requests, meter.rounds, meter.rcu) == (1, 1, 0.5)
        with g.meter() as meter:
            # Nothing is found, so all is read: one segment, then two, then the last one.
            assert g.scan(Student).where(field("name") == "nobody").first() is None
        assert meter.rounds >= 3
        # A round asks for more than the one before, and keeps at it until the table ends.
        monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 200)
        with g.meter() as meter:
            assert len(g.scan(Student).page(limit=50)) == 50
        assert meter.requests > meter.rounds > 1


def test_consistent_reads_cost_double(open_graph: Open) -> None:
    g = open_graph()
    with g.meter() as meter:
        list(g.scan(Student))
    assert (meter.requests, meter.rounds, meter.rcu) == (4, 1, 2)
    with g.meter() as meter:
        list(g.scan(Student, consistent=True))
    assert (meter.requests, meter.rcu) == (4, 4)
    always = open_graph(consistent=True)
    with always.meter() as meter:
        always.count(Student)
    assert meter.rcu == 4


# --- what it refuses ---------------------------------------------------------------------------


class Stranger(Node):
    id: str


def test_what_it_refuses(open_graph: Open) -> None:
    g = open_graph()
    refused: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: g.scan(Student, segments=0), InvalidValue, "segments must be at least 1, got 0"),
        (lambda: g.scan(Student, segments=1001), InvalidValue, "segments must be at most 1000, got 1001"),
        (lambda: g.scan(Student, progress=3), InvalidValue, "progress must be a function"),
        (lambda: g.scan(Stranger), InvalidModel, "Stranger is not a Node class of this graph"),
        (lambda: g.count(Stranger), InvalidModel, "Stranger is not a Node class of this graph"),
        (lambda: g.scan(Student).where(field("nmae") == "x"), UnknownField, "name"),
        (lambda: g.scan().where(field("name") == "x"), InvalidValue, "scan one class"),
        (lambda: g.scan().others.where(field("name") == "x"), InvalidValue, "scan one class"),
        (lambda: bool(bare(g).scan(Student)), InvalidValue, "no truth value"),
    ]
    for call, error, words in refused:
        with pytest.raises(error, match=words):
            call()
    assert not hasattr(bare(g).scan(Student), "reverse")


def test_an_item_that_its_class_cannot_read_is_an_error(open_graph: Open) -> None:
    g = open_graph()
    g.put(Student(id="a", name="Ann"))
    put_plain(g, PK="STUDENT#b", SK="#META", name=7, year_level="many")
    for query in (g.scan(Student), g.scan()):
        with pytest.raises(InvalidItem, match="year_level"):
            list(query)
    # Its keys tell that it is a student, so it is no other item, and it counts.
    assert (g.count(Student), g.scan().count(), list(g.scan().others)) == (2, 2, [])


# --- what no class explains --------------------------------------------------------------------


def test_others_are_what_no_class_explains(open_graph: Open) -> None:
    g, some = open_graph(), entities()
    g.put_many(some)
    others = [
        put_plain(g, PK="INVOICE#1", SK="ROOT", total=3),
        # Keys that look like those of a class, but that no id is spelled like.
        put_plain(g, PK="STUDENT#a#b", SK="#META", name="x"),
        put_plain(g, PK="STUDENT#%41", SK="#META", name="x"),
        put_plain(g, PK="STUDENT#s1", SK="ENROLLMENT#COURSE#"),
        put_plain(g, PK="STUDENT#s1", SK="NOTE#1", tags={"a", "b"}),
        put_plain(g, PK="plain", SK="plain"),
        put_plain(g, PK="acme#INVOICE#1", SK="ROOT"),
    ]
    key = ("PK", "SK")
    assert sorted(g.scan().others, key=repr) == sorted(others, key=repr)
    assert g.scan().others.count() == len(others)
    assert (g.count(Student), g.scan().count()) == (12, len(some))
    assert shown(g.scan()) == shown(some)
    contents = g.scan().collect()
    assert isinstance(contents, Contents)
    assert shown(contents.nodes + contents.edges) == shown(some)
    assert {type(node) for node in contents.nodes} == {Student, Course}
    assert sorted(contents.others, key=repr) == sorted(others, key=repr)
    assert len(list(g.scan().others.limit(2))) == 2
    assert g.scan().others.first() in others
    first = g.scan().others.page(limit=4)
    rest = g.scan().others.page(after=first.next)
    assert {tuple(each[name] for name in key) for each in (*first, *rest)} == {
        tuple(each[name] for name in key) for each in others
    }
    few = g.scan().limit(5).collect()
    assert len(few.nodes) + len(few.edges) + len(few.others) == 5


def lowered(id: str) -> str:
    return id.lower()


class Tidy(Node):
    id: Annotated[str, AfterValidator(lowered)]


class Neat(Node):
    id: str

    @field_validator("id")
    @classmethod
    def neat(cls, id: str) -> str:
        return id.strip()


class Lower(Node, str_to_lower=True):
    id: str


class After(Node):
    id: str

    def model_post_init(self, context: Any) -> None:
        self.__dict__["id"] = self.id.lower()


class Likes(Edge[Tidy, Tidy], symmetric=True):
    pass


@pytest.mark.parametrize("model", [Tidy, Neat, Lower, After])
def test_a_key_whose_id_the_class_changes_is_no_key_of_it(model: type[Any], open_graph: Open) -> None:
    g = open_graph([model], layout=AdjacencyList(type_attribute="Type"))
    g.put(model(id="a"))
    # A space is escaped in a key.
    other = put_plain(g, PK=f"{model.__name__.upper()}#{'%20' if model is Neat else ''}B", SK="#META")
    assert [node.id for node in g.scan(model)] == [node.id for node in g.scan()] == ["a"]
    assert (g.count(model), g.scan().count()) == (1, 1)
    assert list(g.scan().others) == g.scan().collect().others == [other]
    assert g.scan().others.count() == 1


def test_others_of_classes_whose_ids_change(open_graph: Open) -> None:
    g = open_graph([Tidy, Likes])
    g.put(Likes(source="a", target="b"))
    other = put_plain(g, PK="TIDY#a", SK="LIKES#TIDY#B")
    assert [(edge.source, edge.target) for edge in g.scan(Likes)] == [("a", "b")]
    assert (g.count(Likes), list(g.scan().others), g.scan().collect().others) == (1, [other], [other])


# --- adjoin's own items, deletes and tenants ---------------------------------------------------


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int | None, Indexed()] = None
    mail: Annotated[str | None, Unique()] = None
    knows: Annotated[int, Count("Knows")] = 0


class Knows(Edge[Person, Person]):
    how: Annotated[str, Indexed()] = "well"
    since: Annotated[int, Indexed()] = 0


class Friend(Edge[Person, Person], symmetric=True):
    close: Annotated[int, Indexed()] = 0
    note: Annotated[str, Indexed()] = ""


PEOPLE: list[Any] = [Person, Knows, Friend]


def people() -> list[Any]:
    return [
        *(Person(id=f"p{n}", name=f"N{n}", born=1980 + n, mail=f"p{n}@example.com") for n in range(5)),
        *(Knows(source="p0", target=f"p{n}") for n in range(1, 5)),
        *(Friend(source=f"p{n}", target="p2") for n in range(2)),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_items_of_adjoins_own_are_not_shown(open_graph: Open, layout: str) -> None:
    g = open_graph(PEOPLE, layout=LAYOUTS[layout])
    g.put_many(people())
    g.maintain(once=True)
    assert len({person.id: person for person in g.scan(Person)}) == g.count(Person) == 5
    assert {person.id: person.knows for person in g.scan(Person)}["p0"] == 4
    assert sorted(edge.target for edge in g.scan(Knows)) == ["p1", "p2", "p3", "p4"]
    assert sorted(sorted((edge.source, edge.target)) for edge in g.scan(Friend)) == [["p0", "p2"], ["p1", "p2"]]
    assert (g.count(Knows), g.count(Friend), g.scan().count()) == (4, 2, 11)
    assert (list(g.scan().others), g.scan().others.count()) == ([], 0)
    # A find shows the same one of the two items of a symmetric edge.
    assert {(edge.source, edge.target) for edge in g.scan(Friend)} == {
        (edge.source, edge.target) for edge in g.find(Friend)
    }


class Before(Node, label="PERSON"):
    id: str
    name: str = ""


class Known(Edge[Before, Before], label="KNOWS"):
    pass


def test_an_aggregate_that_is_not_counted_yet_has_its_default(open_graph: Open) -> None:
    old = open_graph([Before, Known])
    old.put_many([Before(id="a", name="A"), Known(source="a", target="b")])
    old.maintain(once=True)
    g = open_graph(PEOPLE)
    g.maintain(once=True)
    assert [person.knows for person in g.scan(Person)] == [g.get(Person, "a").knows]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_edges_of_a_node_that_is_being_deleted(monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 2)
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, SCHOOL, LAYOUTS[layout]) as g:
        some = entities(6)
        g.put_many(some)
        gone = {spelled(each) for each in some if "s1" in (getattr(each, "source", ""), getattr(each, "target", ""))}
        before, after = sorted(map(spelled, some)), sorted({*map(spelled, some)} - gone - {spelled(some[1])})
        ways = set()
        for number in itertools.count():
            store.stop_at(number, "after")
            with suppress(Interrupted):
                g.delete(Student, "s1")
            is_done = store.sent <= number
            store.recover()
            state = shown(g.scan())
            is_marked = any(DELETING in item for item in items_in(g))
            ways.add((state == before, is_marked))
            assert state in (before, after)
            assert g.scan().count() == len(state)
            for model in SCHOOL:
                assert sorted(each for each in state if each.startswith(f"{model.__name__} ")) == shown(g.scan(model))
                assert g.count(model) == len(shown(g.scan(model)))
            assert list(g.scan().others) == []
            first = g.scan(Friendship).page(limit=2)
            rest = [] if first.next is None else g.scan(Friendship).page(after=first.next).items
            assert shown([*first, *rest]) == shown(g.scan(Friendship))
            if is_done or (not is_marked and state == after):
                break
        assert {(True, True), (False, True)} <= ways


def items_in(g: Graph) -> list[Item]:
    page: Any = g._store.execute([Scan(g._layout.table)])[0]
    return list(page.items)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tenants_see_their_own_items(open_graph: Open, layout: str) -> None:
    g = open_graph(PEOPLE, layout=LAYOUTS[layout])
    acme, globex = (open_graph(PEOPLE, layout=LAYOUTS[layout], tenant=name) for name in ("acme", "globex"))
    view = bare(g).for_tenant("acme")
    acme.put_many(people())
    globex.put(Person(id="p9", name="Gil"))
    for graph in (g, acme, globex):
        graph.maintain(once=True)
    assert (acme.count(Person), acme.count(Friend), acme.scan().count()) == (5, 2, 11)
    assert [person.id for person in globex.scan()] == ["p9"]
    assert (list(g.scan()), list(g.scan().others), g.count(Person)) == ([], [], 0)
    for graph in (acme, globex):
        assert list(graph.scan().others) == []
    names = [key.name for key in view._layout.definition.keys]
    note = put_plain(g, **{names[0]: "acme#NOTE#1", names[1]: "acme#1"})
    assert (list(acme.scan().others), list(globex.scan().others)) == ([note], [])
    # Nothing tells that acme is a tenant rather than another program's key, so it is shown there too.
    assert list(g.scan().others) == [note]
    token = acme.scan(Person).page(limit=1).next
    with pytest.raises(InvalidCursor):
        globex.scan(Person).page(after=token)


@pytest.mark.parametrize("layout", [*LAYOUTS.values(), INVERTED], ids=[*LAYOUTS, "inverted"])
def test_records_of_a_tenants_deletes_are_no_others(monkeypatch: pytest.MonkeyPatch, layout: Layout) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 2)
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Student, Course, Enrollment], layout) as g:
        acme = g.for_tenant("acme")
        some = [Student(id="s1", name="x"), *(Enrollment(source="s1", target=f"c{number}") for number in range(4))]
        seen = False
        for number in range(1, 20):
            acme.put_many(some)
            store.stop_at(number, "after")
            with suppress(Interrupted):
                acme.delete(Student, "s1")
            store.recover()
            seen = seen or any("DELETING" in str(item) for item in items_in(g) if DELETING not in item)
            assert (list(g.scan().others), list(acme.scan().others), list(g.scan())) == ([], [], [])
            acme.delete(Student, "s1")
        assert seen


# --- what it asks ------------------------------------------------------------------------------


class Recording:
    """A store that writes down what it is asked."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self.asked: list[Request] = []

    def execute(self, requests: Any) -> Any:
        self.asked += requests
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


def scans_of(g: Graph, call: Any) -> list[Scan]:
    store: Any = g._store
    store.asked.clear()
    call()
    assert all(isinstance(request, Scan) for request in store.asked)
    return list(store.asked)


TELLING = AdjacencyList(
    node="META", keys={Student: Keys(partition="student-{id}"), Course: Keys(partition="course-{id}")}
)


def test_a_count_asks_for_no_more_than_it_needs() -> None:
    with Graph(Recording(SQLiteStore(":memory:")), SCHOOL) as g:
        g.put_many(entities())
        scans = scans_of(g, lambda: g.count(Student))
        assert {scan.segment for scan in scans} == {(number, 4) for number in range(4)}
        assert {tuple(map(str, scan.projection or ())) for scan in scans} == {("PK", "SK", DELETING)}
        assert not any(scan.count_only for scan in scans)
    with Graph(Recording(SQLiteStore(":memory:")), [Student, Course], TELLING) as g:
        g.put_many([*(Student(id=f"s{n}", name="x") for n in range(9)), Course(id="c")])
        put_plain(g, PK="student-a#b", SK="META")
        put_plain(g, PK="student-", SK="META")
        scans = scans_of(g, lambda: g.count(Student))
        assert all(scan.count_only and scan.projection is None for scan in scans)
        assert (g.count(Student), len(list(g.scan(Student))), g.scan(Student).limit(2).count()) == (9, 9, 2)
        assert g.scan(Student).where(field("name") == "y").count() == 0
        assert len(list(g.scan().others)) == 2
    with Graph(Recording(SQLiteStore(":memory:")), [Tidy]) as g:
        g.put(Tidy(id="a"))
        assert {scan.projection for scan in scans_of(g, lambda: g.count(Tidy))} == {None}


def test_what_a_scan_with_a_limit_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a class four times as many items as are wanted and at least 100, then four times as many, of more segments."""
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 100)
    with Graph(Recording(SQLiteStore(":memory:")), SCHOOL) as g:
        g.put_many(entities(60))
        nobody = g.scan(Student, segments=8).where(field("name") == "nobody")
        scans = scans_of(g, nobody.first)
        # The pages are so small that no segment ends soon.
        assert [scan.limit for scan in scans[:7]] == [100, *(2 * [400]), *(4 * [1600])]
        assert [scan.segment for scan in scans[:7]] == [(0, 8), (0, 8), (1, 8), (0, 8), (1, 8), (2, 8), (3, 8)]
        assert max(scan.limit or 0 for scan in scans) == 100_000
        assert scans_of(g, g.scan(Student).limit(40).first)[0].limit == 100
        assert scans_of(g, lambda: list(g.scan(Student).limit(40)))[0].limit == 160
        # Most of what is stored is wanted, so no more is asked for than that.
        assert scans_of(g, lambda: list(g.scan().limit(40)))[0].limit == 40 + RECORDS
        assert scans_of(g, g.scan().others.first)[0].limit == 100
        assert {scan.limit for scan in scans_of(g, g.scan(Student).page)} == {None}


def test_one_segment_is_no_segment() -> None:
    with Graph(Recording(SQLiteStore(":memory:")), [Student, Course], TELLING) as g:
        for call in (lambda: g.count(Student, segments=1), lambda: list(g.scan(Student, segments=1))):
            assert [scan.segment for scan in scans_of(g, call)] == [None]
        assert {scan.segment for scan in scans_of(g, lambda: g.count(Student, segments=2))} == {(0, 2), (1, 2)}


def test_an_exact_count_goes_on_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_PAGE_SIZE", 300)
    with Graph(":memory:", [Student, Course], TELLING) as g:
        g.put_many(Student(id=f"s{n}", name="x" * 50) for n in range(70))
        read: list[int] = []
        assert g.count(Student, progress=read.append) == 70
        assert (len(read) > 2, read[-1]) == (True, 70 + RECORDS)
        with g.meter() as meter:
            assert g.scan(Student).limit(3).count() == 3
        assert meter.rounds == 1


def test_other_classes_are_not_sent() -> None:
    with Graph(":memory:", SCHOOL) as g:
        g.put_many(entities())
        for model in SCHOOL:
            request = g.scan(model, segments=1)._question.request("adjoin", 0, None, None)
            kind = g._kind(model)
            answer: Any = g._store.execute([request])[0]
            assert answer.scanned > len(answer.items)
            assert all(g._layout.kind_of(item) is kind for item in answer.items)


def test_explain_says_that_it_reads_the_table(open_graph: Open) -> None:
    g = open_graph()
    g.put_many(entities(120))
    with g.meter() as meter:
        explained = g.explain(g.scan(Student))
        counted = g.explain(bare(g).count, Student)
        limited = g.explain(g.scan(Student, consistent=True).limit(3))
        others = g.explain(g.scan().others)
    assert (meter.requests, meter.rcu) == (0, 0)
    assert (len(explained.scans), explained.rcu, explained.partitions) == (4, 2, ())
    whole: Any = explained.whole_table
    assert isinstance(whole, WholeTable)
    assert (whole.table, whole.items, whole.is_limited) == ("adjoin", 525 + RECORDS, False)
    with g.meter() as meter:
        list(g.scan(Student))
    assert whole.rcu is not None
    assert whole.rcu <= meter.rcu <= whole.rcu + 4 * 0.5
    assert str(explained).splitlines() == [
        *(f"round 1: Scan on table, segment {number} of 4" for number in range(1, 5)),
        "at least 2 RCU and 0 WCU, $0.000000250",
        f"reads the whole table: adjoin, {525 + RECORDS} items, about {whole.rcu:g} RCU",
    ]
    assert str(counted).splitlines()[0] == "round 1: Scan on table, segment 1 of 4, only PK, SK, adjoin:deleting"
    assert limited.whole_table == WholeTable("adjoin", 525 + RECORDS, whole.size, consistent=True, is_limited=True)
    assert str(limited).splitlines()[-1] == (
        f"reads the table until it has enough, at most all of it: adjoin, {525 + RECORDS} items, "
        f"about {2 * whole.rcu:g} RCU"
    )
    assert len(others.scans) == 4
    assert g.explain(g.out("s1", Enrollment)).whole_table is None


def test_explain_where_nothing_is_known() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, [Student, Course], TELLING) as g:
        store.fault = lambda _, request: "before" if isinstance(request, DescribeTable) else None
        explained = g.explain(g.count, Student, segments=1)
    assert str(explained).splitlines() == [
        "round 1: Scan on table, all partitions, only their number",
        "at least 0.5 RCU and 0 WCU, $0.000000062",
        "reads the whole table: adjoin, of unknown size",
    ]
    assert explained.whole_table is not None
    assert explained.whole_table.rcu is None
