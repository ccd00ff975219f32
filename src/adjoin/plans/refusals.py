"""Says of a request that a store refused which node or edge it is about, and what to do.

Stores know keys only, and DynamoDB does not name the item that it refuses. The messages are the same on all stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from adjoin.entity_types import NodeType
from adjoin.errors import AdjoinError, InvalidRequest, ItemTooLarge, shown
from adjoin.items import normal_item
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.entity_write import described
from adjoin.requests import BatchWrite, Check, Delete, Put, TransactWrite, Update
from adjoin.units import KB, MAX_ITEM_SIZE, MAX_NESTING
from adjoin.values import Item

_Writing: TypeAlias = Put | Update | Delete | Check
_TOO_DEEP = "Nesting Levels have exceeded"


def explain(layout: BoundLayout, error: InvalidRequest) -> None:
    """Makes the message of an error name what the refused write is about, if that is known."""
    writes, error.requests = list(_writes(error.requests)), ()
    refused = next((write for write in writes if _is_refused(write)), writes[0] if len(writes) == 1 else None)
    if refused is None:
        return
    name, message = _named(layout, refused), error.args[0]
    if isinstance(error, ItemTooLarge):
        size = f" with {normal_item(refused.item)[1]:,} bytes" if isinstance(refused, Put) else ""
        message = (
            f"{name} would be too large{size}; DynamoDB takes at most {MAX_ITEM_SIZE:,} ({MAX_ITEM_SIZE // KB} KB) per "
            f"item, so keep large values elsewhere, such as in S3, and only their address here"
        )
    elif _TOO_DEEP in message:
        message = (
            f"lists and maps of {name} are nested too deep; DynamoDB takes {MAX_NESTING} levels at most, so store the "
            f"inner ones as JSON text, or as nodes of their own"
        )
    else:
        message = f"{name}: {message}"
    error.args = (message, *error.args[1:])


def _writes(requests: Sequence[Any]) -> Iterator[_Writing]:
    for request in requests:
        if isinstance(request, BatchWrite | TransactWrite):
            yield from request.writes
        elif isinstance(request, Put | Update | Delete):
            yield request


def _is_refused(write: _Writing) -> bool:
    """Whether an item as a whole breaks a rule; what an update makes of an item is not known here."""
    if not isinstance(write, Put):
        return False
    try:
        return normal_item(write.item)[1] > MAX_ITEM_SIZE
    except InvalidRequest:
        return True


def _named(layout: BoundLayout, write: _Writing) -> str:
    """The name of a node or an edge in messages; of an item of adjoin's own, the table and its key."""
    key = layout.key_of(write.item) if isinstance(write, Put) else write.key
    kind = layout.kind_of(write.item if isinstance(write, Put) else key)
    if kind is None:
        return f"the item {shown(key)} of the table {layout.table}"
    try:
        if isinstance(write, Put) and (entity := layout.read(write.item)) is not None:
            return described(entity)
        if isinstance(kind, NodeType):
            return f"{kind.name} {shown(layout.id_in(kind, layout.text_of(kind, key)))}"
    except AdjoinError:
        pass
    return f"the {kind.name} with the key {_spelled(key)}"


def _spelled(key: Item) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, typed in key.items() for value in typed.values())
