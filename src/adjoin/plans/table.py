"""Plans for the table itself: create it, compare it with its declaration, drop it, and read its change stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import Entity
from adjoin.errors import InvalidItem, InvalidRequest, InvalidValue, TableExists, TableMismatch, TableNotFound, shown
from adjoin.layouts.bound import BoundLayout
from adjoin.requests import (
    ChangesResponse,
    CreateTable,
    DescribeTable,
    DropTable,
    ItemChange,
    Plan,
    ReadChanges,
    SetTimeToLive,
    TableResponse,
    UpdateTable,
)
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from adjoin.values import Item


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening a table found."""

    described: TableResponse | None
    """The table as it was; None if it does not exist or was created now."""
    is_new: bool = False
    """Whether it was created now."""
    absent: tuple[str, ...] = ()
    """The indexes that the table lacks and that can be added to it."""
    lacks_ttl: bool = False
    """Whether items are to expire, and the table was opened without time to live."""


Adding: TypeAlias = Callable[[TableResponse, tuple[IndexDefinition, ...]], Plan[None]]
"""A plan to run before indexes are added to a table."""


def open_table(definition: TableDefinition, *, create: bool, adding: Adding | None = None) -> Plan[Opened]:
    """Raises if the table exists with another shape; with `create`, creates it, or the indexes that it lacks.

    Without `create`, a table that lacks indexes which can be added is opened as it is, and `absent` names them.
    """
    try:
        response: TableResponse
        (response,) = yield (DescribeTable(definition.name),)
    except TableNotFound:
        if not create:
            return Opened(None)
        try:
            yield (CreateTable(definition),)
            return Opened(None, is_new=True)
        except TableExists:
            # Another program created it in between.
            (response,) = yield (DescribeTable(definition.name),)
    described = response
    remedy = "change the layout, or name another table"
    if lacking := _lacking(definition, response.definition):
        there = (*response.definition.indexes, *lacking)
        # Check the rest of the shape first, so that nothing is changed if there are other differences.
        require_shape(definition, replace(response.definition, indexes=there), remedy)
        if not create:
            absent = tuple(index.name for index in lacking)
            return Opened(described, absent=absent, lacks_ttl=_lacks_ttl(definition, described.definition))
        if adding is not None:
            yield from adding(described, lacking)
        try:
            (response,) = yield (UpdateTable(definition.name, add_indexes=lacking),)
        except InvalidRequest:
            # Another program created them in between; if not, the check below names the missing ones.
            (response,) = yield (DescribeTable(definition.name),)
    require_shape(definition, response.definition, remedy)
    lacks_ttl = _lacks_ttl(definition, response.definition)
    if create and lacks_ttl and definition.ttl is not None:
        yield (SetTimeToLive(definition.name, definition.ttl),)
    if create and definition.point_in_time_recovery and not response.definition.point_in_time_recovery:
        yield (UpdateTable(definition.name, point_in_time_recovery=True),)
    return Opened(described, lacks_ttl=lacks_ttl and not create)


def _lacks_ttl(wanted: TableDefinition, found: TableDefinition) -> bool:
    return wanted.ttl is not None and found.ttl is None


def _lacking(wanted: TableDefinition, found: TableDefinition) -> tuple[IndexDefinition, ...]:
    """The missing indexes that can be added to a table: global ones, with throughput only if the table has it."""
    lacking = [index for index in wanted.indexes if not index.local and found.index(index.name) is None]
    if found.throughput is None:
        lacking = [replace(index, throughput=None) for index in lacking]
    return tuple(lacking)


def drop_table(table: str) -> Plan[None]:
    yield (DropTable(table),)


def require_shape(wanted: TableDefinition, found: TableDefinition, remedy: str) -> None:
    """Raises if items that are written for the wanted table would mean something else in the one that was found."""
    differences = _differences(wanted, found)
    if differences:
        raise TableMismatch(f"the table {wanted.name!r} exists with another shape: {'; '.join(differences)}; {remedy}")


