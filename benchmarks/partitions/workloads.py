"""Requests to a table: generated from parameters, or recorded from a program.

A generated workload is a rate of writes, each with one indexed value; values are Zipf-distributed. A recorded one is a
file with one JSON object per line:

    {"at": 0.25, "key": "PERSON#1", "writes": 1, "size": 180, "entries": [
        {"index": "GSI1", "partition": "SKILL_OF#skill#0", "sort": "python#PERSON#1", "writes": 1}]}
    {"at": 0.31, "index": "GSI1", "partition": "SKILL_OF#skill#0", "sort": "python", "reads": 0.5}

`at` is seconds from the beginning, in ascending order. `key` is the partition key in the table. Units default to 1 for
a write and 0.5 for a read. Instead of `partition` and `sort`, an entry may have `field`, `value` and `id`, and a read
`field` and `value`: the tried sharding then decides where they are.

`lines_of` makes such lines from requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp
from random import Random
from typing import Any

from adjoin.cost import estimate
from adjoin.errors import InvalidValue
from adjoin.requests import BatchGet, BatchWrite, Delete, Get, Put, Query, Request, TransactGet, TransactWrite, Update
from adjoin.tables import TableDefinition
from adjoin.values import Item, item_size

_POISSON_BY_HAND = 30.0


@dataclass(frozen=True)
class Zipf:
    """A rate of writes and finds per second. The k-th value is requested 1/k**skew times as often as the first."""

    writes: float = 50_000.0
    reads: float = 0.0
    seconds: int = 1800
    values: int = 1000
    skew: float = 1.0
    ramp: int = 60
    """Seconds until the full rate is reached."""
    size: int = 200
    """The size of an entry, and of the item, in bytes."""
    ids_grow: bool = False
    """Whether each id sorts after all earlier ones, as ids that begin with the time do."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("writes", 0), ("reads", 0), ("seconds", 1), ("values", 1), ("skew", 0), ("ramp", 0)):
            if getattr(self, name) < least:
                raise InvalidValue(f"{name} must be at least {least}, got {getattr(self, name)}")

    @cached_property
    def names(self) -> list[str]:
        """The values. How frequent a value is does not depend on its order."""
        names = [f"skill-{number:05}" for number in range(self.values)]
        Random(self.seed).shuffle(names)
        return names

    @cached_property
    def weights(self) -> list[float]:
        weights = [1 / rank**self.skew for rank in range(1, self.values + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    def level(self, second: int) -> float:
        """The share of the full rate that is reached in this second."""
        return 1.0 if second >= self.ramp else (second + 1) / (self.ramp + 1)


def poisson(random: Random, mean: float) -> float:
    """A Poisson-distributed number with this mean."""
    if mean > _POISSON_BY_HAND:
        return max(0.0, float(round(random.gauss(mean, mean**0.5))))
    threshold, count, product = exp(-mean), 0, random.random()
    while product > threshold:
        count += 1
        product *= random.random()
    return float(count)


# --- recorded ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A key of an index (or of the table, if `index` is None), or the values from which a sharding makes one."""

    index: str | None
    partition: str | None
    sort: str | None
    field: str | None
    value: str
    id: str
    units: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request of a log: a write if it has a key, else a read."""

    at: float
    key: str | None
    units: float
    size: float
    places: tuple[Place, ...]


def read_log(lines: Iterable[str]) -> Iterator[Recorded]:
    last = 0.0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            request = _request(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidValue(
                f"line {number} of the log cannot be read: {type(error).__name__}: {error}; "
                "docs/sharding.md describes the format"
            ) from None
        if request.at < last:
            raise InvalidValue(f'line {number} of the log is earlier than the previous line; sort the log by "at"')
        last = request.at
        yield request


def _request(plain: Mapping[str, Any]) -> Recorded:
    at = float(plain["at"])
    if "reads" in plain or "key" not in plain:
        return Recorded(at, None, 0.0, 0.0, (_place(plain, float(plain.get("reads", 0.5))),))
    places = tuple(_place(each, float(each.get("writes", 1))) for each in plain.get("entries", ()))
    return Recorded(at, str(plain["key"]), float(plain.get("writes", 1)), float(plain.get("size", 0)), places)


def _place(plain: Mapping[str, Any], units: float) -> Place:
    field, partition = plain.get("field"), plain.get("partition")
    if (field is None) == (partition is None):
        raise ValueError('it has either a "partition" or a "field"')
    value = str(plain["value"]) if field is not None else ""
    return Place(plain.get("index"), partition, plain.get("sort"), field, value, str(plain.get("id", "")), units)


def lines_of(request: Request, definition: TableDefinition, at: float) -> list[dict[str, Any]]:
    """The log lines for one request, with the units that `explain` estimates. Requests of other kinds have none."""
    match request:
        case Put():
            units = estimate(request, definition)
            line = {
                "at": at,
                "key": _text(request.item, definition.partition.name),
                "writes": units[0].write,
                "size": item_size(request.item),
                "entries": [
                    {**_keys(request.item, definition, each.index), "index": each.index, "writes": each.write}
                    for each in units[1:]
                ],
            }
            return [line]
        case Update() | Delete():
            key = _text(request.key, definition.partition.name)
            return [{"at": at, "key": key, "writes": estimate(request, definition)[0].write}]
        case Get():
            (unit,) = estimate(request, definition)
            return [{"at": at, "partition": _text(request.key, definition.partition.name), "reads": unit.read}]
        case Query():
            (unit,) = estimate(request, definition)
            partition = str(next(iter(request.partition[1].values())))
            line = {"at": at, "index": request.index, "partition": partition, "reads": unit.read}
            if request.sort is not None:
                line["sort"] = str(next(iter(request.sort.operands[0].values())))
            return [line]
        case BatchGet() | TransactGet():
            return [line for get in request.gets for line in lines_of(get, definition, at)]
        case BatchWrite():
            return [line for write in request.writes for line in lines_of(write, definition, at)]
        case TransactWrite():
            parts = [each for each in request.writes if isinstance(each, Put | Update | Delete)]
            lines = [line for part in parts for line in lines_of(part, definition, at)]
            return [{**line, "writes": line["writes"] * 2} for line in lines]
    return []


def _keys(item: Item, definition: TableDefinition, name: str | None) -> dict[str, str]:
    (index,) = (each for each in definition.indexes if each.name == name)
    texts = [_text(item, key.name) for key in index.keys]
    return dict(zip(("partition", "sort"), texts, strict=False))


def _text(item: Item, name: str) -> str:
    return str(next(iter(item[name].values())))
