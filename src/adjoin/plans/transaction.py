"""Several writes that happen together or not at all.

Some look at what is there when the transaction is committed, and hold only as long as that is so. If
somebody else comes between, the transaction is made anew and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from adjoin.errors import (
    AlreadyExists,
    CancellationReason,
    ConditionFailed,
    InvalidItem,
    InvalidRequest,
    InvalidValue,
    NotFound,
    TransactionCanceled,
    shown,
)
from adjoin.expressions import Compare, Condition, Value, all_of, attribute
from adjoin.fields import Predicate
from adjoin.layouts.interface import DELETING, OWNER, BoundLayout
from adjoin.model import OWN_VERSION, Edge, IfVersion
from adjoin.plans import Plan
from adjoin.plans.accompany import accompany
from adjoin.plans.at_once import counted_at_once, parts_of
from adjoin.plans.batches import Place, place_of
from adjoin.plans.bundles import (
    ATTEMPTS,
    Bundle,
    Claims,
    beside,
    described,
    is_worth_another,
    put_bundle,
    revised,
    update_bundle,
)
from adjoin.plans.conditions import condition
from adjoin.plans.deletion import UNMARKED, doomed, visible
from adjoin.plans.guarded import is_carried, put_request, refuse_changed, refuse_counted, refuse_given, written_items
from adjoin.plans.newcomers import Coming, marker
from adjoin.plans.update import (
    Identity,
    filled_in,
    identified,
    misfits,
    read_first,
    update_condition,
    update_requests,
)
from adjoin.plans.versions import Lock, as_seen, lock_for
from adjoin.plans.write import (
    absent,
    edge_keys,
    end_checks,
    kind_of,
    relieved,
)
from adjoin.requests import Check, Delete, Put, TransactWrite, Update
from adjoin.schema import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

Made: TypeAlias = Callable[[Claims], Plan[Bundle]]
Written: TypeAlias = dict[Place, tuple[Put | Update | Delete | Check, str]]
"""Each write under the key of its item, with what it is for."""
Told: TypeAlias = dict[Place, tuple[AttributeValue, bool]]
"""The marks with which edges were met, and whether these are there for everybody all the same."""


@dataclass(frozen=True, slots=True)
class _Later:
    """Writes that are made when the transaction is committed, because they look at what is there."""

    kind: EntityType
    made: Made
    name: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of fields, as it was asked for."""

    identity: Identity
    fields: Mapping[str, Any]
    if_version: int | None
    only_if: Predicate | None


