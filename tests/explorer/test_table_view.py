"""What the Table view asks: items as they are stored, in the table and in each index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import people, shop
from tests.explorer.graphs import (
    HOSTILE_MODELS,
    LAYOUTS,
    SCRIPT,
    Asking,
    asking,
    hostile_file,
    invoices_file,
    people_file,
    shop_file,
)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(people_file(tmp_path), people.MODELS, people.LAYOUT) as found:
        yield found


def test_items_of_the_table_are_those_of_the_graph(ask: Asking) -> None:
    found = ask("items", limit=200)
    assert found["keys"] == ["NodeId", "TypeTarget"]
    assert found["next"] is None
    assert len(found["items"]) == len(people.SAMPLE)
    assert all(row["handle"] and row["class"] for row in found["items"])
    everything = ask("items", limit=200, own=True)
    assert len(everything["items"]) > len(found["items"])
    assert {row["class"] for row in everything["items"] if row["own"]} == {None}


def test_pages_follow_each_other(ask: Asking) -> None:
    whole = [row["item"] for row in ask("items", limit=200)["items"]]
    seen: list[object] = []
    after = None
    while True:
        page = ask("items", limit=7, after=after)
        seen += [row["item"] for row in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == whole


def test_one_collection_is_one_query(ask: Asking) -> None:
    found = ask("items", partition=[{"S": "PERSON#P1"}])
    assert [row["item"]["NodeId"] for row in found["items"]] == [{"S": "PERSON#P1"}] * 5
    assert found["cost"]["requests"] == 1


def test_an_index_has_its_own_keys_and_order(ask: Asking) -> None:
    found = ask("items", index="GSI1", partition=[{"S": "PERSON#name#0"}])
    assert found["keys"] == ["GSIPK", "Data"]
    data = [row["item"]["Data"]["S"] for row in found["items"]]
    assert data == sorted(data)
    assert {row["class"] for row in found["items"]} == {"Person"}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"index": "None"}, "no index 'None'"),
        ({"partition": []}, "NodeId"),
        ({"partition": [{"S": "a"}, {"S": "b"}]}, "NodeId"),
        ({"partition": ["PERSON#P1"]}, "NodeId"),
        ({"limit": 0}, "1 to 200"),
        ({"limit": True}, "1 to 200"),
    ],
)
def test_what_is_refused(ask: Asking, asked: dict[str, object], why: str) -> None:
    assert why in ask.refused("items", **asked)


def test_the_same_handle_as_in_the_graph(ask: Asking) -> None:
    rows = {row["handle"]: row for row in ask("items", limit=200)["items"]}
    around = ask("neighbours", handle='Person/"P1"')
    assert {edge["handle"] for edge in around["edges"]} <= rows.keys()
    assert rows['Person/"P1"']["kind"] == "node"


def test_ledgers_and_other_items_of_adjoin_are_hidden(tmp_path: Path) -> None:
    with asking(shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as ask:
        shown = ask("items", limit=200)["items"]
        assert len(shown) == len(shop.SAMPLE)
        assert not [name for row in shown for name in row["item"] if name.startswith("adjoin:")]
        assert any(row["own"] for row in ask("items", limit=200, own=True)["items"])


def test_a_foreign_table(tmp_path: Path) -> None:
    with asking(invoices_file(tmp_path)) as ask:
        rows = ask("items", limit=200)["items"]
    assert rows
    assert all(row["class"] for row in rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_harms_is_told_as_it_is_stored(tmp_path: Path, layout: str) -> None:
    with asking(hostile_file(tmp_path, layout), HOSTILE_MODELS, LAYOUTS[layout]) as ask:
        rows = ask("items", limit=200)["items"]
    assert any(row["item"].get("title") == {"S": SCRIPT} for row in rows)
