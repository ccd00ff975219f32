"""Deleting a node with all its edges, so that nobody ever sees half of it.

A node whose edges fit into one transaction goes in that transaction, and then a last look finds what
was connected meanwhile. A larger one goes in steps that may stop anywhere and be run again:

1. mark every edge with the token of this delete, until a look finds no other; a marked edge
   is still there for everybody;
2. switch: in one transaction remove the node and record the token in its partition; from then on
   whoever meets an edge with that mark looks the record up and does not show the edge;
3. remove the edges, those in the node's own partition last, then the record.

A reader pays nothing for this unless it meets a mark; then it is one batch get for the records.

A node with edges that somebody counts at once goes otherwise, in `counted_deletion`, which does the same with the
edges that nobody counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from adjoin.errors import ConditionFailed, InvalidItem, InvalidKey, TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import Add, Compare, Condition, Contains, Discard, Exists, Not, Value, all_of, attribute
from adjoin.layouts.interface import DELETING, BoundLayout
from adjoin.plans import Plan
from adjoin.plans.batches import BATCHES_A_ROUND, Place, chunks, get_all, place_of
from adjoin.plans.revisions import claimable, unchanged
from adjoin.requests import Check, Delete, Get, PageResponse, Query, TransactWrite, Update
from adjoin.schema import EdgeType, NodeType
from adjoin.units import MAX_ITEM_SIZE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import Item, item_size

TOKENS = "tokens"
_MARK_SIZE = 64
"""Bytes of a mark without the node's key: its attribute's name and its token."""
_NEEDLESS = ("ConditionalCheckFailed", "ValidationError")
UNMARKED = Not(Exists(attribute(DELETING)))
"""Holds for an edge without marks; with any, only the records of deletes tell whether it is there."""

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


@dataclass(frozen=True)
class Counted:
    """An edge that somebody counts at once: the keys of its items and of their copies, and of the nodes at its ends."""

    kind: EdgeType
    keys: tuple[Item, ...]
    copies: tuple[Item, ...]
    source: str
    target: str
    size: int
    is_marked: bool
    same: Condition | None = None
    """What must hold of it for it to go."""


@dataclass
class Neighbourhood:
    """What lies at a node: itself, its edges by key with their sizes, and deletes past their switch."""

    node: Item | None = None
    edges: dict[Place, Item] = field(default_factory=dict)
    sizes: dict[Place, int] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    counted: dict[Place, Counted] = field(default_factory=dict)
    """The edges of classes that are to be kept apart from the others."""

    def add(self, key: Item, item: Item, size: int) -> None:
        place = place_of(key)
        self.edges[place] = key | {name: value for name, value in item.items() if name == DELETING}
        self.sizes[place] = size

    def fits_one_transaction(self, own: int) -> bool:
        """Whether all of it does, where the node itself takes so many writes."""
        return len(self.edges) + own <= MAX_TRANSACTION and self.size < MAX_TRANSACTION_SIZE

    def also(self, before: Neighbourhood) -> Neighbourhood:
        """The same with the edges of a former look, which an index may not show any more, or not yet."""
        return replace(self, edges=before.edges | self.edges, sizes=before.sizes | self.sizes)

    @property
    def size(self) -> int:
        return sum(self.sizes.values()) + (item_size(self.node) if self.node else 0)

    @property
    def is_empty(self) -> bool:
        return self.node is None and not self.edges and not self.counted


def delete_node(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None) -> Plan[bool]:
    """Removes the node and every edge at it; says whether there was anything to remove.

    With a lock, `ConditionFailed` if the node does not have the version that it asks for.
    """
    text = layout.node_text(kind, id)
    key = layout.node_key(kind, id)
    around = yield from gather(layout, kind, id)
    resumed = bool(around.tokens)
    for token in sorted(around.tokens):
        yield from sweep(layout, text, key, token, around)
    if resumed:
        around = yield from gather(layout, kind, id)
    refuse_stale(kind, id, around.node, lock)
    found = resumed or not around.is_empty
    is_gone = False

    def own() -> list[Delete | Check]:
        # One that somebody made anew, after this has removed it, is not this delete's to remove.
        if is_gone:
            return [Check(layout.table, key, Not(layout.present))]
        return [*own_writes(layout, kind, key, around.node, lock)]

    while around.fits_one_transaction(len(own())):
        edges = [Delete(layout.table, layout.key_of(edge)) for edge in around.edges.values()]
        is_gone = (yield from _done([*own(), *edges])) or is_gone
        # What somebody connected between the look and the transaction would hang there for ever.
        around = yield from gather(layout, kind, id)
        if is_gone and (around.node is not None or not around.edges):
            return found
        if not is_gone:
            refuse_stale(kind, id, around.node, lock)
    token = uuid.uuid4().hex
    around = yield from mark_all(layout, kind, id, token, around, set())
    while not (yield from _done([*own(), record_of(layout, text, token)])):
        if is_gone:
            return found
        around.node = (yield from get_all([Get(layout.table, key, consistent=True)]))[0]
        refuse_stale(kind, id, around.node, lock)
    after = yield from gather(layout, kind, id)
    yield from sweep(layout, text, key, token, after.also(around))
    return found


def mark_all(
    layout: BoundLayout,
    kind: NodeType,
    id: object,
    token: str,
    around: Neighbourhood,
    marked: set[Place],
    apart: Collection[EdgeType] = (),
) -> Plan[Neighbourhood]:
    """Marks every edge that is not `marked`, and those that somebody connects meanwhile; gives what there is then."""
    while unmarked := [place for place in around.edges if place not in marked]:
        yield from _mark(layout, layout.node_text(kind, id), token, around, unmarked)
        marked.update(unmarked)
        around = yield from gather(layout, kind, id, apart)
    return around


def record_of(layout: BoundLayout, text: str, token: str) -> Update:
    """What records that a delete is past its switch."""
    return Update(layout.table, layout.deletion_key(text), (Add(attribute(TOKENS), {"SS": [token]}),))


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


def own_writes(
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


def _done(writes: Sequence[Delete | Update | Check]) -> Plan[bool]:
    """Writes all together; says no if the first, the node, is not what was read any more."""
    while True:
        try:
            alone = [write for write in writes if not isinstance(write, Check)] if len(writes) == 1 else []
            yield alone or (TransactWrite(tuple(writes)),)
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
    around = yield from gather(layout, kind, id)
    refuse_stale(kind, id, around.node, lock)
    own = own_writes(layout, kind, layout.node_key(kind, id), around.node, lock)
    # What is left of a former delete is nobody's any more, and stays hidden.
    edges = yield from visible(layout, [*around.edges.values()])
    return [*own, *(Delete(layout.table, layout.key_of(edge)) for edge in edges)]


def gather(layout: BoundLayout, kind: NodeType, id: object, apart: Collection[EdgeType] = ()) -> Plan[Neighbourhood]:
    """What lies at a node; edges of some classes are told apart."""
    around = Neighbourhood()
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
                _add(layout, kind, item, size, around, apart, is_partial=query.index in partial)
            if response.last is not None:
                following.append(replace(query, start=response.last))
        open_queries = following
    return around


def _add(
    layout: BoundLayout,
    kind: NodeType,
    item: Item,
    size: int,
    around: Neighbourhood,
    apart: Collection[EdgeType],
    *,
    is_partial: bool,
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
        keys = (layout.key_of(item), *layout.twin_keys(found, item))
        ends = _ends(layout, found, item) if found in apart else None
        if ends is not None:
            around.counted[place_of(keys[0])] = Counted(found, keys, tuple(copies), *ends, size, DELETING in item)
            return
        for key in (*keys, *copies):
            around.add(key, item, size)


def _ends(layout: BoundLayout, kind: EdgeType, item: Item) -> tuple[str, str] | None:
    """The ends of an edge; None for what only has the key of one and leads nowhere, which nobody counts."""
    try:
        return layout.ends(kind, item)
    except (InvalidItem, InvalidKey):
        return None


def _mark(layout: BoundLayout, text: str, token: str, around: Neighbourhood, places: list[Place]) -> Plan[None]:
    mark = (Add(attribute(DELETING), {"SS": [f"{token}:{text}"]}),)
    waiting = list(_transactions(around, places, _MARK_SIZE + len(text.encode()), MAX_TRANSACTION))
    while waiting:
        some = waiting.pop()
        updates = tuple(
            Update(layout.table, layout.key_of(around.edges[place]), mark, condition=layout.present) for place in some
        )
        try:
            yield (TransactWrite(updates),)
        except TransactionCanceled as canceled:
            # An edge that somebody removed meanwhile needs no mark, and one that is full has no room for it.
            left = [place for place, reason in zip(some, canceled.reasons, strict=True) if reason.code not in _NEEDLESS]
            if len(left) == len(some):
                raise
            if left:
                waiting.append(left)


def _transactions(around: Neighbourhood, places: Iterable[Place], more: int, most: int) -> Iterator[list[Place]]:
    """Places in groups of what one transaction takes, each item grown by `more` bytes."""
    group: list[Place] = []
    size = 0
    for place in places:
        grown = around.sizes[place] + more
        if group and (len(group) == most or size + grown > MAX_TRANSACTION_SIZE):
            yield group
            group, size = [], 0
        group.append(place)
        size += grown
    if group:
        yield group


def sweep(layout: BoundLayout, text: str, key: Item, token: str, around: Neighbourhood) -> Plan[None]:
    """Removes what the delete with this token left of the node with this key, then the record of it.

    If the node is there again, somebody made it anew, and edges without the mark are of the new one: also those
    that are put again meanwhile. So each goes only as long as it has the mark, or there is no node.
    """
    marked = Contains(attribute(DELETING), Value({"S": f"{token}:{text}"}))
    absent = Check(layout.table, key, Not(layout.present))
    # The node's own partition goes last: the other half of a symmetric edge is found only through it.
    for is_own in (False, True):
        places = [place for place in around.edges if (place[0] == text) is is_own]
        having = [place for place in places if (text, token) in _marks(around.edges[place])]
        yield from _remove(layout, around, having, marked)
        if around.node is None:
            yield from _remove(layout, around, [place for place in places if place not in {*having}], None, absent)
    record = layout.deletion_key(text)
    only = Compare("=", attribute(TOKENS), Value({"SS": [token]}))
    try:
        yield (Delete(layout.table, record, condition=only),)
    except ConditionFailed as failed:
        if failed.item is not None:
            yield (Update(layout.table, record, (Discard(attribute(TOKENS), {"SS": [token]}),)),)


def _remove(
    layout: BoundLayout, around: Neighbourhood, places: Iterable[Place], wanted: Condition | None, *checks: Check
) -> Plan[None]:
    """Removes edges for which something holds, in transactions side by side."""
    groups = _transactions(around, places, 0, MAX_TRANSACTION - len(checks))
    requests: Iterator[tuple[Delete | Check, ...]] = (
        (*checks, *(Delete(layout.table, layout.key_of(around.edges[place]), wanted) for place in group))
        for group in groups
    )
    for some in chunks(requests, BATCHES_A_ROUND):
        try:
            yield tuple(TransactWrite(writes) for writes in some)
        except TransactionCanceled:
            for writes in some:
                yield from _remove_those_left(writes)


def _remove_those_left(writes: Sequence[Delete | Check]) -> Plan[None]:
    """Deletes without those whose condition does not hold any more; nothing, if that is so of a check."""
    while any(isinstance(write, Delete) for write in writes):
        try:
            yield (TransactWrite(tuple(writes)),)
            return
        except TransactionCanceled as canceled:
            failed = [reason.code == "ConditionalCheckFailed" for reason in canceled.reasons]
            if not any(failed):
                raise
            if any(isinstance(write, Check) for write, has_failed in zip(writes, failed, strict=True) if has_failed):
                return
            writes = [write for write, has_failed in zip(writes, failed, strict=True) if not has_failed]
