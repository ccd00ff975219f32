"""What stored items lack of the forms that their classes declare, and the writes that complete them.

An item of a class may lack index keys, have other ones than its fields say, lack its index copies, claims or twin, or
have a field under a former name or not at all. `incomplete_items` finds that for items that were read. `complete`
writes it: each write is conditional on what was read, so that it never undoes what another program wrote meanwhile. A
write that comes too late reads the item again and decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    InvalidKey,
    InvalidValue,
    TransactionCanceled,
    shown,
)
from adjoin.expressions import Action, Condition, Remove, Set, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, OWNER, REVISION, TWIN, Satellite
from adjoin.plans.entity_write import Claims, beside, may_succeed
from adjoin.plans.repair import restore_twin
from adjoin.plans.steps.again import (
    AGAIN,
    Again,
    Attempt,
    Done,
    Failure,
    always_again,
    as_read,
    new_revision,
    unchanged,
    until_written,
)
from adjoin.plans.steps.batches import chunks, get_all, place_of
from adjoin.requests import Check, Delete, Get, ItemResponse, Plan, Put, TransactWrite, Update
from adjoin.tables import IndexDefinition
from adjoin.units import read_units, write_units
from adjoin.values import AttributeValue, Item, decode, item_size

Fill: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Makes the value of a field that an item lacks, from the attributes of the item as plain values."""

_ADDED: Item = {TWIN: {"BOOL": True}}
"""What the item has besides that is added to a symmetric edge."""
TOGETHER = 50
"""How many items are completed in one round."""


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """What a migration does besides completing entries."""

    fills: Mapping[tuple[str, str], Fill] = field(default_factory=dict)
    """By the word of a class and a field."""
    drops: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the word of a class: attributes that are removed."""
    renames: bool = False
    """Whether values under former names move to their present names. Former programs do not read them there."""

    def __bool__(self) -> bool:
        return bool(self.fills or self.drops or self.renames)


@dataclass(frozen=True, slots=True)
class IncompleteItem:
    """One item that lacks something."""

    layout: BoundLayout
    """That of its tenant."""
    kind: EntityType
    key: Item
    item: Item
    """The item as it was read."""
    actions: tuple[Action, ...]
    """What its own item needs."""
    satellites: tuple[Satellite, ...] = ()
    """The index copies and claims that it lacks."""
    twin: bool = False
    """Whether it is a symmetric edge without its other item."""
    companions: int = 0
    """How many index copies, claims and twins it has to have."""
    rewritten: int = 0
    """How many of its index copies repeat what changes, besides those that it lacks."""

    @property
    def after(self) -> Item:
        """The item as it will be."""
        after = dict(self.item)
        for action in self.actions:
            if isinstance(action, Set) and isinstance(action.value, Value):
                after[str(action.path.steps[0])] = action.value.attribute
            elif isinstance(action, Remove):
                after.pop(str(action.path.steps[0]), None)
        return after

    @property
    def wcu(self) -> float:
        """About how many write units completing it costs, with its index entries."""
        size, after, entries = item_size(self.item), self.after, 0
        for index in self.layout.definition.indexes:
            one, other = (_entry(index, each) for each in (self.item, after))
            # An entry with another key is removed and written.
            entries += (one is not None) + (other is not None) - (one == other and one is not None)
        own = write_units(size, transactional=_is_several(self)) + entries * write_units(size)
        copies = sum(each.owner is None for each in self.satellites) + self.rewritten
        others = (len(self.satellites) + self.rewritten + self.twin) * write_units(size, transactional=True)
        return (own if self.actions or self.satellites else 0.0) + others + (copies + self.twin) * write_units(size)

    @property
    def rcu(self) -> float:
        """How many read units it costs to decide about it alone, right before it is written."""
        return self.look if _is_several(self) else 0.0

    @property
    def look(self) -> float:
        """How many read units a look at it costs, with its index copies, claims and twins."""
        return self.companions + read_units(item_size(self.item), consistent=True)


def _entry(index: IndexDefinition, item: Item) -> list[AttributeValue] | None:
    """The key of an item in an index; None if it is not in it."""
    found = [item[key.name] for key in index.keys if key.name in item]
    return found if len(found) == len(index.keys) else None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that cannot be completed, and why."""

    key: Item
    model: str
    reason: str

    def __str__(self) -> str:
        return f"{self.model} {' '.join(map(repr, place_of(self.key)))}: {self.reason}"


# --- finding -----------------------------------------------------------------------------------


def owner_layout(layout: BoundLayout, item: Item) -> BoundLayout | None:
    """The layout of the tenant that a node or an edge belongs to; None for other items.

    A graph of a tenant completes its own items only.
    """
    if layout.tenant is None and (tenant := layout.tenant_in(item)) is not None:
        layout = layout.for_tenant(tenant)
    return None if layout.is_bookkeeping(item) else layout


