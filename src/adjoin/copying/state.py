"""How far a copy has come, and the small file that remembers it over interruptions.

A state never claims more than the destination has acknowledged: what was written after it was saved is
written again, which changes nothing. It names the copy it belongs to, and is refused by any other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from adjoin.errors import FileNotWritable, InvalidCopyState
from adjoin.plans.copying import Amount, Mark
from adjoin.values import Item

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Binding:
    """Which copy a state belongs to; the first two say where source and destination are."""

    source: str
    destination: str
    table: str
    to: str
    segments: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the source: behind which key it goes on, and whether it has been copied whole."""

    last: Item | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class State:
    started: float
    segments: tuple[Segment, ...]
    mark: Mark | None
    """Where the source's change stream was at the start; None if it has none."""
    applied: str | None
    """Up to where the source's changes have been applied."""
    copied: Amount = Amount()
    changes: int = 0
    read: float = 0.0
    write: float = 0.0
    seconds: float = 0.0

    @property
    def starts(self) -> dict[int, Item | None]:
        """The segments that are not done, with the keys they go on from."""
        return {number: segment.last for number, segment in enumerate(self.segments) if not segment.done}

    def advanced(self, lasts: Mapping[int, Item | None], amount: Amount) -> State:
        """After a page of each of those segments was written; a page without a last key was the end."""
        segments = list(self.segments)
        for number, last in lasts.items():
            segments[number] = Segment(last, done=last is None)
        return replace(self, segments=tuple(segments), copied=self.copied + amount)


@dataclass(frozen=True, slots=True)
class _Record:
    """What is in the file."""

    format: int
    copy: Binding
    state: State = field(kw_only=True)


_RECORD: TypeAdapter[_Record] = TypeAdapter(_Record)


class StateFile:
    """The state of one copy in a file, which is replaced as a whole and removed at the end."""

    def __init__(self, path: str | os.PathLike[str], binding: Binding) -> None:
        self.path = Path(path)
        self._binding = binding

    def load(self) -> State | None:
        """What an interrupted run left; None if there is nothing."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidCopyState(f"{self.path} cannot be read ({error.strerror}); choose another --state") from error
        try:
            record = _RECORD.validate_json(text)
        except ValidationError:
            raise InvalidCopyState(
                f"{self.path} is not the state of a copy; choose another --state, or remove the file to begin anew"
            ) from None
        if record.format != FORMAT:
            raise InvalidCopyState(f"{self.path} was written by another version of adjoin; go on with that version")
        if record.copy != self._binding or len(record.state.segments) != self._binding.segments:
            raise InvalidCopyState(
                f"{self.path} belongs to another copy: {_described(record.copy)}, not {_described(self._binding)};"
                " choose another --state, or remove the file if that copy is not wanted any more"
            )
        return record.state

    def save(self, state: State) -> None:
        new = self.path.with_name(self.path.name + ".new")
        try:
            with new.open("wb") as file:
                file.write(_RECORD.dump_json(_Record(FORMAT, self._binding, state=state), indent=1))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            raise FileNotWritable(
                f"{self.path}: the state of the copy cannot be kept there ({error.strerror}); choose another --state"
            ) from error

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _described(copy: Binding) -> str:
    segments = "1 segment" if copy.segments == 1 else f"{copy.segments} segments"
    return f"{copy.table} of {copy.source} to {copy.to} of {copy.destination} in {segments}"
