"""Where classes and a layout come together, for whoever opens a graph or asks what its table is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoin.errors import InvalidModel, shown
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.interface import BoundLayout, Layout
from adjoin.schema import Schema


def bound_layout(
    models: Iterable[type[Any]], layout: Layout | None, table: str | None = None, tenant: str | None = None
) -> BoundLayout:
    """The layout bound to the classes; without one, an adjacency list. `table` goes before the layout's own."""
    if layout is not None and not hasattr(layout, "bind"):
        raise InvalidModel(f"{shown(layout)} is no layout; pass one such as AdjacencyList(table={shown(layout)})")
    layout = layout or AdjacencyList()
    bound = (layout if table is None else layout.named(table)).bind(Schema(models), tenant)
    if not isinstance(bound.table, str) or not bound.table.isprintable():
        raise InvalidModel(
            f"{shown(bound.table)} is no name of a table; use letters, digits, underscores, dots, hyphens"
        )
    return bound
