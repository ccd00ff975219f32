"""What an operation is: everything that is asked of its parameters, which request they mean, and what it answers.

And what all operations need: how a request is refused, and what a table is called.

A request as it came is validated as far as it can be known without the table. In the service's order, so that a
request with two faults reports the same one:

1. types, the first wrong one of the request (`checking`);
2. which table it is about, where that decides who may ask (`precondition`);
3. limits, all that are broken together (`checking`);
4. which parameters go together (`takes`);
5. rules, the first that is broken (`rule`).

What is left is what the request's expressions say (`grammar.Expressions`, and `grammar.key_conditions` for the older
KeyConditions), and then what needs the table: `request` looks at both.

A fault that is found here is a `Refused`. One that `request`, `answer` or the store finds is a `Refused` too, or
another `AdjoinError`, to which `refusals` gives the service's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import orjson

from adjoin.errors import AdjoinError, InvalidRequest
from adjoin.requests import BatchWrite, Delete, Put, Request
from adjoin.server.grammar.attributes import TOO_DEEP
from adjoin.server.operations.checking import ParameterReader, ShapeLimits, WrongType, reader_of
from adjoin.server.operations.shapes import Structure
from adjoin.tables import TableDefinition

Parameters: TypeAlias = dict[str, Any]
AnswerBody: TypeAlias = dict[str, Any]

ParameterRule: TypeAlias = Callable[[Parameters], None]
"""Takes a request whose types are right, and may bring values in it to normal form.

What it finds wrong is `InvalidRequest` with the service's own words, or `Refused`."""


class Refused(AdjoinError):
    """A request is not performed; `code` is the service's name for why, `members` what its answer says besides.

    `message` is None where the service answers with a code and no word.
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
    """The name of the table that a name or an ARN stands for; what is neither stands for itself."""
    found = _TABLE_ARN.fullmatch(reference)
    return found[1] if found else reference


def table_arn(name: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def index_arn(table: str, index: str) -> str:
    return f"{table_arn(table)}/index/{index}"


def stream_arn(table: str, label: str) -> str:
    return f"{table_arn(table)}/stream/{label}"


class TableLookup(Protocol):
    """What operations need to know of tables before they can ask the store."""

    def definition(self, name: str) -> TableDefinition:
        """The table of that name; `TableNotFound` if there is none."""
        ...


# --- operations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShortWrite:
    """The short way of a write: a frequent request in its plainest form, past everything else that may be asked.

    `read` takes a request as it came, any JSON, and gives what it asks of the store. It gives None for a request that
    has anything more to it, or that may be wrong: the long way then says what, in the service's order. `answer` is the
    answer to each request that it reads, once it is performed.
    """

    read: Callable[[Any], Put | Delete | BatchWrite | None]
    answer: bytes


@dataclass(frozen=True, slots=True)
class ShortGet:
    """The short way of a get: `read` gives the table and the key, which may still be anything; None as for a write.

    The store has the item as text, which is answered as it is.
    """

    read: Callable[[Any], tuple[Any, Any] | None]


@dataclass(frozen=True, slots=True)
class ExpressionParameters:
    """The expressions that an operation takes and the older parameters that they replaced, in the service's order.

    They do not go together in one request.
    """

    expressions: tuple[str, ...]
    legacy: tuple[str, ...] = ()
    _all: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = (*self.expressions, *self.legacy, "ExpressionAttributeNames", "ExpressionAttributeValues")
        object.__setattr__(self, "_all", frozenset(names))

    def check(self, request: Mapping[str, Any]) -> None:
        """Refuse parameters that cannot be in one request; the first check that looks at more than one of them."""
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
    # KeyConditions goes with a FilterExpression, as long as there is no KeyConditionExpression too.
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
    """One operation of the service, whole; `name` is what clients call it, `shape` what it takes.

    `request` says what validated parameters ask of the store, and `answer` makes the answer of the store's response.
    Both may look at tables. An answer of None has no content at all.
    """

    name: str
    shape: Structure
    request: Callable[[Parameters, TableLookup], Request]
    answer: Callable[[Parameters, Any, TableLookup], AnswerBody | None]
    takes: ExpressionParameters | None = None
    precondition: ParameterRule | None = None
    """A rule that is looked at before the limits."""
    rule: ParameterRule | None = None
    """Rules that need neither the request's expressions nor its table. What older parameters say is read here too,
    where the service would look at it."""
    writes: bool = False
    """Whether it changes something: perform it on the `Writer`, not on the listening thread."""
    fails_on_stale: bool = False
    """Whether a table which is not as it is taken to be can only lead to an error, so that what is known of it suffices
    for a first try."""
    tells_host: bool = False
    """Whether its answer names the host that the client asked, which it gets as a parameter `Host`."""
    short: ShortWrite | ShortGet | None = None
    _read: ParameterReader = field(init=False, repr=False, compare=False)
    _limits: ShapeLimits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_read", reader_of(self.shape))
        object.__setattr__(self, "_limits", ShapeLimits.of(self.shape))

    def validated(self, body: bytes | dict[str, Any]) -> Parameters:
        """The parameters of a request that is right so far, without nulls and members that nobody knows.

        Items and keys are in normal form. A table stands as the request names it, by its name or its ARN.
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
            # Readers follow values as deep as these go, which is much deeper than anything can be stored.
            raise validation_fault(TOO_DEEP) from None
        return request
