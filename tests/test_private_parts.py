"""The list in CONTRIBUTING.md of every use of another library's private parts: nothing of the source is missing.

What is looked for: names that begin with an underscore and that adjoin does not define, what pydantic and dataclasses
keep in classes, `exec`, and underscored modules and parameters of others.
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


def test_a_use_is_found() -> None:
    tree = ast.parse("import sys\nloop._ready\nsys._getframe(1)\nself._own\nx.__pydantic_extra__\nf(_types=1)\n")
    assert {*foreign_names(tree, {"_own"})} == {"_ready", "_getframe", "__pydantic_extra__", "_types"}
