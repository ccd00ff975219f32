"""Update expressions: text to the exact actions, or to the service's exact words."""

from __future__ import annotations

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import (
    Action,
    Add,
    Arithmetic,
    Discard,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    Set,
    Value,
    attribute,
)
from adjoin.server.grammar import Bindings, read_update
from adjoin.values import AttributeValue
from tests.server.grammar.test_conditions import alike, counted, misused, named, reserved, typed, valued
from tests.stores.examples import n, s

NAMES = {"#c": "c", "#d": "[3]", "#s": "status"}
VALUES: dict[str, AttributeValue] = {
    ":n": n(1),
    ":s": s("x"),
    ":raw": {"B": "YQ=="},
    ":yes": {"BOOL": True},
    ":nil": {"NULL": True},
    ":l": {"L": [n(1)]},
    ":o": {"M": {}},
    ":ss": {"SS": ["a"]},
    ":ns": {"NS": ["1"]},
    ":bs": {"BS": ["YQ=="]},
}
A, B, C = map(attribute, "abc")


def read(text: str) -> tuple[Action, ...]:
    return read_update(text, Bindings(NAMES, VALUES))


def fault(text: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(text)
    return str(raised.value)


def v(name: str) -> Value:
    return Value(VALUES[name])


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("SET a = :n", (Set(A, v(":n")),)),
        ("set a=b", (Set(A, B),)),
        ("SET a = (:n)", (Set(A, v(":n")),)),
        ("SET a.b[1].#c = :s", (Set(Path(("a", "b", 1, "c")), v(":s")),)),
        ("SET a = b, b = a", (Set(A, B), Set(B, A))),
        ("SET a = a + :n", (Set(A, Arithmetic("+", A, v(":n"))),)),
        ("SET a = :n-b", (Set(A, Arithmetic("-", v(":n"), B)),)),
        ("SET a = (b + :n)", (Set(A, Arithmetic("+", B, v(":n"))),)),
        ("SET a = ((b)+(:n))", (Set(A, Arithmetic("+", B, v(":n"))),)),
        ("SET a = if_not_exists(a, :n)", (Set(A, IfNotExists(A, v(":n"))),)),
        ("SET a = if_not_exists((b), c)", (Set(A, IfNotExists(B, C)),)),
        ("SET a = if_not_exists(a, :n) + :n", (Set(A, Arithmetic("+", IfNotExists(A, v(":n")), v(":n"))),)),
        (
            "SET a = if_not_exists(a, if_not_exists(b, if_not_exists(c, :n)))",
            (Set(A, IfNotExists(A, IfNotExists(B, IfNotExists(C, v(":n"))))),),
        ),
        ("SET a = list_append(a, :l)", (Set(A, ListAppend(A, v(":l"))),)),
        ("SET a = list_append(:l, a)", (Set(A, ListAppend(v(":l"), A)),)),
        (
            "SET a = list_append(if_not_exists(a, :l), :l)",
            (Set(A, ListAppend(IfNotExists(A, v(":l")), v(":l"))),),
        ),
        ("REMOVE a, b.c, c[0]", (Remove(A), Remove(Path(("b", "c"))), Remove(Path(("c", 0))))),
        ("ADD a :n, b :ss", (Add(A, VALUES[":n"]), Add(B, VALUES[":ss"]))),
        ("delete a :ss,b :bs", (Discard(A, VALUES[":ss"]), Discard(B, VALUES[":bs"]))),
        (
            "DELETE a :ss ADD b :n REMOVE c SET d = :n",
            (Discard(A, VALUES[":ss"]), Add(B, VALUES[":n"]), Remove(C), Set(attribute("d"), v(":n"))),
        ),
        ("SET #s = :n REMOVE #d", (Set(attribute("status"), v(":n")), Remove(attribute("[3]")))),
        ("SET a[1] = :n, a[0] = :n REMOVE a[2]",
         (Set(Path(("a", 1)), v(":n")), Set(Path(("a", 0)), v(":n")), Remove(Path(("a", 2))))),
    ],
)  # fmt: skip
def test_actions(text: str, actions: tuple[Action, ...]) -> None:
    assert read(text) == actions


