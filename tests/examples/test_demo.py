"""The demo shows four tables, their indexes, and every access pattern with its code, result and cost."""

from __future__ import annotations

import inspect

import pytest

from examples import demo, education, invoices, people, shop


def test_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    shown = capsys.readouterr().out
    assert "\x1b[" not in shown
    for title in (
        "table Education: 7 items",
        "table Education, index GSI1: 3 items",
        "table InvoiceAndBills: 14 items",
        "table InvoiceAndBills, index GSI_1: 14 items",
        "table People: 23 items, and 1 of adjoin's own; draw them with --all",
        "table People, index GSI1: 19 items",
        "table Shop: 5 items",
    ):
        assert f"\n{title}\n┌" in shown
    for pattern in (*education.PATTERNS, *invoices.PATTERNS, *people.PATTERNS, *shop.PATTERNS):
        assert f"\n{inspect.getdoc(pattern)}\n" in shown
    assert "    g.get(Student, \"S1\")\n    → Student(id='S1', name='John Doe'" in shown
    assert "    1 request · 1 round · 0.5 read units\n" in shown
    assert "owed=Decimal('210.5'), largest=Decimal('150.5')" in shown
    assert "owed=Decimal('60'), largest=Decimal('60')" in shown
    assert "customer='Ann Diaz'" in shown


@pytest.mark.parametrize("width", [80, 100, 120, 180])
def test_tables_fit_into_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    demo.main()
    boxes = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("┌", "│", "├", "└", "──"))]
    assert len(boxes) > 100
    assert max(map(len, boxes)) <= width
