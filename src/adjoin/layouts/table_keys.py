"""The keys of a table itself: a partition key and usually a sort key, each of them text, a number or binary.

Layouts read and write keys as text, whatever their types: a number as DynamoDB spells it, bytes in Base64. The sort key
of a table that has none is "". Only here it is decided which attribute holds that text, and under which type.

adjoin's own items (claims to unique values, index copies, ledgers, records) have keys that are text, beside those of
nodes and edges. A table whose keys are not two texts cannot hold them. `why_no_own_items` says why; what needs such
items is refused with that reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, shown
from adjoin.tables import KeyAttribute, KeyType
from adjoin.values import AttributeValue, Item

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

_TYPES: Mapping[KeyType, str] = {"S": "text", "N": "a number", "B": "binary"}


def described_type(type: KeyType) -> str:
    """What a key of this type is, for messages."""
    return _TYPES[type]


def text_of(key: AttributeValue) -> str:
    """The text of a key attribute of any type."""
    return str(next(iter(key.values())))


@dataclass(frozen=True)
class TableKeys:
    """The key attributes of one table."""

    partition: KeyAttribute
    sort: KeyAttribute | None

    @classmethod
    def of(cls, layout: AdjacencyList) -> TableKeys:
        names = [name for name in (layout.partition_key, layout.sort_key) if name is not None]
        for name, type in layout.types.items():
            if name not in names:
                raise InvalidModel(
                    f"types= of the layout names {shown(name)}, which is not a key of the table "
                    f"({' and '.join(names)}); the types of the keys of an index are in its own types="
                )
            if not isinstance(type, str) or type not in _TYPES:
                raise InvalidModel(f'the key {name!r} has the type {shown(type)} in types=; use "S", "N" or "B"')
        partition, *sort = (KeyAttribute(name, layout.types.get(name, "S")) for name in names)
        return cls(partition, *sort) if sort else cls(partition, None)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)

    @cached_property
    def types(self) -> Mapping[str, KeyType]:
        """The type of each key attribute."""
        return {key.name: key.type for key in (self.partition, self.sort) if key is not None}

    @cached_property
    def are_text(self) -> bool:
        """Whether there are two keys, and both are text."""
        return self.sort is not None and self.partition.type == "S" and self.sort.type == "S"

    @cached_property
    def why_no_own_items(self) -> str | None:
        """Why the table cannot hold items of adjoin's own; None if it can."""
        if self.are_text:
            return None
        odd = next((key for key in (self.partition, self.sort) if key is not None and key.type != "S"), None)
        if odd is not None:
            return f"the key {odd.name!r} of the table is {described_type(odd.type)}"
        return f"the table has the partition key {self.partition.name!r} only"

    # --- keys as text, both ways ---------------------------------------------------------------

    def texts(self, item: Item) -> tuple[str, str]:
        """The partition key and the sort key of an item, as text."""
        partition = text_of(item[self.partition.name])
        return partition, "" if self.sort is None else text_of(item[self.sort.name])

    def key(self, partition: str, sort: str) -> Item:
        """The key with these texts."""
        key: Item = {self.partition.name: {self.partition.type: partition}}
        return key if self.sort is None else key | {self.sort.name: {self.sort.type: sort}}

    def key_of(self, item: Item) -> Item:
        return {name: item[name] for name in self.names}
