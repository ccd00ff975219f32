"""Condition and filter expressions: text to the exact tree, or to the service's exact words."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    HasType,
    In,
    Not,
    Or,
    Path,
    Size,
    Value,
    attribute,
)
from adjoin.server.grammar import Bindings, read_condition
from adjoin.server.grammar.rules import RESERVED
from adjoin.values import AttributeValue
from tests.stores.examples import b, n, s

NAMES = {"#a": "a", "#s": "status", "#dot": "a.b", "#0": "zero", "#_": "under"}
VALUES: dict[str, AttributeValue] = {
    ":s": s("x"),
    ":n": n(1),
    ":m": n(5),
    ":raw": b(b"a"),
    ":yes": {"BOOL": True},
    ":nil": {"NULL": True},
    ":l": {"L": []},
    ":o": {"M": {}},
    ":ss": {"SS": ["a", "b"]},
    ":ns": {"NS": ["1"]},
    ":bs": {"BS": ["YQ=="]},
    ":SS": s("SS"),
    ":low": n("9.9E125"),
    ":0": n(0),
}


def read(text: str) -> Condition:
    return read_condition(text, Bindings(NAMES, VALUES), "FilterExpression")


def v(name: str) -> Value:
    return Value(VALUES[name])


A, B, C, D = map(attribute, "abcd")
ONE = Compare("=", A, v(":n"))
TWO = Compare("=", B, v(":n"))
THREE = Compare("=", C, v(":n"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = :n", ONE),
        ("a=:n", ONE),
        ("\ta\r\n=  :n ", ONE),
        ("a <> b", Compare("<>", A, B)),
        ("a < b", Compare("<", A, B)),
        ("a <= :n", Compare("<=", A, v(":n"))),
        ("a>b", Compare(">", A, B)),
        (":n >= a", Compare(">=", v(":n"), A)),
        (":n = :n", Compare("=", v(":n"), v(":n"))),
        ("a BETWEEN :n AND :m", Between(A, v(":n"), v(":m"))),
        ("a between b and c", Between(A, B, C)),
        ("(a)between(b)and(:m)", Between(A, B, v(":m"))),
        (":n BETWEEN b AND b", Between(v(":n"), B, B)),
        ("a IN (:n)", In(A, (v(":n"),))),
        ("a in(:n,:m , b)", In(A, (v(":n"), v(":m"), B))),
        ("attribute_exists(a)", Exists(A)),
        ("attribute_exists ( a )", Exists(A)),
        ("attribute_not_exists(a)", Not(Exists(A))),
        ("attribute_type(a, :SS)", HasType(A, "SS")),
        ("begins_with(a, :s)", BeginsWith(A, v(":s"))),
        ("begins_with(:raw, a)", BeginsWith(v(":raw"), A)),
        ("contains(a, :yes)", Contains(A, v(":yes"))),
        ("contains(a, size(b))", Contains(A, Size(B))),
        ("size(a) > :n", Compare(">", Size(A), v(":n"))),
        ("size(a) = size(a)", Compare("=", Size(A), Size(A))),
        ("size(:s) = :n", Compare("=", Value(n(1)), v(":n"))),
        ("size(:ss) = :n", Compare("=", Value(n(2)), v(":n"))),
        ("( ( ( size ( #a )) < b.c ) AND ( d > :n ) )",
         And((Compare("<", Size(A), Path(("b", "c"))), Compare(">", D, v(":n"))))),
    ],
)  # fmt: skip
def test_one_condition(text: str, tree: Condition) -> None:
    assert read(text) == tree


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("a[0]", ("a", 0)),
        ("a[0][12].b.c[3]", ("a", 0, 12, "b", "c", 3)),
        ("a . b [ 1 ]", ("a", "b", 1)),
        ("(a.b).c", ("a", "b", "c")),
        ("(a)[2]", ("a", 2)),
        ("#a", ("a",)),
        ("#s.#a[1]", ("status", "a", 1)),
        ("#dot", ("a.b",)),
        ("#0.#_", ("zero", "under")),
        ("A_1x", ("A_1x",)),
        ("l[2147483647]", ("l", 2147483647)),
        (".".join(["m"] * 32), ("m",) * 32),
    ],
)
def test_paths(text: str, steps: tuple[str | int, ...]) -> None:
    assert read(f"attribute_exists({text})") == Exists(Path(steps))
    assert read(f"{text} = :n") == Compare("=", Path(steps), v(":n"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = :n AND b = :n", And((ONE, TWO))),
        ("a = :n and b = :n And c = :n", And((ONE, TWO, THREE))),
        ("a = :n OR b = :n or c = :n", Or((ONE, TWO, THREE))),
        ("a = :n OR b = :n AND c = :n", Or((ONE, And((TWO, THREE))))),
        ("a = :n AND b = :n OR c = :n", Or((And((ONE, TWO)), THREE))),
        ("(a = :n OR b = :n) AND c = :n", And((Or((ONE, TWO)), THREE))),
        ("a = :n AND (b = :n AND c = :n)", And((ONE, And((TWO, THREE))))),
        ("(a = :n AND b = :n) AND c = :n", And((And((ONE, TWO)), THREE))),
        ("NOT a = :n AND b = :n", And((Not(ONE), TWO))),
        ("NOT (a = :n AND b = :n)", Not(And((ONE, TWO)))),
        ("not NOT a = :n", Not(Not(ONE))),
        ("NOT a = :n OR NOT b = :n", Or((Not(ONE), Not(TWO)))),
        ("NOT a BETWEEN :n AND :m AND b = :n", And((Not(Between(A, v(":n"), v(":m"))), TWO))),
        ("(a = :n)", ONE),
        ("(a) = (:n)", ONE),
        ("((a) = :n)", ONE),
        ("(attribute_exists(a))", Exists(A)),
        ("(attribute_exists(a)) AND (b = :n)", And((Exists(A), TWO))),
        ("((a = :n) AND (b = :n))", And((ONE, TWO))),
        ("(size(a)) = :n", Compare("=", Size(A), v(":n"))),
        ("NOT(attribute_exists((a)))", Not(Exists(A))),
    ],
)
def test_precedence_and_parentheses(text: str, tree: Condition) -> None:
    assert read(text) == tree


SYNTAX = [
    ("1abc = :n", "1", "1abc"),
    ("  1abc = :n", "1", "  1abc"),
    ("a-b = :n", "-", "a-b"),
    ("_a = :n", "_", "_a"),
    ("a._b = :n", "_", "._b"),
    ("aé = :n", "é", "aé ="),
    ("a == :n", "=", "== :n"),
    ("a != :n", "!", "a !="),
    ("a => :n", ">", "=> :n"),
    ("a\f= :n", "\f", "a\f="),
    ("a\u00a0= :n", "\u00a0", "a\u00a0="),
    ("a = :n AND", "<EOF>", "AND"),
    ("a = :n AND  ", "<EOF>", "AND  "),
    ("a = :n)", ")", ":n)"),
    ("a = :n )  ", ")", ":n )  "),
    ("(a = :n", "<EOF>", ":n"),
    ("a IN ()", ")", "()"),
    ("a IN :n", ":n", "IN :n"),
    ("a IN (:n,)", ")", ",)"),
    ("a in b, c", "b", "in b,"),
    ("a", "<EOF>", "a"),
    ("(a)", "<EOF>", ")"),
    ("NOT (#a)", "<EOF>", ")"),
    ("(NOT a)", ")", "a)"),
    ("(a = :n OR b)", ")", "b)"),
    ("(a AND b = :n)", "AND", "a AND b"),
    ("a = :n = :m", "=", ":n = :m"),
    ("a :n", ":n", "a :n"),
    ("a attribute_exists :n", "attribute_exists", "a attribute_exists :n"),
    ("a NOT :n", "NOT", "a NOT :n"),
    ("a < NOT size(b)", "NOT", "< NOT size"),
    ("attribute_exists()", ")", "()"),
    ("attribute_exists(", "<EOF>", "("),
    ("attribute_exists(NOT a)", "NOT", "(NOT a"),
    ("attribute_exists(a.)", ")", ".)"),
    ("attribute_exists(.a)", ".", "(.a"),
    ("attribute_exists(a..b)", ".", "..b"),
    ("contains(a, :n", "<EOF>", ":n"),
    ("l[01] = :n", "1", "01]"),
    ("l[] = :n", "]", "[] ="),
    ("l[a] = :n", "a", "[a]"),
    ("l[-1] = :n", "-", "[-1"),
    ("l[1 = :n", "=", "1 = :n"),
    ("a.:n = :n", ":n", ".:n ="),
    ("a > :n.b", ".", ":n.b"),
    ("size(a).b > :n", ".", ").b"),
    ("(size(a)).b > :n", ".", ").b"),
    ("(a)between(b.(c.d))and(c)", "(", ".(c"),
    ("a = # ", "#", "= # "),
    ("hits : incr", ":", "hits : incr"),
    ("a > 4", "4", "> 4"),
    ("a > between", "between", "> between"),
    ("SET = :n", "SET", "SET ="),
    ("a = 'x'", "'", "= 'x"),
    ("=", "=", "="),
    ("   ", "<EOF>", "   "),
    ("tenantAgent:abc123-4", ":abc123", "tenantAgent:abc123-"),
    ("foo(a) = :n foo(b)", "foo", ":n foo("),
]


@pytest.mark.parametrize(("text", "token", "near"), SYNTAX)
def test_syntax_errors_quote_the_token_and_its_neighbours(text: str, token: str, near: str) -> None:
    assert fault(text) == f'Invalid FilterExpression: Syntax error; token: "{token}", near: "{near}"'


REDUNDANT = [
    "((a = :n))",
    "a = :n AND (b = :n OR ((c = :n)))",
    "((a = :n)) =",
    "((a)) = :n",
    "a > ((status))",
    "(a)between(((b.c)).d)and(c)",
    "a > whatever((:u), ((a)))",
    "((attribute_exists(a)))",
    "a=a OR ((a=a OR (a=a OR a=a)))",
    "( ( a = :n AND b = :n ) )",
]


@pytest.mark.parametrize("text", REDUNDANT)
def test_parentheses_twice_around_one_thing(text: str) -> None:
    assert fault(text) == "Invalid FilterExpression: The expression has redundant parentheses;"


def named(fault: str) -> str:
    return f"An expression attribute name used in the document path is not defined; attribute name: {fault}"


def valued(fault: str) -> str:
    return f"An expression attribute value used in expression is not defined; attribute value: {fault}"


def counted(function: str, count: int) -> str:
    return (
        "Incorrect number of operands for operator or function;"
        f" operator or function: {function}, number of operands: {count}"
    )


def typed(name: str, tag: str) -> str:
    return f"Incorrect operand type for operator or function; operator or function: {name}, operand type: {tag}"


def alike(name: str, path: str) -> str:
    return (
        "The first operand must be distinct from the remaining operands for this operator or function;"
        f" operator: {name}, first operand: {path}"
    )


def misused(function: str) -> str:
    return f"The function is not allowed to be used this way in an expression; function: {function}"


def reserved(word: str) -> str:
    return f"Attribute name is a reserved keyword; reserved keyword: {word}"


ANY_TYPE = "{S,SS,N,NS,B,BS,BOOL,NULL,L,M,HD,DOUBLE,FLOAT,HDS,FS,DOUBLESET,DICT,DECIMAL,INT,DECIMALSET,INTSET}"

FAULTS = [
    # Reserved words, in any case, anywhere in a path.
    ("status = :n", reserved("status")),
    ("Status = :n", reserved("Status")),
    ("size = :n", reserved("size")),
    ("a.status = :n", reserved("status")),
    ("a[0].name = :n", reserved("name")),
    ("begins_with(data, :s)", reserved("data")),
    # Functions.
    ("foo(a)", "Invalid function name; function: foo"),
    ("Attribute_Exists(a)", "Invalid function name; function: Attribute_Exists"),
    ("SIZE(a) = :n", "Invalid function name; function: SIZE"),
    ("a = if_not_exists(a, :n)",
     "The function is not allowed in a condition expression; function: if_not_exists"),
    ("list_append(a, :n) = :n", "The function is not allowed in a condition expression; function: list_append"),
    ("size(a)", misused("size")),
    ("NOT size(a)", misused("size")),
    ("a = :u AND size(b)", misused("size")),
    ("attribute_exists(a) = :n", misused("attribute_exists")),
    ("a = begins_with(b, :s)", misused("begins_with")),
    ("a BETWEEN b AND attribute_exists(c)", misused("attribute_exists")),
    ("a IN (b, contains(c, d))", misused("contains")),
    ("size(contains(a, b)) > a", misused("contains")),
    ("contains(a)", counted("contains", 1)),
    ("attribute_exists(a, b)", counted("attribute_exists", 2)),
    ("begins_with(a, size(b), c)", counted("begins_with", 3)),
    ("size(a, b) > c", counted("size", 2)),
    ("attribute_exists(:n)",
     "Operator or function requires a document path; operator or function: attribute_exists"),
    ("attribute_not_exists(size(a))",
     "Operator or function requires a document path; operator or function: attribute_not_exists"),
    ("attribute_type(:s, :SS)",
     "Operator or function requires a document path; operator or function: attribute_type"),
    ("attribute_type(a, b)", typed("attribute_type", ANY_TYPE)),
    ("attribute_type(a, size(b))", typed("attribute_type", "N")),
    ("attribute_type(a, :n)", typed("attribute_type", "N")),
    ("attribute_type(a, :s)",
     "Invalid attribute type name found; type: x, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"),
    # Types of operands.
    *[(f"begins_with(a, {name})", typed("begins_with", tag)) for name, tag in [
        (":n", "N"), (":yes", "BOOL"), (":nil", "NULL"), (":l", "L"), (":o", "M"), (":ss", "SS"), (":bs", "BS")]],
    ("begins_with(:n, a)", typed("begins_with", "N")),
    ("begins_with(size(a), :s)", typed("begins_with", "N")),
    *[(f"a {name} :yes", typed(name, "BOOL")) for name in ("<", "<=", ">", ">=")],
    (":ss < a", typed("<", "SS")),
    ("a BETWEEN :l AND :m", typed("BETWEEN", "L")),
    (":o BETWEEN a AND b", typed("BETWEEN", "M")),
    ("size(:n) = :n", typed("size", "N")),
    ("size(:yes) = :n", typed("size", "BOOL")),
    ("size(size(a)) = :n", typed("size", "N")),
    ("a BETWEEN :m AND :n",
     "The BETWEEN operator requires upper bound to be greater than or equal to lower bound;"
     " lower bound operand: AttributeValue: {N:5}, upper bound operand: AttributeValue: {N:1}"),
    ("a BETWEEN :low AND :m",
     "The BETWEEN operator requires upper bound to be greater than or equal to lower bound;"
     " lower bound operand: AttributeValue: {N:9.9E125}, upper bound operand: AttributeValue: {N:5}"),
    ("a BETWEEN :s AND :n",
     "The BETWEEN operator requires same data type for lower and upper bounds;"
     " lower bound operand: AttributeValue: {S:x}, upper bound operand: AttributeValue: {N:1}"),
    # Operands that must differ.
    ("a = a", alike("=", "[a]")),
    ("#a <> a", alike("<>", "[a]")),
    ("contains(b.c[1].a, b.c[1].#a)", alike("contains", "[b, c, [1], a]")),
    ("attribute_type(a, a)", alike("attribute_type", "[a]")),
    ("begins_with(a, a)", alike("begins_with", "[a]")),
    ("a IN (b, a)", alike("IN", "[a]")),
    ("a BETWEEN a AND :n", alike("BETWEEN", "[a]")),
    ("((a=a) OR (a=a))", alike("=", "[a]")),
    # Placeholders.
    ("#u = :n", named("#u")),
    ("a.#u[0] = :n", named("#u")),
    ("a = :u", valued(":u")),
    # Too much.
    ("l[2147483648] = :n", "List index is not within the allowable range; index: [2147483648]"),
    (".".join(["m"] * 33) + " = :n", "The document path has too many nesting levels; nesting levels: 33"),
    (f"a IN ({','.join([':n'] * 101)})",
     "The IN operator is provided with too many operands; number of operands: 101"),
    ("not " * 300 + "a = :n", "The expression contains too many operators; operator count: 301"),
    (" OR ".join(["a = :n"] * 151), "The expression contains too many operators; operator count: 301"),
    ("a<b " + "or (a<b " * 454 + ")" * 454, "The expression contains too many operators; operator count: 301"),
    ("a = :n" + " " * 4096, "Expression size has exceeded the maximum allowed size; expression size: 4102"),
    ("é" * 2049, "Expression size has exceeded the maximum allowed size; expression size: 4098"),
    ("", "The expression can not be empty;"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_what_the_service_refuses(text: str, message: str) -> None:
    assert fault(text) == f"Invalid FilterExpression: {message}"


ORDER = [
    # The text first, then the expression alone, then what placeholders stand for; each from left to right.
    ("status = :n =", 'Syntax error; token: "=", near: ":n ="'),
    ("((status = :u))", "The expression has redundant parentheses;"),
    ("status = :n AND foo(a) = :n", reserved("status")),
    ("foo(a) = :n AND status = :n", "Invalid function name; function: foo"),
    ("#u = :n AND foo(a)", "Invalid function name; function: foo"),
    ("attRIbute_exIsts((status), #u)", "Invalid function name; function: attRIbute_exIsts"),
    ("a=a and attribute_exists((status), (#u)) > b", misused("attribute_exists")),
    ("attribute_exists(status, #u)", reserved("status")),
    (".".join(["m"] * 33) + " = :n AND status = :n", reserved("status")),
    ("not " * 301 + "status = :n", reserved("status")),
    ("not " * 301 + "#u = :n", "The expression contains too many operators; operator count: 301"),
    ("attribute_exists(#u.c, :u) and a=a", named("#u")),
    ("begins_with(a.#u)", named("#u")),
    ("begins_with(:u, #u, b)", valued(":u")),
    ("(#u between :u and :v) and (#w in (:u, :v))", named("#u")),
    ("a = :u AND contains(b, b)", valued(":u")),
    ("contains(b, b) AND a = :u", alike("contains", "[b]")),
    ("a = a AND :u > a", alike("=", "[a]")),
    ("contains(a, a, a)", counted("contains", 3)),
    ("attribute_not_exists(size(:n))", typed("size", "N")),
    ("attribute_type(a, size(a)) and a=a", typed("attribute_type", "N")),
    ("a < a", alike("<", "[a]")),
    ("a BETWEEN a AND :l", alike("BETWEEN", "[a]")),
    (f"a IN ({','.join(['a'] * 101)})",
     "The IN operator is provided with too many operands; number of operands: 101"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ORDER)
def test_of_two_faults_the_service_reports_this_one(text: str, message: str) -> None:
    assert fault(text) == f"Invalid FilterExpression: {message}"


def fault(text: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(text)
    return str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(["a = :n"] * 150),
        "a<b " + "or (a<b " * 149 + ")" * 149,
        "not " * 299 + "a = :n",
        f"a IN ({','.join([':n'] * 100)})",
        "a = :n" + " " * 4090,
    ],
)
def test_the_most_that_is_allowed(text: str) -> None:
    read(text)


def test_the_reserved_words_of_the_developer_guide() -> None:
    """Keywords of the language among them are refused as syntax."""
    assert len(RESERVED) == 573
    keywords = {"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "ADD", "DELETE"}
    assert keywords < RESERVED
    for word in RESERVED - keywords:
        assert fault(f"{word.title()} = :n") == f"Invalid FilterExpression: {reserved(word.title())}"
    for word in keywords:
        assert "Syntax error" in fault(f"{word} = :n")


def test_a_message_names_the_parameter_the_text_came_in() -> None:
    with pytest.raises(InvalidRequest, match=r"^Invalid ConditionExpression: The expression can not be empty;$"):
        read_condition("", Bindings())
    with pytest.raises(InvalidRequest, match=r"^Invalid ConditionExpression: Syntax error;"):
        read_condition("a", Bindings())
