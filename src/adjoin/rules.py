"""What declared aggregates and copies mean for the classes of a graph: one-hop rules.

A rule says that an attribute of each node of a class is an operation over its edges of one class. The
value that an edge adds is made of terms: one, a field of the edge, or an attribute of the node at its
far end. So an aggregate over several hops is a chain of rules, each over the attribute of the next; the
attributes in between are hidden. A recursive one has its own attribute at the far end as a term.

Pure: no items, no requests. The stream's processor, the batch job and the audit all start from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from adjoin.aggregates import Aggregate, Copy, Count, Direction, EdgeName, Immutable, Latest, Summary, Top
from adjoin.errors import InvalidModel
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate
from adjoin.schema import EdgeType, EntityType, NodeType, Schema, unknown_field

Operation: TypeAlias = Literal["sum", "min", "max", "latest", "top"]
_OPERATIONS: dict[str, Operation] = {
    "Count": "sum",
    "Sum": "sum",
    "Min": "min",
    "Max": "max",
    "Latest": "latest",
    "Top": "top",
}


@dataclass(frozen=True)
class Term:
    """One part of what an edge adds: where it comes from, and the field or attribute there."""

    at: Literal["one", "edge", "far"]
    field: str | None = None
    """The field of the edge or of the node at its far end."""
    attribute: str | None = None
    """Where it is stored there; a hidden attribute has no field."""


@dataclass(frozen=True)
class Hop:
    edge: EdgeType
    direction: Direction
    """Which way a rule looks from its node: along edges that leave it, or that arrive."""

    @property
    def near(self) -> NodeType:
        return self.edge.source if self.direction == "out" else self.edge.target

    @property
    def far(self) -> NodeType:
        return self.edge.target if self.direction == "out" else self.edge.source

    @property
    def near_end(self) -> str:
        return "source" if self.direction == "out" else "target"

    @property
    def far_end(self) -> str:
        return "target" if self.direction == "out" else "source"


@dataclass(frozen=True)
class Rule:
    """One attribute of the nodes of one class, made of their edges of one class."""

    name: str
    """Tells it from all others of a graph, in stored records too: "CUSTOMER.bills", and "CUSTOMER.bills:1" below it."""
    hop: Hop
    operation: Operation
    terms: tuple[Term, ...]
    attribute: str
    """Where the result is stored on the near node."""
    field: str | None
    """The field that shows it; None for a hidden one."""
    where: Predicate | None = None
    where_at: Literal["edge", "far"] = "edge"
    by: Term | None = None
    """What `latest` goes by."""
    k: int = 1
    is_recursive: bool = False
    in_transaction: bool = False

    @property
    def node(self) -> NodeType:
        return self.hop.near

    @property
    def pair(self) -> str | None:
        """Where a latest value is stored together with what it goes by, for rules that go on from it."""
        if self.operation != "latest" or (self.field is not None and not self.is_recursive):
            return None
        return f"adjoin:{self.name}"

    @property
    def reads_far(self) -> bool:
        """Whether a change of the node at the far end changes what an edge adds."""
        places = [term.at for term in (*self.terms, *((self.by,) if self.by else ()))]
        return "far" in places or (self.where is not None and self.where_at == "far")


@dataclass(frozen=True, eq=False)
class Account:
    """The rules that share a ledger: those of one edge class and direction that look at the same things.

    What a rule reads tells where its ledger lies: beside the edge, or beside the node at the far end, so
    that a change of that node finds everything it counts in.
    """

    hop: Hop
    reads_far: bool
    rules: tuple[Rule, ...]

    @property
    def name(self) -> str:
        return f"{self.hop.edge.label}.{self.hop.direction}" + (".far" if self.reads_far else "")

    @property
    def edge(self) -> EdgeType:
        return self.hop.edge

    @cached_property
    def edge_attributes(self) -> tuple[str, ...]:
        """Where edges store what the rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in _read_at(rule, "edge", self.hop.edge)))

    @cached_property
    def far_attributes(self) -> tuple[str, ...]:
        """Where nodes at far ends store what the rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in _read_at(rule, "far", self.hop.far)))

    @property
    def is_recursive(self) -> bool:
        return any(rule.is_recursive for rule in self.rules)

    @cached_property
    def mark(self) -> str:
        """A short text that is another when the rules are others; a ledger tells by it which it was written for."""
        told = [(rule.name, rule.operation, rule.terms, rule.where, rule.by, rule.k) for rule in self.rules]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CopyRule:
    """A field of an edge that repeats a field of the node at one of its ends."""

    edge: EdgeType
    field: str
    end: Literal["source", "target"]
    of: str
    """The field of the node."""

    @property
    def node(self) -> NodeType:
        return self.edge.source if self.end == "source" else self.edge.target


@dataclass(frozen=True)
class SummaryRule:
    """A field that only a batch job fills."""

    node: NodeType
    field: str
    edge: EdgeType
    summary: Summary


class Rules:
    """Everything that is kept true by itself in one graph."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._by_name = {model.__name__: kind for model, kind in schema.edges.items()}
        self.rules: tuple[Rule, ...] = tuple(self._all_rules())
        self.copies: tuple[CopyRule, ...] = tuple(self._all_copies())
        self.summaries: tuple[SummaryRule, ...] = tuple(self._all_summaries())
        self.accounts: tuple[Account, ...] = tuple(_accounts(self.rules))
        self._maintained = {kind.model: self._maintained_fields(kind) for kind in schema.types}
        self._immutable = {kind.model: _immutable(kind) for kind in schema.types}
        self._nodes = {rule.node.model for rule in self.rules}
        for kind in schema.types:
            for name in self._maintained[kind.model]:
                _check_maintained(kind, name)

    def __bool__(self) -> bool:
        return bool(self.rules or self.copies)

    def maintained(self, kind: EntityType) -> tuple[str, ...]:
        """The fields of a class that nobody writes by hand."""
        return self._maintained[kind.model]

    def immutable(self, kind: EntityType) -> tuple[str, ...]:
        """The fields of a node class that never change: those marked, and those that pydantic calls frozen."""
        return self._immutable[kind.model]

    def guards(self, kind: EntityType) -> bool:
        """Whether something of an instance must stay what it is when the instance is written whole."""
        return self.keeps(kind) or bool(self._immutable[kind.model])

    def keeps(self, kind: EntityType) -> bool:
        """Whether items of the class hold what is maintained, for everybody to see or for other rules."""
        return bool(self._maintained[kind.model]) or kind.model in self._nodes

    def _maintained_fields(self, kind: EntityType) -> tuple[str, ...]:
        own = [rule.field for rule in self.rules if rule.node is kind and rule.field is not None]
        own += [copy.field for copy in self.copies if copy.edge is kind]
        own += [summary.field for summary in self.summaries if summary.node is kind]
        return tuple(own)

    # --- aggregates ----------------------------------------------------------------------------

    def _all_rules(self) -> Iterator[Rule]:
        for kind in self._schema.nodes.values():
            for name, declared in _marked(kind, Aggregate):
                yield from self._chain(kind, name, declared)
        for edge in self._schema.edges.values():
            for name, _ in _marked(edge, Aggregate):
                raise InvalidModel(f"{edge.name}.{name} is an aggregate over edges, and belongs on a node")

    def _chain(self, kind: NodeType, name: str, declared: Aggregate) -> Iterator[Rule]:
        """The rules of one declaration, the one that the field shows first."""
        owner = f"{kind.name}.{name}"
        hops = self._hops(kind, owner, declared)
        if isinstance(declared, Count) and declared.field is not None:
            raise InvalidModel(f"{owner}: Count counts edges, and no field; leave field= out, or use Sum")
        if declared.consistency == "transaction" and (
            _OPERATIONS[type(declared).__name__] != "sum" or len(hops) > 1 or declared.recursive
        ):
            raise InvalidModel(f'{owner}: only Count and Sum over one edge can have consistency="transaction"')
        for place, hop in enumerate(hops):
            is_first, is_last = place == 0, place == len(hops) - 1
            terms: tuple[Term, ...]
            if is_last:
                terms = self._last_terms(kind, owner, name, declared, hop)
            else:
                terms = (Term("far", attribute=_hidden(kind, name, place + 1)),)
            rule = Rule(
                _rule_name(kind, name, place),
                hop,
                _OPERATIONS[type(declared).__name__],
                terms,
                kind.attributes[name] if is_first else _hidden(kind, name, place),
                name if is_first else None,
                declared.where if is_last else None,
                self._where_at(owner, declared, hop) if is_last else "edge",
                self._by(owner, declared, hop) if is_last and isinstance(declared, Latest) else None,
                declared.k if isinstance(declared, Top) else 1,
                declared.recursive,
                declared.consistency == "transaction",
            )
            if rule.in_transaction and rule.reads_far:
                raise InvalidModel(
                    f"{owner} reads {hop.far.name} at the end of {hop.edge.name}, so it cannot have "
                    f'consistency="transaction"; take a field of the edge, or leave it to the stream'
                )
            yield rule

    def _hops(self, kind: NodeType, owner: str, declared: Aggregate) -> list[Hop]:
        hops: list[Hop] = []
        at = kind
        for named in declared.edges:
            edge = self._edge(owner, named)
            ways: list[Direction] = []
            if edge.source is at:
                ways.append("out")
            if edge.target is at:
                ways.append("into")
            if not ways:
                raise InvalidModel(
                    f"{owner} goes over {edge.name}, which joins {edge.source.name} to {edge.target.name} and does "
                    f"not touch {at.name}; name an edge that does"
                )
            # A symmetric edge is found from both its ends as one that leaves.
            way = "out" if edge.symmetric else declared.direction if declared.direction in ways else ways[0]
            hops.append(Hop(edge, way))
            at = hops[-1].far
        if declared.direction == "into" and not any(hop.direction == "into" or hop.edge.symmetric for hop in hops):
            raise InvalidModel(f'{owner} has direction="into", and no edge of it arrives where it is; leave that out')
        if declared.recursive and hops[0].edge.symmetric:
            raise InvalidModel(f"{owner} is recursive, and {hops[0].edge.name} is symmetric: it leads back at once")
        if declared.recursive and at is not kind:
            raise InvalidModel(
                f"{owner} is recursive, but {hops[0].edge.name} does not lead from {kind.name} to itself"
            )
        return hops

    def _edge(self, owner: str, named: EdgeName) -> EdgeType:
        if not isinstance(named, str):
            return self._schema.edge(named)
        if named not in self._by_name:
            raise InvalidModel(
                f"{owner} goes over {named!r}: {unknown_field('this graph', named, self._by_name, 'edge')}"
            )
        return self._by_name[named]

    def _last_terms(self, kind: NodeType, owner: str, name: str, declared: Aggregate, hop: Hop) -> tuple[Term, ...]:
        if isinstance(declared, Count):
            term = Term("one")
        elif declared.field is None:
            if not isinstance(declared, Latest):
                raise InvalidModel(f"{owner}: {type(declared).__name__} needs the field to work on; pass field=")
            term = self._by(owner, declared, hop)
        else:
            term = _term(owner, declared.field, hop)
        if not declared.recursive:
            return (term,)
        if isinstance(declared, Latest):
            return term, Term("far", attribute=_hidden(kind, name, 0))
        return term, Term("far", name, kind.attributes[name])

    def _by(self, owner: str, declared: Latest, hop: Hop) -> Term:
        by = declared.by or hop.edge.order
        if by is None:
            raise InvalidModel(f"{owner}: what is the latest {hop.edge.name}? pass by=, or give the edge an order")
        return _term(owner, by, hop)

    def _where_at(self, owner: str, declared: Aggregate, hop: Hop) -> Literal["edge", "far"]:
        names = {name.partition(".")[0] for name in fields_of(declared.where)}
        if names <= hop.edge.attributes.keys():
            return "edge"
        if names <= hop.far.attributes.keys():
            return "far"
        unknown = next(name for name in sorted(names) if name not in hop.edge.attributes)
        raise InvalidModel(
            f"{owner}: where= must be about {hop.edge.name} or {hop.far.name} alone; "
            + unknown_field(hop.edge.name, unknown, hop.edge.attributes)
        )

    # --- copies and summaries ------------------------------------------------------------------

    def _all_copies(self) -> Iterator[CopyRule]:
        for edge in self._schema.edges.values():
            for name, declared in _marked(edge, Copy):
                end: Literal["source", "target"] = "source" if declared.end == "source" else "target"
                node = edge.source if end == "source" else edge.target
                if declared.field not in node.attributes:
                    raise InvalidModel(
                        f"{edge.name}.{name} copies {declared.path!r}: "
                        + unknown_field(node.name, declared.field, node.attributes)
                    )
                if name in edge.key:
                    raise InvalidModel(f"{edge.name}.{name} is a copy, so it cannot be part of the edge's key")
                if edge.symmetric:
                    raise InvalidModel(f"{edge.name} is symmetric: which end {name!r} copies from cannot be told")
                yield CopyRule(edge, name, end, declared.field)
        for node_kind in self._schema.nodes.values():
            for name, _ in _marked(node_kind, Copy):
                raise InvalidModel(f"{node_kind.name}.{name} is a copy, and belongs on an edge")

    def _all_summaries(self) -> Iterator[SummaryRule]:
        for kind in self._schema.nodes.values():
            for name, declared in _marked(kind, Summary):
                edge = self._edge(f"{kind.name}.{name}", declared.edge)
                if edge.source is not kind or edge.target is not kind:
                    raise InvalidModel(
                        f"{kind.name}.{name} summarizes {edge.name}, which must join {kind.name} to itself"
                    )
                yield SummaryRule(kind, name, edge, declared)


