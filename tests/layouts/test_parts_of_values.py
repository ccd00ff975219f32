"""Fields of an instance of which only some are read, what is called for them, and keys that repeat a part."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, PrivateAttr

from adjoin import AdjacencyList, Edge, InvalidModel, InvalidValue, Keys, Node, UnknownField
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema

CALLED: list[str] = []


def words() -> list[str]:
    CALLED.append("words")
    return ["made"]


class Note(Node):
    id: str
    title: str = ""
    words: Annotated[list[str], Field(default_factory=words)]
    _length: int = PrivateAttr(default=0)

    def after_load(self) -> None:
        self._length = len(self.title)


class Wrong(Node):
    id: str
    title: str = ""

    def after_load(self) -> None:
        self.title = "changed"


def test_a_default_is_made_where_a_field_is_read_and_not_stored() -> None:
    CALLED.clear()
    layout = AdjacencyList().bind(Schema([Note]))
    assert CALLED == [], "not when the class is bound"
    item = {"PK": {"S": "NOTE#a"}, "SK": {"S": "#META"}, "title": {"S": "four"}}
    some: Any = layout.decode_some(layout.schema.node(Note), item, ("words",))
    whole: Any = layout.read(item)
    far: Any = layout.decode_as_far(layout.schema.node(Note), item)
    assert some.words == whole.words == far.words == ["made"]


def test_the_hook_of_a_class_is_called_when_it_is_read() -> None:
    layout = AdjacencyList().bind(Schema([Note, Wrong]))
    found: Any = layout.read({"PK": {"S": "NOTE#a"}, "SK": {"S": "#META"}, "title": {"S": "four"}})
    assert found._length == 4
    with pytest.raises(
        InvalidModel, match=r"^after_load of Wrong changed 'title', which is stored, so an update would"
    ):
        layout.read({"PK": {"S": "WRONG#a"}, "SK": {"S": "#META"}, "title": {"S": "four"}})


# --- keys that repeat a part -------------------------------------------------------------------


class Order(Node, key=("customer", "number")):
    customer: str
    number: int


class Product(Node):
    id: str


class Contains(Edge[Order, Product], key=("line",)):
    line: int


def bound(order: Keys, contains: Keys) -> BoundLayout:
    keys: dict[type[Any], Keys] = {Order: order, Contains: contains}
    return AdjacencyList(reverse=None, keys=keys).bind(Schema([Order, Product, Contains]))


def test_a_node_key_may_hold_a_part_twice() -> None:
    keys: dict[type[Any], Keys] = {Order: Keys("c|{customer}", "o|{customer}|{number}")}
    layout = AdjacencyList(reverse=None, keys=keys).bind(Schema([Order, Product]))
    order = layout.schema.node(Order)
    assert layout.node_text(order, ("C", 7)) == "c|C##o|C|7"
    assert layout.id_in(order, "c|C##o|C|7") == ("C", 7)
    assert not layout.is_of(order, "c|C##o|D|7"), "both say the same"
    (item,) = layout.items(Order(customer="C", number=7))
    assert layout.read(item) == Order(customer="C", number=7)
    assert layout.kind_of({**item, "SK": {"S": "o|D|7"}}) is None


def test_a_range_of_one_node_narrows_by_what_is_open() -> None:
    """What the source has in the sort key is known, and is not counted as something that was given."""
    layout = bound(Keys("c|{customer}", "o|{number}"), Keys(sort="o|{source.number}|{line}|{target.id}"))
    found = layout.out(layout.schema.edge(Contains), ("C", 7))
    for parts, text in (({"line": 3}, "o|7|3|"), ({"line": 3, "target": "p"}, "o|7|3|p")):
        condition = found.within(parts).condition()
        assert condition is not None
        assert condition.operands == ({"S": text},)
    with pytest.raises(InvalidValue, match="narrows from the left only: give 'line' too"):
        found.within({"target": "p"})
    for name in ("source.number", "number"):
        with pytest.raises(UnknownField, match="it has 'line', 'target'"):
            found.within({name: 7})


class Blank(Node):
    id: str
    plain: str | None = None
    made: str | None = Field(default_factory=lambda: None)


def test_what_a_factory_makes_is_not_known_before_and_so_it_is_stored() -> None:
    layout = AdjacencyList().bind(Schema([Blank]))
    (item,) = layout.items(Blank(id="a"))
    assert {name: item.get(name) for name in ("plain", "made")} == {"plain": None, "made": {"NULL": True}}
    assert layout.read(item) == Blank(id="a")
