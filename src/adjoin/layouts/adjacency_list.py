"""The adjacency list: a node and its edges in one partition, a reverse index for the other way.

    PK            SK                       GSI1PK       GSI1SK
    STUDENT#S1    #META                                                           the node
    STUDENT#S1    ENROLLMENT#COURSE#C1     COURSE#C1    ENROLLMENT#STUDENT#S1     an edge

The default templates escape what they hold, so any id is safe. Templates of your own are literal,
because a table that others write too does not know the escape; `escape=True` turns it on.

A symmetric edge is two items, one in the partition of each end. An ordered edge whose order field is
no part of its key has its order in an index of its own, so that the two ends alone still find it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjoin.bookkeeping import OWN, OWN_NAMES
from adjoin.declarations import rules_of
from adjoin.declared import check_declared
from adjoin.errors import InvalidItem, InvalidKey, InvalidModel
from adjoin.expressions import Action, Condition, Exists, Remove, Set, Value, attribute
from adjoin.layouts.adjacency_accesses import AdjacencyAccesses
from adjoin.layouts.adjacency_checks import check
from adjoin.layouts.adjacency_keys import DELETION_SORT_KEY, AdjacencyKeys, EdgeKeys, NodeKeys
from adjoin.layouts.adjacency_reader import AdjacencyReader
from adjoin.layouts.fitting import Fit, fit
from adjoin.layouts.interface import REVISION, Index, Keys, KeyTemplates, Range, Satellite, Shape
from adjoin.layouts.keys import SEPARATOR, Template, check_length, key_text, value_of
from adjoin.layouts.ledgers import Ledgers
from adjoin.layouts.overloaded import OverloadedIndex
from adjoin.layouts.satellites import Satellites
from adjoin.layouts.shard_book import ShardBook
from adjoin.model import Edge, Node
from adjoin.rules import Rules
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, NodeType, Schema
from adjoin.tables import Throughput
from adjoin.tenants import is_tenant
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, item_size

_SHORTER = "a shorter id"
_RECORD_OF_TENANT = re.compile(rf"[^{SEPARATOR}]+{SEPARATOR}{OWN}")
"""What the keys of items begin with that adjoin records about tenants."""
_KNOWN_TENANTS = 256
"""Tenants whose templates are kept; those of others are compiled again."""


@dataclass(frozen=True)
class AdjacencyList:
    """How an adjacency list is laid out; every name and template can be fitted to an existing table."""

    table: str = "adjoin"
    partition_key: str = "PK"
    sort_key: str = "SK"
    node: str | None = None
    """The sort key of a node's own item: a constant, or "{node}" for the node's key itself."""
    edge: str | None = None
    """The sort key of an edge."""
    type_attribute: str | None = None
    """An attribute that holds the label, where keys alone should not tell."""
    reverse: Index | None = Index("GSI1", "GSI1PK", "GSI1SK")
    ordered: Index = Index("GSI2", "GSI2PK", "GSI2SK")
    """The index for the order of edges whose key does not hold it; made only when a class needs it."""
    indexed: Index = Index("GSI3", "GSI3PK", "GSI3SK")
    """The index for all indexed fields; made only when a class has one."""
    shards: int | None = None
    """How many shards each indexed field has in that index; None for as many as it turns out to need."""
    keys: Mapping[type[Any], Keys] = field(default_factory=dict)
    escape: bool | None = None
    """Whether keys percent-encode what would end a part; by default, if all templates are the default."""
    throughput: Throughput | None = None
    """Provisioned units; an index without its own has as many as the table."""
    stream: bool = True
    """Whether the table has a change stream."""
    point_in_time_recovery: bool = False
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_own_templates(self) -> bool:
        reverse = self.reverse and (self.reverse.partition or self.reverse.sort)
        return bool(self.node or self.edge or self.keys or reverse)

    def named(self, table: str) -> AdjacencyList:
        return replace(self, table=table)

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundAdjacencyList:
        return BoundAdjacencyList(self, schema, tenant)


class BoundAdjacencyList:
    """An adjacency list for the classes of one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None = None,
        like: BoundAdjacencyList | None = None,
    ) -> None:
        """`like` is the same for another tenant: what is about classes alone is shared with it."""
        self.schema = schema
        self.table = layout.table
        self.tenant = tenant
        self._layout = layout
        self._tenants: dict[str, BoundAdjacencyList] = {}
        self._keys: AdjacencyKeys = AdjacencyKeys(layout, schema, tenant, None if like is None else like._keys)
        check(self._keys)
        self.overloaded: OverloadedIndex | None = None
        if self._keys.overloaded is not None:
            book = ShardBook(layout.shards)
            self.overloaded = OverloadedIndex(self._keys.overloaded, schema, self._keys.prefix, book)
        self._satellites = Satellites(self._keys, self.overloaded)
        self.rules: Rules = rules_of(schema) if like is None else like.rules.of_a_tenant()
        check_declared(self.rules)
        self.ledgers = Ledgers(self._keys)
        self._deletion_sort = self._keys.tenant_part(layout.sort_key) + DELETION_SORT_KEY
        self._reader = AdjacencyReader(
            self._keys, layout.partition_key, layout.sort_key, layout.type_attribute, self.rules
        )
        self.definition = self._keys.definition
        self.present: Condition = Exists(attribute(layout.partition_key))
        self._pk, self._sk, self._type = layout.partition_key, layout.sort_key, layout.type_attribute
        self._start_keys: dict[str | None, tuple[str, ...]] = {None: (self._pk, self._sk)}
        for index in self.definition.indexes:
            names = (self._pk, self._sk, *(key.name for key in index.keys))
            self._start_keys[index.name] = tuple(dict.fromkeys(names))
        self._limits = {index.partition.name: MAX_PARTITION_KEY_SIZE for index in self.definition.indexes}
        self._check_maintained()
        self._accesses = AdjacencyAccesses(self._keys, self._reader)
        self._fits: dict[type[Any], Fit] = {}

    # --- tenants -------------------------------------------------------------------------------

    def for_tenant(self, tenant: str) -> BoundAdjacencyList:
        found = self._tenants.pop(tenant, None) or BoundAdjacencyList(self._layout, self.schema, tenant, self)
        self._tenants[tenant] = found
        for oldest in list(self._tenants)[:-_KNOWN_TENANTS]:
            self._tenants.pop(oldest, None)
        return found

    def tenant_in(self, item: Item) -> str | None:
        name, _, rest = item[self._pk]["S"].partition(SEPARATOR)
        if not rest or self.tenant is not None or not is_tenant(name) or self._is_own(item):
            return None
        prefix = name + SEPARATOR
        bare = dict(item)
        for key in self._keys.partition_keys & item.keys():
            text = item[key].get("S", "")
            if key == self._sk and not text.startswith(prefix):
                return None
            bare[key] = {"S": text.removeprefix(prefix)}
        return name if self._is_own(bare) else None

    def _is_own(self, item: Item) -> bool:
        """Whether an item is a node or an edge, as far as its keys tell."""
        return not self.is_bookkeeping(item) and self.kind_of(item) is not None

    # --- keys and items ------------------------------------------------------------------------

    def node_text(self, kind: NodeType, id: Any) -> str:
        return self._keys.nodes[kind.model].partition.render({"id": id})

    def node_key(self, kind: NodeType, id: Any) -> Item:
        keys, values = self._keys.nodes[kind.model], {"id": id}
        return self._key(kind, keys.partition.render(values), keys.sort.render(values))

    def id_in(self, kind: NodeType, text: str) -> Any:
        told = self._keys.nodes[kind.model].partition.match(text)
        if told is None:
            raise InvalidKey(f"{text!r} is not the key of a {kind.name}; correct the item that names it")
        return kind.id(value_of(kind.id_type, told["id"]))

    def deletion_key(self, node: str) -> Item:
        return {self._pk: {"S": node}, self._sk: {"S": self._deletion_sort}}

    def is_bookkeeping(self, item: Item) -> bool:
        if item[self._sk] == {"S": self._deletion_sort} or self._satellites.is_one(item):
            return True
        partition: str = item[self._pk]["S"]
        if not self._keys.prefix:
            return _RECORD_OF_TENANT.match(partition) is not None
        return not partition.startswith(self._keys.prefix)

    def shard_map_key(self, scope: str) -> Item:
        return self._satellites.record_key("SHARDS", scope)

    def key_fields(self, kind: EdgeType) -> tuple[str, ...]:
        keys = self._keys.edges[kind.model]
        return tuple(name for name in keys.fields if name != keys.target_field)

    def edge_key(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> Item:
        keys = self._keys.edges[kind.model]
        values = {**fields, "source.id": source, "target.id": target}
        if keys.target_field is not None:
            values.setdefault(keys.target_field, target)
            self.node_text(kind.target, target)
        partition, sort = keys.partition.render(values), keys.sort.render(values)
        if keys.may_meet_node and sort == self._keys.nodes[kind.source.model].sort.render({"id": source}):
            raise InvalidKey(
                f"{kind.name} from {source!r} to itself would have the key of the node itself; "
                f"use a layout whose edge template holds {{label}}"
            )
        return self._key(kind, partition, sort)

    def ends(self, kind: EdgeType, item: Item) -> tuple[str, str]:
        return item[self._pk]["S"], self.node_text(kind.target, self._reader.target_of(kind, item))

    def _key(self, kind: EntityType, partition: str, sort: str) -> Item:
        if len(partition) > 512 or len(sort) > 256 or not (partition.isascii() and sort.isascii()):
            check_length(partition, MAX_PARTITION_KEY_SIZE, f"the key {self._pk!r} of a {kind.name}", _SHORTER)
            check_length(sort, MAX_SORT_KEY_SIZE, f"the key {self._sk!r} of a {kind.name}", _SHORTER)
        return {self._pk: {"S": partition}, self._sk: {"S": sort}}

    def items(self, entity: Entity) -> tuple[Item, ...]:
        if isinstance(entity, Node):
            kind = self.schema.node(type(entity))
            keys = self._keys.nodes[kind.model]
            item = self.node_key(kind, entity.__dict__["id"])
            self._completed(item, keys, entity.__dict__, keys.record.encode(entity))
            return (self._indexed(kind, item, entity.__dict__),)
        edge_kind = self.schema.edge(type(entity))
        edge_keys = self._keys.edges[edge_kind.model]
        source, target, body = entity.source, entity.target, edge_keys.record.encode(entity)
        item = self._edge_item(edge_keys, entity, source, target, body)
        if not edge_kind.symmetric or source == target:
            return (self._indexed(edge_kind, item, entity.__dict__),)
        twin = self._edge_item(edge_keys, entity, target, source, body)
        self._indexed(edge_kind, self._first_of(item, twin), entity.__dict__)
        return item, twin

    def _first_of(self, *twins: Item) -> Item:
        """Which of the two items of a symmetric edge is in the index of its fields."""
        return min(twins, key=lambda item: item[self._pk]["S"])

    def _indexed(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> Item:
        """The item with its entry in the index of its first indexed field."""
        if self.overloaded is not None and kind.indexed:
            own, tail = self.overloaded.fields(kind)[0], self._satellites.tail(kind, item)
            item.update(self.overloaded.entry(own, values[own.name], tail, item_size(item)))
        return item

    def _edge_item(self, keys: EdgeKeys, edge: AnyEdge, source: Any, target: Any, body: Item) -> Item:
        values = {**edge.__dict__, "source.id": source, "target.id": target}
        item = self.edge_key(keys.kind, source, target, values)
        if keys.target_field is not None and key_text(values[keys.target_field]) != key_text(target):
            raise InvalidKey(
                f"{keys.kind.name}.{keys.target_field} is {values[keys.target_field]!r} but the target is "
                f"{target!r}; in the keys the two are one"
            )
        return self._completed(item, keys, values, body)

    def _completed(self, item: Item, keys: NodeKeys | EdgeKeys, values: Mapping[str, Any], body: Item) -> Item:
        if self._type:
            item[self._type] = {"S": keys.kind.label}
        for name, template in keys.index_keys.items():
            text = self._index_text(keys.kind, name, template, values)
            if text is not None:
                item[name] = {"S": text}
        item.update(body)
        return item

    def _index_text(self, kind: EntityType, name: str, template: Template, values: Mapping[str, Any]) -> str | None:
        """An index key, or None if one of its parts is: the node is then not in the index.

        An edge that is not in an index would not be found from its end, so its parts must be there.
        """
        if isinstance(kind, NodeType) and any(values[part.name] is None for part in template.parts):
            return None
        text = template.render(values)
        if len(text) > 256 or not text.isascii():
            limit = self._limits.get(name, MAX_SORT_KEY_SIZE)
            check_length(text, limit, f"the key {name!r} of a {kind.name}", _SHORTER)
        return text

    def in_index_key(self, kind: EntityType, names: Collection[str]) -> str | None:
        parts = [part.name for each in self._keys_of(kind).index_keys.values() for part in each.parts]
        return next((name for name in (*parts, *kind.indexed[:1]) if name in names), None)

    def _check_maintained(self) -> None:
        if self.rules:
            self._check_names()
        for kind in self.schema.types:
            name = self.in_index_key(kind, self.rules.maintained(kind))
            if name is not None:
                raise InvalidModel(
                    f"{kind.name}.{name} is filled in by itself, so it cannot be part of a key; "
                    f"take it out of order= and of the layout's templates"
                )
        found_by_index = [account.edge for account in self.rules.accounts if account.hop.direction == "into"]
        found_by_index += [copy.edge for copy in self.rules.copies if copy.end == "target"]
        if self._layout.reverse is None and found_by_index:
            raise InvalidModel(
                f"something is counted or copied at the target of {found_by_index[0].name}, but the layout has no "
                f"reverse index to find edges from there; give it one with reverse=Index(…)"
            )

    def _check_names(self) -> None:
        """What is recorded about aggregates and copies must not look like a key, or like a time to live."""
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

    def has_satellites(self, kind: EntityType) -> bool:
        return bool(kind.unique) or len(kind.indexed) > 1

    def satellites(self, kind: EntityType, items: Sequence[Item], values: Mapping[str, Any]) -> list[Satellite]:
        return self._satellites.of(kind, self._first_of(*items), values) if self.has_satellites(kind) else []

    def satellites_beside(self, kind: EntityType, item: Item) -> list[Satellite]:
        if not self.has_satellites(kind):
            return []
        twins = self.twin_keys(kind, item) if isinstance(kind, EdgeType) else []
        return self._satellites.beside(kind, item | self._first_of(self.key_of(item), *twins))

    def copy_keys(self, kind: EntityType, key: Item) -> list[Item]:
        return self._satellites.copy_keys(kind, key)

    def claim_key(self, kind: NodeType, name: str, value: Any) -> Item:
        return self._satellites.claim_key(kind, name, value)

    def copied_key(self, copy: Item) -> Item:
        return self.key_of(self._satellites.restored(copy))

    def claimed_by(self, claim: Item) -> NodeType | None:
        label = self._satellites.claimed_label(claim)
        return next((kind for kind in self.schema.nodes.values() if kind.label == label), None)

    def changed(self, kind: EntityType, item: Item, entity: Entity) -> Item:
        fresh = next(each for each in self.items(entity) if self.key_of(each) == self.key_of(item))
        keys = self._keys_of(kind)
        own = {*kind.attributes.values(), *keys.index_keys, REVISION}
        if self.overloaded is not None:
            own |= {self.overloaded.partition_key, self.overloaded.sort_key}
        return {name: value for name, value in item.items() if name not in own} | fresh

    def found(self, kind: EntityType, item: Item) -> Entity | None:
        return self._reader.readers[kind.model](self._satellites.restored(item))

    # --- changes of index keys -----------------------------------------------------------------

    def needed_for_index(self, kind: EntityType, identity: Mapping[str, Any], changes: Collection[str]) -> list[str]:
        templates = self._keys_of(kind).index_keys.values()
        parts = [[part.name for part in each.parts] for each in templates]
        needed = dict.fromkeys(name for names in parts if not set(changes).isdisjoint(names) for name in names)
        return [name for name in needed if name not in identity and name not in changes]

    def index_actions(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Action]:
        actions: list[Action] = []
        values = {**identity, **changes}
        for name, template in self._keys_of(kind).index_keys.items():
            parts = [part.name for part in template.parts]
            if not any(part in changes for part in parts):
                continue
            text = self._index_text(kind, name, template, values)
            place = attribute(name)
            actions.append(Remove(place) if text is None else Set(place, Value({"S": text})))
        return actions + self._entry_actions(kind, identity, changes)

    def _entry_actions(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Action]:
        """What a change of the first indexed field does to the entry that the item itself is."""
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
        """The item's key; None for the half of a symmetric edge that is in no index of fields."""
        if isinstance(kind, NodeType):
            return self.node_key(kind, identity["id"])
        assert isinstance(kind, EdgeType)
        source, target = identity["source.id"], identity["target.id"]
        key = self.edge_key(kind, source, target, identity)
        twin = self.edge_key(kind, target, source, identity) if kind.symmetric else key
        return key if self._first_of(key, twin) == key else None

    def encode_field(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        record = self._keys_of(kind).record
        return None if record.is_absent(name, value) else record.encode_field(name, value)

    def filterable(self, kind: EntityType, name: str) -> str:
        stored = kind.attribute(name)
        if name not in self._keys_of(kind).record.stored_names:
            raise InvalidKey(
                f"{kind.name}.{name} lives in the key and is not stored beside it, so it cannot be filtered "
                f"by; narrow the query with within({name}=…) instead"
            )
        return stored

    def _keys_of(self, kind: EntityType) -> NodeKeys | EdgeKeys:
        return self._keys.edges[kind.model] if isinstance(kind, EdgeType) else self._keys.nodes[kind.model]

    def shape(self, kind: EntityType) -> Shape:
        keys = self._keys_of(kind)
        templates = {self._pk: keys.partition, self._sk: keys.sort, **keys.index_keys}
        written = {name: str(template) for name, template in templates.items()}
        if self._type:
            written[self._type] = kind.label
        stored = keys.record.stored_names
        fields = {name: stored_as for name, stored_as in kind.attributes.items() if name in stored}
        return self._satellites.shaped(kind, Shape(written, fields))

    def key_templates(self, kind: EntityType) -> KeyTemplates:
        keys = self._keys_of(kind)
        return KeyTemplates(
            keys.partition,
            keys.sort,
            keys.index_keys,
            target_field=keys.target_field if isinstance(keys, EdgeKeys) else None,
            may_meet_node=isinstance(keys, EdgeKeys) and keys.may_meet_node,
            type_attribute=self._type,
            stored=keys.record.stored_names,
        )

    # --- items back to instances ---------------------------------------------------------------

    def key_of(self, item: Item) -> Item:
        return {self._pk: item[self._pk], self._sk: item[self._sk]}

    def twin_keys(self, kind: EdgeType, item: Item) -> list[Item]:
        edge = self.decode(kind, item) if kind.symmetric else None
        if not isinstance(edge, Edge) or edge.source == edge.target:
            return []
        return [self.edge_key(kind, edge.target, edge.source, edge.__dict__)]

    def start_after(self, item: Item, index: str | None) -> Item:
        return {name: item[name] for name in self._start_keys[index]}

    def kind_of(self, item: Item) -> EntityType | None:
        return self._reader.kind_of(item)

    def decode(self, kind: EntityType, item: Item) -> Entity | None:
        return self._reader.readers[kind.model](item)

    def decode_as_far(self, kind: EntityType, item: Item) -> Entity | None:
        try:
            return self.decode(kind, item)
        except InvalidItem:
            return self._reader.read_as_far(kind, item)

    def fit(self, kind: EntityType) -> Fit:
        found = self._fits.get(kind.model)
        if found is None:
            stored = self._keys_of(kind).record.stored_names
            found = self._fits[kind.model] = fit(kind, stored, self.rules.maintained(kind), self._type)
        return found

    def read(self, item: Item) -> Entity | None:
        return self._reader.read(item)

    # --- where to look -------------------------------------------------------------------------

    def out(self, kind: EdgeType, source: Any) -> Range:
        return Range(self._accesses.leaving[kind.model], self.node_text(kind.source, source))

    def into(self, kind: EdgeType, target: Any) -> Range:
        access = self._accesses.arriving[kind.model]
        if access is None:
            raise InvalidModel(
                f"the layout has no reverse index, so {kind.name} edges cannot be found from their target; "
                f"give it one with reverse=Index(…)"
            )
        return Range(access, self.node_text(kind.target, target))

    def collection(self, kind: NodeType, id: Any, *, arriving: bool) -> Range:
        text = self.node_text(kind, id)
        access = self._accesses.all_arriving if arriving else self._accesses.all_leaving
        if access is None:
            raise InvalidModel(
                f"the layout has no reverse index, so what arrives at a {kind.name} cannot be found; "
                f"give it one with reverse=Index(…)"
            )
        return Range(access, text)
