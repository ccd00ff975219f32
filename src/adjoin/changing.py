"""The methods of a graph that change fields of a node or an edge.

`Changing` checks the arguments of each call and makes its plan, once for both graphs. `Changes` and `AsyncChanges` run
the plans; `Graph` and `AsyncGraph` inherit from them. A transaction takes the same arguments.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from adjoin.entity_types import Entity
from adjoin.errors import InvalidValue, shown
from adjoin.fields import Predicate, RelativeChange
from adjoin.late import later
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.requests import Plan
from adjoin.verbs import Verbs

if TYPE_CHECKING:
    from adjoin.plans import update as updating
    from adjoin.plans import upsert as upserting
    from adjoin.plans import versions
    from adjoin.plans.steps import conditions
    from adjoin.plans.steps import nested as nesting
    from adjoin.plans.update import Changed
    from adjoin.refs import Id
else:
    conditions = later("adjoin.plans.steps.conditions")
    nesting = later("adjoin.plans.steps.nested")
    updating = later("adjoin.plans.update")
    upserting = later("adjoin.plans.upsert")
    versions = later("adjoin.plans.versions")

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Changing(Verbs):
    """What both graphs share: each call as a plan."""

    def _changed(
        self,
        call: str,
        what: Any,
        ids: tuple[Any, ...],
        changes: Mapping[str, Any],
        if_version: IfVersion,
        only_if: Predicate | None,
    ) -> Changed:
        """What a call changes: the node or edge, the fields, and under which condition."""
        entity: Entity | None = None
        fields = nesting.collected(call, changes, [each for each in ids if isinstance(each, RelativeChange)])
        ids = tuple(each for each in ids if not isinstance(each, RelativeChange))
        match what:
            case type():
                model = what
            case Ref(model=model, id=id):
                ids = _alone(call, what, ids, (id,))
            case Node():
                entity, model = what, type(what)
                ids = _alone(call, what, ids, (node_id(what),))
            case Edge():
                entity, model = what, type(what)
                ids = _alone(call, what, ids, (what.source, what.target))
                fields = self._with_key(what, fields)
            case _:
                raise InvalidValue(
                    f"{call} takes a class and an id, a ref, a node or an edge, got {shown(what)}; pass one of these"
                )
        identity, rest = updating.identified(self._layout, model, ids, fields)
        if not rest and call == "update":
            raise InvalidValue(f"no field of {identity.name} was given to change; pass them by name")
        for name, value in rest.items():
            if isinstance(value, RelativeChange) and value.operator == "remove" and name in identity.kind.fields:
                # Without a stored value, a field has its default.
                rest[name] = conditions.start_of(identity.kind, name)
        for name in identity.kind.computed:
            if name in rest:
                raise InvalidValue(
                    f"{identity.kind.name}.{name} is computed by its class; change the fields that it is computed from"
                )
        return updating.Changed(identity, rest, versions.expected_version(identity.kind, entity, if_version), only_if)

    def _with_key(self, edge: Edge[Any, Any], fields: dict[str, Any]) -> dict[str, Any]:
        """Fields to change with the key fields of their edge, which tell it from others between the same nodes."""
        kind = self._schema.edge(type(edge))
        names = self._layout.key_fields(kind)
        for name in names:
            if name in fields:
                raise InvalidValue(
                    f"{name!r} of {kind.name} is its key and cannot change; put a new edge and delete this"
                )
        return {**fields, **{name: getattr(edge, name) for name in names}}

    def _update(
        self,
        what: Any,
        ids: tuple[Any, ...],
        if_version: IfVersion,
        only_if: Predicate | None,
        changes: Mapping[str, Any],
    ) -> Plan[Any]:
        return self._written(
            updating.update(self._layout, self._changed("update", what, ids, changes, if_version, only_if))
        )

    def _upsert(
        self, what: Any, ids: tuple[Any, ...], only_if: Predicate | None, changes: Mapping[str, Any]
    ) -> Plan[Any]:
        change = self._changed("upsert", what, ids, changes, None, only_if)
        return self._written(upserting.upsert(self._layout, change, upserting.new_entity(self._layout, change)))


def _alone(call: str, what: Any, given: tuple[Any, ...], ids: tuple[Any, ...]) -> tuple[Any, ...]:
    if given:
        raise InvalidValue(f"{call} takes {shown(what)} without an id, because it says which one; pass fields by name")
    return ids


class Changes(Changing):
    """These methods of `Graph`."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    def update(
        self,
        what: type[M] | Ref[M] | M,
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        if_version: IfVersion = OWN_VERSION,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node or an edge, and returns the node or edge with these changes.

        Pass a class and an id, or for an edge its source and target; or pass a ref, a node or an edge. A change is a
        new value, or is made of the stored one: `credits=field("credits") + 1`. A change inside of a field follows the
        ids: `field("address.city").set("Porto")`. An instance of a class with a `Version()` is changed only if the
        stored version is the same. `if_version` compares with another number; with None, nothing is compared. Raises
        `NotFound` if the node or edge does not exist, `ConditionFailed` if its version differs or if `only_if` does not
        hold.
        """
        changed: M = self._run(self._update(what, given, if_version, only_if, changes))
        return changed

    def upsert(
        self,
        what: type[M] | Ref[M],
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node or an edge, or makes it with these fields; returns the result.

        Pass a class and an id, or for an edge its source and target; or pass a ref. Fields without a default must be
        given. A new node or edge has the defaults of all other fields, and a change such as `visits=field("visits") +
        1` starts from the default. It does not check that the ends of an edge exist. Raises `ConditionFailed` if
        `only_if` does not hold for what is stored, also if nothing is.
        """
        changed: M = self._run(self._upsert(what, given, only_if, changes))
        return changed


class AsyncChanges(Changing):
    """The same methods of `AsyncGraph`."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    async def update(
        self,
        what: type[M] | Ref[M] | M,
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        if_version: IfVersion = OWN_VERSION,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node or an edge, and returns the node or edge with these changes.

        Pass a class and an id, or for an edge its source and target; or pass a ref, a node or an edge. A change is a
        new value, or is made of the stored one: `credits=field("credits") + 1`. A change inside of a field follows the
        ids: `field("address.city").set("Porto")`. An instance of a class with a `Version()` is changed only if the
        stored version is the same. `if_version` compares with another number; with None, nothing is compared. Raises
        `NotFound` if the node or edge does not exist, `ConditionFailed` if its version differs or if `only_if` does not
        hold.
        """
        changed: M = await self._run(self._update(what, given, if_version, only_if, changes))
        return changed

    async def upsert(
        self,
        what: type[M] | Ref[M],
        /,
        *given: Id | Node | Ref[Any] | RelativeChange,
        only_if: Predicate | None = None,
        **changes: Any,
    ) -> M:
        """Changes the named fields of a node or an edge, or makes it with these fields; returns the result.

        Pass a class and an id, or for an edge its source and target; or pass a ref. Fields without a default must be
        given. A new node or edge has the defaults of all other fields, and a change such as `visits=field("visits") +
        1` starts from the default. It does not check that the ends of an edge exist. Raises `ConditionFailed` if
        `only_if` does not hold for what is stored, also if nothing is.
        """
        changed: M = await self._run(self._upsert(what, given, only_if, changes))
        return changed
