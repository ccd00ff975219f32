"""Requests to a store and its responses, as frozen values that can be printed, compared and priced.

Plans and stores exchange nothing else. Every request names its table; items and keys have the form of
`adjoin.values`; conditions and updates are trees of `adjoin.expressions`. Responses contain what was
consumed, with one row for the table and one for each index that was used.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias, TypeVar

from adjoin.dataclass import dataclass
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
    """Reads at most 100 items and 16 MB; gets that do not fit are returned as `unprocessed`."""

    gets: tuple[Get, ...]


@dataclass(frozen=True, slots=True)
class TransactGet:
    """Reads at most 100 items, all as they were at one instant."""

    gets: tuple[Get, ...]


SortOperator: TypeAlias = Literal["=", "<", "<=", ">", ">=", "between", "begins_with"]


@dataclass(frozen=True, slots=True)
class SortCondition:
    """The condition on an attribute of the sort key; `between` has two operands, the other operators have one."""

    attribute: str
    operator: SortOperator
    operands: tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """Reads one page of one partition in key order: at most 1 MB, or `limit` items before the filter.

    An index may have several attributes in its partition key and in its sort key. A query of it gives all attributes of
    the partition key, and conditions on the first attributes of the sort key: equalities, and at most one other
    condition, on the last attribute that it names.
    """

    table: str
    partition: tuple[str, AttributeValue]
    """An attribute of the partition key, usually the only one, and its value."""
    sort: SortCondition | None = None
    """The condition on the sort key, or on the last of its attributes that the query names."""
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    count_only: bool = False
    limit: int | None = None
    start: Item | None = None
    forward: bool = True
    consistent: bool = False
    whole: bool = False
    """Whether attributes that an index does not project are read from the table; only local indexes can do that."""
    equal: tuple[tuple[str, AttributeValue], ...] = ()
    """The other attributes of the partition key, and those of the sort key before that of `sort`, with their values."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads one page of all items, or of one of the segments into which the table is divided."""

    table: str
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    count_only: bool = False
    limit: int | None = None
    start: Item | None = None
    segment: tuple[int, int] | None = None
    """The number of the segment, from 0, and the number of segments."""
    consistent: bool = False
    whole: bool = False
    """See `Query.whole`."""


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
    """Changes an item, or creates one with this key if none exists."""

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
    """A part of a transaction that writes nothing: the item must satisfy the condition."""

    table: str
    key: Item
    condition: Condition


@dataclass(frozen=True, slots=True)
class BatchWrite:
    """Applies at most 25 puts and deletes on different items; each succeeds or fails on its own."""

    writes: tuple[Put | Delete, ...]


@dataclass(frozen=True, slots=True)
class TransactWrite:
    """Applies at most 100 writes on different items, all or none. Requests with the same token are applied once."""

    writes: tuple[Put | Update | Delete | Check, ...]
    token: str | None = None


# --- tables and changes ------------------------------------------------------------------------


Settings: TypeAlias = Mapping[str, Any]
"""Settings that only DynamoDB acts on, such as class, encryption and limits. The embedded store only remembers them."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    definition: TableDefinition
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetTimeToLive:
    """Sets the time-to-live attribute of an existing table; None switches expiry off."""

    table: str
    attribute: str | None


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Changes an existing table. What is None or empty stays as it is.

    A new index contains the existing items, except those whose key attributes have other types.
    """

    table: str
    add_indexes: tuple[IndexDefinition, ...] = ()
    """Global indexes only; DynamoDB cannot add local ones."""
    remove_indexes: tuple[str, ...] = ()
    throughput: Throughput | Literal["on demand"] | None = None
    index_throughput: tuple[tuple[str, Throughput], ...] = ()
    stream: StreamView | Literal["off"] | None = None
    """A stream that is switched on again begins empty, with another label."""
    deletion_protection: bool | None = None
    point_in_time_recovery: bool | None = None
    settings: Settings = field(default_factory=dict)
    """The settings that change; None removes a setting."""


