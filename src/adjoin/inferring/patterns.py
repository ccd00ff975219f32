"""Access patterns: one function for each way in which the keys of a table find things.

A pattern also says which values of an entity it takes, so that it can be tried on what was read. One that does not work
is not written.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adjoin.dataclass import dataclass
from adjoin.inferring.naming import field_name, plural, unused, words_of
from adjoin.inferring.program import ModelSpec, Program, quoted

WIDTH = 88


@dataclass(frozen=True)
class Pattern:
    name: str
    text: str
    """The function."""
    model: str
    """The class of the entities from which its arguments can be taken."""
    takes: tuple[str, ...]
    """The fields of such an entity that are its arguments, in order."""
    what: str = ""
    """What the pattern is, if it cannot be written."""
    is_of_element: bool = False
    """Whether its argument is one element of the field, and not the whole value."""


def patterns_of(program: Program) -> list[Pattern]:
    """All access patterns, in the order of the classes."""
    return [*_Writing(program).all()]


class _Writing:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._taken = {"field", "dt", "open_graph"}

    def all(self) -> Iterator[Pattern]:
        classes = self._program.classes
        for spec in classes:
            if spec.kind == "edge":
                yield from self._edge(spec)
            else:
                yield self._get(spec)
            if spec.kind == "child":
                yield self._children(spec)
            if spec.kind == "node" and spec.partition is not None:
                parts = _parts_in(spec.partition)
                # Nodes that share a partition can be read together, by the part of the id that names the partition.
                if parts and len(parts) < len(spec.key):
                    yield self._find(spec, "", parts)
            yield from self._indexes(spec)
        for spec in classes:
            if any(spec.name in each.ends[:1] for each in classes):
                yield self._everything(spec)

    def _get(self, spec: ModelSpec) -> Pattern:
        parent = ["parent"] if spec.kind == "child" else []
        names = [*parent, *(each.name for each in spec.key)]
        id = names[0] if len(names) == 1 and not parent else _tuple(names)
        hints = [*(self._id_hint(spec.ends[0]) for _ in parent), *(each.hint.text for each in spec.key)]
        found = f"g.get({spec.name}, {id})"
        return self._pattern(
            _snake(spec.name),
            spec,
            names,
            hints,
            f"{spec.name} | None",
            f"return {found}",
            f"the {spec.name} with an id",
        )

    def _children(self, spec: ModelSpec) -> Pattern:
        name = _snake(spec.ends[0])
        return self._pattern(
            f"{plural(_snake(spec.name))}_of_{name}",
            spec,
            ["parent"],
            [self._id_hint(spec.ends[0])],
            f"list[{spec.name}]",
            f"return list(g.children({spec.ends[0]}.ref(parent), {spec.name}))",
            f"all {spec.name} items of a {spec.ends[0]}",
        )

    def _edge(self, spec: ModelSpec) -> Iterator[Pattern]:
        source, target = spec.ends
        for end, side, verb, word in ((source, "source", "out", "of"), (target, "target", "into", "to")):
            is_union = "|" in end
            given = side if is_union else f"{end}.ref({side})"
            hint = "Any" if is_union else self._id_hint(end)
            yield self._pattern(
                f"{plural(_snake(spec.name))}_{word}_{_snake(end)}",
                spec,
                [side],
                [hint],
                f"list[{spec.name}]",
                f"return list(g.{verb}({given}, {spec.name}))",
                f"all {spec.name} edges {'from' if verb == 'out' else 'to'} a {end}",
            )

    def _everything(self, spec: ModelSpec) -> Pattern:
        parent = ["parent"] if spec.kind == "child" else []
        names = [*parent, *(each.name for each in spec.key)]
        id = names[0] if len(names) == 1 and not parent else _tuple(names)
        hints = [*(self._id_hint(spec.ends[0]) for _ in parent), *(each.hint.text for each in spec.key)]
        body = f"found = g.collection({spec.name}.ref({id}))\n    return found.node, found.children, found.edges"
        return self._pattern(
            f"everything_of_{_snake(spec.name)}",
            spec,
            names,
            hints,
            "tuple[Any, list[Any], list[Any]]",
            body,
            f"a {spec.name} with its children and edges",
        )

    def _indexes(self, spec: ModelSpec) -> Iterator[Pattern]:
        held = {each.attribute or each.name: [each.name] for each in spec.fields}
        # An index may also be over the keys of the table, of which every item has both.
        keys = zip(self._program.definition.keys, (spec.partition, spec.sort), strict=False)
        held |= {key.name: _parts_in(text) for key, text in keys if text is not None and key.name not in held}
        for index in self._program.indexes:
            given = spec.indexes.get(index.name)
            template = given if given is None or isinstance(given, str) else given[0]
            if given is None and not {key.name for key in index.keys} <= held.keys():
                continue
            if template is not None:
                parts = _parts_in(template)
            # An index over plain attributes needs values for all of its partition key; its sort key only narrows.
            elif {key.name for key in index.partitions} <= held.keys():
                parts = [part for key in index.partitions for part in held[key.name]]
            else:
                continue
            if not self._is_told(spec, parts):
                yield self._find(spec, index.name, parts)
        for each in (*spec.key, *spec.fields):
            if "Indexed()" in each.marks:
                yield self._find(spec, "", [each.name])
            if "Indexed(elements=True)" in each.marks:
                pattern = self._pattern(
                    f"{plural(_snake(spec.name))}_with_{each.name}",
                    spec,
                    [each.name],
                    [each.hint.text.partition("[")[2].removesuffix("]")],
                    f"list[{spec.name}]",
                    f"return list(g.find({spec.name}, field({quoted(each.name)}).contains({each.name})))",
                    f"{spec.name} items by an element of {each.name}",
                )
                yield replace(pattern, is_of_element=True)
            if "Unique()" in each.marks:
                yield self._pattern(
                    f"{_snake(spec.name)}_by_{each.name}",
                    spec,
                    [each.name],
                    [each.hint.text],
                    f"{spec.name} | None",
                    f"return g.get({spec.name}, {each.name}={each.name})",
                    f"the {spec.name} with a {each.name}",
                )

    def _is_told(self, spec: ModelSpec, parts: Sequence[str]) -> bool:
        """Whether another pattern asks for the same: a node by its id, edges from an end."""
        if spec.kind == "node":
            return [*parts] == [each.name for each in spec.key]
        return bool(parts) and len({part.partition(".")[0] for part in parts}) == 1 and "." in parts[0]

    def _find(self, spec: ModelSpec, index: str, parts: Sequence[str]) -> Pattern:
        names, hints, conditions = [], [], []
        for part in parts:
            path, hint = self._path(spec, part)
            name = path.replace(".", "_")
            names.append(name)
            hints.append(hint)
            conditions.append(
                f"(field({quoted(path)}) == {name})" if len(parts) > 1 else f"field({quoted(path)}) == {name}"
            )
        by = f"by_{'_and_'.join(names)}" if names else f"in_{field_name(index)}"
        condition = [" & ".join(conditions)] if conditions else []
        arguments = [spec.name, *condition, *([f"index={quoted(index)}"] if index else [])]
        line = f"    found = g.find({', '.join(arguments)})"
        if len(line) > WIDTH:
            if condition and len(condition[0]) + 9 > WIDTH:
                arguments[1] = "\n        & ".join(conditions)
            line = "    found = g.find(\n" + "".join(f"        {each},\n" for each in arguments) + "    )"
        where = f"index {index}" if index else "table"
        return self._pattern(
            f"{plural(_snake(spec.name))}_{by}",
            spec,
            names,
            hints,
            f"list[{spec.name}]",
            f"{line.strip()}\n    return list(found)",
            f"{spec.name} items by {', '.join(parts) or 'constant'} in the {where}",
            takes=[self._path(spec, part)[0] for part in parts],
        )

    def _path(self, spec: ModelSpec, part: str) -> tuple[str, str]:
        """The name of a part of a key in a condition, and its type."""
        side, _, rest = part.partition(".")
        if not rest:
            return part, next((each.hint.text for each in (*spec.key, *spec.fields) if each.name == part), "str")
        ends = dict(zip(("parent",) if spec.kind == "child" else ("source", "target"), spec.ends, strict=False))
        end = self._program.named(ends[side])
        if end.kind == "node" and len(end.key) == 1:
            return side, end.key[0].hint.text
        return part, self._path(end, rest)[1]

    def _id_hint(self, name: str) -> str:
        spec = self._program.named(name)
        if spec.kind == "node" and len(spec.key) == 1:
            return spec.key[0].hint.text
        return "tuple[Any, ...]"

    def _pattern(
        self,
        name: str,
        spec: ModelSpec,
        names: Sequence[str],
        hints: Sequence[str],
        answer: str,
        body: str,
        what: str,
        takes: Sequence[str] | None = None,
    ) -> Pattern:
        name = unused(f"{name}_" if keyword.iskeyword(name) else name, self._taken)
        self._taken.add(name)
        given = ["g: Graph", *(f"{each}: {hint}" for each, hint in zip(names, hints, strict=True))]
        head = f"def {name}({', '.join(given)}) -> {answer}:"
        if len(head) > WIDTH:
            inner = f"    {', '.join(given)}"
            head = f"def {name}(\n{inner}\n) -> {answer}:"
            if len(inner) > WIDTH:
                head = f"def {name}(\n" + "".join(f"    {each},\n" for each in given) + f") -> {answer}:"
        text = f'{head}\n    """Returns {what}."""\n    {_broken(body)}'
        return Pattern(name, text, spec.name, tuple(names if takes is None else takes), what)


def _broken(body: str) -> str:
    """A body whose return fits into a line, or is broken after the bracket of `list`."""
    found = re.fullmatch(r"return list\((.*)\)", body)
    if found is None or len(body) + 4 <= WIDTH:
        return body
    return f"return list(\n        {found[1]}\n    )"


def _parts_in(template: str) -> list[str]:
    """The names of the placeholders of a template."""
    return re.findall(r"\{([\w.]+)(?:[^\w.}][^}]*)?\}", template.replace("{{", ""))


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _snake(name: str) -> str:
    return "_".join(word for each in name.split("|") for word in words_of(each))
