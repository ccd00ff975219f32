"""The set of declared classes, checked as a whole when a graph opens.

Every mistake in a declaration is found here, with a message that names the class and the field.
What the classes look like in a table is a layout's business and does not exist here.
"""

from __future__ import annotations

import datetime as dt
import difflib
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

from adjoin.errors import AdjoinError, InvalidKey, InvalidModel, InvalidValue, UnknownField, shown
from adjoin.model import Edge, Expires, Indexed, Node, Ref, Unique, Version, ends_of, field_schemas, node_id
from adjoin.values import check_range

AnyEdge: TypeAlias = Edge[Any, Any]
Entity: TypeAlias = Node | AnyEdge

KEY_TYPES: tuple[type, ...] = (str, int, Decimal, uuid.UUID, dt.datetime, dt.date, Enum)
"""Types whose values have one spelling in a key; float is out because it has several."""

INDEXED_TYPES: tuple[type, ...] = (*KEY_TYPES, float)
"""Types that an index can put in order; what it holds is never read back, so float is one of them."""

_TEXTS = (str, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID)
_NUMBERS = (int, float, Decimal)
_LABEL_TABOO = frozenset("#%|{}")
Bound: TypeAlias = Literal[">=", ">", "<=", "<"]
_BOUNDS: tuple[tuple[type, str, Bound], ...] = (
    (annotated_types.Ge, "ge", ">="),
    (annotated_types.Gt, "gt", ">"),
    (annotated_types.Le, "le", "<="),
    (annotated_types.Lt, "lt", "<"),
)


