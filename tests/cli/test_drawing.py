"""Drawings: exact text for exact items."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.cli.drawing import Column, counted, display_width, draw, draw_items, shortened, shown
from adjoin.values import Item, encode


def items(*plain: dict[str, Any]) -> list[Item]:
    return [{name: encode(value) for name, value in item.items()} for item in plain]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("John", "John"),
        ("", '""'),
        ("two\nlines\0", r"two\nlines\x00"),
        (3, "3"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (b"12345", "<5 bytes>"),
        ({"b", "a"}, "{a, b}"),
        ({2}, "{2}"),
        ([1, "a", [None]], '[1, "a", [null]]'),
        ({"city": "Rome", "zip": 7}, '{city: "Rome", zip: 7}'),
        ([], "[]"),
        ({}, "{}"),
    ],
)
def test_a_value_is_shown_in_one_line(value: Any, text: str) -> None:
    assert shown(encode(value)) == text


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 6, "日本語"), ("日本語", 5, "日本…"), ("日本語", 4, "日…")],
)
def test_long_text_is_cut_by_what_it_takes_on_the_screen(text: str, limit: int, short: str) -> None:
    assert shortened(text, limit) == short
    assert display_width(short) <= limit


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("ä", 1), ("a\u0308", 1), ("日", 2), ("🙂", 2), ("\u200d", 0)])
def test_widths_are_those_of_a_terminal(text: str, width: int) -> None:
    assert display_width(text) == width


def test_a_binary_key_is_told_from_others_of_its_length() -> None:
    drawn = draw_items(items({"hash": b"\xff\xfe", "data": b"12"}, {"hash": b"ab", "data": b"34"}), ["hash"])
    assert [line for line in drawn.splitlines() if "bytes" in line] == ["│ //4= │ <2 bytes> │", "│ YWI= │ <2 bytes> │"]
    narrow = draw_items(
        items({"hash": b"\xff\xfe", **{f"long{number}": "x" * 9 for number in range(9)}}), ["hash"], (), 60
    )
    assert "//4=" in narrow


def test_numbers_stand_right_and_text_left() -> None:
    drawn = draw([Column("name"), Column("n", right=True)], [[["a", "1"], ["bb", "10"]], [["c", "100"]]])
    assert drawn.splitlines() == [
        "┌──────┬─────┐",
        "│ name │   n │",
        "├──────┼─────┤",
        "│ a    │   1 │",
        "│ bb   │  10 │",
        "├──────┼─────┤",
        "│ c    │ 100 │",
        "└──────┴─────┘",
    ]


def test_a_partition_is_a_block_and_its_key_is_written_once() -> None:
    drawn = draw_items(
        items(
            {"GSI": "x", "PK": "A", "SK": "1", "n": 5},
            {"PK": "A", "SK": "2", "name": "日本"},
            {"PK": "B", "SK": "1", "n": 12},
        ),
        keys=["PK", "SK"],
        last=["GSI"],
    )
    assert drawn.splitlines() == [
        "┌────┬────┬────┬──────┬─────┐",
        "│ PK │ SK │  n │ name │ GSI │",
        "├────┼────┼────┼──────┼─────┤",
        "│ A  │ 1  │  5 │      │ x   │",
        "│    │ 2  │    │ 日本 │     │",
        "├────┼────┼────┼──────┼─────┤",
        "│ B  │ 1  │ 12 │      │     │",
        "└────┴────┴────┴──────┴─────┘",
    ]


def test_a_drawing_that_is_too_wide_has_one_column_for_attributes() -> None:
    wide = {f"attribute{number}": "x" * 20 for number in range(3)}
    drawn = draw_items(items({"PK": "A", "SK": "1", **wide}, {"PK": "A", "SK": "2"}), ["PK", "SK"], width=60)
    assert drawn.splitlines() == [
        "┌────┬────┬───────────────────────────────────┐",
        "│ PK │ SK │ attributes                        │",
        "├────┼────┼───────────────────────────────────┤",
        "│ A  │ 1  │ attribute0: xxxxxxxxxxxxxxxxxxxx, │",
        "│    │    │ attribute1: xxxxxxxxxxxxxxxxxxxx, │",
        "│    │    │ attribute2: xxxxxxxxxxxxxxxxxxxx  │",
        "│    │ 2  │                                   │",
        "└────┴────┴───────────────────────────────────┘",
    ]


def test_every_line_of_a_drawing_is_as_wide_as_the_others() -> None:
    odd = items({"PK": "日本\n", "a\tb": "é" * 90}, {"PK": "🙂", "a\tb": {"x": [1, 2, 3]}})
    for width in (None, 60):
        lines = draw_items(odd, ["PK"], width=width).splitlines()
        assert len({display_width(line) for line in lines}) == 1


@pytest.mark.parametrize(("number", "text"), [(0, "0 items"), (1, "1 item"), (1234, "1,234 items")])
def test_counting(number: int, text: str) -> None:
    assert counted(number, "item") == text
