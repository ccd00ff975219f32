"""Which table a request is about: asked before its limits are looked at, since it decides who may ask.

And the rules for tags and for streams, which are looked at after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest
from adjoin.server.faults import Refused
from adjoin.server.names import is_arn

Rule: TypeAlias = Callable[[dict[str, Any]], None]

_ANY_ARN = re.compile(".+:.+:.+:.+:.+:.+/.+")
_TABLE_ARN = re.compile(r"arn:aws[^:]*:dynamodb:.+:\d+:table/[^/]{3,}")


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
        if not _ANY_ARN.fullmatch(arn):
            raise Refused(
                "AccessDeniedException",
                f"User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:{operation}"
                f" on resource: {arn or '*'}",
            )

    return check


def _check_arn(request: dict[str, Any]) -> None:
    arn = request["ResourceArn"]
    if not _TABLE_ARN.fullmatch(arn):
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
