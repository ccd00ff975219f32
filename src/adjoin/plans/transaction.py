"""Several writes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from adjoin.errors import CancellationReason, InvalidRequest, TransactionCanceled
from adjoin.expressions import Condition
from adjoin.fields import Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.model import Edge
from adjoin.plans import Plan
from adjoin.plans.batches import Place, place_of
from adjoin.plans.bundles import Bundle, beside, put_bundle, revised, update_bundle
from adjoin.plans.conditions import condition
from adjoin.plans.deletion import doomed_keys
from adjoin.plans.update import Identity, filled_in, identified, read_first, update_condition, update_requests
from adjoin.plans.write import (
    absent,
    described,
    edge_keys,
    end_checks,
    kind_of,
)
from adjoin.requests import Check, Delete, Put, TransactWrite, Update
from adjoin.schema import AnyEdge, EdgeType, Entity, NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item

Writes: TypeAlias = Sequence[Put | Update | Delete]


class Buffer:
    """Collects the writes of one transaction; what each was for is kept for messages."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._writes: list[tuple[Put | Update | Delete, str]] = []
        self._checks: list[tuple[Check, str]] = []
        self._deletes: list[tuple[NodeType, Any]] = []
        self._later: list[tuple[Plan[Writes], str]] = []
        """Writes that are made when the transaction is committed, because they look at what is there."""
        self._edges: list[tuple[str, list[Item]]] = []
        """The edges that are written, each with the keys of the nodes at its ends."""

    def __len__(self) -> int:
        return len(self._writes) + len(self._later) + len(self._checks) + len(self._deletes)

    def put(self, entity: Entity, only_if: Predicate | None = None) -> None:
        kind = kind_of(self._layout, entity)
        self._put(
            entity, f"put {described(entity)}", None if only_if is None else condition(self._layout, kind, only_if)
        )

    def add(self, entity: Entity) -> None:
        kind_of(self._layout, entity)
        self._put(entity, f"add {described(entity)}", absent(self._layout), is_new=True)

    def _put(self, entity: Entity, name: str, wanted: Condition | None, *, is_new: bool = False) -> None:
        layout, kind = self._layout, kind_of(self._layout, entity)
        if kind.unique and not is_new:
            self._later.append((self._bundled(put_bundle(layout, kind, entity, wanted, set())), name))
        else:
            items = layout.items(entity)
            puts = [Put(layout.table, revised(layout, kind, item), wanted) for item in items]
            others = beside(layout, layout.satellites(kind, items, entity.__dict__), set())
            self._writes += [(write, name) for write in (*puts, *others)]
        if isinstance(entity, Edge):
            kind = self._layout.schema.edge(type(entity))
            self._edges.append((name, [check.key for check in end_checks(self._layout, kind, entity)]))

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
        name = f"update {identity.name}"
        if layout.has_satellites(identity.kind):
            wanted = update_condition(layout, identity, rest, if_version, only_if)
            made = update_bundle(layout, identity.kind, identity.keys, rest, wanted, identity.name, set())
            self._later.append((self._bundled(made), name))
        elif needed := read_first(layout, identity, rest):
            self._later.append((self._filled_in(identity, rest, if_version, only_if, needed), name))
        else:
            updates = update_requests(layout, identity, rest, if_version, only_if)
            self._writes += [(request, name) for request in updates]

    def _bundled(self, made: Plan[Bundle]) -> Plan[Writes]:
        bundle = yield from made
        return bundle.writes

    def _filled_in(
        self,
        identity: Identity,
        changes: Mapping[str, Any],
        if_version: int | None,
        only_if: Predicate | None,
        needed: list[str],
    ) -> Plan[Writes]:
        known, absolute, as_read, _ = yield from filled_in(self._layout, identity, changes, needed)
        return update_requests(self._layout, known, absolute, if_version, only_if, as_read)

    def disconnect(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> None:
        name = f"disconnect {kind.name} from {source!r} to {target!r}"
        for key in edge_keys(self._layout, kind, source, target, fields):
            for each in (key, *self._layout.copy_keys(kind, key)):
                self._writes.append((Delete(self._layout.table, each), name))

    def delete(self, kind: NodeType, id: Any) -> None:
        self._deletes.append((kind, id))

    def commit(self) -> Plan[None]:
        writes: dict[Place, tuple[Put | Update | Delete | Check, str]] = {}
        made = list(self._writes)
        for plan, name in self._later:
            made += [(write, name) for write in (yield from plan)]
        for write, name in made:
            key = self._key(write)
            if key in writes:
                raise InvalidRequest(
                    f"a transaction takes an item once, but {writes[key][1]!r} and {name!r} are about the same; "
                    f"make one write of them, or two transactions"
                )
            writes[key] = (write, name)
        for kind, id in self._deletes:
            keys = yield from doomed_keys(self._layout, kind, id)
            name = f"delete {kind.name} {id!r}"
            for edge_name, ends in self._edges:
                if keys[0] in ends:
                    raise InvalidRequest(f"{edge_name!r} would hang at a node that {name!r} removes; do one of them")
            for each in keys:
                there = writes.get(place_of(each))
                if there is not None and not isinstance(there[0], Delete):
                    raise InvalidRequest(
                        f"a transaction takes an item once, but {there[1]!r} and {name!r} are about the same; "
                        f"make two transactions of them"
                    )
                # An edge between two nodes that both go is met twice.
                writes[place_of(each)] = (Delete(self._layout.table, each), name)
        for check, name in self._checks:
            key = self._key(check)
            if key in writes and isinstance(writes[key][0], Delete):
                raise InvalidRequest(f"{name}, because {writes[key][1]!r} of the same transaction removes it")
            # A node that this transaction writes will be there; checking it too would be the item twice.
            writes.setdefault(key, (check, name))
        if not writes:
            return
        if len(writes) > MAX_TRANSACTION:
            raise InvalidRequest(
                f"the transaction would have {len(writes)} items, and DynamoDB takes {MAX_TRANSACTION}; split it"
            )
        try:
            yield (TransactWrite(tuple(write for write, _ in writes.values())),)
        except TransactionCanceled as canceled:
            raise _named(canceled, [name for _, name in writes.values()]) from None

    def _key(self, write: Put | Update | Delete | Check) -> Place:
        return place_of(self._layout.key_of(write.item) if isinstance(write, Put) else write.key)


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
