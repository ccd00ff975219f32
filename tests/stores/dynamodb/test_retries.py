"""When a request is sent again: the waits between attempts, and what is safe after a lost answer."""

from __future__ import annotations

from collections import Counter

import pytest

from adjoin.expressions import (
    Action,
    Add,
    Arithmetic,
    Discard,
    Exists,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    Delete,
    Get,
    Put,
    Query,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
    Update,
)
from adjoin.stores.dynamodb.client import Backoff, Waits, with_token
from adjoin.stores.dynamodb.lost_answers import is_safe_in_doubt


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(backoff: Backoff, share: float, taking: float = 0.0) -> list[float]:
    """All waits of a call whose attempts take so many seconds each and always fail."""
    clock = Clock()
    attempts = Waits(backoff, clock, lambda: share)
    found: list[float] = []
    while True:
        clock.now += taking
        wait = attempts.next_wait()
        if wait is None:
            assert attempts.made == len(found) + 1
            return found
        assert wait < attempts.left()
        found.append(wait)
        clock.now += wait


def test_waits_double_up_to_the_longest() -> None:
    found = waits(Backoff(deadline=30, first=0.05, longest=5), share=1.0)
    # The last waits for what is left but for the second that an attempt needs.
    assert found == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 2.65])
    assert waits(Backoff(deadline=30), share=0.5)[:4] == pytest.approx([0.025, 0.05, 0.1, 0.2])


@pytest.mark.parametrize("deadline", [0.2, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("taking", [0.01, 0.3, 7.0])
def test_all_waits_and_attempts_stay_within_the_deadline(deadline: float, share: float, taking: float) -> None:
    backoff = Backoff(deadline)
    found = waits(backoff, share, taking)
    # The last attempt may begin so late that only the deadline itself ends it.
    assert sum(found) + taking * len(found) < deadline or not found
    assert deadline - sum(found) - taking * len(found) >= backoff.least * 0.999 or not found


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_nobody_gives_up_long_before_the_deadline(share: float) -> None:
    backoff = Backoff(deadline=3)
    assert sum(waits(backoff, share)) > 3 - backoff.least - 2 * backoff.first


def test_an_attempt_that_would_be_cut_off_at_once_is_not_made() -> None:
    clock = Clock()
    attempts = Waits(Backoff(deadline=1.0), clock, lambda: 0.0)
    clock.now += 0.84
    assert attempts.next_wait() == 0.0
    clock.now += 0.02
    assert attempts.next_wait() is None


def test_waits_are_spread_over_their_whole_range() -> None:
    found = [Waits(Backoff(first=1.0, deadline=100)).next_wait() or 0.0 for _ in range(4000)]
    tenths = Counter(int(wait * 10) for wait in found)
    assert set(tenths) == set(range(10))
    assert max(tenths.values()) < 2 * min(tenths.values())


def test_a_transaction_is_not_repeated_when_its_token_is_forgotten() -> None:
    """Ten minutes, says the API Reference of TransactWriteItems; the last attempt must arrive before."""
    assert with_token(Backoff(deadline=3600, first=0.1)) == Backoff(deadline=540, first=0.1)
    assert with_token(Backoff(deadline=30)) == Backoff(deadline=30)


def test_attempts_without_number() -> None:
    attempts = Waits(Backoff(deadline=1e9), share=lambda: 1.0, made=5000)
    assert attempts.next_wait() == 5.0


# --- what is safe ------------------------------------------------------------------------------

A, B = attribute("a"), attribute("b")
ONE, LIST, TEXTS = {"N": "1"}, {"L": [{"N": "1"}]}, {"SS": ["x"]}
KEY = {"PK": {"S": "k"}}

ACTIONS: list[tuple[Action, bool]] = [
    (Set(A, Value(ONE)), True),
    (Set(Path(("a", "b")), Value(ONE)), True),
    (Set(Path(("a", 0, "b")), Value(ONE)), True),
    (Set(Path(("a", 0)), Value(ONE)), False),  # appended again if it is beyond the end
    (Set(A, IfNotExists(A, Value(ONE))), True),
    (Set(A, IfNotExists(B, Value(ONE))), False),
    (Set(A, IfNotExists(A, B)), False),
    (Set(A, B), False),
    (Set(A, Arithmetic("+", A, Value(ONE))), False),
    (Set(A, Arithmetic("-", IfNotExists(A, Value(ONE)), Value(ONE))), False),
    (Set(A, ListAppend(A, Value(LIST))), False),
    (Remove(A), True),
    (Remove(Path(("a", "b"))), True),
    (Remove(Path(("a", 0))), False),
    (Remove(Path(("a", 0, "b"))), True),
    (Add(A, ONE), False),
    (Add(A, TEXTS), True),
    (Discard(A, TEXTS), True),
]


@pytest.mark.parametrize(("action", "is_safe"), ACTIONS, ids=lambda value: str(value))
def test_updates(action: Action, is_safe: bool) -> None:
    assert is_safe_in_doubt(Update("T", KEY, (action,))) is is_safe
    assert is_safe_in_doubt(Update("T", KEY, (action,), Exists(A), "new")) is is_safe
    assert is_safe_in_doubt(Update("T", KEY, (Set(B, Value(ONE)), action))) is is_safe
    assert is_safe_in_doubt(TransactWrite((Update("T", KEY, (action,)),)))


GET = Get("T", KEY)
REQUESTS: list[Request | Check] = [
    GET,
    BatchGet((GET,)),
    TransactGet((GET,)),
    Query("T", ("PK", {"S": "k"})),
    Scan("T"),
    Put("T", KEY),
    Put("T", KEY, Exists(A)),
    Put("T", KEY, return_old=True),
    Delete("T", KEY),
    Delete("T", KEY, Exists(A)),
    Check("T", KEY, Exists(A)),
    BatchWrite((Put("T", KEY),)),
    Update("T", KEY, ()),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda value: str(value))
def test_requests(request_: Request) -> None:
    assert is_safe_in_doubt(request_)
