"""The server runs on asyncio's loop and on uvloop's; tests of its connections and of its writer meet both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adjoin.server import serving


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Servers that are started while it is there run on the loop of that name."""
    factory = None if request.param == "asyncio" else pytest.importorskip("uvloop").new_event_loop
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "_loop_factory", lambda: factory)
        yield