def incomplete_items(
    layout: BoundLayout, items: Iterable[Item], field_changes: FieldChanges, refused: list[Refusal]
) -> Plan[list[IncompleteItem]]:
    """The items that lack something. Items that cannot be read are added to `refused`."""
    found: list[IncompleteItem] = []
    waiting: list[tuple[BoundLayout, EntityType, Item, Any]] = []
    for item in items:
        own = owner_layout(layout, item)
        kind = None if own is None else own.kind_of(item)
        if own is None or kind is None or DELETING in item:
            continue
        kind = _member(own, kind, item)
        try:
            filled, actions = of_fields(own, kind, item, field_changes)
            entity = own.decode(kind, filled)
            if entity is None:
                continue
            entries = entry_actions(own, kind, filled, entity)
            actions += entries
            filled = filled | fields_in(kind, entries)
            if kind.elements:
                # Raises if it has more elements than an index takes.
                own.satellites(kind, [filled], entity.__dict__)
        except (InvalidItem, InvalidKey, InvalidValue) as error:
            refused.append(Refusal(own.key_of(item), kind.name, str(error)))
            continue
        if own.has_satellites(kind) or (isinstance(kind, EdgeType) and kind.symmetric):
            waiting.append((own, kind, item, (entity, filled, tuple(actions))))
        elif actions:
            found.append(IncompleteItem(own, kind, own.key_of(item), item, tuple(actions)))
    return [*found, *((yield from _with_companions(waiting, field_changes)) if waiting else [])]


def _member(layout: BoundLayout, kind: EntityType, item: Item) -> EntityType:
    """The class of a family that an item is of."""
    family = kind.family if isinstance(kind, NodeType) else []
    return next((each for each in family if layout.is_one(each, item)), kind)


def of_fields(
    layout: BoundLayout, kind: EntityType, item: Item, field_changes: FieldChanges
) -> tuple[Item, list[Action]]:
    """The item with its fields as they are declared, and the actions that make it so."""
    if not field_changes:
        return item, []
    actions: list[Action] = []
    filled = dict(item)
    for name in kind.attributes:
        stored = kind.attributes[name]
        fill = field_changes.fills.get((kind.word, name))
        if fill is None or any(each in item for each in (stored, *kind.former.get(name, ()))):
            continue
        value = layout.encode_field(kind, name, filled_by(kind, name, fill, item))
        if value is not None:
            filled[stored] = value
            actions.append(Set(attribute(stored), Value(value)))
    drops = field_changes.drops.get(kind.word, frozenset())
    formers = [each for others in kind.former.values() for each in others] if field_changes.renames else []
    if layout.looks_first(kind) and not {*formers, *drops}.isdisjoint(item):
        # A validator of the class may make fields from what is removed.
        for stored, value in made_fields(layout, kind, filled).items():
            filled[stored] = value
            actions.append(Set(attribute(stored), Value(value)))
    if field_changes.renames:
        for name, former in ((name, old) for name, others in kind.former.items() for old in others):
            if former not in item:
                continue
            stored = kind.attributes[name]
            if stored not in filled:
                filled[stored] = item[former]
                actions.append(Set(attribute(stored), Value(item[former])))
            del filled[former]
            actions.append(Remove(attribute(former)))
    for former in sorted(drops):
        if former in filled:
            del filled[former]
            actions.append(Remove(attribute(former)))
    return filled, actions


def made_fields(layout: BoundLayout, kind: EntityType, item: Item) -> Item:
    """The fields that an item lacks and that a validator of its class makes from others."""
    entity = layout.decode(kind, item)
    if entity is None:
        return {}
    found: Item = {}
    for name, stored in kind.attributes.items():
        info = kind.fields[name]
        # A function that makes a default, such as the present time, says nothing about the item.
        if stored in item or name in layout.rules.maintained(kind) or info.default_factory is not None:
            continue
        value = layout.encode_stored(kind, name, getattr(entity, name))
        default = None if info.is_required() else layout.encode_stored(kind, name, info.get_default())
        if value is not None and value != default:
            found[stored] = value
    return found


def filled_by(kind: EntityType, name: str, fill: Fill, item: Item) -> Any:
    """The value that a function of the program makes for a field that an item lacks."""
    try:
        made = fill({each: decode(value) for each, value in item.items()})
    except Exception as error:
        # It is code of the program and may raise anything. The item is left as it is, and the error is reported.
        raise InvalidValue(f"the function that fills {kind.name}.{name} raised {shown(error)}") from error
    return kind.validated(name, made)


