"""The AWS SDK for JavaScript v3, where Node is: `tour.mjs`, told where the server is by its environment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from adjoin.server.serving import Server
from tests.server.clients.conftest import require
from tests.servers import install
from tests.waiting import LIMIT

TOUR = Path(__file__).resolve().parent / "tour.mjs"


def test_a_tour(served: Server) -> None:
    require(install.JAVASCRIPT)
    node = install.node_command()
    if node is None:
        pytest.skip(f"there is no Node {install.OLDEST_NODE}; run: {install.COMMAND}")
    done = subprocess.run(
        [str(node), str(TOUR), str(install.JAVASCRIPT)], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == re.findall(r"^  async '(.+)'\(\)", TOUR.read_text(), re.MULTILINE)