@pytest.mark.parametrize(
    ("text", "token", "near"),
    [
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("whatever", "whatever", "whatever"),
        ("SET", "<EOF>", "SET"),
        ("SET a", "<EOF>", "a"),
        ("SET a b", "b", "a b"),
        ("SET a = :n,", "<EOF>", ","),
        ("SET a = :n, ", "<EOF>", ", "),
        ("SET _123 = :n", "_", "SET _123"),
        ("SET :n = b", ":n", "SET :n ="),
        ("SET a = set", "set", "= set"),
        ("SET a = b + c + d", "+", "c + d"),
        ("SET a = b - :n - :n", "-", ":n - :n"),
        ("SET a = (b + c) + d", "+", ") + d"),
        ("SET a = b + (c + d)", "+", "c + d"),
        ("SET a = :n +", "<EOF>", "+"),
        ("SET a = b * :n", "*", "b * :n"),
        ("SET a = b / :n", "/", "b / :n"),
        ("SET a = (b.c).d + e", ".", ").d"),
        ("SET a = (b.c)[0] + e", "[", ")[0"),
        ("SET (a = (b + c))", "(", "SET (a"),
        ("SET a = 1", "1", "= 1"),
        ('SET a[1] = "eight"', '"', '= "eight'),
        ("SET a = if_not_exists(a, 100)", "100", ", 100)"),
        ("SET if_not_exists(a, b) = a", "(", "if_not_exists(a"),
        ("SET a = :n AND b = :n", "AND", ":n AND b"),
        ("REMOVE a b", "b", "a b"),
        ("REMOVE a = b", "=", "a = b"),
        ("REMOVE :n", ":n", "REMOVE :n"),
        ("ADD a", "<EOF>", "a"),
        ("ADD a 1", "1", "a 1"),
        ("ADD a #c", "#c", "a #c"),
        ("ADD a = b", "=", "a = b"),
        ("ADD hits : incr", ":", "hits : incr"),
        ("ADD abort b", "b", "abort b"),
        ("DELETE a", "<EOF>", "a"),
        ("DELETE a b", "b", "a b"),
        ("DELETE a if_not_exist(b)", "if_not_exist", "a if_not_exist("),
        ("DELETE  :ss, a :ss", ":ss", "DELETE  :ss,"),
        ("SET a = size(b) ADD )) :n", ")", "ADD ))"),
        ("SET #c[0.#d = :n", ".", "0.#d"),
        ("book-price = :n", "book", "book-"),
        ("SET book-price = :n", "-", "book-price"),
    ],
)
def test_syntax_errors(text: str, token: str, near: str) -> None:
    assert fault(text) == f'Invalid UpdateExpression: Syntax error; token: "{token}", near: "{near}"'


def overlap(one: str, two: str, how: str = "overlap") -> str:
    return (
        f"Two document paths {how} with each other; must remove or rewrite one of these paths;"
        f" path one: {one}, path two: {two}"
    )


def clause(keyword: str, kind: str) -> str:
    return (
        f"Incorrect operand type for operator or function; operator: {keyword}, operand type: {kind},"
        f" typeSet: ALLOWED_FOR_{keyword}_OPERAND"
    )


