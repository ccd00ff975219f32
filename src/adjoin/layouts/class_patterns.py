"""The access patterns of each class of a layout: which key attributes it has in the table and in each index.

This is worked out once, when a graph opens. `access_patterns` says what a pattern makes of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from adjoin.entity_types import EntityType, NodeType
from adjoin.layouts.access_patterns import AccessPattern, KeySource, ShardPartitions
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, sole_keys, telling, written_fields
from adjoin.layouts.interface import DELETING, Index
from adjoin.layouts.keys import SHARD, Part, Template
from adjoin.layouts.shard_numbers import ShardedTemplate
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.values import AttributeValue


class AccessPatterns:
    """The access patterns of all classes: the table first, then the indexes as they are declared."""

    def __init__(self, keys: AdjacencyKeys) -> None:
        self._keys = keys
        self._by_model: dict[type[Any], tuple[AccessPattern, ...]] = {}
        everything: list[NodeKeys | EdgeKeys] = [*keys.nodes.values(), *keys.edges.values()]
        indexes = [index for index in keys.indexes if index is not keys.overloaded]
        for kept in everything:
            patterns = [self._table(kept), *(self._index(kept, index) for index in indexes)]
            self._by_model[kept.kind.model] = tuple(pattern for pattern in patterns if pattern is not None)

    def of(self, kind: EntityType) -> tuple[AccessPattern, ...]:
        return self._by_model[kind.model]

    def spread(self, index: str) -> ShardPartitions | None:
        """The partitions of an index whose partition key is the shard alone; None for another index."""
        patterns = [pattern for patterns in self._by_model.values() for pattern in patterns if pattern.index == index]
        for pattern in patterns:
            source, *further = pattern.partition
            template = source.template
            if isinstance(template, ShardedTemplate) and not source.names and not further:
                return ShardPartitions(template.number, partial(pattern._partitions, [{}]))
        return None

    def _table(self, kept: NodeKeys | EdgeKeys) -> AccessPattern:
        partition, *sort = (self._source(kept, name) for name in self._keys.table.names)
        assert partition is not None
        return AccessPattern(
            kept.kind, None, (partition,), tuple(each for each in sort if each is not None), None, is_partial=False
        )

    def _index(self, kept: NodeKeys | EdgeKeys, index: Index) -> AccessPattern | None:
        partition = self._sources(kept, index.partition_keys)
        sort = self._sources(kept, index.sort_keys)
        if partition is None or sort is None:
            return None
        kind, projection = kept.kind, index.projection
        keys = {key.name for key in self._keys.definition.keys} | {*index.keys}
        held = None if projection.kind == "ALL" else frozenset({*keys, *projection.attributes})
        needed = {kind.attributes[name] for name in kept.record.stored_names}
        needed |= {self._keys.layout.type_attribute or index.partition_attribute, *sole_keys(kept)}
        if isinstance(kept, NodeKeys):
            needed |= self._of_family(kept.kind)
        if kind.can_be_hidden and self._keys.table.why_no_own_items is None:
            # A delete in steps marks the item, and a reader has to see the mark.
            needed.add(DELETING)
        takes_any = any(each.takes_any for each in (kind, *(kept.kind.family if isinstance(kept, NodeKeys) else ())))
        is_partial = held is not None and (takes_any or not needed <= held)
        return AccessPattern(
            kind,
            index.name,
            partition,
            sort,
            held,
            is_partial=is_partial and not index.local,
            is_completed=is_partial and index.local,
        )

    def _of_family(self, kind: NodeType) -> set[str]:
        """The attributes of the other classes of a family, any of which an item may be, and what tells them apart."""
        needed = {each.attributes[name] for each in kind.family for name in self._stored(each)}
        told = [telling(each, self._keys.texts) for each in (kind, *kind.family) if each.whole.discriminator]
        return needed | {each.attribute for each in told if each is not None}

    def _stored(self, kind: NodeType) -> Collection[str]:
        return self._keys.nodes[kind.model].record.stored_names

    def _sources(self, kept: NodeKeys | EdgeKeys, attributes: Sequence[str]) -> tuple[KeySource, ...] | None:
        """Where the attributes of a key come from; None if one of them comes from nowhere."""
        sources = [self._source(kept, attribute) for attribute in attributes]
        found = tuple(source for source in sources if source is not None)
        return found if len(found) == len(sources) else None

    def _source(self, kept: NodeKeys | EdgeKeys, attribute: str) -> KeySource | None:
        kind, template = kept.kind, self._keys.template(kept, attribute)
        if template is None and attribute == self._keys.layout.type_attribute:
            return KeySource(attribute, "S", words=self._keys.texts.type_words(kind))
        if template is not None and (template.type == "S" or not template.parts):
            return KeySource(attribute, template.type, template)
        types = {key.name: key.type for index in self._keys.definition.indexes for key in index.keys}
        if template is not None:
            # A key that is not text has one part, unless it is a constant. As a field it is compared by its value.
            part = template.parts[0]
            if part.name == SHARD or part.transform.name:
                return KeySource(attribute, template.type, template)
            format = kind.formats.get(part.name)
            return KeySource(attribute, template.type, None, part.name, _spelling(template, part), format)
        name = next((name for name in written_fields(kept) if kind.attributes[name] == attribute), None)
        if name is None:
            return None
        return KeySource(attribute, types[attribute], None, name, kept.record.encoder(name), kind.formats.get(name))


def _spelling(template: Template, part: Part) -> Callable[[Any], AttributeValue]:
    """The function that spells values in a key that is not text."""
    return lambda value: template.value({part.name: value})
