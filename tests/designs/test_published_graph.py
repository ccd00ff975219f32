"""The materialized graph as it was published: bare ids, typed targets, plain values, and two sharded indexes.

NodeId  TypeTarget       Data            GSI PK
1       PERSON|1         John Doe        one of 0…N-1, by a hash of the person's Data
1       DATE|2|BIRTH     1980-12-19      the same
2       DATE|2           1980-12-19      0, as for every node that is a value
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import Child, Copy, Edge, Graph, InvalidKey, InvalidModel, Keys, MaterializedGraph, Node, field
from adjoin.layouts.interface import Layout
from adjoin.plans.steps.batches import place_of
from adjoin.requests import Put
from adjoin.values import decode, encode

SHARDS = 4


class Person(Node):
    id: str
    name: Annotated[str, Field(alias="Data")]


class Date(Node):
    id: str
    day: Annotated[str, Field(alias="Data")]


class Place(Node):
    id: str
    path: Annotated[str, Field(alias="Data")]


class Skill(Node):
    id: str
    name: Annotated[str, Field(alias="Data")]


class BornOn(Edge[Person, Date], label="BIRTH"):
    day: Annotated[str, Field(alias="Data")]
    owner: Annotated[str, Copy("source.name")] = ""


class BornIn(Edge[Person, Place], label="BORN_IN"):
    path: Annotated[str, Field(alias="Data")]
    owner: Annotated[str, Copy("source.name")] = ""


class Friend(Edge[Person, Person]):
    name: Annotated[str, Copy("target.name"), Field(alias="Data")] = ""
    owner: Annotated[str, Copy("source.name")] = ""


class Knows(Edge[Person, Skill]):
    skill: Annotated[str, Field(alias="Data")]
    owner: Annotated[str, Copy("source.name")] = ""


KEYS: dict[type[Any], Keys] = {Knows: Keys(sort="SKILL|{target.id}"), BornIn: Keys(sort="PLACE|{target.id}|BIRTH")}


def layout() -> Layout:
    return MaterializedGraph.as_published(SHARDS, table="Graph", keys=KEYS)


MODELS = [Person, Date, Place, Skill, BornOn, BornIn, Friend, Knows]
JOHN, JANE = "John Doe", "Jane Smith"
ROWS = [
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
]
"""NodeId, TypeTarget, Data, and the Data of the person whose hash is the shard (None for shard 0)."""
OTHER_HASH = {JOHN: "3", JANE: "1", None: "0"}
"""The shards that another program's hash has chosen."""


@pytest.fixture
def g() -> Iterator[Graph]:
    """The table, filled by another program, whose hash is not that of adjoin."""
    with Graph(":memory:", MODELS, layout=layout()) as graph:
        for node, target, data, owner in ROWS:
            item = {"NodeId": node, "TypeTarget": target, "Data": data, "GSI PK": OTHER_HASH[owner]}
            if owner is not None and not target.startswith("PERSON|" + node):
                item["owner"] = owner
            put(graph, item)
        yield graph


def put(g: Graph, item: dict[str, str]) -> None:
    def plan() -> Any:
        yield (Put("Graph", {name: encode(text) for name, text in item.items()}),)

    g._run(plan())


def test_nodes_and_edges_are_read(g: Graph) -> None:
    assert g.get(Person, "1") == Person(id="1", name=JOHN)
    assert (g.get(Skill, "6"), g.get(Person, "6")) == (Skill(id="6", name="Java Developer"), None)
    found = g.collection(Person.ref("1"))
    assert found.node == Person(id="1", name=JOHN)
    assert found.others == []
    assert [type(each).__name__ for each in found.edges] == ["BornOn", "Friend", "BornIn", "Knows"]
    assert [(each.target, each.skill) for each in g.out("5", Knows)] == [("7", "Guitar|Advanced")]
    assert len(list(g.scan())) == len(ROWS)
    assert list(g.scan().others) == []
    assert (g.count(Skill), g.count(Knows), g.count(Person)) == (2, 2, 2)


