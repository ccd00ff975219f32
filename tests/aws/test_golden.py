"""What every renderer makes of the published tables, and of one with every setting, text by text."""

from __future__ import annotations

import pytest

from tests.aws.renderings import GOLDEN, RENDERINGS


@pytest.mark.parametrize("file", RENDERINGS)
def test_renderings_are_as_written_down(file: str) -> None:
    expected = (GOLDEN / file).read_text()
    assert RENDERINGS[file]() == expected, "if this is meant, run python -m tests.aws.renderings and look at the diff"


def test_nothing_else_is_written_down() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(RENDERINGS)
