"""The short cut from stored items to models gives what the general way gives, and is taken."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    computed_field,
    field_validator,
    model_validator,
)

from adjoin import AdjacencyList, Edge, Expires, InvalidItem, InvalidValue, Node, Stored
from adjoin.layouts.adjacency_reader import AdjacencyReader
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.values import Item, encode
from tests.models import Colour, Everything


class Plain(Node):
    id: str
    text: str = "none"
    whole: Annotated[int, Field(alias="Whole")] = 7
    exact: Decimal | None = None
    near: float = 0.5
    flag: bool = False
    raw: bytes = b""
    at: dt.datetime | None = None
    day: dt.date = dt.date(2024, 1, 1)
    code: UUID | None = None
    colour: Colour = Colour.RED


class Tie(Edge[Plain, Plain]):
    weight: int = 0


@cache
def plain_layout() -> BoundLayout:
    return AdjacencyList().bind(Schema([Plain, Tie]))


def general(layout: BoundLayout, model: type[Any], item: Item) -> Any:
    reader, keys = layout._reader, layout._keys
    return reader._node(keys.nodes[model], item) if model in keys.nodes else reader._edge(keys.edges[model], item)


plain = st.builds(
    Plain,
    id=st.text(min_size=1, max_size=5),
    text=st.text(max_size=5),
    whole=st.integers(-(10**37), 10**37),
    exact=st.none() | st.decimals(-(10**6), 10**6, places=3),
    near=st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-100),
    flag=st.booleans(),
    raw=st.binary(max_size=5),
    at=st.none() | st.datetimes(),
    day=st.dates(),
    code=st.none() | st.uuids(),
    colour=st.sampled_from(Colour),
)


def test_plain_classes_take_the_short_cut() -> None:
    assert plain_layout()._keys.nodes[Plain].record.wire is not None
    assert plain_layout()._keys.edges[Tie].record.wire is not None


class Numbered(Node):
    id: int
    text: str = ""


class Owns(Edge[Plain, Numbered]):
    weight: int = 0


class Ranked(Edge[Plain, Numbered], key=("rank",)):
    rank: int = 0


def test_the_general_way_is_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = AdjacencyList().bind(Schema([Plain, Tie, Numbered, Owns, Ranked]))
    general: list[str] = []

    def counted(name: str) -> Any:
        way = getattr(AdjacencyReader, name)

        def read(self: Any, keys: Any, item: Item) -> Any:
            general.append(keys.kind.name)
            return way(self, keys, item)

        return read

    for name in ("_node", "_edge"):
        monkeypatch.setattr(AdjacencyReader, name, counted(name))
    short: list[Any] = [
        Plain(id="a", text="x", Whole=3, raw=b"y"),
        Tie(source="a", target="b", weight=5),
        Numbered(id=7, text="x"),
        Owns(source="a", target=7, weight=5),
    ]
    for entity in short:
        (item,) = layout.items(entity)
        assert layout.read(item) == entity
    assert general == []
    # An id that is spelled otherwise, and keys of more than ids.
    for entity in (Plain(id="a#b"), Tie(source="a", target="b#c"), Ranked(source="a", target=7, rank=1)):
        (item,) = layout.items(entity)
        assert layout.read(item) == entity
    assert general == ["Plain", "Tie", "Ranked"]


@given(plain)
def test_both_ways_give_the_same(node: Plain) -> None:
    (item,) = plain_layout().items(node)
    assert plain_layout().read(item) == general(plain_layout(), Plain, item) == node


STORED: dict[str, list[Any]] = {
    "text": [{"S": "x"}, {"N": "1"}, {"NULL": True}, {"SS": ["a"]}],
    "Whole": [{"N": "12"}, {"N": "1.5"}, {"S": "12"}, {"BOOL": True}],
    "exact": [{"N": "0.1"}, {"NULL": True}, {"S": "x"}],
    "near": [{"N": "1"}, {"S": "1"}],
    "flag": [{"BOOL": True}, {"N": "1"}, {"S": "yes"}],
    "raw": [{"B": "AP8="}, {"S": "text"}],
    "at": [{"S": "2024-01-01T00:00:00"}, {"N": "0"}, {"S": "never"}],
    "day": [{"S": "2024-01-01"}, {"N": "5"}],
    "code": [{"S": "12345678-1234-5678-1234-567812345678"}, {"S": "x"}],
    "colour": [{"S": "blue"}, {"S": "green"}, {"N": "1"}],
    "other": [{"S": "x"}],
}


def outcome(read: Any) -> str:
    try:
        return repr(read())
    except InvalidItem as error:
        return str(error)


@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(options) for name, options in STORED.items()}))
def test_what_others_stored_is_read_or_refused_alike(attributes: Item) -> None:
    item: Item = {"PK": {"S": "PLAIN#a"}, "SK": {"S": "#META"}, **attributes}
    assert outcome(lambda: plain_layout().read(item)) == outcome(lambda: general(plain_layout(), Plain, item))


class Checked(Node):
    id: str
    name: str

    @field_validator("name", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        return value.strip()


class Strict(Node, strict=True):
    id: str
    at: dt.date


@pytest.mark.parametrize("model", [Everything, Checked, Strict])
def test_other_classes_go_the_general_way(model: type[Any]) -> None:
    assert AdjacencyList().bind(Schema([model]))._keys.nodes[model].record.wire is None


class Renamed(Node):
    id: str
    name: Annotated[str, Field(validation_alias=AliasChoices("name", "Name", "title"), serialization_alias="name")] = ""
    age: int = 0


def test_a_field_is_read_by_its_former_names_too_if_only_some_are_read() -> None:
    layout = AdjacencyList().bind(Schema([Renamed]))
    kind = layout.schema.node(Renamed)
    assert set(layout.some_attributes(kind, ["name"])) >= {"name", "Name", "title"}
    assert {"Name", "title", "age"}.isdisjoint(layout.some_attributes(kind, []))
    item: Item = {"PK": {"S": "RENAMED#1"}, "SK": {"S": "#META"}, "Name": {"S": "Ann"}}
    found = layout.decode_some(kind, item, ("name",))
    assert found is not None
    assert found.__dict__["name"] == "Ann"


def test_the_time_of_an_expiry_is_stored_in_whole_seconds_and_needs_a_time_zone() -> None:
    class Coupon(Node):
        id: str
        until: Annotated[dt.datetime, Expires()]

    layout = AdjacencyList().bind(Schema([Coupon]))
    (record,) = layout._keys.nodes.values()
    at = dt.datetime(2030, 1, 1)
    with pytest.raises(InvalidValue, match=r"Coupon\.until: .* has no time zone, so the time of its expiry is unknown"):
        record.record.encode_field("until", at)
    late = at.replace(microsecond=1, tzinfo=dt.UTC)
    assert record.record.encode_field("until", late) == {"N": "1893456001"}, "not before its time"


class Former(Node):
    """A class whose validator looks at what is stored, under whatever name."""

    id: str
    name: Annotated[str, Field(validation_alias=AliasChoices("name", "Name", "title"), serialization_alias="name")] = ""
    other: str = ""
    size: Annotated[int, Field(alias="Size")] = 0

    @model_validator(mode="before")
    @classmethod
    def _noted(cls, values: Any) -> Any:
        SEEN.append({*values} - {"id"})
        return values


SEEN: list[set[str]] = []


@pytest.mark.parametrize(
    ("stored", "seen"),
    [
        # A field with an alias goes by its name, as everywhere else.
        ({"name": "Ann", "Size": 5}, {"name", "size"}),
        ({"name": "Ann"}, {"name"}),
        ({"Name": "Ann"}, {"Name"}),
        ({"title": "Ann"}, {"title"}),
        # The first of them counts.
        ({"title": "Bob", "name": "Ann"}, {"name"}),
        ({"name": "Ann", "other": "x"}, {"name", "other"}),
    ],
)
def test_a_validator_of_the_class_sees_the_names_that_are_stored(stored: dict[str, Any], seen: set[str]) -> None:
    layout = AdjacencyList().bind(Schema([Former]))
    item: Item = {
        "PK": {"S": "FORMER#a"},
        "SK": {"S": "#META"},
        **{name: encode(each) for name, each in stored.items()},
    }
    SEEN.clear()
    found: Any = layout.read(item)
    assert (found.id, found.name, found.size) == ("a", "Ann", stored.get("Size", 0))
    assert [seen] == SEEN


class Sealed(Node):
    """A class that takes no other values than its fields, one of which it computes."""

    model_config = ConfigDict(extra="forbid")
    id: str
    name: str = ""
    _notes: list[str] = PrivateAttr(default_factory=list)
    _unset: str = PrivateAttr()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> Annotated[int, Stored()]:
        return len(self.name)


def test_what_a_class_computes_is_stored_and_not_read() -> None:
    layout = AdjacencyList().bind(Schema([Sealed]))
    (item,) = layout.items(Sealed(id="a", name="Ann"))
    assert item["length"] == {"N": "3"}
    found: Any = layout.read({**item, "length": {"N": "99"}})
    assert (found.name, found.length) == ("Ann", 3)


def test_private_attributes_have_their_defaults_if_only_some_fields_are_read() -> None:
    layout = AdjacencyList().bind(Schema([Sealed]))
    (item,) = layout.items(Sealed(id="a"))
    found: Any = layout.decode_some(layout.schema.node(Sealed), item, ("name",))
    assert found._notes == []
    with pytest.raises(AttributeError):
        _ = found._unset


class Address(BaseModel):
    street: Annotated[str, Field(alias="Street")] = ""
    day: dt.date = dt.date(2026, 1, 1)


class Housed(Node, strict=True):
    id: str
    home: Address = Address()


@pytest.mark.parametrize("name", ["street", "Street"])
def test_nested_models_are_read_by_their_names_and_by_their_aliases(name: str) -> None:
    """Also in a strict class, to which a stored date is text."""
    layout = AdjacencyList().bind(Schema([Housed]))
    home: Any = {"M": {name: {"S": "Main"}, "day": {"S": "2026-05-06"}}}
    found: Any = layout.read({"PK": {"S": "HOUSED#a"}, "SK": {"S": "#META"}, "home": home})
    assert (found.home.street, found.home.day) == ("Main", dt.date(2026, 5, 6))
