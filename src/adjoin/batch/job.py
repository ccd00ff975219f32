"""A batch job: reads a source in one pass, computes every rule, and compares the results with the stored values.

Numbers are first computed as decimals of the engine. If one does not fit, the job runs again with numbers of any
size, which takes longer.

Values are compared inside the engine. Only the differences leave it, as stored attributes, in the order of the nodes'
keys, so that an interrupted write-back can continue where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

import ibis
import ibis.expr.types as ir
from orjson import OPT_PASSTHROUGH_DATACLASS, dumps, loads

from adjoin.batch.aggregates import Computed, computed, whose_order
from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.numbers import Narrow, Numbers, Wide, ranked
from adjoin.batch.reached import differing, numbers_of
from adjoin.batch.rule_book import RuleBook
from adjoin.batch.summaries import Summarized, summarized
from adjoin.batch.tables import TARGET, Tables, Wanted, attribute_want, merged
from adjoin.dataclass import dataclass
from adjoin.entity_types import NodeType
from adjoin.errors import InvalidValue, UnknownField
from adjoin.field_types import unknown_field
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.counting.entries import quotient
from adjoin.plans.repair import FieldValue
from adjoin.rules import Mean, Rule, Rules, SummaryRule
from adjoin.values import AttributeValue, decode, encode

# --- differences -------------------------------------------------------------------------------


_log = logging.getLogger("adjoin.batch")
_WHOLE_BITS = 63
ZERO: AttributeValue = {"N": "0"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A node, or an edge, whose stored value is not what the edges give. None means no value."""

    rule: str
    kind: NodeType
    """The class of the node, or of the nodes at the ends of the edge."""
    id: Any
    """The id of the node, or those of both ends of the edge."""
    attribute: str
    stored: AttributeValue | None
    computed: AttributeValue | None
    key: tuple[str, str] | None = None
    """The keys of the item of an edge; None for a node."""


class Differences:
    """The differences of one rule, computed and kept by the engine. Iterating yields them in the order of keys."""

    def __init__(
        self,
        name: str,
        kind: NodeType,
        attribute: str,
        tables: Tables,
        rows: ir.Table,
        read: Callable[[Any], AttributeValue | None],
        stored: Callable[[Any], AttributeValue | None],
        *,
        is_list: bool = False,
        who: NodeType | None = None,
    ) -> None:
        """`who` is the class of the nodes whose values a list has, if it says whose they are."""
        self.name, self.kind, self.attribute = name, kind, attribute
        self._tables, self._read, self._stored, self._is_list = tables, read, stored, is_list
        self._who = who
        self._rows = tables.engine.stage(rows)

    def ids(self) -> ir.Table:
        """The ids, as in keys, of the nodes that may differ. For lists, these are all nodes that have a list."""
        return self._rows.select("id")

    def __iter__(self) -> Iterator[Difference]:
        order = ["id", "place"] if self._is_list else ["id"]
        fetched = self._tables.engine.fetch(self._rows, order)
        for text, rows in groupby(fetched, key=lambda row: row["id"]):
            some = list(rows)
            try:
                computed = self._computed(some)
            except InvalidValue as error:
                # The error is about one node, and must not stop the job for all others.
                _log.warning("%s of %r cannot be stored: %s", self.name, text, error)
                computed = None
            stored = self._as_stored(some[0])
            if _meaning(stored) != _meaning(computed):
                yield Difference(
                    self.name, self.kind, self._tables.id_of(self.kind, text), self.attribute, stored, computed
                )

    def _as_stored(self, row: dict[str, Any]) -> AttributeValue | None:
        return self._stored(row["stored"])

    def _computed(self, rows: list[dict[str, Any]]) -> AttributeValue | None:
        if not self._is_list:
            return self._read(rows[0]["value"])
        elements = [self._element(row) for row in rows if row["value"] is not None]
        return {"L": elements} if elements else None

    def _element(self, row: dict[str, Any]) -> AttributeValue | None:
        value = self._read(row["value"])
        return value if self._who is None else {"L": [value, encode(self._tables.id_of(self._who, row["who"]))]}


