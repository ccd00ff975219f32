"""The change stream as nodes and edges, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from adjoin.errors import InvalidItem, InvalidValue, shown
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.requests import ChangesResponse, ItemChange, ReadChanges
from adjoin.values import Item


@dataclass(frozen=True, slots=True)
class Change:
    """One stored item before and after one write.

    `old` and `new` are nodes or edges; None where there is none, or where no class explains the item
    (`problem` then says why). The items themselves are in `old_item` and `new_item`. `position`
    resumes: `g.changes(after=change.position)`.
    """

    kind: Literal["insert", "modify", "remove"]
    old: Any
    new: Any
    position: str
    at: float
    """When, in seconds since 1970."""
    expired: bool
    """Removed because its time to live was over."""
    old_item: Item | None
    new_item: Item | None
    problem: str | None = None

    @property
    def model(self) -> type[Any] | None:
        entity = self.new if self.new is not None else self.old
        return None if entity is None else type(entity)


def read_changes(layout: BoundLayout, after: str | None, limit: int) -> Plan[tuple[list[Change], str | None]]:
    """Some changes, oldest first, and the position to read on from; both are empty at the end."""
    if after is not None and (not isinstance(after, str) or not after):
        raise InvalidValue(f"{shown(after)} is no position in the change stream; pass a change's .position")
    response: ChangesResponse
    (response,) = yield (ReadChanges(layout.table, after, limit),)
    changes = [_change(layout, change) for change in response.changes if not _is_bookkeeping(layout, change)]
    return changes, response.next if response.changes else None


def _is_bookkeeping(layout: BoundLayout, change: ItemChange) -> bool:
    return layout.is_bookkeeping(change.key)


def _change(layout: BoundLayout, change: ItemChange) -> Change:
    problems: list[str] = []
    old, new = (_read(layout, item, problems) for item in (change.old, change.new))
    return Change(
        "insert" if change.old is None else "remove" if change.new is None else "modify",
        old,
        new,
        change.position,
        change.at,
        change.expired,
        change.old,
        change.new,
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
        problems.append("no class of this graph explains the item")
    return entity
