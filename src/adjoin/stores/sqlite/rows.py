"""The form of a row: which attributes of an item are columns, what the columns hold, and what is in the body.

**Key columns** hold key values so that SQLite's order of columns is DynamoDB's order of keys. Text is TEXT: SQLite
compares it by UTF-8 bytes. Binary is BLOB, compared by bytes. A number is a BLOB that sorts as the number does, and
equal numbers are equal bytes:

    zero          01
    positive      02  exponent + 130  (digit pair + 1) ...
    negative      00  the same bytes after the first, each subtracted from 255, then FF

The exponent is that of the first digit. Digits are taken two at a time from the first on; an odd one is padded with 0.
The file format document promises this encoding.

**Columns of indexes** are added and removed while other processes still read with an older definition. Their reads must
still return whole items, so no column and no SQL index ever changes its meaning:

- A column that is added later holds a copy of an attribute, and bodies still hold the attribute too.
- If no index uses the attribute of a column any more, the column is emptied, and the attribute is in bodies again.
- The numbers of columns and SQL indexes are never used again.

A writer reads the catalogue in the same transaction, so it never writes with an older definition.

**Rows.** An attribute of type S that is a key of the table or of an index is only in its column, which holds its text.
Other keys are in their columns in a form for sorting, so they are in the body too, with everything that is not a key.
Short rows keep the tree of a large table flat. A row also has a checksum of its item, which shows damage that SQLite
does not notice. Tables in files of format version 1 have no checksums.

Nothing here executes SQL.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any, TypeAlias
from zlib import crc32

from orjson import JSONDecodeError, dumps, loads

from adjoin.dataclass import dataclass
from adjoin.errors import FileDamaged
from adjoin.items import normal_attribute
from adjoin.tables import KeyAttribute, TableDefinition
from adjoin.values import AttributeValue, Item

# --- key columns -------------------------------------------------------------------------------


KeyValue: TypeAlias = str | bytes
"""The value of a key column. In a table without a sort key, its column holds empty bytes, which no key can be."""

_INVERTED = bytes(255 - byte for byte in range(256))


def number_key(text: str) -> bytes:
    """The bytes of a canonical number."""
    if text == "0":
        return b"\x01"
    negative = text[0] == "-"
    whole, _, fraction = text.lstrip("-").partition(".")
    if whole == "0":
        digits = fraction.lstrip("0")
        exponent = len(digits) - len(fraction) - 1
    else:
        digits = whole + fraction
        exponent = len(whole) - 1
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    encoded = bytes([exponent + 130, *[int(digits[at : at + 2]) + 1 for at in range(0, len(digits), 2)]])
    return b"\x00" + encoded.translate(_INVERTED) + b"\xff" if negative else b"\x02" + encoded


def _text_key(value: str) -> str:
    return value


KEY_ENCODERS: dict[str, Callable[[str], str | bytes]] = {
    "S": _text_key,
    "N": number_key,
    "B": b64decode,
}


def key_value(attribute: AttributeValue, tag: str) -> str | bytes:
    """The column value of an attribute of the given type, which need not be in normal form."""
    return KEY_ENCODERS[tag](normal_attribute(attribute)[tag])


def segment_of(*arguments: Any) -> int:
    """The scan segment of a partition key, which may have several columns: the same in every process and everywhere.

    A column that is neither text nor bytes is not a key: `BrokenRow`.
    """
    *columns, total = arguments
    crc = 0
    for column in columns:
        if not isinstance(column, str | bytes):
            raise BrokenRow
        crc = crc32(column.encode() if isinstance(column, str) else column, crc)
    return crc % int(total)


# --- prefixes ----------------------------------------------------------------------------------

_LAST_CHARACTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"


@lru_cache(maxsize=1024)
def text_after(prefix: str) -> str | None:
    """The least text that is greater than all texts with this prefix; None if there is none."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    last = kept[-1]
    return kept[:-1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))


