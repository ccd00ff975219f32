"""Sharp corners, one test each: what once went wrong silently, or could."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Field, RootModel, StrictInt, field_validator

from adjoin import (
    AdjacencyList,
    AdjoinError,
    ConditionFailed,
    Edge,
    Expires,
    Graph,
    Index,
    InvalidModel,
    InvalidRequest,
    InvalidValue,
    Keys,
    Node,
    Projection,
    StoreClosed,
    TableMismatch,
    field,
)
from adjoin.fields import AnyOf
from adjoin.requests import Delete, Request, Response, TransactWrite
from adjoin.stores.sqlite import SQLiteStore


class Place(Node):
    id: str


class Road(Edge[Place, Place]):
    name: str = ""
    miles: int = 0


class Ordered(Edge[Place, Place], order="rank"):
    rank: int = 0


class Named(Edge[Place, Place], order="name", key=("name",)):
    name: str


def memory(*models: Any, layout: AdjacencyList | None = None) -> Graph:
    return Graph(":memory:", models, layout)


# --- layouts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        AdjacencyList(edge="{label}#{target}"),
        AdjacencyList(keys={Ordered: Keys(sort="O#{target}", reverse_sort="O#{rank:04}#{source}")}),
    ],
)
def test_a_field_that_only_an_index_key_tells_is_stored(layout: AdjacencyList) -> None:
    g = memory(Ordered, layout=layout)
    edge = Ordered(source="a", target="b", rank=5)
    g.put(edge)
    assert g.edge(Ordered, "a", "b") == edge
    assert list(g.out("a", Ordered)) == list(g.into("b", Ordered)) == [edge]


@pytest.mark.parametrize(
    "layout",
    [
        AdjacencyList(edge="{label}#{target.id:upper}"),
        AdjacencyList(edge="{label}#{target:upper}"),
        AdjacencyList(edge="{label:lower}#{target}"),
        AdjacencyList(edge="{label}#{rank:%Y}#{target}"),
        AdjacencyList(edge="{label}#{rank}#{target}"),
        AdjacencyList(ordered=Index("GSI2", "GSI2PK", "GSI2SK", partition="X#{source.id}")),
        AdjacencyList(ordered=Index("GSI2", "GSI1PK", "GSI2SK")),
        AdjacencyList(ordered=Index("GSI2", "GSI2PK", "GSI2SK", sort="{label}#{target}")),
        AdjacencyList(ordered=Index("GSI2", "GSI2PK")),
        AdjacencyList(type_attribute="PK"),
        AdjacencyList(sort_key="PK"),
        AdjacencyList(node="METADATA", edge="#{target.id}"),
    ],
)
def test_layouts_that_would_lose_or_hide_something_are_refused(layout: AdjacencyList) -> None:
    with pytest.raises(InvalidModel):
        memory(Ordered, layout=layout)


def test_a_shortened_part_has_no_ranges_but_prefixes() -> None:
    class Visit(Edge[Place, Place]):
        at: dt.datetime

    layout = AdjacencyList(keys={Visit: Keys(sort="V#{target}", reverse_sort="{at:%Y-%m}#{source}")})
    g = memory(Visit, layout=layout)
    g.put(Visit(source="a", target="b", at=dt.datetime(2020, 1, 1)))
    assert len(list(g.into("b", Visit).begins_with("2020"))) == 1
    with pytest.raises(InvalidValue, match="shortened"):
        g.into("b", Visit).between(dt.datetime(2020, 1, 10), dt.datetime(2020, 1, 20))


def test_an_order_index_that_classes_share_counts_each_alone() -> None:
    class Other(Edge[Place, Place], order="rank"):
        rank: int = 0

    layout = AdjacencyList(ordered=Index("GSI2", "GSI2PK", "GSI2SK", sort="{rank:sortable}#{target}"))
    g = memory(Ordered, Other, layout=layout)
    g.put(Ordered(source="a", target="b"))
    g.put(Other(source="a", target="b"))
    assert len(list(g.out("a", Ordered))) == g.out("a", Ordered).count() == 1


def test_an_index_with_another_projection_is_another_index(tmp_path: Path) -> None:
    narrow = AdjacencyList(reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=Projection("KEYS_ONLY")))
    Graph(tmp_path / "p.db", [Road], narrow).close()
    with pytest.raises(TableMismatch, match="KEYS_ONLY"):
        Graph(tmp_path / "p.db", [Road])


def test_names_with_spaces_sort_in_a_key_that_adjoin_made() -> None:
    class Titled(Edge[Place, Place], order="title"):
        title: str

    g = memory(Titled, layout=AdjacencyList(edge="{label}#{target}"))
    for title in ("Bob", "Ann Lee", "Ann"):
        g.put(Titled(source="a", target=title, title=title))
    assert [edge.title for edge in g.out("a", Titled)] == ["Ann", "Ann Lee", "Bob"]
    assert [edge.title for edge in g.out("a", Titled).between("A", "Ann")] == ["Ann"]


# --- values ------------------------------------------------------------------------------------


class Rank(Enum):
    LOW = 2
    HIGH = 10


@pytest.mark.parametrize(("hint", "id"), [(Rank, Rank.HIGH), (Literal[1, 2], 2), (StrictInt, 7)])
def test_ids_that_are_no_text_come_back_as_they_were(hint: Any, id: Any) -> None:
    class Thing(Node):
        id: hint

    class Tie(Edge[Thing, Thing]):
        pass

    g = memory(Thing, Tie)
    g.put(Thing(id=id))
    g.put(Tie(source=id, target=id))
    assert g.get(Thing, id) == Thing(id=id)
    assert list(g.into(id, Tie)) == [Tie(source=id, target=id)]


def test_numbers_behind_an_enum_sort_as_numbers() -> None:
    class Ranked(Edge[Place, Place], order="rank"):
        rank: Rank

    g = memory(Ranked)
    for rank in Rank:
        g.put(Ranked(source="a", target=rank.name, rank=rank))
    assert [edge.rank for edge in g.out("a", Ranked)] == [Rank.LOW, Rank.HIGH]
    assert len(list(g.out("a", Ranked).between(Rank.LOW, Rank.HIGH))) == 2


def test_a_late_expiry_stays_late() -> None:
    class Session(Node):
        id: str
        until: Annotated[dt.datetime, Expires()]

    g = memory(Session)
    end = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    g.put(Session(id="s", until=end))
    assert g.get(Session, "s") == Session(id="s", until=end)


def test_a_number_stored_as_the_expiry_attribute_is_refused() -> None:
    class Session(Node):
        id: str
        expires: Annotated[dt.datetime, Expires()]

    class Coupon(Node):
        id: str
        expires: int

    with pytest.raises(InvalidModel, match=r"Coupon\.expires"):
        memory(Session, Coupon)


class City(BaseModel):
    name: str = Field("none", validation_alias="c", serialization_alias="City")


class Loose(BaseModel, extra="allow"):
    pass


class Words(RootModel[list[str]]):
    pass


def test_nested_models_keep_everything() -> None:
    class Trip(Node):
        id: str
        city: City
        loose: Loose
        words: Words

    g = memory(Trip)
    trip = Trip(id="t", city=City(c="Rome"), loose=Loose(more=1), words=Words(["a"]))
    g.put(trip)
    assert g.get(Trip, "t") == trip


def test_an_alias_may_be_the_name_of_another_field() -> None:
    class Book(Node):
        id: str = Field(alias="key")
        name: str = Field(alias="title")
        title: str = Field(alias="id")
        tags: list[str] = []

    g = memory(Book)
    book = Book(key="b", title="NAME", id="TITLE")
    g.put(book)
    assert g.get(Book, "b") == book


def test_a_strict_class_reads_what_it_wrote() -> None:
    class Strict(Node, strict=True):
        id: str
        day: dt.date

    g = memory(Strict)
    g.put(Strict(id="s", day=dt.date(2024, 1, 1)))
    assert g.get(Strict, "s") == Strict(id="s", day=dt.date(2024, 1, 1))


def test_a_ref_is_not_spelled_out_as_an_id() -> None:
    class Thing(Node):
        id: Annotated[str, BeforeValidator(str)]

    class Tie(Edge[Thing, Thing]):
        pass

    assert Tie(source=Thing.ref("x"), target=Thing(id="y")) == Tie(source="x", target="y")


def test_what_cannot_be_stored_is_said() -> None:
    class Thing(Node):
        id: str
        at: dt.datetime | None = None
        entries: dict[int | str, int] = {}
        length: dt.timedelta = dt.timedelta()

    class Tie(Edge[Thing, Thing]):
        length: dt.timedelta = dt.timedelta()

    g = memory(Thing, Tie)
    west = dt.timezone(dt.timedelta(hours=-5))
    with pytest.raises(InvalidValue, match="9999"):
        g.put(Thing(id="t", at=dt.datetime.max.replace(tzinfo=west)))
    with pytest.raises(InvalidValue, match="two keys"):
        g.put(Thing(id="t", entries={1: 1, "1": 2}))
    with pytest.raises(InvalidValue, match="duration"):
        g.out("t", Tie).where(field("length") > dt.timedelta(hours=3))


# --- updates -----------------------------------------------------------------------------------


class Counter(Node):
    id: str
    even: Annotated[int, Field(ge=0, le=100)] = 0
    exact: Decimal = Decimal(0)
    tags: list[str] = []
    model: str = ""

    @field_validator("even")
    @classmethod
    def _must_be_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"even": 3}, InvalidValue),
        ({"even": field("even") + Decimal("0.5")}, InvalidValue),
        ({"even": field("even") - 2}, ConditionFailed),
        ({"even": field("even") + 102}, ConditionFailed),
        ({"tags": field("tags").append(5)}, InvalidValue),
        ({"exact": field("exact") + "1"}, InvalidValue),
    ],
)
def test_an_update_never_stores_what_the_class_would_refuse(changes: dict[str, Any], error: type[Exception]) -> None:
    g = memory(Counter)
    g.put(Counter(id="c"))
    with pytest.raises(error):
        g.update(Counter, "c", **changes)
    assert g.get(Counter, "c") == Counter(id="c")


def test_updates_that_hold() -> None:
    g = memory(Counter)
    g.put(Counter(id="c", even=2))
    many = Decimal("12345678901234567890123456789012345678")
    g.update(Counter, "c", even=field("even") - 2, exact=field("exact") - many, model="T")
    assert g.get(Counter, "c") == Counter(id="c", exact=many.copy_negate(), model="T")


# --- deletes and transactions ------------------------------------------------------------------


class Big(Edge[Place, Place]):
    body: str = ""


class BigTwin(Edge[Place, Place], symmetric=True):
    body: str = ""


@pytest.mark.parametrize(
    "edges",
    [
        [Big(source="a", target=f"{number}", body="x" * 300_000) for number in range(40)],
        [BigTwin(source="a", target=f"{number}", body="x" * 150_000) for number in range(20)],
        [Big(source=f"{number}", target="a", body="x" * 300_000) for number in range(20)],
        [Big(source="a", target=f"{number}", body="x" * (409_500 if number == 7 else 1)) for number in range(120)],
    ],
)
@pytest.mark.parametrize("projection", [Projection(), Projection("KEYS_ONLY")])
def test_large_edges_can_be_deleted(edges: list[Any], projection: Projection) -> None:
    layout = AdjacencyList(reverse=Index("GSI1", "GSI1PK", "GSI1SK", projection=projection))
    g = memory(Place, Big, BigTwin, layout=layout)
    g.put(Place(id="a"))
    g.put_many(edges)
    assert g.delete(Place, "a") is True
    for edge in edges:
        assert g.edge(type(edge), edge.source, edge.target) is None


class Meddling:
    """A store before whose deletes somebody else does something."""

    creates_tables = True

    def __init__(self, inner: SQLiteStore, meddle: Callable[[], Any]) -> None:
        self.inner, self.meddle = inner, meddle

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if isinstance(requests[0], Delete | TransactWrite):
            meddle, self.meddle = self.meddle, lambda: None
            meddle()
        return self.inner.execute(requests)

    def close(self) -> None:
        pass


def test_an_edge_connected_during_a_delete_does_not_stay() -> None:
    store = SQLiteStore(":memory:")
    g = Graph(store, [Place, Road])
    g.put_many([Place(id="a"), Place(id="b")])
    other = Graph(Meddling(store, lambda: g.connect(Road, "b", "a")), [Place, Road])
    other.delete(Place, "a")
    assert g.get(Place, "a") is None
    assert list(g.out("b", Road)) == []


def test_a_transaction_drops_nothing_silently() -> None:
    g = memory(Place, Road)
    g.put_many([Place(id="a"), Place(id="b")])
    with pytest.raises(InvalidRequest, match="once"), g.transaction() as t:
        t.delete(Place, "a")
        t.put(Place(id="a"))
    with pytest.raises(InvalidRequest, match="needs a node that"), g.transaction() as t:
        t.put(Road(source="b", target="a"))
        t.delete(Place, "a")
    with g.transaction() as t:
        t.delete(Place.ref("a"))
        t.delete(Place(id="b"))
    assert g.get_many(Place, ["a", "b"]) == [None, None]


# --- queries -----------------------------------------------------------------------------------


def test_pairs_are_counted_as_pairs() -> None:
    g = memory(Place, Road)
    g.put_many([Place(id="z"), *(Road(source="s", target=target) for target in "abz")])
    pairs = g.out("s", Road).nodes()
    assert pairs.count() == len(list(pairs)) == len(list(pairs.limit(1))) == len(pairs.page(limit=1)) == 1
    assert pairs.first() is not None


def test_edges_without_a_far_node_do_not_cost_a_request_each() -> None:
    g = memory(Place, Road)
    g.put_many(Road(source="s", target=f"{number:04}") for number in range(1000))
    g.put_many([Place(id="0500"), Place(id="0501"), Place(id="0999")])
    pairs = g.out("s", Road).nodes()
    with g.meter() as meter:
        page = pairs.page(limit=1)
    assert [node.id for _, node in page] == ["0500"]
    assert meter.requests < 20
    rest = pairs.page(limit=5, after=page.next)
    assert [node.id for _, node in rest] == ["0501", "0999"]
    assert [node.id for _, node in pairs.limit(2)] == ["0500", "0501"]


def test_a_limit_holds_across_pages() -> None:
    g = memory(Road)
    g.put_many(Road(source="s", target=str(number)) for number in range(8))
    limited = g.out("s", Road).limit(5)
    first = limited.page(limit=3)
    second = limited.page(limit=3, after=first.next)
    assert (len(first), len(second), second.next) == (3, 2, None)


def test_is_in_knows_none() -> None:
    class Maybe(Edge[Place, Place]):
        note: str | None = None

    g = memory(Maybe)
    g.put_many(
        [
            Maybe(source="a", target="1"),
            Maybe(source="a", target="2", note="x"),
            Maybe(source="a", target="3", note="y"),
        ]
    )
    found = g.out("a", Maybe).where(field("note").is_in([None, "x"]))
    assert [edge.target for edge in found] == ["1", "2"]


def test_a_long_chain_of_comparisons_is_flat() -> None:
    g = memory(Road)
    chain = field("name") == "0"
    wide: Any = chain
    for number in range(2000):
        wide = wide | (field("name") == str(number))
    assert (len(wide.predicates), wide.depth) == (2001, 1)
    g.put(Road(source="a", target="b", name="1999"))
    # DynamoDB takes 300 operators in a filter.
    assert g.out("a", Road).where(AnyOf(wide.predicates[-150:])).count() == 1
    with pytest.raises(InvalidRequest, match="the filter takes"):
        g.out("a", Road).where(wide).count()


def test_a_collection_s_node_is_the_one_asked_for() -> None:
    class Owned(Node):
        id: str
        owner: str

    keys = {Owned: Keys(reverse_partition="PLACE#{owner}", reverse_sort="OWNED#{id}")}
    g = memory(Place, Owned, layout=AdjacencyList(keys=keys))
    g.put(Owned(id="o", owner="a"))
    assert g.collection(Place.ref("a"), direction="into").node is None


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.out("a", Road).limit("3"),
        lambda g: g.out("a", Road).limit(None),
        lambda g: g.out("a", Road).page(limit=1.5),
        lambda g: g.out("a", Road).page(limit=10**30),
        lambda g: field(5),
        lambda g: g.get(Place(id="x"), "a"),
        lambda g: g.update(Place(id="x"), name="a"),
        lambda g: g.explain("x"),
        lambda g: g.changes(after=5).__next__(),
        lambda g: Graph(":memory:", Place),  # type: ignore[arg-type]
        lambda g: Graph(":memory:", [Place(id="x")]),  # type: ignore[list-item]
        lambda g: Graph(":memory:", [Node]),
        lambda g: Graph(":memory:", [Place], "Education"),  # type: ignore[arg-type]
        lambda g: Graph(":memory:", [Place], cursor_secret=""),
        lambda g: bool(g.out("a", Road)),
    ],
)
def test_bad_input_is_an_error_of_ours(call: Callable[[Any], Any]) -> None:
    g = memory(Place, Road)
    with pytest.raises(AdjoinError):
        call(g)


def test_a_graph_that_fails_to_open_leaves_a_given_store_alone() -> None:
    store = SQLiteStore(":memory:")
    g = Graph(store, [Place])
    with pytest.raises(TableMismatch):
        Graph(store, [Place], AdjacencyList(partition_key="NodeId"))
    g.put(Place(id="a"))
    g.close()
    with pytest.raises(StoreClosed):
        g.get(Place, "a")
