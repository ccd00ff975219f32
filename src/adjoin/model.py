"""The base classes of nodes and edges; `marks` has the marks of their fields.

A class only records its declaration here. `adjoin.schema` checks that the declarations fit together
when a graph opens, so that classes may be declared in any order. This module knows no keys, tables
or requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Self,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, RootModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from adjoin.class_fields import FieldsOnClass
from adjoin.dataclass import dataclass
from adjoin.errors import InvalidKey, InvalidModel, NotRead, shown
from adjoin.late import later
from adjoin.refs import Ref as Ref

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as NodeMeta

    from adjoin import notebooks
    from adjoin.refs import EdgeMeta, SourceEnd, TargetEnd
    from adjoin.refs import SourceEnd as ParentEnd
else:
    EdgeMeta = NodeMeta = FieldsOnClass
    notebooks = later("adjoin.notebooks")

NodeT = TypeVar("NodeT", bound="Node")
SourceT = TypeVar("SourceT", bound="Node")
TargetT = TypeVar("TargetT", bound="Node")
ParentT = TypeVar("ParentT", bound="Node")
ValueT = TypeVar("ValueT")

AS_READ = "adjoin:as_read"
"""The name under which a node remembers the managed fields that were read, so that a later put can see whether the
program set one. It is in `__dict__`, as a cached property would be, so that comparing, copying and dumping ignore
it."""

WHOSE = "adjoin:whose"
"""The name under which the same record has the identity of the node or edge that was read. `model_copy` copies the
record too, so a copy with another id must be recognized as another entity."""

UNEXPLAINED = "_adjoin:unexplained"
"""The name under which a node or an edge keeps the stored attributes that no field explains, so that a later put does
not drop them: its identity, and the attributes. These are None if it was read from an index that does not hold them; a
put then reads them first. It is in `__dict__`, as `AS_READ` is."""

SHARDS_READ = "_adjoin:shards"
"""The name under which a node or an edge keeps the shards of its index keys that another program chose, so that a later
put does not move it: by attribute, the text that chooses a shard, and the shard. It is in `__dict__`, too."""


_RANKED_MODEL = "adjoin:model"
"""The name under which a `Ranked` has the class of its node. It is in `__dict__`, as `AS_READ` is."""
ONLY_READ = "_adjoin:only"
"""The name under which a node or an edge that was read with `only` keeps the names of the fields that were read. It is
in `__dict__`, too."""


_MODEL_CONFIG = ConfigDict(populate_by_name=True, validate_assignment=True)


def _upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def _refuse_keywords(model: type, unknown: Mapping[str, Any], known: str) -> None:
    """Raises for unknown class keywords. Pydantic has already taken its own out."""
    for keyword in unknown:
        raise InvalidModel(f"{model.__name__} has the unknown class keyword {keyword!r}; use one of: {known}")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The class keywords of one node or edge class."""

    label: str
    key: tuple[str, ...] = ()
    """For a node, the fields of its id; for an edge, the fields that distinguish edges between the same two nodes."""
    key_parts: tuple[str, ...] = ()
    """For an edge, the parts of the ids at its ends that distinguish it at its source, such as "target.slug"."""
    order: str | None = None
    symmetric: bool = False
    one_target: bool = False
    """For an edge, whether a source has at most one edge of the class."""
    one_source: bool = False
    """For an edge, whether a target has at most one edge of the class."""
    discriminator: str | None = None
    """For a node, what tells the subclasses of its head apart: a field, or the layout's type attribute."""
    head: type[Any] | None = None
    """For a node of a family, the class whose label and keys all classes of the family have."""


def refuse_unread(entity: BaseModel, *names: str) -> None:
    """Raises `NotRead` if an instance was read without one of these fields."""
    if ONLY_READ not in entity.__dict__:
        return
    read = entity.__dict__[ONLY_READ]
    for name in names:
        if name in type(entity).model_fields and name not in entity.__dict__:
            model = type(entity).__name__
            raise NotRead(
                f"{model}.{name} was not read, because this {model} was read with only={list(read)}; add {name!r} to "
                f"that, or read the whole {model}"
            )


def read_args(entity: BaseModel) -> list[tuple[str | None, Any]]:
    """What the repr of an instance shows that was read with `only=`; empty for another."""
    values = entity.__dict__
    return [(name, values[name]) for name in type(entity).model_fields if name in values] if ONLY_READ in values else []


