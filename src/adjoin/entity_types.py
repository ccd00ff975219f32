"""The classes of a graph as adjoin knows them: what their fields are for, their ids and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args, get_origin

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidKey, InvalidValue, UnknownField, shown
from adjoin.field_types import (
    ModelFields,
    plain_type,
    stored_tag,
    unknown_field,
)
from adjoin.marks import Version
from adjoin.model import Edge, Node, Ranked, Ref, ambiguous, either, field_schemas, id_spelled, node_id
from adjoin.values import AttributeValue, encode

AnyEdge: TypeAlias = Edge[Any, Any]

Entity: TypeAlias = Node | AnyEdge


@dataclass(frozen=True)
class EntityType(ModelFields):
    """A kind: a class of nodes or edges, its label, and its fields with the names under which they are stored."""

    label: str
    attributes: Mapping[str, str] = field(repr=False)
    """Field name to stored attribute name, without the fields of a node's id, and without `source` and `target`."""

    @property
    def word(self) -> str:
        """The word for the class in a type attribute."""
        return self.label

    @cached_property
    def whole(self) -> EntityType:
        """The class that says where entities are stored: the head of a family, or the class itself."""
        return self

    @cached_property
    def former(self) -> Mapping[str, tuple[str, ...]]:
        """The further attributes under which a field may be stored, by field: the other names of its AliasChoices."""
        taken = {*self.attributes.values()}
        found: dict[str, tuple[str, ...]] = {}
        for name in self.attributes:
            given = self.fields[name].validation_alias
            choices = given.choices if isinstance(given, AliasChoices) else ()
            others = tuple(each for each in choices if isinstance(each, str) and each not in taken)
            if others:
                found[name] = others
        return found

    @property
    def can_be_hidden(self) -> bool:
        """Whether the delete of a node hides entities of the class: edges and children, which go with it."""
        return False

    @cached_property
    def as_counted(self) -> CountedType | None:
        """The class as aggregates count it, if they can; None for nodes that are no children."""
        return None

    @property
    def counted_fields(self) -> Mapping[str, str | None]:
        """The fields that aggregates over the class can read, each with its attribute; None for a part of the id."""
        return self.attributes

    def field(self, name: str) -> FieldInfo:
        """Returns the field that fills a part of a key template, by the name of the part."""
        return self.fields[name]

    def end(self, name: str) -> NodeType | None:
        """Returns the class of the node whose id a field holds: an edge's source or target, or a child's parent."""
        return None

    def part(self, name: str) -> tuple[NodeType, str] | None:
        """Returns the class and the field of a part of such an id, by a name such as "source.id"; None for others."""
        side, _, part = name.partition(".")
        end = self.end(side)
        if end is None:
            return None
        return (end, part) if part in end.key else end.part(part)

    def attribute(self, name: str) -> str:
        """Returns the stored name of a field; raises `UnknownField`, which suggests the closest name."""
        try:
            return self.attributes[name]
        except KeyError:
            if self.end(name) is not None:
                raise UnknownField(
                    f"{self.name}.{name} is in the key only; it cannot be compared here or changed"
                ) from None
            raise UnknownField(unknown_field(self.name, name, self.attributes)) from None

    @cached_property
    def _by_alias(self) -> Mapping[str, str]:
        """The fields by their aliases, without aliases that are names of other fields."""
        given = {name: self.fields[name].validation_alias for name in self.attributes}
        aliases = {alias: name for name, alias in given.items() if isinstance(alias, str)}
        stored = {alias: name for name, alias in self.attributes.items()}
        return {alias: name for alias, name in (aliases | stored).items() if alias not in self.fields}

    def by_field(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a call is given by keyword, by field: a keyword may be an alias, as for an instance."""
        if all(name in self.fields for name in given):
            return dict(given)
        found: dict[str, Any] = {}
        for keyword, value in given.items():
            name = self._by_alias.get(keyword, keyword)
            if name in found or (name != keyword and name in given):
                raise InvalidValue(f"{self.name}.{name} is given twice, also as {keyword!r}; pass it once")
            found[name] = value
        return found

    @cached_property
    def keeps_ids(self) -> bool:
        """Whether an instance that is made from an item has the ids in the item's keys: no validator changes them."""
        return False

    @cached_property
    def version(self) -> str | None:
        """The field that counts updates: the one marked `Version()`, or an int field named "version"."""
        info = self.fields.get("version") if "version" in self.attributes else None
        if not self.marked(Version) and info is not None and plain_type(info) is int:
            return "version"
        return next(iter(self.marked(Version)), None)

    @cached_property
    def is_guarded(self) -> bool:
        """Whether a put or delete of an instance compares versions: only if a field is marked `Version()`."""
        return bool(self.marked(Version))

    @cached_property
    def claimed(self) -> tuple[str, ...]:
        """What an entity of the class claims, so that no other has it: the values of its unique fields."""
        return self.unique

    def holds_ranked(self, name: str) -> bool:
        """Returns whether a field is a list of `Ranked`, which say whose values they hold."""
        elements = get_args(self.fields[name].annotation)
        return any(isinstance(each, type) and issubclass(each, Ranked) for each in elements)


@dataclass(frozen=True)
class NodeType(EntityType):
    """A class of nodes.

    The id of a node is the value of its one key field, or the tuple of the values of several.
    """

    key: tuple[str, ...] = ("id",)
    """The fields of the id, in their order; for a child, those after its parent."""
    parent: NodeType | None = None
    """The class of the parent, for a class of children. The id of a child begins with that of its parent."""
    head: NodeType | None = field(default=None, repr=False)
    """For another class of a family, its head, which has the same keys."""
    family: list[NodeType] = field(default_factory=list, repr=False, compare=False)
    """For the head of a family, the other classes of it that are in the graph."""

    @property
    def word(self) -> str:
        return str(self.model.__declaration__.label)

    @cached_property
    def whole(self) -> NodeType:
        return self.head or self

    @cached_property
    def classes(self) -> tuple[NodeType, ...]:
        """The classes of nodes that an end of this type has: several for a union."""
        return (self,)

    def covers(self, node: NodeType) -> bool:
        """Whether nodes of a class can be at an end of this type."""
        return node.whole in self.classes

    def of(self, id: Any) -> tuple[NodeType, Any]:
        """Returns the class and the id of the node that the value of an end names."""
        return self, id

    @property
    def discriminator(self) -> str | None:
        """The field, or the type attribute, that tells the classes of a family apart; None if there is no family."""
        declared: str | None = self.model.__declaration__.discriminator
        return declared

    @cached_property
    def is_told_by_field(self) -> bool:
        """Whether a field tells the classes of the family apart, and not the layout's type attribute."""
        return self.discriminator in self.whole.attributes

    @cached_property
    def told_by(self) -> tuple[AttributeValue, ...]:
        """The stored values of the discriminator that tell this class of a family."""
        if not self.is_told_by_field:
            return ({"S": self.word},)
        # Only a Literal of text or whole numbers tells a class: of other types, further values may be meant.
        hint = self.fields[self.discriminator or ""].annotation
        values = get_args(hint) if get_origin(hint) is Literal else ()
        return tuple(map(encode, values)) if all(type(value) in (str, int) for value in values) else ()

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of the id in key templates."""
        return self.key if self.parent is None else (*(f"parent.{name}" for name in self.parent.parts), *self.key)

    @property
    def id_names(self) -> tuple[str, ...]:
        """The fields that identify a node."""
        return self.key if self.parent is None else ("parent", *self.key)

    @cached_property
    def part_fields(self) -> dict[str, FieldInfo]:
        """The field of each part of the id."""
        own = {name: self.fields[name] for name in self.key}
        if self.parent is None:
            return own
        return {**{f"parent.{name}": info for name, info in self.parent.part_fields.items()}, **own}

    @cached_property
    def part_types(self) -> dict[str, type | None]:
        """The type of each part of the id; None if it has several."""
        return {name: plain_type(info) for name, info in self.part_fields.items()}

    @cached_property
    def is_single(self) -> bool:
        """Whether the id is one value, and not a tuple."""
        return len(self.key) == 1 and self.parent is None

    @cached_property
    def only(self) -> str | None:
        """The only part of an id that is one value; None for a composite id."""
        return self.parts[0] if self.is_single else None

    @cached_property
    def id_type(self) -> type:
        """The type of an id that is one value; a composite id is a tuple."""
        return plain_type(self.fields[self.key[0]]) or str if self.is_single else tuple

    @cached_property
    def bare_id_type(self) -> type | None:
        """The type of the id, if its values need no validation and no conversion; a shortcut for the usual case."""
        if self.id_type not in (str, int):
            return None
        schema = field_schemas(self.model).get(self.key[0], {}).get("schema")
        return self.id_type if schema == {"type": self.id_type.__name__} else None

    @cached_property
    def has_bare_text_id(self) -> bool:
        """Whether any text is a valid id."""
        return self.bare_id_type is str

    @cached_property
    def has_bare_number_id(self) -> bool:
        """Whether any whole number is a valid id, and nothing else is."""
        return self.bare_id_type is int

    @cached_property
    def keeps_ids(self) -> bool:
        own = all(_keeps(self.model, name, self._schema_of(name)) for name in self.key)
        if self.parent is None:
            return own
        return own and self.parent.keeps_ids and _keeps(self.model, "parent", self.parent.id_schema)

    @property
    def id_schema(self) -> Any:
        """Returns pydantic's schema of the id; None for a class with a validator for the whole model."""
        schemas = self._part_schemas
        return schemas[0] if self.is_single else {"type": "tuple", "items_schema": schemas}

    @cached_property
    def _part_schemas(self) -> list[Any]:
        above = [] if self.parent is None else self.parent._part_schemas
        return [*above, *map(self._schema_of, self.key)]

    def _schema_of(self, name: str) -> Any:
        return field_schemas(self.model).get(name, {}).get("schema")

    def id(self, given: Any) -> Any:
        """Returns the id of a node of this class, given the id, a ref or the node; raises `InvalidKey` for others."""
        if type(given) is self.bare_id_type:
            return given
        match given:
            case Ref(model=model, id=id):
                self._must_be(model, id)
                return self.id(id)
            case Node():
                self._must_be(type(given), node_id(given))
                return node_id(given)
            case Edge():
                raise InvalidKey(f"a {self.name} is needed, got an edge; pass the node, its ref or its id")
        try:
            return self.validated(self.key[0], given) if self.is_single else self._composite(given)
        except InvalidValue as error:
            raise InvalidKey(str(error)) from None

    def _composite(self, given: Any) -> tuple[Any, ...]:
        before = 0 if self.parent is None else len(self.parent.parts)
        # The parent may be given as one value, as in `edge.source`, or as the parts of its id.
        is_nested = isinstance(given, tuple | list) and self.parent is not None and len(given) == 1 + len(self.key)
        if not isinstance(given, tuple | list) or (len(given) != before + len(self.key) and not is_nested):
            names = id_spelled(self.id_names) if self.id_names != ("parent",) else "(parent,)"
            raise InvalidKey(f"the id of a {self.name} is {names}, got {shown(given)}; pass a tuple of these values")
        own = given[len(given) - len(self.key) :]
        values = [self.validated(name, value) for name, value in zip(self.key, own, strict=True)]
        if self.parent is None:
            return tuple(values)
        above = tuple(given[: len(given) - len(self.key)])
        parent = self.parent.id(above[0] if len(above) == 1 and (is_nested or self.parent.is_single) else above)
        return (*((parent,) if self.parent.is_single else parent), *values)

    def parent_id(self, id: tuple[Any, ...]) -> Any:
        """Returns the id of the parent of the child with this id."""
        assert self.parent is not None
        return id[0] if self.parent.is_single else id[: len(self.parent.parts)]

    def id_fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fields of an id from the values of its parts."""
        own = {name: values[name] for name in self.key}
        return own if self.parent is None else {"parent": self.parent.id_told(values, "parent."), **own}

    def part_values(self, id: Any, side: str = "") -> dict[str, Any]:
        """Returns the values of an id by the names of its parts; `side` precedes each name, such as "source."."""
        if self.only is not None:
            return {side + self.only: id}
        try:
            return {side + name: value for name, value in zip(self.parts, id, strict=True)}
        except (TypeError, ValueError):
            raise InvalidKey(
                f"the id of a {self.name} is {id_spelled(self.parts)}, got {shown(id)}; pass a tuple of these values"
            ) from None

    def id_told(self, values: Mapping[str, Any], side: str = "") -> Any:
        """Returns the id from the values of its parts, by their names; None if one of them is missing."""
        if self.only is not None:
            return values.get(side + self.only)
        id = tuple([values.get(side + name) for name in self.parts])
        return None if None in id else id

    @property
    def can_be_hidden(self) -> bool:
        return self.parent is not None

    # --- a child as an edge --------------------------------------------------------------------
    # For aggregates, a child is an edge from its parent to itself: it is counted at its parent, and may count others.

    @cached_property
    def as_counted(self) -> CountedType | None:
        return None if self.parent is None else self

    @cached_property
    def counted_fields(self) -> Mapping[str, str | None]:
        return {**dict.fromkeys(self.key if self.parent is not None else ()), **self.attributes}

    @property
    def source(self) -> NodeType:
        assert self.parent is not None
        return self.parent

    @property
    def target(self) -> NodeType:
        return self

    @property
    def order(self) -> str | None:
        """The field by which the children of a parent are sorted; None if their key has several, or none."""
        return self.key[0] if len(self.key) == 1 else None

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def is_mixed(self) -> bool:
        return False

    @property
    def variants(self) -> tuple[NodeType, ...]:
        return (self,)

    def end(self, name: str) -> NodeType | None:
        return self.parent if name == "parent" else None

    def attribute(self, name: str) -> str:
        if name in self.id_names and name not in self.attributes:
            raise UnknownField(
                f"{self.name}.{name} is part of the id, which is in the key only; it cannot be compared or changed"
            )
        return super().attribute(name)

    def field(self, name: str) -> FieldInfo:
        return self.part_fields[name] if name in self.part_fields else super().field(name)

    def _must_be(self, model: type[Node], id: Any) -> None:
        if model is not self.model and model.__declaration__.head is not self.model:
            raise InvalidKey(
                f"a {self.name} is needed, got {model.__name__} {shown(id)}; pass the node, its ref or its id"
            )


@dataclass(frozen=True)
class NodeUnion(NodeType):
    """An end of edges at which nodes of several classes are. Its ids are refs, and its fields those of all classes."""

    classes: tuple[NodeType, ...] = ()

    @property
    def name(self) -> str:
        return " | ".join(each.name for each in self.classes)

    @cached_property
    def fields(self) -> dict[str, FieldInfo]:
        return {name: info for name, info in self.classes[0].fields.items() if name in self.attributes}

    @cached_property
    def expires(self) -> str | None:
        return next((each.expires for each in self.classes if each.expires), None)

    @cached_property
    def id_type(self) -> type:
        return Ref

    @cached_property
    def _by_model(self) -> dict[type[Any], NodeType]:
        return {each.model: each for each in self.classes}

    def id(self, given: Any) -> Any:
        match given:
            case Ref(model=model, id=id):
                pass
            case Node():
                model, id = type(given), node_id(given)
            case Edge():
                raise InvalidKey(f"{self._either} is needed, got an edge; pass the node or its ref")
            case _:
                raise InvalidKey(ambiguous([each.model for each in self.classes], given))
        # A class of a family has the keys of its head, so edges name the head.
        kind = self._by_model.get(model) or self._by_model.get(model.__declaration__.head or Node)
        if kind is None:
            raise InvalidKey(f"{self._either} is needed, got {model.__name__} {shown(id)}; pass the node or its ref")
        return Ref(kind.model, kind.id(id))

    @property
    def _either(self) -> str:
        return either([each.model for each in self.classes])

    def of(self, id: Any) -> tuple[NodeType, Any]:
        if not isinstance(id, Ref) or id.model not in self._by_model:
            # An instance may hold what its class takes and this graph does not.
            id = self.id(id)
        return self._by_model[id.model], id.id

    def coerced(self, name: str, value: Any) -> Any:
        return self.id(value) if name in self.key else super().coerced(name, value)


@dataclass(frozen=True)
class EdgeType(EntityType):
    """A class of edges."""

    source: NodeType
    target: NodeType
    key: tuple[str, ...]
    order: str | None
    symmetric: bool
    one_target: bool = False
    """Whether a source has at most one edge of the class."""
    one_source: bool = False
    """Whether a target has at most one edge of the class."""
    key_parts: tuple[str, ...] = ()
    """The parts of the ids at its ends that distinguish an edge at its source, where no key has the whole ids."""
    union: EdgeType | None = field(default=None, repr=False, compare=False)
    """For a variant, the class that it is one of."""

    @cached_property
    def whole(self) -> EdgeType:
        return self.union or self

    @cached_property
    def claimed(self) -> tuple[str, ...]:
        """The ends of which an edge claims the node, because the node has at most one edge of the class."""
        if self.symmetric:
            return ("source", "target") if self.one_target or self.one_source else ()
        return (*(("source",) if self.one_target else ()), *(("target",) if self.one_source else ()))

    @cached_property
    def variants(self) -> tuple[EdgeType, ...]:
        """The class with one class of nodes at each end, once for each pair of them; itself if it has no others."""
        if len(self.source.classes) == len(self.target.classes) == 1 and not self.is_mixed:
            return (self,)
        # The engines of batch jobs compare ids of one type, so each pair of classes is read by itself.
        pairs = ((source, target) for source in self.source.classes for target in self.target.classes)
        return tuple(replace(self, source=source, target=target, union=self) for source, target in pairs)

    @cached_property
    def is_mixed(self) -> bool:
        """Whether an end holds refs, because nodes of several classes can be there."""
        return isinstance(self.source, NodeUnion) or isinstance(self.target, NodeUnion)

    @cached_property
    def keeps_ids(self) -> bool:
        ends = (("source", self.source), ("target", self.target))
        return all(end.keeps_ids and _keeps(self.model, name, end.id_schema) for name, end in ends)

    @property
    def can_be_hidden(self) -> bool:
        return True

    @cached_property
    def as_counted(self) -> CountedType | None:
        return self

    def end(self, name: str) -> NodeType | None:
        return {"source": self.source, "target": self.target}.get(name)

    def field(self, name: str) -> FieldInfo:
        for side, end in (("source.", self.source), ("target.", self.target)):
            if name.startswith(side):
                return end.part_fields[name.removeprefix(side)]
        return super().field(name)

    def joins(self, node: NodeType) -> bool:
        """Whether nodes of a class can be at an end of the edges."""
        return self.source.covers(node) or self.target.covers(node)

    def end_values(self, source: Any, target: Any) -> dict[str, Any]:
        """Returns the values of both ids by the names of their parts, such as "source.id" and "target.id"."""
        if self.single_ends is not None:
            near, far = self.single_ends
            return {near: source, far: target}
        return {**self.source.part_values(source, "source."), **self.target.part_values(target, "target.")}

    @cached_property
    def single_ends(self) -> tuple[str, str] | None:
        """The names of the only parts of both ids; None if one has several."""
        is_single = self.source.is_single and self.target.is_single
        return (f"source.{self.source.parts[0]}", f"target.{self.target.parts[0]}") if is_single else None

    def key_values(self, names: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the validated key fields, which distinguish parallel edges; raises `InvalidKey` if one is missing."""
        values: dict[str, Any] = {}
        for name in names:
            if name not in given:
                raise InvalidKey(
                    f"{self.name} has the key field {name!r}, and no value was given for it; pass {name}=…"
                )
            values[name] = self.validated(name, given[name])
        return values


CountedType: TypeAlias = EdgeType | NodeType
"""What an aggregate counts: a class of edges, or a class of children."""

_KEPT_TYPES = ("str", "int", "uuid", "date", "datetime")
_CHANGING_OPTIONS = {"strip_whitespace", "to_lower", "to_upper"}
_CHANGING_CONFIG = ("str_strip_whitespace", "str_to_lower", "str_to_upper")


def _keeps(model: type[Any], name: str, id_schema: Any) -> bool:
    """Whether a class takes an id as it is: its field has a plain type, and nothing else has a say in its value."""
    if not _is_kept(id_schema):
        return False
    field = field_schemas(model).get(name, {}).get("schema", {})
    # The end of an edge takes the id, or a node or a ref of which it takes the id.
    end = {"union": lambda: field["choices"][0], "function-before": lambda: field["schema"]}.get(field.get("type"))
    tried = field if end is None else end()
    config = model.__pydantic_core_schema__.get("config", {})
    return bool(tried == id_schema) and not any(config.get(option) for option in _CHANGING_CONFIG)


def _is_kept(schema: Any) -> bool:
    """Whether a field with this schema has the values that it is given: bounds and patterns change none."""
    if schema is None:
        return False
    if schema["type"] == "tuple":
        return all(map(_is_kept, schema["items_schema"]))
    return schema["type"] in _KEPT_TYPES and not schema.keys() & _CHANGING_OPTIONS


def tag_of(kind: EntityType, name: str) -> str | None:
    """Returns DynamoDB's type of the stored values of a field: "N", "S" or "BOOL"; None if it is another or unknown."""
    if name == kind.expires:
        return "N"
    return kind.formats[name].tag if name in kind.formats else stored_tag(kind.fields[name])
