"""The type of stored values: the narrowest that writes each of them back as it is."""

from __future__ import annotations

import pytest

from adjoin.inferring.hints import TEXT, Hint, hint_of, key_hint, text_hint
from adjoin.values import AttributeValue

A_UUID = "12345678-1234-5678-1234-567812345678"
SECONDS, MILLISECONDS = "1767268800", "1767268800123"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], TEXT),
        (["Ann", "2026-01-01"], TEXT),
        ([A_UUID], Hint("UUID")),
        ([A_UUID.upper().replace("1", "A")], TEXT),
        (["2026-01-01", "2026-12-31"], Hint("dt.date")),
        (["2026-02-30"], TEXT),
        (["20260101T120000Z"], Hint("dt.datetime", "%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%SZ")),
        (["2026/01/31"], Hint("dt.date", "%Y/%m/%d", "%Y/%m/%d")),
        (["31.01.2026"], Hint("dt.date", "%d.%m.%Y", "%d.%m.%Y")),
        # Day and month could be either way round in all of these, so they stay text.
        (["01/02/2026", "03/04/2026"], TEXT),
        (["01/31/2026"], Hint("dt.date", "%m/%d/%Y", "%m/%d/%Y")),
    ],
)
def test_texts(texts: list[str], found: Hint) -> None:
    assert text_hint(texts) == found


def test_a_time_with_an_offset_stays_text_in_a_key() -> None:
    texts = ["2026-01-01T12:00:00+00:00", "2026-01-01T12:00:00.000001+00:00"]
    assert text_hint(texts) == Hint("dt.datetime", in_key="?")
    assert key_hint(texts) == TEXT


@pytest.mark.parametrize(
    ("name", "numbers", "found"),
    [
        ("created_at", [SECONDS], Hint("dt.datetime", "epoch", tag="N")),
        ("createdAt", [SECONDS], Hint("dt.datetime", "epoch", tag="N")),
        ("ttl", [SECONDS, "1767268801"], Hint("dt.datetime", "epoch", tag="N")),
        ("updated", [MILLISECONDS], Hint("dt.datetime", "epoch_ms", tag="N")),
        # A name without a time, numbers that are hardly times, and both kinds together: numbers as they are.
        ("views", [SECONDS], Hint("int", tag="N")),
        ("created_at", ["7"], Hint("int", tag="N")),
        ("created_at", [SECONDS, MILLISECONDS], Hint("int", tag="N")),
        ("created_at", ["1767268800.5"], Hint("Decimal", tag="N")),
    ],
)
def test_numbers(name: str, numbers: list[str], found: Hint) -> None:
    assert hint_of(name, [{"N": number} for number in numbers]) == found


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([{"BOOL": True}], "bool"),
        ([{"B": "AA=="}], "bytes"),
        ([{"SS": ["a"]}], "set[str]"),
        ([{"BS": ["AA=="]}], "set[bytes]"),
        ([{"NS": ["1"]}, {"NS": ["2.5"]}], "set[Decimal]"),
        ([{"L": [{"S": "a"}]}], "list[str]"),
        ([{"L": [{"S": "a"}, {"N": "1"}]}], "list[Any]"),
        ([{"M": {"a": {"L": []}}}], "dict[str, list[Any]]"),
        ([{"NULL": True}], "None"),
        ([{"NULL": True}, {"N": "1"}], "int"),
    ],
)
def test_other_values(values: list[AttributeValue], text: str) -> None:
    found = hint_of("x", values)
    assert found is not None
    assert found.text == text


def test_values_of_two_types_have_no_type() -> None:
    assert hint_of("x", [{"S": "a"}, {"N": "1"}]) is None
