"""What the requests of a call were: their keys, indexes, units and prices, and how boto3 would make them.

`Requested` watches the requests of a block as a meter does. The boto3 call is the JSON that the DynamoDB store would
send; without the extra `dynamodb`, it is left out.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from adjoin.cost import Explanation, dollars, estimate
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Consumed,
    Get,
    PageResponse,
    Put,
    Query,
    Request,
    Response,
    Scan,
    TransactGet,
    TransactWrite,
)
from adjoin.tables import TableDefinition
from adjoin.values import AttributeValue, Item
from adjoin.watching import WatchedRound, Watcher

_MOST_SHOWN = 100
"""The greatest number of requests that are described one by one; of further ones, the page gets the sums."""
_WIDTH = 60
"""The length of a line of a call, for a column of the page."""
_UNSAID = ("ReturnConsumedCapacity", "ReturnValuesOnConditionCheckFailure")
"""Parameters that every request of adjoin has, and that say nothing about the query."""


class Requested(Watcher):
    """Records the requests of a block, with what each consumed."""

    def __init__(self) -> None:
        self._rounds: list[list[tuple[Request, Sequence[Consumed], int | None]]] = []

    def after(self, round: WatchedRound) -> None:
        answered = round.responses or (None,) * len(round.requests)
        self._rounds.append(
            [
                (request, () if response is None else response.consumed, _number_in(response))
                for request, response in zip(round.requests, answered, strict=True)
            ]
        )

    def told(self) -> dict[str, Any]:
        """The sums of all requests, for the line that every answer has."""
        consumed = [row for requests in self._rounds for _, rows, _ in requests for row in rows]
        return {"cost": _cost(sum(map(len, self._rounds)), len(self._rounds), consumed)}

    def one_by_one(self) -> list[dict[str, Any]]:
        """Each request with its round, its keys and its units, the first hundred of them."""
        found = [
            _described(number, request, consumed, items)
            for number, requests in enumerate(self._rounds, 1)
            for request, consumed, items in requests
        ]
        return found[:_MOST_SHOWN]


def explained(explanation: Explanation, definition: TableDefinition) -> dict[str, Any]:
    """The same of requests that were not made: the least that they consume."""
    requests = [
        _described(number, request, estimate(request, definition), None)
        for number, requests in enumerate(explanation.rounds, 1)
        for request in requests
    ]
    count = len(explanation.requests)
    return {
        "cost": _cost(count, len(explanation.rounds), explanation.consumed),
        "requests": requests[:_MOST_SHOWN],
        "notes": [
            str(each)
            for each in (explanation.whole_table, explanation.walk, *explanation.fan_outs, *explanation.countings)
            if each is not None
        ],
    }


def _number_in(response: Response | None) -> int | None:
    return response.count if isinstance(response, PageResponse) else None


def _cost(requests: int, rounds: int, consumed: Iterable[Consumed]) -> dict[str, Any]:
    rows = [*consumed]
    read, written = sum(row.read for row in rows), sum(row.write for row in rows)
    return {"requests": requests, "rounds": rounds, "rcu": read, "wcu": written, "dollars": dollars(read, written)}


# --- one request -------------------------------------------------------------------------------


def _described(number: int, request: Request, consumed: Sequence[Consumed], items: int | None) -> dict[str, Any]:
    read, written = sum(row.read for row in consumed), sum(row.write for row in consumed)
    return {
        "round": number,
        "operation": type(request).__name__,
        "index": getattr(request, "index", None),
        "key": described(request),
        "filtered": getattr(request, "filter", None) is not None,
        "items": items,
        "rcu": read,
        "wcu": written,
        "dollars": dollars(read, written),
        "boto3": boto3_call(request),
    }


def described(request: Request) -> str:
    """The condition on keys as people write it."""
    match request:
        case Query():
            terms = [f"{name} = {_value(value)}" for name, value in (request.partition, *request.equal)]
            if (sort := request.sort) is not None:
                given = [_value(each) for each in sort.operands]
                match sort.operator:
                    case "between":
                        terms.append(f"{sort.attribute} between {given[0]} and {given[1]}")
                    case "begins_with":
                        terms.append(f"begins_with({sort.attribute}, {given[0]})")
                    case operator:
                        terms.append(f"{sort.attribute} {operator} {given[0]}")
            return " and ".join(terms)
        case Scan():
            number, total = request.segment or (0, 1)
            return "all keys" if total == 1 else f"segment {number + 1} of {total}"
        case BatchGet() | TransactGet():
            first = _key(request.gets[0].key) if request.gets else ""
            return first if len(request.gets) == 1 else f"{len(request.gets)} keys: {first}, …"
        case BatchWrite() | TransactWrite():
            return f"{len(request.writes)} writes"
        case Get():
            return _key(request.key)
        case Put():
            # A layout writes the partition key first.
            name, value = next(iter(request.item.items()))
            return f"{name} = {_value(value)}"
    key: Item | None = getattr(request, "key", None)
    return "" if key is None else _key(key)


def _key(key: Item) -> str:
    return " and ".join(f"{name} = {_value(value)}" for name, value in key.items())


def _value(value: AttributeValue) -> str:
    ((tag, text),) = value.items()
    return text if tag == "N" else json.dumps(text, ensure_ascii=False)


# --- boto3 -------------------------------------------------------------------------------------


def boto3_call(request: Request) -> str | None:
    """The same request with boto3; None if it has no such call, or without the extra `dynamodb`."""
    try:
        operations = import_module("adjoin.stores.dynamodb.protocol").OPERATIONS
    except ModuleNotFoundError:
        return None
    operation = operations.get(type(request))
    if operation is None:
        return None
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation.target.partition(".")[2]).lower()
    payload = {key: _binary(value) for key, value in operation.payload(request).items() if key not in _UNSAID}
    arguments = "".join(f"    {key}={_literal(value, 4)},\n" for key, value in payload.items())
    return f"client.{name}(\n{arguments})"


def _binary(value: Any) -> Any:
    """A value with bytes where the protocol has Base64, because boto3 encodes bytes itself."""
    match value:
        case {"B": str(text), **rest} if not rest:
            return {"B": b64decode(text)}
        case {"BS": [*texts], **rest} if not rest:
            return {"BS": [b64decode(text) for text in texts]}
        case dict():
            return {name: _binary(each) for name, each in value.items()}
        case list():
            return [_binary(each) for each in value]
    return value


def _literal(value: Any, indent: int) -> str:
    """A value as Python source, on several lines if it is long."""
    short = repr(value)
    if len(short) + indent <= _WIDTH or not isinstance(value, dict | list) or not value:
        return short
    inner, outer = " " * (indent + 4), " " * indent
    if isinstance(value, dict):
        rows = [f"{inner}{key!r}: {_literal(each, indent + 4)},\n" for key, each in value.items()]
        return "{\n" + "".join(rows) + outer + "}"
    return "[\n" + "".join(f"{inner}{_literal(each, indent + 4)},\n" for each in value) + outer + "]"
