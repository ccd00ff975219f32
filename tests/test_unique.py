"""Unique fields: one node a value, whoever writes, and however nodes come and go."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    ConditionFailed,
    Edge,
    Expires,
    Graph,
    Indexed,
    InvalidKey,
    InvalidRequest,
    InvalidValue,
    MaterializedGraph,
    Node,
    NotFound,
    TransactionCanceled,
    Unique,
    UnknownField,
    field,
)
from adjoin.errors import CancellationReason
from adjoin.layouts.interface import OWNER, Layout
from adjoin.plans import deletion
from adjoin.requests import Delete, Get, Put, Request, Response, TransactWrite
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from tests.growing import scanned
from tests.servers.open import Stores
from tests.waiting import LIMIT


class Student(Node):
    id: str
    email: Annotated[str | None, Unique()] = None
    badge: Annotated[int | None, Unique()] = None
    name: str = ""
    version: int = 0
    until: Annotated[dt.datetime | None, Expires()] = None


class Friend(Edge[Student, Student]):
    pass


LAYOUTS: dict[str, Layout] = {"adjacency list": AdjacencyList(), "materialized graph": MaterializedGraph()}


@pytest.fixture(params=[(store, layout) for store in ("embedded", "ministack") for layout in LAYOUTS])
def g(request: pytest.FixtureRequest, servers: Stores) -> Any:
    where, layout = request.param
    store: Store = SQLiteStore(":memory:") if where == "embedded" else servers.open("ministack")
    graph = Graph(store, [Student, Friend], LAYOUTS[layout])
    graph.create_table()
    yield graph
    graph.close()


@pytest.fixture
def local() -> Any:
    with Graph(":memory:", [Student, Friend]) as graph:
        yield graph


def claims(graph: Graph) -> dict[str, str]:
    """Who has which unique value, as it is stored."""
    key = graph._layout.definition.partition.name
    return {item[key]["S"].removeprefix("#="): item[OWNER]["S"] for item in scanned(graph) if OWNER in item}


def test_a_value_belongs_to_one_node(g: Any) -> None:
    g.put(Student(id="a", email="a@x", badge=7))
    for write in (g.add, g.put, lambda node: g.put_many([node])):
        with pytest.raises(AlreadyExists, match=r"Student.email is unique, and 'a@x' belongs to Student 'a'; choose"):
            write(Student(id="b", email="a@x"))
        with pytest.raises(AlreadyExists, match=r"Student.badge is unique, and 7 belongs to Student 'a'"):
            write(Student(id="b", badge=7))
    assert g.get(Student, "b") is None
    g.add(Student(id="b", email="b@x"))
    with pytest.raises(AlreadyExists, match="'a@x' belongs to Student 'a'"):
        g.update(Student, "b", email="a@x")
    with pytest.raises(AlreadyExists, match="'a@x' belongs to Student 'a'"):
        g.update(Student, "b", badge=8, email="a@x")
    assert g.get(Student, "b") == Student(id="b", email="b@x")
    assert claims(g) == {
        "STUDENT#email#a@x": "STUDENT#a",
        "STUDENT#badge#p501.7": "STUDENT#a",
        "STUDENT#email#b@x": "STUDENT#b",
    }


def test_found_by_its_value(g: Any) -> None:
    g.put(Student(id="a", email="a@x", badge=-7))
    assert g.get(Student, email="a@x") == g.get(Student, badge=-7) == g.get(Student, "a", consistent=True)
    assert g.get(Student, email="b@x") is None
    with g.meter() as meter:
        g.get(Student, email="a@x", consistent=True)
    assert meter.requests == 2
    assert g.get(Student, email="A@x") is None, "text is compared as it is"


def test_a_node_may_be_written_again_with_its_own_value(g: Any) -> None:
    g.add(Student(id="a", email="a@x"))
    with pytest.raises(AlreadyExists, match="Student 'a' already exists"):
        g.add(Student(id="a", email="a@x"))
    g.put(Student(id="a", email="a@x", name="A"))
    g.update(Student, "a", name="B", email="a@x")
    g.put_many([Student(id="a", email="a@x", name="C"), Student(id="a", email="c@x", name="D")])
    assert g.get(Student, email="c@x").name == "D"
    assert claims(g) == {"STUDENT#email#c@x": "STUDENT#a"}


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.put(Student(id="a", email="new@x")),
        lambda g: g.put(Student(id="a")),
        lambda g: g.update(Student, "a", email="new@x"),
        lambda g: g.update(Student, "a", email=None),
        lambda g: g.delete(Student, "a"),
        lambda g: g.put_many([Student(id="a")]),
    ],
)
def test_a_value_that_is_given_up_is_free(g: Any, change: Callable[[Any], Any]) -> None:
    g.put(Student(id="a", email="a@x"))
    change(g)
    assert g.get(Student, email="a@x") is None
    g.add(Student(id="b", email="a@x"))
    assert g.get(Student, email="a@x").id == "b"
    assert claims(g)["STUDENT#email#a@x"] == "STUDENT#b"


def test_a_large_delete_frees_values_too(g: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MAX_TRANSACTION", 4)
    g.put(Student(id="a", email="a@x", badge=1))
    g.put_many([Friend(source="a", target=str(number)) for number in range(9)])
    assert g.delete(Student, "a")
    assert scanned(g) == []
    g.add(Student(id="b", email="a@x", badge=1))


def test_none_is_nobody_s(g: Any) -> None:
    g.put_many([Student(id="a"), Student(id="b")])
    assert claims(g) == {}
    g.update(Student, "a", email="a@x")
    g.update(Student, "b", badge=0)
    assert claims(g) == {"STUDENT#email#a@x": "STUDENT#a", "STUDENT#badge#o": "STUDENT#b"}


def test_conditions_and_versions_hold_as_elsewhere(g: Any) -> None:
    with pytest.raises(NotFound, match="no Student 'a'"):
        g.update(Student, "a", email="a@x")
    g.put(Student(id="a", email="a@x"))
    assert g.update(Student, "a", if_version=0, email="b@x").version == 1
    with pytest.raises(ConditionFailed, match="version is 1"):
        g.update(Student, "a", if_version=0, email="c@x")
    with pytest.raises(ConditionFailed):
        g.update(Student, "a", only_if=field("name") == "B", email="c@x")
    with pytest.raises(ConditionFailed):
        g.put(Student(id="a", email="c@x"), only_if=field("name") == "B")
    with pytest.raises(NotFound):
        g.put(Student(id="z", email="c@x"), only_if=field("name") == "B")
    assert claims(g) == {"STUDENT#email#b@x": "STUDENT#a"}
    assert g.update(Student, "a", badge=field("badge") + 3).badge == 3
    assert g.update(Student, "a", badge=field("badge") - 5, if_version=2).badge == -2
    assert g.get(Student, badge=-2).version == 3


# --- transactions ------------------------------------------------------------------------------


def test_in_transactions(g: Any) -> None:
    with g.transaction() as t:
        t.add(Student(id="a", email="a@x"))
        t.put(Student(id="b", email="b@x"))
    with pytest.raises(TransactionCanceled, match="'a@x' belongs to Student 'a'"), g.transaction() as t:
        t.put(Student(id="c", name="not written"))
        t.update(Student, "b", email="a@x")
    with pytest.raises(TransactionCanceled, match="'a@x' belongs to Student 'a'"), g.transaction() as t:
        t.add(Student(id="c", email="a@x"))
    assert g.get(Student, "c") is None
    with g.transaction() as t:
        t.update(Student, "a", email="aa@x")
        t.delete(Student, "b")
    g.put_many([Student(id="c", email="a@x"), Student(id="d", email="b@x")])
    with g.transaction() as t:
        t.put(Student(id="c", email="cc@x"))
        t.add(Student(id="e", email="e@x"))
    assert claims(g) == {
        "STUDENT#email#aa@x": "STUDENT#a",
        "STUDENT#email#cc@x": "STUDENT#c",
        "STUDENT#email#b@x": "STUDENT#d",
        "STUDENT#email#e@x": "STUDENT#e",
    }


def test_a_transaction_takes_a_value_once(local: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"add Student 'a'.*add Student 'b'"), local.transaction() as t:
        t.add(Student(id="a", email="a@x"))
        t.add(Student(id="b", email="a@x"))


# --- claims whose owner is gone ----------------------------------------------------------------


def forget(graph: Any, id: str) -> None:
    """Removes a node as its expiry does, or another program: without what stands beside it."""
    layout = graph._layout
    graph._store.execute((Delete(layout.table, layout.node_key(layout.schema.node(Student), id)),))


@pytest.mark.parametrize(
    "write",
    [
        lambda g: g.add(Student(id="b", email="a@x")),
        lambda g: g.put(Student(id="b", email="a@x")),
        lambda g: g.put_many([Student(id="b", email="a@x")]),
        lambda g: (g.put(Student(id="b")), g.update(Student, "b", email="a@x")),
        lambda g: _in_transaction(g, lambda t: t.add(Student(id="b", email="a@x"))),
        lambda g: _in_transaction(g, lambda t: t.put(Student(id="b", email="a@x"))),
        lambda g: (g.put(Student(id="b")), _in_transaction(g, lambda t: t.update(Student, "b", email="a@x"))),
    ],
)
def test_a_claim_whose_node_is_gone_is_taken_over(g: Any, write: Callable[[Any], Any]) -> None:
    g.put(Student(id="a", email="a@x", badge=1))
    forget(g, "a")
    assert g.get(Student, email="a@x") is None
    write(g)
    assert g.get(Student, email="a@x").id == "b"
    assert g.get(Student, badge=1) is None


def _in_transaction(g: Any, step: Callable[[Any], None]) -> bool:
    with g.transaction() as t:
        step(t)
    return True


def test_a_claim_of_a_node_that_has_another_value_is_taken_over(local: Any) -> None:
    local.put(Student(id="a", email="a@x"))
    key = local._layout.claim_key(local._layout.schema.node(Student), "email", "old@x")
    local._store.execute((Put("adjoin", key | {OWNER: {"S": "STUDENT#a"}}),))
    local.add(Student(id="b", email="old@x"))
    assert local.get(Student, email="old@x").id == "b"
    assert local.get(Student, email="a@x").id == "a"


def test_a_value_that_another_node_got_meanwhile_is_left_to_it(local: Any) -> None:
    """An expired node may be there longer than its claim; what it had is another's then."""
    local.put(Student(id="a", email="x"))
    kind = local._layout.schema.node(Student)
    local._store.execute((Delete("adjoin", local._layout.claim_key(kind, "email", "x")),))
    local.add(Student(id="b", email="x"))
    local.put(Student(id="a", email="y"))
    assert claims(local) == {"STUDENT#email#x": "STUDENT#b", "STUDENT#email#y": "STUDENT#a"}
    for step in ("delete", "transaction"):
        local.put(Student(id="a", email=step))
        local._store.execute((Delete("adjoin", local._layout.claim_key(kind, "email", step)),))
        local.put(Student(id="c", email=step))
        if step == "delete":
            local.delete(Student, "a")
        else:
            _in_transaction(local, lambda t: t.delete(Student, "a"))
        assert local.get(Student, "a") is None
        assert claims(local)[f"STUDENT#email#{step}"] == "STUDENT#c"