def as_json(value: Any, option: int = 0) -> bytes:
    """A report as JSON. Integers that orjson, or a reader, cannot hold exactly are written as text, and so are refs."""
    option |= OPT_PASSTHROUGH_DATACLASS
    try:
        return dumps(value, default=str, option=option)
    except TypeError:
        return dumps(_told(value), default=str, option=option)


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    return str(value) if type(value) is int and value.bit_length() > _WHOLE_BITS else value


def _meaning(attribute: AttributeValue | None) -> Any:
    """The form in which values are compared: no value, null and an empty list are equal."""
    return None if attribute is None else decode(attribute) or (0 if "N" in attribute else None)


def of_rule(computed: Computed, want: Want, tables: Tables, numbers: Numbers) -> Differences:
    """The differences of an aggregate. Nodes on cycles are left out, because they have no value."""
    rule = computed.rule
    nodes = tables.table(rule.node)
    nodes = nodes.select(id=nodes.id, stored=nodes[tables.column(want)])
    if computed.circular is not None:
        nodes = nodes.anti_join(computed.circular, "id")
    values = computed.values
    is_list = rule.operation == "top"
    if is_list:
        order = [ranked(values.value, computed.tag).desc()]
        if rule.who is not None:
            order.append(whose_order(rule.who, values.who, numbers).desc())
        place = ibis.row_number().over(group_by=values.id, order_by=order)
        who = {} if rule.who is None else {"who": values.who}
        values = values.select(value_id=values.id, value=values.value, place=place, **who)
    else:
        values = values.select(value_id=values.id, value=values.value)
    joined = nodes.left_join(values, nodes.id == values.value_id).drop("value_id")
    # Engines do not compare whole lists exactly, so all nodes with a list are fetched, and Python compares them.
    rows = joined if is_list else joined.filter(_differs(computed, joined, numbers))
    read, stored = _readers(computed, numbers)
    return Differences(rule.name, rule.node, rule.attribute, tables, rows, read, stored, is_list=is_list, who=rule.who)


def _differs(computed: Computed, rows: ir.Table, numbers: Numbers) -> Any:
    value, stored = rows.value, rows.stored
    if computed.tag == "N":
        value = numbers.parse(value.cast("string")) if computed.is_whole else value
        stored = numbers.parse(stored)
        if computed.rule.operation == "sum":
            # A sum without edges is 0, and a node to which nothing was ever added has no attribute for it.
            zero = numbers.literal("0")
            value, stored = value.fill_null(zero), stored.fill_null(zero)
    return ~value.identical_to(stored)


def _readers(
    computed: Computed, numbers: Numbers
) -> tuple[Callable[[Any], AttributeValue | None], Callable[[Any], AttributeValue | None]]:
    """Two functions that turn fetched values into attributes: one for computed values, one for stored ones."""
    tag, is_sum = computed.tag, computed.rule.operation == "sum"

    def read(value: Any) -> AttributeValue | None:
        if value is None:
            return ZERO if is_sum else None
        if tag == "N":
            return {"N": str(int(value)) if computed.is_whole else numbers.told(value)}
        return _attribute(tag, value)

    if computed.rule.operation == "top":
        return read, lambda text: _attribute(None, text)
    return read, lambda text: ZERO if text is None and is_sum else _attribute(tag, text)


def _attribute(tag: str | None, text: Any) -> AttributeValue | None:
    if text is None:
        return None
    if tag is None:
        attribute: AttributeValue = loads(text)
        return attribute
    return {tag: text == "true"} if tag == "BOOL" else {tag: text}


