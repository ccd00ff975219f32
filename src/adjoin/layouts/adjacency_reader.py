"""Reading an adjacency list: the class of an item, the instance that it is, and where to find edges.

An access is a way to query edges: a table or an index, its partition key, and the part of a partition that holds the
edges of a class that leave a node, or that arrive at it. The templates show whether other items can be in that part; if
not, a query needs no filter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from adjoin.entity_types import AnyEdge, CountedType, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidItem
from adjoin.expressions import Condition
from adjoin.field_types import plain_type
from adjoin.layouts.entity_keys import EdgeKeys, Membership, NodeKeys, telling
from adjoin.layouts.key_values import key_text, value_of
from adjoin.layouts.keys import Template
from adjoin.layouts.own_items import believed
from adjoin.layouts.placeholders import id_of
from adjoin.layouts.records import Validate, given
from adjoin.layouts.shard_numbers import ShardedTemplate
from adjoin.layouts.table_keys import text_of
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.model import AS_READ, SHARDS_READ, UNEXPLAINED, WHOSE, Edge, Node, Ref, identity_of, node_id
from adjoin.reserved import ATTRIBUTE
from adjoin.rules import Rules
from adjoin.values import Item

ItemReader: TypeAlias = Callable[[Item], Entity | None]

_SOURCE, _TARGET = given("source"), given("target")


class AdjacencyReader:
    """Reads items by their keys; returns None for an item of another class."""

    def __init__(self, keys: AdjacencyKeys, type_attribute: str | None, rules: Rules) -> None:
        self._keys = keys
        self._are_text = keys.table.are_text
        self._sparse: Mapping[type[Any], Membership] = {}
        self._pk, self._sk, self._type = keys.layout.partition_key, keys.layout.sort_key or "", type_attribute
        self._leaving = [
            (node, [edge for edge in keys.edges.values() if edge.kind.source.covers(node.kind) and not edge.is_apart])
            for node in keys.nodes.values()
            if node.kind.head is None
        ]
        """The classes of nodes, each with the classes of edges in their partitions."""
        self._apart = [edge for edge in keys.edges.values() if edge.is_apart]
        everything: list[NodeKeys | EdgeKeys] = [*keys.nodes.values(), *keys.edges.values()]
        self._tellings = {kept.kind.model: telling(kept.kind, keys.texts) for kept in everything}
        own: dict[type[Any], ItemReader] = {
            model: self._noting_shards(node, _remembering(self._short_node_reader(node), node.kind, rules))
            for model, node in keys.nodes.items()
        }
        self.readers: dict[type[Any], ItemReader] = {
            **{model: self._reader_of_family(node.kind, own) for model, node in keys.nodes.items()},
            **{
                model: self._noting_shards(edge, _remembering(self._short_edge_reader(edge), edge.kind, rules))
                for model, edge in keys.edges.items()
            },
            Node: self.read,
        }
        """The readers of all classes; that of an end of several classes reads whatever an item is."""

    def _texts(self, item: Item) -> tuple[str, str]:
        """The partition key and the sort key of an item, as text."""
        if self._are_text:
            return item[self._pk]["S"], item[self._sk]["S"]
        return self._keys.table.texts(item)

    def kind_of(self, item: Item) -> EntityType | None:
        partition, sort = self._texts(item)
        leaving = None
        for node, edges in self._leaving:
            told = node.partition.match(partition)
            if told is None:
                continue
            own = node.sort.match(sort) if not node.is_echoed or node.told(partition, sort) else None
            if own is not None and (not own or all(told.get(name, text) == text for name, text in own.items())):
                if self._is_labelled(item, node.kind):
                    return node.kind
                continue
            found = next((edge for edge in edges if edge.sort.match(sort) is not None), None)
            if found is not None and found.is_echoed and found.told(partition, sort) is None:
                continue
            if found is not None and leaving is None and self._is_labelled(item, found.kind):
                if not found.meets:
                    return found.kind
                # A node of another class may have this key, and then the item is the node.
                leaving = found.kind
        for edge in self._apart if leaving is None else ():
            if edge.told(partition, sort) is not None and self._is_labelled(item, edge.kind):
                return edge.kind
        return leaving

    def read(self, item: Item) -> Entity | None:
        kind = self.kind_of(item)
        return None if kind is None else self.readers[kind.model](item)

    def _is_labelled(self, item: Item, kind: EntityType) -> bool:
        told = self._tellings[kind.model]
        return told is None or told.holds(item)

    def is_one(self, kind: EntityType, item: Item) -> bool:
        """Whether an item with the keys of a class has what tells the class."""
        return self._is_labelled(item, kind)

    def condition(self, kind: EntityType) -> Condition | None:
        """What items of a class have besides their keys, as a condition."""
        told = self._tellings[kind.model]
        return None if told is None else told.condition()

    def member(self, kind: EntityType, item: Item) -> EntityType:
        """The class of the family of which an item with the keys of its head is; the head if it is of no other."""
        family = kind.family if isinstance(kind, NodeType) else ()
        return next((each for each in family if self._is_labelled(item, each)), kind)

    def _reader_of_family(self, kind: NodeType, own: Mapping[type[Any], ItemReader]) -> ItemReader:
        """The reader of a class: that of a head reads each item as the class of its family that it is."""
        read = own[kind.model]
        if kind.head is not None:
            return lambda item: read(item) if self._is_labelled(item, kind) else None
        if not kind.family:
            return read
        return lambda item: own[self.member(kind, item).model](item)

    def _noting_shards(self, keys: NodeKeys | EdgeKeys, read: ItemReader) -> ItemReader:
        """A reader that notes on each instance the shards which another program chose.

        Not if fields choose the shard: then all that has the same values is to be in one shard.
        """
        templates = keys.index_keys.items()
        sharded = [(name, each) for name, each in templates if isinstance(each, ShardedTemplate) and each.is_by_key]
        if not sharded:
            return read

        def note(item: Item) -> Entity | None:
            entity = read(item)
            if entity is None:
                return None
            values = {**entity.__dict__, **_part_values(keys, entity)}
            found = {name: (template, template.choice(values)) for name, template in sharded if name in item}
            shards = {
                name: (choice, shard)
                for name, (template, choice) in found.items()
                if (shard := template.foreign(text_of(item[name]), choice)) is not None
            }
            if shards:
                entity.__dict__[SHARDS_READ] = shards
            return entity

        return note

    def note_lone_keys(self, sparse: Mapping[type[Any], Membership]) -> None:
        """From now on, readers note on each instance the keys of sparse indexes in which its item is not.

        Another program writes them, and a put of the instance keeps them.
        """
        self._sparse = sparse
        kinds = [kind for kind in self._keys.schema.types if kind.model in sparse]
        # The reader of a head returns instances of its whole family.
        for model in {each.model for kind in kinds for each in (kind, kind.whole)}:
            self.readers[model] = self._noting_lone(self.readers[model])

    def _noting_lone(self, read: ItemReader) -> ItemReader:
        def note(item: Item) -> Entity | None:
            entity = read(item)
            if entity is not None:
                self.note_lone(entity, item)
            return entity

        return note

    def note_lone(self, entity: Entity, item: Item) -> None:
        sparse = self._sparse.get(type(entity))
        lone = sparse.lone(item) if sparse is not None else []
        if lone and entity.model_config.get("extra") != "allow":
            _, others = entity.__dict__.get(UNEXPLAINED, (None, {}))
            entity.__dict__[UNEXPLAINED] = identity_of(entity), {**others, **{name: item[name] for name in lone}}

    # --- the general code ----------------------------------------------------------------------

    def read_as_far(self, kind: EntityType, item: Item) -> Entity | None:
        """An instance in which fields whose stored value does not fit have that value as it is stored."""
        kind = self.member(kind, item)
        if isinstance(kind, EdgeType):
            edge = self._keys.edges[kind.model]
            known = self._told_of_edge(edge, item)
            return None if known is None else edge.record.decode_as_far(item, known)
        node = self._keys.nodes[kind.model]
        known = self._told_of_node(node, item)
        return None if known is None else node.record.decode_as_far(item, known)

    def read_some(self, kind: EntityType, item: Item, names: tuple[str, ...]) -> Entity | None:
        """An instance that has only some fields; None if the item is of another class."""
        if kind.whole is not kind and not self._is_labelled(item, kind):
            return None
        member = self.member(kind, item)
        keys: NodeKeys | EdgeKeys
        if isinstance(member, EdgeType):
            keys = self._keys.edges[member.model]
            known = self._told_of_edge(keys, item)
            ends: tuple[str, ...] = ("source", "target")
        else:
            assert isinstance(member, NodeType)
            keys = self._keys.nodes[member.model]
            known = self._told_of_node(keys, item)
            ends = member.id_names
        if known is None:
            return None
        found: Entity = keys.record.decode_some(item, known, tuple(dict.fromkeys((*ends, *names))))
        return found

    def _node(self, keys: NodeKeys, item: Item) -> Node | None:
        known = self._told_of_node(keys, item)
        if known is None:
            return None
        id_fields = keys.kind.key if keys.kind.parent is None else ("parent", *keys.kind.key)
        told = {name: known[name] for name in id_fields}
        node: Node = keys.record.decode(item, known)
        # A validator may change the id. Then no node of the class has this key.
        if not all(is_same(node.__dict__[name], value) for name, value in told.items()):
            return None
        keep_unexplained(node, item, keys.explained)
        return node

    def _edge(self, keys: EdgeKeys, item: Item) -> AnyEdge | None:
        known = self._told_of_edge(keys, item)
        if known is None:
            return None
        source, target = known.get("source"), known.get("target")
        edge: AnyEdge = keys.record.decode(item, known)
        if not is_same(edge.source, source) or not is_same(edge.target, target):
            return None
        keep_unexplained(edge, item, keys.explained)
        return edge

    def _told_of_node(self, keys: NodeKeys, item: Item) -> dict[str, Any] | None:
        """The values in the keys of a node; None if the item is of another class."""
        told = keys.told(*self._texts(item))
        if told is None or not self._is_labelled(item, keys.kind):
            return None
        kind = keys.kind
        own = kind.id_fields({name: value_of(plain, told[name]) for name, plain in kind.part_types.items()})
        further = self._told_by_indexes(keys, item)
        return None if further is None else further | own

    def _told_by_indexes(self, keys: NodeKeys | EdgeKeys, item: Item) -> dict[str, Any] | None:
        """The fields that only the index keys of an item hold; None if such a key does not fit its template."""
        kind = keys.kind
        told: dict[str, Any] = {}
        for name, template in keys.index_keys.items():
            wanted = template.told & kind.attributes.keys()
            if name not in item or all(kind.attributes[field] in item for field in wanted):
                continue
            found = template.match(text_of(item[name]))
            if found is None and keys.sole_fields[name]:
                return None
            found = found or {}
            told |= {field: value_of(plain_type(kind.fields[field]), found[field]) for field in wanted & found.keys()}
        return told

    def _told_of_edge(self, keys: EdgeKeys, item: Item) -> dict[str, Any] | None:
        """The values in the keys of an edge; None if the item is of another class."""
        told = keys.told(*self._texts(item))
        if told is None or not self._is_labelled(item, keys.kind) or self._is_node(keys, item):
            return None
        kind = keys.kind
        target = self._target_in(keys, item, told)
        source = self._source_in(keys, item, told)
        further = self._told_by_indexes(keys, item)
        if further is None:
            return None
        known = further | {
            name: value_of(plain_type(kind.fields[name]), text)
            for name, text in told.items()
            if name in kind.attributes
        }
        if source is not None:
            known["source"] = source
        if target is not None:
            known["target"] = target
        return known

    def source_text(self, kind: CountedType, key: Item) -> str:
        """The node key of the node that the edge with this key leaves, or of the parent of the child with this key."""
        if isinstance(kind, NodeType):
            return self._parent_text(kind, key)
        keys = self._keys.edges[kind.model]
        partition, sort = self._texts(key)
        if not keys.rest and not keys.is_apart:
            return partition
        id = self._source_in(keys, key, keys.told(partition, sort) or {})
        if id is None:
            raise InvalidItem(f"the item {partition!r} {sort!r} does not name its source")
        node, id = kind.source.of(id)
        return self._keys.nodes[node.model].text.render(node.part_values(id))

    def _parent_text(self, kind: NodeType, key: Item) -> str:
        partition, sort = self._texts(key)
        id = id_of(kind, self._keys.nodes[kind.model].told(partition, sort) or {})
        if id is None:
            raise InvalidItem(f"the item {partition!r} {sort!r} does not name its parent")
        return self._keys.nodes[kind.source.model].text.render(kind.source.part_values(kind.parent_id(id)))

    def belongs_to(self, node: NodeType, text: str, item: Item, kind: EntityType | None) -> bool:
        """Whether an item is the node with this node key, an edge that leaves it, or a child of it or of a child.

        `kind` is the class of the item.
        """
        if isinstance(kind, EdgeType):
            return kind.source.covers(node) and self.source_text(kind, item) == text
        if kind is node and self._are_text and not self._keys.nodes[node.model].rest:
            return bool(item[self._pk]["S"] == text)
        partition, sort = self._texts(item)
        if kind is node:
            return self._keys.nodes[node.model].text_in(partition, sort) == text
        if not isinstance(kind, NodeType) or kind.parent is None:
            return False
        id = id_of(kind, self._keys.nodes[kind.model].told(partition, sort) or {})
        while id is not None and kind.parent is not None:
            id, kind = kind.parent_id(id), kind.parent
            if kind is node:
                return self._keys.nodes[node.model].text.render(node.part_values(id)) == text
        return False

    def at(self, node: NodeType, text: str, item: Item) -> Entity | None:
        """What belongs to the node with this node key; None for an item of another node."""
        return self.read(item) if self.belongs_to(node, text, item, self.kind_of(item)) else None

    def target_of(self, kind: EdgeType, item: Item) -> Any:
        """The id of the node that the edge of this item leads to."""
        keys = self._keys.edges[kind.model]
        partition, sort = self._texts(item)
        told = (keys.told(partition, sort) if keys.is_apart else keys.sort.match(sort)) or {}
        id = self._target_in(keys, item, told)
        if id is None:
            raise InvalidItem(f"the item {partition!r} {sort!r} does not name its target")
        return id if type(id) is kind.target.bare_id_type else kind.target.id(id)

    def _source_in(self, keys: EdgeKeys, item: Item, told: dict[str, str]) -> Any:
        """The id of the source, from the table's keys or, with `told` completed, from other attributes."""
        if "source" in keys.loose:
            self._complete(keys, item, told, "source")
        return id_of(keys.kind.source, told, "source.")

    def _complete(self, keys: EdgeKeys, item: Item, told: dict[str, str], side: str) -> None:
        """Adds to `told` what attributes tell of an end that is not part of the table's keys."""
        for name in keys.loose[side]:
            if name in item:
                told |= keys.index_keys[name].match(text_of(item[name])) or {}

    def _target_in(self, keys: EdgeKeys, item: Item, told: dict[str, str]) -> Any:
        """The id of the target, from the sort key or, with `told` completed, from the keys of indexes."""
        target, only = keys.kind.target, keys.only_target
        if only is not None and only in told:
            return told[only] if target.has_bare_text_id else id_of(target, told, "target.")
        if any(name not in told for name in keys.target_parts):
            for name, template in keys.index_keys.items():
                if name in item:
                    told |= template.match(text_of(item[name])) or {}
            if keys.target_field is not None:
                text = told.get(keys.target_field)
                return None if text is None else value_of(target.id_type, text)
        return id_of(target, told, "target.")

    # --- the fast path -------------------------------------------------------------------------
    # Most keys are a literal and an id, and most ids need no escape. Such an item is validated directly, without a
    # regular expression, a copy of its parts or decoded attributes. Any other item, and any item that does not pass,
    # is read by the general code.

    def _short_node_reader(self, keys: NodeKeys) -> ItemReader:
        wire, pk, sk = keys.record.wire, self._pk, self._sk
        has_id = bool(keys.sort.parts)
        short = keys.kind.is_single and not keys.rest and _are_plain(keys.partition)
        short = short and (not has_id or _are_plain(keys.sort))
        if wire is not None and self._type is None and self._is_number(keys):
            return self._short_number_reader(keys, wire)
        if wire is None or self._type is not None or not short or not self._are_text:
            return lambda item: self._node(keys, item)
        lead, special, sort_lead = keys.partition.lead, keys.partition.quoting.special, keys.sort.lead
        length, is_bare = len(lead), keys.kind.has_bare_text_id
        id = keys.kind.key[0]
        given_id = given(id)
        least, explains = _least(keys), keys.explained.issuperset

        def read(item: Item) -> Node | None:
            text = item[pk]["S"]
            told = text[length:]
            if (
                told
                and text[:length] == lead
                and item[sk]["S"] == (sort_lead + told if has_id else sort_lead)
                and not special(told)
            ):
                try:
                    node: Node = wire({**item, given_id: told})
                    if is_bare or key_text(node.__dict__[id]) == told:
                        if len(item) != least and not explains(item):
                            keep_unexplained(node, item, keys.explained)
                        return node
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._node(keys, item)

        return read

    def _is_number(self, keys: NodeKeys) -> bool:
        """Whether the keys of a class are its id, a number, in each key that the table has."""
        is_one = keys.kind.is_single and keys.kind.id_type in (int, Decimal) and _is_number(keys.partition)
        return is_one and (self._keys.table.sort is None or _is_number(keys.sort))

    def _short_number_reader(self, keys: NodeKeys, wire: Validate) -> ItemReader:
        pk, sk, id, given_id = self._pk, self._sk, keys.kind.key[0], given(keys.kind.key[0])

        def read(item: Item) -> Node | None:
            text = item[pk]["N"]
            if not sk or item[sk]["N"] == text:
                try:
                    node: Node = wire({**item, given_id: text})
                    if key_text(node.__dict__[id]) == text:
                        return node
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._node(keys, item)

        return read

    def _is_node(self, keys: EdgeKeys, item: Item) -> bool:
        """Whether an item is a node, and not the edge that could have its key."""
        nodes = (self._keys.nodes[kind.model] for kind in keys.meets)
        return any(node.told(*self._texts(item)) is not None and self._is_labelled(item, node.kind) for node in nodes)

    def is_short(self, keys: EdgeKeys) -> bool:
        """Whether most items of a class of edges can be read directly: each key is a literal and the id of an end."""
        parts = [part.name for part in (*keys.partition.parts, *keys.sort.parts)]
        is_single = keys.kind.source.is_single and keys.kind.target.is_single
        ends = [f"source.{keys.kind.source.parts[0]}", *keys.target_parts] if is_single else None
        return self._type is None and parts == ends and _are_plain(keys.partition, keys.sort) and self._are_text

    def _short_edge_reader(self, keys: EdgeKeys) -> ItemReader:
        wire, pk, sk = keys.record.wire, self._pk, self._sk
        if wire is None or not self.is_short(keys):
            return lambda item: self._edge(keys, item)
        lead, sort_lead = keys.partition.lead, keys.sort.lead
        special = keys.partition.quoting.special
        length, sort_length = len(lead), len(sort_lead)
        is_bare = keys.kind.source.has_bare_text_id and keys.kind.target.has_bare_text_id
        explains = keys.explained.issuperset
        # Most edges have two index keys, and no optional fields.
        one, other, *more = keys.index_keys if len(keys.index_keys) > 1 else (pk, sk)
        usual = -1 if more else _least(keys) + len({one, other} - {pk, sk})

        def read(item: Item) -> AnyEdge | None:
            text, sort = item[pk]["S"], item[sk]["S"]
            source, target = text[length:], sort[sort_length:]
            if (
                sort[:sort_length] == sort_lead
                and text[:length] == lead
                and source
                and target
                and not special(source)
                and not special(target)
            ):
                try:
                    edge: AnyEdge = wire({**item, _SOURCE: source, _TARGET: target})
                    if is_bare or (key_text(edge.source) == source and key_text(edge.target) == target):
                        if not (len(item) == usual and one in item and other in item) and not explains(item):
                            keep_unexplained(edge, item, keys.explained)
                        return edge
                except Exception:
                    # Whatever a validator raised, the general way says what is wrong.
                    pass
            return self._edge(keys, item)

        return (lambda item: None if self._is_node(keys, item) else read(item)) if keys.meets else read


