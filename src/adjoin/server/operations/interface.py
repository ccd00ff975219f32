"""`Operation`: the rules for the parameters of an operation, the request they become, and the answer.

The module also has what all operations need: how a request is refused, and how a table is named.

A request is first validated as far as possible without the table. The order is DynamoDB's, so that a request with two
faults reports the same one:

1. types: the first wrong one in the request (`checking`);
2. the name of the table, for operations where DynamoDB checks it first (`precondition`);
3. limits: all broken ones together (`checking`);
4. which parameters may be used together (`takes`);
5. other rules: the first broken one (`rule`).

Then `request` checks the expressions (`grammar.Expressions`, and `grammar.key_conditions` for the legacy
KeyConditions), and after them whatever needs the table.

A fault that is found here is a `Refused`. One that `request`, `answer` or the store finds is a `Refused` too, or
another `AdjoinError`, which `refusals` translates to DynamoDB's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol, TypeAlias

import orjson

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidRequest
from adjoin.requests import BatchWrite, Delete, Put, Request
from adjoin.server.grammar.attributes import TOO_DEEP
from adjoin.server.operations.checking import ParameterReader, ShapeLimits, WrongType, reader_of
from adjoin.server.operations.shapes import Structure
from adjoin.tables import TableDefinition

Parameters: TypeAlias = dict[str, Any]
AnswerBody: TypeAlias = dict[str, Any]

ParameterRule: TypeAlias = Callable[[Parameters], None]
"""Checks a request whose types are right, and may bring values in it to normal form.

It raises `InvalidRequest` with DynamoDB's own message, or `Refused`."""


class Refused(AdjoinError):
    """A request is refused. `code` is DynamoDB's name for the error; `members` are further members of the answer.

    `message` is None if DynamoDB answers with a code only.
    """

    def __init__(self, code: str, message: str | None = None, **members: Any) -> None:
        super().__init__(code if message is None else f"{code}: {message}")
        self.code = code
        self.message = message
        self.members = members


def validation_fault(message: str) -> Refused:
    return Refused("ValidationException", message)


# --- tables ------------------------------------------------------------------------------------

REGION = "us-east-1"
ACCOUNT = "000000000000"
_TABLE_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:\d*:table/([^/]+)(?:/.*)?")


def table_name(reference: str) -> str:
    """Returns the name of a table, given its name or its ARN; other text is returned unchanged."""
    found = _TABLE_ARN.fullmatch(reference)
    return found[1] if found else reference


