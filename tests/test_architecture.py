"""The direction of imports, read from the source: every module imports only from layers below its own.

    cli
    explorer
    aws                   inferring, graph_exports, exchange
    graph                 copying, batch, snapshots
    traversals, drawing   scans, searches, walks, drawings
    verbs                 walk_steps
    queries
                                                server
                                                locations
    runner, cost          plans                 stores' implementations
    watching
                          layouts               stores.interface
                          fields                requests
                          schema                tables, evaluate, key_conditions
                          model                 expressions, items
                          marks
                          refs, class_fields
                          sharding
    values, units, errors, notebooks
    dataclass, late       for every module

Plans decide and never see a store; stores perform and never see a model, a layout or a plan.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "adjoin"

# A part of the package: what it may import. Modules of one part may import each other.
MAY_IMPORT: dict[str, set[str]] = {
    "beginning": set(),
    # How others are written: their values, and their imports of what is seldom needed.
    "dataclass": set(),
    "late": set(),
    "errors": set(),
    "units": {"errors"},
    "reserved": {"errors"},
    "values": {"errors", "units"},
    "formats": {"errors", "values"},
    "reached_sets": {"errors", "values"},
    # Everything that a notebook shows is made here, also of declared classes, so it knows none of them.
    "notebooks": {"errors"},
    "prometheus": set(),
    "tables": {"errors", "units", "values"},
    "expressions": {"errors", "units", "values"},
    "key_conditions": {"errors", "tables"},
    "requests": {"errors", "units", "values", "tables", "expressions"},
    "items": {"errors", "units", "values"},
    "evaluate": {"errors", "units", "values", "expressions", "items"},
    # What type checkers know of nodes and edges; it knows neither.
    "refs": set(),
    "class_fields": {"errors"},
    "marks": set(),
    "model": {"errors", "units", "values", "notebooks", "refs", "class_fields"},
    "field_types": {"errors", "values", "formats", "marks", "model"},
    "entity_types": {"errors", "units", "values", "formats", "marks", "model", "field_types"},
    "schema": {"errors", "units", "values", "formats", "marks", "model", "entity_types", "field_types"},
    "fields": {"class_fields", "errors", "units", "values", "model", "entity_types", "field_types", "schema"},
    "sharding": {"errors", "units", "values"},
    "aggregates": {"errors", "fields"},
    "rules": {"errors", "aggregates", "fields", "model", "entity_types", "field_types", "reached_sets", "schema"},
    "declarations": {
        "errors", "formats", "aggregates", "rules", "entity_types", "field_types", "reached_sets", "schema",
    },
    "checking_rules": {"errors", "formats", "aggregates", "rules", "entity_types", "field_types"},
    "layouts": {
        "errors", "units", "values", "formats", "tables", "reserved", "expressions", "requests",
        "model", "entity_types", "field_types", "schema",
        "fields", "sharding", "rules", "declarations", "checking_rules",
    },
    "plans": {
        "errors", "units", "values", "tables", "reserved", "expressions", "requests",
        "marks", "model", "entity_types", "field_types", "schema", "fields", "layouts",
        "sharding", "rules", "aggregates", "items", "evaluate", "notebooks", "reached_sets",
    },
    "stores": {"errors", "units", "values", "tables", "key_conditions", "expressions", "requests", "items", "evaluate"},
    # What chooses a store; above all stores, which know nothing of each other.
    "locations": {"errors", "stores"},
    "server": {
        "errors", "units", "values", "tables", "key_conditions", "expressions", "requests", "items", "evaluate",
        "stores", "locations", "prometheus",
    },
    "watching": {"errors", "requests"},
    "otel": {"errors", "requests", "watching"},
    "runner": {"errors", "requests", "plans", "stores.interface", "watching"},
    "cost": {"errors", "units", "values", "tables", "expressions", "requests", "runner", "watching", "notebooks"},
    "meters": {"requests", "cost", "watching"},
    "copying": {
        "errors", "units", "values", "tables", "requests", "plans", "runner", "cost", "meters",
        "stores.interface", "items",
    },
    # Exports and sources need nothing of the graph; what computes them is imported by name when it is asked for.
    "batch": {
        "errors", "units", "values", "formats", "tables", "reserved", "expressions", "requests",
        "model", "entity_types", "field_types", "schema",
        "fields", "aggregates", "rules", "layouts", "plans", "evaluate", "items", "copying.steps", "reached_sets",
    },
    "queries": {
        "errors", "units", "values", "tables", "expressions", "requests",
        "model", "entity_types", "field_types", "schema", "fields", "layouts",
        "sharding", "plans", "runner", "cost", "notebooks",
    },
    "collecting": {
        "refs", "values", "requests", "model", "entity_types", "schema", "layouts", "plans", "queries", "notebooks",
    },
    "searches": {"refs", "errors", "values", "requests", "entity_types", "fields", "plans", "queries"},
    "scans": {
        "errors", "values", "expressions", "requests", "model", "entity_types", "schema", "fields", "plans", "queries",
    },
    "walk_steps": {
        "errors", "requests", "model", "entity_types", "fields", "layouts", "plans", "cost", "queries", "notebooks",
    },
    "walks": {"errors", "requests", "refs", "model", "fields", "plans", "cost", "queries", "walk_steps"},
    "traversals": {
        "refs", "errors", "requests", "model", "entity_types", "fields", "layouts", "plans", "queries", "verbs",
        "walk_steps", "walks",
    },
    "reading": {
        "refs", "errors", "values", "expressions", "requests", "model", "entity_types", "fields", "layouts", "plans",
        "verbs",
    },
    "changing": {"refs", "errors", "requests", "marks", "model", "entity_types", "fields", "layouts", "plans", "verbs"},
    "transactions": {
        "refs", "errors", "requests", "marks", "model", "entity_types", "fields", "layouts", "plans", "verbs",
        "changing",
    },
    # What it answers is imported by name when it is asked for; the shells only call `calls`.
    "snapshots": {
        "errors", "units", "values", "requests", "model", "entity_types", "field_types", "fields", "layouts", "plans",
        "queries", "walk_steps", "walks", "traversals", "batch", "copying.steps",
    },
    "verbs": {
        "errors", "units", "values", "tables", "expressions", "requests",
        "marks", "model", "entity_types", "field_types", "schema", "fields", "layouts",
        "sharding", "plans", "runner", "cost", "meters", "queries", "rules", "notebooks", "watching",
    },
    "placing": set(),
    "drawings": {"placing", "errors", "model", "schema", "notebooks", "plans", "queries"},
    "drawing": {"errors", "requests", "model", "plans", "queries", "collecting", "walks", "verbs", "drawings"},
    "whole_graph": {"requests", "verbs", "batch", "snapshots", "stores.interface"},
    "graph": {
        "refs", "errors", "units", "values", "tables", "expressions", "requests",
        "marks", "model", "entity_types", "field_types", "schema", "fields", "layouts",
        "sharding", "plans", "runner", "cost", "queries", "searches", "scans", "verbs", "batch", "stores.interface",
        "locations", "walks", "traversals", "reading", "changing", "transactions",
        "collecting", "whole_graph", "drawing",
    },
    "async_graph": {
        "refs", "errors", "units", "values", "tables", "expressions", "requests",
        "marks", "model", "entity_types", "field_types", "schema", "fields", "layouts",
        "sharding", "plans", "runner", "cost", "queries", "searches", "scans", "verbs", "batch", "stores.interface",
        "locations", "walks", "traversals", "reading", "changing", "transactions", "graph",
        "collecting", "whole_graph", "drawing",
    },
    "aws": {
        "errors", "units", "values", "tables", "reserved", "requests",
        "model", "entity_types", "field_types", "schema", "layouts", "plans", "graph", "async_graph",
        "stores.definitions", "stores.records",
    },
    "graph_exports": {"errors", "values", "model", "entity_types", "field_types", "layouts", "graph"},
    # Files of other programs become nodes and edges, and back.
    "exchange": {"errors", "model", "entity_types", "field_types", "layouts", "batch", "graph"},
    # A program for a table is tried on a graph in memory.
    "inferring": {
        "errors", "values", "formats", "tables", "reserved", "items", "requests", "model", "layouts",
        "graph", "locations", "stores.interface",
    },
    "explorer": {
        "errors", "values", "tables", "reserved", "requests", "model", "entity_types", "field_types", "schema",
        "fields", "rules", "layouts", "plans", "runner", "cost", "graph", "inferring", "locations", "stores.interface",
        "server", "watching", "exchange",
    },
    "cli": {
        "", "aws", "batch", "beginning", "errors", "units", "values", "tables", "expressions", "requests", "graph",
        "cost", "copying", "reserved", "runner", "server", "stores.interface", "locations", "inferring",
        "layouts", "plans", "model", "entity_types", "field_types", "schema", "fields", "explorer", "exchange",
        "prometheus", "graph_exports",
    },
    "__main__": {"cli"},
    # Mypy imports it, and it knows adjoin by name.
    "mypy": set(),
    # Public names only: it may name everything but the command line.
    "": {
        "beginning", "errors", "units", "values", "tables", "expressions", "requests",
        "marks", "model", "entity_types", "field_types", "schema", "fields",
        "aggregates", "layouts", "plans", "queries", "collecting", "scans", "searches", "batch", "graph", "async_graph",
        "cost", "meters", "server", "walks", "walk_steps", "snapshots", "drawings", "watching",
    },
}  # fmt: skip

EVERYBODYS = ("dataclass", "late")
"""What every module may import."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """The module's name inside the package: "plans.read"; "" for the package itself."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


