"""The items of nodes and edges: their keys, their attributes and their index keys, and instances from items.

A symmetric edge is two items, one in the partition of each end. If the order field of an ordered edge is not part of
its key, an index of its own keeps the order, so that the two ends alone still identify the edge. Everything that a put
needs of a layout stands here. `bound` has the whole layout.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from adjoin.declarations import rules_of
from adjoin.entity_types import AnyEdge, CountedType, EdgeType, Entity, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidItem, InvalidKey, InvalidValue
from adjoin.expressions import Compare, Condition, Exists, Value, all_of, attribute
from adjoin.late import later
from adjoin.layouts.adjacency_reader import AdjacencyReader, keep_unexplained
from adjoin.layouts.conflicts import check, check_own_items
from adjoin.layouts.entity_keys import EdgeKeys, Membership, NodeKeys
from adjoin.layouts.fitting import Fit
from adjoin.layouts.forms import Due
from adjoin.layouts.indexed_fields import OverloadedIndex, ShardBook
from adjoin.layouts.key_values import check_key_length, key_text
from adjoin.layouts.keys import Template
from adjoin.layouts.managed_keys import ManagedKeys, without
from adjoin.layouts.own_items import Ledgers, Satellites
from adjoin.layouts.placeholders import id_of
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.layouts.table_keys import text_of
from adjoin.layouts.templates import DELETION_SORT_KEY, AdjacencyKeys
from adjoin.model import UNEXPLAINED, Edge, Node, Ref, identity_of, node_id
from adjoin.reserved import OWN
from adjoin.rules import Rules
from adjoin.schema import Schema
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, item_size

if TYPE_CHECKING:
    from adjoin import checking_rules
    from adjoin.layouts.adjacency_list import AdjacencyList
else:
    checking_rules = later("adjoin.checking_rules")

_SHORTER = "a shorter id"


class EntityItems:
    """The items of the classes of one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None = None,
        like: EntityItems | None = None,
        lead: str | None = None,
    ) -> None:
        """`like` is the same layout for another tenant; what depends on classes alone is shared with it.

        `lead` is the text before the tenant in keys, if templates name the tenant.
        """
        self.schema = schema
        self.table = layout.table
        self.tenant = tenant
        self._layout = layout
        self._lead = lead
        self.rules: Rules = rules_of(schema) if like is None else like.rules.of_a_tenant()
        if like is None and (self.rules or self.rules.summaries):
            checking_rules.check_declared(self.rules)
        keys = None if like is None else like._keys
        self._keys: AdjacencyKeys = AdjacencyKeys(layout, schema, tenant, self.rules.copies, keys, self.tenant_lead)
        if like is None:
            check(self._keys)
        # CPython 3.11 is slower with 30 attributes or more, so what else depends on the keys alone are properties.
        self._are_text = self._keys.table.are_text
        self._are_plain = self._are_text and not self._keys.guarded and (lead is None or tenant is not None)
        """Whether keys need no checks besides those of their lengths."""
        if self.why_no_own_items is not None:
            check_own_items(self._keys, self.rules, self.why_no_own_items)
        self.overloaded: OverloadedIndex | None = None
        if self._keys.overloaded is not None:
            book = ShardBook(self._keys.number_of_indexed(self._keys.overloaded))
            self.overloaded = OverloadedIndex(self._keys.overloaded, schema, self._keys.prefix, book)
        self._satellites = Satellites(self._keys, self.overloaded)
        self.managed = ManagedKeys(self._keys, self.rules, self.overloaded, self._satellites)
        """The index keys that hold managed fields."""
        self.ledgers = Ledgers(self._keys)
        self._deletion_sort = self._keys.tenant_part(layout.sort_key or "") + DELETION_SORT_KEY
        self._reader = AdjacencyReader(self._keys, layout.type_attribute, self.rules)
        self.definition = self._keys.definition
        self.present: Condition = Exists(attribute(layout.partition_key))
        self._pk, self._sk, self._type = layout.partition_key, layout.sort_key or "", layout.type_attribute
        self._start_keys: dict[str | None, tuple[str, ...]] = {None: self._keys.table.names}
        for index in self.definition.indexes:
            names = (*self._keys.table.names, *(key.name for key in index.keys))
            self._start_keys[index.name] = tuple(dict.fromkeys(names))
        everything: list[NodeKeys | EdgeKeys] = [*self._keys.nodes.values(), *self._keys.edges.values()]
        self._members = {kept.kind.model: Membership(self._keys, kept) for kept in everything}
        for kept in everything:
            if kept.kind.computed:
                ends = ("source", "target") if isinstance(kept.kind, EdgeType) and kept.kind.symmetric else ()
                kept.record.unsteady = frozenset((*self.rules.maintained(kept.kind), *ends))
        self._sparse = {model: members for model, members in self._members.items() if members.is_sparse}
        self._reader.note_lone_keys(self._sparse)
        self._fits: dict[type[Any], Fit] = {}
        self.due: Due = self._keys.due
        """What stored items lack of what the classes declare now."""
        self.shard_numbers: Mapping[str, ShardNumber] = {}
        """The number of shards of each sharded key attribute, if the table can hold a record of it."""
        if self.why_no_own_items is None:
            self.shard_numbers = self._keys.shard_numbers

    @property
    def tenant_lead(self) -> str:
        """The text before the tenant in the keys of tenants."""
        return self._lead or ""

    @property
    def why_no_own_items(self) -> str | None:
        """Why the table cannot hold items of adjoin's own, because of its keys; None if it can."""
        return self._keys.table.why_no_own_items

    def _keys_of(self, kind: EntityType) -> NodeKeys | EdgeKeys:
        if type(kind) is EdgeType:
            return self._keys.edges[kind.model]
        if type(kind) is NodeUnion:
            # What all its classes have in common is stored as the first stores it.
            kind = kind.classes[0]
        return self._keys.nodes[kind.model]

    # --- keys ----------------------------------------------------------------------------------

    def node_text(self, kind: NodeType, id: Any) -> str:
        """The node key: the node's partition key if that has the whole id, otherwise both its keys."""
        if type(kind) is NodeUnion:
            kind, id = kind.of(id)
        only = kind.only
        return self._keys.nodes[kind.model].text.render({only: id} if only is not None else kind.part_values(id))

    def node_key(self, kind: NodeType, id: Any) -> Item:
        if type(kind) is NodeUnion:
            kind, id = kind.of(id)
        keys, only = self._keys.nodes[kind.model], kind.only
        values = {only: id} if only is not None else kind.part_values(id)
        return self._key(kind, keys.partition.render(values), keys.sort.render(values))

    def text_of(self, kind: NodeType, key: Item) -> str:
        """The node key of the node whose item has this key."""
        if type(kind) is NodeUnion:
            found = self.kind_of(key)
            assert isinstance(found, NodeType)
            kind = found
        keys = self._keys.nodes[kind.model]
        if keys.rest:
            return keys.text_in(*self._keys.table.texts(key))
        text: str = key[self._pk]["S"] if self._are_text else text_of(key[self._pk])
        return text

    def source_text(self, kind: CountedType, key: Item) -> str:
        """The node key of the source of the edge whose item has this key, or of the parent of the child."""
        return self._reader.source_text(kind, key)

    def id_in(self, kind: NodeType, text: str) -> Any:
        """The id of the node with that node key."""
        for each in kind.classes:
            parts = self._keys.nodes[each.model].text.match(text)
            if parts is not None:
                id = parts[each.parts[0]] if each.has_bare_text_id else each.id(id_of(each, parts))
                return id if each is kind else Ref(each.model, id)
        raise InvalidKey(f"{text!r} is not the key of a {kind.name}; correct the item that names it")

    def is_of(self, kind: NodeType, text: str) -> bool:
        """Whether a node key is that of a node of a class."""
        return any(self._keys.nodes[each.model].text.match(text) is not None for each in kind.classes)

    def key_fields(self, kind: EdgeType) -> tuple[str, ...]:
        """The fields that are part of an edge's identity in this layout."""
        return self._keys.edges[kind.model].own_fields

    def edge_key(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> Item:
        """The key of the edge between two ids; `fields` holds at least its key fields."""
        keys = self._keys.edges[kind.model]
        values = _with_ends(kind, fields, source, target)
        if keys.target_field is None and not keys.meets:
            return self._key(kind, keys.partition.render(values), keys.sort.render(values))
        return self._edge_key(keys, source, target, values)

    def _edge_key(self, keys: EdgeKeys, source: Any, target: Any, values: dict[str, Any]) -> Item:
        """The key of an edge whose values include those of both ids."""
        kind = keys.kind
        if keys.target_field is not None:
            values.setdefault(keys.target_field, target)
            self.node_text(kind.target, target)
        partition, sort = keys.partition.render(values), keys.sort.render(values)
        for node in keys.meets:
            if self._keys.nodes[node.model].told(partition, sort) is not None:
                remedy = "use a layout whose edge template contains {label}"
                if not self._are_text:
                    remedy = "a key that is not text has no room for a label, so such an edge cannot be stored"
                raise InvalidKey(
                    f"{kind.name} from {source!r} to {'itself' if node is kind.source else repr(target)} would have "
                    f"the key of the {node.name} itself; {remedy}"
                )
        return self._key(kind, partition, sort)

    def loose(self, kind: EdgeType) -> list[str]:
        """The attributes that tell ends of an edge which are not part of its key."""
        loose = self._keys.edges[kind.model].loose
        return [name for names in loose.values() for name in names] if loose else []

    def has_ends(self, kind: EdgeType, source: Any, target: Any) -> Condition | None:
        """Holds for an item whose ends are these; None if the key alone tells them."""
        keys = self._keys.edges[kind.model]
        if not keys.loose:
            return None
        values = kind.end_values(source, target)
        names = [name for side in keys.loose.values() for name in side]
        return all_of(*(Compare("=", attribute(name), Value(keys.index_keys[name].value(values))) for name in names))

    def ends(self, kind: CountedType, item: Item) -> tuple[str, str]:
        """The node keys of the nodes that the edge of this item joins, its source first; of a parent and its child."""
        if isinstance(kind, NodeType):
            return self.source_text(kind, item), self.text_of(kind, item)
        return self.source_text(kind, item), self.node_text(kind.target, self._reader.target_of(kind, item))

    def tells_target(self, kind: CountedType) -> bool:
        """Whether the sort key of an edge alone shows its target; that of a child shows the child."""
        if isinstance(kind, NodeType):
            return True
        return self._keys.edges[kind.model].sorts_by_target

    def _key(self, kind: EntityType, partition: str, sort: str) -> Item:
        is_short = len(partition) <= 512 and len(sort) <= 256 and partition.isascii() and sort.isascii()
        if is_short and self._are_plain:
            return {self._pk: {"S": partition}, self._sk: {"S": sort}}
        return self._checked_key(kind, partition, sort)

    def _checked_key(self, kind: EntityType, partition: str, sort: str) -> Item:
        if self._lead is not None and self.tenant is None:
            raise InvalidKey(
                f"the keys of a {kind.name} name a tenant, and this graph has none; use for_tenant(…), or open it with "
                f"tenant="
            )
        if self._keys.guarded and partition.endswith(OWN) and self._is_guarded(kind):
            raise InvalidKey(
                f"the key {self._pk!r} of a {kind.name} would be {partition!r}, and adjoin's own items have keys that "
                f"end so; choose another id"
            )
        keys, limits = (self._keys.table.partition, self._keys.table.sort), (MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE)
        for key, text, limit in zip(keys, (partition, sort), limits, strict=True):
            if key is not None:
                check_key_length(text, key.type, limit, f"the key {key.name!r} of a {kind.name}", _SHORTER)
        return self._keys.table.key(partition, sort)

    def _is_guarded(self, kind: EntityType) -> bool:
        owner = self._owner_of(kind)
        owners = owner.classes if isinstance(owner, NodeType) else (owner,)
        return any(each.model in self._keys.guarded for each in owners)

    def _owner_of(self, kind: EntityType) -> EntityType:
        """The class of the nodes in whose partitions the items of a class are; the class itself if it has its own."""
        return kind.source if isinstance(kind, EdgeType) and not self._keys.edges[kind.model].is_apart else kind

    # --- items ---------------------------------------------------------------------------------

    def items(self, entity: Entity) -> tuple[Item, ...]:
        """The items an instance is stored as: one, or two for a symmetric edge."""
        if isinstance(entity, Node):
            kind = self.schema.nodes.get(type(entity)) or self.schema.node(type(entity))
            keys = self._keys.nodes[kind.model]
            if kind.computed:
                keys.record.compute(entity)
            only = kind.only
            id = entity.__dict__[only] if only in entity.__dict__ else node_id(entity)
            if kind.family:
                self._refuse_member(kind, entity)
            own = {only: id} if only is not None else kind.part_values(id)
            if keys.bounded:
                keys.check_bounds(own)
            item = self._key(kind, keys.partition.render(own), keys.sort.render(own))
            values = entity.__dict__ if kind.parent is None else {**entity.__dict__, **kind.part_values(id)}
            others = _noted(entity, keys) if UNEXPLAINED in values else None
            self._completed(item, keys, values, keys.record.encode(entity), others)
            if others is not None:
                item.update((name, value) for name, value in others.items() if name not in keys.explained)
            return (self._indexed(kind, item, entity.__dict__),)
        edge_kind = self.schema.edges.get(type(entity)) or self.schema.edge(type(entity))
        edge_keys = self._keys.edges[edge_kind.model]
        if edge_kind.computed:
            edge_keys.record.compute(entity)
        try:
            source, target = entity.source, entity.target
        except AttributeError:
            # `model_construct` makes such an edge.
            raise InvalidKey(f"this {edge_kind.name} has no source or no target; give it both") from None
        body = edge_keys.record.encode(entity)
        others = _noted(entity, edge_keys) if UNEXPLAINED in entity.__dict__ else None
        if others is not None:
            body.update((name, value) for name, value in others.items() if name not in edge_keys.explained)
        item = self._edge_item(edge_keys, entity, source, target, body, others)
        if not edge_kind.symmetric or source == target:
            return (self._indexed(edge_kind, item, entity.__dict__),)
        twin = self._edge_item(edge_keys, entity, target, source, body, others)
        self._indexed(edge_kind, self._first_of(item, twin), entity.__dict__)
        return item, twin

    def _refuse_member(self, head: NodeType, entity: Node) -> None:
        """Refuses an instance of a head that would be read as another class of its family."""
        name = head.discriminator or ""
        if not head.is_told_by_field:
            return
        value = self.encode_field(head, name, entity.__dict__[name])
        for kind in head.family:
            if value in kind.told_by:
                raise InvalidValue(
                    f"a {head.name} with {name}={entity.__dict__[name]!r} is a {kind.name}; make it a {kind.name}"
                )

    def lacks_unexplained(self, entity: Entity) -> bool:
        """Whether an instance was read from an index that does not hold the attributes which no field explains."""
        whose, others = entity.__dict__.get(UNEXPLAINED, (None, {}))
        return others is None and whose == identity_of(entity)

    def keep_unexplained(self, entity: Entity, item: Item) -> None:
        """Notes on an instance the attributes of its stored item that no field explains."""
        of = self.schema.edge if isinstance(entity, Edge) else self.schema.node
        keep_unexplained(entity, item, self.explained(of(type(entity))))
        self._reader.note_lone(entity, item)

    def explained(self, kind: EntityType) -> frozenset[str]:
        """The attributes that adjoin writes or reads on items of a class."""
        return self._keys_of(kind).explained

    def _first_of(self, *twins: Item) -> Item:
        """The one of the two items of a symmetric edge that is in the index of indexed fields."""
        return min(twins, key=self._keys.table.texts)

    def _indexed(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> Item:
        """The item with the index key attributes of its first indexed field."""
        if self.overloaded is not None and kind.indexed and not self.managed.is_first(kind):
            own, tail = self.overloaded.fields(kind)[0], self._satellites.tail(kind, item)
            item.update(self.overloaded.entry(own, values[own.name], tail, item_size(item)))
        return item

    def _edge_item(
        self, keys: EdgeKeys, edge: AnyEdge, source: Any, target: Any, body: Item, others: Item | None
    ) -> Item:
        if self._are_plain and keys.short is not None:
            typed = {self._type: {"S": self._keys.texts.type_word(keys.kind)}} if self._type else {}
            short = keys.short.item((self._pk, self._sk), typed, source, target)
            if short is not None:
                short.update(body)
                return self._without_lone_keys(keys.kind, short, others or ()) if self._sparse else short
        values = _with_ends(keys.kind, edge.__dict__, source, target)
        item = self._edge_key(keys, source, target, values)
        for side in keys.stricter:
            end, id = (keys.kind.source, source) if side == "source" else (keys.kind.target, target)
            try:
                self.node_key(end, id)
            except InvalidKey as error:
                raise InvalidKey(
                    f"the {side} of {keys.kind.name} cannot be {id!r}, which no {end.name} can have as its id: {error}"
                ) from None
        if keys.target_field is not None and key_text(values[keys.target_field]) != key_text(target):
            raise InvalidKey(
                f"{keys.kind.name}.{keys.target_field} is {values[keys.target_field]!r} but the target is "
                f"{target!r}; both are the same part of the key, so give both the same value"
            )
        for name in keys.also_stored:
            item[keys.kind.attributes[name]] = keys.record.encode_field(name, values[name])
        return self._completed(item, keys, values, body, others)

    def _completed(
        self, item: Item, keys: NodeKeys | EdgeKeys, values: Mapping[str, Any], body: Item, others: Item | None
    ) -> Item:
        if self._type:
            item[self._type] = {"S": self._keys.texts.type_word(keys.kind)}
        kind = keys.kind
        if keys.index_keys:
            late = self.managed.late[kind.model]
            for name, template in keys.index_keys.items():
                if late and name in late:
                    # What a managed field has is known later, and with it the key.
                    continue
                value = self._index_value(kind, name, template, values)
                if value is not None:
                    item[name] = value
            if (members := self._members[kind.model]).at_risk:
                members.check_kept(values, item)
        item.update(body)
        return self._without_lone_keys(kind, item, others or ()) if self._sparse else item

    def with_managed_keys(self, kind: EntityType, item: Item) -> Item:
        """An item with the index keys that hold its managed fields, which have the values that the item has."""
        if isinstance(kind, NodeType):
            kind = self._reader.member(kind, item)
        names = self.managed.attributes[kind.model]
        if not names:
            return item
        if isinstance(kind, NodeType):
            bare = without(item, names)
            values = self.managed.values(kind, item) | kind.part_values(self._id_of(kind, item))
            return bare | self._late_values(kind, values) | self.managed.entry(kind, bare, values)
        assert isinstance(kind, EdgeType)
        return self._with_copied_keys(kind, item, names)

    def _id_of(self, kind: NodeType, item: Item) -> Any:
        return self.id_in(kind, self.text_of(kind, item))

    def _late_values(self, kind: EntityType, values: Mapping[str, Any]) -> Item:
        """The index keys from templates that hold managed fields; none if one of these has no value."""
        fields, found = {*self.rules.maintained(kind)}, Item()
        for name, template in self.managed.late[kind.model].items():
            # Without the value of its node, an edge is not in an index; but it is always found from its ends.
            is_end = name in self._keys.end_keys
            if is_end or not any(values[part] in (None, "") for part in fields.intersection(template.names)):
                value = self._index_value(kind, name, template, values)
                found |= {} if value is None else {name: value}
        return found

    def _with_copied_keys(self, kind: EdgeType, item: Item, names: Collection[str]) -> Item:
        bare = without(item, names)
        edge = self._reader.read_as_far(kind, bare)
        if not isinstance(edge, Edge):
            return item
        values = edge.__dict__ | kind.end_values(edge.source, edge.target)
        made = self._without_lone_keys(kind, bare | self._late_values(kind, values))
        return made | self.managed.entry(kind, bare, values)

    def _without_lone_keys(self, kind: EntityType, item: Item, read: Collection[str] = ()) -> Item:
        """The item without keys of indexes in which it is not, because another key of them is missing.

        Keys that were read so stay: another program writes them.
        """
        sparse = self._sparse.get(kind.model) if self._sparse else None
        for name in sparse.lone(item) if sparse is not None else ():
            if name not in read:
                del item[name]
        return item

    def _index_value(
        self, kind: EntityType, name: str, template: Template, values: Mapping[str, Any]
    ) -> AttributeValue | None:
        """An index key, or None if one of its parts is None: the item is then not in the index.

        An edge that is not in an index in which it is found from its ends must have all parts.
        """
        if name not in self._keys.end_keys or isinstance(kind, NodeType):
            for part in template.names:
                if values[part] is None:
                    return None
        text = template.render(values)
        if text and len(text) <= 256 and text.isascii() and template.type == "S":
            return {"S": text}
        if not text:
            raise InvalidKey(
                f"{kind.name}.{template.names[0]} is empty, but it is the whole key {name!r} of an index, and a key "
                f"needs at least one character; leave it None, or add text to the template"
            )
        is_partition = any(name == key.name for index in self.definition.indexes for key in index.partitions)
        limit = MAX_PARTITION_KEY_SIZE if is_partition else MAX_SORT_KEY_SIZE
        check_key_length(text, template.type, limit, f"the key {name!r} of a {kind.name}", _SHORTER)
        return template.attribute(text)

    # --- single fields -------------------------------------------------------------------------

    def is_stored(self, kind: EntityType, name: str) -> bool:
        """Whether a field has an attribute of its own; otherwise it is in keys only."""
        return name in self._keys_of(kind).record.stored_names

    def encode_stored(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        """The stored form of one field's value; None for a value or a field that has no attribute of its own."""
        record = self._keys_of(kind).record
        if name not in record.stored_names or record.is_absent(name, value):
            return None
        return record.encode_field(name, value)

    def encode_field(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        """The stored form of one field's value, also of a field in keys only; None for a value that is not stored."""
        record = self._keys_of(kind).record
        return None if record.is_absent(name, value) else record.encode_field(name, value)

    def looks_first(self, kind: EntityType) -> bool:
        """Whether a validator of the class may make fields from attributes that are not theirs."""
        return self._keys_of(kind).record.looks_first

    def decode_field(self, kind: EntityType, name: str, stored: AttributeValue) -> Any:
        """The value of a field that is stored so."""
        return self._keys_of(kind).record.decode_field(name, stored)

    def filterable(self, kind: EntityType, name: str, remedy: str = "filter the results in Python") -> str:
        """The attribute to compare a field by; raises, with a remedy, if the field is stored in keys only."""
        stored = kind.attribute(name)
        if name not in self._keys_of(kind).record.stored_names:
            raise InvalidKey(f"{kind.name}.{name} is stored in the key only, so DynamoDB cannot compare it; {remedy}")
        return stored

    # --- items back to instances ---------------------------------------------------------------

    def key_of(self, item: Item) -> Item:
        if self._are_text:
            return {self._pk: item[self._pk], self._sk: item[self._sk]}
        return self._keys.table.key_of(item)

    def key_texts(self, item: Item) -> tuple[str, str]:
        """The partition key and the sort key of an item as text; "" for the sort key of a table that has none."""
        return self._keys.table.texts(item)

    def twin_keys(self, kind: EdgeType, item: Item) -> list[Item]:
        """The key of the other item of a symmetric edge; empty for other edges."""
        if not kind.symmetric:
            return []
        edge = self.decode(kind, item)
        if not isinstance(edge, Edge) or edge.source == edge.target:
            return []
        return [self.edge_key(kind, edge.target, edge.source, edge.__dict__)]

    def start_names(self, index: str | None) -> tuple[str, ...]:
        """The key attributes in a start key of the table or an index."""
        return self._start_keys[index]

    def start_after(self, item: Item, index: str | None) -> Item:
        """The start key with which a query continues after this item."""
        return {name: item[name] for name in self._start_keys[index]}

    def kind_of(self, item: Item) -> EntityType | None:
        """The class of an item, determined by its keys; None if no class matches. Of a family it is the head."""
        return self._reader.kind_of(item)

    def is_one(self, kind: EntityType, item: Item) -> bool:
        """Whether an item with the keys of a class is of that class, and not of another of its family."""
        return self._reader.is_one(kind, item)

    def told_apart(self, kind: EntityType) -> Condition | None:
        """Holds for the items of a class of a family, and not for its other classes; None if it needs no condition."""
        return None if kind.whole is kind else self._reader.condition(kind)

    def decode(self, kind: EntityType, item: Item) -> Entity | None:
        """The instance of this class that an item is; None if it is of another class."""
        return self._reader.readers[kind.model](item)

    def decode_as_far(self, kind: EntityType, item: Item) -> Entity | None:
        """The same, but a field whose stored value does not fit has that value, where an error would mislead."""
        try:
            return self.decode(kind, item)
        except InvalidItem:
            return self._reader.read_as_far(kind, item)

    def read(self, item: Item) -> Entity | None:
        """The node or edge that an item is; None if no class matches."""
        return self._reader.read(item)


def _with_ends(kind: EdgeType, values: Mapping[str, Any], source: Any, target: Any) -> dict[str, Any]:
    """Values with those of both ids, by the names of their parts."""
    if kind.single_ends is None:
        return {**values, **kind.end_values(source, target)}
    # Most ids are one value; for these, dicts of parts would only cost time.
    near, far = kind.single_ends
    return {**values, near: source, far: target}


def _noted(entity: Entity, keys: NodeKeys | EdgeKeys) -> Item | None:
    """What no field explained when the instance was read; None if that is unknown, or was another entity."""
    whose, others = entity.__dict__[UNEXPLAINED]
    identity = identity_of(entity)
    if isinstance(keys.kind, EdgeType) and keys.kind.symmetric and whose != identity:
        whose = (whose[1], whose[0], *whose[2:])
    return others if whose == identity else None
