"""Operations on many items, each of which succeeds or fails on its own: BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from adjoin.errors import InvalidRequest
from adjoin.items import plain_item
from adjoin.requests import BatchGet, BatchGetResponse, BatchWrite, Delete, Get, Put, WriteResponse
from adjoin.server.grammar import Expressions, attributes_to_get
from adjoin.server.grammar.attributes import SEVERAL_TYPES, normal
from adjoin.server.operations.interface import (
    AnswerBody,
    Operation,
    ParameterRule,
    Parameters,
    ShortWrite,
    TableLookup,
    table_name,
)
from adjoin.server.operations.items import (
    READ_PARAMETERS,
    capacity,
    check_size,
    collection_metrics,
    is_plain_name,
    projection_within,
)
from adjoin.server.operations.shapes import (
    ATTRIBUTE_NAMES,
    ATTRIBUTES,
    CAPACITY,
    FLAG,
    METRICS,
    NAMES,
    TABLE,
    TEXT,
    Entries,
    Listing,
    structure,
)
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_WRITE

# --- what batches and transactions share -------------------------------------------------------


@contextmanager
def reporting() -> Iterator[list[Mapping[str, Any]]]:
    """Collects parts. If a part is refused, a wrong expression in an earlier part is reported instead.

    DynamoDB reads the expressions of one part before it checks the values of the next. This server reads expressions
    later, and only if nothing else is wrong; so it has to look for the earlier fault here.
    """
    parts: list[Mapping[str, Any]] = []
    try:
        yield parts
    except InvalidRequest:
        for part in parts:
            Expressions.of(part)
        raise


def consumed(
    parameters: Parameters,
    response: BatchGetResponse | WriteResponse,
    tables: TableLookup,
    references: Iterable[str],
    *,
    transactional: bool = False,
) -> AnswerBody:
    asked = parameters.get("ReturnConsumedCapacity")
    shown = capacity(response.consumed, asked, tables, references, transactional=transactional)
    return {"ConsumedCapacity": shown} if shown else {}


def _require_items(operation: str) -> ParameterRule:
    def check(request: Parameters) -> None:
        if request.get("RequestItems") == {}:
            raise InvalidRequest(f"The requestItems parameter is required for {operation}")

    return check


# --- BatchGetItem ------------------------------------------------------------------------------


def _check_get(request: Parameters) -> None:
    total = 0
    with reporting() as parts:
        for asked in request["RequestItems"].values():
            READ_PARAMETERS.check(asked)
            if "AttributesToGet" in asked:
                attributes_to_get(asked["AttributesToGet"])
            parts.append(asked)
            total = _check_keys(asked, total)


def _check_keys(asked: Parameters, total: int) -> int:
    """Brings the keys of one table to normal form; returns `total` plus their number."""
    keys: list[Any] = []
    seen: set[bytes] = set()
    for key in asked["Keys"]:
        new, _ = normal(key)
        keys.append(new)
        seen.add(orjson.dumps(new, option=orjson.OPT_SORT_KEYS))
        if len(seen) < len(keys):
            raise InvalidRequest("Provided list of item keys contains duplicates")
        total += 1
        if total > MAX_BATCH_GET:
            raise InvalidRequest("Too many items requested for the BatchGetItem call")
    asked["Keys"] = keys
    return total


def _get(parameters: Parameters, tables: TableLookup) -> BatchGet:
    gets: list[Get] = []
    for reference, asked in parameters["RequestItems"].items():
        table = table_name(reference)
        projection = projection_within(table, asked, tables)
        consistent = asked.get("ConsistentRead", False)
        gets += [Get(table, key, consistent, projection) for key in asked["Keys"]]
    return BatchGet(tuple(gets))


def _got(parameters: Parameters, response: BatchGetResponse, tables: TableLookup) -> AnswerBody:
    items = iter(response.items)
    left = {id(get.key) for get in response.unprocessed}
    found: dict[str, list[Any]] = {}
    unprocessed: dict[str, AnswerBody] = {}
    for reference, asked in parameters["RequestItems"].items():
        found[reference] = [item for _, item in zip(asked["Keys"], items, strict=False) if item is not None]
        if keys := [key for key in asked["Keys"] if id(key) in left]:
            unprocessed[reference] = {**asked, "Keys": keys}
    answer: AnswerBody = {"Responses": found, "UnprocessedKeys": unprocessed}
    return answer | consumed(parameters, response, tables, parameters["RequestItems"])


_BATCH_GET_ITEM = Operation(
    "BatchGetItem",
    structure(
        "BatchGetItemInput",
        "RequestItems",
        ReturnConsumedCapacity=CAPACITY,
        RequestItems=Entries(
            structure(
                "KeysAndAttributes",
                "Keys",
                Keys=Listing(ATTRIBUTES, least=1, most=MAX_BATCH_GET),
                AttributesToGet=ATTRIBUTE_NAMES,
                ConsistentRead=FLAG,
                ProjectionExpression=TEXT,
                ExpressionAttributeNames=NAMES,
            ),
            least=1,
            most=100,
            keys=TABLE,
        ),
    ),
    _get,
    _got,
    precondition=_require_items("BatchGetItem"),
    rule=_check_get,
)

# --- BatchWriteItem ----------------------------------------------------------------------------


def _check_write(request: Parameters) -> None:
    total = 0
    for writes in request["RequestItems"].values():
        if any(len(write) != 1 for write in writes):
            raise InvalidRequest(SEVERAL_TYPES)
        for write in writes:
            if "PutRequest" in write:
                put = write["PutRequest"]
                put["Item"], size = normal(put["Item"])
                check_size(size)
            else:
                delete = write["DeleteRequest"]
                delete["Key"], _ = normal(delete["Key"])
        total += len(writes)
    if total > MAX_BATCH_WRITE:
        raise InvalidRequest("Too many items requested for the BatchWriteItem call")


def _write(parameters: Parameters, tables: TableLookup) -> BatchWrite:
    writes: list[Put | Delete] = []
    for reference, entries in parameters["RequestItems"].items():
        table = table_name(reference)
        for entry in entries:
            if "PutRequest" in entry:
                writes.append(Put(table, entry["PutRequest"]["Item"]))
            else:
                writes.append(Delete(table, entry["DeleteRequest"]["Key"]))
    return BatchWrite(tuple(writes))


def _written(parameters: Parameters, response: WriteResponse, tables: TableLookup) -> AnswerBody:
    answer: AnswerBody = {"UnprocessedItems": {}} | consumed(parameters, response, tables, parameters["RequestItems"])
    metrics = {}
    for reference, entries in parameters["RequestItems"].items():
        keys = [
            entry["PutRequest"]["Item"] if "PutRequest" in entry else entry["DeleteRequest"]["Key"] for entry in entries
        ]
        if shown := collection_metrics(parameters, table_name(reference), keys, tables):
            metrics[reference] = shown
    return answer | {"ItemCollectionMetrics": metrics} if metrics else answer


def _short_puts(asked: Any) -> BatchWrite | None:
    """Returns the request of a batch that only puts plain items into one table; None for any other batch."""
    puts: list[Put] = []
    try:
        ((member, tables),) = asked.items()
        ((name, writes),) = tables.items()
        if member != "RequestItems" or not is_plain_name(name) or not 1 <= len(writes) <= MAX_BATCH_WRITE:
            return None
        for write in writes:
            item = plain_item(write["PutRequest"]["Item"])
            if item is None or len(write) != 1 or len(write["PutRequest"]) != 1:
                return None
            puts.append(Put(name, item))
    except (AttributeError, KeyError, TypeError, ValueError):
        # The JSON has other types or members, which the general code handles.
        return None
    return BatchWrite(tuple(puts))


_BATCH_WRITE_ITEM = Operation(
    "BatchWriteItem",
    structure(
        "BatchWriteItemInput",
        "RequestItems",
        ReturnConsumedCapacity=CAPACITY,
        ReturnItemCollectionMetrics=METRICS,
        RequestItems=Entries(
            Listing(
                structure(
                    "WriteRequest",
                    DeleteRequest=structure("DeleteRequest", "Key", Key=ATTRIBUTES),
                    PutRequest=structure("PutRequest", "Item", Item=ATTRIBUTES),
                ),
                least=1,
                most=MAX_BATCH_WRITE,
            ),
            least=1,
            most=25,
            keys=TABLE,
        ),
    ),
    _write,
    _written,
    precondition=_require_items("BatchWriteItem"),
    rule=_check_write,
    writes=True,
    short=ShortWrite(_short_puts, b'{"UnprocessedItems":{}}'),
)

BATCH_OPERATIONS = (_BATCH_GET_ITEM, _BATCH_WRITE_ITEM)
