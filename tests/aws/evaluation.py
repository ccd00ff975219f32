"""IAM's evaluation of a policy, as its documentation has it, for what policies of a table use.

A condition "for all values" holds of no values too; "Null" asks whether there are any. In a pattern
"*" and "?" are wildcards, and "${…}" a variable, of which "${*}", "${?}" and "${$}" are the signs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_TOKEN = re.compile(r"\$\{([^}]*)\}|([\s\S])")


def allows(
    policy: Mapping[str, Any],
    action: str,
    resource: str,
    keys: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> bool:
    """Whether a request for these partition keys is allowed."""
    assert policy["Version"] == "2012-10-17", "older versions know no variables"
    return any(
        statement["Effect"] == "Allow"
        and f"dynamodb:{action}" in statement["Action"]
        and any(_matches(pattern, resource, variables or {}, wild=True) for pattern in statement["Resource"])
        and _holds(statement.get("Condition", {}), keys, variables or {})
        for statement in policy["Statement"]
    )


def _holds(condition: Mapping[str, Any], keys: Sequence[str], variables: Mapping[str, str]) -> bool:
    for operator, operands in condition.items():
        (name, values), *others = operands.items()
        assert (name, others) == ("dynamodb:LeadingKeys", []), "the only key that is known here"
        if operator == "Null":
            held = (not keys) == (values == "true")
        else:
            assert operator in ("ForAllValues:StringEquals", "ForAllValues:StringLike")
            wild = operator.endswith("Like")
            held = all(any(_matches(value, key, variables, wild=wild) for value in values) for key in keys)
        if not held:
            return False
    return True


def _matches(pattern: str, text: str, variables: Mapping[str, str], *, wild: bool) -> bool:
    wildcards = {"*": ".*", "?": "."} if wild else {}
    expression = ""
    for variable, character in _TOKEN.findall(pattern):
        if variable:
            expression += re.escape(variable if variable in "*?$" else variables[variable])
        else:
            expression += wildcards.get(character) or re.escape(character)
    return re.fullmatch(expression, text, re.DOTALL) is not None
