"""Optimistic locking: a write of an instance holds only while what is stored has the version that the instance has.

A class with a field marked `Version()` is guarded so in `put` and `delete`, whoever writes. An instance that was read,
or written before, must still be there with its version. One that was built by hand may also be new: if its version is
the one that a new instance has, nothing may be there, or what has that version. Whoever replaces something counts its
version up, so that no version comes twice; what is new has the version that it was given.

A field that is only called "version" is counted by `update`, and compared where `if_version` says so; by itself it
guards nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjoin.errors import ConditionFailed, InvalidItem, InvalidValue, NotFound
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, all_of, attribute
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.model import AS_READ, OWN_VERSION, WHOSE, IfVersion, identity_of
from adjoin.plans.deletion import UNMARKED
from adjoin.schema import EdgeType, Entity, EntityType
from adjoin.values import AttributeValue, Item


@dataclass(frozen=True, slots=True)
class Seen:
    """What is stored: a version, nothing, or what is left of an edge whose node was deleted, which has no version.

    The mark of a delete is told for either, because another may hide an edge that is there.
    """

    version: int | None = None
    mark: AttributeValue | None = None


@dataclass
class Lock:
    """What a put of one instance may find, and which version it then has."""

    kind: EntityType
    entity: Entity
    expected: int | None
    """The version that must be there; None if any may."""
    may_be_new: bool
    chosen: int = 0
    """The version that the last attempt writes."""

    @property
    def own(self) -> int:
        return _own(self.kind, self.entity)

    @property
    def guess(self) -> Seen:
        """What is probably there."""
        is_known = self.expected is not None and not self.may_be_new
        return Seen(self.expected) if is_known else Seen(self.own) if _was_read(self.entity) else Seen()

    @property
    def is_certain(self) -> bool:
        """Whether only one thing may be there."""
        return self.expected is not None and not self.may_be_new

    def allows(self, seen: Seen) -> bool:
        if seen.version is None:
            return self.may_be_new
        return self.expected is None or seen.version == self.expected

    def choose(self, seen: Seen) -> Item:
        """The attribute with the version of an instance that is written in place of this."""
        self.chosen = self.own if seen.version is None else seen.version + 1
        assert self.kind.version is not None
        return {self.kind.attributes[self.kind.version]: {"N": str(self.chosen)}}

    def keep(self) -> None:
        """Lets the instance have the version that was written; one that is frozen stays as it is."""
        name = self.kind.version
        assert name is not None
        is_frozen = self.kind.model.model_config.get("frozen") or self.kind.fields[name].frozen
        if not is_frozen:
            self.entity.__dict__[name] = self.chosen
            self.entity.__pydantic_fields_set__.add(name)
        remember(self.kind, self.entity)


def lock_for(kind: EntityType, entity: Entity, if_version: IfVersion) -> Lock | None:
    """What guards a put of an instance; None if nothing does."""
    if if_version is OWN_VERSION:
        if not kind.is_guarded:
            return None
        own = _own(kind, entity)
        return Lock(kind, entity, own, may_be_new=own == initial(kind) and not _was_read(entity))
    expected = checked_version(kind, if_version)
    if expected is None:
        return Lock(kind, entity, None, may_be_new=True) if kind.is_guarded else None
    return Lock(kind, entity, expected, may_be_new=False)


def delete_lock(
    layout: BoundLayout, kind: EntityType, entity: Entity | None, if_version: IfVersion
) -> Condition | None:
    """What must hold for something to be deleted: it is gone already, or has the version."""
    if if_version is OWN_VERSION:
        expected = _own(kind, entity) if entity is not None and kind.is_guarded else None
    else:
        expected = checked_version(kind, if_version)
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
        raise InvalidValue(f"if_version is {version!r}, and a version is a whole number; give that of what was read")
    return version


# --- what is stored ----------------------------------------------------------------------------


def initial(kind: EntityType) -> int:
    """The version of a new instance, which is also that of an item without one."""
    assert kind.version is not None
    info = kind.fields[kind.version]
    default = None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
    return default if isinstance(default, int) else 0


def has_version(kind: EntityType, version: int | None) -> Condition | None:
    """Holds for an item of this version, if one was asked for."""
    version = checked_version(kind, version)
    return None if version is None else _has_version(kind, version)


def _has_version(kind: EntityType, version: int) -> Condition:
    path = attribute(kind.attribute(kind.version or ""))
    equal = Compare("=", path, Value({"N": str(version)}))
    # An item that another program wrote without a version has the first one.
    return Or((equal, Not(Exists(path)))) if version == initial(kind) else equal


def seen_in(kind: EntityType, item: Mapping[str, Any] | None, *, is_hidden: bool = False) -> Seen:
    """What an item that was met is for a lock; `is_hidden` says that nobody sees it any more."""
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
            f"the stored {kind.name} has the version {next(iter(stored.values()))!r}, which is no whole number; "
            f"correct the item"
        ) from None


def as_seen(layout: BoundLayout, kind: EntityType, seen: Seen) -> Condition:
    """Holds as long as there is what was seen."""
    marked: Condition | None = None if seen.mark is None else Compare("=", attribute(DELETING), Value(seen.mark))
    if seen.version is None:
        return marked or Not(layout.present)
    if isinstance(kind, EdgeType):
        marked = marked or UNMARKED
    return all_of(layout.present, _has_version(kind, seen.version), marked) or layout.present


def stale(lock: Lock, name: str, item: Mapping[str, Any] | None, seen: Seen) -> ConditionFailed | NotFound:
    """The error of a put that may not replace what is there."""
    if seen.version is None:
        return NotFound(
            f"there is no {name} any more, and version {lock.expected} of it was to be replaced; "
            f"pass if_version=None to write it all the same"
        )
    return ConditionFailed(
        f"{name} has another version than {lock.expected} (its version is {seen.version}); "
        f"read it again and decide anew, or pass if_version=None to overwrite it",
        item,
    )


# --- instances ---------------------------------------------------------------------------------


def _own(kind: EntityType, entity: Entity) -> int:
    version = entity.__dict__[kind.version or ""]
    return version if isinstance(version, int) else initial(kind)


def remember(kind: EntityType, entity: Entity) -> None:
    """Notes on an instance that it is stored."""
    if kind.is_guarded and not kind.takes_any:
        entity.__dict__[AS_READ] = {**entity.__dict__.get(AS_READ, {}), WHOSE: identity_of(entity)}


def _was_read(entity: Entity) -> bool:
    return bool(entity.__dict__.get(AS_READ, {}).get(WHOSE) == identity_of(entity))
