"""The requests to servers: four operations on one table, as parameters of DynamoDB's operations.

The table has 1,000 people, and 10 partitions of 100 edges each. Every call has a number. Each write changes the
stored item, however often the list of calls is repeated, so that no server can skip a write that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmarks.clients.plain import follows, person

TABLE = "Bench"
PEOPLE = 1000
PARTITIONS = 10
EDGES = 100
BATCH = 25
REGION = "us-east-1"

_TYPES = {str: "S", int: "N", bool: "BOOL", datetime: "S"}

DEFINITION: dict[str, Any] = {
    "TableName": TABLE,
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass(frozen=True)
class Operation:
    """A measured operation; `calls` is the number of different calls before they repeat."""

    name: str
    title: str
    target: str
    method: str
    calls: int


OPERATIONS = (
    Operation("get", "get", "GetItem", "get_item", PEOPLE),
    Operation("put", "put", "PutItem", "put_item", 2 * PEOPLE),
    Operation("query", f"query of {EDGES}", "Query", "query", PARTITIONS),
    Operation("batch", f"batch write of {BATCH}", "BatchWriteItem", "batch_write_item", 2 * PEOPLE // BATCH),
)


def parameters(operation: str, number: int) -> dict[str, Any]:
    """The parameters of the call with this number."""
    match operation:
        case "get":
            return {"TableName": TABLE, "Key": person_key(number % PEOPLE)}
        case "put":
            return {"TableName": TABLE, "Item": person_item(number % PEOPLE, number)}
        case "query":
            return {
                "TableName": TABLE,
                "KeyConditionExpression": "PK = :person AND begins_with(SK, :follows)",
                "ExpressionAttributeValues": {
                    ":person": {"S": f"FOLLOWER#{number % PARTITIONS}"},
                    ":follows": {"S": "FOLLOWS#"},
                },
            }
        case _:
            people = range(number * BATCH, (number + 1) * BATCH)
            return written([person_item(one % PEOPLE, one) for one in people])


def written(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"RequestItems": {TABLE: [{"PutRequest": {"Item": item}} for item in items]}}


def stored() -> list[dict[str, Any]]:
    """All items with which a server is loaded."""
    people = [person_item(number, -1) for number in range(PEOPLE)]
    return people + [edge_item(partition, number) for partition in range(PARTITIONS) for number in range(EDGES)]


def person_key(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"PERSON#{number}"}, "SK": {"S": "#META"}}


def person_item(number: int, visits: int) -> dict[str, Any]:
    """A person with this number of visits."""
    return person_key(number) | _attributes(person(f"P{number}") | {"visits": visits})


def edge_item(partition: int, number: int) -> dict[str, Any]:
    edge = follows(f"P{partition}", number)
    key = {"PK": {"S": f"FOLLOWER#{partition}"}, "SK": {"S": f"FOLLOWS#{edge['target']}"}}
    return key | _attributes(edge)


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {_TYPES[type(value)]: _written(value)} for name, value in fields.items()}


def _written(value: Any) -> str | bool:
    if isinstance(value, bool):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)
