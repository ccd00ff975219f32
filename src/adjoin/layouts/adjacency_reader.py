"""Items of an adjacency list back to nodes and edges: which class explains an item, and the instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from adjoin.errors import InvalidItem
from adjoin.layouts.adjacency_keys import AdjacencyKeys, EdgeKeys, NodeKeys
from adjoin.layouts.counted import believed
from adjoin.layouts.keys import Template, key_text, value_of
from adjoin.layouts.wire import given
from adjoin.model import AS_READ, WHOSE, Node, identity_of
from adjoin.rules import Rules
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, NodeType, plain_type
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
                model: _remembering(self._short_node_reader(node), node.kind, rules)
                for model, node in keys.nodes.items()
            },
            **{
                model: _remembering(self._short_edge_reader(edge), edge.kind, rules)
                for model, edge in keys.edges.items()
            },
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

    def read_as_far(self, kind: EntityType, item: Item) -> Entity | None:
        """An instance whose fields have what is stored where that does not fit them."""
        if isinstance(kind, EdgeType):
            edge = self._keys.edges[kind.model]
            known = self._told_of_edge(edge, item)
            return None if known is None else edge.record.decode_as_far(item, known)
        node = self._keys.nodes[kind.model]
        known = self._told_of_node(node, item)
        return None if known is None else node.record.decode_as_far(item, known)

    def _node(self, keys: NodeKeys, item: Item) -> Node | None:
        known = self._told_of_node(keys, item)
        if known is None:
            return None
        id = known["id"]
        node: Node = keys.record.decode(item, known)
        # A class may make another id of what the key says; the key is then that of no node.
        return node if is_same(node.__dict__["id"], id) else None

    def _edge(self, keys: EdgeKeys, item: Item) -> AnyEdge | None:
        known = self._told_of_edge(keys, item)
        if known is None:
            return None
        source, target = known["source"], known.get("target")
        edge: AnyEdge = keys.record.decode(item, known)
        return edge if is_same(edge.source, source) and is_same(edge.target, target) else None

    def _told_of_node(self, keys: NodeKeys, item: Item) -> dict[str, Any] | None:
        """What the keys of a node tell; None if the item is of another class."""
        told = keys.partition.match(item[self._pk]["S"])
        if told is None or not self._is_labelled(item, keys.kind):
            return None
        return {"id": value_of(keys.kind.id_type, told["id"])}

    def _told_of_edge(self, keys: EdgeKeys, item: Item) -> dict[str, Any] | None:
        """What the keys of an edge tell; None if the item is of another class."""
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
        return {
            name: value_of(ends[name].id_type if name in ends else plain_type(kind.fields[name]), text)
            for name, text in told.items()
            if text is not None
        }

    def target_of(self, kind: EdgeType, item: Item) -> Any:
        """The id of the node that the edge of this item leads to."""
        keys = self._keys.edges[kind.model]
        told: dict[str, Any] = keys.sort.match(item[self._sk]["S"]) or {}
        text = told["target.id"] if "target.id" in told else self._target_elsewhere(keys, item, told)
        if text is None:
            raise InvalidItem(f"the item {item[self._pk]['S']!r} {item[self._sk]['S']!r} does not tell its target")
        return kind.target.id(value_of(kind.target.id_type, text))

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
        lead, special = keys.partition.lead, keys.partition.quoting.special
        length, is_bare = len(lead), keys.kind.has_bare_text_id

        def read(item: Item) -> Node | None:
            text = item[pk]["S"]
            if text.startswith(lead) and len(text) > length and not special(text, length):
                try:
                    node: Node = wire({**item, _ID: text[length:]})
                    if is_bare or key_text(node.__dict__["id"]) == text[length:]:
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
        special = keys.partition.quoting.special
        length, sort_length = len(lead), len(sort_lead)
        is_bare = keys.kind.source.has_bare_text_id and keys.kind.target.has_bare_text_id

        def read(item: Item) -> AnyEdge | None:
            text, sort = item[pk]["S"], item[sk]["S"]
            if (
                sort.startswith(sort_lead)
                and text.startswith(lead)
                and len(text) > length
                and len(sort) > sort_length
                and not special(text, length)
                and not special(sort, sort_length)
            ):
                try:
                    edge: AnyEdge = wire({**item, _SOURCE: text[length:], _TARGET: sort[sort_length:]})
                    if is_bare or (
                        key_text(edge.source) == text[length:] and key_text(edge.target) == sort[sort_length:]
                    ):
                        return edge
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._edge(keys, item)

        return read


def _remembering(read: Reader, kind: EntityType, rules: Rules) -> Reader:
    """A reader whose instances know what they had in fields that are maintained, and that they were read."""
    names, is_guarded = rules.told_apart(kind), kind.is_guarded and not kind.takes_any
    if isinstance(kind, NodeType) and kind.takes_any and any(rule.node is kind for rule in rules.declared):
        return lambda item: read(believed(rules, kind, item))
    if not names and not is_guarded:
        return read

    is_counted = any(rule.node is kind for rule in rules.declared)

    def remember(item: Item) -> Entity | None:
        entity = read(believed(rules, kind, item) if is_counted else item)
        if entity is not None:
            values = entity.__dict__
            values[AS_READ] = {name: values[name] for name in names}
            if is_guarded:
                values[AS_READ][WHOSE] = identity_of(entity)
        return entity

    return remember


def _are_plain(*templates: Template) -> bool:
    return all(template.is_tail and not template.parts[0].transform.name for template in templates)


def is_same(id: Any, told: Any) -> bool:
    """Whether an id that a class has is the one that a key says."""
    return id is told or told is None or key_text(id) == key_text(told)
