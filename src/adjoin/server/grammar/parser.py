"""One parser for conditions, updates and projections. It turns text into a syntax tree.

The text is split into tokens. Keywords are the same in all kinds of expressions, in upper or lower case; a name starts
with a letter. A character that belongs to no token is a token of its own: the parser refuses it where it occurs, as
DynamoDB does.

The tree is the expression as it was written; names and values are inserted later. It is frozen, so that a text that is
sent often is parsed once. Parentheses are not in the tree; they only determine its structure. A step of a path that
begins with `#` is a placeholder, because no name can begin so.

The parser never goes back and is not recursive: open constructs are on a stack of its own, so that four thousand
parentheses do not exhaust Python's stack. It does not check which functions exist, which words are reserved or what a
placeholder stands for.

Everything may be in parentheses once. `(a)` is an operand or the start of a condition, and only what follows decides
which; so a group with a single operand is passed on as an operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast
from typing import Literal as OneOf

from adjoin.dataclass import dataclass
from adjoin.expressions import Comparator, Path

# --- tokens ------------------------------------------------------------------------------------


_KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"})

_TOKENS = re.compile(
    r"(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<name>#[A-Za-z0-9_]+)"
    r"|(?P<value>:[A-Za-z0-9_]+)"
    r"|(?P<index>0|[1-9][0-9]*)"
    r"|(?P<mark><>|<=|>=|[=<>()\[\],.+-])"
    r"|(?P<other>[^ \t\r\n])"
)


class ExpressionFault(Exception):
    """A fault in an expression, with DynamoDB's message; the caller adds which expression it is."""


class ExpressionToken(NamedTuple):
    """`kind` is the keyword or punctuation mark itself, or one of word, name, value, index, other and end."""

    kind: str
    text: str
    start: int
    end: int


def _tokens_of(text: str) -> list[ExpressionToken]:
    found = []
    for match in _TOKENS.finditer(text):
        kind, part = str(match.lastgroup), match.group()
        if kind == "mark":
            kind = part
        # DynamoDB takes keywords in any case, such as "and", but names of functions only as they are.
        elif kind == "word" and (upper := part.upper()) in _KEYWORDS:
            kind = upper
        found.append(ExpressionToken(kind, part, match.start(), match.end()))
    found.append(ExpressionToken("end", "<EOF>", len(text), len(text)))
    return found


def _syntax_fault(text: str, tokens: list[ExpressionToken], at: int) -> ExpressionFault:
    """Returns the fault. DynamoDB quotes the text from the token before the wrong one to the token after it."""
    start = tokens[at - 1].start if at else 0
    end = tokens[min(at + 1, len(tokens) - 1)].end
    return ExpressionFault(f'Syntax error; token: "{tokens[at].text}", near: "{text[start:end]}"')


# --- syntax ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentPath:
    """A document path as written; `path` is its meaning, if no placeholder has to be replaced first."""

    steps: tuple[str | int, ...]
    path: Path | None


def _document_path(steps: tuple[str | int, ...]) -> DocumentPath:
    known = not any(isinstance(step, str) and step[0] == "#" for step in steps)
    return DocumentPath(steps, Path(steps) if known else None)


@dataclass(frozen=True, slots=True)
class Literal:
    """A placeholder for a value of the request."""

    name: str


@dataclass(frozen=True, slots=True)
class ParsedCall:
    function: str
    arguments: tuple[ParsedTerm, ...]


ParsedTerm: TypeAlias = DocumentPath | Literal | ParsedCall


@dataclass(frozen=True, slots=True)
class ParsedComparison:
    operator: Comparator
    left: ParsedTerm
    right: ParsedTerm


@dataclass(frozen=True, slots=True)
class ParsedRange:
    operand: ParsedTerm
    low: ParsedTerm
    high: ParsedTerm


@dataclass(frozen=True, slots=True)
class ParsedMembership:
    operand: ParsedTerm
    options: tuple[ParsedTerm, ...]


@dataclass(frozen=True, slots=True)
class ParsedConjunction:
    parts: tuple[ParsedLogic, ...]


@dataclass(frozen=True, slots=True)
class ParsedDisjunction:
    parts: tuple[ParsedLogic, ...]


@dataclass(frozen=True, slots=True)
class ParsedNegation:
    part: ParsedLogic


ParsedLogic: TypeAlias = (
    ParsedComparison
    | ParsedRange
    | ParsedMembership
    | ParsedCall
    | ParsedConjunction
    | ParsedDisjunction
    | ParsedNegation
)


@dataclass(frozen=True, slots=True)
class ParsedSum:
    operator: OneOf["+", "-"]
    left: ParsedTerm
    right: ParsedTerm


Keyword: TypeAlias = OneOf["SET", "REMOVE", "ADD", "DELETE"]


