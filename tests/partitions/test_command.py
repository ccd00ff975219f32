"""`python -m benchmarks.partitions`: what it prints, draws and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.partitions.__main__ import main
from benchmarks.partitions.chart import percent

SMALL = ["--writes=3000", "--seconds=90", "--values=50", "--burst=0", "--ramp=0"]


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 2) -> str:
    assert main(arguments) == status
    return capsys.readouterr().err


def test_ways_of_sharding_stand_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chart.svg"
    text = shown([*SMALL, f"--chart={path}"], capsys)
    rows = [line.split("│") for line in text.splitlines() if line.startswith("│")]
    assert [row[1].strip() for row in rows] == ["sharding", "single", "fixed:8", "fixed:64", "adaptive"]
    assert rows[1][2].strip().startswith("66.")
    assert "single: index 3,0" in text or "single: index 2,9" in text
    drawing = "".join(ElementTree.parse(path).getroot().itertext())
    for word in ("single", "fixed:8", "adaptive", "0.1 %", "100 %"):
        assert word in drawing


def test_json_has_every_minute(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = shown([*SMALL, "--json", "--sharding=fixed:2", "--warm-up=30"], capsys).splitlines()
    outcome = json.loads(line)
    assert outcome["sharding"] == "fixed:2"
    assert len(outcome["minutes"]) == 2
    assert outcome["hottest"][0]["space"] == "index"


def test_a_log_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    lines = [
        {"at": at / 5, "key": f"P{at}", "entries": [{"field": "skill", "value": "go", "id": f"P{at}", "writes": 400}]}
        for at in range(50)
    ]
    log.write_text("\n".join(map(json.dumps, lines)))
    (line,) = shown([str(log), "--sharding=single", "--burst=0", "--json"], capsys).splitlines()
    outcome = json.loads(line)
    assert outcome["throttled"] == pytest.approx(0.5)
    assert outcome["minutes"] == [pytest.approx(0.5)]


def test_what_cannot_be_simulated_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert "the sharding 'some' does not exist" in refused(["--sharding=some"], capsys)
    assert "--writers must be at least 1, got 0" in refused(["--writers=0"], capsys)
    assert "leaves nothing of 60 s" in refused(["--seconds=60", "--warm-up=60"], capsys)
    assert "values must be at least 1, got 0" in refused(["--values=0"], capsys)
    assert "the file nowhere does not exist" in refused(["nowhere"], capsys, 1)
    assert "has no requests" in refused([str(empty)], capsys, 1)
    assert "--writes is for a generated workload" in refused([str(empty), "--writes=1"], capsys)
    chart = f"--chart={tmp_path}/nowhere/chart.svg"
    assert "No such file or directory" in refused([*SMALL, "--sharding=single", chart], capsys, 1)


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.98, "98.0 %"), (0.013, "1.3 %"), (0.00031, "0.031 %"), (1e-6, "0.0001 %")]
)
def test_shares_are_shown_with_their_first_digits(share: float, text: str) -> None:
    assert percent(share) == text
