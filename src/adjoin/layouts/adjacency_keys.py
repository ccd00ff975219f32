"""The key templates of an adjacency list, compiled for each class.

A placeholder that means nothing, or a key that does not tell what it must, is found here, when the
graph opens; whether the classes get along is for `adjacency_checks`. Items are not built here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from adjoin.errors import InvalidModel
from adjoin.layouts.interface import DELETING, OWNER, REVISION, Index, Keys
from adjoin.layouts.keys import Part, Quoting, Template, delimiters, parse_template, transform
from adjoin.layouts.records import Record
from adjoin.schema import EdgeType, EntityType, NodeType, Schema, plain_type, unknown_field
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.tenants import tenant_prefix

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

NODE_SORT_KEY = "#META"
DELETION_SORT_KEY = "#DELETING"
"""Where a delete in progress is recorded, in the partition of its node."""

_Pieces: TypeAlias = list[str | Part]
_T = TypeVar("_T")


@dataclass(frozen=True)
class NodeKeys:
    kind: NodeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: Record


@dataclass(frozen=True)
class EdgeKeys:
    kind: EdgeType
    partition: Template
    sort: Template
    index_keys: Mapping[str, Template]
    record: Record
    fields: tuple[str, ...]
    """The fields of the edge's identity."""
    target_field: str | None
    """The field that is the target's id, where templates name it instead of {target}."""
    may_meet_node: bool
    """Whether an edge from a node to itself would have the node's own key."""
    order_index: Index | None
    """The index that holds the order, where the sort key does not."""


