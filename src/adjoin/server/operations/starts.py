"""Where a page goes on: ExclusiveStartKey, and the paths of a read that lead into keys.

Checked here against what is read, in the service's order and words, which differ between Query and Scan. Whether
a start lies within a query is asked by the store.
"""

from __future__ import annotations

from collections.abc import Iterable

from adjoin.errors import InvalidRequest
from adjoin.expressions import Path
from adjoin.server.grammar.keys import empty_key_fault, is_empty
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import Item

_INVALID = "The provided starting key is invalid"
_MISMATCH = "The provided key element does not match the schema"


def check_query_start(start: Item, table: TableDefinition, index: IndexDefinition | None) -> None:
    if len(start) != len(_start_keys(table, index)):
        raise InvalidRequest(_INVALID)
    _check_own_keys(start, table.keys if index is None else index.keys)
    _check_table_keys(start, table)


def check_scan_start(start: Item, table: TableDefinition, index: IndexDefinition | None) -> None:
    if len(start) != len(_start_keys(table, index)):
        raise InvalidRequest(f"{_INVALID}: {_MISMATCH}" if index is None else _INVALID)
    if index is not None:
        _check_own_keys(start, index.keys)
    _check_table_keys(start, table)


def _start_keys(table: TableDefinition, index: IndexDefinition | None) -> set[str]:
    return {key.name for key in (*table.keys, *(() if index is None else index.keys))}


def _check_own_keys(start: Item, keys: Iterable[KeyAttribute]) -> None:
    """The keys that are read in order."""
    for key in keys:
        if key.name not in start:
            raise InvalidRequest(_INVALID)
        if fault := _key_fault(start, key):
            raise InvalidRequest(fault)


def _check_table_keys(start: Item, table: TableDefinition) -> None:
    for key in table.keys:
        if fault := _key_fault(start, key):
            raise InvalidRequest(f"{_INVALID}: {fault}")


def _key_fault(start: Item, key: KeyAttribute) -> str | None:
    attribute = start.get(key.name, {})
    if key.type not in attribute:
        return _MISMATCH
    return empty_key_fault(key) if is_empty(attribute, key) else None


def check_key_paths(paths: Iterable[Path], table: TableDefinition, *, of_table: bool = True) -> None:
    """Refuse a path into a key, which can be neither a list nor a map; `of_table` is whether its own count too."""
    heads = {path.steps[0] for path in paths if len(path.steps) > 1}
    if not heads:
        return
    primary = {key.name for key in table.keys}
    for key in table.key_attributes:
        if key.name in heads and (of_table or key.name not in primary):
            kind = "Key" if key.name in primary else "IndexKey"
            raise InvalidRequest(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed:"
                f" {kind}: {key.name}"
            )
