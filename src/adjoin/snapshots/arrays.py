"""Arrays that grow, and texts packed into one array.

A snapshot that was opened from a folder has arrays that are mapped into memory, copy on write: a followed change writes
to a private copy of a page, and never to the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

MOST = 2**31 - 2
"""How many nodes, or edges of one class, a snapshot can number."""
_LEAST_GROWTH = 1024


def grown(array: Array, size: int, fill: int = 0) -> Array:
    """The array, or a longer copy of it with room for at least `size` values and an eighth more."""
    if size <= len(array):
        return array
    longer = np.full(size + max(size // 8, _LEAST_GROWTH), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class Texts:
    """Byte strings by number: those of the beginning packed into one array, later ones beside it."""

    def __init__(self, blob: Array, ends: Array, sorted_count: int | None = None) -> None:
        self.blob, self.ends = blob, ends
        self._bytes, self._ends = blob.data, ends.data
        self._later: dict[int, bytes] = {}
        self._size = len(ends) - 1
        self.sorted_count = self._size if sorted_count is None else sorted_count
        """How many of the first are in order, if any are."""

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Texts:
        listed = texts if isinstance(texts, Sequence) else list(texts)
        ends = np.zeros(len(listed) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)), out=ends[1:])
        # A copy, because what is made of bytes cannot be written to, and has no room of its own.
        return cls(np.frombuffer(b"".join(listed), np.uint8).copy(), ends)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> bytes:
        if self._later:
            later = self._later.get(number)
            if later is not None:
                return later
        ends = self._ends
        return bytes(self._bytes[ends[number] : ends[number + 1]])

    def put(self, number: int, text: bytes) -> None:
        """Sets the text of a number, which may be the next one."""
        self._later[number] = text
        self._size = max(self._size, number + 1)

    def packed(self) -> Texts:
        """The same texts in one array."""
        if not self._later:
            return self
        packed = Texts.of([self[number] for number in range(self._size)])
        packed.sorted_count = self.sorted_count
        return packed

    @property
    def nbytes(self) -> int:
        later = sum(map(len, self._later.values()))
        return self.blob.nbytes + self.ends.nbytes + later
