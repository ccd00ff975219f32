"""Rules: what the declarations of aggregates and copied fields mean for the classes of a graph.

A rule says that an attribute of each node of a class is an operation over its edges of one class. The
contribution of an edge is made of terms: the number one, a field of the edge, or an attribute of the
far node. So an aggregate over several hops is a chain of rules, one per hop, each of which reads the
attribute of the next; the attributes between are hidden. A recursive rule reads its own attribute at the
far node.

This module knows no items and no requests. Maintenance, the batch jobs and the audit all use it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

from adjoin.aggregates import Direction, Immutable, Summary
from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, EdgeType, Entity, EntityType, NodeType
from adjoin.errors import InvalidModel
from adjoin.fields import AllOf, AnyOf, Comparison, Negation, Predicate, SizeComparison, TypeTest
from adjoin.reached_sets import DistinctOf
from adjoin.schema import Schema

AggregateOperation: TypeAlias = Literal["sum", "distinct", "min", "max", "latest", "top"]
"""What is made of the contributions of edges: numbers are added, reached sets united, and other values put in order."""


NUMBERS: tuple[type, ...] = (int, float, Decimal)
"""The types whose values can be added up."""
COUNTING = ":n"
"""Ends the name of the rule that counts the values of a mean."""
_KEY_LENGTH = 5
"""Characters in the key of a rule. Keys are short because each ledger contains them; a class has so few rules that
two keys of it are practically never equal."""


@dataclass(frozen=True)
class Term:
    """One part of the contribution of an edge: where it comes from, and the field or attribute there."""

    at: Literal["one", "edge", "far"]
    field: str | None = None
    """The field of the edge or of the far node."""
    attribute: str | None = None
    """The attribute that stores it; a hidden attribute has no field."""


@dataclass(frozen=True)
class Hop:
    """One step of a path: the edges of one class that leave a node or arrive at it, or its children of one class.

    What is said of edges holds for children too. A child leaves its parent, and is itself the far node.
    """

    edge: CountedType
    direction: Direction
    """Seen from the near node: "out" for edges that leave it, "into" for edges that arrive."""
    only: NodeType | None = None
    """The class of the near nodes, if nodes of several classes are at that end of the edges."""

    @cached_property
    def near(self) -> NodeType:
        return self.only or (self.edge.source if self.direction == "out" else self.edge.target)

    @cached_property
    def far(self) -> NodeType:
        return self.edge.target if self.direction == "out" else self.edge.source

    def kind_at(self, place: str) -> EntityType:
        """Returns the class of the edges for "edge", and the class of the far nodes for everything else."""
        return self.edge if place == "edge" else self.far

    @cached_property
    def is_child(self) -> bool:
        """Whether the step leads to children, so that the edge and its far node are one item."""
        return self.edge is self.far

    @property
    def near_end(self) -> str:
        return "source" if self.direction == "out" else "target"

    @property
    def far_end(self) -> str:
        return "target" if self.direction == "out" else "source"


@dataclass(frozen=True)
class Rule:
    """One attribute of the nodes of one class, computed from their edges of one class."""

    name: str
    """Unique in a graph, and stored: "CUSTOMER.bills" for the first hop, "CUSTOMER.bills:1" for the next."""
    hop: Hop
    operation: AggregateOperation
    terms: tuple[Term, ...]
    attribute: str
    """The attribute of the near node that stores the result."""
    field: str | None
    """The field that shows the attribute; None for a hidden attribute."""
    where: Predicate | None = None
    where_at: Literal["edge", "far"] = "edge"
    by: Term | None = None
    """The term whose greatest value decides which edge is the latest."""
    k: int = 1
    is_recursive: bool = False
    in_transaction: bool = False
    is_at_target: bool = False
    """Whether its ledgers are stored beside the targets of edges. It is part of the key: a ledger at the other place
    belongs to another declaration."""
    below: tuple[str, ...] = ()
    """The keys of the rules whose attributes it reads at far nodes."""
    who: NodeType | None = None
    """For top values that say whose they are: the class of the nodes at the end of the path."""
    counts: bool = False
    """Whether an edge contributes 1 if it has a value, in place of the value itself."""
    is_mean: bool = False
    """Whether the field shows the quotient of this sum and of a count, see `Mean`."""
    times: Term | None = None
    """The field of the edge by which a sum multiplies what the edge leads to."""
    distinct: DistinctOf | None = None
    """For a rule over different nodes: what the field of the first hop shows of its set."""

    @cached_property
    def key(self) -> str:
        """A short hash of the declaration. Ledgers and ranks name rules by it, so another declaration gets others."""
        edge, direction = self.hop.edge.label, self.hop.direction
        over = (self.name, self.attribute, edge, direction, self.is_at_target, self.below)
        declared: tuple[Any, ...] = (*over, self.operation, self.terms, self.where, self.where_at, self.by, self.k)
        # What came later is part of it only where it is used, so that other declarations keep their keys.
        declared += ("who",) if self.who is not None else ()
        declared += ("counts",) if self.counts else ()
        declared += ("times", self.times) if self.times is not None else ()
        declared += ("distinct", self.distinct) if self.distinct is not None else ()
        return base64.urlsafe_b64encode(hashlib.sha256(repr(declared).encode()).digest())[:_KEY_LENGTH].decode()

    @property
    def node(self) -> NodeType:
        return self.hop.near

    @property
    def is_distinct(self) -> bool:
        """Whether its attribute is a reached set, of which the field shows a number."""
        return self.operation == "distinct"

    @property
    def shown_attribute(self) -> str:
        """The attribute of the field that shows the result, which may be made of `attribute`."""
        return self.attribute if self.field is None else self.node.attributes[self.field]

    @property
    def is_ranked(self) -> bool:
        """Whether values are kept in order, each by a rank. Otherwise differences are applied to the attribute."""
        return self.operation not in ("sum", "distinct")

    @property
    def shows_mean(self) -> bool:
        return self.is_mean or self.distinct == "Avg"

    @property
    def where_kind(self) -> EntityType:
        """The class whose fields `where` compares."""
        return self.hop.kind_at(self.where_at)

    @property
    def pair(self) -> str | None:
        """The attribute that stores a latest value with the value that decides, for rules that read it; or None."""
        if self.operation != "latest" or (self.field is not None and not self.is_recursive):
            return None
        return hidden(self.name)

    @property
    def reads_far(self) -> bool:
        """Whether a change of the far node changes the contribution of an edge.

        A rule over different nodes counts as such, also at its last hop: so it shares no ledger with rules that are
        counted in transaction, or at the other end.
        """
        if self.is_distinct:
            return True
        places = [term.at for term in (*self.terms, *((self.by,) if self.by else ()))]
        return "far" in places or (self.where is not None and self.where_at == "far")


@dataclass(frozen=True, eq=False)
class RuleGroup:
    """A rule group: the rules of one class of nodes over one class of edges in one direction, which share a ledger.

    Rules that read the far node are a group of their own. Their ledgers are stored beside the far node, so that
    a change of that node finds every edge to which it contributes. All other ledgers are stored beside the edge.
    """

    hop: Hop
    reads_far: bool
    rules: tuple[Rule, ...]
    is_shared: bool = False
    """Whether a rule group of the other direction has its part in the same ledgers."""

    @cached_property
    def name(self) -> str:
        near = f".{self.hop.only.label}" if self.hop.only else ""
        return f"{self.hop.edge.label}.{self.hop.direction}{near}" + (".far" if self.reads_far else "")

    @cached_property
    def edge(self) -> CountedType:
        return self.hop.edge

    @cached_property
    def part(self) -> str:
        """The attribute of a ledger that holds the part of this rule group: "o" for out, "i" for into."""
        return self.hop.direction[0]

    @cached_property
    def is_at_target(self) -> bool:
        """Whether the ledgers are stored beside the targets of edges, to be found from there, or beside the edges."""
        return not self.reads_far and (self.is_shared or self.hop.direction == "into")

    @cached_property
    def is_checked(self) -> bool:
        """Whether a contribution is applied only on the condition that the edge is still what was read.

        The condition is one more item in the transaction. Other rule groups do without it: whatever changes an edge
        also writes its ledger, the departures of the node or a new revision, and the transaction of a process that
        read the older edge fails there.
        """
        return self.reads_far or any(rule.in_transaction for rule in self.rules)

    @cached_property
    def has_stamps(self) -> bool:
        """Whether an edge may say itself what was counted for it, with a stamp.

        This also holds for rule groups that put no stamps (`is_stamped`): the declarations may have been others when
        the edge was put. If something is counted at the target, the ledger is needed there, to find the edge. Then the
        rules have other keys, and no stamp names them.
        """
        return not (self.reads_far or self.is_at_target or self.hop.is_child)

    @cached_property
    def is_stamped(self) -> bool:
        """Whether a new edge gets a stamp, and no ledger.

        This is for edges that are counted in transaction, by counts and sums. Ranks are named by a ledger. An edge that
        expires has a ledger, which goes with it. Of a stamp, the record that it is spent would be left.
        """
        is_counted = any(rule.in_transaction for rule in self.rules)
        return self.has_stamps and is_counted and not self.ranked and self.edge.expires is None

    @cached_property
    def by_key(self) -> dict[str, str]:
        """The names of the rules by their keys."""
        return {rule.key: rule.name for rule in self.rules}

    @cached_property
    def keys(self) -> dict[str, str]:
        """The keys of the rules by their names."""
        return {rule.name: rule.key for rule in self.rules}

    @cached_property
    def sums(self) -> tuple[Rule, ...]:
        """The rules that add up numbers."""
        return tuple(rule for rule in self.rules if rule.operation == "sum")

    @cached_property
    def distinct_rules(self) -> tuple[Rule, ...]:
        """The rules over different nodes."""
        return tuple(rule for rule in self.rules if rule.is_distinct)

    @cached_property
    def ranked(self) -> tuple[Rule, ...]:
        """The others, whose values are kept in order."""
        return tuple(rule for rule in self.rules if rule.is_ranked)

    @cached_property
    def edge_attributes(self) -> tuple[str, ...]:
        """The attributes of edges that the rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in _read_at(rule, "edge", self.hop.edge)))

    @cached_property
    def far_attributes(self) -> tuple[str, ...]:
        """The attributes of far nodes that the rules read."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in _read_at(rule, "far", self.hop.far)))

    @cached_property
    def recursive(self) -> tuple[Rule, ...]:
        """The rules that read the same aggregate of the far node."""
        return tuple(rule for rule in self.rules if rule.is_recursive)

    @property
    def is_recursive(self) -> bool:
        return bool(self.recursive)

    @cached_property
    def mark(self) -> str:
        """A short hash of the rules. A ledger contains it, to say for which rules it was written."""
        # What rules gained in later versions is in the hash only where it is used. So ledgers that exist keep their
        # mark.
        told: list[Any] = [(rule.name, rule.operation, rule.terms, rule.where, rule.by, rule.k) for rule in self.rules]
        told += [(rule.name, "who") for rule in self.rules if rule.who is not None]
        told += [(rule.name, rule.times) for rule in self.rules if rule.times is not None]
        told += [(rule.name, rule.distinct) for rule in self.rules if rule.distinct is not None]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Mean:
    """A mean: a field that shows the quotient of the results of two rules, which are hidden attributes of the node."""

    total: Rule
    number: Rule

    @property
    def node(self) -> NodeType:
        return self.total.node

    @property
    def field(self) -> str:
        assert self.total.field is not None
        return self.total.field

    @property
    def attribute(self) -> str:
        """The attribute of the node that stores the quotient."""
        return self.node.attributes[self.field]


@dataclass(frozen=True)
class CopyRule:
    """A copied field: a field of an edge that repeats a field of one of its nodes."""

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
    """A summary: a field that only a batch job computes."""

    node: NodeType
    """The class of the nodes that it is computed over."""
    field: str
    edge: EdgeType
    summary: Summary
    on: EdgeType | None = None
    """The class of edges that has the field; None if the nodes have it."""

    @property
    def holder(self) -> NodeType | EdgeType:
        """The class that has the field."""
        return self.on or self.node


@dataclass(frozen=True)
class Standing:
    """To which of the declared rules the values in the table belong, as far as this graph knows. Rules are named."""

    due: frozenset[str] = frozenset()
    """Rules that are not yet counted. Stored values under their names belong to earlier declarations."""
    unfinished: frozenset[str] = frozenset()
    """Rules that a rebuild is counting; it has not ended."""
    listed: frozenset[str] = frozenset()
    """Rules with an earlier declaration, or none. Each node says whether its value belongs to the present one."""
    is_former: bool = False
    """Whether another program has replaced these declarations with its own."""

    @property
    def awaited(self) -> list[str]:
        """The rules that a rebuild has to count."""
        return sorted(self.due | self.unfinished)


class Rules:
    """All rules of one graph: aggregates, copied fields and summaries."""

    def __init__(
        self, schema: Schema, rules: Iterable[Rule], copies: Iterable[CopyRule], summaries: Iterable[SummaryRule]
    ) -> None:
        self.copies, self.summaries = tuple(copies), tuple(summaries)
        self.declared: tuple[Rule, ...] = _linked(_placed(tuple(rules)))
        """The rules of all declared aggregates."""
        self.rules: tuple[Rule, ...]
        """The rules that are maintained now: the stored values are theirs, or will be when a rebuild ends."""
        self.groups: tuple[RuleGroup, ...]
        self.arriving: frozenset[type[Any]]
        """The classes of edges that need arrivals.

        They do if a rule that reads the far node, or a copied field, has to find them from their targets. A symmetric
        edge has an item of its own at its target, and needs none.
        """
        self._maintain(self.declared)
        by_name = {rule.name: rule for rule in self.declared}
        self.means: tuple[Mean, ...] = tuple(
            Mean(rule, by_name[f"{rule.name}{COUNTING}"]) for rule in self.declared if rule.is_mean
        )
        self.distinct_rules: tuple[Rule, ...] = tuple(rule for rule in self.declared if rule.is_distinct)
        """The rules whose attributes are reached sets."""
        self.shown_sets = tuple(rule for rule in self.distinct_rules if rule.field is not None)
        """Those of first hops: a field of the node shows a number of the set."""
        self.standing = Standing()
        self.is_told = False
        """Whether `standing` has been read from the table."""
        self.forgotten: dict[str, frozenset[str]] = {}
        """While a rebuild runs: the attributes, by label of the node class, whose values no rule maintains any more."""
        self.is_forgetting = False
        """Whether a rebuild drops what ledgers say about other declarations, after it has counted their nodes."""
        self._maintained = {kind.model: self._maintained_fields(kind) for kind in schema.types}
        self._immutable = {kind.model: _immutable(kind) for kind in schema.types}
        self._nodes = {rule.node.model for rule in self.rules}
        self.conditions: dict[str, Callable[[Entity], bool]] = {}
        """The compiled test of each `where`, by the name of its rule. It refers to the layout of this graph."""

    def __bool__(self) -> bool:
        return bool(self.declared or self.copies)

    def of_a_tenant(self) -> Self:
        """Returns the same declarations for another tenant, whose stored values may belong to other ones."""
        rules = copy(self)
        if self.standing != Standing():
            rules.stand(Standing())
        rules.conditions, rules.is_told = {}, False
        return rules

    def stand(self, standing: Standing) -> None:
        """Records that the stored values belong to other declarations than before."""
        self._maintain(tuple(rule for rule in self.declared if rule.name not in standing.due))
        self.standing = standing

    def _maintain(self, rules: tuple[Rule, ...]) -> None:
        groups = tuple(_groups(rules, self.declared))
        counted = [each.edge for each in groups if each.reads_far and each.hop.direction != "out"]
        found = (*counted, *(each.edge for each in self.copies if each.end == "target"))
        self.arriving = frozenset(kind.model for kind in found if not kind.symmetric)
        self.rules, self.groups = rules, groups

    @cached_property
    def mark(self) -> str:
        """A short hash of all declarations."""
        keys = sorted(rule.key for rule in self.declared)
        return hashlib.sha256(repr(keys).encode()).hexdigest()[:12]

    def maintained(self, kind: EntityType) -> tuple[str, ...]:
        """Returns the managed fields of a class."""
        return self._maintained[kind.model]

    def told_apart(self, kind: EntityType) -> tuple[str, ...]:
        """Returns the managed fields for which a node remembers the value that was read (see `model.AS_READ`).

        It is empty for a class that accepts fields of any name: it would take the record for such a field.
        """
        return self._maintained[kind.model] if isinstance(kind, NodeType) and not kind.takes_any else ()

    def immutable(self, kind: EntityType) -> tuple[str, ...]:
        """Returns the fields of a node class that never change: those with `Immutable`, and frozen ones of pydantic."""
        return self._immutable[kind.model]

    def guards(self, kind: EntityType) -> bool:
        """Whether a put of an instance must preserve some stored attributes: managed or immutable fields."""
        return self.keeps(kind) or bool(self._immutable[kind.model])

    def keeps(self, kind: EntityType) -> bool:
        """Whether items of the class hold managed fields, or hidden attributes for other rules."""
        return bool(self._maintained[kind.model]) or kind.whole.model in self._nodes

    def _maintained_fields(self, kind: EntityType) -> tuple[str, ...]:
        own = [rule.field for rule in self.declared if rule.node is kind.whole and rule.field is not None]
        own += [copy.field for copy in self.copies if copy.edge is kind]
        own += [summary.field for summary in self.summaries if summary.holder is kind.whole]
        return tuple(own)


def hidden(name: str) -> str:
    """The attribute of a rule by its name, if no field shows it."""
    return f"adjoin:{name}"


def _groups(rules: Iterable[Rule], declared: Iterable[Rule]) -> Iterator[RuleGroup]:
    """Yields the rule groups of some rules. All declared rules together decide where ledgers are stored."""
    shared: dict[tuple[type[Any], Direction, bool, type[Any]], list[Rule]] = {}
    for rule in rules:
        shared.setdefault((rule.hop.edge.model, rule.hop.direction, rule.reads_far, rule.node.model), []).append(rule)
    # A ledger must not move when a rule begins or stops to be maintained, so where it is depends on all declared
    # rules.
    there = {(rule.hop.edge.model, rule.hop.direction) for rule in declared if not rule.reads_far}
    for (model, direction, reads_far, _), some in shared.items():
        yield RuleGroup(some[0].hop, reads_far, tuple(some), not reads_far and (model, _other(direction)) in there)


def _other(direction: Direction) -> Direction:
    return "into" if direction == "out" else "out"


def _placed(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Returns the rules with `is_at_target` filled in."""
    at_target = {rule.name for group in _groups(rules, rules) if group.is_at_target for rule in group.rules}
    return tuple(replace(rule, is_at_target=rule.name in at_target) for rule in rules)


