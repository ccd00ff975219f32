"""What the Design and Health views ask: keys and costs of each class, and numbers of a sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjoin import AdjacencyList, Graph
from adjoin.explorer import open_explored, vitals
from adjoin.explorer import sample as sampling
from adjoin.explorer.api import Api
from examples import people, shop
from tests.explorer.graphs import (
    HOSTILE_MODELS,
    LAYOUTS,
    Asking,
    asking,
    hostile_file,
    invoices_file,
    people_file,
    shop_file,
)
from tests.explorer.test_graph_view import Hub, Spoke


def test_the_keys_of_each_class(tmp_path: Path) -> None:
    with asking(shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as ask:
        design = ask("design")
    placed = next(each for each in design["classes"] if each["name"] == "Placed")
    assert placed["places"] == [
        {"index": None, "keys": {"PK": "CUSTOMER#{source.id}", "SK": "PLACED#INVOICE#{target.id}"}},
        {"index": "GSI1", "keys": {"GSI1PK": "INVOICE#{target.id}", "GSI1SK": "PLACED#CUSTOMER#{source.id}"}},
    ]
    assert placed["size"] > 0


def test_each_access_pattern_with_its_index_and_units(tmp_path: Path) -> None:
    with asking(people_file(tmp_path), people.MODELS, people.LAYOUT) as ask:
        design = ask("design")
    patterns = {each["code"]: each for each in design["patterns"]}
    assert patterns["g.get(Person, id)"]["rcu"] == 0.5
    assert patterns['g.find(Person, field("name") == …)']["index"] == "GSI1"
    assert patterns["g.into(place, LivesIn)"]["index"] == "GSI2"
    assert patterns["g.put(LivesIn(…))"]["wcu"] >= 3
    assert design["without"] == []
    assert design["prices"]["million_writes"] > design["prices"]["million_reads"]


def test_nothing_is_written_for_the_costs_of_writing(tmp_path: Path) -> None:
    path = shop_file(tmp_path)
    with Graph(path, shop.MODELS, shop.LAYOUT) as graph:
        before = len(list(graph.changes()))
        with asking(path, shop.MODELS, shop.LAYOUT, write=True) as ask:
            puts = [each for each in ask("design")["patterns"] if each["verb"] == "put"]
        assert len(list(graph.changes())) == before
    assert puts
    # What maintain writes later belongs to the cost of an edge that counts.
    assert next(each for each in puts if each["class"] == "Placed")["kept"] > 0


def test_a_pattern_that_no_index_answers_says_so(tmp_path: Path) -> None:
    layout = AdjacencyList(reverse=None)
    with Graph(tmp_path / "hub.db", [Hub, Spoke], layout) as graph:
        graph.put_many([Hub(id=1), Hub(id=2), Spoke(source=1, target=2)])
    with asking(str(tmp_path / "hub.db"), [Hub, Spoke], layout) as ask:
        patterns = {each["code"]: each for each in ask("design")["patterns"]}
    assert "index" in patterns["g.into(hub, Spoke)"]["problem"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_classes_with_copies_claims_and_children(tmp_path: Path, layout: str) -> None:
    with asking(hostile_file(tmp_path, layout), HOSTILE_MODELS, LAYOUTS[layout]) as ask:
        design = ask("design")
        health = ask("health")
    user = next(each for each in design["classes"] if each["name"] == "User")
    assert [each["field"] for each in user["claims"]] == ["email"]
    assert "g.children(user, Note)" in {each["code"] for each in design["patterns"]}
    assert {each["name"]: each["estimate"] for each in health["classes"]} == {
        "User": 4,
        "Post": 1,
        "Note": 1,
        "Liked": 2,
        "Follows": 6,
    }


def test_the_health_of_a_small_table_is_exact(tmp_path: Path) -> None:
    with asking(shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as ask:
        health = ask("health")
        assert ask("count", model="Placed")["count"] == 2
    assert health["sample"]["whole"]
    assert {each["name"]: each["estimate"] for each in health["classes"]} == {"Customer": 1, "Invoice": 2, "Placed": 2}
    assert health["degrees"] == [
        {"class": "Placed", "bins": [{"from": 1, "to": 1, "nodes": 0}, {"from": 2, "to": 3, "nodes": 1}]}
    ]
    assert health["largest"][0]["partition"] == "CUSTOMER#C1"
    assert health["largest"][0]["handle"] == 'Customer/"C1"'
    assert health["maintenance"]["lag"] == 0
    assert health["maintenance"]["set_aside"] == 0
    assert health["maintenance"]["at"] is not None


def test_the_health_of_a_large_file_is_that_of_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Graph(tmp_path / "hub.db", [Hub, Spoke]) as graph:
        graph.put_many([Hub(id=number) for number in range(600)])
        graph.put_many([Spoke(source=number, target=0) for number in range(600)])
    monkeypatch.setattr(sampling, "MOST", 320)
    explored = open_explored(str(tmp_path / "hub.db"), [Hub, Spoke])
    try:
        health = Asking(Api(explored))("health")
    finally:
        explored.close()
    assert not health["sample"]["whole"]
    assert health["sample"]["items"] <= 320
    numbers = {each["name"]: each for each in health["classes"]}
    assert numbers["Hub"]["estimate"] is None
    assert numbers["Hub"]["sampled"] > 50
    assert numbers["Spoke"]["sampled"] > 50


def test_a_foreign_table(tmp_path: Path) -> None:
    with asking(invoices_file(tmp_path)) as ask:
        assert ask("design")["patterns"]
        health = ask("health")
    assert health["sample"]["others"] == 0
    assert sum(each["estimate"] for each in health["classes"]) == health["sample"]["items"]


def test_the_hottest_partitions_are_those_of_the_change_stream(tmp_path: Path) -> None:
    path = str(tmp_path / "hub.db")
    with Graph(path, [Hub, Spoke]) as graph:
        graph.put_many([Hub(id=number) for number in range(5)])
        for number in range(5):
            graph.put(Spoke(source=number, target=4))
            graph.put(Spoke(source=0, target=number))
    with asking(path, [Hub, Spoke]) as ask:
        found = ask("hottest")
    first, second, *_ = found["partitions"]
    # A node and five edges; one put is the same edge again, which changes nothing.
    assert (first["index"], first["partition"], first["writes"]) == (None, "HUB#0", 6)
    assert (second["index"], second["partition"], second["writes"]) == ("GSI1", "HUB#4", 5)
    assert found["since"] <= found["until"]


def test_the_hottest_partitions_are_counted_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "_PAGES_OF_CHANGES", 1)
    path = str(tmp_path / "hub.db")
    with Graph(path, [Hub, Spoke]) as graph:
        graph.put_many([Hub(id=number) for number in range(1500)])
        graph.put_many([Spoke(source=number, target=7) for number in range(1000)])
    with asking(path, [Hub, Spoke]) as ask:
        first = ask("hottest")
        assert (first["changes"], first["all"]) == (1000, False)
        found = first
        while not found["all"]:
            found = ask("hottest", more=True)
        assert found["changes"] >= 2500
        assert (found["partitions"][0]["partition"], found["partitions"][0]["writes"]) == ("HUB#7", 1000)
        assert found["since"] == first["since"]
        assert ask("hottest")["changes"] == 1000, "it begins anew"
