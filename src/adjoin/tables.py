"""The definition of a table: its keys, indexes and settings, as one value that can be compared and stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from adjoin.dataclass import dataclass

KeyType: TypeAlias = Literal["S", "N", "B"]
StreamView: TypeAlias = Literal["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    name: str
    type: KeyType = "S"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned units per second. A table without them is on demand."""

    read: int
    write: int


@dataclass(frozen=True, slots=True)
class Projection:
    """What an index contains besides keys: all attributes, none, or the named ones."""

    kind: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.attributes)}".rstrip()


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index. The partition key and the sort key of a global index may have several attributes each; see `over`."""

    name: str
    partition: KeyAttribute
    """The first attribute of the partition key, which is usually the only one."""
    sort: KeyAttribute | None = None
    """The first attribute of the sort key, which is usually the only one."""
    projection: Projection = Projection()
    local: bool = False
    throughput: Throughput | None = None
    further_partitions: tuple[KeyAttribute, ...] = ()
    """The other attributes of the partition key, in order. A query has to give all of them."""
    further_sorts: tuple[KeyAttribute, ...] = ()
    """The other attributes of the sort key: entries are in the order of the first, then of the next, and so on."""

    @classmethod
    def over(
        cls,
        name: str,
        partitions: Sequence[KeyAttribute],
        sorts: Sequence[KeyAttribute] = (),
        projection: Projection | None = None,
        *,
        local: bool = False,
        throughput: Throughput | None = None,
    ) -> IndexDefinition:
        """Returns an index over these attributes: at least one of the partition key, any number of the sort key."""
        first, *further = partitions
        sort = sorts[0] if sorts else None
        return cls(name, first, sort, projection or Projection(), local, throughput, tuple(further), tuple(sorts[1:]))

    @property
    def partitions(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the partition key, in order."""
        return (self.partition, *self.further_partitions)

    @property
    def sorts(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the sort key, in order; none if there is no sort key."""
        return () if self.sort is None else (self.sort, *self.further_sorts)

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """All key attributes: first those of the partition key, then those of the sort key."""
        return (*self.partitions, *self.sorts)

    @property
    def is_multi_attribute(self) -> bool:
        """Whether the partition key or the sort key has several attributes."""
        return bool(self.further_partitions or self.further_sorts)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[IndexDefinition, ...] = ()
    ttl: str | None = None
    """The time-to-live attribute: the second since 1970 after which an item may be deleted."""
    stream: bool = True
    throughput: Throughput | None = None
    point_in_time_recovery: bool = False
    """Whether DynamoDB can restore any state of the last 35 days; the embedded store only remembers the setting."""
    deletion_protection: bool = False
    """Whether dropping the table is refused."""
    tags: tuple[tuple[str, str], ...] = ()
    """Keys and values, in the order of the keys."""
    stream_view: StreamView = "NEW_AND_OLD_IMAGES"
    """What a record of DynamoDB's stream contains besides the key. The embedded store keeps both images anyway."""

    @property
    def partitions(self) -> tuple[KeyAttribute, ...]:
        """The same as of an index; the keys of a table have one attribute each."""
        return (self.partition,)

    @property
    def sorts(self) -> tuple[KeyAttribute, ...]:
        return () if self.sort is None else (self.sort,)

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def is_multi_attribute(self) -> bool:
        return False

    @property
    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        """Each attribute that is a key of the table or of an index, once; the keys of the table come first."""
        keys = (*self.keys, *(key for index in self.indexes for key in index.keys))
        return tuple({key.name: key for key in keys}.values())

    @property
    def streams_images(self) -> bool:
        """Whether the stream contains each item before and after the write."""
        return self.stream and self.stream_view == "NEW_AND_OLD_IMAGES"

    def index_throughput(self, index: IndexDefinition) -> Throughput | None:
        """Returns the throughput of an index: its own, or otherwise that of the table.

        It is None on demand, and for a local index, which uses the units of its table.
        """
        return None if self.throughput is None or index.local else index.throughput or self.throughput

    def index(self, name: str) -> IndexDefinition | None:
        return next((index for index in self.indexes if index.name == name), None)
