"""The page in a real browser: each view, on both layouts and on a foreign table, with data that means harm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Graph, Node
from adjoin.explorer import ExplorerServer
from adjoin.layouts.interface import Layout
from examples import people, shop
from tests.explorer.graphs import (
    HOSTILE_MODELS,
    IMAGE,
    LAYOUTS,
    RIGHT_TO_LEFT,
    SCRIPT,
    filled,
    hostile_file,
    invoices_file,
    people_file,
    serving,
    shop_file,
)
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
SETTLED = ".graph[aria-busy=false] canvas[data-settled=true]"


class Page:
    """A page of the explorer, and what went wrong on it."""

    def __init__(self, page: Any, server: ExplorerServer) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        page.on("requestfailed", lambda request: self.faults.append(request.url))
        self._server = server
        self.asked: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, view: str = "graph") -> None:
        self.page.goto(f"{self._server.address}#view={view}")
        if view == "graph":
            self.page.wait_for_selector(SETTLED)

    def go(self, title: str) -> None:
        """Goes to another view."""
        self.page.click(f"nav >> text={title}")

    def drawn(self) -> int:
        return int(self.page.get_attribute("canvas", "data-nodes"))

    def find(self, text: str, where: str = "") -> None:
        self.page.fill("input[type=search]", text)
        self.page.select_option(".finder select", where)
        self.page.press("input[type=search]", "Enter")

    def pressed(self, key: str) -> str:
        """The address after a key; it names what is selected."""
        self.page.keyboard.press(key)
        return str(self.page.url)

    def headed(self, title: str) -> None:
        """Waits until the details are those of this node. The policy of the page allows no functions to wait for."""
        self.page.locator(".details h2").get_by_text(title, exact=True).wait_for()

    def says(self, text: str) -> None:
        """Waits until a screen reader is told this."""
        self.page.locator("[role=status]").get_by_text(text).wait_for(state="attached")


@contextmanager
def opened(
    browser: Any, location: str, models: Any = None, layout: Layout | None = None, **options: Any
) -> Iterator[Page]:
    size = options.pop("size", (1280, 800))
    theme = options.pop("theme", "light")
    with serving(location, models, layout, **options) as server:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=theme, reduced_motion="reduce"
        )
        try:
            page = Page(context.new_page(), server)
            yield page
            assert not page.faults
            assert all(url.startswith((server.endpoint, "data:")) for url in page.asked), "everything is served here"
            assert page.page.evaluate("window.harmed") is None
        finally:
            context.close()


def test_nodes_are_found_expanded_and_described(browser: Any, tmp_path: Path) -> None:
    with opened(browser, shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as page:
        page.open()
        assert page.drawn() == 3
        page.page.locator("text=Click a node for its details").wait_for()
        page.find("C1", "Customer.id")
        page.headed("Ann Lee")
        page.page.locator("text=Click a node for its details").wait_for(state="detached")
        kept = page.page.inner_text("[aria-label='Aggregates and copied fields']")
        assert "210.50" in kept or "210.5" in kept
        assert "CUSTOMER#C1" in page.page.inner_text(".details .keys")
        assert "request" in page.page.inner_text(".status")


def test_keyboard_alone_is_enough(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.open()
        page.page.keyboard.press("/")
        page.page.keyboard.type("P1")
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".details h2")
        page.page.focus("#canvas")
        page.page.keyboard.press("p")
        before = page.page.url
        ways = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")
        # A node has a neighbour in one direction at least.
        assert any(page.pressed(way) != before for way in ways)
        page.find("P2", "Person.id")
        page.headed("Bruno Costa")
        page.page.click("text=Shortest path to the selected node")
        page.says("A path of 2 edges")
        # Closing the details leads back to where they were opened.
        page.page.focus("[aria-label='Close details']")
        page.page.keyboard.press("Escape")
        page.page.locator(".details").wait_for(state="detached")
        assert page.page.evaluate("document.activeElement.type") == "search"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_that_means_harm_is_text(browser: Any, tmp_path: Path, layout: str) -> None:
    with opened(browser, hostile_file(tmp_path, layout), HOSTILE_MODELS, LAYOUTS[layout]) as page:
        page.open()
        page.find(SCRIPT, "User.id")
        page.headed(IMAGE)
        page.find(RIGHT_TO_LEFT, "User.id")
        page.headed(RIGHT_TO_LEFT)
        assert page.drawn() >= 6
        assert page.page.evaluate("document.querySelectorAll('main script, main img').length") == 0


def test_a_foreign_table_without_classes(browser: Any, tmp_path: Path) -> None:
    with opened(browser, invoices_file(tmp_path)) as page:
        page.open()
        assert page.drawn() > 3
        page.page.click("text=inferred classes")
        assert "class " in page.page.inner_text(".popover pre")
        page.page.keyboard.press("Escape")
        page.page.locator(".popover").wait_for(state="detached")


def test_what_is_selected_in_one_view_is_selected_in_the_others(browser: Any, tmp_path: Path) -> None:
    with opened(browser, shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as page:
        page.open()
        page.find("C1", "Customer.id")
        page.headed("Ann Lee")
        page.go("Table")
        row = page.page.locator("tr[aria-selected=true]")
        row.wait_for()
        assert "Ann Lee" in row.inner_text()
        page.page.locator("td .link", has_text="Placed").first.click()
        page.headed("Placed")
        page.go("Graph")
        page.page.wait_for_selector(SETTLED)
        page.headed("Placed")
        assert "Placed" in page.page.evaluate("location.hash")


def test_the_table_and_its_indexes(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.open("table")
        page.page.locator("code", has_text="PERSON#P1").first.wait_for()
        page.page.click(".tabs >> text=GSI2")
        page.page.locator("th", has_text="Target").first.wait_for()
        page.page.locator("button.link", has_text="PLACE#helsinki").first.click()
        page.page.locator(".chip", has_text="PLACE#helsinki").wait_for()
        page.page.locator("text=3 items, all that there are here").wait_for()


def test_a_query_with_its_requests_and_its_code(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.open("query")
        page.page.select_option("select >> nth=0", "find")
        page.page.select_option("select >> nth=1", "Person")
        page.page.click("text=Add a comparison")
        page.page.select_option("[aria-label='Operator of comparison 1']", "begins_with")
        page.page.fill("[aria-label='Value 1 of comparison 1']", "A")
        page.page.click("button >> text=Run")
        page.page.locator("h2", has_text="2 results").wait_for()
        page.page.set_viewport_size({"width": 820, "height": 1000})
        assert page.page.evaluate(TOO_WIDE) == [], "what is typed into has room beside the answer"
        page.page.set_viewport_size({"width": 1280, "height": 800})
        requests = page.page.inner_text(".requests tbody")
        assert "GSI1" in requests
        assert 'GSIPK = "PERSON#name#0"' in requests
        assert page.page.inner_text("pre[aria-label=Python]").endswith(
            'g.find(Person, field("name").begins_with("A")).page(limit=20)'
        )
        assert "client.query(" in page.page.inner_text("pre[aria-label^=boto3]")
        page.page.click("text=Draw in the graph")
        page.page.wait_for_selector(SETTLED)
        assert page.drawn() >= 2
        page.go("Query")
        page.page.click("text=Explain only")
        page.page.locator("h2", has_text="What it would take").wait_for()


def test_a_walk_is_drawn(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.open("query")
        page.page.select_option("select >> nth=0", "walk")
        page.page.fill("input[type=text]", "P1")
        page.page.select_option("[aria-label='Edges of step 1']", "LivesIn")
        page.page.click("text=Add a step")
        page.page.select_option("[aria-label='Direction of step 2']", "into")
        page.page.select_option("[aria-label='Edges of step 2']", "LivesIn")
        page.page.click("button >> text=Run")
        page.page.locator("h2", has_text="2 results").wait_for()
        page.page.click("text=Draw in the graph")
        page.page.wait_for_selector(SETTLED)
        assert page.page.evaluate("adjoinDrawing.scene.marked.value.size") == 5


def test_a_query_begins_with_what_is_drawn_and_says_what_is_missing(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.open()
        page.go("Query")
        box = page.page.locator(".query-form input[type=text]")
        # The form is filled in after it is shown.
        until(lambda: box.input_value() == "P1")
        box.fill("")
        page.page.click("button >> text=Run")
        page.page.locator(".query-form .warning", has_text="the id of a Person is missing").wait_for()
        page.faults.clear()
        box.fill("P1")
        page.page.click("button >> text=Run")
        page.page.locator("h2", has_text="result").wait_for()
        assert page.page.locator(".query-form .warning").count() == 0


def test_a_row_without_attributes_holds_its_size(browser: Any, tmp_path: Path) -> None:
    with opened(browser, hostile_file(tmp_path), HOSTILE_MODELS, LAYOUTS["adjacency"], size=(360, 740)) as page:
        page.open("table")
        page.page.locator(".attributes .size").first.wait_for()
        assert (
            page.page.evaluate(
                """[...document.querySelectorAll(".items tr .size")].filter((each) =>
                each.getBoundingClientRect().bottom > each.closest("tr").getBoundingClientRect().bottom + 1).length"""
            )
            == 0
        )


def test_the_design_and_what_a_load_costs(browser: Any, tmp_path: Path) -> None:
    with opened(browser, shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as page:
        page.open("design")
        page.page.locator(".keys-table code", has_text="PLACED#INVOICE#{target.id}").wait_for()
        before = page.page.inner_text(".total")
        slider = page.page.locator("[aria-label='Calls per second of g.get(Customer, id)']")
        slider.focus()
        for _ in range(10):
            page.page.keyboard.press("ArrowRight")
        # 100 calls a second for 30 days, at half a unit each.
        assert page.page.inner_text(".total") != before
        assert "$16.20" in page.page.inner_text(".total")


def test_health(browser: Any, tmp_path: Path) -> None:
    with opened(browser, shop_file(tmp_path), shop.MODELS, shop.LAYOUT) as page:
        page.open("health")
        page.page.locator(".bars th", has_text="Placed").wait_for()
        assert "none" in page.page.locator(".card", has_text="Lag").inner_text()
        page.page.click("text=Read the change stream")
        page.page.locator("[aria-label='Hottest partitions'] code", has_text="CUSTOMER#C1").first.wait_for()
        page.page.click("text=CUSTOMER#C1")
        page.headed("Ann Lee")


def test_editing_with_the_messages_of_the_classes(browser: Any, tmp_path: Path) -> None:
    path = shop_file(tmp_path)
    with opened(browser, path, shop.MODELS, shop.LAYOUT, write=True) as page:
        page.open()
        page.page.click("[aria-label='Add a node']")
        page.page.fill("#field-id", "C2")
        page.page.click("dialog button[type=submit]")
        page.page.locator("dialog #problem-name").wait_for()
        assert page.page.get_attribute("#field-name", "aria-invalid") == "true"
        page.page.fill("#field-name", SCRIPT)
        page.page.press("#field-name", "Enter")
        page.headed(SCRIPT)
        page.page.click(".details >> text=Connect")
        page.page.fill("dialog input[type=text] >> nth=0", "I1")
        page.page.fill("#field-balance", "12.50")
        page.page.click("dialog button[type=submit]")
        page.headed("Placed")
        page.page.click(".details >> text=Change")
        page.page.fill("#field-balance", "much")
        page.page.click("dialog button[type=submit]")
        page.page.locator("#problem-balance").wait_for()
        page.page.fill("#field-balance", "13")
        page.page.click("dialog button[type=submit]")
        page.page.locator(".details dd", has_text="13").wait_for()
        page.page.click(".details >> text=Delete")
        page.page.click("text=Delete this edge")
        page.says("Deleted")
    with Graph(path, shop.MODELS, shop.LAYOUT) as graph:
        assert graph.get(shop.Customer, "C2") == shop.Customer(id="C2", name=SCRIPT)
        assert graph.edge(shop.Placed, "C2", "I1") is None


# --- how it looks ------------------------------------------------------------------------------

AXE = ROOT / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("graph", "table", "query", "design", "health")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Any, tmp_path: Path, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe is not installed; run: make explorer")
    with opened(browser, shop_file(tmp_path), shop.MODELS, shop.LAYOUT, theme=theme, write=True) as page:
        page.open()
        page.find("C1", "Customer.id")
        page.headed("Ann Lee")
        source = AXE.read_text()
        for view in VIEWS:
            page.go(view.title())
            page.page.locator(f"nav a[aria-current] >> text={view.title()}").wait_for()
            page.page.wait_for_load_state("networkidle")
            page.page.evaluate(source)
            found = page.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            if view == "graph":
                page.page.evaluate("document.querySelector('main').append(document.createElement('img'))")
                assert "image-alt" in [each["id"] for each in page.page.evaluate("axe.run()")["violations"]]
                page.page.evaluate("document.querySelector('main > img').remove()")
            serious = [
                f"{view}: {each['id']}: {[node['html'] for node in each['nodes']][:3]}"
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert not serious


@pytest.mark.parametrize("size", [(1440, 900), (820, 1000), (360, 740)], ids=["desktop", "tablet", "phone"])
def test_each_view_fits_the_screen_whatever_it_shows(browser: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """On both layouts with data that means harm, and on a foreign table."""
    subjects: list[tuple[Any, ...]] = [
        (hostile_file(tmp_path, name), HOSTILE_MODELS, layout) for name, layout in LAYOUTS.items()
    ]
    for subject in (*subjects, (invoices_file(tmp_path),)):
        with opened(browser, *subject, size=size) as page:
            page.open()
            for view in VIEWS:
                page.page.click(f"nav a[href='#view={view}']")
                page.page.wait_for_load_state("networkidle")
                assert page.page.evaluate("document.documentElement.scrollWidth") <= size[0], view
                assert page.page.evaluate(TOO_WIDE) == [], view
                assert page.page.locator("nav span").first.bounding_box()["width"] > 10, "views have their names"


TOO_WIDE = """[...document.querySelectorAll(".panel, fieldset")].filter((each) => each.scrollWidth > each.clientWidth)
    .map((each) => each.textContent.slice(0, 40))"""
"""The panels out of which something protrudes."""

IN_SIGHT = """() => {
    const drawing = adjoinDrawing, canvas = drawing.canvas.getBoundingClientRect();
    const covers = [...document.querySelectorAll("[data-covers]")].map((each) => each.getBoundingClientRect());
    const isFree = (x, y) => !covers.some((box) => x > box.left && x < box.right && y > box.top && y < box.bottom);
    const hidden = [...drawing.scene.dots.values()].map((dot) => drawing.toScreen(dot.x, dot.y)).filter(([x, y]) =>
        x < 0 || y < 0 || x > canvas.width || y > canvas.height || !isFree(x + canvas.left, y + canvas.top));
    const cut = drawing.labels.filter((label) => label.left < 0 || label.right > canvas.width);
    return [hidden.length, cut.length];
}"""
"""How many nodes are outside of the canvas or below a control, and how many names are cut off."""


def test_on_a_phone_nodes_and_names_are_in_sight(browser: Any, tmp_path: Path) -> None:
    with opened(browser, hub_file(tmp_path), [Person, Knows], AdjacencyList(table="Hub"), size=(390, 844)) as page:
        page.open()
        assert page.page.evaluate(IN_SIGHT) == [0, 0]
        # Half of the screen is for the details then, and another control is there.
        page.find("p61", "Person.id")
        page.headed("Person 61")
        page.page.click("text=Path from here")
        page.page.locator(".path-bar").wait_for()
        page.page.wait_for_selector(SETTLED)
        page.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.page.evaluate(IN_SIGHT) == [0, 0]
        # A drawing that somebody has moved stays where it is, but what is found comes into sight.
        page.page.evaluate("adjoinDrawing.canvas.dispatchEvent(new CustomEvent('adjoin-zoom', {detail: 6}))")
        page.find("p00", "Person.id")
        page.headed("Person 00")
        page.page.wait_for_selector(SETTLED)
        page.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        x, y = place_of(page, 'Person/"p00"')
        assert page.page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", [x, y]) == "canvas"


def test_an_answer_that_does_not_come_is_told_in_the_view(browser: Any, tmp_path: Path) -> None:
    with opened(browser, people_file(tmp_path), people.MODELS, people.LAYOUT) as page:
        page.page.route("**/api/design", lambda route: route.abort())
        page.open("design")
        page.page.locator("main .warning", has_text="is the command still running?").wait_for()
        page.page.unroute("**/api/design")
        page.page.click("text=Try again")
        page.page.locator(".keys-table").wait_for()
        page.page.route("**/api/items", lambda route: route.abort())
        page.go("Table")
        page.page.locator("main .warning", has_text="is the command still running?").wait_for()
        page.page.unroute("**/api/items")
        page.page.click("text=Try again")
        page.page.locator("code", has_text="PERSON#P1").first.wait_for()
        page.faults.clear()


class Person(Node):
    id: str
    name: str


class Knows(Edge[Person, Person]):
    pass


def test_a_thousand_nodes_stay_readable(browser: Any, tmp_path: Path) -> None:
    """No label overlaps another, and nodes do not lie on each other."""
    path = tmp_path / "many.db"
    people_file = [Person(id=f"p{number}", name=f"Person number {number}") for number in range(3)]
    filled(path, [Person, Knows], AdjacencyList(table="Many"), people_file)
    with opened(browser, str(path), [Person, Knows], AdjacencyList(table="Many")) as page:
        page.open()
        page.page.evaluate(
            """() => {
                const scene = adjoinDrawing.scene;
                const name = (at) => `Person/"n${at}"`;
                const nodes = [...Array(1000).keys()].map((at) => ({
                    handle: name(at), class: "Person", id: `n${at}`, title: `Person number ${at}`, fields: {} }));
                // A tree whose branches have different widths, and some edges across.
                const edges = [];
                for (let at = 1; at < 1000; at++) {
                    const from = at % 7 ? Math.floor(at / 4) : Math.floor(Math.sqrt(at));
                    edges.push({ handle: `e${at}`, class: "Knows", source: name(from), target: name(at),
                                 symmetric: false, fields: {} });
                }
                scene.add(nodes, edges);
            }"""
        )
        page.page.wait_for_selector("canvas[data-settled=true][data-nodes='1003']", timeout=60_000)
        overlaps, labels = page.page.evaluate(
            """() => {
                const boxes = adjoinDrawing.labels;
                let found = 0;
                for (const [at, one] of boxes.entries())
                    for (const other of boxes.slice(at + 1))
                        if (one.left < other.right && other.left < one.right &&
                            one.top < other.bottom && other.top < one.bottom) found += 1;
                return [found, boxes.length];
            }"""
        )
        assert overlaps == 0
        assert labels > 40
        # Nodes of many edges lie among others, and are those by whose names one finds one's way.
        assert page.page.evaluate("adjoinDrawing.landmarks") == 10
        close = page.page.evaluate(
            """() => {
                const dots = [...adjoinDrawing.scene.dots.values()];
                let found = 0;
                for (const [at, one] of dots.entries())
                    for (const other of dots.slice(at + 1))
                        if (Math.hypot(one.x - other.x, one.y - other.y) < 10) found += 1;
                return found;
            }"""
        )
        assert close == 0


# --- the canvas --------------------------------------------------------------------------------


def place_of(page: Page, handle: str) -> tuple[float, float]:
    """Where a node is drawn, on the page."""
    x, y = page.page.evaluate(
        """(handle) => {
            const dot = adjoinDrawing.scene.dots.get(handle);
            const box = adjoinDrawing.canvas.getBoundingClientRect();
            const [x, y] = adjoinDrawing.toScreen(dot.x, dot.y);
            return [x + box.left, y + box.top];
        }""",
        handle,
    )
    return x, y


def hub_file(folder: Path) -> str:
    """A node with sixty neighbours, one of which knows somebody else."""
    entities = [Person(id=f"p{number:02}", name=f"Person {number:02}") for number in range(62)]
    edges = [Knows(source="p00", target=f"p{number:02}") for number in range(1, 61)]
    edges += [Knows(source="p61", target="p01"), Knows(source="p61", target="p02")]
    return filled(folder / "hub.db", [Person, Knows], AdjacencyList(table="Hub"), [*entities, *edges])


def test_clicks_select_and_expand_and_supernodes_have_pages(browser: Any, tmp_path: Path) -> None:
    with opened(browser, hub_file(tmp_path), [Person, Knows], AdjacencyList(table="Hub")) as page:
        page.open()
        page.page.click("[aria-label='Clear the drawing']")
        page.find("p00", "Person.id")
        page.headed("Person 00")
        page.page.wait_for_selector("canvas[data-settled=true][data-nodes='26']")
        # Another node: a click selects it, and a click on what is selected expands it.
        page.page.mouse.click(*place_of(page, 'Person/"p01"'))
        page.headed("Person 01")
        page.page.mouse.click(*place_of(page, 'Person/"p01"'))
        page.page.wait_for_selector("canvas[data-settled=true][data-nodes='27']")
        # An edge, in its middle.
        (x1, y1), (x2, y2) = place_of(page, 'Person/"p61"'), place_of(page, 'Person/"p01"')
        page.page.mouse.click((x1 + x2) / 2, (y1 + y2) / 2)
        page.headed("Knows")
        page.find("p00", "Person.id")
        page.headed("Person 00")
        page.page.click("text=more…")
        page.page.wait_for_selector("canvas[data-settled=true][data-nodes='52']")
        page.page.click("text=more…")
        page.page.wait_for_selector("canvas[data-settled=true][data-nodes='62']")
        page.page.locator("text=more…").wait_for(state="detached")
        page.page.keyboard.press("Escape")


def test_recommendations_are_drawn(browser: Any, tmp_path: Path) -> None:
    with opened(browser, hub_file(tmp_path), [Person, Knows], AdjacencyList(table="Hub")) as page:
        page.open()
        page.find("p61", "Person.id")
        page.headed("Person 61")
        page.page.click("button >> text=Recommend")
        page.page.locator(".recommended li").first.wait_for()


def test_zoom_drag_and_themes(browser: Any, tmp_path: Path) -> None:
    with opened(browser, hub_file(tmp_path), [Person, Knows], AdjacencyList(table="Hub")) as page:
        page.open()
        before = page.page.evaluate("({...adjoinDrawing.camera})")
        page.page.mouse.move(600, 400)
        page.page.mouse.wheel(0, -300)
        page.page.mouse.down()
        page.page.mouse.move(500, 300, steps=4)
        page.page.mouse.up()
        after = page.page.evaluate("({...adjoinDrawing.camera})")
        assert after["zoom"] > before["zoom"]
        assert after["x"] != before["x"]
        page.page.click("[aria-label='Show all']")
        page.page.click("[aria-label='Dark theme']")
        assert page.page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.page.reload()
        page.page.wait_for_selector(SETTLED)
        assert page.page.evaluate("document.documentElement.dataset.theme") == "dark", "it is remembered"
