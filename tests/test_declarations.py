"""Declarations that cannot be kept true are refused when the graph opens, with what to do instead."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from adjoin import CommonNeighbours, Components, Count, Edge, Graph, Latest, Max, Node, PageRank, Sum, Top, field
from adjoin.errors import AdjoinError, CyclicRule, InvalidModel


class Device(BaseModel):
    name: str = ""


class Mood(Enum):
    GLAD = "glad"


def opened(hint: Any, default: Any) -> None:
    """Opens a graph whose users have one field of this type."""

    class User(Node):
        id: str
        shown: hint = default

    class Song(Node):
        id: str
        title: str = ""
        length: Decimal = Decimal(1)

    class Plays(Edge[User, Song]):
        number: int = 0
        day: date | None = None
        tags: list[str] = []
        lasted: timedelta = timedelta()
        raw: bytes = b"-"
        device: Device = Device()
        mood: Mood = Mood.GLAD

    class Follows(Edge[User, User]):
        number: int = 0

    Graph(":memory:", [User, Song, Plays, Follows]).close()


@pytest.mark.parametrize(
    ("hint", "default", "message"),
    [
        (Annotated[str, Count("Plays")], "", "0 without edges"),
        (Annotated[str | None, Count("Plays")], None, "cannot hold int"),
        (Annotated[bool, Count("Plays")], False, "0 without edges"),
        (Annotated[int, Count("Plays")], 5, "0 without edges, but its default is 5"),
        (Annotated[int, Sum("Plays", field="title")], 0, "Song.title, which is str; name a"),
        (Annotated[int, Sum("Plays", field="length")], 0, "cannot hold Decimal"),
        (Annotated[int, Sum("Plays", field="tags")], 0, "several values"),
        (Annotated[list[str] | None, Max("Plays", field="tags")], None, "several values"),
        (Annotated[int, Max("Follows", field="number", recursive=True)], 0, "would read its default 0 as a value"),
        (Annotated[int | None, Max("Plays", field="title")], None, "cannot hold str"),
        (Annotated[str | None, Latest("Plays", field="title", by="tags")], None, "several values"),
        (Annotated[timedelta | None, Max("Plays", field="lasted")], None, "Plays.lasted is timedelta, whose"),
        (
            Annotated[bytes | None, Max("Plays", field="raw")],
            None,
            "Plays.raw is bytes, whose stored values have no order",
        ),
        (Annotated[bytes | None, Latest("Plays", field="raw", by="day")], None, "Plays.raw is bytes"),
        (Annotated[str | None, Latest("Plays", field="title", by="lasted")], None, "Plays.lasted is timedelta"),
        (Annotated[str | None, Latest("Plays", field="title", by="device")], None, "Plays.device is Device"),
        (Annotated[list[Device], Top("Plays", field="device")], [], "Plays.device is Device"),
        (Annotated[timedelta, Sum("Plays", field="lasted")], 0, "Plays.lasted, which is timedelta; name a"),
        (Annotated[int, Sum("Plays", field="mood")], 0, "Plays.mood, which is Mood; name a"),
        (Annotated[int, Sum("Plays", "number")], 0, "it is a field of Plays; pass field='number'"),
        (Annotated[list[str], Top("Plays", "title", k=3)], [], "it is a field of Song; pass field='title'"),
        (Annotated[str | None, Latest("Plays", field="title")], None, "pass by=, or give the edge an order"),
        (Annotated[int | None, Top("Plays", field="number")], None, "make it a list"),
        (Annotated[list[int], Top("Follows", field="number", recursive=True)], [1], "make its default \\[\\]"),
        (Annotated[list[int], Top("Follows", "Plays", field="number", k=91)], [], "91 values .* take a smaller k"),
        (Annotated[int, Count("Plays"), Count("Follows")], 0, "two declarations"),
        (Annotated[int, Count("Played")], 0, "has no edge 'Played'; did you mean 'Plays'"),
        (Annotated[int, Count("Plays", direction="into")], 0, "none of its edges arrives"),
        (Annotated[int, Count("Plays", where=field("number") == "open")], 0, "where= of USER.shown: "),
        (Annotated[int, Count("Plays", where=field("number").between(5, 1))], 0, "where= of USER.shown: .*upper bound"),
        (Annotated[int, PageRank("Follows")], 0, "float or a Decimal"),
        (Annotated[int, Components("Follows")], 0, "cannot hold an id"),
        (Annotated[str, CommonNeighbours("Follows")], "", "make it a list"),
    ],
)
def test_a_field_that_cannot_hold_what_it_declares_is_refused(hint: Any, default: Any, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        opened(hint, default)


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (Annotated[int | None, Count("Plays")], None),
        (Annotated[float, Sum("Plays", field="length")], 0.0),
        (Annotated[date | None, Max("Plays", field="day")], None),
        (Annotated[int, Max("Plays", field="number")], 0),
        (Annotated[list[int], Top("Plays", field="number")], [1]),
        (Annotated[Decimal | None, Max("Plays", field="number")], None),
        (Annotated[str | None, Latest("Plays", field="title", by="day")], None),
        (Annotated[date | None, Latest("Plays", field="day")], None),
        (Annotated[list[int], Top("Plays", field="number", k=500)], []),
        (Annotated[list[int], Top("Follows", "Plays", field="number", k=90)], []),
        (Annotated[Mood | None, Max("Plays", field="mood")], None),
        (Annotated[tuple[str, ...], Top("Plays", field="tags", k=3)], ()),
        (Annotated[int, Count("Follows", recursive=True)], 0),
        (Annotated[int, Count("Follows", "Plays")], 0),
    ],
)
def test_fields_that_can_are_not(hint: Any, default: Any) -> None:
    opened(hint, default)


def test_aggregates_that_are_made_of_each_other_are_refused() -> None:
    """Of a node that counts itself while it counts nothing, no value is true, and changes would never end."""
    with pytest.raises(CyclicRule, match=r"USER\.shown → USER\.shown"):
        opened(Annotated[int, Count("Follows", where=field("shown") == 0)], 0)

    class Team(Node):
        id: str
        points: Annotated[int, Sum("Plays", field="share")] = 0

    class Player(Node):
        id: str
        share: Annotated[int, Sum("Plays", field="points")] = 0

    class Plays(Edge[Team, Player]):
        pass

    with pytest.raises(CyclicRule, match=r"TEAM\.points → PLAYER\.share → TEAM\.points"):
        Graph(":memory:", [Team, Player, Plays])


@pytest.mark.parametrize(
    "declare",
    [
        lambda: PageRank("Follows", damping=2),
        lambda: PageRank("Follows", iterations=0),
        lambda: CommonNeighbours("Follows", k=0),
        lambda: Count("Plays", where=True),  # type: ignore[arg-type]
        lambda: Top("Plays", field="number", k=True),
    ],
)
def test_options_that_mean_nothing_are_refused(declare: Any) -> None:
    with pytest.raises(AdjoinError):
        declare()
