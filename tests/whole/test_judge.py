"""The judge finds each fault that there can be: one that finds nothing would judge every run well."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adjoin import Graph
from adjoin.copying import copy
from adjoin.expressions import Set, Value, attribute
from adjoin.requests import CreateTable, Delete, Put, Request, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition
from tests.whole.journal import Broken, Journal, Operation, Told, replayed
from tests.whole.judge import judge
from tests.whole.models import MODELS, TABLE, TOPICS, Follows, Person, Topic
from tests.whole.subjects import plain

ANN = Operation("put", {"person:ann": ["Ann", "a@x", 0]})
EDGE = Operation("connect", {"follows:ann:t0": 7})
PAIR = Operation("together", {"person:bob": ["Bob", "b@x", 0], "follows:bob:t1": 3})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file, its copy, and the journal of who wrote it."""
    folder = tmp_path_factory.mktemp("made")
    journal = Journal(folder / "journal")
    with Graph(folder / "whole.db", MODELS) as g:
        g.put_many([Topic(id=topic, name=topic) for topic in TOPICS])
        g.put(Person(id="ann", name="Ann", email="a@x"))
        g.connect(Follows, "ann", "t0", weight=7)
        g.maintain(once=True)
    for operation in (Operation("make", {f"topic:{topic}": topic for topic in TOPICS}), ANN, EDGE):
        journal.begun(operation)
        journal.done()
    journal.close()
    store, copied = SQLiteStore(folder / "whole.db"), SQLiteStore(folder / "copy.db")
    store.execute([CreateTable(TableDefinition(plain.TABLE, KeyAttribute("PK"), KeyAttribute("SK")))])
    copy(store, copied, TABLE)
    store.close()
    copied.close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "folder"))


def judged(folder: Path, *requests: Request, told: Callable[[Journal], None] = lambda _: None) -> None:
    """The judgement after these writes, of which no worker knows, to the file and to its copy."""
    for name in ("whole.db", "copy.db"):
        store = SQLiteStore(folder / name)
        store.execute([each for each in requests if name == "whole.db" or each.table == TABLE])  # type: ignore[union-attr]
        store.close()
    journal = Journal(folder / "journal")
    told(journal)
    journal.close()
    judge(folder / "whole.db", folder / "copy.db", {"worker": replayed(folder / "journal")})


def key(pk: str, sk: str) -> dict[str, dict[str, str]]:
    return {"PK": {"S": pk}, "SK": {"S": sk}}


def changed(pk: str, sk: str, name: str, value: int) -> Update:
    return Update(TABLE, key(pk, sk), (Set(attribute(name), Value({"N": str(value)})),))


def test_what_is_right_is_judged_so(folder: Path) -> None:
    judged(folder)


FAULTS: dict[str, tuple[Request, str]] = {
    "lost": (
        Delete(TABLE, key("PERSON#ann", "FOLLOWS#TOPIC#t0")),
        "follows:ann:t0 was acknowledged with 7, and there is None",
    ),
    "older": (changed("PERSON#ann", "#META", "points", 5), "person:ann was acknowledged with"),
    "nobody's": (Put(TABLE, key("HUB#x", "#META")), "nobody wrote hub:x"),
    "miscounted": (changed("TOPIC#t0", "#META", "followers", 2), "t0.followers is 2, and counting by hand gives 1"),
    "at once": (changed("PERSON#ann", "#META", "follows", 3), "PERSON#ann has 1 edges, and counts 3"),
    "counter": (changed("TOPIC#t1", "#META", "visits", 1), "visits:t1 is 1, and 0 were acknowledged"),
    "unclaimed": (Delete(TABLE, key("#=PERSON#email#a@x", "=")), "the audit found Finding(kind='claim'"),
    "plain": (Put(plain.TABLE, {**plain.key("y"), "n": {"N": "1"}}), "nobody wrote item:y"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(folder: Path, name: str) -> None:
    request, message = FAULTS[name]
    with pytest.raises(Broken) as broken:
        judged(folder, request)
    assert message in str(broken.value)


def test_a_copy_that_differs(folder: Path) -> None:
    store = SQLiteStore(folder / "copy.db")
    store.execute([Put(TABLE, key("HUB#x", "#META"))])
    store.close()
    with pytest.raises(Broken, match="the copy differs"):
        judged(folder)


def test_what_is_unknown_is_there_whole_or_not_at_all(folder: Path) -> None:
    def left(journal: Journal) -> None:
        journal.begun(PAIR)
        journal.left("OutcomeUnknown")

    judged(folder, told=left)
    bob = {"name": {"S": "Bob"}, "email": {"S": "b@x"}, "points": {"N": "0"}}
    with pytest.raises(Broken, match="is neither done nor not"):
        judged(folder, Put(TABLE, {**key("PERSON#bob", "#META"), **bob}))


# --- journals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "whole", "is_right"),
    [
        ({}, True, True),
        (PAIR.changes, True, True),
        ({"person:bob": ["Bob", "b@x", 0]}, True, False),
        ({"person:bob": ["Bob", "b@x", 0]}, False, True),
        ({"person:bob": ["Bob", "b@x", 1]}, False, False),
    ],
)
def test_what_may_be_found_after_a_call_that_was_stopped(found: dict[str, object], whole: bool, is_right: bool) -> None:
    assert Operation("together", PAIR.changes, whole).permits({}, found) == is_right


def test_a_journal_whose_last_line_is_torn_tells_what_was_before(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begun(ANN)
    journal.done()
    journal.begun(EDGE)
    journal.close()
    path.write_bytes(path.read_bytes() + b'{"do')
    told = replayed(path)
    assert (told.values, told.pending) == (ANN.changes, EDGE)
    journal = Journal(path)
    journal.found({})
    journal.close()
    assert replayed(path) == Told(ANN.changes, unknown=1, acknowledged=told.acknowledged)
