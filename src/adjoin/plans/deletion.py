"""Deleting a node with all its edges and children, so that nobody ever sees half of it.

If nothing else can belong to the node, one request removes it. If everything fits into one transaction, that
transaction removes it, and a last look finds edges that were connected meanwhile. A larger node is deleted in steps.
Each step may be interrupted and run again. What is said here of edges holds for children too:

1. mark every edge with the token of this delete, until a look finds no edge without the mark; a marked edge is still
   visible to everybody;
2. switch: one transaction removes the node and writes the token into the deletion record, under the node key;
   from then on, a reader that finds an edge with that mark looks the record up and hides the edge;
3. remove the edges, those in the node's own partition last, then the record.

A reader pays nothing for this unless it finds a mark; then it pays one batch get for the records.

`counted_deletion` deletes a node with edges that are counted in transaction. It does the same with its other edges.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import FAILED_CONDITION, ConditionFailed, InvalidItem, InvalidKey, TransactionCanceled
from adjoin.evaluate import condition_test
from adjoin.expressions import (
    Add,
    And,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    Not,
    Or,
    Value,
    all_of,
    attribute,
)
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import Due
from adjoin.layouts.interface import DELETING, Satellite
from adjoin.layouts.ranges import Range
from adjoin.plans.declared import check_due
from adjoin.plans.shards import fresh_numbers
from adjoin.plans.steps.again import claimable, same, unchanged
from adjoin.plans.steps.batches import BATCHES_A_ROUND, Pages, Place, chunks, get_all, place_of
from adjoin.requests import Check, Delete, Get, ItemResponse, Plan, Query, TransactWrite, Update
from adjoin.units import MAX_ITEM_SIZE, MAX_TRANSACTION, MAX_TRANSACTION_SIZE
from adjoin.values import Item, decode, item_size

TOKENS = "tokens"
_MARK_SIZE = 64
"""Size in bytes of a mark without the node key: the attribute's name and the token."""
_NEEDLESS = (FAILED_CONDITION, "ValidationError")
"""Reasons for which an edge gets no mark: it does not exist any more, or its item would exceed 400 KB."""
UNMARKED = Not(Exists(attribute(DELETING)))
"""Holds for an edge without marks. Whether an edge with a mark is visible, only the deletion records say."""

# --- what readers do ---------------------------------------------------------------------------


def visible(layout: BoundLayout, items: list[Item]) -> Plan[list[Item]]:
    """The items without the edges of nodes whose delete has passed its switch."""
    if not any(DELETING in item for item in items):
        return items
    keys = records_of(layout, items)
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    return unhidden(items, dict(zip(keys, found, strict=True)))


def records_of(layout: BoundLayout, items: Iterable[Item]) -> dict[str, Item]:
    """The keys of the deletion records that say whether these items are hidden, by the node keys in their marks."""
    nodes = {node for item in items for node, _ in _marks(item)}
    return {node: layout.deletion_key(node) for node in nodes}


def unhidden(items: list[Item], records: Mapping[str, Item | None]) -> list[Item]:
    """The items that none of these deletion records hides."""
    gone = {(node, token) for node, record in records.items() for token in _tokens(record)}
    return [item for item in items if gone.isdisjoint(_marks(item))]


def _marks(item: Item) -> set[tuple[str, str]]:
    marks = (mark.partition(":") for mark in item.get(DELETING, {}).get("SS", ()))
    return {(node, token) for token, _, node in marks}


def _tokens(record: Item | None) -> set[str]:
    return set(record[TOKENS]["SS"]) if record and TOKENS in record else set()


# --- deleting ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """An edge that is counted in transaction: the keys of its items, of its index copies, and of its two nodes."""

    kind: EdgeType
    keys: tuple[Item, ...]
    copies: tuple[Item, ...]
    source: str
    target: str
    size: int
    is_marked: bool
    claims: tuple[Satellite, ...] = ()
    """Its claims to nodes, which are removed with it as far as they are its own."""
    same: Condition | None = None
    """The condition under which it is removed."""


