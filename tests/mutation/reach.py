"""Which tests run which lines of adjoin, and how long each takes: measured once for a file of tests, and kept.

What was measured is kept in `build/mutation` for as long as neither adjoin nor the file of tests changes.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.forks import Tell, in_a_fork
from tests.mutation.mutants import Mutant

SMALL = 0.1
"""Seconds of a small test."""
LONGEST = 30.0
"""Seconds that the tests of one file may take; those that come after are not run either."""


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
    # All at once and at first: somebody may write tests meanwhile, which are not those that were imported.
    places = [keep / sha256(source + path.read_bytes()).hexdigest() for path, _ in groups]
    for (path, group), kept in zip(groups, places, strict=True):
        if not kept.exists():
            found = _measured(group, package)
            print(f"measured {len(found.seconds)} tests of {path.parent.name}/{path.name}", flush=True)
            kept.write_bytes(pickle.dumps(found))
        whole.add(pickle.loads(kept.read_bytes()))
    return whole


def _measured(items: list[pytest.Item], package: Path) -> Reach:
    def measure(tell: Tell) -> bool:
        watch = coverage.Coverage(data_file=None, include=[f"{package}/*"], config_file=False)
        # A file may well have no test that runs any of it.
        watch.set_option("run:disable_warnings", ["no-data-collected"])
        watch.start()
        for item in items:
            if time.process_time() > LONGEST:
                break
            watch.switch_context(item.nodeid)
            started = time.process_time()
            reports = run(item)
            seconds = time.process_time() - started
            if not any(report.failed or report.skipped for report in reports):
                tell((item.nodeid, seconds))
        watch.stop()
        data = watch.get_data()
        for path in data.measured_files():
            tell((Path(path), {line: set(tests) for line, tests in data.contexts_by_lineno(path).items()}))
        return True

    result, told = in_a_fork(measure, limit=20 * LONGEST)
    if not result:
        print(f"the tests of {items[0].path.name} came to no end, and are left out", flush=True)
        return Reach()
    return Reach(
        {name: value for name, value in told if isinstance(name, str)},
        {name: value for name, value in told if isinstance(name, Path)},
    )
