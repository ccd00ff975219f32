"""How far the stream was applied: when that is stored, by whom, and what is told of it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import Copy, Count, Edge, Graph, Node, Throttled
from adjoin.errors import CancellationReason, TransactionCanceled
from adjoin.expressions import Set, Value, attribute
from adjoin.plans.maintenance.report import Tally
from adjoin.plans.maintenance.standing import (
    AT,
    CHANGES,
    POSITION,
    RATE,
    REBUILT,
    VERIFIED,
    begin,
    begin_again,
    end,
    key_of,
    last_looked_at,
    number,
    number_in,
)
from adjoin.plans.maintenance.stream import (
    Rate,
    Reading,
    _forgotten,
    _is_due,
    _is_worth_storing,
    faded,
    leave,
    maintain_step,
)
from adjoin.requests import BatchWrite, Get, Put, ReadChanges, Request, TransactWrite, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.units import MAX_CHANGES
from tests.faults import FaultyStore
from tests.maintenance.models import MODELS, Customer, Part, Placed
from tests.maintenance.test_simulation import check

NOW = 1_700_000_000.0


def clock() -> float:
    return NOW


@pytest.mark.parametrize(
    ("pending", "applied", "is_drained", "is_over", "is_stored"),
    [
        (None, 0, True, True, False),
        (None, MAX_CHANGES, False, False, False),
        (NOW, 1, False, False, False),
        (NOW, 1, True, False, True),
        (NOW, 1, False, True, True),
        (NOW - 4.9, 1, False, False, False),
        (NOW - 5, 1, False, False, True),
        (NOW + 1, 1, False, False, True),  # a clock that was set back
        (NOW, MAX_CHANGES - 1, False, False, False),
        (NOW, MAX_CHANGES, False, False, True),
    ],
)
def test_what_was_applied_is_stored_at_the_end_or_soon(
    pending: float | None, applied: int, is_drained: bool, is_over: bool, is_stored: bool
) -> None:
    reading = Reading(pending_since=pending, applied=applied)
    assert _is_worth_storing(reading, NOW, is_drained, is_over) is is_stored


@pytest.mark.parametrize(
    ("ago", "is_drained", "has_others", "is_due"),
    [
        (5, True, True, False),
        (6, True, True, True),
        (60, True, False, False),
        (61, True, False, True),
        (600, False, True, False),
        (601, False, True, True),
        (-60, True, True, False),
        (-61, True, True, True),
    ],
)
def test_where_nothing_was_applied_the_position_does_not_become_too_old(
    ago: float, is_drained: bool, has_others: bool, is_due: bool
) -> None:
    record = {POSITION: {"S": "here"}, AT: number(NOW - ago)}
    reading = Reading(record=record, has_others=has_others)
    assert _is_due(reading, "there", NOW, is_drained) is is_due
    assert _is_due(reading, "here", NOW, is_drained) is False
    for none in (None, {AT: number(NOW)}):
        assert _is_due(Reading(record=none), "there", NOW, is_drained) is True


def test_what_may_be_missing_before_the_oldest() -> None:
    day = 23 * 3600.0
    for ago, after, is_missing in ((day, None, True), (day - 1, None, False), (day, "here", False)):
        reading = Reading(record={AT: number(NOW - ago)}, after=after)
        assert (_forgotten(reading, NOW) is not None) is is_missing
    assert _forgotten(Reading(), NOW) is None


def test_a_rate_fades_within_minutes() -> None:
    rate = Rate()
    rate.add(60, NOW)
    assert (rate.value, rate.at) == (1.0, NOW)
    rate.add(60, NOW + 60)
    assert rate.value == pytest.approx(1 + 0.3679, abs=1e-4)
    assert faded(1.0, -5) == 1.0, "never more, whatever clocks say"
    assert faded(1.0, 60) == pytest.approx(0.3679, abs=1e-4)


def test_numbers_as_they_are_stored() -> None:
    assert [number(value)["N"] for value in (0.0, 100.0, 1.5, 0.0004, 1.23456)] == ["0", "100", "1.5", "0", "1.235"]
    assert number_in(None, AT) is number_in({}, AT) is None
    assert number_in({AT: {"N": "1.5"}}, AT) == 1.5


def test_who_comes_second_does_not_move_the_position_back() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Customer(id="C1"))
        g.maintain(once=True)
        readings = [Reading(), Reading()]

        def step(reading: Reading) -> bool:
            return run(maintain_step(g._layout, reading, Tally(), clock=clock), g._store)

        def stored() -> Any:
            (response,) = g._store.execute((Get("adjoin", key_of(g._layout, POSITION)),))
            return response.item  # type: ignore[union-attr]

        for reading in readings:
            while step(reading):
                pass
        before = stored()
        g.put(Placed(source="C1", target="I1"))
        first, second = readings
        assert step(second) is True
        while step(first):
            pass
        after = stored()
        assert after["position"] != before["position"]
        assert float(after["changes"]["N"]) > float(before["changes"]["N"])
        # It read the same, and finds that somebody has stored it; so it begins again where that one was.
        is_begun = []
        while step(second):
            is_begun.append(second.is_begun)
        assert False in is_begun
        assert stored() == second.record == after
        check(g)


def position_in(g: Graph) -> str | None:
    (response,) = g._store.execute((Get("adjoin", key_of(g._layout, POSITION)),))
    item = response.item  # type: ignore[union-attr]
    return None if item is None else str(item[POSITION]["S"])


def test_where_some_changes_fail_the_position_is_that_of_the_last_one_applied() -> None:
    store = FaultyStore(SQLiteStore(":memory:"))
    with Graph(store, MODELS) as g:
        edges = [Placed(source="C1", target="I1"), Placed(source="C2", target="I2")]
        g.put_many([Customer(id="C1"), Customer(id="C2")])
        for edge in edges:
            g.put(edge)
        read: Any
        (read,) = store.execute((ReadChanges("adjoin", None),))
        last = [
            change.position for change in read.changes if change.key == g._layout.key_of(g._layout.items(edges[0])[0])
        ]

        def refuse(_: int, request: Request) -> None:
            # Whatever writes about the second edge; the position is a put of its own.
            if isinstance(request, TransactWrite | BatchWrite) and "PLACED#INVOICE#I2" in repr(request):
                raise Throttled("slow down")

        store.fault = refuse
        with pytest.raises(Throttled):
            run(maintain_step(g._layout, Reading(), Tally(), clock=clock), store)
        assert [position_in(g)] == last
        store.recover()
        g.maintain(once=True)
        check(g)


def test_a_step_that_stores_the_position_says_whether_there_may_be_more() -> None:
    with Graph(":memory:", MODELS) as g:
        reading = Reading()
        g.put(Customer(id="C1"))
        while run(maintain_step(g._layout, reading, Tally(), clock=clock), g._store):
            pass
        before = position_in(g)
        g.put(Placed(source="C1", target="I1"))
        more: list[bool] = []
        stored: list[str | None] = []
        while not more or more[-1]:
            more.append(run(maintain_step(g._layout, reading, Tally(), clock=clock), g._store))
            stored.append(position_in(g))
        # It applies what was written, sees what it wrote itself, and ends with the first step that finds nothing.
        assert more == [True, True, False]
        assert stored == [before, before, reading.after]


@pytest.mark.parametrize(("at", "lag"), [(NOW - 30, 30.0), (NOW, 0.0), (NOW + 30, 0.0)])
def test_a_step_tells_how_old_the_oldest_change_was_and_how_many_there_were(at: float, lag: float) -> None:
    with Graph(SQLiteStore(":memory:", clock=lambda: at), MODELS) as g:
        reading, tally = Reading(), Tally(changes=100)

        def step() -> bool:
            return run(maintain_step(g._layout, reading, tally, clock=clock), g._store)

        g.put(Customer(id="C1"))
        assert step()
        assert (reading.lag, reading.rate.value) == (lag, 1 / 60)
        while step():
            pass
        assert reading.lag == 0.0
        before, applied = tally.changes, reading.applied
        g.put(Placed(source="C1", target="I1"))
        assert step()
        assert reading.lag == lag
        assert reading.applied - applied == tally.changes - before == 1
        assert reading.rate.value == (tally.changes - 100) / 60


def test_who_ends_after_storing_early_stores_where_the_stream_ends() -> None:
    """The first position of a table is stored at once, before the end of the stream was seen."""
    with Graph(":memory:", MODELS) as g:
        g.put(Part(id="a"))
        reading = Reading()
        assert run(maintain_step(g._layout, reading, Tally(), clock=clock), g._store)
        early = position_in(g)
        assert early == reading.after
        while run(maintain_step(g._layout, reading, Tally(), clock=clock), g._store):
            pass
        run(leave(g._layout, reading, clock), g._store)
        assert position_in(g) == reading.after != early


class Counted(Node):
    id: str
    name: str = ""
    out: Annotated[int, Count("Counts")] = 0


class Counts(Edge[Counted, Counted]):
    pass


class Named(Node):
    id: str
    name: str = ""


class Names(Edge[Named, Named]):
    name: Annotated[str, Copy("source.name")] = ""


@pytest.mark.parametrize("models", [[Counted, Counts], [Named, Names]])
def test_a_lag_is_that_of_what_matters(models: list[Any]) -> None:
    """Counts or copies, whichever there are; what comes, changes and goes; and nothing of what is nobody's."""
    node, edge = models
    now = NOW
    with Graph(SQLiteStore(":memory:", clock=lambda: now), models) as g:
        g._clock = lambda: now
        changes: list[Any] = [
            lambda: g.put(node(id="a")),
            lambda: g.put(edge(source="a", target="b")),
            lambda: g.update(node, "a", name="x"),
            lambda: g.disconnect(edge, "a", "b"),
            lambda: g.delete(node, "a"),
        ]
        for change in changes:
            assert g.health().lag == 0.0
            change()
            now += 40
            assert g.health().lag == 40.0
            now -= 50
            assert g.health().lag == 0.0, "no change comes from the future"
            now += 60
            g.maintain(once=True)
        g._store.execute((Put("adjoin", {"PK": {"S": "somebody's"}, "SK": {"S": "own"}}),))
        now += 5
        assert g.health().lag == 0.0
        key = key_of(g._layout, POSITION)
        g._store.execute((Update("adjoin", key, (Set(attribute(POSITION), Value({"S": "nowhere"})),)),))
        assert g.health().lag is None


