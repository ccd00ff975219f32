"""What the Graph view asks: nodes, their neighbours page by page, paths and recommendations; on both layouts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Node
from adjoin.errors import AccessDenied, InvalidModel, NotFound, TableNotFound
from adjoin.explorer import open_explored
from adjoin.explorer.handles import plain, unplain
from adjoin.explorer.read_only import ReadOnlyStore
from adjoin.locations import open_store
from adjoin.requests import DropTable, Put
from examples import people, shop
from tests.explorer.graphs import (
    EMOJI,
    HOSTILE_MODELS,
    IMAGE,
    LAYOUTS,
    LONG,
    RIGHT_TO_LEFT,
    SCRIPT,
    Asking,
    asking,
    hostile_file,
    invoices_file,
    people_file,
    shop_file,
)


@pytest.fixture(params=LAYOUTS)
def harm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asking]:
    with asking(hostile_file(tmp_path, request.param), HOSTILE_MODELS, LAYOUTS[request.param]) as ask:
        yield ask


def titles(answer: dict[str, Any]) -> set[str]:
    return {node["title"] for node in answer["nodes"]}


def test_the_model_tells_classes_and_indexes(tmp_path: Path) -> None:
    with asking(shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as ask:
        model = ask("model")
    assert (model["table"], model["writable"], model["inferred"]) == ("Shop", False, None)
    customer, _, placed = model["classes"]
    assert (customer["kind"], customer["id"]) == ("node", [{"name": "id", "type": "str"}])
    assert [field["name"] for field in customer["fields"] if field.get("managed")] == ["invoices", "owed", "largest"]
    assert (placed["kind"], placed["source"], placed["target"]) == ("edge", ["Customer"], ["Invoice"])


def test_classes_are_inferred_where_none_are_given(tmp_path: Path) -> None:
    with asking(invoices_file(tmp_path)) as ask:
        model = ask("model")
        assert model["inferred"]["explained"] == model["inferred"]["read"] > 0
        assert "class " in model["inferred"]["source"]
        start = ask("start")
        node = start["nodes"][0]
        around = ask("neighbours", handle=node["handle"])
    assert around["edges"]


def test_a_node_with_all_that_harms(harm: Asking) -> None:
    found = harm("find", text=SCRIPT)
    (node,) = found["nodes"]
    assert (node["class"], node["id"], node["title"]) == ("User", SCRIPT, IMAGE)
    around = harm("neighbours", handle=node["handle"])
    assert titles(around) == {SCRIPT, "gone", RIGHT_TO_LEFT, EMOJI, "xxxx", f"{SCRIPT} · 1"}
    assert {edge["class"] for edge in around["edges"]} == {"Liked", "Follows", "Note"}
    missing = [node for node in around["nodes"] if node.get("missing")]
    assert [node["id"] for node in missing] == ["gone"]
    for each in around["nodes"]:
        assert harm("node", handle=each["handle"])["node"]["handle"] == each["handle"]
    for each in around["edges"]:
        if not each.get("child"):
            assert harm("edge", handle=each["handle"])["edge"]["handle"] == each["handle"]


def test_both_ends_of_a_symmetric_edge_tell_the_same_edge(harm: Asking) -> None:
    handles = set()
    for id in (SCRIPT, EMOJI):
        (node,) = harm("find", text=id, model="User", by="id")["nodes"]
        edges = harm("neighbours", handle=node["handle"])["edges"]
        handles.add(next(each["handle"] for each in edges if each["class"] == "Follows" and EMOJI in each["handle"]))
    assert len(handles) == 1


def test_a_child_leads_to_its_parent(harm: Asking) -> None:
    (node,) = harm("find", text=f"{SCRIPT}·1", model="Note")["nodes"]
    around = harm("neighbours", handle=node["handle"])
    assert titles(around) == {IMAGE}
    assert around["edges"][0]["child"]


@pytest.mark.parametrize(("by", "text"), [("email", "d@example.org"), ("name", "xxx"), ("id", LONG), (None, LONG)])
def test_nodes_are_found_by_id_unique_value_and_index(harm: Asking, by: str | None, text: str) -> None:
    found = harm("find", text=text, model="User", by=by)
    assert [node["id"] for node in found["nodes"]] == [LONG]
    assert found["cost"]["requests"] >= 1


def test_what_cannot_be_found_says_why(harm: Asking) -> None:
    assert harm("find", text="nobody") == {"nodes": [], "cost": harm("find", text="nobody")["cost"]}
    assert "pass a tuple" in harm("find", text="one", model="Note")["problem"]
    assert "type an id" in harm.refused("find", text=" ")
    assert "has no class 'Nobody'" in harm.refused("find", text="x", model="Nobody")


@pytest.mark.parametrize("handle", ["", "User", "User/", "Nobody/1", "User/[", 'Liked/"x"', 7, None, "User/{}"])
def test_handles_that_name_nothing(harm: Asking, handle: Any) -> None:
    assert harm.refused("node", handle=handle)
    assert harm.refused("neighbours", handle=handle)
    assert harm.refused("edge", handle=handle)


class Hub(Node):
    id: int


class Spoke(Edge[Hub, Hub]):
    pass


def test_a_supernode_is_read_page_by_page(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    with Graph(path, [Hub, Spoke]) as graph:
        graph.put_many([Hub(id=number) for number in range(101)])
        graph.put_many([Spoke(source=0, target=number) for number in range(1, 101)])
    with asking(str(path), [Hub, Spoke], AdjacencyList()) as ask:
        around = ask("neighbours", handle="Hub/0")
        out = next(lane for lane in around["lanes"] if lane["direction"] == "out")
        assert len(around["nodes"]) == 25
        seen = {node["handle"] for node in around["nodes"]}
        lane = {"class": out["class"], "direction": out["direction"]}
        while out["next"]:
            page = ask("neighbours", handle="Hub/0", lane=lane, after=out["next"], limit=50)
            (out,) = page["lanes"]
            seen |= {node["handle"] for node in page["nodes"]}
        assert seen == {f"Hub/{number}" for number in range(1, 101)}
        assert "1 to 200" in ask.refused("neighbours", handle="Hub/0", limit=1000)
        assert "no" in ask.refused("neighbours", handle="Hub/0", lane={"class": "Spoke", "direction": "up"})
        # One query and one batch of gets a lane, however many edges there are.
        assert around["cost"]["requests"] <= 4


def test_an_edge_that_no_index_finds_says_so_in_its_lane(tmp_path: Path) -> None:
    layout = AdjacencyList(reverse=None)
    path = tmp_path / "hub.db"
    with Graph(path, [Hub, Spoke], layout) as graph:
        graph.put_many([Hub(id=1), Hub(id=2), Spoke(source=1, target=2)])
    with asking(str(path), [Hub, Spoke], layout) as ask:
        lanes = {lane["direction"]: lane for lane in ask("neighbours", handle="Hub/2")["lanes"]}
    assert "error" not in lanes["out"]
    assert "index" in lanes["into"]["error"]


def test_a_path_and_recommendations(tmp_path: Path) -> None:
    with asking(people_file(tmp_path), people.MODELS, people.LAYOUT) as ask:
        path = ask("path", one='Person/"P1"', other='Person/"P2"')["path"]
        assert (len(path["nodes"]), len(path["edges"])) == (3, 2)
        assert ask("path", one='Person/"P1"', other='Person/"P2"', via=["BornIn"])["path"] is None
        found = ask("recommend", handle='Person/"P1"', model="LivesIn")["recommendations"]
    assert [each["node"]["title"] for each in found] == ["Bruno Costa"]
    assert [node["id"] for node in found[0]["through"]] == ["helsinki"]


# --- opening -----------------------------------------------------------------------------------


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        open_explored(str(tmp_path / "none.db"))
    assert not [*tmp_path.iterdir()]
    path = invoices_file(tmp_path)
    with pytest.raises(TableNotFound, match="choose one with --table: InvoiceAndBills"):
        open_explored(path, shop.MODELS, shop.LAYOUT)
    with pytest.raises(TableNotFound, match="InvoiceAndBills"):
        open_explored(path, table="None")


def test_a_table_without_items_has_no_classes(tmp_path: Path) -> None:
    Graph(tmp_path / "empty.db", [Hub]).close()
    with Graph(tmp_path / "empty.db", [Hub]):
        pass
    with pytest.raises(InvalidModel, match="name yours with --models"):
        open_explored(str(tmp_path / "empty.db"))


def test_nothing_is_written_when_a_graph_is_explored(tmp_path: Path) -> None:
    path = invoices_file(tmp_path)
    with Graph(path, [Hub], AdjacencyList(table="Other")) as graph:
        before = len(list(graph.changes()))
    with asking(path, [Hub, Spoke], AdjacencyList(table="Other")) as ask:
        ask("start")
    with Graph(path, [Hub], AdjacencyList(table="Other")) as graph:
        assert len(list(graph.changes())) == before


def test_a_read_only_store_passes_no_write_on(tmp_path: Path) -> None:
    store = ReadOnlyStore(open_store(invoices_file(tmp_path)))
    for request in (Put("InvoiceAndBills", {"PK": {"S": "a"}, "SK": {"S": "b"}}), DropTable("InvoiceAndBills")):
        with pytest.raises(AccessDenied, match="--write"):
            store.execute([request])
    store.close()


def test_values_that_javascript_would_round_are_texts() -> None:
    assert plain(2**53 - 1) == 2**53 - 1
    assert plain(2**53) == str(2**53)
    assert plain(True) is True
    assert plain(b"\xff") == {"bytes": "/w=="}
    assert plain({"a": {3, 1}}) == {"a": [1, 3]}


def test_ids_of_bytes_come_back() -> None:
    assert unplain(plain((b"\xff\x00", ["a"], 1))) == (b"\xff\x00", ("a",), 1)


def test_a_tenant_is_shown_alone(tmp_path: Path) -> None:
    path = tmp_path / "tenants.db"
    for tenant, number in (("acme", 3), ("zeta", 2)):
        with Graph(path, [Hub, Spoke], tenant=tenant) as graph:
            graph.put_many([Hub(id=each) for each in range(number)])
            graph.put(Spoke(source=0, target=1))
    for tenant, number in (("acme", 3), ("zeta", 2)):
        with asking(str(path), [Hub, Spoke], tenant=tenant) as ask:
            assert ask("model")["tenant"] == tenant
            assert len(ask("start")["nodes"]) == number
            assert len(ask("items", limit=200)["items"]) == number + 1
            health = ask("health")
            assert health["sample"]["others"] == 0
            assert {each["name"]: each["estimate"] for each in health["classes"]} == {"Hub": number, "Spoke": 1}
            assert len(ask("neighbours", handle="Hub/0")["nodes"]) == 1
