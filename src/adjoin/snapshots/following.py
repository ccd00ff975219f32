"""Applies the change stream to the arrays of a snapshot.

Every change may be applied twice: an edge that is there gets its fields again, and one that is not there is not
removed. So the stream is followed from before the items were read, and a snapshot ends as the last change of each item
left it.

An edge that a delete has marked is hidden from the moment at which the delete passes its switch, which changes another
item. So marked edges are looked at again after each page of changes.
"""

from __future__ import annotations

import time

from adjoin.errors import ChangesTrimmed, InvalidSnapshot
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import DELETING
from adjoin.plans.deletion import visible
from adjoin.plans.steps.batches import Place, place_of
from adjoin.requests import ChangesResponse, DescribeTable, ItemChange, Plan, ReadChanges, TableResponse
from adjoin.snapshots.item_reading import NOTHING, EdgeRow, NodeRow, RowReading
from adjoin.snapshots.node_table import UNKNOWN, NodeTable
from adjoin.snapshots.relations import Relation
from adjoin.units import MAX_CHANGES
from adjoin.values import Item

_KEPT = 86_400.0
"""For how many seconds DynamoDB keeps changes."""


class Following:
    """Where a snapshot is in the change stream, and how changes become changes of its arrays."""

    def __init__(
        self,
        layout: BoundLayout,
        reading: RowReading,
        nodes: NodeTable,
        relations: list[Relation],
        position: str | None,
        since: float,
        marked: list[Item],
        table_id: str,
        *,
        is_opened: bool,
    ) -> None:
        self._layout, self._reading, self._nodes, self._relations = layout, reading, nodes, relations
        self.position = position
        """After which change the snapshot continues; None for the oldest that is kept."""
        self.since = since
        """The time of what the snapshot was made from, if there is no position; 0 if the stream had no changes."""
        self.table_id = table_id
        """The id of the table that the snapshot was made of; empty if it is not known."""
        self._is_checked = not (is_opened and table_id)
        self._keys = tuple(key.name for key in layout.definition.key_attributes)
        # The mark of an edge may be older than the position, and the switch newer. Then no change names the edge.
        keys = [{each.name: item[each.name] for each in layout.definition.keys} for item in marked]
        self._marked: dict[Place, Item] = dict(zip(map(place_of, keys), marked, strict=True))

    def page(self) -> Plan[list[ItemChange]]:
        """Reads the next changes; none at the end of the stream for now."""
        if self.position is None and self.since and time.time() - self.since > _KEPT:
            raise ChangesTrimmed(
                "the change stream may not have all changes since the snapshot was made: the export is older than a "
                "day, or the table had no stream; take a new snapshot"
            )
        if not self._is_checked:
            yield from self._check_table()
        response: ChangesResponse
        (response,) = yield (ReadChanges(self._layout.table, self.position, MAX_CHANGES),)
        self._next = response.next
        return response.changes

    def _check_table(self) -> Plan[None]:
        """Raises if the table only has the name of that of which the snapshot was made: it has another stream."""
        told: TableResponse
        (told,) = yield (DescribeTable(self._layout.table),)
        if told.history.id and told.history.id != self.table_id:
            raise InvalidSnapshot(
                f"the snapshot was made of another table with the name {self._layout.table!r}, whose changes are not "
                f"those of this one; build the snapshot again"
            )
        self._is_checked = True

    @property
    def marked(self) -> list[Item]:
        """The edges that deletes have marked and that are not removed yet."""
        return list(self._marked.values())

    def hidden(self, changes: list[ItemChange]) -> Plan[set[Place]]:
        """The keys of marked edges that are hidden, of these changes and of earlier ones."""
        for change in changes:
            place = place_of(change.key)
            if (new := change.new) is not None and DELETING in new:
                self._marked[place] = new
            else:
                self._marked.pop(place, None)
        if not self._marked:
            return set()
        shown = yield from visible(self._layout, list(self._marked.values()))
        there = {id(item) for item in shown}
        return {place for place, item in self._marked.items() if id(item) not in there}

    def apply(self, changes: list[ItemChange], hidden: set[Place]) -> None:
        """Applies changes to the arrays, and notes their position."""
        for change in changes:
            self.apply_one(change.old, change.new)
        for place in hidden:
            self.apply_one(self._marked[place], None)
        self.position = self._next

    def apply_one(self, old: Item | None, new: Item | None) -> None:
        """Applies what one item was, and what it is."""
        read = self._reading.read
        node, edge = NOTHING if new is None else read(new)
        # If no key has changed, the item is what it was, with other fields, unless these make keys that it lacks.
        if old is not None and (new is None or self._reading.makes_keys or self._has_other_keys(old, new)):
            old_node, old_edge = read(old)
            if old_edge is not None and (edge is None or old_edge[:6] != edge[:6]):
                self._remove_edge(old_edge)
            if old_node is not None and node is None:
                self._remove_node(old_node)
        if node is not None:
            class_number, text, values = node
            self._nodes.put_fields(self._number(class_number, text), class_number, values)
        if edge is not None:
            relation, near_class, near, far_class, far, sorts, values = edge
            source, target = self._number(near_class, near), self._number(far_class, far)
            self._relations[relation].put(source, target, sorts, values)

    def _has_other_keys(self, old: Item, new: Item) -> bool:
        return any(old.get(name) != new.get(name) for name in self._keys)

    def _number(self, class_number: int, text: bytes) -> int:
        number = self._nodes.find(class_number, text)
        if number == UNKNOWN:
            number = self._nodes.add(class_number, text)
            for relation in self._relations:
                relation.add_nodes(number + 1)
        return number

    def _remove_node(self, row: NodeRow) -> None:
        number = self._nodes.find(row[0], row[1])
        if number != UNKNOWN:
            self._nodes.remove(number)

    def _remove_edge(self, row: EdgeRow) -> None:
        relation, near_class, near, far_class, far, sorts, _ = row
        source, target = self._nodes.find(near_class, near), self._nodes.find(far_class, far)
        if source != UNKNOWN and target != UNKNOWN:
            self._relations[relation].remove(source, target, sorts)