def _differences(wanted: TableDefinition, found: TableDefinition) -> list[str]:
    differences = []
    if found.keys != wanted.keys:
        differences.append(f"its keys are {_keys(found.keys)}, not {_keys(wanted.keys)}")
    for index in wanted.indexes:
        stored = found.index(index.name)
        if stored is None:
            differences.append(f"it has no index {index.name!r} over {_index_keys(index)}")
        elif (stored.partitions, stored.sorts) != (index.partitions, index.sorts):
            differences.append(f"its index {index.name!r} is over {_index_keys(stored)}, not {_index_keys(index)}")
        elif not _covers(stored.projection, index.projection):
            differences.append(f"its index {index.name!r} projects {stored.projection}, not {index.projection}")
    if wanted.ttl is not None and found.ttl not in (None, wanted.ttl):
        differences.append(f"its items expire by {found.ttl!r}, not {wanted.ttl!r}")
    return differences


def _covers(stored: Projection, wanted: Projection) -> bool:
    if stored.kind == wanted.kind == "INCLUDE":
        return set(stored.attributes) >= set(wanted.attributes)
    return stored.kind in (wanted.kind, "ALL")


def _index_keys(index: IndexDefinition) -> str:
    """The keys of an index as text. If one has several attributes, the text says where the sort key begins."""
    if not index.is_multi_attribute or not index.sorts:
        return _keys(index.keys)
    return f"{_keys(index.partitions)}, sorted by {_keys(index.sorts)}"


def _keys(keys: tuple[KeyAttribute, ...]) -> str:
    return " and ".join(f"{key.name} ({key.type})" for key in keys)


# --- the change stream -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One stored item before and after one write.

    `old` and `new` are nodes or edges. They are None where there was no item, or where no class matches the item
    (`problem` then says why). The items themselves are in `old_item` and `new_item`. Pass `position` to continue after
    this change: `g.changes(after=change.position)`.
    """

    kind: Literal["insert", "modify", "remove"]
    old: Entity | None
    new: Entity | None
    position: str
    at: float
    """The time of the write, in seconds since 1970."""
    expired: bool
    """Whether the item was removed because its time to live was over."""
    old_item: Item | None
    new_item: Item | None
    problem: str | None = None

    @property
    def model(self) -> type[Any] | None:
        entity = self.new if self.new is not None else self.old
        return None if entity is None else type(entity)


def read_changes(layout: BoundLayout, after: str | None, limit: int) -> Plan[tuple[list[Change], str | None]]:
    """Some changes, oldest first, and the position to continue from; no changes and None at the end."""
    if after is not None and (not isinstance(after, str) or not after):
        raise InvalidValue(f"{shown(after)} is not a position in the change stream; pass a change's .position")
    response: ChangesResponse
    (response,) = yield (ReadChanges(layout.table, after, limit),)
    changes = [_change(layout, change) for change in response.changes if not _is_bookkeeping(layout, change)]
    return changes, response.next if response.changes else None


def _is_bookkeeping(layout: BoundLayout, change: ItemChange) -> bool:
    return layout.is_bookkeeping(change.key)


def _change(layout: BoundLayout, change: ItemChange) -> Change:
    problems: list[str] = []
    before, after = change.old, change.new
    old, new = (_read(layout, item, problems) for item in (before, after))
    return Change(
        "insert" if before is None else "remove" if after is None else "modify",
        old,
        new,
        change.position,
        change.at,
        change.expired,
        before,
        after,
        "; ".join(problems) or None,
    )


def _read(layout: BoundLayout, item: Item | None, problems: list[str]) -> Any:
    if item is None:
        return None
    try:
        entity = layout.read(item)
    except InvalidItem as error:
        problems.append(str(error))
        return None
    if entity is None:
        problems.append("no class of this graph matches the item")
    return entity
