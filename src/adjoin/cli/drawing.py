"""Tables as a person would draw them: boxes, key columns first, what repeats left out.

Text in, text out; nothing here reads a file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjoin.values import AttributeValue, Item, binary_size

ELLIPSIS = "…"
CELL = 40
"""Columns of a terminal that a cell may take."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    right: bool = False
    limit: int = CELL


def draw(columns: Sequence[Column], groups: Iterable[Sequence[Sequence[str]]]) -> str:
    """A box with a header, and a line between groups of rows; long cells are cut."""
    header = [shortened(printable(column.name)) for column in columns]
    cut = [
        [[shortened(cell, column.limit) for cell, column in zip(row, columns, strict=True)] for row in group]
        for group in groups
    ]
    widths = [
        max(display_width(row[at]) for row in [header, *(row for group in cut for row in group)])
        for at in range(len(columns))
    ]
    lines = [_rule("┌", "┬", "┐", widths), _line(header, widths, columns), _rule("├", "┼", "┤", widths)]
    for number, group in enumerate(cut):
        if number:
            lines.append(_rule("├", "┼", "┤", widths))
        lines += [_line(row, widths, columns) for row in group]
    lines.append(_rule("└", "┴", "┘", widths))
    return "\n".join(lines)


def _rule(left: str, middle: str, right: str, widths: list[int]) -> str:
    return left + middle.join("─" * (width + 2) for width in widths) + right


def _line(cells: Sequence[str], widths: list[int], columns: Sequence[Column]) -> str:
    padded = [
        " " * (width - display_width(cell)) + cell if column.right else cell + " " * (width - display_width(cell))
        for cell, width, column in zip(cells, widths, columns, strict=True)
    ]
    return "│ " + " │ ".join(padded) + " │"


# --- items -------------------------------------------------------------------------------------


def draw_items(items: Sequence[Item], keys: Sequence[str], last: Sequence[str] = (), width: int | None = None) -> str:
    """Items by their keys: one group a partition, whose key is written once.

    Every attribute has a column: keys first, then the others as they appear, those of `last` at the
    end. Where that would be wider than `width`, there is one column for all that are no keys.
    """
    appeared = list(dict.fromkeys(name for item in items for name in item if name not in keys and name not in last))
    present = [name for name in last if name not in keys and any(name in item for item in items)]
    names = [*keys, *appeared, *present]
    numeric = [all("N" in item[name] for item in items if name in item) for name in names]
    columns = [Column(name, right) for name, right in zip(names, numeric, strict=True)]
    rows = [[[shown(item[name]) if name in item else "" for name in names]] for item in items]
    drawn = draw(columns, _by_partition(items, rows, keys[0]))
    if width is None or display_width(drawn.partition("\n")[0]) <= width:
        return drawn
    return _drawn_narrow(items, keys, [*appeared, *present], width)


def _drawn_narrow(items: Sequence[Item], keys: Sequence[str], names: Sequence[str], width: int) -> str:
    """One column for all attributes; also for further keys, and with shorter ones, where the width asks for it."""
    names = [*keys[2:], *names]
    for count, limit in ((len(keys), CELL), (2, CELL), (2, CELL // 2)):
        own = keys[:count]
        texts = [[shortened(text, limit) for text in (key, *(shown(item[key]) for item in items))] for key in own]
        room = width - 4 - sum(3 + max(map(display_width, column)) for column in texts)
        if room >= CELL:
            break
    room, others = max(room, CELL // 2), [name for name in names if name not in own]
    rows = []
    for item in items:
        words = [f"{printable(name)}: {shortened(shown(item[name]))}" for name in others if name in item]
        lines = _filled(words, room) or [""]
        cells = [shown(item[key]) for key in own]
        rows.append([[*cells, lines[0]], *([*("" for _ in own), line] for line in lines[1:])])
    columns = [*(Column(key, limit=limit) for key in own), Column("attributes", limit=room)]
    return draw(columns, _by_partition(items, rows, keys[0]))


def _filled(words: Iterable[str], width: int) -> list[str]:
    """Words in as few lines of a width as will hold them, with commas between."""
    lines: list[str] = []
    for word in words:
        if lines and display_width(lines[-1]) + display_width(word) + 3 <= width:
            lines[-1] += f", {word}"
        else:
            if lines:
                lines[-1] += ","
            lines.append(word)
    return lines


def _by_partition(items: Sequence[Item], rows: Sequence[list[list[str]]], key: str) -> list[list[list[str]]]:
    """The rows of each item, in groups of one partition; only a group's first row says which."""
    groups: list[list[list[str]]] = []
    partition: AttributeValue | None = None
    for item, lines in zip(items, rows, strict=True):
        if groups and item[key] == partition:
            groups[-1] += [["", *line[1:]] for line in lines]
        else:
            groups.append(list(lines))
        partition = item[key]
    return groups


def shown(attribute: AttributeValue) -> str:
    """A stored value in one short line."""
    ((tag, value),) = attribute.items()
    match tag:
        case "S":
            return printable(value) if value else '""'
        case "N":
            return str(value)
        case "BOOL":
            return "true" if value else "false"
        case "NULL":
            return "null"
        case "B":
            return f"<{binary_size(value)} bytes>"
        case "SS" | "NS" | "BS":
            return "{" + ", ".join(shown({tag[0]: element}) for element in value) + "}"
        case "L":
            return "[" + ", ".join(_inner(element) for element in value) + "]"
    return "{" + ", ".join(f"{printable(name)}: {_inner(element)}" for name, element in value.items()) + "}"


def _inner(attribute: AttributeValue) -> str:
    return f'"{printable(attribute["S"])}"' if "S" in attribute else shown(attribute)


def printable(text: str) -> str:
    """Text without line breaks and control characters, which would break the box."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


# --- widths ------------------------------------------------------------------------------------


def display_width(text: str) -> int:
    """Columns a text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, limit: int = CELL) -> str:
    """The text, or as much of its start as fits before an ellipsis."""
    if display_width(text) <= limit:
        return text
    kept, taken = "", 0
    for character in text:
        taken += _character_width(character)
        if taken > limit - 1:
            break
        kept += character
    return kept + ELLIPSIS


def counted(number: int, noun: str) -> str:
    """How many of what, as in "1 item" and "7 items"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
