"""Finding by the indexes that a layout declares: which one is chosen, what it costs, and that it finds everything."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterable
from typing import Any

import pytest

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Edge,
    Graph,
    Index,
    InvalidCursor,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    Projection,
    field,
)
from adjoin.fields import Operator, Predicate
from adjoin.plans.read import encode_cursor
from adjoin.plans.steps.predicates import holds
from adjoin.requests import Put
from tests.finding.orders import DAY, LAYOUT, ORDERS, Bought, Match, Order, Person, Size

WAREHOUSE = (field("warehouse") == "W1") & (field("size") == Size.SMALL)


def expected(predicate: Predicate) -> set[str]:
    kind = Graph(":memory:", [Order], layout=LAYOUT_OF_ORDERS)._schema.node(Order)
    return {each.id for each in ORDERS if holds(kind, predicate, each)}


LAYOUT_OF_ORDERS = AdjacencyList(
    reverse=None, indexes=LAYOUT.indexes[:4], keys={Order: LAYOUT.keys[Order]}, escape=False
)


# --- the choice --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "order_by", "index", "requests"),
    [
        (WAREHOUSE & (field("shipped") >= DAY), None, "ByWarehouse", 1),
        (WAREHOUSE, None, "ByWarehouse", 1),
        (field("status") == "open", None, "ByStatus", 1),
        ((field("status") == "open") & (field("created") < dt.datetime(2026, 1, 5)), None, "ByStatus", 1),
        ((field("customer") == "c1") & (field("total") > 3), None, "ByTotal", 1),
        (field("customer") == "c1", "number", "ByNumber", 2),
        ((field("customer") == "c1") & (field("number") == 7), None, "ByNumber", 2),
        (field("customer").is_in(["c1", "c2"]) & (field("total") < 0), None, "ByTotal", 2),
    ],
)
def test_the_index_that_narrows_most_is_chosen(
    g: Graph, predicate: Predicate, order_by: str | None, index: str, requests: int
) -> None:
    query = g.find(Order, predicate, order=order_by)
    assert query._question.indexes_in(g._layout) == [index]
    with g.meter() as meter:
        found = [each.id for each in query]
    assert sorted(found) == sorted(expected(predicate))
    assert meter.requests == requests
    assert query.count() == len(found)
    assert query.first() == (g.get(Order, found[0]) if found else None)


def test_an_index_can_be_forced(g: Graph) -> None:
    both = (field("customer") == "c1") & (field("status") == "open")
    assert g.find(Order, both, index="ByStatus")._question.indexes_in(g._layout) == ["ByStatus"]
    assert {each.id for each in g.find(Order, both, index="ByStatus")} == expected(both)
    with pytest.raises(InvalidKey, match="Order is not in an index 'ByName'; it is in 'ByWarehouse', 'ByStatus'"):
        g.find(Order, both, index="ByName")
    with pytest.raises(InvalidKey, match=r"no index finds Order by status: 'ByTotal' needs customer == …, then total"):
        g.find(Order, field("status") == "open", index="ByTotal")


def test_what_no_index_answers_says_what_each_needs(g: Graph) -> None:
    with pytest.raises(InvalidKey) as refused:
        g.find(Order, field("number") == 3)
    assert str(refused.value) == (
        "no index finds Order by number: 'ByWarehouse' needs warehouse == … and size == …, then shipped, number, "
        "customer; 'ByStatus' needs status == …, then created; 'ByTotal' needs customer == …, then total; 'ByNumber' "
        "needs customer == …, then number; compare what one of them needs, or name a field to sort by with order=, "
        "which then filters by the rest"
    )


def test_a_field_without_an_index_filters_in_the_order_of_another(g: Graph) -> None:
    for at in range(20):
        g.put(Person(id=str(at), name=f"n{at % 7}", age=at))
    with pytest.raises(InvalidKey, match="name a field to sort by with order="):
        g.find(Person, field("age") > 15)
    found = [(each.name, each.age) for each in g.find(Person, field("age") > 15, order="name")]
    assert found == [("n2", 16), ("n3", 17), ("n4", 18), ("n5", 19)]


# --- order, pages and shards -------------------------------------------------------------------


def test_numbers_sort_as_numbers(g: Graph) -> None:
    totals = [each.total for each in g.find(Order, field("customer") == "c1", order="total")]
    assert totals == sorted(totals)
    assert totals[0] < 0 < totals[-1]
    backwards = [each.total for each in g.find(Order, field("customer") == "c1", order="total").reverse()]
    assert backwards == totals[::-1]


def people(g: Graph) -> list[Person]:
    everybody = [Person(id=f"{at:02}", name=f"n{at % 7}") for at in range(40)]
    g.put_many(everybody)
    return everybody


def test_shards_are_read_side_by_side_and_merged(g: Graph) -> None:
    everybody = people(g)
    shards = {g._layout.items(each)[0]["GSIPK"]["N"] for each in everybody}
    assert shards == {"0", "1", "2", "3"}
    with g.meter() as meter:
        names = [each.name for each in g.find(Person)]
    assert names == sorted(each.name for each in everybody)
    assert (meter.requests, meter.rounds) == (4, 1)
    assert {each.id for each in g.find(Person, field("name") == "n3")} == {"03", "10", "17", "24", "31", "38"}
    assert g.find(Person, field("name").between("n2", "n3")).count() == 12


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
@pytest.mark.parametrize("is_forward", [True, False])
def test_pages_continue_in_every_shard(g: Graph, limit: int, is_forward: bool) -> None:
    everybody = people(g)
    query = g.find(Person) if is_forward else g.find(Person).reverse()
    found: list[Person] = []
    token: str | None = None
    while True:
        page = query.page(limit=limit, after=token)
        found += page.items
        token = page.next
        if token is None:
            break
        assert len(page) == limit
    assert sorted(each.id for each in found) == sorted(each.id for each in everybody)
    names = [each.name for each in found]
    assert names == sorted(names, reverse=not is_forward)


def test_a_page_token_fits_only_its_own_query(g: Graph) -> None:
    people(g)
    token = g.find(Person).page(limit=3).next
    assert token is not None
    with pytest.raises(InvalidCursor):
        g.find(Person).reverse().page(limit=3, after=token)
    with pytest.raises(InvalidCursor):
        g.find(Person, field("name") == "n1").page(limit=3, after=token)


def test_keys_of_several_attributes_need_no_templates() -> None:
    layout = AdjacencyList(reverse=None, indexes=[Index("ByMap", ("game", "map"), ("mode", "opened"))])
    with Graph(":memory:", [Match], layout=layout) as g:
        for at in range(20):
            g.put(Match(id=str(at), game="g", map=f"m{at % 2}", mode=[None, "a", "b"][at % 3], opened=-at))
        where = (field("game") == "g") & (field("map") == "m1")
        with g.meter() as meter:
            found = list(g.find(Match, where & (field("mode") == "a") & (field("opened") < -5)))
        assert meter.requests == 1
        assert [each.opened for each in found] == [-19, -13, -7]
        assert [each.mode for each in g.find(Match, where)] == ["a"] * 4 + ["b"] * 3
        assert [each.id for each in g.find(Match, where & field("mode").begins_with("b"))] == ["17", "11", "5"]
        assert [each.id for each in g.find(Match, where & (field("opened") == -5))] == ["5"]
        assert [each.id for each in g.index("ByMap").partition("g", "m1").equals("b")] == ["17", "11", "5"]
        pages = [g.find(Match, where).page(limit=4)]
        pages.append(g.find(Match, where).page(limit=4, after=pages[0].next))
        assert [len(page) for page in pages] == [4, 3]
        assert pages[1].next is None
        with pytest.raises(InvalidKey, match=r"'ByMap' needs game == … and map == …, then mode, opened"):
            g.find(Match, field("game") == "g")
    with pytest.raises(InvalidModel, match="'ByMap' has several attributes in its keys"):
        keys = {Match: Keys(indexes={"ByMap": ("{game}", "{map}")})}
        Graph(":memory:", [Match], layout=AdjacencyList(indexes=layout.indexes, keys=keys))


def test_a_page_continues_after_the_entry_of_an_item_that_has_changed_since() -> None:
    layout = AdjacencyList(indexes=[Index("ByTime", "game", "opened", projection=Projection("KEYS_ONLY"))])
    with Graph(":memory:", [Match], layout=layout) as g:
        g.put_many([Match(id=str(at), game="g", map="m", opened=at) for at in range(6)])
        asked: Any = g.find(Match, (field("game") == "g") & (field("map") == "m"))._question
        plan = asked.page(g._layout, 2, None)
        entries = g._store.execute(next(plan))
        items = plan.send(entries)
        g.update(Match, "1", opened=9)
        with pytest.raises(StopIteration) as ended:
            plan.send(g._store.execute(items))
        first = ended.value.value
        assert [each.opened for each in first.entities] == [0, 9]
        # What was read ahead stays; a token reads again, and so finds what has moved there.
        token = asked.position_at(g._layout, asked.key_at(first.last))
        for position, moved in ((first.last, []), (token, ["1"])):
            rest = g._run(asked.page(g._layout, 9, position))
            assert [each.id for each in rest.entities] == ["2", "3", "4", "5", *moved]


@pytest.mark.parametrize(
    "place",
    [
        "x",
        "[]",
        "{}",
        '{"PK":{"S":"a"},"SK":{"S":"b"},"GSIPK":{"N":"0"},"Data":{"S":5}}',
        '{"PK":{"S":"a"},"SK":{"S":"b"},"GSIPK":{"N":"1"},"Data":{"S":"n"}}',
        '{"PK":{"X":"a"},"SK":{"S":"b"},"GSIPK":{"N":"0"},"Data":{"S":"n"}}',
        '{"PK":"a","SK":{"S":"b"},"GSIPK":{"N":"0"},"Data":{"S":"n"}}',
    ],
)
def test_forged_page_tokens_are_refused(g: Graph, place: str) -> None:
    people(g)
    query = g.find(Person)
    for stream in ("0", "9", "-1", "x"):
        token = encode_cursor({stream: {"S": place}}, 1, query._identity, b"")
        with pytest.raises(InvalidCursor):
            query.page(limit=3, after=token)


# --- items of an index, whatever their class ---------------------------------------------------


def test_an_index_is_read_whatever_the_class(g: Graph) -> None:
    people(g)
    stray = {"PK": {"S": "x"}, "SK": {"S": "y"}, "GSIPK": {"N": "2"}, "Data": {"S": "n3 stray"}}
    _put(g, stray)
    query = g.index("ByName").begins_with("n3")
    with g.meter() as meter:
        found = list(query)
    assert meter.requests == 4
    assert list(query.others) == [{"PK": "x", "SK": "y", "GSIPK": 2, "Data": "n3 stray"}]
    assert {each.id for each in found} == {"03", "10", "17", "24", "31", "38"}
    assert query.count() == len(found) == 6
    assert g.index("ByName").equals("n3 stray").others.first() == query.others.first()
    assert (query.others.count(), g.index("ByName").equals("n3 stray").first()) == (1, None)
    opened = g.index("ByStatus").partition("open").between("2026-01-03", "2026-01-04")
    assert {each.id for each in opened} == {
        each.id for each in ORDERS if each.status == "open" and each.created.date() == dt.date(2026, 1, 3)
    }
    by_number = g.index("ByNumber").partition("c1")
    assert [each.number for each in by_number.between(3, 9)] == [4, 6, 7, 9]
    assert [each.number for each in by_number.between(7, None)] == [each for each in numbers(by_number) if each >= 7]
    assert [each.number for each in by_number.between(None, 7)] == [each for each in numbers(by_number) if each <= 7]
    assert numbers(by_number.between(None, None)) == numbers(by_number)


def numbers(found: Iterable[Any]) -> list[int]:
    return [each.number for each in found]


def test_an_index_is_read_with_an_event_loop() -> None:
    async def read() -> None:
        async with AsyncGraph(":memory:", [Order, Person, Bought], layout=LAYOUT) as g:
            await g.put(Person(id="a", name="n1"))
            item = {"PK": {"S": "x"}, "SK": {"S": "y"}, "GSIPK": {"N": "2"}, "Data": {"S": "n3"}}
            await g._run(_one(Put(g._layout.table, item)))
            assert [each.id async for each in g.index("ByName")] == ["a"]
            assert [each async for each in g.index("ByName").others] == [
                {"PK": "x", "SK": "y", "GSIPK": 2, "Data": "n3"}
            ]

    asyncio.run(read())


def _put(g: Graph, item: Any) -> None:
    g._run(_one(Put(g._layout.table, item)))


def _one(request: Any) -> Any:
    return (yield (request,))


def test_an_index_is_read_as_a_whole_if_no_partition_is_chosen(g: Graph) -> None:
    wanted = sorted(each.id for each in ORDERS if each.shipped is not None)
    assert 0 < len(wanted) < len(ORDERS)
    with g.meter() as meter:
        found = list(g.index("ByWarehouse"))
    assert meter.requests == 1
    assert sorted(each.id for each in found) == wanted
    assert g.index("ByWarehouse").count() == len(wanted)
    pages, after = [], None
    while True:
        page = g.index("ByWarehouse").page(limit=3, after=after)
        pages += [each.id for each in page]
        after = page.next
        if after is None:
            break
    assert pages == [each.id for each in found]
    _put(g, {"PK": {"S": "x"}, "SK": {"S": "y"}, "GSI2PK": {"S": "z"}, "GSI2SK": {"S": "z"}})
    assert [each["PK"] for each in g.index("ByWarehouse").others] == ["x"]
    explained = g.explain(g.index("ByWarehouse"))
    assert [type(each).__name__ for each in explained.requests] == ["Scan"]
    assert str(explained.whole_table) == f"reads the whole index: ByWarehouse of {g._layout.table}, of unknown size"
    assert str(g.explain(g.index("ByWarehouse").page, 2).whole_table).startswith("reads the index until it has enough")


def test_a_whole_index_shows_no_items_of_tenants() -> None:
    layout = AdjacencyList(indexes=[Index("ByGame", "game", "opened")])
    with Graph(":memory:", [Match], layout=layout) as g:
        for tenant in (g, g.for_tenant("a"), g.for_tenant("b")):
            tenant.put(Match(id=str(tenant._tenant), game="g", map="m", opened=1))
        assert [each.id for each in g.index("ByGame")] == ["None"]
        assert list(g.index("ByGame").others) == []
        assert [each.id for each in g.for_tenant("b").index("ByGame")] == ["b"]
        assert list(g.for_tenant("b").index("ByGame").others) == []


def test_what_an_index_query_refuses(g: Graph) -> None:
    for query in (g.index("ByWarehouse").reverse(), g.index("ByWarehouse").begins_with("a")):
        with pytest.raises(InvalidValue, match="'ByWarehouse' is read without an order if no partition is chosen"):
            list(query)
    with pytest.raises(InvalidKey, match="has no index 'ByNam'; did you mean 'ByName'"):
        g.index("ByNam")
    with pytest.raises(InvalidValue, match="already has a condition"):
        g.index("ByName").equals("a").begins_with("b")
    with pytest.raises(InvalidValue, match="has no sort key"):
        g.index("ByRating").partition(3).equals("a")
    with pytest.raises(InvalidValue, match="is chosen by rating, got 2 values"):
        g.index("ByRating").partition(3, 4)
    with pytest.raises(InvalidValue, match="'abc' cannot be compared with 'rating', a key of the type N"):
        g.index("ByRating").partition("abc")


# --- writing -----------------------------------------------------------------------------------


def test_every_write_keeps_the_index_keys(g: Graph) -> None:
    def shipped() -> list[str]:
        return [each.id for each in g.find(Order, WAREHOUSE & (field("shipped") >= dt.date(2027, 1, 1)))]

    assert shipped() == []
    g.update(Order, "O1", shipped=dt.date(2027, 3, 1))
    assert shipped() == ["O1"]
    assert g.update(Order, "O1", number=99).number == 99
    item = next(iter(g._layout.items(g.get(Order, "O1"))))  # type: ignore[arg-type]
    assert item["GSI2SK"] == {"S": "2027-03#00000099#c1"}
    stored = next(each for each in g.changes() if each.new is not None and each.new == g.get(Order, "O1"))
    assert stored.new_item is not None
    assert stored.new_item["GSI2SK"] == item["GSI2SK"]
    g.update(Order, "O1", shipped=None)
    assert shipped() == []
    assert g.find(Order, WAREHOUSE).count() == sum(
        each.warehouse == "W1" and each.size is Size.SMALL and each.shipped is not None and each.id != "O1"
        for each in ORDERS
    )
    g.update(Order, "O1", shipped=dt.date(2027, 4, 1))
    with g.transaction() as t:
        t.update(Order, "O1", warehouse="W0")
    assert shipped() == []
    assert [each.id for each in g.find(Order, (field("warehouse") == "W0") & (field("size") == Size.SMALL))][-1] == "O1"


def test_edges_are_found_from_their_target_by_any_index(g: Graph) -> None:
    g.put(Person(id="ann", name="Ann"))
    for at in range(5):
        g.put(Bought(source="ann", target=f"O{at}", at=dt.date(2026, 1, 1 + at), rating=at if at % 2 else None))
    g.put(Bought(source="bob", target="O3", at=dt.date(2025, 1, 1)))
    with g.meter() as meter:
        assert [each.source for each in g.into("O3", Bought)] == ["bob", "ann"]
    assert meter.requests == 1
    assert [each.target for each in g.find(Bought, field("rating") == 3)] == ["O3"]
    assert [each.target for each in g.find(Bought, field("source") == "ann")] == ["O0", "O1", "O2", "O3", "O4"]


class Task(Node):
    id: str
    status: str = "open"


class Needs(Edge[Task, Task]):
    status: str = "open"


def test_an_edge_in_an_index_of_nodes_is_not_taken_for_its_source() -> None:
    layout = AdjacencyList(indexes=[Index("ByStatus", "status")])
    with Graph(":memory:", [Task, Needs], layout=layout) as g:
        g.put_many([Task(id="a"), Task(id="b", status="done"), Needs(source="b", target="a")])
        assert list(g.find(Task, field("status") == "open")) == [Task(id="a")]
        assert list(g.find(Needs, field("status") == "open")) == [Needs(source="b", target="a")]
        assert g.find(Task, field("status") == "open").count() == 1


def test_parts_of_an_end_are_compared(g: Graph) -> None:
    g.put(Bought(source="ann", target="O1", at=dt.date(2026, 1, 1), rating=3))
    g.put(Bought(source="bob", target="O1", at=dt.date(2026, 1, 1), rating=3))
    rated = field("rating") == 3
    for ann in (field("source") == "ann", field("source") == Person.ref("ann"), field("source.id") == "ann"):
        assert [each.source for each in g.find(Bought, rated & ann)] == ["ann"]
        assert [each.source for each in g.find(Bought, rated & ~ann)] == ["bob"]
    either = field("source").is_in(["ann", Person.ref("bob")])
    assert sorted(each.source for each in g.find(Bought, either)) == ["ann", "bob"]
    with g.meter() as meter:
        assert g.find(Bought, field("source.id") == "ann").page(limit=1).items[0].target == "O1"
    assert meter.requests == 1
    with pytest.raises(InvalidKey):
        g.find(Bought, rated & (field("source") == Order.ref("O1")))


# --- sparse indexes ----------------------------------------------------------------------------


class Parcel(Node):
    id: str
    depot: str
    weight: int
    sent: dt.date | None = None
    lost: dt.date | None = None


SPARSE = AdjacencyList(
    reverse=None,
    indexes=[
        Index("Sent", "depot", "sent"),
        Index("Lost", "LPK", "LSK", projection=Projection("INCLUDE", ("depot", "weight", "sent"))),
        Index("ByWeight", "depot", "weight"),
        Index("LostByWeight", "LPK", "weight"),
        Index("Late", "TPK", "sent"),
    ],
    keys={Parcel: Keys(indexes={"Lost": ("d#{depot}", "{lost}"), "Late": "late"}, only_in_keys=("lost",))},
)


def last_item(g: Graph) -> dict[str, Any]:
    return next(dict(change.new_item) for change in reversed(list(g.changes())) if change.new_item)


def test_a_sparse_index_is_not_chosen_for_what_it_may_not_have() -> None:
    with Graph(":memory:", [Parcel], layout=SPARSE) as g:
        g.put(Parcel(id="1", depot="d", weight=1))
        g.put(Parcel(id="2", depot="d", weight=2, sent=DAY))
        in_depot = field("depot") == "d"
        assert [each.id for each in g.find(Parcel, in_depot)] == ["1", "2"]
        assert [each.id for each in g.find(Parcel, in_depot & (field("sent") <= DAY))] == ["2"]
        assert [each.id for each in g.find(Parcel, in_depot & field("sent").exists())] == ["2"]
        assert [each.id for each in g.find(Parcel, in_depot, order="sent")] == ["2"]
        assert [each.id for each in g.find(Parcel, in_depot & ~field("sent").exists())] == ["1"]


def test_an_item_has_all_keys_of_a_sparse_index_or_none() -> None:
    plain = {"PK": {"S": "PARCEL#1"}, "SK": {"S": "#META"}, "depot": {"S": "d"}, "weight": {"N": "1"}}
    # Another index needs this key.
    plain["LPK"] = {"S": "d#d"}
    with Graph(":memory:", [Parcel], layout=SPARSE) as g:
        g.put(Parcel(id="1", depot="d", weight=1))
        assert last_item(g) == plain
        _put(g, {name: value for name, value in plain.items() if name != "LPK"})
        with g.meter() as meter:
            g.update(Parcel, "1", sent=DAY)
        assert meter.requests == 1
        assert last_item(g)["TPK"] == {"S": "late"}
        g.update(Parcel, "1", lost=DAY)
        assert last_item(g) == plain | {"sent": {"S": "2026-02-03"}, "TPK": {"S": "late"}, "LSK": {"S": "2026-02-03"}}
        with g.meter() as meter:
            found = list(g.find(Parcel, (field("depot") == "d") & (field("lost") >= DAY)))
        assert found == [Parcel(id="1", depot="d", weight=1, sent=DAY, lost=DAY)]
        assert meter.requests == 1
        g.update(Parcel, "1", sent=None, lost=None)
        assert last_item(g) == plain
        g.update(Parcel, "1", lost=DAY, depot="e")
        assert (last_item(g)["LPK"], last_item(g)["LSK"]) == ({"S": "d#e"}, {"S": "2026-02-03"})


# --- any predicate -----------------------------------------------------------------------------

OPERATORS: list[Operator] = ["=", "=", "<", "<=", ">", ">=", "between", "in", "<>", "exists", "begins_with"]
