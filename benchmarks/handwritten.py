"""The mix as a direct program over SQLite, written by hand for this one set of tables.

It works on a file that adjoin created, and writes the same as adjoin: the item with its size and its index
columns, and the change with the images before and after. It opens the file as adjoin does, so that both
have the same settings of SQLite, and uses one transaction per write. It has no models, checks nothing that
the operation does not need, and computes no capacity units. It returns plain dicts.
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
    image,
    link_key,
    link_keys,
    link_rest,
    link_size,
    node_key,
    node_keys,
    node_rest,
    node_size,
    plain_link,
    plain_node,
)
from benchmarks.workload import LinkRow, NodeRow

_GET = "SELECT body FROM items_1 WHERE pk = ? AND sk = ?"
_LIST = (
    "SELECT sk, body FROM items_1 INDEXED BY items_1_1"
    " WHERE k3 = ? AND k4 >= ? AND k4 < ? AND k3 IS NOT NULL AND k4 IS NOT NULL ORDER BY k4 DESC LIMIT ?"
)
_COUNT = "SELECT count(*) FROM items_1 INDEXED BY items_1_1 WHERE k3 = ? AND k4 >= ? AND k4 < ? AND k4 IS NOT NULL"
_ADD_NODE = "INSERT INTO items_1(pk, sk, size, body) VALUES (?, ?, ?, ?)"
_ADD_LINK = "INSERT INTO items_1(pk, sk, k1, k2, k3, k4, size, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SET_NODE = "UPDATE items_1 SET size = ?, body = ? WHERE pk = ? AND sk = ?"
_SET_LINK = "UPDATE items_1 SET size = ?, k2 = ?, k4 = ?, body = ? WHERE pk = ? AND sk = ?"
_WHOLE = "size, body, pk, sk, k1, k2, k3, k4"
_OLD = f"SELECT {_WHOLE} FROM items_1 WHERE pk = ? AND sk = ?"
_DELETE = f"DELETE FROM items_1 WHERE pk = ? AND sk = ? RETURNING {_WHOLE}"
_DELETE_LEAVING = f"DELETE FROM items_1 WHERE pk = ? RETURNING {_WHOLE}"
_DELETE_ARRIVING = (
    f"DELETE FROM items_1 INDEXED BY items_1_0 WHERE k1 = ? AND k1 IS NOT NULL AND k2 IS NOT NULL RETURNING {_WHOLE}"
)
# A change also stores the table's totals after it: items and bytes.
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
                node_columns, rest = node_keys(node.id), node_rest(node)
                size = node_size(node_columns, rest, len(node.data))
                self._execute(_ADD_NODE, (*node_columns, size, dumps(rest)))
                self._execute(_CHANGE, (at, 1, size, None, image(node_columns, rest)))
            for link in links:
                keys, rest = link_keys(link.id1, link.id2, link.time), link_rest(link)
                size = link_size(keys, rest, len(link.data))
                self._execute(_ADD_LINK, (*keys, size, dumps(rest)))
                self._execute(_CHANGE, (at, 1, size, None, image(keys, rest)))

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
        return [plain_link(id1, cast(str, key), loads(cast(bytes, body))) for key, body in rows]

    def countlink(self, id1: int) -> int:
        count: int = self._execute(_COUNT, (node_key(id1), LINK_PREFIX, AFTER_LINKS)).get
        return count

    def multiget(self, id1: int, id2s: tuple[int, ...]) -> list[dict[str, Any]]:
        source = node_key(id1)
        keys = [link_key(id2) for id2 in id2s]
        bodies = [self._execute(_GET, (source, key)).get for key in keys]
        return [plain_link(id1, key, loads(body)) for key, body in zip(keys, bodies, strict=True) if body is not None]

    def addlink(self, link: LinkRow) -> None:
        keys, rest = link_keys(link.id1, link.id2, link.time), link_rest(link)
        body, size = dumps(rest), link_size(keys, rest, len(link.data))
        source, key, _, k2, _, k4 = keys
        with self._writing():
            old = self._execute(_OLD, (source, key)).get
            if old is None:
                self._execute(_ADD_LINK, (*keys, size, body))
                self._execute(_CHANGE, (now(), 1, size, None, image(keys, rest)))
            else:
                self._execute(_SET_LINK, (size, k2, k4, body, source, key))
                self._execute(_CHANGE, (now(), 0, size - old[0], _image(old), image(keys, rest)))

    def updatelink(self, id1: int, id2: int, time: int, data: bytes) -> bool:
        keys = link_keys(id1, id2, time)
        source, key, _, k2, _, k4 = keys
        with self._writing():
            found = self._execute(_OLD, (source, key)).get
            if found is None:
                return False
            old_size, body, *old_keys = found
            rest = loads(body)
            old = image(old_keys, rest)
            rest["version"]["N"] = str(int(rest["version"]["N"]) + 1)
            rest["time"]["N"] = str(time)
            rest["data"]["B"] = encoded(data)
            size = link_size(keys, rest, len(data))
            self._execute(_SET_LINK, (size, k2, k4, dumps(rest), source, key))
            self._execute(_CHANGE, (now(), 0, size - old_size, old, image(keys, rest)))
        return True

    def deletelink(self, id1: int, id2: int) -> bool:
        with self._writing():
            old = self._execute(_DELETE, (node_key(id1), link_key(id2))).get
            if old is not None:
                self._execute(_CHANGE, (now(), -1, -old[0], _image(old), None))
        return old is not None

    # --- nodes ---------------------------------------------------------------------------------

    def getnode(self, id: int) -> dict[str, Any] | None:
        body = self._execute(_GET, (node_key(id), NODE_SORT_KEY)).get
        return None if body is None else plain_node(id, loads(body))

    def addnode(self, node: NodeRow) -> None:
        keys, rest = node_keys(node.id), node_rest(node)
        body, size = dumps(rest), node_size(keys, rest, len(node.data))
        with self._writing():
            old = self._execute(_OLD, keys).get
            if old is None:
                self._execute(_ADD_NODE, (*keys, size, body))
                self._execute(_CHANGE, (now(), 1, size, None, image(keys, rest)))
            else:
                self._execute(_SET_NODE, (size, body, *keys))
                self._execute(_CHANGE, (now(), 0, size - old[0], _image(old), image(keys, rest)))

    def updatenode(self, id: int, time: int, data: bytes) -> bool:
        keys = node_keys(id)
        with self._writing():
            found = self._execute(_OLD, keys).get
            if found is None:
                return False
            old_size, body, *_ = found
            rest = loads(body)
            old = image(keys, rest)
            rest["version"]["N"] = str(int(rest["version"]["N"]) + 1)
            rest["time"]["N"] = str(time)
            rest["data"]["B"] = encoded(data)
            size = node_size(keys, rest, len(data))
            self._execute(_SET_NODE, (size, dumps(rest), *keys))
            self._execute(_CHANGE, (now(), 0, size - old_size, old, image(keys, rest)))
        return True

    def deletenode(self, id: int) -> bool:
        key = node_key(id)
        with self._writing():
            gone = self._execute(_DELETE_LEAVING, (key,)).fetchall()
            gone += self._execute(_DELETE_ARRIVING, (key,)).fetchall()
            at = now()
            self._cursor.executemany(_CHANGE, ((at, -1, -cast(int, row[0]), _image(row), None) for row in gone))
        return bool(gone)

    def close(self) -> None:
        self._connection.close()


def _image(row: tuple[Any, ...]) -> bytes:
    return image(row[2:], loads(row[1]))
