"""The contract for many items at once: batches, which are not atomic, and transactions, which are."""

from __future__ import annotations

import pytest

from adjoin.errors import (
    CancellationReason,
    InvalidRequest,
    ItemTooLarge,
    TokenReused,
    TransactionCanceled,
)
from adjoin.expressions import Add, And, Compare, Exists, Not, Or, Path, Set, Value, attribute
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Check,
    Consumed,
    Delete,
    Get,
    Put,
    TransactGet,
    TransactWrite,
    Update,
    WriteResponse,
)
from adjoin.stores.interface import Store
from tests.stores.conftest import Clock
from tests.stores.examples import item, key, n, one, put, s, stored, writing

THERE = Exists(attribute("PK"))
CANCELED = "Transaction cancelled, please refer cancellation reasons for specific reasons "


# --- batches -----------------------------------------------------------------------------------


def test_batch_get_answers_in_order(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2", a=n(2), big=s("x" * 5000)))
    put(store, "Single", {"id": s("1")})
    gets = (
        Get("Plain", key("A", "2"), projection=(Path(("a",)),)),
        Get("Plain", key("A", "9"), projection=(Path(("a",)),)),
        Get("Single", {"id": s("1")}),
        Get("Plain", key("A", "1"), projection=(Path(("a",)),)),
    )
    assert one(store, BatchGet(gets), BatchGetResponse) == BatchGetResponse(
        [{"a": n(2)}, None, {"id": s("1")}, {"a": n(1)}],
        (),
        (Consumed("Plain", None, 2.0, 0.0), Consumed("Single", None, 0.5, 0.0)),
    )


def test_batch_get_stops_at_16_mb(store: Store) -> None:
    put(store, "Plain", *(item("A", f"{each:02d}", x=s("x" * 400_000)) for each in range(45)))
    gets = tuple(Get("Plain", key("A", f"{each:02d}")) for each in range(45))
    response = one(store, BatchGet(gets), BatchGetResponse)
    assert len(response.items) == 45
    assert [found is None for found in response.items] == [False] * 41 + [True] * 4
    assert response.unprocessed == gets[41:]
    assert response.consumed == (Consumed("Plain", None, 41 * 49.0, 0.0),)


@pytest.mark.parametrize("request_of", [BatchGet, TransactGet])
def test_limits_of_batch_reads(store: Store, request_of: type[BatchGet] | type[TransactGet]) -> None:
    gets = tuple(Get("Plain", key("A", str(each))) for each in range(101))
    one(store, request_of(gets[:100]), BatchGetResponse)
    for bad in ((), gets):
        with pytest.raises(InvalidRequest, match=f"takes 1 to 100 keys, not {len(bad)}"):
            store.execute([request_of(bad)])
    with pytest.raises(InvalidRequest, match=r"duplicates|multiple operations on one item"):
        store.execute([request_of((gets[0], gets[1], gets[0]))])


def test_batch_write_puts_and_deletes(store: Store) -> None:
    put(store, "Plain", item("A", "1"), item("A", "2", x=s("x" * 2000)))
    batch = BatchWrite((Delete("Plain", key("A", "2")), Put("Plain", item("A", "3")), Put("Single", {"id": s("1")})))
    assert one(store, batch, WriteResponse) == WriteResponse(
        (), (Consumed("Plain", None, 0.0, 3.0), Consumed("Single", None, 0.0, 1.0))
    )
    there = [stored(store, "Plain", key("A", each)) is not None for each in "123"]
    assert there == [True, False, True]


def test_limits_of_batch_write(store: Store) -> None:
    puts = tuple(Put("Plain", item("A", str(each))) for each in range(26))
    store.execute([BatchWrite(puts[:25])])
    for bad in ((), puts):
        with pytest.raises(InvalidRequest, match=f"takes 1 to 25 writes, not {len(bad)}"):
            store.execute([BatchWrite(bad)])
    with pytest.raises(InvalidRequest, match="Provided list of item keys contains duplicates"):
        store.execute([BatchWrite((puts[0], Delete("Plain", key("A", "0"))))])
    with pytest.raises(InvalidRequest, match="cannot have conditions"):
        store.execute([BatchWrite((Put("Plain", item("A", "1"), THERE),))])


def test_an_invalid_batch_writes_nothing(store: Store) -> None:
    with pytest.raises(ItemTooLarge):
        store.execute([BatchWrite((Put("Plain", item("A", "1")), Put("Plain", item("A", "2", x=s("x" * 409_600)))))])
    assert stored(store, "Plain", key("A", "1")) is None


# --- transactions ------------------------------------------------------------------------------


def test_transact_get(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2", x=s("x" * 5000)))
    gets = (Get("Plain", key("A", "2"), projection=()), Get("Plain", key("A", "9")), Get("Plain", key("A", "1")))
    assert one(store, TransactGet(gets), BatchGetResponse) == BatchGetResponse(
        [{}, None, item("A", "1", a=n(1))], (), (Consumed("Plain", None, 8.0, 0.0),)
    )


def test_a_transaction_applies_all(store: Store) -> None:
    put(store, "Plain", item("A", "1", a=n(1)), item("A", "2"), item("A", "3"))
    transaction = TransactWrite(
        (
            Update("Plain", key("A", "1"), (Add(attribute("a"), n(1)),), THERE),
            Delete("Plain", key("A", "2")),
            Check("Plain", key("A", "3"), THERE),
            Put("Plain", item("A", "4", x=s("x" * 2000)), Not(THERE)),
        )
    )
    assert one(store, transaction, WriteResponse) == WriteResponse((), writing("Plain", table=2 + 2 + 2 + 4.0))
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))
    assert stored(store, "Plain", key("A", "2")) is None
    assert stored(store, "Plain", key("A", "3")) == item("A", "3")
    assert stored(store, "Plain", key("A", "4")) is not None


