"""A process that does what its subject says until there is a file that tells it to stop, and writes a journal.

`python -m tests.whole.worker <subject> <name> <location> <journal> <stop> <seed> <edges>`

It may be killed and interrupted at any time. Who is started again, or goes on after an interrupt, first looks how the
call under way ended: on a file by reading what is there. A server may hold a request whose client is gone; there, what
the call was about is left alone from then on, and looked at when all is over.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Protocol

from adjoin import AdjoinError
from tests.whole.journal import Broken, Journal, Operation, Told, Values, owner_of
from tests.whole.subjects import SUBJECTS

CHANGED_NOTHING = {"FileBusy", "TransactionConflict"}
"""What may be raised on a file: others were there for too long."""
UNKNOWN = {"ServiceUnreachable", "ServiceFailed", "OutcomeUnknown", "InvalidCredentials", "TransactionConflict"}
"""What may be raised by clients of a server that is killed, and changes its key pair."""
_LOOKS = 0.1
"""How often a worker reads what it has written, in place of writing."""


class Subject(Protocol):
    """What a worker does: it decides on a call, makes it, and reads what is stored for its owners."""

    remote: bool
    pause: float
    """Seconds between two calls, at most."""

    def next(self, told: Told, chance: random.Random) -> Operation: ...
    def perform(self, operation: Operation) -> None: ...
    def look(self, owners: set[str]) -> Values: ...
    def close(self) -> None: ...


class Worker:
    def __init__(self, subject: Subject, path: Path, stop: Path, chance: random.Random) -> None:
        self._subject, self._path, self._stop, self._chance = subject, path, stop, chance

    def run(self) -> None:
        while True:
            try:
                self._run_until_stopped()
            except KeyboardInterrupt:
                # The graph stays as good as ever, so the same one goes on.
                continue
            else:
                return

    def _run_until_stopped(self) -> None:
        journal = Journal(self._path)
        try:
            while True:
                self._settle(journal, "stopped")
                if self._stop.exists() and journal.told.unfinished is None:
                    return
                self._step(journal)
                time.sleep(self._chance.random() * self._subject.pause)
        finally:
            journal.close()

    def _step(self, journal: Journal) -> None:
        told = journal.told
        if self._chance.random() < _LOOKS and told.unfinished is None:
            self._check(told)
            return
        operation = told.unfinished or self._subject.next(told, self._chance)
        journal.begun(operation)
        try:
            self._subject.perform(operation)
        except AdjoinError as error:
            self._failed(journal, operation, error)
        else:
            journal.done()

    def _failed(self, journal: Journal, operation: Operation, error: AdjoinError) -> None:
        name = type(error).__name__
        if self._subject.remote and name in UNKNOWN:
            self._settle(journal, name)
        elif not self._subject.remote and name in CHANGED_NOTHING:
            if not operation.whole:
                self._settle(journal, name)
                return
            found = {key: value for key, value in self._seen(operation).items() if key in operation.changes}
            if found != {key: journal.told.values[key] for key in operation.changes if key in journal.told.values}:
                raise Broken(f"{operation} failed with {error!r} and changed something: {found}")
            journal.failed(error)
        else:
            raise Broken(f"{operation} failed with {error!r}") from error

    def _settle(self, journal: Journal, why: str) -> None:
        operation = journal.told.pending
        if operation is None:
            return
        if self._subject.remote:
            journal.left(why)
        else:
            journal.found({key: value for key, value in self._seen(operation).items() if key in operation.changes})

    def _seen(self, operation: Operation) -> Values:
        while True:
            try:
                return self._subject.look(operation.owners)
            except AdjoinError as error:
                if type(error).__name__ not in CHANGED_NOTHING:
                    raise

    def _check(self, told: Told) -> None:
        owners = sorted({owner_of(key) for key in told.values} - told.barred)
        if not owners:
            return
        owner = self._chance.choice(owners)
        must = {key: value for key, value in told.values.items() if owner_of(key) == owner}
        try:
            found = self._subject.look({owner})
        except AdjoinError as error:
            if type(error).__name__ not in CHANGED_NOTHING | (UNKNOWN if self._subject.remote else set()):
                raise
            return
        if found != must:
            raise Broken(f"acknowledged was {must}, and there is {found}")


def main(subject: str, name: str, location: str, journal: str, stop: str, seed: str, edges: str) -> None:
    chance = random.Random(f"{seed} {time.monotonic_ns()}")
    while True:
        try:
            made: Subject = SUBJECTS[subject](name, location, int(edges))
            break
        except KeyboardInterrupt:
            continue
        except AdjoinError as error:
            # The server is not there now, or others hold the file.
            if type(error).__name__ not in CHANGED_NOTHING | UNKNOWN:
                raise
            if Path(stop).exists():
                return
    Worker(made, Path(journal), Path(stop), chance).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
