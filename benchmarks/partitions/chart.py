"""Several outcomes as SVG: the share of refused writes over time, with one line per way of sharding.

The axis is logarithmic, because shares from one in ten thousand up to all writes matter. The chart has its own
background, light or dark like the reader's system, so that it fits on any page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.partitions.running import Outcome

_WIDTH, _HEIGHT = 900, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 250, 60, 50
_LEAST = 1e-4
_STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de; }
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #57606a; }
  .grid { stroke: #d8dee4; }
  .goal { stroke: #57606a; stroke-dasharray: 4 4; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
  .c0 { stroke: #cf222e; } .c1 { stroke: #9a6700; } .c2 { stroke: #8250df; } .c3 { stroke: #1a7f37; }
  .adaptive { stroke: #0969da; stroke-width: 3.5; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d; }
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .grid { stroke: #30363d; }
    .goal { stroke: #9198a1; }
    .c0 { stroke: #f85149; } .c1 { stroke: #d29922; } .c2 { stroke: #a371f7; } .c3 { stroke: #3fb950; }
    .adaptive { stroke: #58a6ff; }
  }
"""
GOAL = 0.001


def chart(title: str, outcomes: Sequence[Outcome]) -> str:
    minutes = max(len(outcome.minutes) for outcome in outcomes)
    body = [_text(20, 32, title, "title"), *_axes(minutes), *_warm_up(outcomes[0].warm_up / 60, minutes)]
    ends = _apart([_y(outcome.minutes[-1]) for outcome in outcomes])
    # The last of several is the one that is recommended.
    best = max((number for number, each in enumerate(outcomes) if each.sharding.startswith("adaptive")), default=None)
    for number, (outcome, end) in enumerate(zip(outcomes, ends, strict=True)):
        style = "adaptive" if number == best else f"c{number % 4}"
        points = " ".join(f"{_x(at + 0.5, minutes):.1f},{_y(share):.1f}" for at, share in enumerate(outcome.minutes))
        body.append(f'<polyline class="line {style}" points="{points}"/>')
        x = _WIDTH - _RIGHT + 10
        body.append(f'<line class="line {style}" x1="{x}" y1="{end - 4:.1f}" x2="{x + 16}" y2="{end - 4:.1f}"/>')
        body.append(_text(x + 22, end, f"{outcome.sharding}: {percent(outcome.throttled)}"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def percent(share: float) -> str:
    """A share in percent. A share above zero is never rounded to zero."""
    if not share:
        return "0 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.01 else f"{share * 100:.2g} %"


def _axes(minutes: int) -> Iterator[str]:
    for power in range(round(math.log10(_LEAST)), 1):
        y = _y(10.0**power)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        label = f"{100 * 10.0**power:g} %"
        yield _text(_LEFT - 8, y + 4, f"≤ {label}" if power == round(math.log10(_LEAST)) else label, "quiet", "end")
    goal = _y(GOAL)
    yield f'<line class="goal" x1="{_LEFT}" y1="{goal:.1f}" x2="{_WIDTH - _RIGHT}" y2="{goal:.1f}"/>'
    step = max(1, 5 * round(minutes / 30))
    for at in range(0, minutes + 1, step):
        yield _text(_x(at, minutes), _HEIGHT - _BOTTOM + 18, f"{at} min", "quiet", "middle")


def _warm_up(end: float, minutes: int) -> Iterator[str]:
    """The line at the end of the warm-up. The shares at the ends of lines are from there on."""
    if end:
        x = _x(end, minutes)
        yield f'<line class="goal" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>'
        yield _text(x + 4, _TOP - 10, "counted from here", "quiet")


def _x(minute: float, minutes: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * minute / minutes


def _y(share: float) -> float:
    height = math.log10(max(share, _LEAST) / _LEAST) / math.log10(1 / _LEAST)
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * height


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights for labels, near the ends of their lines, without overlap."""
    placed: dict[int, float] = {}
    last = _HEIGHT - _BOTTOM + 22.0
    for number in sorted(range(len(heights)), key=lambda each: -heights[each]):
        last = placed[number] = min(heights[number] + 4, last - 18)
    return [placed[number] for number in range(len(heights))]


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'
