"""One class for each type that can be indexed, with values of it and the order that they have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import create_model

from adjoin import Indexed, Node


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad # %"
    ODD = "öd"


class Level(IntEnum):
    UNDER = -10
    LOW = 2
    HIGH = 10


class Rank(Enum):
    FIRST = 1
    NONE = 0
    LAST = -3


def utf8(text: str) -> Any:
    return text.encode()


def itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A type: its annotation, its values, and what they sort by."""

    annotation: Any
    values: st.SearchStrategy[Any]
    order: Callable[[Any], Any] = itself

    def model(self) -> Any:
        value: Any = (Annotated[self.annotation | None, Indexed()], None)
        return create_model("Thing", __base__=Node, id=(str, ...), value=value, other=(int, 0))


TEXT = st.text(max_size=3) | st.text(alphabet='#$%&"! \t\n\0a~\x7fé\u07ff\uffff\U0001f600\U00010000', max_size=4)
_EXACT = st.decimals(-(10**6), 10**6, places=3) | st.sampled_from(
    [Decimal("1E-130"), Decimal("-1E-130"), Decimal("9.9E+125"), Decimal("-9.9E125"), Decimal("1.10"), Decimal("-0")]
)
_FLOATS = st.floats(-1e6, 1e6, allow_subnormal=False).filter(
    lambda value: value == 0 or abs(value) > 1e-100
) | st.sampled_from([0.0, -0.0, 0.1, -0.1, 1e22, 1.5e-9, -2.5])
_MOMENTS = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 30)) | st.sampled_from(
    [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 1, 1, 0, 0, 1)]
)
_ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))

KINDS: dict[str, Kind] = {
    "str": Kind(str, TEXT, utf8),
    "int": Kind(int, st.integers(-15, 15) | st.integers(-(10**37), 10**37)),
    "Decimal": Kind(Decimal, _EXACT),
    "float": Kind(float, _FLOATS),
    "date": Kind(dt.date, st.dates() | st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 9))),
    "naive datetime": Kind(dt.datetime, _MOMENTS),
    "aware datetime": Kind(dt.datetime, st.builds(lambda at, zone: at.replace(tzinfo=zone), _MOMENTS, _ZONES)),
    "text enum": Kind(Mood, st.sampled_from(Mood), lambda mood: utf8(mood.value)),
    "int enum": Kind(Level, st.sampled_from(Level)),
    "plain enum": Kind(Rank, st.sampled_from(Rank), lambda rank: rank.value),
    "UUID": Kind(UUID, st.uuids() | st.integers(0, 9).map(lambda number: UUID(int=number))),
    "bool": Kind(bool, st.booleans()),
    "path of text": Kind(
        tuple[str, ...],
        st.lists(st.sampled_from(["", "a", "a b", "ab", "#", "$", "%"]) | TEXT, max_size=3).map(tuple),
        lambda path: tuple(map(utf8, path)),
    ),
    "list of int": Kind(list[int], st.lists(st.integers(-12, 12), max_size=3)),
    "path of dates": Kind(
        tuple[dt.date, ...], st.lists(st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 4)), max_size=2).map(tuple)
    ),
}
