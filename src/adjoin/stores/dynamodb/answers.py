"""The shapes of the service's answers: one per operation, checked before an answer is used.

The server may not be DynamoDB at all, may have a fault, or may be behind a proxy that alters answers. An answer without
the shape of its operation raises `Misshapen`, which names the place and what is wrong there. So code that uses a
checked answer can rely on its members. Members that no code uses are not checked. Checks that depend on the request,
such as the number of items, are made where the answer is used.

Source: the API reference of Amazon DynamoDB and of Amazon DynamoDB Streams, "Response Elements".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.items import LONG_NUMBER, check_item, normal_attribute, plain_number
from adjoin.tables import KeyAttribute

Payload: TypeAlias = dict[str, Any]
AnswerShape: TypeAlias = Callable[[Any, str], None]
"""Checks a value at a place in an answer."""

KnownKeys: TypeAlias = Mapping[str, tuple[KeyAttribute, ...]]
"""The keys of the tables that are known so far."""

_NUMBER_OF_A_CHANGE = re.compile("[0-9]{1,64}")
"""The service's numbers have 21 to 40 digits. The limit exists because Python refuses to parse thousands of digits."""
_PART_OF_A_POSITION = re.compile("[^/=]+")
_NEVER = 1e11
"""Upper bound of times, in seconds since 1970: thousands of years from now."""


class Misshapen(Exception):
    """An answer does not have the shape of its operation; never leaves the store."""

    def __init__(self, at: str, what: str) -> None:
        super().__init__(f"{at or 'it'} {what}")


# --- shapes --------------------------------------------------------------------------------------


def _of(kind: type, name: str) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        if type(value) is not kind:
            raise Misshapen(at, f"is not {name}")

    return check


_TEXT = _of(str, "text")
_TRUTH = _of(bool, "a truth value")


def _number(value: Any, at: str) -> None:
    if type(value) not in (int, float) or not isfinite(value):
        raise Misshapen(at, "is not a number")


def _count(value: Any, at: str) -> None:
    if type(value) is not int or value < 0:
        raise Misshapen(at, "is not a whole number of at least 0")


def _time(value: Any, at: str) -> None:
    _number(value, at)
    if not 0 <= value < _NEVER:
        raise Misshapen(at, "is not a time in seconds since 1970")


def _one_of(*texts: str) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        if value not in texts:
            raise Misshapen(at, f"is not one of {', '.join(texts)}")

    return check


def _like(pattern: re.Pattern[str], what: str) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        if type(value) is not str or not pattern.fullmatch(value):
            raise Misshapen(at, f"is not a valid {what}")

    return check


def _each(shape: AnswerShape) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        if type(value) is not list:
            raise Misshapen(at, "is not a list")
        for place, element in enumerate(value):
            shape(element, f"{at}[{place}]")

    return check


def _named(shape: AnswerShape) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        if type(value) is not dict:
            raise Misshapen(at, "is not a map")
        for name, element in value.items():
            shape(element, _within(at, name))

    return check


def _members(needed: dict[str, AnswerShape], others: dict[str, AnswerShape] | None = None) -> AnswerShape:
    """A map that must have the `needed` members; the others are checked if they are present and not null."""

    def check(value: Any, at: str) -> None:
        if type(value) is not dict:
            raise Misshapen(at, "is not a map")
        for name, shape in needed.items():
            if name not in value:
                raise Misshapen(at, f"has no {name}")
            shape(value[name], _within(at, name))
        for name, shape in (others or {}).items():
            if value.get(name) is not None:
                shape(value[name], _within(at, name))

    return check


def _all(*shapes: AnswerShape) -> AnswerShape:
    def check(value: Any, at: str) -> None:
        for shape in shapes:
            shape(value, at)

    return check


def _anything(value: Any, at: str) -> None:
    """Accepts every answer, because no code uses it."""


