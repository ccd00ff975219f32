"""Finding by an indexed field: one query per shard, in one round, merged in order.

Entries have one order over all shards. So one position in that order says where every shard continues, also a shard
that did not exist when the last page was read. A page token is such a position.

The queries go to the shards of the stored shard map. When the lease of the known map is over, the map is read again in
the same round as the queries, and shards that were unknown are then read too.

If a field has got more shards, an entry that is put again may move to another shard: from one where it was not read
yet to one that was already read past its position. So between two steps of an iteration no entries are kept that were
read ahead. All shards continue from one position; those that were ahead ask for few entries first.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import InvalidCursor, InvalidValue
from adjoin.expressions import Condition, Exists, Not, Path, all_of, attribute
from adjoin.fields import AllOf, AnyOf, Comparison, Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import IndexedField, Stretch
from adjoin.layouts.interface import DELETING
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import visible
from adjoin.plans.read import Found, Some, changed, whole, with_compared
from adjoin.plans.shards import learn, map_request
from adjoin.plans.steps.conditions import compares_ids, condition, is_filterable
from adjoin.plans.steps.predicates import holds
from adjoin.requests import ItemResponse, PageResponse, Plan, Query
from adjoin.values import Item

_RANKS = {"=": 0, "contains": 0, "in": 1, "begins_with": 2, "between": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "exists": 5}
"""How much a comparison narrows a search, roughly: the lower, the more."""

# --- what is asked -----------------------------------------------------------------------------


@dataclass(eq=False)
class IndexedSearch:
    """A search for entries of one indexed field. Immutable."""

    field: IndexedField
    partitions: str
    """The prefix of the partition keys of all its shards, with the tenant's prefix."""
    stretches: tuple[Stretch, ...]
    """The ranges of sort keys to read: disjoint, in order."""
    filter: Condition | None = None
    rest: tuple[Predicate, ...] = ()
    """The predicates that are checked here, on the entities."""
    forward: bool = True
    some: Some = None
    """The fields that the entities have; None for all."""

    def with_(self, **changes: Any) -> IndexedSearch:
        return changed(self, changes)

    def identity(self, table: str) -> bytes:
        asked = (table, self.partitions, self.stretches, self.filter, self.rest, self.forward)
        return repr(asked if self.some is None else (*asked, self.some)).encode()

    @property
    def consistent(self) -> bool:
        """No read of a global index is strongly consistent."""
        return False

    @property
    def kind(self) -> EntityType:
        return self.field.kind

    def __str__(self) -> str:
        return f"{self.kind.name} by {self.field.name!r}"

    def index_in(self, layout: BoundLayout) -> str:
        assert layout.overloaded is not None
        return layout.overloaded.name

    def indexes_in(self, layout: BoundLayout) -> list[str | None]:
        return [self.index_in(layout)]

    def where(self, layout: BoundLayout, predicate: Predicate) -> IndexedSearch:
        assert layout.overloaded is not None
        if isinstance(predicate, Predicate) and compares_ids(self.kind, predicate):
            if isinstance(predicate, AllOf):
                search = self
                for part in predicate.predicates:
                    search = search.where(layout, part)
                return search
            return self.with_(rest=(*self.rest, predicate))
        if layout.overloaded.is_partial:
            raise InvalidValue(
                f"the index {layout.overloaded.name!r} does not project all attributes, and DynamoDB filters only by "
                f"those that it does; filter the results in Python, or let the index project everything"
            )
        wanted = condition(layout, self.kind, predicate)
        return self.with_(filter=all_of(self.filter, wanted))

    def without(self, layout: BoundLayout, predicate: Predicate) -> IndexedSearch:
        """The search without what a predicate holds for."""
        assert layout.overloaded is not None
        if not layout.overloaded.is_partial and is_filterable(layout, self.kind, predicate):
            return self.where(layout, ~predicate)
        return self.with_(rest=(*self.rest, ~predicate))

    @property
    def read_fields(self) -> Some:
        """The fields that are read, if not all."""
        return None if self.some is None else with_compared(self.kind, self.some, self.rest)

    def sent(self, layout: BoundLayout) -> tuple[Path, ...] | None:
        """The attributes that are sent; None for whole items."""
        index, fields = layout.overloaded, self.read_fields
        if fields is None or index is None or index.is_partial:
            return None
        names = (*layout.some_attributes(self.kind, fields), *layout.start_names(index.name))
        return tuple(map(attribute, dict.fromkeys(names)))

    def reading_at(self, decide: Callable[[str | None], bool], layout: BoundLayout) -> IndexedSearch:
        decide(self.index_in(layout))
        return self

    @property
    def is_exact(self) -> bool:
        """Whether every entry that is read is a result."""
        return self.filter is None and not self.rest

    def reading(self, layout: BoundLayout, position: Position | None) -> IndexReading:
        return IndexReading(layout, self, position)

    def due(self, layout: BoundLayout) -> Plan[None]:
        return _check_due(layout, self)

    def page(self, layout: BoundLayout, limit: int | None, position: Position | None) -> Plan[Found]:
        return found_page(layout, self, limit, position)

    def count(self, layout: BoundLayout, most: int | None) -> Plan[int]:
        return found_count(layout, self, most)

    def key_at(self, position: Position) -> Item:
        """The key that a page token holds for a position; empty before the first result."""
        return position.last or {}

    def position_at(self, layout: BoundLayout, key: Item) -> Position:
        """The position that a page token stands for."""
        assert layout.overloaded is not None
        types = {layout.overloaded.sort_key: "S", **{key.name: key.type for key in layout.definition.keys}}
        if {name: next(iter(part), None) for name, part in key.items()} != types:
            raise InvalidCursor("the page token belongs to another query; start again from the first page")
        return Position(key)


