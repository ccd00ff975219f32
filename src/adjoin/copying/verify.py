"""Whether two tables hold the same items, without holding them in memory or in one order.

Both tables are read once. An item counts by a digest of its normal form, and a table by the sum of its
items' digests, which no order changes. Reading items costs as much as counting them would.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from adjoin.copying.transfer import Progress
from adjoin.errors import CopyDiffers
from adjoin.items import normal_item
from adjoin.plans import Plan
from adjoin.plans.copying import describe, read_pages
from adjoin.runner import run
from adjoin.stores.interface import Store
from adjoin.values import Item, parse_number

_BITS = 128
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class _Content:
    items: int
    digest: int


def verify(
    source: Store,
    destination: Store,
    table: str,
    *,
    to: str | None = None,
    segments: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> int:
    """Raises CopyDiffers unless both tables hold the same items; answers how many there are.

    Items that have expired, or will within the hour, do not count: each store removes them in its own time.
    """
    described = run(describe(table), source)
    until = int(time.time()) + _HOUR
    read = 0

    def tell(items: int) -> None:
        nonlocal read
        read += items
        if progress is not None:
            progress(Progress("verifying", read, 2 * described.item_count))

    ours, theirs = (
        run(_content(name, segments, described.definition.ttl, until, tell), store)
        for store, name in ((source, table), (destination, to or table))
    )
    if ours != theirs:
        raise CopyDiffers(
            f"{_holding(to or table, 'destination', theirs)}, and {_holding(table, 'source', ours)}"
            f"{', which are other ones' if ours.items == theirs.items else ''};"
            " one of them was written to meanwhile, or before with --overwrite: verify again when nobody writes"
        )
    return ours.items


def _holding(table: str, side: str, content: _Content) -> str:
    return f"the table {table!r} at the {side} holds {content.items:,} item{'' if content.items == 1 else 's'}"


def _content(table: str, segments: int, ttl: str | None, until: int, tell: Callable[[int], None]) -> Plan[_Content]:
    """All that counts of a table; `tell` hears how many items were read at each step."""
    items = digest = 0
    starts: dict[int, Item | None] = dict.fromkeys(range(segments))
    while starts:
        pages = yield from read_pages(table, starts, segments)
        for page in pages.values():
            for item in page.items:
                if ttl is None or not _expires(item, ttl, until):
                    items += 1
                    digest += _digest(item)
        starts = {number: page.last for number, page in pages.items() if page.last is not None}
        tell(sum(page.count for page in pages.values()))
    return _Content(items, digest % (1 << _BITS))


def _expires(item: Item, ttl: str, until: int) -> bool:
    when = item.get(ttl, {}).get("N")
    return when is not None and parse_number(when) <= until


def _digest(item: Item) -> int:
    normal, _ = normal_item(item)
    spelled = orjson.dumps(normal, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(blake2b(spelled, digest_size=_BITS // 8).digest())