def _within(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _item(value: Any, at: str) -> None:
    if type(value) is not dict:
        raise Misshapen(at, "is not an item")
    try:
        check_item(value)
    except InvalidRequest as error:
        raise Misshapen(at, f"is not an item: {str(error)[:200]}") from None


def are_plain(items: list[Any]) -> bool:
    """Whether all of these are surely items, of text and of short numbers only; for what orjson has read.

    This is a fast path: `check_item` knows the others. Text from orjson has no half of a surrogate pair.
    """
    try:
        for item in items:
            for attribute in item.values():
                # Fails unless there is exactly one type.
                (tag,) = attribute
                value = attribute[tag]
                if type(value) is not str:
                    return False
                if tag != "S" and (tag != "N" or len(value) >= LONG_NUMBER or not plain_number(value)):
                    return False
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _items(value: Any, at: str) -> None:
    # One loop over all of them takes a sixth of the time. It does not say what is wrong.
    if type(value) is not list or not are_plain(value):
        _each_item(value, at)


_each_item = _each(_item)

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
_CONSUMED: dict[str, AnswerShape] = {"ConsumedCapacity": _CAPACITY}
_CONSUMED_EACH: dict[str, AnswerShape] = {"ConsumedCapacity": _each(_CAPACITY)}
_WRITTEN = _members({}, {"Attributes": _item, **_CONSUMED})
_PAGE = _members({"Count": _count, "ScannedCount": _count}, {"Items": _items, "LastEvaluatedKey": _item, **_CONSUMED})
_LEFT = _members({}, {"PutRequest": _members({"Item": _item}), "DeleteRequest": _members({"Key": _item})})


def _one_request(value: Any, at: str) -> None:
    _LEFT(value, at)
    if ("PutRequest" in value) == ("DeleteRequest" in value):
        raise Misshapen(at, "is neither a PutRequest nor a DeleteRequest")


# --- tables --------------------------------------------------------------------------------------

_THROUGHPUT: dict[str, AnswerShape] = {
    "ProvisionedThroughput": _members({}, {"ReadCapacityUnits": _count, "WriteCapacityUnits": _count})
}
_KEY = _members({"AttributeName": _TEXT, "KeyType": _one_of("HASH", "RANGE")})


def _key_schema(value: Any, at: str) -> None:
    _each(_KEY)(value, at)
    if sorted(entry["KeyType"] for entry in value) not in (["HASH"], ["HASH", "RANGE"]):
        raise Misshapen(at, "is not one HASH key, with a RANGE key or without")


def _global_key_schema(value: Any, at: str) -> None:
    """Only keys of global indexes have several attributes; how many, the service decides."""
    _each(_KEY)(value, at)
    if all(entry["KeyType"] != "HASH" for entry in value):
        raise Misshapen(at, "has no HASH key")


_PROJECTION = _members(
    {"ProjectionType": _one_of("ALL", "KEYS_ONLY", "INCLUDE")}, {"NonKeyAttributes": _each(_TEXT)}
)  # fmt: skip
_OF_AN_INDEX = {"IndexName": _TEXT, "Projection": _PROJECTION}
_LOCAL_INDEX = _members({**_OF_AN_INDEX, "KeySchema": _key_schema}, {"IndexStatus": _TEXT, **_THROUGHPUT})
_GLOBAL_INDEX = _members({**_OF_AN_INDEX, "KeySchema": _global_key_schema}, {"IndexStatus": _TEXT, **_THROUGHPUT})
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
        "GlobalSecondaryIndexes": _each(_GLOBAL_INDEX),
        "LocalSecondaryIndexes": _each(_LOCAL_INDEX),
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
            raise Misshapen(at, f"has the event {value['eventName']}, but no {image}")


# --- operations ----------------------------------------------------------------------------------

SHAPES: dict[str, AnswerShape] = {
    "GetItem": _members({}, {"Item": _item, **_CONSUMED}),
    "PutItem": _WRITTEN,
    "UpdateItem": _WRITTEN,
    "DeleteItem": _WRITTEN,
    "Query": _PAGE,
    "Scan": _PAGE,
    "BatchGetItem": _members(
        {"Responses": _named(_items)},
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
    """The name of the operation in the target of a call."""
    return target.partition(".")[2]


def checked(target: str, answer: Payload) -> Payload:
    """The answer, after a check that it has the shape of its operation."""
    SHAPES[operation_of(target)](answer, "")
    return answer


def checked_refusal(answer: Payload, asked: Payload, keys: KnownKeys) -> Payload:
    """An answer with an error, after a check of its shape; for a transaction it may have one reason per operation."""
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


def _check_in_the_way(item: Payload, write: Payload, keys: KnownKeys, at: str) -> None:
    """Checks that the item with which a condition failed has the key of the write."""
    wanted = write.get("Key") or write.get("Item") or {}
    names = [key.name for key in keys.get(write["TableName"], ())] or write.get("Key", ())
    check_is({name: wanted[name] for name in names if name in wanted}, item, at)


def check_has(keys: Iterable[KeyAttribute], item: Payload, at: str) -> None:
    """Checks that an item has its table's keys."""
    for key in keys:
        if key.type not in item.get(key.name, ()):
            raise Misshapen(at, f"has no {key.name} of type {key.type}, which is a key")


def check_all_have(keys: Iterable[KeyAttribute], items: Sequence[Payload]) -> None:
    """Checks that all items of a page have their table's keys."""
    wanted = [(key.name, key.type) for key in keys]
    try:
        if not [item for name, type in wanted for item in items if type not in item[name]]:
            return
    except KeyError:
        pass
    for number, item in enumerate(items):
        check_has(keys, item, f"Items[{number}]")


def check_is(key: Payload, item: Payload, at: str) -> None:
    """Checks that an item has this key; numbers may be spelled differently."""
    for name, value in key.items():
        found = item.get(name)
        if found != value and (found is None or normal_attribute(found) != normal_attribute(value)):
            raise Misshapen(at, f"is of another key: {name} is not {str(value)[:100]}")
