"""The methods of a graph that read nodes and edges by their ids.

`ReadingById` checks the arguments of each call and makes its plan, once for both graphs. `Reads` and `AsyncReads` run
the plans; `Graph` and `AsyncGraph` inherit from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar, overload

from adjoin.entity_types import AnyEdge, NodeType
from adjoin.errors import InvalidKey, InvalidValue, shown
from adjoin.model import Node, Ref, node_id
from adjoin.plans.read import edge, get, get_by, get_many
from adjoin.requests import Plan
from adjoin.verbs import Verbs

T = TypeVar("T")
N = TypeVar("N", bound=Node)
E = TypeVar("E", bound=AnyEdge)


class ReadingById(Verbs):
    """What both graphs share: each call as a plan."""

    def _get(self, what: Any, id: Any, unique: dict[str, Any], consistent: bool | None) -> Plan[Any]:
        if isinstance(what, Ref | Node):
            if id is not None or unique:
                raise InvalidValue(f"get takes {shown(what)} alone, because it says which node; leave out the others")
            what, id = (what.model, what.id) if isinstance(what, Ref) else (type(what), node_id(what))
        kind = self._schema.node(what)
        if not unique:
            if id is None:
                raise InvalidValue(f"get needs the id of the {kind.name}{_or_by(kind)}; pass it")
            return get(self._layout, kind, kind.id(id), self._consistency(consistent))
        if id is not None or len(unique) > 1:
            raise InvalidValue(f"get finds a {kind.name} by its id or by one unique field; pass only one of them")
        ((name, value),) = unique.items()
        # Raises for a name that is no field at all, with the closest one.
        kind.attribute(name)
        if name not in kind.unique:
            raise InvalidKey(
                f"{kind.name}.{name} is not unique, so several nodes may have this value; mark it with Unique(), or "
                f"use find"
            )
        return get_by(self._layout, kind, name, kind.coerced(name, value), self._consistency(consistent))

    def _get_many(self, model: type[N], ids: Iterable[Any], consistent: bool | None) -> Plan[list[N | None]]:
        if not isinstance(ids, Iterable):
            raise InvalidValue(f"get_many takes a list of ids, got {shown(ids)}; use get for a single id")
        return get_many(self._layout, self._schema.node(model), ids, self._consistency(consistent))

    def _edge(
        self, model: type[E], source: Any, target: Any, key: dict[str, Any], consistent: bool | None
    ) -> Plan[E | None]:
        return edge(self._layout, *self._edge_parts(model, source, target, key), self._consistency(consistent))


def _or_by(kind: NodeType) -> str:
    return f" or its {' or '.join(kind.unique)}" if kind.unique else ""


class Reads(ReadingById):
    """These methods of `Graph`."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    @overload
    def get(self, model: type[N], id: Any = None, *, consistent: bool | None = None, **unique: Any) -> N | None: ...

    @overload
    def get(self, node: Ref[N] | N, /, *, consistent: bool | None = None) -> N | None: ...

    def get(self, model: Any, id: Any = None, *, consistent: bool | None = None, **unique: Any) -> Any:
        """Returns the node with this id, or with this value of a unique field (`email="…"`); None if none exists.

        Pass a class and an id, or a ref, or a node to read it again. `consistent` overrides the default of the graph
        for this read.
        """
        return self._run(self._get(model, id, unique, consistent))

    def get_many(self, model: type[N], ids: Iterable[Any], *, consistent: bool | None = None) -> list[N | None]:
        """Returns the nodes with these ids in the same order, with None for each that does not exist."""
        return self._run(self._get_many(model, ids, consistent))

    def edge(
        self, model: type[E], source: Any, target: Any, /, *, consistent: bool | None = None, **key: Any
    ) -> E | None:
        """Returns the edge between two nodes, or None if it does not exist.

        `source` and `target` are nodes, refs or ids. If the class has key fields, pass them by name: they
        distinguish parallel edges.
        """
        return self._run(self._edge(model, source, target, key, consistent))


class AsyncReads(ReadingById):
    """The same methods of `AsyncGraph`."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    @overload
    async def get(
        self, model: type[N], id: Any = None, *, consistent: bool | None = None, **unique: Any
    ) -> N | None: ...

    @overload
    async def get(self, node: Ref[N] | N, /, *, consistent: bool | None = None) -> N | None: ...

    async def get(self, model: Any, id: Any = None, *, consistent: bool | None = None, **unique: Any) -> Any:
        """Returns the node with this id, or with this value of a unique field (`email="…"`); None if none exists.

        Pass a class and an id, or a ref, or a node to read it again. `consistent` overrides the default of the graph
        for this read.
        """
        return await self._run(self._get(model, id, unique, consistent))

    async def get_many(self, model: type[N], ids: Iterable[Any], *, consistent: bool | None = None) -> list[N | None]:
        """Returns the nodes with these ids in the same order, with None for each that does not exist."""
        return await self._run(self._get_many(model, ids, consistent))

    async def edge(
        self, model: type[E], source: Any, target: Any, /, *, consistent: bool | None = None, **key: Any
    ) -> E | None:
        """Returns the edge between two nodes, or None if it does not exist.

        `source` and `target` are nodes, refs or ids. If the class has key fields, pass them by name: they
        distinguish parallel edges.
        """
        return await self._run(self._edge(model, source, target, key, consistent))
