"""What finds in declared indexes refuse, and any predicate against all entities."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Copy,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidModel,
    Keys,
    Node,
    Projection,
    field,
)
from adjoin.fields import Comparison, Operator, Predicate
from adjoin.plans.find import search
from adjoin.plans.key_search import KeySearch
from adjoin.plans.steps.predicates import holds
from adjoin.requests import Get
from tests.finding.orders import DAY, ORDERS, Bought, Match, Order, Person
from tests.shares import examples

# --- what is refused ---------------------------------------------------------------------------


class Thing(Node):
    id: str
    name: str
    tags: list[str] = []
    flag: bool = False


GSI = Index("GSI9", "PK9", "SK9")


@pytest.mark.parametrize(
    ("indexes", "keys", "message"),
    [
        ([GSI, GSI], Keys(), "two indexes called 'GSI9'"),
        ([GSI], Keys(), "nothing is stored in 'PK9'"),
        ([GSI], Keys(indexes={"GSI8": "{name}"}), "has no index 'GSI8'; did you mean 'GSI9'"),
        ([GSI], Keys(indexes={"GSI9": "{name}"}), "have no template for 'SK9'"),
        ([GSI], Keys(indexes={"GSI9": (None, "{name}")}), "have no template for 'PK9'"),
        ([GSI], Keys(indexes={"GSI9": ("{nome}", "x")}), "Thing has no field 'nome'; did you mean 'node'"),
        ([GSI], Keys(indexes={"GSI9": ("{shard}", "x")}), "its index has no shards=; give it one"),
        ([Index("L", "PK", "tags", local=True)], Keys(), "Thing.tags cannot be the key attribute 'tags'"),
        ([Index("L", "flag")], Keys(), "Thing.flag cannot be the key attribute 'flag'"),
        ([Index("A", "name", shards=0, partition="{shard}")], Keys(), r"from 1 to 10,000, or a range .*, got 0"),
        ([Index("A", "name", shards=range(1, 9, 2), partition="{shard}")], Keys(), r"got range\(1, 9, 2\)"),
        ([Index("A", "name", shards=range(-1, 9), partition="{shard}")], Keys(), r"got range\(-1, 9\)"),
        (
            [Index("A", "P", "S", shards=2, shard_by="nome")],
            Keys(indexes={"A": ("{shard}", "{name}")}),
            "shard_by='nome': Thing has no field 'nome'",
        ),
        (
            [Index("A", "P", "S"), Index("B", "P", "T")],
            Keys(indexes={"A": ("a", "b"), "B": ("c", "d")}),
            "Thing has two templates for the key attribute 'P': 'a' and 'c'",
        ),
        ([Index("A", "P")], Keys(indexes={"A": ("a", "b")}), "give 'A' 2 templates, but it has 1 key attributes"),
        ([], Keys(reverse_partition="{name}"), "Keys\\(reverse_partition='{name}'\\) of Thing has no effect"),
        ([], Keys(only_in_keys=("name",)), "Thing.name would be stored nowhere"),
        (
            [Index("A", "P", types={"P": "N"})],
            Keys(indexes={"A": "x#{name}"}),
            "it is one placeholder without text around it",
        ),
    ],
)
def test_what_a_layout_refuses(indexes: list[Index], keys: Keys, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [Thing], layout=AdjacencyList(reverse=None, indexes=indexes, keys={Thing: keys}))


def test_a_template_over_an_inverted_index_is_refused() -> None:
    layout = AdjacencyList(
        reverse=Index("Inverted", "SK", "PK"),
        keys={Bought: Keys(partition="{source}", sort="{target}", reverse_partition="{source}")},
    )
    with pytest.raises(InvalidModel, match="has no effect: 'SK' has another template; remove it"):
        Graph(":memory:", [Order, Person, Bought], layout=layout)


def test_a_declared_index_takes_the_place_of_the_layouts_own() -> None:
    layout = AdjacencyList(indexes=[Index("GSI1", "name")])
    with Graph(":memory:", [Thing, Person], layout=layout) as g:
        assert [index.name for index in g._layout.definition.indexes] == ["GSI1"]
        g.put(Thing(id="t", name="x"))
        g.put(Person(id="t", name="x"))
        assert [type(each) for each in g.find(Thing, field("name") == "x")] == [Thing]
        assert {type(each) for each in g.index("GSI1").partition("x")} == {Thing, Person}


def test_fields_that_are_only_in_keys() -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("GSI1", "GSIPK", "Data", shards=2)],
        keys={Thing: Keys(indexes={"GSI1": ("{shard}", "{name}")}, only_in_keys=("name",))},
    )
    with Graph(":memory:", [Thing], layout=layout) as g:
        g.put(Thing(id="1", name="Ann"))
        (item,) = g._layout.items(Thing(id="1", name="Ann"))
        assert item == {
            "PK": {"S": "THING#1"},
            "SK": {"S": "#META"},
            "Data": {"S": "Ann"},
            "GSIPK": item["GSIPK"],
            "tags": {"L": []},
            "flag": {"BOOL": False},
        }
        assert g.get(Thing, "1") == Thing(id="1", name="Ann")
        assert g.find(Thing, field("name") == "Ann").first() == Thing(id="1", name="Ann")
        assert g.find(Thing, (field("name") != "Bob") & (field("name") > "A"), order="name").count() == 1
        g.update(Thing, "1", name="Bob", flag=True)
        assert g.get(Thing, "1") == Thing(id="1", name="Bob", flag=True)
        changed = [each.new_item for each in g.changes()][-1]
        assert changed == g._layout.items(Thing(id="1", name="Bob", flag=True))[0]


def test_two_changes_of_one_key_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fields are in one key only. Somebody changes the other one between the read and the write of an update."""
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("ByPlace", "PlacePK")],
        keys={Match: Keys(indexes={"ByPlace": "{game}|{map}"}, only_in_keys=("game", "map"))},
    )
    with Graph(":memory:", [Match], layout=layout) as g:
        g.put(Match(id="1", game="go", map="small"))
        execute, others = g._store.execute, ["large"]

        def intervened(requests: Any) -> Any:
            answers = execute(requests)
            if others and isinstance(requests[0], Get):
                g.update(Match, "1", map=others.pop())
            return answers

        monkeypatch.setattr(g._store, "execute", intervened)
        g.update(Match, "1", game="chess")
        assert others == []
        assert g.get(Match, "1") == Match(id="1", game="chess", map="large")


