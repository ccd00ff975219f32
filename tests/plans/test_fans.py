"""What a change of a node is followed by: the edges that copy it, and what each of them costs."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Index, Indexed, Node
from adjoin.aggregates import Copy
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.copies import fans
from adjoin.requests import BatchWrite, Delete, Put, TransactWrite, Update
from adjoin.schema import Schema
from adjoin.tables import Projection


class Box(Node):
    id: str
    name: str = ""
    size: Annotated[int, Indexed()] = 0
    note: str = ""


class Book(Node):
    id: str
    title: str = ""


class Holds(Edge[Box, Book]):
    box: Annotated[str, Copy("source.name")] = ""
    title: Annotated[str, Copy("target.title")] = ""


class Shows(Edge[Box, Book]):
    title: Annotated[str, Copy("target.title")] = ""
    one: Annotated[int, Indexed()] = 0
    two: Annotated[int, Indexed()] = 0


EVERYTHING = Projection("ALL")


def bound(projection: Projection) -> Any:
    reverse = Index("GSI1", "GSI1PK", "GSI1SK", projection=projection)
    return AdjacencyList(reverse=reverse).bind(Schema([Box, Book, Holds, Shows]))


def key(partition: str) -> dict[str, Any]:
    return {"PK": {"S": partition}, "SK": {"S": "#META"}}


def changed(partition: str, name: str) -> Update:
    return Update("adjoin", key(partition), (Set(attribute(name), Value({"S": "x"})),))


def told(requests: Any, projection: Projection = EVERYTHING) -> list[tuple[Any, ...]]:
    found = fans(bound(projection), requests)
    return [(fan.node, fan.edge.name, fan.fields, fan.index, fan.items, fan.entries, fan.others) for fan in found]


# An entry in the reverse index; and where two fields are indexed, one more for each, of which one is a copy.
BOX = ("BOX#a", "Holds", ("box",), None, 1, 1, 1)
BOOK = ("BOOK#b", "Holds", ("title",), "GSI1", 1, 1, 1)
SHOWN = ("BOOK#b", "Shows", ("title",), "GSI1", 2, 3, 0)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (changed("BOX#a", "name"), [BOX]),
        (changed("BOX#a", "note"), []),
        (changed("BOOK#b", "title"), [BOOK, SHOWN]),
        (Put("adjoin", key("BOX#a") | {"name": {"S": "x"}}), [BOX]),
        (Put("adjoin", key("BOX#a") | {"note": {"S": "x"}}), []),
        (Delete("adjoin", key("BOX#a")), []),
        (TransactWrite((changed("BOX#a", "name"), changed("BOOK#b", "title"))), [BOX, BOOK, SHOWN]),
        (BatchWrite((Put("adjoin", key("BOX#a") | {"name": {"S": "x"}}), Delete("adjoin", key("BOX#b")))), [BOX]),
        (changed("OTHER#a", "name"), []),
    ],
)
def test_which_edges_copy_it(request_: Any, expected: list[Any]) -> None:
    assert told([request_]) == expected


def test_an_index_that_holds_keys_alone_has_nothing_to_change() -> None:
    assert told([changed("BOX#a", "name")], Projection("KEYS_ONLY")) == [(*BOX[:5], 0, 1)]
