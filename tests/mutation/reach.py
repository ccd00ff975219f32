"""Which tests run which lines of adjoin, and how long each takes: measured once for a file of tests, and kept.

What was measured is kept in `build/mutation` for as long as neither adjoin nor the file of tests changes.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from types import FrameType

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.forks import Tell, in_a_fork
from tests.mutation.mutants import Mutant

SMALL = 0.1
"""Seconds of a small test."""
LONG = 5.0
"""Seconds after which a test is given up while it is measured: there would be no time for it with any mutant."""
MOMENT = 0.01
"""Seconds after which it is given up if it was inside of coverage then."""
LONGEST = 60.0
"""Seconds that the tests of one file may take; those that come after are not run either."""

_COVERAGE = Path(coverage.__file__).parent


@dataclass
class Reach:
    """The seconds of each test that passes, and the tests that run a line."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[Path, dict[int, set[str]]] = field(default_factory=dict)

    def tests_of(self, mutant: Mutant, near: str = "") -> list[str]:
        """Those that run a mutant's line, or its statement if the line is but a part of one.

        Small tests that are near come first. Of the others the fastest, but of a test that has many parameters one
        before the next, for they are much alike.
        """
        lines = self.tests.get(mutant.path, {})
        found = lines.get(mutant.line, set()) or {test for line in mutant.lines for test in lines.get(line, ())}
        alike: Counter[str] = Counter()
        ranks: dict[str, int] = {}
        for test in sorted(found & self.seconds.keys(), key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            ranks[test] = alike[function]
            alike[function] += 1
        small = {test for test in ranks if near and test.startswith(near) and self.seconds[test] < SMALL}
        return sorted(ranks, key=lambda test: (test not in small, ranks[test], self.seconds[test], test))

    def add(self, other: Reach) -> None:
        self.seconds |= other.seconds
        for path, lines in other.tests.items():
            known = self.tests.setdefault(path, {})
            for line, tests in lines.items():
                known.setdefault(line, set()).update(tests)


def run(item: pytest.Item) -> list[pytest.TestReport]:
    """One test from its fixtures to their end, with nothing printed."""
    reports: list[pytest.TestReport] = runtestprotocol(item, log=False, nextitem=None)
    return reports


def reach_of(items: Iterable[pytest.Item], package: Path, keep: Path) -> Reach:
    """The lines of a package that these tests reach; all of a file are measured together, and kept in a folder."""
    source = sha256(b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))).digest()
    keep.mkdir(parents=True, exist_ok=True)
    whole = Reach()
    groups = [(path, list(group)) for path, group in groupby(items, key=lambda item: item.path)]
    # All at once and at first: somebody may write tests meanwhile, which are not those that were imported. And another
    # choice of the same file's tests is measured anew.
    places = [
        keep / sha256(b"\0".join((source, path.read_bytes(), *(item.nodeid.encode() for item in group)))).hexdigest()
        for path, group in groups
    ]
    for (path, group), kept in zip(groups, places, strict=True):
        if not kept.exists():
            found = _measured(group, package)
            print(f"measured {len(found.seconds)} tests of {path.parent.name}/{path.name}", flush=True)
            kept.write_bytes(pickle.dumps(found))
        whole.add(pickle.loads(kept.read_bytes()))
    return whole


def _measured(items: list[pytest.Item], package: Path) -> Reach:
    """What some tests reach. One that takes too long ends its process, and another goes on behind it."""
    whole, left, spent = Reach(), items, 0.0
    while left and spent < LONGEST:
        found, given_up = _measured_together(left, package, LONGEST - spent)
        whole.add(found)
        spent += sum(found.seconds.values()) + LONG
        if given_up is None:
            break
        left = left[[item.nodeid for item in left].index(given_up) + 1 :]
    return whole


def is_within(frame: FrameType | None, folder: Path) -> bool:
    """Whether a function of a module in that folder is running in a frame."""
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(folder):
            return True
        frame = frame.f_back
    return False


def _measured_together(items: list[pytest.Item], package: Path, most: float) -> tuple[Reach, str | None]:
    def measure(tell: Tell) -> bool:
        watch = coverage.Coverage(data_file=None, include=[f"{package}/*"], config_file=False)
        # A file may well have no test that runs any of it.
        watch.set_option("run:disable_warnings", ["no-data-collected"])
        running = ""

        def tell_lines() -> None:
            watch.stop()
            data = watch.get_data()
            for path in data.measured_files():
                tell((Path(path), {line: set(tests) for line, tests in data.contexts_by_lineno(path).items()}))

        def give_up(_: int, frame: FrameType | None) -> None:
            if is_within(frame, _COVERAGE):
                # It may hold a lock that `tell_lines` needs. A moment later it does not.
                signal.setitimer(signal.ITIMER_PROF, MOMENT)
                return
            # What it holds, a lock say, it would hold for ever.
            signal.setitimer(signal.ITIMER_PROF, 0)
            tell((None, running))
            tell_lines()
            os._exit(0)

        signal.signal(signal.SIGPROF, give_up)
        watch.start()
        for item in items:
            if time.process_time() > most:
                break
            running = item.nodeid
            watch.switch_context(running)
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LONG)
            reports = run(item)
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds = time.process_time() - started
            if not any(report.failed or report.skipped for report in reports):
                tell((item.nodeid, seconds))
        tell_lines()
        return True

    result, told = in_a_fork(measure, limit=20 * LONGEST)
    if not result:
        print(f"the tests of {items[0].path.name} came to no end, and are left out", flush=True)
        return Reach(), None
    found = Reach(
        {name: value for name, value in told if isinstance(name, str)},
        {name: value for name, value in told if isinstance(name, Path)},
    )
    return found, next((value for name, value in told if name is None), None)
