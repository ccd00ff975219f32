"""Reads the records of a file: CSV and JSON lines, also gzipped, Parquet, and the export format of DynamoDB.

A record is a mapping from columns to values, with its number in the file. What is wrong with a whole file raises before
its first record is read: a gzip that ends early is read to its end first, because half of it must not be loaded.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from adjoin.batch.exports import lines_of, open_export
from adjoin.errors import InvalidValue, MissingExtra, NotFound
from adjoin.exchange.texts import csv_row

STDIN = "-"
FORMATS = ("csv", "jsonl", "parquet", "dynamodb")
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_PARQUET = b"PAR1"
_CHUNK = 1 << 20
_CELL = 1 << 20
"""The most characters of a cell: an item of DynamoDB has at most 400 KB."""

Record = tuple[int, Any]
"""The number of a record in its file, from 1, and its values: cells, an object, or an item."""


def format_of(path: str) -> str | None:
    """The format that the first bytes of a file tell, or its name; None if neither tells one."""
    if os.path.isdir(path):
        return "dynamodb"
    if os.path.isfile(path) and _begins_with(path, _PARQUET):
        # Programs give Parquet other names, and as text it cannot be read.
        return "parquet"
    return _SUFFIXES.get(Path(path.removesuffix(".gz")).suffix.lower())


class Reader(ABC):
    """The records of one source."""

    columns: tuple[str, ...] | None = None
    """The columns of all records; None if each record names its own."""
    total: int = 0
    """About how many records there are; 0 if that is not known."""

    @abstractmethod
    def records(self, after: int = 0) -> Iterator[Record]:
        """The records behind the first `after`. A record that cannot be read is a `Broken`."""

    @abstractmethod
    def close(self) -> None:
        """Closes the file."""


class Broken(str):
    """What is wrong with a record that is none."""

    __slots__ = ("text",)
    text: str
    """The record as the file has it."""


def broken(reason: str, text: str) -> Broken:
    found = Broken(reason)
    found.text = text
    return found


def open_reader(path: str, format: str | None = None) -> Reader:
    """Opens a source; raises if it does not exist, or is not whole."""
    if path != STDIN and not os.path.exists(path):
        raise NotFound(f"the file {path} does not exist; check the name")
    format = format or format_of(path)
    if format is None:
        raise InvalidValue(f"the name {path} does not say its format; name it with --format: {', '.join(FORMATS)}")
    if format == "dynamodb":
        return _Export(path)
    if os.path.isdir(path):
        raise InvalidValue(f"{path} is a folder; name a file in it, or use --format dynamodb for an export")
    if format == "parquet":
        return _Parquet(path)
    return (_Csv if format == "csv" else _Lines)(path)


# --- text --------------------------------------------------------------------------------------


class _Text(Reader):
    def __init__(self, path: str) -> None:
        self._path = path
        self.total = 0 if path == STDIN else _lines_in(path)
        self._file = _opened_text(path)

    def close(self) -> None:
        if self._path != STDIN:
            self._file.close()

    @contextmanager
    def _refused_as_text(self) -> Iterator[None]:
        """Errors of the file itself, in words."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{self._path} is not in UTF-8 ({error.reason}); convert it first") from None
        except csv.Error as error:
            raise InvalidValue(f"{self._path} cannot be read as CSV: {error}; check its quotes") from None


def _opened(path: str) -> BinaryIO:
    is_gzip = _begins_with(path, b"\x1f\x8b")
    return gzip.open(path, "rb") if is_gzip else open(path, "rb")  # type: ignore[return-value]


def _begins_with(path: str, beginning: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(beginning)) == beginning


def _opened_text(path: str) -> io.TextIOWrapper:
    binary = sys.stdin.buffer if path == STDIN else _opened(path)
    return io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")


