"""Tables of edges that other programs made, whose keys are numbers, or a partition key only.

    Follows    user (N), follows (N)      edges between numbers, found from the target by an index over the same keys
    Grants     id                         edges in a table with a partition key only, with indexes over both ends

The store alone fills these tables; then adjoin reads, changes and searches them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidValue,
    Keys,
    Node,
    field,
)
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked
from tests.designs.table_of_others import filled, item, paged, stored
from tests.servers.open import Stores

# --- edges between numbers ---------------------------------------------------------------------


class Person(Node):
    id: int
    name: str = ""


class Follows(Edge[Person, Person]):
    since: int = 0


FOLLOWS = AdjacencyList(
    table="Follows",
    partition_key="user",
    sort_key="follows",
    types={"user": "N", "follows": "N"},
    reverse=Index("Followers", "follows", "user"),
    keys={Person: Keys(sort="{id}"), Follows: Keys(sort="{target}")},
)

FOLLOWED = [2, 9, 10, 100]


@pytest.fixture(params=STORES)
def follows(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    known = [item(user=1, follows=each, since=each) for each in (*FOLLOWED, -3)]
    known += [item(user=7, follows=10, since=1), item(user=1, follows=1, name="Ann"), item(user=10, follows=10)]
    with filled(request.param, servers, [Person, Follows], FOLLOWS, known) as g:
        yield g


def test_edges_are_found_from_both_ends_in_the_order_of_numbers(follows: Graph) -> None:
    g = follows
    assert [each.target for each in asked(g, lambda: list(g.out(1, Follows)), 1)] == [-3, *FOLLOWED]
    assert [each.source for each in asked(g, lambda: list(g.into(10, Follows)), 1)] == [1, 7]
    assert [each.target for each in g.out(1, Follows).reverse()] == [100, 10, 9, 2, -3]
    assert [each.target for each in asked(g, lambda: list(g.out(1, Follows).between(3, 50)), 1)] == [9, 10]
    assert [each.target for each in g.out(1, Follows).between(None, 2)] == [-3, 2]
    assert [each.target for each in g.out(1, Follows).between(10, None)] == [10, 100]
    assert [each.source for each in g.into(10, Follows).between(2, 8)] == [7]
    assert [each.target for each in g.out(1, Follows).within(target=9)] == [9]
    assert [each.target for each in paged(g.out(1, Follows), 2)] == [-3, *FOLLOWED]
    assert [each.source for each in paged(g.into(10, Follows), 1)] == [1, 7]
    assert g.out(1, Follows).count() == 5
    assert g.edge(Follows, 1, 10) == Follows(source=1, target=10, since=10)
    assert [node.id for _, node in g.out(1, Follows).nodes() if node is not None] == [10]
    assert [each.target for each in g.out(1, Follows).where(field("since") > 9)] == [10, 100]
    found = g.find(Follows, (field("source") == 1) & (field("target") > 9))
    assert [each.target for each in asked(g, lambda: list(found), 1)] == [10, 100]
    assert {(each.source, each.target) for each in g.scan(Follows)} == {(1, each) for each in (*FOLLOWED, -3)} | {
        (7, 10)
    }
    assert [each.id for each in g.scan(Person)] in ([1, 10], [10, 1])
    around = g.collection(Person.ref(1))
    assert (around.node, len(around.edges)) == (Person(id=1, name="Ann"), 5)
    with pytest.raises(InvalidValue, match="the sort key 'follows' of Follows is a number, which has no prefix"):
        g.out(1, Follows).begins_with("1")
    with pytest.raises(InvalidValue, match="there is nothing between 50 and 9; give the lower value first"):
        g.out(1, Follows).between(50, 9)


def test_edges_are_written_and_go_with_their_node(follows: Graph) -> None:
    g = follows
    asked(g, lambda: g.put(Follows(source=7, target=-1, since=4)), 1)
    assert stored(g, 7, -1) == item(user=7, follows=-1, since=4)
    g.update(Follows, 7, -1, since=5)
    assert [each.since for each in g.out(7, Follows)] == [5, 1]
    g.disconnect(Follows, 7, -1)
    assert g.delete(Person, 10)
    assert [each.target for each in g.out(1, Follows)] == [-3, 2, 9, 100]
    assert list(g.out(7, Follows)) == []
    with pytest.raises(InvalidKey, match="from 1 to itself would have the key of the Person itself; a key that is not"):
        g.put(Follows(source=1, target=1))


def test_a_delete_that_needs_a_record_is_refused_before_it_begins(follows: Graph) -> None:
    g = follows
    g.put_many([Follows(source=5, target=1000 + number) for number in range(120)])
    with pytest.raises(
        InvalidKey, match=r"Person 5 has 120 edges, .* the key 'user' of the table is a number; disconn"
    ):
        g.delete(Person, 5)
    assert g.out(5, Follows).count() == 120
    for number in range(30):
        g.disconnect(Follows, 5, 1000 + number)
    assert g.delete(Person, 5)
    assert g.out(5, Follows).count() == 0


# --- edges in a table with a partition key only ------------------------------------------------


class Staff(Node):
    id: int
    name: str = ""


class Grant(Edge[Staff, Staff], key=("right",)):
    right: str
    rank: int = 0


GRANTS = AdjacencyList(
    table="Grants",
    partition_key="id",
    sort_key=None,
    reverse=None,
    keys={
        Staff: Keys(partition="staff-{id}"),
        Grant: Keys(
            partition="{source.id}>{target.id}>{right}",
            indexes={"ByGiver": "{source.id}", "ByTaker": ("{target.id}", "{rank}")},
        ),
    },
    indexes=[
        Index("ByGiver", "giver", types={"giver": "N"}),
        Index("ByTaker", "taker", "rank#", types={"taker": "N", "rank#": "N"}),
    ],
)


def grant(giver: int, taker: int, right: str, rank: int) -> Item:
    return item(**{"id": f"{giver}>{taker}>{right}", "giver": giver, "taker": taker, "rank": rank, "rank#": rank})


GRANTED = [(1, 2, "read", 10), (1, 3, "read", 9), (1, 2, "write", 2), (3, 2, "read", -1), (2, 2, "read", 5)]


@pytest.mark.parametrize("where", STORES)
def test_edges_in_partitions_of_their_own(where: str, servers: Stores) -> None:
    known = [grant(*each) for each in GRANTED] + [item(id=f"staff-{number}", name="x") for number in (1, 2, 3)]
    with filled(where, servers, [Staff, Grant], GRANTS, known) as g:
        found = [(each.source, each.target, each.right, each.rank) for each in g.into(2, Grant)]
        assert found == [GRANTED[3], GRANTED[2], GRANTED[4], GRANTED[0]]
        assert {(each.target, each.right) for each in g.out(1, Grant)} == {(2, "read"), (3, "read"), (2, "write")}
        assert asked(g, lambda: g.edge(Grant, 1, 2, right="write"), 1) == Grant(
            source=1, target=2, right="write", rank=2
        )
        assert [each.rank for each in paged(g.into(2, Grant), 2)] == [-1, 2, 5, 10]
        assert [each.rank for each in g.into(2, Grant).between(2, 9)] == [2, 5]
        assert (g.out(1, Grant).count(), g.into(3, Grant).count()) == (3, 1)
        assert len(paged(g.out(1, Grant), 1)) == 3
        assert g.scan(Grant).count() == 5
        g.put(Grant(source=3, target=1, right="own", rank=7))
        assert stored(g, "3>1>own") == grant(3, 1, "own", 7)
        g.update(Grant, 3, 1, right="own", rank=8)
        assert stored(g, "3>1>own") == grant(3, 1, "own", 8)
        assert g.delete(Staff, 2)
        assert {(each.source, each.target) for each in g.scan(Grant)} == {(1, 3), (3, 1)}
        g.connect(Grant, 1, 3, right="write")
        with g.transaction() as tx:
            tx.disconnect(Grant, 1, 3, right="read")
        assert [each.right for each in g.out(1, Grant)] == ["write"]
        g.put_many([Grant(source=3, target=1, right=f"r{number}") for number in range(120)])
        with pytest.raises(
            InvalidKey, match=r"Staff 3 has 12\d edges, .*: the table has the partition key 'id' only; disc"
        ):
            g.delete(Staff, 3)
        assert g.out(3, Grant).count() == 121
