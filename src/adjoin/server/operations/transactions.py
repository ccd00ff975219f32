"""Operations on many items, all or none: TransactGetItems and TransactWriteItems."""

from __future__ import annotations

from collections.abc import Callable

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest
from adjoin.requests import BatchGetResponse, Check, Delete, Put, TransactGet, TransactWrite, Update, WriteResponse
from adjoin.server.grammar import Expressions
from adjoin.server.grammar.attributes import normal
from adjoin.server.operations.batches import consumed, reporting
from adjoin.server.operations.interface import (
    AnswerBody,
    ExpressionParameters,
    Operation,
    Parameters,
    TableLookup,
    table_name,
)
from adjoin.server.operations.items import check_size, collection_metrics, delete, get, put, update
from adjoin.server.operations.shapes import (
    ATTRIBUTES,
    CAPACITY,
    METRICS,
    NAMES,
    RETURN_ON_FAILURE,
    TABLE,
    TEXT,
    Listing,
    ParameterShape,
    Structure,
    Text,
    structure,
)
from adjoin.units import MAX_TOKEN, MAX_TRANSACTION


def _references(parameters: Parameters) -> list[str]:
    """Returns the tables of a transaction, as the request names them."""
    return [part["TableName"] for entry in parameters["TransactItems"] for part in entry.values()]


# --- TransactGetItems --------------------------------------------------------------------------

_GET_PARAMETERS = ExpressionParameters(("ProjectionExpression",))


def _check_get(request: Parameters) -> None:
    with reporting() as parts:
        for item in request["TransactItems"]:
            part = item["Get"]
            _GET_PARAMETERS.check(part)
            parts.append(part)
            part["Key"], _ = normal(part["Key"])


def _get(parameters: Parameters, tables: TableLookup) -> TransactGet:
    return TransactGet(tuple(get(entry["Get"], tables) for entry in parameters["TransactItems"]))


def _got(parameters: Parameters, response: BatchGetResponse, tables: TableLookup) -> AnswerBody:
    # If a projection finds nothing, DynamoDB answers as if the item did not exist.
    answer: AnswerBody = {"Responses": [{"Item": item} if item else {} for item in response.items]}
    return answer | consumed(parameters, response, tables, _references(parameters), transactional=True)


_TRANSACT_GET_ITEMS = Operation(
    "TransactGetItems",
    structure(
        "TransactGetItemsInput",
        "TransactItems",
        TransactItems=Listing(
            structure(
                "TransactGetItem",
                "Get",
                Get=structure(
                    "Get",
                    "Key TableName",
                    Key=ATTRIBUTES,
                    TableName=TABLE,
                    ProjectionExpression=TEXT,
                    ExpressionAttributeNames=NAMES,
                ),
            ),
            least=1,
            most=MAX_TRANSACTION,
        ),
        ReturnConsumedCapacity=CAPACITY,
    ),
    _get,
    _got,
    rule=_check_get,
)

# --- TransactWriteItems ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """One kind of write in a transaction."""

    shape: Structure
    takes: ExpressionParameters
    request: Callable[[Parameters, TableLookup], Put | Update | Delete | Check]


def _check(parameters: Parameters, tables: TableLookup) -> Check:
    condition = Expressions.of(parameters).condition
    assert condition is not None
    return Check(table_name(parameters["TableName"]), parameters["Key"], condition)


_CONDITION = ExpressionParameters(("ConditionExpression",))

_CONDITIONAL: dict[str, ParameterShape] = {
    "ConditionExpression": TEXT,
    "ExpressionAttributeNames": NAMES,
    "ExpressionAttributeValues": ATTRIBUTES,
    "ReturnValuesOnConditionCheckFailure": RETURN_ON_FAILURE,
}
"""Members that every part has, after those of its own kind."""

_PARTS = {
    "ConditionCheck": _Part(
        structure(
            "ConditionCheck", "Key TableName ConditionExpression", Key=ATTRIBUTES, TableName=TABLE, **_CONDITIONAL
        ),
        _CONDITION,
        _check,
    ),
    "Put": _Part(
        structure("Put", "Item TableName", Item=ATTRIBUTES, TableName=TABLE, **_CONDITIONAL),
        _CONDITION,
        put,
    ),
    "Delete": _Part(
        structure("Delete", "Key TableName", Key=ATTRIBUTES, TableName=TABLE, **_CONDITIONAL),
        _CONDITION,
        delete,
    ),
    "Update": _Part(
        structure(
            "Update",
            "Key UpdateExpression TableName",
            Key=ATTRIBUTES,
            UpdateExpression=TEXT,
            TableName=TABLE,
            **_CONDITIONAL,
        ),
        ExpressionParameters(("UpdateExpression", "ConditionExpression")),
        update,
    ),
}


def _check_write(request: Parameters) -> None:
    for item in request["TransactItems"]:
        if not item:
            raise InvalidRequest("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
        if len(item) > 1:
            raise InvalidRequest("TransactItems can only contain one of Check, Put, Update or Delete")
    with reporting() as parts:
        for item in request["TransactItems"]:
            ((kind, part),) = item.items()
            _PARTS[kind].takes.check(part)
            parts.append(part)
            _check_part(part)


def _check_part(part: Parameters) -> None:
    if "Item" in part:
        part["Item"], size = normal(part["Item"])
        check_size(size)
    else:
        part["Key"], _ = normal(part["Key"])


def _write(parameters: Parameters, tables: TableLookup) -> TransactWrite:
    writes = [
        _PARTS[kind].request(part, tables) for entry in parameters["TransactItems"] for kind, part in entry.items()
    ]
    return TransactWrite(tuple(writes), parameters.get("ClientRequestToken"))


def _written(parameters: Parameters, response: WriteResponse, tables: TableLookup) -> AnswerBody:
    answer = consumed(parameters, response, tables, _references(parameters), transactional=True)
    metrics: dict[str, list[AnswerBody]] = {}
    for entry in parameters["TransactItems"]:
        for kind, part in entry.items():
            key = part.get("Key") or part.get("Item")
            table = part["TableName"]
            if kind != "ConditionCheck":
                shown = collection_metrics(parameters, table_name(table), [key], tables)
                if shown:
                    metrics.setdefault(table, []).extend(shown)
    return answer | {"ItemCollectionMetrics": metrics} if metrics else answer


_TRANSACT_WRITE_ITEMS = Operation(
    "TransactWriteItems",
    structure(
        "TransactWriteItemsInput",
        "TransactItems",
        TransactItems=Listing(
            structure("TransactWriteItem", **{kind: part.shape for kind, part in _PARTS.items()}),
            least=1,
            most=MAX_TRANSACTION,
        ),
        ReturnConsumedCapacity=CAPACITY,
        ReturnItemCollectionMetrics=METRICS,
        ClientRequestToken=Text(least=1, most=MAX_TOKEN),
    ),
    _write,
    _written,
    rule=_check_write,
    writes=True,
)

TRANSACTION_OPERATIONS = (_TRANSACT_GET_ITEMS, _TRANSACT_WRITE_ITEMS)
