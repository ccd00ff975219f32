"""The stored shard maps and numbers of shards: finds read them. Writes let maps grow, and a command raises numbers.

One item per field holds its map and the heat that all processes have reported. A process that reports reads the item,
adds its heat, lets the policy decide whether the map grows, and writes the item back if it has not changed meanwhile.
That happens once per thousand writes or less often, and never in a small program.

An index with a number of shards has no maps. One record of the table holds the number (see `layouts.shard_numbers`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import AccessDenied, AdjoinError, ConditionFailed, InvalidKey, TableNotFound, Throttled, shown
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import ShardBook, is_rehearsed
from adjoin.layouts.shard_numbers import VERSION as VERSION_OF_NUMBER
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.requests import DescribeTable, Get, ItemResponse, Plan, Put, Query, SortCondition, TableResponse
from adjoin.values import Item, decode, encode

if TYPE_CHECKING:
    from adjoin.plans.steps import again as trying
    from adjoin.plans.steps import batches
    from adjoin.plans.steps.again import Attempt, Done
    from adjoin.sharding import heat as heats
    from adjoin.sharding import maps, policy
    from adjoin.sharding.heat import Heat
    from adjoin.sharding.maps import ShardMap
else:
    trying = later("adjoin.plans.steps.again")
    batches = later("adjoin.plans.steps.batches")
    heats = later("adjoin.sharding.heat")
    maps = later("adjoin.sharding.maps")
    policy = later("adjoin.sharding.policy")

MAP, HEAT, SCOPE, VERSION = "map", "heat", "scope", "version"
_ATTEMPTS = 5

T = TypeVar("T")


def map_request(layout: BoundLayout, scope: str) -> Get:
    """The request for what says how many shards a field has: its map, or the number of its index."""
    assert layout.overloaded is not None
    book = layout.overloaded.book
    return _map_request(layout, scope) if book.is_adaptive else number_request(layout, book.number)


def _map_request(layout: BoundLayout, scope: str) -> Get:
    return Get(layout.table, layout.shard_map_key(scope), consistent=True)


def read_shard_maps(layout: BoundLayout) -> Plan[None]:
    """Reads all maps of a graph when it opens; a table that does not exist has none."""
    index = layout.overloaded
    if index is None or not index.book.is_adaptive:
        return
    (pk, partition), _ = layout.shard_map_key("").items()
    # The lease begins when the map was asked for: it may have grown while the answer was on its way.
    asked_at = index.book.clock()
    stored: dict[str, Item] = {}
    pages = batches.Pages([(SCOPE, Query(layout.table, (pk, partition), consistent=True))])
    try:
        while found := (yield from pages.next()):
            stored |= {item[SCOPE]["S"]: item for _, page in found for item in page.items if SCOPE in item}
    except TableNotFound:
        return
    for scope in index.scopes:
        learn(index.book, scope, stored.get(scope), asked_at)


def learn(book: ShardBook, scope: str, item: Item | None, asked_at: float) -> None:
    """Gives the book the answer to `map_request`, as it was at the time `asked_at`."""
    if not book.is_adaptive:
        learn_number(book.number, item, asked_at)
        return
    book.learn(scope, maps.ShardMap() if item is None else maps.ShardMap.from_plain(decode(item[MAP])), asked_at)


# --- numbers of shards -------------------------------------------------------------------------


def number_request(layout: BoundLayout, number: ShardNumber) -> Get:
    """The request for the record of a number of shards."""
    return Get(layout.table, layout.shard_number_key(number.attribute), consistent=True)


def learn_number(number: ShardNumber, record: Item | None, asked_at: float) -> None:
    """Gives the graph the answer to `number_request`, as it was at the time `asked_at`."""
    if not is_rehearsed():
        number.learn(record, asked_at)


def open_shard_numbers(layout: BoundLayout, *, is_new: bool) -> Plan[None]:
    """Reads all numbers of shards when a graph opens, in one request. In a new table, they are written."""
    numbers = layout.shard_numbers
    if not numbers:
        return
    if is_new:
        yield from _write_numbers(layout)
    stored: dict[str, Item] = {}
    (name, partition), (sort_name, start) = layout.shard_number_key("").items()
    asked_at = {attribute: each.clock() for attribute, each in numbers.items()}
    begin = SortCondition(sort_name, "begins_with", (start,))
    pages = batches.Pages([("", Query(layout.table, (name, partition), begin, consistent=True))])
    try:
        while found := (yield from pages.next()):
            stored |= {item[sort_name]["S"].removeprefix(start["S"]): item for _, page in found for item in page.items}
    except TableNotFound:
        return
    except AccessDenied as error:
        if any(number.is_fixed for number in numbers.values()):
            raise AccessDenied(
                f"the number of shards of {next(iter(numbers.values())).name} cannot be read: {error}; allow reading "
                f"the partition {partition['S']!r}"
            ) from error
        return
    for attribute, number in numbers.items():
        learn_number(number, stored.get(attribute), asked_at[attribute])


def _write_numbers(layout: BoundLayout) -> Plan[None]:
    """Writes the declared numbers into a new table, unless another program was faster, or the program may not."""
    for number in layout.shard_numbers.values():
        if number.is_fixed:
            try:
                yield (_put_number(layout, number, number.raised(None, len(number.all)), None),)
            except (ConditionFailed, AccessDenied):
                continue


def fresh_numbers(layout: BoundLayout) -> Plan[None]:
    """Reads those numbers of shards again whose lease is over; for plans that query shards by themselves."""
    stale = [number for number in layout.shard_numbers.values() if number.is_stale]
    if not stale:
        return
    asked_at = [number.clock() for number in stale]
    responses: list[ItemResponse]
    responses = yield tuple(number_request(layout, number) for number in stale)
    for number, at, response in zip(stale, asked_at, responses, strict=True):
        learn_number(number, response.item, at)


def raise_shards(layout: BoundLayout, index: str, wanted: int) -> Plan[Item]:
    """Raises the number of shards of an index, for all programs that use the table, and returns the new record.

    It is one write that moves nothing. Whoever comes second raises what the first has written, or is refused.
    """
    number = number_of(layout, index)

    def attempt() -> Plan[Attempt[Item] | Done[Item]]:
        response: ItemResponse
        (response,) = yield (number_request(layout, number),)
        # None if the table already has this number.
        record = number.raised(response.item, wanted)
        if record is None:
            assert response.item is not None
            return trying.Done(response.item)
        put = _put_number(layout, number, record, response.item)
        return trying.Attempt((put,), lambda _: put.item, trying.always_again)

    return (yield from trying.until_written(attempt))


@dataclass(frozen=True, slots=True)
class IndexShards:
    """How many shards an index has."""

    index: str
    declared: int | None
    """None if the layout says that they are adaptive."""
    stored: int | None
    """What the table says; None if it says nothing."""
    written: int | None
    """How many of those that are stored new items go to."""
    since: float
    """When new items go, or went, to all of them, in seconds since 1970."""

    def __str__(self) -> str:
        if self.stored is None:
            number = "adaptive" if self.declared is None else self.declared
            return f"{self.index}: {number} shards, as the layout declares; the table has no record of them"
        told = f"{self.index}: {self.stored} shards"
        if self.written == self.stored:
            return told
        since = datetime.fromtimestamp(self.since, UTC)
        return f"{told}; items are written to {self.written} of them until {since:%Y-%m-%d %H:%M:%S} UTC"


def index_shards(layout: BoundLayout) -> Plan[list[IndexShards]]:
    """The shards of all indexes that can have a number of them, as the table says, whatever is declared."""
    numbers = list(layout.shard_numbers.values())
    responses: list[ItemResponse]
    responses = (yield tuple(number_request(layout, number) for number in numbers)) if numbers else []
    found = []
    for number, response in zip(numbers, responses, strict=True):
        stored, declared = number.stored(response.item), number.declared
        for index in number.indexes:
            least = None if declared is None else len(declared)
            if stored is None:
                found.append(IndexShards(index, least, None, None, 0.0))
            else:
                written = stored.writable(number.clock())
                found.append(IndexShards(index, least, stored.shards_of(), written, stored.changed))
    return found


def number_of(layout: BoundLayout, index: str) -> ShardNumber:
    """The number of shards of an index."""
    if layout.why_no_own_items is not None:
        raise InvalidKey(
            f"the table cannot hold a number of shards: {layout.why_no_own_items}; declare it in the layout of every "
            f"program"
        )
    for number in layout.shard_numbers.values():
        if index in number.indexes and number.is_fixed:
            return number
    known = [name for number in layout.shard_numbers.values() if number.is_fixed for name in number.indexes]
    raise InvalidKey(
        f"{shown(index)} is not an index with a number of shards; such indexes are "
        f"{', '.join(map(repr, known)) or 'none'}"
    )


def _put_number(layout: BoundLayout, number: ShardNumber, record: Item | None, was: Item | None) -> Put:
    assert record is not None
    key = layout.shard_number_key(number.attribute)
    return Put(layout.table, key | record, trying.as_read(layout, was, (VERSION_OF_NUMBER,)))


# --- growing -----------------------------------------------------------------------------------


def written(layout: BoundLayout, plan: Plan[T]) -> Plan[T]:
    """Runs a plan that writes, and then reports the heat of its writes if a report is due."""
    index = layout.overloaded
    if index is None or not index.book.is_adaptive:
        return (yield from plan)
    try:
        result = yield from plan
    except Throttled:
        index.book.throttled()
        yield from report_heat(layout)
        raise
    yield from report_heat(layout)
    return result


def report_heat(layout: BoundLayout) -> Plan[None]:
    """Reports the heat of all fields for which a report is due."""
    if layout.overloaded is None:
        return
    book = layout.overloaded.book
    for scope, report in book.reports().items():
        try:
            yield from _report(layout, book, scope, report)
        except AdjoinError:
            # The write before this report is done, so the call must not fail. A lost report only delays new shards.
            continue


def _report(layout: BoundLayout, book: ShardBook, scope: str, report: Heat) -> Plan[None]:
    def attempt() -> Plan[Attempt[None]]:
        asked_at = book.clock()
        response: ItemResponse
        (response,) = yield (_map_request(layout, scope),)
        item = response.item
        # The map and the heat are one item, so of two processes that grow it, the second one reads what the first
        # decided.
        shards, heat = _stored(item)
        heat = yield from _bounded(layout, heat)
        after, larger = policy.considered(shards, heat, report, asked_at)

        def reported(_: object) -> None:
            book.learn(scope, larger or shards, asked_at)
            book.heard(scope, after)

        return trying.Attempt((_put(layout, scope, larger or shards, after, item),), reported, trying.always_again)

    yield from trying.until_written(attempt, _ATTEMPTS)


def _bounded(layout: BoundLayout, heat: Heat) -> Plan[Heat]:
    """Heat whose sizes do not exceed the table's: an item that is overwritten counts each time, but takes room once."""
    if max(heat.size, *heat.sizes.values(), 0) <= policy.LIMITS.size:
        return heat
    described: TableResponse
    (described,) = yield (DescribeTable(layout.table),)
    sizes = {value: min(size, described.size) for value, size in heat.sizes.items()}
    return replace(heat, size=min(heat.size, described.size), sizes=sizes)


def _stored(item: Item | None) -> tuple[ShardMap, Heat]:
    if item is None:
        return maps.ShardMap(), heats.Heat()
    return maps.ShardMap.from_plain(decode(item[MAP])), heats.Heat.from_plain(decode(item[HEAT]))


def _put(layout: BoundLayout, scope: str, shards: ShardMap, heat: Heat, was: Item | None) -> Put:
    number = 1 if was is None else int(was[VERSION]["N"]) + 1
    record = {
        SCOPE: {"S": scope},
        MAP: encode(shards.to_plain()),
        HEAT: encode(heat.to_plain()),
        VERSION: {"N": str(number)},
    }
    return Put(layout.table, layout.shard_map_key(scope) | record, trying.same(was, VERSION))
