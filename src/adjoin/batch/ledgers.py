"""What maintenance took down, audited: ledgers against edges and aggregates, and ranks against ledgers.

| fault of a ledger | what is wrong |
|---|---|
| stray | its edge is not there |
| missing | an edge that adds something has none that counts |
| outdated | it was written for other rules than the class has now, where it does not name each by what it declares |
| different | those of a node do not add up to what the node has, though that is what its edges say |

That an edge adds something is told here where no `where=` decides; where one does, the sums tell. Ranks are those
that ledgers name, and hold the same. One that no ledger names counts for nobody: it is about to be named, or left
over. Only one without a token counts by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import ibis
import ibis.expr.types as ir

from adjoin.batch.columns import TARGET
from adjoin.batch.differences import Differences
from adjoin.batch.engines import Source, Want
from adjoin.batch.job import Job
from adjoin.batch.keys import escaped, matches, part_text
from adjoin.batch.numbers import Numbers
from adjoin.errors import InvalidItem
from adjoin.layouts.interface import LIFE, NEXT, BoundLayout
from adjoin.layouts.ledgers import RANK_END, TOKEN_LENGTH, UNTOLD_END
from adjoin.plans.batches import Place
from adjoin.plans.maintenance.contributions import BY, RANK, VALUE
from adjoin.plans.maintenance.ledger import (
    APPLIED,
    FORMER,
    LENGTH,
    RULES,
    SHORTENED,
    TOKEN,
    life_want,
    rule_want,
)
from adjoin.plans.maintenance.rank_items import HOME
from adjoin.plans.maintenance.ranks import values_of_an_edge
from adjoin.plans.maintenance.references import EDGE, FAR, NEAR, EdgeRef
from adjoin.rules import Account, Rule
from adjoin.schema import NodeType
from adjoin.values import Item

BESIDE = "#="


def wanted(layout: BoundLayout) -> dict[type[Any], set[Want]]:
    """What has to be read of each class, besides what the rules are computed from."""
    found: dict[type[Any], set[Want]] = {}
    for account in layout.rules.accounts:
        found.setdefault(account.edge.model, set()).add(TARGET)
        found.setdefault(account.hop.near.model, set()).update({(LIFE, "S"), (NEXT, "S")})
    return found


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """A node whose ledgers or ranks are not what they should be."""

    kind: NodeType
    id: Any
    fault: str
    ref: EdgeRef | None = None
    """The edge that it is about, if it is about one."""

    @property
    def is_rank(self) -> bool:
        """Whether it is about a rank, which no value need show."""
        return self.fault.endswith("rank")

    def shown(self) -> dict[str, Any]:
        edge = {} if self.ref is None else {"edge": tuple(part["S"] for part in self.ref.key.values())}
        return {"node": self.id, **edge, "fault": self.fault}


class LedgerAudit:
    """The ledgers and ranks of a source, brought together once."""

    def __init__(self, job: Job, source: Source, found: Mapping[str, Differences]) -> None:
        """`found` has what differs, by rule."""
        self._job, self._layout, self._source, self._found = job, job.layout, source, found
        self._staged: dict[str, ir.Table] = {}
        names = {rule.name for rule in job.rules}
        self.accounts = [
            account for account in self._layout.rules.accounts if names & {rule.name for rule in account.rules}
        ]
        self._names = names
        definition = self._layout.definition
        assert definition.sort is not None
        self._pk, self._sk = definition.partition.name, definition.sort.name
        self._rank_start = self._layout.ledgers.all_ranks("")[1].operands[0]["S"]

    # --- reading -------------------------------------------------------------------------------

    @cached_property
    def _wants(self) -> dict[str, Want]:
        wants: dict[str, Want] = {
            "pk": (self._pk, "S"),
            "sk": (self._sk, "S"),
            "near": (NEAR, "S"),
            "far": (FAR, "S"),
            "edge_pk": (EDGE, "M", self._pk, "S"),
            "edge_sk": (EDGE, "M", self._sk, "S"),
            "life": (LIFE, "S"),
            "mark": (RULES, "S"),
            "length": (LENGTH, "N"),
            "short_pk": (SHORTENED, "M", self._pk, "S"),
            "short_sk": (SHORTENED, "M", self._sk, "S"),
            # Whole attributes, because what is put in order may be of any type.
            VALUE: (VALUE,),
            BY: (BY,),
            "home": (HOME, "S"),
        }
        for account in self.accounts:
            if not account.reads_far:
                wants[f"life_{account.part}"] = life_want(account)
        for place, rule in enumerate(self._rules):
            account = self._account_of(rule)
            start: Want = (APPLIED, "M", rule.key) if account.reads_far else rule_want(account, rule)
            if rule.operation == "sum":
                wants[f"r{place}"] = (*start, "N")
            else:
                for number in range(values_of_an_edge(rule)):
                    entry: Want = (*start, "L", str(number), "M")
                    wants[f"r{place}_{number}"] = (*entry, RANK, "S")
                    wants |= {f"r{place}_{number}_{name}": (*entry, name) for name in _shown_by(rule)}
                    wants |= {f"r{place}_{number}_{name}": (*entry, name, "S") for name in (TOKEN, FORMER)}
        return wants

    def _account_of(self, rule: Rule) -> Account:
        return next(account for account in self.accounts if rule in account.rules)

    @cached_property
    def _rules(self) -> list[Rule]:
        return [rule for account in self.accounts for rule in account.rules if rule.name in self._names]

    @cached_property
    def _rows(self) -> ir.Table:
        """Ledgers and ranks, told apart by a number: that of an account for ledgers beside far ends."""
        engine = self._job.engine
        read = engine.rows(self._source, list(self._wants.values()))
        rows = read.select(**{name: read[f"w{place}"] for place, name in enumerate(self._wants)})
        cases = [
            (rows.sk.startswith(self._start(account)) & self._is_node(account.hop.near, rows.near), place)
            for place, account in enumerate(self.accounts)
            if account.reads_far
        ]
        cases.append((rows.sk.startswith(self._rank_start), self._ranks_number))
        cases.append((rows.sk.startswith(self._layout.ledgers.edge_start), self._edges_number))
        rows = rows.mutate(account=ibis.cases(*((test, ibis.literal(place, "int16")) for test, place in cases)))
        return engine.stage(rows.filter(rows.account.notnull() & rows.pk.endswith(BESIDE)))

    @property
    def _ranks_number(self) -> int:
        return len(self.accounts)

    @property
    def _edges_number(self) -> int:
        return len(self.accounts) + 1

    def _start(self, account: Account) -> str:
        text: str = self._layout.ledgers.ledgers(account.name, "")[1].operands[0]["S"]
        return text

    def _of_account(self, account: Account) -> ir.Table:
        """The ledgers of an account: the life of each, the key of its edge, and the id of the node it counts for."""
        if account.reads_far:
            rows = self._rows.filter(self._rows.account == self.accounts.index(account))
            return rows.mutate(id=self._id(account.hop.near, rows.near))
        rows = self._rows.filter(self._rows.account == self._edges_number)
        beside = rows.pk.substr(0, rows.pk.length() - len(BESIDE))
        text = rows.sk.substr(len(self._layout.ledgers.edge_start))
        if account.is_at_target:
            length = rows.length.cast("int64")
            end = text.length() - length
            partition, sort = text.substr(end, length), text.substr(0, end - 1)
        else:
            partition, sort = beside, text
        rows = rows.mutate(
            life=rows[f"life_{account.part}"],
            home=beside,
            edge_pk=rows.short_pk.fill_null(partition),
            edge_sk=rows.short_sk.fill_null(sort),
        )
        templates = self._layout.key_templates(account.edge)
        is_of = matches(templates.partition, rows.edge_pk) & matches(templates.sort, rows.edge_sk)
        rows = rows.filter(rows.life.notnull() & is_of.fill_null(False))
        near = rows.edge_pk if account.hop.direction == "out" else rows.home
        return rows.mutate(id=self._id(account.hop.near, near))

    def _is_node(self, kind: NodeType, text: Any) -> Any:
        return matches(self._layout.key_templates(kind).partition, text).fill_null(False)

    def _id(self, kind: NodeType, text: Any) -> Any:
        return part_text(self._layout.key_templates(kind).partition, "id", text)

    def _kept(self, name: str, make: Callable[[], ir.Table]) -> ir.Table:
        """A table that is made when it is first asked for, and kept: what is made of it is a small expression then."""
        if name not in self._staged:
            self._staged[name] = self._job.engine.stage(make())
        return self._staged[name]

    def _nodes(self, kind: NodeType) -> ir.Table:
        """The nodes of a class: their lives, and what they have of each sum."""
        tables = self._job.tables

        def make() -> ir.Table:
            nodes = tables.table(kind)
            sums = {
                f"s{place}": nodes[tables.column(self._job.book.stored_want(rule))]
                for place, rule in enumerate(self._rules)
                if rule.operation == "sum" and rule.node is kind
            }
            life, next = (nodes[tables.column((name, "S"))] for name in (LIFE, NEXT))
            return nodes.select(node_id=nodes.id, node_life=life, node_next=next, **sums)

        return self._kept(f"nodes {kind.label}", make)

    def _ledgers(self, account: Account) -> ir.Table:
        """The ledgers of an account, and the lives of their nodes."""

        def make() -> ir.Table:
            rows = self._of_account(account)
            nodes = self._nodes(account.hop.near).select("node_id", "node_life", "node_next")
            return rows.left_join(nodes, rows.id == nodes.node_id)

        return self._kept(f"ledgers {account.name}", make)

    def _valid(self, account: Account) -> ir.Table:
        """The ledgers that count in the present lives of their nodes."""
        ledgers = self._ledgers(account)
        return ledgers.filter((ledgers.life == ledgers.node_life) | (ledgers.life == ledgers.node_next))

    # --- ledgers -------------------------------------------------------------------------------

    def faults(self, account: Account) -> Iterator[LedgerFault]:
        """What is wrong with the ledgers of an account, in the order of nodes."""
        table = self._job.exactly(lambda numbers: self._job.engine.stage(self._faults(account, numbers)))
        for row in self._job.engine.fetch(table, ["id", "edge_pk", "edge_sk"]):
            id = self._job.tables.id_of(account.hop.near, row["id"])
            yield LedgerFault(account.hop.near, id, row["fault"], self._ref(account, id, row))

    def _ref(self, account: Account, id: Any, row: dict[str, Any]) -> EdgeRef | None:
        if row["edge_pk"] is None:
            return None
        key: Item = {self._pk: {"S": row["edge_pk"]}, self._sk: {"S": row["edge_sk"]}}
        near, far = self._layout.node_text(account.hop.near, id), row["far"]
        if far is None and row["far_id"] is not None:
            target = self._job.tables.id_of(account.hop.far, row["far_id"])
            far = self._layout.node_text(account.hop.far, target)
        if far is None:
            # The ledger of an edge that is gone lies beside one end, and the key of the edge tells the other.
            far = row["edge_pk"] if account.hop.direction == "into" else self._target(account, key)
        return EdgeRef(account, key, near, far)

    def _target(self, account: Account, key: Item) -> str:
        try:
            return self._layout.ends(account.edge, key)[1]
        except InvalidItem:
            # Nothing at the target is counted, then; the ledger is found without it.
            return ""

    def _faults(self, account: Account, numbers: Numbers) -> ir.Table:
        edges, ledgers, valid = self._edges(account), self._ledgers(account), self._valid(account)
        stray = ledgers.anti_join(edges, [ledgers.edge_pk == edges.pk, ledgers.edge_sk == edges.sk])
        parts = [_fault(stray, "stray")]
        if account.reads_far:
            old = valid.semi_join(edges, [valid.edge_pk == edges.pk, valid.edge_sk == edges.sk])
            old = old.filter(~old.mark.identical_to(ibis.literal(account.mark)))
            parts.append(_fault(old, "outdated"))
        if (counted := self._counted(account, edges)) is not None:
            missing = counted.anti_join(valid, [counted.pk == valid.edge_pk, counted.sk == valid.edge_sk])
            missing = missing.mutate(edge_pk=missing.pk, edge_sk=missing.sk)
            parts.append(_fault(missing, "missing"))
        told = self._job.engine.stage(ibis.union(*parts) if len(parts) > 1 else parts[0])
        return ibis.union(told, *self._different(account, told, numbers))

    def _edges(self, account: Account) -> ir.Table:
        """The edges of an account with their keys and ends, and what rules without a condition read of them."""

        def make() -> ir.Table:
            edges = self._job.tables.table(account.edge)
            columns = {name: edges[name] for name in self._told_by(account)}
            near, far = edges[account.hop.near_end], edges[account.hop.far_end]
            return edges.select("pk", "sk", id=near, far_id=far, **columns)

        return self._kept(f"edges {account.name}", make)

    def _told_by(self, account: Account) -> list[str]:
        wants = [want for rule in self._sure(account) for want in self._stored(rule) if want is not None]
        return list(dict.fromkeys(self._job.tables.column(want) for want in wants))

    def _sure(self, account: Account) -> list[Rule]:
        """The rules of an account without a condition, which only look at the edge."""
        sure = [rule for rule in account.rules if rule.where is None and rule.name in self._names]
        return [] if account.reads_far else sure

    def _stored(self, rule: Rule) -> list[Want | None]:
        terms = (*rule.terms, *((rule.by,) if rule.by else ()))
        return [self._job.book.term_want(rule, term) for term in terms]

    def _counted(self, account: Account, edges: ir.Table) -> ir.Table | None:
        """The edges of nodes that are there of which it is known that they add something, or need a ledger anyway."""
        nodes = self._nodes(account.hop.near)
        edges = edges.semi_join(nodes, edges.id == nodes.node_id)
        sure = self._sure(account)
        if account.reads_far or any(rule.terms[0].at == "one" for rule in sure):
            return edges
        tests = []
        for rule in sure:
            wants = self._stored(rule)
            if None not in wants:
                columns = (edges[self._job.tables.column(want)].notnull() for want in wants if want is not None)
                tests.append(reduce(and_, columns))
        return edges.filter(reduce(or_, tests)) if tests else None

    def _different(self, account: Account, told: ir.Table, numbers: Numbers) -> Iterator[ir.Table]:
        """The nodes whose ledgers do not add up to what they have, apart from those that were told."""
        off = self._off(account, numbers)
        if off is None:
            return
        off = off.anti_join(told, off.id == told.id)
        for place in self._summed(account):
            some = off.filter(off.place == place)
            found = self._found[self._rules[place].name].ids()
            yield _fault(some.anti_join(found, some.id == found.id), "different")

    def _summed(self, account: Account) -> list[int]:
        """The places of the rules of an account that add up."""
        return [
            place
            for place, rule in enumerate(self._rules)
            if rule in account.rules and rule.operation == "sum" and rule.name in self._found
        ]

    def _off(self, account: Account, numbers: Numbers) -> ir.Table | None:
        """The nodes whose ledgers do not add up to what they have, each with the places of those rules."""
        places = self._summed(account)
        if not places:
            return None

        def make() -> ir.Table:
            valid = self._valid(account)
            amounts = valid.select("id", **{f"r{place}": numbers.parse(valid[f"r{place}"]) for place in places})
            totals = {f"r{place}": numbers.total(amounts[f"r{place}"]) for place in places}
            sums = amounts.group_by(sum_id=amounts.id).agg(**totals)
            nodes = self._nodes(account.hop.near)
            joined = self._job.engine.stage(nodes.left_join(sums, nodes.node_id == sums.sum_id))
            zero = numbers.literal("0")
            parts = []
            for place in places:
                # Text where a number should be counts as nothing, as it does for who adds to it.
                stored = numbers.parse(joined[f"s{place}"]).fill_null(zero)
                off = joined.filter(stored != joined[f"r{place}"].fill_null(zero))
                parts.append(off.select(id=off.node_id, place=ibis.literal(place, "int16")))
            return parts[0] if len(parts) == 1 else ibis.union(*parts)

        return self._kept(f"off {account.name} {type(numbers).__name__}", make)

    def unbalanced(self, account: Account) -> Iterator[LedgerFault]:
        """The nodes whose ledgers do not add up to what they have, whatever else was found, in the order of nodes.

        Every transaction changes a node and its ledgers alike. So this tells, of one instant, that somebody else
        has changed one of them; a node that is only waiting for its changes to be applied is none of these.
        """
        off = self._job.exactly(lambda numbers: self._off(account, numbers))
        if off is None:
            return
        for row in self._job.engine.fetch(self._job.engine.stage(off.select("id").distinct()), ["id"]):
            id = self._job.tables.id_of(account.hop.near, row["id"])
            yield LedgerFault(account.hop.near, id, "different")

    # --- ranks ---------------------------------------------------------------------------------

    def rank_faults(self, rule: Rule) -> Iterator[LedgerFault]:
        """The nodes without values in order that a ledger has, or with another, or with one that counts for nothing."""
        if rule.operation == "sum":
            return
        wrong = self._wrong(rule)
        wrong = wrong.filter(~((wrong.n > 0) & (wrong.is_told == 1))).select("n", "id")
        for row in self._job.engine.fetch(self._job.engine.stage(wrong), ["id"]):
            fault = "different rank" if row["n"] == 0 else "stray rank" if row["n"] > 0 else "missing rank"
            yield LedgerFault(rule.node, self._job.tables.id_of(rule.node, row["id"]), fault)

    def unnamed_ranks(self, rule: Rule) -> Iterator[tuple[Place, str]]:
        """The keys of ranks that no ledger names, and the partition keys of their nodes."""
        if rule.operation == "sum" or rule not in self._rules:
            return
        wrong = self._wrong(rule)
        found = wrong.filter((wrong.n > 0) & (wrong.is_told == 1)).select("pk", "sk")
        for row in self._job.engine.fetch(self._job.engine.stage(found), ["pk", "sk"]):
            yield (row["pk"], row["sk"]), row["pk"].removesuffix(BESIDE)

    def _wrong(self, rule: Rule) -> ir.Table:
        """The ranks that are not what ledgers have: more than 0 of them where there are too many."""

        def make() -> ir.Table:
            counted = ibis.union(self._ranks(rule), self._ranked(rule))
            told = {"pk": counted.pk.max(), "sk": counted.sk.max(), "is_told": counted.is_told.max()}
            held = counted.group_by("id", "stem", "held").agg(n=counted.n.sum(), **told)
            held = held.filter(held.n != 0)
            told = {"pk": held.pk.max(), "sk": held.sk.max(), "is_told": held.is_told.max()}
            return held.group_by("id", "stem").agg(n=held.n.sum(), **told)

        return self._kept(f"ranks {rule.name}", make)

    def _ranks(self, rule: Rule) -> ir.Table:
        rows = self._rows.filter(self._rows.account == self._ranks_number)
        mine = rows.sk.substr(len(self._rank_start)).re_search(rf"\A[^#]*#{escaped(rule.key)}#")
        node = rows.pk.substr(0, rows.pk.length() - len(BESIDE))
        rows = rows.filter(mine & self._is_node(rule.node, node)).mutate(node=node)
        length = rows.sk.length()
        token = rows.sk.substr(length - TOKEN_LENGTH, TOKEN_LENGTH)
        told = _named(rows.sk.substr(0, length - RANK_END), token, rows.home)
        return rows.select(
            id=self._id(rule.node, rows.node),
            stem=told.fill_null(rows.sk.substr(0, length - UNTOLD_END)),
            held=_held(*(rows[name] for name in _shown_by(rule))),
            n=ibis.literal(1, "int64"),
            is_told=rows.home.notnull().cast("int64"),
            pk=rows.pk,
            sk=rows.sk,
        )

    def _ranked(self, rule: Rule) -> ir.Table:
        """What ledgers have for a rule, as the keys of ranks with what names them, and what those hold."""
        ledgers = self._ledgers(self._account_of(rule))
        ranks = [f"r{self._rules.index(rule)}_{number}" for number in range(values_of_an_edge(rule))]
        columns = [f"{rank}{suffix}" for rank in ranks for suffix in ("", *(f"_{name}" for name in _shown_by(rule)))]

        def of_life(rows: ir.Table, life: Any, token: str) -> ir.Table:
            tokens = {f"{rank}_token": rows[f"{rank}_{token}"] for rank in ranks}
            return rows.select("id", *columns, life=life, home=rows.sk, **tokens)

        # What is counted ahead of the next life has its ranks in both.
        ahead = ledgers.filter(ledgers.life == ledgers.node_next)
        both = ibis.union(of_life(ledgers, ledgers.life, TOKEN), of_life(ahead, ahead.node_life, FORMER))
        parts = []
        for rank in ranks:
            stem = ibis.literal(self._rank_start) + both.life + f"#{rule.key}#" + both[rank]
            part = both.select(
                id=both.id,
                stem=_named(stem, both[f"{rank}_token"], both.home).fill_null(stem),
                held=_held(*(both[f"{rank}_{name}"] for name in _shown_by(rule))),
                n=ibis.literal(-1, "int64"),
                is_told=ibis.literal(0, "int64"),
                pk=ibis.null("string"),
                sk=ibis.null("string"),
            )
            parts.append(part.filter(part.stem.notnull()))
        return parts[0] if len(parts) == 1 else ibis.union(*parts)


def _named(stem: Any, token: Any, home: Any) -> Any:
    """The key of a rank up to its end, the token, and the ledger that names it; nothing if one of them is nothing."""
    return stem + "\n" + token + "\n" + home


def _shown_by(rule: Rule) -> tuple[str, ...]:
    """The attributes of a rank that a node shows."""
    return (VALUE, BY) if rule.operation == "latest" else (VALUE,)


def _held(*attributes: Any) -> Any:
    """What a rank holds, as one text; nothing where it should hold something is another text."""
    texts = [attribute.fill_null("") for attribute in attributes]
    return reduce(lambda text, more: text + " " + more, texts)


def _fault(rows: ir.Table, fault: str) -> ir.Table:
    """Rows as faults of one sort; what they do not tell is null."""
    names = ("edge_pk", "edge_sk", "far", "far_id")
    told = {name: rows[name] if name in rows.columns else ibis.null("string") for name in names}
    return rows.select(id=rows.id, **told, fault=ibis.literal(fault))