def indexed_search(
    layout: BoundLayout, kind: EntityType, parts: Sequence[Predicate], order: str | None
) -> IndexedSearch | None:
    """The search for predicates, by the field `order` or else by the indexed field that narrows most.

    None if no indexed field can answer it. Comparisons that the index cannot answer become a filter.
    """
    index = layout.overloaded
    if index is None or (order is not None and order not in kind.indexed):
        return None
    ranges: Ranges = {}
    for part in parts:
        name = _field_of(part)
        if name in kind.indexed or name in kind.elements:
            ranges[id(part)] = index.field(kind, name).stretches(part)
    if order is not None:
        chosen = index.field(kind, order)
    elif not parts and not kind.indexed:
        return None
    elif not parts:
        chosen = index.fields(kind)[0]
    else:
        usable = [part for part in parts if ranges.get(id(part)) is not None]
        if not usable:
            return None
        chosen = index.field(kind, _field_of(min(usable, key=_rank)))
    stretches, left = _narrowed(chosen, list(parts), ranges)
    by_id = tuple(part for part in left if compares_ids(kind, part))
    rest = [part for part in left if not any(part is each for each in by_id)]
    if rest and index.is_partial:
        raise InvalidValue(
            f"the index {index.name!r} holds only parts of the items, and DynamoDB filters by what it holds; "
            f"filter the results, or let the index project everything"
        )
    wanted = all_of(layout.told_apart(kind), *(condition(layout, kind, part) for part in rest))
    return IndexedSearch(chosen, index.partition(chosen.scope, ""), stretches, wanted, by_id)


Ranges: TypeAlias = dict[int, tuple[Stretch, ...] | None]
"""The ranges of sort keys for comparisons, by the identity of the comparison; None if it has none."""


def _field_of(part: Predicate) -> str:
    """The one field that a comparison is about, or that all sides of a `|` compare; "" if there are several."""
    if isinstance(part, AnyOf):
        names = {_field_of(side) for side in part.predicates}
        return names.pop() if len(names) == 1 else ""
    return part.field if isinstance(part, Comparison) else ""


def _rank(part: Predicate) -> int:
    if isinstance(part, AnyOf):
        return max(map(_rank, part.predicates))
    return _RANKS.get(part.operator, len(_RANKS)) if isinstance(part, Comparison) else len(_RANKS)


def fixes_value(part: Predicate, name: str) -> bool:
    """Whether a part holds for some values of an indexed field only, rather than for a range of them."""
    return _field_of(part) == name and _rank(part) <= _RANKS["in"]


def _narrowed(chosen: IndexedField, parts: list[Any], known: Ranges) -> tuple[tuple[Stretch, ...], list[Any]]:
    """The ranges of sort keys to read, and the comparisons that are left to filter by."""
    own = [part for part in parts if _field_of(part) == chosen.name]
    found = [(part, known[id(part)] if id(part) in known else chosen.stretches(part)) for part in own]
    usable = [(part, stretches) for part, stretches in found if stretches is not None]
    if chosen.has_elements:
        # An entity that has several elements has an entry for each, so all but one are a filter.
        by, found_there = usable[0]
        return found_there, [part for part in parts if part is not by]
    usable.sort(key=lambda each: _rank(each[0]))
    if not usable:
        return (Stretch(),), parts
    first, stretches = usable[0]
    # A comparison that holds for every entry, such as "exists", needs no condition.
    used: list[Any] = [first, *(part for part, where in usable[1:] if where == (Stretch(),))]
    # DynamoDB takes one condition on a sort key. If there are a prefix and a range, the range is the condition and the
    # prefix becomes a filter.
    ranges = [(part, one) for part, (one, *others) in usable if not others and one.prefix is None and one != Stretch()]
    if stretches[0].prefix is not None and ranges:
        used = used[1:]
        stretches = (Stretch(),)
    if stretches[0].prefix is None:
        for part, one in ranges:
            stretches = tuple(each.narrowed(one) for each in stretches)
            used.append(part)
    rest = [part for part in parts if not any(part is each for each in used)]
    return tuple(each for each in stretches if not each.is_empty), rest


