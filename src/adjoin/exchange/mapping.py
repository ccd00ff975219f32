"""From the records of a file to nodes and edges: which column is which field, and what a cell means.

Names are compared before anything is loaded, so that a wrong column is an error and not a million refused rows.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from adjoin.entity_types import EntityType, NodeUnion
from adjoin.errors import AdjoinError, InvalidValue, shown
from adjoin.exchange.readers import Broken
from adjoin.exchange.texts import bytes_from, is_mixed, node_from
from adjoin.field_types import may_be_none, may_be_text, plain_type, problems_in, raised_by_class
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Ref

CLASS = "class"
"""The member of a JSON object that names its class. No field can have this name, because Python has it."""
_SHOWN = 200

Convert = Callable[[Any], Any]


class RecordRefused(Exception):
    """A record cannot be loaded; the text says why."""


class Mapped:
    """One class, and how the columns of a file become its fields."""

    def __init__(self, kind: EntityType, renamed: Mapping[str, str], ignored: Iterable[str]) -> None:
        self.kind = kind
        self._renamed, self._ignored = dict(renamed), {*ignored}
        for field in self._renamed.values():
            if field not in kind.fields and not kind.takes_any:
                raise InvalidValue(f"{kind.name} has no field {field!r}; {_meant(field, kind.fields)}")
        self._validate = kind.model.__pydantic_validator__.validate_python
        self._converts: dict[str, Convert] = {}
        for name in kind.fields:
            convert = _conversion(kind, name)
            if convert is not None:
                self._converts[name] = convert
        # JSON tells texts from all else, so a text is left one where the field takes it.
        self._of_members = [
            (name, convert)
            for name, convert in self._converts.items()
            if convert is not _from_json or not may_be_text(kind.fields[name])
        ]
        self._names: list[str | None] = []
        self._converted: list[tuple[str, Convert]] = []

    def check_columns(self, source: str, columns: Sequence[str]) -> None:
        """Decides which column is which field; raises `InvalidValue` if one is none, or a field has no column."""
        kind = self.kind
        by_alias = {alias: name for name, alias in kind.attributes.items()}
        for given in (*self._renamed, *self._ignored):
            if given not in columns:
                raise InvalidValue(f"{source} has no column {given!r}; {_meant(given, columns)}")
        self._names = []
        for column in columns:
            name = self._renamed.get(column, column)
            if column in self._ignored:
                self._names.append(None)
            # A column may have the name of one field and the alias of another. The name comes first, as in the
            # program.
            elif name in kind.fields or kind.takes_any:
                self._names.append(name)
            elif name in by_alias:
                self._names.append(by_alias[name])
            else:
                free = [field for field in kind.fields if field not in columns]
                raise InvalidValue(
                    f"{source} has the column {column!r}, and {kind.name} has no such field; {_meant(column, free)} "
                    f"name the field with --map {column}=FIELD, or leave the column out with --ignore {column}"
                )
        required = [name for name, info in kind.fields.items() if info.is_required() and name not in self._names]
        if required:
            raise InvalidValue(
                f"{source} has no column for {kind.name}.{required[0]}, which is required; it has "
                f"{', '.join(map(repr, columns))}; name one with --map COLUMN={required[0]}"
            )
        self._converted = [(name, self._converts[name]) for name in self._names if name in self._converts]

    def from_cells(self, row: Sequence[str]) -> Any:
        """The instance of a row of texts. An empty cell is a missing value, or an empty text if the field needs one."""
        values = dict(zip(self._names, row, strict=True))
        values.pop(None, None)
        if "" in row:
            values = {name: cell for name, cell in values.items() if cell or self._must_be_there(name)}
        return self._made(values, self._converted)

    def from_values(self, row: Sequence[Any]) -> Any:
        """The instance of a row of values. None stands for no value."""
        values = dict(zip(self._names, row, strict=True))
        if None in values or None in row:
            values = {name: value for name, value in values.items() if name is not None and value is not None}
        return self._made(values, self._converted)

    def from_object(self, given: Mapping[str, Any]) -> Any:
        """The instance of a JSON object, whose members are fields."""
        values: dict[Any, Any] = {}
        for member, value in given.items():
            name = self._renamed.get(member, member)
            if member in self._ignored or member == CLASS:
                continue
            if name not in self.kind.fields and not self.kind.takes_any:
                raise RecordRefused(f"{self.kind.name} has no field {name!r}; {_meant(name, self.kind.fields)}")
            values[name] = value
        return self._made(values, [each for each in self._of_members if each[0] in values])

    def _must_be_there(self, name: Any) -> bool:
        info = self.kind.fields.get(name)
        return info is not None and info.is_required() and not may_be_none(info)

    def _made(self, values: dict[Any, Any], converted: Iterable[tuple[str, Convert]]) -> Any:
        try:
            for name, convert in converted:
                if name in values:
                    values[name] = convert(values[name])
            # An export has them as columns too, but the class computes them anew.
            for name in self.kind.computed:
                values.pop(name, None)
            return self._validate(values)
        except ValidationError as error:
            raise RecordRefused(problems_in(error)) from None
        except AdjoinError as error:
            raise RecordRefused(str(error)) from None
        # These are not about one record. Whatever else a validator raises is, so the others are still loaded.
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            raise RecordRefused(raised_by_class(error)) from None


def _conversion(kind: EntityType, name: str) -> Convert | None:
    """What a value of a file needs before the class validates it; None if it needs nothing."""
    end = kind.end(name)
    if end is not None:
        if isinstance(end, NodeUnion):
            return lambda value: _ref(end, value)
        return None if end.is_single else lambda value: node_from(end, value) if isinstance(value, str) else value
    if plain_type(kind.fields[name]) is bytes:
        return lambda value: bytes_from(kind, name, value) if isinstance(value, str) else value
    return _from_json if is_mixed(kind.fields[name]) else None


def _ref(end: NodeUnion, value: Any) -> Any:
    """A node of one of several classes: text as CLASS:ID, or an object with its class and its id."""
    if isinstance(value, str):
        return node_from(end, value)
    if isinstance(value, dict) and value.keys() == {CLASS, "id"}:
        for each in end.classes:
            if each.name == value[CLASS]:
                return Ref(each.model, each.id(value["id"]))
    return value


def _from_json(value: Any) -> Any:
    """A list or a map that is written as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_float=Decimal)
    except ValueError:
        return value


