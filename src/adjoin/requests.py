"""Requests to a store and its responses, as frozen values that can be printed, compared and priced.

This is the whole language between plans and stores. Every request names its table; items and keys
have the form of `adjoin.values`; conditions and updates are trees of `adjoin.expressions`. Responses
carry what was consumed, one row for the table and one for each index that took part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjoin.expressions import Action, Condition, Path
from adjoin.tables import TableDefinition
from adjoin.values import AttributeValue, Item

# --- reads -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Get:
    table: str
    key: Item
    consistent: bool = False
    projection: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True)
class BatchGet:
    """At most 100 items and 16 MB; what does not fit comes back as `unprocessed`."""

    gets: tuple[Get, ...]


@dataclass(frozen=True, slots=True)
class TransactGet:
    """At most 100 items, all from one instant."""

    gets: tuple[Get, ...]


SortOperator: TypeAlias = Literal["=", "<", "<=", ">", ">=", "between", "begins_with"]


@dataclass(frozen=True, slots=True)
class SortCondition:
    """What the sort key must satisfy; `between` has two operands, the others one."""

    attribute: str
    operator: SortOperator
    operands: tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One page, at most 1 MB or `limit` items before the filter, of one partition in key order."""

    table: str
    partition: tuple[str, AttributeValue]
    sort: SortCondition | None = None
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    count_only: bool = False
    limit: int | None = None
    start: Item | None = None
    forward: bool = True
    consistent: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """One page of everything, or of one of several segments that together are everything."""

    table: str
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    count_only: bool = False
    limit: int | None = None
    start: Item | None = None
    segment: tuple[int, int] | None = None
    """(which, of how many)"""
    consistent: bool = False


# --- writes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    table: str
    item: Item
    condition: Condition | None = None
    return_old: bool = False


Returned: TypeAlias = Literal["none", "old", "new", "updated_old", "updated_new"]


@dataclass(frozen=True, slots=True)
class Update:
    """Changes an item in place, or makes one of its key where there is none."""

    table: str
    key: Item
    actions: tuple[Action, ...]
    condition: Condition | None = None
    returns: Returned = "none"


@dataclass(frozen=True, slots=True)
class Delete:
    table: str
    key: Item
    condition: Condition | None = None
    return_old: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """Part of a transaction: the item must satisfy the condition; nothing is written."""

    table: str
    key: Item
    condition: Condition


@dataclass(frozen=True, slots=True)
class BatchWrite:
    """At most 25 puts and deletes, each applied or not on its own, no item twice."""

    writes: tuple[Put | Delete, ...]


@dataclass(frozen=True, slots=True)
class TransactWrite:
    """At most 100 writes on different items, all or none; the same token is applied once."""

    writes: tuple[Put | Update | Delete | Check, ...]
    token: str | None = None


# --- tables and changes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTable:
    definition: TableDefinition


@dataclass(frozen=True, slots=True)
class SetTimeToLive:
    """Lets the items of a table that is there expire by an attribute."""

    table: str
    attribute: str


@dataclass(frozen=True, slots=True)
class DropTable:
    table: str


@dataclass(frozen=True, slots=True)
class DescribeTable:
    table: str


@dataclass(frozen=True, slots=True)
class ListTables:
    pass


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """The next changes after a position, oldest first; from the oldest kept when it is None."""

    table: str
    after: str | None = None
    limit: int = 1000


Write: TypeAlias = Put | Update | Delete | BatchWrite | TransactWrite
Request: TypeAlias = (
    Get
    | BatchGet
    | TransactGet
    | Query
    | Scan
    | Write
    | CreateTable
    | SetTimeToLive
    | DropTable
    | DescribeTable
    | ListTables
    | ReadChanges
)

# --- responses ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consumed:
    """Units one request took from a table (`index` None) or from one of its indexes."""

    table: str
    index: str | None
    read: float
    write: float


@dataclass(frozen=True, slots=True)
class ItemResponse:
    """To Get, Put, Update and Delete: the item read or returned, if any."""

    item: Item | None
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class PageResponse:
    """To Query and Scan; `last` is the key to start the next page from, None at the end.

    A store may parse items only as they are iterated, anew each time.
    """

    items: Sequence[Item]
    count: int
    scanned: int
    last: Item | None
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchGetResponse:
    """To BatchGet and TransactGet: one entry a get, in order, None where nothing is."""

    items: list[Item | None]
    unprocessed: tuple[Get, ...] = ()
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteResponse:
    """To BatchWrite and TransactWrite."""

    unprocessed: tuple[Put | Delete, ...] = ()
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TableResponse:
    """To CreateTable, SetTimeToLive, DescribeTable and DropTable."""

    definition: TableDefinition
    item_count: int = 0
    size: int = 0
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TablesResponse:
    names: tuple[str, ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item before and after one write; `position` orders changes and resumes reading."""

    position: str
    at: float
    key: Item
    old: Item | None
    new: Item | None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class ChangesResponse:
    changes: list[ItemChange]
    next: str | None
    """The position to read on from; None while nothing has ever changed."""
    consumed: tuple[Consumed, ...] = ()


Response: TypeAlias = (
    ItemResponse | PageResponse | BatchGetResponse | WriteResponse | TableResponse | TablesResponse | ChangesResponse
)
