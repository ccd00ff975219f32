"""Spark beside DuckDB: the same export gives the same values, to the last digit, in one process and in several.

Needs pyspark and a Java from 17 on; without them these tests are skipped, and say so.
"""

from __future__ import annotations

import gc
import gzip
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import ibis
import pytest

from adjoin import Edge, Graph, InvalidExport, MaterializedGraph, MissingExtra, Node
from adjoin.aggregates import Max, Sum
from adjoin.batch.engines import DuckDBEngine, open_engine
from adjoin.batch.exports import Export, open_export, write_export
from adjoin.batch.sources import dump_of
from adjoin.expressions import Set, Value, attribute
from adjoin.layouts.interface import STAMP
from adjoin.plans.counting.rank_items import HOME as HOME_OF_RANK
from adjoin.requests import Delete, Put, Update
from tests.batch.graphs import everything, filled
from tests.batch.models import MODELS
from tests.batch.test_agreement import differences, with_things
from tests.batch.test_audit import ITEM, MALFORMED, NO_NUMBER, On, Thing, spoilt
from tests.batch.test_audit import exported as exported_for_audit
from tests.batch.test_restoring import found
from tests.maintenance.ledgers import is_ledger
from tests.maintenance.simulation import stored
from tests.maintenance.test_stamps import Book, Holds, Shelf
from tests.servers.install import java_home
from tests.shares import stride
from tests.waiting import LIMIT

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'adjoin[spark]'")
HOME = java_home()
pytestmark = [
    pytest.mark.skipif(HOME is None, reason="there is no Java from 17 on; install one, or run: make servers"),
    # One Java for all of them.
    pytest.mark.xdist_group("spark"),
    pytest.mark.long,
    # Spark's bridge to Java leaves the closing of its sockets to Python.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONFIG = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    # Tables are small here: what is compiled for them takes longer than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
}
EVERY = [
    "AUTHOR.pages", "AUTHOR.dear", "AUTHOR.newest", "AUTHOR.best_sales", "AUTHOR.last_note", "AUTHOR.strength",
    "BOOK.sold", "SHOP.selling", "PART.quantity", "PART.latest", "AUTHOR.rank", "AUTHOR.circle", "AUTHOR.alike",
    "AUTHOR.sold_in", "PART.once",
]  # fmt: skip
"""One of each sort: operations, conditions, hops, ways, recursion, and summaries."""
SHARE = EVERY[:: stride(4)]
FEW = ["AUTHOR.pages", "AUTHOR.best_sales", "PART.total"]
MAINTAINED = [
    "OWNER.rates", "OWNER.greatest", "OWNER.code", "OWNER.many", "OWNER.either", "OWNER.rarest", "OWNER.shared",
    "JUDGE.later_bytes", "JUDGE.tagged", "JUDGE.no_zip", "JUDGE.since",
]  # fmt: skip
"""Of each type of fields one, and of conditions those that are tested in Python too."""
SOME_MAINTAINED = MAINTAINED[:: stride(2)]
UNREADABLE = [each for each in (*MALFORMED[1:], MALFORMED[0]) if each != ITEM * 2][:: stride(3)]
"""In every run those that are no UTF-8, that are no objects, and that are cut off."""


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(HOME))
        patch.setenv("SPARK_LOCAL_DIRS", str(tmp_path_factory.mktemp("spark")))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield
        _end_java()


def _end_java() -> None:
    """Ends the process that Spark runs in, and lets go of what belongs to it while nobody minds how it is closed."""
    context = pyspark.SparkContext
    if (gateway := context._gateway) is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=LIMIT)
        context._gateway = context._jvm = None
    del gateway
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def engine(java: None) -> Iterator[Any]:
    """One session for all tests in one process; it takes longer to start than to compute."""
    with open_engine("spark", master="local[2]", config=CONFIG) as opened:
        yield opened


def exported(graph: Graph, folder: Path) -> Export:
    source = dump_of(graph._store, graph._layout.table)
    return open_export(write_export(source.lines(), folder, "T", items_a_file=100).place)


def with_duckdb(graph: Graph, export: Export, only: list[str]) -> dict[str, Any]:
    with DuckDBEngine(threads=1) as engine:
        return everything(engine, export, graph._layout, only)


@pytest.mark.simulation
def test_both_engines_give_the_same(engine: Any, tmp_path: Path) -> None:
    with Graph(":memory:", MODELS, MaterializedGraph()) as graph:
        graph.put_many(filled(10).all)
        export = exported(graph, tmp_path / "of {a,b} [1] *?")
        expected = with_duckdb(graph, export, SHARE)
        assert all(expected.values())
        assert everything(engine, export, graph._layout, SHARE) == expected
        # The table itself, without an export, is no other.
        source = dump_of(graph._store, graph._layout.table)
        assert everything(engine, source, graph._layout, FEW[:1])[FEW[0]] == expected[FEW[0]]


def test_numbers_of_any_size_are_the_same(engine: Any, tmp_path: Path) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put_many(filled(6, wide=True).all)
        export = exported(graph, tmp_path)
        assert everything(engine, export, graph._layout, FEW) == with_duckdb(graph, export, FEW)


@pytest.mark.simulation
def test_what_is_maintained_is_what_spark_computes(engine: Any) -> None:
    with with_things("adjacency", seed=11) as graph:
        assert differences(graph, engine, only=SOME_MAINTAINED) == {}


class Payer(Node):
    id: str
    paid: Annotated[int, Sum("Paid", field="amount")] = 0
    largest: Annotated[int | None, Max("Paid", field="amount")] = None


