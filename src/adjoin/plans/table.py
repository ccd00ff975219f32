"""The table's life cycle, and whether a stored table is the one that is meant."""

from __future__ import annotations

from dataclasses import replace

from adjoin.errors import InvalidRequest, TableExists, TableMismatch, TableNotFound
from adjoin.plans import Plan
from adjoin.requests import CreateTable, DescribeTable, DropTable, SetTimeToLive, TableResponse, UpdateTable
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition


def open_table(definition: TableDefinition, *, create: bool) -> Plan[None]:
    """Fails if the table is there with other keys; makes it, or the indexes it lacks, where that is asked for."""
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
    remedy = "change the layout, or name another table"
    if create and (lacking := _lacking(definition, response.definition)):
        there = (*response.definition.indexes, *lacking)
        # Whatever else is different is found before anything is changed.
        require_shape(definition, replace(response.definition, indexes=there), remedy)
        try:
            (response,) = yield (UpdateTable(definition.name, add_indexes=lacking),)
        except InvalidRequest:
            # Somebody else made them in between; else what is lacking is told below.
            (response,) = yield (DescribeTable(definition.name),)
    require_shape(definition, response.definition, remedy)
    if create and definition.ttl is not None and response.definition.ttl is None:
        yield (SetTimeToLive(definition.name, definition.ttl),)
    if create and definition.point_in_time_recovery and not response.definition.point_in_time_recovery:
        yield (UpdateTable(definition.name, point_in_time_recovery=True),)


def _lacking(wanted: TableDefinition, found: TableDefinition) -> tuple[IndexDefinition, ...]:
    """The indexes that can be added to a table: global ones, with units if it has some."""
    lacking = [index for index in wanted.indexes if not index.local and found.index(index.name) is None]
    if found.throughput is None:
        lacking = [replace(index, throughput=None) for index in lacking]
    return tuple(lacking)


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