class _MeanDifferences(Differences):
    """The differences of a mean: of its sum, and of the quotient that the node shows."""

    def _computed(self, rows: list[dict[str, Any]]) -> AttributeValue | None:
        total, number = self._read(rows[0]["value"]), {"N": str(int(rows[0]["number"] or 0))}
        return _both(total, quotient(total, number))

    def _as_stored(self, row: dict[str, Any]) -> AttributeValue | None:
        return _both(self._stored(row["stored"]), _attribute(None, row["mean"]))


def _both(total: AttributeValue | None, mean: AttributeValue | None) -> AttributeValue | None:
    """The sum and the quotient of a mean as one value, to compare and to show."""
    return {"M": {"sum": total or ZERO, "mean": mean or {"NULL": True}}}


def of_mean(mean: Mean, total: Computed, number: Computed, want: Want, tables: Tables, numbers: Numbers) -> Differences:
    """The differences of a mean. All its nodes are compared, because engines do not divide as exactly."""
    nodes = tables.table(mean.node)
    shown = attribute_want(mean.attribute, None)
    nodes = nodes.select(id=nodes.id, stored=nodes[tables.column(want)], mean=nodes[tables.column(shown)])
    if total.circular is not None:
        nodes = nodes.anti_join(total.circular, "id")
    sums, counts = total.values, number.values
    sums = sums.select(sum_id=sums.id, value=sums.value)
    counts = counts.select(count_id=counts.id, number=counts.value)
    rows = nodes.left_join(sums, nodes.id == sums.sum_id).drop("sum_id")
    rows = rows.left_join(counts, rows.id == counts.count_id).drop("count_id")
    read, stored = _readers(total, numbers)
    return _MeanDifferences(mean.total.name, mean.node, mean.total.attribute, tables, rows, read, stored)


class _SetDifferences(Differences):
    """The differences of a reached set, and of the number that the field shows of it."""

    def __init__(
        self, computed: Computed, tables: Tables, rows: ir.Table, off: ir.Table, numbers: Numbers, *, is_shown: bool
    ) -> None:
        rule = computed.rule
        self._off, self._is_shown, self._distinct, self._numbers = off, is_shown, rule.distinct, numbers
        super().__init__(rule.name, rule.node, rule.attribute, tables, rows, self._told, self._told)

    def _told(self, value: Any) -> AttributeValue | None:
        return None if value is None else {"N": str(value)}

    def ids(self) -> ir.Table:
        """The ids of the nodes whose sets differ. The audit of ledgers compares sets, and no shown numbers."""
        return self._off.select("id")

    def __iter__(self) -> Iterator[Difference]:
        for row in self._tables.engine.fetch(self._rows, ["id"]):
            computed, stored = self._number(row), self._told(row["shown"])
            if stored is None and self._distinct != "Avg":
                stored = ZERO
            id = self._tables.id_of(self.kind, row["id"])
            if self._is_shown and _meaning(stored) != _meaning(computed):
                yield Difference(self.name, self.kind, id, self.attribute, stored, computed)
            elif row["off"]:
                texts = {"S": f"another set of nodes: {row['off']} differ"}, {"S": "the set to which its edges lead"}
                yield Difference(self.name, self.kind, id, self.attribute, *texts)

    def _number(self, row: dict[str, Any]) -> AttributeValue | None:
        """What the field has to show."""
        number = {"N": str(int(row["number"] or 0))}
        if self._distinct == "Count":
            return number
        total = ZERO if row["total"] is None else {"N": self._numbers.told(row["total"])}
        return total if self._distinct == "Sum" else quotient(total, number)


