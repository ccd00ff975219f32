"""Changes inside of values, sizes and types in conditions, and conditions on ids and on existence."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from adjoin import (
    AlreadyExists,
    Child,
    ConditionFailed,
    Count,
    Edge,
    Graph,
    Indexed,
    InvalidCursor,
    InvalidModel,
    InvalidValue,
    Node,
    NotFound,
    TransactionCanceled,
    UnknownField,
    field,
)
from adjoin.expressions import Remove, attribute
from adjoin.requests import Update
from tests.verbs.conftest import Everywhere


class Geo(BaseModel):
    lat: Decimal = Decimal(0)
    marks: list[str] = []


class Address(BaseModel, populate_by_name=True):
    city: Annotated[str, Field(alias="City")]
    zip: Annotated[int, Field(ge=1000)] = 1000
    geo: Geo = Geo()
    note: str | None = None


class User(Node):
    id: str
    name: str = ""
    address: Address | None = None
    homes: list[Address] = []
    tags: list[str] = []
    groups: set[str] = set()


class Counter(Node):
    """All of its fields are plain, so that nothing has to be read."""

    id: str
    words: list[str] = []
    counts: dict[str, int] = {}
    anything: dict[str, Any] = {}
    letters: set[str] = set()


class Knows(Edge[User, User]):
    since: dict[str, int] = {}


MODELS: list[Any] = [User, Counter, Knows]
PORTO = Address(city="Porto")


@pytest.fixture
def g(everywhere: Everywhere) -> Any:
    graph = everywhere(MODELS)
    graph.put(User(id="1", address=Address(city="Faro"), tags=["a", "b", "c", "b"], groups={"x", "y"}))
    graph.put(Counter(id="c", words=["a", "b", "c"], counts={"a": 1}, letters={"p", "q"}))
    return graph


def test_elements_of_plain_lists_and_maps_are_changed_without_reading(g: Any) -> None:
    with g.meter() as meter:
        changed = g.update(
            Counter,
            "c",
            field("words.0").set("x"),
            field("words.2").remove(),
            field("counts.a") + 2,
            field("counts.new") - 1,
            field("anything.list").append(1, 2),
            letters=field("letters").discard({"q"}),
        )
    assert meter.requests == 1
    assert changed == Counter(
        id="c", words=["x", "b"], counts={"a": 3, "new": -1}, anything={"list": [1, 2]}, letters={"p"}
    )
    assert g.get(Counter, "c") == changed
    with g.meter() as meter:
        assert g.update(g.get(Counter, "c"), field("counts.a").remove(), field("words").append("z")).counts == {
            "new": -1
        }
    assert meter.requests == 2, "with the get"
    assert g.get(Counter, "c").words == ["x", "b", "z"]
    with g.transaction() as t:
        t.update(Counter.ref("c"), field("counts.b").set(7))
    assert g.get(Counter, "c").counts == {"new": -1, "b": 7}


def test_fields_of_nested_models_are_read_first_and_validated(g: Any) -> None:
    with g.meter() as meter:
        changed = g.update(
            User,
            "1",
            field("address.city").set("Porto"),
            field("address.zip") + 5,
            field("address.geo.lat").set("1.5"),
            field("address.geo.marks").append("x"),
            field("tags.0").remove(),
            field("tags.1").set("B"),
            name="Jo",
        )
    assert meter.requests == 2, "a read, and a write that is conditional on it"
    assert changed.address == Address(city="Porto", zip=1005, geo=Geo(lat=Decimal("1.5"), marks=["x"]))
    assert (changed.name, changed.tags) == ("Jo", ["B", "c", "b"])
    assert g.get(User, "1") == changed
    changed = g.update(User, "1", field("tags").discard(["b", "c"]), field("groups").discard({"x"}))
    assert (changed.tags, changed.groups) == (["B"], {"y"})
    assert g.update(User, "1", field("homes").append(PORTO)).homes == [PORTO]
    assert g.update(User, "1", field("homes.0.note").set("old")).homes[0].note == "old"
    assert g.update(User, "1", field("homes.0.note").remove()).homes == [PORTO]
    with g.transaction() as t:
        t.update(User, "1", field("address.note").set("x"))
    assert g.get(User, "1").address.note == "x"
    assert g.update(User, "1", field("address").remove(), field("name").set("Ann")).address is None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ([field("address.cty").set("x")], UnknownField, "did you mean 'city'"),
        ([field("address.zip").set(5)], InvalidValue, "greater than or equal to 1000"),
        ([field("address.city") + 1], InvalidValue, "both must be numbers"),
        ([field("address.city").remove()], InvalidValue, "Field required"),
        ([field("name.x").set(1)], InvalidValue, "no 'x' in it"),
        ([field("adress.city").set("x")], UnknownField, "did you mean 'address'"),
        ([field("tags.x").set("y")], InvalidValue, "not a position"),
        ([field("tags").set(["a"]), field("tags.0").remove()], InvalidValue, "'tags' is changed twice"),
        ([field("address.geo").set(Geo()), field("address.geo.lat").set(1)], InvalidValue, "changed twice"),
        ([field("name").set("a"), field("name").set("b")], InvalidValue, "changed twice"),
    ],
)
def test_what_is_refused(g: Any, changes: list[Any], error: type[Exception], words: str) -> None:
    before = g.get(User, "1")
    with pytest.raises(error, match=words):
        g.update(User, "1", *changes)
    assert g.get(User, "1") == before


def test_a_field_that_is_removed_has_its_default(everywhere: Everywhere) -> None:
    class Player(Node):
        id: str
        name: str
        nick: str | None = None
        lives: int = 3

    g = everywhere([Player])
    g.put(Player(id="p", name="Ann", nick="A", lives=1))
    with g.meter() as meter:
        assert g.update(Player, "p", field("lives").remove()).lives == 3
    assert meter.requests == 1
    assert g.upsert(Player, "p", field("nick").remove(), name="Ben") == Player(id="p", name="Ben")
    with pytest.raises(InvalidValue, match=r"None does not fit Player\.name"):
        g.update(Player, "p", field("name").remove())
    with pytest.raises(UnknownField, match="did you mean 'lives'"):
        g.update(Player, "p", field("live").remove())


def test_text_is_no_list_of_elements() -> None:
    for change in (field("groups").add, field("groups").discard, field("name").is_in):
        for wrong in ("abc", b"abc", 3):
            with pytest.raises(InvalidValue, match=r"takes a list of values, got .*put it into a list"):
                change(wrong)  # type: ignore[arg-type]


def test_messages_say_how_a_change_is_written(g: Any) -> None:
    with pytest.raises(InvalidValue, match=r"name=field\('tags'\) is a field and not a value"):
        g.update(User, "1", name=field("tags"))
    with pytest.raises(InvalidValue, match="pass it to update without address="):
        g.update(User, "1", address=field("address.city").set("x"))
    with pytest.raises(InvalidValue, match="changed twice in one update"):
        g.update(User, "1", field("name").set("a"), name="b")
    with pytest.raises(InvalidValue, match="no position 9999999999"):
        g.update(Counter, "c", field("words.9999999999").set("x"))
    with pytest.raises(InvalidValue, match=r"Counter\.counts"):
        g.update(Counter, "c", field("counts.a").set("many"))


class Heap(Node):
    id: str
    homes: list[Address] = []
    home: Address = Address(city="")
    rows: dict[str, list[str]] = {}
    words: list[str] = []


@pytest.mark.parametrize("verb", ["update", "upsert"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([field("homes").add(["x"])], "Heap.homes is .*, and add changes sets only; use another change"),
        ([field("rows.a").add(["x"])], "Heap.rows.a is .*, and add changes sets only"),
        ([field("home").discard(["x"])], "Heap.home is .*, and discard changes lists and sets only"),
        ([field("home.city").append("x")], "Heap.home.city is '.*', and append changes lists only"),
        ({"words": field("home").add(["x"])}, "Heap.home is .*, and add changes sets only"),
    ],
)
def test_elements_are_those_of_lists_and_sets(verb: str, changes: Any, words: str) -> None:
    """A list keeps its order, and a value of another type does not lose what it is."""
    with Graph(":memory:", [Heap]) as g:
        heap = Heap(id="h", homes=[Address(city="Oslo")], home=Address(city="Oslo"), rows={"a": ["z", "b", "z"]})
        g.put(heap)
        with pytest.raises(InvalidValue, match=words):
            getattr(g, verb)(Heap, "h", *changes) if isinstance(changes, list) else getattr(g, verb)(
                Heap, "h", **changes
            )
        assert g.get(Heap, "h") == heap


def test_upsert_takes_them_too(g: Any) -> None:
    assert g.upsert(Counter, "new", field("counts.a") + 1).counts == {"a": 1}
    assert g.upsert(Counter, "new", field("counts.a") + 1, field("words").append("x")).counts == {"a": 2}
    with pytest.raises(InvalidValue, match=r"User\.address is None"):
        g.upsert(User, "new", field("address.city").set("x"))


def test_a_map_that_an_older_item_lacks_is_made() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put(Counter(id="c"))
        key = g._layout.node_key(g._layout.schema.node(Counter), "c")
        g._store.execute((Update("adjoin", key, (Remove(attribute("counts")),)),))
        assert g.update(Counter, "c", field("counts.a") + 1).counts == {"a": 1}
        g._store.execute((Update("adjoin", key, (Remove(attribute("counts")),)),))
        with g.transaction() as t:
            t.update(Counter, "c", field("counts.a") + 1)
        found = g.get(Counter, "c")
        assert found is not None
        assert found.counts == {"a": 1}


# --- conditions --------------------------------------------------------------------------------


def test_sizes_and_types_in_conditions(g: Any) -> None:
    with pytest.raises(ConditionFailed):
        g.update(Counter, "c", words=[], only_if=field("words").size() > 3)
    assert g.update(Counter, "c", words=["é"], only_if=field("words").size().between(1, 3)).words == ["é"]
    only_if = (field("letters").size() == 2) & field("letters").has_type("SS") & ~field("letters").has_type("L")
    assert g.update(Counter, "c", words=["x"], only_if=only_if).words == ["x"]
    with pytest.raises(ConditionFailed):
        g.delete(Counter, "c", only_if=field("counts").has_type("N"))
    g.put_many([Knows(source="1", target="1", since={"a": 1}), Knows(source="1", target="2", since={"a": 1, "b": 2})])
    assert [edge.target for edge in g.out("1", Knows).where(field("since").size() >= 2)] == ["2"]
    assert [edge.target for edge in g.out("1", Knows).where(field("since.b").has_type("N"))] == ["2"]
    assert [each.id for each in g.scan(Counter).where(field("words").size() != 0)] == ["c"]
    assert g.walk(User.ref("1")).out(Knows).where(field("since").size() < 2).count() == 1
    for wrong in (lambda: field("words").size() == "3", lambda: field("words").has_type("text")):
        with pytest.raises(InvalidValue):
            wrong()
    with pytest.raises(UnknownField, match="did you mean 'words'"):
        g.update(Counter, "c", words=[], only_if=field("word").size() > 3)


def test_conditions_on_existence(g: Any) -> None:
    g.put(Counter(id="new"), only_if=~field("id").exists())
    with pytest.raises(ConditionFailed):
        g.put(Counter(id="new"), only_if=~field("id").exists())
    g.put(Counter(id="new", words=["a"]), only_if=field("id").exists())
    with pytest.raises(NotFound):
        g.put(Counter(id="none"), only_if=field("id").exists())
    with pytest.raises(ConditionFailed):
        g.upsert(Counter, "none", words=[], only_if=field("id").exists())
    g.put(Knows(source="1", target="9"), only_if=~field("source").exists())
    with pytest.raises(TransactionCanceled) as error, g.transaction() as t:
        t.put(Knows(source="1", target="9"), only_if=~field("target").exists())
    assert error.value.reasons[0].error is ConditionFailed
    with pytest.raises(AlreadyExists):
        g.add(Counter(id="new"))
    with pytest.raises(UnknownField, match="in the key only"):
        g.update(Counter, "new", words=[], only_if=field("id") == "new")


class Part(Child[Counter], key=("number",)):
    number: int
    text: str = ""


def test_conditions_on_ids_in_queries(everywhere: Everywhere) -> None:
    g = everywhere([*MODELS, Part])
    g.put_many(Knows(source="1", target=str(number), since={"a": number}) for number in range(5))
    g.put_many(Part(parent="c", number=number, text="x") for number in range(5))
    with g.meter() as meter:
        found = [edge.target for edge in g.out("1", Knows).where(field("target").is_in(["2", "3", "9"]))]
    assert (found, meter.requests) == (["2", "3"], 1)
    both = (field("target") != "3") & (field("since.a") >= 2)
    assert [edge.target for edge in g.out("1", Knows).where(both)] == ["2", "4"]
    assert g.out("1", Knows).where(both).count() == 2
    assert [part.number for part in g.children("c", Part).where(field("number") > 2)] == [3, 4]
    assert g.children("c", Part).where((field("number") > 2) & (field("text") == "y")).count() == 0
    page = g.out("1", Knows).where(field("target") >= "2").page(limit=2)
    assert [edge.target for edge in page] == ["2", "3"]
    assert [edge.target for edge in g.out("1", Knows).where(field("target") >= "2").page(limit=2, after=page.next)] == [
        "4"
    ]
    with pytest.raises(UnknownField, match=r"target\.name is not part of an id"):
        g.out("1", Knows).where(field("target.name") == "x")


class Team(Node, key=("town", "number")):
    town: str
    number: int
    colour: Annotated[str, Indexed()] = "red"


class Joined(Edge[Team, User]):
    year: Annotated[int, Indexed()] = 2024
    note: str = ""


def test_conditions_on_ids_in_finds_and_scans(everywhere: Everywhere) -> None:
    g = everywhere([*MODELS, Team, Joined])
    g.put_many(Team(town="Faro", number=number, colour="red" if number % 2 else "blue") for number in range(6))
    g.put_many(Joined(source=("Faro", number), target=str(number), note=f"n{number}") for number in range(4))
    red, late = field("colour") == "red", field("number") > 2
    with g.meter() as meter:
        assert [team.number for team in g.find(Team, red & late)] == [3, 5]
        assert [team.number for team in g.find(Team, red).where(late & field("town").begins_with("F"))] == [3, 5]
        assert g.find(Team, red & ~late).count() == 1
        assert [team.number for team in g.find(Team, red | (field("number") == 2), order="colour")] == [2, 1, 3, 5]
        assert [edge.target for edge in g.find(Joined, (field("year") == 2024) & (field("source.number") < 1))] == ["0"]
        assert [edge.target for edge in g.find(Joined, field("year") > 0).where(field("source") == ("Faro", 3))] == [
            "3"
        ]
    assert meter.requests == 6
    first = g.find(Team, red & (field("number") > 0)).page(limit=2)
    rest = g.find(Team, red & (field("number") > 0)).page(limit=2, after=first.next)
    assert [team.number for team in (*first, *rest)] == [1, 3, 5]
    with pytest.raises(InvalidCursor):
        g.find(Team, red & (field("number") > 1)).page(limit=2, after=first.next)

    scan = g.scan(Team, segments=1)
    with g.meter() as meter:
        assert sorted(team.number for team in scan.where(late & red)) == [3, 5]
        assert sorted(team.number for team in scan.where(late | red)) == [1, 3, 4, 5]
        assert scan.where(~late).count() == 3
        joined = g.scan(Joined, segments=1)
        assert [edge.note for edge in joined.where((field("target") == "2") & (field("note") != "x"))] == ["n2"]
    assert meter.requests == 4
    page = scan.where(late).page(limit=2)
    assert len(page) == 2
    assert len(scan.where(late).page(limit=2, after=page.next)) == 1
    with pytest.raises(InvalidCursor):
        scan.where(~late).page(limit=2, after=page.next)

    # An id and an attribute on two sides of `|`.
    assert g.out(("Faro", 1), Joined).where((field("target") == "9") | (field("note") == "n1")).count() == 1
    for query in (g.scan(Joined), g.out(("Faro", 1), Joined), g.find(Joined, field("year") > 0)):
        with pytest.raises(UnknownField, match="did you mean 'note'"):
            query.where((field("target") == "9") | (field("nte") == "n1"))
        with pytest.raises(UnknownField, match=r"target\.name is not part of an id"):
            query.where(field("target.name") == "n1")


def test_aggregates_do_not_take_sizes() -> None:
    class Owner(Node):
        id: str
        many: Annotated[int, Count("Holds", where=field("parts").size() > 2)] = 0

    class Holds(Edge[Owner, Counter]):
        parts: list[str] = []

    with pytest.raises(InvalidModel, match=r"uses size\(\) or has_type\(\)"):
        Graph(":memory:", [Owner, Counter, Holds])