@pytest.mark.parametrize(
    ("index", "begins", "found"),
    [
        ("GSI1", "1980-12-19", ["1 DATE|2|BIRTH", "2 DATE|2", "5 DATE|2|BIRTH"]),
        ("GSI1", JANE, ["1 PERSON|5|FRIEND", "5 PERSON|5"]),
        ("GSI1", "USA|Texas", ["1 PLACE|4|BIRTH", "4 PLACE|4"]),
        ("GSI1", "Java Developer", ["1 SKILL|6", "6 SKILL|6"]),
        ("GSI1", "Java Developer|Senior", ["1 SKILL|6"]),
        ("GSI2", "DATE|2", ["1 DATE|2|BIRTH", "2 DATE|2", "5 DATE|2|BIRTH"]),
        ("GSI2", "PERSON|1", ["1 PERSON|1", "5 PERSON|1|FRIEND"]),
        ("GSI2", "SKILL|6", ["1 SKILL|6", "6 SKILL|6"]),
    ],
)
def test_one_question_for_all_classes_is_a_query_for_each_shard(
    g: Graph, index: str, begins: str, found: list[str]
) -> None:
    with g.meter() as meter:
        entities = list(g.index(index).begins_with(begins))
    assert meter.requests == SHARDS
    keys = [g._layout.key_of(g._layout.items(each)[0]) for each in entities]
    assert sorted(f"{key['NodeId']['S']} {key['TypeTarget']['S']}" for key in keys) == sorted(found)


def test_a_question_for_one_class(g: Graph) -> None:
    with g.meter() as meter:
        assert [each.source for each in g.find(BornOn, field("target") == "2")] == ["5", "1"]
    assert meter.requests == SHARDS
    assert [each.id for each in g.find(Person, field("name") == JANE)] == ["5"]
    with g.meter() as meter:
        assert [each.id for each in g.find(Place, field("path").begins_with("UK|"))] == ["3"]
    assert meter.requests == 1
    pairs = g.find(Knows, field("skill").begins_with("Java")).nodes("source")
    assert [(found.target, person.name) for found, person in pairs] == [("6", JOHN)]


def test_what_is_written_is_what_was_published(g: Graph) -> None:
    for entity in list(g.scan()):
        g.put(entity)
    written = {(each["NodeId"], each["TypeTarget"]): each for each in stored(g)}
    assert sorted(written) == sorted((node, target) for node, target, _, _ in ROWS)
    for node, target, data, owner in ROWS:
        item = written[node, target]
        assert item["Data"] == data
        assert item["GSI PK"] == (written[PEOPLE[owner]]["GSI PK"] if owner else "0")
        assert item.keys() - {"owner"} == {"NodeId", "TypeTarget", "Data", "GSI PK"}


PEOPLE = {JOHN: ("1", "PERSON|1"), JANE: ("5", "PERSON|5")}


def stored(g: Graph) -> list[dict[str, Any]]:
    """All items of the table that are not adjoin's own."""
    last = {}
    for change in g.changes():
        key = place_of(g._layout.key_of(change.new_item or change.old_item or {}))
        last[key] = change.new_item
    return [{name: decode(value) for name, value in item.items()} for item in last.values() if item is not None]


def test_all_items_of_a_person_follow_when_the_person_is_renamed(g: Graph) -> None:
    for entity in list(g.scan()):
        g.put(entity)
    before = {each["GSI PK"] for each in stored(g) if each["NodeId"] == "1"}
    assert len(before) == 1
    for name in ("Ann", "Bob", "Cid", "Dot"):
        g.update(Person, "1", name=name)
        while g.maintain(once=True).changes:
            pass
        items = [each for each in stored(g) if each["NodeId"] == "1"]
        assert len({each["GSI PK"] for each in items}) == 1
        assert {each.get("owner", name) for each in items} == {name}
        before |= {each["GSI PK"] for each in items}
        assert {each.source for each in g.index("GSI2").begins_with("DATE|2|")} == {"1", "5"}
        assert {type(each) for each in g.index("GSI1").equals(name)} == {Person, Friend}
        assert [each.source for each in g.find(Friend, field("name") == name)] == ["5"]
    assert len(before) > 1


