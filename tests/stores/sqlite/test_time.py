"""What the embedded store does by the clock: expiry and the trimming of changes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path as FilePath

import apsw
import pytest

from adjoin.errors import ChangesTrimmed, InvalidRequest
from adjoin.expressions import Add, attribute
from adjoin.requests import (
    BatchWrite,
    ChangesResponse,
    CreateTable,
    DescribeTable,
    Put,
    ReadChanges,
    Scan,
    SetTimeToLive,
    TableResponse,
    TransactWrite,
    Update,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.catalogue import find_table
from adjoin.stores.sqlite.upkeep import trim
from adjoin.values import AttributeValue
from tests.stores.conftest import Clock
from tests.stores.examples import PLAIN, all_changes, everything, item, key, n, one, page, put, s, stored

EXPIRING = replace(PLAIN, name="Expiring", ttl="until")
YEAR = 365 * 86400


def read(store: SQLiteStore, after: str | None = None, table: str = "Plain") -> ChangesResponse:
    return one(store, ReadChanges(table, after), ChangesResponse)


def batch_of(name: str) -> BatchWrite:
    return BatchWrite(tuple(Put("Plain", item("A", f"{name}.{number}")) for number in range(25)))


def test_expired_items_go_through_the_change_stream(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(EXPIRING)])
    mortal = item("A", "1", until=n(int(clock.now) + 10))
    put(embedded, "Expiring", mortal, item("A", "2"))
    clock.now += 10
    assert embedded.sweep() == 0
    clock.now += 1
    assert stored(embedded, "Expiring", key("A", "1")) == mortal, "until it is swept, it can be read"
    assert embedded.sweep() == 1
    assert everything(embedded, "Expiring") == [item("A", "2")]
    change = read(embedded, table="Expiring").changes[-1]
    assert (change.old, change.new, change.expired, change.at) == (mortal, None, True, clock.now)
    assert embedded.sweep() == 0


@pytest.mark.parametrize(
    ("until", "goes"),
    [
        (n(1_699_999_999), True),
        (n("1699999999.9"), True),
        (n(1_700_000_001), False),
        (n(1_700_000_000 - 5 * YEAR + 10), True),
        (n(1_700_000_000 - 5 * YEAR - 10), False),
        (n(-5), False),
        (n("1e100"), False),
        (s("1699999999"), False),
        ({"NULL": True}, False),
    ],
)
def test_what_expires(embedded: SQLiteStore, until: AttributeValue, goes: bool) -> None:
    embedded.execute([CreateTable(EXPIRING)])
    put(embedded, "Expiring", item("A", "1", until=until))
    assert embedded.sweep() == int(goes)


def test_an_update_can_save_an_item(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(EXPIRING)])
    put(embedded, "Expiring", item("A", "1", until=n(int(clock.now) + 10)))
    put(embedded, "Expiring", item("A", "1"))
    clock.now += 100
    assert embedded.sweep() == 0


def test_writes_sweep_by_and_by(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(EXPIRING)])
    put(embedded, "Expiring", item("A", "1", until=n(int(clock.now) + 1)))
    clock.now += 10
    put(embedded, "Expiring", item("B", "1"))
    assert everything(embedded, "Expiring") == [item("B", "1")]


def test_opening_sweeps(tmp_path: FilePath, clock: Clock) -> None:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path, clock=clock)
    store.execute([CreateTable(EXPIRING)])
    put(store, "Expiring", *(item("A", str(each), until=n(int(clock.now) + 1)) for each in range(1500)))
    store.close()
    clock.now += 10
    store = SQLiteStore(path, clock=clock)
    assert page(store, Scan("Expiring", count_only=True)).count == 500, "a step at a time"
    assert store.sweep() == 500
    store.close()


def test_a_change_has_its_time_and_its_place(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN)])
    put(embedded, "Plain", item("A", "1"))
    clock.now += 1
    put(embedded, "Plain", item("A", "2"), item("A", "3"))
    changes = read(embedded).changes
    assert [change.at for change in changes] == [clock.now - 1, clock.now, clock.now]
    positions = [change.position for change in changes]
    assert positions == sorted(set(positions)), "positions compare as text"
    assert read(embedded, "0") == read(embedded)


def test_a_token_lasts_ten_minutes(embedded: SQLiteStore, clock: Clock) -> None:
    def increment(by: int) -> TransactWrite:
        return TransactWrite((Update("Plain", key("A", "1"), (Add(attribute("a"), n(by)),)),), "t")

    embedded.execute([CreateTable(PLAIN)])
    embedded.execute([increment(1)])
    clock.now += 599
    embedded.execute([increment(1)])
    clock.now += 1
    embedded.execute([increment(5)])
    assert stored(embedded, "Plain", key("A", "1")) == item("A", "1", a=n(6))


def test_changes_are_kept_for_a_day(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN)])
    put(embedded, "Plain", item("A", "1"), item("A", "2"))
    old = read(embedded)
    clock.now += 86_000
    put(embedded, "Plain", item("A", "3"))
    assert len(read(embedded).changes) == 3
    clock.now += 1_000
    put(embedded, "Plain", item("A", "4"))
    assert all_changes(read(embedded)) == [(None, item("A", "3")), (None, item("A", "4"))]
    assert all_changes(read(embedded, old.next)) == [(None, item("A", "3")), (None, item("A", "4"))]
    with pytest.raises(ChangesTrimmed, match=f"no longer holds the changes after {old.changes[0].position}"):
        read(embedded, old.changes[0].position)


def test_the_newest_change_is_never_trimmed(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN), CreateTable(replace(PLAIN, name="Other"))])
    put(embedded, "Plain", item("A", "1"), item("A", "2"))
    last = read(embedded).next
    clock.now += 1_000_000
    put(embedded, "Other", item("A", "1"))
    assert all_changes(read(embedded)) == [(None, item("A", "2"))]
    put(embedded, "Plain", item("A", "3"))
    assert all_changes(read(embedded, last)) == [(None, item("A", "3"))]


def test_trimming_leaves_no_gap_when_the_clock_jumps(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN)])
    put(embedded, "Plain", item("A", "1"))
    clock.now -= 200_000
    put(embedded, "Plain", item("A", "2"))
    clock.now += 200_010
    put(embedded, "Plain", item("A", "3"))
    assert len(read(embedded).changes) == 3


def test_trimming_keeps_up_with_writing(tmp_path: FilePath, clock: Clock) -> None:
    store = SQLiteStore(tmp_path / "graph.db", durability="process", clock=clock, keep_changes=1)
    store.execute([CreateTable(PLAIN)])
    for each in range(3_000):
        put(store, "Plain", item("A", str(each)))
        clock.now += 0.01
    assert len(read(store).changes) < 1000
    store.close()


def test_trimming_keeps_up_with_writing_in_batches(tmp_path: FilePath, clock: Clock) -> None:
    with closing(SQLiteStore(tmp_path / "graph.db", durability="process", clock=clock, keep_changes=1)) as store:
        store.execute([CreateTable(PLAIN)])
        for batch in range(200):
            store.execute([batch_of(f"{batch}.{each}") for each in range(4)])
            clock.now += 0.1
        oldest = read(store).changes[0]
        assert oldest.at > clock.now - 3


def test_trimming_costs_what_it_removes_however_many_changes_there_are(tmp_path: FilePath, clock: Clock) -> None:
    def steps(name: str, batches: int) -> int:
        with closing(SQLiteStore(tmp_path / name, durability="process", clock=clock)) as store:
            store.execute([CreateTable(PLAIN)])
            for batch in range(batches):
                store.execute([batch_of(str(batch))])
        connection = apsw.Connection(str(tmp_path / name))
        taken = 0

        def count() -> bool:
            nonlocal taken
            taken += 1
            return False

        connection.set_progress_handler(count, 1)
        table = find_table(connection, "Plain")
        assert table is not None
        taken = 0
        trim(connection.cursor(), table, clock.now + 1, 100)
        connection.close()
        return taken

    assert steps("short.db", 8) == steps("long.db", 80)


def test_items_can_be_made_to_expire_later(embedded: SQLiteStore, clock: Clock) -> None:
    embedded.execute([CreateTable(PLAIN)])
    put(embedded, "Plain", item("A", "old", until=n(int(clock.now) + 5)), item("A", "kept"))
    response = one(embedded, SetTimeToLive("Plain", "until"), TableResponse)
    assert response.definition == replace(PLAIN, ttl="until")
    assert one(embedded, DescribeTable("Plain"), TableResponse).definition.ttl == "until"
    put(embedded, "Plain", item("A", "new", until=n(int(clock.now) + 5)))
    clock.now += 10
    assert embedded.sweep() == 2
    assert everything(embedded, "Plain") == [item("A", "kept")]
    with pytest.raises(InvalidRequest, match="already expire by 'until'"):
        embedded.execute([SetTimeToLive("Plain", "till")])


def test_a_store_that_was_open_before_lets_items_expire_too(tmp_path: FilePath, clock: Clock) -> None:
    path = tmp_path / "graph.db"
    first, second = SQLiteStore(path, "process", clock), SQLiteStore(path, "process", clock)
    first.execute([CreateTable(PLAIN)])
    put(second, "Plain", item("A", "1"))
    first.execute([SetTimeToLive("Plain", "until")])
    put(second, "Plain", item("A", "2", until=n(int(clock.now) + 5)))
    clock.now += 10
    assert first.sweep() == 1
    first.close()
    second.close()
