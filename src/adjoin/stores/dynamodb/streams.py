"""The change stream of a table, read from DynamoDB Streams shard by shard.

A position says how far each shard was read, see `shards`; it can be resumed anywhere by anybody. Changes
of one item come in their order. Changes of different items have no order between them. Whatever follows
a position is delivered, or `ChangesTrimmed` says that it cannot be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from adjoin.errors import ChangesTrimmed, InvalidRequest, ServiceFailed, TableNotFound
from adjoin.requests import ChangesResponse, ListStreams, ReadChanges, StreamsResponse, TableStream
from adjoin.stores.dynamodb.answers import Misshapen, Payload, check_is
from adjoin.stores.dynamodb.client import Client, Reading, as_it_is, pages, together
from adjoin.stores.dynamodb.faults import IteratorExpired
from adjoin.stores.dynamodb.lifecycle import table_description
from adjoin.stores.dynamodb.shards import EMPTY, FINISHED, FROM, Family, Position, Read, Shard, parse_position
from adjoin.stores.records import IMAGES, change_in, changed_at, sequence_number
from adjoin.units import MAX_CHANGES

_LISTING_LIFE, _LISTED_AT_ONCE = 10.0, 100
"""Seconds for which a listing of so many shards will do: that one was closed is told by its records anyway,
and the service lists ten times a second at most."""
_ITERATOR_LIFE = 14 * 60.0
"""Seconds; the service lets one expire after 15 minutes."""
_SURELY_KEPT = 23 * 3600.0
"""Seconds; the service keeps records for 24 hours, and its clock may differ from ours."""
_SURELY_SEEN = _SURELY_KEPT / 2
"""Seconds; what is older than that in an open shard is found by looking as often as we do. The service
closes a shard after some hours."""
_RENEWALS = 3

_FIRST_WAVE, _WIDEST_WAVE = 4, 64
"""So many shards are asked at once, and each wave twice as many: what is full soon ends a reading, and what
is empty does not hold it up."""

_LOOKS, _STRETCH, _LOOKS_FOR_AN_END = 12, 20.0, 10_000
"""An open shard may answer with nothing although more follows, since an answer covers a stretch of time. It
counts as read after so many empty answers, or one for each so many seconds that nobody looked. A closed
shard has an end, and is read up to it."""

_POSITIONS_AHEAD = 32


@dataclass(frozen=True, slots=True)
class _View:
    """A table's stream and its shards, as they were seen at a time."""

    arn: str
    label: str
    key_names: tuple[str, ...]
    family: Family = Family(())
    created: float | None = None
    seen: float = 0.0

    def with_keys(self, answer: Payload) -> Payload:
        """An answer of records, if each tells the key of its item."""
        for number, record in enumerate(answer.get("Records") or ()):
            images, at = record["dynamodb"], f"Records[{number}].dynamodb"
            if not images["Keys"].keys() >= set(self.key_names):
                raise Misshapen(f"{at}.Keys", f"is not {' and '.join(self.key_names)}")
            for name in ("NewImage", "OldImage"):
                if images.get(name):
                    check_is(images["Keys"], images[name], f"{at}.{name}")
        return answer

    def is_recent(self, now: float) -> bool:
        life = _LISTING_LIFE * max(1.0, len(self.family.shards) / _LISTED_AT_ONCE)
        return 0 <= now - self.seen < life


@dataclass(frozen=True, slots=True)
class _Place:
    """An iterator behind an extent of a shard, since when it is there, and up to what time it has looked."""

    extent: str | None
    iterator: str
    since: float
    looked: float


@dataclass(frozen=True, slots=True)
class _Page:
    """The records that follow in a shard, and whether they end it."""

    shard: Shard
    records: Sequence[Payload]
    is_end: bool