def reasons(*codes: str) -> TransactionCanceled:
    return TransactionCanceled("no", tuple(CancellationReason(code, "why") for code in codes))


@pytest.mark.parametrize(
    ("codes", "is_raised"),
    [
        (("ConditionalCheckFailed", "None"), False),
        (("None", "ThrottlingError"), True),
        (("ConditionalCheckFailed", "ThrottlingError"), True),
        (("None", "ValidationError"), True),
    ],
)
def test_only_another_who_moved_the_position_is_no_error(codes: tuple[str, ...], is_raised: bool) -> None:
    """Whoever begins again, after the stream was trimmed, must not take a busy table for another maintainer."""
    with Graph(":memory:", MODELS) as g:
        plan = begin_again(g._layout, None, "trimmed", 1000.0)
        next(plan)
        if is_raised:
            with pytest.raises(TransactionCanceled):
                plan.throw(reasons(*codes))
        else:
            with pytest.raises(StopIteration) as done:
                plan.throw(reasons(*codes))
            assert done.value.value is None


def test_beginning_again_keeps_the_rate_and_the_first_gap() -> None:
    with Graph(":memory:", MODELS) as g:
        record = {
            **key_of(g._layout, POSITION),
            AT: number(500.0),
            CHANGES: number(7),
            RATE: number(2),
            "seen": number(1),
        }
        g._store.execute((Put("adjoin", record),))
        begun = run(begin_again(g._layout, record, "trimmed", 1000.0), g._store)
        assert begun is not None
        assert (begun[AT], begun[CHANGES], begun[RATE]) == (number(1000.0), number(7), number(2))
        assert "seen" not in begun
        run(begin_again(g._layout, begun, "again", 2000.0), g._store)
        # Nobody has rebuilt since, so the gap began where the first position was.
        due = g.health().rebuild_due
        assert due is not None
        assert (due.since, due.at, due.reason) == (500.0, 2000.0, "again")
        # Somebody who knows an older position does not replace it.
        assert run(begin_again(g._layout, begun, "late", 3000.0), g._store) is None


@pytest.mark.parametrize(("read_at", "of"), [(None, 1000.0), (400.0, 400.0), (1600.0, 1000.0)])
def test_what_is_computed_anew_is_as_old_as_what_was_read(read_at: float | None, of: float) -> None:
    """An export may be older than the rebuild. If its clock is ahead, it still holds nothing after the beginning."""
    with Graph(":memory:", MODELS) as g:
        begun = run(begin(g._layout, 1000.0), g._store)
        run(end(g._layout, begun, REBUILT, read_at), g._store)
        assert run(last_looked_at(g._layout), g._store) == of
        run(end(g._layout, begun, VERIFIED, 700.0), g._store)
        assert run(last_looked_at(g._layout), g._store) == max(of, 700.0)
