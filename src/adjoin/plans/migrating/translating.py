"""Items of one table as items of another, with other keys: what a stored node or edge is in the new layout.

An item of the old table is read as a node or an edge, and written as the new layout writes it. Each item becomes one
item of the new table, so that both items of a symmetric edge move by themselves, and its index copies and claims with
it. What has no place in fields is kept as well:

- attributes that no field explains, unless they are dropped;
- the mark of a delete that has not ended, and the deletion record, with the node keys of the new layout;
- when an edge of nodes that can expire was written.

Aggregates are not taken along. They are counted anew in the new table, because their ledgers have keys of their own.

Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidItem, InvalidKey, InvalidRequest, InvalidValue
from adjoin.field_types import problems_in
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, REVISION, WRITTEN, Satellite
from adjoin.model import SHARDS_READ, UNEXPLAINED, Ref, identity_of
from adjoin.plans.deletion import TOKENS
from adjoin.plans.migrating.completing import FieldChanges, Fill, filled_by
from adjoin.plans.steps.again import new_revision
from adjoin.values import Item

UNREADABLE = (InvalidItem, InvalidKey, InvalidValue)
"""What a class or a layout raises for an item that does not fit it."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A node or an edge as it is stored in the new table."""

    layout: BoundLayout
    """The new layout, for the tenant of the entity."""
    kind: EntityType
    entity: Any
    item: Item
    satellites: tuple[Satellite, ...]
    beside: Item
    """Attributes that no put writes: the mark of a delete, the time of the write, summaries."""

    @property
    def key(self) -> Item:
        return self.layout.key_of(self.item)