def of_distinct(
    computed: Computed, far: Sequence[NodeType], want: Want, tables: Tables, numbers: Numbers
) -> Differences:
    """The differences of a reached set, and of what the field of the first hop shows of it.

    `far` are the classes of the nodes that may be reached.
    """
    rule, distinct = computed.rule, computed.rule.distinct or "Count"
    nodes = tables.table(rule.node)
    shown = ibis.null("string")
    if rule.field is not None:
        shown = nodes[tables.column(attribute_want(rule.shown_attribute, "N"))]
    nodes = nodes.select(id=nodes.id, reached=nodes[tables.column(want)], shown=shown)
    if computed.circular is not None:
        nodes = nodes.anti_join(computed.circular, "id")
    nodes, values = tables.engine.stage(nodes), tables.engine.stage(computed.values)
    off = tables.engine.stage(differing(tables.layout, far, values, nodes, distinct, numbers))
    made = numbers_of(values, distinct, numbers).rename(made_id="id")
    rows = nodes.select("id", "shown").left_join(made, nodes.id == made.made_id).drop("made_id")
    rows = rows.left_join(off, rows.id == off.id)
    rows = rows.select("id", "shown", "number", *(["total"] if distinct != "Count" else []), "off")
    return _SetDifferences(computed, tables, rows, off, numbers, is_shown=rule.field is not None)


class _EdgeDifferences(Differences):
    """The differences of a summary on edges."""

    def __init__(self, summarized: Summarized, want: Want, tables: Tables) -> None:
        rule, values = summarized.rule, summarized.values
        assert rule.on is not None
        edges = tables.table(rule.on)
        stored = edges.select(at=edges.pk, under=edges.sk, stored=edges[tables.column(want)])
        rows = values.join(stored, [values.pk == stored["at"], values.sk == stored.under]).drop("at", "under")
        name, attribute = summary_name(rule), rule.on.attributes[rule.field]
        self._decode = summarized.decode
        super().__init__(name, rule.node, attribute, tables, rows, self._value, lambda text: _attribute(None, text))

    def _value(self, value: Any) -> AttributeValue | None:
        return None if value is None else self._decode(value)

    def __iter__(self) -> Iterator[Difference]:
        for row in self._tables.engine.fetch(self._rows, ["pk", "sk"]):
            computed, stored = self._value(row["value"]), self._as_stored(row)
            if _meaning(stored) != _meaning(computed):
                ids = tuple(self._tables.id_of(self.kind, row[side]) for side in ("source", "target"))
                key = row["pk"], row["sk"]
                yield Difference(self.name, self.kind, ids, self.attribute, stored, computed, key)


def of_summary(summarized: Summarized, want: Want, tables: Tables) -> Differences:
    """The differences of a summary. Every node has a value."""
    rule, values = summarized.rule, summarized.values
    if rule.on is not None:
        return _EdgeDifferences(summarized, want, tables)
    nodes = tables.table(rule.node)
    nodes = nodes.select(node_id=nodes.id, stored=nodes[tables.column(want)])
    joined = values.join(nodes, values.id == nodes.node_id).drop("node_id")

    def read(value: Any) -> AttributeValue | None:
        return None if value is None else summarized.decode(value)

    name, attribute = summary_name(rule), rule.holder.attributes[rule.field]
    return Differences(
        name,
        rule.node,
        attribute,
        tables,
        joined,
        read,
        lambda text: _attribute(None, text),
        is_list=summarized.is_list,
    )


# --- the job -----------------------------------------------------------------------------------


T = TypeVar("T")


