"""What others may do to a table behind adjoin's back: values, ledgers and ranks spoilt at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from adjoin import Graph
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import Delete, Put, Request, Update
from tests.maintenance.ledgers import is_ledger, is_rank, spoilt, stray, sums_in
from tests.maintenance.simulation import stored


class Vandals:
    """Spoils one thing at a time; `touches_ranks` tells whether also those that no value shows: ranks and records."""

    def __init__(self, graph: Graph, chance: random.Random, *, touches_ranks: bool) -> None:
        self._graph, self._chance = graph, chance
        self._layout = graph._layout
        self._ways: list[Callable[[list[Any]], Request | None]] = [
            self._spoil_value,
            self._spoil_value,
            self._write_nonsense,
            self._lose_ledger,
            self._spoil_ledger,
            self._add_ledger,
        ]
        if touches_ranks:
            self._ways += [self._lose_rank, self._add_rank, self._lose_record]

    def act(self) -> None:
        request = self._chance.choice(self._ways)(stored(self._graph))
        if request is not None:
            self._graph._store.execute((request,))

    def miscount_each(self, model: type[Any], name: str) -> None:
        """Makes a count of each node of a class one more, or one less."""
        kind = self._layout.schema.node(model)
        for item in stored(self._graph):
            if not self._layout.is_bookkeeping(item) and self._layout.kind_of(item) is kind:
                count = Decimal(item.get(name, {"N": "0"})["N"]) + self._chance.choice((-1, 1))
                self._graph._store.execute((self._set(item, kind.attributes[name], {"N": str(count)}),))

    def _pick(self, items: list[Any]) -> Any:
        return self._chance.choice(items) if items else None

    def _nodes(self, items: list[Any], operation: Callable[[str], bool]) -> list[tuple[Any, Any]]:
        """Nodes, each with a rule that counts on it."""
        pairs = []
        for item in items:
            kind = None if self._layout.is_bookkeeping(item) else self._layout.kind_of(item)
            pairs += [(item, rule) for rule in self._layout.rules.rules if rule.node is kind]
        return [(item, rule) for item, rule in pairs if operation(rule.operation)]

    def _set(self, item: Any, name: str, value: Any) -> Request:
        return Update(
            self._layout.table, self._layout.key_of(item), (Set(attribute(name), Value(value)),), self._layout.present
        )

    def _spoil_value(self, items: list[Any]) -> Request | None:
        picked = self._pick(self._nodes(items, lambda operation: operation in ("sum", "min", "max")))
        if picked is None:
            return None
        item, rule = picked
        stored = item.get(rule.attribute, {"N": "0"}).get("N", "0")
        # One more or less is what a single edge that comes or goes meanwhile may hide.
        near = Decimal(stored) + self._chance.choice((-1, 1))
        value = self._chance.choice((str(near), str(self._chance.randrange(-5, 50))))
        return self._set(item, rule.attribute, {"N": value})

    def _write_nonsense(self, items: list[Any]) -> Request | None:
        picked = self._pick(self._nodes(items, lambda operation: operation == "sum"))
        return None if picked is None else self._set(picked[0], picked[1].attribute, {"S": "many"})

    def _ledgers(self, items: list[Any]) -> list[Any]:
        return [*filter(is_ledger, items)]

    def _lose_ledger(self, items: list[Any]) -> Request | None:
        ledger = self._pick(self._ledgers(items))
        return None if ledger is None else Delete(self._layout.table, self._layout.key_of(ledger))

    def _spoil_ledger(self, items: list[Any]) -> Request | None:
        ledger = self._pick(self._ledgers(items))
        sums = sums_in(ledger) if ledger else []
        return Put(self._layout.table, spoilt(ledger, *self._chance.choice(sums), "7")) if sums else None

    def _add_ledger(self, items: list[Any]) -> Request | None:
        """As for an edge that is not there."""
        ledger = self._pick(self._ledgers(items))
        return None if ledger is None else Put(self._layout.table, stray(self._layout, ledger))

    def _ranks(self, items: list[Any]) -> list[Any]:
        return [item for item in items if is_rank(self._layout, item)]

    def _lose_rank(self, items: list[Any]) -> Request | None:
        rank = self._pick(self._ranks(items))
        return None if rank is None else Delete(self._layout.table, self._layout.key_of(rank))

    def _add_rank(self, items: list[Any]) -> Request | None:
        rank = self._pick(self._ranks(items))
        if rank is None:
            return None
        sort = list(self._layout.key_of(rank))[1]
        return Put(self._layout.table, rank | {sort: {"S": rank[sort]["S"][:-3] + "abc"}})

    def _lose_record(self, items: list[Any]) -> Request | None:
        """That an edge is set aside."""
        record = self._pick([item for item in items if "rule" in item and "reason" in item])
        return None if record is None else Delete(self._layout.table, self._layout.key_of(record))
