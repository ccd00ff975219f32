"""What an operation is: which requests its parameters mean, and what it answers when they are performed.

Parameters have been through `validation.validated`. A fault that is found here, or by the store, is an
`AdjoinError` (`refusals` gives it the service's name) or a `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from adjoin.requests import Request
from adjoin.tables import TableDefinition

Parameters: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]


class Tables(Protocol):
    """What operations need to know of tables before they can ask the store."""

    def definition(self, name: str) -> TableDefinition:
        """The table of that name; `TableNotFound` if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Operation:
    """`request` may look at tables, `answer` too; `writes` says that it belongs to the one who writes.

    `fails_on_stale` says that a table which is not as it is taken to be can only lead to an error, so that what
    is known of it suffices for a first try.
    An answer of None has no content at all.
    """

    request: Callable[[Parameters, Tables], Request]
    answer: Callable[[Parameters, Any, Tables], Answer | None]
    writes: bool = False
    fails_on_stale: bool = False
