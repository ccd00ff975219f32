"""Mutants of a module: its source with one small thing changed inside a function, as code that can take its place.

Nothing here runs a test. Changed are comparisons, `and` and `or`, `not`, conditions, numbers, True and False, sums,
`min` and `max`, slices, what is returned, and whether a statement is there at all. Left alone are assertions, messages
and the arguments of what is raised, and what runs once when a module is imported, which cannot be put into a program
that has started.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

Change: TypeAlias = tuple[str, ast.AST]
"""How a change reads, and what comes in place of the node."""
Place: TypeAlias = tuple[ast.AST, str, int | None]
"""Where a node hangs: its parent, the field there, and which one of a list."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NO_EXPRESSIONS_OF = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, how it reads, and the code that it makes of the module."""

    path: Path
    line: int
    lines: range
    """The lines of the statement, or of the head of one that holds others."""
    change: str
    make: Callable[[], CodeType]

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {self.change}"


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    source = path.read_text()
    tree = ast.parse(source, filename=str(path))
    found: list[Mutant] = []
    for node, place, statement, bound in _nodes_of_functions(tree):
        for change, other in _changes(node, bound):
            ast.copy_location(other, node)
            ast.fix_missing_locations(other)
            lines = _lines(statement)
            line = getattr(node, "lineno", lines.start)
            found.append(Mutant(path, line, lines, change, _maker(tree, place, other, path)))
    return sorted(found, key=lambda mutant: mutant.line)


def changed_code(mutant: Mutant) -> dict[CodeType, CodeType]:
    """Which code objects of the module another one takes the place of, by value."""
    path = mutant.path
    plain = _code_by_name(compile(path.read_text(), str(path), "exec", dont_inherit=True))
    changed = _code_by_name(mutant.make())
    return {
        old: new
        for name, olds in plain.items()
        for old, new in zip(olds, changed.get(name, ()), strict=False)
        if old != new
    }


def _maker(tree: ast.Module, place: Place, other: ast.AST, path: Path) -> Callable[[], CodeType]:
    def make() -> CodeType:
        node = _swap(place, other)
        try:
            return compile(tree, str(path), "exec", dont_inherit=True)
        finally:
            _swap(place, node)

    return make


def _swap(place: Place, other: ast.AST) -> ast.AST:
    parent, field, number = place
    held: Any = getattr(parent, field)
    if number is None:
        setattr(parent, field, other)
        return held  # type: ignore[no-any-return]
    held[number], other = other, held[number]
    return other


def _code_by_name(module: CodeType) -> dict[tuple[str, int], list[CodeType]]:
    """Every code object of a module that belongs to a function; several on one line in their order."""
    found: dict[tuple[str, int], list[CodeType]] = defaultdict(list)
    left = [module]
    while left:
        code = left.pop()
        inner = [each for each in code.co_consts if isinstance(each, CodeType)]
        for each in inner:
            found[each.co_qualname, each.co_firstlineno].append(each)
        left += inner
    return found


# --- where something can be changed ------------------------------------------------------------


def _nodes_of_functions(tree: ast.Module) -> Iterator[tuple[ast.AST, Place, ast.stmt, Counter[str]]]:
    """Each node that belongs to the body of a function: where it hangs, its statement, and the names bound there."""

    def walk(node: ast.AST, statement: ast.stmt | None, bound: Counter[str] | None) -> Any:
        for field, value in ast.iter_fields(node):
            if field in _NO_EXPRESSIONS_OF or isinstance(node, ast.Raise):
                continue
            # What stands before a function, its defaults, is worked out where it is defined.
            inside = _bound_names(node) if isinstance(node, _FUNCTION) and field == "body" else bound
            if isinstance(node, ast.ClassDef):
                inside = None
            for number, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if not isinstance(child, ast.AST) or _is_left_alone(child):
                    continue
                within = child if isinstance(child, ast.stmt) else statement
                if inside is not None and within is not None:
                    yield child, (node, field, number), within, inside
                yield from walk(child, within, inside)

    yield from walk(tree, None, None)


