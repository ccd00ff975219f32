"""What the operations on items take: one item, queries and scans, batches and transactions."""

from __future__ import annotations

from adjoin.server.inputs.members import (
    ATTRIBUTE,
    ATTRIBUTE_NAME,
    ATTRIBUTE_NAMES,
    ATTRIBUTES,
    CAPACITY,
    COMPARISON,
    FLAG,
    METRICS,
    NAME,
    NAMES,
    OPERATOR,
    POSITIVE,
    RETURN_ON_FAILURE,
    RETURN_VALUES,
    TABLE,
    TEXT,
)
from adjoin.server.shapes import Entries, Listing, Structure, Text, Whole, structure
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_WRITE, MAX_TOKEN, MAX_TRANSACTION

_EXPECTED = Entries(
    structure(
        "ExpectedAttributeValue",
        AttributeValueList=Listing(ATTRIBUTE),
        ComparisonOperator=COMPARISON,
        Exists=FLAG,
        Value=ATTRIBUTE,
    ),
    keys=ATTRIBUTE_NAME,
)

_CONDITIONS = Entries(
    structure(
        "Condition",
        "ComparisonOperator",
        AttributeValueList=Listing(ATTRIBUTE),
        ComparisonOperator=COMPARISON,
    ),
    keys=ATTRIBUTE_NAME,
)

_SELECT = Text(choices=("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"))

# --- one item ----------------------------------------------------------------------------------

_GET = structure(
    "GetItemInput",
    "TableName Key",
    ReturnConsumedCapacity=CAPACITY,
    AttributesToGet=ATTRIBUTE_NAMES,
    TableName=TABLE,
    Key=ATTRIBUTES,
    ConsistentRead=FLAG,
    ProjectionExpression=TEXT,
    ExpressionAttributeNames=NAMES,
)

_PUT = structure(
    "PutItemInput",
    "TableName Item",
    ReturnConsumedCapacity=CAPACITY,
    TableName=TABLE,
    Item=ATTRIBUTES,
    ConditionalOperator=OPERATOR,
    Expected=_EXPECTED,
    ReturnValues=RETURN_VALUES,
    ReturnItemCollectionMetrics=METRICS,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
    ConditionExpression=TEXT,
    ExpressionAttributeValues=ATTRIBUTES,
    ExpressionAttributeNames=NAMES,
)

_DELETE = structure(
    "DeleteItemInput",
    "TableName Key",
    ReturnConsumedCapacity=CAPACITY,
    TableName=TABLE,
    ReturnValues=RETURN_VALUES,
    ReturnItemCollectionMetrics=METRICS,
    Key=ATTRIBUTES,
    ConditionalOperator=OPERATOR,
    Expected=_EXPECTED,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
    ConditionExpression=TEXT,
    ExpressionAttributeValues=ATTRIBUTES,
    ExpressionAttributeNames=NAMES,
)

_UPDATE = structure(
    "UpdateItemInput",
    "TableName Key",
    ReturnConsumedCapacity=CAPACITY,
    TableName=TABLE,
    ReturnItemCollectionMetrics=METRICS,
    ReturnValues=RETURN_VALUES,
    Key=ATTRIBUTES,
    ConditionalOperator=OPERATOR,
    Expected=_EXPECTED,
    AttributeUpdates=Entries(
        structure("AttributeValueUpdate", Action=Text(choices=("ADD", "PUT", "DELETE")), Value=ATTRIBUTE),
        keys=ATTRIBUTE_NAME,
    ),
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
    ConditionExpression=TEXT,
    UpdateExpression=TEXT,
    ExpressionAttributeValues=ATTRIBUTES,
    ExpressionAttributeNames=NAMES,
)

# --- many items --------------------------------------------------------------------------------

