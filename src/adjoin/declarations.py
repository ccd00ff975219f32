"""Turns the declarations of aggregates and copied fields into rules when a graph opens.

`rules_of` finds out which edges an aggregate reads, in which direction, and what it reads there. It refuses edges and
fields that do not exist, paths whose edges do not meet, and options that contradict each other. Whether fields can hold
what the rules write is checked in `checking_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Literal

from adjoin.aggregates import (
    Aggregate,
    Avg,
    CommonNeighbours,
    Copy,
    Count,
    Direction,
    EdgeName,
    Latest,
    Summary,
    Top,
)
from adjoin.entity_types import CountedType, EdgeType, EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel
from adjoin.field_types import plain_type, unknown_field
from adjoin.reached_sets import DistinctOf
from adjoin.rules import (
    COUNTING,
    NUMBERS,
    AggregateOperation,
    CopyRule,
    Hop,
    Rule,
    Rules,
    SummaryRule,
    Term,
    fields_of,
    has_functions,
    hidden,
)
from adjoin.schema import Schema

_OPERATIONS: dict[str, AggregateOperation] = {
    "Count": "sum",
    "Sum": "sum",
    "Avg": "sum",
    "Min": "min",
    "Max": "max",
    "Latest": "latest",
    "Top": "top",
}


def rules_of(schema: Schema) -> Rules:
    """Returns the rules that the classes of a graph declare; raises `InvalidModel` for a wrong declaration."""
    declared = _Declarations(schema)
    rules = Rules(schema, declared.aggregates(), declared.copies(), declared.summaries())
    for kind in schema.types:
        for name in rules.maintained(kind):
            _check_maintained(kind, name)
    return rules


class _Declarations:
    """The declarations of all classes of a schema, and their translation to rules."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        kinds = (kind.as_counted for kind in schema.types)
        self._by_name: dict[str, CountedType] = {kind.name: kind for kind in kinds if kind is not None}

    # --- aggregates ----------------------------------------------------------------------------

    def aggregates(self) -> Iterator[Rule]:
        for kind in self._schema.nodes.values():
            for name, declared in _marked(kind, Aggregate):
                if kind.head is None:
                    yield from self._chain(kind, name, declared)
                    # A mean is a sum and a number of values, each kept by rules of its own.
                    if isinstance(declared, Avg) and not declared.distinct:
                        yield from self._chain(kind, name, declared, COUNTING)
                else:
                    _check_inherited(kind, kind.head, name, declared)
        for edge in self._schema.edges.values():
            for name, _ in _marked(edge, Aggregate):
                raise InvalidModel(
                    f"{edge.name}.{name} is an aggregate, which only a node can have; declare it on a node class"
                )

    def _chain(self, kind: NodeType, name: str, declared: Aggregate, part: str = "") -> Iterator[Rule]:
        """Yields the rules of one declaration, one per hop. The first is the one whose value the field shows.

        A mean has two such chains: of the sum, and with the `part` COUNTING of the number of values. What is made of
        different nodes has one chain of reached sets, and its field shows a number of the first set.
        """
        owner = f"{kind.name}.{name}"
        hops = self._hops(kind, owner, declared)
        operation = "distinct" if declared.distinct else _OPERATIONS[type(declared).__name__]
        if isinstance(declared, Count) and declared.field is not None:
            raise InvalidModel(f"{owner}: Count takes no field, because it counts edges; leave field= out, or use Sum")
        if declared.consistency == "transaction" and (
            _OPERATIONS[type(declared).__name__] != "sum" or len(hops) > 1 or declared.recursive
        ):
            raise InvalidModel(
                f'{owner}: only Count, Sum and Avg over one hop can have consistency="transaction"; leave it out'
            )
        for place, hop in enumerate(hops):
            is_first, is_last = place == 0, place == len(hops) - 1
            terms: tuple[Term, ...]
            if is_last:
                terms = self._last_terms(kind, owner, name, declared, hop, part)
            else:
                terms = (Term("far", attribute=_hidden(kind, name, place + 1, part)),)
            is_shown = is_first and not isinstance(declared, Avg) and not declared.distinct
            rule = Rule(
                _rule_name(kind, name, place, part),
                hop,
                operation,
                terms,
                kind.attributes[name] if is_shown else _hidden(kind, name, place, part),
                name if is_first and not part else None,
                declared.where if is_last else None,
                self._where_at(owner, declared, hop) if is_last else "edge",
                self._by(owner, declared, hop) if is_last and isinstance(declared, Latest) else None,
                declared.k if isinstance(declared, Top) else 1,
                declared.recursive,
                declared.consistency == "transaction",
                who=_who(kind, owner, name, hops[-1]),
                counts=bool(part) and is_last,
                is_mean=isinstance(declared, Avg) and is_first and not part and not declared.distinct,
                times=None if declared.quantity is None else self._times(owner, declared.quantity, hop),
                distinct=_distinct(declared),
            )
            if rule.in_transaction and rule.reads_far:
                raise InvalidModel(
                    f"{owner} reads a field of {hop.far.name}, the far node of {hop.edge.name}, so it cannot have "
                    f'consistency="transaction"; use a field of the edge, or leave consistency= out'
                )
            if rule.in_transaction and hop.is_child:
                raise InvalidModel(
                    f"{owner} counts {hop.edge.name}, a class of children, which are written without their parent, so "
                    f'it cannot have consistency="transaction"; leave consistency= out'
                )
            yield rule

    def _hops(self, kind: NodeType, owner: str, declared: Aggregate) -> list[Hop]:
        hops: list[Hop] = []
        at = kind
        for named in declared.edges:
            if hops and isinstance(named, str) and named not in self._by_name:
                self._refuse_field(owner, named, hops[-1])
            edge = self._edge(owner, named)
            if isinstance(at, NodeUnion):
                raise InvalidModel(
                    f"{owner} follows {edge.name} from {at.name}, the far end of {hops[-1].edge.name}, but a path goes "
                    f"through nodes of one class; declare an aggregate on each of them, and read that"
                )
            ways: list[Direction] = []
            if edge.source.covers(at):
                ways.append("out")
            if isinstance(edge, EdgeType) and edge.target.covers(at):
                ways.append("into")
            if not ways and not isinstance(edge, EdgeType):
                raise InvalidModel(
                    f"{owner} follows {edge.name} from {at.name}, but {edge.name} is a child of {edge.source.name}; "
                    f"name an edge or a child of {at.name}"
                )
            if not ways:
                raise InvalidModel(
                    f"{owner} follows {edge.name} from {at.name}, but {edge.name} joins {edge.source.name} to "
                    f"{edge.target.name}; name an edge of {at.name}"
                )
            # A symmetric edge has an item at each end, so both nodes find it among the edges that leave them.
            way = "out" if edge.symmetric else declared.direction if declared.direction in ways else ways[0]
            near = edge.source if way == "out" else edge.target
            hops.append(Hop(edge, way, at if isinstance(near, NodeUnion) else None))
            # The next edge of the path begins where this one leads.
            at = hops[-1].far
        if declared.direction == "into" and not any(hop.direction == "into" or hop.edge.symmetric for hop in hops):
            raise InvalidModel(
                f'{owner} has direction="into", but none of its edges arrives at a node of the path; leave it out'
            )
        if declared.recursive and hops[0].edge.symmetric:
            raise InvalidModel(
                f"{owner} is recursive, but {hops[0].edge.name} is symmetric, so each edge would lead back; use an "
                f"edge with a direction"
            )
        if declared.recursive and at is not kind:
            raise InvalidModel(
                f"{owner} is recursive, but {hops[0].edge.name} does not lead from {kind.name} to itself"
            )
        return hops

    def _edge(self, owner: str, named: EdgeName) -> CountedType:
        if not isinstance(named, str):
            child = self._schema.nodes[named].as_counted if named in self._schema.nodes else None
            return child or self._schema.edge(named)
        if named not in self._by_name:
            raise InvalidModel(
                f"{owner} follows {named!r}: {unknown_field('this graph', named, self._by_name, 'edge')}"
            )
        return self._by_name[named]

    def _refuse_field(self, owner: str, named: str, hop: Hop) -> None:
        """Raises if the name of a field stands where the name of an edge belongs: a frequent mistake."""
        for kind in (hop.edge, hop.far):
            if named in kind.attributes:
                raise InvalidModel(
                    f"{owner} names {named!r} as an edge, but it is a field of {kind.name}; pass field={named!r}"
                )

    def _last_terms(
        self, kind: NodeType, owner: str, name: str, declared: Aggregate, hop: Hop, part: str
    ) -> tuple[Term, ...]:
        if isinstance(declared, Count):
            term = Term("one")
        elif declared.field is None:
            if not isinstance(declared, Latest):
                raise InvalidModel(f"{owner}: {type(declared).__name__} needs a field; pass field=")
            term = self._by(owner, declared, hop)
        else:
            term = _term(owner, declared.field, hop)
            if declared.distinct and term.at == "edge" and not hop.is_child:
                raise InvalidModel(
                    f"{owner} has distinct=True, which counts each {hop.far.name} once, but {declared.field!r} is a "
                    f"field of {hop.edge.name}, and several of them may lead to one {hop.far.name}; name a field of "
                    f"{hop.far.name}, or take distinct= out"
                )
        if not declared.recursive:
            return (term,)
        if isinstance(declared, Latest | Avg) or declared.distinct:
            return term, Term("far", attribute=_hidden(kind, name, 0, part))
        return term, Term("far", name, kind.attributes[name])

    def _by(self, owner: str, declared: Latest, hop: Hop) -> Term:
        by = declared.by or hop.edge.order
        otherwise = "or give the edge an order" if isinstance(hop.edge, EdgeType) else "since its key is not one field"
        if by is None and declared.field is not None:
            # The latest of dates is the greatest date, so no other field is needed.
            term = _term(owner, declared.field, hop)
            kind = hop.kind_at(term.at)
            if issubclass(plain_type(kind.fields[declared.field]) or object, date):
                return term
        if by is None:
            raise InvalidModel(
                f"{owner} does not say by which field a {hop.edge.name} is the latest; pass by=, {otherwise}"
            )
        return _term(owner, by, hop)

    def _times(self, owner: str, quantity: str, hop: Hop) -> Term:
        term = _term(owner, quantity, hop)
        if term.at != "edge":
            raise InvalidModel(
                f"{owner} has quantity={quantity!r}, which is a field of {hop.far.name}; name one of {hop.edge.name}"
            )
        info = hop.edge.fields[quantity]
        if plain_type(info) not in NUMBERS or quantity in hop.edge.formats:
            raise InvalidModel(
                f"{owner} has quantity={quantity!r}, but {hop.edge.name}.{quantity} is not stored as a number; name a "
                f"field that is"
            )
        return term

    def _where_at(self, owner: str, declared: Aggregate, hop: Hop) -> Literal["edge", "far"]:
        if has_functions(declared.where):
            raise InvalidModel(
                f"where= of {owner} uses size() or has_type(), which batch jobs do not have; compare values only"
            )
        names = {name.partition(".")[0] for name in fields_of(declared.where)}
        on_edge, on_far = _readable(hop)
        if names <= on_edge.keys():
            return "edge"
        if names <= on_far.keys():
            for name in sorted(names):
                _refuse_distinct(f"where= of {owner}", name, hop.far)
            return "far"
        unknown = next(name for name in sorted(names) if name not in on_edge)
        _refuse_uncommon(f"where= of {owner}", unknown, hop.far)
        raise InvalidModel(
            f"{owner}: where= must use fields of {_places(hop, 'either ')}; "
            + unknown_field(hop.edge.name, unknown, hop.edge.counted_fields)
        )

    # --- copied fields and summaries -----------------------------------------------------------

    def copies(self) -> Iterator[CopyRule]:
        for edge in self._schema.edges.values():
            for name, declared in _marked(edge, Copy):
                end: Literal["source", "target"] = "source" if declared.end == "source" else "target"
                node = edge.source if end == "source" else edge.target
                if declared.field not in node.attributes:
                    _refuse_uncommon(f"{edge.name}.{name}", declared.field, node)
                    raise InvalidModel(
                        f"{edge.name}.{name} copies {declared.path!r}: "
                        + unknown_field(node.name, declared.field, node.attributes)
                    )
                if name in edge.key:
                    raise InvalidModel(f"{edge.name}.{name} is a copied field, so it cannot be part of the edge's key")
                yield CopyRule(edge, name, end, declared.field)
        for node_kind in self._schema.nodes.values():
            for name, _ in _marked(node_kind, Copy):
                raise InvalidModel(
                    f"{node_kind.name}.{name} is a copied field, which only an edge can have; declare it on an edge"
                )

    def summaries(self) -> Iterator[SummaryRule]:
        for kind in self._schema.nodes.values():
            for name, declared in _marked(kind, Summary):
                if kind.head is not None:
                    _check_inherited(kind, kind.head, name, declared)
                    continue
                edge = self._edge(f"{kind.name}.{name}", declared.edge)
                if not isinstance(edge, EdgeType) or edge.source is not kind or edge.target is not kind:
                    raise InvalidModel(
                        f"{kind.name}.{name} is a summary over {edge.name}, which must join {kind.name} to itself"
                    )
                yield SummaryRule(kind, name, edge, declared)
        for on in self._schema.edges.values():
            for name, declared in _marked(on, Summary):
                edge = self._edge(f"{on.name}.{name}", declared.edge)
                ends = (on.target, edge.source, edge.target)
                if not isinstance(edge, EdgeType) or any(end is not on.source for end in ends):
                    raise InvalidModel(
                        f"{on.name}.{name} is a summary over {edge.name}; both must join nodes of the same class"
                    )
                yield SummaryRule(on.source, name, edge, declared, on)


