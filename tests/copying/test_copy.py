"""A copy is exact: whatever it copies, wherever it is interrupted, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Annotated

import orjson
import pytest

from adjoin import AdjacencyList, AlreadyExists, Graph, Indexed, MaterializedGraph, Node, Unique, field
from adjoin.copying import Copied, Progress, copy, transfer, verify
from adjoin.copying.steps import apply_changes
from adjoin.plans.steps.batches import by_size
from adjoin.requests import BatchWrite, Delete, ItemChange, Put, Request, Scan
from adjoin.sharding.heat import Heat
from adjoin.sharding.maps import ShardMap
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import Throughput
from adjoin.units import MAX_BATCH_SIZE, MB
from adjoin.values import AttributeValue, encode
from tests.copying.examples import FULL, KINDS, assert_same, copied_by, filled, many
from tests.copying.recording import Recording, state_file
from tests.copying.saving_copy import HALT_AFTER
from tests.faults import FaultyStore, Interrupted
from tests.shares import stride
from tests.stores.examples import PLAIN, SINGLE, item, key, keyed_by, n, put, s
from tests.waiting import until

# --- what is copied ----------------------------------------------------------------------------


def test_every_kind_of_item_and_the_definition(source: FaultyStore, destination: FaultyStore) -> None:
    filled(source, FULL, [item("p", kind, **attributes) for kind, attributes in KINDS.items()])
    copied = copy(source, destination, "Full")
    assert_same(source, destination, "Full")
    assert (copied.items, copied.changes) == (len(KINDS), 0)
    assert copied.read > 0
    assert copied.write > len(KINDS)
    assert verify(source, destination, "Full") == len(KINDS) - 1, "what has expired does not count"


@pytest.mark.parametrize("kind", ["S", "N", "B"])
def test_keys_of_every_type(source: FaultyStore, destination: FaultyStore, kind: str) -> None:
    values = {"S": ["a", "ä", "\x00"], "N": ["-1", "0", "2.5"], "B": ["AA==", "AQ==", "/w=="]}[kind]
    items = [{"PK": {kind: pk}, "SK": {kind: sk}} for pk in values for sk in values]
    definition = keyed_by(kind)
    filled(source, definition, items)
    copy(source, destination, definition.name, segments=2)
    assert_same(source, destination, definition.name)


def test_a_table_without_sort_key_under_another_name(source: FaultyStore, destination: FaultyStore) -> None:
    filled(source, SINGLE, [{"id": s(str(number))} for number in range(60)])
    copy(source, destination, "Single", to="Other")
    assert_same(source, destination, "Single", "Other")


def test_settings_come_along(source: FaultyStore, destination: FaultyStore) -> None:
    definition = replace(PLAIN, throughput=Throughput(5, 6), stream=False)
    filled(source, definition, [item("a", "b")])
    copied = copy(source, destination, "Plain")
    assert copied.changes is None, "a table without a stream cannot tell what changed"
    assert_same(source, destination, "Plain")


class Member(Node):
    id: str
    name: Annotated[str, Indexed()]
    born: Annotated[int | None, Indexed()] = None
    email: Annotated[str, Unique()]


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("layout", [AdjacencyList(table="Members"), MaterializedGraph(table="Members")])
def test_copies_claims_and_shards_come_along(
    source: FaultyStore, destination: FaultyStore, layout: AdjacencyList | MaterializedGraph, tenant: str | None
) -> None:
    shards = ShardMap().grown(0.0, 4)
    before = Graph(source, [Member], layout, tenant=tenant)
    bound = before._layout
    record = bound.shard_map_key("MEMBER#name") | {
        "scope": s("MEMBER#name"), "map": encode(shards.to_plain()), "heat": encode(Heat().to_plain()), "version": n(1),
    }  # fmt: skip
    source.execute([Put("Members", record)])
    with Graph(source, [Member], layout, tenant=tenant) as g:
        for number in range(20):
            g.put(Member(id=f"M{number}", name=f"Ann {number:02}", born=1980 + number, email=f"{number}@example.com"))
        copy(source, destination, "Members")
        verify(source, destination, "Members")
        assert_same(source, destination, "Members")
        found = list(g.find(Member, field("name").begins_with("Ann 1")))
        with Graph(destination, [Member], layout, tenant=tenant) as there:
            with there.meter() as m:
                assert list(there.find(Member, field("name").begins_with("Ann 1"))) == found
            assert m.requests == 4
            assert there.find(Member, field("born") >= 1990).count() == 10
            assert there.get(Member, email="7@example.com") == g.get(Member, "M7")
            with pytest.raises(AlreadyExists):
                there.put(Member(id="other", name="Ben", email="7@example.com"))


def test_an_empty_table(source: FaultyStore, destination: FaultyStore) -> None:
    filled(source, PLAIN, [])
    assert copy(source, destination, "Plain", segments=3).items == 0
    assert_same(source, destination, "Plain")


def test_within_one_store(source: FaultyStore) -> None:
    filled(source, PLAIN, many(100, 10))
    copy(source, source, "Plain", to="Twin")
    assert_same(source, source, "Plain", "Twin")


@pytest.mark.parametrize("segments", [1, 7])
def test_many_items(source: FaultyStore, destination: FaultyStore, segments: int) -> None:
    items = many(12_000, 200)
    filled(source, PLAIN, items)
    told: list[Progress] = []
    copied = copy(source, destination, "Plain", segments=segments, progress=told.append)
    assert (copied.items, copied.size) == (12_000, sum(len(str(number // 20)) for number in range(12_000)) + 2_580_000)
    assert_same(source, destination, "Plain")
    assert verify(source, destination, "Plain", segments=segments) == 12_000
    copying = [each for each in told if each.stage == "copying"]
    assert copying[0] == Progress("copying", 0, 12_000)
    assert copying[-1] == Progress("copying", 12_000, 12_000)
    assert len(copying) > (2 if segments == 1 else 1)


def test_batches_that_come_back_half_done(source: FaultyStore, destination: FaultyStore) -> None:
    filled(source, PLAIN, many(500, 10))
    destination.halve_batches = True
    copy(source, destination, "Plain")
    assert_same(source, destination, "Plain")


def test_items_of_400_kilobytes(source: FaultyStore) -> None:
    filled(source, PLAIN, [])
    for number in range(12):
        put(source, "Plain", item("p", str(number), value=s("\n" * 400_000)))
    destination = Recording(SQLiteStore(":memory:"))
    copy(source, destination, "Plain")
    assert_same(source, destination, "Plain")
    destination.close()


@pytest.mark.parametrize(
    ("value", "together"),
    [
        (s("x" * 400_000), 25),
        (s("\n" * 400_000), 19),
        (s("\x01" * 400_000), 6),
        ({"L": [n(1)] * 130_000}, 12),
        ({"L": [s("")] * 400_000}, 4),
        ({"L": [s("")] * 40_000}, 25),
    ],
)
def test_batches_fit_into_requests(value: AttributeValue, together: int) -> None:
    """A request has 16 MB, as JSON spells it; an item's size says little about that."""
    batches = list(by_size(Put("Plain", item("p", str(number), value=value)) for number in range(2 * together)))
    assert [len(batch) for batch in batches] == [together, together]
    wire = orjson.dumps([put.item for put in batches[0] if isinstance(put, Put)])
    assert len(wire) <= MAX_BATCH_SIZE
    assert together == 25 or len(wire) * (together + 1) / together > 15 * MB


