"""The server behind the misbehaving one: MiniStack, in a process of its own that ends with the test session."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

import pytest

# It ends when its standard input does, which is also when the session is killed.
_PROGRAM = """
import os, sys, threading

def end_with_the_session():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_the_session, daemon=True).start()
from ministack.app import main
main()
"""


@contextmanager
def running_backend() -> Iterator[str]:
    """The address at which it answers."""
    if importlib.util.find_spec("ministack") is None:
        pytest.skip("MiniStack is not installed; run: pip install ministack")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "dynamodb,dynamodbstreams",
        "LOG_LEVEL": "ERROR",
        "PERSIST_STATE": "0",
    }
    command = [sys.executable, "-c", _PROGRAM]
    process = subprocess.Popen(
        command, env={**os.environ, **settings}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/_ministack/health", process)
        yield url
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError(f"MiniStack does not answer at {url}")
