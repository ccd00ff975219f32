"""Graphs for tests of verbs: each runs on both stores and both layouts, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from adjoin import AdjacencyList, AsyncGraph, Graph, MaterializedGraph
from adjoin.layouts.interface import Layout
from pytest_adjoin import DynamoDB
from tests.conftest import DrivenGraph

LAYOUTS: dict[str, Callable[[], Layout]] = {"adjacency list": AdjacencyList, "materialized graph": MaterializedGraph}
Everywhere = Callable[..., Any]


@pytest.fixture(params=product(("embedded", "dynamodb"), LAYOUTS, ("Graph", "AsyncGraph")), ids="-".join)
def everywhere(request: pytest.FixtureRequest) -> Iterator[Everywhere]:
    """Opens graphs of some classes, on one store, with one layout and of one kind; they are closed after the test."""
    where, layout, kind = request.param
    location = ":memory:"
    if where == "dynamodb":
        service: DynamoDB = request.getfixturevalue("adjoin_dynamodb")
        location = f"dynamodb://verbs?endpoint={service.endpoint}&region={service.region}"
    opened: list[Any] = []
    loop = asyncio.new_event_loop() if kind == "AsyncGraph" else None

    def open_one(models: Iterable[type[Any]], **options: Any) -> Any:
        options = {"layout": LAYOUTS[layout](), **options}
        graph = (
            Graph(location, models, **options)
            if loop is None
            else DrivenGraph(AsyncGraph(location, models, **options), loop)
        )
        opened.append(graph)
        if where == "dynamodb":
            graph.create_table()
        return graph

    yield open_one
    for graph in opened:
        graph.close()
    if loop is not None:
        loop.close()