@dataclass(frozen=True, slots=True)
class ParsedStep:
    """One action of an update; a REMOVE has no value, an ADD or a DELETE has a literal."""

    keyword: Keyword
    target: DocumentPath
    value: ParsedTerm | ParsedSum | None


@dataclass(frozen=True, slots=True)
class ParsedClause:
    keyword: Keyword
    steps: tuple[ParsedStep, ...]


# --- parsing -----------------------------------------------------------------------------------


_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})

Part = TypeVar("Part")


def parse_condition(text: str) -> ParsedLogic:
    parser = _Parser(text, continues=True)
    return cast(ParsedLogic, parser.read(_Group(closes=False)))


def parse_projection(text: str) -> tuple[DocumentPath, ...]:
    parser = _Parser(text)
    places = parser.several(parser.place)
    parser.expect("end")
    return places


def parse_update(text: str) -> tuple[ParsedClause, ...]:
    parser = _Parser(text)
    clauses = [parser.clause()]
    while parser.kind != "end":
        clauses.append(parser.clause())
    return tuple(clauses)


class _Frame(Protocol):
    """An open construct: it takes what was read for it, and returns its result if it is complete.

    The second part of the result says whether it is in parentheses. A complete frame leaves the stack.
    """

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None: ...

    def inner(self) -> _Frame:
        """Returns the frame that an opening parenthesis starts here."""
        ...


class _Parser:
    def __init__(self, text: str, continues: bool = False) -> None:
        self._text = text
        self._tokens: list[ExpressionToken] = _tokens_of(text)
        self._at = 0
        # Whether a path may continue after its closing parenthesis, as in `(a.b).c`.
        self._continues = continues
        self.stack: list[_Frame] = []
        self.kind = self._tokens[0].kind

    # --- tokens ---

    def advance(self) -> ExpressionToken:
        token = self._tokens[self._at]
        self._at += 1
        self.kind = self._tokens[self._at].kind
        return token

    def expect(self, kind: str) -> None:
        if self.kind != kind:
            raise self.fault()
        if kind != "end":
            self.advance()

    def fault(self) -> ExpressionFault:
        return _syntax_fault(self._text, self._tokens, self._at)

    # --- operands ---

    def read(self, root: _Frame) -> Any:
        """Reads everything inside the frame, and returns its result."""
        self.stack.append(root)
        while True:
            node: Any = self._start()
            grouped = False
            # A construct that ends may end those around it as well. A stack of our own, because a client could nest
            # deeper than Python may recurse.
            while (complete := self.stack[-1].take(self, node, grouped)) is not None:
                self.stack.pop()
                node, grouped = complete
                if not self.stack:
                    return node

    def _start(self) -> ParsedTerm:
        """Reads the next path or placeholder, after pushing all constructs that open before it."""
        while True:
            kind, frame = self.kind, self.stack[-1]
            if kind == "word" and self._tokens[self._at + 1].kind == "(":
                self.stack.append(_Arguments(self.advance().text))
                self.advance()
            elif kind in ("word", "name"):
                return self.place()
            elif kind == "value":
                return Literal(self.advance().text)
            elif kind == "(":
                self.advance()
                self.stack.append(frame.inner())
            elif kind == "NOT" and isinstance(frame, _Group):
                self.advance()
                frame.negations += 1
            else:
                raise self.fault()

    def place(self) -> DocumentPath:
        if self.kind not in ("word", "name"):
            raise self.fault()
        return _document_path((self.advance().text, *self._steps()))

    def _steps(self) -> list[str | int]:
        steps: list[str | int] = []
        while self.kind in (".", "["):
            if self.advance().kind == ".":
                if self.kind not in ("word", "name"):
                    raise self.fault()
                steps.append(self.advance().text)
            else:
                if self.kind != "index":
                    raise self.fault()
                steps.append(int(self.advance().text))
                self.expect("]")
        return steps

    def close(self, node: Any, grouped: bool) -> tuple[Any, bool]:
        """Reads the closing parenthesis after this."""
        self.expect(")")
        if grouped:
            raise ExpressionFault("The expression has redundant parentheses;")
        if self._continues and isinstance(node, DocumentPath) and self.kind in (".", "["):
            return _document_path((*node.steps, *self._steps())), False
        return node, True

    # --- lists ---

    def several(self, one: Callable[[], Part]) -> tuple[Part, ...]:
        parts = [one()]
        while self.kind == ",":
            self.advance()
            parts.append(one())
        return tuple(parts)

    def clause(self) -> ParsedClause:
        keyword = self.kind
        if keyword not in _ACTIONS:
            raise self.fault()
        self.advance()
        action = _ACTIONS[keyword]
        return ParsedClause(cast(Keyword, keyword), self.several(lambda: action(self)))

    def set_action(self) -> ParsedStep:
        target = self.place()
        self.expect("=")
        return ParsedStep("SET", target, self.read(_Amount(closes=False)))

    def remove_action(self) -> ParsedStep:
        return ParsedStep("REMOVE", self.place(), None)

    def literal_action(self, keyword: Keyword) -> ParsedStep:
        target = self.place()
        if self.kind != "value":
            raise self.fault()
        return ParsedStep(keyword, target, Literal(self.advance().text))


