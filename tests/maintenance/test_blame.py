"""An edge that one rule cannot count is counted by all others, and set aside for that rule alone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Latest, Max, Node, Sum
from adjoin.plans.counting.ledger import PARTS
from adjoin.plans.maintenance.blaming import Blame
from tests.maintenance.simulation import stored
from tests.maintenance.test_simulation import unnamed_ranks

HUGE, TINY = Decimal("1E20"), Decimal("1E-20")
LONG = "x" * 520


class Crate(Node):
    id: str
    weight: Annotated[Decimal, Sum("In", field="weight")] = Decimal(0)
    price: Annotated[Decimal, Sum("In", field="price")] = Decimal(0)
    heaviest: Annotated[Decimal | None, Max("In", field="weight")] = None
    newest: Annotated[str | None, Latest("In", field="label", by="label")] = None
    newest_mark: Annotated[str | None, Latest("In", field="mark", by="mark")] = None
    things: Annotated[int, Count("In")] = 0


class Thing(Node):
    id: int


class In(Edge[Crate, Thing]):
    weight: Decimal = Decimal(0)
    price: Decimal = Decimal(0)
    label: str | None = None
    mark: str | None = None


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph(":memory:", [Crate, Thing, In]) as graph:
        graph.put_many([Crate(id="A"), Thing(id=1), Thing(id=2)])
        graph.connect(In, "A", 1, weight=HUGE, price=HUGE)
        graph.maintain(once=True)
        yield graph


def shown(graph: Graph, *names: str) -> tuple[object, ...]:
    crate = graph.get(Crate, "A")
    assert crate is not None
    return tuple(getattr(crate, name) for name in names)


def recorded(graph: Graph) -> set[str]:
    return {item["rule"]["S"] for item in stored(graph) if item["PK"]["S"] == "#=ASIDE"}


def kept(graph: Graph) -> list[dict[str, Any]]:
    """What is stored, but for how far the stream was read and the revisions of ledgers."""
    items = [item for item in stored(graph) if item["PK"]["S"] != "#=MAINTAIN"]
    for item in items:
        for part in set(PARTS) & item.keys():
            item[part]["M"].pop("r")
    return items


ALL = "weight", "price", "heaviest", "things"


def test_a_sum_that_cannot_be_stored_is_set_aside_alone(graph: Graph) -> None:
    graph.connect(In, "A", 2, weight=TINY, price=Decimal(3))
    (aside,) = graph.maintain(once=True).set_aside
    assert aside.rule == "CRATE.weight"
    assert "CRATE.weight cannot be stored" in aside.reason
    assert recorded(graph) == {"CRATE.weight"}
    assert shown(graph, *ALL) == (HUGE, HUGE + 3, HUGE, 2)
    # The same edge again changes nothing.
    before = kept(graph)
    graph.disconnect(In, "A", 2)
    graph.connect(In, "A", 2, weight=TINY, price=Decimal(3))
    graph.maintain(once=True)
    assert kept(graph) == before

    graph.update(In, "A", 2, weight=Decimal(7))
    assert graph.maintain(once=True).set_aside == ()
    assert shown(graph, *ALL) == (HUGE + 7, HUGE + 3, HUGE, 2)
    assert recorded(graph) == set()


def test_both_of_two_sums_that_cannot_be_stored(graph: Graph) -> None:
    graph.connect(In, "A", 2, weight=TINY, price=TINY)
    report = graph.maintain(once=True)
    assert {aside.rule for aside in report.set_aside} == recorded(graph) == {"CRATE.weight", "CRATE.price"}
    assert shown(graph, *ALL) == (HUGE, HUGE, HUGE, 2)
    graph.disconnect(In, "A", 2)
    graph.maintain(once=True)
    assert shown(graph, *ALL) == (HUGE, HUGE, HUGE, 1)
    assert recorded(graph) == set()


def test_what_was_added_before_is_taken_back_by_the_rule_that_cannot(graph: Graph) -> None:
    graph.connect(In, "A", 2, weight=Decimal(5), price=Decimal(5))
    graph.maintain(once=True)
    graph.update(In, "A", 2, weight=TINY, price=Decimal(6))
    assert {aside.rule for aside in graph.maintain(once=True).set_aside} == {"CRATE.weight"}
    assert shown(graph, *ALL) == (HUGE, HUGE + 6, HUGE, 2)


def test_a_value_that_no_key_has_room_for(graph: Graph) -> None:
    """A rank by a long label, with that label, is no sort key of DynamoDB's."""
    graph.connect(In, "A", 2, label=LONG, price=Decimal(3))
    (aside,) = graph.maintain(once=True).set_aside
    assert aside.rule == "CRATE.newest"
    assert "1024" in aside.reason
    assert recorded(graph) == {"CRATE.newest"}
    assert shown(graph, *ALL, "newest") == (HUGE, HUGE + 3, HUGE, 2, None)
    assert unnamed_ranks(graph) == []