@dataclass(slots=True)
class Neighbourhood:
    """A node with its edges by key, their sizes, and the tokens of deletes that have passed their switch."""

    node: Item | None = None
    edges: dict[Place, Item] = field(default_factory=dict)
    sizes: dict[Place, int] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    counted: dict[Place, Counted] = field(default_factory=dict)
    """The edges of the classes that `gather` was asked to keep apart."""
    own: set[Place] = field(default_factory=set)
    """The items that were found because they belong to the node: those of edges that leave it, and of children."""
    held: dict[Place, Condition] = field(default_factory=dict)
    """The conditions under which items are removed: an edge whose key does not tell its ends must still have them."""

    def add(self, key: Item, item: Item, size: int) -> None:
        place = place_of(key)
        self.edges[place] = {**key, DELETING: item[DELETING]} if DELETING in item else key
        self.sizes[place] = size

    def fits_one_transaction(self, own: int) -> bool:
        """Whether everything fits, if the node itself takes `own` writes."""
        return len(self.edges) + own <= MAX_TRANSACTION and self.size < MAX_TRANSACTION_SIZE

    def also(self, before: Neighbourhood) -> Neighbourhood:
        """The same with the edges of an earlier look, because an index is only eventually consistent."""
        return replace(
            self,
            edges=before.edges | self.edges,
            sizes=before.sizes | self.sizes,
            own=before.own | self.own,
            held=before.held | self.held,
        )

    def delete(self, layout: BoundLayout, place: Place, wanted: Condition | None = None) -> Delete:
        """The request that removes an edge."""
        held = self.held.get(place)
        return Delete(layout.table, layout.key_of(self.edges[place]), wanted if held is None else all_of(held, wanted))

    @property
    def size(self) -> int:
        return sum(self.sizes.values()) + (item_size(self.node) if self.node else 0)

    @property
    def is_empty(self) -> bool:
        return self.node is None and not self.edges and not self.counted


def delete_node(
    layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None, *, must_find: bool = True
) -> Plan[bool]:
    """Removes the node and all its edges; returns whether there was anything to remove.

    With a lock, raises `ConditionFailed` if the node does not have the version that the lock asks for. Edges that
    cannot be found raise `InvalidModel`, or stay if `must_find` is false.
    """
    if not layout.has_edges(kind) and not layout.has_satellites(kind):
        return (yield from _delete_alone(layout, kind, id, lock))
    node_key = layout.node_text(kind, id)
    key = layout.node_key(kind, id)
    around = yield from gather(layout, kind, id, must_find=must_find)
    resumed = bool(around.tokens)
    # An earlier delete was interrupted after its switch. First the edges go that it has hidden from everybody.
    for token in sorted(around.tokens):
        yield from sweep(layout, node_key, key, token, around)
    if resumed:
        around = yield from gather(layout, kind, id, must_find=must_find)
    refuse_stale(kind, id, around.node, lock)
    found = resumed or not around.is_empty
    is_gone = False

    def own() -> list[Delete | Check]:
        # If another program creates the node again after this delete removed it, the new node must stay.
        if is_gone:
            return [Check(layout.table, key, Not(layout.present))]
        return [*own_writes(layout, kind, key, around.node, lock)]

    while around.fits_one_transaction(len(writes := own())):
        edges = [around.delete(layout, place) for place in around.edges]
        is_gone = (yield from _done([*writes, *edges])) or is_gone
        # An edge that was connected between the look and the transaction would be a dangling edge for ever.
        around = yield from gather(layout, kind, id, must_find=must_find)
        if is_gone and (around.node is not None or not around.edges):
            return found
        if not is_gone:
            refuse_stale(kind, id, around.node, lock)
    if layout.why_no_own_items is not None:
        raise InvalidKey(
            f"{kind.name} {id!r} has {len(around.edges):,} edges, too many for one transaction, and a delete in steps "
            f"needs a record in an item of adjoin's own, which this table cannot hold: {layout.why_no_own_items}; "
            f"disconnect the edges first"
        )
    token = uuid.uuid4().hex
    around = yield from mark_all(layout, kind, id, token, around, set(), must_find=must_find)
    while not (yield from _done([*own(), record_of(layout, node_key, token)])):
        if is_gone:
            return found
        # The node has changed since it was read. Its edges are marked already, so only the node is read again.
        around.node = (yield from get_all([Get(layout.table, key, consistent=True)]))[0]
        refuse_stale(kind, id, around.node, lock)
    after = yield from gather(layout, kind, id, must_find=must_find)
    yield from sweep(layout, node_key, key, token, after.also(around))
    return found


