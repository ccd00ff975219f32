"""Tables to copy, and how two tables are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from adjoin.requests import BatchWrite, CreateTable, DescribeTable, Put, Scan, TableResponse
from adjoin.stores.interface import Store
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from adjoin.values import Item
from tests.stores.examples import b, everything, item, n, one, page, s

BYTES = KeyAttribute("kind", "B")
FULL = TableDefinition(
    "Full",
    KeyAttribute("PK"),
    KeyAttribute("SK"),
    (
        IndexDefinition("Reverse", KeyAttribute("RPK"), KeyAttribute("RSK", "N")),
        IndexDefinition("Kind", KeyAttribute("kind", "B"), None, Projection("INCLUDE", ("grade",))),
        IndexDefinition("ByTime", KeyAttribute("PK"), KeyAttribute("at", "N"), Projection("KEYS_ONLY"), local=True),
        IndexDefinition.over("Both", [KeyAttribute("RPK"), KeyAttribute("grade")], [KeyAttribute("RSK", "N"), BYTES]),
    ),
    ttl="until",
)

KINDS: dict[str, Item] = {
    "text": {"a": s("naïve 日本 🙂"), "empty": s("")},
    "numbers": {"a": n("-0.000001"), "b": n("12345678901234567890123456789012345678"), "c": n("1" + "0" * 125)},
    "binary": {"a": b(bytes(range(256))), "empty": b(b"")},
    "sets": {"s": {"SS": ["a", "b"]}, "n": {"NS": ["-1", "2.5"]}, "b": {"BS": ["AA==", "AQ=="]}},
    "nested": {"m": {"M": {"x y": {"L": [{"NULL": True}, {"BOOL": False}, n(1), {"M": {}}]}}}},
    "indexed": {"RPK": s("r"), "RSK": n(7), "kind": b(b"\x00"), "grade": s("A"), "at": n("1.5")},
    "not indexed": {"RPK": s("r"), "grade": s("A")},
    "of last century": {"until": n(1)},
    "far away": {"until": n(9_999_999_999)},
}
"""An item of each kind, by its sort key."""


def filled(store: Store, definition: TableDefinition, items: list[Item]) -> None:
    store.execute([CreateTable(definition)])
    for start in range(0, len(items), 25):
        store.execute([BatchWrite(tuple(Put(definition.name, each) for each in items[start : start + 25]))])


def many(count: int, size: int) -> list[Item]:
    """So many items of about so many bytes each, twenty to a partition."""
    return [item(f"p{number // 20}", f"{number:06d}", text=s("x" * size)) for number in range(count)]


def content(store: Store, table: str) -> Iterator[tuple[str, list[Item]]]:
    """Every item of the table and of each of its indexes."""
    definition = one(store, DescribeTable(table), TableResponse).definition
    yield "", sorted(everything(store, table), key=str)
    for index in definition.indexes:
        found = page(store, Scan(table, index=index.name))
        assert found.last is None
        yield index.name, sorted(found.items, key=str)


def assert_same(source: Store, destination: Store, table: str, to: str | None = None) -> None:
    ours, theirs = (
        one(store, DescribeTable(name), TableResponse) for store, name in ((source, table), (destination, to or table))
    )
    assert theirs == replace(ours, definition=replace(ours.definition, name=to or table))
    assert dict(content(destination, to or table)) == dict(content(source, table))


def copied_by(state: Path) -> int:
    """How many items a state says were copied; -1 while there is none."""
    try:
        return int(json.loads(state.read_text())["state"]["copied"]["items"])
    except FileNotFoundError:
        return -1
