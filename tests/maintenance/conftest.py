from __future__ import annotations

from typing import Any

import pytest

from adjoin import Graph
from tests.maintenance.models import MODELS


@pytest.fixture
def g() -> Any:
    with Graph(":memory:", MODELS) as graph:
        yield graph
