"""The sample of a large file: something of every beginning of keys, however much there is of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from adjoin import AdjacencyList, Edge, Graph, Node
from adjoin.cli import main
from adjoin.inferring.sampling import spread
from adjoin.requests import Scan
from adjoin.runner import run
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import KeyAttribute, TableDefinition


class Account(Node):
    id: int


class Zone(Node):
    id: str


class Owns(Edge[Account, Zone]):
    pass


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Many accounts, one of which owns many zones, and a few zones behind them all."""
    path = tmp_path / "large.db"
    with Graph(f"{path}?durability=process", [Account, Zone, Owns], AdjacencyList(table="Large")) as graph:
        graph.put_many([Account(id=number) for number in range(3000)])
        graph.put_many([Owns(source=7, target=f"z{number}") for number in range(1000)])
        graph.put_many([Zone(id=f"z{number}") for number in range(5)])
    return path


def test_every_beginning_is_in_a_small_sample(file: Path) -> None:
    store = SQLiteStore(str(file))
    definition = AdjacencyList(table="Large").bind(Graph(":memory:", [Account, Zone, Owns])._schema).definition
    items = run(spread(definition, 300), store)
    store.close()
    found = Counter(item["PK"]["S"].partition("#")[0] for item in items)
    assert found.pop("") == 1, "the record of declarations does not count"
    assert found.total() == 300
    assert len({str(item["PK"]) + str(item["SK"]) for item in items}) == len(items)
    assert found["ZONE"] == 5
    assert found["ACCOUNT"] > 100
    partitions = {item["PK"]["S"] for item in items if item["PK"]["S"].startswith("ACCOUNT#")}
    assert {partition[len("ACCOUNT#")] for partition in partitions} >= {*"123456789"}


def test_classes_behind_many_items_are_inferred(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scan of the file begins with accounts only, in each of its segments."""
    assert main(["infer", str(file), "--sample", "400"]) == 0
    shown = capsys.readouterr().out
    assert "class Zone(Node)" in shown
    assert "class Account(Node)" in shown


def test_a_sample_reads_pages_at_places_and_never_a_segment() -> None:
    definition = TableDefinition("T", KeyAttribute("id"))
    plan = spread(definition, 100)
    (first,) = next(plan)
    assert first == Scan("T", limit=40)


def test_keys_that_are_numbers_have_no_beginnings() -> None:
    plan = spread(TableDefinition("T", KeyAttribute("id", "N")), 100)
    requests = next(plan)
    assert len(requests) == 16
