"""The table's life cycle, and whether a stored table is the one the layout means."""

from __future__ import annotations

from adjoin.errors import TableExists, TableMismatch, TableNotFound
from adjoin.plans import Plan
from adjoin.requests import CreateTable, DescribeTable, DropTable, TableResponse
from adjoin.tables import KeyAttribute, TableDefinition


def open_table(definition: TableDefinition) -> Plan[None]:
    """Makes the table if it is not there; fails if it is there with other keys."""
    try:
        response: TableResponse
        (response,) = yield (DescribeTable(definition.name),)
    except TableNotFound:
        try:
            yield (CreateTable(definition),)
            return
        except TableExists:
            # Somebody else made it in between.
            (response,) = yield (DescribeTable(definition.name),)
    differences = list(_differences(definition, response.definition))
    if differences:
        raise TableMismatch(
            f"the table {definition.name!r} is there with another shape: {'; '.join(differences)}; "
            f"change the layout, or name another table"
        )


def drop_table(table: str) -> Plan[None]:
    yield (DropTable(table),)


def _differences(wanted: TableDefinition, found: TableDefinition) -> list[str]:
    differences = []
    if found.keys != wanted.keys:
        differences.append(f"its keys are {_keys(found.keys)}, not {_keys(wanted.keys)}")
    for index in wanted.indexes:
        stored = found.index(index.name)
        if stored is None:
            differences.append(f"it has no index {index.name!r} over {_keys(index.keys)}")
        elif stored.keys != index.keys:
            differences.append(f"its index {index.name!r} is over {_keys(stored.keys)}, not {_keys(index.keys)}")
        elif stored.projection != index.projection:
            differences.append(f"its index {index.name!r} projects {stored.projection}, not {index.projection}")
    if wanted.ttl is not None and found.ttl != wanted.ttl:
        differences.append(f"its items expire by {found.ttl!r}, not {wanted.ttl!r}")
    return differences


def _keys(keys: tuple[KeyAttribute, ...]) -> str:
    return " and ".join(f"{key.name} ({key.type})" for key in keys)
