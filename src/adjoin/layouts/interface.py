"""What a layout offers to plans, and the words in which a layout is written down.

A layout is bound to a schema once, when a graph opens; what comes out answers, without any I/O, how
each node and edge is keyed, encoded and found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from adjoin.errors import InvalidValue, UnknownField
from adjoin.expressions import Action, Condition
from adjoin.layouts.fitting import Fit
from adjoin.layouts.keys import Part, Template
from adjoin.requests import SortCondition
from adjoin.rules import Rules
from adjoin.schema import EdgeType, Entity, EntityType, NodeType, Schema, unknown_field
from adjoin.tables import Projection, TableDefinition, Throughput
from adjoin.values import AttributeValue, Item

if TYPE_CHECKING:
    from adjoin.layouts.ledgers import Ledgers
    from adjoin.layouts.overloaded import OverloadedIndex

DELETING = "adjoin:deleting"
"""The attribute by which a large delete marks an edge: node key to the token of the delete."""
REVISION = "adjoin:revision"
"""The attribute that is another after each write, on items that have satellites."""
LIFE = "adjoin:life"
"""The attribute of a node with aggregates that is another in each of its lives; what was counted ends with one."""
NEXT = "adjoin:next"
"""The attribute of a node with the life that a recount prepares, while the present one goes on."""
WRITTEN = "adjoin:written"
"""The attribute of an edge at nodes that can expire: when it was put, in seconds since 1970."""
OWNER = "adjoin:owner"
"""The attribute of a claim to a unique value: the partition key of the node that has it."""


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index: its name, its key attributes, and what adjoin writes into them.

    Without templates it is laid over attributes that are there anyway, such as the table's own keys.
    """

    name: str
    partition_key: str
    sort_key: str | None = None
    partition: str | None = None
    sort: str | None = None
    projection: Projection = Projection()
    throughput: Throughput | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """Key templates of one class, each in place of the layout's own."""

    partition: str | None = None
    sort: str | None = None
    reverse_partition: str | None = None
    reverse_sort: str | None = None


@dataclass(frozen=True)
class Access:
    """A way to ask: which index, which key attributes, and how what is found there is read.

    `sort` is the template of the sort keys. `exclusive` says that nothing else of this graph can lie
    among them, and `told_by_keys` that keys alone make an item what it is.
    """

    partition_key: str
    decode: Callable[[Item], Any]
    index: str | None = None
    sort_key: str | None = None
    sort: Template | None = None
    exclusive: bool = False
    kind: EntityType | None = None
    told_by_keys: bool = True
    is_partial: bool = False
    """Whether only parts of the items are there, and the rest has to be fetched from the table."""

    @cached_property
    def condition(self) -> SortCondition | None:
        """What the sort key must satisfy; None for the whole partition."""
        if self.sort is None or self.sort_key is None:
            return None
        return _begins_with(self.sort_key, self.sort.lead)


@dataclass(slots=True)
class Range:
    """A stretch of one partition, as one access reads it; `known` are the key parts that are fixed."""

    access: Access
    partition: str
    known: Mapping[str, Any] | None = None

    def condition(self) -> SortCondition | None:
        """What the sort key must satisfy to lie in the stretch."""
        if not self.known:
            return self.access.condition
        text, part = self._sort("within").start(self.known)
        if part is None:
            return SortCondition(self._sort_key, "=", ({"S": text},))
        return _begins_with(self._sort_key, text)

    def within(self, parts: Mapping[str, Any]) -> Range:
        """The part of the stretch where these leading key parts have these values."""
        sort = self._sort("within")
        fixed = dict(self.known or {})
        open_parts = [part for part in sort.parts if part.name not in fixed]
        by_name = {part.name.removesuffix(".id"): part for part in open_parts}
        for name, value in parts.items():
            if name not in by_name:
                raise UnknownField(unknown_field(f"the sort key {sort} of {sort.owner}", name, by_name))
            fixed[by_name[name].name] = self._typed(by_name[name], value)
        for part in open_parts[: len(parts)]:
            if part.name not in fixed:
                raise InvalidValue(
                    f"the sort key {sort} of {sort.owner} narrows from the left only: give {part.name!r} too"
                )
        return replace(self, known=fixed)

    def begins_with(self, prefix: Any) -> SortCondition | None:
        """Keys whose first open part starts with this."""
        sort, text, part = self._open_part("begins_with")
        return _begins_with(self._sort_key, text + sort.prefix(part, prefix))

    def between(self, low: Any, high: Any) -> SortCondition | None:
        """Keys whose first open part lies between two values, both included; None leaves an end open."""
        sort, start, part = self._open_part("between")
        if part.transform.decode is None:
            raise InvalidValue(
                f"{sort.owner}.{part.name} is shortened or changed in the key {sort}, so a range of it cannot be told"
            )
        first = start if low is None else start + sort.text(part, self._typed(part, low))
        if high is None:
            last = _after(start)
        else:
            # Whatever follows the value sorts below the character after its separator.
            last = start + sort.text(part, self._typed(part, high)) + _after(sort.follower(part)[:1])
        if last and first > last:
            raise InvalidValue(f"there is nothing between {low!r} and {high!r}; give the lower value first")
        if not last:
            return SortCondition(self._sort_key, ">=", ({"S": first},)) if first else None
        if not first:
            return SortCondition(self._sort_key, "<=", ({"S": last},))
        return SortCondition(self._sort_key, "between", ({"S": first}, {"S": last}))

    def _typed(self, part: Part, value: Any) -> Any:
        kind = self.access.kind
        return kind.validated(part.name, value) if kind and part.name in kind.fields else value

    def _open_part(self, verb: str) -> tuple[Template, str, Part]:
        sort = self._sort(verb)
        text, part = sort.start(self.known or {})
        if part is None:
            raise InvalidValue(f"every part of the sort key {sort} is fixed already; {verb} has none to work on")
        return sort, text, part

    def _sort(self, verb: str) -> Template:
        if self.access.sort is None:
            raise InvalidValue(
                f"{verb} needs a sort key to work on, and {self.access.index or 'this query'} has none; "
                f"give the index one"
            )
        return self.access.sort

    @property
    def _sort_key(self) -> str:
        assert self.access.sort_key is not None
        return self.access.sort_key


