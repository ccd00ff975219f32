"""The stub's answers: what DynamoDB would answer for a table in adjoin's layout, as bytes made beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from orjson import dumps

from adjoin import AdjacencyList, Edge, Node
from adjoin.schema import Schema
from adjoin.tables import IndexDefinition, KeyAttribute
from adjoin.values import Item
from benchmarks.clients.plain import SOURCE, TABLE, follows, person


class Person(Node):
    id: str
    name: str
    email: str
    country: str
    city: str
    about: str
    visits: int
    score: int
    active: bool
    joined_at: datetime


class Follows(Edge[Person, Person]):
    since: datetime
    kind: str
    note: str
    weight: int
    seen: int
    muted: bool


LAYOUT = AdjacencyList(table=TABLE).bind(Schema([Person, Follows]))


@dataclass(frozen=True)
class Answer:
    """A complete response, with and without the consumed capacity."""

    plain: bytes
    with_consumed: bytes


def answers(edges: int) -> dict[bytes, Answer]:
    """The answers by operation (the last word of X-Amz-Target) in lower case. A query finds this many edges."""
    node = LAYOUT.items(Person(**person(SOURCE)))[0]
    page = [LAYOUT.items(Follows(**follows(SOURCE, number)))[0] for number in range(edges)]
    table = {"Table": _description([node, *page])}
    expiry = {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    return {
        b"getitem": _answer({"Item": node}, 0.5),
        b"query": _answer({"Count": edges, "Items": page, "ScannedCount": edges}, 0.5 * -(-_size(page) // 4096)),
        b"describetable": _answer(table, None),
        b"describetimetolive": _answer(expiry, None),
    }


def refusal(target: bytes) -> bytes:
    said = {"__type": "com.amazon.coral.service#UnknownOperationException", "message": target.decode("latin-1")}
    return _response("400 Bad Request", said)


def no_item() -> Answer:
    """The answer to a get that finds nothing."""
    return _answer({}, 1.0)


def _answer(body: Mapping[str, Any], read: float | None) -> Answer:
    plain = _response("200 OK", body)
    if read is None:
        return Answer(plain, plain)
    consumed = {"CapacityUnits": read, "TableName": TABLE}
    return Answer(plain, _response("200 OK", {"ConsumedCapacity": consumed, **body}))


def _response(status: str, body: Mapping[str, Any]) -> bytes:
    content = dumps(body)
    head = {
        "Server": "Server",
        "Date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": str(len(content)),
        "Connection": "keep-alive",
        "x-amzn-RequestId": "S6B7UA5TJRAPKJ9Q4VVN8L4KQNVV4KQNSO5AEMVJF66Q9ASUAAJG",
        "x-amz-crc32": str(crc32(content)),
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, "", ""]).encode() + content


def _size(items: Sequence[Item]) -> int:
    """Roughly the size that DynamoDB would count; the stub needs no more."""
    return sum(len(dumps(item)) for item in items)


def _description(items: Sequence[Item]) -> dict[str, Any]:
    definition = LAYOUT.definition
    of_indexes = [key for index in definition.indexes for key in index.keys]
    keys = {key.name: key for key in (*definition.keys, *of_indexes)}
    return {
        "TableName": definition.name,
        "TableStatus": "ACTIVE",
        "TableArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{definition.name}",
        "TableId": "6b1f1a1e-0c3a-4a50-9b4a-6f7d0c3f9f11",
        "CreationDateTime": 1_700_000_000.0,
        "AttributeDefinitions": [{"AttributeName": key.name, "AttributeType": key.type} for key in keys.values()],
        "KeySchema": _key_schema(definition.keys),
        "GlobalSecondaryIndexes": [_index(index) for index in definition.indexes],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        "ProvisionedThroughput": _THROUGHPUT,
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "ItemCount": len(items),
        "TableSizeBytes": _size(items),
    }


_THROUGHPUT = {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0}


def _index(index: IndexDefinition) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "IndexStatus": "ACTIVE",
        "KeySchema": _key_schema(index.keys),
        "Projection": {"ProjectionType": index.projection.kind},
        "ProvisionedThroughput": _THROUGHPUT,
        "ItemCount": 0,
        "IndexSizeBytes": 0,
    }


def _key_schema(keys: Sequence[KeyAttribute]) -> list[dict[str, str]]:
    return [{"AttributeName": key.name, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
