"""The shapes of inputs beside AWS's own model of them, which botocore carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from adjoin.server.operations.shapes import (
    Attribute,
    Entries,
    Flag,
    Listing,
    ParameterShape,
    Structure,
    TableReference,
    Text,
    Whole,
)
from tests.server.refusals import ALL

# Parameters of parts of the service that a file has none of: replicas, search by vectors.
LEFT_OUT = {
    "CreateTable.GlobalTableSourceArn",
    "CreateTable.GlobalTableSettingsReplicationMode",
    "CreateTable.VectorIndexes",
    "UpdateTable.GlobalTableSettingsReplicationMode",
    "UpdateTable.GlobalTableWitnessUpdates",
    "UpdateTable.MultiRegionConsistency",
    "UpdateTable.ReplicaUpdates.Create",
    "UpdateTable.ReplicaUpdates.Delete",
    "UpdateTable.ReplicaUpdates.Update",
    "UpdateTable.VectorIndexUpdates",
}

# What the service asks for, although a table that is a replica of another has it from there.
REQUIRED = {"CreateTable": {"TableName", "AttributeDefinitions", "KeySchema"}}

# What the service is known to limit, although its model does not say so.
LIMITS = {
    "KeySchema": (1, 2),
    # Keys of global indexes may have several attributes; their number is limited in other words.
    "CreateTable.GlobalSecondaryIndexes.KeySchema": (1, None),
    "UpdateTable.GlobalSecondaryIndexUpdates.Create.KeySchema": (1, None),
    "AttributesToGet": (1, 255),
    "GetRecords.Limit": (1, 1000),
}

# Looked at before any limit.
ASKED_BEFORE = {"TableName", "ResourceArn"}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    session = botocore.session.get_session()
    services = [session.get_service_model(name) for name in ("dynamodb", "dynamodbstreams")]
    return {name: service.operation_model(name).input_shape for service in services for name in service.operation_names}


def differences(shape: ParameterShape, model: Any, path: str) -> Iterator[str]:
    """Where a shape and the model of it say different things; the model of a newer botocore may have more."""
    match shape:
        case Structure():
            names = {name for name in model.members if f"{path}.{name}" not in LEFT_OUT}
            if not shape.members.keys() <= names:
                yield f"{path} has {set(shape.members)}, not {names}"
            required = REQUIRED.get(path, set(model.required_members))
            if shape.required != (required - ASKED_BEFORE if path in ALL and ALL[path].precondition else required):
                yield f"{path} requires {set(shape.required)}, not {required}"
            for name in shape.members.keys() & names:
                yield from differences(shape.members[name], model.members[name], f"{path}.{name}")
        case Listing():
            yield from size_differences(shape, model, path)
            yield from differences(shape.of, model.member, path)
        case Entries():
            yield from size_differences(shape, model, path)
            yield from differences(shape.of, model.value, path)
        case Text() if shape.choices or model.enum:
            if not set(shape.choices) <= set(model.enum):
                yield f"{path} is one of {shape.choices}, not {model.enum}"
        # The length of an attribute's name is told in other words in most places.
        case Text() if model.name != "AttributeName" and not path.endswith(".ResourceArn"):
            yield from size_differences(shape, model, path)
            if shape.pattern != model.metadata.get("pattern"):
                yield f"{path} matches {shape.pattern}"
        case Whole():
            yield from size_differences(shape, model, path)
            if shape.kind.lower() != model.type_name:
                yield f"{path} is {shape.kind}"
        case Flag():
            if model.type_name != "boolean":
                yield f"{path} is no flag"
        case Attribute():
            if model.name != "AttributeValue":
                yield f"{path} is no value of an attribute"
        case TableReference():
            if (model.name, model.metadata["min"], model.metadata["max"]) != ("TableArn", 1, 1024):
                yield f"{path} takes no ARN"


def size_differences(shape: Text | Whole | Listing | Entries, model: Any, path: str) -> Iterator[str]:
    documented = (model.metadata.get("min"), model.metadata.get("max"))
    limits = LIMITS.get(path) or LIMITS.get(path.rpartition(".")[2], documented)
    if (shape.least, shape.most) != limits:
        yield f"{path} goes from {shape.least} to {shape.most}, not {limits}"


@pytest.mark.parametrize("operation", ALL)
def test_inputs_are_those_of_the_model(operation: str, models: dict[str, Any]) -> None:
    model = models[operation]
    if model is None:
        assert not ALL[operation].shape.members
    else:
        assert list(differences(ALL[operation].shape, model, operation)) == []


def test_a_difference_is_found(models: dict[str, Any]) -> None:
    members: dict[str, ParameterShape] = {"Limit": Whole("Long", 1, 99), "Nothing": Whole("Long", 1, 99)}
    wrong = Structure("ListTablesInput", members, frozenset({"Limit"}))
    found = list(differences(wrong, models["ListTables"], "ListTables"))
    assert [difference.split()[1] for difference in found] == ["has", "requires", "goes", "is"]