def _delete_alone(layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None) -> Plan[bool]:
    """Removes a node of a class that has no edges, no children and no satellites: its item is all there is."""
    response: ItemResponse
    wanted = all_of(layout.fit(kind).labelled, lock)
    try:
        (response,) = yield (Delete(layout.table, layout.node_key(kind, id), wanted, return_old=True),)
    except ConditionFailed as failed:
        if failed.item is None:
            raise
        item = dict(failed.item)
        refuse_foreign(layout, kind, item)
        if not (yield from visible(layout, [item])):
            # A hidden child is already deleted for everybody, so its version does not matter.
            return False
        refuse_stale(kind, id, item, lock)
        raise
    return response.item is not None and bool((yield from visible(layout, [response.item])))


def mark_all(
    layout: BoundLayout,
    kind: NodeType,
    id: object,
    token: str,
    around: Neighbourhood,
    marked: set[Place],
    apart: Collection[EdgeType] = (),
    *,
    must_find: bool = True,
) -> Plan[Neighbourhood]:
    """Marks every edge that is not in `marked`, also edges that are connected meanwhile; returns the last look."""
    while unmarked := [place for place in around.edges if place not in marked]:
        yield from _mark(layout, layout.node_text(kind, id), token, around, unmarked)
        marked.update(unmarked)
        around = yield from gather(layout, kind, id, apart, must_find=must_find)
    return around


def record_of(layout: BoundLayout, node_key: str, token: str) -> Update:
    """The write of the deletion record: the delete with this token has passed its switch."""
    return Update(layout.table, layout.deletion_key(node_key), (Add(attribute(TOKENS), {"SS": [token]}),))


def refuse_foreign(layout: BoundLayout, kind: EntityType, item: Item) -> None:
    """Refuses an item under the key of an entity that is of another type: another program's, which stays."""
    if layout.kind_of(item) is None:
        raise another_type(kind, item)


def another_type(kind: EntityType, item: Item) -> InvalidItem:
    shown = {name: decode(value) for name, value in list(item.items())[:3]}
    return InvalidItem(
        f"the key of a {kind.name} holds an item of another type ({shown}); correct its type attribute or its index "
        f"keys, or the layout"
    )


def refuse_stale(kind: NodeType, id: object, node: Item | None, lock: Condition | None) -> None:
    """Refuses to delete a node for which the lock does not hold: its version, its class, or what only_if asks."""
    if lock is None or node is None or condition_test(lock)(node):
        return
    stored = None if kind.version is None else node.get(kind.attribute(kind.version))
    version = "" if stored is None else f" (its version is {next(iter(stored.values()))})"
    raise ConditionFailed(
        f"{kind.name} {id!r} does not meet the condition of the delete{version}: it has another version or "
        f"another class, or only_if does not hold; reload it and retry",
        node,
    )


def own_writes(
    layout: BoundLayout, kind: NodeType, key: Item, node: Item | None, lock: Condition | None = None
) -> list[Delete]:
    """The deletes of a node's own item and of its satellites, conditional on what was read."""
    if not layout.has_satellites(kind):
        return [Delete(layout.table, key, lock)]
    satellites = layout.satellites_beside(kind, node) if node is not None else []
    return [
        Delete(layout.table, key, all_of(unchanged(layout, node), lock)),
        *(Delete(layout.table, each.key, claimable(each)) for each in satellites),
    ]


