"""A first aggregate on a table that was filled before: counted from its stream if that has everything, else due."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import Count, Edge, Graph, Node
from adjoin.stores.dynamodb.lifecycle import _has_all_changes
from adjoin.stores.sqlite import SQLiteStore

HOUR = 3600.0


def models(*, is_counted: bool) -> list[type[Any]]:
    class Invoice(Node):
        id: str

    if is_counted:

        class Customer(Node):
            id: str
            invoices: Annotated[int, Count("Placed")] = 0
    else:

        class Customer(Node):  # type: ignore[no-redef]
            id: str

    class Placed(Edge[Customer, Invoice]):
        pass

    return [Customer, Invoice, Placed]


class Clock:
    def __init__(self) -> None:
        self.now = time.time() - 48 * HOUR

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> Path:
    """A file with two edges, and nothing that is counted."""
    path = tmp_path / "shop.db"
    customer, _, placed = made = models(is_counted=False)
    with Graph(SQLiteStore(path, clock=clock), made) as g:
        g.put_many([customer(id="C1"), placed(source="C1", target="I1"), placed(source="C1", target="I2")])
    return path


def opened(path: Path, clock: Clock) -> tuple[Graph, list[type[Any]]]:
    made = models(is_counted=True)
    return Graph(SQLiteStore(path, clock=clock), made), made


def invoices(g: Graph, customer: type[Any], id: str) -> int:
    found: Any = g.get(customer, id)
    number: int = found.invoices
    return number


def trimmed(path: Path, clock: Clock) -> None:
    """Two days later the changes of that time are gone."""
    clock.now += 48 * HOUR
    customer, _, _ = made = models(is_counted=False)
    with Graph(SQLiteStore(path, clock=clock), made) as g:
        for number in range(100):
            g.put_many(customer(id=f"later{number}-{more}") for more in range(25))
            if next(iter(g.changes())).at > clock.now - HOUR:
                return
    pytest.fail("nothing was trimmed")


def test_a_stream_that_has_everything_is_enough(path: Path, clock: Clock) -> None:
    g, (customer, _, _) = opened(path, clock)
    with g:
        g.maintain(once=True)
        assert invoices(g, customer, "C1") == 2
        assert g.health().uncounted == ()


def test_what_is_older_than_the_stream_reads_as_not_yet_counted(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    trimmed(path, clock)
    g, (customer, _, placed) = opened(path, clock)
    with g:
        g.put(placed(source="C1", target="I3"))
        g.maintain(once=True)
        assert "run rebuild" in caplog.text
        assert invoices(g, customer, "C1") == 0, "1 would be a part of 3"
        assert g.health().uncounted == ("CUSTOMER.invoices",)
        g.put(customer(id="C2"))
        g.put(placed(source="C2", target="I1"))
        g.maintain(once=True)
    caplog.clear()
    again, (customer, _, placed) = opened(path, clock)
    with again:
        assert "not yet counted" in caplog.text
        again.rebuild()
        assert invoices(again, customer, "C1") == 3
        assert invoices(again, customer, "C2") == 1
        assert again.health().uncounted == ()
        again.put(placed(source="C1", target="I4"))
        again.maintain(once=True)
        assert invoices(again, customer, "C1") == 4


def test_a_first_rebuild_that_stops_leaves_it_not_yet_counted(path: Path, clock: Clock) -> None:
    trimmed(path, clock)
    g, (customer, _, placed) = opened(path, clock)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with g:
        with pytest.raises(KeyboardInterrupt):
            g.rebuild(progress=stop)
        g.put(placed(source="C1", target="I3"))
        g.maintain(once=True)
        assert invoices(g, customer, "C1") == 0
        assert g.health().uncounted == ("CUSTOMER.invoices",)
        g.rebuild()
        assert invoices(g, customer, "C1") == 3


@pytest.mark.parametrize("is_for_all", [True, False], ids=["one for all tenants", "its own"])
def test_a_new_tenant_of_an_old_table_is_counted_at_once(path: Path, clock: Clock, is_for_all: bool) -> None:
    trimmed(path, clock)
    g, (customer, _, placed) = opened(path, clock)
    with g:
        acme = g.for_tenant("acme")
        acme.put_many([customer(id="C1"), placed(source="C1", target="I1")])
        (g if is_for_all else acme).maintain(once=True)
        assert invoices(acme, customer, "C1") == 1
        assert acme.health().uncounted == ()


# --- what a table of DynamoDB tells ------------------------------------------------------------


def described(*, hours: float, stream: float | None, items: int) -> dict[str, Any]:
    now = time.time()
    label = None if stream is None else dt.datetime.fromtimestamp(now - stream * HOUR, dt.UTC).isoformat()[:23]
    return {"CreationDateTime": now - hours * HOUR, "LatestStreamLabel": label, "ItemCount": items}


@pytest.mark.parametrize(
    ("hours", "stream", "items", "has_all"),
    [
        (1, 1, 0, True),
        (20, 20, 5, True),
        (20, 1, 5, False),
        (20, None, 5, False),
        (30, 30, 5, False),
        (30, 30, 0, True),
        (30, 1, 0, False),
        (30, 10, 0, True),
    ],
)
def test_a_table_of_the_service(hours: float, stream: float | None, items: int, has_all: bool) -> None:
    assert _has_all_changes(described(hours=hours, stream=stream, items=items)) is has_all
