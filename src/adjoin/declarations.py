"""From declarations on classes to rules: which edges an aggregate goes over, which way, and what it reads there.

What is refused here cannot be understood: edges and fields that do not exist, paths that lead nowhere, options
that contradict each other. Whether a field can hold what it was told is for `adjoin.declared`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Literal

from adjoin.aggregates import Aggregate, Copy, Count, Direction, EdgeName, Latest, Summary, Top
from adjoin.errors import InvalidModel
from adjoin.rules import CopyRule, Hop, Operation, Rule, Rules, SummaryRule, Term, fields_of
from adjoin.schema import EdgeType, EntityType, NodeType, Schema, plain_type, unknown_field

_OPERATIONS: dict[str, Operation] = {
    "Count": "sum",
    "Sum": "sum",
    "Min": "min",
    "Max": "max",
    "Latest": "latest",
    "Top": "top",
}


def rules_of(schema: Schema) -> Rules:
    """Everything that the classes of a graph were told to keep true; `InvalidModel` for what cannot be understood."""
    declared = _Declarations(schema)
    rules = Rules(schema, declared.aggregates(), declared.copies(), declared.summaries())
    for kind in schema.types:
        for name in rules.maintained(kind):
            _check_maintained(kind, name)
    return rules


class _Declarations:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._by_name = {model.__name__: kind for model, kind in schema.edges.items()}

    # --- aggregates ----------------------------------------------------------------------------

    def aggregates(self) -> Iterator[Rule]:
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
            if hops and isinstance(named, str) and named not in self._by_name:
                self._refuse_field(owner, named, hops[-1])
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

    def _refuse_field(self, owner: str, named: str, hop: Hop) -> None:
        """A field in the place of an edge."""
        for kind in (hop.edge, hop.far):
            if named in kind.attributes:
                raise InvalidModel(
                    f"{owner} goes over {named!r}, which is a field of {kind.name}; pass field={named!r} instead"
                )

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
        if by is None and declared.field is not None:
            # A date needs nothing else to go by.
            term = _term(owner, declared.field, hop)
            kind = hop.kind_at(term.at)
            if issubclass(plain_type(kind.fields[declared.field]) or object, date):
                return term
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

    def copies(self) -> Iterator[CopyRule]:
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

    def summaries(self) -> Iterator[SummaryRule]:
        for kind in self._schema.nodes.values():
            for name, declared in _marked(kind, Summary):
                edge = self._edge(f"{kind.name}.{name}", declared.edge)
                if edge.source is not kind or edge.target is not kind:
                    raise InvalidModel(
                        f"{kind.name}.{name} summarizes {edge.name}, which must join {kind.name} to itself"
                    )
                yield SummaryRule(kind, name, edge, declared)


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
