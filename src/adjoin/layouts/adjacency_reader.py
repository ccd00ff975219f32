"""Items of an adjacency list back to nodes and edges: which class explains an item, and the instance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from adjoin.errors import InvalidItem
from adjoin.layouts.adjacency_keys import AdjacencyKeys, EdgeKeys, NodeKeys
from adjoin.layouts.keys import Template
from adjoin.layouts.wire import given
from adjoin.model import AS_READ, Node
from adjoin.rules import Rules
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, from_key_text
from adjoin.values import Item

Reader: TypeAlias = Callable[[Item], Entity | None]

_ID, _SOURCE, _TARGET = given("id"), given("source"), given("target")


class AdjacencyReader:
    """Reads items by their keys; where an item is of another class, the answer is None."""

    def __init__(
        self, keys: AdjacencyKeys, partition_key: str, sort_key: str, type_attribute: str | None, rules: Rules
    ) -> None:
        self._keys = keys
        self._pk, self._sk, self._type = partition_key, sort_key, type_attribute
        self.readers: dict[type[Any], Reader] = {
            **{
                model: _remembering(self._short_node_reader(node), rules.told_apart(node.kind))
                for model, node in keys.nodes.items()
            },
            **{model: self._short_edge_reader(edge) for model, edge in keys.edges.items()},
        }

    def kind_of(self, item: Item) -> EntityType | None:
        partition, sort = item[self._pk]["S"], item[self._sk]["S"]
        for node in self._keys.nodes.values():
            told = node.partition.match(partition)
            if told is None:
                continue
            own = node.sort.match(sort)
            candidates: list[NodeKeys | EdgeKeys] = [node] if own is not None and own.items() <= told.items() else []
            candidates += [
                edge
                for edge in self._keys.edges.values()
                if edge.kind.source is node.kind and edge.sort.match(sort) is not None
            ]
            if candidates and self._is_labelled(item, candidates[0].kind):
                return candidates[0].kind
        return None

    def read(self, item: Item) -> Entity | None:
        kind = self.kind_of(item)
        return None if kind is None else self.readers[kind.model](item)

    def _is_labelled(self, item: Item, kind: EntityType) -> bool:
        label = item.get(self._type) if self._type else None
        return label is None or label.get("S") == kind.label

    # --- the general way -----------------------------------------------------------------------

    def _node(self, keys: NodeKeys, item: Item) -> Node | None:
        told = keys.partition.match(item[self._pk]["S"])
        if told is None or not self._is_labelled(item, keys.kind):
            return None
        node: Node = keys.record.decode(item, {"id": from_key_text(keys.kind.fields["id"], told["id"])})
        return node

    def _edge(self, keys: EdgeKeys, item: Item) -> AnyEdge | None:
        source = keys.partition.match(item[self._pk]["S"])
        told: dict[str, Any] | None = keys.sort.match(item[self._sk]["S"])
        if source is None or told is None or not self._is_labelled(item, keys.kind):
            return None
        told["source"] = source["source.id"]
        if "target.id" in told:
            told["target"] = told.pop("target.id")
        else:
            told["target"] = self._target_elsewhere(keys, item, told)
        kind, ends = keys.kind, {"source": keys.kind.source, "target": keys.kind.target}
        known = {
            name: from_key_text(ends[name].fields["id"] if name in ends else kind.fields[name], text)
            for name, text in told.items()
            if text is not None
        }
        edge: AnyEdge = keys.record.decode(item, known)
        return edge

    def target_of(self, kind: EdgeType, item: Item) -> Any:
        """The id of the node that the edge of this item leads to."""
        keys = self._keys.edges[kind.model]
        told: dict[str, Any] = keys.sort.match(item[self._sk]["S"]) or {}
        text = told["target.id"] if "target.id" in told else self._target_elsewhere(keys, item, told)
        if text is None:
            raise InvalidItem(f"the item {item[self._pk]['S']!r} {item[self._sk]['S']!r} does not tell its target")
        return kind.target.id(from_key_text(kind.target.fields["id"], text))

    def _target_elsewhere(self, keys: EdgeKeys, item: Item, told: dict[str, Any]) -> str | None:
        for name, template in keys.index_keys.items():
            if name in item:
                told |= template.match(item[name]["S"]) or {}
        told.pop("source.id", None)
        return told.get(keys.target_field) if keys.target_field else told.pop("target.id", None)

    # --- short cuts ----------------------------------------------------------------------------
    # Most keys are a literal and an id, and most ids are spelled as they are. Such an item goes into
    # its model without a search, a copy of its parts or a decoded attribute; any other, and any that
    # does not pass, goes the general way.

    def _short_node_reader(self, keys: NodeKeys) -> Reader:
        wire, pk = keys.record.wire, self._pk
        if wire is None or self._type is not None or not _are_plain(keys.partition):
            return lambda item: self._node(keys, item)
        lead, special = keys.partition.lead, _special(keys.partition.quoting.ends)
        length = len(lead)

        def read(item: Item) -> Node | None:
            text = item[pk]["S"]
            if text.startswith(lead) and not special(text, length):
                try:
                    node: Node = wire({**item, _ID: text[length:]})
                    return node
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._node(keys, item)

        return read

    def _short_edge_reader(self, keys: EdgeKeys) -> Reader:
        wire, pk, sk = keys.record.wire, self._pk, self._sk
        parts = (*keys.partition.parts, *keys.sort.parts)
        short = [part.name for part in parts] == ["source.id", "target.id"] and _are_plain(keys.partition, keys.sort)
        if wire is None or self._type is not None or not short:
            return lambda item: self._edge(keys, item)
        lead, sort_lead = keys.partition.lead, keys.sort.lead
        special = _special(keys.partition.quoting.ends)
        length, sort_length = len(lead), len(sort_lead)

        def read(item: Item) -> AnyEdge | None:
            text, sort = item[pk]["S"], item[sk]["S"]
            if (
                sort.startswith(sort_lead)
                and text.startswith(lead)
                and not special(text, length)
                and not special(sort, sort_length)
            ):
                try:
                    edge: AnyEdge = wire({**item, _SOURCE: text[length:], _TARGET: sort[sort_length:]})
                    return edge
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._edge(keys, item)

        return read


def _remembering(read: Reader, names: Sequence[str]) -> Reader:
    """A reader whose instances know what they had in these fields."""
    if not names:
        return read

    def remember(item: Item) -> Entity | None:
        entity = read(item)
        if entity is not None:
            values = entity.__dict__
            values[AS_READ] = {name: values[name] for name in names}
        return entity

    return remember


def _are_plain(*templates: Template) -> bool:
    return all(template.is_tail and not template.parts[0].transform.name for template in templates)


def _special(ends: frozenset[str]) -> Callable[[str, int], re.Match[str] | None]:
    """Finds what is spelled in another way than it is, or ends a part, from a place on."""
    return re.compile("[" + re.escape("".join(sorted({"%", *ends}))) + "]").search
