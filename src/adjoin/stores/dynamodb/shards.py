"""The shards of a stream, how far they were read, and which may be read next: pure functions.

An item's changes lie in one shard, or in a shard and its descendants, so a shard is read only when its
parent was read to its end. That a shard was begun therefore says that its ancestors are finished, and a
position names the newest shards that were begun, not all that are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from adjoin.errors import InvalidRequest

FINISHED = "*"
EMPTY = "-"
FROM = "@"

Read: TypeAlias = dict[str, str]
"""How far shards were read, the one that was read last at the end: up to a number (`17`), or to its end
(`*`), or not at all: from a number on (`@17`), or there was nothing in it at a time (`-1700000000`)."""

_EXTENT = re.compile(r"\*|[@-]?[0-9]{1,64}")
"""The service's numbers have 21 to 40 digits; Python refuses to read one of thousands."""
_CREATED = re.compile(r"shardId-0*([1-9][0-9]{12})-")


@dataclass(frozen=True, slots=True)
class Position:
    """A stream by its label (the time it was enabled), and how far its shards were read."""

    label: str
    read: Read

    def __str__(self) -> str:
        return "/".join((self.label, *(f"{shard}={extent}" for shard, extent in self.read.items())))


def parse_position(table: str, text: str) -> Position:
    label, *shards = text.split("/")
    read = dict(shard.partition("=")[::2] for shard in shards)
    if not label or not read or not all(map(_EXTENT.fullmatch, read.values())):
        shown = text if len(text) < 200 else f"{text[:200]}…"
        raise InvalidRequest(f"{shown!r} is not a position of the change stream of {table}")
    return Position(label, read)


@dataclass(frozen=True, slots=True)
class Shard:
    """`first` and `last` bound its numbers; `last` is None while it is open."""

    id: str
    parent: str | None = None
    first: str | None = None
    last: str | None = None

    @property
    def created(self) -> float | None:
        """When it was made, in seconds since 1970, if its id says so, as the service's do."""
        found = _CREATED.match(self.id)
        return None if found is None else int(found[1]) / 1000

    def ends_at(self, extent: str | None) -> bool:
        """Whether nothing can follow what was read of it."""
        return self.last is not None and extent is not None and extent.isdigit() and int(extent) >= int(self.last)


class Family:
    """The shards that are kept, as one listing gave them, in whatever order."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self.shards: Mapping[str, Shard] = {shard.id: shard for shard in shards}
        self._children: dict[str, list[str]] = {}
        for shard in self.shards.values():
            if shard.parent is not None:
                self._children.setdefault(shard.parent, []).append(shard.id)

    def has_children(self, shard: str) -> bool:
        return shard in self._children

    def finished(self, read: Read) -> set[str]:
        """The shards that were read to their end: they are said to be, or a descendant was begun."""
        found = {shard for shard, extent in read.items() if extent == FINISHED}
        for begun in read:
            shard = self.shards.get(begun)
            while shard is not None and shard.parent is not None and shard.parent not in found:
                found.add(shard.parent)
                shard = self.shards.get(shard.parent)
        return found

    def ready(self, read: Read) -> list[Shard]:
        """The shards that may be read now, those first that were not read for longest."""
        finished = self.finished(read)
        found = {
            shard.id: shard
            for shard in self.shards.values()
            if shard.id not in finished and (shard.parent not in self.shards or shard.parent in finished)
        }
        again = [found.pop(shard) for shard in read if shard in found]
        return [*found.values(), *again]

    def condensed(self, read: Read) -> Read:
        """The same without finished shards that others imply, or that are gone with all that followed them."""
        begun = read.keys() | self.finished(read)
        kept = {shard: extent for shard, extent in read.items() if extent != FINISHED or self._is_said(shard, begun)}
        return kept or read

    def _is_said(self, finished: str, begun: set[str]) -> bool:
        """Whether a position must say that a shard is finished."""
        children = self._children.get(finished)
        return finished in self.shards if children is None else not begun.issuperset(children)

    def begin(self, read: Read, shard: Shard) -> None:
        """Puts a shard at the end of what is condensed, to be given an extent, and condenses it again."""
        read.pop(shard.id, None)
        read[shard.id] = ""
        parent = shard.parent
        if parent is not None and read.get(parent) == FINISHED and read.keys() >= set(self._children[parent]):
            del read[parent]

    def out_of_reach(self, read: Read) -> str | None:
        """Why something behind what was read is not kept any more: what was begun, or what should come next."""
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
