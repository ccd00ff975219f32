"""The contract for single items: get, put, update, delete, conditions, and what each costs."""

from __future__ import annotations

import pytest

from adjoin.errors import ConditionFailed, TableNotFound
from adjoin.expressions import (
    Action,
    Add,
    Compare,
    Condition,
    Discard,
    Exists,
    Not,
    Path,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Delete,
    Get,
    ItemResponse,
    Put,
    Query,
    Request,
    Returned,
    Scan,
    Update,
)
from adjoin.stores.interface import Store
from adjoin.values import Item
from tests.stores.examples import item, key, n, one, put, reading, refused, s, stored, writing

ABSENT = Not(Exists(attribute("PK")))
A_IS_ONE = Compare("=", attribute("a"), Value(n(1)))


def respond(store: Store, request: Get | Put | Update | Delete) -> ItemResponse:
    return one(store, request, ItemResponse)


# --- reading -----------------------------------------------------------------------------------


def test_get_finds_what_was_put(store: Store) -> None:
    whole = item("A", "1", a=n(1), nested={"M": {"x": {"L": [s("y"), {"NULL": True}, {"BOOL": False}]}}})
    put(store, "Plain", whole)
    assert respond(store, Get("Plain", key("A", "1"))) == ItemResponse(whole, reading(0.5, "Plain"))


def test_get_of_nothing_costs_as_much_as_something(store: Store) -> None:
    assert respond(store, Get("Plain", key("A", "1"))) == ItemResponse(None, reading(0.5, "Plain"))
    assert respond(store, Get("Plain", key("A", "1"), consistent=True)) == ItemResponse(None, reading(1.0, "Plain"))


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(4096, False, 0.5), (4096, True, 1.0), (4097, False, 1.0), (4097, True, 2.0), (409_600, True, 100.0)],
)
def test_units_of_a_get(store: Store, size: int, consistent: bool, units: float) -> None:
    # Names PK, SK and x take 5 bytes, the key values 2.
    put(store, "Plain", item("A", "1", x=s("x" * (size - 7))))
    assert respond(store, Get("Plain", key("A", "1"), consistent=consistent)).consumed == reading(units, "Plain")


def test_a_projection_cuts_the_item_but_not_the_cost(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1), m={"M": {"x": n(1), "y": n(2)}}, big=s("x" * 5000)))
    response = respond(store, Get("Plain", key("A", "1"), projection=(Path(("a",)), Path(("m", "y")))))
    assert response == ItemResponse({"a": n(1), "m": {"M": {"y": n(2)}}}, reading(1.0, "Plain"))


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"PK": s("A")}, id="no sort key"),
        pytest.param({"PK": s("A"), "SK": n(1)}, id="another type"),
        pytest.param({"PK": s("A"), "XX": s("1")}, id="another name"),
        pytest.param({"PK": s("A"), "SK": s("1"), "x": s("2")}, id="too much"),
    ],
)
def test_a_key_must_be_exactly_the_key(store: Store, bad: Item) -> None:
    requests: list[Get | Update | Delete] = [Get("Plain", bad), Update("Plain", bad, ()), Delete("Plain", bad)]
    for request in requests:
        with refused(store, "The provided key element does not match the schema"):
            store.execute([request])


def test_an_unknown_table(store: Store) -> None:
    requests: list[Request] = [
        Get("Nothing", key("A", "1")),
        Put("Nothing", item("A", "1")),
        Update("Nothing", key("A", "1"), ()),
        Delete("Nothing", key("A", "1")),
        Query("Nothing", ("PK", s("A"))),
        Scan("Nothing"),
        BatchGet((Get("Nothing", key("A", "1")),)),
        BatchWrite((Delete("Nothing", key("A", "1")),)),
    ]
    for request in requests:
        with pytest.raises(TableNotFound):
            store.execute([request])


