"""Quantities of edges, multiplied along paths: a bill of materials that is kept up to date."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import Edge, Graph, InvalidModel, MaterializedGraph, Node
from adjoin.aggregates import Avg, Count, Max, Sum


class Part(Node):
    id: str
    cost: Decimal | None = Decimal(1)
    price: Annotated[Decimal, Sum("Uses", field="cost", recursive=True, quantity="number")] = Decimal(0)
    pieces: Annotated[int, Count("Uses", recursive=True, quantity="number")] = 0
    direct: Annotated[int, Count("Uses", quantity="number", consistency="transaction")] = 0


class Uses(Edge[Part, Part]):
    number: int | None = 1


def bill(g: Graph, id: str) -> tuple[Decimal, int]:
    """The price and the number of all pieces below a part, by a plain loop over paths."""
    price, pieces = Decimal(0), 0
    for edge in g.out(id, Uses):
        if edge.number is None:
            continue
        part = g.get(Part, edge.target)
        below = (Decimal(0), 0) if part is None else bill(g, part.id)
        price += edge.number * (below[0] + ((part.cost if part else None) or 0))
        pieces += edge.number * (1 + below[1])
    return price, pieces


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_a_bill_of_materials_follows_every_change(layout: Any) -> None:
    chance = random.Random(4)
    with Graph(":memory:", [Part, Uses], layout) as g:
        for _ in range(120):
            low, high = sorted(chance.sample(range(7), 2))
            match chance.randrange(5):
                case 0:
                    g.put(Part(id=f"P{low}", cost=chance.choice([None, Decimal(chance.randrange(90)) / 10])))
                case 1:
                    g.disconnect(Uses, f"P{low}", f"P{high}")
                case 2 if chance.random() < 0.3:
                    g.delete(Part, f"P{low}")
                case _:
                    g.put(Uses(source=f"P{low}", target=f"P{high}", number=chance.choice([None, 0, 1, 2, 5])))
            if chance.random() < 0.2:
                g.maintain(once=True)
        g.maintain(once=True)
        parts = list(g.scan(Part))
        assert parts
        assert [(part.price, part.pieces) for part in parts] == [bill(g, part.id) for part in parts]
        assert [part.direct for part in parts] == [
            sum(edge.number or 0 for edge in g.out(part, Uses)) for part in parts
        ]
        assert [each for each in g.verify(threads=1).findings if each.kind != "dangling"] == []


def test_a_product_with_too_many_digits_is_set_aside() -> None:
    with Graph(":memory:", [Part, Uses]) as g:
        g.put_many([Part(id="P1"), Part(id="P2", cost=Decimal("1." + "7" * 30)), Part(id="P3")])
        g.put_many([Uses(source="P1", target="P2", number=10**20 + 1), Uses(source="P1", target="P3", number=2)])
        reasons = [each.reason for each in g.maintain(once=True).set_aside]
        assert any("digits" in reason for reason in reasons)
        part = g.get(Part, "P1")
        assert part is not None
        assert (part.price, part.pieces) == (Decimal(2), 10**20 + 3)


def test_quantities_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidModel, match="only a Count or a Sum over one edge class can have quantity=; take it out"):
        Max("Uses", field="cost", quantity="number")
    with pytest.raises(InvalidModel, match="only a Count or a Sum over one edge class can have quantity="):
        Avg("Uses", "Uses", field="cost", quantity="number")

    class Thing(Node):
        id: str
        cost: int = 0
        name: Annotated[int, Count("Holds", quantity="cost")] = 0

    class Holds(Edge[Thing, Thing]):
        note: str = ""
        share: Decimal = Decimal(1)

    with pytest.raises(InvalidModel, match="quantity='cost', which is a field of Thing; name one of Holds"):
        Graph(":memory:", [Thing, Holds])

    class Box(Node):
        id: str
        name: Annotated[int, Count("Keeps", quantity="note")] = 0

    class Keeps(Edge[Box, Box]):
        note: str = ""

    with pytest.raises(InvalidModel, match=r"Keeps\.note is not stored as a number; name a field that is"):
        Graph(":memory:", [Box, Keeps])

    class Crate(Node):
        id: str
        name: Annotated[int, Count("Stores", quantity="share")] = 0

    class Stores(Edge[Crate, Crate]):
        share: Decimal = Decimal(1)

    with pytest.raises(InvalidModel, match=r"Crate\.name is int, which cannot hold Decimal"):
        Graph(":memory:", [Crate, Stores])
