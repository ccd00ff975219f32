"""What can never be applied, set aside for everybody to see: a record in the table, the log and the report.

    PK             SK          what it holds
    #=UNAPPLIED    =9f2c…      item (the key), reason, position (of the change), at (when the item changed)

There is one record an item, so that the same change again writes the same record again. It goes when the item
changes and can be applied. Edges that a single rule sets aside have records of their own, see `entries`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import Place, chunks, get_all, place_of
from adjoin.plans.maintenance.report import SetAside, Tally
from adjoin.requests import Delete, Get, PageResponse, Put, Query
from adjoin.units import MAX_BATCH_WRITE
from adjoin.values import AttributeValue, Item

UNAPPLIED = "UNAPPLIED"
ITEM, REASON, POSITION, AT = "item", "reason", "position", "at"
_LONGEST = 2000
"""Characters of a reason or a position that are kept; an item has room for them with any key."""
_LONGEST_KEY = 20_000
"""Characters of a key, spelled out: a key has 3,072 bytes at most, and each may need an escape."""
_FEW = 20
"""Records that are read to see whether there are any; of more, only those are asked for that matter."""
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
        attributes: dict[str, AttributeValue] = {name: {"S": _storable(text)} for name, text in texts.items() if text}
        return self.record_key(layout) | attributes | {ITEM: _shown(layout, self.key), AT: {"N": f"{self.at:.0f}"}}

    def note(self, tally: Tally, cause: BaseException | None = None) -> None:
        """Into the log and the report; with where it comes from, if the cause is none that adjoin knows."""
        where = _spelled(self.key).decode()[:_LONGEST] if self.key else "an item without a key"
        position, reason = _storable(self.position[-_LONGEST:]) or "-", _storable(self.reason)
        _log.warning("set aside: %s (change %s): %s", where, position, reason, exc_info=cause)
        tally.records.append(SetAside("", self.key, self.reason, self.position))


def record_key(layout: BoundLayout, key: Item) -> Item:
    return layout.ledgers.record_key(UNAPPLIED, hashlib.sha256(_spelled(key)).hexdigest()[:32])


def _spelled(key: Item) -> bytes:
    try:
        return orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Half a character, or a number that no item holds: a record may say anything, and is recorded for that.
        return json.dumps(key, sort_keys=True, default=repr).encode()


def _shown(layout: BoundLayout, key: Item) -> AttributeValue:
    """A key as it is, or as text where somebody made up one that no item can have."""
    names = {each.name for each in layout.definition.keys} if key else set()
    spelled = _spelled(key).decode()
    if key.keys() == names and len(spelled) <= _LONGEST_KEY and all(map(_is_text, key.values())):
        return {"M": dict(key)}
    return {"S": spelled[:_LONGEST]}


def _is_text(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"S"}
        and isinstance(value["S"], str)
        and _storable(value["S"]) == value["S"]
    )


def _storable(text: str) -> str:
    """A text without halves of characters, which JSON can spell and no store takes."""
    return text.encode("utf-8", "backslashreplace").decode()


def set_aside(
    layout: BoundLayout, unapplied: Unapplied, tally: Tally, cause: BaseException | None = None
) -> Plan[None]:
    yield (Put(layout.table, unapplied.record(layout)),)
    unapplied.note(tally, cause)


def take_back(layout: BoundLayout, keys: list[Item], tally: Tally) -> Plan[None]:
    """Removes the records of items that changed and were applied, except for what was set aside just now."""
    still = {_spelled(each.edge) for each in tally.records}
    applied = {_spelled(key): record_key(layout, key) for key in keys}
    own = {place_of(key): key for spelled, key in applied.items() if spelled not in still}
    if not own:
        return
    gone = yield from _recorded(layout, own)
    for some in chunks(gone, MAX_BATCH_WRITE):
        yield tuple(Delete(layout.table, key) for key in some)


def _recorded(layout: BoundLayout, own: dict[Place, Item]) -> Plan[list[Item]]:
    """Which of these keys of records are there. Mostly there is none at all, or few, which a short query tells."""
    partition, sort = layout.ledgers.records(UNAPPLIED)
    response: PageResponse
    (response,) = yield (Query(layout.table, partition, sort, limit=_FEW, consistent=True),)
    found: Iterable[Item | None] = response.items
    if response.last is not None:
        found = yield from get_all([Get(layout.table, key, consistent=True) for key in own.values()])
    there = {place_of(layout.key_of(item)) for item in found if item is not None}
    return [key for place, key in own.items() if place in there]
