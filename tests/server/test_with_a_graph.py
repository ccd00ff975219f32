"""`adjoin serve` and a graph on the same file, each in a process of its own: both see what either writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import boto3
import pytest
from boto3.dynamodb.conditions import Key
from botocore.config import Config

from adjoin import AdjacencyList, Edge, Graph, Index, Node, field
from tests.waiting import LIMIT


class Student(Node):
    id: str
    name: str
    visits: int = 0


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    grade: str


LAYOUT = AdjacencyList(
    table="Education",
    node="METADATA",
    edge="{target}",
    stream=True,
    reverse=Index("GSI1", "GSI1PK", "GSI1SK", partition="{target}", sort="{source}"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "education.db"


@pytest.fixture
def process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, which says where it answers."""
    command = [sys.executable, "-m", "adjoin", "serve", str(path), "--port", "0", "--durability", "process"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.terminate()


@pytest.fixture
def service(process: subprocess.Popen[str]) -> Iterator[Any]:
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    resource = boto3.resource(
        "dynamodb",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"max_attempts": 0}, read_timeout=LIMIT),
    )
    yield resource
    resource.meta.client.close()


@pytest.fixture
def g(service: Any, path: Path) -> Iterator[Graph]:
    """A graph in this process; the server is in the other."""
    with Graph(f"{path}?durability=process", [Student, Course, Enrollment], LAYOUT) as graph:
        yield graph


@pytest.fixture
def table(service: Any, g: Graph) -> Any:
    return service.Table("Education")


def test_boto3_reads_what_the_graph_writes(g: Graph, table: Any) -> None:
    g.put(Student(id="S1", name="Ann"))
    assert table.get_item(Key={"PK": "STUDENT#S1", "SK": "METADATA"})["Item"]["name"] == "Ann"
    g.put(Course(id="C1"))
    g.connect(Enrollment, "S1", "C1", grade="A")
    (edge,) = table.query(IndexName="GSI1", KeyConditionExpression=Key("GSI1PK").eq("COURSE#C1"))["Items"]
    assert (edge["PK"], edge["SK"], edge["grade"]) == ("STUDENT#S1", "COURSE#C1", "A")
    g.update(Student, "S1", visits=field("visits") + 1)
    assert table.get_item(Key={"PK": "STUDENT#S1", "SK": "METADATA"})["Item"]["visits"] == 1
    g.delete(Student, "S1")
    assert [item["PK"] for item in table.scan()["Items"]] == ["#=RECORDS", "COURSE#C1"]


def test_the_graph_reads_what_boto3_writes(g: Graph, table: Any) -> None:
    with table.batch_writer() as batch:
        batch.put_item(Item={"PK": "STUDENT#S1", "SK": "METADATA", "name": "Ann", "visits": 0})
        batch.put_item(Item={"PK": "COURSE#C1", "SK": "METADATA"})
        batch.put_item(
            Item={"PK": "STUDENT#S1", "SK": "COURSE#C1", "grade": "B", "GSI1PK": "COURSE#C1", "GSI1SK": "STUDENT#S1"}
        )
    assert g.get(Student, "S1") == Student(id="S1", name="Ann")
    assert list(g.into("C1", Enrollment)) == [Enrollment(source="S1", target="C1", grade="B")]
    table.update_item(
        Key={"PK": "STUDENT#S1", "SK": "COURSE#C1"},
        UpdateExpression="SET grade = :a",
        ExpressionAttributeValues={":a": "A"},
    )
    assert [edge.grade for edge in g.out("S1", Enrollment)] == ["A"]
    table.delete_item(Key={"PK": "STUDENT#S1", "SK": "METADATA"})
    assert g.get(Student, "S1") is None
    kinds = [change.kind for change in g.changes()]
    assert kinds == ["insert", "insert", "insert", "modify", "remove"]


def test_tables_change_under_either(service: Any, path: Path) -> None:
    client = service.meta.client
    client.create_table(
        TableName="Education",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK")],
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    table = service.Table("Education")
    table.put_item(Item={"PK": "STUDENT#S1", "SK": "COURSE#C1", "GSI1PK": "COURSE#C1", "GSI1SK": "STUDENT#S1"})
    with Graph(path, [Student, Course, Enrollment], LAYOUT):
        pass
    found = table.query(IndexName="GSI1", KeyConditionExpression=Key("GSI1PK").eq("COURSE#C1"))
    assert found["Count"] == 1, "the graph made its index on the table that boto3 had made"
    table.delete()
    assert client.list_tables()["TableNames"] == []


def test_both_count_at_once_and_nothing_is_lost(g: Graph, table: Any) -> None:
    g.put(Student(id="S1", name="Ann"))
    key = {"PK": "STUDENT#S1", "SK": "METADATA"}

    def count() -> None:
        for _ in range(100):
            table.update_item(Key=key, UpdateExpression="ADD visits :one", ExpressionAttributeValues={":one": 1})

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(100):
        g.update(Student, "S1", visits=field("visits") + 1)
    thread.join()
    student = g.get(Student, "S1")
    assert student is not None
    assert student.visits == table.get_item(Key=key)["Item"]["visits"] == 200


def test_readers_wait_for_no_writer(g: Graph, table: Any, path: Path) -> None:
    g.put(Student(id="S1", name="Ann"))
    key = {"PK": "STUDENT#S1", "SK": "METADATA"}
    done = threading.Event()

    def write() -> None:
        table.put_item(Item={"PK": "STUDENT#S2", "SK": "METADATA", "name": "Bob"})
        done.set()

    holder = apsw.Connection(str(path))
    # Another program is in the middle of writing.
    holder.execute("BEGIN IMMEDIATE")
    writer = threading.Thread(target=write)
    writer.start()
    # Who waits for the writer waits for ever: it ends when this is over.
    for _ in range(10):
        assert table.get_item(Key=key, ConsistentRead=True)["Item"]["name"] == "Ann"
        assert table.query(KeyConditionExpression=Key("PK").eq("STUDENT#S1"))["Count"] == 1
        assert table.scan()["Count"] == 2, "with the record of what is declared"
        assert g.get(Student, "S1") is not None
    assert not done.is_set(), "a write does wait, behind the one that is under way"
    holder.execute("ROLLBACK")
    holder.close()
    writer.join()
    assert done.is_set()
    assert table.scan()["Count"] == 3
    assert g.get(Student, "S2") == Student(id="S2", name="Bob")


def test_a_server_that_is_killed_loses_nothing_and_one_that_is_asked_ends_well(
    process: subprocess.Popen[str], table: Any, g: Graph, path: Path
) -> None:
    for number in range(20):
        table.put_item(Item={"PK": f"STUDENT#S{number}", "SK": "METADATA", "name": "Ann", "visits": number})
    process.kill()
    process.wait()
    assert g.get_many(Student, [f"S{number}" for number in range(20)]) == [
        Student(id=f"S{number}", name="Ann", visits=number) for number in range(20)
    ]
    command = [sys.executable, "-m", "adjoin", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as again:
        assert again.stdout is not None
        assert again.stdout.readline().startswith(f"{path} answers at http://127.0.0.1:")
        os.kill(again.pid, signal.SIGINT)
        _, said = again.communicate(timeout=LIMIT)
    assert (again.returncode, said) == (0, "")
