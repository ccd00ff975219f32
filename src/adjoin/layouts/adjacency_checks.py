"""Whether the classes of an adjacency list get along: names, keys that could meet, edges that must be found.

Everything here is asked once, when a graph opens, of templates that are compiled already.
"""

from __future__ import annotations

from enum import Enum
from itertools import combinations

from adjoin.bookkeeping import OWN
from adjoin.errors import InvalidModel
from adjoin.layouts.adjacency_keys import DELETION_SORT_KEY, AdjacencyKeys, EdgeKeys, NodeKeys, is_number
from adjoin.layouts.keys import SEPARATOR, spellings
from adjoin.schema import plain_type


def check(keys: AdjacencyKeys) -> None:
    """Raises what is wrong first."""
    _check_field_names(keys)
    _check_spellings(keys)
    _check_collisions(keys)
    _check_reverse(keys)
    _check_order(keys)
    _check_indexed(keys)


def _check_field_names(keys: AdjacencyKeys) -> None:
    expiring = {kind.attributes[kind.expires] for kind in keys.schema.types if kind.expires}
    for kind in keys.schema.types:
        for name, stored in kind.attributes.items():
            if stored in expiring and name != kind.expires:
                raise InvalidModel(
                    f"{kind.name}.{name} is stored as {stored!r}, by which items of this table expire; "
                    f"give it another alias"
                )
            if stored in keys.attributes:
                raise InvalidModel(
                    f"{kind.name}.{name} is stored as {stored!r}, a name that the layout uses itself; "
                    f"give the field another alias, or the layout other names"
                )


def _check_spellings(keys: AdjacencyKeys) -> None:
    """No two members of an Enum may be one in keys, as 1 and "1" would be."""
    everything: list[NodeKeys | EdgeKeys] = [*keys.nodes.values(), *keys.edges.values()]
    for kept in everything:
        kind = kept.kind
        templates = (kept.partition, kept.sort, *kept.index_keys.values())
        told = [part.name for template in templates for part in template.parts if part.name in kind.fields]
        for name in dict.fromkeys([*told, *kind.unique, *kind.indexed]):
            plain = plain_type(kind.fields[name])
            if plain is None or not issubclass(plain, Enum):
                continue
            members: dict[str, Enum] = {}
            for member, text in spellings(plain):
                if (other := members.setdefault(text, member)) is not member:
                    raise InvalidModel(
                        f"{kind.name}.{name} is in keys, where {other} and {member} are both spelled {text!r} "
                        f"and would be one; give one of them another value"
                    )


def _check_collisions(keys: AdjacencyKeys) -> None:
    nodes, edges = list(keys.nodes.values()), list(keys.edges.values())
    for one, other in combinations(nodes, 2):
        if one.partition.may_equal(other.partition):
            raise InvalidModel(
                f"{one.kind.name} and {other.kind.name} can have the same partition key {one.partition}; "
                f"change a label or a template"
            )
    everything: list[NodeKeys | EdgeKeys] = [*nodes, *edges]
    for kept in everything:
        if kept.sort.match(DELETION_SORT_KEY) is not None:
            raise InvalidModel(
                f"the sort key {kept.sort} of {kept.kind.name} can be {DELETION_SORT_KEY!r}, which marks a delete "
                f"in progress; change the template"
            )
    for edge in edges:
        node = keys.nodes[edge.kind.source.model]
        if not edge.may_meet_node and node.sort.may_equal(edge.sort):
            raise InvalidModel(
                f"the sort key {edge.sort} of {edge.kind.name} can be {node.sort}, which is that of "
                f"{node.kind.name} itself; change one of the templates"
            )
    for one_edge, other_edge in combinations(edges, 2):
        same_source = one_edge.kind.source is other_edge.kind.source
        if same_source and one_edge.sort.may_equal(other_edge.sort):
            raise InvalidModel(
                f"{one_edge.kind.name} and {other_edge.kind.name} can have the same key {one_edge.sort} in "
                f"the partition of a {one_edge.kind.source.name}; add {{label}} to the edge template"
            )


def _check_reverse(keys: AdjacencyKeys) -> None:
    reverse = keys.layout.reverse
    for edge in keys.edges.values():
        if reverse is None or edge.kind.symmetric:
            continue
        template = keys.template(edge, reverse.partition_key)
        target = keys.nodes[edge.kind.target.model].partition
        names = {"target.id", edge.target_field or "target.id"}
        if template is None or str(template) not in {target.spelled(id=name) for name in names}:
            raise InvalidModel(
                f"the reverse partition key {template} of {edge.kind.name} is not the key {target} of its "
                f"target {edge.kind.target.name}, so its edges could not be found from there"
            )


def _check_order(keys: AdjacencyKeys) -> None:
    """That the neighbours of each ordered class come in its order, from wherever they are read."""
    index = keys.order_index
    if index is not None and {index.partition_key, index.sort_key} & keys.main_keys():
        raise InvalidModel(f"the index {index.name!r} for order needs key attributes of its own")
    for edge in keys.edges.values():
        if edge.kind.order is None:
            continue
        source = keys.nodes[edge.kind.source.model].partition
        template = edge.sort
        if edge.order_index is not None:
            partition = edge.index_keys.get(edge.order_index.partition_key)
            if partition is None or str(partition) != source.spelled(id="source.id"):
                raise InvalidModel(
                    f"the order partition key {partition} of {edge.kind.name} is not the key {source} of its "
                    f"source {edge.kind.source.name}, so its edges could not be found from there"
                )
            template = edge.index_keys.get(edge.order_index.sort_key or "", edge.sort)
        first = template.parts[0] if template.parts else None
        if first is None or first.name != edge.kind.order:
            raise InvalidModel(
                f"{edge.kind.name} is ordered by {edge.kind.order!r}, but its key {template} does not begin "
                f"with that field"
            )
        if is_number(edge.kind, first.name) and not first.transform.sorts:
            raise InvalidModel(
                f"{edge.kind.name} is ordered by the number {first.name!r}, which does not sort as text in "
                f"{template}; write {{{first.name}:sortable}} or a width such as {{{first.name}:08}}"
            )


def _check_indexed(keys: AdjacencyKeys) -> None:
    index = keys.overloaded
    others = keys.main_keys() | ({keys.order_index.partition_key} if keys.order_index else set())
    if index is not None and {index.partition_key, index.sort_key} & others:
        raise InvalidModel(f"the index {index.name!r} for indexed fields needs key attributes of its own")
    everything: list[NodeKeys | EdgeKeys] = [*keys.nodes.values(), *keys.edges.values()]
    for kept in everything:
        if kept.partition.lead.removeprefix(keys.prefix).startswith(SEPARATOR):
            raise InvalidModel(
                f"the partition key {kept.partition} of {kept.kind.name} begins with {SEPARATOR!r}, as adjoin's own "
                f"records do; change the template"
            )
        if str(kept.partition).endswith(OWN):
            raise InvalidModel(
                f"the partition key {kept.partition} of {kept.kind.name} ends with {OWN!r}, as adjoin's own "
                f"copies do; change the template"
            )
        if isinstance(kept, EdgeKeys) and len(kept.kind.indexed) > 1 and "target.id" not in kept.sort.told:
            raise InvalidModel(
                f"{kept.kind.name} has two indexed fields, which needs a sort key that tells its target, and "
                f"{kept.sort} does not; index one field, or change the template"
            )
