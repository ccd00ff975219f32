"""Writes in rounds: committed together, each with its own outcome, and never in the way of reads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from adjoin.requests import CreateTable, Delete, Put
from adjoin.server import serving
from adjoin.server.serving import Server, serve
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.file import CHECKPOINT_PAGES
from adjoin.stores.sqlite.store import Round
from tests.server.test_serving import TABLE, client, key
from tests.stores.examples import PLAIN, everything, item, n
from tests.waiting import until

WRITERS = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.db"


@pytest.fixture(params=["process", "power"])
def server(loop: None, request: pytest.FixtureRequest, path: Path) -> Iterator[Server]:
    with serve(path, durability=request.param) as opened:
        client(opened).create_table(**TABLE)
        yield opened


# --- killed ------------------------------------------------------------------------------------


class Served:
    """`adjoin serve` in a process of its own."""

    def __init__(self, path: Path, durability: str) -> None:
        command = [sys.executable, "-m", "adjoin", "serve", str(path), "--port=0", f"--durability={durability}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.endpoint = self.process.stdout.readline().rpartition(" ")[2].strip()

    def kill(self) -> None:
        with self.process:
            self.process.kill()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_killed_server_has_kept_what_it_acknowledged(path: Path, durability: str) -> None:
    acknowledged: dict[int, int] = {}

    def have_written(total: int) -> bool:
        return len(acknowledged) == WRITERS and sum(acknowledged.values()) > total

    for life in range(3):
        served = Served(path, durability)
        dynamodb = _client_of(served)
        if life == 0:
            dynamodb.create_table(**TABLE)

        def write(writer: int, dynamodb: Any) -> None:
            try:
                for number in range(acknowledged.get(writer, 0) + 1, 1_000_000):
                    dynamodb.put_item(TableName="Things", Item={**key(writer), "n": {"N": str(number)}})
                    acknowledged[writer] = number
            except (BotoCoreError, ClientError):
                pass

        clients = [_client_of(served) for _ in range(WRITERS)]
        threads = [threading.Thread(target=write, args=each) for each in enumerate(clients)]
        for thread in threads:
            thread.start()
        until(partial(have_written, sum(acknowledged.values()) + 10 * WRITERS))
        served.kill()
        for thread in threads:
            thread.join()
        for each in clients:
            each.close()

        with serve(path) as server:
            found = client(server).query(
                TableName="Things",
                KeyConditionExpression="PK = :a",
                ExpressionAttributeValues={":a": {"S": "a"}},
                ConsistentRead=True,
            )["Items"]
        numbers = {int(each["SK"]["S"]): int(each["n"]["N"]) for each in found}
        assert len(acknowledged) == WRITERS, "every writer was answered"
        for writer, number in acknowledged.items():
            # The write that was under way may have been finished too.
            assert numbers[writer] in (number, number + 1)
            acknowledged[writer] = numbers[writer]


def _client_of(served: Served) -> Any:
    """One that does not try again: the server will not come back."""
    return boto3.client(
        "dynamodb",
        endpoint_url=served.endpoint,
        region_name="eu-west-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )


# --- at once -----------------------------------------------------------------------------------


def test_each_write_of_a_round_has_its_own_outcome(server: Server) -> None:
    outcomes: dict[int, str] = {}

    def write(number: int, dynamodb: Any) -> None:
        absent = {"ConditionExpression": "attribute_not_exists(PK)"} if number % 2 else {}
        try:
            dynamodb.put_item(TableName="Things", Item={**key(number // 4), "by": {"N": str(number)}}, **absent)
            outcomes[number] = "written"
        except ClientError as error:
            outcomes[number] = error.response["Error"]["Code"]

    dynamodb = client(server)
    for number in range(10):
        dynamodb.put_item(TableName="Things", Item=key(number))
    threads = [threading.Thread(target=write, args=(number, dynamodb)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {outcome for number, outcome in outcomes.items() if number % 2 == 0} == {"written"}
    assert {outcome for number, outcome in outcomes.items() if number % 2} == {"ConditionalCheckFailedException"}
    found = dynamodb.scan(TableName="Things")["Items"]
    assert all(int(each["by"]["N"]) % 2 == 0 for each in found), "what failed left nothing behind"


def test_reads_are_answered_while_another_process_writes(server: Server, path: Path) -> None:
    dynamodb = client(server)
    dynamodb.put_item(TableName="Things", Item=key(1))
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    done = threading.Event()

    def write() -> None:
        dynamodb.put_item(TableName="Things", Item=key(2))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            assert dynamodb.get_item(TableName="Things", Key=key(1))["Item"] == key(1)
            assert "Item" not in dynamodb.get_item(TableName="Things", Key=key(2))
        assert not done.is_set(), "the write waits for the other process"
    finally:
        other.execute("ROLLBACK")
        other.close()
    writer.join()
    assert dynamodb.get_item(TableName="Things", Key=key(2))["Item"] == key(2)


class Commits:
    """Commits that do not end before something has happened: which threads make them, of how many writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happened: Callable[[], object] = lambda: True) -> None:
        self.threads: list[str] = []
        self.sizes: list[int] = []
        commit = Round.commit

        def slow(begun: Round) -> None:
            self.threads.append(threading.current_thread().name)
            self.sizes.append(len(begun.outcomes))
            until(happened)
            commit(begun)

        monkeypatch.setattr(Round, "commit", slow)


