"""docs/access-patterns.md is true: each row of its tables is run on the data above it, and measured."""

from __future__ import annotations

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjoin import Graph

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "access-patterns.md"
README_ROW = re.compile(
    r"^\|[^|]*\|[^|]*\| `(?P<call>[^|]*)` \| (?P<requests>[\d.]+) \| (?P<rcu>[\d.]+) \|$", re.MULTILINE
)
COLUMNS = ["access pattern", "call", "requests", "rounds", "read units", "write units", "why not less"]

# What the tables must speak of, whatever else they do.
VERBS = [
    "get", "get_many", "get_together", "edge", "put", "add", "connect", "disconnect", "update", "upsert", "out", "into",
    "children", "collection", "find", "scan", "nodes", "put_many", "delete", "delete_many", "transaction", "page",
    "count", "first", "changes", "explain", "walk", "shortest_path", "recommend", "common", "subtree", "reachable",
    "can_reach", "differences", "migrate",
]  # fmt: skip

_SETUP_OR_ROW = re.compile(r"^```python\n(?P<setup>.*?)^```$|^\|(?P<row>[^\n]*)\|$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    setup: str
    pattern: str
    call: str
    costs: tuple[int, int, float, float]
    """Requests, rounds, read units and write units."""
    reason: str


def rows() -> list[Row]:
    """Every row, with the block of data that stands above its table."""
    found = []
    setup = ""
    for block in _SETUP_OR_ROW.finditer(DOCUMENT.read_text()):
        if block["setup"]:
            setup = block["setup"]
            continue
        cells = [cell.strip() for cell in block["row"].split("|")]
        if cells == COLUMNS or set(cells) == {"---"}:
            continue
        pattern, call, requests, rounds, rcu, wcu, reason = cells
        costs = (int(requests), int(rounds), float(rcu), float(wcu))
        found.append(Row(setup, pattern, call.strip("`"), costs, reason))
    return found


ROWS = rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_a_row_is_true(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("access_patterns")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, Any] = module.__dict__
    exec(row.setup, names)
    g: Graph = names["g"]
    with g, g.meter() as meter:
        result = eval(row.call, names)
    assert (meter.requests, meter.rounds, meter.rcu, meter.wcu) == row.costs
    assert row.reason
    # A read that finds nothing would be cheap for the wrong reason.
    assert result or meter.wcu or row.pattern == "a node that does not exist"


def test_every_pattern_of_the_examples_and_every_verb_has_a_row() -> None:
    calls = " ".join(row.call + row.setup for row in ROWS)
    assert not [verb for verb in VERBS if f".{verb}(" not in calls]
    assert sum("examples." in row.setup for row in ROWS) >= 27


def test_the_readme_says_the_same() -> None:
    known = {row.call: (row.costs[0], row.costs[2]) for row in ROWS}
    shown = {
        row["call"]: (int(row["requests"]), float(row["rcu"]))
        for row in README_ROW.finditer((ROOT / "README.md").read_text())
    }
    assert len(shown) >= 12
    assert {call: known[call] for call in shown} == shown
