"""Where a batch job reads items from besides exports: a table in a file of adjoin's, at one instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from adjoin.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Dump:
    """All items of a table, as often as they are asked for; each time as they are then."""

    table: str
    open: Callable[[], AbstractContextManager[Iterator[list[bytes]]]]

    @property
    def identity(self) -> str:
        return self.table

    def lines(self) -> Iterator[list[bytes]]:
        with self.open() as pieces:
            yield from pieces


def dump_of(store: Any, table: str) -> Dump:
    """The table as its store hands it over whole, as files do."""
    if not hasattr(store, "dump"):
        raise InvalidValue(
            "a table of DynamoDB is read from an export: export it to S3 with point-in-time recovery, "
            "and pass where that is, as source= or with --from"
        )
    return Dump(table, lambda: store.dump(table))