class Meanwhile:
    """Lets something happen once, before the first request of a kind."""

    def __init__(self, inner: Store, before: type[Request], event: Callable[[], object]) -> None:
        self.inner, self.creates_tables = inner, inner.creates_tables
        self._before, self._event = before, event
        self.is_armed = False

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        if self.is_armed and any(type(request) is self._before for request in requests):
            self.is_armed = False
            self._event()
        return self.inner.execute(requests)

    def close(self) -> None:
        self.inner.close()


def test_a_claim_is_not_taken_over_from_who_takes_it_up_again() -> None:
    store = SQLiteStore(":memory:")
    other = Graph(store, [Student, Friend])
    other.put(Student(id="a", email="x"))
    forget(other, "a")
    looked: list[Get] = []

    class AfterTheLook(Meanwhile):
        def execute(self, requests: Sequence[Request]) -> list[Response]:
            answers = self.inner.execute(requests)
            if self.is_armed and isinstance(requests[0], Get):
                looked.append(requests[0])
                if requests[0].key == {"PK": {"S": "STUDENT#a"}, "SK": {"S": "#META"}}:
                    self.is_armed = False
                    other.put(Student(id="a", email="x"))
            return answers

    between = AfterTheLook(store, Get, lambda: None)
    graph = Graph(between, [Student, Friend])
    between.is_armed = True
    with pytest.raises(AlreadyExists, match="'x' belongs to Student 'a'"):
        graph.add(Student(id="b", email="x"))
    assert looked
    assert graph.get(Student, "b") is None
    assert graph.get(Student, email="x").id == "a"  # type: ignore[union-attr]


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize(
    "put", [lambda g, node: g.put(node), lambda g, node: _in_transaction(g, lambda t: t.put(node))]
)
def test_who_puts_a_node_that_comes_or_goes_meanwhile_reads_again(put: Callable[..., Any], was_there: bool) -> None:
    store = SQLiteStore(":memory:")
    other = Graph(store, [Student, Friend])
    if was_there:
        other.put(Student(id="a", email="theirs"))
    come, go = lambda: other.put(Student(id="a", email="theirs")), lambda: other.delete(Student, "a")
    between = Meanwhile(store, TransactWrite, go if was_there else come)
    graph = Graph(between, [Student, Friend])
    between.is_armed = True
    put(graph, Student(id="a", email="mine"))
    assert not between.is_armed
    assert claims(graph) == {"STUDENT#email#mine": "STUDENT#a"}
    with pytest.raises(NotFound):
        between._event, between.is_armed = lambda: other.delete(Student, "a"), True
        graph.update(Student, "a", email="other")
    assert claims(graph) == {}


