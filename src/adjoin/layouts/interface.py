"""The values with which a layout is declared, and those with which a bound layout describes itself.

A layout is bound to a schema once, when a graph opens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import InvalidModel, shown
from adjoin.layouts.keys import Template
from adjoin.schema import Schema
from adjoin.tables import KeyType, Projection, Throughput
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.layouts.bound import BoundLayout

DELETING = "adjoin:deleting"
"""The attribute with which a large delete marks an edge: a set of texts, each a token and a node key."""
REVISION = "adjoin:revision"
"""The attribute that changes with each write, on items that have satellites."""
GENERATION = "adjoin:life"
"""The attribute of a node with aggregates that names its generation; contributions of other generations are void."""
NEXT_GENERATION = "adjoin:next"
"""The attribute of a node that names the generation which a recount prepares, while the present one is in use."""
WRITTEN = "adjoin:written"
"""The attribute of an edge of nodes that can expire: when it was put, in seconds since 1970."""
STAMP = "adjoin:stamp"
"""The attribute of an edge that says what was counted for it, in place of a ledger; see `plans/counting/stamps`."""
TWIN = "adjoin:twin"
"""The attribute of the items of an edge that were written while its class became symmetric: whether the item is at the
other end than the edge was put. A program to which the edge has one item only may remove one of them, and then the
other one has to go too. Without this attribute, it would look like an edge that lacks its other item."""
OWNER = "adjoin:owner"
"""The attribute of a claim to a unique value: the node key of the node that has it."""


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index: its name, its key attributes, and the templates of what adjoin writes into them.

    A key attribute without a template is one that items have anyway: a key of the table, or a field of the class.
    """

    name: str
    partition_key: str | tuple[str, ...]
    """The attribute of the partition key, or up to four of them, which need no templates."""
    sort_key: str | tuple[str, ...] | None = None
    partition: str | None = None
    sort: str | None = None
    projection: Projection = Projection()
    throughput: Throughput | None = None
    local: bool = False
    """Whether it is a local index, whose partition key is that of the table."""
    shards: int | range | None = None
    """How many partitions `{shard}` in a partition template stands for, from 0 on; or a range, such as range(1, 11)."""
    shard_by: str | tuple[str, ...] | None = None
    """The fields whose values choose the shard; None for the key of the item."""
    types: Mapping[str, KeyType] = field(default_factory=dict, hash=False)
    """The types of key attributes that are written from templates and are not text: {"GSIPK": "N"}."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidModel(f"the name of an index must be text, got {shown(self.name)}")
        for what, given in (("partition_key", self.partition_key), ("sort_key", self.sort_key)):
            if not (given is None and what == "sort_key") and not _are_names(given):
                raise InvalidModel(
                    f"{what} of the index {shown(self.name)} must be the name of an attribute, or a tuple of names, "
                    f"got {shown(given)}"
                )
        if self.shard_by is not None and not _are_names(self.shard_by):
            raise InvalidModel(
                f"shard_by of the index {shown(self.name)} must be the name of a field, or a tuple of names, got "
                f"{shown(self.shard_by)}"
            )
        if self.shards is not None and (isinstance(self.shards, bool) or not isinstance(self.shards, int | range)):
            raise InvalidModel(
                f"shards of the index {shown(self.name)} must be a number, or a range such as range(1, 11), got "
                f"{shown(self.shards)}"
            )

    @property
    def partition_keys(self) -> tuple[str, ...]:
        return (self.partition_key,) if isinstance(self.partition_key, str) else tuple(self.partition_key)

    @property
    def sort_keys(self) -> tuple[str, ...]:
        if self.sort_key is None:
            return ()
        return (self.sort_key,) if isinstance(self.sort_key, str) else tuple(self.sort_key)

    @property
    def shard_fields(self) -> tuple[str, ...] | None:
        """The fields that choose the shard; None for the key of the item."""
        if self.shard_by is None:
            return None
        return (self.shard_by,) if isinstance(self.shard_by, str) else tuple(self.shard_by)

    @property
    def keys(self) -> tuple[str, ...]:
        """All key attributes, those of the partition key first."""
        return (*self.partition_keys, *self.sort_keys)

    @property
    def partition_attribute(self) -> str:
        """The first attribute of the partition key, which is usually the only one."""
        return self.partition_keys[0]

    @property
    def sort_attribute(self) -> str | None:
        """The first attribute of the sort key, which is usually the only one."""
        return self.sort_keys[0] if self.sort_keys else None


def _are_names(given: object) -> bool:
    """Whether this is a name, or several of them."""
    several = given if isinstance(given, tuple | list) else (given,)
    return bool(several) and all(isinstance(each, str) for each in several)


@dataclass(frozen=True, slots=True)
class Keys:
    """Key templates of one class, which replace those of the layout."""

    partition: str | None = None
    sort: str | None = None
    reverse_partition: str | None = None
    reverse_sort: str | None = None
    indexes: Mapping[str, str | tuple[str | None, str]] = field(default_factory=dict, hash=False)
    """The templates of the class in indexes, by the name of the index: of the partition key, or of both keys.

    The partition key is None if it is a field of the class, which is stored there anyway."""
    only_in_keys: Collection[str] = ()
    """Fields that are stored in keys only, because the table has no attribute for them."""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Further attributes that other programs read, with their templates: {"UserName": "{id}"}."""
    type: str | None = None
    """The class in the layout's type attribute; None for the label."""


@dataclass(frozen=True, slots=True)
class Satellite:
    """An item that is written and removed together with an entity's own item; `item` is None if it must not exist."""

    key: Item
    item: Item | None
    owner: str | None = None
    """For a claim, the node key of its owner: only the owner's claim may be overwritten or removed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The attributes of the items of one class."""

    written: Mapping[str, str]
    """What the layout itself writes: attribute name to the template of its text, the table's keys first."""
    fields: Mapping[str, str]
    """The attribute of each stored field."""
    copies: Mapping[str, Shape] = field(default_factory=dict)
    """The index copies of an item, by the indexed field that they are for."""
    claims: Mapping[str, Shape] = field(default_factory=dict)
    """The claims to unique values, by their field."""


@dataclass(frozen=True, slots=True)
class KeyTemplates:
    """The key templates of one class, for code that reads keys without items."""

    partition: Template
    sort: Template
    others: Mapping[str, Template]
    """The key attributes of indexes, which hold values that the table's own keys do not."""
    target_field: str | None = None
    """The field that is the target's id, if templates name it instead of the target."""
    meets: tuple[NodeType, ...] = ()
    """For an edge, the classes of nodes that can have the same key; an item with such a key is the node."""
    type_attribute: str | None = None
    """The attribute that names the class, if there is one."""
    type_words: tuple[str, ...] = ()
    """What the items of the class may have in it: of the head of a family, also the words of its other classes."""
    stored: frozenset[str] = frozenset()
    """The fields that are stored as attributes; others are in the keys only."""
    text: Template | None = None
    """For a node, the template of its node key."""
    is_shared: bool = False
    """Whether nodes of the class share a partition, so that a node key is both keys of a node."""
    has_own_partition: bool = True
    """Whether the partitions are not, as for most edges, those of the nodes from which they lead."""
    is_guarded: bool = False
    """Whether a partition key that ends as those of adjoin's own items do is never that of a node of the class."""


class Layout(Protocol):
    """How entities are stored in a table; `bind` checks it against the classes."""

    @property
    def table(self) -> str: ...

    def named(self, table: str) -> Layout:
        """The same layout in another table."""
        ...

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundLayout: ...
