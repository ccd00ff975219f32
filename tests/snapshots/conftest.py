"""A graph in a file or in memory, to take snapshots of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjoin import Graph
from tests.snapshots.graphs import opened
from tests.snapshots.sourced import ITEMS
from tests.walks.graphs import LAYOUTS


@pytest.fixture(params=sorted(LAYOUTS))
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    with opened(request.param, ITEMS, f"{tmp_path / 'graph.db'}?durability=process") as found:
        yield found