def test_a_transaction_that_the_service_cancels_is_nobodys_claim() -> None:
    class Busy(Meanwhile):
        def execute(self, requests: Sequence[Request]) -> list[Response]:
            if isinstance(requests[0], TransactWrite):
                tried.append(requests[0])
                raise TransactionCanceled("busy", [CancellationReason("ThrottlingError")] * len(requests[0].writes))
            return self.inner.execute(requests)

    tried: list[TransactWrite] = []
    graph = Graph(Busy(SQLiteStore(":memory:"), Get, lambda: None), [Student, Friend])
    with pytest.raises(TransactionCanceled, match="busy"):
        graph.add(Student(id="a", email="x"))
    assert len(tried) == 1
    assert graph.get(Student, "a") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.update(Student, "a", email="mine"),
        lambda g: g.put(Student(id="a", email="mine", name="theirs")),
        lambda g: g.delete(Student, "a"),
        lambda g: _in_transaction(g, lambda t: t.update(Student, "a", email="mine")),
        lambda g: _in_transaction(g, lambda t: t.put(Student(id="a", email="mine", name="theirs"))),
        lambda g: _in_transaction(g, lambda t: t.delete(Student, "a")),
    ],
)
def test_who_comes_second_reads_again(change: Callable[[Any], Any]) -> None:
    store = SQLiteStore(":memory:")
    other = Graph(store, [Student, Friend])
    other.put(Student(id="a", email="x", badge=1))
    between = Meanwhile(store, TransactWrite, lambda: other.update(Student, "a", email="theirs", badge=2))
    graph = Graph(between, [Student, Friend])
    between.is_armed = True
    change(graph)
    assert not between.is_armed
    node = graph.get(Student, "a")
    expected = {} if node is None else {"STUDENT#email#mine": "STUDENT#a"}
    if node is not None and node.badge is not None:
        assert (node.badge, node.version) == (2, 2)
        expected["STUDENT#badge#p501.2"] = "STUDENT#a"
    assert claims(graph) == expected


