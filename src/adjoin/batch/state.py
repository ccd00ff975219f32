"""How far writing back came, in a file: for sources that stay as they were, so that they cannot tell."""

from __future__ import annotations

import os
import time
from pathlib import Path

from orjson import JSONDecodeError, dumps, loads

SAVE_SECONDS = 1.0


class State:
    """Names of what is written, and how many of each are done; nothing is kept without a path.

    `source` names what is read and what is made of it; what a file tells about another one does not count.
    """

    def __init__(self, path: str | os.PathLike[str] | None, source: str) -> None:
        self._path, self._source = None if path is None else Path(path), source
        self._done = self._loaded()
        self._saved = time.monotonic()

    def _loaded(self) -> dict[str, int]:
        if self._path is None or not self._path.is_file():
            return {}
        try:
            remembered = loads(self._path.read_bytes())
            return dict(remembered["done"]) if remembered["source"] == self._source else {}
        except (JSONDecodeError, KeyError, TypeError):
            return {}

    def done(self, name: str) -> int:
        return self._done.get(name, 0)

    def advance(self, name: str, count: int) -> None:
        self._done[name] = self.done(name) + count
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        if self._path is not None:
            unfinished = self._path.with_name(self._path.name + ".new")
            unfinished.write_bytes(dumps({"source": self._source, "done": self._done}))
            unfinished.replace(self._path)
        self._saved = time.monotonic()

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