def entry_actions(layout: BoundLayout, kind: EntityType, item: Item, entity: Any) -> list[Action]:
    """The actions that give the item of an entity the index keys that its fields say; none if it has them."""
    key = layout.key_of(item)
    made = layout.items(entity)
    fresh = next((each for each in made if layout.key_of(each) == key), None)
    if fresh is None:
        raise InvalidKey("its keys are not those that its fields say")
    if late := layout.managed.attributes[kind.model]:
        # Keys that hold managed fields are made from what the item holds; `maintain` keeps these fields.
        whole = layout.with_managed_keys(kind, item)
        fresh = {**fresh, **{name: whole[name] for name in late if name in whole}}
    actions: list[Action] = []
    for name in sorted(layout.entry_attributes(kind)):
        stored, wanted = item.get(name), fresh.get(name)
        if wanted is None and stored is not None:
            actions.append(Remove(attribute(name)))
        elif wanted is not None and (stored is None or not layout.is_same_entry(kind, name, stored, wanted)):
            actions.append(Set(attribute(name), Value(wanted)))
    # A field that an index or a claim is made from may be missing, because it is younger than the item. Then its
    # default is written, or what its class computes: a delete finds index copies and claims by the item's attributes.
    managed = {kind.attributes[name] for name in layout.rules.maintained(kind)}
    found_by = {kind.attributes[name] for name in (*kind.indexed, *kind.unique, *kind.elements, *kind.computed)}
    plain = (layout.plain_index_keys(kind) | found_by) - managed
    # What is stored under a former name gets its present one in the last step. Until then, older programs change it,
    # and a copy of the value under the present name would hide that.
    former = {kind.attributes[name] for name, others in kind.former.items() if not item.keys().isdisjoint(others)}
    defaults = {name: fresh[name] for name in plain if name in fresh and name not in item and name not in former}
    defaults |= layout.managed.defaults(kind, item)
    if layout.looks_first(kind):
        derived = made_fields(layout, kind, item)
        defaults |= {name: value for name, value in derived.items() if name not in former}
    return actions + [
        Set(attribute(name), Value(each)) for name, each in sorted(defaults.items()) if "NULL" not in each
    ]


def _with_companions(
    waiting: Sequence[tuple[BoundLayout, EntityType, Item, Any]], field_changes: FieldChanges
) -> Plan[list[IncompleteItem]]:
    """Those of the items that lack something, after a look at their index copies, claims and twins."""
    wanted: list[tuple[list[Satellite], list[Item]]] = []
    keys: dict[tuple[str, ...], Get] = {}
    for layout, kind, _, (entity, filled, _) in waiting:
        twins = layout.twin_keys(kind, filled) if isinstance(kind, EdgeType) else []
        items = [filled, *(filled | key for key in twins)]
        satellites = [each for each in layout.satellites(kind, items, entity.__dict__) if each.item is not None]
        wanted.append((satellites, twins))
        for key in (*(each.key for each in satellites), *twins):
            keys[place_of(key)] = Get(layout.table, key, consistent=True)
    items_there = yield from get_all(list(keys.values()))
    there = dict(zip(keys, items_there, strict=True))
    found = []
    for (layout, kind, item, (_, _, actions)), (satellites, twins) in zip(waiting, wanted, strict=True):
        gone = _gone(kind, field_changes)
        lacked = tuple(each for each in satellites if not _agrees(layout, kind, each, there[place_of(each.key)], gone))
        # With this attribute, the other item was there. So an older program has removed the edge.
        is_alone = TWIN not in item and any(there[place_of(key)] is None for key in twins)
        if actions or lacked or is_alone:
            number = len(satellites) + len(twins)
            found.append(IncompleteItem(layout, kind, layout.key_of(item), item, actions, lacked, is_alone, number))
    return found


def _gone(kind: EntityType, field_changes: FieldChanges) -> frozenset[str]:
    """The attributes that items of a class do not have any more after the migration."""
    former = (each for others in kind.former.values() for each in others) if field_changes.renames else ()
    return field_changes.drops.get(kind.word, frozenset()).union(former)


def _agrees(
    layout: BoundLayout, kind: EntityType, satellite: Satellite, found: Item | None, gone: frozenset[str]
) -> bool:
    """Whether a satellite is there, says what it should, and has nothing that is removed."""
    wanted = satellite.item
    assert wanted is not None
    if found is None or not gone.isdisjoint(found):
        return False
    if satellite.owner is not None:
        return found.get(OWNER) == wanted[OWNER]
    index = layout.overloaded
    assert index is not None
    if not layout.is_same_entry(
        kind, index.partition_key, found.get(index.partition_key, {}), wanted[index.partition_key]
    ):
        return False
    if found.get(index.sort_key) != wanted[index.sort_key]:
        return False
    kept = {*layout.rules.maintained(kind)}
    fields = [stored for name, stored in kind.attributes.items() if name not in kept]
    return all(found.get(stored) == wanted.get(stored) for stored in fields)