class AdjacencyKeys:
    """All templates of one layout for one schema."""

    def __init__(
        self, layout: AdjacencyList, schema: Schema, tenant: str | None, like: AdjacencyKeys | None = None
    ) -> None:
        """`like` has the templates of the same classes for another tenant, whose records are the same."""
        self.layout = layout
        self.schema = schema
        self._like = like
        self.prefix = "" if tenant is None else tenant_prefix(tenant)
        for model in layout.keys:
            if model not in schema.nodes and model not in schema.edges:
                raise InvalidModel(f"keys= names {model.__name__}, which is no class of this graph")
        edges = schema.edges.values()
        self.order_index = layout.ordered if any(map(self._needs_order_index, edges)) else None
        self.overloaded = layout.indexed if any(kind.indexed for kind in schema.types) else None
        self.indexes = tuple(index for index in (layout.reverse, self.order_index, self.overloaded) if index)
        self.partition_keys = {layout.partition_key, *(index.partition_key for index in self.indexes)}
        """The attributes that are a partition key, of the table or of an index; a tenant's have its prefix."""
        self.attributes = self._key_attributes()
        self._quoting = self._make_quoting()
        self._escaping = Quoting(self._quoting.ends, escape=True)
        self.nodes = {kind.model: self._node_keys(kind) for kind in schema.nodes.values()}
        self.edges = {kind.model: self._edge_keys(kind) for kind in edges}
        self.definition = self._definition()

    def template(self, keys: NodeKeys | EdgeKeys, attribute: str) -> Template | None:
        """What a class has in a key attribute, of the table or of an index."""
        own = {self.layout.partition_key: keys.partition, self.layout.sort_key: keys.sort}
        return own.get(attribute) or keys.index_keys.get(attribute)

    # --- templates as declared -----------------------------------------------------------------

    def _keys(self, kind: EntityType) -> Keys:
        return self.layout.keys.get(kind.model) or Keys()

    def _node_templates(self, kind: NodeType) -> dict[str, str]:
        own, layout = self._keys(kind), self.layout
        templates = {
            layout.partition_key: own.partition or "{label}#{id}",
            layout.sort_key: own.sort or layout.node or NODE_SORT_KEY,
        }
        if layout.reverse:
            _add(templates, layout.reverse.partition_key, own.reverse_partition)
            _add(templates, layout.reverse.sort_key, own.reverse_sort)
        return templates

    def _edge_templates(self, kind: EdgeType) -> dict[str, str]:
        own, layout, reverse = self._keys(kind), self.layout, self.layout.reverse
        order = f"{{{kind.order}:sortable}}#" if kind.order else ""
        rest = "".join(f"#{{{name}:sortable}}" for name in kind.key if name != kind.order)
        in_key = order if kind.order in kind.key else ""
        templates = {
            layout.partition_key: own.partition or "{source}",
            layout.sort_key: own.sort or layout.edge or f"{{label}}#{in_key}{{target}}{rest}",
        }
        if reverse and not kind.symmetric:
            _add(templates, reverse.partition_key, own.reverse_partition or reverse.partition or "{target}")
            _add(
                templates,
                reverse.sort_key,
                own.reverse_sort or reverse.sort or f"{{label}}#{order}{{source}}{rest}",
            )
        if self._needs_order_index(kind):
            index = layout.ordered
            _add(templates, index.partition_key, index.partition or "{source}")
            _add(templates, index.sort_key, index.sort or f"{{label}}#{order}{{target}}{rest}")
        return templates

    def _needs_order_index(self, kind: EdgeType) -> bool:
        if kind.order is None:
            return False
        template = self._keys(kind).sort or self.layout.edge
        if template is None:
            return kind.order not in kind.key
        parts = [piece for piece in self._expanded(kind, template) if isinstance(piece, Part)]
        return not parts or parts[0].name != kind.order

    def _is_declared(self, kind: EdgeType) -> bool:
        """Whether the templates were written for an existing table, rather than chosen by adjoin."""
        return kind.model in self.layout.keys or self.layout.edge is not None

    def _make_quoting(self) -> Quoting:
        layout = self.layout
        declared: list[tuple[EntityType, dict[str, str]]] = [
            *((kind, self._node_templates(kind)) for kind in self.schema.nodes.values()),
            *((kind, self._edge_templates(kind)) for kind in self.schema.edges.values()),
        ]
        expanded = [self._expanded(kind, each) for kind, templates in declared for each in templates.values()]
        escape = layout.escape if layout.escape is not None else not layout.has_own_templates
        return Quoting(delimiters(expanded), escape=escape)

    # --- placeholders --------------------------------------------------------------------------

    def _expanded(self, kind: EntityType, template: str) -> _Pieces:
        pieces: _Pieces = []
        for piece in parse_template(template):
            if isinstance(piece, str):
                pieces.append(piece)
            elif isinstance(kind, EdgeType):
                pieces += self._edge_piece(kind, piece, template)
            elif isinstance(kind, NodeType):
                pieces += self._node_piece(kind, piece, template)
        return pieces

    def _node_piece(self, kind: NodeType, part: Part, template: str) -> _Pieces:
        match part.name:
            case "label" | "node" if part.transform.name:
                raise _no_transform(kind, part, template)
            case "label":
                return [kind.label]
            case "node":
                return self._node_pieces(kind, "id")
            case name if name in kind.fields:
                return [_fitting(kind, part)]
        raise _unknown_placeholder(kind, part, template, ["node", "label", *kind.fields])

    def _edge_piece(self, kind: EdgeType, part: Part, template: str) -> _Pieces:
        match part.name:
            case "label" | "source" | "target" if part.transform.name:
                raise _no_transform(kind, part, template)
            case "label":
                return [kind.label]
            case "source":
                return self._node_pieces(kind.source, "source.id")
            case "target":
                return self._node_pieces(kind.target, "target.id")
            case "source.id" | "target.id" if part.transform.decode is None:
                raise _no_transform(kind, part, template)
            case "source.id" | "target.id":
                end = kind.source if part.name == "source.id" else kind.target
                return [replace(part, plain=end.id_type)]
            case name if name in kind.attributes:
                return [_fitting(kind, part)]
            case name if kind.source is not kind.target:
                # {country} in an edge to Country is the country's id.
                for side, end in (("source", kind.source), ("target", kind.target)):
                    if name == _snake(end.name):
                        return [Part(f"{side}.id", part.transform, end.id_type)]
        raise _unknown_placeholder(kind, part, template, ["source", "target", "label", *kind.attributes])

    def _node_pieces(self, kind: NodeType, name: str) -> _Pieces:
        template = self._keys(kind).partition or "{label}#{id}"
        return [
            replace(piece, name=name) if isinstance(piece, Part) and piece.name == "id" else piece
            for piece in self._expanded(kind, template)
        ]

    # --- compiling -----------------------------------------------------------------------------

    def _compiled(self, kind: EntityType, templates: Mapping[str, str]) -> dict[str, Template]:
        made = self._made_sort_keys(kind)
        return {
            attribute: Template(
                kind.name,
                [self.tenant_part(attribute), *self._expanded(kind, template)],
                self._escaping if attribute in made else self._quoting,
            )
            for attribute, template in templates.items()
        }

    def tenant_part(self, attribute: str) -> str:
        """What the tenant adds in front of a key attribute."""
        return self.prefix if attribute in self.partition_keys else ""

    def _made_sort_keys(self, kind: EntityType) -> set[str | None]:
        """Sort keys of indexes that nobody declared: whatever the layout, they escape, and so sort rightly."""
        made: set[str | None] = set()
        own, reverse, ordered = self._keys(kind), self.layout.reverse, self.order_index
        if isinstance(kind, EdgeType) and reverse and not (own.reverse_sort or reverse.sort):
            made.add(reverse.sort_key)
        if isinstance(kind, EdgeType) and ordered and not ordered.sort:
            made.add(ordered.sort_key)
        return made - {self.layout.partition_key, self.layout.sort_key}

    def _node_keys(self, kind: NodeType) -> NodeKeys:
        compiled = self._compiled(kind, self._node_templates(kind))
        partition, sort = compiled.pop(self.layout.partition_key), compiled.pop(self.layout.sort_key)
        for role, template in (("partition", partition), ("sort", sort)):
            for part in template.parts:
                if part.name != "id":
                    raise InvalidModel(
                        f"the {role} key {template} of {kind.name} uses {part.name!r}, "
                        f"but a node is found by its id alone"
                    )
        if not any(part.transform.decode for part in partition.parts):
            raise InvalidModel(f"the partition key {partition} of {kind.name} does not tell its id; add {{id}}")
        record = Record(kind, (), self.attributes) if self._like is None else self._like.nodes[kind.model].record
        return NodeKeys(kind, partition, sort, compiled, record)

    def _edge_keys(self, kind: EdgeType) -> EdgeKeys:
        compiled = self._compiled(kind, self._edge_templates(kind))
        partition, sort = compiled.pop(self.layout.partition_key), compiled.pop(self.layout.sort_key)
        source = self.nodes[kind.source.model].partition
        if str(partition) != source.spelled(id="source.id"):
            raise InvalidModel(
                f"the partition key {partition} of {kind.name} is not the key {source} of its source "
                f"{kind.source.name}, so its edges could not be found from there"
            )
        in_sort = [part.name for part in sort.parts if part.name in kind.attributes]
        if missing := [name for name in kind.key if name not in in_sort]:
            raise InvalidModel(
                f"{kind.name} is told apart by {missing[0]!r}, but its sort key {sort} does not hold it; "
                f"add {{{missing[0]}}} to the template"
            )
        told = sort.told.union(*(each.told for each in compiled.values()))
        target_field = self._target_field(kind, compiled)
        target_names = {"target.id", target_field}
        if not (target_names & told and target_names & {part.name for part in sort.parts}):
            raise InvalidModel(
                f"the sort key {sort} of {kind.name} does not tell its target, so edges to different nodes "
                f"would overwrite each other; add {{target}} to the template"
            )
        node_sort = self.nodes[kind.source.model].sort
        if self._like is None:
            record = Record(kind, sort.told if self._is_declared(kind) else (), self.attributes)
        else:
            record = self._like.edges[kind.model].record
        return EdgeKeys(
            kind,
            partition,
            sort,
            compiled,
            record,
            fields=tuple(dict.fromkeys([*kind.key, *in_sort])),
            target_field=target_field,
            may_meet_node=bool(node_sort.parts) and node_sort.may_equal(sort),
            order_index=self.layout.ordered if self._needs_order_index(kind) else None,
        )

    def _target_field(self, kind: EdgeType, index_keys: Mapping[str, Template]) -> str | None:
        """A field that is the target's id, because with it the reverse partition is the target's key."""
        reverse = self.layout.reverse
        template = index_keys.get(reverse.partition_key) if reverse else None
        if template is None or len(template.parts) != 1 or template.parts[0].name not in kind.attributes:
            return None
        name = template.parts[0].name
        target = self.nodes[kind.target.model].partition
        return name if str(template) == target.spelled(id=name) else None

    # --- checks --------------------------------------------------------------------------------

    def _key_attributes(self) -> set[str]:
        layout = self.layout
        if layout.partition_key == layout.sort_key or layout.type_attribute in self.main_keys():
            raise InvalidModel(
                "the layout uses one attribute for two things: give keys and type attributes of their own"
            )
        names = {layout.partition_key, layout.sort_key, layout.type_attribute, DELETING, REVISION, OWNER}
        for index in self.indexes:
            names |= {index.partition_key, index.sort_key}
        return {name for name in names if name}

    def main_keys(self) -> set[str]:
        """The key attributes of the table and of its reverse index."""
        layout, reverse = self.layout, self.layout.reverse
        keys = [layout.partition_key, layout.sort_key]
        keys += [name for name in (reverse.partition_key, reverse.sort_key) if name] if reverse else []
        return set(keys)

    def _definition(self) -> TableDefinition:
        layout = self.layout
        expiring = {kind.attributes[kind.expires]: kind for kind in self.schema.types if kind.expires is not None}
        if len(expiring) > 1:
            (one, first), (other, second) = list(expiring.items())[:2]
            raise InvalidModel(
                f"{first.name} expires by {one!r} and {second.name} by {other!r}, but a table has one such "
                f"attribute; give both fields the same alias"
            )
        return TableDefinition(
            layout.table,
            KeyAttribute(layout.partition_key),
            KeyAttribute(layout.sort_key),
            tuple(
                IndexDefinition(
                    index.name,
                    KeyAttribute(index.partition_key),
                    KeyAttribute(index.sort_key) if index.sort_key else None,
                    index.projection,
                    throughput=index.throughput,
                )
                for index in self.indexes
            ),
            ttl=next(iter(expiring), None),
            stream=layout.stream,
            throughput=layout.throughput,
            point_in_time_recovery=layout.point_in_time_recovery,
            deletion_protection=layout.deletion_protection,
            tags=tuple(sorted(layout.tags.items())),
        )


