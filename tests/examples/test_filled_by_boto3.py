"""Tables that were made and filled with boto3 alone, as their documents print them: every access pattern runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import boto3
import pytest

from adjoin import Graph
from examples import education, homes, invoices, people, published_graph
from tests.examples import test_education, test_homes, test_invoices, test_people, test_published_graph
from tests.examples.raw import write_items
from tests.servers.open import Stores

REGION = "us-east-1"


def _keys(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}]
    return keys if sort is None else [*keys, {"AttributeName": sort, "KeyType": "RANGE"}]


def _texts(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


SOON = {"Delay": 1, "MaxAttempts": 300}
"""How boto3 waits for a table: a busy dynalite takes a moment, for which boto3 would wait 20 seconds."""
UNITS = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100}
ALL = {"ProjectionType": "ALL"}

INVOICES: dict[str, Any] = {
    "TableName": "InvoiceAndBills",
    "AttributeDefinitions": _texts("PK", "SK"),
    "KeySchema": _keys("PK", "SK"),
    "ProvisionedThroughput": UNITS,
    "GlobalSecondaryIndexes": [
        {"IndexName": "GSI_1", "KeySchema": _keys("SK"), "Projection": ALL, "ProvisionedThroughput": UNITS}
    ],
}
EDUCATION: dict[str, Any] = {
    "TableName": "Education",
    "AttributeDefinitions": _texts("PK", "SK", "GSI1-PK", "GSI1-SK"),
    "KeySchema": _keys("PK", "SK"),
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": "GSI1", "KeySchema": _keys("GSI1-PK", "GSI1-SK"), "Projection": ALL},
    ],
}
HOMES: dict[str, Any] = {
    "TableName": homes.LAYOUT.table,
    "AttributeDefinitions": _texts("PK", "SK", "GSI1PK", "GSI1SK"),
    "KeySchema": _keys("PK", "SK"),
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": "GSI1", "KeySchema": _keys("GSI1PK", "GSI1SK"), "Projection": ALL},
    ],
}
PEOPLE: dict[str, Any] = {
    "TableName": "People",
    "AttributeDefinitions": _texts("NodeId", "TypeTarget", "GSIPK", "Data", "Target", "TypeSource"),
    "KeySchema": _keys("NodeId", "TypeTarget"),
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": "GSI1", "KeySchema": _keys("GSIPK", "Data"), "Projection": ALL},
        {"IndexName": "GSI2", "KeySchema": _keys("Target", "TypeSource"), "Projection": ALL},
    ],
}
PUBLISHED: dict[str, Any] = {
    "TableName": "PublishedGraph",
    "AttributeDefinitions": _texts("NodeId", "TypeTarget", "Data", "GSI PK"),
    "KeySchema": _keys("NodeId", "TypeTarget"),
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {"IndexName": "GSI1", "KeySchema": _keys("GSI PK", "Data"), "Projection": ALL},
        {"IndexName": "GSI2", "KeySchema": _keys("GSI PK", "TypeTarget"), "Projection": ALL},
    ],
}
TABLES: dict[str, tuple[ModuleType, dict[str, Any], list[dict[str, Any]]]] = {
    "invoices": (invoices, INVOICES, test_invoices.DOCUMENT),
    "education": (education, EDUCATION, test_education.DOCUMENT),
    "education, keys alone": (education, EDUCATION, test_education.UNTYPED),
    "homes": (homes, HOMES, test_homes.DOCUMENT),
    "people": (people, PEOPLE, test_people.DOCUMENT),
    "the graph as it was published": (published_graph, PUBLISHED, test_published_graph.DOCUMENT),
}
UNCOUNTED = {pattern: {"ministack", "dynalite"} for pattern in (people.people_in_city, *published_graph.PATTERNS)}
"""Who counts units otherwise: MiniStack does not say what a batch of gets consumed, and dynalite counts nothing
for a shard in which nothing is found."""


@pytest.fixture(params=["serve", "ministack", "dynalite"])
def endpoint(request: pytest.FixtureRequest, servers: Stores) -> str:
    return servers.address(request.param)


@pytest.fixture(params=TABLES)
def filled(request: pytest.FixtureRequest, endpoint: str) -> Iterator[tuple[ModuleType, Graph, list[dict[str, Any]]]]:
    """An example, a graph over the table that boto3 made and filled, and the items in it."""
    example, table, items = TABLES[request.param]
    service = boto3.resource(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    made = service.create_table(**table)
    made.wait_until_exists(WaiterConfig=SOON)
    try:
        with made.batch_writer() as batch:
            for item in items:
                batch.put_item(Item=item)
        with example.open_graph(f"dynamodb://{table['TableName']}?endpoint={endpoint}&region={REGION}") as g:
            yield example, g, items
    finally:
        made.delete()
        made.wait_until_not_exists(WaiterConfig=SOON)


def measured(g: Graph, pattern: Callable[[Graph], Any], *, units: bool) -> tuple[Any, int, int, float | None]:
    with g.meter() as m:
        found = pattern(g)
    return _unordered(found), m.requests, m.rounds, m.rcu if units else None


def _unordered(found: Any) -> Any:
    """An index without a sort key promises no order."""
    if isinstance(found, tuple):
        return tuple(_unordered(each) for each in found)
    return sorted(found, key=repr) if isinstance(found, list) else found


def test_every_access_pattern_answers_as_on_a_file(
    filled: tuple[ModuleType, Graph, list[dict[str, Any]]], request: pytest.FixtureRequest
) -> None:
    example, g, items = filled
    server = request.node.callspec.params["endpoint"]
    with example.open_graph() as embedded:
        write_items(embedded, example.LAYOUT.table, items)
        for pattern in example.PATTERNS:
            # The table has no record of declarations, so the first query that needs one looks at some of the items.
            pattern(g)
            units = server not in UNCOUNTED.get(pattern, {"ministack"})
            assert measured(g, pattern, units=units) == measured(embedded, pattern, units=units), pattern.__doc__
