"""The materialized graph of people: stored items, both indexes, and its access patterns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adjoin import Graph, field
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition
from examples import people
from examples.people import HELSINKI, LISBON, TURKU, BornIn, BornOn, Date, HasSkill, LivesIn, Person, Place, Skill
from tests.examples.raw import PlainItem, stored_items, table_definition, write_items

EIGHTY = dt.date(1980, 12, 19)
NINETY_ONE = dt.date(1991, 3, 7)


def _node(key: str, shard: str | None = None, data: str | None = None, **fields: Any) -> PlainItem:
    item = {"NodeId": key, "TypeTarget": key, "Type": key.partition("#")[0], **fields}
    return item if shard is None else item | {"GSIPK": shard, "Data": data}


def _edge(source: str, kind: str, target: str, shard: str, value: str, **fields: Any) -> PlainItem:
    return {
        "NodeId": source,
        "TypeTarget": f"{kind}#{target}",
        "Type": kind,
        "Target": target,
        "TypeSource": f"{kind}#{source}",
        "GSIPK": shard,
        "Data": f"{value}#{source}#{kind}#{target}",
        **fields,
    }


FI_HELSINKI, FI_TURKU = ["FI", "Uusimaa", "Helsinki"], ["FI", "Varsinais-Suomi", "Turku"]
PT_LISBON = ["PT", "Lisboa", "Lisboa"]
HELSINKI_TEXT, TURKU_TEXT, LISBON_TEXT = "FI$Uusimaa$Helsinki", "FI$Varsinais-Suomi$Turku", "PT$Lisboa$Lisboa"

DOCUMENT: list[PlainItem] = [
    {
        "NodeId": "PERSON#P1",
        "TypeTarget": "PERSON#P1",
        "Type": "PERSON",
        "name": "Aino Virtanen",
        "GSIPK": "PERSON#name#0",
        "Data": "Aino%20Virtanen#PERSON#P1",
    },
    {
        "NodeId": "PERSON#P1",
        "TypeTarget": "BORN_ON#DATE#1980-12-19",
        "Type": "BORN_ON",
        "Target": "DATE#1980-12-19",
        "TypeSource": "BORN_ON#PERSON#P1",
        "date": "1980-12-19",
        "GSIPK": "BORN_ON#date#1",
        "Data": "1980-12-19#PERSON#P1#BORN_ON#DATE#1980-12-19",
    },
    {
        "NodeId": "PERSON#P1",
        "TypeTarget": "LIVES_IN#PLACE#helsinki",
        "Type": "LIVES_IN",
        "Target": "PLACE#helsinki",
        "TypeSource": "LIVES_IN#PERSON#P1",
        "path": ["FI", "Uusimaa", "Helsinki"],
        "GSIPK": "LIVES_IN#path#0",
        "Data": "FI$Uusimaa$Helsinki#PERSON#P1#LIVES_IN#PLACE#helsinki",
    },
    {
        "NodeId": "PERSON#P1",
        "TypeTarget": "HAS_SKILL#SKILL#python",
        "Type": "HAS_SKILL",
        "Target": "SKILL#python",
        "TypeSource": "HAS_SKILL#PERSON#P1",
        "skill": ["python", "2009"],
        "GSIPK": "HAS_SKILL#skill#1",
        "Data": "python$2009#PERSON#P1#HAS_SKILL#SKILL#python",
    },
    _edge("PERSON#P1", "BORN_IN", "PLACE#turku", "BORN_IN#path#1", TURKU_TEXT, path=FI_TURKU),
    _node("PERSON#P2", "PERSON#name#0", "Bruno%20Costa#PERSON#P2", name="Bruno Costa"),
    _edge("PERSON#P2", "BORN_ON", "DATE#1991-03-07", "BORN_ON#date#1", "1991-03-07", date="1991-03-07"),
    _edge("PERSON#P2", "BORN_IN", "PLACE#lisboa", "BORN_IN#path#1", LISBON_TEXT, path=PT_LISBON),
    _edge("PERSON#P2", "LIVES_IN", "PLACE#helsinki", "LIVES_IN#path#1", HELSINKI_TEXT, path=FI_HELSINKI),
    _edge("PERSON#P2", "HAS_SKILL", "SKILL#python", "HAS_SKILL#skill#0", "python$2004", skill=["python", "2004"]),
    _edge("PERSON#P2", "HAS_SKILL", "SKILL#piano", "HAS_SKILL#skill#0", "piano$1999", skill=["piano", "1999"]),
    _node("PERSON#P4", "PERSON#name#1", "Aleksi%20Niemi#PERSON#P4", name="Aleksi Niemi"),
    _edge("PERSON#P4", "BORN_ON", "DATE#1980-12-19", "BORN_ON#date#0", "1980-12-19", date="1980-12-19"),
    _edge("PERSON#P4", "BORN_IN", "PLACE#helsinki", "BORN_IN#path#0", HELSINKI_TEXT, path=FI_HELSINKI),
    _edge("PERSON#P4", "LIVES_IN", "PLACE#turku", "LIVES_IN#path#1", TURKU_TEXT, path=FI_TURKU),
    _edge("PERSON#P4", "HAS_SKILL", "SKILL#piano", "HAS_SKILL#skill#1", "piano$2020", skill=["piano", "2020"]),
    _node("DATE#1980-12-19"),
    _node("DATE#1991-03-07"),
    _node("PLACE#helsinki", "PLACE#path#1", f"{HELSINKI_TEXT}#PLACE#helsinki", path=FI_HELSINKI),
    _node("PLACE#turku", "PLACE#path#1", f"{TURKU_TEXT}#PLACE#turku", path=FI_TURKU),
    _node("PLACE#lisboa", "PLACE#path#0", f"{LISBON_TEXT}#PLACE#lisboa", path=PT_LISBON),
    _node("SKILL#python", name="Python"),
    _node("SKILL#piano", name="Piano"),
]

TABLE = TableDefinition(
    "People",
    KeyAttribute("NodeId"),
    KeyAttribute("TypeTarget"),
    (
        IndexDefinition("GSI2", KeyAttribute("Target"), KeyAttribute("TypeSource"), Projection("ALL")),
        IndexDefinition("GSI1", KeyAttribute("GSIPK"), KeyAttribute("Data"), Projection("ALL")),
    ),
)


@pytest.fixture
def g() -> Iterator[Graph]:
    with people.open_graph() as graph:
        graph.put_many(people.SAMPLE)
        yield graph


def in_order(items: list[PlainItem], *keys: str) -> list[PlainItem]:
    return sorted(items, key=lambda item: [item[key] for key in keys])


# --- what is stored ----------------------------------------------------------------------------


def test_the_table_has_two_indexes_and_no_more(g: Graph) -> None:
    assert table_definition(g, "People") == TABLE


def test_stored_items_are_the_documents_items(g: Graph) -> None:
    stored = stored_items(g, "People")
    assert in_order(stored, "NodeId", "TypeTarget") == in_order(DOCUMENT, "NodeId", "TypeTarget")


def test_one_index_holds_names_dates_places_and_skills(g: Graph) -> None:
    entries = stored_items(g, "People", "GSI1")
    keys = ("GSIPK", "Data", "NodeId", "TypeTarget")
    assert in_order(entries, *keys) == in_order([item for item in DOCUMENT if "Data" in item], *keys)
    assert {entry["GSIPK"].rpartition("#")[0] for entry in entries} == {
        "PERSON#name", "PLACE#path", "BORN_ON#date", "BORN_IN#path", "LIVES_IN#path", "HAS_SKILL#skill",
    }  # fmt: skip


def test_the_second_index_holds_edges_by_their_target(g: Graph) -> None:
    keys = ("Target", "TypeSource")
    entries = stored_items(g, "People", "GSI2")
    assert in_order(entries, *keys) == in_order([item for item in DOCUMENT if "Target" in item], *keys)


@pytest.mark.parametrize(
    ("written", "units"),
    [
        (Person(id="P9", name="Noor"), 2),
        (Date(id=dt.date(2000, 1, 1)), 1),
        (LivesIn(source="P9", target="turku", path=TURKU), 3),
    ],
    ids=["a node and one index entry", "a node in no index", "an edge and two index entries"],
)
def test_what_a_write_costs(g: Graph, written: Any, units: int) -> None:
    with g.meter() as m:
        g.put(written)
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0, units)


# --- access patterns ---------------------------------------------------------------------------


def test_everything_about_a_person_in_one_query(g: Graph) -> None:
    with g.meter() as m:
        person, edges = people.everything_about_person(g)
    assert person == Person(id="P1", name="Aino Virtanen")
    assert edges == [
        BornIn(source="P1", target="turku", path=TURKU),
        BornOn(source="P1", target=EIGHTY, date=EIGHTY),
        HasSkill(source="P1", target="python", skill=("python", "2009")),
        LivesIn(source="P1", target="helsinki", path=HELSINKI),
    ]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (1, 1, 0.5, 0)


FOUND: list[tuple[Callable[[Graph], Any], Any]] = [
    (people.people_by_name, ["Aino Virtanen", "Aleksi Niemi"]),
    (people.born_between, [(EIGHTY, "P1"), (EIGHTY, "P4"), (NINETY_ONE, "P2")]),
    (people.people_in_country, ["P1", "P2", "P4"]),
    (people.people_in_region, ["P1", "P2"]),
    (people.people_in_city, ["P4"]),
    (people.people_with_skill, [("P2", "2004"), ("P1", "2009")]),
]


@pytest.mark.parametrize(("pattern", "expected"), FOUND, ids=lambda each: getattr(each, "__name__", ""))
def test_the_index_over_data_finds_in_one_round_with_a_request_a_shard(
    g: Graph, pattern: Callable[[Graph], Any], expected: Any
) -> None:
    with g.meter() as m:
        found = pattern(g)
    assert found == expected
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (2, 1, 1, 0)
    assert m.tables["People"].indexes["GSI1"].rcu == 1


def test_names_of_who_was_born_between_two_dates_take_one_batch_get_more(g: Graph) -> None:
    with g.meter() as m:
        found = people.born_between_by_name(g)
    assert found == [(EIGHTY, "Aino Virtanen"), (EIGHTY, "Aleksi Niemi"), (NINETY_ONE, "Bruno Costa")]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (3, 2, 2.5, 0)


def test_who_is_connected_to_a_date_a_place_or_a_skill(g: Graph) -> None:
    with g.meter() as m:
        assert people.people_born_on_date(g) == ["P1", "P4"]
        assert people.people_of_place(g) == [
            BornIn(source="P4", target="helsinki", path=HELSINKI),
            LivesIn(source="P1", target="helsinki", path=HELSINKI),
            LivesIn(source="P2", target="helsinki", path=HELSINKI),
        ]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (2, 2, 1, 0)
    assert m.tables["People"].indexes["GSI2"].rcu == 1
    with g.meter() as m:
        assert people.people_of_skill(g) == ["Aino Virtanen", "Bruno Costa"]
    assert (m.requests, m.rounds, m.rcu, m.wcu) == (2, 2, 1.5, 0)


# --- corners -----------------------------------------------------------------------------------


def test_a_step_of_a_path_is_whole(g: Graph) -> None:
    g.put(LivesIn(source="P9", target="turku", path=("FIX", "Uusimaa", "Helsinki")))
    g.put(LivesIn(source="P8", target="turku", path=("FI", "Uusimaa X", "Helsinki")))
    assert people.people_in_country(g) == ["P1", "P2", "P8", "P4"]
    assert people.people_in_region(g) == ["P1", "P2"]


def test_a_path_filters_by_its_first_steps_where_another_field_is_looked_up(g: Graph) -> None:
    in_finland, in_portugal = (field("path").begins_with(each) for each in (("FI",), ["PT"]))
    assert [edge.target for edge in g.out("P2", BornIn).where(in_portugal)] == ["lisboa"]
    assert g.out("P2", BornIn).where(in_finland).count() == 0
    assert g.out("P2", BornIn).where(field("path").begins_with(())).count() == 1


def test_who_moves_is_found_in_the_new_place_only(g: Graph) -> None:
    with g.meter() as m:
        g.update(LivesIn, "P4", "turku", path=HELSINKI)
    assert (m.requests, m.wcu) == (1, 4)
    assert people.people_in_region(g) == ["P1", "P2", "P4"]
    assert people.people_in_city(g) == []


def test_pages_go_on_over_both_shards(g: Graph) -> None:
    everybody = g.find(Person)
    names, token = [], None
    while True:
        page = everybody.page(limit=1, after=token)
        names += [person.name for person in page]
        token = page.next
        if token is None:
            break
    assert names == ["Aino Virtanen", "Aleksi Niemi", "Bruno Costa"]
    assert [person.name for person in everybody.reverse()] == names[::-1]
    assert everybody.count() == 3


def test_a_person_goes_with_everything_about_it(g: Graph) -> None:
    assert g.delete(Person, "P1")
    left = [item for item in DOCUMENT if item["NodeId"] != "PERSON#P1"]
    stored = stored_items(g, "People")
    assert in_order(stored, "NodeId", "TypeTarget") == in_order(left, "NodeId", "TypeTarget")
    assert people.people_in_country(g) == ["P2", "P4"]


def test_items_of_another_program_are_readable_in_whatever_shard_it_chose() -> None:
    with people.open_graph() as g:
        swapped = {"0": "1", "1": "0"}
        items = [
            item | {"GSIPK": item["GSIPK"][:-1] + swapped[item["GSIPK"][-1]]} if "GSIPK" in item else item
            for item in DOCUMENT
        ]
        write_items(g, "People", items)
        for pattern, expected in FOUND:
            assert pattern(g) == expected
        assert g.get(Skill, "python") == Skill(id="python", name="Python")
        assert [place.id for place in g.find(Place, field("path").begins_with(("PT",)))] == ["lisboa"]
        assert g.get(Place, "lisboa") == Place(id="lisboa", path=LISBON)
