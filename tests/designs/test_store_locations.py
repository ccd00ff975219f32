"""Shops of a chain: the key of the table is the number of a shop, and an index has where it is, from the country down.

    StoreNumber (N)  Country  StateCityZip      Opened
    1                USA      NE#OMAHA#68144    20190401
    4                USA      NY#NEW YORK#10001

Country, state, city and zip code are in the keys of the index, and in no attribute of their own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import and_
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Graph, Index, InvalidItem, InvalidKey, Keys, Node, Stored, field
from adjoin.fields import Predicate
from adjoin.requests import PageResponse, Scan
from adjoin.values import Item
from tests.designs.table_of_others import STORES, filled, item
from tests.servers.open import Stores


class Shop(Node, key="number"):
    number: int
    country: str
    state: str | None = None
    city: str | None = None
    zip: str | None = None
    opened: Annotated[dt.date | None, Stored("%Y%m%d", type="N")] = None


LAYOUT = AdjacencyList(
    table="Shops",
    partition_key="StoreNumber",
    sort_key=None,
    types={"StoreNumber": "N"},
    reverse=None,
    indexes=[Index("ByPlace", "Country", "StateCityZip")],
    keys={
        Shop: Keys(
            "{number}",
            indexes={"ByPlace": ("{country}", "{state}#{city}#{zip}")},
            only_in_keys=("country", "state", "city", "zip"),
        )
    },
)
SHOPS = [
    item(StoreNumber=1, Country="USA", StateCityZip="NE#OMAHA#68144"),
    item(StoreNumber=2, Country="USA", StateCityZip="NE#OMAHA#68118"),
    item(StoreNumber=3, Country="USA", StateCityZip="NE#LINCOLN#68001"),
    item(StoreNumber=4, Country="USA", StateCityZip="NY#NEW YORK#10001"),
    item(StoreNumber=5, Country="DE", StateCityZip="BE#BERLIN#10115"),
]
SHOPS = [each | ({"opened": {"N": "20190401"}} if number == 0 else {}) for number, each in enumerate(SHOPS)]
OTHERS = [
    item(StoreNumber=8, Country="USA", StateCityZip="NE#OMAHA"),
    item(StoreNumber=9, Country="USA", StateCityZip="NE#OMAHA#68144#2"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Shop], LAYOUT, [*SHOPS, *OTHERS]) as graph:
        yield graph


def items(g: Graph) -> list[Item]:
    (response,) = g._store.execute([Scan("Shops")])
    assert isinstance(response, PageResponse)
    return sorted(map(dict, response.items), key=lambda each: int(each["StoreNumber"]["N"]))


def where(**values: str) -> Predicate:
    return reduce(and_, (field(name) == value for name, value in values.items()))


def numbers(found: Iterable[Shop]) -> list[int]:
    return [each.number for each in found]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (where(country="USA"), [3, 2, 1, 4]),
        (where(country="USA", state="NE"), [3, 2, 1]),
        (where(country="USA", state="NE", city="OMAHA"), [2, 1]),
        (where(country="USA", state="NE", city="OMAHA", zip="68144"), [1]),
        (where(country="USA", state="NE", city="OMAHA") & field("zip").begins_with("6811"), [2]),
        (where(country="USA") & (field("state") > "NE"), [4]),
        (where(country="USA", city="OMAHA"), [2, 1]),
    ],
)
def test_each_level_is_one_query(g: Graph, predicate: Predicate, expected: list[int]) -> None:
    with g.meter() as meter:
        assert numbers(g.find(Shop, predicate)) == expected
    assert meter.requests == 1
    assert g.explain(g.find(Shop, predicate)).index == "ByPlace"
    with g.meter() as meter:
        assert g.find(Shop, predicate).count() == len(expected)
    assert meter.requests == 1


def test_a_level_without_those_above_it_says_what_is_missing(g: Graph) -> None:
    with pytest.raises(InvalidKey, match=r"'ByPlace' needs country == …, then state, city, zip"):
        g.find(Shop, where(state="NE"))


def test_keys_of_the_index_that_do_not_fit_are_among_the_others(g: Graph) -> None:
    """No shop loses its place without a word: a put would remove the key that could not be read."""
    assert sorted(each["StoreNumber"] for each in g.scan().others) == [8, 9]
    assert sorted(each["StateCityZip"] for each in g.index("ByPlace").partition("USA").others) == [
        "NE#OMAHA",
        "NE#OMAHA#68144#2",
    ]
    assert sorted(numbers(g.scan(Shop))) == [1, 2, 3, 4, 5]
    assert g.count(Shop) == 5
    with pytest.raises(InvalidItem, match=r"correct its type attribute or its index keys"):
        g.get(Shop, 9)


def test_what_is_put_again_is_the_same_byte_for_byte(g: Graph) -> None:
    g.put_many(list(g.scan(Shop)))
    for each in list(g.scan(Shop)):
        g.put(each)
    assert items(g) == [*SHOPS, *OTHERS]


def test_a_shop_moves(g: Graph) -> None:
    g.update(Shop, 1, city="LINCOLN", zip="68001")
    g.put(Shop(number=7, country="FR", opened=dt.date(2024, 2, 1)))
    written: dict[int, Any] = {int(each["StoreNumber"]["N"]): each for each in items(g)}
    assert written[1]["StateCityZip"] == {"S": "NE#LINCOLN#68001"}
    assert written[7] == item(StoreNumber=7, Country="FR", opened=20240201)
    assert numbers(g.find(Shop, where(country="USA", state="NE", city="LINCOLN"))) == [1, 3]
    with pytest.raises(InvalidKey, match=r"Shop\.city: 'A#B' holds '#'"):
        g.put(Shop(number=6, country="FR", state="x", city="A#B", zip="1"))
