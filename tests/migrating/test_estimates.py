"""What a dry run estimates from a part of a large table, beside what the run takes."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Graph, Indexed, MaterializedGraph, Node
from adjoin.stores.sqlite import SQLiteStore


class Author(Node):
    id: str


class Chapter(Child[Author], key=("number",)):
    number: int
    title: str = "t"


class Story(Node):
    id: str
    title: str = "t"


class FoundStory(Node, label="STORY"):
    id: str
    title: Annotated[str, Indexed()] = "t"


class FoundChapter(Child[Author], key=("number",), label="CHAPTER"):
    number: int
    title: Annotated[str, Indexed()] = "t"


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()])
def test_an_estimate_is_of_the_whole_table(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read in the order of its keys, so its first items are of one class."""
    monkeypatch.setattr("adjoin.plans.migrating.planning._SAMPLE", 200)
    store = SQLiteStore(":memory:")
    Graph(store, [Author, Story], layout).put_many(
        [*(Author(id=f"{at}") for at in range(1200)), *(Story(id=f"{at}") for at in range(600))]
    )
    g = Graph(store, [Author, FoundStory], layout)
    planned = g.migrate(dry_run=True)
    assert not planned.is_exact
    assert planned.items == pytest.approx(600, rel=0.3)
    assert planned.wcu == pytest.approx(g.migrate(finish=True).wcu, rel=0.3)
    new = Graph(":memory:", [Author, FoundStory], layout.named("New"))
    into = g.migrate(into=new, dry_run=True)
    assert into.items == pytest.approx(1800, rel=0.3)
    assert into.wcu == pytest.approx(g.migrate(into=new, finish=True).wcu, rel=0.3)


def test_an_estimate_of_few_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.planning._SAMPLE", 20)
    store = SQLiteStore(":memory:")
    Graph(store, [Author, Chapter]).put_many(Chapter(parent="A", number=at) for at in range(500))
    planned = Graph(store, [Author, FoundChapter]).migrate(dry_run=True)
    assert planned.items == pytest.approx(500, rel=0.3)
