"""Spark beside DuckDB: the same export gives the same values, to the last digit, in one process and in several.

Needs pyspark and a Java from 17 on; without them these tests are skipped, and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjoin import Graph, MaterializedGraph
from adjoin.batch.engines import DuckDBEngine, open_engine
from adjoin.batch.exports import Export, open_export, write_export
from adjoin.batch.sources import dump_of
from tests.batch.graphs import everything, filled
from tests.batch.models import MODELS
from tests.servers.install import java_home

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'adjoin[spark]'")
HOME = java_home()
pytestmark = [
    pytest.mark.skipif(HOME is None, reason="there is no Java from 17 on; install one, or run: make servers"),
    pytest.mark.xdist_group("spark"),
    # Spark's bridge to Java leaves the closing of its sockets to Python.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CONFIG = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}
SUMS = ["AUTHOR.pages", "AUTHOR.best_sales", "AUTHOR.last_note", "PART.total", "AUTHOR.circle"]


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with Graph(":memory:", MODELS, MaterializedGraph()) as opened:
        opened.put_many(filled(16).all)
        yield opened


@pytest.fixture(scope="module")
def export(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Export:
    folder = tmp_path_factory.mktemp("export")
    source = dump_of(graph._store, graph._layout.table)
    return open_export(write_export(source.lines(), folder, "T", items_a_file=100).place)


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(HOME))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", os.environ.get("PYSPARK_PYTHON", shutil.which("python") or "python3"))


def spark(master: str, **config: str) -> Any:
    return open_engine("spark", master=master, config={**CONFIG, **config})


@pytest.mark.usefixtures("java")
def test_both_engines_give_the_same(graph: Graph, export: Export) -> None:
    with DuckDBEngine(threads=1) as engine:
        expected = everything(engine, export, graph._layout)
    with spark("local[2]") as engine:
        assert everything(engine, export, graph._layout) == expected
        # The table itself, without an export, is no other.
        source = dump_of(graph._store, graph._layout.table)
        assert everything(engine, source, graph._layout, SUMS[:1])[SUMS[0]] == expected[SUMS[0]]


@pytest.mark.usefixtures("java")
def test_numbers_of_any_size_are_the_same(tmp_path: Path) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many(filled(12, wide=True).all)
        source = dump_of(graph._store, graph._layout.table)
        export = write_export(source.lines(), tmp_path, "T")
        with DuckDBEngine(threads=1) as engine:
            expected = everything(engine, export, graph._layout, SUMS[:2])
        with spark("local[2]") as engine:
            assert everything(engine, export, graph._layout, SUMS[:2]) == expected


@pytest.mark.usefixtures("java")
def test_a_cluster_of_two_workers_gives_the_same(graph: Graph, export: Export) -> None:
    with DuckDBEngine(threads=1) as engine:
        expected = everything(engine, export, graph._layout, SUMS)
    with spark("local-cluster[2,1,1024]", **{"spark.executor.memory": "512m"}) as engine:
        found = everything(engine, export, graph._layout, SUMS)
        executors = engine._session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    assert found == expected
    assert executors == 2


def test_java_is_recent_enough() -> None:
    assert HOME is not None
    told = subprocess.run([HOME / "bin" / "java", "-version"], capture_output=True, text=True, check=True).stderr
    assert "version" in told
