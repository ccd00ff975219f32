"""A store that may fail, and a graph with aggregates on it, for tests of the Lambda function."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin import Graph
from adjoin.stores.sqlite import SQLiteStore
from tests.aws.lambda_invoices import Faulty
from tests.maintenance.models import MODELS


@pytest.fixture
def store() -> Iterator[Faulty]:
    faulty = Faulty(SQLiteStore(":memory:"))
    yield faulty
    faulty.close()


@pytest.fixture
def g(store: Faulty) -> Graph:
    return Graph(store, MODELS)