_ID = ("id",)
_NOT_GIVEN: Final = object()


class Node(BaseModel, metaclass=NodeMeta):
    """The base class of nodes: a pydantic model with a field `id`.

    Class keywords: `label=` names the class in keys; the default is the class name in upper snake case.
    `key=("owner", "name")` makes these fields the id instead of `id`; the id is then the tuple of their values.
    `discriminator="kind"` makes the class the head of a family: its subclasses have its keys, and the field `kind`
    tells them apart.
    """

    model_config = _MODEL_CONFIG
    __declaration__: ClassVar[Declaration]

    if TYPE_CHECKING:

        def __same__(self, other: Self, /) -> Self: ...

    else:
        # Type checkers would take any name for a field.
        def __getattr__(self, name: str) -> Any:
            refuse_unread(self, name)
            return super().__getattr__(name)

    def __init_subclass__(
        cls,
        *,
        label: str | None = None,
        key: Sequence[str] | None = None,
        discriminator: str | None = None,
        **config: Unpack[ConfigDict],
    ) -> None:
        _refuse_keywords(cls, config, "label, key, discriminator")
        super().__init_subclass__()
        base = getattr(cls, "__declaration__", Declaration("", _ID))
        cls.__declaration__ = Declaration(
            label=_upper_snake(cls.__name__) if label is None else label,
            key=base.key if key is None else (key,) if isinstance(key, str) else tuple(key),
            discriminator=base.discriminator if discriminator is None else discriminator,
            head=base.head if discriminator is None else cls,
        )

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Computed fields of an instance that was read in part cannot be computed.
        return read_args(self) or super().__repr_args__()

    def _repr_html_(self) -> str:
        return notebooks.entity_html(self)

    def before_put(self) -> None:
        """Does nothing; override it to set fields before an instance is written as a whole.

        `put`, `add`, `put_many`, `connect` and the same in transactions call it once, before they check anything, and
        so does an `upsert` that makes a new one. `update` has no instance, and does not call it.
        """

    def after_load(self) -> None:
        """Does nothing; override it to set private attributes of an instance that was made from a stored item.

        It may not change fields: validators and `model_post_init` can, which also run for new instances.
        """

    @classmethod
    def ref(cls, id: Any = _NOT_GIVEN, /, **key: Any) -> Ref[Self]:
        """Returns a ref to the node with this id, or with these key fields. Calls that take a node take a ref too."""
        names = _id_names(cls)
        if id is not _NOT_GIVEN and not key:
            return Ref(cls, tuple(id) if isinstance(id, list) else id)
        if id is not _NOT_GIVEN:
            raise InvalidKey(f"ref takes the id of a {cls.__name__} or its key fields by name; pass only one of them")
        if set(key) != set(names):
            raise InvalidKey(
                f"the id of a {cls.__name__} is {id_spelled(names)}, got {id_spelled(tuple(key))}; pass each of them"
            )
        return Ref(cls, _id_in(cls, key))


class Ranked(RootModel[tuple[ValueT, Any]], Generic[ValueT]):
    """One of the greatest values that a `Top` shows, and whose it is: `Annotated[list[Ranked[Decimal]], Top(…)]`.

    It is stored as a list of both.
    """

    @property
    def value(self) -> ValueT:
        return self.root[0]

    @property
    def id(self) -> Any:
        """The id of the node at the far end of the edge that has the value."""
        return self.root[1]

    @property
    def ref(self) -> Ref[Any]:
        """Stands for that node, wherever a node is taken."""
        model = self.__dict__.get(_RANKED_MODEL)
        if model is None:
            raise InvalidModel("this Ranked was not read from a graph, so the class of its node is not known")
        return Ref(model, self.id)

    def _bind(self, model: type[Any], id: Any) -> None:
        """Notes of which class the node is, and its id as that class has it; the reader of a graph calls this."""
        self.__dict__.update({"root": (self.value, id), _RANKED_MODEL: model})

    def __repr__(self) -> str:
        return f"Ranked(value={self.value!r}, id={self.id!r})"

    __str__ = __repr__


_ID_WORDS = {"str": "a valid string", "int": "a valid integer", "uuid": "a valid UUID"}
"""What ids of a type are, in the words of pydantic's messages."""


