"""What a notebook shows: HTML of everything that a program holds, without a request, and small graphs as SVG."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

import pytest
from pydantic import Field, computed_field

from adjoin import (
    AdjacencyList,
    AsyncGraph,
    Budget,
    Child,
    Drawing,
    Edge,
    Graph,
    InvalidValue,
    MaterializedGraph,
    Node,
    UnknownField,
    field,
)
from adjoin.layouts.interface import Layout
from adjoin.requests import Query
from tests.models import ANN, ART, BOB, MATHS, SCHOOL, Enrollment, Exam, Friendship, Student

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg><script>alert(1)</script>",
    "&lt;b&gt; & 'quotes' \"both\"",
    "שלום עולם \u202eabc",
    "👩‍👩‍👧‍👦 🦄",
    "control \x00\x07 and \ud800 alone",
    "x" * 1000,
]
TAGS = {"div", "strong", "bdi", "table", "tr", "th", "td", "em", "code"}
SHAPES = {"svg", "style", "title", "g", "circle", "path", "text"}
SVG = "{http://www.w3.org/2000/svg}"


class Parsed(HTMLParser):
    """The tags, attributes and texts of a form; fails if a tag is not closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self.values += [value or "" for _, value in attrs]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self._open or "th" in self._open:
            self.cells[-1] += data


def parsed(shown: Any) -> Parsed:
    html = shown._repr_html_()
    found = Parsed(html)
    allowed = SHAPES | {"div"} if isinstance(shown, Drawing) else TAGS
    assert set(found.tags) <= allowed
    assert not {name for name in found.attributes if name.startswith("on") or name in ("href", "src")}
    assert not any("url(" in value or "background" in value for value in found.values)
    html.encode()
    return found


@pytest.fixture(params=[AdjacencyList, MaterializedGraph])
def layout(request: pytest.FixtureRequest) -> Layout:
    made: Layout = request.param()
    return made


EDGES: list[Edge[Any, Any]] = [
    Enrollment(source="ann", target="maths", grade="A"),
    Enrollment(source="bob", target="maths", grade="B"),
    Exam(source="ann", target="maths", term="t1"),
    Exam(source="ann", target="maths", term="t2"),
    Friendship(source="ann", target="bob"),
]


@pytest.fixture
def g(layout: Layout) -> Iterator[Graph]:
    with Graph(":memory:", SCHOOL, layout) as graph:
        graph.put_many([ANN, BOB, MATHS, ART, *EDGES])
        yield graph


# --- what is shown -----------------------------------------------------------------------------


def test_a_node_and_an_edge_are_tables_of_their_fields() -> None:
    assert parsed(ANN).cells == ["id", "ann", "name", "Ann", "year_level", "1", "version", "0"]
    shown = parsed(EDGES[0])
    assert shown.text.startswith("Enrollment")
    assert shown.cells == ["source", "ann", "target", "maths", "grade", "A", "points", "0"]


def test_a_field_that_was_not_read_is_marked_and_the_others_are_not(g: Graph) -> None:
    some = g.get(Student, "ann", only=["name"])
    assert some is not None
    html = some._repr_html_()
    assert ">Ann<" in html
    assert html.count("<em>") == html.count("<em>not read</em>") == 2
    assert "<em>" not in ANN._repr_html_()


