"""Client tokens: a transaction that comes again within ten minutes is known by its token, and not applied twice."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import apsw
from orjson import dumps, loads

from adjoin.errors import TokenReused
from adjoin.requests import TransactWrite
from adjoin.units import TOKEN_LIFETIME


class Token:
    """A client token, and a digest of the transaction it stands for."""

    def __init__(self, request: TransactWrite, now: float) -> None:
        self._token = request.token
        self._digest = sha256(dumps(_canonical(request.writes))).digest()
        self._now = now

    def units(self, cursor: apsw.Cursor) -> dict[str, float] | None:
        """What finding takes of each table that this transaction was applied with this token in the last ten minutes.

        None if it was not.
        """
        known = cursor.execute(
            "SELECT request FROM adjoin_tokens WHERE token = ? AND at > ?",
            (self._token, self._now - TOKEN_LIFETIME),
        ).get
        if known is None:
            return None
        digest, told = known[: len(self._digest)], known[len(self._digest) :]
        if digest != self._digest:
            raise TokenReused(
                f"the token {self._token!r} was used for another transaction within the last ten minutes;"
                " use a fresh token for each transaction"
            )
        units: dict[str, float] = loads(told or b"{}")
        return units

    def remember(self, cursor: apsw.Cursor, units: dict[str, float]) -> None:
        cursor.execute("DELETE FROM adjoin_tokens WHERE at <= ?", (self._now - TOKEN_LIFETIME,))
        known = self._digest + dumps(units)
        cursor.execute("REPLACE INTO adjoin_tokens VALUES (?, ?, ?)", (self._token, self._now, known))


def _canonical(value: Any) -> Any:
    """A request as plain data in which equal requests are equal and others are not."""
    if is_dataclass(value):
        return [type(value).__name__, *[_canonical(getattr(value, field.name)) for field in fields(value)]]
    if isinstance(value, dict):
        return {"": sorted((name, _canonical(inner)) for name, inner in value.items())}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return value
