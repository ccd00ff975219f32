"""The file that remembers a copy: what is in it comes back, and nothing else is taken for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adjoin import FileNotWritable, InvalidCopyState
from adjoin.copying.state import Binding, Segment, State, StateFile
from adjoin.copying.steps import Amount, Mark
from tests.stores.examples import b, key, n

BINDING = Binding("/here.db", "/there.db", "Plain", "Other", 3)
STATE = State(
    started=1_700_000_000.25,
    segments=(
        Segment(key("ä", "\x00"), False),
        Segment(None, True),
        Segment({"id": b(b"\x00"), "at": n("0.1")}, False),
    ),
    mark=Mark("0007", 1.5, "0006"),
    applied="0009",
    copied=Amount(7, 70),
    changes=2,
    read=1.5,
    write=3.0,
    seconds=0.125,
)


@pytest.fixture
def file(tmp_path: Path) -> StateFile:
    return StateFile(tmp_path / "state.json", BINDING)


@pytest.mark.parametrize("state", [STATE, replace(STATE, mark=None, applied=None), replace(STATE, mark=Mark())])
def test_a_state_comes_back(file: StateFile, state: State) -> None:
    assert file.load() is None
    file.save(replace(state, changes=99))
    file.save(state)
    assert file.load() == state
    assert [path.name for path in file.path.parent.iterdir()] == ["state.json"]
    file.remove()
    file.remove()
    assert file.load() is None


def test_segments_go_on() -> None:
    state = State(0.0, (Segment(),) * 3, None, None)
    assert state.starts == {0: None, 1: None, 2: None}
    state = state.advanced({0: key("a", "1"), 1: None, 2: key("b", "1")}, Amount(5, 50))
    assert state.starts == {0: key("a", "1"), 2: key("b", "1")}
    state = state.advanced({0: None, 2: key("b", "2")}, Amount(1, 10))
    assert state.starts == {2: key("b", "2")}
    assert state.advanced({2: None}, Amount()).starts == {}
    assert state.copied == Amount(6, 60)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            replace(BINDING, source="/else.db"),
            "Plain of /here.db to Other of /there.db in 3 segments, not Plain of /else",
        ),
        (replace(BINDING, destination="/else.db"), "of /else.db in"),
        (replace(BINDING, table="Else"), "not Else of /here.db"),
        (replace(BINDING, to="Else"), "to Else of"),
        (replace(BINDING, segments=1), "in 1 segment;"),
    ],
)
def test_a_state_of_another_copy_is_refused(file: StateFile, other: Binding, message: str) -> None:
    file.save(STATE)
    before = file.path.read_bytes()
    with pytest.raises(InvalidCopyState, match=message):
        StateFile(file.path, other).load()
    assert file.path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": 1, "copy": {}, "state": {}}', "\x00", "not JSON"])
def test_something_else_is_refused(file: StateFile, text: str) -> None:
    file.path.write_text(text)
    with pytest.raises(InvalidCopyState, match="is not the state of a copy"):
        file.load()


def test_a_state_of_another_version_is_refused(file: StateFile) -> None:
    file.save(STATE)
    file.path.write_text(file.path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(InvalidCopyState, match="another version"):
        file.load()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotWritable, match="choose another --state"):
        StateFile(tmp_path / "nowhere" / "state.json", BINDING).save(STATE)
    with pytest.raises(InvalidCopyState, match="cannot be read"):
        StateFile(tmp_path, BINDING).load()
