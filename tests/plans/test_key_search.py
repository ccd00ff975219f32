"""Searches by keys: values as keys have them, counts with a limit, and what the index cannot filter by."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, Index, InvalidValue, Keys, Node, Projection, field
from adjoin.fields import Predicate
from adjoin.plans.find import search
from adjoin.plans.key_search import KeySearch, index_search
from adjoin.plans.steps.predicates import holds


class Day(Node):
    id: str
    town: str = "t"
    number: int = 0
    name: str = ""
    raw: bytes = b"x"


LAYOUT = AdjacencyList(
    reverse=None,
    indexes=[
        Index("ByTown", "town", "number"),
        Index("ByName", "town", "name", projection=Projection("INCLUDE", ("number",))),
        Index("ByNumber", "number", "raw"),
        Index("ByDate", "DatePK", "DateSK"),
        Index("All", "AllPK", "AllSK", shards=3),
    ],
    keys={Day: Keys(indexes={"ByDate": ("D#{town}", "{number:04}#{name}"), "All": ("{shard}", "{name}")})},
)


@pytest.fixture
def g() -> Iterator[Graph]:
    with Graph(":memory:", [Day], LAYOUT) as graph:
        graph.put_many(Day(id=f"{at:02}", number=at, name=f"n{at % 4}") for at in range(12))
        yield graph


def numbers(found: Any) -> list[int]:
    return [each.number for each in found]


@pytest.mark.parametrize("most", [1, 5, 11, 12, 13])
@pytest.mark.parametrize("index", ["ByTown", "ByName", "All"])
def test_a_count_stops_at_the_limit(g: Graph, index: str, most: int) -> None:
    everybody = g.find(Day, field("town") == "t", index=index) if index != "All" else g.index("All")
    assert everybody.limit(most).count() == min(most, 12)
    assert everybody.count() == 12


def test_a_filter_is_counted_too(g: Graph) -> None:
    odd = g.find(Day, (field("town") == "t") & (field("number") > 3)).where(field("name") == "n1")
    assert (odd.count(), odd.limit(1).count(), numbers(odd)) == (2, 1, [5, 9])


VALUES: list[tuple[str, Callable[[Any], Any], list[int] | str]] = [
    ("ByTown", lambda index: index.partition("t").equals(3), [3]),
    ("ByTown", lambda index: index.partition("t").between(Decimal(3), 5), [3, 4, 5]),
    (
        "ByTown",
        lambda index: index.partition("t").equals("3"),
        "'3' cannot be compared with 'number', a key of the type N",
    ),
    (
        "ByTown",
        lambda index: index.partition("t").equals(True),
        "True cannot be compared with 'number', a key of the ty",
    ),
    (
        "ByTown",
        lambda index: index.partition("t").begins_with(3),
        "'number' of the index 'ByTown' is a number, which",
    ),
    ("ByNumber", lambda index: index.partition(3).equals(b"x"), [3]),
    ("ByNumber", lambda index: index.partition(3).begins_with(b"x"), [3]),
    (
        "ByNumber",
        lambda index: index.partition(3).equals("x"),
        "'x' cannot be compared with 'raw', a key of the type B",
    ),
    # Text keys take what has a text in keys.
    ("ByDate", lambda index: index.partition("D#t").equals("0003#n3"), [3]),
    ("ByName", lambda index: index.partition("t").equals(7), []),
    ("ByName", lambda index: index.partition("t").equals(dt.date(2026, 1, 1)), []),
    (
        "ByName",
        lambda index: index.partition("t").equals(b"n1"),
        "b'n1' cannot be compared with 'name', a key of the type S",
    ),
    (
        "ByName",
        lambda index: index.partition("t").equals(True),
        "True cannot be compared with 'name', a key of the type S",
    ),
    (
        "ByTown",
        lambda index: index.partition("t", "u"),
        "a partition of the index 'ByTown' is chosen by town, got 2 values",
    ),
    ("ByTown", lambda index: index.partition("t").equals(1).equals(2), "already has a condition on its sort key"),
]


@pytest.mark.parametrize(("index", "ask", "expected"), VALUES)
def test_a_value_is_compared_as_the_key_has_it(
    g: Graph, index: str, ask: Callable[[Any], Any], expected: list[int] | str
) -> None:
    if isinstance(expected, str):
        with pytest.raises(InvalidValue, match=expected.replace("(", r"\(")):
            ask(g.index(index))
    else:
        assert numbers(ask(g.index(index))) == expected


def test_a_number_is_written_into_a_text_key_as_it_would_be() -> None:
    class Numbered(Node):
        id: str
        code: str = ""

    with Graph(":memory:", [Numbered], AdjacencyList(reverse=None, indexes=[Index("Code", "code")])) as g:
        g.put_many([Numbered(id="a", code="7"), Numbered(id="b", code="2026-01-01")])
        assert [each.id for each in g.index("Code").partition(7)] == ["a"]
        assert [each.id for each in g.index("Code").partition(dt.date(2026, 1, 1))] == ["b"]


@pytest.mark.parametrize(
    ("index", "predicate", "is_filter"),
    [
        # DynamoDB filters by what the index holds, and not by a key of the query.
        ("ByName", field("number") > 3, True),
        ("ByName", field("raw") == b"x", False),
        ("ByName", field("town") == "t", False),
        ("ByName", field("name") != "x", False),
        ("ByName", (field("number") > 3) | (field("raw") == b"x"), False),
        ("ByTown", field("raw") == b"x", True),
        ("ByTown", field("number") != 3, False),
    ],
)
def test_who_filters(g: Graph, index: str, predicate: Predicate, is_filter: bool) -> None:
    layout = g._layout
    asked = search(layout, layout.schema.node(Day), field("town") == "t", None, index)
    assert isinstance(asked, KeySearch)
    assert (asked.filter, asked.rest) == (None, ())
    more = asked.where(layout, predicate)
    assert isinstance(more, KeySearch)
    assert ((more.filter is not None), len(more.rest)) == ((True, 0) if is_filter else (False, 1))
    found = g.find(Day, field("town") == "t", index=index).where(predicate)
    everybody = list(g.find(Day, field("town") == "t", index=index))
    assert list(found) == [each for each in everybody if holds(layout.schema.node(Day), predicate, each)]
    assert found.count() == len(list(found))


def test_a_question_is_another_if_anything_differs(g: Graph) -> None:
    """A page token fits only its own."""
    layout = g._layout
    asked = index_search(layout, "ByTown").in_partition(layout, ["t"])
    others = [
        asked.with_(index="ByName"),
        asked.in_partition(layout, ["u"]),
        asked.sorted_by(layout, "=", [3]),
        asked.with_(forward=False),
        asked.with_(are_others=True),
        asked.with_(kind=layout.schema.node(Day)),
        asked.with_(rest=(field("name") == "a",)),
    ]
    assert len({each.identity("adjoin") for each in (asked, *others)} | {asked.identity("other")}) == 9


class Tagged(Node):
    id: str
    town: str = "t"
    tags: list[str] = []


def test_elements_are_looked_for_where_the_index_does_not_hold_them() -> None:
    index = Index("ByTown", "town", projection=Projection("KEYS_ONLY"))
    with Graph(":memory:", [Tagged], AdjacencyList(reverse=None, indexes=[index])) as g:
        g.put_many([Tagged(id="a", tags=["x", "y"]), Tagged(id="b", tags=["y"]), Tagged(id="c")])
        found = g.find(Tagged, (field("town") == "t") & field("tags").contains("x"))
        assert [each.id for each in found] == ["a"]
