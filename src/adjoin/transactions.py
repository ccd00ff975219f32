"""The methods of a transaction: they collect writes, which are applied together at the end of its block.

`Transaction` in `adjoin.graph` and `AsyncTransaction` in `adjoin.async_graph` run the plan that applies them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from adjoin.changing import Changing
from adjoin.entity_types import Entity
from adjoin.errors import InvalidRequest
from adjoin.fields import Predicate, RelativeChange
from adjoin.late import later
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import Edge, Node, Ref
from adjoin.requests import Plan
from adjoin.verbs import must_find_edges

if TYPE_CHECKING:
    from adjoin.plans import transaction as transacting
    from adjoin.plans.transaction import Buffer
    from adjoin.refs import Id, Joins
else:
    transacting = later("adjoin.plans.transaction")

E = TypeVar("E")
X = TypeVar("X", bound=Node)
Y = TypeVar("Y", bound=Node)


class TransactionVerbs:
    """The writes of a transaction: they are collected, and then applied together. DynamoDB takes 100 items at most."""

    def __init__(self, graph: Changing) -> None:
        self._graph = graph
        self._all = transacting.Buffer(graph._layout)
        self._is_open: bool | None = None
        """True inside the block, False after it, None before it."""

    def _begin(self) -> Self:
        if self._is_open is not None:
            raise InvalidRequest("this transaction has already been used; start another one with transaction()")
        self._is_open = True
        return self

    def _commit(self) -> Plan[None]:
        return self._graph._written(self._all.commit())

    @property
    def _buffer(self) -> Buffer:
        """The buffer that collects the writes. After the block, nothing would write them, so it refuses them."""
        if not self._is_open:
            raise InvalidRequest(
                "a transaction takes writes only inside its block; use it as with graph.transaction() as t: t.put(…)"
            )
        return self._all

    def put(self, entity: Entity, *, only_if: Predicate | None = None, if_version: IfVersion = OWN_VERSION) -> None:
        """Writes a node or an edge. It replaces a stored one with the same key.

        The transaction is cancelled if `only_if` does not hold, or if the class has a `Version()` and the stored
        version is not that of the instance (or not `if_version`).
        """
        self._buffer.put(entity, only_if, if_version)

    def add(self, entity: Entity) -> None:
        """Writes a new node or edge. The transaction is cancelled if one with the same key is stored."""
        self._buffer.add(entity)

    def update(
        self,
        what: type[Any] | Entity | Ref[Any],
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        if_version: IfVersion = OWN_VERSION,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> None:
        """Changes the named fields of a node or an edge: a class and an id, or source and target; a ref or an instance.

        The transaction is cancelled if the node or edge does not exist, if `only_if` does not hold, or if its version
        is not `if_version`; by default that of an instance whose class has a `Version()`.
        """
        self._buffer.update(self._graph._changed("update", what, given, changes, if_version, only_if))

    def upsert(
        self,
        what: type[Any] | Ref[Any],
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> None:
        """Changes the named fields of a node or an edge, or makes it with them.

        The transaction is cancelled if `only_if` does not hold.
        """
        self._buffer.upsert(self._graph._changed("upsert", what, given, changes, None, only_if))

    def connect(
        self,
        model: type[Joins[X, Y, E]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        only_if: Predicate | None = None,
        **fields: Any,
    ) -> E:
        """Creates an edge between two nodes, and returns it.

        The transaction is cancelled if one of the nodes does not exist, if the edge already exists, or if `only_if`
        does not hold for the nodes as they are stored before the transaction: `field("target.seats") > 0`. A node that
        the same transaction writes counts as existing.
        """
        made = self._graph._made(model, source, target, fields)
        self._buffer.connect(made, only_if)
        connected: E = made
        return connected

    def disconnect(
        self,
        model: type[Joins[X, Y, Any]],
        source: X | Ref[X] | Id,
        target: Y | Ref[Y] | Id,
        /,
        *,
        if_version: int | None = None,
        only_if: Predicate | None = None,
        **key: Any,
    ) -> None:
        """Deletes an edge.

        The transaction is cancelled if the stored edge has another version than `if_version`, or if `only_if` does not
        hold for it.
        """
        self._buffer.disconnect(*self._graph._to_disconnect(model, source, target, key, if_version, only_if))

    def delete(
        self,
        what: type[Node] | Entity | Ref[Any],
        id: Id | Node | Ref[Any] | None = None,
        *,
        if_version: IfVersion = OWN_VERSION,
        only_if: Predicate | None = None,
        edges: str = "all",
    ) -> None:
        """Deletes a node with all its edges, or one edge. The edges are looked up when the transaction is committed.

        The transaction is cancelled if the class has a `Version()` and the stored version is not that of the instance
        (or not `if_version`), or if it is stored and `only_if` does not hold for it. `edges="found"` leaves edges that
        neither keys nor indexes can find.
        """
        must_find = must_find_edges(edges)
        if isinstance(what, Edge):
            self._buffer.disconnect(*self._graph._edge_to_delete(what, if_version, only_if), call="delete")
            return
        kind, id, lock = self._graph._to_delete(what, id, if_version, only_if)
        self._buffer.delete(kind.whole, id, lock, must_find=must_find)
