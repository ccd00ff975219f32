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

What keys do not answer exactly is filtered: by DynamoDB, where the attribute is in the index and is not a key of it,
and otherwise here, after the items were read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import orjson

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType
from adjoin.errors import AdjoinError, InvalidKey, InvalidValue, shown
from adjoin.expressions import Condition, all_of
from adjoin.field_types import unknown_field
from adjoin.fields import Predicate
from adjoin.items import normal_attribute
from adjoin.layouts.access_patterns import Partition, PatternConditions, ShardPartitions
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.layouts.key_values import key_text
from adjoin.plans.declared import check_due
from adjoin.plans.key_streams import KeyPosition, KeyReading, Stream, another_query
from adjoin.plans.read import Found, Question, Some, changed, is_told_by_keys, with_compared
from adjoin.plans.steps.batches import Place, place_of
from adjoin.plans.steps.conditions import condition, is_filterable
from adjoin.plans.steps.predicates import compared_fields
from adjoin.requests import Plan, SortCondition, SortOperator
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
    is_completed: bool = False
    """Whether DynamoDB adds what the index does not hold."""
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
    is_once: bool = False
    """Whether one of the two items of a symmetric edge is a result, and the other is not."""
    only: tuple[str, ...] | None = None
    """The attributes that are sent, if keys alone tell what is a result; None for whole items."""
    some: Some = None
    """The fields that the entities have; None for all."""

    @property
    def all_partitions(self) -> tuple[Partition, ...]:
        """The partitions in all shards that are known now."""
        return self.partitions if self.spread is None else self.spread.partitions()

    def __str__(self) -> str:
        return self.kind.name if self.kind is not None else "everything"

    def indexes_in(self, layout: BoundLayout) -> list[str | None]:
        return [self.index]

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
        return repr((table, asked) if self.some is None else (table, asked, self.some)).encode()

    def where(self, layout: BoundLayout, predicate: Predicate) -> KeySearch:
        """The search with one more predicate."""
        assert self.kind is not None
        taken = {name for partition in self.partitions for name, _ in partition} | {*self.sort_keys}
        fields = compared_fields(predicate)
        for name in fields - self.kind.fields.keys():
            # Raises, with the closest name.
            self.kind.attribute(name)
        if self.is_once and layout.differs_at_ends(self.kind, fields):
            return self.with_(is_once=False).where(layout, predicate)
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

    def without(self, layout: BoundLayout, predicate: Predicate) -> KeySearch:
        """The search without what a predicate holds for."""
        assert self.kind is not None
        if is_filterable(layout, self.kind, predicate):
            return self.where(layout, ~predicate)
        return self.with_(rest=(*self.rest, ~predicate))

    @property
    def read_fields(self) -> Some:
        """The fields that are read, if not all."""
        return None if self.some is None or self.kind is None else with_compared(self.kind, self.some, self.rest)

    def sent(self, layout: BoundLayout) -> tuple[str, ...] | None:
        """The attributes that are sent; None for whole items."""
        fields = self.read_fields
        if self.only is not None or fields is None or self.kind is None or self.is_partial or self.is_completed:
            return self.only
        names = dict.fromkeys((*layout.some_attributes(self.kind, fields), *layout.start_names(self.index)))
        return tuple(name for name in names if self.held is None or name in self.held)

    def reading_at(self, decide: Callable[[str | None], bool], layout: BoundLayout) -> KeySearch:
        """The search with its reads strongly consistent, if `decide` says so for its index."""
        return self.with_(consistent=decide(self.index))

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
        yield from self.due(layout)
        reading = self.reading(layout, position)
        found: list[Any] = []
        # DynamoDB applies the limit before the filter, so with a filter more items are asked for.
        ask = limit if limit is None or self.is_exact else max(4 * limit, 100)
        while True:
            yield from reading.fill(ask)
            while True:
                wanted = None if limit is None else limit - len(found)
                found += reading.take(wanted)
                if len(found) == limit or not (yield from reading.fetch(wanted)):
                    break
            if reading.is_over or (bool(found) if limit is None else len(found) == limit):
                return Found(found, reading.position())
            ask = ask and min(4 * ask, 100_000)

    @property
    def is_exact(self) -> bool:
        """Whether every item that is read is a result."""
        return self.filter is None and not self.rest and not self.is_once

    def reading(self, layout: BoundLayout, position: KeyPosition | None) -> KeyReading:
        return KeyReading(layout, self._as_held(layout), position)

    def _as_held(self, layout: BoundLayout) -> KeySearch:
        """The search without reads of the table, if only fields are read that the index holds."""
        kind, fields = self.kind, self.read_fields
        if not (self.is_partial or self.is_completed) or kind is None or fields is None:
            return self
        names = {*layout.some_attributes(kind, fields), *layout.start_names(self.index)}
        return self.with_(is_partial=False, is_completed=False) if self._is_held(layout, kind, names) else self

    def _is_held(self, layout: BoundLayout, kind: EntityType, names: Set[str]) -> bool:
        """Whether the index holds these attributes."""
        if self.held is None:
            return not (self.is_partial or self.is_completed)
        lacking = names - self.held
        # What a delete can hide is read from the table, because the index does not say that it is hidden.
        can_be_hidden = kind.can_be_hidden and layout.why_no_own_items is None
        return not (lacking - {DELETING}) and not (lacking and can_be_hidden)

    def due(self, layout: BoundLayout) -> Plan[None]:
        """Raises if this cannot be read as asked, or if stored items may lack what it looks for."""
        if self.partitions == WHOLE and (self.sort or not self.forward):
            names = ", ".join(key.name for key in layout.partition_attributes(self.index))
            raise InvalidValue(
                f"{self._where} is read without an order if no partition is chosen; choose one with partition(…), the "
                f"value of {names}"
            )
        if layout.due.is_any:
            yield from check_due(layout, lambda due: due.check_range(self.kind, self.index))
            yield from check_due(layout, lambda due: due.check_filter(self.kind, self.filter))

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
        kinds = layout.schema.types if self.kind is None else (self.kind,)
        if self.are_others or self.rest or self.decode is not None:
            return self
        if not all(is_told_by_keys(layout, kind) for kind in kinds):
            return self
        names = {*layout.scan(self.kind).attributes, *layout.start_names(self.index)}
        if self.held is not None:
            if not all(self._is_held(layout, kind, names) for kind in kinds):
                return self
            names &= self.held
        return self.with_(only=tuple(sorted(names)), is_partial=False, is_completed=False)

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
        wrong = another_query()
        streams = [Stream(partition) for partition in self.all_partitions]
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


