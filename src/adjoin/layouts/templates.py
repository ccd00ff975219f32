"""The key templates of an adjacency list, compiled for each class.

This happens once, when a graph opens. Compiling a template refuses an unknown placeholder, and a key without the values
that it needs. `conflicts` then examines all classes together. Items are not built here.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel
from adjoin.field_types import unknown_field
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, rest_of
from adjoin.layouts.interface import DELETING, REVISION
from adjoin.layouts.keys import Quoting, Template
from adjoin.layouts.records import FieldRecord
from adjoin.layouts.template_compiler import AS_IT_IS, TemplateCompiler
from adjoin.layouts.template_texts import JOINT
from adjoin.reserved import OWN
from adjoin.schema import Schema
from adjoin.tables import KeyType

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList
    from adjoin.rules import CopyRule


DELETION_SORT_KEY = "#DELETING"
"""The sort key of the deletion record, in the partition of its node."""

_IN_TYPED = {"S": "", "N": "-.0123456789", "B": "+/=" + string.digits + string.ascii_letters}
"""The characters that a key of each type may contain, besides text, which is quoted."""


class AdjacencyKeys(TemplateCompiler):
    """All templates of one layout for one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None,
        copies: Sequence[CopyRule] = (),
        like: AdjacencyKeys | None = None,
        lead: str = "",
    ) -> None:
        """`like` has the templates of the same classes for another tenant; field records are shared with it.

        `lead` is the text before the tenant in the prefix of its keys.
        """
        super().__init__(layout, schema, tenant, copies, like, lead)
        self._like = like
        self.nodes: dict[type[Any], NodeKeys] = {}
        for kind in schema.nodes.values():
            self.nodes[kind.model] = self._node_keys(kind)
        self.edges = {kind.model: self._edge_keys(kind) for kind in schema.edges.values()}
        self.guarded: frozenset[type[Any]] = self._find_guarded() if like is None else like.guarded
        """The classes with ids that would end a partition key as adjoin's own items do; these are refused."""
        self.definition = self._table_definition()

    def has_edges(self, kind: NodeType) -> bool:
        """Whether nodes of a class have edges or children."""
        return kind.model in self._with_edges

    @cached_property
    def _with_edges(self) -> frozenset[type[Any]]:
        edges, nodes = self.schema.edges.values(), self.schema.nodes.values()
        return frozenset(
            kind.model for kind in nodes if self.schema.children(kind) or any(edge.joins(kind) for edge in edges)
        )

    def end_text(self, kind: NodeType, side: str) -> str:
        """The text of the template of a node key, as edges write the key of a node at that end."""
        if isinstance(kind, NodeUnion):
            return f"{self.prefix}{{{side}.{kind.parts[0]}}}"
        return self.nodes[kind.model].text.prefixed(side)

    def node_text(self, kind: NodeType) -> str:
        """The template of a node key, for messages."""
        return " or ".join(str(self.nodes[each.model].text) for each in kind.classes)

    def template(self, keys: NodeKeys | EdgeKeys, attribute: str) -> Template | None:
        """The template of a class for a key attribute of the table or of an index."""
        if attribute == self.layout.partition_key:
            return keys.partition
        return keys.sort if attribute == self.layout.sort_key else keys.index_keys.get(attribute)

    def _find_guarded(self) -> frozenset[type[Any]]:
        """The classes whose partition keys could be those of adjoin's own items beside another node."""
        if self.table.why_no_own_items is not None:
            return frozenset()
        # What adjoin stores beside a node is under its key and OWN. A partition key that can be such a text could
        # hide it.
        beside = [
            Template(text.owner, [*text.pieces, OWN], text.quoting, repeats=True)
            for node in self.nodes.values()
            for text in ((node.partition, node.text) if node.rest else (node.partition,))
        ]
        apart = [edge for edge in self.edges.values() if edge.is_apart]
        beside += [Template(each.kind.name, [*each.partition.pieces, OWN], each.partition.quoting) for each in apart]
        owners: list[NodeKeys | EdgeKeys] = [*self.nodes.values(), *apart]
        return frozenset(each.kind.model for each in owners if any(map(each.partition.may_equal, beside)))

    def telling(self, keys: NodeKeys | EdgeKeys) -> dict[str, Template]:
        """The key attributes of indexes, and the further attributes that hold what is stored nowhere else."""
        unstored = keys.kind.attributes.keys() - keys.record.stored_names
        if isinstance(keys, EdgeKeys):
            unstored |= {part for side in keys.loose for part in keys.end_parts(side)}
        further = self.texts.further(keys.kind)
        return {
            name: template
            for name, template in keys.index_keys.items()
            if name not in further or template.told & unstored
        }

    def type_of(self, attribute: str) -> KeyType:
        """The type of a key attribute of the table or of an index."""
        return next((key.type for key in self.definition.key_attributes if key.name == attribute), "S")

    def _node_keys(self, kind: NodeType) -> NodeKeys:
        compiled = self._compiled(kind, self.texts.templates[kind.model])
        partition, sort = self._of_table(kind, compiled)
        for role, template in (("partition", partition), ("sort", sort)):
            for part in template.parts:
                if part.name not in kind.parts:
                    raise InvalidModel(
                        f"the {role} key {template} of {kind.name} uses {part.name!r}, but a node is found by its id "
                        f"alone, and a put with another value would leave a second item; make the field part of the "
                        f"id: key=({', '.join(map(repr, (*kind.key, part.name)))})"
                    )
        for name in kind.parts:
            if name in partition.told or name in sort.told:
                continue
            if kind.is_single and not sort.parts:
                raise InvalidModel(
                    f"the partition key {partition} of {kind.name} does not contain its id; add {{{name}}}"
                    f"{', without a transform that loses its value' if name in partition.names else ''}"
                )
            raise InvalidModel(
                f"the keys {partition} and {sort} of {kind.name} do not tell {name!r}, which is part of its id; add "
                f"{{{name}}} to one of them, without a transform that loses its value"
            )
        # Parts of the id that the partition key does not tell are in the sort key: then nodes share a partition, and
        # only both keys together name one of them.
        rest = tuple(name for name in kind.parts if name not in partition.told)
        if kind.head is not None:
            self._check_shared(kind, self.nodes[kind.head.model], partition, sort)
        is_apart, parent_rest = self._beside_parent(kind, partition, sort)
        text = partition
        if rest:
            joined = self._joined(kind, partition, sort)
            text = Template(kind.name, [*partition.pieces, JOINT, *sort.pieces], joined, repeats=True)
        told = sort.told.union(*(each.told for each in (partition, *compiled.values())))
        unstored = self._only_in_keys(kind, told)
        if self._like is None:
            record = FieldRecord(kind, unstored, self._names_of_layout(kind))
        else:
            record = self._like.nodes[kind.model].record
        explained = self._explained(kind, compiled)
        return NodeKeys(kind, partition, sort, compiled, record, text, rest, explained, is_apart, parent_rest)

    def _of_table(self, kind: EntityType, compiled: dict[str, Template]) -> tuple[Template, Template]:
        """Takes out the templates of the table's own keys; a table without a sort key has one that is empty."""
        sort = self.layout.sort_key
        empty = Template(kind.name, [], AS_IT_IS)
        return compiled.pop(self.layout.partition_key), empty if sort is None else compiled.pop(sort)

    def _joined(self, kind: NodeType, partition: Template, sort: Template) -> Quoting:
        """How the values of both keys are told apart where the keys are joined to a node key.

        Each key alone says what its values cannot contain. Refuses separators that a number or bytes may contain.
        """
        names = (self.layout.partition_key, self.layout.sort_key)
        first, second = (self._quotings.get(name or "", AS_IT_IS) for name in names)
        typed = "".join(_IN_TYPED[template.type] for template in (partition, sort))
        if ends := sorted((first.ends | second.ends).intersection(typed)):
            raise InvalidModel(
                f"the keys {partition} and {sort} of {kind.name} are not both text, and templates of this layout "
                f"separate parts by {ends[0]!r}, which such a key may contain; separate them by '#'"
            )
        return first if first.ends == second.ends else Quoting(first.ends & second.ends, escape=first.escape)

    def _only_in_keys(self, kind: EntityType, told: Collection[str]) -> frozenset[str]:
        """The fields that a class stores in its keys only."""
        names = self.texts.keys_of(kind).only_in_keys
        for name in names:
            if name not in kind.attributes:
                raise InvalidModel(f"only_in_keys={name!r}: " + unknown_field(kind.name, name, kind.attributes))
            if name not in told:
                raise InvalidModel(
                    f"{kind.name}.{name} would be stored nowhere: only_in_keys names it, but no key of the class holds "
                    f"its whole value; add {{{name}}} to a template"
                )
        return frozenset(names)

    def _names_of_layout(self, kind: EntityType) -> set[str]:
        """The attributes of a class that are no fields."""
        return (self.attributes - self._plain_keys(kind)) | self.texts.further(kind)

    def _explained(self, kind: EntityType, index_keys: Mapping[str, Template]) -> frozenset[str]:
        """The attributes that adjoin writes or reads on items of a class."""
        layout = self.layout
        names = {*self.table.names, DELETING, REVISION, *([layout.type_attribute] if layout.type_attribute else [])}
        made = {name for index in self.texts.made for name in index.keys}
        former = {each for others in kind.former.values() for each in others}
        return frozenset(names | made | index_keys.keys() | {*kind.attributes.values()} | former)

    def _plain_keys(self, kind: EntityType) -> set[str]:
        """The key attributes of indexes that are fields of the class."""
        keys = {name for index in self.indexes for name in index.keys}
        return {name for name in keys if self.texts.is_plain(kind, name)}

    def _check_shared(self, kind: NodeType, head: NodeKeys, partition: Template, sort: Template) -> None:
        if str(partition) != str(head.partition) or str(sort) != str(head.sort):
            raise InvalidModel(
                f"{kind.name} has the keys of {head.kind.name}, {head.partition} and {head.sort}, but the layout gives "
                f"it {partition} and {sort}; leave these templates out, or derive {kind.name} from another class"
            )

    def _beside_parent(self, kind: NodeType, partition: Template, sort: Template) -> tuple[bool, tuple[str, ...]]:
        """Whether a child has another partition than its parent, and the parts of its parent's id in its sort key."""
        parent = kind.parent
        if parent is None:
            return False, ()
        above = self.nodes[parent.model]
        # In the partition of the parent, a child is told from those of other parents by what the partition key lacks.
        if str(partition) == above.partition.prefixed("parent"):
            rest = tuple(f"parent.{name}" for name in above.rest)
            self._check_rest(kind, sort, [*rest], parent, "parent")
            return False, rest
        found = rest_of([f"parent.{name}" for name in parent.parts], partition, sort)
        if found is None:
            raise InvalidModel(
                f"the partition key {partition} of {kind.name} is not the key {above.partition} of its parent "
                f"{parent.name}, and is not made of its id alone, so children could not be found from there"
            )
        return True, found

    def _check_rest(self, kind: EntityType, sort: Template, rest: list[str], node: NodeType, role: str) -> None:
        """Refuses a sort key that does not begin with the rest of the id of a node in a shared partition."""
        if {part.name for part in sort.parts[: len(rest)] if part.transform.decode} != {*rest}:
            wanted = " and ".join(f"{{{name}}}" for name in rest)
            raise InvalidModel(
                f"nodes of {node.name} share a partition, so the sort key {sort} of {kind.name} must begin with "
                f"the rest of the id of its {role}; begin the template with {wanted}"
            )

    def _edge_keys(self, kind: EdgeType) -> EdgeKeys:
        compiled = self._compiled(kind, self.texts.templates[kind.model])
        partition, sort = self._of_table(kind, compiled)
        sources = [self.nodes[each.model] for each in kind.source.classes]
        # All classes at an end of an edge have one template for their keys here: that of a union, so the first stands
        # for all.
        is_apart = str(partition) != self._source_text(kind, sources[0])
        rest = [] if is_apart else [f"source.{name}" for name in sources[0].rest]
        if not is_apart:
            self._check_rest(kind, sort, rest, kind.source, "source")
        names = [part.name for part in (*partition.parts, *sort.parts)]
        in_keys = [name for name in names if name in kind.attributes]
        missing = [name for name in kind.key if name not in in_keys]
        if missing := missing + [name for name in kind.key_parts if name not in names]:
            raise InvalidModel(
                f"{kind.name} has the key field {missing[0]!r}, but {last_key(partition, sort)} does not contain it; "
                f"add {{{missing[0]}}} to the template"
            )
        told = (partition.told | sort.told).union(*(each.told for each in compiled.values()))
        target_field = self._target_field(kind, compiled)
        if self._like is None:
            in_both = partition.told | sort.told if self.texts.is_declared(kind) else set()
            record = FieldRecord(kind, self._only_in_keys(kind, told) | in_both, self._names_of_layout(kind))
        else:
            record = self._like.edges[kind.model].record
        meets = () if rest or is_apart else self._met_by(sources, sort)
        made = EdgeKeys(
            kind,
            partition,
            sort,
            compiled,
            record,
            fields=tuple(dict.fromkeys([*kind.key, *in_keys])),
            target_field=target_field,
            meets=meets,
            order_index=self.layout.ordered if self.texts.needs_order_index(kind) else None,
            explained=self._explained(kind, compiled),
            rest=tuple(rest),
            is_apart=is_apart,
            also_stored=self._also_stored(kind, record, in_keys),
        )
        is_by_field = target_field in told and target_field in names
        sides = [side for side in ("source", "target") if not {*names}.issuperset(made.end_parts(side))]
        loose = {side: self._loose(made, side) for side in sides if side == "source" or not is_by_field}
        self._check_symmetric(made)
        # The keys of an edge may take ids that those of the node refuse, for example with a separator in them. Such an
        # edge would lead to a node that cannot exist.
        told_by = [compiled[name] for names in loose.values() for name in names]
        ends = {"source": kind.source, "target": kind.target}
        stricter = tuple(
            side
            for side, end in ends.items()
            if any(self.nodes[each.model].takes_less_than(side, [partition, sort, *told_by]) for each in end.classes)
        )
        return replace(made, loose=loose, stricter=stricter)

    def _also_stored(self, kind: EdgeType, record: FieldRecord, in_keys: Collection[str]) -> tuple[str, ...]:
        plain, left_out = self._plain_keys(kind), self.texts.keys_of(kind).only_in_keys
        names = [name for name in dict.fromkeys(in_keys) if kind.attributes[name] in plain]
        return tuple(name for name in names if name not in left_out and name not in record.stored_names)

    def _met_by(self, sources: Sequence[NodeKeys], sort: Template) -> tuple[NodeType, ...]:
        nodes = self.nodes.values()
        return tuple(node.kind for node in nodes if any(_meets(node, source, sort) for source in sources))

    def _loose(self, keys: EdgeKeys, side: str) -> tuple[str, ...]:
        """The attributes that tell an end of an edge which the table's keys do not have."""
        kind, parts = keys.kind, {*keys.end_parts(side)}
        are_both = side == "source" and bool(keys.sort.pieces)
        where = f"the keys {keys.partition} and {keys.sort}" if are_both else last_key(keys.partition, keys.sort, "the")
        if not (kind.key or kind.key_parts) or kind.symmetric:
            verb = "do" if are_both else "does"
            some = [part for part in keys.end_parts(side) if part in (*keys.partition.names, *keys.sort.names)]
            more = f", or say that this is enough, with key={(*some,)!r} of the class" if some else ""
            raise InvalidModel(
                f"{where} of {kind.name} {verb} not contain its {side}, so edges to different nodes "
                f"would overwrite each other; add {{{side}}} to the template{'' if kind.symmetric else more}"
            )
        found = {name: each for name, each in keys.index_keys.items() if each.names and {*each.names} <= parts}
        if {part for each in found.values() for part in each.told} != parts:
            named = ", ".join(f'"…": "{{{part}}}"' for part in keys.end_parts(side))
            raise InvalidModel(
                f"{where} of {kind.name} {'do' if are_both else 'does'} not contain its {side}, and no "
                f"attribute tells it; add it to the template, or give its Keys attributes={{{named}}}"
            )
        return tuple(found)

    def _check_symmetric(self, keys: EdgeKeys) -> None:
        if keys.kind.symmetric and rest_of(keys.end_parts("source"), keys.partition, keys.sort) is None:
            raise InvalidModel(
                f"{keys.kind.name} is symmetric, so it is stored at both its ends, but its partition key "
                f"{keys.partition} is not made of its source alone; change the template, or remove symmetric="
            )

    def _source_text(self, kind: EdgeType, source: NodeKeys) -> str:
        """The text of the partition key of edges, as its template has to be."""
        if isinstance(kind.source, NodeUnion):
            return self.end_text(kind.source, "source")
        return source.partition.prefixed("source")

    def _target_field(self, kind: EdgeType, index_keys: Mapping[str, Template]) -> str | None:
        """The field that is the target's id: with it, the reverse partition key is the target's key."""
        if isinstance(kind.target, NodeUnion):
            return None
        reverse = self.reverse
        template = index_keys.get(reverse.partition_attribute) if reverse else None
        if template is None or len(template.parts) != 1 or template.parts[0].name not in kind.attributes:
            return None
        name = template.parts[0].name
        target = self.nodes[kind.target.model]
        is_same = kind.target.is_single and str(template) == target.text.spelled(**{kind.target.parts[0]: name})
        return name if is_same else None


def _meets(node: NodeKeys, source: NodeKeys, sort: Template) -> bool:
    """Whether the sort key of an edge can be that of a node in its partition, whose both keys hold its whole id."""
    is_told = bool(node.sort.parts) and not node.rest and {*node.kind.parts} <= node.sort.told
    if node is source:
        is_told = bool(node.sort.parts)
    return is_told and node.partition.may_equal(source.partition) and node.sort.may_equal(sort)


def last_key(partition: Template, sort: Template, whose: str = "its") -> str:
    """The sort key, or the partition key of a table that has no sort key, for messages."""
    return f"{whose} sort key {sort}" if sort.pieces else f"{whose} partition key {partition}"