def _is_left_alone(node: ast.AST) -> bool:
    """Whether something is for a type checker or for people, or asserts what holds anyway, as `strict` does in zips."""
    return isinstance(node, ast.Assert | ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict")


def _bound_names(function: ast.AST) -> Counter[str]:
    """How often each name is bound in a function; a parameter once more."""
    names = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return Counter(names + [node.arg for node in ast.walk(function) if isinstance(node, ast.arg)])


def _lines(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


# --- what can be changed -----------------------------------------------------------------------


def _changes(node: ast.AST, bound: Counter[str]) -> Iterator[Change]:
    for kind, change in _BY_KIND:
        if isinstance(node, kind):
            yield from change(node)
    if isinstance(node, ast.stmt) and _can_go(node, bound):
        yield f"without {_short(node)}", _never(node)


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for number, operator in enumerate(node.ops):
        operators = list(node.ops)
        operators[number] = _COMPARISONS[type(operator)]()
        yield _reads(node, ast.Compare(node.left, operators, node.comparators))


def _junction(node: ast.BoolOp) -> Iterator[Change]:
    yield _reads(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))


def _negation(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Not):
        yield _reads(node, node.operand)


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield _reads(node, ast.Constant(not node.value))
    elif isinstance(node.value, int):
        yield _reads(node, ast.Constant(node.value + 1))


def _operation(node: ast.BinOp) -> Iterator[Change]:
    # What joins text or lists has no difference; a mutant that cannot run shows nothing.
    if type(node.op) in _OPERATORS and not any(_is_text_or_list(each) for each in (node.left, node.right)):
        yield _reads(node, ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right))


def _call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        yield _reads(node, ast.Call(ast.Name(_FUNCTIONS[node.func.id], ast.Load()), node.args, node.keywords))


def _slice(node: ast.Slice) -> Iterator[Change]:
    if node.lower is not None:
        yield _reads(node, ast.Slice(None, node.upper, node.step))
    if node.upper is not None:
        yield _reads(node, ast.Slice(node.lower, None, node.step))


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
    """The other branch. A comparison, a junction and a negation have a change of their own."""
    if isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        return
    other = ast.UnaryOp(ast.Not(), node.test)
    changed = type(node)(other, node.body, node.orelse)  # type: ignore[arg-type]
    if isinstance(node, ast.IfExp):
        yield _reads(node, changed)
    else:
        word = "if" if isinstance(node, ast.If) else "while"
        yield f"{word} {_short(node.test)} -> {word} not {_short(node.test)}", changed


def _filter(node: ast.comprehension) -> Iterator[Change]:
    for test in node.ifs:
        rest = [each for each in node.ifs if each is not test]
        yield (
            f"for {_short(node.target)} without if {_short(test)}",
            ast.comprehension(node.target, node.iter, rest, node.is_async),
        )


def _return(node: ast.Return) -> Iterator[Change]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        # The value stays in the source, so that a generator is still one and the same names are closed over.
        yield (
            f"{_short(node)} -> return None",
            ast.Return(ast.IfExp(ast.Constant(True), ast.Constant(None), node.value)),
        )


_BY_KIND: tuple[tuple[Any, Callable[[Any], Iterator[Change]]], ...] = (
    (ast.Compare, _comparison),
    (ast.BoolOp, _junction),
    (ast.UnaryOp, _negation),
    (ast.Constant, _constant),
    (ast.BinOp, _operation),
    (ast.Call, _call),
    (ast.Slice, _slice),
    (ast.If | ast.While | ast.IfExp, _condition),
    (ast.comprehension, _filter),
    (ast.Return, _return),
)


def _can_go(node: ast.stmt, bound: Counter[str]) -> bool:
    """Whether a program without this statement still runs: no name is missing in it."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name) and bound[target.id] < 2 for target in node.targets) and not any(
            isinstance(target, ast.Tuple) for target in node.targets
        )
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _never(node: ast.stmt) -> ast.stmt:
    return ast.If(ast.Constant(False), [node], [])


def _is_text_or_list(node: ast.AST) -> bool:
    plain = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return plain or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


def _reads(node: ast.AST, other: ast.AST) -> Change:
    return f"{_short(node)} -> {_short(other)}", other


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:87] + "..."
