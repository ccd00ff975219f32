"""What a worker was told, line by line, and what may be there after it.

A worker writes down what it is about to do, then that it was acknowledged, or that it failed. Values are told by flat
keys, `kind:owner…`, and only one worker writes to an owner, so that what must be there follows from its journal alone.

The journal needs no `fsync`: what dies here are processes, and what they wrote stays.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Values = dict[str, Any]
"""Keys and what is stored there. What is not there has no key here, or None in what changes it."""


class Broken(Exception):
    """What was promised does not hold."""


@dataclass(frozen=True)
class Operation:
    """A call: what it changes, and whether all of that comes at once. `adds` are counters that several count up."""

    kind: str
    changes: Values
    whole: bool = True
    adds: dict[str, int] = field(default_factory=dict)

    @property
    def owners(self) -> set[str]:
        return {owner_of(key) for key in self.changes}

    def permits(self, before: Values, found: Values) -> bool:
        """Whether this can be found of the keys it changes, after it was begun and nobody knows how it ended."""
        was = {key: before.get(key) for key in self.changes}
        now = {key: found.get(key) for key in self.changes}
        if self.whole:
            return now in (was, self.changes)
        return all(now[key] in (was[key], self.changes[key]) for key in now)


def owner_of(key: str) -> str:
    return key.split(":")[1]


def merged(values: Values, changes: Values) -> Values:
    return {key: value for key, value in (values | changes).items() if value is not None}


@dataclass
class Told:
    """What follows from a journal."""

    values: Values = field(default_factory=dict)
    pending: Operation | None = None
    """Begun, and not known how it ended."""
    doubtful: list[tuple[Operation, Values]] = field(default_factory=list)
    """Those that stay unknown until the end, and what was there before. Nobody touches their owners any more."""
    unfinished: Operation | None = None
    """A delete that was stopped in its midst, and has to be run again."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """Operations by kind."""
    finished: int = 0
    """Deletes that were stopped in their midst, and are finished."""
    largest: int = 0
    """Items that the largest delete took away."""
    unknown: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    perhaps_added: Counter[str] = field(default_factory=Counter)

    @property
    def barred(self) -> set[str]:
        return {owner for operation, _ in self.doubtful for owner in operation.owners}

    def take(self, line: dict[str, Any]) -> None:
        if "begun" in line:
            self.pending = Operation(**line["begun"])
            return
        operation, self.pending = self.pending, None
        assert operation is not None, line
        if "done" in line:
            self.values = merged(self.values, operation.changes)
            self.acknowledged[operation.kind] += 1
            self.added.update(operation.adds)
            if operation.kind == "delete":
                self.largest = max(self.largest, len(operation.changes))
                self.finished += self.unfinished is not None
            self.unfinished = None
        elif "failed" in line:
            self.errors[line["failed"]] += 1
        elif "found" in line:
            self._found(operation, line["found"])
        else:
            self.unknown += 1
            self.errors[line["left"]] += 1
            self.perhaps_added.update(operation.adds)
            if operation.changes:
                self.doubtful.append((operation, self.values))

    def _found(self, operation: Operation, found: Values) -> None:
        if not operation.permits(self.values, found):
            was = {key: self.values.get(key) for key in operation.changes}
            raise Broken(f"{operation} was stopped; there was {was}, and there is {found}")
        self.values = merged(self.values, {key: found.get(key) for key in operation.changes})
        self.perhaps_added.update(operation.adds)
        self.unknown += 1
        if operation.kind == "delete":
            # Also where nothing is seen any more: a large node looks gone before all of it is.
            self.unfinished = operation


class Journal:
    """Appended to by one process at a time; what it tells is worked out from the file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.told = replayed(path)
        if not path.read_bytes().endswith(b"\n"):
            os.write(self._file, b"\n")

    def begun(self, operation: Operation) -> None:
        self._write({"begun": asdict(operation)})

    def done(self) -> None:
        self._write({"done": True})

    def failed(self, error: BaseException) -> None:
        """It changed nothing."""
        self._write({"failed": type(error).__name__})

    def found(self, values: Values) -> None:
        self._write({"found": values})

    def left(self, why: str) -> None:
        """It may be applied yet, by a server that holds it."""
        self._write({"left": why})

    def _write(self, line: dict[str, Any]) -> None:
        # One call, so that an interrupt comes before it or after it. Who is interrupted reads the file again.
        os.write(self._file, json.dumps(line).encode() + b"\n")
        self.told.take(line)

    def close(self) -> None:
        os.close(self._file)


def replayed(path: Path) -> Told:
    told = Told()
    for line in _lines(path.read_bytes().splitlines() if path.exists() else ()):
        told.take(line)
    return told


def _lines(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            # Torn when its writer was killed: what it tells had not begun, or is unknown.
            continue
