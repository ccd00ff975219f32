"""Migrations on servers that take the place of DynamoDB: `adjoin serve`, MiniStack, and dynalite where it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any
from uuid import uuid4

import pytest
from pydantic import AliasChoices, Field

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Indexed,
    InvalidRequest,
    MaterializedGraph,
    MigrationDue,
    Node,
    TableMismatch,
    Unique,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.requests import PageResponse, Scan
from tests.servers.open import Stores

WITHOUT_TRANSACTIONS = "dynalite has no transactions, which claims and index copies need"


class Student(Node):
    id: str
    name: str
    email: str | None = None


class Course(Node):
    id: str


class Enrollment(Edge[Student, Course]):
    at: int


FIRST: list[type[Any]] = [Student, Course, Enrollment]


class Found(Node, label="STUDENT"):
    id: str
    name: Annotated[str, Indexed()]
    email: str | None = None


class Ordered(Edge[Found, Course], label="ENROLLMENT", order="at"):
    at: int


class Claimed(Node, label="STUDENT"):
    id: str
    name: Annotated[str, Indexed()]
    email: Annotated[str | None, Unique(), Indexed()] = None


class Renamed(Node, label="STUDENT"):
    id: str
    title: str = Field(validation_alias=AliasChoices("title", "name"))
    year: int


Opened = Callable[[list[type[Any]], Layout], Graph]


@pytest.fixture(params=["serve", "ministack", "dynalite"])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(server: str, servers: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Opens graphs on tables of this test's own; those of one layout have one table."""
    # Streams of these servers show at once what was written, and nobody writes while the last step waits for more.
    monkeypatch.setattr("adjoin.verbs._STREAM_LAG", 0.1)
    address, own = servers.address(server), uuid4().hex
    graphs: list[Graph] = []

    def graph(models: list[type[Any]], layout: Layout) -> Graph:
        made = Graph(f"dynamodb://{layout.table}-{own}?endpoint={address}&region=us-east-1", models, layout)
        graphs.append(made)
        return made

    yield graph
    for table in {each._layout.table: each for each in graphs}.values():
        table.drop_table()
    for each in graphs:
        each.close()


def fill(graph: Graph, first: int = 0, number: int = 12) -> None:
    graph.put_many(Student(id=f"S{at}", name=f"n{at % 3}", email=f"e{at}") for at in range(first, first + number))
    graph.put_many(Course(id=f"C{at}") for at in range(2))
    graph.put_many(Enrollment(source=f"S{at}", target="C1", at=-at) for at in range(first, first + number))


PLAIN = AdjacencyList()


def test_an_index_and_an_order_are_added_while_an_older_program_writes(opened: Opened, server: str) -> None:
    if server == "dynalite":
        pytest.skip("dynalite adds no index to a table on demand")
    older = opened(FIRST, PLAIN)
    older.create_table()
    fill(older)
    newer = opened([Found, Course, Ordered], PLAIN)
    with pytest.raises(TableMismatch, match="no index 'GSI3'"):
        list(newer.find(Found, order="name"))
    assert [each.at for each in newer.out("S3", Ordered)] == [-3], "the table itself has them"
    newer.create_table()
    with pytest.raises(MigrationDue):
        list(newer.find(Found, order="name"))
    assert newer.migrate(dry_run=True).items == 24
    assert not newer.migrate().ended
    fill(older, 12, 3)
    assert newer.migrate(finish=True).ended
    assert [each.name for each in newer.find(Found, order="name")] == sorted(f"n{at % 3}" for at in range(15))
    assert [each.at for each in newer.into("C1", Ordered)] == list(range(-14, 1))
    assert newer.differences() == []


def test_unique_values_are_claimed(opened: Opened, server: str) -> None:
    if server == "dynalite":
        pytest.skip(WITHOUT_TRANSACTIONS)
    older = opened(FIRST, PLAIN)
    older.create_table()
    fill(older)
    newer = opened([Claimed], PLAIN)
    newer.migrate()
    fill(older, 12, 3)
    assert newer.migrate(finish=True).ended
    assert [newer.get(Claimed, email=f"e{at}").id for at in (0, 5, 14)] == ["S0", "S5", "S14"]  # type: ignore[union-attr]
    assert [each.id for each in newer.find(Claimed, field("email") == "e13")] == ["S13"]


def test_fields_are_renamed_filled_and_dropped(opened: Opened) -> None:
    older = opened(FIRST, PLAIN)
    older.create_table()
    fill(older)
    newer = opened([Renamed], PLAIN)
    field_changes: dict[str, Any] = {"fill": {"Renamed.year": lambda item: 2000 + int(item["email"][1:])}}
    newer.migrate(**field_changes)
    fill(older, 12, 3)
    assert newer.migrate(finish=True, drop=["Renamed.email"], **field_changes).ended
    assert sorted(each.year for each in newer.scan(Renamed)) == list(range(2000, 2015))
    (page,) = newer._store.execute([Scan(newer._layout.table, consistent=True)])
    assert isinstance(page, PageResponse)
    students = [item for item in page.items if "year" in item]
    assert {name for item in students for name in item} == {"PK", "SK", "title", "year"}


@pytest.mark.parametrize("there", [True, False], ids=["into", "back"])
def test_a_table_moves_into_another_layout(opened: Opened, server: str, there: bool) -> None:
    layouts = (
        (PLAIN, MaterializedGraph(table="Moved")) if there else (MaterializedGraph(), AdjacencyList(table="Moved"))
    )
    if server == "dynalite":
        models: list[type[Any]] = FIRST
        old = opened(models, layouts[0])
        old.create_table()
        fill(old)
        new = opened(models, layouts[1])
        with pytest.raises(InvalidRequest, match="stream"):
            old.migrate(into=new)
        assert old.migrate(into=new, finish=True).ended, "nobody writes, so it needs no stream"
        assert sorted(map(repr, new.scan(Enrollment))) == sorted(map(repr, old.scan(Enrollment)))
        return
    models = [Claimed, Course, Ordered2]
    old = opened(models, layouts[0])
    old.create_table()
    old.put_many(Claimed(id=f"S{at}", name=f"n{at % 3}", email=f"e{at}") for at in range(12))
    old.put_many([Course(id="C1"), *(Ordered2(source=f"S{at}", target="C1", at=-at) for at in range(12))])
    new = opened(models, layouts[1])
    assert old.migrate(into=new, segments=2).stage == "waiting"
    old.update(Claimed, "S1", email="moved")
    old.update(Claimed, "S2", email="e1")
    old.delete(Claimed, "S3")
    old.put(Ordered2(source="S4", target="C1", at=99))
    assert old.migrate(into=new, finish=True).ended
    for model in models:
        assert sorted(map(repr, new.scan(model, consistent=True))) == sorted(
            map(repr, old.scan(model, consistent=True))
        )
    assert new.get(Claimed, email="e1") == old.get(Claimed, "S2")
    assert new.get(Claimed, email="e3") is None
    assert [each.at for each in new.into("C1", Ordered2)] == [*range(-11, -4), -2, -1, 0, 99]


class Ordered2(Edge[Claimed, Course], label="ENROLLMENT", order="at"):
    at: int
