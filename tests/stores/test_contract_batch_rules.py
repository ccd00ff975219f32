"""The contract for what one batch may ask at once."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import attribute
from adjoin.requests import BatchGet, BatchWrite, Delete, Get, Put
from adjoin.stores.interface import Store
from tests.stores.examples import item, key, stored

FIRST = Get("Plain", key("A", "1"))


@pytest.mark.parametrize(
    "other",
    [
        Get("Plain", key("A", "2"), consistent=True),
        Get("Plain", key("A", "2"), projection=(attribute("a"),)),
    ],
)
def test_gets_of_one_table_read_alike(store: Store, other: Get) -> None:
    with pytest.raises(InvalidRequest, match="must agree in consistency and projection"):
        store.execute([BatchGet((FIRST, other))])
    store.execute([BatchGet((FIRST, Get("Single", {"id": {"S": "1"}}, consistent=True)))])


def test_writes_return_nothing(store: Store) -> None:
    for write in (Put("Plain", item("A", "1"), return_old=True), Delete("Plain", key("A", "1"), return_old=True)):
        with pytest.raises(InvalidRequest, match="cannot have conditions or return what was there"):
            store.execute([BatchWrite((write,))])
    assert stored(store, "Plain", key("A", "1")) is None
