"""The steps of a run of maintenance, one by one: which positions it stores, how long it waits, and what it tells."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, InvalidRequest, InvalidValue, Max, Node, Throttled
from adjoin.layouts.interface import GENERATION
from adjoin.plans.counting.edge_state import aside_key
from adjoin.plans.counting.ledger import named_in, ref_to
from adjoin.plans.maintenance import stream
from adjoin.plans.maintenance.report import Tally, remove_left
from adjoin.plans.maintenance.standing import POSITION, key_of
from adjoin.plans.maintenance.stream import Daemon, Reading, leave, maintain_step
from adjoin.plans.steps.batches import place_of
from adjoin.requests import BatchGet, Get, Put, Query, ReadChanges, Request, Update
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.faults import FaultyStore
from tests.maintenance.models import PARTS, Part, Uses
from tests.maintenance.simulation import stored


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(SQLiteStore(":memory:"))


@pytest.fixture
def g(store: FaultyStore) -> Iterator[Graph]:
    with Graph(store, PARTS) as graph:
        yield graph


def positions(g: Graph, store: FaultyStore, plan: Any) -> int:
    """How often a plan stores the position."""
    own, stored = key_of(g._layout, POSITION), 0

    def note(_: int, request: Request) -> None:
        nonlocal stored
        stored += isinstance(request, Put) and own.items() <= request.item.items()

    store.fault = note
    run(plan, store)
    store.recover()
    return stored


def test_a_run_that_ends_stores_a_position_that_is_not_the_last_one_again(g: Graph, store: FaultyStore) -> None:
    """One that was stored before the end of the stream was seen may be trimmed earlier than the last one."""
    g.put_many([Part(id="a"), Part(id="b"), Uses(source="a", target="b")])
    reading = Reading()
    assert positions(g, store, maintain_step(g._layout, reading, Tally())) == 1
    assert positions(g, store, leave(g._layout, reading)) == 1
    assert positions(g, store, leave(g._layout, Reading())) == 0, "nothing was begun"


def test_a_run_that_has_seen_the_end_of_the_stream_stores_nothing_when_it_ends(g: Graph, store: FaultyStore) -> None:
    g.maintain(once=True)
    g.put_many([Part(id="a"), Part(id="b"), Uses(source="a", target="b")])
    reading, stored = Reading(), list[int]()
    while not stored or reading.pending_since is not None:
        stored.append(positions(g, store, maintain_step(g._layout, reading, Tally())))
    assert (sum(stored), stored[-1]) == (1, 1)
    assert positions(g, store, leave(g._layout, reading)) == 0


def test_of_changes_that_were_applied_in_part_the_position_is_that_of_the_last_one(
    g: Graph, store: FaultyStore
) -> None:
    """A change can neither be applied nor recorded. It comes again, with all that follow it, and none is lost."""
    g.put_many(Part(id=id) for id in "abcd")
    (response,) = store.execute((ReadChanges("adjoin", None),))
    changes = response.changes  # type: ignore[union-attr]
    place = next(number for number, each in enumerate(changes) if each.key["PK"]["S"] == "PART#c")

    def refuse(_: int, request: Request) -> None:
        if isinstance(request, Update) and request.key == changes[place].key:
            raise InvalidRequest("the store does not take it")
        if isinstance(request, Put) and "reason" in request.item:
            raise Throttled("slow down")

    store.fault = refuse
    with pytest.raises(Throttled):
        run(maintain_step(g._layout, Reading(), Tally()), store)
    store.recover()
    (record,) = (item for item in stored(g) if POSITION in item)
    assert record[POSITION] == {"S": changes[place - 1].position}
    g.maintain(once=True)
    assert len([item for item in stored(g) if GENERATION in item]) == 4


@pytest.mark.parametrize("every", [0, -1, -0.5, float("nan"), float("inf"), 86_401, True, "1", None])
def test_a_run_waits_for_a_time_that_is_one(every: Any) -> None:
    with pytest.raises(InvalidValue, match="every must be a number of seconds above 0 and at most a day"):
        Daemon(every=every)


@pytest.mark.parametrize("every", [0.001, 1, 86_400])
def test_a_run_may_wait_for_a_day(every: float) -> None:
    Daemon(every=every)


def test_pauses_begin_anew_after_a_step_that_succeeded(g: Graph, store: FaultyStore) -> None:
    daemon = Daemon(clock=Clock(), chance=lambda: 1.0)

    def fail(_: int, request: Request) -> None:
        if isinstance(request, ReadChanges):
            raise Throttled("slow down")

    waits: list[float | None] = []
    for is_failing in (True, True, True, False, True, True):
        g.put(Part(id="a"))
        store.fault = fail if is_failing else lambda _number, _request: None
        waits.append(run(daemon.step(g._layout), store))
    assert waits == [1.0, 2.0, 4.0, 0.0, 1.0, 2.0]
    assert daemon.report().retries == 5


def test_a_line_is_written_once_a_minute(g: Graph, store: FaultyStore, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    daemon = Daemon(clock=clock)
    with caplog.at_level(logging.INFO, "adjoin.maintain"):
        steps = ((0.0, 0), (59.9, 0), (0.1, 1), (59.9, 1), (0.2, 2), (-5.0, 3))
        for number, (seconds, lines) in enumerate(steps):
            clock.now += seconds
            g.put(Part(id=f"a{number}"))
            run(daemon.step(g._layout), store)
            told = [record for record in caplog.records if "changes in" in record.getMessage()]
            assert len(told) == lines, seconds


@pytest.mark.parametrize(("steps", "left"), [(1, " s behind"), (20, "; nothing is left")])
def test_a_run_that_is_stopped_tells_what_is_left(
    g: Graph,
    store: FaultyStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
    left: str,
) -> None:
    monkeypatch.setattr(stream, "TOGETHER", 1000)
    g.put_many(Part(id=f"a{number}") for number in range(1001))
    daemon = Daemon()
    with caplog.at_level(logging.INFO, "adjoin.maintain"):
        for _ in range(steps):
            if run(daemon.step(g._layout), store):
                break
        run(daemon.leave(g._layout), store)
    (told,) = [record.getMessage() for record in caplog.records if "changes in" in record.getMessage()]
    assert told.endswith(left), told


# --- records -----------------------------------------------------------------------------------


def records(g: Graph) -> list[Item]:
    return [item for item in stored(g) if item["PK"]["S"] == "#=ASIDE"]


def test_records_are_looked_at_as_they_are_now(g: Graph, store: FaultyStore) -> None:
    """Of an edge that is set aside the record stays, and of one that is not it goes; and no read may be an old one."""
    g.put_many([Part(id=id) for id in "abc"])
    g.put_many([Uses(source="a", target="b"), Uses(source="b", target="a")])
    g.maintain(once=True)
    layout, before = g._layout, records(g)
    (group,) = layout.rules.groups
    refs = [
        ref_to(layout, group, layout.items(Uses(source=source, target=target))[0]) for source, target in ("ab", "ba")
    ]
    # Another process did not come so far as to remove the record of the edge that is applied.
    left = [ref for ref in refs if place_of(ref.key) not in {place_of(item["edge"]["M"]) for item in before}]
    for ref in left:
        g._store.execute((Put("adjoin", aside_key(layout, "PART.total", ref) | named_in(ref)),))
    assert len(records(g)) == len(before) + 1
    asked: list[Request] = []
    store.fault = lambda _, request: asked.append(request)
    run(remove_left(g._layout, group), store)
    gets: list[Get] = [get for each in asked if isinstance(each, BatchGet) for get in each.gets]
    gets += [each for each in asked if isinstance(each, Get)]
    queries = [each for each in asked if isinstance(each, Query)]
    assert (len(gets), len(queries)) == (5, 3)
    assert all(get.consistent for get in gets)
    assert all(query.consistent for query in queries)
    assert sorted(map(repr, records(g))) == sorted(map(repr, before))


# --- what is logged when a graph opens ---------------------------------------------------------


def declaring(aggregate: Any) -> list[type[Any]]:
    class Shelf(Node):
        id: str
        held: Annotated[int | None, aggregate] = None

    class Book(Node):
        id: str

    class Holds(Edge[Shelf, Book]):
        pages: int = 0

    return [Shelf, Book, Holds]


def test_a_graph_says_when_it_opens_which_aggregates_are_not_yet_counted(
    store: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    models = declaring(Count("Holds"))
    with Graph(store.inner, models) as before:
        before.put(models[2](source="s", target="b"))
        before.maintain(once=True)
        opened: list[list[str]] = []
        for aggregate in (Count("Holds"), Max("Holds", field="pages")):
            caplog.clear()
            with caplog.at_level(logging.WARNING, "adjoin.maintain"):
                other = Graph(store.inner, declaring(aggregate))
                other.maintain(once=True)
                caplog.clear()
                Graph(store.inner, declaring(aggregate)).maintain(once=True)
            opened.append([record.getMessage() for record in caplog.records])
    assert opened == [
        [],
        [
            "some aggregates are not yet counted as they are declared now, and read as their defaults: SHELF.held; "
            "run rebuild"
        ],
    ]
