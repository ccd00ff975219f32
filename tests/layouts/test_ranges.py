"""Stretches of a partition: what a range, a beginning and fixed parts ask of the sort key."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, field_validator

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidItem,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    Ref,
    Stored,
    UnknownField,
    field,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.requests import Put
from adjoin.schema import Schema


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    pass


class Ranked(Edge[Person, Person], order="rank"):
    rank: Decimal = Decimal(0)


class Met(Edge[Person, Person], key=("year", "month")):
    year: int = 0
    month: int = 0


MODELS: list[Any] = [Person, Knows, Ranked, Met]


@cache
def bare() -> BoundLayout:
    return AdjacencyList(keys={Knows: Keys(sort="{target.id}")}).bind(Schema([Person, Knows]))


def texts(low: str | None, high: str | None) -> tuple[str, list[str]] | None:
    """What is asked between two values where the sort key is the target and nothing before it."""
    asked = bare().out(bare().schema.edge(Knows), "a").between(low, high)
    return None if asked is None else (asked.operator, [operand["S"] for operand in asked.operands])


def test_a_range_of_a_key_that_begins_with_a_field() -> None:
    assert texts("b", None) == (">=", ["b"])
    operator, (last,) = texts(None, "m") or ("", [""])
    assert operator == "<="
    assert "m" <= last < "m0"
    operator, (first, last) = texts("b", "m") or ("", ["", ""])
    assert (operator, first) == ("between", "b")
    assert texts(None, None) is None


def test_a_range_of_one_value_holds_it() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many(Ranked(source="a", target=str(number), rank=Decimal(number)) for number in range(5))
        ranks = [edge.rank for edge in g.out("a", Ranked).between(2, 2)]
        assert ranks == [2]
        assert [edge.rank for edge in g.out("a", Ranked).between(None, None)] == list(range(5))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda g: g.out("a", Ranked).between(3, 2), "there is nothing between 3 and 2; give the lower value first"),
        (lambda g: g.out("a", Ranked).begins_with("1"), "Ranked.rank is encoded in the key so that it sorts"),
        (
            lambda g: g.out("a", Met).within(year=1, month=2, target="b").between("b", "c"),
            "already has a value; between",
        ),
        (lambda g: g.out("a", Met).within(target="b", month=2), "narrows from the left only: give 'year' too"),
    ],
)
def test_what_no_stretch_is(ask: Any, words: str) -> None:
    with Graph(":memory:", MODELS) as g, pytest.raises(InvalidValue, match=words):
        ask(g)


def test_an_index_without_a_sort_key_has_no_stretches() -> None:
    layout = AdjacencyList(reverse=Index("Reverse", "GSI1PK"))
    with Graph(":memory:", [Person, Knows], layout) as g:
        g.put(Knows(source="a", target="b"))
        assert [edge.source for edge in g.into("b", Knows)] == ["a"]
        with pytest.raises(InvalidValue, match="between needs a sort key to work on, and Reverse has none"):
            g.into("b", Knows).between("a", "b")


# --- values in keys ----------------------------------------------------------------------------


class Word(Enum):
    PLAIN = "plain"
    ACCENT = "été"
    LIST = ("no", "key")


class Said(Node):
    id: Word


def test_members_that_can_be_no_key_are_told_when_they_are_used() -> None:
    with Graph(":memory:", [Said]) as g:
        for word in (Word.PLAIN, Word.ACCENT):
            g.put(Said(id=word))
            assert g.get(Said, word) == Said(id=word)
        with pytest.raises((InvalidKey, InvalidValue)):
            g.put(Said(id=Word.LIST))


def test_a_number_of_too_many_digits_has_no_order() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Ranked(source="a", target="b", rank=Decimal("9" * 38)))
        with pytest.raises((InvalidKey, InvalidValue), match="38"):
            g.put(Ranked(source="a", target="c", rank=Decimal("9" * 39)))
        assert [edge.target for edge in g.out("a", Ranked)] == ["b"]


# --- fields that are found by, and fields that are refused -------------------------------------


class Thing(Node):
    id: str
    size: Annotated[int, Indexed()] = 0
    name: str = ""


def test_a_comparison_holds_for_its_own_value_or_not() -> None:
    with Graph(":memory:", [Thing]) as g:
        g.put_many(Thing(id=str(size), size=size) for size in range(-2, 12))
        size = field("size")
        for condition, expected in (
            (size < 2, range(-2, 2)),
            (size <= 2, range(-2, 3)),
            (size > 2, range(3, 12)),
            (size >= 2, range(2, 12)),
            (size.between(2, 10), range(2, 11)),
            (size == 2, [2]),
            ((size != 2) & (size < 4), [-2, -1, 0, 1, 3]),
            (size.exists() & (size < 0), [-2, -1]),
            (size.is_in([2, 10, 99]), [2, 10]),
        ):
            assert [thing.size for thing in g.find(Thing, condition)] == list(expected), condition
        # What is not in the index, and what is not beside each other there, it cannot find.
        for condition in (size != 2, size.is_in([None, 2]), size.is_in([None])):
            with pytest.raises(InvalidKey, match="an index finds Thing by"):
                g.find(Thing, condition)
        with pytest.raises(UnknownField, match=r"'sise'.*'size'"):
            g.find(Thing, field("sise") == 1)
        with pytest.raises(InvalidKey, match=r"Thing.name is not indexed \(indexed fields: 'size'\)"):
            g.find(Thing, field("name") == "a")


class Loose(Node):
    model_config = ConfigDict(extra="allow")
    id: str
    name: str = ""


def test_an_extra_value_cannot_take_the_name_of_a_key() -> None:
    with Graph(":memory:", [Loose]) as g:
        loose: Any = Loose(id="a", more=[1])
        g.put(loose)
        assert g.get(Loose, "a") == loose
        for name in ("PK", "SK", "adjoin:life"):
            with pytest.raises(
                InvalidValue, match=f"Loose has an extra value '{name}', a name that its keys or fields"
            ):
                g.put(Loose(id="b", **{name: "x"}))


class Strict(Node):
    id: str
    size: int = 0

    @field_validator("size")
    @classmethod
    def _small(cls, size: int) -> int:
        if size > 9:
            raise LookupError("it is on no shelf")
        return size


def test_whatever_a_validator_raises_the_item_is_what_does_not_fit() -> None:
    with Graph(":memory:", [Strict]) as g:
        g._store.execute((Put("adjoin", {"PK": {"S": "STRICT#a"}, "SK": {"S": "#META"}, "size": {"N": "10"}}),))
        with pytest.raises(InvalidItem, match=r"is not a valid Strict.*it is on no shelf"):
            g.get(Strict, "a")


class Book(Node):
    id: str


class Film(Node):
    id: str


class Rated(Edge[Person, Book | Film], key=("year",)):
    year: int = 0


def test_a_part_of_an_id_at_an_end_of_several_classes_is_refused() -> None:
    with pytest.raises(
        InvalidModel,
        match=r"^in the key template 'R#\{target.id\}' of Rated, \{target.id\} is part of an id, but the target is "
        r"Book \| Film, and their ids differ; use \{target\}, the key of the node$",
    ):
        Graph(":memory:", [Person, Book, Film, Rated], AdjacencyList(keys={Rated: Keys(sort="R#{target.id}")}))


def test_a_range_within_one_of_several_classes_at_an_end() -> None:
    """What leads to a node of the other class is left out, also where both have the same id."""
    layout = AdjacencyList(keys={Rated: Keys(sort="RATED#{target}#{year}")})
    with Graph(":memory:", [Person, Book, Film, Rated], layout) as g:
        edges = [Rated(source="a", target=Ref(model, "1"), year=year) for model in (Book, Film) for year in (1, 2)]
        g.put_many(edges)
        assert list(g.out("a", Rated).within(target=Ref(Film, "1"))) == edges[2:]
        assert list(g.out("a", Rated).within(target=Ref(Book, "1"), year=2)) == [edges[1]]
        with pytest.raises(UnknownField):
            g.out("a", Rated).within(parent="b")


class Seen(Edge[Person, Film]):
    at: Annotated[dt.datetime, Stored("epoch")]


class Noted(Edge[Person, Film]):
    day: Annotated[dt.date, Stored("%d.%m.%Y")]


def at(second: int, microsecond: int = 0) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 0, 0, second, microsecond, dt.UTC)


def test_ranges_of_a_sort_key_that_is_a_field_as_it_is_stored() -> None:
    """The ends of a range may be finer than what is stored."""
    layout = AdjacencyList(
        reverse=None, indexes=[Index("Into", "GPK", "at")], keys={Seen: Keys(indexes={"Into": "{target}"})}
    )
    with Graph(":memory:", [Person, Film, Seen], layout) as g:
        edges = [Seen(source=f"p{second}", target="f", at=at(second)) for second in range(5)]
        g.put_many(edges)
        query = g.into("f", Seen)
        assert list(query.between(at(1), at(3))) == edges[1:4]
        assert list(query.between(at(1, 5), at(3, 5))) == edges[2:4]
        assert list(query.between(None, at(1))) == edges[:2]
        assert list(query.between(at(3), None)) == edges[3:]
        assert list(query.between(None, None)) == edges
        assert list(query.within(at=at(2))) == [edges[2]]
        with pytest.raises(InvalidValue, match="give the lower value first"):
            query.between(at(3), at(1))
        with pytest.raises(InvalidValue, match="the sort key 'at' already has a value; between has nothing to work on"):
            query.within(at=at(2)).between(at(1), at(3))
        with pytest.raises(InvalidValue, match="'at' of Seen is a number, which has no prefix; use between instead"):
            query.begins_with("1")
        with pytest.raises(UnknownField):
            query.within(day=at(2))


def test_a_field_whose_stored_text_does_not_sort_has_no_range() -> None:
    layout = AdjacencyList(
        reverse=None, indexes=[Index("Into", "GPK", "day")], keys={Noted: Keys(indexes={"Into": "{target}"})}
    )
    with Graph(":memory:", [Person, Film, Noted], layout) as g:
        noted = Noted(source="p", target="f", day=dt.date(2024, 1, 31))
        g.put(noted)
        assert list(g.into("f", Noted).within(day=dt.date(2024, 1, 31))) == [noted]
        with pytest.raises(InvalidValue, match=r"^Noted.day is stored as '%d.%m.%Y', which does not sort by value"):
            g.into("f", Noted).between(dt.date(2024, 1, 1), None)
