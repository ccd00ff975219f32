"""What happens when nobody maintains a graph for longer than the stream keeps changes, and when nothing happens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, ChangesTrimmed, Copy, Count, Edge, Graph, Node, Sum
from adjoin.batch.exports import write_export
from adjoin.plans.maintenance.report import MaintenanceReport
from adjoin.plans.maintenance.standing import DUE, REBUILT, begin, end, key_of
from adjoin.requests import Get, Put, UpdateTable
from adjoin.stores.sqlite import SQLiteStore
from adjoin.units import CHANGES_KEPT
from tests.maintenance.simulation import stored
from tests.maintenance.streamed import Passing, Streamed
from tests.stores.dynamodb.streams.readers import open_readers
from tests.stores.dynamodb.streams.service import HOUR, MINUTE, Clock
from tests.stores.dynamodb.streams.world import World

LAYOUT = AdjacencyList()


class Customer(Node):
    id: str
    name: str = ""
    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal = Decimal(0)
    customer: Annotated[str, Copy("source.name")] = ""


MODELS: list[Any] = [Customer, Invoice, Placed]


class Other(Node):
    id: str


def assert_true(g: Graph) -> None:
    customer, edges = g.get(Customer, "C1"), list(g.out("C1", Placed))
    assert customer is not None
    assert (customer.invoices, customer.owed) == (len(edges), sum(edge.balance for edge in edges))
    assert {edge.customer for edge in edges} == {customer.name}


class Place:
    """A store on a clock that stands until it is moved."""

    def __init__(self, kind: str) -> None:
        self.clock = Clock()
        self._readers: Any = None
        if kind == "dynamodb":
            self._readers = open_readers()
            self.store: Any = Streamed(World(self._readers.__enter__(), self.clock))
        else:
            self.store = SQLiteStore(":memory:", clock=self.clock)
        self.wait = Passing(self.clock, self.store)

    def open(self) -> Graph:
        """A graph as another process has it, which remembers nothing."""
        if isinstance(self.store, Streamed):
            self.store.world.reader = self.store.world.another_reader()
        graph = Graph(self.store, MODELS, LAYOUT)
        graph._clock = self.clock
        return graph

    def trim(self) -> None:
        """Writes elsewhere, so that a file forgets what is old; no change of the table itself."""
        Graph(self.store, [Other], AdjacencyList(table="other")).put(Other(id=str(self.clock())))

    def close(self) -> None:
        self.store.close()
        if self._readers is not None:
            self._readers.__exit__(None, None, None)


@pytest.fixture(params=["embedded", "dynamodb"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(request.param)
    yield made
    made.close()


def invoices(g: Graph, id: str = "C1") -> int:
    found = g.get(Customer, id)
    assert found is not None
    return found.invoices


def begin_shop(g: Graph) -> None:
    g.put_many([Customer(id="C1", name="Ann"), Invoice(id="I1"), Placed(source="C1", target="I1", balance=Decimal(3))])
    g.maintain(once=True)
    assert invoices(g) == 1


def outage(place: Place) -> float:
    """A day and a half without a maintainer, in which much is written; answers when it began."""
    began = place.clock()
    place.wait(2 * HOUR)
    g = place.open()
    g.put(Placed(source="C1", target="I2", balance=Decimal(4)))
    g.update(Customer, "C1", name=f"Bea {place.clock():.0f}")
    g.disconnect(Placed, "C1", "I1")
    # A file keeps the last change, however old it is.
    g.put(Customer(id=f"last {place.clock():.0f}"))
    place.wait(34 * HOUR)
    g.put(Placed(source="C1", target="I3", balance=Decimal(5)))
    return began


def test_it_goes_on_and_says_that_a_rebuild_is_due(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    begin_shop(place.open())
    began = outage(place)
    g = place.open()
    with caplog.at_level(logging.WARNING, "adjoin.maintain"):
        report = g.maintain(once=True)
    assert report.rebuild_due is not None
    assert "no longer holds the changes after" in report.rebuild_due
    assert "a rebuild is due, and changes are applied from the oldest one in the stream" in caplog.text
    # What there is was applied: the third invoice, and the customer's own changes by that.
    assert invoices(g) == 2
    due = g.health().rebuild_due
    assert due is not None
    assert (round(due.since - began), round(place.clock() - due.at)) == (0, 0)
    assert due.reason == report.rebuild_due
    # It is recorded once, and everybody goes on.
    for _ in range(2):
        place.wait(HOUR)
        assert place.open().maintain(once=True).rebuild_due is None
        assert g.health().rebuild_due == due


def test_a_rebuild_puts_it_right(place: Place) -> None:
    begin_shop(place.open())
    outage(place)
    g = place.open()
    g.maintain(once=True)
    if not isinstance(place.store, Streamed):
        assert g.rebuild(dry_run=True).differ > 0
        assert g.rebuild(only=["CUSTOMER.owed"]).written > 0
        assert g.health().rebuild_due is not None, "not all of it was rebuilt"
    began = place.clock()
    g.rebuild()
    health = g.health()
    assert (health.rebuild_due, health.rebuilt_at) == (None, began)
    g.maintain(once=True)
    assert_true(g)
    edge = g.edge(Placed, "C1", "I2")
    assert edge is not None
    assert edge.customer.startswith("Bea"), "copies were missed as well"
    place.wait(HOUR)
    assert place.open().maintain(once=True).rebuild_due is None
    assert g.health().rebuild_due is None


def test_a_rebuild_before_the_maintainer_is_started_again(place: Place) -> None:
    """What came after it began is in the stream, if that is not another one."""
    begin_shop(place.open())
    outage(place)
    g = place.open()
    g.rebuild()
    g.verify(repair=["copy"])
    place.wait(CHANGES_KEPT - MINUTE)
    g.put(Placed(source="C1", target="I4", balance=Decimal(6)))
    assert g.maintain(once=True).rebuild_due is None
    assert g.health().rebuild_due is None
    assert_true(g)
    outage(place)
    assert place.open().maintain(once=True).rebuild_due is not None, "the rebuild was too long ago"


def test_a_rebuild_that_is_just_too_old(place: Place) -> None:
    """The stream may have lost what came right after it."""
    begin_shop(place.open())
    outage(place)
    place.open().rebuild()
    place.wait(CHANGES_KEPT)
    assert place.open().maintain(once=True).rebuild_due is not None


def test_a_rebuild_does_not_help_where_the_stream_is_another(place: Place) -> None:
    """Something may have been written while there was none."""
    g = place.open()
    begin_shop(g)
    g.rebuild()
    if isinstance(place.store, Streamed):
        place.store.service.enable()
    else:
        place.store.execute((UpdateTable("adjoin", stream="off"),))
        place.store.execute((UpdateTable("adjoin", stream="NEW_AND_OLD_IMAGES"),))
    g.put(Placed(source="C1", target="I2"))
    g = place.open()
    assert g.maintain(once=True).rebuild_due is not None
    assert invoices(g) == 2


def test_an_audit_that_repairs_puts_it_right(place: Place) -> None:
    begin_shop(place.open())
    outage(place)
    g = place.open()
    g.maintain(once=True)
    if not isinstance(place.store, Streamed):
        assert not g.verify()
        assert g.health().rebuild_due is not None, "nothing was repaired"
        g.verify(repair=["aggregate"])
        assert g.health().rebuild_due is not None, "not all of it was repaired"
    began = place.clock()
    g.verify(repair=True)
    health = g.health()
    assert (health.rebuild_due, health.verified_at, health.rebuilt_at) == (None, began, None)
    g.maintain(once=True)
    assert_true(g)


def test_an_export_from_before_puts_nothing_right(tmp_path: Any) -> None:
    place = Place("embedded")
    begin_shop(place.open())
    outage(place)
    g = place.open()
    with place.store.dump("adjoin") as pieces:
        write_export(pieces, tmp_path, "adjoin")
    place.clock.now = 4e9  # after any export that is made now
    g.maintain(once=True)
    g.rebuild(tmp_path)
    assert g.health().rebuild_due is not None
    g._store.execute((Put("adjoin", {**item_of(g, DUE), "at": {"N": "5"}}),))
    g.rebuild(tmp_path)
    assert g.health().rebuild_due is None
    place.close()


def item_of(g: Graph, name: str) -> dict[str, Any]:
    response: Any
    (response,) = g._store.execute((Get("adjoin", key_of(g._layout, name)),))
    assert response.item is not None
    return dict(response.item)


def test_what_is_missed_during_a_rebuild_stays_due(place: Place) -> None:
    begin_shop(place.open())
    outage(place)
    g = place.open()
    before = g._run(begin(g._layout, place.clock()))
    g.maintain(once=True)
    g._run(end(g._layout, before, REBUILT))
    assert g.health().rebuild_due is not None
    meanwhile = g._run(begin(g._layout, place.clock()))
    outage(place)
    place.open().maintain(once=True)
    g._run(end(g._layout, meanwhile, REBUILT))
    due = g.health().rebuild_due
    assert due is not None
    assert due.since < due.at - 3 * 24 * HOUR + HOUR, "what was missed first is still missing"


# --- nothing happens ---------------------------------------------------------------------------


def test_a_quiet_file_is_no_reason() -> None:
    """All that was written since is what the maintainer wrote itself."""
    place = Place("embedded")
    begin_shop(place.open())
    for hours in (30, 300):
        place.wait(hours * HOUR)
        place.trim()
        g = place.open()
        assert g.maintain(once=True).rebuild_due is None
        assert g.health().rebuild_due is None
    g.put(Placed(source="C1", target="I2"))
    assert g.maintain(once=True).rebuild_due is None
    assert invoices(g) == 2
    place.close()


def test_nobody_knows_what_a_stream_of_the_service_held() -> None:
    """The shards are gone with whatever was in them: it goes on, and an audit that finds nothing reconciles it."""
    place = Place("dynamodb")
    begin_shop(place.open())
    place.wait(40 * HOUR)
    g = place.open()
    with pytest.raises(ChangesTrimmed):
        list(g.changes(item_of(g, "position")["position"]["S"]))
    assert g.maintain(once=True).rebuild_due is not None
    assert g.verify(repair=True)
    assert g.health().rebuild_due is None
    for _ in range(3):
        place.wait(10 * HOUR)
        g = place.open()
        assert g.maintain(once=True).rebuild_due is None
        assert g.health().rebuild_due is None
    place.close()


class Night:
    """Stops a maintainer after some time, which passes while it waits."""

    def __init__(self, place: Place, seconds: float, act: Callable[[], None] = lambda: None) -> None:
        self._place, self._end, self._act = place, place.clock() + seconds, act
        self.waits: list[float] = []

    def is_set(self) -> bool:
        return self._place.clock() >= self._end

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self._place.wait(timeout)
        self._act()
        return self.is_set()


@pytest.mark.parametrize("every", [HOUR, 10 * HOUR])
def test_a_quiet_table_is_no_reason_while_a_maintainer_runs(place: Place, every: float) -> None:
    g = place.open()
    begin_shop(g)
    g.maintain(every=every, stop=Night(place, every * 70, place.trim))
    assert place.clock() - item_at(g) <= every + MINUTE
    place.wait(12 * HOUR)
    g = place.open()
    g.put(Placed(source="C1", target="I2"))
    report: MaintenanceReport = g.maintain(once=True)
    assert report.rebuild_due is None
    assert g.health().rebuild_due is None
    assert invoices(g) == 2


def item_at(g: Graph) -> float:
    return float(item_of(g, "position")["at"]["N"])


def test_a_schedule_is_enough_on_a_quiet_table(place: Place) -> None:
    begin_shop(place.open())
    for _ in range(10):
        place.wait(CHANGES_KEPT - MINUTE)
        place.trim()
        assert place.open().maintain(once=True).rebuild_due is None
    g = place.open()
    assert g.health().rebuild_due is None
    g.put(Placed(source="C1", target="I2"))
    g.maintain(once=True)
    assert invoices(g) == 2


# --- positions that mean nothing ---------------------------------------------------------------


@pytest.mark.parametrize("position", ["what is this?", "2024-01-01/shard=5", "0000009900000000000001"])
def test_a_position_of_another_store(place: Place, position: str) -> None:
    """As a copy of a table brings it along."""
    g = place.open()
    begin_shop(g)
    g._store.execute((Put("adjoin", item_of(g, "position") | {"position": {"S": position}}),))
    g.put(Placed(source="C1", target="I2"))
    g = place.open()
    assert g.maintain(once=True).rebuild_due is not None
    assert invoices(g) == 2
    assert place.open().maintain(once=True).rebuild_due is None


def test_a_position_as_it_was_stored_before(place: Place) -> None:
    g = place.open()
    begin_shop(g)
    record = item_of(g, "position")
    older = {name: record[name] for name in ("PK", "SK", "position", "adjoin:revision")}
    g._store.execute((Put("adjoin", older | {"at": {"N": str(int(place.clock()))}}),))
    g.put(Placed(source="C1", target="I2"))
    assert place.open().maintain(once=True).rebuild_due is None
    assert invoices(g) == 2
    assert g.health().changes > 0


def test_two_that_find_it_at_once(place: Place) -> None:
    """One of them records it, and the other goes on from there."""
    begin_shop(place.open())
    outage(place)
    one, other = place.open(), place.open()
    daemons = [g._daemon(once=True, every=1.0) for g in (one, other)]
    steps = [daemon.step(one._layout) for daemon in daemons]
    requests = [next(step) for step in steps]
    done = [False, False]
    turn = 0
    while not all(done):
        turn = 1 - turn if not done[1 - turn] else turn
        try:
            try:
                responses = place.store.execute(requests[turn])
            except Exception as error:
                requests[turn] = steps[turn].throw(error)
            else:
                requests[turn] = steps[turn].send(responses)
        except StopIteration as stop:
            if stop.value is None:
                done[turn] = True
            else:
                steps[turn] = daemons[turn].step(one._layout)
                requests[turn] = next(steps[turn])
    assert sum(daemon.report().rebuild_due is not None for daemon in daemons) == 1
    assert one.health().rebuild_due is not None
    assert invoices(one) == 2


def test_no_stream_at_all_is_raised(place: Place) -> None:
    """Nothing is due for that, and nothing is written."""
    with Graph(":memory:", MODELS, AdjacencyList(stream=False)) as g:
        g._store.execute((Put("adjoin", {**key_of(g._layout, "position"), "position": {"S": "5"}, "at": {"N": "1"}}),))
        before = stored(g)
        with pytest.raises(Exception, match="keeps no changes"):
            g.maintain(once=True)
        assert stored(g) == before