_QUERY = structure(
    "QueryInput",
    "TableName",
    Select=_SELECT,
    IndexName=NAME,
    ReturnConsumedCapacity=CAPACITY,
    QueryFilter=_CONDITIONS,
    TableName=TABLE,
    ConditionalOperator=OPERATOR,
    AttributesToGet=ATTRIBUTE_NAMES,
    Limit=POSITIVE,
    KeyConditions=_CONDITIONS,
    ExclusiveStartKey=ATTRIBUTES,
    ConsistentRead=FLAG,
    ScanIndexForward=FLAG,
    KeyConditionExpression=TEXT,
    FilterExpression=TEXT,
    ProjectionExpression=TEXT,
    ExpressionAttributeValues=ATTRIBUTES,
    ExpressionAttributeNames=NAMES,
)

_SCAN = structure(
    "ScanInput",
    "TableName",
    Select=_SELECT,
    IndexName=NAME,
    TotalSegments=Whole("Integer", least=1, most=1_000_000),
    ReturnConsumedCapacity=CAPACITY,
    TableName=TABLE,
    ConditionalOperator=OPERATOR,
    ScanFilter=_CONDITIONS,
    Segment=Whole("Integer", least=0, most=999_999),
    Limit=POSITIVE,
    AttributesToGet=ATTRIBUTE_NAMES,
    ExclusiveStartKey=ATTRIBUTES,
    ConsistentRead=FLAG,
    FilterExpression=TEXT,
    ProjectionExpression=TEXT,
    ExpressionAttributeValues=ATTRIBUTES,
    ExpressionAttributeNames=NAMES,
)

_BATCH_GET = structure(
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
)

_BATCH_WRITE = structure(
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
)

# --- transactions ------------------------------------------------------------------------------

_CONDITION_CHECK = structure(
    "ConditionCheck",
    "Key TableName ConditionExpression",
    Key=ATTRIBUTES,
    TableName=TABLE,
    ConditionExpression=TEXT,
    ExpressionAttributeNames=NAMES,
    ExpressionAttributeValues=ATTRIBUTES,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
)

_TRANSACT_PUT = structure(
    "Put",
    "Item TableName",
    Item=ATTRIBUTES,
    TableName=TABLE,
    ConditionExpression=TEXT,
    ExpressionAttributeNames=NAMES,
    ExpressionAttributeValues=ATTRIBUTES,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
)

_TRANSACT_DELETE = structure(
    "Delete",
    "Key TableName",
    Key=ATTRIBUTES,
    TableName=TABLE,
    ConditionExpression=TEXT,
    ExpressionAttributeNames=NAMES,
    ExpressionAttributeValues=ATTRIBUTES,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
)

_TRANSACT_UPDATE = structure(
    "Update",
    "Key UpdateExpression TableName",
    Key=ATTRIBUTES,
    UpdateExpression=TEXT,
    TableName=TABLE,
    ConditionExpression=TEXT,
    ExpressionAttributeNames=NAMES,
    ExpressionAttributeValues=ATTRIBUTES,
    ReturnValuesOnConditionCheckFailure=RETURN_ON_FAILURE,
)

_TRANSACT_WRITE = structure(
    "TransactWriteItemsInput",
    "TransactItems",
    TransactItems=Listing(
        structure(
            "TransactWriteItem",
            ConditionCheck=_CONDITION_CHECK,
            Put=_TRANSACT_PUT,
            Delete=_TRANSACT_DELETE,
            Update=_TRANSACT_UPDATE,
        ),
        least=1,
        most=MAX_TRANSACTION,
    ),
    ReturnConsumedCapacity=CAPACITY,
    ReturnItemCollectionMetrics=METRICS,
    ClientRequestToken=Text(least=1, most=MAX_TOKEN),
)

_TRANSACT_GET = structure(
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
)

ITEM_INPUTS: dict[str, Structure] = {
    "GetItem": _GET,
    "PutItem": _PUT,
    "DeleteItem": _DELETE,
    "UpdateItem": _UPDATE,
    "Query": _QUERY,
    "Scan": _SCAN,
    "BatchGetItem": _BATCH_GET,
    "BatchWriteItem": _BATCH_WRITE,
    "TransactWriteItems": _TRANSACT_WRITE,
    "TransactGetItems": _TRANSACT_GET,
}
