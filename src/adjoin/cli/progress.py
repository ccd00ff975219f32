"""How far work has come, on stderr: a bar that redraws itself on a terminal, now and then a line elsewhere.

Nothing here knows what the work is.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from adjoin.cli.drawing import display_width, shortened

BAR_SECONDS = 0.1
LINE_SECONDS = 5.0
_BAR = 24
_RETURN, _CLEAR = "\r", "\x1b[K"


class ProgressLine:
    """Shows work of which so much is done; a total of 0 is an unknown one."""

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
            # What was done before, as by an earlier run, says nothing about how fast it goes now.
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
        """Takes the bar away, so that what is printed next stands alone."""
        if self._drawn:
            self._stream.write(_RETURN + _CLEAR)
            self._stream.flush()
            self._drawn = False


def duration(seconds: float) -> str:
    """Seconds as a person says them: "0.4 s", "12 s", "3:05 min", "2:10:00 h"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} h"
