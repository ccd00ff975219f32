"""The example deployed into MiniStack: its template, its package, and an event source mapping on the table's stream.

MiniStack has no SAM of its own; what SAM makes of the function is put into the template here. It does not look at
partial batch responses of a DynamoDB stream (1.5), so what comes of those is in `test_lambda`, over a mapping that
follows the documentation.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from adjoin import Graph
from adjoin.requests import Put
from examples.aws_lambda import app
from tests.aws.event_source_mapping import event_of
from tests.aws.packaging import package
from tests.examples.test_aws_lambda import template
from tests.maintenance.simulation import stored
from tests.servers.processes import NotInstalled, Process, ministack_process
from tests.waiting import LIMIT, until

FOLDER = Path(app.__file__).parent
SERVICES = "dynamodb,dynamodbstreams,lambda,cloudformation,s3,iam,sts,sqs,logs"


@pytest.fixture(scope="module")
def code() -> bytes:
    return package(FOLDER)


@pytest.fixture(scope="module")
def ministack() -> Iterator[Process]:
    try:
        process = ministack_process(SERVICES)
    except NotInstalled as error:
        pytest.skip(str(error))
    yield process
    process.stop()


def client(ministack: Process, service: str) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=ministack.url, region_name="us-east-1", **keys)


def expanded(whole: dict[str, Any], code: dict[str, str]) -> dict[str, Any]:
    """The template with the function and its mapping as resources of Lambda, which is what SAM makes of it."""
    del whole["Transform"]
    resources = whole["Resources"]
    function = resources["Maintain"]["Properties"]
    (source,) = function.pop("Events").values()
    mapping = source["Properties"]
    mapping["EventSourceArn"] = mapping.pop("Stream")
    del mapping["DestinationConfig"]["OnFailure"]["Type"], function["CodeUri"]
    resources["Maintain"] = {"Type": "AWS::Lambda::Function", "Properties": function | {"Code": code}}
    resources["MaintainChanges"] = {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": mapping | {"FunctionName": {"Ref": "Maintain"}},
    }
    return whole


@pytest.fixture(scope="module")
def deployed(ministack: Process, code: bytes) -> str:
    """The name of the table; the stack is made as `sam deploy` makes it."""
    table, bucket = f"Shop-{uuid4().hex[:8]}", f"code-{uuid4().hex}"
    s3 = client(ministack, "s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="app.zip", Body=code)
    formation = client(ministack, "cloudformation")
    formation.create_stack(
        StackName=table,
        TemplateBody=json.dumps(expanded(template(), {"S3Bucket": bucket, "S3Key": "app.zip"})),
        Parameters=[{"ParameterKey": "TableName", "ParameterValue": table}],
        Capabilities=["CAPABILITY_IAM"],
    )

    def is_made() -> bool:
        (stack,) = formation.describe_stacks(StackName=table)["Stacks"]
        status = stack["StackStatus"]
        assert status in ("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), formation.describe_stack_events(StackName=table)
        return bool(status == "CREATE_COMPLETE")

    until(is_made)
    return table


@pytest.fixture
def g(ministack: Process, deployed: str) -> Iterator[Graph]:
    with Graph(f"dynamodb://{deployed}?endpoint={ministack.url}&region=us-east-1", app.MODELS) as graph:
        yield graph


def is_true(g: Graph) -> bool:
    """Whether all aggregates and copies are what looking at everything gives."""
    layout = g._layout
    entities = [found for item in stored(g) if not layout.is_bookkeeping(item) and (found := readable(g, item))]
    names = {each.id: each.name for each in entities if isinstance(each, app.Customer)}
    for each in entities:
        if isinstance(each, app.Placed) and each.customer != names.get(each.source, ""):
            return False
        if isinstance(each, app.Customer):
            balances = [edge.balance for edge in entities if isinstance(edge, app.Placed) and edge.source == each.id]
            wanted = (len(balances), sum(balances, Decimal(0)), max(balances, default=None))
            if (each.invoices, each.owed, each.largest) != wanted:
                return False
    return True


def readable(g: Graph, item: Any) -> Any:
    return None if item.get("balance", {"N": ""}).get("N") is None else g._layout.read(item)


def test_the_package_stands_alone(code: bytes, tmp_path: Path) -> None:
    """Nothing but the standard library is beside it."""
    with zipfile.ZipFile(BytesIO(code)) as archive:
        archive.extractall(tmp_path)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import app, adjoin.stores.dynamodb; print(app)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout


def function_of(ministack: Process, table: str) -> dict[str, Any]:
    functions: list[dict[str, Any]] = client(ministack, "lambda").list_functions()["Functions"]
    (found,) = (each for each in functions if each["Environment"]["Variables"].get("TABLE") == table)
    return found


def test_the_stack_is_as_the_template_says(ministack: Process, deployed: str) -> None:
    function = function_of(ministack, deployed)
    assert function["Handler"] == "app.handler"
    mappings = client(ministack, "lambda").list_event_source_mappings(FunctionName=function["FunctionName"])
    (mapping,) = mappings["EventSourceMappings"]
    assert f"table/{deployed}/stream/" in mapping["EventSourceArn"]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["MaximumRetryAttempts"] == -1
    assert json.loads(mapping["FilterCriteria"]["Filters"][0]["Pattern"])["dynamodb"]["Keys"]


def test_what_is_written_is_applied(g: Graph) -> None:
    chance = random.Random(1)
    g.put_many(app.Customer(id=f"C{number}", name=f"N{number}") for number in range(4))
    for number in range(30):
        balance = Decimal(chance.randrange(-900, 900)) / 100
        g.put(app.Placed(source=f"C{number % 5}", target=f"I{number}", balance=balance))
    until(lambda: is_true(g))
    found = g.get(app.Customer, "C0")
    assert found is not None
    assert found.invoices == 6
    for number in range(0, 30, 3):
        g.disconnect(app.Placed, f"C{number % 5}", f"I{number}")
    g.update(app.Customer, "C1", name="renamed")
    g.update(app.Placed, "C2", "I2", balance=Decimal("1000.5"))
    g.put(app.Customer(id="C4", name="late"))
    g.delete(app.Customer, "C3")
    until(lambda: is_true(g))
    late = g.get(app.Customer, "C4")
    assert late is not None
    assert late.invoices == 4


def test_what_can_never_be_applied_holds_nothing_up(g: Graph, deployed: str) -> None:
    g.put(app.Customer(id="P1", name="Ann"))
    bad = {"PK": {"S": "CUSTOMER#P1"}, "SK": {"S": "PLACED#INVOICE#bad"}, "balance": {"S": "a lot"}}
    g._store.execute((Put(deployed, bad),))
    g.put(app.Placed(source="P1", target="good", balance=Decimal(7)))

    def is_done() -> bool:
        found = g.get(app.Customer, "P1")
        return found is not None and found.owed == 7

    until(is_done)
    reasons = [item["reason"]["S"] for item in stored(g) if "reason" in item]
    assert reasons
    assert all("balance" in reason for reason in reasons)
    g.disconnect(app.Placed, "P1", "bad")
    until(lambda: not [item for item in stored(g) if "reason" in item])


def test_a_record_that_is_none_is_set_aside(ministack: Process, g: Graph, deployed: str) -> None:
    g.put(app.Customer(id="Q1", name="Ann"))
    g.put(app.Placed(source="Q1", target="I1", balance=Decimal(7)))
    records = event_of(g)["Records"]
    del records[0]["dynamodb"]["NewImage"]
    for _ in range(2):
        answer = client(ministack, "lambda").invoke(
            FunctionName=function_of(ministack, deployed)["FunctionName"], Payload=json.dumps({"Records": records})
        )
        assert json.loads(answer["Payload"].read()) == {"batchItemFailures": []}
        (record,) = (item for item in stored(g) if item["PK"]["S"] == "#=UNAPPLIED")
        assert "NewImage is missing" in record["reason"]["S"]
        assert record["position"] == {"S": records[0]["dynamodb"]["SequenceNumber"]}
    until(lambda: is_true(g))


def test_nothing_was_given_up(ministack: Process, deployed: str, g: Graph) -> None:
    queues = client(ministack, "sqs")
    for url in queues.list_queues()["QueueUrls"]:
        assert "Messages" not in queues.receive_message(QueueUrl=url)