@dataclass(frozen=True, slots=True)
class TagTable:
    """Sets tags of a table, replacing those with the same keys, and removes others."""

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
    """Lists the streams of all tables, including those that were switched off and can still be read."""


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """Reads the next changes after a position, oldest first; None begins with the oldest that is stored."""

    table: str
    after: str | None = None
    limit: int = 1000
    stream: str | None = None
    """The label of a stream, which may be switched off; None means the current stream."""


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
    """The units that one request consumed from a table (`index` is None) or from one of its indexes."""

    table: str
    index: str | None
    read: float
    write: float


@dataclass(frozen=True, slots=True)
class ItemResponse:
    """The response to Get, Put, Update and Delete: the item that was read or returned, or None."""

    item: Item | None
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The response to Query and Scan. `last` is the key from which the next page starts, or None at the end.

    `items` may be lazy: a store may parse the items during each iteration.
    """

    items: Sequence[Item]
    count: int
    scanned: int
    last: Item | None
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchGetResponse:
    """The response to BatchGet and TransactGet: one element per get, in order; None if the item does not exist."""

    items: list[Item | None]
    unprocessed: tuple[Get, ...] = ()
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteResponse:
    """The response to BatchWrite and TransactWrite."""

    unprocessed: tuple[Put | Delete, ...] = ()
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class ClosedStream:
    """A stream that was switched off. Its changes can be read for one more day."""

    label: str
    view: StreamView
    after: str
    """The position before its first change."""
    last: str
    """The position of its last change."""
    at: float
    """When it was switched off."""


@dataclass(frozen=True, slots=True)
class TableHistory:
    """When a table was created and changed, in seconds since 1970, as far as its store knows."""

    id: str = ""
    """Unique to each table: a table with the name of a dropped one gets another id."""
    created: float = 0.0
    stream_label: str | None = None
    """When its stream was last switched on, as DynamoDB writes it; it distinguishes the streams of one table."""
    on_demand: float | None = None
    increased: float | None = None
    """When its throughput was last increased."""
    decreased: float | None = None
    decreases: int = 0
    """How often its throughput was decreased on the day of the last decrease; DynamoDB limits that per day."""
    settings: Settings = field(default_factory=dict)
    """Its settings besides the definition."""
    closed: tuple[ClosedStream, ...] = ()
    """Its earlier streams, oldest first."""


@dataclass(frozen=True, slots=True)
class TableResponse:
    """The response to CreateTable, UpdateTable, SetTimeToLive, DescribeTable and DropTable."""

    definition: TableDefinition
    item_count: int = 0
    size: int = 0
    consumed: tuple[Consumed, ...] = ()
    history: TableHistory = field(default=TableHistory(), compare=False)
    latest: str | None = field(default=None, compare=False)
    """The position after the newest change, if the store knows it."""
    earliest: str | None = field(default=None, compare=False)
    """The position before the oldest change that the stream may contain."""
    has_all_changes: bool = field(default=True, compare=False)
    """Whether the stream contains every change since the table was created, as far as the store can know."""
    before: TableDefinition | None = field(default=None, compare=False)
    """The definition before the change, for UpdateTable."""


@dataclass(frozen=True, slots=True)
class TablesResponse:
    names: tuple[str, ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TagsResponse:
    """The response to TagTable and ListTags: all tags of the table, in the order of their keys."""

    tags: tuple[tuple[str, str], ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class TableStream:
    """A stream of a table. The label is part of its ARN; it is the time at which it was switched on."""

    table: str
    label: str


@dataclass(frozen=True, slots=True)
class StreamsResponse:
    """The response to ListStreams, in the order of the table names."""

    streams: tuple[TableStream, ...]
    consumed: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One item before and after one write. `position` orders changes; reading resumes after it."""

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
    """The position from which reading continues; None while the stream has had no changes at all."""
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


T = TypeVar("T")
Plan: TypeAlias = Generator[Sequence[Request], Any, T]
"""A generator that yields batches of requests and is sent their responses, in the same order; see `adjoin.plans`."""
