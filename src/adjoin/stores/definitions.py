"""DynamoDB's rules for table definitions and their changes: names, keys, indexes, projections, throughput and tags.

Also converts a definition into the JSON of CreateTable, and the JSON of DescribeTable into a definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from adjoin.errors import InvalidRequest, cut, shown
from adjoin.requests import TagTable, UpdateTable
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from adjoin.units import (
    MAX_GLOBAL_INDEXES,
    MAX_KEY_ATTRIBUTES,
    MAX_LOCAL_INDEXES,
    MAX_PROJECTED_ATTRIBUTES,
    MAX_TAG_KEY,
    MAX_TAG_VALUE,
    MAX_TAGS,
)

_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_TAG = re.compile(r"[\w\s+\-=.:/@]*")


def check_definition(definition: TableDefinition) -> None:
    """Refuses a definition that DynamoDB would not create."""
    for fault in _faults(definition):
        raise InvalidRequest(f"the table {cut(definition.name)} cannot be created: {fault}")


def _faults(definition: TableDefinition) -> Iterator[str]:
    indexes = definition.indexes
    names = [index.name for index in indexes]
    for name in (definition.name, *names):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"{shown(name)} is not a name of 3 to 255 letters, digits, underscores, dots and hyphens"
    if len(set(names)) < len(names):
        yield "two indexes have the same name"
    local = sum(index.local for index in indexes)
    if local > MAX_LOCAL_INDEXES:
        yield f"it has {local} local indexes, and {MAX_LOCAL_INDEXES} is the limit"
    if len(indexes) - local > MAX_GLOBAL_INDEXES:
        yield f"it has {len(indexes) - local} global indexes, and {MAX_GLOBAL_INDEXES} is the limit"
    yield from _key_faults(definition)
    for index in indexes:
        yield from _index_faults(definition, index)
    projected = sum(len(index.projection.attributes) for index in indexes)
    if projected > MAX_PROJECTED_ATTRIBUTES:
        yield f"its indexes project {projected} attributes, and {MAX_PROJECTED_ATTRIBUTES} is the limit"
    yield from _throughput_faults(definition)
    yield from _tag_faults(definition)


def _key_faults(definition: TableDefinition) -> Iterator[str]:
    types: dict[str, str] = {}
    holders: tuple[TableDefinition | IndexDefinition, ...] = (definition, *definition.indexes)
    for holder in holders:
        roles: dict[str, str] = {}
        for role, keys in (("partition", holder.partitions), ("sort", holder.sorts)):
            for key in keys:
                if key.name in roles:
                    yield f"{holder.name} has {key.name} as {roles[key.name]} key and as {role} key"
                roles[key.name] = role
        for key in holder.keys:
            if not 1 <= len(key.name) <= 255:
                yield f"{key.name!r} is not a name of 1 to 255 characters for a key attribute"
            if key.type not in ("S", "N", "B"):
                yield f"the key attribute {key.name} has type {key.type!r}; it can be S, N or B"
            if types.setdefault(key.name, key.type) != key.type:
                yield f"the key attribute {key.name} has type {types[key.name]} and type {key.type}"


def _index_faults(definition: TableDefinition, index: IndexDefinition) -> Iterator[str]:
    if index.local and (index.partition != definition.partition or index.sort is None):
        yield f"the local index {index.name} must have the table's partition key and a sort key of its own"
    if index.local and definition.sort is None:
        yield f"the local index {index.name} needs a table with a sort key"
    if index.local and index.is_multi_attribute:
        yield f"the local index {index.name} has a key of several attributes, which only global indexes can have"
    if index.sort is None and index.further_sorts:
        yield f"the index {index.name} has further attributes of a sort key, but no first one"
    for role, keys in (("partition", index.partitions), ("sort", index.sorts)):
        if len(keys) > MAX_KEY_ATTRIBUTES:
            yield (
                f"the index {index.name} has {len(keys)} attributes in its {role} key,"
                f" and {MAX_KEY_ATTRIBUTES} is the limit"
            )
    if bool(index.projection.attributes) != (index.projection.kind == "INCLUDE"):
        yield f"the index {index.name} must name attributes if it projects INCLUDE, and only then"


def _throughput_faults(definition: TableDefinition) -> Iterator[str]:
    holders: tuple[TableDefinition | IndexDefinition, ...] = (definition, *definition.indexes)
    for holder in holders:
        units = holder.throughput
        if units is not None and min(units.read, units.write) < 1:
            yield f"{holder.name} has a throughput of {units.read} and {units.write} units; the minimum is 1"
    for index in definition.indexes:
        if index.local and index.throughput is not None:
            yield f"the local index {index.name} takes from the table's throughput and can have none of its own"
        elif index.throughput is not None and definition.throughput is None:
            yield f"the index {index.name} has a throughput, but the table is on demand; give both one, or neither"


def _tag_faults(definition: TableDefinition) -> Iterator[str]:
    keys = [key for key, _ in definition.tags]
    if len(keys) > MAX_TAGS:
        yield f"it has {len(keys)} tags, and {MAX_TAGS} is the limit"
    if len(set(keys)) < len(keys):
        yield "two tags have the same key"
    for key, value in definition.tags:
        if not (isinstance(key, str) and isinstance(value, str)):
            yield f"the tag {key!r} is {value!r}; both must be text"
        if not 1 <= len(key) <= MAX_TAG_KEY:
            yield f"the key {key!r} of a tag must have 1 to {MAX_TAG_KEY} characters"
        if len(value) > MAX_TAG_VALUE:
            yield f"the value of the tag {key!r} has {len(value)} characters, and {MAX_TAG_VALUE} is the limit"
        if key.lower().startswith("aws:"):
            yield f"the tag {key!r} begins with 'aws:', which only AWS may use"
        if not (_TAG.fullmatch(key) and _TAG.fullmatch(value)):
            yield f"the tag {key!r} has characters other than letters, digits, spaces and + - = . _ : / @"


# --- changing a table --------------------------------------------------------------------------


def updated(definition: TableDefinition, request: UpdateTable) -> TableDefinition:
    """The table after a change; refuses a change that DynamoDB would not make."""
    for fault in _update_faults(definition, request):
        raise InvalidRequest(f"the table {cut(definition.name)} cannot be changed: {fault}")
    units = dict(request.index_throughput)
    indexes = [
        replace(index, throughput=units.get(index.name, index.throughput))
        for index in definition.indexes
        if index.name not in request.remove_indexes
    ]
    changed = replace(definition, indexes=(*indexes, *request.add_indexes))
    if request.throughput == "on demand":
        indexes = [replace(index, throughput=None) for index in changed.indexes]
        changed = replace(changed, throughput=None, indexes=tuple(indexes))
    elif request.throughput is not None:
        changed = replace(changed, throughput=request.throughput)
    if request.stream is not None:
        changed = replace(
            changed,
            stream=request.stream != "off",
            stream_view=changed.stream_view if request.stream == "off" else request.stream,
        )
    if request.deletion_protection is not None:
        changed = replace(changed, deletion_protection=request.deletion_protection)
    if request.point_in_time_recovery is not None:
        changed = replace(changed, point_in_time_recovery=request.point_in_time_recovery)
    check_definition(changed)
    return changed


def _update_faults(definition: TableDefinition, request: UpdateTable) -> Iterator[str]:
    for index in request.add_indexes:
        if definition.index(index.name) is not None:
            yield f"it already has an index {index.name}"
        if index.local:
            yield f"the local index {index.name} can only be created together with the table"
    for name in (*request.remove_indexes, *(name for name, _ in request.index_throughput)):
        found = definition.index(name)
        if found is None or found.local:
            yield f"it has no global index {name}"
    if request.stream not in (None, "off") and definition.stream:
        yield "its stream is switched on already; switch it off first"
    if request.stream == "off" and not definition.stream:
        yield "it has no stream to switch off"


def tagged(definition: TableDefinition, request: TagTable) -> TableDefinition:
    """The table with its tags changed, in the order of their keys."""
    tags = {key: value for key, value in definition.tags if key not in request.remove} | dict(request.tags)
    changed = replace(definition, tags=tuple(sorted(tags.items())))
    check_definition(changed)
    return changed


# --- as the service's JSON ---------------------------------------------------------------------


TablePayload: TypeAlias = dict[str, Any]


def creation(definition: TableDefinition) -> TablePayload:
    """The input of CreateTable; time to live and recovery are set by calls of their own afterwards."""
    payload: TablePayload = {
        "TableName": definition.name,
        "AttributeDefinitions": [
            {"AttributeName": key.name, "AttributeType": key.type} for key in definition.key_attributes
        ],
        "KeySchema": key_schema(definition),
        "BillingMode": "PAY_PER_REQUEST" if definition.throughput is None else "PROVISIONED",
    }
    if definition.throughput is not None:
        payload["ProvisionedThroughput"] = throughput_units(definition.throughput)
    for member, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        indexes = [index_payload(definition, index) for index in definition.indexes if index.local is local]
        if indexes:
            payload[member] = indexes
    if definition.stream:
        payload["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": definition.stream_view}
    if definition.deletion_protection:
        payload["DeletionProtectionEnabled"] = True
    if definition.tags:
        payload["Tags"] = [{"Key": key, "Value": value} for key, value in definition.tags]
    return payload


def key_schema(holder: TableDefinition | IndexDefinition) -> list[TablePayload]:
    """The keys of a table or of an index: first all attributes of the partition key, then those of the sort key."""
    return [
        {"AttributeName": key.name, "KeyType": role}
        for role, keys in (("HASH", holder.partitions), ("RANGE", holder.sorts))
        for key in keys
    ]


def throughput_units(throughput: Throughput) -> TablePayload:
    return {"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write}


def index_payload(definition: TableDefinition, index: IndexDefinition) -> TablePayload:
    projection: TablePayload = {"ProjectionType": index.projection.kind}
    if index.projection.attributes:
        projection["NonKeyAttributes"] = list(index.projection.attributes)
    payload: TablePayload = {"IndexName": index.name, "KeySchema": key_schema(index), "Projection": projection}
    throughput = definition.index_throughput(index)
    if throughput is not None:
        payload["ProvisionedThroughput"] = throughput_units(throughput)
    return payload


def described(table: TablePayload, ttl: str | None) -> TableDefinition:
    """The definition in a description of a table; descriptions have neither recovery nor tags."""
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    (partition,), sorts = _keys(table["KeySchema"], types)
    provisioned = (table.get("BillingModeSummary") or {}).get("BillingMode", "PROVISIONED") == "PROVISIONED"
    indexes = [
        _index_of(entry, types, local=local, provisioned=provisioned)
        for member, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for entry in table.get(member) or ()
    ]
    stream = table.get("StreamSpecification") or {}
    return TableDefinition(
        table["TableName"],
        partition,
        sorts[0] if sorts else None,
        tuple(indexes),
        ttl=ttl,
        stream=bool(stream.get("StreamEnabled")),
        stream_view=stream.get("StreamViewType") or "NEW_AND_OLD_IMAGES",
        throughput=_throughput_of(table) if provisioned else None,
        deletion_protection=bool(table.get("DeletionProtectionEnabled")),
    )


def _keys(schema: Iterable[TablePayload], types: dict[str, Any]) -> tuple[list[KeyAttribute], list[KeyAttribute]]:
    """The attributes of the partition key and of the sort key, each in their order."""
    keys: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for entry in schema:
        keys[entry["KeyType"]].append(KeyAttribute(entry["AttributeName"], types[entry["AttributeName"]]))
    return keys["HASH"], keys["RANGE"]


def _index_of(entry: TablePayload, types: dict[str, Any], *, local: bool, provisioned: bool) -> IndexDefinition:
    projection = entry["Projection"]
    return IndexDefinition.over(
        entry["IndexName"],
        *_keys(entry["KeySchema"], types),
        Projection(projection["ProjectionType"], tuple(sorted(projection.get("NonKeyAttributes") or ()))),
        local=local,
        throughput=_throughput_of(entry) if provisioned and not local else None,
    )


def _throughput_of(entry: TablePayload) -> Throughput | None:
    found = entry.get("ProvisionedThroughput") or {}
    read, write = found.get("ReadCapacityUnits"), found.get("WriteCapacityUnits")
    return Throughput(read, write) if read and write else None
