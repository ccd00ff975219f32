"""Which table a request is about: asked before its limits are looked at, since it decides who may ask.

And the rules for tags and for streams, which are looked at after them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.server.faults import Refused
from adjoin.server.names import is_arn

Rule: TypeAlias = Callable[[dict[str, Any]], None]

_MARKS = (":", ":", ":", ":", ":", "/")
_LEAST_NAME = 3
"""Characters of a table's name in an ARN."""


def is_any_arn(text: str) -> bool:
    """Whether it has the parts of an ARN: five colons and a slash, with something before, between and behind them.

    Parts may hold such marks too, so a pattern would try every one of them for each part.
    """
    at = -1
    for mark in _MARKS:
        at = text.find(mark, at + 2)
        if at < 0:
            return False
    return at + 1 < len(text) and "\n" not in text


def is_table_arn(text: str) -> bool:
    """Whether it is the ARN of a table, of whatever region and account."""
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


def require_table(request: dict[str, Any]) -> None:
    name = request.get("TableName")
    if name is None:
        raise InvalidRequest("The parameter 'TableName' is required but was not present in the request")
    if not is_arn(name) and not 3 <= len(name) <= 255:
        raise InvalidRequest("TableName must be at least 3 characters long and at most 255 characters long")


def require_items(operation: str) -> Rule:
    def check(request: dict[str, Any]) -> None:
        if request.get("RequestItems") == {}:
            raise InvalidRequest(f"The requestItems parameter is required for {operation}")

    return check


def require_resource(operation: str) -> Rule:
    def check(request: dict[str, Any]) -> None:
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


def _check_arn(request: dict[str, Any]) -> None:
    arn = request["ResourceArn"]
    if not is_table_arn(arn):
        raise InvalidRequest(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")


def tag_resource(request: dict[str, Any]) -> None:
    _check_arn(request)
    if not request["Tags"]:
        raise InvalidRequest("Atleast one Tag needs to be provided as Input.")


def untag_resource(request: dict[str, Any]) -> None:
    _check_arn(request)
    if not request["TagKeys"]:
        raise InvalidRequest("Atleast one Tag Key needs to be provided as Input.")


def list_tags_of_resource(request: dict[str, Any]) -> None:
    _check_arn(request)


def get_shard_iterator(request: dict[str, Any]) -> None:
    kind = request["ShardIteratorType"]
    if kind.endswith("_SEQUENCE_NUMBER") and "SequenceNumber" not in request:
        raise InvalidRequest(f"SequenceNumber is required for ShardIteratorType {kind}")
    if not kind.endswith("_SEQUENCE_NUMBER") and "SequenceNumber" in request:
        raise InvalidRequest(f"SequenceNumber must not be specified for ShardIteratorType {kind}")
