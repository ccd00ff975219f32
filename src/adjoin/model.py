"""What people declare: nodes, edges, and marks on their fields.

A class only records what it was told here. Whether the declarations fit together is checked by
`adjoin.schema` when a graph opens, so that classes may be declared in any order. Keys, tables and
requests do not exist at this level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    get_args,
)

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from adjoin.errors import InvalidKey, InvalidModel

NodeT = TypeVar("NodeT", bound="Node")
SourceT = TypeVar("SourceT", bound="Node")
TargetT = TypeVar("TargetT", bound="Node")

AS_READ = "adjoin:as_read"
"""Where a node that was read has what was maintained then, to tell it from values that somebody sets; in its
`__dict__`, as a cached property would be, so that comparing, copying and dumping it know nothing of that."""

WHOSE = "adjoin:whose"
"""Under which that also says as which node or edge it was read; a copy of it with another id is not that one."""


class Own(Enum):
    """What `if_version` is where nothing is given: the version that the instance itself has."""

    VERSION = "version"


OWN_VERSION: Final = Own.VERSION
IfVersion: TypeAlias = int | Literal[Own.VERSION] | None
"""A version to compare with, None to overwrite whatever there is, or the instance's own."""

_MODEL_CONFIG = ConfigDict(populate_by_name=True, validate_assignment=True)


def _upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def _refuse_keywords(model: type, unknown: Mapping[str, Any], known: str) -> None:
    """Pydantic takes its own keywords out before; what is left is nobody's."""
    for keyword in unknown:
        raise InvalidModel(
            f"{model.__name__} has the class keyword {keyword!r}, which means nothing; there are {known}"
        )


@dataclass(frozen=True, slots=True)
class Declaration:
    """The class keywords of one node or edge class."""

    label: str
    key: tuple[str, ...] = ()
    order: str | None = None
    symmetric: bool = False


@dataclass(frozen=True, slots=True)
class Ref(Generic[NodeT]):
    """Stands for a node without loading it."""

    model: type[NodeT]
    id: Any

    def __str__(self) -> str:
        return f"{self.model.__name__}({self.id!r})"


class Node(BaseModel):
    """A node type: a pydantic model with an `id`.

    `label=` names the type in keys; without it, it is the class name in upper snake case.
    """

    model_config = _MODEL_CONFIG
    __declaration__: ClassVar[Declaration]

    def __init_subclass__(cls, *, label: str | None = None, **config: Unpack[ConfigDict]) -> None:
        _refuse_keywords(cls, config, "label")
        super().__init_subclass__()
        cls.__declaration__ = Declaration(label=_upper_snake(cls.__name__) if label is None else label)

    @classmethod
    def ref(cls, id: Any) -> Ref[Self]:
        """A stand-in for the node of that id, wherever a node is taken."""
        return Ref(cls, id)


class End(Generic[NodeT]):
    """The type of an edge's end: an id, given as an id, a ref or a node."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (model,) = get_args(source) or (None,)
        if not (isinstance(model, type) and issubclass(model, Node) and "id" in model.model_fields):
            return core_schema.no_info_plain_validator_function(lambda value: _id_of(value, None))
        field = model.model_fields["id"]
        hint: Any = field.annotation
        for mark in field.metadata:
            hint = Annotated[hint, mark]
        id_schema = handler.generate_schema(hint)
        from_node = core_schema.no_info_before_validator_function(lambda value: _id_of(value, model), id_schema)
        if id_schema["type"] not in ("str", "int", "uuid"):
            return from_node
        # The first choice spares ids, the usual case and the one for stored edges, a Python call.
        return core_schema.union_schema([id_schema, from_node], mode="left_to_right")


def _id_of(value: Any, expected: type[Node] | None) -> Any:
    match value:
        case Ref(model=model, id=id):
            pass
        case Node():
            model, id = type(value), node_id(value)
        case _:
            return value
    if expected is not None and model is not expected:
        raise InvalidKey(
            f"{model.__name__} {id!r} cannot be an end where a {expected.__name__} belongs; "
            f"pass a {expected.__name__}, its ref or its id"
        )
    return id


class Edge(BaseModel, Generic[SourceT, TargetT]):
    """An edge type: a pydantic model between two nodes, with typed attributes of its own.

    Class keywords: `label=`; `key=("term",)` for several edges between one pair, told apart by
    fields; `order="at"` for neighbours in that order; `symmetric=True` for an edge that is the same
    from both ends.
    """

    model_config = _MODEL_CONFIG
    __declaration__: ClassVar[Declaration]

    if TYPE_CHECKING:
        source: Any
        target: Any
    else:
        source: End[SourceT]
        target: End[TargetT]

    def __init_subclass__(
        cls,
        *,
        label: str | None = None,
        key: Sequence[str] | None = None,
        order: str | None = None,
        symmetric: bool | None = None,
        **config: Unpack[ConfigDict],
    ) -> None:
        _refuse_keywords(cls, config, "label, key, order, symmetric")
        super().__init_subclass__()
        base = getattr(cls, "__declaration__", Declaration(""))
        cls.__declaration__ = Declaration(
            label=_upper_snake(cls.__name__) if label is None else label,
            key=base.key if key is None else (key,) if isinstance(key, str) else tuple(key),
            order=base.order if order is None else order,
            symmetric=base.symmetric if symmetric is None else symmetric,
        )


@dataclass(frozen=True, slots=True)
class Indexed:
    """Marks a field by which `find` finds nodes or edges; one that is None is in no index."""


@dataclass(frozen=True, slots=True)
class Unique:
    """Marks a field of a node whose value no other node of the class may have; `get` finds by it."""


@dataclass(frozen=True, slots=True)
class Version:
    """Marks the int field that each write counts up; what has another by now is neither replaced nor deleted."""


@dataclass(frozen=True, slots=True)
class Expires:
    """Marks the datetime field after which DynamoDB may remove the item (its time to live)."""


def field_schemas(model: type[BaseModel]) -> dict[str, Any]:
    """Pydantic's own schema of each field; empty for a class that validates as a whole, in a way of its own."""
    schema: Any = model.__pydantic_core_schema__
    is_plain = schema["type"] == "model" and not schema["custom_init"] and schema["schema"]["type"] == "model-fields"
    return dict(schema["schema"]["fields"]) if is_plain else {}


def node_id(node: Node) -> Any:
    """The id of a node; `Node` itself leaves the field to its subclasses."""
    return node.__dict__["id"]


def identity_of(entity: Node | Edge[Any, Any]) -> tuple[Any, ...]:
    """What tells a node or an edge from all others of its class."""
    values = entity.__dict__
    if isinstance(entity, Node):
        return (values["id"],)
    return values["source"], values["target"], *(values[name] for name in entity.__declaration__.key)


def ends_of(edge: type[Edge[Any, Any]]) -> tuple[Any, ...]:
    """What an edge class was told it joins: two classes or names of classes, or nothing."""
    for base in edge.__mro__:
        generic = getattr(base, "__pydantic_generic_metadata__", None)
        if generic and generic["origin"] is Edge:
            return tuple(generic["args"])
    return ()
