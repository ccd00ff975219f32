"""The demo shows three tables, their indexes, and every access pattern with its code, result and cost."""

from __future__ import annotations

import inspect

import pytest

from examples import demo, education, invoices, people


def test_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    shown = capsys.readouterr().out
    assert "\x1b[" not in shown
    for title in (
        "Education: 7 items",
        "Education, index GSI1: 3 items",
        "InvoiceAndBills: 14 items",
        "InvoiceAndBills, index GSI_1: 14 items",
        "People: 23 items",
        "People, index GSI1: 19 items",
    ):
        assert f"\n{title}\n┌" in shown
    for pattern in (*education.PATTERNS, *invoices.PATTERNS, *people.PATTERNS):
        assert f"\n{inspect.getdoc(pattern)}\n" in shown
    assert "    g.get(Student, \"S1\")\n    → Student(id='S1', name='John Doe'" in shown
    assert "    1 request · 1 round · 0.5 read units\n" in shown
    assert max(map(len, shown.splitlines())) <= 180
