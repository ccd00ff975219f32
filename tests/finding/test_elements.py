"""Finding by the elements of lists and sets: types, entries, limits, races, audits and migrations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from functools import partial
from itertools import product
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import Field, computed_field

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Child,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    MaterializedGraph,
    MigrationDue,
    Node,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.layouts.own_items import MAX_ELEMENTS
from adjoin.requests import Delete, Put, Request, Response, TransactWrite
from adjoin.stores.sqlite import SQLiteStore
from tests.conftest import Open
from tests.growing import Clock, announce, index_of, on_clock, scanned


class Mood(Enum):
    GOOD = 1
    BAD = -2


class Post(Node):
    id: str
    title: str = ""
    year: Annotated[int, Indexed()] = 0
    tags: Annotated[list[str], Indexed(elements=True)] = []
    days: Annotated[set[dt.date] | None, Indexed(elements=True), Field(alias="Days")] = None


class Note(Child[Post], key=("at",)):
    at: int
    words: Annotated[frozenset[str], Indexed(elements=True)] = frozenset()


MODELS: list[Any] = [Post, Note]
LAYOUTS: list[Layout] = [AdjacencyList(), MaterializedGraph(), MaterializedGraph(shards=3)]
TAGS, DAYS = field("tags"), field("days")


def ids(graph: Graph, predicate: Any) -> list[str]:
    return [each.id for each in graph.find(Post, predicate)]


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (list[str], ["a", "a b", "a#b", "", "ä%"]),
        (set[str], ["a", "b#"]),
        (frozenset[int], [-3, 0, 12]),
        (list[int], [-3, 0, 12, 10**20]),
        (tuple[Decimal, ...], [Decimal("1.50"), Decimal("-2")]),
        (set[Decimal], [Decimal("1.5"), Decimal("-2")]),
        (list[float], [0.1, -2.5]),
        (list[bool], [True, False]),
        (list[Mood], [Mood.GOOD, Mood.BAD]),
        (list[dt.date], [dt.date(2024, 1, 2), dt.date(1999, 12, 31)]),
        (list[dt.datetime], [dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2)]),
        (
            list[dt.datetime],
            [
                dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
                dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            ],
        ),
        (set[dt.date], [dt.date(2024, 1, 2), dt.date(1999, 12, 31)]),
        (list[UUID] | None, [UUID(int=1), UUID(int=2**127)]),
    ],
)
def test_every_type_is_found_and_filtered(annotation: Any, values: list[Any]) -> None:
    class Thing(Node):
        id: str
        all: Annotated[annotation, Indexed(elements=True)]

    for layout in LAYOUTS[:2]:
        with Graph(":memory:", [Thing], layout) as graph:
            graph.put(Thing(id="all", all=values))
            graph.put(Thing(id="first", all=[values[0]]))
            graph.put(Thing(id="none", all=[]))
            first, last = field("all").contains(values[0]), field("all").contains(values[-1])
            assert [each.id for each in graph.find(Thing, first)] == ["all", "first"]
            assert [each.id for each in graph.find(Thing, last)] == ["all"]
            assert [each.id for each in graph.find(Thing, first & last)] == ["all"]
            assert [each.id for each in graph.find(Thing, first | last)] == ["all", "first"]
            assert [each.id for each in graph.find(Thing, last | first)] == ["all", "first"]
            assert [each.id for each in graph.find(Thing, first & ~last)] == ["first"]
            assert graph.get(Thing, "all") == Thing(id="all", all=values)
            assert list(graph.find(Thing, last)) == [Thing(id="all", all=values)]
            assert graph.verify().findings == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_entries_are_stored_beside_the_node(layout: Layout) -> None:
    with Graph(":memory:", MODELS, layout) as graph:
        post = Post(id="1", title="t", year=7, tags=["b", "a", "b"])
        graph.put(post)
        index = index_of(graph)
        names = graph._layout.start_names(None)
        items = [item for item in scanned(graph) if "POST#1" in item[names[0]]["S"]]
        own, *entries = sorted(items, key=lambda item: [item[name]["S"] for name in names])
        assert [tuple(item[name]["S"] for name in names) for item in entries] == [
            ("POST#1#=", f"tags[]#a#{own[names[1]]['S']}"),
            ("POST#1#=", f"tags[]#b#{own[names[1]]['S']}"),
        ]
        assert [item[index.sort_key]["S"] for item in entries] == ["a#POST#1", "b#POST#1"]
        assert {item[index.partition_key]["S"].rpartition("#")[0] for item in entries} == {"POST#tags[]"}
        assert all(item["title"] == {"S": "t"} for item in entries)
        # What is found is the node itself, and can be put again.
        (found,) = graph.find(Post, TAGS.contains("a"))
        assert found == post
        graph.put(found.model_copy(update={"tags": ["a"]}))
        assert len(scanned(graph)) == len(items) - 1 + (layout is LAYOUTS[2])


def test_more_elements_than_fit_are_refused_before_anything_is_written() -> None:
    with Graph(":memory:", MODELS) as graph:
        many = [str(at) for at in range(MAX_ELEMENTS + 1)]
        for call in (
            lambda: graph.put(Post(id="1", tags=many)),
            lambda: graph.add(Post(id="1", tags=many[1:], days={dt.date(2024, 1, 1)})),
            lambda: graph.put_many([Post(id="1", tags=many)]),
            lambda: graph.upsert(Post, "1", tags=many),
        ):
            with graph.meter() as meter, pytest.raises(InvalidValue, match="41 different elements in tags and days"):
                call()
            assert meter.wcu == 0
        graph.put(Post(id="1", tags=[*many[1:], *many[1:]], year=1))
        assert ids(graph, TAGS.contains("40")) == ["1"]
        with pytest.raises(InvalidValue, match="store at most 40"):
            graph.update(Post, "1", TAGS.append("0"))
        # All of them can be replaced at once, and go with the node.
        graph.update(Post, "1", tags=[f"new {each}" for each in many[1:]])
        assert ids(graph, TAGS.contains("40")) == []
        assert ids(graph, TAGS.contains("new 40")) == ["1"]
        assert graph.verify().findings == ()
        graph.delete(Post, "1")
        assert scanned(graph) == []


def _nothing() -> None:
    pass


class Meddling:
    """A store on which another program writes right before the first transaction."""

    creates_tables = True

    def __init__(self, inner: SQLiteStore) -> None:
        self.inner = inner
        self.meddle: Callable[[], None] = _nothing

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if any(isinstance(request, TransactWrite) for request in requests):
            meddle, self.meddle = self.meddle, _nothing
            meddle()
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_whoever_writes_second_reads_again(layout: Layout) -> None:
    """Each verb on a node of its own, so that one audit looks at what all of them left."""
    store = Meddling(SQLiteStore(":memory:"))
    with Graph(store, MODELS, layout) as graph, Graph(store.inner, MODELS, layout) as other:
        for verb, is_there in product(("put", "update", "append", "delete", "transaction", "upsert"), (True, False)):
            id = f"{verb} {is_there}"
            old, theirs, ours = (f"{whose} {id}" for whose in ("old", "theirs", "ours"))
            if is_there or verb in ("update", "append", "delete"):
                graph.put(Post(id=id, tags=[old]))
            store.meddle = partial(other.put, Post(id=id, tags=[theirs]))
            expected = [ours]
            match verb:
                case "put":
                    graph.put(Post(id=id, tags=[ours]))
                case "update":
                    graph.update(Post, id, tags=[ours])
                case "append":
                    graph.update(Post, id, TAGS.append(ours))
                    expected = [theirs, ours]
                case "delete":
                    graph.delete(Post, id)
                    expected = []
                case "transaction":
                    with graph.transaction() as t:
                        t.put(Post(id=id, tags=[ours]))
                case "upsert":
                    graph.upsert(Post, id, tags=[ours])
            assert store.meddle is _nothing, f"{id}: nobody came between"
            found = {tag: ids(graph, TAGS.contains(tag)) for tag in (old, theirs, ours)}
            assert found == {tag: [id] if tag in expected else [] for tag in found}, id
        assert other.verify().findings == ()


def test_children_and_their_parent(open_graph: Open) -> None:
    for layout in LAYOUTS:
        graph = open_graph(MODELS, ":memory:", layout=layout)
        graph.put(Post(id="1", tags=["x"]))
        graph.put_many([Note(parent="1", at=at, words={"x", f"w{at}"}) for at in range(3)])
        assert [note.at for note in graph.find(Note, field("words").contains("x"))] == [0, 1, 2]
        assert [note.at for note in graph.find(Note, field("words").contains("w1") | field("words").contains("x"))] == [
            1,
            0,
            2,
        ]
        graph.update(Note, ("1", 1), field("words").add({"y"}))
        assert [note.at for note in graph.find(Note, field("words").contains("y"))] == [1]
        graph.delete(Note, ("1", 0))
        assert graph.find(Note, field("words").contains("x")).count() == 2
        graph.delete(Post, "1")
        assert graph.find(Note, field("words").contains("x")).count() == 0
        assert list(graph.scan()) == []


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_what_many_puts_replace_is_not_found_any_more(layout: Layout) -> None:
    with Graph(":memory:", MODELS, layout) as graph:
        graph.put_many([Post(id="1", tags=["x", "y"]), Post(id="2", tags=["x"])])
        graph.put_many([Post(id="1", tags=["y"]), Post(id="1", tags=["z"]), Post(id="2")])
        assert [tag for tag in "xyz" if ids(graph, TAGS.contains(tag))] == ["z"]
        assert graph.verify().findings == ()
        assert graph.delete_many([Post.ref("1"), Post.ref("2")])
        assert ids(graph, TAGS.contains("z")) == []


def test_tenants_and_shards_that_come() -> None:
    clock = Clock()
    with on_clock(Graph(":memory:", MODELS), clock) as graph:
        graph.for_tenant("a").put(Post(id="1", tags=["x"]))
        assert ids(graph.for_tenant("b"), TAGS.contains("x")) == ids(graph, TAGS.contains("x")) == []
        assert ids(graph.for_tenant("a"), TAGS.contains("x")) == ["1"]
        posts = [Post(id=str(at), tags=["x", str(at)]) for at in range(8)]
        graph.put_many(posts)
        announce(graph, "POST#tags[]", 3, {"x": 2})
        clock.pass_lease()
        assert graph.find(Post, TAGS.contains("x")).count() == 8
        clock.pass_grace()
        graph.put_many(posts[:4])
        assert ids(graph, TAGS.contains("x")) == [str(at) for at in range(8)]
        assert graph.find(Post, TAGS.contains("x")).count() == 8
        page = graph.find(Post, TAGS.contains("x")).page(limit=5)
        assert [each.id for each in graph.find(Post, TAGS.contains("x")).page(after=page.next)] == ["5", "6", "7"]
        used = {item[index_of(graph).partition_key]["S"] for item in scanned(graph) if "GSI3PK" in item}
        assert len({each for each in used if each.startswith("POST#tags[]#")}) > 1
        assert graph.verify().findings == ()


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_an_audit_finds_entries_that_are_missing_or_stale(layout: Layout) -> None:
    with Graph(":memory:", MODELS, layout) as graph:
        graph.put(Post(id="1", tags=["a", "b"]))
        graph.put(Post(id="2", tags=["a"]))
        name, sort = graph._layout.start_names(None)
        entries = {item[sort]["S"].split("#")[1]: item for item in scanned(graph) if item[name]["S"] == "POST#1#="}
        key = {each: entries["a"][each] for each in (name, sort)}
        stale = {**entries["b"], sort: {"S": entries["b"][sort]["S"].replace("#b#", "#c#")}}
        stale[index_of(graph).sort_key] = {"S": "c#POST#1"}
        graph._store.execute((Delete(graph._layout.table, key), Put(graph._layout.table, stale)))
        assert ids(graph, TAGS.contains("a")) == ["2"]
        assert ids(graph, TAGS.contains("c")) == ["1"]
        audit = graph.verify()
        faults = [example["fault"] for each in audit.findings for example in each.examples]
        assert {each.kind for each in audit.findings} == {"index entry"}
        assert sorted(faults) == ["missing", "stray"]
        graph.verify(repair=True)
        assert ids(graph, TAGS.contains("a")) == ["1", "2"]
        assert ids(graph, TAGS.contains("c")) == []
        assert graph.verify().findings == ()


class Before(Node, label="POST"):
    id: str
    words: list[str] = []
    year: Annotated[int, Indexed()] = 0


class Marked(Node, label="POST"):
    id: str
    words: Annotated[list[str], Indexed(elements=True)] = []
    year: Annotated[int, Indexed()] = 0


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_a_class_that_gains_the_mark_is_migrated(layout: Layout) -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, [Before], layout) as old:
        old.put_many([Before(id=str(at), words=["a", f"w{at}"]) for at in range(5)])
        old.put(Before(id="much", words=[f"m{at}" for at in range(MAX_ELEMENTS + 1)]))
        with Graph(store, [Marked], layout) as graph:
            query = graph.find(Marked, field("words").contains("a"))
            with pytest.raises(MigrationDue, match=r"may not be indexed by 'words\[\]'"):
                list(query)
            assert graph.find(Marked, field("year") == 0).count() == 6
            # What is written meanwhile has its entries.
            graph.update(Marked, "0", field("words").discard(["a"]))
            report = graph.migrate(finish=True)
            assert not report.ended
            assert [refused.key["PK" if "PK" in refused.key else "NodeId"]["S"] for refused in report.refused] == [
                "POST#much"
            ]
            graph.update(Marked, "much", words=["a"])
            assert graph.migrate(finish=True).ended
            assert [each.id for each in query] == ["1", "2", "3", "4", "much"]
            assert graph.verify().findings == ()
    store.close()


class Reader(Node):
    id: str


class Book(Node):
    id: str
    genres: Annotated[list[str], Indexed(elements=True)] = []
    readers: Annotated[int, Count("Read", direction="into")] = 0


class Popular(Node):
    id: str
    genres: Annotated[list[str], Indexed(elements=True)] = []
    readers: Annotated[int, Count("Liked", direction="into"), Indexed()] = 0


class At(Node):
    id: str
    genres: Annotated[list[str], Indexed(elements=True)] = []
    readers: Annotated[int, Count("Had", direction="into", consistency="transaction")] = 0


class Read(Edge[Reader, Book]): ...


class Liked(Edge[Reader, Popular]): ...


class Had(Edge[Reader, At]): ...


@pytest.mark.parametrize("layout", LAYOUTS[:2])
@pytest.mark.parametrize(("node", "edge"), [(Book, Read), (Popular, Liked), (At, Had)])
def test_entries_have_the_aggregates_of_their_node(layout: Layout, node: Any, edge: Any) -> None:
    with Graph(":memory:", [Reader, Book, Popular, At, Read, Liked, Had], layout) as graph:
        graph.put_many([Reader(id=str(at)) for at in range(70)])
        graph.put(node(id="b", genres=[f"g{at}" for at in range(MAX_ELEMENTS)]))
        graph.put_many([edge(source=str(at), target="b") for at in range(70)])
        graph.maintain(once=True)
        assert [each.readers for each in graph.find(node, field("genres").contains("g7"))] == [70]
        graph.disconnect(edge, "3", "b")
        graph.update(node, "b", genres=["g7", "x"])
        graph.maintain(once=True)
        with graph.transaction() as t:
            t.put(node(id="b", genres=["g7", "y"]))
        graph.maintain(once=True)
        assert [each.readers for each in graph.find(node, field("genres").contains("y"))] == [69]
        assert graph.find(node, field("genres").contains("x")).count() == 0
        assert graph.verify().findings == ()
        graph.delete(node, "b")
        graph.maintain(once=True)
        assert graph.find(node, field("genres").contains("g7")).count() == 0


def test_what_is_refused() -> None:
    class OnEdge(Edge[Post, Post]):
        tags: Annotated[list[str], Indexed(elements=True)] = []

    class OnText(Node):
        id: str
        tags: Annotated[str, Indexed(elements=True)] = ""

    class OnMaps(Node):
        id: str
        tags: Annotated[list[dict[str, int]], Indexed(elements=True)] = []

    class OnPair(Node):
        id: str
        tags: Annotated[tuple[str, str], Indexed(elements=True)] = ("", "")

    for model, words in (
        (OnEdge, "only for fields of nodes and children"),
        (OnText, "must be a list, a set, or a tuple of any length, of one of str"),
        (OnMaps, "must be a list"),
        (OnPair, "must be a list"),
    ):
        with pytest.raises(InvalidModel, match=words):
            Graph(":memory:", [Post, model])
    with Graph(":memory:", MODELS) as graph:
        wrong: list[tuple[Any, dict[str, Any], type[AdjoinError], str]] = [
            (TAGS == ["a"], {}, InvalidKey, "an index finds Post by elements of 'tags', 'days'"),
            (TAGS.begins_with(["a"]), {}, InvalidKey, "compare one of them with contains"),
            (None, {"order": "tags"}, InvalidKey, "have no order together; find one of them"),
            (DAYS.contains("yesterday"), {}, InvalidValue, "Post.days"),
            (TAGS.contains("x" * 1024), {}, InvalidKey, "1,024 bytes"),
            (field("title").contains("x"), {}, InvalidKey, "Post.title is not indexed"),
        ]
        for predicate, options, error, words in wrong:
            with graph.meter() as meter, pytest.raises(error, match=words):
                graph.find(Post, predicate, **options)
            assert meter.requests == 0


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_a_node_and_its_edge_in_one_transaction(layout: Layout) -> None:
    with Graph(":memory:", [Reader, At, Had], layout) as graph:
        graph.put(Reader(id="0"))
        with graph.transaction() as t:
            t.put(At(id="b", genres=["g", "h"]))
            t.put(Had(source="0", target="b"))
        assert [each.readers for each in graph.find(At, field("genres").contains("h"))] == [1]
        assert graph.verify().findings == ()


def test_a_table_moves_with_its_entries() -> None:
    with Graph(":memory:", MODELS) as old, Graph(":memory:", MODELS, MaterializedGraph()) as new:
        old.put_many([Post(id=str(at), tags=["x", f"t{at}"]) for at in range(3)])
        old.put(Note(parent="1", at=1, words={"w"}))
        old.migrate(into=new)
        old.put(Post(id="1", tags=["y"]))
        assert old.migrate(into=new, finish=True).ended
        assert ids(new, TAGS.contains("x")) == ["0", "2"]
        assert ids(new, TAGS.contains("y")) == ["1"]
        assert ids(new, TAGS.contains("t1")) == []
        assert [note.at for note in new.find(Note, field("words").contains("w"))] == [1]
        assert new.verify().findings == ()


def test_elements_that_are_computed() -> None:
    class Line(Node):
        id: str
        text: str = ""

        @computed_field  # type: ignore[prop-decorator]
        @property
        def words(self) -> Annotated[list[str], Indexed(elements=True)]:
            return self.text.split()

    with Graph(":memory:", [Line]) as graph:
        graph.put(Line(id="1", text="a b"))
        graph.update(Line, "1", text="b c")
        assert [graph.find(Line, field("words").contains(word)).count() for word in "abc"] == [0, 1, 1]
        assert graph.verify().findings == ()
