"""ConsumedCapacity as an answer shows it, from the rows that a store counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from adjoin.requests import Consumed
from adjoin.server.names import table_name
from adjoin.server.operations.interface import Tables

_Units: TypeAlias = dict[str | None, tuple[float, float]]
"""Read and written units by index; of the table itself under None."""


def capacity(
    rows: Iterable[Consumed],
    asked: str | None,
    tables: Tables,
    references: Iterable[str],
    *,
    transactional: bool = False,
) -> list[dict[str, Any]]:
    """One entry a table, in the detail that ReturnConsumedCapacity asks for; none if it asks for nothing.

    `references` are the tables as the request names them: one that it names by its ARN is told by it.
    """
    if asked not in ("TOTAL", "INDEXES"):
        return []
    found: dict[str, _Units] = {}
    for row in rows:
        units = found.setdefault(row.table, {None: (0.0, 0.0)})
        read, write = units.get(row.index, (0.0, 0.0))
        units[row.index] = (read + row.read, write + row.write)
    named = {table_name(reference): reference for reference in references}
    entries = [_entry(name, units, asked, tables, transactional) for name, units in found.items()]
    return [{**entry, "TableName": named[entry["TableName"]]} for entry in entries]


def _entry(name: str, units: _Units, asked: str, tables: Tables, transactional: bool) -> dict[str, Any]:
    total = (sum(read for read, _ in units.values()), sum(write for _, write in units.values()))
    entry: dict[str, Any] = {"TableName": name, **_shown(total, transactional)}
    if asked == "INDEXES":
        entry["Table"] = _shown(units[None], transactional)
        for index, taken in units.items():
            if index is not None:
                definition = tables.definition(name).index(index)
                member = "LocalSecondaryIndexes" if definition and definition.local else "GlobalSecondaryIndexes"
                entry.setdefault(member, {})[index] = _shown(taken, transactional)
    return entry


def _shown(units: tuple[float, float], transactional: bool) -> dict[str, float]:
    read, write = units
    shown = {"CapacityUnits": read + write}
    if transactional:
        shown |= {"ReadCapacityUnits": read} if read else {"WriteCapacityUnits": write}
    return shown
