"""Writes nodes and edges to a file: CSV, JSON lines or Parquet, whose values the readers read back.

A file that exists already is never replaced, and one that could not be finished is removed.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from adjoin.entity_types import EntityType
from adjoin.errors import AlreadyExists, InvalidValue, NotFound
from adjoin.exchange.readers import parquet
from adjoin.exchange.texts import as_json, csv_row, id_text, is_mixed, text_of, text_of_mixed
from adjoin.field_types import plain_type

_STEP = 10_000


class _Writer(ABC):
    @abstractmethod
    def write(self, entities: list[Any]) -> None: ...


def write_entities(
    entities: Iterable[Any],
    path: str,
    format: str,
    kind: EntityType | None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Writes all of them; returns how many. CSV and Parquet take one class."""
    if kind is None and format != "jsonl":
        raise InvalidValue(f"the rows of a {format} file are of one class; name it")
    done = 0
    with _made(path, format, kind) as writer:
        rest = iter(entities)
        while step := [*islice(rest, _STEP)]:
            writer.write(step)
            done += len(step)
            if progress is not None:
                progress(done)
    return done


@contextmanager
def _made(path: str, format: str, kind: EntityType | None) -> Iterator[_Writer]:
    if os.path.lexists(path):
        raise AlreadyExists(f"the file {path} already exists; choose another name, or remove it")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise NotFound(f"the folder {folder} does not exist; create it first")
    # The file gets its name when it is complete, so that nobody takes a part for the whole.
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "wb") as binary:
            if format == "parquet":
                assert kind is not None
                with closing(_Parquet(binary, kind)) as writer:
                    yield writer
            else:
                # Without a name and a time in the header, the same graph gives the same bytes.
                compressed = gzip.GzipFile("", "wb", 6, binary, 0) if path.endswith(".gz") else binary
                text = io.TextIOWrapper(compressed, encoding="utf-8", newline="")
                yield _Lines(text) if kind is None or format == "jsonl" else _Csv(text, kind)
                text.flush()
                # Otherwise closing the text would close the file below it, which still has to be synchronised.
                text.detach()
                if compressed is not binary:
                    compressed.close()
            binary.flush()
            os.fsync(binary.fileno())
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise


class _Lines(_Writer):
    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file

    def write(self, entities: list[Any]) -> None:
        self._file.writelines(as_json(each) + "\n" for each in entities)


def _texts(kind: EntityType) -> dict[str, Callable[[Any], str]]:
    """How the value of each field is written as a text."""
    return {
        name: id_text if kind.end(name) is not None else text_of_mixed if is_mixed(info) else text_of
        for name, info in kind.fields.items()
    }


class _Csv(_Writer):
    """A value that is missing is an empty cell. Lists, sets and maps are JSON."""

    def __init__(self, file: io.TextIOWrapper, kind: EntityType) -> None:
        self._kind = kind
        self._file = file
        self._texts = _texts(kind)
        file.write(csv_row(kind.fields) + "\n")

    def write(self, entities: list[Any]) -> None:
        for each in entities:
            values = ((text, getattr(each, name)) for name, text in self._texts.items())
            self._file.write(csv_row("" if value is None else text(value) for text, value in values) + "\n")


class _Parquet(_Writer):
    """Numbers, texts, dates and bytes have columns of their own types; decimals, lists and maps are text."""

    def __init__(self, binary: Any, kind: EntityType) -> None:
        made, self._arrow = parquet(), import_module("pyarrow")
        self._kind = kind
        self._texts = _texts(kind)
        self._types = {name: self._type(name) for name in kind.fields}
        schema = self._arrow.schema([(name, type) for name, type in self._types.items()])
        self._schema = schema
        self._file = made.ParquetWriter(binary, schema)

    def _type(self, name: str) -> Any:
        arrow = self._arrow
        end = self._kind.end(name)
        plain = plain_type(self._kind.fields[name]) if end is None else end.id_type
        found = {int: arrow.int64(), bool: arrow.bool_(), bytes: arrow.binary(), float: arrow.float64()}
        return {**found, dt.date: arrow.date32()}.get(plain or str, arrow.string())

    def write(self, entities: list[Any]) -> None:
        columns = []
        for name, type in self._types.items():
            values = [getattr(each, name) for each in entities]
            if type == self._arrow.string():
                text = self._texts[name]
                values = [None if value is None else text(value) for value in values]
            columns.append(self._column(name, values, type))
        self._file.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema))

    def _column(self, name: str, values: list[Any], type: Any) -> Any:
        try:
            return self._arrow.array(values, type)
        except (OverflowError, self._arrow.ArrowInvalid) as error:
            raise InvalidValue(
                f"{self._kind.name}.{name} has a value that its type in Parquet does not hold ({error}); export to "
                f"JSON lines"
            ) from None

    def close(self) -> None:
        self._file.close()
