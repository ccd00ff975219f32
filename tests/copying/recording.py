"""What a copy asks of its stores."""

from __future__ import annotations

from pathlib import Path

from adjoin.copying import Binding, StateFile
from adjoin.requests import Request
from adjoin.stores.interface import Store
from tests.faults import FaultyStore


class Recording(FaultyStore):
    """A store that keeps the requests it was sent."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.requests: list[Request] = []
        self.fault = self._record

    def _record(self, _number: int, request: Request) -> None:
        self.requests.append(request)


def state_file(folder: Path, table: str = "Plain", segments: int = 1) -> StateFile:
    return StateFile(folder / "state.json", Binding("here", "there", table, table, segments))
