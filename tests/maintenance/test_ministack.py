"""The same over MiniStack: its transactions, conditions and streams are independent of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from adjoin import Graph
from tests.maintenance.models import ALBUMS, MODELS, PARTS, PEOPLE, SHOP, WALLETS
from tests.maintenance.simulation import Simulation
from tests.maintenance.test_crashes import happen, happen_again
from tests.maintenance.test_simulation import Life, check
from tests.servers.open import Stores


@pytest.fixture
def on_service(servers: Stores) -> Iterator[Graph]:
    location = f"dynamodb://Maintained-{uuid4().hex}?endpoint={servers.address('ministack')}"
    with Graph(location, MODELS) as graph:
        graph.create_table()
        yield graph
        graph.drop_table()


def test_its_stream_is_applied(on_service: Graph) -> None:
    happen(on_service)
    on_service.maintain(once=True)
    check(on_service)
    happen_again(on_service)
    on_service.maintain(once=True)
    check(on_service)


@pytest.mark.parametrize(
    "models", [SHOP, ALBUMS, PARTS, PEOPLE, WALLETS], ids=["shop", "albums", "parts", "people", "wallets"]
)
def test_a_simulation_on_it(on_service: Graph, models: list[Any]) -> None:
    simulation = Simulation(on_service, 1)
    life = Life(on_service, simulation.chance, models, 3)
    for _ in range(15):
        simulation.write(*life.act())
    simulation.drain()
    check(on_service)
