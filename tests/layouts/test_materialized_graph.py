"""Exact items of the materialized graph and of indexed and unique fields: tables of input and what is stored."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidItem,
    InvalidKey,
    InvalidModel,
    Keys,
    MaterializedGraph,
    Node,
    Throughput,
    Unique,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.layouts.interface import Layout
from adjoin.requests import Put
from adjoin.schema import Schema
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition


class Level(Enum):
    SENIOR = "senior"


class Person(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


class Skill(Node):
    id: str


class Knows(Edge[Person, Skill]):
    level: Annotated[Level, Indexed()] = Level.SENIOR
    years: Annotated[int, Indexed()] = 0


class Friend(Edge[Person, Person], symmetric=True, order="since"):
    since: Annotated[int, Indexed()] = 0


MODELS: list[Any] = [Person, Skill, Knows, Friend]


def bound(layout: Layout, tenant: str | None = None) -> BoundLayout:
    return layout.bind(Schema(MODELS), tenant)


def plain(item: Any) -> dict[str, str]:
    return {name: str(next(iter(value.values()))) for name, value in item.items()}


def stored(layout: BoundLayout, entity: Any) -> list[dict[str, str]]:
    """All items that an entity is stored as, its satellites behind its own."""
    items = layout.items(entity)
    kind = layout.kind_of(items[0])
    assert kind is not None
    beside = [each.item for each in layout.satellites(kind, items, entity.__dict__) if each.item is not None]
    return [plain(item) for item in (*items, *beside)]


ANN = Person(id="P1", name="Ann #1", born=dt.date(1980, 12, 19), email="a@b.c")

ITEMS: list[tuple[Any, list[dict[str, str]]]] = [
    (
        ANN,
        [
            {
                "NodeId": "PERSON#P1", "TypeTarget": "PERSON#P1",
                "GSIPK": "PERSON#name#0", "Data": "Ann%20%231#PERSON#P1",
                "name": "Ann #1", "born": "1980-12-19", "email": "a@b.c",
            },
            {
                "NodeId": "PERSON#P1#=", "TypeTarget": "born#PERSON#P1",
                "GSIPK": "PERSON#born#0", "Data": "1980-12-19#PERSON#P1",
                "name": "Ann #1", "born": "1980-12-19", "email": "a@b.c",
            },
            {"NodeId": "#=PERSON#email#a@b.c", "TypeTarget": "=", "adjoin:owner": "PERSON#P1"},
        ],
    ),
    (
        Person(id="=", name=""),
        [{"NodeId": "PERSON#=", "TypeTarget": "PERSON#=", "GSIPK": "PERSON#name#0", "Data": "#PERSON#=", "name": ""}],
    ),
    (Skill(id="py"), [{"NodeId": "SKILL#py", "TypeTarget": "SKILL#py"}]),
    (
        Knows(source="P1", target="py", years=-5),
        [
            {
                "NodeId": "PERSON#P1", "TypeTarget": "KNOWS#SKILL#py",
                "Target": "SKILL#py", "TypeSource": "KNOWS#PERSON#P1",
                "GSIPK": "KNOWS#level#0", "Data": "senior#PERSON#P1#KNOWS#SKILL#py",
                "level": "senior", "years": "-5",
            },
            {
                "NodeId": "PERSON#P1#=", "TypeTarget": "years#KNOWS#SKILL#py",
                "GSIPK": "KNOWS#years#0", "Data": "n498.4~#PERSON#P1#KNOWS#SKILL#py",
                "level": "senior", "years": "-5",
            },
        ],
    ),
    (
        Friend(source="P2", target="P1", since=3),
        [
            {
                "NodeId": "PERSON#P2", "TypeTarget": "FRIEND#PERSON#P1",
                "Source": "PERSON#P2", "TypeOrder": "FRIEND#p501.3#PERSON#P1", "since": "3",
            },
            {
                "NodeId": "PERSON#P1", "TypeTarget": "FRIEND#PERSON#P2",
                "Source": "PERSON#P1", "TypeOrder": "FRIEND#p501.3#PERSON#P2", "since": "3",
                "GSIPK": "FRIEND#since#0", "Data": "p501.3#PERSON#P1#FRIEND#PERSON#P2",
            },
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("entity", "items"), ITEMS)
def test_items(entity: Any, items: list[dict[str, str]]) -> None:
    layout = bound(MaterializedGraph())
    assert stored(layout, entity) == items
    assert layout.read(layout.items(entity)[0]) == entity


def test_items_of_a_tenant() -> None:
    layout = bound(MaterializedGraph(shards=1), "acme")
    keys = [
        {name: value for name, value in item.items() if name not in ("name", "born", "email")}
        for item in stored(layout, ANN)
    ]
    assert keys == [
        {
            "NodeId": "acme#PERSON#P1", "TypeTarget": "PERSON#P1",
            "GSIPK": "acme#PERSON#name#0", "Data": "Ann%20%231#PERSON#P1",
        },
        {
            "NodeId": "acme#PERSON#P1#=", "TypeTarget": "born#PERSON#P1",
            "GSIPK": "acme#PERSON#born#0", "Data": "1980-12-19#PERSON#P1",
        },
        {"NodeId": "acme##=PERSON#email#a@b.c", "TypeTarget": "=", "adjoin:owner": "acme#PERSON#P1"},
    ]  # fmt: skip


def test_names_fit_an_existing_table() -> None:
    layout = bound(
        MaterializedGraph(
            table="People",
            node="N",
            type_target="TT",
            data="D",
            shard="S",
            target="T",
            type_source="TS",
            type_attribute="Type",
        )
    )
    assert stored(layout, Knows(source="P1", target="py"))[0] == {
        "N": "PERSON#P1", "TT": "KNOWS#SKILL#py", "Type": "KNOWS", "T": "SKILL#py", "TS": "KNOWS#PERSON#P1",
        "S": "KNOWS#level#0", "D": "senior#PERSON#P1#KNOWS#SKILL#py", "level": "senior", "years": "0",
    }  # fmt: skip
    assert (layout.table, layout.definition.partition.name) == ("People", "N")


def test_the_table() -> None:
    layout = MaterializedGraph(
        table="Graph",
        stream=False,
        throughput=Throughput(5, 6),
        point_in_time_recovery=True,
        deletion_protection=True,
        tags={"team": "x"},
    )
    assert bound(layout).definition == TableDefinition(
        "Graph",
        KeyAttribute("NodeId"),
        KeyAttribute("TypeTarget"),
        (
            IndexDefinition("GSI2", KeyAttribute("Target"), KeyAttribute("TypeSource")),
            IndexDefinition("GSI3", KeyAttribute("Source"), KeyAttribute("TypeOrder")),
            IndexDefinition("GSI1", KeyAttribute("GSIPK"), KeyAttribute("Data")),
        ),
        stream=False,
        throughput=Throughput(5, 6),
        point_in_time_recovery=True,
        deletion_protection=True,
        tags=(("team", "x"),),
    )
    plain_one = MaterializedGraph().bind(Schema([Skill]))
    assert [index.name for index in plain_one.definition.indexes] == ["GSI2"], "others come with what needs them"
    assert layout.named("Other").table == "Other"


TEXTS: list[tuple[Any, str]] = [
    ("", ""),
    ("a b", "a%20b"),
    ("#$%&", "%23%24%25&"),
    ("é\U0001f600", "é\U0001f600"),
    (0, "o"),
    (42, "p502.42"),
    (-42, "n497.57~"),
    (Decimal("0.001"), "p498.1"),
    (1.5, "p501.15"),
    (-0.0, "o"),
    (True, "p501.1"),
    (False, "o"),
    (Level.SENIOR, "senior"),
    (dt.date(2024, 2, 3), "2024-02-03"),
    (dt.datetime(2024, 2, 3), "2024-02-03T00:00:00.000000"),
    (dt.datetime(2024, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2024-02-02T22:00:00.000000Z"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ((), ""),
    (("",), "%"),
    (("UK", "Bath #1"), "UK$Bath%20%231"),
    (("UK", ""), "UK$%"),
    ([1, -1], "p501.1$n498.8~"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_values_as_text(value: Any, text: str) -> None:
    assert indexed_text(value) == text


paths = st.lists(st.text(max_size=3) | st.sampled_from(["", "#", "$", "%", "%00"]), max_size=4)


@given(paths, paths)
def test_the_text_of_paths_has_their_order(one: list[str], other: list[str]) -> None:
    ordered = [step.encode() for step in one] < [step.encode() for step in other]
    texts = [indexed_text(path) + "#" for path in (one, other)]
    assert (texts[0].encode() < texts[1].encode()) == ordered
    assert (texts[0] == texts[1]) == (one == other)


# --- items that are not adjoin's ---------------------------------------------------------------


def test_items_that_others_wrote_are_found_by_who_knows_their_keys() -> None:
    with Graph(":memory:", MODELS, MaterializedGraph()) as graph:
        item = {
            "NodeId": {"S": "PERSON#P9"}, "TypeTarget": {"S": "PERSON#P9"},
            "GSIPK": {"S": "PERSON#name#0"}, "Data": {"S": "Zoe#PERSON#P9"}, "name": {"S": "Zoe"},
        }  # fmt: skip
        graph._store.execute((Put("adjoin", item),))
        assert [person.name for person in graph.find(Person)] == ["Zoe"]
        item["name"] = {"N": "5"}
        graph._store.execute((Put("adjoin", item),))
        with pytest.raises(InvalidItem, match="name"):
            list(graph.find(Person))


# --- declarations that are refused -------------------------------------------------------------


class Plain(Node):
    id: str


def bind(layout: Layout, *models: Any) -> BoundLayout:
    return layout.bind(Schema(models))


class Told(Edge[Person, Skill]):
    one: Annotated[str, Indexed()] = ""
    two: Annotated[str, Indexed()] = ""
    skill: str = ""


TOLD = Keys(sort="T#{skill}", reverse_partition="SKILL#{skill}", reverse_sort="{source.id}")

REFUSED: list[tuple[Any, str]] = [
    (
        lambda: bind(AdjacencyList(indexed=Index("I", "GSI1PK", "S")), *MODELS),
        "the index 'I' for indexed fields needs key attributes of its own",
    ),
    (
        lambda: bind(AdjacencyList(indexed=Index("I", "P", "SK")), *MODELS),
        "the index 'I' for indexed fields needs key attributes of its own",
    ),
    (lambda: bind(AdjacencyList(indexed=Index("I", "P")), *MODELS), "the index 'I' is for indexed fields, whose order"),
    (
        lambda: bind(AdjacencyList(keys={Plain: Keys(partition="#X#{id}")}), Plain),
        "begins with '#', as adjoin's own records do",
    ),
    (
        lambda: bind(AdjacencyList(keys={Plain: Keys(partition="X#{id}#=")}), Plain),
        "ends with '#=', as adjoin's own index copies do",
    ),
    (
        lambda: bind(AdjacencyList(keys={Told: TOLD}), Told, Person, Skill),
        "Told has two indexed fields, which needs a sort key that tells its target",
    ),
]  # fmt: skip


def test_ids_are_spelled_so_that_they_fit_unless_the_keys_are_somebody_elses() -> None:
    with Graph(":memory:", [Plain], MaterializedGraph()) as g:
        g.put(Plain(id="a#b"))
        assert g.get(Plain, "a#b") == Plain(id="a#b")
    with Graph(":memory:", [Plain], MaterializedGraph(keys={Plain: Keys(partition="P#{id}")})) as g:
        g.put(Plain(id="100%"))
        assert g.get(Plain, "100%") == Plain(id="100%")
        with pytest.raises(InvalidKey, match="holds '#'"):
            g.put(Plain(id="a#b"))


class ToldOnce(Edge[Person, Skill]):
    one: Annotated[str, Indexed()] = ""
    skill: str = ""


def test_an_edge_with_one_indexed_field_needs_no_key_that_tells_its_target() -> None:
    assert bind(AdjacencyList(keys={ToldOnce: TOLD}), ToldOnce, Person, Skill)


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidModel, match=words):
        make()
