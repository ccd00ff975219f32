"""The form of a row: which attributes of an item are columns, and which are in the body.

An attribute of type S that is a key of the table or of an index is in its column and nowhere else: the
column holds its text as it is. Other keys are in their columns in a form made for sorting, so they are
in the body too, with everything that is no key. Short rows keep the tree of a large table flat.

A row also has a sum of what makes the item, by which damage is noticed that SQLite does not see. Tables of files of
format version 1 have none.

Nothing here executes SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from zlib import crc32

from orjson import JSONDecodeError, dumps, loads

from adjoin.errors import FileDamaged
from adjoin.values import Item

Found: TypeAlias = Sequence[Any]
"""A row as it is read: size, body, then all key columns, then the sum if there is one."""


class BrokenRow(ValueError):
    """What was read is not what was written."""


BROKEN = (BrokenRow, JSONDecodeError, UnicodeDecodeError)
"""What damage to the file leads to, beside errors of SQLite."""
DAMAGED = "an item in the file is broken; restore it from a backup"
_Items: TypeAlias = Callable[[list[Any]], Iterator[Item]]

_PARTITION, _SORT = 2, 3
"""Where the keys of the table are in it."""
_PIECE = 32
"""Rows that are checked and parsed together: a call for each would take a seventh longer."""


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
        """The item of a row as JSON, for who sends it on: nothing is parsed."""
        self._check = _checker(places, self.width) if has_sum else None
        self._checked_text = _text_reader(places, [])
        self.items = (
            _pieces_reader(places, self.width, self._check) if self._check else _rows_reader(places, self.width)
        )
        """The items of rows whose values lie one behind the other in a list; what is broken there is `FileDamaged`."""
        self.sum: Callable[[Found], int] = _compiled(
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
        return map(self._checked_text, rows)

    def body(self, item: Item) -> bytes:
        rest = item.copy()
        for name in self._names:
            rest.pop(name, None)
        return dumps(rest)


def _sum_of(texts: dict[int, str], value: str = "found[%d]") -> str:
    """An expression for the sum of a row, of which `value` is one at some place.

    What is not part of the item is no part of it, so that it stays the same when indexes come and go: columns that
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


def _reader(texts: dict[int, str], check: list[str]) -> Callable[[Found], Item]:
    """Compiled for one table, as every item that is read comes through it: a loop takes a sixth longer."""
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


def _text_reader(texts: dict[int, str], check: list[str]) -> Callable[[Found], bytes]:
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
    """A column of another type than was written breaks a row too."""
    return [lines[0], "    try:", *("    " + line for line in lines[1:]), *otherwise]


def _compiled(lines: Sequence[str], name: str, **names: Any) -> Callable[..., Any]:
    exec("\n".join(lines), names)
    made: Callable[..., Any] = names[name]
    return made
