"""What one edge contributes by each kind of aggregate, and what contributes nothing because a value is missing."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Avg, Count, Edge, Graph, InvalidValue, Latest, Max, Node, Sum, Top, TransactionCanceled
from adjoin.errors import CancellationReason
from adjoin.layouts.interface import REVISION
from adjoin.plans.counting.edge_state import contributions, reason_of
from adjoin.plans.counting.ledger import revision_of
from adjoin.values import Item
from tests.maintenance.models import PEOPLE
from tests.maintenance.simulation import stored


class Order(Node):
    id: str
    cost: Annotated[int, Sum("Line", field="price", quantity="pieces")] = 0
    pieces: Annotated[int, Count("Line", quantity="pieces")] = 0
    mean: Annotated[float | None, Avg("Line", field="price")] = None
    last: Annotated[str | None, Latest("Line", field="note", by="day")] = None
    dearest: Annotated[int | None, Max("Line", field="price")] = None
    top: Annotated[list[int], Top("Line", field="prices", k=2)] = []


class Good(Node):
    id: str


class Line(Edge[Order, Good]):
    price: int | None = None
    pieces: int | None = None
    note: str | None = None
    day: int | None = None
    prices: list[int] = []


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    # A price without a number of pieces costs nothing, and is a price all the same.
    ({"price": 5}, {"mean": number(5), "mean:n": number(1), "dearest": [number(5)]}),
    ({"pieces": 3}, {"pieces": number(3)}),
    (
        {"price": 5, "pieces": 3},
        {
            "cost": number(15),
            "pieces": number(3),
            "mean": number(5),
            "mean:n": number(1),
            "dearest": [number(5)],
        },
    ),
    ({"note": "x"}, {}),
    ({"day": 3}, {}),
    ({"note": "x", "day": 3}, {"last": [{"S": "x"}]}),
    ({"prices": [1, 7, 3]}, {"top": [number(7), number(3)]}),
]


@pytest.mark.parametrize(("fields", "wanted"), CASES)
def test_what_an_edge_contributes(fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    with Graph(":memory:", [Order, Good, Line]) as g:
        (group,) = g._layout.rules.groups
        (item,) = g._layout.items(Line(source="o", target="g", **fields))
        found, aside = contributions(g._layout, group, item)
        assert aside == {}
        assert {
            name.removeprefix("ORDER."): [each["M"]["value"] for each in value["L"]] if "L" in value else value
            for name, value in found.items()
        } == wanted
        assert contributions(g._layout, group, None) == ({}, {})


def test_an_edge_that_contributes_nothing_leaves_no_ledger() -> None:
    with Graph(":memory:", [Order, Good, Line]) as g:
        g.put_many([Order(id="o"), Line(source="o", target="g", note="x")])
        g.maintain(once=True)
        assert [item for item in stored(g) if "=E#" in item["SK"]["S"]] == []
        assert g.get(Order, "o") == Order(id="o")


class Piece(Node):
    id: str
    weight: int | None = None
    mean: Annotated[float | None, Avg("Has", field="weight", recursive=True)] = None


class Has(Edge[Piece, Piece]):
    pass


def test_a_mean_over_all_hops_counts_each_value_once() -> None:
    """A piece that weighs nothing known counts as none, and what it has counts all the same."""
    with Graph(":memory:", [Piece, Has]) as g:
        g.put_many([Piece(id="a"), Piece(id="b", weight=10), Piece(id="c"), Piece(id="d", weight=2)])
        g.put_many([Piece(id="e", weight=4), Piece(id="f", weight=100)])
        g.put_many(Has(source=source, target=target) for source, target in ("ab", "ac", "cd", "ce", "bf"))
        g.maintain(once=True)
        found = [g.get(Piece, id) for id in "abcdef"]
        assert [piece and piece.mean for piece in found] == [29.0, 100.0, 3.0, None, None, None]


def test_a_reason_shows_the_value_that_is_no_number() -> None:
    """Also where it is not the first that is added up: what a piece weighs, and then what is below it."""
    with Graph(":memory:", [Piece, Has]) as g:
        (group,) = g._layout.rules.groups
        (edge,) = g._layout.items(Has(source="a", target="b"))
        (far,) = g._layout.items(Piece(id="b", weight=5))
        names = {rule.name: rule.terms[1].attribute or "" for rule in group.rules if not rule.counts}
        assert names
        _, aside = contributions(g._layout, group, edge, {**far, **{key: {"S": "many"} for key in names.values()}})
        assert aside == {
            name: f"{name} adds up numbers, but {{'S': 'many'}} is not a number; correct the item" for name in names
        }


def test_a_reason_is_what_the_store_said_of_the_items_that_failed() -> None:
    reasons = [
        CancellationReason("None"),
        CancellationReason("ValidationError", message="too large"),
        CancellationReason("None"),
        CancellationReason("ItemCollectionSizeLimitExceeded"),
    ]
    assert reason_of(TransactionCanceled("no", reasons)) == "too large; ItemCollectionSizeLimitExceeded"
    assert reason_of(InvalidValue("not a number")) == "not a number"
    assert reason_of(KeyError("x")) == "KeyError: 'x'"


def test_each_ledger_has_a_revision_of_its_own() -> None:
    """One beside a far node has it for itself, and one beside an edge has one for each of its parts."""
    with Graph(":memory:", PEOPLE) as g:
        for group in g._layout.rules.groups:
            revision = {"S": "r"}
            item: Item = {REVISION: revision} if group.reads_far else {group.part: {"M": {"r": revision}}}
            assert revision_of(group, item) == revision
            assert revision_of(group, {}) is None
            assert revision_of(group, None) is None
