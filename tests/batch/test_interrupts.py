"""An interrupt inside of DuckDB is an interrupt, and an error of the store is that error, in whatever words DuckDB
tells it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from adjoin.batch.engines import DuckDBEngine, readable
from adjoin.batch.sources import Dump
from adjoin.errors import AdjoinError, EngineFailed, FileDamaged, Throttled
from tests.waiting import LIMIT


def raising(error: BaseException) -> Dump:
    """A table whose second piece is never handed over."""

    @contextmanager
    def opened() -> Iterator[Iterator[list[bytes]]]:
        def pieces() -> Iterator[list[bytes]]:
            yield [b'{"Item":{"PK":{"S":"a"}}}']
            raise error

        yield pieces()

    return Dump("Plain", opened)


def test_while_it_is_handed_the_items() -> None:
    source = raising(KeyboardInterrupt())
    with DuckDBEngine(threads=1) as engine, pytest.raises(KeyboardInterrupt), readable(source, engine):
        engine.stage(engine.rows(source, [("PK", "S")]))


@pytest.mark.parametrize("error", [FileDamaged("its content is broken"), Throttled("too many requests")])
def test_an_error_of_the_store_is_that_error(error: AdjoinError) -> None:
    source = raising(error)
    with DuckDBEngine(threads=1) as engine, pytest.raises(type(error)) as caught, readable(source, engine):
        engine.stage(engine.rows(source, [("PK", "S")]))
    assert caught.value is error
    assert caught.value.__cause__ is None


def test_what_else_is_raised_there_is_told_as_it_is() -> None:
    source = raising(OSError("the disk is full"))
    with DuckDBEngine(threads=1) as engine, pytest.raises(EngineFailed), readable(source, engine):
        engine.stage(engine.rows(source, [("PK", "S")]))


def test_while_it_computes() -> None:
    source = raising(OSError())
    with DuckDBEngine(threads=1) as engine, pytest.raises(KeyboardInterrupt), readable(source, engine):
        # It sends the interrupt itself, from its first row on, and would go on for hours.
        engine._backend.con.create_function("stop", stop, ["BIGINT"], "BIGINT", side_effects=True)
        engine._backend.con.execute("SELECT count(stop(r.range)) FROM range(100000000000) r").fetchall()


def stop(row: int) -> int:
    if row == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return row


_IMPORTING = """
import sys
from contextlib import nullcontext
from importlib.abc import MetaPathFinder

from adjoin.batch.engines import DuckDBEngine, readable
from adjoin.batch.sources import Dump

asked = []

class Interrupted(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        # Whose import it is: what DuckDB imports, it imports from within a call of ours.
        if frame.f_code.co_filename == sys.modules["adjoin.batch.engines"].__file__:
            asked.append(name)
            raise KeyboardInterrupt
        return None

with DuckDBEngine() as engine:
    sys.meta_path.insert(0, Interrupted())
    source = Dump("T", lambda: nullcontext(iter([[b'{"PK":{"S":"p"}}']])))
    with readable(source, engine):
        table = engine.stage(engine.rows(source, [("PK", "S")]))
        print(list(engine.fetch(table)), engine.size(table), asked)
"""


def test_duckdb_imports_nothing_that_could_be_interrupted() -> None:
    # It takes an import that fails for a module that is not installed, and goes on.
    done = subprocess.run([sys.executable, "-c", _IMPORTING], capture_output=True, text=True, timeout=LIMIT)
    assert (done.stdout, done.stderr) == ("[{'w0': 'p'}] 1 []\n", "")