def _who(kind: NodeType, owner: str, name: str, last: Hop) -> NodeType | None:
    """The class of the nodes whose values a field shows, if it says whose they are."""
    if not kind.holds_ranked(name):
        return None
    if isinstance(last.far, NodeUnion) or not last.far.is_single:
        raise InvalidModel(
            f"{owner} would hold ids of {last.far.name}, which have several parts or classes, and one attribute holds "
            f"one value; show the values alone, or use a class whose id is one field"
        )
    return last.far


def _check_maintained(kind: EntityType, name: str) -> None:
    if kind.fields[name].is_required():
        raise InvalidModel(
            f"{kind.name}.{name} is a managed field, so a new {kind.name} does not have it yet; give it a default"
        )
    if name in (*kind.unique, kind.version, kind.expires):
        raise InvalidModel(
            f"{kind.name}.{name} is a managed field, which only adjoin changes; remove Unique(), Version() or "
            f"Expires() from it"
        )
    if name in kind.elements:
        raise InvalidModel(
            f"{kind.name}.{name} is a managed field, whose elements no index has; remove Indexed(elements=True) from it"
        )
    # On an edge, CommonNeighbours is one number, which can be sorted.
    several = Top | CommonNeighbours if isinstance(kind, NodeType) else Top
    if name in kind.indexed and any(isinstance(each, several) for each in kind.fields[name].metadata):
        raise InvalidModel(
            f"{kind.name}.{name} holds several values, so nodes have no order by it; remove Indexed(), and declare a "
            f"Max or a Count to find them by"
        )


