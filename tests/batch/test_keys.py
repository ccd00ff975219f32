"""Templates as expressions, against the templates themselves: which keys they match, and what parts say."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import ibis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.keys import matches, part_text, unquoted
from adjoin.layouts.key_values import date_transform, sortable_text, transform
from adjoin.layouts.keys import Part, Quoting, Template, parse_template
from tests.models import Colour

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


SPECS: list[tuple[str, Any]] = [
    ("", str), ("", int), ("", Decimal), ("", UUID), ("", dt.date), ("", dt.datetime), ("", Colour), ("sortable", int),
    ("sortable", Decimal), ("04", int), ("sortable", None),
]  # fmt: skip
SPELLED = [
    "a", "", "%41", "%23", "%7C", "%7c", "%2", "%", "a b", "\x00", "%00", "\x1f!", "é", "1", "01", "-1", "-0", "+1",
    "1.5", "1.50", "0.1", "-0.1", ".1", "1e3", "10", "o", "p501.1", "p501.10", "p501.01", "n498.8~", "n498.89~",
    "p999.1", "p372.1", "p370.1", "p626.1", "p627.1", "p502.15", "p501.15", "0004", "4", "00004", "0000",
    "2024-02-01", "2024-2-1", "2024-02-30", "2024-13-01", "2024-02-01T10:00:00.000000Z", "2024-02-01T10:00:00Z",
    "2024-02-01T10:00:00.000000", "red", "RED", "blue%20", "2024-02-30T10:00:00.000000Z",
    "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
    "6f9619ff8b86d011b42d00cf4fc964ff",
]  # fmt: skip


@pytest.mark.parametrize("is_tail", [True, False])
@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize(("spec", "plain"), SPECS)
@pytest.mark.parametrize("name", ["id", "x"])
def test_only_the_one_spelling_of_a_value_matches(
    engine: Any, spec: str, plain: Any, name: str, escape: bool, is_tail: bool
) -> None:
    pieces: list[Any] = ["T#", Part(name, transform(spec), plain), *([] if is_tail else ["|end"])]
    template = Template("T", pieces, Quoting(frozenset("#|"), escape=escape))
    keys = ["T#" + text + ("" if is_tail else "|end") for text in SPELLED]
    rows = table(engine, keys)
    found = engine.fetch(rows.select(rows.place, is_one=matches(template, rows.key)))
    assert {keys[row["place"]] for row in found if row["is_one"]} == {
        key for key in keys if template.match(key) is not None
    }


@pytest.mark.parametrize(
    ("least", "most"), [(1, None), (None, 0), (-1, 4), (10**30, None), (None, -(10**30)), (-(10**30), 10**30)]
)
@pytest.mark.parametrize(("spec", "type"), [("", "S"), ("04", "S"), ("sortable", "S"), ("", "N")])
def test_numbers_outside_of_bounds_do_not_match(engine: Any, spec: str, type: Any, least: Any, most: Any) -> None:
    part = Part("id", transform(spec), int, is_id=True, least=least, most=most)
    lead = "" if type == "N" else "T#"
    template = Template("T", [lead, part], Quoting(frozenset("#"), escape=True), type)
    numbers = [-(10**39), -(10**25), -2, -1, 0, 1, 4, 5, 10**25, 10**39]
    spell = {"04": "{:04}".format, "sortable": sortable_text}.get(spec, str)
    keys = [lead + spell(number) for number in numbers if spec != "04" or 0 <= number < 10_000]
    rows = table(engine, keys)
    found = engine.fetch(rows.select(rows.place, is_one=matches(template, rows.key)))
    told = {key for key in keys if template.match(key) is not None}
    assert told == {
        lead + spell(number)
        for number in numbers
        if lead + spell(number) in keys and (least is None or number >= least) and (most is None or number <= most)
    }
    assert {keys[row["place"]] for row in found if row["is_one"]} == told


@pytest.mark.parametrize(("spec", "plain"), SPECS)
def test_values_whose_own_characters_are_quoted_match(engine: Any, spec: str, plain: Any) -> None:
    """The ends of parts are all characters that numbers, dates and UUIDs have beside letters and digits, and some."""
    quoting = Quoting(frozenset("#|-.:~TZ0af"), escape=True)
    template = Template("T", ["K#", Part("id", transform(spec), plain)], quoting)
    texts = [*(quoting.quote(text) for text in SPELLED), *SPELLED]
    keys = ["K#" + text for text in dict.fromkeys(texts)]
    rows = table(engine, keys)
    found = engine.fetch(rows.select(rows.place, is_one=matches(template, rows.key)))
    expected = {key for key in keys if template.match(key) is not None}
    assert expected
    assert {keys[row["place"]] for row in found if row["is_one"]} == expected


@pytest.mark.parametrize(
    ("spec", "plain"), [("", UUID), ("", dt.date), ("", dt.datetime), ("%Y-%m-%d", dt.date), ("%d:%m-%Y", dt.date)]
)
@pytest.mark.parametrize("is_last", [True, False])
def test_separators_at_fixed_places_of_a_value(engine: Any, spec: str, plain: Any, is_last: bool) -> None:
    given = date_transform(transform(spec), plain, is_exact=True) if spec else transform(spec)
    pieces: list[Any] = [Part("x", given, plain), "-", Part("y", transform(""), str)]
    template = Template("T", pieces[::-1] if is_last else pieces, Quoting(frozenset("#-:T."), escape=False))
    texts = [*SPELLED, "01:02-2024", "31:02-2024", "2024-02-01-"]
    keys = [f"{y}-{text}" if is_last else f"{text}-{y}" for text in texts for y in ("y", "", "y-", "2024-02")]
    rows = table(engine, keys)
    columns = {name: part_text(template, name, rows.key) for name in ("x", "y")}
    found = engine.fetch(rows.select(rows.place, is_one=matches(template, rows.key), **columns))
    expected = {key: told for key in keys if (told := template.match(key)) is not None}
    assert expected
    assert {keys[row["place"]]: {"x": row["x"], "y": row["y"]} for row in found if row["is_one"]} == expected


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


MOMENTS = [
    "2024-02-29T10:00:00Z", "2023-02-29T10:00:00Z", "2024-02-29T10:00:00", "2024-02-29 10:00:00.123", "29.02.2024",
    "2024%2D02-29T10:00:00Z", "0024-01-01T00:00:00Z", "1709200800", "0709200800", "9999999999", "999999999",
    "1709200800123", "4102444799999", "-709200800", "20240229", "2024-02-29T24:00:00Z", "2024-02-29%2010:00:00.123",
]  # fmt: skip
FORMATS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%3f", "epoch", "epoch_ms"]


@pytest.mark.parametrize("escape", [True, False])
@pytest.mark.parametrize(
    ("spec", "plain"), [*((spec, dt.datetime) for spec in FORMATS), ("%d.%m.%Y", dt.date), ("%Y%m%d", dt.date)]
)
def test_dates_in_formats(engine: Any, spec: str, plain: type, escape: bool) -> None:
    exact = date_transform(transform(spec), plain, is_exact=True)
    template = Template("T", ["T#", Part("at", exact, plain, is_id=True)], Quoting(frozenset("#|"), escape=escape))
    first = dt.datetime(2001, 9, 10, tzinfo=dt.UTC)
    days = [first + dt.timedelta(days=number * 97, seconds=number * 1009) for number in range(300)]
    values = [
        day.date() if plain is dt.date else day if "Z" in spec or "epoch" in spec else day.replace(tzinfo=None)
        for day in days
    ]
    keys = [*(f"T#{text}" for text in MOMENTS), *(template.render({"at": value}) for value in values)]
    rows = table(engine, keys)
    found = engine.fetch(
        rows.select(rows.place, is_one=matches(template, rows.key), text=part_text(template, "at", rows.key))
    )
    told = {row["place"]: template.quoting.unquote(row["text"]) for row in found if row["is_one"]}
    assert told == {place: match["at"] for place, key in enumerate(keys) if (match := template.match(key)) is not None}
    assert len(told) > len(values)
