"""Files with damaged bytes: what is read is right, or `FileDamaged` is raised; no other error comes out.

A damaged byte may also hide a row from those who look for it, by its key or in an index. That is not noticed by who
reads; SQLite's `integrity_check` finds it. `docs/file-format.md` says so.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from adjoin.errors import FileDamaged, FileFromTheFuture, NotAnAdjoinFile
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    ChangesResponse,
    CreateTable,
    DescribeTable,
    Get,
    Put,
    Query,
    ReadChanges,
    Scan,
    TableResponse,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.rows import BrokenRow, segment_of
from adjoin.values import Item
from tests.stores.examples import EDGES, PLAIN, everything, item, key, n, one, page, put, s, stored

CASES = 300
ITEMS = 150


def items() -> list[Item]:
    chance = random.Random(0)
    return [
        item(
            f"A{number % 7}",
            f"{number:03d}",
            RPK=s(f"X{number % 5}"),
            RSK=s(f"r{number}"),
            kind=s(f"k{number % 3}"),
            at=n(number),
            words=s("".join(chance.choices("abcdefgh ", k=chance.randrange(300)))),
        )
        for number in range(ITEMS)
    ]


def opened(path: Path) -> SQLiteStore:
    return SQLiteStore(path, durability="process", clock=lambda: 1e9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "graph.db"
    with closing(opened(path)) as store:
        store.execute([CreateTable(EDGES), CreateTable(PLAIN)])
        put(store, "Edges", *items())
        put(store, "Plain", *(item(f"P{number % 3}", str(number), value=n(number * 7)) for number in range(60)))
    return path.read_bytes()


def read(store: SQLiteStore) -> dict[str, list[Any]]:
    """All that can be read, by ways of reading."""
    got: dict[str, list[Any]] = {"scan": everything(store, "Edges"), "plain": everything(store, "Plain")}
    for number in range(5):
        got[f"Reverse {number}"] = [*page(store, Query("Edges", ("RPK", s(f"X{number}")), index="Reverse")).items]
    for number in range(3):
        got[f"Kind {number}"] = [*page(store, Query("Edges", ("kind", s(f"k{number}")), index="Kind")).items]
    for segment in range(4):
        got[f"segment {segment}"] = [*page(store, Scan("Edges", segment=(segment, 4))).items]
    some = [key(each["PK"]["S"], each["SK"]["S"]) for each in items()[::10]]
    got["get"] = [found for each in some if (found := stored(store, "Edges", each)) is not None]
    batch = one(store, BatchGet(tuple(Get("Edges", each) for each in some)), BatchGetResponse)
    got["batch"] = [each for each in batch.items if each is not None]
    changes = one(store, ReadChanges("Edges"), ChangesResponse).changes
    got["changes"] = [(change.old, change.new, change.at, change.position) for change in changes]
    got["definition"] = [one(store, DescribeTable("Edges"), TableResponse).definition]
    with store.dump("Plain") as pieces:
        got["dump"] = [each for piece in pieces for each in piece]
    return got


def outcome(path: Path, right: dict[str, list[Any]]) -> str:
    try:
        with closing(opened(path)) as store:
            got = read(store)
    except (FileDamaged, NotAnAdjoinFile, FileFromTheFuture):
        return "refused"
    for way, found in got.items():
        assert [each for each in found if each not in right[way]] == [], (way, "what is read is right")
        assert found == [each for each in right[way] if each in found], (way, "and in order")
    if got == right:
        return "right"
    with closing(apsw.Connection(str(path))) as connection, suppress(apsw.CorruptError):
        assert connection.pragma("integrity_check") != "ok", "what is hidden can be found"
    return "hidden"


def damaged(content: bytes, chance: random.Random, start: int = 0) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 4, 20))):
        changed[chance.randrange(start, len(changed))] = chance.randrange(256)
    return bytes(changed)


def zeroed(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) // 512) * 512
    return content[:at] + bytes(512) + content[at + 512 :]


def swapped(content: bytes, chance: random.Random) -> bytes:
    """Two bytes beside each other, somewhere among the rows."""
    at = chance.randrange(4096, len(content) - 2)
    return content[:at] + content[at + 1 : at + 2] + content[at : at + 1] + content[at + 2 :]


HARM: dict[str, tuple[Callable[[bytes, random.Random], bytes], int]] = {
    "bytes": (damaged, CASES),
    "sectors": (zeroed, CASES // 3),
    "order": (swapped, CASES // 3),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_is_read_from_a_damaged_file_is_right(whole: bytes, tmp_path: Path, harm: str) -> None:
    path = tmp_path / "graph.db"
    path.write_bytes(whole)
    with closing(opened(path)) as store:
        right = read(store)
    spoil, cases = HARM[harm]
    seen: Counter[str] = Counter()
    for seed in range(cases):
        path.write_bytes(spoil(whole, random.Random(seed)))
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        seen[outcome(path, right)] += 1
    assert seen["refused"] > cases / 10
    assert seen["hidden"] < cases / 20


def test_a_damaged_log_ends_where_the_damage_is(tmp_path: Path) -> None:
    """A log is there after a crash only. SQLite takes damage to it for the end that the crash left."""
    path, log = tmp_path / "graph.db", tmp_path / "graph.db-wal"
    writer = opened(path)
    writer.execute([CreateTable(PLAIN)])
    for number in range(30):
        put(writer, "Plain", item("A", f"{number:02d}", x=n(number)))
    file, content = path.read_bytes(), log.read_bytes()
    writer.close()
    copy = tmp_path / "copy.db"
    for seed in range(60):
        copy.write_bytes(file)
        copy.with_name("copy.db-shm").unlink(missing_ok=True)
        copy.with_name("copy.db-wal").write_bytes(damaged(content, random.Random(seed), start=len(content) // 2))
        with closing(opened(copy)) as store:
            found = everything(store, "Plain")
        assert found == [item("A", f"{number:02d}", x=n(number)) for number in range(len(found))]
        assert len(found) > 5


def test_writing_to_a_damaged_file_raises_no_other_error(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    for seed in range(CASES // 6):
        path.write_bytes(damaged(whole, random.Random(seed)))
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        try:
            with closing(opened(path)) as store:
                for each in items()[::9]:
                    store.execute([Put("Edges", {**each, "words": s("new")})])
        except (FileDamaged, NotAnAdjoinFile, FileFromTheFuture):
            continue


# --- pages -------------------------------------------------------------------------------------

SPOILT = {
    "a letter of the body": "body = CAST(replace(body, 'word', 'ward') AS BLOB)",
    "the body of another": "body = (SELECT body FROM items_1 WHERE sk = '000')",
    "a body that is text": "body = CAST(body AS TEXT)",
    "another size": "size = size + 1",
    "a key of an index": "k1 = 'Y'",
    "no key of an index": "k2 = NULL",
    "another sum": "sum = sum + 1",
    "a sum that is text": "sum = 'x'",
}


@pytest.mark.parametrize("damage", SPOILT)
def test_one_row_of_a_page_is_damaged(damage: str, tmp_path: Path) -> None:
    """Rows are checked in pieces: first and last ones of a piece, and what is left over, are as good as any."""
    path = tmp_path / "page.db"
    whole = [item("A", f"{each:03d}", RPK=s("X"), RSK=s(f"r{each}"), words=s(f"word {each}")) for each in range(70)]
    with closing(opened(path)) as store:
        store.execute([CreateTable(EDGES)])
        put(store, EDGES.name, *whole)
        assert list(page(store, Query(EDGES.name, ("PK", s("A")))).items) == whole
    for place in (1, 31, 32, 63, 64, 69):
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("BEGIN")
            before = connection.execute("SELECT * FROM items_1 WHERE sk = ?", (f"{place:03d}",)).get
            connection.execute(f"UPDATE items_1 SET {SPOILT[damage]} WHERE sk = ?", (f"{place:03d}",))
            connection.execute("COMMIT")
            with closing(opened(path)) as store:
                request = Query(EDGES.name, ("PK", s("A")))
                with pytest.raises(FileDamaged):
                    list(page(store, request).items)
                with pytest.raises(FileDamaged):
                    store.text(request)
                assert list(page(store, Query(EDGES.name, ("PK", s("A")), limit=place)).items) == whole[:place]
            connection.execute("DELETE FROM items_1 WHERE sk = ?", (f"{place:03d}",))
            connection.execute(f"INSERT INTO items_1 VALUES ({', '.join('?' * len(before))})", before)


@pytest.mark.parametrize("column", [None, 1, 1.5])
def test_a_key_that_is_neither_text_nor_bytes(column: object) -> None:
    """A damaged header of a row makes such keys, and the segment of a scan is computed before its checksum."""
    with pytest.raises(BrokenRow):
        segment_of("A", column, 4)
