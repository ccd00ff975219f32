"""What writes consume of their tables and indexes, as the service counts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adjoin.requests import Consumed
from adjoin.stores.sqlite.stored import Decided, Stored, size_of
from adjoin.stores.sqlite.tables import AccessPath
from adjoin.units import read_units, write_units
from adjoin.values import Item, item_size


def consumed(writes: Sequence[Decided], transactional: bool = False) -> tuple[Consumed, ...]:
    """What the writes take from their tables and indexes, each table before its indexes.

    A transaction takes twice as much from the table, and no more than any other write from an index.
    """
    times = 2.0 if transactional else 1.0
    only = writes[0].prepared.table
    if not only.indexes:
        total = 0.0
        for write in writes:
            if write.prepared.table is not only:
                break
            total += write_units(max(size_of(write.old), size_of(write.new)))
        else:
            return only.written(times * total)
    units: dict[tuple[str, str | None], float] = {}
    for write in writes:
        name = write.prepared.table.name
        for index, taken in _taken(write, times):
            units[name, index] = units.get((name, index), 0.0) + taken
    tables = list(dict.fromkeys(table for table, _ in units))
    # A stable sort: what a table's writes took stays in the order in which it was first taken.
    rows = sorted(units.items(), key=lambda entry: tables.index(entry[0][0]))
    return tuple(Consumed(table, index, 0.0, taken) for (table, index), taken in rows)


def _taken(write: Decided, times: float) -> list[tuple[str | None, float]]:
    """Units by index; of the table itself, under None, first."""
    table, old, new = write.prepared.table, write.old, write.new
    rows: list[tuple[str | None, float]] = [(None, times * write_units(max(size_of(old), size_of(new))))]
    if write.changed:
        for path in table.indexes:
            units = _index_units(path, old, new)
            if units:
                rows.append((path.index_name, units))
    return rows


def _index_units(path: AccessPath, old: Stored | None, new: Stored | None) -> float:
    before = old if old is not None and path.holds(old.row) else None
    after = new if new is not None and path.holds(new.row) else None
    if before is None:
        return 0.0 if after is None else _entry_units(path, after)
    if after is None:
        return _entry_units(path, before)
    if path.own_keys(before.row) != path.own_keys(after.row):
        return _entry_units(path, before) + _entry_units(path, after)
    if path.projected is not None and _entry(path, before) == _entry(path, after):
        return 0.0
    return max(_entry_units(path, before), _entry_units(path, after))


def _entry(path: AccessPath, stored: Stored) -> Item:
    """What the index holds of an item."""
    if path.projected is None:
        return stored.item
    return {name: value for name, value in stored.item.items() if name in path.projected}


def _entry_units(path: AccessPath, stored: Stored) -> float:
    return write_units(stored.size if path.projected is None else item_size(_entry(path, stored)))


def read_again(writes: Iterable[Decided]) -> dict[str, float]:
    """What the service takes of each table for finding that a transaction was applied before.

    That is by the items as they were and became then, whatever has become of them since.
    """
    units: dict[str, float] = {}
    for write in writes:
        name, size = write.prepared.table.name, max(size_of(write.old), size_of(write.new))
        units[name] = units.get(name, 0.0) + read_units(size, transactional=True)
    return units
