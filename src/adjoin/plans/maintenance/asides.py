"""What can never be applied, set aside for everybody to see: a record in the table, the log and the report.

    PK             SK          what it holds
    #=UNAPPLIED    =9f2c…      item (the key), reason, position (of the change), at (when the item changed)

There is one record an item, so that the same change again writes the same record again. It goes when the item
changes and can be applied. Edges that a single rule sets aside have records of their own, see `entries`.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace

import orjson

from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import chunks
from adjoin.plans.maintenance.report import SetAside, Tally
from adjoin.requests import Delete, PageResponse, Put, Query
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import AttributeValue, Item

UNAPPLIED = "UNAPPLIED"
ITEM, REASON, POSITION, AT = "item", "reason", "position", "at"
_LONGEST = 2000
"""Characters of a reason or a position that are kept; an item has room for them with any key."""
_log = logging.getLogger("adjoin.maintain")


@dataclass(frozen=True)
class Unapplied:
    """A change that cannot be applied, or an item that cannot be brought up to date."""

    key: Item
    """The key of the item; empty where a change does not even tell that."""
    reason: str
    position: str = ""
    at: float = 0.0

    def record_key(self, layout: BoundLayout) -> Item:
        return record_key(layout, self.key or {POSITION: {"S": self.position}})

    def record(self, layout: BoundLayout) -> Item:
        texts = {REASON: self.reason[:_LONGEST], POSITION: self.position[-_LONGEST:]}
        attributes: dict[str, AttributeValue] = {name: {"S": text} for name, text in texts.items() if text}
        return self.record_key(layout) | attributes | {ITEM: _shown(self.key), AT: {"N": f"{self.at:.0f}"}}

    def note(self, tally: Tally, cause: BaseException | None = None) -> None:
        """Into the log and the report; with where it comes from, if the cause is none that adjoin knows."""
        where = _spelled(self.key).decode() if self.key else "an item without a key"
        _log.warning("set aside: %s (change %s): %s", where, self.position or "-", self.reason, exc_info=cause)
        tally.records.append(SetAside("", self.key, self.reason, self.position))


def record_key(layout: BoundLayout, key: Item) -> Item:
    return layout.ledgers.record_key(UNAPPLIED, hashlib.sha256(_spelled(key)).hexdigest()[:32])


def _spelled(key: Item) -> bytes:
    return orjson.dumps(key, option=orjson.OPT_SORT_KEYS)


def _shown(key: Item) -> AttributeValue:
    """A key as it is, or as text where somebody made up values that cannot be stored."""
    if all(isinstance(value, dict) and isinstance(value.get("S"), str) for value in key.values()):
        return {"M": dict(key)}
    return {"S": _spelled(key).decode()[:_LONGEST]}


def set_aside(
    layout: BoundLayout, unapplied: Unapplied, tally: Tally, cause: BaseException | None = None
) -> Plan[None]:
    yield (Put(layout.table, unapplied.record(layout)),)
    unapplied.note(tally, cause)


def take_back(layout: BoundLayout, keys: list[Item], tally: Tally) -> Plan[None]:
    """Removes the records of items that changed and were applied, except for what was set aside just now."""
    if not keys:
        return
    still = [each.edge for each in tally.records]
    applied = [record_key(layout, key) for key in keys if key not in still]
    partition, sort = layout.ledgers.records(UNAPPLIED)
    query: Query | None = Query(layout.table, partition, sort)
    gone: list[Item] = []
    while query is not None:
        response: PageResponse
        (response,) = yield (query,)
        found = [layout.key_of(item) for item in response.items]
        gone += [key for key in found if key in applied]
        query = None if response.last is None else replace(query, start=response.last)
    for some in chunks(gone, MAX_BATCH_WRITE):
        yield tuple(Delete(layout.table, key) for key in some)
