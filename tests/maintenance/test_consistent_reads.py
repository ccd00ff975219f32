"""Maintenance decides by what it reads, so nothing that it reads from the table may be old.

The stores of tests have no old reads to give. So the requests themselves are looked at, one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from adjoin import Graph
from adjoin.plans.maintenance.recounting import begin as begin_recount
from adjoin.plans.maintenance.recounting import begun_before, finish, reconcile_and_compare, remove_void_ranks
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import (
    REBUILT,
    begin,
    begin_again,
    end,
    keep,
    last_looked_at,
    read_standing,
    take_up,
)
from adjoin.requests import BatchGet, Get, Query, Request
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.models import (
    MODELS,
    Album,
    Bill,
    Contains,
    Customer,
    Follows,
    Invoice,
    OnAlbum,
    Part,
    Person,
    Placed,
    Track,
    Uses,
)


def is_consistent(request: Request) -> bool:
    if isinstance(request, BatchGet):
        return all(map(is_consistent, request.gets))
    if isinstance(request, Query):
        # An index has no strongly consistent reads.
        return request.consistent or request.index is not None
    return not isinstance(request, Get) or request.consistent


def filled(g: Graph) -> None:
    g.put_many([Customer(id="C1", name="Ann"), Customer(id="C2"), Album(id="A"), Track(id="T", title="x")])
    g.put_many([Invoice(id=f"I{number}") for number in range(3)])
    g.put_many([Bill(id=f"B{number}", amount=Decimal(number)) for number in range(3)])
    g.put_many([Placed(source="C1", target=f"I{number}", balance=Decimal(number)) for number in range(3)])
    g.put_many([Contains(source=f"I{number}", target=f"B{number}") for number in range(3)])
    g.put_many([Part(id=id, cost=1) for id in "abc"])
    g.put_many([Uses(source=source, target=target) for source, target in ("ab", "bc", "ca")])
    g.put_many([Person(id="p", age=3), Follows(source="p", target="q"), Follows(source="q", target="p")])
    g.connect(OnAlbum, "A", "T", seconds=5)


CHANGES: dict[str, Callable[[Graph], object]] = {
    "everything is new": lambda g: None,
    "a far node": lambda g: g.update(Bill, "B1", amount=Decimal(50)),
    "a copied field": lambda g: g.update(Customer, "C1", name="Bea"),
    "the largest value": lambda g: g.update(Placed, "C1", "I2", balance=Decimal(0)),
    "an edge goes": lambda g: g.disconnect(Placed, "C1", "I2"),
    "an edge of a cycle goes": lambda g: g.disconnect(Uses, "a", "b"),
    "a node comes": lambda g: g.put(Person(id="q", age=5)),
    "a node goes": lambda g: g.delete(Invoice, "I1"),
    "a node goes with its cycle": lambda g: g.delete(Part, "b"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_applied_by_what_is_stored_now(what: str) -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    seen: list[Request] = []
    with Graph(store, MODELS) as g:
        filled(g)
        if what != "everything is new":
            g.maintain(once=True)
        CHANGES[what](g)
        store.fault = lambda _, request: seen.append(request)
        g.maintain(once=True)
        assert [request for request in seen if not is_consistent(request)] == []
        assert any(isinstance(request, Get | BatchGet) for request in seen)


PLANS: dict[str, Callable[[Any], Any]] = {
    "the beginning of a rebuild": lambda layout: begin(layout, 5.0),
    "a new beginning": lambda layout: begin_again(layout, None, "trimmed", 5.0),
    "the last rebuild": last_looked_at,
    "what is recorded of declarations": read_standing,
    "declarations before changes": keep,
    "declarations before a rebuild": take_up,
    "a comparison": lambda layout: reconcile_and_compare(
        layout, layout.schema.node(Customer), ["CUSTOMER#C1", "CUSTOMER#C2"], Tally()
    ),
    "a recount that was begun": lambda layout: begun_before(layout, layout.schema.node(Customer), ["CUSTOMER#C1"]),
    "void ranks": lambda layout: remove_void_ranks(layout, layout.schema.node(Customer), ["CUSTOMER#C1"]),
}


@pytest.mark.parametrize("what", PLANS)
def test_other_plans_too(what: str) -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    seen: list[Request] = []
    with Graph(store, MODELS) as g:
        filled(g)
        g.maintain(once=True)
        store.fault = lambda _, request: seen.append(request)
        run(PLANS[what](g._layout), store)
        assert [request for request in seen if not is_consistent(request)] == []
        assert seen


def test_a_recount_too() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    seen: list[Request] = []
    with Graph(store, MODELS) as g:
        filled(g)
        g.maintain(once=True)
        store.fault = lambda _, request: seen.append(request)
        for model, keys in ((Customer, ["CUSTOMER#C1"]), (Part, ["PART#a", "PART#c"]), (Person, ["PERSON#p"])):
            kind = g._layout.schema.node(model)
            begun = run(begin_recount(g._layout, kind, keys), store)
            run(finish(g._layout, kind, begun, Tally()), store)
        run(end(g._layout, run(begin(g._layout, 5.0), store), REBUILT), store)
        assert [request for request in seen if not is_consistent(request)] == []


def test_what_health_says_is_of_now_but_for_numbers_of_records() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    seen: list[Request] = []
    with Graph(store, MODELS) as g:
        filled(g)
        g.maintain(once=True)
        store.fault = lambda _, request: seen.append(request)
        g.health()
        old = [request for request in seen if not is_consistent(request)]
        assert all(isinstance(request, Query) and request.count_only for request in old)
        assert any(isinstance(request, BatchGet) for request in seen)
