"""Key conditions, in either form: to the partition and the condition on the sort key, or to the service's words."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin.errors import InvalidRequest
from adjoin.requests import SortCondition
from adjoin.server.grammar import Bindings, KeyConditions, key_conditions, read_key_condition
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from adjoin.values import AttributeValue
from tests.stores.examples import n, s

NAMES = {"#pk": "pk", "#sk": "sk"}
VALUES: dict[str, AttributeValue] = {
    ":p": s("p"), ":s": s("s"), ":t": s("t"), ":n": n(1), ":e": s(""), ":yes": {"BOOL": True}, ":type": s("N"),
}  # fmt: skip
PARTITION, SORT = KeyAttribute("pk"), KeyAttribute("sk")
TABLE = TableDefinition("T", PARTITION, SORT)
SEVERAL = IndexDefinition.over(
    "Idx", [PARTITION, KeyAttribute("p2", "N")], [SORT, KeyAttribute("s2"), KeyAttribute("s3")]
)


def read(text: str) -> KeyConditions:
    return read_key_condition(text, Bindings(NAMES, VALUES)).conditions()


def sort(operator: Any, *operands: AttributeValue) -> SortCondition:
    return SortCondition("sk", operator, operands)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("pk = :p", None),
        ("(#pk = :p)", None),
        (":p = pk", None),
        ("pk = :p AND sk = :s", sort("=", s("s"))),
        ("pk = :p and sk < :s", sort("<", s("s"))),
        ("(pk = :p) AND (sk <= :s)", sort("<=", s("s"))),
        ("(pk = :p AND (sk > :s))", sort(">", s("s"))),
        ("sk >= :s AND pk = :p", sort(">=", s("s"))),
        ("pk = :p AND :s < sk", sort(">", s("s"))),
        ("pk = :p AND :s >= #sk", sort("<=", s("s"))),
        ("pk = :p AND sk BETWEEN :s AND :t", sort("between", s("s"), s("t"))),
        ("pk = :p AND begins_with(sk, :s)", sort("begins_with", s("s"))),
        ("begins_with((#sk), (:s)) AND pk = :p", sort("begins_with", s("s"))),
    ],
)
def test_expressions(text: str, condition: SortCondition | None) -> None:
    assert read(text).on(TABLE) == (("pk", s("p")), condition, ())


def fault(text: str) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(text)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid KeyConditionExpression: The expression can not be empty;"),
        ("pk", 'Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: "pk"'),
        ("((pk = :p)) AND ((sk = :s))", "Invalid KeyConditionExpression: The expression has redundant parentheses;"),
        (
            "pk = :u",
            "Invalid KeyConditionExpression: An expression attribute value used in expression is not defined;"
            " attribute value: :u",
        ),
        (
            "begins_with(sk, :n)",
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function;"
            " operator or function: begins_with, operand type: N",
        ),
        (
            "sk BETWEEN :t AND :s",
            "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal"
            " to lower bound; lower bound operand: AttributeValue: {S:t}, upper bound operand: AttributeValue: {S:s}",
        ),
        ("pk = :p OR sk = :s", "Invalid operator used in KeyConditionExpression: OR"),
        ("a > b and size(b) > c or a > c", "Invalid operator used in KeyConditionExpression: OR"),
        ("pk = :p AND NOT sk = :s", "Invalid operator used in KeyConditionExpression: NOT"),
        ("pk = :p AND sk <> :s", "Invalid operator used in KeyConditionExpression: <>"),
        ("pk = :p AND sk IN (:s)", "Invalid operator used in KeyConditionExpression: IN"),
        ("attribute_exists(pk)", "Invalid operator used in KeyConditionExpression: attribute_exists"),
        ("attribute_not_exists(pk)", "Invalid operator used in KeyConditionExpression: attribute_not_exists"),
        ("attribute_type(pk, :type)", "Invalid operator used in KeyConditionExpression: attribute_type"),
        ("contains(pk.d, b)", "Invalid operator used in KeyConditionExpression: contains"),
        (
            ":p between size(b) and size(a) and b > :s",
            "Invalid condition in KeyConditionExpression:"
            " BETWEEN operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(:p, b) and a > :s",
            "Invalid condition in KeyConditionExpression:"
            " begins_with operator must have the key attribute as its first operand",
        ),
        ("size(b) > a AND a.b > b AND b > c", "KeyConditionExpressions cannot contain nested operations"),
        ("a > size(b.d)", "KeyConditionExpressions cannot contain nested operations"),
        ("a between size(b) and size(a)", "KeyConditionExpressions cannot contain nested operations"),
        *[
            (text, "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
            for text in ("b > a.b", "b between c[1] and d", "a between b and size(a)", "begins_with(a, b)")
        ],
        *[
            (text, "KeyConditionExpressions cannot have conditions on nested attributes")
            for text in ("b.d > a AND c.d > e.f", "a.d > c", "b[0] > a", "#pk = :p AND #sk.foo = :s")
        ],
        *[
            (text, "Invalid condition in KeyConditionExpression: No key attribute specified")
            for text in (":s > :p AND a < :s", ":p > b AND :p < :s")
        ],
        *[
            (text, "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key")
            for text in (
                "b > :p AND b < :p and c = :p and d = :p",
                "(a > :p and b > :p) and (b > :p and c > :p)",
                "pk = :p AND #pk = :p",
            )
        ],
    ],
)
def test_what_the_service_refuses_before_it_looks_for_the_table(text: str, message: str) -> None:
    assert fault(text) == message


def test_what_keys_cannot_be_asked_is_said_after_what_conditions_cannot_say() -> None:
    """So that a filter's faults, and placeholders that nothing used, go before."""
    expression = read_key_condition("pk = :p OR sk = :s", Bindings(NAMES, VALUES))
    with pytest.raises(InvalidRequest, match=r"OR$"):
        expression.conditions()


