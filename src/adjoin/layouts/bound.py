"""A layout that is bound to classes: how each node and edge is keyed, encoded and found, without any I/O.

A symmetric edge is two items, one in the partition of each end. If the order field of an ordered edge is not part of
its key, an index of its own keeps the order, so that the two ends alone still identify the edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adjoin.declarations import check_declared, rules_of
from adjoin.entity_types import AnyEdge, CountedType, EdgeType, Entity, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidItem, InvalidKey, InvalidModel, InvalidValue
from adjoin.expressions import Action, Compare, Condition, Exists, Remove, Set, Value, all_of, attribute
from adjoin.fields import RelativeChange
from adjoin.layouts.access_patterns import AccessPattern, AccessPatterns, ShardPartitions
from adjoin.layouts.adjacency_reader import AdjacencyReader, keep_unexplained
from adjoin.layouts.conflicts import check, check_own_items
from adjoin.layouts.edge_accesses import AdjacencyAccesses
from adjoin.layouts.ends import id_of
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys
from adjoin.layouts.fitting import Fit, fit
from adjoin.layouts.forms import Due, ItemForm, forms_of
from adjoin.layouts.indexed_fields import OverloadedIndex, ShardBook
from adjoin.layouts.interface import REVISION, KeyTemplates, Satellite, Shape
from adjoin.layouts.keys import SEPARATOR, SHARD, ShardedTemplate, Template, check_key_length, key_text
from adjoin.layouts.membership import Membership
from adjoin.layouts.own_items import Ledgers, Satellites
from adjoin.layouts.ranges import EdgeAccess, Range, ScanAccess, only_at
from adjoin.layouts.scanning import ScanAccesses
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.layouts.table_keys import text_of
from adjoin.layouts.templates import DELETION_SORT_KEY, AdjacencyKeys
from adjoin.model import UNEXPLAINED, Edge, Node, Ref, has_hook, identity_of, node_id
from adjoin.reserved import OWN, OWN_NAMES, is_tenant, tenant_prefix
from adjoin.rules import Rules
from adjoin.schema import Schema
from adjoin.tables import KeyAttribute
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, item_size

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

_SHORTER = "a shorter id"
_KNOWN_TENANTS = 256
"""How many tenants' templates are kept in memory; those of other tenants are compiled again."""


