"""Plans that read: one node, many nodes, one edge, and pages of edges."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import orjson

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidCursor, InvalidKey, InvalidRequest, InvalidValue, MigrationDue, TableMismatch, shown
from adjoin.expressions import Condition, Path, attribute
from adjoin.fields import FieldReference, Predicate, field_name
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING, OWNER
from adjoin.plans.declared import check_due
from adjoin.requests import (
    BatchGetResponse,
    Get,
    ItemResponse,
    PageResponse,
    Plan,
    Query,
    SortCondition,
    TransactGet,
)
from adjoin.units import MAX_TRANSACTION
from adjoin.values import Item, decode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from adjoin import evaluate
    from adjoin.layouts.ranges import Range
    from adjoin.plans import deletion, reordering
    from adjoin.plans.steps import batches, conditions, predicates, samples
    from adjoin.plans.steps.batches import Place
else:
    evaluate = later("adjoin.evaluate")
    deletion = later("adjoin.plans.deletion")
    reordering = later("adjoin.plans.reordering")
    batches = later("adjoin.plans.steps.batches")
    conditions = later("adjoin.plans.steps.conditions")
    predicates = later("adjoin.plans.steps.predicates")
    samples = later("adjoin.plans.steps.samples")


# --- page tokens -------------------------------------------------------------------------------


_DIGEST_SIZE = 16


def encode_cursor(start: Item, given: int, query: bytes, secret: bytes) -> str:
    """A token to continue from a key, after `given` results were returned."""
    payload = orjson.dumps([start, given])
    return _spelled(_digest(payload, query, secret) + payload)


def decode_cursor(token: str, query: bytes, secret: bytes) -> tuple[Item, int]:
    try:
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except (ValueError, AttributeError):
        raise InvalidCursor("the page token was not made by adjoin; start again from the first page") from None
    digest, payload = raw[:_DIGEST_SIZE], raw[_DIGEST_SIZE:]
    # base64 has spare bits, so several texts decode to the same bytes. Only the text that was issued is accepted.
    if not compare_digest(digest, _digest(payload, query, secret)) or _spelled(raw) != token:
        raise InvalidCursor(
            "the page token belongs to another query or was changed; "
            "pass it to the query that it came from, or start again from the first page"
        )
    try:
        start, given = orjson.loads(payload)
        is_one = type(start) is dict and type(given) is int and 0 <= given < 2**31
        is_one = is_one and all(type(part) is dict and [*map(type, part.values())] == [str] for part in start.values())
        is_one = is_one and all(part.keys() <= {"S", "N", "B"} for part in start.values())
    except (ValueError, TypeError):
        is_one = False
    if not is_one:
        # The digest was right, but without a secret anybody can compute it.
        raise InvalidCursor("the page token was not made by adjoin; start again from the first page")
    return start, given


def _spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _digest(payload: bytes, query: bytes, secret: bytes) -> bytes:
    key = blake2b(secret, digest_size=32, person=b"adjoin cursor").digest()
    return blake2b(query + b"\0" + payload, key=key, digest_size=_DIGEST_SIZE).digest()


# --- reading -----------------------------------------------------------------------------------


V = TypeVar("V", bound="DataclassInstance")


Some: TypeAlias = tuple[str, ...] | None
"""The fields that are read; None for all."""


def some_fields(kind: EntityType, names: Iterable[str | FieldReference[Any]] | None) -> Some:
    """The fields that `only` names; raises for a name that the class does not have, with the closest one."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidValue(f"only takes a list of names of fields, got {shown(names)}; put it into a list")
    some: dict[str, None] = {}
    for each in names:
        name = field_name(each)
        if not isinstance(name, str):
            raise InvalidValue(f"only takes names of fields, got {shown(name)}; pass them as text")
        some[name] = None
        if not conditions.is_of_id(kind, name):
            kind.attribute(name)
        if name in kind.computed:
            raise InvalidValue(f"{kind.name}.{name} is computed; name the fields that it is computed from")
    return tuple(name for name in some if name in kind.attributes)


def with_compared(kind: EntityType, some: Sequence[str], rest: Iterable[Predicate]) -> tuple[str, ...]:
    """The fields that have to be read for some fields, with those that predicates compare after reading."""
    compared = {name for each in rest for name in predicates.compared_fields(each) if name in kind.attributes}
    return tuple(dict.fromkeys((*some, *sorted(compared))))


def projected(layout: BoundLayout, kind: EntityType, some: Some) -> tuple[Path, ...] | None:
    """The attributes that are sent for some fields."""
    return None if some is None else tuple(map(attribute, layout.some_attributes(kind, some)))


