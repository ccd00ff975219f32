"""A graph with fields of every type, in every place that an aggregate reads: edges, far nodes, conditions, order."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from enum import Enum, IntEnum
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from adjoin import Edge, Node
from adjoin import field as f
from adjoin.aggregates import Count, Latest, Max, Min, Sum, Top


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Address(BaseModel):
    city: str
    zip: int | None = None


WHEN = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


class Owner(Node):
    id: int
    count: Annotated[int, Count("Owns")] = 0
    total: Annotated[Decimal, Sum("Owns", field="amount")] = Decimal(0)
    rates: Annotated[float, Sum("Owns", field="rate")] = 0.0
    levels: Annotated[int, Sum("Owns", field="level")] = 0
    weights: Annotated[Decimal, Sum("Owns", field="weight")] = Decimal(0)
    least: Annotated[str | None, Min("Owns", field="text")] = None
    greatest: Annotated[str | None, Max("Owns", field="text")] = None
    day: Annotated[dt.date | None, Min("Owns", field="day")] = None
    code: Annotated[uuid.UUID | None, Latest("Owns", field="code")] = None
    codes: Annotated[list[uuid.UUID], Top("Owns", field="code", k=2)] = []
    high: Annotated[Level | None, Max("Owns", field="level")] = None
    is_ok: Annotated[bool | None, Max("Owns", field="ok")] = None
    word: Annotated[str | None, Min("Owns", field="word")] = None
    many: Annotated[list[int], Top("Owns", field="many", k=3)] = []
    either: Annotated[int | str | None, Max("Owns", field="either")] = None
    last_either: Annotated[int | str | None, Latest("Owns", field="either", by="day")] = None
    oldest: Annotated[int | None, Latest("Owns", field="slot", by="made")] = None
    rarest: Annotated[int | None, Min("Owns", field="owners")] = None
    common: Annotated[int | None, Latest("Owns", field="slot", by="owners")] = None
    shared: Annotated[int, Count("Owns", where=f("owners") >= 2)] = 0
    alone: Annotated[int, Count("Owns", where=f("owners") < 2)] = 0


class Judge(Node):
    """Counts what conditions of every sort hold for."""

    id: str
    oks: Annotated[int, Count("Judges", where=f("ok") == True)] = 0  # noqa: E712
    defaults: Annotated[int, Count("Judges", where=f("amount") == 2)] = 0
    others: Annotated[int, Count("Judges", where=f("amount") != 2)] = 0
    nothing: Annotated[int, Count("Judges", where=f("weight") == None)] = 0  # noqa: E711
    some: Annotated[int, Count("Judges", where=f("weight").exists())] = 0
    unsaid: Annotated[int, Count("Judges", where=~f("text").exists())] = 0
    bytes: Annotated[int, Count("Judges", where=f("data") == b"\x00\xff")] = 0
    later_bytes: Annotated[int, Count("Judges", where=f("data") > b"\x00")] = 0
    begun_bytes: Annotated[int, Count("Judges", where=f("data").begins_with(b"\x00"))] = 0
    tagged: Annotated[int, Count("Judges", where=f("tags").contains("a"))] = 0
    comma: Annotated[int, Count("Judges", where=f("tags").contains(","))] = 0
    listed: Annotated[int, Count("Judges", where=f("many").contains(3))] = 0
    spoken: Annotated[int, Count("Judges", where=f("text").contains("o A"))] = 0
    begun: Annotated[int, Count("Judges", where=f("text").begins_with("Jo"))] = 0
    in_town: Annotated[int, Count("Judges", where=f("address.city") == "Ulm")] = 0
    no_zip: Annotated[int, Count("Judges", where=f("address.zip") == None)] = 0  # noqa: E711
    zips: Annotated[int, Count("Judges", where=f("address.zip") > 5)] = 0
    since: Annotated[int, Count("Judges", where=f("made") >= WHEN)] = 0
    days: Annotated[int, Count("Judges", where=f("day").between(dt.date(2024, 1, 2), dt.date(2024, 1, 4)))] = 0
    red: Annotated[int, Count("Judges", where=f("colour") == Colour.RED)] = 0
    levels: Annotated[int, Count("Judges", where=f("level").is_in([Level.HIGH]))] = 0
    either: Annotated[int, Count("Judges", where=f("either") == "3")] = 0
    either_number: Annotated[int, Count("Judges", where=f("either") <= 3)] = 0
    code: Annotated[int, Count("Judges", where=f("code").is_in([uuid.UUID(int=1), uuid.UUID(int=2)]))] = 0
    rate: Annotated[int, Count("Judges", where=(f("rate") < 0) | ((f("rate") > 0.1) & ~(f("ok") == True)))] = 0  # noqa: E712


class Thing(Node):
    """Also what an edge of `Owns` has, so that each field is read at an edge and at a far node."""

    id: uuid.UUID
    owners: Annotated[int, Count("Owns")] = 0
    weight: Annotated[Decimal | None, Field(alias="Weight")] = Decimal("0.5")
    made: dt.datetime = WHEN
    text: str | None = None
    amount: Decimal = Decimal(2)
    rate: float = 0.0
    level: Level = Level.LOW
    colour: Colour = Colour.RED
    ok: bool = False
    code: uuid.UUID = uuid.UUID(int=0)
    day: dt.date = dt.date(2024, 1, 1)
    data: bytes = b""
    tags: set[str] = set()
    many: list[int] = []
    either: int | str = 0
    address: Address | None = None


class Owns(Edge[Owner, Thing], key=("slot",), order="since"):
    slot: int
    since: dt.datetime
    amount: Decimal = Decimal(2)
    rate: float = 0.0
    level: Level = Level.LOW
    ok: bool = False
    code: uuid.UUID = uuid.UUID(int=0)
    day: dt.date = dt.date(2024, 1, 1)
    text: Annotated[str | None, Field(alias="Text")] = None
    word: Literal["x", "y"] | None = None
    many: list[int] = []
    either: int | str = 0


class Judges(Edge[Judge, Thing]):
    pass


MODELS: list[type[Any]] = [Owner, Judge, Thing, Owns, Judges]
TEXTS = [None, "", "Jo", "Jo Ann", "Jo!", "jo#1", "é", "\U0001f600", "%", "y" * 601, "z " * 201, "\t"]
AMOUNTS = ["0", "-0", "2", "2.50", "-7.25", "0.000000000001", "-0.3"]
WIDE = ["1E-25", "-3.25E-23", "0.1", "-9999999", "12.3456789012345678901234567"]
IDS = [uuid.UUID(int=number) for number in range(6)]
OWNERS = list(range(-2, 4))


class Fields:
    """Random values for fields."""

    def __init__(self, chance: Random, *, wide: bool = False) -> None:
        self.chance = chance
        self._amounts = [*AMOUNTS, *WIDE] if wide else AMOUNTS

    def both(self) -> dict[str, Any]:
        pick = self.chance.choice
        return {
            "amount": Decimal(pick(self._amounts)),
            "rate": pick([0.1, -2.5, 0.0, 1e-9, 3.0]),
            "level": pick(list(Level)),
            "ok": pick([True, False]),
            "code": uuid.UUID(int=pick(range(4))),
            "day": dt.date(2024, 1, pick(range(1, 7))),
            "text": pick(TEXTS),
            "many": pick([[], [3], [1, 5, 5], [-3, 12, 33]]),
            "either": pick([3, "3", 10, "x", -1]),
        }

    def edge(self) -> dict[str, Any]:
        # Fields of keys are not changed by updates.
        return self.both() | {"word": self.chance.choice([None, "x", "y"])}

    def thing(self) -> dict[str, Any]:
        pick = self.chance.choice
        return self.both() | {
            "weight": pick([None, Decimal("0.5"), Decimal(-3)]),
            "made": WHEN + dt.timedelta(hours=pick(range(-2, 3)), microseconds=pick([0, 5])),
            "colour": pick(list(Colour)),
            "data": pick([b"", b"\x00", b"\x00\xff", b"\xff", b"abc"]),
            "tags": pick([set(), {"a"}, {"a", "b"}, {"aa", ",", '"a"'}, {"x", "y"}]),
            "address": pick([None, Address(city="Ulm"), Address(city="Bonn", zip=7), Address(city="Ulm", zip=3)]),
        }

    def since(self) -> dt.datetime:
        return WHEN + dt.timedelta(days=self.chance.randrange(3))
