"""The table's life cycle, and whether a stored table is the one that is meant."""

from __future__ import annotations

from adjoin.errors import TableExists, TableMismatch, TableNotFound
from adjoin.plans import Plan
from adjoin.requests import CreateTable, DescribeTable, DropTable, SetTimeToLive, TableResponse
from adjoin.tables import KeyAttribute, Projection, TableDefinition


def open_table(definition: TableDefinition, *, create: bool) -> Plan[None]:
    """Fails if the table is there with other keys; makes it if it is not there, where that is asked for."""
    try:
        response: TableResponse
        (response,) = yield (DescribeTable(definition.name),)
    except TableNotFound:
        if not create:
            return
        try:
            yield (CreateTable(definition),)
            return
        except TableExists:
            # Somebody else made it in between.
            (response,) = yield (DescribeTable(definition.name),)
    require_shape(definition, response.definition, "change the layout, or name another table")
    if create and definition.ttl is not None and response.definition.ttl is None:
        yield (SetTimeToLive(definition.name, definition.ttl),)


def drop_table(table: str) -> Plan[None]:
    yield (DropTable(table),)


def require_shape(wanted: TableDefinition, found: TableDefinition, remedy: str) -> None:
    """Whatever is written for the one table must mean the same in the other."""
    differences = _differences(wanted, found)
    if differences:
        raise TableMismatch(
            f"the table {wanted.name!r} is there with another shape: {'; '.join(differences)}; {remedy}"
        )


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
        elif not _covers(stored.projection, index.projection):
            differences.append(f"its index {index.name!r} projects {stored.projection}, not {index.projection}")
    if wanted.ttl is not None and found.ttl not in (None, wanted.ttl):
        differences.append(f"its items expire by {found.ttl!r}, not {wanted.ttl!r}")
    return differences


def _covers(stored: Projection, wanted: Projection) -> bool:
    if stored.kind == wanted.kind == "INCLUDE":
        return set(stored.attributes) >= set(wanted.attributes)
    return stored.kind in (wanted.kind, "ALL")


def _keys(keys: tuple[KeyAttribute, ...]) -> str:
    return " and ".join(f"{key.name} ({key.type})" for key in keys)
