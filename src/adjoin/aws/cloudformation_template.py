"""A table as a CloudFormation template with one resource, AWS::DynamoDB::Table.

The table stays when its stack is deleted, or when a change would replace it: a template describes a
table, and must not be what loses its data.
"""

from __future__ import annotations

from typing import Any

from adjoin.stores.definitions import check_definition
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition, Throughput

_LOGICAL_ID = "Table"


def cloudformation(table: TableDefinition) -> dict[str, Any]:
    """A whole template, to be written as JSON; its outputs are the table's name and ARN, and its stream's."""
    outputs = {
        "TableName": {"Description": "the table's name", "Value": {"Ref": _LOGICAL_ID}},
        "TableArn": {"Description": "the table's ARN", "Value": {"Fn::GetAtt": [_LOGICAL_ID, "Arn"]}},
    }
    if table.stream:
        stream = {"Fn::GetAtt": [_LOGICAL_ID, "StreamArn"]}
        outputs["StreamArn"] = {"Description": "the ARN of the table's change stream", "Value": stream}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The DynamoDB table {table.name}",
        "Resources": {
            _LOGICAL_ID: {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": table_properties(table),
            }
        },
        "Outputs": outputs,
    }


def table_properties(table: TableDefinition) -> dict[str, Any]:
    """The properties of the resource; what is not set is not there."""
    check_definition(table)
    properties: dict[str, Any] = {
        "TableName": table.name,
        "AttributeDefinitions": [
            {"AttributeName": key.name, "AttributeType": key.type} for key in table.key_attributes
        ],
        "KeySchema": _key_schema(table.keys),
        "BillingMode": "PAY_PER_REQUEST" if table.throughput is None else "PROVISIONED",
    }
    _set(properties, "ProvisionedThroughput", _throughput(table.throughput))
    _set(properties, "GlobalSecondaryIndexes", [_index(table, each) for each in table.indexes if not each.local])
    _set(properties, "LocalSecondaryIndexes", [_index(table, each) for each in table.indexes if each.local])
    if table.stream:
        properties["StreamSpecification"] = {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    if table.ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    # Said even where they are off, so that an update of the stack turns them off.
    properties["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": table.point_in_time_recovery}
    properties["DeletionProtectionEnabled"] = table.deletion_protection
    _set(properties, "Tags", [{"Key": key, "Value": value} for key, value in table.tags])
    return properties


def _index(table: TableDefinition, index: IndexDefinition) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index.projection.kind}
    _set(projection, "NonKeyAttributes", list(index.projection.attributes))
    properties = {"IndexName": index.name, "KeySchema": _key_schema(index.keys), "Projection": projection}
    _set(properties, "ProvisionedThroughput", _throughput(table.index_throughput(index)))
    return properties


def _key_schema(keys: tuple[KeyAttribute, ...]) -> list[dict[str, str]]:
    roles = ("HASH", "RANGE")
    return [{"AttributeName": key.name, "KeyType": role} for key, role in zip(keys, roles, strict=False)]


def _throughput(units: Throughput | None) -> dict[str, int] | None:
    return None if units is None else {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}


def _set(properties: dict[str, Any], name: str, value: Any) -> None:
    if value:
        properties[name] = value