class Translation:
    """From the items of one layout to those of another."""

    def __init__(self, old: BoundLayout, new: BoundLayout, field_changes: FieldChanges) -> None:
        self.old, self.new, self._field_changes = old, new, field_changes
        self._kinds = {kind.model: _counterpart(kind, old, new) for kind in old.schema.types}
        self._models = {model: kind.model for model, kind in self._kinds.items()}
        self._aggregates = {
            kind.model: frozenset(
                kind.attributes[rule.field]
                for rule in new.rules.declared
                if rule.field is not None and rule.node is kind.whole
            )
            for kind in new.schema.types
        }
        summaries = {(summary.node.model, summary.field) for summary in new.rules.summaries}
        self._summaries = {
            kind.model: tuple(kind.attributes[name] for model, name in summaries if model is kind.whole.model)
            for kind in new.schema.types
        }
        self._claimed = {kind.model: new.explained(kind) - {*kind.attributes.values()} for kind in new.schema.types}
        """Attributes that the new layout writes besides fields."""

    # --- nodes and edges -----------------------------------------------------------------------

    def owner(self, item: Item) -> tuple[BoundLayout, EntityType] | None:
        """The old layout for the tenant of an item, and its class; None for what is neither a node nor an edge."""
        old = self.old
        kind = None if old.is_bookkeeping(item) else old.kind_of(item)
        if kind is None and (tenant := old.tenant_in(item)) is not None:
            old = old.for_tenant(tenant)
            kind = old.kind_of(item)
        return None if kind is None else (old, kind)

    def moved(self, item: Item) -> Moved | None:
        """The entity that an item is, as it is in the new table; None for an item of no class.

        Raises one of `UNREADABLE` for an item that does not fit its class or the new layout.
        """
        told = self.owner(item)
        if told is None:
            return None
        old, kind = told
        read = old.decode(kind, item)
        if read is None:
            return None
        new = self.new if old.tenant is None else self.new.for_tenant(old.tenant)
        kind = self._kinds[type(read)]
        entity = self._entity(read, kind, item)
        made = new.items(entity)
        # The keys of an edge that hold copied fields are made of the values that it has; those of nodes, of aggregates,
        # come with what maintenance counts.
        own = new.with_managed_keys(kind, made[0]) if isinstance(kind, EdgeType) else made[0]
        if lost := [name for name in self._aggregates[kind.model] if name in own]:
            own = {name: value for name, value in own.items() if name not in lost}
        satellites: list[Satellite] = []
        if new.has_satellites(kind):
            own[REVISION] = new_revision()
            if len(made) == 1 or new.key_texts(own) <= new.key_texts(made[1]):
                satellites = new.satellites(kind, made, entity.__dict__)
        beside = self._beside(old, new, kind, item)
        return Moved(new, kind, entity, {**own, **beside} if beside else own, tuple(satellites), beside)

    def is_other(self, item: Item) -> bool:
        """Whether an item is neither a node nor an edge nor adjoin's own, so that it stays in the old table."""
        if self.old.is_bookkeeping(item) or self.old.is_of_a_tenant(item):
            return False
        kind = self.old.kind_of(item)
        return kind is None or self.old.decode_as_far(kind, item) is None

    def _entity(self, read: Entity, kind: EntityType, item: Item) -> Entity:
        """The instance of the class of the new graph."""
        values = read.__dict__
        values.pop(SHARDS_READ, None)
        drops = self._field_changes.drops.get(kind.word, frozenset())
        if type(read) is kind.model and not drops and not self._field_changes.fills:
            if UNEXPLAINED in values:
                self._refuse_hidden(kind, values[UNEXPLAINED][1])
            return read
        entity = read if type(read) is kind.model else self._converted(read, kind, item)
        former = {stored for name, stored in self._old_kind(read).attributes.items() if name not in kind.fields}
        others = dict((values.get(UNEXPLAINED) or (None, {}))[1] or {})
        others |= {name: item[name] for name in former if name in item and name not in kind.attributes.values()}
        others = {name: value for name, value in others.items() if name not in drops}
        self._refuse_hidden(kind, others)
        entity.__dict__.pop(UNEXPLAINED, None)
        if others and not kind.takes_any:
            entity.__dict__[UNEXPLAINED] = identity_of(entity), others
        return entity

    def _old_kind(self, read: Entity) -> EntityType:
        return next(kind for kind in self.old.schema.types if kind.model is type(read))

    def _refuse_hidden(self, kind: EntityType, others: Mapping[str, Any]) -> None:
        """Refuses an attribute of no field whose name the new layout uses for something else."""
        for name in self._claimed[kind.model].intersection(others):
            raise InvalidValue(
                f"it has an attribute {name!r} that no field explains, and the new layout writes {name!r} itself; "
                f"declare the field, drop it, or choose another name in the layout"
            )

    def _converted(self, read: Entity, kind: EntityType, item: Item) -> Entity:
        """An instance of another class of the same name, from the values of the fields that both have."""
        managed = {*self.new.rules.maintained(kind)} if isinstance(kind, NodeType) else set()
        given = {name: self._ref(value) for name, value in read.__dict__.items() if name in kind.fields}
        given = {name: value for name, value in given.items() if name not in managed}
        given |= getattr(read, "__pydantic_extra__", None) or {}
        for name in kind.fields:
            fill: Fill | None = self._field_changes.fills.get((kind.word, name))
            if fill is not None and name not in given:
                given[name] = filled_by(kind, name, fill, item)
        try:
            made: Entity = kind.model.model_validate(given, by_alias=True, by_name=True)
        except ValidationError as error:
            raise InvalidItem(f"it is not a valid {kind.name} of the new graph: {problems_in(error)}") from None
        return made

    def _ref(self, value: Any) -> Any:
        return Ref(self._models.get(value.model, value.model), value.id) if isinstance(value, Ref) else value

    # --- deletes that have not ended ------------------------------------------------------------

    def _beside(self, old: BoundLayout, new: BoundLayout, kind: EntityType, item: Item) -> Item:
        found: Item = {}
        for name in self._summaries[kind.model]:
            if name in item:
                found[name] = item[name]
        if WRITTEN in item:
            found[WRITTEN] = item[WRITTEN]
        if DELETING in item:
            if new.why_no_own_items is not None:
                raise InvalidItem("its node is being deleted, which the new table cannot record; delete the node again")
            marks = [mark.partition(":") for mark in item[DELETING].get("SS", ())]
            nodes = {node: self._node_text(old, new, node) for _, _, node in marks}
            told = sorted(f"{token}:{nodes[node]}" for token, _, node in marks if nodes[node] is not None)
            if told:
                found[DELETING] = {"SS": told}
        return found

    def deletion_record(self, item: Item) -> Item | None:
        """The deletion record of the new table that an item of the old one is; None for other items.

        It is also the key of one that is gone, if `item` is a key.
        """
        for old in self._layouts_of(item):
            partition, _ = old.key_texts(item)
            if old.why_no_own_items is None and old.deletion_key(partition) == old.key_of(item):
                new = self.new if old.tenant is None else self.new.for_tenant(old.tenant)
                node = self._node_text(old, new, partition)
                if node is None or new.why_no_own_items is not None:
                    return None
                tokens = {TOKENS: item[TOKENS]} if TOKENS in item else {}
                return new.deletion_key(node) | tokens
        return None

    def _layouts_of(self, item: Item) -> list[BoundLayout]:
        tenant = self.old.tenant_of_key(item)
        return [self.old] if tenant is None else [self.old, self.old.for_tenant(tenant)]

    def _node_text(self, old: BoundLayout, new: BoundLayout, text: str) -> str | None:
        """The node key in the new table of the node with this node key in the old one."""
        for kind in old.schema.nodes.values():
            if kind.head is None and old.is_of(kind, text):
                counterpart = self._kinds[kind.model]
                assert isinstance(counterpart, NodeType)
                return new.node_text(counterpart, old.id_in(kind, text))
        return None

    # --- values of the other side ---------------------------------------------------------------

    def old_key(self, moved: Moved, id: Any) -> Item:
        """The key in the old table of a node of the same class."""
        old = self.old if moved.layout.tenant is None else self.old.for_tenant(moved.layout.tenant)
        kind = next(kind for kind in old.schema.nodes.values() if self._models[kind.model] is moved.kind.model)
        return old.node_key(kind, id)


