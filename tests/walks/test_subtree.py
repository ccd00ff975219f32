"""Subtrees: quantities multiplied along edges, shared parts, cycles, on random graphs and on one by hand."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import Budget, BudgetExceeded, Child, CycleFound, Edge, Graph, InvalidValue, Node, Ref, UnknownField
from tests.shares import examples
from tests.walks.graphs import PLACES, Place, place


class Part(Node):
    id: int
    cost: Decimal = Decimal(0)
    name: str | None = None


class Uses(Edge[Part, Part]):
    number: Decimal | None = Decimal(1)


class Note(Child[Part], key=("place",)):
    place: int
    cost: int = 1


MODELS: list[Any] = [Part, Uses, Note]


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    store, layout = request.param
    with place(store, layout, tmp_path_factory.mktemp("subtree"), MODELS) as found:
        yield found


# An edge leads from a lesser number to a greater one, so there is no cycle.
_pairs = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] < pair[1])
_trees = st.dictionaries(_pairs, st.decimals(0, 9, places=1, allow_nan=False, allow_infinity=False), max_size=14)


def used(edges: dict[tuple[int, int], Decimal], part: int, most: int | None) -> dict[int, Decimal]:
    """How many of each part a part needs, by recursion over every path."""
    found: dict[int, Decimal] = {}
    for (near, far), number in edges.items():
        if near == part and most != 0:
            found[far] = found.get(far, Decimal(0)) + number
            for below, times in used(edges, far, None if most is None else most - 1).items():
                found[below] = found.get(below, Decimal(0)) + number * times
    return found


@given(edges=_trees, most=st.none() | st.integers(1, 3))
@settings(max_examples=examples(7))
def test_random_trees(opened: Place, edges: dict[tuple[int, int], Decimal], most: int | None) -> None:
    costs = {id: Decimal(10 + id) / 4 for id in range(7)}
    needed = used(edges, 0, most)
    times = used(dict.fromkeys(edges, Decimal(1)), 0, most)
    parts = [Part(id=id, cost=cost) for id, cost in costs.items()]
    lines = [Uses(source=near, target=far, number=number) for (near, far), number in edges.items()]
    for g in opened.opened([*parts, *lines]):
        tree = g.subtree(0, Uses, quantity="number", max_depth=most)
        assert tree.root.id == 0
        assert tree.quantities == {Part.ref(id): number for id, number in needed.items()}
        assert {node.id for node in tree.nodes} == needed.keys()
        assert tree.total("cost") == sum((costs[id] * number for id, number in needed.items()), Decimal(0))
        assert tree.total("cost", shared="once") == sum((costs[id] for id in needed), Decimal(0))
        assert tree.total("cost", root=True) - tree.total("cost") == costs[0]
        assert tree.count() == sum(needed.values())
        assert tree.count(shared="once") == len(needed)
        assert (tree.partial, tree.capped, tree.missing) == (False, (), ())
        plain = g.subtree(Part.ref(0), Uses, max_depth=most)
        assert plain.count() == sum(times.values())
        assert plain.total("cost") == sum((costs[id] * number for id, number in times.items()), Decimal(0))


def test_a_bill_of_materials() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many(Part(id=id, cost=Decimal(cost)) for id, cost in enumerate((100, 30, 1, 5)))
        # A bike has two wheels of 32 spokes each, and a spoke on its frame; there is one bell.
        for near, far, number in ((0, 1, 2), (1, 2, 32), (0, 2, 1), (0, 3, 1)):
            g.put(Uses(source=near, target=far, number=Decimal(number)))
        with g.meter() as m:
            tree = g.subtree(0, Uses, quantity="number")
        # The bike; its parts; below the wheel there is only what is known; one batch get.
        assert (m.requests, m.rounds) == (1 + 3 + 1, 3)
        assert {ref.id: int(number) for ref, number in tree.quantities.items()} == {1: 2, 2: 65, 3: 1}
        assert {ref.id: depth for ref, depth in tree.depths.items()} == {1: 1, 2: 1, 3: 1}
        assert tree.total("cost") == 2 * 30 + 65 * 1 + 5
        assert tree.total("cost", shared="once", root=True) == 136
        assert len(tree.edges) == 4
        up = g.subtree(2, Uses, quantity="number", direction="into")
        assert {ref.id: int(number) for ref, number in up.quantities.items()} == {1: 32, 0: 65}
        g.put_many(Note(parent=1, place=place) for place in range(3))
        both = g.subtree(0, [Uses, Note])
        assert both.total("cost") == 30 + 2 * 1 + 5 + 3
        assert {ref for ref in both.quantities if ref.model is Note} == {Note.ref((1, place)) for place in range(3)}
        assert g.explain(g.subtree, 0, Uses, quantity="number").rounds


def test_cycles_are_named() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many(Part(id=id) for id in range(6))
        g.put_many(Uses(source=near, target=far) for near, far in ((0, 1), (1, 2), (2, 3), (3, 1), (0, 4)))
        with pytest.raises(CycleFound, match=r"Part\(1\) -> Part\(2\) -> Part\(3\) -> Part\(1\)") as raised:
            g.subtree(0, Uses)
        assert raised.value.refs == (Part.ref(1), Part.ref(2), Part.ref(3))
        assert g.subtree(0, Uses, max_depth=2).count() == 3
        g.put(Uses(source=5, target=5))
        with pytest.raises(CycleFound, match=r"Part\(5\) -> Part\(5\)"):
            g.subtree(5, Uses)


def test_a_long_chain_has_no_limit() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many(Uses(source=near, target=near + 1, number=Decimal(2)) for near in range(1200))
        tree = g.subtree(0, Uses, quantity="number")
        assert tree.quantities[Part.ref(1200)] == 2**1200
        assert tree.missing[-1] == Part.ref(1200)
        assert tree.root is None
        assert g.can_reach(0, 1200, via=[Uses]) is None
        g.put_many(Part(id=id) for id in range(1201))
        path = g.can_reach(0, 1200, via=[Uses])
        assert path is not None
        assert len(path.edges) == 1200


def test_what_is_missing_is_said() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Part(id=0), Part(id=1, cost=Decimal(3)), Uses(source=0, target=1), Uses(source=0, target=2)])
        tree = g.subtree(0, Uses)
        assert tree.missing == (Part.ref(2),)
        assert tree.total("cost") == 3
        cut = g.subtree(0, Uses, budget=Budget(requests=1))
        assert (cut.partial, cut.exceeded, cut.missing) == (True, "requests", ())
        with pytest.raises(BudgetExceeded, match="the total of cost is not known"):
            cut.total("cost")
        with pytest.raises(BudgetExceeded, match="the count is not known") as raised:
            g.subtree(0, Uses, cap=1).count()
        assert (raised.value.limit, raised.value.found) == ("cap", 1)
        assert g.subtree(0, Uses, cap=1).capped == (Part.ref(0),)


def test_wrong_arguments() -> None:
    with Graph(":memory:", MODELS) as g:
        with g.meter() as m:
            with pytest.raises(InvalidValue, match="max_depth must be at least 1"):
                g.subtree(0, Uses, max_depth=0)
            with pytest.raises(UnknownField, match="number"):
                g.subtree(0, Uses, quantity="numbr")
            with pytest.raises(InvalidValue, match="via takes classes of edges"):
                g.subtree(0, Part)
        assert m.requests == 0
        g.put_many([Part(id=0), Part(id=1, name="x"), Uses(source=0, target=1, number=None)])
        tree = g.subtree(0, Uses)
        with pytest.raises(UnknownField, match="Part has no field 'price'"):
            tree.total("price")
        with pytest.raises(InvalidValue, match="'x' is not a number"):
            tree.total("name")
        with pytest.raises(InvalidValue, match='shared must be "each" or "once"'):
            tree.total("cost", shared="twice")
        with pytest.raises(InvalidValue, match="Uses from 0 to 1 has no number"):
            g.subtree(0, Uses, quantity="number")
        assert isinstance(next(iter(tree.quantities)), Ref)
