"""The state of a migration into another table, and the plans that read and store it.

    PK           SK       what it holds
    #=MIGRATE    =into    stage, segments and where each goes on, begun, mark, numbers

It is one record in the new table, or in the old one if keys of the new one are not text. `moving` decides what follows
from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from adjoin.dataclass import dataclass
from adjoin.errors import TableNotEmpty
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import REVISION
from adjoin.plans.migrating.stored_state import STATE, MigrationStage, StoredState
from adjoin.plans.steps.again import new_revision, same
from adjoin.requests import (
    ChangesResponse,
    DescribeTable,
    Get,
    ItemResponse,
    PageResponse,
    Plan,
    Put,
    ReadChanges,
    Scan,
    TableResponse,
)
from adjoin.reserved import OWN
from adjoin.values import Item, encode

_WHAT, _NAME = "MIGRATE", "into"
_FEW = 50
"""How many items are looked at to see whether the new table is empty. A table that was just made has a few records."""


@dataclass(frozen=True, slots=True)
class MoveState(StoredState):
    source: str
    """The table from which items come."""
    stage: MigrationStage
    starts: Mapping[str, Item | None]
    """By segment: the key after which it goes on. Segments that are read to their end are left out."""
    segments: int
    begun: float
    mark: str | None
    """How far the change stream of the old table was applied; None for its beginning."""
    has_mark: bool
    """Whether the old table has a change stream that can be followed."""
    is_exact: bool
    """Whether the store said where its stream ended. If not, changes are left out that are older than the migration."""
    run: str
    """Names the run that is at work; "" if it was stopped."""
    looked: float = 0.0
    """When the change stream was last read."""
    asked: float = 0.0
    """When the last step was asked for."""
    refused: list[Item] = field(default_factory=list)
    """The keys of items that could not be moved; they are tried again."""
    has_more_refused: bool = False
    """Whether there were more, so that the whole table has to be read again."""
    read: int = 0
    written: int = 0
    others: int = 0
    changes: int = 0
    rcu: float = 0.0
    wcu: float = 0.0
    seconds: float = 0.0
    at: float = 0.0
    item: Item | None = field(default=None, compare=False)


def state_key(layout: BoundLayout) -> Item:
    return layout.ledgers.record_key(_WHAT, _NAME)


def stored_state(layout: BoundLayout) -> Plan[MoveState | None]:
    """The state that an earlier run has stored; None if there was none."""
    item = yield from item_at(layout.table, state_key(layout))
    return None if item is None else MoveState.of_item(item)


def save_state(layout: BoundLayout, state: MoveState) -> Plan[Item]:
    """Stores a state in place of the one that it follows; returns the item. Raises if another run has stored one."""
    item = state_key(layout) | {STATE: encode(state.plain()), REVISION: new_revision()}
    yield (Put(layout.table, item, same(state.item, REVISION)),)
    return item


# --- what is read of the two tables ------------------------------------------------------------


def describe(table: str) -> Plan[TableResponse]:
    response: TableResponse
    (response,) = yield (DescribeTable(table),)
    return response


def require_empty(new: BoundLayout, source: str) -> Plan[None]:
    """Raises if the new table has more than the records about the table that every new one has."""
    page: PageResponse
    (page,) = yield (Scan(new.table, limit=_FEW, consistent=True),)
    has_records = new.why_no_own_items is None
    if page.last is not None or not all(has_records and new.key_texts(item)[0].startswith(OWN) for item in page.items):
        raise TableNotEmpty(
            f"the table {new.table!r} already has items, which a migration would mix with those of {source!r}; migrate "
            f"into a table of another name"
        )


def item_at(table: str, key: Item) -> Plan[Item | None]:
    response: ItemResponse
    (response,) = yield (Get(table, key, consistent=True),)
    return response.item


def changes_after(table: str, after: str | None) -> Plan[ChangesResponse]:
    response: ChangesResponse
    (response,) = yield (ReadChanges(table, after),)
    return response
