"""`make demo`: draws four tables, and shows each access pattern with its result and cost.

Everything runs on a file in a temporary directory, which is removed at the end.
"""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from adjoin import Graph, Meter
from adjoin.cli.command import chosen_table, existing_file
from adjoin.cli.drawing import counted
from adjoin.cli.show import drawn_table
from examples import education, invoices, people, shop

INDENT = "    "


class Style:
    """Adds colours on a terminal, and nothing elsewhere."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._enabled else text

    def title(self, text: str) -> str:
        return self(text, "1;36")

    def strong(self, text: str) -> str:
        return self(text, "1")

    def code(self, text: str) -> str:
        return self(text, "33")

    def faint(self, text: str) -> str:
        return self(text, "2")


def source_of(pattern: Callable[..., Any]) -> list[str]:
    """The lines of a pattern's body, without its docstring and its `return`."""
    text = textwrap.dedent(inspect.getsource(pattern))
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return [ast.get_source_segment(text, each, padded=True) or "" for each in function.body[1:]]


def result_lines(result: Any) -> list[str]:
    """A result as lines: one line per element of a list or a pair."""
    if isinstance(result, tuple):
        return [line for element in result for line in result_lines(element)]
    if isinstance(result, list) and result and not isinstance(result[0], str):
        return [repr(element) for element in result]
    return [repr(result)]


def spent(meter: Meter) -> str:
    units = [f"{meter.rcu:g} read units"] if meter.rcu or not meter.wcu else []
    units += [f"{meter.wcu:g} write units"] if meter.wcu else []
    return " · ".join([counted(meter.requests, "request"), counted(meter.rounds, "round"), *units])


def show_pattern(g: Graph, pattern: Callable[[Graph], Any], style: Style) -> None:
    with g.meter() as meter:
        result = pattern(g)
    print(style.strong(f"{inspect.getdoc(pattern)}"))
    for line in source_of(pattern):
        print(INDENT + style.code(line.strip().removeprefix("return ")))
    for line in result_lines(result):
        print(f"{INDENT}→ {line}")
    print(INDENT + style.faint(spent(meter)))
    print()


def show_table(example: ModuleType, path: Path, indexes: Sequence[str], style: Style, width: int) -> None:
    table = example.LAYOUT.table
    print(style.title(f"── {table} " + "─" * (width - len(table) - 4)))
    print()
    g: Graph = example.open_graph(path)
    with g.meter() as meter:
        g.put_many(example.SAMPLE)
    print(style.strong("the sample data"))
    print(INDENT + style.code("g.put_many(SAMPLE)"))
    print(INDENT + style.faint(spent(meter)))
    print()
    with existing_file(str(path)) as store:
        for index in (None, *indexes):
            print(drawn_table(store, chosen_table(store, table), index, 100, width))
            print()
    for pattern in example.PATTERNS:
        show_pattern(g, pattern, style)
    g.close()


def main() -> None:
    style = Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    width = max(min(shutil.get_terminal_size((120, 40)).columns, 180), 80)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.db"
        show_table(education, path, ["GSI1"], style, width)
        show_table(invoices, path, ["GSI_1"], style, width)
        show_table(people, path, ["GSI1"], style, width)
        show_table(shop, path, [], style, width)
    print("The same code is in examples/: education.py, invoices.py, people.py and shop.py.")


if __name__ == "__main__":
    main()
