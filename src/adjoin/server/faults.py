"""The one way in which the server refuses a request."""

from __future__ import annotations

from typing import Any

from adjoin.errors import AdjoinError


class Refused(AdjoinError):
    """A request is not performed; `code` is the service's name for why, `members` what its answer says besides.

    `message` is None where the service answers with a code and no word.
    """

    def __init__(self, code: str, message: str | None = None, **members: Any) -> None:
        super().__init__(code if message is None else f"{code}: {message}")
        self.code = code
        self.message = message
        self.members = members
