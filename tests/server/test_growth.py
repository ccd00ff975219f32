"""What a server keeps from one request to the next has a bound: nothing grows with the number of requests."""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import _lru_cache_wrapper, lru_cache
from http.client import HTTPConnection
from typing import Any

import pytest

import adjoin
from adjoin.server import reading
from adjoin.server.grammar import expressions
from adjoin.server.serving import Server, serve
from tests.server.test_protocol import RIGHT
from tests.server.test_serving import TABLE, client
from tests.waiting import LIMIT

BESIDE = ("adjoin.aws", "adjoin.batch", "adjoin.cli", "adjoin.explorer", "adjoin.simulation", "adjoin.__main__")
"""Parts that need other packages, and are no part of a server."""


def caches() -> Iterator[tuple[str, _lru_cache_wrapper[Any]]]:
    for module in pkgutil.walk_packages(adjoin.__path__, "adjoin."):
        if not module.name.startswith(BESIDE):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, _lru_cache_wrapper):
                    yield f"{module.name}.{name}", value


def test_every_cache_has_a_bound() -> None:
    found = dict(caches())
    assert found["adjoin.server.grammar.expressions._kept"]
    for name, cache in found.items():
        most = cache.cache_parameters()["maxsize"]
        assert most is not None, name
        assert most <= 4096, name


def test_of_long_expressions_few_are_kept() -> None:
    expressions._kept.cache_clear()
    expressions._kept_long.cache_clear()
    for number in range(2000):
        expressions._parsed(expressions._update, f"SET a{number} = b", "UpdateExpression")
    for number in range(100):
        assigned = ", ".join(f"b{each} = c" for each in range(100))
        expressions._parsed(expressions._update, f"SET a{number} = b, {assigned}", "UpdateExpression")
    assert expressions._kept.cache_info().currsize == 1024
    assert expressions._kept_long.cache_info().currsize == 32


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(":memory:") as opened:
        client(opened).create_table(**TABLE)
        yield opened


class Asking:
    """A client that never asks the same again."""

    def __init__(self, server: Server) -> None:
        self._address = server.endpoint.removeprefix("http://")
        self._number = 0

    def ask(self, operation: str, body: dict[str, Any], **headers: str) -> int:
        # Each request has a connection of its own.
        connection = HTTPConnection(self._address, timeout=LIMIT)
        target = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        connection.request("POST", "/", json.dumps(body).encode(), {**RIGHT, **target, **headers})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def turn(self) -> None:
        self._number += 1
        number = self._number
        key = {"PK": {"S": f"p{number}"}, "SK": {"S": f"s{number}"}}
        table = {"TableName": "Things"}
        values = {":v": {"S": f"s{number}"}}
        assert self.ask("PutItem", {**table, "Item": {**key, f"a{number}": {"N": str(number)}}}) == 200
        update = {"UpdateExpression": f"SET b{number} = :v", "ExpressionAttributeValues": values}
        assert self.ask("UpdateItem", {**table, "Key": key, **update}, **{f"X-{number}": "x"}) == 200
        found = {"KeyConditionExpression": "PK = :p AND begins_with(SK, :v)", "FilterExpression": f"c{number} = :v"}
        bound = {**values, ":p": {"S": f"p{number}"}}
        assert self.ask("Query", {**table, **found, "ExpressionAttributeValues": bound}) == 200
        assert self.ask("GetItem", {"TableName": f"None{number}", "Key": key}) == 400
        assert self.ask("ListTables", {}, Host=f"{number}.example") == 403
        assert self.ask("ListTables", {}, Origin=f"http://{number}.example") == 403
        assert self.ask(f"Nothing{number}", {}) == 400
        put = {"TransactItems": [{"Put": {**table, "Item": key}}], "ClientRequestToken": f"token{number}"}
        assert self.ask("TransactWriteItems", put) == 200
        if number % 10 == 0:
            name = {"TableName": f"Table{number}"}
            assert self.ask("CreateTable", {**TABLE, **name}) == 200
            assert self.ask("PutItem", {**name, "Item": key}) == 200
            assert self.ask("DeleteTable", name) == 200


def things() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_nothing_grows_with_the_number_of_requests(server: Server) -> None:
    asking = Asking(server)
    bound = 60
    with pytest.MonkeyPatch.context() as patch:
        # Caches that are full after a few turns, as they are after some thousands.
        for name in ("_kept", "_kept_long"):
            patch.setattr(expressions, name, lru_cache(8)(getattr(expressions, name).__wrapped__))
        patch.setattr(reading, "_KEPT", 8)
        for _ in range(bound):
            asking.turn()
        before = things()
        for _ in range(2 * bound):
            asking.turn()
        after = things()
    assert after - before < bound, f"{after - before} more objects after {2 * bound} turns"
    crowd = server._crowd
    assert len(server._store._connections._known) == 1
    assert crowd.held == 0
