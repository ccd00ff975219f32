"""A request of DynamoDB's protocol and its answer: which operation it is, performed on the embedded store.

Reads are answered at once, on the thread that listens; writes go to the writer, which answers later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b32encode
from email.utils import formatdate
from os import urandom
from typing import Any
from zlib import crc32

from orjson import dumps

from adjoin.errors import AdjoinError
from adjoin.server.faults import Refused
from adjoin.server.http import Answer, Answering, Request
from adjoin.server.negotiation import JSON, is_plain, negotiated, unpacked
from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS
from adjoin.server.operations.interface import Operation, Parameters
from adjoin.server.refusals import body_of, refusal, status_of
from adjoin.server.signatures import KeyPair, authentication_fault, check_signature
from adjoin.server.validation import is_json, validated
from adjoin.server.writer import Writer
from adjoin.stores.sqlite import SQLiteStore

_log = logging.getLogger(__name__)
_TARGETS = {"DynamoDB_20120810": OPERATIONS, "DynamoDBStreams_20120810": STREAM_OPERATIONS}


class Service:
    """Answers requests over one store; with a key pair, only those that were signed with it."""

    def __init__(self, store: SQLiteStore, loop: asyncio.AbstractEventLoop, keys: KeyPair | None = None) -> None:
        self._store = store
        self._loop = loop
        self._keys = keys
        self._writer = Writer(store.outcomes, loop)
        self._date = (0, "")

    def close(self) -> None:
        self._writer.close()

    def answer(self, request: Request) -> Answering:
        return self._performed(request) if is_plain(request) else negotiated(request, self._performed)

    def _performed(self, request: Request) -> Answering:
        parameters: Parameters = {}
        try:
            operation, parameters = self._understood(request)
            asked = operation.request(parameters, self._store)
            if not operation.writes:
                (response,) = self._store.execute((asked,))
                return self._said(200, operation.answer(parameters, response, self._store))
        except Exception as error:
            return self._refused(error, parameters)
        return self._loop.create_task(self._written(operation, parameters, self._writer.write(asked)))

    async def _written(self, operation: Operation, parameters: Parameters, writing: asyncio.Future[Any]) -> Answer:
        try:
            return self._said(200, operation.answer(parameters, await writing, self._store))
        except Exception as error:
            return self._refused(error, parameters)

    def _refused(self, error: Exception, parameters: Parameters) -> Answer:
        if not isinstance(error, AdjoinError):
            _log.error("a request failed for a fault of the server", exc_info=error)
            error = Refused("InternalServerError", "Internal server error")
        refused = refusal(error, parameters)
        return self._said(status_of(refused), body_of(refused))

    def _understood(self, request: Request) -> tuple[Operation, Parameters]:
        target, _, name = request.headers.get("x-amz-target", "").partition(".")
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
        body = unpacked(request) if "content-encoding" in request.headers else request.body
        parameters = validated(name, body)
        if name == "DescribeEndpoints":
            parameters["Host"] = request.headers.get("host", "localhost")
        return operation, parameters

    def _said(self, status: int, body: dict[str, Any] | None) -> Answer:
        content = b"" if body is None else dumps(body)
        return Answer(
            status,
            content,
            {
                "Server": "adjoin",
                "Date": self._now(),
                "Content-Type": JSON,
                "x-amzn-RequestId": b32encode(urandom(32))[:52].decode(),
                "x-amz-crc32": str(crc32(content)),
            },
        )

    def _now(self) -> str:
        second = int(time.time())
        if self._date[0] != second:
            self._date = (second, formatdate(second, usegmt=True))
        return self._date[1]
