"""All items of a table at one instant, each as text in DynamoDB's JSON form, for whoever reads tables whole.

Bodies are passed on as they are stored, without being read; only the keys are put in front of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import apsw
from orjson import dumps

from adjoin.stores.sqlite.tables import Table

PIECE = 10_000
"""Items that are handed on at a time."""


def dumped(connection: apsw.Connection, table: Table) -> Iterator[list[bytes]]:
    """Pieces of items, in the order of keys; the caller holds the transaction that makes them one instant."""
    names = {
        column.column: column.name for column in table.columns if column.tag == "S" and column.name in table.form.names
    }
    line = _writer(list(names.values()))
    cursor = connection.execute(f"SELECT {', '.join(('body', *names))} FROM {table.items} ORDER BY pk, sk")
    while piece := list(islice(cursor, PIECE)):
        yield [line(row) for row in piece]


def _writer(names: list[str]) -> Callable[[Any], bytes]:
    """The function from a row, body first, to an item as text; compiled, as all items come through it."""
    lines = ["def line(row):", "    parts = []"]
    for place, name in enumerate(names, start=1):
        start = dumps(name) + b':{"S":'
        lines += [
            f"    if row[{place}] is not None:",
            f"        parts.append({start!r} + dumps(row[{place}]) + b'}}')",
        ]
    lines += [
        "    body = row[0]",
        "    if len(body) > 2:",
        "        parts.append(body[1:-1])",
        "    return b'{' + b','.join(parts) + b'}'",
    ]
    names_here: dict[str, Any] = {"dumps": dumps}
    exec("\n".join(lines), names_here)
    writer: Callable[[Any], bytes] = names_here["line"]
    return writer
