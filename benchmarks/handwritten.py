"""The mix as a straight program over SQLite, written by hand for this one set of tables.

It works on a file that adjoin made, and leaves it as adjoin would: the item with its size and its index
columns, and the change with the images before and after. It opens the file as adjoin does, so that both
have the same settings of SQLite, and takes one transaction a write. It has no models, checks nothing that
the operation does not need, and reckons no capacity units; it answers with plain dicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from time import time as now
from typing import Any, cast

from orjson import dumps, loads

from adjoin.stores.sqlite.file import Durability, open_file
from benchmarks.items import (
    AFTER_LINKS,
    LINK_PREFIX,
    NODE_SORT_KEY,
    encoded,
    link_item,
    link_key,
    link_size,
    node_item,
    node_key,
    node_size,
    plain_link,
    plain_node,
    time_key,
)
from benchmarks.workload import LinkRow, NodeRow

_GET = "SELECT body FROM items_1 WHERE pk = ? AND sk = ?"
_LIST = (
    "SELECT body FROM items_1 INDEXED BY items_1_1"
    " WHERE k3 = ? AND k4 >= ? AND k4 < ? AND k3 IS NOT NULL AND k4 IS NOT NULL ORDER BY k4 DESC LIMIT ?"
)
_COUNT = "SELECT count(*) FROM items_1 INDEXED BY items_1_1 WHERE k3 = ? AND k4 >= ? AND k4 < ? AND k4 IS NOT NULL"
_ADD_NODE = "INSERT INTO items_1(pk, sk, size, body) VALUES (?, ?, ?, ?)"
_ADD_LINK = "INSERT INTO items_1(pk, sk, size, k1, k2, k3, k4, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SET_NODE = "UPDATE items_1 SET size = ?, body = ? WHERE pk = ? AND sk = ?"
_SET_LINK = "UPDATE items_1 SET size = ?, k2 = ?, k4 = ?, body = ? WHERE pk = ? AND sk = ?"
_OLD = "SELECT body, size FROM items_1 WHERE pk = ? AND sk = ?"
_DELETE = "DELETE FROM items_1 WHERE pk = ? AND sk = ? RETURNING body, size"
_DELETE_LEAVING = "DELETE FROM items_1 WHERE pk = ? RETURNING body, size"
_DELETE_ARRIVING = (
    "DELETE FROM items_1 INDEXED BY items_1_0 WHERE k1 = ? AND k1 IS NOT NULL AND k2 IS NOT NULL RETURNING body, size"
)
# A change carries the table's totals after it: items and bytes.
_CHANGE = (
    "INSERT INTO changes_1(at, expired, items, bytes, old, new) VALUES (?, 0,"
    " ? + coalesce((SELECT items FROM changes_1 ORDER BY seq DESC LIMIT 1), 0),"
    " ? + coalesce((SELECT bytes FROM changes_1 ORDER BY seq DESC LIMIT 1), 0), ?, ?)"
)


class Handwritten:
    def __init__(self, path: str | PathLike[str], durability: Durability = "power") -> None:
        self._connection = open_file(fspath(path), durability, patience=30.0)
        self._cursor = self._connection.cursor()
        self._execute = self._cursor.execute

    def load(self, nodes: Iterable[NodeRow], links: Iterable[LinkRow]) -> None:
        """Fills an empty file, in one transaction."""
        at = now()
        with self._writing():
            for node in nodes:
                item = node_item(node)
                body = dumps(item)
                size = node_size(item, len(node.data))
                self._execute(_ADD_NODE, (item["PK"]["S"], NODE_SORT_KEY, size, body))
                self._execute(_CHANGE, (at, 1, size, None, body))
            for link in links:
                item = link_item(link)
                body = dumps(item)
                columns = _link_columns(item, len(link.data))
                self._execute(_ADD_LINK, (*columns, body))
                self._execute(_CHANGE, (at, 1, columns[2], None, body))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._execute("ROLLBACK")
            raise
        self._execute("COMMIT")

    # --- links ---------------------------------------------------------------------------------

    def getlinklist(self, id1: int, limit: int) -> list[dict[str, Any]]:
        rows = self._execute(_LIST, (node_key(id1), LINK_PREFIX, AFTER_LINKS, limit))
        return [plain_link(loads(body)) for (body,) in rows]

    def countlink(self, id1: int) -> int:
        count: int = self._execute(_COUNT, (node_key(id1), LINK_PREFIX, AFTER_LINKS)).get
        return count

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[dict[str, Any]]:
        source = node_key(id1)
        bodies = [self._execute(_GET, (source, link_key(id2))).get for id2 in id2s]
        return [plain_link(loads(body)) for body in bodies if body is not None]

    def addlink(self, link: LinkRow) -> None:
        item = link_item(link)
        body = dumps(item)
        source, key, size, target, k2, leaving, k4 = _link_columns(item, len(link.data))
        with self._writing():
            old = self._execute(_OLD, (source, key)).get
            if old is None:
                self._execute(_ADD_LINK, (source, key, size, target, k2, leaving, k4, body))
                self._execute(_CHANGE, (now(), 1, size, None, body))
            else:
                self._execute(_SET_LINK, (size, k2, k4, body, source, key))
                self._execute(_CHANGE, (now(), 0, size - old[1], old[0], body))

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        source, target, key = node_key(id1), node_key(id2), link_key(id2)
        with self._writing():
            found = self._execute(_OLD, (source, key)).get
            if found is None:
                return False
            old, old_size = found
            item = loads(old)
            item["version"]["N"] = str(int(item["version"]["N"]) + 1)
            item["time"]["N"] = str(time)
            item["data"]["B"] = encoded(data)
            item["GSI1SK"]["S"] = time_key(time, source)
            item["GSI2SK"]["S"] = time_key(time, target)
            body = dumps(item)
            size = link_size(item, len(data))
            self._execute(_SET_LINK, (size, item["GSI1SK"]["S"], item["GSI2SK"]["S"], body, source, key))
            self._execute(_CHANGE, (now(), 0, size - old_size, old, body))
        return True

    def deletelink(self, id1: int, id2: int) -> bool:
        with self._writing():
            old = self._execute(_DELETE, (node_key(id1), link_key(id2))).get
            if old is not None:
                self._execute(_CHANGE, (now(), -1, -old[1], old[0], None))
        return old is not None

    # --- nodes ---------------------------------------------------------------------------------

    def getnode(self, id: int) -> dict[str, Any] | None:
        body = self._execute(_GET, (node_key(id), NODE_SORT_KEY)).get
        return None if body is None else plain_node(loads(body))

    def addnode(self, node: NodeRow) -> None:
        item = node_item(node)
        body = dumps(item)
        key, size = item["PK"]["S"], node_size(item, len(node.data))
        with self._writing():
            old = self._execute(_OLD, (key, NODE_SORT_KEY)).get
            if old is None:
                self._execute(_ADD_NODE, (key, NODE_SORT_KEY, size, body))
                self._execute(_CHANGE, (now(), 1, size, None, body))
            else:
                self._execute(_SET_NODE, (size, body, key, NODE_SORT_KEY))
                self._execute(_CHANGE, (now(), 0, size - old[1], old[0], body))

    def updatenode(self, id: int, time: int, data: bytes) -> bool:
        key = node_key(id)
        with self._writing():
            found = self._execute(_OLD, (key, NODE_SORT_KEY)).get
            if found is None:
                return False
            old, old_size = found
            item = loads(old)
            item["version"]["N"] = str(int(item["version"]["N"]) + 1)
            item["time"]["N"] = str(time)
            item["data"]["B"] = encoded(data)
            body = dumps(item)
            size = node_size(item, len(data))
            self._execute(_SET_NODE, (size, body, key, NODE_SORT_KEY))
            self._execute(_CHANGE, (now(), 0, size - old_size, old, body))
        return True

    def deletenode(self, id: int) -> bool:
        key = node_key(id)
        with self._writing():
            gone = self._execute(_DELETE_LEAVING, (key,)).fetchall()
            gone += self._execute(_DELETE_ARRIVING, (key,)).fetchall()
            at = now()
            self._cursor.executemany(_CHANGE, ((at, -1, -cast(int, size), old, None) for old, size in gone))
        return bool(gone)

    def close(self) -> None:
        self._connection.close()


def _link_columns(item: dict[str, Any], payload: int) -> tuple[str, str, int, str, str, str, str]:
    return (
        item["PK"]["S"],
        item["SK"]["S"],
        link_size(item, payload),
        item["GSI1PK"]["S"],
        item["GSI1SK"]["S"],
        item["GSI2PK"]["S"],
        item["GSI2SK"]["S"],
    )
