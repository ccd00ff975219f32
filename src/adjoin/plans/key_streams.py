"""Reading the partitions of a `KeySearch` side by side, and merging them in the order of the sort key.

Each partition is a stream with a buffer. A round reads the next page of every stream whose buffer is empty. If the
index does not hold whole items, those of the next entries of all streams, in their merged order, are then fetched
together: no more than there are results to find, in as few batches as DynamoDB takes. `key_search` says what is read,
and what a page token holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidCursor
from adjoin.expressions import attribute
from adjoin.layouts.access_patterns import Partition
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.layouts.ranges import order_of
from adjoin.model import UNEXPLAINED, identity_of
from adjoin.plans.deletion import visible
from adjoin.plans.read import read_or_plain, whole
from adjoin.plans.shards import learn_number, number_request
from adjoin.plans.steps.batches import Place, place_of
from adjoin.plans.steps.predicates import holds
from adjoin.requests import ItemResponse, PageResponse, Plan, Query, Scan
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.plans.key_search import KeySearch


def another_query() -> InvalidCursor:
    return InvalidCursor("the page token belongs to another query; start again from the first page")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of an index that does not hold whole items, until its item is fetched."""

    item: Item


_FETCHED = 100
"""How many items to fetch at least if some of them may turn out to be no results: as many as one batch reads."""


@dataclass(slots=True)
class Stream:
    """One partition, as far as it was read."""

    partition: Partition
    start: Item | None = None
    """Where the next request begins."""
    place: Item | None = None
    """The key after which the results continue that were not returned yet; None for the beginning."""
    is_done: bool = False
    buffer: deque[tuple[Item, Any]] = field(default_factory=deque)
    """What was read ahead, each with the start key of a query that continues: results, None for what is none, and
    entries whose items are still to be fetched."""
    taken: int = 0
    """How many results were returned in this step."""
    most: int | None = None
    """How many entries to ask for first, if it was ahead of the others; None for no limit."""

    @property
    def is_over(self) -> bool:
        return self.is_done and not self.has_results

    @property
    def has_results(self) -> bool:
        return any(entity is not None for _, entity in self.buffer)

    def copy(self) -> Stream:
        return Stream(self.partition, self.start, self.place, self.is_done, deque(self.buffer), most=self.most)

    def without_buffer(self) -> Stream:
        """The same stream, which reads again what it has read ahead."""
        most = max(1, 2 * self.taken) if self.has_results else None
        return Stream(self.partition, self.place, self.place, most=most)

    def begin_after(self, place: Item | None, wrong: InvalidCursor) -> None:
        """Begins where a page token says; None for the end."""
        if place is not None and any(place[name] != value for name, value in self.partition):
            raise wrong
        self.start = self.place = place
        self.is_done = place is None


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """A position in a search: how far each stream was read, with results that were read ahead."""

    streams: tuple[Stream, ...]
    last: Item | None = None
    """The start key with which a query continues after the last result."""
    equal: frozenset[Place] = frozenset()
    """The keys of the results that have the same sort key as the last one."""
    unknown: Mapping[int, Item | None] = field(default_factory=dict)
    """Where streams begin that are in shards which this graph does not know yet."""


