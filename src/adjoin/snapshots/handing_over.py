"""A snapshot as a graph of NetworkX, or as tables of Arrow. Both libraries are imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from adjoin.errors import MissingExtra
from adjoin.snapshots.answering import HeldGraph
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.columns import HeldColumn
from adjoin.snapshots.matrices import Selection
from adjoin.snapshots.relations import Side


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        what = f"to_{extra} needs {error.name}; install it with: pip install 'adjoin[{extra}]'"
        raise MissingExtra(what) from error


def to_networkx(graph: HeldGraph, selection: Selection) -> Any:
    """A graph whose nodes are refs, with all edges between nodes that exist, and the fields that are held."""
    made = _library("networkx", "networkx").MultiDiGraph()
    nodes, members = graph.nodes, selection.members
    numbers = np.nonzero(members)[0].tolist()
    for number in numbers:
        held = {name: column[number] for (kind, name), column in nodes.columns.items() if kind == nodes.classes[number]}
        made.add_node(nodes.ref(number), **held)
    for relation in selection.relations:
        for number in numbers:
            far, edges = relation.out.row(number)
            for other, edge in zip(far.tolist(), edges.tolist(), strict=True):
                if members[other]:
                    held = {name: column[edge] for name, column in relation.columns.items()}
                    made.add_edge(nodes.ref(number), nodes.ref(other), kind=relation.name, **held)
    return made


def to_arrow(graph: HeldGraph, selection: Selection) -> tuple[Any, Any]:
    """A table of all nodes, in the order of their numbers, and one of all edges between them."""
    arrow = _library("pyarrow", "arrow")
    nodes, count = graph.nodes, len(graph.nodes)
    texts = nodes.texts.packed()
    labels = arrow.array([kind.name for kind in nodes.kinds])
    classes = arrow.DictionaryArray.from_arrays(arrow.array(nodes.classes[:count].astype(np.int8)), labels)
    keys = arrow.LargeStringArray.from_buffers(count, arrow.py_buffer(texts.ends), arrow.py_buffer(texts.blob))
    columns = {"class": classes, "key": keys, "exists": arrow.array(nodes.exists[:count])}
    for (kind, name), column in nodes.columns.items():
        columns[f"{nodes.kinds[kind].name}.{name}"] = _array(arrow, column, slice(count))
    tables = []
    names = list(dict.fromkeys(name for relation in selection.relations for name in relation.columns))
    for number, relation in enumerate(selection.relations):
        side = relation.out
        side.pack()
        held = {
            "source": arrow.array(_near(side, count)),
            "target": arrow.array(side.far),
            "class": arrow.DictionaryArray.from_arrays(
                arrow.array(np.full(len(side.far), number, np.int8)),
                arrow.array([each.name for each in selection.relations]),
            ),
        }
        for name in names:
            found = relation.columns.get(name)
            held[name] = arrow.nulls(len(side.far)) if found is None else _array(arrow, found, side.edges)
        tables.append(arrow.table(held))
    return arrow.table(columns), arrow.concat_tables(tables, promote_options="permissive")


def _near(side: Side, count: int) -> Array:
    assert side.bounds is not None
    degrees = np.diff(side.bounds)
    return np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)


def _array(arrow: Any, column: HeldColumn, places: Any) -> Any:
    """The values of a column; without copying them if they are asked for in their own order, and all are there."""
    if isinstance(places, np.ndarray) and np.array_equal(places, np.arange(len(places))):
        places = slice(len(places))
    known = column.known[places]
    values = arrow.array(column.values[places], mask=None if known.all() else ~known)
    if column.plain is bool:
        return values.cast(arrow.bool_())
    if column.scale:
        # The same whole numbers, with the point where it belongs.
        whole = values.cast(arrow.decimal128(38, 0))
        kind = arrow.decimal128(38, column.scale)
        return arrow.Array.from_buffers(kind, len(whole), whole.buffers(), offset=whole.offset)
    return values
