"""Single calls of migrate: what they cost, how they stop, go on, are taken back, and what they refuse."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, Field, model_validator

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Graph,
    Index,
    Indexed,
    InvalidItem,
    InvalidRequest,
    InvalidValue,
    Keys,
    MaterializedGraph,
    MigrationDue,
    MigrationReport,
    Node,
    Unique,
    field,
)
from adjoin.requests import Delete, DescribeTable, Get, Put, Request, Response
from adjoin.stores.sqlite import AsyncSQLiteStore, SQLiteStore
from adjoin.values import Item
from tests.migrating.gained import FIRST, SECOND, Course, Enrollment, Found, Ordered, Remote, Student, filled, items


class Claimed(Node, label="STUDENT"):
    id: str
    name: Annotated[str, Unique()]


def raw(store: SQLiteStore, partition: str) -> Item:
    return next(item for item in items(store) if item["PK"] == {"S": partition} and item["SK"] == {"S": "#META"})


def forget(store: SQLiteStore) -> None:
    """Removes the record, as in a table that version 0.1 made."""
    (key,) = ({"PK": item["PK"], "SK": item["SK"]} for item in items(store) if "adjoin:declared" in item)
    store.execute([Delete("adjoin", key)])


# --- what is recorded --------------------------------------------------------------------------


def test_a_new_table_records_what_is_declared_in_one_small_item() -> None:
    store = filled(0)
    (record,) = [item for item in items(store) if "adjoin:declared" in item]
    assert record["PK"] == {"S": "#=RECORDS"}
    assert len(record["adjoin:declared"]["S"]) < 600
    assert Graph(store, FIRST).differences() == []


def test_differences_say_what_is_due_and_what_only_differs() -> None:
    store = filled()
    second = Graph(store, SECOND)
    assert [(each.kind, each.model, each.name, each.is_due) for each in second.differences()] == [
        ("indexed", "Found", "name", True),
        ("index", "Ordered", "GSI1", True),
        ("index", "Ordered", "GSI2", True),
    ]

    class Plain(Node, label="STUDENT"):
        id: str
        nick: str = ""

    (gone, new) = Graph(store, [Plain, Course]).differences()[:2]
    assert str(gone) == "Plain.name is stored, and this graph does not declare it"
    assert str(new) == "Plain.nick is new" or str(new) == "Plain.name is stored, and this graph does not declare it"


def test_a_class_that_is_new_is_added_to_the_record_when_a_graph_opens() -> None:
    store = filled()
    Graph(store, [*FIRST, Teacher])

    class Indexing(Node, label="TEACHER"):
        id: str
        name: Annotated[str, Indexed()] = ""

    with pytest.raises(MigrationDue, match="Indexing may not be indexed by 'name'"):
        list(Graph(store, [Indexing]).find(Indexing, order="name"))


class Teacher(Node):
    id: str
    name: str = ""


def test_opening_logs_what_differs(caplog: pytest.LogCaptureFixture) -> None:
    store = filled()
    caplog.clear()
    Graph(store, SECOND)
    assert "stored items of Found may not be indexed by 'name'" in caplog.text


def test_other_keys_are_due_and_no_query_answers_as_if_nothing_were_stored() -> None:
    class Pupil(Node, label="PUPIL"):
        id: str
        name: str

    Pupil.__name__ = "Student"
    sorted_otherwise = AdjacencyList(keys={Student: Keys(sort="ITSELF")}, escape=True)
    before = filled()
    for g, model in ((Graph(before, [Pupil]), Pupil), (Graph(filled(), FIRST, sorted_otherwise), Student)):
        assert [each.kind for each in g.differences() if each.is_due] == ["keys"]
        calls: list[Callable[[], object]] = [
            lambda g=g, model=model: g.get(model, "S1"),  # type: ignore[misc]
            lambda g=g, model=model: g.get_many(model, ["S1"]),  # type: ignore[misc]
            lambda g=g, model=model: list(g.scan(model)),  # type: ignore[misc]
            lambda g=g, model=model: g.count(model),  # type: ignore[misc]
            lambda g=g, model=model: g.migrate(dry_run=True) and g.get(model, "S1"),  # type: ignore[misc]
        ]
        for call in calls:
            with pytest.raises(MigrationDue, match="under other keys"):
                call()
        with pytest.raises(InvalidRequest, match="cannot change in place"):
            g.migrate(finish=True)


def test_a_query_is_refused_until_the_migration_of_another_program_has_ended() -> None:
    store = filled()
    g, other = Graph(store, SECOND), Graph(store, SECOND)
    calls: list[Callable[[], object]] = [
        lambda: list(g.find(Found, order="name")),
        lambda: g.find(Found, field("name") == "n1").count(),
    ]
    for call in calls:
        with pytest.raises(MigrationDue, match=r"run g\.migrate\(\)"):
            call()
    assert g.get(Found, "S1") == Found(id="S1", name="n1")
    assert other.migrate(finish=True).ended
    for call in calls:
        assert call()


# --- tables without a record -------------------------------------------------------------------


def test_a_table_of_version_0_1_that_gets_an_index_is_ours() -> None:
    store = filled()
    forget(store)
    g = Graph(store, SECOND)
    with pytest.raises(MigrationDue):
        list(g.find(Found, order="name"))
    assert [each.at for each in g.out("S1", Ordered)] == [-1], "the table itself has them"
    assert g.migrate(finish=True).ended
    assert len(list(g.find(Found, order="name"))) == 10


def test_a_table_that_others_filled_is_read_as_it_is_and_gets_a_record_on_request() -> None:
    store = filled()
    forget(store)
    g = Graph(store, FIRST)
    assert g.differences() == []
    assert not any("adjoin:declared" in item for item in items(store))
    assert g.migrate(finish=True).ended
    assert any("adjoin:declared" in item for item in items(store))


def test_keys_that_hold_no_records_are_migrated_without_one() -> None:
    class Thing(Node):
        id: int
        name: str
        city: str = "x"

    class Placed(Node, label="THING"):
        id: int
        name: str
        city: str = "x"

    plain = AdjacencyList(partition_key="id", sort_key=None, types={"id": "N"}, reverse=None)
    store = SQLiteStore(":memory:")
    first = replace(plain, keys={Thing: Keys(partition="{id}")})
    Graph(store, [Thing], first).put(Thing(id=1, name="a"))
    own = Keys(partition="{id}", indexes={"ByCity": ("CITY#{city}", "{name}")})
    layout = replace(plain, indexes=[Index("ByCity", "CityKey", "NameKey")], keys={Placed: own})
    g = Graph(store, [Placed], layout)
    assert g.differences() == []
    report = g.migrate(finish=True)
    assert (report.ended, report.written) == (True, 1)
    assert [each.id for each in g.find(Placed, field("city") == "x")] == [1]


# --- one run -----------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_and_says_what_it_costs() -> None:
    store = filled(30)
    g = Graph(store, SECOND)
    before = items(store)
    plan = g.migrate(dry_run=True)
    assert items(store) == before
    assert plan.is_exact
    assert [step.phase for step in plan.steps] == ["expand", "migrate", "migrate", "migrate", "contract"]
    assert plan.items == 60
    with g.meter() as meter:
        report = g.migrate()
    assert report.written == 60
    assert plan.wcu <= meter.wcu <= 2 * plan.wcu
    assert (report.rcu, report.wcu) == pytest.approx((meter.rcu, meter.wcu), abs=8)


def test_it_stops_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.passes.PAGE", 7)
    store = filled(40)
    read: list[MigrationReport] = []
    stop = threading.Event()

    def told(report: MigrationReport) -> None:
        read.append(report)
        if report.read > 20:
            stop.set()

    first = Graph(store, SECOND).migrate(progress=told, stop=stop)
    assert not first.ended
    assert 20 < first.read < 40
    assert read[-1].seconds_left is not None
    assert read[1].wcu < read[2].wcu, "the cost so far, also while the position is not stored yet"
    second = Graph(store, SECOND).migrate()
    assert second.stage == "waiting"
    assert second.read >= len(items(store)) - 1
    assert Graph(store, SECOND).migrate(finish=True).ended


def test_it_takes_no_more_than_its_units() -> None:
    store = filled(40)
    g = Graph(store, SECOND)
    pauses: list[float] = []

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return False

    report = g.migrate(units=50, stop=Waiting())
    assert sum(pauses) + report.seconds >= (report.rcu + report.wcu - 20) / 50


def test_the_former_declarations_take_it_back() -> None:
    store = filled()
    before = {repr(item) for item in items(store)}
    Graph(store, SECOND).migrate()
    assert "GSI3PK" in raw(store, "STUDENT#S1")
    first = Graph(store, FIRST)
    assert first.migrate(finish=True).ended
    assert {repr(item) for item in items(store) if "adjoin:declared" not in item} <= before
    assert [each.at for each in first.into("C1", Enrollment)]
    with pytest.raises(MigrationDue):
        list(Graph(store, SECOND).find(Found, order="name"))


def test_a_required_field_is_filled_by_a_function() -> None:
    class Dated(Node, label="STUDENT"):
        id: str
        name: str
        year: int

    store = filled(3)
    g = Graph(store, [Dated])
    with pytest.raises(InvalidItem):
        g.get(Dated, "S1")
    refused = g.migrate(finish=True, fill={"Dated.year": lambda item: "?"})
    assert (refused.ended, len(refused.refused)) == (False, 3)
    assert "year" in str(refused.refused[0])
    assert g.migrate(finish=True, fill={"Dated.year": lambda item: int(item["name"][1:]) + 2000}).ended
    assert g.get(Dated, "S2") == Dated(id="S2", name="n2", year=2002)
    assert g.migrate(finish=True, fill={"Dated.year": lambda item: 0}).ended
    assert g.get(Dated, "S2") == Dated(id="S2", name="n2", year=2002)


def test_fields_get_their_present_names_and_lose_what_is_dropped_in_the_last_step() -> None:
    class Titled(Node, label="STUDENT"):
        id: str
        title: str = Field(validation_alias=AliasChoices("title", "name"))

    store = filled(3)
    g = Graph(store, [Titled])
    g._store.execute([Put("adjoin", raw(store, "STUDENT#S1") | {"shelf": {"S": "x"}})])
    assert g.get(Titled, "S1") == Titled(id="S1", title="n1")
    g.migrate(drop=["Titled.shelf"])
    assert {"name", "shelf"} <= raw(store, "STUDENT#S1").keys()
    assert g.migrate(finish=True, drop=["Titled.shelf"]).ended
    assert raw(store, "STUDENT#S1").keys() == {"PK", "SK", "title"}
    assert g.get(Titled, "S1") == Titled(id="S1", title="n1")
    with pytest.raises(InvalidValue, match="still declared"):
        g.migrate(drop=["Titled.title"])


def test_validators_see_what_is_stored() -> None:
    class Split(Node, label="STUDENT"):
        id: str
        letter: str
        number: int
        seen: datetime = Field(default_factory=datetime.now)

        @model_validator(mode="before")
        @classmethod
        def split(cls, given: Any) -> Any:
            if isinstance(given, dict) and "name" in given and "letter" not in given:
                given = {**given, "letter": given["name"][0], "number": given["name"][1:]}
            return given

    store = filled(3)
    g = Graph(store, [Split])
    found = g.get(Split, "S2")
    assert found is not None
    assert (found.letter, found.number) == ("n", 2)
    with pytest.raises(MigrationDue, match="may lack their 'letter', which the class makes from other fields"):
        list(g.scan(Split).where(field("letter") == "n"))
    dropped = ["Split.name"]
    assert not g.migrate(drop=dropped).ended
    Graph(store, FIRST).put(Student(id="S3", name="n3"))
    assert g.migrate(finish=True, drop=dropped).ended
    assert g.scan(Split).where(field("letter") == "n").count() == 4
    assert not any("name" in item or "seen" in item for item in items(store)), "what is made from it was stored first"
    assert not g.migrate(dry_run=True, drop=dropped)


def test_a_field_with_a_former_name_keeps_the_value_that_is_read() -> None:
    class Titled(Node, label="STUDENT"):
        id: str
        title: Annotated[str, Field(validation_alias=AliasChoices("title", "name"))]

        @model_validator(mode="before")
        @classmethod
        def long(cls, given: Any) -> Any:
            if isinstance(given, dict) and "name" in given:
                given = {**given, "name": f"number {given['name'][1:]}"}
            return given

    g = Graph(filled(3), [Titled])
    before = list(g.scan(Titled))
    assert before[0].title.startswith("number ")
    with pytest.raises(MigrationDue):
        list(g.scan(Titled).where(field("title") == "number 1"))
    assert g.migrate(finish=True).ended
    assert list(g.scan(Titled)) == before
    assert g.scan(Titled).where(field("title") == "number 1").count() == 1
    assert not g.migrate(dry_run=True)


def test_two_nodes_with_one_unique_value_are_refused_and_it_does_not_end() -> None:
    store = filled(3)
    Graph(store, FIRST).put(Student(id="S9", name="n1"))
    g = Graph(store, [Claimed])
    with pytest.raises(MigrationDue, match="may not have claimed their 'name'"):
        g.get(Claimed, name="n1")
    report = g.migrate(finish=True)
    assert (report.ended, len(report.refused)) == (False, 1)
    assert "same unique value" in str(report.refused[0])
    Graph(store, FIRST).update(Student, "S9", name="n9")
    assert g.migrate(finish=True).ended
    assert g.get(Claimed, name="n9") == Claimed(id="S9", name="n9")


def test_all_tenants_are_migrated_together() -> None:
    store = filled(2)
    for tenant in ("acme", "beta"):
        Graph(store, FIRST, tenant=tenant).put(Student(id="S1", name=tenant))
    g = Graph(store, SECOND)
    acme = Graph(store, SECOND, tenant="acme")
    with pytest.raises(MigrationDue):
        list(acme.find(Found, order="name"))
    with pytest.raises(InvalidRequest, match="through a graph without a tenant"):
        acme.migrate()
    assert g.migrate(finish=True).ended
    assert [each.name for each in acme.find(Found, order="name")] == ["acme"]
    assert [each.name for each in g.for_tenant("beta").find(Found, order="name")] == ["beta"]


def test_arguments_are_checked_before_anything_is_written() -> None:
    store = filled(1)
    g = Graph(store, SECOND)
    before = items(store)
    wrong: list[dict[str, Any]] = [
        {"fill": {"Found.nam": str}},
        {"fill": {"Other.name": str}},
        {"fill": {"name": str}},
        {"fill": {"Found.name": 3}},
        {"fill": 3},
        {"drop": "Found.x"},
        {"units": 0},
        {"units": True},
        {"segments": 0},
        {"finish": 1},
    ]
    for given in wrong:
        with pytest.raises(InvalidValue):
            g.migrate(**given)
    assert items(store) == before


def test_segments_read_everything() -> None:
    store = filled(30)
    g = Graph(store, SECOND)
    assert g.migrate(finish=True, segments=4).ended
    assert len(list(g.find(Found, order="name"))) == 30


def test_an_asynchronous_graph_migrates() -> None:
    async def run() -> list[str]:
        store = AsyncSQLiteStore(":memory:")
        first = AsyncGraph(store, FIRST)
        await first.put_many([Student(id="S1", name="a"), Student(id="S2", name="b")])
        g = AsyncGraph(store, SECOND)
        with pytest.raises(MigrationDue):
            [each async for each in g.find(Found, order="name")]
        assert (await g.migrate(dry_run=True)).items == 2
        assert not (await g.migrate()).ended
        assert (await g.migrate(finish=True)).ended
        assert await g.differences() == []
        return [each.name async for each in g.find(Found, order="name")]

    assert asyncio.run(run()) == ["a", "b"]


def test_verify_finds_and_repairs_items_that_lack_entries_and_orders() -> None:
    store = filled(3)
    g = Graph(store, SECOND)
    audit = g.verify("scan")
    assert {(each.kind, each.name, each.count) for each in audit.findings} == {
        ("index entry", "STUDENT", 3),
        ("index entry", "ENROLLMENT", 3),
    }
    assert g.verify("scan", repair=True).left == 0
    assert g.verify("scan")
    assert g.migrate(dry_run=True).items == 0


def test_verify_finds_and_repairs_index_keys_that_are_not_what_fields_say() -> None:
    store = filled(6)
    g = Graph(store, SECOND)
    assert g.migrate(finish=True).ended
    assert g.verify("scan")
    stale: dict[tuple[str, str], dict[str, str]] = {
        ("STUDENT#S1", "#META"): {"GSI3SK": "n7#STUDENT#S1"},
        ("STUDENT#S2", "ENROLLMENT#COURSE#C0"): {"GSI1PK": "COURSE#C1"},
        ("STUDENT#S3", "ENROLLMENT#COURSE#C1"): {"GSI1SK": "ENROLLMENT#p1#STUDENT#S3", "GSI2SK": "x"},
        ("STUDENT#S4", "ENROLLMENT#COURSE#C0"): {"GSI2PK": "STUDENT#S5"},
    }
    before = {(item["PK"]["S"], item["SK"]["S"]): item for item in items(store)}
    for key, changed in stale.items():
        store.execute([Put("adjoin", before[key] | {name: {"S": value} for name, value in changed.items()})])
    audit = g.verify("scan")
    assert {(each.kind, each.name, each.count) for each in audit.findings} == {
        ("index entry", "STUDENT", 1),
        ("index entry", "ENROLLMENT", 3),
    }
    assert g.verify("scan", repair=True).left == 0
    after = {(item["PK"]["S"], item["SK"]["S"]): item for item in items(store)}
    assert {key: after[key] for key in stale} == {key: before[key] for key in stale}


def test_verify_finds_keys_of_a_reverse_index_that_name_another_node() -> None:
    """These are compared by the engine, without reading every item."""
    store = filled(5)
    g = Graph(store, FIRST)
    edge = next(item for item in items(store) if item["SK"]["S"].startswith("ENROLLMENT#"))
    store.execute([Put("adjoin", edge | {"GSI1PK": {"S": "COURSE#other"}})])
    assert [(each.kind, each.count) for each in g.verify("scan").findings] == [("index entry", 1)]
    assert g.verify("scan", repair=True).left == 0
    assert edge in items(store)


def test_opening_costs_one_read() -> None:
    store = filled(1)
    seen: list[Request] = []

    class Watching(Remote):
        def execute(self, requests: Any) -> list[Response]:
            seen.extend(requests)
            return super().execute(requests)

    Graph(Watching(store), FIRST)
    assert [type(each) for each in seen] == [DescribeTable, Get]


class Counted(Node, label="THING"):
    id: str
    count: int = 0


class Recounted(Node, label="THING"):
    id: str
    visits: int = Field(0, validation_alias=AliasChoices("visits", "count"))


@pytest.mark.parametrize("layout", [None, MaterializedGraph()])
def test_a_relative_change_starts_from_what_is_stored_under_a_former_name(layout: Any) -> None:
    store = SQLiteStore(":memory:")
    older, newer = Graph(store, [Counted], layout), Graph(store, [Recounted], layout)
    older.put_many(Counted(id=id, count=5) for id in ("1", "2"))
    assert newer.update(Recounted, "1", visits=field("visits") + 1).visits == 6
    with newer.transaction() as t:
        t.update(Recounted, "2", visits=field("visits") + 1)
    assert [node.visits for node in newer.scan(Recounted)] == [6, 6]


def test_a_relative_change_is_made_again_if_an_older_program_changes_the_former_name_meanwhile() -> None:
    class Between(SQLiteStore):
        """The older program writes right after the newer one has read."""

        waiting = False

        def execute(self, requests: Sequence[Request]) -> list[Response]:
            found = super().execute(requests)
            if self.waiting and any(isinstance(request, Get) for request in requests):
                self.waiting = False
                older.update(Counted, "1", count=field("count") + 1)
            return found

    store = Between(":memory:")
    older, newer = Graph(store, [Counted]), Graph(store, [Recounted])
    older.put(Counted(id="1", count=5))
    store.waiting = True
    assert newer.update(Recounted, "1", visits=field("visits") + 1).visits == 7
    assert not store.waiting
