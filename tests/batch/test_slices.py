"""A table divided by tenant: which statement does it, and what each tenant gets."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Graph, MaterializedGraph
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.slices import _of_tenants, tenant_slices
from adjoin.batch.sources import Dump, dump_of
from adjoin.requests import Put, Scan
from examples.published_graph import Friend, Person
from tests.models import ANN, SCHOOL, Enrollment

PEOPLE: list[Any] = [Person, Friend]
NUMBERED = MaterializedGraph.as_published(shards=2, types={"GSI PK": "N"})

LARGEST = 12_000
"""Characters of the statement for each class of nodes. Engines take longer to read a larger one than to run it."""


@pytest.mark.parametrize("layout", [None, MaterializedGraph()], ids=["list", "graph"])
def test_the_statement_stays_small(layout: Any) -> None:
    with Graph(":memory:", SCHOOL, layout) as graph, DuckDBEngine(threads=1) as engine:
        table = _of_tenants(engine, dump_of(graph._store, graph._layout.table), graph._layout)
        assert len(engine._compiled(table)) < LARGEST * len(graph._schema.nodes)


def lines(dump: Dump) -> list[bytes]:
    return [line for some in dump.lines() for line in some]


def divided(graph: Graph) -> dict[str, int]:
    """The number of items of each tenant."""
    with (
        DuckDBEngine(threads=1) as engine,
        tenant_slices(engine, dump_of(graph._store, graph._layout.table), graph._layout) as slices,
    ):
        return {tenant: len(lines(dump)) for tenant, dump in slices.items()}


def test_each_tenant_has_its_own_items_and_nobody_elses() -> None:
    with Graph(":memory:", SCHOOL) as graph:
        graph.put(ANN)
        for tenant in ("acme", "globex", "STUDENT"):
            graph.for_tenant(tenant).put(ANN)
        graph.for_tenant("acme").put(Enrollment(source="ann", target="maths"))
        before = divided(graph)
        assert before == {"STUDENT": 1, "acme": 2, "globex": 1}
        # Keys of others: without a class behind the tenant, with nothing before the separator, with line ends.
        for partition in ("acme#x", "acme#", "#STUDENT#ann", "a\n#STUDENT#ann", "acme#STUDENT#", "acme#NOBODY#=#="):
            key = {"PK": {"S": partition}, "SK": {"S": "x"}}
            graph._store.execute((Put(graph._layout.table, key),))
        assert divided(graph) == before


def test_what_is_stored_beside_a_node_goes_with_its_tenant() -> None:
    with Graph(":memory:", SCHOOL) as graph:
        graph.put(ANN)
        for partition in ("acme#STUDENT#ann#=", "acme#=MAPS", "acme##=MAPS", "STUDENT#ann#=", "acme#x#="):
            graph._store.execute((Put(graph._layout.table, {"PK": {"S": partition}, "SK": {"S": "x"}}),))
        assert divided(graph) == {"acme": 2}


def test_what_is_stored_beside_a_node_with_a_bare_id_is_nobody_elses() -> None:
    """The key of what is beside the person 1 is also that of the person "=" of a tenant called 1."""
    with Graph(":memory:", PEOPLE, NUMBERED) as graph:
        graph.put_many([Person(id="1", name="John Doe"), Person(id="5", name="Jane Smith"), Person(id="=", name="Bo")])
        graph.put(Friend(source="1", target="5"))
        graph.maintain(once=True)
        response: Any = graph._store.execute((Scan(graph._layout.table),))[0]
        assert "5#=" in {item["NodeId"]["S"] for item in response.items}
        assert divided(graph) == {}
        assert graph.verify().faults == 0
    with Graph(":memory:", PEOPLE, MaterializedGraph.as_published(shards=2)) as graph:
        graph.for_tenant("5").put_many([Person(id="=", name="Bo"), Person(id="1", name="John Doe")])
        graph.for_tenant("5").put(Friend(source="1", target="="))
        assert divided(graph) == {"5": 3}