def _accounts(rules: Iterable[Rule]) -> Iterator[Account]:
    shared: dict[tuple[type[Any], Direction, bool], list[Rule]] = {}
    for rule in rules:
        shared.setdefault((rule.hop.edge.model, rule.hop.direction, rule.reads_far), []).append(rule)
    for some in shared.values():
        yield Account(some[0].hop, some[0].reads_far, tuple(some))


def _read_at(rule: Rule, at: Literal["edge", "far"], kind: EntityType) -> Iterator[str]:
    """The attributes that a rule reads at the edge or at the node at its far end."""
    for term in (*rule.terms, *((rule.by,) if rule.by else ())):
        if term.at == at and term.attribute is not None:
            yield term.attribute
    if rule.where_at == at:
        yield from (kind.attributes[name.partition(".")[0]] for name in fields_of(rule.where))


def _immutable(kind: EntityType) -> tuple[str, ...]:
    if not isinstance(kind, NodeType):
        return ()
    frozen = [name for name, info in kind.fields.items() if info.frozen]
    names = dict.fromkeys([*kind.marked(Immutable), *frozen])
    return tuple(name for name in names if name in kind.attributes)


def _check_maintained(kind: EntityType, name: str) -> None:
    if kind.fields[name].is_required():
        raise InvalidModel(
            f"{kind.name}.{name} is filled in by itself, so a new {kind.name} does not have it yet; give it a default"
        )
    if name in (*kind.indexed, *kind.unique, kind.version, kind.expires):
        raise InvalidModel(
            f"{kind.name}.{name} is filled in by itself, and changes without its index entry; "
            f"take Indexed(), Unique(), Version() or Expires() from it"
        )


def fields_of(predicate: Predicate | None) -> Iterator[str]:
    """The fields that a predicate is about."""
    match predicate:
        case Comparison(name):
            yield name
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from fields_of(part)
        case Negation(inner):
            yield from fields_of(inner)


def _marked(kind: EntityType, mark: type[Any]) -> Iterable[tuple[str, Any]]:
    return [(name, each) for name, info in kind.fields.items() for each in info.metadata if isinstance(each, mark)]


def _term(owner: str, name: str, hop: Hop) -> Term:
    if name in hop.edge.attributes:
        return Term("edge", name, hop.edge.attributes[name])
    if name in hop.far.attributes:
        return Term("far", name, hop.far.attributes[name])
    detail = unknown_field(f"{hop.edge.name} or {hop.far.name}", name, [*hop.edge.attributes, *hop.far.attributes])
    raise InvalidModel(f"{owner}: {detail}")


def _rule_name(kind: NodeType, name: str, place: int) -> str:
    return f"{kind.label}.{name}" + (f":{place}" if place else "")


def _hidden(kind: NodeType, name: str, place: int) -> str:
    return f"adjoin:{_rule_name(kind, name, place)}"
