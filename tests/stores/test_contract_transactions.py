"""The contract for transactions: all or nothing, the reasons when it is nothing, and client tokens."""

from __future__ import annotations

from uuid import uuid4

import pytest

from adjoin.errors import CancellationReason, InvalidRequest, TokenReused, TransactionCanceled
from adjoin.expressions import Add, And, Compare, Exists, Not, Or, Path, Set, Value, attribute
from adjoin.requests import (
    BatchGetResponse,
    Check,
    Delete,
    Get,
    Put,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.interface import Store
from tests.stores.examples import in_order, item, key, n, one, put, reading, refused, s, stored, writing

THERE = Exists(attribute("PK"))
CANCELED = "Transaction cancelled, please refer cancellation reasons for specific reasons "
FAILED = ("ConditionalCheckFailed", "The conditional request failed")
OK = CancellationReason("None")


@pytest.fixture
def token() -> str:
    """A client token that nobody has used: the service remembers them for ten minutes, whatever the table."""
    return uuid4().hex


# --- reading -----------------------------------------------------------------------------------


def test_transact_get(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2", a=n(2), c=n(3)))
    put(store, "Single", {"id": s("1")})
    gets = (
        Get("Plain", key("A", "2"), projection=(attribute("c"),)),
        Get("Plain", key("A", "9")),
        Get("Single", {"id": s("1")}),
        Get("Plain", key("A", "1")),
    )
    response = one(store, TransactGet(gets), BatchGetResponse)
    assert response.items == [{"c": n(3)}, None, {"id": s("1")}, item("A", "1", a=n(1))]
    assert response.unprocessed == ()


def test_a_projection_of_nothing_is_told_as_no_item(store: Store) -> None:
    put(store, "Plain", item("A", "1"))
    gets = (Get("Plain", key("A", "1"), projection=(attribute("c"),)), Get("Plain", key("A", "2")))
    assert one(store, TransactGet(gets), BatchGetResponse).items == [None, None]


def test_units_of_a_transact_get(store: Store) -> None:
    put(store, "Plain", item("A", "1"), item("A", "2", x=s("x" * 5000)))
    put(store, "Single", {"id": s("1")})
    gets = (*(Get("Plain", key("A", each)) for each in "129"), Get("Single", {"id": s("1")}))
    units = one(store, TransactGet(gets), BatchGetResponse).consumed
    assert units == in_order((*reading(2 + 4 + 2.0, "Plain"), *reading(2.0, "Single")))


def test_limits_of_a_transact_get(store: Store) -> None:
    gets = tuple(Get("Plain", key("A", str(each))) for each in range(101))
    assert one(store, TransactGet(gets[:100]), BatchGetResponse).items == [None] * 100
    for bad in ((), gets):
        with refused(store):
            store.execute([TransactGet(bad)])
    with refused(store, "Transaction request cannot include multiple operations on one item"):
        store.execute([TransactGet((gets[0], gets[1], gets[0]))])


# --- writing -----------------------------------------------------------------------------------


def test_a_transaction_applies_all(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2"), item("A", "3"))
    transaction = TransactWrite(
        (
            Update("Plain", key("A", "1"), (Add(attribute("a"), n(1)),), THERE),
            Delete("Plain", key("A", "2")),
            Check("Plain", key("A", "3"), THERE),
            Put("Plain", item("A", "4"), Not(THERE)),
            Put("Single", {"id": s("1")}),
        )
    )
    assert one(store, transaction, WriteResponse).unprocessed == ()
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))
    assert stored(store, "Plain", key("A", "2")) is None
    assert stored(store, "Plain", key("A", "3")) == item("A", "3")
    assert stored(store, "Plain", key("A", "4")) == item("A", "4")
    assert stored(store, "Single", {"id": s("1")}) == {"id": s("1")}


def test_units_of_a_transaction(store: Store) -> None:
    put(store, "Plain", item("A", "1"), item("A", "2", x=s("x" * 2000)), item("A", "3", x=s("x" * 2000)))
    transaction = TransactWrite(
        (
            Update("Plain", key("A", "1"), (Set(attribute("x"), Value(s("x" * 1024))),)),
            Delete("Plain", key("A", "2")),
            Check("Plain", key("A", "3"), THERE),
            Check("Plain", key("A", "4"), Not(THERE)),
            Put("Single", {"id": s("1")}),
        )
    )
    units = one(store, transaction, WriteResponse).consumed
    assert units == in_order((*writing("Plain", table=4 + 4 + 4 + 2.0), *writing("Single", table=2.0)))


def test_a_canceled_transaction_says_why_and_changes_nothing(store: Store) -> None:
    present = item("A", "1", a=s("text"))
    put(store, "Plain", present)
    transaction = TransactWrite(
        (
            Put("Plain", item("B", "1")),
            Put("Plain", item("A", "1"), Not(THERE)),
            Check("Plain", key("C", "1"), THERE),
            Delete("Plain", key("E", "1")),
        )
    )
    with pytest.raises(TransactionCanceled) as caught:
        store.execute([transaction])
    assert CANCELED + "[None, ConditionalCheckFailed, ConditionalCheckFailed, None]" in str(caught.value)
    assert caught.value.reasons == (OK, CancellationReason(*FAILED, present), CancellationReason(*FAILED, None), OK)
    assert stored(store, "Plain", key("B", "1")) is None
    assert stored(store, "Plain", key("A", "1")) == present


INVALID = [
    pytest.param(
        Update("Plain", key("A", "1"), (Set(attribute("x"), Path(("nothing",))),)),
        "The provided expression refers to an attribute that does not exist in the item",
        id="no attribute",
    ),
    pytest.param(
        Update("Plain", key("A", "1"), (Add(attribute("a"), n(1)),)),
        "An operand in the update expression has an incorrect data type",
        id="type of an attribute",
    ),
    pytest.param(
        Update("Plain", key("A", "1"), (Set(attribute("x"), Value(s("x" * 409_600))),)),
        "Item size to update has exceeded the maximum allowed size",
        id="too large",
    ),
    pytest.param(Put("Plain", {"PK": s("A")}), "Missing the key SK in the item", id="no key"),
    pytest.param(
        Put("Plain", {"PK": s("A"), "SK": n(1)}), "Type mismatch for key SK expected: S actual: N", id="type of a key"
    ),
    pytest.param(
        Put("Edges", item("A", "1", RPK=n(1))),
        "Type mismatch for Index Key RPK Expected: S Actual: N IndexName: Reverse",
        id="type of an index key",
    ),
    pytest.param(
        Update("Plain", {"PK": s("A"), "SK": n(1)}, (Set(attribute("x"), Value(n(1))),)),
        "The provided key element does not match the schema",
        id="type of the key to update",
    ),
    pytest.param(
        Delete("Plain", {"PK": s("A")}), "The provided key element does not match the schema", id="key to delete"
    ),
    pytest.param(
        Check("Plain", {"PK": s("A"), "SK": n(1)}, THERE),
        "The provided key element does not match the schema",
        id="key to check",
    ),
]


@pytest.mark.parametrize(("write", "message"), INVALID)
def test_what_an_item_or_a_table_does_not_allow_is_a_reason(
    store: Store, write: Put | Update | Delete | Check, message: str
) -> None:
    put(store, "Plain", item("A", "1", a=s("text")))
    with pytest.raises(TransactionCanceled) as caught:
        store.execute([TransactWrite((Put("Plain", item("B", "1")), write, Delete("Single", {"id": s("1")})))])
    first, second, third = caught.value.reasons
    assert first == third == OK
    assert (second.code, second.item) == ("ValidationError", None)
    assert message in second.message
    assert stored(store, "Plain", key("B", "1")) is None


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(Put("Plain", item("A", "2", x={"SS": []})), id="bad value"),
        pytest.param(Put("Plain", item("A", "2", x=s("x" * 409_600))), id="too large"),
        pytest.param(Put("Plain", item("A", "")), id="empty key"),
        pytest.param(Delete("Plain", key("A", "")), id="empty key to delete"),
        pytest.param(Update("Plain", key("A", "2"), (Set(attribute("PK"), Value(s("B"))),)), id="update of a key"),
        pytest.param(Update("Plain", key("A", "2"), ()), id="update of nothing"),
        pytest.param(Check("Plain", key("A", "2"), Compare("<", attribute("x"), Value({"BOOL": True}))), id="operand"),
    ],
)
def test_what_is_invalid_in_itself_is_no_cancellation(store: Store, bad: Put | Update | Delete | Check) -> None:
    with pytest.raises(InvalidRequest):
        store.execute([TransactWrite((Put("Plain", item("A", "1")), bad))])
    assert stored(store, "Plain", key("A", "1")) is None


