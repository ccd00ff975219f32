"""Checks that the keys of the classes of one layout do not conflict.

`check` examines all classes together, once, when a graph opens: names, keys that could be equal, edges that could not
be found, and orders that an index would not keep.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum
from itertools import combinations

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidModel
from adjoin.field_types import plain_type
from adjoin.layouts.edge_accesses import AdjacencyAccesses
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, rest_of
from adjoin.layouts.key_values import spellings
from adjoin.layouts.keys import SEPARATOR
from adjoin.layouts.placeholders import is_number
from adjoin.layouts.templates import DELETION_SORT_KEY, AdjacencyKeys, last_key
from adjoin.reserved import OWN, OWN_NAMES
from adjoin.rules import Rules
from adjoin.tables import TableDefinition


def check(keys: AdjacencyKeys) -> None:
    """Raises `InvalidModel` for the first conflict."""
    for kind in keys.schema.nodes.values():
        _check_discriminator(kind, keys.layout.type_attribute)
    _check_field_names(keys)
    _check_spellings(keys)
    _check_unions(keys)
    _check_collisions(keys)
    _check_reverse(keys)
    _check_order(keys)
    _check_indexed(keys)
    _check_options(keys)


def _check_discriminator(kind: NodeType, type_attribute: str | None) -> None:
    """Refuses a discriminator that is neither a field nor the type attribute of the layout."""
    if kind.discriminator is None or kind.is_told_by_field or kind.discriminator == type_attribute:
        return
    has = "none" if type_attribute is None else repr(type_attribute)
    raise InvalidModel(
        f"the discriminator {kind.discriminator!r} of {kind.name} is neither one of its fields nor the type attribute "
        f"of the layout, which is {has}; name a field, or give the layout type_attribute={kind.discriminator!r}"
    )


def check_own_items(keys: AdjacencyKeys, rules: Rules, why: str) -> None:
    """Refuses what needs items of adjoin's own in a table whose keys cannot hold them; `why` says why not."""
    for kind in keys.schema.types:
        for name in kind.unique:
            raise _needs_own_items(f"{kind.name}.{name} is marked Unique(), and claims to its values are", why)
        if isinstance(kind, EdgeType) and kind.claimed:
            raise _needs_own_items(f"{kind.name} has one_target= or one_source=, and claims to its nodes are", why)
        if len(kind.indexed) > 1:
            first, second, *_ = kind.indexed
            raise _needs_own_items(
                f"{kind.name} has two fields that are marked Indexed(), {first} and {second}, and index "
                f"copies for the second are",
                why,
                "; mark one of them, or declare an Index over the other",
            )
        if kind.elements:
            raise _needs_own_items(
                f"{kind.name}.{kind.elements[0]} is marked Indexed(elements=True), and the entries of elements are", why
            )
        if kind.indexed and keys.layout.shards is None:
            raise _needs_own_items(
                f"{kind.name}.{kind.indexed[0]} is marked Indexed(), and the map of its shards is",
                why,
                "; give the layout a fixed number of shards, such as shards=1, or declare an Index over the field",
            )
    for rule in rules.declared:
        raise _needs_own_items(
            f"{rule.node.name}.{rule.name.partition('.')[2]} is an aggregate, and what it counts is", why
        )
    for summary in rules.summaries:
        raise _needs_own_items(f"{summary.node.name}.{summary.field} is a summary, and how far it is rebuilt is", why)
    for copied in rules.copies:
        raise _needs_own_items(f"{copied.edge.name}.{copied.field} is a copied field, and what keeps it true is", why)


def _needs_own_items(
    what: str, why: str, remedy: str = "; remove it, or use a table with two keys that are text"
) -> InvalidModel:
    return InvalidModel(f"{what} in items of adjoin's own, which this table cannot hold: {why}{remedy}")