def test_a_sum_and_a_value_without_room(graph: Graph) -> None:
    graph.connect(In, "A", 2, label=LONG, weight=TINY)
    reasons = {aside.rule: aside.reason for aside in graph.maintain(once=True).set_aside}
    assert reasons.keys() == recorded(graph) == {"CRATE.newest", "CRATE.weight"}
    assert "1024" in reasons["CRATE.newest"]
    assert "38 digits" in reasons["CRATE.weight"]
    assert shown(graph, *ALL, "newest") == (HUGE, HUGE, HUGE, 2, None)


def test_where_no_single_rule_is_to_blame_all_are_set_aside(graph: Graph) -> None:
    graph.connect(In, "A", 2, label=LONG, mark=LONG)
    graph.maintain(once=True)
    adding = {"weight", "price", "heaviest", "newest", "newest_mark", "things"}
    assert recorded(graph) == {f"CRATE.{name}" for name in adding}
    assert shown(graph, *ALL) == (HUGE, HUGE, HUGE, 1)
    graph.update(In, "A", 2, mark=None)
    graph.maintain(once=True)
    assert recorded(graph) == {"CRATE.newest"}
    assert shown(graph, *ALL) == (HUGE, HUGE, HUGE, 2)


def test_a_node_counted_anew(graph: Graph) -> None:
    graph.connect(In, "A", 2, weight=TINY, price=Decimal(3))
    graph.maintain(once=True)
    assert graph.verify(repair=True, threads=1).left == 1
    assert shown(graph, *ALL) == (HUGE, HUGE + 3, HUGE, 2)
    assert recorded(graph) == {"CRATE.weight"}


class Part(Node):
    id: str
    cost: Decimal = Decimal(0)
    grams: int = 0
    total: Annotated[Decimal, Sum("Uses", field="cost", recursive=True)] = Decimal(0)
    weight: Annotated[int, Sum("Uses", field="grams", recursive=True)] = 0


class Uses(Edge[Part, Part]):
    pass


def test_cycles_are_told_rule_by_rule() -> None:
    """What one recursive rule does not go over closes no cycle for it."""
    with Graph(":memory:", [Part, Uses]) as graph:
        graph.put_many([Part(id="bike"), Part(id="wheel", cost=HUGE, grams=5), Part(id="spoke", cost=TINY, grams=3)])
        graph.connect(Uses, "bike", "wheel")
        graph.maintain(once=True)
        graph.connect(Uses, "bike", "spoke")
        assert {aside.rule for aside in graph.maintain(once=True).set_aside} == {"PART.total"}
        graph.connect(Uses, "spoke", "bike")
        graph.maintain(once=True)

        def sums(id: str) -> tuple[Decimal, int]:
            part = graph.get(Part, id)
            assert part is not None
            return part.total, part.weight

        assert sums("bike") == (HUGE, 8)
        assert sums("spoke") == (HUGE, 0)
        records = {
            (item["rule"]["S"], item["near"]["S"]): item["reason"]["S"]
            for item in stored(graph)
            if item["PK"]["S"] == "#=ASIDE"
        }
        assert records.keys() == {("PART.total", "PART#bike"), ("PART.weight", "PART#spoke")}
        assert "digits" in records["PART.total", "PART#bike"]
        assert "cycle" in records["PART.weight", "PART#spoke"]

        graph.disconnect(Uses, "spoke", "bike")
        graph.update(Part, "spoke", cost=Decimal(2))
        assert graph.maintain(once=True).set_aside == ()
        assert sums("bike") == (HUGE + 2, 8)
        assert recorded(graph) == set()


def test_one_rule_after_the_other_is_tried_until_none_is_left() -> None:
    tried = Blame({"sum": "too long"}, [(), ("one",), ("one", "other")])
    found = []
    while tried.goes_on("refused"):
        found.append(tried.aside)
    assert found == [
        {"sum": "too long"} | dict.fromkeys(names, "refused") for names in ((), ("one",), ("one", "other"))
    ]
    assert tried.goes_on("refused") is False
