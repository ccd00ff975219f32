"""How far an import came, in a small file, so that the same command continues an import that was interrupted.

It is written after each step, when the graph has everything up to there. What was loaded after it is loaded again,
which changes nothing. It names its import by the file and what it becomes; another import refuses it.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidCopyState

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ImportBinding:
    """The import that a state belongs to: which file, as it was, and where its records go."""

    source: str
    size: int
    changed: float
    destination: str
    table: str
    kind: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import has done so far."""

    records: int = 0
    """The number of the last record that was looked at."""
    loaded: int = 0
    refused: int = 0
    refused_bytes: int = 0
    """How long the file of refused records is."""


@dataclass(frozen=True, slots=True)
class _Stored:
    format: int
    binding: ImportBinding
    done: Imported


_STORED: TypeAdapter[_Stored] = TypeAdapter(_Stored)


class ImportState:
    """The file of one import. Each save replaces it; the end of the import removes it."""

    def __init__(self, path: str | os.PathLike[str], binding: ImportBinding) -> None:
        self.path = Path(path)
        self._binding = binding

    def load(self) -> Imported | None:
        """What an interrupted run has done, or None."""
        try:
            stored = _STORED.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            raise InvalidCopyState(
                f"{self.path} is not the state of an import; choose another --state, or remove the file to start again"
            ) from None
        if stored.format != _FORMAT:
            raise InvalidCopyState(f"{self.path} was written by another version of adjoin; continue with that version")
        mine, theirs = self._binding, stored.binding
        if (mine.source, mine.destination, mine.table, mine.kind) != (
            theirs.source,
            theirs.destination,
            theirs.table,
            theirs.kind,
        ):
            raise InvalidCopyState(f"{self.path} belongs to another import; choose another --state")
        if (mine.size, mine.changed) != (theirs.size, theirs.changed):
            raise InvalidCopyState(
                f"{mine.source} has changed since its import was interrupted; remove {self.path} to start again"
            )
        return stored.done

    def save(self, done: Imported) -> None:
        # Write a new file and rename it: a crash leaves either the old state or the new one, never half of it.
        new = self.path.with_name(self.path.name + ".new")
        with new.open("wb") as file:
            file.write(_STORED.dump_json(_Stored(_FORMAT, self._binding, done)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
