"""Tests run against mutants: every mutant in a process of its own, forked when all tests are imported.

A mutant is tried by the tests that reach its lines, the fastest first, until one fails.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType

import pytest
from hypothesis import Phase, settings

from tests.mutation.folders import LEFT_OUT, PACKAGE, ROOT
from tests.mutation.forks import Tell, in_a_fork
from tests.mutation.mutants import Mutant, changed_code
from tests.mutation.reach import Reach, reach_of, run

SEEDS = "10"
"""How many seeds a simulation tries, unless the environment says so: a test that takes long is not tried at all."""
KILLED, ENDLESS, SURVIVED, UNREACHED = "killed", "without end", "survived", "reached by no test"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and which test noticed it, or how many did not."""

    mutant: Mutant
    outcome: str
    by: str = ""

    @property
    def is_kill(self) -> bool:
        return self.outcome in (KILLED, ENDLESS)


@dataclass
class Trials:
    """A plugin of pytest that tries mutants in place of running tests once."""

    mutants: Sequence[Mutant]
    budget: float
    """Seconds of tests for one mutant, as they take without a change."""
    near: str
    """What the names of the nearest tests begin with."""
    report: Callable[[Verdict], None]
    package: Path = PACKAGE
    keep: Path = ROOT / "build" / "mutation"
    """Where it is kept what tests reach."""
    limit: float = 5
    """Seconds that a mutant may take beside three times what its tests take without it."""
    verdicts: list[Verdict] = field(default_factory=list)

    def run(self, tests: Iterable[str]) -> list[Verdict]:
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += [f"--ignore={path}" for path in LEFT_OUT]
        with TemporaryDirectory() as folder:
            # Examples that fail for one mutant are not to be tried first for others.
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
            os.environ.setdefault("ADJOIN_SIMULATION_SEEDS", SEEDS)
            status = pytest.main([*options, *tests], plugins=[self])
        if status != pytest.ExitCode.OK:
            raise SystemExit(f"the tests could not be run, pytest ended with {status!r}; try them by themselves")
        return self.verdicts

    # --- pytest's hooks ------------------------------------------------------------------------

    def pytest_sessionstart(self) -> None:
        """Lets Hypothesis stop at the first example that fails, and try the same ones each time."""
        phases = (Phase.explicit, Phase.generate)
        plain = settings.get_profile("adjoin")
        settings.register_profile("mutation", plain, phases=phases, derandomize=True, max_examples=30)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items if not _starts_others(item)}
        paths = {mutant.path for mutant in self.mutants}
        # What adjoin imports when it is used would be imported in each fork, and without the mutant.
        for path in paths:
            if path.is_relative_to(PACKAGE):
                import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
        live = _live_functions(paths)
        gc.collect()
        gc.freeze()
        reach = reach_of(items.values(), self.package, self.keep)
        for mutant in self.mutants:
            verdict = self._tried(mutant, live, reach, items)
            self.verdicts.append(verdict)
            self.report(verdict)
        return True

    def _tried(self, mutant: Mutant, live: list[FunctionType], reach: Reach, items: dict[str, pytest.Item]) -> Verdict:
        chosen: list[str] = []
        seconds = 0.0
        for test in reach.tests_of(mutant, self.near):
            if test in items and seconds + reach.seconds[test] <= self.budget:
                chosen.append(test)
                seconds += reach.seconds[test]
        if not chosen:
            return Verdict(mutant, UNREACHED)

        def trial(tell: Tell) -> bool:
            _put_in_place(changed_code(mutant), live)
            for item in map(items.__getitem__, chosen):
                tell(item.nodeid)
                if any(report.failed for report in run(item)):
                    return False
            return True

        passed, told = in_a_fork(trial, limit=self.limit + 3 * seconds)
        if passed:
            return Verdict(mutant, SURVIVED, f"{len(chosen)} tests")
        return Verdict(mutant, ENDLESS if passed is None else KILLED, told[-1] if told else "")


def _starts_others(item: pytest.Item) -> bool:
    """Whether a test starts programs of others. Of a test that runs on several stores, only the embedded one counts."""
    callspec = getattr(item, "callspec", None)
    is_embedded = callspec is not None and "embedded" in callspec.params.values()
    return "servers" in getattr(item, "fixturenames", ()) and not is_embedded


def _live_functions(paths: set[Path]) -> list[FunctionType]:
    """All functions of these modules, wherever they were imported to and whatever wraps them."""
    names = {str(path) for path in paths}
    return [each for each in gc.get_objects() if isinstance(each, FunctionType) and each.__code__.co_filename in names]


def _put_in_place(changed: dict[CodeType, CodeType], live: list[FunctionType]) -> None:
    """Gives functions their changed code. One that is inside another is made of it anew with each call."""
    for function in live:
        code = changed.get(function.__code__)
        if code is not None:
            function.__code__ = code
