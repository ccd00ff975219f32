"""The shards of a stream, how far they were read, and which may be read next: pure functions.

The changes of an item are in one shard, or in a shard and its descendants. So a shard is read only after its parent was
read to its end. If a shard was begun, its ancestors are therefore finished, and a position names only the newest shards
that were begun.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest

FINISHED = "*"
EMPTY = "-"
FROM = "@"

ReadSoFar: TypeAlias = dict[str, str]
"""How far each shard was read; the shard that was read last is at the end. `17`: up to that sequence number. `*`: to
its end. `@17`: not at all, it begins with that number. `-1700000000`: not at all, it was empty at that time."""

_EXTENT = re.compile(r"\*|[@-]?[0-9]{1,64}")
"""The service's numbers have 21 to 40 digits. The limit exists because Python refuses to parse thousands of digits."""
_CREATED = re.compile(r"shardId-0*([1-9][0-9]{12})-")


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A stream by its label (the time it was enabled), and how far its shards were read."""

    label: str
    read: ReadSoFar

    def __str__(self) -> str:
        return "/".join((self.label, *(f"{shard}={extent}" for shard, extent in self.read.items())))


def parse_position(table: str, text: str) -> StreamPosition:
    label, *shards = text.split("/")
    read = dict(shard.partition("=")[::2] for shard in shards)
    if not label or not read or not all(map(_EXTENT.fullmatch, read.values())):
        shown = text if len(text) < 200 else f"{text[:200]}…"
        raise InvalidRequest(f"{shown!r} is not a position of the change stream of {table}")
    return StreamPosition(label, read)


@dataclass(frozen=True, slots=True)
class StreamShard:
    """A shard with its first and last sequence number; `last` is None while it is open."""

    id: str
    parent: str | None = None
    first: str | None = None
    last: str | None = None

    @property
    def created(self) -> float | None:
        """When it was created, in seconds since 1970, if its id contains the time, as the service's ids do."""
        found = _CREATED.match(self.id)
        return None if found is None else int(found[1]) / 1000

    def ends_at(self, extent: str | None) -> bool:
        """Whether it was read up to its last sequence number."""
        return self.last is not None and extent is not None and extent.isdigit() and int(extent) >= int(self.last)


class Family:
    """The shards that the service keeps, from one listing, in any order."""

    def __init__(self, shards: Iterable[StreamShard]) -> None:
        self.shards: Mapping[str, StreamShard] = {shard.id: shard for shard in shards}
        self._children: dict[str, list[str]] = {}
        for shard in self.shards.values():
            if shard.parent is not None:
                self._children.setdefault(shard.parent, []).append(shard.id)

    def has_children(self, shard: str) -> bool:
        return shard in self._children

    def finished(self, read: ReadSoFar) -> set[str]:
        """The shards that were read to their end: their extent says so, or a descendant was begun."""
        found = {shard for shard, extent in read.items() if extent == FINISHED}
        for begun in read:
            shard = self.shards.get(begun)
            while shard is not None and shard.parent is not None and shard.parent not in found:
                found.add(shard.parent)
                shard = self.shards.get(shard.parent)
        return found

    def ready(self, read: ReadSoFar) -> list[StreamShard]:
        """The shards that may be read now; those that were not read for the longest time come first."""
        finished = self.finished(read)
        found = {
            shard.id: shard
            for shard in self.shards.values()
            if shard.id not in finished and (shard.parent not in self.shards or shard.parent in finished)
        }
        again = [found.pop(shard) for shard in read if shard in found]
        return [*found.values(), *again]

    def condensed(self, read: ReadSoFar) -> ReadSoFar:
        """The same without finished shards that other shards imply, or that the service no longer keeps."""
        begun = read.keys() | self.finished(read)
        kept = {shard: extent for shard, extent in read.items() if extent != FINISHED or self._is_said(shard, begun)}
        return kept or read

    def _is_said(self, finished: str, begun: set[str]) -> bool:
        """Whether a position must state that a shard is finished."""
        children = self._children.get(finished)
        return finished in self.shards if children is None else not begun.issuperset(children)

    def begin(self, read: ReadSoFar, shard: StreamShard) -> None:
        """Puts a shard at the end of a condensed position, without an extent yet, and condenses the position again."""
        read.pop(shard.id, None)
        read[shard.id] = ""
        parent = shard.parent
        if parent is not None and read.get(parent) == FINISHED and read.keys() >= set(self._children[parent]):
            del read[parent]

    def out_of_reach(self, read: ReadSoFar) -> str | None:
        """Why changes after this position are no longer kept: a shard that was begun, or the next one, is gone."""
        for shard, extent in read.items():
            if extent != FINISHED and shard not in self.shards:
                return f"{shard} was not read to its end, and is gone"
        finished = self.finished(read)
        for each in self.shards.values():
            if each.parent is None or each.parent in self.shards or each.parent in finished:
                continue
            if each.id not in read and each.id not in finished:
                return f"{each.parent} was never read, and is gone"
        return None
