"""Reads the change stream of a table from DynamoDB Streams, shard by shard.

A position says how far each shard was read, see `shards`; any process can resume from it. The changes of one item come
in order; changes of different items have no order. All changes after a position are delivered, or `ChangesTrimmed` is
raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import ChangesTrimmed, InvalidRequest, ServiceFailed, TableNotFound
from adjoin.requests import ChangesResponse, ListStreams, ReadChanges, StreamsResponse, TableStream
from adjoin.stores.dynamodb.answers import Misshapen, Payload, check_is
from adjoin.stores.dynamodb.client import AnswerReader, Client, IteratorExpired, as_it_is, pages, together
from adjoin.stores.dynamodb.lifecycle import table_description
from adjoin.stores.dynamodb.shards import (
    EMPTY,
    FINISHED,
    FROM,
    Family,
    ReadSoFar,
    StreamPosition,
    StreamShard,
    parse_position,
)
from adjoin.stores.records import IMAGES, change_in, changed_at, sequence_number
from adjoin.units import CHANGES_KEPT, MAX_CHANGES

_LISTING_LIFE, _LISTED_AT_ONCE = 10.0, 100
"""Seconds for which a listing of that many shards is used. The records show when a shard was closed, and the service
allows ten listings per second."""
_ITERATOR_LIFE = 14 * 60.0
"""Seconds for which an iterator is used; the service lets it expire after 15 minutes."""
_SURELY_SEEN = CHANGES_KEPT / 2
"""Seconds after which a record in an open shard has surely been found, as often as we look. The service closes a shard
after some hours."""
_RENEWALS = 3

_FIRST_WAVE, _WIDEST_WAVE = 4, 64
"""How many shards are read at once, at first and at most; each wave has twice as many. So full shards soon fill a
page, and many empty shards take few rounds."""

_LOOKS, _STRETCH, _LOOKS_FOR_AN_END = 12, 20.0, 10_000
"""An answer covers a stretch of time, so an open shard may answer with no records although more follow. It counts as
read after `_LOOKS` empty answers, or after one per `_STRETCH` seconds since it was last read. A closed shard has an
end, and is read up to it."""

_POSITIONS_AHEAD = 32


@dataclass(frozen=True, slots=True)
class _View:
    """A table's stream and its shards at one time."""

    arn: str
    label: str
    key_names: tuple[str, ...]
    family: Family = Family(())
    created: float | None = None
    seen: float = 0.0

    def with_keys(self, answer: Payload) -> Payload:
        """An answer with records, after a check that each has the key of its item."""
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
    """An iterator after an extent of a shard, when it was issued, and up to which time the shard was read."""

    extent: str | None
    iterator: str
    since: float
    looked: float


@dataclass(frozen=True, slots=True)
class _Page:
    """The next records of a shard, and whether the shard ends with them."""

    shard: StreamShard
    records: Sequence[Payload]
    is_end: bool


