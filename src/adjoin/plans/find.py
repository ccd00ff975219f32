"""Finding by an indexed field: one query a shard, side by side, merged in order.

The order of entries is one order over all shards, so a place in it is where every shard goes on, also
a shard that was not there when the page before was read. A page token is such a place.

The shards that are asked are those of the stored map. It is read again, beside the queries, when the
lease of what this graph knows is over; shards that it did not know of are then asked too.

Where a field has got more shards, an entry that is put again may go to another one, also from where it
was not read yet to where it was not met. So between two steps of an iteration nothing is kept that was
read ahead: all shards go on from one place, those that were ahead with few entries.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.expressions import Condition, Exists, Not, all_of, attribute
from adjoin.fields import AllOf, Comparison, Predicate
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.layouts.overloaded import IndexedField, OverloadedIndex, Stretch, unindexed
from adjoin.plans import Plan
from adjoin.plans.conditions import condition
from adjoin.plans.deletion import visible
from adjoin.plans.read import Found, changed, whole
from adjoin.plans.shards import learn, map_request
from adjoin.requests import ItemResponse, PageResponse, Query
from adjoin.schema import EntityType
from adjoin.values import Item

_RANKS = {"=": 0, "in": 1, "begins_with": 2, "between": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "exists": 5}
"""Which comparison narrows a search more, roughly."""

# --- what is asked -----------------------------------------------------------------------------


@dataclass(eq=False)
class Search:
    """A question for entries of one indexed field. Never changed."""

    field: IndexedField
    partitions: str
    """What the keys of all its shards begin with; the tenant's prefix is part of it."""
    stretches: tuple[Stretch, ...]
    """Where to look: disjoint, in order."""
    filter: Condition | None = None
    forward: bool = True

    def with_(self, **changes: Any) -> Search:
        return changed(self, changes)

    def identity(self, table: str) -> bytes:
        return repr((table, self.partitions, self.stretches, self.filter, self.forward)).encode()


def search(layout: BoundLayout, kind: EntityType, predicate: Predicate | None, order: str | None) -> Search:
    """The search that a predicate means: by the indexed field that narrows most, or by `order`; the rest filters."""
    index = layout.overloaded
    if index is None or not kind.indexed:
        raise InvalidKey(f"{kind.name} has no indexed field to find by; mark one with Indexed()")
    parts = _parts(predicate)
    for part in parts:
        _check_fields(kind, part)
    if order is not None:
        chosen = index.field(kind, order)
    elif not parts:
        chosen = index.fields(kind)[0]
    else:
        usable = [part for part in parts if _narrows(index, kind, part)]
        if not usable:
            raise InvalidKey(_nothing_indexed(kind, parts))
        best = min(usable, key=lambda part: _RANKS[part.operator])
        chosen = index.field(kind, best.field)
    stretches, rest = _narrowed(chosen, parts)
    if rest and index.is_partial:
        raise InvalidValue(
            f"the index {index.name!r} holds only parts of the items, and DynamoDB filters by what it holds; "
            f"filter what comes back, or let the index project everything"
        )
    wanted = all_of(*(condition(layout, kind, part) for part in rest))
    return Search(chosen, index.partition(chosen.scope, ""), stretches, wanted)


def _parts(predicate: Predicate | None) -> list[Any]:
    if predicate is None:
        return []
    if not isinstance(predicate, Predicate):
        raise InvalidValue(f'{shown(predicate)} is not a comparison; build one with field("name") == value')
    return list(predicate.predicates) if isinstance(predicate, AllOf) else [predicate]


def _check_fields(kind: EntityType, part: Predicate) -> None:
    """An unknown field is an error before anything is asked."""
    if isinstance(part, Comparison):
        kind.attribute(part.field.partition(".")[0])


def _narrows(index: OverloadedIndex, kind: EntityType, part: Predicate) -> bool:
    if not isinstance(part, Comparison) or part.field not in kind.indexed:
        return False
    return index.field(kind, part.field).stretches(part) is not None


def _nothing_indexed(kind: EntityType, parts: Iterable[Predicate]) -> str:
    plain = [part for part in parts if isinstance(part, Comparison)]
    if not plain or plain[0].field in kind.indexed:
        return (
            f"an index finds {kind.name} by ==, <, <=, >, >=, between, begins_with, is_in or exists of one of "
            f"{', '.join(map(repr, kind.indexed))}, joined with & to anything else"
        )
    return unindexed(kind, plain[0].field)


