"""Which index answers a search: the choice between the table, declared indexes and indexed fields."""

from __future__ import annotations

from typing import Annotated

import pytest

from adjoin import (
    AdjacencyList,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    InvalidValue,
    Keys,
    Node,
    Projection,
    UnknownField,
    field,
)
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import FormPart
from adjoin.plans.branched_search import BranchedSearch
from adjoin.plans.find import _Asked, search
from adjoin.plans.indexed_search import IndexedSearch
from adjoin.plans.key_search import KeySearch
from adjoin.requests import Query
from adjoin.schema import Schema


class Person(Node):
    id: str
    born: Annotated[int, Indexed()] = 0
    name: Annotated[str, Indexed()] = ""
    town: str = ""
    street: str | None = None


def declared() -> AdjacencyList:
    return AdjacencyList(
        reverse=None,
        indexes=[
            Index("All", "AllPK", "born", shards=2),
            Index("Town", "town", "name"),
            Index("Few", "town", "name", projection=Projection("KEYS_ONLY")),
            Index("Street", "town", "street"),
        ],
        keys={Person: Keys(indexes={"All": "{shard}"})},
    )


def layout() -> BoundLayout:
    return declared().bind(Schema([Person]))


BORN, NAME, TOWN, STREET, ID = map(field, ("born", "name", "town", "street", "id"))
CHOICES: list[tuple[Predicate | None, str | None, str]] = [
    (ID == "a", None, "the table"),
    ((ID == "a") & (TOWN == "t"), None, "the table"),
    # An indexed field is as narrow, and needs no shards.
    (BORN == 3, None, "GSI3 born"),
    (BORN > 3, None, "GSI3 born"),
    ((BORN > 3) & BORN.exists(), None, "GSI3 born"),
    (BORN.is_in([1, 2]), None, "GSI3 born"),
    (BORN.exists(), None, "GSI3 born"),
    (NAME == "a", None, "GSI3 name"),
    # A town and a name are narrower than a name.
    ((NAME == "a") & (TOWN == "t"), None, "Town"),
    ((NAME > "a") & (TOWN == "t"), None, "Town"),
    ((NAME == "a") & (TOWN == "t") & (STREET == "s"), None, "Town"),
    # Who has no street is not in that index, so it is only for those that have one.
    (TOWN == "t", None, "Town"),
    ((TOWN == "t") & (STREET == "s"), None, "Street"),
    ((TOWN == "t") & (STREET != "s"), None, "Town"),
    ((TOWN == "t") & (BORN == 3), None, "GSI3 born"),
    ((TOWN == "t") & (BORN > 3), None, "Town"),
    (None, None, "GSI3 born"),
    (TOWN == "t", "name", "Town"),
    (TOWN == "t", "street", "Street"),
    (TOWN == "t", "born", "GSI3 born"),
    ((TOWN == "t") | (NAME > "a"), "name", "GSI3 name"),
    # Each branch has an index that narrows more than an order does.
    ((TOWN == "t") | (NAME == "a"), "name", "Town, GSI3 name"),
    ((TOWN == "t") | (BORN > 3), None, "Town, GSI3 born"),
    ((TOWN == "t") | (TOWN == "u"), None, "Town"),
    ((BORN < 3) | (BORN > 5), None, "GSI3 born"),
    ((NAME == "a") & ((BORN < 3) | (TOWN == "t")), None, "GSI3 name"),
    ((STREET == "s") & ((NAME == "a") | (TOWN == "t")), None, "GSI3 name, Street"),
    (~((TOWN != "t") & ~(NAME == "a")), "name", "GSI3 name"),
    ((BORN > 3) & ((NAME == "a") | (TOWN == "t")), None, "GSI3 name, Town"),
    ((TOWN == "t") | ((TOWN == "t") & (NAME == "a")), None, "Town"),
]
IDS = [f"{at} {where}" for at, (_, _, where) in enumerate(CHOICES)]


def chosen(predicate: Predicate | None, order: str | None = None, index: str | None = None) -> str:
    bound = layout()
    found = search(bound, bound.schema.node(Person), predicate, order, index)
    branches = found.branches if isinstance(found, BranchedSearch) else (found,)
    return ", ".join(
        f"GSI3 {each.field.name}" if isinstance(each, IndexedSearch) else each.index or "the table" for each in branches
    )


