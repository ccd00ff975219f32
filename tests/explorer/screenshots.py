"""The pictures of the explorer in the documents, taken of the real page.

    python -m tests.explorer.screenshots

A test compares what the page looks like now with the stored pictures, so run this after the page has changed.
"""

from __future__ import annotations

import base64
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from adjoin import AdjacencyList, Copy, Count, Edge, Graph, Indexed, Latest, Node, Sum
from tests.explorer.conftest import opened_browser
from tests.explorer.graphs import serving

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "images"
SIZE = (1280, 800)
SETTLED = ".graph[aria-busy=false] canvas[data-settled=true]"


class Student(Node):
    id: str
    name: Annotated[str, Indexed()]
    courses: Annotated[int, Count("Enrollment")] = 0
    credits: Annotated[Decimal, Sum("Enrollment", field="credits")] = Decimal(0)


class Course(Node):
    id: str
    title: Annotated[str, Indexed()]
    students: Annotated[int, Count("Enrollment")] = 0
    last_term: Annotated[str | None, Latest("Enrollment", field="term", by="term")] = None


class Teacher(Node):
    id: str
    name: Annotated[str, Indexed()]


class Enrollment(Edge[Student, Course]):
    term: str
    grade: str
    credits: Decimal
    course: Annotated[str, Copy("target.title")] = ""


class Teaches(Edge[Teacher, Course]):
    since: int


MODELS = (Student, Course, Teacher, Enrollment, Teaches)
LAYOUT = AdjacencyList(table="Campus")

_FIRST = ("Aino", "Bruno", "Chioma", "Dilek", "Emil", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kenji", "Leila")
_LAST = ("Virtanen", "Costa", "Okafor", "Demir", "Novak", "Haddad", "Silva", "Meyer", "Tanaka", "Rossi")
_TITLES = ("Algebra", "Databases", "Graph theory", "Linguistics", "Optics", "Poetry", "Statistics", "Typography")


def campus() -> list[Any]:
    """A small university, the same each time."""
    chance = random.Random(7)
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    chance.shuffle(names)
    courses = [Course(id=f"C{at:02}", title=title) for at, title in enumerate(_TITLES, 1)]
    students = [Student(id=f"S{at:03}", name=name) for at, name in enumerate(names[:36], 1)]
    teachers = [Teacher(id=f"T{at}", name=f"Dr. {name}") for at, name in enumerate(names[36:41], 1)]
    found: list[Any] = [*courses, *students, *teachers]
    found += [
        Enrollment(
            source=student,
            target=course,
            term=chance.choice(("2024-fall", "2025-spring")),
            grade=chance.choice("ABC"),
            credits=Decimal(chance.choice((3, 5, 6))),
        )
        for student in students
        for course in chance.sample(courses, chance.choice((1, 1, 2, 2, 3)))
    ]
    pairs = enumerate(courses)
    return [*found, *(Teaches(source=teachers[at % 5], target=course, since=2015 + at) for at, course in pairs)]


def _graph(page: Any) -> None:
    page.fill("input[type=search]", "C03")
    page.press("input[type=search]", "Enter")
    page.locator(".details h2", has_text="Graph theory").wait_for()
    for teacher in ("T1", "T3"):
        page.fill("input[type=search]", teacher)
        page.press("input[type=search]", "Enter")
        page.locator(".details h2", has_text="Dr.").wait_for()
        page.wait_for_load_state("networkidle")
    page.fill("input[type=search]", "C03")
    page.press("input[type=search]", "Enter")
    page.locator(".details h2", has_text="Graph theory").wait_for()
    page.wait_for_load_state("networkidle")
    page.fill("input[type=search]", "")
    # Where nodes are depends on when each came; now they come at once.
    page.click("[aria-label='Arrange anew']")
    page.click("[aria-label='Show all']")
    page.wait_for_selector(SETTLED)


def _table(page: Any) -> None:
    page.locator("td .link", has_text="Student").first.click()
    page.locator(".details h2").wait_for()


def _query(page: Any) -> None:
    page.select_option("select >> nth=0", "out")
    page.select_option("select >> nth=1", "Student")
    page.fill("input[type=text]", "S001")
    page.click("text=Add a comparison")
    page.select_option("[aria-label='Field of comparison 1']", "credits")
    page.select_option("[aria-label='Operator of comparison 1']", ">=")
    page.fill("[aria-label='Value 1 of comparison 1']", "3")
    page.click("button >> text=Run")
    page.locator("h2", has_text="result").wait_for()


def _design(page: Any) -> None:
    for code, steps in (("g.get(Student, id)", 10), ("g.out(student, Enrollment)", 9), ("g.put(Enrollment(…))", 5)):
        page.focus(f"[aria-label='Calls per second of {code}']")
        for _ in range(steps):
            page.keyboard.press("ArrowRight")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("document.querySelector('main').scrollTo(0, 0)")


def _health(page: Any) -> None:
    page.locator(".bars th", has_text="Enrollment").wait_for()


SHOTS: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "explorer-graph": ("graph", "light", _graph),
    "explorer-graph-dark": ("graph", "dark", _graph),
    "explorer-table": ("table", "light", _table),
    "explorer-query": ("query", "light", _query),
    "explorer-query-dark": ("query", "dark", _query),
    "explorer-design": ("design", "light", _design),
    "explorer-health": ("health", "light", _health),
}


@contextmanager
def campus_server() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/campus.db"
        with Graph(path, MODELS, LAYOUT) as graph:
            graph.put_many(campus())
            graph.maintain(once=True)
        with serving(path, MODELS, LAYOUT) as server:
            yield server


def taken(browser: Any, address: str, name: str) -> bytes:
    """One picture, as WebP."""
    view, theme, prepare = SHOTS[name]
    context = browser.new_context(
        viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=theme, reduced_motion="reduce"
    )
    try:
        page = context.new_page()
        page.goto(f"{address}#view={view}")
        if view == "graph":
            page.wait_for_selector(SETTLED)
        page.wait_for_load_state("networkidle")
        prepare(page)
        page.mouse.move(640, 795)
        page.wait_for_timeout(200)
        session = context.new_cdp_session(page)
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 85})
        return base64.b64decode(shot["data"])
    finally:
        context.close()


_COMPARE = """async ([one, other]) => {
    const pixels = async (data) => {
        const image = await createImageBitmap(await (await fetch(data)).blob());
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
    };
    const [a, b] = [await pixels(one), await pixels(other)];
    if (a.width !== b.width || a.height !== b.height) return 1;
    let differ = 0;
    for (let at = 0; at < a.data.length; at += 4)
        if (Math.abs(a.data[at] - b.data[at]) + Math.abs(a.data[at + 1] - b.data[at + 1]) +
            Math.abs(a.data[at + 2] - b.data[at + 2]) > 90) differ += 1;
    return differ / (a.width * a.height);
}"""


def difference(browser: Any, one: bytes, other: bytes) -> float:
    """The share of pixels in which two pictures differ clearly."""
    page = browser.new_page()
    try:
        data = [f"data:image/webp;base64,{base64.b64encode(each).decode()}" for each in (one, other)]
        return float(page.evaluate(_COMPARE, data))
    finally:
        page.close()


def main() -> None:
    with opened_browser() as browser, campus_server() as server:
        for name in SHOTS:
            path = FOLDER / f"{name}.webp"
            picture = taken(browser, server.address, name)
            if path.exists() and difference(browser, path.read_bytes(), picture) < 0.0005:
                continue
            path.write_bytes(picture)
            print(f"{path.name}: {len(picture):,} bytes")


if __name__ == "__main__":
    main()
