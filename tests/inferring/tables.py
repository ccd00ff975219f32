"""Tables to infer from: those of the examples, and those of the published designs that `tests/designs` declares."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

from adjoin import AdjacencyList, Graph
from adjoin.inferring.checking import executed
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.requests import CreateTable, DescribeTable, PageResponse, Put, Scan, TableResponse
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from examples import (
    access,
    education,
    homes,
    invoices,
    materials,
    people,
    published_graph,
    purchases,
    services,
    shop,
    social,
)
from tests.inferring.published import Table

EXAMPLES: dict[str, tuple[Any, Any, Any, bool]] = {
    **{
        module.__name__.rpartition(".")[2]: (module.MODELS, module.LAYOUT, module.SAMPLE, False)
        for module in (
            *(access, education, homes, invoices, materials, people),
            *(published_graph, purchases, services, shop, social),
        )
    },
    "people as an adjacency list": (people.MODELS, AdjacencyList(table="People"), people.SAMPLE, False),
    "shop, maintained": (shop.MODELS, shop.LAYOUT, shop.SAMPLE, True),
}

DESIGNS = (
    *("accounts", "code_hosting", "device_logs", "documents", "edges_of_their_own", "formats", "games", "orders"),
    *("partitions_of_lists", "saas", "social_network", "tickets", "warehouses"),
)


def scanned(store: Any, table: str) -> list[Item]:
    (page,) = store.execute([Scan(table)])
    assert isinstance(page, PageResponse)
    assert page.last is None
    return list(page.items)


def example(name: str) -> Table:
    """The table of an example, with its sample in it."""
    models, layout, sample, is_maintained = EXAMPLES[name]
    store = SQLiteStore(":memory:")
    with Graph(store, models, layout) as g:
        g.put_many(sample)
        if is_maintained:
            g.maintain(once=True)
        (described,) = store.execute([DescribeTable(layout.table)])
        assert isinstance(described, TableResponse)
        return described.definition, scanned(store, layout.table)


def design(name: str) -> Table:
    """The table of a design, with items as another program wrote them."""
    module: Any = importlib.import_module(f"tests.designs.test_{name}")
    items = [*getattr(module, "ITEMS", ()), *getattr(module, "KNOWN", ()), *getattr(module, "OTHERS", ())]
    layout = module.LAYOUT if hasattr(module, "LAYOUT") else module.layout()
    return bound_layout(module.MODELS, layout).definition, items


@contextmanager
def opened(source: str, table: Table) -> Iterator[tuple[Graph, ModuleType]]:
    """The graph of a written program, over a table with these items."""
    definition, items = table
    store = SQLiteStore(":memory:")
    store.execute([CreateTable(replace(definition, ttl=None))])
    store.execute([Put(definition.name, item) for item in items])
    module = executed(source)
    with Graph(store, module.MODELS, module.LAYOUT) as g:
        yield g, module