class BoundLayout:
    """An adjacency list that is bound to the classes of one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None = None,
        like: BoundLayout | None = None,
        lead: str | None = None,
    ) -> None:
        """`like` is the same layout for another tenant; what depends on classes alone is shared with it.

        `lead` is the text before the tenant in keys, if templates name the tenant.
        """
        self.schema = schema
        self.table = layout.table
        self.tenant = tenant
        self._layout = layout
        self._tenants: dict[str, BoundLayout] = {}
        self._lead = lead
        self.rules: Rules = rules_of(schema) if like is None else like.rules.of_a_tenant()
        check_declared(self.rules)
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
        self._copied_keys = {kind.model: self._keys.copied_keys(kind) for kind in schema.types}
        self.overloaded: OverloadedIndex | None = None
        if self._keys.overloaded is not None:
            book = ShardBook(self._keys.number_of_indexed(self._keys.overloaded))
            self.overloaded = OverloadedIndex(self._keys.overloaded, schema, self._keys.prefix, book)
        self._satellites = Satellites(self._keys, self.overloaded)
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
        self._sparse = {model: members for model, members in self._members.items() if members.is_sparse}
        self._accesses = AdjacencyAccesses(self._keys, self._reader)
        self._check_maintained()
        self._patterns = AccessPatterns(self._keys)
        self._telling = {kind.model: self._keys.telling(self._keys_of(kind)) for kind in schema.types}
        self._scans = ScanAccesses(self._keys)
        self._fits: dict[type[Any], Fit] = {}

    @property
    def tenant_lead(self) -> str:
        """The text before the tenant in the keys of tenants."""
        return self._lead or ""

    @property
    def why_no_own_items(self) -> str | None:
        """Why the table cannot hold items of adjoin's own, because of its keys; None if it can."""
        return self._keys.table.why_no_own_items

    @property
    def shard_numbers(self) -> Mapping[str, ShardNumber]:
        """The number of shards of each sharded key attribute, if the table can hold a record of it."""
        return self._keys.shard_numbers if self.why_no_own_items is None else {}

    # --- changes of classes --------------------------------------------------------------------

    @property
    def due(self) -> Due:
        """What stored items lack of what the classes declare now."""
        return self._keys.due

    def forms(self) -> dict[str, ItemForm]:
        """How the items of each class are stored, by the word of the class."""
        return forms_of(self._keys, {rule.name.partition(":")[0]: rule.key for rule in self.rules.declared})

    @property
    def declarations_key(self) -> Item:
        """The key of the record of the forms that stored items have."""
        return self._satellites.table_record_key("DECLARED", "forms")

    def entry_attributes(self, kind: EntityType) -> frozenset[str]:
        """The attributes of a class that adjoin derives from its fields: index keys, and what `attributes` names."""
        names = {*self._keys_of(kind).index_keys}
        if self.overloaded is not None and kind.indexed:
            names |= {self.overloaded.partition_key, self.overloaded.sort_key}
        return frozenset(names)

    def plain_index_keys(self, kind: EntityType) -> frozenset[str]:
        """The attributes of a class that are keys of indexes as they are."""
        keys = {key.name for index in self.definition.indexes for key in index.keys}
        return frozenset(keys.intersection(kind.attributes.values()) - self.entry_attributes(kind))

    def entry_parts(self, kind: EntityType, names: Collection[str]) -> set[str]:
        """The fields of which these attributes are made, as far as adjoin derives them from fields."""
        templates = self._keys_of(kind).index_keys
        parts = {part for name in names if name in templates for part in templates[name].names}
        is_entry = self.overloaded is not None and kind.indexed and self.overloaded.partition_key in names
        return parts | {*kind.indexed[:1]} if is_entry else parts

    def is_same_entry(self, kind: EntityType, name: str, one: AttributeValue, other: AttributeValue) -> bool:
        """Whether two values of such an attribute differ at most in their shard, in which an entry stays."""
        if one == other:
            return True
        index, template = self.overloaded, self._keys_of(kind).index_keys.get(name)
        if index is not None and kind.indexed and name == index.partition_key:
            return bool(one.get("S", "").rpartition(SEPARATOR)[0] == other.get("S", "").rpartition(SEPARATOR)[0])
        if not isinstance(template, ShardedTemplate):
            return False
        told = [template.match(text_of(each)) for each in (one, other)]
        return None not in told and len({repr({**(each or {}), SHARD: ""}) for each in told}) == 1

    # --- tenants -------------------------------------------------------------------------------

    def for_tenant(self, tenant: str) -> BoundLayout:
        """The same layout for a tenant of the same table."""
        tenant_prefix(tenant)
        found = self._tenants.pop(tenant, None) or self._new_tenant(tenant)
        self._tenants[tenant] = found
        for oldest in list(self._tenants)[:-_KNOWN_TENANTS]:
            self._tenants.pop(oldest, None)
        return found

    def _new_tenant(self, tenant: str) -> BoundLayout:
        lead = self._lead
        return BoundLayout(self._layout, self.schema, tenant, self, lead)

    def tenant_in(self, item: Item) -> str | None:
        """The tenant whose node or edge an item is, judged by its keys; for a layout without a tenant.

        An item that is a node or an edge without a tenant belongs to no tenant.
        """
        name, bare = self._without_tenant(item)
        return name if bare is not None and self._is_own(bare) else None

    def is_of_a_tenant(self, item: Item) -> bool:
        """Whether an item is a node, an edge or a record of a tenant, judged by its keys; for a layout without one.

        If a partition key begins with an id, any text before a separator could be a tenant. Such an item may as well be
        one that no class explains, and counts as that, so that it is not left out.
        """
        _, bare = self._without_tenant(item)
        if bare is None or self.is_bookkeeping(bare):
            return bare is not None
        kind = self.kind_of(bare)
        return kind is not None and bool(self._keys_of(kind).partition.lead)

    def _without_tenant(self, item: Item) -> tuple[str, Item | None]:
        """The tenant whose item it would be, and the item without the tenant's prefix; None if it is no tenant's."""
        name, rest = self._tenant_and_rest(item[self._pk].get("S", ""))
        if not rest or self.tenant is not None or not is_tenant(name) or self._is_own(item):
            return name, None
        prefix = self.tenant_lead + name + SEPARATOR
        bare = dict(item)
        for key in self._keys.partition_keys & item.keys():
            text = item[key].get("S", "")
            if key == self._sk and not text.startswith(prefix):
                return name, None
            bare[key] = {"S": text.removeprefix(prefix)}
        return name, bare

    def _tenant_and_rest(self, partition: str) -> tuple[str, str]:
        """The tenant that a partition key would be of, and the key without its prefix; empty texts if it has none."""
        lead = self.tenant_lead
        name, _, rest = partition[len(lead) :].partition(SEPARATOR) if partition.startswith(lead) else ("", "", "")
        return name, rest

    def is_own_record(self, key: Item) -> bool:
        """Whether the key alone shows that an item is adjoin's own, and so not a node or an edge of any tenant."""
        if not self.is_bookkeeping(key):
            return False
        name, rest = self._tenant_and_rest(key[self._pk]["S"])
        if not rest or self.tenant is not None or not is_tenant(name):
            return True
        # With the tenant's prefix, the key of a tenant's node can look like that of an index copy. So check it without.
        return self.is_bookkeeping({self._pk: {"S": rest}, self._sk: key[self._sk]})

    def _is_own(self, item: Item) -> bool:
        """Whether an item is a node or an edge, judged by its keys."""
        return not self.is_bookkeeping(item) and self.kind_of(item) is not None

    # --- keys and items ------------------------------------------------------------------------

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
                id = each.id(id_of(each, parts))
                return id if each is kind else Ref(each.model, id)
        raise InvalidKey(f"{text!r} is not the key of a {kind.name}; correct the item that names it")

    def is_of(self, kind: NodeType, text: str) -> bool:
        """Whether a node key is that of a node of a class."""
        return any(self._keys.nodes[each.model].text.match(text) is not None for each in kind.classes)

    def deletion_key(self, node: str) -> Item:
        """The key of the deletion record of the node with that node key; only for keys that are text."""
        return {self._pk: {"S": node}, self._sk: {"S": self._deletion_sort}}

    def is_bookkeeping(self, item: Item) -> bool:
        """Whether an item is adjoin's own or another tenant's, and so not a node or an edge of this graph."""
        if not self._are_text:
            return not text_of(item[self._pk]).startswith(self._keys.prefix)
        if item[self._sk] == {"S": self._deletion_sort} or self._satellites.is_one(item):
            return True
        partition: str = item[self._pk]["S"]
        if not self._keys.prefix:
            return self._keys.record_of_tenant.match(partition) is not None
        return not partition.startswith(self._keys.prefix)

    def shard_map_key(self, scope: str) -> Item:
        """The key of the shard map of an indexed field; all shard maps are in one partition."""
        return self._satellites.record_key("SHARDS", scope)

    def shard_number_key(self, attribute: str) -> Item:
        """The key of the record of the number of shards of a key attribute; all these records are in one partition."""
        return self._satellites.table_record_key("SHARDS", attribute)

    def key_fields(self, kind: EdgeType) -> tuple[str, ...]:
        """The fields that are part of an edge's identity in this layout."""
        keys = self._keys.edges[kind.model]
        return tuple(name for name in keys.fields if name != keys.target_field)

    def edge_key(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> Item:
        """The key of the edge between two ids; `fields` holds at least its key fields."""
        keys = self._keys.edges[kind.model]
        return self._edge_key(keys, source, target, _with_ends(kind, fields, source, target))

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
        return [name for names in self._keys.edges[kind.model].loose.values() for name in names]

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
        keys = self._keys.edges[kind.model]
        return keys.sort.told.issuperset(keys.target_parts)

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

    def items(self, entity: Entity) -> tuple[Item, ...]:
        """The items an instance is stored as: one, or two for a symmetric edge."""
        if isinstance(entity, Node):
            kind = self.schema.nodes.get(type(entity)) or self.schema.node(type(entity))
            keys = self._keys.nodes[kind.model]
            only = kind.only
            id = entity.__dict__[only] if only in entity.__dict__ else node_id(entity)
            if kind.family:
                self._refuse_member(kind, entity)
            own = {only: id} if only is not None else kind.part_values(id)
            if keys.bounded:
                _check_bounds(keys, own)
            item = self._key(kind, keys.partition.render(own), keys.sort.render(own))
            values = entity.__dict__ if kind.parent is None else {**entity.__dict__, **kind.part_values(id)}
            self._completed(item, keys, values, keys.record.encode(entity))
            if UNEXPLAINED in values:
                _keep(entity, keys, item)
            return (self._indexed(kind, item, entity.__dict__),)
        edge_kind = self.schema.edges.get(type(entity)) or self.schema.edge(type(entity))
        edge_keys = self._keys.edges[edge_kind.model]
        try:
            source, target = entity.source, entity.target
        except AttributeError:
            # `model_construct` makes such an edge.
            raise InvalidKey(f"this {edge_kind.name} has no source or no target; give it both") from None
        body = edge_keys.record.encode(entity)
        if UNEXPLAINED in entity.__dict__:
            _keep(entity, edge_keys, body)
        item = self._edge_item(edge_keys, entity, source, target, body)
        if not edge_kind.symmetric or source == target:
            return (self._indexed(edge_kind, item, entity.__dict__),)
        twin = self._edge_item(edge_keys, entity, target, source, body)
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

    def explained(self, kind: EntityType) -> frozenset[str]:
        """The attributes that adjoin writes or reads on items of a class."""
        return self._keys_of(kind).explained

    def _first_of(self, *twins: Item) -> Item:
        """The one of the two items of a symmetric edge that is in the index of indexed fields."""
        return min(twins, key=self._keys.table.texts)

    def _indexed(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> Item:
        """The item with the index key attributes of its first indexed field."""
        if self.overloaded is not None and kind.indexed:
            own, tail = self.overloaded.fields(kind)[0], self._satellites.tail(kind, item)
            item.update(self.overloaded.entry(own, values[own.name], tail, item_size(item)))
        return item

    def _edge_item(self, keys: EdgeKeys, edge: AnyEdge, source: Any, target: Any, body: Item) -> Item:
        values = _with_ends(keys.kind, edge.__dict__, source, target)
        item = self._edge_key(keys, source, target, values)
        if keys.target_field is not None and key_text(values[keys.target_field]) != key_text(target):
            raise InvalidKey(
                f"{keys.kind.name}.{keys.target_field} is {values[keys.target_field]!r} but the target is "
                f"{target!r}; both are the same part of the key, so give both the same value"
            )
        return self._completed(item, keys, values, body)

    def _completed(self, item: Item, keys: NodeKeys | EdgeKeys, values: Mapping[str, Any], body: Item) -> Item:
        if self._type:
            item[self._type] = {"S": self._keys.texts.type_word(keys.kind)}
        kind = keys.kind
        if keys.index_keys:
            late = self._copied_keys[kind.model]
            for name, template in keys.index_keys.items():
                if late and name in late:
                    # A copied field is filled in later, and with it the key.
                    continue
                value = self._index_value(kind, name, template, values)
                if value is not None:
                    item[name] = value
        item.update(body)
        return self._without_lone_keys(kind, item) if self._sparse else item

    def copied_keys(self, kind: EdgeType) -> Mapping[str, tuple[str, ...]]:
        """The keys of indexes that hold copied fields of a class of edges, each with the names of its parts."""
        return {name: template.names for name, template in self._copied_keys[kind.model].items()}

    def with_copied_keys(self, kind: EdgeType, item: Item) -> Item:
        """The item of an edge whose copied fields are filled in, with the index keys that hold them."""
        late = self._copied_keys[kind.model]
        if not late:
            return item
        fields = self._keys.copied_fields(kind)
        holding = {name for name, template in late.items() if fields.intersection(template.names)}
        edge = self._reader.read_as_far(kind, {name: value for name, value in item.items() if name not in holding})
        if not isinstance(edge, Edge):
            return item
        bare = {name: value for name, value in item.items() if name not in late}
        values = edge.__dict__ | kind.end_values(edge.source, edge.target)
        for name, template in late.items():
            # Without the value of its node, the edge is not in the index.
            if not any(values[part] in (None, "") for part in fields.intersection(template.names)):
                value = self._index_value(kind, name, template, values)
                bare |= {} if value is None else {name: value}
        return self._without_lone_keys(kind, bare)

    def _without_lone_keys(self, kind: EntityType, item: Item) -> Item:
        """The item without keys of indexes in which it is not, because another key of them is missing."""
        sparse = self._sparse.get(kind.model) if self._sparse else None
        for name in sparse.lone(item) if sparse is not None else ():
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

    def in_index_key(self, kind: EntityType, names: Collection[str]) -> str | None:
        """One of these fields that is part of an index key; None if none is."""
        parts = [name for each in self._keys_of(kind).index_keys.values() for name in each.names]
        return next((name for name in (*parts, *kind.indexed[:1]) if name in names), None)

    def _check_maintained(self) -> None:
        if self.rules:
            self._check_names()
        for kind in self.schema.types:
            managed = set(self.rules.maintained(kind))
            # An edge without the value of its node would not be found from its end, so a copy is in no such key.
            index_keys = self._keys_of(kind).index_keys.items()
            ends = {part for attribute, each in index_keys if attribute in self._keys.end_keys for part in each.names}
            copied = {copy.field for copy in self.rules.copies if copy.edge is kind and copy.field not in ends}
            name = self.in_index_key(kind, managed - copied)
            if name is not None:
                raise InvalidModel(
                    f"{kind.name}.{name} is a managed field, so it cannot be part of a key; "
                    f"take it out of order= and of the layout's templates"
                )
        self._check_apart()
        found_by_index = [group.edge for group in self.rules.groups if group.hop.direction == "into"]
        found_by_index += [copy.edge for copy in self.rules.copies if copy.end == "target"]
        for edge in found_by_index:
            if self._accesses.arriving[edge.model] is None:
                raise InvalidModel(
                    f"something is counted or copied at the target of {edge.name}, but the layout has no "
                    f"reverse index to find edges from there; give it one with reverse=Index(…)"
                )

    def _check_apart(self) -> None:
        """Refuses aggregates and copied fields over edges that could not be counted exactly, because of their keys."""
        uses = [(group.edge, group.hop.direction == "out") for group in self.rules.groups]
        uses += [(copy.edge, copy.end == "source") for copy in self.rules.copies]
        for edge, is_at_source in uses:
            keys = self._keys_of(edge)
            if isinstance(keys, NodeKeys):
                # The keys of a child tell its parent, and a query of the table finds it from there.
                continue
            if keys.loose:
                raise InvalidModel(
                    f"something is counted or copied over {edge.name}, but its {next(iter(keys.loose))} is no part of "
                    f"its key, so a put can change it, and the old node would not be told; remove the aggregate or "
                    f"the copied field, or add the end to the keys"
                )
            if is_at_source and keys.is_apart and self._accesses.apart[edge.model] is None:
                raise InvalidModel(
                    f"something is counted or copied at the source of {edge.name}, but its partition key "
                    f"{keys.partition} is not made of its source alone, and an index may lag behind; remove the "
                    f"aggregate or the copied field, or change the template"
                )

    def _check_names(self) -> None:
        """Refuses keys and a time to live with a name that adjoin's own items use for something else."""
        definition = self.definition
        keys = [*definition.keys, *(key for index in definition.indexes for key in index.keys)]
        names = [key.name for key in keys] + [definition.ttl or ""]
        for name in names:
            if name in OWN_NAMES:
                raise InvalidModel(
                    f"{name!r} is a key or the time to live of the table {definition.name}, and also a name in what "
                    f"adjoin records about aggregates and copies; give it another name, or declare none of these"
                )

    # --- satellites ----------------------------------------------------------------------------

    @cached_property
    def plain(self) -> frozenset[type[Any]]:
        """The classes whose instances are put as one item that replaces any stored item, with no other writes."""
        return frozenset(kind.model for kind in self.schema.types if self._is_plain(kind))

    def _is_plain(self, kind: EntityType) -> bool:
        if isinstance(kind, EdgeType) and (kind.symmetric or kind.source.expires or kind.target.expires):
            return False
        groups = (group for group in self.rules.groups if group.edge is kind)
        is_counted = any(rule.in_transaction for group in groups for rule in group.rules)
        is_managed = kind.is_guarded or self.rules.guards(kind) or has_hook(kind.model)
        return not (self.has_satellites(kind) or is_managed or is_counted)

    def has_edges(self, kind: NodeType) -> bool:
        """Whether nodes of a class have edges or children."""
        return self._keys.has_edges(kind)

    def is_told_by_indexes(self, kind: EntityType) -> bool:
        """Whether an index key alone holds a field of the class; an item whose key does not fit is of no class."""
        return any(self._keys_of(kind).sole_fields.values())

    def has_satellites(self, kind: EntityType) -> bool:
        return bool(kind.claimed) or self.has_changing_satellites(kind)

    def has_changing_satellites(self, kind: EntityType) -> bool:
        """Whether satellites of the class depend on fields that can change."""
        return bool(kind.unique) or len(kind.indexed) > 1

    def satellites(self, kind: EntityType, items: Sequence[Item], values: Mapping[str, Any]) -> list[Satellite]:
        """The satellites of an instance with these items and values, also those that must not exist."""
        return self._satellites.of(kind, self._first_of(*items), values) if self.has_satellites(kind) else []

    def satellites_beside(self, kind: EntityType, item: Item) -> list[Satellite]:
        """The satellites of a stored item, derived from its attributes, to be removed with it."""
        if not self.has_satellites(kind):
            return []
        if not isinstance(kind, EdgeType):
            return self._satellites.beside(kind, item)
        first = item | self._first_of(self.key_of(item), *self.twin_keys(kind, item))
        return [*self._satellites.beside(kind, first), *self.end_claims(kind, item)]

    def end_claims(self, kind: EdgeType, item: Item) -> list[Satellite]:
        """The claims of an edge to its nodes, to be removed with it, derived from its keys."""
        if not kind.claimed:
            return []
        try:
            nodes = dict(zip(("source", "target"), self.ends(kind, item), strict=True))
        except (InvalidItem, InvalidKey):
            # It names no nodes, so it has claimed none.
            return []
        first = self._first_of(self.key_of(item), *self.twin_keys(kind, item))
        return self.claims_of(kind, {side: nodes[side] for side in kind.claimed}, first)

    def claims_of(self, kind: EdgeType, nodes: Mapping[str, str], key: Item) -> list[Satellite]:
        """The claims of an edge with this key to nodes, given by end as node keys; to be removed with the edge."""
        owner = self._satellites.owner(kind, key)
        return [Satellite(each, None, owner) for each in self._satellites.end_claims(kind, nodes)]

    def claim_start(self, kind: EntityType) -> str:
        """What the partition keys of all claims of a class begin with."""
        return self._satellites.claim_start(kind)

    def owner_text(self, kind: EntityType, key: Item) -> str:
        """How a claim names the entity with this key as its owner."""
        return self._satellites.owner(kind, key)

    def edge_owning(self, owner: str) -> Item | None:
        """The key of the edge that a claim names as its owner; None if it names none."""
        return self._satellites.owned_by(owner)

    def first_twin(self, keys: Sequence[Item]) -> Item:
        """The key of the item of an edge that has its satellites, of the keys of all its items."""
        return self._first_of(*keys)

    def copy_keys(self, kind: EntityType, key: Item) -> list[Item]:
        """The keys that index copies of an item can have."""
        return self._satellites.copy_keys(kind, key)

    def claim_key(self, kind: NodeType, name: str, value: Any) -> Item:
        """The key of the claim to a value of a unique field."""
        return self._satellites.claim_key(kind, name, value)

    def copied_key(self, copy: Item) -> Item:
        """The key of the item that an index copy repeats."""
        return self.key_of(self._satellites.restored(copy))

    def claimed_by(self, claim: Item) -> EntityType | None:
        """The class whose unique value, or whose only edge, a claim is for."""
        label = self._satellites.claimed_label(claim)
        return next((kind for kind in self.schema.types if kind.label == label and kind.claimed), None)

    def changed(self, kind: EntityType, item: Item, entity: Entity) -> Item:
        """A stored item with the fields of an instance; its other attributes stay."""
        fresh = next(each for each in self.items(entity) if self.key_of(each) == self.key_of(item))
        keys = self._keys_of(kind)
        own = {*kind.attributes.values(), *keys.index_keys, REVISION}
        if self.overloaded is not None:
            own |= {self.overloaded.partition_key, self.overloaded.sort_key}
        return {name: value for name, value in item.items() if name not in own} | fresh

    def found(self, kind: EntityType, item: Item) -> Entity | None:
        """The instance that an item is, which was found through the index of indexed fields and may be a copy."""
        return self._reader.readers[kind.model](self._satellites.restored(item))

    # --- changes of index keys -----------------------------------------------------------------

    def needed_for_index(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
        """The other fields that are needed to write the index keys after these changes."""
        members, templates = self._members[kind.model], self._keys_of(kind).index_keys
        if members.decisive.isdisjoint(changes):
            return []
        in_keys = {part for template in templates.values() for part in template.names}
        # A relative change is of a field that has a value, and stays one unless the field is in a key.
        touched = members.changed(
            {name: each for name, each in changes.items() if name in in_keys or not isinstance(each, RelativeChange)}
        )
        parts = [part for name in touched for part in templates[name].names]
        needed = [name for name in dict.fromkeys(parts) if name not in identity and name not in changes]
        if not needed:
            return []
        # The item is read anyway, so it can be decided exactly in which indexes it is.
        decisive = dict.fromkeys([*needed, *members.fields(touched)])
        return [name for name in decisive if name not in identity and name not in changes]

    def index_actions(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Action]:
        """The actions on index keys that follow from changes of these fields; `identity` has their other parts."""
        members = self._members[kind.model]
        if members.decisive.isdisjoint(changes):
            return self._entry_actions(kind, identity, changes)
        values = {**identity, **changes}
        templates, left = self._keys_of(kind).index_keys, members.left(values, changes)
        found: dict[str, AttributeValue | None] = dict.fromkeys(left)
        for name in members.changed(changes):
            if name not in found:
                found[name] = self._index_value(kind, name, templates[name], values)
        actions: list[Action] = [
            Remove(attribute(name)) if value is None else Set(attribute(name), Value(value))
            for name, value in found.items()
        ]
        return actions + self._entry_actions(kind, identity, changes)

    def _entry_actions(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Action]:
        """The actions on index keys that follow from a change of the first indexed field."""
        index = self.overloaded
        if index is None or not kind.indexed or kind.indexed[0] not in changes:
            return []
        own, key = index.fields(kind)[0], self._key_of_identity(kind, identity)
        if key is None:
            return []
        entry = index.entry(own, changes[own.name], self._satellites.tail(kind, key), 0)
        return [
            Set(attribute(name), Value(entry[name])) if name in entry else Remove(attribute(name))
            for name in (index.partition_key, index.sort_key)
        ]

    def _key_of_identity(self, kind: EntityType, identity: Mapping[str, Any]) -> Item | None:
        """The item's key; None for the item of a symmetric edge that is not in the index of indexed fields."""
        if isinstance(kind, NodeType):
            return self.node_key(kind, kind.id_told(identity))
        assert isinstance(kind, EdgeType)
        source, target = kind.source.id_told(identity, "source."), kind.target.id_told(identity, "target.")
        key = self.edge_key(kind, source, target, identity)
        twin = self.edge_key(kind, target, source, identity) if kind.symmetric else key
        return key if self._first_of(key, twin) == key else None

    def is_stored(self, kind: EntityType, name: str) -> bool:
        """Whether a field has an attribute of its own; otherwise it is in keys only."""
        return name in self._keys_of(kind).record.stored_names

    def encode_field(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        """The stored form of one field's value, also of a field in keys only; None for a value that is not stored."""
        record = self._keys_of(kind).record
        return None if record.is_absent(name, value) else record.encode_field(name, value)

    def decode_field(self, kind: EntityType, name: str, stored: AttributeValue) -> Any:
        """The value of a field that is stored so."""
        return self._keys_of(kind).record.decode_field(name, stored)

    def filterable(self, kind: EntityType, name: str, remedy: str = "filter the results in Python") -> str:
        """The attribute to compare a field by; raises, with a remedy, if the field is stored in keys only."""
        stored = kind.attribute(name)
        if name not in self._keys_of(kind).record.stored_names:
            raise InvalidKey(f"{kind.name}.{name} is stored in the key only, so DynamoDB cannot compare it; {remedy}")
        return stored

    def _keys_of(self, kind: EntityType) -> NodeKeys | EdgeKeys:
        if type(kind) is NodeUnion:
            # What all its classes have in common is stored as the first stores it.
            kind = kind.classes[0]
        return self._keys.edges[kind.model] if isinstance(kind, EdgeType) else self._keys.nodes[kind.model]

    def shape(self, kind: EntityType) -> Shape:
        """The attributes of the items of a class, for people and tools."""
        keys = self._keys_of(kind)
        own = dict(zip(self._keys.table.names, (keys.partition, keys.sort), strict=False))
        templates = {**own, **keys.index_keys}
        written = {name: str(template) for name, template in templates.items()}
        if self._type:
            written[self._type] = self._keys.texts.type_word(kind)
        stored = keys.record.stored_names
        fields = {name: stored_as for name, stored_as in kind.attributes.items() if name in stored}
        return self._satellites.shaped(kind, Shape(written, fields))

    def key_templates(self, kind: EntityType) -> KeyTemplates:
        keys = self._keys_of(kind)
        templates = KeyTemplates(
            keys.partition,
            keys.sort,
            self._telling[keys.kind.model],
            target_field=keys.target_field if isinstance(keys, EdgeKeys) else None,
            meets=keys.meets if isinstance(keys, EdgeKeys) else (),
            type_attribute=self._type,
            type_words=self._keys.texts.type_words(kind),
            stored=keys.record.stored_names,
            text=keys.text if isinstance(keys, NodeKeys) else None,
            is_shared=isinstance(keys, NodeKeys) and bool(keys.rest),
            has_own_partition=self._owner_of(kind) is kind,
            is_guarded=kind.model in self._keys.guarded,
        )
        return self._chosen(kind, templates)

    def _chosen(self, kind: EntityType, templates: KeyTemplates) -> KeyTemplates:
        """The templates of a variant, in which the node at each end is of its class."""
        if not isinstance(kind, EdgeType) or kind.union is None:
            return templates
        classes = {f"{side}.ref": end.name for side, end in (("source", kind.source), ("target", kind.target))}
        return replace(
            templates,
            partition=templates.partition.chosen(classes),
            sort=templates.sort.chosen(classes),
            others={name: template.chosen(classes) for name, template in templates.others.items()},
        )

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
        edge = self.decode(kind, item) if kind.symmetric else None
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

    def decode_some(self, kind: EntityType, item: Item, names: tuple[str, ...]) -> Entity | None:
        """The instance with only some fields that an item is; None if it is of another class."""
        return self._reader.read_some(kind, item, names)

    def some_attributes(self, kind: EntityType, names: Sequence[str]) -> tuple[str, ...]:
        """The attributes that have to be read for some fields, with those that tell the class, the id and the ends."""
        keys = self._keys_of(kind)
        family = kind.family if isinstance(kind, NodeType) else ()
        found = [name for each in (kind, *family) for name in self._scans.of(each).attributes]
        for name in names:
            found += [kind.attributes[name], *kind.former.get(name, ())]
            if name not in keys.record.stored_names:
                found += [attribute for attribute, each in keys.index_keys.items() if name in each.told]
        return tuple(dict.fromkeys(found))

    def fit(self, kind: EntityType) -> Fit:
        """The conditions under which the class can read a stored item."""
        found = self._fits.get(kind.model)
        if found is None:
            stored = self._keys_of(kind).record.stored_names
            type = (self._type, self._keys.texts.type_word(kind)) if self._type else None
            found = fit(kind, stored, self.rules.maintained(kind), type)
            if isinstance(kind, NodeType) and kind.discriminator is not None:
                found = replace(found, labelled=self._reader.condition(kind))
            self._fits[kind.model] = found
        return found

    def read(self, item: Item) -> Entity | None:
        """The node or edge that an item is; None if no class matches."""
        return self._reader.read(item)

    # --- where to look -------------------------------------------------------------------------

    def patterns(self, kind: EntityType) -> tuple[AccessPattern, ...]:
        """The access patterns of a class: the table, then the indexes that the layout declares."""
        return self._patterns.of(kind)

    def partition_attributes(self, index: str | None) -> tuple[KeyAttribute, ...]:
        """The partition key attributes of the table or an index."""
        where = self.definition if index is None else self.definition.index(index)
        assert where is not None
        return where.partitions

    def sort_attributes(self, index: str | None) -> tuple[KeyAttribute, ...]:
        """The sort key attributes of the table or an index."""
        where = self.definition if index is None else self.definition.index(index)
        assert where is not None
        return where.sorts

    def spread(self, index: str) -> ShardPartitions | None:
        """The partitions of an index whose partition key is the shard alone; None for another index."""
        return self._patterns.spread(index)

    def out(self, kind: EdgeType, source: Any) -> Range:
        access = self._accesses.leaving[kind.model]
        if access is None:
            raise InvalidModel(self._not_together(kind, "source"))
        return self._at_source(access, kind, source)

    def _at_source(self, access: EdgeAccess, kind: EdgeType, source: Any) -> Range:
        keys = self._keys.edges[kind.model]
        if access.partition is not None:
            return _told_range(access, access.partition, kind.source.part_values(source, "source."))
        if access.index is not None or not keys.rest:
            return Range(access, self.node_text(kind.source, source))
        values = kind.source.part_values(source, "source.")
        return Range(access, keys.partition.render(values), {name: values[name] for name in keys.rest})

    def _not_together(self, kind: EdgeType, side: str) -> str:
        """Says that the edges at one end are together nowhere, and what each index would need."""
        keys = self._keys.edges[kind.model]
        wanted = " and ".join(f"{{{name}}}" for name in keys.end_parts(side))
        found = [
            f"{index.name!r} has {self._keys.template(keys, index.partition_attribute) or 'no template'}"
            for index in self._keys.texts.declared
        ]
        indexes = f" ({', '.join(found)})" if found else ""
        return (
            f"{kind.name} edges cannot be found from their {side}: their partition key {keys.partition} is not made of "
            f"its id alone, and that of no index is{indexes}; give an index a partition key made of {wanted}"
        )

    def is_apart(self, kind: CountedType) -> bool:
        """Whether edges or children of a class are in other partitions than those of their sources or parents."""
        return self._keys_of(kind).is_apart

    def ranges_from(self, kind: CountedType, source: Any) -> list[Range]:
        """Where the edges of a class are that leave a node, in the table if it tells, or the children of a parent.

        Other items can be there too.
        """
        if not self.is_apart(kind):
            return [self.collection(kind.source, source, arriving=False)]
        if isinstance(kind, NodeType):
            return [self.children(kind, source)]
        access = self._accesses.apart[kind.model]
        return (self.out(kind, source) if access is None else self._at_source(access, kind, source)).parts

    def ranges_beside(self, kind: NodeType, id: Any, *, must_find: bool = True) -> list[Range]:
        """Where the edges and children of a node are that are not in its partition; other items can be there too.

        Edges that cannot be found raise, or are left out if they need not be found.
        """
        if not self._accesses.are_some_apart:
            return []
        edges = [edge for edge in self.schema.edges.values() if edge.source.covers(kind) and self.is_apart(edge)]
        if not must_find:
            edges = [edge for edge in edges if self._accesses.apart[edge.model] or self._accesses.leaving[edge.model]]
        node = Ref(kind.model, id)
        with _leaving_told():
            ranges = [(edge, each) for edge in edges for each in self.ranges_from(edge, edge.source.id(node))]
        found = [self._complete(kind, edge, each, "leave") if must_find else each for edge, each in ranges]
        children = [child for child in self.schema.children(kind) if self.is_apart(child)]
        # Children of these children are in the same partition, so all of it is read.
        return found + [Range(self._accesses.all_leaving, self.children(child, id).partition) for child in children]

    def children(self, kind: NodeType, parent: Any) -> Range:
        """Where the children of a class are, of the parent with that id."""
        assert kind.parent is not None
        keys = self._keys.nodes[kind.model]
        values = kind.parent.part_values(parent, "parent.")
        known = {name: values[name] for name in keys.parent_rest}
        return Range(self._accesses.children[kind.model], keys.partition.render(values), known)

    def belongs_to(self, kind: NodeType, node: str, item: Item, told: EntityType | None) -> bool:
        """Whether an item in the partition of a node is the node itself, an edge that leaves it, or a child of it.

        `told` is the class of the item.
        """
        return self._reader.belongs_to(kind, node, item, told)

    def into(self, kind: EdgeType, target: Any) -> Range:
        access = self._accesses.arriving[kind.model]
        if access is None:
            if self._keys.texts.declared:
                raise InvalidModel(self._not_together(kind, "target"))
            raise InvalidModel(
                f"the layout has no reverse index, so {kind.name} edges cannot be found from their target; "
                f"give it one with reverse=Index(…)"
            )
        if kind.symmetric:
            return self._at_source(access, kind, target)
        if access.partition is not None:
            return _told_range(access, access.partition, kind.target.part_values(target, "target."))
        return Range(access, self.node_text(kind.target, target))

    def ranges_into(self, kind: EdgeType, target: Any) -> list[Range]:
        """Where the edges of a class are that arrive at a node: one range, or one in each shard of an index."""
        return self.into(kind, target).parts

    def ranges_at(self, kind: NodeType, id: Any, *, must_find: bool = True) -> list[Range]:
        """Where all edges are that arrive at a node; edges of other nodes can be there too.

        Edges that cannot be found raise, or are left out if they need not be found.
        """
        edges = [edge for edge in self.schema.edges.values() if edge.target.covers(kind) and not edge.symmetric]
        if not edges or self._accesses.all_arriving is not None:
            return [self.collection(kind, id, arriving=True)] if edges else []
        if not must_find:
            edges = [edge for edge in edges if self._accesses.arriving[edge.model] is not None]
        node = Ref(kind.model, id)
        with _leaving_told():
            found = [(edge, each) for edge in edges for each in self.ranges_into(edge, edge.target.id(node))]
        return [self._complete(kind, edge, each, "arrive at") if must_find else each for edge, each in found]

    def collection(self, kind: NodeType, id: Any, *, arriving: bool) -> Range:
        """Where the node and its edges are. If it shares its partition, only its own items are read from there."""
        kind, id = kind.of(id)
        text = self.node_text(kind, id)
        if not arriving and self._keys.nodes[kind.model].rest:
            stem, values = self._accesses.stems[kind.model], kind.part_values(id)
            partition = self._keys.nodes[kind.model].partition.render(values)
            start = stem.render(values) if stem else ""
            return Range(self._accesses.own(kind, text, start), partition, stem=start)
        access = self._accesses.all_arriving if arriving else self._accesses.all_leaving
        return self._together_at(kind, id) if access is None else Range(access, text)

    def _together_at(self, kind: NodeType, id: Any) -> Range:
        """Where all edges are that arrive at a node, if a declared index has them in one partition."""
        if not self._keys.texts.declared:
            raise InvalidModel(
                f"the layout has no reverse index, so edges that arrive at a {kind.name} cannot be found; "
                f"give it one with reverse=Index(…)"
            )
        node = Ref(kind.model, id)
        edges = [edge for edge in self.schema.edges.values() if edge.target.covers(kind) and not edge.symmetric]
        found = {edge.name: self.into(edge, edge.target.id(node)) for edge in edges}
        places = {(each.access.index, each.partition, each.number is None, not each.known) for each in found.values()}
        if len(places) != 1 or not all(places.copy().pop()):
            where = "; ".join(
                f"{name} in {each.access.index or 'the table'} at {each.partition!r}" for name, each in found.items()
            )
            raise InvalidModel(
                f"the layout has no reverse index, and no declared index has all edges that arrive at a {kind.name} in "
                f"one partition ({where or 'no class of edges arrives there'}); read each class with into, or give the "
                f"layout reverse=Index(…)"
            )
        one = next(iter(found.values()))
        return Range(self._accesses.at_target(kind, node, one.access), one.partition)

    def _complete(self, kind: NodeType, edge: EdgeType, found: Range, verb: str) -> Range:
        if not found.access.is_sparse:
            return found
        raise InvalidModel(
            f"the index {found.access.index!r} does not hold {edge.name} edges whose key would have a part that is "
            f"None, so not all that {verb} a {kind.name} can be found; give the layout reverse=Index(…), or delete "
            f'with edges="found", which leaves them'
        )

    def scan(self, kind: EntityType | None) -> ScanAccess:
        """Where a scan finds the items of a class; None for everything in the graph."""
        return self._scans.of(kind)


def _told_range(access: EdgeAccess, partition: Template, values: Mapping[str, Any]) -> Range:
    """The range of an access whose partition key is made of these values, in all its shards."""
    known = {name: values[name] for name in access.rest}
    mixed = [part for part in (access.sort.parts if access.sort else ()) if part.among and part.name in known]
    if mixed:
        access = only_at(access, mixed[0], known)
    if not isinstance(partition, ShardedTemplate):
        return Range(access, partition.render(values), known)

    def at(shard: int) -> str:
        return partition.render({**values, SHARD: shard})

    return Range(access, at(partition.number.all[0]), known, number=partition.number, at=at)


def _check_bounds(keys: NodeKeys, values: Mapping[str, Any]) -> None:
    """Refuses an id outside the bounds of its field, which no validator has seen: its key may be that of another."""
    for part in keys.bounded:
        value = values[part.name]
        if isinstance(value, int) and not part.holds(value):
            bounds = [] if part.least is None else [f"at least {part.least}"]
            bounds += [] if part.most is None else [f"at most {part.most}"]
            raise InvalidKey(f"{keys.kind.name}.{part.name} must be {' and '.join(bounds)}, got {value}")


@contextmanager
def _leaving_told() -> Iterator[None]:
    """Says, where edges cannot be found, that a delete may leave them."""
    try:
        yield
    except InvalidModel as error:
        raise InvalidModel(f'{error}, or delete with edges="found", which leaves them') from None


def _with_ends(kind: EdgeType, values: Mapping[str, Any], source: Any, target: Any) -> dict[str, Any]:
    """Values with those of both ids, by the names of their parts."""
    if kind.single_ends is None:
        return {**values, **kind.end_values(source, target)}
    # Most ids are one value; for these, dicts of parts would only cost time.
    near, far = kind.single_ends
    return {**values, near: source, far: target}


def _keep(entity: Entity, keys: NodeKeys | EdgeKeys, item: Item) -> None:
    """Adds to an item what no field explained when the instance was read, unless that was another entity."""
    whose, others = entity.__dict__[UNEXPLAINED]
    identity = identity_of(entity)
    if isinstance(keys.kind, EdgeType) and keys.kind.symmetric and whose != identity:
        whose = (whose[1], whose[0], *whose[2:])
    if whose == identity and others is not None:
        item.update((name, value) for name, value in others.items() if name not in keys.explained)
