"""Operations that ask for what there is none of here: backups, exports, replicas, policies.

Tools ask for them in passing, and want to hear that there are none. What would make one is an unknown operation.
"""

from __future__ import annotations

from typing import Any

from adjoin.requests import DescribeTable, ListTables, Request, TableResponse
from adjoin.server.faults import Refused
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Answer, Operation, Parameters, Tables
from adjoin.server.operations.tables import found


def _look(parameters: Parameters, tables: Tables) -> Request:
    return DescribeTable(found(parameters, tables).name)


def _none(member: str) -> Operation:
    """Lists nothing."""

    def ask(parameters: Parameters, tables: Tables) -> Request:
        return ListTables()

    def answer(parameters: Parameters, response: Any, tables: Tables) -> Answer:
        return {member: []}

    return Operation(ask, answer)


def _refuse(code: str, message: str) -> Operation:
    """Says that there is none of that name."""

    def ask(parameters: Parameters, tables: Tables) -> Request:
        raise Refused(code, message.format(**parameters))

    def answer(parameters: Parameters, response: Any, tables: Tables) -> Answer:
        raise AssertionError("what is always refused is never performed")

    return Operation(ask, answer)


def _insights(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    index = {"IndexName": parameters["IndexName"]} if "IndexName" in parameters else {}
    return {"TableName": response.definition.name, **index, "ContributorInsightsStatus": "DISABLED"}


def _destinations(parameters: Parameters, response: TableResponse, tables: Tables) -> Answer:
    return {"TableName": response.definition.name, "KinesisDataStreamDestinations": []}


def _policy(parameters: Parameters, tables: Tables) -> Request:
    arn = parameters["ResourceArn"]
    tables.definition(table_name(arn))
    raise Refused("PolicyNotFoundException", f"Resource-based policy not found for the provided ResourceArn: {arn}")


ABSENT_OPERATIONS: dict[str, Operation] = {
    "DescribeContributorInsights": Operation(_look, _insights),
    "DescribeGlobalTable": _refuse(
        "GlobalTableNotFoundException", "Global table with name: '{GlobalTableName}' does not exist."
    ),
    "DescribeKinesisStreamingDestination": Operation(_look, _destinations),
    "GetResourcePolicy": Operation(_policy, _insights),
    "ListBackups": _none("BackupSummaries"),
    "ListContributorInsights": _none("ContributorInsightsSummaries"),
    "ListExports": _none("ExportSummaries"),
    "ListGlobalTables": _none("GlobalTables"),
    "ListImports": _none("ImportSummaryList"),
}
