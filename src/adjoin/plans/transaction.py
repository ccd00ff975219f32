"""Several writes that are committed together or not at all.

Some writes depend on stored items. These are read when the transaction is committed, and the writes are conditional on
what was read. If another program changes an item in between, the transaction is built again and retried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import (
    FAILED_CONDITION,
    AdjoinError,
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
from adjoin.expressions import Condition, Or, all_of
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, OWNER
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import AS_READ, Edge, Ref, node_id
from adjoin.plans.copies import copies_on
from adjoin.plans.deletion import UNMARKED, doomed, visible
from adjoin.plans.entity_write import (
    Claims,
    EntityWrite,
    beside,
    described,
    entity_put,
    is_worth_another,
    read_unexplained,
    revised,
)
from adjoin.plans.in_transaction import Coming, counted_in_transaction, marker
from adjoin.plans.managed_fields import (
    is_kept_by_reading,
    put_request,
    refuse_changed,
    refuse_counted,
    refuse_given,
    written_items,
)
from adjoin.plans.steps.again import AGAIN, Again, Attempt, Done, Failure, disconnected_satellites, until_written
from adjoin.plans.steps.batches import Place, joined, parts_of, place_of, write_place
from adjoin.plans.steps.conditions import broken_bound, write_condition
from adjoin.plans.steps.purposes import Purpose
from adjoin.plans.transaction_edges import add_companions
from adjoin.plans.update import (
    Changed,
    changed_write,
    check_change,
    is_written_anew,
    misfits,
    read_first,
    update_requests,
)
from adjoin.plans.upsert import new_entity, upsert_request, upsert_write
from adjoin.plans.versions import Lock, as_seen, lock_for
from adjoin.plans.write import (
    absent,
    check_claims,
    edge_keys,
    end_checks,
    ends_lock,
    kind_of,
    prepared,
    relieved,
)
from adjoin.requests import Check, Delete, Plan, Put, TransactWrite, Update
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

Made: TypeAlias = Callable[[Claims], Plan[EntityWrite]]
_Named: TypeAlias = tuple[Put | Update | Delete | Check, Purpose]
NamedWrites: TypeAlias = dict[Place, _Named]
"""Each write by the key of its item, with its purpose."""
Told: TypeAlias = dict[Place, tuple[AttributeValue, bool]]
"""Edges that have the mark of a delete: the mark, and whether the edge is still visible."""


@dataclass(frozen=True, slots=True)
class _Later:
    """Writes that are built when the transaction is committed, because they depend on stored items."""

    kind: EntityType
    made: Made
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class _Unseen:
    """A change that is made without reading the item, and how to make it if the item has to be read."""

    change: Changed
    look_first: Callable[[list[str]], None]
    """Reads the named fields and writes after that."""
    finds_marks: bool = False
    """Whether that also finds out whether an edge with the mark of a delete exists."""


class Buffer:
    """Collects the writes of one transaction, each with its purpose."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._writes: list[tuple[Put | Update | Delete, Purpose]] = []
        self._checks: list[tuple[Check, Purpose]] = []
        self._deletes: list[tuple[NodeType, Any, Condition | None, bool]] = []
        self._locks: list[Lock] = []
        self._later: list[_Later] = []
        self._edges: list[tuple[Purpose, list[Item]]] = []
        """The edges that are written, each with the keys of its two nodes."""
        self._copying: list[tuple[EdgeType, AnyEdge]] = []
        """The edges that are connected and have copied fields, which they get when they are written."""
        self._released: set[Place] = set()
        """The claims that go with edges that are disconnected, as far as these have them."""
        self._guarded: list[tuple[EntityType, Item, str]] = []
        """The nodes that are put and have immutable fields."""
        self._unseen: list[tuple[Place, _Unseen]] = []
        """The changes of items that were not read, by the keys of the items."""

    def put(self, entity: Entity, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        kind = kind_of(self._layout, entity)
        wanted = write_condition(self._layout, kind, only_if)
        # A hidden edge counts as absent, so a condition about what is stored must not hold for it.
        if wanted is not None and kind.can_be_hidden:
            wanted = all_of(wanted, UNMARKED)
        self._put(entity, _purpose("put", entity), wanted, lock_for(kind, entity, if_version))

    def add(self, entity: Entity, call: str = "add") -> None:
        kind_of(self._layout, entity)
        self._put(entity, _purpose(call, entity, AlreadyExists), absent(self._layout), is_new=True)

    def _put(
        self,
        entity: Entity,
        purpose: Purpose,
        wanted: Condition | None,
        lock: Lock | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        layout, entity = self._layout, prepared(entity)
        kind = kind_of(layout, entity)
        (refuse_counted if is_new else refuse_given)(layout, kind, entity)
        items = written_items(layout, kind, entity)
        if lock is not None:
            self._locks.append(lock)
            # If the version is not certain, the item has to be read; then the plan of the write sets it.
            if lock.is_certain:
                version = lock.choose(lock.guess)
                items = tuple(item | version for item in items)
                wanted = all_of(as_seen(layout, kind, lock.guess), wanted)
        if layout.rules.immutable(kind):
            self._guarded.append((kind, items[0], described(entity)))
        is_looked_at = is_kept_by_reading(layout, kind) or (lock is not None and not lock.is_certain)
        if kind.claimed or ((kind.elements or is_looked_at) and not is_new):

            def made(claims: Claims) -> Plan[EntityWrite]:
                yield from check_claims(layout, kind)
                if not is_new:
                    return (
                        yield from entity_put(
                            layout, kind, entity, wanted, claims, Coming(), lock, add_companions=False
                        )
                    )
                others = beside(layout, layout.satellites(kind, items, entity.__dict__), claims)
                return EntityWrite(
                    [Put(layout.table, revised(layout, kind, item), wanted) for item in items], others, ()
                )

            self._later.append(_Later(kind, made, purpose))
        elif layout.lacks_unexplained(entity):
            version = {} if lock is None else lock.choose(lock.guess)

            def completed(_: Claims) -> Plan[EntityWrite]:
                yield from read_unexplained(layout, [entity])
                whole = tuple(item | version for item in written_items(layout, kind, entity))
                return EntityWrite(*self._plain_writes(kind, entity, whole, wanted, is_new), ())

            self._later.append(_Later(kind, completed, purpose))
        else:
            own, others = self._plain_writes(kind, entity, items, wanted, is_new)
            self._writes += [(write, purpose) for write in (*own, *others) if not isinstance(write, Check)]
        if isinstance(entity, Edge):
            kind = self._layout.schema.edge(type(entity))
            self._edges.append((purpose, [check.key for check in end_checks(self._layout, kind, entity)]))

    def _plain_writes(
        self, kind: EntityType, entity: Entity, items: tuple[Item, ...], wanted: Condition | None, is_new: bool
    ) -> tuple[list[Put | Update], list[Put | Delete | Check]]:
        """The writes of the items of an entity, and of its satellites, for which nothing has to be read."""
        others: list[Put | Delete | Check] = [
            Put(self._layout.table, each.item) if each.item is not None else Delete(self._layout.table, each.key)
            for each in self._layout.satellites(kind, items, entity.__dict__)
        ]
        return [self._own(kind, item, wanted, is_new) for item in items], others

    def _own(self, kind: EntityType, item: Item, wanted: Condition | None, is_new: bool) -> Put | Update:
        """The write of one item of an entity; a new node has no managed fields to keep."""
        if is_new or self._layout.has_satellites(kind) or counted_in_transaction(self._layout, kind):
            return Put(self._layout.table, revised(self._layout, kind, item), wanted)
        return put_request(self._layout, kind, item, wanted)

    def connect(self, entity: AnyEdge, only_if: Predicate | None = None) -> None:
        kind = self._layout.schema.edge(type(entity))
        ends = ((kind.source, entity.source), (kind.target, entity.target))
        for check, (end, id) in zip(end_checks(self._layout, kind, entity, only_if), ends, strict=False):
            node = id if isinstance(id, Ref) else Ref(end.model, id)
            name = f"{node.model.__name__} {shown(node.id)}"
            there_is_none = (
                f"there is no {name}" if only_if is None else f"there is no {name}, or its condition does not hold"
            )
            self._checks.append((check, _purpose("connect", entity).needing(there_is_none, node.model, node.id)))
        self.add(entity, "connect")
        if copies_on(self._layout, kind):
            self._copying.append((kind, entity))

    def update(self, change: Changed) -> None:
        layout, identity, rest = self._layout, change.identity, change.fields
        check_change(layout, change)
        if is_written_anew(layout, identity.kind):
            self._look_first(change, [])
        elif names := read_first(layout, identity, rest):
            self._look_first(change, names)
        else:
            unmarked = UNMARKED if identity.kind.can_be_hidden else None
            requests = update_requests(layout, identity, rest, change.if_version, change.only_if, unmarked)
            self._writes += [(request, _updating(change)) for request in requests]
            unseen = _Unseen(change, partial(self._look_first, change))
            self._unseen += [(place_of(request.key), unseen) for request in requests]

    def _look_first(self, change: Changed, names: list[str]) -> None:
        layout, identity = self._layout, change.identity

        def completed(claims: Claims) -> Plan[EntityWrite]:
            return changed_write(layout, change, claims, names)

        self._later.append(_Later(identity.kind, completed, _updating(change)))

    def upsert(self, change: Changed) -> None:
        layout, identity, new = self._layout, change.identity, new_entity(self._layout, change)
        purpose = replace(_updating(change), call="upsert", text=f"upsert {identity.name}")
        if isinstance(new, Edge):
            kind = layout.schema.edge(type(new))
            self._edges.append((purpose, [check.key for check in end_checks(layout, kind, new)]))

        def made(claims: Claims, names: list[str] | None = None) -> Plan[EntityWrite]:
            return upsert_write(layout, change, new, claims, names)

        def look_first(names: list[str]) -> None:
            self._later.append(_Later(identity.kind, partial(made, names=names), purpose))

        request = upsert_request(layout, change, new)
        if request is None or not request.actions:
            # An update in a transaction needs an action, and a class may have no attribute to set.
            self._later.append(_Later(identity.kind, made, purpose))
            return
        self._writes.append((replace(request, returns="none"), purpose))
        self._unseen.append((place_of(request.key), _Unseen(change, look_first, finds_marks=True)))

    def disconnect(
        self,
        kind: EdgeType,
        source: Any,
        target: Any,
        fields: Mapping[str, Any],
        lock: Condition | None = None,
        *,
        call: str = "disconnect",
    ) -> None:
        text = f"{call} {kind.name} from {shown(source)} to {shown(target)}"
        purpose = Purpose(call, kind.model, (source, target), text)
        ends = ends_lock(self._layout, self._layout.has_ends(kind, source, target))
        lock = all_of(self._layout.fit(kind).labelled, ends, lock)
        keys = edge_keys(self._layout, kind, source, target, fields)
        self._writes += [(Delete(self._layout.table, key, lock), purpose) for key in keys]
        for each in disconnected_satellites(self._layout, kind, source, target, keys):
            self._writes.append((each, purpose))
            self._released |= {place_of(each.key)} if each.condition is not None else set()

    def delete(self, kind: NodeType, id: Any, lock: Condition | None = None, *, must_find: bool = True) -> None:
        self._deletes.append((kind, id, lock, must_find))

    def commit(self) -> Plan[None]:
        claims = Claims()
        told: Told = {}
        has_tried = False

        def attempt() -> Plan[Attempt[None] | Done[None]]:
            nonlocal has_tried
            writes: NamedWrites = {}
            entity_writes = yield from self._add_writes(writes, claims)
            self._relieve(writes, told)
            gone = yield from self._add_deletes(writes, claims)
            self._add_checks(writes, entity_writes)
            if not writes:
                return Done(None)
            read = yield from add_companions(self._layout, writes, has_tried=has_tried)
            has_tried = True
            if len(writes) > MAX_TRANSACTION:
                raise InvalidRequest(
                    f"the transaction would have {len(writes)} items, but DynamoDB takes {MAX_TRANSACTION}; split it"
                )

            def named(failure: Failure) -> TransactionCanceled:
                assert isinstance(failure, TransactionCanceled)
                return _named(failure, [purpose for _, purpose in writes.values()])

            def failed(failure: Failure) -> Plan[Again]:
                assert isinstance(failure, TransactionCanceled)
                reasons = dict(zip(writes, failure.reasons, strict=True))
                # What was read for the companions may be what changed. Then another attempt reads it again.
                is_outrun = _is_outrun(read, reasons) or bool(read and failure.retryable)
                try:
                    is_worth_another = yield from self._is_worth_another(entity_writes, gone, reasons, claims)
                    # Each of these finds out what the next attempt has to do otherwise, so all of them are asked.
                    is_worth_another = self._has_learned(reasons, told) or is_worth_another
                    is_worth_another = (yield from self._is_told(writes, reasons, told)) or is_worth_another
                    if not (is_worth_another or is_outrun):
                        self._refuse_changed(reasons)
                        raise named(failure)
                except (AlreadyExists, InvalidItem, InvalidValue, NotFound) as refused:
                    reasons_told = [
                        replace(reason, error=type(refused)) if reason.error is ConditionFailed else reason
                        for reason in named(failure).reasons
                    ]
                    raise TransactionCanceled(f"nothing was written: {refused}", reasons_told) from None
                return AGAIN

            requests = tuple(write for write, _ in writes.values())
            return Attempt((TransactWrite(requests),), lambda _: self._fill_in(writes), failed, named)

        yield from until_written(attempt)
        for lock in self._locks:
            lock.keep()

    def _fill_in(self, writes: NamedWrites) -> None:
        """Sets the copied fields that were written on the edges that were connected, unless their class is frozen."""
        for kind, edge in self._copying:
            key = self._layout.edge_key(kind, edge.source, edge.target, edge.__dict__)
            write, _ = writes[place_of(key)]
            stored = self._layout.decode(kind, write.item) if isinstance(write, Put) else None
            if stored is None or kind.model.model_config.get("frozen"):
                continue
            names = [*(copy.field for copy in copies_on(self._layout, kind)), AS_READ]
            edge.__dict__.update({name: stored.__dict__[name] for name in names if name in stored.__dict__})

    def _add_writes(self, writes: NamedWrites, claims: Claims) -> Plan[list[tuple[EntityType, EntityWrite]]]:
        made: list[tuple[Put | Update | Delete | Check, Purpose]] = [*self._writes]
        entity_writes = []
        for later in self._later:
            try:
                entity_write = yield from later.made(claims)
            except (NotFound, ConditionFailed) as error:
                raise _failed(later.purpose, error) from None
            entity_writes.append((later.kind, entity_write))
            beside = (*entity_write.others, *entity_write.more)
            made += [(write, later.purpose) for write in entity_write.own]
            made += [(write, later.purpose) for write in beside if not isinstance(write, Check)]
        for write, purpose in made:
            key = self._key(write)
            # The claim was found to belong to another node, which keeps it.
            if key in claims.others and isinstance(write, Delete):
                continue
            if key in writes and key in self._released:
                writes[key] = _handed_over(writes[key][0], write), purpose
                continue
            if key in writes:
                raise InvalidRequest(_written_twice(writes[key], (write, purpose)))
            writes[key] = (write, purpose)
        return entity_writes

    def _add_deletes(self, writes: NamedWrites, claims: Claims) -> Plan[list[Delete]]:
        """Adds the deletes of nodes with their edges; returns those that are conditional on what was read."""
        conditional = []
        for kind, id, lock, must_find in self._deletes:
            purpose = Purpose("delete", kind.model, id, f"delete {kind.name} {shown(id)}")
            try:
                deletes = yield from doomed(self._layout, kind, id, lock, must_find=must_find)
            except ConditionFailed as error:
                raise _failed(purpose, error) from None
            for edge, ends in self._edges:
                if deletes[0].key in ends:
                    raise InvalidRequest(
                        f"{edge.text!r} needs a node that {purpose.text!r} removes; do only one of them"
                    )
            for each in deletes:
                place = place_of(each.key)
                there = writes.get(place)
                if there is not None and not isinstance(there[0], Delete):
                    raise InvalidRequest(
                        f"a transaction may contain each item only once, but {there[1].text!r} and {purpose.text!r} "
                        f"write the same item; use two transactions"
                    )
                if place in claims.others:
                    continue
                # An edge between two deleted nodes comes twice, once with each node.
                held = all_of(each.condition, there[0].condition) if there is not None else each.condition
                writes[place] = (replace(each, condition=held), purpose)
                conditional += [each] if each.condition is not None else []
            for left in marker(self._layout, kind, self._layout.node_text(kind, id)):
                writes[self._key(left)] = (left, purpose)
        return conditional

    def _add_checks(self, writes: NamedWrites, entity_writes: list[tuple[EntityType, EntityWrite]]) -> None:
        for check, purpose in self._checks:
            key = self._key(check)
            if key in writes and isinstance(writes[key][0], Delete):
                raise InvalidRequest(
                    f"{purpose.text}: {purpose.why}, because {writes[key][1].text!r} of the same transaction removes it"
                )
            # A node that this transaction writes will exist, and DynamoDB refuses two operations on one item.
            there = writes.get(key)
            writes[key] = (check, purpose) if there is None else (joined(self._layout, there[0], check), there[1])
        for later, (_, entity_write) in zip(self._later, entity_writes, strict=True):
            for write in entity_write.others:
                if isinstance(write, Check):
                    taking_over = later.purpose.beside("take over a unique value")
                    writes.setdefault(self._key(write), (write, taking_over))

    def _is_worth_another(
        self,
        entity_writes: list[tuple[EntityType, EntityWrite]],
        deletes: list[Delete],
        reasons: Mapping[Place, CancellationReason],
        claims: Claims,
    ) -> Plan[bool]:
        again = False
        for place in self._released & reasons.keys() - claims.others:
            if reasons[place].is_failed_condition:
                # Another edge has the claim, and keeps it.
                claims.others.add(place)
                again = True
        for kind, entity_write in entity_writes:
            own = [reasons[self._key(write)] for write in entity_write.writes]
            again = (yield from is_worth_another(self._layout, kind, entity_write, own, claims)) or again
        for delete in deletes:
            reason = reasons[place_of(delete.key)]
            if reason.is_failed_condition:
                again = True
                if reason.item is not None and OWNER in reason.item:
                    claims.others.add(place_of(delete.key))
        return again

    def _relieve(self, writes: NamedWrites, told: Told) -> None:
        """Adapts the conditions of writes to edges that have the mark of a delete, where they can hold."""
        for place, (mark, is_shown) in told.items():
            write, purpose = writes[place]
            assert write.condition is not None
            wanted = relieved(self._layout, write.condition, mark, is_shown=is_shown)
            if wanted is not None:
                writes[place] = replace(write, condition=wanted), purpose

    def _is_told(self, writes: NamedWrites, reasons: Mapping[Place, CancellationReason], told: Told) -> Plan[bool]:
        """Finds out whether edges with marks are visible; returns whether another attempt may succeed with that."""
        again = False
        for place, reason in reasons.items():
            item, (write, _) = reason.item, writes[place]
            if not reason.is_failed_condition or item is None or DELETING not in item:
                continue
            # The write was made for this mark already, so its condition fails for another reason.
            if place in told and told[place][0] == item[DELETING]:
                continue
            parts = parts_of(write.condition)
            # A hidden edge counts as absent, and a delete that asks for a version holds for an absent edge.
            if UNMARKED in parts or absent(self._layout) in parts or isinstance(write, Delete) or place in told:
                assert write.condition is not None
                is_shown = bool((yield from visible(self._layout, [dict(item)])))
                if relieved(self._layout, write.condition, item[DELETING], is_shown=is_shown) is None:
                    return False
                told[place] = item[DELETING], is_shown
                again = True
        return again

    def _has_learned(self, reasons: Mapping[Place, CancellationReason], told: Told) -> bool:
        """Whether an item failed the conditions of its class but can be read; the next attempt then reads it first."""
        # The two items of a symmetric edge share one change, which is read once, so changes are told apart by
        # identity.
        learned: dict[int, tuple[_Unseen, list[str]]] = {}
        for place, unseen in self._unseen:
            reason = reasons.get(place)
            if reason is None or not reason.is_failed_condition or reason.item is None:
                continue
            if DELETING in reason.item and unseen.finds_marks:
                learned[id(unseen)] = unseen, []
                continue
            if DELETING in reason.item and place not in told:
                # It is not known yet whether the edge is visible.
                continue
            change = unseen.change
            if names := misfits(self._layout, change.identity, change.fields, dict(reason.item)):
                learned[id(unseen)] = unseen, names
        for unseen, names in learned.values():
            places = [place_of(key) for key in unseen.change.identity.keys]
            self._writes = [each for each in self._writes if self._key(each[0]) not in places]
            self._unseen = [each for each in self._unseen if each[1] is not unseen]
            unseen.look_first(names)
        return bool(learned)

    def _refuse_changed(self, reasons: Mapping[Place, CancellationReason]) -> None:
        for kind, item, name in self._guarded:
            reason = reasons.get(place_of(self._layout.key_of(item)))
            if reason is not None and reason.is_failed_condition:
                refuse_changed(self._layout, kind, item, reason.item, name)

    def _key(self, write: Put | Update | Delete | Check) -> Place:
        return write_place(self._layout, write)


def _handed_over(one: Put | Update | Delete | Check, other: Put | Update | Delete | Check) -> Put | Delete:
    """One write of a claim that an edge gives up and another one takes in the same transaction."""
    given, taken = (one, other) if isinstance(other, Put) else (other, one)
    assert isinstance(given, Delete)
    assert isinstance(taken, Put | Delete)
    if given.condition is None or taken.condition is None:
        return taken
    return replace(taken, condition=Or((taken.condition, given.condition)))


def _written_twice(one: _Named, other: _Named) -> str:
    """Why two writes of one item cannot be in a transaction."""
    both = f"{one[1].text!r} and {other[1].text!r}"
    if any(isinstance(write, Put) and OWNER in write.item for write, _ in (one, other)):
        return (
            f"{both} are about the same unique value: one takes it, and the other takes it too or gives it up, but a "
            f"transaction can write the claim to it only once; let one of them change to another value before"
        )
    return (
        f"a transaction may contain each item only once, but {both} write the same item; make one write of them, or "
        f"use two transactions"
    )


def _is_outrun(read: Mapping[Place, Item | None], reasons: Mapping[Place, CancellationReason]) -> bool:
    """Whether an item that was read for the edges of the transaction has changed since."""
    return any(
        reason.is_failed_condition and place in read and reason.item != read[place] for place, reason in reasons.items()
    )


def _purpose(call: str, entity: Entity, fails_as: type[AdjoinError] = ConditionFailed) -> Purpose:
    id = (entity.source, entity.target) if isinstance(entity, Edge) else node_id(entity)
    return Purpose(call, type(entity), id, f"{call} {described(entity)}", fails_as)


def _updating(change: Changed) -> Purpose:
    identity = change.identity
    why = partial(broken_bound, identity.kind, change.fields)
    return Purpose("update", identity.kind.model, identity.id, f"update {identity.name}", why_of=why)


def _failed(purpose: Purpose, error: NotFound | ConditionFailed) -> TransactionCanceled:
    """The error of a transaction that is not sent, because one of its conditions is known to fail."""
    found = CancellationReason(FAILED_CONDITION, str(error), getattr(error, "item", None))
    reason = replace(replace(purpose, why=str(error)).told(found), error=type(error))
    return TransactionCanceled(f"nothing was written, because of {reason.message}", [reason])


def _named(canceled: TransactionCanceled, purposes: list[Purpose]) -> TransactionCanceled:
    """The same error with the purpose of each failed write."""
    reasons = [purpose.told(reason) for reason, purpose in zip(canceled.reasons, purposes, strict=True)]
    # Both items of a symmetric edge fail for one reason.
    failed = "; ".join(dict.fromkeys(reason.message for reason in reasons if reason.code != "None"))
    return TransactionCanceled(f"nothing was written, because of {failed}", reasons)
