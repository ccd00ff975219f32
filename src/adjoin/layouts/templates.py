"""The key templates of an adjacency list, compiled for each class.

This happens once, when a graph opens. Compiling a template refuses an unknown placeholder, and a key without the values
that it needs. `conflicts` then examines all classes together. Items are not built here.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion, tag_of
from adjoin.errors import AdjoinError, InvalidModel, InvalidValue, shown
from adjoin.field_types import plain_type, unknown_field
from adjoin.layouts.entity_keys import EdgeKeys, NodeKeys, rest_of
from adjoin.layouts.forms import Due
from adjoin.layouts.interface import DELETING, OWNER, REVISION, Index
from adjoin.layouts.keys import (
    SEPARATOR,
    SHARD,
    Part,
    Quoting,
    ShardedTemplate,
    Template,
    delimiters,
    typed_transform,
)
from adjoin.layouts.records import FieldRecord
from adjoin.layouts.shard_numbers import MOST_SHARDS, ShardNumber
from adjoin.layouts.table_keys import TableKeys, described_type
from adjoin.layouts.template_texts import JOINT, Pieces, TemplateTexts, is_number
from adjoin.reserved import OWN, tenant_prefix
from adjoin.schema import Schema
from adjoin.sharding.maps import FixedShards
from adjoin.tables import IndexDefinition, KeyAttribute, KeyType, TableDefinition
from adjoin.values import canonical_number

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList
    from adjoin.rules import CopyRule


DELETION_SORT_KEY = "#DELETING"
"""The sort key of the deletion record, in the partition of its node."""

_IN_TYPED = {"S": "", "N": "-.0123456789", "B": "+/=" + string.digits + string.ascii_letters}
"""The characters that a key of each type may contain, besides text, which is quoted."""

_AS_IT_IS = Quoting(frozenset(), escape=False)
"""For attributes that are no keys."""


class AdjacencyKeys:
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
        self.layout = layout
        self.table = TableKeys.of(layout)
        self._copies = copies
        self.schema = schema
        self._like = like
        self.shard_numbers: dict[str, ShardNumber] = {} if like is None else like.shard_numbers
        """The number of shards of each sharded key attribute. It belongs to the table, so all tenants share it."""
        self.due: Due = Due() if like is None else like.due
        """What stored items lack of what is declared here. The record of it belongs to the table, as shards do."""
        self.prefix = "" if tenant is None else lead + tenant_prefix(tenant)
        self.texts: TemplateTexts = TemplateTexts(layout, schema) if like is None else like.texts
        self.reverse, self.order_index = self.texts.reverse, self.texts.order_index
        self.overloaded = self.texts.overloaded
        self.indexes = self.texts.indexes
        self.end_keys = {name for index in (self.reverse, self.order_index) if index for name in index.keys}
        """The keys of the indexes in which edges are found from their ends."""
        self.record_of_tenant = re.compile(f"{re.escape(lead)}[^{SEPARATOR}]+{SEPARATOR}{OWN}")
        """Matches the keys of adjoin's own items about tenants."""
        self.partition_keys = self._prefixed_keys()
        """The partition key attributes of the table and of its indexes; for a tenant, these have its prefix."""
        self.attributes = self._key_attributes()
        self._quotings = self._make_quotings()
        everywhere = frozenset[str]().union(*(each.ends for each in self._quotings.values()))
        self._escaping = Quoting(everywhere or frozenset(SEPARATOR), escape=True)
        self.nodes: dict[type[Any], NodeKeys] = {}
        for kind in schema.nodes.values():
            self.nodes[kind.model] = self._node_keys(kind)
        self.edges = {kind.model: self._edge_keys(kind) for kind in schema.edges.values()}
        self.guarded: frozenset[type[Any]] = self._find_guarded() if like is None else like.guarded
        """The classes with ids that would end a partition key as adjoin's own items do; these are refused."""
        self.definition = self._definition()

    def has_edges(self, kind: NodeType) -> bool:
        """Whether nodes of a class have edges or children."""
        has_children = bool(self.schema.children(kind))
        return has_children or any(edge.joins(kind) for edge in self.schema.edges.values())

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
        beside = [
            Template(text.owner, [*text.pieces, OWN], text.quoting, repeats=True)
            for node in self.nodes.values()
            for text in ((node.partition, node.text) if node.rest else (node.partition,))
        ]
        apart = [edge for edge in self.edges.values() if edge.is_apart]
        beside += [
            Template(each.kind.name, [*each.partition.pieces, OWN], each.partition.quoting, repeats=True)
            for each in apart
        ]
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

    # --- indexes -------------------------------------------------------------------------------

    def _prefixed_keys(self) -> set[str]:
        templated = {attribute for templates in self.texts.templates.values() for attribute in templates}
        declared = {name for index in self.texts.declared for name in index.partition_keys} & templated
        return {self.layout.partition_key, *(index.partition_attribute for index in self.texts.made), *declared}

    def _make_quotings(self) -> dict[str, Quoting]:
        """How the values in each key attribute are told apart.

        A layout that escapes has one way for all its keys. Otherwise, what separates the parts of one attribute may be
        part of a value in another: "Equipment_1" is a partition key beside the sort keys "v1_Audit" and "v2_Audit".
        """
        layout, expanded = self.layout, dict[str, list[Pieces]]()
        for kind in self.schema.types:
            for attribute, template in self.texts.templates[kind.model].items():
                pieces = self.texts.expanded(kind, template)
                is_bare = self.texts.is_bare(kind, attribute, pieces)
                expanded.setdefault(attribute, []).extend([] if is_bare else [pieces])
        if layout.escape if layout.escape is not None else not layout.has_own_templates:
            one = Quoting(delimiters(itertools.chain(*expanded.values())), escape=True)
            return dict.fromkeys(expanded, one)
        return {attribute: Quoting(delimiters(all), escape=False) for attribute, all in expanded.items()}

    # --- compiling -----------------------------------------------------------------------------

    def _compiled(self, kind: EntityType, templates: Mapping[str, str]) -> dict[str, Template]:
        made = self._made_sort_keys(kind)
        compiled: dict[str, Template] = {}
        for attribute, template in templates.items():
            pieces = [self.tenant_part(attribute), *self.texts.expanded(kind, template)]
            quoting = self._escaping if attribute in made else self._quotings[attribute]
            type = self._declared_type(attribute)
            if self.texts.is_bare(kind, attribute, pieces):
                quoting = _AS_IT_IS
                type = "N" if _is_plain_number(kind, pieces) else "S"
            if type != "S":
                pieces, quoting = self._typed(kind, attribute, template, type, pieces), _AS_IT_IS
            elif part := next((each for each in pieces if isinstance(each, Part) and _is_bytes(each)), None):
                raise InvalidModel(
                    f"{kind.name}.{part.name} is bytes, and {attribute!r} is text, so {template!r} cannot hold it; "
                    f'declare the attribute as binary with types={{{attribute!r}: "B"}} if it is so in the table'
                )
            if any(isinstance(piece, Part) and piece.name == SHARD for piece in pieces):
                number, by = self._shards_of(kind, attribute, template, compiled)
                compiled[attribute] = ShardedTemplate(kind.name, pieces, quoting, type, number, by)
            else:
                compiled[attribute] = Template(kind.name, pieces, quoting, type)
        return compiled

    def _typed(self, kind: EntityType, attribute: str, template: str, type: KeyType, pieces: Pieces) -> Pieces:
        """The pieces of a template for a key attribute that is a number or binary."""
        part = pieces[1] if len(pieces) == 2 and not pieces[0] else None
        if type == "N" and isinstance(part, str) and _is_number(part):
            return [part]
        if not isinstance(part, Part):
            raise InvalidModel(
                f"the key {template!r} of {kind.name} is not text in the table ({attribute!r} has the type "
                f"{type}), so it is one placeholder without text around it{', or a number such as 0' * (type == 'N')}, "
                f"and no tenant can have a part of it"
                f"{'' if '{' in template else _field_there(kind, attribute)}"
            )
        is_of_table = attribute in self.table.types
        if part.name == SHARD or (part.transform.name and not is_of_table):
            return [part]
        spelled = typed_transform(type, part.plain, part.transform.name)
        if spelled is None and (is_of_table or type == "B" or _is_bytes(part)):
            wanted = "an int, a Decimal or a datetime" if type == "N" else "bytes or a UUID"
            raise InvalidModel(
                f"the key {template!r} of {kind.name} is {described_type(type)} in the table ({attribute!r} has the "
                f"type {type}), so it holds {wanted} as it is; give {part.name!r} such a type, and no transform (for a "
                f"datetime in a number, epoch or epoch_ms)"
            )
        return [part if spelled is None else replace(part, transform=spelled)]

    def type_of(self, attribute: str) -> KeyType:
        """The type of a key attribute of the table or of an index."""
        return next((key.type for key in self.definition.key_attributes if key.name == attribute), "S")

    def _declared_type(self, attribute: str) -> KeyType:
        types = {index.types[attribute] for index in self.indexes if attribute in index.types}
        if attribute in self.table.types:
            types.add(self.table.types[attribute])
        if len(types) > 1:
            raise InvalidModel(f"two indexes give the key attribute {attribute!r} different types; give it one")
        return types.pop() if types else "S"

    def _shards_of(
        self, kind: EntityType, attribute: str, template: str, compiled: Mapping[str, Template]
    ) -> tuple[ShardNumber, tuple[str, ...] | tuple[Template, ...]]:
        """The number of shards of a key attribute, and the values that choose one."""
        rules = {(index.shards, index.shard_fields) for index in self.indexes if attribute in index.partition_keys}
        own = f" (to name the field {SHARD!r} of {kind.name}, give it another name)" if SHARD in kind.fields else ""
        if len(rules) != 1:
            what = "differ in shards= or shard_by=" if rules else "have it as their partition key"
            raise InvalidModel(
                f"the key template {template!r} of {kind.name} has {{shard}}, but {'' if rules else 'no '}indexes over "
                f"{attribute!r} {what}; {{shard}} is for the partition key of an index with shards={own}"
            )
        ((given, fields),) = rules
        if given is None:
            raise InvalidModel(
                f"the key template {template!r} of {kind.name} has {{shard}}, but its index has no shards=; give it "
                f"one{own}"
            )
        shards = range(given) if isinstance(given, int) else given
        first, last = shards.start, shards.stop
        if not 0 <= first < last or shards.step != 1 or last - first > MOST_SHARDS:
            raise InvalidModel(
                f"shards of an index must be a number from 1 to {MOST_SHARDS:,}, or a range such as range(1, 11), got "
                f"{shown(given)}"
            )
        names = tuple(index.name for index in self.indexes if attribute in index.partition_keys)
        is_recorded = self.table.why_no_own_items is None
        number = ShardNumber(attribute, names, shards, is_recorded=is_recorded)
        number = self.shard_numbers.setdefault(attribute, number)
        if fields is None:
            return number, tuple(compiled[name] for name in self.table.names)
        return number, tuple(each for name in fields for each in self._shard_fields(kind, name))

    def number_of_indexed(self, index: Index) -> ShardNumber:
        """The number of shards of the index of indexed fields, which has none if its shards are adaptive."""
        shards, attribute = self.layout.shards, index.partition_attribute
        if shards is not None and (type(shards) is not int or not 1 <= shards <= MOST_SHARDS):
            raise InvalidValue(f"number of shards must be from 1 to {MOST_SHARDS:,}, got {shown(shards)}")
        declared = None if shards is None else range(FixedShards(shards).number)
        is_recorded = self.table.why_no_own_items is None
        number = ShardNumber(attribute, (index.name,), declared, is_recorded=is_recorded)
        return self.shard_numbers.setdefault(attribute, number)

    def _shard_fields(self, kind: EntityType, name: str) -> tuple[str, ...]:
        """The values of a class that choose its shard: for an edge, the copy of that field of its source, if any.

        `name` is that of a field, of a part of an id at an end, or of the attribute in which fields of several classes
        are stored.
        """
        for copy in self._copies:
            if copy.edge is kind and copy.end == "source":
                names = (copy.of, f"source.{copy.of}", copy.node.attributes.get(copy.of))
                if name in names:
                    return (copy.field,)
        end = kind.end(name)
        if isinstance(end, NodeUnion):
            raise InvalidModel(
                f"shard_by={shown(name)}: the {name} of {kind.name} is {end.name}, whose ids differ; leave shard_by= "
                f"out, and the key of the item chooses the shard"
            )
        if end is not None and not end.is_single:
            return tuple(f"{name}.{part}" for part in end.parts)
        if name in kind.fields or kind.part(name) is not None:
            return (name,)
        stored = next((each for each, attribute in kind.attributes.items() if attribute == name), None)
        if stored is not None and isinstance(kind, NodeType):
            return (stored,)
        remedy = ""
        if isinstance(kind, EdgeType):
            fields = {attribute: each for each, attribute in kind.source.attributes.items()}
            wanted = name.removeprefix("source.")
            remedy = f', or copy it from the source with Copy("source.{fields.get(wanted, wanted)}")'
        raise InvalidModel(f"shard_by={shown(name)}: " + unknown_field(kind.name, name, kind.fields) + remedy)

    def tenant_part(self, attribute: str) -> str:
        """The tenant's prefix for a key attribute; "" if it has none."""
        return self.prefix if attribute in self.partition_keys else ""

    def _made_sort_keys(self, kind: EntityType) -> set[str | None]:
        """Sort keys of indexes that adjoin chose: they escape in every layout, and so they sort correctly."""
        made: set[str | None] = set()
        own, reverse, ordered = self.texts.keys_of(kind), self.reverse, self.order_index
        is_declared = reverse is not None and (own.reverse_sort or reverse.sort or reverse.name in own.indexes)
        if isinstance(kind, EdgeType) and reverse and not is_declared:
            made.add(reverse.sort_attribute)
        if isinstance(kind, EdgeType) and ordered and not ordered.sort:
            made.add(ordered.sort_attribute)
        return made - {self.layout.partition_key, self.layout.sort_key}

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
        empty = Template(kind.name, [], _AS_IT_IS)
        return compiled.pop(self.layout.partition_key), empty if sort is None else compiled.pop(sort)

    def _joined(self, kind: NodeType, partition: Template, sort: Template) -> Quoting:
        """How the values of both keys are told apart where the keys are joined to a node key.

        Each key alone says what its values cannot contain. Refuses separators that a number or bytes may contain.
        """
        names = (self.layout.partition_key, self.layout.sort_key)
        first, second = (self._quotings.get(name or "", _AS_IT_IS) for name in names)
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
        is_apart = str(partition) != self._source_text(kind, sources[0])
        rest = [] if is_apart else [f"source.{name}" for name in sources[0].rest]
        if not is_apart:
            self._check_rest(kind, sort, rest, kind.source, "source")
        names = [part.name for part in (*partition.parts, *sort.parts)]
        in_keys = [name for name in names if name in kind.attributes]
        if missing := [name for name in kind.key if name not in in_keys]:
            raise InvalidModel(
                f"{kind.name} has the key field {missing[0]!r}, but {_last(partition, sort)} does not contain it; "
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
        )
        is_by_field = target_field in told and target_field in names
        sides = [side for side in ("source", "target") if not {*names}.issuperset(made.end_parts(side))]
        loose = {side: self._loose(made, side) for side in sides if side == "source" or not is_by_field}
        self._check_symmetric(made)
        return replace(made, loose=loose) if loose else made

    def _met_by(self, sources: Sequence[NodeKeys], sort: Template) -> tuple[NodeType, ...]:
        nodes = self.nodes.values()
        return tuple(node.kind for node in nodes if any(_meets(node, source, sort) for source in sources))

    def _loose(self, keys: EdgeKeys, side: str) -> tuple[str, ...]:
        """The attributes that tell an end of an edge which the table's keys do not have."""
        kind, parts = keys.kind, {*keys.end_parts(side)}
        are_both = side == "source" and bool(keys.sort.pieces)
        where = f"the keys {keys.partition} and {keys.sort}" if are_both else _last(keys.partition, keys.sort, "the")
        if not kind.key or kind.symmetric:
            verb = "do" if are_both else "does"
            raise InvalidModel(
                f"{where} of {kind.name} {verb} not contain its {side}, so edges to different nodes "
                f"would overwrite each other; add {{{side}}} to the template"
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

    # --- checks --------------------------------------------------------------------------------

    def _key_attributes(self) -> set[str]:
        layout = self.layout
        if layout.partition_key == layout.sort_key or layout.type_attribute in self.texts.main_keys():
            raise InvalidModel(
                "the layout uses one attribute twice; give the partition key, the sort key and the type different names"
            )
        names = {layout.partition_key, layout.sort_key, layout.type_attribute, DELETING, REVISION, OWNER}
        names |= {name for index in self.texts.made for name in index.keys}
        for kind in self.schema.types:
            names |= self.texts.templates[kind.model].keys() - self.texts.further(kind)
        return {name for name in names if name}

    def _key_attribute(self, index: Index, name: str) -> KeyAttribute:
        """A key attribute of an index with its type: of the template that fills it, or of the fields stored there."""
        if any(name in templates for templates in self.texts.templates.values()) or name in self.attributes:
            return KeyAttribute(name, self._declared_type(name))
        fields = [
            (kind, field) for kind in self.schema.types for field, stored in kind.attributes.items() if stored == name
        ]
        if not fields:
            raise InvalidModel(
                f"nothing is stored in {shown(name)}, a key attribute of the index {index.name!r}: no class has a "
                f"template or a field for it; add it to Keys(indexes={{{index.name!r}: …}}) of a class"
            )
        types = {tag_of(kind, field) or "" for kind, field in fields}
        is_bytes = {plain_type(kind.fields[field]) is bytes for kind, field in fields} == {True}
        found = {"B"} if is_bytes else types
        if len(found) != 1 or not found <= {"S", "N", "B"}:
            names = " and ".join(f"{kind.name}.{field}" for kind, field in fields)
            raise InvalidModel(
                f"{names} cannot be the key attribute {name!r} of the index {index.name!r}: a key is text, a number or "
                f"bytes, and the same in all classes"
            )
        type = cast("KeyType", found.pop())
        declared = index.types.get(name, type)
        if declared != type:
            kind, stored_field = fields[0]
            raise InvalidModel(
                f"types= of the index {index.name!r} says that {name!r} is {described_type(declared)}, and "
                f"{kind.name}.{stored_field} is stored there as {described_type(type)}; remove it from types=, or give "
                f"the field a type, or a format with Stored(…), that is stored so"
            )
        return KeyAttribute(name, type)

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
            self.table.partition,
            self.table.sort,
            tuple(
                IndexDefinition.over(
                    index.name,
                    [self._key_attribute(index, name) for name in index.partition_keys],
                    [self._key_attribute(index, name) for name in index.sort_keys],
                    index.projection,
                    local=index.local,
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


def _meets(node: NodeKeys, source: NodeKeys, sort: Template) -> bool:
    """Whether the sort key of an edge can be that of a node in its partition, whose both keys hold its whole id."""
    is_told = bool(node.sort.parts) and not node.rest and {*node.kind.parts} <= node.sort.told
    if node is source:
        is_told = bool(node.sort.parts)
    return is_told and node.partition.may_equal(source.partition) and node.sort.may_equal(sort)


def _last(partition: Template, sort: Template, whose: str = "its") -> str:
    """The sort key, or the partition key of a table that has no sort key, for messages."""
    return f"{whose} sort key {sort}" if sort.pieces else f"{whose} partition key {partition}"


def _is_number(text: str) -> bool:
    """Whether a text is a number as DynamoDB spells it."""
    try:
        return canonical_number(text) == text
    except AdjoinError:
        return False


def _field_there(kind: EntityType, attribute: str) -> str:
    """The remedy for a class of nodes that has a constant where the table has a number or bytes."""
    if not isinstance(kind, NodeType):
        return ""
    return (
        f"; give {kind.name} a field for it: a second key field, as in key=({kind.key[0]!r}, {attribute!r}), or its "
        f"id, as in Keys(sort={f'{{{kind.key[0]}}}'!r})"
    )


def _is_bytes(part: Part) -> bool:
    return part.plain is not None and issubclass(part.plain, bytes)


def _is_plain_number(kind: EntityType, pieces: Pieces) -> bool:
    (part,) = (piece for piece in pieces if isinstance(piece, Part))
    is_alone = not any(isinstance(piece, str) and piece for piece in pieces)
    return is_alone and not part.transform.name and is_number(kind, part.name)
