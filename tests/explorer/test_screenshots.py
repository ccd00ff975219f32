"""The pictures in the documents are what the page looks like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.explorer.screenshots import FOLDER, SHOTS, campus_server, difference, taken
from tests.servers import install

MOST = 0.02
"""The share of pixels that may differ: times, and random texts in the table."""


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with campus_server() as server:
        yield server


@pytest.mark.parametrize("name", SHOTS)
def test_pictures_are_current(browser: Any, server: Any, name: str) -> None:
    found = install.chromium_command()
    if found is None or install.CHROMIUM not in found[0].parents:
        pytest.skip(f"another Chromium has other fonts; run: {install.COMMAND}")
    path = FOLDER / f"{name}.webp"
    assert path.exists(), "run: python -m tests.explorer.screenshots"
    now = taken(browser, server.address, name)
    share = difference(browser, path.read_bytes(), now)
    assert share <= MOST, (
        f"{path.name} differs in {share:.1%}; look at it, and run: python -m tests.explorer.screenshots"
    )


def test_another_picture_is_noticed(browser: Any) -> None:
    one, other = (FOLDER / f"{name}.webp" for name in ("explorer-graph", "explorer-table"))
    assert difference(browser, one.read_bytes(), other.read_bytes()) > MOST
    assert difference(browser, one.read_bytes(), one.read_bytes()) == 0