def table_arn(name: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def index_arn(table: str, index: str) -> str:
    return f"{table_arn(table)}/index/{index}"


def stream_arn(table: str, label: str) -> str:
    return f"{table_arn(table)}/stream/{label}"


class TableLookup(Protocol):
    """Finds the definitions of tables, which operations need before they can make a request to the store."""

    def definition(self, name: str) -> TableDefinition:
        """Returns the table with this name; raises `TableNotFound`."""
        ...


# --- operations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShortWrite:
    """The fast path of a write, for frequent requests in their simplest form.

    `read` takes a request as it arrived, which may be any JSON, and returns the request to the store. It returns None
    for a request that has further parameters, or may be wrong: the general code then handles it, and reports faults
    in DynamoDB's order. `answer` is the answer to each request that `read` accepts, once it is performed.
    """

    read: Callable[[Any], Put | Delete | BatchWrite | None]
    answer: bytes


@dataclass(frozen=True, slots=True)
class ShortGet:
    """The fast path of a get: `read` returns the table and the key, both unchecked; or None, as for a write.

    The store has the item as JSON text, which is sent without parsing it.
    """

    read: Callable[[Any], tuple[Any, Any] | None]


@dataclass(frozen=True, slots=True)
class ExpressionParameters:
    """The expressions that an operation takes, and the legacy parameters that they replaced, in DynamoDB's order.

    A request must not use both.
    """

    expressions: tuple[str, ...]
    legacy: tuple[str, ...] = ()
    _all: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = (*self.expressions, *self.legacy, "ExpressionAttributeNames", "ExpressionAttributeValues")
        object.__setattr__(self, "_all", frozenset(names))

    def check(self, request: Mapping[str, Any]) -> None:
        """Raises for parameters that must not be used together. It is the first check of several parameters."""
        if self._all.isdisjoint(request):
            return
        expressions = [name for name in self.expressions if request.get(name) is not None]
        legacy = [name for name in self.legacy if request.get(name) is not None]
        _check_mixed(expressions, legacy)
        if request.get("ExpressionAttributeNames") is not None and not expressions:
            raise InvalidRequest("ExpressionAttributeNames can only be specified when using expressions")
        self._check_values(request)
        _check_operator(request)

    def _check_values(self, request: Mapping[str, Any]) -> None:
        using = [name for name in self.expressions if name != "ProjectionExpression"]
        if request.get("ExpressionAttributeValues") is None or any(request.get(name) is not None for name in using):
            return
        if using:
            verb = "is" if len(using) == 1 else "are"
            raise InvalidRequest(
                "ExpressionAttributeValues can only be specified when using expressions:"
                f" {' and '.join(using)} {verb} null"
            )


def _check_mixed(expressions: list[str], legacy: list[str]) -> None:
    # KeyConditions may be used with a FilterExpression, unless there is a KeyConditionExpression too.
    if "KeyConditionExpression" not in expressions:
        legacy = [name for name in legacy if name != "KeyConditions"]
    if expressions and legacy:
        raise InvalidRequest(
            "Can not use both expression and non-expression parameters in the same request:"
            f" Non-expression parameters: {{{', '.join(legacy)}}} Expression parameters: {{{', '.join(expressions)}}}"
        )


def _check_operator(request: Mapping[str, Any]) -> None:
    if request.get("ConditionalOperator") is None:
        return
    joined = next((request[name] for name in ("Expected", "QueryFilter", "ScanFilter") if request.get(name)), ())
    if not joined:
        raise InvalidRequest("ConditionalOperator cannot be used without Filter or Expected")
    if len(joined) == 1:
        raise InvalidRequest("ConditionalOperator can only be used when Filter or Expected has two or more elements")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `name` is the name that clients use, and `shape` the shape of its input.

    `request` turns validated parameters into a request to the store, and `answer` turns the response of the store into
    the answer. Both may look up tables. An answer of None has no content at all.
    """

    name: str
    shape: Structure
    request: Callable[[Parameters, TableLookup], Request]
    answer: Callable[[Parameters, Any, TableLookup], AnswerBody | None]
    takes: ExpressionParameters | None = None
    precondition: ParameterRule | None = None
    """A rule that is checked before the limits."""
    rule: ParameterRule | None = None
    """Rules that need neither the expressions of the request nor its table. Legacy parameters are read here too,
    because DynamoDB checks them at this point."""
    writes: bool = False
    """Whether it changes something: perform it on the `Writer`, not on the listening thread."""
    fails_on_stale: bool = False
    """Whether a stale table definition can only lead to an error, never to a wrong answer. Then the first attempt uses
    the definition in memory."""
    tells_host: bool = False
    """Whether the answer contains the host that the client used; the operation gets it as a parameter `Host`."""
    short: ShortWrite | ShortGet | None = None
    _read: ParameterReader = field(init=False, repr=False, compare=False)
    _limits: ShapeLimits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_read", reader_of(self.shape))
        object.__setattr__(self, "_limits", ShapeLimits.of(self.shape))

    def validated(self, body: bytes | dict[str, Any]) -> Parameters:
        """Returns the validated parameters of a request, without nulls and unknown members.

        Items and keys are in normal form. Tables are named as in the request, by name or by ARN.
        """
        try:
            request: Parameters = self._read(body if isinstance(body, dict) else orjson.loads(body))
            if self.precondition is not None:
                self.precondition(request)
            if not self._limits.hold(request):
                self._limits.check(request)
            if self.takes is not None:
                self.takes.check(request)
            if self.rule is not None:
                self.rule(request)
        except InvalidRequest as fault:
            raise validation_fault(str(fault)) from None
        except WrongType as fault:
            raise Refused("SerializationException", str(fault)) from None
        except orjson.JSONDecodeError:
            raise Refused("SerializationException") from None
        except RecursionError:
            # Readers are recursive. Only values that are nested far deeper than DynamoDB allows reach this limit.
            raise validation_fault(TOO_DEEP) from None
        return request
