"""Which parameters of a request go together: expressions and what is older than they are do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjoin.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Parameters:
    """What one operation takes, in the order in which the service lists it."""

    expressions: tuple[str, ...]
    legacy: tuple[str, ...] = ()


_WRITES = Parameters(("ConditionExpression",), ("Expected", "ConditionalOperator"))
_READS = Parameters(("ProjectionExpression",), ("AttributesToGet",))

OPERATIONS: dict[str, Parameters] = {
    "GetItem": _READS,
    "BatchGetItem": _READS,
    "PutItem": _WRITES,
    "DeleteItem": _WRITES,
    "UpdateItem": Parameters(
        ("UpdateExpression", "ConditionExpression"), ("AttributeUpdates", "Expected", "ConditionalOperator")
    ),
    "Query": Parameters(
        ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
        ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    ),
    "Scan": Parameters(
        ("ProjectionExpression", "FilterExpression"), ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    ),
    # The parts of transactions.
    "Get": Parameters(("ProjectionExpression",)),
    "Put": Parameters(("ConditionExpression",)),
    "Update": Parameters(("UpdateExpression", "ConditionExpression")),
    "Delete": Parameters(("ConditionExpression",)),
    "ConditionCheck": Parameters(("ConditionExpression",)),
}


def check_parameters(operation: str, request: Mapping[str, Any]) -> None:
    """Refuse parameters that cannot be in one request; the first check that looks at more than one of them."""
    takes = OPERATIONS[operation]
    expressions = [name for name in takes.expressions if request.get(name) is not None]
    legacy = [name for name in takes.legacy if request.get(name) is not None]
    _check_mixed(expressions, legacy)
    if request.get("ExpressionAttributeNames") is not None and not expressions:
        raise InvalidRequest("ExpressionAttributeNames can only be specified when using expressions")
    _check_values(takes, request)
    _check_operator(request)


def _check_mixed(expressions: list[str], legacy: list[str]) -> None:
    # KeyConditions goes with a FilterExpression, as long as there is no KeyConditionExpression too.
    if "KeyConditionExpression" not in expressions:
        legacy = [name for name in legacy if name != "KeyConditions"]
    if expressions and legacy:
        raise InvalidRequest(
            "Can not use both expression and non-expression parameters in the same request:"
            f" Non-expression parameters: {{{', '.join(legacy)}}} Expression parameters: {{{', '.join(expressions)}}}"
        )


def _check_values(takes: Parameters, request: Mapping[str, Any]) -> None:
    using = [name for name in takes.expressions if name != "ProjectionExpression"]
    if request.get("ExpressionAttributeValues") is None or any(request.get(name) is not None for name in using):
        return
    if using:
        verb = "is" if len(using) == 1 else "are"
        raise InvalidRequest(
            f"ExpressionAttributeValues can only be specified when using expressions: {' and '.join(using)} {verb} null"
        )


def _check_operator(request: Mapping[str, Any]) -> None:
    if request.get("ConditionalOperator") is None:
        return
    joined = next((request[name] for name in ("Expected", "QueryFilter", "ScanFilter") if request.get(name)), ())
    if not joined:
        raise InvalidRequest("ConditionalOperator cannot be used without Filter or Expected")
    if len(joined) == 1:
        raise InvalidRequest("ConditionalOperator can only be used when Filter or Expected has two or more elements")
