"""The form of a row: which attributes of an item are columns, and which are in the body.

An attribute of type S that is a key of the table or of an index is in its column and nowhere else: the
column holds its text as it is. Other keys are in their columns in a form made for sorting, so they are
in the body too, with everything that is no key. Short rows keep the tree of a large table flat.

Nothing here executes SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from orjson import dumps, loads

from adjoin.values import Item

Found: TypeAlias = Sequence[Any]
"""A row as it is read: size, body, then all key columns."""

_PARTITION, _SORT = 2, 3
"""Where the keys of the table are in it."""


class RowForm:
    """Turns the items of one table into bodies, and rows into items."""

    def __init__(self, columns: Sequence[str], texts: dict[int, str]) -> None:
        """`columns` are all key columns; `texts` names the attribute of type S for those that hold one."""
        self.fields = ", ".join(("size", "body", *columns))
        """What to select, for `item`."""
        self.width = _PARTITION + len(columns)
        """How many values a row has."""
        self.names = frozenset(texts.values())
        """The attributes that no body holds."""
        self.item = _reader({_PARTITION + position: name for position, name in texts.items()})
        """The item of a row; what is broken in it is a `JSONDecodeError`."""
        self.text = _text_reader({_PARTITION + position: name for position, name in texts.items()})
        """The item of a row as JSON, for who sends it on: nothing is parsed."""
        self._names = tuple(texts.values())

    def body(self, item: Item) -> bytes:
        rest = item.copy()
        for name in self._names:
            rest.pop(name, None)
        return dumps(rest)


def _reader(texts: dict[int, str]) -> Callable[[Found], Item]:
    """Compiled for one table, as every item that is read comes through it: a loop takes a sixth longer."""
    own = "".join(f"{name!r}: {{'S': found[{place}]}}, " for place, name in texts.items() if place <= _SORT)
    lines = ["def item(found):", f"    item = {{{own}**loads(found[1])}}"]
    for place, name in texts.items():
        if place > _SORT:
            lines += [
                f"    value = found[{place}]",
                "    if value is not None:",
                f"        item[{name!r}] = {{'S': value}}",
            ]
    lines.append("    return item")
    return _compiled(lines, "item", loads=loads)


def _text_reader(texts: dict[int, str]) -> Callable[[Found], bytes]:
    """Compiled as well; attributes come in the same order."""
    own = [place for place in texts if place <= _SORT]
    form = b",".join(map(_member, (texts[place] for place in own)))
    values = "".join(f"dumps(found[{place}]), " for place in own)
    lines = ["def text(found):", "    body = found[1]"]
    if len(own) == len(texts):
        lines += [
            "    if len(body) > 2:",
            f"        return {b'{' + form + b',%b'!r} % ({values}body[1:])" if own else "        return body",
            f"    return {b'{' + form + b'}'!r} % ({values})",
        ]
        return _compiled(lines, "text", dumps=dumps)
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
    return _compiled(lines, "text", dumps=dumps)


def _member(name: str) -> bytes:
    """A text in an item, as a form that takes its JSON."""
    return dumps(name).replace(b"%", b"%%") + b':{"S":%b}'


def _compiled(lines: Sequence[str], name: str, **names: Any) -> Callable[[Found], Any]:
    exec("\n".join(lines), names)
    made: Callable[[Found], Any] = names[name]
    return made