def decoded(layout: BoundLayout, kind: EntityType, item: Item, some: Some) -> Any:
    """The entity that an item is, with all fields or with some."""
    return layout.decode(kind, item) if some is None else layout.decode_some(kind, item, some)


def get(layout: BoundLayout, kind: NodeType, id: Any, consistent: bool, some: Some = None) -> Plan[Any]:
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_keys(kind))
    response: ItemResponse
    key = layout.node_key(kind, id)
    (response,) = yield (Get(layout.table, key, consistent, projected(layout, kind, some)),)
    if response.item is None:
        return None
    if DELETING in response.item and not (yield from deletion.visible(layout, [response.item])):
        return None
    return _explained(decoded(layout, kind, response.item, some), kind, response.item)


def get_by(
    layout: BoundLayout, kind: NodeType, name: str, value: Any, consistent: bool, some: Some = None
) -> Plan[Any]:
    """The node that has a value of a unique field; the claim to the value names the node."""
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_unique(kind, name))
    response: ItemResponse
    (response,) = yield (Get(layout.table, layout.claim_key(kind, name, value), consistent),)
    owner = (response.item or {}).get(OWNER, {}).get("S")
    try:
        id = None if owner is None else layout.id_in(kind, owner)
    except InvalidKey:
        id = None
    if id is None:
        # There is no claim, or another program wrote one with a key that no node can have.
        return None
    node = yield from get(layout, kind, id, consistent, None if some is None else (*some, name))
    # The node may have changed between the two reads, or the claim may be stale.
    return node if node is not None and getattr(node, name) == value else None


def get_many(
    layout: BoundLayout,
    kind: NodeType,
    ids: Iterable[Any],
    consistent: bool,
    some: Some = None,
) -> Plan[list[Any]]:
    """One node (or None) per id, in order; an id that is given twice is read once."""
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_keys(kind))
    wanted = [kind.id(id) for id in ids]
    distinct = list(dict.fromkeys(wanted))
    nodes = yield from get_each(layout, [(kind, id) for id in distinct], consistent, some, are_given=True)
    found = dict(zip(distinct, nodes, strict=True))
    return [found[id] for id in wanted]


def get_each(
    layout: BoundLayout,
    wanted: Sequence[tuple[NodeType, Any]],
    consistent: bool,
    some: Some = None,
    *,
    are_given: bool = False,
) -> Plan[list[Any]]:
    """One node (or None) per class and id, in order. They must be different nodes.

    An id that no node can have is refused if programs have given it. In edges that others wrote, it is not a node.
    """
    sent = projected(layout, wanted[0][0], some) if wanted else None
    try:
        gets = [Get(layout.table, layout.node_key(kind, id), consistent, sent) for kind, id in wanted]
    except InvalidKey:
        if are_given:
            raise
        can_be = [layout.can_have(kind, id) for kind, id in wanted]
        them = [each for each, is_node in zip(wanted, can_be, strict=True) if is_node]
        nodes = iter((yield from get_each(layout, them, consistent, some)))
        return [next(nodes) if is_node else None for is_node in can_be]
    items = yield from batches.get_all(gets)
    if any(item is not None and DELETING in item for item in items):
        shown = yield from deletion.visible(layout, [item for item in items if item is not None])
        items = [item if any(item is each for each in shown) else None for item in items]
    pairs = zip(wanted, items, strict=True)
    return [item and _explained(decoded(layout, kind, item, some), kind, item) for (kind, _), item in pairs]


def edge(
    layout: BoundLayout,
    kind: EdgeType,
    source: Any,
    target: Any,
    fields: Mapping[str, Any],
    consistent: bool,
    some: Some = None,
) -> Plan[Any]:
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_range(kind, None))
    response: ItemResponse
    key = layout.edge_key(kind, source, target, fields)
    (response,) = yield (Get(layout.table, key, consistent, projected(layout, kind, some)),)
    if response.item is None:
        return None
    if DELETING in response.item and not (yield from deletion.visible(layout, [response.item])):
        return None
    ends = layout.has_ends(kind, source, target)
    if ends is not None and not evaluate.condition_test(ends)(response.item):
        # The key alone does not tell the ends, and this edge has others.
        return None
    return _explained(decoded(layout, kind, response.item, some), kind, response.item)


