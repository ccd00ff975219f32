"""What an access pattern makes of comparisons: the partitions, the condition on the sort key, and what is left."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Index, Keys, Node, Projection, field
from adjoin.fields import AllOf, Comparison, Predicate
from adjoin.layouts.access_patterns import MAX_PARTITIONS, AccessPattern, PatternConditions
from adjoin.schema import Schema


class Mixed(Enum):
    A = "a"
    ONE = 1


class Thing(Node):
    id: str
    shop: str
    number: int = 0
    name: str = ""
    day: dt.date = dt.date(2026, 1, 1)
    at: dt.datetime = dt.datetime(2026, 1, 1)
    mixed: Mixed = Mixed.A
    note: str | None = None


SORTS = {
    "Bare": "{number}",
    "Padded": "{number:08}",
    "Name": "{name}",
    "Upper": "{name:upper}",
    "Then": "{name}#{id}",
    "After": "N#{name}",
    "NumberThen": "N#{number:08}#{name}",
    "Day": "{day}",
    "Month": "{day:%Y-%m}#{name}",
    "Second": "{at:%Y-%m-%dT%H:%M:%S}",
    "Micro": "{at:%Y-%m-%dT%H:%M:%S.%f}",
    "Mixed": "{mixed}",
    "Note": "{note}",
}
INDEXES = [
    *(Index(name, f"{name}PK", f"{name}SK") for name in SORTS),
    Index("Number", "shop", "number"),
    Index("ByName", "shop", "name", projection=Projection("INCLUDE", ("number",))),
    Index("Alone", "name"),
    Index("Sharded", "ShardPK", "number", shards=3),
]
TEMPLATES: dict[str, Any] = {name: ("{shop}", sort) for name, sort in SORTS.items()} | {"Sharded": "{shop}#{shard}"}


LAYOUT = AdjacencyList(indexes=INDEXES, keys={Thing: Keys(indexes=TEMPLATES)})
ESCAPED = AdjacencyList(escape=True, indexes=INDEXES, keys={Thing: Keys(indexes=TEMPLATES)})


def pattern(index: str | None, layout: AdjacencyList = LAYOUT) -> AccessPattern:
    bound = layout.bind(Schema([Thing]))
    (found,) = (each for each in bound.patterns(bound.schema.node(Thing)) if each.index == index)
    return found


def parts(predicate: Predicate) -> list[Comparison]:
    found = list(predicate.predicates) if isinstance(predicate, AllOf) else [predicate]
    assert all(isinstance(each, Comparison) for each in found)
    return found  # type: ignore[return-value]


def made(index: str, predicate: Predicate, layout: AdjacencyList | None = None) -> PatternConditions:
    """The conditions in one shop."""
    found = pattern(index, layout or LAYOUT).conditions([*parts(SHOP), *parts(predicate)])
    assert found is not None
    return found


def spelled(found: PatternConditions) -> str:
    """The condition on the sort key as text."""
    if not found.partitions:
        return "nothing"
    return " and ".join(
        " ".join([each.operator, *(repr(next(iter(value.values()))) for value in each.operands)]) for each in found.sort
    )


def left_over(found: PatternConditions, predicate: Predicate) -> str:
    """What the keys do not answer."""
    left = [each for each in parts(predicate) if not any(each is one for one in found.answered)]
    return ", ".join(f"{each.field} {each.operator}" for each in left)


SHOP = field("shop") == "s"
F = field
CASES: list[tuple[str, Predicate, str, str, str | None, tuple[int, bool]]] = [
    ("Number", F("number") == 5, "= '5'", "", None, (2, False)),
    ("Number", F("number") > 5, "> '5'", "", "number", (1, True)),
    ("Number", (F("number") > 5) & (F("number") <= 9), "between '5' '9'", "number >", "number", (1, True)),
    (
        "Number",
        (F("number") > 5) & (F("number") >= 7) & (F("number") < 20) & (F("number") <= 10),
        "between '7' '10'",
        "number >, number <",
        "number",
        (1, True),
    ),
    ("Number", F("number").between(2, 4) & (F("number") >= 3), "between '3' '4'", "", "number", (1, True)),
    ("Number", F("number").between(4, 4), "between '4' '4'", "", "number", (1, True)),
    ("Number", F("number").between(5, 4), "nothing", "", "number", (1, True)),
    ("Number", F("number").is_in([1, 2]), "", "number in", "number", (1, False)),
    ("Number", F("number").begins_with("1"), "", "number begins_with", "number", (1, False)),
    ("ByName", F("name").begins_with("a"), "begins_with 'a'", "", "name", (1, True)),
    ("ByName", F("name").begins_with(""), "", "", "name", (1, True)),
    ("ByName", F("name") == "", "nothing", "", None, (2, False)),
    ("ByName", F("name") >= "", "", "", "name", (1, True)),
    ("ByName", F("name") <= "", "nothing", "", "name", (1, True)),
    ("ByName", F("name") > "b", "> 'b'", "", "name", (1, True)),
    # The text "10" sorts before "9".
    ("Bare", F("number") > 5, "", "number >", None, (1, False)),
    ("Bare", F("number") == 5, "= '5'", "", None, (2, False)),
    ("Bare", F("number").begins_with("5"), "", "number begins_with", None, (1, False)),
    ("Padded", F("number") == 5, "= '00000005'", "", None, (2, False)),
    ("Padded", F("number") > 5, ">= '00000005\\x00'", "", "number", (1, True)),
    (
        "Padded",
        (F("number") >= 5) & (F("number") < 9),
        "between '00000005' '00000009'",
        "number <",
        "number",
        (1, True),
    ),
    ("Padded", F("number").between(1, 3), "between '00000001' '00000003'", "", "number", (1, True)),
    ("Name", F("name") > "b", ">= 'b\\x00'", "", "name", (1, True)),
    ("Name", F("name") < "b", "<= 'b'", "name <", "name", (1, True)),
    ("Name", F("name") <= "b", "<= 'b'", "", "name", (1, True)),
    ("Name", F("name").begins_with("b"), "begins_with 'b'", "", "name", (1, True)),
    ("Name", F("name").begins_with("a") & (F("name") > "ab"), "begins_with 'a'", "name >", "name", (1, True)),
    ("Name", F("name") == None, "", "name =", "name", (1, False)),  # noqa: E711
    ("Name", F("name").is_in(["a"]), "= 'a'", "", None, (2, False)),
    ("Upper", F("name") == "b", "= 'B'", "name =", None, (2, False)),
    ("Upper", F("name").begins_with("b"), "begins_with 'B'", "name begins_with", None, (1, True)),
    ("Upper", F("name") > "b", "", "name >", None, (1, False)),
    ("Then", F("name") == "b", "begins_with 'b#'", "", "id", (2, False)),
    ("Then", F("name") > "b", "", "name >", None, (1, False)),
    ("Then", F("name").begins_with("b"), "begins_with 'b'", "", None, (1, True)),
    ("After", F("name") > "b", "between 'N#b\\x00' 'N$'", "", "name", (1, True)),
    ("After", F("name") <= "b", "between 'N#' 'N#b'", "", "name", (1, True)),
    ("After", F("number") == 3, "begins_with 'N#'", "number =", "name", (1, False)),
    ("NumberThen", F("number") > 5, "between 'N#00000005$' 'N$'", "", "number", (1, True)),
    ("NumberThen", F("number") < 5, "between 'N#' 'N#00000005'", "", "number", (1, True)),
    ("NumberThen", F("number") <= 5, "between 'N#' 'N#00000005$'", "", "number", (1, True)),
    (
        "NumberThen",
        (F("number") == 5) & (F("name") >= "b"),
        "between 'N#00000005#b' 'N#00000005$'",
        "",
        "name",
        (2, True),
    ),
    (
        "NumberThen",
        (F("number") == 5) & F("name").begins_with("b"),
        "begins_with 'N#00000005#b'",
        "",
        "name",
        (2, True),
    ),
    ("NumberThen", (F("number") == 5) & (F("name") == "b"), "= 'N#00000005#b'", "", None, (3, False)),
    ("NumberThen", F("name") == "b", "begins_with 'N#'", "name =", "number", (1, False)),
    ("Day", F("day") > dt.date(2026, 2, 3), ">= '2026-02-03\\x00'", "", "day", (1, True)),
    ("Month", F("day") > dt.date(2026, 2, 3), ">= '2026-02'", "day >", None, (1, True)),
    ("Month", F("day") < dt.date(2026, 2, 3), "<= '2026-02$'", "day <", None, (1, True)),
    (
        "Month",
        F("day").between(dt.date(2026, 2, 3), dt.date(2026, 3, 1)),
        "between '2026-02' '2026-03$'",
        "day between",
        None,
        (1, True),
    ),
    ("Month", F("day") == dt.date(2026, 2, 3), "begins_with '2026-02#'", "day =", "name", (2, False)),
    ("Second", F("at") >= dt.datetime(2026, 2, 3), ">= '2026-02-03T00:00:00'", "at >=", None, (1, True)),
    ("Micro", F("at") >= dt.datetime(2026, 2, 3), ">= '2026-02-03T00:00:00.000000'", "", "at", (1, True)),
    ("Micro", F("at") < dt.datetime(2026, 2, 3), "<= '2026-02-03T00:00:00.000000'", "at <", "at", (1, True)),
    ("Mixed", F("mixed") > Mixed.A, "", "mixed >", None, (1, False)),
    ("Mixed", F("mixed") == Mixed.ONE, "= '1'", "", None, (2, False)),
    ("Note", F("number") == 3, "", "number =", "note", (1, False)),
    ("Note", F("note") != "x", "", "note <>", "note", (1, False)),
    ("Note", F("note") == "x", "= 'x'", "", None, (2, False)),
    ("Note", F("note") > "x", ">= 'x\\x00'", "", "note", (1, True)),
    ("Note", F("note") == None, "", "note =", "note", (1, False)),  # noqa: E711
]

IDS = [
    f"{index} {' and '.join(f'{each.field} {each.operator}' for each in parts(given))}" for index, given, *_ in CASES
]


def first_of(found: PatternConditions) -> str | None:
    """The field by which results are sorted first."""
    return next(iter(found.order), None)


@pytest.mark.parametrize(("index", "predicate", "sort", "left", "order", "narrow"), CASES, ids=IDS)
def test_what_is_asked_and_what_is_left_to_filter(
    index: str, predicate: Predicate, sort: str, left: str, order: str | None, narrow: tuple[int, bool]
) -> None:
    """`narrow`: how many comparisons choose a value, and whether there is a range."""
    found = made(index, predicate)
    assert (spelled(found), left_over(found, predicate), first_of(found)) == (sort, left, order)
    assert (found.equalities, found.has_range) == narrow
    assert found.is_narrow


def test_a_separator_is_below_all_characters_of_a_name_that_is_encoded() -> None:
    """Otherwise "ab" would sort before "a!", because the separator follows the shorter one."""
    above = field("name") > "b"
    longer = made("Then", above, layout=ESCAPED)
    assert (spelled(longer), left_over(longer, above), first_of(longer)) == (">= 'b$'", "", "name")
    # Here a character above the encoded ones separates too, so it is encoded as one below them.
    piped = AdjacencyList(
        escape=True,
        indexes=[Index("Name", "NamePK", "NameSK")],
        keys={Thing: Keys(indexes={"Name": ("{shop}|{day}", "{name}")})},
    )
    given = (field("day") == dt.date(2026, 1, 1)) & (field("name") > "b")
    unsorted = made("Name", given, layout=piped)
    assert (spelled(unsorted), left_over(unsorted, given), first_of(unsorted)) == ("", "name >", None)


@pytest.mark.parametrize(
    ("predicate", "is_complete"),
    [
        (field("number") == 3, False),
        (field("note") != "x", False),
        (field("note") == None, False),  # noqa: E711
        (field("note") == "x", True),
        (field("note") > "x", True),
    ],
)
def test_an_item_without_a_sort_key_is_not_in_the_index(predicate: Predicate, is_complete: bool) -> None:
    assert made("Note", predicate).is_complete is is_complete
    assert made("Name", predicate).is_complete


def test_partitions() -> None:
    sharded = pattern("Sharded")
    assert sharded.number is not None
    assert [*sharded.number.all] == [0, 1, 2]
    found = sharded.conditions(parts(SHOP))
    assert found is not None
    assert found.partitions == tuple((("ShardPK", {"S": f"s#{number}"}),) for number in range(3))
    # The comparison with the fewest values chooses.
    both = sharded.conditions(parts(field("shop").is_in(["s", "t"]) & (field("shop") == "s")))
    assert both is not None
    assert (both.partitions, len(both.answered)) == (found.partitions, 1)
    two = pattern("Number").conditions(parts(field("shop").is_in(["s", "", "t", "s"])))
    assert two is not None
    assert two.partitions == ((("shop", {"S": "s"}),), (("shop", {"S": "t"}),))
    assert two.answered
    assert pattern("Number").number is None


def test_a_search_that_does_not_choose_its_partitions_has_no_conditions() -> None:
    number = pattern("Number")
    for predicate in (field("number") == 3, field("shop") > "s", field("shop").is_in([None])):
        assert number.conditions(parts(predicate)) is None
    both = AdjacencyList(indexes=[Index("Both", "BothPK")], keys={Thing: Keys(indexes={"Both": "{shop}#{number}"})})
    shops, numbers = [f"s{at}" for at in range(10)], [*range(MAX_PARTITIONS // 10)]
    found = pattern("Both", both).conditions(parts(field("shop").is_in(shops) & field("number").is_in(numbers)))
    assert found is not None
    assert (len(found.partitions), found.equalities) == (MAX_PARTITIONS, 2)
    more = field("shop").is_in([*shops, "one more"]) & field("number").is_in(numbers)
    assert pattern("Both", both).conditions(parts(more)) is None


def test_a_partition_alone_is_narrow_and_nothing_is_not() -> None:
    everything = AdjacencyList(
        indexes=[Index("All", "AllPK", "number", shards=2)], keys={Thing: Keys(indexes={"All": "{shard}"})}
    )
    found = pattern("All", layout=everything).conditions([])
    assert found is not None
    assert (found.is_narrow, len(found.partitions), first_of(found)) == (False, 2, "number")


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ("Number", "'Number' needs shop == …, then number"),
        ("NumberThen", "'NumberThen' needs shop == …, then number, name"),
        ("Alone", "'Alone' needs name == …"),
        ("Sharded", "'Sharded' needs shop == …, then number"),
        (None, "the table needs id == …"),
    ],
)
def test_what_a_pattern_needs(index: str | None, text: str) -> None:
    assert pattern(index).needs() == text


def test_shards_alone_need_only_an_order() -> None:
    layout = AdjacencyList(
        indexes=[Index("All", "AllPK", "number", shards=2), Index("Any", "AnyPK", shards=2)],
        keys={Thing: Keys(indexes={"All": "{shard}", "Any": "{shard}"})},
    )
    assert pattern("All", layout=layout).needs() == "'All' needs number"
    assert pattern("Any", layout=layout).needs() == "'Any' needs nothing"


def test_what_an_index_holds() -> None:
    assert pattern("Number").held is None
    assert not pattern("Number").is_partial
    held = pattern("ByName")
    assert held.held == frozenset({"PK", "SK", "shop", "name", "number"})
    assert held.is_partial


# --- comparisons of other fields, and of ends ----------------------------------------------------


def test_only_comparisons_of_the_field_itself_narrow_it() -> None:
    """Texts of two fields would be compared with each other."""
    given = (field("name") > "b") & (field("id") < "a")
    assert spelled(made("ByName", given)) == "> 'b'"
    assert spelled(made("Name", given)) == ">= 'b\\x00'"
    assert spelled(made("ByName", field("id") < "a")) == ""
    assert spelled(made("Name", field("id").begins_with("a"))) == ""


def test_a_prefix_that_is_no_text_is_left_to_filter() -> None:
    given = field("name").begins_with(["a"])
    found = made("Name", given)
    assert (spelled(found), left_over(found, given)) == ("", "name begins_with")


class Person(Node):
    id: str


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str


class Stars(Edge[Person, Repo]):
    at: dt.date = dt.date(2026, 1, 1)


STARS = AdjacencyList(
    reverse=None,
    indexes=[Index("Of", "OfPK", "at"), Index("At", "AtPK", "AtSK")],
    keys={Stars: Keys(indexes={"Of": "{target.owner}/{target.name}", "At": ("{at}", "{source.id}")})},
)


def stars(index: str, predicate: Predicate) -> PatternConditions | None:
    bound = STARS.bind(Schema([Person, Repo, Stars]))
    (found,) = (each for each in bound.patterns(bound.schema.edge(Stars)) if each.index == index)
    return found.conditions(parts(predicate))


def test_an_end_is_compared_by_the_parts_of_its_id() -> None:
    given = field("target") == ("ann", "graph")
    found = stars("Of", given)
    assert found is not None
    assert (found.partitions, found.equalities) == (((("OfPK", {"S": "ann/graph"}),),), 2)
    # It is answered as the one comparison that it was.
    assert [each is given for each in found.answered] == [True]
    assert stars("Of", field("target") > ("ann", "graph")) is None
    assert stars("Of", field("target").is_in([("ann", "graph")])) is None
    day = field("at") == dt.date(2026, 1, 1)
    for source, sort in (
        (field("source") == "ann", "= 'ann'"),
        (field("source") >= "ann", ">= 'ann'"),
        (field("source").is_in(["ann"]), "= 'ann'"),
        (field("source") == None, ""),  # noqa: E711
        (field("source").exists(), ""),
    ):
        narrowed = stars("At", day & source)
        assert narrowed is not None
        assert spelled(narrowed) == sort


# --- where keys come from ------------------------------------------------------------------------


def test_an_index_whose_partition_is_the_shard_alone() -> None:
    layout = AdjacencyList(
        indexes=[Index("All", "AllPK", shards=2), Index("Some", "SomePK", shards=2), Index("Shop", "shop")],
        keys={Thing: Keys(indexes={"All": "{shard}", "Some": "{shop}#{shard}"})},
    ).bind(Schema([Thing]))
    spread = layout.spread("All")
    assert spread is not None
    assert spread.partitions() == ((("AllPK", {"S": "0"}),), (("AllPK", {"S": "1"}),))
    assert layout.spread("Some") is layout.spread("Shop") is None


class Half(Node):
    id: str
    shop: str = ""
    place: str = ""


def test_a_class_is_in_an_index_only_with_all_its_keys() -> None:
    layout = AdjacencyList(
        indexes=[Index("Things", "shop", "number"), Index("Halves", "shop", "place"), Index("Places", "place", "name")]
    ).bind(Schema([Thing, Half]))
    assert [each.index for each in layout.patterns(layout.schema.node(Thing))] == [None, "Things"]
    assert [each.index for each in layout.patterns(layout.schema.node(Half))] == [None, "Halves"]
    assert not layout.patterns(layout.schema.node(Half))[0].is_partial


class Small(Node):
    id: str
    shop: str = ""
    number: int = 0


@pytest.mark.parametrize(
    ("attributes", "type_attribute", "is_partial"),
    [
        (("number",), None, False),
        (("number", "more"), None, False),
        ((), None, True),
        (("number",), "kind", True),
        (("number", "kind"), "kind", False),
    ],
)
def test_an_index_that_holds_all_that_a_class_has_is_enough(
    attributes: tuple[str, ...], type_attribute: str | None, is_partial: bool
) -> None:
    projection = Projection("INCLUDE", attributes) if attributes else Projection("KEYS_ONLY")
    layout = AdjacencyList(indexes=[Index("Shop", "shop", projection=projection)], type_attribute=type_attribute)
    bound = layout.bind(Schema([Small]))
    _, found = bound.patterns(bound.schema.node(Small))
    assert found.is_partial is is_partial


def test_a_number_that_is_a_key_is_compared_as_a_number() -> None:
    layout = AdjacencyList(
        indexes=[Index("N", "shop", "NSK", types={"NSK": "N"})], keys={Thing: Keys(indexes={"N": (None, "{number}")})}
    )
    found = made("N", (field("number") > 5) & (field("number") < 20), layout=layout)
    assert (spelled(found), first_of(found)) == ("between '5' '20'", "number")
    assert found.sort[0].operands == ({"N": "5"}, {"N": "20"})
