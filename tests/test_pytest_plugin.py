"""The pytest plugin as its users have it: pytest run on their tests, in a process of its own, warnings as errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

import pytest

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parent.parent

TABLE = """
import os
import threading

import boto3

TABLE = {
    "TableName": "Orders",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
"""


@pytest.fixture
def users(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Somebody who has adjoin, and no settings of AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    return pytester


def run(users: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    users.makepyfile(TABLE + tests)
    return run_on_files(users, *options)


def run_on_files(users: pytest.Pytester, *options: str) -> pytest.RunResult:
    return users.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", "-p", "pytest_adjoin", *options)


def test_what_the_fixture_gives(users: pytest.Pytester) -> None:
    tests = """
def test_clients(adjoin_dynamodb):
    assert adjoin_dynamodb.endpoint.startswith("http://127.0.0.1:")
    assert adjoin_dynamodb.endpoint in repr(adjoin_dynamodb)
    orders = adjoin_dynamodb.resource().create_table(**TABLE)
    orders.put_item(Item={"id": "1", "pieces": 3})
    found = boto3.client("dynamodb", **adjoin_dynamodb.kwargs).get_item(TableName="Orders", Key={"id": {"S": "1"}})
    assert found["Item"] == {"id": {"S": "1"}, "pieces": {"N": "3"}}
    assert adjoin_dynamodb.client().scan(TableName="Orders")["Count"] == 1
    assert adjoin_dynamodb.client("dynamodbstreams").list_streams()["Streams"][0]["TableName"] == "Orders"
    assert adjoin_dynamodb.client(region_name="eu-west-1").meta.region_name == "eu-west-1"

def test_clients_that_know_of_nothing(adjoin_dynamodb):
    boto3.resource("dynamodb").create_table(**TABLE)
    assert boto3.client("dynamodb").list_tables()["TableNames"] == ["Orders"]
    assert len(boto3.client("dynamodbstreams").list_streams()["Streams"]) == 1
    assert boto3.Session().client("dynamodb").list_tables()["TableNames"] == ["Orders"]
"""
    run(users, tests).assert_outcomes(passed=2)


def test_every_test_starts_empty_and_kept_clients_go_on_to_work(users: pytest.Pytester) -> None:
    tests = """
import functools
import pytest

@functools.cache
def kept():
    return boto3.client("dynamodb")

@pytest.mark.parametrize("number", range(5))
def test_it(adjoin_dynamodb, number):
    assert kept().list_tables()["TableNames"] == []
    kept().create_table(**TABLE)
    kept().put_item(TableName="Orders", Item={"id": {"S": "1"}})
"""
    run(users, tests).assert_outcomes(passed=5)


def test_nothing_is_left_behind(users: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    tests = """
BEFORE = dict(os.environ)
own = boto3.DEFAULT_SESSION = object()

def without_pytest(environment):
    return {name: value for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"}

def test_with_it(adjoin_dynamodb, monkeypatch):
    monkeypatch.undo()
    client = boto3.client("dynamodb")
    assert client.list_tables()["TableNames"] == []
    assert client._request_signer._credentials.access_key == "adjoin"

def test_without_it():
    assert without_pytest(os.environ) == without_pytest(BEFORE)
    assert boto3.DEFAULT_SESSION is own
    boto3.DEFAULT_SESSION = None
"""
    users.makeconftest(
        """
import gc, threading

def pytest_unconfigure():
    gc.collect()
    print("threads:", [thread.name for thread in threading.enumerate()])
"""
    )
    result = run(users, tests, "-s")
    result.assert_outcomes(passed=2)
    assert "threads: ['MainThread']" in result.stdout.str()


def test_boto3_that_a_test_imports_keeps_no_session_of_it(users: pytest.Pytester) -> None:
    users.makepyfile(
        """
import sys

def test_with_it(adjoin_dynamodb):
    assert "boto3" not in sys.modules
    import boto3
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []

def test_without_it():
    assert sys.modules["boto3"].DEFAULT_SESSION is None
"""
    )
    run_on_files(users).assert_outcomes(passed=2)


def test_a_failing_test_ends_cleanly_too(users: pytest.Pytester) -> None:
    tests = """
def test_it(adjoin_dynamodb):
    boto3.client("dynamodb").create_table(**TABLE)
    assert False

def test_another(adjoin_dynamodb):
    assert adjoin_dynamodb.client().list_tables()["TableNames"] == []
"""
    run(users, tests).assert_outcomes(passed=1, failed=1)


def test_workers_have_servers_of_their_own(users: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    tests = """
import pytest

@pytest.mark.parametrize("number", range(10))
def test_it(adjoin_dynamodb, number, worker_id, tmp_path_factory):
    assert adjoin_dynamodb.client().list_tables()["TableNames"] == []
    adjoin_dynamodb.client().create_table(**TABLE)
    with open(tmp_path_factory.getbasetemp().parent / "addresses", "a") as file:
        file.write(f"{worker_id} {adjoin_dynamodb.endpoint}\\n")
"""
    result = run(users, tests, "-p", "xdist", "-n", "2", "--basetemp", str(users.path / "temp"))
    result.assert_outcomes(passed=10)
    used = {tuple(line.split()) for line in (users.path / "temp" / "addresses").read_text().splitlines()}
    assert len(used) == len({worker for worker, _ in used}) == len({address for _, address in used})


@pytest.mark.parametrize("options", [(), ("-p", "no:adjoin")], ids=["on", "off"])
def test_it_can_be_turned_off(users: pytest.Pytester, options: tuple[str, ...]) -> None:
    users.makeconftest('pytest_plugins = ["pytest_adjoin"]')
    users.makepyfile("def test_it(adjoin_dynamodb): pass")
    result = users.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(errors=1 if options else 0, passed=0 if options else 1)
    assert ("fixture 'adjoin_dynamodb' not found" in result.stdout.str()) == bool(options)


def test_a_fresh_store_takes_milliseconds(users: pytest.Pytester) -> None:
    tests = """
import pytest

@pytest.mark.parametrize("number", range(60))
def test_it(adjoin_dynamodb, number): pass
"""
    users.makeconftest(
        """
def pytest_runtest_logreport(report):
    if report.when == "setup":
        print(f"took {report.duration:.6f}")
"""
    )
    taken = [float(found) for found in re.findall(r"took (\S+)", run(users, tests, "-s").stdout.str())]
    assert len(taken) == 60
    assert median(taken) < 0.03, "a few milliseconds are usual"


def test_loading_it_imports_nothing_of_adjoin() -> None:
    program = (
        "import sys, contextlib, typing, pytest; before = set(sys.modules); import pytest_adjoin;"
        " print(sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "['pytest_adjoin']"


def test_pytest_finds_it_by_its_entry_point() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"pytest_adjoin": "pytest_adjoin"}, "of one name, so that -p and conftest files meet the same"
    installed = {point.name: point.value for point in entry_points(group="pytest11")}
    if "pytest_adjoin" not in installed:
        pytest.skip("adjoin is not installed here, or an older one is; run: pip install -e .")
    assert installed["pytest_adjoin"] == "pytest_adjoin"
