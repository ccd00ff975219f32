"""Changes of fields that index keys are made of: one `update`, whatever else the keys hold, whoever else writes."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Self

import pytest
from pydantic import Field, model_validator

from adjoin import (
    AdjacencyList,
    ConditionFailed,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    NotFound,
    Projection,
    TransactionCanceled,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.plans import deletion
from adjoin.requests import Get, Put, Request, Response, TransactWrite, Update
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import scanned
from tests.servers.open import Stores


class Person(Node):
    id: str
    name: str = ""


class Country(Node):
    id: str


class Home(Edge[Person, Country]):
    state: str
    city: str
    rooms: int = 0
    visits: int = 0


HOMES = AdjacencyList(
    keys={
        Home: Keys(
            sort="HOME#{country}",
            reverse_partition="COUNTRY#{country}",
            reverse_sort="HOME#{state}#{city}#{rooms:sortable}#{source.id}",
        )
    },
    escape=True,
)


class Book(Node):
    id: str
    shelf: str | None = None
    place: int | None = None
    reads: int = 0


BOOKS = AdjacencyList(
    reverse=Index("GSI1", "GSI1PK", "GSI1SK"),
    keys={Book: Keys(reverse_partition="SHELF#{shelf}", reverse_sort="{place:sortable}#{id}")},
    escape=True,
)


class Racer(Node):
    id: str


class Race(Node):
    id: str


class Ran(Edge[Racer, Race], order="rank"):
    rank: int
    note: str = ""
    version: int = 0


class Pair(Edge[Racer, Racer], symmetric=True, order="weight"):
    weight: Decimal = Decimal(0)
    label: Annotated[str, Indexed()] = ""


class Item(Node):
    id: str
    price: Annotated[Decimal | None, Indexed()] = None
    stock: Annotated[int, Indexed(), Field(ge=0)] = 0
    tags: Annotated[list[str] | None, Indexed()] = None
    sold: int = 0
    version: int = 0


class Score(Node):
    id: str
    points: Annotated[int, Indexed(), Field(le=100)] = 0
    rounds: int = 0


class Meanwhile:
    """Lets something happen before the first write that comes along."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self.event: Callable[[], object] | None = None
        self.writes = 0

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if any(isinstance(request, Update | TransactWrite) for request in requests):
            self.writes += 1
            event, self.event = self.event, None
            if event is not None:
                event()
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture(params=["embedded", "ministack"])
def store(request: pytest.FixtureRequest, servers: Stores) -> Any:
    opened: Store = SQLiteStore(":memory:") if request.param == "embedded" else servers.open("ministack")
    yield opened
    opened.close()


def open_graph(store: Any, models: list[Any], layout: Layout | None = None) -> Graph:
    graph = Graph(store, models, layout)
    graph.create_table()
    return graph


# --- keys of several parts ---------------------------------------------------------------------


def homes(graph: Graph) -> list[tuple[str, str, str, int]]:
    return [(home.source, home.state, home.city, home.rooms) for home in graph.into("US", Home)]


def test_other_parts_are_filled_in(store: Any) -> None:
    graph = open_graph(store, [Person, Country, Home], HOMES)
    graph.put_many([Home(source=id, target="US", state="NY", city=city) for id, city in (("a", "Ely"), ("b", "Bath"))])
    with graph.meter() as meter:
        assert graph.update(Home, "a", "US", city="Avon").city == "Avon"
    assert meter.requests == 2, "a look, and the change"
    assert homes(graph) == [("a", "NY", "Avon", 0), ("b", "NY", "Bath", 0)]
    graph.update(Home, "a", "US", rooms=field("rooms") - 2, visits=field("visits") + 1)
    graph.update(Home, "b", "US", city="Avon")
    assert homes(graph) == [("a", "NY", "Avon", -2), ("b", "NY", "Avon", 0)]
    graph.update(Home, "a", "US", state="WA", city="X", rooms=1)
    assert homes(graph) == [("b", "NY", "Avon", 0), ("a", "WA", "X", 1)]
    with graph.meter() as meter:
        graph.update(Home, "a", "US", visits=5)
        graph.update(Home, "a", "US", state="OR", city="Y", rooms=2)
    assert meter.requests == 2, "nothing to look for"
    with pytest.raises(NotFound, match="Home from 'z' to 'US'"):
        graph.update(Home, "z", "US", city="x")
    with pytest.raises(ConditionFailed):
        graph.update(Home, "a", "US", city="x", only_if=field("visits") == 0)
    with pytest.raises(InvalidValue, match="rooms"):
        graph.update(Home, "a", "US", rooms="many")  # type: ignore[arg-type]
    with graph.transaction() as t:
        t.update(Home, "a", "US", city="Z")
        t.update(Home, "b", "US", rooms=field("rooms") + 4)
    assert homes(graph) == [("b", "NY", "Avon", 4), ("a", "OR", "Z", 2)]
    with pytest.raises(TransactionCanceled, match="there is no Home from 'z' to 'US'"), graph.transaction() as t:
        t.update(Home, "z", "US", city="Z")


