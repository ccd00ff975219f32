"""Draws tables as boxes, with key columns first and repeated partition keys left out; and shows progress.

Functions here recognise adjoin's own items and attributes, so that commands can leave them out. Progress goes to
stderr: a bar that redraws itself on a terminal, and a line every few seconds elsewhere. Nothing here reads a file, or
knows what the work is.
"""

from __future__ import annotations

import shutil
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from adjoin.dataclass import dataclass
from adjoin.reserved import ATTRIBUTE, is_own_partition
from adjoin.values import AttributeValue, Item, binary_size

ELLIPSIS = "…"
CELL = 40
"""The most columns of a terminal that a cell may take."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    right: bool = False
    limit: int = CELL


def draw(columns: Sequence[Column], groups: Iterable[Sequence[Sequence[str]]]) -> str:
    """A box with a header, and a line between groups of rows. Long cells are shortened."""
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
    """Items by their keys: one group per partition, whose key is written once.

    Every attribute has a column: keys first, then the others in order of appearance, those of `last` at the
    end. If that would be wider than `width`, all attributes that are not keys share one column.
    """
    appeared = list(dict.fromkeys(name for item in items for name in item if name not in keys and name not in last))
    present = [name for name in last if name not in keys and any(name in item for item in items)]
    names = [*keys, *appeared, *present]
    numeric = [all("N" in item[name] for item in items if name in item) for name in names]
    columns = [Column(name, right) for name, right in zip(names, numeric, strict=True)]
    show = {name: shown_key if name in keys else shown for name in names}
    rows = [[[show[name](item[name]) if name in item else "" for name in names]] for item in items]
    drawn = draw(columns, _by_partition(items, rows, keys[0]))
    if width is None or display_width(drawn.partition("\n")[0]) <= width:
        return drawn
    return _drawn_narrow(items, keys, [*appeared, *present], width)


def _drawn_narrow(items: Sequence[Item], keys: Sequence[str], names: Sequence[str], width: int) -> str:
    """One column for all attributes. If that is still too wide, further keys go there too, and keys are shortened."""
    names = [*keys[2:], *names]
    for count, limit in ((len(keys), CELL), (2, CELL), (2, CELL // 2)):
        own = keys[:count]
        texts = [[shortened(text, limit) for text in (key, *(shown_key(item[key]) for item in items))] for key in own]
        room = width - 4 - sum(3 + max(map(display_width, column)) for column in texts)
        if room >= CELL:
            break
    room, others = max(room, CELL // 2), [name for name in names if name not in own]
    rows = []
    for item in items:
        words = [f"{printable(name)}: {shortened(shown(item[name]))}" for name in others if name in item]
        lines = _filled(words, room) or [""]
        cells = [shown_key(item[key]) for key in own]
        rows.append([[*cells, lines[0]], *([*("" for _ in own), line] for line in lines[1:])])
    columns = [*(Column(key, limit=limit) for key in own), Column("attributes", limit=room)]
    return draw(columns, _by_partition(items, rows, keys[0]))


def _filled(words: Iterable[str], width: int) -> list[str]:
    """Joins words with commas into as few lines of this width as possible."""
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
    """The rows of the items, in one group per partition; only a group's first row has the partition key."""
    groups: list[list[list[str]]] = []
    partition: AttributeValue | None = None
    for item, lines in zip(items, rows, strict=True):
        if groups and item[key] == partition:
            groups[-1] += [["", *line[1:]] for line in lines]
        else:
            groups.append(list(lines))
        partition = item[key]
    return groups


def shown_key(attribute: AttributeValue) -> str:
    """A key on one line; binary in Base64, because its length would not tell one item from another."""
    return attribute["B"] if "B" in attribute else shown(attribute)


def shown(attribute: AttributeValue) -> str:
    """A stored value on one line."""
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
    """The number of terminal columns that a text takes."""
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
    """A number with its noun: "1 item", "7 items"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- adjoin's own items ------------------------------------------------------------------------


def is_own(partition: AttributeValue) -> bool:
    """Whether an item with this partition key is one of adjoin's own, and not a node or edge."""
    return "S" in partition and is_own_partition(partition["S"])


def without_own_attributes(item: Item) -> Item:
    """An item without the attributes that adjoin writes for itself."""
    return {name: value for name, value in item.items() if not name.startswith(ATTRIBUTE)}


# --- progress ----------------------------------------------------------------------------------


BAR_SECONDS = 0.1
LINE_SECONDS = 5.0
_BAR = 24
_RETURN, _CLEAR = "\r", "\x1b[K"


class ProgressLine:
    """Shows how much of some work is done. A total of 0 means that the total is unknown."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic, width: int | None = None) -> None:
        self._stream = stream
        self._clock = clock
        self._terminal = stream.isatty()
        self._width = width
        self._blocks = "█░" if (stream.encoding or "").lower().replace("-", "").startswith("utf") else "#."
        self._work = ""
        self._began = self._shown = clock()
        self._first = 0
        self._drawn = False

    def show(self, work: str, noun: str, done: int, total: int) -> None:
        now = self._clock()
        if work != self._work:
            # Work that an earlier run did must not count for the rate of this one.
            self._work, self._began, self._first = work, now, done
        if now - self._shown < (BAR_SECONDS if self._terminal else LINE_SECONDS):
            return
        self._shown = now
        rate = (done - self._first) / (now - self._began) if now > self._began else 0.0
        parts = [f"{done:,} of {total:,} {noun}" if total > done else f"{done:,} {noun}", f"{rate:,.0f}/s"]
        if total > done and rate:
            parts.append(f"{duration((total - done) / rate)} left")
        self._write(work, min(done / total, 1.0) if total else None, "  ".join(parts))

    def _write(self, work: str, part: float | None, text: str) -> None:
        if not self._terminal:
            percent = "" if part is None else f"{part:.0%}, "
            self._stream.write(f"{work}: {percent}{text.replace('  ', ', ')}\n")
        else:
            filled = 0 if part is None else round(part * _BAR)
            bar = "" if part is None else f"{self._blocks[0] * filled}{self._blocks[1] * (_BAR - filled)} {part:4.0%}  "
            line = f"{work}  {bar}{text}"
            width = (self._width or shutil.get_terminal_size().columns) - 1
            if display_width(line) > width:
                line = f"{work}  {text}"
            self._stream.write(_RETURN + shortened(line, width) + _CLEAR)
            self._drawn = True
        self._stream.flush()

    def close(self) -> None:
        """Removes the bar, so that the next output does not mix with it."""
        if self._drawn:
            self._stream.write(_RETURN + _CLEAR)
            self._stream.flush()
            self._drawn = False


def duration(seconds: float) -> str:
    """Seconds in a readable form: "0.4 s", "12 s", "3:05 min", "2:10:00 h"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} h"
