"""Samples for `explain`: keys and items that a table may hold, where a plan goes on only with what it has found.

`explain` asks no table, so a plan that reads an item before it writes it, or that follows what an index has found,
would end there. A sample stands for what would be found. Outside `explain` there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import (
    InvalidKey,
)
from adjoin.field_types import plain_type
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.model import Ref
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


def sample_items(layout: BoundLayout, kind: EntityType, keys: Sequence[Item]) -> list[Item]:
    """Sample items under these keys for `explain`; empty outside `explain`, or if no sample fits the class."""
    if not is_rehearsed():
        return []
    in_keys = layout.key_fields(kind) if isinstance(kind, EdgeType) else ()
    demanded = {name: kind.fields[name] for name in kind.attributes if name not in in_keys}
    demanded = {name: info for name, info in demanded.items() if info.is_required()}
    item: Item = {}
    for name, info in demanded.items():
        stored = layout.encode_field(kind, name, _sample(kind, name, plain_type(info)))
        if stored is not None:
            item[kind.attributes[name]] = stored
    items = [item | key for key in keys]
    return items if all(layout.decode_as_far(kind, each) is not None for each in items) else []


def sample_id(kind: NodeType) -> Any:
    """The id of a sample node; None if no sample fits the class."""
    values = [_sample(kind, name, plain) for name, plain in kind.part_types.items()]
    return None if None in values else values[0] if kind.is_single else tuple(values)


def sample_keys(layout: BoundLayout, kind: EntityType) -> list[Item]:
    """The key of a sample of a class for `explain`; empty outside `explain`, or if no sample fits the class."""
    if not is_rehearsed():
        return []
    try:
        if isinstance(kind, NodeType):
            id = sample_id(kind)
            return [] if id is None else [layout.node_key(kind, id)]
        assert isinstance(kind, EdgeType)
        source, target = _sample_end(kind.source), _sample_end(kind.target)
        fields = {name: _sample(kind, name, plain_type(kind.fields[name])) for name in layout.key_fields(kind)}
        return [] if None in (source, target, *fields.values()) else [layout.edge_key(kind, source, target, fields)]
    except InvalidKey:
        # The sample need not fit, for example because ends with the same id are refused.
        return []


def _sample_end(kind: NodeType) -> Any:
    """The id of a sample at an end of edges; of several classes, that of the first."""
    first = kind.classes[0]
    id = sample_id(first)
    return id if id is None or first is kind else Ref(first.model, id)


def stored_entity(layout: BoundLayout, kind: EntityType, item: Item) -> Any:
    """The instance that a stored item is; a sample of `explain` need not fit its class in every field."""
    return layout.decode_as_far(kind, item) if is_rehearsed() else layout.decode(kind, item)


def _sample(kind: EntityType, name: str, plain: type | None) -> Any:
    if plain is datetime and name in kind.formats:
        return kind.formats[name].floor(kind.formats[name].sample)
    if plain is not None and issubclass(plain, Enum):
        return next(iter(plain), None)
    return _SAMPLES.get(plain) if plain is not None else None
