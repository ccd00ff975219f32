"""{shard} in templates: whose number it is, what chooses a shard, and which shards another program chose."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Copy, Edge, Expires, Index, Indexed, InvalidModel, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.shard_numbers import MOST_SHARDS
from adjoin.model import SHARDS_READ
from adjoin.schema import Schema
from adjoin.values import Item


class User(Node):
    id: str
    city: str = "Bern"
    team: str | None = None
    name: Annotated[str, Indexed()] = ""


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str


class Likes(Edge[User, Repo]):
    city: Annotated[str, Copy("source.city")] = ""
    grade: int = 0


MODELS: list[Any] = [User, Repo, Likes]


def bound(*indexes: Index, **options: Any) -> BoundLayout:
    return AdjacencyList(reverse=None, indexes=indexes, **options).bind(Schema(MODELS))


def sharded(shard_by: str | tuple[str, ...] | None, model: Any = User, **options: Any) -> BoundLayout:
    index = Index("All", "APK", "ASK", shards=4, shard_by=shard_by)
    return bound(index, keys={model: Keys(indexes={"All": ("all#{shard}", "a")})}, **options)


def shard_of(layout: BoundLayout, entity: Any) -> str:
    (item,) = layout.items(entity)
    return str(item["APK"]["S"].removeprefix("all#"))


def test_a_number_belongs_to_an_attribute_and_all_its_indexes() -> None:
    one, two = Index("One", "SPK", "SSK", shards=3), Index("Two", "SPK", "TSK", shards=3)
    other = Index("Other", "OPK", shards=range(1, 3))
    keys = {User: Keys(indexes={"One": ("s#{shard}", "{id}"), "Two": ("s#{shard}", "{city}"), "Other": "{shard}"})}
    layout = bound(one, two, other, keys=keys, shards=5)
    found = {name: (number.indexes, number.all) for name, number in layout.shard_numbers.items()}
    assert found == {
        "SPK": (("One", "Two"), range(3)),
        "OPK": (("Other",), range(1, 3)),
        "GSI3PK": (("GSI3",), range(5)),
    }
    assert layout.for_tenant("acme").shard_numbers == layout.shard_numbers
    assert {number.is_recorded for number in layout.shard_numbers.values()} == {True}


@pytest.mark.parametrize("shards", [0, -1, MOST_SHARDS + 1, range(0), range(3, 1), range(-1, 3), range(0, 4, 2)])
def test_numbers_of_shards_that_are_refused(shards: Any) -> None:
    index = Index("All", "APK", shards=shards)
    with pytest.raises(
        InvalidModel, match=r"^shards of an index must be a number from 1 to 10,000, or a range such as"
    ):
        bound(index, keys={User: Keys(indexes={"All": "{shard}"})})


@pytest.mark.parametrize("shards", [1, MOST_SHARDS, range(7, 8), range(1, 1 + MOST_SHARDS)])
def test_numbers_of_shards(shards: Any) -> None:
    index = Index("All", "APK", shards=shards)
    number = bound(index, keys={User: Keys(indexes={"All": "{shard}"})}).shard_numbers["APK"]
    assert number.all == (range(shards) if isinstance(shards, int) else shards)


@pytest.mark.parametrize(
    ("indexes", "template", "words"),
    [
        ([Index("All", "APK")], "{shard}", "has {shard}, but its index has no shards=; give it one"),
        (
            [Index("All", "APK", "x", shards=2), Index("More", "APK", "y", shards=3)],
            ("{shard}", "x"),
            "has {shard}, but indexes over 'APK' differ in shards= or shard_by=; {shard} is for the partition key",
        ),
        (
            [Index("All", "APK", "ASK", shards=2)],
            ("x", "{shard}"),
            "has {shard}, but no indexes over 'ASK' have it as their partition key; {shard} is for the partition",
        ),
    ],
)
def test_where_a_shard_cannot_be(indexes: list[Index], template: Any, words: str) -> None:
    with pytest.raises(InvalidModel) as refused:
        bound(*indexes, keys={User: Keys(indexes={"All": template})})
    assert words in str(refused.value)


def test_what_chooses_a_shard() -> None:
    ids = [str(number) for number in range(40)]
    by_key = sharded(None)
    assert {shard_of(by_key, User(id=id)) for id in ids} == {"0", "1", "2", "3"}
    by_city = sharded("city")
    assert len({shard_of(by_city, User(id=id)) for id in ids}) == 1
    assert {shard_of(by_city, User(id="a", city=city)) for city in ids} == {"0", "1", "2", "3"}
    both = sharded(("city", "team"))
    assert {shard_of(both, User(id="a", city="x", team=team)) for team in ids} == {"0", "1", "2", "3"}
    # Without a value that chooses it, the item is in no shard, and so not in the index.
    (item,) = both.items(User(id="a", city="x"))
    assert "APK" not in item


@pytest.mark.parametrize(
    ("shard_by", "parts"),
    [
        # The copy of a field of the source goes before what the field is called in the edge.
        ("city", ("city",)),
        ("source.city", ("city",)),
        ("grade", ("grade",)),
        ("target", ("target.owner", "target.name")),
        ("source", ("source",)),
        ("target.owner", ("target.owner",)),
        (None, ("source.id", "target.owner", "target.name")),
    ],
)
def test_what_an_edge_is_in_a_shard_by(shard_by: str | None, parts: tuple[str, ...]) -> None:
    layout = sharded(shard_by, Likes)
    template = layout.entry_templates(layout.schema.edge(Likes))["APK"]
    assert template.names == parts


def test_what_no_shard_is_chosen_by() -> None:
    with pytest.raises(InvalidModel) as refused:
        sharded("town", Likes)
    assert str(refused.value).startswith("shard_by='town': Likes has no field 'town'")
    assert str(refused.value).endswith(', or copy it from the source with Copy("source.town")')
    with pytest.raises(InvalidModel, match=r"^shard_by='town': User has no field 'town'[^,]*(, [^,]*)*$"):
        sharded("town")


def test_a_shard_that_another_program_chose_is_kept() -> None:
    layout = sharded(None)
    kind, user = layout.schema.node(User), User(id="a", city="Bern")
    (item,) = layout.items(user)
    own = shard_of(layout, user)
    assert SHARDS_READ not in vars(layout.read(item))
    (foreign,) = (shard for shard in ("0", "1") if shard != own) if own in "01" else ("0",)
    read: Any = layout.decode(kind, {**item, "APK": {"S": f"all#{foreign}"}})
    assert vars(read)[SHARDS_READ].keys() == {"APK"}
    assert shard_of(layout, read) == foreign
    # Another user has a shard of its own.
    assert shard_of(layout, read.model_copy(update={"id": "b"})) == shard_of(layout, User(id="b"))
    for text in ("all#9", "all", "all#x", "other#1"):
        unknown: Any = layout.decode(kind, {**item, "APK": {"S": text}})
        assert SHARDS_READ not in vars(unknown), text
    # Where fields choose, all items with the same values are to be in one shard.
    by_city = sharded("city")
    moved: Any = by_city.decode(by_city.schema.node(User), {**item, "APK": {"S": f"all#{foreign}"}})
    assert SHARDS_READ not in vars(moved)


@pytest.mark.parametrize("foreign", ["0", "1", "2", "3"])
def test_a_shard_of_an_edge_that_another_program_chose(foreign: str) -> None:
    layout = sharded(None, Likes)
    edge = Likes(source="a", target=("o", "n"))
    (item,) = layout.items(edge)
    stored: Item = {**item, "APK": {"S": f"all#{foreign}"}}
    found: Any = layout.read(stored)
    assert (SHARDS_READ in vars(found)) is (foreign != shard_of(layout, edge))
    assert shard_of(layout, found) == foreign
    assert found == edge


# --- what the table is ---------------------------------------------------------------------------


class First(Node):
    id: str
    one: Annotated[dt.datetime | None, Expires()] = None


class Second(Node):
    id: str
    two: Annotated[dt.datetime | None, Expires()] = None


class Third(Node):
    id: str
    three: Annotated[dt.datetime | None, Expires()] = None


def test_a_table_has_one_attribute_by_which_items_expire() -> None:
    assert AdjacencyList().bind(Schema([First, User, Repo])).definition.ttl == "one"
    for models in ([First, Second], [First, Second, Third]):
        with pytest.raises(
            InvalidModel, match=r"^First expires by 'one' and Second by 'two', but a table has one such"
        ):
            AdjacencyList().bind(Schema(models))
