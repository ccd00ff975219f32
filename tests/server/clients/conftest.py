"""A server over a fresh file, and the way to it in the environment, where every client finds it.

It has a key pair, so that what each client signs is checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from adjoin.server.serving import Server, serve
from tests.servers import install
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    keys = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    with serve(tmp_path / "served.db", durability="process", access_key=keys[0], secret_key=keys[1]) as server:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in {
            "AWS_ENDPOINT_URL_DYNAMODB": server.endpoint,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": server.endpoint,
            "AWS_ACCESS_KEY_ID": keys[0],
            "AWS_SECRET_ACCESS_KEY": keys[1],
            "AWS_REGION": "eu-west-1",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }.items():
            monkeypatch.setenv(name, value)
        # A session that another test began has the credentials of that test.
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        yield server


def require(folder: Path) -> None:
    if not install.is_installed(folder):
        pytest.skip(f"{folder.name} is not installed, or is out of date; run: {install.COMMAND}")


def run_python(folder: Path, *arguments: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """Python with the packages of a folder before those of the tests' environment, and adjoin from here."""
    require(folder)
    path = os.pathsep.join((str(folder), str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done
