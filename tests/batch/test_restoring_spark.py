"""The audit of what maintenance keeps for itself gives the same with Spark."""

from __future__ import annotations

from typing import Any

from adjoin import Graph
from adjoin.plans.maintenance.rank_items import HOME
from adjoin.requests import Delete
from tests.batch.test_restoring import Shop, Sold, found
from tests.batch.test_spark import engine, java, pytestmark  # noqa: F401 - its session and conditions
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.simulation import stored

EXPECTED = {("ledger", "SOLD.out"): 1, ("ledger", "SOLD.into"): 1, ("rank", "SHOP.largest"): 1}


def test_ledgers_and_ranks(engine: Any) -> None:  # noqa: F811 - the fixture
    with Graph(":memory:", [Shop, Sold]) as graph:
        graph.put_many([Shop(id="S1"), Shop(id="S2"), Shop(id="S3")])
        graph.put_many([Sold(source="S1", target="S2", amount=5), Sold(source="S1", target="S3", amount=-5)])
        assert graph.rebuild(engine=engine).left == 0
        assert graph.get(Shop, "S1") == Shop(id="S1", trusted=2, balance=0, largest=5)
        key_of = graph._layout.key_of
        ledger = next(filter(is_ledger, stored(graph)))
        # The rank of the edge without a ledger counts for nobody; that of the other one is missing.
        ranks = [item for item in stored(graph) if item.get(HOME, key_of(ledger)["SK"]) != key_of(ledger)["SK"]]
        graph._store.execute([Delete("adjoin", key_of(item)) for item in (ledger, *ranks)])
        assert len(ranks) == 1
        assert found(graph.verify(engine=engine)) == found(graph.verify(threads=1)) == EXPECTED
        assert graph.verify(engine=engine, repair=True).left == 0
        assert graph.verify(threads=1)
