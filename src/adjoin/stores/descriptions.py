"""A table's definition as the JSON of CreateTable, and back from the JSON of DescribeTable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput

Payload: TypeAlias = dict[str, Any]


def creation(definition: TableDefinition) -> Payload:
    """What CreateTable takes; time to live and recovery are set by calls of their own, afterwards."""
    payload: Payload = {
        "TableName": definition.name,
        "AttributeDefinitions": [
            {"AttributeName": key.name, "AttributeType": key.type} for key in definition.key_attributes
        ],
        "KeySchema": key_schema(definition.keys),
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


def key_schema(keys: Iterable[KeyAttribute]) -> list[Payload]:
    return [{"AttributeName": key.name, "KeyType": role} for key, role in zip(keys, ("HASH", "RANGE"), strict=False)]


def throughput_units(throughput: Throughput) -> Payload:
    return {"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write}


def index_payload(definition: TableDefinition, index: IndexDefinition) -> Payload:
    projection: Payload = {"ProjectionType": index.projection.kind}
    if index.projection.attributes:
        projection["NonKeyAttributes"] = list(index.projection.attributes)
    payload: Payload = {"IndexName": index.name, "KeySchema": key_schema(index.keys), "Projection": projection}
    throughput = definition.index_throughput(index)
    if throughput is not None:
        payload["ProvisionedThroughput"] = throughput_units(throughput)
    return payload


def described(table: Payload, ttl: str | None) -> TableDefinition:
    """The definition that a description means; recovery and tags are not part of descriptions."""
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    keys = _keys(table["KeySchema"], types)
    provisioned = (table.get("BillingModeSummary") or {}).get("BillingMode", "PROVISIONED") == "PROVISIONED"
    indexes = [
        _index_of(entry, types, local=local, provisioned=provisioned)
        for member, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for entry in table.get(member) or ()
    ]
    stream = table.get("StreamSpecification") or {}
    return TableDefinition(
        table["TableName"],
        keys[0],
        keys[1] if len(keys) > 1 else None,
        tuple(indexes),
        ttl=ttl,
        stream=bool(stream.get("StreamEnabled")),
        stream_view=stream.get("StreamViewType") or "NEW_AND_OLD_IMAGES",
        throughput=_throughput_of(table) if provisioned else None,
        deletion_protection=bool(table.get("DeletionProtectionEnabled")),
    )


def _keys(schema: Iterable[Payload], types: dict[str, Any]) -> list[KeyAttribute]:
    ordered = sorted(schema, key=lambda entry: str(entry["KeyType"]))
    return [KeyAttribute(entry["AttributeName"], types[entry["AttributeName"]]) for entry in ordered]


def _index_of(entry: Payload, types: dict[str, Any], *, local: bool, provisioned: bool) -> IndexDefinition:
    keys = _keys(entry["KeySchema"], types)
    projection = entry["Projection"]
    return IndexDefinition(
        entry["IndexName"],
        keys[0],
        keys[1] if len(keys) > 1 else None,
        Projection(projection["ProjectionType"], tuple(sorted(projection.get("NonKeyAttributes") or ()))),
        local=local,
        throughput=_throughput_of(entry) if provisioned and not local else None,
    )


def _throughput_of(entry: Payload) -> Throughput | None:
    found = entry.get("ProvisionedThroughput") or {}
    read, write = found.get("ReadCapacityUnits"), found.get("WriteCapacityUnits")
    return Throughput(read, write) if read and write else None