def test_a_node_is_deleted_with_the_edges_that_arrive_in_any_shard(g: Graph) -> None:
    assert g.delete(Date, "2")
    assert [type(each).__name__ for each in g.collection(Person.ref("1")).edges] == ["Friend", "BornIn", "Knows"]
    assert g.delete(Person, "1")
    left = sorted((each["NodeId"], each["TypeTarget"]) for each in stored(g))
    gone = {"PERSON|1", "PERSON|1|FRIEND", "DATE|2", "DATE|2|BIRTH"}
    assert left == sorted((row[0], row[1]) for row in ROWS if row[0] != "1" and row[1] not in gone)


def test_what_the_layout_asks_of_classes() -> None:
    class Bare(Node):
        id: str

    with pytest.raises(InvalidModel, match="Bare has no field that is stored as 'Data'"):
        Graph(":memory:", [Bare], layout=MaterializedGraph.as_published(4))

    class Likes(Edge[Person, Place]):
        path: Annotated[str, Field(alias="Data")]

    with pytest.raises(InvalidModel, match=r'copy it from the source with Copy\("source.name"\)'):
        Graph(":memory:", [Person, Place, Likes], layout=MaterializedGraph.as_published(4))


def test_an_id_belongs_to_all_classes_together(g: Graph) -> None:
    with pytest.raises(InvalidKey, match="Knows from '6' to '6' would have the key of the Skill itself"):
        g.put(Knows(source="6", target="6", skill="x", owner="y"))


def test_a_table_whose_shards_are_numbers_and_whose_indexes_have_other_names() -> None:
    layout = MaterializedGraph.as_published(
        SHARDS, indexes=("ByData", "ByTarget"), types={"GSI PK": "N"}, table="Graph", keys=KEYS
    )
    with Graph(":memory:", MODELS, layout=layout) as g:
        g.put_many([Person(id="1", name=JOHN), Date(id="2", day="1980-12-19")])
        g.put(BornOn(source="1", target="2", day="1980-12-19"))
        shards = {(each["NodeId"], each["TypeTarget"]): each["GSI PK"] for each in stored(g)}
        assert shards["2", "DATE|2"] == 0
        assert shards["1", "PERSON|1"] == shards["1", "DATE|2|BIRTH"]
        assert all(isinstance(each, int | Decimal) for each in shards.values())
        with g.meter() as meter:
            assert len(list(g.index("ByData").equals("1980-12-19"))) == 2
        assert meter.requests == SHARDS
        assert [each.source for each in g.into("2", BornOn)] == ["1"]
        assert [each.id for each in g.find(Date, field("day") == "1980-12-19")] == ["2"]
        assert (g.count(Date), g.count(BornOn), list(g.scan().others)) == (1, 1, [])
        assert g.delete(Date, "2")
        assert [each["TypeTarget"] for each in stored(g)] == ["PERSON|1"]


class Event(Child[Person], key=("at",)):
    at: str
    text: Annotated[str, Field(alias="Data")]


def test_children_are_in_the_partition_of_their_parent() -> None:
    with Graph(":memory:", [*MODELS, Event], layout=layout()) as g:
        events = [Event(parent="1", at=f"2026-0{month}", text=f"Moved {month}") for month in range(1, 7)]
        g.put_many([Person(id="1", name=JOHN), *events])
        items = {each["TypeTarget"]: each for each in stored(g)}
        assert [items[f"EVENT|2026-0{month}"]["NodeId"] for month in range(1, 7)] == ["1"] * 6
        assert list(g.children("1", Event)) == g.collection(Person.ref("1")).children == events
        assert list(g.index("GSI1").begins_with("Moved")) == events
        assert {type(each) for each in g.index("GSI2").begins_with("EVENT|")} == {Event}
        assert g.delete(Person, "1")
        assert stored(g) == []
