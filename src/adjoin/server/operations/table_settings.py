"""Operations on the time to live, the tags and the recovery of a table; and two operations on the account."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from adjoin.errors import InvalidRequest, TableNotFound
from adjoin.requests import (
    DescribeTable,
    ListTags,
    Request,
    SetTimeToLive,
    TableResponse,
    TagsResponse,
    TagTable,
    UpdateTable,
)
from adjoin.server.operations.descriptions import RECOVERY
from adjoin.server.operations.interface import (
    AnswerBody,
    Operation,
    ParameterRule,
    Parameters,
    Refused,
    TableLookup,
    table_name,
    validation_fault,
)
from adjoin.server.operations.shapes import FLAG, NOTHING, TEXT, Listing, Text, Whole, structure
from adjoin.server.operations.tables import (
    DEFINED_NAME,
    TABLE_FIRST,
    TAGS,
    check_tags,
    describe,
    found,
    list_tables,
    require_table,
)
from adjoin.tables import TableDefinition
from adjoin.units import MAX_TAG_KEY

_RECOVERY_DAYS = 35


def _always(answer: AnswerBody | None) -> Callable[[Parameters, Any, TableLookup], AnswerBody | None]:
    return lambda parameters, response, tables: answer


# --- time to live ------------------------------------------------------------------------------


def _set_time_to_live(parameters: Parameters, tables: TableLookup) -> Request:
    definition = found(parameters, tables)
    wanted = parameters["TimeToLiveSpecification"]
    attribute, is_on = wanted["AttributeName"], definition.ttl is not None
    if is_on and definition.ttl != attribute:
        raise validation_fault(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {definition.ttl}"
        )
    if wanted["Enabled"] == is_on:
        raise validation_fault(f"TimeToLive is already {'enabled' if is_on else 'disabled'}")
    return SetTimeToLive(definition.name, attribute if wanted["Enabled"] else None)


def _time_to_live_set(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    return {"TimeToLiveSpecification": parameters["TimeToLiveSpecification"]}


def _time_to_live(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    ttl = response.definition.ttl
    state = {"TimeToLiveStatus": "DISABLED"} if ttl is None else {"TimeToLiveStatus": "ENABLED", "AttributeName": ttl}
    return {"TimeToLiveDescription": state}


_UPDATE_TIME_TO_LIVE = Operation(
    "UpdateTimeToLive",
    structure(
        "UpdateTimeToLiveInput",
        "TimeToLiveSpecification",
        TableName=TABLE_FIRST,
        TimeToLiveSpecification=structure(
            "TimeToLiveSpecification",
            "Enabled AttributeName",
            Enabled=FLAG,
            AttributeName=DEFINED_NAME,
        ),
    ),
    _set_time_to_live,
    _time_to_live_set,
    precondition=require_table,
    writes=True,
)

_DESCRIBE_TIME_TO_LIVE = Operation(
    "DescribeTimeToLive",
    structure("DescribeTimeToLiveInput", TableName=TABLE_FIRST),
    describe,
    _time_to_live,
    precondition=require_table,
)

# --- tags --------------------------------------------------------------------------------------

_MARKS = (":", ":", ":", ":", ":", "/")
_LEAST_NAME = 3
"""The least number of characters of a table name in an ARN."""


def is_any_arn(text: str) -> bool:
    """Whether the text has the parts of an ARN: five colons and a slash, with text before, between and after them.

    It is no regular expression, because parts may contain colons and slashes too, and backtracking over them would
    take too long for some texts.
    """
    at = -1
    for mark in _MARKS:
        at = text.find(mark, at + 2)
        if at < 0:
            return False
    return at + 1 < len(text) and "\n" not in text


def is_table_arn(text: str) -> bool:
    """Whether the text is the ARN of a table, in any region and account."""
    if "\n" in text:
        return False
    start, _, name = text.rpartition("/")
    before, _, kind = start.rpartition(":")
    place, _, account = before.rpartition(":")
    partition, _, region = place.partition(":dynamodb:")
    return (
        kind == "table"
        and len(name) >= _LEAST_NAME
        and account.isdecimal()
        and region != ""
        and partition.startswith("arn:aws")
        and ":" not in partition.removeprefix("arn:")
    )


def _require_resource(operation: str) -> ParameterRule:
    def check(request: Parameters) -> None:
        arn = request.get("ResourceArn")
        if arn is None:
            raise InvalidRequest("Invalid TableArn")
        if not is_any_arn(arn):
            raise Refused(
                "AccessDeniedException",
                f"User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:{operation}"
                f" on resource: {arn or '*'}",
            )

    return check


def _check_arn(request: Parameters) -> None:
    arn = request["ResourceArn"]
    if not is_table_arn(arn):
        raise InvalidRequest(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")


def _check_tag(request: Parameters) -> None:
    _check_arn(request)
    if not request["Tags"]:
        raise InvalidRequest("Atleast one Tag needs to be provided as Input.")


def _check_untag(request: Parameters) -> None:
    _check_arn(request)
    if not request["TagKeys"]:
        raise InvalidRequest("Atleast one Tag Key needs to be provided as Input.")


def _tagged_table(parameters: Parameters, tables: TableLookup, message: str) -> TableDefinition:
    arn = parameters["ResourceArn"]
    try:
        return tables.definition(table_name(arn))
    except TableNotFound:
        raise Refused("ResourceNotFoundException", message.format(arn=arn)) from None


_NO_RESOURCE = "Requested resource not found: ResourcArn: {arn} not found"
"""DynamoDB's own spelling."""


