"""A table as a CloudFormation template with one resource, AWS::DynamoDB::Table.

The table stays when its stack is deleted, or when a change would replace it: a template describes a
table, and must not be what loses its data.
"""

from __future__ import annotations

from typing import Any

from adjoin.aws.definitions import check_table
from adjoin.stores.definitions import check_definition
from adjoin.stores.descriptions import creation
from adjoin.tables import TableDefinition

_LOGICAL_ID = "Table"


def cloudformation(table: TableDefinition) -> dict[str, Any]:
    """A whole template, to be written as JSON; its outputs are the table's name and ARN, and its stream's."""
    check_table(table)
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
    properties = creation(table)
    if table.stream:
        properties["StreamSpecification"] = {"StreamViewType": table.stream_view}
    if table.ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    # Said even where they are off, so that an update of the stack turns them off.
    properties["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": table.point_in_time_recovery}
    properties["DeletionProtectionEnabled"] = table.deletion_protection
    return properties
