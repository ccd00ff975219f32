"""Every operation as a generator that decides everything and does no I/O.

A plan yields a batch of requests, which may be executed in parallel, and is sent their responses in
order; what it returns is the result. Errors of the store are thrown into it. `run` and `run_async`
in `adjoin.runner` drive plans; nothing here knows a store.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from adjoin.requests import Request

T = TypeVar("T")
Plan: TypeAlias = Generator[Sequence[Request], Any, T]