def _lines_in(path: str) -> int:
    """How many lines a file has; reads all of it, so that a gzip that is not whole is noticed."""
    lines = 0
    last = b"\n"
    try:
        with _opened(path) as file:
            while chunk := file.read(_CHUNK):
                lines += chunk.count(b"\n")
                last = chunk[-1:]
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidValue(f"{path} is not a whole gzip file: it is damaged or ends early; copy it again") from None
    return lines + (last != b"\n")


class _Csv(_Text):
    columns: tuple[str, ...]

    def __init__(self, path: str) -> None:
        super().__init__(path)
        csv.field_size_limit(_CELL)
        self._rows = csv.reader(self._file)
        try:
            with self._refused_as_text():
                self.columns = _header(path, next(self._rows, None))
        except BaseException:
            self.close()
            raise
        self.total = max(self.total - 1, 0)

    def records(self, after: int = 0) -> Iterator[Record]:
        width = len(self.columns)
        with self._refused_as_text():
            for number, row in enumerate(islice(self._rows, after, None), after + 1):
                if len(row) == width:
                    yield number, row
                elif row:
                    reason = f"the row has {len(row)} cells, and the header {width}"
                    yield number, broken(reason, csv_row(row))


def _header(path: str, header: list[str] | None) -> tuple[str, ...]:
    if not header:
        raise InvalidValue(f"{path} is empty; its first line must name the columns")
    columns = tuple(name.strip() for name in header)
    for name in columns:
        if columns.count(name) > 1:
            raise InvalidValue(f"{path} has the column {name!r} twice; rename one of them")
    return columns


class _Lines(_Text):
    def records(self, after: int = 0) -> Iterator[Record]:
        with self._refused_as_text():
            for number, line in enumerate(islice(self._file, after, None), after + 1):
                if line.isspace():
                    continue
                try:
                    # Decimal and not float, so that numbers keep their digits.
                    found = json.loads(line, parse_float=Decimal) if "." in line or "e" in line else orjson.loads(line)
                except ValueError as error:
                    yield number, broken(f"the line is not valid JSON: {error}", line.rstrip("\r\n"))
                    continue
                is_object = isinstance(found, dict)
                yield number, found if is_object else broken("the line is not a JSON object", line.rstrip("\r\n"))


# --- Parquet -----------------------------------------------------------------------------------


def parquet() -> Any:
    try:
        import_module("pyarrow")
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"Parquet needs {error.name}; install it with: pip install 'adjoin[batch]'") from error


class _Parquet(Reader):
    columns: tuple[str, ...]
    _ROWS = 10_000

    def __init__(self, path: str) -> None:
        if path == STDIN:
            raise InvalidValue("Parquet cannot be read from stdin, because its end is read first; name a file")
        made = parquet()
        arrow = import_module("pyarrow")
        try:
            self._file = made.ParquetFile(path)
        except arrow.ArrowInvalid as error:
            raise InvalidValue(f"{path} is not a whole Parquet file ({error}); copy it again") from None
        self.columns = tuple(self._file.schema_arrow.names)
        self.total = self._file.metadata.num_rows

    def records(self, after: int = 0) -> Iterator[Record]:
        number = 0
        for batch in self._file.iter_batches(self._ROWS):
            if number + batch.num_rows <= after:
                number += batch.num_rows
                continue
            values = batch.to_pydict()
            rows = zip(*(values[name] for name in self.columns), strict=True)
            for row in rows:
                number += 1
                if number > after:
                    yield number, row

    def close(self) -> None:
        self._file.close()


# --- exports of DynamoDB -----------------------------------------------------------------------


class _Export(Reader):
    def __init__(self, path: str) -> None:
        self._export = open_export(path)
        self.total = self._export.items

    def close(self) -> None:
        """Each file of an export is closed when it is read."""

    def records(self, after: int = 0) -> Iterator[Record]:
        lines = lines_of(self._export.files)
        for number, line in enumerate(islice(lines, after, None), after + 1):
            try:
                yield number, orjson.loads(line)["Item"]
            except (ValueError, KeyError, TypeError):
                yield number, broken("the line is not an item in DynamoDB JSON", line.decode(errors="replace").rstrip())