# --- reading shards in one round ---------------------------------------------------------------


@dataclass(slots=True)
class _Stream:
    """The entries of one stretch in one shard that were read so far."""

    partition: str
    stretch: Stretch
    start: Item | None = None
    is_done: bool = False
    buffer: deque[Item] = field(default_factory=deque)
    taken: int = 0
    """How many of its entries were returned in this step."""
    most: int | None = None
    """How many entries to ask for first, if it was ahead of the others; None for no limit."""

    def copy(self) -> _Stream:
        return _Stream(self.partition, self.stretch, self.start, self.is_done, deque(self.buffer))


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the order of all entries: after `last`. `streams` keeps entries that were read beyond it."""

    last: Item | None
    streams: tuple[_Stream, ...] = ()
    paces: Mapping[tuple[str, Stretch], int] = field(default_factory=dict)
    """How many entries to ask for first, for shards that were ahead of the others."""


class IndexReading:
    """The state of one search while it is read."""

    def __init__(self, layout: BoundLayout, asked: IndexedSearch, position: Position | None) -> None:
        assert layout.overloaded is not None
        self.layout, self.asked, self.index = layout, asked, layout.overloaded
        self._sent, self._some = asked.sent(layout), asked.read_fields
        self.last: Item | None = None if position is None else position.last
        self._streams: dict[tuple[str, Stretch], _Stream] = {}
        if position is not None:
            self._streams = {(each.partition, each.stretch): each.copy() for each in position.streams}
        self._add_streams()
        for place, most in position.paces.items() if position is not None else ():
            if place in self._streams:
                self._streams[place].most = most

    def _add_streams(self) -> None:
        """Adds a stream for every known shard that has none yet."""
        for stretch in self.asked.stretches:
            for partition in self.index.partitions(self.asked.field, stretch):
                if (partition, stretch) not in self._streams:
                    self._streams[partition, stretch] = self._begun(partition, stretch)

    def _begun(self, partition: str, stretch: Stretch) -> _Stream:
        if not self.last:
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
        """Where the next step continues; None at the end."""
        if self.is_over:
            return None
        if not self.index.book.may_move(self.asked.field.scope):
            return Position(self.last, tuple(self.streams()))
        ahead = {place: max(1, 2 * stream.taken) for place, stream in self._streams.items() if stream.buffer}
        return Position(self.last, (), ahead)

    def request(self, stream: _Stream, limit: int | None, *, count: bool = False) -> Query:
        asked, index = self.asked, self.index
        return Query(
            self.layout.table,
            (index.partition_key, {"S": stream.partition}),
            stream.stretch.condition(index.sort_key),
            index.name,
            asked.filter,
            None if count else self._sent,
            count,
            limit,
            stream.start,
            asked.forward,
        )

    def read(self, requests: tuple[Query, ...]) -> Plan[list[PageResponse]]:
        """Queries the shards, and reads their map in the same round if its lease is over."""
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
        """Reads the next page of every stream whose buffer is empty."""
        hungry = [stream for stream in self.streams() if not stream.is_done and not stream.buffer]
        if not hungry:
            return
        responses = yield from self.read(tuple(self.request(stream, _least(limit, stream.most)) for stream in hungry))
        if self.index.is_partial and not any(response.items for response in responses):
            yield from whole(self.layout, [], self.asked.kind)
        for stream, response in zip(hungry, responses, strict=True):
            stream.buffer.extend(response.items)
            stream.start, stream.is_done, stream.most = response.last, response.last is None, None

    def merged(self, most: int | None) -> list[Item]:
        """The next entries in order, until a stream has to be read."""
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
            # An entry that was written again meanwhile may be in two shards.
            if not self.last or self.last[sort_key]["S"] != key.text:
                found.append(item)
                self.last = self._place_of(item)
            if stream.buffer:
                heapq.heapreplace(heads, (_Key(stream.buffer[0][sort_key]["S"], sign), place))
            elif stream.is_done:
                heapq.heappop(heads)
            else:
                break
        return found

    def complete(self, limit: int | None) -> Plan[None]:
        """Reads as `fill` does, and fetches what the index does not hold of the entries that were read."""
        hungry = [stream for stream in self.streams() if not stream.is_done and not stream.buffer]
        yield from self.fill(limit)
        for stream in hungry:
            stream.buffer = deque((yield from self.fetched([*stream.buffer])))

    def fetched(self, items: list[Item]) -> Plan[list[Item]]:
        """What the index does not hold of entries of all shards; without edges that a delete hides."""
        if self.index.is_partial and items:
            items = yield from whole(self.layout, items)
        return (yield from visible(self.layout, items))

    @property
    def is_over(self) -> bool:
        return all(stream.is_done and not stream.buffer for stream in self.streams())

    @property
    def has_to_read(self) -> bool:
        """Whether a stream has to be read before the next result is known."""
        return any(not stream.is_done and not stream.buffer for stream in self.streams())

    @property
    def may_move(self) -> bool:
        """Whether what was read ahead has to be read again in the next step."""
        return self.index.book.may_move(self.asked.field.scope)

    def take(self, most: int | None) -> list[Any]:
        """The next results in order, at most `most`, until a stream has to be read."""
        return self.decoded(self.merged(most))

    def decoded(self, items: list[Item]) -> list[Any]:
        kind, rest = self.asked.kind, self.asked.rest
        read = (self.layout.found(kind, item, self._some) for item in items)
        found = [entity for entity in read if entity is not None]
        return [entity for entity in found if all(holds(kind, each, entity) for each in rest)] if rest else found

    def head(self) -> Any:
        """The next result, which is not taken; None if a stream has to be read first, or at the end."""
        while not self.has_to_read and (full := [stream for stream in self.streams() if stream.buffer]):
            sort_key = self.index.sort_key
            stream = min(full, key=lambda each: _Key(each.buffer[0][sort_key]["S"], self.asked.forward))
            item = stream.buffer[0]
            if not self.last or self.last[sort_key] != item[sort_key]:
                if found := self.decoded([item]):
                    return found[0]
                self.last = self._place_of(item)
            stream.buffer.popleft()
            stream.taken += 1
        return None

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


def _check_due(layout: BoundLayout, asked: IndexedSearch) -> Plan[None]:
    """Raises if stored items may lack the entries that a search looks for."""
    if layout.due.is_any:
        field = asked.field
        yield from check_due(layout, lambda due: due.check_field(field.kind, field.word, asked.index_in(layout)))
        yield from check_due(layout, lambda due: due.check_filter(asked.kind, asked.filter))


def found_page(layout: BoundLayout, asked: IndexedSearch, limit: int | None, position: Position | None) -> Plan[Found]:
    """A page of `limit` entities (fewer only at the end); without a limit, what one round brings."""
    yield from _check_due(layout, asked)
    if not asked.stretches:
        return Found([], None)
    reading = IndexReading(layout, asked, position)
    entities: list[Any] = []
    # DynamoDB applies the limit before the filter, so with a filter more entries are asked for.
    ask = limit if limit is None or asked.is_exact else max(4 * limit, 100)
    while True:
        yield from reading.fill(ask)
        while items := reading.merged(None if limit is None else limit - len(entities)):
            entities += reading.decoded((yield from reading.fetched(items)))
            if limit is None or len(entities) == limit:
                break
        after = reading.position()
        if after is None or (bool(entities) if limit is None else len(entities) == limit):
            return Found(entities, after)


def found_count(layout: BoundLayout, asked: IndexedSearch, most: int | None) -> Plan[int]:
    """How many entities match. Without a filter the store counts them, and no items are sent."""
    yield from _check_due(layout, asked)
    if not asked.stretches:
        return 0
    if not asked.is_exact or layout.overloaded is None or layout.overloaded.is_partial:
        return (yield from _brought(layout, asked, most))
    blind = asked.with_(filter=Not(Exists(attribute(DELETING))))
    reading = IndexReading(layout, blind, None)
    total = 0
    while hungry := [stream for stream in reading.streams() if not stream.is_done]:
        requests = tuple(reading.request(stream, None, count=True) for stream in hungry)
        responses = yield from reading.read(requests)
        for stream, response in zip(hungry, responses, strict=True):
            if response.count != response.scanned:
                # Some edges have the mark of a delete, so it has to be looked up which of them are visible.
                return (yield from _brought(layout, asked, most))
            total += response.count
            stream.start, stream.is_done = response.last, response.last is None
        if most is not None and total >= most:
            return most
    return total


def _brought(layout: BoundLayout, asked: IndexedSearch, most: int | None) -> Plan[int]:
    total = 0
    position: Position | None = None
    while True:
        found = yield from found_page(layout, asked, None, position)
        total, position = total + len(found.entities), found.last
        if position is None or (most is not None and total >= most):
            return total if most is None else min(total, most)