_ACTIONS: dict[str, Callable[[_Parser], ParsedStep]] = {
    "SET": _Parser.set_action,
    "REMOVE": _Parser.remove_action,
    "ADD": lambda parser: parser.literal_action("ADD"),
    "DELETE": lambda parser: parser.literal_action("DELETE"),
}


# --- what can be open --------------------------------------------------------------------------


class _Holder:
    """An open construct that contains only operands."""

    def inner(self) -> _Frame:
        return _Parenthesis()


class _Parenthesis(_Holder):
    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool]:
        return parser.close(node, grouped)


class _Arguments(_Holder):
    def __init__(self, function: str) -> None:
        self._function = function
        self._terms: list[ParsedTerm] = []

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None:
        self._terms.append(node)
        if parser.kind == ",":
            parser.advance()
            return None
        parser.expect(")")
        return ParsedCall(self._function, tuple(self._terms)), False


class _Right(_Holder):
    """The right operand of a comparison or a sum."""

    def __init__(self, kind: type[ParsedComparison] | type[ParsedSum], operator: Any, left: ParsedTerm) -> None:
        self._kind, self._operator, self._left = kind, operator, left

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool]:
        return self._kind(self._operator, self._left, node), False


class _Bounds(_Holder):
    def __init__(self, operand: ParsedTerm) -> None:
        self._operand = operand
        self._low: ParsedTerm | None = None

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None:
        if self._low is not None:
            return ParsedRange(self._operand, self._low, node), False
        parser.expect("AND")
        self._low = node
        return None


class _Options(_Holder):
    def __init__(self, operand: ParsedTerm) -> None:
        self._operand = operand
        self._options: list[ParsedTerm] = []

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None:
        self._options.append(node)
        if parser.kind == ",":
            parser.advance()
            return None
        parser.expect(")")
        return ParsedMembership(self._operand, tuple(self._options)), False


class _Amount:
    """The value in a SET: an operand or a sum of two, perhaps in parentheses."""

    def __init__(self, closes: bool) -> None:
        self._closes = closes

    def inner(self) -> _Frame:
        return _Amount(closes=True)

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None:
        if parser.kind in ("+", "-") and not isinstance(node, ParsedSum):
            parser.stack.append(_Right(ParsedSum, parser.advance().kind, node))
            return None
        return parser.close(node, grouped) if self._closes else (node, grouped)


class _Group:
    """A condition up to its closing parenthesis, or to the end of the text."""

    def __init__(self, closes: bool) -> None:
        self._closes = closes
        self._either: list[ParsedLogic] = []
        self._both: list[ParsedLogic] = []
        self.negations = 0

    def inner(self) -> _Frame:
        return _Group(closes=True)

    def take(self, parser: _Parser, node: Any, grouped: bool) -> tuple[Any, bool] | None:
        # Only what stands alone in parentheses can have parentheses too many.
        alone = not (self._either or self._both or self.negations)
        if isinstance(node, DocumentPath | Literal | ParsedCall):
            if self._compare(parser, node):
                return None
            if alone and self._closes and parser.kind == ")":
                return parser.close(node, grouped)
            if not isinstance(node, ParsedCall):
                raise parser.fault()
        while self.negations:
            node = ParsedNegation(node)
            self.negations -= 1
        self._both.append(node)
        if parser.kind in ("AND", "OR"):
            if parser.advance().kind == "OR":
                self._either.append(_joined(ParsedConjunction, self._both))
                self._both = []
            return None
        whole = _joined(ParsedDisjunction, [*self._either, _joined(ParsedConjunction, self._both)])
        if self._closes:
            return parser.close(whole, alone and grouped)
        parser.expect("end")
        return whole, False

    def _compare(self, parser: _Parser, left: ParsedTerm) -> bool:
        """Starts a comparison if an operator follows the operand; returns whether it does."""
        if parser.kind in _COMPARATORS:
            parser.stack.append(_Right(ParsedComparison, parser.advance().kind, left))
        elif parser.kind == "BETWEEN":
            parser.advance()
            parser.stack.append(_Bounds(left))
        elif parser.kind == "IN":
            parser.advance()
            parser.expect("(")
            parser.stack.append(_Options(left))
        else:
            return False
        return True


def _joined(kind: type[ParsedConjunction] | type[ParsedDisjunction], parts: list[ParsedLogic]) -> ParsedLogic:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
