"""Any number of gets and writes, in as few batches as DynamoDB takes, until none is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

import orjson

from adjoin.plans import Plan
from adjoin.requests import BatchGet, BatchGetResponse, BatchWrite, Delete, Get, Put, WriteResponse
from adjoin.units import KB, MAX_BATCH_GET, MAX_BATCH_SIZE, MAX_BATCH_WRITE, MB
from adjoin.values import Item, item_size

BATCHES_A_ROUND = 16
"""Batches that are yielded together, to run side by side; a round is also a step of progress."""

Place: TypeAlias = tuple[str, ...]
"""The key of an item, partition first, as a value that can be looked up."""

T = TypeVar("T")


def place_of(key: Item) -> Place:
    # Nothing is called more often: two parts are told apart without a loop.
    if len(key) == 2:
        partition, sort = key.values()
        return partition["S"], sort["S"]
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


Cut: TypeAlias = Callable[[Iterable[Put | Delete]], Iterable[tuple[Put | Delete, ...]]]
"""How writes are cut into batches."""


def by_count(writes: Iterable[Put | Delete]) -> Iterator[tuple[Put | Delete, ...]]:
    return chunks(writes, MAX_BATCH_WRITE)


_ROOM = MAX_BATCH_SIZE - MB
"""Bytes of writes that a request of 16 MB has room for, beside names of tables and the like."""
_SMALL = 48 * KB
_WORST = 10
"""No value is spelled longer than ten times its size; the worst is a list of empty texts."""


def by_size(writes: Iterable[Put | Delete]) -> Iterator[tuple[Put | Delete, ...]]:
    """Batches that are also small enough on the wire, for items of any size."""
    batch: list[Put | Delete] = []
    room = _ROOM
    for write in writes:
        size = _wire_size(write.item if isinstance(write, Put) else write.key)
        if batch and (len(batch) == MAX_BATCH_WRITE or size > room):
            yield tuple(batch)
            batch, room = [], _ROOM
        batch.append(write)
        room -= size
    if batch:
        yield tuple(batch)


def _wire_size(item: Item) -> int:
    """At least as many bytes as the item has in JSON; exact for those few of which 25 might not fit."""
    size = item_size(item)
    return size * _WORST if size <= _SMALL else len(orjson.dumps(item))


def write_in_rounds(writes: Iterable[Put | Delete], cut: Cut = by_count) -> Plan[None]:
    """Any number of puts and deletes of different items, some batches side by side."""
    for some in chunks(writes, BATCHES_A_ROUND * MAX_BATCH_WRITE):
        yield from write_all(some, cut)


def write_all(writes: Iterable[Put | Delete], cut: Cut = by_count) -> Plan[None]:
    """Puts and deletes of different items, in one round of batches and as many as are needed after it."""
    waiting = tuple(writes)
    while waiting:
        responses: list[WriteResponse] = yield tuple(BatchWrite(some) for some in cut(waiting))
        waiting = tuple(write for response in responses for write in response.unprocessed)
