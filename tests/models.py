"""Classes that several test modules share: a small school with every kind of edge."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from adjoin import Edge, Node


class Student(Node):
    id: str
    name: str
    year_level: int = 1
    version: int = 0


class Course(Node):
    id: str
    name: str = ""
    credits: int = 0


class Enrollment(Edge[Student, Course]):
    grade: str = ""
    points: int = 0


class Attendance(Edge[Student, Course], order="day"):
    day: dt.date
    minutes: int = 0


class Exam(Edge[Student, Course], key=("term",)):
    term: str
    mark: Decimal = Decimal(0)


class Friendship(Edge[Student, Student], symmetric=True):
    since: int = 0


SCHOOL: list[type[Any]] = [Student, Course, Enrollment, Attendance, Exam, Friendship]


ANN = Student(id="ann", name="Ann")
BOB = Student(id="bob", name="Bob", year_level=2)
MATHS = Course(id="maths", name="Maths", credits=5)
ART = Course(id="art", name="Art", credits=2)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Rank(Enum):
    LOW = 1
    HIGH = 2


class Address(BaseModel, populate_by_name=True):
    street: Annotated[str, Field(alias="Street")]
    numbers: list[int] = []


class Everything(Node):
    """A field of every type that DESIGN promises to bring back exactly."""

    id: UUID
    text: str
    whole: int
    exact: Decimal
    approximate: float
    flag: bool
    raw: bytes
    nothing: None = None
    maybe: int | None = 7
    moment: dt.datetime
    day: dt.date
    hour: dt.time
    span: dt.timedelta
    colour: Colour
    rank: Rank
    address: Address
    elements: list[Decimal]
    pair: tuple[int, str]
    table: dict[str, list[bytes]]
    by_number: dict[int, str]
    words: set[str]
    numbers: frozenset[int]
    blobs: set[bytes]
    days: set[dt.date]
    optional_words: set[str] | None = None
    anything: Any = None
