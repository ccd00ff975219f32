"""Several writes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjoin.errors import CancellationReason, InvalidRequest, TransactionCanceled
from adjoin.expressions import Condition
from adjoin.fields import Predicate
from adjoin.layouts.interface import BoundLayout
from adjoin.model import Edge
from adjoin.plans import Plan
from adjoin.plans.batches import Place, place_of
from adjoin.plans.conditions import condition
from adjoin.plans.deletion import doomed_keys
from adjoin.plans.write import (
    absent,
    described,
    edge_keys,
    end_checks,
    identified,
    kind_of,
    update_requests,
)
from adjoin.requests import Check, Delete, Put, TransactWrite, Update
from adjoin.schema import AnyEdge, EdgeType, Entity, NodeType
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item


class Buffer:
    """Collects the writes of one transaction; what each was for is kept for messages."""

    def __init__(self, layout: BoundLayout) -> None:
        self._layout = layout
        self._writes: list[tuple[Put | Update | Delete, str]] = []
        self._checks: list[tuple[Check, str]] = []
        self._deletes: list[tuple[NodeType, Any]] = []
        self._edges: list[tuple[str, list[Item]]] = []
        """The edges that are written, each with the keys of the nodes at its ends."""

    def __len__(self) -> int:
        return len(self._writes) + len(self._checks) + len(self._deletes)

    def put(self, entity: Entity, only_if: Predicate | None = None) -> None:
        kind = kind_of(self._layout, entity)
        self._put(
            entity, f"put {described(entity)}", None if only_if is None else condition(self._layout, kind, only_if)
        )

    def add(self, entity: Entity) -> None:
        kind_of(self._layout, entity)
        self._put(entity, f"add {described(entity)}", absent(self._layout))

    def _put(self, entity: Entity, name: str, wanted: Condition | None) -> None:
        for item in self._layout.items(entity):
            self._writes.append((Put(self._layout.table, item, wanted), name))
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
        identity, rest = identified(self._layout, model, ids, changes)
        for request in update_requests(self._layout, identity, rest, if_version, only_if):
            self._writes.append((request, f"update {identity.name}"))

    def disconnect(self, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any]) -> None:
        for key in edge_keys(self._layout, kind, source, target, fields):
            name = f"disconnect {kind.name} from {source!r} to {target!r}"
            self._writes.append((Delete(self._layout.table, key), name))

    def delete(self, kind: NodeType, id: Any) -> None:
        self._deletes.append((kind, id))

    def commit(self) -> Plan[None]:
        writes: dict[Place, tuple[Put | Update | Delete | Check, str]] = {}
        for write, name in self._writes:
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
