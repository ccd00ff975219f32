"""Nothing is lost and nothing is torn when a writing process is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from adjoin.requests import ChangesResponse, CreateTable, DescribeTable, ReadChanges, TableResponse
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item, item_size
from tests.stores.examples import PLAIN, everything, one
from tests.stores.sqlite.crash_writer import GROUP, operations

ROUNDS = 25


@pytest.fixture(scope="module")
def writers() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported what writers need, and forks for each of them."""
    command = [sys.executable, "-m", "tests.stores.sqlite.crash_writer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate()


def acknowledged_before_death(writers: subprocess.Popen[str], path: Path, seed: int, durability: str) -> int:
    """Run a writer, kill it at some moment, and answer how many writes it said were done."""
    chance = random.Random(seed)
    wanted = chance.choice((0, 1, chance.randrange(50), chance.randrange(400)))
    assert writers.stdin is not None
    assert writers.stdout is not None
    pipe = path.with_name(f"told-{seed}")
    os.mkfifo(pipe)
    writers.stdin.write(json.dumps([str(path), seed, durability, str(pipe)]) + "\n")
    writers.stdin.flush()
    writer = int(writers.stdout.readline())
    with open(pipe, encoding="ascii") as told:
        done = 0
        while done < wanted:
            done = int(told.readline())
        time.sleep(chance.random() * 0.003)
        os.kill(writer, signal.SIGKILL)
        # What was told before the end counts, even if it was read after; a torn last line does not.
        rest = told.read()
        numbers = [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    assert writers.stdout.readline() == "ended\n"
    return max([done, *numbers])


def replayed(store: Store) -> dict[str, Item]:
    """The items as the change stream tells them; checks that each old image is what was there."""
    items: dict[str, Item] = {}
    after = None
    while True:
        response = one(store, ReadChanges("Plain", after), ChangesResponse)
        if not response.changes:
            return items
        for change in response.changes:
            where = str(change.key)
            assert items.get(where) == change.old
            if change.new is None:
                del items[where]
            else:
                items[where] = change.new
        after = response.next


def by_key(items: list[Item]) -> dict[str, Item]:
    return {str({name: item[name] for name in ("PK", "SK")}): item for item in items}


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_killed_writer_loses_nothing_it_acknowledged(
    writers: subprocess.Popen[str], tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "graph.db"
    store = SQLiteStore(path)
    store.execute([CreateTable(PLAIN)])
    store.close()
    model = SQLiteStore(":memory:")
    model.execute([CreateTable(PLAIN)])

    for seed in range(ROUNDS if durability == "process" else 5):
        done = acknowledged_before_death(writers, path, seed, durability)
        store = SQLiteStore(path)
        found = by_key(everything(store, "Plain"))
        requests = list(islice(operations(seed), done + 1))
        model.execute(requests[:done])
        if found != by_key(everything(model, "Plain")):
            # The write that was under way when the process died may have been finished.
            model.execute(requests[done:])
        assert found == by_key(everything(model, "Plain")), f"round {seed}, {done} writes acknowledged"
        assert found == replayed(store)
        described = one(store, DescribeTable("Plain"), TableResponse)
        assert (described.item_count, described.size) == (len(found), sum(map(item_size, found.values())))
        for group in range(3):
            stamps = {str(item["at"]) for item in found.values() if item["PK"]["S"] == f"group {group}"}
            assert len(stamps) <= 1, "a transaction is whole"
            assert sum(item["PK"]["S"] == f"group {group}" for item in found.values()) in (0, GROUP)
        store.close()
    model.close()
