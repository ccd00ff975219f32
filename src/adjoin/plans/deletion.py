"""Deleting a node with all its edges, so that nobody ever sees half of it.

A node whose edges fit into one transaction goes in that transaction, and then a last look finds what
was connected meanwhile. A larger one goes in steps that may stop anywhere and be run again:

1. mark every edge with the token of this delete, until a look finds no other; a marked edge
   is still there for everybody;
2. switch: in one transaction remove the node and record the token in its partition; from then on
   whoever meets an edge with that mark looks the record up and does not show the edge;
3. remove the edges, those in the node's own partition last, then the record.

A reader pays nothing for this unless it meets a mark; then it is one batch get for the records.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from adjoin.errors import ConditionFailed, TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import Add, Compare, Condition, Discard, Value, all_of, attribute
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import BATCHES_A_ROUND, Place, chunks, get_all, place_of, write_all
from adjoin.plans.revisions import claimable, unchanged
from adjoin.requests import Delete, Get, PageResponse, Query, TransactWrite, Update
from adjoin.schema import EdgeType, NodeType
from adjoin.units import MAX_BATCH_WRITE, MAX_ITEM_SIZE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import Item, item_size

TOKENS = "tokens"
_MARK_SIZE = 64
"""Bytes of a mark without the node's key: its attribute's name and its token."""
_UNMARKED = ("ConditionalCheckFailed", "ValidationError")

# --- what readers do ---------------------------------------------------------------------------


def visible(layout: BoundLayout, items: list[Item]) -> Plan[list[Item]]:
    """The items without those that are edges of a node whose delete has passed its switch."""
    marked = [item for item in items if DELETING in item]
    if not marked:
        return items
    nodes = list({node for item in marked for node, _ in _marks(item)})
    records = yield from get_all([Get(layout.table, layout.deletion_key(node), consistent=True) for node in nodes])
    gone = {(node, token) for node, record in zip(nodes, records, strict=True) for token in _tokens(record)}
    return [item for item in items if DELETING not in item or gone.isdisjoint(_marks(item))]


def _marks(item: Item) -> set[tuple[str, str]]:
    marks = (mark.partition(":") for mark in item.get(DELETING, {}).get("SS", ()))
    return {(node, token) for token, _, node in marks}


def _tokens(record: Item | None) -> set[str]:
    return set(record[TOKENS]["SS"]) if record and TOKENS in record else set()


# --- deleting ----------------------------------------------------------------------------------


@dataclass
class _Neighbourhood:
    """What lies at a node: itself, its edges by key with their sizes, and deletes past their switch."""

    node: Item | None = None
    edges: dict[Place, Item] = field(default_factory=dict)
    sizes: dict[Place, int] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)

    def add(self, key: Item, item: Item, size: int) -> None:
        place = place_of(key)
        self.edges[place] = key | {name: value for name, value in item.items() if name == DELETING}
        self.sizes[place] = size

    def fits_one_transaction(self, own: int) -> bool:
        """Whether all of it does, where the node itself takes so many writes."""
        size = sum(self.sizes.values()) + (item_size(self.node) if self.node else 0)
        return len(self.edges) + own <= MAX_TRANSACTION and size < MAX_TRANSACTION_SIZE


def delete_node(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None) -> Plan[bool]:
    """Removes the node and every edge at it; says whether there was anything to remove.

    With a lock, `ConditionFailed` if the node does not have the version that it asks for.
    """
    text = layout.node_text(kind, id)
    key = layout.node_key(kind, id)
    around = yield from _gather(layout, kind, id)
    resumed = bool(around.tokens)
    for token in sorted(around.tokens):
        yield from _sweep(layout, text, token, around)
    if resumed:
        around = yield from _gather(layout, kind, id)
    refuse_stale(kind, id, around.node, lock)
    found = resumed or around.node is not None or bool(around.edges)
    while around.fits_one_transaction(len(own := _own(layout, kind, key, around.node, lock))):
        deletes: list[Delete | Update] = [
            *own,
            *(Delete(layout.table, layout.key_of(edge)) for edge in around.edges.values()),
        ]
        if not (yield from _done(deletes)):
            around = yield from _gather(layout, kind, id)
            refuse_stale(kind, id, around.node, lock)
            continue
        # What somebody connected between the look and the transaction would hang there for ever.
        around = yield from _gather(layout, kind, id)
        if around.node is not None or not around.edges:
            return found
    token = uuid.uuid4().hex
    marked: set[Place] = set()
    # What somebody connects meanwhile is found by looking again.
    while unmarked := [place for place in around.edges if place not in marked]:
        yield from _mark(layout, text, token, around, unmarked)
        marked.update(unmarked)
        around = yield from _gather(layout, kind, id)
    record = Update(layout.table, layout.deletion_key(text), (Add(attribute(TOKENS), {"SS": [token]}),))
    while not (yield from _done([*_own(layout, kind, key, around.node, lock), record])):
        around.node = (yield from get_all([Get(layout.table, key, consistent=True)]))[0]
        refuse_stale(kind, id, around.node, lock)
    after = yield from _gather(layout, kind, id)
    after.edges = around.edges | after.edges
    yield from _sweep(layout, text, token, after)
    return found


def refuse_stale(kind: NodeType, id: object, node: Item | None, lock: Condition | None) -> None:
    """A delete of a node that has another version than whoever deletes it knows."""
    if lock is None or node is None or condition_test(lock)(node):
        return
    version = node.get(kind.attribute(kind.version or ""), {"N": "none"})
    raise ConditionFailed(
        f"{kind.name} {id!r} has another version than the one to delete (its version is {version['N']}); "
        f"read it again and decide anew, or pass if_version=None to delete it all the same",
        node,
    )


def _own(
    layout: BoundLayout, kind: NodeType, key: Item, node: Item | None, lock: Condition | None = None
) -> list[Delete]:
    """The deletes of a node itself and of what stands beside it, as long as it is what was read."""
    if not layout.has_satellites(kind):
        return [Delete(layout.table, key, lock)]
    satellites = layout.satellites_beside(kind, node) if node is not None else []
    return [
        Delete(layout.table, key, all_of(unchanged(layout, node), lock)),
        *(Delete(layout.table, each.key, claimable(each)) for each in satellites),
    ]


def _done(writes: Sequence[Delete | Update]) -> Plan[bool]:
    """Writes all together; says no if the first, the node, is not what was read any more."""
    while True:
        try:
            yield (TransactWrite(tuple(writes)) if len(writes) > 1 else writes[0],)
            return True
        except ConditionFailed:
            return False
        except TransactionCanceled as canceled:
            failed = [reason.code == "ConditionalCheckFailed" for reason in canceled.reasons]
            if failed[0]:
                return False
            if not any(failed):
                raise
            # A claim that belongs to somebody else stays.
            writes = [write for write, has_failed in zip(writes, failed, strict=True) if not has_failed]


def doomed(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None) -> Plan[list[Delete]]:
    """The deletes of a node, first, and of every edge at it, for a delete inside a larger transaction."""
    around = yield from _gather(layout, kind, id)
    refuse_stale(kind, id, around.node, lock)
    own = _own(layout, kind, layout.node_key(kind, id), around.node, lock)
    return [*own, *(Delete(layout.table, layout.key_of(edge)) for edge in around.edges.values())]


def _gather(layout: BoundLayout, kind: NodeType, id: object) -> Plan[_Neighbourhood]:
    around = _Neighbourhood()
    ranges = [layout.collection(kind, id, arriving=False)]
    if any(edge.target is kind and not edge.symmetric for edge in layout.schema.edges.values()):
        ranges.append(layout.collection(kind, id, arriving=True))
    partial = {each.access.index for each in ranges if each.access.is_partial}
    open_queries = [
        Query(
            layout.table,
            (each.access.partition_key, {"S": each.partition}),
            index=each.access.index,
            consistent=each.access.index is None,
        )
        for each in ranges
    ]
    while open_queries:
        responses: list[PageResponse] = yield tuple(open_queries)
        following = []
        for query, response in zip(open_queries, responses, strict=True):
            for item in response.items:
                # How large an item is that an index holds parts of is not known from there.
                size = MAX_ITEM_SIZE if query.index in partial else item_size(item)
                _add(layout, kind, item, size, around, is_partial=query.index in partial)
            if response.last is not None:
                following.append(replace(query, start=response.last))
        open_queries = following
    return around


def _add(
    layout: BoundLayout, kind: NodeType, item: Item, size: int, around: _Neighbourhood, *, is_partial: bool
) -> None:
    if layout.is_bookkeeping(item):
        around.tokens |= _tokens(item)
        return
    found = layout.kind_of(item)
    if found is kind:
        around.node = item
    elif isinstance(found, EdgeType):
        # Without its attributes it is not told which copies an edge has; a delete of none does no harm.
        copies = (
            layout.copy_keys(found, layout.key_of(item))
            if is_partial
            else [satellite.key for satellite in layout.satellites_beside(found, item)]
        )
        for key in (layout.key_of(item), *layout.twin_keys(found, item), *copies):
            around.add(key, item, size)


def _mark(layout: BoundLayout, text: str, token: str, around: _Neighbourhood, places: list[Place]) -> Plan[None]:
    mark = (Add(attribute(DELETING), {"SS": [f"{token}:{text}"]}),)
    waiting = list(_transactions(around, places, _MARK_SIZE + len(text.encode())))
    while waiting:
        some = waiting.pop()
        updates = tuple(
            Update(layout.table, layout.key_of(around.edges[place]), mark, condition=layout.present) for place in some
        )
        try:
            yield (TransactWrite(updates),)
        except TransactionCanceled as canceled:
            # An edge that somebody removed meanwhile needs no mark, and one that is full has no room for it.
            left = [place for place, reason in zip(some, canceled.reasons, strict=True) if reason.code not in _UNMARKED]
            if len(left) == len(some):
                raise
            if left:
                waiting.append(left)


def _transactions(around: _Neighbourhood, places: list[Place], more: int) -> Iterator[list[Place]]:
    """Places in groups of what one transaction takes, each item grown by `more` bytes."""
    group: list[Place] = []
    size = 0
    for place in places:
        grown = around.sizes[place] + more
        if group and (len(group) == MAX_TRANSACTION or size + grown > MAX_TRANSACTION_SIZE):
            yield group
            group, size = [], 0
        group.append(place)
        size += grown
    if group:
        yield group


def _sweep(layout: BoundLayout, text: str, token: str, around: _Neighbourhood) -> Plan[None]:
    """Removes what the delete with this token left, then the record of it.

    If the node is there again, somebody made it anew, and edges without the mark are of the new one.
    """
    mark = (text, token)
    doomed = [place for place, edge in around.edges.items() if around.node is None or mark in _marks(edge)]
    # The node's own partition goes last: the other half of a symmetric edge is found only through it.
    for is_own in (False, True):
        group = [layout.key_of(around.edges[place]) for place in doomed if (place[0] == text) is is_own]
        for some in chunks(group, MAX_BATCH_WRITE * BATCHES_A_ROUND):
            yield from write_all(Delete(layout.table, key) for key in some)
    record = layout.deletion_key(text)
    only = Compare("=", attribute(TOKENS), Value({"SS": [token]}))
    try:
        yield (Delete(layout.table, record, condition=only),)
    except ConditionFailed as failed:
        if failed.item is not None:
            yield (Update(layout.table, record, (Discard(attribute(TOKENS), {"SS": [token]}),)),)
