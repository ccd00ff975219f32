"""The guide's materialized graph: what adjoin stores, cell by cell, and every question of its two indexes.

`test_filled_by_boto3` asks them of a table that boto3 made and filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from adjoin import Edge, Graph, field
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from examples import published_graph
from examples.published_graph import BornIn, BornOn, Date, Friend, HasSkill, Person, Place, Skill
from tests.examples.raw import PlainItem, stored_items, table_definition, write_items

TABLE = "PublishedGraph"
JOHN, JANE = "John Doe", "Jane Smith"
CELLS = (
    ("1", "DATE|2|BIRTH", "1980-12-19", JOHN),
    ("1", "PERSON|1", JOHN, JOHN),
    ("1", "PERSON|5|FRIEND", JANE, JOHN),
    ("1", "PLACE|4|BIRTH", "USA|Texas|Austin", JOHN),
    ("1", "SKILL|6", "Java Developer|Senior", JOHN),
    ("2", "DATE|2", "1980-12-19", None),
    ("3", "PLACE|3", "UK|England|London", None),
    ("4", "PLACE|4", "USA|Texas|Austin", None),
    ("5", "DATE|2|BIRTH", "1980-12-19", JANE),
    ("5", "PERSON|5", JANE, JANE),
    ("5", "PERSON|1|FRIEND", JOHN, JANE),
    ("5", "PLACE|3|BIRTH", "UK|England|London", JANE),
    ("5", "SKILL|7", "Guitar|Advanced", JANE),
    ("6", "SKILL|6", "Java Developer", None),
    ("7", "SKILL|7", "Guitar", None),
)
"""NodeId, TypeTarget, Data, and the person's Data whose hash is in "GSI PK"; None for 0."""


def document(hashes: dict[str, str]) -> list[PlainItem]:
    """The fifteen items, with these hashes of the two people."""
    return [
        {"NodeId": node, "TypeTarget": target, "Data": data, "GSI PK": hashes[owner] if owner else "0"}
        for node, target, data, owner in CELLS
    ]


DOCUMENT = document({JOHN: "3", JANE: "1"})
"""As another program writes them, whose hash is not that of adjoin, and which copies nothing else."""


@pytest.fixture
def g() -> Iterator[Graph]:
    with published_graph.open_graph() as graph:
        graph.put_many(published_graph.SAMPLE)
        yield graph


def in_order(items: list[PlainItem]) -> list[PlainItem]:
    return sorted(items, key=lambda item: (item["NodeId"], item["TypeTarget"]))


def cells(items: list[PlainItem]) -> list[PlainItem]:
    """The items without the copy of the person's name that edges have beside the figure's attributes."""
    return in_order([{name: value for name, value in item.items() if name != "person"} for item in items])


def test_the_table_is_that_of_the_figure(g: Graph) -> None:
    shard = KeyAttribute("GSI PK")
    assert table_definition(g, TABLE) == TableDefinition(
        TABLE,
        KeyAttribute("NodeId"),
        KeyAttribute("TypeTarget"),
        (
            IndexDefinition("GSI1", shard, KeyAttribute("Data")),
            IndexDefinition("GSI2", shard, KeyAttribute("TypeTarget")),
        ),
    )


def test_stored_items_are_those_of_the_figure_cell_by_cell(g: Graph) -> None:
    items = stored_items(g, TABLE)
    hashes = {item["Data"]: item["GSI PK"] for item in items if item["TypeTarget"] in ("PERSON|1", "PERSON|5")}
    assert set(hashes.values()) <= {"0", "1", "2", "3"}
    assert cells(items) == in_order(document(hashes))
    copies = {(item["NodeId"], item["person"]) for item in items if "person" in item}
    assert copies == {("1", JOHN), ("5", JANE)}
    assert cells(stored_items(g, TABLE, "GSI1")) == cells(stored_items(g, TABLE, "GSI2")) == cells(items)


@pytest.mark.parametrize("way", ["one by one", "in a transaction", "connected in a transaction"])
def test_every_write_stores_the_same_cells(g: Graph, way: str) -> None:
    with published_graph.open_graph() as other:
        edges: list[Any] = [each for each in published_graph.SAMPLE if isinstance(each, Edge)]
        if way == "one by one":
            for each in published_graph.SAMPLE:
                other.put(each)
        else:
            with other.transaction() as t:
                for each in published_graph.SAMPLE:
                    if each not in edges or way == "in a transaction":
                        t.put(each)
            if way != "in a transaction":
                with other.transaction() as t:
                    for each in edges:
                        own: dict[str, Any] = {"skill": each.skill} if isinstance(each, HasSkill) else {}
                        t.connect(type(each), each.source, each.target, **own)
        assert in_order(stored_items(other, TABLE)) == in_order(stored_items(g, TABLE))


