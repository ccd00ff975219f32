"""The compiled key templates of one class, and what the keys of an item say about it.

`NodeKeys` and `EdgeKeys` hold the templates of the table's keys and of index keys. They parse the keys of an item back
into the parts of ids. `templates` makes them for all classes of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from adjoin.entity_types import EdgeType, NodeType
from adjoin.layouts.interface import Index
from adjoin.layouts.keys import SHARD, Part, Template
from adjoin.layouts.records import FieldRecord
from adjoin.layouts.template_texts import JOINT


@dataclass(frozen=True)
class NodeKeys:
    kind: NodeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: FieldRecord
    text: Template
    """The node key: the partition key if that has the whole id, otherwise both keys."""
    rest: tuple[str, ...]
    """The parts of the id that are in the sort key only; none unless nodes of the class share a partition."""
    explained: frozenset[str]
    """The attributes that adjoin writes or reads on items of the class."""
    is_apart: bool = False
    """Whether it is a child in another partition than that of its parent."""
    parent_rest: tuple[str, ...] = ()
    """For a child, the parts of its parent's id with which its sort key begins."""

    def text_in(self, partition: str, sort: str) -> str:
        """The node key of the node whose item has these keys."""
        return partition + JOINT + sort if self.rest else partition

    def told(self, partition: str, sort: str) -> dict[str, str] | None:
        """The texts of the parts of the id in these keys; None if they are not the keys of a node of the class."""
        told = _told(self.partition.match(partition), self.sort.match(sort))
        return told if told is None or not self.is_echoed or _is_made_of(self, partition, sort, told) else None

    @cached_property
    def is_echoed(self) -> bool:
        """Whether one key holds less of a value that the other holds whole, such as the day of a time."""
        return _is_echoed(self.partition, self.sort)

    @cached_property
    def bounded(self) -> tuple[Part, ...]:
        """The parts of the id that are whole numbers with bounds."""
        parts = (*self.partition.parts, *self.sort.parts)
        return tuple(part for part in parts if part.least is not None or part.most is not None)

    @cached_property
    def sole_fields(self) -> dict[str, frozenset[str]]:
        """The fields that an index key holds, and no other attribute does, by the name of the key."""
        return _sole_fields(self)


@dataclass(frozen=True)
class EdgeKeys:
    kind: EdgeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: FieldRecord
    fields: tuple[str, ...]
    """The fields of the edge's identity."""
    target_field: str | None
    """The field that is the target's id, if templates name it instead of {target}."""
    meets: tuple[NodeType, ...]
    """The classes whose nodes have the key that an edge would have whose ends have the same id."""
    order_index: Index | None
    """The index that keeps the order, if the sort key does not."""
    explained: frozenset[str]
    """The attributes that adjoin writes or reads on items of the class."""
    rest: tuple[str, ...] = ()
    """The parts of the source's id that are in the sort key only; none unless the source shares its partition."""
    is_apart: bool = False
    """Whether its partition key is not that of its source."""
    loose: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ends, "source" and "target", that are not part of the table's keys, each with the attributes that tell it."""

    def told(self, partition: str, sort: str) -> dict[str, str] | None:
        """The texts of the parts in these keys; None if they are not the keys of an edge of the class."""
        told = _told(self.partition.match(partition), self.sort.match(sort))
        return told if told is None or not self.is_echoed or _is_made_of(self, partition, sort, told) else None

    @cached_property
    def is_echoed(self) -> bool:
        """Whether one key holds less of a value that the other holds whole, such as the day of a time."""
        return _is_echoed(self.partition, self.sort)

    @cached_property
    def sole_fields(self) -> dict[str, frozenset[str]]:
        """The fields that an index key holds, and no other attribute does, by the name of the key."""
        return _sole_fields(self)

    @cached_property
    def own_fields(self) -> tuple[str, ...]:
        """The fields of the edge's identity besides its ends."""
        return tuple(name for name in self.fields if name != self.target_field)

    @cached_property
    def target_parts(self) -> list[str]:
        """The names of the parts of the target's id."""
        return [f"target.{name}" for name in self.kind.target.parts]

    def end_parts(self, side: str) -> list[str]:
        """The names of the parts of the id at one end, "source" or "target"."""
        end = self.kind.source if side == "source" else self.kind.target
        return [f"{side}.{name}" for name in end.parts]

    @cached_property
    def only_target(self) -> str | None:
        """The name of the only part of a target's id that is one value."""
        return self.target_parts[0] if self.kind.target.is_single else None


def _told(told: dict[str, str] | None, own: dict[str, str] | None) -> dict[str, str] | None:
    """The texts in both keys of an item; None if one key does not match, or a part is different in the other."""
    if told is None or own is None or any(told.setdefault(name, text) != text for name, text in own.items()):
        return None
    return told


def _is_echoed(partition: Template, sort: Template) -> bool:
    told = partition.told | sort.told
    return any(not part.transform.decode and part.name in told for part in (*partition.parts, *sort.parts))


def _is_made_of(keys: NodeKeys | EdgeKeys, partition: str, sort: str, told: Mapping[str, str]) -> bool:
    """Whether keys agree about a value of which one of them holds less."""
    pairs = ((keys.partition, partition), (keys.sort, sort))
    lossy = ((each, text) for each, text in pairs if any(not part.transform.decode for part in each.parts))
    return all(each.is_made_of(text, told) for each, text in lossy if {*each.names} <= told.keys())


def rest_of(parts: Sequence[str], partition: Template, sort: Template | None) -> tuple[str, ...] | None:
    """The parts of an id that a sort key begins with, because the partition key, made of the others, lacks them.

    None if the id does not tell the partition, or the sort key begins with something else.
    """
    if not {part.name for part in partition.parts} - {SHARD} <= {*parts}:
        return None
    rest = tuple(name for name in parts if name not in partition.told)
    begun = [] if sort is None else [part.name for part in sort.parts[: len(rest)]]
    return rest if {*begun} == {*rest} else None


def sole_keys(kept: NodeKeys | EdgeKeys) -> set[str]:
    """The index keys of a class that hold a value which no other attribute holds."""
    elsewhere = {SHARD, *kept.record.stored_names, *kept.partition.told, *kept.sort.told}
    return {name for name, template in kept.index_keys.items() if not template.told <= elsewhere}


def _sole_fields(kept: NodeKeys | EdgeKeys) -> dict[str, frozenset[str]]:
    elsewhere = kept.record.stored_names | kept.partition.told | kept.sort.told
    fields = kept.kind.attributes.keys() - elsewhere
    return {name: frozenset(template.told & fields) for name, template in kept.index_keys.items()}