def _meant(word: str, known: Iterable[str]) -> str:
    names = [*known]
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, names)) or 'none'};"


class Records:
    """Makes nodes and edges of the records of any source."""

    def __init__(
        self,
        layout: BoundLayout,
        format: str,
        kind: EntityType | None,
        renamed: Mapping[str, str],
        ignored: Iterable[str],
    ) -> None:
        self._layout = layout
        ignored = [*ignored]
        if format == "dynamodb" and (kind is not None or renamed or ignored):
            raise InvalidValue("the keys of an export's items say their classes; leave the class and the columns out")
        if kind is None and format in ("csv", "parquet"):
            raise InvalidValue(f"the rows of a {format} file are of one class; name it")
        kinds = [kind] if kind is not None else layout.schema.types if format == "jsonl" else []
        if kind is None and renamed:
            raise InvalidValue("--map is about the fields of one class; name the class")
        self._mapped = {each.name: Mapped(each, renamed, ignored) for each in kinds}
        self._only = None if kind is None else self._mapped[kind.name]
        self._make: Convert = self._of_object if format == "jsonl" else self._of_item
        if self._only is not None and format != "jsonl":
            self._make = self._only.from_cells if format == "csv" else self._only.from_values

    def check_columns(self, source: str, columns: Sequence[str] | None) -> None:
        if self._only is not None and columns is not None:
            self._only.check_columns(source, columns)

    def made(self, record: Any) -> Any:
        """The node or edge that a record is, or None if it is one of adjoin's own; raises `RecordRefused`."""
        if isinstance(record, Broken):
            raise RecordRefused(record)
        return self._make(record)

    def _of_object(self, record: dict[str, Any]) -> Any:
        named = record.get(CLASS)
        if self._only is not None:
            if named not in (None, self._only.kind.name):
                raise RecordRefused(f"the object is of the class {shown(named)}, and not {self._only.kind.name}")
            return self._only.from_object(record)
        if not isinstance(named, str) or named not in self._mapped:
            known = _meant(str(named)[:_SHOWN], self._mapped)
            raise RecordRefused(f'the member "class" is {shown(named)}, which is not a class of the graph; {known}')
        return self._mapped[named].from_object(record)

    def _of_item(self, item: Any) -> Any:
        try:
            if self._layout.is_bookkeeping(item):
                return None
            found = self._layout.read(item)
        except AdjoinError as error:
            raise RecordRefused(str(error)) from None
        except (AttributeError, TypeError, ValueError, KeyError):
            raise RecordRefused("the line is not an item in DynamoDB JSON") from None
        if found is None:
            raise RecordRefused("no class explains the keys of the item")
        return found
