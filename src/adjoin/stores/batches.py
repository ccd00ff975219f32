"""What one batch may ask, beyond what its gets and writes may ask alone: the protocol has no room for more.

And how a transaction says why it was canceled.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjoin.errors import CancellationReason, InvalidRequest, TransactionCanceled
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


def canceled(reasons: Sequence[CancellationReason]) -> TransactionCanceled:
    """The error of a transaction, with a reason for each of its parts."""
    codes = ", ".join(reason.code for reason in reasons)
    return TransactionCanceled(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]", reasons
    )


def canceled_by(error: Exception, at: int, count: int) -> TransactionCanceled:
    """The error of a transaction of `count` parts in which one cannot be meant for its table."""
    reasons = [CancellationReason("None")] * count
    reasons[at] = CancellationReason("ValidationError", str(error))
    return canceled(reasons)
