"""What declared aggregates and copies mean for the classes of a graph: one-hop rules.

A rule says that an attribute of each node of a class is an operation over its edges of one class. The
value that an edge adds is made of terms: one, a field of the edge, or an attribute of the node at its
far end. So an aggregate over several hops is a chain of rules, each over the attribute of the next; the
attributes in between are hidden. A recursive one has its own attribute at the far end as a term.

Pure: no items, no requests. The stream's processor, the batch job and the audit all start from here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

from adjoin.aggregates import Direction, Immutable, Summary
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate
from adjoin.schema import EdgeType, Entity, EntityType, NodeType, Schema

Operation: TypeAlias = Literal["sum", "min", "max", "latest", "top"]


_KEY_LENGTH = 5
"""Characters of a rule's key. Those of one class are never so many that two are the same by chance."""


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

    def kind_at(self, place: str) -> EntityType:
        """What is there: the class of edges at "edge", and of nodes at the far end elsewhere."""
        return self.edge if place == "edge" else self.far

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
    is_at_target: bool = False
    """Whether its ledgers lie beside the targets of edges; one that lies elsewhere is of another declaration."""
    below: tuple[str, ...] = ()
    """The keys of the rules whose attributes it reads at far ends."""

    @cached_property
    def key(self) -> str:
        """A short text for what is declared, another where that is another; ledgers and ranks name rules by it."""
        edge, direction = self.hop.edge.label, self.hop.direction
        over = (self.name, self.attribute, edge, direction, self.is_at_target, self.below)
        declared = (*over, self.operation, self.terms, self.where, self.where_at, self.by, self.k)
        return base64.urlsafe_b64encode(hashlib.sha256(repr(declared).encode()).digest())[:_KEY_LENGTH].decode()

    @property
    def node(self) -> NodeType:
        return self.hop.near

    @property
    def where_kind(self) -> EntityType:
        """The class that `where` is about."""
        return self.hop.kind_at(self.where_at)

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
    is_shared: bool = False
    """Whether there is an account of the other direction that has its part in the same ledgers."""

    @property
    def name(self) -> str:
        return f"{self.hop.edge.label}.{self.hop.direction}" + (".far" if self.reads_far else "")

    @property
    def edge(self) -> EdgeType:
        return self.hop.edge

    @cached_property
    def part(self) -> str:
        """The attribute of a ledger beside an edge that is about this account: "o" for out, "i" for into."""
        return self.hop.direction[0]

    @cached_property
    def is_at_target(self) -> bool:
        """Whether the ledgers lie beside the targets of edges, to be found from there; else beside the edges."""
        return not self.reads_far and (self.is_shared or self.hop.direction == "into")

    @cached_property
    def is_checked(self) -> bool:
        """Whether what an edge adds is applied only as long as the edge is what was read.

        Where it is not, every change of an edge leaves a trace where a slower reader of what was before meets it.
        """
        return self.reads_far or any(rule.in_transaction for rule in self.rules)

    @cached_property
    def by_key(self) -> dict[str, str]:
        """The names of the rules by their keys."""
        return {rule.key: rule.name for rule in self.rules}

    @cached_property
    def keys(self) -> dict[str, str]:
        """The keys of the rules by their names."""
        return {rule.name: rule.key for rule in self.rules}

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


@dataclass(frozen=True)
class Standing:
    """Which of the rules of a graph the values in its table are of, by their names, as far as this graph knows."""

    due: frozenset[str] = frozenset()
    """Those of which nothing is counted: what is stored under their names, if anything, is of other declarations."""
    unfinished: frozenset[str] = frozenset()
    """Those that a rebuild counts, which has not ended."""
    listed: frozenset[str] = frozenset()
    """Those that were declared otherwise before, or not at all: a node says whether its value is theirs."""
    is_former: bool = False
    """Whether these declarations were replaced by those of another program."""

    @property
    def awaited(self) -> list[str]:
        """What a rebuild has to count."""
        return sorted(self.due | self.unfinished)


