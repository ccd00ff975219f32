"""What the answers of the service must be: one shape for each operation, checked before anything is read of it.

A server may be another one than it seems, may have a fault, or may stand behind something that alters what it
says. What is not shaped as its operation's answer is `Misshapen`, with the place where and what is wrong there;
whoever reads an answer behind this module finds what he looks for. Members that nobody reads are not looked at.
What depends on the request, such as how many answers there must be, is checked where the answer is read.

Source: the API reference of Amazon DynamoDB and of Amazon DynamoDB Streams, "Response Elements".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.items import normal_attribute, normal_item
from adjoin.tables import KeyAttribute

Payload: TypeAlias = dict[str, Any]
Shape: TypeAlias = Callable[[Any, str], None]
"""Checks a value at a place in an answer."""

Keys: TypeAlias = Mapping[str, tuple[KeyAttribute, ...]]
"""The keys of tables, as far as they are known."""

_NUMBER_OF_A_CHANGE = re.compile("[0-9]{1,64}")
"""The service's have 21 to 40 digits; Python refuses to read a number of thousands."""
_PART_OF_A_POSITION = re.compile("[^/=]+")
_NEVER = 1e11
"""Seconds since 1970: thousands of years."""


class Misshapen(Exception):
    """An answer is not what the operation answers; never leaves the store."""

    def __init__(self, at: str, what: str) -> None:
        super().__init__(f"{at or 'it'} {what}")


# --- shapes --------------------------------------------------------------------------------------


def _of(kind: type, name: str) -> Shape:
    def check(value: Any, at: str) -> None:
        if type(value) is not kind:
            raise Misshapen(at, f"is no {name}")

    return check


_TEXT = _of(str, "text")
_TRUTH = _of(bool, "truth value")


def _number(value: Any, at: str) -> None:
    if type(value) not in (int, float) or not isfinite(value):
        raise Misshapen(at, "is no number")


def _count(value: Any, at: str) -> None:
    if type(value) is not int or value < 0:
        raise Misshapen(at, "is no whole number from 0 on")


def _time(value: Any, at: str) -> None:
    _number(value, at)
    if not 0 <= value < _NEVER:
        raise Misshapen(at, "is no time in seconds since 1970")


def _one_of(*texts: str) -> Shape:
    def check(value: Any, at: str) -> None:
        if value not in texts:
            raise Misshapen(at, f"is none of {', '.join(texts)}")

    return check


def _like(pattern: re.Pattern[str], what: str) -> Shape:
    def check(value: Any, at: str) -> None:
        if type(value) is not str or not pattern.fullmatch(value):
            raise Misshapen(at, f"is no {what}")

    return check


def _each(shape: Shape) -> Shape:
    def check(value: Any, at: str) -> None:
        if type(value) is not list:
            raise Misshapen(at, "is no list")
        for place, element in enumerate(value):
            shape(element, f"{at}[{place}]")

    return check


def _named(shape: Shape) -> Shape:
    def check(value: Any, at: str) -> None:
        if type(value) is not dict:
            raise Misshapen(at, "is no map")
        for name, element in value.items():
            shape(element, _within(at, name))

    return check


def _members(needed: dict[str, Shape], others: dict[str, Shape] | None = None) -> Shape:
    """A map that has what is needed; the others are checked if they are there and not null."""

    def check(value: Any, at: str) -> None:
        if type(value) is not dict:
            raise Misshapen(at, "is no map")
        for name, shape in needed.items():
            if name not in value:
                raise Misshapen(at, f"has no {name}")
            shape(value[name], _within(at, name))
        for name, shape in (others or {}).items():
            if value.get(name) is not None:
                shape(value[name], _within(at, name))

    return check


def _all(*shapes: Shape) -> Shape:
    def check(value: Any, at: str) -> None:
        for shape in shapes:
            shape(value, at)

    return check


def _anything(value: Any, at: str) -> None:
    """Nothing of it is read."""


