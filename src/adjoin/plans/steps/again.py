"""Read, decide, write if nothing changed meanwhile, and otherwise again.

Every plan that changes items which other processes may change at the same time follows this pattern. An *attempt* reads
what it needs, and decides on a write with the condition that what it read is unchanged. If the condition fails, another
process was faster, and another attempt reads again. `until_written` is this loop. In plans where many such writes run
side by side, `Pace` counts the attempts.

The conditions that an item is unchanged are here too. If an item has a revision, it is enough to compare that, because
each write sets a new one. Otherwise the attributes are compared on which the decision depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from os import urandom
from typing import Any, Generic, TypeAlias, TypeVar

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType
from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.expressions import And, Compare, Condition, Exists, Not, Or, Path, Value, all_of, attribute
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import OWNER, REVISION, Satellite
from adjoin.reached_sets import VERSION, is_reached_set
from adjoin.requests import Delete, Plan, Request
from adjoin.values import AttributeValue, Item

T = TypeVar("T")

ATTEMPTS = 50
"""How often other processes may be faster before a plan gives up."""

Failure: TypeAlias = ConditionFailed | TransactionCanceled
"""The errors with which a conditional write fails."""


class Again(Enum):
    """The type of `AGAIN`, which stands in place of a result that does not exist yet."""

    AGAIN = auto()


AGAIN = Again.AGAIN
"""A handler of a failed write returns this if another attempt may succeed."""


def _itself(failure: Failure) -> Failure:
    return failure


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """What an attempt has decided: one round of conditional writes, and what to do after it."""

    writes: Sequence[Request]
    result: Callable[[Sequence[Any]], T]
    """Makes the result of the plan from the responses to the writes."""
    failed: Callable[[Failure], Plan[T | Again]]
    """Handles a failure: returns another result or `AGAIN`, or raises an error."""
    error: Callable[[Failure], Failure] = _itself
    """The error to raise if this was the last attempt."""


@dataclass(frozen=True)
class Done(Generic[T]):
    """What an attempt returns if nothing has to be written."""

    result: T


def until_written(attempt: Callable[[], Plan[Attempt[T] | Done[T]]], most: int = ATTEMPTS) -> Plan[T]:
    """Makes attempts until one is written. After `most` attempts, it raises the error of the last one."""
    for number in range(1, most + 1):
        made = yield from attempt()
        if isinstance(made, Done):
            return made.result
        try:
            responses = yield made.writes
        except (ConditionFailed, TransactionCanceled) as failure:
            result = yield from made.failed(failure)
            if not isinstance(result, Again):
                return result
            if number == most:
                raise made.error(failure) from None
        else:
            return made.result(responses)
    raise AssertionError


def decided(result: T) -> Plan[T]:
    """A plan that returns a result without any request."""
    return result
    # Never reached. It makes this function a generator, as a plan has to be.
    yield


def always_again(_failure: Failure) -> Plan[Again]:
    """The handler for writes whose conditions fail only if another process was faster."""
    return decided(AGAIN)


@dataclass
class Pace:
    """How many conditional writes run side by side: half as many after each failure.

    With fewer at a time, the time between reading and writing is shorter, and other processes are faster less often.
    """

    width: int
    failures: int = 0
    """How many rounds failed since the last successful one."""

    def slow_down(self, failure: Exception) -> None:
        """Counts a failure, and raises it if there were too many in a row."""
        self.failures += 1
        if self.failures == ATTEMPTS:
            raise failure
        self.width = max(1, self.width // 2)

    def go_on(self) -> None:
        """Resets the count after a successful round."""
        self.failures = 0


# --- unchanged items ----------------------------------------------------------------------------


def new_revision() -> AttributeValue:
    """A random value that no item has had before."""
    return {"S": urandom(8).hex()}


def same(item: Mapping[str, Any] | None, name: str) -> Condition:
    """The condition that an attribute has the value that was read, or is still absent if it was.

    Of a reached set, which may be large, the version is compared: it is new whenever the set is written.
    """
    path = Path((name,))
    if item is None or name not in item:
        return Not(Exists(path))
    value = item[name]
    if "M" in value and is_reached_set(value):
        return Compare("=", Path((name, VERSION)), Value(value["M"][VERSION]))
    return Compare("=", path, Value(value))


def as_read(layout: BoundLayout, item: Item | None, names: Iterable[str]) -> Condition:
    """The condition that these attributes are as they were read; if there was no item, that there still is none."""
    if item is None:
        return Not(layout.present)
    return all_of(layout.present, *(same(item, name) for name in names)) or layout.present


def unchanged(layout: BoundLayout, item: Item | None) -> Condition:
    """The condition that an item with satellites has the revision that was read, or still has none."""
    if item is None:
        return Not(layout.present)
    if REVISION in item:
        return same(item, REVISION)
    return And((layout.present, Not(Exists(attribute(REVISION)))))


def claimable(satellite: Satellite, *stale: str) -> Condition | None:
    """The condition under which a claim may be taken; None if the satellite is no claim.

    The claim may be free, it may belong to the node itself, or to one of the `stale` nodes, which do not have the value
    any more.
    """
    if satellite.owner is None:
        return None
    owners = [Compare("=", attribute(OWNER), Value({"S": owner})) for owner in (satellite.owner, *stale)]
    return Or((Not(Exists(attribute(OWNER))), *owners))


def disconnected_satellites(
    layout: BoundLayout, kind: EdgeType, source: Any, target: Any, keys: Sequence[Item]
) -> list[Delete]:
    """The deletes of the index copies of an edge, and of its claims as far as they are its own."""
    copies = [Delete(layout.table, copy) for key in keys for copy in layout.copy_keys(kind, key)]
    nodes = {"source": (kind.source, source), "target": (kind.target, target)}
    texts = {side: layout.node_text(*nodes[side]) for side in kind.claimed}
    claims = layout.claims_of(kind, texts, layout.first_twin(keys)) if texts else []
    return [*copies, *(Delete(layout.table, each.key, claimable(each)) for each in claims)]