@pytest.fixture
def on_disk(loop: None, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # Upkeep would go another way. Who asked is active until a test says otherwise.
    monkeypatch.setattr("adjoin.stores.sqlite.store._SECONDS", 1e6)
    monkeypatch.setattr(serving, "_LATELY", 1e6)
    with serve(path, durability="power") as opened:
        dynamodb = client(opened)
        dynamodb.create_table(**TABLE)
        dynamodb.put_item(TableName="Things", Item=key(1))
        yield opened


def test_a_client_alone_is_answered_without_another_thread(on_disk: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    dynamodb = client(on_disk)
    dynamodb.get_item(TableName="Things", Key=key(1))

    async def look() -> None:
        on_disk._crowd.look()

    assert on_disk._loop is not None
    for _ in range(2):
        asyncio.run_coroutine_threadsafe(look(), on_disk._loop).result()
    commits = Commits(monkeypatch)
    for number in range(3):
        dynamodb.put_item(TableName="Things", Item=key(number))
    assert commits.threads == ["adjoin-server"] * 3


def test_who_asks_nothing_is_not_active_any_more(loop: None, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LATELY", 0.05)
    with serve(path, durability="process") as server:
        dynamodb = client(server)
        dynamodb.list_tables()
        until(lambda: server._crowd.open and not server._crowd.active)


def test_reads_do_not_wait_for_the_disk(on_disk: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = client(on_disk), client(on_disk)
    reader.get_item(TableName="Things", Key=key(1))
    writer.get_item(TableName="Things", Key=key(1))
    is_read = threading.Event()
    commits = Commits(monkeypatch, is_read.is_set)
    writing = threading.Thread(target=lambda: writer.put_item(TableName="Things", Item=key(2)))
    writing.start()
    until(lambda: commits.threads)
    # A read that waited for the disk would wait for ever.
    assert "Item" not in reader.get_item(TableName="Things", Key=key(2)), "what is not on disk is not seen"
    is_read.set()
    writing.join()
    assert commits.threads == ["adjoin-writer"]
    assert "Item" in reader.get_item(TableName="Things", Key=key(2))


def test_writes_that_come_while_others_wait_for_the_disk_share_a_round(
    on_disk: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [client(on_disk) for _ in range(WRITERS)]
    for each in clients:
        each.get_item(TableName="Things", Key=key(1))
    waiting = on_disk._service._writer._waiting
    commits = Commits(monkeypatch, lambda: sum(commits.sizes) + len(waiting) == WRITERS)
    threads = [
        threading.Thread(target=each.put_item, kwargs={"TableName": "Things", "Item": key(number)})
        for number, each in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(commits.sizes) == WRITERS
    assert len(commits.sizes) <= 2, "those that came during the first are the second"


def test_a_query_takes_the_table_as_the_store_knows_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the file for the definition only if what it knows does not fit."""
    dynamodb = client(server)
    dynamodb.put_item(TableName="Things", Item=key(1))
    asked = {
        "TableName": "Things",
        "KeyConditionExpression": "PK = :p",
        "ExpressionAttributeValues": {":p": key(1)["PK"]},
    }
    assert dynamodb.query(**asked)["Count"] == 1
    monkeypatch.setattr(server._store, "definition", None)
    assert dynamodb.query(**asked)["Count"] == 1
    assert dynamodb.scan(TableName="Things")["Count"] == 1


def test_an_index_that_another_process_adds_is_read(server: Server, path: Path) -> None:
    dynamodb = client(server)
    dynamodb.put_item(TableName="Things", Item={**key(1), "owner": {"S": "x"}})
    asked = {
        "TableName": "Things",
        "IndexName": "ByOwner",
        "KeyConditionExpression": "#o = :x",
        "ExpressionAttributeNames": {"#o": "owner"},
        "ExpressionAttributeValues": {":x": {"S": "x"}},
    }
    with pytest.raises(ClientError, match="The table does not have the specified index"):
        dynamodb.query(**asked)
    with serve(path) as other:
        client(other).update_table(
            TableName="Things",
            AttributeDefinitions=[{"AttributeName": "owner", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "ByOwner",
                        "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        )
        assert dynamodb.query(**asked)["Count"] == 1
        client(other).delete_table(TableName="Things")
        client(other).create_table(
            TableName="Things",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client(other).put_item(TableName="Things", Item={"id": {"N": "1"}})
    by_id = {"KeyConditionExpression": "id = :i", "ExpressionAttributeValues": {":i": {"N": "1"}}}
    assert dynamodb.query(TableName="Things", **by_id)["Items"] == [{"id": {"N": "1"}}]


# --- the store's side --------------------------------------------------------------------------


def test_a_round_is_seen_when_it_is_committed(path: Path) -> None:
    store = SQLiteStore(path, durability="process")
    store.execute([CreateTable(PLAIN), Put("Plain", item("a", "0"))])
    begun = store.begin([Put("Plain", item("a", "1")), Delete("Plain", {"PK": {"S": "a"}})])
    assert begun is not None
    assert everything(store, "Plain") == [item("a", "0")]
    assert store.begin([Put("Plain", item("a", "2"))]) is None, "one round at a time"
    begun.commit()
    assert [type(outcome).__name__ for outcome in begun.outcomes] == ["ItemResponse", "KeyMismatch"]
    assert everything(store, "Plain") == [item("a", "0"), item("a", "1")]
    store.execute([Put("Plain", item("a", "2"))])
    store.close()


def test_upkeep_and_long_logs_are_left_to_who_may_wait(path: Path) -> None:
    store = SQLiteStore(path, durability="process", clock=lambda: 1e9)
    store.execute([CreateTable(PLAIN)])
    refused = 0
    for number in range(1, CHECKPOINT_PAGES):
        writes = [Put("Plain", item("a", str(number), x=n(number), y={"S": "y" * 3000}))]
        begun = store.begin(writes)
        if begun is None:
            refused += 1
            store.execute(writes)
        else:
            begun.commit()
    assert 3 <= refused < 30
    assert Path(f"{path}-wal").stat().st_size < 2 * 4096 * CHECKPOINT_PAGES, "the log was moved into the file"
    assert len(everything(store, "Plain")) == CHECKPOINT_PAGES - 1
    store.close()
