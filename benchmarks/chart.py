"""The chart of a run as SVG: throughput as bars, latencies as ranges on a logarithmic axis.

It has its own background, light or dark like the reader's system, so that it fits on any page.
Nothing here measures or reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 860
_LEFT, _RIGHT = 150, 30
_BAR, _GAP, _GROUP = 18, 5, 26
_ROW = 34
_SPAN = _WIDTH - _LEFT - _RIGHT

_STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de; }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #57606a; }
  .grid { stroke: #d8dee4; }
  .adjoin { fill: #0969da; stroke: #0969da; }
  .other { fill: #9a6700; stroke: #9a6700; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d; }
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .grid { stroke: #30363d; }
    .adjoin { fill: #58a6ff; stroke: #58a6ff; }
    .other { fill: #d29922; stroke: #d29922; }
  }
"""


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    note: str
    style: str


@dataclass(frozen=True)
class Group:
    """A group of bars under a heading."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Range:
    """The median and the 99th percentile of one operation, for adjoin and the other contestant."""

    label: str
    adjoin: tuple[float, float]
    other: tuple[float, float]


def chart(title: str, groups: Sequence[Group], subtitle: str, ranges: Sequence[Range]) -> str:
    bars = list(_bars(groups, 66))
    top = 66 + sum(_GROUP + len(group.bars) * (_BAR + _GAP) for group in groups) + 40
    height = top + len(ranges) * _ROW + 62
    body = [
        _text(20, 32, title, "title"),
        *bars,
        _text(20, top, subtitle, "title"),
        *_ranges(ranges, top + 30),
    ]
    return _page(title, height, body)


def bar_chart(title: str, groups: Sequence[Group]) -> str:
    """A chart of bars only, each group on its own scale."""
    body, y = [_text(20, 32, title, "title")], 66
    for group in groups:
        body += _bars([group], y)
        y += _GROUP + len(group.bars) * (_BAR + _GAP)
    return _page(title, y, body)


def _page(title: str, height: int, body: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
            *body,
            "</svg>",
            "",
        ]
    )


# --- bars --------------------------------------------------------------------------------------


def _bars(groups: Sequence[Group], y: int) -> Iterator[str]:
    longest = max(bar.value for group in groups for bar in group.bars)
    room = _SPAN - 190
    for group in groups:
        yield _text(20, y, group.title, "quiet")
        y += 10
        for bar in group.bars:
            width = max(1.5, room * bar.value / longest)
            middle = y + _BAR - 5
            yield _text(_LEFT - 10, middle, bar.label, anchor="end")
            yield f'<rect class="{bar.style}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
            yield _text(_LEFT + width + 8, middle, bar.note, "quiet")
            y += _BAR + _GAP
        y += _GROUP - 10


# --- ranges ------------------------------------------------------------------------------------


def _ranges(ranges: Sequence[Range], y: int) -> Iterator[str]:
    ends = [end for each in ranges for pair in (each.adjoin, each.other) for end in pair]
    low, high = math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends)))

    def place(value: float) -> float:
        return _LEFT + _SPAN * (math.log10(value) - low) / (high - low)

    bottom = y + len(ranges) * _ROW
    for power in range(low, high + 1):
        x = place(10**power)
        yield f'<line class="grid" x1="{x:.1f}" y1="{y - 8}" x2="{x:.1f}" y2="{bottom}"/>'
        yield _text(x, bottom + 16, _duration(10**power), "quiet", anchor="middle")
    for each in ranges:
        yield _text(_LEFT - 10, y + 15, each.label, anchor="end")
        yield from _range(each.adjoin, "adjoin", place(each.adjoin[0]), place(each.adjoin[1]), y + 6)
        yield from _range(each.other, "other", place(each.other[0]), place(each.other[1]), y + 17)
        y += _ROW


def _range(pair: tuple[float, float], style: str, start: float, end: float, y: int) -> Iterator[str]:
    told = f"<title>{_duration(pair[0])} to {_duration(pair[1])}</title>"
    yield f'<line class="{style}" stroke-width="3" x1="{start:.1f}" y1="{y}" x2="{end:.1f}" y2="{y}">{told}</line>'
    yield f'<circle class="{style}" cx="{start:.1f}" cy="{y}" r="4.5"/>'


def _duration(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:g} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds:.3g} µs"


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}"{named}>{escape(text)}</text>'
