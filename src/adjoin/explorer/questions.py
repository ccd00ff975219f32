"""The Query view: any access pattern from a form, its result, its requests, and the same as Python code.

A form becomes a query object of the graph and the code that makes it, side by side, so that what is copied is what was
run. Values come as texts; the class of a field converts them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidValue, shown
from adjoin.exchange.texts import bytes_from, id_from
from adjoin.explorer.handles import Handles, plain, unplain
from adjoin.explorer.neighbourhoods import BUDGET, size_of
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import Requested, explained
from adjoin.field_types import plain_type
from adjoin.fields import Predicate, field
from adjoin.inferring.program import quoted
from adjoin.model import Edge, Node, Ref
from adjoin.plans.walk_results import WalkPath

PAGE = 20
VERBS = ("get", "out", "into", "collection", "children", "find", "walk")
_OPERATORS: dict[str, str] = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_METHODS = ("begins_with", "contains", "between", "exists")
_IMPORTS = {
    "datetime.": "import datetime",
    "Decimal(": "from decimal import Decimal",
    "UUID(": "from uuid import UUID",
}
_DIRECTIONS = ("out", "into", "both")


class _Question:
    """A query, and the code that makes it."""

    def __init__(self, query: Any, code: str) -> None:
        self.query = query
        self.code = code

    def then(self, method: str, *arguments: Any, code: str = "") -> _Question:
        """The query after a further method."""
        written = code or ", ".join(map(_literal, arguments))
        return _Question(getattr(self.query, method)(*arguments), f"{self.code}.{method}({written})")


class Questions:
    """What the Query view asks."""

    def __init__(self, explored: Explored, handles: Handles) -> None:
        self._explored = explored
        self._graph = explored.graph
        self._layout = explored.layout
        self._handles = handles
        self._verbs: dict[str, Callable[[Mapping[str, Any]], _Question]] = {
            "out": self._edges,
            "into": self._edges,
            "collection": self._collection,
            "children": self._children,
            "find": self._find,
            "walk": self._walk,
        }

    def query(self, form: dict[str, Any], after: str | None = None, run: bool = True) -> dict[str, Any]:
        """The result of a form with its requests; without `run`, what its requests would be."""
        if not isinstance(form, Mapping) or form.get("verb") not in VERBS:
            raise InvalidValue(f"the verb must be one of {', '.join(VERBS)}, got {shown(form)}")
        if form["verb"] == "get":
            return self._get(form, run)
        asked = self._verbs[form["verb"]](form)
        limit = size_of(form.get("limit"), PAGE)
        code = _code(f"{asked.code}.page(limit={limit}{f', after={_literal(after)}' if after else ''})")
        if not run:
            told = explained(self._graph.explain(asked.query.page, limit, after), self._layout.definition)
            return {"code": code, "results": None, "next": None, **told}
        with Requested() as requests:
            page = asked.query.page(limit, after)
        return {
            "code": code,
            "results": [self._result(each) for each in page.items],
            "next": page.next,
            "requests": requests.one_by_one(),
            "notes": [],
            **requests.told(),
        }

    def _get(self, form: Mapping[str, Any], run: bool) -> dict[str, Any]:
        ref = self._ref(form)
        code = _code(f"g.get({ref.model.__name__}, {_literal(ref.id)})")
        if not run:
            told = explained(self._graph.explain(self._graph.get, ref.model, ref.id), self._layout.definition)
            return {"code": code, "results": None, "next": None, **told}
        with Requested() as requests:
            node = self._graph.get(ref.model, ref.id)
        return {
            "code": code,
            "results": [] if node is None else [self._handles.node(node)],
            "next": None,
            "requests": requests.one_by_one(),
            "notes": [],
            **requests.told(),
        }

    def _result(self, found: Any) -> dict[str, Any]:
        if isinstance(found, Node | Edge):
            return self._handles.entity(found)
        if isinstance(found, WalkPath):
            nodes = [self._handles.node(node) for node in found.nodes]
            edges = [
                self._handles.parent(each) if isinstance(each, Node) else self._handles.edge(each)
                for each in found.edges
            ]
            return {**nodes[-1], "path": nodes, "edges": edges}
        # An item that no class explains.
        return {"class": "", "handle": None, "fields": plain(found)}

    # --- the parts of a form -------------------------------------------------------------------

    def _ref(self, form: Mapping[str, Any]) -> Ref[Any]:
        """The node that a form names, by class and the texts of its id."""
        kind = self._handles.node_kind(form.get("class"))
        parts = form.get("id")
        if not isinstance(parts, list) or not parts or not all(isinstance(each, str) and each for each in parts):
            raise InvalidValue(f"the id of a {kind.name} is missing; type {' and '.join(kind.part_fields)}")
        return Ref(kind.model, id_from(kind, parts))

    def _edges(self, form: Mapping[str, Any]) -> _Question:
        ref, kind = self._ref(form), self._handles.edge_kind(form.get("edge"))
        verb = form["verb"]
        end = kind.source if verb == "out" else kind.target
        node = self._layout.schema.node(ref.model)
        if not end.covers(node):
            raise InvalidValue(f"no {kind.name} {'leaves' if verb == 'out' else 'arrives at'} a {node.name}")
        asked = _Question(getattr(self._graph, verb)(ref, kind.model), f"g.{verb}({_spelled(ref)}, {kind.name})")
        return self._narrowed(asked, kind, form)

    def _children(self, form: Mapping[str, Any]) -> _Question:
        ref, kind = self._ref(form), self._handles.node_kind(form.get("child"))
        asked = _Question(self._graph.children(ref, kind.model), f"g.children({_spelled(ref)}, {kind.name})")
        return self._narrowed(asked, kind, form)

    def _collection(self, form: Mapping[str, Any]) -> _Question:
        ref = self._ref(form)
        direction = form.get("direction") or "out"
        named = "" if direction == "out" else f", direction={_literal(direction)}"
        query = self._graph.collection(ref, direction=direction)
        return _Question(query, f"g.collection({_spelled(ref)}{named})")

    def _find(self, form: Mapping[str, Any]) -> _Question:
        kind = self._handles.kind(form.get("class"))
        predicate, code = self._predicate(kind, form)
        options = {name: form[name] for name in ("order", "index") if form.get(name)}
        written = [
            kind.name,
            *([code] if code else []),
            *(f"{name}={_literal(value)}" for name, value in options.items()),
        ]
        asked = _Question(self._graph.find(kind.model, predicate, **options), f"g.find({', '.join(written)})")
        return asked.then("reverse") if form.get("reverse") else asked

    def _walk(self, form: Mapping[str, Any]) -> _Question:
        ref = self._ref(form)
        steps = form.get("steps")
        if not isinstance(steps, list) or not steps:
            raise InvalidValue("a walk needs at least one step; add one")
        code = f"g.walk({_spelled(ref)}, Budget(requests={BUDGET.requests}, seconds={BUDGET.seconds:g}))"
        asked = _Question(self._graph.walk(ref, BUDGET), code)
        for step in steps:
            direction = step.get("direction") if isinstance(step, Mapping) else None
            if direction not in _DIRECTIONS:
                raise InvalidValue(f"a step goes {', '.join(_DIRECTIONS)}, got {shown(step)}")
            kind = self._handles.kind(step.get("class"))
            asked = asked.then(direction, kind.model, code=kind.name)
        return asked.then("distinct") if form.get("distinct") else asked.then("paths")

    def _narrowed(self, asked: _Question, kind: EntityType, form: Mapping[str, Any]) -> _Question:
        predicate, code = self._predicate(kind, form)
        if predicate is not None:
            asked = asked.then("where", predicate, code=code)
        return asked.then("reverse") if form.get("reverse") else asked

    def _predicate(self, kind: EntityType, form: Mapping[str, Any]) -> tuple[Predicate | None, str]:
        rows = form.get("where") or []
        if not isinstance(rows, list):
            raise InvalidValue(f"where takes a list of comparisons, got {shown(rows)}")
        found: Predicate | None = None
        codes = []
        for row in rows:
            one, code = self._comparison(kind, row)
            found = one if found is None else found & one
            codes.append(code)
        return found, codes[0] if len(codes) == 1 else " & ".join(f"({code})" for code in codes)

    def _comparison(self, kind: EntityType, row: Any) -> tuple[Predicate, str]:
        name, operator = (row.get("field"), row.get("operator")) if isinstance(row, Mapping) else (None, None)
        if not isinstance(name, str) or (operator not in _OPERATORS and operator not in _METHODS):
            raise InvalidValue(f"{shown(row)} is not a comparison; choose a field, an operator and a value")
        texts = row.get("values") or []
        number = {"between": 2, "exists": 0}.get(operator, 1)
        if not isinstance(texts, list) or len(texts) < number:
            raise InvalidValue(f"{operator} of {kind.name}.{name} needs {number} values; type them")
        is_part = operator in ("begins_with", "contains")
        values = [_given(text) if is_part else self._value(kind, name, text) for text in texts[:number]]
        reference = field(name)
        code = f"field({quoted(name)})"
        if operator in _METHODS:
            return getattr(reference, operator)(*values), f"{code}.{operator}({', '.join(map(_literal, values))})"
        compare = {
            "=": reference.__eq__,
            "<>": reference.__ne__,
            "<": reference.__lt__,
            "<=": reference.__le__,
            ">": reference.__gt__,
            ">=": reference.__ge__,
        }[operator]
        return compare(values[0]), f"{code} {_OPERATORS[operator]} {_literal(values[0])}"

    def _value(self, kind: EntityType, name: str, text: Any) -> Any:
        """The value of a field that a text stands for."""
        if name in kind.fields and plain_type(kind.fields[name]) is bytes:
            return bytes_from(kind, name, text)
        if isinstance(kind, NodeType) and name in kind.key:
            return kind.validated(name, text)
        if isinstance(kind, EdgeType) and name in ("source", "target"):
            end = kind.source if name == "source" else kind.target
            return end.id(text)
        if name not in kind.fields:
            # The graph says which field is closest.
            return text
        given = _given(text)
        return kind.coerced(name, given if isinstance(given, tuple) else text)


def _code(line: str) -> str:
    """A line with the imports that it needs besides your classes."""
    names = ", ".join(name for name in ("Budget", "field") if f"{name}(" in line)
    needed = [text for part, text in _IMPORTS.items() if part in line]
    needed += [f"from adjoin import {names}"] if names else []
    return "\n".join([*needed, "", line] if needed else [line])


def _literal(value: Any) -> str:
    return quoted(value) if type(value) is str else repr(value)


def _given(text: Any) -> Any:
    """A text, or the list that it spells in JSON."""
    if isinstance(text, str) and text.lstrip().startswith("["):
        try:
            return unplain(json.loads(text))
        except json.JSONDecodeError:
            return text
    return text


def _spelled(ref: Ref[Any]) -> str:
    return f"{ref.model.__name__}.ref({_literal(ref.id)})"
