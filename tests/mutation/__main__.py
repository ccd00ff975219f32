"""`python -m tests.mutation FOLDER`: tries mutants of a folder, and prints those that no test notices."""

from __future__ import annotations

import argparse
from collections import Counter
from hashlib import sha256

from tests.mutation.folders import FOLDERS
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trials import Trials, Verdict


def sampled(mutants: list[Mutant], size: int | None, skip: int = 0) -> list[Mutant]:
    """So many of them: the same ones each time, also when other code of the module has changed.

    With `skip`, those that come after the first so many: a sample that no test was written for yet.
    """
    seen: Counter[str] = Counter()
    drawn: list[tuple[bytes, int]] = []
    for number, mutant in enumerate(mutants):
        name = f"{mutant.path.name} {mutant.change} {seen[mutant.change]}"
        seen[mutant.change] += 1
        drawn.append((sha256(name.encode()).digest(), number))
    return [mutants[number] for number in sorted(number for _, number in sorted(drawn)[skip:][:size])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("folder", choices=FOLDERS)
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module, always the same")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many, to draw a fresh sample (0)")
    parser.add_argument("--only", nargs="+", default=[""], help="those of these files or lines: write.py write.py:120:")
    parser.add_argument("--tests", nargs="+", help="other tests than the folder's own")
    parser.add_argument("--budget", type=float, default=10, help="seconds of tests for each mutant (10)")
    parser.add_argument("--verbose", action="store_true", help="show every mutant with the test that noticed it")
    asked = parser.parse_args()
    folder = FOLDERS[asked.folder]
    mutants: list[Mutant] = []
    for path in folder.modules():
        found = [each for each in mutants_of(path) if str(each).startswith(tuple(asked.only))]
        mutants += sampled(found, asked.sample, asked.skip)

    def report(verdict: Verdict) -> None:
        if asked.verbose or not verdict.is_kill:
            print(f"{verdict.outcome}: {verdict.mutant} [{verdict.by}]", flush=True)

    verdicts = Trials(mutants, asked.budget, folder.tests[0], report).run(asked.tests or folder.tests)
    outcomes = Counter((each.mutant.path.name, each.is_kill) for each in verdicts)
    for path in folder.modules():
        killed, left = outcomes[path.name, True], outcomes[path.name, False]
        if killed + left:
            print(f"{path.name}: {killed} of {killed + left}")
    killed = sum(verdict.is_kill for verdict in verdicts)
    print(f"{asked.folder}: {killed} of {len(verdicts)} killed, {killed / max(len(verdicts), 1):.1%}")


if __name__ == "__main__":
    main()
