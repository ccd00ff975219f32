"""Batches and transactions: exact answers and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.requests import BatchGet, BatchGetResponse
from tests.server.operations.calls import OPERATIONS, Calls

MISMATCH = "The provided key element does not match the schema"
CANCELED = "Transaction cancelled, please refer cancellation reasons for specific reasons "
INVALID = "One or more parameter values were invalid: "
EMPTY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty"
    " string value. Key: a"
)
NONE = {"Code": "None"}


def s(text: str) -> dict[str, str]:
    return {"S": text}


@pytest.fixture(autouse=True)
def tables(call: Calls) -> None:
    """One table with a global index, and one with a local one."""
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in "abc"]
    a, b, c = ({"AttributeName": name, "KeyType": "HASH"} for name in "abc")
    everything = {"ProjectionType": "ALL"}
    call(
        "CreateTable",
        TableName="one",
        AttributeDefinitions=definitions[::2],
        KeySchema=[a],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[{"IndexName": "glo", "KeySchema": [c], "Projection": everything}],
    )
    local = [a, {**c, "KeyType": "RANGE"}]
    call(
        "CreateTable",
        TableName="two",
        AttributeDefinitions=definitions,
        KeySchema=[a, {**b, "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
        LocalSecondaryIndexes=[{"IndexName": "loc", "KeySchema": local, "Projection": everything}],
    )


def puts(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": item}} for item in items]


def deletes(*keys: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"DeleteRequest": {"Key": key}} for key in keys]


BATCHES: list[tuple[list[dict[str, Any]], str]] = [
    ([*puts({"a": s("1")}), *deletes({"a": s("1")})], "Provided list of item keys contains duplicates"),
    (puts({"a": {"N": "1"}}), MISMATCH),
    (puts({"a": {"L": []}}), MISMATCH),
    (puts({"b": s("1")}), MISMATCH),
    (puts({"a": s("")}), EMPTY),
    (
        puts({"a": s("1"), "c": {"N": "1"}}),
        f"{INVALID}Type mismatch for Index Key c Expected: S Actual: N IndexName: glo",
    ),
    (deletes({"a": s("1"), "b": s("1")}), MISMATCH),
    (deletes({"a": s("")}), EMPTY),
]


@pytest.mark.parametrize(("writes", "message"), BATCHES)
def test_refused_batches(call: Calls, writes: list[dict[str, Any]], message: str) -> None:
    fault = call.fault("BatchWriteItem", RequestItems={"one": writes})
    assert fault == {"code": "ValidationException", "message": message}


def test_a_batch_over_two_tables(call: Calls) -> None:
    written = call(
        "BatchWriteItem",
        RequestItems={
            "one": puts({"a": s("1"), "c": s("x" * 1500)}),
            "two": puts({"a": s("1"), "b": s("1"), "c": s("1")}, {"a": s("2"), "b": s("1")}),
        },
        ReturnConsumedCapacity="INDEXES",
        ReturnItemCollectionMetrics="SIZE",
    )
    assert written == {
        "UnprocessedItems": {},
        "ConsumedCapacity": [
            {
                "TableName": "one",
                "CapacityUnits": 4.0,
                "Table": {"CapacityUnits": 2.0},
                "GlobalSecondaryIndexes": {"glo": {"CapacityUnits": 2.0}},
            },
            {
                "TableName": "two",
                "CapacityUnits": 3.0,
                "Table": {"CapacityUnits": 2.0},
                "LocalSecondaryIndexes": {"loc": {"CapacityUnits": 1.0}},
            },
        ],
        "ItemCollectionMetrics": {
            "two": [{"ItemCollectionKey": {"a": s(each)}, "SizeEstimateRangeGB": [0.0, 1.0]} for each in "12"]
        },
    }
    read = call(
        "BatchGetItem",
        RequestItems={
            "one": {"Keys": [{"a": s("1")}, {"a": s("9")}], "ProjectionExpression": "a", "ConsistentRead": True},
            "two": {"Keys": [{"a": s("2"), "b": s("1")}]},
        },
        ReturnConsumedCapacity="TOTAL",
    )
    assert read == {
        "Responses": {"one": [{"a": s("1")}], "two": [{"a": s("2"), "b": s("1")}]},
        "UnprocessedKeys": {},
        "ConsumedCapacity": [{"TableName": "one", "CapacityUnits": 2.0}, {"TableName": "two", "CapacityUnits": 0.5}],
    }


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([{"a": s("1")}, {"a": s("1")}], "Provided list of item keys contains duplicates"),
        ([{"a": {"N": "1"}}], MISMATCH),
        ([{}], MISMATCH),
        ([{"a": s("")}], EMPTY),
    ],
)
def test_refused_batches_of_keys(call: Calls, keys: list[dict[str, Any]], message: str) -> None:
    fault = call.fault("BatchGetItem", RequestItems={"one": {"Keys": keys}})
    assert fault == {"code": "ValidationException", "message": message}


def test_a_table_named_by_its_arn_is_told_by_it(call: Calls) -> None:
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/one"
    key, asked = {"a": s("1")}, {"ReturnConsumedCapacity": "TOTAL"}
    assert call("PutItem", TableName=arn, Item=key, **asked)["ConsumedCapacity"]["TableName"] == arn
    assert call("Scan", TableName=arn, **asked)["ConsumedCapacity"]["TableName"] == arn
    read = call("BatchGetItem", RequestItems={arn: {"Keys": [key]}}, **asked)
    assert read["Responses"] == {arn: [key]}
    assert read["ConsumedCapacity"] == [{"TableName": arn, "CapacityUnits": 0.5}]
    written = call("TransactWriteItems", TransactItems=[{"Delete": {"TableName": arn, "Key": key}}], **asked)
    assert written["ConsumedCapacity"][0]["TableName"] == arn


@pytest.mark.parametrize(("path", "key"), [("a.x", "Key: a"), ("c[0]", "IndexKey: c")])
def test_a_batch_does_not_look_into_keys(call: Calls, path: str, key: str) -> None:
    asked = {"Keys": [{"a": s("1")}], "ProjectionExpression": path}
    assert call.fault("BatchGetItem", RequestItems={"one": asked}) == {
        "code": "ValidationException",
        "message": (
            f"Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {key}"
        ),
    }


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_a_batch_of_nothing(call: Calls, operation: str) -> None:
    fault = call.fault(operation, RequestItems={}, ReturnConsumedCapacity="SOME")
    message = f"The requestItems parameter is required for {operation}"
    assert fault == {"code": "ValidationException", "message": message}


def test_batches_and_transactions_of_no_table(call: Calls) -> None:
    missing = {"code": "ResourceNotFoundException", "message": "Requested resource not found"}
    key = {"a": s("1")}
    assert call.fault("BatchGetItem", RequestItems={"none": {"Keys": [key]}}) == missing
    assert call.fault("BatchWriteItem", RequestItems={"none": deletes(key)}) == missing
    assert call.fault("TransactGetItems", TransactItems=[{"Get": {"TableName": "none", "Key": key}}]) == missing
    assert call.fault("TransactWriteItems", TransactItems=[{"Put": {"TableName": "none", "Item": key}}]) == missing


def test_what_is_left_of_a_batch_is_asked_for_again_as_it_was(call: Calls) -> None:
    keys = [{"a": s(each)} for each in "123"]
    parameters = OPERATIONS["BatchGetItem"].validated(
        {"RequestItems": {"one": {"Keys": keys, "ConsistentRead": True}, "two": {"Keys": [{"a": s("1"), "b": s("1")}]}}}
    )
    asked = OPERATIONS["BatchGetItem"].request(parameters, call)
    assert isinstance(asked, BatchGet)
    response = BatchGetResponse([None, {"a": s("2")}, None, None], unprocessed=asked.gets[2:3])
    assert OPERATIONS["BatchGetItem"].answer(parameters, response, call) == {
        "Responses": {"one": [keys[1]], "two": []},
        "UnprocessedKeys": {"one": {"Keys": keys[2:], "ConsistentRead": True}},
    }


def test_a_key_is_found_however_it_is_written(call: Calls) -> None:
    call(
        "CreateTable",
        TableName="numbers",
        AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item, key = {"a": {"N": "10"}}, {"a": {"N": "1e1"}}
    written = {"TableName": "numbers", "Key": key}

    def puts_it() -> None:
        call("BatchWriteItem", RequestItems={"numbers": puts(key)})
        assert call("Scan", TableName="numbers")["Items"] == [item]

    puts_it()
    assert call("GetItem", **written)["Item"] == item
    assert call("BatchGetItem", RequestItems={"numbers": {"Keys": [key]}})["Responses"]["numbers"] == [item]
    assert call("TransactGetItems", TransactItems=[{"Get": written}])["Responses"] == [{"Item": item}]
    check = {**written, "ConditionExpression": "attribute_exists(a)"}
    call("TransactWriteItems", TransactItems=[{"ConditionCheck": check}])
    assert call("UpdateItem", ReturnValues="ALL_NEW", **written)["Attributes"] == item
    removals: list[tuple[str, dict[str, Any]]] = [
        ("DeleteItem", written),
        ("BatchWriteItem", {"RequestItems": {"numbers": deletes(key)}}),
        ("TransactWriteItems", {"TransactItems": [{"Delete": written}]}),
    ]
    for operation, asked in removals:
        call(operation, **asked)
        assert call("Scan", TableName="numbers")["Count"] == 0
        puts_it()


@pytest.mark.parametrize(
    ("more", "units"), [({}, 0.5), ({"ConsistentRead": False}, 0.5), ({"ConsistentRead": True}, 1)]
)
def test_a_read_is_consistent_if_it_asks_for_that(call: Calls, more: dict[str, Any], units: float) -> None:
    key, asked = {"a": s("1")}, {"ReturnConsumedCapacity": "TOTAL"}
    one = call("GetItem", TableName="one", Key=key, **more, **asked)
    (several,) = call("BatchGetItem", RequestItems={"one": {"Keys": [key], **more}}, **asked)["ConsumedCapacity"]
    assert one["ConsumedCapacity"]["CapacityUnits"] == several["CapacityUnits"] == units


# --- transactions ------------------------------------------------------------------------------


def put(key: str, **members: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "one", "Item": {"a": s(key)}} | members}


def canceled(*reasons: dict[str, Any]) -> dict[str, Any]:
    codes = ", ".join(reason["Code"] for reason in reasons)
    return {
        "code": "TransactionCanceledException",
        "message": f"{CANCELED}[{codes}]",
        "CancellationReasons": list(reasons),
    }


def invalid(message: str) -> dict[str, Any]:
    return {"Code": "ValidationError", "Message": message}


ABSENT = {"ConditionExpression": "attribute_not_exists(a)"}
FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
TRANSACTIONS: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    (
        [put("1"), put("1")],
        {
            "code": "ValidationException",
            "message": "Transaction request cannot include multiple operations on one item",
        },
    ),
    ([put("")], {"code": "ValidationException", "message": EMPTY}),
    (
        [put("1"), put("2", Item={"a": {"N": "1"}})],
        canceled(NONE, invalid(f"{INVALID}Type mismatch for key a expected: S actual: N")),
    ),
    ([{"Delete": {"TableName": "one", "Key": {"b": s("1")}}}], canceled(invalid(MISMATCH))),
    ([put("old", **ABSENT), put("2")], canceled(FAILED, NONE)),
    (
        [put("2"), put("old", **ABSENT, ReturnValuesOnConditionCheckFailure="ALL_OLD")],
        canceled(NONE, {**FAILED, "Item": {"a": s("old"), "n": {"N": "1"}}}),
    ),
    (
        [
            {
                "Update": {
                    "TableName": "one",
                    "Key": {"a": s("old")},
                    "UpdateExpression": "SET n = x + n",
                }
            }
        ],
        canceled(invalid("The provided expression refers to an attribute that does not exist in the item")),
    ),
]


def test_an_item_that_grows_too_large(call: Calls) -> None:
    call("PutItem", TableName="one", Item={"a": s("1"), "x": s("x" * 300_000)})
    update = {
        "TableName": "one",
        "Key": {"a": s("1")},
        "UpdateExpression": "SET y = :y",
        "ExpressionAttributeValues": {":y": s("y" * 200_000)},
    }
    message = "Item size to update has exceeded the maximum allowed size"
    assert call.fault("UpdateItem", **update) == {"code": "ValidationException", "message": message}
    assert call.fault("TransactWriteItems", TransactItems=[{"Update": update}]) == canceled(invalid(message))


@pytest.mark.parametrize(("items", "fault"), TRANSACTIONS)
def test_refused_transactions(call: Calls, items: list[dict[str, Any]], fault: dict[str, Any]) -> None:
    call("PutItem", TableName="one", Item={"a": s("old"), "n": {"N": "1"}})
    assert call.fault("TransactWriteItems", TransactItems=items) == fault
    assert call("Scan", TableName="one")["Count"] == 1


def test_a_transaction_over_two_tables(call: Calls) -> None:
    call("PutItem", TableName="one", Item={"a": s("old")})
    check = {"TableName": "one", "Key": {"a": s("old")}, "ConditionExpression": "attribute_exists(a)"}
    two = {"TableName": "two", "Item": {"a": s("1"), "b": s("1")}}
    asked: dict[str, Any] = {
        "TransactItems": [put("1"), {"Put": two}, {"ConditionCheck": check}],
        "ReturnConsumedCapacity": "TOTAL",
        "ReturnItemCollectionMetrics": "SIZE",
        "ClientRequestToken": "token",
    }
    metrics = {"two": [{"ItemCollectionKey": {"a": s("1")}, "SizeEstimateRangeGB": [0.0, 1.0]}]}

    def units(table: str, kind: str, taken: float) -> dict[str, Any]:
        return {"TableName": table, "CapacityUnits": taken, f"{kind}CapacityUnits": taken}

    assert call("TransactWriteItems", **asked) == {
        "ConsumedCapacity": [units("one", "Write", 4.0), units("two", "Write", 2.0)],
        "ItemCollectionMetrics": metrics,
    }
    assert call("TransactWriteItems", **asked) == {
        "ConsumedCapacity": [units("one", "Read", 4.0), units("two", "Read", 2.0)],
        "ItemCollectionMetrics": metrics,
    }
    again = call.fault("TransactWriteItems", TransactItems=[put("2")], ClientRequestToken="token")
    assert again["code"] == "IdempotentParameterMismatchException"


def test_finding_a_transaction_again_takes_what_its_items_were(call: Calls) -> None:
    call("PutItem", TableName="one", Item={"a": s("1"), "x": s("x" * 9000)})
    asked: dict[str, Any] = {
        "TransactItems": [{"Delete": {"TableName": "one", "Key": {"a": s("1")}}}],
        "ReturnConsumedCapacity": "TOTAL",
        "ClientRequestToken": "token",
    }
    (first,) = call("TransactWriteItems", **asked)["ConsumedCapacity"]
    (again,) = call("TransactWriteItems", **asked)["ConsumedCapacity"]
    assert (first["WriteCapacityUnits"], again["ReadCapacityUnits"]) == (18.0, 6.0)


def get(key: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"Get": {"TableName": "one", "Key": key} | members}


def test_reading_in_a_transaction(call: Calls) -> None:
    call("PutItem", TableName="one", Item={"a": s("1"), "n": {"N": "1"}})
    asked = [get({"a": s("1")}, ProjectionExpression="n"), get({"a": s("2")})]
    assert call("TransactGetItems", TransactItems=asked, ReturnConsumedCapacity="INDEXES") == {
        "Responses": [{"Item": {"n": {"N": "1"}}}, {}],
        "ConsumedCapacity": [
            {
                "TableName": "one",
                "CapacityUnits": 4.0,
                "ReadCapacityUnits": 4.0,
                "Table": {"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0},
            }
        ],
    }
    nothing = [get({"a": s("1")}, ProjectionExpression="x")]
    assert call("TransactGetItems", TransactItems=nothing) == {"Responses": [{}]}
    wrong = [get({"a": s("1")}), get({"a": {"N": "1"}})]
    assert call.fault("TransactGetItems", TransactItems=wrong) == canceled(NONE, invalid(MISMATCH))
    empty = call.fault("TransactGetItems", TransactItems=[get({"a": s("")})])
    assert empty == {"code": "ValidationException", "message": EMPTY}