class End(Generic[NodeT]):
    """The type of `source` and `target`: it holds an id, and accepts an id, a ref or a node.

    The end of several classes, such as `Post | Comment`, holds a ref.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (model,) = get_args(source) or (None,)
        if get_origin(model) in (Union, UnionType):
            return _ref_schema(get_args(model))
        fields = _key_fields(model)
        if fields is None:
            return core_schema.no_info_plain_validator_function(lambda value: _id_of(value, None))
        parts = [handler.generate_schema(_whole_hint(each)) for each in fields]
        is_single = len(parts) == 1 and not issubclass(model, Child)
        id_schema = parts[0] if is_single else core_schema.tuple_schema(parts)
        from_node = core_schema.no_info_before_validator_function(lambda value: _id_of(value, model), id_schema)
        if id_schema["type"] not in _ID_WORDS:
            return from_node
        if id_schema.keys() != {"type"}:
            # The message about a length or a pattern comes from the schema of the id, which must be the only one.
            return from_node
        # Pydantic tries the plain id first. That is the usual case, always so for stored edges, and needs no call
        # of a Python function.
        return core_schema.union_schema(
            [id_schema, from_node],
            mode="left_to_right",
            custom_error_type="node_id",
            custom_error_message=f"Input should be {_ID_WORDS[id_schema['type']]}, a {model.__name__} or its ref",
        )


class RefEnd(Generic[NodeT]):
    """The type of an end that is a base class: it holds a ref to a node of the class or of a subclass."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A graph without the subclasses reads plain ids. One with subclasses refuses them, because it knows them.
        return _ref_schema(get_args(source), takes_ids=True)


def _ref_schema(classes: tuple[Any, ...], *, takes_ids: bool = False) -> CoreSchema:
    """The schema of a ref to a node of one of these classes. It is dumped as the class's name and the id."""
    text, anything = core_schema.str_schema(), core_schema.any_schema()
    fields = {"model": core_schema.typed_dict_field(text), "id": core_schema.typed_dict_field(anything)}
    spelled = core_schema.typed_dict_schema(fields)
    return core_schema.no_info_plain_validator_function(
        partial(_ref_of, classes, takes_ids),
        json_schema_input_schema=spelled,
        serialization=core_schema.plain_serializer_function_ser_schema(
            _spelled_ref, return_schema=anything if takes_ids else spelled
        ),
    )


def _spelled_ref(ref: Any) -> Any:
    return {"model": ref.model.__name__, "id": ref.id} if isinstance(ref, Ref) else ref


def _ref_of(classes: tuple[Any, ...], takes_ids: bool, value: Any) -> Any:
    """The ref to a node of one of these classes or of their subclasses, with its id as that class has it."""
    match value:
        case Ref(model=model, id=id):
            pass
        case Node():
            model, id = type(value), node_id(value)
        case {"model": str() as name, "id": id, **rest} if not rest:
            named = [each for each in _with_subclasses(classes) if each.__name__ == name]
            if len(named) != 1:
                raise InvalidKey(f"this end of the edge must be {either(classes)}, got a {name}")
            (model,) = named
        case _ if takes_ids:
            return id_adapter(classes[0]).validate_python(value)
        case _:
            raise InvalidKey(ambiguous(classes, value))
    if not any(isinstance(each, type) and issubclass(model, each) for each in classes):
        raise InvalidKey(f"this end of the edge must be {either(classes)}, got {model.__name__} {shown(id)}")
    model = model.__declaration__.head or model
    return Ref(model, id_adapter(model).validate_python(id))


def id_adapter(model: type[Node]) -> TypeAdapter[Any]:
    """The validator of ids of a class of nodes; the class keeps it, so that it lives as long as the class."""
    found = model.__dict__.get("__id_adapter__")
    if found is None:
        found = TypeAdapter(End[model])  # type: ignore[valid-type]
        type.__setattr__(model, "__id_adapter__", found)
    return found


def _with_subclasses(classes: Sequence[Any]) -> list[type[Node]]:
    found = dict.fromkeys(each for each in classes if isinstance(each, type))
    for each in list(found):
        found.update(dict.fromkeys(_with_subclasses(each.__subclasses__())))
    return list(found)


def either(classes: Sequence[Any]) -> str:
    """Returns the names of classes as messages write them: "a Post or a Comment"."""
    return " or ".join(f"a {getattr(each, '__name__', each)}" for each in classes)