def _begins_with(sort_key: str, text: str) -> SortCondition | None:
    return SortCondition(sort_key, "begins_with", ({"S": text},)) if text else None


def _after(text: str) -> str:
    """The least text above everything that starts with `text`; it ends in an ASCII character."""
    return text and text[:-1] + chr(ord(text[-1]) + 1)


@dataclass(frozen=True, slots=True)
class Satellite:
    """An item beside an entity's own, written and removed with it; `item` is None where none must be."""

    key: Item
    item: Item | None
    owner: str | None = None
    """For the claim to a unique value, who has it: nobody else's may be overwritten or removed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the items of one class hold."""

    written: Mapping[str, str]
    """What the layout itself writes: attribute name to the template of its text, the table's keys first."""
    fields: Mapping[str, str]
    """Each stored field, and the attribute it is stored as."""
    copies: Mapping[str, Shape] = field(default_factory=dict)
    """The copies beside an item, each called by the indexed field that it is for."""
    claims: Mapping[str, Shape] = field(default_factory=dict)
    """The claims to unique values, each called by its field."""


@dataclass(frozen=True, slots=True)
class KeyTemplates:
    """How the items of one class are keyed, for whoever reads keys without items."""

    partition: Template
    sort: Template
    others: Mapping[str, Template]
    """Key attributes of indexes, which tell what the table's own keys do not."""
    target_field: str | None = None
    """The field that is the target's id, where templates name it instead of the target."""
    may_meet_node: bool = False
    """Whether the key of an edge may be that of its source itself, which then it is."""
    type_attribute: str | None = None
    """The attribute that holds the label, if it is there."""
    stored: frozenset[str] = frozenset()
    """The fields that are attributes; others are in the keys only."""


