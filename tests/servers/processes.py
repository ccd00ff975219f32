"""Servers that run for a test session: each a process of its own, on a free port of this machine.

Ours is `adjoin serve` over a file; the others are in memory.

A process of pytest starts a server when a test first asks for it (a fifth of a second) and has it to
itself, so that workers never meet. A server ends when its standard input does; that is when the session
ends it, and also when the session is killed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

from adjoin.requests import ListStreams, ReadChanges, SetTimeToLive, TransactGet, TransactWrite, UpdateTable
from tests.servers import install

ENDPOINT = "ADJOIN_TEST_ENDPOINT"
"""The environment variable that names a further server: its URL, or "aws" for the service in AWS_REGION."""


@dataclass(frozen=True, eq=False)
class Server:
    """Where a server answers (None: where the service does), and which requests it has nothing for."""

    name: str
    endpoint: str | None
    region: str
    lacks: Mapping[type, str] = field(default_factory=dict)
    is_ours: bool = True
    """Whether it ends with the session, and all that is on it."""
    settles_in: float = 0.0
    """Seconds after which every read shows what was written."""


class NotInstalled(Exception):
    """A server is not on this machine; the message says how to get it."""


class Servers:
    """The servers of one process of pytest, started as they are asked for."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Server, Process | None]] = {}

    def __getitem__(self, name: str) -> Server:
        server, process = self._running.get(name) or self._start(name)
        if process is not None and not process.is_alive():
            # A request that brings a server down fails the test that sent it, and no other.
            process.stop()
            server, process = self._start(name)
        return server

    def process(self, name: str) -> Process:
        """The process of a server that runs here."""
        _, process = self._running[name]
        assert process is not None
        return process

    def _start(self, name: str) -> tuple[Server, Process | None]:
        self._running[name] = _KINDS[name]()
        return self._running[name]

    def stop(self) -> None:
        for _, process in self._running.values():
            if process is not None:
                process.stop()
        self._running.clear()


# --- the kinds ---------------------------------------------------------------------------------

_SERVE = """
import os, signal, sys, tempfile, threading

def end_with_the_session():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_the_session, daemon=True).start()
from adjoin.cli import main
with tempfile.TemporaryDirectory() as folder:
    sys.exit(main(["serve", os.path.join(folder, "served.db"), "--port", sys.argv[1], "--durability", "process"]))
"""

_MINISTACK = """
import os, sys, threading

def end_with_the_session():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_the_session, daemon=True).start()
from ministack.app import main
main()
"""

_DYNALITE = """
const [port] = process.argv.slice(1)
process.stdin.on('end', () => process.exit()).resume()
require('dynalite')({createTableMs: 0, deleteTableMs: 0, updateTableMs: 0}).listen(Number(port), '127.0.0.1')
"""


def _serve() -> tuple[Server, Process | None]:
    process = Process(lambda port: [sys.executable, "-c", _SERVE, str(port)], lambda _: {}, "/")
    return Server("serve", process.url, "us-east-1"), process


def _ministack() -> tuple[Server, Process | None]:
    process = ministack_process()
    return Server("ministack", process.url, "us-east-1"), process


def ministack_process(services: str = "dynamodb,dynamodbstreams,s3") -> Process:
    _require(install.MINISTACK, "MiniStack")

    def environment(port: int) -> dict[str, str]:
        return {
            "PYTHONPATH": str(install.MINISTACK),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "SERVICES": services,
            "LOG_LEVEL": "ERROR",
            "PERSIST_STATE": "0",
        }

    return Process(lambda _: [sys.executable, "-c", _MINISTACK], environment, "/_ministack/health")


def _dynalite() -> tuple[Server, Process | None]:
    process = dynalite_process()
    lacks: dict[type, str] = {
        TransactGet: "transactions",
        TransactWrite: "transactions",
        ReadChanges: "streams",
        SetTimeToLive: "time to live",
        UpdateTable: "changes of tables besides their throughput",
        ListStreams: "streams",
    }
    return Server("dynalite", process.url, "us-east-1", lacks), process


def dynalite_process() -> Process:
    _require(install.DYNALITE, "dynalite")
    node = install.node_command()
    if node is None:
        raise NotInstalled(f"there is no Node {install.OLDEST_NODE} for dynalite; run: {install.COMMAND}")

    def command(port: int) -> list[str]:
        return [str(node), "--eval", _DYNALITE, str(port)]

    return Process(command, lambda _: {"NODE_PATH": str(install.DYNALITE / "node_modules")}, "/")


def _endpoint() -> tuple[Server, Process | None]:
    named = os.environ[ENDPOINT]
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named == "aws" and region is None:
        raise NotInstalled(f"{ENDPOINT} is aws, and AWS_REGION does not say where; set it")
    if named == "aws":
        return Server("endpoint", None, region or "", is_ours=False, settles_in=1.0), None
    return Server("endpoint", named, region or "us-east-1", is_ours=False), None


_KINDS: dict[str, Callable[[], tuple[Server, Process | None]]] = {
    "serve": _serve,
    "ministack": _ministack,
    "dynalite": _dynalite,
    "endpoint": _endpoint,
}

NAMES = [name for name in _KINDS if name != "endpoint" or os.environ.get(ENDPOINT)]
"""The servers that tests run against: our own, those that can be installed, and the one that is named."""


def _require(folder: Path, name: str) -> None:
    if not install.is_installed(folder):
        raise NotInstalled(f"{name} is not installed, or is out of date; run: {install.COMMAND}")


# --- processes ---------------------------------------------------------------------------------

_PATIENCE = 120.0
_ATTEMPTS = 3
"""Between finding a free port and listening on it, somebody else may take it."""


class Process:
    """A running server that answers on `url`."""

    def __init__(
        self, command: Callable[[int], list[str]], environment: Callable[[int], dict[str, str]], path: str
    ) -> None:
        for attempt in range(_ATTEMPTS):
            port = _free_port()
            self.url = f"http://127.0.0.1:{port}"
            self._log: IO[bytes] = TemporaryFile()  # noqa: SIM115 - the process writes to it until it is stopped
            self._process = subprocess.Popen(
                command(port),
                env={**os.environ, **environment(port)},
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=subprocess.STDOUT,
            )
            if self._answers(self.url + path):
                return
            said = self._said()
            self.stop()
            if attempt == _ATTEMPTS - 1:
                raise RuntimeError(f"{command(port)[0]} does not answer on {self.url}; it said: {said}")

    def _answers(self, url: str) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urlopen(url, timeout=_PATIENCE):
                    return True
            except (URLError, OSError):
                time.sleep(0.02)
        return False

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]

    def stop(self) -> None:
        """End the server; again does nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
