"""A write on its way: what it will be tested by, and the item before and after it.

Nothing here executes SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from orjson import dumps

from adjoin.evaluate import Test
from adjoin.stores.sqlite.keys import KeyValue
from adjoin.stores.sqlite.rows import Found
from adjoin.stores.sqlite.tables import Row, Table
from adjoin.values import Item


class Stored:
    """An item as a row of the table: normal, measured, with its key columns.

    What was found in the file is parsed when somebody looks at the item itself, which many writes do not.
    """

    __slots__ = ("_body", "_found", "_item", "_table", "row", "size")

    def __init__(self, table: Table, size: int, row: Row, item: Item | None, found: Found = ()) -> None:
        self._table = table
        self._item = item
        self._found = found
        self._body: bytes | None = None
        self.size = size
        self.row = row

    @property
    def body(self) -> bytes:
        if self._body is None:
            self._body = self._found[1] if self._found else self._table.form.body(self.item)
        return self._body

    @property
    def text(self) -> bytes:
        """The whole item as JSON, its attributes in the order in which `item` has them."""
        return self._table.form.text(self._found) if self._found else dumps(self.item)

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = self._table.form.item(self._found)
        return self._item


class Prepared:
    """A write that is valid in itself. `become` answers the item after for the item before."""

    __slots__ = ("become", "key", "table", "test")

    def __init__(
        self,
        table: Table,
        key: tuple[KeyValue, KeyValue],
        test: Test | None,
        become: Callable[[Stored | None], Stored | None],
    ) -> None:
        self.table = table
        self.key = key
        self.test = test
        self.become = become


class Decided:
    """A write whose effect is known: the item before and after."""

    __slots__ = ("changed", "new", "old", "prepared")

    def __init__(self, prepared: Prepared, old: Stored | None, new: Stored | None) -> None:
        self.prepared = prepared
        self.old = old
        self.new = new
        self.changed = old is not new and (old is None or new is None or old.row != new.row or _differ(old, new))


def _differ(old: Stored, new: Stored) -> bool:
    """Whether two items with the same keys are different."""
    # Sizes tell most apart: what the same attributes take in another order is the same.
    if old.size != new.size or len(old.body) != len(new.body):
        return True
    return old.body != new.body and old.item != new.item


def change_sum(at: float, expired: bool, old: bytes | None, new: bytes | None) -> int:
    """The sum of a change, by which damage to it is noticed."""
    return crc32(new or b"", crc32(b"%a|%d|%d|" % (at, expired, len(old or b"")) + (old or b"")))


def size_of(stored: Stored | None) -> int:
    """0 for what is not there."""
    return 0 if stored is None else stored.size
