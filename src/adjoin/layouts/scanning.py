"""How a scan tells items apart: conditions on keys, which DynamoDB applies to what a scan reads before it answers.

A query must not filter by the table's keys, but a scan may. A condition can compare a key with a text, ask how it
begins, and ask whether it contains a text; so most templates can only be told roughly, and a reader looks at the keys
of what is left. Some can be told exactly, and then the service alone counts.
"""

from __future__ import annotations

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType
from adjoin.expressions import BeginsWith, Compare, Condition, Contains, Not, Value, all_of, attribute
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, telling, told_condition
from adjoin.layouts.interface import DELETING
from adjoin.layouts.keys import Part, Template
from adjoin.layouts.ranges import ScanAccess
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.reserved import OWN


@dataclass(frozen=True)
class ScanAccesses:
    """What a scan asks for, in one layout."""

    keys: AdjacencyKeys

    def of(self, kind: EntityType | None) -> ScanAccess:
        """For one class; None for everything in the graph."""
        if kind is None:
            everything: list[NodeKeys | EdgeKeys] = [*self.keys.nodes.values(), *self.keys.edges.values()]
            return ScanAccess(self._graphs_own(), None, self._telling(*everything))
        own = self.keys.edges[kind.model] if isinstance(kind, EdgeType) else self.keys.nodes[kind.model]
        told = told_condition(kind, self.keys.texts) if kind.whole is not kind else None
        rough = all_of(*(_begun(name, template) for name, template in self._own(own)), told)
        exact = self._exact(own) if isinstance(own, NodeKeys) else None
        return ScanAccess(rough, exact, self._telling(own))

    def _own(self, kept: NodeKeys | EdgeKeys) -> list[tuple[str, Template]]:
        """The key attributes of the table with their templates."""
        return list(zip(self.keys.table.names, (kept.partition, kept.sort), strict=False))

    def _graphs_own(self) -> Condition | None:
        """Leaves out other tenants, and those of adjoin's own records that have partitions of their own."""
        path, prefix = attribute(self.keys.layout.partition_key), self.keys.prefix
        records = Not(BeginsWith(path, Value({"S": prefix + OWN}))) if self.keys.table.are_text else None
        return all_of(BeginsWith(path, Value({"S": prefix})) if prefix else None, records)

    def _telling(self, *some: NodeKeys | EdgeKeys) -> tuple[str, ...]:
        """The attributes that tell the class of an item, the ends of an edge, and whether the item is visible."""
        layout = self.keys.layout
        names = [*self.keys.table.names, DELETING]
        names += [layout.type_attribute] if layout.type_attribute else []
        for each in some:
            told = telling(each.kind, self.keys.texts)
            names += [told.attribute] if told is not None else []
            if isinstance(each, EdgeKeys) and (each.loose or not each.sorts_by_target):
                names += each.index_keys
        return tuple(dict.fromkeys(names))

    def _exact(self, node: NodeKeys) -> Condition | None:
        layout = self.keys.layout
        partition = _told(layout.partition_key, node.partition)
        # With an id in the sort key too, both would have to be the same, and no condition compares parts of keys.
        if partition is None or node.sort.parts:
            return None
        told = told_condition(node.kind, self.keys.texts)
        return all_of(partition, *(_begun(name, template) for name, template in self._own(node)[1:]), told)


def _begun(name: str, template: Template) -> Condition | None:
    """A condition that holds for every key of a template; None if its keys can begin with anything."""
    path = attribute(name)
    if not template.parts:
        return Compare("=", path, Value(template.attribute(template.lead)))
    return BeginsWith(path, Value({"S": template.lead})) if template.lead else None


def _told(name: str, template: Template) -> Condition | None:
    """A condition that holds for the keys of a template and for no other; None if there is none.

    A part has no separator in it, but `contains` asks about the whole key. So only a key of one part can be told, after
    a literal without separators. An escape or a type has spellings that no condition knows.
    """
    quoting, part = template.quoting, template.pieces[-1]
    if len(template.parts) != 1 or not isinstance(part, Part) or quoting.escape:
        return None
    if part.transform.name or part.plain not in (str, None) or any(end in template.lead for end in quoting.ends):
        return None
    path = attribute(name)
    apart = [Not(Contains(path, Value({"S": end}))) for end in sorted(quoting.ends)]
    # An id has at least one character.
    longer = Compare(">", path, Value({"S": template.lead})) if template.lead else None
    return all_of(_begun(name, template), longer, *apart)
