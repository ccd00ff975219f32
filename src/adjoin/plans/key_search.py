"""Finding by an access pattern: one query per partition, in one round, merged in the order of the sort key.

An index of which no partition is chosen is read by a scan, as one stream without an order.

A partition template with {shard} has several partitions, and so has a field that is compared with several values. Each
partition is one stream. Entries of an index with equal sort keys have no order of their own, so a position says for
each stream how far it was read; a page token holds these keys.

The number of shards may grow while a search is read. When the lease of the known number is over, it is read again in
the same round as the queries, and shards that were unknown are then read too. From then on, an item that is put again
may move to one of the new shards. So a position keeps nothing that was read ahead, and no stream is at its end before
all are. What sorts before the last result is left out: it has moved. A page token holds only the last result, so among
results with equal sort keys, one that moves between two pages may be found twice.

What keys do not answer exactly is filtered: by DynamoDB, where the attribute is in the index and is no key of it, and
otherwise here, after the items were read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from adjoin.entity_types import EntityType
from adjoin.errors import AdjoinError, InvalidCursor, InvalidKey, InvalidValue, shown
from adjoin.expressions import Condition, all_of, attribute
from adjoin.field_types import unknown_field
from adjoin.fields import Predicate
from adjoin.items import normal_attribute
from adjoin.layouts.access_patterns import Partition, PatternConditions, ShardPartitions
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.layouts.key_values import key_text
from adjoin.layouts.ranges import order_of
from adjoin.model import UNEXPLAINED, identity_of
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import visible
from adjoin.plans.read import Found, Question, changed, is_told_by_keys, read_or_plain, whole
from adjoin.plans.shards import learn_number, number_request
from adjoin.plans.steps.batches import Place, place_of
from adjoin.plans.steps.conditions import condition
from adjoin.plans.steps.predicates import compared_fields, holds
from adjoin.requests import ItemResponse, PageResponse, Plan, Query, Scan, SortCondition, SortOperator
from adjoin.tables import KeyAttribute
from adjoin.values import AttributeValue, Item, encode

WHOLE: tuple[Partition, ...] = ((),)
"""The one stream of a search that reads a whole index, because no partition of it was chosen."""


@dataclass(eq=False)
class KeySearch:
    """A search in one or several partitions of the table or of an index. Immutable."""

    kind: EntityType | None
    """The class of the results; None for items of every class."""
    index: str | None
    partitions: tuple[Partition, ...]
    """The partitions to read; in a sharded index, those in the first shard."""
    sort: tuple[SortCondition, ...]
    sort_keys: tuple[str, ...]
    is_partial: bool = False
    """Whether the items have to be read from the table."""
    held: frozenset[str] | None = None
    """The attributes that the index holds, if not all."""
    filter: Condition | None = None
    rest: tuple[Predicate, ...] = ()
    """The predicates that are checked here, on the entities."""
    forward: bool = True
    are_others: bool = False
    """Whether the results are items that belong to no class, as plain values."""
    decode: Callable[[Item], Any] | None = None
    """How an item of the class is read, if not as the class reads it."""
    question: Question | None = None
    """The question that this search answers in several shards, if it reads only some fields."""
    spread: ShardPartitions | None = None
    """The partitions in all shards of a sharded index."""
    consistent: bool = False
    """Whether reads are strongly consistent: of the table, or of a local index."""
    only: tuple[str, ...] | None = None
    """The attributes that are sent, if keys alone tell what is a result; None for whole items."""

    @property
    def all_partitions(self) -> tuple[Partition, ...]:
        """The partitions in all shards that are known now."""
        return self.partitions if self.spread is None else self.spread.partitions()

    def __str__(self) -> str:
        return self.kind.name if self.kind is not None else "everything"

    def index_in(self, layout: BoundLayout) -> str | None:
        return self.index

    def with_(self, **changes: Any) -> KeySearch:
        return changed(self, changes)

    def identity(self, table: str) -> bytes:
        label = None if self.kind is None else self.kind.label
        asked = (
            table,
            label,
            self.index,
            self.partitions,
            self.sort,
            self.filter,
            self.rest,
            self.forward,
            self.are_others,
        )
        return repr((table, asked)).encode()

    def where(self, layout: BoundLayout, predicate: Predicate) -> KeySearch:
        """The search with one more predicate."""
        assert self.kind is not None
        taken = {name for partition in self.partitions for name, _ in partition} | {*self.sort_keys}
        fields = compared_fields(predicate)
        for name in fields - self.kind.fields.keys():
            # Raises, with the closest name.
            self.kind.attribute(name)
        names = {self.kind.attributes.get(name) for name in fields}
        is_here = None in names or bool(names & taken) or (self.held is not None and not names <= self.held)
        if not is_here:
            try:
                wanted = condition(layout, self.kind, predicate)
                return self.with_(filter=all_of(self.filter, wanted))
            except InvalidKey:
                # The field is stored in keys only, so DynamoDB cannot filter by it.
                pass
        return self.with_(rest=(*self.rest, predicate))

    def in_partition(self, layout: BoundLayout, values: Sequence[Any]) -> KeySearch:
        """The search in one partition of its index."""
        keys = layout.partition_attributes(self.index)
        if len(values) != len(keys):
            names = " and ".join(key.name for key in keys)
            raise InvalidValue(f"a partition of {self._where} is chosen by {names}, got {len(values)} values")
        partition = tuple((key.name, _key_value(key, value)) for key, value in zip(keys, values, strict=True))
        return self.with_(partitions=(partition,), spread=None)

    def sorted_by(self, layout: BoundLayout, operator: SortOperator, values: Sequence[Any]) -> KeySearch:
        """The search with a condition on the sort key."""
        keys = layout.sort_attributes(self.index)
        if not keys or self.sort:
            reason = "has no sort key" if not keys else "already has a condition on its sort key"
            raise InvalidValue(f"{self._where} {reason}, so {operator!r} cannot narrow it; remove it")
        found = tuple(_key_value(keys[0], value) for value in values)
        if operator == "begins_with" and keys[0].type == "N":
            raise InvalidValue(f"the sort key {keys[0].name!r} of {self._where} is a number, which has no prefix")
        return self.with_(sort=(SortCondition(keys[0].name, operator, found),))

    @property
    def _where(self) -> str:
        return "the table" if self.index is None else f"the index {self.index!r}"

    # --- pages ---------------------------------------------------------------------------------

    def page(self, layout: BoundLayout, limit: int | None, position: KeyPosition | None) -> Plan[Found]:
        """A page of `limit` results (fewer only at the end); without a limit, what one round brings."""
        if self.partitions == WHOLE and (self.sort or not self.forward):
            names = ", ".join(key.name for key in layout.partition_attributes(self.index))
            raise InvalidValue(
                f"{self._where} is read without an order if no partition is chosen; choose one with partition(…), the "
                f"value of {names}"
            )
        if layout.due.is_any:
            yield from check_due(layout, lambda due: due.check_range(self.kind, self.index))
        reading = _Reading(layout, self, position)
        found: list[Any] = []
        is_exact = self.filter is None and not self.rest
        # DynamoDB applies the limit before the filter, so with a filter more items are asked for.
        ask = limit if limit is None or is_exact else max(4 * limit, 100)
        while True:
            yield from reading.fill(ask)
            found += reading.merged(None if limit is None else limit - len(found))
            if reading.is_over or (bool(found) if limit is None else len(found) == limit):
                return Found(found, reading.position())
            ask = ask and min(4 * ask, 100_000)

    def count(self, layout: BoundLayout, most: int | None) -> Plan[int]:
        """How many results there are. Keys are read, because an index may hold items of no class of the graph.

        Whole items are read only if keys do not tell.
        """
        asked, total = self._by_keys(layout), 0
        position: KeyPosition | None = None
        while True:
            found = yield from asked.page(layout, None, position)
            total, position = total + len(found.entities), found.last
            if position is None or (most is not None and total >= most):
                return total if most is None else min(total, most)

    def _by_keys(self, layout: BoundLayout) -> KeySearch:
        """The search without the other attributes, if these are not needed; otherwise the search itself."""
        kind = self.kind
        if kind is None or self.rest or self.decode is not None or not is_told_by_keys(layout, kind):
            return self
        names = {*layout.scan(kind).attributes, *layout.start_names(self.index)}
        if self.held is not None:
            lacking = names - self.held
            # What a delete can hide is read from the table, because the index does not say that it is hidden.
            can_be_hidden = kind.can_be_hidden and layout.why_no_own_items is None
            if lacking - {DELETING} or (lacking and can_be_hidden):
                return self
            names &= self.held
        return self.with_(only=tuple(sorted(names)), is_partial=False)

    # --- page tokens ---------------------------------------------------------------------------

    def key_at(self, position: KeyPosition) -> Item:
        """The key that a page token holds: for each stream that was begun, where it continues (null at its end).

        In a sharded index it also holds the last result, because streams may come later.
        """
        begun = [(at, each) for at, each in enumerate(position.streams) if each.is_over or each.place is not None]
        key = {str(at): _dumped(None if each.is_over else each.place) for at, each in begun}
        return key if self.spread is None or position.last is None else {**key, _LAST: _dumped(position.last)}

    def position_at(self, layout: BoundLayout, key: Item) -> KeyPosition:
        """The position that a page token stands for."""
        wrong = _another_query()
        streams = [_Stream(partition) for partition in self.all_partitions]
        last: Item | None = None
        unknown: dict[int, Item | None] = {}
        names = {*layout.start_names(self.index)}
        for at, place in key.items():
            try:
                start = orjson.loads(place["S"])
                number = -1 if at == _LAST else int(at)
            except (ValueError, KeyError):
                raise wrong from None
            if start is not None and (type(start) is not dict or start.keys() != names):
                raise wrong
            # Without a secret, anybody can make a token.
            if start is not None and not all(map(_is_key_value, start.values())):
                raise wrong
            if at == _LAST:
                last = start
            elif 0 <= number < len(streams):
                streams[number].begin_after(start, wrong)
            elif number >= 0 and self.spread is not None:
                # Another process knows more shards.
                unknown[number] = start
            else:
                raise wrong
        equal = frozenset[Place]() if last is None else frozenset([place_of(layout.key_of(last))])
        return KeyPosition(tuple(streams), last, equal, unknown)


_LAST = "last"
"""The name of the last result in a page token."""


def _dumped(place: Item | None) -> AttributeValue:
    return {"S": orjson.dumps(place).decode()}


def _another_query() -> InvalidCursor:
    return InvalidCursor("the page token belongs to another query; start again from the first page")


def index_search(layout: BoundLayout, name: str) -> KeySearch:
    """The search for all items of an index."""
    index = layout.definition.index(name)
    if index is None:
        known = [each.name for each in layout.definition.indexes]
        raise InvalidKey(unknown_field(f"the table {layout.table}", name, known, "index"))
    sort_keys = tuple(key.name for key in layout.sort_attributes(name))
    is_partial, spread = index.projection.kind != "ALL", layout.spread(name)
    partitions = WHOLE if spread is None else _first(spread)
    return KeySearch(None, name, partitions, (), sort_keys, is_partial, spread=spread)


def _first(spread: ShardPartitions) -> tuple[Partition, ...]:
    return spread.at(spread.number.all[0])


def merged(question: Question) -> KeySearch:
    """The search that answers a question about edges in several shards of an index."""
    access, sort = question.range.access, question.sort or question.range.condition()
    number, at = question.range.number, question.range.at
    assert number is not None
    assert at is not None
    spread = ShardPartitions(number, lambda shard: (((access.partition_key, {access.partition_type: at(shard)}),),))
    return KeySearch(
        access.kind,
        access.index,
        _first(spread),
        () if sort is None else (sort,),
        () if access.sort_key is None else (access.sort_key,),
        access.is_partial,
        filter=question.filter,
        rest=question.rest,
        forward=question.forward,
        decode=access.decode,
        question=question if question.some is not None else None,
        spread=spread,
        consistent=question.consistent,
    )


def _key_value(key: KeyAttribute, value: Any) -> AttributeValue:
    """A value as a key attribute of that type."""
    text = encode(value)
    if key.type == "S" and "S" not in text and not isinstance(value, bytes | bool):
        text = {"S": key_text(value)}
    if key.type not in text:
        raise InvalidValue(f"{shown(value)} cannot be compared with {key.name!r}, a key of the type {key.type}")
    return text


def _is_key_value(value: Any) -> bool:
    """Whether this is a value that a key can have, in its normal form."""
    try:
        return type(value) is dict and value.keys() <= {"S", "N", "B"} and normal_attribute(value) == value
    except AdjoinError:
        return False


def key_search(layout: BoundLayout, found: PatternConditions, parts: Sequence[Predicate]) -> KeySearch:
    """The search with conditions. What they do not answer becomes a filter."""
    pattern = found.pattern
    search = KeySearch(
        pattern.kind,
        pattern.index,
        found.partitions if found.spread is None else _first(found.spread),
        found.sort,
        tuple(source.attribute for source in pattern.sort),
        pattern.is_partial,
        pattern.held,
        spread=found.spread,
    )
    for part in parts:
        if not any(part is each for each in found.answered):
            search = search.where(layout, part)
    return search


# --- reading partitions in one round -----------------------------------------------------------


@dataclass(slots=True)
class _Stream:
    """One partition, as far as it was read."""

    partition: Partition
    start: Item | None = None
    """Where the next request begins."""
    place: Item | None = None
    """The key after which the results continue that were not returned yet; None for the beginning."""
    is_done: bool = False
    buffer: deque[tuple[Item, Any]] = field(default_factory=deque)
    """What was read ahead: results, and None for what is none, each with the start key of a query that continues."""
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

    def copy(self) -> _Stream:
        return _Stream(self.partition, self.start, self.place, self.is_done, deque(self.buffer), most=self.most)

    def without_buffer(self) -> _Stream:
        """The same stream, which reads again what it has read ahead."""
        most = max(1, 2 * self.taken) if self.has_results else None
        return _Stream(self.partition, self.place, self.place, most=most)

    def begin_after(self, place: Item | None, wrong: InvalidCursor) -> None:
        """Begins where a page token says; None for the end."""
        if place is not None and any(place[name] != value for name, value in self.partition):
            raise wrong
        self.start = self.place = place
        self.is_done = place is None


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """A position in a search: how far each stream was read, with results that were read ahead."""

    streams: tuple[_Stream, ...]
    last: Item | None = None
    """The start key with which a query continues after the last result."""
    equal: frozenset[Place] = frozenset()
    """The keys of the results that have the same sort key as the last one."""
    unknown: Mapping[int, Item | None] = field(default_factory=dict)
    """Where streams begin that are in shards which this graph does not know yet."""


class _Reading:
    """The state of one search while it is read."""

    def __init__(self, layout: BoundLayout, asked: KeySearch, position: KeyPosition | None) -> None:
        self._layout, self._asked = layout, asked
        self._number = None if asked.spread is None else asked.spread.number
        self._streams = [] if position is None else [stream.copy() for stream in position.streams]
        self._last = None if position is None else position.last
        self._unknown = {} if position is None else dict(position.unknown)
        self._equal = set[Place]() if position is None else set(position.equal)
        self._add_streams()
        self._decode = self._decoder()

    def _add_streams(self) -> None:
        """Adds a stream for every known partition that has none yet."""
        for partition in self._asked.all_partitions[len(self._streams) :]:
            stream, at = _Stream(partition), len(self._streams)
            if at in self._unknown:
                stream.begin_after(self._unknown.pop(at), _another_query())
            self._streams.append(stream)

    def _decoder(self) -> Callable[[Item], Any]:
        layout, kind, rest, read = self._layout, self._asked.kind, self._asked.rest, self._asked.decode
        if kind is None:
            return self._any
        if self._asked.question is not None:
            read = self._asked.question.sending(layout).some_decoder(layout)
        keys_only = self._asked.only is not None
        is_of_index = self._asked.held is not None and not self._asked.is_partial and not kind.takes_any

        def decode(item: Item) -> Any:
            # An index copy has the fields of its entity, and so it is in an index over fields too. The index may also
            # hold other items of the node's partition.
            if layout.is_bookkeeping(item) or layout.kind_of(item) is not kind.whole:
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
        return found if isinstance(found, dict) == self._asked.are_others else None

    @property
    def is_over(self) -> bool:
        return all(stream.is_over for stream in self._streams)

    def position(self) -> KeyPosition | None:
        if self.is_over:
            return None
        spread = self._asked.spread
        if spread is None or not spread.number.may_move:
            return KeyPosition(tuple(self._streams), self._last, frozenset(self._equal))
        # Nothing moves to the first shards. What was read to its end there stays so.
        settled = spread.number.epochs[0].shards * len(self._asked.partitions)
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
        for stream, response in zip(hungry, responses, strict=True):
            items = list(response.items)
            # The keys of the entries, not of the items: an item that is read from the table may have changed meanwhile.
            layout, index = self._layout, self._asked.index
            starts = {place_of(layout.key_of(entry)): layout.start_after(entry, index) for entry in items}
            if self._asked.is_partial:
                kind = self._asked.kind if stream is hungry[0] else None
                items = yield from whole(layout, items, kind, consistent=self._asked.consistent)
            if any(DELETING in item for item in items):
                items = yield from visible(layout, items)
            stream.buffer.extend((starts[place_of(layout.key_of(item))], self._decode(item)) for item in items)
            stream.start, stream.is_done, stream.most = response.last, response.last is None, None
            if response.last is not None:
                # Behind what the store has left out, too.
                stream.buffer.append((response.last, None))

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
            raise _another_query()
        return answers

    def _request(self, stream: _Stream, limit: int | None) -> Query | Scan:
        asked = self._asked
        only = None if asked.only is None else tuple(map(attribute, asked.only))
        if not stream.partition:
            return Scan(
                self._layout.table,
                asked.index,
                asked.filter,
                only,
                limit=limit,
                start=stream.start,
                consistent=asked.consistent,
            )
        first, *further = stream.partition
        # All conditions on the sort key but the last are equalities.
        *fixed, last = asked.sort or (None,)
        equal = [(each.attribute, each.operands[0]) for each in fixed if each is not None]
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
            equal=(*further, *equal),
        )

    def merged(self, most: int | None) -> list[Any]:
        """The next results in order, until a stream has to be read."""
        found: list[Any] = []
        while most is None or len(found) < most:
            stream = self._next()
            if stream is None:
                break
            start, entity = stream.buffer.popleft()
            stream.place = start
            if entity is None or self._has_moved(start):
                continue
            found.append(entity)
            stream.taken += 1
            self._note(start)
        return found

    def _note(self, start: Item) -> None:
        """Notes the last result, and which results have the same sort key."""
        if self._number is not None and self._asked.sort_keys:
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
        return (order < last) is self._asked.forward

    def _next(self) -> _Stream | None:
        """The stream with the next result; None if a stream has to be read first, or at the end."""
        full = [stream for stream in self._streams if stream.buffer]
        if not self._asked.sort_keys or len(self._streams) == 1:
            return full[0] if full else None
        if any(not stream.is_done and not stream.buffer for stream in self._streams):
            return None
        choose = min if self._asked.forward else max
        return choose(full, key=lambda stream: self._order(stream.buffer[0][0])) if full else None

    def _order(self, start: Item) -> tuple[Any, ...]:
        return tuple(order_of(start[name]) for name in self._asked.sort_keys)