def test_a_table_without_sort_key(store: Store) -> None:
    put(store, "Single", {"id": s("1"), "a": n(1)}, {"id": s("2")})
    assert stored(store, "Single", {"id": s("1")}) == {"id": s("1"), "a": n(1)}
    respond(store, Update("Single", {"id": s("2")}, (Add(attribute("a"), n(2)),)))
    assert stored(store, "Single", {"id": s("2")}) == {"id": s("2"), "a": n(2)}
    respond(store, Delete("Single", {"id": s("1")}))
    assert stored(store, "Single", {"id": s("1")}) is None


# --- put and delete ----------------------------------------------------------------------------


def test_put_replaces_and_returns_the_old_item(store: Store) -> None:
    first, second = item("A", "1", a=n(1)), item("A", "1", c=n(2))
    assert respond(store, Put("Plain", first, return_old=True)) == ItemResponse(None, writing("Plain", table=1.0))
    assert respond(store, Put("Plain", second, return_old=True)).item == first
    assert respond(store, Put("Plain", first)).item is None
    assert stored(store, "Plain", key("A", "1")) == first


# Sizes in KB of an item before and after, None where there is none, and the units of the write.
WRITES = [
    pytest.param(None, 3.0, 3.0, id="new"),
    pytest.param(3.0, 1.0, 3.0, id="smaller"),
    pytest.param(1.0, 3.0, 3.0, id="larger"),
    pytest.param(1.0, 1.0, 1.0, id="1 KB exactly"),
    pytest.param(None, 1 + 1 / 1024, 2.0, id="1 KB and a byte"),
]


def sized(kilobytes: float) -> Item:
    # Names PK, SK and x take 5 bytes, the key values 2.
    return item("A", "1", x=s("x" * (round(kilobytes * 1024) - 7)))


@pytest.mark.parametrize(("before", "after", "units"), WRITES)
def test_a_write_is_charged_the_larger_of_before_and_after(
    store: Store, before: float | None, after: float, units: float
) -> None:
    writes: list[Put | Update] = [
        Put("Plain", sized(after)),
        Update("Plain", key("A", "1"), (Set(attribute("x"), Value(sized(after)["x"])),)),
    ]
    for write in writes:
        respond(store, Delete("Plain", key("A", "1")))
        if before is not None:
            put(store, "Plain", sized(before))
        assert respond(store, write).consumed == writing("Plain", table=units)


def test_a_write_that_changes_nothing_is_charged(store: Store) -> None:
    put(store, "Plain", sized(2.5))
    assert respond(store, Update("Plain", key("A", "1"), ())).consumed == writing("Plain", table=3.0)
    assert respond(store, Put("Plain", sized(2.5))).consumed == writing("Plain", table=3.0)
    assert respond(store, Update("Plain", key("A", "9"), (Remove(attribute("x")),))).consumed == writing(
        "Plain", table=1.0
    )


def test_delete_is_charged_what_it_deletes(store: Store) -> None:
    put(store, "Plain", sized(2.5))
    deleted = respond(store, Delete("Plain", key("A", "1"), return_old=True))
    assert deleted == ItemResponse(sized(2.5), writing("Plain", table=3.0))
    assert respond(store, Delete("Plain", key("A", "1"), return_old=True)) == ItemResponse(
        None, writing("Plain", table=1.0)
    )


# --- conditions --------------------------------------------------------------------------------


FAILING = [
    pytest.param(ABSENT, id="there"),
    pytest.param(Compare("=", attribute("a"), Value(n(2))), id="another value"),
    pytest.param(Exists(attribute("b")), id="no attribute"),
]


def conditional(condition: Condition) -> list[Put | Update | Delete]:
    return [
        Put("Plain", item("A", "1"), condition),
        Update("Plain", key("A", "1"), (Remove(attribute("a")),), condition),
        Delete("Plain", key("A", "1"), condition),
    ]


@pytest.mark.parametrize("condition", FAILING)
def test_a_failed_condition_changes_nothing(store: Store, condition: Condition) -> None:
    present = item("A", "1", a=n(1))
    put(store, "Plain", present)
    for request in conditional(condition):
        with refused(store, "The conditional request failed", ConditionFailed):
            store.execute([request])
    assert stored(store, "Plain", key("A", "1")) == present