def bytes_after(prefix: bytes) -> bytes | None:
    """The least bytes that are greater than all bytes with this prefix; None if there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def after_prefix(prefix: str | bytes) -> str | bytes | None:
    return text_after(prefix) if isinstance(prefix, str) else bytes_after(prefix)


# --- which columns a table has -----------------------------------------------------------------


@dataclass(frozen=True)
class FurtherColumn:
    """A column for an attribute that is a key of indexes only; the attribute is None if no index needs it any more."""

    attribute: KeyAttribute | None
    in_body: bool = False
    """Whether the attribute is in the body as well, whatever its type."""


@dataclass(frozen=True)
class Storage:
    columns: tuple[FurtherColumn, ...]
    """k1, k2, …"""
    indexes: dict[str, int]
    """The numbers of the SQL indexes, by the names of the indexes."""
    next_index: int
    """The number of the next SQL index."""
    stream_start: int = 0
    """The number of the last change before the stream that is kept now."""
    sums: bool = False
    """Whether rows have checksums, which show damage."""

    @classmethod
    def of(cls, definition: TableDefinition, sums: bool = False) -> Storage:
        """The storage of a new table."""
        further = definition.key_attributes[len(definition.keys) :]
        numbers = {index.name: number for number, index in enumerate(definition.indexes)}
        return cls(tuple(FurtherColumn(key) for key in further), numbers, len(numbers), sums=sums)

    @cached_property
    def in_body(self) -> frozenset[str]:
        """The key attributes that are both in columns and in bodies."""
        return frozenset(each.attribute.name for each in self.columns if each.attribute is not None and each.in_body)

    def column(self, attribute: KeyAttribute) -> str:
        """The name of the column of an attribute."""
        return next(f"k{number}" for number, each in enumerate(self.columns, 1) if each.attribute == attribute)

    def changed(self, definition: TableDefinition) -> Storage:
        """The storage for a new definition: columns that are no longer needed are emptied, and new ones come last."""
        wanted = definition.key_attributes[len(definition.keys) :]
        columns = [each if each.attribute in wanted else FurtherColumn(None) for each in self.columns]
        columns += [
            FurtherColumn(key, in_body=True) for key in wanted if all(each.attribute != key for each in self.columns)
        ]
        known = {index.name: index for index in definition.indexes}
        indexes = {name: number for name, number in self.indexes.items() if name in known}
        new = [name for name in known if name not in indexes]
        indexes |= {name: number for number, name in enumerate(new, self.next_index)}
        return replace(self, columns=tuple(columns), indexes=indexes, next_index=self.next_index + len(new))


# --- rows and items ----------------------------------------------------------------------------


FoundRow: TypeAlias = Sequence[Any]
"""A row as it is read: size, body, then all key columns, then the sum if there is one."""


class BrokenRow(ValueError):
    """A row is damaged: it is not what was written."""


BROKEN = (BrokenRow, JSONDecodeError, UnicodeDecodeError)
"""The errors that damage to the file causes, besides those of SQLite."""
DAMAGED = "an item in the file is broken; restore it from a backup"
_Items: TypeAlias = Callable[[list[Any]], Iterator[Item]]

_PARTITION, _SORT = 2, 3
"""The positions of the table's keys in a row."""
_PIECE = 32
"""Rows that are checked and parsed together; one call per row would take a seventh longer."""