def _check_field_names(keys: AdjacencyKeys) -> None:
    expiring = {kind.attributes[kind.expires] for kind in keys.schema.types if kind.expires}
    for kind in keys.schema.types:
        for name, stored in kind.attributes.items():
            if stored in expiring and name != kind.expires:
                raise InvalidModel(
                    f"{kind.name}.{name} is stored as {stored!r}, by which items of this table expire; "
                    f"give it another alias"
                )
            is_taken = stored in keys.attributes and not keys.texts.is_plain_field(kind, stored)
            if isinstance(kind, EdgeType) and stored in keys.table.names:
                # A field that only the keys of the table hold is in no attribute, so a key may have its name.
                is_taken = name in keys.edges[kind.model].record.stored_names
            over = [index.name for index in keys.texts.declared if stored in index.keys]
            if over and stored not in keys.table.names and stored in keys.texts.templates[kind.model]:
                raise InvalidModel(
                    f"{kind.name}.{name} is stored as {stored!r}, a key of the index {over[0]!r} that also has a "
                    f"template; leave the template out, or None in its place, and the field is the key, or give the "
                    f"field another alias"
                )
            if is_taken or stored in keys.texts.further(kind):
                raise InvalidModel(
                    f"{kind.name}.{name} is stored as {stored!r}, a name that the layout uses itself; "
                    f"give the field another alias, or the layout other names"
                )


def _check_spellings(keys: AdjacencyKeys) -> None:
    """Refuses an Enum in keys with two members of the same spelling, such as 1 and "1"."""
    everything: list[NodeKeys | EdgeKeys] = [*keys.nodes.values(), *keys.edges.values()]
    for kept in everything:
        kind = kept.kind
        templates = (kept.partition, kept.sort, *kept.index_keys.values())
        told = [part.name for template in templates for part in template.parts if part.name in kind.fields]
        for name in dict.fromkeys([*told, *kind.unique, *kind.indexed]):
            plain = plain_type(kind.fields[name])
            if plain is None or not issubclass(plain, Enum):
                continue
            # Keys are text, so 1 and "1" would be one key, and an item could not be read back as what it was.
            members: dict[str, Enum] = {}
            for member, text in spellings(plain):
                if (other := members.setdefault(text, member)) is not member:
                    raise InvalidModel(
                        f"{kind.name}.{name} is in keys, where {other} and {member} are both spelled {text!r} "
                        f"and would be the same; give one of them another value"
                    )


def _check_unions(keys: AdjacencyKeys) -> None:
    """Refuses an end of several classes whose keys could be the same."""
    for edge in keys.edges.values():
        reverse = keys.reverse and keys.template(edge, keys.reverse.partition_attribute)
        for template in (edge.partition, edge.sort, *((reverse,) if reverse else ())):
            for (names, one), (others, other) in combinations(template.spelled_out, 2):
                if one.may_equal(other):
                    first, second = next(pair for pair in zip(names, others, strict=True) if pair[0] != pair[1])
                    raise InvalidModel(
                        f"{edge.kind.name} ends at {first} or {second}, whose keys can be the same in {one}, so "
                        f"nothing would say which of them is meant; change the partition key of {first} or {second}"
                    )


def _check_collisions(keys: AdjacencyKeys) -> None:
    # The classes of a family have the keys of its head.
    nodes, edges = [each for each in keys.nodes.values() if each.kind.head is None], list(keys.edges.values())
    for one, other in combinations(nodes, 2):
        if one.partition.may_equal(other.partition) and one.sort.may_equal(other.sort):
            raise InvalidModel(
                f"{one.kind.name} and {other.kind.name} can have the same partition key {one.partition}"
                f"{f', and the same sort key {one.sort}' if one.sort.pieces else ''}; change a label or a template"
                f"{_or_bound(one, other)}"
            )
        # Node keys are what edges, ledgers and claims name nodes by. Nodes without edges may share them.
        are_both = keys.has_edges(one.kind) and keys.has_edges(other.kind)
        if not keys.layout.shared_ids and are_both and one.text.may_equal(other.text):
            raise InvalidModel(
                f"{one.kind.name} and {other.kind.name} can have the same node key {one.text}, and both have edges, "
                f"which could not be distinguished; change the partition key of one of them, or give the layout "
                f"shared_ids=True if no two nodes of the table have the same id"
            )
    everything: list[NodeKeys | EdgeKeys] = [*nodes, *edges]
    for kept in everything:
        if kept.sort.match(DELETION_SORT_KEY) is not None:
            raise InvalidModel(
                f"the sort key {kept.sort} of {kept.kind.name} can be {DELETION_SORT_KEY!r}, which marks a delete "
                f"in progress; change the template"
            )
    # An edge in the partition of its source is beside the source itself, and beside every node that shares the
    # partition.
    for edge, node in [(each, keys.nodes[source.model]) for each in edges for source in each.kind.source.classes]:
        if not edge.is_apart and node.kind not in edge.meets and node.sort.may_equal(edge.sort):
            raise InvalidModel(
                f"the sort key {edge.sort} of {edge.kind.name} can be {node.sort}, the sort key of "
                f"{node.kind.name} itself; change one of the templates{_or_bound(node, edge)}"
            )
        for beside in nodes:
            if (
                (beside is not node or edge.is_apart)
                and beside.kind not in edge.meets
                and beside.partition.may_equal(edge.partition)
                and beside.sort.may_equal(edge.sort)
            ):
                where = f"{beside.sort}, the sort key of a {beside.kind.name} in the same partition"
                if not beside.sort.pieces:
                    where = f"{beside.partition}, the key of a {beside.kind.name}"
                raise InvalidModel(
                    f"{last_key(edge.partition, edge.sort, 'the')} of {edge.kind.name} can be {where}; change one of "
                    f"the templates{_or_bound(beside, edge)}"
                )
    for one_edge, other_edge in combinations(edges, 2):
        # Edges of one source are in one partition. Others are only if their partition keys can be the same.
        are_at_source = not (one_edge.is_apart or other_edge.is_apart)
        same_partition = are_at_source and one_edge.kind.source is other_edge.kind.source
        same_partition = same_partition or one_edge.partition.may_equal(other_edge.partition)
        if same_partition and one_edge.sort.may_equal(other_edge.sort):
            where = f"{one_edge.sort} in the partition of a {one_edge.kind.source.name}"
            if not one_edge.sort.pieces:
                where = str(one_edge.partition)
            raise InvalidModel(
                f"{one_edge.kind.name} and {other_edge.kind.name} can have the same key {where}; add {{label}} to the "
                f"edge template"
            )


