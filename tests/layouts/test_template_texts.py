"""Which templates a layout has: what it refuses about indexes of its own, and about names that they use."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Index, Indexed, InvalidModel, Keys, Node
from adjoin.layouts.adjacency_reader import is_same
from adjoin.schema import Schema


class Page(Node):
    id: str
    words: Annotated[int, Indexed()] = 0
    weight: float = 0.0


class Cites(Edge[Page, Page], order="line"):
    line: int = 0


class Clash(Node):
    id: str
    GSI1PK: str = ""
    words: int = 0


SEVERAL = [
    AdjacencyList(reverse=Index("Own", ("A", "B"), "C")),
    AdjacencyList(reverse=Index("Own", "A", ("B", "C"))),
    AdjacencyList(ordered=Index("Own", ("A", "B"), "C")),
    AdjacencyList(indexed=Index("Own", "A", ("B", "C"))),
]


@pytest.mark.parametrize("layout", SEVERAL, ids=["reverse", "reverse, sort", "ordered", "indexed"])
def test_an_index_of_the_layouts_own_has_one_attribute_for_each_key(layout: AdjacencyList) -> None:
    with pytest.raises(InvalidModel, match="'Own' holds what adjoin writes from templates, so its keys have one attr"):
        layout.bind(Schema([Page, Cites]))


def test_no_field_may_be_stored_where_another_index_has_its_keys() -> None:
    declared = Index("ByField", "GSI1PK", "words")
    models: list[Any] = [Clash, Page, Cites]
    with pytest.raises(InvalidModel, match=r"Clash\.GSI1PK is stored as 'GSI1PK', a name that the layout uses itself"):
        AdjacencyList(indexes=[declared]).bind(Schema(models))
    assert AdjacencyList(indexes=[declared], reverse=None).bind(Schema(models))


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    stars: int = 0


class Likes(Edge[Page, Repo]):
    rank: int | None = None


@pytest.mark.parametrize(
    "index", [Index("Two", ("A", "B"), "C"), Index("Two", "A", ("B", "C"))], ids=["partition", "sort"]
)
def test_an_index_over_several_attributes_takes_no_templates(index: Index) -> None:
    layout = AdjacencyList(indexes=[index], keys={Page: Keys(indexes={"Two": ("a", "b")})})
    with pytest.raises(InvalidModel, match="'Two' has several attributes in its keys, which are fields of the classes"):
        layout.bind(Schema([Page]))


def test_templates_of_an_index_are_for_the_classes_that_have_all_their_parts() -> None:
    layout = AdjacencyList(
        reverse=None,
        indexes=[
            Index("ById", "IdPK", "IdSK", partition="{label}", sort="{id}"),
            Index("ByOwner", "OwnerPK", "OwnerSK", partition="{owner}", sort="{name}"),
            Index("ByTarget", "TargetPK", "TargetSK", partition="{target.owner}", sort="{source.id}"),
        ],
    ).bind(Schema([Page, Repo, Likes]))

    def keys(entity: Any) -> dict[str, str]:
        (item,) = layout.items(entity)
        return {name: value["S"] for name, value in item.items() if name.endswith(("PK", "SK")) and len(name) > 2}

    assert keys(Page(id="p")).items() >= {"IdPK": "PAGE", "IdSK": "p"}.items()
    assert not keys(Page(id="p")).keys() & {"OwnerPK", "TargetPK"}
    assert keys(Repo(owner="ann", name="graph")) == {"OwnerPK": "ann", "OwnerSK": "graph"}
    assert keys(Likes(source="p", target=("ann", "graph"))) == {"TargetPK": "ann", "TargetSK": "p"}


def test_an_edge_without_a_part_of_a_declared_key_is_not_in_that_index() -> None:
    layout = AdjacencyList(
        indexes=[Index("ByRank", "RankPK", "RankSK")], keys={Likes: Keys(indexes={"ByRank": ("all", "{rank}")})}
    ).bind(Schema([Page, Repo, Likes]))
    ranked, unranked = (layout.items(Likes(source="p", target=("a", "g"), rank=rank))[0] for rank in (3, None))
    assert ranked["RankSK"] == {"S": "3"}
    assert not unranked.keys() & {"RankPK", "RankSK"}


def test_edges_of_other_sources_may_have_the_same_sort_key() -> None:
    class Cited(Edge[Repo, Page]):
        pass

    same = Keys(sort="E#{target.id}")
    models: list[Any] = [Page, Repo, Likes, Cites, Cited]
    assert AdjacencyList(keys={Cites: same, Cited: same}).bind(Schema(models))

    class Quotes(Edge[Page, Page]):
        pass

    with pytest.raises(InvalidModel, match="Cites and Quotes can have the same key"):
        AdjacencyList(keys={Cites: same, Quotes: same}).bind(Schema([*models, Quotes]))


def test_a_whole_id_of_several_fields_narrows_a_query() -> None:
    with Graph(":memory:", [Page, Repo, Likes]) as g:
        g.put_many(Likes(source="p", target=("ann", name)) for name in ("a", "b"))
        assert [edge.target for edge in g.out("p", Likes).within(target=("ann", "b"))] == [("ann", "b")]
        assert g.out("p", Likes).within(**{"target.owner": "ann"}).count() == 2


@pytest.mark.parametrize(
    ("id", "told", "expected"),
    [
        (("a", "b"), ("a", "b"), True),
        (("a", "b"), ("a", "c"), False),
        (("a", "b"), ("a",), False),
        (("a", "b"), None, True),
        ("a", "b", False),
        ("a", None, True),
        (1, "1", True),
    ],
)
def test_whether_an_id_is_the_one_in_its_key(id: Any, told: Any, expected: bool) -> None:
    assert is_same(id, told) is expected


class Marked(Node):
    id: str
    label: str = ""
    node: str = ""
    tenant: str = ""
    shard: int = 0


class Marks(Edge[Page, Marked]):
    label: str = ""
    node: str = ""


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({Marked: Keys(indexes={"GSI1": ("L#{label}", "{id}")})}, "{label} is the label of the class, and Marked has"),
        ({Marked: Keys(indexes={"GSI1": ("L", "{node}")})}, "{node} is the key of the node, and Marked has a field"),
        ({Marked: Keys(partition="T#{tenant}#M#{id}")}, "{tenant} is the tenant of the graph, and Marked has a field"),
        ({Marked: Keys(attributes={"Copy": "{label}"})}, r"with Field\(alias='label'\) if the table has such an attr"),
        ({Marks: Keys(sort="{label}#{target}")}, "'{label}#{target}' of Marks, {label} is the label"),
        ({Marked: Keys(partition="M#{shard}")}, "to name the field 'shard' of Marked, give it another name"),
    ],
)
def test_a_placeholder_that_is_not_the_field_of_its_name_is_refused(keys: Any, message: str) -> None:
    """Before, the key silently had the label of the class."""
    layout = AdjacencyList(reverse=None, indexes=[Index("GSI1", "GSI1PK", "GSI1SK")], keys=keys)
    with pytest.raises(InvalidModel, match=message):
        layout.bind(Schema([Page, Marked, Marks]))


def test_adjoins_own_templates_and_fields_of_edges_have_no_such_names() -> None:
    for layout in (AdjacencyList(), AdjacencyList(keys={Marks: Keys(sort="M#{node}#{target}")})):
        with Graph(":memory:", [Page, Marked, Marks], layout) as g:
            g.put(Marked(id="1", label="red"))
            g.put(Marks(source="2", target="1", node="n"))
            assert g.get(Marked, "1") == Marked(id="1", label="red")
            assert [each.node for each in g.out("2", Marks)] == ["n"]


def test_an_edge_that_is_not_under_its_target_in_the_reverse_index_says_what_to_do() -> None:
    layout = AdjacencyList(reverse=Index("Inverted", "SK", "PK"), keys={Marks: Keys(sort="MARKS#{target.id}")})
    with pytest.raises(InvalidModel, match=r"give the layout reverse=None and declare the index in indexes="):
        layout.bind(Schema([Page, Marked, Marks]))


@pytest.mark.parametrize(
    ("index", "keys", "message"),
    [
        (
            Index("Own", "A", "B", shards=4),
            Keys(indexes={"Own": ("x", "{id}")}),
            r"the index 'Own' has shards=, but no class has {shard}",
        ),
        (
            Index("Own", "words", types={"words": "S"}),
            Keys(),
            r"'words' is text, and Page\.words is stored .* a number",
        ),
        (
            Index("Own", "A"),
            Keys(indexes={"Own": "{id:06}"}),
            r"Page\.id is not a whole number, so {id:06} has no meaning",
        ),
        (
            Index("Own", "A"),
            Keys(indexes={"Own": "{weight}"}),
            r"Page\.weight is a float, which cannot",
        ),
        (Index("Own", "words"), Keys("P#{id:lower}"), r"add {id}, without a transform that loses its value"),
    ],
)
def test_what_could_not_work_is_refused_with_the_reason(index: Index, keys: Keys, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        AdjacencyList(indexes=[index], keys={Page: keys}).bind(Schema([Page]))


class Crate(Node):
    id: str
    weight: str
    size: int


def test_a_field_that_is_an_index_key_needs_no_template_for_it() -> None:
    index = Index("ByWeight", "weight", "GSI7SK")
    for given, is_refused in ((("{weight}", "{size:03}"), True), ((None, "{size:03}"), False)):
        layout = AdjacencyList(reverse=None, indexes=[index], keys={Crate: Keys(indexes={"ByWeight": given})})
        if not is_refused:
            assert layout.bind(Schema([Crate]))
            continue
        with pytest.raises(
            InvalidModel, match=r"a key of the index 'ByWeight' that also has a template; leave the temp"
        ):
            layout.bind(Schema([Crate]))