def get_together(layout: BoundLayout, wanted: Sequence[tuple[EntityType, Item, Condition | None]]) -> Plan[list[Any]]:
    """The entities with these keys, all as they were at one instant; None for each that did not exist then.

    Each has a condition that holds for its ends, if its key does not tell them. An edge with the mark of a delete is
    read again, with the deletion records that say whether it exists.
    """
    keys = {batches.place_of(key): key for _, key, _ in wanted}
    records: dict[str, Item] = {}
    while True:
        asked = [*keys.values(), *records.values()]
        if len(asked) > MAX_TRANSACTION:
            raise InvalidRequest(
                f"get_together takes at most {MAX_TRANSACTION} nodes and edges, got {len(asked)} with the records of "
                f"their deletes; read fewer"
            )
        response: BatchGetResponse
        (response,) = yield (TransactGet(tuple(Get(layout.table, key) for key in asked)),)
        found = dict(zip(map(batches.place_of, asked), response.items, strict=True))
        items = [item for place in keys if (item := found[place]) is not None]
        more = deletion.records_of(layout, items)
        if more.keys() <= records.keys():
            break
        records = more
    told = {node: found[batches.place_of(key)] for node, key in records.items()}
    shown = {batches.place_of(layout.key_of(item)) for item in deletion.unhidden(items, told)}
    entities: list[Any] = []
    for kind, key, ends in wanted:
        item = found[batches.place_of(key)] if batches.place_of(key) in shown else None
        if item is None or (ends is not None and not evaluate.condition_test(ends)(item)):
            entities.append(None)
        else:
            entities.append(_explained(layout.decode(kind, item), kind, item))
    return entities


def _explained(entity: Any, kind: EntityType, item: Item) -> Any:
    if entity is None and kind.whole is not kind:
        # The key is that of the whole family, and a node of another class of it is there.
        return None
    if entity is None:
        raise deletion.another_type(kind, item)
    return entity


# --- pages -------------------------------------------------------------------------------------


def changed(value: V, changes: Mapping[str, Any]) -> V:
    """A copy with some fields changed; `dataclasses.replace` takes three times as long."""
    copy = object.__new__(type(value))
    old: dict[str, Any] = value.__dict__
    names = value.__dataclass_fields__
    # What else an instance has was worked out from its fields, and may be different for the copy.
    fields = old if len(old) == len(names) else {name: old[name] for name in names}
    copy.__dict__.update(fields, **changes)
    return copy


@dataclass(eq=False)
class Question:
    """A query that is read page by page. Immutable."""

    range: Range
    sort: SortCondition | None = None
    """Replaces the range's own condition by a narrower one; None for the range's own."""
    filter: Condition | None = None
    forward: bool = True
    consistent: bool = False
    only: tuple[str, ...] | None = None
    """The attributes that are sent; None for whole items."""
    rest: tuple[Predicate, ...] = ()
    """The predicates that are checked here, on the entities, because DynamoDB cannot filter by them."""
    some: Some = None
    """The fields that the entities have; None for all."""

    def sending(self, layout: BoundLayout) -> Question:
        """The same question, with the attributes that are sent if only some fields are read."""
        kind, access = self.range.access.kind, self.range.access
        if self.some is None or kind is None:
            return self
        some = with_compared(kind, self.some, self.rest)
        # An index that holds only some attributes does not hold the marks of deletes, so whole items are read.
        names = None if access.is_partial else layout.some_attributes(kind, some)
        return self.with_(some=some, only=names)

    def request(
        self,
        table: str,
        limit: int | None,
        start: Item | None,
        *,
        count: bool = False,
        filter: Condition | None = None,
    ) -> Query:
        """The request for a page; `filter` replaces that of a question without one."""
        range = self.range
        access, sort = range.access, self.sort
        if sort is None:
            sort = range.condition() if range.known or range.stem else access.condition
        return Query(
            table,
            (access.partition_key, {access.partition_type: range.partition}),
            sort,
            access.index,
            self.filter or filter,
            None if self.only is None else tuple(map(attribute, self.only)),
            count,
            limit,
            start,
            self.forward,
            self.consistent,
        )

    def with_(self, **changes: Any) -> Question:
        return changed(self, changes)

    def identity(self, table: str) -> bytes:
        """Bytes that are different for every other question, so that a page token fits only its own."""
        asked: tuple[Any, ...] = (self.request(table, None, None), getattr(self.range.access.kind, "label", None))
        asked += (self.rest,) if self.rest else ()
        return repr(asked if self.range.number is None else (*asked, "shards")).encode()

    @property
    def is_exact(self) -> bool:
        """Whether every item that is read is part of the answer."""
        return self.filter is None and not self.rest and self.range.access.exclusive

    def some_decoder(self, layout: BoundLayout) -> Callable[[Item], Any]:
        """The function that reads some fields of an item."""
        kind, some, refine = self.range.access.kind, self.some, self.range.access.refine
        assert kind is not None
        assert some is not None

        def decode(item: Item) -> Any:
            entity = layout.decode_some(kind, item, some)
            return entity if entity is None or refine is None else refine(entity)

        return decode

    def decoder(self, layout: BoundLayout) -> Callable[[Item], Any]:
        """The function that reads an item; it returns None for what is not part of the answer."""
        decode, kind, rest = self.range.access.decode, self.range.access.kind, self.rest
        if kind is None:
            return lambda item: read_or_plain(layout, item)
        if self.some is not None:
            decode = self.some_decoder(layout)
        if shows := self.range.access.shows:

            def collected(item: Item) -> Any:
                entity = decode(item)
                return _other(layout, item, shows) if entity is None else entity

            return collected
        if not rest:
            return decode

        def matching(item: Item) -> Any:
            entity = decode(item)
            return entity if entity is not None and all(predicates.holds(kind, each, entity) for each in rest) else None

        return matching