def _tag(parameters: Parameters, tables: TableLookup) -> Request:
    definition = _tagged_table(parameters, tables, _NO_RESOURCE)
    given = {tag["Key"] for tag in parameters["Tags"]}
    check_tags(parameters["Tags"], sum(key not in given for key, _ in definition.tags))
    return TagTable(definition.name, tuple((tag["Key"], tag["Value"]) for tag in parameters["Tags"]))


def _untag(parameters: Parameters, tables: TableLookup) -> Request:
    definition = _tagged_table(parameters, tables, "Requested resource not found")
    return TagTable(definition.name, remove=tuple(parameters["TagKeys"]))


def _list_tags(parameters: Parameters, tables: TableLookup) -> Request:
    return ListTags(_tagged_table(parameters, tables, _NO_RESOURCE).name)


def _tags(parameters: Parameters, response: TagsResponse, tables: TableLookup) -> AnswerBody:
    return {"Tags": [{"Key": key, "Value": value} for key, value in response.tags]}


_TAG_RESOURCE = Operation(
    "TagResource",
    structure("TagResourceInput", "Tags", ResourceArn=TEXT, Tags=TAGS),
    _tag,
    _always(None),
    precondition=_require_resource("TagResource"),
    rule=_check_tag,
    writes=True,
)

_UNTAG_RESOURCE = Operation(
    "UntagResource",
    structure("UntagResourceInput", "TagKeys", ResourceArn=TEXT, TagKeys=Listing(Text(least=1, most=MAX_TAG_KEY))),
    _untag,
    _always(None),
    precondition=_require_resource("UntagResource"),
    rule=_check_untag,
    writes=True,
)

_LIST_TAGS_OF_RESOURCE = Operation(
    "ListTagsOfResource",
    structure("ListTagsOfResourceInput", ResourceArn=TEXT, NextToken=TEXT),
    _list_tags,
    _tags,
    precondition=_require_resource("ListTagsOfResource"),
    rule=_check_arn,
)

# --- recovery ----------------------------------------------------------------------------------


def _backed_up(parameters: Parameters, tables: TableLookup) -> TableDefinition:
    name = table_name(parameters["TableName"])
    try:
        return tables.definition(name)
    except TableNotFound:
        raise Refused("TableNotFoundException", f"Table not found: {name}") from None


def _describe_backups(parameters: Parameters, tables: TableLookup) -> Request:
    return DescribeTable(_backed_up(parameters, tables).name)


def _set_recovery(parameters: Parameters, tables: TableLookup) -> Request:
    wanted = parameters["PointInTimeRecoverySpecification"]
    enabled = wanted["PointInTimeRecoveryEnabled"]
    since = {"since": time.time(), "days": wanted.get("RecoveryPeriodInDays", _RECOVERY_DAYS)} if enabled else None
    return UpdateTable(_backed_up(parameters, tables).name, point_in_time_recovery=enabled, settings={RECOVERY: since})


def _backups(parameters: Parameters, response: TableResponse, tables: TableLookup) -> AnswerBody:
    recovery: AnswerBody = {"PointInTimeRecoveryStatus": "DISABLED"}
    if response.definition.point_in_time_recovery:
        state = response.history.settings.get(RECOVERY, {})
        now = time.time()
        recovery = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": state.get("days", _RECOVERY_DAYS),
            "EarliestRestorableDateTime": state.get("since", now),
            "LatestRestorableDateTime": now,
        }
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    }


_DESCRIBE_CONTINUOUS_BACKUPS = Operation(
    "DescribeContinuousBackups",
    structure("DescribeContinuousBackupsInput", TableName=TABLE_FIRST),
    _describe_backups,
    _backups,
    precondition=require_table,
)

_UPDATE_CONTINUOUS_BACKUPS = Operation(
    "UpdateContinuousBackups",
    structure(
        "UpdateContinuousBackupsInput",
        "PointInTimeRecoverySpecification",
        TableName=TABLE_FIRST,
        PointInTimeRecoverySpecification=structure(
            "PointInTimeRecoverySpecification",
            "PointInTimeRecoveryEnabled",
            PointInTimeRecoveryEnabled=FLAG,
            RecoveryPeriodInDays=Whole("Integer", least=1, most=35),
        ),
    ),
    _set_recovery,
    _backups,
    precondition=require_table,
    writes=True,
)

# --- the account -------------------------------------------------------------------------------


_LIMITS: AnswerBody = {
    "AccountMaxReadCapacityUnits": 80_000,
    "AccountMaxWriteCapacityUnits": 80_000,
    "TableMaxReadCapacityUnits": 40_000,
    "TableMaxWriteCapacityUnits": 40_000,
}
"""DynamoDB's defaults."""


def _endpoints(parameters: Parameters, response: Any, tables: TableLookup) -> AnswerBody:
    return {"Endpoints": [{"Address": parameters["Host"], "CachePeriodInMinutes": 1440}]}


_DESCRIBE_LIMITS = Operation("DescribeLimits", NOTHING, list_tables, _always(_LIMITS))
_DESCRIBE_ENDPOINTS = Operation("DescribeEndpoints", NOTHING, list_tables, _endpoints, tells_host=True)

SETTING_OPERATIONS = (
    _UPDATE_TIME_TO_LIVE,
    _DESCRIBE_TIME_TO_LIVE,
    _TAG_RESOURCE,
    _UNTAG_RESOURCE,
    _LIST_TAGS_OF_RESOURCE,
    _DESCRIBE_CONTINUOUS_BACKUPS,
    _UPDATE_CONTINUOUS_BACKUPS,
    _DESCRIBE_LIMITS,
    _DESCRIBE_ENDPOINTS,
)
