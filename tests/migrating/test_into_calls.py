"""Single calls of migrate into another table: what they cost, keep, refuse, and how they stop and go on."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    ChangesTrimmed,
    Child,
    Copy,
    Count,
    Edge,
    Expires,
    Graph,
    Index,
    InvalidRequest,
    InvalidValue,
    Keys,
    MigrationReport,
    Node,
    Sum,
    TableNotEmpty,
    Version,
    field,
)
from adjoin.requests import Put, ReadChanges, Scan, UpdateTable
from adjoin.stores.sqlite import AsyncSQLiteStore, SQLiteStore
from tests.migrating.into_school import MODELS, OTHER, Course, Enrollment, Student, filled, other, stored_raw
from tests.migrating.moves import stored


def everything(graph: Graph, models: list[type[Any]] = MODELS) -> list[str]:
    return sorted(repr(each) for model in models for each in graph.scan(model))


# --- one run -----------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_and_says_what_it_costs() -> None:
    old, new = filled(30), other()
    before = stored(new._store, new)
    plan = old.migrate(into=new, dry_run=True)
    assert stored(new._store, new) == before
    assert plan.is_exact
    assert plan.items == 62
    assert [step.phase for step in plan.steps] == ["expand", "migrate", "migrate", "migrate", "migrate", "contract"]
    assert "'Other'" in plan.steps[-1].what
    with new.meter() as meter:
        report = old.migrate(into=new)
    # The rest are records of the migration.
    assert (plan.rcu, plan.wcu) == pytest.approx((meter.rcu, meter.wcu), abs=8)
    assert (report.rcu, report.wcu) == pytest.approx((meter.rcu, meter.wcu), abs=8)
    assert report.into == "Other"


def test_the_old_table_is_never_written_to() -> None:
    old, new = filled(), other()
    (before,) = old._store.execute([Scan("adjoin")])
    old.migrate(into=new)
    old.migrate(into=new, finish=True)
    assert old._store.execute([Scan("adjoin")]) == [before]


def test_it_stops_and_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.moving.PAGE_ITEMS", 10)
    old, new = filled(40), other()
    stop = threading.Event()
    seen: list[MigrationReport] = []

    def told(report: MigrationReport) -> None:
        seen.append(report)
        if report.read >= 20:
            stop.set()

    first = old.migrate(into=new, progress=told, stop=stop)
    assert first.stage == "reading"
    assert 20 <= first.read < 60
    assert first.seconds_left is not None
    assert "not ended" in str(first)
    second = old.migrate(into=new, progress=seen.append)
    assert second.stage == "waiting"
    assert second.written == 82
    assert second.wcu > first.wcu > 0
    assert [each.read for each in seen] == sorted(each.read for each in seen)
    assert old.migrate(into=new, finish=True).ended
    assert everything(new) == everything(old)


def test_it_throttles_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.moving.PAGE_ITEMS", 10)
    waited: list[float] = []

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            return False

    old, new = filled(20), other()
    report = old.migrate(into=new, units=100, stop=Waiting())
    assert sum(waited) == pytest.approx((report.rcu + report.wcu) / 100, rel=0.2)


def test_after_its_end_it_does_nothing_more() -> None:
    old, new = filled(), other()
    assert old.migrate(into=new, finish=True).ended
    old.put(Course(id="late"))
    new.put(Course(id="new"))
    report = old.migrate(into=new, finish=True)
    assert report.ended
    assert str(report).endswith("programs may use Other now")
    assert new.get(Course, "late") is None
    assert new.get(Course, "new") is not None


def test_dropping_the_new_table_takes_everything_back() -> None:
    old, new = filled(), other()
    old.migrate(into=new)
    new.drop_table()
    again = Graph(new._store, MODELS, OTHER)
    assert old.migrate(into=again, finish=True).ended
    assert everything(again) == everything(old)


def test_both_tables_may_be_in_one_file(tmp_path: Any) -> None:
    old = Graph(tmp_path / "g.db", MODELS)
    old.put_many([Student(id="S1", name="a", email="e"), Course(id="C"), Enrollment(source="S1", target="C", at=1)])
    with Graph(tmp_path / "g.db", MODELS, OTHER) as new:
        assert old.migrate(into=new, finish=True).ended
        assert everything(new) == everything(old)
        assert new.get(Student, email="e") is not None
    old.close()


def test_segments_read_everything() -> None:
    old, new = filled(50), other()
    assert old.migrate(into=new, segments=4, finish=True).ended
    assert everything(new) == everything(old)


def test_an_asynchronous_graph_moves() -> None:
    async def run() -> None:
        old, new = (
            AsyncGraph(AsyncSQLiteStore(":memory:"), MODELS),
            AsyncGraph(AsyncSQLiteStore(":memory:"), MODELS, OTHER),
        )
        await old.put_many([Student(id=f"S{at}", name="a", email=f"e{at}") for at in range(5)])
        assert (await old.migrate(into=new, dry_run=True)).items == 5
        assert (await old.migrate(into=new)).stage == "waiting"
        await old.delete(Student, "S1")
        assert (await old.migrate(into=new, finish=True)).ended
        assert sorted([each.id async for each in new.find(Student, field("name") == "a")]) == ["S0", "S2", "S3", "S4"]
        assert await new.get(Student, email="e1") is None

    asyncio.run(run())


# --- what is kept ------------------------------------------------------------------------------


class Account(Node):
    id: str
    version: Annotated[int, Version()] = 0
    owed: Annotated[Decimal, Sum("Owes", field="amount")] = Decimal(0)
    debts: Annotated[int, Count("Owes", consistency="transaction")] = 0


class Bill(Node):
    id: str
    title: str = ""
    notes: Annotated[int, Count("Remark")] = 0
    until: Annotated[datetime | None, Expires()] = None


class Remark(Child[Bill], key=("at",)):
    at: int


class Owes(Edge[Account, Bill]):
    amount: Decimal
    title: Annotated[str, Copy("target.title")] = ""


COUNTED: list[type[Any]] = [Account, Bill, Remark, Owes]


@pytest.mark.parametrize("layout", [AdjacencyList(table="Other"), OTHER])
def test_aggregates_copies_and_versions_are_right_in_the_new_table(layout: Any) -> None:
    old = Graph(SQLiteStore(":memory:"), COUNTED)
    old.put_many(Account(id=f"A{at}") for at in range(3))
    old.put_many(Bill(id=f"B{at}", title=f"t{at}") for at in range(4))
    for at in range(9):
        old.put(Owes(source=f"A{at % 3}", target=f"B{at % 4}", amount=Decimal(at)))
    old.put_many(Remark(parent=f"B{at % 2}", at=at) for at in range(5))
    old.maintain(once=True)
    new = other(layout, COUNTED)
    old.migrate(into=new)
    # Counts of the new table are kept while more is written.
    new.maintain(once=True)
    account = old.get(Account, "A0")
    assert account is not None
    old.put(account)
    old.disconnect(Owes, "A1", "B1")
    old.update(Owes, "A2", "B2", amount=Decimal(100))
    old.update(Bill, "B0", title="changed")
    old.delete(Remark, ("B0", 0))
    old.delete(Account, "A2")
    assert old.migrate(into=new, finish=True).ended
    old.maintain(once=True)
    assert everything(new, COUNTED) == everything(old, COUNTED)
    account = new.get(Account, "A0")
    assert account is not None
    assert (account.version, account.debts) == (1, 3)
    assert new.verify("scan")


def test_aggregates_that_cannot_be_counted_any_more_need_a_rebuild() -> None:
    class Forgetful:
        """A store whose change stream has lost what comes after the first position that is asked for."""

        creates_tables = True

        def __init__(self, inner: SQLiteStore) -> None:
            self.inner, self.is_asked = inner, False

        def execute(self, requests: Any) -> Any:
            if isinstance(requests[0], ReadChanges) and requests[0].after is not None and not self.is_asked:
                self.is_asked = True
                raise ChangesTrimmed("gone")
            return self.inner.execute(requests)

        def close(self) -> None:
            pass

    old, new = Graph(SQLiteStore(":memory:"), COUNTED), other(models=COUNTED)
    old.put_many([Bill(id="B"), *(Remark(parent="B", at=at) for at in range(5))])
    old.migrate(into=new)
    new.maintain(once=True)
    forgetful = Graph(Forgetful(new._store), COUNTED, OTHER)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="run rebuild with the new graph"):
        old.migrate(into=forgetful, finish=True)
    new.rebuild("scan")
    assert old.migrate(into=new, finish=True).ended
    bill = new.get(Bill, "B")
    assert bill is not None
    assert bill.notes == 5


def test_tenants_move_each_to_its_own() -> None:
    old, new = filled(2), other()
    for tenant in ("acme", "beta"):
        old.for_tenant(tenant).put(Student(id="S1", name=tenant, email="same"))
    old.migrate(into=new)
    old.for_tenant("acme").update(Student, "S1", name="renamed")
    old.for_tenant("beta").delete(Student, "S1")
    assert old.migrate(into=new, finish=True).ended
    assert new.for_tenant("acme").get(Student, email="same") == Student(id="S1", name="renamed", email="same")
    assert new.for_tenant("beta").get(Student, "S1") is None
    assert new.for_tenant("beta").get(Student, email="same") is None
    assert everything(new) == everything(old)


class Hub(Node):
    id: str


class Spoke(Edge[Hub, Hub]):
    pass


def test_a_delete_that_has_not_ended_can_be_ended_in_the_new_table() -> None:
    class Stopping:
        """The store of a program that ends after some requests."""

        creates_tables = True

        def __init__(self, inner: SQLiteStore, left: int) -> None:
            self.inner, self.left = inner, left

        def execute(self, requests: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return self.inner.execute(requests)

        def close(self) -> None:
            pass

    for left in range(4, 9):
        store = SQLiteStore(":memory:")
        old = Graph(store, [Hub, Spoke])
        old.put_many(Hub(id=f"H{at}") for at in range(151))
        old.put_many(Spoke(source="H0", target=f"H{at}") for at in range(1, 151))
        new = other(models=[Hub, Spoke])
        if left % 2:
            old.migrate(into=new)
        with pytest.raises(KeyboardInterrupt):
            Graph(Stopping(store, left), [Hub, Spoke]).delete(Hub, "H0")
        assert old.migrate(into=new, finish=True).ended
        assert everything(new, [Hub, Spoke]) == everything(old, [Hub, Spoke])
        assert new.delete(Hub, "H0")
        assert not list(new.scan(Spoke))
        assert not any("deleting" in key for key in stored(new._store, new))


def test_edges_of_nodes_that_expire_keep_when_they_were_written() -> None:
    class Session(Node):
        id: str
        until: Annotated[datetime | None, Expires()] = None

    class Uses(Edge[Session, Course]):
        pass

    models: list[type[Any]] = [Session, Course, Uses]
    old, new = Graph(SQLiteStore(":memory:"), models), other(models=models)
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    old.put_many([Session(id="x", until=soon), Course(id="C"), Uses(source="x", target="C")])
    assert old.migrate(into=new, finish=True).ended
    assert new.get(Session, "x") == Session(id="x", until=soon)
    (there,) = (item for item in stored_raw(new) if "adjoin:written" in item)
    (here,) = (item for item in stored_raw(old) if "adjoin:written" in item)
    assert there["adjoin:written"] == here["adjoin:written"]


def test_attributes_that_no_field_explains_move_along() -> None:
    old, new = filled(1), other()
    item = next(each for each in stored_raw(old) if each["PK"] == {"S": "COURSE#C0"})
    old._store.execute([Put("adjoin", item | {"room": {"S": "1.02"}, "GSI1PK": {"S": "x"}})])
    assert old.migrate(into=new, finish=True, drop=[]).ended
    (there,) = (each for each in stored_raw(new) if "room" in each)
    assert there["room"] == {"S": "1.02"}
    dropped = other()
    assert old.migrate(into=dropped, finish=True, drop=["Course.room"]).ended
    assert not any("room" in each for each in stored_raw(dropped))


def test_an_attribute_whose_name_the_new_layout_uses_is_not_overwritten() -> None:
    old, new = filled(1), other()
    item = next(each for each in stored_raw(old) if each["PK"] == {"S": "COURSE#C0"})
    old._store.execute([Put("adjoin", item | {"NodeId": {"S": "mine"}})])
    report = old.migrate(into=new, finish=True)
    assert not report.ended
    assert "'NodeId' that no field explains" in str(report.refused[0])


def test_items_of_no_class_stay_and_are_counted() -> None:
    old, new = filled(1), other()
    old._store.execute([Put("adjoin", {"PK": {"S": "COUNTER"}, "SK": {"S": "x"}, "n": {"N": "3"}})])
    report = old.migrate(into=new, finish=True)
    assert (report.ended, report.others) == (True, 1)
    assert "1 are of no class and stay in the old table" in str(report)
    assert "leave 1 items of no class" in str(old.migrate(into=other(), dry_run=True))


# --- what is refused ---------------------------------------------------------------------------


def test_items_that_cannot_be_read_are_named_and_moved_when_they_are_corrected() -> None:
    old, new = filled(3), other()
    item = next(each for each in stored_raw(old) if each["PK"] == {"S": "STUDENT#S1"} and each["SK"] == {"S": "#META"})
    broken = {name: value for name, value in item.items() if name != "name"}
    old._store.execute([Put("adjoin", broken)])
    first = old.migrate(into=new, finish=True)
    assert (first.ended, first.stage, len(first.refused)) == (False, "waiting", 1)
    assert "Student" in str(first.refused[0])
    assert not old.migrate(into=new, finish=True).ended
    old._store.execute([Put("adjoin", item)])
    assert old.migrate(into=new, finish=True).ended
    assert everything(new) == everything(old)


def test_more_items_than_are_remembered_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.plans.migrating.moving.SHOWN", 2)
    old, new = filled(6), other()
    whole = stored_raw(old)
    broken = [each for each in whole if "email" in each and each["SK"] == {"S": "#META"}]
    for each in broken:
        old._store.execute([Put("adjoin", {name: value for name, value in each.items() if name != "name"})])
    assert len(old.migrate(into=new).refused) == 2
    for each in broken:
        old._store.execute([Put("adjoin", each)])
    assert old.migrate(into=new, finish=True).ended
    assert everything(new) == everything(old)


def test_two_nodes_with_one_unique_value_do_not_replace_each_other() -> None:
    class Plain(Node, label="STUDENT"):
        id: str
        name: str
        email: str

    Plain.__name__ = "Student"
    old = Graph(SQLiteStore(":memory:"), [Plain])
    old.put_many(Plain(id=f"S{at}", name="n", email=f"e{at % 2}") for at in range(3))
    new = other(models=[Student])
    report = old.migrate(into=new, finish=True)
    assert (report.ended, len(report.refused)) == (False, 1)
    assert "the same unique value" in str(report.refused[0])
    old.update(Plain, "S0", email="e7")
    assert old.migrate(into=new, finish=True).ended
    assert [new.get(Student, email=f"e{at}").id for at in (0, 1, 7)] == ["S2", "S1", "S0"]  # type: ignore[union-attr]


def test_a_table_that_has_items_is_refused() -> None:
    old, new = filled(1), other()
    new.put(Course(id="mine"))
    with pytest.raises(TableNotEmpty, match="'Other' already has items"):
        old.migrate(into=new)
    with pytest.raises(InvalidValue, match="same table"):
        old.migrate(into=old)
    with pytest.raises(InvalidValue, match="graph of another table"):
        old.migrate(into="other.db")  # type: ignore[call-overload]
    with pytest.raises(InvalidRequest, match="without a tenant"):
        old.for_tenant("acme").migrate(into=other())


def test_a_table_is_filled_from_one_other_only_and_by_one_run_at_a_time() -> None:
    old, new = filled(1), other()
    elsewhere = other(AdjacencyList(table="Third"))
    old.migrate(into=new)
    with pytest.raises(InvalidRequest, match="is filled from 'adjoin', and not from 'Third'"):
        elsewhere.migrate(into=new)
    other_run = Graph(old._store, MODELS)
    seen: list[str] = []

    def meanwhile(report: MigrationReport) -> None:
        if not seen:
            seen.append(report.stage)
            with pytest.raises(InvalidRequest, match="was at work 0 seconds ago"):
                other_run.migrate(into=new)

    old.migrate(into=new, progress=meanwhile, finish=True)
    assert seen


def test_a_table_without_a_change_stream_moves_only_when_nobody_writes() -> None:
    old, new = filled(3), other()
    old._store.execute([UpdateTable("adjoin", stream="off")])
    with pytest.raises(InvalidRequest, match="has no change stream"):
        old.migrate(into=new)
    assert old.migrate(into=new, finish=True).ended
    assert everything(new) == everything(old)


def test_a_migration_that_was_stopped_too_long_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = filled(3), other()
    old.migrate(into=new)

    class Trimmed:
        creates_tables = True

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def execute(self, requests: Any) -> Any:
            if type(requests[0]).__name__ == "ReadChanges":
                raise ChangesTrimmed("gone")
            return self.inner.execute(requests)

        def close(self) -> None:
            pass

    with pytest.raises(ChangesTrimmed, match="drop the table 'Other', and start again"):
        Graph(Trimmed(old._store), MODELS).migrate(into=new)


def test_programs_that_still_write_are_found_out() -> None:
    old, new = filled(3), other()
    old.migrate(into=new)
    late = Graph(old._store, MODELS)
    old._clock = lambda: __import__("time").time() - 120
    late.put(Course(id="late"))
    with pytest.raises(InvalidRequest, match="programs still write to the table 'adjoin'"):
        old.migrate(into=new, finish=True)


def test_keys_that_are_not_text_have_their_state_in_the_other_table() -> None:
    class Thing(Node):
        id: int
        name: str

    plain = AdjacencyList(
        table="Plain", partition_key="id", sort_key=None, types={"id": "N"}, reverse=None, keys={Thing: Keys("{id}")}
    )
    old, new = Graph(SQLiteStore(":memory:"), [Thing]), other(plain, [Thing])
    old.put_many(Thing(id=at, name=f"n{at}") for at in range(5))
    assert old.migrate(into=new).stage == "waiting"
    old.delete(Thing, 3)
    assert old.migrate(into=new, finish=True).ended
    assert sorted(each.id for each in new.scan(Thing)) == [0, 1, 2, 4]
    back = other(replace(OTHER, table="Back"), [Thing])
    assert new.migrate(into=back, finish=True).ended
    assert everything(back, [Thing]) == everything(new, [Thing])
    assert old.migrate(into=new).ended


def test_a_table_of_an_existing_program_moves_and_back() -> None:
    legacy = AdjacencyList(
        table="Legacy",
        partition_key="id",
        sort_key="range",
        node="{node}",
        edge="{target}",
        type_attribute=None,
        reverse=Index("Reverse", "range", "id"),
    )

    class Takes(Edge[Student, Course]):
        at: int

    models: list[type[Any]] = [Student, Course, Takes]
    old = Graph(SQLiteStore(":memory:"), models, legacy)
    old.put_many([Student(id="S1", name="a", email="e"), Course(id="C"), Takes(source="S1", target="C", at=3)])
    new = other(models=models)
    assert old.migrate(into=new, finish=True).ended
    back = other(legacy, models)
    assert new.migrate(into=back, finish=True).ended
    assert stored(back._store, back) == stored(old._store, old)
