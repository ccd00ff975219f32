"""What changes make it necessary to do: which of them are work, and what is left to do if others come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import ConditionFailed, Copy, Count, Edge, Graph, Node
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.counting.arrivals import Arrival, strike_out
from adjoin.plans.counting.ledger import ref_to
from adjoin.plans.maintenance.affected import apply_changes, edges_of
from adjoin.plans.maintenance.reconciling import reconcile
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.steps.again import ATTEMPTS
from adjoin.requests import ChangesResponse, Delete, ItemChange, Put, ReadChanges, Request, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.models import Part, Uses
from tests.maintenance.simulation import stored


class Shop(Node):
    id: str
    name: str = ""
    sales: Annotated[int, Count("Sold")] = 0


class Good(Node):
    id: str
    name: str = ""
    colour: str = ""


class Sold(Edge[Shop, Good]):
    good: Annotated[str, Copy("target.name")] = ""
    note: str = ""


class Street(Node):
    id: str


MODELS: list[Any] = [Shop, Good, Sold, Street]


def changes_of(g: Graph, act: Callable[[Graph], object]) -> list[ItemChange]:
    """The changes that an act makes, apart from those of adjoin's own items."""
    before = [change.position for change in g.changes()][-1]
    act(g)
    (response,) = g._store.execute((ReadChanges("adjoin", before),))
    assert isinstance(response, ChangesResponse)
    return [change for change in response.changes if not g._layout.is_bookkeeping(change.key)]


def spoil_copy(g: Graph) -> None:
    key = g._layout.edge_key(g._layout.schema.edge(Sold), "S1", "G1", {})
    g._store.execute((Update("adjoin", key, (Set(attribute("good"), Value({"S": "?"})),)),))


WORK: dict[str, tuple[Callable[[Graph], object], bool]] = {
    "a node that edges may wait for": (lambda g: g.put(Shop(id="S2")), True),
    "a node that goes with what it counted": (lambda g: g.delete(Shop, "S1"), True),
    "an edge": (lambda g: g.put(Sold(source="S1", target="G2")), True),
    "a field that edges copy": (lambda g: g.update(Good, "G1", name="new"), True),
    "a copy that another program wrote": (lambda g: spoil_copy(g), True),
    "a field that nobody reads": (lambda g: g.update(Good, "G1", colour="red"), False),
    "a field of an edge that nobody reads": (lambda g: g.update(Sold, "S1", "G1", note="x"), False),
    "a field of a node that counts": (lambda g: g.update(Shop, "S1", name="new"), False),
    "a node that nothing is counted for": (lambda g: g.put(Street(id="a")), False),
}


@pytest.mark.parametrize("what", WORK)
def test_which_changes_are_work(what: str) -> None:
    act, is_work = WORK[what]
    with Graph(":memory:", MODELS) as g:
        g.put_many([Shop(id="S1"), Good(id="G1", name="old"), Sold(source="S1", target="G1")])
        g.maintain(once=True)
        tally = Tally()
        for change in changes_of(g, act):
            # A deletion also removes the edges: what is asked here is the node, by itself.
            if g._layout.kind_of(change.key) is not g._layout.schema.edge(Sold) or "edge" in what or "copy" in what:
                assert run(apply_changes(g._layout, [change], tally), g._store) is is_work
        assert tally.changes > 0


def test_arrivals_that_others_wrote_again_stay_and_the_others_go() -> None:
    """The store does not say which of several deletes it refused."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Good(id="G1"), *(Sold(source=f"S{number}", target="G1") for number in range(4))])
        g.maintain(once=True)
        layout = g._layout
        kind = layout.schema.edge(Sold)
        keys = [layout.edge_key(kind, f"S{number}", "G1", {}) for number in range(4)]
        arrivals = [Arrival(kind, key, f"SHOP#S{number}", "GOOD#G1") for number, key in enumerate(keys)]
        for number in range(4):
            g.disconnect(Sold, f"S{number}", "G1")
        came: list[Request] = []

        def come_between(_: int, request: Request) -> None:
            """Before the first delete, another process records one of the arrivals again, and removes another."""
            if isinstance(request, Delete) and not came:
                came.append(request)
                item = {**arrivals[1].place(layout), "edge": {"M": keys[1]}, "marked": {"S": "later"}}
                store.inner.execute((Delete("adjoin", arrivals[2].place(layout)), Put("adjoin", item)))

        store.fault = come_between
        run(strike_out(layout, arrivals), store)
        assert came
        left = [item["edge"]["M"] for item in stored(g) if "marked" in item and "edge" in item]
        assert left == [keys[1]]


def test_a_node_that_others_always_begin_first_is_given_up() -> None:
    """Each time it is read, the node has no generation; each time it is written, somebody else was faster."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        edge = Sold(source="S1", target="G1")
        g.put_many([Shop(id="S1"), edge])
        (group,) = g._layout.rules.groups
        (item,) = g._layout.items(edge)
        tried = []

        def come_first(_: int, request: Request) -> None:
            if isinstance(request, Update):
                tried.append(request)
                raise ConditionFailed("somebody else was faster")

        store.fault = come_first
        with pytest.raises(ConditionFailed, match="somebody else was faster"):
            run(reconcile(g._layout, [ref_to(g._layout, group, item)], Tally()), store)
        assert len(tried) == ATTEMPTS


def test_which_classes_of_edges_a_node_may_leave() -> None:
    with Graph(":memory:", MODELS) as g:
        schema = g._layout.schema
        for model, labels in ((Shop, ["SOLD"]), (Good, ["SOLD"]), (Street, [])):
            assert [edge.label for edge in edges_of(g._layout, schema.node(model))] == labels


def test_an_edge_that_closed_a_cycle_is_counted_as_soon_as_another_goes() -> None:
    """With the same changes, not with those that follow from them."""
    with Graph(":memory:", [Part, Uses]) as g:
        g.put_many([Part(id="a", cost=1), Part(id="b", cost=2), Uses(source="a", target="b")])
        g.maintain(once=True)
        g.put(Uses(source="b", target="a"))
        assert {each.rule for each in g.maintain(once=True).set_aside} == {"PART.total", "PART.below", "PART.dearest"}
        changes = changes_of(g, lambda g: g.disconnect(Uses, "a", "b"))
        run(apply_changes(g._layout, changes, Tally()), g._store)
        assert [part and part.total for part in g.get_many(Part, "ab")] == [0, 1]
