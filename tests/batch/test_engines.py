"""What an engine keeps from one job to the next: the SQL of expressions, and nothing of the engine itself."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import ibis
import pytest

from adjoin import Graph
from adjoin.batch.engines import DuckDBEngine, compiled, named
from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from tests.batch.test_audit import On, Thing


def test_a_second_job_compiles_nothing(tmp_path: Path) -> None:
    compiled.cache_clear()
    with Graph(":memory:", [Thing, On]) as graph:
        graph.put_many([Thing(id="a"), Thing(id="b"), On(source="a", target="b", weight=3)])
        graph.maintain(once=True)
        source = dump_of(graph._store, graph._layout.table)
        exports = [str(write_export(source.lines(), tmp_path / name, "adjoin").place) for name in ("one", "two")]
        assert graph.verify(threads=1)
        once = compiled.cache_info().misses
        assert graph.verify(threads=1)
        assert compiled.cache_info().misses == once > 0
        # Lines of another source are other rows under the same names.
        assert graph.verify(exports[0], threads=1)
        some = compiled.cache_info().misses
        assert graph.verify(exports[1], threads=1)
        assert compiled.cache_info().misses == some


def test_expressions_that_differ_in_a_type_or_a_value_alone_are_compiled_each() -> None:
    compiled.cache_clear()
    literals = [ibis.literal(1, "int64"), ibis.literal(1, "decimal(38, 9)"), ibis.literal(True), ibis.literal("1")]
    for dialect in ("duckdb", "pyspark"):
        for schema in ({"a": "string"}, {"a": "int64"}):
            table = named("t", ibis.schema(schema))
            for literal in literals:
                expression = table.select(a=table.a.cast("string"), b=literal)
                assert compiled(dialect, expression.op()) == getattr(ibis, dialect).compile(expression)
    assert compiled.cache_info().hits == 0


def test_only_expressions_with_functions_of_this_process_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(text: str) -> str:
        return text * 2

    twice: Any = ibis.udf.scalar.python(doubled)

    def words(engine: DuckDBEngine, table: Any) -> list[Any]:
        return [row["b"] for row in engine.fetch(engine.stage(table), ["b"])]

    for _ in range(2):
        with DuckDBEngine(threads=1) as engine:
            told: list[Any] = []
            register = engine._backend._run_pre_execute_hooks
            monkeypatch.setattr(
                engine._backend,
                "_run_pre_execute_hooks",
                lambda table, to=register, told=told: (told.append(table), to(table)),
            )
            plain = engine.stage(ibis.range(2).unnest().name("a").as_table())
            assert words(engine, plain.select(b=plain.a + 1)) == [1, 2]
            assert told == []
            assert words(engine, plain.select(b=twice(plain.a.cast("string")))) == ["00", "11"]
            assert words(engine, ibis.memtable({"b": ["x"]})) == ["x"]
            assert len(told) == 2


def test_an_engine_ends_with_its_job() -> None:
    compiled.cache_clear()
    with DuckDBEngine(threads=1) as engine:
        table = engine.stage(engine.stage(ibis.range(3).unnest().name("a").as_table()).mutate(b=ibis.literal(1)))
        assert [row["a"] for row in engine.fetch(table, ["a"])] == [0, 1, 2]
    backend = weakref.ref(engine._backend)
    del engine, table
    gc.collect()
    assert backend() is None
    assert compiled.cache_info().currsize == 2
