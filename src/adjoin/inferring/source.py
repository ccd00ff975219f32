"""A program as Python source, in the form that `ruff format` leaves as it is.

A call is one line if it fits, and one line for each argument with a comma after the last one otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from adjoin.inferring.patterns import Pattern
from adjoin.inferring.program import FieldSpec, ModelSpec, Program, quoted
from adjoin.tables import IndexDefinition, Projection

WIDTH = 88
"""The length of a line that formatters use by default."""

_ADJOIN = (
    *("AdjacencyList", "Child", "Copy", "Count", "Edge", "Graph", "Index", "Indexed", "Keys", "MaterializedGraph"),
    *("Max", "Min", "Node", "Projection", "Stored", "Sum", "Unique", "field"),
)


def source_of(program: Program, patterns: Sequence[Pattern], told: Sequence[str]) -> str:
    """The text of the file; `told` is what its docstring says, one paragraph each."""
    names = [each.name for each in program.classes]
    models = f"MODELS = ({names[0]},)" if len(names) == 1 else call("MODELS = ", names)
    body = [_class(each) for each in program.classes]
    tail = f"{models}\n\n{_layout(program)}"
    opened = "def open_graph(location: str) -> Graph:\n    return Graph(location, MODELS, LAYOUT)"
    functions = [each.text for each in patterns]
    code = "\n\n\n".join([*body, tail, opened, *functions])
    return f"{_docstring(told)}\n\n{_imports(code)}\n\n\n{code}\n"


def _docstring(told: Sequence[str]) -> str:
    first, *rest = told
    lines = [line for text in rest for line in ["", *wrapped(text, WIDTH)]]
    safe = [_safe(line) for line in [first, *lines]]
    return '"""' + "\n".join(safe) + ('\n"""' if rest else '"""')


def _safe(text: str) -> str:
    """A text that cannot end a docstring, or stand for something else in it."""
    shown = "".join(each if each.isprintable() else "?" for each in text)
    return shown.replace("\\", "\\\\").replace('"""', "'''")


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A text in lines of at most a width, as far as its words allow."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{word}")
    return lines


def _imports(code: str) -> str:
    """The import lines for the names that the code uses, in the order that formatters want."""

    def uses(name: str) -> bool:
        return re.search(rf"(?<![\w.\"'{{]){name}\b(?!\s*:)", code) is not None

    standard = ["import datetime as dt"] if re.search(r"\bdt\.", code) else []
    standard += ["from decimal import Decimal"] if uses("Decimal") else []
    typing = [name for name in ("Annotated", "Any", "Literal") if uses(name)]
    standard += [f"from typing import {', '.join(typing)}"] if typing else []
    standard += ["from uuid import UUID"] if uses("UUID") else []
    pydantic = ["from pydantic import Field"] if re.search(r"\bField\(", code) else []
    names = [name for name in _ADJOIN if (re.search(r"\bfield\(", code) if name == "field" else uses(name))]
    own = call("from adjoin import ", names, "", "")
    if "\n" in own or len(own) > WIDTH:
        own = "from adjoin import (\n" + "".join(f"    {name},\n" for name in names) + ")"
    third = [*pydantic, own]
    third.sort(key=lambda line: line.split()[1])
    blocks = ["\n".join(standard), "\n".join(third)] if standard else ["\n".join(third)]
    return "\n\n".join(blocks)


def call(head: str, arguments: Sequence[str], opening: str = "(", closing: str = ")", indent: int = 0) -> str:
    """A call, or a list, in one line or with an argument in each line."""
    line = f"{head}{opening}{', '.join(arguments)}{closing}"
    # Inside of another call, a comma follows.
    if not arguments or ("\n" not in line and indent + len(line) + (indent > 0) <= WIDTH):
        return line
    pad = " " * (indent + 4)
    inner = "".join(f"{pad}{each},\n" for each in arguments)
    return f"{head}{opening}\n{inner}{' ' * indent}{closing}"


# --- classes -----------------------------------------------------------------------------------


def _class(spec: ModelSpec) -> str:
    head = call(f"class {spec.name}", [spec.base, *spec.keywords]) + ":"
    note = [f"{spec.count:,} {'item' if spec.count == 1 else 'items'}.", *(f"Unsure: {each}." for each in spec.notes)]
    lines = [head, *_comment_docstring(note)]
    for each in (*spec.key, *spec.fields):
        lines += _field(each)
    return "\n".join(lines).rstrip()


def _comment_docstring(notes: Sequence[str]) -> list[str]:
    if len(notes) == 1 and len(notes[0]) <= WIDTH - 10:
        return [f'    """{_safe(notes[0])}"""', ""]
    lines = [line for each in notes for line in wrapped(each, WIDTH - 4)]
    first, *rest = [_safe(line) for line in lines]
    return [f'    """{first}', "", *(f"    {line}" for line in rest), '    """', ""]