def _done(writes: Sequence[Delete | Update | Check]) -> Plan[bool]:
    """Performs all writes in one transaction; returns False if the node, the first of them, has changed since."""
    while True:
        try:
            # A single write needs no transaction, which would cost twice as much.
            alone = [write for write in writes if not isinstance(write, Check)] if len(writes) == 1 else []
            yield alone or (TransactWrite(tuple(writes)),)
            return True
        except ConditionFailed:
            return False
        except TransactionCanceled as canceled:
            failed = [reason.is_failed_condition for reason in canceled.reasons]
            if failed[0]:
                return False
            if not any(failed):
                raise
            # Another node has taken a claim over; it stays, and the rest is tried again.
            writes = [write for write, has_failed in zip(writes, failed, strict=True) if not has_failed]


def doomed(
    layout: BoundLayout, kind: NodeType, id: object, lock: Condition | None = None, *, must_find: bool = True
) -> Plan[list[Delete]]:
    """The deletes of a node (first) and of all its edges, for a delete inside a larger transaction."""
    around = yield from gather(layout, kind, id, must_find=must_find)
    refuse_stale(kind, id, around.node, lock)
    own = own_writes(layout, kind, layout.node_key(kind, id), around.node, lock)
    below: dict[Place, Delete] = {}
    for child, child_id in (yield from joined_children(layout, kind, id)):
        below |= {
            place_of(each.key): each for each in (yield from doomed(layout, child, child_id, must_find=must_find))
        }
    # Edges that an earlier delete has hidden do not belong to this node; they stay hidden.
    edges = yield from visible(layout, [*around.edges.values()])
    places = [place_of(layout.key_of(edge)) for edge in edges]
    deletes = {place: around.delete(layout, place) for place in places}
    return [*own, *(deletes | below).values()]


def gather(
    layout: BoundLayout, kind: NodeType, id: object, apart: Collection[EdgeType] = (), *, must_find: bool = True
) -> Plan[Neighbourhood]:
    """Reads a node and all its edges; edges of the classes in `apart` are kept apart as `counted`.

    Edges that cannot be found raise `InvalidModel`, or are left out if `must_find` is false.
    """
    around, node_key = Neighbourhood(), layout.node_text(kind, id)
    if layout.shard_numbers:
        yield from fresh_numbers(layout)
    # Without edges there is no deletion record, and one that is found is of another node in the same partition.
    has_record = layout.has_edges(kind) and layout.why_no_own_items is None
    record = layout.deletion_key(node_key) if has_record else None
    own, arriving = layout.ranges_around(kind, id, node_key, must_find=must_find)
    if layout.due.is_any and must_find:
        edges = [edge for edge in layout.schema.edges.values() if edge.joins(kind)]
        for index in {each.access.index for each in (*own, *arriving)}:
            yield from check_due(layout, partial(_check_around, edges, index))
    queries = [((each.access, True), _all_in(layout, each)) for each in own]
    pages = Pages(queries + [((each.access, False), _all_in(layout, each)) for each in arriving])
    while pages.has_more:
        for (access, is_own), page in (yield from pages.next()):
            is_partial = access.is_partial
            for item in page.items:
                if layout.is_bookkeeping(item):
                    around.tokens |= _tokens(item) if layout.key_of(item) == record else set()
                    continue
                told = layout.kind_of(item)
                if told is None and layout.key_of(item) == layout.node_key(kind, id):
                    raise another_type(kind, item)
                if layout.belongs_to(kind, node_key, item, told) if is_own else _is_at(kind, access.kind, told):
                    if told is kind:
                        around.node = item
                        continue
                    # The size of an item is unknown if the index holds only some attributes: assume the largest.
                    size = MAX_ITEM_SIZE if is_partial else item_size(item)
                    if is_own:
                        around.own.add(place_of(layout.key_of(item)))
                    _add(layout, item, told, size, around, apart, is_partial=is_partial)
    if record is not None and node_key != own[0].partition:
        (stored,) = yield from get_all([Get(layout.table, record, consistent=True)])
        around.tokens |= _tokens(stored)
    return around


