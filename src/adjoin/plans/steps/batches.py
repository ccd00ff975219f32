"""Any number of gets, queries and writes, in as few requests as DynamoDB allows.

DynamoDB limits the size of a batch, and may leave some of a batch unprocessed under load. These plans divide, and send
again what is left over, until everything is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

import orjson

from adjoin.layouts.table_keys import text_of
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Delete,
    Get,
    PageResponse,
    Plan,
    Put,
    Query,
    WriteResponse,
)
from adjoin.units import KB, MAX_BATCH_GET, MAX_BATCH_SIZE, MAX_BATCH_WRITE, MB
from adjoin.values import Item, item_size

BATCHES_A_ROUND = 16
"""How many batches are yielded together, to run side by side. A round is also a step of progress for the caller."""

Place: TypeAlias = tuple[str, ...]
"""The key of an item as a tuple, partition key first, so that it can be the key of a dictionary."""

T = TypeVar("T")
K = TypeVar("K")


def place_of(key: Item) -> Place:
    """The key of an item as a tuple."""
    # No function of the plans is called more often. Most keys are two texts, which need no loop.
    try:
        partition, sort = key.values()
        return partition["S"], sort["S"]
    except (ValueError, KeyError):
        return tuple(text_of(part) for part in key.values())


def chunks(things: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Divides things into tuples of at most `size`."""
    rest = iter(things)
    while chunk := tuple(islice(rest, size)):
        yield chunk


def get_all(gets: Iterable[Get]) -> Plan[list[Item | None]]:
    """The items of these gets, in their order; None for an item that does not exist.

    The gets must be of different items, because DynamoDB refuses a batch with the same key twice. They are taken from
    the iterable only as they are needed.
    """
    found: list[Item | None] = []
    rest = iter(gets)
    again: list[tuple[int, Get]] = []
    """Gets that were left unprocessed, each with its position in `found`."""
    while True:
        new = tuple(islice(rest, BATCHES_A_ROUND * MAX_BATCH_GET - len(again)))
        gets_now = [get for _, get in again] + [*new]
        if not gets_now:
            return found
        responses: list[BatchGetResponse] = yield tuple(BatchGet(some) for some in chunks(gets_now, MAX_BATCH_GET))
        left = {id(get) for response in responses for get in response.unprocessed}
        items = (item for response in responses for item in response.items)
        if not again and not left:
            # As a rule, every batch is processed as a whole.
            found += items
            continue
        waiting = [*again, *enumerate(new, len(found))]
        found += [None] * len(new)
        again = []
        for (place, get), item in zip(waiting, items, strict=True):
            if id(get) in left:
                again.append((place, get))
            else:
                found[place] = item


class Pages(Generic[K]):
    """All pages of several queries. Each round reads the next page of every query that has one, or of `width` of them.

    Each query has a tag, by which the caller recognizes its pages.
    """

    def __init__(self, queries: Iterable[tuple[K, Query]], width: int | None = None) -> None:
        self._open = [*queries]
        self._width = width

    @property
    def has_more(self) -> bool:
        """Whether there may be further pages."""
        return bool(self._open)

    def next(self) -> Plan[list[tuple[K, PageResponse]]]:
        """The next pages, with the tags of their queries; an empty list when everything is read."""
        if not self._open:
            return []
        some, later = self._open, []
        if self._width is not None:
            some, later = self._open[: self._width], self._open[self._width :]
        responses: list[PageResponse] = yield tuple([query for _, query in some])
        rest: list[tuple[K, Query]] = []
        pages: list[tuple[K, PageResponse]] = []
        for (tag, query), page in zip(some, responses, strict=True):
            pages.append((tag, page))
            if page.last is not None:
                rest.append((tag, replace(query, start=page.last)))
        # A query that was begun is read to its end before others begin.
        self._open = [*rest, *later]
        return pages


Cut: TypeAlias = Callable[[Iterable[Put | Delete]], Iterable[tuple[Put | Delete, ...]]]
"""A function that divides writes into batches."""


def by_count(writes: Iterable[Put | Delete]) -> Iterator[tuple[Put | Delete, ...]]:
    """Batches of as many writes as DynamoDB allows, for items that are known to be small."""
    return chunks(writes, MAX_BATCH_WRITE)


_ROOM = MAX_BATCH_SIZE - MB
"""How many bytes of items fit into a request of 16 MB, beside names of tables and other JSON."""
_SMALL = 48 * KB
"""Up to this size, the size of an item in JSON is only estimated."""
_WORST = 10
"""No value is longer in JSON than ten times its size. The worst case is a list of empty texts."""


def by_size(writes: Iterable[Put | Delete]) -> Iterator[tuple[Put | Delete, ...]]:
    """Batches whose requests are also small enough in bytes, for items of any size."""
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
    """An upper limit for the size of an item in JSON; exact for large items, of which 25 might not fit."""
    size = item_size(item)
    return size * _WORST if size <= _SMALL else len(orjson.dumps(item))


def write_in_rounds(writes: Iterable[Put | Delete], cut: Cut = by_count) -> Plan[None]:
    """Performs any number of puts and deletes of different items, a few batches side by side."""
    for some in chunks(writes, BATCHES_A_ROUND * MAX_BATCH_WRITE):
        yield from write_all(some, cut)


def write_all(writes: Iterable[Put | Delete], cut: Cut = by_count) -> Plan[None]:
    """Performs puts and deletes of different items in one round, and sends again what was left unprocessed."""
    waiting = tuple(writes)
    while waiting:
        responses: list[WriteResponse] = yield tuple(BatchWrite(some) for some in cut(waiting))
        waiting = tuple(write for response in responses for write in response.unprocessed)
