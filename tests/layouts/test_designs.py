"""Whole designs: what is stored for each entity, and where it is looked for, as `designs.txt` says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjoin.fields import Comparison
from adjoin.values import Item
from tests.layouts.described import described, said
from tests.layouts.designs import DESIGNS, SHOP, Animal, Cat, Club, Device, Order, Person, Product, Talk

EXPECTED = {
    title: text.strip().splitlines()
    for title, _, text in (
        part.partition("\n") for part in Path(__file__).with_name("designs.txt").read_text().split("\n## ")[1:]
    )
}


@pytest.mark.parametrize("name", DESIGNS)
def test_items_and_places_of_a_design(name: str) -> None:
    design = DESIGNS[name]
    assert described(design.bound(), design.entities) == EXPECTED[name]


def test_every_design_is_described() -> None:
    assert EXPECTED.keys() == DESIGNS.keys()


# --- items that are nobody's -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "sort", "name"),
    [
        ("ev#d1#2026-01-02", "2026-01-02T03:00:00.000000", "Event"),
        # The day in one key is not that of the time in the other.
        ("ev#d1#2026-01-03", "2026-01-02T03:00:00.000000", None),
        ("al#2026-01-02", "2026-01-02T03:00:00.000000#d1#o", "Alarm"),
        ("al#2026-01-03", "2026-01-02T03:00:00.000000#d1#o", None),
        ("al#2026-01-02", "2026-01-02T03:00:00.000000#d1", None),
    ],
)
def test_keys_that_hold_a_day_and_a_time_have_to_agree(partition: str, sort: str, name: str | None) -> None:
    layout = DESIGNS["days in partition keys, and shards"].bound()
    item: Item = {"PK": {"S": partition}, "SK": {"S": sort}, "TPK": {"S": "OWNER#o"}}
    found = layout.kind_of(item)
    assert (None if found is None else found.name) == name
    read = {kind.name for kind in layout.schema.types if layout.decode(kind, item) is not None}
    assert read == ({name} if name is not None else set())


@pytest.mark.parametrize(
    ("design", "partition", "sort", "name"),
    [
        ("an adjacency list", "PERSON#a", "#META", "Person"),
        ("an adjacency list", "PERSON#a", "MEMBER#CLUB#7", "Member"),
        # Of an edge from a class of nodes, in the partition of another one.
        ("an adjacency list", "CLUB#7", "MEMBER#CLUB#7", None),
        ("an adjacency list", "PERSON#a", "MEMBER#CLUB#07", None),
        ("an adjacency list", "PERSON#a", "POST#p501.3#REMARK#p501.5", "Remark"),
        ("an adjacency list", "CLUB#7", "POST#p501.3", None),
        ("an adjacency list", "CLUB#x", "#META", None),
        ("a partition key only", "s.4", "", "Sensor"),
        ("a partition key only", "4.5.2026-01-01", "", "Near"),
        ("a partition key only", "4.5.2026-01", "", None),
        ("a shop whose orders share the partitions of customers", "c|C1", "c", "Customer"),
        ("a shop whose orders share the partitions of customers", "c|C1", "o|000007", "Order"),
        ("a shop whose orders share the partitions of customers", "c|C1", "o|7", None),
        ("a shop whose orders share the partitions of customers", "p|C1", "o|000007", None),
        ("a shop whose orders share the partitions of customers", "p|P1", "p|P1", "Product"),
        ("a shop whose orders share the partitions of customers", "p|P1", "p|P2", None),
        ("a field that is the target", "o", "SKILL|py", "Knows"),
        ("a field that is the target", "o", "SKILL", "Skill"),
    ],
)
def test_whose_keys_these_are(design: str, partition: str, sort: str, name: str | None) -> None:
    layout = DESIGNS[design].bound()
    item: Item = dict(zip(layout.start_names(None), ({"S": partition}, {"S": sort}), strict=False))
    found = layout.kind_of(item)
    assert (None if found is None else found.name) == name
    assert layout.is_bookkeeping(item) is False


# --- the classes of a family -------------------------------------------------------------------


def test_what_tells_the_classes_of_a_family_apart() -> None:
    """A find in an index has to ask for it, because the keys of all these classes are the same."""
    layout = DESIGNS["a family, and ends of several classes"].bound()
    told = {kind.name: layout.told_apart(kind) for kind in layout.schema.types}
    assert {name: said(condition) for name, condition in told.items() if condition is not None} == {
        "Dog": "kind = 'dog'",
        "Cat": "kind = 'cat'",
    }
    (item,) = layout.items(Cat(id="c"))
    assert {kind.name: layout.is_one(kind, item) for kind in layout.schema.node(Animal).family} == {
        "Dog": False,
        "Cat": True,
    }


def test_an_index_over_the_type_may_lack_what_others_wrote_without_it() -> None:
    layout = SHOP.bound()
    (by_price,) = (each for each in layout.patterns(layout.schema.node(Product)) if each.index == "ByPrice")
    (state,) = (each for each in layout.patterns(layout.schema.node(Order)) if each.index == "State")
    found, whole = by_price.conditions([]), state.conditions([Comparison("state", "=", ("open",))])
    assert found is not None
    assert whole is not None
    assert (found.partitions, found.is_complete, whole.is_complete) == (((("T", {"S": "prod"}),),), False, True)


# --- entries that stay in their shard ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "one", "other", "is_same"),
    [
        ("CPK", "Bern#1", "Bern#1", True),
        ("CPK", "Bern#1", "Bern#2", True),
        ("CPK", "Bern#1", "Basel#1", False),
        # Somebody else's, that no template makes.
        ("CPK", "Bern", "Bern#1", False),
        ("CPK", "Bern", "Basel", False),
        ("CSK", "d1", "d2", False),
    ],
)
def test_whether_an_entry_moves_to_another_shard_only(name: str, one: str, other: str, is_same: bool) -> None:
    layout = DESIGNS["days in partition keys, and shards"].bound()
    assert layout.is_same_entry(layout.schema.node(Device), name, {"S": one}, {"S": other}) is is_same


def test_an_entry_of_an_indexed_field_moves_within_its_field() -> None:
    layout = DESIGNS["an adjacency list"].bound()
    person, club, talk = layout.schema.node(Person), layout.schema.node(Club), layout.schema.edge(Talk)
    for kind, one, other, is_same in (
        (person, "PERSON#name#0", "PERSON#name#a.1", True),
        (person, "PERSON#name#0", "PERSON#born#0", False),
        (talk, "TALK#mood#0", "TALK#mood#1", True),
        (club, "PERSON#name#0", "PERSON#name#1", False),
    ):
        assert layout.is_same_entry(kind, "GSI3PK", {"S": one}, {"S": other}) is is_same, (one, other)
    assert not layout.is_same_entry(person, "GSI3SK", {"S": "a#PERSON#a"}, {"S": "b#PERSON#a"})
