"""Expression trees as DynamoDB's text, with the names and values it refers to.

Every name and every value becomes a placeholder: no attribute name can be a reserved word or break
out of its place, and equal ones share a placeholder. One `Expressions` serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    Action,
    Add,
    And,
    Arithmetic,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Discard,
    Exists,
    HasType,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from adjoin.requests import Query, SortCondition
from adjoin.values import AttributeValue


class Expressions:
    """Collects the placeholders of one request while its expressions are written."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[AttributeValue] = []

    def complete(self, payload: dict[str, Any]) -> None:
        """Add the names and values that were used."""
        if self._names:
            payload["ExpressionAttributeNames"] = {place: name for name, place in self._names.items()}
        if self._values:
            payload["ExpressionAttributeValues"] = {f":{place}": value for place, value in enumerate(self._values)}

    def name(self, name: str) -> str:
        place = self._names.get(name)
        if place is None:
            place = self._names[name] = f"#{len(self._names)}"
        return place

    def value(self, value: AttributeValue) -> str:
        try:
            place = self._values.index(value)
        except ValueError:
            place = len(self._values)
            self._values.append(value)
        return f":{place}"

    def path(self, path: Path) -> str:
        first, *rest = path.steps
        text = self.name(str(first))
        for step in rest:
            text += f"[{step}]" if isinstance(step, int) else f".{self.name(step)}"
        return text

    def projection(self, paths: Sequence[Path]) -> str:
        return ", ".join(map(self.path, paths))

    def key_condition(self, query: Query) -> str:
        name, value = query.partition
        text = f"{self.name(name)} = {self.value(value)}"
        return text if query.sort is None else f"{text} AND {self._sort_condition(query.sort)}"

    def _sort_condition(self, sort: SortCondition) -> str:
        name, values = self.name(sort.attribute), [self.value(operand) for operand in sort.operands]
        if sort.operator == "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if sort.operator == "begins_with":
            return f"begins_with({name}, {values[0]})"
        return f"{name} {sort.operator} {values[0]}"

    # --- conditions ---

    def condition(self, condition: Condition) -> str:
        return self._write(condition)

    def _write(self, part: Any) -> str:
        return _WRITERS[type(part)](self, part)

    def _all(self, parts: Sequence[Any]) -> str:
        return ", ".join(map(self._write, parts))

    def _joined(self, word: str, conditions: Sequence[Condition]) -> str:
        if not conditions:
            raise InvalidRequest(f"{word} of no conditions cannot be asked; leave the condition out")
        if len(conditions) == 1:
            return self._write(conditions[0])
        return f" {word} ".join(f"({self._write(each)})" for each in conditions)

    # --- updates ---

    def update(self, actions: Sequence[Action]) -> str:
        """SET … REMOVE … ADD … DELETE …: each clause once, its actions in order."""
        clauses: dict[str, list[str]] = {}
        for action in actions:
            clauses.setdefault(_CLAUSES[type(action)], []).append(self._action(action))
        return " ".join(f"{clause} {', '.join(clauses[clause])}" for clause in _CLAUSES.values() if clause in clauses)

    def _action(self, action: Action) -> str:
        path = self.path(action.path)
        match action:
            case Set():
                return f"{path} = {self._write(action.value)}"
            case Remove():
                return path
            case Add() | Discard():
                return f"{path} {self.value(action.value)}"


_CLAUSES: dict[type, str] = {Set: "SET", Remove: "REMOVE", Add: "ADD", Discard: "DELETE"}

_WRITERS: dict[type, Callable[[Expressions, Any], str]] = {
    Path: Expressions.path,
    Value: lambda at, part: at.value(part.attribute),
    Size: lambda at, part: f"size({at.path(part.path)})",
    Compare: lambda at, part: f"{at._write(part.left)} {part.operator} {at._write(part.right)}",
    Between: lambda at, part: f"{at._write(part.operand)} BETWEEN {at._write(part.low)} AND {at._write(part.high)}",
    In: lambda at, part: f"{at._write(part.operand)} IN ({at._all(part.options)})",
    Exists: lambda at, part: f"attribute_exists({at.path(part.path)})",
    HasType: lambda at, part: f"attribute_type({at.path(part.path)}, {at.value({'S': part.type})})",
    BeginsWith: lambda at, part: f"begins_with({at._all((part.operand, part.prefix))})",
    Contains: lambda at, part: f"contains({at._all((part.operand, part.element))})",
    And: lambda at, part: at._joined("AND", part.conditions),
    Or: lambda at, part: at._joined("OR", part.conditions),
    Not: lambda at, part: f"NOT ({at._write(part.condition)})",
    IfNotExists: lambda at, part: f"if_not_exists({at._all((part.path, part.default))})",
    ListAppend: lambda at, part: f"list_append({at._all((part.first, part.second))})",
    Arithmetic: lambda at, part: f"{at._write(part.left)} {part.operator} {at._write(part.right)}",
}