def test_limits_of_a_transaction(store: Store) -> None:
    puts = tuple(Put("Plain", item("A", str(each))) for each in range(101))
    store.execute([TransactWrite(puts[:100])])
    for bad in ((), puts):
        with refused(store):
            store.execute([TransactWrite(bad)])
    with refused(store, "Transaction request cannot include multiple operations on one item"):
        store.execute([TransactWrite((puts[0], Check("Plain", key("A", "0"), THERE)))])


def test_a_transaction_writes_4_mb_at_most(store: Store) -> None:
    large = tuple(Put("Plain", item("B", str(each), x=s("x" * 400_000))) for each in range(11))
    with refused(store):
        store.execute([TransactWrite(large)])
    assert stored(store, "Plain", key("B", "1")) is None
    store.execute([TransactWrite(large[:10])])
    assert stored(store, "Plain", key("B", "1")) == large[1].item


# --- client tokens -----------------------------------------------------------------------------


def increment(token: str, by: int = 1) -> TransactWrite:
    return TransactWrite((Update("Plain", key("A", "1"), (Add(attribute("a"), n(by)),)),), token)


def test_a_token_applies_a_transaction_once(store: Store, token: str) -> None:
    store.execute([increment(token)])
    store.execute([increment(token)])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(1))
    store.execute([increment(uuid4().hex)])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))