class Streams:
    """Reads changes for a store; may be shared by threads and event loops.

    What it remembers saves requests. How far a reader looked without finding anything saves more: where
    nothing changes for a day, the shard that the reader's position names is gone, and only who looked
    knows that nothing was in it.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._views: dict[str, _View] = {}
        self._places: dict[tuple[str, str], _Place] = {}
        self._ahead: dict[tuple[str, str], Read] = {}

    def forget(self) -> None:
        """To be called when tables are made or dropped."""
        self._views.clear()
        self._places.clear()

    async def read(self, client: Client, request: ReadChanges) -> ChangesResponse:
        if not 1 <= request.limit <= MAX_CHANGES:
            raise InvalidRequest(f"a limit of {request.limit} changes is not within 1 to {MAX_CHANGES}")
        position = None if request.after is None else parse_position(request.table, request.after)
        if position is not None and (view := self._recent(request, position)) is not None:
            try:
                return await self._read(client, request, view, position)
            except (ChangesTrimmed, TableNotFound):
                # Perhaps only the view is too old.
                pass
        view = await self._look(client, request.table)
        if position is not None and position.label != view.label:
            raise _trimmed(request, "its stream was replaced by another", is_replaced=True)
        return await self._read(client, request, view, position)

    async def _read(
        self, client: Client, request: ReadChanges, view: _View, position: Position | None
    ) -> ChangesResponse:
        read = self._begun(view, request, position)
        while True:
            reason = None if position is None else view.family.out_of_reach(read)
            if reason is not None:
                raise _trimmed(request, reason)
            pages = await self._pages(client, request, view, read)
            ended = [page.shard.id for page in pages if page.is_end and not page.records]
            read |= dict.fromkeys(ended, FINISHED)
            if any(page.records for page in pages):
                if position is None:
                    read |= await self._beginnings(client, request, view, read, pages)
                return _delivered(view, read | self._empty(view, read, pages), pages)
            if not ended:
                break
            if not all(map(view.family.has_children, ended)):
                view = await self._listed(client, request.table, view)
        if request.after is None:
            return ChangesResponse([], None)
        read = view.family.condensed(read | self._empty(view, read, pages))
        self._remember(view, request.after, read)
        return ChangesResponse([], str(Position(view.label, read)))

    # --- what is remembered ----------------------------------------------------------------------

    def _recent(self, request: ReadChanges, position: Position) -> _View | None:
        """A view that will do: not old, and not from before the children of a closed shard were listed."""
        view = self._views.get(request.table)
        if view is None or view.label != position.label or not view.is_recent(self._clock()):
            return None
        read = self._begun(view, request, position)
        finished = (shard for shard, extent in read.items() if extent == FINISHED)
        return view if all(map(view.family.has_children, finished)) else None

    def _begun(self, view: _View, request: ReadChanges, position: Position | None) -> Read:
        if position is None or request.after is None:
            return {}
        return dict(self._ahead.get((view.arn, request.after)) or position.read)

    def _remember(self, view: _View, after: str, read: Read) -> None:
        self._ahead.pop((view.arn, after), None)
        self._ahead[(view.arn, after)] = read
        for oldest in list(self._ahead)[:-_POSITIONS_AHEAD]:
            self._ahead.pop(oldest, None)

    # --- tables and shards -----------------------------------------------------------------------

    async def _look(self, client: Client, name: str) -> _View:
        table = await table_description(client, name)
        stream = table.get("StreamSpecification") or {}
        if not stream.get("StreamEnabled"):
            raise InvalidRequest(f"the table {name} keeps no changes; create it with a stream to read them")
        if stream.get("StreamViewType") != IMAGES:
            raise InvalidRequest(
                f"the stream of {name} has {stream.get('StreamViewType')} only, and changes need both images; "
                f"disable it, and enable it with {IMAGES}"
            )
        keys = sorted(table["KeySchema"], key=lambda entry: str(entry["KeyType"]))
        names = tuple(entry["AttributeName"] for entry in keys)
        return await self._listed(client, name, _View(table["LatestStreamArn"], table["LatestStreamLabel"], names))

    async def _listed(self, client: Client, table: str, view: _View) -> _View:
        """The view with all shards that are kept now."""
        seen = self._clock()
        shards: list[Shard] = []
        created: float | None = None
        call = partial(_call, client, "DescribeStream", read=lambda answer: answer["StreamDescription"])
        async for description in pages(call, {"StreamArn": view.arn}, "LastEvaluatedShardId", "ExclusiveStartShardId"):
            shards += map(_shard, description["Shards"])
            created = description.get("CreationRequestDateTime")
        view = replace(view, family=Family(shards), created=created, seen=seen)
        before = self._views.get(table)
        self._views[table] = view
        for place in list(self._places):
            is_gone = place[0] == view.arn and place[1] not in view.family.shards
            if is_gone or (before is not None and before.arn != view.arn and place[0] == before.arn):
                self._places.pop(place, None)
        return view

    # --- records ---------------------------------------------------------------------------------

    async def _pages(self, client: Client, request: ReadChanges, view: _View, read: Read) -> list[_Page]:
        """Pages of the shards that may be read, until there are as many records as asked for."""
        pages: list[_Page] = []
        waiting = view.family.ready(read)
        room, width = request.limit, _FIRST_WAVE
        while waiting and room > 0:
            wave = waiting[: min(width, room)]
            del waiting[: len(wave)]
            share = room // len(wave)
            found = await together(
                *(self._page(client, request, view, shard, read.get(shard.id), share) for shard in wave)
            )
            pages += found
            room -= sum(len(page.records) for page in found)
            width = min(width * 2, _WIDEST_WAVE)
        return pages

    async def _beginnings(
        self, client: Client, request: ReadChanges, view: _View, read: Read, pages: Sequence[_Page]
    ) -> Read:
        """Where a reader starts that starts with the oldest that is kept: if it is trimmed later, that is known."""
        seen = {page.shard.id for page in pages}
        others = [shard for shard in view.family.ready(read) if shard.id not in seen]
        begun = list(pages)
        for start in range(0, len(others), _WIDEST_WAVE):
            wave = others[start : start + _WIDEST_WAVE]
            begun += await together(*(self._page(client, request, view, shard, None, 1) for shard in wave))
        return {page.shard.id: self._beginning(page) for page in begun}

    def _beginning(self, page: _Page) -> str:
        if page.records:
            return FROM + sequence_number(page.records[0])
        return FINISHED if page.is_end else f"{EMPTY}{self._clock() - _SURELY_SEEN:.0f}"

    def _empty(self, view: _View, read: Read, pages: Sequence[_Page]) -> Read:
        """Shards of some age that were never anything but empty; what comes into them is younger than that."""
        return {
            page.shard.id: self._beginning(page)
            for page in pages
            if not page.records
            and not page.is_end
            and read.get(page.shard.id, EMPTY).startswith(EMPTY)
            and not self._is_whole(view, page.shard, read.get(page.shard.id), _SURELY_SEEN)
        }

    async def _page(
        self, client: Client, request: ReadChanges, view: _View, shard: Shard, extent: str | None, limit: int
    ) -> _Page:
        """Some records that follow an extent of a shard."""
        place = self._place(view, shard, extent)
        looks = _looks(shard, place, self._clock())
        iterator = None if place is None else place.iterator
        renewals = _RENEWALS
        while True:
            is_new = iterator is None
            try:
                iterator = iterator or await self._iterator(client, request, view, shard, extent)
                answer = await _call(client, "GetRecords", {"ShardIterator": iterator, "Limit": limit}, view.with_keys)
            except (IteratorExpired, ChangesTrimmed, TableNotFound) as error:
                if is_new and not isinstance(error, IteratorExpired):
                    if shard.ends_at(extent) or (request.after is None and isinstance(error, TableNotFound)):
                        return _Page(shard, (), True)
                    if request.after is not None:
                        raise _trimmed(request, f"the service does not keep {shard.id} so far back") from error
                renewals -= 1
                if renewals < 0:
                    raise ServiceFailed(f"the shard {shard.id} cannot be read: {error}; try again later") from error
                iterator, looks = None, _looks(shard, None, 0.0)
                continue
            records, iterator = answer.get("Records") or (), answer.get("NextShardIterator")
            if not iterator:
                return _Page(shard, records, True)
            looks -= 1
            if records or not looks:
                now = self._clock()
                place = _Place(sequence_number(records[-1]) if records else extent, iterator, now, now)
                self._places[view.arn, shard.id] = replace(place, looked=changed_at(records[-1])) if records else place
                return _Page(shard, records, False)

    def _place(self, view: _View, shard: Shard, extent: str | None) -> _Place | None:
        place = self._places.pop((view.arn, shard.id), None)
        if place is None or place.extent != extent or self._clock() - place.since > _ITERATOR_LIFE:
            return None
        return place

    async def _iterator(
        self, client: Client, request: ReadChanges, view: _View, shard: Shard, extent: str | None
    ) -> str:
        payload: Payload = {"StreamArn": view.arn, "ShardId": shard.id}
        if extent is not None and not extent.startswith(EMPTY):
            number = extent.removeprefix(FROM)
            kind = "AFTER_SEQUENCE_NUMBER" if number == extent else "AT_SEQUENCE_NUMBER"
            payload |= {"ShardIteratorType": kind, "SequenceNumber": number}
        elif request.after is None or self._is_whole(view, shard, extent):
            payload["ShardIteratorType"] = "TRIM_HORIZON"
        elif shard.first is not None:
            # The horizon would hide that the first records are gone.
            payload |= {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": shard.first}
        else:
            raise ChangesTrimmed(f"{shard.id} does not say where it began")
        return str((await _call(client, "GetShardIterator", payload))["ShardIterator"])

    def _is_whole(self, view: _View, shard: Shard, extent: str | None, age: float = _SURELY_KEPT) -> bool:
        """Whether a shard is younger than that, or was seen empty since, so that nothing of it was trimmed."""
        since = shard.created or view.created or 0.0
        if extent is not None:
            since = max(since, float(extent.removeprefix(EMPTY)))
        return self._clock() - since < age


async def _call(client: Client, operation: str, payload: Payload, read: Reading = as_it_is) -> Any:
    return await client.stream_call(f"DynamoDBStreams_20120810.{operation}", payload, read)


async def list_streams(client: Client, request: ListStreams) -> StreamsResponse:
    found: list[TableStream] = []
    call = partial(_call, client, "ListStreams")
    async for answer in pages(call, {}, "LastEvaluatedStreamArn", "ExclusiveStartStreamArn"):
        found += [TableStream(each["TableName"], each["StreamLabel"]) for each in answer.get("Streams") or ()]
    return StreamsResponse(tuple(sorted(found, key=lambda each: (each.table, each.label))))


def _looks(shard: Shard, place: _Place | None, now: float) -> int:
    """How many answers without records mean that there is nothing more."""
    if shard.last is not None:
        return _LOOKS_FOR_AN_END
    if place is None:
        return _LOOKS
    return min(_LOOKS, 1 + int(max(0.0, now - place.looked) / _STRETCH))


def _shard(entry: Payload) -> Shard:
    numbers = entry.get("SequenceNumberRange") or {}
    return Shard(
        entry["ShardId"],
        entry.get("ParentShardId"),
        numbers.get("StartingSequenceNumber"),
        numbers.get("EndingSequenceNumber"),
    )


# --- changes -----------------------------------------------------------------------------------


def _delivered(view: _View, read: Read, pages: Sequence[_Page]) -> ChangesResponse:
    """The changes of pages, each with the position behind it; the last one's is behind all that was found."""
    read = view.family.condensed(read)
    found: list[tuple[Payload, str]] = []
    for page in pages:
        if page.records:
            view.family.begin(read, page.shard)
            others = str(Position(view.label, read))
            found += [(record, others + sequence_number(record)) for record in page.records]
            read[page.shard.id] = FINISHED if page.is_end else sequence_number(page.records[-1])
    end = str(Position(view.label, view.family.condensed(read)))
    changes = [change_in(record, view.key_names, position) for record, position in found[:-1]]
    return ChangesResponse([*changes, change_in(found[-1][0], view.key_names, end)], end)


def _trimmed(request: ReadChanges, reason: str, *, is_replaced: bool = False) -> ChangesTrimmed:
    after = request.after or ""
    shown = after if len(after) < 200 else f"{after[:200]}…"
    return ChangesTrimmed(
        f"the change stream of {request.table} does not hold what came after {shown} (any more): {reason};"
        " read it from the beginning, and rebuild what was made from it",
        is_replaced=is_replaced,
    )