def _add(templates: dict[str, str], attribute: str | None, template: str | None) -> None:
    """Adds a template for a key attribute, unless that is one of the table's own keys already."""
    if attribute is not None and template is not None:
        templates.setdefault(attribute, template)


def _no_transform(kind: EntityType, part: Part, template: str) -> InvalidModel:
    return InvalidModel(
        f"in the key template {template!r} of {kind.name}, {{{part.name}}} cannot be changed by "
        f"{part.transform.name!r}: nodes would not be found by it, or found as others"
    )


def is_number(kind: EntityType, name: str) -> bool:
    plain = plain_type(kind.fields[name])
    if plain is not None and issubclass(plain, Enum):
        return all(isinstance(member.value, (int, Decimal)) for member in plain)
    return plain is not None and issubclass(plain, (int, Decimal))


def _fitting(kind: EntityType, part: Part) -> Part:
    """Only numbers need an encoding to sort; text that happens to look like one must stay as it is."""
    plain = plain_type(kind.fields[part.name])
    if "%" in part.transform.name and not (plain is not None and issubclass(plain, dt.date)):
        raise InvalidModel(
            f"{kind.name}.{part.name} is no date, so {{{part.name}:{part.transform.name}}} has no meaning"
        )
    part = replace(part, plain=plain)
    if part.transform.name != "sortable" or is_number(kind, part.name):
        return part
    return replace(part, transform=transform(""))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _unknown_placeholder(kind: EntityType, part: Part, template: str, known: list[str]) -> InvalidModel:
    detail = unknown_field(kind.name, part.name, known)
    return InvalidModel(f"in the key template {template!r}: {detail}")