def test_a_repeated_token_costs_reading(store: Store, token: str) -> None:
    assert one(store, increment(token), WriteResponse).consumed == writing("Plain", table=2.0)
    assert one(store, increment(token), WriteResponse).consumed == reading(2.0, "Plain")


@pytest.mark.parametrize("length", [0, 37])
def test_a_token_has_1_to_36_characters(store: Store, length: int) -> None:
    with refused(store):
        store.execute([increment("t" * length)])
    store.execute([increment(uuid4().hex + "abcd")])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(1))


def test_a_token_with_another_transaction(store: Store, token: str) -> None:
    store.execute([increment(token)])
    with pytest.raises(TokenReused):
        store.execute([increment(token, by=2)])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(1))


def test_transactions_that_differ_only_in_the_kind_of_a_condition(store: Store, token: str) -> None:
    put(store, "Plain", item("A", "1"))
    missing = Compare("=", attribute("x"), Value(n(1)))
    store.execute([TransactWrite((Check("Plain", key("A", "1"), Or((THERE, missing))),), token)])
    with pytest.raises(TokenReused):
        store.execute([TransactWrite((Check("Plain", key("A", "1"), And((THERE, missing))),), token)])


def test_the_order_of_attributes_does_not_make_another_transaction(store: Store, token: str) -> None:
    first = {"PK": s("A"), "SK": s("1"), "a": n(1)}
    second = {"a": n(1), "SK": s("1"), "PK": s("A")}
    store.execute([TransactWrite((Put("Plain", first),), token)])
    store.execute([TransactWrite((Put("Plain", second),), token)])


def test_a_canceled_transaction_leaves_its_token_free(store: Store, token: str) -> None:
    transaction = TransactWrite((Put("Plain", item("A", "1"), THERE),), token)
    with pytest.raises(TransactionCanceled):
        store.execute([transaction])
    with pytest.raises(TransactionCanceled):
        store.execute([transaction])
    put(store, "Plain", item("A", "1"))
    store.execute([transaction])
