"""Classes whose edges lie among each other: what is not of the class that is asked for is neither shown nor counted."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, Keys, Node, field


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
