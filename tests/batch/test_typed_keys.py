"""Exports and audits of tables whose keys are numbers or binary, or a partition key only."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, Keys, Node
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.exports import write_export
from adjoin.batch.sources import dump_of
from adjoin.batch.tables import Tables
from adjoin.requests import Put
from adjoin.values import Item, encode


class Level(IntEnum):
    LOW = 1
    HIGH = 20


class ByInt(Node):
    id: int


class ByDecimal(Node):
    id: Decimal


class ByTime(Node):
    id: dt.datetime


class ByLevel(Node):
    id: Level


class ByBytes(Node):
    id: bytes


class ByUUID(Node):
    id: uuid.UUID


class ByText(Node):
    id: str


TIME = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NUMBERS: list[Any] = [
    0,
    1,
    -5,
    20,
    10**37,
    Decimal("1.5"),
    Decimal("-0.000001"),
    Decimal("1767225600.25"),
    10**20,
    Decimal("1E-7"),
]
BINARIES = [b"\x00", b"#=", bytes(range(16)), uuid.UUID(int=3).bytes, bytes(17), b"\xff" * 40]
WHOLE = {number for number in NUMBERS if number == int(number)}
CASES: list[tuple[type[Any], str, list[Any], set[Any]]] = [
    (ByInt, "N", NUMBERS, WHOLE),
    (ByDecimal, "N", NUMBERS, {*NUMBERS}),
    (ByLevel, "N", NUMBERS, {Level.LOW, Level.HIGH}),
    (
        ByTime,
        "N",
        NUMBERS,
        {
            *(dt.datetime.fromtimestamp(second, dt.UTC) for second in (0, 1, -5, 20)),
            dt.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=dt.UTC),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
            TIME + dt.timedelta(milliseconds=250),
        },
    ),
    (ByBytes, "B", BINARIES, {*BINARIES}),
    (ByUUID, "B", BINARIES, {uuid.UUID(bytes=bytes(range(16))), uuid.UUID(int=3)}),
    (ByText, "S", ["a", "#c", "%"], {"a", "%"}),
]


@pytest.mark.parametrize(("model", "type", "values", "ids"), CASES)
def test_an_audit_reads_the_items_that_the_graph_reads(
    model: type[Any], type: Any, values: list[Any], ids: set[Any], tmp_path: Path
) -> None:
    layout = AdjacencyList(
        table="Table",
        partition_key="key",
        sort_key=None,
        types={"key": type},
        reverse=None,
        keys={model: Keys(partition="{id}")},
    )
    with Graph(tmp_path / "file.db", [model], layout) as g:
        g._store.execute([Put("Table", {"key": encode(value)}) for value in values])
        assert {each.id for each in g.scan(model)} == ids
        kind = g._layout.schema.node(model)
        export = write_export(dump_of(g._store, "Table").lines(), tmp_path / "exports", "Table")
        with DuckDBEngine(threads=1) as engine:
            tables = Tables(engine, export, g._layout, {model: set()})
            assert {tables.id_of(kind, row["id"]) for row in engine.fetch(tables.table(kind))} == ids
        for audit in (g.verify(), g.verify(source=export.place)):
            assert (bool(audit), audit.counts) == (True, {kind.label: len(ids)})


class Reading(Node, key=("device", "at")):
    device: str
    at: dt.datetime
    value: int


def test_an_item_that_does_not_fit_is_found(tmp_path: Path) -> None:
    layout = AdjacencyList(
        table="Readings",
        partition_key="device",
        sort_key="at",
        types={"at": "N"},
        reverse=None,
        keys={Reading: Keys(partition="{device}", sort="{at}")},
    )
    with Graph(tmp_path / "file.db", [Reading], layout) as g:
        g.put_many([Reading(device="d", at=TIME + dt.timedelta(seconds=number), value=number) for number in range(5)])
        wrong: Item = {"device": {"S": "d"}, "at": {"N": "5"}, "value": {"S": "five"}}
        g._store.execute([Put("Readings", wrong)])
        audit = g.verify()
        assert audit.counts == {"READING": 6}
        (finding,) = audit.findings
        assert (finding.kind, finding.count) == ("unreadable", 1)


class Person(Node):
    id: int


class Follows(Edge[Person, Person]):
    pass


def test_dangling_edges_between_numbers_are_found_and_removed(tmp_path: Path) -> None:
    layout = AdjacencyList(
        table="Follows",
        partition_key="user",
        sort_key="follows",
        types={"user": "N", "follows": "N"},
        reverse=Index("Followers", "follows", "user"),
        keys={Person: Keys(sort="{id}"), Follows: Keys(sort="{target}")},
    )
    with Graph(tmp_path / "file.db", [Person, Follows], layout) as g:
        g.put_many([Person(id=1), Person(id=2)])
        g.put_many([Follows(source=1, target=2), Follows(source=1, target=-3), Follows(source=10, target=1)])
        audit = g.verify()
        assert audit.counts == {"PERSON": 2, "FOLLOWS": 3}
        (finding,) = audit.findings
        assert sorted(finding.examples, key=repr) == [
            {"source": 1, "target": -3, "missing": "target"},
            {"source": 10, "target": 1, "missing": "source"},
        ]
        assert g.verify(repair=["dangling"]).left == 0
        assert [(each.source, each.target) for each in g.scan(Follows)] == [(1, 2)]
        assert g.verify()