class Paid(Edge[Payer, Payer]):
    amount: int


def test_the_audit_of_ledgers_and_ranks_is_the_same(engine: Any) -> None:
    expected = {("ledger", "PAID.out"): 1, ("rank", "PAYER.largest"): 1}
    with Graph(":memory:", [Payer, Paid]) as graph:
        graph.put_many([Payer(id="P1"), Payer(id="P2"), Payer(id="P3")])
        graph.put_many([Paid(source="P1", target="P2", amount=5), Paid(source="P1", target="P3", amount=-5)])
        graph.maintain(once=True)
        assert graph.get(Payer, "P1") == Payer(id="P1", paid=0, largest=5)
        key_of = graph._layout.key_of
        ledger = next(filter(is_ledger, stored(graph)))
        # The rank of the edge without a ledger counts for nobody; that of the other one is missing.
        ranks = [item for item in stored(graph) if item.get(HOME_OF_RANK, key_of(ledger)["SK"]) != key_of(ledger)["SK"]]
        graph._store.execute([Delete("adjoin", key_of(item)) for item in (ledger, *ranks)])
        assert len(ranks) == 1
        assert found(graph.verify(threads=1)) == expected
        audit = graph.verify(engine=engine, repair=True)
        assert found(audit) == expected
        assert audit.left == 0
        assert graph.verify(threads=1)


def test_a_rebuild_counts_stamps_as_well(engine: Any) -> None:
    """One edge has a stamp that counts, one a stamp that is spent, one a ledger, and one was removed."""
    with Graph(":memory:", [Shelf, Book, Holds]) as graph:
        graph.put_many([Shelf(id="s"), *(Book(id=id) for id in "abcd")])
        for id in "abcd":
            graph.put(Holds(source="s", target=id, pages=5))
        read = next(item for item in stored(graph) if STAMP in item and item["SK"]["S"].endswith("b"))
        graph.update(Holds, "s", "b", pages=7)
        graph.update(Holds, "s", "c", pages=7)
        graph.disconnect(Holds, "s", "d")
        graph._store.execute((Put("adjoin", read),))
        graph.maintain(once=True)
        right = Shelf(id="s", books=3, pages=17)
        assert graph.get(Shelf, "s") == right
        layout = graph._layout
        key = layout.node_key(layout.schema.node(Shelf), "s")
        graph._store.execute((Update(layout.table, key, (Set(attribute("pages"), Value({"N": "77"})),)),))
        rebuilt = graph.rebuild(engine=engine)
        assert (rebuilt.differ, rebuilt.written, rebuilt.uncounted) == (1, 1, 0)
        assert graph.get(Shelf, "s") == right


@pytest.mark.simulation
def test_data_that_cannot_be_read_is_refused(engine: Any, tmp_path: Path) -> None:
    with Graph(tmp_path / "g.db", [Thing, On]) as graph:
        graph.put(Thing(id="a"))
        place = exported_for_audit(graph, tmp_path)
        spoilts = [(gzip.compress(each), 1) for each in UNREADABLE]
        for data, items in (*spoilts, (gzip.compress(NO_NUMBER), 2), (ITEM, 1)):
            spoilt(place, data, items)
            with pytest.raises(InvalidExport, match=f"{re.escape(str(place))} cannot be read"):
                graph.verify(tmp_path, engine=engine)
        # Of two items in one line Spark reads the first; that there are two is told by the manifests.
        spoilt(place, gzip.compress(ITEM * 2), 2)
        with pytest.raises(InvalidExport, match="has 1 items, but its manifests say 2"):
            graph.verify(tmp_path, engine=engine)
        spoilt(place, gzip.compress(b""))
        with pytest.raises(InvalidExport, match="has 0 items, but its manifests say 1"):
            graph.verify(tmp_path, engine=engine)
        spoilt(place, gzip.compress(b"\n" + ITEM + b"\r\n\n"))
        assert graph.verify(tmp_path, engine=engine)


def test_without_java_it_says_what_is_missing() -> None:
    # In a process of its own: this one has a Java.
    program = "from adjoin.batch.engines import open_engine; open_engine('spark')"
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {"JAVA_HOME": "/nowhere", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert 'MissingExtra: engine="spark" needs Java 17 or 21' in done.stderr


def test_a_module_that_workers_do_not_have_is_told(engine: Any) -> None:
    def elsewhere(text: str) -> str:
        return str(import_module("no_such_module_anywhere")) + text

    adjoin_elsewhere: Any = ibis.udf.scalar.python(elsewhere)
    one = ibis.memtable({"text": ["a"]})
    with pytest.raises(MissingExtra, match="a Spark worker has no module 'no_such_module_anywhere'"):
        engine.stage(one.select(told=adjoin_elsewhere(one.text)))


def test_a_cluster_of_two_workers_gives_the_same(java: None, tmp_path: Path) -> None:
    """Runs last: a process has one session, and this is another."""
    if (session := pyspark.sql.SparkSession.getActiveSession()) is not None:
        session.stop()
    # The handler of the session that was stopped fails without it; this one is to stay.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config = {**CONFIG, "spark.default.parallelism": "2", "spark.executor.memory": "512m"}
    with Graph(":memory:", MODELS) as graph:
        graph.put_many(filled(6).all)
        export = exported(graph, tmp_path)
        with open_engine("spark", master="local-cluster[2,1,1024]", config=config) as engine:
            computed = everything(engine, export, graph._layout, FEW[:1])
            context = pyspark.SparkContext._active_spark_context
            executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert computed == with_duckdb(graph, export, FEW[:1])
        assert executors == 2