def test_the_many_people_are_spread_and_the_items_of_each_are_together(g: Graph) -> None:
    g.put_many(Person(id=f"p{number}", name=f"Name {number}") for number in range(200))
    g.put_many(BornOn(source=f"p{number}", target="2") for number in range(200))
    shards: dict[str, set[str]] = {}
    for item in stored_items(g, TABLE):
        if item["NodeId"].startswith("p"):
            shards.setdefault(item["NodeId"], set()).add(item["GSI PK"])
    assert all(len(each) == 1 for each in shards.values())
    numbers = [min(each) for each in shards.values()]
    assert min(numbers.count(shard) for shard in "0123") > 30


ANSWERS: dict[Any, Any] = {
    published_graph.everything_on_day: [Date(id="2", day="1980-12-19"), ("1", "2", BornOn), ("5", "2", BornOn)],
    published_graph.everything_with_name: [Person(id="5", name=JANE), ("1", "5", Friend)],
    published_graph.everything_in_country: [Place(id="4", path="USA|Texas|Austin"), ("1", "4", BornIn)],
    published_graph.everything_in_state: [Place(id="4", path="USA|Texas|Austin"), ("1", "4", BornIn)],
    published_graph.everything_with_skill: [Skill(id="6", name="Java Developer"), ("1", "6", HasSkill)],
    published_graph.date_with_births: [Date(id="2", day="1980-12-19"), ("1", "2", BornOn), ("5", "2", BornOn)],
    published_graph.person_with_friends: [Person(id="1", name=JOHN), ("5", "1", Friend)],
    published_graph.skill_with_people: [Skill(id="6", name="Java Developer"), ("1", "6", HasSkill)],
    published_graph.people_with_level: ["1"],
    published_graph.born_on_day: [JANE, JOHN],
}


@pytest.fixture
def filled_by_others() -> Iterator[Graph]:
    with published_graph.open_graph() as graph:
        write_items(graph, TABLE, DOCUMENT)
        yield graph


@pytest.mark.parametrize("table", ["g", "filled_by_others"])
@pytest.mark.parametrize("pattern", ANSWERS, ids=lambda pattern: str(pattern.__name__))
def test_one_question_is_a_query_for_each_shard(pattern: Any, table: str, request: pytest.FixtureRequest) -> None:
    g: Graph = request.getfixturevalue(table)
    with g.meter() as meter:
        found = pattern(g)
    known = [(each.source, each.target, type(each)) if hasattr(each, "source") else each for each in found]
    assert sorted(known, key=repr) == sorted(ANSWERS[pattern], key=repr)
    is_hydrated = pattern is published_graph.born_on_day
    assert (meter.requests, meter.rounds) == ((5, 2) if is_hydrated else (4, 1))


def test_everything_about_a_person_is_one_query(g: Graph) -> None:
    with g.meter() as meter:
        person, edges = published_graph.everything_about_person(g)
    assert (person, meter.requests) == (Person(id="1", name=JOHN), 1)
    assert [type(each) for each in edges] == [BornOn, Friend, BornIn, HasSkill]


@pytest.mark.parametrize("table", ["g", "filled_by_others"])
def test_the_name_of_a_friend_follows_a_rename_in_the_index_too(table: str, request: pytest.FixtureRequest) -> None:
    g: Graph = request.getfixturevalue(table)
    g.update(Person, "5", name="Jane Doe")
    while g.maintain(once=True).changes:
        pass
    assert list(g.index("GSI1").equals(JANE)) == []
    found = list(g.index("GSI1").equals("Jane Doe"))
    assert {(type(each), getattr(each, "source", "")) for each in found} == {(Person, ""), (Friend, "1")}
    assert [each.source for each in g.find(Friend, field("name") == "Jane Doe")] == ["1"]
    items = {(item["NodeId"], item["TypeTarget"]): item for item in stored_items(g, TABLE, "GSI1")}
    assert items["1", "PERSON|5|FRIEND"]["Data"] == "Jane Doe"
    assert {item["GSI PK"] for (node, _), item in items.items() if node == "5"} == {items["5", "PERSON|5"]["GSI PK"]}
