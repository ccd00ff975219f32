"""What is computed against what is stored: the nodes whose stored value is another.

Values are compared inside the engine; only what differs comes out, as stored attributes, in the order of
the nodes' keys, so that whoever writes differences back can go on where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import ibis
import ibis.expr.types as ir
from orjson import dumps, loads

from adjoin.batch.aggregates import Computed
from adjoin.batch.engines import Want
from adjoin.batch.numbers import Numbers
from adjoin.batch.summaries import Summarized
from adjoin.batch.tables import Tables
from adjoin.batch.untyped import ranked
from adjoin.errors import InvalidValue
from adjoin.schema import NodeType
from adjoin.values import AttributeValue, decode

_log = logging.getLogger("adjoin.batch")
_WHOLE_BITS = 63
ZERO: AttributeValue = {"N": "0"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A node whose stored value is not what its edges say; None stands for no value."""

    rule: str
    kind: NodeType
    id: Any
    attribute: str
    stored: AttributeValue | None
    computed: AttributeValue | None


class Differences:
    """The differences of one rule, computed and kept by the engine; iterate for them, in the order of keys."""

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
    ) -> None:
        self.name, self.kind, self.attribute = name, kind, attribute
        self._tables, self._read, self._stored, self._is_list = tables, read, stored, is_list
        self._rows = tables.engine.stage(rows)

    def ids(self) -> ir.Table:
        """The nodes that may differ, by their ids as in keys; of lists all that have one."""
        return self._rows.select("id")

    def __iter__(self) -> Iterator[Difference]:
        order = ["id", "place"] if self._is_list else ["id"]
        fetched = self._tables.engine.fetch(self._rows, order)
        for text, rows in groupby(fetched, key=lambda row: row["id"]):
            some = list(rows)
            try:
                computed = self._computed(some)
            except InvalidValue as error:
                # It is about one node, and must not hold up all others.
                _log.warning("%s of %r cannot be stored: %s", self.name, text, error)
                computed = None
            stored = self._stored(some[0]["stored"])
            if _meaning(stored) != _meaning(computed):
                yield Difference(
                    self.name, self.kind, self._tables.id_of(self.kind, text), self.attribute, stored, computed
                )

    def _computed(self, rows: list[dict[str, Any]]) -> AttributeValue | None:
        if not self._is_list:
            return self._read(rows[0]["value"])
        elements = [self._read(row["value"]) for row in rows if row["value"] is not None]
        return {"L": elements} if elements else None


def as_json(value: Any, option: int = 0) -> bytes:
    """What was found, as JSON: numbers that it, or who reads it, might not hold to the last digit are text."""
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
    """What values are compared by: nothing, null and an empty list are one."""
    return None if attribute is None else decode(attribute) or (0 if "N" in attribute else None)


def of_rule(computed: Computed, want: Want, tables: Tables, numbers: Numbers) -> Differences:
    """The differences of an aggregate; nodes on circles have no value to compare with."""
    rule = computed.rule
    nodes = tables.table(rule.node)
    nodes = nodes.select(id=nodes.id, stored=nodes[tables.column(want)])
    if computed.circular is not None:
        nodes = nodes.anti_join(computed.circular, "id")
    values = computed.values
    is_list = rule.operation == "top"
    if is_list:
        place = ibis.row_number().over(group_by=values.id, order_by=ranked(values.value, computed.tag).desc())
        values = values.select(value_id=values.id, value=values.value, place=place)
    else:
        values = values.select(value_id=values.id, value=values.value)
    joined = nodes.left_join(values, nodes.id == values.value_id).drop("value_id")
    rows = joined if is_list else joined.filter(_differs(computed, joined, numbers))
    read, stored = _readers(computed, numbers)
    return Differences(rule.name, rule.node, rule.attribute, tables, rows, read, stored, is_list=is_list)


def _differs(computed: Computed, rows: ir.Table, numbers: Numbers) -> Any:
    value, stored = rows.value, rows.stored
    if computed.tag == "N":
        value = numbers.parse(value.cast("string")) if computed.is_whole else value
        stored = numbers.parse(stored)
        if computed.rule.operation == "sum":
            zero = numbers.literal("0")
            value, stored = value.fill_null(zero), stored.fill_null(zero)
    return ~value.identical_to(stored)


def _readers(
    computed: Computed, numbers: Numbers
) -> tuple[Callable[[Any], AttributeValue | None], Callable[[Any], AttributeValue | None]]:
    """How values are read as they were fetched, and how stored ones are."""
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


def of_summary(summarized: Summarized, want: Want, tables: Tables) -> Differences:
    """The differences of a batch summary, which every node has."""
    rule, values = summarized.rule, summarized.values
    nodes = tables.table(rule.node)
    nodes = nodes.select(node_id=nodes.id, stored=nodes[tables.column(want)])
    joined = values.join(nodes, values.id == nodes.node_id).drop("node_id")

    def read(value: Any) -> AttributeValue | None:
        return None if value is None else summarized.decode(value)

    name = f"{rule.node.label}.{rule.field}"
    attribute = rule.node.attributes[rule.field]
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