@dataclass(frozen=True)
class EntityType:
    """What nodes and edges have in common: a class, a label, and fields with stored names."""

    model: type[Any]
    label: str
    attributes: Mapping[str, str] = field(repr=False)
    """Field name to stored attribute name, without `id`, `source` and `target`."""

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def fields(self) -> dict[str, FieldInfo]:
        fields: dict[str, FieldInfo] = self.model.model_fields
        return fields

    @property
    def takes_any(self) -> bool:
        """Whether instances may have fields of any name."""
        return bool(self.model.model_config.get("extra") == "allow")

    def attribute(self, name: str) -> str:
        """The stored name of a field, or an error that names the closest one."""
        try:
            return self.attributes[name]
        except KeyError:
            raise UnknownField(unknown_field(self.name, name, self.attributes)) from None

    @cached_property
    def version(self) -> str | None:
        """The field that counts updates: one marked `Version()`, or an int named "version"."""
        if not self.marked(Version) and (info := self.fields.get("version")) and plain_type(info) is int:
            return "version"
        return next(iter(self.marked(Version)), None)

    @cached_property
    def is_guarded(self) -> bool:
        """Whether instances are written and deleted only where the stored version is theirs: one marked `Version()`."""
        return bool(self.marked(Version))

    @cached_property
    def expires(self) -> str | None:
        return next(iter(self.marked(Expires)), None)

    @cached_property
    def indexed(self) -> tuple[str, ...]:
        """The fields that `find` finds by."""
        return tuple(self.marked(Indexed))

    @cached_property
    def unique(self) -> tuple[str, ...]:
        """The fields whose values no two nodes of the class share."""
        return tuple(self.marked(Unique))

    def marked(self, mark: type) -> list[str]:
        """The fields with a mark of this class."""
        return [
            name
            for name, info in self.fields.items()
            if any(isinstance(each, mark) or each is mark for each in (*info.metadata, *_inner_marks(info.annotation)))
        ]

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {}

    @cached_property
    def _validators(self) -> dict[str, Callable[[Any], Any]]:
        return {}

    def validated(self, name: str, value: Any) -> Any:
        """A value as the field `name` takes it, its validators included, or an error that says why not."""
        return self._checked(name, value, self._validators.get(name) or self._new_validator(name))

    def _new_validator(self, name: str) -> Callable[[Any], Any]:
        field = field_schemas(self.model).get(name)
        validate: Callable[[Any], Any]
        if field is not None:
            config = self.model.__pydantic_core_schema__.get("config")
            validate = SchemaValidator(field["schema"], config).validate_python
        else:
            validate = TypeAdapter(_full_hint(self.fields[name])).validate_python
        self._validators[name] = validate
        return validate

    def limits(self, name: str) -> list[tuple[Bound, Any]]:
        """The bounds that a number field declares, as comparisons that must hold."""
        return [
            (operator, getattr(mark, attribute))
            for mark in self.fields[name].metadata
            for kind, attribute, operator in _BOUNDS
            if isinstance(mark, kind)
        ]

    def coerced(self, name: str, value: Any) -> Any:
        """A value of the field's type, to compare with; the field's limits do not bind it."""
        if isinstance(value, (int, Decimal)) and (plain_type(self.fields[name]) in (int, float, Decimal)):
            return value
        adapter = self._adapters.get(name)
        if adapter is None:
            hint: Any = self.fields[name].annotation
            adapter = self._adapters[name] = TypeAdapter(hint)
        return self._checked(name, value, adapter.validate_python)

    def _checked(self, name: str, value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            if type(value) is Decimal:
                check_range(value)
            return validate(value)
        except ValidationError as error:
            raise InvalidValue(f"{shown(value)} does not fit {self.name}.{name}: {problems_in(error)}") from None
        except (AdjoinError, MemoryError):
            raise
        except Exception as error:
            raise InvalidValue(f"{shown(value)} does not fit {self.name}.{name}: {raised_by_class(error)}") from error


@dataclass(frozen=True)
class NodeType(EntityType):
    @cached_property
    def id_type(self) -> type:
        return plain_type(self.fields["id"]) or str

    @cached_property
    def _bare_id_type(self) -> type | None:
        """The type whose values are ids as they are, with nothing to check or to convert."""
        is_bare = field_schemas(self.model).get("id", {}).get("schema") == {"type": self.id_type.__name__}
        return self.id_type if self.id_type in (str, int) and is_bare else None

    @property
    def has_bare_text_id(self) -> bool:
        """Whether any text is an id as it is."""
        return self._bare_id_type is str

    def id(self, given: Any) -> Any:
        """The id that an id, a ref or a node of this type stands for."""
        if type(given) is self._bare_id_type:
            return given
        match given:
            case Ref(model=model, id=id):
                self._must_be(model, id)
                return self.id(id)
            case Node():
                self._must_be(type(given), node_id(given))
                return node_id(given)
            case Edge():
                raise InvalidKey(f"an edge was given where a {self.name} belongs; pass the node, its ref or id")
        try:
            return self.validated("id", given)
        except InvalidValue as error:
            raise InvalidKey(str(error)) from None

    def _must_be(self, model: type[Node], id: Any) -> None:
        if model is not self.model:
            raise InvalidKey(f"{model.__name__} {id!r} was given where a {self.name} belongs")


@dataclass(frozen=True)
class EdgeType(EntityType):
    source: NodeType
    target: NodeType
    key: tuple[str, ...]
    order: str | None
    symmetric: bool

    def key_values(self, names: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that tell an edge from its parallels, each validated; all of them are needed."""
        values: dict[str, Any] = {}
        for name in names:
            if name not in given:
                raise InvalidKey(
                    f"{self.name} is told from its parallels by {name!r}, and no value was given for it; pass {name}=…"
                )
            values[name] = self.validated(name, given[name])
        return values


class Schema:
    """All node and edge types of one graph."""

    def __init__(self, models: Iterable[type[Any]]) -> None:
        if isinstance(models, type) or not isinstance(models, Iterable):
            raise InvalidModel(f"{shown(models)} is not a list of classes; pass the Node and Edge classes in a list")
        given = list(models)
        for model in given:
            is_one = isinstance(model, type) and issubclass(model, (Node, Edge))
            if not is_one or model in (Node, Edge):
                raise InvalidModel(f"{shown(model)} is not a Node or Edge class of yours; pass the classes themselves")
        classes = list(dict.fromkeys(given))
        by_name = {model.__name__: model for model in classes}
        ends = {model: _resolved_ends(model, by_name) for model in classes if issubclass(model, Edge)}
        nodes = [model for model in classes if issubclass(model, Node)]
        nodes += [end for pair in ends.values() for end in pair]
        self.nodes: dict[type[Node], NodeType] = {model: _node_type(model) for model in dict.fromkeys(nodes)}
        self.edges: dict[type[AnyEdge], EdgeType] = {
            model: _edge_type(model, self.nodes[source], self.nodes[target]) for model, (source, target) in ends.items()
        }
        if not self.types:
            raise InvalidModel("a graph needs at least one Node class; pass the classes it holds")
        by_label: dict[str, EntityType] = {}
        for kind in self.types:
            if (other := by_label.setdefault(kind.label, kind)) is not kind:
                raise InvalidModel(
                    f"{other.name} and {kind.name} both have the label {kind.label!r}; "
                    f"give one of them another with label="
                )

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
            f"{', '.join(each.__name__ for each in known) or 'none'}; pass it when the graph opens"
        )


def _resolved_ends(edge: type[AnyEdge], by_name: Mapping[str, type[Any]]) -> tuple[type[Node], type[Node]]:
    ends = ends_of(edge)
    if len(ends) != 2:
        raise InvalidModel(
            f"{edge.__name__} does not say what it joins; declare it as class {edge.__name__}(Edge[Source, Target])"
        )
    resolved: list[type[Node]] = []
    for side, end in zip(("source", "target"), ends, strict=True):
        name = end if isinstance(end, str) else getattr(end, "__forward_arg__", None)
        model = by_name.get(name) if name else end
        if not (isinstance(model, type) and issubclass(model, Node) and model is not Node):
            shown = name or getattr(end, "__name__", repr(end))
            raise InvalidModel(
                f"the {side} of {edge.__name__} is {shown}, which is not a Node class of this graph; "
                f"both ends of an edge must be classes derived from Node"
            )
        resolved.append(model)
    if not edge.__pydantic_complete__:
        edge.model_rebuild(_types_namespace=by_name)
    return resolved[0], resolved[1]


def _node_type(model: type[Node]) -> NodeType:
    _check_label(model)
    if "id" not in model.model_fields:
        raise InvalidModel(f"{model.__name__} has no field 'id'; every node needs one, such as id: str")
    _check_key_type(model, "id", "the id")
    if type(None) in get_args(model.model_fields["id"].annotation):
        raise InvalidModel(
            f"{model.__name__}.id may be None, but a node cannot be found by that; take None out of its type"
        )
    attributes = _attributes(model, without=("id",))
    kind = NodeType(model, model.__declaration__.label, attributes)
    _check_marks(kind)
    return kind


def _edge_type(model: type[AnyEdge], source: NodeType, target: NodeType) -> EdgeType:
    _check_label(model)
    declared = model.__declaration__
    attributes = _attributes(model, without=("source", "target"))
    if not isinstance(declared.symmetric, bool):
        raise InvalidModel(f"symmetric= of {model.__name__} is {declared.symmetric!r}; it is True or False")
    for role, names in (("key", declared.key), ("order", (declared.order,) if declared.order else ())):
        for name in names:
            if not isinstance(name, str) or name not in attributes:
                raise InvalidModel(f"{role}={name!r}: " + unknown_field(model.__name__, name, attributes))
            _check_key_type(model, name, f"the {role} field")
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
    )
    _check_marks(kind)
    return kind


def _check_label(model: type[Entity]) -> None:
    label = model.__declaration__.label
    if not isinstance(label, str) or not label or not label.isprintable() or _LABEL_TABOO & set(label):
        raise InvalidModel(
            f"the label {label!r} of {model.__name__} cannot be part of a key; use letters, digits, '_' and '-'"
        )


def _check_key_type(model: type[Entity], name: str, role: str) -> None:
    kind = plain_type(model.model_fields[name])
    if kind is None or not issubclass(kind, KEY_TYPES) or kind is bool:
        names = ", ".join(each.__name__ for each in KEY_TYPES)
        raise InvalidModel(
            f"{role} {model.__name__}.{name} has a type that cannot be part of a key; use one of {names}"
        )


def _check_marks(kind: EntityType) -> None:
    for mark in (Version, Expires):
        if len(marked := kind.marked(mark)) > 1:
            raise InvalidModel(f"{kind.name} has {mark.__name__}() on {' and '.join(marked)}; mark one field")
    if kind.version and plain_type(kind.fields[kind.version]) is not int:
        raise InvalidModel(f"{kind.name}.{kind.version} is marked Version() but is not an int")
    if kind.expires and plain_type(kind.fields[kind.expires]) is not dt.datetime:
        raise InvalidModel(f"{kind.name}.{kind.expires} is marked Expires() but is not a datetime")
    for name in kind.indexed:
        _check_indexed(kind, name)
    for name in kind.unique:
        if not isinstance(kind, NodeType) or name == "id":
            raise InvalidModel(f"{kind.name}.{name} is marked Unique(), which is for fields of nodes besides their id")
        _check_key_type(kind.model, name, "the unique field")


def _check_indexed(kind: EntityType, name: str) -> None:
    if name not in kind.attributes:
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(), but it is a key already: "
            f"a node is found by its id, and edges by their ends"
        )
    plain = path_type(kind.fields[name]) or plain_type(kind.fields[name])
    if plain is None or not issubclass(plain, INDEXED_TYPES):
        names = ", ".join(each.__name__ for each in INDEXED_TYPES)
        raise InvalidModel(
            f"{kind.name}.{name} is marked Indexed(), but values of its type have no order in an index; "
            f"use one of {names}, or a tuple or list of one of them for a path"
        )


def _attributes(model: type[Entity], without: tuple[str, ...]) -> dict[str, str]:
    stored = {
        name: info.serialization_alias or name for name, info in model.model_fields.items() if name not in without
    }
    owners: dict[str, str] = {}
    for name, attribute in stored.items():
        if (other := owners.setdefault(attribute, name)) != name:
            raise InvalidModel(f"{model.__name__}.{other} and {model.__name__}.{name} are both stored as {attribute!r}")
    return stored


def _full_hint(info: FieldInfo) -> Any:
    hint: Any = info.annotation
    for mark in info.metadata:
        hint = Annotated[hint, mark]
    return hint


def _inner_marks(hint: Any) -> list[Any]:
    """The marks of a type that is one of several, as in `Annotated[str, Unique()] | None`."""
    marks = list(hint.__metadata__) if get_origin(hint) is Annotated else []
    inner = get_args(hint) if get_origin(hint) in (Union, UnionType) else get_args(hint)[:1] if marks else ()
    return marks + [mark for each in inner for mark in _inner_marks(each)]


def plain_type(info: FieldInfo) -> type | None:
    """The one class behind a field's annotation, looking through Optional, Annotated and Literal."""
    return _plain(info.annotation)


def _plain(hint: Any) -> type | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _plain(get_args(hint)[0])
    if origin in (Union, UnionType):
        kinds = {_plain(each) for each in get_args(hint)} - {NoneType}
        return kinds.pop() if len(kinds) == 1 else None
    if origin is Literal:
        kinds = {type(each) for each in get_args(hint)}
        return kinds.pop() if len(kinds) == 1 else None
    return hint if isinstance(hint, type) else None


def tag_of(kind: EntityType, name: str) -> str | None:
    """The type that a field's values are stored in: "N", "S", "BOOL", or None where it may be another."""
    if name == kind.expires:
        return "N"
    plain = plain_type(kind.fields[name])
    if plain is None:
        return None
    if issubclass(plain, Enum):
        values = [member.value for member in plain]
        if all(isinstance(value, str) for value in values):
            return "S"
        is_number = all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in values)
        return "N" if is_number else None
    if issubclass(plain, bool):
        return "BOOL"
    if issubclass(plain, _NUMBERS):
        return "N"
    return "S" if issubclass(plain, _TEXTS) else None


def path_type(info: FieldInfo) -> type | None:
    """The type of a path's steps, for a field that is a list or tuple of steps of one type."""
    return _path_type(info.annotation)


def _path_type(hint: Any) -> type | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _path_type(get_args(hint)[0])
    if origin in (Union, UnionType):
        paths = {_path_type(each) for each in get_args(hint) if each is not NoneType}
        return paths.pop() if len(paths) == 1 else None
    if origin not in (list, tuple):
        return None
    steps = {_plain(each) for each in get_args(hint) if each is not Ellipsis}
    return steps.pop() if len(steps) == 1 else None


def problems_in(error: ValidationError) -> str:
    """What pydantic found wrong, field by field, in one line."""
    return "; ".join(
        f"{'.'.join(str(step).strip(chr(0)) for step in problem['loc'])}: {problem['msg']}"
        if problem["loc"]
        else problem["msg"]
        for problem in error.errors()
    )


def raised_by_class(error: Exception) -> str:
    """What a validator of a class raised that is no error of validation, in one line."""
    return f"its validators raised {type(error).__name__}: {error}"


def unknown_field(owner: str, name: Any, known: Iterable[str], what: str = "field") -> str:
    """Says that a field, or something else, does not exist, and which one may have been meant."""
    names = list(known)
    close = difflib.get_close_matches(name[:100] if isinstance(name, str) else "", names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, names)) or f'no {what}s'}"
    return f"{owner} has no {what} {shown(name)}; {hint}"
