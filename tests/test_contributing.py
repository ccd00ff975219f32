"""What CONTRIBUTING.md and docs/architecture.md say about the tree is true: its modules, their tests, and the list of
every use of another library's private parts.

What is looked for as private: names that begin with an underscore and that adjoin does not define, what pydantic and
dataclasses keep in classes, `exec`, and underscored modules and parameters of others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "adjoin"
KEPT_IN_CLASSES = re.compile(r"__(pydantic|dataclass|private)_\w+__")
FRAMES = {"_getframe", "_current_frames", "_exit"}


def trees() -> dict[str, ast.Module]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE).with_suffix("")): ast.parse(path.read_text()) for path in paths}


def own_names(tree: ast.Module) -> Iterator[str]:
    """What a module defines or assigns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node, ast.Attribute) else node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def foreign_names(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """The private names of others that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if is_private(node.attr) and (node.attr not in own or node.attr in FRAMES):
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if KEPT_IN_CLASSES.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.Name) and node.id == "exec":
            yield "exec"
        elif isinstance(node, ast.keyword) and node.arg is not None:
            if is_private(node.arg) and node.arg not in own:
                yield node.arg
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("adjoin", "__future__")):
            yield from (part for part in (node.module or "").split(".") if is_private(part))


def is_private(name: str) -> bool:
    return bool(KEPT_IN_CLASSES.fullmatch(name) or re.fullmatch(r"_[a-zA-Z]\w*", name))


def rows() -> list[tuple[str, set[str]]]:
    """What each row of the page says is used, and in which modules."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("\n## Private parts of other libraries\n")[2].partition("\n## ")[0]
    cells = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [(what, set(re.findall(r"`([^`]+)`", where))) for _, what, where, _ in cells]


def uses() -> dict[str, set[str]]:
    parsed = trees()
    own = {name for tree in parsed.values() for name in own_names(tree)}
    return {module: found for module, tree in parsed.items() if (found := {*foreign_names(tree, own)})}


def test_the_page_has_every_use() -> None:
    listed = rows()
    missing = {
        (module, name)
        for module, names in uses().items()
        for name in names
        if not any(re.search(rf"\b{name}\b", what) and module in where for what, where in listed)
    }
    assert missing == set()


def test_the_page_names_modules_that_exist() -> None:
    assert [module for _, where in rows() for module in where if not (PACKAGE / f"{module}.py").is_file()] == []


# --- the tree ----------------------------------------------------------------------------------


def names_of(tree: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", tree))


def top_level() -> list[str]:
    """The modules and the folders of the package itself."""
    return sorted(
        path.stem for path in PACKAGE.iterdir() if not path.name.startswith("__") and path.suffix in ("", ".py")
    )


def test_the_tree_has_every_module_and_folder() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text().partition("```text\n")[2].partition("```")[0]
    assert [name for name in top_level() if name not in names_of(tree)] == []


def test_the_layers_have_every_module_and_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    layers = text.partition("\n## Modules, and which way imports point\n")[2].partition("\n## ")[0]
    named = {name.partition("/")[0] for name in re.findall(r"`([a-z_/]+)`", layers)}
    assert [name for name in top_level() if name not in named] == []


def test_every_folder_has_tests_where_the_page_says() -> None:
    """In the folder of the same name, or in a row of the table; what the table names exists."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Tests\n")[2].partition("\n### ")[0]
    rows = [line.rpartition(" | ") for line in section.splitlines() if line.startswith("  | ") and "`tests/" in line]
    listed = {name for source, _, _ in rows for name in re.findall(r"`([^`]+)`", source)}
    tests = {name for _, _, found in rows for name in re.findall(r"`([^`]+)`", found)}
    folders = [path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    names = [str(folder.relative_to(PACKAGE)) for folder in folders]
    assert [name for name in names if not (ROOT / "tests" / name).is_dir() and not has_row(name, listed)] == []
    assert [name for name in listed if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file()] == []
    assert [path for path in tests if not (ROOT / path).exists()] == []


def has_row(folder: str, listed: set[str]) -> bool:
    """Whether a folder, or something in it, is in the table; the parts of a folder are tested with it."""
    parent = folder.rpartition("/")[0]
    return folder in listed or bool(parent and (ROOT / "tests" / parent).is_dir())


def test_a_use_is_found() -> None:
    tree = ast.parse("import sys\nloop._ready\nsys._getframe(1)\nself._own\nx.__pydantic_extra__\nf(_types=1)\n")
    assert {*foreign_names(tree, {"_own"})} == {"_ready", "_getframe", "__pydantic_extra__", "_types"}