@dataclass(slots=True)
class Found:
    """A page of results, and where the next page begins."""

    entities: list[Any]
    last: Any
    """The key, or whatever else the plan can continue from; None at the end."""


def page(layout: BoundLayout, question: Question, limit: int | None, start: Item | None) -> Plan[Found]:
    """A page of `limit` entities (fewer only at the end); without a limit, what one request brings.

    DynamoDB applies its limit before a filter. So with a filter, the first request asks for more items than are
    wanted, each further one for four times as many, and the page ends after the last item that is returned.
    """
    question = question.sending(layout)
    access, is_exact = question.range.access, question.is_exact
    if layout.due.is_any and (whole_range := (yield from _whole_range(layout, question))) is not None:
        return (yield from _reordered(layout, question, whole_range, limit, start))
    is_plain = access.kind is not None and access.shows is None and not question.rest and question.some is None
    decode_item = access.decode if is_plain else question.decoder(layout)
    entities: list[Any] = []
    entries: dict[Place, Item] = {}
    ask = limit if limit is None or is_exact else max(4 * limit, 100)
    while True:
        response: PageResponse
        (response,) = yield (question.request(layout.table, ask, start),)
        before = len(entities)
        items: Sequence[Item] = response.items
        if access.is_partial:
            # Only entries say where the index continues: an item that is read from the table may have changed since.
            entries = {batches.place_of(layout.key_of(entry)): entry for entry in items}
            items = yield from whole(layout, items, access.kind, consistent=question.consistent)
        for item in items:
            if DELETING in item:
                del entities[before:]
                items = yield from deletion.visible(layout, list(items))
                entities += [entity for entity in map(decode_item, items) if entity is not None]
                break
            entity = decode_item(item)
            if entity is not None:
                entities.append(entity)
        start = response.last
        if limit is None or (start is None and len(entities) <= limit):
            return Found(entities, start)
        if len(entities) > limit or (len(entities) == limit and not is_exact):
            last = _item_of(items, decode_item, limit - before)
            if access.is_partial:
                last = entries[batches.place_of(layout.key_of(last))]
            return Found(entities[:limit], layout.start_after(last, access.index))
        if len(entities) == limit:
            return Found(entities, start)
        ask = limit - len(entities) if is_exact else min(4 * (ask or limit), 100_000)


def _whole_range(layout: BoundLayout, question: Question) -> Plan[Range | None]:
    """Where all edges are, if the index that is asked may lack some; None if it has all. Raises if nothing has all."""
    access = question.range.access
    yield from check_due(layout, lambda due: due.check_filter(access.kind, question.filter))
    try:
        yield from check_due(layout, lambda due: due.check_range(access.kind, access.index))
    except (MigrationDue, TableMismatch):
        if access.kind is not None:
            layout.due.check_range(access.kind, None)
        found = layout.whole_range(question.range)
        if found is None:
            raise
        return found
    return None


def _reordered(
    layout: BoundLayout, question: Question, whole_range: Range, limit: int | None, start: Item | None
) -> Plan[Found]:
    """A page of edges of a class that has gained an order, of which the index does not have all yet."""
    decode_item = question.decoder(layout)
    asked = question.request(layout.table, None, start)
    found = yield from reordering.reordered(layout, asked, question.range, whole_range)
    pairs = [(item, entity) for item in found if (entity := decode_item(item)) is not None]
    entities = [entity for _, entity in pairs]
    if limit is None or len(pairs) <= limit:
        return Found(entities, None)
    return Found(entities[:limit], layout.start_after(pairs[limit - 1][0], question.range.access.index))


