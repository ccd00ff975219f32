"""A store that refuses to write, whatever a plan asks of it.

The explorer opens graphs of other people's tables. Without `--write`, no request that changes something reaches their
store: neither one of the page, nor what a graph records when it opens.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjoin.errors import AccessDenied
from adjoin.requests import (
    BatchGet,
    DescribeTable,
    Get,
    ListStreams,
    ListTables,
    ListTags,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    TransactGet,
)
from adjoin.stores.interface import Store

READS = (
    Get,
    BatchGet,
    TransactGet,
    Query,
    Scan,
    DescribeTable,
    ListTables,
    ListTags,
    ListStreams,
    ReadChanges,
)


class ReadOnlyStore:
    """Another store, for reading only. It takes part in the contract of `stores.interface`."""

    creates_tables = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self.system: str | None = getattr(store, "system", None)
        self.server: str | None = getattr(store, "server", None)

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        for request in requests:
            if not isinstance(request, READS):
                raise AccessDenied(
                    f"{type(request).__name__} would change the table, and it was opened to be read; start the "
                    f"explorer with --write"
                )
        return self._store.execute(requests)

    def close(self) -> None:
        self._store.close()
