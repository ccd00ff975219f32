"""Changes told apart by the tenants that they are of.

A graph without a tenant maintains all tenants of its table. Each change is applied with the layout of its tenant, so
that everything that is written about it is the tenant's own: ledgers, ranks, and records of what is set aside.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def parted(layout: BoundLayout, changes: Iterable[ItemChange]) -> list[tuple[BoundLayout, list[ItemChange]]]:
    """The changes of each tenant, in their order, with its layout; those of no tenant first."""
    parts: dict[str | None, tuple[BoundLayout, list[ItemChange]]] = {layout.tenant: (layout, [])}
    for change in changes:
        own = layout_for(layout, change)
        parts.setdefault(own.tenant, (own, []))[1].append(change)
    return list(parts.values())


def _is_text(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("S"), str)
