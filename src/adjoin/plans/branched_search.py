"""Finding by a condition with `|`: one search per branch.

What several branches find comes once: a later branch leaves out what the condition of an earlier one holds for, which
each item tells by itself. So no page has to remember what was found before it.

Without `order=`, the results of one branch follow those of another. A page then reads a branch only if those before it
had too few results; an iteration reads all of them side by side. With `order=`, all branches are in that order, and
they are merged.

A position has one of each branch. So has a page token, without the branches that were not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import orjson

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import InvalidCursor
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.indexed_fields import indexed_text
from adjoin.plans.indexed_search import IndexedSearch, IndexReading
from adjoin.plans.key_search import KeySearch
from adjoin.plans.key_streams import KeyReading
from adjoin.plans.read import Found, changed
from adjoin.requests import Plan, Request
from adjoin.values import Item

OneSearch: TypeAlias = IndexedSearch | KeySearch
_Reading: TypeAlias = IndexReading | KeyReading

_OVER: Final = "over"
"""The position of a branch that was read to its end."""


@dataclass(eq=False)
class BranchedSearch:
    """The searches of all branches of one condition. Immutable."""

    branches: tuple[OneSearch, ...]
    """In their order; each leaves out what those before it find."""
    order: tuple[str, ...] = ()
    """The fields by which the branches are merged; none if they follow each other."""
    forward: bool = True

    @property
    def kind(self) -> EntityType:
        kind = self.branches[0].kind
        assert kind is not None
        return kind

    @property
    def consistent(self) -> bool:
        return all(branch.consistent for branch in self.branches)

    def __str__(self) -> str:
        return " or ".join(dict.fromkeys(map(str, self.branches)))

    def with_(self, **changes: Any) -> BranchedSearch:
        if changes.get("some") is not None:
            # Branches are merged by what their results have. Ids are always read.
            merged = [name for name in self.order if name in self.kind.attributes]
            some = tuple(dict.fromkeys((*changes.pop("some"), *merged)))
            changes["branches"] = tuple(each.with_(some=some) for each in self.branches)
        if "forward" in changes:
            changes["branches"] = tuple(each.with_(forward=changes["forward"]) for each in self.branches)
        return changed(self, changes)

    def indexes_in(self, layout: BoundLayout) -> list[str | None]:
        return [*dict.fromkeys(index for branch in self.branches for index in branch.indexes_in(layout))]

    def identity(self, table: str) -> bytes:
        return repr((self.order, self.forward, *(branch.identity(table) for branch in self.branches))).encode()

    def where(self, layout: BoundLayout, predicate: Predicate) -> BranchedSearch:
        return self.with_(branches=tuple(branch.where(layout, predicate) for branch in self.branches))

    def reading_at(self, decide: Callable[[str | None], bool], layout: BoundLayout) -> BranchedSearch:
        return self.with_(branches=tuple(branch.reading_at(decide, layout) for branch in self.branches))

    @property
    def _in_turn(self) -> tuple[OneSearch, ...]:
        """The branches in the order in which they are read."""
        return self.branches if self.forward else self.branches[::-1]

    # --- pages ---------------------------------------------------------------------------------

    def page(self, layout: BoundLayout, limit: int | None, position: Positions | None) -> Plan[Found]:
        """A page of `limit` results (fewer only at the end); without a limit, what one round brings."""
        for branch in self.branches:
            yield from branch.due(layout)
        starts = position or (None,) * len(self.branches)
        # A branch that is over stays so, also if new shards have come since.
        readings = [
            None if start is _OVER else branch.reading(layout, start)
            for branch, start in zip(self._in_turn, starts, strict=True)
        ]
        left = [each for each in readings if each is not None]
        found: list[Any] = []
        # DynamoDB applies the limit before the filter, so with a filter more items are asked for.
        asks = {each: limit if limit is None or each.asked.is_exact else max(4 * limit, 100) for each in left}
        while left and (limit is None or len(found) < limit):
            now = self._next(left, limit)
            yield from _together(reading.complete(asks[reading]) for reading in now)
            wanted = None if limit is None else limit - len(found)
            found += self._merged(left, wanted) if self.order else _one_after_another(left, wanted)
            left = [reading for reading in left if not reading.is_over]
            if limit is None and found:
                break
            asks.update((each, ask and min(4 * ask, 100_000)) for each in now if (ask := asks[each]) is not None)
        if not left:
            return Found(found, None)
        there = [each.position() if each is not None and each in left else _OVER for each in readings]
        return Found(found, tuple(there))

    def _next(self, left: Sequence[_Reading], limit: int | None) -> Sequence[_Reading]:
        """The branches to read in the next round."""
        if self.order:
            return left
        if limit is not None:
            return left[:1]
        # What may move to another shard is not kept from one step to the next.
        return [left[0], *(each for each in left[1:] if not each.may_move)]

    def _merged(self, left: Sequence[_Reading], most: int | None) -> list[Any]:
        """The next results of all branches in the order of the fields, until a branch has to be read."""
        found: list[Any] = []
        heads = [(reading, reading.head()) for reading in left]
        while most is None or len(found) < most:
            if any(head is None and reading.has_to_read for reading, head in heads):
                break
            there = [at for at, (_, head) in enumerate(heads) if head is not None]
            if not there:
                break
            # The first of several that are least, or the first that is greatest: the branches are in turn.
            choose = min if self.forward else max
            at = choose(there, key=lambda each: self._sorted_by(heads[each][1]))
            reading, _ = heads[at]
            found += reading.take(1)
            heads[at] = reading, reading.head()
        return found

    def _sorted_by(self, entity: Any) -> tuple[Any, ...]:
        return tuple(_sortable(getattr(entity, name)) for name in self.order)

    def count(self, layout: BoundLayout, most: int | None) -> Plan[int]:
        counts: list[int] = yield from _together(branch.count(layout, most) for branch in self.branches)
        return sum(counts) if most is None else min(sum(counts), most)

    # --- page tokens ---------------------------------------------------------------------------

    def key_at(self, position: Positions) -> Item:
        """The key that a page token holds: for each branch that was begun, where it continues (null at its end)."""
        keys = {
            str(at): None if start is _OVER else branch.key_at(start)
            for at, (branch, start) in enumerate(zip(self._in_turn, position, strict=True))
        }
        return {at: {"S": orjson.dumps(key).decode()} for at, key in keys.items() if key != {}}

    def position_at(self, layout: BoundLayout, key: Item) -> Positions:
        """The position that a page token stands for."""
        branches = self._in_turn
        found: list[Any] = [None] * len(branches)
        for name, value in key.items():
            try:
                at, place = int(name), orjson.loads(value["S"])
            except (ValueError, KeyError):
                raise _another_query() from None
            if not 0 <= at < len(branches) or not (place is None or _is_key(place)):
                raise _another_query()
            found[at] = _OVER if place is None else branches[at].position_at(layout, place)
        return tuple(found)


Positions: TypeAlias = tuple[Any, ...]
"""A position of each branch, in turn; None for one that was not begun."""


def branched_search(
    layout: BoundLayout, found: Sequence[tuple[OneSearch, Predicate]], order: tuple[str, ...]
) -> BranchedSearch:
    """The search of several branches, each with the condition that holds for exactly what it finds."""
    branches: list[OneSearch] = []
    for at, (branch, _) in enumerate(found):
        for _, before in found[:at]:
            branch = branch.without(layout, before)
        branches.append(branch)
    return BranchedSearch(tuple(branches), order)


def _one_after_another(left: Sequence[_Reading], most: int | None) -> list[Any]:
    """The next results, branch after branch, until one has to be read."""
    found: list[Any] = []
    for reading in left:
        found += reading.take(None if most is None else most - len(found))
        if not reading.is_over:
            break
    return found


def _together(plans: Iterable[Plan[Any]]) -> Plan[list[Any]]:
    """The results of several plans, each round with the next requests of all of them."""
    results: list[Any] = []
    running: list[tuple[int, Plan[Any], Sequence[Request]]] = []
    for at, plan in enumerate(plans):
        results.append(None)
        try:
            running.append((at, plan, next(plan)))
        except StopIteration as done:
            results[at] = done.value
    while running:
        responses: list[Any] = yield tuple(request for _, _, batch in running for request in batch)
        start, now, running = 0, running, []
        for at, plan, batch in now:
            end = start + len(batch)
            try:
                running.append((at, plan, plan.send(responses[start:end])))
            except StopIteration as done:
                results[at] = done.value
            start = end
    return results


def _sortable(value: Any) -> Any:
    """The value of a field in a form that sorts as keys do."""
    return value if isinstance(value, bytes) else indexed_text(value)


def _is_key(place: Any) -> bool:
    """Whether this is a key, with values as texts."""
    return isinstance(place, dict) and all(
        isinstance(value, dict) and [*map(type, value.values())] == [str] and value.keys() <= {"S", "N", "B"}
        for value in place.values()
    )


def _another_query() -> InvalidCursor:
    return InvalidCursor("the page token belongs to another query; start again from the first page")
