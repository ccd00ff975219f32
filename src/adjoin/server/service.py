"""A request of DynamoDB's protocol and its answer: which operation it is, performed on the embedded store.

Reads are answered at once, on the thread that listens; writes go to the writer, and are answered later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b32encode
from email.utils import formatdate
from functools import partial
from os import urandom
from typing import Any
from zlib import crc32

from orjson import JSONDecodeError, dumps, loads

from adjoin.errors import AdjoinError
from adjoin.requests import Get, ItemResponse
from adjoin.server.faults import Refused
from adjoin.server.http import Answer, Answering, Later, Request
from adjoin.server.negotiation import JSON, is_plain, negotiated, unpacked
from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS
from adjoin.server.operations.interface import Operation, Parameters, Tables
from adjoin.server.refusals import body_of, refusal, status_of
from adjoin.server.signatures import KeyPair, authentication_fault, check_signature
from adjoin.server.validation import SHORT, is_json, validated
from adjoin.server.writer import Writer
from adjoin.stores.sqlite import SQLiteStore

_log = logging.getLogger(__name__)
_TARGETS = {"DynamoDB_20120810": OPERATIONS, "DynamoDBStreams_20120810": STREAM_OPERATIONS}
_GET_ITEM = "DynamoDB_20120810.GetItem"


class _Known:
    """Tables as the store knows them without a look at the file."""

    def __init__(self, store: SQLiteStore) -> None:
        self.definition = store.known_definition


class Service:
    """Answers requests over one store; with a key pair, only those that were signed with it."""

    def __init__(self, store: SQLiteStore, loop: asyncio.AbstractEventLoop, keys: KeyPair | None = None) -> None:
        self._store = store
        self._keys = keys
        self._known = _Known(store)
        self._writer = Writer(store, loop)
        self._second = 0
        self._head = ""
        # A request id tells a request from every other, also of a server that was started again.
        self._life = b32encode(urandom(32))[:39].decode()
        self._answered = 0

    async def close(self) -> None:
        """Ends when every write that was asked for is answered."""
        await self._writer.close()

    def answer(self, request: Request) -> Answering:
        return self._answered_to(request) if is_plain(request) else negotiated(request, self._answered_to)

    def _answered_to(self, request: Request) -> Answering:
        parameters: Parameters = {}
        try:
            operation, name, body = self._understood(request)
            if request.target == _GET_ITEM and (found := self._whole_item(body)) is not None:
                return self._sent(200, found)
            parameters = validated(name, body)
            if name == "DescribeEndpoints":
                parameters["Host"] = request.headers.get("host", "localhost")
            if not operation.writes:
                return self._said(200, self._read(operation, parameters))
            asked = operation.request(parameters, self._store)
        except Exception as error:
            return self._refused(error, parameters)
        later = Later()
        self._writer.write(asked, partial(self._written, later, operation, parameters))
        return later

    def _understood(self, request: Request) -> tuple[Operation, str, bytes]:
        """Which operation is asked for, and with which body, if whoever asks may ask."""
        target, _, name = request.target.partition(".")
        operation = _TARGETS.get(target, {}).get(name)
        fault = authentication_fault(request)
        if (operation is None or fault is not None) and not is_json(request.body):
            raise Refused("SerializationException")
        if operation is None:
            raise Refused("UnknownOperationException")
        if fault is not None:
            raise fault
        if self._keys is not None:
            check_signature(request, self._keys)
        return operation, name, unpacked(request) if request.says(b"\r\ncontent-encoding:") else request.body

    def _whole_item(self, body: bytes) -> bytes | None:
        """The answer to a GetItem that asks for one whole item by a plain key; None for any other request.

        The most frequent request of all, without the way through everything that others may ask for.
        """
        try:
            parameters = SHORT["GetItem"](loads(body))
            if parameters is None:
                return None
            response = self._store.text(Get(parameters["TableName"], parameters["Key"]))
        except (AdjoinError, JSONDecodeError):
            # What is wrong is said in the service's order.
            return None
        assert isinstance(response, ItemResponse)
        return b"{}" if response.item is None else dumps({"Item": response.item})

    def _read(self, operation: Operation, parameters: Parameters) -> dict[str, Any] | None:
        if operation.fails_on_stale:
            try:
                return self._performed(operation, parameters, self._known)
            except AdjoinError:
                # Perhaps only because a table was changed meanwhile.
                pass
        return self._performed(operation, parameters, self._store)

    def _performed(self, operation: Operation, parameters: Parameters, tables: Tables) -> dict[str, Any] | None:
        response = self._store.text(operation.request(parameters, tables))
        return operation.answer(parameters, response, self._store)

    def _written(self, later: Later, operation: Operation, parameters: Parameters, outcome: Any) -> None:
        try:
            if isinstance(outcome, Exception):
                raise outcome
            answer = self._said(200, operation.answer(parameters, outcome, self._store))
        except Exception as error:
            answer = self._refused(error, parameters)
        later.settle(answer)

    def _refused(self, error: Exception, parameters: Parameters) -> Answer:
        if not isinstance(error, AdjoinError):
            _log.error("a request failed for a fault of the server", exc_info=error)
            error = Refused("InternalServerError", "Internal server error")
        refused = refusal(error, parameters)
        return self._said(status_of(refused), body_of(refused))

    def _said(self, status: int, body: dict[str, Any] | None) -> Answer:
        return self._sent(status, b"" if body is None else dumps(body))

    def _sent(self, status: int, content: bytes) -> Answer:
        second = int(time.time())
        if self._second != second:
            self._second = second
            self._head = (
                f"Server: adjoin\r\nDate: {formatdate(second, usegmt=True)}\r\nContent-Type: {JSON}\r\n"
                f"x-amzn-RequestId: {self._life}"
            )
        self._answered += 1
        head = f"{self._head}{self._answered:013X}\r\nx-amz-crc32: {crc32(content)}\r\n"
        return Answer(status, content, head.encode())
