"""Records with versions: v0 is the record as it is now, and v1, v2 … v10 are all its versions, without leading zeros.

    PK       SK     state    latest
    EQ#1     v0     ok       10
    EQ#1     v1     new
    EQ#1     v10    ok

The number of a version is at least 1, so its key is never that of the record itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Count, Graph, InvalidKey, InvalidModel, Keys, Node, field
from adjoin.requests import Put
from tests.designs.table_of_items import STORES, asked, filled, in_order, item, others, rewritten, stored
from tests.servers.open import Stores


class Equipment(Node):
    id: str
    state: str
    latest: int


class Version(Child[Equipment], key=("number",)):
    number: Annotated[int, Field(ge=1)]
    state: str


def layout(version: str = "v{number}") -> AdjacencyList:
    keys: dict[type[Any], Keys] = {
        Equipment: Keys(partition="EQ#{id}", sort="v0"),
        Version: Keys(sort=version),
    }
    return AdjacencyList(table="Equipment", reverse=None, keys=keys)


KNOWN = [
    item("EQ#1", "v0", state="ok", latest=10),
    *(item("EQ#1", f"v{number}", state="new" if number == 1 else "ok") for number in range(1, 11)),
    item("EQ#2", "v0", state="new", latest=1),
    item("EQ#2", "v1", state="new"),
]
OTHERS = [item("EQ#1", "v-1", state="?"), item("EQ#1", "v00", state="?")]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Equipment, Version], layout(), [*KNOWN, *OTHERS]) as graph:
        yield graph


def test_each_item_is_of_one_class(g: Graph) -> None:
    assert others(g) == OTHERS
    assert rewritten(g) == stored(g) == in_order([*KNOWN, *OTHERS])
    assert (g.count(Equipment), g.count(Version)) == (2, 11)
    assert asked(g, lambda: g.get(Equipment, "1"), 1) == Equipment(id="1", state="ok", latest=10)
    assert asked(g, lambda: g.get(Version, ("1", 10)), 1) == Version(parent="1", number=10, state="ok")
    versions = g.children("1", Version)
    assert {each.number for each in asked(g, lambda: list(versions), 1)} == set(range(1, 11))
    assert asked(g, versions.count, 1) == 10
    around = g.collection(Equipment.ref("1"))
    assert (around.node, len(around.children)) == (g.get(Equipment, "1"), 10)
    assert [each["SK"] for each in around.others] == ["v-1", "v00"]
    assert g.find(Version, (field("parent") == "1") & (field("number") == 0)).count() == 0


def test_a_new_version_with_the_record_itself(g: Graph) -> None:
    with g.transaction() as t:
        t.update(Equipment, "2", state="ok", latest=2, only_if=field("latest") == 1)
        t.add(Version(parent="2", number=2, state="ok"))
    found = g.get(Equipment, "2")
    assert (found and found.latest, g.children("2", Version).count()) == (2, 2)
    assert g.delete(Equipment, "2")
    assert (g.count(Equipment), g.count(Version)) == (1, 10)


def test_no_number_reaches_the_key_of_the_record(g: Graph) -> None:
    with pytest.raises(InvalidKey, match=r"0 does not fit Version\.number"):
        g.get(Version, ("1", 0))
    unseen = Version.model_construct(parent="1", number=0, state="new")
    with pytest.raises(InvalidKey, match=r"Version\.number must be at least 1, got 0"):
        g.put(unseen)
    assert g.get(Equipment, "1") == Equipment(id="1", state="ok", latest=10)


@pytest.mark.parametrize(
    ("bounds", "is_refused"),
    [
        ({}, True),
        ({"ge": 0}, True),
        ({"gt": -1}, True),
        ({"gt": 0}, False),
        ({"ge": 1.0}, False),
        ({"ge": -3, "gt": 0}, False),
        ({"le": 7}, True),
        ({"lt": 0}, False),
        ({"le": -1, "ge": -9}, False),
    ],
)
@pytest.mark.parametrize("template", ["v{number}", "v{number:sortable}"])
def test_which_bounds_exclude_the_number(bounds: dict[str, Any], is_refused: bool, template: str) -> None:
    class Numbered(Child[Equipment], key=("number",)):
        number: Annotated[int, Field(**bounds)]

    keys: dict[type[Any], Keys] = {
        Equipment: Keys(partition="EQ#{id}", sort="v0" if template == "v{number}" else "vo"),
        Numbered: Keys(sort=template),
    }
    made = AdjacencyList(reverse=None, keys=keys)
    if not is_refused:
        Graph(":memory:", [Equipment, Numbered], made).close()
        return
    with pytest.raises(InvalidModel, match=r"or give Numbered.number a bound that excludes it, such as Field\(ge=1\)"):
        Graph(":memory:", [Equipment, Numbered], made)


class Counted(Node, label="EQ"):
    id: str
    versions: Annotated[int, Count("Change")] = 0


class Change(Child[Counted], key=("number",)):
    number: Annotated[int, Field(ge=1, le=10**30)]


@pytest.mark.parametrize("number", [1, 10**25])
def test_batch_jobs_tell_them_apart_too(number: int) -> None:
    keys: dict[type[Any], Keys] = {Counted: Keys(sort="v0"), Change: Keys(sort="v{number}")}
    with Graph(":memory:", [Counted, Change], AdjacencyList(reverse=None, keys=keys)) as g:
        g.put_many([Counted(id="1"), Change(parent="1", number=number), Change(parent="1", number=2)])
        g.maintain(once=True)
        found = g.get(Counted, "1")
        assert found
        assert found.versions == 2
        assert g.verify()


class Draft(Node, label="NOTE"):
    id: str
    latest: int = 0


class Revision(Child[Draft], key=("number",)):
    number: Annotated[int, Field(ge=1)]
    text: str = ""


@pytest.mark.parametrize("where", STORES)
def test_the_same_in_a_sort_key_that_is_a_number(where: str, servers: Stores) -> None:
    keys: dict[type[Any], Keys] = {
        Draft: Keys(partition="{id}", sort="0"),
        Revision: Keys(partition="{parent.id}", sort="{number}"),
    }
    made = AdjacencyList(
        table="Drafts", partition_key="id", sort_key="version", types={"version": "N"}, reverse=None, keys=keys
    )
    items = [
        {"id": {"S": "d"}, "version": {"N": "0"}, "latest": {"N": "10"}},
        *({"id": {"S": "d"}, "version": {"N": str(number)}, "text": {"S": "x"}} for number in (1, 2, 10)),
    ]
    other = {"id": {"S": "d"}, "version": {"N": "-1"}}
    with filled(where, servers, [Draft, Revision], made, [*items, other]) as g:
        assert g.get(Draft, "d") == Draft(id="d", latest=10)
        assert [each.number for each in g.children("d", Revision)] == [1, 2, 10]
        assert [each.number for each in g.children("d", Revision).reverse().between(2, None)] == [10, 2]
        around = g.collection(Draft.ref("d"))
        assert (around.node, len(around.children)) == (Draft(id="d", latest=10), 3)
        assert (g.count(Draft), g.count(Revision)) == (1, 3)
        assert list(g.scan(Draft)) == [Draft(id="d", latest=10)]
        assert list(g.scan().others) == [{"id": "d", "version": -1}]
        assert [g._layout.items(each)[0] for each in g.scan(Draft)] == items[:1]
        g.update(Draft, "d", latest=11)
        g.add(Revision(parent="d", number=11))
        assert g.delete(Draft, "d")
        assert list(g.scan()) == []


class Entry(Node):
    id: int


@pytest.mark.parametrize(
    ("partition", "sort", "others"), [("0", "{id}", (5, 5)), ("{id}", "0", (5, 5)), ("-1.5", "{id}", (0, 0))]
)
def test_a_partition_or_sort_key_that_is_one_number(partition: str, sort: str, others: tuple[int, int]) -> None:
    types: Any = {"p": "N", "s": "N"}
    keys: dict[type[Any], Keys] = {Entry: Keys(partition=partition, sort=sort)}
    made = AdjacencyList(table="Entries", partition_key="p", sort_key="s", types=types, reverse=None, keys=keys)
    with Graph(":memory:", [Entry], made) as g:
        g.put_many(Entry(id=number) for number in (3, 20, 1, 0))
        one, another = others
        g._store.execute([Put("Entries", {"p": {"N": str(one)}, "s": {"N": str(another)}})])
        assert sorted(each.id for each in g.scan(Entry)) == [0, 1, 3, 20]
        assert (g.count(Entry), len(list(g.scan().others))) == (4, 1)
        assert (g.get(Entry, 3), g.get(Entry, 5)) == (Entry(id=3), None)
        if sort == "{id}":
            assert [each.id for each in g.find(Entry, field("id") > 1)] == [3, 20]


@pytest.mark.parametrize("constant", ["00", "1e3", "x", "+1", " 1", "1" * 39])
def test_a_constant_that_is_no_number_as_the_service_spells_it(constant: str) -> None:
    types: Any = {"p": "N", "s": "N"}
    keys: dict[type[Any], Keys] = {Entry: Keys(partition=constant, sort="{id}")}
    with pytest.raises(InvalidModel, match="so it is one placeholder without text around it, or a number such as 0"):
        Graph(":memory:", [Entry], AdjacencyList(partition_key="p", sort_key="s", types=types, reverse=None, keys=keys))


AUDITED = [
    item("Equipment_1", "v0_Audit", state="ok", latest=2),
    item("Equipment_1", "v1_Audit", state="new"),
    item("Equipment_1", "v2_Audit", state="ok"),
]


def audits() -> AdjacencyList:
    keys: dict[type[Any], Keys] = {
        Equipment: Keys(partition="{id}", sort="v0_Audit"),
        Version: Keys(sort="v{number}_Audit"),
    }
    return AdjacencyList(table="Audits", reverse=None, keys=keys)


@pytest.mark.parametrize("where", STORES)
def test_a_separator_of_the_sort_key_may_stand_in_the_partition_key(where: str, servers: Stores) -> None:
    with filled(where, servers, [Equipment, Version], audits(), AUDITED) as g:
        assert others(g) == []
        assert rewritten(g) == stored(g) == in_order(AUDITED)
        assert asked(g, lambda: g.get(Equipment, "Equipment_1"), 1) == Equipment(id="Equipment_1", state="ok", latest=2)
        assert [each.number for each in asked(g, lambda: list(g.children("Equipment_1", Version)), 1)] == [1, 2]
        assert g.children("Equipment_1", Version).count() == g.count(Version) == 2
        g.put(Version(parent="Equipment_1", number=3, state="ok"))
        assert g.get(Version, ("Equipment_1", 3)) == Version(parent="Equipment_1", number=3, state="ok")
        g.delete(Equipment, "Equipment_1")
        assert stored(g) == []


def test_a_separator_within_one_key_attribute_is_still_refused() -> None:
    class Shelf(Node, key=("hall", "row")):
        hall: str
        row: str

    keys: dict[type[Any], Keys] = {Shelf: Keys(partition="{hall}_{row}", sort="shelf")}
    with Graph(":memory:", [Shelf], AdjacencyList(table="Shelves", reverse=None, keys=keys)) as g:
        g.put(Shelf(hall="A", row="1"))
        with pytest.raises(InvalidKey, match="'A_B' holds '#' or '_', which separates the parts"):
            g.put(Shelf(hall="A_B", row="1"))