# --- expiry ------------------------------------------------------------------------------------


def test_a_claim_expires_with_its_node() -> None:
    now = 1_700_000_000.0
    times = [now]
    store = SQLiteStore(":memory:", clock=lambda: times[0])
    graph = Graph(store, [Student, Friend])
    until = dt.datetime.fromtimestamp(now + 60, dt.UTC)
    graph.put(Student(id="a", email="x", until=until))
    assert {item["until"]["N"] for item in scanned(graph)} == {str(int(now) + 60)}
    later = dt.datetime.fromtimestamp(now + 600, dt.UTC)
    graph.update(Student, "a", until=later)
    assert {item["until"]["N"] for item in scanned(graph)} == {str(int(now) + 600)}
    times[0] += 10_000
    graph.add(Student(id="b", email="x"))
    assert claims(graph) == {"STUDENT#email#x": "STUDENT#b"}


# --- what is refused ---------------------------------------------------------------------------


class Price(Node):
    id: str
    amount: Annotated[Decimal, Unique()] = Decimal(0)
    shop: Annotated[str, Indexed()] = ""


def test_numbers_are_compared_as_numbers() -> None:
    with Graph(":memory:", [Price]) as graph:
        graph.put(Price(id="a", amount=Decimal("1.10")))
        with pytest.raises(AlreadyExists):
            graph.put(Price(id="b", amount=Decimal("1.1")))
        assert graph.get(Price, amount=Decimal("1.100")) == Price(id="a", amount=Decimal("1.10"))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.get(Student), InvalidValue, "get needs the id of the Student or its email or badge; pass it"),
        (lambda g: g.get(Student, mail="x"), UnknownField, "did you mean 'email'"),
        (lambda g: g.get(Student, name="x"), InvalidKey, "Student.name is not unique.*Unique()"),
        (lambda g: g.get(Student, "a", email="x"), InvalidValue, "one of them"),
        (lambda g: g.get(Student, email="x", badge=1), InvalidValue, "one of them"),
        (lambda g: g.get(Student, badge="many"), InvalidValue, "Student.badge"),
        (lambda g: g.put(Student(id="a", email="x" * 3000)), InvalidKey, "the claim to Student.email.*2,048"),
        (lambda g: g.put(Student(id="a", email="\ud800")), (InvalidKey, InvalidValue), "surrogate"),
        (lambda g: g.update(Student, "a", badge=field("badge") + "x"), InvalidValue, "'x' is not a number"),
        (lambda g: g.update(Student, "a", badge=field("bodge") + 1), UnknownField, "did you mean 'badge'"),
        (lambda g: g.update(Student, "a", bodge=1), UnknownField, "did you mean 'badge'"),
        (lambda g: g.update(Student, "a"), InvalidValue, "no field"),
        (lambda g: g.update(Student, "a", id="b"), InvalidValue, "'id'"),
    ],
)
def test_what_is_refused(local: Any, call: Callable[[Any], Any], error: Any, words: str) -> None:
    local.put(Student(id="a", badge=3))
    before = scanned(local)
    with pytest.raises(error, match=words):
        call(local)
    assert scanned(local) == before


