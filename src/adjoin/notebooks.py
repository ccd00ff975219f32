"""What a notebook shows: nodes, edges, results, explanations and graphs as HTML.

These are pure functions of what a program holds. They make no requests, so showing something never reads a table. All
text is escaped, long values are cut, and nothing outside of the text is needed to show it. Colours are inherited from
the page, so that it is readable in light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from pydantic import BaseModel, RootModel

from adjoin.errors import NotRead

_CELL = 80
"""The greatest number of characters of a value in a table."""
_ROWS = 50
"""The greatest number of results in a table."""
_LINE = 400
_LINES = 100
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no document may have: control characters and lone surrogates."""
_RULE = "border-bottom:1px solid rgba(128,128,128,.35);padding:.2em .8em .2em 0;text-align:left"


class _Absent:
    """Stands for a field that was not read."""

    def __str__(self) -> str:
        return "not read"


_ABSENT = _Absent()


def cut(text: str, most: int = _CELL) -> str:
    """Returns a text with at most so many characters, with an ellipsis if it had more."""
    text = _NOT_XML.sub("\ufffd", text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def text_of(value: Any, most: int = _CELL) -> str:
    """Returns a value as people read it, cut."""
    if isinstance(value, BaseModel) and not isinstance(value, RootModel):
        inner = ", ".join(f"{name}={text_of(each, most)}" for name, each in fields_of(value))
        return cut(f"{type(value).__name__}({inner})", most)
    if isinstance(value, bytes | bytearray | list | dict | set | frozenset):
        return cut(repr(value), most)
    if isinstance(value, tuple):
        return cut(" · ".join(text_of(each, most) for each in value), most)
    return cut(str(value), most)


def fields_of(entity: BaseModel) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a node or an edge that its repr has, with their values."""
    model = type(entity)
    for name, info in model.model_fields.items():
        if info.repr:
            yield name, entity.__dict__.get(name, _ABSENT)
    yield from (entity.model_extra or {}).items()
    for name, computed in model.model_computed_fields.items():
        if computed.repr:
            try:
                yield name, getattr(entity, name)
            except NotRead:
                yield name, _ABSENT


# --- what is shown -----------------------------------------------------------------------------


def entity_html(entity: BaseModel) -> str:
    """A node or an edge: its class, and a row for each field."""
    return _table(type(entity).__name__, (), ((name, value) for name, value in fields_of(entity)))


def results_html(title: str, results: Sequence[Any], notes: Iterable[str] = ()) -> str:
    """A table of results, a row for each. Those of one class have a column for each field."""
    shown = results[:_ROWS]
    notes = [*notes]
    if len(results) > len(shown):
        notes.insert(0, f"{len(results) - len(shown):,} more are not shown.")
    models = {type(each) for each in shown}
    names: Sequence[str] = ()
    rows: Iterable[Sequence[Any]]
    if len(models) == 1 and isinstance(shown[0], BaseModel):
        found = [dict(fields_of(each)) for each in shown]
        names = list(dict.fromkeys(name for each in found for name in each))
        rows = [[each.get(name, "") for name in names] for each in found]
        title = f"{title} ({type(shown[0]).__name__})"
    else:
        rows = [each if isinstance(each, tuple) else (each,) for each in shown]
    return _table(title, names, rows) + _notes(notes)


def completeness_notes(exceeded: str | None, capped: Sequence[Any]) -> list[str]:
    """What a traversal did not read, in sentences."""
    notes = [] if exceeded is None else [f"Partial: the budget of {exceeded} did not suffice."]
    if capped:
        more = "" if len(capped) <= 3 else f" and {len(capped) - 3} others"
        notes.append(f"Not all edges were read of {', '.join(text_of(each) for each in capped[:3])}{more}.")
    return notes


def table_html(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()) -> str:
    """A table with a title, names of columns, and sentences below it."""
    rows = [*rows]
    left_out = [f"{len(rows) - _LINES:,} more are not shown."] if len(rows) > _LINES else []
    return _table(title, names, rows[:_LINES], _LINE) + _notes([*left_out, *notes])


def lazy_html(repr_of_it: str, notes: Iterable[str] = ()) -> str:
    """A query or a walk: what it would read."""
    text = f"<code><bdi>{escape(cut(repr_of_it, _LINE))}</bdi></code>"
    return f"<div>{text}{_notes(['It has read nothing yet.', *notes])}</div>"


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]], most: int = _CELL) -> str:
    head = "".join(f'<th style="{_RULE}">{escape(cut(name))}</th>' for name in names)
    lines = [f"<tr>{head}</tr>"] if head else []
    lines += [f"<tr>{''.join(_cell(value, most) for value in row)}</tr>" for row in rows]
    caption = f"<div><strong><bdi>{escape(cut(title, _LINE))}</bdi></strong></div>"
    return f'{caption}<table style="border-collapse:collapse">{"".join(lines)}</table>' if lines else caption


def _cell(value: Any, most: int) -> str:
    # The direction of a text is its own, and does not reach beyond its cell.
    text = escape(text_of(value, most))
    return f'<td dir="auto" style="{_RULE}">{f"<em>{text}</em>" if value is _ABSENT else text}</td>'


def _notes(notes: Iterable[str]) -> str:
    return "".join(f'<div style="opacity:.75"><bdi>{escape(cut(note, _LINE))}</bdi></div>' for note in notes)
