"""Compiles the key templates of a layout: their parts, types and separators, the shards in them, and the table.

Compiling a template refuses an unknown placeholder, and a value that a key of its type cannot hold. `templates` makes
the keys of each class of the result.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion, tag_of
from adjoin.errors import AdjoinError, InvalidModel, InvalidValue, shown
from adjoin.field_types import plain_type, unknown_field
from adjoin.layouts.forms import Due
from adjoin.layouts.interface import DELETING, OWNER, REVISION, Index
from adjoin.layouts.key_values import typed_transform
from adjoin.layouts.keys import SEPARATOR, SHARD, Part, Quoting, Template, delimiters
from adjoin.layouts.placeholders import is_number
from adjoin.layouts.shard_numbers import MOST_SHARDS, ShardedTemplate, ShardNumber
from adjoin.layouts.table_keys import TableKeys, described_type
from adjoin.layouts.template_texts import Pieces, TemplateTexts
from adjoin.reserved import OWN, tenant_prefix
from adjoin.schema import Schema
from adjoin.sharding.maps import FixedShards
from adjoin.tables import IndexDefinition, KeyAttribute, KeyType, TableDefinition
from adjoin.values import canonical_number

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList
    from adjoin.rules import CopyRule


AS_IT_IS = Quoting(frozenset(), escape=False)
"""For attributes that are no keys."""


class TemplateCompiler:
    """Compiles the templates of one layout for one schema."""

    def __init__(
        self,
        layout: AdjacencyList,
        schema: Schema,
        tenant: str | None,
        copies: Sequence[CopyRule] = (),
        like: TemplateCompiler | None = None,
        lead: str = "",
    ) -> None:
        """`like` has the templates of the same classes for another tenant.

        `lead` is the text before the tenant in the prefix of its keys.
        """
        self.layout = layout
        self.table = TableKeys.of(layout)
        self._copies = copies
        self.schema = schema
        self.shard_numbers: dict[str, ShardNumber] = {} if like is None else like.shard_numbers
        """The number of shards of each sharded key attribute. It belongs to the table, so all tenants share it."""
        self.due: Due = Due() if like is None else like.due.of_another_tenant()
        """What stored items lack of what is declared here."""
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

    def _compiled(self, kind: EntityType, templates: Mapping[str, str]) -> dict[str, Template]:
        made = self._made_sort_keys(kind)
        compiled: dict[str, Template] = {}
        for attribute, template in templates.items():
            pieces = [self.tenant_part(attribute), *self.texts.expanded(kind, template)]
            quoting = self._escaping if attribute in made else self._quotings[attribute]
            type = self._declared_type(attribute)
            if self.texts.is_bare(kind, attribute, pieces):
                quoting = AS_IT_IS
                type = "N" if _is_plain_number(kind, pieces) else "S"
            if type != "S":
                pieces, quoting = self._typed(kind, attribute, template, type, pieces), AS_IT_IS
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
        # The first piece is the prefix of the tenant, which a number or bytes cannot have.
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
        # One number for all classes and tenants that use this attribute, because a record of the table holds it.
        number = self.shard_numbers.setdefault(attribute, number)
        # By default the key of the item chooses, which never changes, so an update never moves an item to another
        # shard.
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

    # --- the table -----------------------------------------------------------------------------

    def _key_attribute(self, index: Index, name: str) -> KeyAttribute:
        """A key attribute of an index with its type: of the template that fills it, or of the fields stored there."""
        # A template can make text or a number, so the declaration says which. A plain attribute has the type of its
        # field.
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

    def _table_definition(self) -> TableDefinition:
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