def test_a_node_joins_and_leaves_the_index(store: Any) -> None:
    graph = open_graph(store, [Book, Person], BOOKS)

    def shelf() -> list[tuple[str, str]]:
        items = [item for item in scanned(graph) if "GSI1PK" in item and "GSI1SK" in item]
        return sorted((item["GSI1PK"]["S"], item["GSI1SK"]["S"]) for item in items)

    graph.put(Book(id="a", place=-2))
    assert shelf() == []
    graph.update(Book, "a", shelf="s")
    assert shelf() == [("SHELF#s", "n498.7~#a")]
    graph.update(Book, "a", place=field("place") + 12)
    assert shelf() == [("SHELF#s", "p502.1#a")]
    graph.update(Book, "a", shelf=None)
    assert shelf() == []
    assert graph.get(Book, "a") == Book(id="a", place=10)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_change_in_between_is_not_lost(in_transaction: bool) -> None:
    between = Meanwhile(SQLiteStore(":memory:"))
    graph = Graph(between, [Person, Country, Home], HOMES)
    other = Graph(between.inner, [Person, Country, Home], HOMES)
    graph.put(Home(source="a", target="US", state="NY", city="Ely"))

    def change() -> None:
        if in_transaction:
            with graph.transaction() as t:
                t.update(Home, "a", "US", city="Avon", visits=field("visits") + 1, rooms=field("rooms") + 1)
        else:
            graph.update(Home, "a", "US", city="Avon", visits=field("visits") + 1, rooms=field("rooms") + 1)

    between.writes = 0
    between.event = lambda: other.update(Home, "a", "US", state="WA", visits=10, rooms=3)
    change()
    assert between.writes == 2, "the first attempt failed"
    assert graph.edge(Home, "a", "US") == Home(source="a", target="US", state="WA", city="Avon", visits=11, rooms=4)
    assert homes(graph) == [("a", "WA", "Avon", 4)]
    # What no index key is made of is added to, not replaced by what was read.
    between.writes = 0
    between.event = lambda: other.update(Home, "a", "US", visits=field("visits") + 100)
    change()
    assert between.writes == 1
    assert graph.edge(Home, "a", "US") == Home(source="a", target="US", state="WA", city="Avon", visits=112, rooms=5)
    between.event = lambda: other.disconnect(Home, "a", "US")
    with pytest.raises((NotFound, TransactionCanceled)):
        change()
    assert graph.edge(Home, "a", "US") is None


# --- order -------------------------------------------------------------------------------------

