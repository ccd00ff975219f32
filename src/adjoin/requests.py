"""Requests to a store and its responses, as frozen values that can be printed, compared and priced.

This is the whole language between plans and stores. Every request names its table; items and keys
have the form of `adjoin.values`; conditions and updates are trees of `adjoin.expressions`. Responses
carry what was consumed, one row for the table and one for each index that took part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from adjoin.expressions import Action, Condition, Path
from adjoin.tables import IndexDefinition, StreamView, TableDefinition, Throughput
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
    whole: bool = False
    """Whether items that an index holds only in part are fetched from the table; a local index can."""


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
    whole: bool = False
    """As in a query."""


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


Settings: TypeAlias = Mapping[str, Any]
"""What a table is told that only the service acts on, and the embedded store remembers: class, encryption, limits."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    definition: TableDefinition
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetTimeToLive:
    """Lets the items of a table that is there expire by an attribute, or by none any more."""

    table: str
    attribute: str | None


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Changes a table that is there, at once; what is None or empty stays as it is.

    A new index has the items that are there already, except those whose key attributes have other types.
    """

    table: str
    add_indexes: tuple[IndexDefinition, ...] = ()
    """Global ones."""
    remove_indexes: tuple[str, ...] = ()
    throughput: Throughput | Literal["on demand"] | None = None
    index_throughput: tuple[tuple[str, Throughput], ...] = ()
    stream: StreamView | Literal["off"] | None = None
    """A stream that is switched on anew begins anew."""
    deletion_protection: bool | None = None
    point_in_time_recovery: bool | None = None
    settings: Settings = field(default_factory=dict)
    """Those that change; one that is None goes."""


@dataclass(frozen=True, slots=True)
class TagTable:
    """Gives a table tags, in place of those with the same keys, and takes others from it."""

    table: str
    tags: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListTags:
    table: str


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
class ListStreams:
    """The streams of all tables, those that are switched off as well as long as they are known."""


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """The next changes after a position, oldest first; from the oldest kept when it is None."""

    table: str
    after: str | None = None
    limit: int = 1000
    stream: str | None = None
    """The label of the stream, where it may be one that was switched off; None is the one that is on."""


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
    | UpdateTable
    | TagTable
    | ListTags
    | DropTable
    | DescribeTable
    | ListTables
    | ListStreams
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
class ClosedStream:
    """A stream that was switched off; what it holds can be read for a day."""

    label: str
    view: StreamView
    after: str
    """The position before its first change."""
    last: str
    """The position of its last."""
    at: float
    """When it was switched off."""


@dataclass(frozen=True, slots=True)
class TableHistory:
    """When things happened to a table, in seconds since 1970, as far as its store knows."""

    id: str = ""
    """Another for every table, also for one with the name of a table that was dropped."""
    created: float = 0.0
    stream_label: str | None = None
    """When its stream was switched on last, as the service writes it; it tells streams of one table apart."""
    on_demand: float | None = None
    increased: float | None = None
    """When its throughput was raised last."""
    decreased: float | None = None
    decreases: int = 0
    """How often it was lowered on the day on which it was lowered last."""
    settings: Settings = field(default_factory=dict)
    """What it was told besides its definition."""
    closed: tuple[ClosedStream, ...] = ()
    """Its earlier streams, the oldest first."""


@dataclass(frozen=True, slots=True)
class TableResponse:
    """To CreateTable, UpdateTable, SetTimeToLive, DescribeTable and DropTable."""

    definition: TableDefinition
    item_count: int = 0
    size: int = 0
    consumed: tuple[Consumed, ...] = ()
    history: TableHistory = field(default=TableHistory(), compare=False)
    latest: str | None = field(default=None, compare=False)
    """The position behind the newest change, where a store knows one."""
    earliest: str | None = field(default=None, compare=False)
    """The position before the oldest change that the stream could have."""
    has_all_changes: bool = field(default=True, compare=False)
    """Whether the stream has every change since the table was created, as far as the store can know."""
    before: TableDefinition | None = field(default=None, compare=False)
    """What the table was before it was changed."""


@dataclass(frozen=True, slots=True)
class TablesResponse:
    names: tuple[str, ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TagsResponse:
    """To TagTable and ListTags: all tags of the table, in the order of their keys."""

    tags: tuple[tuple[str, str], ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TableStream:
    """A stream of a table, and the label that is part of its name: when it was switched on."""

    table: str
    label: str


@dataclass(frozen=True, slots=True)
class StreamsResponse:
    """In the order of the tables' names."""

    streams: tuple[TableStream, ...]
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
    closed: ClosedStream | None = field(default=None, compare=False)
    """The stream, if it was switched off."""
    consumed: tuple[Consumed, ...] = ()


Response: TypeAlias = (
    ItemResponse
    | PageResponse
    | BatchGetResponse
    | WriteResponse
    | TableResponse
    | TablesResponse
    | TagsResponse
    | StreamsResponse
    | ChangesResponse
)