def _marked(kind: EntityType, mark: type[Any]) -> Iterable[tuple[str, Any]]:
    found = [(name, data) for name, info in kind.fields.items() for data in info.metadata if isinstance(data, mark)]
    for name, data in found:
        if name in kind.computed:
            raise InvalidModel(
                f"{kind.name}.{name} is computed by its class, so it cannot be marked {type(data).__name__}(); "
                f"declare a field for that"
            )
    return found


def _term(owner: str, name: str, hop: Hop) -> Term:
    on_edge, on_far = _readable(hop)
    if name in on_edge:
        return Term("edge", name, on_edge[name])
    if name in on_far:
        if any(declared == name for kind in hop.far.classes for declared, _ in _marked(kind, Avg)):
            raise InvalidModel(
                f"{owner} reads {hop.far.name}.{name}, a mean, and means of means depend on rounding; read a sum or a "
                f"count"
            )
        _refuse_distinct(owner, name, hop.far)
        return Term("far", name, on_far[name])
    _refuse_uncommon(owner, name, hop.far)
    raise InvalidModel(f"{owner}: {unknown_field(_places(hop), name, dict.fromkeys([*on_edge, *on_far]))}")


def _distinct(declared: Aggregate) -> DistinctOf | None:
    if not declared.distinct:
        return None
    return "Count" if isinstance(declared, Count) else "Avg" if isinstance(declared, Avg) else "Sum"


