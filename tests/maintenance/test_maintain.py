"""`maintain`: what it applies, what it reports, and how little it writes."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Edge,
    Graph,
    InvalidModel,
    Node,
    Unique,
    WatchedRound,
)
from adjoin.aggregates import Copy, Count, Latest, Sum, Top
from adjoin.requests import Put, TransactWrite, Update
from tests.maintenance.models import (
    MODELS,
    Customer,
    Follows,
    Invoice,
    Part,
    Person,
    Placed,
    Uses,
)
from tests.maintenance.simulation import stored
from tests.maintenance.test_simulation import check


def test_counts_and_sums(g: Graph) -> None:
    g.put(Customer(id="C1"))
    for number in range(3):
        g.put(Placed(source="C1", target=f"I{number}", balance=Decimal("0.1")))
    report = g.maintain(once=True)
    assert g.get(Customer, "C1").owed == Decimal("0.3")  # type: ignore[union-attr]
    # The node, three edges, and three changes of the node by this: its generation, its sums, and then its extremes.
    assert (report.changes, report.nodes, report.set_aside) == (7, 1, ())
    assert g.maintain(once=True).edges == 0
    g.put(Placed(source="C1", target="I9"))
    assert g.maintain(once=True).changes > 0
    assert g.maintain(once=True).changes == 0, "how far it was read is stored with what was applied"


def test_a_large_number_of_edges_is_one_change_of_the_node(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.maintain(once=True)
    g.put_many(Placed(source="C1", target=f"I{number}", balance=Decimal(1)) for number in range(300))
    g.maintain(once=True)
    assert g.get(Customer, "C1").invoices == 300  # type: ignore[union-attr]
    check(g)


# --- cycles and what cannot be applied --------------------------------------------------------


def test_a_cycle_is_reported_and_not_followed(g: Graph) -> None:
    g.put_many(Part(id=f"P{number}", cost=1) for number in range(3))
    g.put_many([Uses(source="P0", target="P1"), Uses(source="P1", target="P2")])
    g.maintain(once=True)
    g.put(Uses(source="P2", target="P0"))
    report = g.maintain(once=True)
    assert {each.rule for each in report.set_aside} == {"PART.total", "PART.below", "PART.dearest"}
    assert "it would close a cycle" in report.set_aside[0].reason
    assert g.get(Part, "P0").total == 2  # type: ignore[union-attr]
    # It is looked at again with every edge that comes, and stays what it is.
    g.put(Uses(source="P2", target="P9"))
    report = g.maintain(once=True)
    assert (report.set_aside, report.edges) == ((), 3), "one edge, and two that lead to it"
    g.disconnect(Uses, "P0", "P1")
    assert g.maintain(once=True).set_aside == ()
    assert g.get(Part, "P2").total == 1  # type: ignore[union-attr]
    check(g)


class Box(Node):
    id: str
    weight: int = 0
    total: Annotated[int, Sum("Inside", field="weight", recursive=True)] = 0


class Inside(Edge[Box, Box]):
    pass


def test_what_closed_a_cycle_is_applied_once_it_does_not_though_no_value_changes() -> None:
    """Nothing weighs anything, so that no node tells that another edge has gone."""
    with Graph(":memory:", [Box, Inside]) as g:
        g.put_many(Box(id=id) for id in "abc")
        g.put_many([Inside(source="a", target="b"), Inside(source="b", target="c")])
        g.maintain(once=True)
        g.put(Inside(source="c", target="a"))
        assert [each.rule for each in g.maintain(once=True).set_aside] == ["BOX.total"]
        g.disconnect(Inside, "a", "b")
        g.maintain(once=True)
        assert g.health().set_aside == 0
        g.update(Box, "a", weight=5)
        g.maintain(once=True)
        assert [box and box.total for box in g.get_many(Box, "abc")] == [0, 5, 5]


def test_what_cannot_be_applied_is_set_aside_and_blocks_nothing(g: Graph) -> None:
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1", balance=Decimal(1))])
    (item,) = (item for item in stored(g) if item["SK"]["S"].startswith("PLACED"))
    g._store.execute((Put("adjoin", item | {"balance": {"S": "much"}}),))
    g.put(Placed(source="C1", target="I2", balance=Decimal(4)))
    report = g.maintain(once=True)
    assert "CUSTOMER.owed" in {each.rule for each in report.set_aside}
    assert g.get(Customer, "C1").owed == 4  # type: ignore[union-attr]
    g._store.execute((Put("adjoin", item),))
    g.maintain(once=True)
    check(g)


def test_sums_that_dynamodb_cannot_hold_are_set_aside(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.put(Placed(source="C1", target="I1", balance=Decimal("1e100")))
    g.put(Placed(source="C1", target="I2", balance=Decimal("1e-20")))
    report = g.maintain(once=True)
    assert report.set_aside
    assert g.get(Customer, "C1") is not None


# --- declarations ------------------------------------------------------------------------------


def test_declarations_that_cannot_be_kept() -> None:
    class Bare(Node):
        id: str
        count: Annotated[int, Count("Loop")]

    class Loop(Edge[Bare, Bare]):
        pass

    with pytest.raises(InvalidModel, match="give it a default"):
        Graph(":memory:", [Bare, Loop])

    class Listed(Node):
        id: str
        count: Annotated[int, Count("Ring"), Unique()] = 0

    class Ring(Edge[Listed, Listed]):
        pass

    with pytest.raises(
        InvalidModel, match=r"Listed\.count is a managed field, which only adjoin changes; remove Unique"
    ):
        Graph(":memory:", [Listed, Ring])


class Root(Node):
    id: str
    day: int = 0
    word: str | None = None
    newest: Annotated[str | None, Latest("Under", field="word", by="day", recursive=True)] = None
    days: Annotated[list[int], Top("Under", field="day", k=3, recursive=True)] = []


class Under(Edge[Root, Root]):
    pass


def test_recursive_latest_and_top() -> None:
    with Graph(":memory:", [Root, Under]) as g:
        g.put_many(Root(id=str(number), day=number % 3, word=f"w{number}") for number in range(6))
        g.put_many(Under(source=str(number // 2), target=str(number)) for number in range(2, 6))
        g.put(Under(source="0", target="1"))
        g.maintain(once=True)
        root = g.get(Root, "0")
        assert root is not None
        assert (root.newest, root.days) == ("w5", [2, 2, 1])
        g.update(Root, "5", day=0)
        g.maintain(once=True)
        assert g.get(Root, "0").newest == "w2"  # type: ignore[union-attr]


# --- celebrities -------------------------------------------------------------------------------


@pytest.mark.parametrize(("edges", "least", "most"), [(97, 1, 1), (98, 2, 2), (1000, 11, 15)])
def test_a_celebrity_is_written_once_for_many_edges(g: Graph, edges: int, least: int, most: int) -> None:
    """Deltas of one batch are added up, so the node is no hot item, and a change costs a fraction of a request."""
    g.put(Person(id="star"))
    g.maintain(once=True)
    g.put_many(Follows(source=f"N{number}", target="star") for number in range(edges))
    counted: list[int] = []

    def count(round: WatchedRound) -> None:
        for request in round.requests:
            writes = request.writes if isinstance(request, TransactWrite) else ()
            counted.append(sum(isinstance(each, Update) and each.key["PK"]["S"] == "PERSON#star" for each in writes))

    with g.watch(after=count):
        g.maintain(once=True)
    assert g.get(Person, "star").followers == edges  # type: ignore[union-attr]
    # 97 edges in a transaction of 100 items.
    assert least <= sum(counted) <= most


def test_parallel_and_ordered_edges() -> None:
    class Reader(Node):
        id: str
        name: str = ""
        loans: Annotated[int, Count("Loan")] = 0
        last: Annotated[int | None, Latest("Loan", by="year")] = None
        wishes: Annotated[int, Sum("Wish", field="rank")] = 0

    class Book(Node):
        id: str
        loans: Annotated[int, Count("Loan")] = 0

    class Loan(Edge[Reader, Book], key=("year",), order="year"):
        year: int
        reader: Annotated[str, Copy("source.name")] = ""

    class Wish(Edge[Reader, Book], order="rank"):
        rank: int

    with Graph(":memory:", [Reader, Book, Loan, Wish]) as g:
        g.put_many([Reader(id="R#1", name="Ann"), Book(id="B|1")])
        g.put_many(Loan(source="R#1", target="B|1", year=year) for year in (2001, 1999, 2010))
        g.put_many(Wish(source="R#1", target=f"B{rank}", rank=rank) for rank in range(4))
        g.maintain(once=True)
        assert g.get(Reader, "R#1") == Reader(id="R#1", name="Ann", loans=3, last=2010, wishes=6)
        assert g.get(Book, "B|1") == Book(id="B|1", loans=3)
        g.disconnect(Loan, "R#1", "B|1", year=2010)
        g.update(Wish, "R#1", "B2", rank=-5)
        g.update(Reader, "R#1", name="Bea")
        g.maintain(once=True)
        assert g.get(Reader, "R#1") == Reader(id="R#1", name="Bea", loans=2, last=2001, wishes=-1)
        assert {edge.reader for edge in g.into("B|1", Loan)} == {"Bea"}


def test_a_layout_without_a_reverse_index_cannot_count_at_targets() -> None:
    with pytest.raises(InvalidModel, match="no reverse index"):
        Graph(":memory:", MODELS, AdjacencyList(reverse=None))


# --- elsewhere ---------------------------------------------------------------------------------


def test_awaited() -> None:
    async def main() -> None:
        async with AsyncGraph(":memory:", MODELS) as g:
            await g.put(Customer(id="C1"))
            await g.put(Placed(source="C1", target="I1"))
            report = await g.maintain(once=True)
            assert report.nodes == 1
            customer = await g.get(Customer, "C1")
            assert customer is not None
            assert customer.invoices == 1

    asyncio.run(main())


def test_tenants_keep_their_counts_apart(tmp_path: Any) -> None:
    path = tmp_path / "graph.db"
    with Graph(path, MODELS, tenant="one") as one, Graph(path, MODELS, tenant="two") as two:
        for g in (one, two):
            g.put(Customer(id="C1"))
        one.put(Placed(source="C1", target="I1"))
        two.maintain(once=True)
        one.maintain(once=True)
        assert one.get(Customer, "C1").invoices == 1  # type: ignore[union-attr]
        assert two.get(Customer, "C1").invoices == 0  # type: ignore[union-attr]


def test_the_position_stays_where_nothing_happens(g: Graph) -> None:
    g.put(Customer(id="C1"))
    g.maintain(once=True)
    before = stored(g)
    for _ in range(3):
        g.maintain(once=True)
    assert stored(g) == before


def test_sum_over_a_filtered_far_end(g: Graph) -> None:
    g.put_many([Customer(id="C1"), Invoice(id="I1", weight=4), Placed(source="C1", target="I1")])
    g.maintain(once=True)
    assert g.get(Customer, "C1").weight == 4  # type: ignore[union-attr]
    g.update(Invoice, "I1", kind="y")
    g.maintain(once=True)
    assert g.get(Customer, "C1").weight == 0  # type: ignore[union-attr]