def _remembering(read: ItemReader, kind: EntityType, rules: Rules) -> ItemReader:
    """A reader that notes on each instance the managed fields as they were read, and that it was read."""
    names, is_guarded = rules.told_apart(kind), kind.is_guarded and not kind.takes_any
    read = _telling(read, kind, rules)
    if isinstance(kind, NodeType) and kind.takes_any and any(rule.node is kind.whole for rule in rules.declared):
        return lambda item: read(believed(rules, kind, item))
    if not names and not is_guarded:
        return read

    is_counted = any(rule.node is kind.whole for rule in rules.declared)

    def remember(item: Item) -> Entity | None:
        entity = read(believed(rules, kind, item) if is_counted else item)
        if entity is not None:
            values = entity.__dict__
            values[AS_READ] = {name: values[name] for name in names}
            if is_guarded:
                values[AS_READ][WHOSE] = identity_of(entity)
        return entity

    return remember


def _telling(read: ItemReader, kind: EntityType, rules: Rules) -> ItemReader:
    """A reader that says of which class the nodes are whose values a `Top` shows."""
    whose = {rule.field: rule.who for rule in rules.declared if rule.node is kind.whole and rule.field and rule.who}
    if not whose:
        return read

    def tell(item: Item) -> Entity | None:
        entity = read(item)
        for name, node in whose.items() if entity is not None else ():
            for each in entity.__dict__[name] or ():
                each._bind(node.model, node.id(each.id))
        return entity

    return tell