def _within(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _item(value: Any, at: str) -> None:
    if type(value) is not dict:
        raise Misshapen(at, "is no item")
    try:
        normal_item(value)
    except InvalidRequest as error:
        raise Misshapen(at, f"is no item: {str(error)[:200]}") from None


# --- items ---------------------------------------------------------------------------------------

_UNITS = _members(
    {}, {"CapacityUnits": _number, "ReadCapacityUnits": _number, "WriteCapacityUnits": _number}
)  # fmt: skip
_CAPACITY = _all(
    _UNITS,
    _members(
        {"TableName": _TEXT},
        {"Table": _UNITS, "LocalSecondaryIndexes": _named(_UNITS), "GlobalSecondaryIndexes": _named(_UNITS)},
    ),
)
_CONSUMED: dict[str, Shape] = {"ConsumedCapacity": _CAPACITY}
_CONSUMED_EACH: dict[str, Shape] = {"ConsumedCapacity": _each(_CAPACITY)}
_WRITTEN = _members({}, {"Attributes": _item, **_CONSUMED})
_PAGE = _members(
    {"Count": _count, "ScannedCount": _count}, {"Items": _each(_item), "LastEvaluatedKey": _item, **_CONSUMED}
)
_LEFT = _members({}, {"PutRequest": _members({"Item": _item}), "DeleteRequest": _members({"Key": _item})})


def _one_request(value: Any, at: str) -> None:
    _LEFT(value, at)
    if ("PutRequest" in value) == ("DeleteRequest" in value):
        raise Misshapen(at, "is neither a PutRequest nor a DeleteRequest")


# --- tables --------------------------------------------------------------------------------------

_THROUGHPUT: dict[str, Shape] = {
    "ProvisionedThroughput": _members({}, {"ReadCapacityUnits": _count, "WriteCapacityUnits": _count})
}
_KEY = _members({"AttributeName": _TEXT, "KeyType": _one_of("HASH", "RANGE")})


def _key_schema(value: Any, at: str) -> None:
    _each(_KEY)(value, at)
    if sorted(entry["KeyType"] for entry in value) not in (["HASH"], ["HASH", "RANGE"]):
        raise Misshapen(at, "is not one HASH key, with a RANGE key or without")


_PROJECTION = _members(
    {"ProjectionType": _one_of("ALL", "KEYS_ONLY", "INCLUDE")}, {"NonKeyAttributes": _each(_TEXT)}
)  # fmt: skip
_INDEX = _members(
    {"IndexName": _TEXT, "KeySchema": _key_schema, "Projection": _PROJECTION}, {"IndexStatus": _TEXT, **_THROUGHPUT}
)
_STREAM_VIEW = _one_of("NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY")
_LABEL = _like(_PART_OF_A_POSITION, "label of a stream")
_TABLE = _members(
    {
        "TableName": _TEXT,
        "TableArn": _TEXT,
        "KeySchema": _key_schema,
        "AttributeDefinitions": _each(
            _members({"AttributeName": _TEXT, "AttributeType": _one_of("S", "N", "B")}),
        ),
    },
    {
        "TableStatus": _TEXT,
        "TableId": _TEXT,
        "CreationDateTime": _time,
        "ItemCount": _count,
        "TableSizeBytes": _count,
        "BillingModeSummary": _members({}, {"BillingMode": _TEXT}),
        "GlobalSecondaryIndexes": _each(_INDEX),
        "LocalSecondaryIndexes": _each(_INDEX),
        "StreamSpecification": _members({}, {"StreamEnabled": _TRUTH, "StreamViewType": _STREAM_VIEW}),
        "LatestStreamArn": _TEXT,
        "LatestStreamLabel": _LABEL,
        "DeletionProtectionEnabled": _TRUTH,
        **_THROUGHPUT,
    },
)


def _table(value: Any, at: str) -> None:
    _TABLE(value, at)
    types = {each["AttributeName"] for each in value["AttributeDefinitions"]}
    indexes = [each for kind in ("Global", "Local") for each in value.get(f"{kind}SecondaryIndexes") or ()]
    for part in (value, *indexes):
        for key in part["KeySchema"]:
            if key["AttributeName"] not in types:
                raise Misshapen(_within(at, "AttributeDefinitions"), f"has no {key['AttributeName']}, which is a key")
    stream = value.get("StreamSpecification") or {}
    if stream.get("StreamEnabled") and not (value.get("LatestStreamArn") and value.get("LatestStreamLabel")):
        raise Misshapen(at, "has a stream without LatestStreamArn or LatestStreamLabel")


# --- streams -------------------------------------------------------------------------------------

_SEQUENCE_NUMBER = _like(_NUMBER_OF_A_CHANGE, "sequence number")
_SHARD = _members(
    {"ShardId": _like(_PART_OF_A_POSITION, "id of a shard")},
    {
        "ParentShardId": _TEXT,
        "SequenceNumberRange": _members(
            {}, {"StartingSequenceNumber": _SEQUENCE_NUMBER, "EndingSequenceNumber": _SEQUENCE_NUMBER}
        ),
    },
)
_IMAGES = {"INSERT": ("NewImage",), "MODIFY": ("NewImage", "OldImage"), "REMOVE": ("OldImage",)}
_RECORD = _members(
    {
        "eventName": _one_of(*_IMAGES),
        "dynamodb": _members(
            {"Keys": _item, "SequenceNumber": _SEQUENCE_NUMBER},
            {"ApproximateCreationDateTime": _time, "NewImage": _item, "OldImage": _item},
        ),
    },
    {"userIdentity": _members({})},
)


def _record(value: Any, at: str) -> None:
    _RECORD(value, at)
    for image in _IMAGES[value["eventName"]]:
        if value["dynamodb"].get(image) is None:
            raise Misshapen(at, f"is of a {value['eventName']}, and has no {image}")


# --- operations ----------------------------------------------------------------------------------

SHAPES: dict[str, Shape] = {
    "GetItem": _members({}, {"Item": _item, **_CONSUMED}),
    "PutItem": _WRITTEN,
    "UpdateItem": _WRITTEN,
    "DeleteItem": _WRITTEN,
    "Query": _PAGE,
    "Scan": _PAGE,
    "BatchGetItem": _members(
        {"Responses": _named(_each(_item))},
        {"UnprocessedKeys": _named(_members({"Keys": _each(_item)})), **_CONSUMED_EACH},
    ),
    "BatchWriteItem": _members({}, {"UnprocessedItems": _named(_each(_one_request)), **_CONSUMED_EACH}),
    "TransactGetItems": _members({"Responses": _each(_members({}, {"Item": _item}))}, _CONSUMED_EACH),
    "TransactWriteItems": _members({}, _CONSUMED_EACH),
    "DescribeTable": _members({"Table": _table}),
    "CreateTable": _anything,
    "UpdateTable": _anything,
    "DeleteTable": _anything,
    "UpdateTimeToLive": _anything,
    "UpdateContinuousBackups": _anything,
    "TagResource": _anything,
    "UntagResource": _anything,
    "DescribeTimeToLive": _members(
        {}, {"TimeToLiveDescription": _members({}, {"TimeToLiveStatus": _TEXT, "AttributeName": _TEXT})}
    ),
    "ListTagsOfResource": _members({}, {"Tags": _each(_members({"Key": _TEXT, "Value": _TEXT})), "NextToken": _TEXT}),
    "ListTables": _members({"TableNames": _each(_TEXT)}, {"LastEvaluatedTableName": _TEXT}),
    "ListStreams": _members(
        {},
        {
            "Streams": _each(_members({"TableName": _TEXT, "StreamLabel": _TEXT})),
            "LastEvaluatedStreamArn": _TEXT,
        },
    ),
    "DescribeStream": _members(
        {
            "StreamDescription": _members(
                {"Shards": _each(_SHARD)}, {"LastEvaluatedShardId": _TEXT, "CreationRequestDateTime": _time}
            )
        }
    ),
    "GetShardIterator": _members({"ShardIterator": _TEXT}),
    "GetRecords": _members({}, {"Records": _each(_record), "NextShardIterator": _TEXT}),
}

_REFUSAL = _members(
    {}, {"Item": _item, "CancellationReasons": _each(_members({}, {"Code": _TEXT, "Message": _TEXT, "Item": _item}))}
)


def operation_of(target: str) -> str:
    """The name of the operation that a call names as its target."""
    return target.partition(".")[2]


def checked(target: str, answer: Payload) -> Payload:
    """The answer of an operation, if it is one."""
    SHAPES[operation_of(target)](answer, "")
    return answer


def checked_refusal(answer: Payload, asked: Payload, keys: Keys) -> Payload:
    """An answer that says what is wrong; one to a transaction may say so for each of its parts."""
    _REFUSAL(answer, "")
    if answer.get("Item"):
        _check_in_the_way(answer["Item"], asked, keys, "Item")
    reasons, parts = answer.get("CancellationReasons"), asked.get("TransactItems")
    if reasons is not None and parts is not None:
        if len(reasons) != len(parts):
            what = f"has {len(reasons)} reasons for the {len(parts)} parts of a transaction"
            raise Misshapen("CancellationReasons", what)
        for number, (reason, part) in enumerate(zip(reasons, parts, strict=True)):
            if reason.get("Item"):
                (write,) = part.values()
                _check_in_the_way(reason["Item"], write, keys, f"CancellationReasons[{number}].Item")
    return answer


def _check_in_the_way(item: Payload, write: Payload, keys: Keys, at: str) -> None:
    """What was in the way of a write is the item of its key."""
    wanted = write.get("Key") or write.get("Item") or {}
    names = [key.name for key in keys.get(write["TableName"], ())] or write.get("Key", ())
    check_is({name: wanted[name] for name in names if name in wanted}, item, at)


def check_has(keys: Iterable[KeyAttribute], item: Payload, at: str) -> None:
    """An item must have its table's keys."""
    for key in keys:
        if key.type not in item.get(key.name, ()):
            raise Misshapen(at, f"has no {key.name} of type {key.type}, which is a key")


def check_is(key: Payload, item: Payload, at: str) -> None:
    """An item must be the one of that key; numbers may be spelled otherwise."""
    for name, value in key.items():
        found = item.get(name)
        if found != value and (found is None or normal_attribute(found) != normal_attribute(value)):
            raise Misshapen(at, f"is of another key: {name} is not {str(value)[:100]}")
