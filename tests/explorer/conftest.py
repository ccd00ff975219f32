"""A browser without a screen, for tests of the page. Without it, or without the page, they are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from explorer import build
from tests.servers import install

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; run: make test")
    if not build.is_built():
        pytest.skip(f"the page of the explorer is not built, or not from these sources; run: {build.COMMAND}")
    chromium = install.chromium_command()
    if chromium is None:
        pytest.skip(f"there is no Chromium; run: {install.COMMAND}")
    path, around = chromium
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(path), env={**os.environ, **around}, args=[*FLAGS])
        try:
            yield opened
        finally:
            opened.close()
