"""The contract of a store, which one test suite checks for every store.

- `execute` performs a batch of requests and returns their responses in order. The requests of a batch are independent:
  they may run in parallel, and none may rely on another of the same batch.
- A request either takes effect as a whole, or raises and changes nothing. When a request of a batch raises, the others
  may have taken effect.
- A write is durable when `execute` returns.
- All limits, orders, conditions, errors and consumed units are DynamoDB's.
- A store knows nothing of models and layouts.
- A store may have `system`, the name of its database in OpenTelemetry, for those who watch its requests.

Every store also applies the limits that only batches have, because their wire format has no field for more, and those
of expressions. What is below the contract gives all stores the same messages for that, and for a canceled transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from adjoin.errors import CancellationReason, InvalidRequest, TransactionCanceled
from adjoin.expressions import operators_in
from adjoin.requests import BatchWrite, Request, Response
from adjoin.units import MAX_EXPRESSION_SIZE, MAX_OPERATORS


class Store(Protocol):
    """A store for synchronous programs; safe to use from many threads."""

    creates_tables: bool
    """Whether opening a graph creates its table, as in a file, or only `create_table` does, as on the service."""

    def execute(self, requests: Sequence[Request]) -> list[Response]: ...

    def close(self) -> None: ...


class AsyncStore(Protocol):
    """A store for asynchronous programs."""

    creates_tables: bool

    async def execute(self, requests: Sequence[Request]) -> list[Response]: ...

    async def close(self) -> None: ...


# --- expressions -------------------------------------------------------------------------------


_SHORTEST_OPERATOR = 6
"""The fewest bytes that an operator adds to a text: `NOT ()`."""


def check_expression(what: str, expression: object, text: str) -> None:
    """Refuses an expression whose text is too long for DynamoDB, or has too many operators; `what` names it."""
    if len(text) > MAX_EXPRESSION_SIZE:
        raise InvalidRequest(
            f"the {what} takes {len(text):,} bytes as text, but DynamoDB takes at most {MAX_EXPRESSION_SIZE:,}; "
            f"split it over several calls"
        )
    if len(text) > _SHORTEST_OPERATOR * MAX_OPERATORS and (operators := operators_in(expression)) > MAX_OPERATORS:
        raise InvalidRequest(
            f"the {what} has {operators:,} operators and functions, but DynamoDB takes at most {MAX_OPERATORS}; "
            f"split it over several calls"
        )


# --- batches and transactions ------------------------------------------------------------------


def refuse_differing_gets(table: str) -> NoReturn:
    """Raises for a batch whose gets from one table differ in consistency or projection."""
    raise InvalidRequest(
        f"the gets of one batch from {table} must agree in consistency and projection; split the batch"
    )


def check_batch_write(request: BatchWrite) -> None:
    for write in request.writes:
        if write.condition is not None or write.return_old:
            raise InvalidRequest(
                f"the writes of a batch cannot have conditions or return what was there, as one for {write.table} "
                f"asks; use a transaction, or single writes"
            )


def canceled(reasons: Sequence[CancellationReason]) -> TransactionCanceled:
    """The error of a canceled transaction, with one reason per operation."""
    codes = ", ".join(reason.code for reason in reasons)
    return TransactionCanceled(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]", reasons
    )


def canceled_by(error: Exception, at: int, count: int) -> TransactionCanceled:
    """The error of a transaction of `count` operations of which the one `at` that position does not fit its table."""
    reasons = [CancellationReason("None")] * count
    reasons[at] = CancellationReason("ValidationError", str(error))
    return canceled(reasons)
