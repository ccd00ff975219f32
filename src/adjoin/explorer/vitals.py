"""The Health view: how many there are of each class, how they are connected, and how maintenance stands.

Numbers are of a sample, unless the whole table is small enough to be read. An exact count reads the table, and is made
only if it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.explorer.handles import Handles
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import Requested
from adjoin.explorer.sample import Samples
from adjoin.model import Edge
from adjoin.requests import ChangesResponse, ItemChange, Plan, ReadChanges
from adjoin.values import item_size

_LARGEST = 10
_PAGES_OF_CHANGES = 20
"""How many pages of the change stream are read at a time; a page has a thousand changes at most."""


@dataclass
class _Written:
    """How often each partition was written, among the changes that were read so far."""

    writes: Counter[tuple[str | None, str]]
    changes: int = 0
    since: float | None = None
    until: float | None = None
    after: str | None = None
    is_all: bool = False


class Vitals:
    """What the Health view asks."""

    def __init__(self, explored: Explored, handles: Handles, samples: Samples) -> None:
        self._graph = explored.graph
        self._layout = explored.layout
        self._handles = handles
        self._samples = samples
        self._written = _Written(Counter())

    def health(self) -> dict[str, Any]:
        """Everything that a sample and the records of maintenance tell."""
        with Requested() as requests:
            sample = self._samples.read(fresh=True)
            maintenance = self._maintenance()
        counts: Counter[str] = Counter()
        degrees: dict[str, Counter[str]] = {}
        collections: dict[str, dict[str, Any]] = {}
        read = 0
        for item, entity in self._samples.entities():
            read += 1
            counts[type(entity).__name__] += 1
            text = self._layout.key_texts(item)[0]
            held = collections.setdefault(text, {"partition": text, "items": 0, "bytes": 0, "handle": None})
            held["items"] += 1
            held["bytes"] += item_size(item)
            if isinstance(entity, Edge):
                kind = self._layout.schema.edge(type(entity))
                source = self._handles.of_id(kind.source, entity.source)
                degrees.setdefault(kind.name, Counter())[source] += 1
                # The node itself may not be in the sample, but its edges say which one it is.
                held["handle"] = held["handle"] or source
            else:
                held["handle"] = self._handles.node(entity)["handle"]
        largest = sorted(collections.values(), key=lambda each: (-each["items"], each["partition"]))[:_LARGEST]
        table = sample.table
        return {
            "items": table.item_count,
            "bytes": table.size,
            "created": table.history.created or None,
            "stream": table.definition.stream,
            "sample": {
                "items": len(sample.items),
                "own": sample.own,
                "others": len(sample.items) - read,
                "whole": sample.is_whole,
            },
            "classes": [
                {
                    "name": kind.name,
                    "sampled": counts[kind.name],
                    "estimate": None if sample.factor is None else round(counts[kind.name] * sample.factor),
                }
                for kind in self._layout.schema.types
            ],
            "degrees": [{"class": name, "bins": _bins(found)} for name, found in degrees.items()],
            "largest": largest,
            "shards": [*self._shards()],
            "maintenance": maintenance,
            **requests.told(),
        }

    def _shards(self) -> Iterator[dict[str, Any]]:
        """The shards of key attributes with a number, and of indexed fields whose shards grow by load."""
        for name, number in self._layout.shard_numbers.items():
            if number.is_fixed:
                yield {"of": name, "shards": len(number.all)}
        index = self._layout.overloaded
        if index is not None and index.book.is_adaptive:
            for scope in index.scopes:
                yield {"of": scope, "shards": index.book.map(scope).shards_of()}

    def _maintenance(self) -> dict[str, Any]:
        if self._layout.why_no_own_items is not None:
            return {"problem": f"the table cannot hold records of maintenance: {self._layout.why_no_own_items}"}
        try:
            return asdict(self._graph.health())
        except AdjoinError as error:
            return {"problem": str(error)}

    def hottest(self, more: bool = False) -> dict[str, Any]:
        """The partitions of the table and its indexes that were written most, among changes that the stream keeps.

        The oldest changes are read first. With `more`, the next ones are added.
        """
        if not more:
            self._written = _Written(Counter())
        written = self._written
        with Requested() as requests:
            changes = self._graph._run(_next_changes(self._layout.table, written))
        definition = self._layout.definition
        places: list[tuple[str | None, list[str]]] = [(None, [definition.partition.name])]
        places += [(index.name, [key.name for key in index.partitions]) for index in definition.indexes]
        for change in changes:
            # The new item has the index keys that were written; of a removed item, the old one has them.
            item = change.new or change.old or change.key
            for index, names in places:
                if all(name in item for name in names):
                    written.writes[index, " + ".join(str(*item[name].values()) for name in names)] += 1
        if changes:
            written.since = changes[0].at if written.since is None else written.since
            written.until = changes[-1].at
            written.changes += len(changes)
        return {
            "changes": written.changes,
            "since": written.since,
            "until": written.until,
            "all": written.is_all,
            "partitions": [
                {"index": index, "partition": text, "writes": number}
                for (index, text), number in written.writes.most_common(_LARGEST)
            ],
            **requests.told(),
        }

    def count(self, model: str) -> dict[str, Any]:
        """The exact number of nodes or edges of a class. It reads the whole table."""
        kind = self._handles.kind(model)
        with Requested() as requests:
            number = self._graph.count(kind.model)
        return {"class": kind.name, "count": number, **requests.told()}


def _next_changes(table: str, written: _Written) -> Plan[list[ItemChange]]:
    """The next changes of the stream, as many as some pages hold."""
    found: list[ItemChange] = []
    for _ in range(_PAGES_OF_CHANGES):
        page: ChangesResponse
        (page,) = yield (ReadChanges(table, written.after),)
        found += page.changes
        written.is_all = not page.changes or page.next is None
        if written.is_all:
            break
        written.after = page.next
    return found


def _bins(degrees: Counter[str]) -> list[dict[str, int]]:
    """How many nodes have 1, 2 to 3, 4 to 7, … edges."""
    bins: Counter[int] = Counter(degree.bit_length() for degree in degrees.values())
    return [
        {"from": 2 ** (length - 1), "to": 2**length - 1, "nodes": bins[length]}
        for length in range(1, max(bins, default=0) + 1)
    ]
