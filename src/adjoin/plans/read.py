"""Reading: one node, many nodes, one edge, and pages of edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from adjoin.errors import InvalidItem, InvalidKey
from adjoin.expressions import Condition, Exists, Not, attribute
from adjoin.layouts.interface import DELETING, OWNER, BoundLayout, Range
from adjoin.plans import Plan
from adjoin.plans.batches import get_all
from adjoin.plans.deletion import visible
from adjoin.requests import Get, ItemResponse, PageResponse, Query, SortCondition
from adjoin.schema import EdgeType, EntityType, NodeType
from adjoin.values import Item, decode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

V = TypeVar("V", bound="DataclassInstance")


def get(layout: BoundLayout, kind: NodeType, id: Any, consistent: bool) -> Plan[Any]:
    response: ItemResponse
    (response,) = yield (Get(layout.table, layout.node_key(kind, id), consistent),)
    if response.item is None:
        return None
    return _explained(layout.decode(kind, response.item), kind, response.item)


def get_by(layout: BoundLayout, kind: NodeType, name: str, value: Any, consistent: bool) -> Plan[Any]:
    """The node that has a value of a unique field: the claim to it tells whose it is."""
    response: ItemResponse
    (response,) = yield (Get(layout.table, layout.claim_key(kind, name, value), consistent),)
    owner = (response.item or {}).get(OWNER, {}).get("S")
    try:
        id = None if owner is None else layout.id_in(kind, owner)
    except InvalidKey:
        id = None
    if id is None:
        # Nobody's, or of a node that cannot be: others may write anything there.
        return None
    node = yield from get(layout, kind, id, consistent)
    # A claim may be older than its node.
    return node if node is not None and getattr(node, name) == value else None


def get_many(layout: BoundLayout, kind: NodeType, ids: Iterable[Any], consistent: bool) -> Plan[list[Any]]:
    """One entry an id, in order; an id asked for twice is read once."""
    wanted = [kind.id(id) for id in ids]
    gets = {id: Get(layout.table, layout.node_key(kind, id), consistent) for id in wanted}
    items = yield from get_all(list(gets.values()))
    found = {
        id: item and _explained(layout.decode(kind, item), kind, item) for id, item in zip(gets, items, strict=True)
    }
    return [found[id] for id in wanted]


def edge(
    layout: BoundLayout, kind: EdgeType, source: Any, target: Any, fields: Mapping[str, Any], consistent: bool
) -> Plan[Any]:
    response: ItemResponse
    key = layout.edge_key(kind, source, target, fields)
    (response,) = yield (Get(layout.table, key, consistent),)
    if response.item is None:
        return None
    if DELETING in response.item and not (yield from visible(layout, [response.item])):
        return None
    return _explained(layout.decode(kind, response.item), kind, response.item)


def _explained(entity: Any, kind: EntityType, item: Item) -> Any:
    if entity is None:
        shown = {name: decode(value) for name, value in list(item.items())[:3]}
        raise InvalidItem(
            f"under the key of a {kind.name} lies an item of another type ({shown}); "
            f"correct its type attribute, or the layout"
        )
    return entity


# --- pages -------------------------------------------------------------------------------------


def changed(value: V, changes: Mapping[str, Any]) -> V:
    """A copy with other fields; `dataclasses.replace` takes three times as long."""
    copy = object.__new__(type(value))
    old: dict[str, Any] = value.__dict__
    copy.__dict__.update({name: old[name] for name in value.__dataclass_fields__}, **changes)
    return copy


@dataclass(eq=False)
class Question:
    """A query with everything that makes it what it is; pages of it can be asked for. Never changed."""

    range: Range
    sort: SortCondition | None = None
    """Narrows the range's own condition; None where it is not narrowed."""
    filter: Condition | None = None
    forward: bool = True
    consistent: bool = False

    def request(self, table: str, limit: int | None, start: Item | None, *, count: bool = False) -> Query:
        access = self.range.access
        return Query(
            table,
            (access.partition_key, {"S": self.range.partition}),
            self.sort or self.range.condition(),
            access.index,
            self.filter,
            None,
            count,
            limit,
            start,
            self.forward,
            self.consistent,
        )

    def with_(self, **changes: Any) -> Question:
        return changed(self, changes)

    def identity(self, table: str) -> bytes:
        """Everything that makes it this question and no other."""
        return repr((self.request(table, None, None), getattr(self.range.access.kind, "label", None))).encode()

    @property
    def is_exact(self) -> bool:
        """Whether every item that is read is part of the answer."""
        return self.filter is None and self.range.access.exclusive


