"""What a rehearsal takes for stored, where a change cannot go on without it.

`explain` is answered as an empty table answers, and asks nothing. A change that has to read first would end
there with `NotFound`. So it goes on with an item that has nothing but what its class demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.shard_book import is_rehearsed
from adjoin.schema import EdgeType, EntityType, plain_type
from adjoin.values import Item

_SAMPLES: dict[type, Any] = {
    bool: False,
    int: 0,
    float: 0.0,
    Decimal: Decimal(0),
    str: "x",
    bytes: b"x",
    datetime: datetime(2000, 1, 1, tzinfo=UTC),
    date: date(2000, 1, 1),
    time: time(),
    timedelta: timedelta(),
    UUID: UUID(int=0),
}


def imagined(layout: BoundLayout, kind: EntityType, keys: Sequence[Item]) -> list[Item]:
    """Items under these keys, in a rehearsal; nothing where it is none, or no such item can be thought of."""
    if not is_rehearsed():
        return []
    told = {"id", "source", "target", *(layout.key_fields(kind) if isinstance(kind, EdgeType) else ())}
    demanded = {name: info for name, info in kind.fields.items() if info.is_required() and name not in told}
    item: Item = {}
    for name, info in demanded.items():
        stored = layout.encode_field(kind, name, _sample(plain_type(info)))
        if stored is not None:
            item[kind.attributes[name]] = stored
    items = [item | key for key in keys]
    return items if all(layout.decode_as_far(kind, each) is not None for each in items) else []


def stored_entity(layout: BoundLayout, kind: EntityType, item: Item) -> Any:
    """What a stored item is; what a rehearsal thinks of need not fit its class in everything."""
    return layout.decode_as_far(kind, item) if is_rehearsed() else layout.decode(kind, item)


def _sample(plain: type | None) -> Any:
    if plain is not None and issubclass(plain, Enum):
        return next(iter(plain), None)
    return _SAMPLES.get(plain) if plain is not None else None