NAMES = frozenset(map(name_of, MODULES))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@pytest.fixture(scope="module", params=MODULES, ids=name_of)
def module(request: pytest.FixtureRequest) -> tuple[Path, ast.Module]:
    """One module after another: pytest runs all tests of one together."""
    return request.param, tree_of(request.param)


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every module of adjoin that is imported, inside the package, at once or when it is used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "later":
            found = [str(ast.literal_eval(node.args[0]))]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from adjoin.plans import read` names a module too.
            inside = node.module.removeprefix("adjoin").lstrip(".")
            found = [
                f"{node.module}.{alias.name}" if f"{inside}.{alias.name}".lstrip(".") in NAMES else node.module
                for alias in node.names
            ]
        else:
            continue
        for name in found:
            if name == "adjoin" or name.startswith("adjoin."):
                yield node.lineno, name.removeprefix("adjoin").lstrip(".")


def part_of(module: str) -> str:
    return module.split(".")[0]


def is_allowed(importer: str, imported: str) -> bool:
    if part_of(importer) == part_of(imported) or imported in EVERYBODYS:
        return True
    allowed = MAY_IMPORT[part_of(importer)]
    return imported in allowed or (part_of(imported) in allowed and part_of(imported) != "")


def test_imports_point_down(module: tuple[Path, ast.Module]) -> None:
    path, tree = module
    importer = name_of(path)
    assert part_of(importer) in MAY_IMPORT, f"{importer} belongs to no layer; say in this test where it stands"
    wrong = [
        f"{path.name}:{line} imports adjoin.{name}" for line, name in imports_of(tree) if not is_allowed(importer, name)
    ]
    assert not wrong, "; ".join(wrong)


def test_modules_say_what_they_are_and_hide_no_imports(module: tuple[Path, ast.Module]) -> None:
    path, tree = module
    assert ast.get_docstring(tree), f"{path.name} has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno} imports relatively"
            assert all(alias.name != "*" for alias in node.names), f"{path.name}:{node.lineno} imports *"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden = [line for inner in node.body for line, _ in imports_of(inner)]
            assert not hidden, f"{path.name}:{hidden[0]} imports adjoin inside a function, which hides a cycle"


@cache
def imported_when_run(path: Path) -> frozenset[str]:
    """What a module imports; not for type checkers only."""
    body: list[ast.stmt] = []
    for node in tree_of(path).body:
        # For type checkers, the package itself imports its public names; others get them when they use them.
        body += node.orelse if name_of(path) and is_for_checkers(node) else [node]
    return frozenset(name for _, name in imports_of(ast.Module(body, [])))


def edges_between(of: Callable[[str], str]) -> dict[str, set[str]]:
    """What imports what, by what `of` says of a module; imports for type checkers only do not count."""
    edges: dict[str, set[str]] = {}
    for path in MODULES:
        edges.setdefault(of(name_of(path)), set()).update(map(of, imported_when_run(path)))
    return edges


def is_for_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def late_imports(tree: ast.AST) -> dict[str, str]:
    """The modules that are imported when they are used, by the names that stand for them."""
    return {
        node.targets[0].id: ast.literal_eval(node.value.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "later"
    }


def test_type_checkers_know_what_is_imported_late(module: tuple[Path, ast.Module]) -> None:
    """A late import has a name, and for type checkers the same name is that of the same module."""
    _, tree = module
    late, known = late_imports(tree), dict[str, str]()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "later"]
    assert len(calls) == len(late)
    for node in filter(is_for_checkers, tree.body):
        for each in node.body:
            if isinstance(each, ast.ImportFrom):
                known |= {alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names}
            elif isinstance(each, ast.Import):
                known |= {alias.asname or alias.name: alias.name for alias in each.names}
    # botocore has no types.
    assert {name: module for name, module in late.items() if not module.startswith("botocore")}.items() <= known.items()


def cycle_in(edges: dict[str, set[str]]) -> tuple[str, ...]:
    """A way that ends where it began; nothing if there is none."""
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> tuple[str, ...]:
        if module in way:
            return (*way[way.index(module) :], module)
        if module not in done:
            for other in sorted(edges.get(module, set()) - {module}):
                if cycle := visit(other, (*way, module)):
                    return cycle
            done.add(module)
        return ()

    return next((cycle for module in edges if (cycle := visit(module, ()))), ())


def test_nothing_imports_in_a_cycle() -> None:
    """Also inside one part, where the layers say nothing."""
    assert not cycle_in(edges_between(str))


FOLDERS = {name_of(path.parent / "__init__.py") for path in MODULES} - {""}


def folder_of(module: str) -> str:
    """The folder that a module is in, also one within another; "" for modules of the package itself."""
    return module if module in FOLDERS else module.rpartition(".")[0]


def test_no_folder_imports_one_that_imports_it() -> None:
    """Whoever reads a folder need not know those that use it, though all stand in one part of the package."""
    edges = edges_between(folder_of)
    # The modules of the package itself are many parts, and the layers say which of them is below a folder.
    edges.pop("")
    edges = {folder: imported - {""} for folder, imported in edges.items()}
    assert not {(a, b) for a in edges for b in edges[a] if a < b and a in edges[b]}
    assert not cycle_in(edges)


def test_the_check_finds_what_it_is_for() -> None:
    assert not is_allowed("plans.read", "stores.sqlite")
    assert not is_allowed("stores.sqlite.store", "plans")
    assert not is_allowed("stores.updates", "model")
    assert not is_allowed("server.grammar", "plans")
    assert not is_allowed("stores.sqlite.store", "server.grammar")
    assert not is_allowed("runner", "stores.sqlite")
    assert not is_allowed("graph", "stores.sqlite")
    assert not is_allowed("values", "requests")
    assert not is_allowed("layouts.keys", "plans")
    assert not is_allowed("graph", "")
    assert not is_allowed("late", "errors")
    assert is_allowed("graph", "locations")
    assert is_allowed("cli.show", "requests")
    found = list(imports_of(ast.parse("from adjoin.plans import read\nimport adjoin.stores.sqlite\nimport ast\n")))
    assert found == [(1, "plans.read"), (2, "stores.sqlite")]
    late = ast.parse(
        'read = later("adjoin.plans.read")\nzlib = later("zlib")\ndef f():\n    later("adjoin.graph").x()\n'
    )
    assert list(imports_of(late)) == [(1, "plans.read"), (4, "graph")]
    assert late_imports(late) == {"read": "adjoin.plans.read", "zlib": "zlib"}
    assert cycle_in({"a": {"b"}, "b": {"a", "b", "c"}, "c": set()}) == ("a", "b", "a")
    assert cycle_in({"a": {"b", "c"}, "b": {"c"}, "c": {"c"}}) == ()
    assert folder_of("server.operations.items") == folder_of("server.operations") == "server.operations"
    assert folder_of("server.service") == "server"
    assert folder_of("values") == ""
