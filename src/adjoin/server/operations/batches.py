"""Many items at once: BatchGetItem and BatchWriteItem, TransactGetItems and TransactWriteItems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Check,
    Delete,
    Get,
    Put,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.server.capacity import capacity
from adjoin.server.grammar import Expressions
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.items import collection_metrics, delete, get, projection_within, put, update

# --- batches -----------------------------------------------------------------------------------


def _batch_get(parameters: Parameters, tables: Tables) -> BatchGet:
    gets: list[Get] = []
    for reference, asked in parameters["RequestItems"].items():
        table = table_name(reference)
        projection = projection_within(table, asked, tables)
        consistent = asked.get("ConsistentRead", False)
        gets += [Get(table, key, consistent, projection) for key in asked["Keys"]]
    return BatchGet(tuple(gets))


def _batch_got(parameters: Parameters, response: BatchGetResponse, tables: Tables) -> Answer:
    items = iter(response.items)
    left = {id(get.key) for get in response.unprocessed}
    found: dict[str, list[Any]] = {}
    unprocessed: dict[str, Answer] = {}
    for reference, asked in parameters["RequestItems"].items():
        found[reference] = [item for _, item in zip(asked["Keys"], items, strict=False) if item is not None]
        if keys := [key for key in asked["Keys"] if id(key) in left]:
            unprocessed[reference] = {**asked, "Keys": keys}
    answer: Answer = {"Responses": found, "UnprocessedKeys": unprocessed}
    return answer | _consumed(parameters, response, tables)


def _batch_write(parameters: Parameters, tables: Tables) -> BatchWrite:
    writes: list[Put | Delete] = []
    for reference, entries in parameters["RequestItems"].items():
        table = table_name(reference)
        for entry in entries:
            if "PutRequest" in entry:
                writes.append(Put(table, entry["PutRequest"]["Item"]))
            else:
                writes.append(Delete(table, entry["DeleteRequest"]["Key"]))
    return BatchWrite(tuple(writes))


def _batch_written(parameters: Parameters, response: WriteResponse, tables: Tables) -> Answer:
    answer: Answer = {"UnprocessedItems": {}} | _consumed(parameters, response, tables)
    metrics = {}
    for reference, entries in parameters["RequestItems"].items():
        keys = [
            entry["PutRequest"]["Item"] if "PutRequest" in entry else entry["DeleteRequest"]["Key"] for entry in entries
        ]
        if shown := collection_metrics(parameters, table_name(reference), keys, tables):
            metrics[reference] = shown
    return answer | {"ItemCollectionMetrics": metrics} if metrics else answer


def _consumed(
    parameters: Parameters, response: BatchGetResponse | WriteResponse, tables: Tables, *, transactional: bool = False
) -> Answer:
    asked = parameters.get("ReturnConsumedCapacity")
    references = parameters["RequestItems"] if "RequestItems" in parameters else _references(parameters)
    shown = capacity(response.consumed, asked, tables, references, transactional=transactional)
    return {"ConsumedCapacity": shown} if shown else {}


def _references(parameters: Parameters) -> list[str]:
    """The tables of a transaction, as it names them."""
    return [part["TableName"] for entry in parameters["TransactItems"] for part in entry.values()]


# --- transactions ------------------------------------------------------------------------------


def _transact_get(parameters: Parameters, tables: Tables) -> TransactGet:
    return TransactGet(tuple(get(entry["Get"], tables) for entry in parameters["TransactItems"]))


def _transact_got(parameters: Parameters, response: BatchGetResponse, tables: Tables) -> Answer:
    # Where a projection finds nothing, it is as if the item was not there.
    answer: Answer = {"Responses": [{"Item": item} if item else {} for item in response.items]}
    return answer | _consumed(parameters, response, tables, transactional=True)


def _check(parameters: Parameters, tables: Tables) -> Check:
    condition = Expressions.of(parameters).condition
    assert condition is not None
    return Check(table_name(parameters["TableName"]), parameters["Key"], condition)


_PARTS: dict[str, Callable[[Parameters, Tables], Put | Update | Delete | Check]] = {
    "Put": put,
    "Update": update,
    "Delete": delete,
    "ConditionCheck": _check,
}


def _transact_write(parameters: Parameters, tables: Tables) -> TransactWrite:
    writes = [_PARTS[kind](part, tables) for entry in parameters["TransactItems"] for kind, part in entry.items()]
    return TransactWrite(tuple(writes), parameters.get("ClientRequestToken"))


def _transacted(parameters: Parameters, response: WriteResponse, tables: Tables) -> Answer:
    answer = _consumed(parameters, response, tables, transactional=True)
    metrics: dict[str, list[Answer]] = {}
    for entry in parameters["TransactItems"]:
        for kind, part in entry.items():
            key = part.get("Key") or part.get("Item")
            table = part["TableName"]
            if kind != "ConditionCheck":
                shown = collection_metrics(parameters, table_name(table), [key], tables)
                if shown:
                    metrics.setdefault(table, []).extend(shown)
    return answer | {"ItemCollectionMetrics": metrics} if metrics else answer


BATCH_OPERATIONS: dict[str, Operation] = {
    "BatchGetItem": Operation(_batch_get, _batch_got),
    "BatchWriteItem": Operation(_batch_write, _batch_written, writes=True),
    "TransactGetItems": Operation(_transact_get, _transact_got),
    "TransactWriteItems": Operation(_transact_write, _transacted, writes=True),
}