def _narrowed(chosen: IndexedField, parts: list[Any]) -> tuple[tuple[Stretch, ...], list[Any]]:
    """Where to look, and what is left to filter by."""
    own = [part for part in parts if isinstance(part, Comparison) and part.field == chosen.name]
    told = [(part, stretches) for part in own if (stretches := chosen.stretches(part)) is not None]
    told.sort(key=lambda each: _RANKS[each[0].operator])
    if not told:
        return (Stretch(),), parts
    first, stretches = told[0]
    # What holds for everything in the index, such as that it exists, needs no asking.
    used: list[Any] = [first, *(part for part, where in told[1:] if where == (Stretch(),))]
    # Two conditions on one key cannot be asked: where there is a range too, it is asked, and a prefix filters.
    ranges = [(part, one) for part, (one, *others) in told if not others and one.prefix is None and one != Stretch()]
    if stretches[0].prefix is not None and ranges:
        used = used[1:]
        stretches = (Stretch(),)
    if stretches[0].prefix is None:
        for part, one in ranges:
            stretches = tuple(each.narrowed(one) for each in stretches)
            used.append(part)
    rest = [part for part in parts if not any(part is each for each in used)]
    return tuple(each for each in stretches if not each.is_empty), rest


# --- shards side by side -----------------------------------------------------------------------


