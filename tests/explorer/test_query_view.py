"""What the Query view asks: every verb, what it finds, its requests, and code that does the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import adjoin
from adjoin import AdjacencyList, Graph, Keys, Node
from examples import people, shop
from tests.explorer.graphs import (
    HOSTILE_MODELS,
    LAYOUTS,
    SCRIPT,
    Asking,
    asking,
    filled,
    hostile_file,
    invoices_file,
    people_file,
    shop_file,
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return people_file(tmp_path)


@pytest.fixture
def ask(file: str) -> Iterator[Asking]:
    with asking(file, people.MODELS, people.LAYOUT) as found:
        yield found


FORMS: dict[str, tuple[dict[str, Any], int]] = {
    "get": ({"verb": "get", "class": "Person", "id": ["P1"]}, 1),
    "none": ({"verb": "get", "class": "Person", "id": ["P9"]}, 0),
    "date": ({"verb": "get", "class": "Date", "id": ["1980-12-19"]}, 1),
    "out": ({"verb": "out", "class": "Person", "id": ["P2"], "edge": "HasSkill"}, 2),
    "reversed": ({"verb": "out", "class": "Person", "id": ["P2"], "edge": "HasSkill", "reverse": True}, 2),
    "into": ({"verb": "into", "class": "Place", "id": ["helsinki"], "edge": "LivesIn"}, 2),
    "collection": ({"verb": "collection", "class": "Person", "id": ["P1"]}, 5),
    "arriving": ({"verb": "collection", "class": "Place", "id": ["helsinki"], "direction": "into"}, 3),
    "find": (
        {"verb": "find", "class": "Person", "where": [{"field": "name", "operator": "begins_with", "values": ["A"]}]},
        2,
    ),
    "ordered": ({"verb": "find", "class": "Person", "order": "name", "reverse": True}, 3),
    "dates": (
        {
            "verb": "find",
            "class": "BornOn",
            "where": [{"field": "date", "operator": "between", "values": ["1980-01-01", "1985-01-01"]}],
        },
        2,
    ),
    "lists": (
        {
            "verb": "find",
            "class": "LivesIn",
            "where": [{"field": "path", "operator": "begins_with", "values": ['["FI", "Uusimaa"]']}],
        },
        2,
    ),
    "filtered": (
        {
            "verb": "out",
            "class": "Person",
            "id": ["P2"],
            "edge": "HasSkill",
            "where": [{"field": "skill", "operator": "=", "values": ['["piano", "1999"]']}],
        },
        1,
    ),
    "walk": (
        {
            "verb": "walk",
            "class": "Person",
            "id": ["P1"],
            "steps": [{"direction": "out", "class": "LivesIn"}, {"direction": "into", "class": "LivesIn"}],
        },
        2,
    ),
    "distinct": (
        {
            "verb": "walk",
            "class": "Person",
            "id": ["P1"],
            "steps": [{"direction": "both", "class": "LivesIn"}],
            "distinct": True,
        },
        1,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_verb_and_the_code_for_it(ask: Asking, file: str, name: str) -> None:
    form, number = FORMS[name]
    found = ask("query", form=form)
    assert len(found["results"]) == number
    assert len(found["requests"]) == found["cost"]["requests"] >= 1
    first = found["requests"][0]
    assert first["key"]
    assert first["boto3"].startswith("client.")
    compile(first["boto3"], "boto3", "eval")
    # The code does the same.
    with Graph(file, people.MODELS, people.LAYOUT) as graph:
        names = {"g": graph, **vars(adjoin), **{model.__name__: model for model in people.MODELS}}
        *imports, line = found["code"].splitlines()
        exec("\n".join(imports), names)
        result = eval(line, names)
        assert (1 if form["verb"] == "get" and result else len(result or ())) == number


def test_calls_of_boto3_run_as_they_are_copied(ask: Asking, file: str) -> None:
    with adjoin.serve(file, port=0) as server:
        client = boto3.client(
            "dynamodb",
            endpoint_url=server.endpoint,
            region_name="eu-west-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        for form, _ in FORMS.values():
            for request in ask("query", form=form)["requests"]:
                answer = eval(request["boto3"], {"client": client})
                assert answer.get("Count") == request["items"]


@pytest.mark.parametrize("name", FORMS)
def test_explained_without_running(ask: Asking, name: str) -> None:
    form, _ = FORMS[name]
    ran = ask("query", form=form)
    told = ask("query", form=form, run=False)
    assert told["results"] is None
    assert told["code"] == ran["code"]
    assert told["requests"][0]["operation"] == ran["requests"][0]["operation"]
    assert told["requests"][0]["index"] == ran["requests"][0]["index"]


def test_key_conditions_are_those_of_the_documents(tmp_path: Path) -> None:
    with asking(shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as ask:
        where = [{"field": "balance", "operator": ">", "values": ["100"]}]
        found = ask("query", form={"verb": "out", "class": "Customer", "id": ["C1"], "edge": "Placed", "where": where})
    (request,) = found["requests"]
    assert request["key"] == 'PK = "CUSTOMER#C1" and begins_with(SK, "PLACED#INVOICE#")'
    assert (request["operation"], request["index"], request["filtered"]) == ("Query", None, True)
    assert request["rcu"] == 0.5
    assert request["dollars"] == pytest.approx(0.0000000625)
    assert found["code"].splitlines() == [
        "from decimal import Decimal",
        "from adjoin import field",
        "",
        'g.out(Customer.ref("C1"), Placed).where(field("balance") > Decimal(\'100\')).page(limit=20)',
    ]


def test_pages(ask: Asking) -> None:
    form = {"verb": "collection", "class": "Person", "id": ["P2"], "limit": 2}
    seen: list[str] = []
    after = None
    for _ in range(10):
        page = ask("query", form=form, after=after)
        seen += [each["handle"] for each in page["results"]]
        after = page["next"]
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 6


def test_a_walk_tells_its_paths_for_drawing(ask: Asking) -> None:
    results = ask("query", form=FORMS["walk"][0])["results"]
    assert [[node["class"] for node in each["path"]] for each in results] == [["Person", "Place", "Person"]] * 2
    assert all(len(each["edges"]) == 2 for each in results)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({}, "the verb must be one of"),
        ({"verb": "drop"}, "the verb must be one of"),
        ({"verb": "get", "class": "Person"}, "the id of a Person is missing; type id"),
        ({"verb": "get", "class": "Person", "id": [""]}, "missing"),
        ({"verb": "get", "class": "Person", "id": []}, "the id of a Person is missing; type id"),
        ({"verb": "get", "class": "Date", "id": ["yesterday"]}, "does not fit Date.id"),
        ({"verb": "get", "class": "LivesIn", "id": ["x"]}, "name a class of nodes"),
        ({"verb": "out", "class": "Place", "id": ["x"], "edge": "LivesIn"}, "no LivesIn leaves a Place"),
        ({"verb": "out", "class": "Place", "id": ["x"], "edge": "Place"}, "name a class of edges"),
        ({"verb": "children", "class": "Person", "id": ["x"], "child": "Place"}, "Place has no parent"),
        ({"verb": "walk", "class": "Person", "id": ["x"]}, "at least one step"),
        ({"verb": "walk", "class": "Person", "id": ["x"], "steps": [{"direction": "up"}]}, "a step goes"),
        ({"verb": "find", "class": "Skill"}, "Skill"),
        ({"verb": "find", "class": "Person", "where": "name"}, "where takes a list"),
        ({"verb": "find", "class": "Person", "where": [{"field": "name"}]}, "not a comparison"),
        ({"verb": "find", "class": "Person", "where": [{"field": "name", "operator": "=", "values": []}]}, "needs 1"),
        (
            {"verb": "find", "class": "Person", "where": [{"field": "nam", "operator": "=", "values": ["A"]}]},
            "did you mean 'name'",
        ),
        ({"verb": "get", "class": "Person", "id": ["P1"], "limit": 999, "extra": 1}, ""),
    ],
)
def test_forms_that_ask_for_nothing_say_what_to_do(ask: Asking, form: dict[str, Any], why: str) -> None:
    if why:
        assert why in ask.refused("query", form=form)
    else:
        # A form may hold more than its verb needs, because the page keeps what was typed.
        assert ask("query", form=form)["results"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_harms_can_be_asked_for(tmp_path: Path, layout: str) -> None:
    with asking(hostile_file(tmp_path, layout), HOSTILE_MODELS, LAYOUTS[layout]) as ask:
        found = ask("query", form={"verb": "children", "class": "User", "id": [SCRIPT], "child": "Note"})
        assert found["results"][0]["fields"]["text"] == SCRIPT
        assert ask("query", form={"verb": "get", "class": "Note", "id": [SCRIPT, "1"]})["results"]


class Blob(Node, key=("id", "part")):
    id: bytes
    part: bytes
    digest: bytes = b""


BLOBS = AdjacencyList(
    table="Blobs",
    partition_key="id",
    sort_key="part",
    types={"id": "B", "part": "B"},
    reverse=None,
    keys={Blob: Keys(partition="{id}", sort="{part}")},
)


def test_bytes_are_typed_in_base64_and_called_as_bytes(tmp_path: Path) -> None:
    path = filled(tmp_path / "blobs.db", [Blob], BLOBS, [Blob(id=b"\x00\xff", part=b"\x01")])
    with asking(path, [Blob], BLOBS, write=True) as ask:
        (node,) = ask("find", text="AP8= · AQ==", model="Blob")["nodes"]
        assert node["title"] == "AP8= · AQ=="
        place = ask("node", handle=node["handle"])
        assert place["key"] == ["AP8=", "AQ=="]
        assert len(ask("items", partition=place["partition"])["items"]) == 1
        found = ask("query", form={"verb": "get", "class": "Blob", "id": ["AP8=", "AQ=="]})
        assert len(found["results"]) == 1
        assert "'id': {'B': b'\\x00\\xff'}" in found["requests"][0]["boto3"]
        where = [{"field": "id", "operator": "=", "values": ["AP8="]}]
        assert len(ask("query", form={"verb": "find", "class": "Blob", "where": where})["results"]) == 1
        # What is typed into a form is what the page shows.
        handle = node["handle"]
        assert ask("node", handle='Blob/["AP8=", "AQ=="]')["node"]["handle"] == handle
        assert ask("change", handle=handle, values={"digest": "/g=="})["node"]["fields"]["digest"] == {"bytes": "/g=="}
        assert "is not Base64" in ask("change", handle=handle, values={"digest": "?"})["problems"]["digest"]
    with Graph(path, [Blob], BLOBS) as graph:
        assert graph.get(Blob, (b"\x00\xff", b"\x01")) == Blob(id=b"\x00\xff", part=b"\x01", digest=b"\xfe")


def test_a_foreign_table(tmp_path: Path) -> None:
    with asking(invoices_file(tmp_path)) as ask:
        node = ask("start")["nodes"][0]
        form = {"verb": "collection", "class": node["class"], "id": [node["id"]]}
        assert ask("query", form=form)["results"]
