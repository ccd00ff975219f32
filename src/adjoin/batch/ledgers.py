"""The audit of maintenance's records: compares ledgers with edges and aggregates, and ranks with ledgers.

| fault of a ledger | what is wrong |
|---|---|
| stray | its edge does not exist |
| missing | an edge that contributes something has no valid ledger |
| unmarked | the node of an edge does not exist, and the edge would not be found when the node is created |
| outdated | it was written for other rules than the class has now, and does not name each rule by its declaration |
| different | the ledgers of a node do not add up to the node's value, although that is what its edges give |

For a rule without `where=`, the edge alone shows that it contributes something. For a rule with one, the sums show it,
or, if the node does not exist, nothing does: `unsure` then has the edges that may be unmarked.
The ranks must be those that ledgers name, with the same values. A rank that no ledger names does not count: it is about
to be named, or left over. Only a rank without a token counts by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

import ibis
import ibis.expr.types as ir

from adjoin.batch.engines import Source, Want
from adjoin.batch.job import Differences, Job
from adjoin.batch.keys import escaped
from adjoin.batch.ledger_rows import LedgerRows, shown_by
from adjoin.batch.numbers import Numbers
from adjoin.batch.reached import unbalanced
from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, NodeType, NodeUnion
from adjoin.errors import InvalidItem, InvalidKey
from adjoin.layouts.own_items import RANK_END, TOKEN_LENGTH, UNTOLD_END
from adjoin.plans.counting.arrivals import Arrival
from adjoin.plans.counting.ledger import FORMER, TOKEN, EdgeRef
from adjoin.plans.maintenance.ranks import values_of_an_edge
from adjoin.plans.steps.batches import Place
from adjoin.reserved import OWN
from adjoin.rules import Rule, RuleGroup
from adjoin.values import Item


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """A node with a wrong ledger or rank."""

    kind: NodeType
    id: Any
    fault: str
    ref: EdgeRef | None = None
    """The edge, if the fault concerns a single one."""

    @property
    def is_rank(self) -> bool:
        """Whether it concerns a rank. The values of the node may be right all the same."""
        return self.fault.endswith("rank")

    def shown(self) -> dict[str, Any]:
        edge = {} if self.ref is None else {"edge": tuple(part["S"] for part in self.ref.key.values())}
        return {"node": self.id, **edge, "fault": self.fault}


class LedgerAudit(LedgerRows):
    """Compares the ledgers and ranks of a source with its nodes and edges."""

    def __init__(self, job: Job, source: Source, found: Mapping[str, Differences]) -> None:
        """`found` has the differences by rule."""
        super().__init__(job, source)
        self._found = found

    # --- ledgers -------------------------------------------------------------------------------

    def faults(self, group: RuleGroup) -> Iterator[LedgerFault]:
        """The faults of the ledgers of a rule group, in the order of nodes."""
        table = self._job.exactly(lambda numbers: self._job.engine.stage(self._faults(group, numbers)))
        yield from self._fetched(group, table)

    def unsure(self, group: RuleGroup) -> Iterator[LedgerFault]:
        """The edges that are unmarked if they contribute something, which only reading them shows; in order of nodes.

        These are edges of rules with a condition. They are no faults: an edge that contributes nothing needs no mark.
        """
        edges = self._edges(group)
        counted = self._counted(group, edges)
        if counted is edges:
            return
        if counted is not None:
            edges = edges.anti_join(counted, [edges.pk == counted.pk, edges.sk == counted.sk])
        yield from self._fetched(group, self._job.engine.stage(_fault(self._unmarked(group, edges), "unmarked")))

    def _fetched(self, group: RuleGroup, table: ir.Table) -> Iterator[LedgerFault]:
        for row in self._job.engine.fetch(table, ["id", "edge_pk", "edge_sk"]):
            id = self._job.tables.id_of(group.hop.near, row["id"])
            try:
                ref = self._ref(group, id, row)
            except InvalidKey:
                # Another program has written an edge with an id that no node can have. It has no ledger.
                continue
            yield LedgerFault(group.hop.near, id, row["fault"], ref)

    def _ref(self, group: RuleGroup, id: Any, row: dict[str, Any]) -> EdgeRef | None:
        if row["edge_pk"] is None:
            return None
        key: Item = {self._pk: {"S": row["edge_pk"]}, self._sk: {"S": row["edge_sk"]}}
        near, far = self._layout.node_text(group.hop.near, id), row["far"]
        if far is None and row["far_id"] is not None:
            target = self._job.tables.id_of(group.hop.far, row["far_id"])
            far = self._layout.node_text(group.hop.far, target)
        if far is None:
            # The edge no longer exists. Its ledger is beside one end, and the key of the edge contains the other.
            is_into = group.hop.direction == "into"
            far = self._layout.source_text(group.edge, key) if is_into else self._target(group, key)
        return EdgeRef(group, key, near, far)

    def _target(self, group: RuleGroup, key: Item) -> str:
        try:
            return self._layout.ends(group.edge, key)[1]
        except InvalidItem:
            # Then nothing is counted at the target, and the ledger can be found without it.
            return ""

    def _faults(self, group: RuleGroup, numbers: Numbers) -> ir.Table:
        edges, ledgers, valid = self._edges(group), self._ledgers(group), self._valid(group)
        if self._has_stamps(group):
            # A ledger stays without its edge if it says only which stamps are spent.
            ledgers = ledgers.filter(ledgers.spent.isnull() | self._says_more(group, ledgers))
        stray = ledgers.anti_join(edges, [ledgers.edge_pk == edges.pk, ledgers.edge_sk == edges.sk])
        parts = [_fault(stray, "stray")]
        if group.reads_far:
            old = valid.semi_join(edges, [valid.edge_pk == edges.pk, valid.edge_sk == edges.sk])
            old = old.filter(~old.mark.identical_to(ibis.literal(group.mark)))
            parts.append(_fault(old, "outdated"))
        if (counted := self._counted(group, edges)) is not None:
            nodes = self._nodes(group.hop.near)
            missing = counted.semi_join(nodes, counted.id == nodes.node_id)
            missing = missing.anti_join(valid, [missing.pk == valid.edge_pk, missing.sk == valid.edge_sk])
            missing = missing.mutate(edge_pk=missing.pk, edge_sk=missing.sk)
            parts += [_fault(missing, "missing"), _fault(self._unmarked(group, counted), "unmarked")]
        told = self._job.engine.stage(ibis.union(*parts) if len(parts) > 1 else parts[0])
        return ibis.union(told, *self._different(group, told, numbers))

    def _edges(self, group: RuleGroup) -> ir.Table:
        """The edges of a rule group: their keys and ends, and the columns that rules without a condition read."""

        def make() -> ir.Table:
            tables = [self._edges_of(group, kind) for kind in self._variants(group)]
            return tables[0] if len(tables) == 1 else ibis.union(*tables)

        return self._kept(f"edges {group.name}", make)

    def _edges_of(self, group: RuleGroup, kind: CountedType) -> ir.Table:
        edges = self._job.tables.table(kind)
        columns = {name: edges[name] for name in self._told_by(group)}
        near, far = edges[group.hop.near_end], edges[group.hop.far_end]
        if isinstance(group.hop.far, NodeUnion):
            # The key of the edge says of which class the far node is.
            far = ibis.null("string")
        return edges.select("pk", "sk", id=near, far_id=far, **columns)

    def _told_by(self, group: RuleGroup) -> list[str]:
        wants = [want for rule in self._sure(group) for want in self._stored(rule) if want is not None]
        return list(dict.fromkeys(self._job.tables.column(want) for want in wants))

    def _sure(self, group: RuleGroup) -> list[Rule]:
        """The rules of a rule group that have no condition and read only the edge."""
        sure = [rule for rule in group.rules if rule.where is None and rule.name in self._names]
        return [] if group.reads_far else sure

    def _stored(self, rule: Rule) -> list[Want | None]:
        terms = (*rule.terms, *((rule.by,) if rule.by else ()))
        if rule.times is not None:
            # An edge without a quantity contributes nothing, whatever else it has.
            terms = (*(term for term in terms if term.at != "one"), rule.times)
        return [self._job.book.term_want(rule, term) for term in terms]

    def _counted(self, group: RuleGroup, edges: ir.Table) -> ir.Table | None:
        """The edges that certainly contribute something, or need a ledger in any case."""
        sure = self._sure(group)
        if group.reads_far or any(rule.terms[0].at == "one" and rule.times is None for rule in sure):
            return edges
        tests = []
        for rule in sure:
            wants = self._stored(rule)
            if None not in wants:
                columns = (edges[self._job.tables.column(want)].notnull() for want in wants if want is not None)
                tests.append(reduce(and_, columns))
        return edges.filter(reduce(or_, tests)) if tests else None

    def _unmarked(self, group: RuleGroup, edges: ir.Table) -> ir.Table:
        """Those of some edges whose near node does not exist, and that would not be found when it is created.

        A maintainer looks for edges only if there is a waiting marker. It finds an edge that leaves the node in the
        node's partition, and one that arrives by what is recorded beside the node, because an index may lag behind.
        """
        nodes, markers = self._nodes(group.hop.near), self._markers(group.hop.near)
        waiting = edges.anti_join(nodes, edges.id == nodes.node_id)
        unmarked = waiting.anti_join(markers, waiting.id == markers.id)
        if group.hop.direction == "into":
            beside = self._beside_target(group)
            marked = waiting.semi_join(markers, waiting.id == markers.id)
            same = [marked.id == beside.id, marked.pk == beside.edge_pk, marked.sk == beside.edge_sk]
            unfound = marked.anti_join(beside, same)
            unmarked = ibis.union(unmarked, unfound)
        return unmarked.mutate(edge_pk=unmarked.pk, edge_sk=unmarked.sk)

    def _beside_target(self, group: RuleGroup) -> ir.Table:
        """The edges that are recorded beside their targets: by a ledger, of any generation, or by an arrival."""
        if _is_found_by_arrivals(group):
            found = self._beside(group.hop.near, self._arrivals_number)
        else:
            found = self._ledgers(group)
        return found.select("id", "edge_pk", "edge_sk")

    def _different(self, group: RuleGroup, told: ir.Table, numbers: Numbers) -> Iterator[ir.Table]:
        """The nodes whose ledgers do not add up to their values, without those in `told`."""
        off = self._off(group, numbers)
        if off is None:
            return
        off = off.anti_join(told, off.id == told.id)
        for place in self._summed(group):
            some = off.filter(off.place == place)
            found = self._found[self._rules[place].name].ids()
            yield _fault(some.anti_join(found, some.id == found.id), "different")

    def _summed(self, group: RuleGroup) -> list[int]:
        """The numbers of the rules of a rule group that are sums, or have reached sets."""
        return [
            place
            for place, rule in enumerate(self._rules)
            if rule in group.rules and not rule.is_ranked and rule.name in self._found
        ]

    def _off(self, group: RuleGroup, numbers: Numbers) -> ir.Table | None:
        """The nodes whose ledgers do not add up to their values, each with the number of the rule."""
        places = self._summed(group)
        if not places:
            return None

        def make() -> ir.Table:
            valid, nodes = self._valid(group), self._nodes(group.hop.near)
            parts = [self._off_sets(place, valid, nodes) for place in places if self._rules[place].is_distinct]
            summed = [place for place in places if not self._rules[place].is_distinct]
            if not summed:
                return ibis.union(*parts) if len(parts) > 1 else parts[0]
            amounts = valid.select("id", **{f"r{place}": numbers.parse(valid[f"r{place}"]) for place in summed})
            totals = {f"r{place}": numbers.total(amounts[f"r{place}"]) for place in summed}
            sums = amounts.group_by(sum_id=amounts.id).agg(**totals)
            joined = self._job.engine.stage(nodes.left_join(sums, nodes.node_id == sums.sum_id))
            zero = numbers.literal("0")
            for place in summed:
                # A stored text in place of a number counts as zero, as it does in maintenance.
                stored = numbers.parse(joined[f"s{place}"]).fill_null(zero)
                off = joined.filter(stored != joined[f"r{place}"].fill_null(zero))
                parts.append(off.select(id=off.node_id, place=ibis.literal(place, "int16")))
            return parts[0] if len(parts) == 1 else ibis.union(*parts)

        return self._kept(f"off {group.name} {type(numbers).__name__}", make)

    def _off_sets(self, place: int, valid: ir.Table, nodes: ir.Table) -> ir.Table:
        """The nodes whose reached sets are not what their ledgers contribute."""
        known = valid.semi_join(nodes, valid.id == nodes.node_id)
        contributions = known.select("id", contributed=known[f"r{place}"])
        stored = nodes.select(id=nodes.node_id, reached=nodes[f"s{place}"])
        distinct = self._rules[place].distinct or "Count"
        off = unbalanced(contributions, stored, distinct, self._job.engine.stage)
        return off.select(id=off.id, place=ibis.literal(place, "int16"))

    def unbalanced(self, group: RuleGroup) -> Iterator[LedgerFault]:
        """The nodes whose ledgers do not add up to their values, whatever else was found, in the order of nodes.

        Every node transaction changes a node and its ledgers by the same amount. So if they differ at one instant,
        something else changed one of them. A node with changes that are not applied yet does not differ.
        """
        off = self._job.exactly(lambda numbers: self._off(group, numbers))
        if off is None:
            return
        for row in self._job.engine.fetch(self._job.engine.stage(off.select("id").distinct()), ["id"]):
            id = self._job.tables.id_of(group.hop.near, row["id"])
            yield LedgerFault(group.hop.near, id, "different")

    def left_ledgers(self, group: RuleGroup) -> Iterator[EdgeRef]:
        """The edges that do not exist, and whose ledgers say only that stamps of former generations are spent.

        They are no faults: such a ledger stays when its node is counted anew, or deleted after its edges.
        """
        if not self._has_stamps(group):
            return
        edges, ledgers, valid = self._edges(group), self._ledgers(group), self._alive(group)
        left = ledgers.filter(ledgers.spent.notnull() & ~self._says_more(group, ledgers))
        left = left.anti_join(edges, [left.edge_pk == edges.pk, left.edge_sk == edges.sk])
        left = left.anti_join(valid, [left.edge_pk == valid.edge_pk, left.edge_sk == valid.edge_sk])
        for fault in self._fetched(group, self._job.engine.stage(_fault(left, "left"))):
            if fault.ref is not None:
                yield fault.ref

    # --- arrivals ------------------------------------------------------------------------------

    def left_arrivals(self, group: RuleGroup) -> Iterator[Arrival]:
        """The arrivals beside the nodes of a rule group whose edge does not exist, or arrives at another node.

        They are no faults: a repair that stopped between an arrival and a look at its edge leaves one.
        """
        if not self._has_arrivals(group):
            return
        edges, rows = self._edges(group), self._beside(group.hop.near, self._arrivals_number)
        rows = rows.filter(rows.sk.startswith(self._arrivals_start(group)) & rows.edge_pk.notnull())
        left = rows.anti_join(edges, [rows.edge_pk == edges.pk, rows.edge_sk == edges.sk, rows.id == edges.id])
        left = left.select("node", "edge_pk", "edge_sk")
        for row in self._job.engine.fetch(self._job.engine.stage(left), ["node", "edge_pk", "edge_sk"]):
            key: Item = {self._pk: {"S": row["edge_pk"]}, self._sk: {"S": row["edge_sk"]}}
            # Whoever removes an arrival does not ask for the source, which this key may not name any more.
            yield Arrival(group.edge, key, "", row["node"])

    # --- ranks ---------------------------------------------------------------------------------

    def rank_faults(self, rule: Rule) -> Iterator[LedgerFault]:
        """The nodes with a rank that is missing, different from its ledger, or stray."""
        if not rule.is_ranked:
            return
        wrong = self._wrong(rule)
        wrong = wrong.filter(~((wrong.n > 0) & (wrong.is_told == 1))).select("n", "id")
        for row in self._job.engine.fetch(self._job.engine.stage(wrong), ["id"]):
            fault = "different rank" if row["n"] == 0 else "stray rank" if row["n"] > 0 else "missing rank"
            yield LedgerFault(rule.node, self._job.tables.id_of(rule.node, row["id"]), fault)

    def unnamed_ranks(self, rule: Rule) -> Iterator[tuple[Place, str]]:
        """The keys of ranks that no ledger names, and the node keys of their nodes."""
        if not rule.is_ranked or rule not in self._rules:
            return
        wrong = self._wrong(rule)
        found = wrong.filter((wrong.n > 0) & (wrong.is_told == 1)).select("pk", "sk")
        for row in self._job.engine.fetch(self._job.engine.stage(found), ["pk", "sk"]):
            yield (row["pk"], row["sk"]), row["pk"].removesuffix(OWN)

    def _wrong(self, rule: Rule) -> ir.Table:
        """The ranks that differ from the ledgers. `n` is positive for stray ranks, and negative for missing ones."""

        def make() -> ir.Table:
            counted = ibis.union(self._ranks(rule), self._ranked(rule))
            columns = {"pk": counted.pk.max(), "sk": counted.sk.max(), "is_told": counted.is_told.max()}
            held = counted.group_by("id", "stem", "held").agg(n=counted.n.sum(), **columns)
            held = held.filter(held.n != 0)
            columns = {"pk": held.pk.max(), "sk": held.sk.max(), "is_told": held.is_told.max()}
            return held.group_by("id", "stem").agg(n=held.n.sum(), **columns)

        return self._kept(f"ranks {rule.name}", make)

    def _ranks(self, rule: Rule) -> ir.Table:
        rows = self._numbered(self._ranks_number)
        mine = rows.sk.substr(len(self._rank_start)).re_search(rf"\A[^#]*#{escaped(rule.key)}#")
        node = rows.pk.substr(0, rows.pk.length() - len(OWN))
        rows = rows.filter(mine & self._is_node(rule.node, node)).mutate(node=node)
        length = rows.sk.length()
        token = rows.sk.substr(length - TOKEN_LENGTH, TOKEN_LENGTH)
        told = _named(rows.sk.substr(0, length - RANK_END), token, rows.home)
        return rows.select(
            id=self._id(rule.node, rows.node),
            stem=told.fill_null(rows.sk.substr(0, length - UNTOLD_END)),
            held=_held(*(rows[name] for name in shown_by(rule))),
            n=ibis.literal(1, "int64"),
            is_told=rows.home.notnull().cast("int64"),
            pk=rows.pk,
            sk=rows.sk,
        )

    def _ranked(self, rule: Rule) -> ir.Table:
        """The ranks that ledgers name for a rule: their keys, tokens and values."""
        ledgers = self._ledgers(self._group_of(rule))
        ranks = [f"r{self._rules.index(rule)}_{number}" for number in range(values_of_an_edge(rule))]
        columns = [f"{rank}{suffix}" for rank in ranks for suffix in ("", *(f"_{name}" for name in shown_by(rule)))]

        def of_generation(rows: ir.Table, generation: Any, token: str) -> ir.Table:
            tokens = {f"{rank}_token": rows[f"{rank}_{token}"] for rank in ranks}
            return rows.select("id", *columns, generation=generation, home=rows.sk, **tokens)

        # An edge that is already counted for the next generation has ranks in both generations.
        ahead = ledgers.filter(ledgers.generation == ledgers.node_next)
        both = ibis.union(
            of_generation(ledgers, ledgers.generation, TOKEN), of_generation(ahead, ahead.node_generation, FORMER)
        )
        parts = []
        for rank in ranks:
            stem = ibis.literal(self._rank_start) + both.generation + f"#{rule.key}#" + both[rank]
            part = both.select(
                id=both.id,
                stem=_named(stem, both[f"{rank}_token"], both.home).fill_null(stem),
                held=_held(*(both[f"{rank}_{name}"] for name in shown_by(rule))),
                n=ibis.literal(-1, "int64"),
                is_told=ibis.literal(0, "int64"),
                pk=ibis.null("string"),
                sk=ibis.null("string"),
            )
            parts.append(part.filter(part.stem.notnull()))
        return parts[0] if len(parts) == 1 else ibis.union(*parts)


def _is_found_by_arrivals(group: RuleGroup) -> bool:
    """Whether the edges of a rule group are found from their targets by arrivals, because its ledgers are elsewhere."""
    return group.reads_far and group.hop.direction == "into"


def _named(stem: Any, token: Any, home: Any) -> Any:
    """The stem of a rank's key, its token, and the ledger that names it, as one text; null if one of them is null."""
    return stem + "\n" + token + "\n" + home


def _held(*attributes: Any) -> Any:
    """The values of a rank as one text. A missing value makes a different text."""
    texts = [attribute.fill_null("") for attribute in attributes]
    return reduce(lambda text, more: text + " " + more, texts)


def _fault(rows: ir.Table, fault: str) -> ir.Table:
    """Rows as faults of one kind. Columns that they do not have are null."""
    names = ("edge_pk", "edge_sk", "far", "far_id")
    columns = {name: rows[name] if name in rows.columns else ibis.null("string") for name in names}
    return rows.select(id=rows.id, **columns, fault=ibis.literal(fault))