def _check_around(edges: Sequence[EdgeType], index: str | None, due: Due) -> None:
    """Refuses to delete a node of which some edges would not be found, and so would stay."""
    due.check_around(edges, index)


def _is_at(kind: NodeType, only: EntityType | None, found: EntityType | None) -> bool:
    """Whether an item in the partition of an index for edges that arrive is an edge, or the node itself.

    `only` is the class of the edges, if the index may hold others that do not arrive at the node.
    """
    return found is only if only is not None else found is kind or isinstance(found, EdgeType)


def joined_children(layout: BoundLayout, kind: NodeType, id: object) -> Plan[list[tuple[NodeType, object]]]:
    """The children of a node, and their children, that have edges, claims or elements, and so are deleted singly."""
    schema = layout.schema
    below = [*schema.children(kind)]
    for each in below:
        below += schema.children(each)
    edges = schema.edges.values()
    parents = [child.parent for child in below if layout.is_apart(child)]
    kinds = [
        child
        for child in below
        if child.unique or child.elements or child in parents or any(edge.joins(child) for edge in edges)
    ]
    found: list[tuple[NodeType, object]] = []
    if not kinds:
        return found
    node_key, own_key = layout.node_text(kind, id), layout.node_key(kind, id)
    own = [layout.collection(kind, id, arriving=False), *layout.ranges_beside(kind, id, must_find=False)]
    pages = Pages((None, _all_in(layout, each)) for each in own if each.access.index is None)
    while read := (yield from pages.next()):
        for item in (item for _, page in read for item in page.items):
            child = None if layout.is_bookkeeping(item) else layout.kind_of(item)
            if child is None and layout.key_of(item) == own_key:
                raise another_type(kind, item)
            if isinstance(child, NodeType) and child in kinds and layout.belongs_to(kind, node_key, item, child):
                found.append((child, layout.id_in(child, layout.text_of(child, item))))
    return found


def _all_in(layout: BoundLayout, stretch: Range) -> Query:
    """The query for everything in the partition of a range."""
    index = stretch.access.index
    return Query(layout.table, stretch.key, stretch.condition(), index, consistent=index is None)


def _add(
    layout: BoundLayout,
    item: Item,
    found: EntityType | None,
    size: int,
    around: Neighbourhood,
    apart: Collection[EdgeType],
    *,
    is_partial: bool,
) -> None:
    if isinstance(found, EdgeType):
        # Without all attributes it is unknown which index copies the edge has. Deleting an absent one does no harm.
        copies = (
            layout.copy_keys(found, layout.key_of(item))
            if is_partial
            else [satellite.key for satellite in layout.satellites_beside(found, item) if satellite.owner is None]
        )
        keys = (layout.key_of(item), *layout.twin_keys(found, item))
        ends = _ends(layout, found, item) if found in apart else None
        if ends is not None:
            claims = tuple(layout.end_claims(found, item))
            around.counted[place_of(keys[0])] = Counted(
                found, keys, tuple(copies), *ends, size, DELETING in item, claims
            )
            return
        for key in (*keys, *copies):
            around.add(key, item, size)
        for claim in layout.end_claims(found, item):
            # A claim that another edge has taken over stays.
            around.add(claim.key, {}, size)
            around.held[place_of(claim.key)] = claimable(claim) or layout.present
        names = layout.loose(found)
        if names and (loose := [same(item, name) for name in names if name in item]):
            around.held[place_of(keys[0])] = Or((Not(layout.present), And(tuple(loose))))
    elif isinstance(found, NodeType):
        # A child goes as an edge does. Children with edges or claims of their own are deleted before, see `joined`.
        for key in (layout.key_of(item), *layout.copy_keys(found, layout.key_of(item))):
            around.add(key, item, size)


