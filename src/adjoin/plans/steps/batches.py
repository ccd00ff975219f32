"""Gets, queries and writes, arranged in as few requests as DynamoDB allows.

DynamoDB limits the size of a batch, and may leave some of a batch unprocessed under load. The plans here divide, and
send again what is left over, until everything is done.

A transaction may contain an item only once, so several writes of one item are joined into one. For example, a program
puts a node in a transaction in which an edge of this node is counted as well: the put and the change of the aggregate
become one put.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import Generic, Protocol, TypeAlias, TypeVar

import orjson

from adjoin.expressions import Action, Add, And, Condition, IfNotExists, Remove, Set, Value, all_of
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.table_keys import text_of
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    BatchWrite,
    Check,
    Delete,
    Get,
    PageResponse,
    Plan,
    Put,
    Query,
    Update,
    WriteResponse,
)
from adjoin.units import KB, MAX_BATCH_GET, MAX_BATCH_SIZE, MAX_BATCH_WRITE, MB
from adjoin.values import Item, canonical_number, exact_sum, item_size

BATCHES_A_ROUND = 16
"""How many batches are yielded together, to run side by side. A round is also a step of progress for the caller."""

Place: TypeAlias = tuple[str, ...]
"""The key of an item as a tuple, partition key first, so that it can be the key of a dictionary."""

T = TypeVar("T")
K = TypeVar("K")

# --- reads -------------------------------------------------------------------------------------


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


# --- batches of writes -------------------------------------------------------------------------


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


# --- several writes of one item ----------------------------------------------------------------


AnyRequest: TypeAlias = Put | Update | Delete | Check
"""A write of one item in a transaction."""


def stored_in(write: AnyRequest) -> Item:
    """The item of a put; for other writes, the key of the item."""
    return write.item if isinstance(write, Put) else write.key


class Keyed(Protocol):
    """A write that names its item by the key."""

    @property
    def key(self) -> Item: ...


def write_key(layout: BoundLayout, write: Put | Keyed) -> Item:
    """The key of the item that is written."""
    return layout.key_of(write.item) if isinstance(write, Put) else write.key


def write_place(layout: BoundLayout, write: Put | Keyed) -> Place:
    """The key of the item that is written, as a tuple."""
    return place_of(write_key(layout, write))


def parts_of(condition: Condition | None) -> list[Condition]:
    """The conditions that a condition consists of, if it is an `And` (also a nested one); all must hold."""
    if isinstance(condition, And):
        return [part for each in condition.conditions for part in parts_of(each)]
    return [] if condition is None else [condition]


def joined(layout: BoundLayout, write: AnyRequest, companion: AnyRequest) -> AnyRequest:
    """One write that does both a program's own write and a `companion` that counting adds for the same item.

    If both are updates and change the same attribute, the program's own action is the one that stays, unless it only
    gives a new node the default.
    """
    if isinstance(write, Check) and isinstance(companion, Check):
        return joined_check(write, companion)
    if isinstance(write, Check):
        assert isinstance(companion, Update)
        return Update(companion.table, companion.key, companion.actions, all_of(write.condition, companion.condition))
    if isinstance(write, Delete):
        # Nothing has to be counted on a node that is deleted.
        return write
    # The companion requires that the node exists. That is left out: a node that this transaction creates does not exist
    # yet, and for one that it changes, the program's own write checks this.
    beyond_presence = [part for part in parts_of(companion.condition) if part != layout.present]
    condition = all_of(write.condition, *beyond_presence)
    if isinstance(companion, Check):
        return (
            Put(write.table, write.item, condition)
            if isinstance(write, Put)
            else Update(write.table, write.key, write.actions, condition)
        )
    assert isinstance(companion, Update)
    if isinstance(write, Update):
        counted = {action.path for action in companion.actions}
        own = [action for action in write.actions if not (_is_default(action) and action.path in counted)]
        changed = {action.path for action in own}
        more = [action for action in companion.actions if action.path not in changed]
        return Update(write.table, write.key, (*own, *more), condition)
    return Put(write.table, acted(write.item, companion.actions), condition)


def _is_default(action: Action) -> bool:
    return isinstance(action, Set) and isinstance(action.value, IfNotExists)


def joined_check(one: Check, other: Check) -> Check:
    """One check of an item that requires the conditions of both."""
    if one == other:
        return one
    return Check(one.table, one.key, all_of(one.condition, other.condition) or one.condition)


def joined_checks(first: Sequence[Check], second: Sequence[Check]) -> tuple[Check, ...]:
    """The checks of both sequences, with those of the same item joined."""
    checks = {place_of(check.key): check for check in first}
    for check in second:
        place = place_of(check.key)
        checks[place] = joined_check(checks[place], check) if place in checks else check
    return tuple(checks.values())


def acted(item: Item, actions: Iterable[Action]) -> Item:
    """The item after these actions, as far as they set, remove or add known values."""
    item = dict(item)
    for action in actions:
        name = str(action.path.steps[0])
        if isinstance(action, Set) and isinstance(action.value, Value):
            item[name] = action.value.attribute
        elif isinstance(action, Set) and isinstance(action.value, IfNotExists):
            if isinstance(action.value.default, Value):
                item.setdefault(name, action.value.default.attribute)
        elif isinstance(action, Remove):
            item.pop(name, None)
        elif isinstance(action, Add) and "SS" in action.value:
            item[name] = {"SS": sorted({*item.get(name, {"SS": ()})["SS"], *action.value["SS"]})}
        elif isinstance(action, Add) and "N" in action.value:
            before = Decimal(item.get(name, {"N": "0"})["N"])
            item[name] = {"N": canonical_number(exact_sum((before, Decimal(action.value["N"]))))}
    return item
