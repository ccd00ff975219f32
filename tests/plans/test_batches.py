"""Batches: how many are asked for at once, what was left undone, and how large a request may be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from adjoin.plans.steps.batches import BATCHES_A_ROUND, Pages, by_size, chunks, get_all, write_all
from adjoin.requests import BatchGet, BatchGetResponse, BatchWrite, Delete, Get, PageResponse, Put, Query, WriteResponse
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_SIZE, MAX_BATCH_WRITE, MB


def key(number: int) -> Any:
    return {"PK": {"S": str(number)}}


def answer(batch: BatchGet, undone: frozenset[int] = frozenset()) -> BatchGetResponse:
    """All items of a batch but those of some numbers; every seventh is not there."""
    left = tuple(get for get in batch.gets if int(get.key["PK"]["S"]) in undone)
    items = [None if get in left or int(get.key["PK"]["S"]) % 7 == 0 else get.key for get in batch.gets]
    return BatchGetResponse(items, left, ())


def performed(plan: Any) -> tuple[list[list[int]], Any]:
    """How many gets each batch of each round has, and what comes of them."""
    rounds: list[list[int]] = []
    try:
        asked = next(plan)
        while True:
            rounds.append([len(batch.gets) for batch in asked])
            asked = plan.send([answer(batch) for batch in asked])
    except StopIteration as ended:
        return rounds, ended.value


def test_chunks() -> None:
    assert list(chunks(range(7), 3)) == [(0, 1, 2), (3, 4, 5), (6,)]
    assert list(chunks([], 3)) == []


@pytest.mark.parametrize("number", [0, 1, 100, 101, 1600, 1601, 3300])
def test_gets_come_in_their_order_in_rounds_of_batches(number: int) -> None:
    rounds, found = performed(get_all([Get("Things", key(each)) for each in range(number)]))
    assert found == [None if each % 7 == 0 else key(each) for each in range(number)]
    assert all(len(sizes) <= BATCHES_A_ROUND for sizes in rounds)
    sizes = [size for sizes in rounds for size in sizes]
    assert sizes == [MAX_BATCH_GET] * (number // MAX_BATCH_GET) + [number % MAX_BATCH_GET] * (
        number % MAX_BATCH_GET > 0
    )
    assert len(rounds) == -(-number // (MAX_BATCH_GET * BATCHES_A_ROUND))


def test_gets_that_were_left_undone_are_asked_for_again() -> None:
    plan = get_all([Get("Things", key(each)) for each in range(250)])
    first: Any = next(plan)
    second: Any = plan.send([answer(batch, frozenset({3, 99, 100, 249})) for batch in first])
    assert [[get.key for get in batch.gets] for batch in second] == [[key(3), key(99), key(100), key(249)]]
    third: Any = plan.send([answer(batch, frozenset({100})) for batch in second])
    with pytest.raises(StopIteration) as ended:
        plan.send([answer(batch) for batch in third])
    assert ended.value.value == [None if each % 7 == 0 else key(each) for each in range(250)]


def test_a_round_of_gets_holds_those_that_were_left_undone() -> None:
    """They come first, and as many new ones as there is room for."""
    most = BATCHES_A_ROUND * MAX_BATCH_GET
    plan = get_all([Get("Things", key(each)) for each in range(2 * most)])
    first: Any = next(plan)
    assert [len(batch.gets) for batch in first] == [MAX_BATCH_GET] * BATCHES_A_ROUND
    second: Any = plan.send([answer(batch, frozenset(range(150))) for batch in first])
    asked = [int(get.key["PK"]["S"]) for batch in second for get in batch.gets]
    assert asked == [*range(150), *range(most, 2 * most - 150)]
    third: Any = plan.send([answer(batch) for batch in second])
    with pytest.raises(StopIteration) as ended:
        plan.send([answer(batch) for batch in third])
    assert ended.value.value == [None if each % 7 == 0 else key(each) for each in range(2 * most)]


def test_writes_that_were_left_undone_are_asked_for_again() -> None:
    writes = [Put("Things", key(each)) for each in range(60)]
    plan = write_all(writes)
    first: Any = next(plan)
    assert [len(batch.writes) for batch in first] == [MAX_BATCH_WRITE, MAX_BATCH_WRITE, 10]
    second: Any = plan.send([WriteResponse((batch.writes[0],), ()) for batch in first])
    assert second == (BatchWrite((writes[0], writes[25], writes[50])),)
    with pytest.raises(StopIteration):
        plan.send([WriteResponse((), ())])


def test_pages_of_several_queries() -> None:
    """A round reads a page of each, or of as many as are allowed; what was begun is read to its end first."""

    def rounds(width: int | None) -> list[list[tuple[str, Any]]]:
        left = {"a": 2, "b": 0, "c": 1}
        pages = Pages([(tag, Query("Things", ("PK", {"S": tag}))) for tag in left], width)
        found: list[list[tuple[str, Any]]] = []
        while asked := next(plan := pages.next(), None):
            found.append([(query.partition[1]["S"], query.start) for query in asked if isinstance(query, Query)])
            answers: list[Any] = []
            for tag, _ in found[-1]:
                answers.append(PageResponse([], 0, 0, key(left[tag]) if left[tag] else None))
                left[tag] -= 1
            with pytest.raises(StopIteration) as ended:
                plan.send(answers)
            assert [tag for tag, _ in ended.value.value] == [tag for tag, _ in found[-1]]
        with pytest.raises(StopIteration) as ended:
            next(pages.next())
        assert ended.value.value == []
        return found

    assert rounds(None) == [[("a", None), ("b", None), ("c", None)], [("a", key(2)), ("c", key(1))], [("a", key(1))]]
    assert rounds(2) == [
        [("a", None), ("b", None)],
        [("a", key(2)), ("c", None)],
        [("a", key(1)), ("c", key(1))],
    ]


def sized(number: int, size: int) -> Put:
    return Put("Things", {"PK": {"S": str(number)}, "x": {"S": "x" * size}})


@pytest.mark.parametrize(
    ("writes", "sizes"),
    [
        ([], []),
        ([sized(each, 1) for each in range(26)], [25, 1]),
        ([Delete("Things", key(each)) for each in range(25)], [25]),
        # Each has 400 KB: far more than 25 of them fit into 16 MB.
        ([sized(each, 400_000) for each in range(26)], [25, 1]),
        # Text of which each character is six in JSON: seven of them fill a request.
        ([Put("Things", {"PK": {"S": str(each)}, "x": {"S": "\0" * 390_000}}) for each in range(10)], [6, 4]),
    ],
)
def test_batches_fit_a_request(writes: list[Any], sizes: list[int]) -> None:
    batches = list(by_size(writes))
    assert [len(batch) for batch in batches] == sizes
    assert [write for batch in batches for write in batch] == writes


def test_small_items_are_not_taken_for_smaller_than_they_are() -> None:
    # Each character is six in JSON, so the large ones leave room for a few of the others only.
    items = [{"PK": {"S": str(each)}, "x": {"S": "\0" * (390_000 if each < 6 else 40_000)}} for each in range(25)]
    batches = list(by_size([Put("Things", item) for item in items]))
    sizes = [sum(len(orjson.dumps(write.item)) for write in batch if isinstance(write, Put)) for batch in batches]
    assert max(sizes) <= MAX_BATCH_SIZE - MB
    assert sum(map(len, batches)) == 25