class RowForm:
    """Turns the items of one table into bodies, and rows into items."""

    def __init__(self, columns: Sequence[str], texts: dict[int, str], has_sum: bool = False) -> None:
        """`columns` are all key columns; `texts` names the attribute of type S for those that hold one."""
        self.fields = ", ".join(("size", "body", *columns, *(("sum",) if has_sum else ())))
        """What to select, for `item`."""
        self.keys = slice(_PARTITION, _PARTITION + len(columns))
        """Where a row has its key columns."""
        self.width = _PARTITION + len(columns) + has_sum
        """How many values a row has."""
        self.has_sum = has_sum
        self.names = frozenset(texts.values())
        """The attributes that no body holds."""
        places = {_PARTITION + position: name for position, name in texts.items()}
        check = (
            [f"    if ({_sum_of(places)}) != found[{self.width - 1}]:", "        raise BrokenRow"] if has_sum else []
        )
        self.item = _reader(places, check)
        """The item of a row; what is broken in it is one of `BROKEN`."""
        self.text = _text_reader(places, check)
        """The item of a row as JSON, to be sent on without parsing it."""
        self._check = _checker(places, self.width) if has_sum else None
        self.joined = _text_reader(places, [])
        """The same for a row that is known to be right."""
        self.items = (
            _pieces_reader(places, self.width, self._check) if self._check else _rows_reader(places, self.width)
        )
        """The items of rows whose values lie one behind the other in a list; what is broken there is `FileDamaged`."""
        self.sum: Callable[[FoundRow], int] = _compiled(
            ["def sum(found):", f"    return {_sum_of(places)}"], "sum", crc32=crc32
        )
        """The sum of a row, whose last value is not looked at."""
        self._names = tuple(texts.values())

    def texts(self, values: list[Any]) -> Iterator[bytes]:
        """The same as `text`, for rows whose values lie one behind the other."""
        rows = zip(*[iter(values)] * self.width, strict=True)
        if self._check is None:
            return map(self.text, rows)
        self._check(values)
        return map(self.joined, rows)

    def body(self, item: Item) -> bytes:
        rest = item.copy()
        for name in self._names:
            rest.pop(name, None)
        return dumps(rest)


def _sum_of(texts: dict[int, str], value: str = "found[%d]") -> str:
    """An expression for the sum of a row, of which `value` is one at some place.

    What is not part of the item is not part of it, so that it stays the same when indexes come and go: columns that
    repeat what is in the body, and columns that are NULL.
    """
    keys = " + ".join(value % place if place in texts else f"{value % place}.hex()" for place in (_PARTITION, _SORT))
    further = "".join(
        f" + ('' if {value % place} is None else {f'|{name}|'!r} + {value % place})"
        for place, name in texts.items()
        if place > _SORT
    )
    return f"crc32({value % 1}, crc32(({keys}{further}).encode(), {value % 0}))"


def _checker(texts: dict[int, str], width: int) -> Callable[[list[Any]], None]:
    """Compiled as the readers are: it compares the sums of many rows, whose values lie one behind the other."""
    needed = sorted({0, 1, _PARTITION, _SORT, *texts})
    names = ", ".join(f"v{place}" for place in needed)
    columns = ", ".join(f"values[{place}::{width}]" for place in needed)
    lines = [
        "def check(values):",
        f"    sums = [{_sum_of(texts, 'v%d')} for {names} in zip({columns}, strict=True)]",
        f"    if sums != values[{width - 1}::{width}]:",
        "        raise BrokenRow",
    ]
    return _compiled(_guarded(lines), "check", crc32=crc32, BrokenRow=BrokenRow)


def _reader(texts: dict[int, str], check: list[str]) -> Callable[[FoundRow], Item]:
    """A reader that is compiled for one table, because it reads every item: a loop would take a sixth longer."""
    lines = ["def item(found):", *check, *_building(texts, "loads(found[1])"), "    return item"]
    return _compiled(_guarded(lines), "item", loads=loads, crc32=crc32, BrokenRow=BrokenRow)


def _rows_reader(texts: dict[int, str], width: int) -> _Items:
    """Compiled as well, for many rows, of which each is parsed by itself."""
    lines = [
        "def items(values):",
        f"    for found in zip(*[iter(values)] * {width}, strict=True):",
        *("    " + line for line in _building(texts, "loads(found[1])")),
        "        yield item",
    ]
    return _compiled(_guarded(lines, _TOLD), "items", loads=loads, BROKEN=BROKEN, FileDamaged=FileDamaged)