def test_a_node_is_deleted_with_the_edges_that_declared_indexes_find(g: Graph) -> None:
    for at in range(3):
        g.put(Bought(source="ann", target=f"O{at}", at=dt.date(2026, 1, 1 + at)))
    with g.meter() as meter:
        assert g.delete(Order, "O1")
    assert meter.requests == 5
    assert [each.target for each in g.out("ann", Bought)] == ["O0", "O2"]
    assert g.get(Order, "O2") is not None


def test_a_sparse_index_does_not_find_all_edges_to_delete() -> None:
    sparse, whole = Index("Sparse", "SparsePK", "rating"), Index("Whole", "WholePK", "at")
    keys = Keys(indexes={"Sparse": "o#{target.id}"})
    layout = AdjacencyList(reverse=None, indexes=[sparse], keys={Bought: keys})
    with Graph(":memory:", [Order, Person, Bought], layout=layout) as g:
        g.put_many([ORDERS[0], Bought(source="ann", target="O0", at=DAY)])
        with pytest.raises(InvalidModel, match="the index 'Sparse' does not hold Bought edges whose key would have a"):
            g.delete(Order, "O0")
    keys = Keys(indexes={"Sparse": "o#{target.id}", "Whole": "o#{target.id}"})
    layout = AdjacencyList(reverse=None, indexes=[sparse, whole], keys={Bought: keys})
    with Graph(":memory:", [Order, Person, Bought], layout=layout) as g:
        g.put_many([ORDERS[0], Bought(source="ann", target="O0", at=DAY)])
        assert [each.source for each in g.into("O0", Bought)] == ["ann"]
        assert g.delete(Order, "O0")
        assert list(g.out("ann", Bought)) == []


def test_a_node_with_edges_that_no_index_finds_is_not_deleted() -> None:
    with Graph(":memory:", [Order, Person, Bought], layout=AdjacencyList(reverse=None)) as g:
        g.put_many([ORDERS[0], Bought(source="ann", target="O0", at=DAY)])
        with pytest.raises(InvalidModel, match="Bought edges cannot be found from their target"):
            g.delete(Order, "O0")
        assert g.get(Order, "O0") == ORDERS[0]


