"""What maintenance has recorded beside nodes, as tables: ledgers, ranks, waiting markers and arrivals; and stamps.

`LedgerRows` reads them from a source once, and joins them with the nodes that they count for. `ledgers` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cached_property, reduce
from operator import or_
from typing import Any

import ibis
import ibis.expr.types as ir

from adjoin.batch.engines import Source, Want
from adjoin.batch.job import Job
from adjoin.batch.keys import id_text, matches, node_template, source_text
from adjoin.batch.tables import ends_want
from adjoin.entity_types import CountedType, NodeType
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.interface import GENERATION, NEXT_GENERATION
from adjoin.plans.counting.contributions import BY, RANK, VALUE
from adjoin.plans.counting.ledger import (
    APPLIED,
    EDGE,
    FAR,
    FORMER,
    LENGTH,
    NEAR,
    RULES,
    SHORTENED,
    TOKEN,
    generation_want,
    rule_want,
    spent_want,
)
from adjoin.plans.counting.rank_items import HOME
from adjoin.plans.counting.stamps import GENERATION_WANT, TOKEN_LENGTH, TOKEN_WANT, stamp_want
from adjoin.plans.maintenance.ranks import values_of_an_edge
from adjoin.reserved import OWN
from adjoin.rules import Rule, RuleGroup

_OF_RULE = re.compile(r"r([0-9]+)")
"""The names of columns that belong to one rule."""


def wanted(layout: BoundLayout) -> dict[type[Any], set[Want]]:
    """The wants of each class, besides those from which the rules are computed."""
    found: dict[type[Any], set[Want]] = {}
    for group in layout.rules.groups:
        found.setdefault(group.edge.model, set()).add(ends_want(group.edge))
        if group.has_stamps:
            found[group.edge.model] |= {TOKEN_WANT, GENERATION_WANT, *map(stamp_want, group.sums)}
        found.setdefault(group.hop.near.model, set()).update({(GENERATION, "S"), (NEXT_GENERATION, "S")})
    return found


class LedgerRows:
    """The ledgers, ranks, waiting markers and arrivals of a source, read once."""

    def __init__(self, job: Job, source: Source) -> None:
        self._job, self._layout, self._source = job, job.layout, source
        self._staged: dict[str, ir.Table] = {}
        names = {rule.name for rule in job.rules}
        self.groups = [group for group in self._layout.rules.groups if names & {rule.name for rule in group.rules}]
        self._names = names
        definition = self._layout.definition
        self._pk, self._sk = definition.partition.name, definition.sort.name if definition.sort else ""
        self._rank_start = self._layout.ledgers.all_ranks("")[1].operands[0]["S"]

    @cached_property
    def _wants(self) -> dict[str, Want]:
        wants: dict[str, Want] = {
            "pk": (self._pk, "S"),
            "sk": (self._sk, "S"),
            "near": (NEAR, "S"),
            "far": (FAR, "S"),
            "edge_pk": (EDGE, "M", self._pk, "S"),
            "edge_sk": (EDGE, "M", self._sk, "S"),
            "generation": (GENERATION, "S"),
            "mark": (RULES, "S"),
            "length": (LENGTH, "N"),
            "short_pk": (SHORTENED, "M", self._pk, "S"),
            "short_sk": (SHORTENED, "M", self._sk, "S"),
            # Whole attributes, because ranked values may have any type.
            VALUE: (VALUE,),
            BY: (BY,),
            "home": (HOME, "S"),
        }
        for group in self.groups:
            if not group.reads_far:
                wants[f"generation_{group.part}"] = generation_want(group)
            if group.has_stamps:
                wants["spent"] = spent_want(group)
        for place, rule in enumerate(self._rules):
            group = self._group_of(rule)
            start: Want = (APPLIED, "M", rule.key) if group.reads_far else rule_want(group, rule)
            if not rule.is_ranked:
                wants[f"r{place}"] = (*start, "B" if rule.is_distinct else "N")
            else:
                for number in range(values_of_an_edge(rule)):
                    entry: Want = (*start, "L", str(number), "M")
                    wants[f"r{place}_{number}"] = (*entry, RANK, "S")
                    wants |= {f"r{place}_{number}_{name}": (*entry, name) for name in shown_by(rule)}
                    wants |= {f"r{place}_{number}_{name}": (*entry, name, "S") for name in (TOKEN, FORMER)}
        return wants

    def _group_of(self, rule: Rule) -> RuleGroup:
        return next(group for group in self.groups if rule in group.rules)

    @cached_property
    def _rules(self) -> list[Rule]:
        return [rule for group in self.groups for rule in group.rules if rule.name in self._names]

    @cached_property
    def _rows(self) -> ir.Table:
        """Ledgers, ranks, waiting markers and arrivals, distinguished by a number.

        For ledgers beside far nodes, it is that of their rule group.
        """
        engine = self._job.engine
        read = engine.rows(self._source, list(self._wants.values()))
        rows = read.select(**{name: read[f"w{place}"] for place, name in enumerate(self._wants)})
        # One pass over the source reads rows of all kinds, so each row gets the number of its kind.
        cases = [
            (rows.sk.startswith(self._start(group)) & self._is_node(group.hop.near, rows.near), place)
            for place, group in enumerate(self.groups)
            if group.reads_far
        ]
        cases.append((rows.sk.startswith(self._rank_start), self._ranks_number))
        cases.append((rows.sk.startswith(self._layout.ledgers.edge_start), self._edges_number))
        cases.append((rows.sk == self._layout.ledgers.marker_key("")[self._sk]["S"], self._markers_number))
        starts = dict.fromkeys(self._arrivals_start(each) for each in self.groups if self._has_arrivals(each))
        cases += ((rows.sk.startswith(start), self._arrivals_number) for start in starts)
        rows = rows.mutate(group=ibis.cases(*((test, ibis.literal(place, "int16")) for test, place in cases)))
        return engine.stage(rows.filter(rows.group.notnull() & rows.pk.endswith(OWN)))

    def _numbered(self, number: int, rules: Collection[Rule] = ()) -> ir.Table:
        """The rows of one number, without the columns of other rules: Ibis takes time for every column of a table."""
        own = {place for place, rule in enumerate(self._rules) if rule in rules}
        columns = [
            name for name in self._rows.columns if (found := _OF_RULE.match(name)) is None or int(found[1]) in own
        ]
        rows = self._rows.select(*columns)
        return rows.filter(rows.group == number)

    @property
    def _ranks_number(self) -> int:
        return len(self.groups)

    @property
    def _edges_number(self) -> int:
        return len(self.groups) + 1

    @property
    def _markers_number(self) -> int:
        return len(self.groups) + 2

    @property
    def _arrivals_number(self) -> int:
        return len(self.groups) + 3

    def _start(self, group: RuleGroup) -> str:
        text: str = self._layout.ledgers.ledgers(group.name, "")[1].operands[0]["S"]
        return text

    def _has_arrivals(self, group: RuleGroup) -> bool:
        """Whether arrivals of edges are recorded beside the nodes for which a rule group counts."""
        return group.hop.direction == "into" and group.edge.model in self._layout.rules.arriving

    def _arrivals_start(self, group: RuleGroup) -> str:
        text: str = self._layout.ledgers.arrivals(group.edge.label, "")[1].operands[0]["S"]
        return text

    def _of_group(self, group: RuleGroup) -> ir.Table:
        """The ledgers of a rule group: generation, key of the edge, and id of the node for which it counts."""
        if group.reads_far:
            rows = self._numbered(self.groups.index(group), group.rules)
            return rows.mutate(id=self._id(group.hop.near, rows.near))
        rows = self._numbered(self._edges_number, group.rules)
        beside = rows.pk.substr(0, rows.pk.length() - len(OWN))
        text = rows.sk.substr(len(self._layout.ledgers.edge_start))
        if group.is_at_target:
            # Beside a target, the text is the sort key of the edge, a separator and its partition key. Both may
            # contain the separator, so the ledger says how long the second one is.
            length = rows.length.cast("int64")
            end = text.length() - length
            partition, sort = text.substr(end, length), text.substr(0, end - 1)
        else:
            partition, sort = beside, text
        rows = rows.mutate(
            generation=rows[f"generation_{group.part}"],
            home=beside,
            # A key of an edge that was too long for a sort key is in attributes of its ledger instead.
            edge_pk=rows.short_pk.fill_null(partition),
            edge_sk=rows.short_sk.fill_null(sort),
        )
        tables = [self._of_variant(group, kind, rows) for kind in self._variants(group)]
        return tables[0] if len(tables) == 1 else ibis.union(*tables)

    def _variants(self, group: RuleGroup) -> list[CountedType]:
        """The class of the edges, for each class of far nodes."""
        end = group.hop.near_end
        return [kind for kind in group.edge.variants if getattr(kind, end) is group.hop.near]

    def _of_variant(self, group: RuleGroup, kind: CountedType, rows: ir.Table) -> ir.Table:
        """Those ledgers whose edges have these classes at their ends."""
        templates = self._layout.key_templates(kind)
        # A ledger does not name the classes at the ends of its edge, but the keys of the edge do.
        is_of = matches(templates.partition, rows.edge_pk) & matches(templates.sort, rows.edge_sk)
        rows = rows.filter(rows.generation.notnull() & is_of.fill_null(False))
        if group.hop.direction == "out":
            return rows.mutate(id=source_text(self._layout, kind, rows.edge_pk, rows.edge_sk))
        return rows.mutate(id=self._id(group.hop.near, rows.home))

    def _is_node(self, kind: NodeType, text: Any) -> Any:
        return matches(node_template(self._layout, kind), text).fill_null(False)

    def _id(self, kind: NodeType, text: Any) -> Any:
        """The text of an id, from a node key."""
        return id_text(kind, "", [(node_template(self._layout, kind), text)])

    def _kept(self, name: str, make: Callable[[], ir.Table]) -> ir.Table:
        """A table that is staged at its first use, so that later expressions over it stay small."""
        if name not in self._staged:
            self._staged[name] = self._job.engine.stage(make())
        return self._staged[name]

    def _nodes(self, kind: NodeType) -> ir.Table:
        """The nodes of a class: their generations, and their stored value of each sum and reached set."""
        tables = self._job.tables

        def make() -> ir.Table:
            nodes = tables.table(kind)
            sums = {
                f"s{place}": nodes[tables.column(self._job.book.stored_want(rule))]
                for place, rule in enumerate(self._rules)
                if not rule.is_ranked and rule.node is kind
            }
            generation, next = (nodes[tables.column((name, "S"))] for name in (GENERATION, NEXT_GENERATION))
            return nodes.select(node_id=nodes.id, node_generation=generation, node_next=next, **sums)

        return self._kept(f"nodes {kind.label}", make)

    def _ledgers(self, group: RuleGroup) -> ir.Table:
        """The ledgers of a rule group, and the generations of their nodes."""

        def make() -> ir.Table:
            rows = self._of_group(group)
            nodes = self._nodes(group.hop.near).select("node_id", "node_generation", "node_next")
            return rows.left_join(nodes, rows.id == nodes.node_id)

        return self._kept(f"ledgers {group.name}", make)

    def _valid(self, group: RuleGroup) -> ir.Table:
        """What counts in the present or next generation of the nodes: ledgers, and stamps as rows of the same kind."""
        valid = self._alive(group)
        if not self._has_stamps(group):
            return valid
        columns = ["id", "edge_pk", "edge_sk", *self._sums(group)]
        return self._kept(f"valid {group.name}", lambda: ibis.union(valid.select(columns), self._stamps(group, valid)))

    def _alive(self, group: RuleGroup) -> ir.Table:
        """The ledgers of the present or next generation of their nodes."""
        ledgers = self._ledgers(group)
        return ledgers.filter(
            (ledgers.generation == ledgers.node_generation) | (ledgers.generation == ledgers.node_next)
        )

    def _has_stamps(self, group: RuleGroup) -> bool:
        """Whether stamps may say something about the rules of a rule group."""
        return group.has_stamps and bool(self._sums(group))

    def _sums(self, group: RuleGroup) -> list[str]:
        """The columns with the sums of a rule group."""
        return [f"r{place}" for place, rule in enumerate(self._rules) if rule in group.sums]

    def _says_more(self, group: RuleGroup, ledgers: ir.Table) -> Any:
        """Whether ledgers say more than which stamps are spent."""
        ranked = [f"r{place}_0" for place, rule in enumerate(self._rules) if rule in group.ranked]
        return reduce(or_, (ledgers[name].notnull() for name in (*self._sums(group), *ranked)))

    def _stamps(self, group: RuleGroup, valid: ir.Table) -> ir.Table:
        """The stamps that count: no ledger names them as spent, and their generation is the present one.

        A stamp that was copied from another edge does not count either. It is not told apart by its digest here: the
        edge has a ledger of its own that says what was counted for it.
        """
        tables = [self._stamps_of(group, kind) for kind in self._variants(group)]
        stamps = tables[0] if len(tables) == 1 else ibis.union(*tables)
        nodes = self._nodes(group.hop.near).select("node_id", "node_generation")
        stamps = stamps.semi_join(nodes, [stamps.id == nodes.node_id, stamps.generation == nodes.node_generation])
        says_more = self._says_more(group, valid)
        told = valid.select(told_pk=valid.edge_pk, told_sk=valid.edge_sk, spent=valid.spent, says_more=says_more)
        joined = stamps.left_join(told, [stamps.edge_pk == told.told_pk, stamps.edge_sk == told.told_sk])
        is_spent = joined.spent.contains(joined.token + joined.generation) | joined.says_more
        counting = joined.filter(~is_spent.fill_null(False))
        return counting.select("id", "edge_pk", "edge_sk", *self._sums(group))

    def _stamps_of(self, group: RuleGroup, kind: CountedType) -> ir.Table:
        tables = self._job.tables
        edges = tables.table(kind)
        token, generation = (edges[tables.column(want)] for want in (TOKEN_WANT, GENERATION_WANT))
        sums = {
            f"r{place}": edges[tables.column(stamp_want(rule))]
            for place, rule in enumerate(self._rules)
            if rule in group.sums
        }
        rows = edges.select(
            id=edges[group.hop.near_end],
            edge_pk=edges.pk,
            edge_sk=edges.sk,
            token=token.substr(0, TOKEN_LENGTH),
            generation=generation,
            **sums,
        )
        return rows.filter(rows.generation.notnull() & rows.token.notnull())

    def _markers(self, kind: NodeType) -> ir.Table:
        """The ids of the nodes of a class that have a waiting marker."""
        return self._kept(f"markers {kind.label}", lambda: self._beside(kind, self._markers_number).select("id"))

    def _beside(self, kind: NodeType, number: int) -> ir.Table:
        """The rows of one number that are stored beside nodes of a class, with the ids of these nodes."""
        rows = self._numbered(number)
        rows = rows.mutate(node=rows.pk.substr(0, rows.pk.length() - len(OWN)))
        rows = rows.filter(self._is_node(kind, rows.node))
        return rows.mutate(id=self._id(kind, rows.node))


def shown_by(rule: Rule) -> tuple[str, ...]:
    """The attributes of a rank that become values of the node."""
    return (VALUE, BY) if rule.operation == "latest" else (VALUE,)
