"""Turns changes into work, and does the work in the right order.

In: changes of nodes and edges of one tenant, from `isolating`. Each has the item before and after the change. Out:
everything that these changes affect is up to date. The work is of five kinds:

- an edge or a child changed: reconcile it in each of its rule groups (`reconciling`), and refresh the copied fields of
  the edge (`copies`);
- a node changed that rules read at the far end of edges: reconcile these edges;
- a node changed that edges copy from: refresh the copied fields on these edges (`copies`);
- a node was created or deleted: edges may have waited for it, or have to wait for it from now on (`neighbours`);
- a node expired: remove the edges that it left.

The items before and after a change are compared only to leave out work that cannot be needed. What is written is always
computed from what is stored now.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import repeat

from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, EdgeType, EntityType, NodeType
from adjoin.errors import NEVER, ConditionFailed, InvalidItem, InvalidKey, TransactionCanceled
from adjoin.expressions import Not
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION, STAMP, WRITTEN
from adjoin.plans.copies import copies_on
from adjoin.plans.counted_deletion import Deletion
from adjoin.plans.counting.arrivals import Arrival, arrived, departed, strike_out, take_down
from adjoin.plans.counting.edge_state import EdgeState, contributions
from adjoin.plans.counting.ledger import LEFT, EdgeRef, counted_by, counts, dependents, key_of_node, ref_to
from adjoin.plans.counting.node_transaction import MARKED, TURN, Near
from adjoin.plans.deletion import Counted
from adjoin.plans.maintenance.copies import At, CopyRef, copy_ref, freshen, freshen_at, key_companions
from adjoin.plans.maintenance.cycles import moved
from adjoin.plans.maintenance.neighbours import reconcile_near
from adjoin.plans.maintenance.reconciling import begin_generations, reconcile
from adjoin.plans.maintenance.report import Tally, Unapplied, set_aside, set_aside_by, take_back
from adjoin.plans.steps.again import same
from adjoin.plans.steps.batches import Place, chunks, get_all, place_of
from adjoin.reached_sets import is_reached_set, leads_elsewhere
from adjoin.requests import Check, Delete, Get, ItemChange, Plan, Put, TransactWrite
from adjoin.rules import RuleGroup
from adjoin.units import MAX_TRANSACTION
from adjoin.values import AttributeValue, Item

# --- edges of nodes that expired ---------------------------------------------------------------


SKEW = 60.0
"""Seconds by which the clocks of two machines may differ. An edge that is younger than this stays."""


def edges_of(layout: BoundLayout, kind: NodeType) -> tuple[EdgeType, ...]:
    """The classes of edges that can begin or end at nodes of this class."""
    return tuple(edge for edge in layout.schema.edges.values() if edge.joins(kind))


def remove_left(layout: BoundLayout, kind: NodeType, id: object, removed: float) -> Plan[None]:
    """Removes the edges that a node had when it expired.

    `removed` is the time at which it was removed. Edges that were put later belong to a node that was created again
    under the same key, and stay.
    """
    deletion = Deletion(layout, kind, id, edges_of(layout, kind))
    while True:
        around = yield from deletion.look()
        edges = list(around.counted.values())
        items = yield from get_all([Get(layout.table, edge.keys[0], consistent=True) for edge in edges])
        left = list(_left(zip(edges, items, strict=True), removed, is_gone=around.node is None))
        if not left:
            return
        yield from deletion.detach(around, left)


def _left(found: Iterable[tuple[Counted, Item | None]], removed: float, *, is_gone: bool) -> Iterable[Counted]:
    """The edges that are older than the removal, each with the condition that it was not put again meanwhile.

    An edge that does not say when it was put is removed only if the node does not exist now.
    """
    for edge, item in found:
        if item is None:
            continue
        if float(item[WRITTEN]["N"]) < removed - SKEW if WRITTEN in item else is_gone:
            yield replace(edge, same=same(item, WRITTEN))


# --- changes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Affecting:
    """What changes of edges or children of one class can affect."""

    groups: tuple[tuple[RuleGroup, tuple[str, ...]], ...]
    """The rule groups that count them, each with the attributes that its rules read on them."""
    is_taken_down: bool
    """Whether they need arrivals."""
    copied: tuple[str, ...]
    """The attributes with copied fields, and with fields that share an index key with one."""


def _affecting(layout: BoundLayout, kind: CountedType) -> _Affecting:
    # A child is also the far node that rules read. No other edge leads to it, so none has to be found.
    groups = [
        (
            group,
            (
                *group.edge_attributes,
                *(group.far_attributes if group.hop.is_child else ()),
                *((STAMP,) if group.has_stamps else ()),
            ),
        )
        for group in counted_by(layout, kind)
    ]
    fields: list[str] = []
    if isinstance(kind, EdgeType) and layout.rules.copies:
        # What shares an index key with a copied field may have kept the key from being written.
        fields = [*(copy.field for copy in copies_on(layout, kind)), *key_companions(layout, kind)]
    names = tuple(kind.attributes[field] for field in fields)
    return _Affecting(tuple(groups), kind.model in layout.rules.arriving, names)


@dataclass(slots=True)
class _Change:
    """A change with its items. A store may parse them whenever they are accessed, so they are read once."""

    origin: ItemChange
    key: Item
    old: Item | None
    new: Item | None


@dataclass
class _Work:
    """What a batch of changes makes it necessary to do. A thing that several changes affect is listed once."""

    edges: dict[tuple[str, Place], EdgeRef] = field(default_factory=dict)
    """Edges to reconcile, each once per rule group."""
    changes: list[ItemChange] = field(default_factory=list)
    """Changes of edges whose node transactions do not check the edge; `_has_moved` needs them."""
    stamps: dict[tuple[str, Place], list[AttributeValue]] = field(default_factory=dict)
    """Stamps that changes removed from edges, by the places of the references to them."""
    far: dict[tuple[str, str], RuleGroup] = field(default_factory=dict)
    """Rule groups that read a changed node at the far end, by group name and node key."""
    came: dict[str, NodeType] = field(default_factory=dict)
    """Nodes that were created, by node key; edges may have waited for them."""
    went: dict[str, NodeType] = field(default_factory=dict)
    """Nodes whose generation ended, by node key."""

    arrived: dict[Place, Arrival] = field(default_factory=dict)
    """Edges that now arrive at a target at which they did not arrive before."""
    departed: dict[Place, Arrival] = field(default_factory=dict)
    """Edges that no longer arrive at a target."""
    gone: set[Place] = field(default_factory=set)
    """Keys of edges that were read and do not exist, whatever their changes said."""
    copies: dict[Place, CopyRef] = field(default_factory=dict)
    """Edges whose copied fields may be out of date."""
    copied: dict[tuple[str, str, str], EdgeType] = field(default_factory=dict)
    """Classes of edges that copy from a changed node, by label, end and node key."""
    expired: dict[str, tuple[NodeType, float]] = field(default_factory=dict)
    """Nodes that expired, by node key, with the time of their removal."""
    touched: set[str] = field(default_factory=set)
    """The names of the rule groups whose edges are reconciled."""
    unapplied: list[Unapplied] = field(default_factory=list)
    """Items that have the key of an edge, but whose ends cannot be read."""
    again: list[Item] = field(default_factory=list)
    """Keys of items that existed before the change. A record may say that they were set aside."""

    affecting: dict[str, _Affecting] = field(default_factory=dict)
    """What changes of a class can affect, by its label. Computed once for all changes."""
    looks: int = 0
    """How many reasons for work were found, counted also if the work is already listed."""

    def note(self, state: EdgeState) -> None:
        """`reconcile` calls this with each edge once it is reconciled."""
        if state.edge is None:
            self.gone.add(place_of(state.ref.key))

    def add_stamp(self, ref: EdgeRef, stamp: AttributeValue, new: Item | None) -> None:
        """Lists the stamp that an edge had before a change, unless it has it still."""
        if new is None or new.get(STAMP) != stamp:
            self.stamps.setdefault(ref.place, []).append(stamp)

    def removed(self, ref: EdgeRef) -> Sequence[AttributeValue]:
        """The stamps that changes removed from an edge."""
        return self.stamps.get(ref.place, ())

    @cached_property
    def changes_by_place(self) -> dict[Place, list[ItemChange]]:
        """The changes of edges by the keys of the edges. Computed when first needed, which is rare."""
        found: dict[Place, list[ItemChange]] = {}
        for change in self.changes:
            found.setdefault(place_of(change.key), []).append(change)
        return found

    @property
    def struck_out(self) -> list[Arrival]:
        """The arrivals to remove.

        This includes arrivals that this batch itself recorded, if the edge turned out not to exist: a maintainer that
        is late may record an arrival after all others have removed it.
        """
        late = {place: edge for place, edge in self.arrived.items() if place_of(edge.key) in self.gone}
        return list((late | self.departed).values())

    def add_edge(self, ref: EdgeRef) -> None:
        self.edges[ref.place] = ref
        self.touched.add(ref.group.name)
        self.looks += 1


def apply_changes(
    layout: BoundLayout, changes: Iterable[ItemChange], tally: Tally, kinds: Iterable[EntityType | None] = repeat(None)
) -> Plan[bool]:
    """Brings everything up to date that these changes affect. Returns whether there was any work.

    The changes must not be of adjoin's own items; `isolating` leaves those out. `kinds` are the classes of the changed
    items, with None for those that are not known yet.
    """
    work = _Work()
    for each, known in zip(changes, kinds, strict=False):
        # `work.changes` keeps the original, so that a large batch does not hold all parsed items in memory.
        old, new = each.old, each.new
        # Of an item whose class is known, the images have the key.
        change = _Change(each, each.key if known is None else layout.key_of(new or old or each.key), old, new)
        tally.changes += 1
        kind, looks = known or layout.kind_of(change.new or change.old or change.key), work.looks
        counted = None if kind is None else kind.as_counted
        if counted is not None and _look_at_edge(layout, counted, change, work):
            work.changes.append(each)
        if isinstance(kind, NodeType):
            _look_at_node(layout, kind, change, work)
            if each.expired and edges_of(layout, kind):
                work.expired[layout.text_of(kind, change.key)] = kind, each.at
                work.looks += 1
        if change.old is not None and work.looks > looks:
            work.again.append(change.key)
    # The order matters. Arrivals are recorded before any edge or node is read: a process that looks for the edges of a
    # changed node after this finds them, and one that looked earlier did so before the node is read here.
    if work.arrived:
        yield from take_down(layout, work.arrived.values())
    # Deletions before creations: `_came` reads the waiting markers, also that of a node deleted in the same batch.
    yield from _went(layout, work, tally)
    if work.came:
        yield from _came(layout, work.came, tally)
    # This adds edges to `work.edges`, so it comes before they are reconciled.
    yield from _reconcile_far(layout, work, tally)
    for some in _portions(work.edges.values()):
        yield from reconcile(layout, some, tally, work.note, partial(_has_moved, layout, work), work.removed)
    yield from _look_again(layout, work, tally)
    if work.copied:
        nodes = (At(kind, end, node_key) for (_, end, node_key), kind in work.copied.items())
        yield from freshen_at(layout, nodes, tally)
    if work.copies:
        work.gone |= yield from freshen(layout, work.copies.values(), tally)
    # Only now is it known which edges do not exist.
    if struck_out := work.struck_out:
        yield from strike_out(layout, struck_out)
    for node_key, (node, at) in work.expired.items():
        yield from remove_left(layout, node, layout.id_in(node, node_key), at)
    for unapplied in work.unapplied:
        yield from set_aside(layout, unapplied, tally)
    if work.again:
        yield from take_back(layout, work.again, tally)
    return work.looks > 0


_PORTION = 5 * (MAX_TRANSACTION - 3)
"""About so many edges are reconciled at a time: as many as five full transactions of one node hold."""


def _portions(refs: Collection[EdgeRef]) -> Iterator[list[EdgeRef]]:
    """Divides edges into portions, so that a large batch does not hold in memory what is read for all of them.

    The edges of a near node are in one portion, because they share its transactions, unless they fill a portion. Edges
    that are counted at both ends are all in one portion: the ledger of such an edge is written once if both its nodes
    are written together.
    """
    if len(refs) <= _PORTION:
        yield list(refs)
        return
    shared = {ref.near for ref in refs if ref.group.is_shared}
    if shared:
        yield [ref for ref in refs if ref.near in shared]
    by_near: dict[str, list[EdgeRef]] = {}
    for ref in refs:
        if ref.near not in shared:
            by_near.setdefault(ref.near, []).append(ref)
    portion: list[EdgeRef] = []
    for some in by_near.values():
        *full, rest = chunks(some, _PORTION)
        yield from map(list, full)
        portion += rest
        if len(portion) >= _PORTION:
            yield portion
            portion = []
    if portion:
        yield portion


# --- from changes to work ----------------------------------------------------------------------


def _look_at_edge(layout: BoundLayout, kind: CountedType, change: _Change, work: _Work) -> bool:
    """Lists what a change of an edge affects, or of a child as something that is counted.

    Returns whether a rule group counts the edge whose node transactions do not check the edge itself.
    """
    is_unchecked = False
    item = change.new or change.old or {}
    affecting = work.affecting.get(kind.label)
    if affecting is None:
        affecting = work.affecting[kind.label] = _affecting(layout, kind)
    if affecting.is_taken_down:
        for found, tell in ((work.arrived, arrived), (work.departed, departed)):
            if (edge := tell(layout, kind, change.old, change.new)) is not None:
                found[place_of(edge.place(layout))] = edge
    try:
        for group, attributes in affecting.groups:
            if differs(change, attributes) or _was_unfit(layout, kind, change):
                ref = ref_to(layout, group, item, change.key)
                if counts(layout, ref):
                    work.add_edge(ref)
                    if change.old is not None and STAMP in change.old and group.has_stamps:
                        work.add_stamp(ref, change.old[STAMP], change.new)
                    is_unchecked |= not group.is_checked
        names = affecting.copied
        if isinstance(kind, EdgeType) and names and change.new is not None and differs(change, names):
            work.copies[place_of(change.key)] = copy_ref(layout, kind, item)
            work.looks += 1
    except (InvalidItem, InvalidKey) as problem:
        # The item has an edge's key, but its ends cannot be read. It contributes to no aggregate.
        work.looks += 1
        if change.old is not None and change.new is not None and STAMP in change.old:
            # What its stamp said before is taken back. No later change has this stamp.
            _look_at_edge(layout, kind, _Change(change.origin, change.key, change.old, None), work)
        if change.new is not None:
            origin = change.origin
            work.unapplied.append(Unapplied(change.key, str(problem), origin.position, origin.at))
    return is_unchecked


def _look_at_node(layout: BoundLayout, kind: NodeType, change: _Change, work: _Work) -> None:
    """Lists what a change of a node affects."""
    node_key = layout.text_of(kind, change.key)
    for group in layout.rules.groups:
        if (
            group.reads_far
            and group.hop.far.covers(kind)
            and not group.hop.is_child
            and (differs(change, group.far_attributes) or _was_unfit(layout, kind, change))
        ):
            work.far[group.name, node_key] = group
            work.looks += 1
    for copy in layout.rules.copies:
        if copy.node.covers(kind) and differs(change, (kind.attributes[copy.of],)):
            work.copied[copy.edge.label, copy.end, node_key] = copy.edge
            work.looks += 1
    if not any(group.hop.near is kind for group in layout.rules.groups):
        return
    # A put replaces the whole item, and with it the generation. So a generation may end although the node exists.
    had_life, has_life = (item is not None and GENERATION in item for item in (change.old, change.new))
    if had_life and not has_life and _has_counted(layout, kind, change.old or {}):
        work.went[node_key] = kind
        work.looks += 1
    elif change.old is None:
        work.came[node_key] = kind
        work.looks += 1


def _has_counted(layout: BoundLayout, kind: NodeType, item: Item) -> bool:
    """Whether any edge was ever counted for a node in its generation, as far as its attributes show.

    If not, its deletion leaves no ledger that could be void. An edge of a rule group that reads the far node has a
    ledger also while it contributes nothing, so the attributes of its near node do not show it.
    """
    if any(group.reads_far and group.hop.near is kind for group in layout.rules.groups):
        return True
    names = (name for rule in layout.rules.rules if rule.node is kind for name in (rule.attribute, rule.pair) if name)
    return any(name in item for name in (*names, TURN, LEFT, NEXT_GENERATION))


def _has_moved(layout: BoundLayout, work: _Work, ref: EdgeRef) -> bool:
    """Whether one of these changes changed what an edge contributes.

    If so, a maintainer that read the edge before the change would write another contribution, and must fail.
    """
    return any(
        contributions(layout, ref.group, change.old) != contributions(layout, ref.group, change.new)
        for change in work.changes_by_place.get(place_of(ref.key), ())
    )


def differs(change: _Change, names: Sequence[str]) -> bool:
    """Whether an item was created or deleted, or one of these attributes changed.

    A reached set has changed for those who read it if it has other texts.
    """
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    changed = ((before, after) for name in names if (before := old.get(name)) != (after := new.get(name)))
    return any(
        before is None
        or "M" not in before
        or not (is_reached_set(before) and is_reached_set(after))
        or leads_elsewhere(before, after)
        for before, after in changed
    )


def _was_unfit(layout: BoundLayout, kind: EntityType, change: _Change) -> bool:
    """Whether the item before or after a change cannot be read as an instance of its class.

    Then any attribute may matter, not only those that rules name: an edge that was set aside may be countable now.
    """
    try:
        for item in (change.old, change.new):
            if item is not None:
                layout.decode(kind, item)
    except NEVER:
        return True
    return False


# --- nodes that were created or deleted --------------------------------------------------------


def _went(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """Leaves waiting markers for nodes that were deleted.

    What was counted in the ended generation is void. The edges that still exist wait for the next generation. With the
    marker, a maintainer that sees the node created again looks for them.
    """
    for node_key, kind in work.went.items():
        for group in layout.rules.groups:
            for rule in group.rules:
                if rule.is_recursive and group.hop.near is kind:
                    yield from moved(layout, rule)
        marker = layout.ledgers.marker_key(node_key) | {MARKED: {"S": uuid.uuid4().hex[:16]}}
        gone = Check(layout.table, key_of_node(layout, kind, node_key), Not(layout.present))
        try:
            yield (TransactWrite((gone, Put(layout.table, marker))),)
        except TransactionCanceled:
            # The node exists again, and no marker says whether edges wait for it. So reconcile all its edges.
            yield from reconcile_near(layout, kind, [node_key], tally)


def _came(layout: BoundLayout, nodes: dict[str, NodeType], tally: Tally) -> Plan[None]:
    """Gives new nodes their first generation, and reconciles the edges that waited for them.

    A marker is read before the edges, and deleted only if it is still the same one. So an edge that begins to wait in
    between, which replaces the marker, is not lost.
    """
    markers = yield from get_all(
        [Get(layout.table, layout.ledgers.marker_key(node_key), consistent=True) for node_key in nodes]
    )
    keys = {node_key: key_of_node(layout, kind, node_key) for node_key, kind in nodes.items()}
    found = yield from get_all([Get(layout.table, key, consistent=True) for key in keys.values()])
    there = [
        Near(nodes[node_key], node_key, key, item)
        for (node_key, key), item in zip(keys.items(), found, strict=True)
        if item
    ]
    # Done now for all new nodes together, so that the first edge of a node costs no extra round later.
    yield from begin_generations(layout, there)
    for (node_key, kind), marker in zip(nodes.items(), markers, strict=True):
        if marker is None:
            continue
        yield from reconcile_near(layout, kind, [node_key], tally)
        try:
            yield (Delete(layout.table, layout.key_of(marker), same(marker, MARKED)),)
        except ConditionFailed:
            # The marker was replaced, so the node was deleted again; that deletion brings a change of its own.
            continue


# --- nodes at far ends -------------------------------------------------------------------------


def _reconcile_far(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """Finds the edges whose rules read a changed node at their far end.

    A few are added to the other edges of the batch. If there are many, they are reconciled at once, to save memory.
    """
    for (_, node_key), group in work.far.items():
        start: Item | None = None
        while True:
            refs, start = yield from dependents(layout, group, node_key, start)
            for ref in refs:
                work.add_edge(ref)
            if len(work.edges) > _MANY:
                yield from reconcile(
                    layout, work.edges.values(), tally, work.note, partial(_has_moved, layout, work), work.removed
                )
                work.edges.clear()
            if start is None:
                break


_MANY = 2000
"""So many edges are reconciled before more are looked up."""


# --- recursive rules ---------------------------------------------------------------------------


def _look_again(layout: BoundLayout, work: _Work, tally: Tally) -> Plan[None]:
    """Reconciles the edges that recursive rules have set aside.

    An edge that would have closed a cycle may not close one now, because other edges were removed.
    """
    nodes = {kind.model for kind in work.went.values()}
    for group in layout.rules.groups:
        if group.name not in work.touched and group.hop.near.model not in nodes:
            continue
        for rule in group.rules:
            if rule.is_recursive:
                refs = yield from set_aside_by(layout, group, rule)
                yield from reconcile(layout, refs, tally)
