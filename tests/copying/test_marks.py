"""Marks in a change stream: whether a stream is the one that a copy was reading."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.copying.steps import Mark, is_marked
from adjoin.errors import ChangesTrimmed
from adjoin.requests import ChangesResponse, ItemChange


def change(position: str, at: float) -> ItemChange:
    return ItemChange(position, at, {"PK": {"S": "a"}}, None, {"PK": {"S": "a"}}, False)


def asked(mark: Mark, *answers: Any) -> Any:
    """What comes of these answers; one that is an error is raised."""
    plan: Any = is_marked("Things", mark)
    try:
        next(plan)
        for answer in answers:
            plan.throw(answer) if isinstance(answer, Exception) else plan.send([answer])
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it asks for more")


MARK = Mark("5", 100.0, "4")
NOTHING = ChangesResponse([], None)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (ChangesResponse([change("5", 100.0)], "5"), True),
        # At the same position there is another change: it is another stream.
        (ChangesResponse([change("5", 99.0)], "5"), False),
        # The change of the mark is not there any more, but all that came after it is.
        (ChangesResponse([change("6", 101.0)], "6"), True),
        (NOTHING, True),
        (ChangesTrimmed("it does not reach back"), True),
    ],
)
def test_whether_a_stream_is_that_of_a_mark(before: Any, expected: bool) -> None:
    assert asked(MARK, NOTHING, before) is expected


def test_a_stream_that_does_not_reach_back_to_a_mark() -> None:
    with pytest.raises(ChangesTrimmed):
        asked(MARK, ChangesTrimmed("it does not reach back"))


def test_a_mark_moves_behind_what_was_read() -> None:
    assert MARK.moved(ChangesResponse([], "7")) == Mark("7", 100.0, "4")
    assert MARK.moved(ChangesResponse([change("6", 101.0)], "6")) == Mark("6", 101.0, "5")
    several = [change("6", 101.0), change("7", 102.0), change("8", 103.0)]
    assert MARK.moved(ChangesResponse(several, "8")) == Mark("8", 103.0, "7")
