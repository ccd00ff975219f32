"""The key templates of each class as text: those that a layout declares, and those that adjoin chooses.

`TemplateTexts` also replaces placeholders such as {source} by the parts that they stand for, and decides which indexes
a graph needs. `templates` compiles the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from adjoin.entity_types import EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel
from adjoin.field_types import plain_type, unknown_field
from adjoin.formats import EPOCHS, finest_of, holds_as_much
from adjoin.layouts.arguments import check_single
from adjoin.layouts.interface import Index, Keys
from adjoin.layouts.key_values import transform
from adjoin.layouts.keys import SEPARATOR, SHARD, Part, parse_template
from adjoin.layouts.placeholders import bounded, fitted, no_transform, union_part, unknown_placeholder
from adjoin.schema import Schema

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

NODE_SORT_KEY = "#META"

JOINT = SEPARATOR + SEPARATOR
"""Joins the partition key and the sort key to the node key of a node in a shared partition. No part of an id is empty,
so the node key of another class is not the same by chance."""

Pieces: TypeAlias = list[str | Part]


class TemplateTexts:
    """The templates of one layout for one schema, before they are compiled."""

    def __init__(self, layout: AdjacencyList, schema: Schema) -> None:
        self.layout = layout
        self._rests: dict[type[Any], tuple[str, ...]] = {}
        edges = schema.edges.values()
        self._declared = _by_name(layout.indexes)
        self.reverse = self._unless_declared(layout.reverse)
        self.order_index = self._required(layout.ordered, "order", map(self.needs_order_index, edges))
        self.overloaded = self._required(
            layout.indexed, "indexed", (bool(kind.indexed or kind.elements) for kind in schema.types)
        )
        self.made = tuple(index for index in (self.reverse, self.order_index, self.overloaded) if index)
        """The indexes that adjoin has in every layout, as far as these classes need them."""
        self.indexes = (*self.made, *self._declared.values())
        self.templates: Mapping[type[Any], Mapping[str, str]] = {kind.model: self._texts(kind) for kind in schema.types}
        """The templates of each class, by the attributes that they are for."""
        self._type_words = {kind.model: self._type_word(kind) for kind in schema.types}

    def is_bare(self, kind: EntityType, attribute: str, pieces: Pieces) -> bool:
        """Whether an attribute is not a key and has one value, which nothing has to separate from another."""
        parts = [piece for piece in pieces if isinstance(piece, Part)]
        # A node of one of several classes is a whole node key, with separators of its own.
        return attribute in self.further(kind) and len(parts) == 1 and not parts[0].among

    def further(self, kind: EntityType) -> set[str]:
        """The attributes of a class that are written from templates and are no keys."""
        return self.keys_of(kind).attributes.keys() - {name for index in self.indexes for name in index.keys}

    def _unless_declared(self, index: Index | None) -> Index | None:
        """An index of the layout's own, unless a declared index has its name and so its place."""
        check_single(index)
        return None if index is None or index.name in self._declared else index

    def _required(self, index: Index, role: str, needs: Iterable[bool]) -> Index | None:
        if not any(needs):
            return None
        check_single(index)
        if index.name in self._declared:
            what = "the order of edges" if role == "order" else "fields that are marked Indexed()"
            raise InvalidModel(
                f"indexes= declares {index.name!r}, which the layout needs for {what}; give the layout "
                f"{'ordered' if role == 'order' else 'indexed'}=Index(…) with another name"
            )
        return index

    def _texts(self, kind: EntityType) -> dict[str, str]:
        """The templates of a class as they are declared, by the key attributes that they are for."""
        if isinstance(kind, EdgeType):
            templates = self._edge_templates(kind)
        else:
            assert isinstance(kind, NodeType)
            templates = self._node_templates(kind)
        for name, given in self.keys_of(kind).indexes.items():
            self._add_index(kind, templates, name, given)
        for index in self._declared.values():
            if index.name not in self.keys_of(kind).indexes and self._has_parts(kind, index):
                _add(templates, index.partition_attribute, index.partition)
                _add(templates, index.sort_attribute, index.sort)
        for name, template in self.keys_of(kind).attributes.items():
            if not isinstance(name, str) or not isinstance(template, str):
                raise InvalidModel(f"attributes of {kind.name} takes names and templates as text, got {name!r}")
            if templates.setdefault(name, template) != template:
                raise InvalidModel(
                    f"{kind.name} has two templates for the attribute {name!r}: {templates[name]!r} and {template!r}; "
                    f"remove it from attributes="
                )
        return templates

    def _add_index(
        self, kind: EntityType, templates: dict[str, str], name: str, given: str | tuple[str | None, str]
    ) -> None:
        known = {index.name: index for index in self.indexes}
        if name not in known:
            raise InvalidModel(f"the keys of {kind.name}: " + unknown_field("the layout", name, known, "index"))
        index = known[name]
        pair = (given,) if isinstance(given, str) else tuple(given)
        attributes = index.keys
        if len(index.partition_keys) > 1 or len(index.sort_keys) > 1:
            raise InvalidModel(
                f"the index {name!r} has several attributes in its keys, which are fields of the classes, so it takes "
                f"no templates; remove it from the keys of {kind.name}"
            )
        if len(pair) > len(attributes):
            raise InvalidModel(
                f"the keys of {kind.name} give {name!r} {len(pair)} templates, but it has {len(attributes)} key "
                f"attributes; give one template for each"
            )
        own = {attribute: each for attribute, each in zip(attributes, pair, strict=False) if each is not None}
        for attribute, template in own.items():
            if not isinstance(template, str):
                raise InvalidModel(f"a key template of {kind.name} in {name!r} must be text, got {template!r}")
            if templates.setdefault(attribute, template) != template:
                raise InvalidModel(
                    f"{kind.name} has two templates for the key attribute {attribute!r}: {templates[attribute]!r} and "
                    f"{template!r}; an attribute has one value, so give one template"
                )
        for attribute in attributes:
            if attribute not in templates and attribute not in kind.attributes.values():
                raise InvalidModel(
                    f"the keys of {kind.name} in {name!r} have no template for {attribute!r}, and no field is stored "
                    f"there; give two templates, of the partition key and of the sort key"
                )

    def _has_parts(self, kind: EntityType, index: Index) -> bool:
        """Whether a class has all fields that the templates of an index name."""
        known = {"label", "node", "source", "target", SHARD, *kind.attributes}
        if isinstance(kind, EdgeType):
            known |= {*end_parts(kind)}
        elif isinstance(kind, NodeType):
            known |= {*kind.parts}
        texts = [text for text in (index.partition, index.sort) if text is not None]
        parts = [piece for text in texts for piece in parse_template(text) if isinstance(piece, Part)]
        return bool(texts) and all(part.name in known for part in parts)

    @property
    def declared(self) -> tuple[Index, ...]:
        """The indexes that `indexes=` declares."""
        return tuple(self._declared.values())

    def is_plain_field(self, kind: EntityType, attribute: str) -> bool:
        """Whether a field may be stored in a key attribute: one that only other classes write from templates."""
        declared = {name for index in self._declared.values() for name in index.keys}
        own = {self.layout.partition_key, self.layout.sort_key, self.layout.type_attribute}
        own |= {name for index in self.made for name in index.keys}
        return attribute in declared - own and self.is_plain(kind, attribute)

    def is_plain(self, kind: EntityType, attribute: str) -> bool:
        """Whether a key attribute of an index is a field of the class, which is stored there anyway."""
        return attribute not in self.templates[kind.model] and attribute in kind.attributes.values()

    def keys_of(self, kind: EntityType) -> Keys:
        """The templates of a class that are declared; a class of a family has those of its head."""
        own, head = self.layout.keys.get(kind.model), self.layout.keys.get(kind.whole.model)
        # A class of a family may have a word of its own for the type attribute; its templates are the head's.
        if own is None or (head is not None and own == Keys(type=own.type)):
            return head or Keys()
        return own

    def type_word(self, kind: EntityType) -> str:
        """What the items of a class have in the type attribute."""
        return self._type_words[kind.model]

    def type_words(self, kind: EntityType) -> tuple[str, ...]:
        """What items that are read as a class may have in the type attribute: of a head, those of its whole family."""
        family = kind.family if isinstance(kind, NodeType) else []
        return tuple(dict.fromkeys(self.type_word(each) for each in (kind, *family)))

    def _type_word(self, kind: EntityType) -> str:
        own = self.layout.keys.get(kind.model)
        word = None if own is None else own.type
        if word is None:
            return kind.word
        if self.layout.type_attribute is None:
            raise InvalidModel(
                f"Keys(type={word!r}) of {kind.name} has no effect: the layout has no type attribute; give it "
                f"type_attribute=, or remove the type"
            )
        if not isinstance(word, str) or not word or {*"{}"} & {*word}:
            raise InvalidModel(
                f"Keys(type={word!r}) of {kind.name} must be text without placeholders: what its items have in "
                f"{self.layout.type_attribute!r}"
            )
        return word

    def _node_templates(self, kind: NodeType) -> dict[str, str]:
        own, layout = self.keys_of(kind), self.layout
        templates = {layout.partition_key: self._node_partition(kind)}
        if layout.sort_key is not None:
            templates[layout.sort_key] = self._node_sort(kind)
        elif own.sort is not None:
            raise _no_sort_key(kind, own.sort)
        self._add_reverse(kind, templates, own.reverse_partition, own.reverse_sort)
        return templates

    def _node_partition(self, kind: NodeType) -> str:
        own, parent = self.keys_of(kind).partition, kind.parent
        if parent is not None and own in (None, "{parent}"):
            return self._respelled(parent, self._node_partition(parent), "parent")
        if own is None and kind.only is not None and self.layout.types.get(self.layout.partition_key, "S") != "S":
            # A key that is not text has no room for a label.
            return f"{{{kind.only}}}"
        return own or SEPARATOR.join(("{label}", *(f"{{{name}}}" for name in kind.parts)))

    def _node_sort(self, kind: NodeType) -> str:
        own, parent = self.keys_of(kind).sort, kind.parent
        if own is not None or parent is None:
            return own or self.layout.node or NODE_SORT_KEY
        before = self._respelled(parent, self._node_sort(parent), "parent") + SEPARATOR if self.rest(parent) else ""
        return before + SEPARATOR.join(("{label}", *(f"{{{name}:sortable}}" for name in kind.key)))

    def rest(self, kind: NodeType) -> tuple[str, ...]:
        """The parts of a node's id that its partition key does not contain."""
        if isinstance(kind, NodeUnion):
            return self._check_sources(kind)
        if self.layout.sort_key is None:
            # What its partition key lacks is nowhere, and is refused when the templates are compiled.
            return ()
        if kind.model not in self._rests:
            pieces = self.expanded(kind, self._node_partition(kind))
            names = {piece.name for piece in pieces if isinstance(piece, Part) and piece.transform.decode}
            self._rests[kind.model] = tuple(name for name in kind.parts if name not in names)
        return self._rests[kind.model]

    def _check_sources(self, union: NodeUnion) -> tuple[str, ...]:
        for kind in union.classes:
            if self.rest(kind):
                raise InvalidModel(
                    f"edges leave {union.name}, but nodes of {kind.name} share a partition, so the keys of an edge "
                    f"would not say which of these classes it leaves; declare a class of edges for {kind.name} alone"
                )
        return ()

    def _respelled(self, kind: NodeType, template: str, side: str) -> str:
        """A template of a node as its edges write it, with each part named after its side."""
        return "".join(
            piece.replace("{", "{{").replace("}", "}}")
            if isinstance(piece, str)
            else f"{{{side}.{piece.name}{':' if piece.transform.name else ''}{piece.transform.name}}}"
            for piece in self.expanded(kind, template)
        )

    def _add_reverse(
        self, kind: EntityType, templates: dict[str, str], partition: str | None, sort: str | None
    ) -> None:
        """Adds the templates that `Keys` declares for the reverse index; refuses those that nothing would use."""
        for role, attribute, template in (
            ("reverse_partition", self.reverse.partition_attribute if self.reverse else None, partition),
            ("reverse_sort", self.reverse.sort_attribute if self.reverse else None, sort),
        ):
            if template is None:
                continue
            if attribute is None or templates.get(attribute, template) != template:
                reason = "no index has such a key" if attribute is None else f"{attribute!r} has another template"
                raise InvalidModel(f"Keys({role}={template!r}) of {kind.name} has no effect: {reason}; remove it")
            templates[attribute] = template

    def _edge_templates(self, kind: EdgeType) -> dict[str, str]:
        own, layout, reverse = self.keys_of(kind), self.layout, self.reverse
        order = f"{{{kind.order}:sortable}}#" if kind.order else ""
        rest = "".join(f"#{{{name}:sortable}}" for name in kind.key if name != kind.order)
        # An order that is part of the identity stands in the table's own sort key. Otherwise it would be part of the
        # identity only because it is there.
        in_key = order if kind.order in kind.key else ""
        partition, before = own.partition or "{source}", ""
        if self.rest(kind.source):
            # The partition holds other nodes too, so the sort key begins with that of the source.
            if partition == "{source}":
                partition = self._respelled(kind.source, self._node_partition(kind.source), "source")
            before = self._respelled(kind.source, self._node_sort(kind.source), "source") + SEPARATOR
        templates = {layout.partition_key: partition}
        if layout.sort_key is not None:
            templates[layout.sort_key] = own.sort or layout.edge or f"{before}{{label}}#{in_key}{{target}}{rest}"
        elif own.partition is None:
            raise _no_partition(kind)
        elif own.sort or layout.edge:
            raise _no_sort_key(kind, own.sort or layout.edge or "")
        self._add_reverse(kind, templates, own.reverse_partition, own.reverse_sort)
        if reverse and not kind.symmetric and reverse.name not in own.indexes:
            _add(templates, reverse.partition_attribute, reverse.partition or "{target}")
            _add(templates, reverse.sort_attribute, reverse.sort or f"{{label}}#{order}{{source}}{rest}")
        if self.needs_order_index(kind):
            index = layout.ordered
            _add(templates, index.partition_attribute, index.partition or "{source}")
            _add(templates, index.sort_attribute, index.sort or f"{{label}}#{order}{{target}}{rest}")
        return templates

    def needs_order_index(self, kind: EdgeType) -> bool:
        if kind.order is None:
            return False
        template = self.keys_of(kind).sort or self.layout.edge
        if template is None:
            return kind.order not in kind.key
        parts = [piece for piece in self.expanded(kind, template) if isinstance(piece, Part)]
        return not parts or parts[0].name != kind.order

    def is_declared(self, kind: EdgeType) -> bool:
        """Whether the program declared the templates, for an existing table; otherwise adjoin chose them."""
        return self.layout.has_keys_of(kind.model) or self.layout.edge is not None

    def expanded(self, kind: EntityType, template: str) -> Pieces:
        pieces: Pieces = []
        for piece in parse_template(template):
            if isinstance(piece, str):
                pieces.append(piece)
            elif isinstance(kind, EdgeType):
                pieces += self._edge_piece(kind, piece, template)
            elif isinstance(kind, NodeType):
                pieces += self._node_piece(kind, piece, template)
        return pieces

    def _node_piece(self, kind: NodeType, part: Part, template: str) -> Pieces:
        match part.name:
            case "label" | "node" | "parent" if part.transform.name:
                raise no_transform(kind, part, template)
            case "label":
                return [kind.label]
            case "node":
                partition = self._node_partition(kind)
                if partition == template:
                    raise InvalidModel(
                        f"in the key template {template!r} of {kind.name}, {{node}} is the partition key itself; name "
                        f"the parts of the id, such as {{{kind.parts[0]}}}"
                    )
                return self.expanded(kind, partition)
            case "shard":
                return [part]
            case "parent" if kind.parent is not None:
                return self._node_pieces(kind.parent, "parent")
            case name if name in kind.parts:
                fitting = fitted(kind, part, is_exact=self._holds_whole(kind, part))
                return [replace(bounded(kind, fitting), is_id=True)]
            case name if name in kind.fields:
                is_only = name in self.keys_of(kind).only_in_keys
                return [fitted(kind, part, is_exact=is_only and self._holds_whole(kind, part))]
        known = [*kind.fields, *(name for name in kind.parts if name not in kind.fields)]
        raise unknown_placeholder(kind, part, template, ["node", "label", *known])

    def _holds_whole(self, kind: EntityType, part: Part) -> bool:
        """Whether the date format of a part has to hold the whole value, because no other template does.

        A table may have the day of a time in one key, and the time in another.
        """
        spec = part.transform.name
        if "%" not in spec and spec not in EPOCHS:
            return True
        wanted = self._whole(kind, part.name)
        if wanted is None or wanted == spec:
            return True
        plain = plain_type(kind.field(part.name))
        return plain is not None and bool(wanted) and holds_as_much(spec, wanted, plain)

    def _whole(self, kind: EntityType, name: str) -> str | None:
        """The transform with which a template holds a value whole: of all that a class has, the finest."""
        specs = self._specs(kind, name)
        if not specs or any(transform(spec).decode for spec in specs):
            return "" if specs else None
        plain = plain_type(kind.field(name))
        return specs[0] if plain is None else finest_of(specs, plain)

    def _specs(self, kind: EntityType, name: str) -> list[str]:
        """The transforms of a value in the templates that tell it: for an id those of the table, otherwise all."""
        own = self.keys_of(kind)
        texts = [own.partition or "", own.sort or ""]
        if isinstance(kind, NodeType) and name in kind.parts:
            texts = [self._node_partition(kind), self._node_sort(kind)]
        else:
            pairs = [(each,) if isinstance(each, str) else each for each in own.indexes.values()]
            texts += [text or "" for pair in pairs for text in pair] + [*own.attributes.values()]
        parts = [piece for text in texts for piece in parse_template(text) if isinstance(piece, Part)]
        return list(dict.fromkeys(part.transform.name for part in parts if part.name == name))

    def _echoed(self, kind: NodeType) -> set[str]:
        """The parts of an id of which the partition key holds less than the sort key does."""
        pieces = self.expanded(kind, self._node_partition(kind))
        lossy = {piece.name for piece in pieces if isinstance(piece, Part) and not piece.transform.decode}
        return lossy & {*self.rest(kind)}

    def _edge_piece(self, kind: EdgeType, part: Part, template: str) -> Pieces:
        in_ends = end_parts(kind)
        match part.name:
            case "label" | "source" | "target" if part.transform.name:
                raise no_transform(kind, part, template)
            case "label":
                return [kind.label]
            case "source":
                return self._node_pieces(kind.source, "source")
            case "target":
                return self._node_pieces(kind.target, "target")
            case "shard":
                return [part]
            case name if isinstance(end := kind.end(name.partition(".")[0]), NodeUnion) and "." in name:
                side = name.partition(".")[0]
                raise InvalidModel(
                    f"in the key template {template!r} of {kind.name}, {{{name}}} is part of an id, but the {side} is "
                    f"{end.name}, and their ids differ; use {{{side}}}, the key of the node"
                )
            case name if name in in_ends:
                side, _, own = name.partition(".")
                end = kind.end(side)
                assert end is not None
                is_whole = self._holds_whole(end, replace(part, name=own))
                fitting = fitted(kind, part, is_exact=is_whole)
                if fitting.transform.decode is None and own not in self._echoed(end):
                    raise no_transform(kind, part, template)
                return [replace(fitting, is_id=True)]
            case name if name in kind.attributes:
                is_only = name in self.keys_of(kind).only_in_keys
                fitting = fitted(kind, part, is_exact=is_only and self._holds_whole(kind, part))
                return [bounded(kind, fitting) if name in kind.key else fitting]
            case name if kind.source is not kind.target:
                # {country} in an edge to Country is the country's id.
                for side, end in (("source", kind.source), ("target", kind.target)):
                    if name == _snake(end.name) and end.is_single:
                        return [Part(f"{side}.{end.parts[0]}", part.transform, end.id_type, is_id=True)]
        composite = [name for name in in_ends if name not in ("source.id", "target.id")]
        raise unknown_placeholder(kind, part, template, ["source", "target", "label", *composite, *kind.attributes])

    def _node_pieces(self, kind: NodeType, side: str) -> Pieces:
        """The pieces of a node key, with each part named after its side."""
        if isinstance(kind, NodeUnion):
            return [union_part(kind, side, self._bare_pieces)]
        return [
            replace(piece, name=f"{side}.{piece.name}") if isinstance(piece, Part) else piece
            for piece in self._bare_pieces(kind)
        ]

    def _bare_pieces(self, kind: NodeType) -> Pieces:
        """The pieces of a node key."""
        pieces = self.expanded(kind, self._node_partition(kind))
        if self.rest(kind):
            pieces += [JOINT, *self.expanded(kind, self._node_sort(kind))]
        return pieces

    def main_keys(self) -> set[str]:
        """The key attributes of the table and of its reverse index."""
        layout, reverse = self.layout, self.reverse
        keys = [layout.partition_key, *([layout.sort_key] if layout.sort_key else [])]
        keys += reverse.keys if reverse else ()
        return set(keys)


