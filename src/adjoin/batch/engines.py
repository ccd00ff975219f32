"""The engines: DuckDB in this process, or Spark. Everything above this module uses Ibis, and is the same for both.

An engine reads rows of text from a source, stores intermediate tables, and returns results. Items are JSON lines in
every source, so an engine's own SQL is needed only to extract values from them.

DuckDB reads local files, so an export in S3 is first copied to this machine. Apache Arrow's file system reads it, which
comes with `adjoin[batch]`. Credentials and region are those that the AWS SDK finds; AWS_ENDPOINT_URL names another
service. Only one export is copied: its manifests, and the data files that they name.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

# Imported here because DuckDB imports it inside a call: there, it takes Ctrl-C for a missing module, and goes on.
import pyarrow.dataset
import pyarrow.fs
from orjson import JSONDecodeError, loads

from adjoin.batch.exports import CHECKSUMS, FILES, ROOT, SUMMARY, Export, folder_of, is_remote, open_export
from adjoin.batch.sources import Dump
from adjoin.errors import EngineFailed, InvalidExport, InvalidValue, MissingExtra, NotFound, ServiceUnreachable

# --- buckets -----------------------------------------------------------------------------------


_AT_ONCE = 8
"""Files that are copied from S3 at the same time."""
_BLOCK = 1 << 22


def copied(place: str, folder: Path) -> Path:
    """Copies the export at an address of S3 into a folder. `open_export` then checks that it is complete."""
    address = folder_of(place).partition("://")[2]
    bucket = address.partition("/")[0]
    try:
        files = _opened(bucket)
        home = _only_export(files, place, address)
        return _ExportCopy(files, place, home, folder / home.rpartition("/")[2]).done()
    except OSError as error:
        raise ServiceUnreachable(
            f"{place} cannot be read: {error}; check the address, the region and the credentials"
        ) from error


def _opened(bucket: str) -> pyarrow.fs.S3FileSystem:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint is None:
        return pyarrow.fs.S3FileSystem(region=region or pyarrow.fs.resolve_s3_region(bucket))
    return pyarrow.fs.S3FileSystem(region=region or "us-east-1", endpoint_override=endpoint)


def _only_export(files: pyarrow.fs.S3FileSystem, place: str, address: str) -> str:
    """The folder of the manifests: the address itself, or the only export below it."""
    if _is_file(files, f"{address}/{SUMMARY}"):
        return address
    above = address if address.rpartition("/")[2] == ROOT else f"{address}/{ROOT}"
    listed = files.get_file_info(pyarrow.fs.FileSelector(above, allow_not_found=True))
    found: list[str] = sorted(each.path for each in listed if _is_file(files, f"{each.path}/{SUMMARY}"))
    if not found:
        raise NotFound(f"{place} has no export: it has no {ROOT}/…/{SUMMARY}; name the right folder")
    if len(found) > 1:
        names = ", ".join(path.rpartition("/")[2] for path in found)
        raise NotFound(f"{place} has several exports ({names}); name the folder of one of them")
    return found[0]


def _is_file(files: pyarrow.fs.S3FileSystem, name: str) -> bool:
    (info,) = files.get_file_info([name])
    return bool(info.type == pyarrow.fs.FileType.File)


class _ExportCopy:
    """Copies one export from S3 to a local folder."""

    def __init__(self, files: pyarrow.fs.S3FileSystem, place: str, home: str, folder: Path) -> None:
        self._files, self._place, self._home, self._folder = files, place, home, folder

    def done(self) -> Path:
        (self._folder / "data").mkdir(parents=True)
        for manifest in (SUMMARY, FILES):
            stem = manifest.removesuffix(".json")
            for name in (manifest, *(stem + ending for ending in CHECKSUMS)):
                if _is_file(self._files, f"{self._home}/{name}"):
                    self._copy(f"{self._home}/{name}", self._folder / name)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._copy_data, self._data()))
        return self._folder

    def _data(self) -> list[str]:
        """The keys of the data files in the manifest. A line without one is an error."""
        path = self._folder / FILES
        if not path.is_file():
            return []
        try:
            return [loads(line)["dataFileS3Key"] for line in path.read_text().splitlines() if line.strip()]
        except (JSONDecodeError, KeyError, TypeError):
            raise InvalidExport(f"{self._place}: {FILES} has a line without a data file; export again") from None

    def _copy_data(self, key: str) -> None:
        name = key.rpartition("/")[2]
        beside, named = f"{self._home}/data/{name}", f"{self._home.partition('/')[0]}/{key}"
        source = next((each for each in (beside, named) if _is_file(self._files, each)), None)
        if source is None:
            raise InvalidExport(f"{self._place}: the data file {key} is missing; copy the export again")
        self._copy(source, self._folder / "data" / name)

    def _copy(self, source: str, target: Path) -> None:
        with self._files.open_input_stream(source, compression=None) as stream, open(target, "wb") as file:
            while block := stream.read(_BLOCK):
                file.write(block)


# --- engines -----------------------------------------------------------------------------------


Source: TypeAlias = Export | Dump
Want: TypeAlias = tuple[str, ...]
"""The place of a value in an item: ("balance", "N"), ("address",) for a whole attribute as JSON, () for the item."""

BATCH = 50_000
_STOPPED = "Query interrupted"
_RAISED = re.compile(r"(^|: )KeyboardInterrupt(:|$)", re.MULTILINE)
"""Finds KeyboardInterrupt in a traceback that an error quotes, or before its message."""
_CALLED = "An error occurred while calling "


class Engine(Protocol):
    """The interface of an engine, as batch jobs use it."""

    name: str
    overflows: tuple[type[Exception], ...]
    """The errors for a number that does not fit its type."""
    malformed: tuple[type[Exception], ...]
    """The errors for values that do not have their type, such as a number that is not a number."""
    errors: tuple[type[Exception], ...]
    """The base classes of all its errors."""

    def rows(self, source: Source, wants: Sequence[Want]) -> ir.Table:
        """One row per item, with the wanted values as text in columns w0, w1, … The table may be read only once."""
        ...

    def stage(self, table: ir.Table) -> ir.Table:
        """The same table, computed now and stored until the engine is closed."""
        ...

    def fetch(self, table: ir.Table, order: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a table as dicts of Python values, ordered by some columns."""
        ...

    def grow(self, staged: ir.Table, turn: ir.Table, turns: Iterable[int], more: ir.Table) -> None:
        """Adds the rows of `more` to a staged table, once per turn. `more` is an expression over it and over `turn`.

        `turn` is a staged table of one row, whose `number` is set to each of `turns`. So `more` is compiled only
        once: for a small table, Ibis takes longer to compile it than an engine to run it.
        """
        ...

    def become(self, staged: ir.Table, after: ir.Table, times: int) -> None:
        """Replaces a staged table by an expression over it, `times` times."""
        ...

    def size(self, staged: ir.Table) -> int:
        """The number of rows of a staged table."""
        ...

    def export(self, place: str | os.PathLike[str]) -> Export:
        """The export in a folder or at an address of S3, checked, with file names that the engine can open."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


_STATEMENTS = 600
"""The number of compiled expressions that are kept. To verify and rebuild 19 classes with 54 rules takes 527.