def ambiguous(classes: Sequence[Any], value: Any) -> str:
    """Returns the message that an id does not say of which class the node at an end of several classes is."""
    refs = " or ".join(f"{getattr(each, '__name__', each)}.ref(…)" for each in classes)
    return f"{shown(value)} does not say whether the node is {either(classes)}; pass the node, or {refs}"


def _key_fields(model: Any) -> list[FieldInfo] | None:
    """Returns the fields of the parts of the id of a class of nodes; None if they are not known yet."""
    if not (isinstance(model, type) and issubclass(model, Node) and model is not Node):
        return None
    key, fields = model.__declaration__.key, model.model_fields
    if any(name not in fields for name in key):
        return None
    own = [fields[name] for name in key]
    if not issubclass(model, Child):
        return own
    before = _key_fields(parent_of(model))
    return None if before is None else [*before, *own]


def _id_names(model: type[Node]) -> tuple[str, ...]:
    """Returns the fields that identify a node of a class; for a child, its parent is the first."""
    key = model.__declaration__.key
    return ("parent", *key) if issubclass(model, Child) else key


def _id_in(model: type[Node], values: Mapping[str, Any]) -> Any:
    """Returns the id that the values of fields make up."""
    key = model.__declaration__.key
    if not issubclass(model, Child):
        return values[key[0]] if len(key) == 1 else tuple([values[name] for name in key])
    parent = _id_of(values["parent"], None)
    return (*(parent if isinstance(parent, tuple) else (parent,)), *(values[name] for name in key))


def _whole_hint(info: FieldInfo) -> Any:
    hint: Any = info.annotation
    for mark in info.metadata:
        hint = Annotated[hint, mark]
    return hint


def _id_of(value: Any, expected: type[Node] | None) -> Any:
    match value:
        case Ref(model=model, id=id):
            pass
        case Node():
            model, id = type(value), node_id(value)
        case _:
            return value
    if expected is not None and model is not expected and model.__declaration__.head is not expected:
        raise InvalidKey(
            f"a {expected.__name__} is needed here, got {model.__name__} {shown(id)}; pass a {expected.__name__}, its "
            f"ref or its id"
        )
    return id


class Child(Node, Generic[ParentT]):
    """The base class of children: nodes in the partition of another node, their parent, which is part of their id.

    The class keyword `key=("at",)` names the fields that distinguish the children of one parent; the default is `id`.
    """

    if TYPE_CHECKING:
        parent: ParentEnd[ParentT]

        def __leaves__(self, source: ParentT, /) -> tuple[Self, Self]: ...

        def __arrives__(self, target: Self, /) -> tuple[Self, ParentT]: ...

        def __ends__(self) -> tuple[Self, Self | ParentT]: ...

        def __is_child__(self) -> None: ...

    else:
        parent: End[ParentT]


class Edge(BaseModel, Generic[SourceT, TargetT], metaclass=EdgeMeta):
    """The base class of edges: a pydantic model between a source and a target node, with fields of its own.

    Class keywords: `label=` names the class in keys; `key=("term",)` allows several edges between the same two
    nodes, which differ in these fields; `order="at"` returns neighbours in the order of that field;
    `symmetric=True` is for an edge without a direction, which is found from both ends. `one_target=True` says that a
    source has at most one edge of the class, and `one_source=True` that a target has.
    """

    model_config = _MODEL_CONFIG
    __declaration__: ClassVar[Declaration]

    if TYPE_CHECKING:
        source: SourceEnd[SourceT]
        target: TargetEnd[TargetT]

        def __leaves__(self, source: SourceT, /) -> tuple[Self, TargetT]: ...

        def __arrives__(self, target: TargetT, /) -> tuple[Self, SourceT]: ...

        def __ends__(self) -> tuple[Self, SourceT | TargetT]: ...

        def __is_edge__(self) -> None: ...

    else:
        source: End[SourceT]
        target: End[TargetT]

        def __getattr__(self, name: str) -> Any:
            refuse_unread(self, name)
            return super().__getattr__(name)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # Computed fields of an instance that was read in part cannot be computed.
        return read_args(self) or super().__repr_args__()

    def _repr_html_(self) -> str:
        return notebooks.entity_html(self)

    def before_put(self) -> None:
        """Does nothing; override it to set fields before an instance is written as a whole.

        `put`, `add`, `put_many`, `connect` and the same in transactions call it once, before they check anything, and
        so does an `upsert` that makes a new one. `update` has no instance, and does not call it.
        """

    def after_load(self) -> None:
        """Does nothing; override it to set private attributes of an instance that was made from a stored item.

        It may not change fields: validators and `model_post_init` can, which also run for new instances.
        """

    def __init_subclass__(
        cls,
        *,
        label: str | None = None,
        key: Sequence[str] | None = None,
        order: str | None = None,
        symmetric: bool | None = None,
        one_target: bool | None = None,
        one_source: bool | None = None,
        **config: Unpack[ConfigDict],
    ) -> None:
        _refuse_keywords(cls, config, "label, key, order, symmetric, one_target, one_source")
        super().__init_subclass__()
        base = getattr(cls, "__declaration__", Declaration(""))
        given = (*base.key, *base.key_parts) if key is None else (key,) if isinstance(key, str) else tuple(key)
        parts = tuple(name for name in given if isinstance(name, str) and name.startswith(("source.", "target.")))
        cls.__declaration__ = Declaration(
            label=_upper_snake(cls.__name__) if label is None else label,
            key=tuple(name for name in given if name not in parts),
            key_parts=parts,
            order=base.order if order is None else order,
            symmetric=base.symmetric if symmetric is None else symmetric,
            one_target=base.one_target if one_target is None else one_target,
            one_source=base.one_source if one_source is None else one_source,
        )


