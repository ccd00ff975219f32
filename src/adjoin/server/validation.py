"""A request as it came, to one that may be performed as far as it can be known without the table.

In the service's order, so that a request with two faults reports the same one:

1. types, the first wrong one of the request (`deserialisation`);
2. which table it is about, where that decides who may ask (`rules.PRECONDITIONS`);
3. limits, all that are broken together (`constraints`);
4. rules, the first that is broken (`rules.RULES`).

Requests with nothing but plain items, as most are, take a short way past the first three.

What is left is what the request's expressions say (`grammar.Expressions`, and `grammar.key_conditions` for the
older KeyConditions), and then what needs the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from adjoin.errors import InvalidRequest
from adjoin.server.attributes import TOO_DEEP
from adjoin.server.constraints import Limits
from adjoin.server.deserialisation import Reader, reader_of
from adjoin.server.faults import Refused
from adjoin.server.inputs import INPUTS
from adjoin.server.rules import PRECONDITIONS, RULES, Rule
from adjoin.server.shapes import Structure
from adjoin.stores.items import plain_item
from adjoin.units import MAX_BATCH_WRITE


@dataclass(frozen=True, slots=True)
class _Checks:
    """Everything that is asked of the input of one operation."""

    read: Reader
    precondition: Rule | None
    limits: Limits
    rule: Rule | None

    @classmethod
    def of(cls, operation: str, shape: Structure) -> _Checks:
        return cls(reader_of(shape), PRECONDITIONS.get(operation), Limits.of(shape), RULES.get(operation))


_CHECKS = {operation: _Checks.of(operation, shape) for operation, shape in INPUTS.items()}

OPERATIONS = frozenset(_CHECKS)
"""The names of the operations whose requests can be validated."""


# --- the short way -----------------------------------------------------------------------------

_NAME = re.compile("[a-zA-Z0-9_.-]{3,255}")
Short: TypeAlias = Callable[[Any], dict[str, Any] | None]
"""Takes a request as it came; answers it if its types and limits are plainly right, and else None."""


def _single(member: str, flag: str | None = None) -> Short:
    """For requests that have a table and a plain item, or key, and nothing else but a flag."""

    def short(request: Any) -> dict[str, Any] | None:
        if type(request) is not dict:
            return None
        more = {}
        if len(request) != 2:
            if len(request) != 3 or flag is None or type(request.get(flag)) is not bool:
                return None
            more = {flag: request[flag]}
        name, attributes = request.get("TableName"), request.get(member)
        if type(name) is not str or type(attributes) is not dict or not _NAME.fullmatch(name):
            return None
        item = plain_item(attributes)
        return None if item is None else {"TableName": name, member: item, **more}

    return short


def _puts(request: Any) -> dict[str, Any] | None:
    """For batches that put plain items into one table."""
    try:
        ((member, tables),) = request.items()
        ((name, writes),) = tables.items()
        if member != "RequestItems" or not _NAME.fullmatch(name) or not 1 <= len(writes) <= MAX_BATCH_WRITE:
            return None
        puts = []
        for write in writes:
            ((kind, put),) = write.items()
            ((held, attributes),) = put.items()
            if kind != "PutRequest" or held != "Item" or type(attributes) is not dict:
                return None
            item = plain_item(attributes)
            if item is None:
                return None
            puts.append({"PutRequest": {"Item": item}})
    except (AttributeError, TypeError, ValueError):
        # It has other types, or more members.
        return None
    return {"RequestItems": {name: puts}}


SHORT: dict[str, Short] = {
    "GetItem": _single("Key", "ConsistentRead"),
    "PutItem": _single("Item"),
    "DeleteItem": _single("Key"),
    "BatchWriteItem": _puts,
}


# --- all requests ------------------------------------------------------------------------------


def validated(operation: str, body: bytes | dict[str, Any]) -> dict[str, Any]:
    """The parameters of a request that is right so far, without nulls and members that nobody knows.

    Items and keys are in normal form. A table stands as the request names it, by its name or its ARN.
    """
    checks = _CHECKS[operation]
    try:
        request: dict[str, Any] = body if isinstance(body, dict) else orjson.loads(body)
        plain = SHORT[operation](request) if operation in SHORT else None
        if plain is not None:
            request = plain
        else:
            request = checks.read(request)
            if checks.precondition is not None:
                checks.precondition(request)
            if not checks.limits.hold(request):
                checks.limits.check(request)
        if checks.rule is not None:
            checks.rule(request)
    except InvalidRequest as fault:
        raise Refused("ValidationException", str(fault)) from None
    except orjson.JSONDecodeError:
        raise Refused("SerializationException") from None
    except RecursionError:
        # Readers follow values as deep as these go, which is much deeper than anything can be stored.
        raise Refused("ValidationException", TOO_DEEP) from None
    return request


def is_json(body: bytes) -> bool:
    """Whether a body could be a request at all; nothing is, if there is no operation that wants more."""
    try:
        orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return False
    return True
