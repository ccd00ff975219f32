"""Reading everything: the items of one class, of the whole graph, or those that no class explains.

A scan reads the table itself, in segments that DynamoDB divides it into, by the hash of the partition key. Each round
asks the segments side by side. Their items come in no order, so a position is where each of the segments continues.

Which class an item belongs to is in its keys. The request has a condition on them, so that most other items are not
sent; the keys of what is sent are matched here. The condition saves transfer, not units: DynamoDB charges for what it
reads.

A symmetric edge has two items, in two partitions, which two segments may hold. The one with the lesser partition key
is the edge; `find` shows it by the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import islice
from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType, NodeType
from adjoin.expressions import Condition, Path, all_of, attribute
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.layouts.ranges import ScanAccess
from adjoin.plans.declared import check_due
from adjoin.plans.deletion import visible
from adjoin.plans.read import Found, Some, changed, is_told_by_keys, projected, with_compared
from adjoin.plans.steps import SEGMENTS
from adjoin.plans.steps.predicates import holds
from adjoin.requests import PageResponse, Plan, Scan
from adjoin.values import Item, decode

MAX_SEGMENTS = 1000
"""DynamoDB takes a million. But a round asks all of them and holds 1 MB of each, and a token has a key of each."""
_LARGEST_STEP = 10
"""After so many rounds that were not enough, all segments are asked for as many items as they can bring."""
_MOST_ASKED = 100_000
"""How many items a request with a limit asks for at most; it never gets more than 1 MB."""

Sought: TypeAlias = Literal["entities", "others", "everything"]
"""Nodes and edges; items that no class explains; or both."""
_Read: TypeAlias = Callable[[Item], Any]
"""What an item is in the answer; None if it is not part of it."""

# --- what is asked -----------------------------------------------------------------------------


@dataclass(eq=False)
class ScanQuestion:
    """A scan that is read page by page. Immutable."""

    kind: EntityType | None
    """None for all classes."""
    access: ScanAccess
    segments: int = SEGMENTS
    consistent: bool = False
    progress: Callable[[int], None] | None = None
    sought: Sought = "entities"
    filter: Condition | None = None
    rest: tuple[Predicate, ...] = ()
    """The predicates that are checked here, on the entities, because they compare ids."""
    some: Some = None
    """The fields that the entities have; None for all."""
    keys_only: bool = False
    """Whether only what tells the class of an item is sent, to count."""

    def with_(self, **changes: Any) -> ScanQuestion:
        return changed(self, changes)

    def request(
        self, table: str, segment: int, start: Item | None, limit: int | None, sent: tuple[Path, ...] | None = None
    ) -> Scan:
        return Scan(
            table,
            None,
            all_of(self.access.filter, self.filter),
            tuple(map(attribute, self.access.attributes)) if self.keys_only else sent,
            limit=limit,
            start=start,
            segment=None if self.segments == 1 else (segment, self.segments),
            consistent=self.consistent,
        )

    def counting(self, table: str, segment: int, start: Item | None) -> Scan:
        """A request whose answer has the number of items only; for an access with an exact condition."""
        return Scan(
            table,
            None,
            all_of(self.access.exact, self.filter),
            count_only=True,
            start=start,
            segment=None if self.segments == 1 else (segment, self.segments),
            consistent=self.consistent,
        )

    def identity(self, table: str) -> bytes:
        """Bytes that are different for every other question, so that a page token fits only its own."""
        label = None if self.kind is None else self.kind.label
        asked = (self.request(table, 0, None, None), self.segments, label, self.sought)
        return repr((*asked, self.rest, self.some) if self.rest or self.some is not None else asked).encode()

    @property
    def read_fields(self) -> Some:
        """The fields that are read, if not all."""
        return None if self.some is None or self.kind is None else with_compared(self.kind, self.some, self.rest)


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """How far a scan has come: where each segment continues that is not at its end."""

    starts: Mapping[int, Item | None]
    """By the number of the segment: the key after which it continues, or None for its beginning."""
    read: int = 0
    """How many items were read so far."""
    rounds: int = field(default=0, compare=False)
    """How many rounds there were, as far as that decides how much the next one asks for."""


# --- what items are ----------------------------------------------------------------------------


def _reader(layout: BoundLayout, asked: ScanQuestion) -> _Read:
    kind, keys_only, rest, some = asked.kind, asked.keys_only, asked.rest, asked.read_fields

    def entity(item: Item) -> Any:
        told = None if layout.is_bookkeeping(item) else layout.kind_of(item)
        if told is None or (kind is not None and (told is not kind.whole or not layout.is_one(kind, item))):
            return None
        found: Any = keys_only or (layout.decode(told, item) if some is None else layout.decode_some(told, item, some))
        if rest and found is not None and not all(holds(told, each, found) for each in rest):
            return None
        return found if found is None or layout.is_shown(told, item) else None

    def other(item: Item) -> Any:
        if layout.is_bookkeeping(item) or layout.is_of_a_tenant(item):
            return None
        told = layout.kind_of(item)
        if told is not None and (is_told_by_keys(layout, told) or layout.decode_as_far(told, item) is not None):
            return None
        return keys_only or _plain(item)

    def either(item: Item) -> Any:
        found = entity(item)
        return other(item) if found is None else found

    readers: dict[Sought, _Read] = {"entities": entity, "others": other, "everything": either}
    return readers[asked.sought]


def _plain(item: Item) -> dict[str, Any]:
    return {name: decode(value) for name, value in item.items()}


# --- reading -----------------------------------------------------------------------------------


def _check_due(layout: BoundLayout, asked: ScanQuestion) -> Plan[None]:
    """Raises if items of the class may be stored under keys that are not of the class any more, or lack a field."""
    if layout.due.is_any and asked.sought != "others":
        # Of the two items of a symmetric edge, one stands for it, and it may be the one that is not there yet.
        yield from check_due(layout, lambda due: due.check_range(asked.kind, None))
        yield from check_due(layout, lambda due: due.check_filter(asked.kind, asked.filter))


def scan_round(
    layout: BoundLayout, asked: ScanQuestion, left: int | None, position: ScanPosition | None
) -> Plan[Found]:
    """What one round brings: a page of each segment. With `left`, at most so many results, which may be fewer.

    If few results are wanted, one segment is asked for few items; each further round asks twice as many segments, each
    for four times as many items. What is not needed is read again when the scan continues.
    """
    yield from _check_due(layout, asked)
    at = position or ScanPosition(dict.fromkeys(range(asked.segments)))
    chosen, limit = at.starts, None
    if left is not None:
        chosen = dict(islice(at.starts.items(), 2**at.rounds))
        limit = min(_asked_for(asked, left) * 4**at.rounds, _MOST_ASKED)
    sent = None if asked.kind is None else projected(layout, asked.kind, asked.read_fields)
    responses: list[PageResponse] = yield tuple(
        asked.request(layout.table, segment, start, limit, sent) for segment, start in chosen.items()
    )
    pages = yield from _results(layout, asked, responses, keeps_keys=left is not None)
    results: list[Any] = []
    starts = dict(at.starts)
    for segment, response, page in zip(chosen, responses, pages, strict=True):
        room = None if left is None else left - len(results)
        if room == 0 and page:
            continue
        results += [result for result, _ in page[:room]]
        if room is not None and room < len(page):
            starts[segment] = page[room - 1][1]
        elif response.last is None:
            del starts[segment]
        else:
            starts[segment] = response.last
    read = at.read + sum(response.scanned for response in responses)
    if asked.progress is not None:
        asked.progress(read)
    return Found(results, ScanPosition(starts, read, min(at.rounds + 1, _LARGEST_STEP)) if starts else None)


def _asked_for(asked: ScanQuestion, left: int) -> int:
    """How many items to ask for: DynamoDB counts them before it filters, and most may be of other classes."""
    is_most = asked.kind is None and asked.sought != "others" and asked.filter is None
    # One more, because the table holds a record of what is declared.
    return left + 1 if is_most else max(4 * left, 100)


def _results(
    layout: BoundLayout, asked: ScanQuestion, responses: list[PageResponse], *, keeps_keys: bool
) -> Plan[list[list[tuple[Any, Item | None]]]]:
    """The results on each page, each with its key if those are wanted."""
    read = _reader(layout, asked)
    pages: list[list[tuple[Any, Item | None]]] = []
    marked: list[tuple[int, int, Item]] = []
    for response in responses:
        page: list[tuple[Any, Item | None]] = []
        for item in response.items:
            if DELETING in item:
                # It is not known yet whether the edge is visible. It keeps its place until that was looked up.
                marked.append((len(pages), len(page), item))
                result = None
            else:
                result = read(item)
                if result is None:
                    continue
            page.append((result, layout.key_of(item) if keeps_keys else None))
        pages.append(page)
    if not marked:
        return pages
    shown = yield from visible(layout, [item for *_, item in marked])
    those = {id(item) for item in shown}
    for number, place, item in marked:
        if id(item) in those:
            pages[number][place] = (read(item), pages[number][place][1])
    return [[each for each in page if each[0] is not None] for page in pages]


def scan_page(
    layout: BoundLayout, asked: ScanQuestion, limit: int | None, position: ScanPosition | None
) -> Plan[Found]:
    """A page of `limit` results (fewer only at the end); without a limit, what one round brings."""
    results: list[Any] = []
    while True:
        found = yield from scan_round(layout, asked, limit and limit - len(results), position)
        results += found.entities
        position = found.last
        if limit is None or position is None or len(results) == limit:
            return Found(results, position)


def scan_count(layout: BoundLayout, asked: ScanQuestion, most: int | None) -> Plan[int]:
    """How many results there are; it reads all items, but as little as possible of them is sent.

    If a condition tells the class, the service counts. Else the keys are sent, unless they do not tell either.
    """
    yield from _check_due(layout, asked)
    kinds = layout.schema.types if asked.kind is None else (asked.kind,)
    are_told = not asked.rest and all(is_told_by_keys(layout, kind) for kind in kinds)
    # Only edges have marks of deletes, which have to be looked up.
    if are_told and asked.access.exact is not None and isinstance(asked.kind, NodeType):
        return (yield from _counted(layout, asked, most))
    asked = asked.with_(keys_only=are_told)
    total = 0
    position: ScanPosition | None = None
    while True:
        found = yield from scan_round(layout, asked, None, position)
        total, position = total + len(found.entities), found.last
        if position is None or (most is not None and total >= most):
            return total if most is None else min(total, most)


def _counted(layout: BoundLayout, asked: ScanQuestion, most: int | None) -> Plan[int]:
    starts: dict[int, Item | None] = dict.fromkeys(range(asked.segments))
    total = read = 0
    while starts and (most is None or total < most):
        responses: list[PageResponse] = yield tuple(
            asked.counting(layout.table, segment, start) for segment, start in starts.items()
        )
        total += sum(response.count for response in responses)
        read += sum(response.scanned for response in responses)
        if asked.progress is not None:
            asked.progress(read)
        starts = {
            segment: response.last
            for segment, response in zip(starts, responses, strict=True)
            if response.last is not None
        }
    return total if most is None else min(total, most)
