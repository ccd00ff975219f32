"""Spark as the engine, with a given session, the active session, or a new one."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ibis
import ibis.expr.types as ir
from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    ArithmeticException,
    NumberFormatException,
    PySparkException,
    PySparkRuntimeError,
    PythonException,
)
from pyspark.sql import SparkSession, functions
from pyspark.sql.functions import from_json, get_json_object, lit, rtrim, when
from pyspark.sql.types import StringType, StructField, StructType

from adjoin.batch.engines import BATCH, Source, Want, compiled, named
from adjoin.batch.exports import Export, is_remote, local_text, open_export
from adjoin.errors import MissingExtra

_SETTINGS = {
    # A number that does not fit its type must be an error, so that the job runs again with wide numbers.
    "spark.sql.ansi.enabled": "true",
    # "name" and "Name" are different attributes in DynamoDB.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    # A checkpoint carries over known constraints of columns, and fails if such a column no longer exists.
    "spark.sql.constraintPropagation.enabled": "false",
}


_IN_PYTHON = "org.apache.spark.api.python.PythonException: "
"""The text before the traceback of a Python function in a Java error."""
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_OVERFLOWS = ("CAST_INVALID_INPUT", "NUMERIC_VALUE_OUT_OF_RANGE", "ARITHMETIC_OVERFLOW")


_is_text: Callable[[Any], Any] = getattr(functions, "is_valid_utf8", lambda line: lit(True))
"""Whether bytes are valid UTF-8. Spark can check that since version 4; from_json replaces invalid bytes."""

_PLAIN = ("S", "N", "B", "BOOL", "NULL")
_COMPACT = 16
"""After this many turns, a growing table is merged, so that its partitions stay few."""


class SparkEngine:
    """Spark, with the given session, the active one, or a new one at `master`."""

    name = "Spark"
    overflows: tuple[type[Exception], ...] = (ArithmeticException, NumberFormatException)
    malformed: tuple[type[Exception], ...] = (*overflows, PythonException)
    errors: tuple[type[Exception], ...] = (Py4JJavaError, PySparkException)

    def __init__(
        self, session: SparkSession | None = None, master: str = "local[*]", config: dict[str, str] | None = None
    ) -> None:
        found = session or SparkSession.getActiveSession()
        self._is_own = found is None
        self._interrupt = signal.getsignal(signal.SIGINT)
        if found is None:
            builder = SparkSession.builder.master(master).appName("adjoin")
            defaults = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
            for name, value in {**defaults, **(config or {})}.items():
                builder = builder.config(name, value)
            try:
                found = builder.getOrCreate()
            except PySparkRuntimeError as error:
                if "JAVA_GATEWAY_EXITED" not in str(error):
                    raise
                raise MissingExtra(
                    'engine="spark" needs Java 17 or 21; install it, and set JAVA_HOME to its folder'
                ) from error
        self._session: SparkSession = found
        self._before = {name: found.conf.get(name, None) for name in _SETTINGS}
        for name, value in _SETTINGS.items():
            found.conf.set(name, value)
        self._backend = ibis.pyspark.connect(found)
        self._folder = Path(tempfile.mkdtemp(prefix="adjoin-batch-"))
        self._numbers = itertools.count()
        self._kept: list[Any] = []

    def rows(self, source: Source, wants: Sequence[Want]) -> ir.Table:
        # A line that is not complete JSON gives null everywhere, as a line without an item. `Tables` refuses both.
        files = list(source.files) if isinstance(source, Export) else self._written(source)
        frame = (
            self._session.read.text([*map(_exactly, files)])
            if files
            else self._session.createDataFrame([], "value string")
        )
        frame = frame.filter(rtrim(frame["value"]) != "")
        whole = when(_is_text(frame["value"]) & rtrim(frame["value"]).endswith("}"), frame["value"])
        parsed = frame.select(frame["value"], from_json(whole, _schema(wants)).alias("parsed"))
        item = parsed["parsed"].getField("Item")
        values = [
            item.getField(want[0]).getField(want[1]) if _is_plain(want) else get_json_object("value", _path(want))
            for want in wants
        ]
        return self._view(parsed.select(*(value.alias(f"w{at}") for at, value in enumerate(values))))

    def _written(self, source: Any) -> list[str]:
        """Writes the lines of a dump to files, which executors can read."""
        folder = self._folder / f"lines_{next(self._numbers)}"
        folder.mkdir()
        files = []
        for number, lines in enumerate(source.lines()):
            path = folder / f"{number:06}.json.gz"
            path.write_bytes(gzip.compress(b"".join(b'{"Item":' + line + b"}\n" for line in lines), 1))
            files.append(str(path))
        return files

    def stage(self, table: ir.Table) -> ir.Table:
        return self._view(self._kept_frame(self._frame(table)))

    def grow(self, staged: ir.Table, turn: ir.Table, turns: Iterable[int], more: ir.Table) -> None:
        name = staged.get_name()
        addition = self._compiled(more)
        for place, number in enumerate(turns, 1):
            self._session.range(number, number + 1, 1, 1).toDF("number").createOrReplaceTempView(turn.get_name())
            united = self._session.table(name).union(self._kept_frame(self._session.sql(addition)))
            if not place % _COMPACT:
                # Each addition brings its own partitions.
                united = self._kept_frame(united.coalesce(self._session.sparkContext.defaultParallelism))
            united.createOrReplaceTempView(name)

    def _kept_frame(self, frame: Any) -> Any:
        # A checkpoint cuts the lineage, which would grow with every step of a loop.
        try:
            kept = frame.localCheckpoint(eager=True)
        except (Py4JJavaError, PySparkException) as error:
            # An error inside a broadcast arrives wrapped, so that only its text shows its class.
            text = str(error)
            if any(name in text for name in _OVERFLOWS):
                raise OverflowError("a number does not fit") from error
            if missing := _MISSING.search(text):
                raise MissingExtra(
                    f"a Spark worker has no module {missing[1]!r}; install the same adjoin on all workers as here"
                ) from error
            if isinstance(error, Py4JJavaError) and _IN_PYTHON in text:
                raise PythonException(_told_by_python(text)) from error
            raise
        self._kept.append(kept)
        return kept

    def _frame(self, table: ir.Table) -> Any:
        return self._session.sql(self._compiled(table))

    def _compiled(self, table: ir.Table) -> str:
        # Compiling alone does not register Python functions with the session.
        self._backend._run_pre_execute_hooks(table)
        return compiled("pyspark", table.op())

    def _view(self, frame: Any) -> ir.Table:
        name = f"adjoin_staged_{next(self._numbers)}"
        frame.createOrReplaceTempView(name)
        return named(name, self._backend.table(name).schema())

    def become(self, staged: ir.Table, after: ir.Table, times: int) -> None:
        change = self._compiled(after)
        for _ in range(times):
            self._kept_frame(self._session.sql(change)).createOrReplaceTempView(staged.get_name())

    def size(self, staged: ir.Table) -> int:
        return int(self._session.table(staged.get_name()).count())

    def fetch(self, table: ir.Table, order: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        frame = self._frame(table)
        # Most results are small, and sorting them here is faster than another Spark job.
        some = [row.asDict() for row in frame.take(BATCH + 1)]
        if len(some) <= BATCH:
            yield from sorted(some, key=lambda row: [_sort_key(row[name]) for name in order]) if order else some
            return
        for row in (frame.orderBy(*order) if order else frame).toLocalIterator():
            yield row.asDict()

    def export(self, place: str | os.PathLike[str]) -> Export:
        return open_export(place, self._text_of)

    def _text_of(self, name: str) -> str | None:
        if not is_remote(name):
            return local_text(name)
        try:
            rows = self._session.read.text(_exactly(name), wholetext=True).collect()
        except Exception:
            return None
        return rows[0][0] if rows else None

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._is_own:
            self._session.stop()
            self._put_back_interrupts()
            return
        for name, value in self._before.items():
            if value is None:
                self._session.conf.unset(name)
            else:
                self._session.conf.set(name, value)

    def _put_back_interrupts(self) -> None:
        """Restores the handler of Ctrl-C: Spark leaves its own, which fails without a session."""
        if threading.current_thread() is threading.main_thread() and self._interrupt is not None:
            signal.signal(signal.SIGINT, self._interrupt)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _exactly(name: str) -> str:
    """A file name with escapes, because Spark reads brackets and stars as a pattern."""
    return re.sub(r"[*?\[\]{}\\]", r"\\\g<0>", name)


def _told_by_python(error: str) -> str:
    """The last line of the Python traceback in a Java error: the exception that a Python function raised."""
    traceback = error.partition(_IN_PYTHON)[2].partition("\n\tat ")[0]
    return traceback.strip().rpartition("\n")[2]


def _sort_key(value: Any) -> Any:
    """A sort key as engines use it: text by its UTF-8 bytes, and null first."""
    if value is None:
        return (False, b"")
    return (True, value.encode() if isinstance(value, str) else value)


def _is_plain(want: Want) -> bool:
    """Whether a want is a plain attribute, which Spark can read with all others in one parse."""
    return len(want) == 2 and want[1] in _PLAIN


def _schema(wants: Sequence[Want]) -> StructType:
    tags: dict[str, set[str]] = {}
    for want in wants:
        if _is_plain(want):
            tags.setdefault(want[0], set()).add(want[1])
    item = StructType()
    for name, some in tags.items():
        item.add(name, StructType([StructField(tag, StringType()) for tag in sorted(some)]))
    return StructType([StructField("Item", item)])


def _path(want: Want) -> str:
    return "$.Item" + "".join(f"[{step}]" if step.isdecimal() else f"['{step}']" for step in want)
