"""Changes that are parsed when somebody looks at them say what they would if they had been parsed at once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjoin.requests import ItemChange
from adjoin.stores.sqlite.changes import StoredChange
from adjoin.stores.sqlite.rows import Storage
from adjoin.stores.sqlite.tables import Table
from adjoin.tables import KeyAttribute, TableDefinition
from adjoin.values import Item


def table(*keys: KeyAttribute) -> Table:
    definition = TableDefinition("t", keys[0], keys[1] if len(keys) > 1 else None)
    return Table(7, definition, Storage.of(definition, sums=True))


TEXTS = table(KeyAttribute("PK"), KeyAttribute("SK"))
ODD = table(KeyAttribute('P"K\\%'), KeyAttribute("S.K"))
NUMBERS = table(KeyAttribute("PK"), KeyAttribute("SK", "N"))
ALONE = table(KeyAttribute("PK"))

texts = st.text(st.sampled_from('aä#="\\\n%}{,:'), min_size=1, max_size=6)


@given(st.sampled_from([TEXTS, ODD, NUMBERS, ALONE]), st.data())
def test_a_key_is_found_in_a_text_wherever_it_stands_there(table: Table, data: Any) -> None:
    key: Item = {column.name: {"N": "12"} if column.tag == "N" else {"S": data.draw(texts)} for column in table.primary}
    others = data.draw(st.dictionaries(st.sampled_from(["A", "PKX", "M"]), st.just({"M": {"PK": {"S": "x"}}})))
    item = dict(data.draw(st.permutations([*{**key, **others}.items()])))

    assert table.key_in(orjson.dumps(item)) == key


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize(("old", "new"), [(None, "1"), ("1", "2"), ("2", None)])
def test_a_change_that_is_parsed_late_equals_one_that_was_parsed_at_once(
    old: str | None, new: str | None, expired: bool
) -> None:
    key = {"PK": {"S": "a"}, "SK": {"S": "b"}}
    before, after = (None if each is None else {**key, "n": {"N": each}} for each in (old, new))
    images = [None if each is None else orjson.dumps(each) for each in (before, after)]
    late = StoredChange(TEXTS, 3, 1.5, expired, *images)
    at_once = ItemChange("000000070000000000003", 1.5, key, before, after, expired)

    assert late == at_once
    assert at_once == late
    assert late != ItemChange("000000070000000000004", 1.5, key, before, after, expired)
    assert late != 3
