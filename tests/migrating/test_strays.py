"""What an older program removes or changes while a migration is at work: nothing of it is found when that has ended.

The older program does not know the index copies, claims and twins that the newer one and the migration have added.
"""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, Field

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Edge,
    Graph,
    Index,
    Indexed,
    MaterializedGraph,
    Node,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.stores.sqlite import SQLiteStore
from tests.migrating.versions import Crash, Halting
from tests.shares import stride


class Person(Node):
    id: str
    name: str
    born: int = 0
    email: str | None = None
    tags: list[str] = []


class Knows(Edge[Person, Person]):
    since: int


class Boss(Edge[Person, Person]):
    since: int


OLDER: list[type[Any]] = [Person, Knows, Boss]


class Found(Node, label="PERSON"):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int, Indexed()] = 0
    email: Annotated[str | None, Unique()] = None
    tags: Annotated[list[str], Indexed(elements=True)] = []


class Friends(Edge[Found, Found], label="KNOWS", symmetric=True):
    since: Annotated[int, Indexed()]


class OnlyBoss(Edge[Found, Found], label="BOSS", one_target=True):
    since: Annotated[int, Indexed()]


NEWER: list[type[Any]] = [Found, Friends, OnlyBoss]

LAYOUTS: dict[str, Layout] = {
    "adjacency list": AdjacencyList(),
    "materialized graph": MaterializedGraph(),
    "without a stream": AdjacencyList(stream=False),
}


def opened(store: SQLiteStore, models: list[type[Any]], layout: str, tenant: str | None) -> Graph:
    graph = Graph(store, models, LAYOUTS[layout])
    return graph if tenant is None else graph.for_tenant(tenant)


def fill(g: Graph) -> None:
    g.put_many(Person(id=f"{at}", name=f"n{at % 2}", born=at, email=f"e{at}", tags=["a", f"t{at}"]) for at in range(8))
    g.put_many(Knows(source=f"{at}", target=f"{at + 1}", since=at) for at in range(7))
    g.put_many(Boss(source=f"{at}", target="7", since=at) for at in range(7))