@dataclass(slots=True)
class Found:
    """A page of the answer, and where to go on."""

    entities: list[Any]
    last: Any
    """An item, or whatever else the plan can go on from; None at the end."""


def page(layout: BoundLayout, question: Question, limit: int | None, start: Item | None) -> Plan[Found]:
    """With a limit, that many (fewer only at the end); without, what one request brings.

    A filter works after DynamoDB has counted its limit. So with one, more items are asked for than
    are wanted, four times as many in each request, and the page ends behind the last one shown.
    """
    access, is_exact = question.range.access, question.is_exact
    decode_item = access.decode if access.kind is not None else lambda item: _read_or_plain(layout, item)
    entities: list[Any] = []
    ask = limit if limit is None or is_exact else max(4 * limit, 100)
    while True:
        response: PageResponse
        (response,) = yield (question.request(layout.table, ask, start),)
        before = len(entities)
        items: Sequence[Item] = response.items
        if access.is_partial:
            items = yield from whole(layout, items)
        for item in items:
            if DELETING in item:
                del entities[before:]
                items = yield from visible(layout, list(items))
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
            return Found(entities[:limit], layout.start_after(last, access.index))
        if len(entities) == limit:
            return Found(entities, start)
        ask = limit - len(entities) if is_exact else min(4 * (ask or limit), 100_000)


def whole(layout: BoundLayout, entries: Sequence[Item]) -> Plan[list[Item]]:
    """The items that entries of an index stand for, without those that are gone meanwhile."""
    gets = [Get(layout.table, layout.key_of(entry)) for entry in entries]
    items = yield from get_all(gets)
    return [entry | item for entry, item in zip(entries, items, strict=True) if item is not None]


def _read_or_plain(layout: BoundLayout, item: Item) -> Any:
    """What an item is, or its plain values if no class explains it."""
    if layout.is_bookkeeping(item):
        return None
    entity = layout.read(item)
    return {name: decode(value) for name, value in item.items()} if entity is None else entity


def _item_of(items: Iterable[Item], decode_item: Callable[[Item], Any], number: int) -> Item:
    """The item that gave the result of that number, counted from 1."""
    giving = (item for item in items if decode_item(item) is not None)
    return next(islice(giving, number - 1, None))


def count(layout: BoundLayout, question: Question, most: int | None) -> Plan[int]:
    """How many there are; the items themselves are brought only where they must be looked at."""
    total = 0
    start: Item | None = None
    blind = question.with_(filter=Not(Exists(attribute(DELETING))))
    while True:
        response: PageResponse | None = None
        if question.is_exact and question.range.access.told_by_keys and not question.range.access.is_partial:
            (response,) = yield (blind.request(layout.table, None, start, count=True),)
        if response is not None and response.count == response.scanned:
            total, last = total + response.count, response.last
        else:
            found = yield from page(layout, question, None, start)
            total, last = total + len(found.entities), found.last
        if last is None or (most is not None and total >= most):
            return total if most is None else min(total, most)
        start = last


def far_nodes(layout: BoundLayout, kind: NodeType, ids: list[Any], consistent: bool) -> Plan[dict[Any, Any]]:
    """The nodes at the far ends of edges, by id."""
    distinct = list(dict.fromkeys(ids))
    nodes = yield from get_many(layout, kind, distinct, consistent)
    return {id: node for id, node in zip(distinct, nodes, strict=True) if node is not None}
