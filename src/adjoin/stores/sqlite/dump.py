"""All items of a table at one instant, each as text in DynamoDB's JSON form, for whoever reads tables whole.

Bodies are passed on as they are stored, without being read; only the keys are added to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import apsw

from adjoin.stores.sqlite.tables import Table

PIECE = 10_000
"""Items that are handed on at a time."""


def dumped(connection: apsw.Connection, table: Table) -> Iterator[list[bytes]]:
    """Pieces of items, in the order of keys; the caller holds the transaction that makes them one instant."""
    text = table.form.text
    cursor = connection.execute(f"SELECT {table.form.fields} FROM {table.items} ORDER BY pk, sk")
    while piece := list(islice(cursor, PIECE)):
        yield [text(row) for row in piece]
