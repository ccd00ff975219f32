"""What each call of a graph means: this module checks its arguments and makes its plan.

Nothing runs here. `Graph` and `AsyncGraph` inherit from `Verbs` and run the plans, one by blocking
and the other by awaiting.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from adjoin.entity_types import AnyEdge, EdgeType, Entity, EntityType
from adjoin.errors import AdjoinError, InvalidRequest, InvalidValue, shown
from adjoin.expressions import Not, Or, all_of
from adjoin.field_types import problems_in
from adjoin.fields import FieldReference, Predicate, field_name
from adjoin.late import later
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import Layout
from adjoin.marks import OWN_VERSION, IfVersion
from adjoin.model import Edge, Node, Ref, node_id
from adjoin.plans.declared import DeclaredDifference, differences, open_record, record_indexes
from adjoin.plans.read import Question
from adjoin.plans.shards import learn_number, number_of, open_shard_numbers, raise_shards, read_shard_maps, written
from adjoin.plans.table import drop_table, open_table
from adjoin.requests import DescribeTable, Plan, Request, TableResponse
from adjoin.values import check_range

if TYPE_CHECKING:
    from adjoin import cost as costs
    from adjoin import meters, notebooks, queries, watching
    from adjoin.cost import Counting, Explanation, FanOut
    from adjoin.layouts.ranges import Range
    from adjoin.meters import Meter
    from adjoin.plans import copies as fan_outs
    from adjoin.plans import counted_deletion, key_search, refusals, versions
    from adjoin.plans import find as finding
    from adjoin.plans import removal as removing
    from adjoin.plans import scan as scanning
    from adjoin.plans import write as writing
    from adjoin.plans.counting import contributions
    from adjoin.plans.find import Search
    from adjoin.plans.key_search import KeySearch
    from adjoin.plans.maintenance import expected as expectations
    from adjoin.plans.maintenance import health as healths
    from adjoin.plans.maintenance import ranks, standing
    from adjoin.plans.maintenance import stream as streams
    from adjoin.plans.maintenance.health import Health
    from adjoin.plans.maintenance.stream import Daemon
    from adjoin.plans.migrating import moving as movings
    from adjoin.plans.migrating import passes, translating
    from adjoin.plans.migrating import planning as plannings
    from adjoin.plans.migrating.completing import Fill
    from adjoin.plans.migrating.moving import Moving
    from adjoin.plans.migrating.passes import Migration
    from adjoin.plans.migrating.planning import MigrationPlan
    from adjoin.plans.migrating.translating import Translation
    from adjoin.plans.removal import EdgeToDelete, NodeToDelete
    from adjoin.plans.scan import ScanQuestion
    from adjoin.plans.steps import conditions
    from adjoin.queries import Context
    from adjoin.watching import Watch, WatchedRound
else:
    costs = later("adjoin.cost")
    meters = later("adjoin.meters")
    notebooks = later("adjoin.notebooks")
    fan_outs = later("adjoin.plans.copies")
    counted_deletion = later("adjoin.plans.counted_deletion")
    contributions = later("adjoin.plans.counting.contributions")
    finding = later("adjoin.plans.find")
    refusals = later("adjoin.plans.refusals")
    key_search = later("adjoin.plans.key_search")
    expectations = later("adjoin.plans.maintenance.expected")
    healths = later("adjoin.plans.maintenance.health")
    ranks = later("adjoin.plans.maintenance.ranks")
    standing = later("adjoin.plans.maintenance.standing")
    streams = later("adjoin.plans.maintenance.stream")
    movings = later("adjoin.plans.migrating.moving")
    passes = later("adjoin.plans.migrating.passes")
    plannings = later("adjoin.plans.migrating.planning")
    translating = later("adjoin.plans.migrating.translating")
    removing = later("adjoin.plans.removal")
    scanning = later("adjoin.plans.scan")
    conditions = later("adjoin.plans.steps.conditions")
    versions = later("adjoin.plans.versions")
    writing = later("adjoin.plans.write")
    watching = later("adjoin.watching")
    queries = later("adjoin.queries")

T = TypeVar("T")

_log = logging.getLogger("adjoin")
_STREAM_LAG = 2.0
"""Seconds by which the change stream of DynamoDB may lag behind the table."""


class Verbs(ABC):
    """The common base of both graphs: the schema, the layout, and each call as a plan."""

    def __init__(
        self,
        models: Iterable[type[Any]],
        layout: Layout | None,
        table: str | None,
        cursor_secret: str | bytes | None,
        consistent: bool,
        tenant: str | None,
    ) -> None:
        if cursor_secret is not None and not isinstance(cursor_secret, str | bytes):
            raise InvalidValue(f"cursor_secret must be text or bytes, got {shown(cursor_secret)}")
        if cursor_secret is not None and not cursor_secret:
            raise InvalidValue("cursor_secret must not be empty; pass a secret, or None for unsigned page tokens")
        self._layout: BoundLayout = bound_layout(models, layout, table, tenant)
        if self._layout.rules.rules:
            contributions.check_rules(self._layout)
            ranks.check_room(self._layout)
        self._schema = self._layout.schema
        if isinstance(cursor_secret, str):
            # Environment variables may contain lone surrogates, which UTF-8 alone refuses.
            cursor_secret = cursor_secret.encode("utf-8", "surrogatepass")
        self._secret = cursor_secret or b""
        # `_consistency` reads the default for None, so there has to be one before the argument is checked.
        self._consistent = False
        self._consistent = self._consistency(consistent)
        self._tenant = tenant
        self._clock: Callable[[], float] = time.time

    @property
    def _context(self) -> Context:
        """What a query needs; the module of queries is imported with the first one."""
        return queries.Context(self._layout, self._secret, self._run)

    @abstractmethod
    def _run(self, plan: Plan[Any]) -> Any:
        """Runs a plan and returns its result; an asynchronous graph returns an awaitable of the result."""

    def _explain(self, error: InvalidRequest) -> None:
        """Makes the message of a refused request name the node or edge that it is about."""
        refusals.explain(self._layout, error)

    def _repr_html_(self) -> str:
        kinds = self._schema.types
        rows = [(kind.name, _described(kind), ", ".join(kind.model.model_fields)) for kind in kinds]
        of = "" if self._tenant is None else f" for the tenant {self._tenant}"
        indexes = ", ".join(index.name for index in self._layout.definition.indexes)
        title = f"{type(self).__name__} in the table {self._layout.table}{of}"
        return notebooks.table_html(title, ("class", "what", "fields"), rows, [f"Indexes: {indexes or 'none'}."])

    def meter(self) -> Meter:
        """Returns a meter that counts what a block consumes: `with g.meter() as m: ...`."""
        return meters.Meter()

    def watch(
        self,
        *,
        before: Callable[[WatchedRound], object] | None = None,
        after: Callable[[WatchedRound], object] | None = None,
    ) -> Watch:
        """Returns a watch that calls functions before and after each round: `with g.watch(after=tell): ...`.

        As a meter, it is told of all graphs in its block. `start()` and `stop()` watch the whole process instead.
        """
        return watching.Watch(before, after)

    def _consistency(self, asked: bool | None) -> bool:
        if asked is None:
            return self._consistent
        if not isinstance(asked, bool):
            raise InvalidValue(f"consistent must be True, False or None, got {shown(asked)}")
        return asked

    def _open_plan(self, creates_tables: bool, *, tells: bool = True) -> Plan[None]:
        """Opens the table. `tells`: whether it logs what is declared differently from what is recorded."""
        layout = self._layout
        opened = yield from open_table(layout.definition, create=creates_tables, adding=partial(record_indexes, layout))
        # A table without an index can still be used, apart from queries by that index.
        layout.due.learn_absent(opened.absent)
        if opened.absent:
            _log.warning("the table %r lacks %s; add them with create_table()", layout.table, _named(opened.absent))
        if opened.lacks_ttl:
            _log.warning(
                "the table %r has no time to live, so items do not expire; turn it on with create_table()", layout.table
            )
        yield from open_shard_numbers(layout, is_new=opened.is_new)
        yield from read_shard_maps(layout)
        if layout.rules.declared:
            yield from standing.opened_standing(layout)
        if opened.is_new or opened.described is not None:
            yield from open_record(layout, opened.described, tells=tells)

    def _differences(self) -> Plan[list[DeclaredDifference]]:
        return differences(self._layout)

    def _migration(
        self,
        fill: Mapping[str, Fill] | None,
        drop: Iterable[str],
        finish: bool,
        units: float | None,
        segments: int,
        lags: bool,
    ) -> Migration:
        if queries.whole_number("segments", segments) > scanning.MAX_SEGMENTS:
            raise InvalidValue(f"segments must be at most {scanning.MAX_SEGMENTS}, got {shown(segments)}")
        return passes.Migration(
            self._layout,
            fill=fill,
            drop=drop,
            finish=finish,
            units=units,
            segments=segments,
            lag=_STREAM_LAG if lags else 0.0,
            clock=self._clock,
        )

    def _moving(
        self,
        into: Verbs,
        fill: Mapping[str, Fill] | None,
        drop: Iterable[str],
        finish: bool,
        units: float | None,
        segments: int,
        lags: bool,
    ) -> Moving:
        if queries.whole_number("segments", segments) > scanning.MAX_SEGMENTS:
            raise InvalidValue(f"segments must be at most {scanning.MAX_SEGMENTS}, got {shown(segments)}")
        return movings.Moving(
            self._translation(into, fill, drop),
            finish=finish,
            units=units,
            segments=segments,
            lag=_STREAM_LAG if lags else 0.0,
            clock=self._clock,
        )

    def _translation(self, into: Verbs, fill: Mapping[str, Fill] | None, drop: Iterable[str]) -> Translation:
        # In another table, dropped attributes are left out from the beginning: the old table still has them.
        field_changes, _ = plannings.field_changes_of(into._layout, fill or {}, drop, finish=True)
        return translating.Translation(self._layout, into._layout, field_changes)

    def _planned_into(self, into: Verbs, fill: Mapping[str, Fill] | None, drop: Iterable[str]) -> Plan[MigrationPlan]:
        return plannings.planned_into(self._translation(into, fill, drop))

    def _planned(self, fill: Mapping[str, Fill] | None, drop: Iterable[str]) -> Plan[MigrationPlan]:
        field_changes, removes = plannings.field_changes_of(self._layout, fill or {}, drop, finish=True)
        return plannings.planned(self._layout, field_changes, removes, sorted(self._layout.due.absent))

    def _maps_plan(self) -> Plan[None]:
        """Reads what a view of a tenant needs from an open table: shard maps, and which declarations were counted.

        It reads nothing if another view of the same tenant has just read it.
        """
        index = self._layout.overloaded
        if index is not None and any(map(index.book.is_stale, index.scopes)):
            yield from read_shard_maps(self._layout)
        if not self._layout.rules.is_told:
            yield from standing.opened_standing(self._layout)

    def _raise_shards(self, index: str, number: int) -> Plan[None]:
        queries.whole_number("number", number)
        known = number_of(self._layout, index)
        asked_at = known.clock()
        learn_number(known, (yield from raise_shards(self._layout, index, number)), asked_at)

    def _view(self, tenant: str) -> Self:
        """Returns the same graph for another tenant."""
        view = copy(self)
        view._tenant = tenant
        # Rules are compiled for the keys of one tenant, so they are checked for each.
        view._layout = self._layout.for_tenant(tenant)
        contributions.check_rules(view._layout)
        ranks.check_room(view._layout)
        return view

    def _drop_plan(self) -> Plan[None]:
        if self._tenant is not None:
            raise InvalidRequest(
                f"this graph belongs to the tenant {self._tenant!r}, and other tenants share its table; "
                f"drop the table through a graph without a tenant"
            )
        return drop_table(self._layout.table)

    def _search(
        self,
        model: type[Any],
        predicate: Predicate | None,
        order: str | FieldReference[Any] | tuple[str | FieldReference[Any], ...] | None,
        index: str | None,
        consistent: bool | None,
    ) -> Search:
        sought = (
            tuple(map(field_name, order)) if isinstance(order, tuple) else None if order is None else field_name(order)
        )
        names = sought if isinstance(sought, tuple) else (sought,)
        if sought is not None and not (names and all(isinstance(name, str) for name in names)):
            raise InvalidValue(f"order must be the name of a field, or a tuple of names, got {shown(order)}")
        if index is not None and not isinstance(index, str):
            raise InvalidValue(f"index must be the name of an index, got {shown(index)}")
        found = finding.search(self._layout, self._kind(model), predicate, sought, index)
        return found.reading_at(lambda index: self._index_consistency(consistent, index), self._layout)

    def _index_search(self, name: str, consistent: bool | None) -> KeySearch:
        if not isinstance(name, str):
            raise InvalidValue(f"index takes the name of an index, got {shown(name)}")
        found = key_search.index_search(self._layout, name)
        return found.with_(consistent=self._index_consistency(consistent, name))

    def _kind(self, model: type[Any]) -> EntityType:
        is_edge = isinstance(model, type) and issubclass(model, Edge)
        return self._schema.edge(model) if is_edge else self._schema.node(model)

    def _scan(
        self,
        model: type[Any] | None,
        segments: int,
        consistent: bool | None,
        progress: Callable[[int], None] | None,
    ) -> ScanQuestion:
        if queries.whole_number("segments", segments) > scanning.MAX_SEGMENTS:
            raise InvalidValue(f"segments must be at most {scanning.MAX_SEGMENTS}, got {shown(segments)}")
        _check_progress(progress)
        kind = None if model is None else self._kind(model)
        return scanning.ScanQuestion(kind, self._layout.scan(kind), segments, self._consistency(consistent), progress)

    def _sized(self, explanation: Explanation) -> Plan[Explanation]:
        """Adds to the explanation of a scan how large the table is, if the store says so."""
        if not explanation.scans:
            return explanation
        described: TableResponse
        try:
            (described,) = yield (DescribeTable(self._layout.table),)
        except AdjoinError:
            return explanation.with_table(self._layout.table, None)
        return explanation.with_table(self._layout.table, described)

    def _edge_parts(
        self, model: type[Any], source: Any, target: Any, key: dict[str, Any]
    ) -> tuple[EdgeType, Any, Any, dict[str, Any]]:
        kind = self._schema.edge(model)
        names = self._layout.key_fields(kind)
        if not names and not key:
            return kind, kind.source.id(source), kind.target.id(target), {}
        key = kind.by_field(key)
        if unknown := [name for name in key if name not in names]:
            raise InvalidValue(
                f"{unknown[0]!r} is not a key field of {kind.name}; pass only the two nodes and the key fields"
            )
        return kind, kind.source.id(source), kind.target.id(target), kind.key_values(names, key)

    def _written(self, plan: Plan[T]) -> Plan[T]:
        """Returns a plan that writes. With adaptive shards, the plan also reports its writes to the shard maps."""
        index = self._layout.overloaded
        return plan if index is None or not index.book.is_adaptive else written(self._layout, plan)

    def _put(self, entity: Entity, only_if: Predicate | None, if_version: IfVersion = OWN_VERSION) -> Plan[None]:
        return self._written(writing.put(self._layout, entity, only_if, if_version))

    def _add(self, entity: Entity) -> Plan[None]:
        return self._written(writing.add(self._layout, entity))

    def _put_many(self, entities: Iterable[Any], progress: Callable[[int], None] | None) -> Plan[int]:
        if isinstance(entities, BaseModel) or not isinstance(entities, Iterable):
            raise InvalidValue(
                f"put_many takes a list of nodes and edges, got {shown(entities)}; use put for a single one"
            )
        _check_progress(progress)
        return self._written(writing.put_many(self._layout, entities, progress))

    def _connect(
        self, model: type[Any], source: Any, target: Any, fields: dict[str, Any], only_if: Predicate | None = None
    ) -> Plan[Any]:
        made = self._made(model, source, target, fields)
        connected = yield from self._written(writing.connect(self._layout, made, only_if))
        return connected

    def _made(self, model: type[Any], source: Any, target: Any, fields: dict[str, Any]) -> Any:
        kind = self._schema.edge(model)
        if model.model_config.get("extra") != "allow":
            # Pydantic ignores unknown fields by default, so a misspelled one would be lost without this check.
            for name in fields:
                if name not in kind.attributes.values():
                    kind.attribute(name)
        for value in fields.values():
            # Before pydantic sees it: making an int of Decimal("1E+999999999") would not end.
            if isinstance(value, Decimal):
                check_range(value)
        try:
            return model.model_validate({**fields, "source": source, "target": target}, by_alias=True, by_name=True)
        except ValidationError as error:
            raise InvalidValue(f"this {kind.name} is not valid: {problems_in(error)}") from None

    def _disconnect(
        self,
        model: type[Any],
        source: Any,
        target: Any,
        key: dict[str, Any],
        if_version: int | None = None,
        only_if: Predicate | None = None,
    ) -> Plan[bool]:
        return removing.disconnect(self._layout, *self._to_disconnect(model, source, target, key, if_version, only_if))

    def _to_disconnect(
        self,
        model: type[Any],
        source: Any,
        target: Any,
        key: dict[str, Any],
        if_version: IfVersion,
        only_if: Predicate | None,
        edge: AnyEdge | None = None,
    ) -> EdgeToDelete:
        """Returns the class, the ends and the key fields of an edge, and the condition under which it is deleted."""
        parts = self._edge_parts(model, source, target, key)
        lock = versions.delete_lock(self._layout, parts[0], edge, if_version)
        return *parts, all_of(lock, conditions.delete_condition(self._layout, parts[0], only_if))

    def _edge_to_delete(
        self, edge: AnyEdge, if_version: IfVersion = OWN_VERSION, only_if: Predicate | None = None
    ) -> EdgeToDelete:
        kind = self._schema.edge(type(edge))
        key = {name: getattr(edge, name) for name in self._layout.key_fields(kind)}
        return self._to_disconnect(type(edge), edge.source, edge.target, key, if_version, only_if, edge)

    def _delete(
        self,
        what: Any,
        id: Any,
        if_version: IfVersion = OWN_VERSION,
        edges: str = "all",
        only_if: Predicate | None = None,
    ) -> Plan[bool]:
        must_find = must_find_edges(edges)
        if isinstance(what, Edge):
            return removing.disconnect(self._layout, *self._edge_to_delete(what, if_version, only_if))
        return counted_deletion.delete_one_of(
            self._layout, *self._to_delete(what, id, if_version, only_if), must_find=must_find
        )

    def _delete_many(self, entities: Iterable[Any], progress: Callable[[int], None] | None) -> Plan[int]:
        if isinstance(entities, BaseModel | Ref) or not isinstance(entities, Iterable):
            raise InvalidValue(
                f"delete_many takes a list of nodes, refs and edges, got {shown(entities)}; use delete for a single one"
            )
        _check_progress(progress)
        return removing.delete_many(self._layout, map(self._one_of_many, entities), progress)

    def _one_of_many(self, entity: Any) -> EdgeToDelete | NodeToDelete:
        if isinstance(entity, Edge):
            return self._edge_to_delete(entity)
        if not isinstance(entity, Node | Ref):
            raise InvalidValue(
                f"delete_many takes nodes, refs and edges, got {shown(entity)}; pass Model.ref(id) for an id"
            )
        return self._to_delete(entity, None)

    def _to_delete(
        self, what: Any, id: Any, if_version: IfVersion = OWN_VERSION, only_if: Predicate | None = None
    ) -> NodeToDelete:
        """Returns the class and id of a node, and the condition under which it is deleted."""
        match what:
            case type() if issubclass(what, Edge):
                raise InvalidValue(
                    f"delete takes a class of nodes, got {what.__name__}; for an edge, use "
                    f"disconnect({what.__name__}, source, target)"
                )
            case type():
                model = what
            case Ref(model=model, id=id):
                pass
            case Node():
                model, id = type(what), node_id(what)
            case _:
                raise InvalidValue(f"delete takes a class and an id, a node, a ref or an edge, got {shown(what)}")
        kind = self._schema.node(model)
        entity = what if isinstance(what, Node) else None
        lock = versions.delete_lock(self._layout, kind, entity, if_version)
        if kind.head is not None:
            # A node of another class of the family does not exist for this call, so a delete of it deletes nothing.
            told = self._layout.told_apart(kind)
            lock = lock if told is None else all_of(lock, Or((Not(self._layout.present), told)))
        return kind, kind.id(id), all_of(lock, conditions.delete_condition(self._layout, kind, only_if))

    def _countings(self, requests: Sequence[Request]) -> list[Counting]:
        return [
            costs.Counting(
                work.edge.name,
                work.fields,
                work.ledgers,
                work.ledger_bytes,
                work.checks,
                work.ranks,
                work.nodes,
                work.arrivals,
                tuple(edge.name for edge in work.above),
                work.entries,
                work.copies,
                work.sets,
                work.written_again,
            )
            for work in expectations.expected(self._layout, requests)
        ]

    def _fan_outs(self, requests: Sequence[Request]) -> list[FanOut]:
        return [
            costs.FanOut(fan.node, fan.edge.name, fan.fields, fan.index, fan.items, fan.entries, fan.others)
            for fan in fan_outs.fans(self._layout, requests)
        ]

    def _daemon(self, once: bool, every: float) -> Daemon:
        return streams.Daemon(once=once, every=every, clock=self._clock)

    def _health(self) -> Plan[Health]:
        return healths.health(self._layout, self._clock)

    def _question(self, range: Range, consistent: bool | None) -> Question:
        if consistent is None and not self._consistent:
            return Question(range)
        return Question(range, consistent=self._index_consistency(consistent, range.access.index))

    def _index_consistency(self, consistent: bool | None, name: str | None) -> bool:
        """Whether reads of the table (None) or of an index are strongly consistent."""
        is_consistent = self._consistency(consistent)
        if not is_consistent or name is None:
            return is_consistent
        index = self._layout.definition.index(name)
        is_local = index is not None and index.local
        if consistent and not is_local:
            raise InvalidValue(
                f"this query reads the index {name!r}, and DynamoDB has no consistent reads of global "
                f"indexes; leave consistent= out"
            )
        return is_local

    def _edge_type(self, model: type[Any]) -> EdgeType:
        try:
            return self._schema.edges[model]
        except (KeyError, TypeError):
            return self._schema.edge(model)

    def _out(self, model: type[Any], x: Any, consistent: bool | None) -> Question:
        end = (kind := self._edge_type(model)).source
        id = x if type(x) is end.bare_id_type else end.id(x)
        return self._question(self._layout.out(kind, id), consistent)

    def _into(self, model: type[Any], x: Any, consistent: bool | None) -> Question:
        end = (kind := self._edge_type(model)).target
        id = x if type(x) is end.bare_id_type else end.id(x)
        return self._question(self._layout.into(kind, id), consistent)

    def _children(self, x: Any, model: type[Any], consistent: bool | None) -> Question:
        kind = self._schema.node(model)
        if kind.parent is None:
            raise InvalidValue(
                f"children takes a class of children, and {kind.name} has no parent; declare it as "
                f"class {kind.name}(Child[Parent])"
            )
        return self._question(self._layout.children(kind, kind.parent.id(x)), consistent)

    def _collection(self, x: Node | Ref[Any], direction: str, consistent: bool | None) -> Question:
        if not isinstance(x, Node | Ref):
            raise InvalidValue(f"collection takes a node or a ref, got {shown(x)}; pass Model.ref(id) for an id")
        if direction not in ("out", "into"):
            raise InvalidValue(f'direction must be "out" or "into", got {shown(direction)}')
        kind = self._schema.node(type(x) if isinstance(x, Node) else x.model).whole
        return self._question(self._layout.collection(kind, kind.id(x), arriving=direction == "into"), consistent)


def _described(kind: EntityType) -> str:
    """What a class is, in a few words."""
    if isinstance(kind, EdgeType):
        return f"edge: {kind.source.name} {'–' if kind.symmetric else '→'} {kind.target.name}"
    parent = kind.end("parent")
    return "node" if parent is None else f"child of {parent.name}"


def _named(indexes: Iterable[str]) -> str:
    return f"the indexes {', '.join(map(repr, indexes))}"


def _check_progress(progress: Callable[[int], None] | None) -> None:
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress must be a function that takes a number, got {shown(progress)}")


def must_find_edges(edges: str) -> bool:
    """Whether a delete has to find all edges of its node."""
    if edges not in ("all", "found"):
        raise InvalidValue(f'edges must be "all" or "found", got {shown(edges)}')
    return edges == "all"
