"""What computes: DuckDB in this process, or Spark. Everything above this module is Ibis, and the same for both.

An engine reads rows of text out of a source, keeps a table that is used again, and hands over results. Items
are JSON lines in every source, so all that an engine's own words are needed for is to take values out of them.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

# For DuckDB, which imports it inside a call, takes an interrupt there for a module that is not installed, and goes on.
import pyarrow.dataset

from adjoin.batch.buckets import copied
from adjoin.batch.exports import Export, is_remote, open_export
from adjoin.batch.sources import Dump
from adjoin.errors import EngineFailed, InvalidExport, InvalidValue, MissingExtra

Source: TypeAlias = Export | Dump
Want: TypeAlias = tuple[str, ...]
"""Where a value is in an item: ("balance", "N"), or ("address",) for all of an attribute, as JSON; () is the item."""

BATCH = 50_000
_STOPPED = "Query interrupted"
_RAISED = re.compile(r"(^|: )KeyboardInterrupt(:|$)", re.MULTILINE)
"""In the traceback that it quotes, or in front of a message."""
_CALLED = "An error occurred while calling "


class Engine(Protocol):
    """What a batch job asks of an engine."""

    name: str
    overflows: tuple[type[Exception], ...]
    """What it raises if a number does not fit the type that it is computed in."""
    malformed: tuple[type[Exception], ...]
    """What it raises over values that are not of their type, as numbers of any size that are none."""
    errors: tuple[type[Exception], ...]
    """Whatever it raises."""

    def rows(self, source: Source, wants: Sequence[Want]) -> ir.Table:
        """A row for each item, to be read once: the wanted values as text, in columns w0, w1, …"""
        ...

    def stage(self, table: ir.Table) -> ir.Table:
        """The same table, computed now and kept until the engine is closed."""
        ...

    def fetch(self, table: ir.Table, order: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a table, as dicts of Python values, in the order of some columns."""
        ...

    def grow(self, staged: ir.Table, turn: ir.Table, turns: Iterable[int], more: ir.Table) -> None:
        """Adds rows to a staged table, turn by turn: `more`, an expression over it and over `turn`.

        `turn` is a staged table of one row, whose `number` is set to each of `turns`. So an expression is
        compiled once, which takes Ibis longer than a small table takes an engine.
        """
        ...

    def become(self, staged: ir.Table, after: ir.Table, times: int) -> None:
        """Makes a staged table what an expression over it says, so many times."""
        ...

    def size(self, staged: ir.Table) -> int:
        """How many rows a table has that was staged."""
        ...

    def export(self, place: str | os.PathLike[str]) -> Export:
        """The export in a folder or at an address of S3, checked, with names of files that the engine opens."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class DuckDBEngine:
    """DuckDB in this process; what does not fit into `memory` goes to files in a folder of its own."""

    name = "DuckDB"
    overflows: tuple[type[Exception], ...] = (duckdb.ConversionException, duckdb.OutOfRangeException)
    malformed: tuple[type[Exception], ...] = (*overflows, duckdb.InvalidInputException)
    errors: tuple[type[Exception], ...] = (duckdb.Error,)

    def __init__(self, memory: str = "1GB", threads: int | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="adjoin-batch-"))
        settings: dict[str, Any] = {
            "temp_directory": str(self._folder),
            "memory_limit": memory,
            "preserve_insertion_order": False,
        }
        if threads is not None:
            settings["threads"] = threads
        try:
            self._backend = ibis.duckdb.connect(**settings)
        except duckdb.Error as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise InvalidValue(f"DuckDB does not take memory={memory!r} and threads={threads!r}: {error}") from None
        self._backend.con.execute("SET enable_progress_bar = false")
        self._numbers = itertools.count()
        self._registered: list[Any] = []

    def rows(self, source: Source, wants: Sequence[Want]) -> ir.Table:
        paths = ", ".join(_quoted("/Item" + "".join(map(_pointer_step, want))) for want in wants)
        values = ", ".join(f"e[{place + 1}] AS w{place}" for place in range(len(wants)))
        lines = self._lines(source)
        schema = ibis.schema({f"w{place}": "string" for place in range(len(wants))})
        query = f"SELECT {values} FROM (SELECT json_extract_string(json, [{paths}]) AS e FROM {lines})"
        return self._backend.sql(query, schema=schema)

    def _lines(self, source: Source) -> str:
        if isinstance(source, Export):
            if not source.files:
                return "(SELECT NULL::JSON AS json WHERE false)"
            files = ", ".join(map(_quoted, source.files))
            return f"read_ndjson_objects([{files}], compression = 'gzip')"
        name = f"lines_{next(self._numbers)}"
        schema = pa.schema([("json", pa.string())])
        reader = pa.RecordBatchReader.from_batches(schema, _line_batches(source, schema))
        self._registered.append(reader)
        self._backend.con.register(name, reader)
        return name

    def stage(self, table: ir.Table) -> ir.Table:
        # One statement: Ibis' own create_table makes several, and asks for the schema, which is known here.
        name = f"staged_{next(self._numbers)}"
        self._backend.con.execute(f"CREATE TABLE {name} AS {self._compiled(table)}")
        return ops.DatabaseTable(name, schema=table.schema(), source=self._backend).to_expr()

    def _from(self, table: ir.Table) -> str:
        is_staged = isinstance(table.op(), ops.DatabaseTable)
        return table.get_name() if is_staged else f"({self._compiled(table)})"

    def _compiled(self, table: ir.Table) -> str:
        # Compiling alone does not make functions in Python known to the connection.
        self._backend._run_pre_execute_hooks(table)
        compiled: str = self._backend.compile(table)
        return compiled

    def grow(self, staged: ir.Table, turn: ir.Table, turns: Iterable[int], more: ir.Table) -> None:
        addition = f"INSERT INTO {staged.get_name()} {self._compiled(more)}"
        for number in turns:
            self._backend.con.execute(f"UPDATE {turn.get_name()} SET number = {number}")
            self._backend.con.execute(addition)

    def become(self, staged: ir.Table, after: ir.Table, times: int) -> None:
        change = f"CREATE OR REPLACE TABLE {staged.get_name()} AS {self._compiled(after)}"
        for _ in range(times):
            self._backend.con.execute(change)

    def size(self, staged: ir.Table) -> int:
        (found,) = self._backend.con.execute(f"SELECT count(*) FROM {staged.get_name()}").fetchall()
        return int(found[0])

    def fetch(self, table: ir.Table, order: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        # A cursor of its own, so that other statements may run while its rows are read.
        cursor = self._backend.con.cursor()
        try:
            ordered = f" ORDER BY {', '.join(order)}" if order else ""
            cursor.execute(f"SELECT * FROM {self._from(table)}{ordered}")
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(BATCH):
                for row in rows:
                    yield dict(zip(names, row, strict=True))
        finally:
            cursor.close()

    def export(self, place: str | os.PathLike[str]) -> Export:
        if not is_remote(place):
            return open_export(place)
        # DuckDB's own way to S3 is an extension that it downloads; Arrow's is there, and checksums can be told.
        folder = self._folder / f"export_{next(self._numbers)}"
        return open_export(copied(os.fspath(place), folder))

    def close(self) -> None:
        self._backend.disconnect()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _line_batches(source: Dump, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for lines in source.lines():
        text = pa.array([b'{"Item":' + line + b"}" for line in lines], pa.binary())
        yield pa.record_batch([text.cast(pa.string())], schema=schema)


def _pointer_step(step: str) -> str:
    return "/" + step.replace("~", "~0").replace("/", "~1")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def opened_source(source: Source | str | os.PathLike[str], engine: Engine, table: str) -> Source:
    """What a batch job over a table reads: a source as it is, or the export in a folder or at an address of S3.

    An export of another table is `InvalidExport`: everything that this table has would look like a fault.
    """
    opened = engine.export(source) if isinstance(source, str | os.PathLike) else source
    if isinstance(opened, Export) and opened.table not in ("", table):
        raise InvalidExport(
            f"{opened.place} is an export of the table {opened.table!r}, and this graph is in the table {table!r}; "
            f"name an export of {table!r}, or open the graph with table={opened.table!r} in its layout"
        )
    return opened


@contextmanager
def readable(source: Source, engine: Engine) -> Iterator[None]:
    """Turns what an engine says about the files of an export, or the values in them, into `InvalidExport`.

    What else it says, about a full disk for example, becomes `EngineFailed`. An interrupt is none of these, whatever
    an engine makes of it.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (RuntimeError, *engine.errors)) and _is_interrupt(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, engine.errors):
            raise
        if not isinstance(source, Export) or not (isinstance(error, engine.malformed) or source.place in str(error)):
            raise EngineFailed(f"{engine.name} could not go on: {_first_line(error)}") from error
        raise InvalidExport(
            f"{source.place} cannot be read, though it is what its checksums say: {_first_line(error)}; export again"
        ) from error