@pytest.mark.parametrize(("predicate", "order", "where"), CHOICES, ids=IDS)
def test_the_index_that_narrows_most_is_chosen(predicate: Predicate | None, order: str | None, where: str) -> None:
    assert chosen(predicate, order) == where


def test_an_index_that_lacks_entries_is_taken_last() -> None:
    """Until a migration has written them, a search there would be refused, or miss what is stored."""
    bound = layout()
    kind = bound.schema.node(Person)
    found = []
    due: list[frozenset[FormPart]] = [frozenset(), frozenset({("index", "Town")}), frozenset({("index", "Few")})]
    for lacked in due:
        bound.due.learn({"PERSON": lacked}, {})
        search_now = search(bound, kind, (NAME == "a") & (TOWN == "t"), None, None)
        assert isinstance(search_now, KeySearch)
        found.append(search_now.index)
    assert found == ["Town", "Few", "Town"]


@pytest.mark.parametrize(
    ("predicates", "present"),
    [
        ([TOWN == "t", STREET == "s"], ("street",)),
        ([TOWN == "t", NAME == "a"], ()),
        ([NAME == "a"], ("name",)),
        ([ID == "a"], ()),
        ([BORN > 3, TOWN == "t"], ()),
    ],
)
def test_what_must_be_there_so_that_the_index_holds_an_item(
    predicates: list[Predicate], present: tuple[str, ...]
) -> None:
    bound = layout()
    kind = bound.schema.node(Person)
    asked = _Asked(bound, kind, (), bound.patterns(kind), is_indexed=True, is_forced=False)
    fitting = asked.one(predicates)
    assert fitting is not None
    assert fitting.present == present


def test_an_index_that_is_named_is_taken() -> None:
    assert chosen((NAME == "a") & (TOWN == "t"), index="Few") == "Few"
    assert chosen(NAME == "a", index="GSI3") == "GSI3 name"
    assert chosen(BORN > 3, index="All") == "All"
    assert chosen(TOWN == "t", index="Street") == "Street"
    # It is read whole, because it is asked to be.
    assert chosen(NAME == "a", index="All") == "All"
    with pytest.raises(
        InvalidKey, match="Person is not in an index 'Nowhere'; it is in 'All', 'Town', 'Few', 'Street', 'GSI3'"
    ):
        chosen(NAME == "a", index="Nowhere")


def test_what_cannot_be_found_is_refused() -> None:
    with pytest.raises(UnknownField, match="Person has no field 'nam'"):
        chosen(field("nam") == "a")
    with pytest.raises(UnknownField, match="Person has no field 'nam'"):
        chosen(TOWN == "t", order="nam")
    with pytest.raises(InvalidValue, match="'town' is not a comparison"):
        chosen("town")  # type: ignore[arg-type]
    with pytest.raises(InvalidKey) as refused:
        chosen(STREET == "s")
    assert str(refused.value) == (
        "no index finds Person by street: 'All' needs born; 'Town' needs town == …, then name; "
        "'Few' needs town == …, then name; 'Street' needs town == …, then street; "
        "its indexed fields are 'born', 'name'; compare what one of them needs, "
        "or name a field to sort by with order=, which then filters by the rest"
    )
    with pytest.raises(InvalidKey) as refused:
        chosen(STREET == "s", order="town")
    assert str(refused.value) == (
        "no index finds Person by street in the order of 'town': 'All' needs born; 'Town' needs town == …, then name; "
        "'Few' needs town == …, then name; 'Street' needs town == …, then street; its indexed fields are 'born', "
        "'name'; compare all that comes before 'town' in one of them with ==, or leave order= out"
    )
    with pytest.raises(InvalidKey, match=r"no index finds Person by name in the order of 'town': .*; and .* by born"):
        chosen((NAME == "a") | (BORN == 3), order="town")


class Plain(Node):
    id: str
    name: str = ""


class Marked(Node):
    id: str
    name: Annotated[str, Indexed()] = ""
    town: str = ""