def _refuse_distinct(owner: str, name: str, end: NodeType) -> None:
    """Raises if a field is made of a reached set: what a sum of such numbers means, no set could say."""
    if any(declared.distinct for kind in end.classes for held, declared in _marked(kind, Aggregate) if held == name):
        raise InvalidModel(
            f"{owner} reads {end.name}.{name}, which has distinct=True: two {end.name} may lead to the same nodes, and "
            f"its number does not say so; declare distinct=True with the whole path, or read another field"
        )


def _readable(hop: Hop) -> tuple[Mapping[str, str | None], Mapping[str, str | None]]:
    """The fields that a rule can read on the edge and on the far node, with their attributes.

    A child is both. Its aggregates change with other edges, so they are read as those of any far node are.
    """
    if not hop.is_child:
        return hop.edge.attributes, hop.far.attributes
    every, made = hop.edge.counted_fields, {name for name, _ in _marked(hop.edge, Aggregate)}
    return {name: attribute for name, attribute in every.items() if name not in made}, every


def _places(hop: Hop, either: str = "") -> str:
    """The classes whose fields a rule can read, for messages."""
    return hop.edge.name if hop.is_child else f"{either}{hop.edge.name} or {hop.far.name}"


def _check_inherited(kind: NodeType, head: NodeType, name: str, declared: object) -> None:
    """Refuses an aggregate that only some classes of a family have: the key of an edge does not tell them apart."""
    if (name, declared) not in _marked(head, type(declared)):
        raise InvalidModel(
            f"{kind.name}.{name} is an aggregate that {head.name} does not have, but edges lead to {head.name}, whose "
            f"keys {kind.name} has; declare it on {head.name}"
        )


def _refuse_uncommon(owner: str, name: str, end: NodeType) -> None:
    """Raises if only some of the classes at an end of edges have a field, or if they store it differently."""
    if len(end.classes) > 1 and any(name in each.attributes for each in end.classes):
        missing = [each.name for each in end.classes if name not in each.attributes]
        reason = f"{missing[0]} has no such field" if missing else "they have it with different types or aliases"
        raise InvalidModel(
            f"{owner} reads {name!r} of {end.name}, but {reason}; give each of them the same field, or read another"
        )


def _rule_name(kind: NodeType, name: str, place: int, part: str) -> str:
    return f"{kind.label}.{name}{part}" + (f":{place}" if place else "")


def _hidden(kind: NodeType, name: str, place: int, part: str) -> str:
    return hidden(_rule_name(kind, name, place, part))
