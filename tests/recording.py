"""A plugin of pytest that writes down what tests ask of stores and servers, so that two trees can be compared.

    python -m pytest -p tests.recording --hypothesis-seed=0 --record build/before tests/stores tests/test_docs.py
    python -m pytest -p tests.recording --hypothesis-seed=0 --record build/after tests/stores tests/test_docs.py
    diff -r build/before build/after

There is one file for each test: the requests to embedded stores with their answers, the items that a store holds when
it is closed, and the bodies that a server is sent with its answers. What is random has a number in the order in which
it appears; times, rates and folders are left out. So the files of two runs of the same code are the same, but for tests
in which several clients ask at once, whose lines come in another order. A test with many lines has their sum instead,
unless `--record-whole` is given; the simulations of maintenance are such tests.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import itertools
import json
import os
import re
import secrets
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from adjoin.errors import AdjoinError
from adjoin.requests import ListTables, Request
from adjoin.server import http
from adjoin.server.reading import HttpRequest as Sent
from adjoin.server.service import Service
from adjoin.stores.sqlite import SQLiteStore

MOST_LINES = 3000
_TIME = re.compile(
    rf"\b1[6-9][0-9]{{8}}(?:\.[0-9]+)?\b|{dt.datetime.now(dt.UTC):%Y-%m-%d}T[0-9:.]+"
    r"""|(?<="rate": {"N": ")[0-9.]+|(?<="rate":{"N":")[0-9.]+"""
)
_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|(?:ad[0-9a-f]{6}){1,4}|zz[0-9a-z]{6}"
)
_FOLDER = re.compile(
    r"(?:/[^/ \"']+)*/pytest-of-[^/]+/pytest-[0-9]+(?:/popen-gw[0-9]+)?"
    rf"|{re.escape(tempfile.gettempdir())}/{tempfile.gettempprefix()}[a-z0-9_]{{8}}"
)
_REVISION, _TOKEN = 8, 6
"""How many bytes make a revision and a token; others, such as ids of requests, are not recorded."""
_lines: list[str] = []
_waiting: dict[int, tuple[http.Later, str]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, help="the folder for what tests ask and are answered")
    parser.addoption("--record-whole", action="store_true", help="write down every line, however many there are")


@pytest.fixture(autouse=True, scope="session")
def _recorded_stores(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("--record") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        _record_stores(patch)
        _record_servers(patch)
        yield


@pytest.fixture(autouse=True)
def _recorded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder: Path | None = request.config.getoption("--record")
    if folder is None:
        yield
        return
    numbers = itertools.count(1)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(hex=f"ad{next(numbers):06x}" * 4))
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _=None: f"zz{next(numbers):06d}")
    for name, module in list(sys.modules.items()):
        if name.startswith("adjoin.") and vars(module).get("urandom") is os.urandom:
            monkeypatch.setattr(module, "urandom", lambda size: _bytes(size, next(numbers)))
    _lines.clear()
    yield
    lines = _numbered(_lines)
    if len(lines) > MOST_LINES and not request.config.getoption("--record-whole"):
        lines = [f"{len(lines)} lines, {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"]
    name = re.sub(r"[^A-Za-z0-9_.\-\[\]]+", "_", request.node.nodeid)
    file = folder / f"{name[:150]}-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]}.txt"
    if lines:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", errors="backslashreplace")


def _bytes(size: int, number: int) -> bytes:
    """Bytes in place of random ones: as hex or base64, in which tokens are written, they are what `_RANDOM` finds."""
    if size == _REVISION:
        return bytes.fromhex(f"ad{number:06x}" * 2)
    return base64.urlsafe_b64decode(f"zz{number:06d}") if size == _TOKEN else os.urandom(size)


def _numbered(lines: Sequence[str]) -> list[str]:
    """Lines in which what is random is numbered by appearance, and times are left out."""
    found: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return found.setdefault(match[0], f"<{len(found) + 1}>")

    return [_FOLDER.sub("<folder>", _TIME.sub("<time>", _RANDOM.sub(number, line))) for line in lines]


def _plain(value: Any) -> Any:
    """A value as JSON has it; a class by its name, its fields by theirs."""
    if isinstance(value, AdjoinError):
        return {"error": type(value).__name__, "says": str(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__name__: {each.name: _plain(getattr(value, each.name)) for each in fields(value)}}
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(each) for each in value), key=repr)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _write(kind: str, *values: Any) -> None:
    _lines.append(f"{kind} {json.dumps([_plain(each) for each in values], sort_keys=True)}")


# --- stores ------------------------------------------------------------------------------------


def _record_stores(patch: pytest.MonkeyPatch) -> None:
    outcomes, close = SQLiteStore.outcomes, SQLiteStore.close

    def recorded(store: SQLiteStore, requests: Sequence[Request]) -> list[Any]:
        try:
            found = outcomes(store, requests)
        except AdjoinError as error:
            _write("asked", requests, error)
            raise
        _write("asked", requests, found)
        return found

    def closed(store: SQLiteStore) -> None:
        try:
            (tables,) = outcomes(store, (ListTables(),))
            for name in getattr(tables, "names", ()):
                with store.dump(name) as pieces:
                    for piece in pieces:
                        _lines.extend(f"holds {name} {text.decode()}" for text in piece)
        except AdjoinError as error:
            _write("holds", error)
        except Exception as error:
            # It is closed already, or its file is one that a test broke.
            _write("holds", type(error).__name__)
        close(store)

    patch.setattr(SQLiteStore, "outcomes", recorded)
    patch.setattr(SQLiteStore, "close", closed)


# --- servers -----------------------------------------------------------------------------------


def _record_servers(patch: pytest.MonkeyPatch) -> None:
    answer, settle = Service.answer, http.Later.settle

    def recorded(service: Service, request: Sent) -> http.Answering:
        found = answer(service, request)
        asked = f"{request.target} {request.body.decode(errors='backslashreplace')}"
        if isinstance(found, http.HttpAnswer):
            _lines.append(f"sent {asked} got {found.status} {found.body.decode(errors='backslashreplace')}")
        else:
            _waiting[id(found)] = found, asked
        return found

    def settled(later: http.Later, given: http.HttpAnswer) -> None:
        _, asked = _waiting.pop(id(later), (None, ""))
        _lines.append(f"sent {asked} got {given.status} {given.body.decode(errors='backslashreplace')}")
        settle(later, given)

    patch.setattr(Service, "answer", recorded)
    patch.setattr(http.Later, "settle", settled)