def _check_options(keys: AdjacencyKeys) -> None:
    """Refuses options of an index that nothing uses."""
    for index in keys.indexes:
        if keys.overloaded is not None and index.name == keys.overloaded.name and index.shards is not None:
            raise InvalidModel(
                f"the index {index.name!r} is that of indexed fields, which does not use its shards=; give the layout "
                f"shards= instead"
            )
        if index.shards is not None and not keys.shard_numbers.keys() & {*index.partition_keys}:
            raise InvalidModel(
                f"the index {index.name!r} has shards=, but no class has {{shard}} in a template of its partition key; "
                f"add such a template, or remove shards="
            )
        if index.shard_by is not None and index.shards is None:
            raise InvalidModel(
                f"the index {index.name!r} has shard_by=, but no shards=; say how many there are, or remove shard_by="
            )
        if others := index.types.keys() - {*index.keys}:
            raise InvalidModel(
                f"the index {index.name!r} has types= for {min(others)!r}, which is not a key attribute of it; "
                f"remove it"
            )


def _or_bound(one: NodeKeys, other: NodeKeys | EdgeKeys) -> str:
    """The further remedy if one key is fixed, and the other is of a number or a moment that can be the one in it."""
    fixed, open = (one, other) if not one.sort.parts else (other, one)
    counted = [part for part in open.sort.parts if part.is_id or part.name in open.kind.key]
    numbers = [part for part in counted if part.plain in _BOUNDS and "." not in part.name]
    if fixed.sort.parts or not numbers:
        return ""
    name, bound = numbers[-1].name, _BOUNDS[numbers[-1].plain or int]
    return f", or give {open.kind.name}.{name} a bound that excludes it, such as {bound}"


_BOUNDS: dict[type | None, str] = {int: "Field(ge=1)", dt.datetime: "Field(gt=datetime(1970, 1, 1, tzinfo=UTC))"}


def _check_reverse(keys: AdjacencyKeys) -> None:
    reverse = keys.reverse
    for edge in keys.edges.values():
        if reverse is None or edge.kind.symmetric:
            continue
        template = keys.template(edge, reverse.partition_attribute)
        target = keys.end_text(edge.kind.target, "target")
        if edge.target_field is None and (template is None or str(template) != target):
            raise InvalidModel(
                f"the reverse partition key {template} of {edge.kind.name} is not the key "
                f"{keys.node_text(edge.kind.target)} of its target {edge.kind.target.name}, so its edges could not be "
                f"found from there; give it that key, or give the layout reverse=None and declare the index in indexes="
            )