def people(found: Any) -> list[str]:
    return sorted(each.id for each in found)


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_an_older_program_removes_is_gone(layout: str, tenant: str | None) -> None:
    store = SQLiteStore(":memory:")
    older = opened(store, OLDER, layout, tenant)
    fill(older)
    newer, whole = opened(store, NEWER, layout, tenant), opened(store, NEWER, layout, None)
    newer.put(Found(id="9", name="n1", born=9, email="e9", tags=["a"]))
    newer.put(Friends(source="7", target="4", since=40))
    newer.put(Friends(source="7", target="5", since=50))
    assert whole.migrate().stage == "waiting"
    older.delete_many([Person.ref("1"), Person.ref("9")])
    older.disconnect(Knows, "3", "4")
    older.disconnect(Knows, "7", "4")  # an edge of the newer program, of which the older one knows one item
    older.disconnect(Knows, "5", "7")  # and another one, by its other item
    older.disconnect(Boss, "5", "7")
    older.update(Person, "2", born=22, email="other", tags=["b"])
    older.put(Person(id="6", name="n0", born=66))

    assert whole.migrate(finish=True).ended
    assert people(newer.find(Found, order="born")) == people(newer.scan(Found)) == ["0", "2", "3", "4", "5", "6", "7"]
    assert people(newer.find(Found, field("tags").contains("a"))) == ["0", "3", "4", "5", "7"]
    assert people(newer.find(Found, field("tags").contains("b"))) == ["2"]
    assert people(newer.find(Found, field("name") == "n0")) == ["0", "2", "4", "6"]
    assert [newer.get(Found, email=f"e{at}") is not None for at in range(10)] == [
        at in (0, 3, 4, 5, 7) for at in range(10)
    ]
    newer.put(Found(id="10", name="x", email="e1"))
    known = {
        (at, each.target if each.source == at else each.source) for at in "0234567" for each in newer.out(at, Friends)
    }
    assert known == {("4", "5"), ("5", "4"), ("5", "6"), ("6", "5"), ("6", "7"), ("7", "6"), ("2", "3"), ("3", "2")}
    assert sorted(each.since for each in newer.find(Friends, order="since")) == [2, 4, 5, 6]
    assert [each.since for each in newer.find(OnlyBoss, order="since")] == [0, 2, 3, 4, 6]
    newer.connect(OnlyBoss, "5", "0", since=55)
    with pytest.raises(AlreadyExists):
        newer.connect(OnlyBoss, "4", "0", since=55)
    assert not newer.verify().findings
    assert not whole.migrate(dry_run=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pass_finds_what_no_change_stream_tells_any_more(layout: str) -> None:
    """A migration is given up, an older program goes on, and later another one begins anew."""
    store = SQLiteStore(":memory:")
    older, newer = Graph(store, OLDER, LAYOUTS[layout]), Graph(store, NEWER, LAYOUTS[layout])
    fill(older)
    newer.migrate()
    older.delete(Person.ref("1"))
    older.disconnect(Knows, "3", "4")
    older.disconnect(Boss, "5", "7")
    plan = newer.migrate(dry_run=True)
    (removed,) = [step for step in plan.steps if "of what is gone" in step.what]
    assert removed.items == 8
    # To fill a field takes another pass, so the change stream is not read.
    assert newer.migrate(finish=True, fill={"Found.born": lambda _: 1}).ended
    assert not newer.verify().findings
    assert people(newer.find(Found, order="born")) == ["0", "2", "3", "4", "5", "6", "7"]
    assert newer.edge(Friends, "4", "3") is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_taking_back_leaves_no_edge_at_its_other_end(layout: str) -> None:
    store = SQLiteStore(":memory:")
    older, newer = Graph(store, OLDER, LAYOUTS[layout]), Graph(store, NEWER, LAYOUTS[layout])
    fill(older)
    newer.migrate()
    newer.put(Friends(source="7", target="2", since=9))
    assert older.count(Knows) == 16
    assert older.migrate(finish=True).ended
    assert {(each.source, each.target) for each in older.scan(Knows)} == {
        ("7", "2"),
        *((f"{at}", f"{at + 1}") for at in range(7)),
    }
    assert not any(each.is_due for each in older.differences())


def test_what_older_programs_still_use_stays_until_the_last_step() -> None:
    """The class loses one index and one unique field, and gains others."""

    class Before(Node, label="PERSON"):
        id: str
        name: Annotated[str, Indexed()]
        born: Annotated[int, Indexed()] = 0
        email: Annotated[str | None, Unique()] = None
        phone: str = ""

    class After(Node, label="PERSON"):
        id: str
        name: Annotated[str, Indexed()]
        born: int = 0
        email: str | None = None
        phone: Annotated[str, Unique(), Indexed()] = ""

    store = SQLiteStore(":memory:")
    older, newer = Graph(store, [Before]), Graph(store, [After])
    older.put_many(Before(id=f"{at}", name="n", born=at, email=f"e{at}", phone=f"p{at}") for at in range(4))
    newer.migrate()
    assert people(older.find(Before, order="born")) == people(newer.scan(After))
    assert older.get(Before, email="e1") is not None
    with pytest.raises(AlreadyExists):
        older.put(Before(id="x", name="n", email="e1"))
    assert newer.migrate(finish=True, fill={"After.born": lambda _: 1}).ended
    assert not newer.verify().findings


def test_a_field_under_a_former_name_is_removed_from_indexes_with_its_node() -> None:
    class Titled(Node, label="PERSON"):
        id: str
        name: Annotated[str, Indexed()]
        year: Annotated[int, Indexed()] = Field(validation_alias=AliasChoices("year", "born"))
        mail: Annotated[str | None, Unique()] = Field(None, validation_alias=AliasChoices("mail", "email"))

    store = SQLiteStore(":memory:")
    older, newer = Graph(store, [Person]), Graph(store, [Titled])
    older.put_many(Person(id=f"{at}", name="n", born=at, email=f"e{at}") for at in range(3))
    newer.migrate()
    newer.delete(Titled.ref("1"))
    newer.migrate(finish=True)
    assert people(newer.find(Titled, order="year")) == ["0", "2"]
    assert not newer.verify().findings


class Removing:
    """An older program that removes people and edges between the requests of a migration, and what it has removed."""

    def __init__(self, older: Graph, seed: int) -> None:
        self.older, self.random, self.is_busy = older, random.Random(seed), False
        self.people, self.known, self.bosses = set[str](), set[str](), set[str]()

    def between(self) -> None:
        if self.is_busy or self.random.random() > 0.15:
            return
        self.is_busy, at = True, self.random.randrange(7)
        match self.random.randrange(3):
            case 0 if len(self.people) < 2:
                self.older.delete(Person.ref(f"{at}"))
                self.people.add(f"{at}")
            case 1:
                self.older.disconnect(Knows, f"{at}", f"{at + 1}")
                self.known.add(f"{at}")
            case _:
                self.older.disconnect(Boss, f"{at}", "7")
                self.bosses.add(f"{at}")
        self.is_busy = False


@pytest.mark.simulation
@pytest.mark.parametrize("layout", ["adjacency list", "without a stream"])
def test_a_crash_at_any_request_brings_nothing_back(layout: str) -> None:
    for crash_at in (None, *range(1, 165, stride(53))):
        store = SQLiteStore(":memory:")
        older = opened(store, OLDER, layout, None)
        fill(older)
        newer, removing = Graph(store, NEWER, LAYOUTS[layout]), Removing(older, crash_at or 0)
        for finish, between in ((False, removing.between), (True, lambda: None)):
            try:
                Graph(Halting(store, between, crash_at), NEWER, LAYOUTS[layout]).migrate(finish=finish)
            except Crash:
                newer.migrate(finish=finish)
        assert newer.migrate(finish=True).ended
        left = [f"{at}" for at in range(8) if f"{at}" not in removing.people]
        assert people(newer.find(Found, order="born")) == people(newer.scan(Found)) == left
        pairs = [(one, f"{int(one) + 1}") for one in left if f"{int(one) + 1}" in left and one not in removing.known]
        assert sorted(tuple(sorted((each.source, each.target))) for each in newer.find(Friends, order="since")) == pairs
        bosses = [each.source for each in newer.find(OnlyBoss, order="since")]
        assert bosses == [one for one in left[:-1] if one not in removing.bosses]


class Letter(Node):
    id: str
    text: str
    sender: str
    weight: int


class Post(Node, label="LETTER"):
    id: str
    body: Annotated[str, Indexed()] = Field(validation_alias=AliasChoices("body", "text"))
    by: Annotated[str, Indexed()] = Field(validation_alias=AliasChoices("by", "sender"))
    grams: int = Field(validation_alias=AliasChoices("grams", "weight"))


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph(), "plain keys"])
def test_changes_under_a_former_name_are_not_hidden(layout: Any) -> None:
    """The field is renamed and gets an index at once, so its value is in index keys before it has its present name."""
    store = SQLiteStore(":memory:")
    before, after = layout, layout
    if layout == "plain keys":
        before, after = AdjacencyList(), AdjacencyList(indexes=[Index("ByGrams", "grams")])
    older, newer = Graph(store, [Letter], before), Graph(store, [Post], after)
    older.put_many(Letter(id=f"{at}", text="a", sender="b", weight=at) for at in range(3))
    newer.migrate()
    older.update(Letter, "1", text="later", sender="z", weight=10)
    assert newer.get(Post, "1") == Post(id="1", body="later", by="z", grams=10)
    assert newer.migrate(finish=True).ended
    assert [each.body for each in newer.find(Post, order="body")] == ["a", "a", "later"]
    assert [each.id for each in newer.find(Post, field("by") == "z")] == ["1"]
    assert newer.get(Post, "1") == Post(id="1", body="later", by="z", grams=10)
    assert not newer.verify().findings