A job with more finds none of them again, because the one that was used longest ago is dropped first.
"""


def named(name: str, schema: ibis.Schema) -> ir.Table:
    """A table of an engine by its name alone, so that equal jobs of two engines have equal expressions."""
    return ops.UnboundTable(name, schema).to_expr()


_FUSING = threading.Lock()


@lru_cache(_STATEMENTS)
def compiled(dialect: str, expression: ops.Relation) -> str:
    """The SQL of an expression. For small tables, Ibis takes longer to compile it than an engine to run it.

    To merge selections of selections is a fifth of that, and DuckDB does it too. Spark's analysis of what is nested
    deeper takes longer. Ibis has an option of the process for it, and none of a call.
    """
    with _FUSING:
        before, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, dialect != "duckdb"
        try:
            statement: str = getattr(ibis, dialect).compile(expression.to_expr())
        finally:
            ibis.options.sql.fuse_selects = before
    return statement


@lru_cache(_STATEMENTS)
def uses_this_process(expression: ops.Relation) -> bool:
    """Whether an expression has functions or tables of this process, which a connection must be told of first."""
    return bool(expression.find((ops.ScalarUDF, ops.InMemoryTable)))


class DuckDBEngine:
    """DuckDB in this process. Data that does not fit into `memory` goes to files in a temporary folder."""

    name = "DuckDB"
    overflows: tuple[type[Exception], ...] = (duckdb.ConversionException, duckdb.OutOfRangeException)
    malformed: tuple[type[Exception], ...] = (*overflows, duckdb.InvalidInputException)
    errors: tuple[type[Exception], ...] = (duckdb.Error,)

    def __init__(self, memory: str = "1GB", threads: int | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="adjoin-batch-"))
        settings: dict[str, Any] = {
            "temp_directory": str(self._folder),
            "memory_limit": memory,
            # Results are sorted when they are fetched; keeping the order of insertion would cost memory.
            "preserve_insertion_order": False,
        }
        if threads is not None:
            settings["threads"] = threads
        try:
            self._backend = ibis.duckdb.connect(**settings)
        except duckdb.Error as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise InvalidValue(f"DuckDB does not accept memory={memory!r} and threads={threads!r}: {error}") from None
        self._backend.con.execute("SET enable_progress_bar = false")
        self._numbers = itertools.count()
        self._registered: list[Any] = []

    def rows(self, source: Source, wants: Sequence[Want]) -> ir.Table:
        paths = ", ".join(_quoted("/Item" + "".join(map(_pointer_step, want))) for want in wants)
        values = ", ".join(f"e[{place + 1}] AS w{place}" for place in range(len(wants)))
        lines = self._lines(source)
        name = f"rows_{next(self._numbers)}"
        query = f"SELECT {values} FROM (SELECT json_extract_string(json, [{paths}]) AS e FROM {lines})"
        self._backend.con.execute(f"CREATE TEMP VIEW {name} AS {query}")
        return named(name, ibis.schema({f"w{place}": "string" for place in range(len(wants))}))

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
        # One statement. Ibis' create_table runs several, and asks for the schema, which is already known here.
        name = f"staged_{next(self._numbers)}"
        self._backend.con.execute(f"CREATE TABLE {name} AS {self._compiled(table)}")
        return named(name, table.schema())

    def _from(self, table: ir.Table) -> str:
        is_staged = isinstance(table.op(), ops.UnboundTable)
        return table.get_name() if is_staged else f"({self._compiled(table)})"

    def _compiled(self, table: ir.Table) -> str:
        # Compiling alone does not register Python functions with the connection. To look for them in each expression
        # takes a tenth of the time of a small job.
        if uses_this_process(table.op()):
            self._backend._run_pre_execute_hooks(table)
        return compiled("duckdb", table.op())

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
        # A separate cursor, so that other statements can run while its rows are read.
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
        # DuckDB would download an extension for S3. Arrow is already installed, and a local copy can be checked.
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
    """The source of a batch job: a source as it is, or the export in a folder or at an address of S3.

    An export of another table raises `InvalidExport`: all items of this table would look like faults.
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
    """Turns an engine's errors about the files of an export, or the values in them, into `InvalidExport`.

    Other errors of the engine, such as a full disk, become `EngineFailed`. An error of a store that is read, such as
    `FileDamaged`, and an interrupt stay what they are, even if the engine wraps them in an error of its own.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (RuntimeError, *engine.errors)) and _is_interrupt(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, engine.errors):
            raise
        if isinstance(source, Dump) and source.failures:
            raise source.failures.pop() from None
        if not isinstance(source, Export) or not (isinstance(error, engine.malformed) or source.place in str(error)):
            raise EngineFailed(f"{engine.name} failed: {_first_line(error)}") from error
        raise InvalidExport(
            f"{source.place} cannot be read, although it matches its checksums: {_first_line(error)}; export again"
        ) from error


def _is_interrupt(error: Exception) -> bool:
    """Whether an error is an interrupt. Often only its text shows that: DuckDB's own, or that of called Python code."""
    return isinstance(error, duckdb.InterruptException) or str(error) == _STOPPED or bool(_RAISED.search(str(error)))


def _first_line(error: Exception) -> str:
    """The message of an error. Spark's bridge to Java puts a line with the called function before it."""
    first, _, rest = str(error).strip().partition("\n")
    message = rest.strip(": ").partition("\n")[0] if first.startswith(_CALLED) else ""
    return (message or first).rstrip(".")


_OPTIONS = {"duckdb": ("memory", "threads"), "spark": ("session", "master", "config")}


def open_engine(name: str | Engine = "duckdb", **options: Any) -> Engine:
    """An engine by name, "duckdb" or "spark". An engine that is already open is returned as it is."""
    if not isinstance(name, str):
        return name
    if name not in _OPTIONS:
        raise InvalidValue(f'engine={name!r} does not exist; choose "duckdb" or "spark"')
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
