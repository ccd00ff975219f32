"""Mutation testing itself: what is changed in a source, and that tests are told apart that notice it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.__main__ import sampled
from tests.mutation.folders import FOLDERS, PACKAGE, ROOT
from tests.mutation.forks import Tell, in_a_fork
from tests.mutation.mutants import changed_code, mutants_of
from tests.mutation.reach import is_within
from tests.mutation.trials import ENDLESS, KILLED, SURVIVED, UNREACHED, Trials

CHANGES = {
    "return a < b": ["return a < b -> return None", "a < b -> a <= b"],
    "return a < b == c": ["return a < b == c -> return None", "a < b == c -> a <= b == c", "a < b == c -> a < b != c"],
    "b = a and c": ["a and c -> a or c"],
    "b = not a": ["not a -> a"],
    "b = a + 1": ["a + 1 -> a - 1", "1 -> 2"],
    "b = a + 'text'": [],
    "b = min(a, True)": ["min(a, True) -> max(a, True)", "True -> False"],
    "b = a[c:d]": ["c:d -> :d", "c:d -> c:"],
    "b = [c for c in a if c.d]": ["for c without if c.d"],
    "b = c if a.d else e": ["c if a.d else e -> c if not a.d else e"],
    "if a.b:\n        c()": ["if a.b -> if not a.b", "without c()"],
    "a.b = c": ["without a.b = c"],
    "a = b": ["without a = b"],  # the parameter stays
    "c = b": [],  # the name would be missing
    "yield from a": ["without yield from a"],
    "raise ValueError(f'{a + 1} is too much', a or b)": [
        "without raise ValueError(f'{a + 1} is too much', a or b)",
    ],
    "assert a is not None": [],
    "b = zip(a, c, strict=True)": [],
    "'A docstring, and no statement.'": [],
}


@pytest.mark.parametrize("body", CHANGES)
def test_changes(body: str, tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(f"LIMIT = 1 + 2\n\n\ndef function(a: int = 1 + 1):\n    {body}\n")
    assert sorted(mutant.change for mutant in mutants_of(path)) == sorted(CHANGES[body])


def test_a_mutant_is_code_for_its_function_only(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text("def one(a):\n    return [a + each for each in a]\n\n\ndef other(a):\n    return a + 1\n")
    mutants = {mutant.change: mutant for mutant in mutants_of(path)}
    assert "one" in {code.co_name for code in changed_code(mutants["a + each -> a - each"])}
    assert "other" not in {code.co_name for code in changed_code(mutants["a + each -> a - each"])}
    assert {code.co_name for code in changed_code(mutants["a + 1 -> a - 1"])} == {"other"}


def test_what_is_tested_is_killed_and_what_is_not_survives(tmp_path: Path) -> None:
    source = tmp_path / "package" / "sums_of_mutation.py"
    source.parent.mkdir()
    source.write_text(
        "def total(numbers):\n"
        "    found = 0\n"
        "    while numbers:\n"
        "        found += numbers[-1]\n"
        "        numbers = numbers[:-1]\n"
        "    return found\n\n\n"
        "def sign(number):\n"
        "    return -1 if number < 0 else 1\n\n\n"
        "def unused(number):\n"
        "    return number\n"
    )
    test = tmp_path / "test_sums_of_mutation.py"
    test.write_text(
        "import sys\n"
        f"sys.path.append({str(source.parent)!r})\n"
        "from sums_of_mutation import sign, total\n\n\n"
        "def test_total():\n"
        "    assert total([1, 2]) == 3\n\n\n"
        "def test_sign():\n"
        "    assert sign(-3) == -1\n"
        "    assert sign(3) == 1\n"
    )

    expected = {
        "return found -> return None": KILLED,
        "without numbers = numbers[:-1]": ENDLESS,
        "number < 0 -> number <= 0": SURVIVED,
        "return number -> return None": UNREACHED,
    }

    def try_mutants(tell: Tell) -> bool:
        mutants = [mutant for mutant in mutants_of(source) if mutant.change in expected]
        trials = Trials(mutants, 10, "", lambda verdict: None, source.parent, tmp_path / "kept", limit=0)
        tell({verdict.mutant.change: verdict.outcome for verdict in trials.run([str(test)])})
        return True

    assert in_a_fork(try_mutants, limit=60) == (True, [expected])


def test_a_fork_that_raises_or_ends_has_failed() -> None:
    def ends(tell: Tell) -> bool:
        tell("begun")
        raise SystemExit(0)

    assert in_a_fork(ends, limit=60) == (False, ["begun"])


def test_a_sample_stays_when_other_code_changes(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    lines = [f"    a = b + {number}" for number in range(40)]
    samples: list[set[str]] = []
    for text in (lines, ["", *lines[:20], "    c()", *lines[20:]]):
        path.write_text("def function(a, b):\n" + "\n".join(text) + "\n")
        samples.append({mutant.change for mutant in sampled(mutants_of(path), 10)})
    assert len(samples[0]) == 10
    assert len(samples[0] & samples[1]) >= 9
    assert len(sampled(mutants_of(path), None)) == len(mutants_of(path))
    fresh = {mutant.change for mutant in sampled(mutants_of(path), 10, skip=10)}
    assert (len(fresh), fresh & samples[1]) == (10, set())


@pytest.mark.parametrize("name", FOLDERS)
def test_each_folder_has_sources_and_tests(name: str) -> None:
    folder = FOLDERS[name]
    assert folder.modules()
    assert all((ROOT / path).exists() for path in folder.tests)


def test_a_frame_is_within_a_folder_if_a_function_of_it_is_running(tmp_path: Path) -> None:
    """A test is given up by a signal, and what handles the signal must not wait for a lock that is held below it."""
    path = tmp_path / "locking.py"
    path.write_text("def locked(call):\n    return call()\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    frames = [names["locked"](sys._getframe), names["locked"](lambda: sys._getframe())]
    assert [is_within(frame, tmp_path) for frame in frames] == [True, True]
    assert not is_within(sys._getframe(), tmp_path)
    assert not is_within(None, tmp_path)


def test_what_adjoin_imports_when_it_is_used_is_changed_too(tmp_path: Path) -> None:
    """A fork that imported it would have it without the mutant."""
    source = PACKAGE / "drawing.py"
    test = tmp_path / "test_drawing_of_mutation.py"
    test.write_text("def test_nothing():\n    pass\n")

    def try_no_mutant(tell: Tell) -> bool:
        for name in ("adjoin.drawing", "adjoin.placing"):
            sys.modules.pop(name, None)
        mutants = mutants_of(source)[:1]
        Trials(mutants, 1, "", lambda verdict: None, keep=tmp_path / "kept", limit=0).run([str(test)])
        tell("adjoin.drawing" in sys.modules)
        return True

    assert in_a_fork(try_no_mutant, limit=60) == (True, [True])
