"""Tables without any design: whatever keys and attributes there are, nothing that was read is changed by a put."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from adjoin.inferring import infer
from adjoin.inferring.checking import tried
from adjoin.values import Item
from tests.inferring.published import item, table
from tests.inferring.tables import opened, scanned

WORDS = [
    *("USER", "ORDER", "user", "Item", "a", "x y", "é", "{x}", "2024-01-02", "2024-01-02T10:00:00Z", "", "7", "007"),
    *("#META", "v1", "A_B", "u-1", "ann@example.org"),
]
NAMES = ["name", "Type", "id", "class", "model_x", "_x", "GSI1PK", "date", "list", "PK2", "a b", "source", "9x"]
VALUES: list[Any] = [
    *(
        1,
        Decimal("1.5"),
        "t",
        "",
        None,
        True,
        {"a"},
        {1, 2},
        [1, "b"],
        {"k": 1, "l": [None]},
        "2024-01-02",
        1_700_000_000,
    )
]


def random_items(chosen: random.Random) -> list[Item]:
    def key() -> str:
        parts = [
            chosen.choice(WORDS) + (str(chosen.randint(0, 9)) if chosen.random() < 0.5 else "")
            for _ in range(chosen.randint(1, 3))
        ]
        return chosen.choice("#|:_-/").join(parts) or "k"

    made: dict[tuple[str, str], Item] = {}
    for _ in range(chosen.randint(1, 25)):
        keys = key(), key()
        names = chosen.sample(NAMES, chosen.randint(0, 5))
        values = {name: key() if name == "GSI1PK" else chosen.choice(VALUES) for name in names}
        made[keys] = item(PK=keys[0], SK=keys[1], **values)
    return list(made.values())


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_changed(seed: int) -> None:
    definition = table("Random", "PK SK", **({"GSI1": "GSI1PK SK"} if seed % 2 else {}))
    items = random_items(random.Random(seed))
    found = infer(definition, items, "the test")
    assert found.explained + sum(number for _, number in found.unexplained) == found.read == len(items)
    failed = [each for each, _, _ in tried(found.source, definition, items).failed] if found.explained else items
    explained = [each for each in items if each not in failed]
    assert len(explained) == found.explained
    if not explained:
        return
    with opened(found.source, (definition, explained)) as (g, _):
        before = scanned(g._store, "Random")
        assert list(g.scan().others) == []
        g.put_many(list(g.scan()))
        assert scanned(g._store, "Random") == before