class KeyReading:
    """The state of one search while it is read."""

    def __init__(self, layout: BoundLayout, asked: KeySearch, position: KeyPosition | None) -> None:
        self._layout, self.asked = layout, asked
        self._number = None if asked.spread is None else asked.spread.number
        self._streams = [] if position is None else [stream.copy() for stream in position.streams]
        self._last = None if position is None else position.last
        self._unknown = {} if position is None else dict(position.unknown)
        self._equal = set[Place]() if position is None else set(position.equal)
        self._add_streams()
        self._decode = self._decoder()

    def _add_streams(self) -> None:
        """Adds a stream for every known partition that has none yet."""
        for partition in self.asked.all_partitions[len(self._streams) :]:
            stream, at = Stream(partition), len(self._streams)
            if at in self._unknown:
                stream.begin_after(self._unknown.pop(at), another_query())
            self._streams.append(stream)

    def _decoder(self) -> Callable[[Item], Any]:
        layout, kind, rest, read = self._layout, self.asked.kind, self.asked.rest, self.asked.decode
        if kind is None:
            return self._any if self.asked.only is None else self._any_key
        if self.asked.question is not None:
            read = self.asked.question.sending(layout).some_decoder(layout)
        some = self.asked.read_fields
        if some is not None:
            read = partial(layout.decode_some, kind, names=some)
        keys_only, once = self.asked.only is not None, self.asked.is_once
        is_whole = self.asked.held is None or self.asked.is_partial or self.asked.is_completed
        is_of_index = not is_whole and not kind.takes_any and some is None

        def decode(item: Item) -> Any:
            # An index copy has the fields of its entity, and so it is in an index over fields too. The index may also
            # hold other items of the node's partition.
            if layout.is_bookkeeping(item) or layout.kind_of(item) is not kind.whole:
                return None
            if once and not layout.is_shown(kind, item):
                return None
            if keys_only:
                return True if layout.is_one(kind, item) else None
            entity = layout.decode(kind, item) if read is None else read(item)
            if entity is None or not all(holds(kind, each, entity) for each in rest):
                return None
            if is_of_index:
                entity.__dict__[UNEXPLAINED] = identity_of(entity), None
            return entity

        return decode

    def _any(self, item: Item) -> Any:
        found = read_or_plain(self._layout, item)
        if isinstance(found, dict) and self._layout.is_of_a_tenant(item):
            return None
        return found if isinstance(found, dict) == self.asked.are_others else None

    def _any_key(self, item: Item) -> Any:
        layout = self._layout
        kind = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        return True if kind is not None and layout.is_one(kind, item) else None

    @property
    def is_over(self) -> bool:
        return all(stream.is_over for stream in self._streams)

    def position(self) -> KeyPosition | None:
        if self.is_over:
            return None
        spread = self.asked.spread
        if spread is None or not spread.number.may_move:
            return KeyPosition(tuple(self._streams), self._last, frozenset(self._equal))
        # Nothing moves to the first shards. What was read to its end there stays so.
        settled = spread.number.epochs[0].shards * len(self.asked.partitions)
        streams = [
            stream if at < settled and stream.is_over else stream.without_buffer()
            for at, stream in enumerate(self._streams)
        ]
        return KeyPosition(tuple(streams), self._last, frozenset(self._equal))

    def fill(self, limit: int | None) -> Plan[None]:
        """Reads the next page of every stream whose buffer is empty."""
        hungry = [stream for stream in self._streams if not stream.is_done and not stream.buffer]
        if not hungry and not self._unknown:
            return
        responses = yield from self._read(tuple(self._request(stream, limit) for stream in hungry))
        layout, asked = self._layout, self.asked
        shown: set[int] | None = None
        if asked.is_partial:
            if not any(response.items for response in responses):
                yield from whole(layout, [], asked.kind, consistent=asked.consistent)
        elif any(DELETING in item for response in responses for item in response.items):
            # Nothing else has these items, so they are the same objects afterwards.
            all = [item for response in responses for item in response.items]
            shown = {id(item) for item in (yield from visible(layout, all))}
        for stream, response in zip(hungry, responses, strict=True):
            for item in response.items:
                if shown is None or id(item) in shown:
                    result = _Entry(item) if asked.is_partial else self._decode(item)
                    stream.buffer.append((layout.start_after(item, asked.index), result))
            stream.start, stream.is_done, stream.most = response.last, response.last is None, None
            if response.last is not None:
                # Behind what the store has left out, too.
                stream.buffer.append((response.last, None))

    def fetch(self, wanted: int | None) -> Plan[bool]:
        """Fetches the items of the next entries of all streams together; returns whether there were any.

        `wanted` is the number of results that are still missing; None for all that can be had.
        """
        layout, asked = self._layout, self.asked
        waiting = [
            (stream, at)
            for stream in self._streams
            for at, (_, found) in enumerate(stream.buffer)
            if type(found) is _Entry
        ]
        if not waiting:
            return False
        if wanted is not None:
            if asked.sort_keys:
                waiting.sort(key=lambda each: self._order(each[0].buffer[each[1]][0]), reverse=not asked.forward)
            del waiting[wanted if not asked.rest else max(wanted, _FETCHED) :]
        entries = {
            place_of(layout.key_of(entry)): entry for entry in (stream.buffer[at][1].item for stream, at in waiting)
        }
        items = yield from whole(layout, [*entries.values()], consistent=asked.consistent)
        if any(DELETING in item for item in items):
            items = yield from visible(layout, items)
        results = {place_of(layout.key_of(item)): self._decode(item) for item in items}
        for stream, at in waiting:
            # The start key is that of the entry, not of the item, which may have changed since.
            start, entry = stream.buffer[at]
            stream.buffer[at] = start, results.get(place_of(layout.key_of(entry.item)))
        return True

    def _read(self, requests: tuple[Query | Scan, ...]) -> Plan[list[PageResponse]]:
        """Queries partitions, and reads the number of shards in the same round if its lease is over."""
        number = self._number
        answers: list[Any]
        if number is None or not (number.is_stale or self._unknown):
            answers = yield requests
            return answers
        asked_at = number.clock()
        answers = yield (*requests, number_request(self._layout, number))
        stored: ItemResponse = answers.pop()
        learn_number(number, stored.item, asked_at)
        self._add_streams()
        if self._unknown:
            raise another_query()
        return answers

    def _request(self, stream: Stream, limit: int | None) -> Query | Scan:
        asked = self.asked
        sent = asked.sent(self._layout)
        only = None if sent is None else tuple(map(attribute, sent))
        if not stream.partition:
            return Scan(
                self._layout.table,
                asked.index,
                asked.filter,
                only,
                limit=limit,
                start=stream.start,
                consistent=asked.consistent,
                whole=asked.is_completed,
            )
        first, *further = stream.partition
        last = asked.sort[-1] if asked.sort else None
        # All conditions on the sort key but the last are equalities.
        equal = [(each.attribute, each.operands[0]) for each in asked.sort[:-1]]
        return Query(
            self._layout.table,
            first,
            last,
            asked.index,
            asked.filter,
            only,
            False,
            limit if stream.most is None else min(stream.most, limit or stream.most),
            stream.start,
            asked.forward,
            asked.consistent,
            asked.is_completed,
            (*further, *equal),
        )

    def complete(self, limit: int | None) -> Plan[None]:
        """Reads as `fill` does, and fetches the items of all entries that were read."""
        yield from self.fill(limit)
        yield from self.fetch(None)

    def take(self, most: int | None) -> list[Any]:
        """The next results in order, at most `most`, until a stream has to be read, or an item to be fetched."""
        found: list[Any] = []
        while most is None or len(found) < most:
            stream = self._next()
            if stream is None:
                break
            start, entity = stream.buffer[0]
            if type(entity) is _Entry:
                break
            stream.buffer.popleft()
            stream.place = start
            if entity is None or self._has_moved(start):
                continue
            found.append(entity)
            stream.taken += 1
            self._note(start)
        return found

    def head(self) -> Any:
        """The next result of what is complete, which is not taken; None if a stream has to be read, or at the end."""
        while (stream := self._next()) is not None:
            start, entity = stream.buffer[0]
            if entity is not None and not self._has_moved(start):
                return entity
            stream.place = start
            stream.buffer.popleft()
        return None

    @property
    def has_to_read(self) -> bool:
        """Whether a stream has to be read before the next result is known."""
        return bool(self._unknown) or any(not stream.is_done and not stream.buffer for stream in self._streams)

    @property
    def may_move(self) -> bool:
        """Whether what was read ahead has to be read again in the next step."""
        return self._number is not None and self._number.may_move

    def _note(self, start: Item) -> None:
        """Notes the last result, and which results have the same sort key."""
        if self._number is not None and self.asked.sort_keys:
            if self._last is None or self._order(self._last) != self._order(start):
                self._equal.clear()
            self._equal.add(place_of(self._layout.key_of(start)))
        self._last = start

    def _has_moved(self, start: Item) -> bool:
        """Whether this was a result before, in another shard."""
        if self._last is None or self._number is None or not self._number.may_move:
            return False
        order, last = self._order(start), self._order(self._last)
        if order == last:
            return place_of(self._layout.key_of(start)) in self._equal
        return (order < last) is self.asked.forward

    def _next(self) -> Stream | None:
        """The stream with the next result; None if a stream has to be read first, or at the end."""
        full = [stream for stream in self._streams if stream.buffer]
        if not self.asked.sort_keys or len(self._streams) == 1:
            return full[0] if full else None
        if any(not stream.is_done and not stream.buffer for stream in self._streams):
            return None
        choose = min if self.asked.forward else max
        return choose(full, key=lambda stream: self._order(stream.buffer[0][0])) if full else None

    def _order(self, start: Item) -> tuple[Any, ...]:
        return tuple(order_of(start[name]) for name in self.asked.sort_keys)
