"""A round of writes in two steps: performed by one thread, and committed by whoever may wait for the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from adjoin.errors import AdjoinError
from adjoin.stores.sqlite.connections import Session
from adjoin.stores.sqlite.turns import Turn


class Round:
    """Writes that are performed, and not committed yet. `outcomes` has for each its response, or its error.

    Nobody else writes until `commit` was called, which must be.
    """

    __slots__ = ("__weakref__", "_fault", "_session", "_writing", "outcomes")

    def __init__(
        self,
        session: Session,
        writing: Turn,
        outcomes: list[Any],
        fault: Callable[[Session, Exception], AdjoinError],
    ) -> None:
        """Both turns belong to the round from here on; `fault` says in adjoin's terms what SQLite reports."""
        self._session = session
        self._writing = writing
        self._fault = fault
        self.outcomes = outcomes
        session.lend(self)
        writing.lend(self)

    def commit(self) -> None:
        """All of it, or nothing if that fails."""
        try:
            self._session.commit()
        except apsw.Error as error:
            raise self._fault(self._session, error) from error
        except BaseException:
            self._session.mend()
            raise
        finally:
            self._session.give_back()
            self._writing.give_back()
