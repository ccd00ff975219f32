"""Operations on features that the server does not have: backups, exports, replicas, policies.

Tools list them in passing, and expect an empty list. Operations that would create one are unknown to the server.
"""

from __future__ import annotations

from typing import Any

from adjoin.requests import ListTables, Request, TableResponse
from adjoin.server.operations.interface import AnswerBody, Operation, Parameters, Refused, TableLookup, table_name
from adjoin.server.operations.shapes import NAME, POSITIVE, TABLE, TEXT, Structure, Text, Whole, structure
from adjoin.server.operations.tables import describe

_RESOURCE = Text(least=1, most=1024)


def _none(name: str, shape: Structure, member: str) -> Operation:
    """Returns an operation whose answer is an empty list."""

    def ask(parameters: Parameters, tables: TableLookup) -> Request:
        return ListTables()

    def answer(parameters: Parameters, response: Any, tables: TableLookup) -> AnswerBody:
        return {member: []}

    return Operation(name, shape, ask, answer)


def _never(parameters: Parameters, response: Any, tables: TableLookup) -> AnswerBody:
    raise AssertionError("what is always refused is never performed")


def _no_global_table(parameters: Parameters, tables: TableLookup) -> Request:
    name = parameters["GlobalTableName"]
    raise Refused("GlobalTableNotFoundException", f"Global table with name: '{name}' does not exist.")


def _insights(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    index = {"IndexName": parameters["IndexName"]} if "IndexName" in parameters else {}
    return {"TableName": response.definition.name, **index, "ContributorInsightsStatus": "DISABLED"}


def _destinations(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    return {"TableName": response.definition.name, "KinesisDataStreamDestinations": []}


def _no_policy(parameters: Parameters, tables: TableLookup) -> Request:
    arn = parameters["ResourceArn"]
    tables.definition(table_name(arn))
    raise Refused("PolicyNotFoundException", f"Resource-based policy not found for the provided ResourceArn: {arn}")


ABSENT_OPERATIONS = (
    Operation(
        "DescribeContributorInsights",
        structure("DescribeContributorInsightsInput", "TableName", TableName=TABLE, IndexName=NAME),
        describe,
        _insights,
    ),
    Operation(
        "DescribeGlobalTable",
        structure("DescribeGlobalTableInput", "GlobalTableName", GlobalTableName=NAME),
        _no_global_table,
        _never,
    ),
    Operation(
        "DescribeKinesisStreamingDestination",
        structure("DescribeKinesisStreamingDestinationInput", "TableName", TableName=TABLE),
        describe,
        _destinations,
    ),
    Operation(
        "GetResourcePolicy",
        structure("GetResourcePolicyInput", "ResourceArn", ResourceArn=Text(least=1, most=1283)),
        _no_policy,
        _never,
    ),
    _none(
        "ListBackups",
        structure(
            "ListBackupsInput",
            TableName=TABLE,
            Limit=Whole("Integer", least=1, most=100),
            ExclusiveStartBackupArn=Text(least=37, most=1024),
            BackupType=Text(choices=("USER", "SYSTEM", "AWS_BACKUP", "ALL")),
        ),
        "BackupSummaries",
    ),
    _none(
        "ListContributorInsights",
        structure(
            "ListContributorInsightsInput", TableName=TABLE, NextToken=TEXT, MaxResults=Whole("Integer", most=100)
        ),
        "ContributorInsightsSummaries",
    ),
    _none(
        "ListExports",
        structure(
            "ListExportsInput", TableArn=_RESOURCE, MaxResults=Whole("Integer", least=1, most=25), NextToken=TEXT
        ),
        "ExportSummaries",
    ),
    _none(
        "ListGlobalTables",
        structure("ListGlobalTablesInput", ExclusiveStartGlobalTableName=NAME, Limit=POSITIVE, RegionName=TEXT),
        "GlobalTables",
    ),
    _none(
        "ListImports",
        structure(
            "ListImportsInput",
            TableArn=_RESOURCE,
            PageSize=Whole("Integer", least=1, most=25),
            NextToken=Text(least=112, most=1024, pattern="([0-9a-f]{16})+"),
        ),
        "ImportSummaryList",
    ),
)
