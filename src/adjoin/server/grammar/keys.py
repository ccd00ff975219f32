"""The conditions of a Query on keys, from a KeyConditionExpression or from the legacy KeyConditions.

`KeyConditions` knows the tests but not the table, because DynamoDB reports most faults before it looks for the
table. `on` then applies them to the keys of a table or an index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidRequest
from adjoin.key_conditions import ONE_PER_KEY, check_condition_count, check_key_conditions
from adjoin.requests import SortCondition, SortOperator
from adjoin.server.grammar.attributes import Bindings
from adjoin.server.grammar.parser import (
    DocumentPath,
    Literal,
    ParsedCall,
    ParsedComparison,
    ParsedConjunction,
    ParsedDisjunction,
    ParsedLogic,
    ParsedMembership,
    ParsedNegation,
    ParsedRange,
    ParsedTerm,
)
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import AttributeValue

_PURPOSE = "KeyConditionExpression"
_INVALID = "One or more parameter values were invalid: "

# The operators of KeyConditions that a sort key can have, with our names for them.
_SORT: dict[str, SortOperator] = {
    "EQ": "=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "BETWEEN": "between",
    "BEGINS_WITH": "begins_with",
}
_OPERATORS = {"=": "EQ", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
_TURNED = {"EQ": "EQ", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


@dataclass(frozen=True, slots=True)
class KeyTest:
    """The condition on one attribute; the operator is one of KeyConditions."""

    operator: str
    operands: tuple[AttributeValue, ...]


KeyRange: TypeAlias = tuple[tuple[str, AttributeValue], SortCondition | None, tuple[tuple[str, AttributeValue], ...]]
"""`partition`, `sort` and `equal` of a query."""


@dataclass(frozen=True, slots=True)
class KeyConditions:
    """The tests, by attribute."""

    tests: Mapping[str, KeyTest]

    def __post_init__(self) -> None:
        if not self.tests:
            raise InvalidRequest("Conditions can be of length 1 or 2 only")

    def on(self, holder: TableDefinition | IndexDefinition) -> KeyRange:
        """Returns the conditions on the keys of a table or of an index."""
        check_condition_count(len(self.tests), len(holder.keys))
        index = holder if isinstance(holder, IndexDefinition) else None
        if index is not None and index.is_multi_attribute:
            return self._on_several(index)
        name = None if index is None else index.name
        test = self._test(holder.partition, name, required=True)
        assert test is not None
        if test.operator != "EQ":
            raise InvalidRequest("Query key condition not supported")
        asked = (holder.partition.name, test.operands[0])
        if holder.sort is None:
            return asked, None, ()
        test = self._test(holder.sort, name, required=len(self.tests) > 1)
        return asked, None if test is None else _sort_condition(holder.sort, test), ()

    def _on_several(self, index: IndexDefinition) -> KeyRange:
        check_key_conditions(index, {name: _SORT.get(test.operator, "") for name, test in self.tests.items()})
        tests = {key: self._test(key, index.name, required=False) for key in index.keys}
        given = {key: test for key, test in tests.items() if test is not None}
        sorts = [key for key in index.sorts if key in given]
        # All attributes but the last one of the sort key have "=", so they narrow as the partition key does.
        last = given.pop(sorts[-1]) if sorts else None
        first, *others = [(key.name, test.operands[0]) for key, test in given.items()]
        return first, None if last is None else _sort_condition(sorts[-1], last), tuple(others)

    def _test(self, key: KeyAttribute, index: str | None, required: bool) -> KeyTest | None:
        test = self.tests.get(key.name)
        if test is None:
            if required:
                raise InvalidRequest(f"Query condition missed key schema element: {key.name}")
            return None
        if test.operator not in _SORT:
            raise InvalidRequest("Attempted conditional constraint is not an indexable operation")
        for operand in test.operands:
            if key.type not in operand:
                raise InvalidRequest(f"{_INVALID}Condition parameter type does not match schema type")
            if is_empty(operand, key):
                raise InvalidRequest(empty_key_fault(key, index))
        return test


def _sort_condition(key: KeyAttribute, test: KeyTest) -> SortCondition:
    return SortCondition(key.name, _SORT[test.operator], test.operands)


def is_empty(attribute: AttributeValue, key: KeyAttribute) -> bool:
    """Whether a value has the type of the key but is empty, which no key may be."""
    return key.type != "N" and attribute[key.type] == ""


def empty_key_fault(key: KeyAttribute, index: str | None = None) -> str:
    """Returns DynamoDB's message for an empty key of the table or of an index."""
    kind = "string" if key.type == "S" else "binary"
    where, place = "", f"Key: {key.name}"
    if index is not None:
        where = "A value specified for a secondary index key is not supported. "
        place = f"IndexName: {index}, IndexKey: {key.name}"
    return (
        f"One or more parameter values are not valid. {where}The AttributeValue for a key attribute"
        f" cannot contain an empty {kind} value. {place}"
    )


