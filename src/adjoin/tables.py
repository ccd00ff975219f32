"""What a table is: its keys, indexes and settings, as one value that can be compared and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

KeyType: TypeAlias = Literal["S", "N", "B"]
StreamView: TypeAlias = Literal["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    name: str
    type: KeyType = "S"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned units a second; a table without one is on demand."""

    read: int
    write: int


@dataclass(frozen=True, slots=True)
class Projection:
    """What an index entry carries besides keys: everything, nothing, or the named attributes."""

    kind: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.attributes)}".rstrip()


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    projection: Projection = Projection()
    local: bool = False
    throughput: Throughput | None = None

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[IndexDefinition, ...] = ()
    ttl: str | None = None
    """The attribute that holds the second (since 1970) after which an item may go."""
    stream: bool = True
    throughput: Throughput | None = None
    point_in_time_recovery: bool = False
    """Whether the service keeps the table's last 35 days; the embedded store only remembers the wish."""
    deletion_protection: bool = False
    """Whether the table must not be dropped."""
    tags: tuple[tuple[str, str], ...] = ()
    """Keys and values, in the order of the keys."""
    stream_view: StreamView = "NEW_AND_OLD_IMAGES"
    """What the service's records of a change show, besides its key; the embedded store keeps both images."""

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        """Every attribute that is a key of the table or of an index, once, the table's own first."""
        keys = (*self.keys, *(key for index in self.indexes for key in index.keys))
        return tuple({key.name: key for key in keys}.values())

    @property
    def streams_images(self) -> bool:
        """Whether the stream tells every item as it was and as it is."""
        return self.stream and self.stream_view == "NEW_AND_OLD_IMAGES"

    def index_throughput(self, index: IndexDefinition) -> Throughput | None:
        """The units of an index: its own, or else the table's.

        None on demand, and for a local index, which takes from the units of its table.
        """
        return None if self.throughput is None or index.local else index.throughput or self.throughput

    def index(self, name: str) -> IndexDefinition | None:
        return next((index for index in self.indexes if index.name == name), None)