def test_a_canceled_transaction_says_why_and_changes_nothing(store: Store) -> None:
    present = item("A", "1", a=s("text"))
    put(store, "Plain", present)
    transaction = TransactWrite(
        (
            Put("Plain", item("B", "1")),
            Put("Plain", item("A", "1"), Not(THERE)),
            Check("Plain", key("C", "1"), THERE),
            Update("Plain", key("D", "1"), (Set(attribute("x"), Path(("nothing",))),)),
            Delete("Plain", key("E", "1")),
        )
    )
    with pytest.raises(TransactionCanceled) as caught:
        store.execute([transaction])
    assert str(caught.value) == (
        CANCELED + "[None, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError, None]"
    )
    assert caught.value.reasons == (
        CancellationReason("None"),
        CancellationReason("ConditionalCheckFailed", "The conditional request failed", present),
        CancellationReason("ConditionalCheckFailed", "The conditional request failed", None),
        CancellationReason(
            "ValidationError", "The provided expression refers to an attribute that does not exist in the item"
        ),
        CancellationReason("None"),
    )
    assert stored(store, "Plain", key("B", "1")) is None
    assert stored(store, "Plain", key("A", "1")) == present


def test_what_is_invalid_in_itself_is_no_cancellation(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="Missing the key SK"):
        store.execute([TransactWrite((Put("Plain", item("A", "1")), Put("Plain", {"PK": s("A")})))])
    assert stored(store, "Plain", key("A", "1")) is None


def test_limits_of_a_transaction(store: Store) -> None:
    puts = tuple(Put("Plain", item("A", str(each))) for each in range(101))
    store.execute([TransactWrite(puts[:100])])
    for bad in ((), puts):
        with pytest.raises(InvalidRequest, match=f"takes 1 to 100 writes, not {len(bad)}"):
            store.execute([TransactWrite(bad)])
    with pytest.raises(InvalidRequest, match="cannot include multiple operations on one item"):
        store.execute([TransactWrite((puts[0], Check("Plain", key("A", "0"), THERE)))])
    large = tuple(Put("Plain", item("B", str(each), x=s("x" * 400_000))) for each in range(11))
    with pytest.raises(InvalidRequest, match="larger than 4 MB together"):
        store.execute([TransactWrite(large)])
    assert stored(store, "Plain", key("B", "1")) is None


# --- client tokens -----------------------------------------------------------------------------


def increment(token: str, by: int = 1) -> TransactWrite:
    return TransactWrite((Update("Plain", key("A", "1"), (Add(attribute("a"), n(by)),)),), token)


def test_a_token_applies_a_transaction_once(store: Store) -> None:
    assert one(store, increment("t"), WriteResponse).consumed == writing("Plain", table=2.0)
    assert one(store, increment("t"), WriteResponse).consumed == (Consumed("Plain", None, 2.0, 0.0),)
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(1))
    store.execute([increment("other")])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(2))


def test_a_token_with_another_transaction(store: Store) -> None:
    store.execute([increment("t")])
    with pytest.raises(TokenReused, match="the token 't' was used for another transaction"):
        store.execute([increment("t", by=2)])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(1))


def test_transactions_that_differ_only_in_the_kind_of_a_condition(store: Store) -> None:
    put(store, "Plain", item("A", "1"))
    missing = Compare("=", attribute("x"), Value(n(1)))
    store.execute([TransactWrite((Check("Plain", key("A", "1"), Or((THERE, missing))),), "t")])
    with pytest.raises(TokenReused):
        store.execute([TransactWrite((Check("Plain", key("A", "1"), And((THERE, missing))),), "t")])


def test_the_order_of_attributes_does_not_make_another_transaction(store: Store) -> None:
    first = {"PK": s("A"), "SK": s("1"), "a": n(1)}
    second = {"a": n(1), "SK": s("1"), "PK": s("A")}
    store.execute([TransactWrite((Put("Plain", first),), "t")])
    store.execute([TransactWrite((Put("Plain", second),), "t")])


def test_a_canceled_transaction_leaves_its_token_free(store: Store) -> None:
    transaction = TransactWrite((Put("Plain", item("A", "1"), THERE),), "t")
    with pytest.raises(TransactionCanceled):
        store.execute([transaction])
    with pytest.raises(TransactionCanceled):
        store.execute([transaction])
    store.execute([increment("t")])


def test_a_token_lasts_ten_minutes(store: Store, clock: Clock) -> None:
    store.execute([increment("t")])
    clock.now += 599
    store.execute([increment("t")])
    clock.now += 1
    store.execute([increment("t", by=5)])
    assert stored(store, "Plain", key("A", "1")) == item("A", "1", a=n(6))