def _linked(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Returns the rules with `below` filled in, so that a rule gets another key when one that it reads changes."""
    made = {(rule.node.model, name): rule for rule in rules for name in (rule.attribute, rule.pair) if name is not None}
    linked: dict[str, Rule] = {}

    def link(rule: Rule, above: tuple[str, ...]) -> Rule:
        if rule.name not in linked:
            names = sorted({*_read_at(rule, "far", rule.hop.far)})
            below = [
                made[place] for name in names for far in rule.hop.far.classes if (place := (far.model, name)) in made
            ]
            # A recursive rule reads itself, and its own key cannot be part of its key.
            keys = (link(each, (*above, rule.name)).key for each in below if each.name not in (*above, rule.name))
            linked[rule.name] = replace(rule, below=tuple(keys))
        return linked[rule.name]

    for rule in rules:
        link(rule, ())
    return tuple(linked[rule.name] for rule in rules)


def _read_at(rule: Rule, at: Literal["edge", "far"], kind: EntityType) -> Iterator[str]:
    """Yields the attributes that a rule reads at the edge or at the far node."""
    for term in (*rule.terms, rule.by, rule.times):
        if term is not None and term.at == at and term.attribute is not None:
            yield term.attribute
    if rule.where_at == at:
        read = (kind.counted_fields[name.partition(".")[0]] for name in fields_of(rule.where))
        yield from (attribute for attribute in read if attribute is not None)


def has_functions(predicate: Predicate | None) -> bool:
    """Whether a predicate uses `size()` or `has_type()`."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return any(map(has_functions, parts))
        case Negation(inner):
            return has_functions(inner)
    return isinstance(predicate, SizeComparison | TypeTest)


def fields_of(predicate: Predicate | None) -> Iterator[str]:
    """Yields the fields that a predicate compares."""
    match predicate:
        case Comparison(name) | SizeComparison(name) | TypeTest(name):
            yield name
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from fields_of(part)
        case Negation(inner):
            yield from fields_of(inner)


def _immutable(kind: EntityType) -> tuple[str, ...]:
    if not isinstance(kind, NodeType):
        for name in kind.marked(Immutable):
            raise InvalidModel(
                f"{kind.name}.{name} is marked Immutable(), which is only for fields of nodes and children; remove it"
            )
        return ()
    frozen = [name for name, info in kind.fields.items() if info.frozen]
    names = dict.fromkeys([*kind.marked(Immutable), *frozen])
    # adjoin increases a version even if pydantic calls the field frozen, so it is not immutable.
    return tuple(name for name in names if name in kind.attributes and name != kind.version)
