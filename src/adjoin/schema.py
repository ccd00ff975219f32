"""The classes of a graph, checked together when the graph opens.

This module finds mistakes in declarations, and names the class and the field in its messages. It does
not know how the classes are stored in a table; layouts do.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import cached_property
from inspect import isasyncgenfunction, iscoroutinefunction
from types import UnionType
from typing import Any, Union, get_args, get_origin

from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel, shown
from adjoin.field_types import element_type, path_type, plain_type, stored_computed_fields, unknown_field
from adjoin.marks import Expires, Stored, Version
from adjoin.model import Child, Edge, Node, ends_of, open_end, parent_of

KEY_TYPES: tuple[type, ...] = (str, int, Decimal, uuid.UUID, dt.datetime, dt.date, Enum, bytes)
"""Types whose values have exactly one spelling in a key. A float has several, so it is not among them."""

INDEXED_TYPES: tuple[type, ...] = (*(each for each in KEY_TYPES if each is not bytes), float)
"""Types that an index can sort. Values are never read back from an index key, so float is among them."""

_LABEL_TABOO = frozenset("#%|{}")


def _union(classes: tuple[NodeType, ...]) -> NodeUnion:
    first, *others = classes
    common = {
        name: stored
        for name, stored in first.attributes.items()
        if all(each.attributes.get(name) == stored for each in others)
        and all(plain_type(each.fields[name]) is plain_type(first.fields[name]) for each in others)
    }
    return NodeUnion(Node, "", common, ("ref",), classes=classes)


class Schema:
    """All classes of nodes and edges of one graph. Node classes that only edges name belong to it too."""

    def __init__(self, models: Iterable[type[Any]]) -> None:
        if isinstance(models, type) or not isinstance(models, Iterable):
            raise InvalidModel(f"models must be a list of Node and Edge classes, got {shown(models)}")
        given = list(models)
        for model in given:
            is_one = isinstance(model, type) and issubclass(model, (Node, Edge))
            if not is_one or model in (Node, Edge, Child):
                raise InvalidModel(
                    f"{shown(model)} is not a class derived from Node or Edge; pass the classes themselves"
                )
        classes = list(dict.fromkeys(given))
        by_name: dict[str, type[Any]] = {model.__name__: model for model in classes}
        for base in (base for model in classes if issubclass(model, Node) for base in model.__mro__):
            if issubclass(base, Node) and base not in (Node, Child):
                by_name.setdefault(base.__name__, base)
        declared = {model: _resolved_ends(model, by_name) for model in classes if issubclass(model, Edge)}
        given_nodes = [model for model in classes if issubclass(model, Node)]
        named = [*given_nodes, *(each for pair in declared.values() for end in pair for each in end)]
        ends = {
            model: tuple(_with_subclasses(end, given_nodes, named) for end in pair) for model, pair in declared.items()
        }
        nodes = [*given_nodes, *(each for pair in ends.values() for end in pair for each in end)]
        self.nodes: dict[type[Node], NodeType] = {}
        for model in dict.fromkeys(nodes):
            self._add_node(model, by_name)
        for node in self.nodes.values():
            _check_family(node)
        unions: dict[tuple[type[Node], ...], NodeUnion] = {}
        self.edges: dict[type[AnyEdge], EdgeType] = {}
        for model, pair in ends.items():
            source, target = (
                self._end(model, side, asked, found, unions)
                for side, asked, found in zip(("source", "target"), declared[model], pair, strict=True)
            )
            self.edges[model] = _edge_type(model, source, target)
        if not self.types:
            raise InvalidModel("a graph needs at least one Node class; pass its classes")
        by_label: dict[str, EntityType] = {}
        for kind in self.types:
            if isinstance(kind, NodeType) and kind.head is not None:
                continue
            if (other := by_label.setdefault(kind.label, kind)) is not kind:
                raise InvalidModel(
                    f"{other.name} and {kind.name} both have the label {kind.label!r}; "
                    f"give one of them another with label="
                )

    def _add_node(self, model: type[Node], by_name: Mapping[str, type[Any]], *below: type[Node]) -> None:
        """Adds a class of nodes, after the class of its parent."""
        if model in self.nodes:
            return
        parent: type[Node] | None = None
        if issubclass(model, Child):
            parent = _resolved_parent(model, by_name)
            if parent in (model, *below):
                raise InvalidModel(
                    f"{model.__name__} would be a child of itself, so its id would never end; give it another parent"
                )
            self._add_node(parent, by_name, model, *below)
        head = model.__declaration__.head
        if head is not None and head is not model:
            self._add_node(head, by_name, *below)
        # The id of a child begins with that of its parent, and a class of a family has the keys of its head: both
        # exist by now.
        above = None if parent is None else self.nodes[parent]
        self.nodes[model] = kind = _node_type(model, above, None if head in (None, model) else self.nodes[head])
        if kind.head is not None:
            kind.head.family.append(kind)

    def _end(
        self,
        edge: type[AnyEdge],
        side: str,
        asked: tuple[type[Node], ...],
        found: tuple[type[Node], ...],
        unions: dict[tuple[type[Node], ...], NodeUnion],
    ) -> NodeType:
        """Returns the type of one end of an edge, given the classes that are declared and those that can be there."""
        for model in found:
            if (head := self.nodes[model].head) is not None:
                raise InvalidModel(
                    f"the {side} of {edge.__name__} is {model.__name__}, which has the keys of {head.name}, so an edge "
                    f"would not say which of them it leads to; name {head.name}"
                )
        if len(asked) == 1 and found == asked:
            return self.nodes[found[0]]
        if len(asked) == 1:
            open_end(edge, side, asked[0])
        # Edges with the same classes at an end share one union, so that these ends can be compared by identity.
        if found not in unions:
            unions[found] = _union(tuple(self.nodes[model] for model in found))
        return unions[found]

    def children(self, kind: NodeType) -> tuple[NodeType, ...]:
        """Returns the classes of children whose parents are of a class; of a family, only the head."""
        return self._children.get(kind.whole.model, ())

    @cached_property
    def _children(self) -> dict[type[Any], tuple[NodeType, ...]]:
        heads = [child for child in self.nodes.values() if child.parent is not None and child.head is None]
        parents = dict.fromkeys(child.source.model for child in heads)
        return {model: tuple(child for child in heads if child.source.model is model) for model in parents}

    @property
    def types(self) -> list[EntityType]:
        return [*self.nodes.values(), *self.edges.values()]

    def node(self, model: type[Any]) -> NodeType:
        try:
            return self.nodes[model]
        except (KeyError, TypeError):
            raise self._unknown(model, "Node") from None

    def edge(self, model: type[Any]) -> EdgeType:
        try:
            return self.edges[model]
        except (KeyError, TypeError):
            raise self._unknown(model, "Edge") from None

    def _unknown(self, model: Any, kind: str) -> InvalidModel:
        name = getattr(model, "__name__", None) or shown(model)
        known = self.nodes if kind == "Node" else self.edges
        return InvalidModel(
            f"{name} is not {'an' if kind == 'Edge' else 'a'} {kind} class of this graph, which has "
            f"{', '.join(model.__name__ for model in known) or 'none'}; pass it when the graph opens"
        )


def _resolved_parent(child: type[Child[Any]], by_name: Mapping[str, type[Any]]) -> type[Node]:
    declared = parent_of(child)
    name = declared if isinstance(declared, str) else getattr(declared, "__forward_arg__", None)
    model = by_name.get(name) if name else declared
    if not (isinstance(model, type) and issubclass(model, Node) and model not in (Node, Child)):
        raise InvalidModel(
            f"{child.__name__} does not name a Node class of this graph as its parent; declare it as "
            f"class {child.__name__}(Child[Parent])"
        )
    if not child.__pydantic_complete__:
        child.model_rebuild(_types_namespace=by_name)
    return model


def _with_subclasses(
    end: tuple[type[Node], ...], given: Sequence[type[Node]], named: Sequence[type[Node]]
) -> tuple[type[Node], ...]:
    """Returns the classes that can be at an end: those that it names, and their subclasses in the graph.

    A class of a family is not a further one: the head has its keys. A class that only edges name, and that has
    subclasses, is only their base.
    """
    found: list[type[Node]] = []
    for base in end:
        heads = [each.__declaration__.head or each for each in named if issubclass(each, base)]
        below = [each for each in dict.fromkeys(heads) if each is not base and issubclass(each, base)]
        found += below if below and base not in given else [base, *below]
    return tuple(dict.fromkeys(found))


def _alternatives(end: Any, by_name: Mapping[str, type[Any]]) -> list[Any]:
    """Returns the classes, or the names of unknown classes, that an edge declares for one of its ends."""
    if get_origin(end) in (Union, UnionType):
        return [each for one in get_args(end) for each in _alternatives(one, by_name)]
    name = end if isinstance(end, str) else getattr(end, "__forward_arg__", None)
    if name is None:
        return [end]
    return [by_name.get(each.strip(), each.strip()) for each in name.split("|")]


def _resolved_ends(
    edge: type[AnyEdge], by_name: Mapping[str, type[Any]]
) -> tuple[tuple[type[Node], ...], tuple[type[Node], ...]]:
    """Returns the classes that an edge declares for each of its ends."""
    ends = ends_of(edge)
    if len(ends) != 2:
        raise InvalidModel(
            f"{edge.__name__} does not name its two node classes; declare it as class {edge.__name__}(Edge[Source, "
            f"Target])"
        )
    resolved: list[tuple[type[Node], ...]] = []
    for side, end in zip(("source", "target"), ends, strict=True):
        models = _alternatives(end, by_name)
        for model in models:
            if not (isinstance(model, type) and issubclass(model, Node) and model is not Node):
                shown = model if isinstance(model, str) else getattr(model, "__name__", repr(model))
                raise InvalidModel(
                    f"the {side} of {edge.__name__} is {shown}, which is not a Node class of this graph; "
                    f"both ends of an edge must be classes derived from Node"
                )
        resolved.append(tuple(dict.fromkeys(models)))
    if not edge.__pydantic_complete__:
        # The edge names a class that was declared after it, so pydantic could not finish it then.
        edge.model_rebuild(_types_namespace=by_name)
    return resolved[0], resolved[1]


def _node_type(model: type[Node], parent: NodeType | None = None, head: NodeType | None = None) -> NodeType:
    _check_label(model)
    _check_hooks(model)
    key = model.__declaration__.key
    if key == ("id",) and "id" not in model.model_fields:
        raise InvalidModel(
            f"{model.__name__} has no field 'id'; every node needs one, such as id: str, or names the fields of its "
            f"id with key="
        )
    if parent is not None and "parent" in key:
        raise InvalidModel(f"key= of {model.__name__} names 'parent', which is part of the id anyway; leave it out")
    for name in key:
        if not isinstance(name, str) or name not in model.model_fields:
            raise InvalidModel(f"key={name!r}: " + unknown_field(model.__name__, name, model.model_fields))
        _check_key_type(model, name, "the id" if len(key) == 1 else "the key field")
        if type(None) in get_args(model.model_fields[name].annotation):
            raise InvalidModel(
                f"{model.__name__}.{name} may be None, but an id must have a value; remove None from its type"
            )
    if len(set(key)) < len(key):
        raise InvalidModel(f"key= of {model.__name__} names a field twice; name each field once")
    attributes = _attributes(model, without=key if parent is None else ("parent", *key))
    label = model.__declaration__.label if head is None else head.label
    kind = NodeType(model, label, attributes, key, parent, head)
    _check_marks(kind)
    return kind


def _check_family(kind: NodeType) -> None:
    """Checks that the classes of a family can be told apart, and that what is stored beside them is the same."""
    head, name = kind.head, kind.discriminator
    if not isinstance(name, str | None) or name in kind.id_names:
        raise InvalidModel(f"discriminator= of {kind.name} must be the name of a field besides its id, got {name!r}")
    if kind.parent is not None and kind.parent.head is not None:
        raise InvalidModel(
            f"the parent of {kind.name} is {kind.parent.name}, which has the keys of {kind.parent.head.name}, so the "
            f"key of a child would not say which of them it belongs to; name {kind.parent.head.name}"
        )
    if head is None or name is None:
        return
    if kind.key != head.key or kind.parent is not head.parent or kind.part_types != head.part_types:
        raise InvalidModel(f"{kind.name} has another id than {head.name}, whose keys it has; give both the same id")
    marks = (
        ("Indexed", kind.indexed, head.indexed),
        ("Indexed", kind.elements, head.elements),
        ("Unique", kind.unique, head.unique),
    )
    for mark, names, others in marks:
        if names != others:
            raise InvalidModel(
                f"{kind.name} and {head.name} have {mark}() on different fields, but one of them may replace the other "
                f"under the same key; mark the same fields, all of them fields of {head.name}"
            )
    for shared, stored in head.attributes.items():
        if kind.attributes[shared] != stored:
            raise InvalidModel(
                f"{head.name}.{shared} is stored as {stored!r}, and {kind.name}.{shared} as "
                f"{kind.attributes[shared]!r}; give both the same alias"
            )
    if head.is_told_by_field and not kind.told_by:
        raise InvalidModel(
            f"{kind.name}.{name} tells {kind.name} apart from the other classes of {head.name}, so it needs a type "
            f'such as Literal["{kind.name.lower()}"]'
        )
    # Only with those before it: the others compare themselves with this one.
    for other in head.family[: head.family.index(kind)]:
        if shared_value := [each for each in kind.told_by if each in other.told_by]:
            ((_, value),) = shared_value[0].items()
            raise InvalidModel(
                f"{other.name} and {kind.name} both have {name} == {value!r}, so stored items could be of either; "
                f"give them different values"
            )


def _edge_type(model: type[AnyEdge], source: NodeType, target: NodeType) -> EdgeType:
    _check_label(model)
    _check_hooks(model)
    declared = model.__declaration__
    attributes = _attributes(model, without=("source", "target"))
    if not isinstance(declared.symmetric, bool):
        raise InvalidModel(f"symmetric= of {model.__name__} must be True or False, got {declared.symmetric!r}")
    for role, names in (("key", declared.key), ("order", (declared.order,) if declared.order else ())):
        for name in names:
            if not isinstance(name, str) or name not in attributes:
                raise InvalidModel(f"{role}={name!r}: " + unknown_field(model.__name__, name, attributes))
            if role == "key" and name not in model.model_fields:
                raise InvalidModel(
                    f"key= of {model.__name__} names {name!r}, which the class computes; an edge is found by its key "
                    f"alone, so name fields that are given"
                )
            _check_key_type(model, name, f"the {role} field")
    parts = [f"{side}.{name}" for side, end in (("source", source), ("target", target)) for name in end.parts]
    for name in declared.key_parts:
        if name not in parts:
            raise InvalidModel(f"key={name!r}: " + unknown_field(model.__name__, name, parts, "part of an id"))
    if declared.symmetric and source is not target:
        raise InvalidModel(
            f"{model.__name__} is symmetric but joins {source.name} to {target.name}; "
            f"a symmetric edge joins a class to itself"
        )
    kind = EdgeType(
        model,
        declared.label,
        attributes,
        source,
        target,
        declared.key,
        declared.order,
        declared.symmetric,
        declared.one_target,
        declared.one_source,
        declared.key_parts,
    )
    _check_marks(kind)
    return kind


def _check_label(model: type[Entity]) -> None:
    label = model.__declaration__.label
    if not isinstance(label, str) or not label or not label.isprintable() or _LABEL_TABOO & set(label):
        raise InvalidModel(
            f"the label {label!r} of {model.__name__} cannot be part of a key; use letters, digits, '_' and '-'"
        )


def _check_hooks(model: type[Entity]) -> None:
    for name, hook in (("before_put", model.before_put), ("after_load", model.after_load)):
        if iscoroutinefunction(hook) or isasyncgenfunction(hook):
            raise InvalidModel(
                f"{model.__name__}.{name} is an async method, which nothing would run; make it one that is not async"
            )


def _check_key_type(model: type[Entity], name: str, role: str) -> None:
    # A bool is an int for Python, but DynamoDB has no keys that are booleans.
    kind = plain_type({**model.model_fields, **stored_computed_fields(model)}[name])
    if kind is None or not issubclass(kind, KEY_TYPES) or kind is bool:
        names = ", ".join(each.__name__ for each in KEY_TYPES)
        raise InvalidModel(
            f"{role} {model.__name__}.{name} has a type that cannot be part of a key; use one of {names}"
        )


def _check_marks(kind: EntityType) -> None:
    for mark in (Version, Expires):
        for name in kind.marked(mark):
            if name in kind.computed:
                raise InvalidModel(
                    f"{kind.name}.{name} is computed by its class, so it cannot be marked {mark.__name__}(); declare a "
                    f"field for that"
                )
        if len(marked := kind.marked(mark)) > 1:
            raise InvalidModel(f"{kind.name} has {mark.__name__}() on {' and '.join(marked)}; mark only one field")
    if kind.version and plain_type(kind.fields[kind.version]) is not int:
        raise InvalidModel(f"{kind.name}.{kind.version} is marked Version() but is not an int; make it an int")
    if kind.expires and plain_type(kind.fields[kind.expires]) not in (dt.datetime, int):
        raise InvalidModel(
            f"{kind.name}.{kind.expires} is marked Expires() but is neither a datetime nor an int; make it a datetime, "
            f"or an int of seconds since 1970"
        )
    _check_formats(kind)
    for name in kind.indexed:
        _check_indexed(kind, name)
    for name in kind.elements:
        _check_elements(kind, name)
    for name in kind.unique:
        if not isinstance(kind, NodeType) or name in kind.key:
            raise InvalidModel(f"{kind.name}.{name} is marked Unique(), which is only for fields of nodes besides id")
    if isinstance(kind, NodeType):
        for mark in (Version, Expires):
            for name in kind.marked(mark):
                if name in kind.key:
                    raise InvalidModel(
                        f"{kind.name}.{name} is marked {mark.__name__}(), but it is part of the id, which never "
                        f"changes; mark another field"
                    )
    for name in kind.unique:
        _check_key_type(kind.model, name, "the unique field")


def _check_formats(kind: EntityType) -> None:
    for name in kind.formats:
        if name not in kind.attributes:
            raise InvalidModel(
                f"{kind.name}.{name} is marked Stored(), but it is in keys and in no attribute; write its format into "
                f"the key template, such as {{{name}:%Y-%m-%d}}"
            )
        if name in (kind.version, kind.expires):
            raise InvalidModel(
                f"{kind.name}.{name} is marked Stored(), but a version is stored as a number, and an expiry as seconds "
                f"since 1970; remove the format"
            )
    for name, info in kind.fields.items():
        if name in kind.attributes.keys() - kind.formats.keys() and _has_inner_format(info.annotation, set()):
            raise InvalidModel(
                f"{kind.name}.{name} has a format inside a list, a map or a nested model, where it has no effect; use "
                f"Stored() on a field of the class itself"
            )


def _has_inner_format(hint: Any, seen: set[Any]) -> bool:
    if any(isinstance(each, Stored) for each in getattr(hint, "__metadata__", ())):
        return True
    if isinstance(hint, type) and hint not in seen and hasattr(hint, "model_fields"):
        seen.add(hint)
        fields = hint.model_fields.values()
        return any(
            any(isinstance(each, Stored) for each in info.metadata) or _has_inner_format(info.annotation, seen)
            for info in fields
        )
    return any(_has_inner_format(each, seen) for each in get_args(hint))


def _check_indexed(kind: EntityType, name: str) -> None:
    if name not in kind.attributes:
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(), but it is already a key; remove the mark: get finds a node by "
            f"its id, and out and into find edges by their ends"
        )
    plain = path_type(kind.fields[name]) or plain_type(kind.fields[name])
    if plain is None or not issubclass(plain, INDEXED_TYPES):
        names = ", ".join(each.__name__ for each in INDEXED_TYPES)
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(), but an index cannot sort values of its type; "
            f"use one of {names}, or a tuple or list of one of them for a path"
        )


def _check_elements(kind: EntityType, name: str) -> None:
    if not isinstance(kind, NodeType) or name not in kind.attributes:
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(elements=True), which is only for fields of nodes and children "
            f"besides their ids; remove the mark, or let a node hold the elements"
        )
    plain = element_type(kind.fields[name])
    if plain is None or not issubclass(plain, INDEXED_TYPES):
        names = ", ".join(each.__name__ for each in INDEXED_TYPES)
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(elements=True), so it must be a list, a set, or a tuple of any "
            f"length, of one of {names}; change its type, or remove the mark"
        )


def _attributes(model: type[Entity], without: tuple[str, ...]) -> dict[str, str]:
    fields = {**model.model_fields, **stored_computed_fields(model)}
    stored = {name: info.serialization_alias or name for name, info in fields.items() if name not in without}
    owners: dict[str, str] = {}
    for name, attribute in stored.items():
        if (other := owners.setdefault(attribute, name)) != name:
            raise InvalidModel(
                f"{model.__name__}.{other} and {model.__name__}.{name} are both stored as {attribute!r}; give one of "
                f"them another alias"
            )
    return stored