def test_only_items_of_the_class_are_found() -> None:
    """Other items in the partition of a node are not the node, even if the index has them too."""
    layout = AdjacencyList(
        reverse=None,
        indexes=[Index("ByName", "name")],
        keys={Person: Keys("p#{id}", "p"), Thing: Keys("p#{id}", "t"), Named: Keys("p#{source.id}", "n#{target.id}")},
    )
    with Graph(":memory:", [Person, Thing, Named], layout=layout) as g:
        everything = [Person(id="1", name="x"), Thing(id="1", name="x"), Named(source="1", target="2", name="x")]
        g.put_many(everything)
        for each in everything:
            assert list(g.find(type(each), field("name") == "x")) == [each]


class Named(Edge[Person, Person]):
    name: str


# --- any predicate -----------------------------------------------------------------------------


class Book(Node):
    id: str
    shelf: str
    title: str
    pages: int = 0
    printed: dt.date | None = None
    price: Decimal | None = None


TEXTS = st.text("aAb #|!z~é", max_size=3)

BOOKS = st.builds(
    Book,
    id=st.just("?"),
    shelf=st.sampled_from(["s", "s", "s#", "s t"]),
    title=TEXTS,
    pages=st.integers(-12, 12),
    printed=st.none() | st.dates(dt.date(2026, 1, 1), dt.date(2026, 3, 1)),
    price=st.none() | st.decimals(-5, 5, places=1),
)

BY_FIELD: dict[str, st.SearchStrategy[Any]] = {
    "shelf": st.sampled_from(["s", "s", "s#", "s t"]),
    "title": TEXTS,
    "pages": st.integers(-12, 12),
    "printed": st.dates(dt.date(2026, 1, 1), dt.date(2026, 3, 1)),
    "price": st.decimals(-5, 5, places=1),
}

INDEXES = [
    Index("AAA", "APK", "ASK"),
    Index("BBB", "BPK", "BSK", shards=3),
    Index("CCC", "shelf", "price"),
    Index("DDD", "shelf", "pages", projection=Projection("INCLUDE", ("title",))),
    Index("EEE", "pages"),
    Index("FFF", "APK", "FSK"),
    Index("GGG", "APK", "GSK"),
    Index("HHH", ("shelf", "pages"), ("title", "printed")),
    Index("III", "shelf", ("printed", "pages", "title")),
]

TEMPLATES = {
    "AAA": ("a#{shelf}", "{title}#{pages:sortable}#{printed}"),
    "FFF": ("a#{shelf}", "{title}"),
    "GGG": ("a#{shelf}", "{pages:sortable}#{title}"),
    "BBB": ("{shard}", "{printed:%Y-%m}|{title}"),
}


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(BY_FIELD)))
    values = BY_FIELD[name]
    operator: Operator = draw(
        st.sampled_from(["=", "=", "<", "<=", ">", ">=", "between", "in", "<>", "exists", "begins_with"])
    )
    if operator == "exists":
        return Comparison(name, "exists")
    if operator == "begins_with":
        if name not in ("title", "shelf"):
            return Comparison(name, "=", (draw(values),))
        return Comparison(name, "begins_with", (draw(values),))
    if operator == "between":
        low, high = sorted([draw(values), draw(values)])
        return Comparison(name, "between", (low, high))
    if operator == "in":
        return Comparison(name, "in", tuple(draw(st.lists(values, min_size=1, max_size=3))))
    return Comparison(name, operator, (draw(values),))


def test_a_range_without_values_in_an_index_by_shard_alone_finds_nothing() -> None:
    layout = AdjacencyList(reverse=None, indexes=INDEXES, keys={Book: Keys(indexes=TEMPLATES)})
    with Graph(":memory:", [Book], layout=layout) as g:
        g.put(Book(id="1", shelf="s", title="a", printed=dt.date(2026, 1, 15)))
        nothing = (field("printed") < dt.date(2026, 1, 1)) & (field("printed") > dt.date(2026, 2, 1))
        with g.meter() as meter:
            assert list(g.find(Book, nothing, index="BBB")) == []
        assert meter.requests == 0


