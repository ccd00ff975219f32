"""A graph with orders in declared indexes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin import Graph
from tests.finding.orders import LAYOUT, ORDERS, Bought, Order, Person


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Order, Person, Bought], layout=LAYOUT) as graph:
        graph.put_many(ORDERS)
        yield graph
