"""What older programs leave behind while a migration is at work, and its removal.

A program with former declarations does not know the index copies, claims and twins that newer ones add. It removes the
item of an edge or a node alone, or changes a value and leaves the claim to the former one. What stays would be found,
although nobody has stored it any more.

A pass looks at all satellites that it meets: each names the item that it belongs to. Where the change stream is
followed, the images of items before their changes say which satellites these had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidItem, InvalidKey, InvalidValue
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, OWNER, TWIN
from adjoin.plans.declared import RecordedForms
from adjoin.plans.migrating.completing import owner_layout
from adjoin.plans.repair import holds, remove_left_twin, remove_stray
from adjoin.plans.steps.batches import Place, get_all, place_of
from adjoin.requests import Get, ItemChange, Plan
from adjoin.reserved import OWN
from adjoin.units import read_units, write_units
from adjoin.values import Item, item_size


@dataclass(frozen=True, slots=True)
class Stray:
    """A satellite or a twin whose entity does not have it."""

    layout: BoundLayout
    """That of its tenant."""
    kind: EntityType
    item: Item
    owner: Item | None
    """The key of the entity, or of the other item of an edge; None if edges of its class have one item only."""
    is_twin: bool = False

    @property
    def key(self) -> Item:
        return self.layout.key_of(self.item)

    @property
    def wcu(self) -> float:
        """About how many write units removing it costs, with its index entry and the check of its owner."""
        size = item_size(self.item)
        entry = 0.0 if OWNER in self.item else write_units(size)
        return write_units(size, transactional=True) + write_units(0, transactional=True) + entry

    @property
    def rcu(self) -> float:
        return read_units(item_size(self.item), consistent=True)


def owner_of(layout: BoundLayout, item: Item) -> tuple[EntityType, Item] | None:
    """The class and the key of the entity to which an index copy or a claim belongs; None for other items."""
    if not layout.is_bookkeeping(item):
        return None
    if OWNER in item:
        kind = layout.claimed_by(item)
        return None if kind is None else (kind, claimant(layout, kind, item[OWNER].get("S", "")))
    partition, _ = layout.key_texts(item)
    index = layout.overloaded
    if index is None or index.partition_key not in item or not partition.endswith(OWN):
        return None
    owner = layout.copied_key(item)
    kind = None if layout.is_bookkeeping(owner) else layout.kind_of(item | owner)
    return None if kind is None else (kind, owner)


def claimant(layout: BoundLayout, kind: EntityType, text: str) -> Item:
    """The key of the node or edge that a claim names. If it names none, a key that no node can have."""
    partition, sort = layout.start_names(None)
    nobody = {partition: {"S": text or "="}, sort: {"S": "="}}
    if not isinstance(kind, NodeType):
        return layout.edge_owning(text) or nobody
    try:
        key = layout.node_key(kind, layout.id_in(kind, text))
    except (InvalidItem, InvalidKey, InvalidValue):
        key = {}
    return key if key and layout.text_of(kind, key) == text else nobody


def of_one_item(layout: BoundLayout, recorded: RecordedForms | None) -> list[str]:
    """The words of the classes whose edges have one item only, also by the record.

    What another migration has added at their other ends is removed: that migration is taken back.
    """
    stored = {} if recorded is None else recorded.forms
    edges = [kind for kind in layout.schema.edges.values() if not kind.symmetric]
    return [kind.word for kind in edges if kind.word not in stored or not stored[kind.word].symmetric]


def strays_among(
    layout: BoundLayout, items: Iterable[Item], of_one_item: Collection[str], *, finish: bool
) -> Plan[list[Stray]]:
    """The satellites and twins among these items that their entities do not have.

    `of_one_item` has the words of classes whose edges have one item only. Before the last step, satellites of fields
    that only older programs index or claim stay: these programs still use them.
    """
    if layout.why_no_own_items is not None:
        return []
    asked: list[Stray] = []
    for item in items:
        stray = _twin(layout, item, of_one_item) if TWIN in item else _satellite(layout, item, finish=finish)
        if stray is not None:
            asked.append(stray)
    keys = {place_of(each.owner): Get(layout.table, each.owner, consistent=True) for each in asked if each.owner}
    there = dict(zip(keys, (yield from get_all(list(keys.values()))), strict=True)) if keys else {}
    return [each for each in asked if each.owner is None or not _is_held(each, there[place_of(each.owner)])]


def _satellite(layout: BoundLayout, item: Item, *, finish: bool) -> Stray | None:
    tenant = layout.tenant_of_key(item)
    for own in (layout, *(() if tenant is None else (layout.for_tenant(tenant),))):
        found = owner_of(own, item)
        if found is not None:
            kind, owner = found
            return Stray(own, kind, item, owner) if finish or own.is_of_declared_field(kind, item) else None
    return None


def _twin(layout: BoundLayout, item: Item, of_one_item: Collection[str]) -> Stray | None:
    own = owner_layout(layout, item)
    kind = None if own is None else own.kind_of(item)
    if own is None or not isinstance(kind, EdgeType) or DELETING in item:
        return None
    if not kind.symmetric:
        is_added = item[TWIN].get("BOOL", False)
        return Stray(own, kind, item, None, is_twin=True) if is_added and kind.word in of_one_item else None
    try:
        others = own.twin_keys(kind, item)
    except InvalidItem:
        # A pass names it among those that cannot be read.
        return None
    return Stray(own, kind, item, others[0], is_twin=True) if others else None


def _is_held(stray: Stray, owner: Item | None) -> bool:
    if owner is None:
        return False
    return stray.is_twin or holds(stray.layout, stray.kind, owner, stray.key)


def remove(strays: Sequence[Stray]) -> Plan[int]:
    """Removes them, each on condition that it is still stray; returns how many there were."""
    for each in strays:
        if each.is_twin and isinstance(each.kind, EdgeType):
            yield from remove_left_twin(each.layout, each.kind, each.key)
        elif each.owner is not None:
            yield from remove_stray(each.layout, each.kind, each.key, each.owner)
    return len(strays)


def left_by(layout: BoundLayout, changes: Iterable[ItemChange]) -> dict[Place, Item]:
    """The keys of what items had beside them before these changes, and do not have after them."""
    found: dict[Place, Item] = {}
    for change in changes:
        if change.old is None or (own := owner_layout(layout, change.old)) is None:
            continue
        kept = {} if change.new is None else _beside(own, change.new)
        found |= {place: key for place, key in _beside(own, change.old).items() if place not in kept}
    return found


def _beside(layout: BoundLayout, item: Item) -> dict[Place, Item]:
    kind = layout.kind_of(item)
    if kind is None:
        return {}
    try:
        keys = [each.key for each in layout.satellites_beside(kind, item)]
        keys += layout.twin_keys(kind, item) if isinstance(kind, EdgeType) else []
    except (InvalidItem, InvalidKey, InvalidValue):
        # Its class cannot read it, so nothing was written beside it.
        return {}
    return {place_of(key): key for key in keys}