class Streams:
    """Reads changes for a store; threads and event loops may share it.

    It remembers iterators and listings to save requests. It also remembers how far a reader looked without finding
    records. That is needed: if nothing changes for a day, the shard in the reader's position is gone, and only a
    process that read on knows that nothing followed in it.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._views: dict[str, _View] = {}
        self._places: dict[tuple[str, str], _Place] = {}
        self._ahead: dict[tuple[str, str], ReadSoFar] = {}

    def forget(self) -> None:
        """Forgets what is known of all streams, because a table was created or dropped."""
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
                # Perhaps only the remembered view is too old, so try with a new one.
                pass
        view = await self._look(client, request.table)
        # The table was created again, or its stream was switched off and on: its changes are not those that were
        # asked for.
        if position is not None and position.label != view.label:
            raise _trimmed(request, "its stream was replaced by another", is_replaced=True)
        return await self._read(client, request, view, position)

    async def _read(
        self, client: Client, request: ReadChanges, view: _View, position: StreamPosition | None
    ) -> ChangesResponse:
        read = self._begun(view, request, position)
        while True:
            reason = None if position is None else view.family.out_of_reach(read)
            if reason is not None:
                raise _trimmed(request, reason)
            pages = await self._pages(client, request, view, read)
            ended = [page.shard.id for page in pages if page.is_end and not page.records]
            read |= dict.fromkeys(ended, FINISHED)
            # Shards that ended without records make room for their children, which are read in the next turn.
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
        return ChangesResponse([], str(StreamPosition(view.label, read)))

    # --- what is remembered ----------------------------------------------------------------------

    def _recent(self, request: ReadChanges, position: StreamPosition) -> _View | None:
        """The remembered view, if it is recent and lists the children of all finished shards."""
        view = self._views.get(request.table)
        if view is None or view.label != position.label or not view.is_recent(self._clock()):
            return None
        read = self._begun(view, request, position)
        finished = (shard for shard, extent in read.items() if extent == FINISHED)
        return view if all(map(view.family.has_children, finished)) else None

    def _begun(self, view: _View, request: ReadChanges, position: StreamPosition | None) -> ReadSoFar:
        if position is None or request.after is None:
            return {}
        return dict(self._ahead.get((view.arn, request.after)) or position.read)

    def _remember(self, view: _View, after: str, read: ReadSoFar) -> None:
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
                f"the stream of {name} has only {stream.get('StreamViewType')}, but changes need both images; "
                f"disable it, and enable it with {IMAGES}"
            )
        if not (table.get("LatestStreamArn") and table.get("LatestStreamLabel")):
            raise ServiceFailed(
                f"the answer to DescribeTable is malformed: {name} has a stream without LatestStreamArn or "
                f"LatestStreamLabel; check that the endpoint is DynamoDB, or a server that has streams"
            )
        keys = sorted(table["KeySchema"], key=lambda entry: str(entry["KeyType"]))
        names = tuple(entry["AttributeName"] for entry in keys)
        return await self._listed(client, name, _View(table["LatestStreamArn"], table["LatestStreamLabel"], names))

    async def _listed(self, client: Client, table: str, view: _View) -> _View:
        """The view with all shards that the service keeps now."""
        seen = self._clock()
        shards: list[StreamShard] = []
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

    async def _pages(self, client: Client, request: ReadChanges, view: _View, read: ReadSoFar) -> list[_Page]:
        """Pages of the shards that may be read now, until there are as many records as the request wants."""
        pages: list[_Page] = []
        waiting = view.family.ready(read)
        room, width = request.limit, _FIRST_WAVE
        while waiting and room > 0:
            wave = waiting[: min(width, room)]
            del waiting[: len(wave)]
            # Each shard may return as many records as this, so that all together are no more than asked for.
            share = room // len(wave)
            found = await together(
                *(self._page(client, request, view, shard, read.get(shard.id), share) for shard in wave)
            )
            pages += found
            room -= sum(len(page.records) for page in found)
            width = min(width * 2, _WIDEST_WAVE)
        return pages

    async def _beginnings(
        self, client: Client, request: ReadChanges, view: _View, read: ReadSoFar, pages: Sequence[_Page]
    ) -> ReadSoFar:
        """The first record of every shard, for a reader that starts with the oldest: shows later if one was trimmed."""
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

    def _empty(self, view: _View, read: ReadSoFar, pages: Sequence[_Page]) -> ReadSoFar:
        """The extents of old shards that have always been empty; records that come later are younger than these."""
        return {
            page.shard.id: self._beginning(page)
            for page in pages
            if not page.records
            and not page.is_end
            and read.get(page.shard.id, EMPTY).startswith(EMPTY)
            and not self._is_whole(view, page.shard, read.get(page.shard.id), _SURELY_SEEN)
        }

    async def _page(
        self, client: Client, request: ReadChanges, view: _View, shard: StreamShard, extent: str | None, limit: int
    ) -> _Page:
        """The next records after an extent of a shard."""
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

    def _place(self, view: _View, shard: StreamShard, extent: str | None) -> _Place | None:
        place = self._places.pop((view.arn, shard.id), None)
        if place is None or place.extent != extent or self._clock() - place.since > _ITERATOR_LIFE:
            return None
        return place

    async def _iterator(
        self, client: Client, request: ReadChanges, view: _View, shard: StreamShard, extent: str | None
    ) -> str:
        payload: Payload = {"StreamArn": view.arn, "ShardId": shard.id}
        if extent is not None and not extent.startswith(EMPTY):
            number = extent.removeprefix(FROM)
            kind = "AFTER_SEQUENCE_NUMBER" if number == extent else "AT_SEQUENCE_NUMBER"
            payload |= {"ShardIteratorType": kind, "SequenceNumber": number}
        elif request.after is None or self._is_whole(view, shard, extent):
            payload["ShardIteratorType"] = "TRIM_HORIZON"
        elif shard.first is not None:
            # TRIM_HORIZON would hide that the first records were trimmed.
            payload |= {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": shard.first}
        else:
            raise ChangesTrimmed(f"{shard.id} does not say where it began")
        return str((await _call(client, "GetShardIterator", payload))["ShardIterator"])

    def _is_whole(self, view: _View, shard: StreamShard, extent: str | None, age: float = CHANGES_KEPT) -> bool:
        """Whether nothing of a shard was trimmed: it is younger than `age`, or was found empty within that time."""
        since = shard.created or view.created or 0.0
        if extent is not None:
            since = max(since, float(extent.removeprefix(EMPTY)))
        return self._clock() - since < age


async def _call(client: Client, operation: str, payload: Payload, read: AnswerReader = as_it_is) -> Any:
    return await client.stream_call(f"DynamoDBStreams_20120810.{operation}", payload, read)


async def list_streams(client: Client, request: ListStreams) -> StreamsResponse:
    found: list[TableStream] = []
    call = partial(_call, client, "ListStreams")
    async for answer in pages(call, {}, "LastEvaluatedStreamArn", "ExclusiveStartStreamArn"):
        found += [TableStream(each["TableName"], each["StreamLabel"]) for each in answer.get("Streams") or ()]
    return StreamsResponse(tuple(sorted(found, key=lambda each: (each.table, each.label))))


def _looks(shard: StreamShard, place: _Place | None, now: float) -> int:
    """How many empty answers mean that a shard has no more records."""
    if shard.last is not None:
        return _LOOKS_FOR_AN_END
    if place is None:
        return _LOOKS
    return min(_LOOKS, 1 + int(max(0.0, now - place.looked) / _STRETCH))


def _shard(entry: Payload) -> StreamShard:
    numbers = entry.get("SequenceNumberRange") or {}
    return StreamShard(
        entry["ShardId"],
        entry.get("ParentShardId"),
        numbers.get("StartingSequenceNumber"),
        numbers.get("EndingSequenceNumber"),
    )


# --- changes -----------------------------------------------------------------------------------


def _delivered(view: _View, read: ReadSoFar, pages: Sequence[_Page]) -> ChangesResponse:
    """The changes of pages, each with the position after it; the last position is after everything that was found."""
    read = view.family.condensed(read)
    found: list[tuple[Payload, str]] = []
    for page in pages:
        if page.records:
            view.family.begin(read, page.shard)
            others = str(StreamPosition(view.label, read))
            found += [(record, others + sequence_number(record)) for record in page.records]
            read[page.shard.id] = FINISHED if page.is_end else sequence_number(page.records[-1])
    end = str(StreamPosition(view.label, view.family.condensed(read)))
    changes = [change_in(record, view.key_names, position) for record, position in found[:-1]]
    return ChangesResponse([*changes, change_in(found[-1][0], view.key_names, end)], end)


def _trimmed(request: ReadChanges, reason: str, *, is_replaced: bool = False) -> ChangesTrimmed:
    after = request.after or ""
    shown = after if len(after) < 200 else f"{after[:200]}…"
    return ChangesTrimmed(
        f"the change stream of {request.table} no longer holds the changes after {shown}: {reason};"
        " read it from the beginning, and rebuild what was made from it",
        is_replaced=is_replaced,
    )
