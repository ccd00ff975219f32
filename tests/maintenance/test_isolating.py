"""Changes applied piece by piece: whose they are, how far they came, and that what was done is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from adjoin import AccessDenied, AdjoinError, Graph, ServiceUnreachable, Throttled
from adjoin.errors import CancellationReason, TransactionCanceled
from adjoin.plans.maintenance.isolating import ByTenant, apply_each, layout_for
from adjoin.plans.maintenance.report import Tally, Unapplied, set_aside, take_back
from adjoin.requests import ItemChange, ReadChanges, Request, TransactWrite, Update
from adjoin.reserved import DECLARED
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from tests.faults import FaultyStore
from tests.maintenance.models import MODELS, Customer, Invoice, Placed
from tests.maintenance.simulation import stored
from tests.maintenance.test_simulation import check


def changes_of(g: Graph) -> list[ItemChange]:
    """The changes of a table, besides that of the record of what is declared."""
    response: Any
    (response,) = g._store.execute((ReadChanges("adjoin", None),))
    return [change for change in response.changes if DECLARED not in (change.new or {})]


def times(number: int) -> Callable[[], bool]:
    """Time for so many rounds of requests."""
    left = iter(range(number))
    return lambda: next(left, None) is not None


def test_it_ends_where_there_is_no_more_time() -> None:
    """What was applied until then is told, and nothing need be done twice but what comes again."""
    seen = set()
    number = 0
    while (3, True, True) not in seen:
        with Graph(":memory:", MODELS) as g:
            g.put_many([Customer(id="C1"), Invoice(id="I1"), Placed(source="C1", target="I1")])
            tally, changes = Tally(), changes_of(g)
            outcome = run(apply_each(g._layout, changes, tally, times(number), together=2), g._store)
            assert outcome.error is None
            assert outcome.done in (0, 2, len(changes))
            assert tally.changes == outcome.done, "what comes again is told then"
            seen.add((outcome.done, tally.edges > 0, outcome.found))
            again = Tally()
            rest = run(apply_each(g._layout, changes[outcome.done :], again), g._store)
            assert rest.done == len(changes) - outcome.done
            assert tally.edges + again.edges == 3, "both ends, and what reads the invoice"
            check(g)
        number += 3
    assert {(0, False, False), (2, True, True)} <= seen


@pytest.mark.parametrize("error", [ServiceUnreachable("nobody there"), Throttled("slow down"), AccessDenied("not you")])
def test_an_error_while_declarations_are_recorded_is_one_of_applying_changes(error: AdjoinError) -> None:
    """Nothing was applied then, and what passes is told as such, so that a daemon and a Lambda function try again."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Customer(id="C1"), Invoice(id="I1"), Placed(source="C1", target="I1")])
        changes, tally = changes_of(g), Tally()

        def refuse(_: int, request: Request) -> None:
            if "#=MAINTAIN" in repr(request):
                raise error

        store.fault = refuse
        if isinstance(error, AccessDenied):
            with pytest.raises(AccessDenied):
                run(apply_each(g._layout, changes, tally), g._store)
            return
        outcome = run(apply_each(g._layout, changes, tally), g._store)
        assert (outcome.error, outcome.done, outcome.found, tally.changes) == (error, 0, False, 0)
        store.recover()
        assert run(apply_each(g._layout, changes, tally), g._store).done == len(changes)
        check(g)


