"""Rules for Query and Scan, in the order in which the service looks at them."""

from __future__ import annotations

import re
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.server.grammar import attributes_to_get, filter_of
from adjoin.server.grammar.attributes import normal
from adjoin.server.rules.parameters import has_parameters

_STARTING_KEY = "The provided starting key is invalid: "
# What the service finds wrong with a number or with the elements of a set, it says without that.
_SAID_PLAINLY = re.compile("contains duplicates|number set|numeric value|significant digits|number with magnitude")


def query(request: dict[str, Any]) -> None:
    has_parameters("Query", request)
    if "QueryFilter" in request:
        filter_of(request["QueryFilter"])
    _check_names(request)
    _check_starting_key(request)
    _check_select(request)
    if "KeyConditions" not in request and "KeyConditionExpression" not in request:
        raise InvalidRequest(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )


def scan(request: dict[str, Any]) -> None:
    has_parameters("Scan", request)
    _check_names(request)
    if "ScanFilter" in request:
        filter_of(request["ScanFilter"])
    _check_starting_key(request)
    _check_segments(request.get("Segment"), request.get("TotalSegments"))
    _check_select(request)


def _check_names(request: dict[str, Any]) -> None:
    if "AttributesToGet" in request:
        attributes_to_get(request["AttributesToGet"])


def _check_starting_key(request: dict[str, Any]) -> None:
    if "ExclusiveStartKey" not in request:
        return
    try:
        request["ExclusiveStartKey"], _ = normal(request["ExclusiveStartKey"])
    except InvalidRequest as fault:
        said = str(fault)
        raise InvalidRequest(said if _SAID_PLAINLY.search(said) else _STARTING_KEY + said) from None


def _check_segments(segment: int | None, total: int | None) -> None:
    if total is None:
        if segment is not None:
            raise InvalidRequest(
                "The TotalSegments parameter is required but was not present in the request when Segment parameter"
                " is present"
            )
        return
    if segment is None:
        raise InvalidRequest(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments"
            " is present"
        )
    if segment >= total:
        raise InvalidRequest(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments:"
            f" Segment: {segment} is not less than TotalSegments: {total}"
        )


_SELECTED = {
    "ALL_ATTRIBUTES": "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES": "ALL_PROJECTED_ATTRIBUTES",
    "COUNT": "only the Count",
}


def _check_select(request: dict[str, Any]) -> None:
    select = request.get("Select")
    if select is None:
        return
    chosen = [name for name in ("AttributesToGet", "ProjectionExpression") if name in request]
    if select == "SPECIFIC_ATTRIBUTES":
        if not chosen:
            raise InvalidRequest(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
            )
    elif chosen:
        raise InvalidRequest(f"Cannot specify the {chosen[0]} when choosing to get {_SELECTED[select]}")
    elif select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in request:
        raise InvalidRequest("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
