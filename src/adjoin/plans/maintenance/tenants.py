"""Changes told apart by the tenants that they are of.

A graph without a tenant maintains all tenants of its table. Each change is applied with the layout of its tenant, so
that everything that is written about it is the tenant's own: ledgers, ranks, and records of what is set aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjoin.layouts.interface import BoundLayout
from adjoin.plans.maintenance.asides import Unapplied
from adjoin.requests import ItemChange


def layout_for(layout: BoundLayout, change: ItemChange | Unapplied) -> BoundLayout:
    """The layout by which a change is applied, or recorded where it cannot be."""
    if isinstance(change, Unapplied):
        names = {each.name for each in layout.definition.keys}
        if change.key.keys() != names or not all(map(_is_text, change.key.values())):
            return layout
        item = change.key
    else:
        item = change.new or change.old or change.key
    tenant = layout.tenant_in(item)
    return layout if tenant is None else layout.for_tenant(tenant)


class ByTenant:
    """Changes, each with the layout of its tenant; what adjoin wrote for its own use has none."""

    def __init__(self, layout: BoundLayout, changes: Sequence[ItemChange | Unapplied]) -> None:
        self._changes = changes
        self._layouts: list[BoundLayout | None] = []
        for change in changes:
            own = layout_for(layout, change)
            is_own = isinstance(change, ItemChange) and own.is_bookkeeping(change.key)
            self._layouts.append(None if is_own else own)

    def parts(self, start: int, end: int) -> list[tuple[BoundLayout, list[ItemChange]]]:
        """Some of the changes by their tenants, in their order."""
        found: dict[str | None, tuple[BoundLayout, list[ItemChange]]] = {}
        for change, layout in zip(self._changes[start:end], self._layouts[start:end], strict=True):
            if layout is not None and isinstance(change, ItemChange):
                found.setdefault(layout.tenant, (layout, []))[1].append(change)
        return list(found.values())

    def unapplied(self, start: int, end: int) -> Iterator[tuple[BoundLayout, Unapplied]]:
        """Those that are no proper changes."""
        for change, layout in zip(self._changes[start:end], self._layouts[start:end], strict=True):
            if layout is not None and isinstance(change, Unapplied):
                yield layout, change


def _is_text(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("S"), str)
