"""The progress line, as its exact output: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io

import pytest

from adjoin.cli.drawing import ProgressLine, duration


class Screen(io.StringIO):
    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal = terminal
        self._encoding = encoding

    def isatty(self) -> bool:
        return self._terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def drawn(screen: Screen) -> list[str]:
    return [line.removesuffix("\x1b[K") for line in screen.getvalue().split("\r") if line]


def test_a_terminal_shows_a_bar() -> None:
    screen, clock = Screen(True), Clock()
    line = ProgressLine(screen, clock, width=120)
    for done in (0, 250, 260, 500, 1000):
        line.show("Plain: copying", "items", done, 1000)
        clock.now += 0.05 if done == 250 else 2.0
    line.close()
    line.close()
    assert drawn(screen) == [
        "Plain: copying  ██████░░░░░░░░░░░░░░░░░░  25%  250 of 1,000 items  125/s  6.0 s left",
        "Plain: copying  ████████████░░░░░░░░░░░░  50%  500 of 1,000 items  123/s  4.0 s left",
        "Plain: copying  ████████████████████████ 100%  1,000 items  165/s",
        "",
    ]


def test_a_narrow_terminal_and_one_without_blocks() -> None:
    screen, clock = Screen(True, "ascii"), Clock()
    line = ProgressLine(screen, clock, width=60)
    line.show("Plain: copying", "items", 0, 1000)
    clock.now += 1
    line.show("Plain: copying", "items", 500, 1000)
    assert drawn(screen) == ["Plain: copying  500 of 1,000 items  500/s  1.0 s left"]
    wide = ProgressLine(screen, clock, width=100)
    clock.now += 1
    wide.show("Plain: copying", "items", 500, 1000)
    assert drawn(screen)[-1].startswith("Plain: copying  ############............  50%  500 of")


def test_a_file_gets_a_line_now_and_then() -> None:
    screen, clock = Screen(False), Clock()
    line = ProgressLine(screen, clock)
    for second in range(12):
        line.show("Plain: copying", "items", 1000 + 100 * second, 10_000)
        clock.now += 1
    line.close()
    assert screen.getvalue().splitlines() == [
        "Plain: copying: 15%, 1,500 of 10,000 items, 100/s, 1:25 min left",
        "Plain: copying: 20%, 2,000 of 10,000 items, 100/s, 1:20 min left",
    ]


def test_what_is_not_known_is_left_out() -> None:
    screen, clock = Screen(False), Clock()
    line = ProgressLine(screen, clock)
    line.show("looking", "changes", 0, 0)
    clock.now += 5
    line.show("looking", "changes", 10, 0)
    clock.now += 5
    line.show("copying", "items", 0, 5)
    clock.now += 5
    line.show("copying", "items", 7, 5)
    assert screen.getvalue().splitlines() == [
        "looking: 10 changes, 2/s",
        "copying: 0%, 0 of 5 items, 0/s",
        "copying: 100%, 7 items, 1/s",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1:00 min"),
        (3599, "59:59 min"),
        (7805, "2:10:05 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