EXCEEDS = "exceeds the number of key attributes defined in the schema"
MISMATCH = "One or more parameter values were invalid: Condition parameter type does not match schema type"


@pytest.mark.parametrize(
    ("text", "partition", "sort", "message"),
    [
        ("sk = :s", PARTITION, SORT, "Query condition missed key schema element: pk"),
        ("attr1 = :s", PARTITION, SORT, "Query condition missed key schema element: pk"),
        ("pk = :p AND attr1 = :s", PARTITION, SORT, "Query condition missed key schema element: sk"),
        ("sk = :s", PARTITION, None, "Query condition missed key schema element: pk"),
        ("pk = :p AND sk = :s", PARTITION, None, f"The number of query conditions (2) {EXCEEDS} (1)"),
        ("pk = :p AND sk = :s AND a = :n", PARTITION, SORT, f"The number of query conditions (3) {EXCEEDS} (2)"),
        (
            "(a > :p and b > :p) and (c > :p and d > :p)",
            PARTITION,
            SORT,
            f"The number of query conditions (4) {EXCEEDS} (2)",
        ),
        ("pk > :p", PARTITION, SORT, "Query key condition not supported"),
        ("begins_with(pk, :p)", PARTITION, None, "Query key condition not supported"),
        ("pk = :n", PARTITION, SORT, MISMATCH),
        ("pk > :n", PARTITION, SORT, MISMATCH),
        ("pk = :yes", PARTITION, SORT, MISMATCH),
        ("pk = :p AND sk = :s", PARTITION, KeyAttribute("sk", "N"), MISMATCH),
        ("pk = :p AND begins_with(sk, :s)", PARTITION, KeyAttribute("sk", "N"), MISMATCH),
        (
            "pk = :e",
            PARTITION,
            SORT,
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain"
            " an empty string value. Key: pk",
        ),
    ],
)
def test_what_does_not_fit_the_table(
    text: str, partition: KeyAttribute, sort: KeyAttribute | None, message: str
) -> None:
    conditions = read(text)
    with pytest.raises(InvalidRequest) as raised:
        conditions.on(TableDefinition("T", partition, sort))
    assert str(raised.value) == message


def condition(operator: str, *values: AttributeValue) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


@pytest.mark.parametrize(
    ("operator", "operands", "expected"),
    [
        ("EQ", [s("s")], sort("=", s("s"))),
        ("LT", [s("s")], sort("<", s("s"))),
        ("LE", [s("s")], sort("<=", s("s"))),
        ("GT", [s("s")], sort(">", s("s"))),
        ("GE", [s("s")], sort(">=", s("s"))),
        ("BETWEEN", [s("s"), s("t")], sort("between", s("s"), s("t"))),
        ("BEGINS_WITH", [s("s")], sort("begins_with", s("s"))),
    ],
)
def test_key_conditions(operator: str, operands: list[AttributeValue], expected: SortCondition) -> None:
    conditions = key_conditions({"sk": condition(operator, *operands), "pk": condition("EQ", s("p"))})
    assert conditions.on(TABLE) == (("pk", s("p")), expected, ())