@pytest.mark.parametrize("condition", FAILING)
def test_a_failed_condition_tells_the_stored_item(store: Store, condition: Condition) -> None:
    present = item("A", "1", a=n(1), deep={"M": {"l": {"L": [s("x"), {"NULL": True}]}}})
    put(store, "Plain", present)
    for request in conditional(condition):
        with pytest.raises(ConditionFailed) as caught:
            store.execute([request])
        assert caught.value.item == present


def test_a_condition_on_an_absent_item(store: Store) -> None:
    with pytest.raises(ConditionFailed) as caught:
        store.execute([Put("Plain", item("A", "1"), Exists(attribute("PK")))])
    assert caught.value.item is None
    store.execute([Put("Plain", item("A", "1", a=n(1)), ABSENT)])
    store.execute([Update("Plain", key("A", "1"), (Add(attribute("a"), n(1)),), A_IS_ONE)])
    store.execute([Delete("Plain", key("A", "1"), Compare(">", attribute("a"), Value(n(1))))])
    assert stored(store, "Plain", key("A", "1")) is None


# --- updates -----------------------------------------------------------------------------------

BEFORE = item("A", "1", a=n(1), m={"M": {"x": n(1), "y": n(2)}}, gone=s("g"))
ACTIONS: tuple[Action, ...] = (
    Add(attribute("a"), n(2)),
    Set(Path(("m", "x")), Value(n(9))),
    Remove(attribute("gone")),
)
AFTER = item("A", "1", a=n(3), m={"M": {"x": n(9), "y": n(2)}})


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("none", None),
        ("old", BEFORE),
        ("new", AFTER),
        ("updated_old", {"a": n(1), "m": {"M": {"x": n(1)}}, "gone": s("g")}),
        ("updated_new", {"a": n(3), "m": {"M": {"x": n(9)}}}),
    ],
)
def test_what_an_update_returns(store: Store, returns: Returned, expected: Item | None) -> None:
    put(store, "Plain", BEFORE)
    response = respond(store, Update("Plain", key("A", "1"), ACTIONS, returns=returns))
    assert response == ItemResponse(expected, writing("Plain", table=1.0))
    assert stored(store, "Plain", key("A", "1")) == AFTER


@pytest.mark.parametrize(
    ("returns", "expected"),
    [("none", None), ("old", None), ("updated_old", None), ("updated_new", {"a": n(2)})],
)
def test_what_an_update_that_creates_returns(store: Store, returns: Returned, expected: Item | None) -> None:
    update = Update("Plain", key("A", "1"), (Add(attribute("a"), n(2)),), returns=returns)
    assert respond(store, update).item == expected
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))


def test_an_update_that_only_takes_away_creates_nothing(store: Store) -> None:
    respond(store, Update("Plain", key("A", "1"), (Remove(attribute("a")),)))
    respond(store, Update("Plain", key("A", "1"), (Discard(attribute("a"), {"SS": ["x"]}),)))
    assert stored(store, "Plain", key("A", "1")) is None


def test_a_rejected_update_changes_nothing(store: Store) -> None:
    put(store, "Plain", BEFORE)
    update = Update("Plain", key("A", "1"), (Remove(attribute("a")), Add(attribute("gone"), n(1))))
    with refused(store, "An operand in the update expression has an incorrect data type"):
        store.execute([update])
    assert stored(store, "Plain", key("A", "1")) == BEFORE


# --- batches of requests -----------------------------------------------------------------------


def test_one_failing_request_of_a_batch_leaves_the_others(store: Store) -> None:
    with pytest.raises(ConditionFailed):
        store.execute(
            [
                Put("Plain", item("A", "1")),
                Put("Plain", item("A", "2"), Exists(attribute("PK"))),
                Put("Plain", item("", "3")),
                Put("Plain", item("A", "4")),
            ]
        )
    there = [stored(store, "Plain", key("A", each)) is not None for each in "124"]
    assert there == [True, False, True]


def test_an_empty_batch(store: Store) -> None:
    assert store.execute([]) == []
