"""Whose an item of a table of several tenants is, for each design: told by its keys alone."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import Edge, InvalidKey
from adjoin.layouts import bound as bound_module
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from adjoin.values import Item
from tests.layouts.designs import DESIGNS, Design

WITH_TENANTS = {
    name: design for name, design in DESIGNS.items() if name not in ("keys that are numbers", "a partition key only")
}
NAMED = "a tenant that templates name"
EACH = pytest.mark.parametrize("name", WITH_TENANTS)


def of(design: Design, tenant: str | None) -> BoundLayout:
    return design.layout.bind(Schema(design.models), tenant)


def stored(layout: BoundLayout, entities: list[Any]) -> list[tuple[Item, list[Item]]]:
    """The first item of each entity that the layout takes, with the items beside it."""
    found = []
    for entity in entities:
        kind: Any = layout.schema.edge(type(entity)) if isinstance(entity, Edge) else layout.schema.node(type(entity))
        try:
            items = layout.items(entity)
        except InvalidKey:
            continue
        beside = [each.item for each in layout.satellites(kind, items, vars(entity)) if each.item is not None]
        found.append((items[0], beside))
    return found


@EACH
def test_an_item_is_of_its_tenant(name: str) -> None:
    design = WITH_TENANTS[name]
    everybody, acme, other = of(design, None), of(design, "acme"), of(design, "other")
    for item, beside in stored(acme, design.entities):
        for each in (item, *beside):
            assert everybody.tenant_of_key(acme.key_of(each)) == "acme"
            assert acme.tenant_of_key(acme.key_of(each)) is None, "a tenant knows of no other"
            assert other.is_bookkeeping(each)
            assert other.tenant_in(each) is acme.tenant_in(each) is None
        assert everybody.tenant_in(item) == "acme"
        assert not acme.is_bookkeeping(item)
        assert not everybody.is_own_record(acme.key_of(item))
        if name != NAMED:
            assert everybody.kind_of(item) is None
        for each in beside:
            assert acme.is_bookkeeping(each)
            assert everybody.is_own_record(acme.key_of(each))
            assert everybody.is_of_a_tenant(each)
            assert everybody.tenant_in(each) is None, "it is neither a node nor an edge"


@pytest.mark.parametrize("name", [name for name in WITH_TENANTS if name != NAMED])
def test_an_item_without_a_tenant_is_nobodys(name: str) -> None:
    design = WITH_TENANTS[name]
    everybody, acme = of(design, None), of(design, "acme")
    for item, beside in stored(everybody, design.entities):
        assert everybody.tenant_in(item) is None
        assert not everybody.is_of_a_tenant(item)
        assert not everybody.is_bookkeeping(item)
        assert all(map(everybody.is_bookkeeping, beside))
        assert all(everybody.is_own_record(everybody.key_of(each)) for each in beside)
        assert all(map(acme.is_bookkeeping, (item, *beside)))


@EACH
def test_items_of_a_tenant_are_counted_unless_anybody_could_have_written_them(name: str) -> None:
    """If a partition key begins with an id, any text before a separator could be a tenant."""
    design = WITH_TENANTS[name]
    everybody, acme = of(design, None), of(design, "acme")
    for item, _ in stored(acme, design.entities):
        kind = acme.kind_of(item)
        assert kind is not None
        has_lead = bool(everybody.key_templates(kind).partition.lead)
        assert everybody.is_of_a_tenant(item) is has_lead, kind.name


def test_tenants_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_module, "_KNOWN_TENANTS", 2)
    layout = DESIGNS["a field that is the target"].bound()
    a, b = layout.for_tenant("a"), layout.for_tenant("b")
    assert layout.for_tenant("a") is a
    c = layout.for_tenant("c")
    assert (layout.for_tenant("a"), layout.for_tenant("c")) == (a, c)
    assert layout.for_tenant("b") is not b
    assert (a.tenant, a.table, a.rules is layout.rules) == ("a", layout.table, False)