@dataclass(slots=True)
class _Stream:
    """The entries of one stretch in one shard, as far as they have been read."""

    partition: str
    stretch: Stretch
    start: Item | None = None
    is_done: bool = False
    buffer: deque[Item] = field(default_factory=deque)
    taken: int = 0
    """How many entries of it were given in this step."""
    most: int | None = None
    """How many to ask for first, where it was ahead of the others."""

    def copy(self) -> _Stream:
        return _Stream(self.partition, self.stretch, self.start, self.is_done, deque(self.buffer))


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the order of all entries: behind this one. What was read beyond it is kept, while it lasts."""

    last: Item
    streams: tuple[_Stream, ...] = ()
    paces: Mapping[tuple[str, Stretch], int] = field(default_factory=dict)
    """How many entries to ask for first, of shards that were ahead of the others."""


class _Reading:
    """One search while it is read."""

    def __init__(self, layout: BoundLayout, asked: Search, position: Position | None) -> None:
        assert layout.overloaded is not None
        self.layout, self.asked, self.index = layout, asked, layout.overloaded
        self.last: Item | None = None if position is None else position.last
        self._streams: dict[tuple[str, Stretch], _Stream] = {}
        if position is not None:
            self._streams = {(each.partition, each.stretch): each.copy() for each in position.streams}
        self._add_streams()
        for place, most in position.paces.items() if position is not None else ():
            if place in self._streams:
                self._streams[place].most = most

    def _add_streams(self) -> None:
        """Begins to read every shard that is known and not being read."""
        for stretch in self.asked.stretches:
            for partition in self.index.partitions(self.asked.field, stretch):
                if (partition, stretch) not in self._streams:
                    self._streams[partition, stretch] = self._begun(partition, stretch)

    def _begun(self, partition: str, stretch: Stretch) -> _Stream:
        if self.last is None:
            return _Stream(partition, stretch)
        place = stretch.side_of(self.last[self.index.sort_key]["S"])
        if place == 0:
            start = {**self.last, self.index.partition_key: {"S": partition}}
            return _Stream(partition, stretch, start)
        is_over = (place > 0) is self.asked.forward
        return _Stream(partition, stretch, is_done=is_over)

    def streams(self) -> list[_Stream]:
        return list(self._streams.values())

    def position(self) -> Position | None:
        """Where to go on; None at the end."""
        if all(stream.is_done and not stream.buffer for stream in self.streams()):
            return None
        if not self.index.book.may_move(self.asked.field.scope):
            return Position(self.last or {}, tuple(self.streams()))
        ahead = {place: max(1, 2 * stream.taken) for place, stream in self._streams.items() if stream.buffer}
        return Position(self.last or {}, (), ahead)

    def request(self, stream: _Stream, limit: int | None, *, count: bool = False) -> Query:
        asked, index = self.asked, self.index
        return Query(
            self.layout.table,
            (index.partition_key, {"S": stream.partition}),
            stream.stretch.condition(index.sort_key),
            index.name,
            asked.filter,
            None,
            count,
            limit,
            stream.start,
            asked.forward,
        )

    def read(self, requests: tuple[Query, ...]) -> Plan[list[PageResponse]]:
        """Asks the shards, and for their map if it may have changed."""
        scope, book = self.asked.field.scope, self.index.book
        answers: list[Any]
        if not book.is_stale(scope):
            answers = yield requests
            return answers
        asked_at = book.clock()
        answers = yield (*requests, map_request(self.layout, scope))
        stored: ItemResponse = answers.pop()
        learn(book, scope, stored.item, asked_at)
        self._add_streams()
        return answers

    def fill(self, limit: int | None) -> Plan[None]:
        """Reads on wherever nothing is left to merge."""
        hungry = [stream for stream in self.streams() if not stream.is_done and not stream.buffer]
        if not hungry:
            return
        responses = yield from self.read(tuple(self.request(stream, _least(limit, stream.most)) for stream in hungry))
        for stream, response in zip(hungry, responses, strict=True):
            items = list(response.items)
            if self.index.is_partial:
                items = yield from whole(self.layout, items)
            if any(DELETING in item for item in items):
                items = yield from visible(self.layout, items)
            stream.buffer.extend(items)
            stream.start, stream.is_done, stream.most = response.last, response.last is None, None

    def merged(self, most: int | None) -> list[Item]:
        """The next entries in order, up to where something has to be read."""
        sort_key, sign = self.index.sort_key, self.asked.forward
        streams = self.streams()
        if any(not stream.is_done and not stream.buffer for stream in streams):
            return []
        heads = [
            (_Key(stream.buffer[0][sort_key]["S"], sign), place)
            for place, stream in enumerate(streams)
            if stream.buffer
        ]
        heapq.heapify(heads)
        found: list[Item] = []
        while heads and (most is None or len(found) < most):
            key, place = heads[0]
            stream = streams[place]
            item = stream.buffer.popleft()
            stream.taken += 1
            # An entry that was written again meanwhile may be met in two shards.
            if self.last is None or self.last[sort_key]["S"] != key.text:
                found.append(item)
                self.last = self._place_of(item)
            if stream.buffer:
                heapq.heapreplace(heads, (_Key(stream.buffer[0][sort_key]["S"], sign), place))
            elif stream.is_done:
                heapq.heappop(heads)
            else:
                break
        return found

    def _place_of(self, item: Item) -> Item:
        return {self.index.sort_key: item[self.index.sort_key], **self.layout.key_of(item)}


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Key:
    text: str
    forward: bool

    def __lt__(self, other: _Key) -> bool:
        return self.text < other.text if self.forward else self.text > other.text


# --- plans -------------------------------------------------------------------------------------


def found_page(layout: BoundLayout, asked: Search, limit: int | None, position: Position | None) -> Plan[Found]:
    """With a limit, that many (fewer only at the end); without, as many as come with one round."""
    if not asked.stretches:
        return Found([], None)
    reading = _Reading(layout, asked, position)
    kind = asked.field.kind
    entities: list[Any] = []
    ask = limit if limit is None or asked.filter is None else max(4 * limit, 100)
    while True:
        yield from reading.fill(ask)
        items = reading.merged(None if limit is None else limit - len(entities))
        entities += [entity for entity in (layout.found(kind, item) for item in items) if entity is not None]
        after = reading.position()
        if after is None or (bool(entities) if limit is None else len(entities) == limit):
            return Found(entities, after)


def found_count(layout: BoundLayout, asked: Search, most: int | None) -> Plan[int]:
    """How many there are; where nothing filters, they are counted by the store and not brought."""
    if not asked.stretches:
        return 0
    if asked.filter is not None or layout.overloaded is None or layout.overloaded.is_partial:
        return (yield from _brought(layout, asked, most))
    blind = asked.with_(filter=Not(Exists(attribute(DELETING))))
    reading = _Reading(layout, blind, None)
    total = 0
    while hungry := [stream for stream in reading.streams() if not stream.is_done]:
        requests = tuple(reading.request(stream, None, count=True) for stream in hungry)
        responses = yield from reading.read(requests)
        for stream, response in zip(hungry, responses, strict=True):
            if response.count != response.scanned:
                return (yield from _brought(layout, asked, most))
            total += response.count
            stream.start, stream.is_done = response.last, response.last is None
        if most is not None and total >= most:
            return most
    return total


def _brought(layout: BoundLayout, asked: Search, most: int | None) -> Plan[int]:
    total = 0
    position: Position | None = None
    while True:
        found = yield from found_page(layout, asked, None, position)
        total, position = total + len(found.entities), found.last
        if position is None or (most is not None and total >= most):
            return total if most is None else min(total, most)
