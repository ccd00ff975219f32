"""The short ways: the most frequent requests in their plainest form, past everything that others may ask for.

A reader takes a request as it came, any JSON, and gives what it asks of the store. It gives None for a request
that has anything more to it, or that may be wrong: the long way then says what, in the service's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from adjoin.items import NormalItem, plain_item
from adjoin.requests import BatchWrite, Delete, Put
from adjoin.units import MAX_BATCH_WRITE

Reader: TypeAlias = Callable[[Any], Put | Delete | BatchWrite | None]

_is_name = re.compile("[a-zA-Z0-9_.-]{3,255}").fullmatch


def _put(asked: Any) -> Put | None:
    item = _only_member(asked, "Item")
    return None if item is None else Put(asked["TableName"], item)


def _delete(asked: Any) -> Delete | None:
    key = _only_member(asked, "Key")
    return None if key is None else Delete(asked["TableName"], key)


def _only_member(asked: Any, member: str) -> NormalItem | None:
    """The plain item, or key, of a request that has a table beside it and nothing else."""
    try:
        return plain_item(asked[member]) if len(asked) == 2 and _is_name(asked["TableName"]) else None
    except (KeyError, TypeError):
        return None


def _puts(asked: Any) -> BatchWrite | None:
    """A batch that puts plain items into one table."""
    puts: list[Put] = []
    try:
        ((member, tables),) = asked.items()
        ((name, writes),) = tables.items()
        if member != "RequestItems" or not _is_name(name) or not 1 <= len(writes) <= MAX_BATCH_WRITE:
            return None
        for write in writes:
            item = plain_item(write["PutRequest"]["Item"])
            if item is None or len(write) != 1 or len(write["PutRequest"]) != 1:
                return None
            puts.append(Put(name, item))
    except (AttributeError, KeyError, TypeError, ValueError):
        # It has other types, or other members.
        return None
    return BatchWrite(tuple(puts))


WRITES: dict[str, tuple[Reader, bytes]] = {
    "DynamoDB_20120810.PutItem": (_put, b"{}"),
    "DynamoDB_20120810.DeleteItem": (_delete, b"{}"),
    "DynamoDB_20120810.BatchWriteItem": (_puts, b'{"UnprocessedItems":{}}'),
}
"""By target: the reader of a request, and the answer to each that it reads, once it is performed."""


def whole_get(asked: Any) -> tuple[Any, Any] | None:
    """The table and the key of a GetItem that asks for a whole item and nothing else; both may still be anything."""
    try:
        if len(asked) == 2 or (len(asked) == 3 and type(asked["ConsistentRead"]) is bool):
            return asked["TableName"], asked["Key"]
    except (KeyError, TypeError):
        pass
    return None
