"""A layout that is bound to classes, without any I/O: its tenants, adjoin's own items, and what changes write.

`entity_items` has the items of nodes and edges, and `edge_ranges` where they are found. All three are one class, which
plans know as `BoundLayout`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidItem, InvalidKey
from adjoin.expressions import Action, Remove, Set, Value, attribute
from adjoin.fields import RelativeChange
from adjoin.layouts.edge_ranges import EdgeRanges
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, in_index_key
from adjoin.layouts.fitting import Fit, fit
from adjoin.layouts.forms import ItemForm, forms_of
from adjoin.layouts.interface import OWNER, REVISION, KeyTemplates, Satellite, Shape
from adjoin.layouts.keys import SEPARATOR, SHARD, Template
from adjoin.layouts.managed_keys import without
from adjoin.layouts.shard_numbers import ShardedTemplate
from adjoin.layouts.table_keys import text_of
from adjoin.model import has_hook
from adjoin.reserved import is_tenant, tenant_prefix
from adjoin.schema import Schema
from adjoin.values import AttributeValue, Item

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

_KNOWN_TENANTS = 256
"""How many tenants' templates are kept in memory; those of other tenants are compiled again."""


class BoundLayout(EdgeRanges):
    """An adjacency list that is bound to the classes of one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None = None,
        like: BoundLayout | None = None,
        lead: str | None = None,
    ) -> None:
        super().__init__(layout, schema, tenant, like, lead)
        self._tenants: dict[str, BoundLayout] = {}

    # --- changes of classes --------------------------------------------------------------------

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

    def entry_templates(self, kind: EntityType) -> Mapping[str, Template]:
        """The templates of those attributes that have one, by attribute."""
        return self._keys_of(kind).index_keys

    def order_indexes(self, kind: EntityType) -> list[str]:
        """The indexes that keep the order of a class of edges in keys which adjoin makes by itself."""
        keys = self._keys_of(kind)
        if not isinstance(keys, EdgeKeys) or keys.order_index is None:
            return []
        indexes = (keys.order_index, self._keys.reverse)
        return [index.name for index in indexes if index is not None and index.sort is None]

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
        if index is not None and (kind.indexed or kind.elements) and name == index.partition_key:
            return index.is_same_scope(kind, one.get("S", ""), other.get("S", ""))
        if not isinstance(template, ShardedTemplate):
            return False
        told = [template.match(text_of(each)) for each in (one, other)]
        return None not in told and len({repr({**(each or {}), SHARD: ""}) for each in told}) == 1

    def can_have(self, kind: NodeType, id: Any) -> bool:
        """Whether a node of a class can have that id."""
        try:
            self.node_key(kind, id)
        except InvalidKey:
            return False
        return True

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

    def tenant_of_key(self, key: Item) -> str | None:
        """The tenant to which an item belongs if its partition key begins with one; for a layout without a tenant."""
        if not self._are_text or self.tenant is not None:
            return None
        name, rest = self._tenant_and_rest(key[self._pk]["S"])
        return name if rest and is_tenant(name) else None

    def is_own_record(self, key: Item) -> bool:
        """Whether the key alone shows that an item is adjoin's own, and so not a node or an edge of any tenant."""
        if not self.is_bookkeeping(key):
            return False
        name, rest = self._tenant_and_rest(key[self._pk]["S"])
        if not name or not rest or self.tenant is not None:
            return True
        # With the tenant's prefix, the key of a tenant's node can look like that of an index copy. So check it without.
        return self.is_bookkeeping({self._pk: {"S": rest}, self._sk: key[self._sk]}) or not is_tenant(name)

    def _is_own(self, item: Item) -> bool:
        """Whether an item is a node or an edge, judged by its keys."""
        return not self.is_bookkeeping(item) and self.kind_of(item) is not None

    # --- adjoin's own items --------------------------------------------------------------------

    def deletion_key(self, node: str) -> Item:
        """The key of the deletion record of the node with that node key; only for keys that are text."""
        return {self._pk: {"S": node}, self._sk: {"S": self._deletion_sort}}

    def is_bookkeeping(self, item: Item) -> bool:
        """Whether an item is adjoin's own or another tenant's, and so not a node or an edge of this graph."""
        if not self._are_text:
            return not text_of(item[self._pk]).startswith(self._keys.prefix)
        partition: str = item[self._pk]["S"]
        if item[self._sk]["S"] == self._deletion_sort or self._satellites.is_at(partition):
            return True
        if not self._keys.prefix:
            return self._keys.record_of_tenant.match(partition) is not None
        return not partition.startswith(self._keys.prefix)

    def shard_map_key(self, scope: str) -> Item:
        """The key of the shard map of an indexed field; all shard maps are in one partition."""
        return self._satellites.record_key("SHARDS", scope)

    def shard_number_key(self, attribute: str) -> Item:
        """The key of the record of the number of shards of a key attribute; all these records are in one partition."""
        return self._satellites.table_record_key("SHARDS", attribute)

    def in_index_key(self, kind: EntityType, names: Collection[str]) -> str | None:
        """One of these fields that is part of an index key; None if none is."""
        return in_index_key(self._keys_of(kind), names)

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
        return bool(kind.unique or kind.elements) or len(kind.indexed) > 1

    def satellites(self, kind: EntityType, items: Sequence[Item], values: Mapping[str, Any]) -> list[Satellite]:
        """The satellites of an instance with these items and values, also those that must not exist."""
        if not self.has_satellites(kind):
            return []
        first = self._first_of(*items)
        if self.managed.indexed[kind.model]:
            # An instance may have been read a while ago. The item has what is stored now.
            values = {**values, **self.managed.values(kind, first)}
        return self._satellites.of(kind, first, values)

    def is_shown(self, kind: EntityType, item: Item) -> bool:
        """Whether an item stands for its entity; of the two items of a symmetric edge, one does."""
        if not isinstance(kind, EdgeType) or not kind.symmetric:
            return True
        source, target = self.ends(kind, item)
        return source <= target

    def differs_at_ends(self, kind: EntityType, fields: Iterable[str]) -> bool:
        """Whether one of these fields may have different values in the two items of a symmetric edge."""
        managed = {"source", "target", *self.rules.maintained(kind)}
        return any(name.partition(".")[0] in managed for name in fields)

    def is_ranked(self, kind: EntityType) -> bool:
        """Whether a managed field of a class is in an index key."""
        return bool(self.managed.fields[kind.model])

    def index_copies(self, kind: EntityType, item: Item) -> list[Satellite]:
        """The index copies of a stored item, also those that must not exist."""
        kind = self._reader.member(kind, item)
        entity = self.decode_as_far(kind, item)
        if entity is None or not self.has_satellites(kind):
            return []
        return self._satellites.copies(kind, item, {**entity.__dict__, **self.managed.values(kind, item)})

    def satellites_beside(self, kind: EntityType, item: Item) -> list[Satellite]:
        """The satellites of a stored item, derived from its attributes, to be removed with it."""
        if not self.has_satellites(kind):
            return []
        managed = self.managed.values(kind, item) if self.managed.indexed[kind.model] else {}
        there = {name for name, value in managed.items() if value is not None}
        if not isinstance(kind, EdgeType):
            return self._satellites.beside(kind, item, there)
        first = item | self._first_of(self.key_of(item), *self.twin_keys(kind, item))
        return [*self._satellites.beside(kind, first, there), *self.end_claims(kind, item)]

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
        return self._satellites.copy_keys(kind, key) if len(kind.indexed) > 1 else []

    def has_copies(self, kind: EntityType) -> bool:
        """Whether entities of a class may have index copies."""
        return len(kind.indexed) > 1 or bool(kind.elements)

    def element_keys(self, kind: EntityType, item: Item) -> list[Item]:
        """The keys of the index copies of a stored item for the elements of its fields."""
        return self._satellites.element_keys(kind, item) if kind.elements else []

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

    def is_of_declared_field(self, kind: EntityType, satellite: Item) -> bool:
        """Whether a stored claim or index copy is for a field that its class has such satellites for now."""
        if OWNER in satellite:
            ends = ("end",) if isinstance(kind, EdgeType) and kind.symmetric else kind.claimed
            return self._satellites.claimed_field(satellite) in ends
        key, whole = self.key_of(satellite), self._satellites.restored(satellite)
        return key in self.copy_keys(kind, whole) or key in self.element_keys(kind, whole)

    def changed(self, kind: EntityType, item: Item, entity: Entity) -> Item:
        """A stored item with the fields of an instance; its other attributes stay."""
        fresh = next(each for each in self.items(entity) if self.key_of(each) == self.key_of(item))
        keys = self._keys_of(kind)
        own = {*kind.attributes.values(), *keys.index_keys, REVISION}
        if self.overloaded is not None:
            own |= {self.overloaded.partition_key, self.overloaded.sort_key}
        if isinstance(kind, EdgeType):
            # Each of the two items of a symmetric edge has managed fields of its own.
            managed = {kind.attributes[name] for name in self.rules.maintained(kind)}
            own, fresh = own - managed, without(fresh, managed)
        after = {name: value for name, value in item.items() if name not in own} | fresh
        return self.with_managed_keys(kind, after)

    def found(self, kind: EntityType, item: Item, some: tuple[str, ...] | None = None) -> Entity | None:
        """The instance that an item is, which was found through the index of indexed fields and may be a copy.

        `some` are the fields that it has; None for all.
        """
        whole = self._satellites.restored(item)
        return self._reader.readers[kind.model](whole) if some is None else self.decode_some(kind, whole, some)

    # --- changes of index keys -----------------------------------------------------------------

    def needed_for_index(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
        """The other fields that are needed to write the index keys after these changes."""
        members, templates = self._members[kind.model], self._keys_of(kind).index_keys
        if members.decisive.isdisjoint(changes):
            return []
        if members.is_sparse:
            # A relative change is of a field that has a value, and stays one unless the field is in a key.
            kept = {name for name, each in changes.items() if isinstance(each, RelativeChange)} - members.parts
            touched = members.changed({name: each for name, each in changes.items() if name not in kept})
        else:
            touched = members.changed(changes)
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
        if members.at_risk and not members.at_risk.keys().isdisjoint(values):
            members.check_kept(values, {**dict.fromkeys(templates, True), **found})
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
            self._keys.telling(keys),
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

    # --- what a class can read -----------------------------------------------------------------

    def decode_some(self, kind: EntityType, item: Item, names: tuple[str, ...]) -> Entity | None:
        """The instance with only some fields that an item is; None if it is of another class."""
        return self._reader.read_some(kind, item, names)

    def some_attributes(self, kind: EntityType, names: Sequence[str]) -> tuple[str, ...]:
        """The attributes that have to be read for some fields, with those that tell the class, the id and the ends."""
        keys = self._keys_of(kind)
        family = kind.family if isinstance(kind, NodeType) else ()
        found = [name for each in (kind, *family) for name in self.scan(each).attributes]
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