# --- writing -----------------------------------------------------------------------------------


def complete(found: Sequence[IncompleteItem], field_changes: FieldChanges, refused: list[Refusal]) -> Plan[int]:
    """Writes what items lack; returns how many were written. What cannot be written is added to `refused`."""
    written = 0
    plain = [each for each in found if not _is_several(each)]
    for some in chunks(plain, TOGETHER):
        try:
            yield tuple(_update(each) for each in some)
            written += len(some)
        except ConditionFailed:
            # Another program was faster, but the error does not say where. So each is decided anew. An item that was
            # written meanwhile lacks nothing any more.
            for each in some:
                written += yield from _alone(each, field_changes, refused)
    for each in found:
        if _is_several(each):
            written += yield from _alone(each, field_changes, refused)
    return written


def _is_several(found: IncompleteItem) -> bool:
    """Whether more than one item is written, or has to agree with what is written."""
    return bool(found.satellites) or found.twin or found.layout.has_satellites(found.kind)


def _update(found: IncompleteItem) -> Update:
    layout, kind, item = found.layout, found.kind, found.item
    actions = found.actions
    if REVISION in item:
        actions = (*actions, Set(attribute(REVISION), Value(new_revision())))
    return Update(layout.table, found.key, actions, _as_read(layout, kind, item, actions))


def _as_read(layout: BoundLayout, kind: EntityType, item: Item, actions: Sequence[Action]) -> Condition:
    """The condition that everything is as it was read that decided about these actions."""
    former = [each for others in kind.former.values() for each in others]
    names = dict.fromkeys([*kind.attributes.values(), *former, *written_by(actions)])
    return all_of(as_read(layout, item, names)) or layout.present


def fields_in(kind: EntityType, actions: Iterable[Action]) -> Item:
    """The attributes of fields that actions write, which index copies have too."""
    names = {*kind.attributes.values()}
    sets = [(str(each.path.steps[0]), each.value) for each in actions if isinstance(each, Set)]
    return {name: value.attribute for name, value in sets if name in names and isinstance(value, Value)}


def written_by(actions: Iterable[Action]) -> list[str]:
    """The attributes that actions set or remove."""
    return [str(action.path.steps[0]) for action in actions if isinstance(action, Set | Remove)]


def _alone(found: IncompleteItem, field_changes: FieldChanges, refused: list[Refusal]) -> Plan[int]:
    """Completes one item, from what is stored now."""
    layout, key = found.layout, found.key
    claims = Claims()

    def attempt() -> Plan[Attempt[int] | Done[int]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, key, consistent=True),)
        again: list[Refusal] = []
        items = [] if response.item is None else [response.item]
        lacking = yield from incomplete_items(layout, items, field_changes, again)
        if not lacking:
            refused.extend(again)
            return Done(0)
        (now,) = lacking
        assert response.item is not None
        if not _is_several(now):
            return Attempt((_update(now),), lambda _: 1, always_again)
        if not now.actions and not now.satellites:
            return Done(0)
        writes = beside(layout, now.satellites, claims)
        actions = (*now.actions, Set(attribute(REVISION), Value(new_revision())))
        is_still = all_of(_as_read(layout, now.kind, response.item, actions), unchanged(layout, response.item))
        own = Update(layout.table, key, actions, is_still)
        return Attempt((TransactWrite((*writes, own)),), lambda _: 1, partial(failed, now.kind, writes))

    def failed(kind: EntityType, writes: Sequence[Put | Delete | Check], failure: Failure) -> Plan[Again]:
        if isinstance(failure, TransactionCanceled):
            yield from may_succeed(layout, kind, writes, failure.reasons[:-1], claims)
        return AGAIN

    try:
        written = yield from until_written(attempt)
        if found.twin and isinstance(found.kind, EdgeType):
            written += bool((yield from restore_twin(layout, found.kind, key, _ADDED)))
    except AlreadyExists as taken:
        # Only a person can decide which of the two nodes is right.
        refused.append(Refusal(key, found.kind.name, f"another node has the same unique value: {taken}"))
        return 0
    return written


def complete_one(layout: BoundLayout, kind: EntityType, key: Item) -> Plan[None]:
    """Completes one item, from what is stored now. Raises if it cannot be completed."""
    refused: list[Refusal] = []
    yield from _alone(IncompleteItem(layout, kind, key, key, ()), FieldChanges(), refused)
    if refused:
        raise InvalidValue(refused[0].reason)