LONG = {":s": "STRING", ":raw": "BINARY", ":yes": "BOOLEAN", ":nil": "NULL", ":l": "LIST", ":o": "MAP"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The expression can not be empty;"),
        ("SET a = ((b))", "The expression has redundant parentheses;"),
        ("SET a = ((b + c))", "The expression has redundant parentheses;"),
        ("SET status = :n", reserved("status")),
        ("REMOVE Absolute", reserved("Absolute")),
        ("SET a = b.name", reserved("name")),
        ("SET a = b SET c = :n", 'The "SET" section can only be used once in an update expression;'),
        ("REMOVE #u SET a = b REMOVE c", 'The "REMOVE" section can only be used once in an update expression;'),
        ("ADD #u :u SET a = b ADD c :n", 'The "ADD" section can only be used once in an update expression;'),
        ("DELETE a :u SET b = c DELETE d :v",
         'The "DELETE" section can only be used once in an update expression;'),
        ("SET a = foo(b)", "Invalid function name; function: foo"),
        ("SET a = size(b)", "The function is not allowed in an update expression; function: size"),
        ("SET a = contains(b, :s)", "The function is not allowed in an update expression; function: contains"),
        ("SET a = list_append(list_append(a, :l), :l)", misused("list_append")),
        ("SET a = list_append(a, :l) + :n", misused("list_append")),
        ("SET a = if_not_exists(a, list_append(b, :l))", misused("list_append")),
        ("SET #u = :n", named("#u")),
        ("SET a = #u", named("#u")),
        ("SET a = :u", valued(":u")),
        ("ADD a :u", valued(":u")),
        ("SET a = if_not_exists(b)", counted("if_not_exists", 1)),
        ("SET a = list_append(b, :l, :l)", counted("list_append", 3)),
        ("SET a = if_not_exists(:n, b)",
         "Operator or function requires a document path; operator or function: if_not_exists"),
        ("SET a = if_not_exists(if_not_exists(a, b), c)",
         "Operator or function requires a document path; operator or function: if_not_exists"),
        ("SET a = if_not_exists(b, b)", alike("if_not_exists", "[b]")),
        *[(f"SET a = list_append(a, {name})", typed("list_append", tag)) for name, tag in [
            (":s", "S"), (":n", "N"), (":raw", "B"), (":yes", "BOOL"), (":nil", "NULL"), (":ss", "SS"), (":o", "M")]],
        ("SET a = :s + :raw", typed("+", "S")),
        ("SET a = a - :l", typed("-", "L")),
        ("SET a = b + :ns", typed("+", "NS")),
        *[(f"ADD a {name}", clause("ADD", kind)) for name, kind in LONG.items()],
        *[(f"DELETE a {name}", clause("DELETE", kind)) for name, kind in {**LONG, ":n": "NUMBER"}.items()],
        ("SET a = :n, a = :s", overlap("[a]", "[a]")),
        ("SET a = :n, a.b = :n", overlap("[a]", "[a, b]")),
        ("SET a.b.#c = c, a = c", overlap("[a, b, c]", "[a]")),
        ("SET #c[3].#d = a, #c[3] = a", overlap("[c, [3], [3]]", "[c, [3]]")),
        ("SET a[0] = :n REMOVE a[0]", overlap("[a, [0]]", "[a, [0]]")),
        ("SET c = :n REMOVE a, #c, #d", overlap("[c]", "[c]")),
        ("REMOVE a.b, a[1]", overlap("[a, b]", "[a, [1]]", "conflict")),
        ("SET #c[3].#d = a, #c.#d[3] = b", overlap("[c, [3], [3]]", "[c, [3], [3]]", "conflict")),
        ("SET d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)", overlap("[c, [1], a]", "[c]")),
        ("REMOVE a, b, a, b", overlap("[b]", "[b]")),
        ("SET l[99999999999] = :n", "List index is not within the allowable range; index: [99999999999]"),
        ("SET " + ".".join(["m"] * 33) + " = :n",
         "The document path has too many nesting levels; nesting levels: 33"),
        ("SET a = :n" + " " * 4090, "Expression size has exceeded the maximum allowed size; expression size: 4100"),
    ],
)  # fmt: skip
def test_what_the_service_refuses(text: str, message: str) -> None:
    assert fault(text) == f"Invalid UpdateExpression: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # The expression alone, by clause; then the paths written; then from the last action to the first.
        ("SET #u = :u SET abort = b", reserved("abort")),
        ("SET #u = foo(:u) SET c = d", "Invalid function name; function: foo"),
        ("SET a = #u SET c = :u", 'The "SET" section can only be used once in an update expression;'),
        ("SET #u = if_not_exists(:u)", named("#u")),
        ("SET a = if_not_exists(:u)", valued(":u")),
        ("SET a = :u, b = #u", named("#u")),
        ("SET a = :u, #u = b", named("#u")),
        ("SET a = #u, a = :u", overlap("[a]", "[a]")),
        ("SET a = :u, b = :s + :n", typed("+", "S")),
        ("SET a = :s + :n, b = :u", valued(":u")),
        ("SET b = list_append(:s, a), c = if_not_exists(a) ADD a.b :s", clause("ADD", "STRING")),
        ("ADD a :s DELETE b :n", clause("DELETE", "NUMBER")),
        ("DELETE b :n ADD a :s", clause("ADD", "STRING")),
        ("SET a = if_not_exists(b, b, c)", counted("if_not_exists", 3)),
    ],
)
def test_of_two_faults_the_service_reports_this_one(text: str, message: str) -> None:
    assert fault(text) == f"Invalid UpdateExpression: {message}"


def test_as_much_nesting_as_a_text_has_room_for() -> None:
    depth = 4096 // len("if_not_exists(b,)") - 2
    (action,) = read("SET a = " + "if_not_exists(b," * depth + ":n" + ")" * depth)
    for _ in range(depth):
        assert isinstance(action, Set | IfNotExists)
        action = action.value if isinstance(action, Set) else action.default  # type: ignore[assignment]
    assert isinstance(action, IfNotExists)
