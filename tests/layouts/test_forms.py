"""What is due of the items of a class: which queries may miss some, and how a class is stored."""

from __future__ import annotations

from typing import Annotated

import pytest

from adjoin import AdjacencyList, Edge, Index, Indexed, Keys, MigrationDue, Node, TableMismatch
from adjoin.layouts.forms import Due, FormPart
from adjoin.schema import Schema


class Person(Node):
    id: str
    age: Annotated[int, Indexed()] = 0
    city: str = ""


class Knows(Edge[Person, Person]):
    pass


SCHEMA = Schema([Person, Knows])
PERSON, KNOWS = SCHEMA.node(Person), SCHEMA.edge(Knows)


def test_only_an_index_that_the_table_lacks_is_refused() -> None:
    due = Due()
    due.learn_absent(["GSI1"])
    assert due.is_any
    due.check_range(PERSON, None)
    due.check_range(PERSON, "GSI2")
    due.check_field(PERSON, "age", "GSI3")
    with pytest.raises(TableMismatch, match="the table has no index 'GSI1'"):
        due.check_range(PERSON, "GSI1")
    with pytest.raises(TableMismatch, match="the table has no index 'GSI1'"):
        due.check_field(PERSON, "age", "GSI1")


def test_what_edges_lack_is_about_their_class_only() -> None:
    due = Due()
    due.learn({KNOWS.word: frozenset({("symmetric", "")})}, {KNOWS.word: "Knows"})
    due.check_range(PERSON, None)
    with pytest.raises(MigrationDue, match="Knows"):
        due.check_range(KNOWS, None)
    with pytest.raises(MigrationDue, match="Knows"):
        due.check_around([PERSON, KNOWS], None)


def test_an_index_that_lacks_items_is_refused_for_their_class_and_for_every_class() -> None:
    due = Due()
    due.learn({PERSON.word: frozenset({("index", "ByCity")})}, {PERSON.word: "Person"})
    due.check_range(PERSON, "GSI1")
    due.check_range(PERSON, None)
    due.check_range(KNOWS, "ByCity")
    for kind in (PERSON, None):
        with pytest.raises(MigrationDue, match="Person"):
            due.check_range(kind, "ByCity")


def test_an_index_with_other_sort_keys_has_every_item_of_its_partitions() -> None:
    due = Due()
    parts: frozenset[FormPart] = frozenset({("index", "ByCity"), ("index", "ByPlace")})
    due.learn({PERSON.word: parts}, {PERSON.word: "Person"}, [(PERSON.word, "ByCity")])
    due.check_range(None, "ByCity")
    with pytest.raises(MigrationDue, match="Person"):
        due.check_range(PERSON, "ByCity")
    with pytest.raises(MigrationDue, match="Person"):
        due.check_range(None, "ByPlace")


def test_only_symmetric_edges_have_two_items() -> None:
    class Likes(Edge[Person, Person], symmetric=True):
        pass

    forms = AdjacencyList().bind(Schema([Person, Knows, Likes])).forms()
    assert {form.name: form.symmetric for form in forms.values()} == {"Person": False, "Knows": False, "Likes": True}


def test_an_entry_of_the_overloaded_index_is_made_of_the_first_indexed_field() -> None:
    class Town(Node):
        id: str
        name: Annotated[str, Indexed()]
        mayor: Annotated[str, Indexed()]

    layout = AdjacencyList().bind(Schema([Town]))
    kind = layout.schema.node(Town)
    assert layout.entry_parts(kind, ["GSI3PK"]) == {"name"}
    assert layout.entry_parts(kind, ["GSI1PK"]) == set()


def test_the_form_of_a_class_has_its_templates_and_its_plain_attributes() -> None:
    layout = AdjacencyList(
        indexes=[Index("ByCity", "city", "ByCitySK"), Index("ByPlace", "PlacePK", "PlaceSK")],
        keys={Person: Keys(indexes={"ByCity": (None, "{id}"), "ByPlace": ("PLACE#{city}", "P#{id}")})},
    ).bind(Schema([Person]))
    (form,) = layout.forms().values()
    # Parts of an id have their place in it for a name.
    assert form.plain()["indexes"] == {
        "ByCity": {"city": "{city}", "ByCitySK": "{0}"},
        "ByPlace": {"PlacePK": "PLACE#{city}", "PlaceSK": "P#{0}"},
    }
