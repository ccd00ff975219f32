"""Interrupts inside the event loop on which a synchronous graph runs its calls, at each line of the loop's own run."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

import adjoin
from adjoin import Graph
from tests.models import Course

RUNS = {asyncio.BaseEventLoop.run_until_complete.__code__, asyncio.BaseEventLoop.run_forever.__code__}


@pytest.fixture(scope="module")
def g() -> Iterator[Graph]:
    with adjoin.serve(":memory:") as server, Graph(f"dynamodb://Lines?endpoint={server.endpoint}", [Course]) as graph:
        graph.create_table()
        yield graph


def is_interrupted(before: int, call: Callable[[], object]) -> bool:
    """Makes a call, with an interrupt before the so manieth line that the loop runs; whether it came to that."""
    left, watched = before, sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code not in RUNS:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(watched)
    return False


@pytest.mark.filterwarnings("error")
def test_an_interrupt_at_any_line_of_the_loop(g: Graph) -> None:
    for name in ("a", "b"):
        g.put(Course(id=name))
    line = 1
    while is_interrupted(line, partial(g.put, Course(id="a", credits=line))):
        assert asyncio._get_running_loop() is None, "this thread runs no loop"
        assert g.get(Course, "b") == Course(id="b"), "the next call is as any other"
        line += 1
    assert line > 20
    gc.collect()
    assert g.get(Course, "a") == Course(id="a", credits=line)