class Rules:
    """Everything that is kept true by itself in one graph."""

    def __init__(
        self, schema: Schema, rules: Iterable[Rule], copies: Iterable[CopyRule], summaries: Iterable[SummaryRule]
    ) -> None:
        self.copies, self.summaries = tuple(copies), tuple(summaries)
        self.declared: tuple[Rule, ...] = _linked(_placed(tuple(rules)))
        """All that is declared."""
        self.rules = self.declared
        """Those that are kept now: what is stored is of their declarations, or will be when a rebuild ends."""
        self.accounts: tuple[Account, ...] = tuple(_accounts(self.declared, self.declared))
        self.standing = Standing()
        self.is_told = False
        """Whether it was ever read which declarations what is stored is of."""
        self.forgotten: dict[str, frozenset[str]] = {}
        """While a rebuild runs: where nodes of a class, by label, hold values that nobody keeps any more."""
        self.is_forgetting = False
        """While a rebuild looks at nodes that it has counted: what ledgers say of other declarations is forgotten."""
        self._maintained = {kind.model: self._maintained_fields(kind) for kind in schema.types}
        self._immutable = {kind.model: _immutable(kind) for kind in schema.types}
        self._nodes = {rule.node.model for rule in self.rules}
        self.conditions: dict[str, Callable[[Entity], bool]] = {}
        """The test that a plan makes of each `where`. It refers to the layout, and ends with the graph."""

    def __bool__(self) -> bool:
        return bool(self.declared or self.copies)

    def of_a_tenant(self) -> Self:
        """The same declarations, of which other values may be stored."""
        rules = copy(self)
        rules.stand(Standing())
        rules.conditions, rules.is_told = {}, False
        return rules

    def stand(self, standing: Standing) -> None:
        """Takes down which declarations what is stored is of."""
        self.is_told = True
        if standing == self.standing:
            return
        rules = tuple(rule for rule in self.declared if rule.name not in standing.due)
        self.accounts = tuple(_accounts(rules, self.declared))
        self.rules, self.standing = rules, standing

    @cached_property
    def mark(self) -> str:
        """A short text for all that is declared, another where something is."""
        keys = sorted(rule.key for rule in self.declared)
        return hashlib.sha256(repr(keys).encode()).hexdigest()[:12]

    def maintained(self, kind: EntityType) -> tuple[str, ...]:
        """The fields of a class that nobody writes by hand."""
        return self._maintained[kind.model]

    def told_apart(self, kind: EntityType) -> tuple[str, ...]:
        """Those of a node in which a value of somebody's own can be told from one that was read.

        A class that takes fields of any name would take what tells it for one of them.
        """
        return self._maintained[kind.model] if isinstance(kind, NodeType) and not kind.takes_any else ()

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
        own = [rule.field for rule in self.declared if rule.node is kind and rule.field is not None]
        own += [copy.field for copy in self.copies if copy.edge is kind]
        own += [summary.field for summary in self.summaries if summary.node is kind]
        return tuple(own)


def _accounts(rules: Iterable[Rule], declared: Iterable[Rule]) -> Iterator[Account]:
    """The accounts of some rules of all that are declared, which tell where ledgers lie."""
    shared: dict[tuple[type[Any], Direction, bool], list[Rule]] = {}
    for rule in rules:
        shared.setdefault((rule.hop.edge.model, rule.hop.direction, rule.reads_far), []).append(rule)
    there = {(rule.hop.edge.model, rule.hop.direction) for rule in declared if not rule.reads_far}
    for (model, direction, reads_far), some in shared.items():
        yield Account(some[0].hop, reads_far, tuple(some), not reads_far and (model, _other(direction)) in there)


def _other(direction: Direction) -> Direction:
    return "into" if direction == "out" else "out"


def _placed(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules that know where their ledgers lie."""
    at_target = {rule.name for account in _accounts(rules, rules) if account.is_at_target for rule in account.rules}
    return tuple(replace(rule, is_at_target=rule.name in at_target) for rule in rules)


def _linked(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules that know what they are made of: where that is declared otherwise, so are they."""
    made = {(rule.node.model, name): rule for rule in rules for name in (rule.attribute, rule.pair) if name is not None}
    linked: dict[str, Rule] = {}

    def link(rule: Rule, above: tuple[str, ...]) -> Rule:
        if rule.name not in linked:
            names = sorted({*_read_at(rule, "far", rule.hop.far)})
            below = [made[place] for name in names if (place := (rule.hop.far.model, name)) in made]
            keys = (link(each, (*above, rule.name)).key for each in below if each.name not in (*above, rule.name))
            linked[rule.name] = replace(rule, below=tuple(keys))
        return linked[rule.name]

    for rule in rules:
        link(rule, ())
    return tuple(linked[rule.name] for rule in rules)


def _read_at(rule: Rule, at: Literal["edge", "far"], kind: EntityType) -> Iterator[str]:
    """The attributes that a rule reads at the edge or at the node at its far end."""
    for term in (*rule.terms, *((rule.by,) if rule.by else ())):
        if term.at == at and term.attribute is not None:
            yield term.attribute
    if rule.where_at == at:
        yield from (kind.attributes[name.partition(".")[0]] for name in fields_of(rule.where))


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


def _immutable(kind: EntityType) -> tuple[str, ...]:
    if not isinstance(kind, NodeType):
        return ()
    frozen = [name for name, info in kind.fields.items() if info.frozen]
    names = dict.fromkeys([*kind.marked(Immutable), *frozen])
    # A version that no program may set is counted all the same.
    return tuple(name for name in names if name in kind.attributes and name != kind.version)