class BoundLayout(Protocol):
    """A layout and a schema together."""

    schema: Schema
    definition: TableDefinition
    table: str
    present: Condition
    """Holds for an item that is there."""
    overloaded: OverloadedIndex | None
    """The index of all indexed fields, if there are any."""
    rules: Rules
    """What is kept true by itself."""
    ledgers: Ledgers
    """Where what was counted is recorded."""
    tenant: str | None
    """Whose graph it is; None for the one without a tenant."""

    def for_tenant(self, tenant: str) -> BoundLayout:
        """The same layout for a tenant of the same table."""
        ...

    def tenant_in(self, item: Item) -> str | None:
        """The tenant whose node or edge an item is, as far as keys tell; for a layout without a tenant.

        What is a node or an edge without a tenant is no tenant's.
        """
        ...

    def node_key(self, kind: NodeType, id: Any) -> Item: ...

    def node_text(self, kind: NodeType, id: Any) -> str:
        """The node's partition key."""
        ...

    def id_in(self, kind: NodeType, text: str) -> Any:
        """The id of the node with that partition key."""
        ...

    def deletion_key(self, node: str) -> Item:
        """Where a delete in progress is recorded, in the partition of the node with that key."""
        ...

    def edge_key(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> Item:
        """The key of the edge between two ids; `fields` holds at least its key fields."""
        ...

    def key_fields(self, kind: EdgeType) -> tuple[str, ...]:
        """The fields that are part of an edge's identity in this layout."""
        ...

    def ends(self, kind: EdgeType, item: Item) -> tuple[str, str]:
        """The partition keys of the nodes that the edge of this item joins, its source first."""
        ...

    def items(self, entity: Entity) -> tuple[Item, ...]:
        """The items an instance is stored as: one, or two for a symmetric edge."""
        ...

    def satellites(self, kind: EntityType, items: Sequence[Item], values: Mapping[str, Any]) -> list[Satellite]:
        """What stands beside the items of an instance with these values, and what must not."""
        ...

    def satellites_beside(self, kind: EntityType, item: Item) -> list[Satellite]:
        """What stands beside a stored item, as far as its attributes tell, to go with it."""
        ...

    def copy_keys(self, kind: EntityType, key: Item) -> list[Item]:
        """Where copies of an item may stand, for an index."""
        ...

    def has_satellites(self, kind: EntityType) -> bool: ...

    def claim_key(self, kind: NodeType, name: str, value: Any) -> Item:
        """Where the claim to a value of a unique field is."""
        ...

    def changed(self, kind: EntityType, item: Item, entity: Entity) -> Item:
        """A stored item with the fields of an instance, and whatever else it holds."""
        ...

    def encode_field(self, kind: EntityType, name: str, value: Any) -> AttributeValue | None:
        """The stored form of one field's value; None where the attribute is left out."""
        ...

    def in_index_key(self, kind: EntityType, names: Collection[str]) -> str | None:
        """One of these fields that an index key is made of, if any is."""
        ...

    def index_actions(self, kind: EntityType, identity: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Action]:
        """What changing these fields does to index keys; `identity` holds what else they are made of."""
        ...

    def needed_for_index(self, kind: EntityType, identity: Mapping[str, Any], changes: Collection[str]) -> list[str]:
        """The other fields that index keys are made of together with these."""
        ...

    def filterable(self, kind: EntityType, name: str) -> str:
        """The attribute to filter a field by, or an error if it lives in keys only."""
        ...

    def decode(self, kind: EntityType, item: Item) -> Entity | None:
        """The instance of this class that an item is, or None if it is something else."""
        ...

    def decode_as_far(self, kind: EntityType, item: Item) -> Entity | None:
        """The same, but a field that does not fit has what is stored, where an error would mislead."""
        ...

    def fit(self, kind: EntityType) -> Fit:
        """What conditions say about whether the class can read a stored item."""
        ...

    def found(self, kind: EntityType, item: Item) -> Entity | None:
        """The same for an item that was found through the index of fields."""
        ...

    def kind_of(self, item: Item) -> EntityType | None:
        """The class that explains an item, told by its keys."""
        ...

    def read(self, item: Item) -> Entity | None:
        """The node or edge an item is; None if no class explains it."""
        ...

    def out(self, kind: EdgeType, source: Any) -> Range: ...

    def into(self, kind: EdgeType, target: Any) -> Range: ...

    def collection(self, kind: NodeType, id: Any, *, arriving: bool) -> Range: ...

    def key_of(self, item: Item) -> Item: ...

    def twin_keys(self, kind: EdgeType, item: Item) -> list[Item]:
        """Where else the edge of this item is stored: at the other end, if it is symmetric."""
        ...

    def start_after(self, item: Item, index: str | None) -> Item:
        """The key to continue a query from, behind this item."""
        ...

    def shape(self, kind: EntityType) -> Shape:
        """What the items of a class hold, for people and tools to see."""
        ...

    def key_templates(self, kind: EntityType) -> KeyTemplates: ...

    def copied_key(self, copy: Item) -> Item:
        """The key of the item that a copy for an index is of."""
        ...

    def claimed_by(self, claim: Item) -> NodeType | None:
        """The class whose unique value a claim is for."""
        ...

    def is_bookkeeping(self, item: Item) -> bool:
        """Whether an item is adjoin's own, or another tenant's, and no node or edge of this graph."""
        ...

    def shard_map_key(self, scope: str) -> Item:
        """Where the shards of an indexed field are recorded; all records are in one partition."""
        ...


class Layout(Protocol):
    """Where things lie in a table; `bind` checks it against the classes."""

    @property
    def table(self) -> str: ...

    def named(self, table: str) -> Layout:
        """The same layout in another table."""
        ...

    def bind(self, schema: Schema, tenant: str | None = None) -> BoundLayout: ...