@pytest.mark.simulation
@settings(max_examples=examples(200), deadline=None)
@given(
    books=st.lists(BOOKS, max_size=12),
    parts=st.lists(comparisons(), min_size=1, max_size=2),
    is_on_shelf=st.sampled_from([True, True, True, False]),
    order_by=st.sampled_from([None, None, *sorted(BY_FIELD)]),
    index=st.none() | st.sampled_from([index.name for index in INDEXES]),
    is_escaped=st.booleans(),
    limit=st.none() | st.integers(1, 4),
)
def test_any_search_finds_what_a_scan_would(
    books: list[Book],
    parts: list[Predicate],
    is_on_shelf: bool,
    order_by: str | None,
    index: str | None,
    is_escaped: bool,
    limit: int | None,
) -> None:
    predicate = field("shelf") == "s" if is_on_shelf else parts.pop()
    for part in parts:
        predicate = predicate & part
    layout = AdjacencyList(
        reverse=None, indexes=INDEXES, keys={Book: Keys(indexes=TEMPLATES)}, escape=is_escaped or None
    )
    with Graph(":memory:", [Book], layout=layout) as g:
        stored: list[Book] = []
        for at, book in enumerate(books):
            try:
                stored.append(book.model_copy(update={"id": str(at)}))
                g.put(stored[-1])
            except InvalidKey:
                stored.pop()
        kind = g._schema.node(Book)
        try:
            asked = search(g._layout, kind, predicate, order_by, index)
        except InvalidKey:
            return
        assert isinstance(asked, KeySearch)
        if asked.index == "AAA" or asked.index == "BBB" or asked.index in ("HHH", "III"):
            reachable = [each for each in stored if each.printed is not None]
        elif asked.index == "FFF":
            reachable = [each for each in stored if each.title]
        elif asked.index == "CCC":
            reachable = [each for each in stored if each.price is not None]
        else:
            reachable = stored
        reachable = [each for each in reachable if each.shelf] if asked.index in ("CCC", "DDD") else reachable
        wanted = [each for each in reachable if holds(kind, predicate, each)]
        query = g.find(Book, predicate, order=order_by, index=index)
        found: list[Book] = []
        token: str | None = None
        while True:
            page = query.page(limit=limit, after=token)
            found += page.items
            token = page.next
            if token is None:
                break
        assert sorted(found, key=lambda each: each.id) == sorted(wanted, key=lambda each: each.id)
        if order_by is not None:
            values = [getattr(each, order_by) for each in found]
            assert values == sorted(values)
        assert query.count() == len(found)


def test_an_error_of_ours_for_values_of_another_type(g: Graph) -> None:
    for predicate in (field("customer") == object(), field("customer") == ["c1"]):
        with pytest.raises(AdjoinError):
            g.find(Order, predicate)


def test_a_symmetric_edge_is_found_once() -> None:
    class Friend(Edge[Person, Person], symmetric=True):
        year: int
        group: str = "g"
        name: Annotated[str, Copy("target.name")] = ""

    indexes = [Index("ByGroup", "group", "year"), Index("ByName", "NamePK", "name")]
    layout = AdjacencyList(indexes=indexes, keys={Friend: Keys(indexes={"ByName": "names"})})
    with Graph(":memory:", [Person, Friend], layout=layout) as g:
        g.put_many(Person(id=id, name=id.upper()) for id in "abc")
        g.put_many([Friend(source="b", target="a", year=1), Friend(source="c", target="b", year=2)])
        grouped = g.find(Friend, field("group") == "g")
        assert [(each.source, each.target) for each in grouped] == [("a", "b"), ("b", "c")]
        assert grouped.count() == 2
        assert [each.year for each in grouped.page(limit=1).items] == [1]
        # From one end, each edge is as it is seen from there.
        assert [each.target for each in g.find(Friend, field("source") == "b")] == ["a", "c"]
        assert [each.target for each in grouped.where(field("source") == "b")] == ["a", "c"]
        # Its two items have different copies.
        assert [(each.source, each.name) for each in g.find(Friend, order="name")] == [
            ("b", "A"),
            ("a", "B"),
            ("c", "B"),
            ("b", "C"),
        ]