@pytest.mark.parametrize("error", [ServiceUnreachable("nobody there"), Throttled("slow down"), AccessDenied("not you")])
def test_what_passes_ends_it_where_it_is_and_what_does_not_is_raised(error: AdjoinError) -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Customer(id="C1"), Customer(id="C2"), Placed(source="C1", target="I1")])
        changes = changes_of(g)

        def refuse(_: int, request: Request) -> None:
            if isinstance(request, TransactWrite | Update) and "PLACED#" in repr(request):
                raise error

        store.fault = refuse
        applying = apply_each(g._layout, changes, Tally(), together=1)
        if not error.retryable:
            with pytest.raises(AccessDenied):
                run(applying, store)
        else:
            outcome = run(applying, store)
            assert outcome.error is error
            assert outcome.done < len(changes)
        store.recover()
        assert [item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"] == []
        g.maintain(once=True)
        check(g)


@pytest.mark.parametrize(("code", "is_for_ever"), [("TransactionConflict", False), ("ValidationError", True)])
def test_a_refusal_that_may_pass_ends_it_and_one_that_stays_is_set_aside(code: str, is_for_ever: bool) -> None:
    """Also for a change that is alone: nothing is set aside because others were busy."""
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        g.put_many([Customer(id="C1"), Customer(id="C2"), Placed(source="C1", target="I1")])
        changes = changes_of(g)

        def refuse(_: int, request: Request) -> None:
            if isinstance(request, TransactWrite) and "PLACED#" in repr(request):
                raise TransactionCanceled("refused", [CancellationReason(code, "because") for _ in request.writes])

        store.fault = refuse
        outcome = run(apply_each(g._layout, changes, Tally(), together=1), store)
        store.recover()
        aside = [item["reason"]["S"] for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"]
        if is_for_ever:
            assert (outcome.done, outcome.error) == (len(changes), None)
            assert len(aside) == 1
            assert "because" in aside[0]
        else:
            assert isinstance(outcome.error, TransactionCanceled)
            assert outcome.done < len(changes)
            assert aside == []
            g.maintain(once=True)
            check(g)


def test_what_is_no_proper_change_is_recorded_in_its_place() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([Customer(id="C1"), Placed(source="C1", target="I1")])
        first, second = changes_of(g)
        strays = [Unapplied({}, "nobody's", f"position {number}") for number in range(3)]
        tally = Tally()
        mixed: list[ItemChange | Unapplied] = [strays[0], first, strays[1], second, strays[2]]
        outcome = run(apply_each(g._layout, mixed, tally, together=2), g._store)
        assert (outcome.done, outcome.found, outcome.error) == (5, True, None)
        assert [each.position for each in tally.records] == [each.position for each in strays]
        assert len([item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED"]) == 3
        assert g.get(Customer, "C1").invoices == 1  # type: ignore[union-attr]


SHOWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"SK": {"S": "b"}, "PK": {"S": "a"}}, {"M": {"PK": {"S": "a"}, "SK": {"S": "b"}}}),
    ({"SK": {"S": "b"}, "PK": {"N": "1"}}, {"S": '{"PK":{"N":"1"},"SK":{"S":"b"}}'}),
    ({"PK": {"S": "a"}}, {"S": '{"PK":{"S":"a"}}'}),
    ({"PK": {"S": 1}, "SK": {"S": "b"}}, {"S": '{"PK":{"S":1},"SK":{"S":"b"}}'}),
    ({"PK": {"S": "a", "N": "1"}, "SK": {"S": "b"}}, {"S": '{"PK":{"N":"1","S":"a"},"SK":{"S":"b"}}'}),
    ({"PK": "a", "SK": {"S": "b"}}, {"S": '{"PK":"a","SK":{"S":"b"}}'}),
    ({"PK": {"S": "a" * 19_970}, "SK": {"S": "b"}}, {"M": {"PK": {"S": "a" * 19_970}, "SK": {"S": "b"}}}),
    ({"PK": {"S": "a" * 19_971}, "SK": {"S": "b"}}, {"S": '{"PK":{"S":"' + "a" * 1988}),
    ({}, {"M": {}}),
    # Half a character, and a number that is none: JSON as Python writes it.
    ({"SK": {"S": "b"}, "PK": {"S": "\ud800"}}, {"S": '{"PK": {"S": "\\ud800"}, "SK": {"S": "b"}}'}),
    (
        {"PK": {"N": Decimal("1E+200")}, "SK": {"S": "b"}},
        {"S": """{"PK": {"N": "Decimal('1E+200')"}, "SK": {"S": "b"}}"""},
    ),
]


@pytest.mark.parametrize(("key", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_a_record_names_the_item_whatever_its_key_is(
    key: dict[str, Any], shown: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with Graph(":memory:", MODELS) as g:
        unapplied = Unapplied(key, "why\ud800" + "x" * 3000, "at" + "9" * 1999, 5.6)
        record = unapplied.record(g._layout)
        assert record["item"] == shown
        assert record["reason"]["S"] == "why\\ud800" + "x" * 1996
        assert record["position"]["S"] == "t" + "9" * 1999
        assert record["at"] == {"N": "6"}
        # Equal keys have one record, others another.
        again = Unapplied(dict(reversed(key.items())), "another reason", "at" + "9" * 1999)
        assert again.record_key(g._layout) == g._layout.key_of(record)
        tally = Tally()
        run(set_aside(g._layout, unapplied, tally), g._store)
        assert [each.reason for each in tally.records] == [unapplied.reason]
        assert [item["item"] for item in stored(g)] == [shown]
        (logged,) = (each.getMessage() for each in caplog.records)
        where = "an item without a key" if not key else str(shown["S"]) if "S" in shown else spelled(key)[:2000]
        assert logged.startswith(f"set aside: {where} (change t99")
        assert f" (change t{'9' * 1999}): why\\ud800x" in logged
        Unapplied(key, "why").note(tally)
        assert " (change -): why" in caplog.records[-1].getMessage()


def spelled(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True, separators=(",", ":"))


def test_a_record_goes_when_its_item_was_applied_unless_it_was_set_aside_again() -> None:
    with Graph(":memory:", MODELS) as g:
        layout = g._layout
        keys = [layout.node_key(layout.schema.node(Customer), id) for id in "abc"]
        for key in keys:
            run(set_aside(layout, Unapplied(key, "before"), Tally()), g._store)
        tally = Tally()
        run(set_aside(layout, Unapplied(keys[0], "now"), tally), g._store)
        run(take_back(layout, keys[:2], tally), g._store)
        left = sorted((item["item"]["M"]["PK"]["S"], item["reason"]["S"]) for item in stored(g))
        assert left == [("CUSTOMER#a", "now"), ("CUSTOMER#c", "before")]


def test_items_have_records_of_their_own() -> None:
    with Graph(":memory:", MODELS) as g:
        keys = [Unapplied(key, "why", "here").record_key(g._layout) for key, _ in SHOWN]
        assert len({repr(key) for key in keys}) == len(keys)
        # Without a key, it is the position that tells them apart.
        assert Unapplied({}, "why", "there").record_key(g._layout) not in keys


def test_changes_are_told_apart_by_their_tenants() -> None:
    with Graph(":memory:", MODELS) as g:
        tenants = {name: Graph(g._store, MODELS, tenant=name) for name in ("one", "two")}
        for name, graph in (("a", tenants["one"]), ("a", tenants["two"]), ("b", tenants["one"]), ("a", g)):
            graph.put(Customer(id="C1", name=name))
        layout = g._layout
        changes = changes_of(g)
        key = changes[0].key
        stray, nobodys = Unapplied(key, "no"), Unapplied({"PK": {"N": "1"}, "SK": {"S": "x"}}, "no")
        mixed: list[ItemChange | Unapplied] = [*changes, stray, nobodys, Unapplied({}, "no")]
        assert [layout_for(layout, each).tenant for each in mixed] == [
            "one", "two", "one", None, "one", None, None,
        ]  # fmt: skip
        some = ByTenant(layout, [stray, *changes, nobodys])
        # The class is known of what belongs to no tenant. That of another is its own layout's to say.
        assert [(part.tenant, *found) for part, *found in some.parts(0, 6)] == [
            ("one", [changes[0], changes[2]], [None, None]),
            ("two", [changes[1]], [None]),
            (None, [changes[3]], [layout.schema.node(Customer)]),
        ]
        assert [(part.tenant, *found) for part, *found in some.parts(2, 4)] == [
            ("two", [changes[1]], [None]),
            ("one", [changes[2]], [None]),
        ]
        assert [part.tenant for part in some.layouts()] == ["one", "two", None]
        assert ByTenant(layout, [stray]).layouts() == []
        assert [(part.tenant, each) for part, each in some.unapplied(0, 6)] == [("one", stray), (None, nobodys)]
        assert list(some.unapplied(1, 5)) == []


def test_what_lies_beside_a_ledger_is_skipped_and_nothing_else(g: Graph) -> None:
    """All of a partition is known by one ledger in it. A node or an edge with a name like that of a ledger is none."""
    g.put_many([Customer(id="C1"), Placed(source="C1", target="I1"), Placed(source="C1", target="=E#")])
    g.maintain(once=True)
    g.put(Customer(id="=E#"))
    changes = changes_of(g)
    own = [each for each in changes if g._layout.is_own_record(each.key)]
    assert len(own) > 3
    ((_, some, kinds),) = ByTenant(g._layout, changes).parts(0, len(changes))
    assert some == [each for each in changes if each not in own]
    assert [kind and kind.label for kind in kinds] == [
        kind and kind.label for kind in (g._layout.kind_of(each.new or {}) for each in some)
    ]
