"""The errors that adjoin raises, and the page that lists them."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import adjoin
from adjoin import AdjoinError, InvalidRequest, NotFound, errors

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
CLASSES = {
    name: found
    for name, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, AdjoinError) and found is not AdjoinError
}


def rows() -> list[tuple[str, ...]]:
    """The rows of the page: error, code, retryable, cause, what to do."""
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [tuple(cell.strip().strip("`") for cell in line.strip("|").split("|")) for line in found]


def test_the_page_lists_each_error_with_its_code() -> None:
    listed = {name: (code, retryable) for name, code, retryable, _, _ in rows()}
    always = {name: (found.code, "yes" if found.retryable else "no") for name, found in CLASSES.items()}
    assert listed == always | {"TransactionCanceled": ("transaction_canceled", "sometimes")}
    assert len(rows()) == len(listed)


def test_each_row_says_cause_and_remedy() -> None:
    assert [row for row in rows() if not row[3] or not row[4]] == []


def test_codes_are_distinct_words() -> None:
    codes = [found.code for found in CLASSES.values()]
    assert len({*codes}) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_errors_are_public() -> None:
    assert [name for name in CLASSES if name not in adjoin.__all__] == []


def test_a_class_of_another_module_has_the_code_of_its_base() -> None:
    class OwnError(InvalidRequest):
        pass

    assert (OwnError.code, InvalidRequest.code, NotFound("gone").code) == ("invalid_request",) * 2 + ("not_found",)


def test_copies_and_pickles_have_the_attributes() -> None:
    reasons = [
        errors.CancellationReason("ConditionalCheckFailed", item={"pk": {"S": "a"}}, error=NotFound, id=("a", 1))
    ]
    arguments: dict[str, tuple[Any, ...]] = {
        "TransactionCanceled": ([*reasons],),
        "InvalidItem": ("age: not a number",),
        "ConditionFailed": ({"pk": {"S": "a"}},),
        "BudgetExceeded": ("rcu", 7),
        "CycleFound": (["a", "b"],),
    }
    ways = [copy.copy, copy.deepcopy, *(lambda error, n=n: pickle.loads(pickle.dumps(error, n)) for n in range(6))]
    for name, kind in {**CLASSES, "AdjoinError": AdjoinError}.items():
        error = kind("it failed", *arguments.get(name, ()))
        error.request_id = "R1"
        for way in ways:
            again = way(error)
            assert (type(again), str(again)) == (kind, "it failed (request R1)")
            assert (again.args, vars(again), again.retryable) == (error.args, vars(error), error.retryable)