# --- many at once ------------------------------------------------------------------------------


def race(graph: Graph, number: int) -> list[str]:
    """Takes each of ten names, by any way there is; says which it got."""
    got = []
    for name in range(10):
        me = f"{number}-{name}"
        try:
            match (number + name) % 4:
                case 0:
                    graph.add(Student(id=me, email=f"{name}@x"))
                case 1:
                    graph.put(Student(id=me, email=f"{name}@x"))
                case 2:
                    graph.put(Student(id=me))
                    graph.update(Student, me, email=f"{name}@x")
                case 3:
                    with graph.transaction() as t:
                        t.add(Student(id=me, email=f"{name}@x"))
            got.append(me)
        except AlreadyExists:
            pass
        except TransactionCanceled as canceled:
            if "belongs to" not in str(canceled):
                raise
    return got


def check_race(graph: Graph, got: list[str]) -> None:
    assert sorted(me.partition("-")[2] for me in got) == [str(name) for name in range(10)]
    for me in got:
        assert graph.get(Student, email=f"{me.partition('-')[2]}@x", consistent=True).id == me  # type: ignore[union-attr]
    assert sorted(claims(graph).values()) == sorted(f"STUDENT#{me}" for me in got)


@pytest.mark.parametrize("where", ["embedded", "ministack"])
def test_threads_agree(where: str, tmp_path: Path, servers: Stores) -> None:
    store: Any = (
        SQLiteStore(str(tmp_path / "g.db"), durability="process") if where == "embedded" else servers.open("ministack")
    )
    graph = Graph(store, [Student, Friend])
    graph.create_table()
    with ThreadPoolExecutor(4) as pool:
        got = [me for some in pool.map(lambda number: race(graph, number), range(4)) for me in some]
    check_race(graph, got)
    graph.close()


def test_processes_agree(tmp_path: Path) -> None:
    path = str(tmp_path / "g.db")
    with Graph(f"{path}?durability=process", [Student, Friend]) as graph:
        workers = [
            subprocess.Popen([sys.executable, "-m", "tests.test_unique", path, str(number)], stdout=subprocess.PIPE)
            for number in range(3)
        ]
        got = [me for worker in workers for me in worker.communicate(timeout=LIMIT)[0].decode().split()]
        assert [worker.returncode for worker in workers] == [0, 0, 0]
        check_race(graph, got)


def test_a_counter_in_a_unique_field_loses_nothing(tmp_path: Path) -> None:
    graph = Graph(f"{tmp_path / 'g.db'}?durability=process", [Student, Friend])
    graph.put(Student(id="a", badge=0, email="x"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: graph.update(Student, "a", badge=field("badge") + 1), range(40)))
    assert graph.get(Student, badge=40) == Student(id="a", badge=40, email="x", version=40)
    assert len(claims(graph)) == 2
    graph.close()


if __name__ == "__main__":
    with Graph(f"{sys.argv[1]}?durability=process", [Student, Friend]) as opened:
        print(*race(opened, int(sys.argv[2])))
