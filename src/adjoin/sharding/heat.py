"""How much is written to the shards of a field: as one process counts it, and as all processes count it together.

A process counts its own writes in a `HeatCounter`, without any request. From time to time it adds its counts to a
shared record, a `Heat`, which is stored once per field. It reads the record, merges its counts and writes it on the
condition that nobody else has written it since (`version` shows that). So it sees the counts of all processes, and
asks `policy` whether the field needs more shards.

- A small program never reports: a report is due after 1,000 units, or after throttling.
- Under high load, a process does not report more often: the units between reports grow with the load, so that all
  processes together report about `REPORTS` times per window.
- Counts belong to one window of `WINDOW` seconds, and a report to the window in which it is made. Merging is
  commutative and associative, so reports may arrive in any order. If more values are reported than a record can
  hold, those with the lowest counts are left out.
- Values are counted in bounded memory, by the algorithm of Misra and Gries, whose summaries can be merged
  (Agarwal et al., "Mergeable Summaries", 2012). A count may be too low, by at most one part in
  `COUNTED` of all units, and never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, TypeVar

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidItem
from adjoin.sharding.maps import Shard

WINDOW = 10.0
"""Length of a window, over which units are added up, in seconds."""
REPORT_AFTER = 1000
"""Units after which a process reports, unless the load is high."""
REPORTS = 50
"""About how many reports per window all processes make together when the load is high."""
PAUSE = 1.0
"""The least number of seconds between two reports of a process."""
COUNTED = 1024
"""How many values a process counts separately."""
VALUES, VALUE_BYTES, SIZE_BYTES = 128, 1536, 1024
"""Limits of a record: the number of values, the total length of the values with units, and of those with sizes. They
keep the record below 4 KB, which is one read unit."""
SHARDS = 64
"""The greatest number of shards in a record."""

K = TypeVar("K")


# --- what all processes counted ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heat:
    """What was written to one field: the units of one window, and the bytes since the beginning.

    A stored record takes less than 4 KB.
    """

    window: int = 0
    """The number of the window, counted from 1970."""
    units: int = 0
    """Write units of the window, of all levels."""
    shards: Mapping[int, int] = field(default_factory=dict, hash=False)
    """Units of the window by shard of the field level; only the highest counts."""
    values: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Units of the window by value; only the highest counts."""
    size: int = 0
    """Bytes at the field level."""
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Bytes by value, for values that have shards of their own."""
    version: int = 0

    def is_over(self, now: float) -> bool:
        """Whether the window has ended, so that its counts are complete."""
        return now >= (self.window + 1) * WINDOW

    def to_plain(self) -> dict[str, Any]:
        """Returns plain data to be stored. A value may be empty text, so values are never keys of a dict."""
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
    """Returns the record with a report added. If their windows differ, the units of the earlier one are dropped."""
    # A report may be of a window that others have left already, because it waited for its write.
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
    """Returns the highest counts, highest first. Equal counts are ordered by key, so that the choice is stable."""
    return dict(sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))[:number])


def _fitting(counts: Mapping[str, int], room: int = VALUE_BYTES) -> dict[str, int]:
    """Returns the highest counts whose values fit into `room` bytes together."""
    kept = {}
    for value, count in _most(counts, VALUES).items():
        size = len(value.encode())
        if size <= room:
            kept[value] = count
            room -= size
    return kept


# --- what one process counted ------------------------------------------------------------------


class HeatCounter:
    """Counts the writes of one process to one field, in bounded memory.

    Each write is recorded once, throttled ones too, because the demand decides how many shards are needed. It is
    not safe for several threads at a time.
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
        """Records a write of an entry with this value: its units, and the bytes by which the shard grew."""
        self._units += units
        self._values[value] = self._values.get(value, 0.0) + units
        # Reducing sorts all values, so it is done once for as many new values as are kept.
        if len(self._values) > 2 * COUNTED:
            self._values = _summary(self._values)
        if is_throttled:
            self._is_throttled = True
            # A throttled write stores nothing, so the shard did not grow.
            size = 0
        if shard.value is None:
            self._shards[shard.number] = self._shards.get(shard.number, 0.0) + units
            self._size += size
        else:
            self._sizes[shard.value] = self._sizes.get(shard.value, 0) + size

    def throttled(self) -> None:
        """Records that a recent write was throttled, if it is not known which."""
        self._is_throttled = True

    def is_due(self, now: float) -> bool:
        """Whether a report is due: after many units, or after any if a write was throttled."""
        enough = self._units >= self._threshold or (self._is_throttled and self._units > 0)
        return enough and now - self._reported >= PAUSE

    def report(self, now: float) -> Heat:
        """Returns the counts since the last report, to be added to the shared record, and starts again at zero."""
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
        """Adjusts how often to report to the load of all processes, which the shared record shows."""
        if heat.is_over(now):
            # The more all processes write, the less often each reports, so the record is not a hot item itself.
            self._threshold = max(REPORT_AFTER, heat.units // REPORTS)


def _summary(counts: Mapping[str, float]) -> dict[str, float]:
    """Reduces counts to `COUNTED` values: subtracts the highest count that has no room, and drops what is left at zero.

    So no count is ever too high (Misra and Gries).
    """
    least = sorted(counts.values(), reverse=True)[COUNTED]
    return {value: count - least for value, count in counts.items() if count > least}
