"""Finding on both stores and both layouts, with requests counted."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Index, Indexed, InvalidKey, Node, field
from tests.verbs.conftest import Everywhere


class Person(Node):
    id: str
    city: Annotated[str, Indexed()]
    age: Annotated[int | None, Indexed()] = None


class Knows(Edge[Person, Person]):
    since: Annotated[int, Indexed()]
    how: Annotated[str | None, Indexed()] = None


PEOPLE = [
    Person(id=str(at), city=("Porto", "Faro", "Braga")[at % 3], age=at * 10 if at % 4 else None) for at in range(9)
]
EITHER = (field("city") == "Porto") | (field("age") > 40)


@pytest.fixture
def people(everywhere: Everywhere) -> Any:
    graph = everywhere([Person, Knows])
    graph.put_many(PEOPLE)
    graph.put_many([Knows(source="0", target=str(at), since=at, how="work" if at < 3 else None) for at in range(1, 6)])
    return graph


def test_branches(people: Any) -> None:
    query = people.find(Person, EITHER)
    with people.meter() as meter:
        found = [each.id for each in query]
    assert (meter.requests, meter.rounds) == (2, 1)
    assert found == ["0", "3", "6", "5", "7"]
    with people.meter() as meter:
        first = query.page(limit=4)
        rest = query.page(limit=4, after=first.next)
    assert meter.requests == 3, "the second page does not read the first branch again"
    assert [each.id for each in (*first, *rest)] == found
    assert rest.next is None
    assert query.count() == 5
    assert [each.id for each in query.reverse()] == found[::-1]
    assert len(people.explain(getattr(query, "_inner", query).page).requests) == 2

    one_field = people.find(Person, (field("age") < 20) | (field("age").between(60, 70)) | (field("age") > 65))
    with people.meter() as meter:
        assert [each.age for each in one_field] == [10, 60, 70]
    assert meter.requests == 2

    edges = people.find(Knows, (field("how") == "work") | (field("since") >= 2))
    assert [edge.since for edge in edges] == [1, 2, 3, 4, 5]
    assert [node.id for _, node in edges.nodes("target")] == ["1", "2", "3", "4", "5"]


class Post(Node):
    id: str
    title: str = ""
    tags: Annotated[list[str], Indexed(elements=True)] = []


def test_elements(everywhere: Everywhere) -> None:
    graph = everywhere([Post])

    def tagged(tag: str) -> Any:
        return graph.find(Post, field("tags").contains(tag))

    with graph.meter() as meter:
        graph.put(Post(id="1", tags=["python", "aws", "python"]))
    assert (meter.requests, meter.wcu) == (2, 2 * 3 + 2), "one read, and one transaction of the node and two entries"
    with graph.meter() as meter:
        graph.add(Post(id="2", tags=["aws"]))
    assert meter.requests == 1
    graph.put_many([Post(id="3", tags=["python"]), Post(id="4")])
    with graph.meter() as meter:
        assert [post.id for post in tagged("python")] == ["1", "3"]
    assert (meter.requests, meter.rcu) == (1, 0.5)
    with graph.meter() as meter:
        assert tagged("aws").count() == 2
    assert meter.requests == 1
    page = tagged("aws").page(limit=1)
    assert [post.id for post in (*page, *tagged("aws").page(limit=1, after=page.next))] == ["1", "2"]
    with graph.meter() as meter:
        both = field("tags").contains("python") & field("tags").contains("aws")
        assert [post.id for post in graph.find(Post, both)] == ["1"]
    assert meter.requests == 1
    with graph.meter() as meter:
        either = field("tags").contains("python") | field("tags").contains("aws")
        assert [post.id for post in graph.find(Post, either)] == ["1", "3", "2"]
    assert (meter.requests, meter.rounds) == (2, 1)
    inner: Any = getattr(graph, "_inner", graph)
    explained = graph.explain(inner.update, Post, "3", field("tags").append("new"))
    with graph.meter() as meter:
        graph.update(Post, "3", field("tags").append("new"))
    assert meter.requests == len(explained.requests) == 2
    with graph.transaction() as t:
        t.update(Post, "1", field("tags").discard(["python"]))
        t.put(Post(id="2", tags=["new"], title="t"))
    assert [post.id for post in tagged("python")] == ["3"]
    assert [post.id for post in tagged("new")] == ["2", "3"]
    graph.delete(Post, "3")
    assert [(post.id, post.title) for post in tagged("new")] == [("2", "t")]


class Lot(Node):
    id: str
    warehouse: str
    shipped: int
    number: int


def test_an_order_of_several_fields(everywhere: Everywhere) -> None:
    """One request to an index that has them in this order."""
    lots = [Lot(id=str(at), warehouse="AB"[at % 2], shipped=at % 3, number=9 - at) for at in range(9)]
    layout = AdjacencyList(indexes=[Index("ByDay", "warehouse", ("shipped", "number"))])
    g = everywhere([Lot], layout=layout)
    g.put_many(lots)
    query = g.find(Lot, field("warehouse") == "A", order=("shipped", "number"))
    with g.meter() as meter:
        found = [(each.shipped, each.number) for each in query]
    assert (meter.requests, found) == (1, sorted((lot.shipped, lot.number) for lot in lots if lot.warehouse == "A"))
    assert [each.number for each in query.reverse().limit(2)] == [number for _, number in found[:-3:-1]]
    with pytest.raises(InvalidKey, match="ByDay"):
        g.find(Lot, field("warehouse") == "A", order=("number", "shipped"))