def _pieces_reader(texts: dict[int, str], width: int, check: Callable[[list[Any]], None]) -> _Items:
    """The same for rows with sums, which are compared first: then all bodies of a piece are one text in JSON."""
    places = sorted(texts)
    names = "".join(f"v{place}, " for place in places)
    columns = "".join(f"piece[{place}::{width}], " for place in places)
    lines = [
        "def items(values):",
        f"    for start in range(0, len(values), {_PIECE * width}):",
        f"        piece = values[start : start + {_PIECE * width}]",
        "        check(piece)",
        f"        bodies = loads(b'[' + b','.join(piece[1::{width}]) + b']')",
        f"        for {names}body, in zip({columns}bodies, strict=True):",
        *("        " + line for line in _building(texts, "body", "v%d")),
        "            yield item",
    ]
    return _compiled(_guarded(lines, _TOLD), "items", check=check, loads=loads, BROKEN=BROKEN, FileDamaged=FileDamaged)


def _building(texts: dict[int, str], body: str, value: str = "found[%d]") -> list[str]:
    """What makes the item of a row, of which `value` is one at some place."""
    own = "".join(f"{name!r}: {{'S': {value % place}}}, " for place, name in texts.items() if place <= _SORT)
    lines = [f"    item = {{{own}**{body}}}"]
    for place, name in texts.items():
        if place > _SORT:
            lines += [f"    if {value % place} is not None:", f"        item[{name!r}] = {{'S': {value % place}}}"]
    return lines


def _text_reader(texts: dict[int, str], check: list[str]) -> Callable[[FoundRow], bytes]:
    """Compiled as well; attributes come in the same order."""
    own = [place for place in texts if place <= _SORT]
    form = b",".join(map(_member, (texts[place] for place in own)))
    values = "".join(f"dumps(found[{place}]), " for place in own)
    lines = ["def text(found):", *check, "    body = found[1]"]
    if len(own) == len(texts):
        lines += [
            "    if len(body) > 2:",
            f"        return {b'{' + form + b',%b'!r} % ({values}body[1:])" if own else "        return body",
            f"    return {b'{' + form + b'}'!r} % ({values})",
        ]
        return _compiled(_guarded(lines), "text", dumps=dumps, crc32=crc32, BrokenRow=BrokenRow)
    lines += [
        f"    text = {b'{' + form + b',%b'!r} % ({values}body[1:-1]) if len(body) > 2 else {b'{' + form!r} % ({values})"
        if own
        else "    text = body[:-1]"
    ]
    for place, name in texts.items():
        if place > _SORT:
            lines += [
                f"    if found[{place}] is not None:",
                f"        text += (b',' if len(text) > 1 else b'') + {_member(name)!r} % dumps(found[{place}])",
            ]
    lines.append("    return text + b'}'")
    return _compiled(_guarded(lines), "text", dumps=dumps, crc32=crc32, BrokenRow=BrokenRow)


def _member(name: str) -> bytes:
    """A text in an item, as a form that takes its JSON."""
    return dumps(name).replace(b"%", b"%%") + b':{"S":%b}'


_BROKEN = ["    except (AttributeError, TypeError):", "        raise BrokenRow from None"]
_TOLD = [
    "    except (AttributeError, TypeError, *BROKEN):",
    f"        raise FileDamaged({DAMAGED!r}) from None",
]


def _guarded(lines: Sequence[str], otherwise: Sequence[str] = _BROKEN) -> list[str]:
    """Adds the handling of damaged rows: a column with a wrong type raises AttributeError or TypeError."""
    return [lines[0], "    try:", *("    " + line for line in lines[1:]), *otherwise]


@lru_cache(256)
def _code(text: str) -> CodeType:
    """Cached, because most tables have the same keys, so that their code is the same."""
    return compile(text, "<row form>", "exec")


def _compiled(lines: Sequence[str], name: str, **names: Any) -> Callable[..., Any]:
    exec(_code("\n".join(lines)), names)
    made: Callable[..., Any] = names[name]
    return made


def sum_of_time(at: float, expired: bool) -> int:
    """The first part of a change's checksum, which all changes of one time share."""
    return crc32(b"%a|%d|" % (at, expired))


def change_sum(start: int, old: bytes | None, new: bytes | None) -> int:
    """The checksum of a change, which shows damage; `start` is the part for its time."""
    if old is None:
        return crc32(new or b"", crc32(b"0|", start))
    return crc32(new or b"", crc32(old, crc32(b"%d|" % len(old), start)))
