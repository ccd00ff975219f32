"""A run that is ended from outside leaves no process behind, and says what it was at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT, until
from tests.whole import older
from tests.whole.driver import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups there")


_KEPT = {"whole.db", "p0.journal", "h0.journal"}
"""Some of the files that are kept of a round that does not end well."""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb") as said:
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.whole", "--seconds", "600", "--seed", "7", "--first", "1"],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
    try:
        # Processes begin in any order: a maintainer may be ready before a writer has opened its journal.
        begun = ("maintain 1.ready", *_KEPT)
        until(lambda: all(any(tmp_path.glob(f"adjoin-whole-*/1/{name}")) for name in begun))
        run.send_signal(how)
        run.wait(LIMIT)
        until(lambda: not _is_there(run.pid))
    finally:
        if _is_there(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
    if how == signal.SIGTERM:
        told = (tmp_path / "said").read_text()
        assert "KeyboardInterrupt: SIGTERM" in told
        assert "in round 1 of seed 7" in told
        (kept,) = tmp_path.glob("adjoin-whole-kept-*/1")
        assert str(kept) in told
        assert {each.name for each in kept.iterdir()} >= _KEPT


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_older_adjoin_is_in_the_history(tmp_path: Path) -> None:
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if shallow.stdout.strip() != "false":
        pytest.skip("there is no history here")
    sources = older.sources(tmp_path)
    assert sources is not None, "no round has two versions of adjoin on one file any more"
    assert (sources / "adjoin" / "graph.py").exists()