@pytest.mark.parametrize(
    ("model", "predicate", "order", "message"),
    [
        (Plain, NAME == "a", None, r"Plain has no indexed field to find by; mark one with Indexed\(\)"),
        (Marked, TOWN == "a", None, r"filter in the order of an indexed field with order="),
        (Marked, TOWN == "a", "town", "Marked.town"),
        (Marked, NAME.contains("a"), None, "an index finds Marked by ==, <, <=, >, >=, between, begins_with"),
        (
            Marked,
            (NAME == "a") | (TOWN == "b"),
            None,
            r"^each side of \| is searched by itself, and no index finds 1 of 2 branches: Marked.town is not indexed",
        ),
        (
            Marked,
            ~((NAME != "a") & (NAME != "b")) & ((TOWN == "b") | NAME.contains("c")),
            None,
            r"no index finds 4 of 4 branches: Marked.town is not indexed .*; and an index finds Marked by ==, <",
        ),
    ],
)
def test_without_declared_indexes_the_error_is_about_indexed_fields(
    model: type[Node], predicate: Predicate, order: str | None, message: str
) -> None:
    bound = AdjacencyList().bind(Schema([model]))
    with pytest.raises(InvalidKey, match=message):
        search(bound, bound.schema.node(model), predicate, order, None)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [None, 1, 3])
def test_an_indexed_field_is_merged_with_a_declared_index(limit: int | None, forward: bool) -> None:
    """Each has several results before and behind those of the other."""
    people = [Person(id=f"{at:02}", name="abc"[at % 3], town="tu"[at % 2]) for at in range(12)]
    wanted = [each for each in people if each.town == "t" or each.name == "b"]
    with Graph(":memory:", [Person], declared()) as g:
        g.put_many(people)
        query = g.find(Person, (TOWN == "t") | (NAME == "b"), order="name")
        query = query if forward else query.reverse()
        if limit is None:
            found = list(query)
        else:
            page = query.page(limit)
            found = [*page]
            while page.next is not None:
                assert len(page) == limit
                page = query.page(limit, after=page.next)
                found += page
        names = [each.name for each in found]
        assert names == sorted(names, reverse=not forward)
        assert sorted(each.id for each in found) == [each.id for each in wanted]


# --- how much is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "stretches"),
    [
        (NAME > "a", NAME.is_in(["b", "c"]), 2),
        (NAME.exists(), NAME.is_in(["b", "c"]), 2),
        (NAME.begins_with("b"), NAME == "bc", 1),
        (NAME.begins_with("b"), NAME > "ba", 1),
        (BORN.between(1, 5), (BORN == 2) | (BORN == 4), 2),
    ],
)
def test_as_much_is_read_in_whatever_order_conditions_come(one: Predicate, other: Predicate, stretches: int) -> None:
    bound = layout()
    kind = bound.schema.node(Person)
    found = [search(bound, kind, each, None, "GSI3") for each in (one & other, other & one)]
    assert isinstance(found[0], IndexedSearch)
    assert isinstance(found[1], IndexedSearch)
    assert found[0].stretches == found[1].stretches
    assert len(found[0].stretches) == stretches


class Friends(Edge[Person, Person], symmetric=True):
    town: str = ""


@pytest.mark.parametrize(
    ("predicate", "index", "limits"),
    [
        # Every item that is read is a result.
        (TOWN == "t", "Town", [3]),
        (BORN == 3, "GSI3", [3]),
        # DynamoDB applies the limit before a filter, so a page of three may need many more items.
        ((TOWN == "t") & (STREET == "s"), "Town", [100]),
        ((BORN == 3) & (STREET == "s"), "GSI3", [100]),
        # The index does not hold the field, so what is left out is found out here.
        ((TOWN == "t") & (STREET == "s"), "Few", [100]),
        # A later branch leaves out what an earlier one finds.
        ((BORN == 3) | (TOWN == "t"), None, [3]),
    ],
)
def test_how_many_items_are_asked_for(predicate: Predicate, index: str | None, limits: list[int]) -> None:
    bound = layout()
    found = search(bound, bound.schema.node(Person), predicate, None, index)
    requests = next(found.page(bound, 3, None))
    assert [request.limit for request in requests if isinstance(request, Query)] == limits


def test_of_a_symmetric_edge_two_items_are_read_for_one_result() -> None:
    bound = AdjacencyList(reverse=None, indexes=[Index("Town", "town")]).bind(Schema([Person, Friends]))
    found = search(bound, bound.schema.edge(Friends), TOWN == "t", None, None)
    (query,) = next(found.page(bound, 3, None))
    assert isinstance(query, Query)
    assert query.limit == 100