def _ends(layout: BoundLayout, kind: EdgeType, item: Item) -> tuple[str, str] | None:
    """The node keys of an edge's ends; None if they cannot be read, so that nobody counts the edge."""
    try:
        return layout.ends(kind, item)
    except (InvalidItem, InvalidKey):
        return None


def _mark(layout: BoundLayout, node_key: str, token: str, around: Neighbourhood, places: list[Place]) -> Plan[None]:
    mark = (Add(attribute(DELETING), {"SS": [f"{token}:{node_key}"]}),)
    waiting = list(_transactions(around, places, _MARK_SIZE + len(node_key.encode()), MAX_TRANSACTION))
    while waiting:
        group = waiting.pop()
        updates = tuple(
            Update(layout.table, layout.key_of(around.edges[place]), mark, condition=layout.present) for place in group
        )
        try:
            yield (TransactWrite(updates),)
        except TransactionCanceled as canceled:
            left = [
                place for place, reason in zip(group, canceled.reasons, strict=True) if reason.code not in _NEEDLESS
            ]
            if len(left) == len(group):
                raise
            if left:
                waiting.append(left)


def _transactions(around: Neighbourhood, places: Iterable[Place], more: int, most: int) -> Iterator[list[Place]]:
    """Splits places into groups that fit into one transaction, where each item grows by `more` bytes."""
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


def sweep(layout: BoundLayout, node_key: str, key: Item, token: str, around: Neighbourhood) -> Plan[None]:
    """Removes the edges that the delete with this token left, then its deletion record.

    If the node exists, another program has created it again, and edges without the mark belong to the new node, also
    those that are put again meanwhile. So an edge is removed only while it has the mark, or while there is no node.
    """
    marked = Contains(attribute(DELETING), Value({"S": f"{token}:{node_key}"}))
    absent = Check(layout.table, key, Not(layout.present))
    # What belongs to the node goes last: only through it, a delete that is run again finds the other item of a
    # symmetric edge.
    for is_own in (False, True):
        places = [place for place in around.edges if (place in around.own) is is_own]
        having = {place: (node_key, token) in _marks(around.edges[place]) for place in places}
        yield from _remove(layout, around, [place for place in places if having[place]], marked)
        if around.node is None:
            yield from _remove(layout, around, [place for place in places if not having[place]], None, absent)
    record = layout.deletion_key(node_key)
    only = Compare("=", attribute(TOKENS), Value({"SS": [token]}))
    try:
        yield (Delete(layout.table, record, condition=only),)
    except ConditionFailed as failed:
        if failed.item is not None:
            yield (Update(layout.table, record, (Discard(attribute(TOKENS), {"SS": [token]}),)),)


def _remove(
    layout: BoundLayout, around: Neighbourhood, places: Iterable[Place], wanted: Condition | None, *checks: Check
) -> Plan[None]:
    """Removes the edges for which `wanted` and `checks` hold, in rounds of transactions."""
    groups = _transactions(around, places, 0, MAX_TRANSACTION - len(checks))
    requests: Iterator[tuple[Delete | Check, ...]] = (
        (*checks, *(around.delete(layout, place, wanted) for place in group)) for group in groups
    )
    for chunk in chunks(requests, BATCHES_A_ROUND):
        try:
            yield tuple(TransactWrite(writes) for writes in chunk)
        except TransactionCanceled:
            for writes in chunk:
                yield from _remove_those_left(writes)


def _remove_those_left(writes: Sequence[Delete | Check]) -> Plan[None]:
    """Performs the deletes whose conditions still hold; none if a check does not hold."""
    while any(isinstance(write, Delete) for write in writes):
        try:
            yield (TransactWrite(tuple(writes)),)
            return
        except TransactionCanceled as canceled:
            failed = [reason.is_failed_condition for reason in canceled.reasons]
            if not any(failed):
                raise
            if any(isinstance(write, Check) for write, has_failed in zip(writes, failed, strict=True) if has_failed):
                return
            writes = [write for write, has_failed in zip(writes, failed, strict=True) if not has_failed]
