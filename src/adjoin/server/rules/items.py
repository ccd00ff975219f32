"""Rules for the operations on one item, in the order in which the service looks at them."""

from __future__ import annotations

from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.server.grammar import attribute_updates, attributes_to_get, expected_condition
from adjoin.server.grammar.attributes import normal
from adjoin.server.rules.parameters import has_parameters
from adjoin.units import MAX_ITEM_SIZE


def get_item(request: dict[str, Any]) -> None:
    more = has_parameters("GetItem", request)
    request["Key"], _ = normal(request["Key"])
    if more and "AttributesToGet" in request:
        attributes_to_get(request["AttributesToGet"])


def put_item(request: dict[str, Any]) -> None:
    more = has_parameters("PutItem", request)
    request["Item"], size = normal(request["Item"])
    _check_returned(request)
    check_size(size)
    if more:
        _check_expected(request)


def delete_item(request: dict[str, Any]) -> None:
    more = has_parameters("DeleteItem", request)
    request["Key"], _ = normal(request["Key"])
    _check_returned(request)
    if more:
        _check_expected(request)


def update_item(request: dict[str, Any]) -> None:
    more = has_parameters("UpdateItem", request)
    request["Key"], _ = normal(request["Key"])
    if more and "AttributeUpdates" in request:
        attribute_updates(request["AttributeUpdates"])
    if more:
        _check_expected(request)


def check_size(size: int) -> None:
    if size > MAX_ITEM_SIZE:
        raise InvalidRequest("Item size has exceeded the maximum allowed size")


def _check_returned(request: dict[str, Any]) -> None:
    if request.get("ReturnValues", "NONE") not in ("ALL_OLD", "NONE"):
        raise InvalidRequest("ReturnValues can only be ALL_OLD or NONE")


def _check_expected(request: dict[str, Any]) -> None:
    if "Expected" in request:
        expected_condition(request["Expected"])
