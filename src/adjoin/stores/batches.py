"""What one batch may ask, beyond what its gets and writes may ask alone: the protocol has no room for more."""

from __future__ import annotations

from adjoin.errors import InvalidRequest
from adjoin.requests import BatchGet, BatchWrite, Get


def by_table(request: BatchGet) -> dict[str, list[Get]]:
    """The gets of a batch for each table, which must agree in how they read it."""
    tables: dict[str, list[Get]] = {}
    for get in request.gets:
        tables.setdefault(get.table, []).append(get)
    for table, gets in tables.items():
        first = gets[0]
        if any(get.consistent != first.consistent or get.projection != first.projection for get in gets):
            raise InvalidRequest(
                f"the gets of one batch from {table} must agree in consistency and projection; split the batch"
            )
    return tables


def check_batch_write(request: BatchWrite) -> None:
    for write in request.writes:
        if write.condition is not None or write.return_old:
            raise InvalidRequest(
                f"the writes of a batch cannot have conditions or return what was there, as one for {write.table} "
                f"asks; use a transaction, or single writes"
            )
