"""Nodes that share a partition: with what the sort keys of one node, its edges and its children begin."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema


class Order(Node, key=("customer", "number")):
    customer: str
    number: int


class Product(Node):
    id: str


class Contains(Edge[Order, Product]):
    pass


class Line(Child[Order], key=("at",)):
    at: int


def bound(order: str, contains: str, line: str | None = None) -> BoundLayout:
    own: dict[type[Any], Keys] = {Order: Keys("c#{customer}", order), Contains: Keys(sort=contains)}
    lines: dict[type[Any], Keys] = {} if line is None else {Line: Keys(sort=line)}
    models: list[Any] = [Order, Product, Contains, *lines]
    return AdjacencyList(keys={**own, **lines}).bind(Schema(models))


@pytest.mark.parametrize(
    ("order", "contains", "line", "stem"),
    [
        ("o#{number}", "o#{source.number}#{target.id}", None, "o#7"),
        ("o#{number}#x", "o#{source.number}#y{target.id}", None, "o#7#"),
        ("o#{number}#x", "o#{source.number}#p#{target.id}", None, "o#7#"),
        ("o#{number}", "o#{source.number}|{target.id}", None, "o#7"),
        ("order#{number}", "of#{source.number}#{target.id}", None, "o"),
        ("order#{number}", "x#{source.number}#{target.id}", None, ""),
        ("{number}", "x#{source.number}#{target.id}", None, ""),
        ("o#{number}", "{source.number}#p#{target.id}", None, ""),
        ("o#{number:06}", "o#{source.number:06}#{target.id}", None, "o#000007"),
        # The same number in another form is another text.
        ("o#{number:06}", "o#{source.number}#{target.id}", None, "o#"),
        # What follows different parts is not compared.
        ("o#{number:06}#x", "o#{source.number}#x#{target.id}", None, "o#"),
        ("o#{number}#a", "o#{source.number}#b#{target.id}", "o#{parent.number}#bc#{at}", "o#7#"),
        ("o#{number}#by", "o#{source.number}#bz{target.id}", "o#{parent.number}#bx#{at}", "o#7#b"),
        ("o#{number}", "o#{source.number}#{target.id}", "ol#{parent.number}#{at}", "o"),
    ],
)
def test_what_all_sort_keys_at_a_node_begin_with(order: str, contains: str, line: str | None, stem: str) -> None:
    layout = bound(order, contains, line)
    found = layout.collection(layout.schema.node(Order), ("C1", 7), arriving=False)
    condition = found.condition()
    assert (found.partition, found.stem) == ("c#C1", stem)
    assert (None if condition is None else (condition.operator, condition.operands[0]["S"])) == (
        ("begins_with", stem) if stem else None
    )


@pytest.mark.parametrize(
    ("order", "shown", "hidden"),
    [
        # The stem of number 7 is "o#7", and that of 70 begins so too.
        ("o#{number}", ["o#7", "o#7#more"], ["o#70", "o#7more"]),
        ("o#{number}#x", ["o#7#", "o#7#more"], []),
        # Nothing that all of them begin with tells the number.
        ("{number}", ["7", "70", "more"], []),
    ],
)
def test_whose_items_are_read_from_a_shared_partition(order: str, shown: list[str], hidden: list[str]) -> None:
    """What no class explains is shown beside a node, unless its key is that of something of another node."""
    layout = bound(order, "o#{source.number}#p#{target.id}", "o#{parent.number}#l#{at}")
    found = layout.collection(layout.schema.node(Order), ("C1", 7), arriving=False)
    entities: list[Any] = []
    for number in (7, 70):
        entities += [Order(customer="C1", number=number)]
        entities += [Contains(source=("C1", number), target="P1"), Line(parent=("C1", number), at=1)]
    read = [found.access.decode(item) for entity in entities for item in layout.items(entity)]
    assert read == [*entities[:3], None, None, None]
    shows = found.access.shows
    assert shows is not None
    assert [sort for sort in (*shown, *hidden) if shows({"PK": {"S": "c#C1"}, "SK": {"S": sort}})] == shown


@pytest.mark.parametrize(
    ("line", "is_exclusive"),
    [
        ("o#{parent.number}#l#{at}", True),
        # The edges of the same order begin alike, and so may those of others.
        ("o#{parent.number}#p#{at}#l", False),
        ("{parent.number}#l#{at}", False),
    ],
)
def test_whether_children_are_alone(line: str, is_exclusive: bool) -> None:
    layout = bound("o#{number}", "o#{source.number}#p#{target.id}", line)
    assert layout.children(layout.schema.node(Line), ("C1", 7)).access.exclusive is is_exclusive
