"""Which partitions an access pattern reads: for values, days, whole numbers, families of classes and shards."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Edge, Index, Keys, Node, Stored, field
from adjoin.fields import Predicate
from adjoin.layouts.access_patterns import MAX_PARTITIONS, AccessPattern, PatternConditions
from adjoin.schema import Schema
from tests.layouts.test_access_patterns import first_of, left_over, parts, spelled

UTC = dt.UTC


class Reading(Node):
    id: str
    at: dt.datetime
    day: dt.date = dt.date(2026, 1, 1)
    due: Annotated[dt.date | None, Stored("%d.%m.%Y")] = None
    shard: Annotated[int, Field(ge=1, le=3)] = 1
    level: int = 0
    half: Annotated[int, Field(ge=0)] = 0
    price: Decimal = Decimal(0)
    seconds: Annotated[dt.datetime | None, Stored("epoch")] = None


INDEXES: dict[str, tuple[Index, Any]] = {
    "Day": (Index("Day", "DayPK", "DaySK"), ("d#{day}", "{level:04}")),
    "Hour": (Index("Hour", "HourPK", "at"), "h#{at:%Y-%m-%dT%H}"),
    "Month": (Index("Month", "MonthPK", "MonthSK"), ("{day:%Y-%m}", "{day}#{id}")),
    "Level": (Index("Level", "LevelPK"), "l#{level}"),
    "Half": (Index("Half", "HalfPK"), "half#{half:02}"),
    "Slice": (Index("Slice", "SlicePK", "SliceSK"), ("{day}#{shard_of}", "{at}")),
    "Due": (Index("Due", "DuePK", "due"), "due"),
    "Seconds": (Index("Seconds", "SecondsPK", "seconds"), "s"),
    "Typed": (Index("Typed", "TypedPK", "TypedSK", types={"TypedPK": "N", "TypedSK": "N"}), ("{level}", "{price}")),
    "Padded": (Index("Padded", "PaddedPK", "PaddedSK"), ("x", "{level:04}|{day:%Y}")),
    "Dotted": (Index("Dotted", "DottedPK", "DottedSK"), ("x", "{day:%d.%m.%Y}#{id}")),
    "Ten": (Index("Ten", "TenPK", "TenSK"), ("x", "{at:epoch}#{id}")),
}


def pattern(name: str) -> AccessPattern:
    index, templates = INDEXES[name]
    if name == "Slice":
        templates = ("{day}#{shard}", "{at}")
        index = Index("Slice", "SlicePK", "SliceSK", shards=range(1, 4))
    layout = AdjacencyList(
        reverse=None, indexes=[index], keys={Reading: Keys("r|{id}", "r", indexes={name: templates})}
    )
    bound = layout.bind(Schema([Reading]))
    (found,) = (each for each in bound.patterns(bound.schema.node(Reading)) if each.index == name)
    return found


def asked(name: str, predicate: Predicate) -> PatternConditions | None:
    return pattern(name).conditions(parts(predicate))


def keys(found: PatternConditions | None) -> list[str] | None:
    """The partition keys, as text."""
    return None if found is None else [next(iter(value.values())) for ((_, value),) in found.partitions]


def day(number: int, month: int = 1) -> dt.date:
    return dt.date(2026, month, number)


def at(number: int, hour: int = 0, zone: dt.tzinfo | None = None) -> dt.datetime:
    return dt.datetime(2026, 1, number, hour, tzinfo=zone)


def second(number: int, microsecond: int = 0) -> dt.datetime:
    return dt.datetime(1970, 1, 1, 0, 0, number, microsecond, tzinfo=UTC)


F, MOST = field, MAX_PARTITIONS
CASES: list[tuple[str, Predicate, list[str] | None, str, str, tuple[str, ...]]] = [
    ("Day", F("day") == day(2), ["d#2026-01-02"], "", "", ("level",)),
    (
        "Day",
        F("day").between(day(2), day(4)),
        ["d#2026-01-02", "d#2026-01-03", "d#2026-01-04"],
        "",
        "day between",
        ("level",),
    ),
    (
        "Day",
        (F("day") >= day(2)) & (F("day") < day(3)),
        ["d#2026-01-02", "d#2026-01-03"],
        "",
        "day >=, day <",
        ("level",),
    ),
    (
        "Day",
        (F("day") > day(2)) & (F("day") <= day(3)),
        ["d#2026-01-02", "d#2026-01-03"],
        "",
        "day >, day <=",
        ("level",),
    ),
    # The narrowest of several ranges.
    (
        "Day",
        (F("day") >= day(1)) & (F("day") >= day(3)) & (F("day") <= day(9)) & (F("day") <= day(4)),
        ["d#2026-01-03", "d#2026-01-04"],
        "",
        "day >=, day >=, day <=, day <=",
        ("level",),
    ),
    ("Day", F("day") >= day(2), None, "", "", ()),
    ("Day", F("day") <= day(2), None, "", "", ()),
    ("Day", (F("day") >= None) & (F("day") <= day(3)), None, "", "", ()),
    ("Day", F("level") == 2, None, "", "", ()),
    ("Day", (F("day") == day(2)) & (F("level") > 3), ["d#2026-01-02"], ">= '0003\\x00'", "", ("level",)),
    (
        "Hour",
        F("at").between(at(2, 22), at(3, 1)),
        [f"h#2026-01-{each}" for each in ("02T22", "02T23", "03T00", "03T01")],
        "between '2026-01-02T22:00:00' '2026-01-03T01:00:00'",
        "",
        ("at",),
    ),
    ("Hour", F("at") == at(2, 22), ["h#2026-01-02T22"], "= '2026-01-02T22:00:00'", "", ()),
    # The month alone does not tell the day, and the sort key does.
    ("Month", F("day") == day(2), ["2026-01"], "begins_with '2026-01-02#'", "", ("id",)),
    (
        "Month",
        F("day").between(day(31), day(2, 2)),
        ["2026-01", "2026-02"],
        "between '2026-01-31' '2026-02-02$'",
        "",
        ("day", "id"),
    ),
    ("Level", F("level") == 2, ["l#2"], "", "", ()),
    ("Level", F("level").between(2, 4), ["l#2", "l#3", "l#4"], "", "level between", ()),
    ("Level", (F("level") > 2) & (F("level") < 5), ["l#3", "l#4"], "", "level >, level <", ()),
    ("Level", (F("level") >= 2) & (F("level") <= 3), ["l#2", "l#3"], "", "level >=, level <=", ()),
    ("Level", F("level") > 2, None, "", "", ()),
    ("Level", F("level") < 2, None, "", "", ()),
    ("Level", F("level").between(4, 2), ["l#4"], "", "level between", ()),
    # The most that one search may read.
    ("Level", F("level").between(1, MOST), [f"l#{each}" for each in range(1, MOST + 1)], "", "level between", ()),
    ("Level", F("level").between(0, MOST), None, "", "", ()),
    ("Level", (F("level") > None) & (F("level") < 3), None, "", "", ()),
    # A field with a least value needs a greatest one only.
    ("Half", F("half") < 2, None, "", "", ()),
    ("Due", F("due") == day(2), ["due"], "= '02.01.2026'", "", ()),
    # Texts of this format do not sort.
    ("Due", F("due") >= day(2), ["due"], "", "due >=", ()),
    ("Due", F("level") == 1, ["due"], "", "level =", ()),
    ("Seconds", F("seconds") >= second(5), ["s"], ">= '5'", "", ("seconds",)),
    # The nearest second within.
    ("Seconds", F("seconds") >= second(5, 1), ["s"], ">= '6'", "", ("seconds",)),
    ("Seconds", F("seconds") <= second(5, 1), ["s"], "<= '5'", "", ("seconds",)),
    ("Seconds", F("seconds") < second(5, 1), ["s"], "< '6'", "", ("seconds",)),
    ("Seconds", F("seconds") > second(5, 1), ["s"], "> '5'", "", ("seconds",)),
    ("Typed", F("level") == 3, ["3"], "", "", ("price",)),
    ("Typed", (F("level") == 3) & (F("price") > Decimal("1.50")), ["3"], "> '1.5'", "", ("price",)),
    (
        "Typed",
        (F("level") == 3) & F("price").between(Decimal(9), Decimal(10)),
        ["3"],
        "between '9' '10'",
        "",
        ("price",),
    ),
    ("Padded", F("level") == 3, ["x"], "begins_with '0003|'", "", ()),
    ("Padded", F("level") >= 3, ["x"], ">= '0003'", "", ("level",)),
    ("Dotted", F("day") == day(2), ["x"], "begins_with '02.01.2026#'", "day =", ("id",)),
    ("Dotted", F("day") >= day(2), ["x"], "", "day >=", ()),
    ("Ten", F("at") >= at(2, zone=UTC), ["x"], ">= '1767312000'", "at >=", ()),
    ("Ten", F("at") < at(2, zone=UTC), ["x"], "<= '1767312000$'", "at <", ()),
]


@pytest.mark.parametrize(
    ("index", "predicate", "partitions", "sort", "left", "order"),
    CASES,
    ids=[
        f"{name} {' and '.join(f'{each.field} {each.operator}' for each in parts(given))}" for name, given, *_ in CASES
    ],
)
def test_partitions_and_what_is_left(
    index: str, predicate: Predicate, partitions: list[str] | None, sort: str, left: str, order: tuple[str, ...]
) -> None:
    """The partitions, the condition on the sort key, what is left to filter, and the order of one partition."""
    found = asked(index, predicate)
    assert keys(found) == partitions
    if found is not None:
        assert (spelled(found), left_over(found, predicate), found.order) == (sort, left, order)


@pytest.mark.parametrize(
    ("index", "predicate", "equalities", "has_range", "fixed"),
    [
        ("Day", F("day") == day(2), 1, False, {"day"}),
        # One partition for each day is as narrow as one value each.
        ("Day", F("day").between(day(2), day(4)), 1, False, set()),
        ("Day", (F("day") == day(2)) & (F("level") > 3), 1, True, {"day"}),
        ("Level", F("level").between(2, 4), 0, True, set()),
        ("Level", F("level").is_in([2, 3]), 1, False, set()),
        ("Due", F("level") == 1, 0, False, {"level"}),
        ("Typed", (F("level") == 3) & (F("price") == Decimal(1)), 2, False, {"level", "price"}),
    ],
)
def test_how_narrow_a_search_is(
    index: str, predicate: Predicate, equalities: int, has_range: bool, fixed: set[str]
) -> None:
    found = asked(index, predicate)
    assert found is not None
    assert (found.equalities, found.has_range, {*found.fixed}) == (equalities, has_range, fixed)
    assert found.is_narrow is bool(equalities or has_range)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ("Day", "'Day' needs day == … or a range of dates, then level"),
        ("Hour", "'Hour' needs at == … or a range of dates, then at"),
        ("Level", "'Level' needs level == …"),
        ("Due", "'Due' needs due"),
        ("Slice", "'Slice' needs day == … or a range of dates, then at"),
    ],
)
def test_what_a_pattern_over_dates_needs(index: str, text: str) -> None:
    found = pattern(index)
    assert found.needs() == text
    assert found.has_dates is ("dates" in text)


@pytest.mark.parametrize(
    ("index", "name", "text"),
    [
        ("Due", "due", "'due', in which it is written as '%d.%m.%Y'"),
        ("Seconds", "seconds", None),
        ("Dotted", "day", "{day:%d.%m.%Y}#{id}"),
        ("Dotted", "id", None),
        ("Padded", "level", None),
        ("Padded", "day", "{level:04}|{day:%Y}"),
        ("Ten", "at", "{at:epoch}#{id}"),
        ("Typed", "price", None),
        ("Day", "at", None),
    ],
)
def test_what_a_key_has_in_place_of_an_order(index: str, name: str, text: str | None) -> None:
    assert pattern(index).other_order(name) == text


def test_the_order_of_a_key_of_several_attributes() -> None:
    index = Index("Several", "half", ("level", "day", "due", "price"))
    bound = AdjacencyList(reverse=None, indexes=[index]).bind(Schema([Reading]))
    (found,) = (each for each in bound.patterns(bound.schema.node(Reading)) if each.index == "Several")
    half = F("half") == 1
    # What has one value gives no order, and behind a format that does not sort nothing does.
    for predicate, order in (
        (half, ("level", "day")),
        (half & (F("level") == 2), ("day",)),
        (half & (F("level") == 2) & (F("day") >= day(2)), ("day",)),
        (half & (F("level") == 2) & (F("day") == day(2)), ()),
        (half & (F("level") == 2) & (F("day") == day(2)) & (F("due") == day(3)), ("price",)),
    ):
        conditions = found.conditions(parts(predicate))
        assert conditions is not None
        assert conditions.order == order, parts(predicate)


def test_each_day_is_in_each_shard() -> None:
    found = asked("Slice", F("day").between(day(2), day(3)) & (F("at") >= at(2)))
    assert keys(found) == [f"2026-01-0{number}#{shard}" for shard in (1, 2, 3) for number in (2, 3)]
    assert found is not None
    assert found.spread is not None
    assert [dict(each)["SlicePK"]["S"] for each in found.spread.at(2)] == ["2026-01-02#2", "2026-01-03#2"]
    nothing = asked("Slice", (F("day") == day(2)) & F("at").between(at(3), at(2)))
    assert nothing is not None
    assert (nothing.spread, nothing.partitions) == (None, ())


# --- what needs no comparison ------------------------------------------------------------------


class Sale(Node, key=("day", "slot", "id")):
    day: dt.date
    slot: Annotated[int, Field(ge=1, le=3)]
    id: str


class Item(Node, discriminator="kind"):
    id: str
    kind: Literal["item"] = "item"
    price: int = 0
    note: str = ""


class Book(Item):
    kind: Literal["book", "ebook"] = "book"  # type: ignore[assignment]


def test_whole_numbers_with_both_bounds_need_no_comparison() -> None:
    bound = AdjacencyList(reverse=None, keys={Sale: Keys("{day}.{slot}", "{id}")}).bind(Schema([Sale]))
    (found,) = bound.patterns(bound.schema.node(Sale))
    assert found.needs() == "the table needs day == … or a range of dates, then id"
    today = F("day") == day(2)
    for predicate, slots in (
        (today, [1, 2, 3]),
        (today & (F("slot") == 2), [2]),
        (today & (F("slot") >= 2), [2, 3]),
        (today & (F("slot") > 2), [3]),
        (today & (F("slot") <= 2), [1, 2]),
        (today & (F("slot") < 2), [1]),
        (today & (F("slot").between(0, 9)), [1, 2, 3]),
        # Nothing is there, and one partition shows it.
        (today & (F("slot") > 3), [1]),
        (today & (F("id") == "x"), [1, 2, 3]),
    ):
        conditions = found.conditions(parts(predicate))
        assert keys(conditions) == [f"2026-01-02.{slot}" for slot in slots], parts(predicate)
    assert found.conditions(parts(F("slot") == 2)) is None


@pytest.mark.parametrize("of_type", [False, True])
def test_a_class_of_a_family_needs_no_comparison_of_what_tells_it(of_type: bool) -> None:
    kinds = Index("Kinds", "T" if of_type else "kind", "price")
    bound = AdjacencyList(reverse=None, type_attribute="T", indexes=[kinds]).bind(Schema([Item, Book]))
    book, item = (
        next(each for each in bound.patterns(bound.schema.node(model)) if each.index == "Kinds")
        for model in (Book, Item)
    )
    assert book.needs() == "'Kinds' needs price"
    assert keys(book.conditions([])) == (["BOOK"] if of_type else ["book", "ebook"])
    dear = book.conditions(parts(F("price") > 3))
    assert dear is not None
    assert (spelled(dear), first_of(dear)) == ("> '3'", "price")
    if of_type:
        # The head reads the items of its whole family.
        assert item.needs() == "'Kinds' needs price"
        assert keys(item.conditions([])) == ["ITEM", "BOOK"]
    else:
        assert item.needs() == "'Kinds' needs kind == …, then price"
        assert keys(item.conditions(parts(F("kind") == "item"))) == ["item"]
        assert keys(book.conditions(parts(F("kind") == "ebook"))) == ["ebook"]


def test_the_type_in_a_sort_key_is_one_value_or_the_end_of_what_narrows() -> None:
    index = Index("Things", "price", ("T", "note"))
    bound = AdjacencyList(reverse=None, type_attribute="T", indexes=[index]).bind(Schema([Item, Book]))
    asked = parts((F("price") == 3) & (F("note") > "b"))
    found = {}
    for model in (Item, Book):
        (pattern,) = (each for each in bound.patterns(bound.schema.node(model)) if each.index == "Things")
        conditions = pattern.conditions(asked)
        assert conditions is not None
        found[model] = (spelled(conditions), conditions.order)
    # Of the head, items of two words are asked for, so nothing behind the word narrows them.
    assert found == {Book: ("= 'BOOK' and > 'b'", ("note",)), Item: ("", ())}


class Shop(Node):
    id: int


class Sells(Edge[Shop, Item]):
    since: dt.date = dt.date(2026, 1, 1)


def test_an_id_is_compared_by_its_value() -> None:
    """A text that spells a number is that number, as everywhere else where ids are given."""
    bound = AdjacencyList().bind(Schema([Shop, Item, Book, Sells]))
    table, reverse, *_ = bound.patterns(bound.schema.edge(Sells))
    for predicate, partition, sort in (
        (F("source") == 7, "SHOP#7", "begins_with 'SELLS#ITEM#'"),
        (F("source") == "7", "SHOP#7", "begins_with 'SELLS#ITEM#'"),
        ((F("source.id") == 7) & (F("target") == "b"), "SHOP#7", "= 'SELLS#ITEM#b'"),
        ((F("source") == 7) & (F("target") > "b"), "SHOP#7", "between 'SELLS#ITEM#b\\x00' 'SELLS#ITEM$'"),
    ):
        found = table.conditions(parts(predicate))
        assert found is not None
        assert (keys(found), spelled(found)) == ([partition], sort)
    back = reverse.conditions(parts((F("target") == "b") & (F("source") == 7)))
    assert back is not None
    assert (keys(back), spelled(back)) == (["ITEM#b"], "= 'SELLS#SHOP#7'")
    assert len(back.answered) == 2