def index_search(layout: BoundLayout, name: str) -> KeySearch:
    """The search for all items of an index."""
    index = layout.definition.index(name)
    if index is None:
        known = [each.name for each in layout.definition.indexes]
        raise InvalidKey(unknown_field(f"the table {layout.table}", name, known, "index"))
    sort_keys = tuple(key.name for key in layout.sort_attributes(name))
    lacks_some, spread = index.projection.kind != "ALL", layout.spread(name)
    keys = {key.name for key in (*layout.definition.keys, *layout.partition_attributes(name))} | {*sort_keys}
    partitions = WHOLE if spread is None else _first(spread)
    return KeySearch(
        None,
        name,
        partitions,
        (),
        sort_keys,
        is_partial=lacks_some and not index.local,
        is_completed=lacks_some and index.local,
        held=frozenset({*keys, *index.projection.attributes}) if lacks_some else None,
        spread=spread,
    )


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


def key_search(
    layout: BoundLayout, found: PatternConditions, parts: Sequence[Predicate], order: Sequence[str]
) -> KeySearch:
    """The search with conditions, in the order of these fields. What the keys do not answer becomes a filter."""
    pattern = found.pattern
    kind, fields = pattern.kind, set(order).union(*map(compared_fields, parts))
    search = KeySearch(
        pattern.kind,
        pattern.index,
        found.partitions if found.spread is None else _first(found.spread),
        found.sort,
        tuple(source.attribute for source in pattern.sort),
        pattern.is_partial,
        pattern.is_completed,
        pattern.held,
        spread=found.spread,
        is_once=isinstance(kind, EdgeType) and kind.symmetric and not layout.differs_at_ends(kind, fields),
    )
    for part in parts:
        if not any(part is each for each in found.answered):
            search = search.where(layout, part)
    return search
