"""Rules for batches and transactions, in the order in which the service looks at them.

The service reads the expressions of one part before it looks at the values of the next. Here expressions are
read later, and only if nothing else is wrong: where something is, `_reporting` reads those that came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from adjoin.errors import InvalidRequest
from adjoin.server.grammar import Expressions, attributes_to_get
from adjoin.server.grammar.attributes import SEVERAL_TYPES, normal
from adjoin.server.rules.items import check_size
from adjoin.server.rules.parameters import has_parameters
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_WRITE


@contextmanager
def _reporting() -> Iterator[list[Mapping[str, Any]]]:
    """Collects parts; where one is refused, a wrong expression of those that are collected is refused instead."""
    parts: list[Mapping[str, Any]] = []
    try:
        yield parts
    except InvalidRequest:
        for part in parts:
            Expressions.of(part)
        raise


# --- batches -----------------------------------------------------------------------------------


def batch_get_item(request: dict[str, Any]) -> None:
    total = 0
    with _reporting() as parts:
        for asked in request["RequestItems"].values():
            has_parameters("BatchGetItem", asked)
            if "AttributesToGet" in asked:
                attributes_to_get(asked["AttributesToGet"])
            parts.append(asked)
            total = _check_keys(asked, total)


def _check_keys(asked: dict[str, Any], total: int) -> int:
    """Brings the keys of one table to normal form; answers how many there are, with the `total` before them."""
    keys: list[Any] = []
    seen: set[bytes] = set()
    for key in asked["Keys"]:
        new, _ = normal(key)
        keys.append(new)
        seen.add(orjson.dumps(new, option=orjson.OPT_SORT_KEYS))
        if len(seen) < len(keys):
            raise InvalidRequest("Provided list of item keys contains duplicates")
        total += 1
        if total > MAX_BATCH_GET:
            raise InvalidRequest("Too many items requested for the BatchGetItem call")
    asked["Keys"] = keys
    return total


def batch_write_item(request: dict[str, Any]) -> None:
    total = 0
    for writes in request["RequestItems"].values():
        if any(len(write) != 1 for write in writes):
            raise InvalidRequest(SEVERAL_TYPES)
        for write in writes:
            if "PutRequest" in write:
                put = write["PutRequest"]
                put["Item"], size = normal(put["Item"])
                check_size(size)
            else:
                delete = write["DeleteRequest"]
                delete["Key"], _ = normal(delete["Key"])
        total += len(writes)
    if total > MAX_BATCH_WRITE:
        raise InvalidRequest("Too many items requested for the BatchWriteItem call")


# --- transactions ------------------------------------------------------------------------------


def transact_write_items(request: dict[str, Any]) -> None:
    for item in request["TransactItems"]:
        if not item:
            raise InvalidRequest("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
        if len(item) > 1:
            raise InvalidRequest("TransactItems can only contain one of Check, Put, Update or Delete")
    with _reporting() as parts:
        for item in request["TransactItems"]:
            ((action, given),) = item.items()
            has_parameters(action, given)
            parts.append(given)
            _check_action(given)


def _check_action(given: dict[str, Any]) -> None:
    if "Item" in given:
        given["Item"], size = normal(given["Item"])
        check_size(size)
    else:
        given["Key"], _ = normal(given["Key"])


def transact_get_items(request: dict[str, Any]) -> None:
    with _reporting() as parts:
        for item in request["TransactItems"]:
            get = item["Get"]
            has_parameters("Get", get)
            parts.append(get)
            get["Key"], _ = normal(get["Key"])
