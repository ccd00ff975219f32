"""Which event loop a server runs on."""

from __future__ import annotations

import sys

import pytest

from adjoin.server import serving
from adjoin.server.serving import serve
from tests.server.test_serving import client


def test_uvloop_is_used_where_it_is_installed() -> None:
    assert serving._loop_factory() is pytest.importorskip("uvloop").new_event_loop


def test_asyncio_is_used_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert serving._loop_factory() is None
    with serve() as server:
        assert client(server).list_tables()["TableNames"] == []