def _is_interrupt(error: Exception) -> bool:
    """DuckDB tells of an interrupt in words: its own, or those of the Python code that it had called."""
    return isinstance(error, duckdb.InterruptException) or str(error) == _STOPPED or bool(_RAISED.search(str(error)))


def _first_line(error: Exception) -> str:
    """What an error says; Spark's bridge to Java puts what was called before it, in a line of its own."""
    first, _, rest = str(error).strip().partition("\n")
    told = rest.strip(": ").partition("\n")[0] if first.startswith(_CALLED) else ""
    return (told or first).rstrip(".")


_OPTIONS = {"duckdb": ("memory", "threads"), "spark": ("session", "master", "config")}


def open_engine(name: str | Engine = "duckdb", **options: Any) -> Engine:
    """An engine by name, "duckdb" or "spark"; an engine that is open already is used as it is."""
    if not isinstance(name, str):
        return name
    if name not in _OPTIONS:
        raise InvalidValue(f'there is no engine {name!r}; there is "duckdb" and "spark"')
    for option in options:
        if option not in _OPTIONS[name]:
            raise InvalidValue(f"engine={name!r} has no {option}=; it has {', '.join(_OPTIONS[name])}")
    if name == "duckdb":
        return DuckDBEngine(**options)
    try:
        engine: Engine = import_module("adjoin.batch.spark").SparkEngine(**options)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "adjoin":
            raise
        raise MissingExtra(
            f"engine=\"spark\" needs {error.name}; install it with: pip install 'adjoin[spark]'"
        ) from error
    return engine
