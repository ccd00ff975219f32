"""How much is written to the shards of a field: what one process saw, and what all of them saw together.

A process counts its own writes in a `HeatCounter`, without asking anybody. Now and then it adds what it counted to
a shared record, a `Heat`, which is stored once for each field: read, merge, write under the condition that nobody
else wrote meanwhile (`version` tells). Who does so sees what everybody saw, and asks `policy` about it.

- A small program never reports: it is due after 1,000 units, or when it was throttled.
- A large one does not report more for being large: units between reports grow with the load, so that all
  processes together report about `REPORTS` times a window.
- Counts are of one window of `WINDOW` seconds; a report belongs to the window it is made in. Merging is
  commutative and associative, so reports may come in any order. Only where more values are reported than a record
  holds, the least of them are left out.
- Values are counted in bounded memory, by the algorithm of Misra and Gries, whose summaries can be merged
  (Agarwal et al., "Mergeable Summaries", 2012). A count may be too low, by at most one part in
  `COUNTED` of all units, and never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from adjoin.errors import InvalidItem
from adjoin.sharding.maps import Shard

WINDOW = 10.0
"""Seconds over which units are added up."""
REPORT_AFTER = 1000
"""Units after which a process reports, unless the load is high."""
REPORTS = 50
"""About how many reports a window all processes make together when the load is high."""
PAUSE = 1.0
"""Seconds that a process waits at least between two reports."""
COUNTED = 1024
"""How many values a process tells apart."""
VALUES, VALUE_BYTES, SIZE_BYTES = 128, 1536, 1024
"""How many values a record has at most, and how long may be together the texts of those with units, with sizes."""
SHARDS = 64
"""How many shards a record has at most."""

K = TypeVar("K")


# --- what all processes saw --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heat:
    """What was written to one field: units of one window, bytes of all time. It takes less than 4 KB to store."""

    window: int = 0
    """The number of the window, counted from 1970."""
    units: int = 0
    """Write units of the window, of all levels."""
    shards: Mapping[int, int] = field(default_factory=dict, hash=False)
    """Units of the window by shard of the field level, the highest."""
    values: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Units of the window by value, the highest."""
    size: int = 0
    """Bytes at the field level."""
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Bytes at the level of each value that has its own."""
    version: int = 0

    def is_over(self, now: float) -> bool:
        """Whether the window is, so that its counts are whole."""
        return now >= (self.window + 1) * WINDOW

    def to_plain(self) -> dict[str, Any]:
        """Texts, numbers, lists and dicts only, to be stored; no value is a key of a dict, as it may be empty."""
        return {
            "version": self.version,
            "window": self.window,
            "units": self.units,
            "shards": _columns(self.shards),
            "values": _columns(self.values),
            "size": self.size,
            "sizes": _columns(self.sizes),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Heat:
        try:
            return cls(
                int(plain["window"]),
                int(plain["units"]),
                {int(shard): int(units) for shard, units in zip(*plain["shards"], strict=True)},
                {value: int(units) for value, units in zip(*plain["values"], strict=True)},
                int(plain["size"]),
                {value: int(size) for value, size in zip(*plain["sizes"], strict=True)},
                int(plain["version"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidItem(
                f"a stored heat record cannot be read: {error}; it was written by another program"
            ) from None


def _columns(counts: Mapping[K, int]) -> list[list[Any]]:
    return [list(counts), list(counts.values())]


def added(heat: Heat, report: Heat) -> Heat:
    """The record with one report more; of an earlier window than the record's, only its bytes count."""
    newest, window = max(heat, report, key=lambda each: each.window), max(heat.window, report.window)
    current = [each for each in (heat, report) if each.window == window]
    return replace(
        newest,
        units=sum(each.units for each in current),
        shards=_most(_sum(each.shards for each in current), SHARDS),
        values=_fitting(_sum(each.values for each in current)),
        size=heat.size + report.size,
        sizes=_fitting(_sum([heat.sizes, report.sizes]), SIZE_BYTES),
        version=heat.version + 1,
    )


def _sum(counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    total: dict[K, int] = {}
    for each in counts:
        for key, count in each.items():
            total[key] = total.get(key, 0) + count
    return total


def _most(counts: Mapping[K, int], number: int) -> dict[K, int]:
    """The highest counts, from the highest on; of equal ones always the same."""
    return dict(sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))[:number])


def _fitting(counts: Mapping[str, int], room: int = VALUE_BYTES) -> dict[str, int]:
    """The highest counts whose texts fit together."""
    kept = {}
    for value, count in _most(counts, VALUES).items():
        size = len(value.encode())
        if size <= room:
            kept[value] = count
            room -= size
    return kept


# --- what one process saw ----------------------------------------------------------------------


class HeatCounter:
    """Counts the writes of one process to one field, in bounded memory.

    Each write is recorded once, refused ones too: what counts is what is asked for. Not safe for several
    threads at once.
    """

    def __init__(self) -> None:
        self._threshold = REPORT_AFTER
        self._reported = float("-inf")
        self._clear()

    def _clear(self) -> None:
        self._units = 0.0
        self._is_throttled = False
        self._shards: dict[int, float] = {}
        self._values: dict[str, float] = {}
        self._size = 0
        self._sizes: dict[str, int] = {}

    def record(self, shard: Shard, value: str, units: float, size: int = 0, *, is_throttled: bool = False) -> None:
        """A write of an entry with this value: its units, and by how many bytes it made the shard larger."""
        self._units += units
        self._values[value] = self._values.get(value, 0.0) + units
        if len(self._values) > 2 * COUNTED:
            self._values = _summary(self._values)
        if is_throttled:
            self._is_throttled = True
            size = 0
        if shard.value is None:
            self._shards[shard.number] = self._shards.get(shard.number, 0.0) + units
            self._size += size
        else:
            self._sizes[shard.value] = self._sizes.get(shard.value, 0) + size

    def throttled(self) -> None:
        """Some write of late was refused, whichever it was."""
        self._is_throttled = True

    def is_due(self, now: float) -> bool:
        """Whether there is enough to report: many units, or any when something was throttled."""
        enough = self._units >= self._threshold or (self._is_throttled and self._units > 0)
        return enough and now - self._reported >= PAUSE

    def report(self, now: float) -> Heat:
        """What was counted since the last report, to be added to the shared record; counting begins anew."""
        report = Heat(
            int(now // WINDOW),
            round(self._units),
            _most({shard: round(units) for shard, units in self._shards.items()}, SHARDS),
            _fitting({value: round(units) for value, units in self._values.items() if round(units)}),
            self._size,
            _fitting({value: size for value, size in self._sizes.items() if size}, SIZE_BYTES),
        )
        self._reported = now
        self._clear()
        return report

    def heard(self, heat: Heat, now: float) -> None:
        """Learns from the shared record how much all processes write, and so how often to report."""
        if heat.is_over(now):
            self._threshold = max(REPORT_AFTER, heat.units // REPORTS)


def _summary(counts: Mapping[str, float]) -> dict[str, float]:
    """The counts above that of the first that has no room, less that one's: no value is counted for another."""
    least = sorted(counts.values(), reverse=True)[COUNTED]
    return {value: count - least for value, count in counts.items() if count > least}