# --- interruptions -----------------------------------------------------------------------------


def change_something(store: Store, step: int) -> None:
    """A put, a replacement and a delete, of other items each time."""
    store.execute(
        [
            Put("Plain", item("new", str(step), n=n(step))),
            Put("Plain", item("p0", f"{step % 20:06d}", n=n(step))),
            Delete("Plain", key("p1", f"{20 + step % 20:06d}")),
        ]
    )


# With a pause of 0 each step is saved, with a long one hardly any.
@pytest.mark.simulation
@pytest.mark.parametrize(
    ("side", "when", "segments", "pause"),
    list(product(["source", "destination"], ["before", "after"], [1, 3], [0.0, 1000.0]))[:: stride(3)],
)
def test_interrupted_anywhere_and_run_again(
    source: FaultyStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    side: str,
    when: str,
    segments: int,
    pause: float,
) -> None:
    monkeypatch.setattr(transfer, "SAVE_SECONDS", pause)
    filled(source, PLAIN, many(120, 40_000))
    state = state_file(tmp_path, segments=segments)
    for step in count():
        destination = FaultyStore(SQLiteStore(":memory:"))
        stopped = source if side == "source" else destination
        end = stopped.sent + step
        stopped.stop_at(step, when)
        try:
            copy(source, destination, "Plain", segments=segments, state=state)
            reached = stopped.sent > end
        except Interrupted:
            reached = True
            stopped.recover()
            change_something(source, step)
            copy(source, destination, "Plain", segments=segments, state=state)
        stopped.recover()
        assert_same(source, destination, "Plain")
        assert not state.path.exists()
        destination.close()
        if not reached:
            break
    assert step > 6


def test_goes_on_where_it_was(source: FaultyStore, tmp_path: Path) -> None:
    filled(source, PLAIN, many(200, 40_000))
    destination = Recording(SQLiteStore(":memory:"))
    state = state_file(tmp_path)
    scans = 0

    def stop_at_sixth(_number: int, request: Request) -> str | None:
        nonlocal scans
        scans += isinstance(request, Scan)
        return "before" if scans == 6 else None

    source.fault = stop_at_sixth
    with pytest.raises(Interrupted):
        copy(source, destination, "Plain", state=state)
    source.recover()
    told: list[Progress] = []
    copied = copy(source, destination, "Plain", state=state, progress=told.append)
    assert copied.items == 200, "over both runs"
    assert told[0].done > 100
    written = sum(len(request.writes) for request in destination.requests if isinstance(request, BatchWrite))
    assert written == 200, "nothing was written twice"
    assert_same(source, destination, "Plain")