# --- classes -----------------------------------------------------------------------------------


def _counterpart(kind: EntityType, old: BoundLayout, new: BoundLayout) -> EntityType:
    """The class of the new graph that a class of the old one becomes: the same one, or one of the same name."""
    kinds = {each.model: each for each in new.schema.types}
    found = kinds.get(kind.model) or next((each for each in kinds.values() if each.name == kind.name), None)
    if found is None or isinstance(found, EdgeType) != isinstance(kind, EdgeType):
        raise InvalidRequest(
            f"the graph to migrate into has no class {kind.name}, so items of it would be left behind; declare it "
            f"there, or leave it out of both graphs"
        )
    if isinstance(kind, NodeType) and isinstance(found, NodeType):
        if kind.parts != found.parts:
            raise InvalidRequest(
                f"the id of a {kind.name} is made of {', '.join(kind.parts)} here and of {', '.join(found.parts)} in "
                f"the graph to migrate into, so edges would not find their nodes; keep the fields of ids"
            )
    elif isinstance(kind, EdgeType) and isinstance(found, EdgeType):
        if kind.symmetric != found.symmetric:
            raise InvalidRequest(
                f"{kind.name} is symmetric in one of the two graphs only; change that with migrate in one table first"
            )
        gone = [name for name in old.key_fields(kind) if name not in new.key_fields(found)]
        if gone:
            raise InvalidRequest(
                f"{gone[0]!r} distinguishes {kind.name} edges between the same nodes, but it is not part of their key "
                f"in the graph to migrate into, so some would replace others; keep it in the key"
            )
    return found
