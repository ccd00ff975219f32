"""Ids and keys: distinct ids have distinct keys, equal ids equal ones, and each key is of one id or of nobody."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import StringConstraints

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Edge,
    Graph,
    Indexed,
    InvalidKey,
    InvalidModel,
    Keys,
    MaterializedGraph,
    Node,
    Unique,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.key_values import transform
from adjoin.layouts.keys import Part, Quoting, Template
from adjoin.requests import Put
from adjoin.schema import Schema
from adjoin.stores.sqlite import SQLiteStore


class Mixed(Enum):
    NUMBER = 1
    TEXT = "1"


class Apart(Enum):
    NUMBER = 1
    TEXT = "one"
    EXACT = Decimal("2.50")
    DAY = dt.date(2024, 1, 2)
    MOMENT = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)


# --- distinct and equal ------------------------------------------------------------------------


def test_members_that_are_spelled_alike_are_refused_where_they_are_in_keys() -> None:
    class ById(Node):
        id: Mixed

    class Target(Node):
        id: str

    class ByKey(Edge[Target, Target], key=("kind",)):
        kind: Mixed

    class ByOrder(Edge[Target, Target], order="kind"):
        kind: Mixed

    class Claimed(Node):
        id: str
        kind: Annotated[Mixed, Unique()]

    class Found(Node):
        id: str
        kind: Annotated[Mixed, Indexed()]

    for models in ([ById], [Target, ByKey], [Target, ByOrder], [Claimed], [Found]):
        with pytest.raises(InvalidModel, match="'1'"):
            Graph(":memory:", models)

    class Stored(Node):
        id: str
        kind: Mixed

    g: Any = Graph(":memory:", [Stored])
    g.put_many([Stored(id="a", kind=Mixed.NUMBER), Stored(id="b", kind=Mixed.TEXT)])
    assert [each.kind for each in g.get_many(Stored, ["a", "b"])] == [Mixed.NUMBER, Mixed.TEXT]


def test_members_of_any_type_come_back_from_keys() -> None:
    class Thing(Node):
        id: Apart

    class Joins(Edge[Thing, Thing]):
        pass

    g: Any = Graph(":memory:", [Thing, Joins])
    for one in Apart:
        g.put(Thing(id=one))
        assert g.get(Thing, one) == Thing(id=one)
        g.put_many(Joins(source=one, target=other) for other in Apart)
        assert {edge.target for edge in g.out(one, Joins)} == {*Apart}


def test_ids_of_more_than_one_type_are_refused() -> None:
    class Thing(Node):
        id: int | str

    with pytest.raises(InvalidModel, match=r"Thing\.id"):
        Graph(":memory:", [Thing])


SAME: list[tuple[Any, list[Any]]] = [
    (Decimal, [Decimal("1"), Decimal("1.0"), Decimal("1e0"), "1.00"]),
    (int, [1, "1", True]),
    (UUID, ["6F9619FF-8B86-D011-B42D-00CF4FC964FF", UUID("6f9619ff8b86d011b42d00cf4fc964ff")]),
    (dt.datetime, ["2024-01-01T12:00:00+00:00", "2024-01-01T13:00:00+01:00", "2024-01-01T12:00:00.000Z"]),
    (dt.date, ["2024-01-01", dt.date(2024, 1, 1)]),
]


@pytest.mark.parametrize(("type_", "ids"), SAME)
def test_equal_ids_are_one_node(type_: Any, ids: list[Any]) -> None:
    class Thing(Node):
        id: type_

    g: Any = Graph(":memory:", [Thing])
    for id in ids:
        g.put(Thing(id=id))
        for other in ids:
            assert g.get(Thing, other) == Thing(id=id)
    assert len({str(change.new_item) for change in g.changes()}) == 1


DISTINCT: list[tuple[Any, list[Any]]] = [
    (dt.datetime, ["2024-01-01T12:00:00", "2024-01-01T12:00:00Z", "2024-01-01T12:00:00+01:00"]),
    (Decimal, [Decimal("1"), Decimal("10"), Decimal("-1"), Decimal("0.1"), Decimal(0)]),
    (str, ["1", "01", " 1", "1 ", "%31", "1#", "é", "e\u0301", "A", "a"]),
]


@pytest.mark.parametrize(("type_", "ids"), DISTINCT)
def test_distinct_ids_are_distinct_nodes(type_: Any, ids: list[Any]) -> None:
    class Thing(Node):
        id: type_

    g: Any = Graph(":memory:", [Thing])
    things = [Thing(id=id) for id in ids]
    g.put_many(things)
    assert g.get_many(Thing, ids) == things
    assert len({str(change.new_item) for change in g.changes()}) == len(ids)


# --- nothing is no id --------------------------------------------------------------------------


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    since: int = 0


class Numbered(Node):
    id: int


class Lower(Node):
    id: Annotated[str, StringConstraints(to_lower=True)]


MODELS: list[type[Any]] = [Person, Knows, Numbered, Lower]
LAYOUTS = [AdjacencyList(), MaterializedGraph(), AdjacencyList(keys={Person: Keys(partition="P#{id}", sort="P")})]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["adjacency list", "materialized", "literal"])
def test_an_empty_id_is_refused(layout: Any) -> None:
    g: Any = Graph(":memory:", MODELS, layout)
    calls: list[Callable[[], Any]] = [
        lambda: g.put(Person(id="")),
        lambda: g.add(Person(id="")),
        lambda: g.put_many([Person(id="")]),
        lambda: g.get(Person, ""),
        lambda: g.get_many(Person, ["a", ""]),
        lambda: g.put(Knows(source="", target="a")),
        lambda: g.put(Knows(source="a", target="")),
        lambda: g.connect(Knows, "a", ""),
        lambda: g.edge(Knows, "a", ""),
        lambda: g.update(Person, "", name="x"),
        lambda: g.delete(Person, ""),
        lambda: list(g.out("", Knows)),
        lambda: list(g.into("", Knows)),
    ]
    for call in calls:
        with pytest.raises(InvalidKey, match="empty"):
            call()
    assert list(g.changes()) == []


# --- keys that are nobody's --------------------------------------------------------------------


def key(partition: str, sort: str = "#META") -> dict[str, Any]:
    return {"PK": {"S": partition}, "SK": {"S": sort}}


NOBODYS = [
    key("PERSON#%41"),
    key("PERSON#"),
    key("PERSON#%2d"),
    key("PERSON#a b"),
    key("PERSON#a%"),
    key("PERSON#%0"),
    key("PERSON#!"),
    key("NUMBERED#01"),
    key("NUMBERED#+1"),
    key("NUMBERED#1_0"),
    key("NUMBERED# 1"),
    key("NUMBERED#\u0661"),
    key("NUMBERED#one"),
    key("NUMBERED#-0"),
    key("LOWER#ABC"),
]


def stored_by_others(items: list[dict[str, Any]]) -> Any:
    store = SQLiteStore(":memory:")
    g: Any = Graph(store, MODELS)
    store.execute(tuple(Put("adjoin", item) for item in items))
    return g


@pytest.mark.parametrize("item", NOBODYS, ids=lambda item: item["PK"]["S"])
def test_a_key_that_spells_no_id_is_nobodys(item: dict[str, Any]) -> None:
    g = stored_by_others([item])
    (change,) = g.changes()
    assert change.new is None
    assert "no class" in change.problem


def test_edges_with_such_keys_are_nobodys_too() -> None:
    ends = [("PERSON#a", "PERSON#%42"), ("PERSON#%41", "PERSON#b"), ("PERSON#a", "PERSON#"), ("PERSON#a", "PERSON#x y")]
    edges = [
        key(source, f"KNOWS#{target}") | {"GSI1PK": {"S": target}, "GSI1SK": {"S": f"KNOWS#{source}"}}
        for source, target in ends
    ]
    g = stored_by_others([*edges, key("PERSON#a", "KNOWS#PERSON#b")])
    changes = list(g.changes())
    assert [change.new for change in changes] == [None] * 4 + [Knows(source="a", target="b")]
    assert list(g.out("a", Knows)) == [Knows(source="a", target="b")]
    collection = g.collection(Person.ref("a"))
    assert (len(collection.edges), len(collection.others)) == (1, 3)


class Owns(Edge[Person, Numbered]):
    pass


class OwnedBy(Edge[Numbered, Person]):
    pass


def test_one_end_that_spells_no_id_is_enough() -> None:
    layout = AdjacencyList().bind(Schema([Person, Numbered, Owns, OwnedBy]))
    spelled = {"PERSON#a": "NUMBERED#1", "PERSON#b": "NUMBERED#01", "PERSON#c": "NUMBERED#+1"}
    for person, numbered in spelled.items():
        items = {Owns: key(person, f"OWNS#{numbered}"), OwnedBy: key(numbered, f"OWNED_BY#{person}")}
        expected: dict[Any, Any] = {Owns: None, OwnedBy: None}
        if numbered == "NUMBERED#1":
            expected = {Owns: Owns(source="a", target=1), OwnedBy: OwnedBy(source=1, target="a")}
        # Whoever knows the class, and whoever does not.
        assert {model: layout.decode(layout.schema.edge(model), item) for model, item in items.items()} == expected
        assert {model: layout.read(item) for model, item in items.items()} == expected


@given(st.text(alphabet="%#| !aB0123456789ABCDEFabcdef\x00\x1fé-+._~op", max_size=8))
def test_a_key_is_spelled_as_its_id_is_or_is_nobodys(text: str) -> None:
    layout = typed_layout()
    for model in TYPED:
        kind = layout.schema.node(model)
        item = key(f"{kind.label}#{text}")
        found: Any = layout.read(item)
        if found is not None:
            assert layout.node_text(kind, found.id) == f"{kind.label}#{text}"
            assert layout.id_in(kind, f"{kind.label}#{text}") == found.id


class Exact(Node):
    id: Decimal


class Moment(Node):
    id: dt.datetime


class Coded(Node):
    id: UUID


class Chosen(Node):
    id: Apart


TYPED: list[Any] = [Person, Numbered, Lower, Exact, Moment, Coded, Chosen]


@cache
def typed_layout() -> BoundLayout:
    return AdjacencyList().bind(Schema(TYPED))


@given(
    st.sampled_from(["", "sortable", "04"]),
    st.sampled_from([str, int, Decimal]),
    st.text(alphabet="%23AB|#. ~np0159-", max_size=12) | st.from_regex(r"\A[np]\d{3}\.\d{1,4}~?\Z"),
    st.booleans(),
)
def test_what_a_template_matches_it_renders(spec: str, plain: type, text: str, escape: bool) -> None:
    assume(not (spec and plain is str) and not (spec == "04" and plain is Decimal))
    quoting = Quoting(frozenset("#|"), escape=escape)
    template = Template("Thing", ["T#", Part("id", transform(spec), plain, is_id=True), "|x"], quoting)
    told = template.match(f"T#{text}|x")
    if told is not None:
        assert template.render({"id": plain(told["id"])}) == f"T#{text}|x"


@given(st.text(max_size=20))
def test_any_text_is_an_id_that_comes_back(text: str) -> None:
    template = Template(
        "Thing", ["T#", Part("id", transform(""), str, is_id=True)], Quoting(frozenset("#"), escape=True)
    )
    if not text:
        with pytest.raises(AdjoinError):
            template.render({"id": text})
        return
    assert template.match(template.render({"id": text})) == {"id": text}
