"""A browser without a screen, for tests of the page. Without it, or without the page, they are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
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


class NoBrowser(Exception):
    """What is missing for tests of the page, and what to run."""


@contextmanager
def opened_browser() -> Iterator[Any]:
    try:
        playwright = import_module("playwright.sync_api")
    except ModuleNotFoundError:
        raise NoBrowser("playwright is not installed; run: make test") from None
    if not build.is_built():
        raise NoBrowser(f"the page of the explorer is not built, or not from these sources; run: {build.COMMAND}")
    chromium = install.chromium_command()
    if chromium is None:
        raise NoBrowser(f"there is no Chromium; run: {install.COMMAND}")
    path, around = chromium
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(path), env={**os.environ, **around}, args=[*FLAGS])
        try:
            yield opened
        finally:
            opened.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for a module. It must not outlive it: while Playwright runs, its thread can run no other loop."""
    try:
        with opened_browser() as found:
            yield found
    except NoBrowser as missing:
        pytest.skip(str(missing))
