"""The deployable example: its template says what the function needs, as adjoin renders it, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from cfnlint import api, decode
from cfnlint.config import ManualArgs

from adjoin import Graph, aws
from examples.aws_lambda import app
from tests.aws.event_source_mapping import event_of

FOLDER = Path(app.__file__).parent
TEMPLATE = FOLDER / "template.yaml"


def plain(part: Any) -> Any:
    """The template's nodes know their lines, which comparisons need not."""
    return json.loads(json.dumps(part))


def template() -> dict[str, Any]:
    loaded, faults = decode.decode(str(TEMPLATE))
    assert not faults
    found: dict[str, Any] = plain(loaded)
    return found


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"][name]["Properties"]
    return found


def mapping() -> dict[str, Any]:
    found: dict[str, Any] = properties("Maintain")["Events"]["Changes"]["Properties"]
    return found


def test_the_linter_has_nothing_to_say() -> None:
    # It knows the resources of SAM as well.
    found = api.lint(TEMPLATE.read_text(), config=ManualArgs(regions=["eu-west-1"]))
    assert [f"{each.rule.id} {each.message}" for each in found] == []


def test_the_table_is_the_one_of_the_classes() -> None:
    wanted = aws.cloudformation(aws.table(app.MODELS))["Resources"]["Table"]
    wanted["Properties"]["TableName"] = {"Ref": "TableName"}
    assert template()["Resources"]["Table"] == {**wanted, "Condition": "MakesTable"}


def test_the_mapping_lets_nothing_be_lost_and_nothing_block() -> None:
    found = mapping()
    assert found["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert found["StartingPosition"] == "TRIM_HORIZON"
    assert found["BisectBatchOnFunctionError"] is True
    # Tried for as long as the stream keeps a record, and given up where somebody sees it.
    assert found["MaximumRetryAttempts"] == -1
    assert 0 < found["MaximumRecordAgeInSeconds"] < 24 * 3600
    assert found["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["GivenUp", "Arn"]}
    assert 1 <= found["BatchSize"] <= 10_000
    assert found["MaximumBatchingWindowInSeconds"] <= 5
    assert 1 <= found["ParallelizationFactor"] <= 10
    assert "TumblingWindowInSeconds" not in found
    assert found["Stream"]["Fn::If"] == ["MakesTable", {"Fn::GetAtt": ["Table", "StreamArn"]}, {"Ref": "StreamArn"}]


def test_the_filter_lets_nodes_and_edges_through_and_nothing_of_adjoins_own() -> None:
    (only,) = mapping()["FilterCriteria"]["Filters"]
    pattern = json.loads(only["Pattern"])
    assert pattern == aws.stream_filter(app.MODELS)
    prefixes = tuple(each["prefix"] for each in pattern["dynamodb"]["Keys"]["SK"]["S"])
    with Graph(":memory:", app.MODELS) as g:
        g.put_many([app.Customer(id="C1"), app.Invoice(id="I1")])
        g.connect(app.Placed, "C1", "I1", balance=5)
        g.put(app.Placed(source="C2", target="I1", balance=4))
        g.maintain(once=True)
        g.delete(app.Customer, "C1")
        g.maintain(once=True)
        for record in event_of(g)["Records"]:
            key = record["dynamodb"]["Keys"]
            assert key["SK"]["S"].startswith(prefixes) is not g._layout.is_bookkeeping(key), key


def test_the_role_may_do_what_it_must() -> None:
    named = replace(aws.table(app.MODELS), name="${TableName}")
    policy = aws.iam_policy(
        named,
        access=("read", "write", "stream"),
        partition="${AWS::Partition}",
        region="${AWS::Region}",
        account="${AWS::AccountId}",
    )
    table, function = (each["PolicyDocument"]["Statement"] for each in properties("MaintainRole")["Policies"])
    spelled = [
        {**each, "Resource": [part if isinstance(part, str) else part["Fn::Sub"] for part in each["Resource"]]}
        for each in table
    ]
    assert spelled == policy["Statement"]
    assert [each["Action"] for each in function] == [["logs:CreateLogStream", "logs:PutLogEvents"], ["sqs:SendMessage"]]
    assert all("Fn::GetAtt" in each["Resource"] for each in function)
    # With a role of its own, SAM adds no policy that is wider.
    assert properties("Maintain")["Role"] == {"Fn::GetAtt": ["MaintainRole", "Arn"]}
    assert "Policies" not in properties("Maintain")


def test_the_function_is_the_handler() -> None:
    found = properties("Maintain")
    module, name = found["Handler"].split(".")
    assert (FOLDER / f"{module}.py").is_file()
    assert callable(getattr(app, name))
    assert found["Environment"]["Variables"] == {"TABLE": {"Ref": "TableName"}}
    assert (found["Runtime"], found["Architectures"]) == ("python3.13", ["arm64"])
    # A request with its retries, and what the handler keeps for itself, fit into the function's time.
    assert found["Timeout"] >= 2 * 10
    # The wheel of a checkout lies beside it, wherever pip is called from.
    assert (FOLDER / "requirements.txt").read_text().splitlines() == ["--find-links .", "adjoin[dynamodb]"]