def test_what_a_repr_hides_or_was_not_read_is_not_shown(g: Graph) -> None:
    class Account(Node):
        id: str
        password: Annotated[str, Field(repr=False)]

        @computed_field  # type: ignore[prop-decorator]
        @property
        def short(self) -> str:
            return self.id[:1]

    assert parsed(Account(id="a1", password="secret")).cells == ["id", "a1", "short", "a"]
    only = g.get(Student, "ann", only=["name"])
    assert parsed(only).cells == ["id", "ann", "name", "Ann", "year_level", "not read", "version", "not read"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_data_hold_is_text(text: str) -> None:
    node = Student.model_construct(id=text, name=text, year_level=1, version=0)
    shown = parsed(node).cells[1]
    assert len(shown) <= 80
    if len(text) > 80:
        assert shown == "x" * 79 + "…"
    else:
        assert shown == re.sub("[\x00\x07\ud800]", "\ufffd", text)


def test_a_page_is_a_table_with_a_row_for_each_result(g: Graph) -> None:
    shown = parsed(g.into("maths", Enrollment).page())
    assert shown.cells[:4] == ["source", "target", "grade", "points"]
    assert sorted(shown.cells[4::4]) == ["ann", "bob"]
    assert "More results follow" not in shown.text
    assert "More results follow" in parsed(g.into("maths", Enrollment).page(limit=1)).text
    pairs = parsed(g.into("maths", Enrollment).nodes().page())
    assert any(cell.startswith("Student(id=ann, name=Ann") for cell in pairs.cells)


def test_a_long_result_is_cut(g: Graph) -> None:
    g.put_many([Student(id=f"s{number:03}", name="") for number in range(70)])
    g.put_many([Enrollment(source=f"s{number:03}", target="art") for number in range(70)])
    shown = parsed(g.into("art", Enrollment).page())
    assert shown.tags.count("tr") == 51
    assert "20 more are not shown." in shown.text


def test_results_of_walks_say_whether_they_are_complete(g: Graph) -> None:
    walk = g.walk(ANN).out(Enrollment).into(Enrollment)
    found = walk.nodes()
    list(found)
    assert {"ann", "bob"} <= set(parsed(found).cells)
    assert "Course('maths')" in parsed(g.walk(ANN).out(Enrollment).group_count()).cells
    assert any(cell.startswith("Exam(") for cell in parsed(g.shortest_path(ANN, MATHS, via=[Exam])).cells)
    capped = parsed(g.walk(MATHS, cap=1).into(Enrollment).page())
    assert "Not all edges were read of Course('maths')." in capped.text
    partial = g.walk(ANN, Budget(requests=1)).out(Enrollment).into(Enrollment).refs()
    assert partial.partial
    assert "Partial: the budget of requests did not suffice." in parsed(partial).text
    below = parsed(g.subtree(ANN, Enrollment))
    assert below.cells == ["depth", "quantity", "node", "1", "1", "Course(id=maths, name=Maths, credits=5)"]
    best = g.recommend(ANN, Exam)
    assert "WalkResult of" in parsed(best).text


def test_an_explanation_is_a_table_of_requests(g: Graph) -> None:
    explained = g.explain(g.out("ann", Enrollment))
    shown = parsed(explained)
    assert shown.cells[:3] == ["round", "request", "1"]
    lines = str(explained).splitlines()
    assert f"round 1: {shown.cells[3]}" == lines[0]
    assert lines[1] in shown.text


def test_a_collection_shows_all_that_it_holds(g: Graph) -> None:
    pairs = parsed(g.collection(ANN).nodes())
    assert len(pairs.cells) == 1 + 2 * 4
    assert any(cell.startswith("Course(id=maths, name=Maths") for cell in pairs.cells)


def test_what_is_lazy_shows_what_it_would_do_and_reads_nothing(g: Graph) -> None:
    walk = g.walk(ANN).out(Enrollment).where(field("grade") == "A").into(Enrollment).distinct()
    queries: list[Any] = [
        g.out("ann", Enrollment).limit(3),
        g.into("maths", Enrollment).nodes(),
        g.collection(ANN),
        g.scan(Student),
        g.scan(),
        walk,
        walk.nodes(),
        g.walk("ann"),
        g.walk(ANN).both(Friendship),
        g,
    ]
    with g.meter() as meter:
        texts = [parsed(query).text for query in queries]
    assert meter.requests == 0
    assert all("It has read nothing yet." in text for text in texts[:-1])
    assert "Enrollment" in texts[0]
    assert "It has at most 3 results." in texts[0]
    first = "out Enrollment, only where Comparison(field='grade', operator='=', operands=('A',))"
    assert parsed(walk).cells[2:4] == ["1", first]
    assert parsed(walk).cells[4:] == ["2", "into Enrollment", "3", "each node once"]
    again = g.walk(ANN).repeat(Friendship, max=2)
    assert parsed(again).cells[2:] == ["1", "out Friendship, 1 to 2 times"]
    cost = walk.nodes().cost
    assert f"at most {cost.requests()} requests in {cost.rounds} rounds" in texts[6]
    assert "Reached nodes from Student('ann')" in texts[6]


def test_a_graph_shows_its_classes(g: Graph) -> None:
    cells = parsed(g).cells
    assert cells[3:6] == ["Student", "node", "id, name, year_level, version"]
    assert "edge: Student → Course" in cells
    assert "edge: Student – Student" in cells
    with Graph(":memory:", SCHOOL, tenant="<b>acme</b>") as graph:
        assert "for the tenant <b>acme</b>" in parsed(graph).text


# --- drawings ----------------------------------------------------------------------------------


def groups_of(drawing: Drawing, *, are_nodes: bool) -> list[ElementTree.Element]:
    """What is drawn of each node, or of each edge. A node is filled with a colour."""
    groups = ElementTree.fromstring(drawing.svg).iter(f"{SVG}g")
    filled = [(group, group.find(f"{SVG}circle")) for group in groups]
    return [group for group, circle in filled if are_nodes == (circle is not None and circle.attrib["fill"] != "none")]


def labels_of(drawing: Drawing) -> list[str]:
    """The labels of nodes; before each, its title has the class."""
    return [(group.findtext(f"{SVG}title") or "").partition(" ")[2] for group in groups_of(drawing, are_nodes=True)]


def lines_of(drawing: Drawing) -> list[str]:
    """The classes of edges."""
    return sorted(group.findtext(f"{SVG}title") or "" for group in groups_of(drawing, are_nodes=False))


def texts_of(drawing: Drawing, *, are_nodes: bool) -> list[str | None]:
    """What is written beside nodes, or edges."""
    return [group.findtext(f"{SVG}text") for group in groups_of(drawing, are_nodes=are_nodes)]


def test_a_node_is_drawn_with_its_edges_by_one_request(g: Graph) -> None:
    with g.meter() as meter:
        drawn = g.draw(ANN)
    assert (meter.requests, meter.rounds) == (1, 1)
    assert sorted(labels_of(drawn)) == ["ann", "bob", "maths"]
    assert lines_of(drawn) == ["Enrollment", "Exam", "Exam", "Friendship"]
    assert (drawn.nodes, drawn.edges, drawn.is_capped) == (3, 4, False)
    assert repr(drawn) == "<Drawing of 3 nodes and 4 edges>"
    assert texts_of(drawn, are_nodes=True) == labels_of(drawn)
    assert sorted(map(str, texts_of(drawn, are_nodes=False))) == lines_of(drawn)
    parsed(drawn)


def test_several_nodes_are_read_in_one_round_and_edges_are_drawn_once(g: Graph) -> None:
    with g.meter() as meter:
        drawn = g.draw([ANN, Student.ref("bob")], label="name")
    assert (meter.requests, meter.rounds) == (2, 1)
    # A symmetric edge is found at both of its ends.
    assert lines_of(drawn) == ["Enrollment", "Enrollment", "Exam", "Exam", "Friendship"]
    assert labels_of(drawn)[:2] == ["Ann", "Bob"]


def test_edges_that_arrive_are_drawn_when_asked_for(g: Graph) -> None:
    assert lines_of(g.draw(MATHS)) == []
    with g.meter() as meter:
        drawn = g.draw(MATHS, direction="both")
    assert (meter.requests, meter.rounds) == (2, 1)
    assert lines_of(drawn) == lines_of(g.draw(MATHS, direction="into")) == ["Enrollment", "Enrollment", "Exam", "Exam"]


def test_edges_pages_and_paths_need_no_request(g: Graph) -> None:
    path = g.shortest_path(ANN, MATHS, via=[Exam])
    page = g.into("maths", Enrollment).nodes().page()
    with g.meter() as meter:
        assert sorted(labels_of(g.draw(EDGES[:2]))) == ["ann", "bob", "maths"]
        assert labels_of(g.draw(path, label="name")) == ["Ann", "Maths"]
        assert sorted(labels_of(g.draw(page, label="name"))) == ["Ann", "Bob", "maths"]
        assert labels_of(g.draw([])) == []
    assert meter.requests == 0


def test_of_a_walk_its_paths_are_drawn(g: Graph) -> None:
    walk = g.walk(ANN).out(Enrollment).into(Enrollment)
    with g.meter() as meter:
        list(walk.paths())
    with g.meter() as drawing:
        drawn = g.draw(walk)
    assert drawing.requests == meter.requests
    assert labels_of(drawn) == ["ann", "maths", "bob"]
    assert lines_of(drawn) == ["Enrollment", "Enrollment"]


def test_more_nodes_than_allowed_are_left_out_and_it_says_so(g: Graph) -> None:
    g.put_many([Enrollment(source=f"s{number:03}", target="art") for number in range(300)])
    with g.meter() as meter:
        drawn = g.draw(ART, direction="into", most=10)
    assert meter.requests == 1
    assert (drawn.nodes, drawn.is_capped) == (10, True)
    assert drawn.edges == 9
    assert "10 nodes and 9 edges; more are not drawn" in parsed(drawn).text
    # The query has a limit, however many edges the node has. A collection asks for at least 100 items.
    (asked,) = g.explain(g.draw, ART, direction="into", most=10).requests
    assert isinstance(asked, Query)
    assert asked.limit == 100
    # A lazy query is read no further than needed.
    assert g.draw(g.into("art", Enrollment), most=4).nodes == 4
    # Many edges between two nodes are too many as well.
    exams = [Exam(source="ann", target="art", term=str(number)) for number in range(20)]
    assert g.draw(exams, most=2).edges == 8
    g.put_many(exams)
    drawn = g.draw(ANN, most=5)
    assert drawn.nodes < 5
    assert drawn.is_capped


def test_a_drawing_is_the_same_every_time_and_nodes_lie_apart(g: Graph) -> None:
    edges = [Enrollment(source=f"s{number}", target=f"c{number % 3}") for number in range(30)]
    edges += [Enrollment(source=f"s{number}", target=f"c{(number + 1) % 3}") for number in range(0, 30, 5)]
    drawn = g.draw(edges)
    assert drawn.svg == g.draw(edges).svg
    root = ElementTree.fromstring(drawn.svg)
    circles = [circle for group in groups_of(drawn, are_nodes=True) for circle in group.iter(f"{SVG}circle")]
    points = [complex(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in circles]
    assert len(points) == 33
    assert min(abs(a - b) for place, a in enumerate(points) for b in points[:place]) > 18
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert all(0 < point.real < width and 0 < point.imag < height for point in points)
    # Most texts have room; the others are left to the titles.
    assert texts_of(drawn, are_nodes=True).count(None) < 5
    assert len(labels_of(drawn)) == 33
    # Each class has a colour of its own.
    assert len({circle.attrib["fill"] for circle in circles}) == 2


def test_no_text_lies_on_another_one(g: Graph) -> None:
    drawn = g.draw([Enrollment(source=f"student {number}", target="c") for number in range(150)], most=200)
    groups = [*groups_of(drawn, are_nodes=True), *groups_of(drawn, are_nodes=False)]
    texts = [text for group in groups for text in group.iter(f"{SVG}text")]
    written = [(text.text or "", float(text.attrib["x"]), float(text.attrib["y"])) for text in texts]
    assert 30 < len(written) < 300
    for place, (one, x, y) in enumerate(written):
        for other, near, beside in written[:place]:
            # A letter is about half as wide as it is high.
            assert abs(x - near) > 2 * (len(one) + len(other)) or abs(y - beside) > 7


def columns_of(drawn: Drawing) -> list[list[str]]:
    """The labels of the nodes in each column, from left to right."""
    columns: dict[float, list[str]] = {}
    for group, label in zip(groups_of(drawn, are_nodes=True), labels_of(drawn), strict=True):
        circle = group.find(f"{SVG}circle")
        assert circle is not None
        columns.setdefault(float(circle.attrib["cx"]), []).append(label)
    return [sorted(columns[x]) for x in sorted(columns)]


class Part(Node):
    id: str


class Uses(Edge[Part, Part]):
    number: int = 1


USES = [Uses(source=a, target=b) for a, b in ("ab", "bc", "ac", "cd", "ad", "db", "xx")]


def test_layers_are_steps_from_where_edges_begin() -> None:
    with Graph(":memory:", [Part, Uses]) as g:
        g.put_many([*(Part(id=id) for id in "abcdx"), *USES])
        # The edge from d back to b closes a circle, so it moves nothing.
        assert columns_of(g.draw(USES, layers=True)) == [["a", "x"], ["b"], ["c"], ["d"]]
        assert columns_of(g.draw(g.walk("a").repeat(Uses, max=2), layers=True)) == [["a"], ["b"], ["c"], ["d"]]
        back = g.draw(g.walk(Part.ref("c")).into(Uses), layers=True)
        assert columns_of(back) == [["c"], ["a", "b"]]
        assert columns_of(g.draw(Part.ref("c"), direction="both", layers=True)) == [["c"], ["a", "b", "d"]]
        assert columns_of(g.draw([Part.ref("d")], direction="into", layers=True)) == [["d"], ["a", "c"]]
        assert columns_of(g.draw([], layers=True)) == []


def test_a_column_of_many_nodes_has_room_for_their_labels(g: Graph) -> None:
    many = g.draw([Enrollment(source=f"s{number:03d}", target="c") for number in range(150)], layers=True, most=200)
    assert [len(column) for column in columns_of(many)] == [150, 1]
    assert None not in texts_of(many, are_nodes=True)
    assert float(ElementTree.fromstring(many.svg).attrib["viewBox"].split()[3]) < 6000


def test_an_edge_that_goes_past_a_column_goes_through_no_node() -> None:
    """The curve of the edge from a to c is far from b, on whose height both are."""
    edges = [Uses(source=a, target=b) for a, b in ("ab", "bc", "ac")]
    with Graph(":memory:", [Part, Uses]) as g:
        drawn = g.draw(edges, layers=True)
    points = {
        label: complex(float(circle.attrib["cx"]), float(circle.attrib["cy"]))
        for group, label in zip(groups_of(drawn, are_nodes=True), labels_of(drawn), strict=True)
        for circle in group.iter(f"{SVG}circle")
    }
    path = groups_of(drawn, are_nodes=False)[2].find(f"{SVG}path")
    assert path is not None
    numbers = [float(each) for each in re.findall(r"[\d.]+", path.attrib["d"])]
    start, control, end = (complex(*numbers[at : at + 2]) for at in (0, 2, 4))
    assert abs(start - points["a"]) < 1
    assert abs(end - points["c"]) < 12
    curve = [(1 - t) ** 2 * start + 2 * t * (1 - t) * control + t * t * end for t in (at / 50 for at in range(51))]
    assert min(abs(point - points["b"]) for point in curve) > 25


def test_a_field_of_edges_is_written_on_them(g: Graph) -> None:
    drawn = g.draw([Friendship(source="ann", target="bob", since=1999), ANN], edge_label="since")
    assert "1999" in texts_of(drawn, are_nodes=False)
    titles = [group.findtext(f"{SVG}title") for group in groups_of(drawn, are_nodes=False)]
    assert "Friendship 1999" in titles
    with pytest.raises(UnknownField, match="no class of edges has a field 'colour'"):
        g.draw(ANN, edge_label="colour")


def test_a_file_has_colours_for_light_and_dark_pages(g: Graph) -> None:
    """A page that shows the text of a drawing has its own."""
    drawn = g.draw(ANN)
    assert drawn.svg.count("prefers-color-scheme:dark") == 1
    assert "<style>" not in drawn._repr_html_()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_data_hold_is_text_in_a_drawing(g: Graph, text: str) -> None:
    node = Student.model_construct(id=text, name=text, year_level=1, version=0)
    # As the far end of a path, a node is drawn without being read.
    drawn = g.draw([(Friendship.model_construct(source=text, target="ann", since=0), node)], label="name")
    shown = parsed(drawn)
    assert "script" not in shown.tags
    cleaned = re.sub("[\x00\x07\ud800]", "\ufffd", text)
    assert labels_of(drawn)[0] == (cleaned if len(text) <= 80 else cleaned[:79] + "…")
    assert texts_of(drawn, are_nodes=True) == [cleaned if len(text) <= 24 else cleaned[:23] + "…", "ann"]


class Order(Node):
    id: str


class Line(Child[Order]):
    id: int


class Refers(Edge[Order, Order]):
    pass


def test_children_and_loops_are_drawn() -> None:
    with Graph(":memory:", [Order, Line, Refers]) as g:
        g.put_many([Order(id="o1"), Line(parent="o1", id=1), Line(parent="o1", id=2), Refers(source="o1", target="o1")])
        with g.meter() as meter:
            drawn = g.draw(Order.ref("o1"))
        assert meter.requests == 1
        assert labels_of(drawn) == ["o1", "o1 · 1", "o1 · 2"]
        assert lines_of(drawn) == ["Refers", "child", "child"]


class Pet(Node, discriminator="kind"):
    id: str
    kind: str


class Dog(Pet):
    kind: Literal["dog"] = "dog"


class Cares(Edge[Order, Pet | Order]):
    pass


def test_ends_of_several_classes_and_families_are_one_node_each() -> None:
    with Graph(":memory:", [Order, Pet, Dog, Cares], tenant="acme") as g:
        dog, order = Dog(id="o1"), Order(id="o1")
        g.put_many([dog, order, Cares(source=order, target=dog), Cares(source=order, target=Order.ref("o2"))])
        drawn = g.draw([order, dog])
        assert labels_of(drawn) == ["o1", "o1", "o2"]
        assert lines_of(drawn) == ["Cares", "Cares"]
        assert "Dog o1" in parsed(drawn).text


def test_an_asynchronous_graph_draws_the_same(layout: Layout) -> None:
    async def drawn() -> list[Drawing]:
        async with AsyncGraph(":memory:", SCHOOL, layout) as g:
            await g.put_many([ANN, BOB, MATHS, ART, *EDGES])
            walk = g.walk(ANN).out(Enrollment).into(Enrollment)
            with g.meter() as meter:
                for lazy in (walk, walk.nodes(), g.out("ann", Enrollment)):
                    assert "nothing yet" in parsed(lazy).text
                assert "AsyncGraph in the table adjoin" in parsed(g).text
                collection = await g.collection(ANN)
                assert meter.requests == 1
                assert "Collection of 4 edges" in parsed(collection).text
            with g.meter() as meter:
                found = [await g.draw([ANN, BOB], direction="both")]
            assert (meter.requests, meter.rounds) == (4, 1)
            return [
                *found,
                await g.draw(walk),
                await g.draw(g.out("ann", Exam)),
                await g.draw(g.into("maths", Exam), most=1),
            ]

    with Graph(":memory:", SCHOOL, layout) as g:
        g.put_many([ANN, BOB, MATHS, ART, *EDGES])
        walk = g.walk(ANN).out(Enrollment).into(Enrollment)
        same = [g.draw([ANN, BOB], direction="both"), g.draw(walk), g.draw(g.out("ann", Exam))]
        same.append(g.draw(g.into("maths", Exam), most=1))
    assert asyncio.run(drawn()) == same


def test_what_cannot_be_drawn_is_refused_before_anything_is_read(g: Graph) -> None:
    with g.meter() as meter:
        for wrong in ("ann", 7, None, {"a": 1}, ["ann"], [ANN, 3]):
            with pytest.raises(InvalidValue, match=r"draw takes nodes, refs, edges and paths, .*pass Model.ref\(id\)"):
                g.draw(wrong)
        with pytest.raises(InvalidValue, match='direction must be "out", "into" or "both", got \'up\''):
            g.draw(ANN, direction="up")
        with pytest.raises(InvalidValue, match="most must be at most 200, got 201"):
            g.draw(ANN, most=201)
        with pytest.raises(UnknownField, match="no class of nodes has a field 'nmae'"):
            g.draw(ANN, label="nmae")
    assert meter.requests == 0