def has_hook(model: type[Any]) -> bool:
    """Whether a class of nodes or edges overrides `before_put`."""
    base = Node if issubclass(model, Node) else Edge
    return model.before_put is not base.before_put


def has_load_hook(model: type[Any]) -> bool:
    """Whether a class of nodes or edges overrides `after_load`."""
    base = Node if issubclass(model, Node) else Edge
    return model.after_load is not base.after_load


def field_schemas(model: type[BaseModel]) -> dict[str, Any]:
    """Returns pydantic's schema of each field; empty for a class with a validator or `__init__` for the whole model."""
    schema: Any = model.__pydantic_core_schema__
    is_plain = schema["type"] == "model" and not schema["custom_init"] and schema["schema"]["type"] == "model-fields"
    return dict(schema["schema"]["fields"]) if is_plain else {}


def node_id(node: Node) -> Any:
    """Returns the id of a node: the value of its one key field, or the tuple of their values."""
    key, values = node.__declaration__.key, node.__dict__
    try:
        return values[key[0]] if len(key) == 1 and not isinstance(node, Child) else _id_in(type(node), values)
    except KeyError as error:
        # `model_construct` makes such a node.
        raise InvalidKey(
            f"this {type(node).__name__} has no {error.args[0]}, which is part of its id; give it one"
        ) from None


def id_spelled(names: Sequence[str]) -> str:
    """Returns how an id of these fields is written in messages: "id" or "(owner, name)"."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def identity_of(entity: Node | Edge[Any, Any]) -> tuple[Any, ...]:
    """Returns the values that distinguish a node or an edge from all others of its class."""
    values = entity.__dict__
    if isinstance(entity, Node):
        return (node_id(entity),)
    return values["source"], values["target"], *(values[name] for name in entity.__declaration__.key)


def parent_of(child: type[Child[Any]]) -> Any:
    """Returns the class of nodes, or its name, that a class of children declares; None if it declares none."""
    for base in child.__mro__:
        generic = getattr(base, "__pydantic_generic_metadata__", None)
        if generic and generic["origin"] is Child:
            return generic["args"][0]
    return None


def open_end(edge: type[Edge[Any, Any]], side: str, base: type[Node]) -> None:
    """Lets an end that is declared as a base class hold refs to nodes of its subclasses."""
    info = edge.model_fields[side]
    if get_origin(info.annotation) is not RefEnd:
        info.annotation = RefEnd[base]  # type: ignore[valid-type]
        edge.model_rebuild(force=True)


def ends_of(edge: type[Edge[Any, Any]]) -> tuple[Any, ...]:
    """Returns the two node classes, or their names, that an edge class declares; empty if it declares none."""
    for base in edge.__mro__:
        generic = getattr(base, "__pydantic_generic_metadata__", None)
        if generic and generic["origin"] is Edge:
            return tuple(generic["args"])
    return ()
