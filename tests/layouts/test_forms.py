"""What is due of the items of a class: which queries may miss some, and how a class is stored."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Count, Edge, Index, Indexed, Keys, MigrationDue, Node, TableMismatch, Unique
from adjoin.expressions import Exists, Path, attribute
from adjoin.layouts.forms import Due, FormPart, ItemForm
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


INDEX: FormPart = ("index", "ByCity")
FORM = ItemForm(
    "Person",
    "PERSON",
    {"PK": "PERSON#{0}", "SK": "#META"},
    {"ByCity": {"CityPK": "CITY#{city}", "CitySK": "P#{0}"}},
    ("age", "name", "tags[]"),
    ("mail",),
    False,
    {"age": "age", "name": "name", "tags": "tags", "mail": "mail", "city": "city"},
    spelled={"age": "number", "name": "text", "city": "text", "mail": "text"},
)


@pytest.mark.parametrize(
    ("stored", "lacking"),
    [
        ({}, set()),
        ({"keys": {"PK": "P#{0}", "SK": "#META"}}, {("keys", "")}),
        ({"indexes": {}}, {INDEX}),
        ({"indexes": {"ByCity": {"CityPK": "CITY#{city}", "CitySK": "Q#{0}"}}}, {INDEX}),
        ({"indexed": ("age", "tags[]")}, {("indexed", "name")}),
        # The item itself is the entry of the first indexed field, the others have copies.
        ({"indexed": ("name", "age", "tags[]")}, {("indexed", "age"), ("indexed", "name")}),
        ({"indexed": ("tags[]", "age", "name")}, set()),
        ({"unique": ()}, {("unique", "mail")}),
        ({"symmetric": True}, set()),
        ({"due": frozenset({INDEX})}, {INDEX}),
        ({"due": frozenset({("unique", "other")})}, set()),
        # A value that is spelled in another way now is in all keys that are made of it.
        ({"spelled": {"city": "date"}}, {INDEX}),
        ({"spelled": {"age": "text"}}, {("indexed", "age")}),
        ({"spelled": {"mail": "bytes"}}, {("unique", "mail")}),
        ({"spelled": {}}, set()),
    ],
)
def test_what_items_of_another_form_lack(stored: dict[str, Any], lacking: set[FormPart]) -> None:
    assert FORM.lacking(replace(FORM, **stored)) == lacking


def test_an_index_over_attributes_that_items_had_is_filled_by_dynamodb() -> None:
    plain = replace(FORM, indexes={"ByCity": {"city": "{city}", "age": "{age}"}})
    without = replace(FORM, indexes={})
    assert plain.lacking(without) == set()
    assert plain.lacking(replace(without, due=frozenset({INDEX}))) == {INDEX}
    assert plain.lacking(replace(without, fields={"city": "city"})) == {INDEX}


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"CityPK": "CITY#{city}", "CitySK": "P#{0}"}, []),
        ({"CityPK": "CITY#{city}", "CitySK": "P#{name}#{0}"}, ["ByCity"]),
        ({"CityPK": "CITY#{city}", "CitySK": "Q#{0}"}, []),
        ({"CityPK": "TOWN#{city}", "CitySK": "P#{name}"}, []),
    ],
)
def test_indexes_with_other_sort_keys_in_the_same_partitions(entry: dict[str, str], found: list[str]) -> None:
    stored = replace(FORM, indexes={"ByCity": entry})
    assert FORM.resorted(stored, {"ByCity": "CityPK"}) == found
    assert FORM.resorted(replace(stored, due=frozenset({INDEX})), {"ByCity": "CityPK"}) == []


def test_a_form_is_recorded_as_plain_values() -> None:
    form = replace(FORM, due=frozenset({("keys", ""), INDEX}))
    assert ItemForm.of_plain("PERSON", form.plain()) == form
    assert form.plain()["due"] == ["index ByCity", "keys"]
    assert {"symmetric", "aggregates"}.isdisjoint(form.plain())


def test_what_is_not_known_of_a_table_without_a_record_is_due_until_somebody_has_looked() -> None:
    due = Due()
    due.doubt({PERSON.word: frozenset({INDEX})}, {PERSON.word: "Person"})
    assert due.is_any
    with pytest.raises(MigrationDue):
        due.check_range(PERSON, "ByCity")
    due.looked({PERSON.word: frozenset()})
    assert not due.is_any
    due.check_range(PERSON, "ByCity")
    other = due.of_another_tenant()
    with pytest.raises(MigrationDue):
        other.check_range(PERSON, "ByCity")
    # Whoever has looked does not doubt again.
    due.doubt({PERSON.word: frozenset({INDEX})}, {PERSON.word: "Person"})
    due.check_range(PERSON, "ByCity")
    due.learn({}, {})
    assert not due.of_another_tenant().is_any


def test_conditions_on_a_field_that_items_may_lack_are_refused() -> None:
    due = Due()
    due.learn({PERSON.word: frozenset({("field", "city")})}, {PERSON.word: "Person"})
    due.check_filter(PERSON, None)
    due.check_filter(None, Exists(attribute("city")))
    due.check_filter(PERSON, Exists(attribute("age")))
    with pytest.raises(MigrationDue, match="may lack their 'city'"):
        due.check_filter(PERSON, Exists(Path(("city", "name"))))


def test_values_are_spelled_in_keys_as_their_types_say() -> None:
    class Mood(Enum):
        GOOD = 1

    class Spelled(Node):
        id: str
        text: Annotated[str, Indexed()]
        whole: Annotated[int, Indexed()]
        mood: Annotated[Mood, Indexed()]
        day: Annotated[dt.date, Unique()]
        at: Annotated[dt.datetime, Indexed()]
        other: int = 0

    (form,) = AdjacencyList().bind(Schema([Spelled])).forms().values()
    assert form.spelled == {"text": "text", "whole": "number", "mood": "number", "day": "date", "at": "datetime"}


def test_a_computed_field_is_lacking_unless_it_was_stored_before() -> None:
    computed = replace(FORM, computed=("city",))
    assert computed.lacking(FORM) == set()
    assert computed.lacking(replace(FORM, fields={"age": "age"})) == {("field", "city")}


def test_only_indexes_that_both_forms_have_are_compared() -> None:
    assert FORM.resorted(replace(FORM, indexes={"Other": {"OtherPK": "{city}"}}), {"ByCity": "CityPK"}) == []


def test_something_is_due_while_a_class_lacks_a_part() -> None:
    due = Due()
    parts: dict[str, frozenset[FormPart]] = {PERSON.word: frozenset({INDEX}), KNOWS.word: frozenset()}
    due.learn(parts, {})
    assert (due.is_any, set(due.parts)) == (True, {PERSON.word})
    due.learn({KNOWS.word: frozenset()}, {})
    assert (due.is_any, set(due.parts)) == (False, set())
    due.looked(parts)
    assert (due.is_any, set(due.parts)) == (True, {PERSON.word})
    doubting = Due()
    doubting.doubt(parts, {})
    assert doubting.of_another_tenant().is_any


def test_each_question_asks_for_what_it_needs() -> None:
    lacking: dict[FormPart, set[str]] = {
        ("indexed", "age"): {"field"},
        ("unique", "mail"): {"unique"},
        ("index", "ByCity"): {"around"},
        ("keys", ""): {"field", "unique", "around", "keys"},
        ("symmetric", ""): {"around"},
    }
    for part, refused in lacking.items():
        due = Due()
        due.learn({PERSON.word: frozenset({part})}, {})
        found: dict[str, str] = {}
        for name, ask in {
            "field": partial(due.check_field, PERSON, "age", "GSI3"),
            "unique": partial(due.check_unique, PERSON, "mail"),
            "around": partial(due.check_around, [PERSON], "ByCity"),
            "keys": partial(due.check_keys, PERSON),
        }.items():
            try:
                ask()
            except MigrationDue as error:
                found[name] = str(error)
        assert set(found) == refused, part
        assert all(("former declarations" in said) is (part[0] == "keys") for said in found.values())


def test_around_a_node_an_index_with_other_sort_keys_has_every_edge() -> None:
    due = Due()
    due.learn({KNOWS.word: frozenset({INDEX, ("symmetric", "")})}, {}, [(KNOWS.word, "ByCity")])
    due.check_around([KNOWS], "ByCity")
    with pytest.raises(MigrationDue):
        due.check_around([KNOWS], None)
    assert due.is_becoming_symmetric(KNOWS)
    due.learn({KNOWS.word: frozenset({INDEX})}, {})
    assert not due.is_becoming_symmetric(KNOWS)


def test_a_form_names_only_what_is_stored() -> None:
    class Book(Node):
        id: str
        shelf: Annotated[str, Indexed()]
        tags: Annotated[list[str], Indexed(elements=True)] = []
        isbn: Annotated[str | None, Unique()] = None
        loans: Annotated[int, Count("Loan")] = 0

    class Loan(Edge[Person, Book]):
        days: Annotated[int, Field(alias="d")] = 0

    layout = AdjacencyList().bind(Schema([Person, Book, Loan]))
    forms = {form.name: form for form in layout.forms().values()}
    book, loan = forms["Book"], forms["Loan"]
    assert book.fields == {"shelf": "shelf", "tags": "tags", "isbn": "isbn", "loans": "loans"}
    assert (book.indexed, book.unique, book.computed) == (("shelf", "tags[]"), ("isbn",), ())
    assert (book.keys, book.indexes) == ({"PK": "BOOK#{0}", "SK": "#META"}, {})
    assert {name: set(form.aggregates) for name, form in forms.items()} == {
        "Person": set(),
        "Book": {"loans"},
        "Loan": set(),
    }
    assert (loan.fields, set(loan.indexes)) == ({"days": "d"}, {"GSI1"})
