"""Copies that are refused, and what that leaves as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adjoin import (
    AdjoinError,
    ChangesTrimmed,
    CopyDiffers,
    InvalidCopyState,
    InvalidRequest,
    TableMismatch,
    TableNotEmpty,
    TableNotFound,
)
from adjoin.copying import StateFile, copy, verify
from adjoin.requests import (
    BatchWrite,
    CreateTable,
    DropTable,
    ListTables,
    PageResponse,
    Put,
    Request,
    Response,
    Scan,
    TablesResponse,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from tests.copying.examples import FULL, assert_same, filled, many
from tests.copying.recording import Recording, state_file
from tests.faults import FaultyStore, Interrupted
from tests.stores.examples import PLAIN, everything, item, key, n, one, put, s, stored


@pytest.mark.parametrize(
    "other",
    [
        TableDefinition("Full", KeyAttribute("PK")),
        TableDefinition("Full", KeyAttribute("PK"), KeyAttribute("SK", "N")),
        replace(FULL, indexes=FULL.indexes[1:]),
        replace(FULL, ttl="other"),
        replace(
            FULL,
            indexes=(
                *FULL.indexes[:-1],
                IndexDefinition.over("Both", FULL.indexes[-1].keys[:3], FULL.indexes[-1].keys[3:]),
            ),
        ),
    ],
)
def test_another_shape_is_refused_before_anything_is_written(
    source: FaultyStore, tmp_path: Path, other: TableDefinition
) -> None:
    filled(source, FULL, [item("a", "b")])
    destination = Recording(SQLiteStore(":memory:"))
    destination.execute([CreateTable(other)])
    state = state_file(tmp_path, "Full")
    with pytest.raises(TableMismatch, match="copy into a table of another name"):
        copy(source, destination, "Full", state=state)
    assert everything(destination, "Full") == []
    assert not any(isinstance(request, BatchWrite) for request in destination.requests)
    assert not state.path.exists()


def test_a_table_that_was_not_finished_is(source: FaultyStore, destination: FaultyStore) -> None:
    """Time to live is turned on after a table is made, and an interruption may come between."""
    filled(source, FULL, [item("a", "b")])
    destination.execute([CreateTable(replace(FULL, ttl=None))])
    copy(source, destination, "Full")
    assert_same(source, destination, "Full")


def test_a_table_with_items_is_refused_unless_they_may_be_replaced(
    source: FaultyStore, destination: FaultyStore
) -> None:
    filled(source, PLAIN, [item("a", "1"), item("a", "2")])
    filled(destination, PLAIN, [item("a", "1", old=n(1)), item("b", "1", old=n(1))])
    with pytest.raises(TableNotEmpty, match="--overwrite"):
        copy(source, destination, "Plain")
    assert stored(destination, "Plain", key("a", "2")) is None
    copy(source, destination, "Plain", overwrite=True)
    assert everything(destination, "Plain") == [item("a", "1"), item("a", "2"), item("b", "1", old=n(1))]
    with pytest.raises(CopyDiffers, match=r"destination holds 3 items, and .* source holds 2 items"):
        verify(source, destination, "Plain")


def test_verify_finds_one_changed_item(source: FaultyStore, destination: FaultyStore) -> None:
    filled(source, PLAIN, many(100, 10))
    copy(source, destination, "Plain")
    put(destination, "Plain", item("p0", "000001", text=s("x" * 9 + "y")))
    with pytest.raises(CopyDiffers, match="100 items, but the items differ"):
        verify(source, destination, "Plain")


def test_verify_knows_one_value_in_two_spellings(source: FaultyStore, destination: FaultyStore) -> None:
    class Respelled(FaultyStore):
        def execute(self, requests: Sequence[Request]) -> list[Response]:
            (response,) = self.inner.execute(requests)
            if not isinstance(response, PageResponse):
                return [response]
            return [
                replace(response, items=[{**each, "n": n("1.50"), "s": {"SS": ["b", "a"]}} for each in response.items])
            ]

    filled(source, PLAIN, [item("a", "b", n=n("1.5"), s={"SS": ["a", "b"]})])
    copy(source, destination, "Plain")
    assert verify(source, Respelled(destination), "Plain") == 1


def test_a_source_that_is_not_there(source: FaultyStore, destination: FaultyStore) -> None:
    with pytest.raises(TableNotFound):
        copy(source, destination, "Plain")
    assert one(destination, ListTables(), TablesResponse).names == ()


def test_segments_that_cannot_be(source: FaultyStore, destination: FaultyStore) -> None:
    with pytest.raises(InvalidRequest, match="segments must be at least 1, got 0"):
        copy(source, destination, "Plain", segments=0)


def interrupted(source: FaultyStore, destination: FaultyStore, state: StateFile) -> None:
    """A copy that stops after its first round."""
    source.fault = lambda _number, request: "before" if isinstance(request, Scan) and request.start else None
    with pytest.raises(Interrupted):
        copy(source, destination, "Plain", state=state)
    source.recover()
    assert state.path.exists()


@pytest.mark.parametrize("gone", ["dropped", "emptied"])
def test_a_destination_that_lost_what_was_copied(
    source: FaultyStore, destination: FaultyStore, tmp_path: Path, gone: str
) -> None:
    filled(source, PLAIN, many(60, 40_000))
    state = state_file(tmp_path)
    interrupted(source, destination, state)
    destination.execute([DropTable("Plain")])
    if gone == "emptied":
        destination.execute([CreateTable(PLAIN)])
    with pytest.raises(InvalidCopyState, match=r"no longer has any; remove .*state\.json"):
        copy(source, destination, "Plain", state=state)


@pytest.mark.parametrize("larger", [0, 40])
def test_a_source_that_was_made_anew(
    source: FaultyStore, destination: FaultyStore, tmp_path: Path, larger: int
) -> None:
    filled(source, PLAIN, many(60, 40_000))
    state = state_file(tmp_path)
    interrupted(source, destination, state)
    other = SQLiteStore(":memory:")
    filled(other, PLAIN, many(60 + larger, 40_000))
    with pytest.raises(InvalidCopyState, match="not the one with which the copy began"):
        copy(other, destination, "Plain", state=state)
    other.close()


def test_a_source_that_was_dropped_and_made_anew(source: FaultyStore, destination: FaultyStore, tmp_path: Path) -> None:
    filled(source, PLAIN, many(60, 40_000))
    state = state_file(tmp_path)
    interrupted(source, destination, state)
    source.execute([DropTable("Plain")])
    filled(source, PLAIN, many(60, 40_000))
    with pytest.raises(AdjoinError, match="start again"):
        copy(source, destination, "Plain", state=state)


def test_a_copy_that_was_begun_too_long_ago(destination: FaultyStore, tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    source = FaultyStore(SQLiteStore(":memory:", clock=lambda: now[0]))
    filled(source, PLAIN, many(60, 40_000))
    state = state_file(tmp_path)
    interrupted(source, destination, state)
    now[0] += 25 * 3600
    for step in range(1200):
        source.execute([Put("Plain", item("a", str(step)))])
    now[0] += 25 * 3600
    for step in range(1200):
        source.execute([Put("Plain", item("b", str(step)))])
    with pytest.raises(ChangesTrimmed, match=r"remove the table 'Plain' at the destination and .*state\.json"):
        copy(source, destination, "Plain", state=state)
    source.close()
