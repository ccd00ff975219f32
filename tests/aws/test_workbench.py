"""Data models for NoSQL Workbench: the form of its own files, true types, and items as they are stored."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, RootModel

from adjoin import (
    AdjacencyList,
    Edge,
    Expires,
    Graph,
    Index,
    Indexed,
    InvalidModel,
    InvalidValue,
    Keys,
    MaterializedGraph,
    Node,
    Unique,
    aws,
)
from adjoin.aws.workbench_model import attribute_types
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.interface import REVISION
from adjoin.requests import PageResponse, Scan
from adjoin.reserved import OWN, RECORDS
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item, encode
from examples import education
from tests.aws.renderings import EVERY, EXAMPLES, TABLES


def model_of(example: ModuleType, **options: Any) -> dict[str, Any]:
    (model,) = aws.workbench(aws.table(example.MODELS, example.LAYOUT), example.MODELS, example.LAYOUT, **options)[
        "DataModel"
    ]
    return dict(model)


def types_of(model: dict[str, Any]) -> dict[str, str]:
    attributes = [*model["KeyAttributes"].values(), *model["NonKeyAttributes"]]
    types = {each["AttributeName"]: each["AttributeType"] for each in attributes}
    assert len(types) == len(attributes), "an attribute is there twice"
    return types


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_the_sample_is_what_a_graph_stores(example: ModuleType) -> None:
    model = model_of(example, sample=example.SAMPLE)
    shown = [item for facet in model["TableFacets"] for item in facet["TableData"]]
    store = SQLiteStore(":memory:")
    with Graph(store, example.MODELS, example.LAYOUT) as g:
        g.put_many(example.SAMPLE)
        (page,) = store.execute([Scan(example.LAYOUT.table)])
        assert isinstance(page, PageResponse)
        stored = [item for item in page.items if not is_record(item)]
    keys = [key.name for key in aws.table(example.MODELS, example.LAYOUT).keys]
    assert sorted(shown, key=lambda item: _place(item, keys)) == sorted(stored, key=lambda item: _place(item, keys))


def is_record(item: Item) -> bool:
    """Whether an item is a record about the whole table, which no sample has."""
    return {"S": OWN + RECORDS} in item.values()


def _place(item: Item, keys: list[str]) -> list[str]:
    return [item[key]["S"] for key in keys]


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_every_attribute_that_is_used_is_declared(example: ModuleType) -> None:
    model = model_of(example, sample=example.SAMPLE)
    types = types_of(model)
    own = {each["AttributeName"] for each in model["KeyAttributes"].values()}
    for facet in model["TableFacets"]:
        assert set(facet["NonKeyAttributes"]) <= set(types)
        for item in facet["TableData"]:
            assert set(item) <= {*own, *facet["NonKeyAttributes"]}
            assert all(list(value) == [types[name]] for name, value in item.items())
    for index in model["GlobalSecondaryIndexes"]:
        for key in index["KeyAttributes"].values():
            assert types[key["AttributeName"]] == key["AttributeType"]


def test_a_class_is_a_facet_with_its_key_templates() -> None:
    facets = {facet["FacetName"]: facet for facet in model_of(education)["TableFacets"]}
    assert {name: facet["KeyAttributeAlias"] for name, facet in facets.items()} == {
        "Student": {"PartitionKeyAlias": "STUDENT#id", "SortKeyAlias": "METADATA"},
        "Course": {"PartitionKeyAlias": "COURSE#id", "SortKeyAlias": "METADATA"},
        "Enrollment": {"PartitionKeyAlias": "STUDENT#source.id", "SortKeyAlias": "COURSE#target.id"},
    }
    assert facets["Enrollment"] == {
        "FacetName": "Enrollment",
        "KeyAttributeAlias": facets["Enrollment"]["KeyAttributeAlias"],
        "TableData": [],
        "NonKeyAttributes": ["GSI1-PK", "GSI1-SK", "EntityType", "EnrollmentDate", "Grade"],
        "DataAccess": {"MySql": {}},
    }


def test_a_table_alone_has_keys_and_indexes() -> None:
    model = aws.workbench(TABLES["invoices"], author="Ann", description="bills", created=dt.datetime(2026, 3, 5, 16, 7))
    assert model == {
        "ModelName": "InvoiceAndBills",
        "ModelMetadata": {
            "Author": "Ann",
            "DateCreated": "Mar 05, 2026, 04:07 PM",
            "DateLastModified": "Mar 05, 2026, 04:07 PM",
            "Description": "bills",
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [
            {
                "TableName": "InvoiceAndBills",
                "KeyAttributes": {
                    "PartitionKey": {"AttributeName": "PK", "AttributeType": "S"},
                    "SortKey": {"AttributeName": "SK", "AttributeType": "S"},
                },
                "NonKeyAttributes": [],
                "TableFacets": [],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "GSI_1",
                        "KeyAttributes": {"PartitionKey": {"AttributeName": "SK", "AttributeType": "S"}},
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
                "TableData": [],
                "DataAccess": {"MySql": {}},
                "BillingMode": "PROVISIONED",
                "ProvisionedCapacitySettings": {
                    "ProvisionedThroughput": {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
                },
            }
        ],
    }


# --- types -------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Size(Enum):
    SMALL = 1


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Place(BaseModel):
    city: str


class Tags(RootModel[list[str]]):
    pass


class Named(TypedDict):
    name: str


TYPES: list[tuple[Any, list[str], list[Any]]] = [
    (str, ["S"], ["x"]),
    (Annotated[str, Field(min_length=1)], ["S"], ["x"]),
    (int, ["N"], [1]),
    (float, ["N"], [1.5]),
    (Decimal, ["N"], [Decimal("1.5")]),
    (bool, ["BOOL"], [True]),
    (bytes, ["B"], [b"x"]),
    (dt.datetime, ["S"], [dt.datetime(2026, 1, 1)]),
    (dt.date, ["S"], [dt.date(2026, 1, 1)]),
    (dt.time, ["S"], [dt.time(1)]),
    (dt.timedelta, ["S"], [dt.timedelta(1)]),
    (uuid.UUID, ["S"], [uuid.UUID(int=1)]),
    (Colour, ["S"], [Colour.RED]),
    (Size, ["N"], [Size.SMALL]),
    (Mixed, ["N", "S"], [Mixed.ONE, Mixed.TWO]),
    (Literal["a", "b"], ["S"], ["a"]),
    (Literal[1, "b", None], ["N", "S"], [1, "b"]),
    (str | None, ["S"], ["x"]),
    (int | str | None, ["N", "S"], [1, "x"]),
    (list[int], ["L"], [[1]]),
    (list, ["L"], [[1]]),
    (tuple[int, str], ["L"], [(1, "x")]),
    (dict[str, int], ["M"], [{"x": 1}]),
    (Named, ["M"], [{"name": "x"}]),
    (Place, ["M"], [Place(city="x")]),
    (Tags, ["L"], [Tags(["x"])]),
    (set[str], ["SS"], [{"x"}]),
    (frozenset[int], ["NS"], [frozenset({1})]),
    (set[bytes], ["BS"], [{b"x"}]),
    (set[uuid.UUID], ["SS"], [{uuid.UUID(int=1)}]),
    (set[bool], ["L"], [{True}]),
    (set[int | str], [], []),
    (set, [], []),
    (Any, [], []),
]


@pytest.mark.parametrize(("hint", "types", "values"), TYPES)
def test_types_are_those_that_values_are_stored_as(hint: Any, types: list[str], values: list[Any]) -> None:
    assert attribute_types(hint) == types
    assert [next(iter(encode(value))) for value in values] == types


class Note(Node, extra="allow"):
    id: str
    value: int | str
    whatever: Any = None
    must: str | None
    until: Annotated[dt.datetime | None, Expires()] = None


def notes(*sample: Note) -> dict[str, Any]:
    (model,) = aws.workbench(aws.table([Note]), [Note], sample=sample)["DataModel"]
    return dict(model)


def test_what_a_type_leaves_open_is_told_by_the_sample() -> None:
    assert types_of(notes()) == {
        "PK": "S", "SK": "S", "GSI1PK": "S", "GSI1SK": "S", "must": "S", "until": "N", "value": "N", "whatever": "S",
    }  # fmt: skip
    note = Note(id="1", value="x", whatever=[1], must="x", more={"a": 1})
    told = types_of(notes(note))
    assert (told["value"], told["whatever"], told["more"]) == ("S", "L", "M")
    assert "more" in notes(note)["TableFacets"][0]["NonKeyAttributes"]


def test_null_is_left_out_of_a_sample() -> None:
    (item,) = notes(Note(id="1", value=1, must=None))["TableFacets"][0]["TableData"]
    assert item == {"PK": {"S": "NOTE#1"}, "SK": {"S": "#META"}, "value": {"N": "1"}}


def test_a_symmetric_edge_shows_both_its_items() -> None:
    class Person(Node):
        id: str

    class Friend(Edge[Person, Person], symmetric=True):
        pass

    (model,) = aws.workbench(aws.table([Friend]), [Friend], sample=[Friend(source="A", target="B")])["DataModel"]
    assert [item["PK"]["S"] for item in model["TableFacets"][1]["TableData"]] == ["PERSON#A", "PERSON#B"]


# --- copies and claims -------------------------------------------------------------------------


class Member(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[dt.date | None, Indexed()] = None
    email: Annotated[str | None, Unique()] = None


MEMBERS = [
    Member(id="M1", name="Ann", born=dt.date(1990, 1, 2), email="ann@example.com"),
    Member(id="M2", name="Ben"),
]


@pytest.mark.parametrize("layout", [AdjacencyList(shards=1), MaterializedGraph(shards=1, type_attribute="Type")])
def test_copies_and_claims_are_facets_with_the_items_that_are_stored(layout: Any) -> None:
    (model,) = aws.workbench(aws.table([Member], layout), [Member], layout, sample=MEMBERS)["DataModel"]
    facets = {facet["FacetName"]: facet for facet in model["TableFacets"]}
    assert {name: len(facet["TableData"]) for name, facet in facets.items()} == {
        "Member": 2, "Member by born": 1, "Member by unique email": 1,
    }  # fmt: skip
    assert facets["Member by unique email"]["KeyAttributeAlias"] == {
        "PartitionKeyAlias": "#=MEMBER#email#email", "SortKeyAlias": "=",
    }  # fmt: skip
    store = SQLiteStore(":memory:")
    with Graph(store, [Member], layout) as g:
        g.put_many(MEMBERS)
        (page,) = store.execute([Scan(layout.table)])
    assert isinstance(page, PageResponse)
    # A revision is another with each write, so no sample can have it.
    items = [item for item in page.items if not is_record(item)]
    stored = [{name: value for name, value in item.items() if name != REVISION} for item in items]
    shown = [item for facet in facets.values() for item in facet["TableData"]]
    keys = [key.name for key in aws.table([Member], layout).keys]
    assert sorted(shown, key=lambda item: _place(item, keys)) == sorted(stored, key=lambda item: _place(item, keys))


def test_the_index_of_fields_is_shown_with_its_templates() -> None:
    bound = bound_layout([Member], AdjacencyList())
    shape = bound.shape(bound.schema.node(Member))
    assert shape.written == {
        "PK": "MEMBER#{id}",
        "SK": "#META",
        "GSI3PK": "MEMBER#name#{shard}",
        "GSI3SK": "{name}#MEMBER#{id}",
    }
    assert shape.copies["born"].written == {
        "PK": "MEMBER#{id}#=",
        "SK": "born##META",
        "GSI3PK": "MEMBER#born#{shard}",
        "GSI3SK": "{born}#MEMBER#{id}",
    }
    assert shape.claims["email"].written == {
        "PK": "#=MEMBER#email#{email}",
        "SK": "=",
        "adjoin:owner": "MEMBER#{id}",
    }


# --- what is refused ---------------------------------------------------------------------------


class Priced(Node):
    id: str
    value: str


class Counted(Node):
    id: str
    value: int


class Numbered(Node):
    id: int
    name: str = ""


def test_keys_that_are_no_text_have_their_types() -> None:
    layout = AdjacencyList(
        table="Numbers",
        partition_key="id",
        sort_key=None,
        types={"id": "N"},
        reverse=None,
        indexes=[Index("Spread", "shard", "name", shards=3, types={"shard": "N"})],
        keys={Numbered: Keys(indexes={"Spread": "{shard}"})},
    )
    model = aws.workbench(aws.table([Numbered], layout), [Numbered], layout, sample=[Numbered(id=-1, name="Ann")])
    (table,) = model["DataModel"]
    assert table["KeyAttributes"] == {"PartitionKey": {"AttributeName": "id", "AttributeType": "N"}}
    assert {each["AttributeName"]: each["AttributeType"] for each in table["NonKeyAttributes"]} == {
        "shard": "N",
        "name": "S",
    }
    (facet,) = table["TableFacets"]
    assert facet["KeyAttributeAlias"] == {"PartitionKeyAlias": "id"}
    assert facet["TableData"][0]["id"] == {"N": "-1"}


def test_an_attribute_has_one_type() -> None:
    with pytest.raises(InvalidModel, match="'value' is stored as S by Priced and as N by Counted, but NoSQL Workbench"):
        aws.workbench(aws.table([Priced, Counted]), [Priced, Counted])
    with pytest.raises(InvalidModel, match="'value' is stored as N by Note and as S by Note"):
        notes(Note(id="1", value=1, must=None), Note(id="2", value="x", must=None))


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(InvalidValue, match="the index Local is local"):
        aws.workbench(EVERY)
    with pytest.raises(InvalidValue, match=r"ByRound has a key of several attributes, .*; pass a definition without"):
        aws.workbench(TABLES["several"])
    with pytest.raises(InvalidValue, match="a sample needs the classes and the layout of the graph"):
        aws.workbench(TABLES["education"], sample=education.SAMPLE)
    with pytest.raises(InvalidValue, match="give other keys and indexes than Education has"):
        aws.workbench(TABLES["education"], education.MODELS, AdjacencyList())
    with pytest.raises(InvalidValue, match="must hold nodes and edges, got 'S1'"):
        aws.workbench(TABLES["education"], education.MODELS, education.LAYOUT, sample=["S1"])  # type: ignore[list-item]
