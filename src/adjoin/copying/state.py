"""The progress of a copy, and the small file that stores it, so that an interrupted copy can continue.

A state never claims more than the destination has acknowledged. What was written after the state was saved is
written again, which changes nothing. The state names its copy; another copy refuses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from adjoin.copying.steps import Amount, Mark
from adjoin.dataclass import dataclass
from adjoin.errors import FileNotWritable, InvalidCopyState
from adjoin.values import Item

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Binding:
    """Identifies the copy that a state belongs to. `source` and `destination` are their locations."""

    source: str
    destination: str
    table: str
    to: str
    segments: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of the source: the key after which it continues, and whether it is copied completely."""

    last: Item | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class State:
    started: float
    segments: tuple[Segment, ...]
    mark: Mark | None
    """The end of the source's change stream when the copy began; None if the source has no stream."""
    applied: str | None
    """The position up to which the source's changes have been applied."""
    copied: Amount = Amount()
    changes: int = 0
    read: float = 0.0
    write: float = 0.0
    seconds: float = 0.0

    @property
    def starts(self) -> dict[int, Item | None]:
        """The segments that are not done, with the keys after which they continue."""
        return {number: segment.last for number, segment in enumerate(self.segments) if not segment.done}

    def advanced(self, lasts: Mapping[int, Item | None], amount: Amount) -> State:
        """The state after one page of each of these segments was written. A page without a last key is the last one."""
        segments = list(self.segments)
        for number, last in lasts.items():
            segments[number] = Segment(last, done=last is None)
        return replace(self, segments=tuple(segments), copied=self.copied + amount)


@dataclass(frozen=True, slots=True)
class _Record:
    """The content of the file."""

    format: int
    copy: Binding
    state: State = field(kw_only=True)


_RECORD: TypeAdapter[_Record] = TypeAdapter(_Record)


class StateFile:
    """The state of one copy in a file. Each save replaces the whole file; the end of the copy removes it."""

    def __init__(self, path: str | os.PathLike[str], binding: Binding) -> None:
        self.path = Path(path)
        self._binding = binding

    def load(self) -> State | None:
        """The state that an interrupted run left, or None."""
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
                f"{self.path} is not the state of a copy; choose another --state, or remove the file to start again"
            ) from None
        if record.format != FORMAT:
            raise InvalidCopyState(f"{self.path} was written by another version of adjoin; continue with that version")
        if record.copy != self._binding or len(record.state.segments) != self._binding.segments:
            raise InvalidCopyState(
                f"{self.path} belongs to another copy: {_described(record.copy)}, not {_described(self._binding)};"
                " choose another --state, or remove the file if you no longer need that copy"
            )
        return record.state

    def save(self, state: State) -> None:
        # Write a new file and rename it: a crash leaves either the old state or the new one, never half of it.
        new = self.path.with_name(self.path.name + ".new")
        try:
            with new.open("wb") as file:
                file.write(_RECORD.dump_json(_Record(FORMAT, self._binding, state=state), indent=1))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            raise FileNotWritable(
                f"{self.path}: the state of the copy cannot be written ({error.strerror}); choose another --state"
            ) from error

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _described(copy: Binding) -> str:
    segments = "1 segment" if copy.segments == 1 else f"{copy.segments} segments"
    return f"{copy.table} of {copy.source} to {copy.to} of {copy.destination} in {segments}"