def _part_values(keys: NodeKeys | EdgeKeys, entity: Entity) -> Mapping[str, Any]:
    """The values of the parts of an entity's id, or of the ids at its ends."""
    if isinstance(keys, EdgeKeys):
        assert isinstance(entity, Edge)
        return keys.kind.end_values(entity.source, entity.target)
    assert isinstance(entity, Node)
    return keys.kind.part_values(node_id(entity))


def keep_unexplained(entity: Entity, item: Item, explained: frozenset[str]) -> None:
    """Notes on an instance the attributes of its item that no field explains."""
    others = {name: value for name, value in item.items() if name not in explained and not name.startswith(ATTRIBUTE)}
    if others and entity.model_config.get("extra") != "allow":
        entity.__dict__[UNEXPLAINED] = identity_of(entity), others


def _least(keys: NodeKeys | EdgeKeys) -> int:
    """The number of attributes that every item of a class has. One that has no more has none that is unexplained."""
    kind = keys.kind
    return 2 + sum(kind.fields[name].is_required() for name in kind.attributes)


def _is_number(template: Template) -> bool:
    return template.type == "N" and bool(template.parts)


def _are_plain(*templates: Template) -> bool:
    return all(template.is_tail and not template.parts[0].transform.name for template in templates)


def is_same(id: Any, told: Any) -> bool:
    """Whether the id of an instance is the one in its key."""
    if isinstance(id, Ref):
        return told is None or (isinstance(told, Ref) and id.model is told.model and is_same(id.id, told.id))
    if isinstance(id, tuple):
        return told is None or (len(id) == len(told) and all(map(is_same, id, told)))
    if id is told or told is None:
        return True
    return bool(id == told) if isinstance(id, bytes) else key_text(id) == key_text(told)
