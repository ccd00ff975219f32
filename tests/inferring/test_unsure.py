"""What is not explained is counted, what is unsure is said, and no text of a table becomes code."""

from __future__ import annotations

import ast
from dataclasses import replace
from decimal import Decimal

import pytest

from adjoin.inferring import infer
from adjoin.inferring.checking import executed, tried
from adjoin.tables import IndexDefinition, KeyAttribute
from tests.inferring.published import LATER, item, table
from tests.inferring.tables import example, opened

KEYS = table("Things", "PK SK")


def test_items_that_no_class_can_write_are_counted() -> None:
    items = [item(PK=f"USER#{number}", SK="PROFILE", name="Ann") for number in range(9)]
    # An id must not be empty.
    items.append(item(PK="USER#", SK="PROFILE", name="Nobody"))
    found = infer(KEYS, items, "the test")
    assert (found.explained, found.read) == (9, 10)
    assert sum(number for _, number in found.unexplained) == 1
    assert "9 of 10 are explained (90.0 %)" in found.source
    assert "Not explained: 1 items." in found.source


def test_what_somebody_left_behind_is_counted_and_makes_no_class_for_everything() -> None:
    found = infer(*LATER["with_leftovers"](), "the test")
    assert found.read - found.explained == 3
    assert {each.name for each in found.program.classes} == {"UserProfile", "Device", "Lock", "Counter"}


def test_an_empty_table() -> None:
    found = infer(KEYS, [], "the test")
    assert (found.explained, found.read) == (0, 0)
    ast.parse(found.source)


def test_a_field_of_two_types_is_kept_and_not_declared() -> None:
    items = [item(PK=f"USER#{number}", SK="PROFILE", age=number if number % 2 else str(number)) for number in range(9)]
    found = infer(KEYS, items, "the test")
    assert found.explained == 9
    assert "no field explains age" in found.source


def test_a_null_and_an_absent_value_are_not_the_same() -> None:
    items = [item(PK=f"USER#{number}", SK="PROFILE", age=None if number else 7) for number in range(4)]
    items.append(item(PK="USER#9", SK="PROFILE"))
    assert infer(KEYS, items, "the test").explained == 5


def test_numbers_as_text_and_dates_that_are_ambiguous_stay_text() -> None:
    items = [
        item(PK=f"USER#{number}", SK="PROFILE", zip=f"0{number}139", born=f"0{number}/02/2001", paid=Decimal("1.50"))
        for number in range(1, 9)
    ]
    (user,) = infer(KEYS, items, "the test").program.classes
    assert {each.name: each.hint.text for each in user.fields} == {"zip_": "str", "born": "str", "paid": "Decimal"}


def test_an_attribute_that_repeats_the_id_by_chance_is_a_field() -> None:
    items = [item(PK="USER#7", SK="PROFILE", age="7", name="Ann")]
    (user,) = infer(KEYS, items, "the test").program.classes
    assert user.attributes == {}
    assert "age" in [each.name for each in user.fields]
    assert "only one item was read" in user.notes


def test_a_value_in_an_index_key_of_few_items_is_no_constant() -> None:
    definition = table("Things", "PK SK", GSI1="SK Data")
    items = [item(PK="P#7", SK="PRODUCT", Data="Lamp")]
    (product,) = infer(definition, items, "the test").program.classes
    assert product.indexes == {}
    assert [each.attribute for each in product.fields] == ["Data"]


def test_a_value_that_never_changes_is_said() -> None:
    items = [item(PK=f"USER#{number}", SK=f"HOME#USA#{number}") for number in range(5)]
    (home,) = infer(KEYS, items, "the test").program.classes
    assert any("'USA' in all keys" in note for note in home.notes)


def test_a_program_that_changes_items_is_found_out() -> None:
    definition, items = example("education")
    source = infer(definition, items, "the test").source
    wrong = source.replace('"COURSE#{target.id}", "STUDENT#{source.id}"', '"COURSE#{target.id}", "STUDENT|{source.id}"')
    found = tried(wrong, definition, items)
    assert found.explained == 4
    assert found.changed == {"Enrollment": {"GSI1-SK": 3}}


HOSTILE = [
    '"""\nraise SystemExit(1)\n"""',
    "'; raise SystemExit(1) #",
    "{source.id}",
    "{{}}{0}",
    "\\",
    "class",
    "__import__('os')",
    "a\nb",
    "\x00",
    "é ünï",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_a_table_are_no_code(text: str) -> None:
    items = [
        item(**{"PK": f"USER#{number}", "SK": f"X{text}", text: text, "name": text, "Type": text})
        for number in range(3)
    ]
    items += [item(PK=f"{text}#{number}", SK=text) for number in range(3)]
    found = infer(KEYS, items, f"the {text}")
    executed(found.source)
    with opened(found.source, (KEYS, items)) as (g, _):
        assert len(list(g.scan())) == found.explained


def test_an_index_key_that_may_follow_a_field_by_chance_is_said() -> None:
    definition = table("Things", "PK SK", GSI1="GSI1PK GSI1SK")
    items = [
        item(PK=f"JOB#{number}", SK="JOB", status="open", GSI1PK="STATE#open", GSI1SK=f"JOB#{number}")
        for number in range(6)
    ]
    (job,) = infer(definition, items, "the test").program.classes
    assert job.indexes == {"GSI1": ("STATE#{status}", "JOB#{id}")}
    assert "GSI1PK has 'open' from status, which is the same in all items" in job.notes


def test_an_index_whose_keys_have_several_attributes() -> None:
    index = IndexDefinition.over("ByPlace", [KeyAttribute("country"), KeyAttribute("city")], [KeyAttribute("street")])
    definition = replace(KEYS, indexes=(index,))
    items = [
        item(PK=f"SHOP#{number}", SK="SHOP", country="PT", city=f"C{number % 3}", street=f"S{number}")
        for number in range(9)
    ]
    found = infer(definition, items, "the test")
    assert found.explained == 9
    with opened(found.source, (definition, items)) as (g, module):
        assert [shop.id for shop in module.shops_by_country_and_city(g, "PT", "C1")] == ["1", "4", "7"]
