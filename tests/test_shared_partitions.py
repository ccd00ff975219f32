"""Classes whose edges lie among each other: what is not of the class that is asked for is neither shown nor counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Edge, Graph, Index, InvalidModel, Keys, Node, field
from adjoin.requests import Put, Query
from adjoin.tables import Projection


class Person(Node):
    id: str


class Club(Node):
    id: str


class Member(Edge[Person, Club]):
    year: int = 0


class Founder(Edge[Person, Club]):
    year: int = 0


class Guest(Edge[Person, Club]):
    year: int = 0


MODELS: list[Any] = [Person, Club, Member, Founder, Guest]
LAYOUTS: dict[str, AdjacencyList] = {
    # Nothing in the keys of the index tells of which class an edge is.
    "one reverse partition": AdjacencyList(
        reverse=Index("GSI1", "GSI1PK", "GSI1SK", partition="{target}", sort="{source}")
    ),
    "two classes share it": AdjacencyList(
        keys={
            Member: Keys(reverse_partition="{target}", reverse_sort="{source}"),
            Founder: Keys(reverse_partition="{target}", reverse_sort="{source}"),
        }
    ),
    # What one class begins with, the other begins with too.
    "one stretch of a partition": AdjacencyList(
        keys={Member: Keys(sort="E#{target.id}"), Founder: Keys(sort="E#F#{target.id}")}
    ),
    "each its own": AdjacencyList(),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_only_edges_of_the_class_count(name: str) -> None:
    with Graph(":memory:", MODELS, LAYOUTS[name]) as g:
        people = [f"p{number}" for number in range(12)]
        g.put_many(Member(source=id, target="c", year=number) for number, id in enumerate(people))
        g.put_many(Founder(source=id, target="c", year=number) for number, id in enumerate(people[:5]))
        g.put_many(Guest(source=id, target="c") for id in people[3:5])
        g.put_many(Member(source="p1", target=f"d{number}") for number in range(3))
        for model, count in ((Member, 12), (Founder, 5), (Guest, 2)):
            query = g.into("c", model)
            assert query.count() == len(list(query)) == count
            assert query.limit(2).count() == 2
            assert query.limit(4).count() == min(4, count)
            assert [type(edge) for edge in query] == [model] * count
            assert query.where(field("year") >= 0).count() == count
            paged: list[Any] = []
            token = None
            while True:
                page = query.page(limit=2, after=token)
                paged += page
                token = page.next
                if token is None:
                    break
            assert paged == list(query)
        assert g.out("p1", Member).count() == len(list(g.out("p1", Member))) == 4
        assert g.out("p1", Founder).count() == len(list(g.out("p1", Founder))) == 1
        assert g.out("p1", Member).limit(2).count() == 2
        assert g.out("p1", Guest).count() == 0


# --- collections -------------------------------------------------------------------------------


class Buyer(Node):
    id: str


class Order(Node, key=("buyer", "number")):
    buyer: str
    number: Annotated[int, Field(ge=1)]


class Ware(Node):
    id: str


class Line(Edge[Order, Ware]):
    amount: int = 1


class Remark(Child[Order], key=("at",)):
    at: date


@pytest.mark.parametrize("number", ["{number:06}", "{number}", "{number:sortable}"])
def test_a_collection_reads_what_belongs_to_its_node_and_shows_what_no_class_explains(number: str) -> None:
    keys: dict[type[Any], Keys] = {
        Buyer: Keys(partition="b#{id}", sort="b"),
        Order: Keys(partition="b#{buyer}", sort=f"o#{number}"),
    }
    with Graph(":memory:", [Buyer, Order, Ware, Line, Remark], AdjacencyList(keys=keys)) as g:
        orders = [Order(buyer="B", number=each) for each in (7, 70, 700)]
        g.put_many([Buyer(id="B"), *orders])
        g.put_many(Line(source=("B", 7), target=f"w{each}") for each in range(3))
        g.put_many(Line(source=("B", 70), target=f"w{each}") for each in range(9))
        g.put(Remark(parent=("B", 7), at=date(2026, 1, 2)))
        start = g._layout.items(orders[0])[0]["SK"]["S"]
        strange = [{"PK": "b#B", "SK": f"{start}{rest}"} for rest in ("#LINE#WARE#a#b", "#note")]
        beside = [{"PK": "b#B", "SK": f"{g._layout.items(orders[1])[0]['SK']['S']}#note"}, {"PK": "b#B", "SK": "x"}]
        g._store.execute(
            [Put("adjoin", {name: {"S": text} for name, text in each.items()}) for each in [*strange, *beside]]
        )
        around = g.collection(Order.ref(("B", 7)))
        with g.meter() as meter:
            assert around.node == orders[0]
        assert meter.requests == 1
        assert [each.target for each in around.edges] == ["w0", "w1", "w2"]
        assert [type(each) for each in around.children] == [Remark]
        assert around.others == strange
        assert len(list(around)) == around.count() == 7
        (request,) = g.explain(around).requests
        assert isinstance(request, Query)
        assert request.sort is not None
        assert request.sort.operands == ({"S": start},)
        assert sorted(map(str, g.collection(Buyer.ref("B")).others)) == sorted(map(str, [*strange, *beside]))
        assert g.delete(Order, ("B", 7))
        assert sorted(map(str, g.scan().others)) == sorted(map(str, [*strange, *beside]))


class Fan(Node):
    id: str


class Star(Node):
    id: str


class Likes(Edge[Fan, Star]):
    note: str = ""


class Hears(Edge[Fan, Star]):
    since: int = 0


class Thanks(Edge[Star, Fan]):
    pass


INDEX = Index("GSI1", "GSI1PK", "GSI1SK")


def arriving(likes: str, hears: str, projection: Projection, shards: int | None = None) -> AdjacencyList:
    keys: dict[type[Any], Keys] = {
        Star: Keys(indexes={"GSI1": ("STAR#{id}", "STAR")}),
        Likes: Keys(indexes={"GSI1": (likes, "LIKES#{source.id}")}),
        Hears: Keys(indexes={"GSI1": (hears, "HEARS#{source.id}")}),
        Thanks: Keys(indexes={"GSI1": ("STAR#{source.id}", "THANKS#{target.id}")}),
    }
    index = replace(INDEX, projection=projection, shards=shards)
    return AdjacencyList(reverse=None, indexes=[index], keys=keys, escape=True)


@pytest.mark.parametrize("projection", [Projection(), Projection("KEYS_ONLY")])
def test_all_edges_that_arrive_are_collected_from_a_declared_index(projection: Projection) -> None:
    made = arriving("STAR#{target.id}", "STAR#{target.id}", projection)
    with Graph(":memory:", [Fan, Star, Likes, Hears, Thanks], made) as g:
        edges = [
            *(Hears(source=f"f{each}", target="s", since=each) for each in range(2)),
            *(Likes(source=f"f{each}", target="s", note="n") for each in range(3)),
        ]
        g.put_many([Star(id="s"), *edges, Thanks(source="s", target="f1"), Likes(source="f1", target="other")])
        g._store.execute([Put("adjoin", {name: {"S": "STAR#s"} for name in ("PK", "SK", "GSI1PK", "GSI1SK")})])
        found = g.collection(Star.ref("s"), direction="into")
        with g.meter() as meter:
            assert found.edges == edges
        assert meter.requests == (1 if projection.kind == "ALL" else 2)
        assert found.node == Star(id="s")
        assert [each["PK"] for each in found.others] == ["STAR#s"]
        assert len(found.page(limit=3)) == 3
        assert g.collection(Star.ref("none"), direction="into").edges == []


@pytest.mark.parametrize(
    ("likes", "hears", "shards"),
    [("STAR#{target.id}", "HEARS#{target.id}", None), ("STAR#{target.id}#{shard}", "STAR#{target.id}#{shard}", 3)],
)
def test_edges_that_arrive_in_several_partitions_are_read_by_class(likes: str, hears: str, shards: int | None) -> None:
    made = arriving(likes, hears, Projection(), shards)
    with Graph(":memory:", [Fan, Star, Likes, Hears, Thanks], made) as g:
        message = "no declared index has all edges that arrive at a Star in one partition .* read each class with into"
        with pytest.raises(InvalidModel, match=message):
            g.collection(Star.ref("s"), direction="into")