# --- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """A key condition with correct syntax and operands; `conditions` checks whether keys can have it."""

    root: ParsedLogic
    bindings: Bindings

    def conditions(self) -> KeyConditions:
        tests: dict[str, KeyTest] = {}
        for node in _tests(self.root):
            name, test = self._test(node)
            if name in tests:
                raise InvalidRequest(ONE_PER_KEY)
            tests[name] = test
        return KeyConditions(tests)

    def _test(self, node: ParsedComparison | ParsedRange | ParsedCall) -> tuple[str, KeyTest]:
        terms: tuple[ParsedTerm, ...]
        match node:
            case ParsedComparison():
                operator, terms = _OPERATORS[node.operator], (node.left, node.right)
            case ParsedRange():
                operator, terms = "BETWEEN", (node.operand, node.low, node.high)
                _require_leading(node.operand, "BETWEEN")
            case ParsedCall():
                operator, terms = "BEGINS_WITH", node.arguments
                _require_leading(terms[0], node.function)
        name, values = self._sides(terms)
        # The value may stand first, as in ":v < price", which is "price > :v".
        if not isinstance(terms[0], DocumentPath):
            operator = _TURNED[operator]
        return name, KeyTest(operator, values)

    def _sides(self, terms: tuple[ParsedTerm, ...]) -> tuple[str, tuple[AttributeValue, ...]]:
        name: str | int | None = None
        values = []
        for term in terms:
            match term:
                case Literal():
                    values.append(self.bindings.value(term, _PURPOSE).attribute)
                case ParsedCall():
                    raise InvalidRequest("KeyConditionExpressions cannot contain nested operations")
                case DocumentPath():
                    if name is not None:
                        raise _condition("Multiple attribute names used in one condition")
                    name, *nested = self.bindings.steps(term, _PURPOSE)
                    if nested:
                        raise InvalidRequest("KeyConditionExpressions cannot have conditions on nested attributes")
        if name is None:
            raise _condition("No key attribute specified")
        return str(name), tuple(values)


def _tests(root: ParsedLogic) -> Iterator[ParsedComparison | ParsedRange | ParsedCall]:
    """Yields the parts that are joined with AND, from left to right."""
    pending: list[ParsedLogic] = [root]
    while pending:
        node = pending.pop()
        match node:
            case ParsedConjunction():
                pending.extend(reversed(node.parts))
            case ParsedDisjunction():
                raise _operator("OR")
            case ParsedNegation():
                raise _operator("NOT")
            case ParsedMembership():
                raise _operator("IN")
            case ParsedComparison(operator="<>"):
                raise _operator("<>")
            case ParsedCall() if node.function != "begins_with":
                raise _operator(node.function)
            case _:
                yield node


def _require_leading(term: ParsedTerm, operator: str) -> None:
    if not isinstance(term, DocumentPath):
        raise _condition(f"{operator} operator must have the key attribute as its first operand")


def _operator(name: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid operator used in KeyConditionExpression: {name}")


def _condition(fault: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid condition in KeyConditionExpression: {fault}")
