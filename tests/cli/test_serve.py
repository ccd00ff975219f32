"""`adjoin serve` as a command: where it listens, who may ask, and what it says when it cannot start."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from adjoin.cli import main
from tests.waiting import LIMIT


@pytest.fixture(autouse=True, scope="module")
def collector() -> Iterator[None]:
    """The command freezes what there is once it serves. A call that serves nothing has changed nothing.

    It is looked at once for all tests: to count what is frozen takes half a second in a worker that has run others.
    """
    before = gc.get_freeze_count(), gc.get_threshold()
    yield
    assert gc.get_freeze_count() <= before[0]
    assert gc.get_threshold() == before[1]


@contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[str]:
    """The address at which the command answers; it must end with status 0 when it is asked to."""
    command = [sys.executable, "-m", "adjoin", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith(f"{arguments[0]} answers at http://")
    yield said.split()[-1]
    process.terminate()
    rest, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, rest) == (0, "")


def tables(address: str, access_key: str, secret_key: str) -> Any:
    client = boto3.client(
        "dynamodb",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
    )
    try:
        return client.list_tables()["TableNames"]
    finally:
        client.close()


def test_at_every_address_with_a_key_pair(tmp_path: Path) -> None:
    path = str(tmp_path / "graph.db")
    keys = {"ADJOIN_ACCESS_KEY": "AKID", "ADJOIN_SECRET_KEY": "secret"}
    with serving(path, "--host", "0.0.0.0", **keys) as address:
        here = address.replace("0.0.0.0", "127.0.0.1")
        assert tables(here, "AKID", "secret") == []
        with pytest.raises(ClientError, match="InvalidSignatureException"):
            tables(here, "AKID", "another")


def test_at_ipv6_loopback(tmp_path: Path) -> None:
    if not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    with serving(str(tmp_path / "graph.db"), "--host", "::1") as address:
        assert address.startswith("http://[::1]:")
        assert tables(address, "any", "any") == []


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "at 0.0.0.0 others can reach the server"),
        ({"ADJOIN_ACCESS_KEY": "AKID"}, "one half of a key pair is missing"),
        ({"ADJOIN_SECRET_KEY": "secret"}, "one half of a key pair is missing"),
    ],
)
def test_not_without_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
    said: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["serve", str(tmp_path / "graph.db"), "--host", "0.0.0.0"]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert "ADJOIN_ACCESS_KEY and ADJOIN_SECRET_KEY" in shown.err
    assert shown.out == ""
    assert not list(tmp_path.iterdir()), "nothing was made"


def test_what_is_no_file_of_adjoin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("something else")
    assert main(["serve", str(file), "--port", "0"]) == 1
    assert "is not an adjoin file" in capsys.readouterr().err
    assert file.read_text() == "something else"


def test_pages_hosts_and_limits(tmp_path: Path) -> None:
    path = str(tmp_path / "graph.db")
    pages = ("--allow-origin", "http://localhost:3000", "--allow-origin", "http://localhost:4000")
    limits = ("--max-connections", "7", "--request-timeout", "60.5")
    with serving(path, *pages, "--allow-host", "db.example", *limits) as address:
        for headers, status in (
            ({}, 200),
            ({"Origin": "http://localhost:3000"}, 200),
            ({"Origin": "http://localhost:4000"}, 200),
            ({"Origin": "http://localhost:5000"}, 403),
            ({"Host": "db.example"}, 200),
            ({"Host": "evil.example"}, 403),
        ):
            connection = HTTPConnection(address.removeprefix("http://"), timeout=LIMIT)
            connection.request("GET", "/", headers=headers)
            assert connection.getresponse().status == status, headers
            connection.close()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--port", "9" * 5000], "is not a port"),
        (["--port", "²"], "is not a port"),
        (["--max-connections", "0"], "'0' is not a number of connections; choose 1 or more"),
        (["--max-connections", "9" * 5000], "is not a number of connections"),
        (["--max-connections", "many"], "is not a number of connections"),
        (["--request-timeout", "0"], "'0' is not a number of seconds above 0"),
        (["--request-timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["--request-timeout", "inf"], "is not a number of seconds above 0"),
        (["--request-timeout", "soon"], "is not a number of seconds above 0"),
        (["--allow-origin", "localhost"], "'localhost' is not an origin to allow"),
        (["--allow-host", "http://db"], "'http://db' is not a host to allow"),
    ],
)
def test_what_no_option_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    try:
        status: Any = main(["serve", str(tmp_path / "graph.db"), *arguments])
    except SystemExit as ended:
        status = ended.code
    assert status in (1, 2)
    assert fault in capsys.readouterr().err
    assert not (tmp_path / "graph.db").exists()
