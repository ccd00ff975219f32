"""The record of declarations: what a program finds there, what it makes of it, and what a rebuild leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import create_model

from adjoin import Count, DeclarationReplaced, Edge, Graph, Max, Node
from adjoin.layouts.own_items import COUNTED, when_counted
from adjoin.plans.counting.node_transaction import FULL, STALE, Near
from adjoin.plans.maintenance.ranks import _rules
from adjoin.plans.maintenance.recounting import reconcile_and_compare
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import (
    RECORD,
    Record,
    end_rebuild,
    keep,
    key_of,
    read_standing,
    recounted,
    take_up,
)
from adjoin.requests import Get, PageResponse, Put, Query
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore


def clock() -> float:
    return 1000.0


def models(**fields: Any) -> list[type[Any]]:
    class Invoice(Node):
        id: str

    customer: Any = create_model("Customer", __base__=Node, id=(str, ...), **fields)

    class Placed(Edge[customer, Invoice]):
        day: int = 0
        size: int = 0

    return [customer, Invoice, Placed]


COUNT = (Annotated[int, Count("Placed")], 0)
LAST = (Annotated[int | None, Max("Placed", field="day")], None)
LARGEST = (Annotated[int | None, Max("Placed", field="size")], None)


@pytest.fixture
def store() -> Iterator[SQLiteStore]:
    store = SQLiteStore(":memory:")
    yield store
    store.close()


def opened(store: SQLiteStore, **fields: Any) -> Graph:
    g = Graph(store, models(**fields))
    g.create_table()
    return g


def stands(g: Graph) -> tuple[set[str], set[str], set[str], bool]:
    """What a program finds that opens the table: what is due, unfinished and listed, and whether it is a former one."""
    run(read_standing(g._layout), g._store)
    standing = g._layout.rules.standing
    return {*standing.due}, {*standing.unfinished}, {*standing.listed}, standing.is_former


def test_the_first_program_has_nothing_due(store: SQLiteStore) -> None:
    g = opened(store, invoices=COUNT, last=LAST)
    assert run(read_standing(g._layout), store) is None
    run(keep(g._layout, clock), store)
    record = run(read_standing(g._layout), store)
    assert record is not None
    assert {name: (each.is_counted, each.is_listed, each.since) for name, each in record.rules.items()} == {
        "CUSTOMER.invoices": (True, False, 0.0),
        "CUSTOMER.last": (True, False, 0.0),
    }
    assert (record.former, stands(g)) == ((), (set(), set(), set(), False))
    revision = record.item["adjoin:revision"]
    run(keep(g._layout, clock), store)
    again = run(read_standing(g._layout), store)
    assert again is not None
    assert again.item["adjoin:revision"] == revision, "nothing is written where nothing changes"


def test_another_declaration_is_due_until_it_is_rebuilt(store: SQLiteStore) -> None:
    old, new = opened(store, invoices=COUNT, last=LAST), opened(store, invoices=COUNT, last=LARGEST)
    watching = opened(store, invoices=COUNT, last=LARGEST)
    run(keep(old._layout, clock), store)
    assert watching.health().uncounted == ("CUSTOMER.last",)
    assert stands(new) == ({"CUSTOMER.last"}, set(), set(), False)
    assert new.health().uncounted == ("CUSTOMER.last",)
    before = run(take_up(new._layout, clock), store)
    assert before is not None
    assert before.former == (old._layout.rules.mark,)
    # The one that took it up knows at once, and so does everybody who looks.
    assert new._layout.rules.standing.listed == {"CUSTOMER.last"}
    assert stands(new) == (set(), {"CUSTOMER.last"}, {"CUSTOMER.last"}, False)
    assert stands(old) == ({"CUSTOMER.last"}, set(), set(), True)
    with pytest.raises(DeclarationReplaced, match=r"CUSTOMER\.last"):
        run(keep(old._layout, clock), store)
    assert recounted(new._layout, before) == {"CUSTOMER": frozenset()}
    assert before.rules["CUSTOMER.last"].since == 1000.0
    for unknown, read_at in ((None, None), (before, 999.0)):
        run(end_rebuild(new._layout, unknown, read_at), store)
        assert new.health().uncounted == ("CUSTOMER.last",), "it read what was there before the declaration"
    run(end_rebuild(new._layout, before, 1000.0), store)
    assert new.health().uncounted == watching.health().uncounted == ()
    assert stands(new) == (set(), set(), {"CUSTOMER.last"}, False)


def test_a_program_with_some_of_the_classes_leaves_the_record_as_it_is(store: SQLiteStore) -> None:
    """All its rules are maintained as it declares them, and the rules of other classes are none of its business."""

    class Shop(Node):
        id: str
        goods: Annotated[int, Count("Sold")] = 0

    class Good(Node):
        id: str

    class Sold(Edge[Shop, Good]):
        pass

    whole = Graph(store, [*models(invoices=COUNT), Shop, Good, Sold])
    whole.create_table()
    run(keep(whole._layout, clock), store)
    before = run(read_standing(whole._layout), store)
    part = Graph(store, [Shop, Good, Sold])
    assert part._layout.rules.mark != whole._layout.rules.mark
    run(keep(part._layout, clock), store)
    after = run(read_standing(part._layout), store)
    assert (before, after and after.item) == (after, before and before.item)
    # It becomes a former one when it takes the table over and another follows; it may still go on.
    run(take_up(part._layout, clock), store)
    run(take_up(whole._layout, clock), store)
    assert stands(part) == (set(), set(), set(), True)
    run(keep(part._layout, clock), store)


def customers(g: Graph) -> Any:
    return next(kind for kind in g._layout.schema.nodes.values() if kind.label == "CUSTOMER")


def test_a_value_of_another_declaration_is_wrong_also_if_it_is_the_same(store: SQLiteStore) -> None:
    old, new = opened(store, invoices=COUNT, last=LAST), opened(store, invoices=COUNT, last=LARGEST)
    customer, _, placed = (
        kind.model for kind in (*old._layout.schema.nodes.values(), *old._layout.schema.edges.values())
    )
    old.put_many([customer(id="C1"), placed(source="C1", target="I1", day=5, size=5), customer(id="C2")])
    old.maintain(once=True)

    def off(g: Graph) -> list[str]:
        node_keys = ["CUSTOMER#C1", "CUSTOMER#C2", "CUSTOMER#C3"]
        return run(reconcile_and_compare(g._layout, customers(g), node_keys, Tally()), store).off

    assert off(old) == []
    run(take_up(new._layout, clock), store)
    new.put(next(iter(new._layout.schema.nodes))(id="C3"))
    # The last one is new, and nothing was ever counted for it.
    assert off(new) == ["CUSTOMER#C1", "CUSTOMER#C2"]


def test_which_values_are_read_from_ranks_again(store: SQLiteStore) -> None:
    """Those that are stale or had no room, if the node was counted by the declaration that holds now."""
    old, new = opened(store, invoices=COUNT, last=LAST), opened(store, invoices=COUNT, last=LARGEST)
    run(keep(old._layout, clock), store)
    names = {"SS": ["CUSTOMER.last", "CUSTOMER.invoices", "CUSTOMER.other"]}

    def read(g: Graph, item: Any) -> list[str]:
        return [rule.name for rule in _rules(g._layout, Near(customers(g), "CUSTOMER#C1", {}, item))]

    for name in (STALE, FULL):
        assert read(old, {name: names}) == ["CUSTOMER.last"]
    assert read(old, {}) == []
    run(take_up(new._layout, clock), store)
    counted = {COUNTED: when_counted(new._layout.rules, customers(new))}
    assert counted[COUNTED] is not None
    for name in (STALE, FULL):
        assert read(new, {name: names}) == []
        assert read(new, {name: names, **counted}) == ["CUSTOMER.last"]


def test_a_rebuild_that_another_declaration_came_after_does_not_end_that(store: SQLiteStore) -> None:
    old, new = opened(store, invoices=COUNT, last=LAST), opened(store, invoices=COUNT, last=LARGEST)
    before = run(take_up(old._layout, clock), store)
    run(take_up(new._layout, clock), store)
    run(end_rebuild(old._layout, before, None), store)
    assert new.health().uncounted == ("CUSTOMER.last",)
    run(end_rebuild(new._layout, run(take_up(new._layout, clock), store), None), store)
    assert new.health().uncounted == ()


def test_what_is_declared_no_more_goes_with_a_rebuild(store: SQLiteStore) -> None:
    old, new = opened(store, invoices=COUNT, last=LAST), opened(store, invoices=COUNT)
    run(keep(old._layout, clock), store)
    before = run(take_up(new._layout, clock), store)
    assert recounted(new._layout, before) == {"CUSTOMER": frozenset({"last", "adjoin:CUSTOMER.last"})}
    run(end_rebuild(new._layout, before, None), store)
    record = run(read_standing(new._layout), store)
    assert record is not None
    assert set(record.rules) == {"CUSTOMER.invoices"}
    assert recounted(new._layout, record) == {}


def test_records_go_with_the_rule_that_they_are_of(store: SQLiteStore) -> None:
    """Those of rules that are declared stay, and so do those of classes that another program has."""

    class Shop(Node):
        id: str
        goods: Annotated[int, Count("Sold")] = 0
        last: Annotated[int | None, Max("Sold", field="day")] = None

    class Good(Node):
        id: str

    class Sold(Edge[Shop, Good]):
        day: int = 0

    class Plain(Node, label="SHOP"):
        id: str

    def write(names: list[str]) -> None:
        store.execute([Put("adjoin", records.record_key("ASIDE", f"{name}#1")) for name in names])

    def left() -> list[str]:
        partition, sort = records.records("ASIDE", "")
        (response,) = store.execute((Query("adjoin", partition, sort, consistent=True),))
        assert isinstance(response, PageResponse)
        return [item["SK"]["S"].rpartition("#")[0].lstrip("=") for item in response.items]

    old = Graph(store, [*models(invoices=COUNT, last=LAST), Shop, Good, Sold])
    old.create_table()
    records = old._layout.ledgers
    run(keep(old._layout, clock), store)
    write(["CUSTOMER.invoices", "CUSTOMER.last", "CUSTOMER.lasting", "SHOP.goods", "SHOP.last"])
    # One program takes the rules of a class away, and another one those of the other class.
    run(take_up(Graph(store, [Plain])._layout, clock), store)
    new = opened(store, invoices=COUNT)
    before = run(take_up(new._layout, clock), store)
    run(end_rebuild(new._layout, None, None), store)
    assert len(left()) == 5
    run(end_rebuild(new._layout, before, None), store)
    assert left() == ["CUSTOMER.invoices", "CUSTOMER.lasting", "SHOP.goods", "SHOP.last"]


def test_a_program_that_goes_back_and_forth_is_remembered_once(store: SQLiteStore) -> None:
    old, new = opened(store, last=LAST), opened(store, last=LARGEST)
    for g in (old, new, old, new, old):
        run(take_up(g._layout, clock), store)
    (response,) = store.execute((Get("adjoin", key_of(old._layout, RECORD), consistent=True),))
    assert response.item["current"] == {"S": old._layout.rules.mark}  # type: ignore[union-attr, index]
    assert response.item["former"] == {"L": [{"S": new._layout.rules.mark}]}  # type: ignore[union-attr, index]


def test_so_many_former_declarations_are_remembered() -> None:
    record = Record("0", {})
    for number in range(1, 70):
        record = record.replaced_by(str(number))
    assert (record.current, record.former) == ("69", tuple(map(str, range(19, 69))))
    assert record.replaced_by("69") is record