class Job:
    """The rules and summaries of a graph, computed from a source and compared with its stored values."""

    def __init__(
        self,
        engine: Engine,
        source: Source,
        layout: BoundLayout,
        rules: Rules,
        *,
        only: Collection[str] | None = None,
        extra: Wanted | None = None,
        keys: Collection[type[Any]] = (),
    ) -> None:
        """`only` names fields, such as "CUSTOMER.owed". `extra` and `keys` are read besides what the rules need."""
        self.engine, self.layout, self._rules = engine, layout, rules
        self.book = RuleBook(rules, layout)
        # A path has a rule for each hop. People name the field, and the hidden rules are computed with it.
        named = {rule.name.partition(":")[0] for rule in rules.rules} | {summary_name(each) for each in rules.summaries}
        for name in only or ():
            if name not in named:
                raise UnknownField(unknown_field("what this graph computes", name, sorted(named)))
        self.rules: list[Rule] = [rule for rule in rules.rules if only is None or rule.name.partition(":")[0] in only]
        self.summaries: list[SummaryRule] = [
            each for each in rules.summaries if only is None or summary_name(each) in only
        ]
        needed = self.book.needed(self.rules)
        stored = [(rule.node.model, [self.book.stored_want(rule)]) for rule in self.rules]
        stored += [(each.node.model, [attribute_want(each.attribute, None)]) for each in rules.means]
        stored += [(each.node.model, [attribute_want(each.shown_attribute, "N")]) for each in rules.shown_sets]
        summed = [(each.holder.model, [_summary_want(each)]) for each in self.summaries]
        summed += [(each.node.model, []) for each in self.summaries]
        edges = [(each.model, [TARGET]) for rule in self.summaries for each in (rule.edge, rule.on) if each]
        wanted = merged(self.book.wanted(needed), stored, summed, edges, (extra or {}).items())
        # A symmetric edge has two items. By its keys, the job tells which of them stands for the edge.
        halves = [each.edge.model for each in self.summaries if each.edge.symmetric]
        halves += [each.on.model for each in self.summaries if each.on is not None]
        self.tables = Tables(engine, source, layout, wanted, keys=[*keys, *halves])
        self._numbers: Numbers = Narrow()
        self._computed: dict[str, Computed] | None = None

    def exactly(self, work: Callable[[Numbers], T]) -> T:
        """The result of some work with numbers. If a number does not fit, the work runs again with wide numbers."""
        overflows: tuple[type[Exception], ...] = (OverflowError, *self.engine.overflows)
        try:
            return work(self._numbers)
        except overflows:
            if isinstance(self._numbers, Wide):
                raise
        # Wide numbers are text that Python adds up, so they take longer. Once one is needed, all later work uses
        # them.
        self._numbers = Wide()
        self._computed = None
        return work(self._numbers)

    @property
    def numbers(self) -> Numbers:
        """The form of numbers in use."""
        return self._numbers

    def computed(self, numbers: Numbers) -> dict[str, Computed]:
        if self._computed is None:
            self._computed = computed(self._rules, self.tables, numbers, [rule.name for rule in self.rules])
        return self._computed

    def aggregate(self, rule: Rule) -> tuple[Differences, Computed]:
        """The differences of one aggregate, and its computed values."""

        def work(numbers: Numbers) -> tuple[Differences, Computed]:
            every = self.computed(numbers)
            found, want = every[rule.name], self.book.stored_want(rule)
            if rule.is_distinct:
                return of_distinct(found, self.book.reached_by(rule), want, self.tables, numbers), found
            mean = next((each for each in self._rules.means if each.total.name == rule.name), None)
            if mean is not None:
                return of_mean(mean, found, every[mean.number.name], want, self.tables, numbers), found
            return of_rule(found, want, self.tables, numbers), found

        return self.exactly(work)

    def summary(self, rule: SummaryRule) -> Differences:
        """The differences of one summary."""

        def work(numbers: Numbers) -> Differences:
            found: Summarized = summarized(rule, self.tables, numbers)
            return of_summary(found, _summary_want(rule), self.tables)

        return self.exactly(work)


def summary_name(rule: SummaryRule) -> str:
    return f"{rule.holder.label}.{rule.field}"


def _summary_want(rule: SummaryRule) -> Want:
    return attribute_want(rule.holder.attributes[rule.field], None)


def field_value(layout: BoundLayout, rule: SummaryRule, difference: Difference) -> FieldValue:
    """What has to be stored to correct a difference of a summary."""
    if rule.on is None or difference.key is None:
        return rule.node, difference.id, rule.field, difference.computed
    key = {name: {"S": text} for name, text in zip(layout.start_names(None), difference.key, strict=True)}
    return rule.on, key, rule.field, difference.computed
