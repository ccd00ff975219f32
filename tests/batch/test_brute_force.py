"""DuckDB against brute force: every aggregate of random graphs, in both layouts, with numbers of any size."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, MaterializedGraph
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.job import Job
from adjoin.batch.numbers import Narrow, Wide
from adjoin.batch.sources import dump_of
from adjoin.values import decode
from tests.batch.brute_force import CIRCULAR, BruteForce
from tests.batch.graphs import filled
from tests.batch.models import MODELS, Author, Book, Follows, Holds, Knows, Part, Shop, Sold, World, Wrote
from tests.shares import stride

LAYOUTS: dict[str, Any] = {"adjacency": AdjacencyList(), "materialized": MaterializedGraph()}
TENANTS = {"adjacency": None, "materialized": "acme"}


@pytest.fixture(scope="module")
def engine() -> Any:
    with DuckDBEngine(memory="500MB", threads=1) as opened:
        yield opened


def compare(world: World, layout: str, engine: Any, only: Any = None) -> Job:
    with Graph(":memory:", MODELS, LAYOUTS[layout], tenant=TENANTS[layout]) as graph:
        graph.put_many(world.all)
        if TENANTS[layout] is not None:
            # What others have in the table is none of this graph's business.
            other = Graph(graph._store, MODELS, LAYOUTS[layout], tenant="other")
            other.put_many([Author(id="a"), *world.all[:5]])
        bound = graph._layout
        job = Job(engine, dump_of(graph._store, bound.table), bound, bound.rules, only=only)
        expected = BruteForce(world).expected()
        for rule in job.rules:
            differences, computed = job.aggregate(rule)
            circular = set()
            if computed.circular is not None:
                circular = {job.tables.id_of(rule.node, row["id"]) for row in engine.fetch(computed.circular)}
            found = {each.id: None if each.computed is None else decode(each.computed) for each in differences}
            if rule.field is None:
                continue
            for (name, id), value in expected.items():
                if name != rule.name:
                    continue
                assert (value is CIRCULAR) == (id in circular), (name, id)
                if value is not CIRCULAR:
                    is_zero = rule.operation == "sum" or rule.distinct in ("Count", "Sum")
                    got = found.get(id, 0 if is_zero else None)
                    assert got == value, f"{name} of {id!r} is {value}, and {got} came out"
        return job


# Wide numbers are in the other layout, and are of all aggregates too.
@pytest.mark.simulation
@pytest.mark.parametrize("layout", [*LAYOUTS][:: -stride(2)])
def test_every_aggregate_is_what_the_edges_say(layout: str, engine: Any) -> None:
    job = compare(filled(24, seed=len(layout)), layout, engine)
    assert isinstance(job.numbers, Narrow)


def test_numbers_that_no_decimal_holds_are_exact_too(engine: Any) -> None:
    job = compare(filled(16, wide=True), "adjacency", engine)
    assert isinstance(job.numbers, Wide)


def test_a_number_that_does_not_fit_is_computed_in_another_way(engine: Any) -> None:
    tiny, huge = Decimal("1E-30"), Decimal("9E+30")
    world = World(
        {Author: {"a": Author(id="a")}, Book: {1: Book(id=1, price=huge)}, Shop: {}, Part: {}},
        {
            Wrote: [Wrote(source="a", target=1, year=year, length=tiny * year) for year in (1, 2, 30)],
            **{model: [] for model in (Sold, Knows, Follows, Holds)},
        },
    )
    job = compare(world, "adjacency", engine, only=["AUTHOR.pages", "AUTHOR.dearest", "AUTHOR.worth"])
    assert isinstance(job.numbers, Wide)
