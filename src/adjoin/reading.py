"""The methods of a graph that read nodes and edges by their ids.

`ReadingById` checks the arguments of each call and makes its plan, once for both graphs. `Reads` and `AsyncReads` run
the plans; `Graph` and `AsyncGraph` inherit from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pydantic import BaseModel

from adjoin.entity_types import Entity, EntityType, NodeType
from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.expressions import Condition
from adjoin.fields import FieldReference
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans.read import edge, get, get_by, get_many, get_together, some_fields
from adjoin.requests import Plan
from adjoin.values import Item
from adjoin.verbs import Verbs

if TYPE_CHECKING:
    from adjoin.refs import Id, Joins

T = TypeVar("T")
N = TypeVar("N", bound=Node)
# Nodes and edges.
A = TypeVar("A", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)
D = TypeVar("D", bound=BaseModel)
E = TypeVar("E")
X = TypeVar("X", bound=Node)
Y = TypeVar("Y", bound=Node)


class ReadingById(Verbs):
    """What both graphs share: each call as a plan."""

    def _get(
        self,
        what: Any,
        id: Any,
        unique: dict[str, Any],
        consistent: bool | None,
        only: Iterable[str | FieldReference[Any]] | None = None,
    ) -> Plan[Any]:
        if isinstance(what, Ref | Node):
            if id is not None or unique:
                raise InvalidValue(f"get takes {shown(what)} alone, because it says which node; leave out the others")
            what, id = (what.model, what.id) if isinstance(what, Ref) else (type(what), node_id(what))
        kind = self._schema.node(what)
        some = some_fields(kind, only)
        if not unique:
            if id is None:
                raise InvalidValue(f"get needs the id of the {kind.name}{_or_by(kind)}; pass it")
            return get(self._layout, kind, kind.id(id), self._consistency(consistent), some)
        if id is not None or len(unique) > 1:
            raise InvalidValue(f"get finds a {kind.name} by its id or by one unique field; pass only one of them")
        ((name, value),) = kind.by_field(unique).items()
        # Raises for a name that is not a field at all, with the closest one.
        kind.attribute(name)
        if name not in kind.unique:
            raise InvalidKey(
                f"{kind.name}.{name} is not unique, so several nodes may have this value; mark it with Unique(), or "
                f"use find"
            )
        return get_by(self._layout, kind, name, kind.coerced(name, value), self._consistency(consistent), some)

    def _get_many(
        self,
        model: type[N],
        ids: Iterable[Any],
        consistent: bool | None,
        only: Iterable[str | FieldReference[Any]] | None = None,
    ) -> Plan[list[N | None]]:
        if not isinstance(ids, Iterable):
            raise InvalidValue(f"get_many takes a list of ids, got {shown(ids)}; use get for a single id")
        kind = self._schema.node(model)
        return get_many(self._layout, kind, ids, self._consistency(consistent), some_fields(kind, only))

    def _edge(
        self,
        model: type[Any],
        source: Any,
        target: Any,
        key: dict[str, Any],
        consistent: bool | None,
        only: Iterable[str | FieldReference[Any]] | None = None,
    ) -> Plan[Any]:
        parts = self._edge_parts(model, source, target, key)
        return edge(self._layout, *parts, self._consistency(consistent), some_fields(parts[0], only))

    def _get_together(self, entities: tuple[Any, ...]) -> Plan[tuple[Any, ...]]:
        if not entities:
            raise InvalidValue("get_together needs something to read; pass refs, nodes or edges")
        wanted = [self._key_of(each) for each in entities]
        return tuple((yield from get_together(self._layout, wanted)))

    def _key_of(self, entity: Any) -> tuple[EntityType, Item, Condition | None]:
        """The class and the key of a node or an edge, and the condition that its ends are these."""
        match entity:
            case Ref(model=model, id=id):
                kind = self._schema.node(model)
                return kind, self._layout.node_key(kind, kind.id(id)), None
            case Node():
                return self._key_of(Ref(type(entity), node_id(entity)))
            case Edge():
                edge_kind, source, target, fields, _ = self._edge_to_delete(entity, None)
                key = self._layout.edge_key(edge_kind, source, target, fields)
                return edge_kind, key, self._layout.has_ends(edge_kind, source, target)
        raise InvalidValue(
            f"get_together takes refs, nodes and edges, got {shown(entity)}; pass Model.ref(id) for an id"
        )


def _or_by(kind: NodeType) -> str:
    return f" or its {' or '.join(kind.unique)}" if kind.unique else ""


class Reads(ReadingById):
    """These methods of `Graph`."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    def get(
        self,
        model: type[N] | Ref[N] | N,
        id: Id | Node | Ref[Any] | None = None,
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
        **unique: Any,
    ) -> N | None:
        """Returns the node with this id, or with this value of a unique field (`email="…"`); None if none exists.

        Pass a class and an id, or a ref, or a node to read it again. `only` names the fields that are read; others
        raise `NotRead` if they are used. `consistent` overrides the default of the graph for this read.
        """
        found: N | None = self._run(self._get(model, id, unique, consistent, only))
        return found

    def get_many(
        self,
        model: type[N],
        ids: Iterable[Id | Node | Ref[Any]],
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
    ) -> list[N | None]:
        """Returns the nodes with these ids in the same order, with None for each that does not exist.

        `only` names the fields that are read; others raise `NotRead` if they are used.
        """
        return self._run(self._get_many(model, ids, consistent, only))

    def edge(
        self,
        model: type[Joins[X, Y, E]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
        **key: Any,
    ) -> E | None:
        """Returns the edge between two nodes, or None if it does not exist.

        `source` and `target` are nodes, refs or ids. If the class has key fields, pass them by name: they
        distinguish parallel edges. `only` names the fields that are read; others raise `NotRead` if they are used.
        """
        found: E | None = self._run(self._edge(model, source, target, key, consistent, only))
        return found

    @overload
    def get_together(self, first: Ref[A] | A, /) -> tuple[A | None]: ...

    @overload
    def get_together(self, first: Ref[A] | A, second: Ref[B] | B, /) -> tuple[A | None, B | None]: ...

    @overload
    def get_together(
        self, first: Ref[A] | A, second: Ref[B] | B, third: Ref[C] | C, /
    ) -> tuple[A | None, B | None, C | None]: ...

    @overload
    def get_together(
        self, first: Ref[A] | A, second: Ref[B] | B, third: Ref[C] | C, fourth: Ref[D] | D, /
    ) -> tuple[A | None, B | None, C | None, D | None]: ...

    @overload
    def get_together(self, *entities: Ref[Any] | Entity) -> tuple[Any, ...]: ...

    def get_together(self, *entities: Any) -> tuple[Any, ...]:
        """Returns these nodes and edges, all as they were at one instant, with None for each that did not exist.

        Pass refs, nodes and edges, at most 100. It is one request, at double the cost of strongly consistent reads.
        Raises `TransactionCanceled`, which is retryable, if one of them was being written.
        """
        return self._run(self._get_together(entities))


class AsyncReads(ReadingById):
    """The same methods of `AsyncGraph`."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    async def get(
        self,
        model: type[N] | Ref[N] | N,
        id: Id | Node | Ref[Any] | None = None,
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
        **unique: Any,
    ) -> N | None:
        """Returns the node with this id, or with this value of a unique field (`email="…"`); None if none exists.

        Pass a class and an id, or a ref, or a node to read it again. `only` names the fields that are read; others
        raise `NotRead` if they are used. `consistent` overrides the default of the graph for this read.
        """
        found: N | None = await self._run(self._get(model, id, unique, consistent, only))
        return found

    async def get_many(
        self,
        model: type[N],
        ids: Iterable[Id | Node | Ref[Any]],
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
    ) -> list[N | None]:
        """Returns the nodes with these ids in the same order, with None for each that does not exist.

        `only` names the fields that are read; others raise `NotRead` if they are used.
        """
        return await self._run(self._get_many(model, ids, consistent, only))

    async def edge(
        self,
        model: type[Joins[X, Y, E]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        only: Iterable[str | FieldReference[Any]] | None = None,
        consistent: bool | None = None,
        **key: Any,
    ) -> E | None:
        """Returns the edge between two nodes, or None if it does not exist.

        `source` and `target` are nodes, refs or ids. If the class has key fields, pass them by name: they
        distinguish parallel edges. `only` names the fields that are read; others raise `NotRead` if they are used.
        """
        return await self._run(self._edge(model, source, target, key, consistent, only))

    @overload
    async def get_together(self, first: Ref[A] | A, /) -> tuple[A | None]: ...

    @overload
    async def get_together(self, first: Ref[A] | A, second: Ref[B] | B, /) -> tuple[A | None, B | None]: ...

    @overload
    async def get_together(
        self, first: Ref[A] | A, second: Ref[B] | B, third: Ref[C] | C, /
    ) -> tuple[A | None, B | None, C | None]: ...

    @overload
    async def get_together(
        self, first: Ref[A] | A, second: Ref[B] | B, third: Ref[C] | C, fourth: Ref[D] | D, /
    ) -> tuple[A | None, B | None, C | None, D | None]: ...

    @overload
    async def get_together(self, *entities: Ref[Any] | Entity) -> tuple[Any, ...]: ...

    async def get_together(self, *entities: Any) -> tuple[Any, ...]:
        """Returns these nodes and edges, all as they were at one instant, with None for each that did not exist.

        Pass refs, nodes and edges, at most 100. It is one request, at double the cost of strongly consistent reads.
        Raises `TransactionCanceled`, which is retryable, if one of them was being written.
        """
        return await self._run(self._get_together(entities))