def _field(spec: FieldSpec) -> list[str]:
    default = spec.default if spec.default is not None else "None" if spec.is_optional else None
    end = "" if default is None else f" = {default}"
    line = f"    {spec.name}: {spec.annotation}{end}"
    if len(line) > WIDTH and spec.annotation.startswith("Annotated["):
        parts = _arguments(spec.annotation.removeprefix("Annotated[").removesuffix("]"))
        line = call(f"    {spec.name}: Annotated", [each.strip() for each in parts], "[", "]", indent=4)
        if "\n" not in line:
            pad = " " * 8
            line = f"    {spec.name}: Annotated[\n" + "".join(f"{pad}{each.strip()},\n" for each in parts) + "    ]"
        line += end
    return [*([f"    # {spec.comment}"] if spec.comment else []), line]


def _arguments(text: str) -> list[str]:
    """The arguments in a text, separated at commas outside of brackets and quotes."""
    found, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += (character in "([" and not quote) - (character in ")]" and not quote)
        if character == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += character
    return found


# --- the layout --------------------------------------------------------------------------------


def _layout(program: Program) -> str:
    definition = program.definition
    arguments = [f"table={quoted(definition.name)}"]
    if program.layout == "graph":
        return call("LAYOUT = MaterializedGraph", [*arguments, *_graph_arguments(program)])
    if definition.partition.name != "PK":
        arguments.append(f"partition_key={quoted(definition.partition.name)}")
    sort = definition.sort
    if sort is None or sort.name != "SK":
        arguments.append(f"sort_key={None if sort is None else quoted(sort.name)}")
    typed = {key.name: key.type for key in definition.keys if key.type != "S"}
    if typed:
        arguments.append(f"types={_map(typed)}")
    if program.type_attribute is not None:
        arguments.append(f"type_attribute={quoted(program.type_attribute)}")
    if program.layout == "keys":
        arguments.append("reverse=None")
        if program.indexes:
            listed = [_index(each, 8) for each in program.indexes]
            arguments.append(call("indexes=", listed, "[", "]", indent=4))
        own = [f"{each.name}: {_keys(each, program)}" for each in program.classes if each.has_keys]
        arguments.append("keys={\n" + "".join(f"        {each},\n" for each in own) + "    }")
    elif program.shards is not None:
        arguments.append(f"shards={program.shards}")
    return call("LAYOUT = AdjacencyList", arguments)


def _graph_arguments(program: Program) -> list[str]:
    definition = program.definition
    named = {index.name: index for index in definition.indexes}
    sort = definition.sort
    found = {"node": definition.partition.name, "type_target": sort.name if sort else "TypeTarget"}
    if "GSI1" in named:
        found |= {"shard": named["GSI1"].partition.name, "data": (named["GSI1"].sort or definition.partition).name}
    if "GSI2" in named:
        found |= {
            "target": named["GSI2"].partition.name,
            "type_source": (named["GSI2"].sort or definition.partition).name,
        }
    defaults = {
        "node": "NodeId",
        "type_target": "TypeTarget",
        "shard": "GSIPK",
        "data": "Data",
        "target": "Target",
        "type_source": "TypeSource",
    }
    arguments = [f"{name}={quoted(value)}" for name, value in found.items() if defaults[name] != value]
    if program.shards is not None:
        arguments.append(f"shards={program.shards}")
    if program.type_attribute is not None:
        arguments.append(f"type_attribute={quoted(program.type_attribute)}")
    return arguments


def _index(index: IndexDefinition, indent: int) -> str:
    def key(names: Sequence[str]) -> str:
        return quoted(names[0]) if len(names) == 1 else f"({', '.join(map(quoted, names))})"

    arguments = [quoted(index.name), key([each.name for each in index.partitions])]
    if index.sorts:
        arguments.append(key([each.name for each in index.sorts]))
    if index.projection != Projection():
        names = index.projection.attributes
        given = [f"({quoted(names[0])},)"] if len(names) == 1 else []
        if len(names) > 1:
            given = [call("", [quoted(name) for name in names], "(", ")", indent=indent + 8)]
        kind = [quoted(index.projection.kind)]
        arguments.append(call("projection=Projection", [*kind, *given], indent=indent + 4))
    if index.local:
        arguments.append("local=True")
    return call("Index", arguments, indent=indent)


def _keys(spec: ModelSpec, program: Program) -> str:
    arguments = []
    if spec.partition is not None:
        arguments.append(f"partition={quoted(spec.partition)}")
    if spec.sort is not None:
        arguments.append(f"sort={quoted(spec.sort)}")
    if spec.indexes:
        listed = [_templates(name, given) for name, given in spec.indexes.items()]
        arguments.append(call("indexes=", listed, "{", "}", indent=12))
    if spec.attributes:
        arguments.append(call("attributes=", _pairs(spec.attributes), "{", "}", indent=12))
    if spec.type is not None and program.type_attribute is not None:
        arguments.append(f"type={quoted(spec.type)}")
    pad = " " * 12
    return "Keys(\n" + "".join(f"{pad}{each},\n" for each in arguments) + "        )"


def _templates(name: str, given: str | tuple[str | None, str]) -> str:
    if isinstance(given, str):
        return f"{quoted(name)}: {quoted(given)}"
    texts = ["None" if each is None else quoted(each) for each in given]
    return call(f"{quoted(name)}: ", texts, "(", ")", indent=16)


def _pairs(values: Mapping[str, str]) -> list[str]:
    return [f"{quoted(name)}: {quoted(value)}" for name, value in values.items()]


def _map(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(_pairs(values)) + "}"
