"""Formats: each value has one text, and each text one value; what a format does not hold is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjoin import InvalidModel, InvalidValue
from adjoin.formats import Format, format_of

UTC = dt.UTC
BERLIN = ZoneInfo("Europe/Berlin")


def made(spec: str, plain: type, type: str | None = None) -> Format:
    return format_of("Thing.at", spec, type, plain)


DATETIMES = [
    ("%Y-%m-%dT%H:%M:%SZ", None),
    ("%Y-%m-%dT%H:%M:%S.%3fZ", None),
    ("%Y-%m-%dT%H:%M:%S.%f+00:00", None),
    ("%Y-%m-%d %H:%M:%S", None),
    ("%d.%m.%Y %H:%M", None),
    ("100%% %Y", None),
    ("%Y%m%d", "N"),
    ("%Y%m%d%H%M%S%3f", "N"),
    ("epoch", None),
    ("epoch_ms", None),
    ("epoch", "S"),
    ("epoch_ms", "S"),
]
DATES = [("%Y-%m-%d", None), ("%d.%m.%Y", None), ("%Y%m%d", "N"), ("%Y-%m", None), ("%m/%Y", None)]


@pytest.mark.parametrize(
    ("format", "value", "stored"),
    [
        (
            made("%Y-%m-%dT%H:%M:%SZ", dt.datetime),
            dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
            {"S": "2024-01-02T03:04:05Z"},
        ),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), dt.datetime(24, 1, 2, tzinfo=UTC), {"S": "0024-01-02T00:00:00Z"}),
        (
            made("%Y-%m-%dT%H:%M:%S.%3fZ", dt.datetime),
            dt.datetime(2024, 1, 2, 3, 4, 5, 67000, tzinfo=UTC),
            {"S": "2024-01-02T03:04:05.067Z"},
        ),
        (made("%Y-%m-%d %H:%M", dt.datetime), dt.datetime(2024, 1, 2, 3, 4), {"S": "2024-01-02 03:04"}),
        (made("epoch", dt.datetime), dt.datetime(2024, 1, 1, tzinfo=UTC), {"N": "1704067200"}),
        (made("epoch", dt.datetime), dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), {"N": "-1"}),
        (made("epoch", dt.datetime), dt.datetime(1970, 1, 1, tzinfo=UTC), {"N": "0"}),
        (made("epoch", dt.datetime, "S"), dt.datetime(2024, 1, 1, tzinfo=UTC), {"S": "1704067200"}),
        (made("epoch_ms", dt.datetime), dt.datetime(2024, 1, 1, 0, 0, 0, 5000, tzinfo=UTC), {"N": "1704067200005"}),
        (made("%Y%m%d", dt.date, "N"), dt.date(2024, 1, 31), {"N": "20240131"}),
        (made("%Y%m%d", dt.date, "N"), dt.date(24, 1, 31), {"N": "240131"}),
        (made("%Y%m%d", dt.date), dt.date(2024, 1, 31), {"S": "20240131"}),
        (made("%d.%m.%Y", dt.date), dt.date(2024, 1, 31), {"S": "31.01.2024"}),
        (made("05d", int), 42, {"S": "00042"}),
        (made("d", int), -42, {"S": "-42"}),
        (made(".2f", Decimal), Decimal("19.9"), {"S": "19.90"}),
        (made("08.2f", Decimal), Decimal("19.9"), {"S": "00019.90"}),
        (made("f", Decimal), Decimal("19.90"), {"S": "19.9"}),
    ],
)
def test_how_values_are_stored(format: Format, value: Any, stored: Any) -> None:
    assert format.encode(value) == stored
    assert format.decode(stored) == value


@pytest.mark.parametrize(
    ("format", "stored"),
    [
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"S": "2024-01-02T03:04:05.000Z"}),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"S": "2024-01-02T03:04:05"}),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"S": "2024-02-30T03:04:05Z"}),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"S": "0000-01-01T00:00:00Z"}),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"S": "٢٠٢٤-01-02T03:04:05Z"}),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), {"N": "1704067200"}),
        (made("epoch", dt.datetime), {"S": "1704067200"}),
        (made("epoch", dt.datetime), {"N": "1704067200.5"}),
        (made("epoch", dt.datetime), {"N": "99999999999999"}),
        (made("epoch", dt.datetime, "S"), {"S": "170406720"}),
        (made("epoch", dt.datetime, "S"), {"S": "-170406720"}),
        (made("%Y%m%d", dt.date, "N"), {"N": "20241301"}),
        (made("05d", int), {"S": "42"}),
        (made("05d", int), {"S": "0042x"}),
        (made("d", int), {"S": "042"}),
        (made(".2f", Decimal), {"S": "19.9"}),
        (made("f", Decimal), {"S": "NaN"}),
    ],
)
def test_other_texts_are_refused(format: Format, stored: Any) -> None:
    with pytest.raises(ValueError, match=r"is not written as|is stored as"):
        format.decode(stored)


@pytest.mark.parametrize(
    ("format", "value", "reason"),
    [
        (
            made("%Y-%m-%dT%H:%M:%SZ", dt.datetime),
            dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            "finer than the second",
        ),
        (made("epoch", dt.datetime), dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "finer than the second"),
        (made("epoch_ms", dt.datetime), dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "finer than the millisecond"),
        (made("%Y-%m", dt.date), dt.date(2024, 1, 2), "finer than the month"),
        (made("%Y-%m-%dT%H:%M:%SZ", dt.datetime), dt.datetime(2024, 1, 2), "has no time zone"),
        (made("epoch", dt.datetime), dt.datetime(2024, 1, 2), "has no time zone"),
        (made("%Y-%m-%d %H:%M:%S", dt.datetime), dt.datetime(2024, 1, 2, tzinfo=UTC), "has a time zone"),
        (made("epoch", dt.datetime, "S"), dt.datetime(1980, 1, 2, tzinfo=UTC), "only numbers of 10 digits"),
        (made("epoch", dt.datetime, "S"), dt.datetime(1900, 1, 2, tzinfo=UTC), "only numbers of 10 digits"),
        (made("05d", int), -1, "negative, or has too many digits"),
        (made("05d", int), 100_000, "negative, or has too many digits"),
        (made(".2f", Decimal), Decimal("0.001"), "more places"),
    ],
)
def test_values_that_a_format_does_not_hold(format: Format, value: Any, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        format.encode(value)


def test_a_moment_is_written_in_utc_whatever_its_zone() -> None:
    format = made("%Y-%m-%dT%H:%M:%SZ", dt.datetime)
    before, after = (dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1))
    assert [format.text(each) for each in (before, after)] == ["2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z"]
    epoch = made("epoch", dt.datetime)
    assert int(epoch.text(after)) - int(epoch.text(before)) == 3600


@pytest.mark.parametrize(
    ("spec", "type", "plain"),
    [
        ("%H:%M", None, dt.datetime),
        ("%Y-%b-%d", None, dt.datetime),
        ("%Y-%Y", None, dt.datetime),
        ("%Y-%d", None, dt.date),
        ("%Y-%m-%d %H", None, dt.date),
        ("%d%m%Y", "N", dt.date),
        ("%Y-%m-%d", "N", dt.date),
        ("epoch", None, dt.date),
        ("epoch", None, int),
        ("2024", None, dt.datetime),
        ("05d", "N", int),
        ("05d", None, Decimal),
        (".2f", None, int),
        ("", None, int),
        ("x", None, str),
        ("05d", "B", int),
        (5, None, int),
        ("%Y", None, None),
    ],
)
def test_formats_that_do_not_exist(spec: Any, type: Any, plain: Any) -> None:
    with pytest.raises(InvalidModel, match=r"Thing\.at"):
        format_of("Thing.at", spec, type, plain)


MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9998, 12, 30))


@given(MOMENTS, MOMENTS, st.sampled_from(DATETIMES))
def test_moments_come_back_in_order(one: dt.datetime, other: dt.datetime, spec: tuple[str, str | None]) -> None:
    format = made(spec[0], dt.datetime, spec[1])
    if format.sample.tzinfo is not None:
        one, other = one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)
    _check(format, one, other)


@given(st.dates(), st.dates(), st.sampled_from(DATES))
def test_dates_come_back_in_order(one: dt.date, other: dt.date, spec: tuple[str, str | None]) -> None:
    _check(made(spec[0], dt.date, spec[1]), one, other)


@given(st.integers(), st.integers(), st.sampled_from(["05d", "d", "012"]))
def test_whole_numbers_come_back_in_order(one: int, other: int, spec: str) -> None:
    _check(made(spec, int), one, other)


DECIMALS = st.decimals(-(10**9), 10**9, places=3)


@given(DECIMALS, DECIMALS, st.sampled_from(["f", ".2f", "012.2f", "020.5f"]))
def test_decimals_come_back_in_order(one: Decimal, other: Decimal, spec: str) -> None:
    _check(made(spec, Decimal), one, other)


def _check(format: Format, one: Any, other: Any) -> None:
    texts = []
    for value in (one, other):
        low, high = format.floor(value), format.ceil(value)
        assert low <= value <= high
        assert (low == value) == (high == value)
        try:
            stored = format.encode(low)
        except InvalidValue:
            assume(False)
        assert format.decode(stored) == low
        texts.append(int(stored["N"]) if "N" in stored else stored["S"])
    if format.sorts:
        assert (texts[0] < texts[1]) == (format.floor(one) < format.floor(other))
