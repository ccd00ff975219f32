"""Clients that need a botocore of their own: their tests run in a process where it is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.server.clients.conftest import run_python
from tests.servers import install

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("folder", [install.AIOBOTOCORE, install.PYNAMODB], ids=lambda folder: folder.name)
def test_a_client_in_a_place_of_its_own(folder: Path) -> None:
    program = HERE / f"with_{folder.name}.py"
    options = ("-c", os.devnull, "--rootdir", str(HERE), "-q", "-W", "error", "-p", "no:cacheprovider", "--color=no")
    done = run_python(folder, "-m", "pytest", *options, "-p", "pytest_adjoin", str(program))
    tests = len(re.findall(r"^def test_", program.read_text(), re.MULTILINE))
    assert f"\n{tests} passed" in done.stdout, done.stdout
