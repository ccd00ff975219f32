"""Which records of a table's stream a maintaining function has to see, as a filter of its event source mapping.

adjoin's own items (ledgers, ranks, copies for indexes) are in the same stream, and no business of the function:
it would leave them out itself, but an invocation for nothing costs. A filter of Lambda can only say what a key
begins with, so it names the beginnings of the sort keys of all classes that matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from adjoin.layouts.binding import bound_layout
from adjoin.layouts.interface import BoundLayout, Layout
from adjoin.schema import EntityType
from adjoin.tenants import tenant_prefix

_ANYBODY = "anybody"
_MOST = 4096
"""Characters of a pattern that Lambda takes."""


def stream_filter(
    models: Iterable[type[Any]], layout: Layout | None = None, tenant: str | None = None
) -> dict[str, Any] | None:
    """The pattern, to be written as JSON; None where keys do not tell, so that everything has to be let through."""
    bound = bound_layout(models, layout, None, tenant)
    sort = bound.definition.sort
    if sort is None:
        return None
    watched = _watched(bound)
    if tenant is None and any(_begins_with_tenant(bound, kind, sort.name) for kind in watched):
        # The function is for all tenants, and nobody knows what they are called.
        return None
    beginnings = {bound.shape(kind).written[sort.name].partition("{")[0] for kind in watched}
    least = [
        each for each in sorted(beginnings) if not any(each != other and each.startswith(other) for other in beginnings)
    ]
    if not least or "" in least:
        return None
    pattern = {"dynamodb": {"Keys": {sort.name: {"S": [{"prefix": each} for each in least]}}}}
    return pattern if len(json.dumps(pattern)) <= _MOST else None


def _begins_with_tenant(layout: BoundLayout, kind: EntityType, attribute: str) -> bool:
    """Whether a key attribute has the tenant in it."""
    return layout.for_tenant(_ANYBODY).shape(kind).written[attribute].startswith(tenant_prefix(_ANYBODY))


def _watched(layout: BoundLayout) -> list[EntityType]:
    """The classes whose changes may lead to something."""
    accounts = [kind for each in layout.rules.accounts for kind in (each.edge, each.hop.near, each.hop.far)]
    copies = [kind for each in layout.rules.copies for kind in (each.edge, each.node)]
    expiring = [kind for edge in layout.schema.edges.values() for kind in (edge.source, edge.target) if kind.expires]
    return [*accounts, *copies, *expiring]