LAYOUTS: dict[str, Layout] = {"adjacency list": AdjacencyList(), "materialized graph": MaterializedGraph()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_changes(store: Any, layout: str) -> None:
    graph = open_graph(store, [Racer, Race, Ran, Pair], LAYOUTS[layout])
    graph.put_many([Ran(source="a", target=id, rank=rank) for id, rank in (("x", 1), ("y", 2), ("z", 3))])
    with graph.meter() as meter:
        graph.update(Ran, "a", "x", rank=9)
    assert meter.requests == 1
    assert graph.update(Ran, "a", "z", rank=field("rank") - 10, if_version=0).version == 1
    assert [edge.target for edge in graph.out("a", Ran)] == ["z", "y", "x"]
    assert [edge.rank for edge in graph.into("z", Ran).between(-9, 0)] == [-7]
    with pytest.raises(ConditionFailed, match="version is 1"):
        graph.update(Ran, "a", "z", rank=field("rank") - 10, if_version=0)
    graph.put_many([Pair(source="a", target=id, weight=Decimal(weight)) for id, weight in (("b", 1), ("c", 2))])
    made = graph.update(Pair, "a", "b", weight=field("weight") + Decimal("1.5"), label="near")
    assert made == Pair(source="a", target="b", weight=Decimal("2.5"), label="near")
    assert [edge.target for edge in graph.out("a", Pair)] == ["c", "b"]
    assert [(edge.source, edge.weight) for edge in graph.into("a", Pair)] == [("c", 2), ("b", Decimal("2.5"))]
    assert [edge.target for edge in graph.out("b", Pair)] == ["a"]
    assert list(graph.find(Pair, field("label") == "near")) == [made]
    graph.update(Pair, "b", "a", label="far")
    assert list(graph.find(Pair, field("label") == "far")) == [made.model_copy(update={"label": "far"})]
    assert graph.find(Pair, field("label") == "near").count() == 0


# --- indexed fields ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_indexed_fields_change(store: Any, layout: str) -> None:
    graph = open_graph(store, [Item, Score], LAYOUTS[layout])

    def by(name: str) -> list[str]:
        return [item.id for item in graph.find(Item, order=name)]

    graph.put(Item(id="a", price=Decimal(3), stock=1))
    graph.put(Item(id="b", price=Decimal(5), stock=9, tags=["x"]))
    assert (by("price"), by("stock"), by("tags")) == (["a", "b"], ["a", "b"], ["b"])
    changed = graph.update(Item, "a", price=field("price") + Decimal("2.5"), stock=field("stock") + 10)
    assert changed == Item(id="a", price=Decimal("5.5"), stock=11, version=1)
    assert (by("price"), by("stock"), by("tags")) == (["b", "a"], ["b", "a"], ["b"])
    graph.update(Item, "b", tags=field("tags").append("y"), price=None)
    graph.update(Item, "a", tags=["x"], if_version=1)
    assert (by("price"), by("stock"), by("tags")) == (["a"], ["b", "a"], ["a", "b"])
    graph.update(Item, "b", tags=None, sold=field("sold") + 1)
    assert (by("tags"), [item.sold for item in graph.find(Item, field("stock") == 9)]) == (["a"], [1])
    with pytest.raises(ConditionFailed):
        graph.update(Item, "b", stock=1, if_version=0)
    with pytest.raises(ConditionFailed):
        graph.update(Item, "b", stock=1, only_if=field("sold") > 3)
    with pytest.raises(ConditionFailed, match="Item 'b'"):
        graph.update(Item, "b", stock=field("stock") - 10)
    with graph.transaction() as t:
        t.update(Item, "a", tags=None, stock=field("stock") - 1)
        t.update(Item, "b", price=Decimal(1), if_version=2)
    assert (by("price"), by("stock"), by("tags")) == (["b", "a"], ["b", "a"], [])
    with pytest.raises(TransactionCanceled), graph.transaction() as t:
        t.update(Item, "a", price=Decimal(0), if_version=1)
    copies = [item for item in scanned(graph) if graph._layout.is_bookkeeping(item)]
    assert len(copies) == 2, "one for the stock of each"
    graph.delete(Item, "a")
    graph.delete(Item, "b")
    assert scanned(graph) == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_indexed_field_needs_a_look_for_relative_changes_only(layout: str) -> None:
    with Graph(":memory:", [Score], LAYOUTS[layout]) as graph:
        graph.put(Score(id="a"))
        with graph.meter() as meter:
            graph.update(Score, "a", points=5, rounds=field("rounds") + 1)
        assert meter.requests == 1
        with graph.meter() as meter:
            assert graph.update(Score, "a", points=field("points") + 5, rounds=field("rounds") + 1).points == 10
        assert meter.requests == 2
        with pytest.raises(ConditionFailed, match="Score 'a'"):
            graph.update(Score, "a", points=field("points") + 100)
        assert [score.points for score in graph.find(Score, field("points") > 5)] == [10]


def test_counting_in_an_index_loses_nothing(tmp_path: Path) -> None:
    graph = Graph(f"{tmp_path / 'g.db'}?durability=process", [Score, Item])
    graph.put(Score(id="a"))
    graph.put(Item(id="a"))
    with ThreadPoolExecutor(4) as pool:
        jobs: list[Any] = [
            pool.submit(graph.update, Score, "a", points=field("points") + 1, rounds=field("rounds") + 1)
            for _ in range(30)
        ]
        jobs += [
            pool.submit(graph.update, Item, "a", stock=field("stock") + 1, sold=field("sold") + 1) for _ in range(30)
        ]
        for job in jobs:
            job.result()
    assert list(graph.find(Score, field("points") == 30)) == [Score(id="a", points=30, rounds=30)]
    assert list(graph.find(Item, field("stock") == 30)) == [Item(id="a", stock=30, sold=30, version=30)]
    graph.close()


# --- edges with copies, and deletes ------------------------------------------------------------


class Likes(Edge[Person, Country], key=("since",)):
    since: int
    how: Annotated[str, Indexed()] = ""
    why: Annotated[str | None, Indexed()] = None


class Close(Edge[Person, Person], symmetric=True):
    how: Annotated[str, Indexed()] = ""
    why: Annotated[str | None, Indexed()] = None


@pytest.mark.parametrize("layout", [*LAYOUTS, "keys only"])
@pytest.mark.parametrize("most", [100, 4])
def test_copies_of_edges_go_with_them(layout: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", most)
    keys_only = AdjacencyList(reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=Projection("KEYS_ONLY")))
    with Graph(":memory:", [Person, Country, Likes, Close], LAYOUTS.get(layout, keys_only)) as graph:
        graph.put_many([Person(id="a"), Person(id="b"), Country(id="US"), Country(id="CA")])
        for since in range(3):
            graph.connect(Likes, "a", "US", since=since, how=str(since), why="w")
            graph.put(Likes(source="b", target="CA", since=since, how="h", why=None))
        graph.put(Close(source="b", target="a", how="x", why="y"))
        assert [edge.since for edge in graph.find(Likes, field("why") == "w")] == [0, 1, 2]
        assert list(graph.find(Close, field("why") == "y")) == [Close(source="a", target="b", how="x", why="y")]
        graph.update(Likes, "a", "US", since=1, why="v")
        assert [edge.since for edge in graph.find(Likes, order="why")] == [1, 0, 2]
        assert graph.disconnect(Likes, "a", "US", since=0)
        assert not graph.disconnect(Likes, "a", "US", since=0)
        assert [edge.since for edge in graph.find(Likes, order="why")] == [1, 2]
        assert graph.delete(Country, "US")
        assert list(graph.find(Likes, order="why")) == []
        assert graph.delete(Person, "b")
        for query in (graph.find(Close), graph.find(Close, order="why"), graph.find(Likes)):
            assert query.count() == 0
        assert len(scanned(graph)) == 2, "a person and a country are left"


class Task(Node):
    id: int
    status: str = "open"
    note: str = ""
    by_status: str = ""
    made: str = Field(default_factory=lambda: uuid.uuid4().hex)

    @model_validator(mode="after")
    def _keep_key(self) -> Self:
        number = 9999 - self.id if self.status == "open" else self.id
        self.__dict__["by_status"] = f"{self.status}#{number:04}"
        return self


@pytest.mark.parametrize("unique", [False, True])
def test_a_field_that_the_class_derives_changes_with_what_it_is_derived_from(unique: bool) -> None:
    """So an index key may depend on other fields in a way that no template expresses."""

    class Job(Task):
        code: Annotated[str | None, Unique()] = None

    model: type[Task] = Job if unique else Task
    layout = AdjacencyList(
        reverse=None, indexes=[Index("ByStatus", "OfAll", "by_status")], keys={model: Keys(indexes={"ByStatus": "ALL"})}
    )
    with Graph(":memory:", [model], layout) as g:
        g.put_many(model(id=number) for number in (7, 8, 9))
        changed = g.update(model, 8, status="done")
        assert (changed.by_status, g.get(model, 8)) == ("done#0008", changed)
        assert [each.id for each in g.index("ByStatus").partition("ALL")] == [8, 9, 7]
        with g.transaction() as t:
            t.update(model, 7, status="done")
        assert [each.id for each in g.index("ByStatus").partition("ALL")] == [7, 8, 9]
        item = [each.new_item for each in g.changes() if isinstance(each.new, model) and each.new.id == 7][-1]
        assert item is not None
        assert item["by_status"] == {"S": "done#0007"}


def test_a_default_that_is_made_anew_is_not_derived() -> None:
    with Graph(":memory:", [Task]) as g:
        key = {"PK": {"S": "TASK#7"}, "SK": {"S": "#META"}}
        g._store.execute([Put(g._layout.table, {**key, "by_status": {"S": "open#9992"}})])
        g.update(Task, 7, note="x")
        (response,) = g._store.execute([Get(g._layout.table, key)])
        assert response.item == {**key, "by_status": {"S": "open#9992"}, "note": {"S": "x"}}  # type: ignore[union-attr]


def test_a_derived_field_that_only_an_index_key_holds_follows_an_update() -> None:
    class Deal(Node):
        id: str
        at: dt.datetime
        day: dt.date | None = None

        @model_validator(mode="after")
        def of_that_day(self) -> Self:
            self.__dict__["day"] = self.at.date()
            return self

    by_day = {"ByDay": ("DEALS#{day}", "{at}")}
    layout = AdjacencyList(
        indexes=[Index("ByDay", "DayPK", "DaySK")], keys={Deal: Keys(indexes=by_day, only_in_keys=["day"])}
    )
    graph = Graph(":memory:", [Deal], layout)
    first, second = dt.datetime(2026, 1, 1, 9), dt.datetime(2026, 1, 2, 10)
    graph.put(Deal(id="1", at=first))
    changed = graph.update(Deal, "1", at=second)
    assert changed == graph.get(Deal, "1") == Deal(id="1", at=second)
    assert list(graph.find(Deal, field("day") == second.date())) == [changed]
    assert list(graph.find(Deal, field("day") == first.date())) == []