class Buffer:
    """Collects the writes of one transaction; what each was for is kept for messages."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._writes: list[tuple[Put | Update | Delete, str]] = []
        self._checks: list[tuple[Check, str]] = []
        self._deletes: list[tuple[NodeType, Any, Condition | None]] = []
        self._locks: list[Lock] = []
        self._later: list[_Later] = []
        self._edges: list[tuple[str, list[Item]]] = []
        """The edges that are written, each with the keys of the nodes at its ends."""
        self._guarded: list[tuple[EntityType, Item, str]] = []
        """The nodes that are put and have something that must not change."""
        self._unseen: list[tuple[Place, _Change]] = []
        """The changes of items that were not looked at, by the keys of those."""

    def __len__(self) -> int:
        return len(self._writes) + len(self._later) + len(self._checks) + len(self._deletes)

    def put(self, entity: Entity, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        kind = kind_of(self._layout, entity)
        wanted = None if only_if is None else condition(self._layout, kind, only_if)
        if wanted is not None and isinstance(kind, EdgeType):
            wanted = all_of(wanted, UNMARKED)
        self._put(entity, f"put {described(entity)}", wanted, lock_for(kind, entity, if_version))

    def add(self, entity: Entity) -> None:
        kind_of(self._layout, entity)
        self._put(entity, f"add {described(entity)}", absent(self._layout), is_new=True)

    def _put(
        self, entity: Entity, name: str, wanted: Condition | None, lock: Lock | None = None, *, is_new: bool = False
    ) -> None:
        layout, kind = self._layout, kind_of(self._layout, entity)
        (refuse_counted if is_new else refuse_given)(layout, kind, entity)
        items = written_items(layout, kind, entity)
        if lock is not None:
            self._locks.append(lock)
            if lock.is_certain:
                version = lock.choose(lock.guess)
                items = tuple(item | version for item in items)
                wanted = all_of(as_seen(layout, kind, lock.guess), wanted)
        if layout.rules.immutable(kind):
            self._guarded.append((kind, items[0], described(entity)))
        is_looked_at = is_carried(layout, kind) or (lock is not None and not lock.is_certain)
        if kind.unique or (is_looked_at and not is_new):

            def made(claims: Claims) -> Plan[Bundle]:
                if not is_new:
                    return (
                        yield from put_bundle(layout, kind, entity, wanted, claims, Coming(), lock, accompany=False)
                    )
                others = beside(layout, layout.satellites(kind, items, entity.__dict__), claims)
                return Bundle([Put(layout.table, revised(layout, kind, item), wanted) for item in items], others, ())

            self._later.append(_Later(kind, made, name))
        else:
            puts = [self._own(kind, item, wanted, is_new) for item in items]
            others = [
                Put(layout.table, each.item) if each.item is not None else Delete(layout.table, each.key)
                for each in layout.satellites(kind, items, entity.__dict__)
            ]
            self._writes += [(write, name) for write in (*puts, *others)]
        if isinstance(entity, Edge):
            kind = self._layout.schema.edge(type(entity))
            self._edges.append((name, [check.key for check in end_checks(self._layout, kind, entity)]))

    def _own(self, kind: EntityType, item: Item, wanted: Condition | None, is_new: bool) -> Put | Update:
        """What writes one item of an entity; a node that is new has nothing that must stay."""
        if is_new or self._layout.has_satellites(kind) or counted_at_once(self._layout, kind):
            return Put(self._layout.table, revised(self._layout, kind, item), wanted)
        return put_request(self._layout, kind, item, wanted)

    def connect(self, entity: AnyEdge) -> None:
        kind = self._layout.schema.edge(type(entity))
        for check in end_checks(self._layout, kind, entity):
            node = place_of(check.key)[0]
            self._checks.append((check, f"connect {described(entity)}: there is no node {node!r}"))
        self.add(entity)

    def update(
        self,
        model: type[Any],
        ids: tuple[Any, ...],
        changes: Mapping[str, Any],
        if_version: int | None,
        only_if: Predicate | None,
    ) -> None:
        layout, (identity, rest) = self._layout, identified(self._layout, model, ids, changes)
        if layout.has_satellites(identity.kind) or counted_at_once(layout, identity.kind):
            seen = identity.kind.attributes
            wanted = update_condition(layout, identity, rest, if_version, only_if, seen=seen)

            def bundled(claims: Claims) -> Plan[Bundle]:
                kind, keys = identity.kind, identity.keys
                return update_bundle(layout, kind, keys, rest, wanted, identity.name, claims, accompany=False)

            self._later.append(_Later(identity.kind, bundled, f"update {identity.name}"))
            return
        change = _Change(identity, rest, if_version, only_if)
        if names := read_first(layout, identity, rest):
            self._look_first(change, names)
        else:
            unmarked = UNMARKED if isinstance(identity.kind, EdgeType) else None
            requests = update_requests(layout, identity, rest, if_version, only_if, unmarked)
            self._writes += [(request, f"update {identity.name}") for request in requests]
            self._unseen += [(place_of(request.key), change) for request in requests]

    def _look_first(self, change: _Change, names: list[str]) -> None:
        layout, identity = self._layout, change.identity

        def completed(_: Claims) -> Plan[Bundle]:
            known, absolute, as_read, item, _after = yield from filled_in(layout, identity, change.fields, names)
            watched = [identity.kind.attributes[each] for each in names]
            if isinstance(identity.kind, EdgeType):
                # It was seen to be there by its marks; another may hide it.
                as_read = all_of(as_read, _as_marked(item))
                watched.append(DELETING)
            updates = update_requests(layout, known, absolute, change.if_version, change.only_if, as_read, names)
            return Bundle(updates, [], [item] * len(updates), watched=watched)

        self._later.append(_Later(identity.kind, completed, f"update {identity.name}"))

    def disconnect(
        self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any], lock: Condition | None = None
    ) -> None:
        name = f"disconnect {kind.name} from {shown(source)} to {shown(target)}"
        for key in edge_keys(self._layout, kind, source, target, fields):
            self._writes.append((Delete(self._layout.table, key, lock), name))
            self._writes += [(Delete(self._layout.table, copy), name) for copy in self._layout.copy_keys(kind, key)]

    def delete(self, kind: NodeType, id: Any, lock: Condition | None = None) -> None:
        self._deletes.append((kind, id, lock))

    def commit(self) -> Plan[None]:
        claims = Claims()
        attempt = 0
        told: Told = {}
        while True:
            writes: Written = {}
            bundles = yield from self._add_writes(writes, claims)
            self._relieve(writes, told)
            gone = yield from self._add_deletes(writes, claims)
            self._add_checks(writes, bundles)
            if not writes:
                return
            read = yield from accompany(self._layout, writes, has_tried=attempt > 0)
            if len(writes) > MAX_TRANSACTION:
                raise InvalidRequest(
                    f"the transaction would have {len(writes)} items, and DynamoDB takes {MAX_TRANSACTION}; split it"
                )
            attempt += 1
            try:
                yield (TransactWrite(tuple(write for write, _ in writes.values())),)
                for lock in self._locks:
                    lock.keep()
                return
            except TransactionCanceled as canceled:
                named = _named(canceled, [name for _, name in writes.values()])
                reasons = dict(zip(writes, canceled.reasons, strict=True))
                is_outrun = _is_outrun(read, reasons) or bool(read and canceled.retryable)
            try:
                is_worth_another = yield from self._is_worth_another(bundles, gone, reasons, claims)
                is_worth_another = self._has_learned(reasons, told) or is_worth_another
                is_worth_another = (yield from self._is_told(writes, reasons, told)) or is_worth_another
                if attempt == ATTEMPTS or not (is_worth_another or is_outrun):
                    self._refuse_changed(reasons)
                    raise named
            except (AlreadyExists, InvalidItem, InvalidValue, NotFound) as refused:
                raise TransactionCanceled(f"nothing was written: {refused}", named.reasons) from None

    def _add_writes(self, writes: Written, claims: Claims) -> Plan[list[tuple[EntityType, Bundle]]]:
        made = list(self._writes)
        bundles = []
        for later in self._later:
            try:
                bundle = yield from later.made(claims)
            except (NotFound, ConditionFailed) as error:
                raise _failed(later.name, error) from None
            bundles.append((later.kind, bundle))
            made += [(write, later.name) for write in bundle.writes if not isinstance(write, Check)]
        for write, name in made:
            key = self._key(write)
            if key in writes:
                raise InvalidRequest(
                    f"a transaction takes an item once, but {writes[key][1]!r} and {name!r} are about the same; "
                    f"make one write of them, or two transactions"
                )
            writes[key] = (write, name)
        return bundles

    def _add_deletes(self, writes: Written, claims: Claims) -> Plan[list[Delete]]:
        """The deletes of nodes, and those of them that hold only as long as a node is what was read."""
        conditional = []
        for kind, id, lock in self._deletes:
            name = f"delete {kind.name} {id!r}"
            try:
                deletes = yield from doomed(self._layout, kind, id, lock)
            except ConditionFailed as error:
                raise _failed(name, error) from None
            for edge_name, ends in self._edges:
                if deletes[0].key in ends:
                    raise InvalidRequest(f"{edge_name!r} would hang at a node that {name!r} removes; do one of them")
            for each in deletes:
                place = place_of(each.key)
                there = writes.get(place)
                if there is not None and not isinstance(there[0], Delete):
                    raise InvalidRequest(
                        f"a transaction takes an item once, but {there[1]!r} and {name!r} are about the same; "
                        f"make two transactions of them"
                    )
                if place in claims.others:
                    continue
                # An edge between two nodes that both go is met twice.
                held = all_of(each.condition, there[0].condition) if there is not None else each.condition
                writes[place] = (replace(each, condition=held), name)
                conditional += [each] if each.condition is not None else []
            for left in marker(self._layout, kind, self._layout.node_text(kind, id)):
                writes[self._key(left)] = (left, name)
        return conditional

    def _add_checks(self, writes: Written, bundles: list[tuple[EntityType, Bundle]]) -> None:
        for check, name in self._checks:
            key = self._key(check)
            if key in writes and isinstance(writes[key][0], Delete):
                raise InvalidRequest(f"{name}, because {writes[key][1]!r} of the same transaction removes it")
            # A node that this transaction writes will be there; checking it too would be the item twice.
            writes.setdefault(key, (check, name))
        for _, bundle in bundles:
            for write in bundle.others:
                if isinstance(write, Check):
                    writes.setdefault(self._key(write), (write, "take over a unique value"))

    def _is_worth_another(
        self,
        bundles: list[tuple[EntityType, Bundle]],
        deletes: list[Delete],
        reasons: Mapping[Place, CancellationReason],
        claims: Claims,
    ) -> Plan[bool]:
        again = False
        for kind, bundle in bundles:
            own = [reasons[self._key(write)] for write in bundle.writes]
            again = (yield from is_worth_another(self._layout, kind, bundle, own, claims)) or again
        for delete in deletes:
            reason = reasons[place_of(delete.key)]
            if reason.code == "ConditionalCheckFailed":
                again = True
                if reason.item is not None and OWNER in reason.item:
                    claims.others.add(place_of(delete.key))
        return again

    def _relieve(self, writes: Written, told: Told) -> None:
        """Lets writes of edges that were met with marks hold for them, as far as they may."""
        for place, (mark, is_shown) in told.items():
            write, name = writes[place]
            assert write.condition is not None
            wanted = relieved(self._layout, write.condition, mark, is_shown=is_shown)
            if wanted is not None:
                writes[place] = replace(write, condition=wanted), name

    def _is_told(self, writes: Written, reasons: Mapping[Place, CancellationReason], told: Told) -> Plan[bool]:
        """Learns whether edges with marks are there; says whether another attempt may succeed after that."""
        again = False
        for place, reason in reasons.items():
            item, (write, _) = reason.item, writes[place]
            if reason.code != "ConditionalCheckFailed" or item is None or DELETING not in item:
                continue
            if place in told and told[place][0] == item[DELETING]:
                continue
            parts = parts_of(write.condition)
            # A delete that asks for a version holds for an edge that nobody sees.
            if UNMARKED in parts or absent(self._layout) in parts or isinstance(write, Delete) or place in told:
                assert write.condition is not None
                is_shown = bool((yield from visible(self._layout, [dict(item)])))
                if relieved(self._layout, write.condition, item[DELETING], is_shown=is_shown) is None:
                    return False
                told[place] = item[DELETING], is_shown
                again = True
        return again

    def _has_learned(self, reasons: Mapping[Place, CancellationReason], told: Told) -> bool:
        """Whether an item did not pass by conditions, but can be read; then it is looked at in the next attempt."""
        learned: dict[int, tuple[_Change, list[str]]] = {}
        for place, change in self._unseen:
            reason = reasons.get(place)
            if reason is None or reason.code != "ConditionalCheckFailed" or reason.item is None:
                continue
            if DELETING in reason.item and place not in told:
                # Whether it is there at all is not known yet.
                continue
            if names := misfits(self._layout, change.identity, change.fields, dict(reason.item)):
                learned[id(change)] = change, names
        for change, names in learned.values():
            places = [place_of(key) for key in change.identity.keys]
            self._writes = [each for each in self._writes if self._key(each[0]) not in places]
            self._unseen = [each for each in self._unseen if each[1] is not change]
            self._look_first(change, names)
        return bool(learned)

    def _refuse_changed(self, reasons: Mapping[Place, CancellationReason]) -> None:
        for kind, item, name in self._guarded:
            reason = reasons.get(place_of(self._layout.key_of(item)))
            if reason is not None and reason.code == "ConditionalCheckFailed":
                refuse_changed(self._layout, kind, item, reason.item, name)

    def _key(self, write: Put | Update | Delete | Check) -> Place:
        return place_of(self._layout.key_of(write.item) if isinstance(write, Put) else write.key)


def _as_marked(item: Item) -> Condition:
    """Holds as long as an edge has the marks that it had."""
    return Compare("=", attribute(DELETING), Value(item[DELETING])) if DELETING in item else UNMARKED


def _is_outrun(read: Mapping[Place, Item | None], reasons: Mapping[Place, CancellationReason]) -> bool:
    """Whether something is not any more what was read to go along with edges."""
    return any(
        reason.code == "ConditionalCheckFailed" and place in read and reason.item != read[place]
        for place, reason in reasons.items()
    )


def _failed(name: str, error: NotFound | ConditionFailed) -> TransactionCanceled:
    """The error of a transaction that need not be tried, because one of its conditions does not hold."""
    reason = CancellationReason("ConditionalCheckFailed", f"{name}: {error}", getattr(error, "item", None))
    return TransactionCanceled(f"nothing was written, because of {reason.message}", [reason])


def _named(canceled: TransactionCanceled, names: list[str]) -> TransactionCanceled:
    """The same error, with the failed writes called by what they were for."""
    reasons = [
        reason
        if reason.code == "None"
        else CancellationReason(reason.code, f"{name}: {reason.message or reason.code}", reason.item)
        for reason, name in zip(canceled.reasons, names, strict=True)
    ]
    failed = "; ".join(reason.message for reason in reasons if reason.code != "None")
    return TransactionCanceled(f"nothing was written, because of {failed}", reasons)