def _no_partition(kind: EdgeType) -> InvalidModel:
    return InvalidModel(
        f"{kind.name} is a class of edges, and the table has a partition key only (sort_key=None), so each edge has a "
        f'partition of its own; declare it, as in Keys(partition="{{source}}|{{target}}"), and indexes by which '
        f"edges are found"
    )


def _no_sort_key(kind: EntityType, template: str) -> InvalidModel:
    return InvalidModel(
        f"the sort key {template!r} of {kind.name} has no effect: the table has a partition key only "
        f"(sort_key=None); remove it"
    )


def end_parts(kind: EdgeType) -> list[str]:
    """The names of the parts of both ids in templates."""
    return [f"source.{name}" for name in kind.source.parts] + [f"target.{name}" for name in kind.target.parts]


def _by_name(indexes: Iterable[Index]) -> dict[str, Index]:
    found: dict[str, Index] = {}
    for index in indexes:
        if index.name in found:
            raise InvalidModel(f"indexes= has two indexes called {index.name!r}; give one of them another name")
        found[index.name] = index
    return found


def _add(templates: dict[str, str], attribute: str | None, template: str | None) -> None:
    """Adds a template for a key attribute, unless it is already one of the table's own keys."""
    if attribute is not None and template is not None:
        templates.setdefault(attribute, template)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
