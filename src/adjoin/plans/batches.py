"""Any number of gets and writes, in as few batches as DynamoDB takes, until none is left over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from adjoin.plans import Plan
from adjoin.requests import BatchGet, BatchGetResponse, BatchWrite, Delete, Get, Put, WriteResponse
from adjoin.units import MAX_BATCH_GET, MAX_BATCH_WRITE
from adjoin.values import Item

BATCHES_A_ROUND = 16
"""Batches that are yielded together, to run side by side; a round is also a step of progress."""

Place: TypeAlias = tuple[str, ...]
"""The key of an item, partition first, as a value that can be looked up."""

T = TypeVar("T")


def place_of(key: Item) -> Place:
    return tuple(part["S"] for part in key.values())


def chunks(things: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    rest = iter(things)
    while chunk := tuple(islice(rest, size)):
        yield chunk


def get_all(gets: Sequence[Get]) -> Plan[list[Item | None]]:
    """One entry a get, in order; the gets are of different items."""
    found: dict[int, Item | None] = {}
    places = {id(get): place for place, get in enumerate(gets)}
    waiting: Sequence[Get] = gets
    while waiting:
        batches = [BatchGet(some) for some in chunks(waiting, MAX_BATCH_GET)][:BATCHES_A_ROUND]
        responses: list[BatchGetResponse] = yield tuple(batches)
        rest = waiting[sum(len(batch.gets) for batch in batches) :]
        again: list[Get] = []
        for batch, response in zip(batches, responses, strict=True):
            left = {id(get) for get in response.unprocessed}
            again += response.unprocessed
            for get, item in zip(batch.gets, response.items, strict=True):
                if id(get) not in left:
                    found[places[id(get)]] = item
        waiting = [*again, *rest]
    return [found[place] for place in range(len(gets))]


def write_all(writes: Iterable[Put | Delete]) -> Plan[None]:
    """Puts and deletes of different items, in one round of batches and as many as are needed after it."""
    waiting = tuple(writes)
    while waiting:
        responses: list[WriteResponse] = yield tuple(BatchWrite(some) for some in chunks(waiting, MAX_BATCH_WRITE))
        waiting = tuple(write for response in responses for write in response.unprocessed)
