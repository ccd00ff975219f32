"""Templates as expressions, against the templates themselves: which keys they match, and what parts say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import ibis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.keys import matches, part_text, unquoted
from adjoin.layouts.keys import Quoting, Template, parse_template, sortable_text

TEMPLATES = ["A#{x}", "{x}", "A#{x}#B#{y:sortable}", "#META", "{x}|{y:04}|end", "T.{x}.$[{y}]"]
KEYS = [
    "A#1", "A#", "A#1#2", "A#1#B#p501.5", "A#1#B#o", "A#%23#B#n497.57~", "#META", "META", "a|0042|end", "a|0000|end",
    "a|42|end\n", "T.x.$[y]", "T.x.$[y#]", "Txx.$[y]", "é", "", "A#1\n", "A#1#B#p500.12", "A#1#B#p502.12",
    "A#1#B#p498.1",
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Any:
    with DuckDBEngine(threads=1) as opened:
        yield opened


def table(engine: Any, values: list[str]) -> Any:
    rows = ibis.memtable({"key": values, "place": list(range(len(values)))}, schema={"key": "string", "place": "int64"})
    return engine.stage(rows)


@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize("text", TEMPLATES)
def test_they_match_the_same_keys(engine: Any, text: str, escape: bool) -> None:
    template = Template("T", parse_template(text), Quoting(frozenset("#|"), escape=escape))
    rows = table(engine, KEYS)
    columns = {part.name: part_text(template, part.name, rows.key) for part in template.parts}
    found = rows.select(rows.place, is_one=matches(template, rows.key), **columns)
    for row in engine.fetch(found):
        key = KEYS[row["place"]]
        told = template.match(key)
        assert row["is_one"] == (told is not None), key
        for name, value in (told or {}).items():
            assert template.quoting.unquote(row[name]) == value, key


@settings(max_examples=5, deadline=None)
@given(texts=st.lists(st.text(), min_size=1, max_size=20))
def test_quoted_text_is_had_back(engine: Any, texts: list[str]) -> None:
    quoting = Quoting(frozenset("#|"), escape=True)
    rows = table(engine, [quoting.quote(text) for text in texts])
    found = engine.fetch(rows.select(rows.place, text=unquoted(quoting, rows.key)))
    assert {row["place"]: row["text"] for row in found} == dict(enumerate(texts))


@settings(max_examples=5, deadline=None)
@given(numbers=st.lists(st.decimals(-(10**30), 10**30, places=4), min_size=1, max_size=20))
def test_sortable_numbers_are_had_back(engine: Any, numbers: list[Decimal]) -> None:
    template = Template("T", parse_template("N#{n:sortable}"), Quoting(frozenset("#"), escape=True))
    rows = table(engine, ["N#" + sortable_text(number) for number in numbers])
    found = engine.fetch(rows.select(rows.place, text=part_text(template, "n", rows.key)))
    assert {row["place"]: Decimal(row["text"]) for row in found} == dict(enumerate(numbers))
