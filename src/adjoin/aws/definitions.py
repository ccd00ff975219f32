"""The definition of a graph's table, and the partition keys of its nodes, without opening any store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoin.errors import InvalidValue, shown
from adjoin.layouts.binding import bound_layout
from adjoin.layouts.interface import Layout
from adjoin.model import Node, Ref
from adjoin.tables import TableDefinition


def table(models: Iterable[type[Any]], layout: Layout | None = None, name: str | None = None) -> TableDefinition:
    """The table that `Graph(location, models, layout)` would make; `name` in place of the layout's."""
    return bound_layout(models, layout, name).definition


def check_table(table: object) -> None:
    """What renders a table takes its definition; a graph, or its classes, is what one has at hand."""
    if not isinstance(table, TableDefinition):
        raise InvalidValue(
            f"{shown(table)} is no definition of a table; pass aws.table(models), or aws.table(models, layout)"
        )


def leading_key(node: Node | Ref[Any], models: Iterable[type[Any]], layout: Layout | None = None) -> str:
    """The partition key of a node, or of the node a ref stands for, as `iam_policy` takes it."""
    if not isinstance(node, Node | Ref):
        raise InvalidValue(f"{shown(node)} does not say of which class it is; pass the node, or Model.ref(id)")
    bound = bound_layout(models, layout)
    kind = bound.schema.node(type(node) if isinstance(node, Node) else node.model)
    return bound.node_text(kind, kind.id(node))