def whole(
    layout: BoundLayout, entries: Sequence[Item], kind: EntityType | None = None, *, consistent: bool = False
) -> Plan[list[Item]]:
    """The whole items behind entries of an index, without items that were removed meanwhile.

    If there are none, and a class is given, `explain` shows the request for a sample of it.
    """
    if not entries:
        keys = [] if kind is None else samples.sample_keys(layout, kind)
        yield from batches.get_all([Get(layout.table, key, consistent) for key in keys])
        return []
    gets = [Get(layout.table, layout.key_of(entry), consistent) for entry in entries]
    items = yield from batches.get_all(gets)
    return [entry | item for entry, item in zip(entries, items, strict=True) if item is not None]


def read_or_plain(layout: BoundLayout, item: Item) -> Any:
    """The entity that an item is, or its plain values if no class matches it; None for adjoin's own items."""
    if layout.is_bookkeeping(item):
        return None
    entity = layout.read(item)
    return {name: decode(value) for name, value in item.items()} if entity is None else entity


def _other(layout: BoundLayout, item: Item, shows: Callable[[Item], bool]) -> dict[str, Any] | None:
    """The plain values of an item that belongs to a collection although no class explains it; None for another."""
    found = read_or_plain(layout, item) if shows(item) else None
    return found if isinstance(found, dict) else None


def _item_of(items: Iterable[Item], decode_item: Callable[[Item], Any], number: int) -> Item:
    """The item that became the result of that number, counted from 1."""
    giving = (item for item in items if decode_item(item) is not None)
    return next(islice(giving, number - 1, None))


def count(layout: BoundLayout, question: Question, most: int | None) -> Plan[int]:
    """How many entities match, as many as iterating would return.

    If only adjoin writes such keys, the service counts. Where others may have written keys that fit no template, the
    keys are read, because iterating leaves such items out. Whole items are read only if keys do not tell.
    """
    access, counted = question.range.access, _counted_as_items
    if layout.due.is_any and (yield from _whole_range(layout, question)) is not None:
        return len((yield from page(layout, question, most, None)).entities)
    is_counted_by_service = False
    if question.is_exact and access.told_by_keys and not access.is_partial:
        is_counted_by_service = not access.is_literal
        if access.is_literal and access.kind is not None and is_told_by_keys(layout, access.kind):
            counted = _counted_by_keys
    response: PageResponse | None
    total, start = 0, None
    while True:
        response = None
        if is_counted_by_service:
            (response,) = yield (question.request(layout.table, None, start, count=True, filter=deletion.UNMARKED),)
        if response is not None and response.count == response.scanned:
            found, start = response.count, response.last
        else:
            # The items have to be looked at, if only because some have the mark of a delete.
            found, start = yield from counted(layout, question, start)
        total += found
        if start is None or (most is not None and total >= most):
            return total if most is None else min(total, most)


def _counted_by_keys(layout: BoundLayout, question: Question, start: Item | None) -> Plan[tuple[int, Item | None]]:
    kind = question.range.access.kind
    assert kind is not None
    response: PageResponse
    (response,) = yield (question.with_(only=layout.scan(kind).attributes).request(layout.table, None, start),)
    items: Sequence[Item] = response.items
    if any(DELETING in item for item in items):
        items = yield from deletion.visible(layout, list(items))
    return sum(layout.kind_of(item) is kind.whole and layout.is_one(kind, item) for item in items), response.last


def _counted_as_items(layout: BoundLayout, question: Question, start: Item | None) -> Plan[tuple[int, Item | None]]:
    found = yield from page(layout, question, None, start)
    return len(found.entities), found.last


def is_told_by_keys(layout: BoundLayout, kind: EntityType) -> bool:
    """Whether an item with the keys of a class is one of its instances, if it can be read at all.

    A validator may change an id. Then the instance would not be the one with this key, and the item is of no class.
    """
    return kind.keeps_ids and not layout.fit(kind).is_whole and not layout.is_told_by_indexes(kind)


def far_nodes(layout: BoundLayout, kind: NodeType, ids: list[Any], consistent: bool) -> Plan[dict[Any, Any]]:
    """The nodes at the far ends of edges, by id. The ids are those of edges that were read, so they are valid."""
    if layout.due.is_any:
        yield from check_due(layout, lambda due: due.check_keys(kind))
    distinct = list(dict.fromkeys(ids))
    nodes = yield from get_each(layout, [(kind, id) for id in distinct], consistent)
    return {id: node for id, node in zip(distinct, nodes, strict=True) if node is not None}
