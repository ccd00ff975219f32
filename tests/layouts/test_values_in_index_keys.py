"""What index keys need and hold: no value is lost, and no index is read that a class is not in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, InvalidKey, InvalidModel, InvalidValue, Keys, Node, field
from adjoin.layouts.bound import BoundLayout
from adjoin.requests import Get, ItemResponse, Put, SortCondition
from adjoin.schema import Schema


class Order(Node):
    id: str


class Product(Node):
    id: str


class Line(Edge[Order, Product], key=("position",)):
    position: int
    status: str = "open"


class Task(Node):
    id: str
    state: str
    who: str | None = None
    due: str = "never"


class Size(IntEnum):
    SMALL = 1
    LARGE = 12


class Colour(StrEnum):
    RED = "red"


class Shirt(Node, key=("size",)):
    size: Size


class Paint(Node):
    id: str
    colour: Colour


def lines(**keys: Any) -> Graph:
    indexes = [Index("ByProduct", "product", "position"), Index("ByStatus", "status", "position")]
    own = Keys(sort="LINE#{position:03}#{target.id}", indexes={"ByProduct": "P#{target.id}"}, **keys)
    return Graph(":memory:", [Order, Product, Line], AdjacencyList(reverse=None, indexes=indexes, keys={Line: own}))


def stored(g: Graph, partition: str, sort: str) -> dict[str, Any]:
    (response,) = g._store.execute([Get("adjoin", {"PK": {"S": partition}, "SK": {"S": sort}})])
    assert isinstance(response, ItemResponse)
    return dict(response.item or {})


# --- fields of an edge in its sort key and in an index -------------------------------------------


def test_a_field_in_the_sort_key_that_an_index_has_too_gets_its_attribute() -> None:
    with lines() as g:
        line = Line(source="1", target="lamp", position=7)
        g.put(line)
        assert stored(g, "ORDER#1", "LINE#007#lamp")["position"] == {"N": "7"}
        assert list(g.into("lamp", Line)) == [line]
        assert list(g.find(Line, field("status") == "open", order="position")) == [line]
        g.upsert(Line, "2", "lamp", position=3, status="new")
        assert [each.position for each in g.into("lamp", Line)] == [3, 7]
        g.update(Line, "2", "lamp", position=3, status="sent")
        assert [each.position for each in g.find(Line, field("status") == "sent")] == [3]


def test_an_edge_without_that_attribute_is_read_by_its_key() -> None:
    with lines() as g:
        key = {"PK": {"S": "ORDER#1"}, "SK": {"S": "LINE#007#lamp"}}
        g._store.execute([Put("adjoin", {**key, "status": {"S": "open"}})])
        (line,) = g.out("1", Line)
        assert line == Line(source="1", target="lamp", position=7)
        g.put(line)
        assert list(g.into("lamp", Line)) == [line]


def test_a_field_that_is_only_in_keys_is_in_no_index_by_its_name() -> None:
    with lines(only_in_keys=("position",)) as g:
        g.put(Line(source="1", target="lamp", position=7))
        assert "position" not in stored(g, "ORDER#1", "LINE#007#lamp")
        with pytest.raises(InvalidModel, match="Line edges cannot be found from their target"):
            g.into("lamp", Line)
        with pytest.raises(InvalidModel, match="Line edges cannot be found from their target"):
            g.delete(Product, "lamp")
        assert "ByStatus" not in str(g.explain(g.find(Line, field("source") == "1")))


# --- values that are only in a key ---------------------------------------------------------------


@pytest.fixture
def tasks() -> Graph:
    keys = Keys(indexes={"ByState": ("TASKS", "{state}#{due}#{who}")}, only_in_keys=("state", "due"))
    layout = AdjacencyList(reverse=None, indexes=[Index("ByState", "GSIPK", "GSISK")], keys={Task: keys})
    return Graph(":memory:", [Task], layout)


def test_a_value_that_would_be_stored_nowhere_is_refused(tasks: Graph) -> None:
    lost = r"Task.state is stored in the key 'GSISK' only, \{state\}#\{due\}#\{who\}, .* while who is None"
    with pytest.raises(InvalidValue, match=lost):
        tasks.put(Task(id="1", state="open"))
    tasks.put(Task(id="1", state="open", who="ann"))
    with pytest.raises(InvalidValue, match=lost):
        tasks.update(Task, "1", who=None)
    with pytest.raises(InvalidValue, match=lost), tasks.transaction() as t:
        t.update(Task, "1", who=None)
    with pytest.raises(InvalidValue, match=lost):
        tasks.upsert(Task, "1", state="open", who=None)
    assert tasks.get(Task, "1") == Task(id="1", state="open", who="ann")
    assert tasks.update(Task, "1", state="done", who="bob") == tasks.get(Task, "1")


def test_a_default_is_not_lost() -> None:
    keys = Keys(indexes={"ByDue": ("TASKS", "{due}#{who}")}, only_in_keys=("due",))
    layout = AdjacencyList(reverse=None, indexes=[Index("ByDue", "GSIPK", "GSISK")], keys={Task: keys})
    with Graph(":memory:", [Task], layout) as g:
        g.put(Task(id="1", state="open"))
        assert g.get(Task, "1") == Task(id="1", state="open")
        with pytest.raises(InvalidValue, match=r"Task\.due is stored in the key"):
            g.put(Task(id="1", state="open", due="today"))


# --- templates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys", [Keys(sort=""), Keys(partition=""), Keys(indexes={"ByState": ("TASKS", "")}), Keys(reverse_sort="")]
)
def test_an_empty_template_is_refused(keys: Keys) -> None:
    layout = AdjacencyList(indexes=[Index("ByState", "GSIPK", "GSISK")], keys={Task: keys})
    with pytest.raises(InvalidModel, match="a key template of Task is empty, and a key needs at least one character"):
        Graph(":memory:", [Task], layout)


def test_an_enum_of_whole_numbers_has_leading_zeros() -> None:
    layout = AdjacencyList(keys={Shirt: Keys(partition="SHIRTS", sort="{size:03}")})
    with Graph(":memory:", [Shirt], layout) as g:
        g.put_many([Shirt(size=Size.LARGE), Shirt(size=Size.SMALL)])
        assert [each.size for each in g.find(Shirt, field("size") >= Size.SMALL)] == [Size.SMALL, Size.LARGE]
        assert stored(g, "SHIRTS", "012")
        assert g.get(Shirt, Size.LARGE) == Shirt(size=Size.LARGE)


def test_an_enum_of_texts_has_none() -> None:
    layout = AdjacencyList(
        indexes=[Index("ByColour", "GSIPK")], keys={Paint: Keys(indexes={"ByColour": "C#{colour:03}"})}
    )
    with pytest.raises(InvalidModel, match=r"Paint\.colour is not a whole number"):
        Graph(":memory:", [Paint], layout)


def test_an_index_that_has_a_field_in_another_order_is_named() -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("ByName", "P", "S")],
        keys={Task: Keys(indexes={"ByName": ("TASKS", "{state:lower}")})},
    )
    with Graph(":memory:", [Task], layout) as g:
        with pytest.raises(
            InvalidKey, match=r"Task by nothing in the order of 'state': .*; 'ByName' is sorted by \{state:lower\}, not"
        ):
            g.find(Task, order="state")
        with pytest.raises(
            InvalidKey, match=r"no index finds Task by who in the order of 'state': .*'ByName' is sorted by"
        ):
            g.find(Task, field("who") == "ann", order="state")
        with pytest.raises(InvalidKey) as refused:
            g.find(Task, order="who")
        assert "is sorted by" not in str(refused.value)


# --- keys of indexes that are numbers or binary ------------------------------------------------


class Blob(Node):
    id: str
    number: int = 0
    exact: Decimal = Decimal(0)
    at: dt.datetime = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    code: UUID = UUID(int=1)
    raw: bytes = b"\0"
    text: str = ""
    near: float = 0.5
    flag: bool = False


def typed(type: Any, template: str) -> BoundLayout:
    index = Index("Typed", "TPK", "TSK", types={"TSK": type})
    own = Keys(indexes={"Typed": ("all", template)})
    return AdjacencyList(reverse=None, indexes=[index], keys={Blob: own}).bind(Schema([Blob]))


@pytest.mark.parametrize(
    ("type", "template", "key"),
    [
        ("N", "{number}", {"N": "0"}),
        ("N", "{exact}", {"N": "0"}),
        ("N", "{at}", {"N": "1767312000"}),
        ("N", "{at:epoch}", {"N": "1767312000"}),
        ("N", "{at:epoch_ms}", {"N": "1767312000000"}),
        ("N", "12.5", {"N": "12.5"}),
        ("B", "{raw}", {"B": "AA=="}),
        ("B", "{code}", {"B": "AAAAAAAAAAAAAAAAAAAAAQ=="}),
        ("S", "{code}", {"S": "00000000-0000-0000-0000-000000000001"}),
        ("S", "{at}", {"S": "2026-01-02T00:00:00.000000Z"}),
    ],
)
def test_values_of_typed_index_keys(type: Any, template: str, key: Any) -> None:
    layout = typed(type, template)
    (item,) = layout.items(Blob(id="a"))
    assert item["TSK"] == key
    assert layout.read(item) == Blob(id="a")


@pytest.mark.parametrize(
    ("type", "template", "words"),
    [
        ("B", "{text}", "is binary in the table ('TSK' has the type B), so it holds bytes or a UUID as it is"),
        ("B", "{number}", "is binary in the table ('TSK' has the type B), so it holds bytes or a UUID as it is"),
        ("N", "{raw}", "is a number in the table ('TSK' has the type N), so it holds an int, a Decimal or a datetime"),
        ("N", "n{number}", "is not text in the table ('TSK' has the type N), so it is one placeholder without text"),
        ("N", "{number}{exact}", "is not text in the table ('TSK' has the type N), so it is one placeholder without"),
        ("N", "01", "so it is one placeholder without text around it, or a number such as 0, and no tenant can"),
        ("B", "01", "so it is one placeholder without text around it, and no tenant can have a part of it; give Blob"),
        (
            "S",
            "{raw}",
            "Blob.raw is bytes, and 'TSK' is text, so '{raw}' cannot hold it; declare the attribute as binary",
        ),
    ],
)
def test_templates_that_no_key_of_the_type_can_have(type: Any, template: str, words: str) -> None:
    with pytest.raises(InvalidModel) as refused:
        typed(type, template)
    assert words in str(refused.value)


def test_one_attribute_has_one_type() -> None:
    indexes = [Index("One", "PK1", "both", types={"both": "N"}), Index("Two", "PK2", "both", types={"both": "S"})]
    with pytest.raises(InvalidModel, match=r"^two indexes give the key attribute 'both' different types; give it one$"):
        AdjacencyList(indexes=indexes, keys={Blob: Keys(indexes={"One": ("x", "{number}")})}).bind(Schema([Blob]))


class Grade(Enum):
    LOW = 1
    HIGH = Decimal("2.5")


class Mixed(Enum):
    ONE = 1
    TWO = "2"


class Graded(Node):
    id: str
    grade: Grade = Grade.LOW
    mixed: Mixed = Mixed.ONE
    raw: bytes = b"\0\1"


def graded(template: str, type: Any) -> BoundLayout:
    index = Index("Grades", "TPK", "TSK", types={"TSK": type})
    keys = Keys(indexes={"Grades": ("all", template)}, only_in_keys=[template.strip("{}")])
    return AdjacencyList(reverse=None, indexes=[index], keys={Graded: keys}).bind(Schema([Graded]))


def test_members_that_are_numbers_may_be_a_key_that_is_one() -> None:
    layout = graded("{grade}", "N")
    for grade, number in ((Grade.LOW, "1"), (Grade.HIGH, "2.5")):
        (item,) = layout.items(Graded(id="a", grade=grade))
        assert (item["TSK"], "grade" in item) == ({"N": number}, False)
        assert layout.read(item) == Graded(id="a", grade=grade)


class Signed(Edge[Order, Product]):
    mark: bytes = b""


def test_ranges_of_a_binary_sort_key() -> None:
    index = Index("Back", "BPK", "BSK", types={"BSK": "B"})
    keys = Keys(sort="s#{target.id}", indexes={"Back": ("{target}", "{mark}")})
    layout = AdjacencyList(reverse=None, indexes=[index], keys={Signed: keys}).bind(Schema([Order, Product, Signed]))
    found = layout.into(layout.schema.edge(Signed), "p")
    assert found.condition() is None
    assert found.begins_with(b"\0\1") == SortCondition("BSK", "begins_with", ({"B": "AAE="},))
    assert found.between(b"\0", b"\1") == SortCondition("BSK", "between", ({"B": "AA=="}, {"B": "AQ=="}))
    assert found.between(None, b"\1") == SortCondition("BSK", "<=", ({"B": "AQ=="},))
    # As bytes, and not as the text that spells them: "+" is spelled behind "8", and stands before it as a byte.
    assert found.between(b"\x01", b"\xfb") == SortCondition("BSK", "between", ({"B": "AQ=="}, {"B": "+w=="}))
    with pytest.raises(InvalidValue, match="give the lower value first"):
        found.between(b"\xfb", b"\x01")
    assert found.within({"mark": b"\1"}).condition() == SortCondition("BSK", "=", ({"B": "AQ=="},))
