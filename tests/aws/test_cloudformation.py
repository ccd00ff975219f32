"""Templates that CloudFormation's own rules accept, and that make the table which was meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from adjoin import aws
from adjoin.errors import InvalidRequest
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from tests.aws.linting import faults
from tests.aws.renderings import TABLES


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


def read_back(name: str) -> TableDefinition:
    """The definition of a table as the service describes it."""
    client = boto3.client("dynamodb")
    found = client.describe_table(TableName=name)["Table"]
    types = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    on_demand = found.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
    ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    recovery = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    tags = client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
    stream = found.get("StreamSpecification", {})
    assert not stream or stream["StreamViewType"] == "NEW_AND_OLD_IMAGES"

    def keys(schema: list[dict[str, str]], role: str) -> list[KeyAttribute]:
        names = [each["AttributeName"] for each in schema if each["KeyType"] == role]
        return [KeyAttribute(name, types[name]) for name in names]

    def throughput(holder: dict[str, Any]) -> Throughput | None:
        units = holder.get("ProvisionedThroughput")
        return None if on_demand or not units else Throughput(units["ReadCapacityUnits"], units["WriteCapacityUnits"])

    def index(each: dict[str, Any], *, local: bool) -> IndexDefinition:
        projection = Projection(
            each["Projection"]["ProjectionType"], tuple(each["Projection"].get("NonKeyAttributes", ()))
        )
        partitions, sorts = keys(each["KeySchema"], "HASH"), keys(each["KeySchema"], "RANGE")
        return IndexDefinition.over(
            each["IndexName"], partitions, sorts, projection, local=local, throughput=throughput(each)
        )

    (partition,), sort = keys(found["KeySchema"], "HASH"), keys(found["KeySchema"], "RANGE")
    return TableDefinition(
        found["TableName"],
        partition,
        sort[0] if sort else None,
        (
            *(index(each, local=False) for each in found.get("GlobalSecondaryIndexes", ())),
            *(index(each, local=True) for each in found.get("LocalSecondaryIndexes", ())),
        ),
        ttl.get("AttributeName") if ttl["TimeToLiveStatus"] == "ENABLED" else None,
        bool(stream.get("StreamEnabled")),
        throughput(found),
        recovery == "ENABLED",
        found["DeletionProtectionEnabled"],
        tuple(sorted((each["Key"], each["Value"]) for each in tags if not each["Key"].startswith("aws:"))),
    )


def resolved(table: TableDefinition) -> TableDefinition:
    """The table with the throughput of each index written out."""
    return replace(
        table, indexes=tuple(replace(each, throughput=table.index_throughput(each)) for each in table.indexes)
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_stack_makes_the_table(name: str, account: None) -> None:
    table = TABLES[name]
    client = boto3.client("cloudformation")
    client.create_stack(StackName="graph", TemplateBody=json.dumps(aws.cloudformation(table)))
    # Moto leaves these two out of what it makes of a template; the next test sees to them.
    assert read_back(table.name) == replace(resolved(table), ttl=None, point_in_time_recovery=False)
    (stack,) = client.describe_stacks(StackName="graph")["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    arn = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table.name}"
    assert (outputs["TableName"], outputs["TableArn"]) == (table.name, arn)
    assert ("StreamArn" in outputs) == table.stream
    assert outputs.get("StreamArn", f"{arn}/stream/").startswith(f"{arn}/stream/")


@pytest.mark.parametrize("name", TABLES)
def test_the_properties_are_those_of_the_service_s_own_calls(name: str, account: None) -> None:
    table, client = TABLES[name], boto3.client("dynamodb")
    properties = aws.cloudformation(table)["Resources"]["Table"]["Properties"]
    recovery = properties.pop("PointInTimeRecoverySpecification")
    ttl = properties.pop("TimeToLiveSpecification", None)
    if "StreamSpecification" in properties:
        properties["StreamSpecification"]["StreamEnabled"] = True
    client.create_table(**properties)
    client.update_continuous_backups(TableName=table.name, PointInTimeRecoverySpecification=recovery)
    if ttl is not None:
        client.update_time_to_live(TableName=table.name, TimeToLiveSpecification=ttl)
    assert read_back(table.name) == resolved(table)


@pytest.mark.parametrize("name", TABLES)
def test_the_rules_of_cloudformation_hold(name: str) -> None:
    assert faults(aws.cloudformation(TABLES[name])) == []


def test_the_rules_find_what_they_are_for() -> None:
    template = aws.cloudformation(TABLES["plain"])
    template["Resources"]["Table"]["Properties"]["KeySchema"] = []
    assert faults(template)


@pytest.mark.parametrize("render", [aws.cloudformation, aws.cdk, aws.terraform, aws.workbench])
def test_what_dynamodb_would_not_create_is_not_rendered(render: Any) -> None:
    with pytest.raises(InvalidRequest, match="'x' is not a name of 3 to 255 letters"):
        render(replace(TABLES["plain"], name="x"))