def test_who_was_not_told_of_the_end_may_run_it_again(
    source: FaultyStore, destination: FaultyStore, tmp_path: Path
) -> None:
    filled(source, PLAIN, many(20, 100))
    state = state_file(tmp_path)

    def stop(copied: Copied) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        copy(source, destination, "Plain", state=state, finished=stop)
    put(source, "Plain", item("since", "1"))
    told: list[Copied] = []
    copied = copy(source, destination, "Plain", state=state, finished=told.append)
    assert told == [copied]
    assert copied.items == 20, "over both runs"
    assert_same(source, destination, "Plain")
    assert not state.path.exists()


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    path, to, state = tmp_path / "from.db", tmp_path / "to.db", tmp_path / "state.json"
    source = SQLiteStore(path, durability="process")
    filled(source, PLAIN, many(20_000, 50))
    command = [sys.executable, "-m", "tests.copying.saving_copy", str(path), str(to), "--state", str(state), "--quiet"]
    chance = random.Random(1)
    seen = -1
    for attempt in range(4):
        change_something(source, attempt)
        # It is killed somewhere on the way to its next pages, or where it halts.
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, HALT_AFTER: str(3 + attempt)},
        ) as running:
            until(lambda: running.poll() is not None or copied_by(state) > seen, looks_every=0.002)  # noqa: B023
            time.sleep(chance.random() * 0.05)
            running.kill()
            _, errors = running.communicate()
        assert running.returncode == -signal.SIGKILL, errors
        assert copied_by(state) > seen, "each run goes further"
        seen = copied_by(state)
    assert 0 < seen < 20_000
    subprocess.run(command, check=True, capture_output=True)
    destination = SQLiteStore(to)
    assert_same(source, destination, "Plain")
    assert not state.exists()
    source.close()
    destination.close()


# --- a source that is written to ---------------------------------------------------------------


@pytest.mark.parametrize("segments", [1, 3])
def test_changes_made_meanwhile_are_included(source: FaultyStore, destination: FaultyStore, segments: int) -> None:
    filled(source, PLAIN, many(200, 40_000))
    steps = count()

    def write_meanwhile(_number: int, request: Request) -> None:
        if isinstance(request, Scan):
            change_something(source.inner, next(steps))

    source.fault = write_meanwhile
    copied = copy(source, destination, "Plain", segments=segments)
    assert copied.changes == 3 * next(steps)
    source.recover()
    assert_same(source, destination, "Plain")


def test_of_several_changes_of_an_item_the_last_counts() -> None:
    first, second = item("a", "1", n=n(1)), item("a", "1", n=n(2))
    gone = item("b", "1")
    plan = apply_changes(
        "Plain",
        [
            ItemChange("1", 0.0, key("a", "1"), None, first),
            ItemChange("2", 0.0, key("b", "1"), None, gone),
            ItemChange("3", 0.0, key("a", "1"), first, second),
            ItemChange("4", 0.0, key("b", "1"), gone, None),
        ],
    )
    assert next(plan) == (BatchWrite((Put("Plain", second), Delete("Plain", key("b", "1")))),)


def test_a_source_without_rest_comes_to_an_end(destination: FaultyStore) -> None:
    source = FaultyStore(SQLiteStore(":memory:", clock=lambda: time.time() + transfer.CLOCKS_DIFFER))
    filled(source, PLAIN, many(50, 10))
    steps = count()
    source.fault = lambda _number, request: change_something(source.inner, next(steps))
    copied = copy(source, destination, "Plain")
    assert copied.changes
    source.close()


def test_a_clock_of_writers_that_is_ahead_ends_no_copy_too_early(tmp_path: Path, destination: FaultyStore) -> None:
    """Which changes belong to a copy is told by their order, not by a clock: others may have been set right since."""
    source = SQLiteStore(tmp_path / "ahead.db", durability="process", clock=lambda: time.time() + 3600)
    filled(source, PLAIN, many(10, 10))

    def come_and_go(progress: Progress) -> None:
        if progress.stage == "copying" and progress.done == 10:
            # More than one reading of the stream brings, and gone again at the end.
            source.execute([Put("Plain", item("passing", str(each))) for each in range(1500)])
            source.execute([Delete("Plain", key("passing", str(each))) for each in range(1500)])

    copied = copy(source, destination, "Plain", progress=come_and_go)
    assert copied.changes == 3000
    assert_same(source, destination, "Plain")
    source.close()


def test_a_writer_in_another_thread(tmp_path: Path, destination: FaultyStore) -> None:
    source = SQLiteStore(tmp_path / "live.db", durability="process")
    filled(source, PLAIN, many(3_000, 2_000))
    stop = threading.Event()

    def write() -> None:
        for step in count():
            if stop.is_set():
                return
            change_something(source, step)

    writer = threading.Thread(target=write)
    writer.start()

    def stop_at_the_end(progress: Progress) -> None:
        if progress.stage == "following":
            stop.set()
            writer.join()

    copied = copy(source, destination, "Plain", segments=2, progress=stop_at_the_end)
    assert copied.changes
    assert_same(source, destination, "Plain")
    source.close()
