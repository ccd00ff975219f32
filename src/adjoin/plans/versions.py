"""Optimistic locking: an instance is written only if the stored item has the version that the instance has.

A field that is marked `Version()` guards every `put` and `delete` of its class. An instance that was read or written
before must still be stored with its version. An instance that the program built may also be new: if it has the initial
version, there may be no stored item, or one with that version. A write that replaces an item increments its version,
so that no version comes twice. A new item has the version of its instance.

A field that is only called "version" is incremented by `update` and compared where `if_version` asks for it. By itself
it guards nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import Entity, EntityType
from adjoin.errors import ConditionFailed, InvalidItem, InvalidValue, NotFound
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import AS_READ, WHOSE, identity_of
from adjoin.plans.deletion import UNMARKED
from adjoin.plans.steps.conditions import initial
from adjoin.values import AttributeValue, Item


@dataclass(frozen=True, slots=True)
class Seen:
    """What is stored: a version; nothing; or a hidden edge of a deleted node, which counts as nothing.

    `mark` is the mark of a delete, for a hidden and for a visible edge, because a new mark could hide the edge.
    """

    version: int | None = None
    mark: AttributeValue | None = None


@dataclass
class Lock:
    """Which stored versions a put of one instance may replace, and which version it then writes."""

    kind: EntityType
    entity: Entity
    expected: int | None
    """The version that must be stored; None for any version."""
    may_be_new: bool
    chosen: int = 0
    """The version that the last attempt writes."""

    @property
    def own(self) -> int:
        return _own(self.kind, self.entity)

    @property
    def guess(self) -> Seen:
        """What is probably stored."""
        is_known = self.expected is not None and not self.may_be_new
        return Seen(self.expected) if is_known else Seen(self.own) if _was_read(self.entity) else Seen()

    @property
    def is_certain(self) -> bool:
        """Whether the put allows only one stored version."""
        return self.expected is not None and not self.may_be_new

    def allows(self, seen: Seen) -> bool:
        if seen.version is None:
            return self.may_be_new
        return self.expected is None or seen.version == self.expected

    def choose(self, seen: Seen) -> Item:
        """The version attribute of an instance that replaces what was `seen`."""
        self.chosen = self.own if seen.version is None else seen.version + 1
        assert self.kind.version is not None
        return {self.kind.attributes[self.kind.version]: {"N": str(self.chosen)}}

    def keep(self) -> None:
        """Sets the version that was written on the instance, unless the class or the field is frozen."""
        name = self.kind.version
        assert name is not None
        is_frozen = self.kind.model.model_config.get("frozen") or self.kind.fields[name].frozen
        if not is_frozen:
            self.entity.__dict__[name] = self.chosen
            self.entity.__pydantic_fields_set__.add(name)
        remember(self.kind, self.entity)


def lock_for(kind: EntityType, entity: Entity, if_version: IfVersion) -> Lock | None:
    """The lock for a put of an instance; None if nothing guards it."""
    if if_version is OWN_VERSION:
        if not kind.is_guarded:
            return None
        own = _own(kind, entity)
        return Lock(kind, entity, own, may_be_new=own == initial(kind) and not _was_read(entity))
    expected = checked_version(kind, if_version)
    if expected is None:
        return Lock(kind, entity, None, may_be_new=True) if kind.is_guarded else None
    return Lock(kind, entity, expected, may_be_new=False)


def expected_version(kind: EntityType, entity: Entity | None, if_version: IfVersion) -> int | None:
    """The version that must be stored: by default that of an instance whose class has a `Version()`; None for any."""
    if if_version is not OWN_VERSION:
        return checked_version(kind, if_version)
    return _own(kind, entity) if entity is not None and kind.is_guarded else None


def delete_lock(
    layout: BoundLayout, kind: EntityType, entity: Entity | None, if_version: IfVersion
) -> Condition | None:
    """The condition for a delete: the entity does not exist any more, or has the expected version."""
    expected = expected_version(kind, entity, if_version)
    return None if expected is None else Or((Not(layout.present), _has_version(kind, expected)))


def checked_version(kind: EntityType, version: int | None) -> int | None:
    if version is None:
        return None
    if kind.version is None:
        raise InvalidValue(
            f"{kind.name} has no version to compare with; declare a field version: int = 0, "
            f"or mark an int field with Version()"
        )
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidValue(f"if_version must be a whole number, got {version!r}; pass the version that was read")
    return version


# --- what is stored ----------------------------------------------------------------------------


def has_version(kind: EntityType, version: int | None) -> Condition | None:
    """Holds for an item of this version; None if no version was asked for."""
    version = checked_version(kind, version)
    return None if version is None else _has_version(kind, version)


def _has_version(kind: EntityType, version: int) -> Condition:
    path = attribute(kind.attribute(kind.version or ""))
    equal = Compare("=", path, Value({"N": str(version)}))
    # An item that another program wrote without a version counts as the initial version.
    return Or((equal, Not(Exists(path)))) if version == initial(kind) else equal


def seen_in(kind: EntityType, item: Mapping[str, Any] | None, *, is_hidden: bool = False) -> Seen:
    """What a stored item means for a lock; `is_hidden`: it is an edge that a delete has hidden."""
    if item is None:
        return Seen()
    mark = item.get(DELETING)
    if is_hidden:
        return Seen(mark=mark)
    assert kind.version is not None
    stored = item.get(kind.attributes[kind.version])
    if stored is None:
        return Seen(initial(kind), mark)
    try:
        return Seen(int(stored["N"]), mark)
    except (KeyError, ValueError):
        raise InvalidItem(
            f"the stored {kind.name} has the version {next(iter(stored.values()))!r}, which is not a whole number; "
            f"correct the item"
        ) from None


def as_seen(layout: BoundLayout, kind: EntityType, seen: Seen) -> Condition:
    """Holds as long as the stored item is what was seen."""
    marked: Condition | None = None if seen.mark is None else Compare("=", attribute(DELETING), Value(seen.mark))
    if seen.version is None:
        return marked or Not(layout.present)
    if kind.can_be_hidden:
        marked = marked or UNMARKED
    return all_of(layout.present, _has_version(kind, seen.version), marked) or layout.present


def stale(lock: Lock, name: str, item: Mapping[str, Any] | None, seen: Seen) -> ConditionFailed | NotFound:
    """The error of a put that may not replace the stored item."""
    if seen.version is None:
        return NotFound(
            f"{name} does not exist any more, so its version {lock.expected} cannot be replaced; "
            f"pass if_version=None to write it anyway"
        )
    return ConditionFailed(
        f"{name} has another version than {lock.expected} (its version is {seen.version}); "
        f"reload it and retry, or pass if_version=None to overwrite it",
        item,
    )


# --- instances ---------------------------------------------------------------------------------


def _own(kind: EntityType, entity: Entity) -> int:
    version = getattr(entity, kind.version or "")
    return version if isinstance(version, int) else initial(kind)


def remember(kind: EntityType, entity: Entity) -> None:
    """Notes on an instance that it is stored, so that its next put expects its version."""
    if kind.is_guarded and not kind.takes_any:
        entity.__dict__[AS_READ] = {**entity.__dict__.get(AS_READ, {}), WHOSE: identity_of(entity)}


def _was_read(entity: Entity) -> bool:
    return bool(entity.__dict__.get(AS_READ, {}).get(WHOSE) == identity_of(entity))