@pytest.mark.parametrize("operator", ["NULL", "NOT_NULL", "NE", "CONTAINS", "NOT_CONTAINS", "IN"])
def test_key_conditions_that_no_index_answers(operator: str) -> None:
    asked = condition(operator, *[] if operator.endswith("NULL") else [s("s")])
    for conditions in ({"pk": asked}, {"pk": condition("EQ", s("p")), "sk": asked}):
        with pytest.raises(InvalidRequest, match=r"^Attempted conditional constraint is not an indexable operation$"):
            key_conditions(conditions).on(TABLE)


def test_key_conditions_are_not_none() -> None:
    with pytest.raises(InvalidRequest, match=r"^Conditions can be of length 1 or 2 only$"):
        key_conditions({})


# --- keys with several attributes --------------------------------------------------------------

BOTH = (("p2", n(1)),)


@pytest.mark.parametrize(
    ("text", "condition", "equal"),
    [
        ("pk = :p AND p2 = :n", None, BOTH),
        (":n = p2 AND pk = :p", None, BOTH),
        ("pk = :p AND p2 = :n AND sk = :s", sort("=", s("s")), BOTH),
        ("sk < :s AND pk = :p AND p2 = :n", sort("<", s("s")), BOTH),
        (
            "pk = :p AND sk = :s AND p2 = :n AND s2 BETWEEN :s AND :t",
            SortCondition("s2", "between", (s("s"), s("t"))),
            (*BOTH, ("sk", s("s"))),
        ),
        (
            "begins_with(s3, :t) AND s2 = :t AND sk = :s AND p2 = :n AND pk = :p",
            SortCondition("s3", "begins_with", (s("t"),)),
            (*BOTH, ("sk", s("s")), ("s2", s("t"))),
        ),
    ],
)
def test_expressions_on_several_keys(text: str, condition: SortCondition | None, equal: Any) -> None:
    assert read(text).on(SEVERAL) == (("pk", s("p")), condition, equal)


def test_key_conditions_on_several_keys() -> None:
    conditions = key_conditions(
        {
            "s2": condition("GT", s("t")),
            "sk": condition("EQ", s("s")),
            "p2": condition("EQ", n(1)),
            "pk": condition("EQ", s("p")),
        }
    )
    assert conditions.on(SEVERAL) == (("pk", s("p")), SortCondition("s2", ">", (s("t"),)), (*BOTH, ("sk", s("s"))))


BECAUSE = "must have equality conditions specified in the query because a condition is present on key attribute"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pk = :p", "HASH key attributes p2 must have equality conditions specified in the query"),
        ("pk = :p AND p2 > :n", "HASH key attributes p2 must have equality conditions specified in the query"),
        ("pk = :p AND p2 = :n AND s2 = :s", f"RANGE key attributes sk {BECAUSE} s2"),
        ("pk = :p AND p2 = :n AND sk > :s AND s2 = :s", f"RANGE key attributes sk {BECAUSE} s2"),
        ("pk = :p AND p2 = :n AND begins_with(sk, :s) AND s2 = :s", f"RANGE key attributes sk {BECAUSE} s2"),
        ("pk = :p AND p2 = :n AND a = :s", "Query condition missed key schema element: sk"),
        (
            "pk = :p AND p2 = :n AND sk = :s AND s2 = :s AND s3 = :s AND a = :s",
            f"The number of query conditions (6) {EXCEEDS} (5)",
        ),
        ("pk = :p AND p2 = :s", MISMATCH),
        ("pk = :p AND p2 = :n AND sk = :n", MISMATCH),
        ("pk = :p AND p2 = :n AND sk = :s AND s2 = :n", MISMATCH),
        (
            "pk = :p AND p2 = :n AND sk = :e AND s2 = :s",
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported."
            " The AttributeValue for a key attribute cannot contain an empty string value."
            " IndexName: Idx, IndexKey: sk",
        ),
    ],
)
def test_what_does_not_fit_several_keys(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(text).on(SEVERAL)
    assert str(raised.value) == message


@pytest.mark.parametrize("operator", ["NULL", "NE", "CONTAINS", "IN"])
def test_key_conditions_that_no_index_of_several_keys_answers(operator: str) -> None:
    asked = condition(operator, *[] if operator == "NULL" else [s("s")])
    whole = {"pk": condition("EQ", s("p")), "p2": condition("EQ", n(1))}
    with pytest.raises(InvalidRequest, match=r"^Attempted conditional constraint is not an indexable operation$"):
        key_conditions({**whole, "sk": asked}).on(SEVERAL)
    with pytest.raises(InvalidRequest, match=f"^RANGE key attributes sk {BECAUSE} s2$"):
        key_conditions({**whole, "sk": asked, "s2": condition("EQ", s("s"))}).on(SEVERAL)
