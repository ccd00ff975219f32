"""Reached sets in an engine: stored ones as rows, computed ones compared with them, and what ledgers add up to.

A computed reached set has one row for each node that is reached: the near node as `id`, the `label` of the class and
the id of the reached node (`who`), its `value` if a field is added up, and the number of `edges` over which it is
reached. The rows of a stored set come from its texts (see `adjoin.reached_sets`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ibis
import ibis.expr.types as ir
from orjson import loads

from adjoin.batch.keys import id_text, matches, node_template
from adjoin.batch.numbers import Numbers
from adjoin.entity_types import NodeType
from adjoin.errors import InvalidValue
from adjoin.layouts.bound import BoundLayout
from adjoin.reached_sets import DistinctOf, edges_by_text, unpacked_texts
from adjoin.values import canonical_number

KEYS = ["id", "label", "who", "value"]
"""The columns that tell the rows of one reached set apart."""
_UNREADABLE = "1  "
"""Stands for a set that another program wrote: one edge to a node without a key, which is not there."""


@ibis.udf.scalar.python(signature=(("string", "boolean"), "array<string>"))
def adjoin_reached(stored: str, has_numbers: bool) -> list[str] | None:
    """The texts of a stored reached set, each after the number of edges and a space."""
    if stored is None:
        return None
    try:
        edges = edges_by_text(loads(stored))
        return [f"{number} {_split(text, has_numbers)}" for text, number in edges.items()]
    except (InvalidValue, ValueError):
        return [_UNREADABLE]


@ibis.udf.scalar.python(signature=(("string", "boolean"), "array<string>"))
def adjoin_contributed(stored: str, has_numbers: bool) -> list[str] | None:
    """The texts that a ledger contributes, in the same form."""
    if stored is None:
        return None
    try:
        return [f"1 {_split(text, has_numbers)}" for text in unpacked_texts({"B": stored})]
    except (InvalidValue, ValueError):
        return [_UNREADABLE]


def _split(text: str, has_numbers: bool) -> str:
    """A text with a number, which may be empty, and a space before the node key."""
    if not has_numbers:
        return f" {text}"
    number, space, node_key = text.partition(" ")
    if not space or canonical_number(number) != number:
        raise ValueError
    return f"{number} {node_key}"


# --- computed and stored sets ------------------------------------------------------------------


def united(parts: list[ir.Table]) -> ir.Table:
    """The reached sets from rows of what single edges contribute; `edges` is 1 in each of them, or a number."""
    rows = parts[0] if len(parts) == 1 else ibis.union(*parts)
    return rows.group_by(KEYS).agg(edges=rows.edges.sum().cast("int64"))


def differing(
    layout: BoundLayout,
    far: Iterable[NodeType],
    computed: ir.Table,
    nodes: ir.Table,
    distinct: DistinctOf,
    numbers: Numbers,
) -> ir.Table:
    """The nodes whose stored sets, in the column `reached`, are not the computed ones: `id`, and how many texts `off`.

    `far` are the classes of the nodes that may be reached.
    """
    has_numbers = ibis.literal(distinct != "Count")
    rows = nodes.select(id=nodes.id, text=adjoin_reached(nodes.reached, has_numbers).unnest())
    amount, rest = _cut(rows.text)
    rows = rows.select(id=rows.id, amount=amount, rest=rest)
    number, key = _cut(rows.rest)
    rows = rows.select(id=rows.id, amount=rows.amount, number=number, key=key)
    classes = [(matches(node_template(layout, kind), rows.key).fill_null(False), kind) for kind in far]
    stored = rows.select(
        id=rows.id,
        label=_chosen((test, ibis.literal(kind.label)) for test, kind in classes),
        who=_chosen((test, id_text(kind, "", [(node_template(layout, kind), rows.key)])) for test, kind in classes),
        value=ibis.null("string") if distinct == "Count" else numbers.parse(rows.number.nullif("")),
        edges=-rows.amount.cast("int64"),
    )
    known = nodes.select(node_id=nodes.id)
    wanted = computed.semi_join(known, computed.id == known.node_id).select(*KEYS, "edges")
    both = ibis.union(wanted, stored.cast(dict(wanted.schema().items())))
    left = both.group_by(KEYS).agg(edges=both.edges.sum())
    left = left.filter(left.edges != 0)
    return left.group_by("id").agg(off=left.count())


def _cut(text: Any) -> tuple[Any, Any]:
    """A text before and after its first space."""
    place = text.find(" ")
    return text.substr(0, place), text.substr(place + 1)


def _chosen(cases: Iterator[tuple[Any, Any]]) -> Any:
    return ibis.cases(*cases, else_=ibis.null("string"))


def numbers_of(computed: ir.Table, distinct: DistinctOf, numbers: Numbers) -> ir.Table:
    """What fields show of computed sets: `id`, the number of nodes as `number`, and the sum of values as `total`."""
    sums = {} if distinct == "Count" else {"total": numbers.total(computed.value)}
    return computed.group_by("id").agg(number=computed.count().cast("int64"), **sums)


# --- ledgers -----------------------------------------------------------------------------------


def unbalanced(
    contributions: ir.Table, nodes: ir.Table, distinct: DistinctOf, kept: Callable[[ir.Table], ir.Table]
) -> ir.Table:
    """The ids of nodes whose sets in the column `reached` are not what their ledgers contribute, in `contributed`."""
    has_numbers = ibis.literal(distinct != "Count")
    parts = []
    for rows, column, function, sign in (
        (contributions, "contributed", adjoin_contributed, 1),
        (nodes, "reached", adjoin_reached, -1),
    ):
        texts = rows.select(id=rows.id, text=function(rows[column], has_numbers).unnest())
        amount, text = _cut(texts.text)
        parts.append(texts.select(id=texts.id, text=text, edges=amount.cast("int64") * sign))
    both = kept(ibis.union(*parts))
    sums = both.group_by("id", "text").agg(edges=both.edges.sum())
    return sums.filter(sums.edges != 0).select("id").distinct()
