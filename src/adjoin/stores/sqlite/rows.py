"""The form of a row: which attributes of an item are columns, and which are in the body.

An attribute of type S that is a key of the table or of an index is in its column and nowhere else: the
column holds its text as it is. Other keys are in their columns in a form made for sorting, so they are
in the body too, with everything that is no key. Short rows keep the tree of a large table flat.

A row also has a sum of what makes the item, by which damage is noticed that SQLite does not see. Tables of files of
format version 1 have none.

Nothing here executes SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from zlib import crc32

from orjson import JSONDecodeError, dumps, loads

from adjoin.values import Item

Found: TypeAlias = Sequence[Any]
"""A row as it is read: size, body, then all key columns, then the sum if there is one."""


class BrokenRow(ValueError):
    """What was read is not what was written."""


BROKEN = (BrokenRow, JSONDecodeError, UnicodeDecodeError)
"""What damage to the file leads to, beside errors of SQLite."""

_PARTITION, _SORT = 2, 3
"""Where the keys of the table are in it."""


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
        self.sum: Callable[[Found], int] = _compiled(
            ["def sum(found):", f"    return {_sum_of(places)}"], "sum", crc32=crc32
        )
        """The sum of a row, whose last value is not looked at."""
        self._names = tuple(texts.values())

    def body(self, item: Item) -> bytes:
        rest = item.copy()
        for name in self._names:
            rest.pop(name, None)
        return dumps(rest)


def _sum_of(texts: dict[int, str]) -> str:
    """An expression for the sum of a row.

    What is not part of the item is no part of it, so that it stays the same when indexes come and go: columns that
    repeat what is in the body, and columns that are NULL.
    """
    keys = " + ".join(f"found[{place}]" if place in texts else f"found[{place}].hex()" for place in (_PARTITION, _SORT))
    further = "".join(
        f" + ('' if found[{place}] is None else {f'|{name}|'!r} + found[{place}])"
        for place, name in texts.items()
        if place > _SORT
    )
    return f"crc32(found[1], crc32(({keys}{further}).encode(), found[0]))"


def _reader(texts: dict[int, str], check: list[str]) -> Callable[[Found], Item]:
    """Compiled for one table, as every item that is read comes through it: a loop takes a sixth longer."""
    own = "".join(f"{name!r}: {{'S': found[{place}]}}, " for place, name in texts.items() if place <= _SORT)
    lines = ["def item(found):", *check, f"    item = {{{own}**loads(found[1])}}"]
    for place, name in texts.items():
        if place > _SORT:
            lines += [
                f"    value = found[{place}]",
                "    if value is not None:",
                f"        item[{name!r}] = {{'S': value}}",
            ]
    lines.append("    return item")
    return _compiled(_guarded(lines), "item", loads=loads, crc32=crc32, BrokenRow=BrokenRow)


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


def _guarded(lines: Sequence[str]) -> list[str]:
    """A column of another type than was written breaks a row too."""
    return [
        lines[0],
        "    try:",
        *("    " + line for line in lines[1:]),
        "    except (AttributeError, TypeError):",
        "        raise BrokenRow from None",
    ]


def _compiled(lines: Sequence[str], name: str, **names: Any) -> Callable[[Found], Any]:
    exec("\n".join(lines), names)
    made: Callable[[Found], Any] = names[name]
    return made
