"""Items and attributes of adjoin's own that another program overwrote with other types: told, and never a bare error.

A ledger that cannot be read counts as none. A node, or the record of the declarations, that cannot be read is told with
what to do, blocks nothing else, and `verify` repairs what is off after that is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Annotated, Any

import pytest

from adjoin import AdjoinError, Child, Edge, Graph, InvalidItem, Node
from adjoin.aggregates import Count, Max, Sum
from adjoin.expressions import Remove, attribute
from adjoin.plans.maintenance.standing import RECORD, key_of
from adjoin.requests import Delete, Put, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import AttributeValue, Item
from tests.maintenance.simulation import stored
from tests.shares import stride


class User(Node):
    id: str
    score: int = 0
    likes: Annotated[int, Count("Likes")] = 0
    best: Annotated[int | None, Max("Likes", field="stars")] = None
    reach: Annotated[int, Sum("Likes", field="score")] = 0


class Post(Node, key=("blog", "number")):
    blog: str
    number: int
    score: int = 0
    fans: Annotated[int, Count("Likes", consistency="transaction")] = 0
    lines: Annotated[int, Count("Line")] = 0
    longest: Annotated[int | None, Max("Line", field="length")] = None


class Line(Child[Post], key=("number",)):
    number: int
    score: int = 0
    length: int = 0


class Likes(Edge[User, Post | Line]):
    stars: int = 0


MODELS: list[Any] = [User, Post, Line, Likes]
OTHERS: list[AttributeValue | None] = [{"S": "x"}, {"N": "-1.5"}, {"B": "/w=="}, {"L": [{"S": "x"}]}, {"M": {}}, None]


def filled() -> Graph:
    g = Graph(SQLiteStore(":memory:"), MODELS)
    g.put_many([User(id="a", score=1), User(id="b", score=2), Post(blog="x", number=1, score=3)])
    g.put_many(Line(parent=("x", 1), number=number, length=number) for number in range(2))
    for id in "ab":
        g.connect(Likes, id, Post.ref(("x", 1)), stars=4)
    g.put(Likes(source="a", target=Line.ref(("x", 1, 0)), stars=5))
    g.put(Likes(source="nobody", target=Post.ref(("x", 1)), stars=6))
    g.maintain(once=True)
    return g


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of attributes in an item, also those inside of maps and lists."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not path or path[-1] == "M":
                yield (*path, name)
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield (*path, place)
            yield from paths(inner, (*path, place))


def spoilt(item: Item, path: tuple[Any, ...], value: AttributeValue | None) -> Item:
    """An item with another value in a place, or without it."""
    copy: Any = deepcopy(item)
    inside = copy
    for step in path[:-1]:
        inside = inside[step]
    if value is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return dict(copy)


def own_places(g: Graph) -> list[tuple[Item, tuple[Any, ...]]]:
    """A place of each kind in the items and attributes of adjoin's own."""
    layout = g._layout
    found: dict[Any, tuple[Item, tuple[Any, ...]]] = {}
    for item in stored(g):
        is_own = layout.is_bookkeeping(item)
        for path in paths(item):
            if path[0] not in layout.key_of(item) and (is_own or str(path[0]).startswith("adjoin:")):
                found.setdefault((is_own, tuple(sorted(item)), path[0], len(path), path[-1]), (item, path))
    return list(found.values())


def calls(g: Graph) -> dict[str, Any]:
    return {
        "open": lambda: Graph(g._store, MODELS),
        "connect": lambda: g.put(Likes(source="b", target=Line.ref(("x", 1, 1)), stars=9)),
        "update": lambda: g.update(Likes, "a", Post.ref(("x", 1)), stars=8),
        "child": lambda: g.update(Line, ("x", 1, 1), length=7),
        "node": lambda: g.put(User(id="nobody")),
        "far": lambda: g.update(Post, ("x", 1), score=9),
        "maintain": lambda: g.maintain(once=True),
        "disconnect": lambda: g.disconnect(Likes, "a", Line.ref(("x", 1, 0))),
        "delete a child": lambda: g.delete(Line, ("x", 1, 0)),
        "maintain again": lambda: g.maintain(once=True),
        "delete": lambda: g.delete(Post, ("x", 1)),
        "health": g.health,
        "get": lambda: list(g.scan()),
    }


@pytest.mark.simulation
@pytest.mark.parametrize("first_type", range(0, len(OTHERS), stride(len(OTHERS))))
def test_every_attribute_of_our_own_with_another_type(first_type: int) -> None:
    """Places with one of the types, or without it, in turns; each with all of them, if there is time."""
    with filled() as first:
        places = own_places(first)
        assert {path[0] for _, path in places} >= {"o", "i", "s", "applied", "near", "rules", "position", "adjoin:life"}
        was = stored(first)
    for number, (item, path) in list(enumerate(places))[:: stride(2)]:
        other = OTHERS[(number + first_type) % len(OTHERS)]
        with Graph(SQLiteStore(":memory:"), MODELS) as g:
            g._store.execute([Put(g._layout.table, each) for each in was])
            g._store.execute([Put(g._layout.table, spoilt(item, path, other))])
            for name, call in calls(g).items():
                try:
                    call()
                except AdjoinError:
                    continue
                except Exception as error:
                    error.add_note(f"{name}, {path} of {item}")
                    raise


@pytest.mark.simulation
@pytest.mark.parametrize("name", ["adjoin:life", "adjoin:turn", "adjoin:left"][:: stride(3)])
def test_a_node_that_cannot_be_read_is_told_and_repaired_once_the_attribute_is_gone(name: str) -> None:
    with filled() as g:
        layout = g._layout
        key = layout.node_key(layout.schema.node(User), "a")
        (item,) = (each for each in stored(g) if layout.key_of(each) == key)
        g._store.execute([Put(layout.table, {**item, name: {"BOOL": True}})])
        g.put_many([Likes(source=id, target=Line.ref(("x", 1, 1)), stars=9) for id in "ab"])
        report = g.maintain(once=True)
        assert report.set_aside
        reason = f"{name!r} of the node 'USER#a' was changed by another program"
        assert all(reason in each.reason for each in report.set_aside)
        # The others are counted, and nothing comes again.
        assert [user and user.likes for user in g.get_many(User, ["a", "b"])] == [2, 2]
        assert g.maintain(once=True).changes == 0
        g._store.execute([Update(layout.table, key, (Remove(attribute(name)),))])
        g.verify(repair=True, threads=1)
        assert [(user and user.likes, user and user.best) for user in g.get_many(User, ["a", "b"])] == [(3, 9), (2, 9)]
        assert [each.kind for each in g.verify(threads=1).findings] == ["dangling"]


def test_a_record_of_the_declarations_that_cannot_be_read_says_what_to_do() -> None:
    with filled() as g:
        layout = g._layout
        key = key_of(layout, RECORD)
        (item,) = (each for each in stored(g) if layout.key_of(each) == key)
        g._store.execute([Put(layout.table, {**item, "rules": {"S": "?"}})])
        g.disconnect(Likes, "b", Post.ref(("x", 1)))
        for call in (lambda: g.maintain(once=True), g.health, lambda: Graph(g._store, MODELS)):
            with pytest.raises(InvalidItem, match="delete this item, and run rebuild"):
                call()
        g._store.execute([Delete(layout.table, key)])
        g.rebuild(threads=1)
        g.maintain(once=True)
        assert [user and user.likes for user in g.get_many(User, ["a", "b"])] == [2, 0]