def _check_order(keys: AdjacencyKeys) -> None:
    """Checks that the edges of each ordered class can be read in its order."""
    index = keys.order_index
    if index is not None and {*index.keys} & keys.texts.main_keys():
        raise InvalidModel(f"the index {index.name!r} for order needs key attributes of its own")
    for edge in keys.edges.values():
        if edge.kind.order is None:
            continue
        source = keys.end_text(edge.kind.source, "source")
        template = edge.sort
        if edge.order_index is None and rest_of(edge.end_parts("source"), edge.partition, edge.sort) is None:
            raise InvalidModel(
                f"{edge.kind.name} is ordered by {edge.kind.order!r}, but its partition key {edge.partition} does not "
                f"keep the edges of a source together, so its sort key gives no order; remove order=, and let the sort "
                f"key of an index begin with that field"
            )
        if edge.order_index is not None:
            partition = edge.index_keys.get(edge.order_index.partition_attribute)
            if partition is None or str(partition) != source:
                raise InvalidModel(
                    f"the order partition key {partition} of {edge.kind.name} is not the key "
                    f"{keys.node_text(edge.kind.source)} of its "
                    f"source {edge.kind.source.name}, so its edges could not be found from there"
                )
            template = edge.index_keys.get(edge.order_index.sort_attribute or "", edge.sort)
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
    others = keys.texts.main_keys() | ({keys.order_index.partition_attribute} if keys.order_index else set())
    if index is not None and {*index.keys} & others:
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
                f"the partition key {kept.partition} of {kept.kind.name} ends with {OWN!r}, as adjoin's "
                f"own index copies do; change the template"
            )
        if (
            isinstance(kept, EdgeKeys)
            and len(kept.kind.indexed) > 1
            and (kept.loose or not (kept.sort.told | kept.partition.told).issuperset(kept.target_parts))
        ):
            raise InvalidModel(
                f"{kept.kind.name} has two indexed fields, which needs a sort key that tells its target, and "
                f"{kept.sort} does not; index one field, or change the template"
            )


# --- aggregates and copied fields --------------------------------------------------------------


def check_maintained(keys: AdjacencyKeys, rules: Rules, accesses: AdjacencyAccesses) -> None:
    """Refuses aggregates and copied fields that the keys leave no room for, or whose edges cannot be found."""
    if rules:
        _check_names(keys.definition)
    _check_apart(keys, rules, accesses)
    found_by_index = [group.edge for group in rules.groups if group.hop.direction == "into"]
    found_by_index += [copy.edge for copy in rules.copies if copy.end == "target"]
    for edge in found_by_index:
        if accesses.arriving[edge.model] is None:
            raise InvalidModel(
                f"something is counted or copied at the target of {edge.name}, but the layout has no "
                f"reverse index to find edges from there; give it one with reverse=Index(…)"
            )


def _kept(keys: AdjacencyKeys, kind: EntityType) -> NodeKeys | EdgeKeys:
    return keys.edges[kind.model] if isinstance(kind, EdgeType) else keys.nodes[kind.model]


def _check_apart(keys: AdjacencyKeys, rules: Rules, accesses: AdjacencyAccesses) -> None:
    """Refuses aggregates and copied fields over edges that could not be counted exactly, because of their keys."""
    uses = [(group.edge, group.hop.direction == "out") for group in rules.groups]
    uses += [(copy.edge, copy.end == "source") for copy in rules.copies]
    for edge, is_at_source in uses:
        kept = _kept(keys, edge)
        if isinstance(kept, NodeKeys):
            # The keys of a child tell its parent, and a query of the table finds it from there.
            continue
        if kept.loose:
            raise InvalidModel(
                f"something is counted or copied over {edge.name}, but its {next(iter(kept.loose))} is not part "
                f"of its key, so a put can change it, and nothing would correct the old node; remove the aggregate or "
                f"the copied field, or add the end to the keys"
            )
        if is_at_source and kept.is_apart and accesses.apart[edge.model] is None:
            raise InvalidModel(
                f"something is counted or copied at the source of {edge.name}, but its partition key "
                f"{kept.partition} is not made of its source alone, and an index may lag behind; remove the "
                f"aggregate or the copied field, or change the template"
            )


def _check_names(definition: TableDefinition) -> None:
    """Refuses keys and a time to live with a name that adjoin's own items use for something else."""
    attributes = [*definition.keys, *(key for index in definition.indexes for key in index.keys)]
    names = [key.name for key in attributes] + [definition.ttl or ""]
    for name in names:
        if name in OWN_NAMES:
            raise InvalidModel(
                f"{name!r} is a key or the time to live of the table {definition.name}, and also a name in what "
                f"adjoin records about aggregates and copied fields; give it another name, or declare none of these"
            )
